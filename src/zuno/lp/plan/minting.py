"""The steps that open a position from the wallet's own tokens, with a swap in the same transaction where one is needed.

Inside the router's call PositionManager's caller is the router: there, owner and recipients are always written out.
"""

from __future__ import annotations

from dataclasses import dataclass

from zuno.amm.model import PoolState, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.lp.model.ballot import PrepSwap
from zuno.lp.model.plan import Step, StepKind, StepPlan, TickWithin
from zuno.lp.plan import calldata
from zuno.lp.plan.approvals import allowance_needs, allowing, wrapping
from zuno.lp.plan.context import PlanContext, flows
from zuno.lp.plan.encoding import permit2_transfer_from, position_manager_call
from zuno.lp.plan.inventory import QuoteSwap, deposit, market_without_us
from zuno.lp.plan.sizing import least_of, size_mint


def create(
    terms: PlanContext,
    pool: PoolState,
    band: Range,
    capital0: int,
    capital1: int,
    *,
    brings_ether: bool = False,
    quotes: QuoteSwap | None = None,
) -> StepPlan:
    """Open a range with this much of the wallet's tokens: one token alone is swapped in part, two are used as they are.

    `brings_ether`: the capital of the pool's wrapped side comes as ether and is wrapped first.
    """
    planned = deposit(
        market_without_us(pool),
        band,
        capital0,
        capital1,
        may_swap=0 in (capital0, capital1),
        slippage_bps=terms.bounds.slippage_bps,
        exact=quotes,
    )
    step = opening(terms, pool, band, capital0, capital1, swap_of(planned.prep, terms), terms.drift(pool))
    first = _wrap(terms, pool, step) if brings_ether else ()
    _check_holdings(terms, step, first)
    steps = (*first, *allowing(terms, step.to, step.most_out), step)
    return StepPlan(steps, terms.bounds, notes=planned.notes)


@dataclass(frozen=True, slots=True)
class Swap:
    """A quoted swap and the least it must pay; liquidity counts on no more than that."""

    quoted: PrepSwap
    least_out: int


def swap_of(prep: PrepSwap | None, terms: PlanContext) -> Swap | None:
    return None if prep is None else Swap(prep, least_out(prep.amount_out, terms))


def least_out(amount_out: int, terms: PlanContext) -> int:
    """What a swap must pay, of what it was quoted; never nothing, which would be no bound at all."""
    return least_of(amount_out, terms.bounds.slippage_bps)


def opening(
    terms: PlanContext, pool: PoolState, band: Range, have0: int, have1: int, swap: Swap | None, drift: TickWithin
) -> Step:
    """The one step that mints, with its swap if there is one."""
    if swap is None:
        return mint(terms, pool, band, have0, have1, drift)
    return swap_and_mint(terms, pool, band, have0, have1, swap, drift)


def mint(terms: PlanContext, pool: PoolState, band: Range, have0: int, have1: int, drift: TickWithin) -> Step:
    """MINT + SETTLE_PAIR, and SWEEP of the ether that a better price leaves over."""
    key, manager = pool.key, terms.deployment.position_manager
    size = size_mint(pool.sqrt_price_x96, band, have0, have1, terms.bounds.slippage_bps)
    native = key.currency0 == NATIVE
    acts = [
        calldata.mint_position(key, band.lower, band.upper, size.liquidity, size.most0, size.most1, terms.wallet),
        calldata.settle_pair(key.currency0, key.currency1),
        *([calldata.sweep(NATIVE, terms.wallet)] if native and size.most0 else []),
    ]
    out = flows((key.currency0, size.most0), (key.currency1, size.most1))
    return Step(
        StepKind.MINT,
        manager,
        size.most0 if native else 0,
        calldata.modify_liquidities(acts, terms.deadline),
        terms.deadline,
        needs=(drift, *terms.holding(out), *allowance_needs(terms, manager, out)),
        recipients=(terms.wallet,) * (2 if native and size.most0 else 1),
        most_out=out,
    )


def swap_and_mint(
    terms: PlanContext, pool: PoolState, band: Range, have0: int, have1: int, swap: Swap, drift: TickWithin
) -> Step:
    """One router call: swap into PositionManager, send the rest after it, mint there, and sweep both tokens home.

    Liquidity counts on no more than the swap's minimum, so that every price at which the swap goes through also pays
    for the mint.
    """
    key, at = pool.key, terms.deployment
    prep, out_min = swap.quoted, swap.least_out
    paid, got = (key.currency0, key.currency1) if prep.zero_for_one else (key.currency1, key.currency0)
    spent0, spent1 = (prep.amount_in, -out_min) if prep.zero_for_one else (-out_min, prep.amount_in)
    slippage = terms.bounds.slippage_bps
    size = size_mint(prep.sqrt_price_after_x96, band, have0 - spent0, have1 - spent1, slippage)
    cost_paid, cost_got = (size.most0, size.most1) if prep.zero_for_one else (size.most1, size.most0)
    rest_paid, rest_got = cost_paid, max(0, cost_got - out_min)
    swapped = [
        calldata.swap_exact_in_single(key, prep.zero_for_one, prep.amount_in, out_min, at.swap_struct),
        calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(got, at.position_manager, calldata.OPEN_DELTA),
    ]
    opened = [
        calldata.mint_position(key, band.lower, band.upper, size.liquidity, size.most0, size.most1, terms.wallet),
        *(calldata.settle(each, calldata.OPEN_DELTA, payer_is_user=False) for each in (key.currency0, key.currency1)),
        *(calldata.sweep(each, terms.wallet) for each in (key.currency0, key.currency1)),
    ]
    # Ether needs no transfer: the router hands all it has to PositionManager with the call itself.
    moved = [
        permit2_transfer_from(each, at.position_manager, rest)
        for each, rest in ((paid, rest_paid), (got, rest_got))
        if rest and each != NATIVE
    ]
    commands = [calldata.v4_swap(swapped), *moved, position_manager_call(opened, terms.deadline)]
    out = flows((paid, prep.amount_in + rest_paid), (got, rest_got))
    value = sum(flow.amount for flow in out if flow.currency == NATIVE)
    return Step(
        StepKind.SWAP_AND_MINT,
        at.universal_router,
        value,
        calldata.execute(commands, terms.deadline),
        terms.deadline,
        needs=(drift, *terms.holding(out), *allowance_needs(terms, at.universal_router, out)),
        recipients=(*(at.position_manager,) * (1 + len(moved)), *(terms.wallet,) * 3),
        most_out=out,
        least_in=flows((got, rest_got + out_min - cost_got)),
    )


def _wrap(terms: PlanContext, pool: PoolState, step: Step) -> tuple[Step, ...]:
    if terms.wrapper is None or terms.wrapper not in (pool.key.currency0, pool.key.currency1):
        raise Refused(f"pool {pool.id} does not trade this chain's wrapped currency, so ether cannot be brought to it")
    wanted = sum(flow.amount for flow in step.most_out if flow.currency == terms.wrapper)
    return (wrapping(terms.wrapper, wanted),) if wanted else ()


def _check_holdings(terms: PlanContext, step: Step, first: tuple[Step, ...]) -> None:
    wrapped = {flow.currency for each in first for flow in each.least_in}
    terms.check_holds(tuple(flow for flow in step.most_out if flow.currency not in wrapped))
    terms.check_holds(tuple(flow for each in first for flow in each.most_out))
