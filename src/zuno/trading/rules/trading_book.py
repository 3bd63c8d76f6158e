"""A trading account as its events add up to it: positions, orders, intents, locks, closed trades, and the ledger.

Each event costs the same however long the account exists. An event that cannot be is `Refused` and changes nothing; one
that leaves the ledger out of balance is `Broken`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal, assert_never

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused
from zuno.kernel.units import Millis
from zuno.trading.model.account import (
    Account,
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
from zuno.trading.model.cycle import Exchange, JudgeKind, RegimeFamily
from zuno.trading.model.market import HOUR_MS, Mode, Side, Symbol
from zuno.trading.model.orders import (
    ClientId,
    Fill,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    opening_side,
    to_decimal,
)
from zuno.trading.model.trade_events import (
    AccountOpened,
    Adopted,
    ExitReason,
    FillBooked,
    FundingBooked,
    IntentEnded,
    IntentStored,
    LevelsSet,
    LockLifted,
    LockSet,
    Mandate,
    MandateGranted,
    MandateRevoked,
    ManualChange,
    OrderLost,
    OrderPlanned,
    OrderUpdated,
    Protection,
    TradeClosed,
    TradeEvent,
    TradeIntent,
    TradeSummary,
)
from zuno.trading.rules.exits import parse_hours
from zuno.trading.rules.ledger import ZERO, Ledger, LedgerAccount, round_money

STARTING_CASH: Final[Mapping[Exchange, Decimal]] = {
    Exchange.BINANCE: Decimal(2_000),
    Exchange.UPBIT: Decimal(2_000_000),
}
"""What a paper account starts with, in each exchange's own currency."""
MAX_MANUAL_LEVERAGE: Final = 3.0
_ROUNDING: Final = Decimal("1e-9")
"""Of a margin that was asked for as a whole number and came back through a double."""

Purpose = Literal["entry", "stop", "target", "exit"]
Place = tuple[Exchange, Symbol]


@dataclass(slots=True, eq=False)
class OpenTrade:
    """A trade from its first fill: one per exchange and symbol, beside those that a person wrote down."""

    id: str
    exchange: Exchange
    symbol: Symbol
    side: Side
    leverage: Decimal
    opened: Millis
    quantity: Decimal = ZERO
    cost: Decimal = ZERO
    """Quantity times entry."""
    margin: Decimal = ZERO
    """Isolated margin; 0 at a spot exchange."""
    intent: str = ""
    decision: str | None = None
    mode: Mode | None = None
    stop: Decimal | None = None
    target: Decimal | None = None
    hold: str | None = None
    hold_until: Millis | None = None
    first_stop: Decimal | None = None
    first_target: Decimal | None = None
    exploration: bool = False
    judge: JudgeKind | None = None
    family: RegimeFamily | None = None
    edge: float | None = None
    llm_cost_usd: Decimal = ZERO
    fees: Decimal = ZERO
    funding: Decimal = ZERO
    gross: Decimal = ZERO
    """Realised so far, before fees and funding."""
    most: Decimal = ZERO
    entered: Decimal = ZERO
    entered_value: Decimal = ZERO
    exited: Decimal = ZERO
    exited_value: Decimal = ZERO
    closed: Millis | None = None
    liquidated: bool = False
    holding: Holding | None = None
    """As it was written down; None where the desk traded it."""

    @property
    def entry(self) -> Decimal:
        """Average over what is held."""
        return self.cost / self.quantity

    @property
    def manual(self) -> bool:
        return self.holding is not None

    def unrealised(self, price: Decimal) -> Decimal:
        """At a price in the exchange's currency, before fees."""
        value = self.quantity * price
        return value - self.cost if self.side is Side.LONG else self.cost - value


@dataclass(frozen=True, slots=True)
class RealisedResult:
    """Money that was won or lost for good: a close or a part of one, a fee, funding."""

    at: Millis
    exchange: Exchange
    amount: Decimal


@dataclass(slots=True, eq=False)
class TrackedOrder:
    """An order of ours: as it was planned, and as the venue has it since."""

    request: OrderRequest
    intent: str
    """Empty for an order that we did not plan."""
    purpose: Purpose
    planned: Millis
    expires: Millis | None = None
    status: OrderStatus = OrderStatus.PLANNED
    filled: Decimal = ZERO
    """As the venue says."""
    booked: Decimal = ZERO
    """As the fills add up to."""
    average_price: Decimal | None = None
    venue_id: str | None = None
    updated: Millis | None = None
    reason: str = ""

    @property
    def left(self) -> Decimal:
        return self.request.quantity - max(self.filled, self.booked)


@dataclass(slots=True, eq=False)
class TrackedIntent:
    """An intent, its orders, and how it ended."""

    intent: TradeIntent
    stored: Millis
    orders: list[ClientId] = field(default_factory=list)
    state: Literal["open", "done", "partial", "refused", "expired", "undone"] = "open"
    ended: Millis | None = None
    reason: str = ""


class TradingBook:
    """The state of one account. What it holds is read, never written to, by others."""

    def __init__(self) -> None:
        self.count = 0
        """Events so far."""
        self.newest = Millis(0)
        """Time of the last event: events are written forward in time."""
        self.ledger = Ledger()
        self.opened = False
        self.trades: dict[str, OpenTrade] = {}
        """Open, by id, in the order they were opened."""
        self.positions: dict[Place, OpenTrade] = {}
        """Those that the desk traded."""
        self.finished: dict[str, OpenTrade] = {}
        """Flat, and nobody wrote `TradeClosed` yet."""
        self.closed: list[TradeSummary] = []
        self.results: list[RealisedResult] = []
        """By the moment they were booked, which only goes forward."""
        self._moment = Millis(0)
        self.orders: dict[ClientId, TrackedOrder] = {}
        self.open_orders: dict[ClientId, TrackedOrder] = {}
        """Those that are not final."""
        self.intents: dict[str, TrackedIntent] = {}
        self.open_intents: dict[str, TrackedIntent] = {}
        self.locks: dict[tuple[Protection, Symbol | None], LockSet] = {}
        self.lifted: dict[tuple[Protection, Symbol | None], Millis] = {}
        """When each was lifted last: a protection counts only what came after."""
        self.mandate: MandateGranted | None = None
        self.resting: dict[str, RestingOrder] = {}
        """Orders that a person wrote down."""
        self.liquidity: dict[Symbol, Liquidity] = {}
        self._fills: dict[tuple[Exchange, str], Fill] = {}
        self._payments: set[tuple[Exchange, str]] = set()

    # -- reading

    def cash(self, exchange: Exchange) -> Decimal:
        if not self.opened:
            return STARTING_CASH[exchange]
        return self.ledger.balance(exchange, LedgerAccount.CASH)

    def margin(self, exchange: Exchange) -> Decimal:
        """Isolated margin of open futures positions."""
        return self.ledger.balance(exchange, LedgerAccount.MARGIN)

    def venue_balance(self, exchange: Exchange) -> Decimal:
        """The wallet balance the venue should have: cash and margin, without what a person wrote down."""
        manual = [trade for trade in self.trades.values() if trade.manual and trade.exchange is exchange]
        held = sum((trade.cost for trade in manual if exchange is Exchange.UPBIT), ZERO)
        results = self.ledger.balance(exchange, LedgerAccount.MANUAL)
        return self.cash(exchange) + self.margin(exchange) + held + results

    def equity(self, exchange: Exchange, marks: Mapping[Symbol, Decimal]) -> Decimal:
        """Cash and positions at these prices, in the exchange's currency."""
        unrealised = sum((trade.unrealised(marks[trade.symbol]) for trade in self.trades_at(exchange)), ZERO)
        inventory = self.ledger.balance(exchange, LedgerAccount.INVENTORY)
        return self.cash(exchange) + self.margin(exchange) + inventory + unrealised

    def free(self, exchange: Exchange, marks: Mapping[Symbol, Decimal]) -> Decimal:
        """What a new position may use as margin: never more than the cash, and less what open positions have lost and
        what pending orders will take. Below zero: nothing, and so much is missing."""
        unrealised = ZERO
        if exchange is Exchange.BINANCE:
            unrealised = sum((trade.unrealised(marks[trade.symbol]) for trade in self.trades_at(exchange)), ZERO)
        return self.cash(exchange) + min(ZERO, unrealised) - self.pending_margin(exchange)

    def pending_margin(self, exchange: Exchange) -> Decimal:
        return sum(
            (to_decimal(order.margin) for order in self.to_pending() if order.exchange is exchange and order.margin),
            ZERO,
        )

    def trades_at(self, exchange: Exchange) -> list[OpenTrade]:
        return [trade for trade in self.trades.values() if trade.exchange is exchange]

    def side_of(self, symbol: Symbol) -> Side | None:
        """Which way a symbol is held, at whatever exchange."""
        return next((trade.side for trade in self.trades.values() if trade.symbol is symbol), None)

    def has_fill(self, exchange: Exchange, id: str) -> bool:
        return (exchange, id) in self._fills

    def has_payment(self, exchange: Exchange, id: str) -> bool:
        return (exchange, id) in self._payments

    def is_update(self, order: Order) -> bool:
        """Whether the venue's word on an order says more than is known: late and repeated words do not."""
        known = self.orders.get(order.request.client_id)
        if known is None:
            return True
        if known.status.final:
            return order.filled > known.filled
        return order.status is not known.status or order.filled > known.filled

    def active_locks(self, now: Millis, symbol: Symbol | None = None) -> list[LockSet]:
        """Locks that stand at a moment: of the desk, and of a symbol if one is asked about."""
        return [
            lock
            for lock in self.locks.values()
            if (lock.until is None or lock.until > now)
            and (lock.symbol is None or symbol is None or lock.symbol is symbol)
        ]

    def active_mandate(self, now: Millis) -> Mandate | None:
        granted = self.mandate
        return None if granted is None or granted.mandate.expires <= now else granted.mandate

    def summarise(self, trade: OpenTrade, reason: ExitReason) -> TradeSummary:
        """The record of a trade that is flat."""
        if trade.closed is None:
            raise Refused(f"{trade.id} is still open.")
        return TradeSummary(
            trade=trade.id,
            intent=trade.intent or trade.id,
            decision=trade.decision,
            exchange=trade.exchange,
            symbol=trade.symbol,
            side=trade.side,
            mode=trade.mode,
            opened=trade.opened,
            closed=trade.closed,
            quantity=trade.most,
            entry=trade.entered_value / trade.entered,
            exit=trade.exited_value / trade.exited,
            stop=trade.first_stop,
            target=trade.first_target,
            gross_pnl=trade.gross,
            fees=trade.fees,
            funding=trade.funding,
            net_pnl=trade.gross - trade.fees + trade.funding,
            reason=ExitReason.LIQUIDATION if trade.liquidated else reason,
            exploration=trade.exploration,
            judge=trade.judge,
            family=trade.family,
            edge=trade.edge,
            llm_cost_usd=trade.llm_cost_usd,
        )

    def to_account(self) -> Account:
        """The account as a bundle holds it."""
        return Account(
            usd=float(self.cash(Exchange.BINANCE) + self.margin(Exchange.BINANCE)),
            krw=float(self.cash(Exchange.UPBIT)),
            positions=tuple(map(_to_holding, self.trades.values())),
            pending=self.to_pending(),
            liquidity=tuple(self.liquidity.values()),
        )

    def to_pending(self) -> tuple[RestingOrder, ...]:
        """Orders that would add to a position: those of a person, and entries that are not over."""
        return (*self.resting.values(), *filter(None, map(self._to_resting, self.open_orders.values())))

    # -- events

    def apply_all(self, events: Iterable[TradeEvent]) -> None:
        for event in events:
            self.apply(event)

    def apply(self, event: TradeEvent) -> None:
        """Take one event. `Refused` for one that cannot be: nothing has changed then."""
        if event.at < self.newest:
            raise Refused(
                f"An event of {event.at} ms stands behind one of {self.newest} ms; a book is written forward."
            )
        self._moment = event.at
        changed = self._apply(event)
        if not self.opened:
            self._open_account(STARTING_CASH[Exchange.BINANCE], STARTING_CASH[Exchange.UPBIT])
        self.count += 1
        self.newest = event.at
        if changed is not None:
            self._check(changed)

    def _apply(self, event: TradeEvent) -> Exchange | None:
        """The exchange whose money moved."""
        match event:
            case FillBooked():
                self._book_fill(event.fill)
                return event.fill.exchange
            case OrderUpdated():
                self._update_order(event.order)
            case OrderPlanned():
                self._plan_order(event)
            case FundingBooked():
                return self._book_funding(event)
            case LevelsSet():
                self._set_levels(event)
            case IntentStored():
                self._store_intent(event)
            case IntentEnded():
                self._end_intent(event)
            case OrderLost():
                self._lose_order(event)
            case TradeClosed():
                self._close_trade(event)
            case LockSet():
                self.locks[event.protection, event.symbol] = event
            case LockLifted():
                self.locks.pop((event.protection, event.symbol), None)
                self.lifted[event.protection, event.symbol] = event.at
            case MandateGranted():
                self.mandate = event
            case MandateRevoked():
                if self.mandate is None or self.mandate.hash != event.hash:
                    raise Refused(f"No mandate {event.hash[:12]} stands.")
                self.mandate = None
            case AccountOpened():
                if self.opened or self.count:
                    raise Refused("The account is open already.")
                self._open_account(round_money(event.usd), round_money(event.krw))
            case ManualChange():
                return self._change_by_hand(event.change)
            case Adopted():
                cash = round_money(event.cash)
                self._require_account()
                self.ledger.post(event.exchange, (LedgerAccount.CASH, cash), (LedgerAccount.ADJUSTMENTS, -cash))
                return event.exchange
            case _:
                assert_never(event)
        return None

    def _open_account(self, usd: Decimal, krw: Decimal) -> None:
        self.opened = True
        for exchange, cash in ((Exchange.BINANCE, usd), (Exchange.UPBIT, krw)):
            self.ledger.post(exchange, (LedgerAccount.CASH, cash), (LedgerAccount.CAPITAL, -cash))

    def _realise(self, exchange: Exchange, amount: Decimal) -> None:
        if amount:
            self.results.append(RealisedResult(self._moment, exchange, amount))

    def _require_account(self) -> None:
        """An account that nobody opened is a paper account with the usual cash."""
        if not self.opened:
            self._open_account(STARTING_CASH[Exchange.BINANCE], STARTING_CASH[Exchange.UPBIT])

    def _check(self, exchange: Exchange) -> None:
        held = self.trades_at(exchange)
        spot = exchange is Exchange.UPBIT
        self.ledger.check(
            exchange,
            margin=sum((trade.margin for trade in held), ZERO),
            inventory=sum((trade.cost for trade in held), ZERO) if spot else ZERO,
        )

    # -- intents and orders

    def _store_intent(self, event: IntentStored) -> None:
        intent = event.intent
        if intent.id in self.intents:
            raise Refused(f"The intent {intent.id} is stored already.")
        tracked = TrackedIntent(intent, event.at)
        self.intents[intent.id] = self.open_intents[intent.id] = tracked

    def _end_intent(self, event: IntentEnded) -> None:
        tracked = self.open_intents.pop(event.intent, None)
        if tracked is None:
            raise Refused(f"The intent {event.intent} is not open.")
        tracked.state, tracked.ended, tracked.reason = event.state, event.at, event.reason

    def _plan_order(self, event: OrderPlanned) -> None:
        request = event.order
        if request.client_id in self.orders:
            raise Refused(f"The order {request.client_id} is planned already.")
        intent = self.intents.get(event.intent)
        if intent is None:
            raise Refused(f"The order {request.client_id} belongs to no stored intent ({event.intent}).")
        tracked = TrackedOrder(request, event.intent, event.purpose, event.at, event.expires)
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

    def _lose_order(self, event: OrderLost) -> None:
        known = self.orders.get(event.client_id)
        if known is None or known.status.final:
            raise Refused(f"The order {event.client_id} is not one that is planned or open.")
        known.status, known.updated, known.reason = OrderStatus.CANCELED, event.at, event.reason
        self.open_orders.pop(event.client_id, None)

    def _to_resting(self, order: TrackedOrder) -> RestingOrder | None:
        request = order.request
        if order.purpose != "entry" or request.reduce_only or order.left <= 0:
            return None
        price = request.price or request.trigger or self._leg_entry(order)
        if price is None:
            return None
        return RestingOrder(
            id=request.client_id,
            symbol=request.symbol,
            exchange=request.exchange,
            side=Side.LONG if request.side is OrderSide.BUY else Side.SHORT,
            quantity=float(order.left),
            price=float(price),
            leverage=float(request.leverage),
            placed=order.planned,
        )

    def _leg_entry(self, order: TrackedOrder) -> Decimal | None:
        tracked = self.intents.get(order.intent)
        legs = () if tracked is None else tracked.intent.legs
        return next((leg.entry for leg in legs if leg.exchange is order.request.exchange), None)

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
            if rest and (fill.exchange is Exchange.UPBIT or fill.liquidation or (order and order.request.reduce_only)):
                raise Refused(f"{fill.quantity} were sold of {trade.quantity} {fill.symbol.base} that are held.")
        value = round_money(fill.quantity * fill.price)  # refused here before anything moved
        fee = round_money(fill.fee)
        self._require_account()
        self._fills[fill.exchange, fill.id] = fill
        if order is not None:
            order.booked += fill.quantity
        if trade is None or not closing:
            self._add_to_trade(fill, order, trade, rest, value, fee)
            return
        closing_fee = fee if not rest else round_money(fee * closed / fill.quantity)
        self._reduce_trade(trade, closed, round_money(closed * fill.price), closing_fee, fill.at, fill.liquidation)
        if rest:
            self._add_to_trade(fill, order, None, rest, round_money(rest * fill.price), fee - closing_fee)

    def _check_may_open(self, fill: Fill, order: TrackedOrder | None) -> None:
        if fill.liquidation or (order is not None and order.request.reduce_only):
            raise Refused(
                f"The fill {fill.id} reduces a position of {fill.symbol} at {fill.exchange} that is not open."
            )
        if fill.exchange is Exchange.UPBIT and fill.side is OrderSide.SELL:
            raise Refused(f"{fill.exchange} is a spot exchange: what is not held cannot be sold.")

    def _add_to_trade(
        self,
        fill: Fill,
        order: TrackedOrder | None,
        trade: OpenTrade | None,
        quantity: Decimal,
        value: Decimal,
        fee: Decimal,
    ) -> None:
        if trade is None:
            trade = self._begin_trade(fill, order)
        spot = fill.exchange is Exchange.UPBIT
        margin = ZERO if spot else round_money(value / trade.leverage)
        trade.quantity += quantity
        trade.cost += value
        trade.margin += margin
        trade.entered += quantity
        trade.entered_value += value
        trade.fees += fee
        trade.most = max(trade.most, trade.quantity)
        asset, put = (LedgerAccount.INVENTORY, value) if spot else (LedgerAccount.MARGIN, margin)
        self.ledger.post(fill.exchange, (asset, put), (LedgerAccount.CASH, -put - fee), (LedgerAccount.FEES, fee))
        self._realise(fill.exchange, -fee)

    def _begin_trade(self, fill: Fill, order: TrackedOrder | None) -> OpenTrade:
        tracked = None if order is None else self.intents.get(order.intent)
        leverage = Decimal(1 if order is None or fill.exchange is Exchange.UPBIT else order.request.leverage)
        trade = OpenTrade(
            id=f"trd_{digest(canonical([fill.exchange, fill.symbol, fill.id]))[:12]}",
            exchange=fill.exchange,
            symbol=fill.symbol,
            side=Side.LONG if fill.side is OrderSide.BUY else Side.SHORT,
            leverage=leverage,
            opened=fill.at,
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
        spot = trade.exchange is Exchange.UPBIT
        asset, back = (LedgerAccount.INVENTORY, cost) if spot else (LedgerAccount.MARGIN, margin)
        self.ledger.post(
            trade.exchange,
            (asset, -back),
            (LedgerAccount.CASH, back + gross - fee),
            (LedgerAccount.REALISED_PNL, -gross),
            (LedgerAccount.FEES, fee),
        )
        self._realise(trade.exchange, gross - fee)
        if whole:
            trade.closed, trade.liquidated = at, liquidation
            del self.trades[trade.id], self.positions[trade.exchange, trade.symbol]
            self.finished[trade.id] = trade

    def _book_funding(self, event: FundingBooked) -> Exchange:
        payment = event.payment
        if (payment.exchange, payment.id) in self._payments:
            raise Refused(f"The funding {payment.id} of {payment.exchange} is booked already.")
        amount = round_money(payment.amount)
        self._require_account()
        self._payments.add((payment.exchange, payment.id))
        self.ledger.post(payment.exchange, (LedgerAccount.CASH, amount), (LedgerAccount.FUNDING, -amount))
        self._realise(payment.exchange, amount)
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

    def _close_trade(self, event: TradeClosed) -> None:
        trade = self.finished.get(event.summary.trade)
        if trade is None:
            raise Refused(f"The trade {event.summary.trade} is not one that has just ended.")
        if event.summary != self.summarise(trade, event.summary.reason):
            raise Refused(f"The summary of {trade.id} is not what its fills add up to.")
        del self.finished[trade.id]
        self.closed.append(event.summary)

    def _set_levels(self, event: LevelsSet) -> None:
        trade = self.positions.get((event.exchange, event.symbol))
        manual = [held for held in self.trades_at(event.exchange) if held.manual and held.symbol is event.symbol]
        held = [trade] if trade is not None else manual
        if event.trade is not None:
            held = [found for found in self.trades_at(event.exchange) if found.id == event.trade]
        if not held:
            raise Refused(f"Nothing of {event.trade or event.symbol} is open at {event.exchange}.")
        for changed in held:
            changed.stop, changed.target, changed.hold_until = event.stop, event.target, event.hold_until
            changed.first_stop = changed.first_stop or event.stop
            changed.first_target = changed.first_target or event.target

    # -- what a person writes down

    def _change_by_hand(self, change: BookChange) -> Exchange | None:
        match change:
            case PositionOpened():
                return self._open_by_hand(change.position, to_decimal(change.fee))
            case PositionClosed():
                return self._close_by_hand(change)
            case OrderPlaced():
                self._check_by_hand(change.order)
                self._check_affordable(change.order, ZERO)
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

    def _open_by_hand(self, holding: Holding, fee: Decimal) -> Exchange:
        self._check_by_hand(holding)
        self._check_affordable(holding, fee)
        self._require_account()
        spot = holding.exchange is Exchange.UPBIT
        quantity, leverage = to_decimal(holding.quantity), to_decimal(holding.leverage)
        cost, fee = round_money(quantity * to_decimal(holding.entry)), round_money(fee)
        margin = ZERO if spot else round_money(cost / leverage)
        stop, target = _decimal_or_none(holding.stop), _decimal_or_none(holding.take)
        trade = OpenTrade(
            id=holding.id,
            exchange=holding.exchange,
            symbol=holding.symbol,
            side=holding.side,
            leverage=leverage,
            opened=holding.opened,
            quantity=quantity,
            cost=cost,
            margin=margin,
            stop=stop,
            target=target,
            first_stop=stop,
            first_target=target,
            hold=holding.hold,
            hold_until=_hold_until(holding.opened, holding.hold),
            fees=fee,
            most=quantity,
            entered=quantity,
            entered_value=cost,
            holding=holding,
        )
        self.trades[trade.id] = trade
        asset, put = (LedgerAccount.INVENTORY, cost) if spot else (LedgerAccount.MARGIN, margin)
        self.ledger.post(holding.exchange, (asset, put), (LedgerAccount.CASH, -put - fee), (LedgerAccount.MANUAL, fee))
        self._realise(holding.exchange, -fee)
        return holding.exchange

    def _close_by_hand(self, change: PositionClosed) -> Exchange:
        trade = self.trades.get(change.id)
        if trade is None:
            raise NotFound(f"No position {change.id} is open; `zuno trade book show` lists those that are.")
        if not trade.manual:
            raise Refused(f"{trade.id} is a trade of the desk; `zuno trade close {trade.id}` ends it at its exchange.")
        if change.at < trade.opened:
            raise Refused(f"{trade.id} was opened at {trade.opened} ms; it cannot be closed before, at {change.at} ms.")
        value, fee = round_money(trade.quantity * to_decimal(change.price)), round_money(to_decimal(change.fee))
        gross = value - trade.cost if trade.side is Side.LONG else trade.cost - value
        spot = trade.exchange is Exchange.UPBIT
        asset, back = (LedgerAccount.INVENTORY, trade.cost) if spot else (LedgerAccount.MARGIN, trade.margin)
        self.ledger.post(
            trade.exchange,
            (asset, -back),
            (LedgerAccount.CASH, back + gross - fee),
            (LedgerAccount.MANUAL, fee - gross),
        )
        self._realise(trade.exchange, gross - fee)
        trade.exited, trade.exited_value = trade.quantity, value
        trade.gross, trade.fees, trade.closed = gross, trade.fees + fee, change.at
        del self.trades[trade.id]
        self.closed.append(self.summarise(trade, ExitReason.MANUAL))
        return trade.exchange

    def _check_by_hand(self, wish: Holding | RestingOrder) -> None:
        if wish.id in self.trades or wish.id in self.resting:
            raise Refused(f"{wish.id} is in the book already.")
        if not 1 <= wish.leverage <= MAX_MANUAL_LEVERAGE:
            raise Refused(f"A leverage of {wish.leverage:g} is not between 1 and {MAX_MANUAL_LEVERAGE:g}.")
        if wish.exchange is Exchange.UPBIT:
            if wish.leverage != 1:
                raise Refused(f"UPBIT is a spot exchange: its leverage is 1, not {wish.leverage:g}.")
            if wish.side is not Side.LONG:
                raise Refused("UPBIT is a spot exchange: nothing can be sold short there; choose --exchange binance.")
        held = self.side_of(wish.symbol)
        if held is not None and held is not wish.side:
            raise Refused(
                f"The book is {held} {wish.symbol.base} and holds one side of a symbol only; "
                f"`zuno trade book close {wish.symbol}` comes first."
            )

    def _check_affordable(self, wish: Holding | RestingOrder, fee: Decimal) -> None:
        """Of the cash: what open positions have lost since is the writer's to look at, who knows the market."""
        free = self.cash(wish.exchange) - self.pending_margin(wish.exchange)
        needed = to_decimal(wish.margin) + fee
        if needed > free * (1 + _ROUNDING) + _ROUNDING:
            raise Refused(
                f"A margin of {format_money(wish.margin, wish.exchange)} and a fee of "
                f"{format_money(float(fee), wish.exchange)} are more than the "
                f"{format_money(float(free), wish.exchange)} that are free at {wish.exchange}."
            )


def find_resting(book: TradingBook, id: str) -> RestingOrder:
    resting = book.resting.get(id)
    if resting is None:
        raise NotFound(f"No order {id} rests; `zuno trade book show` lists those that do.")
    return resting


def new_id(kind: str, origin: str, number: int, *content: object) -> str:
    """A short name, the same for the same change in the same place of the same book."""
    return f"{kind}_{digest(canonical([origin, number, *content]))[:8]}"


def format_money(amount: float, exchange: Exchange) -> str:
    sign = "-" if amount < 0 else ""
    return f"{sign}${abs(amount):,.2f}" if exchange is Exchange.BINANCE else f"{sign}₩{abs(amount):,.0f}"


def _take_from_intent(trade: OpenTrade, intent: TradeIntent) -> None:
    """The levels and the origin of a trade are those of the intent that opened it."""
    trade.intent, trade.decision, trade.mode = intent.id, intent.decision, intent.mode
    trade.exploration, trade.judge, trade.family, trade.edge = (
        intent.exploration,
        intent.judge,
        intent.family,
        intent.edge,
    )
    trade.llm_cost_usd = intent.llm_cost_usd
    trade.hold, trade.hold_until = intent.hold, _hold_until(trade.opened, intent.hold)
    leg = next((leg for leg in intent.legs if leg.exchange is trade.exchange), None)
    if leg is not None:
        trade.stop = trade.first_stop = leg.stop
        trade.target = trade.first_target = leg.target


def _to_holding(trade: OpenTrade) -> Holding:
    if trade.holding is not None and (trade.stop, trade.target) == (trade.first_stop, trade.first_target):
        return trade.holding
    return Holding(
        id=trade.id,
        symbol=trade.symbol,
        exchange=trade.exchange,
        side=trade.side,
        quantity=float(trade.quantity),
        entry=float(trade.entry),
        leverage=float(trade.leverage),
        opened=trade.opened,
        stop=None if trade.stop is None else float(trade.stop),
        take=None if trade.target is None else float(trade.target),
        hold=trade.hold,
    )


def _hold_until(opened: Millis, hold: str | None) -> Millis | None:
    return None if hold is None else Millis(opened + parse_hours(hold) * HOUR_MS)


def _decimal_or_none(number: float | None) -> Decimal | None:
    return None if number is None else to_decimal(number)
