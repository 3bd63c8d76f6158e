"""What a proposal must be before it is worth judging: a Strategist elsewhere may be mistaken, or lie."""

from collections.abc import Sequence

from zuno.amm.ticks import max_usable_tick, min_usable_tick
from zuno.kernel.errors import Malformed
from zuno.lp.agents import pool_inputs
from zuno.lp.agents.prompt_facts import facts_of, text_faults
from zuno.lp.model.debate import MOST_MOVES, Context, Round
from zuno.lp.rules.ballot import judge_all, merge
from zuno.lp.rules.ranges import kind_of


def check_debate(context: Context, rounds: Sequence[Round]) -> None:
    """`Malformed` unless every ballot is allowed, its figures recompute and no verdict is milder than the rules'."""
    if len(rounds) > context.max_rounds + 1:
        raise Malformed(f"{len(rounds)} rounds were argued, the owner allowed {context.max_rounds} revisions")
    pools = pool_inputs.build_all_pool_inputs(context)
    for number, round_ in enumerate(rounds):
        check_moves(context, rounds[: number + 1])
        if pool_inputs.build_ballot(context, pools, pool_inputs.extract_moves(round_.candidates)) != round_.candidates:
            raise Malformed(f"the figures of round {number} do not recompute from the context")
        if round_.mechanical and round_.mechanical != judge_all(round_.candidates, context.profile):
            raise Malformed(f"the rules' verdicts of round {number} do not recompute from the context")
        if round_.is_judged and merge(round_.candidates, round_.mechanical, round_.judgments) != round_.judgments:
            raise Malformed(f"a judgment of round {number} is milder than the rules")
        check_words(context, rounds, number)


def check_words(context: Context, rounds: Sequence[Round], number: int) -> None:
    """`Malformed` unless what was said of each candidate cites its figures, whoever said it."""
    facts = facts_of(context, rounds, number)
    round_ = rounds[number]
    suggestions = (*round_.suggestions, *("" for _ in round_.judgments))
    for judgment, suggestion in zip(round_.judgments, suggestions, strict=False):
        for text in (judgment.reason, suggestion):
            if faults := text_faults(text, facts, judgment.index, (0, 2_000)):
                raise Malformed(f"round {number}, the words on candidate {judgment.index}: {faults[0]}")


def check_moves(context: Context, rounds: Sequence[Round]) -> None:
    """`Malformed` unless its moves are few, on the grid, new to the debate and called what they are."""
    own = {move.key for move in pool_inputs.build_own_moves(context)}
    every = pool_inputs.extract_moves(rounds[-1].candidates)
    if missing := own - {move.key for move in every}:
        raise Malformed(f"the owner's own range {missing} is not on the ballot")
    moves = [move for move in every if move.key not in own]
    if len(every) > len(moves) + len(own):
        raise Malformed("the owner's own range is on the ballot twice")
    if len(moves) > MOST_MOVES:
        raise Malformed(f"{len(moves)} moves were proposed, {MOST_MOVES} are the most")
    tried = set(pool_inputs.collect_tried_moves([earlier.candidates for earlier in rounds[:-1]])) - own
    for move in every:
        if not 0 <= move.pool_index < len(context.scenes):
            raise Malformed(f"a move lies in pool {move.pool_index}, {len(context.scenes)} were surveyed")
        pool_facts = context.scenes[move.pool_index]
        held, spacing = pool_facts.position.range if pool_facts.position else None, pool_facts.pool.key.tick_spacing
        where = f"{move.range.lower} to {move.range.upper}"
        usable = min_usable_tick(spacing) <= move.range.lower < move.range.upper <= max_usable_tick(spacing)
        if not usable or move.range.lower % spacing or move.range.upper % spacing:
            raise Malformed(f"the range {where} is not on the pool's grid")
        if move.kind is not kind_of(held, move.range, spacing):
            raise Malformed(f"the move to {where} is called {move.kind}")
        if move.key in tried or move.range == held:
            raise Malformed(f"the range {where} was on the table before")
        tried.add(move.key)
