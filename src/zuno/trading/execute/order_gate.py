"""The one door to orders: a ruling or a person asks, rules say whether it may be, and the worker carries it out.

Whatever was asked before is found again and not done twice. Exits always pass; new risk passes protections, the mandate
and the market's own price.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal, TypeVar

from zuno.kernel.backoff import Backoff
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Broken, Refused, Unavailable, Unknown, ZunoError
from zuno.kernel.units import Millis
from zuno.trading.execute.account_writer import AccountWriter, BookMoved
from zuno.trading.execute.intents import PlaceState, RulingToExecute, build_open_intent, intent_id
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.execute.reconcile import find_cash_difference, reconcile_venue
from zuno.trading.execute.unwritten import close_unwritten
from zuno.trading.model.account import OrderCancelled, PositionClosed
from zuno.trading.model.cycle import Call, Exchange, Style
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, MINUTE_MS, SECOND_MS, Side, Symbol
from zuno.trading.model.orders import ZERO, OrderStatus, VenueQuote
from zuno.trading.model.trade_events import (
    Adopted,
    ExitReason,
    IntentKind,
    IntentStored,
    LevelsSet,
    LockLifted,
    LockSet,
    Mandate,
    MandateGranted,
    MandateRevoked,
    ManualChange,
    Protection,
    TradeEvent,
    TradeIntent,
)
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.execution_styles import MAX_DRIFT_ATR, round_to_step
from zuno.trading.rules.mandate import LiveEntry, check_grant, find_mandate_refusal, hash_mandate
from zuno.trading.rules.protections import (
    STORED,
    ProtectionLimits,
    RiskState,
    active_locks,
    describe_lock,
    find_refusal,
    hit_protections,
    sum_results_usd,
)
from zuno.trading.rules.trading_book import OpenTrade, TrackedIntent, TrackedOrder, TradingBook

T = TypeVar("T")
MAX_TRIES: Final = 8
"""Times an act is begun anew because somebody else wrote to the account."""
JUDGE_EVERY_MS: Final = 5 * MINUTE_MS
"""How often protections are judged while nothing happens to the account; an entry judges them anew."""
RECONCILE_AGAIN: Final = Backoff(5 * SECOND_MS, 5 * MINUTE_MS)
"""Between two tries to compare the book with an exchange that did not answer."""
UNCOMPARED_MS: Final = 30 * MINUTE_MS
"""How long the lock of an exchange that could not be compared lasts; set anew while it cannot be."""
_EXIT_RULES: Final = {
    RuleName.STOP_PASSED.value: ExitReason.STOP,
    RuleName.TARGET_PASSED.value: ExitReason.TARGET,
    RuleName.HOLD_OVER.value: ExitReason.HOLD_OVER,
}

ExecutionState = Literal["held", "refused", "working", "open", "closing", "closed", "ended"]


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What came of a ruling or a request."""

    state: ExecutionState
    """`held`: there was nothing to do. `working`: orders wait. `open`: filled and protected. `ended`: the entry came to
    nothing, or to a part."""
    reason: str = ""
    intent: str | None = None


@dataclass(frozen=True, slots=True)
class GateContext:
    """What an account acts with."""

    log: TradeLog
    account: str
    venues: Mapping[Exchange, OrderVenue]
    now: Callable[[], Millis]
    limits: ProtectionLimits = field(default_factory=ProtectionLimits)
    live: bool = False
    """Money can be lost: a mandate is needed."""
    entries: bool = True
    """Whether entries are placed and worked on. At an exchange only by the one process that holds the desk's lock and
    was permitted to; whoever else acts for the account cancels, protects and closes."""
    why_no_entries: str = "this process was not permitted to open trades in the account"
    """What is said of an entry where none is placed."""
    compare_every: Millis | None = None
    """How often the book is held against the exchanges again after the start; None: never, for nobody else trades
    there."""
    manual_fees_pct: Mapping[Exchange, Decimal] = field(
        default_factory=lambda: dict.fromkeys(Exchange, Decimal("0.05"))
    )
    """What closing a position that a person wrote down costs."""


class OrderGate:
    """Acts for one account. Calls wait for each other; another process may act for the same account beside it."""

    def __init__(self, context: GateContext) -> None:
        self._with = context
        self._writer = AccountWriter(context.log, context.account)
        self._worker = OrderWorker(
            self._writer, context.venues, context.now, live=context.live, entries=context.entries
        )
        self._lock = asyncio.Lock()
        self._uncompared: dict[Exchange, str] = {}
        """Exchanges that reconciliation could not ask, and why: asked again from `_compare_at`."""
        self._compare_at, self._failures = Millis(0), 0
        self._compared: dict[Exchange, Millis] = {}
        """When each exchange was last found comparable, or this process began to look."""
        self._judged = (0, Millis(0))
        """Events there were when protections were judged last, and when that was."""

    @property
    def account(self) -> str:
        return self._with.account

    @property
    def live(self) -> bool:
        return self._with.live

    @property
    def book(self) -> TradingBook:
        """As it was when it was looked at last."""
        return self._writer.book

    @property
    def troubles(self) -> Mapping[Exchange, str]:
        """Exchanges that did not answer the last time."""
        return self._worker.troubles

    async def refresh(self) -> TradingBook:
        async with self._lock:
            return await self._writer.refresh()

    async def advance(self) -> TradingBook:
        """Take the venues' news and go on with everything that is open: the protective watch, and every start."""

        async def act() -> TradingBook:
            await self._worker.advance()
            await self._compare_if_due()
            await self._store_hit_protections()
            return self.book

        return await self._act(act)

    async def execute(self, order: RulingToExecute) -> ExecutionResult:
        """Act on a ruling. The same decision again is the same intent, whatever became of it since."""
        return await self._act(lambda: self._execute(order))

    async def close(
        self, which: Symbol | str | None, reason: ExitReason = ExitReason.OWNER, request: str = "owner"
    ) -> tuple[str, ...]:
        """Close a trade by its id, everything of a symbol, or everything. Entries that wait there are cancelled. It is
        done though the log cannot be written, which is `Unavailable` then."""

        async def act() -> tuple[str, ...]:
            return await self._close(which, reason, request)

        return await self._act(lambda: self._close_though_unwritten(act, reason, which))

    async def cancel(self, client_id: str) -> str:
        """Cancel an order that waits to be filled. `Refused` for a protective order: it goes with its position."""
        return await self._act(lambda: self._cancel(client_id))

    async def end_entries(self, reason: str) -> tuple[str, ...]:
        """Cancel entries that wait and end their intents, as a process does that goes away: nothing may be filled that
        nobody would protect. Stops and targets stay. The orders that could not be cancelled."""
        waiting = list(filter(_is_entry, self.book.open_orders.values()))

        async def act() -> tuple[str, ...]:
            await self._worker.end_entries(reason)
            await self._worker.advance()
            return tuple(id for id, order in self.book.open_orders.items() if _is_entry(order))

        try:
            return await self._act(act)
        except ZunoError:
            # The log cannot be written. The exchange is told all the same; the next start finds what became of them.
            for request in (order.request for order in waiting):
                with suppress(ZunoError):
                    await self._with.venues[request.exchange].cancel(request.symbol, request.client_id, request.type)
            raise

    async def set_levels(
        self, trade_id: str, stop: Decimal | None, target: Decimal | None, *, confirmed: bool = False
    ) -> OpenTrade:
        """Move stop or target of an open trade; None leaves one as it is. Tightening is done at once; `Refused` for
        loosening that is not confirmed, and for a level on the wrong side of the market."""
        return await self._act(lambda: self._set_levels(trade_id, stop, target, confirmed))

    async def pause(self, reason: str = "paused by the owner") -> LockSet:
        """No new risk until `resume`: entries that wait are cancelled, open trades go on."""

        async def act() -> LockSet:
            lock = await self._set_lock(Protection.PAUSED, reason)
            await self._stop_entries()
            return lock

        return await self._act(act)

    async def resume(self) -> bool:
        return await self._act(lambda: self._lift(Protection.PAUSED, None, "resumed by the owner"))

    async def kill(self, reason: str = "kill switch") -> tuple[str, ...]:
        """Cancel everything, close everything, and lock until `unlock`. `Unavailable` where the log cannot be written:
        cancelled and closed all the same, but not locked."""

        async def act() -> tuple[str, ...]:
            await self._set_lock(Protection.KILL_SWITCH, reason)
            return await self._close(None, ExitReason.KILL_SWITCH, "kill")

        return await self._act(lambda: self._close_though_unwritten(act, ExitReason.KILL_SWITCH, None))

    async def unlock(self, protection: Protection | None = None, symbol: Symbol | None = None) -> tuple[LockSet, ...]:
        """Lift one protection, or all; the ones that stood. What set them off counts no more."""

        async def act() -> tuple[LockSet, ...]:
            standing = await self._find_locks()
            lifted = [lock for lock in standing if protection is None or lock.protection is protection]
            lifted = [lock for lock in lifted if symbol is None or lock.symbol in (None, symbol)]
            for lock in lifted:
                await self._lift(lock.protection, lock.symbol, "lifted by the owner")
            return tuple(lifted)

        return await self._act(act)

    async def locks(self) -> tuple[LockSet, ...]:
        """Everything that keeps new risk back now, with reason and end."""
        return await self._act(self._find_locks)

    async def grant_mandate(self, mandate: Mandate) -> MandateGranted:
        async def act() -> MandateGranted:
            check_grant(mandate, self._now())
            granted = MandateGranted(at=self._at(), mandate=mandate, hash=hash_mandate(mandate))
            await self._writer.write([granted])
            return granted

        return await self._act(act)

    async def revoke_mandate(self) -> MandateGranted:
        async def act() -> MandateGranted:
            granted = self.book.mandate
            if granted is None:
                raise Refused("No mandate stands.")
            await self._writer.write([MandateRevoked(at=self._at(), hash=granted.hash)])
            await self._stop_entries()
            return granted

        return await self._act(act)

    async def reconcile(self) -> tuple[str, ...]:
        """Hold the book against every venue: each difference is adopted, cancelled, or stops the desk. What was done is
        said."""

        async def act() -> tuple[str, ...]:
            await self._worker.advance(settle=True, entries=False)
            said = await self._compare(tuple(self._with.venues))
            await self._worker.advance()
            return tuple(said)

        return await self._act(act)

    async def find_cash_differences(self) -> dict[Exchange, Decimal]:
        """By how much each exchange's balance is above the book's, where it is not the same. `Refused` where positions
        differ too."""
        return await self._act(self._find_cash_differences)

    async def adopt_cash(self, shown: Mapping[Exchange, Decimal]) -> None:
        """Take over what the owner paid in or out: exactly what was shown, else `Refused`. The lock that it set off is
        lifted."""

        async def act() -> None:
            found = await self._find_cash_differences()
            if found != dict(shown):
                raise Refused("The difference is another one by now; look at it again. Nothing was adopted.")
            what = "adopted by the owner: a deposit or a withdrawal"
            events: list[TradeEvent] = [
                Adopted(at=self._at(), exchange=exchange, what=what, cash=cash) for exchange, cash in found.items()
            ]
            if (Protection.RECONCILIATION, None) in self.book.locks:
                reason = "the owner adopted the difference"
                lifted = LockLifted(at=self._at(), protection=Protection.RECONCILIATION, symbol=None, reason=reason)
                events.append(lifted)
            await self._writer.write(events)

        await self._act(act)

    def now(self) -> Millis:
        """By the clock of this account's market."""
        return self._with.now()

    async def marks(self) -> dict[tuple[Exchange, Symbol], Decimal]:
        """The market's price of everything that is open, where it is known."""

        async def act() -> dict[tuple[Exchange, Symbol], Decimal]:
            found: dict[tuple[Exchange, Symbol], Decimal] = {}
            for trade in self.book.trades.values():
                quote = await self._known_quote(trade.exchange, trade.symbol)
                if not isinstance(quote, Missing):
                    found[trade.exchange, trade.symbol] = quote.mark
            return found

        return await self._act(act)

    def next_due(self) -> Millis | None:
        """When something is due that no venue does by itself: an order's end, the end of a hold."""
        book = self.book
        times = [order.expires for order in book.open_orders.values()]
        times += [trade.hold_until for trade in book.positions.values()]
        known = [at for at in times if at is not None]
        return min(known, default=None)

    @property
    def needs_watch(self) -> bool:
        """Whether the next tick may find something to do: entries that wait, or levels that no venue holds."""
        book = self.book
        stops = {
            (order.request.exchange, order.request.symbol)
            for order in book.open_orders.values()
            if order.purpose == "stop"
        }
        return bool(book.open_intents) or any(place not in stops for place in book.positions)

    # -- acts

    async def _act(self, act: Callable[[], Awaitable[T]]) -> T:
        """Carried to its end though whoever asked is cancelled: an order whose reply nobody waits for is one that
        nobody knows of."""
        task = asyncio.ensure_future(self._try_act(act))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    async def _try_act(self, act: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            for _ in range(MAX_TRIES):
                await self._writer.refresh()
                try:
                    return await act()
                except BookMoved:
                    continue
        raise Unavailable(f"Account {self.account} is written to by others again and again; try once more.")

    async def _execute(self, order: RulingToExecute) -> ExecutionResult:
        call = order.ruling.decision
        id = intent_id(self.account, order)
        if id in self.book.intents:
            await self._worker.advance()
            return self._describe_intent(id)
        if call is Call.HOLD:
            return ExecutionResult("held", "the ruling is HOLD")
        await self._worker.advance()
        side = call.side
        if side is None:
            return await self._execute_close(order, id)
        if self._now() > order.valid_until:
            return ExecutionResult("refused", "the ruling has expired")
        if self._has_opposite(order.symbol, side):
            # The other side may begin next cycle: under this decision's own id, so that it opens nothing later.
            return await self._execute_close(order, id)
        if self._ended_opposite(order, side):
            return ExecutionResult("closed", f"the other side was closed since; {side} may begin next cycle")
        try:
            intent, events = await self._prepare_entry(order, side)
        except _EntryRefused as error:
            return ExecutionResult("refused", str(error))
        except Unavailable as error:
            return ExecutionResult("refused", f"the exchange did not answer: {error}")
        stored = IntentStored(at=self._at(), intent=intent, ruling=order.ruling)
        await self._writer.write([stored, *events])
        await self._worker.advance()
        return self._describe_intent(id)

    async def _execute_close(self, order: RulingToExecute, id: str | None) -> ExecutionResult:
        reason = next(
            (_EXIT_RULES[change.by] for change in order.ruling.changes if change.by in _EXIT_RULES),
            ExitReason.DECISION,
        )
        stored = await self._worker.store_close(order.symbol, reason, order.run_id, id, order.ruling)
        await self._worker.advance()
        try:
            manual = await self._close_manual(order.symbol)
        except Unavailable as error:
            return ExecutionResult("closing", f"what was written down by hand is not closed: {error}", stored)
        if stored is None:
            return ExecutionResult("closed" if manual else "held", "; ".join(manual) or "nothing is held or ordered")
        return self._describe_intent(stored)

    async def _prepare_entry(self, order: RulingToExecute, side: Side) -> tuple[TradeIntent, list[TradeEvent]]:
        """The intent of an entry that may be, and what is written with it. Raises what keeps it back."""
        if not self._with.entries:
            raise _EntryRefused(self._with.why_no_entries)
        book, exchanges = self.book, tuple(leg.venue for leg in order.ruling.legs)
        places = {
            exchange: PlaceState(
                await self._worker.quote(exchange, order.symbol),
                await self._worker.fresh_filters(exchange, order.symbol),
            )
            for exchange in exchanges
        }
        dollars = await self._worker.dollar_mark(order.symbol)
        _check_drift(order, dollars)
        lock = find_refusal(order.symbol, await self._find_locks(order.symbol))
        if lock is not None:
            raise _EntryRefused(describe_lock(lock))
        mandate = book.active_mandate(self._now()) if self._with.live else None
        built = build_open_intent(self.account, order, places, mandate, dollars)
        if isinstance(built, str):
            raise _EntryRefused(built)
        if self._with.live:
            entry = await self._live_entry(order, built, places)
            if (why := find_mandate_refusal(mandate, entry, self._now())) is not None:
                raise _EntryRefused(why)
        return built, self._tighten_stops(built, side)

    def _tighten_stops(self, intent: TradeIntent, side: Side) -> list[TradeEvent]:
        """A top-up may bring the stop of what is held nearer, never further."""
        events: list[TradeEvent] = []
        for leg in intent.legs:
            held = self.book.positions.get((leg.exchange, intent.symbol))
            if held is not None and (held.stop is None or _is_tighter(leg.stop, held.stop, side)):
                events.append(
                    LevelsSet(
                        at=self._at(),
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
        self, order: RulingToExecute, intent: TradeIntent, places: Mapping[Exchange, PlaceState]
    ) -> LiveEntry:
        assert order.mark is not None
        midnight = self._now() // DAY_MS * DAY_MS

        def margin_usd(of: TradeIntent, mark: Decimal) -> Decimal:
            return sum((leg.quantity * mark / leg.leverage for leg in of.legs), ZERO)

        def used_today(tracked: TrackedIntent) -> Decimal:
            """What has ended without being filled gives its margin back."""
            whole = margin_usd(tracked.intent, tracked.intent.mark)
            waiting = (self.book.open_orders.get(id) for id in tracked.orders)
            if tracked.state == "open" or any(order is not None and order.purpose == "entry" for order in waiting):
                return whole
            return whole - self._unfilled_margin(tracked, tracked.intent.mark)

        today = [
            used_today(tracked)
            for tracked in self.book.intents.values()
            if tracked.stored >= midnight and tracked.intent.kind is IntentKind.OPEN
        ]
        waiting = [tracked for tracked in self.book.open_intents.values() if tracked.intent.kind is IntentKind.OPEN]
        state = await self._risk_state(order.symbol)
        lost = self._sum_lost_today(state)
        if isinstance(lost, Missing):
            raise _EntryRefused(f"what was lost today is not known: {lost.reason}")
        held = sum(
            (
                trade.quantity * order.mark / trade.leverage
                for trade in self.book.positions.values()
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
            orders = (self.book.orders[id] for id in tracked.orders)
            entered = (o.booked for o in orders if o.purpose == "entry" and o.request.exchange is leg.exchange)
            margin += max(ZERO, leg.quantity - sum(entered, ZERO)) * mark / leg.leverage
        return margin

    async def _close(self, which: Symbol | str | None, reason: ExitReason, request: str) -> tuple[str, ...]:
        book = self.book
        if isinstance(which, str) and not isinstance(which, Symbol):
            trade = book.trades.get(which)
            if trade is None:
                if any(summary.trade == which for summary in book.closed):
                    raise Refused(f"{which} is closed already; `zuno trade trades` lists closed trades.")
                raise Unknown(f"No trade {which} is open; `zuno trade positions` lists those that are.")
            if trade.manual:
                return await self._close_manual(trade.symbol, trade.id)
        symbols, done = self._list_symbols(which), list[str]()
        for symbol in symbols:
            stored = await self._worker.store_close(symbol, reason, request)
            done += [] if stored is None else [stored]
        await self._worker.advance()
        # Last, for they need a price: nothing at an exchange waits for it.
        for symbol in symbols:
            done += await self._close_manual(symbol)
        return tuple(done)

    async def _close_though_unwritten(
        self, act: Callable[[], Awaitable[tuple[str, ...]]], reason: ExitReason, which: Symbol | str | None
    ) -> tuple[str, ...]:
        """What the exchanges hold does not wait for room on a disk."""
        self._writer.failure = None
        try:
            done = await act()
        except ZunoError:
            if self._writer.failure is None:
                raise
            done = ()
        if (failure := self._writer.failure) is None:
            return done
        said = [
            what
            for venue in self._with.venues.values()
            for symbol in self._list_symbols(which)
            for what in await close_unwritten(self.book, self.account, venue, symbol, reason)
        ]
        sent = "; ".join(said) or "nothing was left to send"
        raise Unavailable(f"{failure} Sent all the same: {sent}. It is not booked yet; repeat this.") from failure

    def _list_symbols(self, which: Symbol | str | None) -> list[Symbol]:
        """What the desk traded of a close: of a trade that a person wrote down nothing is at an exchange."""
        if which is None or isinstance(which, Symbol):
            return list(Symbol) if which is None else [which]
        trade = self.book.trades.get(which)
        return [] if trade is None or trade.manual else [trade.symbol]

    async def _close_manual(self, symbol: Symbol, id: str | None = None) -> tuple[str, ...]:
        """Positions and orders that a person wrote down end at the market's price."""
        book, events, done = self.book, list[TradeEvent](), list[str]()
        for trade in book.trades.values():
            if trade.manual and trade.symbol is symbol and id in (None, trade.id):
                quote = await self._worker.quote(trade.exchange, symbol)
                price = quote.bid if trade.side is Side.LONG else quote.ask
                fee = trade.quantity * price * self._with.manual_fees_pct[trade.exchange] / 100
                change = PositionClosed(at=self._at(), id=trade.id, price=float(price), fee=float(fee))
                events.append(ManualChange(at=self._at(), change=change))
                done.append(trade.id)
        if id is None:
            for resting in book.resting.values():
                if resting.symbol is symbol:
                    events.append(ManualChange(at=self._at(), change=OrderCancelled(at=self._at(), id=resting.id)))
                    done.append(resting.id)
        await self._writer.write(events)
        return tuple(done)

    async def _cancel(self, client_id: str) -> str:
        order = self.book.orders.get(client_id)
        if order is None:
            raise Unknown(f"No order {client_id}; `zuno trade orders` lists them.")
        if order.status.final:
            raise Refused(f"The order {client_id} is {order.status} already.")
        if order.purpose != "entry":
            raise Refused(f"The order {client_id} protects or closes a position; `zuno trade set` moves its level.")
        tracked = self.book.open_intents.get(order.intent)
        if tracked is None or tracked.intent.style is Style.SMART_DCA:
            await self._worker.cancel_order(order)
        else:
            # Or the next one would be placed in its stead. Written first: another process may be working it.
            await self._worker.end_entries("cancelled by the owner", order.intent)
        await self._worker.advance()
        if not self.book.orders[client_id].status.final:
            why = "; ".join(self._worker.troubles.values()) or "it is on its way from another process"
            raise Unavailable(f"The order {client_id} is not cancelled yet: {why}")
        return client_id

    async def _set_levels(
        self, trade_id: str, stop: Decimal | None, target: Decimal | None, confirmed: bool
    ) -> OpenTrade:
        trade = self.book.trades.get(trade_id)
        if trade is None:
            raise Unknown(f"No trade {trade_id} is open; `zuno trade positions` lists those that are.")
        if trade.manual and (trade.exchange, trade.symbol) in self.book.positions:
            raise Refused(
                f"The desk holds {trade.symbol} at {trade.exchange} beside {trade_id}, and the levels there are the "
                "desk's; close one of them first."
            )
        quote = await self._worker.quote(trade.exchange, trade.symbol)
        tick = (await self._worker.filters(trade.exchange, trade.symbol)).tick
        stop = trade.stop if stop is None else round_to_step(stop, tick)
        target = trade.target if target is None else round_to_step(target, tick)
        _check_sides(trade, stop, target, quote)
        loosens = (trade.stop is not None and stop is not None and _is_tighter(trade.stop, stop, trade.side)) or (
            trade.target is not None and target is not None and _is_tighter(target, trade.target, trade.side)
        )
        if loosens and not confirmed:
            raise Refused(
                f"This loosens the levels of {trade_id} (stop {trade.stop} → {stop}, target {trade.target} → "
                f"{target}); confirm it with --yes."
            )
        event = LevelsSet(
            at=self._at(),
            exchange=trade.exchange,
            symbol=trade.symbol,
            stop=stop,
            target=target,
            hold_until=trade.hold_until,
            by="owner",
            trade=trade.id,
        )
        await self._writer.write([event])
        await self._worker.advance()
        return trade

    async def _stop_entries(self) -> None:
        """Those that may not go on are cancelled now, whether or not a desk runs."""
        opening = any(tracked.intent.kind is IntentKind.OPEN for tracked in self.book.open_intents.values())
        if opening or any(map(_is_entry, self.book.open_orders.values())):
            await self._worker.advance()

    async def _set_lock(self, protection: Protection, reason: str) -> LockSet:
        known = self.book.locks.get((protection, None))
        if known is not None:
            return known
        lock = LockSet(at=self._at(), protection=protection, symbol=None, until=None, reason=reason)
        await self._writer.write([lock])
        return lock

    async def _lift(self, protection: Protection, symbol: Symbol | None, reason: str) -> bool:
        stood = (protection, symbol) in self.book.locks
        if stood or protection not in (Protection.PAUSED, Protection.KILL_SWITCH):
            # The exchange's clock may be a little ahead: what was closed by now counts no more.
            closed = [summary.closed + 1 for summary in self.book.closed[-1:]]
            booked = [result.at + 1 for result in self.book.results[-1:]]
            at = Millis(max([self._at(), *closed, *booked]))
            await self._writer.write([LockLifted(at=at, protection=protection, symbol=symbol, reason=reason)])
        return stood

    # -- reconciliation

    async def _compare_if_due(self) -> None:
        """What could not be compared is asked again ever more seldom; what could be, every few minutes: somebody may
        trade there by hand. An outage in between locks nothing until it has lasted."""
        now, every = self._now(), self._with.compare_every
        if self._uncompared:
            if now >= self._compare_at:
                await self._compare(tuple(self._uncompared))
        elif every is not None:
            due = [
                exchange
                for exchange in self._with.venues
                if now - self._compared.setdefault(exchange, now) >= every and now >= self._compare_at
            ]
            if due:
                self._compare_at = Millis(now + MINUTE_MS)
                await self._worker.advance(settle=True, entries=False)
                await self._compare(due, patience=UNCOMPARED_MS)

    async def _compare(self, exchanges: Sequence[Exchange], patience: int = 0) -> list[str]:
        """Hold the book against exchanges. One that does not answer, for longer than `patience` since it was compared,
        locks the desk until it does: it is asked again by the watch, and the lock has an end of its own should nobody
        ask."""
        said, unknown = list[str](), False
        for exchange in exchanges:
            try:
                said += await reconcile_venue(self._with.venues[exchange], self._writer, self._worker, self._at)
                self._uncompared.pop(exchange, None)
                self._compared[exchange] = self._now()
            except Broken:
                raise
            except ZunoError as error:
                if patience and self._now() - self._compared.get(exchange, self._now()) < patience:
                    unknown = True
                    continue
                self._uncompared[exchange] = str(error)
                said.append(f"{exchange} cannot be compared with the book yet: {error}")
        if self._uncompared:
            self._failures += 1
            self._compare_at = Millis(self._now() + round(RECONCILE_AGAIN.delay(self._failures)))
        else:
            self._failures = 0
        if self._uncompared or not unknown:  # else no lock is set, and none that stands is lifted
            await self._lock_uncompared()
        return said

    async def _lock_uncompared(self) -> None:
        """A difference that somebody has to look at locks for longer, and stays."""
        known = self.book.locks.get((Protection.RECONCILIATION, None))
        if known is not None and known.until is None:
            return
        if not self._uncompared:
            if known is not None:
                await self._lift(Protection.RECONCILIATION, None, "the exchanges answered")
            return
        if known is None or known.until is None or known.until < self._compare_at + UNCOMPARED_MS // 2:
            lock = LockSet(
                at=self._at(),
                protection=Protection.RECONCILIATION,
                symbol=None,
                until=Millis(self._at() + UNCOMPARED_MS),
                reason="; ".join(
                    f"{exchange} is not compared yet: {why}" for exchange, why in self._uncompared.items()
                )[:600],
            )
            await self._writer.write([lock])

    async def _find_cash_differences(self) -> dict[Exchange, Decimal]:
        if not self._with.venues:
            raise Unavailable("No exchange of this account can be asked here: its keys, or a mandate, are missing.")
        await self._worker.advance(settle=True, entries=False)
        found = {
            exchange: await find_cash_difference(venue, self._writer, self._worker, self._at)
            for exchange, venue in self._with.venues.items()
        }
        return {exchange: cash for exchange, cash in found.items() if cash}

    # -- protections

    async def _find_locks(self, symbol: Symbol | None = None) -> tuple[LockSet, ...]:
        """`symbol`: which one new risk is asked for; its price must be fresh, and being open it may be topped up."""
        locks = active_locks(await self._risk_state(symbol), self._with.limits)
        if symbol is not None and symbol in self._open_symbols():
            locks = tuple(lock for lock in locks if lock.protection is not Protection.MAX_OPEN_TRADES)
        return locks

    async def _store_hit_protections(self) -> None:
        """Those that outlast what set them off are written down."""
        if not self.book.positions and not self.book.closed:
            return
        if self.book.count == self._judged[0] and self._now() - self._judged[1] < JUDGE_EVERY_MS:
            return
        self._judged = (self.book.count, self._now())
        events: list[TradeEvent] = []
        state = await self._risk_state(None)
        for lock in hit_protections(state, self._with.limits):
            known = self.book.locks.get((lock.protection, lock.symbol))
            over = known is None or (known.until is not None and known.until <= lock.at)
            if lock.protection in STORED and lock.until is not None and over:
                events.append(lock.model_copy(update={"at": self._at()}))
        await self._writer.write(events)
        await self._end_spent_entries(state)

    async def _end_spent_entries(self, state: RiskState) -> None:
        """What waits of an entry is risk that a mandate allows no more once its daily loss is reached."""
        granted = self.book.mandate
        waiting = any(tracked.intent.kind is IntentKind.OPEN for tracked in self.book.open_intents.values())
        if not self._with.live or granted is None or not waiting:
            return
        lost, most = self._sum_lost_today(state), granted.mandate.max_daily_loss_usd
        if not isinstance(lost, Missing) and lost >= most:
            await self._worker.end_entries(f"${lost:,.2f} are lost today; the mandate allows ${most:,.2f}")
            await self._worker.advance()

    def _sum_lost_today(self, state: RiskState) -> Known[Decimal]:
        """Net, since midnight UTC, with what open positions have lost; below zero is a gain."""
        realised = sum_results_usd(self.book.results, Millis(state.now // DAY_MS * DAY_MS), state.won)
        if isinstance(realised, Missing):
            return realised
        if isinstance(state.unrealised_usd, Missing):
            return state.unrealised_usd
        return -realised - min(ZERO, state.unrealised_usd)

    async def _risk_state(self, symbol: Symbol | None) -> RiskState:
        book = self.book
        wanted = dict.fromkeys((*([] if symbol is None else [symbol]), *(t.symbol for t in book.trades.values())))
        quotes: dict[tuple[Exchange, Symbol], Known[VenueQuote]] = {}
        first = next(iter(self._with.venues), Exchange.BINANCE)
        for held in wanted:
            for exchange in self._with.venues:
                if exchange is first or book.trades_at(exchange):
                    quotes[exchange, held] = await self._known_quote(exchange, held)
        won = await self._won(quotes)
        equity, unrealised = self._equity_usd(quotes, won)
        return RiskState(
            now=self._now(),
            open_symbols=self._open_symbols(),
            closed=book.closed,
            results=book.results,
            equity_usd=equity,
            unrealised_usd=unrealised,
            won=won,
            price_times={}
            if symbol is None
            else {symbol: _time_of(quotes.get((first, symbol), Missing("no exchange is there")))},
            locks=tuple(book.locks.values()),
            lifted=book.lifted,
        )

    async def _known_quote(self, exchange: Exchange, symbol: Symbol) -> Known[VenueQuote]:
        try:
            return await self._worker.quote(exchange, symbol)
        except ZunoError as error:
            return Missing(str(error).rstrip("."))

    async def _won(self, quotes: Mapping[tuple[Exchange, Symbol], Known[VenueQuote]]) -> Known[Decimal]:
        """KRW for one dollar: what the same coin costs in both."""
        if Exchange.UPBIT not in self._with.venues:
            return Missing(f"{Exchange.UPBIT} is not there")
        symbol = next((symbol for _, symbol in quotes), Symbol.BTCUSDT)
        pair = [
            quotes.get((exchange, symbol)) or await self._known_quote(exchange, symbol)
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
        self, quotes: Mapping[tuple[Exchange, Symbol], Known[VenueQuote]], won: Known[Decimal]
    ) -> tuple[Known[Decimal], Known[Decimal]]:
        """Equity and unrealised PnL in dollars. Without the won, what is at Upbit counts nothing unless it is held."""
        equity = unrealised = ZERO
        for exchange in Exchange:
            trades = self.book.trades_at(exchange)
            marks: dict[Symbol, Decimal] = {}
            for trade in trades:
                quote = quotes.get((exchange, trade.symbol), Missing(f"{exchange} is not there"))
                if isinstance(quote, Missing):
                    return quote, quote
                marks[trade.symbol] = quote.mark
            rate = Decimal(1) if exchange is Exchange.BINANCE else won
            if isinstance(rate, Missing):
                if trades:
                    return rate, rate
                continue
            equity += self.book.equity(exchange, marks) / rate
            unrealised += sum((trade.unrealised(marks[trade.symbol]) for trade in trades), ZERO) / rate
        return equity, unrealised

    def _open_symbols(self) -> frozenset[Symbol]:
        book = self.book
        held = {trade.symbol for trade in book.trades.values()}
        opening = {
            tracked.intent.symbol for tracked in book.open_intents.values() if tracked.intent.kind is IntentKind.OPEN
        }
        return frozenset(held | opening)

    # -- parts

    def _has_opposite(self, symbol: Symbol, side: Side) -> bool:
        book = self.book
        held = book.side_of(symbol)
        if held is not None and held is not side:
            return True
        return any(
            tracked.intent.symbol is symbol
            and tracked.intent.side is not side
            and tracked.intent.kind is IntentKind.OPEN
            for tracked in book.open_intents.values()
        )

    def _ended_opposite(self, order: RulingToExecute, side: Side) -> bool:
        """Whether a trade of the other side ended since the decision's moment."""
        for summary in reversed(self.book.closed):
            if summary.closed < order.as_of:
                return False
            if summary.symbol is order.symbol and summary.side is not side:
                return True
        return False

    def _describe_intent(self, id: str) -> ExecutionResult:
        tracked = self.book.intents[id]
        if tracked.intent.kind is IntentKind.CLOSE:
            state: ExecutionState = "closing" if tracked.state == "open" else "closed"
            return ExecutionResult("refused" if tracked.state == "refused" else state, tracked.reason, id)
        what = self._describe_orders(tracked) if tracked.state == "open" else tracked.reason
        reason = "; ".join(filter(None, (what, tracked.intent.left_out)))
        if tracked.state == "open":
            return ExecutionResult("working", reason, id)
        if tracked.state in ("done", "partial"):
            return ExecutionResult("open" if self._is_held(tracked) else "ended", reason, id)
        return ExecutionResult("refused" if tracked.state == "refused" else "ended", reason, id)

    def _is_held(self, tracked: TrackedIntent) -> bool:
        return any((leg.exchange, tracked.intent.symbol) in self.book.positions for leg in tracked.intent.legs)

    def _describe_orders(self, tracked: TrackedIntent) -> str:
        orders = [self.book.orders[id] for id in tracked.orders]
        entries = [order for order in orders if order.purpose == "entry"]
        waiting = sum(order.status in (OrderStatus.OPEN, OrderStatus.PLANNED) for order in entries)
        filled = sum((order.filled for order in entries), ZERO)
        wanted = sum((leg.quantity for leg in tracked.intent.legs), ZERO)
        return f"{filled} of {wanted} filled, {waiting} orders wait"

    def _now(self) -> Millis:
        return self._with.now()

    def _at(self) -> Millis:
        return Millis(max(self.book.newest, self._now()))


def _is_entry(order: TrackedOrder) -> bool:
    """Of the desk, not of a stranger."""
    return order.purpose == "entry" and bool(order.intent)


class _EntryRefused(Exception):
    """Why an entry may not be."""


def _check_drift(order: RulingToExecute, mark: Decimal | None) -> None:
    if order.mark is None or order.atr is None or mark is None:
        return
    if abs(mark - order.mark) > MAX_DRIFT_ATR * order.atr:
        raise _EntryRefused(f"the mark moved from {order.mark} to {mark}, more than {MAX_DRIFT_ATR} ATR(1h)")


def request_name(*words: object) -> str:
    """The id of what a person asked for."""
    return f"req_{digest(canonical(list(words)))[:16]}"


def _is_tighter(level: Decimal, than: Decimal, side: Side) -> bool:
    """Whether a stop is nearer to the market than another; of targets the other way round."""
    return level > than if side is Side.LONG else level < than


def _check_sides(trade: OpenTrade, stop: Decimal | None, target: Decimal | None, quote: VenueQuote) -> None:
    sign = 1 if trade.side is Side.LONG else -1
    if stop is not None and sign * (quote.mark - stop) <= 0:
        raise Refused(f"A stop of {stop} is on the wrong side of the market, which is at {quote.mark}.")
    if target is not None and sign * (target - quote.mark) <= 0:
        raise Refused(f"A target of {target} is on the wrong side of the market, which is at {quote.mark}.")


def _time_of(quote: Known[VenueQuote]) -> Known[Millis]:
    return quote if isinstance(quote, Missing) else quote.at
