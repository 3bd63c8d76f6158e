"""Debates and cycles that an assistant asked for: each has an id at once and runs on while nobody waits.

The id is the one of the journal (`req_…`, `run_…`): what came of an analysis is found there after a restart too.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from zuno.doors.mcp.services import AssistantServices
from zuno.kernel.errors import Refused, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.view import MAX_TEXT_CHARS, ForeignText, View
from zuno.lp.model.debate import Thought
from zuno.lp.service.arguments import position_id
from zuno.lp.service.recommend import Waiting
from zuno.markets.market import parse_symbol
from zuno.present import values
from zuno.present.document import Act, Document, Mark, Tone, document, facts, lines
from zuno.trading.model.cycle import NodeEvent
from zuno.trading.model.market import parse_mode

ANSWER_SECONDS: Final = 3.0
"""How long an analysis is waited for before its id is the answer: clients cut a call off after a minute."""
MOST_RUNNING: Final = 3
MOST_KEPT: Final = 50
"""Ended ones that are remembered here; the journal has all of them."""
MOST_STEPS: Final = 60

State = Literal["running", "done", "failed", "interrupted"]


class StepView(View):
    who: str
    text: ForeignText


class AnalysisView(View):
    """A debate or a cycle that was asked for."""

    id: str
    state: State
    """`interrupted`: its process ended before it did."""
    plan_id: str | None = None
    """What a debate came to: `plan_get`."""
    run_id: str | None = None
    """What a cycle came to: `trade_get_run`."""
    steps: tuple[StepView, ...] = ()
    """What was said or done so far, oldest first."""
    error: ForeignText | None = None

    def to_document(self) -> Document:
        return document(
            f"Analysis {self.id}: {self.state}",
            facts(
                None if self.plan_id is None else ("plan", values.id_(self.plan_id)),
                None if self.run_id is None else ("run", values.id_(self.run_id)),
            ),
            lines(*(values.foreign(f"{step.who}: {step.text}") for step in self.steps), mark=Mark.QUOTE),
            urgent=() if self.error is None else (values.foreign(self.error, Tone.BAD),),
            acts=(
                None if self.plan_id is None else Act("Plan", f"plan show {self.plan_id}"),
                None if self.run_id is None else Act("Why", f"trade why {self.run_id}"),
            ),
        )


@dataclass(slots=True)
class _Analysis:
    id: str
    task: asyncio.Task[None]
    steps: list[StepView] = field(default_factory=list)
    plan_id: str | None = None
    run_id: str | None = None

    def add_step(self, who: str, text: str) -> None:
        if len(self.steps) < MOST_STEPS:
            self.steps.append(StepView(who=who, text=text))

    def view(self) -> AnalysisView:
        """`ZunoError` of its own where it failed."""
        if not self.task.done():
            return AnalysisView(id=self.id, state="running", steps=tuple(self.steps))
        self.task.result()
        return AnalysisView(id=self.id, state="done", plan_id=self.plan_id, run_id=self.run_id, steps=tuple(self.steps))


class Analyses:
    def __init__(self, services: AssistantServices, random: Callable[[int], bytes]) -> None:
        self._services = services
        self._random = random
        self._started: dict[str, _Analysis] = {}

    async def recommend_rebalance(self, position: str, chain: str | None, profile: str | None) -> AnalysisView:
        position_id(position)

        async def debate(analysis: _Analysis) -> None:
            def hear(event: Thought | Waiting) -> None:
                if isinstance(event, Thought):
                    analysis.add_step(event.role.value, event.text)

            plan = await self._services.advice().rebalance(
                position, chain=chain, profile=profile, listen=hear, request_id=analysis.id
            )
            analysis.plan_id = plan.plan_id

        return await self._start("req_", debate)

    async def analyze(self, symbol: str, mode: str) -> AnalysisView:
        pair, horizon = parse_symbol(symbol, self._services.markets), parse_mode(mode)

        async def cycle(analysis: _Analysis) -> None:
            def hear(event: NodeEvent) -> None:
                analysis.add_step(event.node.value, f"{event.state} {event.note}".strip())

            await self._services.cycles().run(pair, horizon, None, hear, run_id=analysis.id)
            analysis.run_id = analysis.id

        return await self._start("run_", cycle)

    async def look(self, id_: str) -> AnalysisView:
        """An analysis of this process, or what the journal has of one."""
        if (analysis := self._started.get(id_)) is not None:
            try:
                return analysis.view()
            except ZunoError as error:
                failure = plain_text(str(error), MAX_TEXT_CHARS)
                return AnalysisView(id=id_, state="failed", steps=tuple(analysis.steps), error=failure)
        state: State
        if id_.startswith("run_"):
            state = "done" if (await self._services.cycles().record(id_)).outcome else "interrupted"
            return AnalysisView(id=id_, state=state, run_id=id_ if state == "done" else None)
        if id_.startswith("req_"):
            why = await self._services.archive().why(id_)
            steps = tuple(StepView(who=thought.role, text=thought.text) for thought in why.transcript[:MOST_STEPS])
            if why.plan is not None:
                return AnalysisView(id=id_, state="done", plan_id=why.plan.plan_id, steps=steps)
            state = "interrupted" if why.failed is None else "failed"
            return AnalysisView(id=id_, state=state, steps=steps, error=why.failed)
        raise UsageError("An analysis is named by req_ or run_ and 16 hex digits, as it was answered.")

    async def close(self) -> None:
        """Whatever still runs is left as a crash would leave it: a cycle can be resumed."""
        running = [analysis.task for analysis in self._started.values() if not analysis.task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _start(self, prefix: str, work: Callable[[_Analysis], Awaitable[None]]) -> AnalysisView:
        """`ZunoError` where it fails at once."""
        running = sum(not analysis.task.done() for analysis in self._started.values())
        if running >= MOST_RUNNING:
            raise Refused(f"{running} analyses are running; wait for one of them (analysis_get).")
        for ended in [key for key, analysis in self._started.items() if analysis.task.done()][:-MOST_KEPT]:
            del self._started[ended]
        id_ = prefix + hashlib.sha256(self._random(16)).hexdigest()[:16]

        async def run() -> None:
            await work(self._started[id_])

        analysis = self._started[id_] = _Analysis(id_, asyncio.create_task(run()))
        await asyncio.wait({analysis.task}, timeout=ANSWER_SECONDS)
        return analysis.view()
