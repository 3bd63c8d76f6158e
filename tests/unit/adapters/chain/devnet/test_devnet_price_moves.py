"""A push of the devnet's price: all pools and the reference together, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.chain.devnet.process import DevnetProcess, DevnetWorld
from zuno.adapters.chain.devnet.serve_world import PriceMover, open_node
from zuno.adapters.chain.world import DEFAULT_SEED, SWAP_ROUTER, WETH
from zuno.kernel.errors import Broken, Refused
from zuno.lp.plan import calldata
from zuno_devnet.artifacts import find_artifacts
from zuno_devnet.keys import dev_address
from zuno_devnet.node import DevnetNode
from zuno_devnet.rpc import Rpc
from zuno_devnet.server import serve

Opened = tuple[DevnetNode, PriceMover]
TRADER = "0x" + dev_address("trader").hex()


@pytest.fixture(scope="module")
def opened(world_cache: Path, node_modules: Path) -> Opened:
    return open_node(find_artifacts(node_modules), world_cache, DEFAULT_SEED)


@pytest.fixture
def stage(opened: Opened) -> Iterator[Opened]:
    """The world as the story left it, whatever the last test did to it."""
    node, _ = opened
    before = node.snapshot()
    yield opened
    assert node.revert(before)


def ask(stage: Opened, method: str, *values: Any) -> Any:
    node, pusher = stage
    return Rpc(node, pusher.methods())._call(method, list(values))


def standing(node: DevnetNode) -> tuple[Any, ...]:
    return node.chain.head.hash, len(node.chain.store), len(node.pool), node.chain.nonce(dev_address("trader"))


class Started(DevnetProcess):
    """A devnet whose node runs in this process."""

    def __init__(self, url: str) -> None:
        super().__init__(Path(), Path(), DEFAULT_SEED)
        self._url = url

    def url(self) -> str:
        return self._url


def withdraw_permission(stage: Opened) -> None:
    """The trader may no longer pay with WETH: some pools can still be pushed down, others cannot."""
    data = calldata.call("approve(address,uint256)", SWAP_ROUTER, 0)
    ask(stage, "eth_sendTransaction", {"from": TRADER, "to": WETH.address, "data": "0x" + data.hex()})


@pytest.mark.slow
async def test_a_push_that_fails_half_way_leaves_no_block(stage: Opened) -> None:
    node, pusher = stage
    withdraw_permission(stage)
    before = standing(node)
    reference = ask(stage, "zuno_reference")
    with serve(node, 0, pusher.methods()) as url:
        world = DevnetWorld(Started(url))
        with pytest.raises(Broken, match="moved"):
            await world.move(Decimal("-3"))
        assert standing(node) == before
        assert await world.reference() == Fraction(int(reference), 10**6)
        with pytest.raises(Refused, match="between"):
            await world.move(Decimal("-90"))
    assert standing(node) == before


async def test_a_push_the_trader_cannot_pay_for_leaves_no_block(stage: Opened) -> None:
    node, pusher = stage
    purse = node.chain.balance(dev_address("trader"))
    ask(stage, "eth_sendTransaction", {"from": TRADER, "to": "0x" + "99" * 20, "value": purse - 10**17})
    before = standing(node)
    with serve(node, 0, pusher.methods()) as url, pytest.raises(Broken, match="moved"):
        await DevnetWorld(Started(url)).move(Decimal("-3"))
    assert standing(node) == before


@pytest.mark.slow
def test_a_push_takes_the_reference_along(stage: Opened) -> None:
    before = int(ask(stage, "zuno_reference"))
    moved = ask(stage, "zuno_move", "2.5")
    after = int(ask(stage, "zuno_reference"))
    assert (int(moved["referenceBefore"]), int(moved["referenceAfter"])) == (before, after)
    assert after == before * 1025 // 1000
    for pool in moved["pools"]:
        assert abs(int(pool["after"]) - after) * 10_000 <= 5 * after, pool["label"]
    # A second push starts from where the first one ended.
    assert int(ask(stage, "zuno_move", "-1")["referenceBefore"]) == after


@pytest.mark.parametrize(
    "percent", ["NaN", "sNaN", "Infinity", "-Infinity", "1e999999", "", "ten", 3, 2.5, True, [], {}]
)
def test_what_is_no_percentage_is_refused_as_such(stage: Opened, percent: Any) -> None:
    node, _ = stage
    before = standing(node)
    with pytest.raises(Refused) as caught:
        ask(stage, "zuno_move", percent)
    assert getattr(caught.value, "code", None) == -32602
    assert standing(node) == before
