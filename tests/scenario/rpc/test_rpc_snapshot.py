"""Snapshots on the real contracts: one block, few requests, and fees that a burn really pays."""

from __future__ import annotations

from typing import Any

import pytest

from zuno.adapters.chain.rpc import RpcPolicy
from zuno.amm.model import Block
from zuno.kernel.text import NATIVE
from zuno.kernel.units import HexId, Seconds
from zuno.lp.plan import calldata

LIQUIDITY = 10**16


async def test_fees_and_principal_are_what_a_burn_pays_to_the_wei(desk: Any) -> None:
    stage = desk.stage
    tokens = {
        stage.mint(stage.native_pool, -201_000, -200_040, LIQUIDITY)[0]: stage.native_pool,
        stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)[0]: stage.weth_pool,
        stage.mint(stage.native_pool, -199_800, -199_200, LIQUIDITY)[0]: stage.native_pool,
    }
    for key in (stage.native_pool, stage.weth_pool):
        stage.trade(key, times=3)
    chain = desk.chain(await desk.node())
    snapshot = await chain.positions(list(tokens))
    assert not snapshot.missing
    assert any(position.fees0 for position in snapshot.positions)
    for position in snapshot.positions:
        key = tokens[position.id]
        before = [stage.balance(currency) for currency in (key.currency0, key.currency1)]
        receipt = stage.burn(key, position.id)
        after = [stage.balance(currency) for currency in (key.currency0, key.currency1)]
        gas = receipt.gas_used * receipt.gas_price if key.currency0 == NATIVE else 0
        assert after[0] - before[0] + gas == position.amount0 + position.fees0
        assert after[1] - before[1] == position.amount1 + position.fees1


async def test_fee_growth_that_wrapped_round_still_gives_the_right_fees(desk: Any) -> None:
    """Below the price, growth inside is "upper minus lower": an old upper tick and a new lower one make it negative."""
    stage = desk.stage
    stage.mint(stage.weth_pool, -200_600, -200_400, LIQUIDITY)
    stage.trade(stage.weth_pool, times=2)
    (token,) = stage.mint(stage.weth_pool, -200_800, -200_400, LIQUIDITY)
    stage.swap(stage.weth_pool, True, 7 * 10**18)  # down into the range
    stage.trade(stage.weth_pool, times=2)
    chain = desk.chain(await desk.node())
    (position,) = (await chain.positions([token])).positions
    standing = (await chain.history(token, None)).end
    assert standing is not None
    assert standing.fee_growth_inside0_last_x128 > 2**255  # the premise: it did wrap
    assert position.in_range
    assert position.fees0 > 0
    assert position.fees1 > 0
    before = [stage.balance(currency) for currency in (stage.weth, stage.usdc)]
    stage.burn(stage.weth_pool, token)
    after = [stage.balance(currency) for currency in (stage.weth, stage.usdc)]
    gained = {stage.weth: after[0] - before[0], stage.usdc: after[1] - before[1]}
    assert gained[position.pool.key.currency0] == position.amount0 + position.fees0
    assert gained[position.pool.key.currency1] == position.amount1 + position.fees1


async def test_order_duplicates_and_absent_ids(desk: Any) -> None:
    stage = desk.stage
    one, two, gone = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY, count=3)
    stage.burn(stage.weth_pool, gone)
    chain = desk.chain(await desk.node())
    snapshot = await chain.positions([two, gone, one, two, 10**9, 0, -3])
    assert [position.id for position in snapshot.positions] == [two, one]
    assert [missing.id for missing in snapshot.missing] == [gone, 10**9, 0, -3]
    assert snapshot.block.number == stage.chain.head.number
    assert {position.block for position in snapshot.positions} == {snapshot.block}


async def test_every_read_is_pinned_to_the_one_block(desk: Any) -> None:
    """The chain moves on after every answer; the snapshot does not."""
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)
    still = await desk.chain(await desk.node(), cache=desk.cache / "still").positions([token])

    def restless(number: int, requests: list[dict[str, Any]]) -> None:
        if requests[0]["method"] == "eth_call":
            stage.swap(stage.weth_pool, True, 10**18)

    moving = await desk.chain(await desk.node(restless)).positions([token])
    assert stage.chain.head.number > moving.block.number
    assert moving == still


async def test_pins_by_number_where_hashes_are_not_understood(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)

    def old_fashioned(number: int, requests: list[dict[str, Any]]) -> Any:
        if requests[0]["method"] == "eth_call" and isinstance(requests[0]["params"][1], dict):
            error = {"code": -32602, "message": "invalid argument 1: cannot unmarshal object"}
            return desk.reply(requests[0], error=error)
        return None

    node = await desk.node(old_fashioned)
    snapshot = await desk.chain(node).positions([token])
    assert [position.id for position in snapshot.positions] == [token]
    calls = [body[0] for body in node.seen if body[0]["method"] == "eth_call"]
    assert calls[-1]["params"][1] == hex(snapshot.block.number)


async def test_a_block_that_vanishes_is_read_anew_not_mixed(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)
    stage.swap(stage.weth_pool, True, 10**18)
    calls = 0

    def reorganising(number: int, requests: list[dict[str, Any]]) -> None:
        nonlocal calls
        if requests[0]["method"] == "eth_call":
            calls += 1
            if calls == 2:  # between the deed and the state
                stage.node.reorg(1)

    snapshot = await desk.chain(await desk.node(reorganising)).positions([token])
    assert snapshot.block == _head(stage)
    assert snapshot == await desk.chain(await desk.node(), cache=desk.cache / "other").positions([token])


async def test_a_subscribed_position_says_so_and_a_transfer_is_noticed(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)
    node = await desk.node()
    chain = desk.chain(node)
    assert not (await chain.positions([token])).positions[0].subscribed
    manager = stage.info.deployment.position_manager
    stage.send("wallet", manager, calldata.call("subscribe(uint256,address,bytes)", token, "0x" + "11" * 20, b""))
    asked = len(node.seen)
    assert (await chain.positions([token])).positions[0].subscribed
    assert "eth_getLogs" in node.methods[asked:]  # noticed from events, not by reading all deeds again
    stage.send(
        "wallet", manager, calldata.call("transferFrom(address,address,uint256)", stage.wallet, stage.trader, token)
    )
    (position,) = (await chain.positions([token])).positions
    assert position.owner == stage.trader
    assert not position.subscribed
    fresh = await desk.chain(await desk.node(), cache=desk.cache / "fresh").positions([token])
    assert fresh.positions == (position,)


async def test_a_remembered_deed_does_not_outlive_a_burn_or_a_reorganisation(desk: Any) -> None:
    stage = desk.stage
    (kept,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)
    (token,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)
    chain = desk.chain(await desk.node())
    assert len((await chain.positions([kept, token])).positions) == 2
    # The mint is undone, and its id goes to another range.
    stage.chain.rewind(stage.chain.head.number - 1)
    assert stage.mint(stage.weth_pool, -201_000, -199_000, LIQUIDITY) == [token]
    stage.pass_time(12)  # the head is higher than before: only the old block's hash tells
    (position,) = (await chain.positions([token])).positions
    assert (position.range.lower, position.range.upper) == (-201_000, -199_000)
    stage.burn(stage.weth_pool, token)
    snapshot = await chain.positions([kept, token])
    assert [missing.id for missing in snapshot.missing] == [token]


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("count", [0, 200])
async def test_wallets_small_and_large(desk: Any, count: int) -> None:
    stage = desk.stage
    ids = [
        token
        for _ in range(count // 100)
        for token in stage.mint(stage.weth_pool, -200_500, -200_000, 10**12, count=100)
    ]
    node = await desk.node()
    chain = desk.chain(node, policy=RpcPolicy())
    owned = await chain.owned(stage.wallet)
    assert owned.ids == tuple(ids)
    assert (owned.balance, owned.complete, owned.note) == (count, True, "")
    snapshot = await chain.positions(owned.ids)
    assert len(snapshot.positions) == count
    assert not snapshot.missing
    assert len(node.seen) <= 12


def _head(stage: Any) -> Block:
    head = stage.chain.head
    return Block(head.number, HexId("0x" + head.hash.hex()), Seconds(head.timestamp))
