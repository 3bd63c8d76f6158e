"""What each node of a cycle does: takes what others put on record, and puts its own beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.llm.port import Image
from zuno.trading.agents import geometry, judge, liquidity, macro_options, meta, microstructure, risk_manager, synthesis
from zuno.trading.agents.case import Case, build_case
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import ExecutionResult
from zuno.trading.measure.events import EventKind
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import (
    VALID_MINUTES,
    AgentAnswer,
    AnomalyRecord,
    AnswerSource,
    Blackboard,
    Decision,
    Expectation,
    GeometryEntry,
    LiquidityEntry,
    MacroEntry,
    Meta,
    MicrostructureEntry,
    MissingInput,
    Node,
    NodeEvent,
    Outcome,
    Part,
    Ruling,
    Synthesis,
    with_hash,
)
from zuno.trading.model.known import Known, Missing, derive, pick
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.memory import DeskRecord, Exploration
from zuno.trading.model.orders import ZERO, to_decimal
from zuno.trading.rules.calibration import judge_kind
from zuno.trading.rules.draft import RulingDraft, Tightening
from zuno.trading.rules.inputs import RulingInputs, list_skipped_rules, missing_essentials
from zuno.trading.rules.price_menu import hour_atr
from zuno.trading.rules.risk_rules import apply_risk_rules
from zuno.trading.rules.ruling import apply_leverage_guard, expire_ruling, finish_ruling, start_draft, valid_until
from zuno.trading.run import record

if TYPE_CHECKING:
    from zuno.trading.run.graph import Saver, Step

V = TypeVar("V")
Listen = Callable[[NodeEvent], None]

_AGENTS: Final[Mapping[Node, type[AgentAnswer[Any]]]] = {
    Node.META_AGENT: AgentAnswer[Meta], Node.LIQUIDITY_EXPERT: AgentAnswer[LiquidityEntry],
    Node.MICROSTRUCTURE_EXPERT: AgentAnswer[MicrostructureEntry], Node.MACRO_EXPERT: AgentAnswer[MacroEntry],
    Node.VLM_EXPERT: AgentAnswer[GeometryEntry], Node.BLACKBOARD_SYNTHESIS: AgentAnswer[Synthesis],
    Node.JUDGE_AGENT: record.JudgeRecord, Node.RISK_MANAGER: AgentAnswer[Tightening],
}  # fmt: skip
"""In the order in which their voices are told."""


@dataclass(frozen=True, slots=True)
class CycleSources:
    """What a cycle takes from outside. A replay hands in what was recorded instead."""

    collect: Callable[[], Awaitable[record.MarketMoment]]
    """Which moment it is; a live market is asked first."""
    gather: Callable[[record.MarketMoment], Awaitable[tuple[Digest, Case]]]
    """Everything that could be known then: the name it is kept under, and what follows from it."""
    recorded: Callable[[str], Awaitable[Bundle]]
    paint: Callable[[Bundle], Awaitable[record.ChartRecord]]
    image: Callable[[record.ChartRecord], Awaitable[Image | None]]
    ahead: Callable[[Decision], Awaitable[float]]
    """What the review of a decision is expected to cost, in dollars."""
    claim_exploration: Callable[[Exploration], Awaitable[tuple[Exploration, ...]]]
    """Puts an exploration on record and tells those that came before it."""
    now: Callable[[Node, Millis], Millis]
    """What time it is for a node, where the market's moment is the second: the wall's clock if the run is live."""
    new_cases: Callable[[], Awaitable[tuple[str, ...]]]
    """Closed trades of its account and symbol that were labelled since the run before, by id."""
    execute: Callable[[RulingToExecute], Awaitable[ExecutionResult]] | None = None
    """Acts on the ruling; None in a replay, and in a run that nobody asked to act."""


class Cycle:
    """One run. What it has worked out it keeps for itself: runs share nothing."""

    def __init__(
        self, journal: record.RunJournal, sources: CycleSources, model_context: ModelContext, listen: Listen, code: str
    ) -> None:
        self._journal, self._sources, self._model_context = journal, sources, model_context
        self._listen, self._code = listen, code
        self._built_case: Case | None = None
        self._drafted: RulingDraft | None = None

    def steps(self) -> dict[Node, Step]:
        made: dict[Node, Callable[[], Awaitable[Part]]] = {
            Node.COLLECT_DATA: self._sources.collect,
            Node.CONTEXT_GATHERING: self._gather_context,
            Node.TRIAGE: self._triage,
            Node.GENERATE_CHART: self._paint_chart,
            Node.META_AGENT: lambda: self._ask_agent(meta.ask_meta),
            Node.LIQUIDITY_EXPERT: lambda: self._ask_agent(liquidity.ask_expert),
            Node.MICROSTRUCTURE_EXPERT: lambda: self._ask_agent(microstructure.ask_expert),
            Node.MACRO_EXPERT: lambda: self._ask_agent(macro_options.ask_expert),
            Node.VLM_EXPERT: self._ask_geometry,
            Node.BLACKBOARD_SYNTHESIS: self._ask_synthesis,
            Node.JUDGE_AGENT: self._ask_judge,
            Node.RISK_MANAGER: self._ask_risk_manager,
            Node.PORTFOLIO_LEVERAGE_GUARD: self._apply_guard,
            Node.EXECUTE_TRADE: self._execute_ruling,
            Node.GENERATE_REPORT: self._write_report,
            Node.DATA_SYNTHESIS: self._list_cases,
        }
        return {node: self._step(node, make) for node, make in made.items()}

    async def take_steps(self, saver: Saver | None) -> None:
        """Every step that was not taken yet; what the checkpoints name is what the journal holds."""
        from zuno.trading.run.graph import run_graph

        run_id = self._journal.run_id
        recorded = await run_graph(run_id, self.steps(), saver)
        for node in Node:
            if recorded.get(node) != self._journal.digest(node):
                raise Broken(
                    f"The checkpoints of {run_id} name another {node} than the journal holds; run `zuno journal "
                    "verify`, and remove cycles.db if that finds nothing."
                )

    @property
    def outcome(self) -> Outcome:
        return self._journal.read(Node.GENERATE_REPORT, record.ReportRecord).outcome

    def _step(self, node: Node, make: Callable[[], Awaitable[Part]]) -> Step:
        async def step() -> Digest:
            if not self._journal.has(node):
                self._listen(NodeEvent(node, "waits"))
                await self._journal.keep(node, await make())
                self._listen(self.event(node))
            return self._journal.digest(node)

        return step

    def event(self, node: Node) -> NodeEvent:
        """What to tell of a node whose word stands."""
        if node in _AGENTS:
            voice = self._voice(node)
            return NodeEvent(node, "speaks", voice.source, voice.usd, voice.why)
        if node is Node.EXECUTE_TRADE and (done := self._journal.read_execution()) is not None:
            return NodeEvent(node, "done", note=f"{done.state}: {done.reason}" if done.reason else done.state)
        if node is Node.DATA_SYNTHESIS and "skipped" not in self._journal.raw(node):
            records = self._journal.read(node, record.CasesRecord).records
            return NodeEvent(node, "done", note=f"labelled since the run before: {', '.join(records)}")
        if node in (Node.EXECUTE_TRADE, Node.DATA_SYNTHESIS):
            return NodeEvent(node, "skipped", note=self._journal.read(node, record.SkipRecord).skipped)
        if node is Node.GENERATE_CHART:
            painted = self._journal.read(node, record.ChartRecord)
            return NodeEvent(node, "skipped" if painted.chart is None else "done", note=painted.why)
        return NodeEvent(node, "done")

    # -- what is known

    async def _gather_context(self) -> record.BundleName:
        name, self._built_case = await self._sources.gather(self._journal.read(Node.COLLECT_DATA, record.MarketMoment))
        return record.BundleName(bundle=name)

    async def load_case(self) -> Case:
        """What follows from the run's bundle, worked out once."""
        if self._built_case is None:
            gathered = self._journal.read(Node.CONTEXT_GATHERING, record.BundleName)
            bundle = await self._sources.recorded(gathered.bundle)
            self._built_case = self._built_case or build_case(bundle)
        return self._built_case

    async def _triage(self) -> record.TriageRecord:
        """Anomalies, and the shocks of the last hour among them."""
        features = (await self.load_case()).features
        anomalies = [AnomalyRecord(**pick(anomaly, "rule", "label", "said")) for anomaly in features.triage.anomalies]
        anomalies += [
            AnomalyRecord(rule=event.kind, label=f"{event.kind}_{event.way}", said=event.said)
            for event in features.events.events
            if event.kind is EventKind.SHOCK
        ]
        return record.TriageRecord(anomalies=tuple(anomalies))

    async def _paint_chart(self) -> record.ChartRecord:
        return await self._sources.paint((await self.load_case()).bundle)

    # -- who argues

    async def _ask_agent(self, agent: Callable[[Case, ModelContext], Awaitable[AgentAnswer[V]]]) -> AgentAnswer[V]:
        return await agent(await self.load_case(), self._model_context)

    async def _ask_geometry(self) -> Part:
        image = await self._sources.image(self._journal.read(Node.GENERATE_CHART, record.ChartRecord))
        return await geometry.ask_expert(await self.load_case(), image, self._model_context)

    async def _ask_synthesis(self) -> Part:
        return await synthesis.ask_synthesis(await self.load_case(), self._meta, self._board, self._model_context)

    async def _ask_judge(self) -> record.JudgeRecord:
        heard = await judge.ask_judge(await self.load_case(), self._meta, self._board, self._model_context)
        ahead = await self._sources.ahead(heard.value)
        return record.JudgeRecord(value=heard.value, voice=heard.voice, ahead_usd=ahead)

    async def _ask_risk_manager(self) -> Part:
        """The officer reads what the rules leave; where they leave nothing, nobody is asked."""
        case = await self.load_case()
        left = self._review_risk(self._draft(case), case.inputs, None)
        return await risk_manager.ask_risk_manager(case, left, self._model_context)

    # -- what comes of it

    def _draft(self, case: Case) -> RulingDraft:
        """Worked out once: what it is made of is on record by then."""
        if self._drafted is None:
            self._drafted = self._start_draft(case.inputs)
        return self._drafted

    def _review_risk(self, draft: RulingDraft, inputs: RulingInputs, tightening: Tightening | None) -> RulingDraft:
        """Studies replace it."""
        return apply_risk_rules(draft, inputs, tightening)

    def _start_draft(self, inputs: RulingInputs) -> RulingDraft:
        judged = self._journal.read(Node.JUDGE_AGENT, record.JudgeRecord)
        before = [node for node in _AGENTS if node is not Node.RISK_MANAGER]
        spent = sum(self._voice(node).usd or 0.0 for node in before)
        return start_draft(judged.value, self._meta, inputs, spent, judged.ahead_usd)

    def _make_ruling(
        self, case: Case, now: Millis, explored: tuple[Exploration, ...] | None = None
    ) -> tuple[Expectation | None, Ruling]:
        """`explored`: the explorations before this one, counted anew."""
        inputs, draft = case.inputs, self._draft(case)
        if explored is not None and isinstance(inputs.record, DeskRecord):
            inputs = replace(inputs, record=inputs.record.model_copy(update={"explorations": explored}))
            draft = self._start_draft(inputs)
        tightening = self._journal.read(Node.RISK_MANAGER, AgentAnswer[Tightening]).value
        draft = apply_leverage_guard(self._review_risk(draft, inputs, tightening), inputs)
        return draft.expectation, finish_ruling(draft, inputs, now)

    async def _apply_guard(self) -> record.GuardRecord:
        """An exploration is put on record before it is ruled: another run may have explored since this one began."""
        case = await self.load_case()
        as_of = case.bundle.as_of
        now = self._sources.now(Node.PORTFOLIO_LEVERAGE_GUARD, as_of)
        expectation, ruling = self._make_ruling(case, now)
        explored: tuple[Exploration, ...] | None = None
        if ruling.card is not None and ruling.card.exploration:
            decided_by = judge_kind(self._answer(Node.JUDGE_AGENT))
            own = Exploration(at=as_of, judge=decided_by, family=self._meta.regime.family)
            explored = await self._sources.claim_exploration(own)
            expectation, ruling = self._make_ruling(case, now, explored)
        return record.GuardRecord(expectation=expectation, ruling=ruling, at=now, explored=explored)

    async def _execute_ruling(self) -> Part:
        """Handed to the order gate, which does nothing twice: a run that was cut off may come here again."""
        if self._sources.execute is None:
            return record.SkipRecord(skipped="execution not enabled")
        case, guard = await self.load_case(), self._journal.read(Node.PORTFOLIO_LEVERAGE_GUARD, record.GuardRecord)
        bundle, decision = case.bundle, self._answer(Node.JUDGE_AGENT)
        done = await self._sources.execute(
            RulingToExecute(
                run_id=self._journal.run_id,
                **pick(bundle, "symbol", "mode", "as_of"),
                ruling=guard.ruling,
                valid_until=valid_until(bundle.mode, bundle.as_of),
                mark=_exact(case.inputs.mark),
                atr=_exact(hour_atr(case.features, case.menu, bundle.mode)),
                judge=judge_kind(decision),
                family=self._meta.regime.family,
                edge=None if guard.expectation is None else guard.expectation.edge,
                llm_cost_usd=ZERO if guard.expectation is None else to_decimal(guard.expectation.llm_cost_usd),
                judge_failed=decision.source == "fallback",
            )
        )
        return derive(record.ExecutionRecord, done)

    async def _write_report(self) -> record.ReportRecord:
        """A run that was cut off after the guard may come back when its ruling is good no more."""
        case, guard = await self.load_case(), self._journal.read(Node.PORTFOLIO_LEVERAGE_GUARD, record.GuardRecord)
        bundle = case.bundle
        now = self._sources.now(Node.GENERATE_REPORT, bundle.as_of)
        done = self._journal.read_execution()
        acted = done is not None and done.intent is not None
        late = not acted and now > max(guard.at, bundle.as_of + VALID_MINUTES[bundle.mode] * MINUTE_MS)
        board = self._board.model_copy(update={"synthesis": self._answer(Node.BLACKBOARD_SYNTHESIS)})
        return record.ReportRecord(
            at=now,
            outcome=with_hash(
                Outcome(
                    **pick(bundle, "symbol", "mode", "as_of", "origin"),
                    bundle=self._journal.read(Node.CONTEXT_GATHERING, record.BundleName).bundle,
                    meta=self._meta,
                    anomalies=self._journal.read(Node.TRIAGE, record.TriageRecord).anomalies,
                    board=board,
                    decision=self._answer(Node.JUDGE_AGENT),
                    expectation=guard.expectation,
                    ruling=self._make_ruling(case, now, guard.explored)[1] if late else guard.ruling,
                    degraded=self._list_missing_inputs(case),
                    voices=tuple(map(self._voice, _AGENTS)),
                    chart=self._journal.read(Node.GENERATE_CHART, record.ChartRecord).chart,
                    run_id=self._journal.run_id,
                    code=self._code,
                    hash="",
                    notes=self._journal.read(Node.COLLECT_DATA, record.MarketMoment).notes,
                )
            ),
        )

    async def _list_cases(self) -> Part:
        """Closing happens outside of the cycle that opened: this node only shows what was labelled meanwhile."""
        cases = await self._sources.new_cases()
        return record.CasesRecord(records=cases) if cases else record.SkipRecord(skipped="no close")

    def _list_missing_inputs(self, case: Case) -> tuple[MissingInput, ...]:
        essentials = (reason.partition(": ") for reason in missing_essentials(case.inputs))
        missing = [MissingInput(what=what, why=why) for what, _, why in essentials]
        missing += [MissingInput(what="candles only", why=skipped) for skipped in list_skipped_rules(case.inputs)]
        painted = self._journal.read(Node.GENERATE_CHART, record.ChartRecord)
        missing += [] if painted.chart or not painted.why else [MissingInput(what="chart", why=painted.why)]
        voices = map(self._voice, _AGENTS)
        missing += [MissingInput(what=voice.role, why=voice.why) for voice in voices if voice.source == "fallback"]
        return tuple(missing)

    # -- what is on record

    def _answer(self, node: Node) -> Any:
        return self._journal.read(node, _AGENTS[node]).value

    def _voice(self, node: Node) -> AnswerSource:
        return self._journal.read(node, _AGENTS[node]).voice

    @property
    def _meta(self) -> Meta:
        answer: Meta = self._answer(Node.META_AGENT)
        return answer

    @property
    def _board(self) -> Blackboard:
        return Blackboard(
            liquidity=self._answer(Node.LIQUIDITY_EXPERT),
            microstructure=self._answer(Node.MICROSTRUCTURE_EXPERT),
            macro=self._answer(Node.MACRO_EXPERT),
            vlm_geometry=self._answer(Node.VLM_EXPERT),
            synthesis=self._answer(Node.BLACKBOARD_SYNTHESIS) if self._journal.has(Node.BLACKBOARD_SYNTHESIS) else None,
        )


def _exact(figure: Known[float]) -> Decimal | None:
    return None if isinstance(figure, Missing) else to_decimal(figure)


def outcome_at_end(reported: Outcome, end: record.RunSummary) -> Outcome:
    return expire_outcome(reported) if end.expired else reported


def expire_outcome(reported: Outcome) -> Outcome:
    ruling = expire_ruling(reported.ruling)
    return reported if ruling is reported.ruling else with_hash(reported.model_copy(update={"ruling": ruling}))
