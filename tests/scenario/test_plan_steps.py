"""Every kind of plan, sent to the real contracts: what it does, what it leaves behind, and where it stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_abi.abi import decode as abi_decode
from eth_abi.abi import encode as abi_encode

from tests.examples import mark_all_but, pair_in_turn
from tests.wire.tokens import TETHER_LIKE, assemble
from zuno.adapters.chain.devnet.world_builder import OTHERS_ROLE, WALLET_ROLE, open_world
from zuno.adapters.chain.rpc.storage import locate_position, pool_state, read_worth
from zuno.adapters.chain.world import (
    DEFAULT_SEED,
    DEPLOYMENT,
    OTHERS,
    SWAP_ROUTER,
    USDC,
    WALLET,
    WETH,
    pool_specs,
)
from zuno.amm.identity import decode_position_info, pool_id
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.amm.ticks import floor_to_spacing, sqrt_price_at_tick, tick_at_sqrt_price
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, Tick
from zuno.lp.model.chains import ETH
from zuno.lp.model.plan import (
    Allowances,
    Allows,
    Grant,
    Holds,
    Need,
    Owns,
    Permits,
    Step,
    StepKind,
    StepPlan,
    TickWithin,
)
from zuno.lp.plan import calldata, minting, positions
from zuno.lp.plan.approvals import build_revocations
from zuno.lp.plan.calldata import position_manager_call
from zuno.lp.plan.context import PlanContext
from zuno.lp.plan.inventory import burn_proceeds, market_without_us, plan_swap_and_deposit, price_bounds
from zuno.lp.plan.policy import Policy, build_policy, verify_step
from zuno.lp.plan.sizing import least_principal
from zuno_devnet.artifacts import find_artifacts
from zuno_devnet.chain import ETHER
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.rpc import Rpc

WETH_POOL, _, NATIVE_POOL = (spec.key for spec in pool_specs())
EDGE, INSIDE = 1, 2
"""The wallet's positions in the story: near its edge in the WETH pool, well inside in the native one."""
AMPLE = 1 << 120
FOREVER = (1 << 48) - 1
GAS = 3_000_000


# -- the stage


@dataclass
class Stage:
    """The story's chain behind JSON-RPC, and the reads a gate would make before each step."""

    node: DevnetNode

    def __post_init__(self) -> None:
        self.answer = Rpc(self.node).answer
        self.known: dict[tuple[bytes, str], Any] = {}
        self.tokens: dict[Address, Token] = {token.address: token for token in (ETH, WETH, USDC)}

    # acts

    def rpc(self, method: str, *params: object) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = json.loads(self.answer(json.dumps(body).encode()))
        assert "error" not in reply, reply
        return reply["result"]

    def transact(self, to: str | None, data: bytes, value: int = 0, sender: Address = WALLET) -> Any:
        """One mined transaction, whether it succeeded or not."""
        fields = {"from": sender, "data": "0x" + data.hex(), "value": hex(value), "gas": hex(GAS)}
        tx = self.rpc("eth_sendTransaction", fields if to is None else {**fields, "to": to})
        return self.rpc("eth_getTransactionReceipt", tx)

    def do(self, to: str | None, data: bytes, value: int = 0, sender: Address = WALLET) -> Any:
        receipt = self.transact(to, data, value, sender)
        assert receipt["status"] == "0x1", f"reverted: {to} {data[:4].hex()}"
        return receipt

    def push(self, key: PoolKey, target: int) -> None:
        """Somebody's swap to a price."""
        down = target < self.pool(key).sqrt_price_x96
        data = calldata.call(
            f"swap({calldata.KEY},(bool,int256,uint160),(bool,bool),bytes)",
            *(calldata.key_tuple(key), (down, -AMPLE, target), (False, False), b""),
        )
        self.do(SWAP_ROUTER, data, 10**6 * ETHER if down and key.currency0 == NATIVE else 0, OTHERS)

    def nudge(self, key: PoolKey, bps: int) -> None:
        """Move the price by so many basis points."""
        here = self.pool(key).sqrt_price_x96
        low, high = price_bounds(here, abs(bps))
        self.push(key, high if bps > 0 else low)

    def trade(self, key: PoolKey, times: int, bps: int = 60) -> None:
        """Out and back, so that both tokens earn fees."""
        home = self.pool(key).sqrt_price_x96
        for _ in range(times):
            self.nudge(key, bps)
            self.nudge(key, -2 * bps)
            self.push(key, home)

    def swap(self, key: PoolKey, zero_for_one: bool, amount: int) -> None:
        """Somebody's swap through the router, for tokens that the test router cannot move."""
        paid, got = (key.currency0, key.currency1) if zero_for_one else (key.currency1, key.currency0)
        acts = [
            calldata.swap_exact_in_single(key, zero_for_one, amount, 0, DEPLOYMENT.swap_struct),
            calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True),
            calldata.take(got, calldata.SENDER, calldata.OPEN_DELTA),
        ]
        self.do(DEPLOYMENT.universal_router, calldata.execute([calldata.v4_swap(acts)], FOREVER), sender=OTHERS)

    def forget_allowances(self) -> None:
        """As a wallet that has never allowed anything."""
        for step in build_revocations(self.terms(), tuple(self.tokens)):
            self.do(step.to, step.data)
        assert not any(self.terms().allowances.to_permit2.values())

    # reads

    def ask(self, to: Address, types: str, signature: str, *values: object) -> Any:
        call = {"to": to, "data": "0x" + calldata.call(signature, *values).hex()}
        return abi_decode(types.split(), bytes.fromhex(self.read("eth_call", call)[2:]))

    def read(self, method: str, *params: object) -> Any:
        """A question whose answer belongs to the head: asked once for each block."""
        key = (self.node.chain.head.hash, json.dumps([method, params]))
        if key not in self.known:
            self.known[key] = self.rpc(method, *params, "latest")
        return self.known[key]

    def balance(self, currency: Address, owner: Address = WALLET) -> int:
        if currency == NATIVE:
            return int(self.read("eth_getBalance", owner), 16)
        return int(self.ask(currency, "uint256", "balanceOf(address)", owner)[0])

    def block(self) -> Block:
        head = self.node.chain.head
        return Block(head.number, HexId("0x" + head.hash.hex()), Seconds(head.timestamp))

    def next_id(self) -> int:
        return int(self.ask(DEPLOYMENT.position_manager, "uint256", "nextTokenId()")[0])

    def words(self, slots: tuple[int, ...]) -> dict[int, int]:
        manager = bytes.fromhex(DEPLOYMENT.pool_manager[2:])
        return {slot: self.node.chain.storage(manager, slot) for slot in slots}

    def pool(self, key: PoolKey) -> PoolState:
        id_ = HexId(pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks))
        tokens = (self.tokens[key.currency0], self.tokens[key.currency1])
        at = locate_position(DEPLOYMENT.position_manager, id_, Range(Tick(0), Tick(0)), 0)
        state = pool_state(key, id_, tokens, self.words(at.slots()), self.block())
        assert state is not None
        return state

    def position(self, token_id: int) -> LpPosition:
        manager = DEPLOYMENT.position_manager
        *fields, packed = self.ask(
            manager, "address address uint24 int24 address uint256", "getPoolAndPositionInfo(uint256)", token_id
        )
        currency0, currency1, fee, spacing, hooks = fields
        key = PoolKey(currency0, currency1, Pips(fee), spacing, hooks)
        info, pool = decode_position_info(packed), self.pool(key)
        at = locate_position(manager, pool.id, Range(Tick(info.tick_lower), Tick(info.tick_upper)), token_id)
        held = read_worth(at, self.words(at.slots()))
        (owner,) = self.ask(manager, "address", "ownerOf(uint256)", token_id)
        return LpPosition(
            token_id,
            "devnet",
            owner,
            pool,
            Range(Tick(info.tick_lower), Tick(info.tick_upper)),
            Liquidity(held.info.liquidity),
            Amount(held.amount0),
            Amount(held.amount1),
            Amount(held.fees0),
            Amount(held.fees1),
        )

    def gone(self, token_id: int) -> bool:
        call = {"to": DEPLOYMENT.position_manager, "data": "0x" + calldata.call("ownerOf(uint256)", token_id).hex()}
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [call, "latest"]}
        return "error" in json.loads(self.answer(json.dumps(body).encode()))

    def allowed(self, token: Address) -> int:
        return int(self.ask(token, "uint256", "allowance(address,address)", WALLET, DEPLOYMENT.permit2)[0])

    def grant(self, token: Address, spender: Address) -> Grant:
        types, signature = "uint160 uint48 uint48", "allowance(address,address,address)"
        amount, until, _ = self.ask(DEPLOYMENT.permit2, types, signature, WALLET, token, spender)
        return Grant(amount, Seconds(until))

    def terms(self) -> PlanContext:
        at = DEPLOYMENT
        erc20 = [token for token in self.tokens if token != NATIVE]
        spenders = (at.position_manager, at.universal_router)
        grants = {(token, spender): self.grant(token, spender) for token in erc20 for spender in spenders}
        return PlanContext(
            at,
            WALLET,
            self.block().timestamp,
            {token: self.balance(token) for token in self.tokens},
            Allowances({token: self.allowed(token) for token in erc20}, grants),
            wrapper=WETH.address,
        )

    def holds(self, need: Need) -> bool:
        """Whether what a step needs is so, read from the chain."""
        match need:
            case Holds(currency, amount):
                return self.balance(currency) >= amount
            case Allows(token, amount):
                return self.allowed(token) >= amount
            case Permits(token, spender, amount, until):
                grant = self.grant(token, spender)
                return grant.amount >= amount and grant.until >= until
            case Owns(token_id, liquidity):
                held = self.position(token_id)
                return held.owner == WALLET and held.liquidity == liquidity
            case TickWithin(id_, low, high):
                (found,) = (spec for spec in self.keys() if self.pool(spec).id == id_)
                return low <= self.pool(found).tick <= high

    def keys(self) -> list[PoolKey]:
        return [*(spec.key for spec in pool_specs()), *self.more_keys]

    more_keys: tuple[PoolKey, ...] = ()

    # running a plan as a gate would

    def policy(self, steps: tuple[Step, ...], key: PoolKey, position: LpPosition | None = None) -> Policy:
        most: dict[Address, int] = {}
        for step in steps:
            for flow in step.most_out:
                most[flow.currency] = max(most.get(flow.currency, 0), flow.amount)
        return build_policy(self.terms(), key, most, position, frozenset({key.hooks}))

    def run(self, steps: tuple[Step, ...], key: PoolKey, position: LpPosition | None = None) -> dict[Address, int]:
        """Read, judge and send each step; what the wallet gained of each currency, gas apart."""
        policy = self.policy(steps, key, position)
        gained = dict.fromkeys((NATIVE, *self.tokens), 0)
        for step in steps:
            verify_step(step, policy)
            for need in step.needs:
                assert self.holds(need), need
            for currency, change in self.send(step).items():
                gained[currency] += change
        self.check_nothing_stays()
        return gained

    def send(self, step: Step) -> dict[Address, int]:
        before = {currency: self.balance(currency) for currency in self.tokens}
        receipt = self.do(step.to, step.data, step.value)
        changes = {currency: self.balance(currency) - before[currency] for currency in self.tokens}
        changes[NATIVE] += int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        most = {flow.currency: flow.amount for flow in step.most_out}
        least = {flow.currency: flow.amount for flow in step.least_in}
        for currency, change in changes.items():
            assert change >= least.get(currency, 0) - most.get(currency, 0), (step.kind, currency, change)
        return changes

    def check_nothing_stays(self) -> None:
        for contract in (DEPLOYMENT.position_manager, DEPLOYMENT.universal_router):
            for currency in self.tokens:
                assert self.balance(currency, contract) == 0, (contract, currency)

    def reverts(self, step: Step) -> bool:
        return bool(self.transact(step.to, step.data, step.value)["status"] == "0x0")


@pytest.fixture(scope="module")
def world(world_cache: Path, node_modules: Path) -> Stage:
    chain = open_world(find_artifacts(node_modules), world_cache, DEFAULT_SEED, lambda done, total: None)
    keys = {dev_address(role): dev_key(role) for role in (WALLET_ROLE, OTHERS_ROLE)}
    stage = Stage(DevnetNode(chain, unlocked=keys, clock=lambda: 0.0))
    stage.forget_allowances()
    return stage


@pytest.fixture
def stage(world: Stage) -> Iterator[Stage]:
    before, tokens, keys = world.node.snapshot(), dict(world.tokens), world.more_keys
    yield world
    world.tokens, world.more_keys = tokens, keys
    assert world.node.revert(before)


# -- ranges


def around(pool: PoolState, below: int, above: int) -> Range:
    spacing = pool.key.tick_spacing
    here = floor_to_spacing(pool.tick, spacing)
    return Range(Tick(here - below * spacing), Tick(here + above * spacing))


def needs_no_swap(position: LpPosition, least: int = 12) -> Range:
    """Another range, of at least so many spacings each way, that the position's own tokens fit as they are."""
    pool = position.pool
    for below in count(least):
        for above in range(least // 2, 200):
            band = around(pool, below, above)
            fits = plan_swap_and_deposit(
                market_without_us(pool, position), band, *burn_proceeds(position), may_swap=True
            )
            if fits.prep is None and band != position.range and fits.liquidity:
                return band
        assert below < 100
    raise AssertionError


def outside(stage: Stage, key: PoolKey, band: Range, *, above: bool) -> None:
    """Push the price so far beyond the range that no move in bounds brings it back."""
    tick = band.upper + 12 * key.tick_spacing if above else band.lower - 12 * key.tick_spacing
    stage.push(key, sqrt_price_at_tick(tick))


def minted_as_asked(stage: Stage, token_id: int, band: Range, least: int) -> LpPosition:
    new = stage.position(token_id)
    assert (new.owner, new.range) == (WALLET, band)
    assert new.liquidity >= least
    return new


def share_in(new: LpPosition, left0: int, left1: int) -> Fraction:
    """How much of what burn and swap paid is in the position, at the price it was opened at."""
    price = new.pool.price
    inside, left = new.amount0 * price + new.amount1, left0 * price + left1
    return inside / (inside + left)


PUT_TO_WORK = Fraction(98, 100)


# -- rebalance in one step


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("held", [EDGE, INSIDE])
def test_a_rebalance_without_a_swap_is_one_step_out_of_its_own_proceeds(stage: Stage, held: int) -> None:
    position = stage.position(held)
    band = needs_no_swap(position)
    plan = positions.rebalance(stage.terms(), position, band)
    (step,) = plan.steps
    assert (step.kind, step.value, step.most_out, plan.later) == (StepKind.BURN_AND_MINT, 0, (), None)
    new_id = stage.next_id()
    gained = stage.run(plan.steps, position.pool.key, position)
    new = minted_as_asked(stage, new_id, band, 1)
    have0, have1 = burn_proceeds(position)
    left0, left1 = gained[position.pool.key.currency0], gained[position.pool.key.currency1]
    assert 0 <= have0 - new.amount0 - left0 <= 2  # each mint rounds up, a burn down
    assert 0 <= have1 - new.amount1 - left1 <= 2
    assert share_in(new, left0, left1) > PUT_TO_WORK
    assert plan.leftover is not None
    assert (plan.leftover.whole0, plan.leftover.whole1) == (have0, have1)
    assert abs(plan.leftover.amount0 - left0) <= 10**6
    assert abs(plan.leftover.amount1 - left1) <= 2
    assert stage.gone(held)


@pytest.mark.parametrize("above", [False, True])
def test_a_position_out_of_range_moves_on_its_own_side_in_one_step(stage: Stage, above: bool) -> None:
    old = stage.position(EDGE)
    outside(stage, WETH_POOL, old.range, above=above)
    position = stage.position(EDGE)
    assert 0 in (position.amount0, position.amount1)
    # Its fees are of both tokens; with them at home, only one is left.
    stage.run(positions.collect(stage.terms(), position).steps, WETH_POOL, position)
    position = stage.position(EDGE)
    pool = position.pool
    band = around(pool, 40, -6) if above else around(pool, -7, 50)
    plan = positions.rebalance(stage.terms(), position, band)
    new_id = stage.next_id()
    stage.run(plan.steps, WETH_POOL, position)
    new = minted_as_asked(stage, new_id, band, 1)
    assert (new.amount1 if above else new.amount0) >= (position.amount1 if above else position.amount0) * 99 // 100


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("key", [WETH_POOL, NATIVE_POOL], ids=["weth", "native"])
def test_a_move_at_the_edge_mints_a_fixed_size_and_brings_the_rest_home(stage: Stage, key: PoolKey) -> None:
    """The edge of the old range lies in the bounds: its burn does not hold the price, a mint of fixed size does."""
    pool = stage.pool(key)
    stage.push(key, sqrt_price_at_tick(floor_to_spacing(pool.tick, key.tick_spacing)) + 10**20)
    pool = stage.pool(key)
    amounts = thousand_each(key)
    stage.run(minting.create(stage.terms(), pool, around(pool, 0, 20), *amounts).steps, key)
    edging = stage.position(stage.next_id() - 1)
    band = around(pool, 0, 30)
    (step,) = positions.rebalance(stage.terms(), edging, band).steps
    # A stranger gives the wallet a position of the next number first: nothing of ours may go there.
    acts = [
        calldata.mint_position(WETH_POOL, -887_200, 887_200, 10**12, AMPLE, AMPLE, WALLET),
        calldata.settle_pair(WETH_POOL.currency0, WETH_POOL.currency1),
    ]
    stage.do(DEPLOYMENT.position_manager, calldata.modify_liquidities(acts, FOREVER), sender=OTHERS)
    given, new_id = stage.next_id() - 1, stage.next_id()
    gained = stage.run((step,), key, edging)
    new = minted_as_asked(stage, new_id, band, 1)
    assert stage.position(given).liquidity == 10**12
    have = (edging.amount0 + edging.fees0, edging.amount1 + edging.fees1)
    for held, amount, currency in zip(have, (new.amount0, new.amount1), (key.currency0, key.currency1), strict=True):
        assert abs(held - amount - gained[currency]) <= 2


@pytest.mark.soak
def test_widening_counts_what_the_old_range_loses(stage: Stage) -> None:
    """Sized by today's proceeds alone, a narrow range that becomes a wide one runs short inside the bounds."""
    pool = stage.pool(NATIVE_POOL)
    terms = stage.terms()
    band = around(pool, 2, 3)
    stage.run(minting.create(terms, pool, band, 10 * ETHER, 40_000 * 10**6).steps, NATIVE_POOL)
    stage.forget_allowances()
    narrow = stage.position(stage.next_id() - 1)
    wide = needs_no_swap(narrow, 30)
    plan = positions.rebalance(stage.terms(), narrow, wide)
    assert plan.later is None
    before = stage.node.snapshot()
    for bps in (-49, -25, 25, 49):
        stage.nudge(NATIVE_POOL, bps)
        stage.send(plan.steps[0])
        assert stage.node.revert(before)
        before = stage.node.snapshot()


# -- rebalance in two


def two_steps(stage: Stage, position: LpPosition, band: Range) -> tuple[StepPlan, LpPosition]:
    key = position.pool.key
    plan = positions.rebalance(stage.terms(), position, band)
    assert plan.later is not None
    assert [step.kind for step in plan.steps] == [StepKind.BURN]
    paid = stage.run(plan.steps, key, position)
    assert (paid[key.currency0], paid[key.currency1]) == burn_proceeds(position)
    assert stage.gone(position.id)
    rest = positions.finish_rebalance(
        plan.later, stage.terms(), stage.pool(key), paid[key.currency0], paid[key.currency1]
    )
    assert rest[-1].kind is StepKind.SWAP_AND_MINT
    new_id = stage.next_id()
    gained = stage.run(rest, key)
    new = minted_as_asked(stage, new_id, band, 1)
    left = [paid[currency] + gained[currency] for currency in (key.currency0, key.currency1)]
    assert min(left) >= 0  # what was not proceeds was not touched
    assert share_in(new, *left) > PUT_TO_WORK
    return plan, new


@pytest.mark.soak(every=2)
@pytest.mark.parametrize(("held", "above"), pair_in_turn([EDGE, INSIDE], [False, True]))
def test_a_rebalance_with_a_swap_is_two_steps(stage: Stage, held: int, above: bool) -> None:
    old = stage.position(held)
    outside(stage, old.pool.key, old.range, above=above)
    position = stage.position(held)
    band = around(position.pool, 30, 30)
    _, new = two_steps(stage, position, band)
    worth = burn_proceeds(position)[1] + burn_proceeds(position)[0] * position.pool.price
    put_in = new.amount1 + new.amount0 * new.pool.price
    assert put_in > worth * Fraction(95, 100), "beside what the swap costs"
    # Exact amounts, and all of them taken: nothing is left allowed.
    for token in (WETH.address, USDC.address):
        assert stage.allowed(token) == 0
        assert stage.grant(token, DEPLOYMENT.universal_router).amount == 0


@pytest.mark.soak
@pytest.mark.parametrize("held", mark_all_but(2, [INSIDE, EDGE], pytest.mark.soak))
def test_six_moves_in_a_row_leave_next_to_nothing_at_home(stage: Stage, held: int) -> None:
    key = stage.position(held).pool.key
    for number, percent in enumerate((6, -6) * 3):
        stage.nudge(key, percent * 100)
        position = stage.position(held)
        spacings = (300, 500)[number % 2] // key.tick_spacing
        two_steps(stage, position, around(position.pool, spacings, spacings))
        held = stage.next_id() - 1


@pytest.mark.soak(every=4)
@pytest.mark.parametrize(("below", "above"), [(20, 60), (60, 20)])
@pytest.mark.parametrize("held", [EDGE, INSIDE])
def test_a_swap_tops_up_what_the_position_has_of_both(stage: Stage, held: int, below: int, above: int) -> None:
    """The new range needs both what the swap pays and what there was already."""
    position = stage.position(held)
    band = around(position.pool, below, above)
    plan, _ = two_steps(stage, position, band)
    assert plan.later is not None
    key = position.pool.key
    paid = {flow.currency for flow in plan.later.preview[-1].most_out}
    assert paid == {key.currency0, key.currency1}


@pytest.mark.parametrize(("held", "above"), pair_in_turn([EDGE, INSIDE], [False, True]))
def test_a_second_half_cannot_be_sandwiched(stage: Stage, held: int, above: bool) -> None:
    """Its own swap stops at a price that moved against it, its guard at one that moved in its favour."""
    key = stage.position(held).pool.key
    outside(stage, key, stage.position(held).range, above=above)
    position = stage.position(held)
    plan = positions.rebalance(stage.terms(), position, around(position.pool, 30, 30))
    assert plan.later is not None
    paid = stage.run(plan.steps, key, position)
    pool = stage.pool(key)
    *first, last = positions.finish_rebalance(plan.later, stage.terms(), pool, paid[key.currency0], paid[key.currency1])
    for step in first:
        stage.send(step)
    naked = replace(last, data=without_guard(last))
    before = stage.node.snapshot()
    passed = []
    for bps in (-100, 100):
        for step in (last, naked):
            stage.nudge(key, bps)
            if not stage.reverts(step):
                passed.append((step, bps))
            assert stage.node.revert(before)
            before = stage.node.snapshot()
    assert passed == [(naked, 100 if plan.later.zero_for_one else -100)], "or the guard is good for nothing"
    stage.send(last)


def without_guard(step: Step) -> bytes:
    """The same call without its swap back, and with a mint of any size."""
    commands, inputs, deadline = abi_decode(["bytes", "bytes[]", "uint256"], step.data[4:])
    actions, params = abi_decode(["bytes", "bytes[]"], inputs[0])
    kept = [calldata.EncodedAction(*each) for at, each in enumerate(zip(actions, params, strict=True)) if at != 2]
    assert actions[2] == 0x06
    unlock, _ = abi_decode(["bytes", "uint256"], inputs[-1][4:])
    acts = [calldata.EncodedAction(*each) for each in zip(*abi_decode(["bytes", "bytes[]"], unlock), strict=True)]
    types = [calldata.KEY, "int24", "int24", "uint128", "uint128", "address", "bytes"]
    key, lower, upper, _, _, owner, data = abi_decode(types, acts[2].params)
    acts[2] = calldata.EncodedAction(acts[2].action, abi_encode(types, (key, lower, upper, AMPLE, AMPLE, owner, data)))
    moved = zip(commands[1:-1], inputs[1:-1], strict=True)
    return calldata.execute([calldata.v4_swap(kept), *moved, position_manager_call(acts, deadline)], deadline)


def test_the_second_half_stops_where_the_approval_ends(stage: Stage) -> None:
    position = stage.position(EDGE)
    outside(stage, WETH_POOL, position.range, above=False)
    position = stage.position(EDGE)
    plan = positions.rebalance(stage.terms(), position, around(position.pool, 30, 30))
    assert plan.later is not None
    paid = stage.run(plan.steps, WETH_POOL, position)
    proceeds = paid[WETH_POOL.currency0], paid[WETH_POOL.currency1]
    stage.push(WETH_POOL, sqrt_price_at_tick(position.pool.tick + 51))
    with pytest.raises(Refused, match=r"\b51\b.*\b50\b"):
        positions.finish_rebalance(plan.later, stage.terms(), stage.pool(WETH_POOL), *proceeds)
    stage.push(WETH_POOL, sqrt_price_at_tick(position.pool.tick + 50))
    zero_for_one = plan.later.zero_for_one
    richer = replace(plan.later, least_rate=plan.later.least_rate * Fraction(103, 100))
    with pytest.raises(Refused, match="minimum"):
        positions.finish_rebalance(richer, stage.terms(), stage.pool(WETH_POOL), *proceeds)
    turned = replace(plan.later, zero_for_one=not zero_for_one)
    with pytest.raises(Refused, match="swapped"):
        positions.finish_rebalance(turned, stage.terms(), stage.pool(WETH_POOL), *proceeds)


# -- create


def test_two_tokens_open_a_wide_range_without_a_swap(stage: Stage) -> None:
    pool = stage.pool(WETH_POOL)
    terms = stage.terms()
    band = around(pool, 1_000, 1_000)
    capital = {WETH.address: 2 * ETHER, USDC.address: 6_000 * 10**6}
    amounts = capital[WETH_POOL.currency0], capital[WETH_POOL.currency1]
    plan = minting.create(terms, pool, band, *amounts)
    approvals = [StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE]
    assert [step.kind for step in plan.steps] == [*approvals, *approvals, StepKind.MINT]
    new_id = stage.next_id()
    stage.run(plan.steps, WETH_POOL)
    new = minted_as_asked(stage, new_id, band, 1)
    most = {flow.currency: flow.amount for flow in plan.steps[-1].most_out}
    left = stage.terms().allowances
    assert left.to_permit2[WETH_POOL.currency0] == most[WETH_POOL.currency0] - new.amount0 - 1
    assert left.to_permit2[WETH_POOL.currency1] == most[WETH_POOL.currency1] - new.amount1 - 1
    again = minting.create(stage.terms(), stage.pool(WETH_POOL), band, *amounts)
    assert [step.kind for step in again.steps[:3]] == [
        *(StepKind.APPROVE_PERMIT2, StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE),
    ], "an allowance that does not suffice goes to zero first"


@pytest.mark.soak(every=2)
@pytest.mark.parametrize(("key", "way"), pair_in_turn([WETH_POOL, NATIVE_POOL], ["create", "add"]))
def test_two_tokens_are_put_to_work_at_the_price_they_meet_and_at_no_other(
    stage: Stage, key: PoolKey, way: str
) -> None:
    """The shorter of the two goes in whole; a price that moved by 1 % either way stops it, by 0.3 % does not."""
    pool, capital = stage.pool(key), (2 * ETHER, 5_000 * 10**6)
    amounts = capital if key.currency1 == USDC.address else capital[::-1]
    band, held = around(pool, 12, 12), None
    if way == "add":
        stage.run(minting.create(stage.terms(), pool, band, *amounts).steps, key)
        held, pool = stage.position(stage.next_id() - 1), stage.pool(key)

    def build() -> StepPlan:
        if held is not None:
            return positions.add(stage.terms(), held, *amounts)
        return minting.create(stage.terms(), pool, band, *amounts)

    for step in build().steps[:-1]:
        stage.send(step)
    (last,), left = build().steps, build().leftover
    before, passed = stage.node.snapshot(), []
    for bps in (-100, -30, 30, 100):
        stage.nudge(key, bps)
        if not stage.reverts(last):
            passed.append(bps)
        assert stage.node.revert(before)
        before = stage.node.snapshot()
    assert passed == [-30, 30]
    gained = stage.run((last,), key, held)
    assert left is not None
    assert min(Fraction(left.amount0, left.whole0), Fraction(left.amount1, left.whole1)) < Fraction(1, 5_000)
    home = [most + gained[currency] for most, currency in zip(amounts, (key.currency0, key.currency1), strict=True)]
    assert min(home) >= 0
    off = (home[0] - left.amount0) * pool.price + home[1] - left.amount1
    assert abs(off) < (amounts[0] * pool.price + amounts[1]) / 1_000


@pytest.mark.parametrize(("key", "side"), pair_in_turn([WETH_POOL, NATIVE_POOL], [0, 1]))
def test_one_token_is_swapped_and_minted_in_one_step(stage: Stage, key: PoolKey, side: int) -> None:
    pool = stage.pool(key)
    one = (key.currency0, key.currency1)[side]
    amount = 9_000 * 10**6 if one == USDC.address else 3 * ETHER
    capital = (amount, 0) if side == 0 else (0, amount)
    band = around(pool, 25, 25)
    plan = minting.create(stage.terms(), pool, band, *capital)
    last = plan.steps[-1]
    assert last.kind is StepKind.SWAP_AND_MINT
    assert (last.value > 0) == (one == NATIVE)
    new_id = stage.next_id()
    gained = stage.run(plan.steps, key)
    minted_as_asked(stage, new_id, band, 1)
    other = (key.currency0, key.currency1)[1 - side]
    assert -amount <= gained[one] < 0 <= gained[other]


def test_ether_is_wrapped_first_for_a_pool_of_its_wrapper(stage: Stage) -> None:
    stage.do(WETH.address, calldata.call("transfer(address,uint256)", OTHERS, stage.balance(WETH.address)))
    pool = stage.pool(WETH_POOL)
    capital = (2 * ETHER, 0) if WETH_POOL.currency0 == WETH.address else (0, 2 * ETHER)
    with pytest.raises(Refused, match=r"\b0 WETH"):
        minting.create(stage.terms(), pool, around(pool, 20, 20), *capital)
    plan = minting.create(stage.terms(), pool, around(pool, 20, 20), *capital, brings_ether=True)
    assert plan.steps[0].kind is StepKind.WRAP
    gained = stage.run(plan.steps, WETH_POOL)
    assert -2 * ETHER <= gained[NATIVE] < -ETHER
    native = stage.pool(NATIVE_POOL)
    with pytest.raises(Refused, match="wraps"):
        minting.create(stage.terms(), native, around(native, 5, 5), ETHER, 0, brings_ether=True)


# -- add, remove, collect, close


@pytest.mark.parametrize("held", [EDGE, INSIDE])
def test_adding_takes_only_what_the_fees_do_not_pay(stage: Stage, held: int) -> None:
    position = stage.position(held)
    key = position.pool.key
    amounts = [3 * (position.amount0 + position.fees0), 3 * (position.amount1 + position.fees1)]
    plan = positions.add(stage.terms(), position, *amounts)
    gained = stage.run(plan.steps, key, position)
    grown = stage.position(held)
    assert grown.liquidity > 3 * position.liquidity
    assert (grown.fees0, grown.fees1) == (0, 0)
    for gain, old, new in (
        (gained[key.currency0], position.amount0 + position.fees0, grown.amount0),
        (gained[key.currency1], position.amount1 + position.fees1, grown.amount1),
    ):
        assert 0 <= old - new - gain <= 2  # what is added rounds up twice, what is held rounds down


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("key", [WETH_POOL, NATIVE_POOL], ids=["weth", "native"])
def test_fees_larger_than_the_addition_come_home(stage: Stage, key: PoolKey) -> None:
    fat = fee_heavy(stage, key)
    stage.forget_allowances()
    plan = positions.add(stage.terms(), fat, fat.fees0 // 10, fat.fees1 // 10)
    (step,) = plan.steps
    assert (step.kind, step.value, step.most_out) == (StepKind.INCREASE, 0, ())
    gained = stage.run(plan.steps, key, fat)
    assert gained[key.currency0] >= fat.fees0 * 9 // 10
    assert gained[key.currency1] >= fat.fees1 * 9 // 10
    assert stage.position(fat.id).liquidity > fat.liquidity


@pytest.mark.parametrize("held", [EDGE, INSIDE], ids=["weth", "native"])
def test_fees_go_back_into_their_position(stage: Stage, held: int) -> None:
    position = stage.position(held)
    key = position.pool.key
    plan = positions.compound(stage.terms(), position)
    (step,) = plan.steps
    assert (step.value, step.most_out) == (0, ())
    gained = stage.run(plan.steps, key, position)
    grown, left = stage.position(held), plan.leftover
    assert left is not None
    assert grown.liquidity > position.liquidity
    assert (grown.fees0, grown.fees1) == (0, 0)
    for gain, planned in ((gained[key.currency0], left.amount0), (gained[key.currency1], left.amount1)):
        assert abs(gain - planned) <= max(10, planned // 10**6)
    # Once the fees are gone there is no credit, and the wallet is not asked for any.
    assert stage.reverts(step)


def thousand_each(key: PoolKey) -> tuple[int, int]:
    """About a thousand dollars' worth of either token."""
    amounts = {NATIVE: ETHER // 3, WETH.address: ETHER // 3, USDC.address: 1_000 * 10**6}
    return amounts[key.currency0], amounts[key.currency1]


def fee_heavy(stage: Stage, key: PoolKey) -> LpPosition:
    """A narrow position that has earned more than it holds of one token."""
    pool = stage.pool(key)
    band = around(pool, 8, 9) if key == WETH_POOL else around(pool, 2, 3)
    stage.run(minting.create(stage.terms(), pool, band, *thousand_each(key)).steps, key)
    thin = stage.position(stage.next_id() - 1)
    stage.trade(key, 2)
    # Then the price goes to the edge, where hardly anything of token0 is left beside the fees.
    stage.push(key, sqrt_price_at_tick(band.upper) - 10**6)
    fat = stage.position(thin.id)
    assert fat.fees0 > fat.amount0
    return fat


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("key", [WETH_POOL, NATIVE_POOL], ids=["weth", "native"])
def test_a_fee_heavy_position_moves_with_its_fees(stage: Stage, key: PoolKey) -> None:
    fat = fee_heavy(stage, key)
    stage.forget_allowances()
    two_steps(stage, fat, around(fat.pool, 20, 20))


@pytest.mark.parametrize("held", [EDGE, INSIDE])
def test_collecting_pays_exactly_the_fees(stage: Stage, held: int) -> None:
    position = stage.position(held)
    key = position.pool.key
    gained = stage.run(positions.collect(stage.terms(), position).steps, key, position)
    assert (gained[key.currency0], gained[key.currency1]) == (position.fees0, position.fees1) != (0, 0)
    assert stage.position(held).liquidity == position.liquidity


@pytest.mark.parametrize(
    ("held", "share"), [(EDGE, Fraction(1, 2)), (INSIDE, Fraction(1, 1000)), (INSIDE, Fraction(1))]
)
def test_removing_takes_a_share_and_all_fees(stage: Stage, held: int, share: Fraction) -> None:
    position = stage.position(held)
    key = position.pool.key
    gained = stage.run(positions.remove(stage.terms(), position, share).steps, key, position)
    taken = int(position.liquidity * share)
    price = position.pool.sqrt_price_x96
    amount0, amount1 = amounts_for_liquidity(price, *position.range.edges_x96, taken, round_up=False)
    assert gained[key.currency0] == amount0 + position.fees0
    assert gained[key.currency1] == amount1 + position.fees1
    if share == 1:
        assert stage.gone(held)
    else:
        assert stage.position(held).liquidity == position.liquidity - taken


@pytest.mark.parametrize("above", [False, True])
def test_closing_out_of_range_takes_everything_home(stage: Stage, above: bool) -> None:
    outside(stage, NATIVE_POOL, stage.position(INSIDE).range, above=above)
    position = stage.position(INSIDE)
    gained = stage.run(positions.close(stage.terms(), position).steps, NATIVE_POOL, position)
    assert (gained[NATIVE], gained[USDC.address]) == burn_proceeds(position)
    assert stage.gone(INSIDE)


# -- a token like USDT


def tether_pool(stage: Stage) -> tuple[PoolKey, Token]:
    """A pool of that token and USDC with somebody's liquidity in it, and some of it in the wallet."""
    init = assemble(f"{len(TETHER_LIKE)} DUP1 @code 0 CODECOPY 0 RETURN code:")[:-1]
    contract = stage.do(None, init + TETHER_LIKE, sender=OTHERS)["contractAddress"]
    token = Token(Address(contract), "USDT", 6)
    stage.tokens[token.address] = token
    low, high = sorted((token.address, USDC.address), key=lambda address: int(address, 16))
    key = PoolKey(Address(low), Address(high), Pips(100), 1)
    stage.more_keys = (key,)
    for owner in (WALLET, OTHERS):
        stage.do(token.address, calldata.call("mint(address,uint256)", owner, 10**13), sender=OTHERS)
    at = DEPLOYMENT
    stage.do(token.address, calldata.call("approve(address,uint256)", at.permit2, 2**256 - 1), sender=OTHERS)
    for spender in (at.position_manager, at.universal_router):
        grant = "approve(address,address,uint160,uint48)"
        stage.do(at.permit2, calldata.call(grant, token.address, spender, 10**13, FOREVER), sender=OTHERS)
    stage.do(at.pool_manager, calldata.call(f"initialize({calldata.KEY},uint160)", calldata.key_tuple(key), 1 << 96))
    most = 10**13
    acts = [
        calldata.mint_position(key, -1000, 1000, 10**13, most, most, OTHERS),
        calldata.settle_pair(key.currency0, key.currency1),
    ]
    stage.do(at.position_manager, calldata.modify_liquidities(acts, FOREVER), sender=OTHERS)
    return key, token


@pytest.mark.soak
def test_a_pool_with_an_allowed_hook_takes_every_plan(stage: Stage) -> None:
    """A hook that only sets the fee, which starts at nothing: the pool's key has the sign for that in its place."""
    hook = Address("0x" + "ab" * 18 + "8000")
    key = replace(WETH_POOL, fee=Pips(0x800000), tick_spacing=60, hooks=hook)
    stage.more_keys = (key,)
    price, at = stage.pool(WETH_POOL).sqrt_price_x96, DEPLOYMENT
    stage.do(at.pool_manager, calldata.call(f"initialize({calldata.KEY},uint160)", calldata.key_tuple(key), price))
    band = around(stage.pool(key), 100, 100)
    acts = [
        calldata.mint_position(key, band.lower, band.upper, 10**16, 10**23, 10**23, OTHERS),
        calldata.settle_pair(key.currency0, key.currency1),
    ]
    stage.do(at.position_manager, calldata.modify_liquidities(acts, FOREVER), sender=OTHERS)
    pool, amounts = stage.pool(key), thousand_each(key)
    plan = minting.create(stage.terms(), pool, around(pool, 5, 5), *amounts)
    refuses = replace(stage.policy(plan.steps, key), hooks=frozenset())
    with pytest.raises(Refused, match="hook"):
        verify_step(plan.steps[-1], refuses)
    stage.run(plan.steps, key)
    held = stage.position(stage.next_id() - 1)
    assert held.pool.key == key
    stage.run(positions.add(stage.terms(), held, *amounts).steps, key, held)
    stage.push(key, sqrt_price_at_tick(held.range.upper + 120))
    two_steps(stage, stage.position(held.id), around(stage.pool(key), 20, 20))
    moved = stage.position(stage.next_id() - 1)
    stage.run(positions.close(stage.terms(), moved).steps, key, moved)


@pytest.mark.soak
def test_a_token_like_usdt_goes_through_every_plan(stage: Stage) -> None:
    key, token = tether_pool(stage)
    stage.forget_allowances()
    # A small allowance is left over from before: this token refuses to change it into another.
    stage.do(token.address, calldata.call("approve(address,uint256)", DEPLOYMENT.permit2, 5))
    pool = stage.pool(key)
    plan = minting.create(stage.terms(), pool, around(pool, 40, 60), 10**9, 10**9)
    resets = [step for step in plan.steps if step.to == token.address]
    assert len(resets) == 2
    assert stage.reverts(resets[1]), "or it is no token like USDT"
    stage.run(replan(stage, key), key)
    held = stage.next_id() - 1
    for zero_for_one in (True, False):
        stage.swap(key, zero_for_one, 10**10)
    position = stage.position(held)
    stage.run(positions.add(stage.terms(), position, 10**8, 10**8).steps, key, position)
    stage.swap(key, True, 5 * 10**10)
    position = stage.position(held)
    assert not position.in_range
    two_steps(stage, position, around(position.pool, 30, 30))
    position = stage.position(stage.next_id() - 1)
    stage.run(positions.remove(stage.terms(), position, Fraction(1, 3)).steps, key, position)
    position = stage.position(position.id)
    stage.run(positions.close(stage.terms(), position).steps, key, position)


def replan(stage: Stage, key: PoolKey) -> tuple[Step, ...]:
    pool = stage.pool(key)
    return minting.create(stage.terms(), pool, around(pool, 40, 60), 10**9, 10**9).steps


# -- the price moves between plan and execution

Make = Callable[[Stage], tuple[Step, ...]]


def plan_mint(stage: Stage) -> tuple[Step, ...]:
    pool = stage.pool(NATIVE_POOL)
    return minting.create(stage.terms(), pool, around(pool, 8, 8), 5 * ETHER, 15_000 * 10**6).steps


def plan_swap_and_mint_from_ether(stage: Stage) -> tuple[Step, ...]:
    pool = stage.pool(NATIVE_POOL)
    return minting.create(stage.terms(), pool, around(pool, 8, 8), 3 * ETHER, 0).steps


def plan_swap_and_mint_from_usdc(stage: Stage) -> tuple[Step, ...]:
    pool = stage.pool(NATIVE_POOL)
    return minting.create(stage.terms(), pool, around(pool, 8, 8), 0, 9_000 * 10**6).steps


def plan_wide_swap_and_mint(stage: Stage) -> tuple[Step, ...]:
    """Nearly the whole curve, where the mint's need moves hardly more than the price itself."""
    pool = stage.pool(NATIVE_POOL)
    return minting.create(stage.terms(), pool, around(pool, 9_000, 9_000), 3 * ETHER, 0).steps


def plan_rebalance(stage: Stage) -> tuple[Step, ...]:
    position = stage.position(INSIDE)
    return positions.rebalance(stage.terms(), position, needs_no_swap(position)).steps


def plan_increase(stage: Stage) -> tuple[Step, ...]:
    position = stage.position(INSIDE)
    return positions.add(stage.terms(), position, position.amount0, position.amount1).steps


def plan_compound(stage: Stage) -> tuple[Step, ...]:
    return positions.compound(stage.terms(), stage.position(INSIDE)).steps


def plan_decrease(stage: Stage) -> tuple[Step, ...]:
    return positions.remove(stage.terms(), stage.position(INSIDE), Fraction(1, 2)).steps


def plan_close(stage: Stage) -> tuple[Step, ...]:
    return positions.close(stage.terms(), stage.position(INSIDE)).steps


MAKERS: Mapping[str, Make] = {
    "mint": plan_mint,
    "swap ether": plan_swap_and_mint_from_ether,
    "swap usdc": plan_swap_and_mint_from_usdc,
    "swap and mint wide": plan_wide_swap_and_mint,
    "rebalance": plan_rebalance,
    "increase": plan_increase,
    "compound": plan_compound,
    "decrease": plan_decrease,
    "close": plan_close,
}


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("name", MAKERS)
def test_a_move_inside_the_bounds_goes_through_and_one_beyond_reverts(stage: Stage, name: str) -> None:
    *first, last = MAKERS[name](stage)
    for step in first:
        stage.send(step)
    before = stage.node.snapshot()
    for bps, reverts in ((48, False), (-48, False), (53, True), (-53, True)):
        stage.nudge(NATIVE_POOL, bps)
        if reverts:
            assert stage.reverts(last), bps
        else:
            stage.send(last)
            stage.check_nothing_stays()
        assert stage.node.revert(before)
        before = stage.node.snapshot()


def test_a_plan_is_too_late_after_its_deadline(stage: Stage) -> None:
    (step,) = plan_close(stage)
    assert step.deadline is not None
    stage.node.set_next_timestamp(step.deadline + 1)
    assert stage.reverts(step)


def test_minima_of_a_burn_are_the_worst_price_in_bounds(stage: Stage) -> None:
    """And nothing more: they count principal, never fees."""
    position = stage.position(INSIDE)
    least = least_principal(position, position.liquidity, 50)
    low, high = price_bounds(position.pool.sqrt_price_x96, 50)
    stage.push(NATIVE_POOL, high)
    assert stage.position(INSIDE).amount0 == least[0]
    stage.push(NATIVE_POOL, low)
    assert stage.position(INSIDE).amount1 == least[1]
    assert tick_at_sqrt_price(low) < position.pool.tick
