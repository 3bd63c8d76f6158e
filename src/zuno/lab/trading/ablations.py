"""Arms of the trading desk with something left out: one expert, no risk officer, the Judge alone, a vote, a placebo."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from zuno.kernel.units import Millis
from zuno.lab.replies import draw_again
from zuno.llm.ask import ModelContext
from zuno.llm.port import RoleModels
from zuno.markets.market import Symbol
from zuno.trading.agents import geometry, judge, risk_manager, synthesis
from zuno.trading.agents.case import Case
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.model.cycle import AgentAnswer, AnswerSource, Blackboard, Call, Decision, Expert, Part
from zuno.trading.rules.draft import RulingDraft, Tightening
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.risk_rules import place_legs
from zuno.trading.rules.score import board_entries
from zuno.trading.run.nodes import Cycle
from zuno.trading.run.record import JudgeRecord


def build_single_expert(expert: Expert) -> type[Cycle]:
    """A desk on which the other experts repeat this one's stance and confidence."""

    class ExpertAlone(Cycle):
        @property
        def _board(self) -> Blackboard:
            board = super()._board
            entries = board_entries(board)
            own = entries[expert]
            same = {"stance": own.stance, "confidence": own.confidence}
            return board.model_copy(
                update={other.value: entry.model_copy(update=same) for other, entry in entries.items()}
            )

    return ExpertAlone


Agent: TypeAlias = Callable[[Case, ModelContext], Awaitable[AgentAnswer[Any]]]


class SharedAnswers:
    """What the rules of Meta and the experts say of one moment: the same for every arm, and worked out once."""

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
    """The risk officer's rules are skipped; sizing, routing and the leverage guard stay."""

    def _review_risk(self, draft: RulingDraft, inputs: RulingInputs, tightening: Tightening | None) -> RulingDraft:
        return place_legs(draft, inputs) if draft.opens else draft


MOST_VOTES: Final = 9
UNSHOWN: Final = Section("draft", 97, (Line("nothing is shown of this case"),))


class NoModels:
    """A registry without models: whoever is asked answers by rules."""

    def models_for(self, role: str, round: int) -> RoleModels:
        return RoleModels((), "this arm asks no model for this role")

    async def close(self) -> None:
        return None


class JudgeAlone(Cycle):
    """One model asked once: the Judge's, over a blackboard by rules; the risk officer is his rules alone."""

    @property
    def _rules(self) -> ModelContext:
        return replace(self._model_context, registry=NoModels())

    async def _ask_agent(self, agent: Any) -> Any:
        return await agent(await self.load_case(), self._rules)

    async def _ask_geometry(self) -> Part:
        return await geometry.ask_expert(await self.load_case(), None, self._rules)

    async def _ask_synthesis(self) -> Part:
        return await synthesis.ask_synthesis(await self.load_case(), self._meta, self._board, self._rules)

    async def _ask_judge(self) -> JudgeRecord:
        heard = await self._decide()
        return JudgeRecord(value=heard.value, voice=heard.voice, ahead_usd=0.0)

    async def _decide(self, number: int = 0) -> AgentAnswer[Decision]:
        """`number`: of several fresh answers to the same question."""
        model_context = draw_again(self._model_context, number)
        return await judge.ask_judge(await self.load_case(), self._meta, self._board, model_context)

    async def _ask_risk_manager(self) -> Part:
        case = await self.load_case()
        left = self._review_risk(self._draft(case), case.inputs, None)
        return await risk_manager.ask_risk_manager(case, left, self._rules)


def let_judges_vote(tokens: int) -> type[Cycle]:
    """Judges who know nothing of each other, one after the other until the tokens are used; most votes win."""

    class JudgesVote(JudgeAlone):
        async def _decide(self, number: int = 0) -> AgentAnswer[Decision]:
            heard = [await super()._decide()]
            while sum(answer.voice.tokens for answer in heard) < tokens and len(heard) < MOST_VOTES:
                heard.append(await super()._decide(len(heard)))
            winner = count_votes([answer.value.decision for answer in heard])
            chosen = next(answer for answer in heard if answer.value.decision is winner)
            return AgentAnswer(value=chosen.value, voice=_join_voices(chosen.voice, [each.voice for each in heard]))

    return JudgesVote


def count_votes(calls: list[Call]) -> Call:
    """Most votes win. On a tie a call that opens nothing wins, then the earliest."""
    votes = Counter(calls)
    return max(votes, key=lambda call: (votes[call], call.side is None))


def _join_voices(chosen: AnswerSource, voices: list[AnswerSource]) -> AnswerSource:
    """The winner's source, with the tokens and cost of all."""
    known = [voice.usd for voice in voices if voice.usd is not None]
    usd = sum(known) if len(known) == len(voices) else None
    return chosen.model_copy(update={"tokens": sum(voice.tokens for voice in voices), "usd": usd})


class PlaceboOfficer(Cycle):
    """The whole desk, but its risk officer's model reads nothing of the case."""

    async def _ask_risk_manager(self) -> Part:
        case = await self.load_case()
        left: RulingDraft = self._review_risk(self._draft(case), case.inputs, None)
        return await risk_manager.ask_risk_manager(case, left, self._model_context, shown=(UNSHOWN,))
