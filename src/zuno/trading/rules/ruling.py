"""From a decision to a ruling: desk rules, risk rules and leverage guard, in that order. Each can only reduce, but an
order is raised to the least its exchange takes. A ruling is a pure function of the decision and its inputs. Exits
pass."""

from collections.abc import Iterator
from dataclasses import replace
from math import fsum
from typing import Final

from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.routes import LEVERED
from zuno.trading.measure.portable import round_digits
from zuno.trading.model import cycle
from zuno.trading.model.account import Holding, RestingOrder
from zuno.trading.model.known import Missing, NotRecorded, derive, pick
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.rules import expectancy, routing
from zuno.trading.rules.account import MarkedAccount, WholeAccount, group_net_usd
from zuno.trading.rules.calibration import NO_SLOPE, find_slope, judge_kind
from zuno.trading.rules.draft import RuleName, RulingDraft, change_allocation, record_change, record_margin, veto_trade
from zuno.trading.rules.expectancy import gross_ev, llm_cost_pct, require_expectancy, trade_prices
from zuno.trading.rules.inputs import PANIC_RANK, RulingInputs, missing_essentials
from zuno.trading.rules.margin import liquidation_distance
from zuno.trading.rules.price_menu import round_to_tick
from zuno.trading.rules.risk_rules import place_legs

PANIC_BUDGET: Final = 20
"""The most that is risked of what could be, in per cent, unless the market is known to be calm."""


def start_draft(
    decision: cycle.Decision, meta: cycle.Meta | None, inputs: RulingInputs, spent_usd: float, ahead_usd: float
) -> RulingDraft:
    """A validated decision after budget, stop and expectancy. `meta`: None where nobody set a budget, which is none."""
    opens = decision.decision.side is not None
    draft = RulingDraft(
        decision,
        decision.decision,
        allocation_pct=float(decision.allocation_pct) if opens else 0.0,
        leverage=float(decision.leverage) if opens else 1.0,
        cost_usd=spent_usd + ahead_usd,
        family=None if meta is None else meta.regime.family,
    )
    for passed in inputs.exits:  # a stop, target or hold time that is passed ends the position, whatever was decided
        draft = _turn_into_exit(draft, passed.rule, passed.why)
    if inputs.exits or draft.call is cycle.Call.CANCEL_AND_CLOSE:
        leaving = () if decision.decision is cycle.Call.CANCEL_AND_CLOSE else _list_leaving(inputs)
        return _close(draft, inputs, leaving)
    draft = _close_after_shock(draft, inputs)
    for rule in (_close_opposite_first, _veto_unfit, _wait_after_shock):
        if draft.opens:
            draft = rule(draft, inputs)
    if draft.opens:
        draft = _apply_risk_budget(draft, meta, inputs)
    for rule in (_route_trade, _limit_stop_risk, _check_expectancy):
        if draft.opens:
            draft = rule(draft, inputs)
    return draft


def finish_ruling(draft: RulingDraft, inputs: RulingInputs, now: Millis) -> cycle.Ruling:
    """Turn a draft into a ruling. `now`: wall clock when live, market time when recorded."""
    until = valid_until(inputs.mode, inputs.as_of)
    draft = size_orders(draft, inputs)
    ruling = cycle.Ruling(
        decision=draft.call,
        target_exchange=draft.target,
        execution_style=draft.style,
        card=build_card(draft, inputs),
        valid_until=iso(until),
        **pick(draft, "allocation_pct", "leverage", "legs", "closes", "veto", "changes"),
    )
    return expire_ruling(ruling) if now > until else ruling


def valid_until(mode: Mode, as_of: Millis) -> Millis:
    return Millis(as_of + cycle.VALID_MINUTES[mode] * MINUTE_MS)


def expire_ruling(ruling: cycle.Ruling) -> cycle.Ruling:
    """A ruling past its validity opens nothing. Exits stay."""
    if ruling.decision.side is None:
        return ruling
    why = f"it was good until {ruling.valid_until}"
    rule, hold = RuleName.EXPIRED.value, cycle.Call.HOLD
    change = cycle.RuleChange(by=rule, field="decision", from_=ruling.decision.value, to=hold.value, why=why)
    nothing = {"decision": hold, "allocation_pct": 0.0, "leverage": 1.0, "legs": (), "closes": ()}
    unsent = dict.fromkeys(("target_exchange", "execution_style", "card"))
    why_not = {"veto": rule, "changes": (*ruling.changes, change)}
    return ruling.model_copy(update=nothing | unsent | why_not)


def held_sides(inputs: RulingInputs) -> tuple[Side, ...]:
    """Which ways the desk stands in the symbol, orders that would open something included; none where nobody knows."""
    if isinstance(inputs.account, Missing):
        return ()
    sides = [position.side for position in inputs.account.positions if position.symbol is inputs.symbol]
    sides += [order.side for order in inputs.account.pending if order.symbol is inputs.symbol and not order.reduce_only]
    return tuple(sides)


# -- the rules of the desk, in their order


def _turn_into_exit(draft: RulingDraft, rule: RuleName, why: str) -> RulingDraft:
    changed = record_change(draft, rule, "decision", draft.call, cycle.Call.CANCEL_AND_CLOSE, why)
    return replace(changed, call=cycle.Call.CANCEL_AND_CLOSE, allocation_pct=0.0, leverage=1.0)


def _close_opposite_first(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """One position per symbol: the other way begins with the end of this one."""
    against = [side for side in held_sides(inputs) if side is not draft.call.side]
    if not against:
        return draft
    why = f"a {against[0]} is open: it ends now, the other side may begin next cycle"
    return _close(_turn_into_exit(draft, RuleName.CLOSE_FIRST, why), inputs)


def _close_after_shock(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """A shock or cascade of the last hour against what is held ends it, whatever was decided."""
    for side in dict.fromkeys(held_sides(inputs)):
        shock = inputs.shock_against(side)
        if shock is not None and not isinstance(shock, Missing):
            why = f"a {side} is open, and within the last hour it ran against it: {shock}"
            return _close(_turn_into_exit(draft, RuleName.SHOCK_EXIT, why), inputs)
    return draft


def _wait_after_shock(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """For an hour after a shock or cascade nothing is opened against it, and nothing topped up."""
    shock = None if draft.call.side is None else inputs.shock_against(draft.call.side)
    if shock is None:
        return draft
    if isinstance(shock, Missing):
        return veto_trade(draft, RuleName.SHOCK_COOLDOWN, f"a shock is not ruled out: {shock.reason}", unknown=True)
    return veto_trade(draft, RuleName.SHOCK_COOLDOWN, f"within the last hour: {shock}")


def _close(draft: RulingDraft, inputs: RulingInputs, leaving: tuple[cycle.Closing, ...] = ()) -> RulingDraft:
    """Close what leaves, else all positions, and cancel all orders in the symbol. It needs no other input."""
    closes = leaving or _list_closes(inputs)
    return replace(draft, style=cycle.Style.CASINO_EXIT, target=routing.target_of(closes, inputs), closes=closes)


def _list_leaving(inputs: RulingInputs) -> tuple[cycle.Closing, ...]:
    """What leaves at a target that is passed, where everything that is held runs on past it; empty where all ends."""
    account = inputs.account
    if isinstance(account, Missing) or any(passed.rule is not RuleName.TARGET_PASSED for passed in inputs.exits):
        return ()
    held = [position for position in account.positions if position.symbol is inputs.symbol]
    if not all(position.leaves for position in held):
        return ()
    passed = {passed.id for passed in inputs.exits}
    leaving = ((each, each.leaves) for each in held if each.leaves and each.id in passed)
    return tuple(_end(each, left) for each, left in leaving)


def _list_closes(inputs: RulingInputs) -> tuple[cycle.Closing, ...]:
    """Positions first, then the orders that would open or close more; none where nobody knows."""
    account = inputs.account
    if isinstance(account, Missing):
        return ()
    held: list[Holding | RestingOrder] = [*account.positions, *account.pending]
    return tuple(_end(each, each.quantity) for each in held if each.symbol is inputs.symbol)


def _end(held: Holding | RestingOrder, quantity: float) -> cycle.Closing:
    what = "position" if isinstance(held, Holding) else "order"
    return derive(cycle.Closing, held, venue=held.exchange, what=what, quantity=quantity)


def _veto_unfit(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """What nobody who could decided, or decided without the facts, or for money by candles alone."""
    if draft.decision.source == "fallback":
        why = "the Judge's model failed: the rules in its place open nothing"
        return veto_trade(draft, RuleName.JUDGE_FALLBACK, why)
    if gone := missing_essentials(inputs):
        return veto_trade(draft, RuleName.MISSING_FACTS, "; ".join(gone), unknown=True)
    if inputs.candles_only and not inputs.paper:
        return veto_trade(draft, RuleName.PAPER_ONLY, "this home holds candles alone: they are traded on paper only")
    return draft


def _apply_risk_budget(draft: RulingDraft, meta: cycle.Meta | None, inputs: RulingInputs) -> RulingDraft:
    budget = 0 if meta is None else meta.risk_budget_pct
    if budget > PANIC_BUDGET and (why := _panic_reason(inputs)):
        draft = record_change(draft, RuleName.PANIC_BUDGET, "risk_budget_pct", budget, PANIC_BUDGET, why)
        budget = PANIC_BUDGET
    if budget >= 100:
        return draft
    why = "nobody set a budget" if meta is None else f"{budget} % of what could be risked may be"
    if budget <= 0:
        return veto_trade(draft, RuleName.RISK_BUDGET, why, unknown=meta is None)
    return _cut_allocation(draft, RuleName.RISK_BUDGET, draft.allocation_pct * budget / 100, why)


def _panic_reason(inputs: RulingInputs) -> str | None:
    if inputs.panic is not False and not isinstance(inputs.panic, NotRecorded):
        return "options are in panic" if inputs.panic is True else f"panic is not ruled out: {inputs.panic.reason}"
    if isinstance(inputs.day_volatility_rank, Missing):
        return f"panic is not ruled out: {inputs.day_volatility_rank.reason}"
    if inputs.day_fell and inputs.day_volatility_rank >= PANIC_RANK:
        return f"the day fell, and moved more than {100 * inputs.day_volatility_rank:.0f} % of its like"
    return None


def _limit_stop_risk(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Fees and slippage included."""
    side, style, target = draft.call.side, draft.style, draft.routed_to
    prices = None if side is None else expectancy.trade_prices(draft.decision, side)
    if side is None or prices is None or style is None or target is None:
        return veto_trade(draft, RuleName.MISSING_FACTS, "its prices make no trade", unknown=True)
    leverage = min(draft.leverage, cycle.LEVERAGE_CAP[inputs.mode])
    venues = routing.venues_of(target, inputs)
    estimates = (expectancy.round_trip_costs(venue, side, style, inputs) for venue in venues)
    costs = max(costs.total for costs in estimates if not isinstance(costs, Missing))
    loss = prices.risk * 100 + costs
    most = 100 * routing.MAX_STOP_RISK_PCT / (leverage * loss)
    if draft.allocation_pct <= most:
        return draft
    why = (
        f"a stop {prices.risk * 100:.2f} % away and {costs:.2f} % of fees and slippage at {leverage:g}× may cost "
        f"{routing.MAX_STOP_RISK_PCT:g} % of the equity"
    )
    return _cut_allocation(draft, RuleName.STOP_RISK, most, why)


def _route_trade(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Where it goes is settled by what was decided: a smaller leverage later sends nothing elsewhere."""
    leverage = min(draft.leverage, cycle.LEVERAGE_CAP[inputs.mode])
    target: cycle.Target = routing.choose_target(draft.call, leverage, inputs.mode)
    if any(isinstance(inputs.rate(venue), NotRecorded) for venue in routing.venues_of(target, inputs)):
        target = cycle.Target(LEVERED)
    return replace(draft, target=target, routed_to=target, style=routing.choose_style(inputs))


def _check_expectancy(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    trial = place_legs(draft, inputs)
    if not trial.opens or draft.call.side is None or draft.routed_to is None or draft.style is None:
        return trial
    size = fsum(routing.leg_notional_usd(leg, inputs) for leg in trial.legs)
    several = routing.venues_of(draft.routed_to, inputs)
    record = inputs.record
    slope = NO_SLOPE if isinstance(record, Missing) else find_slope(record, judge_kind(draft.decision))
    worth = expectancy.estimate_expectation(
        draft.decision, draft.call.side, several, draft.style, inputs, slope, draft.cost_usd, size
    )
    if isinstance(worth, Missing):
        return veto_trade(draft, RuleName.MISSING_FACTS, worth.reason, unknown=True)
    judged = require_expectancy(replace(draft, legs=trial.legs, expectation=worth), inputs)
    return routing.raise_to_minimum(judged, inputs) if judged.opens and not judged.exploration else judged


def _cut_allocation(draft: RulingDraft, rule: RuleName, allocation: float, why: str) -> RulingDraft:
    return draft if allocation >= draft.allocation_pct else change_allocation(draft, rule, allocation, why)


MAX_ACCOUNT_LEVERAGE: Final = 2.0
MAX_GROUP_LEVERAGE: Final = 1.0
"""Net, of markets that move together."""


def apply_leverage_guard(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Scale the legs into the remaining room, then check the EV at that size. Calls that open nothing pass."""
    if not draft.opens:
        return draft
    return require_expectancy(_scale_into_room(draft, inputs), inputs)


def _scale_into_room(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    account = inputs.marked_account
    if isinstance(account, Missing):
        return veto_trade(draft, RuleName.LEVERAGE_GUARD, account.reason, unknown=True)
    if draft.routed_to is None:
        return veto_trade(draft, RuleName.LEVERAGE_GUARD, "it was sent nowhere", unknown=True)
    room, why = min(_list_rooms(draft, inputs, account), key=lambda limit: limit[0])
    # Each leg has its own part of the room, so that losing one never lets the other grow.
    share = max(0.0, room) / len(routing.venues_of(draft.routed_to, inputs))
    kept: list[cycle.Leg] = []
    for leg in draft.legs:
        size = routing.leg_notional_usd(leg, inputs)
        smaller = leg if 0 < size <= share else routing.with_margin(leg, leg.margin * share / size if size > 0 else 0.0)
        if smaller is not leg:
            draft = record_margin(draft, RuleName.LEVERAGE_GUARD, leg.venue, leg.margin, smaller.margin, why)
        kept += [smaller] if smaller.margin > 0 else []
    if not kept:
        return veto_trade(draft, RuleName.LEVERAGE_GUARD, why)
    return routing.with_legs(draft, inputs, tuple(kept), draft.allocation_pct)


def _list_rooms(draft: RulingDraft, inputs: RulingInputs, account: MarkedAccount) -> Iterator[tuple[float, str]]:
    """What each limit leaves in dollars, and why: of the debate by itself, as if it were alone, and of the account."""
    whole = account.whole
    carriers: list[tuple[str, MarkedAccount | WholeAccount, frozenset[Symbol]]] = [
        ("the account" if whole is None else "the debate", account, inputs.group)
    ]
    if whole is not None:
        carriers.append(("the account with all its sleeves", whole, inputs.whole_group))
    for name, carrier, group in carriers:
        room = MAX_ACCOUNT_LEVERAGE * carrier.equity_usd - carrier.exposure_usd
        yield (
            room,
            f"{name} carries ${carrier.exposure_usd:,.2f} on ${carrier.equity_usd:,.2f} and may carry "
            f"{MAX_ACCOUNT_LEVERAGE:.1f}×: ${max(0.0, room):,.2f} are left",
        )
        if len(group) > 1 and not isinstance(inputs.account, Missing) and draft.call.side is not None:
            net = group_net_usd(account, inputs.account, group)
            if isinstance(carrier, WholeAccount):
                net += fsum(usd for symbol, usd in carrier.others_net_usd.items() if symbol in group)
            room = MAX_GROUP_LEVERAGE * carrier.equity_usd - draft.call.side.sign * net
            yield (
                room,
                f"{', '.join(sorted(group))} move together and carry ${net:+,.2f} net, at most "
                f"{MAX_GROUP_LEVERAGE:.1f}× the equity: ${max(0.0, room):,.2f} are left",
            )


def size_orders(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Legs in whole lots. A leg below the least its exchange takes is dropped; with none left nothing is opened."""
    entry = draft.decision.entry_price
    if not draft.opens or entry is None:
        return draft
    sized: list[cycle.Leg] = []
    for leg in draft.legs:
        whole = routing.with_lots(leg, entry, draft.decision.stop_loss, inputs)
        if whole is not None:
            sized.append(whole)
            continue
        why = f"{leg.venue} takes no order of less than its minimum in whole lots"
        draft = record_margin(draft, RuleName.MINIMUM_ORDER, leg.venue, leg.margin, 0.0, why)
    if not sized:
        return veto_trade(draft, RuleName.MINIMUM_ORDER, "no leg is as large as the least its exchange takes")
    return routing.with_legs(draft, inputs, tuple(sized))


def build_card(draft: RulingDraft, inputs: RulingInputs) -> cycle.TradeCard | None:
    """The card of a draft in whole lots; None where nothing is opened."""
    side, worth = draft.call.side, draft.expectation
    prices = None if side is None else trade_prices(draft.decision, side)
    if side is None or worth is None or prices is None or isinstance(inputs.marked_account, Missing) or not draft.legs:
        return None
    tick = inputs.tick
    entry, stop, target = (round_to_tick(price, tick) for price in (prices.entry, prices.stop, prices.take))
    quantity = fsum(leg.quantity or 0.0 for leg in draft.legs)
    notional = quantity * entry
    loss = notional * routing.stop_loss_pct(worth) / 100
    equity = inputs.marked_account.equity_usd
    sizes = [routing.leg_notional_usd(leg, inputs) for leg in draft.legs]
    margin = fsum(size / leg.leverage for size, leg in zip(sizes, draft.legs, strict=True))
    return cycle.TradeCard(
        side=side,
        entry=entry,
        stop=stop,
        target=target,
        stop_pct=round_digits(100 * (stop / entry - 1), 9),
        target_pct=round_digits(100 * (target / entry - 1), 9),
        quantity=round(quantity, 8),
        notional_usd=round(notional, 2),
        margin_usd=round(margin, 2),
        leverage=draft.leverage,
        loss_at_stop_usd=round(loss, 2),
        loss_at_stop_pct=round_digits(100 * loss / equity, 9) if equity > 0 else 0.0,
        reward_risk=round_digits(worth.profit_pct / worth.loss_pct, 9),
        liquidation=_liquidation_price(draft.legs, side, entry, tick),
        hold=draft.decision.hold_duration,
        gross_pct=round_digits(gross_ev(worth)),
        llm_cost_pct=round_digits(llm_cost_pct(worth, fsum(sizes))),
        exploration=draft.exploration,
        **pick(worth, "policy", "duration_hours", "fair", "edge", "fill"),
        **pick(worth, "ev_pct", "fees_pct", "slippage_pct", "funding_pct"),
    )


def _liquidation_price(legs: tuple[cycle.Leg, ...], side: Side, entry: float, tick: float) -> float | None:
    """Of the leg that is borrowed for. A long of one's own money is not liquidated."""
    futures = next((leg for leg in legs if not leg.venue.spot), None)
    if futures is None or (side is Side.LONG and futures.leverage <= 1):
        return None
    distance = liquidation_distance(futures.leverage, side)
    return round_to_tick(entry * (1 - distance if side is Side.LONG else 1 + distance), tick)
