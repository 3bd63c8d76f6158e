"""What the gate works with on one chain: eyes, hands, a pen, and the limits its owner has set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal

from zuno.domain.chains import ChainInfo
from zuno.domain.execution import Bounds
from zuno.domain.units import Address, HexId, Millis
from zuno.ports.chain import Chain
from zuno.ports.journal import Journal
from zuno.ports.market import Feeds
from zuno.ports.signing import NodeKey
from zuno.ports.spending import Signer, Writer

Turn = Callable[[str], AbstractContextManager[None]]
"""Holds a name alone among all processes of a home; `Refused` at once where somebody else holds it."""
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the gate waits for a chain, in seconds."""

    look: float = 2.0
    """Between two looks for a receipt."""
    speed_up: float = 45.0
    """Without a receipt for so long, the same step is signed again at a higher fee."""
    patience: float = 300.0
    """Then it is left in flight: applying again goes on where this stopped."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the owner allows whatever a plan says."""

    bounds: Bounds = field(default_factory=Bounds)
    usd_per_plan: Decimal = Decimal(25_000)
    """The most that may leave the wallet by one plan; what a position pays back first does not count."""
    usd_per_day: Decimal = Decimal(100_000)
    """The same over 24 hours."""
    hooks: frozenset[Address] = frozenset()
    """Hooks somebody has looked at."""


@dataclass(frozen=True, slots=True)
class Hands:
    """One chain, one wallet."""

    chain: Chain
    writer: Writer
    signer: Signer
    feeds_of: Callable[[HexId], Feeds]
    journal: Journal
    key: NodeKey
    turn: Turn
    sleep: Sleep
    stopwatch: Callable[[], float]
    now: Callable[[], Millis]
    limits: Limits = field(default_factory=Limits)
    pace: Pace = field(default_factory=Pace)

    @property
    def info(self) -> ChainInfo:
        return self.chain.info

    @property
    def wallet(self) -> Address:
        return self.signer.address

    @property
    def local(self) -> bool:
        """A chain whose money is play money: only there a script may say yes for its owner."""
        return self.info.testnet

    @property
    def depth(self) -> int:
        """Blocks, its own counted, before a receipt is final."""
        return max(1, self.info.confirmations)
