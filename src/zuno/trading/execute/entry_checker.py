"""Whether a ruling may open something now: the market's own price, the protections and the mandate."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal

from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.intents import ExchangeState, RulingToExecute, build_open_intent
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.model.known import Known, Missing, pick
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Side
from zuno.trading.model.orders import ZERO, VenueQuote
from zuno.trading.model.trade_events import IntentKind, LevelsSet, LockSet, Protection, TradeEvent, TradeIntent
from zuno.trading.rules.book_state import OpenTrade, TrackedIntent
from zuno.trading.rules.execution_styles import MAX_DRIFT_ATR
from zuno.trading.rules.protections import (
    STORED,
    LiveEntry,
    RiskState,
    active_locks,
    add_kill,
    describe_lock,
    find_mandate_refusal,
    find_refusal,
    sum_results_usd,
    triggered_protections,
)

JUDGE_EVERY_MS: Final = 5 * MINUTE_MS
"""How often protections are judged while nothing happens to the account; an entry judges them anew."""


class ProtectionChecker:
    """Says what keeps new risk back, and writes down what outlasts its cause."""

    def __init__(self, state: GateState, worker: OrderWorker) -> None:
        self._state = state
        self._worker = worker
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
        if not self._state.context.live or granted is None or not self._state.open_entries():
            return
        lost, most = self.sum_lost_today(state), granted.mandate.max_daily_loss_usd
        if not isinstance(lost, Missing) and lost >= most:
            await self._worker.end_entries(f"${lost:,.2f} are lost today; the mandate allows ${most:,.2f}")
            await self._worker.advance()

    def sum_lost_today(self, state: RiskState) -> Known[Decimal]:
        """Net, since midnight UTC, with what open positions have lost; below zero is a gain."""
        realised = sum_results_usd(self._state.book.results, Millis(state.now // DAY_MS * DAY_MS), state.rates)
        if isinstance(realised, Missing):
            return realised
        if isinstance(state.unrealised_usd, Missing):
            return state.unrealised_usd
        return -realised - min(ZERO, state.unrealised_usd)

    async def read_risk_state(self, symbol: Symbol | None) -> RiskState:
        book = self._state.book
        wanted = dict.fromkeys((*([] if symbol is None else [symbol]), *(t.symbol for t in book.trades.values())))
        quotes: dict[tuple[Venue, Symbol], Known[VenueQuote]] = {}
        first = next(iter(self._state.venues), Venue("BINANCE"))
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
            rates={"USD": Decimal(1), "KRW": krw_rate},
            price_times={}
            if symbol is None
            else {symbol: _time_of(quotes.get((first, symbol), Missing("no exchange is there")))},
            locks=tuple(book.locks.values()),
            lifted=book.lifted,
        )

    async def known_quote(self, exchange: Venue, symbol: Symbol) -> Known[VenueQuote]:
        try:
            return await self._state.quote(exchange, symbol)
        except ZunoError as error:
            return Missing(str(error).rstrip("."))

    async def _read_krw_rate(self, quotes: Mapping[tuple[Venue, Symbol], Known[VenueQuote]]) -> Known[Decimal]:
        """KRW for one dollar: what the same coin costs in both."""
        if Venue("UPBIT") not in self._state.venues:
            return Missing(f"{Venue('UPBIT')} is not there")
        symbol = next((symbol for _, symbol in quotes), Symbol("BTCUSDT"))
        pair = [
            quotes.get((exchange, symbol)) or await self.known_quote(exchange, symbol)
            for exchange in (Venue("UPBIT"), Venue("BINANCE"))
        ]
        for quote in pair:
            if isinstance(quote, Missing):
                return quote
        upbit, binance = pair
        assert isinstance(upbit, VenueQuote)
        assert isinstance(binance, VenueQuote)
        return upbit.mark / binance.mark

    def _equity_usd(
        self, quotes: Mapping[tuple[Venue, Symbol], Known[VenueQuote]], krw_rate: Known[Decimal]
    ) -> tuple[Known[Decimal], Known[Decimal]]:
        """Equity and unrealised PnL in dollars. Without the won, what is at Upbit counts nothing unless it is held."""
        equity = unrealised = ZERO
        for exchange in DEFAULT_VENUES:
            trades = self._state.book.trades_at(exchange)
            marks: dict[Symbol, Decimal] = {}
            for trade in trades:
                quote = quotes.get((exchange, trade.symbol), Missing(f"{exchange} is not there"))
                if isinstance(quote, Missing):
                    return quote, quote
                marks[trade.symbol] = quote.mark
            rate = Decimal(1) if exchange is Venue("BINANCE") else krw_rate
            if isinstance(rate, Missing):
                if trades:
                    return rate, rate
                continue
            equity += self._state.book.equity(exchange, marks) / rate
            unrealised += sum((trade.unrealised_pnl(marks[trade.symbol]) for trade in trades), ZERO) / rate
        return equity, unrealised

    def _open_symbols(self) -> frozenset[Symbol]:
        held = {trade.symbol for trade in self._state.book.trades.values()}
        return frozenset(held | {tracked.intent.symbol for tracked in self._state.open_entries()})


def _time_of(quote: Known[VenueQuote]) -> Known[Millis]:
    return quote if isinstance(quote, Missing) else quote.at


class EntryRefused(Exception):
    """Why an entry may not be."""


class EntryChecker:
    """Turns a ruling into the intent of an entry, or says why not. It sends nothing."""

    def __init__(self, state: GateState, protections: ProtectionChecker) -> None:
        self._state = state
        self._protections = protections

    async def prepare(self, order: RulingToExecute, side: Side) -> tuple[TradeIntent, list[TradeEvent]]:
        """The intent of an entry that may be, and what is written with it. Raises what keeps it back."""
        if not self._state.context.entries:
            raise EntryRefused(self._state.context.why_no_entries)
        book, exchanges = self._state.book, tuple(leg.venue for leg in order.ruling.legs)
        places = {
            exchange: ExchangeState(
                await self._state.quote(exchange, order.symbol), await self._state.fresh_filters(exchange, order.symbol)
            )
            for exchange in exchanges
        }
        dollars = await self._state.dollar_mark(order.symbol)
        _check_drift(order, dollars)
        lock = find_refusal(order.symbol, await self._protections.find_locks(order.symbol))
        if lock is not None:
            raise EntryRefused(describe_lock(lock))
        mandate = book.active_mandate(self._state.now()) if self._state.context.live else None
        built = build_open_intent(self._state.account, order, places, mandate, dollars)
        if isinstance(built, str):
            raise EntryRefused(built)
        if self._state.context.live:
            entry = await self._live_entry(order, built, places)
            if (why := find_mandate_refusal(mandate, entry, self._state.now())) is not None:
                raise EntryRefused(why)
        return built, self._tighten_stops(built, side)

    def _tighten_stops(self, intent: TradeIntent, side: Side) -> list[TradeEvent]:
        """A top-up may bring the stop of what is held nearer, never further."""
        events: list[TradeEvent] = []
        for leg in intent.legs:
            held = self._state.book.positions.get((leg.exchange, intent.symbol))
            if held is not None and (held.stop is None or is_tighter(leg.stop, held.stop, side)):
                events.append(set_levels(held, self._state.event_time(), leg.stop, held.target, "ruling"))
        return events

    async def _live_entry(
        self, order: RulingToExecute, intent: TradeIntent, places: Mapping[Venue, ExchangeState]
    ) -> LiveEntry:
        assert order.mark is not None
        midnight = self._state.now() // DAY_MS * DAY_MS

        def margin_usd(of: TradeIntent, mark: Decimal) -> Decimal:
            return sum((leg.quantity * mark / leg.leverage for leg in of.legs), ZERO)

        def used_today(tracked: TrackedIntent) -> Decimal:
            """What has ended without being filled gives its margin back."""
            whole = margin_usd(tracked.intent, tracked.intent.mark)
            waiting = (self._state.book.open_orders.get(id) for id in tracked.orders)
            if tracked.state == "open" or any(order is not None and order.purpose == "entry" for order in waiting):
                return whole
            return whole - self._unfilled_margin(tracked, tracked.intent.mark)

        today = [
            used_today(tracked)
            for tracked in self._state.book.intents.values()
            if tracked.stored >= midnight and tracked.intent.kind is IntentKind.OPEN
        ]
        waiting = self._state.open_entries()
        state = await self._protections.read_risk_state(order.symbol)
        lost = self._protections.sum_lost_today(state)
        if isinstance(lost, Missing):
            raise EntryRefused(f"what was lost today is not known: {lost.reason}")
        held = sum(
            (
                trade.quantity * order.mark / trade.leverage
                for trade in self._state.book.positions.values()
                if trade.symbol is order.symbol
            ),
            ZERO,
        )
        pending = sum(
            (
                self._unfilled_margin(tracked, order.mark)
                for tracked in waiting
                if tracked.intent.symbol is order.symbol
            ),
            ZERO,
        )
        earlier = sum(
            (self._unfilled_margin(tracked, tracked.intent.mark) for tracked in waiting if tracked.stored < midnight),
            ZERO,
        )
        return LiveEntry(
            symbol=order.symbol,
            exchanges=tuple(leg.exchange for leg in intent.legs),
            margin_usd=margin_usd(intent, order.mark),
            margin_held_usd=held + pending,
            margin_today_usd=sum(today, earlier),
            lost_today_usd=lost,
            without_stops=tuple(leg.exchange for leg in intent.legs if not places[leg.exchange].filters.holds_stops),
            judge_failed=order.judge_failed,
        )

    def _unfilled_margin(self, tracked: TrackedIntent, mark: Decimal) -> Decimal:
        """In dollars, of what is still to be filled of an entry, ordered or not."""
        margin = ZERO
        for leg in tracked.intent.legs:
            orders = (self._state.book.orders[id] for id in tracked.orders)
            entered = (o.booked for o in orders if o.purpose == "entry" and o.request.exchange is leg.exchange)
            margin += max(ZERO, leg.quantity - sum(entered, ZERO)) * mark / leg.leverage
        return margin


def _check_drift(order: RulingToExecute, mark: Decimal | None) -> None:
    if order.mark is None or order.atr is None or mark is None:
        return
    if abs(mark - order.mark) > MAX_DRIFT_ATR * order.atr:
        raise EntryRefused(f"the mark moved from {order.mark} to {mark}, more than {MAX_DRIFT_ATR} ATR(1h)")


def set_levels(
    trade: OpenTrade, at: Millis, stop: Decimal | None, target: Decimal | None, by: Literal["ruling", "owner"]
) -> LevelsSet:
    kept = pick(trade, "exchange", "symbol", "hold_until")
    return LevelsSet(at=at, stop=stop, target=target, by=by, trade=trade.id, **kept)


def is_tighter(level: Decimal, than: Decimal, side: Side) -> bool:
    """Whether a stop is nearer to the market than another; of targets the other way round."""
    return level > than if side is Side.LONG else level < than
