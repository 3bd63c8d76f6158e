"""A node that answers calls with what no contract returned: the next one is asked, and the culprit is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from zuno.adapters.chain.rpc import Policy, RpcChain
from zuno.adapters.chain.rpc.deeds import id_of
from zuno.domain.errors import Malformed, Unavailable

QUICK = Policy(timeout=5, rounds=1, cool_down=30)

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
    "pool": lambda chain, stage: chain.pool(id_of(stage.weth_pool)),
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
        pool = await desk.chain(*nodes, policy=QUICK).pool(id_of(key))
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
    chain = desk.chain(first, down, policy=Policy(timeout=2, rounds=3, first_pause=9, cool_down=30))
    shown = await chain.pool(id_of(key))
    assert {(token.symbol, token.decimals) for token in (shown.token0, shown.token1)} == {
        ("USDC", 6),
        ("0x3333…3333", 0),
    }
    first.seen.clear()
    await chain.head()
    assert first.methods == ["eth_getBlockByNumber"]
