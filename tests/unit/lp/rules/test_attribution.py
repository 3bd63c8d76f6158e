"""The identity holds to the last wei over random lives of a position, and any wrong number breaks it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.model import Block, PoolKey, Range
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE, sqrt_price_at_tick
from zuno.kernel.errors import Broken
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.model.history import (
    ExternalFlow,
    PositionEvent,
    PositionHistory,
    PositionSnapshot,
    PricedBlock,
    WalletSwap,
)
from zuno.lp.rules.attribution import Attribution, _Leg, attribute
from zuno.lp.rules.lvr import rebalancing_gain_token1

OWNER = "0x00000000000000000000000000000000000000aa"
STRANGER = "0x00000000000000000000000000000000000000bb"
TOKEN0 = Token(Address("0x" + "01" * 20), "AAA", 18)
TOKEN1 = Token(Address("0x" + "02" * 20), "BBB", 6)


class Life:
    """A position living on a real pool of ours, recorded as a wallet would see it."""

    def __init__(self, fee: int, tick: int) -> None:
        self.fee = fee
        self.pool = Pool.initialize(fee, 60, sqrt_price_at_tick(tick))
        self.pool.modify_liquidity(STRANGER, -60_000, 60_000, 10**18, 0)
        self.number = 0
        self.events: list[PositionEvent | WalletSwap] = []
        self.path: list[PricedBlock] = []
        self.ids: dict[int, Range] = {}
        self.start: PositionSnapshot | None = None
        self._tick_over()

    def _tick_over(self) -> None:
        self.number += 1
        self.path.append(PricedBlock(self.block, SqrtPriceX96(self.pool.slot0.sqrt_price_x96)))

    @property
    def block(self) -> Block:
        return Block(self.number, HexId(f"0x{self.number:064x}"), Seconds(1_000 + 3_600 * self.number))

    def swap(self, zero_for_one: bool, amount: int) -> None:
        limit = MIN_SQRT_PRICE + 1 if zero_for_one else MAX_SQRT_PRICE - 1
        self.pool.swap(zero_for_one, -amount, limit)
        self._tick_over()

    def wallet_swap(self, zero_for_one: bool, amount: int) -> None:
        before = self.pool.slot0.sqrt_price_x96
        result = self.pool.swap(zero_for_one, -amount, MIN_SQRT_PRICE + 1 if zero_for_one else MAX_SQRT_PRICE - 1)
        self.events.append(
            WalletSwap(
                self.block,
                HexId("0x0"),
                SqrtPriceX96(before),
                *(-result.amount0, -result.amount1) * 2,
                gas=Wei(150_000 * 10**9),
            )
        )
        self._tick_over()

    def touch(self, position: int, delta: int, span: Range | None = None) -> None:
        held = self.ids.get(position)
        if held is None:
            if delta <= 0 or span is None:
                return
            held = self.ids[position] = span
        liquidity = self.pool.position(OWNER, held.lower, held.upper, position).liquidity
        delta = max(delta, -liquidity)
        if not liquidity and delta <= 0:
            return
        change = self.pool.modify_liquidity(OWNER, held.lower, held.upper, delta, position)
        # Read what the pool itself checkpointed: the ticks of an emptied range are gone by now.
        info = self.pool.position(OWNER, held.lower, held.upper, position)
        self.events.append(
            PositionEvent(
                position_id=position,
                range=held,
                block=self.block,
                tx=HexId("0x0"),
                sqrt_price_x96=SqrtPriceX96(self.pool.slot0.sqrt_price_x96),
                liquidity_delta=delta,
                liquidity_after=Liquidity(liquidity + delta),
                paid0=-change.amount0,
                paid1=-change.amount1,
                fee_growth_inside0_x128=info.fee_growth_inside0_last_x128,
                fee_growth_inside1_x128=info.fee_growth_inside1_last_x128,
                gas=Wei(400_000 * 10**9),
            )
        )
        self._tick_over()

    def standing(self, position: int) -> PositionSnapshot | None:
        span = self.ids.get(position)
        info = self.pool.position(OWNER, span.lower, span.upper, position) if span else None
        if span is None or info is None or not info.liquidity:
            return None
        burn = self.pool.copy().modify_liquidity(OWNER, span.lower, span.upper, -info.liquidity, position)
        inside = self.pool.fee_growth_inside(span.lower, span.upper)
        return PositionSnapshot(
            position,
            span,
            self.block,
            SqrtPriceX96(self.pool.slot0.sqrt_price_x96),
            Liquidity(info.liquidity),
            burn.amount0,
            burn.amount1,
            *inside,
            info.fee_growth_inside0_last_x128,
            info.fee_growth_inside1_last_x128,
        )

    def open_window(self, position: int) -> None:
        """Everything before now belongs to another window."""
        standing = self.standing(position)
        if standing is not None:
            self.start = standing
            self.events.clear()
            self.path = self.path[-1:]

    def history(self, position: int, native_side: int | None = 0) -> PositionHistory:
        key = PoolKey(TOKEN0.address, TOKEN1.address, Pips(self.fee), 60)
        return PositionHistory(
            key=key,
            token0=TOKEN0,
            token1=TOKEN1,
            opened=self.path[0].block,
            closed=self.block,
            start=self.start,
            end=self.standing(position),
            events=tuple(self.events),
            path=tuple(self.path),
            native_side=native_side,
        )


spans = st.builds(
    lambda low, width: Range(Tick(low * 60), Tick((low + width) * 60)), st.integers(-60, 40), st.integers(1, 60)
)
steps = st.one_of(
    st.tuples(st.just("swap"), st.booleans(), st.integers(1, 10**17)),
    st.tuples(st.just("wallet_swap"), st.booleans(), st.integers(1, 10**16)),
    st.tuples(st.just("touch"), st.just(1), st.integers(-(10**17), 10**17)),
    st.tuples(st.just("touch"), st.just(1), st.just(0)),
    st.tuples(st.just("touch"), st.just(1), st.just(-(10**30))),
    st.tuples(st.just("window")),
)
lives = st.tuples(
    st.sampled_from([100, 500, 3000, 10_000]),
    st.integers(-3_000, 3_000),
    spans,
    st.lists(steps, min_size=1, max_size=14),
)


def live(fee: int, tick: int, span: Range, script: list[tuple[object, ...]], liquidity: int = 10**17) -> Life:
    life = Life(fee, tick)
    life.touch(1, liquidity, span)
    for kind, *arguments in script:
        if kind == "window":
            life.open_window(1)
        else:
            getattr(life, str(kind))(*arguments)
    return life


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lives, st.sampled_from([0, 1]))
def test_nothing_is_left_unexplained(case: tuple[int, int, Range, list[tuple[object, ...]]], native: int) -> None:
    result = attribute(live(*case).history(1, native))
    assert result.in_token0.residual == 0
    assert result.in_token1.residual == 0


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lives)
def test_divergence_is_a_loss_but_for_rounding(case: tuple[int, int, Range, list[tuple[object, ...]]]) -> None:
    """A concave curve never beats holding; flooring two amounts can hide at most a wei of each per mark."""
    history = live(*case).history(1)
    result = attribute(history)
    marks = len(history.events) + 2
    dearest = max(Fraction(p.sqrt_price_x96**2, 1 << 192) for p in history.path)
    assert result.in_token1.divergence_loss >= -marks * (1 + dearest)
    assert result.in_token1.fees >= 0
    assert result.in_token1.gas >= 0
    assert result.lvr_token1 >= 0


def eventful() -> PositionHistory:
    """A life with every kind of event, its window opened half-way."""
    life = live(
        3000,
        0,
        Range(Tick(-1200), Tick(1200)),
        [
            ("swap", True, 10**16),
            ("touch", 1, 10**16),
            ("swap", False, 3 * 10**16),
            ("window",),
            ("swap", True, 10**16),
            ("touch", 1, 0),
            ("wallet_swap", False, 10**15),
            ("swap", False, 10**16),
            ("touch", 1, -(10**15)),
            ("swap", True, 2 * 10**16),
        ],
    )
    return life.history(1)


def with_event(history: PositionHistory, index: int, **changes: int) -> PositionHistory:
    events = list(history.events)
    events[index] = replace(events[index], **changes)  # type: ignore[arg-type]
    return replace(history, events=tuple(events))


def exact(result: Attribution) -> bool:
    return result.in_token0.residual == 0 == result.in_token1.residual


def test_the_eventful_life_adds_up_and_holds_every_term() -> None:
    history = eventful()
    result = attribute(history)
    assert exact(result)
    assert history.start is not None
    terms = result.in_token1
    for name in ("nav_start", "nav_end", "fees", "gas", "swap_cost", "divergence_loss"):
        assert getattr(terms, name) > 0, name
    assert terms.flows != 0
    assert terms.price_effect != 0
    assert result.fees0 > 0
    assert result.fees1 > 0


EVENTFUL = eventful()
TOUCHES = [index for index, event in enumerate(EVENTFUL.events) if isinstance(event, PositionEvent)]
WRONG = {
    "a wei the wallet never paid": lambda h: with_event(h, TOUCHES[0], paid0=h.events[TOUCHES[0]].paid0 + 1),
    "a wei of the other token": lambda h: with_event(h, TOUCHES[1], paid1=h.events[TOUCHES[1]].paid1 - 1),
    "fee growth of one wei per liquidity": lambda h: with_event(
        h, TOUCHES[0], fee_growth_inside0_x128=h.events[TOUCHES[0]].fee_growth_inside0_x128 + (1 << 128) // 10**17 + 1
    ),
    "a slightly wrong price": lambda h: with_event(
        h, TOUCHES[1], sqrt_price_x96=h.events[TOUCHES[1]].sqrt_price_x96 + (1 << 60)
    ),
    "a start worth a wei more": lambda h: replace(h, start=replace(h.start, worth1=h.start.worth1 + 1)),
    "an end worth a wei less": lambda h: replace(h, end=replace(h.end, worth0=h.end.worth0 - 1)),
    "uncollected fees forgotten at the start": lambda h: replace(
        h, start=replace(h.start, fee_growth_inside1_last_x128=h.start.fee_growth_inside1_x128)
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_number_shows_as_a_residual(name: str) -> None:
    assert not exact(attribute(WRONG[name](EVENTFUL)))


SWAP = next(index for index, event in enumerate(EVENTFUL.events) if isinstance(event, WalletSwap))
WRONG_ROADS = {
    "a balance that fell by more than the receipt": lambda h: with_event(
        h, TOUCHES[0], gas_paid=h.events[TOUCHES[0]].gas + 1
    ),
    "a receipt that says too little": lambda h: with_event(
        h, TOUCHES[0], gas_paid=h.events[TOUCHES[0]].gas, gas=h.events[TOUCHES[0]].gas - 1
    ),
    "no balance at all behind a receipt": lambda h: with_event(h, TOUCHES[0], gas_paid=0),
    "a swap's gas": lambda h: with_event(h, SWAP, gas_paid=h.events[SWAP].gas + 1),
    "a swap that was paid a wei more for": lambda h: with_event(h, SWAP, paid0=h.events[SWAP].paid0 + 1),
    "a swap event off by a wei": lambda h: with_event(h, SWAP, swapped1=h.events[SWAP].swapped1 - 1),
}


@pytest.mark.parametrize("name", WRONG_ROADS)
def test_gas_and_swaps_come_by_two_roads(name: str) -> None:
    result = attribute(WRONG_ROADS[name](EVENTFUL))
    assert not result.adds_up
    assert not result.exact


def test_exact_is_claimed_only_of_what_was_measured() -> None:
    assert attribute(EVENTFUL).exact
    computed = attribute(replace(EVENTFUL, computed=("what it was worth",)))
    assert computed.adds_up
    assert not computed.exact
    in_one_only = attribute(WRONG["a start worth a wei more"](EVENTFUL))
    assert not in_one_only.exact


def test_what_others_paid_is_part_of_the_flows_and_told_apart() -> None:
    touch = EVENTFUL.events[TOUCHES[0]]
    assert isinstance(touch, PositionEvent)
    gift = ExternalFlow(touch.block, touch.tx, touch.sqrt_price_x96, 7, -3)
    result, plain = attribute(replace(EVENTFUL, externals=(gift,))), attribute(EVENTFUL)
    price = Fraction(touch.sqrt_price_x96**2, 1 << 192)
    assert result.in_token1.external == 7 * price - 3
    assert result.in_token0.external == 7 - 3 / price
    assert replace(result.in_token1, external=Fraction(0)) == plain.in_token1


def test_gas_is_priced_by_the_side_the_coin_is_on() -> None:
    life = live(3000, 6_000, Range(Tick(-60), Tick(12_000)), [])
    (mint,) = life.events
    assert isinstance(mint, PositionEvent)
    price = Fraction(mint.sqrt_price_x96**2, 1 << 192)
    assert price > 1
    as_token0, as_token1 = (attribute(life.history(1, side)) for side in (0, 1))
    assert (as_token0.in_token0.gas, as_token0.in_token1.gas) == (mint.gas, mint.gas * price)
    assert (as_token1.in_token0.gas, as_token1.in_token1.gas) == (mint.gas / price, mint.gas)


def test_fees_of_two_windows_are_those_of_both_together() -> None:
    """What was owed when a window opened was earned before it."""
    script: list[tuple[object, ...]] = [("swap", True, 3 * 10**16), ("swap", False, 10**16)]
    life = live(3000, 0, Range(Tick(-1200), Tick(1200)), script)
    before = attribute(life.history(1))
    life.open_window(1)
    nothing_yet = attribute(life.history(1))
    assert (nothing_yet.fees0, nothing_yet.fees1) == (0, 0)
    life.swap(True, 10**16)
    life.swap(False, 2 * 10**16)
    after = attribute(life.history(1))
    whole = attribute(live(3000, 0, Range(Tick(-1200), Tick(1200)), [*script, *LATER]).history(1))
    assert (before.fees0 + after.fees0, before.fees1 + after.fees1) == (whole.fees0, whole.fees1)
    assert min(before.fees0, before.fees1, after.fees0, after.fees1) > 0


LATER = (("swap", True, 10**16), ("swap", False, 2 * 10**16))


WRAP = 2**256


def shift_fee_growth(history: PositionHistory, origin0: int, origin1: int) -> PositionHistory:
    """The same life on a pool whose counters of fee growth began elsewhere."""

    def shift(mark: PositionEvent | PositionSnapshot) -> PositionEvent | PositionSnapshot:
        names = [name for name in ("", "_last") if hasattr(mark, f"fee_growth_inside0{name}_x128")]
        return replace(
            mark,
            **{
                f"fee_growth_inside{side}{name}_x128": (
                    getattr(mark, f"fee_growth_inside{side}{name}_x128") + (origin0, origin1)[side]
                )
                % WRAP
                for side in (0, 1)
                for name in names
            },
        )

    return replace(
        history,
        start=None if history.start is None else shift(history.start),  # type: ignore[arg-type]
        end=None if history.end is None else shift(history.end),  # type: ignore[arg-type]
        events=tuple(shift(event) if isinstance(event, PositionEvent) else event for event in history.events),  # type: ignore[misc]
    )


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(0, WRAP - 1), st.integers(0, WRAP - 1))
def test_where_fee_growth_began_changes_nothing(origin0: int, origin1: int) -> None:
    assert attribute(shift_fee_growth(EVENTFUL, origin0, origin1)) == attribute(EVENTFUL)


def test_fee_growth_may_wrap_between_any_two_marks() -> None:
    """Each counter of the life put to 0 and to 2^256 − 1 in turn, so that it wraps just before or just after it."""
    assert EVENTFUL.start is not None
    assert EVENTFUL.end is not None
    marks: list[PositionEvent | PositionSnapshot] = [
        EVENTFUL.start, *(event for event in EVENTFUL.events if isinstance(event, PositionEvent)), EVENTFUL.end
    ]  # fmt: skip
    expected = attribute(EVENTFUL)
    for mark in marks:
        origins = -mark.fee_growth_inside0_x128, -mark.fee_growth_inside1_x128
        for before in (0, 1):
            shifted = shift_fee_growth(EVENTFUL, *(origin - before for origin in origins))
            assert attribute(shifted) == expected


def test_one_step_over_the_end_of_the_counter_earns_one_step() -> None:
    """With 2^128 of liquidity a unit of growth is a unit of the token: from 2^256 − 1 to 0 is one, and back all."""
    leg = _Leg(Range(Tick(-60), Tick(60)), 2**128, 2**96, (WRAP - 1, 0), (0, 0))
    assert leg.owed_at((WRAP - 1, 0)) == (0, 0)
    assert leg.owed_at((0, 1)) == (1, 1)
    assert leg.owed_at((WRAP - 2, WRAP - 1)) == (WRAP - 1, WRAP - 1)


def test_a_missing_touch_is_broken_not_explained_away() -> None:
    with pytest.raises(Broken, match="liquidity"):
        attribute(replace(EVENTFUL, events=EVENTFUL.events[:-1]))


def test_a_burn_nobody_recorded_is_broken() -> None:
    with pytest.raises(Broken, match=r"positions \[.*\bopen\b"):
        attribute(replace(EVENTFUL, end=None))


def test_a_rebalance_is_followed_from_the_old_position_to_the_new() -> None:
    life = live(500, 0, Range(Tick(-600), Tick(600)), [("swap", True, 2 * 10**16)])
    life.touch(1, -(10**30))
    life.wallet_swap(False, 10**15)
    life.touch(2, 5 * 10**16, Range(Tick(-1200), Tick(0)))
    life.swap(False, 10**16)
    result = attribute(life.history(2))
    assert exact(result)
    assert result.in_token1.swap_cost > 0
    assert result.in_token1.nav_start == 0
    assert result.gas_wei == 2 * 400_000 * 10**9 + 150_000 * 10**9 + 400_000 * 10**9


def test_gas_nobody_can_price_stands_outside_the_sum() -> None:
    result = attribute(replace(EVENTFUL, native_side=None))
    assert not result.gas_valued
    assert result.gas_wei > 0
    assert result.in_token1.gas == 0
    assert exact(result)


def test_gas_priced_from_outside_enters_both_sides() -> None:
    result = attribute(replace(EVENTFUL, native_side=None, native_in_token1=Fraction(3, 10**9)))
    assert result.gas_valued
    assert result.in_token1.gas == result.gas_wei * Fraction(3, 10**9)
    assert exact(result)


def test_hand_computed_case() -> None:
    """One mint, one price move out of range: every figure by pencil from L and √P alone."""
    life = Life(3000, 0)
    liquidity = 10**15
    life.touch(1, liquidity, Range(Tick(-600), Tick(600)))
    paid = life.events[0]
    assert isinstance(paid, PositionEvent)
    life.pool.swap(True, -(10**30), sqrt_price_at_tick(-1200))
    life._tick_over()
    result = attribute(life.history(1, native_side=None))
    end = life.standing(1)
    assert end is not None
    low, high = sqrt_price_at_tick(-600), sqrt_price_at_tick(600)
    all_in_token0 = (liquidity << 96) * (high - low) // high // low
    price = Fraction(sqrt_price_at_tick(-1200) ** 2, 1 << 192)
    held0, held1 = paid.paid0 - 1, paid.paid1 - 1  # the mint rounded both up, what it holds is rounded down
    assert result.in_token1.nav_end == (all_in_token0 + result.fees0) * price
    assert result.in_token1.divergence_loss == held0 * price + held1 - all_in_token0 * price + 2
    assert result.in_token1.flows == paid.paid0 + paid.paid1  # the price at the mint is one
    assert result.in_token1.price_effect == held0 * (price - 1)
    assert end.worth1 == result.fees1 == 0


def test_a_price_that_stands_still_costs_nothing() -> None:
    result = attribute(live(3000, 0, Range(Tick(-600), Tick(600)), [("touch", 1, 10**16)]).history(1))
    assert (result.lvr_token0, result.lvr_token1) == (0.0, 0.0)


def test_lvr_is_what_the_liquidity_of_each_step_lost_at_the_price_after_it() -> None:
    """Minted at the opening, so there from the first step; halved after it, so half as much in the second."""
    life = Life(3000, 0)
    life.touch(1, 10**17, Range(Tick(-1200), Tick(1200)))
    life.swap(True, 2 * 10**16)
    life.touch(1, -(10**17) // 2)
    life.swap(False, 3 * 10**16)
    history = life.history(1)
    mint, halved = history.events
    prices = [point.sqrt_price_x96 for point in history.path if point.block.number >= mint.block.number]
    start, low, high = dict.fromkeys(prices)
    edges = (sqrt_price_at_tick(-1200), sqrt_price_at_tick(1200))
    first = rebalancing_gain_token1(10**17, edges, start, low)
    second = rebalancing_gain_token1(10**17 // 2, edges, low, high)
    history = replace(
        history,
        path=(
            PricedBlock(mint.block, SqrtPriceX96(start)),
            PricedBlock(halved.block, SqrtPriceX96(low)),
            PricedBlock(history.closed, SqrtPriceX96(high)),
        ),
    )
    result = attribute(history)
    assert result.lvr_token1 == pytest.approx(first + second, rel=1e-12)
    in_token0 = first * (2**96 / low) ** 2 + second * (2**96 / high) ** 2
    assert result.lvr_token0 == pytest.approx(in_token0, rel=1e-12)
    assert min(first, second) > 0
