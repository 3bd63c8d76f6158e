"""Reading a chain: pools, positions and their past. Nothing behind this port can spend."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from zuno.amm.model import Block, Depth, LpPosition, PoolState
from zuno.kernel.units import Address, HexId, Seconds
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.history import GrowthSample, PositionHistory, PricedBlock, SwapFees
from zuno.lp.model.market import HOUR, GasQuote

STALE: Final = 900
"""Seconds: a live chain's newest block older than this, or as far ahead of us, raises and clears no alert."""


@dataclass(frozen=True, slots=True)
class PoolsFound:
    """Pools at one block, in the order of their keys. `notes` say what could not be searched; empty notes mean the
    search was complete."""

    block: Block
    pools: tuple[PoolState, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """A position that was asked for and could not be read, and why."""

    id: int
    reason: str
    unread: bool = False
    """True: it may well exist, the world did not answer for it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Positions at one block. What could not be read is listed, never left out silently."""

    block: Block
    positions: tuple[LpPosition, ...]
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnedPositions:
    """The position ids a wallet holds. `complete` is True only when their count equals the balance on chain."""

    block: Block
    owner: Address
    ids: tuple[int, ...]
    balance: int
    complete: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class PastPositions:
    """The position ids that left a wallet, burnt or given away. `complete`: the whole past was searched."""

    block: Block
    owner: Address
    ids: tuple[int, ...]
    complete: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Holdings:
    """A wallet's positions, found and read at one block."""

    owned: OwnedPositions
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class StateAtBlock:
    """Pools and positions of one block that somebody else named."""

    block: Block
    pools: Mapping[HexId, PoolState]
    positions: Mapping[int, LpPosition]


@dataclass(frozen=True, slots=True)
class PositionsWindow:
    """What positions did from a past block to now."""

    opened: Block
    closed: Block
    fees: Mapping[int, tuple[int, int]]
    """What each earned in both tokens; one whose liquidity was another at the beginning is left out."""
    paths: Mapping[HexId, tuple[PricedBlock, ...]]
    """By pool, prices an hour apart or a little more, from `opened` to `closed`."""


@dataclass(frozen=True, slots=True)
class SurveyedPool:
    """A pool at the head, and how it came there."""

    depth: Depth
    marks: tuple[GrowthSample, ...]
    """Its price at past moments, and what its fee growth was beside one another; none from before it had a price."""
    path: tuple[PricedBlock, ...] | None = None
    """Its price after the last swap of every five minutes; None: not asked for, or not told by this node."""


class Chain(Protocol):
    """Promises, for every adapter:

    - Every answer belongs to one block and carries it; two facts of one answer are never of two blocks.
    - Integers are the contracts' own: amounts and fees are what a full burn would pay at that block.
    - `NotFound` for a well-formed id that names nothing, `PoolNotInitialized` for a pool without a price.
    - `Unavailable` when the world did not answer, `Malformed` when it answered nonsense or is another chain;
      where part of an answer is known it is returned and the rest is named in `missing`, `note` or `notes`.
    - Text from the chain (symbols) arrives sanitised.
    """

    @property
    def info(self) -> ChainInfo: ...

    async def head(self) -> Block:
        """The block that "now" means."""

    async def wallet(self) -> Address | None:
        """The wallet this chain is watched for, if one is configured or built in."""

    async def pools(self) -> PoolsFound:
        """Every pool of the curated pairs that has a price, plus those found by their Initialize logs."""

    async def pool(self, pool_id: HexId) -> PoolState:
        """One pool by its id."""

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        """That pool after the last block not later than `moment`; `Unavailable` where the past is not kept."""

    async def depth(self, pool_id: HexId) -> Depth:
        """The pool at the head with its initialised ticks around the price."""

    async def owned(self, owner: Address) -> OwnedPositions:
        """The ids `owner` holds now."""

    async def holdings(self, owner: Address) -> Holdings:
        """The ids `owner` holds now, and those positions, both at the same block."""

    async def holdings_of(self, owners: Sequence[Address]) -> tuple[Holdings, ...]:
        """The same of many wallets, all at one block and in few requests; in the order asked, duplicates once."""

    async def past_positions(self, owner: Address) -> PastPositions:
        """The ids `owner` held once and does not hold now, the newest last."""

    async def positions(self, ids: Sequence[int]) -> Snapshot:
        """These positions, all at one block, in the order asked; duplicates are read once."""

    async def witness(self, block: Block, pool_ids: Sequence[HexId], position_ids: Sequence[int]) -> StateAtBlock:
        """These pools and positions as they were at this very block; what did not exist then is left out.

        `Refused` where the chain has no such block: then whoever speaks of it saw another chain, or none.
        `Unavailable` where its state is not kept any more.
        """

    async def history(self, position_id: int, since: Seconds | None) -> PositionHistory:
        """What happened to a position from `since` (None: from its first mint) to now, and to those it was rebalanced
        from: as this home's journal has it, for positions of other homes as the chain suggests."""

    async def window(self, positions: Sequence[LpPosition], since: Seconds) -> PositionsWindow:
        """These positions of the present over the time from `since`, in a handful of requests however many they are. It
        opens near `since`, or with the chain. `Unavailable` where the past is not kept."""

    async def price_path(self, pool_id: HexId, since: Seconds, step: int = HOUR) -> tuple[PricedBlock, ...]:
        """The pool's price after its last swap of each hour, or other `step`, from `since` to now, oldest first."""

    async def swap_fees(self, pool_id: HexId, since: Seconds) -> SwapFees:
        """What the pool's swaps from `since` to now say it paid to liquidity; needs no past state.

        Equal to the growth of its state but for rounding while liquidity stays the same, and close where it does not:
        `uneven` counts those. `Unavailable` where there was no swap.
        """

    async def gas(self) -> GasQuote:
        """What gas costs at the head."""

    async def close(self) -> None:
        """Let go of connections. Calling it twice is harmless."""


class SurveyedChain(Chain, Protocol):
    """A chain that many pools can be read of at once."""

    async def survey(
        self,
        pool_ids: Sequence[HexId],
        moments: Sequence[Seconds],
        since: Mapping[HexId, Seconds],
        priced: Collection[HexId] = (),
    ) -> tuple[SurveyedPool, ...]:
        """These pools now, with the liquidity within some 2 % of the price; those of `since` also in the blocks nearest
        to the later ones of these moments, which are days apart, and those `priced` with their price from then on. In a
        handful of requests however many pools they are. `Unavailable` where neither past state nor Swap logs are
        kept."""
