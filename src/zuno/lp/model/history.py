"""What happened to a position: the dated record that attribution explains."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from zuno.amm.model import Block, PoolKey, Range
from zuno.kernel.text import Token
from zuno.kernel.units import HexId, Liquidity, Seconds, SqrtPriceX96, Wei


@dataclass(frozen=True, slots=True)
class PositionEvent:
    """One modify-liquidity of one position, as it was paid for.

    `paid0/paid1` are what the pool was *measured* to receive for it (negative: to pay out), fees included. Whatever of
    that was not the wallet's is an `External`.
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
    """What the receipt says the transaction cost the wallet, charged once however many touches it holds."""
    gas_paid: Wei | None = None
    """What the wallet's balance was *measured* to fall by for it; None: no balance can tell, the receipt stands."""


@dataclass(frozen=True, slots=True)
class WalletSwap:
    """A swap the wallet made for the position's sake (the prep swap of a rebalance or a create), or another transaction
    its plan sent, which swapped nothing: an allowance or the end of one, a wrap, one that was cancelled or reverted."""

    block: Block
    tx: HexId
    sqrt_price_before_x96: SqrtPriceX96
    """The pool's price just before: what the swap is judged against."""
    swapped0: int
    swapped1: int
    """What its Swap events say it gave (negative: got)."""
    paid0: int
    paid1: int
    """What was *measured* to move for it."""
    gas: Wei = Wei(0)
    gas_paid: Wei | None = None


@dataclass(frozen=True, slots=True)
class ExternalFlow:
    """The part of a transaction's payments that was not the wallet's: paid in by others, or (negative) taken by others.
    Somebody else minting for the wallet, proceeds sent elsewhere, a hook's or a token's own fee."""

    block: Block
    tx: HexId
    sqrt_price_x96: SqrtPriceX96
    amount0: int
    amount1: int


Lineage = Literal["journal", "chain guess"]
"""Looks up which positions a position was rebalanced from; for positions of other homes it is an estimate."""


@dataclass(frozen=True, slots=True)
class JournaledPlans:
    """What this home's plans did to positions of a chain, by transaction, because local worlds reuse ids."""

    mints: Mapping[HexId, tuple[int, HexId] | None] = field(default_factory=dict)
    """By the mint, the position it was rebalanced from and the transaction that closed that one; None: created."""
    sent: Mapping[int, Mapping[HexId, Block]] = field(default_factory=dict)
    """By position, every transaction of the plans about it and the block it was mined in."""
    note: str = ""
    """Why the journal could not be read, if so."""

    def name_lineage(self, mints: Sequence[HexId | None]) -> Lineage | None:
        """`mints`: of a position and of those before it, newest first, as far as they are in the window."""
        if self.note or any(tx not in self.mints for tx in mints[:-1]):
            return "chain guess"
        return "journal" if mints[0] in self.mints else None


ReadPlans = Callable[[str], Awaitable[JournaledPlans]]


async def read_no_plans(chain: str) -> JournaledPlans:
    return NO_PLANS


NO_PLANS: Final = JournaledPlans()


@dataclass(frozen=True, slots=True)
class PositionSnapshot:
    """A position between touches: what a full burn would have made the pool pay at this moment."""

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
    block: Block
    sqrt_price_x96: SqrtPriceX96


@dataclass(frozen=True, slots=True)
class PositionHistory:
    """A position (and those it was rebalanced from) over a window. `start` is None when the window opens before the
    first mint; `end` is None once it is burnt."""

    key: PoolKey
    token0: Token
    token1: Token
    opened: Block
    closed: Block
    start: PositionSnapshot | None
    end: PositionSnapshot | None
    events: tuple[PositionEvent | WalletSwap, ...]
    path: tuple[PricedBlock, ...]
    """Prices through the window, oldest first, for the LVR benchmark."""
    native_side: int | None = None
    """0 or 1 where that token is the chain's own currency or its wrapper: the pool then prices the gas."""
    native_in_token1: Fraction | None = None
    """Base units of token1 for one wei where the pool cannot tell; None as well: gas is shown apart, in wei."""
    externals: tuple[ExternalFlow, ...] = ()
    lineage: Lineage | None = None
    """None: no other position is in it, and no plan of this home minted it."""
    computed: tuple[str, ...] = ()
    """What could not be measured and was computed by the formulas that explain it: a residual cannot show there."""
    notes: tuple[str, ...] = ()


class SwapEvent(NamedTuple):
    """One swap as the pool tells it; amounts are what the pool received (negative: paid out), the fee among them."""

    amount0: int
    amount1: int
    liquidity: int
    """In range when it ended."""
    fee: int
    """All of it, in pips, the protocol's share included."""


@dataclass(frozen=True, slots=True)
class GrowthSample:
    at: Seconds
    growth0_x128: int
    growth1_x128: int
    sqrt_price_x96: int = 0


@dataclass(frozen=True, slots=True)
class SwapFees:
    """Fees per unit of in-range liquidity as a pool's swaps tell them: an estimate for where no past state is kept."""

    opened: Block
    """The block of the window's first swap; what is counted comes after that block."""
    closed: Block
    growth0_x128: int
    growth1_x128: int
    swaps: int
    uneven: int
    """Swaps among them that ended in other liquidity than the one before: their share is a mean, the rest is exact."""
    days: tuple[GrowthSample, ...] = ()
    """The growth since `opened` at its block, and at whole days before `closed` and at it, oldest first."""
