"""What execution needs on one chain: reader, writer, signer, and the limits the owner has set."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal

from zuno.journal.port import Journal
from zuno.kernel.accounts import HomeLock
from zuno.kernel.signing import NodeKey
from zuno.kernel.units import Address, HexId, Millis
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.gas import GasRules
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import Bounds
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.spending import Signer, Writer

AcquireLock = Callable[[str], AbstractContextManager[None]]
"""Locks a name among all processes of a home; `Refused` at once where another process holds it."""
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long the gate waits for a chain, in seconds."""

    poll_interval: float = 2.0
    """Between two polls for a receipt."""
    speed_up: float = 45.0
    """Without a receipt after this long, the same step is signed again at a higher fee."""
    patience: float = 300.0
    """Then the step is left in flight; applying the plan again continues it."""


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """The owner's limits, which hold for every plan."""

    bounds: Bounds = field(default_factory=Bounds)
    usd_per_plan: Decimal = Decimal(25_000)
    """The most that may leave the wallet by one plan; what a position pays back first does not count."""
    usd_per_day: Decimal = Decimal(100_000)
    """The same over 24 hours."""
    hooks: frozenset[Address] = frozenset()
    """Hooks the owner has reviewed."""
    gas: GasRules | None = None
    """What one transaction may cost; None: as the chain's row says."""


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """Reader, writer, signer and limits for one wallet on one chain."""

    chain: Chain
    writer: Writer
    signer: Signer
    feeds_of: Callable[[HexId], Feeds]
    journal: Journal
    key: NodeKey
    lock: AcquireLock
    sleep: Sleep
    stopwatch: Callable[[], float]
    now: Callable[[], Millis]
    killed: Callable[[], HomeLock | None] = lambda: None
    """Why no plan may begin, by the locks of the home; asked before the first signature of every plan."""
    restored: int = 0
    """The newest entry when this home was restored from a backup: later ones may have been lost with the old home."""
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    timeouts: Timeouts = field(default_factory=Timeouts)

    @property
    def info(self) -> ChainInfo:
        return self.chain.info

    @property
    def wallet(self) -> Address:
        return self.signer.address

    @property
    def local(self) -> bool:
        """A testnet: only there may a script approve in place of the owner."""
        return self.info.testnet

    async def read_gas(self, *, late: bool = False) -> GasQuote:
        """What gas costs, by every node there is. What the chain itself charges is the largest that any of them says:
        what is bid above it is not paid, and too little would wait for ever. The tip is given away, so it is the
        smallest; once a transaction is `late`, the largest."""
        first = await self.chain.gas()
        quotes = [first, *await self.writer.list_gas()]
        tips = [quote.priority_fee for quote in quotes]
        data = [quote.l1_fee_per_byte for quote in quotes if quote.l1_fee_per_byte is not None]
        return replace(
            first,
            base_fee=max(quote.base_fee for quote in quotes),
            priority_fee=max(tips) if late else min(tips),
            l1_fee_per_byte=max(data, default=None),
        )

    @property
    def depth(self) -> int:
        """Blocks, its own counted, before a receipt is final."""
        return max(1, self.info.confirmations)
