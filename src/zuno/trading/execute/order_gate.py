"""The one door to orders: a ruling or a person asks, rules say whether it may be, and the worker carries it out.

Whatever was asked before is found again and not done twice. Exits always pass; new risk passes protections, the mandate
and the market's own price.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, wraps
from itertools import takewhile
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import ConcurrentWrite
from zuno.trading.execute.entry_checker import EntryChecker, EntryRefused, ProtectionChecker, is_tighter, set_levels
from zuno.trading.execute.gate_state import GateContext, GateState
from zuno.trading.execute.intents import RulingToExecute, intent_id
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.execute.reconcile import VenueComparison
from zuno.trading.execute.unlogged import close_unlogged
from zuno.trading.model.account import OrderCancelled, PositionClosed
from zuno.trading.model.cycle import Call, Style
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Side
from zuno.trading.model.orders import ZERO, OrderStatus, VenueQuote
from zuno.trading.model.trade_events import (
    Adopted,
    ClockSet,
    ExitReason,
    IntentKind,
    IntentStored,
    LockLifted,
    LockSet,
    Mandate,
    MandateGranted,
    MandateRevoked,
    ManualChange,
    Protection,
    TradeEvent,
)
from zuno.trading.rules.book_state import OpenTrade, TrackedIntent, TrackedOrder
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.execution_styles import round_to_step
from zuno.trading.rules.protections import check_grant, hash_mandate
from zuno.trading.rules.trading_book import TradingBook

P = ParamSpec("P")
T = TypeVar("T")
MAX_TRIES: Final = 8
"""Times an act is begun anew because somebody else wrote to the account."""
_EXIT_RULES: Final = {
    RuleName.STOP_PASSED.value: ExitReason.STOP,
    RuleName.TARGET_PASSED.value: ExitReason.TARGET,
    RuleName.HOLD_OVER.value: ExitReason.HOLD_OVER,
}

ExecutionState = Literal["held", "refused", "working", "open", "closing", "closed", "ended"]


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    state: ExecutionState
    """`held`: there was nothing to do. `working`: orders wait. `open`: filled and protected. `ended`: the entry came to
    nothing, or to a part."""
    reason: str = ""
    intent: str | None = None


class CloseRequests:
    """Closes by trade, by symbol, or everything; positions that a person wrote down, too."""

    def __init__(self, state: GateState, worker: OrderWorker) -> None:
        self._state = state
        self._worker = worker

    async def close(self, which: Symbol | str | None, reason: ExitReason, request: str) -> tuple[str, ...]:
        book = self._state.book
        if isinstance(which, str) and not isinstance(which, Symbol):
            trade = book.trades.get(which)
            if trade is None:
                if any(summary.trade == which for summary in book.closed):
                    raise Refused(f"{which} is closed already; `zuno trade trades` lists closed trades.")
                raise NotFound(f"No trade {which} is open; `zuno trade positions` lists those that are.")
            if trade.manual:
                return await self.close_manual(trade.symbol, trade.id)
        symbols, done = self._list_symbols(which), list[str]()
        for symbol in symbols:
            stored = await self._worker.store_close(symbol, reason, request)
            done += [] if stored is None else [stored]
        await self._worker.advance()
        # Last, for they need a price: nothing at an exchange waits for it. A trade of the desk by its id ends no other.
        for symbol in symbols if which is None or isinstance(which, Symbol) else ():
            done += await self.close_manual(symbol)
        return tuple(done)

    async def close_though_unlogged(
        self, act: Callable[[], Awaitable[tuple[str, ...]]], reason: ExitReason, which: Symbol | str | None
    ) -> tuple[str, ...]:
        """What the exchanges hold does not wait for room on a disk."""
        self._state.writer.failure = None
        try:
            done = await act()
        except ZunoError:
            if self._state.writer.failure is None:
                raise
            done = ()
        if (failure := self._state.writer.failure) is None:
            return done
        killed = reason is ExitReason.KILL_SWITCH
        locked = self._state.has_written_lock(Protection.KILL_SWITCH)
        said = [
            what
            for venue in self._state.venues.values()
            for symbol in self._list_symbols(which)
            for what in await close_unlogged(
                self._state.book, self._state.account, venue, symbol, unlocked_kill=killed and not locked
            )
        ]
        sent = f"Sent all the same: {'; '.join(said)}." if said else "Nothing was left to send."
        unsaid = "neither recorded nor locked" if killed and not locked else "not recorded"
        raise Unavailable(f"{failure} {sent} It is {unsaid}; repeat this once it can be written.") from failure

    def _list_symbols(self, which: Symbol | str | None) -> list[Symbol]:
        """What the desk traded of a close: of a trade that a person wrote down nothing is at an exchange."""
        if which is None or isinstance(which, Symbol):
            return list(DEFAULT_SYMBOLS) if which is None else [which]
        trade = self._state.book.trades.get(which)
        return [] if trade is None or trade.manual else [trade.symbol]

    async def close_manual(self, symbol: Symbol, id: str | None = None) -> tuple[str, ...]:
        """Positions and orders that a person wrote down end at the market's price."""
        book, at = self._state.book, self._state.event_time()
        changes: list[PositionClosed | OrderCancelled] = []
        for trade in book.trades.values():
            if trade.manual and trade.symbol is symbol and id in (None, trade.id):
                quote = await self._state.quote(trade.exchange, symbol)
                price = quote.bid if trade.side is Side.LONG else quote.ask
                fee = trade.quantity * price * self._state.context.manual_fees_pct[trade.exchange] / 100
                changes.append(PositionClosed(at=at, id=trade.id, price=float(price), fee=float(fee)))
        if id is None:
            resting = (order for order in book.resting.values() if order.symbol is symbol)
            changes += [OrderCancelled(at=at, id=order.id) for order in resting]
        await self._state.write([ManualChange(at=at, change=change) for change in changes])
        return tuple(change.id for change in changes)


def _exclusive(
    act: Callable[Concatenate[OrderGate, P], Awaitable[T]], *, unread: bool = False
) -> Callable[Concatenate[OrderGate, P], Coroutine[Any, Any, T]]:
    """One act of a gate at a time, begun anew where somebody else wrote meanwhile. It is carried to its end though
    whoever asked is cancelled: an order whose reply nobody waits for is one that nobody knows of. `unread`: on the book
    as it was known, where the log cannot be read."""

    @wraps(act)
    async def call(gate: OrderGate, /, *args: P.args, **kwargs: P.kwargs) -> T:
        task = asyncio.ensure_future(gate._try_act(lambda: act(gate, *args, **kwargs), unread))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    return call


_exclusive_unread: Final = partial(_exclusive, unread=True)


class OrderGate:
    """Acts for one account. Calls wait for each other; another process may act for the same account beside it."""

    def __init__(self, context: GateContext) -> None:
        self._state = state = GateState(context)
        self._worker = worker = OrderWorker(state)
        self._protections = ProtectionChecker(state, worker)
        self._comparison = VenueComparison(state, worker)
        self._entries = EntryChecker(state, self._protections)
        self._closes = CloseRequests(state, worker)
        self._lock = asyncio.Lock()

    @property
    def account(self) -> str:
        return self._state.account

    @property
    def live(self) -> bool:
        return self._state.context.live

    @property
    def book(self) -> TradingBook:
        """As it was when it was looked at last."""
        return self._state.book

    @property
    def troubles(self) -> Mapping[Venue, str]:
        """Exchanges that did not answer the last time."""
        return self._worker.troubles

    async def refresh(self) -> TradingBook:
        async with self._lock:
            return await self._state.writer.refresh()

    @_exclusive
    async def advance(self) -> TradingBook:
        """Take the venues' news and go on with everything that is open: the protective watch, and every start."""
        await self._worker.advance()
        await self._comparison.compare_if_due()
        await self._protections.store_hit_protections()
        return self._state.book

    @_exclusive_unread
    async def close(
        self, which: Symbol | str | None, reason: ExitReason = ExitReason.OWNER, request: str = "owner"
    ) -> tuple[str, ...]:
        """Close a trade by its id, everything of a symbol, or everything. Entries that wait there are cancelled. It is
        done though the log cannot be written, which is `Unavailable` then."""
        return await self._closes.close_though_unlogged(
            lambda: self._closes.close(which, reason, request), reason, which
        )

    async def end_entries(self, reason: str) -> tuple[str, ...]:
        """Cancel entries that wait and end their intents, as a process does that goes away: nothing may be filled that
        nobody would protect. Stops and targets stay. The orders that could not be cancelled."""
        waiting = list(filter(_is_entry, self._state.book.open_orders.values()))
        try:
            return await self._end_entries(reason)
        except ZunoError:
            # The log cannot be written. The exchange is told all the same; the next start finds what became of them.
            for request in (order.request for order in waiting):
                with suppress(ZunoError):
                    await self._state.venues[request.exchange].cancel(request.symbol, request.client_id, request.type)
            raise

    @_exclusive
    async def pause(self, reason: str = "paused by the owner") -> LockSet:
        """No new risk until `resume`: entries that wait are cancelled, open trades go on."""
        lock = await self._state.set_lock(Protection.PAUSED, reason)
        await self._stop_entries()
        return lock

    @_exclusive
    async def resume(self) -> bool:
        return await self._state.lift(Protection.PAUSED, None, "resumed by the owner")

    @_exclusive_unread
    async def kill(self, reason: str = "kill switch") -> tuple[str, ...]:
        """Cancel everything, close everything, and lock until `unlock`. `Unavailable` where the log cannot be written:
        cancelled and closed all the same, but not locked."""

        async def act() -> tuple[str, ...]:
            await self._state.set_lock(Protection.KILL_SWITCH, reason)
            return await self._closes.close(None, ExitReason.KILL_SWITCH, "kill")

        return await self._closes.close_though_unlogged(act, ExitReason.KILL_SWITCH, None)

    @_exclusive
    async def unlock(self, protection: Protection | None = None, symbol: Symbol | None = None) -> tuple[LockSet, ...]:
        """Lift one protection, or all; the ones that stood. What set them off counts no more."""
        standing = await self._protections.find_locks()
        lifted = [lock for lock in standing if protection is None or lock.protection is protection]
        lifted = [lock for lock in lifted if symbol is None or lock.symbol in (None, symbol)]
        for lock in lifted:
            await self._state.lift(lock.protection, lock.symbol, "lifted by the owner")
        return tuple(lifted)

    @_exclusive
    async def locks(self) -> tuple[LockSet, ...]:
        """Everything that keeps new risk back now, with reason and end."""
        return await self._protections.find_locks()

    @_exclusive
    async def set_clock(self, *, recorded: bool) -> None:
        """Write which clock the account goes by, and that it has come to this clock's moment. Nothing is written where
        the log says both."""
        at, book = self._state.event_time(), self._state.book
        if book.recorded is not recorded or (recorded and book.newest < at):
            await self._state.write([ClockSet(at=at, recorded=recorded)])

    @_exclusive
    async def grant_mandate(self, mandate: Mandate) -> MandateGranted:
        check_grant(mandate, self._state.now())
        granted = MandateGranted(at=self._state.event_time(), mandate=mandate, hash=hash_mandate(mandate))
        await self._state.write([granted])
        return granted

    @_exclusive
    async def revoke_mandate(self) -> MandateGranted:
        granted = self._state.book.mandate
        if granted is None:
            raise Refused("No mandate stands.")
        await self._state.write([MandateRevoked(at=self._state.event_time(), hash=granted.hash)])
        await self._stop_entries()
        return granted

    @_exclusive
    async def reconcile(self) -> tuple[str, ...]:
        """Hold the book against every venue: each difference is adopted, cancelled, or stops the desk. What was done is
        said."""
        await self._worker.advance(settle=True, entries=False)
        said = await self._comparison.compare(tuple(self._state.venues))
        await self._worker.advance()
        return tuple(said)

    @_exclusive
    async def find_cash_differences(self) -> dict[Venue, Decimal]:
        """By how much each exchange's balance is above the book's, where it is not the same. `Refused` where positions
        differ too."""
        return await self._comparison.find_cash_differences()

    @_exclusive
    async def adopt_cash(self, shown: Mapping[Venue, Decimal]) -> None:
        """Take over what the owner paid in or out: exactly what was shown, else `Refused`. The lock that it set off is
        lifted."""
        found = await self._comparison.find_cash_differences()
        if found != dict(shown):
            raise Refused("The difference is another one by now; look at it again. Nothing was adopted.")
        what = "adopted by the owner: a deposit or a withdrawal"
        events: list[TradeEvent] = [
            Adopted(at=self._state.event_time(), exchange=exchange, what=what, cash=cash)
            for exchange, cash in found.items()
        ]
        if (Protection.RECONCILIATION, None) in self._state.book.locks:
            reason = "the owner adopted the difference"
            lifted = LockLifted(
                at=self._state.event_time(), protection=Protection.RECONCILIATION, symbol=None, reason=reason
            )
            events.append(lifted)
        await self._state.write(events)

    def now(self) -> Millis:
        """By the clock of this account's market."""
        return self._state.now()

    @_exclusive
    async def marks(self) -> dict[tuple[Venue, Symbol], Decimal]:
        """The market's price of everything that is open, where it is known."""
        found: dict[tuple[Venue, Symbol], Decimal] = {}
        for trade in self._state.book.trades.values():
            quote = await self._protections.known_quote(trade.exchange, trade.symbol)
            if not isinstance(quote, Missing):
                found[trade.exchange, trade.symbol] = quote.mark
        return found

    def next_due(self) -> Millis | None:
        """When something is due that no venue does by itself: an order's end, the end of a hold."""
        book = self._state.book
        times = [order.expires for order in book.open_orders.values()]
        times += [trade.hold_until for trade in book.positions.values()]
        known = [at for at in times if at is not None]
        return min(known, default=None)

    @property
    def needs_watch(self) -> bool:
        """Whether the next tick may find something to do: entries that wait, or levels that no venue holds."""
        book = self._state.book
        stops = {
            (order.request.exchange, order.request.symbol)
            for order in book.open_orders.values()
            if order.purpose == "stop"
        }
        return bool(book.open_intents) or any(place not in stops for place in book.positions)

    # -- acts

    @_exclusive
    async def _end_entries(self, reason: str) -> tuple[str, ...]:
        await self._worker.end_entries(reason)
        await self._worker.advance()
        return tuple(id for id, order in self._state.book.open_orders.items() if _is_entry(order))

    async def _try_act(self, act: Callable[[], Awaitable[T]], unread: bool) -> T:
        async with self._lock:
            for _ in range(MAX_TRIES):
                try:
                    await self._state.writer.refresh()
                except Unavailable:
                    if not unread or not self._state.book.count:
                        raise
                try:
                    return await act()
                except ConcurrentWrite:
                    continue
        raise Unavailable(f"Account {self._state.account} is written to by others again and again; try once more.")

    @_exclusive
    async def execute(self, order: RulingToExecute) -> ExecutionResult:
        """Act on a ruling. The same decision again is the same intent, whatever became of it since."""
        call = order.ruling.decision
        id = intent_id(self._state.account, order)
        if id in self._state.book.intents:
            await self._worker.advance()
            return self._describe_intent(id)
        if call is Call.HOLD:
            return ExecutionResult("held", "the ruling is HOLD")
        await self._worker.advance()
        side = call.side
        if side is None:
            return await self._execute_close(order, id)
        if self._state.now() > order.valid_until:
            return ExecutionResult("refused", "the ruling has expired")
        if self._has_opposite(order.symbol, side):
            # The other side may begin next cycle: under this decision's own id, so that it opens nothing later.
            return await self._execute_close(order, id)
        if self._ended_opposite(order, side):
            return ExecutionResult("closed", f"the other side was closed since; {side} may begin next cycle")
        try:
            intent, events = await self._entries.prepare(order, side)
        except EntryRefused as error:
            return ExecutionResult("refused", str(error))
        except Unavailable as error:
            return ExecutionResult("refused", f"the exchange did not answer: {error}")
        stored = IntentStored(at=self._state.event_time(), intent=intent, ruling=order.ruling)
        await self._state.write([stored, *events])
        await self._worker.advance()
        return self._describe_intent(id)

    async def _execute_close(self, order: RulingToExecute, id: str | None) -> ExecutionResult:
        reason = next(
            (_EXIT_RULES[change.by] for change in order.ruling.changes if change.by in _EXIT_RULES), ExitReason.DECISION
        )
        stored = await self._worker.store_close(order.symbol, reason, order.run_id, id, order.ruling)
        await self._worker.advance()
        try:
            manual = await self._closes.close_manual(order.symbol)
        except Unavailable as error:
            return ExecutionResult("closing", f"what was written down by hand is not closed: {error}", stored)
        if stored is None:
            return ExecutionResult("closed" if manual else "held", "; ".join(manual) or "nothing is held or ordered")
        return self._describe_intent(stored)

    @_exclusive
    async def cancel(self, client_id: str) -> str:
        """Cancel an order that waits to be filled. `Refused` for a protective order: it goes with its position."""
        order = self._state.book.orders.get(client_id)
        if order is None:
            raise NotFound(f"No order {client_id}; `zuno trade orders` lists them.")
        if order.status.final:
            raise Refused(f"The order {client_id} is {order.status} already.")
        if order.purpose != "entry":
            raise Refused(f"The order {client_id} protects or closes a position; `zuno trade set` moves its level.")
        tracked = self._state.book.open_intents.get(order.intent)
        if tracked is None or tracked.intent.style is Style.SMART_DCA:
            await self._worker.cancel_order(order)
        else:
            # Or the next one would be placed in its stead. Written first: another process may be working it.
            await self._worker.end_entries("cancelled by the owner", order.intent)
        await self._worker.advance()
        if not self._state.book.orders[client_id].status.final:
            why = "; ".join(self._worker.troubles.values()) or "it is on its way from another process"
            raise Unavailable(f"The order {client_id} is not cancelled yet: {why}")
        return client_id

    @_exclusive
    async def set_levels(
        self, trade_id: str, stop: Decimal | None, target: Decimal | None, *, confirmed: bool = False
    ) -> OpenTrade:
        """Move stop or target of an open trade; None leaves one as it is. Tightening is done at once; `Refused` for
        loosening that is not confirmed, and for a level on the wrong side of the market."""
        trade = self._state.book.trades.get(trade_id)
        if trade is None:
            raise NotFound(f"No trade {trade_id} is open; `zuno trade positions` lists those that are.")
        if trade.manual and (trade.exchange, trade.symbol) in self._state.book.positions:
            raise Refused(
                f"The desk holds {trade.symbol} at {trade.exchange} beside {trade_id}, and the levels there are the "
                "desk's; close one of them first."
            )
        quote = await self._state.quote(trade.exchange, trade.symbol)
        tick = (await self._state.filters(trade.exchange, trade.symbol)).tick
        stop = trade.stop if stop is None else round_to_step(stop, tick)
        target = trade.target if target is None else round_to_step(target, tick)
        _check_sides(trade, stop, target, quote)
        loosens = (trade.stop is not None and stop is not None and is_tighter(trade.stop, stop, trade.side)) or (
            trade.target is not None and target is not None and is_tighter(target, trade.target, trade.side)
        )
        if loosens and not confirmed:
            raise Refused(
                f"This loosens the levels of {trade_id} (stop {trade.stop} → {stop}, target {trade.target} → "
                f"{target}); confirm it with --yes."
            )
        await self._state.write([set_levels(trade, self._state.event_time(), stop, target, "owner")])
        await self._worker.advance()
        return trade

    async def _stop_entries(self) -> None:
        """Those that may not go on are cancelled now, whether or not a desk runs."""
        if self._state.open_entries() or any(map(_is_entry, self._state.book.open_orders.values())):
            await self._worker.advance()

    # -- parts

    def _has_opposite(self, symbol: Symbol, side: Side) -> bool:
        held = self._state.book.side_of(symbol)
        if held is not None and held is not side:
            return True
        return any(tracked.intent.side is not side for tracked in self._state.open_entries(symbol))

    def _ended_opposite(self, order: RulingToExecute, side: Side) -> bool:
        """Whether a trade of the other side ended since the decision's moment."""
        since = takewhile(lambda summary: summary.closed >= order.as_of, reversed(self._state.book.closed))
        return any(summary.symbol is order.symbol and summary.side is not side for summary in since)

    def _describe_intent(self, id: str) -> ExecutionResult:
        tracked = self._state.book.intents[id]
        if tracked.intent.kind is IntentKind.CLOSE:
            state: ExecutionState = "closing" if tracked.state == "open" else "closed"
            return ExecutionResult("refused" if tracked.state == "refused" else state, tracked.reason, id)
        what = self._describe_orders(tracked) if tracked.state == "open" else tracked.reason
        reason = "; ".join(filter(None, (what, tracked.intent.left_out)))
        if tracked.state == "open":
            return ExecutionResult("working", reason, id)
        if tracked.state in ("done", "partial"):
            places = ((leg.exchange, tracked.intent.symbol) for leg in tracked.intent.legs)
            held = any(place in self._state.book.positions for place in places)
            return ExecutionResult("open" if held else "ended", reason, id)
        return ExecutionResult("refused" if tracked.state == "refused" else "ended", reason, id)

    def _describe_orders(self, tracked: TrackedIntent) -> str:
        orders = [self._state.book.orders[id] for id in tracked.orders]
        entries = [order for order in orders if order.purpose == "entry"]
        waiting = sum(order.status in (OrderStatus.OPEN, OrderStatus.PLANNED) for order in entries)
        filled = sum((order.filled for order in entries), ZERO)
        wanted = sum((leg.quantity for leg in tracked.intent.legs), ZERO)
        return f"{filled} of {wanted} filled, {waiting} orders wait"


def _is_entry(order: TrackedOrder) -> bool:
    """Of the desk, not of a stranger."""
    return order.purpose == "entry" and bool(order.intent)


def request_name(*words: object) -> str:
    return f"req_{digest(canonical(list(words)))[:16]}"


def _check_sides(trade: OpenTrade, stop: Decimal | None, target: Decimal | None, quote: VenueQuote) -> None:
    sign = trade.side.sign
    if stop is not None and sign * (quote.mark - stop) <= 0:
        raise Refused(f"A stop of {stop} is on the wrong side of the market, which is at {quote.mark}.")
    if target is not None and sign * (target - quote.mark) <= 0:
        raise Refused(f"A target of {target} is on the wrong side of the market, which is at {quote.mark}.")
