"""The Arbiter: called only when the debate does not converge; picks one candidate of the latest proposal."""

from collections import Counter
from collections.abc import Sequence

from zuno.kernel.errors import Broken, Malformed, Refused
from zuno.llm.ask import ask
from zuno.llm.question import Question, Screen
from zuno.lp.agents import prompt_facts
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.schemas import REASONING_CHARS, ArbiterOpinion
from zuno.lp.agents.strategist import Debater
from zuno.lp.agents.transcript import publish_answer
from zuno.lp.agents.verify_debate import check_debate
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import Decision, PlanVerdict, Verdict
from zuno.lp.model.debate import Context, Deadlock, Debate, Role
from zuno.lp.rules.ballot import AXES, arbiter_decides, with_arbiter_verdict
from zuno.provenance.facts import FactSheet
from zuno.provenance.slots import cut

ARBITER_FACTS_TOKENS = 220
"""Its axis takes the room of the rest."""
UNUSABLE_REASON = "the reason it gave cannot be used."


class Arbiter(Debater):
    """May choose among what is left and be harsher than the rules; never milder, never a vetoed one. Like the Critic it
    trusts no figure: what does not recompute from the frozen context is refused."""

    role = Role.ARBITER

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        payload = envelope.payload
        if not isinstance(payload, Deadlock):
            raise Broken(f"the Arbiter does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        check_debate(context, debate.rounds)
        facts = prompt_facts.facts_of(context, debate.rounds)
        answer = await ask(self._question(context, debate, facts), self._model_context)
        decision = _decision(context, debate, answer.value)
        texts, axis = [answer.value.reasoning], context.profile
        if (first := _first_by_axis(context, debate)) != answer.value.chosen_index:
            texts.append(f"Candidate {first} stands first by the {axis} axis; against it: {answer.value.against_axis}")
        debate = await publish_answer(debate, self.role, number, answer, texts, facts, think)
        return [OutgoingMessage(Role.CLI, conclude(context, debate, decision))]

    def _question(self, context: Context, debate: Debate, facts: FactSheet) -> Question[ArbiterOpinion]:
        return Question(
            role=self.role,
            round=len(debate.rounds) - 1,
            prompt="arbiter",
            variables=lambda: {
                "facts": prompt_facts.context_lines(context, ARBITER_FACTS_TOKENS),
                "pair": prompt_facts.pairs_of(context),
                "debate": prompt_facts.debate_lines(context, debate.rounds),
                "candidates": prompt_facts.candidate_lines(context, debate.rounds),
                "profile": str(context.profile),
                "axis": AXES[context.profile],
                "first": _first_by_axis(context, debate),
            },
            output=ArbiterOpinion,
            fallback=lambda: choose_by_score(context, debate, facts),
            judge=lambda opinion: _objection(context, debate, opinion),
            prose=lambda opinion, screen: _screen_opinion(opinion, debate, facts, screen),
            max_output_tokens=800,
        )


def choose_by_score(context: Context, debate: Debate, facts: FactSheet) -> ArbiterOpinion:
    """The Arbiter's own choice without a model: most points, then the profile's axis."""
    last = debate.rounds[-1]
    decision = arbiter_decides(last, context.profile, doubts=data_cautions(context))
    chosen, judged = last.candidates[decision.index], last.judgments[decision.index]
    reasoning = (
        f"{_summarise_rounds(debate)} Scored by verdict and by the {context.profile} axis, candidate "
        f"{decision.index} ({chosen.kind}) stands first; in round {len(debate.rounds) - 1} the Critic said of it: "
        f"{judged.reason}"
    )
    reasoning = cut(reasoning, facts, REASONING_CHARS[1], decision.index)
    chosen_index = {"chosenIndex": decision.index, "againstAxis": None}
    return ArbiterOpinion.model_validate({**chosen_index, "verdict": decision.verdict.value, "reasoning": reasoning})


def _summarise_rounds(debate: Debate) -> str:
    history = []
    for number, round_ in enumerate(debate.rounds):
        counts = Counter(judgment.verdict for judgment in round_.judgments)
        tally = (f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        history.append(f"round {number}: {', '.join(tally)}")
    return f"The debate did not converge ({'; '.join(history)})."


def _first_by_axis(context: Context, debate: Debate) -> int:
    return arbiter_decides(debate.rounds[-1], context.profile).index


def _screen_opinion(opinion: ArbiterOpinion, debate: Debate, facts: FactSheet, screen: Screen) -> ArbiterOpinion:
    """Its paragraph quotes the debate by round; where it does not, the rules' count of the rounds stands before it."""
    index, most = opinion.chosen_index, REASONING_CHARS[1]
    reasoning = prompt_facts.screen_field(opinion, "reasoning", screen, facts, about=index, most=most).reasoning
    if "round" not in reasoning.lower():
        reasoning = f"{_summarise_rounds(debate)} {reasoning}".strip()
    against = screen(
        opinion.against_axis or "", lambda piece: prompt_facts.text_faults(piece, facts, index), UNUSABLE_REASON
    )
    return opinion.model_copy(update={"reasoning": reasoning, "against_axis": against})


def _decision(context: Context, debate: Debate, opinion: ArbiterOpinion) -> Decision:
    last, doubts = debate.rounds[-1], data_cautions(context)
    ruled = arbiter_decides(last, context.profile, doubts=doubts, chosen=opinion.chosen_index)
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
    first = _first_by_axis(context, debate)
    if opinion.chosen_index != first and not (opinion.against_axis or "").strip():
        return f"candidate {first} stands first by the profile's axis: another one takes a reason in againstAxis"
    return None
