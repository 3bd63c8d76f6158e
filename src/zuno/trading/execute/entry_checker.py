"""Whether a ruling may open something now: the market's own price, the protections and the mandate."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.intents import ExchangeState, RulingToExecute, build_open_intent
from zuno.trading.execute.protection_checker import ProtectionChecker
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import ZERO
from zuno.trading.model.trade_events import IntentKind, LevelsSet, TradeEvent, TradeIntent
from zuno.trading.rules.book_state import TrackedIntent
from zuno.trading.rules.execution_styles import MAX_DRIFT_ATR
from zuno.trading.rules.protections import LiveEntry, describe_lock, find_mandate_refusal, find_refusal


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
                await self._state.worker.quote(exchange, order.symbol),
                await self._state.worker.fresh_filters(exchange, order.symbol),
            )
            for exchange in exchanges
        }
        dollars = await self._state.worker.dollar_mark(order.symbol)
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
                events.append(
                    LevelsSet(
                        at=self._state.event_time(),
                        exchange=leg.exchange,
                        symbol=intent.symbol,
                        stop=leg.stop,
                        target=held.target,
                        hold_until=held.hold_until,
                        by="ruling",
                        trade=held.id,
                    )
                )
        return events

    async def _live_entry(
        self, order: RulingToExecute, intent: TradeIntent, places: Mapping[Exchange, ExchangeState]
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
        waiting = [
            tracked for tracked in self._state.book.open_intents.values() if tracked.intent.kind is IntentKind.OPEN
        ]
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


def is_tighter(level: Decimal, than: Decimal, side: Side) -> bool:
    """Whether a stop is nearer to the market than another; of targets the other way round."""
    return level > than if side is Side.LONG else level < than
