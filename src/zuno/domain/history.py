"""What happened to a position: the dated record that attribution explains."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from zuno.domain.pool import Block, PoolKey, Range
from zuno.domain.tokens import Token
from zuno.domain.units import HexId, Liquidity, SqrtPriceX96, Wei


@dataclass(frozen=True, slots=True)
class Touch:
    """One modify-liquidity of one position, as the wallet saw it.

    `paid0/paid1` are what the wallet was *measured* to give up (negative: received), fees included.
    `sqrt_price_x96` is the pool's price at that moment, fee growth inside is read right after.
    """

    position_id: int
    range: Range
    block: Block
    tx: HexId
    sqrt_price_x96: SqrtPriceX96
    liquidity_delta: int
    liquidity_after: Liquidity
    paid0: int
    paid1: int
    fee_growth_inside0_x128: int
    fee_growth_inside1_x128: int
    gas: Wei = Wei(0)
    """Gas paid for the transaction, charged once however many touches it holds."""


@dataclass(frozen=True, slots=True)
class WalletSwap:
    """A swap the wallet made for the position's sake (the prep swap of a rebalance or a create)."""

    block: Block
    tx: HexId
    sqrt_price_before_x96: SqrtPriceX96
    """The pool's price just before: what the swap is judged against."""
    paid0: int
    paid1: int
    gas: Wei = Wei(0)


@dataclass(frozen=True, slots=True)
class Standing:
    """A position between touches: what a full burn was *measured* to pay at this moment."""

    position_id: int
    range: Range
    block: Block
    sqrt_price_x96: SqrtPriceX96
    liquidity: Liquidity
    worth0: int
    worth1: int
    """Principal and uncollected fees together, rounded as the contracts round."""
    fee_growth_inside0_x128: int
    fee_growth_inside1_x128: int
    fee_growth_inside0_last_x128: int
    fee_growth_inside1_last_x128: int


@dataclass(frozen=True, slots=True)
class PricedBlock:
    """The pool's price at a block."""

    block: Block
    sqrt_price_x96: SqrtPriceX96


@dataclass(frozen=True, slots=True)
class PositionHistory:
    """A position (and those it was rebalanced from) over a window.

    `start` is None when the window opens before the first mint; `end` is None once it is burnt.
    """

    key: PoolKey
    token0: Token
    token1: Token
    opened: Block
    closed: Block
    start: Standing | None
    end: Standing | None
    events: tuple[Touch | WalletSwap, ...]
    path: tuple[PricedBlock, ...]
    """Prices through the window, oldest first, for the LVR benchmark."""
    native_side: int | None = None
    """0 or 1 where that token is the chain's own currency or its wrapper: the pool then prices the gas."""
    native_in_token1: Fraction | None = None
    """Base units of token1 for one wei where the pool cannot tell; None as well: gas is shown apart, in wei."""
    notes: tuple[str, ...] = field(default=())
