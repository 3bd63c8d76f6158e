"""What holding a range costs and pays per unit of time, and what getting there costs once."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from zuno.amm.model import PoolState
from zuno.kernel.units import Wei
from zuno.lp.model.ballot import CandidateKind, Cost, PrepSwap
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import MEASURED_GAS, StepKind
from zuno.lp.rules.lvr import lvr_token1

MEASURED_LABEL: Final = "measured table"

# Bytes of a signed transaction: calldata as built for the same calls, and what the envelope and signature add.
_ENVELOPE_BYTES: Final = 120
_CALLDATA_BYTES: Final = {
    StepKind.WRAP: 4,
    StepKind.APPROVE_PERMIT2: 68,
    StepKind.PERMIT2_APPROVE: 132,
    StepKind.MINT: 1_060,
    StepKind.BURN: 676,
    StepKind.BURN_AND_MINT: 1_380,
    StepKind.SWAP_AND_MINT: 3_332,
}


def lvr_hour_token1(liquidity: int, sqrt_price_x96: int, variance_24h: float | None) -> Fraction | None:
    """LVR of an hour in range; None when the variance is unknown."""
    if liquidity == 0:
        return Fraction(0)
    if variance_24h is None:
        return None
    return Fraction(lvr_token1(liquidity, sqrt_price_x96, variance_24h)) / 24


def native_token1_in_pool(pool: PoolState, native_side: int | None) -> Fraction | None:
    """Base units of token1 for one wei where the pool itself prices the chain's own currency; else None."""
    match native_side:
        case 0:
            return pool.price
        case 1:
            return Fraction(1)
        case _:
            return None


def steps_for(
    kind: CandidateKind, prep: PrepSwap | None, erc20_outflows: int, *, wraps: bool = False
) -> tuple[StepKind, ...]:
    """The transactions of a candidate. `erc20_outflows`: tokens that need an approval to leave the wallet; `wraps`:
    ether is brought to a pool that trades its wrapper."""
    match kind:
        case CandidateKind.HOLD:
            return ()
        case CandidateKind.CLOSE:
            return (StepKind.BURN,)
        case CandidateKind.OPEN:
            last = StepKind.MINT if prep is None else StepKind.SWAP_AND_MINT
            return (*((StepKind.WRAP,) if wraps else ()), *_approvals(erc20_outflows), last)
        case CandidateKind.WIDEN | CandidateKind.TIGHTEN | CandidateKind.SHIFT:
            if prep is None:
                return (StepKind.BURN_AND_MINT,)
            # A swap cannot ride along with the burn: the tokens rest in the wallet in between.
            return (StepKind.BURN, *_approvals(erc20_outflows), StepKind.SWAP_AND_MINT)


def cost_of(
    steps: Sequence[StepKind],
    *,
    gas: GasQuote | None,
    native_token1: Fraction | None,
    prep: PrepSwap | None = None,
) -> Cost:
    """What these steps cost. `native_token1` is base units of token1 for one wei of the chain's own currency."""
    gas_units = sum(MEASURED_GAS[step] for step in steps)
    wei: Wei | None = None
    if not steps:
        wei = Wei(0)
    elif gas is not None:
        size = sum(_CALLDATA_BYTES[step] + _ENVELOPE_BYTES for step in steps)
        wei = gas.cost(gas_units, size, estimated_here=False)
    priced = wei is not None and (wei == 0 or native_token1 is not None)
    return Cost(
        steps=tuple(steps),
        gas_units=gas_units,
        gas_wei=wei,
        gas_token1=(wei or 0) * (native_token1 or Fraction(0)) if priced else None,
        swap_fee_token1=prep.fee_token1 if prep else Fraction(0),
        impact_token1=prep.impact_token1 if prep else Fraction(0),
        label=MEASURED_LABEL,
    )


def _approvals(tokens: int) -> tuple[StepKind, ...]:
    return (StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE) * tokens
