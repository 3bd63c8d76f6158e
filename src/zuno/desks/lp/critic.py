"""The Risk-Critic: recomputes every figure, applies the floors, and may only be stricter than they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zuno.agents.ask import Minds, ask
from zuno.agents.peer import Say, Think
from zuno.agents.question import Question
from zuno.core.ballot import critic_decides, judge_all, merge, next_step, overall
from zuno.desks.lp.knowledge import Backing, candidate_lines, context_lines, pairs_of
from zuno.desks.lp.opinions import CriticOpinion, JudgmentOpinion
from zuno.desks.lp.proposals import check_debate
from zuno.desks.lp.speaking import think_aloud, with_voice
from zuno.desks.lp.strategist import Recall
from zuno.desks.lp.verdicts import conclude, doubts
from zuno.domain.debate import Candidate, Judgment, NextStep, Verdict
from zuno.domain.errors import Broken, Malformed
from zuno.messages.debate import Context, Critique, Deadlock, Debate, Proposal, Revision, Role, Round
from zuno.messages.envelope import Envelope


class Critic:
    """Trusts no figure of a proposal: what does not recompute from the frozen context is not judged but refused."""

    role = Role.CRITIC

    def __init__(self, recall: Recall, minds: Minds) -> None:
        self._recall = recall
        self._minds = minds

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[Say]:
        payload = envelope.payload
        if not isinstance(payload, Proposal | Revision):
            raise Broken(f"the Critic does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        candidates = debate.rounds[-1].candidates
        check_debate(context, debate.rounds)
        mechanical = judge_all(candidates, context.profile)
        spoken = await ask(self._question(context, candidates, mechanical, number), self._minds)
        judgments = merge(candidates, mechanical, _judgments(spoken.value))
        judged = Round(
            candidates=candidates,
            mechanical=mechanical,
            judgments=judgments,
            suggestions=tuple(one.suggestion or "" for one in _ordered(spoken.value)),
        )
        debate = debate.model_copy(update={"rounds": (*debate.rounds[:-1], judged)})
        debate = with_voice(debate, self.role, number, spoken)
        texts = [f"Candidate {one.index}, {one.verdict}: {one.reason}" for one in judgments]
        debate = await think_aloud(debate, self.role, number, spoken.source, texts, think)
        return [self._next(context, debate, number)]

    def _next(self, context: Context, debate: Debate, number: int) -> Say:
        last = debate.rounds[-1]
        match next_step(overall(last.candidates, last.judgments), number, context.max_rounds):
            case NextStep.DECIDE:
                decision = critic_decides(last.candidates, last.judgments, context.profile, doubts=doubts(context))
                return Say(Role.CLI, conclude(context, debate, decision))
            case NextStep.REVISE:
                return Say(Role.STRATEGIST, Critique(debate=debate))
            case _:
                return Say(Role.ARBITER, Deadlock(debate=debate))

    def _question(
        self, context: Context, candidates: Sequence[Candidate], mechanical: Sequence[Judgment], number: int
    ) -> Question[CriticOpinion]:
        backing = Backing(context, candidates)
        return Question(
            role=self.role,
            round=number,
            prompt="critic",
            variables={
                "facts": context_lines(context),
                "pair": pairs_of(context),
                "candidates": candidate_lines(context, candidates, mechanical),
            },
            output=CriticOpinion,
            fallback=lambda: CriticOpinion(judgments=[_as_opinion(one) for one in mechanical]),
            judge=lambda said: _objection(said, candidates, mechanical),
            unsupported=lambda said: _unsupported(said, backing),
        )


def _unsupported(said: CriticOpinion, backing: Backing) -> Iterator[str]:
    """A reason speaks of the candidate it judges; a suggestion may point to any other."""
    for one in said.judgments:
        yield from backing(one.reason, one.index)
        yield from backing(one.suggestion or "", one.index, others=True)


def _as_opinion(judgment: Judgment) -> JudgmentOpinion:
    return JudgmentOpinion(
        index=judgment.index, verdict=judgment.verdict.value, reason=judgment.reason[:280], suggestion=None
    )


def _ordered(said: CriticOpinion) -> list[JudgmentOpinion]:
    return sorted(said.judgments, key=lambda one: one.index)


def _judgments(said: CriticOpinion) -> list[Judgment]:
    return [Judgment(one.index, Verdict(one.verdict), one.reason) for one in said.judgments]


def _objection(said: CriticOpinion, candidates: Sequence[Candidate], mechanical: Sequence[Judgment]) -> str | None:
    try:
        merge(candidates, mechanical, _judgments(said))
    except Malformed as error:
        return str(error)
    return None
