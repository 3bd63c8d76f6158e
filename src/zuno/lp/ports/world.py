"""Worlds we own and may push around: the embedded simulation and the local devnet. Never a public chain."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from zuno.amm.model import Block
from zuno.kernel.units import HexId


@dataclass(frozen=True, slots=True)
class PoolMove:
    """One pool's ETH price in USDC before and after a push."""

    pool_id: HexId
    label: str
    before: Fraction
    after: Fraction


@dataclass(frozen=True, slots=True)
class PriceMove:
    """A push of the ETH price: the reference and every pool."""

    block: Block
    reference_before: Fraction
    reference_after: Fraction
    pools: tuple[PoolMove, ...]


class World(Protocol):
    """Promises that a push goes through ordinary swaps, leaves every pool within 5 bps of the target,
    and takes the reference price along; a push that cannot be made changes nothing."""

    async def move(self, percent: Decimal) -> PriceMove: ...


class ResettableWorld(World, Protocol):
    """A world that can be made anew from a seed."""

    async def reset(self, seed: int) -> Block: ...


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A local node as its own process and its own answers describe it."""

    running: bool
    url: str | None
    pid: int | None
    block: Block | None
    note: str = ""


class LocalNode(Protocol):
    """`up` returns when the node answers and finds a running one; `down` ends only the process it started."""

    async def up(self, port: int, background: bool) -> NodeStatus: ...
    async def status(self) -> NodeStatus: ...
    async def down(self) -> NodeStatus: ...
