"""The Arbiter: called only when the debate does not converge; picks one candidate of the latest proposal."""

from __future__ import annotations

from collections.abc import Sequence

from zuno.agents.ask import Minds, ask
from zuno.agents.peer import Say, Think
from zuno.agents.question import Question
from zuno.core.ballot import arbiter_decides, no_milder
from zuno.desks.lp.knowledge import Backing, candidate_lines, context_lines, debate_lines, pairs_of
from zuno.desks.lp.opinions import ArbiterOpinion
from zuno.desks.lp.proposals import check_debate
from zuno.desks.lp.speaking import think_aloud, with_voice
from zuno.desks.lp.strategist import Recall
from zuno.desks.lp.verdicts import conclude, doubts
from zuno.domain.debate import Decision, PlanVerdict, Verdict
from zuno.domain.errors import Broken, Malformed, Refused
from zuno.messages.debate import Context, Deadlock, Debate, Role
from zuno.messages.envelope import Envelope


class Arbiter:
    """May choose among what is left and be harsher than the rules; never milder, never a vetoed one.

    Like the Critic it trusts no figure: what does not recompute from the frozen context is refused.
    """

    role = Role.ARBITER

    def __init__(self, recall: Recall, minds: Minds) -> None:
        self._recall = recall
        self._minds = minds

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[Say]:
        payload = envelope.payload
        if not isinstance(payload, Deadlock):
            raise Broken(f"the Arbiter does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        check_debate(context, debate.rounds)
        spoken = await ask(self._question(context, debate, number), self._minds)
        decision = _decision(context, debate, spoken.value)
        debate = with_voice(debate, self.role, number, spoken)
        debate = await think_aloud(debate, self.role, number, spoken.source, [spoken.value.reasoning], think)
        return [Say(Role.CLI, conclude(context, debate, decision))]

    def _question(self, context: Context, debate: Debate, number: int) -> Question[ArbiterOpinion]:
        last = debate.rounds[-1]
        backing = Backing(context, [one for round_ in debate.rounds for one in round_.candidates])
        return Question(
            role=self.role,
            round=number,
            prompt="arbiter",
            variables={
                "facts": context_lines(context),
                "pair": pairs_of(context),
                "debate": debate_lines(debate.rounds),
                "candidates": candidate_lines(context, last.candidates),
            },
            output=ArbiterOpinion,
            fallback=lambda: scored(context, debate),
            judge=lambda said: _objection(context, debate, said),
            unsupported=lambda said: backing(said.reasoning, said.chosen_index, others=True),
            max_output_tokens=800,
        )


def scored(context: Context, debate: Debate) -> ArbiterOpinion:
    """The Arbiter's own choice without a model: most points, then the profile's axis."""
    last = debate.rounds[-1]
    decision = arbiter_decides(last.candidates, last.judgments, context.profile, doubts=doubts(context))
    chosen, judged = last.candidates[decision.index], last.judgments[decision.index]
    history = "; ".join(
        f"round {number}: {_tally([one.verdict for one in round_.judgments])}"
        for number, round_ in enumerate(debate.rounds)
    )
    reasoning = (
        f"The debate did not converge ({history}). Scored by verdict and by the {context.profile} axis, candidate "
        f"{decision.index} ({chosen.kind}) stands first; in round {len(debate.rounds) - 1} the Critic said of it: "
        f"{judged.reason}"
    )
    return ArbiterOpinion.model_validate(
        {"chosenIndex": decision.index, "verdict": decision.verdict.value, "reasoning": reasoning[:2_000]}
    )


def _decision(context: Context, debate: Debate, said: ArbiterOpinion) -> Decision:
    last = debate.rounds[-1]
    ruled = arbiter_decides(
        last.candidates, last.judgments, context.profile, doubts=doubts(context), chosen=said.chosen_index
    )
    return no_milder(ruled, PlanVerdict(said.verdict))


def _objection(context: Context, debate: Debate, said: ArbiterOpinion) -> str | None:
    if said.chosen_index >= len(debate.rounds[-1].candidates):
        return f"chosenIndex {said.chosen_index} is not on the latest ballot"
    try:
        decision = _decision(context, debate, said)
    except (Malformed, Refused) as error:
        return str(error)
    if decision.index != said.chosen_index:
        return f"every move was vetoed, so only candidate {decision.index} can be chosen"
    if "round" not in said.reasoning.lower():
        return "the reasoning does not quote the debate by round"
    return None


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
