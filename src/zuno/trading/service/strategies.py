"""What core strategies are and what each sleeve would hold now, with the reason and what a minimum order prevents."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from zuno.kernel.errors import NotFound
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import IsoTime, View
from zuno.markets.market import Catalogue, Market, Symbol
from zuno.markets.venues import Kind, find_near, venue_of
from zuno.present.document import Block, Document, Section, document, lines, section, table
from zuno.present.values import money, number, quiet, share
from zuno.trading.data.daily_histories import read_days
from zuno.trading.model.sleeves import DEBATE, SleeveShares
from zuno.trading.service.features import TradingDesk
from zuno.trading.strategies.catalogue import STRATEGIES
from zuno.trading.strategies.port import CoreStrategy, MarketHistory, StrategyView
from zuno.trading.strategies.scaler import SizedTarget, explain_least_trade, size_targets

DEBATE_RULE = "bracket trades of the desk's cycles; what it holds is in `zuno trade positions`"
OWN_RULE = "the owner's own strategy"


class SleeveLineView(View):
    name: str
    share: float
    """Of the account; 0: it holds nothing."""
    rule: str


class SleevesListView(View):
    account: str
    sleeves: tuple[SleeveLineView, ...]

    def to_document(self) -> Document:
        titles = {line.name: f"{line.name}, {100 * line.share:.0f} % of the account" for line in self.sleeves}
        sections = (section(titles[line.name], lines(line.rule)) for line in self.sleeves)
        return document(f"Strategies of {self.account}", *sections)


class TargetRowView(View):
    market: str
    weight: float
    """Of the sleeve's capital; of two legs that of each."""
    usd: float | None
    why: str
    prevented: str
    """Why no order would be made of it; empty: one would."""


class SleeveTargetsView(View):
    name: str
    share: float
    capital_usd: float | None
    rule: str
    scale: float
    """K of the drawdown scaler."""
    targets: tuple[TargetRowView, ...]

    def to_section(self) -> Section:
        capital = "" if self.capital_usd is None else f", ${self.capital_usd:,.2f}"
        title = f"{self.name}: {100 * self.share:.0f} % of the account{capital}"
        prevented = (f"{row.market}: {row.prevented}" for row in self.targets if row.prevented)
        scale = "" if self.scale == 1 else f"Scaled to {self.scale:.2f} by the fall from its high of a year."
        return section(title, lines(quiet(self.rule), scale), self._table(), lines(*prevented))

    def _table(self) -> Block | None:
        rows = (
            (row.market, share(row.weight), money(row.usd) if row.usd is not None else quiet("–"), row.why)
            for row in self.targets
        )
        return table(("market", "weight", "target", "why"), rows) if self.targets else None


class StrategyTargetsView(View):
    synthetic: bool
    origin: str
    account: str
    as_of: IsoTime
    equity_usd: float | None
    sleeves: tuple[SleeveTargetsView, ...]
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        equity = quiet("not known") if self.equity_usd is None else number(self.equity_usd, 2, unit="USD")
        return document(
            f"Targets of {self.account}, equity {equity.text}",
            *(sleeve.to_section() for sleeve in self.sleeves),
            context=f"{self.origin}, {self.as_of}",
            notes=self.notes,
            as_of=self.as_of,
        )


@dataclass(frozen=True, slots=True)
class SleeveAccount:
    name: str
    shares: SleeveShares
    equity_usd: Decimal | None
    capital_usd: Mapping[str, float | None]
    """What each sleeve itself is worth, which is what the desk weighs its targets by; None: not known."""


@dataclass(frozen=True, slots=True)
class StrategyDesk:
    """Reads stored days; nobody is asked for more, and nothing is ordered."""

    desk: TradingDesk
    read_account: Callable[[], Awaitable[SleeveAccount]]
    read_catalogue: Callable[[], Catalogue]

    async def list(self) -> SleevesListView:
        account = await self.read_account()
        rules = {name: strategy.rule for name, strategy in STRATEGIES.items()} | {DEBATE: DEBATE_RULE}
        sleeves = (
            SleeveLineView(name=name, share=float(account.shares.of(name)), rule=rules.get(name, OWN_RULE))
            for name in dict.fromkeys([*rules, *account.shares])
        )
        return SleevesListView(account=account.name, sleeves=tuple(sleeves))

    async def show(self, name: str, as_of: str | None = None) -> StrategyTargetsView:
        if name not in STRATEGIES:
            near = find_near(name, tuple(STRATEGIES))
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(STRATEGIES)}"
            raise NotFound(f"No strategy is called {plain_text(name, 40)!r}{hint}")
        return await self._weigh([name], await self.read_account(), as_of)

    async def targets(self, as_of: str | None = None) -> StrategyTargetsView:
        """What every sleeve with a share would hold, as known at a moment."""
        account = await self.read_account()
        return await self._weigh([name for name in STRATEGIES if account.shares.of(name)], account, as_of)

    async def read_view(self, at: Millis) -> StrategyView:
        """The days of the desk's markets that were over by a moment."""
        catalogue, symbols = self.read_catalogue(), self.desk.markets
        spots = {symbol for symbol in symbols if find_spot(catalogue, symbol) is not None}
        histories = await read_days(self.desk.store, symbols, at, spot=spots.__contains__)
        return StrategyView(at, {history.name: history for history in histories})

    async def _weigh(self, names: Sequence[str], account: SleeveAccount, as_of: str | None) -> StrategyTargetsView:
        moment = await self.desk.newest_moment(as_of)
        catalogue, view = self.read_catalogue(), await self.read_view(moment.as_of)
        sleeves = []
        for name in names:
            strategy, part = STRATEGIES[name], account.shares.of(name)
            capital = account.capital_usd.get(name, 0.0) if part else None
            sized = size_targets(strategy, view)
            rows = (_view_target(strategy, view.markets[market], sized[market], capital, catalogue) for market in sized)
            sleeves.append(
                SleeveTargetsView(
                    name=name,
                    share=float(part),
                    capital_usd=capital,
                    rule=strategy.rule,
                    scale=min((target.scale for target in sized.values()), default=1.0),
                    targets=tuple(rows),
                )
            )
        core = [name for name in account.shares if name not in STRATEGIES]
        return StrategyTargetsView(
            synthetic=self.desk.synthetic,
            origin=moment.origin,
            account=account.name,
            as_of=moment.as_of,
            equity_usd=None if account.equity_usd is None else float(account.equity_usd),
            sleeves=tuple(sleeves),
            notes=(
                *(() if sleeves else ("no sleeve of this account has a core strategy; ZUNO_SLEEVES gives one",)),
                *(f"{name}: {DEBATE_RULE if name == DEBATE else OWN_RULE}" for name in core),
                *moment.notes,
            ),
        )


def find_spot(catalogue: Catalogue, symbol: Symbol) -> Market | None:
    """The spot market of a symbol's coin at its own house, where orders can be placed."""
    venue = venue_of(symbol.venue.house, Kind.SPOT)
    market = None if venue is None else catalogue.find_listed(venue, symbol)
    return market if market is not None and market.trading else None


def _view_target(
    strategy: CoreStrategy, history: MarketHistory, target: SizedTarget, capital: float | None, catalogue: Catalogue
) -> TargetRowView:
    symbol = Symbol(history.name)
    perpetual, spot = catalogue.find_listed(symbol.venue, symbol), find_spot(catalogue, symbol)
    legs = [market for market in (spot, perpetual) if market is not None and market.trading][: strategy.legs]
    usd = None if capital is None else round(capital * target.weight, 2)
    prevented = ""
    if usd and len(legs) < strategy.legs:
        prevented = f"{symbol.venue.label} does not trade it"
    elif usd:
        reasons = (explain_least_trade(usd, market.min_notional, market.lot * history.closes[-1]) for market in legs)
        prevented = next(filter(None, reasons), "")
    return TargetRowView(market=history.name, weight=target.weight, usd=usd, why=target.why, prevented=prevented)
