"""What must hold for every pool, whatever has happened to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.amm.pool import Pool, PositionKey
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE, sqrt_price_at_tick, tick_at_sqrt_price
from zuno.kernel.errors import PoolRefusal, UsageError

SPACING = 10
OWNERS = ("0x" + "a1" * 20, "0x" + "B0" * 20)
FAR = {True: MIN_SQRT_PRICE + 1, False: MAX_SQRT_PRICE - 1}

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ranges = st.tuples(st.integers(-60, 60), st.integers(1, 60)).map(
    lambda place: (place[0] * SPACING, (place[0] + place[1]) * SPACING)
)
mints = st.tuples(st.just("mint"), st.sampled_from(OWNERS), ranges, st.integers(1, 1 << 80), st.integers(0, 1))
burns = st.tuples(st.just("burn"), st.integers(0, 30), st.integers(0, 4))
swaps = st.tuples(
    st.just("swap"),
    st.booleans(),
    st.integers(1, 1 << 75).flatmap(lambda size: st.sampled_from([-size, size])),
    st.integers(1, 800),
)
fee_changes = st.tuples(st.just("protocol"), st.integers(0, 1000), st.integers(0, 1000))
histories = st.lists(st.one_of(mints, burns, swaps, swaps, fee_changes), max_size=14)
fees = st.sampled_from([0, 1, 100, 500, 3000, 10_000, 250_000, 999_999])


class Ledger:
    """What everyone together has paid to a pool and received from it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.amount0 = self.amount1 = 0

    def note(self, moved: Any) -> None:
        self.amount0 += moved.amount0
        self.amount1 += moved.amount1

    def live(self, step: tuple[Any, ...]) -> None:
        """One event; a refusal is an event too."""
        pool = self.pool
        try:
            match step:
                case ("mint", owner, (lower, upper), liquidity, salt):
                    self.note(pool.modify_liquidity(owner, lower, upper, liquidity, salt))
                case ("burn", which, quarters) if pool.positions:
                    key = sorted(pool.positions)[which % len(pool.positions)]
                    delta = -(pool.positions[key].liquidity * quarters // 4)
                    owner, lower, upper, salt = key
                    self.note(pool.modify_liquidity(owner, lower, upper, delta, salt))
                case ("swap", down, amount, reach):
                    target = sqrt_price_at_tick(pool.slot0.tick + (-reach if down else reach))
                    self.note(pool.swap(down, amount, target))
                case ("protocol", zero_for_one, one_for_zero):
                    pool.set_protocol_fee(zero_for_one, one_for_zero)
        except PoolRefusal:
            pass


def lived(fee: int, tick: int, history: list[tuple[Any, ...]]) -> Ledger:
    ledger = Ledger(Pool.initialize(fee, SPACING, sqrt_price_at_tick(tick)))
    ledger.live(("mint", OWNERS[0], (-1000, 1000), 1 << 70, 7))
    for step in history:
        ledger.live(step)
    return ledger


ledgers = st.builds(lived, fees, st.integers(-600, 600), histories)
pools = ledgers.map(lambda ledger: ledger.pool)


@pytest.mark.slow
@unhurried
@given(pools, st.booleans(), st.integers(1, 1 << 80))
def test_there_and_back_never_creates_value(pool: Pool, down: bool, amount: int) -> None:
    there = pool.swap(down, -amount, FAR[down])
    paid, received = (-there.amount0, there.amount1) if down else (-there.amount1, there.amount0)
    assume(received)
    back = pool.swap(not down, -received, FAR[not down])
    assert (back.amount0 if down else back.amount1) <= paid


@pytest.mark.slow
@unhurried
@given(pools, st.booleans(), st.integers(1, 1 << 80), st.integers(1, 1 << 80))
def test_splitting_an_exact_input_never_pays_more(pool: Pool, down: bool, first: int, second: int) -> None:
    """Every stop rounds the price back towards the start and the output down, so two swaps get at most as much.

    It holds to the wei wherever the contract's finer formula is used, that is, at every size minted here.
    """
    twin = pool.copy()
    limit = sqrt_price_at_tick(-3000 if down else 3000)
    assume(limit < pool.slot0.sqrt_price_x96 if down else limit > pool.slot0.sqrt_price_x96)
    whole = twin.swap(down, -(first + second), limit)
    parts = [pool.swap(down, -first, limit)]
    if pool.slot0.sqrt_price_x96 != limit:
        parts.append(pool.swap(down, -second, limit))
    out = [part.amount1 if down else part.amount0 for part in parts]
    assert sum(out) <= (whole.amount1 if down else whole.amount0)


@pytest.mark.slow
@unhurried
@given(pools, st.booleans(), st.integers(1, 1 << 72), st.integers(1, 1 << 72))
def test_splitting_an_exact_output_never_costs_less(pool: Pool, down: bool, first: int, second: int) -> None:
    """The mirror image, for outputs that the pool can pay in full."""
    assume(pool.slot0.lp_fee < 999_999)  # with a protocol fee on top the pool refuses exact outputs
    twin = pool.copy()
    whole = twin.swap(down, first + second, FAR[down])
    assume((whole.amount1 if down else whole.amount0) == first + second)
    one = pool.swap(down, first, FAR[down])
    assume(pool.slot0.sqrt_price_x96 != FAR[down])
    two = pool.swap(down, second, FAR[down])
    assume((two.amount1 if down else two.amount0) == second)
    costs = [-(part.amount0 if down else part.amount1) for part in (one, two, whole)]
    assert costs[0] + costs[1] >= costs[2]


@pytest.mark.slow
@unhurried
@given(pools, ranges, st.integers(1, 1 << 100))
def test_mint_then_burn_never_returns_more_than_was_paid(pool: Pool, ticks: tuple[int, int], liquidity: int) -> None:
    before = pool.copy()
    mint = pool.modify_liquidity(OWNERS[1], *ticks, liquidity, 99)
    burn = pool.modify_liquidity(OWNERS[1], *ticks, -liquidity, 99)
    assert (burn.fees0, burn.fees1) == (0, 0)
    assert -1 <= mint.amount0 + burn.amount0 <= 0
    assert -1 <= mint.amount1 + burn.amount1 <= 0
    assert (pool.slot0, pool.liquidity, pool.ticks) == (before.slot0, before.liquidity, before.ticks)


@pytest.mark.slow
@unhurried
@given(ledgers)
def test_everything_taken_out_was_once_paid_in(ledger: Ledger) -> None:
    pool = ledger.pool
    for key, info in list(pool.positions.items()):
        if info.liquidity:
            owner, lower, upper, salt = key
            ledger.note(pool.modify_liquidity(owner, lower, upper, -info.liquidity, salt))
    assert ledger.amount0 + pool.protocol_fees_accrued0 <= 0
    assert ledger.amount1 + pool.protocol_fees_accrued1 <= 0
    assert not pool.ticks
    assert pool.liquidity == 0


@pytest.mark.slow
@unhurried
@given(pools)
def test_liquidity_is_the_sum_of_the_positions_in_range(pool: Pool) -> None:
    tick = pool.slot0.tick
    gross: Counter[int] = Counter()
    net: Counter[int] = Counter()
    for key, info in pool.positions.items():
        gross.update({key.tick_lower: info.liquidity, key.tick_upper: info.liquidity})
        net.update({key.tick_lower: info.liquidity, key.tick_upper: -info.liquidity})
    in_range = sum(i.liquidity for k, i in pool.positions.items() if k.tick_lower <= tick < k.tick_upper)
    assert pool.liquidity == in_range
    assert {t: info.liquidity_gross for t, info in pool.ticks.items()} == {t: g for t, g in gross.items() if g}
    assert all(info.liquidity_net == net[t] for t, info in pool.ticks.items())
    assert tick_at_sqrt_price(pool.slot0.sqrt_price_x96) - tick in (0, 1)


@pytest.mark.slow
@unhurried
@given(fees, st.integers(-600, 600), histories, st.integers(0, (1 << 256) - 1), st.integers(0, (1 << 256) - 1))
def test_only_differences_of_fee_growth_matter(
    fee: int, tick: int, history: list[tuple[Any, ...]], offset0: int, offset1: int
) -> None:
    """The same life from another origin, wrapping round 2^256 wherever chance has it, moves the same tokens."""
    price = sqrt_price_at_tick(tick)
    plain, shifted = Ledger(Pool.initialize(fee, SPACING, price)), Ledger(Pool.initialize(fee, SPACING, price))
    shifted.pool.fee_growth_global0_x128 = offset0
    shifted.pool.fee_growth_global1_x128 = offset1
    for step in [("mint", OWNERS[0], (-1000, 1000), 1 << 70, 7), *history]:
        plain.live(step)
        shifted.live(step)
        assert (plain.amount0, plain.amount1) == (shifted.amount0, shifted.amount1)
        for key in plain.pool.positions:
            assert plain.pool.fees_owed(*key) == shifted.pool.fees_owed(*key)
    assert plain.pool.slot0 == shifted.pool.slot0
    grown = shifted.pool.fee_growth_global0_x128 - plain.pool.fee_growth_global0_x128 - offset0
    assert grown % (1 << 256) == 0


wild = st.integers(-(1 << 260), 1 << 260) | st.integers(-900_000, 900_000) | st.sampled_from([0, 1, -1, 1 << 127])
garbage = st.one_of(
    st.tuples(st.just("swap"), st.tuples(st.booleans(), wild, wild | st.just(1 << 90) | st.just(1 << 100))),
    st.tuples(
        st.just("modify_liquidity"),
        st.tuples(st.sampled_from([*OWNERS, "0x", "0x1", "nobody"]), wild, wild, wild, wild),
    ),
    st.tuples(
        st.just("modify_liquidity"),
        st.tuples(st.sampled_from(OWNERS), st.just(-1000), st.just(1000), wild, st.sampled_from([0, 7])),
    ),
    st.tuples(st.just("set_protocol_fee"), st.tuples(wild, wild)),
    st.tuples(st.just("set_lp_fee"), st.tuples(wild)),
)


@pytest.mark.slow
@settings(unhurried, max_examples=examples(400))
@given(pools, garbage)
def test_a_refused_operation_leaves_the_pool_exactly_as_it_was(pool: Pool, call: tuple[str, tuple[Any, ...]]) -> None:
    method, arguments = call
    before = pool.copy()
    try:
        getattr(pool, method)(*arguments)
    except (PoolRefusal, UsageError):
        assert pool == before
    else:
        net = {tick: info.liquidity_net for tick, info in pool.ticks.items()}
        same = Pool.from_depth(pool.fee, pool.tick_spacing, pool.slot0, pool.liquidity, net)
        assert same.slot0 == pool.slot0, "what was accepted is a state that can exist"


@unhurried
@given(pools, swaps)
def test_a_collect_pays_what_was_owed_and_changes_nothing_else(pool: Pool, step: tuple[Any, ...]) -> None:
    Ledger(pool).live(step)
    live = [key for key, info in pool.positions.items() if info.liquidity]
    key = live[0] if live else PositionKey(OWNERS[0], -1000, 1000, 7)
    if not live:
        with pytest.raises(PoolRefusal):
            pool.modify_liquidity(key.owner, key.tick_lower, key.tick_upper, 0, key.salt)
        return
    owed, before = pool.fees_owed(*key), pool.copy()
    change = pool.modify_liquidity(key.owner, key.tick_lower, key.tick_upper, 0, key.salt)
    assert (change.amount0, change.amount1) == (change.fees0, change.fees1) == owed
    assert pool.fees_owed(*key) == (0, 0)
    assert (pool.slot0, pool.liquidity, pool.ticks) == (before.slot0, before.liquidity, before.ticks)
