"""The trading desk that runs by itself: started on a live market or over recorded time, stopped, told how it went."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from zuno.journal.port import Author, Journal
from zuno.kernel import arguments
from zuno.kernel.accounts import short_name
from zuno.kernel.canonical import digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.lock import ProcessLock, hold
from zuno.kernel.logs import log_under
from zuno.kernel.numbers_text import price_text
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.markets.market import Symbol, describe_limits, describe_venue
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.learn.evaluator import Evaluation, Evaluator
from zuno.trading.model.market import DAY_MS, parse_mode
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE, SleeveShares
from zuno.trading.model.tilts import TiltDay, describe_tilt
from zuno.trading.model.trade_events import DAY_SUMMARY, DaySummary, account_mode, account_name, paper_account
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.protections import describe_lock
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service import desk_view
from zuno.trading.service.account_page import require_account
from zuno.trading.service.daily_targets import TARGETS_DAY, DailyTargets, TargetsDay
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.live_start import Confirm, StartPermit, check_account_choice
from zuno.trading.service.own_strategies import OwnStrategies
from zuno.trading.service.runs import Cycles
from zuno.trading.watch.desk_loop import DeskLoop, DeskPlan, Job, JobKind, MarketClock

EVALUATED: Final = "trading_evaluation"
STOP_REQUEST: Final = "trading_stop"
"""Kinds of the journal's entries that the desk's schedule is made of."""
_DESK: Final = Author("desk")
_LOG: Final = logging.getLogger(__name__)
_OWNER: Final = Author("owner")


class EvaluationSlot(Wire):
    """What was closed and learned from by the beginning of a day."""

    account: str
    day: int
    trades: int
    post_mortems: Annotated[int, Field(exclude_if=lambda count: not count)] = 0
    """Written by this evaluation: what the desk closed itself was learned from before."""
    vetoes: Annotated[int, Field(exclude_if=lambda count: not count)] = 0
    """Decisions that were vetoed or cut and resolved since."""


class StopRequest(Wire):
    account: str
    at: int


Hear = Callable[[desk_view.DeskEvent], None]


@dataclass(frozen=True, slots=True)
class PermittedRun:
    """One run that acts at an exchange, or on paper where live has no record yet."""

    account: str | None
    """As `--account` names it."""
    notes: tuple[str, ...]
    cycles: Cycles


@dataclass(frozen=True, slots=True)
class DeskBackends:
    journal: Callable[[], Awaitable[Journal]]
    log: TradeLog
    desk: TradingDesk
    live: bool
    open_gate: Callable[[str, Callable[[], Millis], str | None], Awaitable[OrderGate]]
    """The gate of an account, by a clock. It places entries unless a reason not to is given."""
    cycles: Callable[[OrderGate], Cycles]
    lock: Callable[[str], ProcessLock]
    """One desk for an account at a time."""
    now: Callable[[], Millis]
    evaluator: Evaluator
    collect: Callable[[Sequence[Symbol], asyncio.Event], Coroutine[None, None, None]] | None = None
    """Keeps the market as it comes, until it is stopped."""
    beside: Sequence[Callable[[asyncio.Event], Coroutine[None, None, None]]] = ()
    """What else goes on until it is stopped, as pushes to the owner; never through recorded time."""
    permit: Callable[[str, Sequence[Symbol], str, str, Confirm], Awaitable[StartPermit]] | None = None
    """Whether an account at an exchange may be traded (`LiveStart`); None where none can be."""
    ping: Callable[[bool], Awaitable[None]] | None = None
    """Asked after each cycle, with whether it ended well; never through recorded time. It never raises."""
    shadow: OwnStrategies | None = None
    """The owner's own strategies, asked once a day."""
    targets: DailyTargets | None = None
    """Decides what sleeves hold and has it carried out; None: the debate's trades are all there is."""
    shares: SleeveShares | None = None
    """What a paper account's sleeves are to have; None: as they were."""
    find_account: Callable[[str | None], str | None] = lambda name: name
    """The whole name of an account that `--account` means."""
    venues: Sequence[Venue] = DEFAULT_VENUES
    """Those of the routes: what they cannot do is said before anything is decided for them."""


class TradeDesk:
    def __init__(self, backends: DeskBackends) -> None:
        self._with = backends

    async def start(
        self,
        hear: Hear,
        stop: asyncio.Event,
        *,
        symbols: Sequence[str] = (),
        mode: str = "swing",
        account: str | None = None,
        speed: str | None = None,
        since: str | None = None,
        until: str | None = None,
        live: bool = False,
        confirm: Confirm = lambda word, what: False,
    ) -> desk_view.DeskRunView:
        """Run the desk until `stop`, or through recorded time (`speed` max, from and until given moments). `live`: with
        money, once everything is there and the word was typed."""
        desk = self._with.desk
        chosen = tuple(dict.fromkeys(map(desk.parse_symbol, symbols))) or desk.markets
        plan = DeskPlan(chosen, parse_mode(mode))
        account = check_account_choice(self._with.find_account(account), live=live)
        fast = _parse_speed(speed, since, until)
        if account is not None and account_mode(account) != "paper":
            if fast:
                raise UsageError("Recorded time is traded on paper; leave --speed out, or --live.")
            permit = await self._permit(account, plan.symbols, confirm)
            with hold(self._with.lock(permit.account)):
                return await self._run_live(plan, permit.account, hear, stop, permit.notes, permit.watch_only)
        if not fast and not self._with.live:
            raise Refused(
                "The market here is a recording, which does not go on by itself: `zuno trade start --speed max --from "
                "24h` runs the desk through its last day, and ZUNO_MARKET=live trades on paper as it happens."
            )
        first = await self._with.desk.moment(plan.symbols[0], None)
        name = paper_account(first.origin, account or "")
        with hold(self._with.lock(name)):
            if fast:
                return await self._run_recorded(plan, name, since, until, hear, stop)
            notes = ("PAPER: no order leaves this machine", *self._describe_limits())
            return await self._run_live(plan, name, hear, stop, notes)

    def _describe_limits(self) -> list[str]:
        return [describe_venue(venue) for venue in self._with.venues if describe_limits(venue)]

    @asynccontextmanager
    async def open_run(
        self, symbol: str, account: str | None, confirm: Confirm, *, live: bool = False
    ) -> AsyncIterator[PermittedRun | None]:
        """For one run that acts at an exchange; None: on paper, where nothing is asked. The account is this process's
        alone until the run has ended, and entries that still wait then are cancelled. `Refused` while its desk runs."""
        account = check_account_choice(self._with.find_account(account), live=live)
        if account is None or account_mode(account) == "paper":
            yield None
            return
        permit = await self._permit(account, (self._with.desk.parse_symbol(symbol),), confirm)
        with hold(self._with.lock(permit.account)):
            gate = await self._with.open_gate(permit.account, self._with.now, permit.watch_only)
            notes = permit.notes
            if gate.live:
                notes += ("what of an entry is not filled when the run ends is cancelled",)
            await gate.reconcile()
            if permit.watch_only is not None:
                await gate.end_entries(permit.watch_only)
            await self._with.evaluator.try_to_learn_from(gate)  # before the run recalls
            try:
                yield PermittedRun(permit.option, notes, self._with.cycles(gate))
            finally:
                if gate.live and (left := await _end_entries(gate, "the run has ended")) is not None:
                    raise Unavailable(left)
            await self._with.evaluator.try_to_learn_from(gate)

    async def _permit(self, account: str, symbols: Sequence[Symbol], confirm: Confirm) -> StartPermit:
        if self._with.permit is None:
            raise Refused("No exchange can be reached here.")
        origin = self._with.desk.origin
        return await self._with.permit(account, symbols, origin, paper_account(origin), confirm)

    async def stop(self, account: str | None = None) -> desk_view.DeskStopView:
        """Ask the desk of an account to end, wherever it runs; stops at the venue stay."""
        account = self._with.find_account(account)
        name = account_name(self._with.desk.origin, account)
        await require_account(self._with.log, self._with.desk.origin, account)
        journal = await self._with.journal()
        await journal.append(kind=STOP_REQUEST, author=_OWNER, payload=StopRequest(account=name, at=self._with.now()))
        return desk_view.DeskStopView(
            account=name,
            said=f"The desk of {name} ends within seconds, if it runs. Stops that an exchange holds stay there; where "
            "the desk watches them, nobody does until it runs again.",
        )

    # -- recorded and live

    async def _run_recorded(
        self, plan: DeskPlan, account: str, since: str | None, until: str | None, hear: Hear, stop: asyncio.Event
    ) -> desk_view.DeskRunView:
        begin = max([(await self._with.desk.moment(symbol, since or "24h")).as_of for symbol in plan.symbols])
        end = min([(await self._with.desk.moment(symbol, until)).as_of for symbol in plan.symbols])
        if begin >= end:
            raise UsageError(f"--from {iso(begin)} is not before the end, {iso(end)}.")
        clock = MarketClock(begin)
        gate = await self._with.open_gate(account, clock.now, None)
        book = await gate.refresh()
        if book.recorded is False or (book.recorded is None and book.count and self._with.live):
            raise Refused(f"The account {account} goes by real time; give --account NAME for one in recorded time.")
        newest, notes = book.newest, tuple[str, ...]()
        if newest > begin:
            if newest >= end:
                raise Refused(
                    f"The account {account} has come to {iso(newest)} already; an account is written forward: give "
                    "--account NAME for another one."
                )
            notes = (f"the account has come to {iso(newest)}: it goes on from there",)
            clock.move(newest)
            begin = clock.now()
        run = _DeskRun(self._with, gate, plan, account, hear, live=False)
        await run.start()
        for limits in self._describe_limits():
            run.note(limits)
        await gate.set_clock(recorded=True)
        await self._set_shares(gate)
        await DeskLoop(gate, plan, run, run.note).run_recorded(clock, end, stop)
        await gate.set_clock(recorded=True)
        return await run.summarise(begin, clock.now(), notes)

    async def _set_shares(self, gate: OrderGate) -> None:
        """Those of the settings. `UsageError` or `Refused` for a sleeve that may not have one."""
        if self._with.shares not in (None, gate.book.shares):
            if self._with.shadow is not None:
                await self._with.shadow.check_shares(self._with.shares)
            await gate.set_shares(self._with.shares)

    async def _run_live(
        self,
        plan: DeskPlan,
        account: str,
        hear: Hear,
        stop: asyncio.Event,
        notes: tuple[str, ...],
        watch_only: str | None = None,
    ) -> desk_view.DeskRunView:
        began = self._with.now()
        gate = await self._with.open_gate(account, self._with.now, watch_only)
        check_real_time(await gate.refresh(), account)
        run = _DeskRun(self._with, gate, plan, account, hear, live=True)
        await run.start()
        if account_mode(account) == "paper":
            await gate.set_clock(recorded=False)
            await self._set_shares(gate)
        elif mandate := gate.book.active_mandate(gate.now()):
            await gate.set_shares(mandate.shares)
        for note in notes:
            run.note(note)
        if watch_only is not None:
            # Nothing is opened, by what waits from before neither; what cannot be cancelled now the watch cancels.
            await gate.end_entries(watch_only)
        beside = [asyncio.create_task(act(stop)) for act in self._with.beside]
        if self._with.collect is not None:
            beside.append(asyncio.create_task(self._with.collect(plan.symbols, stop)))
        try:
            await DeskLoop(gate, plan, run, run.note).run_live(self._with.now, stop, run.is_stopped)
        finally:
            stop.set()
            if (left := await _end_entries(gate, "the desk has ended")) is not None:
                run.note(left)
            await asyncio.gather(*beside, return_exceptions=True)
        return await run.summarise(began, self._with.now(), notes)


class _DeskRun:
    def __init__(
        self, backends: DeskBackends, gate: OrderGate, plan: DeskPlan, account: str, hear: Hear, *, live: bool
    ) -> None:
        """`live`: by the wall's clock, and not through recorded time."""
        self._with, self._gate, self._plan, self._account = backends, gate, plan, account
        self._hear, self._live = hear, live
        self._cycles = backends.cycles(gate)
        # A live market's shadows are of its days as they happen.
        self._shadow = backends.shadow if live or not backends.live else None
        self._ran = self._closed_before = self._told_closed = self._stop_seen = 0
        self._opened: dict[str, bool] = {}
        self._told_locks: set[tuple[str, str | None, int | None]] = set()

    async def start(self) -> None:
        book = await self._gate.refresh()
        self._closed_before = self._told_closed = len(book.closed)
        self._opened = dict.fromkeys(book.trades, False)
        journal = await self._with.journal()
        latest = await journal.latest(1, kind=STOP_REQUEST)
        self._stop_seen = latest[0].seq if latest else 0

    async def is_stopped(self) -> bool:
        journal = await self._with.journal()
        asked = [entry for entry in await journal.latest(5, kind=STOP_REQUEST) if entry.seq > self._stop_seen]
        return any(entry.payload.get("account") == self._account for entry in asked)

    def note(self, text: str) -> None:
        self._tell("note", text)

    # -- DeskWork

    async def is_done(self, job: Job) -> bool:
        if job.kind is JobKind.CYCLE:
            return await self._cycles.has_ended(_run_id(job, self._account))
        if job.kind is JobKind.SHADOW:
            return self._shadow is None  # a day is asked for once, whoever asks
        if job.kind is JobKind.TARGETS and (
            self._with.targets is None or {DEBATE, LP_HEDGE}.issuperset(self._gate.book.sleeves)
        ):
            return True
        kind = {JobKind.DAILY_SUMMARY: DAY_SUMMARY, JobKind.TARGETS: TARGETS_DAY}.get(job.kind, EVALUATED)
        journal = await self._with.journal()
        return bool(await journal.latest(1, request_id=_job_id(job, self._account), kind=kind))

    async def run_cycle(self, job: Job, at: Millis) -> None:
        ping = self._with.ping if self._live else None
        try:
            with log_under(_run_id(job, self._account)):
                await self._run_cycle(job, at)
        except Exception:
            if ping is not None:
                await ping(False)
            raise
        if ping is not None:
            await ping(True)

    async def _run_cycle(self, job: Job, at: Millis) -> None:
        assert job.symbol is not None
        assert job.mode is not None
        as_of = None if self._live and self._with.desk.live(None) else str(at)
        about = job.symbol.value, job.mode.value, as_of
        run_id = _run_id(job, self._account)
        outcome = await self._cycles.run(*about, chart=False, account=self._account, run_id=run_id)
        self._ran += 1
        ruling = outcome.ruling
        done = await self._cycles.execution(outcome.run_id)
        came = "" if done is None or not done.reason else f" ({done.reason})"
        why = f" by {ruling.veto}" if ruling.veto else ""
        state = "" if done is None or done.state == "held" else f", {done.state}"
        self._tell("cycle", f"{outcome.run_id} {ruling.decision}{why}{state}{came}", job.symbol)
        self.tell_changes()

    async def set_targets(self, job: Job, at: Millis) -> None:
        assert self._with.targets is not None
        lines = await self._with.targets.set(self._gate, job.slot, at)
        for line in lines:
            if line.state != "held":
                why = f": {line.why}" if line.why else ""
                self._tell("targets", f"{line.sleeve} {line.weight:.1%} {line.state}{why}", Symbol(line.market))
        await self._keep(job, TARGETS_DAY, TargetsDay(account=self._account, day=job.slot, targets=lines))
        self.tell_changes()

    async def summarise_day(self, job: Job, at: Millis) -> None:
        """Of the day that ended as this slot began."""
        book, day = self._gate.book, job.slot - DAY_MS
        closed = [summary for summary in book.closed if day <= summary.closed < job.slot]

        def total(name: str) -> dict[str, float]:
            return _by_currency(
                {
                    venue: sum((getattr(s, name) for s in closed if s.exchange is venue), Decimal(0))
                    for venue in book.venues
                }
            )

        summary = DaySummary(
            account=self._account,
            day=day,
            trades=len(closed),
            net=total("net_pnl"),
            fees=total("fees"),
            funding=total("funding"),
            cash=_by_currency({venue: book.cash(venue) + book.margin(venue) for venue in book.venues}),
            open_trades=len(book.trades),
        )
        await self._keep(job, DAY_SUMMARY, summary)

    async def _keep(self, job: Job, kind: str, result: Wire) -> None:
        journal = await self._with.journal()
        await journal.append_once(kind=kind, author=_DESK, payload=result, request_id=_job_id(job, self._account))

    async def ask_strategies(self, job: Job, at: Millis) -> None:
        assert self._shadow is not None
        for news in await self._shadow.ask_all(at):
            self.note(news)

    async def evaluate(self, job: Job, at: Millis) -> None:
        """Whatever is not learned from yet, also of trades that somebody else closed."""
        learned = await self._with.evaluator.evaluate(self._account, self._with.desk.origin, self._gate.now())
        self._tell_learned(learned)
        for day in await self._with.evaluator.tilts.score(self._account, self._gate.now()):
            self._tell("learned", describe_tilts(day))
        closed = sum(summary.closed < job.slot for summary in self._gate.book.closed)
        found = {"post_mortems": len(learned.post_mortems), "vetoes": len(learned.vetoes)}
        slot = EvaluationSlot(account=self._account, day=job.slot, trades=closed, **found)
        await self._keep(job, EVALUATED, slot)

    async def learn(self) -> None:
        self._tell_learned(await self._with.evaluator.learn_from(self._gate))

    def _tell_learned(self, learned: Evaluation) -> None:
        for post_mortem in learned.post_mortems:
            self._tell("learned", desk_view.describe_post_mortem(post_mortem), post_mortem.symbol)
        for lesson in learned.lessons:
            self._tell("learned", f"lesson {lesson.id} from {len(lesson.cases)} trades: {lesson.text}")
        for note in learned.notes:
            self.note(note)

    # -- what is told

    def tell_changes(self) -> None:
        """Trades that were opened or closed, and locks, since it was told last."""
        book = self._gate.book
        for trade in book.trades.values():
            if trade.id not in self._opened:
                self._opened[trade.id] = trade.exploration
                kind = " (exploration)" if trade.exploration else ""
                entry = price_text(float(trade.entry))
                said = f"{trade.id} {trade.side} {trade.quantity} at {entry}, {trade.exchange}{kind}"
                self._tell("opened", said, trade.symbol)
        for summary in book.closed[self._told_closed :]:
            self._opened.setdefault(summary.trade, summary.exploration)
            said = f"{summary.trade} {summary.reason}: {summary.net_pnl:+.2f} {summary.exchange.currency}"
            self._tell("closed", said, summary.symbol)
        self._told_closed = len(book.closed)
        for lock in book.locks.values():
            key = (lock.protection.value, lock.symbol, lock.until)
            if key not in self._told_locks:
                self._told_locks.add(key)
                self._tell("lock", describe_lock(lock), lock.symbol)

    def _tell(self, what: desk_view.DeskEventKind, said: str, symbol: Symbol | None = None) -> None:
        _LOG.info("%s %s", symbol or "desk", said)
        at = iso(self._gate.now())
        self._hear(desk_view.DeskEvent(at=at, what=what, symbol=None if symbol is None else symbol.value, said=said))

    async def summarise(self, since: Millis, until: Millis, notes: tuple[str, ...]) -> desk_view.DeskRunView:
        self.tell_changes()
        book, locks = self._gate.book, await self._gate.locks()
        closed = len(book.closed) - self._closed_before
        return desk_view.DeskRunView(
            synthetic=self._with.desk.synthetic,
            origin=self._with.desk.origin,
            live=self._live,
            account=self._account,
            trading=account_mode(self._account),
            mode=self._plan.mode.value,
            symbols=tuple(symbol.value for symbol in self._plan.symbols),
            since=iso(since),
            until=iso(until),
            cycles=self._ran,
            trades=closed,
            open_trades=len(book.trades),
            exploration=sum(self._opened.values()),
            ledger=await ledger_totals(self._gate, book),
            invariants=find_broken_invariant(book) or "ok",
            protections=tuple(desk_view.protection_view(lock, short_name(self._account)) for lock in locks),
            said=f"The desk ended at {iso(until)}; cycles: {self._ran}, trades closed: {closed}, "
            f"positions open: {len(book.trades)}.",
            notes=notes,
        )


async def _end_entries(gate: OrderGate, reason: str) -> str | None:
    """What fills after the process has gone would have no stop. What is to be said where entries still wait."""
    try:
        left = await gate.end_entries(reason)
        why = "; ".join(gate.troubles.values())
    except ZunoError as error:
        left, why = ("entries",), str(error)
    if not left:
        return None
    return f"NOT CANCELLED at the exchange: {', '.join(left)} ({why}). Cancel them there, or start the desk again."


async def ledger_totals(gate: OrderGate, book: TradingBook) -> desk_view.LedgerTotals:
    marks = await gate.marks()
    equity: dict[str, float | None] = {}
    for exchange in book.venues:
        known = {symbol: price for (at, symbol), price in marks.items() if at is exchange}
        whole = all(trade.symbol in known for trade in book.trades_at(exchange))
        before = equity.get(exchange.currency, 0.0)
        worth = float(book.equity(exchange, known)) if whole else None
        equity[exchange.currency] = None if worth is None or before is None else before + worth
    return desk_view.LedgerTotals(
        debits=_by_currency(book.ledger.debits),
        credits=_by_currency(book.ledger.credits),
        cash=_by_currency({venue: book.cash(venue) + book.margin(venue) for venue in book.venues}),
        equity=equity,
    )


def _by_currency(amounts: Mapping[Venue, Decimal]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for venue, amount in amounts.items():
        totals[venue.currency] = totals.get(venue.currency, 0.0) + float(amount)
    return totals


def find_broken_invariant(book: TradingBook) -> str | None:
    """The ledger was checked after every event; what is left is that every position has its stop, or another leg,
    which of `lp-hedge` is on a chain."""
    for exchange in book.venues:
        if book.ledger.debits[exchange] != book.ledger.credits[exchange]:
            return f"debits and credits at {exchange} differ"
    for trade in book.positions.values():
        hedge = book.find_hedge(trade)
        if trade.stop is None and hedge is None and trade.sleeve != LP_HEDGE:
            return f"{trade.id} has no stop"
        if hedge is not None and not book.is_worked(trade.symbol, trade.sleeve) and not book.is_matched(hedge):
            return f"the legs of {hedge.id} do not match"
    return None


def check_real_time(book: TradingBook, account: str) -> None:
    """`Refused` for an account in recorded time: what a recording earned is never mixed with what happens now."""
    if book.recorded:
        raise Refused(
            f"The account {account} is in recorded time, at {iso(book.newest)}; give --account NAME for one in real "
            "time."
        )


def describe_tilts(scored: TiltDay) -> str:
    said = ", ".join(f"{tilt.market} {describe_tilt(tilt.tilt)}" for tilt in scored.markets)
    return f"tilt of {iso(Millis(scored.day))[:10]}: {said}; weight {scored.weight:.2f}, days scored {scored.days}"


def _parse_speed(speed: str | None, since: str | None, until: str | None) -> bool:
    """Whether recorded time is driven through."""
    if speed is None:
        if since is not None or until is not None:
            raise UsageError("--from and --until belong to recorded time: give --speed max.")
        return False
    if speed.strip().lower() != "max":
        arguments.parse_amount(speed)
        raise UsageError("Recorded time runs at --speed max.")
    return True


def _run_id(job: Job, account: str) -> str:
    return f"run_{job.name(account)}"


def _job_id(job: Job, account: str) -> str:
    return f"job_{job.name(account)}"


def desk_name(account: str) -> str:
    return digest(account.encode())[:16]
