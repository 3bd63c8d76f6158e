"""A node that answers calls with what no contract returned: the next one is asked, and the culprit is named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from zuno.adapters.chain.rpc import RpcChain, RpcPolicy, abi
from zuno.adapters.chain.rpc.errors import NoSuchState
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.positions import pool_id_of
from zuno.adapters.chain.rpc.storage import Storage
from zuno.adapters.chain.rpc.transport import FailoverProvider
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Seconds

QUICK = RpcPolicy(timeout=60, rounds=1, cool_down=600)

WRONG: dict[str, dict[str, Any]] = {
    "empty": {"result": "0x"},
    "one word": {"result": "0x" + "00" * 32},
    "far too much": {"result": "0x" + "ff" * 32 * 40},
    "reverted": {"error": {"code": 3, "message": "execution reverted"}},
    "out of gas": {"error": {"code": -32000, "message": "out of gas"}},
    "unreadable": {"error": {"code": -32602, "message": "invalid params"}},
}

QUESTIONS: dict[str, Callable[[RpcChain, Any], Any]] = {
    "holdings": lambda chain, stage: chain.holdings(stage.wallet),
    "positions": lambda chain, stage: chain.positions([3, 4, 5]),
    "pools": lambda chain, stage: chain.pools(),
    "pool": lambda chain, stage: chain.pool(pool_id_of(stage.weth_pool)),
    "history": lambda chain, stage: chain.history(3, None),
}


def telling(wrong: dict[str, Any]) -> dict[str, Callable[[RpcChain, Any], Any]]:
    """The questions in which a wrong answer shows: one zero is also what a wallet without positions answers."""
    single = wrong == WRONG["one word"]
    return {name: ask for name, ask in QUESTIONS.items() if not single or name in ("positions", "pools", "pool")}


def answering(method: str, wrong: dict[str, Any]) -> Any:
    """One method is always answered the same."""

    def bend(asked: Any, reply: Any) -> Any:
        return {"jsonrpc": "2.0", "id": asked["id"], **wrong} if asked["method"] == method else reply

    return bend


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_what_no_contract_returned_is_another_node_s_turn(
    desk_of_quiet: Any, remembering: Any, wrong: dict[str, Any]
) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    honest = await desk.node(answer=remembering)
    liar = await desk.bent(answering("eth_call", wrong), remembering)
    for name, ask in telling(wrong).items():
        truth = await ask(desk.chain(honest, policy=QUICK, cache=desk.cache / "honest"), stage)
        helped = await ask(desk.chain(liar, honest, policy=QUICK, cache=desk.cache / name), stage)
        assert helped == truth, name


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_alone_it_is_named_and_so_is_what_to_do(
    desk_of_quiet: Any, remembering: Any, wrong: dict[str, Any]
) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    liar = await desk.bent(answering("eth_call", wrong), remembering)
    for ask in telling(wrong).values():
        with pytest.raises((Malformed, Unavailable), match=liar.url.removeprefix("http://")) as raised:
            await ask(desk.chain(liar, policy=QUICK), stage)
        assert "ZUNO_DEVNET_RPC_URL" in str(raised.value)


async def test_a_node_that_garbles_calls_is_left_alone_for_a_while(desk_of_quiet: Any, remembering: Any) -> None:
    desk = desk_of_quiet
    liar = await desk.bent(answering("eth_call", WRONG["empty"]), remembering)
    chain = desk.chain(liar, await desk.node(answer=remembering), policy=QUICK)
    await chain.positions([3])
    await chain.positions([3, 5])
    assert liar.methods.count("eth_call") == 1


async def test_one_garbled_call_is_asked_again(desk_of_quiet: Any, remembering: Any) -> None:
    """Behind one address may be a machine that is broken and many that are not."""
    desk, garbled = desk_of_quiet, list[str]()

    def first_only(asked: Any, reply: Any) -> Any:
        if asked["method"] == "eth_call" and not garbled:
            garbled.append(asked["method"])
            return {**reply, "result": "0x"}
        return reply

    chain = desk.chain(await desk.bent(first_only, remembering))
    assert [position.id for position in (await chain.positions([3])).positions] == [3]
    assert garbled


# -- tokens


def about(token: str, wrong: dict[str, Any]) -> Any:
    def bend(asked: Any, reply: Any) -> Any:
        mine = asked["method"] == "eth_call" and asked["params"][0]["to"].lower() == token
        return {"jsonrpc": "2.0", "id": asked["id"], **wrong} if mine else reply

    return bend


@pytest.mark.parametrize("wrong", [WRONG["empty"], WRONG["reverted"], {"result": "0x" + "ff" * 32}], ids=str)
async def test_what_is_not_said_about_a_token_is_not_kept(desk: Any, wrong: dict[str, Any]) -> None:
    stage = desk.stage
    token = stage.token_named("ABC", 18)
    key = stage.key(token, stage.usdc, 3000, 60)
    stage.initialize(key)

    async def named(*nodes: Any) -> tuple[str, int]:
        pool = await desk.chain(*nodes, policy=QUICK).pool(pool_id_of(key))
        return next((one.symbol, one.decimals) for one in (pool.token0, pool.token1) if one.address == token)

    liar, honest = await desk.bent(about(token, wrong)), await desk.node()
    assert (await named(liar))[1] == 0  # nobody to ask: base units, no guess
    assert not list(desk.cache.glob("*/tokens.json"))
    assert await named(liar, honest) == ("ABC", 18)
    (file,) = desk.cache.glob("*/tokens.json")
    assert json.loads(file.read_bytes()) == {token: ["ABC", 18]}
    honest.seen.clear()
    assert await named(honest) == ("ABC", 18)
    assert not any(one["method"] == "eth_call" and one["params"][0]["to"].lower() == token for one in honest.seen[0])


async def test_a_mute_token_is_no_node_s_fault(desk: Any) -> None:
    """Every node is asked once, none is left alone for it, and a node that is down does not make it unreadable."""
    stage = desk.stage
    key = stage.key("0x" + "33" * 20, stage.usdc, 3000, 60)
    stage.initialize(key)
    first, down = await desk.node(), await desk.node(lambda number, requests: desk.trouble("down"))
    chain = desk.chain(first, down, policy=RpcPolicy(timeout=60, rounds=3, first_pause=9, cool_down=600))
    shown = await chain.pool(pool_id_of(key))
    assert {(token.symbol, token.decimals) for token in (shown.token0, shown.token1)} == {
        ("USDC", 6),
        ("0x3333…3333", 0),
    }
    assert chain._node.provider.endpoints[0].cool_until == 0


# -- nodes that are behind


def lagging(blocks: int) -> Any:
    def bend(asked: Any, reply: Any) -> Any:
        if asked["method"] == "eth_blockNumber":
            return {**reply, "result": hex(int(reply["result"], 16) - blocks)}
        return reply

    return bend


@pytest.mark.parametrize("batches", [True, False])
async def test_a_first_node_that_is_behind_does_not_keep_the_second_from_answering(
    desk_of_quiet: Any, remembering: Any, batches: bool
) -> None:
    desk, pool = desk_of_quiet, pool_id_of(desk_of_quiet.stage.weth_pool)

    def one_at_a_time(number: int, requests: list[dict[str, Any]]) -> Any:
        error = {"code": -32600, "message": "batch requests are not supported"}
        return desk.reply({"id": None}, error=error) if len(requests) > 1 else None

    late, fresh = await desk.bent(lagging(3), remembering), await desk.node(answer=remembering)
    late.plan = fresh.plan = None if batches else one_at_a_time
    chain = desk.chain(late, fresh, policy=QUICK)
    path = await chain.price_path(pool, Seconds(0))
    assert path == await desk.chain(fresh, policy=QUICK, cache=desk.cache / "x").price_path(pool, Seconds(0))
    assert (await chain.history(3, None)).events
    assert late.methods.count("eth_blockNumber") == (1 if batches else 2)  # then it was left alone


async def test_a_node_whose_events_contradict_its_state_is_left_for_the_next(
    desk_of_quiet: Any, remembering: Any
) -> None:
    """It names the right height and leaves out the last events: seen only by who holds them against the state."""
    desk, pool = desk_of_quiet, pool_id_of(desk_of_quiet.stage.weth_pool)

    def forgetful(asked: Any, reply: Any) -> Any:
        return {**reply, "result": reply["result"][:-1]} if asked["method"] == "eth_getLogs" else reply

    late, fresh = await desk.bent(forgetful, remembering), await desk.node(answer=remembering)
    path = await desk.chain(late, fresh, policy=QUICK).price_path(pool, Seconds(0))
    assert path == await desk.chain(fresh, policy=QUICK, cache=desk.cache / "x").price_path(pool, Seconds(0))


@pytest.fixture
async def bare(desk_of_quiet: Any) -> Any:
    """Makes the adapter's own view of one node."""
    made = list[RpcNode]()

    def make(serving: Any) -> RpcNode:
        made.append(RpcNode(FailoverProvider([serving.url], desk_of_quiet.stage.info.id, "the RPC URL", QUICK)))
        return made[-1]

    yield make
    for node in made:
        await node.provider.close()


async def test_events_near_the_head_are_believed_of_nobody_who_is_not_there(
    desk_of_quiet: Any, remembering: Any, bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_of_quiet
    manager = desk.stage.info.deployment.pool_manager
    node = bare(await desk.bent(lagging(10), remembering))
    last = (await node.head()).number - 9
    with pytest.raises(Unavailable, match=r"\bblock \d"):
        await node.logs(manager, (abi.SWAP,), 0, last)
    assert await node.logs(manager, (abi.SWAP,), 0, last - 1) is not None
    monkeypatch.setattr("zuno.adapters.chain.rpc.node.YOUNG_BLOCKS", 10)
    with pytest.raises(Unavailable, match=r"\bblock \d"):
        await node.logs(manager, (abi.SWAP,), 0, last)
    monkeypatch.setattr("zuno.adapters.chain.rpc.node.YOUNG_BLOCKS", 9)
    await node.logs(manager, (abi.SWAP,), 0, last)


async def test_one_absurd_head_does_not_make_every_block_an_old_one(
    desk_of_quiet: Any, remembering: Any, bare: Any
) -> None:
    desk, heads = desk_of_quiet, list[int]()

    def absurd_once(asked: Any, reply: Any) -> Any:
        if asked["method"] == "eth_getBlockByNumber" and asked["params"][0] == "latest":
            heads.append(1)
            if len(heads) == 1:
                return {**reply, "result": {**reply["result"], "number": "0x1ffffffffffff0"}}
        return reply

    serving = await desk.bent(absurd_once, remembering)
    node = bare(serving)
    assert (await node.head()).number > 2**50
    head = await node.head()
    serving.seen.clear()
    await node.logs(desk.stage.info.deployment.pool_manager, (abi.SWAP,), 0, head.number)
    assert serving.methods == ["eth_blockNumber", "eth_getLogs"]


# -- the form of a question


def counting_pins(node: Any) -> list[str]:
    return [type(one["params"][1]).__name__ for body in node.seen for one in body if one["method"] == "eth_call"]


async def test_refused_questions_now_and_then_do_not_end_pins_by_hash(desk_of_quiet: Any, remembering: Any) -> None:
    desk, hiccup = desk_of_quiet, False

    def hiccuping(asked: Any, reply: Any) -> Any:
        nonlocal hiccup
        if hiccup and asked["method"] == "eth_call":
            hiccup = False
            return {"id": asked["id"], "error": {"code": -32602, "message": "hiccup"}}
        return reply

    node = await desk.bent(hiccuping, remembering)
    chain = desk.chain(node, policy=QUICK)
    for hiccup in (True, True, False):
        node.seen.clear()
        refused = hiccup
        await chain.positions([3])
        pins = counting_pins(node)
        assert pins == ["dict", *["str"] * refused, *["dict"] * (len(pins) - 1 - refused)]
        # What was asked by number is confirmed.
        assert node.methods[-1] == ("eth_getBlockByNumber" if refused else "eth_call")


async def test_a_node_that_cannot_read_pins_by_hash_is_asked_by_number_and_no_other_is(
    desk_of_quiet: Any, remembering: Any
) -> None:
    desk, down = desk_of_quiet, list[int]()

    def old_fashioned(asked: Any, reply: Any) -> Any:
        if asked["method"] == "eth_call" and isinstance(asked["params"][1], dict):
            return {"id": asked["id"], "error": {"code": -32602, "message": "cannot unmarshal object"}}
        return reply

    old, new = await desk.bent(old_fashioned, remembering), await desk.node(answer=remembering)
    old.plan = lambda number, requests: desk.trouble("down") if down else None
    chain = desk.chain(old, new, policy=QUICK)
    await chain.positions([3])
    await chain.positions([3, 5])
    assert counting_pins(old)[:4] == ["dict", "str", "dict", "str"]
    assert set(counting_pins(old)[4:]) == {"str"}
    down.append(1)
    await chain.pool(pool_id_of(desk.stage.weth_pool))
    assert set(counting_pins(new)) == {"dict"}


async def test_a_method_that_nobody_offers_is_not_waited_for(desk_of_quiet: Any, remembering: Any) -> None:
    desk = desk_of_quiet
    missing = {"error": {"code": -32601, "message": "the method eth_feeHistory does not exist"}}
    nodes = [await desk.bent(answering("eth_feeHistory", missing), remembering) for _ in range(2)]
    patient = RpcPolicy(timeout=60, rounds=3, first_pause=60, longest_pause=60)
    async with asyncio.timeout(10):
        assert (await desk.chain(*nodes, policy=patient).gas()).base_fee
    assert [node.methods.count("eth_feeHistory") for node in nodes] == [1, 1]


async def test_a_block_that_vanishes_under_a_part_is_no_partial_answer(
    desk_of_quiet: Any, remembering: Any, bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of a block that is gone belongs to no chain, however much of it was read."""
    desk = desk_of_quiet
    monkeypatch.setattr("zuno.adapters.chain.rpc.storage.WORDS_PER_CALL", 1)
    calls = list[int]()

    def vanishing(asked: Any, reply: Any) -> Any:
        if asked["method"] == "eth_call":
            calls.append(1)
            if len(calls) > 1:
                return {"id": asked["id"], "error": {"code": -32000, "message": "header not found"}}
        return reply

    node = bare(await desk.bent(vanishing, remembering))
    storage = Storage(node, desk.stage.info.deployment.pool_manager)
    with pytest.raises(NoSuchState, match="header not found"):
        await storage.some_words([1, 2], await node.head())


# -- what several readers share


async def test_readers_side_by_side_do_not_take_each_other_s_block_times(desk_of_quiet: Any, remembering: Any) -> None:
    desk, pool = desk_of_quiet, pool_id_of(desk_of_quiet.stage.weth_pool)
    chain = desk.chain(await desk.node(answer=remembering))
    alone = await chain.price_path(pool, Seconds(0)), await chain.history(3, None), await chain.pools()
    chain = desk.chain(await desk.node(answer=remembering), cache=desk.cache / "other")
    asked = [(chain.price_path(pool, Seconds(0)), chain.history(3, None), chain.pools()) for _ in range(3)]
    told = await asyncio.gather(*(one for together in asked for one in together))
    assert told == [*alone] * 3
