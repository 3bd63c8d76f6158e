"""Blocks near given times, where several readers share what is remembered and where the chain behind a node changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.prices import BlockTimes
from zuno.amm.model import Block
from zuno.kernel.units import HexId, Seconds

HOUR = 3_600


class ListedBlocks:
    """A node that has these blocks, and can be another chain from now on."""

    def __init__(self, name: str, gaps: Sequence[int]) -> None:
        self.become(name, gaps)

    def become(self, name: str, gaps: Sequence[int]) -> None:
        times = accumulate((1_000, *gaps))
        self.kept = [Block(number, HexId(f"{name}{number}"), Seconds(time)) for number, time in enumerate(times)]

    async def blocks(self, numbers: Iterable[int]) -> dict[int, Block]:
        return {number: self.kept[number] for number in numbers}


def remember(node: ListedBlocks) -> BlockTimes:
    return BlockTimes(cast(RpcNode, node))


async def list_hours(times: BlockTimes, head: Block, since: int) -> list[Block]:
    hours = range(since // HOUR * HOUR + HOUR, head.timestamp, HOUR)
    return await times.list_blocks_near([since, *hours], HOUR, head)


@given(
    gaps=st.lists(st.sampled_from([1, 12, 600, 3_600, 20_000]), min_size=1, max_size=60),
    heads=st.lists(st.integers(0, 60), min_size=1, max_size=4),
    since=st.integers(0, 200_000),
)
async def test_blocks_are_in_order_and_end_with_the_readers_own_head(
    gaps: list[int], heads: list[int], since: int
) -> None:
    node = ListedBlocks("a", gaps)
    times = remember(node)
    for number in heads:  # an older head after a newer one too: two readers may be at different blocks
        head = node.kept[min(number, len(gaps))]
        found = await list_hours(times, head, since)
        assert found[-1] == head
        assert all(before.number < after.number for before, after in pairwise(found))


@pytest.mark.parametrize("confirmations", [0, 1, 3, 12])
@pytest.mark.parametrize(("gap", "count"), [(660, 60), (1_200, 61), (300, 200), (660, 70)])
async def test_nothing_is_remembered_of_a_chain_that_was_made_anew(gap: int, count: int, confirmations: int) -> None:
    node = ListedBlocks("a", [600] * 60)
    times = remember(node)
    for name in ("a", "b"):
        if name == "b":
            node.become(name, [gap] * count)
        head = node.kept[-1]
        for _ in range(2):
            times.forget_after(head.number - confirmations)  # as every read begins
            assert {block.hash[0] for block in await list_hours(times, head, 500)} == {name}
            last = await times.last_by(Seconds(20_000), head)
            assert last is not None
            assert (last.hash[0], last.timestamp <= 20_000 < node.kept[last.number + 1].timestamp) == (name, True)
