"""The desk with something left out: one expert who speaks for all, or no risk officer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.trading.agents.case import Case
from zuno.trading.model.cycle import AgentAnswer, Blackboard, Expert, Part
from zuno.trading.model.market import Symbol
from zuno.trading.rules.draft import RulingDraft, Tightening
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.risk_rules import place_legs
from zuno.trading.rules.score import board_entries
from zuno.trading.run.nodes import Cycle

_SEATS = {expert: expert.value for expert in Expert}


def build_single_expert(expert: Expert) -> type[Cycle]:
    """The others say what this one says, as surely: its opinion has all the weight there is."""

    class ExpertAlone(Cycle):
        @property
        def _board(self) -> Blackboard:
            board = super()._board
            entries = board_entries(board)
            said = entries[expert]
            same = {"stance": said.stance, "confidence": said.confidence}
            return board.model_copy(
                update={_SEATS[other]: entry.model_copy(update=same) for other, entry in entries.items()}
            )

    return ExpertAlone


Agent: TypeAlias = Callable[[Case, ModelContext], Awaitable[AgentAnswer[Any]]]


class SharedAnswers:
    """What the rules of Meta and the experts say of one moment. They read the market alone, so that it is the same for
    every arm, and worked out once where arms come to a moment together."""

    def __init__(self) -> None:
        self._moment: tuple[Symbol, Millis] | None = None
        self._said: dict[object, Part] = {}

    async def hear(self, case: Case, agent: object, ask: Callable[[], Awaitable[Part]]) -> Part:
        moment = (case.bundle.symbol, case.bundle.as_of)
        if moment != self._moment:
            self._moment, self._said = moment, {}
        if agent not in self._said:
            self._said[agent] = await ask()
        return self._said[agent]


def share_answers(seat: type[Cycle], answers: SharedAnswers) -> type[Cycle]:
    """The same desk; only for one that asks no model."""

    class WithSharedAnswers(seat):  # type: ignore[valid-type, misc]
        async def _ask_agent(self, agent: Agent) -> Any:
            return await answers.hear(
                await self.load_case(), agent, lambda: super(WithSharedAnswers, self)._ask_agent(agent)
            )

        async def _ask_geometry(self) -> Part:
            return await answers.hear(await self.load_case(), "geometry", super()._ask_geometry)

    return WithSharedAnswers


class WithoutRiskOfficer(Cycle):
    """What is decided is sized and routed, and nothing else is asked. The leverage guard stays: it is not his."""

    def _review_risk(self, draft: RulingDraft, inputs: RulingInputs, tightening: Tightening | None) -> RulingDraft:
        return place_legs(draft, inputs) if draft.opens else draft
