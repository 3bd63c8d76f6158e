"""The one door to orders: a ruling or a person asks, rules say whether it may be, and what follows is carried out.

Whatever was asked before is found again and not done twice. Exits always pass; new risk passes protections, the mandate
and the market's own price.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, wraps
from itertools import takewhile
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import ConcurrentWrite
from zuno.trading.execute.carry import HedgeTarget, NothingToChange, find_carry_target, prepare_hedge
from zuno.trading.execute.closes import close_unlogged, store_close
from zuno.trading.execute.entries import EntryRefused, RiskChecker, end_entries, prepare_entry
from zuno.trading.execute.fills import cancel_order
from zuno.trading.execute.intents import RulingToExecute, build_id, intent_id
from zuno.trading.execute.protection import is_tighter, leave_part, round_stop, set_levels
from zuno.trading.execute.reconcile import VenueComparison, advance
from zuno.trading.execute.targets import TargetPosition, TargetResult, TargetRound
from zuno.trading.execute.transfers import make_transfers
from zuno.trading.execute.venue_context import DOLLAR, AccountContext, GateContext, is_entry
from zuno.trading.model import trade_events
from zuno.trading.model.account import OrderCancelled, PositionClosed
from zuno.trading.model.cycle import Call, Style
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Side
from zuno.trading.model.orders import ZERO, VenueQuote
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE, LP_HEDGE, SleeveShares
from zuno.trading.rules.book_state import OpenTrade, Place, TrackedIntent
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.execution_styles import round_to_step
from zuno.trading.rules.protections import check_grant, hash_mandate
from zuno.trading.rules.sleeve_funds import build_transfer, plan_transfers
from zuno.trading.rules.trading_book import TradingBook

P = ParamSpec("P")
T = TypeVar("T")
MAX_TRIES: Final = 8
"""Times an act is begun anew because somebody else wrote to the account."""
_EXIT_RULES: Final = {
    RuleName.STOP_PASSED.value: trade_events.ExitReason.STOP,
    RuleName.TARGET_PASSED.value: trade_events.ExitReason.TARGET,
    RuleName.HOLD_OVER.value: trade_events.ExitReason.HOLD_OVER,
}

ExecutionState = Literal["held", "refused", "working", "open", "closing", "closed", "ended"]


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    state: ExecutionState
    """`held`: nothing to do. `working`: orders wait. `open`: filled and protected. `ended`: nothing or a part came."""
    reason: str = ""
    intent: str | None = None


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
        self._account = AccountContext(context)
        self._protections = RiskChecker(self._account)
        self._comparison = VenueComparison(self._account)
        self._lock = asyncio.Lock()
        self.account, self.live = context.account, context.live

    @property
    def troubles(self) -> dict[Venue, str]:
        """Exchanges that did not answer the last time, and those that refused a level which the desk watches."""
        troubles = {**self._account.troubles}
        for (place, _), why in self._account.refusals.items():
            if place in self.book.positions:
                troubles[place[0]] = "; ".join(filter(None, (troubles.get(place[0]), why)))
        return troubles

    @property
    def paper_venues(self) -> tuple[Venue, ...]:
        """Where a paper account has the usual cash though nothing happened there; none of an account with money."""
        return tuple(self._account.venues) if trade_events.account_mode(self.account) == "paper" else ()

    def now(self) -> Millis:
        """By the clock of this account's market."""
        return self._account.now()

    @property
    def book(self) -> TradingBook:
        """As it was when it was looked at last."""
        return self._account.book

    async def refresh(self) -> TradingBook:
        async with self._lock:
            return await self._account.refresh()

    @_exclusive
    async def advance(self) -> TradingBook:
        """Take the venues' news and go on with everything that is open: the protective watch, and every start."""
        await advance(self._account)
        await self._comparison.compare_if_due()
        if (why := await self._protections.store_hit_protections()) is not None:
            await end_entries(self._account, why)
            await advance(self._account)
        return self._account.book

    @_exclusive_unread
    async def close(
        self,
        which: Symbol | str | None,
        reason: trade_events.ExitReason = trade_events.ExitReason.OWNER,
        request: str = "owner",
        sleeve: str | None = None,
    ) -> tuple[str, ...]:
        """Close a trade by its id, everything of a symbol, or everything; of one sleeve if one is named. Entries that
        wait there are cancelled. It is done though the log cannot be written, which is `Unavailable` then."""
        return await self._close_though_unlogged(which, reason, request, sleeve)

    async def end_entries(self, reason: str) -> tuple[str, ...]:
        """Cancel entries that wait and end their intents, as a process does that goes away: nothing may be filled that
        nobody would protect. Stops and targets stay. The orders that could not be cancelled."""
        waiting = list(filter(is_entry, self._account.book.open_orders.values()))
        try:
            return await self._end_entries(reason)
        except ZunoError:
            # The log cannot be written. The exchange is told all the same; the next start finds what became of them.
            for request in (order.request for order in waiting):
                with suppress(ZunoError):
                    await self._account.venues[request.exchange].cancel(request.symbol, request.client_id, request.type)
            raise

    @_exclusive
    async def pause(self, reason: str = "paused by the owner") -> trade_events.LockSet:
        """No new risk until `resume`: entries that wait are cancelled, open trades go on."""
        lock = await self._account.set_lock(trade_events.Protection.PAUSED, reason)
        await self._stop_entries()
        return lock

    @_exclusive
    async def resume(self) -> bool:
        return await self._account.lift(trade_events.Protection.PAUSED, None, "resumed by the owner")

    @_exclusive_unread
    async def kill(self, reason: str = "kill switch") -> tuple[str, ...]:
        """Cancel everything, close everything, and lock until `unlock`. `Unavailable` where the log cannot be written:
        cancelled and closed all the same, but not locked."""
        return await self._close_though_unlogged(None, trade_events.ExitReason.KILL_SWITCH, "kill", lock=reason)

    @_exclusive
    async def unlock(
        self, protection: trade_events.Protection | None = None, symbol: Symbol | None = None
    ) -> tuple[trade_events.LockSet, ...]:
        """Lift one protection, or all; the ones that stood. What set them off counts no more."""
        standing = await self._protections.find_locks()
        lifted = tuple(
            lock
            for lock in standing
            if protection in (None, lock.protection)
            and lock.protection is not trade_events.Protection.RESTORED
            and (symbol is None or lock.symbol in (None, symbol))
        )
        for lock in lifted:
            await self._account.lift(lock.protection, lock.symbol, "lifted by the owner")
        return lifted

    @_exclusive
    async def locks(self) -> tuple[trade_events.LockSet, ...]:
        """Everything that keeps new risk back now, with reason and end."""
        return await self._protections.find_locks()

    @_exclusive
    async def set_clock(self, *, recorded: bool) -> None:
        """Write which clock the account goes by, and that it has come to this moment; nothing where the log says it."""
        at, book = self._account.event_time(), self._account.book
        if book.recorded is not recorded or (recorded and book.newest < at):
            await self._account.write([trade_events.ClockSet(at=at, recorded=recorded)])

    @_exclusive
    async def grant_mandate(self, mandate: trade_events.Mandate) -> trade_events.MandateGranted:
        check_grant(mandate, self._account.now())
        at = self._account.event_time()
        granted = trade_events.MandateGranted(at=at, mandate=mandate, hash=hash_mandate(mandate))
        shares = trade_events.SleevesSet(at=at, shares=mandate.shares.to_record())
        has_shares = any(sleeve.name != LP_HEDGE for sleeve in mandate.sleeves)
        await self._account.write([granted, shares] if has_shares else [granted])
        return granted

    @_exclusive
    async def revoke_mandate(self) -> trade_events.MandateGranted:
        granted = self._account.book.mandate
        if granted is None:
            raise Refused("No mandate stands.")
        await self._account.write([trade_events.MandateRevoked(at=self._account.event_time(), hash=granted.hash)])
        await self._stop_entries()
        return granted

    @_exclusive
    async def reconcile(self) -> tuple[str, ...]:
        """Hold the book against every venue and say what was done: differences are adopted, cancelled, or stop us; and
        how a lock is lifted that nothing explains any more."""
        await advance(self._account, settle=True, entries=False)
        report = await self._comparison.compare(tuple(self._account.venues))
        await advance(self._account)
        standing = self.book.locks.items()
        for (protection, symbol), lock in standing if not report and not self._account.troubles else ():
            if protection is trade_events.Protection.RECONCILIATION:
                settled = "the book and the exchanges agree by now; `zuno trade unlock reconciliation` lifts it"
                report.append(f"{symbol or 'the desk'} is locked ({lock.reason}): {settled} once you have looked")
        return tuple(report)

    @_exclusive
    async def find_cash_differences(self) -> dict[Venue, Decimal]:
        """By how much each exchange's balance differs from the book's. `Refused` where positions differ too."""
        return await self._comparison.find_cash_differences()

    @_exclusive
    async def adopt_cash(self, shown: Mapping[Venue, Decimal]) -> None:
        """Take over what the owner paid in or out, and lift its lock: exactly what was shown, else `Refused`."""
        differences = await self._comparison.find_cash_differences()
        if differences != dict(shown):
            raise Refused("The difference is another one by now; look at it again. Nothing was adopted.")
        at, why = self._account.event_time(), "adopted by the owner: a deposit or a withdrawal"
        events: list[trade_events.TradeEvent] = [
            trade_events.Adopted(at=at, exchange=venue, what=why, cash=cash) for venue, cash in differences.items()
        ]
        lock, reason = trade_events.Protection.RECONCILIATION, "the owner adopted the difference"
        if (lock, None) in self._account.book.locks:
            events.append(trade_events.LockLifted(at=at, protection=lock, symbol=None, reason=reason))
        await self._account.write(events)

    @_exclusive
    async def marks(self) -> dict[Place, Decimal]:
        """The market's price of everything that is open, where it is known."""
        marks: dict[Place, Decimal] = {}
        for trade in self._account.book.trades.values():
            quote = await self._protections.known_quote(trade.exchange, trade.symbol)
            if not isinstance(quote, Missing):
                marks[trade.exchange, trade.symbol] = quote.mark
        return marks

    async def read_mark(self, symbol: Symbol) -> Decimal:
        """At its own venue. `Unavailable` without a price."""
        return (await self._account.at(symbol.venue).port.quote(symbol)).mark

    def next_due(self) -> Millis | None:
        """When something is due that no venue does by itself: an order's end, the end of a hold."""
        book = self._account.book
        ends = (order.expires for order in book.open_orders.values())
        holds = (trade.hold_until for trade in book.positions.values())
        return min((at for at in (*ends, *holds) if at is not None), default=None)

    @property
    def needs_watch(self) -> bool:
        """Whether the next tick may find something to do: entries that wait, or levels that no venue holds."""
        book = self._account.book
        orders = book.open_orders.values()
        standing = {
            (order.purpose, order.request.exchange, order.request.symbol, book.sleeve_of(order)) for order in orders
        }
        return bool(book.open_intents) or any(
            ("stop", *place) not in standing
            or (trade.target is not None and ("target", *place) not in standing)
            or (trade.leaves is not None and not trade.leaving)
            for place, trade in book.positions.items()
        )

    # -- acts

    @_exclusive
    async def _end_entries(self, reason: str) -> tuple[str, ...]:
        await end_entries(self._account, reason)
        await advance(self._account)
        return tuple(id for id, order in self._account.book.open_orders.items() if is_entry(order))

    async def _try_act(self, act: Callable[[], Awaitable[T]], unread: bool) -> T:
        async with self._lock:
            for _ in range(MAX_TRIES):
                try:
                    await self._account.refresh()
                except Unavailable:
                    if not unread or not self._account.book.count:
                        raise
                try:
                    return await act()
                except ConcurrentWrite:
                    continue
        raise Unavailable(f"Account {self._account.name} is written to by others again and again; try once more.")

    @_exclusive
    async def execute(self, order: RulingToExecute) -> ExecutionResult:
        """Act on a ruling. The same decision again is the same intent, whatever became of it since."""
        call = order.ruling.decision
        id = intent_id(self._account.name, order)
        if id in self._account.book.intents:
            await advance(self._account)
            return self._describe_intent(id)
        if call is Call.HOLD:
            return ExecutionResult("held", "the ruling is HOLD")
        await advance(self._account)
        if any((hedge.symbol, hedge.sleeve) == (order.symbol, DEBATE) for hedge in self._account.hedges()):
            why = f"{order.symbol} is hedged: both legs are closed together, and nothing is opened beside them"
            return ExecutionResult("held" if call.side is None else "refused", why)
        side = call.side
        if side is None:
            return await self._execute_close(order, id)
        if self._account.now() > order.valid_until:
            return ExecutionResult("refused", "the ruling has expired")
        wanted = (
            tracked.intent.side
            for tracked in self.book.list_intents(trade_events.IntentKind.OPEN, order.symbol, DEBATE)
        )
        if any(other not in (None, side) for other in (self.book.side_of(order.symbol), *wanted)):
            # The other side may begin next cycle: under this decision's own id, so that it opens nothing later.
            return await self._execute_close(order, id)
        if self._ended_opposite(order, side):
            return ExecutionResult("closed", f"the other side was closed since; {side} may begin next cycle")
        try:
            intent, events = await prepare_entry(self._protections, order)
        except (EntryRefused, NotFound) as error:
            return ExecutionResult("refused", str(error))
        except Unavailable as error:
            return ExecutionResult("refused", f"the exchange did not answer: {error}")
        stored = trade_events.IntentStored(at=self._account.event_time(), intent=intent, ruling=order.ruling)
        await self._account.write([stored, *events])
        await advance(self._account)
        return self._describe_intent(id)

    async def _execute_close(self, order: RulingToExecute, id: str | None) -> ExecutionResult:
        rules = (_EXIT_RULES[change.by] for change in order.ruling.changes if change.by in _EXIT_RULES)
        reason = next(rules, trade_events.ExitReason.DECISION)
        if reason is trade_events.ExitReason.TARGET and await self._leave_parts(order):
            return ExecutionResult("open", "what leaves at the target leaves, the rest runs on", id)
        stored = await store_close(self._account, order.symbol, reason, order.run_id, id, order.ruling)
        await advance(self._account)
        try:
            manual = await self._close_manual(order.symbol)
        except Unavailable as error:
            return ExecutionResult("closing", f"what was written down by hand is not closed: {error}", stored)
        if stored is None:
            return ExecutionResult("closed" if manual else "held", "; ".join(manual) or "nothing is held or ordered")
        return self._describe_intent(stored)

    async def _leave_parts(self, order: RulingToExecute) -> bool:
        """Whether the ruling names parts of what is held: they go at the market, as the target was passed."""
        held = {trade.id: trade for trade in self._account.book.positions.values()}
        named = [(held[close.id], close) for close in order.ruling.closes if close.id in held]
        parts = [trade for trade, close in named if trade.leaving < trade.quantity and close.what == "position"]
        if not parts or len(parts) < len(order.ruling.closes):
            return False
        for trade in parts:
            venue = self._account.at(trade.exchange, trade.sleeve)
            await venue.attempt(leave_part(venue, trade))
        await advance(self._account)
        return True

    @_exclusive
    async def transfer(self, source: str, target: str, amount: Decimal, request: str) -> tuple[str, ...]:
        """Give dollars of one sleeve to another; the same request again is the same transfer. What a person has to
        move between wallets is said. `Refused` for more than is free, and for more than a mandate gives the sleeve."""
        await self._check_share(target, amount)
        transfer = build_transfer(self._account.event_time(), request, source, target, amount)
        return await make_transfers(self._account, [transfer])

    async def _check_share(self, sleeve: str, amount: Decimal) -> None:
        book = self._account.book
        mandate = book.active_mandate(self._account.now()) if self.live else None
        sleeves = () if mandate is None else mandate.sleeves
        named = next((each for each in sleeves if each.name == sleeve), None)
        if named is None:
            return
        equity = {name: await self.read_capital(name) for name in book.sleeves}
        share = (equity.get(sleeve, ZERO) + amount) / sum(equity.values(), ZERO)
        if share > named.share:
            raise Refused(f"{sleeve} would have {share:.0%} of the account; the mandate gives it {named.share:.0%}.")

    @_exclusive
    async def restore_shares(self, request: str) -> tuple[str, ...]:
        """Bring sleeves toward their shares, as far as money is free. `Unavailable` without a price of what is held."""
        account = self._account
        await advance(account)
        sleeves = (sleeve for sleeve in account.book.sleeves if sleeve != LP_HEDGE)
        equity = {sleeve: await self.read_capital(sleeve) for sleeve in sleeves}
        return await make_transfers(account, plan_transfers(account.book, equity, account.event_time(), request))

    async def read_capital(self, sleeve: str) -> Decimal:
        """What a sleeve is worth in dollars. `Unavailable` without a price of what it holds."""
        return await self._protections.require_sleeve_equity(sleeve, DOLLAR)

    @_exclusive
    async def set_shares(self, shares: SleeveShares) -> None:
        """What each sleeve is to have from now on; money follows with transfers."""
        if self._account.book.shares != shares:
            await self._account.write(
                [trade_events.SleevesSet(at=self._account.event_time(), shares=shares.to_record())]
            )

    @_exclusive
    async def set_targets(
        self, wanted: Mapping[str, Sequence[TargetPosition]], decided: Millis, decision: str
    ) -> tuple[TargetResult, ...]:
        """Bring sleeves toward their targets, all in one round: of each sleeve everything that it is to hold, what it
        holds beside is ended. The same target of the same moment again is the same order; another takes its place."""
        round = TargetRound(self._account, self._protections, wanted, decided, decision)
        return await round.carry_out()

    @_exclusive
    async def set_hedge(self, target: HedgeTarget) -> ExecutionResult:
        """Bring both legs of a position to a quantity: opened, grown, cut, or at 0 closed. The same request again is
        the same change, whatever became of it since. `Unavailable`: nothing was done, ask again."""
        return await self._set_hedge(target)

    @_exclusive
    async def set_carry(self, symbol: Symbol, sold: Venue, weight: Decimal, day: Millis) -> ExecutionResult:
        """Bring `cash-carry` at the spot and the perpetuals of one exchange to a weight for each leg, a share of the
        sleeve's equity; 0 closes both. Once a day for each weight: `day` names it."""
        await advance(self._account)
        request = request_name(CASH_CARRY, symbol, sold, weight.normalize(), day)
        target = await find_carry_target(self._protections, symbol, sold, weight, request)
        return await self._set_hedge(target)

    async def _set_hedge(self, target: HedgeTarget) -> ExecutionResult:
        account = self._account
        id = build_id(account.name, target.symbol, "hedge", target.request)
        await advance(account)
        if id in account.book.intents:
            return self._describe_intent(id)
        try:
            intent = await prepare_hedge(self._protections, target, id)
        except NothingToChange as error:
            return ExecutionResult("held", str(error))
        except (EntryRefused, NotFound) as error:
            return ExecutionResult("refused", str(error))
        if intent is not None:
            await account.write([trade_events.IntentStored(at=account.event_time(), intent=intent, ruling=None)])
        else:
            why = trade_events.ExitReason.DECISION
            id = await store_close(account, target.symbol, why, target.request, sleeve=CASH_CARRY) or id
        await advance(account)
        return self._describe_intent(id)

    @_exclusive
    async def cancel(self, client_id: str) -> str:
        """Cancel an order that waits to be filled. `Refused` for a protective order: it goes with its position."""
        order = self._account.book.orders.get(client_id)
        if order is None:
            raise NotFound(f"No order {client_id}; `zuno trade orders` lists them.")
        if order.status.final:
            raise Refused(f"The order {client_id} is {order.status} already.")
        if order.purpose != "entry":
            raise Refused(f"The order {client_id} protects or closes a position; `zuno trade set` moves its level.")
        tracked = self._account.book.open_intents.get(order.intent)
        if tracked is None or tracked.intent.style is Style.SMART_DCA:
            await cancel_order(self._account.at(order.request.exchange, self.book.sleeve_of(order)), order)
        else:
            # Or the next one would be placed in its stead. Written first: another process may be working it.
            await end_entries(self._account, "cancelled by the owner", order.intent)
        await advance(self._account)
        if not self._account.book.orders[client_id].status.final:
            why = "; ".join(self._account.troubles.values()) or "it is on its way from another process"
            raise Unavailable(f"The order {client_id} is not cancelled yet: {why}")
        return client_id

    @_exclusive
    async def set_levels(
        self, trade_id: str, stop: Decimal | None, target: Decimal | None, *, confirmed: bool = False
    ) -> OpenTrade:
        """Move stop or target of an open trade; None leaves one as it is. Tightening is done at once; `Refused` for
        loosening that is not confirmed, and for a level on the wrong side of the market."""
        trade = self._find_trade(trade_id)
        if self._account.book.find_hedge(trade) is not None:
            raise Refused(f"{trade_id} is a leg of a hedged position: it has no levels of its own.")
        if trade.manual and self._account.book.position(trade.exchange, trade.symbol) is not None:
            beside = f"The desk holds {trade.symbol} at {trade.exchange} beside {trade_id}"
            raise Refused(f"{beside}, and the levels there are the desk's; close one of them first.")
        venue = self._account.at(trade.exchange, trade.sleeve)
        quote = await venue.port.quote(trade.symbol)
        tick = (await venue.read_filters(trade.symbol)).tick
        stop = trade.stop if stop is None else round_stop(stop, tick, trade.side)
        target = trade.target if target is None else round_to_step(target, tick)
        _check_sides(trade, stop, target, quote)
        loosens = (trade.stop is not None and stop is not None and is_tighter(trade.stop, stop, trade.side)) or (
            trade.target is not None and target is not None and is_tighter(target, trade.target, trade.side)
        )
        if loosens and not confirmed:
            change = f"stop {trade.stop} → {stop}, target {trade.target} → {target}"
            raise Refused(f"This loosens the levels of {trade_id} ({change}); confirm it with --yes.")
        await self._account.write([set_levels(trade, self._account.event_time(), stop, target, "owner")])
        await advance(self._account)
        return trade

    async def _stop_entries(self) -> None:
        """Those that may not go on are cancelled now, whether or not a desk runs."""
        if self.book.list_intents(trade_events.IntentKind.OPEN) or any(
            map(is_entry, self._account.book.open_orders.values())
        ):
            await advance(self._account)

    # -- closes: by trade, by symbol, or everything; positions that a person wrote down, too

    async def _close(
        self, which: Symbol | str | None, reason: trade_events.ExitReason, request: str, of_sleeve: str | None = None
    ) -> tuple[str, ...]:
        book = self._account.book
        if isinstance(which, str) and not isinstance(which, Symbol):
            if any(summary.trade == which for summary in book.closed) and which not in book.trades:
                raise Refused(f"{which} is closed already; `zuno trade trades` lists closed trades.")
            trade = self._find_trade(which)
            if trade.manual:
                return await self._close_manual(trade.symbol, trade.id)
        open, done = self._list_open(which, of_sleeve), list[str]()
        for symbol, sleeve in open:
            stored = await store_close(self._account, symbol, reason, request, sleeve=sleeve)
            done += [] if stored is None else [stored]
        await advance(self._account)
        # Last, for they need a price: nothing at an exchange waits for it. A trade of the desk by its id ends no other.
        by_hand = (which is None or isinstance(which, Symbol)) and of_sleeve in (None, DEBATE)
        for symbol in dict.fromkeys(symbol for symbol, _ in open) if by_hand else ():
            done += await self._close_manual(symbol)
        return tuple(done)

    async def _close_though_unlogged(
        self,
        which: Symbol | str | None,
        reason: trade_events.ExitReason,
        request: str,
        of_sleeve: str | None = None,
        lock: str | None = None,
    ) -> tuple[str, ...]:
        """What the exchanges hold does not wait for room on a disk. `lock`: why a kill locks the desk first."""
        self._account.failure = None
        try:
            if lock is not None:
                await self._account.set_lock(trade_events.Protection.KILL_SWITCH, lock)
            done = await self._close(which, reason, request, of_sleeve)
        except ZunoError:
            if self._account.failure is None:
                raise
            done = ()
        if (failure := self._account.failure) is None:
            return done
        killed = reason is trade_events.ExitReason.KILL_SWITCH
        locked = self._account.has_written_lock(trade_events.Protection.KILL_SWITCH)
        report = list[str]()
        for exchange in self._account.venues:
            for symbol, sleeve in self._list_open(which, of_sleeve):
                venue = self._account.at(exchange, sleeve)
                report += await close_unlogged(venue, symbol, unlocked_kill=killed and not locked)
        sent = f"Sent all the same: {'; '.join(report)}." if report else "Nothing was left to send."
        unsaid = "neither recorded nor locked" if killed and not locked else "not recorded"
        raise Unavailable(f"{failure} {sent} It is {unsaid}; repeat this once it can be written.") from failure

    def _list_open(self, which: Symbol | str | None, of_sleeve: str | None = None) -> list[tuple[Symbol, str]]:
        """What the desk traded of a close, by sleeve: of a trade that a person wrote down nothing is at an exchange."""
        book = self._account.book
        if isinstance(which, str) and not isinstance(which, Symbol):
            traded = (trade for trade in book.trades.values() if trade.id == which and not trade.manual)
            return [(trade.symbol, trade.sleeve) for trade in traded]
        open = {(order.request.symbol, book.sleeve_of(order)) for order in book.open_orders.values()}
        open |= {(tracked.intent.symbol, tracked.intent.sleeve) for tracked in book.open_intents.values()}
        open |= {(trade.symbol, trade.sleeve) for trade in book.trades.values()}
        open |= {(order.symbol, DEBATE) for order in book.resting.values()}
        if isinstance(which, Symbol):
            open |= {(which, DEBATE)}
        chosen = [place for place in open if which in (None, place[0]) and of_sleeve in (None, place[1])]
        return sorted(chosen, key=lambda place: (place[0], place[1] != DEBATE, place[1]))

    async def _close_manual(self, symbol: Symbol, id: str | None = None) -> tuple[str, ...]:
        """Positions and orders that a person wrote down end at the market's price."""
        book, at = self._account.book, self._account.event_time()
        changes: list[PositionClosed | OrderCancelled] = []
        for trade in book.trades.values():
            if trade.manual and trade.symbol == symbol and id in (None, trade.id):
                quote = await self._account.at(trade.exchange).port.quote(symbol)
                price = quote.bid if trade.side is Side.LONG else quote.ask
                usual = Decimal(str(trade.exchange.taker))
                fee = trade.quantity * price * self._account.gate.manual_fees_pct.get(trade.exchange, usual) / 100
                changes.append(PositionClosed(at=at, id=trade.id, price=float(price), fee=float(fee)))
        if id is None:
            resting = (order for order in book.resting.values() if order.symbol == symbol)
            changes += [OrderCancelled(at=at, id=order.id) for order in resting]
        await self._account.write([trade_events.ManualChange(at=at, change=change) for change in changes])
        return tuple(change.id for change in changes)

    # -- parts

    def _find_trade(self, id: str) -> OpenTrade:
        trade = self.book.trades.get(id)
        if trade is None:
            raise NotFound(f"No trade {id} is open; `zuno trade positions` lists those that are.")
        return trade

    def _ended_opposite(self, order: RulingToExecute, side: Side) -> bool:
        """Whether a trade of the other side ended since the decision's moment."""
        since = takewhile(lambda summary: summary.closed >= order.as_of, reversed(self._account.book.closed))
        others = (summary for summary in since if summary.sleeve == DEBATE and summary.side is not side)
        return any(summary.symbol == order.symbol for summary in others)

    def _describe_intent(self, id: str) -> ExecutionResult:
        tracked = self._account.book.intents[id]
        working, intent = tracked.state == "open", tracked.intent
        closing = intent.kind is trade_events.IntentKind.CLOSE
        places = ((leg.exchange, intent.symbol, intent.sleeve) for leg in intent.legs)
        state: ExecutionState = "closed" if closing else "ended"
        if tracked.state == "refused":
            state = "refused"
        elif working:
            state = "closing" if closing else "working"
        elif tracked.state in ("done", "partial") and any(place in self.book.positions for place in places):
            state = "open"
        reason = self._describe_orders(tracked) if working and not closing else tracked.reason
        return ExecutionResult(state, "; ".join(filter(None, (reason, intent.left_out))), id)

    def _describe_orders(self, tracked: TrackedIntent) -> str:
        entries = [order for order in map(self.book.orders.__getitem__, tracked.orders) if order.purpose == "entry"]
        waiting = sum(not order.status.final for order in entries)
        filled = sum((order.filled for order in entries), ZERO)
        wanted = sum((leg.quantity for leg in tracked.intent.legs), ZERO)
        return f"{filled} of {wanted} filled, {waiting} orders wait"


def request_name(*words: object) -> str:
    return f"req_{digest(canonical(list(words)))[:16]}"


def _check_sides(trade: OpenTrade, stop: Decimal | None, target: Decimal | None, quote: VenueQuote) -> None:
    for name, level, sign in (("stop", stop, -trade.side.sign), ("target", target, trade.side.sign)):
        if level is not None and sign * (level - quote.mark) <= 0:
            raise Refused(f"A {name} of {level} is on the wrong side of the market, which is at {quote.mark}.")
