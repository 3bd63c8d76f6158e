"""The state of a trading account and its double-entry ledger, exact in `Decimal`: positions, orders, intents, locks,
closed trades, and each exchange's ledger accounts in its own currency.

A debit is above zero, a credit below. Assets (cash, margin, inventory) have debit balances; capital and results have
credit balances. Positions are kept at cost: unrealised PnL is added by whoever marks them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal

from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue, sort_venues
from zuno.trading.model.account import Account, Holding, Liquidity, RestingOrder
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.known import pick
from zuno.trading.model.market import HOUR_MS, Mode, Side, parse_hours
from zuno.trading.model.orders import ZERO, ClientId, Fill, Order, OrderRequest, OrderSide, OrderStatus, to_decimal
from zuno.trading.model.trade_events import (
    ExitReason,
    LockSet,
    Mandate,
    MandateGranted,
    Protection,
    TradeIntent,
    TradeSummary,
)

_GRAIN: Final = Decimal("1e-12")
"""Money is booked to twelve decimals: finer than any venue's, so that sums stay exact."""
_MOST: Final = Decimal("1e15")


class LedgerAccount(StrEnum):
    CASH = "cash"
    """Money that is not margin."""
    MARGIN = "margin"
    """Isolated margin of open futures positions."""
    INVENTORY = "inventory"
    """What was bought at a spot exchange, at cost."""
    CAPITAL = "capital"
    """What the account was opened with, and what was moved between its venues since."""
    REALISED_PNL = "realised_pnl"
    """Before fees and funding."""
    FEES = "fees"
    FUNDING = "funding"
    MANUAL = "manual"
    """Results and fees of positions that a person wrote down."""
    ADJUSTMENTS = "adjustments"
    """Differences to the venue that reconciliation adopted."""


ASSETS: Final = (LedgerAccount.CASH, LedgerAccount.MARGIN, LedgerAccount.INVENTORY)


def round_money(amount: Decimal) -> Decimal:
    """To the ledger's grain, half to even. `Refused` for an amount no account has."""
    if not -_MOST < amount < _MOST:
        raise Refused(f"An amount of {amount} is beyond what an account can hold.")
    return amount.quantize(_GRAIN)


class _Totals(dict[Venue, Decimal]):
    """Nothing where nothing was booked; looking adds no entry."""

    def __missing__(self, venue: Venue) -> Decimal:
        return ZERO


@dataclass(slots=True)
class Ledger:
    """Balances by exchange and account; every posting has equal debits and credits. Only `post` changes them."""

    balances: dict[Venue, dict[LedgerAccount, Decimal]] = field(default_factory=dict)
    debits: dict[Venue, Decimal] = field(default_factory=dict)
    credits: dict[Venue, Decimal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.debits, self.credits = _Totals(self.debits), _Totals(self.credits)

    def open_venue(self, venue: Venue) -> None:
        self.balances.setdefault(venue, dict.fromkeys(LedgerAccount, ZERO))

    def post(self, exchange: Venue, *lines: tuple[LedgerAccount, Decimal]) -> None:
        """Book these amounts together. `Broken` unless they add up to zero: nothing is booked then."""
        if sum((amount for _, amount in lines), ZERO) != 0:
            posted = ", ".join(f"{account} {amount}" for account, amount in lines)
            raise Broken(f"A posting at {exchange} does not balance: {posted}.")
        self.open_venue(exchange)
        balances = self.balances[exchange]
        for account, amount in lines:
            balances[account] += amount
            if amount > 0:
                self.debits[exchange] += amount
            else:
                self.credits[exchange] -= amount

    def balance(self, exchange: Venue, account: LedgerAccount) -> Decimal:
        """Debits less credits."""
        return self.balances[exchange][account] if exchange in self.balances else ZERO

    def copy(self) -> Ledger:
        balances = {exchange: dict(accounts) for exchange, accounts in self.balances.items()}
        return Ledger(balances, self.debits, self.credits)

    def assets(self, exchange: Venue) -> Decimal:
        """Equity with positions at cost."""
        return sum((self.balance(exchange, account) for account in ASSETS), ZERO)

    def check(self, exchange: Venue, margin: Decimal, inventory: Decimal) -> None:
        """`Broken` unless debits equal credits, assets capital and results, and both match the positions."""
        balances = self.balances.get(exchange) or dict.fromkeys(LedgerAccount, ZERO)
        if self.debits[exchange] != self.credits[exchange]:
            raise Broken(f"Debits of {self.debits[exchange]} at {exchange}, credits of {self.credits[exchange]}.")
        owed = -sum((amount for account, amount in balances.items() if account not in ASSETS), ZERO)
        if self.assets(exchange) != owed:
            raise Broken(f"Assets of {self.assets(exchange)} at {exchange}, capital and results of {owed}.")
        if balances[LedgerAccount.MARGIN] != margin or balances[LedgerAccount.INVENTORY] != inventory:
            raise Broken(
                f"The ledger of {exchange} has a margin of {balances[LedgerAccount.MARGIN]} and an inventory of "
                f"{balances[LedgerAccount.INVENTORY]}; the positions have {margin} and {inventory}."
            )


Purpose = Literal["entry", "stop", "target", "exit"]
Place = tuple[Venue, Symbol]


@dataclass(slots=True, eq=False)
class OpenTrade:
    """A trade from its first fill: one per exchange and symbol, beside those that a person wrote down."""

    id: str
    exchange: Venue
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

    def unrealised_pnl(self, price: Decimal) -> Decimal:
        """At a price in the exchange's currency, before fees."""
        value = self.quantity * price
        return value - self.cost if self.side is Side.LONG else self.cost - value


@dataclass(frozen=True, slots=True)
class RealisedResult:
    """Money that was gained or lost for good: a close or a part of one, a fee, funding."""

    at: Millis
    exchange: Venue
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
    lot: Decimal | None = None
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


class BookState:
    """The state of one account: read by whoever asks, written to by its events alone."""

    def __init__(self, paper_venues: tuple[Venue, ...] = DEFAULT_VENUES) -> None:
        """`paper_venues`: where an account that nobody opened has the usual cash."""
        self._paper_venues = paper_venues
        self.count = 0
        """Events so far."""
        self.newest = Millis(0)
        """Time of the last event: events are written forward in time."""
        self.recorded: bool | None = None
        """Whether it goes by recorded time; None: nobody wrote which clock it goes by."""
        self.ledger = Ledger()
        self.opened = False
        self.trades: dict[str, OpenTrade] = {}
        """Open, by id, in the order they were opened."""
        self.positions: dict[Place, OpenTrade] = {}
        """Those that the desk traded."""
        self.dust: dict[Venue, dict[Symbol, Decimal]] = {}
        """Less than a lot that a trade at a spot exchange left, at no cost: of the next trade there."""
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
        self.mandates: list[Mandate] = []
        """Every one that was ever granted."""
        self.resting: dict[str, RestingOrder] = {}
        """Orders that a person wrote down."""
        self.liquidity: dict[Symbol, Liquidity] = {}
        self._fills: dict[tuple[Venue, str], Fill] = {}
        self._payments: dict[tuple[Venue, str], None] = {}

    def recorded_moment(self, *, live: bool) -> Millis | None:
        """The last moment of an account in recorded time; None: it stands at its market's time. `live`: the market goes
        by the wall clock. Where it does not, an account that the desk traded is in recorded time."""
        recorded = (not live and bool(self.intents)) if self.recorded is None else self.recorded
        return self.newest if recorded else None

    def cash(self, exchange: Venue) -> Decimal:
        if not self.opened:
            return exchange.paper_cash if exchange in self._paper_venues else ZERO
        return self.ledger.balance(exchange, LedgerAccount.CASH)

    @property
    def venues(self) -> tuple[Venue, ...]:
        """Where the account has money, in the order of the table of venues."""
        return sort_venues(self.ledger.balances) if self.opened else self._paper_venues

    def margin(self, exchange: Venue) -> Decimal:
        """Isolated margin of open futures positions."""
        return self.ledger.balance(exchange, LedgerAccount.MARGIN)

    def venue_balance(self, exchange: Venue) -> Decimal:
        """The wallet balance the venue should have: cash and margin, without what a person wrote down."""
        manual = [trade for trade in self.trades.values() if trade.manual and trade.exchange is exchange]
        held = sum((trade.cost for trade in manual if exchange.spot), ZERO)
        results = self.ledger.balance(exchange, LedgerAccount.MANUAL)
        return self.cash(exchange) + self.margin(exchange) + held + results

    def equity(self, exchange: Venue, marks: Mapping[Symbol, Decimal]) -> Decimal:
        """Cash and positions at these prices, in the exchange's currency."""
        unrealised = sum((trade.unrealised_pnl(marks[trade.symbol]) for trade in self.trades_at(exchange)), ZERO)
        inventory = self.ledger.balance(exchange, LedgerAccount.INVENTORY)
        return self.cash(exchange) + self.margin(exchange) + inventory + unrealised

    def free(self, exchange: Venue, marks: Mapping[Symbol, Decimal]) -> Decimal:
        """Margin for a new position: cash less open losses and pending orders. Negative: so much is missing."""
        unrealised = ZERO
        if not exchange.spot:
            unrealised = sum((trade.unrealised_pnl(marks[trade.symbol]) for trade in self.trades_at(exchange)), ZERO)
        return self.cash(exchange) + min(ZERO, unrealised) - self.pending_margin(exchange)

    def pending_margin(self, exchange: Venue) -> Decimal:
        return sum(
            (to_decimal(order.margin) for order in self.to_pending() if order.exchange is exchange and order.margin),
            ZERO,
        )

    def trades_at(self, exchange: Venue) -> list[OpenTrade]:
        return [trade for trade in self.trades.values() if trade.exchange is exchange]

    def side_of(self, symbol: Symbol) -> Side | None:
        """Which way a symbol is held, at whatever exchange."""
        return next((trade.side for trade in self.trades.values() if trade.symbol is symbol), None)

    # -- positions whose legs hedge each other

    def find_hedge(self, trade: OpenTrade) -> TradeIntent | None:
        """The intent whose leg a trade is, where its legs hedge each other."""
        tracked = self.intents.get(trade.intent)
        return None if tracked is None or tracked.intent.hedge_lot is None else tracked.intent

    def list_hedges(self) -> dict[str, TradeIntent]:
        """Those of which something is held, by their intents' ids."""
        return {hedge.id: hedge for hedge in map(self.find_hedge, self.positions.values()) if hedge is not None}

    def legs_of(self, hedge: TradeIntent) -> list[OpenTrade]:
        held = (self.positions.get((leg.exchange, hedge.symbol)) for leg in hedge.legs)
        return [trade for trade in held if trade is not None and trade.intent == hedge.id]

    def is_matched(self, hedge: TradeIntent) -> bool:
        """Whether its legs are within one lot of each other."""
        net = sum((trade.side.sign * trade.quantity for trade in self.legs_of(hedge)), ZERO)
        return abs(net) <= (hedge.hedge_lot or ZERO)

    def sum_proceeds(self, orders: Collection[ClientId]) -> Decimal:
        """What these orders brought in, less what they cost."""
        fills = (fill for fill in self._fills.values() if fill.client_id in orders)
        return sum((-fill.side.sign * fill.quantity * fill.price - fill.fee for fill in fills), ZERO)

    def has_fill(self, exchange: Venue, id: str) -> bool:
        return (exchange, id) in self._fills

    def has_payment(self, exchange: Venue, id: str) -> bool:
        return (exchange, id) in self._payments

    @property
    def payments(self) -> list[tuple[Venue, str]]:
        """Funding payments that were booked."""
        return [*self._payments]

    def restore_bookings(self, fills: dict[tuple[Venue, str], Fill], payments: Iterable[tuple[Venue, str]]) -> None:
        """Those of a snapshot: none of them is booked again."""
        self._fills, self._payments = fills, dict.fromkeys(payments)

    def is_update(self, order: Order) -> bool:
        """Whether the venue reports something new about an order: late and repeated reports are not."""
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
            **pick(trade, "decision", "exchange", "symbol", "side", "mode", "opened", "closed", "fees", "funding"),
            **pick(trade, "exploration", "judge", "family", "edge", "llm_cost_usd"),
            trade=trade.id,
            intent=trade.intent or trade.id,
            quantity=trade.most,
            entry=trade.entered_value / trade.entered,
            exit=trade.exited_value / trade.exited,
            stop=trade.first_stop,
            target=trade.first_target,
            gross_pnl=trade.gross,
            net_pnl=trade.gross - trade.fees + trade.funding,
            reason=ExitReason.LIQUIDATION if trade.liquidated else reason,
        )

    def to_account(self, paper: Iterable[Venue] = ()) -> Account:
        """The account as a bundle holds it. `paper`: venues that have the usual cash though nothing happened there; at
        exchanges those with one wallet have equal parts of its cash, so that none is spent twice."""
        cash = {venue: float(self.cash(venue) + self.margin(venue)) for venue in self.venues}
        for venue in () if paper else self.venues:
            sharing = [other for other in self.venues if other.wallet == venue.wallet]
            if len(sharing) > 1:
                part = sum(map(self.cash, sharing), ZERO) / len(sharing)
                cash[venue] = float(part + self.margin(venue))
        return Account(
            cash={venue: float(venue.paper_cash) for venue in paper} | cash,
            positions=tuple(map(_to_holding, self.trades.values())),
            pending=self.to_pending(),
            liquidity=tuple(self.liquidity.values()),
        )

    def to_pending(self) -> tuple[RestingOrder, ...]:
        """Orders that would add to a position: those of a person, and entries that are not over."""
        return (*self.resting.values(), *filter(None, map(self._to_resting, self.open_orders.values())))

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

    def open_account(self, cash: Mapping[Venue, Decimal]) -> None:
        self.opened = True
        for venue, amount in cash.items():
            self.ledger.open_venue(venue)
            self.ledger.post(venue, (LedgerAccount.CASH, amount), (LedgerAccount.CAPITAL, -amount))

    def find_opening(self, venues: Collection[Venue]) -> dict[Venue, Decimal] | None:
        """Paper money that is put into the account with its next event: at venues where it has none yet."""
        if not self.count and set(venues) <= set(self._paper_venues):
            return None  # such an account needs no event
        new = [venue for venue in venues if not self.count or venue not in self.venues]
        return {venue: venue.paper_cash for venue in new} or None

    def require_account(self) -> None:
        """An account that nobody opened is a paper account with the usual cash."""
        if not self.opened:
            self.open_account({venue: venue.paper_cash for venue in self._paper_venues})

    def realise(self, exchange: Venue, amount: Decimal) -> None:
        if amount:
            self.results.append(RealisedResult(self._moment, exchange, amount))


def hold_until(opened: Millis, hold: str | None) -> Millis | None:
    return None if hold is None else Millis(opened + parse_hours(hold) * HOUR_MS)


def _to_holding(trade: OpenTrade) -> Holding:
    if trade.holding is not None and (trade.stop, trade.target) == (trade.first_stop, trade.first_target):
        return trade.holding
    return Holding(
        quantity=float(trade.quantity),
        entry=float(trade.entry),
        leverage=float(trade.leverage),
        stop=None if trade.stop is None else float(trade.stop),
        take=None if trade.target is None else float(trade.target),
        **pick(trade, "id", "symbol", "exchange", "side", "opened", "hold"),
    )
