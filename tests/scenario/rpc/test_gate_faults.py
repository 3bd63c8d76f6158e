"""Plans on the real contracts with tokens, hooks, wallets and nodes gone wrong: refused by name, or done once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_abi.abi import encode

from tests.wire.stage_plans import RANGE, Plans, id_of
from tests.wire.tokens import ANSWER, OF_TWO, TETHER_LIKE, assemble, entry
from zuno.amm.model import PoolKey, Range
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE, format_units
from zuno.kernel.units import Address, HexId, Tick
from zuno.lp.execute.draft import read_onchain_state
from zuno.lp.model.plan import PlanState, StepKind, StepState
from zuno.lp.model.plan_events import Action
from zuno.lp.plan import calldata
from zuno_devnet.keys import dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.rpc import Rpc

ETHER = 10**18
SOMEBODY = Address("0x" + "77" * 20)
DEAF_HOOK = Address("0x" + "44" * 18 + "0200")
"""Asked before liquidity is removed, and has no code to answer with."""


@pytest.fixture(scope="module")
def one_stage(new_stage: Any) -> Any:
    """Its time passes with its blocks, not with ours."""
    stage = new_stage()
    stage.node = DevnetNode(stage.chain, clock=lambda: stage.chain.head.timestamp + 12)
    return stage


@pytest.fixture
def stage(one_stage: Any) -> Iterator[Any]:
    """One world for the whole file, as it was at first for every test."""
    info, first = one_stage.info, one_stage.node.snapshot()
    yield one_stage
    one_stage.info = info
    one_stage.node.set_automine(True)
    assert one_stage.node.revert(first)


@pytest.fixture
async def plans(desk: Any, stage: Any, tmp_path: Path) -> Plans:
    return Plans(stage, desk.chain(await desk.node()), tmp_path)


# -- ether


@pytest.mark.soak
async def test_a_position_of_ether_through_its_whole_life(plans: Plans, stage: Any) -> None:
    """Opened, added to, collected from, moved twice, halved and closed: ether is sent, swept home and never left."""
    key = stage.native_pool
    opened = await plans.done(await plans.creation(key, 2 * ETHER, 4_000 * 10**6))
    assert opened.over is not None
    token_id = opened.over.new_position_id or 0
    assert opened.steps[-1].step.value > 0
    assert (await plans.position(token_id)).range == RANGE
    assert plans.left_behind(key) == [0] * 4

    added = await plans.done(await plans.told(Action.ADD, token_id, capital0=ETHER, capital1=2_000 * 10**6))
    assert added.steps[-1].step.value > 0
    stage.trade(key, 3)
    await plans.done(await plans.told(Action.COLLECT, token_id))
    stage.trade(key, 1)

    wide = Range(Tick(-202_020), Tick(-198_960))
    moved = await plans.done(await plans.told(Action.REBALANCE, token_id, range=wide))
    assert moved.over is not None
    token_id = moved.over.new_position_id or 0
    assert (await plans.position(token_id)).range == wide
    assert plans.left_behind(key) == [0] * 4

    await plans.done(await plans.told(Action.REMOVE, token_id, share=Fraction(1, 2)))
    await plans.done(await plans.told(Action.CLOSE, token_id))
    assert plans.left_behind(key) == [0] * 4


@pytest.mark.soak
async def test_a_move_of_ether_with_a_swap_spends_what_the_burn_paid_and_no_more(plans: Plans, stage: Any) -> None:
    """Out of range it is all dollars: half of them become ether, which gas is paid from as well."""
    key = stage.native_pool
    (token_id,) = stage.mint(key, -201_000, -200_820, 10**15)
    position = await plans.position(token_id)
    assert not position.range.lower <= position.pool.tick < position.range.upper
    ether, dollars = stage.balance(NATIVE), stage.balance(stage.usdc)
    book = await plans.done(await plans.told(Action.REBALANCE, token_id, range=RANGE))
    assert [step.step.kind for step in book.steps] == [StepKind.BURN, StepKind.SWAP_AND_MINT]
    gas = sum(step.mined.cost for step in book.steps if step.mined is not None)
    assert gas > 0
    assert stage.balance(NATIVE) >= ether - gas, "the wallet's own ether paid for gas alone"
    assert stage.balance(stage.usdc) >= dollars
    assert plans.left_behind(key) == [0] * 4


@pytest.mark.soak
async def test_a_move_from_ether_to_dollars_counts_the_gas_back(plans: Plans, stage: Any) -> None:
    """Above the price it is all ether: what the burn paid is known only when gas is counted back."""
    key = stage.native_pool
    (token_id,) = stage.mint(key, -199_980, -199_800, 10**15)
    book = await plans.done(await plans.told(Action.REBALANCE, token_id, range=RANGE))
    assert book.finishing is not None
    position = book.draft.position if book.draft is not None else None
    assert position is not None
    paid = {flow.currency: flow.amount for flow in book.finishing.paid}
    assert paid[NATIVE] == position.amount0 + position.fees0, "to the last wei"
    assert plans.left_behind(key) == [0] * 4


@pytest.mark.soak
async def test_a_position_that_earned_more_than_it_holds(plans: Plans, stage: Any) -> None:
    """Fees above the principal: they are part of what a move has to place and a close brings home."""
    (token_id,) = stage.mint(stage.weth_pool, -200_320, -200_300, 10**11)
    stage.trade(stage.weth_pool, 30)
    position = await plans.position(token_id)
    before = stage.balance(stage.usdc), stage.balance(stage.weth)
    await plans.done(await plans.told(Action.CLOSE, token_id))
    key = position.pool.key
    paid = {key.currency0: position.amount0 + position.fees0, key.currency1: position.amount1 + position.fees1}
    assert stage.balance(stage.usdc) - before[0] == paid[stage.usdc]
    assert stage.balance(stage.weth) - before[1] == paid[stage.weth]


# -- tokens as they should not be


def charging_on_the_way_out() -> bytes:
    """Takes what it is sent in full, and hands out a sixty-fourth less than it is told to."""
    take = "DUP3 SLOAD DUP2 DUP2 LT @fail JUMPI DUP2 SWAP1 SUB DUP4 SSTORE"
    return assemble(
        f"""
        0 CALLDATALOAD 224 SHR
        {entry("balanceOf(address)", "balance")}
        {entry("allowance(address,address)", "allowance")}
        {entry("approve(address,uint256)", "approve")}
        {entry("transfer(address,uint256)", "transfer")}
        {entry("transferFrom(address,address,uint256)", "from")}
        {entry("mint(address,uint256)", "mint")}
        fail: 0 0 REVERT
        balance: 4 CALLDATALOAD SLOAD {ANSWER}
        allowance: 4 CALLDATALOAD 0 MSTORE 36 CALLDATALOAD 32 MSTORE {OF_TWO} SLOAD {ANSWER}
        approve: CALLER 0 MSTORE 4 CALLDATALOAD 32 MSTORE {OF_TWO} 36 CALLDATALOAD SWAP1 SSTORE STOP
        mint: 4 CALLDATALOAD SLOAD 36 CALLDATALOAD ADD 4 CALLDATALOAD SSTORE STOP
        transfer: CALLER 4 CALLDATALOAD 36 CALLDATALOAD {take}
            DUP1 6 SHR SWAP1 SUB DUP2 SLOAD ADD SWAP1 SSTORE STOP
        from: 4 CALLDATALOAD 36 CALLDATALOAD 68 CALLDATALOAD {take} DUP2 SLOAD ADD SWAP1 SSTORE STOP
        """
    )


def deployed(stage: Any, code: bytes) -> Address:
    size = len(code).to_bytes(2, "big")
    made: Address = stage.create(b"\x61" + size + b"\x80\x60\x0a\x5f\x39\x5f\xf3" + code)
    return made


def priced_like_a_dollar(stage: Any, token: Address) -> PoolKey:
    """A pool of the token and dollars, one for one in base units."""
    key: PoolKey = stage.key(token, stage.usdc, 3000, 60)
    stage.initialize(key, 1 << 96)
    return key


AROUND_ONE = Range(Tick(-6_000), Tick(6_000))


@pytest.mark.soak
async def test_a_token_like_tether_is_allowed_by_way_of_nothing(plans: Plans, stage: Any) -> None:
    token = deployed(stage, TETHER_LIKE)
    key, permit2 = priced_like_a_dollar(stage, token), stage.info.deployment.permit2
    stage.send("wallet", token, calldata.call("mint(address,uint256)", stage.wallet, 10**12))
    stage.send("wallet", token, calldata.call("approve(address,uint256)", permit2, 5))
    book = await plans.done(await plans.creation(key, 10**9, 10**9, AROUND_ONE))
    approvals = [step.step for step in book.steps if step.step.to == token]
    assert [step.kind for step in approvals] == [StepKind.APPROVE_PERMIT2] * 2
    assert int.from_bytes(approvals[0].data[-32:], "big") == 0
    assert book.over is not None
    token_id = book.over.new_position_id or 0
    await plans.done(await plans.told(Action.ADD, token_id, capital0=10**8, capital1=10**8))
    stage.swap(key, token == key.currency1, 10**7)
    await plans.done(await plans.told(Action.CLOSE, token_id))
    assert plans.left_behind(key) == [0] * 4


def charging_token(stage: Any, fee: int) -> Address:
    """v4-periphery's token whose transferFrom delivers less than was sent."""
    path = stage.artifacts.scope / "v4-periphery/foundry-out/MockFeeOnTransfer.sol/MockFOT.json"
    init = bytes.fromhex(json.loads(path.read_text())["bytecode"]["object"].removeprefix("0x"))
    manager, permit2 = stage.info.deployment.position_manager, stage.info.deployment.permit2
    token: Address = stage.create(init + encode(("address",), (manager,)))
    stage.send("wallet", token, calldata.call("mint(address,uint256)", stage.wallet, 10**24))
    stage.send("wallet", token, calldata.call("approve(address,uint256)", permit2, 2**256 - 1))
    grant = calldata.call("approve(address,address,uint160,uint48)", token, manager, 2**160 - 1, 2**48 - 1)
    stage.send("wallet", permit2, grant)
    stage.send("wallet", token, calldata.call("setFee(uint256)", fee))
    return token


async def test_a_token_that_charges_on_transfer_is_refused_when_it_is_tried(plans: Plans, stage: Any) -> None:
    key = priced_like_a_dollar(stage, charging_token(stage, 100))
    before = stage.balance(stage.usdc)
    told = await plans.creation(key, 10**9, 10**9, AROUND_ONE)
    with pytest.raises(Refused, match=r"\(mint\).*CurrencyNotSettled"):
        await plans.draft(told)
    assert stage.balance(stage.usdc) == before


async def test_a_token_that_begins_to_charge_after_the_approval_is_refused(plans: Plans, stage: Any) -> None:
    token = charging_token(stage, 0)
    key = priced_like_a_dollar(stage, token)
    plan_id = await plans.approved(await plans.creation(key, 10**9, 10**9, AROUND_ONE))
    stage.send("wallet", token, calldata.call("setFee(uint256)", 100))
    with pytest.raises(Refused, match="CurrencyNotSettled"):
        await plans.apply(plan_id)
    book = await plans.book(plan_id)
    assert (book.state, book.signed_anything) == (PlanState.APPROVED, False)


@pytest.mark.soak
async def test_a_token_that_keeps_a_part_of_what_it_hands_out(plans: Plans, stage: Any) -> None:
    """Nothing reverts; the wallet would just get less than the approval could promise."""
    token = deployed(stage, charging_on_the_way_out())
    key = priced_like_a_dollar(stage, token)
    stage.send("wallet", token, calldata.call("mint(address,uint256)", stage.wallet, 10**12))
    opened = await plans.done(await plans.creation(key, 10**9, 10**9, AROUND_ONE))
    assert opened.over is not None
    held = await plans.position(opened.over.new_position_id or 0)
    told = await plans.told(Action.CLOSE, held.id)
    amount = held.amount0 if token == key.currency0 else held.amount1
    tokens = {held.pool.token0.address: held.pool.token0, held.pool.token1.address: held.pool.token1}
    change = re.escape(format_units(amount - (amount >> 6), tokens[token].decimals))
    with pytest.raises(Refused, match=rf" {change} .*bound"):
        await plans.draft(told)


# -- hooks


async def test_a_hook_nobody_looked_at_is_named_and_not_touched(plans: Plans, stage: Any) -> None:
    key = stage.key(stage.weth, stage.usdc, 500, 10, DEAF_HOOK)
    stage.initialize(key)
    (token_id,) = stage.mint(key, -201_000, -199_980, 10**15)
    told = await plans.told(Action.CLOSE, token_id)
    with pytest.raises(Refused, match=f"hook {DEAF_HOOK}"):
        await plans.draft(told)
    allowing = replace(plans.hands.limits, hooks=frozenset({DEAF_HOOK}))
    with pytest.raises(Refused, match=r"\(burn\).*InvalidHookResponse"):
        await plans.draft(told, limits=allowing)


async def test_a_hook_that_is_no_longer_allowed_is_refused_at_the_last_look(plans: Plans, stage: Any) -> None:
    """The owner takes a hook off the list after the approval: nothing is signed."""
    hook = Address("0x" + "44" * 18 + "0200")
    key = stage.key(stage.weth, stage.usdc, 500, 10, hook)
    stage.initialize(key)
    allowing = replace(plans.hands.limits, hooks=frozenset({hook}))
    plan_id = await plans.approved(await plans.creation(key, ETHER, 10**9), limits=allowing)
    with pytest.raises(Refused, match=f"hook {hook}"):
        await plans.apply(plan_id)
    assert not (await plans.book(plan_id)).signed_anything
    book = await plans.apply(plan_id, limits=allowing)
    assert book.state is PlanState.CONFIRMED


# -- wallets


async def test_too_little_ether_for_gas_is_refused_before_anything_is_signed(plans: Plans, stage: Any) -> None:
    (token_id,) = stage.mint(stage.weth_pool, -201_000, -199_980, 10**15)
    plan_id = await plans.approved(await plans.told(Action.CLOSE, token_id))
    tip, base = 10**9, stage.chain.next_base_fee
    everything = stage.balance(NATIVE) - 21_000 * (2 * base + tip)
    tx = stage.chain.sign(dev_key("wallet"), to=bytes.fromhex(SOMEBODY[2:]), value=everything, gas=21_000, tip=tip)
    stage.chain.apply_block([tx], stage.chain.head.timestamp + 12)
    left = stage.balance(NATIVE)
    assert 0 < left < 10**15
    with pytest.raises(Refused, match=rf"{format_units(left, 18)} ETH.* 0\.\d+ ETH"):
        await plans.apply(plan_id)
    assert (await plans.book(plan_id)).state is PlanState.APPROVED, "not even the intent is on record"


async def test_a_position_that_was_given_away_after_the_approval(plans: Plans, stage: Any) -> None:
    (token_id,) = stage.mint(stage.weth_pool, -201_000, -199_980, 10**15)
    plan_id = await plans.approved(await plans.told(Action.CLOSE, token_id))
    manager = stage.info.deployment.position_manager
    give = calldata.call("transferFrom(address,address,uint256)", stage.wallet, stage.trader, token_id)
    stage.send("wallet", manager, give)
    with pytest.raises(Refused, match=f"Position {token_id} .*{stage.trader}"):
        await plans.apply(plan_id)
    assert not (await plans.book(plan_id)).signed_anything


async def test_a_position_that_was_burned_or_changed_after_the_approval(plans: Plans, stage: Any) -> None:
    one, other = stage.mint(stage.weth_pool, -201_000, -199_980, 10**15, count=2)
    burned = await plans.approved(await plans.told(Action.CLOSE, one))
    changed = await plans.approved(await plans.told(Action.CLOSE, other))
    stage.burn(stage.weth_pool, one)
    stage.modify([stage.changing(0x01, other, 10**14), *stage.closing(stage.weth_pool)])
    with pytest.raises(Refused, match=f"{burned}.*changed.*{one}"):
        await plans.apply(burned)
    with pytest.raises(Refused, match=rf"{9 * 10**14}.*{10**15}"):
        await plans.apply(changed)


# -- nodes


def silent_from(method: str, times: int, *, taken: bool, answer: Callable[[bytes], bytes], desk: Any) -> Any:
    """A node that stops answering at the n-th call of a method; `taken`: it does as asked, and says nothing."""
    state = {"seen": 0, "silent": False}

    def plan(number: int, asked: list[dict[str, Any]]) -> Any:
        if state["silent"]:
            return desk.trouble("down")
        state["seen"] += sum(one["method"] == method for one in asked)
        if state["seen"] >= times:
            state["silent"] = True
            if taken:
                answer(json.dumps(asked).encode())
            return desk.trouble("down")
        return None

    return plan


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("taken", [False, True], ids=["before the send", "after the send"])
async def test_a_node_that_falls_silent_at_the_send(
    plans: Plans, desk: Any, stage: Any, tmp_path: Path, taken: bool
) -> None:
    (token_id,) = stage.mint(stage.weth_pool, -201_000, -199_980, 10**15)
    plan_id = await plans.approved(await plans.told(Action.CLOSE, token_id))
    honest, answer = plans.hands, Rpc(stage.node).answer
    plan = silent_from("eth_sendRawTransaction", 1, taken=taken, answer=answer, desk=desk)
    plans.through(desk.chain(await desk.node(plan), cache=tmp_path / "silent"))
    with pytest.raises(Unavailable):
        await plans.apply(plan_id)
    book = await plans.book(plan_id)
    assert (book.state, book.steps[0].state) == (PlanState.APPLYING, StepState.SIGNED)
    plans.hands = honest
    nonce = stage.chain.nonce(bytes.fromhex(stage.wallet[2:]))
    book = await plans.apply(plan_id)
    assert book.state is PlanState.CONFIRMED
    assert len(book.steps[0].signed) == 1
    assert stage.chain.nonce(bytes.fromhex(stage.wallet[2:])) == nonce + (0 if taken else 1)
    assert (await plans.hands.chain.positions([token_id])).missing


async def test_a_node_that_cannot_simulate_lets_us_compute(plans: Plans, desk: Any, stage: Any, tmp_path: Path) -> None:
    def without(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] != "eth_simulateV1":
            return reply
        return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "does not exist"}}

    tokens = stage.mint(stage.weth_pool, -201_000, -199_980, 10**15, count=2)
    stage.trade(stage.weth_pool)
    told = await plans.told(Action.CLOSE, tokens[0])
    simulated = await plans.draft(told)
    plans.through(desk.chain(await desk.bent(without), cache=tmp_path / "without"))
    computed = await plans.draft(told)
    assert (simulated.how, computed.how) == ("simulated", "computed")
    for currency in (stage.weth, stage.usdc):
        assert computed.changes[currency] == simulated.changes[currency]
    assert computed.sqrt_price_after_x96 is None
    await plans.done(told)


async def test_a_node_that_cannot_simulate_still_tries_the_first_step(
    plans: Plans, desk: Any, stage: Any, tmp_path: Path
) -> None:
    def without(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] != "eth_simulateV1":
            return reply
        return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "does not exist"}}

    key = stage.key(stage.weth, stage.usdc, 500, 10, DEAF_HOOK)
    stage.initialize(key)
    (token_id,) = stage.mint(key, -201_000, -199_980, 10**15)
    plans.through(desk.chain(await desk.bent(without), cache=tmp_path / "without"))
    with pytest.raises(Refused, match=r"\(burn\).*InvalidHookResponse"):
        await plans.draft(
            await plans.told(Action.CLOSE, token_id), limits=replace(plans.hands.limits, hooks=frozenset({DEAF_HOOK}))
        )


async def test_a_look_is_of_one_block(plans: Plans, stage: Any) -> None:
    (token_id,) = stage.mint(stage.weth_pool, -201_000, -199_980, 10**15)
    position = await plans.position(token_id)
    sight = await read_onchain_state(plans.hands, HexId(position.pool.id), token_id)
    assert sight.wallet_state.block == sight.pool.block
    with pytest.raises(Refused, match=f"position {token_id}.*{position.pool.id}"):
        await read_onchain_state(plans.hands, id_of(stage.native_pool), token_id)
