"""One block per answer: a reading that starts over rather than mix two chains."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from zuno.adapters.chain.rpc.errors import Behind, NoSuchState
from zuno.adapters.chain.rpc.readers import Readers
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed, PoolNotInitialized, PoolRefusal, Unavailable

T = TypeVar("T")
_TRIES: Final = 3
_PAUSE: Final = 0.2


class Steady:
    """Reads at the head, and again at the new one where that block vanishes meanwhile."""

    def __init__(self, read: Readers) -> None:
        self._read = read

    async def __call__(self, read: Callable[[Block], Awaitable[T]], *, by_events: bool = False) -> T:
        """State pinned by its hash cannot be of another block. Events can: `by_events` says that they make the answer,
        rather than merely name what the state is then asked about."""
        node, times = self._read.node, self._read.times
        for left in reversed(range(_TRIES)):
            if left < _TRIES - 1:
                await asyncio.sleep(_PAUSE)  # a block, or a machine behind the same address, may be a moment late
            head = await node.head()
            times.forget_after(head.number - self._read.info.confirmations)
            by_number = node.by_number
            try:
                answer = await read(head)
                if by_events or node.by_number > by_number:
                    await node.confirm(head)
                return answer
            except PoolNotInitialized:
                raise
            except PoolRefusal as refusal:
                raise Malformed(f"the node's numbers are of no pool that can be: {refusal}") from refusal
            except NoSuchState as lost:
                times.forget_after(-1)
                if isinstance(lost, Behind):
                    node.leave_alone()  # another node may be further
                if not left:
                    raise Unavailable(f"block {head.number} could not be read to the end: {lost}") from lost
        raise AssertionError("unreachable")
