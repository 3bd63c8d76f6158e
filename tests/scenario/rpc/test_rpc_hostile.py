"""Nodes that lie or garble single fields: our own errors that name the node, another node's answer, or the truth."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from eth_abi.abi import decode, encode

from zuno.adapters.chain.rpc import RpcChain, RpcPolicy, abi
from zuno.adapters.chain.rpc.positions import pool_id_of
from zuno.kernel.errors import Malformed, NotFound, PoolNotInitialized, Unavailable, UsageError, ZunoError
from zuno.kernel.units import Seconds
from zuno.lp.model.history import PositionHistory
from zuno.lp.ports.chain import Holdings, PoolsFound
from zuno.lp.rules.attribution import attribute

QUICK = RpcPolicy(timeout=60, rounds=1, cool_down=600)
ZEROS = "0x" + "00" * 32
SETTLED = 1_700_000_300
TURNS = [15, pytest.param(30, marks=pytest.mark.soak)]


# -- answers that are not answers

Spoil = Callable[[dict[str, Any]], Any]


def without(name: str) -> Spoil:
    return lambda log: {key: value for key, value in log.items() if key != name}


def with_(**fields: Any) -> Spoil:
    return lambda log: {**log, **fields}


SPOILT: dict[str, Spoil] = {
    "no index": without("logIndex"),
    "no topics": without("topics"),
    "too few topics": lambda log: {**log, "topics": log["topics"][:1]},
    "a short topic": lambda log: {**log, "topics": [*log["topics"][:-1], "0x12"]},
    "little data": with_(data="0x00"),
    "half a byte": with_(data="0x123"),
    "a negative block": with_(blockNumber="-0x1"),
    "a block beyond all bounds": with_(blockNumber="0x" + "f" * 64),
    "a block that was not asked for": with_(blockNumber="0x7fffffff"),
    "another contract": with_(address="0x" + "12" * 20),
    "a number as index": with_(logIndex=7),
    "removed, perhaps": with_(removed="perhaps"),
    "no object": lambda log: "0x",
}


def spoiling(method: str, spoil: Callable[[Any], Any]) -> Any:
    def bend(asked: Any, reply: Any) -> Any:
        return {**reply, "result": spoil(reply["result"])} if asked["method"] == method and "result" in reply else reply

    return bend


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
async def test_a_spoilt_event_is_another_node_s_turn_and_else_names_the_node(desk_of_quiet: Any, spoil: Spoil) -> None:
    desk, stage = desk_of_quiet, desk_of_quiet.stage
    liar = await desk.bent(spoiling("eth_getLogs", lambda logs: [spoil(log) for log in logs]))
    with pytest.raises(Malformed, match=liar.url.removeprefix("http://")):
        await desk.chain(liar, policy=QUICK).price_path(pool_id_of(stage.weth_pool), Seconds(0))
    helped = await desk.chain(liar, await desk.node(), policy=QUICK).owned(stage.wallet)
    assert (helped.ids, helped.complete) == ((3, 5), True)


async def test_a_search_that_meets_spoilt_events_is_incomplete_and_says_whose(desk_of_quiet: Any) -> None:
    desk = desk_of_quiet
    liar = await desk.bent(spoiling("eth_getLogs", lambda logs: [without("logIndex")(log) for log in logs]))
    owned = await desk.chain(liar, policy=QUICK).owned(desk.stage.wallet)
    assert (owned.ids, owned.balance, owned.complete) == ((), 2, False)
    assert liar.url.removeprefix("http://") in owned.note


@pytest.mark.soak(every=3)
@pytest.mark.parametrize(
    "spoil",
    [
        without("logs"),
        with_(logs=None),
        with_(gasUsed="-0x5"),
        with_(transactionHash=ZEROS),
        lambda receipt: {
            **receipt,
            "transactionHash": ZEROS,
            "logs": [{**log, "transactionHash": ZEROS} for log in receipt["logs"]],
        },
        lambda receipt: {**receipt, "logs": [{**log, "transactionHash": ZEROS} for log in receipt["logs"]]},
        lambda _: [],
    ],
    ids=["no logs", "empty logs", "negative gas", "another name", "another transaction", "foreign events", "a list"],
)
async def test_a_spoilt_receipt(desk_of_quiet: Any, spoil: Spoil) -> None:
    desk = desk_of_quiet
    liar = await desk.bent(spoiling("eth_getTransactionReceipt", spoil))
    with pytest.raises(Malformed, match=liar.url.removeprefix("http://")):
        await desk.chain(liar, policy=QUICK).history(3, None)
    told = await desk.chain(liar, await desk.node(), policy=QUICK).history(3, None)
    assert told == await desk.chain(await desk.node(), cache=desk.cache / "honest").history(3, None)


@pytest.mark.soak
async def test_a_receipt_that_its_block_s_events_do_not_know(desk_of_quiet: Any) -> None:
    def shifted(receipt: Any) -> Any:
        return {**receipt, "logs": [{**log, "logIndex": hex(int(log["logIndex"], 16) + 50)} for log in receipt["logs"]]}

    liar = await desk_of_quiet.bent(spoiling("eth_getTransactionReceipt", shifted))
    with pytest.raises(Unavailable, match="differ"):
        await desk_of_quiet.chain(liar, policy=QUICK).history(3, None)


async def test_a_range_that_no_pool_has_is_the_node_s_nonsense_not_a_refusal(desk_of_quiet: Any) -> None:
    def far_out(asked: Any, reply: Any) -> Any:
        if asked["method"] != "eth_call" or not asked["params"][0]["data"].startswith("0x" + abi.MULTICALL.hex()):
            return reply
        (answers,) = decode(["bytes[]"], bytes.fromhex(reply["result"][2:]))
        if len(answers) != 2:
            return reply
        info = int.from_bytes(answers[0], "big") & ~(0xFFFFFF << 32) | 0x7FFFFF << 32
        return {**reply, "result": "0x" + encode(["bytes[]"], [[abi.word(info), answers[1]]]).hex()}

    with pytest.raises(Malformed, match="pool"):
        await desk_of_quiet.chain(await desk_of_quiet.bent(far_out), policy=QUICK).positions([3])


async def test_an_event_told_twice_is_not_counted_twice(desk_of_quiet: Any) -> None:
    desk = desk_of_quiet
    liar = await desk.bent(spoiling("eth_getLogs", lambda logs: logs * 2))
    with pytest.raises(Malformed, match="twice"):
        await desk.chain(liar, policy=QUICK).price_path(pool_id_of(desk.stage.weth_pool), Seconds(0))


async def test_a_block_of_two_chains_is_no_block(desk_of_quiet: Any) -> None:
    def forked(logs: Any) -> Any:
        twin = {**logs[-1], "logIndex": "0x77", "blockHash": "0x" + "ab" * 32} if logs else None
        return [*logs, twin] if twin else logs

    liar = await desk_of_quiet.bent(spoiling("eth_getLogs", forked))
    with pytest.raises(Unavailable, match=r"\bblock \d+ .*\bchains\b"):
        await desk_of_quiet.chain(liar, policy=QUICK).price_path(pool_id_of(desk_of_quiet.stage.weth_pool), Seconds(0))


async def test_a_header_of_another_number_ends_the_search_for_a_moment(desk_of_quiet: Any) -> None:
    """Believed, it would send the search round in circles."""
    desk, pool = desk_of_quiet, pool_id_of(desk_of_quiet.stage.weth_pool)

    def shifted(asked: Any, reply: Any) -> Any:
        if asked["method"] != "eth_getBlockByNumber" or asked["params"][0] in ("latest", "0x0"):
            return reply
        return {**reply, "result": {**reply["result"], "number": "0x1"}}

    liar = await desk.bent(shifted)
    async with asyncio.timeout(60):
        with pytest.raises(Malformed, match=r"\banother\b"):
            await desk.chain(liar, policy=QUICK).pool_at(pool, Seconds(SETTLED))
        helped = await desk.chain(liar, await desk.node(), policy=QUICK).pool_at(pool, Seconds(SETTLED))
    assert helped.block.timestamp <= SETTLED


async def test_times_that_run_backwards_are_not_searched(desk_of_quiet: Any) -> None:
    def wild(asked: Any, reply: Any) -> Any:
        if asked["method"] != "eth_getBlockByNumber" or asked["params"][0] in ("latest", "0x0"):
            return reply
        return {**reply, "result": {**reply["result"], "timestamp": "0x1"}}

    chain = desk_of_quiet.chain(await desk_of_quiet.bent(wild), policy=QUICK)
    with pytest.raises(Malformed, match=r"\bdated\b"):
        await chain.pool_at(pool_id_of(desk_of_quiet.stage.weth_pool), Seconds(SETTLED))


async def test_swaps_dated_against_their_order_are_no_prices(desk_of_quiet: Any) -> None:
    def shuffled(logs: Any) -> Any:
        return [{**log, "blockTimestamp": hex(1_700_000_000 - at)} for at, log in enumerate(logs)]

    chain = desk_of_quiet.chain(await desk_of_quiet.bent(spoiling("eth_getLogs", shuffled)), policy=QUICK)
    with pytest.raises(Malformed, match="order"):
        await chain.price_path(pool_id_of(desk_of_quiet.stage.weth_pool), Seconds(0))


# -- whatever an answer may turn into

NASTY: tuple[Any, ...] = (
    *(None, True, -1, 0, 7, 2**70, 1e308, "", "0x", "0x0", "0x1", "-0x1", "zz", "latest", "\ud800", [], {}, [[]]),
    *({"a": {"b": []}}, "0x" + "f" * 64, "0x" + "f" * 65, "0x" + "0" * 9_000, "0x" + "ff" * 32 * 9),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def mutated(value: Any, chance: random.Random) -> Any:
    """The same JSON with one place dropped, doubled, replaced or bent; often a whole item is left out of a list."""
    if isinstance(value.get("result"), list) and value["result"] and chance.random() < 1 / 3:
        del value["result"][chance.randrange(len(value["result"]))]
        return value
    whole = [value]
    holder: Any = whole
    *way, last = (0, *chance.choice(places(value)))
    for step in way:
        holder = holder[step]
    old = holder[last]
    match chance.randrange(6):
        case 0 if holder is not whole:
            del holder[last]
        case 1 if isinstance(holder, list) and holder is not whole:
            holder.insert(last, old)
        case 2 if isinstance(old, str) and len(old) > 3:
            at = chance.randrange(2, len(old))
            holder[last] = old[:at] + chance.choice("0f") + old[at + 1 :]
        case 3 if isinstance(old, str) and len(old) > 3:
            holder[last] = old[: chance.randrange(2, len(old))]
        case 4:
            holder[last] = json.loads("[" * 12 + "]" * 12)
        case _:
            holder[last] = chance.choice(NASTY)
    return whole[0]


QUESTIONS: dict[str, Callable[[RpcChain, Any], Any]] = {
    "holdings": lambda chain, stage: chain.holdings(stage.wallet),
    "pools": lambda chain, stage: chain.pools(),
    "pool": lambda chain, stage: chain.pool(pool_id_of(stage.native_pool)),
    "past": lambda chain, stage: chain.pool_at(pool_id_of(stage.weth_pool), Seconds(SETTLED)),
    "path": lambda chain, stage: chain.price_path(pool_id_of(stage.weth_pool), Seconds(SETTLED)),
    "history": lambda chain, stage: chain.history(3, None),
    "lost": lambda chain, stage: chain.history(4, None),
    "gas": lambda chain, stage: chain.gas(),
}


Change = tuple[tuple[Any, ...], Any, Any]
"""Where a reply was spoilt, what stood there, and what stands there now."""

UNTELLABLE = {
    "eth_call": {"result"},
    "eth_getBalance": {"result"},
    "eth_gasPrice": {"result"},
    "eth_maxPriorityFeePerGas": {"result"},
    "eth_feeHistory": {"baseFeePerGas", "reward", "gasUsedRatio"},
    "eth_getBlockByNumber": {"number", "timestamp"},
    "eth_getTransactionReceipt": {"gasUsed", "effectiveGasPrice"},
}
"""Figures that one node alone tells, and that it can change into others which may be: no reader can know better."""
FIGURE = re.compile(r"0x[0-9a-f]+")


def changes(old: Any, new: Any, path: tuple[Any, ...] = ()) -> list[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(name for name in new if name not in old)]
        return [change for name in names for change in changes(old.get(name), new.get(name), (*path, name))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [change for at, (one, other) in pairs for change in changes(one, other, (*path, at))]
    return [] if old == new else [(path, old, new)]


def untellable(method: str, spoilt: list[Change]) -> bool:
    """Whether the one thing that changed is one figure in place of another."""
    if len(spoilt) != 1:
        return not spoilt
    path, old, new = spoilt[0]
    if method == "eth_getLogs" and isinstance(old, list) and isinstance(new, list):
        left_out = [log for log in old[:-1] if log not in new]
        return bool(left_out) and left_out[0]["topics"][0] == abi.SWAP  # of those between, no state is left to ask
    told = UNTELLABLE.get(method, set()) & {*path}
    figures = all(isinstance(each, str) and FIGURE.fullmatch(each) for each in (old, new))
    return bool(told) and (figures or isinstance(new, int | float)) and (method != "eth_call" or len(old) == len(new))


def labels(answer: Any) -> Any:
    """What an answer says about itself: that it is partial, computed, or not to be relied on."""
    match answer:
        case Holdings():
            return answer.owned.complete, answer.owned.note, answer.snapshot.missing
        case PoolsFound():
            return answer.notes
        case PositionHistory():
            try:
                told = attribute(answer)
            except ZunoError:
                return "refuted"
            return answer.notes, answer.computed, told.exact
        case _:
            return None


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("question", QUESTIONS)
async def test_one_spoilt_place_anywhere_is_one_of_our_errors_a_label_or_nothing_at_all(
    desk_of_quiet: Any, remembering: Any, question: str, turns: int
) -> None:
    desk, ask = desk_of_quiet, QUESTIONS[question]
    counting, spoilt, done = 0, -1, ("", list[Change]())
    chance = random.Random(question)

    def bend(asked: Any, reply: Any) -> Any:
        nonlocal counting, done
        counting += 1
        if counting != spoilt:
            return reply
        bent = mutated(json.loads(json.dumps(reply)), chance)
        done = asked["method"], changes(reply, bent)
        return bent

    node = await desk.bent(bend, remembering)
    honest = await ask(desk.chain(node, cache=desk.cache / "honest"), desk.stage)
    assert honest is not None
    replies, told, lies = counting, list[str](), list[tuple[str, list[Change]]]()
    for turn in range(turns):
        counting, spoilt = 0, 1 + chance.randrange(replies)
        chain = RpcChain(desk.stage.info, [node.url], desk.cache / str(turn), desk.stage.wallet, QUICK)
        try:
            async with asyncio.timeout(20):
                answer = await ask(chain, desk.stage)
            if answer != honest and labels(answer) == labels(honest) and not untellable(*done):
                lies.append(done)
        except (Unavailable, Malformed, NotFound, PoolNotInitialized, UsageError) as fault:
            told.append(str(fault))
        finally:
            await chain.close()
    assert not lies
    assert told  # the premise: something was spoilt
    assert all(map(str.isprintable, told))
