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
from math import fsum
from typing import Final, Generic, Literal, TypeVar

from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue, sort_venues
from zuno.trading.model import trade_events
from zuno.trading.model.account import Account, Holding, Liquidity, OtherSleeves, RestingOrder, SleeveExposure
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.known import pick
from zuno.trading.model.market import HOUR_MS, Mode, Side, parse_hours
from zuno.trading.model.orders import ZERO, ClientId, Fill, Order, OrderRequest, OrderSide, OrderStatus, to_decimal
from zuno.trading.model.sleeves import DEBATE, DEBATE_ALONE, TWO_LEGGED, SleeveShares

_GRAIN: Final = Decimal("1e-12")
"""Money is booked to twelve decimals: finer than any venue's, so that sums stay exact."""
_MOST: Final = Decimal("1e15")
MOST_DAY_MARKS: Final = 60


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
    """Differences to the venue that were adopted: what its owner paid in or out, and small ones that gave money."""
    DRIFT = "drift"
    """Small ones that cost money, and nobody knows why: they are lost."""


ASSETS: Final = (LedgerAccount.CASH, LedgerAccount.MARGIN, LedgerAccount.INVENTORY)
RESULTS: Final = (
    LedgerAccount.REALISED_PNL,
    LedgerAccount.FEES,
    LedgerAccount.FUNDING,
    LedgerAccount.MANUAL,
    LedgerAccount.DRIFT,
)


def round_money(amount: Decimal) -> Decimal:
    """To the ledger's grain, half to even. `Refused` for an amount no account has."""
    if not -_MOST < amount < _MOST:
        raise Refused(f"An amount of {amount} is beyond what an account can hold.")
    return amount.quantize(_GRAIN)


K = TypeVar("K")


class _Totals(dict[K, Decimal]):
    """Looking adds no entry."""

    def __missing__(self, place: K) -> Decimal:
        return ZERO


@dataclass(slots=True)
class Ledger(Generic[K]):
    """Balances by place and account; every posting has equal debits and credits. Only `post` changes them. A place is
    an exchange, or a sleeve with a currency."""

    balances: dict[K, dict[LedgerAccount, Decimal]] = field(default_factory=dict)
    debits: dict[K, Decimal] = field(default_factory=dict)
    credits: dict[K, Decimal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.debits, self.credits = _Totals(self.debits), _Totals(self.credits)

    def open_place(self, place: K) -> None:
        self.balances.setdefault(place, dict.fromkeys(LedgerAccount, ZERO))

    def post(self, exchange: K, *lines: tuple[LedgerAccount, Decimal]) -> None:
        """Book these amounts together. `Broken` unless they add up to zero: nothing is booked then."""
        if sum((amount for _, amount in lines), ZERO) != 0:
            posted = ", ".join(f"{account} {amount}" for account, amount in lines)
            raise Broken(f"A posting at {exchange} does not balance: {posted}.")
        self.open_place(exchange)
        balances = self.balances[exchange]
        for account, amount in lines:
            balances[account] += amount
            if amount > 0:
                self.debits[exchange] += amount
            else:
                self.credits[exchange] -= amount

    def balance(self, exchange: K, account: LedgerAccount) -> Decimal:
        """Debits less credits."""
        return self.balances[exchange][account] if exchange in self.balances else ZERO

    def copy(self) -> Ledger[K]:
        balances = {exchange: dict(accounts) for exchange, accounts in self.balances.items()}
        return Ledger(balances, self.debits, self.credits)

    def assets(self, exchange: K) -> Decimal:
        return sum((self.balance(exchange, account) for account in ASSETS), ZERO)

    def check(self, exchange: K, margin: Decimal, inventory: Decimal) -> None:
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
SleevePlace = tuple[Venue, Symbol, str]
"""What one sleeve holds at a place: a trade of it."""
SleeveCash = tuple[str, str]
"""A sleeve and a currency."""


@dataclass(slots=True)
class NetPosition:
    """What an exchange holds of a symbol for several sleeves, at its own average. Below zero is short."""

    quantity: Decimal
    cost: Decimal

    def add(self, quantity: Decimal, value: Decimal) -> None:
        """`value`: of the quantity at its price, with its sign."""
        if self.quantity * quantity >= 0:
            self.quantity, self.cost = self.quantity + quantity, self.cost + value
            return
        closed = min(abs(quantity), abs(self.quantity))
        kept = self.quantity + closed * (1 if self.quantity < 0 else -1)
        rest = quantity + closed * (1 if quantity < 0 else -1)
        gone = self.quantity - kept  # rounded as a venue's own position is
        self.cost += round_money(value * rest / quantity) - round_money(self.cost * gone / self.quantity)
        self.quantity = kept + rest


@dataclass(slots=True, eq=False)
class OpenTrade:
    """A trade from its first fill: one per exchange, symbol and sleeve, beside those that a person wrote down."""

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
    leaves: Decimal | None = None
    """What leaves at the target, where the rest runs on."""
    trail: Decimal = ZERO
    """How far behind the price the stop of that rest follows."""
    stop_since: Millis | None = None
    """When the stop was set; None: it stands since the opening."""
    target_since: Millis | None = None
    """When the target was set, likewise."""
    sleeve: str = DEBATE

    @property
    def signed(self) -> Decimal:
        return self.quantity * self.side.sign

    @property
    def entry(self) -> Decimal:
        return self.cost / self.quantity

    @property
    def manual(self) -> bool:
        return self.holding is not None

    @property
    def leaving(self) -> Decimal:
        return self.quantity if self.leaves is None else min(self.quantity, max(ZERO, self.leaves - self.exited))

    def unrealised_pnl(self, price: Decimal) -> Decimal:
        """At a price in the exchange's currency, before fees."""
        value = self.quantity * price
        return value - self.cost if self.side is Side.LONG else self.cost - value


@dataclass(frozen=True, slots=True)
class RealisedResult:
    """Money that was gained or lost for good: a close or a part of one, a fee, funding, cash that is missing."""

    at: Millis
    exchange: Venue
    amount: Decimal
    drift: bool = False
    """Cash that is missing at the venue, and nobody knows why."""


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
    intent: trade_events.TradeIntent
    stored: Millis
    orders: list[ClientId] = field(default_factory=list)
    state: Literal["open", "done", "partial", "refused", "expired", "undone"] = "open"
    ended: Millis | None = None
    reason: str = ""


USUAL_CASH: Final[Mapping[Venue, Decimal]] = {venue: venue.paper_cash for venue in DEFAULT_VENUES}


class BookState:
    """The state of one account: read by whoever asks, written to by its events alone."""

    def __init__(self, paper_cash: Mapping[Venue, Decimal] = USUAL_CASH) -> None:
        """`paper_cash`: what an account that nobody opened has."""
        self._paper_cash = paper_cash
        self.count = 0
        """Events so far."""
        self.newest = Millis(0)
        """Time of the last event: events are written forward in time."""
        self.recorded: bool | None = None
        """Whether it goes by recorded time; None: nobody wrote which clock it goes by."""
        self.ledger: Ledger[Venue] = Ledger()
        self.shares: SleeveShares = DEBATE_ALONE
        self.sleeve_ledger: Ledger[SleeveCash] = Ledger()
        """Of all sleeves but the debate, which has what is left of the exchanges' ledgers."""
        self.nets: dict[Place, NetPosition] = {}
        """Positions at an exchange that more than one sleeve has had a part of since they were flat."""
        self.opened = False
        self.trades: dict[str, OpenTrade] = {}
        """Open, by id, in the order they were opened."""
        self.positions: dict[SleevePlace, OpenTrade] = {}
        """Those that the desk traded."""
        self.dust: dict[Venue, dict[Symbol, Decimal]] = {}
        """Less than a lot that a trade at a spot exchange left, at no cost: of the next trade there."""
        self.finished: dict[str, OpenTrade] = {}
        """Flat, and nobody wrote `TradeClosed` yet."""
        self.closed: list[trade_events.TradeSummary] = []
        self.results: list[RealisedResult] = []
        """By the moment they were booked, which only goes forward."""
        self._moment = Millis(0)
        self.orders: dict[ClientId, TrackedOrder] = {}
        self.open_orders: dict[ClientId, TrackedOrder] = {}
        """Those that are not final."""
        self.intents: dict[str, TrackedIntent] = {}
        self.open_intents: dict[str, TrackedIntent] = {}
        self.day_marks: list[trade_events.DayMarked] = []
        """Of the last days, the newest last."""
        self.locks: dict[tuple[trade_events.Protection, Symbol | None], trade_events.LockSet] = {}
        self.lifted: dict[tuple[trade_events.Protection, Symbol | None], Millis] = {}
        """When each was lifted last: a protection counts only what came after."""
        self.granted: trade_events.MandateGranted | None = None  # the newest mandate that was not revoked
        self.outdated = ""
        """The hash of a mandate that is older than the backup this home was restored from: it may have been revoked."""
        self.mandates: list[trade_events.Mandate] = []
        """Every one that was ever granted."""
        self.resting: dict[str, RestingOrder] = {}
        """Orders that a person wrote down."""
        self.liquidity: dict[Symbol, Liquidity] = {}
        self.fills_by_id: dict[tuple[Venue, str], Fill] = {}
        self.overfill = ""
        """What the last fill took beyond what its order's sleeve held, and whose that was."""
        self.payment_ids: dict[tuple[Venue, str], None] = {}
        """Funding payments that were booked."""
        self.moves: list[trade_events.CashMoved] = []
        """Of the last time cash was moved between venues: their wallets may not have followed yet."""
        self.drifts: list[trade_events.Adopted] = []
        """Small differences of the last day that the desk adopted by itself, since the owner adopted one there."""
        self.keys: dict[str, None] = {}
        """Of transfers, moves and crossings: each happens once."""

    def recorded_moment(self, *, live: bool) -> Millis | None:
        """The last moment of an account in recorded time; None: it stands at its market's time. `live`: the market goes
        by the wall clock. Where it does not, an account that the desk traded is in recorded time."""
        recorded = (not live and bool(self.intents)) if self.recorded is None else self.recorded
        return self.newest if recorded else None

    def cash(self, exchange: Venue) -> Decimal:
        if not self.opened:
            return self._paper_cash.get(exchange, ZERO)
        return self.ledger.balance(exchange, LedgerAccount.CASH)

    @property
    def venues(self) -> tuple[Venue, ...]:
        """Where the account has money, in the order of the table of venues."""
        return sort_venues(self.ledger.balances) if self.opened else tuple(self._paper_cash)

    def margin(self, exchange: Venue) -> Decimal:
        return self.ledger.balance(exchange, LedgerAccount.MARGIN)

    def venue_balance(self, exchange: Venue) -> Decimal:
        """The wallet balance the venue should have: cash and margin, without what a person wrote down."""
        manual = [trade for trade in self.trades.values() if trade.manual and trade.exchange is exchange]
        held = sum((trade.cost for trade in manual if exchange.spot), ZERO)
        results = self.ledger.balance(exchange, LedgerAccount.MANUAL)
        return self.cash(exchange) + self.margin(exchange) + held + results + self._netted(exchange)

    def _netted(self, exchange: Venue) -> Decimal:
        """By how much the exchange's wallet is above the book's: it realises by the average of the net position, the
        book by each sleeve's own. What is unrealised differs by as much."""
        own = {symbol: net.cost for (place, symbol), net in self.nets.items() if place is exchange}
        held = (trade for symbol in own for trade in self.positions_at(exchange, symbol))
        return sum(own.values(), ZERO) - sum((trade.cost * trade.side.sign for trade in held), ZERO)

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

    def position(self, exchange: Venue, symbol: Symbol, sleeve: str = DEBATE) -> OpenTrade | None:
        """What a sleeve holds there; never what a person wrote down."""
        return self.positions.get((exchange, symbol, sleeve))

    def positions_at(self, exchange: Venue, symbol: Symbol) -> list[OpenTrade]:
        return [trade for (place, of, _), trade in self.positions.items() if place is exchange and of is symbol]

    def find_covered(self, trade: OpenTrade) -> Decimal:
        """Return how much of a position its own stop covers at the venue, which has the sleeves' net alone: all stops
        together are at most that, the debate's first. What hedges counts for none, and has none."""
        held = [] if trade.exchange.spot else self.positions_at(trade.exchange, trade.symbol)
        if trade.manual or len(held) < 2:
            return trade.quantity
        left = max(ZERO, trade.side.sign * sum((other.signed for other in held), ZERO))
        for other in sorted(held, key=lambda other: (other.sleeve != DEBATE, other.sleeve)):
            stopped = other.stop is not None and other.sleeve not in TWO_LEGGED and other.side is trade.side
            covered = min(left, other.quantity) if stopped else ZERO
            if other is trade:
                return covered
            left -= covered
        return ZERO

    def find_leverage(self, exchange: Venue, symbol: Symbol) -> int | None:
        """Of what all sleeves hold or wait to open of a perpetual: a symbol has one there. None: any may be chosen."""
        held = [int(trade.leverage) for trade in self.positions_at(exchange, symbol)]
        at = (order.request for order in self.open_orders.values() if order.purpose == "entry")
        waiting = [order.leverage for order in at if (order.exchange, order.symbol) == (exchange, symbol)]
        return None if exchange.spot else max((1, *(held or waiting))) if held or waiting else None

    def list_held(self, sleeve: str, symbol: Symbol | None = None) -> list[OpenTrade]:
        """What the desk traded for a sleeve; never what a person wrote down."""
        own = (trade for trade in self.positions.values() if trade.sleeve == sleeve)
        return [trade for trade in own if symbol in (None, trade.symbol)]

    def list_ordered(self, sleeve: str, symbol: Symbol) -> list[TrackedOrder]:
        """Its orders that are not final."""
        of_symbol = (order for order in self.open_orders.values() if order.request.symbol is symbol)
        return [order for order in of_symbol if self.sleeve_of(order) == sleeve]

    def list_intents(
        self, kind: trade_events.IntentKind | None = None, symbol: Symbol | None = None, sleeve: str | None = None
    ) -> list[TrackedIntent]:
        """Those that are not over; None: of all."""
        of_kind = (tracked for tracked in self.open_intents.values() if kind in (None, tracked.intent.kind))
        of_symbol = (tracked for tracked in of_kind if symbol in (None, tracked.intent.symbol))
        return [tracked for tracked in of_symbol if sleeve in (None, tracked.intent.sleeve)]

    def side_of(self, symbol: Symbol) -> Side | None:
        held = (trade for trade in self.trades.values() if trade.symbol is symbol and trade.sleeve == DEBATE)
        return next((trade.side for trade in held), None)

    def sum_held(self, symbol: Symbol, sleeve: str) -> Decimal:
        """What a sleeve holds of a symbol at all exchanges, below zero for a short."""
        held = (trade.signed for trade in self.trades.values() if (trade.sleeve, trade.symbol) == (sleeve, symbol))
        return sum(held, ZERO)

    # -- sleeves

    @property
    def sleeves(self) -> tuple[str, ...]:
        """The debate, and every sleeve that has a share or money."""
        return tuple(dict.fromkeys((DEBATE, *self.shares, *(name for name, _ in self.sleeve_ledger.balances))))

    def sleeve_balances(self, sleeve: str, currency: str) -> dict[LedgerAccount, Decimal]:
        """Of the debate: what the exchanges' ledgers have and no other sleeve. `MANUAL` is the debate's."""
        if sleeve != DEBATE:
            return self.sleeve_ledger.balances.get((sleeve, currency)) or dict.fromkeys(LedgerAccount, ZERO)
        places = [self.ledger.balances[venue] for venue in self.ledger.balances if venue.currency == currency]
        others = [part for (_, of), part in self.sleeve_ledger.balances.items() if of == currency]
        return {
            account: sum((part[account] for part in places), ZERO) - sum((part[account] for part in others), ZERO)
            for account in LedgerAccount
        }

    def sleeve_cash(self, sleeve: str, currency: str) -> Decimal:
        """Money of a sleeve that is not bound in positions."""
        if not self.opened and sleeve == DEBATE:
            return sum((cash for venue, cash in self._paper_cash.items() if venue.currency == currency), ZERO)
        return self.sleeve_balances(sleeve, currency)[LedgerAccount.CASH]

    def sleeve_free(self, sleeve: str, currency: str) -> Decimal:
        """Its cash, less what its orders that wait to be filled would bind."""
        pending = (order for order in self.to_pending(sleeve) if order.exchange.currency == currency)
        return self.sleeve_cash(sleeve, currency) - sum((to_decimal(order.margin) for order in pending), ZERO)

    def sleeve_equity(self, sleeve: str, currency: str, marks: Mapping[Place, Decimal]) -> Decimal:
        own = (trade for trade in self.trades.values() if trade.sleeve == sleeve)
        held = [trade for trade in own if trade.exchange.currency == currency]
        bound = sum((trade.cost if trade.exchange.spot else trade.margin for trade in held), ZERO)
        open_result = sum((trade.unrealised_pnl(marks[trade.exchange, trade.symbol]) for trade in held), ZERO)
        return self.sleeve_cash(sleeve, currency) + bound + open_result

    def sleeve_of(self, order: TrackedOrder) -> str:
        """Of an order that is not ours: the debate's."""
        tracked = self.intents.get(order.intent)
        return DEBATE if tracked is None else tracked.intent.sleeve

    # -- positions whose legs hedge each other

    def find_hedge(self, trade: OpenTrade) -> trade_events.TradeIntent | None:
        """The intent whose leg a trade is, where its legs hedge each other."""
        tracked = self.intents.get(trade.intent)
        return None if tracked is None or tracked.intent.hedge_lot is None else tracked.intent

    def list_hedges(self) -> list[trade_events.TradeIntent]:
        """The intent that began each: of a symbol a sleeve has one, whatever it grew by since."""
        begun: dict[tuple[Symbol, str], trade_events.TradeIntent] = {}
        for hedge in filter(None, map(self.find_hedge, self.positions.values())):
            begun.setdefault((hedge.symbol, hedge.sleeve), hedge)
        return [*begun.values()]

    def legs_of(self, hedge: trade_events.TradeIntent) -> list[OpenTrade]:
        held = (self.position(leg.exchange, hedge.symbol, hedge.sleeve) for leg in hedge.legs)
        return [trade for trade in held if trade is not None and self.find_hedge(trade) is not None]

    def is_worked(self, symbol: Symbol, sleeve: str) -> bool:
        """Whether an entry, a cut or a close of it is not over."""
        return bool(self.list_intents(symbol=symbol, sleeve=sleeve))

    def find_left(self, tracked: TrackedIntent) -> dict[Venue, Decimal]:
        """What is still to be filled of each leg, ordered or not."""
        left = {leg.exchange: leg.quantity for leg in tracked.intent.legs}
        for order in map(self.orders.__getitem__, tracked.orders):
            if order.purpose in ("entry", "exit"):
                left[order.request.exchange] -= order.booked
        return left

    def is_matched(self, hedge: trade_events.TradeIntent) -> bool:
        net = sum((trade.side.sign * trade.quantity for trade in self.legs_of(hedge)), ZERO)
        return abs(net) <= (hedge.hedge_lot or ZERO)

    def sum_proceeds(self, orders: Collection[ClientId]) -> Decimal:
        """What these orders brought in, less what they cost."""
        fills = (fill for fill in self.fills_by_id.values() if fill.client_id in orders)
        return sum((-fill.side.sign * fill.quantity * fill.price - fill.fee for fill in fills), ZERO)

    def is_update(self, order: Order) -> bool:
        """Whether the venue reports something new about an order: late and repeated reports are not, nor is it that one
        stands which the book has as over: its fills are news, and then how it ends."""
        known = self.orders.get(order.request.client_id)
        if known is None:
            return True
        if known.status.final and not order.status.final:
            return False
        moved = order.status is not known.status and not known.status.final
        return moved or order.filled > known.filled

    def active_locks(self, now: Millis, symbol: Symbol | None = None) -> list[trade_events.LockSet]:
        """Locks that stand at a moment: of the desk, and of a symbol if one is asked about."""
        return [
            lock
            for lock in self.locks.values()
            if (lock.until is None or lock.until > now)
            and (lock.symbol is None or symbol is None or lock.symbol is symbol)
        ]

    @property
    def mandate(self) -> trade_events.MandateGranted | None:
        """The one that counts."""
        return None if self.granted is None or self.granted.hash == self.outdated else self.granted

    def active_mandate(self, now: Millis) -> trade_events.Mandate | None:
        granted = self.mandate
        return None if granted is None or granted.mandate.expires <= now else granted.mandate

    def summarise(self, trade: OpenTrade, reason: trade_events.ExitReason) -> trade_events.TradeSummary:
        if trade.closed is None:
            raise Refused(f"{trade.id} is still open.")
        return trade_events.TradeSummary(
            **pick(trade, "decision", "exchange", "symbol", "side", "mode", "opened", "closed", "fees", "funding"),
            **pick(trade, "exploration", "judge", "family", "edge", "llm_cost_usd", "sleeve"),
            trade=trade.id,
            intent=trade.intent or trade.id,
            quantity=trade.most,
            entry=trade.entered_value / trade.entered,
            exit=trade.exited_value / trade.exited,
            stop=trade.first_stop,
            target=trade.first_target,
            gross_pnl=trade.gross,
            net_pnl=trade.gross - trade.fees + trade.funding,
            reason=trade_events.ExitReason.LIQUIDATION if trade.liquidated else reason,
        )

    def to_account(self, paper: Iterable[Venue] = ()) -> Account:
        """The debate's sleeve as a bundle holds it, and what the others add up to. `paper`: venues that have the usual
        cash though nothing happened there; at exchanges those with one wallet have equal parts of its cash, so that
        none is spent twice."""
        trades = [trade for trade in self.trades.values() if trade.sleeve == DEBATE]
        margin = {venue: sum((t.margin for t in trades if t.exchange is venue), ZERO) for venue in self.venues}
        cash = {venue: float(self._debate_cash(venue) + margin[venue]) for venue in self.venues}
        for venue in () if paper else self.venues:
            sharing = [other for other in self.venues if other.wallet == venue.wallet]
            if len(sharing) > 1:
                part = sum(map(self._debate_cash, sharing), ZERO) / len(sharing)
                cash[venue] = float(part + margin[venue])
        return Account(
            cash={venue: float(venue.paper_cash) for venue in paper} | cash,
            positions=tuple(map(_to_holding, trades)),
            pending=self.to_pending(DEBATE),
            liquidity=tuple(self.liquidity.values()),
            others=self._sum_other_sleeves(),
        )

    def _debate_cash(self, venue: Venue) -> Decimal:
        """Of the debate's cash in a currency the same part as of all cash is at the venue."""
        own = self.cash(venue)
        if not self.sleeve_ledger.balances:
            return own
        total = sum((self.cash(other) for other in self.venues if other.currency == venue.currency), ZERO)
        part = min(total, self.sleeve_cash(DEBATE, venue.currency))
        return own * part / total if total > 0 else min(own, part)

    def _sum_other_sleeves(self) -> OtherSleeves | None:
        """None where the debate is all there is."""
        trades = [trade for trade in self.trades.values() if trade.sleeve != DEBATE]
        pending = [order for sleeve in self.sleeves[1:] for order in self.to_pending(sleeve)]
        if not (self.sleeve_ledger.balances or trades or pending):
            return None
        cash = dict.fromkeys(sorted(currency for _, currency in self.sleeve_ledger.balances), ZERO)
        for (_, currency), balances in self.sleeve_ledger.balances.items():
            cash[currency] += balances[LedgerAccount.CASH] + balances[LedgerAccount.MARGIN]
        for trade in trades:
            if not trade.exchange.spot:
                cash[trade.exchange.currency] -= trade.cost * trade.side.sign
        exposures = []
        for symbol in sorted({order.symbol for order in pending} | {trade.symbol for trade in trades}):
            held = [self.sum_held(symbol, sleeve) for sleeve in self.sleeves[1:]]
            adding = [order for order in pending if order.symbol is symbol]
            gross = float(sum(map(abs, held), ZERO)) + fsum(order.quantity for order in adding)
            net = fsum(order.side.sign * order.quantity for order in adding)
            exposures.append(SleeveExposure(symbol=symbol, held=float(sum(held, ZERO)), adding=net, gross=gross))
        return OtherSleeves(cash={name: float(amount) for name, amount in cash.items()}, exposures=tuple(exposures))

    def to_pending(self, sleeve: str | None = None) -> tuple[RestingOrder, ...]:
        """Orders that would add to a position: a person's, which are the debate's, and entries that are not over."""
        entries = (order for order in self.open_orders.values() if sleeve in (None, self.sleeve_of(order)))
        by_hand = self.resting.values() if sleeve in (None, DEBATE) else ()
        return (*by_hand, *filter(None, map(self._to_resting, entries)))

    def _to_resting(self, order: TrackedOrder) -> RestingOrder | None:
        request = order.request
        if order.purpose != "entry" or request.reduce_only or order.left <= 0:
            return None
        tracked = self.intents.get(order.intent)
        legs = () if tracked is None else tracked.intent.legs
        entry = next((leg.entry for leg in legs if leg.exchange is request.exchange), None)
        price = request.price or request.trigger or entry
        if price is None:
            return None
        return RestingOrder(
            **pick(request, "symbol", "exchange"),
            id=request.client_id,
            side=Side.LONG if request.side is OrderSide.BUY else Side.SHORT,
            quantity=float(order.left),
            price=float(price),
            leverage=float(request.leverage),
            placed=order.planned,
        )

    def open_account(self, cash: Mapping[Venue, Decimal]) -> None:
        self.opened = True
        for venue, amount in cash.items():
            self.ledger.open_place(venue)
            self.ledger.post(venue, (LedgerAccount.CASH, amount), (LedgerAccount.CAPITAL, -amount))

    def find_opening(self, venues: Collection[Venue]) -> dict[Venue, Decimal] | None:
        """Paper money that is put into the account with its next event: at venues where it has none yet."""
        if not self.count and set(venues) <= set(self._paper_cash):
            return None  # such an account needs no event
        new = [venue for venue in venues if not self.count or venue not in self.venues]
        return {venue: venue.paper_cash for venue in new} or None

    def require_account(self) -> None:
        """An account that nobody opened is a paper account with the usual cash."""
        if not self.opened:
            self.open_account(self._paper_cash)

    def realise(self, exchange: Venue, amount: Decimal, *, drift: bool = False) -> None:
        if amount:
            self.results.append(RealisedResult(self._moment, exchange, amount, drift))


def hold_until(opened: Millis, hold: str | None) -> Millis | None:
    return None if hold is None else Millis(opened + parse_hours(hold) * HOUR_MS)


def _to_holding(trade: OpenTrade) -> Holding:
    if trade.holding is not None and trade.stop_since is None and trade.target_since is None:
        return trade.holding
    return Holding(
        quantity=float(trade.quantity),
        entry=float(trade.entry),
        leverage=float(trade.leverage),
        stop=None if trade.stop is None else float(trade.stop),
        take=None if trade.target is None else float(trade.target),
        leaves=None if trade.target is None or trade.leaving == trade.quantity else float(trade.leaving),
        take_since=trade.target_since,
        **pick(trade, "id", "symbol", "exchange", "side", "opened", "hold", "stop_since"),
    )
