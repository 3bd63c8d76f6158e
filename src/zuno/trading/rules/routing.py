"""Routing: exchanges by direction and leverage, execution style, and the size of each leg: within its cap, and no
smaller than the least order its exchange takes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil, floor, fsum, inf
from typing import Final

from zuno.kernel.errors import NotFound
from zuno.markets.market import Symbol
from zuno.markets.routes import BOTH, LEVERED, OWN_MONEY
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import Call, Closing, Expectation, Leg, Style, Target
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Mode, Side
from zuno.trading.rules.account import MarkedAccount
from zuno.trading.rules.draft import RuleName, RulingDraft, record_margin, veto_trade
from zuno.trading.rules.inputs import Fees, RulingInputs

_CUT_BY: Final = (RuleName.ALREADY_HELD, RuleName.VENUE_CAP, RuleName.RATE)
"""What is held already, the exchange's room, and what keeps a leg from being placed at all."""
MIN_NOTIONAL_BUFFER: Final = 1.02
"""What a spot position is worth at its stop above the least order: prices and rates move until it is sold."""


@dataclass(frozen=True, slots=True)
class LegCut:
    rule: RuleName
    exchange: Venue
    meant: float
    left: float
    why: str


def choose_target(call: Call, leverage: float, mode: Mode) -> Target:
    """The route of what is short or borrowed for; of one's own money its own in POSITION, both in SWING."""
    if call is Call.SHORT or leverage > 1:
        return Target(LEVERED)
    return Target(OWN_MONEY if mode is Mode.POSITION else BOTH)


def venues_of(target: Target, inputs: RulingInputs) -> tuple[Venue, ...]:
    return tuple(inputs.routes.shares[target])


def target_of(legs: Iterable[Leg | Closing], inputs: RulingInputs) -> Target | None:
    name = inputs.routes.find_name(leg.venue for leg in legs)
    return None if name is None else Target(name)


def choose_style(inputs: RulingInputs) -> Style:
    """A true breakout is taken at once, a restless or unknown market in parts, a calm one passively."""
    if inputs.breakout is True:
        return Style.MOMENTUM_SNIPER
    return Style.PASSIVE_MAKER if inputs.breakout is False and inputs.high_volatility is False else Style.SMART_DCA


def size_legs(
    side: Side, allocation_pct: float, leverage: float, target: Target, inputs: RulingInputs
) -> tuple[tuple[Leg, ...], list[LegCut]]:
    """Each exchange's part of the allocation, of its own equity, less what is held of the symbol that way, within its
    cap; and what was cut, rule by rule. A leg that cannot be placed is dropped, never moved."""
    account = inputs.marked_account
    if isinstance(account, Missing):
        return (), []
    meant = {
        venue: _leg(venue, side, allocation_pct / 100 * share * max(0.0, account.equity.get(venue, 0.0)), leverage)
        for venue, share in inputs.routes.shares[target].items()
    }
    whole = fsum(leg_notional_usd(leg, inputs) for leg in meant.values())
    held, new = held_usd(account, inputs.symbol, side), 1.0
    if held > 0:  # by size over all exchanges together
        new = max(0.0, 1 - held / whole) if whole > 0 else 0.0
    sized = [_size_leg(leg, new, account, inputs) for leg in meant.values()]
    cuts = sorted((cut for _, several in sized for cut in several), key=lambda cut: _CUT_BY.index(cut.rule))
    return tuple(leg for leg, _ in sized if leg is not None and leg.margin > 0), cuts


def margin_room(account: MarkedAccount, leg: Leg, fees: Fees) -> float:
    """Margin left for a leg under its cap that the account can pay with the fee; negative if overdrawn."""
    exchange = leg.venue
    fee = leg.leverage * fees.at(exchange).taker / 100
    return min(exchange.margin_cap - account.margin[exchange].total, account.free[exchange] / (1 + fee))


def leg_notional_usd(leg: Leg, inputs: RulingInputs) -> float:
    """The notional in dollars; a leg in a currency that nobody can convert is none."""
    rate = inputs.rate(leg.venue)
    return 0.0 if isinstance(rate, Missing) else leg.notional / rate


def with_margin(leg: Leg, margin: float) -> Leg:
    """The same leg with that margin, in whole parts of its currency, rounded down."""
    grain: int = 10**leg.venue.cash_decimals
    kept = floor(max(0.0, margin) * grain + 1e-9) / grain  # what a double falls short of a whole part by is no part
    return leg.model_copy(update={"margin": kept, "notional": kept * leg.leverage})


def least_notional(exchange: Venue, entry: float, stop: float | None, inputs: RulingInputs) -> float:
    """The least notional of an entry. At a spot exchange it must be sellable at the stop, too, in whole lots of what a
    fee in coins leaves of it."""
    market = inputs.market(exchange)
    if not exchange.spot or stop is None or not 0 < stop < entry:
        return market.min_notional
    price = price_at(exchange, entry, inputs) if exchange.fee_in_base else 0.0
    rest = 0.0 if isinstance(price, Missing) else market.lot * price
    return market.min_notional * entry / stop * MIN_NOTIONAL_BUFFER + rest


def minimum_margin(leg: Leg, entry: float, stop: float | None, inputs: RulingInputs) -> Known[float]:
    """The least margin that buys whole lots of the least notional the exchange takes."""
    price = price_at(leg.venue, entry, inputs)
    if isinstance(price, Missing) or price <= 0:
        return price if isinstance(price, Missing) else Missing(f"{price} is no price")
    lot = inputs.market(leg.venue).lot
    lots = ceil(least_notional(leg.venue, entry, stop, inputs) / price / lot - 1e-9)
    return _margin_of(leg, lots * lot, price)


def with_lots(leg: Leg, entry: float, stop: float | None, inputs: RulingInputs) -> Leg | None:
    """The leg in whole lots, with the margin that these take; None below the least the exchange takes."""
    price = price_at(leg.venue, entry, inputs)
    if isinstance(price, Missing) or price <= 0:
        return None
    lot = inputs.market(leg.venue).lot
    quantity = round(floor(leg.notional / price / lot + 1e-9) * lot, 8)
    if quantity <= 0 or quantity * price < least_notional(leg.venue, entry, stop, inputs) * (1 - 1e-12):
        return None
    margin = min(leg.margin, _margin_of(leg, quantity, price))
    return leg.model_copy(update={"quantity": quantity, "margin": margin, "notional": margin * leg.leverage})


def _margin_of(leg: Leg, quantity: float, price: float) -> float:
    """In whole parts of its currency, rounded up: no less buys so much."""
    grain: int = 10**leg.venue.cash_decimals
    return ceil(quantity * price / leg.leverage * grain - 1e-6) / grain


def price_at(exchange: Venue, entry: float, inputs: RulingInputs) -> Known[float]:
    """A price in dollars in the exchange's own currency."""
    rate = inputs.rate(exchange)
    return rate if isinstance(rate, Missing) else entry * rate


def allocation_pct_of(legs: tuple[Leg, ...], account: Known[MarkedAccount]) -> float:
    """Margin as a percentage of the equity that carries it; halves add up."""
    if isinstance(account, Missing):
        return 0.0
    return fsum(100 * leg.margin / account.equity[leg.venue] for leg in legs if account.equity[leg.venue] > 0)


def with_legs(draft: RulingDraft, inputs: RulingInputs, legs: tuple[Leg, ...], most: float = inf) -> RulingDraft:
    """`most`: the allocation that was meant; what the legs take of the equity may be less."""
    allocation = min(most, allocation_pct_of(legs, inputs.marked_account))
    return replace(draft, legs=legs, allocation_pct=allocation, target=target_of(legs, inputs))


def _leg(exchange: Venue, side: Side, margin: float, leverage: float) -> Leg:
    """Spot is never borrowed for."""
    borrowed = 1.0 if exchange.spot else float(leverage)
    size = {"margin": margin, "notional": margin * borrowed, "leverage": borrowed}
    return Leg(venue=exchange, side=side, currency=exchange.currency, **size)


def _size_leg(leg: Leg, share: float, account: MarkedAccount, inputs: RulingInputs) -> tuple[Leg | None, list[LegCut]]:
    exchange, meant = leg.venue, leg.margin
    if (why := _find_obstacle(leg, inputs)) is not None:
        return None, [LegCut(RuleName.RATE, exchange, meant, 0.0, why)]
    equity = account.equity.get(exchange, 0.0)
    if equity <= 0:
        return None, [LegCut(RuleName.VENUE_CAP, exchange, 0.0, 0.0, f"the equity is {equity:,.2f} {leg.currency}")]
    new, cuts = meant * share, list[LegCut]()
    if new < meant:
        cuts.append(LegCut(RuleName.ALREADY_HELD, exchange, meant, new, "part of it is held already"))
    room = margin_room(account, leg, inputs.fees)
    if room < new:
        used = account.margin[exchange].total
        why = f"{used:,.2f} {leg.currency} of at most {used + room:,.2f} are used"
        cuts.append(LegCut(RuleName.VENUE_CAP, exchange, new, max(0.0, room), why))
    return with_margin(leg, min(new, room)), cuts


def _find_obstacle(leg: Leg, inputs: RulingInputs) -> str | None:
    """Why a venue cannot carry a leg at all."""
    if leg.side is Side.SHORT and not leg.venue.shorts:
        return "spot cannot be sold short"
    if isinstance(inputs.rate(leg.venue), Missing):
        return f"what a dollar is in {leg.venue.currency} is not known"
    try:
        trading = inputs.market(leg.venue).trading
    except NotFound as error:
        return str(error).rstrip(".")
    return None if trading else f"{leg.venue.label} has halted {inputs.symbol.base}"


def held_usd(account: MarkedAccount, symbol: Symbol, side: Side) -> float:
    """What is held of the symbol that way, wherever it is, at its mark: orders that would add to it included."""
    position = account.position
    sizes = [] if position is None or position.side is not side else [holding.quantity for holding in position.holdings]
    sizes += [order.quantity for order in account.pending if order.side is side and not order.reduce_only]
    return fsum(sizes) * account.marks[symbol]


MAX_STOP_RISK_PCT: Final = 1.0
"""Per cent of the equity that a stop may cost."""
MAX_EXPLORATION_RISK_PCT: Final = 0.25
"""The same of an exploration, fees and slippage included."""


def raise_to_minimum(draft: RulingDraft, inputs: RulingInputs, before: tuple[Leg, ...] = ()) -> RulingDraft:
    """Raise each leg to the exchange's minimum or drop it; veto without legs. `before`: legs as last recorded."""
    fitted = [(leg, _fit_leg(leg, draft, inputs)) for leg in draft.legs]
    kept = tuple(result for _, result in fitted if isinstance(result, Leg))
    if not kept:
        why = next((result for _, result in fitted if isinstance(result, str)), "no money is left to place")
        return veto_trade(draft, RuleName.MINIMUM_ORDER, why)
    recorded = {leg.venue: 0.0 for leg in draft.legs if before} | {leg.venue: leg.margin for leg in before}
    for leg, result in fitted:
        raised = f"{leg.venue} takes no smaller order"
        margin, why = (0.0, result) if isinstance(result, str) else (result.margin, raised)
        if margin not in (leg.margin, recorded.get(leg.venue)):
            draft = record_margin(draft, RuleName.MINIMUM_ORDER, leg.venue, round(leg.margin, 6), margin, why)
    return replace(draft, legs=kept, target=target_of(kept, inputs))


def stop_loss_pct(expectation: Expectation) -> float:
    """What the stop costs, in per cent of the notional, fees and slippage included."""
    return expectation.loss_pct + expectation.fees_pct + expectation.slippage_pct


def _fit_leg(leg: Leg, draft: RulingDraft, inputs: RulingInputs) -> Leg | str:
    """The leg as it may be placed, or why not. The Judge's allocation is a ceiling, what is held already is not raised,
    and each leg has its own share of what the stop may cost."""
    account, worth, routed_to = inputs.marked_account, draft.expectation, draft.routed_to
    least = minimum_margin(leg, draft.decision.entry_price or 0.0, draft.decision.stop_loss, inputs)
    if isinstance(least, Missing) or leg.margin >= least:
        return leg
    if isinstance(account, Missing) or worth is None or routed_to is None:
        return leg
    share, unit = inputs.routes.shares[routed_to].get(leg.venue, 1.0), leg.currency
    minimum = f"{leg.venue} takes {least:,.2f} {unit} of margin at least"
    if held_usd(account, inputs.symbol, leg.side) > 0:
        return f"{minimum}, and what is held already is topped up by less"
    asked = draft.decision.allocation_pct / 100 * share * max(0.0, account.equity[leg.venue])
    room = min(asked, margin_room(account, leg, inputs.fees))
    if least > room:
        return f"{minimum}: more than the {max(0.0, room):,.2f} that are {'asked for' if room == asked else 'left'}"
    raised = leg.model_copy(update={"margin": least, "notional": least * leg.leverage})
    size = leg_notional_usd(raised, inputs)
    if size > (bears := draft.kelly_cap_usd * share):
        return f"{minimum}: ${size:,.2f}, where the edge bears ${bears:,.2f}"
    loss = size * stop_loss_pct(worth) / 100
    risked = MAX_EXPLORATION_RISK_PCT if draft.exploration else MAX_STOP_RISK_PCT
    most = max(0.0, account.equity_usd) * risked / 100 * share
    if loss > most:
        return f"{minimum}, and the stop would cost ${loss:,.2f} of at most ${most:,.2f}"
    return raised
