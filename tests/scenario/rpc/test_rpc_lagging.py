"""One address may be many machines, and a chain may be reorganised: nothing late or of another fork is passed on."""

from __future__ import annotations

from typing import Any

import pytest

from zuno.adapters.chain.rpc import RpcPolicy
from zuno.adapters.chain.rpc.positions import pool_id_of
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.plan import calldata

LIQUIDITY = 10**15
QUICK = RpcPolicy(timeout=60, rounds=1, cool_down=600)


def late_events(stage: Any, blocks: int = 1) -> Any:
    """Events as of an older head, from a machine that says nothing about it."""

    def bend(asked: Any, reply: Any) -> Any:
        if asked["method"] != "eth_getLogs" or "result" not in reply:
            return reply
        known = stage.chain.head.number - blocks
        return {**reply, "result": [log for log in reply["result"] if int(log["blockNumber"], 16) <= known]}

    return bend


def give_away(stage: Any, token: int) -> None:
    give = calldata.call("transferFrom(address,address,uint256)", stage.wallet, stage.trader, token)
    stage.send("wallet", stage.info.deployment.position_manager, give)


@pytest.mark.parametrize("looked_at", [250, 0], ids=["each", "as many as the owner has"])
async def test_late_events_cannot_hide_who_owns_a_position(
    desk: Any, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr("zuno.adapters.chain.rpc.positions.LOOKED_AT", looked_at)
    stage = desk.stage
    kept, given = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY, count=2)
    chain = desk.chain(await desk.bent(late_events(stage)))
    assert {position.owner for position in (await chain.positions([kept, given])).positions} == {stage.wallet}
    give_away(stage, given)
    # The first question does not ask for it, the second one is at the same block.
    assert (await chain.positions([kept])).positions[0].owner == stage.wallet
    assert (await chain.positions([given])).positions[0].owner == stage.trader
    stage.burn(stage.weth_pool, kept)
    assert [missing.id for missing in (await chain.positions([kept, given])).missing] == [kept]


async def test_late_events_cannot_hide_a_subscriber(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    chain = desk.chain(await desk.bent(late_events(stage)))
    assert not (await chain.positions([token])).positions[0].subscribed
    manager = stage.info.deployment.position_manager
    stage.send("wallet", manager, calldata.call("subscribe(uint256,address,bytes)", token, "0x" + "11" * 20, b""))
    assert (await chain.positions([token])).positions[0].subscribed
    stage.send("wallet", manager, calldata.call("unsubscribe(uint256)", token))
    assert not (await chain.positions([token])).positions[0].subscribed


async def test_late_events_make_a_wallet_incomplete_not_smaller(desk: Any) -> None:
    stage = desk.stage
    (old,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    (new,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    late = await desk.chain(await desk.bent(late_events(stage))).holdings(stage.wallet)
    assert (late.owned.ids, late.owned.balance, late.owned.complete) == ((old,), 2, False)
    assert "found 1 of 2" in late.owned.note
    found = await desk.chain(await desk.node()).holdings(stage.wallet)
    assert (found.owned.ids, found.owned.complete) == ((old, new), True)


@pytest.mark.parametrize("batches", [True, False])
async def test_a_machine_that_admits_to_be_behind_is_not_believed(desk: Any, batches: bool) -> None:
    """Its height comes in the same exchange as its events, and before them."""
    stage = desk.stage
    stage.trade(stage.weth_pool)

    def behind(asked: Any, reply: Any) -> Any:
        if asked["method"] == "eth_blockNumber":
            return {**reply, "result": hex(stage.chain.head.number - 1)}
        return reply

    def one_at_a_time(number: int, requests: list[dict[str, Any]]) -> Any:
        error = {"code": -32600, "message": "batch requests are not supported"}
        return desk.reply({"id": None}, error=error) if len(requests) > 1 else None

    node = await desk.bent(behind)
    node.plan = None if batches else one_at_a_time
    chain = desk.chain(node, policy=QUICK)
    with pytest.raises(Unavailable, match=r"\bblock \d"):
        await chain.price_path(pool_id_of(stage.weth_pool), Seconds(0))
    order = [method for method in node.methods if method in ("eth_blockNumber", "eth_getLogs")]
    # In one exchange, or its height alone: from a machine that is behind no events are wanted.
    assert order[-2:] == ["eth_blockNumber", "eth_getLogs" if batches else "eth_blockNumber"]
    assert any(len(body) == 2 for body in node.seen)
    honest = desk.chain(await desk.node(None if batches else one_at_a_time), policy=QUICK)
    assert await honest.price_path(pool_id_of(stage.weth_pool), Seconds(0))


async def test_late_swaps_are_not_the_pool_s_last_price(desk: Any) -> None:
    stage = desk.stage
    stage.trade(stage.weth_pool)
    stage.swap(stage.weth_pool, True, 10**17)
    chain = desk.chain(await desk.bent(late_events(stage)))
    with pytest.raises(Unavailable, match="price"):
        await chain.price_path(pool_id_of(stage.weth_pool), Seconds(0))


async def test_late_events_do_not_tell_a_history(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    give_away(stage, token)
    with pytest.raises(Unavailable, match="owner"):
        await desk.chain(await desk.bent(late_events(stage))).history(token, None)
    assert (await desk.chain(await desk.node()).history(token, None)).events


async def test_a_reorganisation_while_events_are_read_mixes_no_two_forks(desk: Any) -> None:
    """State is pinned by hash and would not notice; events are asked for by number, and confirmed at the end."""
    stage, pool = desk.stage, pool_id_of(desk.stage.weth_pool)
    stage.trade(stage.weth_pool)
    stage.pass_time(12)
    seen, reorganised = list[str](), []  # type: ignore[var-annotated]

    def reorganising(asked: Any, reply: Any) -> Any:
        seen.append(asked["method"])
        if not reorganised and seen[-2:] == ["eth_getLogs", "eth_call"]:  # after the last thing that is read
            reorganised.append(stage.node.reorg(3, keep=True))
        return reply

    node = await desk.bent(reorganising)
    chain = desk.chain(node)
    reorganised.append("not yet")
    await chain.price_path(pool, Seconds(0))  # block times are known from now on: only events are asked by number
    reorganised.clear()
    path = await chain.price_path(pool, Seconds(0))
    assert reorganised
    assert path == await desk.chain(await desk.node(), cache=desk.cache / "other").price_path(pool, Seconds(0))
    hashes = {block.number: "0x" + block.hash.hex() for block in stage.chain.history}
    assert all(hashes[point.block.number] == point.block.hash for point in path)


async def test_the_head_s_own_swaps_must_be_the_head_s(desk: Any) -> None:
    stage, pool = desk.stage, pool_id_of(desk.stage.weth_pool)
    stage.trade(stage.weth_pool)

    def other_fork(asked: Any, reply: Any) -> Any:
        if asked["method"] != "eth_getLogs":
            return reply
        logs = [{**log, "blockHash": "0x" + "ab" * 32} for log in reply["result"][-1:]]
        return {**reply, "result": [*reply["result"][:-1], *logs]}

    with pytest.raises(Unavailable, match="replaced"):
        await desk.chain(await desk.bent(other_fork)).price_path(pool, Seconds(0))


@pytest.mark.parametrize("told", [True, False], ids=["timestamps in logs", "timestamps from headers"])
async def test_times_of_young_blocks_are_not_remembered_across_a_reorganisation(desk: Any, told: bool) -> None:
    stage, pool = desk.stage, pool_id_of(desk.stage.weth_pool)
    stage.trade(stage.weth_pool)
    node = await desk.node()
    if not told:
        plain = node.answer
        node.answer = lambda body: plain(body).replace(b'"blockTimestamp"', b'"ignored"')
    chain = desk.chain(node)
    before = await chain.price_path(pool, Seconds(0))
    stage.chain.rewind(stage.chain.head.number - 1)
    stage.swap(stage.weth_pool, False, 600 * 10**6)
    swapped = stage.chain.head
    stage.pass_time(12)
    after = await chain.price_path(pool, Seconds(0))
    assert after[-1].block.hash != before[-1].block.hash
    assert (after[-1].block.number, after[-1].block.timestamp) == (swapped.number, swapped.timestamp)


async def test_a_wallet_is_found_and_read_at_one_block(desk: Any) -> None:
    """The chain moves on after every answer; what is found and what is read stay together."""
    stage = desk.stage
    stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY, count=2)
    still = await desk.chain(await desk.node(), cache=desk.cache / "still").holdings(stage.wallet)

    def restless(number: int, requests: list[dict[str, Any]]) -> None:
        if requests[0]["method"] == "eth_call":
            stage.swap(stage.weth_pool, True, 10**17)

    moving = await desk.chain(await desk.node(restless)).holdings(stage.wallet)
    assert stage.chain.head.number > moving.owned.block.number
    assert moving == still
    assert moving.owned.block == moving.snapshot.block


async def test_a_node_behind_the_last_one_is_read_as_what_it_is(desk: Any) -> None:
    """What is remembered of a later block is not of this one."""
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    before = stage.chain.head.number
    manager = stage.info.deployment.position_manager
    stage.send("wallet", manager, calldata.call("subscribe(uint256,address,bytes)", token, "0x" + "11" * 20, b""))
    late = False

    def lenient(asked: Any, reply: Any) -> Any:
        return {"id": asked["id"], "result": []} if asked["method"] == "eth_getLogs" and "error" in reply else reply

    node = await desk.bent(lenient)
    plain = node.answer

    def answer(body: bytes) -> bytes:
        return plain(body.replace(b'"latest"', f'"{before:#x}"'.encode()) if late else body)

    node.answer = answer
    chain = desk.chain(node)
    assert (await chain.positions([token])).positions[0].subscribed
    late = True
    snapshot = await chain.positions([token])
    assert (snapshot.block.number, snapshot.positions[0].subscribed) == (before, False)
    late = False
    assert (await chain.positions([token])).positions[0].subscribed


async def test_state_pinned_by_number_is_confirmed_at_the_end(desk: Any) -> None:
    """A node that does not know pins by hash would give the state of whatever block has the number by then."""
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    stage.pass_time(12)
    calls, fatal = 0, -1

    def old_fashioned(asked: Any, reply: Any) -> Any:
        nonlocal calls
        if asked["method"] == "eth_call":
            if isinstance(asked["params"][1], dict):
                return {"id": asked["id"], "error": {"code": -32602, "message": "cannot unmarshal object"}}
            calls += 1
            if calls == fatal:
                stage.node.reorg(2, keep=True)
        return reply

    node = await desk.bent(old_fashioned)
    await desk.chain(node, cache=desk.cache / "first").positions([token])
    calls, fatal = 0, calls
    before = stage.chain.head.hash
    snapshot = await desk.chain(node).positions([token])
    assert stage.chain.head.hash != before
    assert snapshot.block.hash == "0x" + stage.chain.head.hash.hex()
