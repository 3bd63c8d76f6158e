"""Inputs of the rules, built from a frozen context: the same bytes give the same inputs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from zuno.kernel.errors import Refused
from zuno.kernel.wire import pick
from zuno.lp.agents.pool_choice import kept_side, to_wrap
from zuno.lp.model.ballot import Candidate
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import Context, PoolFacts, PositionRequest
from zuno.lp.rules.candidates import PoolInputs, create_ballot, create_grid, rebalance_ballot, rebalance_grid
from zuno.lp.rules.fee_cover import measure_elasticity, measure_fee_cover
from zuno.lp.rules.own_range import place_in_pools
from zuno.lp.rules.ranges import Move, PoolGrid, kind_of
from zuno.lp.rules.stress import BLOCK_HOURS, draw_paths
from zuno.lp.rules.volatility import NANO, variance_24h

HOUR_SECONDS = 3600


@lru_cache(maxsize=8)
def build_pool_inputs(facts: PoolFacts, request: PositionRequest | None = None, chain: str = "") -> PoolInputs:
    """One pool with its paths drawn; the same returns give the same paths, which are kept between calls. `chain`: where
    the request is to be carried out."""
    returns, cover = [value / NANO for value in facts.returns_nano], facts.cover
    hours = round(facts.fees.seconds / HOUR_SECONDS) if facts.fees else len(returns)
    days = () if cover is None else cover.days
    variance = variance_24h(returns, hours) if cover is None or cover.variance is None else cover.variance
    return PoolInputs(
        **pick(facts, "pool", "position", "capital0", "capital1", "fees", "gas", "native_token1", "hedge"),
        use_all=request is not None and request.use_all,
        wraps=request is not None and to_wrap(request, facts.pool, chain) is not None,
        paths=draw_paths(returns, variance=variance) if len(returns) >= BLOCK_HOURS else None,
        variance_24h=variance,
        cover=cover_of(facts),
        elasticity=measure_elasticity(days),
    )


def cover_of(facts: PoolFacts) -> FeeCover | None:
    cover = facts.cover
    return None if cover is None else measure_fee_cover(cover.days, rewarded=cover.rewarded)


def build_all_pool_inputs(context: Context) -> tuple[PoolInputs, ...]:
    return tuple(build_pool_inputs(facts, context.wish, context.chain) for facts in context.scenes)


def build_grids(context: Context, pools: Sequence[PoolInputs]) -> tuple[PoolGrid, ...]:
    """Where ranges may lie, in the order of the pools."""
    if context.flow == "rebalance":
        return (rebalance_grid(pools[0]),)
    grids = []
    for inputs in pools:
        grid = create_grid(inputs, context.profile)
        if grid is None:
            raise Refused("A pool without a price history cannot be surveyed; name a pair that has one.")
        kept = None if context.wish is None else kept_side(context.wish, inputs.pool)
        # Of two tokens the one named first is the one to keep, however little of it there is.
        grids.append(grid if kept is None else replace(grid, capital_is_token0=kept == 0))
    return tuple(grids)


def build_ballot(context: Context, pools: Sequence[PoolInputs], moves: Sequence[Move]) -> tuple[Candidate, ...]:
    """Hold, close where there is something to close, and the moves, all figures computed."""
    return rebalance_ballot(pools[0], moves) if context.flow == "rebalance" else create_ballot(pools, moves)


def build_own_moves(context: Context) -> tuple[Move, ...]:
    """The owner's own range as a move in every pool it can be meant for; nothing where none was named."""
    moves = []
    for index, band in place_in_pools(context.own_range, [facts.pool for facts in context.scenes]).items():
        facts = context.scenes[index]
        held, spacing = facts.position.range if facts.position else None, facts.pool.key.tick_spacing
        moves.append(Move(kind_of(held, band, spacing), band, index))
    return tuple(moves)


def add_own_moves(context: Context, moves: Sequence[Move]) -> list[Move]:
    """The moves, and the owner's own range behind them: on every ballot, whatever was revised."""
    known = {move.key for move in moves}
    return [*moves, *(own for own in build_own_moves(context) if own.key not in known)]


def extract_moves(candidates: Sequence[Candidate]) -> tuple[Move, ...]:
    """The moves behind a ballot: all that a proposal really says."""
    return tuple(
        Move(candidate.kind, candidate.range, candidate.pool_index)
        for candidate in candidates
        if candidate.kind.move and candidate.range is not None
    )


def collect_tried_moves(rounds: Sequence[Sequence[Candidate]]) -> frozenset[tuple[int, int, int]]:
    return frozenset(move.key for candidates in rounds for move in extract_moves(candidates))
