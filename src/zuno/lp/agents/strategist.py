"""The Strategist: two to five shapes that suit the regime, and after a critique, shapes that answer it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from zuno.kernel.errors import Broken
from zuno.llm.ask import ModelContext, ask
from zuno.llm.prompts import Untrusted, Value
from zuno.llm.question import BY_RULE, Question
from zuno.lp.agents import pool_inputs
from zuno.lp.agents.prompt_facts import candidate_lines, context_lines, facts_of, pairs_of, screen_field
from zuno.lp.agents.schemas import CreateShapeOpinion, CreateStrategistOpinion, StrategistOpinion
from zuno.lp.agents.transcript import publish_answer
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.ballot import Candidate, Exposure, Judgment, Verdict
from zuno.lp.model.debate import Context, ContextObserved, Critique, Debate, Proposal, Revision, Role, Round
from zuno.lp.rules.ballot import POINTS, judge, judge_all
from zuno.lp.rules.candidates import PoolInputs
from zuno.lp.rules.limits import LIMITS, MOST_PROPOSED
from zuno.lp.rules.ranges import DETERMINISTIC_SHAPES, Move, PoolGrid, Shape, judged_moves, propose, revise
from zuno.lp.rules.worth import worth_of_capital

Recall = Callable[[str], Awaitable[Context]]


@dataclass(frozen=True, slots=True)
class ProposalInputs:
    context: Context
    pools: tuple[PoolInputs, ...]
    grids: tuple[PoolGrid, ...]
    tried: frozenset[tuple[int, int, int]]
    rounds: tuple[Round, ...]

    def moves(self, shapes: Sequence[Shape]) -> list[Move]:
        return propose(self.grids, shapes, self.tried)


class Debater:
    """An agent that argues about a context that was frozen for it."""

    def __init__(self, recall: Recall, model_context: ModelContext) -> None:
        self._recall = recall
        self._model_context = model_context


class Strategist(Debater):
    """A model chooses shapes; ticks, amounts, stress and carry are computed from them."""

    role = Role.STRATEGIST

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        payload = envelope.payload
        if not isinstance(payload, ContextObserved | Critique):
            raise Broken(f"the Strategist does not answer {envelope.kind}")
        debate, number = payload.debate, len(payload.debate.rounds)
        inputs = await self._build_inputs(debate)
        answer = await ask(self._question(inputs, number), self._model_context)
        by_model = answer.source in ("model", "repaired")
        moves = inputs.moves(_shapes(answer.value)) if by_model else rule_moves(inputs)
        candidates = pool_inputs.build_ballot(
            inputs.context, inputs.pools, pool_inputs.add_own_moves(inputs.context, moves)
        )
        texts = [shape.rationale for shape in answer.value.shapes if shape.rationale] if by_model else []
        if not texts:
            lines = [_line(inputs.context, candidate) for candidate in candidates if candidate.kind.move]
            lines = lines or ["No other range answers the critique; holding is what is left."]
            texts = [f"{BY_RULE if by_model else ''}{line}" for line in lines]
        debate = debate.model_copy(update={"rounds": (*debate.rounds, Round(candidates=candidates))})
        facts = facts_of(inputs.context, debate.rounds)
        debate = await publish_answer(debate, self.role, number, answer, texts, facts, think)
        return [OutgoingMessage(Role.CRITIC, Revision(debate=debate) if number else Proposal(debate=debate))]

    async def _build_inputs(self, debate: Debate) -> ProposalInputs:
        context = await self._recall(debate.context)
        pools = pool_inputs.build_all_pool_inputs(context)
        tried = pool_inputs.collect_tried_moves([round_.candidates for round_ in debate.rounds])
        return ProposalInputs(context, pools, pool_inputs.build_grids(context, pools), tried, debate.rounds)

    def _question(self, inputs: ProposalInputs, number: int) -> Question[Any]:
        """Rebalance and create differ in what may be said, not in how it is judged."""
        context, create = inputs.context, inputs.context.flow == "create"
        rules = _placeholder(create)
        # Its own candidates do not exist yet: what it may cite are those of the rounds before.
        facts = facts_of(context, inputs.rounds, len(inputs.rounds))
        return Question(
            role=self.role,
            round=number,
            prompt="strategist_create" if create else "strategist",
            variables=lambda: _variables(inputs),
            output=CreateStrategistOpinion if create else StrategistOpinion,
            fallback=lambda: rules,
            judge=lambda opinion: None if opinion is rules else _objection(opinion, inputs),
            prose=lambda opinion, screen: opinion.model_copy(
                update={"shapes": [screen_field(shape, "rationale", screen, facts) for shape in opinion.shapes]}
            ),
        )


def _variables(inputs: ProposalInputs) -> dict[str, Value]:
    context, request = inputs.context, inputs.context.wish
    last = inputs.rounds[-1] if inputs.rounds else None
    judged = candidate_lines(context, inputs.rounds, _with_advice(last), earlier=True) if last else "none"
    variables: dict[str, Value] = {"facts": context_lines(context), "pair": pairs_of(context), "judged": judged}
    if context.flow == "create":
        held = ", ".join(f"{line.amount} {line.token}" for line in request.capital) if request else ""
        variables["capital"] = Untrusted(held)
        variables["exposure"] = str((request.exposure if request else None) or Exposure.NEUTRAL)
    return variables


def _with_advice(judged: Round) -> list[Judgment]:
    """What the Critic said of each candidate, and what it suggested instead."""
    advice = (*judged.suggestions, *("" for _ in judged.judgments))
    return [
        replace(judgment, reason=f"{judgment.reason} Suggested: {suggestion}" if suggestion else judgment.reason)
        for judgment, suggestion in zip(judged.judgments, advice, strict=False)
    ]


def rule_moves(inputs: ProposalInputs) -> list[Move]:
    """What the rules propose: fixed multipliers first, then the narrowest ranges that answer the critique."""
    if not inputs.rounds:
        request = inputs.context.wish
        exposure = (request.exposure if request else None) or Exposure.NEUTRAL
        pools = range(len(inputs.grids))
        shapes = [
            replace(shape, exposure=exposure, pool_index=pool) for pool in pools for shape in DETERMINISTIC_SHAPES
        ]
        return _keep_best(inputs, inputs.moves(shapes))
    last, own = inputs.rounds[-1], {move.key for move in pool_inputs.build_own_moves(inputs.context)}
    judged = judged_moves(last.candidates, last.judgments)
    return revise(
        inputs.grids,
        [(move, fault) for move, fault in judged if move.key not in own],
        [pool.paths for pool in inputs.pools],
        LIMITS[inputs.context.profile],
        inputs.tried,
    )


def _keep_best(inputs: ProposalInputs, moves: list[Move]) -> list[Move]:
    """At most `MOST_PROPOSED` of all pools together, in their order: by verdict, then by what their capital earns."""
    if len(moves) <= MOST_PROPOSED:
        return moves
    ballot = pool_inputs.build_ballot(inputs.context, inputs.pools, moves)[-len(moves) :]

    def rank(place: int) -> tuple[int, bool, Fraction]:
        verdict, worth = judge(ballot[place], inputs.context.profile).verdict, worth_of_capital(ballot[place])
        return POINTS[verdict], worth is not None, worth or Fraction(0)

    best = sorted(range(len(moves)), key=rank, reverse=True)[:MOST_PROPOSED]
    return [moves[place] for place in sorted(best)]


def _line(context: Context, candidate: Candidate) -> str:
    """A move in figures that the candidate itself carries."""
    own = f"c{candidate.index}"
    where = f"{{{own}.lower}} to {{{own}.upper}}"
    if len(context.scenes) > 1:
        where = f"{where} in pool {candidate.pool_index}"
    if candidate.stress is None:
        return f"Candidate {candidate.index}, {candidate.kind}: {where}; no history to stress it with."
    buffers = f"buffer {{{own}.buffer_1x}} at 1× and {{{own}.buffer_2x}} at 2×"
    return f"Candidate {candidate.index}, {candidate.kind}: {where}, {buffers}."


def _shapes(opinion: StrategistOpinion | CreateStrategistOpinion) -> list[Shape]:
    shapes = []
    for shape in opinion.shapes:
        own: dict[str, Any] = {}
        if isinstance(shape, CreateShapeOpinion):
            own = {"pool_index": shape.pool_index, "exposure": Exposure(shape.exposure_bias)}
        shapes.append(Shape(Fraction(shape.width_percent, 100), shape.center_offset_ticks, **own))
    return shapes


def _objection(opinion: StrategistOpinion | CreateStrategistOpinion, inputs: ProposalInputs) -> str | None:
    wanted = inputs.context.wish.exposure if inputs.context.wish else None
    for shape in opinion.shapes:
        if isinstance(shape, CreateShapeOpinion) and shape.pool_index >= len(inputs.grids):
            return f"poolIndex {shape.pool_index} is not one of the {len(inputs.grids)} pools shown"
        if isinstance(shape, CreateShapeOpinion) and wanted is not None and shape.exposure_bias != wanted:
            return f"the owner asked for the exposureBias {wanted}"
    moves = inputs.moves(_shapes(opinion))
    if not moves:
        return "every shape was tried before or is the range held now; propose others"
    return _find_evasion(moves, inputs) if inputs.rounds else None


def _find_evasion(moves: Sequence[Move], inputs: ProposalInputs) -> str | None:
    """A revision answers its critique: what the rules sent back must not come back as bad, if the rules know better."""
    context, pools = inputs.context, inputs.pools

    def verdicts(proposed: Sequence[Move]) -> list[Judgment]:
        return list(judge_all(pool_inputs.build_ballot(context, pools, proposed), context.profile)[-len(proposed) :])

    judgments = verdicts(moves)
    if any(judgment.verdict is Verdict.ACCEPT for judgment in judgments):
        return None
    known = rule_moves(inputs)
    if not known or all(verdict.verdict is not Verdict.ACCEPT for verdict in verdicts(known)):
        return None
    best = judgments[0]
    return f"no shape answers the critique: the best you propose is still judged {best.verdict}, {best.reason}"


def _placeholder(create: bool) -> StrategistOpinion | CreateStrategistOpinion:
    """The rules speak in ranges, not in shapes; this only says that they speak."""
    shape = {"widthPercent": 100, "centerOffsetTicks": 0, "rationale": "-"}
    if create:
        shape |= {"poolIndex": 0, "exposureBias": "neutral"}
    form = CreateStrategistOpinion if create else StrategistOpinion
    return form.model_validate({"shapes": [shape, {**shape, "widthPercent": 140}]})
