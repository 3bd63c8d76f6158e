"""The steps that open a position from the wallet's own tokens, with a swap in the same transaction where one is needed.

Inside the router's call PositionManager's caller is the router: there, owner and recipients are always written out.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final

from zuno.amm.fees import protocol_fee_of_direction, swap_fee
from zuno.amm.model import LpPosition, PoolKey, PoolState, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.model.ballot import Deposit, PrepSwap
from zuno.lp.model.chains import Deployment, SwapStruct
from zuno.lp.model.plan import BPS, Step, StepKind, StepPlan, TickWithin
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import calldata, inventory
from zuno.lp.plan.approvals import build_approvals, build_wrap_step, list_allowance_needs
from zuno.lp.plan.calldata import mint_from_deltas, permit2_transfer_from, position_manager_call
from zuno.lp.plan.calls import is_flipped
from zuno.lp.plan.context import PlanContext, amount_text, flows
from zuno.lp.plan.routing import SwapRoute
from zuno.lp.plan.sizing import most_used, size_after_burn, size_mint


def create(
    terms: PlanContext,
    pool: PoolState,
    band: Range,
    capital0: int,
    capital1: int,
    *,
    brings_ether: bool = False,
    use_all: bool = False,
    quotes: inventory.QuoteSwap | None = None,
    route: SwapRoute | None = None,
) -> StepPlan:
    """Open a range with this much of the wallet's tokens: one token alone is swapped in part, two are used as they are
    unless all of both is to be used. `brings_ether`: the pool's wrapped side comes as ether and is wrapped first."""
    slippage, capital = terms.bounds.slippage_bps, (capital0, capital1)
    planned = plan_deposit(pool, None, band, capital, slippage, quotes, route, use_all=use_all)
    swap: GuardedSwap | None = None
    drift = terms.drift(pool)
    if planned.prep is None:
        if planned.liquidity == 0 and planned.notes:
            raise Refused(f"These tokens cannot open the range: {planned.notes[0]}.")
        step = mint(terms, pool, band, *capital, drift)
    else:
        swap = guard_swap(pool, planned.prep, slippage, route=route)
        brought = (
            capital
            if use_all or 0 in capital
            else _with_swap(most_used(pool, band, capital, slippage), planned.prep, capital)
        )
        step = swap_and_mint(terms, pool, band, *brought, swap, drift)
    first = _wrap(terms, pool, step) if brings_ether else ()
    _check_holdings(terms, pool, step, first)
    steps = (*first, *build_approvals(terms, step.to, step.most_out), step)
    leftover = inventory.leftover_of(planned, pool.sqrt_price_x96, slippage)
    through = None if swap is None else swap.route
    return StepPlan(steps, terms.bounds, notes=planned.notes, leftover=leftover, route=through)


def plan_deposit(
    pool: PoolState,
    position: LpPosition | None,
    band: Range,
    have: tuple[int, int],
    slippage_bps: int,
    quotes: inventory.QuoteSwap | None = None,
    route: SwapRoute | None = None,
    *,
    use_all: bool = False,
) -> Deposit:
    """What goes into a range and what stays home, as the transactions of a plan will make it.

    The tokens are those of `position`, which is burned, or the wallet's own. One token is swapped in part; two of the
    wallet's are used as they are, after a swap that only holds the price.
    """
    fitted = inventory.plan_swap_and_deposit(
        inventory.market_without_us(pool, position),
        band,
        *have,
        may_swap=use_all or position is not None or 0 in have,
        room_bps=0 if position is not None else slippage_bps,
        slippage_bps=slippage_bps,
        exact=quotes if route is None else route.quote,
    )
    if position is None and 0 not in have and fitted.prep is None:
        fitted = _hold_by_swap(fitted, pool, band, have, slippage_bps)
    if fitted.prep is not None:
        return count_guard(fitted, guard_swap(pool, fitted.prep, slippage_bps, route=route), band)
    return fitted if position is None else size_after_burn(fitted, position, band, have, slippage_bps)


LEAST_GAIN: Final = Fraction(1, 50)
"""Of a deposit: a mint of fixed size that leaves less home is left at that. What a swap holds can be undone by whoever
owns all liquidity at the price, at a loss that grows with the range while the gain shrinks; here they meet."""


def _hold_by_swap(fixed: Deposit, pool: PoolState, band: Range, have: tuple[int, int], slippage_bps: int) -> Deposit:
    """Two tokens put in at the price they meet, where a mint of fixed size would leave much of them home."""
    price = pool.sqrt_price_x96
    whole = inventory.fit(price, band, *have, 0)
    if whole.liquidity * (1 - LEAST_GAIN) <= fixed.liquidity or 0 in (whole.amount0, whole.amount1):
        return fixed
    zero_for_one = inventory.worth_token1(whole.left0, 0, price) >= whole.left1
    prep = probe_swap(pool, zero_for_one, (whole.amount0, whole.amount1)[not zero_for_one], slippage_bps)
    if prep is None:
        return fixed
    paid, got = prep.amount_in, prep.amount_out
    after = (have[0] - paid, have[1] + got) if zero_for_one else (have[0] + got, have[1] - paid)
    return replace(inventory.fit(prep.sqrt_price_after_x96, band, *after, 0), prep=prep)


def _with_swap(used: tuple[int, int], prep: PrepSwap, have: tuple[int, int]) -> tuple[int, int]:
    """What is brought for a mint that uses so much, with what is swapped before it; never more than there is."""
    by0, by1 = (prep.amount_in, 0) if prep.zero_for_one else (0, prep.amount_in)
    return min(have[0], used[0] + by0), min(have[1], used[1] + by1)


@dataclass(frozen=True, slots=True)
class SwapBound:
    """An exact input and the least it must pay."""

    amount_in: int
    least_out: int


@dataclass(frozen=True, slots=True)
class GuardedSwap:
    """A swap, and after it a small one the other way round. The first stops at a price that moved against it, the
    second at one that moved in its favour: what is minted after both is minted inside the bounds."""

    zero_for_one: bool
    main: SwapBound
    guard: SwapBound
    quoted_out: int
    quoted_back: int
    """What they are quoted to pay each way."""
    route: PoolKey | None = None
    probe: SwapBound | None = None
    """Where the first goes through another pool: a small one the same way in the pool that is minted into."""


ApprovedRates = tuple[Fraction, Fraction | None, Fraction | None]
"""Of the swap, of the one back, and of the small one in front of that."""


def guard_swap(
    pool: PoolState,
    prep: PrepSwap,
    slippage_bps: int,
    approved: ApprovedRates | None = None,
    route: SwapRoute | None = None,
) -> GuardedSwap:
    """The swap with its minima and its guard, by the stricter of the quote and the `approved` rates."""
    least_rate, guard_rate, probe_rate = approved or (None, None, None)
    if route is not None:
        probe = probe_swap(pool, prep.zero_for_one, prep.amount_in, slippage_bps)
        if probe is None:
            raise Refused("too little is swapped for two small swaps to hold the price beside it")
        held = guard_swap(pool, probe, slippage_bps, None if probe_rate is None else (probe_rate, guard_rate, None))
        amount_in = prep.amount_in - probe.amount_in
        out = route.quote(prep.zero_for_one, amount_in).amount_out
        main = _bound(pool, prep.zero_for_one, amount_in, out, least_rate, slippage_bps)
        return replace(held, main=main, quoted_out=out + held.quoted_out, route=route.key, probe=held.main)
    main = _bound(pool, prep.zero_for_one, prep.amount_in, prep.amount_out, least_rate, slippage_bps)
    fee_back = swap_fee(protocol_fee_of_direction(pool.protocol_fee, not prep.zero_for_one), pool.lp_fee)
    wanted, pays = inventory.size_guard(
        prep.sqrt_price_after_x96, prep.zero_for_one, prep.amount_out, fee_back, slippage_bps
    )
    amount_in = min(wanted, main.least_out)
    back = pays * amount_in // wanted
    guard = _bound(pool, not prep.zero_for_one, amount_in, back, guard_rate, slippage_bps)
    return GuardedSwap(prep.zero_for_one, main, guard, prep.amount_out, back)


def count_guard(planned: Deposit, swap: GuardedSwap, band: Range) -> Deposit:
    """A deposit after a swap, as it is when the guard has swapped its part of that back."""
    if planned.prep is None:
        return planned
    got, paid = swap.quoted_out - planned.prep.amount_out - swap.guard.amount_in, swap.quoted_back
    by0, by1 = (paid, got) if swap.zero_for_one else (got, paid)
    have = planned.amount0 + planned.left0 + by0, planned.amount1 + planned.left1 + by1
    return replace(
        inventory.fit(planned.prep.sqrt_price_after_x96, band, *have, 0), prep=planned.prep, notes=planned.notes
    )


def probe_swap(pool: PoolState, zero_for_one: bool, have: int, slippage_bps: int) -> PrepSwap | None:
    """A swap for the sake of its minimum alone, about as large as its guard; None where there is too little for one."""
    market = inventory.market_without_us(pool)
    if market.liquidity <= 0 or slippage_bps == 0:
        return None
    telling = inventory.min_quotable_input(pool.price if zero_for_one else 1 / pool.price, slippage_bps)
    # Twice what tells: after both fees and at its worst price it still pays for the guard.
    amount_in = max(have // BPS, 2 * telling)
    return None if have < amount_in * inventory.GUARD_LIMIT else inventory.quote_swap(market, zero_for_one, amount_in)


def _bound(
    pool: PoolState, zero_for_one: bool, amount_in: int, quoted: int, approved: Fraction | None, slippage_bps: int
) -> SwapBound:
    least = inventory.min_swap_output(quoted, slippage_bps)
    if approved is None:
        return SwapBound(amount_in, least)
    strictest = ceil(amount_in * approved)
    if quoted < strictest:
        pair = (pool.key.currency0, pool.key.currency1)
        paid, got = pair if zero_for_one else pair[::-1]
        would, least_text = (amount_text(pool, got, each) for each in (quoted, strictest))
        raise Refused(
            f"The swap would pay {would} for {amount_text(pool, paid, amount_in)}; the approved minimum for it is "
            f"{least_text}."
        )
    return SwapBound(amount_in, max(least, strictest))


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
        needs=(drift, *terms.holding(out), *list_allowance_needs(terms, manager, out)),
        recipients=(terms.wallet,) * (2 if native and size.most0 else 1),
        most_out=out,
    )


def swap_and_mint(
    terms: PlanContext, pool: PoolState, band: Range, have0: int, have1: int, swap: GuardedSwap, drift: TickWithin
) -> Step:
    """One router call: swap into PositionManager, send the rest after it, and mint there with all that has come.

    Whatever the price is by then, both tokens go in as far as the range takes them; how far the price may have moved is
    held by the minima of the two swaps.
    """
    key, at = pool.key, terms.deployment
    pair = (key.currency0, key.currency1)
    paid, got = pair if swap.zero_for_one else pair[::-1]
    have_paid, have_got = (have0, have1) if swap.zero_for_one else (have1, have0)
    probe = swap.probe or SwapBound(0, 0)
    rest_paid = have_paid - swap.main.amount_in - probe.amount_in
    first = _open_swap(at, key, swap.zero_for_one, swap.main, swap.route, at.position_manager)
    swapped = [
        *first.actions,
        *([] if swap.probe is None else [_swap_action(key, swap.zero_for_one, probe, at.swap_struct)]),
        calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True),
        _swap_action(key, not swap.zero_for_one, swap.guard, at.swap_struct),
        *first.taken,
        *(calldata.take(each, at.position_manager, calldata.OPEN_DELTA) for each in (paid, got)),
    ]
    least_bps = BPS - terms.bounds.slippage_bps
    # No room over what is brought: it would let swaps through that pay too well, from liquidity that is hardly there.
    most_got = have_got + swap.quoted_out * BPS // least_bps + 1
    most_paid = rest_paid + swap.quoted_back * BPS // least_bps + 1
    most0, most1 = (most_paid, most_got) if swap.zero_for_one else (most_got, most_paid)
    opened = [
        *(
            calldata.settle(each, calldata.WHOLE_BALANCE, payer_is_user=False)
            for each in (key.currency0, key.currency1)
        ),
        mint_from_deltas(key, band, most0, most1, terms.wallet),
        calldata.take_pair(*pair, terms.wallet),
    ]
    # Ether needs no transfer: the router hands all it has to PositionManager with the call itself.
    moved = [
        permit2_transfer_from(each, at.position_manager, rest)
        for each, rest in ((paid, rest_paid), (got, have_got))
        if rest and each != NATIVE
    ]
    commands = [*first.wrap(calldata.v4_swap(swapped)), *moved, position_manager_call(opened, terms.deadline)]
    out = flows((paid, have_paid), (got, have_got))
    return Step(
        StepKind.SWAP_AND_MINT,
        at.universal_router,
        sum(flow.amount for flow in out if flow.currency == NATIVE),
        calldata.execute(commands, terms.deadline),
        terms.deadline,
        needs=(drift, *terms.holding(out), *list_allowance_needs(terms, at.universal_router, out)),
        recipients=(
            *first.recipients((at.position_manager,) * 2),
            *(at.position_manager,) * len(moved),
            *(terms.wallet,) * 2,
        ),
        most_out=out,
    )


def swap_home(
    terms: PlanContext,
    pool: PoolState,
    swap: SwapHome,
    amount_in: int,
    quotes: inventory.QuoteSwap | None,
    route: SwapRoute | None = None,
) -> Step:
    """One router call: swap this much, exactly, and take what it pays into the wallet. Its minimum is the stricter of
    today's quote and the rate it was approved at."""
    zero_for_one, at, key = swap.to == 1, terms.deployment, pool.key
    quote = route.quote if route else quotes or inventory.estimate(inventory.market_without_us(pool))
    bound = _bound(
        pool, zero_for_one, amount_in, quote(zero_for_one, amount_in).amount_out, swap.least_rate,
        terms.bounds.slippage_bps,
    )  # fmt: skip
    paid, got = (key.currency0, key.currency1) if zero_for_one else (key.currency1, key.currency0)
    first = _open_swap(at, key, zero_for_one, bound, None if route is None else route.key, terms.wallet)
    actions = [
        *first.actions,
        *([] if first.before else [calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True)]),
        *(first.taken or [calldata.take(got, terms.wallet, calldata.OPEN_DELTA)]),
    ]
    out = flows((paid, amount_in))
    return Step(
        StepKind.SWAP,
        at.universal_router,
        amount_in if paid == NATIVE else 0,
        calldata.execute(first.wrap(calldata.v4_swap(actions)), terms.deadline),
        terms.deadline,
        needs=(*terms.holding(out), *list_allowance_needs(terms, at.universal_router, out)),
        recipients=first.recipients(() if first.taken else (terms.wallet,)),
        most_out=out,
        least_in=flows((got, bound.least_out)),
    )


@dataclass(frozen=True, slots=True)
class _OpenedSwap:
    """The main swap, and what is wrapped or unwrapped for it inside the same call."""

    actions: list[calldata.EncodedAction]
    taken: list[calldata.EncodedAction]
    before: list[tuple[int, bytes]]
    after: list[tuple[int, bytes]]
    router: Address
    receiver: Address

    def wrap(self, swapped: tuple[int, bytes]) -> list[tuple[int, bytes]]:
        return [*self.before, swapped, *self.after]

    def recipients(self, takes: tuple[Address, ...]) -> tuple[Address, ...]:
        router = (self.router,)
        return (*router * len(self.before), *router * len(self.taken), *takes, *(self.receiver,) * len(self.after))


def _open_swap(
    at: Deployment, key: PoolKey, zero_for_one: bool, main: SwapBound, route: PoolKey | None, receiver: Address
) -> _OpenedSwap:
    """The main swap in the plan's pool or in another of the pair. What the other takes or pays in another form of the
    native coin is wrapped or unwrapped in the router; `receiver` gets what is paid."""
    ours = (key.currency0, key.currency1)
    through = route or key
    flipped = is_flipped(through, ours)
    theirs = (through.currency1, through.currency0) if flipped else (through.currency0, through.currency1)
    paid, got = ours if zero_for_one else ours[::-1]
    gives, gets = theirs if zero_for_one else theirs[::-1]
    router = at.universal_router
    opened = _OpenedSwap([_swap_action(through, zero_for_one != flipped, main, at.swap_struct)], [], [], [], router,
                         router if got == NATIVE and receiver == at.position_manager else receiver)  # fmt: skip
    if gives != paid:
        opened.actions.append(calldata.settle(gives, calldata.OPEN_DELTA, payer_is_user=False))
        if paid == NATIVE:
            opened.before.append(calldata.wrap_eth(router, main.amount_in))
        else:
            opened.before.append(permit2_transfer_from(paid, router, main.amount_in))
            opened.before.append(calldata.unwrap_weth(router, main.amount_in))
    if gets != got:
        opened.taken.append(calldata.take(gets, router, calldata.OPEN_DELTA))
        to = opened.receiver
        wraps = calldata.wrap_eth(to, calldata.WHOLE_BALANCE)
        opened.after.append(calldata.unwrap_weth(to, main.least_out) if got == NATIVE else wraps)
    return opened


def _swap_action(key: PoolKey, zero_for_one: bool, bound: SwapBound, struct: SwapStruct) -> calldata.EncodedAction:
    return calldata.swap_exact_in_single(key, zero_for_one, bound.amount_in, bound.least_out, struct)


def _wrap(terms: PlanContext, pool: PoolState, step: Step) -> tuple[Step, ...]:
    if terms.wrapper is None or terms.wrapper not in (pool.key.currency0, pool.key.currency1):
        raise Refused(
            f"pool {pool.id} does not trade what wraps this chain's native coin, so that cannot be brought to it"
        )
    wanted = sum(flow.amount for flow in step.most_out if flow.currency == terms.wrapper)
    return (build_wrap_step(terms.wrapper, wanted),) if wanted else ()


def _check_holdings(terms: PlanContext, pool: PoolState, step: Step, first: tuple[Step, ...]) -> None:
    wrapped = {flow.currency for each in first for flow in each.least_in}
    terms.check_holds(tuple(flow for flow in step.most_out if flow.currency not in wrapped), pool)
    terms.check_holds(tuple(flow for each in first for flow in each.most_out), pool)
