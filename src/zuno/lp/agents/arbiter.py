"""The Arbiter: called only when the debate does not converge; picks one candidate of the latest proposal."""

from __future__ import annotations

from collections.abc import Sequence

from zuno.kernel.errors import Broken, Malformed, Refused
from zuno.llm.ask import ModelContext, ask
from zuno.llm.question import Question
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.prompt_facts import (
    candidate_lines,
    context_lines,
    debate_lines,
    facts_of,
    pairs_of,
    text_faults,
)
from zuno.lp.agents.schemas import REASONING_CHARS, ArbiterOpinion
from zuno.lp.agents.strategist import Recall
from zuno.lp.agents.transcript import publish_thoughts, with_speaker
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import Decision, PlanVerdict, Verdict
from zuno.lp.model.debate import Context, Deadlock, Debate, Role
from zuno.lp.rules.ballot import arbiter_decides, with_arbiter_verdict
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import cut


class Arbiter:
    """May choose among what is left and be harsher than the rules; never milder, never a vetoed one.

    Like the Critic it trusts no figure: what does not recompute from the frozen context is refused.
    """

    role = Role.ARBITER

    def __init__(self, recall: Recall, model_context: ModelContext) -> None:
        self._recall = recall
        self._model_context = model_context

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        payload = envelope.payload
        if not isinstance(payload, Deadlock):
            raise Broken(f"the Arbiter does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        check_debate(context, debate.rounds)
        facts = facts_of(context, debate.rounds)
        answer = await ask(self._question(context, debate, facts), self._model_context)
        decision = _decision(context, debate, answer.value)
        debate = with_speaker(debate, self.role, number, answer)
        debate = await publish_thoughts(
            debate, self.role, number, answer.source, [answer.value.reasoning], facts, think
        )
        return [OutgoingMessage(Role.CLI, conclude(context, debate, decision))]

    def _question(self, context: Context, debate: Debate, facts: FactSheet) -> Question[ArbiterOpinion]:
        return Question(
            role=self.role,
            round=len(debate.rounds) - 1,
            prompt="arbiter",
            variables=lambda: {
                "facts": context_lines(context),
                "pair": pairs_of(context),
                "debate": debate_lines(context, debate.rounds),
                "candidates": candidate_lines(context, debate.rounds),
            },
            output=ArbiterOpinion,
            fallback=lambda: choose_by_score(context, debate, facts),
            judge=lambda opinion: _objection(context, debate, opinion),
            faults=lambda opinion: text_faults(opinion.reasoning, facts, opinion.chosen_index, REASONING_CHARS),
            slots=facts.list_ids,
            max_output_tokens=800,
        )


def choose_by_score(context: Context, debate: Debate, facts: FactSheet) -> ArbiterOpinion:
    """The Arbiter's own choice without a model: most points, then the profile's axis."""
    last = debate.rounds[-1]
    decision = arbiter_decides(last.candidates, last.judgments, context.profile, doubts=data_cautions(context))
    chosen, judged = last.candidates[decision.index], last.judgments[decision.index]
    history = "; ".join(
        f"round {number}: {_tally([judgment.verdict for judgment in round_.judgments])}"
        for number, round_ in enumerate(debate.rounds)
    )
    reasoning = (
        f"The debate did not converge ({history}). Scored by verdict and by the {context.profile} axis, candidate "
        f"{decision.index} ({chosen.kind}) stands first; in round {len(debate.rounds) - 1} the Critic said of it: "
        f"{judged.reason}"
    )
    reasoning = cut(reasoning, facts, REASONING_CHARS[1], decision.index)
    return ArbiterOpinion.model_validate(
        {"chosenIndex": decision.index, "verdict": decision.verdict.value, "reasoning": reasoning}
    )


def _decision(context: Context, debate: Debate, opinion: ArbiterOpinion) -> Decision:
    last = debate.rounds[-1]
    ruled = arbiter_decides(
        last.candidates, last.judgments, context.profile, doubts=data_cautions(context), chosen=opinion.chosen_index
    )
    return with_arbiter_verdict(ruled, PlanVerdict(opinion.verdict))


def _objection(context: Context, debate: Debate, opinion: ArbiterOpinion) -> str | None:
    if opinion.chosen_index >= len(debate.rounds[-1].candidates):
        return f"chosenIndex {opinion.chosen_index} is not on the latest ballot"
    try:
        decision = _decision(context, debate, opinion)
    except (Malformed, Refused) as error:
        return str(error)
    if decision.index != opinion.chosen_index:
        return f"every move was vetoed, so only candidate {decision.index} can be chosen"
    if "round" not in opinion.reasoning.lower():
        return "the reasoning does not quote the debate by round"
    return None


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
