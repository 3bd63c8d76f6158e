"""The steps that change a position the wallet has: move it, add to it, take from it, close it."""

from dataclasses import replace
from fractions import Fraction

from zuno.amm.model import LpPosition, PoolState, Range
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import NATIVE
from zuno.lp.model.ballot import Deposit
from zuno.lp.model.plan import BPS, Owns, SecondHalf, Step, StepKind, StepPlan
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import calldata, sizing
from zuno.lp.plan.approvals import build_approvals, list_allowance_needs
from zuno.lp.plan.calldata import close_currency, decrease, increase, increase_from_deltas, mint_from_deltas
from zuno.lp.plan.context import PlanContext, flows
from zuno.lp.plan.inventory import QuoteSwap, burn_proceeds, fit, leftover_of, market_without_us, plan_swap_and_deposit
from zuno.lp.plan.minting import GuardedSwap, guard_swap, mint, plan_deposit, probe_swap, swap_and_mint, swap_home
from zuno.lp.plan.routing import SwapRoute


def rebalance(
    terms: PlanContext,
    position: LpPosition,
    band: Range,
    *,
    quotes: QuoteSwap | None = None,
    route: SwapRoute | None = None,
) -> StepPlan:
    """Move a position to another range: one transaction, or two where its tokens have to be swapped in between.
    `quotes` are of the pool without the position's liquidity; quoted with it, a swap looks better than it will be."""
    terms.check_owns(position)
    if band == position.range:
        raise Refused(f"position {position.id} lies in ticks {band.lower} to {band.upper} already")
    slippage = terms.bounds.slippage_bps
    planned = plan_deposit(position.pool, position, band, burn_proceeds(position), slippage, quotes, route)
    leftover = leftover_of(planned, position.pool.sqrt_price_x96, slippage)
    if planned.prep is None:
        notes = (*_warnings(position), *planned.notes)
        step = _burn_and_mint(terms, position, band, planned)
        return StepPlan((step,), terms.bounds, notes=notes, leftover=leftover)
    swap = guard_swap(position.pool, planned.prep, slippage, route=route)
    later = _second_half(terms, position, band, swap)
    return StepPlan((_burn(terms, position),), terms.bounds, later, _warnings(position), leftover, swap.route)


def finish_rebalance(
    half: SecondHalf,
    terms: PlanContext,
    pool: PoolState,
    paid0: int,
    paid1: int,
    *,
    quotes: QuoteSwap | None = None,
    route: SwapRoute | None = None,
) -> tuple[Step, ...]:
    """The second half of a rebalance, from what the first half really paid. `Refused`, with the number, where the
    bounds of the approval no longer hold: then the tokens stay in the wallet."""
    if pool.id != half.pool_id or half.range is None:
        raise UsageError("a second half is built on the pool of the first, and in a range")
    drift = terms.drift(pool, half.tick)
    if not drift.low <= pool.tick <= drift.high:
        raise Refused(
            f"the pool is at tick {pool.tick}, {abs(pool.tick - half.tick)} from the approved {half.tick}; "
            f"the bound is {terms.bounds.tick_drift}"
        )
    slippage, market = terms.bounds.slippage_bps, market_without_us(pool)
    planned = plan_swap_and_deposit(
        market,
        half.range,
        paid0,
        paid1,
        may_swap=True,
        slippage_bps=slippage,
        exact=route.quote if route else quotes,
    )
    # Where nothing has to be swapped any more, a small swap still holds the price.
    prep = planned.prep or probe_swap(pool, half.zero_for_one, paid0 if half.zero_for_one else paid1, slippage)
    if prep is None:
        step = mint(terms, pool, half.range, paid0, paid1, drift)
    elif prep.zero_for_one != half.zero_for_one:
        raise Refused("the tokens would now have to be swapped the other way round, which nobody approved")
    else:
        routed = route if planned.prep else None
        main_rate = half.least_rate if routed else half.probe_rate or half.least_rate
        rates = (main_rate, half.guard_rate, half.probe_rate)
        swap = guard_swap(pool, prep, terms.bounds.slippage_bps, rates, routed)
        step = swap_and_mint(terms, pool, half.range, paid0, paid1, swap, drift)
    return (*build_approvals(terms, step.to, step.most_out), step)


def close(
    terms: PlanContext,
    position: LpPosition,
    swap: SwapHome | None = None,
    *,
    quotes: QuoteSwap | None = None,
    route: SwapRoute | None = None,
) -> StepPlan:
    """Take everything home: BURN + CLOSE_CURRENCY ×2; with `swap` all of it in one token, by a second half."""
    terms.check_owns(position)
    later = None if swap is None else _swap_after(terms, position.pool, swap, burn_proceeds(position), quotes, route)
    through = route.key if route and later else None
    return StepPlan((_burn(terms, position),), terms.bounds, later, _warnings(position), route=through)


def finish_close(
    half: SecondHalf,
    terms: PlanContext,
    pool: PoolState,
    paid: tuple[int, int],
    *,
    quotes: QuoteSwap | None = None,
    route: SwapRoute | None = None,
) -> tuple[Step, ...]:
    """The second half of a close, from what the burn really paid; nothing where all of it is the right token."""
    swap = SwapHome(to=1 if half.zero_for_one else 0, least_rate=half.least_rate)
    made = _swap_after(terms, pool, swap, paid, quotes, route)
    return () if made is None else made.preview


def _swap_after(
    terms: PlanContext,
    pool: PoolState,
    swap: SwapHome,
    paid: tuple[int, int],
    quotes: QuoteSwap | None,
    route: SwapRoute | None,
) -> SecondHalf | None:
    zero_for_one, amount_in = swap.to == 1, paid[1 - swap.to]
    if not amount_in:
        return None
    step = swap_home(terms, pool, swap, amount_in, quotes, route)
    steps = (*build_approvals(terms, step.to, step.most_out), step)
    return SecondHalf(pool.id, pool.key, None, pool.tick, zero_for_one, swap.least_rate, steps)


def collect(terms: PlanContext, position: LpPosition) -> StepPlan:
    """Take the fees home: DECREASE of nothing + TAKE_PAIR."""
    _check_filled(terms, position)
    check_owed(position)
    step = _decrease(terms, position, 0, StepKind.COLLECT)
    return StepPlan((step,), terms.bounds)


def check_owed(position: LpPosition) -> None:
    """`Refused` where collecting would pay for gas and bring nothing home."""
    if not position.fees0 and not position.fees1:
        raise Refused(f"Position {position.id} is owed no fees: there is nothing to collect.")


def compound(terms: PlanContext, position: LpPosition) -> StepPlan:
    """Put the fees back: INCREASE of what they pay for at every price in the bounds, which holds the price, then
    INCREASE_FROM_DELTAS of what is left, and CLOSE_CURRENCY ×2. Without credit it reverts: nothing leaves the wallet.
    """
    _check_filled(terms, position)
    check_owed(position)
    pool, slippage, fees = position.pool, terms.bounds.slippage_bps, (position.fees0, position.fees1)
    size = sizing.size_mint(pool.sqrt_price_x96, position.range, *fees, slippage)
    acts = [
        increase(position.id, size.liquidity, size.most0, size.most1),
        increase_from_deltas(position.id, *fees),
        *_closing(position),
    ]
    step = Step(
        StepKind.INCREASE,
        terms.deployment.position_manager,
        0,
        calldata.modify_liquidities(acts, terms.deadline),
        terms.deadline,
        needs=(Owns(position.id, position.liquidity), terms.drift(pool)),
        recipients=(terms.wallet,) * 2,
    )
    put_in = fit(pool.sqrt_price_x96, position.range, *fees, 0)
    left = leftover_of(put_in, pool.sqrt_price_x96, slippage)
    why = "fees come in another ratio than the range takes"
    return StepPlan((step,), terms.bounds, leftover=replace(left, why=why))


def remove(terms: PlanContext, position: LpPosition, share: Fraction) -> StepPlan:
    """Take a part of the liquidity home, and with it all fees, as the contracts do; the whole of it is a close."""
    _check_filled(terms, position)
    if not 0 < share <= 1:
        raise UsageError(f"a share of {share} is not above 0 and at most 1")
    if share == 1:
        return close(terms, position)
    liquidity = position.liquidity * share.numerator // share.denominator
    if liquidity == 0:
        raise Refused(f"{share} of position {position.id}'s liquidity of {position.liquidity} is less than one unit")
    return StepPlan((_decrease(terms, position, liquidity, StepKind.DECREASE),), terms.bounds)


def add(terms: PlanContext, position: LpPosition, amount0: int, amount1: int) -> StepPlan:
    """Bring up to this much of both tokens: SETTLE of it, INCREASE of what it pays for at every price in the bounds,
    which holds the price, INCREASE_FROM_DELTAS of the rest, and CLOSE_CURRENCY ×2.

    Uncollected fees pay first, because the contracts net them anyway: what they do not cover leaves the wallet, and
    what they are above it is taken there. Where next to nothing would be left, the INCREASE is all there is.
    """
    _check_filled(terms, position)
    pool, key, manager = position.pool, position.pool.key, terms.deployment.position_manager
    band, slippage, fees = position.range, terms.bounds.slippage_bps, (position.fees0, position.fees1)
    size = sizing.size_mint(pool.sqrt_price_x96, band, amount0, amount1, slippage)
    whole = fit(pool.sqrt_price_x96, band, amount0, amount1, 0)
    most = sizing.most_used(pool, band, (amount0, amount1), slippage)
    from_credit = (whole.liquidity - size.liquidity) * BPS > whole.liquidity * slippage
    brought = most if from_credit else (size.most0, size.most1)
    out0, out1 = (max(0, amount - paid) for amount, paid in zip(brought, fees, strict=True))
    out = flows((key.currency0, out0), (key.currency1, out1))
    terms.check_holds(out, pool)
    home = flows(
        *(
            (currency, paid - amount)
            for currency, paid, amount in zip((key.currency0, key.currency1), fees, brought, strict=True)
        )
    )
    value = out0 if key.currency0 == NATIVE else 0
    acts = [
        *(calldata.settle(flow.currency, flow.amount, payer_is_user=True) for flow in out if from_credit),
        increase(position.id, size.liquidity, size.most0, size.most1),
        *(calldata.take(flow.currency, terms.wallet, flow.amount) for flow in home if from_credit),
        *([increase_from_deltas(position.id, *most)] if from_credit else []),
        *_closing(position),
        *([calldata.sweep(NATIVE, terms.wallet)] if value else []),
    ]
    step = Step(
        StepKind.INCREASE,
        manager,
        value,
        calldata.modify_liquidities(acts, terms.deadline),
        terms.deadline,
        needs=(
            Owns(position.id, position.liquidity),
            terms.drift(pool),
            *terms.holding(out),
            *list_allowance_needs(terms, manager, out),
        ),
        recipients=(terms.wallet,) * (2 + bool(value) + (len(home) if from_credit else 0)),
        most_out=out,
        least_in=home,
    )
    put_in = whole if from_credit else fit(pool.sqrt_price_x96, band, amount0, amount1, slippage)
    leftover = leftover_of(put_in, pool.sqrt_price_x96, slippage, from_credit=from_credit)
    return StepPlan((*build_approvals(terms, manager, out), step), terms.bounds, leftover=leftover)


def _burn_and_mint(terms: PlanContext, position: LpPosition, band: Range, planned: Deposit) -> Step:
    """BURN, a mint of all it pays, and CLOSE_CURRENCY ×2: no approval, and for ether no value.

    What is minted is paid for by the call's own credit and by nothing else. A price outside the bounds is stopped by
    the burn's minima where the old range covers the bounds, and else by a mint of fixed size, of which the rest comes
    home: adding it under the number the position is going to get would put it into whatever position of that number a
    stranger has given to the wallet first.
    """
    pool, slippage, most = (
        position.pool,
        terms.bounds.slippage_bps,
        sizing.most_proceeds(position, terms.bounds.slippage_bps),
    )
    if sizing.burn_holds_price(position, slippage):
        if planned.liquidity == 0:
            raise Refused(
                f"the tokens of position {position.id} mint no liquidity in ticks {band.lower} to {band.upper}"
            )
        minted = mint_from_deltas(pool.key, band, *most, terms.wallet)
    else:
        size = sizing.size_mint_from_burn(position, band, slippage)
        minted = calldata.mint_position(
            pool.key, band.lower, band.upper, size.liquidity, size.most0, size.most1, terms.wallet
        )
    acts = [
        calldata.burn_position(position.id, *sizing.least_principal(position, position.liquidity, slippage)),
        minted,
        *_closing(position),
    ]
    return Step(
        StepKind.BURN_AND_MINT,
        terms.deployment.position_manager,
        0,
        calldata.modify_liquidities(acts, terms.deadline),
        terms.deadline,
        needs=(Owns(position.id, position.liquidity), terms.drift(pool)),
        recipients=(terms.wallet,) * 3,
    )


def _burn(terms: PlanContext, position: LpPosition) -> Step:
    key = position.pool.key
    min0, min1 = sizing.least_principal(position, position.liquidity, terms.bounds.slippage_bps)
    return Step(
        StepKind.BURN,
        terms.deployment.position_manager,
        0,
        calldata.modify_liquidities(
            [calldata.burn_position(position.id, min0, min1), *_closing(position)], terms.deadline
        ),
        terms.deadline,
        needs=(Owns(position.id, position.liquidity), terms.drift(position.pool)),
        recipients=(terms.wallet,) * 2,
        least_in=flows((key.currency0, min0 + position.fees0), (key.currency1, min1 + position.fees1)),
    )


def _decrease(terms: PlanContext, position: LpPosition, liquidity: int, kind: StepKind) -> Step:
    key = position.pool.key
    min0, min1 = sizing.least_principal(position, liquidity, terms.bounds.slippage_bps)
    acts = [
        decrease(position.id, liquidity, min0, min1),
        calldata.take_pair(key.currency0, key.currency1, terms.wallet),
    ]
    return Step(
        kind,
        terms.deployment.position_manager,
        0,
        calldata.modify_liquidities(acts, terms.deadline),
        terms.deadline,
        needs=(Owns(position.id, position.liquidity), *([terms.drift(position.pool)] if liquidity else [])),
        recipients=(terms.wallet,),
        least_in=flows((key.currency0, min0 + position.fees0), (key.currency1, min1 + position.fees1)),
    )


def _second_half(terms: PlanContext, position: LpPosition, band: Range, swap: GuardedSwap) -> SecondHalf:
    pool = position.pool
    preview = swap_and_mint(terms, pool, band, *burn_proceeds(position), swap, terms.drift(pool))
    return SecondHalf(
        pool.id,
        pool.key,
        band,
        pool.tick,
        swap.zero_for_one,
        Fraction(swap.main.least_out, swap.main.amount_in),
        (*build_approvals(terms, preview.to, preview.most_out), preview),
        Fraction(swap.guard.least_out, swap.guard.amount_in),
        None if swap.probe is None else Fraction(swap.probe.least_out, swap.probe.amount_in),
    )


def _closing(position: LpPosition) -> list[calldata.EncodedAction]:
    return [close_currency(currency) for currency in (position.pool.key.currency0, position.pool.key.currency1)]


def _check_filled(terms: PlanContext, position: LpPosition) -> None:
    terms.check_owns(position)
    if position.liquidity == 0:
        raise Refused(f"position {position.id} holds no liquidity; it can only be closed")


def _warnings(position: LpPosition) -> tuple[str, ...]:
    if not position.subscribed:
        return ()
    return (f"position {position.id} is subscribed (staked); burning it ends the subscription",)
