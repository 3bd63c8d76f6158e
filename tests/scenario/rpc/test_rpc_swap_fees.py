"""Fees told by Swap events alone: right on a real pool, and refused where a node's events cannot be the whole story."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zuno.adapters.chain.rpc import RpcPolicy
from zuno.adapters.chain.rpc.positions import pool_id_of
from zuno.kernel.errors import Malformed, Unavailable, ZunoError
from zuno.kernel.units import Seconds

QUICK = RpcPolicy(timeout=60, rounds=1, cool_down=600)
FEE_WORD = 5 * 32
"""Where the fee stands among the data of a Swap event."""


def bending(spoil: Callable[[list[Any]], list[Any]]) -> Any:
    def bend(asked: Any, reply: Any) -> Any:
        return {**reply, "result": spoil(reply["result"])} if asked["method"] == "eth_getLogs" else reply

    return bend


def dearer(log: Any) -> Any:
    data = bytes.fromhex(log["data"][2:])
    spoilt = data[:FEE_WORD] + (2_000_000).to_bytes(32, "big") + data[FEE_WORD + 32 :]
    return {**log, "data": "0x" + spoilt.hex()}


@pytest.fixture
def traded(desk: Any) -> Any:
    """Four swaps of one pool in four blocks, and a block more."""
    desk.stage.trade(desk.stage.weth_pool, 2)
    desk.stage.pass_time(12)
    return desk


async def test_swaps_tell_what_the_state_shows(traded: Any) -> None:
    stage, pool = traded.stage, pool_id_of(traded.stage.weth_pool)
    chain = traded.chain(await traded.node())
    told, now = await chain.swap_fees(pool, Seconds(0)), await chain.pool(pool)
    then = await chain.pool_at(pool, told.opened.timestamp)
    assert (told.swaps, told.uneven, told.closed) == (3, 0, now.block)
    hashes = {block.number: "0x" + block.hash.hex() for block in stage.chain.history}
    assert told.opened.hash == hashes[told.opened.number]
    for said, true in (
        (told.growth0_x128, now.fee_growth_global0_x128 - then.fee_growth_global0_x128),
        (told.growth1_x128, now.fee_growth_global1_x128 - then.fee_growth_global1_x128),
    ):
        assert true > 0
        assert abs(said - true) * 10**6 <= true


@pytest.mark.soak(every=2)
@pytest.mark.parametrize(
    ("spoil", "kind", "said"),
    [
        (lambda logs: logs[:-1], Unavailable, "the one that left the pool's price"),
        (lambda logs: [{**logs[0], "blockHash": "0x" + "ab" * 32}, *logs[1:]], Unavailable, "was replaced"),
        (lambda logs: [dearer(log) for log in logs], Malformed, "charges 2000000 pips"),
        (lambda logs: [], Unavailable, "had no swap since"),
    ],
    ids=["the last one missing", "of another fork", "a fee above all", "none"],
)
async def test_events_that_cannot_be_the_story_are_not_counted(
    traded: Any, spoil: Callable[[list[Any]], list[Any]], kind: type[ZunoError], said: str
) -> None:
    def only_swaps(logs: list[Any]) -> list[Any]:
        return spoil(logs) if len(logs) == 4 else logs

    chain = traded.chain(await traded.bent(bending(only_swaps)), policy=QUICK)
    with pytest.raises(kind, match=said):
        await chain.swap_fees(pool_id_of(traded.stage.weth_pool), Seconds(0))
