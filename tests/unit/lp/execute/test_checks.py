"""Every way the gate says no: each names the bound and the number that broke it, and a unit less would pass."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from zuno.amm.model import LpPosition
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE, format_units
from zuno.kernel.units import Address, HexId, Liquidity, Millis, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.execute import checks
from zuno.lp.execute.context import SpendingLimits
from zuno.lp.execute.draft import OnChainState, all_steps, data_fee, read_onchain_state
from zuno.lp.execute.plan_state import PlanProgress, append_event
from zuno.lp.model.market import Fact, Pair
from zuno.lp.model.plan import (
    Allowances,
    Allows,
    Bounds,
    Flow,
    Grant,
    Holds,
    Need,
    Owns,
    Permits,
    Step,
    StepKind,
    TickWithin,
)
from zuno.lp.model.plan_events import Action, PlanApplying
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.limits import REFERENCE_LIMIT

USDC = 10**6
ETHER = 10**18


@pytest.fixture
async def sight(bench: Any) -> OnChainState:
    position = await bench.position()
    return await read_onchain_state(bench.hands, HexId(position.pool.id), position.id)


def step_of(*needs: Need, kind: StepKind = StepKind.MINT, value: int = 0) -> Step:
    return Step(kind, Address("0x" + "11" * 20), value, b"", None, needs)


def holding(sight: OnChainState, amounts: dict[Address, int]) -> OnChainState:
    return replace(sight, wallet_state=replace(sight.wallet_state, holdings=amounts))


def allowing(sight: OnChainState, allowances: Allowances) -> OnChainState:
    return replace(sight, wallet_state=replace(sight.wallet_state, allowances=allowances))


# -- needs


def test_a_wallet_that_holds_a_unit_too_little(sight: OnChainState) -> None:
    usdc = sight.pool.key.currency1
    step = step_of(Holds(usdc, 5 * USDC))
    checks.check_needs(step, holding(sight, {usdc: 5 * USDC}))
    with pytest.raises(Refused, match=r"4\.999999 USDC.*\b5 USDC"):
        checks.check_needs(step, holding(sight, {usdc: 5 * USDC - 1}))
    with pytest.raises(Refused, match=r"\b0 ETH.*\b2 ETH"):
        checks.check_needs(step_of(Holds(NATIVE, 2 * ETHER)), holding(sight, {}))


def test_what_a_step_before_wraps_need_not_be_there_yet(sight: OnChainState) -> None:
    weth, usdc = sight.pool.key.currency0, sight.pool.key.currency1
    wrap = replace(step_of(kind=StepKind.WRAP), least_in=(Flow(weth, ETHER),))
    poor = holding(sight, {})
    checks.check_needs(step_of(Holds(weth, ETHER)), poor, after=(wrap,))
    with pytest.raises(Refused, match="holds 0 WETH"):
        checks.check_needs(step_of(Holds(weth, ETHER)), poor)
    with pytest.raises(Refused, match="holds 0 WETH"):
        checks.check_needs(step_of(Holds(weth, ETHER)), poor, after=(replace(wrap, kind=StepKind.MINT),))
    with pytest.raises(Refused, match="holds 0 USDC"):
        checks.check_needs(step_of(Holds(usdc, 1)), poor, after=(wrap,))


def test_permit2_may_take_a_unit_too_little(sight: OnChainState) -> None:
    usdc = sight.pool.key.currency1
    step = step_of(Allows(usdc, 7 * USDC))
    checks.check_needs(step, allowing(sight, Allowances({usdc: 7 * USDC})))
    with pytest.raises(Refused, match=r"Permit2.*6\.999999 USDC.*\b7 USDC"):
        checks.check_needs(step, allowing(sight, Allowances({usdc: 7 * USDC - 1})))
    checks.check_needs(step, allowing(sight, Allowances()), after=(step_of(),))


def test_a_spender_may_take_too_little_or_not_for_long_enough(sight: OnChainState) -> None:
    usdc, router = sight.pool.key.currency1, Address("0x" + "22" * 20)
    step = step_of(Permits(usdc, router, 7 * USDC, Seconds(1000)))

    def granted(amount: int, until: int) -> OnChainState:
        return allowing(sight, Allowances({}, {(usdc, router): Grant(amount, Seconds(until))}))

    checks.check_needs(step, granted(7 * USDC, 1000))
    with pytest.raises(Refused, match=f"{router}.*6.999999 USDC.*7 USDC"):
        checks.check_needs(step, granted(7 * USDC - 1, 1000))
    with pytest.raises(Refused, match=f"{router}.*999.*1000"):
        checks.check_needs(step, granted(7 * USDC, 999))
    checks.check_needs(step, granted(0, 0), after=(step_of(),))


def test_a_position_that_is_gone_sold_or_changed(sight: OnChainState) -> None:
    position = sight.position
    assert isinstance(position, LpPosition)
    step = step_of(Owns(position.id, position.liquidity))
    checks.check_needs(step, sight)
    checks.check_needs(step, sight, after=(step_of(),))
    with pytest.raises(Refused, match=f"Position {position.id} "):
        checks.check_needs(step, replace(sight, position=None))
    with pytest.raises(Refused, match=f"Position {position.id + 1} "):
        checks.check_needs(step_of(Owns(position.id + 1, position.liquidity)), sight)
    sold = replace(position, owner=Address("0x" + "33" * 20))
    with pytest.raises(Refused, match=f"Position {position.id} .*0x3333"):
        checks.check_needs(step, replace(sight, position=sold))
    for liquidity in (position.liquidity - 1, position.liquidity + 1):
        changed = replace(position, liquidity=Liquidity(liquidity))
        with pytest.raises(Refused, match=f"{liquidity}.*{position.liquidity}"):
            checks.check_needs(step, replace(sight, position=changed))


@pytest.mark.parametrize(("off", "away"), [(-51, 1), (51, 1), (-60, 10), (60, 10)])
def test_a_price_outside_its_bounds(sight: OnChainState, off: int, away: int) -> None:
    tick = sight.pool.tick
    step = step_of(TickWithin(sight.pool.id, tick - 50, tick + 50))
    for near in (-50, 0, 50):
        checks.check_needs(step, replace(sight, pool=replace(sight.pool, tick=Tick(tick + near))))
    there = replace(sight, pool=replace(sight.pool, tick=Tick(tick + off)))
    said = rf"at tick {tick + off}, {away} outside the approved {tick - 50} to {tick + 50} \(tick drift 50\)"
    with pytest.raises(Refused, match=said):
        checks.check_needs(step, there)


# -- the world


@pytest.mark.slow
async def test_drift_is_measured_from_the_decision(bench: Any, sight: OnChainState) -> None:
    told = await bench.told(Action.CLOSE)
    bounds = Bounds(tick_drift=10)
    for off in (-10, 10):
        checks.check_drift(told, replace(sight.pool, tick=Tick(told.tick + off)), bounds)
    for off in (-11, 11):
        moved = replace(sight.pool, tick=Tick(told.tick + off))
        said = rf"at tick {told.tick + off}, 11 ticks from the {told.tick} .* the bound is 10 \(tick drift\)"
        with pytest.raises(Refused, match=said):
            checks.check_drift(told, moved, bounds)


async def test_fees_are_collected_at_any_price(bench: Any, sight: OnChainState) -> None:
    away = replace(sight.pool, tick=Tick(sight.pool.tick + 1_000))
    await checks.check_market(bench.hands, await bench.told(Action.COLLECT), away, Bounds())
    with pytest.raises(Refused, match="tick drift"):
        await checks.check_market(bench.hands, await bench.told(Action.CLOSE), away, Bounds())


class Said:
    """A price somebody says."""

    source = "a stranger"

    def __init__(self, price: Fraction) -> None:
        self._price = price

    async def history(self, pair: Pair, hours: int, now: Seconds) -> Any:
        raise Unavailable("no history")

    async def spot(self, pair: Pair, now: Seconds) -> Fact[Fraction]:
        return Fact(self._price, self.source, now, now, Seconds(60))


async def test_a_pool_that_disagrees_with_the_world(bench: Any, sight: OnChainState) -> None:
    whole = sight.pool.price * 10 ** (18 - 6)

    def hearing(price: Fraction) -> Any:
        feeds = bench.hands.feeds_of(sight.pool.id)
        return replace(bench.hands, feeds_of=lambda pool: Feeds(Said(price), feeds.gas, feeds.native))

    limit = REFERENCE_LIMIT
    assert await checks.check_reference(hearing(whole), sight.pool) == "a stranger"
    for off in (1 + 2 * limit, 1 - 2 * limit):
        bound = f"{float(100 * limit):.2f}"
        with pytest.raises(Refused, match=rf"\d+\.\d\d %.*\(a stranger\).*{bound} %"):
            await checks.check_reference(hearing(whole / off), sight.pool)


# -- gas


def test_gas_is_held_to_its_bounds_and_to_the_wallet(sight: OnChainState) -> None:
    step = step_of(value=ETHER)
    rich = holding(sight, {NATIVE: ETHER + 100 * 10})
    checks.check_gas(rich, step, 100, 100, 10)
    with pytest.raises(Refused, match=r"101 gas.*\b100\b"):
        checks.check_gas(rich, step, 101, 100, 10)
    poor = holding(sight, {NATIVE: ETHER + 100 * 10 - 1})
    with pytest.raises(Refused, match=r"1\.000000000000000999.*1\.000000000000001"):
        checks.check_gas(poor, step, 100, 100, 10)


async def test_ether_for_the_first_step_alone_is_not_enough(bench: Any, sight: OnChainState) -> None:
    """By hand: the most over the steps of what those before it cost and what the node demands for it."""
    drafted = await bench.drafted(await bench.creation(capital1=10**9, brings_ether=True))
    draft, gas = drafted.draft, await bench.chain.gas()
    used = [call.gas_used for call in drafted.simulation.calls]
    value = draft.steps[0].value
    assert value > 0
    assert len(used) == len(draft.steps) > 1
    assert used[-1] == max(used)
    paid, dearest = sum(used[:-1]) * gas.price, used[-1] * 7 // 4 * (2 * gas.base_fee + gas.priority_fee)
    need = paid + dearest + value
    checks.check_whole_gas(holding(sight, {NATIVE: need}), drafted, gas, 60_000)
    with pytest.raises(Refused, match=rf"{format_units(need, 18)} ETH.*0\.0*1 ETH.*{bench.wallet}"):
        checks.check_whole_gas(holding(sight, {NATIVE: need - 1}), drafted, gas, 60_000)
    dear = 10**9
    first = dear * (2 * gas.base_fee + gas.priority_fee) + value
    checks.check_whole_gas(holding(sight, {NATIVE: first}), drafted, gas, dear)
    with pytest.raises(Refused, match=r"\b1 ETH"):
        checks.check_whole_gas(holding(sight, {NATIVE: first - ETHER}), drafted, gas, dear)


# -- what may be spent


async def spend(bench: Any, told: Any, **limits: Any) -> Decimal | None:
    """Of a draft as apply has it: read from the journal."""
    plan_id = await bench.approved(told)
    draft = (await bench.book(plan_id)).draft
    return await checks.check_spend(replace(bench.hands, limits=SpendingLimits(**limits)), draft)


async def test_what_leaves_the_wallet_is_counted_in_dollars(bench: Any) -> None:
    """Half an ether and some dollars beside it, the ether bare, wrapped or to be wrapped: all about the same."""
    price = (await bench.position()).pool.price * 10**12
    for told in (
        await bench.told(Action.ADD, bench.inside, capital0=ETHER // 2, capital1=10**12),
        await bench.creation(bench.inside, capital0=ETHER // 2, capital1=10**12),
        await bench.creation(bench.edge, capital0=ETHER // 2, capital1=10**12),
        await bench.creation(bench.edge, capital0=ETHER // 2, capital1=10**12, brings_ether=True),
    ):
        draft = (await bench.drafted(told)).draft
        last = {flow.currency: flow.amount for flow in draft.steps[-1].most_out}
        usdc = draft.pool.key.currency1
        dollars = Fraction(last.pop(usdc), USDC)
        (ether,) = last.values()
        expected = float(dollars + Fraction(ether, ETHER) * price)
        spent = await spend(bench, told, usd_per_plan=Decimal(10**9), usd_per_day=Decimal(10**9))
        assert spent is not None
        assert float(spent) == pytest.approx(expected, rel=0.02)


async def test_a_token_is_worth_the_same_whichever_side_of_the_pool_it_is_on(bench: Any, sight: OnChainState) -> None:
    pool, key = sight.pool, sight.pool.key
    turned = replace(
        pool,
        key=replace(key, currency0=key.currency1, currency1=key.currency0),
        token0=pool.token1,
        token1=pool.token0,
        sqrt_price_x96=SqrtPriceX96(2**192 // pool.sqrt_price_x96),
    )
    for flow in (Flow(key.currency0, ETHER), Flow(key.currency1, 7 * USDC)):
        here, there = [await checks.usd_value(bench.hands, each, flow) for each in (pool, turned)]
        assert here is not None
        assert there is not None
        assert float(there) == pytest.approx(float(here), rel=1e-12)
    assert await checks.usd_value(bench.hands, turned, Flow(key.currency1, 7 * USDC)) == 7


async def test_what_a_position_pays_back_first_does_not_count(bench: Any) -> None:
    for told in (await bench.two_steps(), await bench.told(Action.CLOSE), await bench.told(Action.COLLECT)):
        assert await spend(bench, told, usd_per_plan=Decimal(0), usd_per_day=Decimal(0)) == 0


@pytest.mark.slow
async def test_a_plan_that_takes_more_than_its_cap(bench: Any) -> None:
    told = await bench.creation()
    spent = await spend(bench, told)
    assert spent is not None
    assert await spend(bench, told, usd_per_plan=spent) == spent
    with pytest.raises(Refused, match=r"\$10\.00 \(ZUNO_"):
        await spend(bench, told, usd_per_plan=Decimal(10))


@pytest.mark.slow
async def test_a_day_that_takes_more_than_its_cap(bench: Any) -> None:
    told = await bench.creation()
    spent = await spend(bench, told)
    assert spent is not None
    first = await bench.approved(told)
    await bench.apply(first)
    total = (await bench.book(first)).applying.spend_usd
    assert total is not None
    assert total > 0
    enough = Decimal(10**9)
    now = await spend(bench, told, usd_per_plan=enough, usd_per_day=enough)
    assert now is not None
    assert await spend(bench, told, usd_per_plan=enough, usd_per_day=total + now) == now
    with pytest.raises(Refused, match="24 hours"):
        await spend(bench, told, usd_per_plan=enough, usd_per_day=total + now - Decimal("0.01"))
    # Whoever spent too much today can still go home.
    for exit_ in (await bench.told(Action.CLOSE), await bench.told(Action.REMOVE, share=Fraction(1, 2))):
        assert await spend(bench, exit_, usd_per_plan=Decimal(0), usd_per_day=total / 2) == 0
    # Its own intent counts once, and a day later nothing of it does.
    again = await checks.check_spend(bench.hands, (await bench.book(first)).draft)
    assert again == total
    late = replace(bench.hands, now=lambda: Millis(1_700_000_000_000 + 2 * checks.DAY_MILLIS))
    assert await checks._spent_today(late, "plan_" + "9" * 12) == 0
    assert await checks._spent_today(bench.hands, "plan_" + "9" * 12) == total


async def test_an_intent_told_twice_counts_once(bench: Any) -> None:
    told = await bench.creation()
    plan_id = await bench.approved(told)
    draft = (await bench.book(plan_id)).draft
    intent = PlanApplying(plan_id=plan_id, block=draft.block, spend_usd=Decimal(5), play_money=True)
    book = PlanProgress(plan_id, approved=(await bench.book(plan_id)).approved, draft=draft)
    await append_event(bench.journal, book, intent)
    book.applying = None
    await append_event(bench.journal, book, intent)
    assert await checks._spent_today(bench.hands, "plan_" + "9" * 12) == 5


@pytest.mark.parametrize(("age", "spent"), [(0, 5), (86_399_999, 5), (86_400_000, 5), (86_400_001, 0)])
async def test_a_day_has_twenty_four_hours_to_the_millisecond(bench: Any, age: int, spent: int) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    book = await bench.book(plan_id)
    intent = PlanApplying(plan_id=plan_id, block=book.draft.block, spend_usd=Decimal(5), play_money=True)
    await append_event(bench.journal, book, intent)
    (entry,) = await bench.journal.latest(1, kind=PlanApplying.kind)
    later = replace(bench.hands, now=lambda: Millis(entry.at + age))
    assert await checks._spent_today(later, "plan_" + "9" * 12) == spent


async def test_what_nobody_can_price_is_refused_where_money_is_real(bench: Any) -> None:
    plan_id = await bench.approved(await bench.creation())
    draft = (await bench.book(plan_id)).draft
    strange = replace(draft.pool.token0, symbol="GEM", verified=False)
    plain = replace(draft.pool.token1, symbol="ROCK", verified=False)
    odd = draft.model_copy(update={"pool": replace(draft.pool, token0=strange, token1=plain)})
    assert await checks.check_spend(bench.hands, odd) is None

    class Real:
        def __init__(self, chain: Any) -> None:
            self._chain = chain
            self.info = replace(chain.info, testnet=False)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._chain, name)

    real: Any = Real(bench.chain)
    with pytest.raises(Refused, match=r"GEM\?"):
        await checks.check_spend(replace(bench.hands, chain=real), odd)


async def test_an_unverified_dollar_is_no_dollar(bench: Any) -> None:
    """A token that calls itself USDC could set its own price."""
    plan_id = await bench.approved(await bench.creation())
    draft = (await bench.book(plan_id)).draft
    false = replace(draft.pool.token1, verified=False)
    odd = draft.model_copy(update={"pool": replace(draft.pool, token1=false)})
    honest = await checks.check_spend(bench.hands, draft)
    priced = await checks.check_spend(bench.hands, odd)
    assert honest is not None
    assert priced is not None
    assert float(priced) == pytest.approx(float(honest), rel=0.02), "by the market's price of ether, not the pool's"


# -- real money and play money, and what a rollup adds


@pytest.mark.slow
async def test_play_money_uses_up_no_cap_of_real_money(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    draft = (await bench.book(plan_id)).draft
    book = PlanProgress(plan_id, approved=(await bench.book(plan_id)).approved, draft=draft)
    intent = PlanApplying(plan_id=plan_id, block=draft.block, spend_usd=Decimal(5), play_money=True)
    await append_event(bench.journal, book, intent)
    here, other = bench.hands, "plan_" + "9" * 12
    assert await checks._spent_today(here, other) == 5
    real = replace(here, chain=Elsewhere(here.chain, replace(here.info, testnet=False)))
    assert await checks._spent_today(real, other) == 0


class Elsewhere:
    """A chain under another description."""

    def __init__(self, chain: Any, info: Any) -> None:
        self._chain = chain
        self.info = info

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)


async def test_what_a_rollup_charges_for_posting_counts(bench: Any) -> None:
    """A wallet that pays for gas and not for the data is refused; a fee that grew past its bound, too."""
    tried = await bench.drafted(await bench.told(Action.CLOSE))
    draft = tried.draft
    sight = await read_onchain_state(bench.hands, HexId(draft.pool.id), bench.edge)
    plain = await bench.chain.gas()
    posted = replace(plain, l1_fee_per_byte=Wei(10**12))
    size = len(draft.steps[0].data) + 130
    assert data_fee(all_steps(draft), plain) == 0
    assert data_fee(all_steps(draft), posted) == size * 10**12
    assert data_fee(all_steps(draft), replace(posted, estimates_hold_data_fee=True)) == 0
    with pytest.raises(Refused, match=r"data.*\b0 ETH"):
        checks.check_whole_gas(sight, tried, posted, 1)
    roomy = draft.model_copy(update={"gas": draft.gas.model_copy(update={"data_fee": Wei(10**18)})})
    checks.check_whole_gas(sight, replace(tried, draft=roomy), posted, 1)
    just = holding(sight, {NATIVE: 2 * plain.base_fee + plain.priority_fee + size * 10**12})
    checks.check_whole_gas(just, replace(tried, draft=roomy), posted, 1)
    short = holding(sight, {NATIVE: just.wallet_state.holdings[NATIVE] - 1})
    with pytest.raises(Refused, match=r"send 0\.000000000000000001 ETH"):
        checks.check_whole_gas(short, replace(tried, draft=roomy), posted, 1)
    step = draft.steps[0]
    ether = sight.wallet_state.holdings[NATIVE]
    checks.check_gas(sight, step, 1, 10, 1, data_fee=ether - 1)
    with pytest.raises(Refused, match=rf"ETH to {sight.wallet}\b"):
        checks.check_gas(sight, step, 1, 10, 1, data_fee=ether)
