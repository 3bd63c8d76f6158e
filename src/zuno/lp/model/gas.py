"""What one transaction may cost: how fast a chain's base fee can rise, the owner's caps, and the bound they make."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from zuno.kernel.units import Wei

BUMPS = 2  # replacements that what is first signed leaves room for: one that speeds it up, one that cancels it
GasExcess = tuple[Literal["tip", "max_fee", "whole"], int, int]
"""What is above its bound, by how much it is and by the bound."""


@dataclass(frozen=True, slots=True)
class GasRules:
    """The most that a transaction on a chain may cost, in wei of its coin: `tip` for a unit of gas to whoever proposes
    the block; `whole` for all its gas at the highest fee it bids, and a rollup's fee for its data. The caps of an exit
    hold for what takes liquidity out, in a crash too. `rise`: a block's base fee over the one before it, at most."""

    rise: Fraction
    tip: Wei
    whole: Wei
    exit_tip: Wei
    exit_whole: Wei


@dataclass(frozen=True, slots=True)
class FeeBound:
    """What one transaction may bid and cost; no signer signs beyond it, or without one."""

    max_fee: Wei
    tip: Wei
    whole: Wei

    def find_excess(self, max_fee: int, tip: int, gas: int, bumps: int = 0) -> GasExcess | None:
        """Return what is above its bound after so many replacements more; None where nothing is."""
        for _ in range(bumps):
            max_fee, tip = bump_fee(max_fee), bump_fee(tip)
        figures: tuple[GasExcess, ...] = (
            ("tip", tip, self.tip),
            ("max_fee", max_fee, self.max_fee),
            ("whole", gas * max_fee, self.whole),
        )
        return next(((kind, asked, most) for kind, asked, most in figures if asked > most), None)


def bump_fee(fee: int) -> Wei:
    """Return what a node takes in place of this fee: it wants a tenth more, and an eighth is certainly more."""
    return Wei(fee + fee // 8 + 1)
