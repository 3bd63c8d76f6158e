"""The local worlds as a person drives them: make one, push its price, start and stop its node."""

from __future__ import annotations

from pathlib import Path

from zuno.kernel import arguments
from zuno.kernel.errors import UsageError
from zuno.lp.ports.world import LocalNode, NodeStatus, ResettableWorld, World
from zuno.lp.service import to_views
from zuno.lp.service.views import MoveView, NodeView, ResetView

MAX_SEED = 2**32 - 1


class LocalChain:
    """A world we own. Nothing here reaches a public chain."""

    def __init__(self, chain: str, world: World) -> None:
        self._chain = chain
        self._world = world

    async def move(self, percent: str) -> MoveView:
        wanted = arguments.parse_percent(percent)
        return to_views.move_view(self._chain, wanted, await self._world.move(wanted))


class SimPlayground(LocalChain):
    """The simulation can also be made anew."""

    def __init__(self, chain: str, world: ResettableWorld, default_seed: int) -> None:
        super().__init__(chain, world)
        self._resettable = world
        self._default_seed = default_seed

    async def reset(self, seed: int | None = None) -> ResetView:
        """A world from that seed, or the one everybody starts in."""
        seed = self._default_seed if seed is None else seed
        if not 0 <= seed <= MAX_SEED:
            raise UsageError(f"A seed is a whole number from 0 to {MAX_SEED}.")
        block = await self._resettable.reset(seed)
        return ResetView(chain=self._chain, seed=seed, block=block.number, timestamp=block.timestamp)


class Devnet:
    """The local node as a process."""

    def __init__(self, node: LocalNode, file: Path) -> None:
        self._node = node
        self._file = file

    async def up(self, port: int, *, background: bool) -> NodeView:
        if not 0 <= port <= 65_535:
            raise UsageError("A port is a whole number from 0 to 65535 (0 picks a free one).")
        return self._view(await self._node.up(port, background))

    async def status(self) -> NodeView:
        return self._view(await self._node.status())

    async def down(self) -> NodeView:
        return self._view(await self._node.down())

    def _view(self, status: NodeStatus) -> NodeView:
        return NodeView(
            running=status.running,
            url=status.url,
            pid=status.pid,
            block=status.block.number if status.block else None,
            timestamp=status.block.timestamp if status.block else None,
            file=str(self._file),
            note=status.note,
        )
