"""Inputs of the rules: every figure they read, known or missing with its reason."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import fsum
from operator import attrgetter
from typing import Any, Final, TypeVar

from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.markets.feeds import FRED
from zuno.markets.market import Catalogue, Market, Symbol
from zuno.markets.routes import DEFAULT_ROUTES, Routes
from zuno.markets.venues import Venue
from zuno.trading.measure.bars import Bars
from zuno.trading.measure.derivatives import funding_figures
from zuno.trading.measure.features import Features, fresh_rows, measure_change, read_window
from zuno.trading.measure.frames import FrameCache
from zuno.trading.measure.portable import price_units, round_digits
from zuno.trading.measure.tape import Stream, TapeMinutes, TapeTotals
from zuno.trading.measure.triage import Label, Rule, Triage
from zuno.trading.model import market
from zuno.trading.model.account import Account, read_slot
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import EvPolicy
from zuno.trading.model.known import Known, Missing, NotRecorded, figure_in
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Feed, Funding, Mode, Row, Series, Side, Timeframe, funding
from zuno.trading.model.memory import RECORD, DeskRecord
from zuno.trading.model.wanted import RATE_SERIES, forced_trades, mark_series, options_of, own_candles
from zuno.trading.rules.account import (
    STABLE,
    MarkedAccount,
    account_of,
    currency_rates,
    exposed_symbols,
    find_group,
    mark_bundle_account,
    mark_of,
    quoted_rates,
    rate_of,
    read_markets,
)
from zuno.trading.rules.exits import PositionExit, find_exits
from zuno.trading.rules.price_menu import PriceMenu

R = TypeVar("R")
S = TypeVar("S", bound=Row)
MIN_COVERAGE: Final = 0.9
"""Share of a day's minutes that must be recorded for its liquidations to be known."""
LIQUIDATION_TRAP_USD: Final = 50e6
"""Liquidated on the other side in a day; beyond it the move is considered spent."""
PANIC_RANK: Final = 0.95
"""Where a falling day's volatility stands among its like when it is panic."""
CURVE: Final = (market.macro(FRED, "DGS2"), market.macro(FRED, "DGS10"))
ASSUMED_FUNDING: Final = 0.0001
"""Of eight hours, as a fraction: the rate perpetuals rest at, where none was recorded."""
IMPORTED_FUNDING_DAYS: Final = 2
ESSENTIAL: Final[Mapping[str, str]] = {
    "bars": "candles", "atr": "candles", "slippage": "book", "funding_next": "funding", "mark": "mark",
    "marked_account": "equity and positions", "account": "equity and positions",
}  # fmt: skip
"""Figures without which nothing new is risked, and what a person calls them."""
_FIGURES: Final = (
    "atr", "mark", "funding_next", "day_volatility_rank", "curve_change", "longs_liquidated", "shorts_liquidated",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeeRates:
    """In per cent of the notional."""

    maker: float
    taker: float


@dataclass(frozen=True, slots=True)
class Fees:
    """Those that are not a venue's usual ones."""

    own: Mapping[Venue, FeeRates] = field(default_factory=dict)

    def at(self, exchange: Venue) -> FeeRates:
        return self.own.get(exchange) or FeeRates(exchange.maker, exchange.taker)

    def list_unusual(self) -> dict[Venue, FeeRates]:
        """Those that differ from what their venue usually takes."""
        usual = Fees()
        return {venue: rates for venue, rates in self.own.items() if rates != usual.at(venue)}


@dataclass(frozen=True, slots=True)
class Slippage:
    """Slippage of a $100k order against the mid, in per cent, by side."""

    buy: float
    sell: float
    spread: float | None = None
    """Between bid and ask; None where nobody looked at the book."""

    @property
    def half_spread(self) -> float:
        """What a waiting order is filled against; where the book is unknown, the smaller slippage of a large order."""
        return min(self.buy, self.sell) if self.spread is None else self.spread / 2


ASSUMED_SLIPPAGE: Final = Slippage(0.05, 0.05)
"""Where no book was recorded: five basis points a side."""


@dataclass(frozen=True, slots=True)
class RulingInputs:
    """Rule inputs as of one moment. A missing figure makes rules stricter, never milder."""

    symbol: Symbol
    mode: Mode
    as_of: Millis
    bars: Known[Bars] = field(repr=False)
    """The mode's shortest, the last thousand; missing where any of the mode's timeframes is."""
    atr: Known[float]
    mark: Known[float]
    slippage: Known[Slippage]
    funding_next: Known[float]
    """Predicted, as a fraction for eight hours."""
    panic: Known[bool]
    day_volatility_rank: Known[float]
    """Among those of half a year."""
    curve_change: Known[float]
    """2s10s against five prints earlier, in percentage points."""
    longs_liquidated: Known[float]
    shorts_liquidated: Known[float]
    """Dollars liquidated in a day."""
    breakout: Known[bool]
    high_volatility: Known[bool]
    shock_down: Known[str | None]
    shock_up: Known[str | None]
    """The shock or cascade of the last hour that went this way, in words; None where there was none."""
    quoted_rates: Mapping[str, Known[float]]
    account: Known[Account]
    """What is held, which is known without a mark."""
    marked_account: Known[MarkedAccount]
    record: Known[DeskRecord]
    exits: tuple[PositionExit, ...] = ()
    """Open positions whose stop, target or hold time is passed."""
    funding_assumed: bool = False
    """No rate was ever recorded: the usual one is charged to either side."""
    fees: Fees = field(default_factory=Fees)
    catalogue: Catalogue = field(default_factory=Catalogue)
    routes: Routes = DEFAULT_ROUTES
    paper: bool = True
    group: frozenset[Symbol] = frozenset()
    """Markets that the debate holds and that move with the symbol, itself included."""
    whole_group: frozenset[Symbol] = frozenset()
    """The same of all sleeves, where there are more."""
    day_fell: bool = True
    """Over 24 hours, or nobody knows."""
    candles_only: bool = False
    """Whether the home declares that it holds candles alone: paper trades only."""

    @property
    def policy(self) -> EvPolicy:
        return "record" if isinstance(self.record, Missing) else self.record.policy

    @property
    def dollar(self) -> Known[float]:
        """USDT for one USDC."""
        return self.quoted_rates[STABLE]

    def rate(self, venue: Venue) -> Known[float]:
        return rate_of(venue, currency_rates(self.quoted_rates))

    def market(self, venue: Venue) -> Market:
        """Where a venue carries the symbol. `NotFound` where it does not."""
        return self.catalogue.find(venue, self.symbol)

    @property
    def tick(self) -> float:
        return self.market(self.symbol.venue).tick

    def shock_against(self, side: Side) -> Known[str | None]:
        return self.shock_down if side is Side.LONG else self.shock_up

    def funding_of(self, rate: float, side: Side) -> float:
        """What holding that side pays at such a rate; below zero where it is paid."""
        if self.funding_assumed:
            return abs(rate)
        return rate if side is Side.LONG else -rate

    def __post_init__(self) -> None:
        """Figures are kept to twelve digits: a last bit changes no ruling."""
        for name in _FIGURES:
            if isinstance(value := getattr(self, name), float):
                object.__setattr__(self, name, round_digits(value))
        known = {name: round_digits(rate) for name, rate in self.quoted_rates.items() if isinstance(rate, float)}
        object.__setattr__(self, "quoted_rates", {**self.quoted_rates, **known})
        if isinstance(given := self.slippage, Slippage):
            spread = None if given.spread is None else round_digits(given.spread)
            object.__setattr__(self, "slippage", Slippage(round_digits(given.buy), round_digits(given.sell), spread))

    @property
    def seed(self) -> int:
        """Of the bars that are drawn from alone, in whole units of price, so that nothing else changes the draw."""
        if isinstance(self.bars, Missing):
            return 0
        text = b"".join(price_units(column).tobytes() for column in (self.bars.close, self.bars.high, self.bars.low))
        return int.from_bytes(sha256(text).digest()[:8], "big")


def build_ruling_inputs(
    bundle: Bundle,
    features: Features,
    menu: PriceMenu,
    *,
    fees: Fees | None = None,
    paper: bool = True,
    cache: FrameCache | None = None,
) -> RulingInputs:
    symbol = bundle.symbol
    forced = _liquidated_by_side(bundle)
    tapes = forced_trades(symbol)
    against = {side: features.events.against(side) for side in Side}
    shocks = {
        side: event if event is None or isinstance(event, Missing) else f"{event.name}: {event.said}"
        for side, event in against.items()
    }
    account, mark = account_of(bundle), mark_of(bundle, symbol)
    group = whole_group = frozenset[Symbol]()
    if not isinstance(account, Missing):
        group = find_group(bundle, symbol, exposed_symbols(account, whole=False))
        whole_group = group if account.others is None else find_group(bundle, symbol, exposed_symbols(account))
    catalogue, routes = read_markets(bundle)
    cache = cache or FrameCache()
    hours, quoted = read_window(bundle, Timeframe.H1, cache), quoted_rates(features)
    return RulingInputs(
        symbol=symbol,
        mode=bundle.mode,
        as_of=bundle.as_of,
        bars=_bars(bundle, cache),
        atr=menu.atr,
        mark=mark,
        slippage=ASSUMED_SLIPPAGE
        if bundle.never_recorded(market.books(symbol.venue.feed, symbol.pair))
        else _slippage(features),
        funding_next=_funding(bundle, features),
        panic=_judged(bundle, _rule_fired(features.triage, Rule.OPTIONS_PANIC), *options_of(symbol)),
        day_volatility_rank=figure_in(features.volatility, "rank"),
        day_fell=has_fallen(measure_change(hours, 24)),
        curve_change=_judged(bundle, figure_in(features.economy.slope, "change"), *CURVE),
        longs_liquidated=_judged(bundle, forced[Side.LONG], *tapes),
        shorts_liquidated=_judged(bundle, forced[Side.SHORT], *tapes),
        breakout=_breakout(features.triage),
        high_volatility=_rule_fired(features.triage, Rule.SPIKE, Rule.LIQUIDATION_CLUSTER, Rule.OPTIONS_PANIC),
        shock_down=shocks[Side.LONG],
        shock_up=shocks[Side.SHORT],
        quoted_rates={name: _judged(bundle, rate, RATE_SERIES[name]) for name, rate in quoted.items()},
        account=account,
        marked_account=mark_bundle_account(bundle, features),
        record=read_record(bundle),
        exits=() if isinstance(account, Missing) else find_exits(bundle, account, mark),
        fees=fees or Fees(),
        catalogue=catalogue,
        routes=routes,
        paper=paper,
        group=group,
        whole_group=whole_group,
        candles_only=bundle.candles_only,
        funding_assumed=bundle.never_recorded(_settled(symbol)),
    )


def has_fallen(change: Known[float]) -> bool:
    """Whether the price fell; a change that nobody knows counts as a fall."""
    return isinstance(change, Missing) or change < 0


def read_record(bundle: Bundle) -> Known[DeskRecord]:
    slot = bundle.slot(RECORD)
    if slot is None:
        return Missing("nobody looked")
    try:
        return read_slot(DeskRecord, slot.content, "closed trades")
    except Malformed as error:
        return Missing(str(error).rstrip("."))


def _bars(bundle: Bundle, cache: FrameCache) -> Known[Bars]:
    for timeframe in bundle.mode.timeframes:
        rows = fresh_rows(bundle, own_candles(bundle.symbol, timeframe))
        if isinstance(rows, Missing):
            return Missing(f"{timeframe} bars: {rows.reason}")
    return read_window(bundle, bundle.mode.timeframes[0], cache)


def _judged(bundle: Bundle, figure: Known[R], *series: Series[Any]) -> Known[R]:
    """The figure; where it is missing because this home never recorded what it rests on, not judged."""
    if not isinstance(figure, Missing) or not bundle.never_recorded(*series):
        return figure
    gone = dict.fromkeys(str(source) for source in series if bundle.block(source) is None)
    return NotRecorded(f"never recorded here: {', '.join(gone)}")


def _funding(bundle: Bundle, features: Features) -> Known[float]:
    """The predicted rate for eight hours. With candles only: the last imported rate of two days, else the usual one."""
    settled = _settled(bundle.symbol)
    if bundle.never_recorded(settled):
        return ASSUMED_FUNDING
    if bundle.candles_only:
        since = bundle.as_of - IMPORTED_FUNDING_DAYS * DAY_MS
        rows = bundle.rows(funding(bundle.symbol.venue.feed, bundle.symbol.pair))
        figures = (funding_figures(row) for row in rows if since <= row.at <= bundle.as_of)
        known = [rate.per_8h for rate in figures if not isinstance(rate, Missing)]
        return known[-1] if known else Missing(f"the last imported rate is older than {IMPORTED_FUNDING_DAYS} days")
    return figure_in(features.perpetuals[0].predicted, "per_8h")


def _settled(symbol: Symbol) -> Series[Funding]:
    """Rates of the market's own perpetual, or of the one that is read beside spot."""
    return funding(mark_series(symbol).venue, symbol)


def _slippage(features: Features) -> Known[Slippage]:
    book = features.book
    if isinstance(book, Missing):
        return book
    buy, sell = book.buy_slippage_bps, book.sell_slippage_bps
    if isinstance(buy, Missing):
        return buy
    return sell if isinstance(sell, Missing) else Slippage(buy / 100, sell / 100, book.spread_bps / 100)


def _rule_fired(triage: Triage, *rules: Rule) -> Known[bool]:
    if any(anomaly.rule in rules for anomaly in triage.anomalies):
        return True
    unknown = next((rule_gap for rule_gap in triage.unknown if rule_gap.rule in rules), None)
    return False if unknown is None else Missing(unknown.reason)


def _breakout(triage: Triage) -> Known[bool]:
    if any(anomaly.label is Label.TRUE_BREAKOUT for anomaly in triage.anomalies):
        return True
    known = _rule_fired(triage, Rule.SPIKE)
    return known if isinstance(known, Missing) else False


def _liquidated_by_side(bundle: Bundle) -> Mapping[Side, Known[float]]:
    """A day's liquidations of every tape venue, scaled up for minutes nobody heard. Where a venue is missing, the sum
    is known only if it exceeds the bound already."""
    since = Millis(bundle.as_of - DAY_MS)
    days: list[TapeTotals] = []
    gone: list[str] = []
    for series in forced_trades(bundle.symbol):
        venue, strikes = series.venue, fresh_rows(bundle, series)
        if isinstance(strikes, Missing):
            gone.append(f"{venue}: {strikes.reason}")
            continue
        signs = bundle.rows(market.alive(Feed.LIQUIDATIONS, venue, bundle.symbol))
        stream = Stream(venue, _rows_since(strikes, since), _rows_since(signs, since))
        day = TapeMinutes([stream]).tally(since, bundle.as_of)
        days.append(day)
        if day.heard < MIN_COVERAGE * day.minutes:
            gone.append(f"{venue}: {day.heard} of {day.minutes} minutes were heard")
    sums = {side: fsum(_scale_to_full_day(day, side) for day in days) for side in Side}
    return {
        side: usd if not gone or usd > LIQUIDATION_TRAP_USD else Missing("; ".join(gone)) for side, usd in sums.items()
    }


def _scale_to_full_day(day: TapeTotals, side: Side) -> float:
    usd = day.usd(side)
    return 0.0 if isinstance(usd, Missing) else usd * day.minutes / max(day.heard, MIN_COVERAGE * day.minutes)


def _rows_since(rows: Sequence[S], since: int) -> Sequence[S]:
    """Of rows in their order, those from the beginning of that minute on."""
    return rows[bisect_left(rows, since // MINUTE_MS * MINUTE_MS, key=attrgetter("at")) :]


def list_skipped_rules(inputs: RulingInputs) -> tuple[str, ...]:
    """What a home of candles alone leaves unjudged, and what is assumed in its place."""
    if not inputs.candles_only:
        return ()
    named = {"panic": "options panic", "curve_change": "2s10s"}
    named |= {"longs_liquidated": "liquidations", "dollar": "USDC/USDT"}
    gone = [called for name, called in named.items() if isinstance(getattr(inputs, name), NotRecorded)]
    skipped = [f"not judged, never recorded: {', '.join(gone)}"] if gone else []
    if inputs.slippage == ASSUMED_SLIPPAGE:
        skipped.append(f"slippage of {100 * ASSUMED_SLIPPAGE.buy:g} bps a side is assumed")
    if inputs.funding_assumed:
        skipped.append(f"funding of {100 * ASSUMED_FUNDING:g} % for 8 h is charged to either side")
    return (*skipped, "paper trades only")


def missing_essentials(inputs: RulingInputs) -> tuple[str, ...]:
    """Missing figures without which no trade is opened, each with its reason."""
    missing: dict[str, str] = {}
    for name, called in ESSENTIAL.items():
        figure = getattr(inputs, name)
        if isinstance(figure, Missing):
            missing.setdefault(called, f"{called}: {figure.reason}")
    return tuple(missing.values())
