"""A trading account as its events add up to it, at the same cost for each. An event that cannot be is `Refused` and
changes nothing; one that leaves the ledger out of balance is `Broken`."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, assert_never

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused
from zuno.kernel.numbers_text import currency_text
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model import account, trade_events
from zuno.trading.model.known import pick
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import ZERO, Fill, Order, OrderSide, OrderStatus, opening_side, to_decimal
from zuno.trading.model.sleeves import DEBATE, TWO_LEGGED, SleeveShares
from zuno.trading.rules.book_state import (
    MOST_DAY_MARKS,
    BookState,
    LedgerAccount,
    NetPosition,
    OpenTrade,
    TrackedIntent,
    TrackedOrder,
    hold_until,
    round_money,
)

MAX_MANUAL_LEVERAGE: Final = 3.0
TRAIL_ATR: Final = 6
"""ATR14 of 1h bars, as many as three of 4h bars: how far behind the price the stop of what runs on follows."""
_ROUNDING: Final = Decimal("1e-9")
"""Of a margin that was asked for as a whole number and came back through a double."""


class TradingBook(BookState):
    def apply_all(self, events: Iterable[trade_events.TradeEvent]) -> None:
        for event in events:
            self.apply(event)

    def apply(self, event: trade_events.TradeEvent) -> None:
        """Take one event. `Refused` for one that cannot be: nothing has changed then."""
        if event.at < self.newest:
            places = f"of {event.at} ms stands behind one of {self.newest} ms"
            raise Refused(f"An event {places}; a book is written forward.")
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
                self._book_fill(event.fill, left_out=bool(event.left_out))
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
                self.granted = event
                self.mandates.append(event.mandate)
            case trade_events.MandateRevoked():
                if self.granted is None or self.granted.hash != event.hash:
                    raise Refused(f"No mandate {event.hash[:12]} stands.")
                self.granted = None
            case trade_events.AccountOpened():
                self._open_venues(event.balances)
            case trade_events.ClockSet():
                self.recorded = event.recorded
            case trade_events.ManualChange():
                return self._apply_by_hand(event.change)
            case trade_events.MarginMoved():
                return self._move_margin(event)
            case trade_events.SleevesSet():
                self.shares = SleeveShares(tuple(event.shares.items()))
            case trade_events.DayMarked():
                self.day_marks = [*self.day_marks[1 - MOST_DAY_MARKS :], event]
            case trade_events.SleeveTransferred():
                self._transfer(event)
            case trade_events.CashMoved():
                return self._move_cash(event)
            case trade_events.SleevesCrossed():
                self._cross(event)
                return event.exchange
            case trade_events.Adopted():
                self._adopt(event)
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
        self.ledger.check(exchange, *_sum_assets(self.trades_at(exchange)))
        for sleeve, currency in self.sleeve_ledger.balances:
            if currency == exchange.currency:
                own = (trade for trade in self.trades.values() if trade.sleeve == sleeve)
                held = [trade for trade in own if trade.exchange.currency == currency]
                self.sleeve_ledger.check((sleeve, currency), *_sum_assets(held))

    def _post(self, exchange: Venue, sleeve: str, *lines: tuple[LedgerAccount, Decimal]) -> None:
        """Book at an exchange, and in the sleeve whose money it is."""
        self.ledger.post(exchange, *lines)
        if sleeve != DEBATE:
            self.sleeve_ledger.post((sleeve, exchange.currency), *lines)

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

    def _book_fill(self, fill: Fill, *, left_out: bool) -> None:
        """Book a fill to the sleeves whose it is, or note only that it was. At a perpetual all sleeves together hold
        what the exchange's fills add up to, whatever each of them held."""
        if (known := self.fills_by_id.get((fill.exchange, fill.id))) is not None:
            how = "already" if known == fill else "with other numbers"
            raise Refused(f"The fill {fill.id} of {fill.exchange} is booked {how}.")
        order = self.orders.get(fill.client_id)
        parts = [] if left_out else self._split_fill(fill, order)
        value = ZERO if left_out else round_money(fill.quantity * fill.price)  # refused before anything moved
        round_money(ZERO if left_out else fill.fee)
        self.require_account()
        self.overfill = "" if order is None or left_out else self._describe_overfill(fill, order, parts)
        if parts:
            signed = fill.side.sign * fill.quantity, fill.side.sign * value
            self._note_net(fill.exchange, fill.symbol, parts[0][0], *signed)
        self.fills_by_id[fill.exchange, fill.id] = fill
        intent, leverage, lot = None, 1, None
        if order is not None:
            order.booked += fill.executed
            wanted = self.intents.get(order.intent)
            # What begins with a fill that only reduces is nothing that its intent asked for.
            intent = None if _reduces(fill, order) else wanted
            leverage, lot = order.request.leverage, order.lot
        for sleeve, part in parts:
            self._book_part(part, round_money(part.fee), sleeve, intent, leverage, lot)
        self._forget_net(fill.exchange, fill.symbol)

    def _describe_overfill(self, fill: Fill, order: TrackedOrder, parts: Sequence[tuple[str, Fill]]) -> str:
        """Return what an exit took beyond what its sleeve held, and whose that was; nothing where it did not."""
        owner = self.sleeve_of(order)
        held = self.position(fill.exchange, fill.symbol, owner)
        own = ZERO if held is None or fill.side is opening_side(held.side) else held.quantity
        if order.purpose == "entry" or not order.intent or fill.quantity <= own:
            return ""
        lost = ", ".join(f"{part.quantity} of {sleeve}" for sleeve, part in parts if sleeve != owner)
        what = f"{fill.quantity - own} {fill.symbol.base} more than {owner} held at {fill.exchange}"
        return f"the {order.purpose} {fill.client_id} took {what}; it is booked against {lost or owner}"

    def _book_part(
        self, fill: Fill, fee: Decimal, sleeve: str, intent: TrackedIntent | None, leverage: int, lot: Decimal | None
    ) -> None:
        """`lot`: less than this, left of what is reduced, ends with it."""
        trade, rest = self.position(fill.exchange, fill.symbol, sleeve), fill.quantity
        if trade is not None and fill.side is not opening_side(trade.side):
            closed = min(fill.quantity, trade.quantity)
            left, rest = trade.quantity - closed, fill.quantity - closed
            if left and lot is not None and left < lot:
                trade.quantity = closed
                self.dust.setdefault(fill.exchange, {})[fill.symbol] = left
            closing_fee = round_money(fee * closed / fill.quantity) if rest and fee else fee
            self._reduce_trade(trade, closed, round_money(closed * fill.price), closing_fee, fill.at, fill.liquidation)
            trade, fee = None, fee - closing_fee
        if rest:
            begun = trade or self._begin_trade(fill, sleeve, intent, leverage)
            self._enter(begun, rest, round_money(rest * fill.price), fee, LedgerAccount.FEES)

    def _split_fill(self, fill: Fill, order: TrackedOrder | None) -> list[tuple[str, Fill]]:
        """Return whose a fill is: the order's. What an order that only reduces takes beyond what its sleeve holds is
        that of the others that lost it, of `cash-carry` and `lp-hedge` last; what nobody held is its sleeve's.

        Of none of ours, as a liquidation is, the sleeve's whose position it reduces; of several positions that together
        are so much each has its part, the debate's first. `Refused` at a spot exchange for what no sleeve holds.
        """
        tracked = None if order is None else self.intents.get(order.intent)
        owner, reduces = DEBATE if tracked is None else tracked.intent.sleeve, _reduces(fill, order)
        if tracked is not None and not reduces:
            return [(owner, fill)]
        held = self.positions_at(fill.exchange, fill.symbol)
        reduced = [trade for trade in held if fill.side is not opening_side(trade.side)]
        if tracked is None:
            reduced.sort(key=lambda trade: (trade.quantity < fill.quantity, trade.sleeve != DEBATE))
        else:
            reduced.sort(key=lambda trade: (trade.sleeve != owner, trade.sleeve in TWO_LEGGED, trade.sleeve))
        parts, left, fee = list[tuple[str, Fill]](), fill.quantity, fill.fee
        for trade in reduced:
            if left:
                turned = trade is reduced[-1] and not reduces
                quantity = left if turned else min(left, trade.quantity)
                paid = fee if quantity == left else round_money(fill.fee * quantity / fill.quantity)
                parts.append((trade.sleeve, fill.model_copy(update={"quantity": quantity, "fee": paid})))
                left, fee = left - quantity, fee - paid
        if left and not (fill.exchange.spot and fill.side is OrderSide.SELL):
            parts.append((owner, fill.model_copy(update={"quantity": left, "fee": fee})))
        if not parts:
            raise Refused(f"{fill.exchange} is a spot exchange: what is not held cannot be sold.")
        return parts

    # -- sleeves

    def _note_net(self, exchange: Venue, symbol: Symbol, sleeve: str, quantity: Decimal, value: Decimal) -> None:
        """Take a fill into the exchange's own position, where sleeves share it from now on or did before."""
        if exchange.spot:
            return  # coins are bought and sold one by one there: no average is kept
        held = self.positions_at(exchange, symbol)
        if (exchange, symbol) not in self.nets and any(trade.sleeve != sleeve for trade in held):
            self.nets[exchange, symbol] = sum_net(held)
        if (net := self.nets.get((exchange, symbol))) is not None:
            net.add(quantity, value)

    def _forget_net(self, exchange: Venue, symbol: Symbol) -> None:
        if (exchange, symbol) in self.nets and not self.positions_at(exchange, symbol):
            del self.nets[exchange, symbol]

    def _take_key(self, key: str) -> None:
        if key in self.keys:
            raise Refused(f"{key} is booked already.")
        self.keys[key] = None

    def _adopt(self, event: trade_events.Adopted) -> None:
        cash = round_money(event.cash)
        lost = cash if event.drift and cash < 0 else ZERO
        self.require_account()
        self.realise(event.exchange, lost, drift=True)
        self.ledger.post(
            event.exchange,
            (LedgerAccount.CASH, cash),
            (LedgerAccount.DRIFT if lost else LedgerAccount.ADJUSTMENTS, -cash),
        )
        if event.drift:
            self.drifts = [*(drift for drift in self.drifts if drift.at > event.at - DAY_MS), event]
        elif cash:
            self.drifts = [drift for drift in self.drifts if drift.exchange is not event.exchange]

    def _transfer(self, event: trade_events.SleeveTransferred) -> None:
        """`Refused` for more than the source has free."""
        amount = round_money(event.amount)
        self.require_account()
        if event.source == event.target:
            raise Refused(f"{event.source} cannot be given its own money.")
        if amount > (free := self.sleeve_cash(event.source, event.currency)):
            raise Refused(f"{event.source} has {free} {event.currency} free, not {amount}.")
        self._take_key(event.key)
        for sleeve, change in ((event.source, -amount), (event.target, amount)):
            if sleeve != DEBATE:
                lines = (LedgerAccount.CASH, change), (LedgerAccount.CAPITAL, -change)
                self.sleeve_ledger.post((sleeve, event.currency), *lines)

    def _move_cash(self, event: trade_events.CashMoved) -> Venue:
        amount = round_money(event.amount)
        self.require_account()
        if event.source.currency != event.target.currency or event.source is event.target:
            raise Refused(f"No cash goes from {event.source} to {event.target}.")
        self._take_key(event.key)
        self.moves = [*(move for move in self.moves if move.at == event.at), event]
        for venue, change in ((event.source, -amount), (event.target, amount)):
            self.ledger.post(venue, (LedgerAccount.CASH, change), (LedgerAccount.CAPITAL, -change))
        self.check_ledger(event.source)
        return event.target

    def _cross(self, event: trade_events.SleevesCrossed) -> None:
        """What the seller held long ends at the mark, or it is short by so much more; the buyer's the other way."""
        round_money(event.quantity * event.price)  # refused here before anything moved
        self.require_account()
        if event.seller == event.buyer:
            raise Refused(f"{event.seller} cannot sell to itself.")
        sold = self.position(event.exchange, event.symbol, event.seller)
        if event.exchange.spot and (sold is None or sold.quantity < event.quantity):
            raise Refused(f"{event.seller} does not hold {event.quantity} {event.symbol.base} at {event.exchange}.")
        self._take_key(event.key)
        if not event.exchange.spot and (event.exchange, event.symbol) not in self.nets:
            self.nets[event.exchange, event.symbol] = sum_net(self.positions_at(event.exchange, event.symbol))
        for sleeve, side in ((event.seller, OrderSide.SELL), (event.buyer, OrderSide.BUY)):
            intent = self.intents.get(event.intents.get(sleeve, ""))
            legs = () if intent is None else intent.intent.legs
            leverage = next((leg.leverage for leg in legs if leg.exchange is event.exchange), 1)
            known = pick(event, "exchange", "symbol", "quantity", "price", "at")
            part = Fill.model_construct(id=f"{event.key} {sleeve}", side=side, liquidation=False, **known)
            self._book_part(part, ZERO, sleeve, intent, leverage, None)
        self._forget_net(event.exchange, event.symbol)

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
        self._post(trade.exchange, trade.sleeve, (asset, put), (LedgerAccount.CASH, -put - fee), (expense, fee))
        self.realise(trade.exchange, -fee)

    def _begin_trade(self, fill: Fill, sleeve: str, tracked: TrackedIntent | None, leverage: int) -> OpenTrade:
        """`fill`: its first."""
        exchange, symbol = fill.exchange, fill.symbol
        trade = OpenTrade(
            id=f"trd_{digest(canonical([exchange, symbol, fill.id]))[:12]}",
            exchange=exchange,
            symbol=symbol,
            side=Side.LONG if fill.side is OrderSide.BUY else Side.SHORT,
            leverage=Decimal(1 if exchange.spot else leverage),
            opened=fill.at,
            quantity=self.dust.get(exchange, {}).pop(symbol, ZERO),
            sleeve=sleeve,
        )
        if tracked is not None:
            _take_from_intent(trade, tracked.intent)
        self.trades[trade.id] = self.positions[exchange, symbol, sleeve] = trade
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
        cash = LedgerAccount.CASH, back + gross - fee
        self._post(trade.exchange, trade.sleeve, (asset, -back), cash, *results)
        self.realise(trade.exchange, gross - fee)
        if whole:
            trade.closed, trade.liquidated = at, liquidation
            del self.trades[trade.id]
        if whole and not trade.manual:
            del self.positions[trade.exchange, trade.symbol, trade.sleeve]
            self.finished[trade.id] = trade

    def _book_funding(self, event: trade_events.FundingBooked) -> Venue:
        payment = event.payment
        if (payment.exchange, payment.id) in self.payment_ids:
            raise Refused(f"The funding {payment.id} of {payment.exchange} is booked already.")
        amount = round_money(payment.amount)
        self.require_account()
        self.payment_ids[payment.exchange, payment.id] = None
        self.realise(payment.exchange, amount)
        place = payment.exchange, payment.symbol
        late = [trade for trade in self.finished.values() if (trade.exchange, trade.symbol) == place]
        held = self.positions_at(*place) or late[:1]
        for trade, part in _split_funding(amount, held):
            sleeve = DEBATE if trade is None else trade.sleeve
            self._post(payment.exchange, sleeve, (LedgerAccount.CASH, part), (LedgerAccount.FUNDING, -part))
            if trade is not None:
                trade.funding += part
        return payment.exchange

    def _move_margin(self, event: trade_events.MarginMoved) -> Venue:
        """Margin of what is not held any more is cash."""
        amount = round_money(event.amount)
        self.require_account()
        intent = self.intents.get(event.key)
        sleeve = DEBATE if intent is None else intent.intent.sleeve
        self._post(event.source, sleeve, (LedgerAccount.CASH, -amount), (LedgerAccount.CAPITAL, amount))
        held, asset = self.position(event.target, event.symbol, sleeve), LedgerAccount.CASH
        if held is not None and not event.target.spot:
            held.margin += amount
            asset = LedgerAccount.MARGIN
        self._post(event.target, sleeve, (asset, amount), (LedgerAccount.CAPITAL, -amount))
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
        trade = self.position(event.exchange, event.symbol)
        manual = [held for held in self.trades_at(event.exchange) if held.manual and held.symbol is event.symbol]
        held = [trade] if trade is not None else manual
        if event.trade is not None:
            held = [candidate for candidate in self.trades_at(event.exchange) if candidate.id == event.trade]
        if not held:
            raise Refused(f"Nothing of {event.trade or event.symbol} is open at {event.exchange}.")
        for changed in held:
            changed.stop_since = changed.stop_since if event.stop == changed.stop else event.at
            changed.target_since = changed.target_since if event.target == changed.target else event.at
            changed.stop, changed.target, changed.hold_until = event.stop, event.target, event.hold_until
            changed.first_stop = changed.first_stop or event.stop
            changed.first_target = changed.first_target or event.target

    # -- what a person wrote down

    def _apply_by_hand(self, change: account.BookChange) -> Venue | None:
        """`Refused` or `NotFound` for a change that cannot be."""
        match change:
            case account.PositionOpened():
                return self._open_by_hand(change.position, to_decimal(change.fee))
            case account.PositionClosed():
                return self._close_by_hand(change)
            case account.OrderPlaced():
                _check_by_hand(self, change.order, ZERO)
                self.resting[change.order.id] = change.order
            case account.OrderCancelled():
                del self.resting[find_resting(self, change.id).id]
            case account.LiquidityStated():
                self.liquidity.pop(change.symbol, None)
                if change.quantity:
                    self.liquidity[change.symbol] = account.Liquidity(symbol=change.symbol, quantity=change.quantity)
            case _:
                assert_never(change)
        return None

    def _open_by_hand(self, holding: account.Holding, fee: Decimal) -> Venue:
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

    def _close_by_hand(self, change: account.PositionClosed) -> Venue:
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
        trade.leaves, trade.trail = leg.leaves, TRAIL_ATR * intent.atr * leg.entry / intent.mark


def _reduces(fill: Fill, order: TrackedOrder | None) -> bool:
    """Return whether a fill can only make positions smaller at its exchange."""
    sold = fill.exchange.spot and fill.side is OrderSide.SELL
    return sold or fill.liquidation or (order is not None and order.request.reduce_only)


def _sum_assets(held: Sequence[OpenTrade]) -> tuple[Decimal, Decimal]:
    """Margin and inventory."""
    bought = (trade.cost for trade in held if trade.exchange.spot)
    return sum((trade.margin for trade in held), ZERO), sum(bought, ZERO)


def sum_net(held: Iterable[OpenTrade]) -> NetPosition:
    """Of several sleeves at one exchange."""
    net = NetPosition(ZERO, ZERO)
    for trade in held:
        net.quantity, net.cost = net.quantity + trade.signed, net.cost + trade.cost * trade.side.sign
    return net


def _split_funding(amount: Decimal, held: list[OpenTrade]) -> list[tuple[OpenTrade | None, Decimal]]:
    """By what each sleeve holds, a short the other way round; what rounding leaves is the last one's."""
    net = sum((trade.signed for trade in held), ZERO)
    if len(held) < 2 or not net:
        return [(held[0] if held else None, amount)]
    parts = [round_money(amount * trade.signed / net) for trade in held[:-1]]
    return [*zip(held, [*parts, amount - sum(parts, ZERO)], strict=True)]


def _check_by_hand(book: BookState, entry: account.Holding | account.RestingOrder, fee: Decimal) -> None:
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
    if margin + fee > free * (1 + _ROUNDING) + _ROUNDING:
        needed, paid, left = (format_money(float(amount), exchange) for amount in (margin, fee, free))
        raise Refused(f"A margin of {needed} and a fee of {paid} are more than the {left} that are free at {exchange}.")


def find_resting(book: BookState, id: str) -> account.RestingOrder:
    resting = book.resting.get(id)
    if resting is None:
        raise NotFound(f"No order {id} rests; `zuno trade orders` lists those that do.")
    return resting


def format_money(amount: float, exchange: Venue) -> str:
    return currency_text(amount, exchange.currency)
