"""The protections of an account judged: what is lost, what is open, how old prices are, and which locks follow."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Millis
from zuno.trading.execute.gate_state import GateState
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Symbol
from zuno.trading.model.orders import ZERO, VenueQuote
from zuno.trading.model.trade_events import IntentKind, LockSet, Protection, TradeEvent
from zuno.trading.rules.protections import (
    STORED,
    RiskState,
    active_locks,
    add_kill,
    sum_results_usd,
    triggered_protections,
)

JUDGE_EVERY_MS: Final = 5 * MINUTE_MS
"""How often protections are judged while nothing happens to the account; an entry judges them anew."""


class ProtectionChecker:
    """Says what keeps new risk back, and writes down what outlasts its cause."""

    def __init__(self, state: GateState) -> None:
        self._state = state
        self._judged = (0, Millis(0))
        """Events there were when protections were judged last, and when that was."""

    async def find_locks(self, symbol: Symbol | None = None) -> tuple[LockSet, ...]:
        """`symbol`: which one new risk is asked for; its price must be fresh, and being open it may be topped up."""
        locks = active_locks(await self.read_risk_state(symbol), self._state.context.limits)
        locks = add_kill(locks, self._state.context.killed(), self._state.now())
        if symbol is not None and symbol in self._open_symbols():
            locks = tuple(lock for lock in locks if lock.protection is not Protection.MAX_OPEN_TRADES)
        return locks

    async def store_hit_protections(self) -> None:
        """Those that outlast what set them off are written down."""
        if not self._state.book.positions and not self._state.book.closed:
            return
        if self._state.book.count == self._judged[0] and self._state.now() - self._judged[1] < JUDGE_EVERY_MS:
            return
        self._judged = (self._state.book.count, self._state.now())
        events: list[TradeEvent] = []
        state = await self.read_risk_state(None)
        for lock in triggered_protections(state, self._state.context.limits):
            known = self._state.book.locks.get((lock.protection, lock.symbol))
            over = known is None or (known.until is not None and known.until <= lock.at)
            if lock.protection in STORED and lock.until is not None and over:
                events.append(lock.model_copy(update={"at": self._state.event_time()}))
        await self._state.write(events)
        await self._end_spent_entries(state)

    async def _end_spent_entries(self, state: RiskState) -> None:
        """What waits of an entry is risk that a mandate allows no more once its daily loss is reached."""
        granted = self._state.book.mandate
        waiting = any(tracked.intent.kind is IntentKind.OPEN for tracked in self._state.book.open_intents.values())
        if not self._state.context.live or granted is None or not waiting:
            return
        lost, most = self.sum_lost_today(state), granted.mandate.max_daily_loss_usd
        if not isinstance(lost, Missing) and lost >= most:
            await self._state.worker.end_entries(f"${lost:,.2f} are lost today; the mandate allows ${most:,.2f}")
            await self._state.worker.advance()

    def sum_lost_today(self, state: RiskState) -> Known[Decimal]:
        """Net, since midnight UTC, with what open positions have lost; below zero is a gain."""
        realised = sum_results_usd(self._state.book.results, Millis(state.now // DAY_MS * DAY_MS), state.krw_rate)
        if isinstance(realised, Missing):
            return realised
        if isinstance(state.unrealised_usd, Missing):
            return state.unrealised_usd
        return -realised - min(ZERO, state.unrealised_usd)

    async def read_risk_state(self, symbol: Symbol | None) -> RiskState:
        book = self._state.book
        wanted = dict.fromkeys((*([] if symbol is None else [symbol]), *(t.symbol for t in book.trades.values())))
        quotes: dict[tuple[Exchange, Symbol], Known[VenueQuote]] = {}
        first = next(iter(self._state.venues), Exchange.BINANCE)
        for held in wanted:
            for exchange in self._state.venues:
                if exchange is first or book.trades_at(exchange):
                    quotes[exchange, held] = await self.known_quote(exchange, held)
        krw_rate = await self._read_krw_rate(quotes)
        equity, unrealised = self._equity_usd(quotes, krw_rate)
        return RiskState(
            now=self._state.now(),
            open_symbols=self._open_symbols(),
            closed=book.closed,
            results=book.results,
            equity_usd=equity,
            unrealised_usd=unrealised,
            krw_rate=krw_rate,
            price_times={}
            if symbol is None
            else {symbol: _time_of(quotes.get((first, symbol), Missing("no exchange is there")))},
            locks=tuple(book.locks.values()),
            lifted=book.lifted,
        )

    async def known_quote(self, exchange: Exchange, symbol: Symbol) -> Known[VenueQuote]:
        try:
            return await self._state.worker.quote(exchange, symbol)
        except ZunoError as error:
            return Missing(str(error).rstrip("."))

    async def _read_krw_rate(self, quotes: Mapping[tuple[Exchange, Symbol], Known[VenueQuote]]) -> Known[Decimal]:
        """KRW for one dollar: what the same coin costs in both."""
        if Exchange.UPBIT not in self._state.venues:
            return Missing(f"{Exchange.UPBIT} is not there")
        symbol = next((symbol for _, symbol in quotes), Symbol.BTCUSDT)
        pair = [
            quotes.get((exchange, symbol)) or await self.known_quote(exchange, symbol)
            for exchange in (Exchange.UPBIT, Exchange.BINANCE)
        ]
        for quote in pair:
            if isinstance(quote, Missing):
                return quote
        upbit, binance = pair
        assert isinstance(upbit, VenueQuote)
        assert isinstance(binance, VenueQuote)
        return upbit.mark / binance.mark

    def _equity_usd(
        self, quotes: Mapping[tuple[Exchange, Symbol], Known[VenueQuote]], krw_rate: Known[Decimal]
    ) -> tuple[Known[Decimal], Known[Decimal]]:
        """Equity and unrealised PnL in dollars. Without the won, what is at Upbit counts nothing unless it is held."""
        equity = unrealised = ZERO
        for exchange in Exchange:
            trades = self._state.book.trades_at(exchange)
            marks: dict[Symbol, Decimal] = {}
            for trade in trades:
                quote = quotes.get((exchange, trade.symbol), Missing(f"{exchange} is not there"))
                if isinstance(quote, Missing):
                    return quote, quote
                marks[trade.symbol] = quote.mark
            rate = Decimal(1) if exchange is Exchange.BINANCE else krw_rate
            if isinstance(rate, Missing):
                if trades:
                    return rate, rate
                continue
            equity += self._state.book.equity(exchange, marks) / rate
            unrealised += sum((trade.unrealised_pnl(marks[trade.symbol]) for trade in trades), ZERO) / rate
        return equity, unrealised

    def _open_symbols(self) -> frozenset[Symbol]:
        book = self._state.book
        held = {trade.symbol for trade in book.trades.values()}
        opening = {
            tracked.intent.symbol for tracked in book.open_intents.values() if tracked.intent.kind is IntentKind.OPEN
        }
        return frozenset(held | opening)


def _time_of(quote: Known[VenueQuote]) -> Known[Millis]:
    return quote if isinstance(quote, Missing) else quote.at
