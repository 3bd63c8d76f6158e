"""Shorts against liquidity, kept in the sleeve `lp-hedge` of a trading account: only plain amounts cross."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from zuno.kernel.accounts import account_mode
from zuno.kernel.errors import Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.units import Millis
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.hedges import PerpetualQuote, ShortResult, ShortState
from zuno.markets.market import Catalogue, Symbol, spell_symbol
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.targets import TargetPosition
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.strategies.cash_carry import LEAST_KNOWN, measure_funding
from zuno.trading.strategies.port import StrategyView, align_days

SLIPPAGE: Final = Fraction(4, 10_000)
"""Of a re-set at the market, beside the venue's fee."""
MARGIN: Final = Decimal("1.25")
"""Set aside for a short of 1: it is not leveraged, and the price may rise until it is set again."""
LOOKS: Final = 20
LOOK_SECONDS: Final = 0.25
DOLLAR: Final = "USD"


@dataclass(frozen=True, slots=True)
class SleeveShorts:
    """The LP desk's `ShortDesk` on a trading account's one door to orders."""

    open_gate: Callable[[str], Awaitable[OrderGate]]
    play_account: Callable[[], Awaitable[str]]
    """Where positions without money are hedged."""
    live_account: str | None
    """Where those with money are; None: trading with money is switched off."""
    catalogue: Callable[[], Catalogue]
    read_view: Callable[[Symbol], Awaitable[StrategyView]]
    """The days of a market that are over."""
    real_time: bool
    """Whether what is sent now is filled while we look."""

    async def choose_account(self, chain: ChainInfo) -> str:
        if chain.testnet:
            return await self.play_account()
        if self.live_account is None:
            raise Refused(f"A position on {chain.name} is hedged with money alone: ZUNO_LIVE is not set.")
        if account_mode(self.live_account) != "live":
            raise Refused(f"A position on {chain.name} is hedged with money alone, and {self.live_account} has none.")
        gate = await self.open_gate(self.live_account)
        mandate = (await gate.refresh()).active_mandate(gate.now())
        if mandate is None or not any(sleeve.name == LP_HEDGE for sleeve in mandate.sleeves):
            raise Refused(
                f"A position on {chain.name} is hedged under a mandate that names {LP_HEDGE}: "
                f"`zuno trade mandate grant --account {self.live_account} --sleeve {LP_HEDGE}:…`"
            )
        return self.live_account

    async def quote(self, coin: str, chain: ChainInfo) -> PerpetualQuote:
        account = await self.choose_account(chain)
        try:
            symbol = spell_symbol(coin)
        except UsageError as error:
            raise Refused(f"{coin} cannot be hedged: {error}") from error
        listed = (market for market in self.catalogue().list_at(symbol.venue) if market.symbol is symbol)
        if (market := next(listed, None)) is None or not market.trading or not symbol.venue.shorts:
            raise Refused(f"{coin} cannot be hedged: {symbol.venue.label} has no perpetual of it.")
        if (rate := _find_funding(await self.read_view(symbol))) is None:
            raise Unavailable(f"{coin} cannot be hedged now: funding of {symbol} is not known for the last week.")
        return PerpetualQuote(
            market=symbol.value,
            cost=Fraction(str(market.taker)) / 100 + SLIPPAGE,
            funding_hour=Fraction(str(rate)) / (365 * 24),
            source=f"{account}: taker fee and {float(SLIPPAGE):.2%} of slippage, mean funding of 7 days",
        )

    async def reserve(self, account: str, most: Mapping[str, Decimal], request: str) -> None:
        gate = await self.open_gate(account)
        await gate.advance()
        margins = [coins * await gate.read_mark(Symbol(market)) * MARGIN for market, coins in most.items()]
        there = await gate.read_capital(LP_HEDGE)
        if (amount := (sum(margins, Decimal(0)) - there).quantize(Decimal("0.01"))) <= 0:
            return
        mandate = gate.book.active_mandate(gate.now()) if gate.live else None
        named = next((each for each in mandate.sleeves if each.name == LP_HEDGE), None) if mandate else None
        if named is not None:
            capital = {sleeve: await gate.read_capital(sleeve) for sleeve in gate.book.sleeves}
            whole = sum(capital.values(), Decimal(0))
            if there + amount > named.share * whole:
                raise Refused(f"A margin of ${there + amount:,.2f} is more than {named.share:.0%} of {account}.")
        try:
            await gate.transfer(DEBATE, LP_HEDGE, amount, f"hedge {request}")
        except Refused as error:
            raise Refused(f"The hedge needs ${amount:,.2f} of margin of the account {account}: {error}") from error

    async def set_shorts(
        self, account: str, wanted: Mapping[str, Decimal], decided: Millis
    ) -> Mapping[str, ShortState]:
        gate = await self.open_gate(account)
        symbols = {market: Symbol(market) for market in wanted}
        targets = [
            TargetPosition(symbols[market].venue, symbols[market], -quantity, stop_distance=None, at_once=True)
            for market, quantity in wanted.items()
        ]
        whys, over = dict[Symbol, str](), dict[Symbol, bool]()
        try:
            for look in range(LOOKS):
                results = await gate.set_targets({LP_HEDGE: targets}, decided, f"hedge_{decided}")
                whys = {result.symbol: result.reason for result in results}
                over = {result.symbol: result.state in ("held", "done") for result in results}
                if all(result.state in ("held", "refused", "done") for result in results):
                    break
                if self.real_time and look + 1 < LOOKS:
                    await asyncio.sleep(LOOK_SECONDS)
        except ZunoError as error:
            whys = dict.fromkeys(symbols.values(), str(error))
        return {
            market: ShortState(
                held=-_find_held(gate.book, symbol),
                lot=Decimal(str(self.catalogue().find(symbol.venue, symbol).lot)),
                why=whys.get(symbol, ""),
                over=over.get(symbol, False),
            )
            for market, symbol in symbols.items()
        }

    async def read_held(self, account: str, markets: Iterable[str]) -> Mapping[str, Decimal]:
        book = await (await self.open_gate(account)).refresh()
        symbols = {market: Symbol(market) for market in markets}
        return {market: -_find_held(book, symbol) for market, symbol in symbols.items()}

    async def release(self, account: str) -> None:
        gate = await self.open_gate(account)
        free = (await gate.refresh()).sleeve_free(LP_HEDGE, DOLLAR).quantize(Decimal("0.01"), "ROUND_DOWN")
        if free > 0:
            await gate.transfer(LP_HEDGE, DEBATE, free, f"unhedge {gate.book.count}")

    async def read_result(self, account: str, market: str) -> ShortResult:
        gate, symbol = await self.open_gate(account), Symbol(market)
        book = await gate.refresh()
        marks = await gate.marks()
        closed = [trade for trade in book.closed if (trade.symbol, trade.sleeve) == (symbol, LP_HEDGE)]
        ledger = sum((trade.net_pnl for trade in closed), Decimal(0))
        funding = sum((trade.funding for trade in closed), Decimal(0))
        worth = Decimal(0)
        held = book.position(symbol.venue, symbol, LP_HEDGE)
        if held is not None:
            if (mark := marks.get((symbol.venue, symbol))) is None:
                raise Unavailable(f"What the hedge is worth is not known: there is no price of {symbol}.")
            ledger += held.gross - held.fees + held.funding + held.unrealised_pnl(mark)
            funding, worth = funding + held.funding, held.signed * mark
        own = (tracked for tracked in book.intents.values() if tracked.intent.sleeve == LP_HEDGE)
        orders = {id for tracked in own if tracked.intent.symbol is symbol for id in tracked.orders}
        return ShortResult(ledger=ledger, trades=book.sum_proceeds(orders) + worth, funding=funding)


def keep_days(
    now: Callable[[Symbol], Awaitable[Millis]], read: Callable[[Symbol, Millis], Awaitable[StrategyView]]
) -> Callable[[Symbol], Awaitable[StrategyView]]:
    """Days of a market that are over, read once a day; anew while their funding is not known."""
    views: dict[Symbol, StrategyView] = {}

    async def read_view(symbol: Symbol) -> StrategyView:
        at, view = await now(symbol), views.get(symbol)
        if view is None or view.at // DAY_MS != at // DAY_MS:
            view = await read(symbol, at)
            if _find_funding(view) is not None:
                views[symbol] = view
        return view

    return read_view


def _find_funding(view: StrategyView) -> float | None:
    """A year, as the last week paid it."""
    columns = align_days(view)
    rates, known = measure_funding(columns)
    return float(rates[0, -1]) if columns.days.size and known[0, -1] >= LEAST_KNOWN else None


def _find_held(book: TradingBook, symbol: Symbol) -> Decimal:
    trade = book.position(symbol.venue, symbol, LP_HEDGE)
    return Decimal(0) if trade is None else trade.signed
