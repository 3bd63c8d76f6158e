"""A trading account as its events add up to it, at the same cost for each. An event that cannot be is `Refused` and
changes nothing; one that leaves the ledger out of balance is `Broken`."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, assert_never

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused
from zuno.kernel.numbers_text import currency_text
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model import trade_events
from zuno.trading.model.account import (
    BookChange,
    Holding,
    Liquidity,
    LiquidityStated,
    OrderCancelled,
    OrderPlaced,
    PositionClosed,
    PositionOpened,
    RestingOrder,
)
from zuno.trading.model.known import pick
from zuno.trading.model.market import Side
from zuno.trading.model.orders import ZERO, Fill, Order, OrderSide, OrderStatus, opening_side, to_decimal
from zuno.trading.rules.book_state import (
    BookState,
    LedgerAccount,
    OpenTrade,
    TrackedIntent,
    TrackedOrder,
    hold_until,
    round_money,
)

MAX_MANUAL_LEVERAGE: Final = 3.0
_ROUNDING: Final = Decimal("1e-9")
"""Of a margin that was asked for as a whole number and came back through a double."""


class TradingBook(BookState):
    """One account, changed by one event after the other."""

    def apply_all(self, events: Iterable[trade_events.TradeEvent]) -> None:
        for event in events:
            self.apply(event)

    def apply(self, event: trade_events.TradeEvent) -> None:
        """Take one event. `Refused` for one that cannot be: nothing has changed then."""
        if event.at < self.newest:
            raise Refused(
                f"An event of {event.at} ms stands behind one of {self.newest} ms; a book is written forward."
            )
        self._moment = event.at
        changed = self._apply(event)
        self.require_account()
        self.count += 1
        self.newest = event.at
        if changed is not None:
            self.check_ledger(changed)

    def _apply(self, event: trade_events.TradeEvent) -> Venue | None:
        """The exchange whose money moved."""
        match event:
            case trade_events.FillBooked():
                self._book_fill(event.fill)
                return event.fill.exchange
            case trade_events.OrderUpdated():
                self._update_order(event.order)
            case trade_events.OrderPlanned():
                self._plan_order(event)
            case trade_events.FundingBooked():
                return self._book_funding(event)
            case trade_events.LevelsSet():
                self._set_levels(event)
            case trade_events.IntentStored():
                self._store_intent(event)
            case trade_events.IntentEnded():
                self._end_intent(event)
            case trade_events.OrderLost():
                self._lose_order(event)
            case trade_events.TradeClosed():
                self._close_trade(event)
            case trade_events.LockSet():
                self.locks[event.protection, event.symbol] = event
            case trade_events.LockLifted():
                self.locks.pop((event.protection, event.symbol), None)
                self.lifted[event.protection, event.symbol] = event.at
            case trade_events.MandateGranted():
                self.mandate = event
                self.mandates.append(event.mandate)
            case trade_events.MandateRevoked():
                if self.mandate is None or self.mandate.hash != event.hash:
                    raise Refused(f"No mandate {event.hash[:12]} stands.")
                self.mandate = None
            case trade_events.AccountOpened():
                self._open_venues(event.balances)
            case trade_events.ClockSet():
                self.recorded = event.recorded
            case trade_events.ManualChange():
                return self._apply_by_hand(event.change)
            case trade_events.MarginMoved():
                return self._move_margin(event)
            case trade_events.Adopted():
                cash = round_money(event.cash)
                self.require_account()
                self.ledger.post(event.exchange, (LedgerAccount.CASH, cash), (LedgerAccount.ADJUSTMENTS, -cash))
                return event.exchange
            case _:
                assert_never(event)
        return None

    def _open_venues(self, cash: Mapping[Venue, Decimal]) -> None:
        """The account's first event, or a venue that it had not. `Refused` for one that is open."""
        if (self.opened or self.count) and (not cash or any(venue in self.venues for venue in cash)):
            raise Refused("The account is open already.")
        self.open_account({venue: round_money(amount) for venue, amount in cash.items()})

    def check_ledger(self, exchange: Venue) -> None:
        """`Broken` where the ledger of an exchange is out of balance, or not that of its positions."""
        held = self.trades_at(exchange)
        spot = exchange.spot
        self.ledger.check(
            exchange,
            margin=sum((trade.margin for trade in held), ZERO),
            inventory=sum((trade.cost for trade in held), ZERO) if spot else ZERO,
        )

    # -- intents and orders

    def _store_intent(self, event: trade_events.IntentStored) -> None:
        intent = event.intent
        if intent.id in self.intents:
            raise Refused(f"The intent {intent.id} is stored already.")
        tracked = TrackedIntent(intent, event.at)
        self.intents[intent.id] = self.open_intents[intent.id] = tracked

    def _end_intent(self, event: trade_events.IntentEnded) -> None:
        tracked = self.open_intents.pop(event.intent, None)
        if tracked is None:
            raise Refused(f"The intent {event.intent} is not open.")
        tracked.state, tracked.ended, tracked.reason = event.state, event.at, event.reason

    def _plan_order(self, event: trade_events.OrderPlanned) -> None:
        request = event.order
        if request.client_id in self.orders:
            raise Refused(f"The order {request.client_id} is planned already.")
        intent = self.intents.get(event.intent)
        if intent is None:
            raise Refused(f"The order {request.client_id} belongs to no stored intent ({event.intent}).")
        tracked = TrackedOrder(request, event.intent, event.purpose, event.at, event.expires, event.lot)
        self.orders[request.client_id] = self.open_orders[request.client_id] = tracked
        intent.orders.append(request.client_id)

    def _update_order(self, order: Order) -> None:
        id = order.request.client_id
        known = self.orders.get(id)
        if known is None:  # somebody else's order at our venue
            known = TrackedOrder(order.request, "", "exit" if order.request.reduce_only else "entry", order.updated)
            self.orders[id] = known
        elif known.status.final and not order.status.final:
            raise Refused(f"The order {id} is {known.status}; it cannot be {order.status} again.")
        elif order.filled < known.filled:
            raise Refused(f"{known.filled} of the order {id} are filled; it cannot be {order.filled}.")
        known.status, known.filled, known.venue_id = order.status, order.filled, order.venue_id
        known.average_price, known.updated, known.reason = order.average_price, order.updated, order.reason
        if known.status.final:
            self.open_orders.pop(id, None)
        else:
            self.open_orders[id] = known

    def _lose_order(self, event: trade_events.OrderLost) -> None:
        known = self.orders.get(event.client_id)
        if known is None or known.status.final:
            raise Refused(f"The order {event.client_id} is not one that is planned or open.")
        known.status, known.updated, known.reason = OrderStatus.CANCELED, event.at, event.reason
        self.open_orders.pop(event.client_id, None)

    # -- money

    def _book_fill(self, fill: Fill) -> None:
        known = self._fills.get((fill.exchange, fill.id))
        if known is not None:
            if known != fill:
                raise Refused(f"The fill {fill.id} of {fill.exchange} is booked with other numbers.")
            raise Refused(f"The fill {fill.id} of {fill.exchange} is booked already.")
        trade = self.positions.get((fill.exchange, fill.symbol))
        order = self.orders.get(fill.client_id)
        closing = trade is not None and fill.side is not opening_side(trade.side)
        if trade is None or not closing:
            self._check_may_open(fill, order)
            closed, rest = ZERO, fill.quantity
        else:
            closed = min(fill.quantity, trade.quantity)
            rest = fill.quantity - closed
            if rest and (fill.exchange.spot or fill.liquidation or (order and order.request.reduce_only)):
                raise Refused(f"{fill.quantity} were sold of {trade.quantity} {fill.symbol.base} that are held.")
        value = round_money(fill.quantity * fill.price)  # refused here before anything moved
        fee = round_money(fill.fee)
        self.require_account()
        self._fills[fill.exchange, fill.id] = fill
        if order is not None:
            order.booked += fill.executed
        if trade is None or not closing:
            self._enter(trade or self._begin_trade(fill, order), rest, value, fee, LedgerAccount.FEES)
            return
        left = trade.quantity - closed
        if left and order is not None and order.lot is not None and left < order.lot:
            trade.quantity = closed
            self.dust.setdefault(fill.exchange, {})[fill.symbol] = left
        closing_fee = fee if not rest else round_money(fee * closed / fill.quantity)
        self._reduce_trade(trade, closed, round_money(closed * fill.price), closing_fee, fill.at, fill.liquidation)
        if rest:
            value = round_money(rest * fill.price)
            self._enter(self._begin_trade(fill, order), rest, value, fee - closing_fee, LedgerAccount.FEES)

    def _check_may_open(self, fill: Fill, order: TrackedOrder | None) -> None:
        if fill.liquidation or (order is not None and order.request.reduce_only):
            raise Refused(
                f"The fill {fill.id} reduces a position of {fill.symbol} at {fill.exchange} that is not open."
            )
        if fill.exchange.spot and fill.side is OrderSide.SELL:
            raise Refused(f"{fill.exchange} is a spot exchange: what is not held cannot be sold.")

    def _enter(self, trade: OpenTrade, quantity: Decimal, value: Decimal, fee: Decimal, expense: LedgerAccount) -> None:
        """`expense`: where the fee is booked."""
        spot = trade.exchange.spot
        margin = ZERO if spot else round_money(value / trade.leverage)
        trade.quantity += quantity
        trade.cost += value
        trade.margin += margin
        trade.entered += quantity
        trade.entered_value += value
        trade.fees += fee
        trade.most = max(trade.most, trade.quantity)
        asset, put = (LedgerAccount.INVENTORY, value) if spot else (LedgerAccount.MARGIN, margin)
        self.ledger.post(trade.exchange, (asset, put), (LedgerAccount.CASH, -put - fee), (expense, fee))
        self.realise(trade.exchange, -fee)

    def _begin_trade(self, fill: Fill, order: TrackedOrder | None) -> OpenTrade:
        tracked = None if order is None else self.intents.get(order.intent)
        leverage = Decimal(1 if order is None or fill.exchange.spot else order.request.leverage)
        trade = OpenTrade(
            id=f"trd_{digest(canonical([fill.exchange, fill.symbol, fill.id]))[:12]}",
            exchange=fill.exchange,
            symbol=fill.symbol,
            side=Side.LONG if fill.side is OrderSide.BUY else Side.SHORT,
            leverage=leverage,
            opened=fill.at,
            quantity=self.dust.get(fill.exchange, {}).pop(fill.symbol, ZERO),
        )
        if tracked is not None:
            _take_from_intent(trade, tracked.intent)
        self.trades[trade.id] = self.positions[fill.exchange, fill.symbol] = trade
        return trade

    def _reduce_trade(
        self, trade: OpenTrade, quantity: Decimal, value: Decimal, fee: Decimal, at: Millis, liquidation: bool
    ) -> None:
        whole = quantity == trade.quantity
        cost = trade.cost if whole else round_money(trade.cost * quantity / trade.quantity)
        margin = trade.margin if whole else round_money(trade.margin * quantity / trade.quantity)
        gross = value - cost if trade.side is Side.LONG else cost - value
        trade.quantity -= quantity
        trade.cost -= cost
        trade.margin -= margin
        trade.exited += quantity
        trade.exited_value += value
        trade.fees += fee
        trade.gross += gross
        spot = trade.exchange.spot
        asset, back = (LedgerAccount.INVENTORY, cost) if spot else (LedgerAccount.MARGIN, margin)
        results = [(LedgerAccount.REALISED_PNL, -gross), (LedgerAccount.FEES, fee)]
        if trade.manual:
            results = [(LedgerAccount.MANUAL, fee - gross)]
        self.ledger.post(trade.exchange, (asset, -back), (LedgerAccount.CASH, back + gross - fee), *results)
        self.realise(trade.exchange, gross - fee)
        if whole:
            trade.closed, trade.liquidated = at, liquidation
            del self.trades[trade.id]
        if whole and not trade.manual:
            del self.positions[trade.exchange, trade.symbol]
            self.finished[trade.id] = trade

    def _book_funding(self, event: trade_events.FundingBooked) -> Venue:
        payment = event.payment
        if (payment.exchange, payment.id) in self._payments:
            raise Refused(f"The funding {payment.id} of {payment.exchange} is booked already.")
        amount = round_money(payment.amount)
        self.require_account()
        self._payments[payment.exchange, payment.id] = None
        self.ledger.post(payment.exchange, (LedgerAccount.CASH, amount), (LedgerAccount.FUNDING, -amount))
        self.realise(payment.exchange, amount)
        trade = self.positions.get((payment.exchange, payment.symbol)) or next(
            (
                late
                for late in self.finished.values()
                if (late.exchange, late.symbol) == (payment.exchange, payment.symbol)
            ),
            None,
        )
        if trade is not None:
            trade.funding += amount
        return payment.exchange

    def _move_margin(self, event: trade_events.MarginMoved) -> Venue:
        """Margin of what is not held any more is cash."""
        amount = round_money(event.amount)
        self.require_account()
        self.ledger.post(event.source, (LedgerAccount.CASH, -amount), (LedgerAccount.CAPITAL, amount))
        held, asset = self.positions.get((event.target, event.symbol)), LedgerAccount.CASH
        if held is not None and not event.target.spot:
            held.margin += amount
            asset = LedgerAccount.MARGIN
        self.ledger.post(event.target, (asset, amount), (LedgerAccount.CAPITAL, -amount))
        self.check_ledger(event.source)
        return event.target

    def _close_trade(self, event: trade_events.TradeClosed) -> None:
        trade = self.finished.get(event.summary.trade)
        if trade is None:
            raise Refused(f"The trade {event.summary.trade} is not one that has just ended.")
        if event.summary != self.summarise(trade, event.summary.reason):
            raise Refused(f"The summary of {trade.id} is not what its fills add up to.")
        del self.finished[trade.id]
        self.closed.append(event.summary)

    def _set_levels(self, event: trade_events.LevelsSet) -> None:
        trade = self.positions.get((event.exchange, event.symbol))
        manual = [held for held in self.trades_at(event.exchange) if held.manual and held.symbol is event.symbol]
        held = [trade] if trade is not None else manual
        if event.trade is not None:
            held = [candidate for candidate in self.trades_at(event.exchange) if candidate.id == event.trade]
        if not held:
            raise Refused(f"Nothing of {event.trade or event.symbol} is open at {event.exchange}.")
        for changed in held:
            changed.stop, changed.target, changed.hold_until = event.stop, event.target, event.hold_until
            changed.first_stop = changed.first_stop or event.stop
            changed.first_target = changed.first_target or event.target

    # -- what a person wrote down

    def _apply_by_hand(self, change: BookChange) -> Venue | None:
        """`Refused` or `NotFound` for a change that cannot be."""
        match change:
            case PositionOpened():
                return self._open_by_hand(change.position, to_decimal(change.fee))
            case PositionClosed():
                return self._close_by_hand(change)
            case OrderPlaced():
                _check_by_hand(self, change.order, ZERO)
                self.resting[change.order.id] = change.order
            case OrderCancelled():
                del self.resting[find_resting(self, change.id).id]
            case LiquidityStated():
                self.liquidity.pop(change.symbol, None)
                if change.quantity:
                    self.liquidity[change.symbol] = Liquidity(symbol=change.symbol, quantity=change.quantity)
            case _:
                assert_never(change)
        return None

    def _open_by_hand(self, holding: Holding, fee: Decimal) -> Venue:
        _check_by_hand(self, holding, fee)
        quantity = to_decimal(holding.quantity)
        cost, fee = round_money(quantity * to_decimal(holding.entry)), round_money(fee)
        self.require_account()
        trade = OpenTrade(
            **pick(holding, "id", "exchange", "symbol", "side", "opened", "hold"),
            leverage=to_decimal(holding.leverage),
            hold_until=hold_until(holding.opened, holding.hold),
            holding=holding,
        )
        trade.stop = trade.first_stop = None if holding.stop is None else to_decimal(holding.stop)
        trade.target = trade.first_target = None if holding.take is None else to_decimal(holding.take)
        self._enter(trade, quantity, cost, fee, LedgerAccount.MANUAL)
        self.trades[trade.id] = trade
        return holding.exchange

    def _close_by_hand(self, change: PositionClosed) -> Venue:
        trade = self.trades.get(change.id)
        if trade is None:
            raise NotFound(f"No position {change.id} is open; `zuno trade positions` lists those that are.")
        if not trade.manual:
            raise Refused(f"{trade.id} is a trade of the desk; `zuno trade close {trade.id}` ends it at its exchange.")
        if change.at < trade.opened:
            raise Refused(f"{trade.id} was opened at {trade.opened} ms; it cannot be closed before, at {change.at} ms.")
        value, fee = round_money(trade.quantity * to_decimal(change.price)), round_money(to_decimal(change.fee))
        self._reduce_trade(trade, trade.quantity, value, fee, change.at, liquidation=False)
        self.closed.append(self.summarise(trade, trade_events.ExitReason.MANUAL))
        return trade.exchange


def _take_from_intent(trade: OpenTrade, intent: trade_events.TradeIntent) -> None:
    """The levels and the origin of a trade are those of the intent that opened it."""
    for name in ("decision", "mode", "exploration", "judge", "family", "edge", "llm_cost_usd", "hold"):
        setattr(trade, name, getattr(intent, name))
    trade.intent, trade.hold_until = intent.id, hold_until(trade.opened, intent.hold)
    leg = next((leg for leg in intent.legs if leg.exchange is trade.exchange), None)
    if leg is not None:
        trade.stop = trade.first_stop = leg.stop
        trade.target = trade.first_target = leg.target


def _check_by_hand(book: BookState, entry: Holding | RestingOrder, fee: Decimal) -> None:
    """Cash counts as free: what open positions have lost since is the writer's to look at, who knows the market."""
    if entry.id in book.trades or entry.id in book.resting:
        raise Refused(f"{entry.id} is in the book already.")
    if not 1 <= entry.leverage <= MAX_MANUAL_LEVERAGE:
        raise Refused(f"A leverage of {entry.leverage:g} is not between 1 and {MAX_MANUAL_LEVERAGE:g}.")
    if entry.exchange.spot:
        if entry.leverage != 1:
            raise Refused(f"{entry.exchange} is a spot exchange: its leverage is 1, not {entry.leverage:g}.")
        if entry.side is not Side.LONG:
            raise Refused(f"{entry.exchange} is a spot exchange: nothing can be sold short there.")
    held = book.side_of(entry.symbol)
    if held is not None and held is not entry.side:
        raise Refused(
            f"The book is {held} {entry.symbol.base} and holds one side of a symbol only; "
            f"`zuno trade book close {entry.symbol}` comes first."
        )
    free = book.cash(entry.exchange) - book.pending_margin(entry.exchange)
    check_affordable(entry.exchange, to_decimal(entry.margin), fee, free)


def check_affordable(exchange: Venue, margin: Decimal, fee: Decimal, free: Decimal) -> None:
    """`Refused` where margin and fee are more than is free."""
    if margin + fee > free * (1 + _ROUNDING) + _ROUNDING:
        needed, paid, left = (format_money(float(amount), exchange) for amount in (margin, fee, free))
        raise Refused(f"A margin of {needed} and a fee of {paid} are more than the {left} that are free at {exchange}.")


def find_resting(book: BookState, id: str) -> RestingOrder:
    resting = book.resting.get(id)
    if resting is None:
        raise NotFound(f"No order {id} rests; `zuno trade orders` lists those that do.")
    return resting


def format_money(amount: float, exchange: Venue) -> str:
    return currency_text(amount, exchange.currency)
