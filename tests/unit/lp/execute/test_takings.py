"""No plan takes more of a token than was named or shown when it was made, whatever the price does until it is mined.

The wallet's standing allowances are without limit and so are the caps in dollars and the tick drift: what is left to
hold the plan is what was fixed when it was made, and its calldata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from eth_account import Account
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from zuno.amm.model import LpPosition, Range
from zuno.kernel.errors import Refused, ZunoError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Tick
from zuno.lp.execute.context import SpendingLimits
from zuno.lp.execute.draft import check_capital_limits, currencies, read_onchain_state, wrapped_native
from zuno.lp.execute.verify_outcome import gas_spent
from zuno.lp.model.plan import Bounds, PlanState, Step
from zuno.lp.model.plan_events import Action, Instruction
from zuno.lp.plan import minting, positions
from zuno.lp.plan.calldata import permit2_approve
from zuno.lp.plan.sizing import fix_capital
from zuno.lp.ports.spending import Simulation, SimulationMethod
from zuno_devnet.keys import dev_key

USDC, ETHER = 10**6, 10**18
EDGE, INSIDE = 1, 2
FOREVER = 2**48 - 1


@dataclass(frozen=True)
class Wish:
    """What an owner asks for: an action with its amounts, or with the range in spacings around the price."""

    action: Action
    token_id: int = EDGE
    amount0: int = 0
    amount1: int = 0
    ether: bool = False
    centre: int = 0
    reach: int = 40
    swaps: bool = True


amounts0 = st.integers(ETHER, 9 * ETHER) | st.integers(1, 90 * ETHER)
amounts1 = st.integers(2_000 * USDC, 20_000 * USDC) | st.integers(1, 200_000 * USDC)
one_or_both = st.one_of(st.tuples(amounts0, st.just(0)), st.tuples(st.just(0), amounts1), st.tuples(amounts0, amounts1))
token_ids = st.sampled_from([EDGE, INSIDE])
wishes = st.one_of(
    st.builds(
        lambda token_id, two: Wish(Action.ADD, token_id, *two),
        token_ids,
        one_or_both,
    ),
    st.builds(
        lambda token_id, two, ether, centre, reach: Wish(  # type: ignore[call-arg]
            Action.CREATE, token_id, *two, ether and token_id == EDGE, centre, reach
        ),
        token_ids,
        one_or_both,
        st.booleans(),
        st.integers(-5, 5) | st.integers(-30, 30),
        st.integers(10, 60) | st.integers(1, 9),
    ),
    st.builds(
        lambda token_id, centre, reach, swaps: Wish(
            Action.REBALANCE, token_id, centre=centre, reach=reach, swaps=swaps
        ),
        token_ids,
        st.integers(-5, 5) | st.integers(-30, 30),
        st.integers(10, 60) | st.integers(1, 9),
        st.booleans(),
    ),
    st.builds(Wish, st.sampled_from([Action.REMOVE, Action.COLLECT, Action.CLOSE]), token_ids),
)
seldom = st.sampled_from([False, False, False, True])
calm, nervous, wild = (
    st.decimals(-most, most, places=3).filter(bool) | st.just(Decimal(0))
    for most in (Decimal("0.05"), Decimal("0.6"), Decimal(12))
)
paths = st.tuples(
    st.one_of(st.just(Decimal(0)), calm, wild),
    st.one_of(*(st.lists(moves, min_size=7, max_size=7) for moves in (calm, calm, nervous, wild))),
).map(lambda two: [two[0], *two[1]])


def band_of(position: LpPosition, wish: Wish, bounds: Bounds, terms: Any) -> Range | None:
    spacing = position.pool.key.tick_spacing
    middle = (position.pool.tick // spacing + wish.centre) * spacing
    if wish.swaps:
        return Range(Tick(middle - wish.reach * spacing), Tick(middle + wish.reach * spacing))
    for width in range(2, 120):  # a range that takes the position's tokens as they are
        band = Range(Tick(position.range.lower - spacing), Tick(position.range.lower + width * spacing))
        try:
            if positions.rebalance(terms, position, band).later is None:
                return band
        except Refused:
            continue
    return None


async def instruct(bench: Any, wish: Wish, bounds: Bounds) -> Instruction:
    position = await bench.position(wish.token_id)
    named = {side: amount for side, amount in enumerate((wish.amount0, wish.amount1)) if amount}
    match wish.action:
        case Action.ADD:
            key = position.pool.key
            wallet_state = await bench.pond.wallet_state(bench.wallet, currencies(key), ())
            held = (wallet_state.holdings[key.currency0], wallet_state.holdings[key.currency1])
            capital = fix_capital(position, named, held, bounds.slippage_bps)
            other = None if len(named) == 2 else 1 - next(iter(named))
            return await bench.told(
                Action.ADD, wish.token_id, capital0=capital[0], capital1=capital[1], counterpart=other
            )
        case Action.CREATE | Action.REBALANCE:
            sight = await read_onchain_state(bench.hands, position.pool.id, wish.token_id)
            band = band_of(position, wish, bounds, sight.terms(bench.hands, bounds))
            if band is None:
                raise Refused("no range takes these tokens as they are")
            more: dict[str, Any] = {"capital0": wish.amount0, "capital1": wish.amount1, "brings_ether": wish.ether}
            brings = more if wish.action is Action.CREATE else {}
            return await bench.told(wish.action, wish.token_id, range=band, **brings)
        case Action.REMOVE:
            return await bench.told(Action.REMOVE, wish.token_id, share=Fraction(1, 3))
        case _:
            return await bench.told(wish.action, wish.token_id)


class FirstCallAlone:
    """A node that can try nothing but the first call, as most can."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def simulate(self, *question: Any) -> Simulation:
        tried: Simulation = await self._writer.simulate(*question)
        return replace(
            tried, how=SimulationMethod.FIRST_CALL, calls=tried.calls[:1], changes={}, sqrt_price_after_x96=None
        )


async def allow_everything(bench: Any) -> None:
    """The contracts may take whatever the wallet has, for ever, as other front ends leave it behind."""
    at, key = bench.info.deployment, (await bench.position()).pool.key
    wallet_state = await bench.pond.wallet_state(bench.wallet, currencies(key), ())
    nonce = wallet_state.next_nonce
    for token in (key.currency0, key.currency1):
        for spender in (at.position_manager, at.universal_router):
            fields = {
                "type": 2,
                "chainId": bench.info.id,
                "nonce": nonce,
                "to": bytes.fromhex(at.permit2[2:]),
                "value": 0,
                "data": permit2_approve(token, spender, 2**160 - 1, FOREVER),
                "gas": 200_000,
                "maxFeePerGas": 10**10,
                "maxPriorityFeePerGas": 10**9,
            }
            signed = Account.sign_transaction(fields, dev_key("wallet").to_bytes())
            await bench.pond.writer.send(bytes(signed.raw_transaction))
            nonce += 1


def most_named(bench: Any, told: Instruction, key: Any) -> dict[str, int]:
    if told.action not in (Action.ADD, Action.CREATE):
        return {}
    if told.brings_ether:
        return {NATIVE: told.capital0, key.currency1: told.capital1}
    return {key.currency0: told.capital0, key.currency1: told.capital1}


async def carry_out(
    bench: Any, wish: Wish, path: list[Decimal], bounds: Bounds, *, collects: bool = False, simulates: bool = True
) -> PlanState | None:
    """The wish from its first word to its last block, the price moving at every step of the way."""
    turns = iter(path)

    async def move() -> None:
        by = next(turns, Decimal(0))
        if by:
            await bench.chain.move(by)

    writer: Any = bench.pond if simulates else FirstCallAlone(bench.pond)
    bench.hands = replace(bench.hands, writer=writer, limits=SpendingLimits(bounds, Decimal(10**15), Decimal(10**15)))
    await allow_everything(bench)
    await move()
    try:
        told = await instruct(bench, wish, bounds)
        await move()
        drafted = await bench.drafted(told)
    except ZunoError:
        return None
    draft, gate = drafted.draft, bench.gate()
    await gate.approve(draft, gate.approval(draft, "test"))
    await move()
    if collects:
        with suppress(ZunoError):
            await bench.apply(await bench.approved(await bench.told(Action.COLLECT, wish.token_id)))

    async def move_and_mine() -> None:
        if bench.pond.waiting:
            await move()
            await bench.pond.mine()

    key = draft.pool.key
    before = (await bench.pond.wallet_state(bench.wallet, currencies(key), ())).holdings
    bench.pond.holding = True
    bench.asleep = [move_and_mine] * 60
    with suppress(ZunoError):
        await bench.apply(draft.plan_id)
    book = await bench.book(draft.plan_id)
    after = (await bench.pond.wallet_state(bench.wallet, currencies(key), ())).holdings
    named, shown = most_named(bench, told, key), {flow.currency: flow.amount for flow in draft.caps}
    for currency in currencies(key):
        gas = gas_spent(book) if currency == NATIVE else 0
        lost = before[currency] - after[currency] - gas
        if book.halfway or draft.later is not None:
            assert lost <= 0, "a second half spends what the first half paid"
        assert lost <= named.get(currency, 0), f"{lost} of {currency} were taken by {told}"
        assert lost <= shown.get(currency, 0), f"{lost} of {currency} were taken, shown were {shown}"
    return book.state


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wishes, paths, st.sampled_from([50, 300, 1000, 0]), seldom, st.booleans())
@example(Wish(Action.ADD, amount1=100 * USDC), [Decimal(-2), *[Decimal(0)] * 7], 50, False, True)
@example(
    Wish(Action.ADD, amount1=100 * USDC), [Decimal(0), Decimal("-0.4"), Decimal(-2), *[Decimal(0)] * 5], 50, False, True
)
@example(Wish(Action.REBALANCE, swaps=False), [Decimal(0)] * 8, 50, True, False)
def test_no_plan_takes_more_than_was_named_or_shown(
    new_bench: Callable[[], Any], wish: Wish, path: list[Decimal], slippage: int, collects: bool, simulates: bool
) -> None:
    bounds = Bounds(slippage_bps=slippage, tick_drift=10**6)
    asyncio.run(carry_out(new_bench(), wish, path, bounds, collects=collects, simulates=simulates))


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "wish",
    [
        Wish(Action.ADD, amount1=100 * USDC),
        Wish(Action.ADD, INSIDE, amount0=ETHER),
        Wish(Action.CREATE, amount0=ETHER, amount1=1_000 * USDC, ether=True),
        Wish(Action.CREATE, INSIDE, amount1=1_000 * USDC),
        Wish(Action.REBALANCE),
        Wish(Action.REBALANCE, swaps=False),
        Wish(Action.CLOSE),
        Wish(Action.REMOVE),
        Wish(Action.COLLECT),
    ],
    ids=lambda wish: f"{wish.action} {wish.token_id} {wish.swaps}",
)
def test_plans_of_every_kind_go_through_while_the_price_moves_a_little(
    new_bench: Callable[[], Any], wish: Wish
) -> None:
    """The property above is not kept by refusing everything."""
    path = [Decimal(0), *[Decimal("0.05"), Decimal("-0.05")] * 3]
    bounds = Bounds(tick_drift=10**6)
    assert asyncio.run(carry_out(new_bench(), wish, path, bounds)) is PlanState.CONFIRMED


def overdrawn(steps: Iterable[Step], told: Instruction, bench: Any, pool: Any) -> bool:
    try:
        check_capital_limits(told, pool, wrapped_native(bench.hands), tuple(steps))
    except Refused:
        return True
    return False


async def test_steps_that_take_a_unit_more_than_was_named_are_refused(bench: Any) -> None:
    """Whoever built them: the door counts for itself."""
    position = await bench.position(EDGE)
    sight = await read_onchain_state(bench.hands, position.pool.id, EDGE)
    terms = sight.terms(bench.hands, Bounds())
    bare = replace(position, fees0=type(position.fees0)(0), fees1=type(position.fees1)(0))
    added = positions.add(terms, bare, ETHER, 3_000 * USDC).steps
    most = {flow.currency: flow.amount for flow in added[-1].most_out}
    out0, out1 = (most[currency] for currency in (position.pool.key.currency0, position.pool.key.currency1))
    told = await bench.told(Action.ADD, capital0=out0, capital1=out1)
    assert not overdrawn(added, told, bench, position.pool)
    assert overdrawn(added, told.model_copy(update={"capital0": out0 - 1}), bench, position.pool)
    assert overdrawn(added, told.model_copy(update={"capital1": out1 - 1}), bench, position.pool)
    assert overdrawn((*added, added[-1]), told, bench, position.pool), "each step alone is within what was named"
    assert overdrawn(added, told.model_copy(update={"action": Action.REBALANCE}), bench, position.pool)


async def test_ether_that_is_wrapped_is_taken_once(bench: Any) -> None:
    pool = (await bench.position(EDGE)).pool
    sight = await read_onchain_state(bench.hands, pool.id, None)
    terms = sight.terms(bench.hands, Bounds())
    band = bench.around(pool, 50)
    steps = minting.create(terms, pool, band, ETHER, 3_000 * USDC, brings_ether=True).steps
    told = await bench.told(
        Action.CREATE, range=band, capital0=steps[0].value, capital1=3_000 * USDC, brings_ether=True
    )
    assert not overdrawn(steps, told, bench, pool)
    assert overdrawn(steps, told.model_copy(update={"capital0": steps[0].value - 1}), bench, pool)
    assert overdrawn(steps, told.model_copy(update={"brings_ether": False}), bench, pool), "ether was not named"
    assert overdrawn(steps[1:], told, bench, pool), "the wrapped token itself was not named"


@pytest.mark.parametrize(("percent", "sides"), [("-2", {1: 100 * USDC}), ("12", {0: ETHER})])
async def test_a_named_token_of_which_nothing_goes_in_is_refused_by_the_gate(
    bench: Any, percent: str, sides: dict[int, int]
) -> None:
    """The price leaves the range between the draft and the approval."""
    bench.hands = replace(
        bench.hands, limits=SpendingLimits(Bounds(tick_drift=10**6), Decimal(10**15), Decimal(10**15))
    )
    told = await bench.told(Action.ADD, capital0=5 * ETHER, capital1=20_000 * USDC, counterpart=1 - next(iter(sides)))
    await bench.drafted(told)
    await bench.chain.move(Decimal(percent))
    with pytest.raises(Refused, match=r"\bwould\b"):
        await bench.drafted(told)
    other = told.model_copy(update={"counterpart": next(iter(sides))})
    await bench.drafted(other)


@pytest.mark.slow
async def test_fees_that_are_gone_are_not_made_up_from_the_wallet(bench: Any) -> None:
    await allow_everything(bench)
    told = await instruct(bench, Wish(Action.ADD, amount0=ETHER), Bounds())
    plan_id = await bench.approved(told)
    await bench.apply(await bench.approved(await bench.told(Action.COLLECT)))
    with pytest.raises(Refused, match="collected"):
        await bench.apply(plan_id)


@pytest.mark.slow
@pytest.mark.parametrize("simulates", [True, False])
@pytest.mark.parametrize(
    ("wish", "part"),
    [
        (Wish(Action.ADD, amount1=1_000 * USDC), "0.635"),
        (Wish(Action.ADD, INSIDE, amount1=1_000 * USDC), "0.998"),
        (Wish(Action.ADD, amount0=12 * ETHER // 10, amount1=1_000 * USDC), "0.383"),
        (Wish(Action.CREATE, amount0=2 * ETHER // 10, amount1=1_000 * USDC, ether=True), "0.628"),
    ],
)
async def test_a_named_amount_that_goes_in_in_part_says_how_much_before_the_approval(
    bench: Any, wish: Wish, part: str, simulates: bool
) -> None:
    writer: Any = bench.pond if simulates else FirstCallAlone(bench.pond)
    bench.hands = replace(bench.hands, writer=writer)
    position = await bench.position(wish.token_id)
    usdc = position.pool.key.currency1
    draft = (await bench.drafted(await instruct(bench, wish, Bounds()))).draft
    (note,) = (note for note in draft.notes if note.startswith("of 1000 USDC"))
    goes_in = round(Decimal(note.split()[3]) * USDC)
    before = (await bench.pond.wallet_state(bench.wallet, (usdc,), ())).holdings[usdc]
    gate = bench.gate()
    await gate.approve(draft, gate.approval(draft, "test"))
    done = await bench.apply(draft.plan_id)
    after = (await bench.pond.wallet_state(bench.wallet, (usdc,), ())).holdings[usdc]
    fees = position.fees1 if wish.action is Action.ADD else 0
    swapped = 1_000 * USDC // 5_000 if wish.action is Action.CREATE and not simulates else 0
    assert abs(goes_in - fees - before + after) <= swapped, "a swap that nobody tried is counted at its least"
    assert round(Decimal(goes_in) / (1_000 * USDC), 3) == Decimal(part)
    assert "go with" in note
    for left in (draft.leftover, done.over.leftover):
        assert abs(left.amount1 + goes_in - 1_000 * USDC) <= 1_000 * USDC // 5_000


async def test_a_named_amount_that_goes_in_whole_is_not_remarked_on(bench: Any) -> None:
    await bench.chain.move(Decimal(-2))
    draft = (await bench.drafted(await instruct(bench, Wish(Action.ADD, amount0=ETHER), Bounds()))).draft
    assert draft.notes == ()
