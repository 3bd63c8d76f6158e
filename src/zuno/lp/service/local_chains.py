"""The local worlds as a person drives them: make one, push its price, start and stop its node."""

from dataclasses import dataclass
from pathlib import Path

from zuno.kernel import arguments
from zuno.kernel.errors import UsageError
from zuno.kernel.numbers_text import decimal_text, time_text
from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lp.ports.world import LocalNode, NodeStatus, ResettableWorld, World
from zuno.lp.service.to_views import PRICE_DIGITS, place
from zuno.lp.service.views import ChainView, bare_amount, describe_place
from zuno.present.document import Document, document, facts, table
from zuno.present.values import count, id_, when

MAX_SEED = 2**32 - 1


class PoolMoveView(View):
    id: str
    label: str
    before: str
    after: str


class MoveView(ChainView):
    percent: str
    reference_before: str
    reference_after: str
    price_unit: str
    pools: tuple[PoolMoveView, ...]

    def to_document(self) -> Document:
        moves = [("reference", self.reference_before, self.reference_after)]
        moves += [(pool.label, pool.before, pool.after) for pool in self.pools]
        unit = self.price_unit.partition(" per ")[0]
        rows = ((label, bare_amount(before, unit), bare_amount(after, unit)) for label, before, after in moves)
        return document(
            f"ETH {self.percent} %, {self.price_unit}",
            table(("", "before", "after"), rows),
            context=describe_place(self.chain, self.block),
        )


class ResetView(View):
    chain: str
    seed: int
    block: int
    timestamp: int

    def to_document(self) -> Document:
        made = f"A new world of seed {self.seed} on {self.chain}"
        return document(f"{made}: block {self.block}, {time_text(self.timestamp)}.")


class NodeView(View):
    running: bool
    url: str | None
    pid: int | None
    block: int | None
    timestamp: int | None
    file: str
    note: str

    def to_document(self) -> Document:
        if not self.running:
            return document(self.note or "No devnet is running; `zuno devnet up --background` starts one.")
        return document(
            f"Devnet at {self.url}",
            facts(
                ("process", "unknown" if self.pid is None else str(self.pid)),
                None if self.block is None else ("block", count(self.block)),
                ("chain time", when(self.timestamp)),
                ("addresses and the test key", id_(self.file)),
            ),
            notes=[self.note],
        )


@dataclass(frozen=True, slots=True)
class LocalChain:
    """A world we own. Nothing here reaches a public chain."""

    chain: str
    world: World

    async def move(self, percent: str) -> MoveView:
        wanted = arguments.parse_percent(percent)
        moved = await self.world.move(wanted)
        return MoveView(
            **place(self.chain, moved.block),
            percent=str(wanted),
            reference_before=decimal_text(moved.reference_before, PRICE_DIGITS),
            reference_after=decimal_text(moved.reference_after, PRICE_DIGITS),
            price_unit="USDC per ETH",
            pools=tuple(
                PoolMoveView(
                    id=pool.pool_id,
                    label=pool.label,
                    before=decimal_text(pool.before, PRICE_DIGITS),
                    after=decimal_text(pool.after, PRICE_DIGITS),
                )
                for pool in moved.pools
            ),
        )


@dataclass(frozen=True, slots=True)
class SimPlayground(LocalChain):
    """The simulation can also be made anew."""

    world: ResettableWorld
    default_seed: int

    async def reset(self, seed: int | None = None) -> ResetView:
        """A world from that seed, or the one everybody starts in."""
        seed = self.default_seed if seed is None else seed
        if not 0 <= seed <= MAX_SEED:
            raise UsageError(f"A seed is a whole number from 0 to {MAX_SEED}.")
        block = await self.world.reset(seed)
        return ResetView(seed=seed, **place(self.chain, block))


@dataclass(frozen=True, slots=True)
class Devnet:
    node: LocalNode
    file: Path

    async def up(self, port: int, *, background: bool) -> NodeView:
        if not 0 <= port <= 65_535:
            raise UsageError("A port is a whole number from 0 to 65535 (0 picks a free one).")
        return self._view(await self.node.up(port, background))

    async def status(self) -> NodeView:
        return self._view(await self.node.status())

    async def down(self) -> NodeView:
        return self._view(await self.node.down())

    def _view(self, status: NodeStatus) -> NodeView:
        block = status.block
        number, timestamp = (block.number, block.timestamp) if block else (None, None)
        return derive(NodeView, status, block=number, timestamp=timestamp, file=str(self.file))
