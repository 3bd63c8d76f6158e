"""Every error Zuno raises on purpose: four branches, one per reaction.

    ZunoError
    ├── Unavailable   a source did not answer: retry, then fall back, and say so
    │   ├── Unreachable   no connection came about
    │   └── DiskFull      a disk is full
    ├── Malformed     a source answered nonsense: fall back, keep the evidence
    ├── Refused       a rule said no: tell the person, do nothing
    │   ├── NotFound      a well-formed id that names nothing
    │   └── PoolRefusal   the pool's own refusals, named like the contracts' errors
    └── Broken        records disagree: stop that desk

A fifth thing, `UsageError`, is not a reaction but a typing mistake: the request itself cannot be read.
"""

from errno import EDQUOT, EFBIG, ENOSPC
from typing import Final

FULL_DISK: Final = frozenset({ENOSPC, EDQUOT, EFBIG})
"""How the system calls a write that finds no room."""


class ZunoError(Exception):
    """Root of every deliberate error; the message is one sentence that says what to do next."""


class UsageError(ZunoError):
    """The request cannot be read: a malformed id, an unknown name, a value out of its type."""


class Unavailable(ZunoError):
    """A source did not answer."""


class Unreachable(Unavailable):
    """No connection to a source came about."""


class DiskFull(Unavailable):
    """A disk is full: nothing was written, and what was there stays."""

    def __init__(self, place: object) -> None:
        super().__init__(f"No room on the disk of {place}: nothing was written; make room and try again.")


class Malformed(ZunoError):
    """A source answered with something unreadable."""


class Refused(ZunoError):
    """A rule said no."""


class NotFound(Refused):
    """A well-formed id that names nothing."""


class Broken(ZunoError):
    """Two records that must agree do not."""


class PoolRefusal(Refused):
    """The pool said no. Leaves below carry the name of the contract's own error."""


class InvalidTick(PoolRefusal):
    """Tick beyond ±887272."""


class InvalidSqrtPrice(PoolRefusal):
    """Square-root price outside [MIN_SQRT_PRICE, MAX_SQRT_PRICE)."""


class TicksMisordered(PoolRefusal):
    """Lower tick not below the upper tick."""


class TickLowerOutOfBounds(PoolRefusal):
    """Lower tick below the minimum tick."""


class TickUpperOutOfBounds(PoolRefusal):
    """Upper tick above the maximum tick."""


class TickMisaligned(PoolRefusal):
    """Tick that is not a multiple of the spacing."""


class TickLiquidityOverflow(PoolRefusal):
    """A tick would carry more liquidity than its share of uint128."""


class TickSpacingTooLarge(PoolRefusal):
    """Tick spacing above 32767."""


class TickSpacingTooSmall(PoolRefusal):
    """Tick spacing below 1."""


class LPFeeTooLarge(PoolRefusal):
    """LP fee above 1,000,000 pips."""


class ProtocolFeeTooLarge(PoolRefusal):
    """Protocol fee above 1,000 pips in either direction."""


class PoolNotInitialized(PoolRefusal):
    """The pool has no price yet."""


class SwapAmountCannotBeZero(PoolRefusal):
    """A swap of nothing."""


class PriceLimitAlreadyExceeded(PoolRefusal):
    """The price limit lies on the wrong side of the price."""


class PriceLimitOutOfBounds(PoolRefusal):
    """The price limit lies outside the usable prices."""


class InvalidFeeForExactOut(PoolRefusal):
    """With a fee of 100 % no exact output can be paid for."""


class CannotUpdateEmptyPosition(PoolRefusal):
    """A zero-delta touch of a position without liquidity."""


class NoLiquidityToReceiveFees(PoolRefusal):
    """A donation where no liquidity is in range."""


class SafeCastOverflow(PoolRefusal):
    """A number that does not fit the contract's integer type."""


class InvalidPrice(PoolRefusal):
    """A price of zero where a price is needed."""


class InvalidPriceOrLiquidity(PoolRefusal):
    """A price or a liquidity of zero inside a swap step."""


class NotEnoughLiquidity(PoolRefusal):
    """An output larger than the liquidity can pay."""


class PriceOverflow(PoolRefusal):
    """A price step that leaves uint160."""


class UnauthorizedDynamicLPFeeUpdate(PoolRefusal):
    """A new LP fee for a pool whose fee is fixed."""


class Panic(PoolRefusal):
    """The contract's checked arithmetic overflows (Panic 0x11) where it declares no error of its own."""
