"""Who takes what from a swap: the protocol first, the liquidity providers from the rest."""

from typing import Final

from zuno.amm.integers import MAX_UINT256
from zuno.kernel.errors import LPFeeTooLarge, ProtocolFeeTooLarge, SafeCastOverflow

PIPS: Final = 1_000_000
MAX_LP_FEE: Final = PIPS
MAX_PROTOCOL_FEE: Final = 1_000
DYNAMIC_FEE_FLAG: Final = 0x800000


def check_lp_fee(lp_fee: int) -> None:
    if lp_fee < 0:
        raise SafeCastOverflow(f"LP fee {lp_fee} does not fit uint24")
    if lp_fee > MAX_LP_FEE:
        raise LPFeeTooLarge(f"LP fee {lp_fee} is above {MAX_LP_FEE} pips")


def initial_lp_fee(fee: int) -> int:
    """The LP fee a pool with this key starts with: a dynamic one starts at zero."""
    if fee == DYNAMIC_FEE_FLAG:
        return 0
    check_lp_fee(fee)
    return fee


def pack_protocol_fee(zero_for_one: int, one_for_zero: int) -> int:
    """Both directions in one number, as slot0 keeps them: twelve bits each, zero-for-one lowest."""
    for fee in (zero_for_one, one_for_zero):
        if fee < 0:
            raise SafeCastOverflow(f"protocol fee {fee} does not fit uint12")
        if fee > MAX_PROTOCOL_FEE:
            raise ProtocolFeeTooLarge(f"protocol fee {fee} is above {MAX_PROTOCOL_FEE} pips")
    return one_for_zero << 12 | zero_for_one


def protocol_fee_of_direction(packed: int, zero_for_one: bool) -> int:
    return packed & 0xFFF if zero_for_one else packed >> 12


def swap_fee(protocol_fee: int, lp_fee: int) -> int:
    """The whole fee in pips: the LP fee applies to what the protocol left, rounded up."""
    return protocol_fee + lp_fee - protocol_fee * lp_fee // PIPS


def growth_inside(tick: int, lower: int, upper: int, growth_global: int, outside_lower: int, outside_upper: int) -> int:
    """Fee growth inside a range, of one token, modulo 2^256: only differences of it mean anything."""
    if tick < lower:
        return (outside_lower - outside_upper) & MAX_UINT256
    if tick >= upper:
        return (outside_upper - outside_lower) & MAX_UINT256
    return (growth_global - outside_lower - outside_upper) & MAX_UINT256


def earned_rounding_down(growth_now: int, growth_last: int, liquidity: int) -> int:
    """Fees of one token since the last touch; the growth in between may have wrapped round."""
    return ((growth_now - growth_last) & MAX_UINT256) * liquidity >> 128
