"""A node that is down, slow, garbled, another chain or dying: a clear error or a labelled part, and no secret told."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode

from zuno.adapters.chain.rpc import RpcChain, RpcPolicy
from zuno.kernel.errors import Malformed, Unavailable, UsageError, ZunoError
from zuno.lp.plan import calldata

LIQUIDITY = 10**15
QUICK = RpcPolicy(timeout=60, rounds=2, first_pause=0.01, longest_pause=0.02, cool_down=600)
SHORT = replace(QUICK, timeout=0.4)
"""For nodes that never finish an answer; one that does may take longer on a busy machine."""


def always(desk: Any, kind: str, status: int = 500, body: bytes = b"") -> Any:
    return lambda number, requests: desk.trouble(kind, status, body)


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


TROUBLES: list[tuple[str, int, type[ZunoError]]] = [
    ("down", 0, Unavailable),
    ("slow", 0, Unavailable),
    ("cut", 0, Unavailable),
    ("garbage", 0, Malformed),
    ("status", 429, Unavailable),
    ("status", 500, Unavailable),
    ("status", 503, Unavailable),
    ("status", 401, Unavailable),
    ("status", 301, Unavailable),
]


@pytest.mark.parametrize(("kind", "status", "expected"), TROUBLES)
async def test_a_sick_node_alone_is_a_clear_error_after_so_many_attempts(
    desk: Any, kind: str, status: int, expected: type[ZunoError]
) -> None:
    node = await desk.node(always(desk, kind, status))
    chain = desk.chain(node, policy=SHORT if kind == "slow" else QUICK)
    with pytest.raises(expected) as raised:
        await chain.positions([1])
    assert len(node.seen) == QUICK.rounds
    assert "127.0.0.1" in str(raised.value)


async def test_who_asked_in_vain_does_not_wait_as_long_again(desk: Any) -> None:
    """A node that goes silent costs its time-outs once, not once for every question of a command."""
    silent = True
    node = await desk.node(lambda number, requests: desk.trouble("down") if silent else None)
    chain = desk.chain(node, policy=QUICK)
    for asked in (QUICK.rounds, QUICK.rounds + 1, QUICK.rounds + 2):
        with pytest.raises(Unavailable):
            await chain.head()
        assert len(node.seen) == asked
    silent = False
    assert (await chain.head()).number == desk.stage.chain.head.number
    silent, before = True, len(node.seen)
    with pytest.raises(Unavailable):
        await chain.head()
    assert len(node.seen) == before + QUICK.rounds


@pytest.mark.soak(every=2)
@pytest.mark.parametrize(("kind", "status", "expected"), TROUBLES)
async def test_a_healthy_node_behind_a_sick_one_answers(
    desk: Any, kind: str, status: int, expected: type[ZunoError]
) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    sick, healthy = await desk.node(always(desk, kind, status)), await desk.node()
    chain = desk.chain(sick, healthy, policy=replace(QUICK, timeout=5) if kind == "slow" else QUICK)
    assert [position.id for position in (await chain.positions([token])).positions] == [token]
    asked = len(sick.seen)
    await chain.positions([token])
    assert len(sick.seen) == asked  # left alone while it cools down


async def test_a_node_comes_back_after_its_cool_down(desk: Any) -> None:
    failing = True

    def recovering(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.trouble("status", 503) if failing else None

    first, second = await desk.node(recovering), await desk.node()
    chain = desk.chain(first, second, policy=replace(QUICK, cool_down=0.05))
    await chain.head()
    failing = False
    await asyncio.sleep(0.06)
    asked = len(second.seen)
    await chain.head()
    assert len(second.seen) == asked


async def test_nothing_listens(desk: Any) -> None:
    with pytest.raises(Unavailable, match="ZUNO_DEVNET_RPC_URL"):
        await desk.chain(closed_port(), policy=QUICK).pools()


async def test_bytes_that_only_drip_do_not_hold_us_up(desk: Any) -> None:
    connections = dripped = 0

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections, dripped
        connections += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        try:
            for _ in range(100):
                writer.write(b" ")
                dripped += 1
                await writer.drain()
                await asyncio.sleep(0.1)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(Unavailable, match=r"within 0\.4 s"):
        await desk.chain(url, policy=SHORT).head()
    server.close()
    assert connections == QUICK.rounds
    assert dripped < QUICK.rounds * 100


async def test_an_endless_answer_is_cut_short(desk: Any) -> None:
    node = await desk.node(always(desk, "answer", body=b" " * 200_000))
    with pytest.raises(Malformed, match="larger than"):
        await desk.chain(node, policy=RpcPolicy(timeout=60, rounds=1, max_response=100_000)).head()


@pytest.mark.parametrize("place", [0, 1])
async def test_another_chain_is_refused_wherever_it_stands(desk: Any, place: int) -> None:
    """As the only node, and as the one we would fail over to."""

    def sepolia(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.reply(requests[0], result="0xaa36a7") if requests[0]["method"] == "eth_chainId" else None

    nodes = [await desk.node(always(desk, "down")) for _ in range(place)] + [await desk.node(sepolia)]
    with pytest.raises(Malformed, match=r"11155111.*31337.*ZUNO_DEVNET_RPC_URL"):
        await desk.chain(*nodes).head()
    assert set(nodes[-1].methods) == {"eth_chainId"}


async def test_a_revert_is_an_answer_and_is_not_repeated(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    stage.burn(stage.weth_pool, token)
    first, second = await desk.node(), await desk.node()
    snapshot = await desk.chain(first, second).positions([token, token - 1])
    assert [missing.id for missing in snapshot.missing] == [token]
    calls = [request["params"][0]["data"] for body in first.seen for request in body if request["method"] == "eth_call"]
    assert len(calls) == len(set(calls))  # nothing twice
    assert not second.seen  # nobody else asked


async def test_a_node_that_is_behind_is_not_believed(desk: Any) -> None:
    """The head came from one node; the next one does not have that block yet, then gets it."""
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    lagging = 2

    def dies_after_the_head(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.trouble("down") if requests[0]["method"] == "eth_call" else None

    def behind(number: int, requests: list[dict[str, Any]]) -> Any:
        nonlocal lagging
        if requests[0]["method"] == "eth_call" and lagging:
            lagging -= 1
            return desk.reply(requests[0], error={"code": -32000, "message": "header not found"})
        return None

    first, second = await desk.node(dies_after_the_head), await desk.node(behind)
    policy = replace(QUICK, rounds=3)
    snapshot = await desk.chain(first, second, policy=policy).positions([token])
    assert [position.id for position in snapshot.positions] == [token]
    pins = {request["params"][1]["blockHash"] for body in second.seen for request in body if "eth_call" in str(request)}
    assert pins == {snapshot.block.hash}


async def test_a_node_that_is_behind_cannot_hide_a_transfer(desk: Any) -> None:
    """Asked for events beyond its head, a node answers with what it has: nothing, here."""
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    down = False

    def no_logs_today(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.trouble("down") if down and requests[0]["method"] == "eth_getLogs" else None

    def behind(number: int, requests: list[dict[str, Any]]) -> Any:
        match requests[0]["method"]:
            case "eth_getLogs":
                return desk.reply(requests[0], result=[])
            case "eth_blockNumber":
                return desk.reply(requests[0], result=hex(stage.chain.head.number - 1))
        return None

    chain = desk.chain(await desk.node(no_logs_today), await desk.node(behind))
    assert (await chain.positions([token])).positions[0].owner == stage.wallet
    give = calldata.call("transferFrom(address,address,uint256)", stage.wallet, stage.trader, token)
    stage.send("wallet", stage.info.deployment.position_manager, give)
    down = True
    assert (await chain.positions([token])).positions[0].owner == stage.trader


async def test_a_part_that_cannot_be_read_is_named_and_the_rest_is_given(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = desk.stage
    ids = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY, count=6)
    monkeypatch.setattr("zuno.adapters.chain.rpc.storage.WORDS_PER_CALL", 14)
    states = 0

    def forgets_one(number: int, requests: list[dict[str, Any]]) -> Any:
        nonlocal states
        if requests[0]["method"] == "eth_call" and "dbd035ff" in requests[0]["params"][0]["data"][:10]:
            states += 1
            if states == 2:
                return desk.reply(requests[0], error={"code": -32603, "message": "internal error"})
        return None

    node = await desk.node(forgets_one)
    snapshot = await desk.chain(node, policy=RpcPolicy(timeout=60, rounds=1, at_once=1)).positions(ids)
    assert snapshot.positions
    assert snapshot.missing
    assert {position.id for position in snapshot.positions} | {missing.id for missing in snapshot.missing} == set(ids)
    assert all("internal error" in missing.reason for missing in snapshot.missing)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"result": None},
        {"result": "0xzz"},
        {"result": 17},
        {"result": {"number": "0x1"}},
        {"result": {"number": "soon", "hash": "0x12", "timestamp": []}},
        {"result": []},
        {"error": "no"},
        {"error": {"message": 5}},
        {},
    ],
)
async def test_well_formed_nonsense_is_malformed_or_unavailable(desk: Any, nonsense: dict[str, Any]) -> None:
    def babbling(number: int, requests: list[dict[str, Any]]) -> Any:
        return None if requests[0]["method"] == "eth_chainId" else desk.reply(requests[0], **nonsense)

    chain = desk.chain(await desk.node(babbling))
    for ask in (chain.head, chain.pools, chain.gas):
        with pytest.raises((Malformed, Unavailable)):
            await ask()


@pytest.mark.parametrize("result", ["0x", "0x00", "0x" + "ff" * 64, "0x" + "00" * 31 + "20" + "ff" * 32])
async def test_calls_that_return_nonsense(desk: Any, result: str) -> None:
    def babbling(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.reply(requests[0], result=result) if requests[0]["method"] == "eth_call" else None

    chain = desk.chain(await desk.node(babbling))
    for ask in (chain.positions([1]), chain.owned(desk.stage.wallet), chain.history(1, None)):
        with pytest.raises((Malformed, Unavailable)):
            await ask


async def test_a_pool_key_that_is_not_the_position_s_is_not_believed(desk: Any) -> None:
    """The id is the key's hash, so a node cannot pass one pool off as another."""
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    filed = calldata.selector("poolKeys(bytes25)").hex()
    other = encode(["address", "address", "uint24", "int24", "address"], calldata.key_tuple(stage.native_pool))

    def lying(number: int, requests: list[dict[str, Any]]) -> Any:
        if requests[0]["method"] == "eth_call" and filed in requests[0]["params"][0]["data"]:
            return desk.reply(requests[0], result="0x" + encode(["bytes[]"], [[other]]).hex())
        return None

    with pytest.raises(Malformed, match="belong"):
        await desk.chain(await desk.node(lying)).positions([token])


async def test_an_answer_to_another_question_is_not_ours(desk: Any) -> None:
    def swapped(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.reply({"id": requests[0]["id"] + 1}, result="0x7a69")

    with pytest.raises(Malformed, match="question"):
        await desk.chain(await desk.node(swapped)).head()


async def test_keys_in_addresses_stay_secret(desk: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    node = await desk.node(always(desk, "status", 503))
    host = node.url.removeprefix("http://")
    secret = f"http://me:hunter2@{host}/v3/s3cr3tk3y?apikey=t0ps3cr3t"
    told = [*await _complaints(desk, secret), *await _complaints(desk, closed_port() + "/v3/s3cr3tk3y")]
    healthy = await desk.node()
    await desk.chain(healthy.url + "/v3/s3cr3tk3y").head()
    text = "\n".join([*told, caplog.text, *(record.getMessage() for record in caplog.records)])
    for word in ("s3cr3tk3y", "t0ps3cr3t", "hunter2", "/v3/"):
        assert word not in text
    assert host in text


async def _complaints(desk: Any, url: str) -> list[str]:
    chain = desk.chain(url, policy=QUICK)
    with pytest.raises(ZunoError) as raised:
        await chain.head()
    shown = "".join(traceback.format_exception(raised.value))
    return [str(raised.value), shown, repr(chain), repr(chain._node.provider.endpoints)]


@pytest.mark.parametrize("url", ["", "ftp://host/s3cr3t", "not a url", "http://", "http://host:port/s3cr3t", "//x"])
def test_an_unusable_address_is_a_usage_error_that_does_not_quote_it(stage: Any, tmp_path: Any, url: str) -> None:
    with pytest.raises(UsageError) as raised:
        RpcChain(stage.info, [url], tmp_path)
    assert "s3cr3t" not in str(raised.value)
    with pytest.raises(UsageError, match="ZUNO_DEVNET_RPC_URL"):
        RpcChain(stage.info, [], tmp_path)


async def test_closing_twice_is_harmless(desk: Any) -> None:
    chain = desk.chain(await desk.node())
    await chain.head()
    await chain.close()
    await chain.close()


async def test_an_answer_nested_without_end_is_garbage_not_a_crash(desk: Any) -> None:
    node = await desk.node(always(desk, "answer", body=b"[" * 200_000))
    with pytest.raises(Malformed, match="not JSON"):
        await desk.chain(node, policy=QUICK).head()


async def test_nonsense_about_a_token_is_not_kept_as_its_decimals(desk: Any, stage: Any) -> None:
    (token,) = stage.mint(stage.weth_pool, -200_500, -200_000, LIQUIDITY)
    decimals = "0x" + calldata.selector("decimals()").hex()

    def garbling(number: int, requests: list[dict[str, Any]]) -> Any:
        asked = [str(request.get("params", [{}])[0]) for request in requests if request.get("method") == "eth_call"]
        return desk.trouble("garbage") if any(decimals in one for one in asked) else None

    strangers = desk.cache / "strangers"
    with pytest.raises(Malformed):
        await _as_strangers(desk, await desk.node(garbling), strangers).positions([token])
    healed = await _as_strangers(desk, await desk.node(), strangers).positions([token])
    assert {healed.positions[0].pool.token0.decimals, healed.positions[0].pool.token1.decimals} == {18, 6}


def _as_strangers(desk: Any, node: Any, cache: Any) -> RpcChain:
    """The same chain for somebody who curates no tokens: every symbol and decimal is asked for."""
    chain = RpcChain(replace(desk.stage.info, tokens=()), [node.url], cache, desk.stage.wallet, QUICK)
    desk._stack.push_async_callback(chain.close)
    return chain


async def test_a_failing_log_query_does_not_cost_what_was_remembered(desk: Any, stage: Any) -> None:
    tokens = [stage.mint(stage.weth_pool, -200_500 - 10 * n, -200_000, LIQUIDITY)[0] for n in range(3)]
    await desk.chain(await desk.node()).positions(tokens)
    (shelf,) = desk.cache.glob("*/positions.json")
    remembered = shelf.read_text().count("0x")
    stage.mint(stage.weth_pool, -200_500, -200_100, LIQUIDITY)  # the chain goes on

    def no_logs(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.trouble("status", 503) if any(r.get("method") == "eth_getLogs" for r in requests) else None

    snapshot = await desk.chain(await desk.node(no_logs), policy=QUICK).positions(tokens[:1])
    assert [position.id for position in snapshot.positions] == tokens[:1]
    assert shelf.read_text().count("0x") == remembered


async def test_a_node_that_quotes_its_own_key_is_not_quoted(desk: Any) -> None:
    def telling(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.reply(requests[0], error={"code": -32000, "message": "no credit left on SECRETKEY1"})

    node = await desk.node(telling)
    with pytest.raises(ZunoError) as raised:
        await desk.chain(f"{node.url}/v2/SECRETKEY1", policy=QUICK).head()
    assert "SECRETKEY1" not in str(raised.value)
    assert "***" in str(raised.value)
