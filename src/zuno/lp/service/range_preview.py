"""A range of the owner's own before anybody argues: fees, fee cover, buffer and worth, by the rules of the debate."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from zuno.amm.model import NO_HOOKS, LpPosition, sqrt_price_for, whole_price
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import NotFound
from zuno.kernel.text import base_and_quote
from zuno.kernel.units import Amount, Liquidity
from zuno.lp.agents import pool_inputs
from zuno.lp.agents.prompt_facts import facts_of
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import Context, FlowCreateStart, FlowStart, OwnRange, Round
from zuno.lp.plan.sizing import check_tokens_used
from zuno.lp.rules.ballot import judge_all
from zuno.lp.rules.candidates import PoolInputs
from zuno.lp.rules.own_range import place_own_range
from zuno.lp.rules.worth import position_at_price
from zuno.lp.service import arguments, to_views
from zuno.lp.service.create_request import Flags, parse_create_request
from zuno.lp.service.plan_record import candidate_views, recommended_view
from zuno.lp.service.plan_view import CandidateView, RecommendedView
from zuno.lp.service.recommend import parse_profile
from zuno.lp.service.result_views import PriceCaseView
from zuno.lp.service.views import ChainView, PoolView

KEPT_SECONDS: Final = 10.0
"""For so long what was read is good for other ranges: an edge that is dragged asks many times a second."""
MOST_KEPT: Final = 4
PERCENTS: Final = (-50, -40, -30, -20, -15, -10, -5, -2, 0, 2, 5, 10, 15, 20, 30, 40, 50)


class RangePreviewView(ChainView):
    position_id: str | None
    price: str
    price_unit: str
    unit: str
    """The quote token of worths."""
    candidate: RecommendedView
    """As the rules judge it; the Critic may be stricter."""
    hold: CandidateView
    buffer_lower: str
    """By how many percent the price must change to be at the lower edge."""
    buffer_upper: str
    in_range: bool
    cover: FeeCover | None
    table: tuple[PriceCaseView, ...]
    """What goes in, at other prices."""


Observe = Callable[[FlowStart | FlowCreateStart], Awaitable[Context]]
Read = tuple[Context, tuple[PoolInputs, ...]]


def name_pool(pool: PoolView) -> Flags:
    """What `--pair` and `--fee` would say for a wish to mean this very pool."""
    names = (token.symbol if token.verified else token.address for token in (pool.currency0, pool.currency1))
    return Flags(pair="/".join(names), fee=f"{pool.lp_fee} pips")


@dataclass(frozen=True, slots=True, eq=False)
class RangePreviews:
    """Reads what a debate would read, keeps it for a few seconds, and judges one more candidate by it."""

    observe: Observe
    stopwatch: Callable[[], float]
    default_chain: str
    profile: str
    hooks: Sequence[str] = ()
    _kept: dict[bytes, tuple[float, Read]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def preview(
        self, own: OwnRange, chain: str | None, profile: str | None, position: str, wish: str, pool: PoolView | None
    ) -> RangePreviewView:
        """Of a position moved to this range; with a pool of a new one there, of the capital that is told in words."""
        asked_for = None if pool is None else parse_create_request(wish, name_pool(pool))
        risk = parse_profile(profile or (asked_for and asked_for.profile) or self.profile)
        terms: dict[str, Any] = {"chain": chain or self.default_chain, "profile": risk, "max_rounds": 0}
        terms["hooks"] = tuple(sorted(self.hooks))
        if asked_for is None:
            context, inputs = await self._read(FlowStart(**terms, position_id=arguments.position_id(position)))
        else:
            context, inputs = await self._read(FlowCreateStart(**terms, wish=asked_for.position))
        for index, facts in enumerate(context.scenes):
            if pool is None or facts.pool.id == pool.id:
                capital = {side: amount for side, amount in enumerate((facts.capital0, facts.capital1)) if amount}
                check_tokens_used(facts.pool, place_own_range(own, facts.pool), capital)
                return _judge(context.model_copy(update={"own_range": own}), inputs, index)
        raise NotFound("The desk opens nothing in this pool: it has no price history, or hooks nobody trusts.")

    async def _read(self, start: FlowStart | FlowCreateStart) -> Read:
        key = canonical(start)
        async with self._lock:
            at, read = self._kept.pop(key, (0.0, None))
            if read is None or self.stopwatch() - at > KEPT_SECONDS:
                context = await self.observe(start)
                at, read = self.stopwatch(), (context, pool_inputs.build_all_pool_inputs(context))
            self._kept[key] = at, read
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            return read


def _judge(context: Context, inputs: Sequence[PoolInputs], index: int) -> RangePreviewView:
    moves = [move for move in pool_inputs.build_own_moves(context) if move.pool_index == index]
    ballot = pool_inputs.build_ballot(context, inputs, moves)
    judgments = judge_all(ballot, context.profile)
    round_ = Round(candidates=ballot, mechanical=judgments, judgments=judgments)
    shown = candidate_views(context, round_, facts_of(context, (round_,)))
    which = 0 if ballot[-1].range == ballot[0].range else -1  # nothing moves where it lies there already
    pool, chosen, held = inputs[index].pool, ballot[which], inputs[index].position
    tokens, put_in = (pool.token0, pool.token1), chosen.deposit
    assert chosen.range is not None
    amount0, amount1, none = map(Amount, (put_in.amount0, put_in.amount1, 0))
    named = (0, context.chain, NO_HOOKS, pool, chosen.range)
    there = LpPosition(*named, Liquidity(put_in.liquidity), amount0, amount1, none, none)
    here, table = whole_price(pool.sqrt_price_x96, *tokens), list[PriceCaseView]()
    for percent in PERCENTS:
        at = sqrt_price_for(here * (100 + percent) / 100, *tokens) if percent else pool.sqrt_price_x96
        if MIN_SQRT_PRICE <= at < MAX_SQRT_PRICE:
            table.append(to_views.price_case_view(there, str(percent), position_at_price(there, at), None))
    lower, upper = to_views.range_changes(there)
    return RangePreviewView(
        **to_views.place(context.chain, context.block),
        position_id=None if held is None else str(held.id),
        price=to_views.price_text(pool.sqrt_price_x96, *tokens),
        price_unit=to_views.price_unit(*tokens),
        unit=base_and_quote(*tokens)[1].display_name,
        candidate=recommended_view(shown[which], chosen, pool, context),
        hold=shown[0],
        buffer_lower=lower,
        buffer_upper=upper,
        in_range=chosen.in_range,
        cover=inputs[index].cover,
        table=tuple(table),
    )
