"""Where the money went: a position's result split into terms that must add up to it exactly.

    ΔNAV − flows = fees + price effect − divergence loss − gas − swap cost [+ hedge + funding]

Each term has a source of its own. NAV and flows come from what was measured (what a burn pays, what moved, what a
wallet's balance fell by); fees come from fee growth; price effect and divergence from liquidity and square-root
prices, rounded as the contracts round; gas from receipts; swap cost from Swap events. Of a hedge the left side has what
the trading account's ledger says, the right side its fills at the mark and its funding. The formulas are written anew
here and share no code with `zuno.amm`, whose pools pay on sim. So a residual of zero is evidence: any one wrong
number shows. Where the record names something it had to compute, it is evidence of less, and `exact` is not claimed.

All money is `Fraction`: there is nothing to round until a person reads it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

from zuno.amm.integers import Q96
from zuno.amm.model import Range, price_of
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.errors import Broken
from zuno.lp.model.history import PositionEvent, PositionHistory, PositionSnapshot, PricedBlock, WalletSwap
from zuno.lp.rules.lvr import rebalancing_gain_token1

ZERO = Fraction(0)
Value = Callable[[Fraction | int, Fraction | int, int], Fraction]
"""The worth of amounts of both tokens at a square-root price, in one numeraire."""


@dataclass(slots=True)
class PnlTerms:
    """The identity in one numeraire, in base units of that token."""

    nav_start: Fraction = ZERO
    nav_end: Fraction = ZERO
    flows: Fraction = ZERO
    external: Fraction = ZERO
    """The part of the flows that others paid in, or (negative) took."""
    fees: Fraction = ZERO
    price_effect: Fraction = ZERO
    divergence_loss: Fraction = ZERO
    gas: Fraction = ZERO
    swap_cost: Fraction = ZERO
    hedge: Fraction | None = None
    """What the short made before funding, its own fees taken off; None: it was never hedged."""
    funding: Fraction | None = None
    hedge_ledger: Fraction = ZERO
    """What the ledger says that both are."""
    most_put_in: Fraction = ZERO
    """The most that was in it at a time, by the prices of the moments it was put in at."""
    worth_if_held: Fraction = ZERO
    """What everything put in would be worth at the end had it been held; what was taken out counts against it."""

    @property
    def against_holding(self) -> Fraction:
        """What the position is ahead of its tokens held instead, gas and hedge counted."""
        return self.nav_end + self.hedge_ledger - self.worth_if_held

    @property
    def result(self) -> Fraction:
        """What the position made: the left side."""
        return self.nav_end - self.nav_start - self.flows + self.hedge_ledger

    @property
    def explained_result(self) -> Fraction:
        """What the terms say it made: the right side."""
        own = self.fees + self.price_effect - self.divergence_loss - self.gas - self.swap_cost
        return own + (self.hedge or ZERO) + (self.funding or ZERO)

    @property
    def residual(self) -> Fraction:
        """The unexplained rest; anything but zero means that a number is wrong."""
        return self.result - self.explained_result


@dataclass(frozen=True, slots=True)
class Attribution:
    """The result of a window in both numeraires, with the benchmark beside it."""

    in_token0: PnlTerms
    in_token1: PnlTerms
    fees0: int
    fees1: int
    gas_wei: int
    gas_valued: bool
    """False: the gas could not be priced, so it is left out of the identity."""
    measured: bool
    """False: part of the record was computed by the formulas that explain it."""
    lvr_token0: float
    lvr_token1: float

    @property
    def adds_up(self) -> bool:
        """Whether nothing is left unexplained, in either numeraire."""
        return self.in_token0.residual == 0 == self.in_token1.residual

    @property
    def exact(self) -> bool:
        """Adds up, and every number in it was measured on one side and computed on the other."""
        return self.adds_up and self.measured


@dataclass(frozen=True, slots=True)
class _Leg:
    """A position between two touches."""

    range: Range
    liquidity: int
    sqrt_price_x96: int
    growth_last: tuple[int, int]
    owed: tuple[int, int]

    def principal(self, sqrt_price_x96: int) -> tuple[int, int]:
        return _amounts(self.range, self.liquidity, sqrt_price_x96, round_up=False)

    def owed_at(self, growth: tuple[int, int]) -> tuple[int, int]:
        # Growth is counted modulo 2^256, in 2^-128 per unit of liquidity; a payment is whole units of it.
        earned0, earned1 = (
            floor(Fraction((now - last) % 2**256 * self.liquidity, 2**128))
            for now, last in zip(growth, self.growth_last, strict=True)
        )
        return earned0, earned1


@dataclass(frozen=True, slots=True)
class HedgeAmounts:
    """A hedge's result in base units of the pool's dollar token."""

    ledger: Fraction
    trades: Fraction
    funding: Fraction
    dollar_side: int
    sqrt_price_x96: int
    """At which it counts in the other token."""

    def add_to(self, terms: PnlTerms, value: Value) -> None:
        def convert(amount: Fraction) -> Fraction:
            amount0, amount1 = (amount, ZERO) if self.dollar_side == 0 else (ZERO, amount)
            return value(amount0, amount1, self.sqrt_price_x96)

        terms.hedge, terms.funding = convert(self.trades), convert(self.funding)
        terms.hedge_ledger = convert(self.ledger)


def attribute(history: PositionHistory, hedge: HedgeAmounts | None = None) -> Attribution:
    """Explain a window. `Broken` when the record contradicts itself; a residual is returned, never hidden."""

    def explain(value: Value) -> PnlTerms:
        terms = _terms(history, value)
        if hedge is not None:
            hedge.add_to(terms, value)
        return terms

    fees0, fees1 = (_terms(history, value).fees for value in (lambda *worth: worth[0], lambda *worth: worth[1]))
    lvr0, lvr1 = _lvr(history)
    gas_valued = history.native_side is not None or history.native_in_token1 is not None
    return Attribution(
        in_token0=explain(lambda amount0, amount1, sqrt_price: amount0 + amount1 / price_of(sqrt_price)),
        in_token1=explain(lambda amount0, amount1, sqrt_price: amount0 * price_of(sqrt_price) + amount1),
        fees0=int(fees0),
        fees1=int(fees1),
        gas_wei=sum(event.gas for event in history.events),
        gas_valued=gas_valued,
        measured=not history.computed,
        lvr_token0=lvr0,
        lvr_token1=lvr1,
    )


def _terms(history: PositionHistory, value: Value) -> PnlTerms:
    terms = PnlTerms()
    legs: dict[int, _Leg] = {}
    put_in0 = put_in1 = all_gas = price = 0
    if (start := history.start) is not None:
        legs[start.position_id] = _leg_standing(start)
        put_in0, put_in1, price = start.worth0, start.worth1, start.sqrt_price_x96
        terms.nav_start = terms.most_put_in = _worth(start, value)
    worth_put_in = terms.nav_start
    for event in history.events:
        if isinstance(event, WalletSwap):
            # It adds nothing to the position: what it gave beyond what it got, at the price before it, is cost.
            price = event.sqrt_price_before_x96
            terms.swap_cost += value(event.swapped0, event.swapped1, price)
        else:
            price = event.sqrt_price_x96
            _apply_liquidity_change(terms, legs, event, value)
        gas_paid, paid = event.gas if event.gas_paid is None else event.gas_paid, value(event.paid0, event.paid1, price)
        terms.gas += _gas_value(history, event.gas, price, value)
        terms.flows += paid + _gas_value(history, gas_paid, price, value)
        put_in0, put_in1, all_gas = put_in0 + event.paid0, put_in1 + event.paid1, all_gas + gas_paid
        worth_put_in += paid
        terms.most_put_in = max(terms.most_put_in, worth_put_in)
    for other in history.externals:
        terms.external += value(other.amount0, other.amount1, other.sqrt_price_x96)
    if history.end is not None:
        end = history.end
        leg = legs.pop(end.position_id, None)
        if leg is None or leg.liquidity != end.liquidity:
            raise Broken(f"position {end.position_id} ends with liquidity that its own history does not explain")
        growth = (end.fee_growth_inside0_x128, end.fee_growth_inside1_x128)
        price = end.sqrt_price_x96
        _accrue_to_price(terms, leg, price, growth, value)
        terms.nav_end = _worth(end, value)
    if any(leg.liquidity for leg in legs.values()):
        raise Broken(f"positions {sorted(legs)} are still open though the record says that nothing is left")
    terms.worth_if_held = value(put_in0, put_in1, price) + _gas_value(history, all_gas, price, value)
    return terms


def _leg_standing(start: PositionSnapshot) -> _Leg:
    last = (start.fee_growth_inside0_last_x128, start.fee_growth_inside1_last_x128)
    leg = _Leg(start.range, start.liquidity, start.sqrt_price_x96, last, (0, 0))
    return replace(leg, owed=leg.owed_at((start.fee_growth_inside0_x128, start.fee_growth_inside1_x128)))


def _worth(standing: PositionSnapshot, value: Value) -> Fraction:
    return value(standing.worth0, standing.worth1, standing.sqrt_price_x96)


def _accrue_to_price(terms: PnlTerms, leg: _Leg, sqrt_price_x96: int, growth: tuple[int, int], value: Value) -> None:
    """Bring a leg from its last mark to a price: what it earned, what the price did, what the curve cost."""
    owed = leg.owed_at(growth)
    before, after = leg.principal(leg.sqrt_price_x96), leg.principal(sqrt_price_x96)
    held = (before[0] + leg.owed[0], before[1] + leg.owed[1])
    terms.fees += value(owed[0] - leg.owed[0], owed[1] - leg.owed[1], sqrt_price_x96)
    terms.price_effect += value(*held, sqrt_price_x96) - value(*held, leg.sqrt_price_x96)
    terms.divergence_loss += value(*before, sqrt_price_x96) - value(*after, sqrt_price_x96)


def _apply_liquidity_change(terms: PnlTerms, legs: dict[int, _Leg], touch: PositionEvent, value: Value) -> None:
    price = touch.sqrt_price_x96
    growth = (touch.fee_growth_inside0_x128, touch.fee_growth_inside1_x128)
    leg = legs.get(touch.position_id, _Leg(touch.range, 0, price, growth, (0, 0)))
    if leg.liquidity + touch.liquidity_delta != touch.liquidity_after:
        raise Broken(f"position {touch.position_id} at block {touch.block.number}: liquidity does not add up")
    _accrue_to_price(terms, leg, price, growth, value)
    after = replace(leg, liquidity=touch.liquidity_after, sqrt_price_x96=price, growth_last=growth, owed=(0, 0))
    # The contract rounds in its own favour at every touch; that dust is a cost of holding the curve.
    moves = zip(leg.principal(price), principal_exchanged(touch), after.principal(price), strict=True)
    dust0, dust1 = (before + exchanged - left for before, exchanged, left in moves)
    terms.divergence_loss += value(dust0, dust1, price)
    legs[touch.position_id] = after


def principal_exchanged(touch: PositionEvent) -> tuple[int, int]:
    """What the contract asks for (positive) or gives (negative) for this change of liquidity, by formula."""
    delta = touch.liquidity_delta
    amount0, amount1 = _amounts(touch.range, abs(delta), touch.sqrt_price_x96, round_up=delta > 0)
    return (amount0, amount1) if delta > 0 else (-amount0, -amount1)


def _gas_value(history: PositionHistory, gas: int, sqrt_price_x96: int, value: Value) -> Fraction:
    match history.native_side:
        case 0:
            return value(gas, 0, sqrt_price_x96)
        case 1:
            return value(0, gas, sqrt_price_x96)
    if history.native_in_token1 is None:
        return ZERO
    return value(0, gas * history.native_in_token1, sqrt_price_x96)


def _lvr(history: PositionHistory) -> tuple[float, float]:
    """Realised LVR along the recorded prices, in both tokens: what rebalancing at each price would have kept. Steps are
    cut at the range's edges, and end where the position changes."""
    touches = [event for event in history.events if isinstance(event, PositionEvent)]
    open_legs: dict[int, tuple[Range, int]] = {}
    if history.start is not None:
        open_legs[history.start.position_id] = (history.start.range, history.start.liquidity)
    cost0 = cost1 = 0.0
    points: list[PricedBlock | PositionEvent] = sorted([*touches, *history.path], key=lambda point: point.block.number)
    for before, after in pairwise(points):
        if isinstance(before, PositionEvent):
            open_legs[before.position_id] = (before.range, before.liquidity_after)
        step = sum(
            rebalancing_gain_token1(
                liquidity,
                span.edges_x96,
                before.sqrt_price_x96,
                after.sqrt_price_x96,
            )
            for span, liquidity in open_legs.values()
        )
        cost1 += step
        cost0 += step / float(price_of(after.sqrt_price_x96))
    return cost0, cost1


def _amounts(span: Range, liquidity: int, sqrt_price_x96: int, *, round_up: bool) -> tuple[int, int]:
    """The curve itself, L·(1/√P − 1/√Pᵤ) and L·(√P − √Pₗ), as exact fractions that are rounded once, at the end."""
    low, price, high = (
        Fraction(root, Q96) for root in (sqrt_price_at_tick(span.lower), sqrt_price_x96, sqrt_price_at_tick(span.upper))
    )
    within = min(max(price, low), high)
    exact0, exact1 = liquidity * (1 / within - 1 / high), liquidity * (within - low)
    return (ceil(exact0), ceil(exact1)) if round_up else (floor(exact0), floor(exact1))
