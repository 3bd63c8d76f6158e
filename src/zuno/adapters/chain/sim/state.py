"""The state of the simulated chain that a transaction may change, and the measured effects of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zuno.adapters.chain.sim.ledger import Ledger, Permissions
from zuno.adapters.chain.states import build_event
from zuno.amm.model import Block, Range
from zuno.amm.pool import Pool, PositionInfo
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.model.history import PositionEvent


@dataclass(frozen=True, slots=True)
class Nft:
    id: int
    owner: Address
    pool: int
    range: Range


@dataclass(slots=True)
class SimState:
    """Pools, balances, permissions and NFTs. A transaction works on a copy: what reverts has changed nothing."""

    pools: list[Pool]
    ledger: Ledger
    permissions: Permissions
    nfts: dict[int, Nft]
    next_id: int = 1

    def copy(self) -> SimState:
        return SimState(
            [pool.copy() for pool in self.pools],
            self.ledger.copy(),
            self.permissions.copy(),
            dict(self.nfts),
            self.next_id,
        )

    def canonical_text(self) -> str:
        """All of it but the pools as text, in one order: what a block's hash binds."""
        return repr(
            (
                self.ledger.entries(),
                sorted(self.permissions.allowed.items()),
                sorted((trust, grant.amount, grant.until) for trust, grant in self.permissions.granted.items()),
                sorted((nft.id, nft.owner, nft.pool, nft.range.lower, nft.range.upper) for nft in self.nfts.values()),
                self.next_id,
            )
        )


@dataclass(frozen=True, slots=True)
class PositionChange:
    """One modify-liquidity of one position, with what the pool's arithmetic says it is owed for it."""

    nft: Nft
    delta: int
    after: PositionInfo
    sqrt_price_x96: int
    owed0: int
    owed1: int


@dataclass(frozen=True, slots=True)
class Trade:
    """One swap, seen by the pool: what it is owed, negative what it gives."""

    pool: int
    zero_for_one: bool
    prices_before_x96: tuple[int, ...]
    """Of every pool, because a swap may prepare a position of another one."""
    owed0: int
    owed1: int
    liquidity_after: int


PoolEvent = PositionChange | Trade


@dataclass(frozen=True, slots=True)
class TransactionEffects:
    """A transaction as it was measured."""

    block: Block
    tx: HexId
    sender: Address
    gas: Wei
    """What its receipt says it cost."""
    gas_paid: Wei
    """What the sender's coin was seen to fall by for it."""
    pool_events: tuple[PoolEvent, ...]
    moved: Mapping[tuple[Address, Address], int]
    """By holder and currency, what balances gained by it, gas apart."""
    minted: tuple[int, ...]
    burnt: tuple[int, ...]

    @property
    def changes(self) -> tuple[PositionChange, ...]:
        return tuple(event for event in self.pool_events if isinstance(event, PositionChange))

    def touch(self, change: PositionChange) -> PositionEvent:
        """The change as history knows it, paid for by arithmetic and without gas."""
        nft, price, owed = change.nft, change.sqrt_price_x96, (change.owed0, change.owed1)
        return build_event(nft.id, nft.range, self.block, self.tx, price, change.delta, change.after, owed)
