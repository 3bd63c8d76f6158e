"""What each node of a cycle does: takes what others put on record, and puts its own beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from zuno.kernel.canonical import Digest
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.llm.port import Image
from zuno.trading.agents import geometry, judge, liquidity, macro_options, meta, microstructure, risk_manager, synthesis
from zuno.trading.agents.case import Case, build_case
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import (
    VALID_MINUTES,
    AgentAnswer,
    Blackboard,
    Decision,
    Expectation,
    GeometryEntry,
    LiquidityEntry,
    MacroEntry,
    Meta,
    MicrostructureEntry,
    Node,
    Part,
    Ruling,
    Synthesis,
    Voice,
)
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.outcome import Degraded, NodeEvent, Noticed, Outcome, sealed
from zuno.trading.rules.inputs import missing_essentials
from zuno.trading.rules.ruling import (
    RulingDraft,
    Tightening,
    apply_leverage_guard,
    apply_risk_rules,
    finish_ruling,
    start_draft,
)
from zuno.trading.run.record import (
    Collected,
    Gathered,
    Guarded,
    Judged,
    Notebook,
    Painted,
    Reported,
    Skipped,
    Triaged,
)

if TYPE_CHECKING:
    from zuno.trading.run.graph import Step

V = TypeVar("V")
Listen = Callable[[NodeEvent], None]

_AGENTS: Final[Mapping[Node, type[AgentAnswer[Any]]]] = {
    Node.META_AGENT: AgentAnswer[Meta],
    Node.LIQUIDITY_EXPERT: AgentAnswer[LiquidityEntry],
    Node.MICROSTRUCTURE_EXPERT: AgentAnswer[MicrostructureEntry],
    Node.MACRO_EXPERT: AgentAnswer[MacroEntry],
    Node.VLM_EXPERT: AgentAnswer[GeometryEntry],
    Node.BLACKBOARD_SYNTHESIS: AgentAnswer[Synthesis],
    Node.JUDGE_AGENT: Judged,
    Node.RISK_MANAGER: AgentAnswer[Tightening],
}
"""In the order in which their voices are told."""


@dataclass(frozen=True, slots=True)
class World:
    """What a cycle takes from outside. A replay hands in what was recorded instead."""

    collect: Callable[[], Awaitable[Collected]]
    """Which moment it is; a live market is asked first."""
    gather: Callable[[Collected], Awaitable[tuple[Digest, Bundle]]]
    """Everything that could be known then, and the name it is kept under."""
    recorded: Callable[[str], Awaitable[Bundle]]
    """A bundle by its name."""
    paint: Callable[[Bundle], Awaitable[Painted]]
    image: Callable[[Painted], Awaitable[Image | None]]
    ahead: Callable[[Decision], Awaitable[float]]
    """What the review of a decision is expected to cost, in dollars."""
    now: Callable[[Node, Millis], Millis]
    """What time it is for a node, where the market's moment is the second: the wall's clock if the run is live."""


class Cycle:
    """One run. What it has worked out it keeps for itself: runs share nothing."""

    def __init__(self, notebook: Notebook, world: World, minds: ModelContext, listen: Listen, code: str) -> None:
        self._notes = notebook
        self._world = world
        self._minds = minds
        self._listen = listen
        self._code = code
        self._worked_out: Case | None = None

    def steps(self) -> dict[Node, Step]:
        made: dict[Node, Callable[[], Awaitable[Part]]] = {
            Node.COLLECT_DATA: self._world.collect,
            Node.CONTEXT_GATHERING: self._gathered,
            Node.TRIAGE: self._triaged,
            Node.GENERATE_CHART: self._painted,
            Node.META_AGENT: lambda: self._spoke(meta.ask_meta),
            Node.LIQUIDITY_EXPERT: lambda: self._spoke(liquidity.ask_expert),
            Node.MICROSTRUCTURE_EXPERT: lambda: self._spoke(microstructure.ask_expert),
            Node.MACRO_EXPERT: lambda: self._spoke(macro_options.ask_expert),
            Node.VLM_EXPERT: self._looked,
            Node.BLACKBOARD_SYNTHESIS: self._distilled,
            Node.JUDGE_AGENT: self._judged,
            Node.RISK_MANAGER: self._reviewed,
            Node.PORTFOLIO_LEVERAGE_GUARD: self._guarded,
            Node.EXECUTE_TRADE: lambda: _skipped("execution not enabled"),
            Node.GENERATE_REPORT: self._reported,
            Node.DATA_SYNTHESIS: lambda: _skipped("no close"),
        }
        return {node: self._step(node, make) for node, make in made.items()}

    @property
    def outcome(self) -> Outcome:
        return self._notes.read(Node.GENERATE_REPORT, Reported).outcome

    def _step(self, node: Node, make: Callable[[], Awaitable[Part]]) -> Step:
        async def step() -> Digest:
            if not self._notes.has(node):
                self._listen(NodeEvent(node, "waits"))
                await self._notes.keep(node, await make())
                self._listen(self.event(node))
            return self._notes.digest(node)

        return step

    def event(self, node: Node) -> NodeEvent:
        """What to tell of a node whose word stands."""
        if node in _AGENTS:
            voice = self._voice(node)
            return NodeEvent(node, "speaks", voice.source, voice.usd, voice.why)
        if node in (Node.EXECUTE_TRADE, Node.DATA_SYNTHESIS):
            return NodeEvent(node, "skipped", note=self._notes.read(node, Skipped).skipped)
        if node is Node.GENERATE_CHART:
            painted = self._notes.read(node, Painted)
            return NodeEvent(node, "skipped" if painted.chart is None else "done", note=painted.why)
        return NodeEvent(node, "done")

    # -- what is known

    async def _gathered(self) -> Gathered:
        name, bundle = await self._world.gather(self._notes.read(Node.COLLECT_DATA, Collected))
        self._worked_out = build_case(bundle)
        return Gathered(bundle=name)

    async def _matter(self) -> Case:
        if self._worked_out is None:
            gathered = self._notes.read(Node.CONTEXT_GATHERING, Gathered)
            bundle = await self._world.recorded(gathered.bundle)
            self._worked_out = self._worked_out or build_case(bundle)
        return self._worked_out

    async def _triaged(self) -> Triaged:
        found = (await self._matter()).features.triage.anomalies
        return Triaged(anomalies=tuple(Noticed(rule=one.rule, label=one.label, said=one.said) for one in found))

    async def _painted(self) -> Painted:
        return await self._world.paint((await self._matter()).bundle)

    # -- who argues

    async def _spoke(self, agent: Callable[[Case, ModelContext], Awaitable[AgentAnswer[V]]]) -> AgentAnswer[V]:
        return await agent(await self._matter(), self._minds)

    async def _looked(self) -> Part:
        image = await self._world.image(self._notes.read(Node.GENERATE_CHART, Painted))
        return await geometry.ask_expert(await self._matter(), image, self._minds)

    async def _distilled(self) -> Part:
        return await synthesis.ask_synthesis(await self._matter(), self._meta, self._board, self._minds)

    async def _judged(self) -> Judged:
        heard = await judge.ask_judge(await self._matter(), self._meta, self._board, self._minds)
        return Judged(value=heard.value, voice=heard.voice, ahead_usd=await self._world.ahead(heard.value))

    async def _reviewed(self) -> Part:
        """The officer reads what the rules leave; where they leave nothing, nobody is asked."""
        case = await self._matter()
        left = apply_risk_rules(self._draft(case), case.inputs, None)
        return await risk_manager.ask_risk_manager(case, left, self._minds)

    # -- what comes of it

    def _draft(self, case: Case) -> RulingDraft:
        judged = self._notes.read(Node.JUDGE_AGENT, Judged)
        before = [node for node in _AGENTS if node is not Node.RISK_MANAGER]
        spent = sum(self._voice(node).usd or 0.0 for node in before)
        return start_draft(judged.value, self._meta, case.inputs, spent, judged.ahead_usd)

    def _ruled(self, case: Case, now: Millis) -> tuple[Expectation | None, Ruling]:
        tightening = self._notes.read(Node.RISK_MANAGER, AgentAnswer[Tightening]).value
        draft = apply_leverage_guard(apply_risk_rules(self._draft(case), case.inputs, tightening), case.inputs)
        return draft.expectation, finish_ruling(draft, case.inputs, now)

    async def _guarded(self) -> Guarded:
        case = await self._matter()
        now = self._world.now(Node.PORTFOLIO_LEVERAGE_GUARD, case.bundle.as_of)
        expectation, ruling = self._ruled(case, now)
        return Guarded(expectation=expectation, ruling=ruling, at=now)

    async def _reported(self) -> Reported:
        """A run that was cut off after the guard may come back when its ruling is good no more."""
        case, guard = await self._matter(), self._notes.read(Node.PORTFOLIO_LEVERAGE_GUARD, Guarded)
        bundle = case.bundle
        now = self._world.now(Node.GENERATE_REPORT, bundle.as_of)
        late = now > max(guard.at, bundle.as_of + VALID_MINUTES[bundle.mode] * MINUTE_MS)
        board = self._board.model_copy(update={"synthesis": self._said(Node.BLACKBOARD_SYNTHESIS)})
        return Reported(
            at=now,
            outcome=sealed(
                Outcome(
                    symbol=bundle.symbol,
                    mode=bundle.mode,
                    as_of=bundle.as_of,
                    origin=bundle.origin,
                    bundle=self._notes.read(Node.CONTEXT_GATHERING, Gathered).bundle,
                    meta=self._meta,
                    anomalies=self._notes.read(Node.TRIAGE, Triaged).anomalies,
                    board=board,
                    decision=self._said(Node.JUDGE_AGENT),
                    expectation=guard.expectation,
                    ruling=self._ruled(case, now)[1] if late else guard.ruling,
                    degraded=self._degraded(case),
                    voices=tuple(map(self._voice, _AGENTS)),
                    chart=self._notes.read(Node.GENERATE_CHART, Painted).chart,
                    run_id=self._notes.run_id,
                    code=self._code,
                    hash="",
                    notes=self._notes.read(Node.COLLECT_DATA, Collected).notes,
                )
            ),
        )

    def _degraded(self, case: Case) -> tuple[Degraded, ...]:
        found = [_named(said) for said in missing_essentials(case.inputs)]
        painted = self._notes.read(Node.GENERATE_CHART, Painted)
        found += [] if painted.chart or not painted.why else [Degraded(what="chart", why=painted.why)]
        voices = map(self._voice, _AGENTS)
        found += [Degraded(what=voice.role, why=voice.why) for voice in voices if voice.source == "fallback"]
        return tuple(found)

    # -- what is on record

    def _said(self, node: Node) -> Any:
        return self._notes.read(node, _AGENTS[node]).value

    def _voice(self, node: Node) -> Voice:
        return self._notes.read(node, _AGENTS[node]).voice

    @property
    def _meta(self) -> Meta:
        found: Meta = self._said(Node.META_AGENT)
        return found

    @property
    def _board(self) -> Blackboard:
        return Blackboard(
            liquidity=self._said(Node.LIQUIDITY_EXPERT),
            microstructure=self._said(Node.MICROSTRUCTURE_EXPERT),
            macro=self._said(Node.MACRO_EXPERT),
            vlm_geometry=self._said(Node.VLM_EXPERT),
            synthesis=self._said(Node.BLACKBOARD_SYNTHESIS) if self._notes.has(Node.BLACKBOARD_SYNTHESIS) else None,
        )


async def _skipped(why: str) -> Skipped:
    return Skipped(skipped=why)


def _named(said: str) -> Degraded:
    what, _, why = said.partition(": ")
    return Degraded(what=what, why=why)
