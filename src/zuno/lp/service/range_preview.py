"""A range of the owner's own before anybody argues: fees, fee cover, buffer and worth, by the rules of the debate."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import quote_worth, sqrt_price_for, whole_price
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import NotFound
from zuno.kernel.numbers_text import decimal_text, money_text
from zuno.kernel.text import base_and_quote
from zuno.kernel.view import View
from zuno.lp.agents import pool_inputs
from zuno.lp.agents.prompt_facts import facts_of
from zuno.lp.model.ballot import Candidate
from zuno.lp.model.debate import Context, FlowCreateStart, FlowStart, OwnRange, Round
from zuno.lp.plan.inventory import leftover_of
from zuno.lp.plan.sizing import check_tokens_used
from zuno.lp.rules.ballot import judge_all
from zuno.lp.rules.candidates import PoolInputs
from zuno.lp.rules.own_range import place_own_range
from zuno.lp.service import arguments, to_views
from zuno.lp.service.create_request import Flags, parse_create_request
from zuno.lp.service.plan_record import candidate_views
from zuno.lp.service.plan_view import CandidateView
from zuno.lp.service.recommend import parse_profile
from zuno.lp.service.views import ChainView, LeftoverView, PoolView

KEPT_SECONDS: Final = 10.0
"""For so long what was read is good for other ranges: an edge that is dragged asks many times a second."""
MOST_KEPT: Final = 4
PERCENTS: Final = (-50, -40, -30, -20, -15, -10, -5, -2, 0, 2, 5, 10, 15, 20, 30, 40, 50)


class CoverView(View):
    """What the pool's fees paid of what arbitrage took, with its 80 % interval."""

    ratio: float
    low: float
    high: float
    days: int


class WorthView(View):
    """What goes into the range at another price, in the quote token."""

    percent: str
    price: str
    worth: str
    change: str
    held: str
    """Of the same tokens held."""
    in_range: bool


class RangePreviewView(ChainView):
    position_id: str | None
    price: str
    price_unit: str
    unit: str
    """The quote token of worths."""
    candidate: CandidateView
    """As the rules judge it; the Critic may be stricter."""
    hold: CandidateView
    buffer_lower: str
    """By how many percent the price must change to be at the lower edge."""
    buffer_upper: str
    in_range: bool
    amount0: str
    amount1: str
    amount0_human: str
    amount1_human: str
    leftover: LeftoverView | None
    cover: CoverView | None
    worth: str
    table: tuple[WorthView, ...]
    sources: tuple[str, ...]


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

    async def preview_move(
        self, position: str, own: OwnRange, chain: str | None, profile: str | None = None
    ) -> RangePreviewView:
        """A position moved to this range."""
        terms = self._list_terms(chain, profile)
        context, inputs = await self._read(FlowStart(**terms, position_id=arguments.position_id(position)))
        return _judge(context, inputs, own, 0)

    async def preview_opening(
        self, wish: str, pool: PoolView, own: OwnRange, chain: str | None, profile: str | None = None
    ) -> RangePreviewView:
        """A new position in this pool, of the capital that is told in words."""
        asked_for = parse_create_request(wish, name_pool(pool))
        terms = self._list_terms(chain, profile or asked_for.profile)
        context, inputs = await self._read(FlowCreateStart(**terms, wish=asked_for.position))
        for index, facts in enumerate(context.scenes):
            if facts.pool.id == pool.id:
                capital = {side: amount for side, amount in enumerate((facts.capital0, facts.capital1)) if amount}
                check_tokens_used(facts.pool, place_own_range(own, facts.pool), capital)
                return _judge(context, inputs, own, index)
        raise NotFound(f"The desk opens nothing in {pool.label}: it has no price history, or hooks nobody trusts.")

    def _list_terms(self, chain: str | None, profile: str | None) -> dict[str, Any]:
        risk, hooks = parse_profile(profile or self.profile), tuple(sorted(self.hooks))
        return {"chain": chain or self.default_chain, "profile": risk, "max_rounds": 0, "hooks": hooks}

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


def _judge(context: Context, inputs: Sequence[PoolInputs], own: OwnRange, index: int) -> RangePreviewView:
    context = context.model_copy(update={"own_range": own})
    moves = [move for move in pool_inputs.build_own_moves(context) if move.pool_index == index]
    ballot = pool_inputs.build_ballot(context, inputs, moves)
    judgments = judge_all(ballot, context.profile)
    round_ = Round(candidates=ballot, mechanical=judgments, judgments=judgments)
    shown = candidate_views(context, round_, facts_of(context, (round_,)))
    which = 0 if ballot[-1].range == ballot[0].range else -1  # nothing moves where it lies there already
    return _build_view(context, inputs[index], ballot[which], (shown[which], shown[0]))


def _build_view(
    context: Context, inputs: PoolInputs, chosen: Candidate, shown: tuple[CandidateView, CandidateView]
) -> RangePreviewView:
    pool, put_in, span = inputs.pool, chosen.deposit, chosen.range
    tokens = (pool.token0, pool.token1)
    assert span is not None
    _, quote = base_and_quote(*tokens)
    here = whole_price(pool.sqrt_price_x96, *tokens)
    changes = sorted((whole_price(edge, *tokens) / here - 1) * 100 for edge in span.edges_x96)

    def money(value: Fraction) -> str:
        return money_text(value, quote.decimals)

    def worth_at(sqrt_price: int) -> tuple[Fraction, bool]:
        lower, upper = span.edges_x96
        amounts = amounts_for_liquidity(sqrt_price, lower, upper, put_in.liquidity, round_up=False)
        return quote_worth(*amounts, sqrt_price, *tokens), lower <= sqrt_price < upper

    today, rows = worth_at(pool.sqrt_price_x96)[0], list[WorthView]()
    for percent in PERCENTS:
        at = sqrt_price_for(here * (100 + percent) / 100, *tokens) if percent else pool.sqrt_price_x96
        if MIN_SQRT_PRICE <= at < MAX_SQRT_PRICE:
            worth, inside = worth_at(at)
            held = quote_worth(put_in.amount0, put_in.amount1, at, *tokens)
            price = to_views.price_text(at, *tokens)
            row = WorthView(
                percent=str(percent),
                price=price,
                worth=money(worth),
                change=money(worth - today),
                held=money(held),
                in_range=inside,
            )
            rows.append(row)
    left = leftover_of(put_in, pool.sqrt_price_x96) if chosen.kind.move else None
    cover = inputs.cover
    return RangePreviewView(
        **to_views.place(context.chain, context.block),
        **to_views.both_ways("amount", put_in.amount0, put_in.amount1, *tokens),
        position_id=None if inputs.position is None else str(inputs.position.id),
        price=to_views.price_text(pool.sqrt_price_x96, *tokens),
        price_unit=to_views.price_unit(*tokens),
        unit=quote.display_name,
        candidate=shown[0],
        hold=shown[1],
        buffer_lower=decimal_text(changes[0], 6),
        buffer_upper=decimal_text(changes[1], 6),
        in_range=chosen.in_range,
        leftover=None if left is None else to_views.leftover_view(left, pool),
        cover=None if cover is None else CoverView(ratio=cover.ratio, low=cover.low, high=cover.high, days=cover.days),
        worth=money(today),
        table=tuple(rows),
        sources=tuple(
            dict.fromkeys(f"{note.feed}: {note.source}{', STALE' if note.stale else ''}" for note in context.sources)
        ),
    )
