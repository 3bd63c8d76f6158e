"""The Risk-Critic: recomputes every figure, applies the floors, and may only be stricter than they are."""

from collections.abc import Callable, Iterable, Sequence

from zuno.kernel.errors import Broken, Malformed
from zuno.llm.ask import ask
from zuno.llm.question import Question, Screen
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.pool_inputs import cover_of
from zuno.lp.agents.prompt_facts import (
    candidate_lines,
    context_lines,
    facts_of,
    pairs_of,
    pool_prefix,
    screen_field,
    text_faults,
)
from zuno.lp.agents.schemas import TEXT_CHARS, CriticOpinion, JudgmentOpinion
from zuno.lp.agents.strategist import Debater
from zuno.lp.agents.transcript import MAX_THOUGHT, publish_answer
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import Candidate, Judgment, NextStep, Verdict
from zuno.lp.model.debate import Context, Critique, Deadlock, Debate, Proposal, Revision, Role, Round
from zuno.lp.rules.ballot import (
    choose_next_step,
    critic_decides,
    describe_cover,
    judge_all,
    judge_proposal,
    merge,
)
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import cut


class Critic(Debater):
    """Trusts no figure of a proposal: what does not recompute from the frozen context is not judged but refused."""

    role = Role.CRITIC

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        payload = envelope.payload
        if not isinstance(payload, Proposal | Revision):
            raise Broken(f"the Critic does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        candidates = debate.rounds[-1].candidates
        check_debate(context, debate.rounds)
        mechanical = judge_all(candidates, context.profile)
        facts = facts_of(context, debate.rounds)
        answer = await ask(self._question(context, debate.rounds, mechanical, facts), self._model_context)
        judgments = merge(candidates, mechanical, _judgments(answer.value))
        in_order = sorted(answer.value.judgments, key=lambda judgment: judgment.index)
        judged = Round(
            candidates=candidates,
            mechanical=mechanical,
            judgments=judgments,
            suggestions=tuple(judgment.suggestion or "" for judgment in in_order),
        )
        debate = debate.model_copy(update={"rounds": (*debate.rounds[:-1], judged)})
        texts = [describe_pools(context)]
        texts += [f"Candidate {judgment.index}, {judgment.verdict}: {judgment.reason}" for judgment in judgments]
        debate = await publish_answer(debate, self.role, number, answer, texts, facts, think)
        return [self._next(context, debate, number)]

    def _next(self, context: Context, debate: Debate, number: int) -> OutgoingMessage:
        last = debate.rounds[-1]
        match choose_next_step(judge_proposal(last), number, context.max_rounds):
            case NextStep.DECIDE:
                decision = critic_decides(last, context.profile, doubts=data_cautions(context))
                return OutgoingMessage(Role.CLI, conclude(context, debate, decision))
            case NextStep.REVISE:
                return OutgoingMessage(Role.STRATEGIST, Critique(debate=debate))
            case _:
                return OutgoingMessage(Role.ARBITER, Deadlock(debate=debate))

    def _question(
        self, context: Context, rounds: Sequence[Round], mechanical: Sequence[Judgment], facts: FactSheet
    ) -> Question[CriticOpinion]:
        candidates = rounds[-1].candidates
        return Question(
            role=self.role,
            round=len(rounds) - 1,
            prompt="critic",
            variables=lambda: {
                "facts": context_lines(context),
                "pair": pairs_of(context),
                "candidates": candidate_lines(context, rounds, mechanical),
            },
            output=CriticOpinion,
            fallback=lambda: CriticOpinion(judgments=[_as_opinion(judgment, facts) for judgment in mechanical]),
            judge=lambda opinion: _objection(opinion, candidates, mechanical),
            prose=lambda opinion, screen: _screen_judgments(opinion, mechanical, facts, screen),
        )


def describe_pools(context: Context) -> str:
    """The first question of a debate: in or out, pool by pool, with slots."""
    texts = [describe_pool(context, index) for index in range(len(context.scenes))]
    if len(texts) > 1:
        texts = [f"Pool {index}: {text}" for index, text in enumerate(texts)]
    return "In or out: " + "; ".join(texts) + "."


def describe_pool(context: Context, index: int) -> str:
    said = describe_cover(cover_of(context.scenes[index]), pool_prefix(context, index))
    return said or "whether this pool's fees pay for what arbitrage takes is not known"


def _screen_judgments(
    opinion: CriticOpinion, mechanical: Sequence[Judgment], facts: FactSheet, screen: Screen
) -> CriticOpinion:
    """Reason and suggestion speak of the judged candidate. A reason is read as peers read it when published."""

    def screen_judgment(judgment: JudgmentOpinion) -> JudgmentOpinion:
        index, reason = judgment.index, mechanical[judgment.index].reason
        lead = f"Candidate {index}, {judgment.verdict}: "

        def screen_thought(text: str, faults: Callable[[str], Iterable[str]], otherwise: str) -> str:
            def find(piece: str) -> Iterable[str]:
                return [*faults(piece)] or text_faults(f"{lead}{piece}", facts, index, (0, MAX_THOUGHT))

            return screen(text, find, otherwise)

        kept = screen_field(judgment, "reason", screen_thought, facts, reason, index)
        return screen_field(kept, "suggestion", screen, facts, about=index)

    return opinion.model_copy(update={"judgments": [*map(screen_judgment, opinion.judgments)]})


def _as_opinion(judgment: Judgment, facts: FactSheet) -> JudgmentOpinion:
    reason = cut(judgment.reason, facts, TEXT_CHARS[1], judgment.index)
    return JudgmentOpinion(index=judgment.index, verdict=judgment.verdict.value, reason=reason, suggestion=None)


def _judgments(opinion: CriticOpinion) -> list[Judgment]:
    return [Judgment(judgment.index, Verdict(judgment.verdict), judgment.reason) for judgment in opinion.judgments]


def _objection(opinion: CriticOpinion, candidates: Sequence[Candidate], mechanical: Sequence[Judgment]) -> str | None:
    try:
        merge(candidates, mechanical, _judgments(opinion))
    except Malformed as error:
        return str(error)
    return None
