"""What is kept on disk: never believed blindly, rebuilt when it is damaged, done without when it cannot be written."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from zuno.adapters.chain.rpc import RpcChain, RpcPolicy
from zuno.adapters.chain.rpc.positions import pool_id_of
from zuno.adapters.chain.rpc.tokens import CALL_GAS
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.plan import calldata

QUICK = RpcPolicy(timeout=60, rounds=1, cool_down=600)
ZEROS = "0x" + "00" * 20
HASH = "0x" + "ab" * 32

DAMAGED: dict[str, list[Any]] = {
    "owned-*": [
        {"anchor": [1, HASH], "searched": [[0, 1]], "found": ["x"]},
        {"anchor": [1, HASH], "searched": [[0, 1]], "found": ["-5"]},
        {"anchor": [1, HASH], "searched": [[0, 1]], "found": [str(2**300)]},
        {"anchor": [1, HASH], "searched": [[0, 1]], "found": [7]},
        {"anchor": [1, HASH], "searched": [[0, None]], "found": []},
        {"anchor": [1, HASH], "searched": [[0, 1, 2]], "found": []},
        {"anchor": [-1, HASH], "searched": [], "found": []},
        {"anchor": ["one", HASH], "searched": [], "found": []},
        {"anchor": 5, "searched": 5, "found": 5},
    ],
    "pools": [
        {"anchor": [1, HASH], "searched": [], "found": ["a,b"]},
        {"anchor": [1, HASH], "searched": [], "found": [f"{ZEROS},{ZEROS},-1,10,{ZEROS}"]},
        {"anchor": [1, HASH], "searched": [], "found": [f"{ZEROS},nothing,500,10,{ZEROS}"]},
        {"anchor": [1, HASH], "searched": [], "found": [None]},
        {"anchor": [1.5, HASH], "searched": [], "found": []},
    ],
    "positions": [
        {"as_of": [1, HASH, 5], "deeds": {"3": [1, 2, 3]}},
        {"as_of": [1, HASH, 5], "deeds": {"3": [ZEROS, 5, 500, 10, ZEROS, -10, 10, ZEROS, False]}},
        {"as_of": [1, HASH, 5], "deeds": {"3": [ZEROS, ZEROS, 500, 10, ZEROS, 10, -10, ZEROS, False]}},
        {"as_of": [1, HASH, 5], "deeds": {"3": [ZEROS, ZEROS, 500, 10, ZEROS, -10, 10, "me", False]}},
        {"as_of": [1, HASH, 5], "deeds": {"3": [ZEROS, ZEROS, 1 << 30, 10, ZEROS, -10, 10, ZEROS, False]}},
        {"as_of": [-1, HASH, 5], "deeds": {}},
        {"as_of": "now", "deeds": {}},
        {"as_of": [1, HASH, 5], "deeds": []},
        [],
        7,
    ],
}


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("name", DAMAGED)
async def test_a_record_of_an_odd_shape_is_put_aside_with_a_word_and_made_anew(
    desk_of_quiet: Any, remembering: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage

    async def look() -> Any:
        chain = desk.chain(node)
        return await chain.holdings(stage.wallet), await chain.pools()

    node = await desk.node(answer=remembering)
    truth = await look()
    (file,) = desk.cache.glob(f"*/{name}.json")
    sound = file.read_bytes()
    for damage in DAMAGED[name]:
        caplog.clear()
        file.write_text(json.dumps(damage))
        assert await look() == truth
        assert [record.levelname for record in caplog.records if file.name in record.getMessage()] == ["WARNING"]
        assert json.loads(file.read_bytes()).keys() == json.loads(sound).keys()


async def test_a_disk_that_takes_nothing_costs_a_word_not_the_answer(
    desk_of_quiet: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    logging.getLogger("zuno").handlers.clear()  # a command that another test ran may have left one
    desk.cache.write_text("a file where the directory should be")
    chain = desk.chain(await desk.node())
    with caplog.at_level(logging.WARNING):
        assert (await chain.holdings(stage.wallet)).owned.ids == (3, 5)
        assert len((await chain.pools()).pools) == 2
    assert len([record for record in caplog.records if "kept" in record.getMessage()]) == 1
    assert capsys.readouterr().err == ""


# -- where v4 begins


def birth_of(stage: Any) -> int:
    """The first block in which PoolManager has code."""
    manager = bytes.fromhex(stage.info.deployment.pool_manager[2:])
    return next(block.number for block in stage.chain.history if stage.chain.code(manager, block))


def first_asked(node: Any) -> int:
    filters = [one["params"][0] for body in node.seen for one in body if one["method"] == "eth_getLogs"]
    return min(int(wanted["fromBlock"], 16) for wanted in filters)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chain is long enough to look for its beginning."""
    monkeypatch.setattr("zuno.adapters.chain.rpc.discovery.SMALL_CHAIN", 0)


def written_birthday(desk: Any) -> int | None:
    files = list(desk.cache.glob("*/deployed.json"))
    return next(iter(json.loads(files[0].read_bytes()).values()), None) if files else None


@pytest.mark.usefixtures("large")
async def test_no_search_goes_back_beyond_the_contract_s_first_block(desk_of_quiet: Any) -> None:
    desk, birth = desk_of_quiet, birth_of(desk_of_quiet.stage)
    assert 0 < birth < desk.stage.chain.head.number
    node = await desk.node()
    await desk.chain(node).pools()
    assert first_asked(node) == written_birthday(desk) == birth
    again = await desk.node()
    await desk.chain(again).pools()
    assert "eth_getCode" not in again.methods


@pytest.mark.soak(every=2)
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("lie", ["0x", "0x60"], ids=["no code where there is some", "code where there is none"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
async def test_one_wrong_answer_does_not_hide_the_past_for_ever(desk_of_quiet: Any, lie: str, nth: int) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    asked_for_code = 0

    def lying(asked: Any, reply: Any) -> Any:
        nonlocal asked_for_code
        if asked["method"] != "eth_getCode":
            return reply
        asked_for_code += 1
        return {**reply, "result": lie} if asked_for_code == nth else reply

    node = await desk.bent(lying)
    owned = await desk.chain(node).owned(stage.wallet)
    assert (owned.ids, owned.complete) == ((3, 5), True)
    assert written_birthday(desk) in (None, birth_of(stage))


@pytest.mark.usefixtures("large")
async def test_a_wrong_beginning_of_an_earlier_run_is_forgotten_when_something_is_missing(desk_of_quiet: Any) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    await desk.chain(await desk.node()).pools()
    (file,) = desk.cache.glob("*/deployed.json")
    file.write_text(json.dumps({stage.info.deployment.pool_manager: stage.chain.head.number}))
    owned = await desk.chain(await desk.node()).owned(stage.wallet)
    assert (owned.ids, owned.complete) == ((3, 5), True)
    assert written_birthday(desk) == birth_of(stage)


@pytest.mark.usefixtures("large")
async def test_a_node_without_past_state_is_searched_from_the_first_block(desk_of_quiet: Any) -> None:
    def pruned(asked: Any, reply: Any) -> Any:
        error = {"code": -32000, "message": "missing trie node"}
        return {"id": asked["id"], "error": error} if asked["method"] == "eth_getCode" else reply

    node = await desk_of_quiet.bent(pruned)
    assert (await desk_of_quiet.chain(node, policy=QUICK).owned(desk_of_quiet.stage.wallet)).complete
    assert first_asked(node) == 0
    assert written_birthday(desk_of_quiet) is None


# -- searches with an end


async def test_a_record_that_misses_a_position_is_searched_anew(desk_of_quiet: Any) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    await desk.chain(await desk.node()).owned(stage.wallet)
    (file,) = desk.cache.glob("*/owned-*.json")
    record = json.loads(file.read_bytes())
    head = stage.chain.head
    anchor = [head.number - 1, "0x" + list(stage.chain.history)[-2].hash.hex()]
    file.write_text(json.dumps({**record, "anchor": anchor, "searched": [[0, head.number]], "found": []}))
    owned = await desk.chain(await desk.node()).owned(stage.wallet)
    assert (owned.ids, owned.complete) == ((3, 5), True)


async def test_a_wallet_s_search_stops_at_its_cap_and_goes_on_from_there(
    desk_of_quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    monkeypatch.setattr("zuno.adapters.chain.rpc.discovery.OWNED_QUERIES", 2)
    monkeypatch.setattr("zuno.adapters.chain.rpc.scan.Scanner._widen", lambda scanner: None)
    monkeypatch.setattr("zuno.adapters.chain.rpc.scan.Scanner.__init__.__defaults__", (2,))
    searched = []
    for _ in range(9):
        node = await desk.node()
        owned = await desk.chain(node).owned(stage.wallet)
        transfers = [one["params"][0] for body in node.seen for one in body if "eth_getLogs" in str(one)]
        searched.append(len([wanted for wanted in transfers if len(wanted["topics"]) == 3]))
        if owned.complete:
            break
        assert "2 log" in owned.note
    assert (owned.ids, owned.complete) == ((3, 5), True)
    assert len(searched) > 1
    assert max(searched) == 2


async def test_the_search_for_pools_stops_at_its_cap_and_says_what_is_left(
    desk_of_quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_of_quiet
    monkeypatch.setattr("zuno.adapters.chain.rpc.scan.Scanner.__init__.__defaults__", (20,))
    monkeypatch.setattr("zuno.adapters.chain.rpc.discovery.POOL_QUERIES", 1)
    first = await desk.chain(await desk.node()).pools()
    left = desk.stage.chain.head.number + 1 - 20
    assert f"{left} older" in first.notes[0]
    monkeypatch.setattr("zuno.adapters.chain.rpc.discovery.POOL_QUERIES", 2)
    second = await desk.chain(await desk.node()).pools()
    assert second.notes == ()
    assert second.pools == first.pools


async def test_no_search_is_endless(desk_of_quiet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.adapters.chain.rpc.scan.MOST_QUERIES", 3)
    monkeypatch.setattr("zuno.adapters.chain.rpc.scan.Scanner.__init__.__defaults__", (2,))
    node = await desk_of_quiet.node()
    with pytest.raises(Unavailable, match=r"\b3 .*\b23 blocks"):
        await desk_of_quiet.chain(node).price_path(pool_id_of(desk_of_quiet.stage.weth_pool), Seconds(0))


async def test_more_swaps_than_anybody_should_read_are_refused_with_a_way_out(
    desk_of_quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, pool = desk_of_quiet.chain(await desk_of_quiet.node()), pool_id_of(desk_of_quiet.stage.weth_pool)
    monkeypatch.setattr("zuno.adapters.chain.rpc.prices.MOST_SWAPS", 4)
    assert await chain.price_path(pool, Seconds(0))
    monkeypatch.setattr("zuno.adapters.chain.rpc.prices.MOST_SWAPS", 3)
    with pytest.raises(Unavailable, match=r"\b3 swaps"):
        await chain.price_path(pool, Seconds(0))


# -- what is remembered of positions and pools


@pytest.mark.parametrize("trusted", [0, 1])
async def test_what_is_remembered_is_trusted_for_so_many_blocks(
    desk: Any, monkeypatch: pytest.MonkeyPatch, trusted: int
) -> None:
    monkeypatch.setattr("zuno.adapters.chain.rpc.positions.TRUSTED_BLOCKS", trusted)
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, 10**15)
    node = await desk.node()
    chain = desk.chain(node)
    before = await chain.positions([token])
    stage.pass_time(12)
    asked = len(node.seen)
    after = await chain.positions([token])
    assert after.positions[0].owner == before.positions[0].owner
    assert ("eth_getLogs" in [one["method"] for body in node.seen[asked:] for one in body]) is bool(trusted)


async def test_a_pool_with_a_position_is_found_by_its_filed_key_alone(desk_of_quiet: Any) -> None:
    """PositionManager files keys under 25 bytes of the id; only where it has none are events searched."""
    desk, pool = desk_of_quiet, desk_of_quiet.stage.weth_pool
    node = await desk.node()
    chain = _as_strangers(desk, node)
    assert (await chain.pool(pool_id_of(pool))).key == pool
    assert "eth_getLogs" not in node.methods


async def test_a_stranger_s_token_gets_no_more_gas_than_an_honest_one_needs(desk_of_quiet: Any) -> None:
    desk = desk_of_quiet
    node = await desk.node()
    await _as_strangers(desk, node).pool(pool_id_of(desk.stage.weth_pool))
    questions = {"0x" + calldata.selector(name).hex() for name in ("symbol()", "decimals()")}
    calls = [one["params"][0] for body in node.seen for one in body if one["method"] == "eth_call"]
    asked = [call for call in calls if call["data"] in questions]
    assert len(asked) == 4
    assert {int(call["gas"], 16) for call in asked} == {CALL_GAS}


def _as_strangers(desk: Any, node: Any) -> RpcChain:
    """The same chain for somebody who curates no tokens."""
    from dataclasses import replace

    chain = RpcChain(replace(desk.stage.info, tokens=()), [node.url], desk.cache, desk.stage.wallet, QUICK)
    desk._stack.push_async_callback(chain.close)
    return chain


# -- batches


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32600, "message": "batch requests are not supported"},
        {"code": -32601, "message": "method not found"},
        {"code": -32000, "message": "batch size too large"},
    ],
)
async def test_a_node_without_batches_is_asked_one_by_one_from_then_on(desk_of_quiet: Any, error: Any) -> None:
    desk = desk_of_quiet

    def single(number: int, requests: list[dict[str, Any]]) -> Any:
        return desk.reply({"id": None}, error=error) if len(requests) > 1 else None

    node = await desk.node(single)
    chain = desk.chain(node, policy=QUICK)
    assert (await chain.owned(desk.stage.wallet)).complete
    assert (await chain.pools()).notes == ()
    assert sum(len(body) > 1 for body in node.seen) == 1


@pytest.mark.parametrize("message", ["rate limit exceeded for this batch", "internal error", "server is shutting down"])
async def test_a_batch_that_fails_is_another_node_s_turn_not_an_inability(desk_of_quiet: Any, message: str) -> None:
    desk = desk_of_quiet

    def failing(number: int, requests: list[dict[str, Any]]) -> Any:
        error = {"code": -32000, "message": message}
        return desk.reply({"id": None}, error=error) if len(requests) > 1 else None

    alone = await desk.node(failing)
    owned = await desk.chain(alone, policy=QUICK, cache=desk.cache / "alone").owned(desk.stage.wallet)
    assert message in owned.note
    helper = await desk.node()
    assert (await desk.chain(await desk.node(failing), helper, policy=QUICK).owned(desk.stage.wallet)).complete
    assert any(len(body) > 1 for body in helper.seen)


@pytest.mark.parametrize("name", [[1], {"a": 1}, None, "1", 1.5])
async def test_a_batch_whose_answers_have_odd_names(desk_of_quiet: Any, name: Any) -> None:
    desk = desk_of_quiet
    node = await desk.node()
    plain = node.answer

    def renamed(body: bytes) -> bytes:
        replies = json.loads(plain(body))
        return json.dumps([{**one, "id": name} for one in replies] if isinstance(replies, list) else replies).encode()

    node.answer = renamed
    owned = await desk.chain(node, policy=QUICK).owned(desk.stage.wallet)
    assert not owned.complete
    assert "JSON-RPC" in owned.note
