"""What the fast engine earns over all minutes of a record together."""

from math import fsum
from typing import NamedTuple

from zuno.amm.model import Range
from zuno.lab.lp.fast import Convention, MinuteColumns, fees_by_minute


class EarnedFees(NamedTuple):
    """In the tokens' smallest unit."""

    fees0: float
    fees1: float


def earn_fees(
    columns: MinuteColumns, held: Range, liquidity: int, fee_pips: int, convention: Convention = Convention.INTRABAR
) -> EarnedFees:
    fees0, fees1 = fees_by_minute(columns, held, liquidity, fee_pips, convention)
    return EarnedFees(fsum(fees0.tolist()), fsum(fees1.tolist()))
