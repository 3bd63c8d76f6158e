"""The readers of one chain, created once, and reading a whole answer at one block."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.discovery import DeploymentBlock, OwnedReader, PoolKeyReader
from zuno.adapters.chain.rpc.errors import NodeBehind, NoSuchState
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.positions import PositionReader
from zuno.adapters.chain.rpc.prices import BlockTimes, PriceReader
from zuno.adapters.chain.rpc.scan import Scanner
from zuno.adapters.chain.rpc.storage import Storage
from zuno.adapters.chain.rpc.tokens import TokenReader
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed, PoolNotInitialized, PoolRefusal, Unavailable
from zuno.lp.model.chains import ChainInfo

T = TypeVar("T")
_TRIES: Final = 3
_PAUSE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Readers:
    info: ChainInfo
    node: RpcNode
    scanner: Scanner
    deployed: DeploymentBlock
    storage: Storage
    positions: PositionReader
    keys: PoolKeyReader
    tokens: TokenReader
    owned: OwnedReader
    times: BlockTimes
    prices: PriceReader

    @classmethod
    def create(cls, node: RpcNode, info: ChainInfo, cache: JsonCache) -> Readers:
        deployment, scanner, times = info.deployment, Scanner(node), BlockTimes(node)
        deployed = DeploymentBlock(node, deployment.pool_manager, cache)
        positions = PositionReader(node, deployment.position_manager, cache)
        return cls(
            info=info,
            node=node,
            scanner=scanner,
            deployed=deployed,
            storage=Storage(node, deployment.pool_manager),
            positions=positions,
            keys=PoolKeyReader(node, scanner, deployed, info, cache),
            tokens=TokenReader(node, info, cache),
            owned=OwnedReader(node, scanner, positions, deployed, info, cache),
            times=times,
            prices=PriceReader(scanner, times, deployment.pool_manager),
        )


class PinnedRead:
    """Reads at the head, and again at the new head if that block vanishes meanwhile."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def __call__(self, read: Callable[[Block], Awaitable[T]], *, by_events: bool = False) -> T:
        """State pinned by its hash is of that block. `by_events`: the head is confirmed after reading events."""
        node, times = self._readers.node, self._readers.times
        for left in reversed(range(_TRIES)):
            if left < _TRIES - 1:
                await asyncio.sleep(_PAUSE)  # a block, or a machine behind the same address, may be a moment late
            head = await node.head()
            times.forget_after(head.number - self._readers.info.confirmations)
            by_number = node.provider.by_number
            try:
                answer = await read(head)
                if by_events or node.provider.by_number > by_number:
                    await node.confirm(head)
                return answer
            except PoolNotInitialized:
                raise
            except PoolRefusal as refusal:
                raise Malformed(f"the node's numbers are of no pool that can be: {refusal}") from refusal
            except NoSuchState as lost:
                times.forget_after(-1)
                if isinstance(lost, NodeBehind):
                    node.provider.skip_last_node()  # another node may be further
                if not left:
                    raise Unavailable(f"block {head.number} could not be read to the end: {lost}") from lost
        raise AssertionError("unreachable")
