"""Stops and targets of what is held: at the venue, or watched by the desk where it holds none; and closes that a rule
asks for. Where orders bind a balance, or sleeves share a perpetual, the stop stands at the venue and the target is
watched."""

from decimal import Decimal
from typing import Final, Literal

from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.execute.closes import UNPROTECTED_MS, store_close, why_unsellable
from zuno.trading.execute.fills import cancel_order, cancel_protection, plan_and_send
from zuno.trading.execute.intents import build_cut_intent, build_exit, build_id
from zuno.trading.execute.venue_context import VenueContext
from zuno.trading.model.known import pick
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.orders import ZERO, OrderStatus, OrderType, client_order_id, opening_side
from zuno.trading.model.trade_events import ExitReason, IntentKind, IntentStored, LevelsSet, Protection, TradeIntent
from zuno.trading.rules.book_state import OpenTrade, TrackedOrder
from zuno.trading.rules.execution_styles import meets_minimum, round_to_step
from zuno.trading.rules.margin import liquidation_price

CLOSE_AGAIN_MS: Final = MINUTE_MS
"""How long a rule waits after the venue refused its close before it closes again."""
LEAST_DISTANCE: Final = Decimal("0.25")
"""From the mark to where a hedged short is liquidated: nearer than that, both legs are cut."""
KEPT_SHARE: Final = Decimal("0.75")
"""Of each leg that is cut."""
TRAIL_STEP: Final = Decimal("0.1")
"""Of the distance of a trailing stop: nearer by less, it is not renewed."""
_TYPES: Final = {"stop": OrderType.STOP_MARKET, "target": OrderType.TAKE_PROFIT_MARKET}


async def protect(venue: VenueContext, symbol: Symbol) -> None:
    """Stop and target at the venue for what is held; where it holds none, the desk watches them."""
    position = venue.position(symbol)
    if position is None or venue.is_closing(symbol):
        return
    await venue.attempt(_close_if_due(venue, position))
    if venue.is_closing(symbol):
        return
    if (hedge := venue.book.find_hedge(position)) is not None:
        await venue.attempt(_watch_margin(venue, position, hedge))
        return
    await venue.attempt(_trail(venue, position))
    held_there = await venue.holds_stops(symbol)
    if held_there and position.intent not in venue.book.intents:
        return
    for purpose in _list_placed(venue) if held_there else ():
        await venue.attempt(_place_level(venue, position, purpose))
        if venue.position(symbol) is not position or venue.is_closing(symbol):
            return
    if not held_there or not _holds_levels(venue, position):
        await venue.attempt(_watch_levels(venue, position))


def _list_placed(venue: VenueContext) -> tuple[Literal["stop", "target"], ...]:
    return ("stop",) if venue.binds_balance else ("stop", "target")


def _holds_levels(venue: VenueContext, position: OpenTrade) -> bool:
    """Return whether the venue's orders are for both levels as they are now, and for all of the position."""
    orders = venue.open_orders(position.symbol)
    stops = (order for order in orders if order.purpose == "stop" and order.request.trigger == position.stop)
    stopped = position.stop is None or any(order.left >= position.quantity for order in stops)
    targets = (order for order in orders if order.purpose == "target" and order.request.trigger == position.target)
    return stopped and (position.target is None or any(targets))


async def _trail(venue: VenueContext, position: OpenTrade) -> None:
    """Once what leaves at the target is gone, the stop of the rest follows the mark: nearer alone, and in steps."""
    if position.leaves is None or position.leaving or position.trail <= 0 or position.stop is None:
        return
    mark = (await venue.port.quote(position.symbol)).mark
    tick = (await venue.read_filters(position.symbol)).tick
    stop = round_to_step(max(tick, mark - position.side.sign * position.trail), tick)
    nearer = is_tighter(stop, position.stop, position.side)
    if position.target is not None or (nearer and abs(stop - position.stop) >= TRAIL_STEP * position.trail):
        at, moved = venue.account.event_time(), stop if nearer else position.stop
        await venue.account.write([set_levels(position, at, moved, None, "trail")])


async def leave_part(venue: VenueContext, position: OpenTrade) -> None:
    """What leaves at the target goes at the market; orders that would sell it as well go first."""
    symbol, tracked = position.symbol, venue.book.intents[position.intent]
    sent = venue.orders_of(tracked, "target")
    if any(order.request.type is OrderType.MARKET and not order.status.final for order in sent):
        return
    if sent and sent[-1].status is OrderStatus.REJECTED and venue.now() - sent[-1].planned < CLOSE_AGAIN_MS:
        return
    for order in venue.open_orders(symbol):
        if order.purpose == "target" or (order.purpose == "stop" and venue.binds_balance):
            await cancel_order(venue, order)
    if venue.position(symbol) is not position or not position.leaving:
        return
    quantity, lot = await venue.fit_sale(symbol, position.leaving)
    id = client_order_id(position.intent, venue.exchange, "target", len(sent))
    side = opening_side(position.side).opposite
    request = build_exit(id, venue.exchange, symbol, side, quantity, position, netted=venue.nets(symbol))
    await plan_and_send(venue, position.intent, "target", request, lot)


async def _leave(venue: VenueContext, position: OpenTrade, passed: ExitReason) -> None:
    if passed is ExitReason.TARGET and position.leaving < position.quantity:
        await leave_part(venue, position)
    else:
        await close_by_rule(venue, position, passed)


async def _watch_margin(venue: VenueContext, position: OpenTrade, hedge: TradeIntent) -> None:
    """A short whose liquidation comes near by the mark is cut with its other leg, but not while legs are worked."""
    account, symbol = venue.account, position.symbol
    if position.side is Side.LONG or account.book.is_worked(symbol, venue.sleeve):
        return
    mark = (await venue.port.quote(symbol)).mark
    if (end := await _find_liquidation(venue, position)) is None or end >= (1 + LEAST_DISTANCE) * mark:
        return
    assert hedge.hedge_lot is not None
    gone = position.quantity - round_to_step(KEPT_SHARE * position.quantity, hedge.hedge_lot)
    # What is too small to be sold in parts goes as a whole.
    places = [account.at(leg.exchange, venue.sleeve) for leg in hedge.legs if leg.exchange in account.venues]
    filters = [await place.read_filters(symbol) for place in places]
    parts = (gone, position.quantity - gone)
    if account.gate.funds and all(meets_minimum(min(parts), mark, rules) for rules in filters):
        number = sum(tracked.intent.kind is IntentKind.CUT for tracked in account.book.intents.values())
        cut = build_cut_intent(hedge, build_id(hedge.id, "cut", number), gone, mark)
        await account.write([IntentStored(at=account.event_time(), intent=cut, ruling=None)])
    else:
        await close_by_rule(venue, position, ExitReason.UNDONE)


async def _find_liquidation(venue: VenueContext, short: OpenTrade) -> Decimal | None:
    """Where a hedged short is liquidated: by its own margin, or by the venue's word where other sleeves have a part of
    the position there, whose margin is their sum."""
    end = liquidation_price(short.side, short.quantity, short.cost, short.margin)
    if (venue.exchange, short.symbol) not in venue.book.nets:
        return end
    try:
        there = await venue.port.positions()
    except Unavailable as error:
        venue.failures.append(str(error))
        return end
    ends = (held.liquidation for held in there if held.symbol is short.symbol and held.side is short.side)
    return min((price for price in (end, *ends) if price is not None), default=None)


async def _close_if_due(venue: VenueContext, position: OpenTrade) -> None:
    if (Protection.KILL_SWITCH, None) in venue.book.locks:
        await close_by_rule(venue, position, ExitReason.KILL_SWITCH)
    elif position.hold_until is not None and venue.now() >= position.hold_until:
        await close_by_rule(venue, position, ExitReason.HOLD_OVER)


async def _place_level(venue: VenueContext, position: OpenTrade, purpose: Literal["stop", "target"]) -> None:
    """Place a level's order before the old one goes, but where the old one binds what the new one is to sell. Where
    sleeves share a perpetual, the stop is for what the venue's net leaves of the position, and no target stands."""
    symbol, shared = position.symbol, venue.shares(position.symbol)
    trigger, amount = position.stop, venue.book.find_covered(position)
    if purpose == "target":
        trigger, amount = position.target, ZERO if shared else position.leaving
    standing = [order for order in venue.open_orders(symbol) if order.purpose == purpose]
    exits = [order.left for order in venue.open_orders(symbol) if order.purpose == "exit"]
    free = position.quantity - (sum(exits, ZERO) if venue.binds_balance or shared else ZERO)
    quantity, lot = await venue.fit_sale(symbol, max(ZERO, min(amount, free)))
    wanted = next((order for order in standing if (order.request.trigger, order.left) == (trigger, quantity)), None)
    if wanted is None and trigger is not None and quantity and await _is_taken(venue, position, quantity, trigger):
        tried = venue.orders_of(venue.book.intents[position.intent], purpose)
        if not (tried and _is_refused(tried[-1], quantity, trigger, venue.now())):
            if standing and venue.binds_balance:
                await cancel_protection(venue, symbol)
                if venue.position(symbol) is not position:
                    return
            id = client_order_id(position.intent, venue.exchange, purpose, len(tried))
            side = opening_side(position.side).opposite
            at_market = build_exit(id, venue.exchange, symbol, side, quantity, position)
            request = at_market.model_copy(update={"type": _TYPES[purpose], "trigger": trigger})
            await venue.attempt(plan_and_send(venue, position.intent, purpose, request, lot))
            wanted = venue.book.orders.get(request.client_id)
            if wanted is None:
                return  # it could not be written down
            if wanted.status is OrderStatus.REJECTED and await _round_level(venue, position, purpose):
                return  # it is tried once more at that level
        if wanted is None or wanted.status is OrderStatus.REJECTED:
            await _bear_refusal(venue, position, purpose, trigger)
            return
    if wanted is not None and wanted.status is OrderStatus.PLANNED:
        waiting = (order.planned for order in standing if order.status is OrderStatus.PLANNED)
        late = venue.now() - min(waiting, default=wanted.planned) > UNPROTECTED_MS
        if late and not _is_stopped(venue, position):
            await close_by_rule(venue, position, ExitReason.UNDONE)
        return
    venue.account.refusals.pop(((venue.exchange, symbol, venue.sleeve), purpose), None)
    for order in standing:
        if order is not wanted and not order.status.final:
            await cancel_order(venue, order)


async def _round_level(venue: VenueContext, position: OpenTrade, purpose: Literal["stop", "target"]) -> bool:
    """Read the filters again after a refusal; whether the level was not on the tick as it is now, and was set on it."""
    venue.memory.filters.pop(position.symbol, None)
    level, filters = position.stop if purpose == "stop" else position.target, await venue.find_filters(position.symbol)
    if level is None or filters is None:
        return False
    rounded = round_to_step(level, filters.tick)
    if purpose == "stop":
        rounded = round_stop(level, filters.tick, position.side)
    if not rounded or rounded == level:
        return False
    stop, target = (rounded, position.target) if purpose == "stop" else (position.stop, rounded)
    await venue.account.write([set_levels(position, venue.account.event_time(), stop, target, "ruling")])
    return True


async def _bear_refusal(
    venue: VenueContext, position: OpenTrade, purpose: Literal["stop", "target"], trigger: Decimal
) -> None:
    """Close a position whose stop is refused while none stands. Where one does, where netting lets none stand for all
    of it, or where the target is refused, the desk watches that level, and says so."""
    symbol, netted = position.symbol, venue.book.find_covered(position) < position.quantity
    if purpose == "target" or netted or _is_stopped(venue, position):
        why = f"the {purpose} of {symbol} at {trigger} is refused: the desk watches it"
        venue.account.refusals[(venue.exchange, symbol, venue.sleeve), purpose] = why
        return
    # Most often because the market has passed the level while the order was on its way.
    try:
        passed = _find_passed_level(position, (await venue.port.quote(symbol)).mark)
    except Unavailable:
        passed = None
    await _leave(venue, position, passed or ExitReason.UNDONE)


def _is_stopped(venue: VenueContext, position: OpenTrade) -> bool:
    """Return whether a stop of a position is known to stand at the venue."""
    orders = venue.open_orders(position.symbol)
    return any(order.purpose == "stop" and order.status is OrderStatus.OPEN for order in orders)


def set_levels(
    trade: OpenTrade, at: Millis, stop: Decimal | None, target: Decimal | None, by: Literal["ruling", "owner", "trail"]
) -> LevelsSet:
    kept = pick(trade, "exchange", "symbol", "hold_until")
    return LevelsSet(at=at, stop=stop, target=target, by=by, trade=trade.id, **kept)


def is_tighter(level: Decimal, than: Decimal | None, side: Side) -> bool:
    """Whether a stop is nearer to the market than another, or than none; of targets the other way round."""
    if than is None:
        return True
    return level > than if side is Side.LONG else level < than


def round_stop(stop: Decimal, tick: Decimal, side: Side) -> Decimal:
    """Return a stop on the tick: where it lies between two, the one nearer to the market, so that no more is risked."""
    below = round_to_step(stop, tick)
    return below + tick if side is Side.LONG and below < stop else below


async def _is_taken(venue: VenueContext, position: OpenTrade, quantity: Decimal, trigger: Decimal) -> bool:
    """Whether a spot exchange takes an order of that size at the level; else the desk watches the level."""
    filters = await venue.find_filters(position.symbol) if venue.exchange.spot else None
    return filters is None or meets_minimum(quantity, trigger, filters)


def _is_refused(order: TrackedOrder, quantity: Decimal, trigger: Decimal, now: Millis) -> bool:
    """Whether the venue refused the same order a moment ago: asked again at once, it would at every pass of a look."""
    same = (order.request.trigger, order.request.quantity) == (trigger, quantity)
    return same and order.status is OrderStatus.REJECTED and now - order.planned < CLOSE_AGAIN_MS


async def _watch_levels(venue: VenueContext, position: OpenTrade) -> None:
    passed = _find_passed_level(position, (await venue.port.quote(position.symbol)).mark)
    if passed is not None:
        await _leave(venue, position, passed)


async def close_by_rule(venue: VenueContext, position: OpenTrade, reason: ExitReason) -> None:
    """Again and again until nothing is held, and no faster than a venue that refuses can bear. What is too small to be
    sold waits until it is worth enough."""
    refused = venue.account.refused.get((position.sleeve, position.symbol))
    if refused is not None and venue.now() - refused < CLOSE_AGAIN_MS:
        return
    if await why_unsellable(venue, position) is None:
        await store_close(venue.account, position.symbol, reason, position.id, sleeve=position.sleeve)


async def cancel_leftovers(venue: VenueContext, symbol: Symbol) -> None:
    """Orders that would close what is not held, for when the stop is filled the target goes and the other way, and when
    somebody turned the position both; and entries whose intent is over."""
    for order in venue.open_orders(symbol):
        position = venue.position(symbol)
        if order.purpose == "entry":
            over = bool(order.intent) and order.intent not in venue.book.open_intents
        elif order.purpose == "exit" and order.expires is not None:  # it waits: of a target that another replaced
            over = order.intent not in venue.book.open_intents
        elif position is None:
            over = order.request.reduce_only and symbol not in venue.memory.unbooked
        else:
            over = bool(order.intent) and order.request.side is opening_side(position.side)
        if over:
            await venue.attempt(cancel_order(venue, order))


def _find_passed_level(position: OpenTrade, mark: Decimal) -> ExitReason | None:
    """The level of a position that the mark is at or beyond; of both the stop."""
    sign = position.side.sign
    if position.stop is not None and sign * (mark - position.stop) <= 0:
        return ExitReason.STOP
    if position.target is not None and sign * (mark - position.target) >= 0:
        return ExitReason.TARGET
    return None
