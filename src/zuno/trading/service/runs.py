"""The trading desk's cycles as a person asks for them: run one, take a broken one up again, look at what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from zuno.journal import decision_view
from zuno.journal.port import Journal
from zuno.kernel.canonical import Digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, Refused, UsageError
from zuno.kernel.lock import ProcessLock, hold
from zuno.kernel.logs import log_under, logged_by_id
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.llm.names import thinking_tokens
from zuno.llm.port import Attempt
from zuno.markets.market import Symbol
from zuno.trading.agents.case import Case, build_case, replace_bundle, without_source_text
from zuno.trading.chart.charting import describe, describe_trade, trade_plan
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import ExecutionResult, OrderGate
from zuno.trading.measure.frames import FrameCache
from zuno.trading.model.account import Account
from zuno.trading.model.bundle import Bundle, Slot, add_slots
from zuno.trading.model.cycle import EDITION, STARTED, Chart, Decision, EvPolicy, Node, Outcome
from zuno.trading.model.known import derive
from zuno.trading.model.market import parse_mode
from zuno.trading.model.memory import CASE_RECORD, CaseRecord, ClosedTrade, DeskRecord, Exploration, make_slot
from zuno.trading.model.trade_events import account_mode, account_name
from zuno.trading.ports.trade_log import TradeRecord
from zuno.trading.rules.calibration import calibrate, list_closed_trades
from zuno.trading.rules.ruling import valid_until
from zuno.trading.run.nodes import Cycle, CycleSources, expire_outcome, outcome_at_end
from zuno.trading.run.nodes import Listen as Listen
from zuno.trading.run.record import (
    DESK,
    ENDED,
    EXPIRED,
    EXPLORED,
    ChartRecord,
    ExecutionRecord,
    ExplorationClaim,
    MarketMoment,
    PastRuns,
    ReportRecord,
    RunExpiry,
    RunJournal,
    RunRequest,
    RunSummary,
    kind_of,
    list_explorations,
    load_bundle,
    load_image,
    read_previous_decision,
    summarise_run,
)
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.run_replay import ReplayContext, replay_run, run_decision, view_run_journal
from zuno.trading.service.run_view import RunView
from zuno.trading.service.runs_view import CycleWhyView, RunRecord, RunsView, run_line_view, why_view

if TYPE_CHECKING:
    from zuno.trading.run.graph import Saver

DECIDED: Final = ENDED
"""The kind of entry that ends a run."""
_RUN: Final = re.compile(r"run_[0-9a-f]{16}")
MOST: Final = 500
MOST_CASES: Final = 50
"""Labelled trades that are looked back at."""
PAINTING_SECONDS: Final = 60.0
REVIEW_TOKENS: Final = (5_000, 700)
"""What asking for a review takes, at most and as a rule: fifteen thousand characters in, a few sentences out. What a
model may think beside it comes on top."""

Slots = Callable[[str, Millis, bool, Account | None], Awaitable[Sequence[Slot]]]
"""What is held in the market of that origin, strictly before a moment; and whether that moment is the present. The
account is given where a cycle acts for one."""
Recall = Callable[[Case], Awaitable[Sequence[Slot]]]
"""What the desk remembers of a case: slots that its bundle did not have."""


@dataclass(frozen=True, slots=True)
class RunBackends:
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
    policy: EvPolicy = "record"
    """`ZUNO_EV`: what an expected value goes by."""
    learn: Callable[[OrderGate], Awaitable[object]] | None = None
    """Learns from what the account of a gate has closed; None: whoever holds the gate does."""
    core: Callable[[OrderGate, Symbol, Millis], Awaitable[Slot | None]] | None = None
    """What the account's other sleeves hold of a symbol, and what tilts of it did; None: nobody can say."""


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
        listen: Listen = lambda event: None,
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
            symbol=self._desk.parse_symbol(symbol),
            mode=parse_mode(mode),
            as_of=as_of,
            live=self._desk.live(as_of),
            chart=chart,
            edition=EDITION,
            account=account,
        )
        if run_id is not None and await (await self._with.journal()).latest(1, request_id=run_id, kind=STARTED):
            return await self.resume(run_id, listen)
        with hold(self._with.lease(asked.symbol)):
            # A moment that cannot be is found out before anything is on record.
            collected = None if asked.live else await self._desk.moment(asked.symbol, asked.as_of)
            run_id = run_id or "run_" + hashlib.sha256(self._with.random(16)).hexdigest()[:16]
            notebook = RunJournal(await self._with.journal(), run_id)
            with log_under(run_id):
                await notebook.keep(STARTED, asked)
                return await self._finish_run(notebook, asked, listen, collected)

    async def account_name(self, symbol: str, as_of: str | None, name: str | None) -> str:
        """The whole name of an account: of the market that is read here, or at the exchanges."""
        if not self._desk.live(as_of):
            await self._desk.moment(self._desk.parse_symbol(symbol), as_of)
        return account_name(self._desk.origin, name)

    async def has_ended(self, run_id: str) -> bool:
        journal = await self._with.journal()
        return bool(await journal.latest(1, request_id=run_id, kind=ENDED))

    async def execution(self, run_id: str) -> ExecutionRecord | None:
        """What came of a run's ruling; None where nobody was to act on it."""
        return (await self._open_journal(run_id)).read_execution()

    @logged_by_id
    async def resume(self, run_id: str, listen: Listen = lambda event: None) -> Outcome:
        """Take a run up where it was cut off; what is on record is not said again. One that ended is as it was. One of
        an older edition ends `expired`, which is `Refused`."""
        notebook = await self._open_journal(run_id)
        asked = notebook.read(STARTED, RunRequest)
        if not notebook.has(ENDED):
            with hold(self._with.lease(asked.symbol)):
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
        """Everything on record of a run, loaded once. A run that has not ended has no outcome."""
        notebook = await self._open_journal(run_id)
        if not notebook.has(Node.CONTEXT_GATHERING):
            _check_current(notebook)
            came = "the moment was known" if notebook.has(Node.COLLECT_DATA) else "it had begun"
            raise Refused(
                f"{run_id} was cut off when {came} and before the market was; `zuno trade resume {run_id}` takes it up "
                "again."
            )
        asked, moment = notebook.read(STARTED, RunRequest), notebook.read(Node.COLLECT_DATA, MarketMoment)
        chart = notebook.read(Node.GENERATE_CHART, ChartRecord).chart if notebook.has(Node.GENERATE_CHART) else None
        end = notebook.read(ENDED, RunSummary) if notebook.has(ENDED) else None
        outcome = None if end is None else _ended_outcome(notebook)
        return RunRecord(
            line=run_line_view(notebook.run_id, notebook.started_at, asked, moment, end),
            origin=moment.origin,
            outcome=outcome,
            view=None if outcome is None else await run_decision(notebook, outcome).show(self._with.code()),
            attempts=tuple(notebook.attempts),
            picture=None if chart is None else await notebook.journal.bundle(Digest(chart.sha256)),
            nodes=tuple(node for node in Node if notebook.has(node)),
            live=asked.live,
        )

    async def why(self, run_id: str) -> CycleWhyView:
        """The argument of a run; no model is asked."""
        return why_view(await self.record(run_id))

    async def store_missing_views(self) -> decision_view.JournalUpgradeView:
        """Store the view of every ended run that has none, as this Zuno computes it."""
        journal = await self._with.journal()

        async def load(run_id: str) -> decision_view.DecisionRecord[RunView]:
            notebook = await RunJournal(journal, run_id).open()
            return run_decision(notebook, _ended_outcome(notebook))

        return await decision_view.store_missing_views(journal, ENDED, DESK, load)

    async def paint_trade(self, record: RunRecord) -> bytes | None:
        """The trade of a run, drawn as a PNG; None where nothing was to be opened, or the run was without a chart."""
        outcome = record.outcome
        plan = None if outcome is None or outcome.chart is None else trade_plan(outcome)
        if outcome is None or plan is None or self._desk.painter.media_type != "image/png":
            return None
        bundle = await load_bundle(await self._with.journal(), outcome.bundle)
        picture = describe_trade(without_source_text(bundle), plan)
        try:
            return await asyncio.wait_for(self._desk.painter.paint(picture), PAINTING_SECONDS)
        except Exception:  # a vendor's library draws: whatever it raises, the page can do without the picture
            return None

    async def runs(self, count: int | None = None, before: str | None = None) -> RunsView:
        """The newest first; `before`: those that were started before this one, `UsageError` where nobody started it.
        Of each run only the first and the last entry are read."""
        journal = await self._with.journal()
        past, start, most = self._past_runs(journal), None, count or MOST
        if before is not None:
            named = await journal.latest(1, request_id=before, kind=STARTED) if _RUN.fullmatch(before) else []
            if not named:
                raise UsageError(f"{plain_text(before, 40)!r} is no run of this home.")
            start = named[0].seq
        if most >= MOST:
            await past.list_ended()  # in one query instead of one for each
        entries = await journal.latest(most + 1, kind=STARTED, before=start)
        lines = []
        for entry in entries[:most]:
            run_id = entry.request_id or ""
            end = await past.find_summary(run_id)
            known = [] if end else await journal.latest(1, request_id=run_id, kind=kind_of(Node.COLLECT_DATA))
            moment = MarketMoment.model_validate(dict(known[0].payload)) if known else None
            asked = RunRequest.model_validate(dict(entry.payload))
            lines.append(run_line_view(run_id, entry.at, asked, end or moment, end))
        return RunsView(runs=tuple(lines), more=len(entries) > most)

    async def replay(self, run_id: str) -> decision_view.ReplayView:
        """Argue again from what is on record, with no key and no network, and compare what is decided.

        Nothing is written, and nobody is kept from running.
        """
        notebook = await self._open_journal(run_id)
        return await replay_run(notebook, _ended_outcome(notebook), self._with.rehearse, self._with.code())

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
            await cycle.take_steps(saver)
            reported = cycle.outcome
            done = notebook.read_execution()
            acted = done is not None and done.intent is not None
            late = asked.live and not acted and self._with.now() > valid_until(reported.mode, reported.as_of)
            outcome = expire_outcome(reported) if late else reported
            expired = outcome is not reported
            await notebook.keep(ENDED, summarise_run(outcome, expired=expired, account=asked.account))
            outcome = _ended_outcome(notebook)
            shown = decision_view.pack_view(*view_run_journal(notebook, outcome, await cycle.load_case()))
            journal, run_id = notebook.journal, notebook.run_id
            await journal.append_once(kind=decision_view.DECISION_VIEW, author=DESK, payload=shown, request_id=run_id)
            await saver.adelete_thread(run_id)  # a finished run is in the journal as a whole
        return outcome

    async def _expire(self, notebook: RunJournal, asked: RunRequest) -> None:
        """The end of a run that an older edition began: on record once, its checkpoints forgotten, and `Refused`."""
        await notebook.keep(EXPIRED, RunExpiry(why=_expiry_text(notebook.run_id, asked)))
        async with self._with.checkpoints() as saver:
            await saver.adelete_thread(notebook.run_id)
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
            done = await gate.execute(order)
            if self._with.learn is not None:
                await self._with.learn(gate)
            return done

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
            account = None if gate is None else (await gate.advance()).to_account(gate.paper_venues)
            if gate is not None and self._with.learn is not None:
                await self._with.learn(gate)  # what a stop ended since the run before: this one recalls it
            slots = [
                *await self._with.held(moment.origin, moment.as_of, asked.live, account),
                *await read_previous_decision(past, asked, moment),
                await self._record_slot(past, asked, moment, gate),
            ]
            if gate is not None and self._with.core is not None:
                slots += filter(None, [await self._with.core(gate, asked.symbol, moment.as_of)])
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
            claim = derive(ExplorationClaim, asked, moment, explored=own)
            entry = await journal.append_once(kind=EXPLORED, author=DESK, payload=claim, request_id=notebook.run_id)
            return await list_explorations(past, asked, moment, before=entry.seq)

        async def new_cases() -> tuple[str, ...]:
            if asked.account is None:
                return ()
            return await _new_cases(past, asked, notebook.read(Node.COLLECT_DATA, MarketMoment))

        return CycleSources(
            collect=collect,
            gather=gather,
            recorded=lambda name: load_bundle(journal, name),
            paint=paint,
            image=lambda painted: load_image(journal, painted),
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
            policy=self._with.policy,
        )
        return make_slot(record, moment.as_of)

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


def _ended_outcome(notebook: RunJournal) -> Outcome:
    if not notebook.has(ENDED):
        _check_current(notebook)
        run_id = notebook.run_id
        raise Refused(f"{run_id} has not ended; `zuno trade resume {run_id}` takes it up again.")
    return outcome_at_end(notebook.read(Node.GENERATE_REPORT, ReportRecord).outcome, notebook.read(ENDED, RunSummary))


async def _new_cases(past: PastRuns, asked: RunRequest, moment: MarketMoment) -> tuple[str, ...]:
    """Trades of the account in this symbol that were closed and labelled between the run before and this one."""
    about = asked.symbol, asked.account
    runs = (run.as_of for run in await past.list_ended() if (run.symbol, run.account) == about)
    since = max((as_of for as_of in runs if as_of < moment.as_of), default=0)
    entries = await past.journal.latest(MOST_CASES, kind=CASE_RECORD)
    cases = [CaseRecord.model_validate(dict(entry.payload), strict=False) for entry in entries]
    ours = (case for case in cases if (case.symbol, case.account) == about)
    return tuple(case.id for case in ours if since <= case.closed < moment.as_of)


async def price_review(decision: Decision, model_context: ModelContext) -> float:
    """What the risk officer's review of a decision is expected to cost, in dollars."""
    models = model_context.registry.models_for("risk_manager", 0).models
    if decision.decision.side is None or not models:
        return 0.0  # nobody is asked
    asked, said = REVIEW_TOKENS
    return float(await models[0].price(asked, said + thinking_tokens(models[0].name)) or 0)
