"""The trading desk's cycles as a person asks for them: run one, take a broken one up again, look at what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from zuno.journal.port import Entry, Journal
from zuno.kernel.canonical import Digest, decode_canonical, digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError, ZunoError
from zuno.kernel.lock import ProcessLock
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import ReplayView
from zuno.llm.ask import ModelContext
from zuno.llm.names import thinking_tokens
from zuno.llm.port import Attempt, Image
from zuno.trading.agents.case import Case, build_case, replace_bundle, without_source_text
from zuno.trading.chart.charting import describe, describe_trade, trade_plan
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import ExecutionResult, OrderGate
from zuno.trading.measure.frames import FrameCache
from zuno.trading.model.account import Account
from zuno.trading.model.bundle import Bundle, Slot, add_slots, read_bundle
from zuno.trading.model.cycle import EDITION, STARTED, Decision, Node
from zuno.trading.model.market import Mode, Symbol, parse_mode, parse_symbol
from zuno.trading.model.memory import CASE_RECORD, CaseRecord
from zuno.trading.model.outcome import Chart, NodeEvent, Outcome, content_for_hash, recorded_content, with_hash
from zuno.trading.model.record import ClosedTrade, DeskRecord, Exploration, record_slot
from zuno.trading.model.trade_events import account_mode, account_name
from zuno.trading.ports.record import TradeRecord
from zuno.trading.rules.calibration import calibrate
from zuno.trading.rules.closed_trades import list_closed_trades
from zuno.trading.rules.ruling import expire_ruling, valid_until
from zuno.trading.run.nodes import Cycle, CycleSources
from zuno.trading.run.nodes import Listen as Listen
from zuno.trading.run.past_runs import PastRuns, list_explorations, read_previous_decision
from zuno.trading.run.record import (
    DESK,
    ENDED,
    EXPIRED,
    EXPLORED,
    BundleName,
    CasesRecord,
    ChartRecord,
    ExecutionRecord,
    ExplorationClaim,
    GuardRecord,
    JudgeRecord,
    MarketMoment,
    ReportRecord,
    RunExpiry,
    RunJournal,
    RunRequest,
    RunSummary,
    kind_of,
    summarise_run,
)
from zuno.trading.service.features import TradingDesk

if TYPE_CHECKING:
    from zuno.trading.run.graph import Saver

DECIDED: Final = ENDED
"""The kind of entry that ends a run."""
_RUN: Final = re.compile(r"run_[0-9a-f]{16}")
MOST: Final = 500
"""Runs that are listed or looked back at."""
MOST_CASES: Final = 50
"""Labelled trades that are looked back at."""
PAINTING_SECONDS: Final = 60.0
REVIEW_TOKENS: Final = (5_000, 700)
"""What asking for a review takes, at most and as a rule: fifteen thousand characters in, a few sentences out. What a
model may think beside it comes on top."""
_PICTURES: Final = ("image/png", "image/jpeg", "image/webp")

Slots = Callable[[str, Millis, bool, Account | None], Awaitable[Sequence[Slot]]]
"""What is held in the market of that origin, strictly before a moment; and whether that moment is the present. The
account is given where a cycle acts for one."""
Recall = Callable[[Case], Awaitable[Sequence[Slot]]]
"""What the desk remembers of a case: slots that its bundle did not have."""


def _ignore_event(event: NodeEvent) -> None:
    """Nobody listens: everything is on record all the same."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as the journal knows it."""

    run_id: str
    symbol: Symbol
    mode: Mode
    as_of: Millis | None
    """None: it was cut off before the moment was known."""
    at: Millis
    """When it was started, by the clock on the wall."""
    state: Literal["ended", "unfinished", "expired"]
    """`expired`: an older edition began it, and nobody can finish it any more."""
    end: RunSummary | None
    """None as long as it has not ended."""
    origin: str | None = None
    """Whose past it is about; None as long as the moment is not known."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that is on record of a run: for a report or for whoever asks why."""

    line: RunLine
    outcome: Outcome | None
    """None as long as it has not ended."""
    bundle: Bundle
    attempts: tuple[Attempt, ...]
    """What models were asked and said, in that order."""
    picture: bytes | None
    nodes: tuple[Node, ...] = ()
    """The steps that are on record."""
    live: bool = False
    account: str | None = None
    """Who was to act on the ruling, by its whole name."""


@dataclass(frozen=True, slots=True)
class ReplayContext:
    """Where a recorded run is held again: a journal that is forgotten, models that say what was said."""

    journal: Journal
    model_context: Callable[[RunJournal], ModelContext]
    differences: Callable[[], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RunBackends:
    """What cycles lean on; wiring chooses it."""

    journal: Callable[[], Awaitable[Journal]]
    held: Slots
    record: TradeRecord
    model_context: Callable[[RunJournal], ModelContext]
    checkpoints: Callable[[], AbstractAsyncContextManager[Saver]]
    lease: Callable[[Symbol], ProcessLock]
    rehearse: Callable[[Sequence[Attempt], Mapping[str, str]], Awaitable[ReplayContext]]
    """From the attempts on record, and by role why no model sat."""
    now: Callable[[], Millis]
    random: Callable[[int], bytes]
    code: Callable[[], str]
    real_time_record: TradeRecord | None = None
    """Of paper trades that were ruled in real time: what counts for an account at an exchange. None: none do."""
    recall: Recall | None = None
    """None: nothing is remembered."""
    gate: Callable[[str, Millis], Awaitable[OrderGate]] | None = None
    """Opens the gate of an account at a moment of the market, which a live one reads off the wall; None where no order
    can be placed."""


class Cycles:
    """Runs of the trading desk. One symbol is argued about by one process of a home at a time."""

    def __init__(self, desk: TradingDesk, backing: RunBackends) -> None:
        self._desk = desk
        self._with = backing
        self._past: PastRuns | None = None
        self._frames = FrameCache()

    async def run(
        self,
        symbol: str,
        mode: str = "swing",
        as_of: str | None = None,
        listen: Listen = _ignore_event,
        *,
        chart: bool = True,
        account: str | None = None,
        run_id: str | None = None,
    ) -> Outcome:
        """Argue about a symbol at a moment (none: now, or the end of the recording) and rule.

        `account`: who acts on the ruling, by its whole name (`account_name`). `run_id`: of a run that has a name before
        it begins, as scheduled ones do; begun before, it is resumed.
        """
        asked = RunRequest(
            symbol=parse_symbol(symbol),
            mode=parse_mode(mode),
            as_of=as_of,
            live=self._desk.live(as_of),
            chart=chart,
            edition=EDITION,
            account=account,
        )
        if run_id is not None and await (await self._with.journal()).latest(1, request_id=run_id, kind=STARTED):
            return await self.resume(run_id, listen)
        async with self._lock_symbol(asked.symbol):
            # A moment that cannot be is found out before anything is on record.
            collected = None if asked.live else await self._desk.moment(asked.symbol, asked.as_of)
            run_id = run_id or "run_" + hashlib.sha256(self._with.random(16)).hexdigest()[:16]
            notebook = RunJournal(await self._with.journal(), run_id)
            await notebook.keep(STARTED, asked)
            return await self._finish_run(notebook, asked, listen, collected)

    async def account_name(self, symbol: str, as_of: str | None, name: str | None) -> str:
        """The whole name of an account: of the market that is read here, or at the exchanges."""
        if not self._desk.live(as_of):
            await self._desk.moment(parse_symbol(symbol), as_of)
        return account_name(self._desk.origin, name)

    async def has_ended(self, run_id: str) -> bool:
        journal = await self._with.journal()
        return bool(await journal.latest(1, request_id=run_id, kind=ENDED))

    async def execution(self, run_id: str) -> ExecutionRecord | None:
        """What came of a run's ruling; None where nobody was to act on it."""
        notebook = await self._open_journal(run_id)
        if not notebook.has(Node.EXECUTE_TRADE) or "skipped" in notebook.raw(Node.EXECUTE_TRADE):
            return None
        return notebook.read(Node.EXECUTE_TRADE, ExecutionRecord)

    async def resume(self, run_id: str, listen: Listen = _ignore_event) -> Outcome:
        """Take a run up where it was cut off; what is on record is not said again. One that ended is as it was. One of
        an older edition ends `expired`, which is `Refused`."""
        notebook = await self._open_journal(run_id)
        asked = notebook.read(STARTED, RunRequest)
        if not notebook.has(ENDED):
            async with self._lock_symbol(asked.symbol):
                notebook = await self._open_journal(run_id)
                if not notebook.has(ENDED) and asked.older:
                    await self._expire(notebook, asked)
                if not notebook.has(ENDED):
                    return await self._finish_run(notebook, asked, listen, None)
        return _ended_outcome(notebook)

    async def outcome(self, run_id: str) -> Outcome:
        """`NotFound` for a run nobody started, `Refused` for one that has not ended."""
        return _ended_outcome(await self._open_journal(run_id))

    async def record(self, run_id: str) -> RunRecord:
        """A run that has not ended has no outcome."""
        journal = await self._with.journal()
        notebook = await self._open_journal(run_id)
        if not notebook.has(Node.CONTEXT_GATHERING):
            _check_current(notebook)
            came = "the moment was known" if notebook.has(Node.COLLECT_DATA) else "it had begun"
            raise Refused(
                f"{run_id} was cut off when {came} and before the market was; `zuno trade resume {run_id}` takes it up "
                "again."
            )
        (started,) = await journal.latest(1, request_id=run_id, kind=STARTED)
        bundle = await _read_bundle(journal, notebook.read(Node.CONTEXT_GATHERING, BundleName).bundle)
        chart = notebook.read(Node.GENERATE_CHART, ChartRecord).chart if notebook.has(Node.GENERATE_CHART) else None
        asked = notebook.read(STARTED, RunRequest)
        ended = notebook.has(ENDED)
        return RunRecord(
            line=_run_line(started, bundle, notebook.read(ENDED, RunSummary) if ended else None),
            outcome=_ended_outcome(notebook) if ended else None,
            bundle=bundle,
            attempts=tuple(notebook.attempts),
            picture=None if chart is None else await journal.bundle(Digest(chart.sha256)),
            nodes=tuple(node for node in Node if notebook.has(node)),
            live=asked.live,
            account=asked.account,
        )

    async def paint_trade(self, record: RunRecord) -> bytes | None:
        """The trade of a run, drawn as a PNG; None where nothing was to be opened, or the run was without a chart."""
        outcome = record.outcome
        plan = None if outcome is None or outcome.chart is None else trade_plan(outcome)
        if plan is None or self._desk.painter.media_type != "image/png":
            return None
        picture = describe_trade(without_source_text(record.bundle), plan)
        try:
            return await asyncio.wait_for(self._desk.painter.paint(picture), PAINTING_SECONDS)
        except Exception:  # a vendor's library draws: whatever it raises, the page can do without the picture
            return None

    async def runs(self, count: int | None = None, before: str | None = None) -> tuple[RunLine, ...]:
        """The newest first; `before`: those that were started before this one. Of each the beginning and the end are
        read, whatever was said in between. `UsageError` where nobody started that one."""
        journal = await self._with.journal()
        past, start = self._past_runs(journal), None
        if before is not None:
            named = await journal.latest(1, request_id=before, kind=STARTED) if _RUN.fullmatch(before) else []
            if not named:
                raise UsageError(f"{plain_text(before, 40)!r} is no run of this home.")
            start = named[0].seq
        lines = []
        if count is None:
            await past.list_ended()  # read at once what would be asked for one by one
        for entry in await journal.latest(count or MOST, kind=STARTED, before=start):
            run_id = entry.request_id or ""
            end = await past.find_summary(run_id)
            known = [] if end else await journal.latest(1, request_id=run_id, kind=kind_of(Node.COLLECT_DATA))
            moment = MarketMoment.model_validate(dict(known[0].payload)) if known else None
            lines.append(_run_line(entry, end or moment, end))
        return tuple(lines)

    async def replay(self, run_id: str) -> ReplayView:
        """Argue again from what is on record, with no key and no network, and compare what is decided.

        Nothing is written, and nobody is kept from running.
        """
        journal = await self._with.journal()
        notebook = await self._open_journal(run_id)
        then = _ended_outcome(notebook)
        (first,), (last,) = [await journal.latest(1, request_id=run_id, kind=kind) for kind in (STARTED, ENDED)]
        await journal.verify_range(first.seq, last.seq)
        if (asked := notebook.read(STARTED, RunRequest)).older:
            problems = _record_problems(notebook)
            return self._replay_view(then, asked.edition, None, problems, identical=None)
        whys = {voice.role: voice.why for voice in then.voices if voice.source == "deterministic"}
        # Who was asked and then not seated when the run went on has attempts on record, and did not speak.
        attempts = [attempt for attempt in counted_attempts(notebook.attempts) if attempt.role not in whys]
        rehearsal = await self._with.rehearse(attempts, whys)
        problems = []
        now: Outcome | None = None
        try:
            again = RunJournal(rehearsal.journal, run_id)
            cycle = Cycle(
                again,
                _recorded_sources(notebook, journal),
                rehearsal.model_context(again),
                _ignore_event,
                self._with.code(),
            )
            await _take_steps(cycle, again, None)
            now = _outcome_at_end(cycle.outcome, notebook.read(ENDED, RunSummary))
        except ZunoError as error:
            problems.append(f"the replay ended in an error: {error}")
        problems += [] if now is None else [*rehearsal.differences(), *_list_differences(then, now)]
        return self._replay_view(then, asked.edition, now, problems, identical=not problems)

    def _replay_view(
        self, then: Outcome, edition: int, now: Outcome | None, problems: Sequence[str], *, identical: bool | None
    ) -> ReplayView:
        return ReplayView(
            ok=not problems,
            identical=identical,
            edition=edition,
            request_id=then.run_id,
            hash=then.hash,
            replayed_hash=None if now is None else now.hash,
            code_then=then.code,
            code_now=self._with.code(),
            differences=tuple(problems),
        )

    # -- one run

    async def _finish_run(
        self, notebook: RunJournal, asked: RunRequest, listen: Listen, collected: MarketMoment | None
    ) -> Outcome:
        model_context = self._with.model_context(notebook)
        sources = await self._sources(notebook, asked, model_context, collected)
        cycle = Cycle(notebook, sources, model_context, listen, self._with.code())
        for node in Node:
            if notebook.has(node):
                listen(cycle.event(node))
        async with self._with.checkpoints() as saver:
            await _take_steps(cycle, notebook, saver)
            reported = cycle.outcome
            acted = cycle.execution is not None and cycle.execution.intent is not None
            late = asked.live and not acted and self._with.now() > valid_until(reported.mode, reported.as_of)
            outcome = _expire_outcome(reported) if late else reported
            expired = outcome is not reported
            await notebook.keep(ENDED, summarise_run(outcome, expired=expired, account=asked.account))
            await _delete_checkpoints(notebook.run_id, saver)
        return _ended_outcome(notebook)

    async def _expire(self, notebook: RunJournal, asked: RunRequest) -> None:
        """The end of a run that an older edition began: on record once, its checkpoints forgotten, and `Refused`."""
        await notebook.keep(EXPIRED, RunExpiry(why=_expiry_text(notebook.run_id, asked)))
        async with self._with.checkpoints() as saver:
            await _delete_checkpoints(notebook.run_id, saver)
        _check_current(notebook)

    async def _sources(
        self, notebook: RunJournal, asked: RunRequest, model_context: ModelContext, collected: MarketMoment | None
    ) -> CycleSources:
        journal = notebook.journal
        past = self._past_runs(journal)

        async def open_gate(as_of: Millis) -> OrderGate | None:
            if asked.account is None:
                return None
            if self._with.gate is None:
                raise Refused("No orders can be placed here.")
            gate = await self._with.gate(asked.account, as_of)
            newest = (await gate.refresh()).newest
            if not asked.live and newest > as_of:
                raise Refused(
                    f"The account {asked.account} has come to {iso(newest)}, and {iso(as_of)} is before it; an account "
                    "is written forward: take a later moment, or another account (--account NAME)."
                )
            return gate

        async def execute(order: RulingToExecute) -> ExecutionResult:
            gate = await open_gate(order.as_of)
            assert gate is not None
            return await gate.execute(order)

        async def collect() -> MarketMoment:
            if asked.live != self._desk.live(asked.as_of):
                begun = "live" if asked.live else "recorded"
                raise Refused(f"This run was begun on a {begun} market; resume it with ZUNO_MARKET={begun}.")
            return collected or await self._desk.moment(asked.symbol, asked.as_of)

        async def gather(moment: MarketMoment) -> tuple[Digest, Case]:
            if moment.origin != self._desk.origin:
                raise Refused(
                    f"This run is about {moment.origin}, and this home now reads {self._desk.origin}: resume it "
                    "with the market it was begun with."
                )
            gate = await open_gate(moment.as_of)
            account = None if gate is None else (await gate.advance()).to_account()
            slots = [
                *await self._with.held(moment.origin, moment.as_of, asked.live, account),
                *await read_previous_decision(past, asked, moment),
                await self._record_slot(past, asked, moment, gate),
            ]
            bundle = await self._desk.read_at(asked.symbol, asked.mode, moment, slots)
            case = build_case(bundle, self._frames)
            if self._with.recall is not None:
                bundle = add_slots(bundle, await self._with.recall(case))
                case = replace_bundle(case, bundle)
            return await self._desk.keep(bundle), case

        async def paint(bundle: Bundle) -> ChartRecord:
            return await self._paint(bundle, journal) if asked.chart else ChartRecord(chart=None)

        async def ahead(decision: Decision) -> float:
            return await price_review(decision, model_context)

        async def claim_exploration(own: Exploration) -> tuple[Exploration, ...]:
            moment = notebook.read(Node.COLLECT_DATA, MarketMoment)
            claim = ExplorationClaim(
                origin=moment.origin, symbol=asked.symbol, mode=asked.mode, explored=own, account=asked.account
            )
            entry = await journal.append_once(kind=EXPLORED, author=DESK, payload=claim, request_id=notebook.run_id)
            return await list_explorations(past, asked, moment, before=entry.seq)

        async def new_cases() -> tuple[str, ...]:
            if asked.account is None:
                return ()
            return await _new_cases(past, asked, notebook.read(Node.COLLECT_DATA, MarketMoment))

        return CycleSources(
            collect=collect,
            gather=gather,
            recorded=lambda name: _read_bundle(journal, name),
            paint=paint,
            image=lambda painted: _read_image(journal, painted),
            ahead=ahead,
            claim_exploration=claim_exploration,
            new_cases=new_cases,
            now=lambda node, as_of: self._with.now() if asked.live else as_of,
            execute=None if asked.account is None else execute,
        )

    def _past_runs(self, journal: Journal) -> PastRuns:
        if self._past is None or self._past.journal is not journal:
            self._past = PastRuns(journal, MOST)
        return self._past

    async def _record_slot(
        self, past: PastRuns, asked: RunRequest, moment: MarketMoment, gate: OrderGate | None
    ) -> Slot:
        """How trades of this market came out, and what was explored: in the bundle, so that a replay finds the same.
        A live account counts paper trades of the same market in real time beside its own."""
        closed: tuple[ClosedTrade, ...] = ()
        trades = self._with.record if gate is None else self._with.real_time_record if gate.live else None
        if trades is not None:
            closed = await trades.closed_trades(moment.origin, moment.as_of)
        if gate is not None:
            closed += list_closed_trades(gate.book.closed, moment.as_of)
        record = DeskRecord(
            calibrations=calibrate(closed),
            explorations=await list_explorations(past, asked, moment),
            money=gate is not None and account_mode(gate.account) == "live",
        )
        return record_slot(record, moment.as_of)

    async def _paint(self, bundle: Bundle, journal: Journal) -> ChartRecord:
        picture = describe(without_source_text(bundle))
        try:
            image = await asyncio.wait_for(self._desk.painter.paint(picture), PAINTING_SECONDS)
        except Exception as error:  # a vendor's library draws: whatever it raises, the desk can argue without a picture
            return ChartRecord(chart=None, why=f"the picture could not be painted ({type(error).__name__})")
        name = await journal.put_bundle(image)
        return ChartRecord(chart=Chart(sha256=name, media_type=self._desk.painter.media_type))

    async def _open_journal(self, run_id: str) -> RunJournal:
        run_id = run_id.strip()
        if not _RUN.fullmatch(run_id):
            raise UsageError(
                f"{plain_text(run_id, 40)!r} is no run of the trading desk; a run's id is run_ and 16 hex digits, and "
                "`zuno trade runs` lists them."
            )
        notebook = await RunJournal(await self._with.journal(), run_id).open()
        if not notebook.has(STARTED):
            raise NotFound(f"No run {run_id} in this journal; `zuno trade runs` lists them.")
        return notebook

    @asynccontextmanager
    async def _lock_symbol(self, symbol: Symbol) -> AsyncIterator[None]:
        seat = self._with.lease(symbol)
        seat.take()
        try:
            yield
        finally:
            seat.leave()


async def _take_steps(cycle: Cycle, notebook: RunJournal, saver: Saver | None) -> None:
    """Every step that was not taken yet; what the checkpoints name is what the journal holds."""
    from zuno.trading.run.graph import run_graph

    said = await run_graph(notebook.run_id, cycle.steps(), saver)
    for node in Node:
        if said.get(node) != notebook.digest(node):
            raise Broken(
                f"The checkpoints of {notebook.run_id} name another {node} than the journal holds; run `zuno journal "
                "verify`, and remove cycles.db if that finds nothing."
            )


async def _delete_checkpoints(run_id: str, saver: Saver) -> None:
    from zuno.trading.run.graph import delete_checkpoints

    await delete_checkpoints(run_id, saver)


def _check_current(notebook: RunJournal) -> None:
    """`Refused` for a run that nobody can take up again: an older edition began it."""
    asked = notebook.read(STARTED, RunRequest)
    if asked.older:
        raise Refused(_expiry_text(notebook.run_id, asked))


def _expiry_text(run_id: str, asked: RunRequest) -> str:
    return (
        f"{run_id} was begun in edition {asked.edition} and this Zuno argues in edition {EDITION}: it has expired, and "
        f"`zuno trade run {asked.symbol}` begins anew."
    )


def _record_problems(notebook: RunJournal) -> list[str]:
    """What of an older edition's run does not hold: its hash must follow from the outcome on record, and its end name
    it, unless it came too late."""
    outcome: Any = notebook.raw(Node.GENERATE_REPORT)["outcome"]
    end = notebook.read(ENDED, RunSummary)
    problems = []
    if digest(recorded_content(outcome)) != outcome["hash"]:
        problems.append("the outcome of record has another hash than its content gives")
    if not end.expired and end.hash != outcome["hash"]:
        problems.append(f"its end names {end.hash[:12]}…, its report {outcome['hash'][:12]}…")
    return problems


def _ended_outcome(notebook: RunJournal) -> Outcome:
    if not notebook.has(ENDED):
        _check_current(notebook)
        run_id = notebook.run_id
        raise Refused(f"{run_id} has not ended; `zuno trade resume {run_id}` takes it up again.")
    return _outcome_at_end(notebook.read(Node.GENERATE_REPORT, ReportRecord).outcome, notebook.read(ENDED, RunSummary))


def _outcome_at_end(reported: Outcome, end: RunSummary) -> Outcome:
    return _expire_outcome(reported) if end.expired else reported


def _expire_outcome(reported: Outcome) -> Outcome:
    ruling = expire_ruling(reported.ruling)
    return reported if ruling is reported.ruling else with_hash(reported.model_copy(update={"ruling": ruling}))


def _run_line(started: Entry, moment: Bundle | MarketMoment | RunSummary | None, end: RunSummary | None) -> RunLine:
    asked = RunRequest.model_validate(dict(started.payload))
    return RunLine(
        run_id=started.request_id or "",
        symbol=asked.symbol,
        mode=asked.mode,
        as_of=None if moment is None else moment.as_of,
        at=started.at,
        state="ended" if end is not None else "expired" if asked.older else "unfinished",
        end=end,
        origin=None if moment is None else moment.origin,
    )


async def _new_cases(past: PastRuns, asked: RunRequest, moment: MarketMoment) -> tuple[str, ...]:
    """Trades of the account in this symbol that were closed and labelled between the run before and this one."""
    runs = [
        run.as_of
        for run in await past.list_ended()
        if (run.symbol, run.account) == (asked.symbol, asked.account) and run.as_of < moment.as_of
    ]
    since = max(runs, default=0)
    cases = [
        CaseRecord.model_validate(dict(entry.payload), strict=False)
        for entry in await past.journal.latest(MOST_CASES, kind=CASE_RECORD)
    ]
    ours = [case for case in cases if (case.account, case.symbol) == (asked.account, asked.symbol)]
    return tuple(case.id for case in ours if since <= case.closed < moment.as_of)


async def price_review(decision: Decision, model_context: ModelContext) -> float:
    """What the risk officer's review of a decision is expected to cost, in dollars."""
    models = model_context.registry.models_for("risk_manager", 0).models
    if decision.decision.side is None or not models:
        return 0.0  # nobody is asked
    asked, said = REVIEW_TOKENS
    return float(await models[0].price(asked, said + thinking_tokens(models[0].name)) or 0)


async def _read_bundle(journal: Journal, name: str) -> Bundle:
    return read_bundle(await journal.bundle(Digest(name)))


async def _read_image(journal: Journal, painted: ChartRecord) -> Image | None:
    chart = painted.chart
    if chart is None or chart.media_type not in _PICTURES:
        return None
    media_type = cast(Literal["image/png", "image/jpeg", "image/webp"], chart.media_type)
    return Image(media_type, await journal.bundle(Digest(chart.sha256)))


# -- a run, again


def _recorded_sources(notebook: RunJournal, journal: Journal) -> CycleSources:
    """The sources of a recorded run: what came from outside comes from the record."""

    async def collect() -> MarketMoment:
        return notebook.read(Node.COLLECT_DATA, MarketMoment)

    async def gather(moment: MarketMoment) -> tuple[Digest, Case]:
        name = notebook.read(Node.CONTEXT_GATHERING, BundleName).bundle
        return Digest(name), build_case(await _read_bundle(journal, name))

    async def paint(bundle: Bundle) -> ChartRecord:
        return notebook.read(Node.GENERATE_CHART, ChartRecord)

    async def ahead(decision: Decision) -> float:
        return notebook.read(Node.JUDGE_AGENT, JudgeRecord).ahead_usd

    async def claim_exploration(own: Exploration) -> tuple[Exploration, ...]:
        return notebook.read(Node.PORTFOLIO_LEVERAGE_GUARD, GuardRecord).explored or ()

    def now(node: Node, as_of: Millis) -> Millis:
        if node is Node.PORTFOLIO_LEVERAGE_GUARD:
            return notebook.read(node, GuardRecord).at
        return notebook.read(Node.GENERATE_REPORT, ReportRecord).at

    async def new_cases() -> tuple[str, ...]:
        if not notebook.has(Node.DATA_SYNTHESIS) or "skipped" in notebook.raw(Node.DATA_SYNTHESIS):
            return ()
        return notebook.read(Node.DATA_SYNTHESIS, CasesRecord).records

    return CycleSources(
        collect=collect,
        gather=gather,
        recorded=lambda name: _read_bundle(journal, name),
        paint=paint,
        image=lambda painted: _read_image(journal, painted),
        ahead=ahead,
        claim_exploration=claim_exploration,
        new_cases=new_cases,
        now=now,
    )


def counted_attempts(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The attempts that count: a question that was begun anew, because other models sat when the run was resumed, has
    those of its last asking alone."""
    kept: dict[tuple[str, int], list[Attempt]] = {}
    for attempt in attempts:
        theirs = kept.setdefault((attempt.role, attempt.round), [])
        theirs[:] = [their for their in theirs if their.attempt < attempt.attempt]
        theirs.append(attempt)
    return tuple(attempt for theirs in kept.values() for attempt in theirs)


def _list_differences(then: Outcome, now: Outcome) -> list[str]:
    """Which parts of the decided bytes are others."""
    if then.hash == now.hash:
        return []
    before: Any = decode_canonical(content_for_hash(then))
    after: Any = decode_canonical(content_for_hash(now))
    parts = [name for name in before if before[name] != after.get(name)]
    if not parts:
        return ["the outcome of record has another hash than its content gives"]
    return [f"{name}: {_first_difference(before[name], after.get(name))}" for name in parts]


def _first_difference(before: Any, after: Any, where: str = "") -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        name = next(name for name in {**before, **after} if before.get(name) != after.get(name))
        return _first_difference(before.get(name), after.get(name), f"{where}.{name}" if where else name)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        at = next(at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
        return _first_difference(before[at], after[at], f"{where}[{at}]")
    return f"{where + ' was ' if where else 'was '}{str(before)[:80]}, is {str(after)[:80]}"
