"""Arms of the LP desk with something left out: no argument, one agent, a vote of agents, or a placebo Critic."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.errors import Broken
from zuno.lab.lp.arms import STAY, ArmAction, ModelUse
from zuno.llm.ask import ModelContext, ask
from zuno.llm.question import Opinion, Question, SourcedAnswer
from zuno.lp.agents.conclude import conclude, data_cautions
from zuno.lp.agents.pool_inputs import build_all_pool_inputs, build_ballot, build_grids
from zuno.lp.agents.prompt_facts import candidate_lines, context_lines, facts_of, pairs_of, screen_field
from zuno.lp.agents.strategist import Debater, ProposalInputs, rule_moves
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import Candidate, CandidateKind, Fault, Judgment, NextStep, Verdict
from zuno.lp.model.debate import Context, Critique, Debate, Proposal, Revision, Role, Round
from zuno.lp.rules.ballot import arbiter_decides, choose_next_step, critic_decides, judge_all, judge_proposal
from zuno.lp.rules.worth import worth_of_capital

ROLE: Final = "strategist"
"""Whose model is asked: the one that proposes in a debate."""
MOST_VOTES: Final = 9
REASONING_CHARS: Final = (1, 600)


class ChoiceOpinion(Opinion):
    chosen_index: Annotated[int, Field(ge=0, alias="chosenIndex")]
    reasoning: Annotated[str, Field(min_length=REASONING_CHARS[0], max_length=2 * REASONING_CHARS[1])]


def propose_by_rules(context: Context) -> tuple[Candidate, ...]:
    """The ballot that a debate by rules begins with."""
    pools = build_all_pool_inputs(context)
    inputs = ProposalInputs(context, pools, build_grids(context, pools), frozenset(), ())
    return build_ballot(context, pools, rule_moves(inputs))


def choose_best_score(context: Context) -> ArmAction:
    """The candidate worth most until the horizon, whatever it costs to be wrong: no floor, no hurdle, no critic."""
    candidates = propose_by_rules(context)
    worths = {candidate.index: worth for candidate in candidates if (worth := worth_of_capital(candidate)) is not None}
    if not worths:
        return STAY
    return act_on(candidates[max(worths, key=lambda index: (worths[index], -index))])


async def choose_by_single_agent(context: Context, model_context: ModelContext) -> ArmAction:
    candidates = propose_by_rules(context)
    answer = await ask(_question(context, candidates, 0), model_context)
    return replace(act_on(candidates[answer.value.chosen_index]), used=count_use(answer))


async def choose_by_vote(context: Context, model_context: ModelContext, tokens: int) -> ArmAction:
    """Independent agents, one after the other until the tokens are used; most votes win, ties go to the lower index."""
    candidates = propose_by_rules(context)
    votes: Counter[int] = Counter()
    used = ModelUse()
    while len(votes) == 0 or (used.tokens < tokens and votes.total() < MOST_VOTES):
        answer = await ask(_question(context, candidates, votes.total()), model_context)
        votes[answer.value.chosen_index] += 1
        used = used.plus(count_use(answer))
    winner = max(votes, key=lambda index: (votes[index], -index))
    return replace(act_on(candidates[winner]), used=used)


def act_on(candidate: Candidate) -> ArmAction:
    match candidate.kind:
        case CandidateKind.HOLD:
            return STAY
        case CandidateKind.CLOSE:
            return ArmAction(close=True)
        case _:
            return ArmAction(candidate.range)


def count_use(answer: SourcedAnswer[ChoiceOpinion]) -> ModelUse:
    use = ModelUse()
    for attempt in answer.attempts:
        spent = attempt.usd if attempt.usd is not None else ModelUse().usd
        use = use.plus(ModelUse(attempt.tokens_in + attempt.tokens_out, spent, frozenset({attempt.model})))
    return use


def _question(context: Context, candidates: tuple[Candidate, ...], number: int) -> Question[ChoiceOpinion]:
    rounds = (Round(candidates=candidates),)
    facts = facts_of(context, rounds)
    vetoed = {judgment.index for judgment in judge_all(candidates, context.profile) if judgment.verdict is Verdict.VETO}

    def object_to(opinion: ChoiceOpinion) -> str | None:
        if opinion.chosen_index >= len(candidates):
            return f"chosenIndex {opinion.chosen_index} is not one of the {len(candidates)} candidates"
        return "the rules veto that candidate" if opinion.chosen_index in vetoed else None

    return Question(
        role=ROLE,
        round=number,
        prompt="single",
        variables=lambda: {
            "facts": context_lines(context),
            "pair": pairs_of(context),
            "candidates": candidate_lines(context, rounds),
        },
        output=ChoiceOpinion,
        fallback=lambda: ChoiceOpinion.model_validate({"chosenIndex": 0, "reasoning": "It stays as it is."}),
        judge=object_to,
        prose=lambda opinion, screen: screen_field(
            opinion, "reasoning", screen, facts, about=opinion.chosen_index, most=REASONING_CHARS[1]
        ),
    )


class _StandIn(Debater):
    """Takes the Critic's place in a debate: answers a proposal with a decision or a critique."""

    role = Role.CRITIC

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        payload = envelope.payload
        if not isinstance(payload, Proposal | Revision):
            raise Broken(f"the Critic's seat does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds) - 1
        context = await self._recall(debate.context)
        last = debate.rounds[-1]
        mechanical = judge_all(last.candidates, context.profile)
        judgments = self.judge(debate, mechanical)
        judged = last.model_copy(update={"mechanical": mechanical, "judgments": judgments})
        debate = debate.model_copy(update={"rounds": (*debate.rounds[:-1], judged)})
        return [_end_or_answer(context, debate, number)]

    def judge(self, debate: Debate, mechanical: Sequence[Judgment]) -> tuple[Judgment, ...]:
        raise NotImplementedError


class AbsentCritic(_StandIn):
    """Every candidate passes: the first proposal is decided by what its candidates are worth."""

    def judge(self, debate: Debate, mechanical: Sequence[Judgment]) -> tuple[Judgment, ...]:
        return tuple(replace(judgment, verdict=Verdict.ACCEPT, fault=Fault.NONE) for judgment in mechanical)


class PlaceboCritic(_StandIn):
    """As many accepted, sent back and vetoed as the rules have it, but dealt to the moves at random."""

    def judge(self, debate: Debate, mechanical: Sequence[Judgment]) -> tuple[Judgment, ...]:
        moves = [candidate.index for candidate in debate.rounds[-1].candidates if candidate.kind.move]
        dealt = [*moves]
        Random(f"{debate.context} {len(debate.rounds)}").shuffle(dealt)
        judgments = [*mechanical]
        for index, source in zip(moves, dealt, strict=True):
            judgments[index] = replace(mechanical[source], index=index)
        return tuple(judgments)


def _end_or_answer(context: Context, debate: Debate, number: int) -> OutgoingMessage:
    last, doubts = debate.rounds[-1], data_cautions(context)
    match choose_next_step(judge_proposal(last), number, context.max_rounds):
        case NextStep.DECIDE:
            decision = critic_decides(last, context.profile, doubts=doubts)
        case NextStep.REVISE:
            return OutgoingMessage(Role.STRATEGIST, Critique(debate=debate))
        case _:  # the Arbiter would refuse judgments that are not the rules': its rules decide
            decision = arbiter_decides(last, context.profile, doubts=doubts)
    return OutgoingMessage(Role.CLI, conclude(context, debate, decision))
