"""Who sits in the Critic's place in an ablation: nobody, or somebody whose word means nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from zuno.kernel.errors import Broken
from zuno.llm.ask import ModelContext
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.strategist import Recall
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import Candidate, Fault, Judgment, NextStep, Verdict
from zuno.lp.model.debate import Context, Critique, Debate, Proposal, Revision, Role
from zuno.lp.rules.ballot import arbiter_decides, choose_next_step, critic_decides, judge_all, judge_proposal


class _StandIn:
    """The Critic's seat with the Critic's manners: proposals in, a decision or a critique out."""

    role = Role.CRITIC

    def __init__(self, recall: Recall, model_context: ModelContext) -> None:
        self._recall = recall

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        payload = envelope.payload
        if not isinstance(payload, Proposal | Revision):
            raise Broken(f"the Critic's seat does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        last = debate.rounds[-1]
        mechanical = judge_all(last.candidates, context.profile)
        judgments = self.judge(debate, last.candidates, mechanical)
        judged = last.model_copy(update={"mechanical": mechanical, "judgments": judgments})
        debate = debate.model_copy(update={"rounds": (*debate.rounds[:-1], judged)})
        return [_end_or_answer(context, debate, number)]

    def judge(
        self, debate: Debate, candidates: Sequence[Candidate], mechanical: Sequence[Judgment]
    ) -> tuple[Judgment, ...]:
        raise NotImplementedError


class AbsentCritic(_StandIn):
    """Every candidate passes: the first proposal is decided by what its candidates are worth."""

    def judge(
        self, debate: Debate, candidates: Sequence[Candidate], mechanical: Sequence[Judgment]
    ) -> tuple[Judgment, ...]:
        return tuple(replace(judgment, verdict=Verdict.ACCEPT, fault=Fault.NONE) for judgment in mechanical)


class PlaceboCritic(_StandIn):
    """As many accepted, sent back and vetoed as the rules have it, but dealt to the moves at random."""

    def judge(
        self, debate: Debate, candidates: Sequence[Candidate], mechanical: Sequence[Judgment]
    ) -> tuple[Judgment, ...]:
        moves = [candidate.index for candidate in candidates if candidate.kind.move]
        dealt = [*moves]
        Random(f"{debate.context} {len(debate.rounds)}").shuffle(dealt)
        judgments = [*mechanical]
        for index, source in zip(moves, dealt, strict=True):
            judgments[index] = replace(mechanical[source], index=index)
        return tuple(judgments)


def _end_or_answer(context: Context, debate: Debate, number: int) -> OutgoingMessage:
    last, doubts = debate.rounds[-1], data_cautions(context)
    match choose_next_step(judge_proposal(last.candidates, last.judgments), number, context.max_rounds):
        case NextStep.DECIDE:
            decision = critic_decides(last.candidates, last.judgments, context.profile, doubts=doubts)
        case NextStep.REVISE:
            return OutgoingMessage(Role.STRATEGIST, Critique(debate=debate))
        case _:  # the Arbiter would refuse judgments that are not the rules': its rules decide
            decision = arbiter_decides(last.candidates, last.judgments, context.profile, doubts=doubts)
    return OutgoingMessage(Role.CLI, conclude(context, debate, decision))
