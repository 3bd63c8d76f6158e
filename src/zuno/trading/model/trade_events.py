"""Everything that happens to a trading account, as events: intents, orders, fills, funding, closes, locks, mandates.

The account's state is what its events add up to (`rules/trading_book.py`); nothing else is stored.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from zuno.kernel.accounts import DEMO_ACCOUNT as DEMO_ACCOUNT
from zuno.kernel.accounts import LIVE_ACCOUNT as LIVE_ACCOUNT
from zuno.kernel.accounts import PAPER_ACCOUNT as PAPER_ACCOUNT
from zuno.kernel.accounts import PAPER_WORD as PAPER_WORD
from zuno.kernel.accounts import account_mode as account_mode
from zuno.kernel.accounts import check_account_name as check_account_name
from zuno.kernel.wire import Hex64, Wire
from zuno.markets.market import Symbol
from zuno.markets.older import read_older_day
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.model.account import AccountEvent, BookChange, Id, Timestamp
from zuno.trading.model.cycle import JudgeKind, Policy, RegimeFamily, Ruling, Style
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.orders import ClientId, Fill, FundingPayment, NotNegative, Order, OrderRequest, Positive
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE, SleeveName, SleeveOf, SleeveShares, check_shares

TRADE_EVENTS: Final = "trade_events"
"""The kind of the journal's entries that an account is made of."""

Reason = Annotated[str, Field(max_length=600)]


class ExitReason(StrEnum):
    """What ended a trade."""

    STOP = "stop"
    TARGET = "target"
    HOLD_OVER = "hold_over"
    DECISION = "decision"
    """CANCEL_AND_CLOSE or an opposite decision of a later cycle."""
    OWNER = "owner"
    KILL_SWITCH = "kill_switch"
    LIQUIDATION = "liquidation"
    UNDONE = "undone"
    """It could not be protected: a stop that the venue does not take, legs that do not match."""
    MANUAL = "manual"


class IntentKind(StrEnum):
    OPEN = "open"
    """A new trade, or a top-up of one."""
    CLOSE = "close"
    CUT = "cut"
    """So much of each leg goes; of a hedged position what that brings in becomes margin of the short, unless a smaller
    target asked for it."""


class IntentLeg(Wire):
    """What one exchange is to carry, in whole lots and on the tick of that exchange."""

    exchange: Venue
    quantity: Positive
    entry: Positive
    stop: Annotated[Positive | None, Field(exclude_if=lambda price: price is None)] = None
    target: Annotated[Positive | None, Field(exclude_if=lambda price: price is None)] = None
    """None in a hedged position alone."""
    leverage: Annotated[int, Field(ge=1)]
    side: Annotated[Side | None, Field(exclude_if=lambda side: side is None)] = None
    """Where it is not the intent's own."""
    leaves: Annotated[Positive | None, Field(exclude_if=lambda quantity: quantity is None)] = None
    """So much leaves at the target, and the rest runs on behind a trailing stop. None: all of it leaves."""


class TradeIntent(Wire):
    """What is about to be done about one ruling. Stored with the ruling before anything is sent."""

    id: Id
    """From the decision: two identical decisions make one intent."""
    decision: Id
    """The run that ruled, or the request of a person."""
    kind: IntentKind
    symbol: Symbol
    mode: Mode
    side: Side
    """Of the position."""
    style: Style
    legs: tuple[IntentLeg, ...]
    """Empty for a close: everything there is."""
    hold: Annotated[str | None, Field(pattern=r"^[0-9]{1,3}[hdw]$")] = None
    valid_until: Timestamp
    mark: Positive
    """In dollars, as the ruling saw it."""
    atr: NotNegative
    """ATR14 of 1h bars in dollars."""
    exploration: bool = False
    judge: JudgeKind | None = None
    family: RegimeFamily | None = None
    edge: float | None = None
    """As claimed, for the record of closed trades."""
    llm_cost_usd: NotNegative = Decimal(0)
    reason: ExitReason | None = None
    """Of a close, and of a cut that a smaller target asked for."""
    mandate: Hex64 | None = None
    """The mandate a live order is placed under; None on paper."""
    left_out: Annotated[str, Field(max_length=600, exclude_if=lambda text: not text)] = ""
    """Legs of the ruling that are not ordered, and why."""
    sleeve: SleeveOf = DEBATE
    take_at: Annotated[Timestamp | None, Field(exclude_if=lambda moment: moment is None)] = None
    """Of a change to a target: its orders wait at the touch until then, what is left is taken. None: of no target."""
    hedge_lot: Annotated[Positive | None, Field(exclude_if=lambda lot: lot is None)] = None
    """The legs hedge each other, the first bought and the other sold short, and differ by no more than this; they have
    no stop. None: they do not."""

    def side_of(self, leg: IntentLeg) -> Side:
        return leg.side or self.side


class TradeSummary(Wire):
    """A trade from flat to flat at one exchange. Money in the exchange's own currency."""

    trade: Id
    intent: Id
    """That opened it; a manual position's own id."""
    decision: Id | None
    exchange: Venue
    symbol: Symbol
    side: Side
    mode: Mode | None
    opened: Timestamp
    closed: Timestamp
    quantity: Positive
    """The most that was held."""
    entry: Positive
    exit: Positive
    """Averages over quantity."""
    stop: Positive | None
    target: Positive | None
    """As first set: what R is counted by."""
    gross_pnl: Decimal
    fees: Decimal
    funding: Decimal
    net_pnl: Decimal
    reason: ExitReason
    exploration: bool
    judge: JudgeKind | None
    family: RegimeFamily | None
    edge: float | None
    llm_cost_usd: NotNegative = Decimal(0)
    sleeve: SleeveOf = DEBATE

    @property
    def hedged(self) -> bool:
        """Whether it was a leg of a hedged position: only those are opened without a stop."""
        return self.stop is None and self.intent != self.trade


class Protection(StrEnum):
    """What may stop the desk from taking new risk. Each fails closed."""

    MAX_OPEN_TRADES = "max_open_trades"
    DAILY_LOSS = "daily_loss"
    MAX_DRAWDOWN = "max_drawdown"
    STOPLOSS_GUARD = "stoploss_guard"
    COOLDOWN = "cooldown"
    STALE_DATA = "stale_data"
    JUDGE_FALLBACK = "judge_fallback"
    KILL_SWITCH = "kill_switch"
    PAUSED = "paused"
    RECONCILIATION = "reconciliation"
    RESTORED = "restored"  # of the whole home: it is in no log, and `home unlock` lifts it


class MandatedSleeve(Wire):
    """A sleeve that may trade with money: how much of the account, and how far its equity may fall from its high."""

    name: SleeveName
    share: Annotated[Positive, Field(le=1)]
    max_drawdown: Annotated[Positive, Field(le=1)]


class Mandate(Wire):
    """What the owner lets a scheduled desk do with money. Signed; every live order cites its hash."""

    symbols: tuple[Symbol, ...]
    venues: tuple[Venue, ...]
    max_margin_per_trade_usd: Positive
    max_margin_per_day_usd: Positive
    max_daily_loss_usd: Positive
    stops: Literal["venue", "watched"] = "venue"
    """`watched`: the desk may trade where the venue holds no stop orders."""
    judge_fallback: bool = False
    """Whether rules may open trades when the Judge's model failed."""
    policy: Policy = "record"
    """`seed`: trades may be opened by the Judge's own odds alone."""
    sleeves: Annotated[tuple[MandatedSleeve, ...], Field(exclude_if=lambda sleeves: not sleeves)] = ()
    """Besides the debate, which needs a record of its own."""
    granted: Timestamp
    expires: Timestamp
    """At most thirty days later."""

    @property
    def shares(self) -> SleeveShares:
        """Of all sleeves: the debate has what the others leave, where it is not named; `lp-hedge` has no share.
        `UsageError` where they do not add up."""
        named = {sleeve.name: sleeve.share for sleeve in self.sleeves if sleeve.name != LP_HEDGE}
        left = 1 - sum(named.values(), Decimal(0))
        return check_shares(named if DEBATE in named or left <= 0 else {**named, DEBATE: left})


# -- events


class AccountOpened(AccountEvent):
    """What it was opened with by venue, in the venue's currency. A venue may be added later."""

    kind: Literal["account_opened"] = "account_opened"
    cash: dict[Venue, NotNegative] = Field(default_factory=dict)
    usd: Annotated[NotNegative | None, Field(exclude_if=lambda amount: amount is None)] = None
    krw: Annotated[NotNegative | None, Field(exclude_if=lambda amount: amount is None)] = None
    """In records of before there was a third venue."""

    @property
    def balances(self) -> dict[Venue, Decimal]:
        older = zip(DEFAULT_VENUES, (self.usd, self.krw), strict=True)
        return self.cash or {venue: amount for venue, amount in older if amount is not None}


class ClockSet(AccountEvent):
    """Which clock the account goes by, and the moment it has come to though nothing else happened then."""

    kind: Literal["clock_set"] = "clock_set"
    recorded: bool
    """Recorded time (`zuno trade start --speed max`), else the wall's clock."""


class IntentStored(AccountEvent):
    """Ruling and intent in one entry."""

    kind: Literal["intent_stored"] = "intent_stored"
    intent: TradeIntent
    ruling: Ruling | None
    """None where a person asked."""


class IntentEnded(AccountEvent):
    kind: Literal["intent_ended"] = "intent_ended"
    intent: Id
    state: Literal["done", "partial", "refused", "expired", "undone"]
    reason: Reason = ""


class OrderPlanned(AccountEvent):
    """Stored before the order is sent."""

    kind: Literal["order_planned"] = "order_planned"
    intent: Id
    purpose: Literal["entry", "stop", "target", "exit"]
    order: OrderRequest
    expires: Timestamp | None = None
    """When the desk cancels what is not filled."""
    lot: Annotated[Positive | None, Field(exclude_if=lambda lot: lot is None)] = None
    """Of a sale at a spot exchange: less than this, left of a position, cannot be sold; the trade ends without it."""


class OrderUpdated(AccountEvent):
    """The venue's word on an order that changed."""

    kind: Literal["order_updated"] = "order_updated"
    order: Order


class OrderLost(AccountEvent):
    """An order that the venue never had, or does not know any more: it is not sent again under its id."""

    kind: Literal["order_lost"] = "order_lost"
    client_id: ClientId
    reason: Reason


class FillBooked(AccountEvent):
    kind: Literal["fill_booked"] = "fill_booked"
    fill: Fill
    left_out: Annotated[Reason, Field(exclude_if=lambda why: not why)] = ""
    """Why nothing of it could be booked: it is known, and is not asked for again."""


class FundingBooked(AccountEvent):
    kind: Literal["funding_booked"] = "funding_booked"
    payment: FundingPayment


class LevelsSet(AccountEvent):
    """Stop, target and longest hold of the open trade in a symbol at an exchange, whatever was set before."""

    kind: Literal["levels_set"] = "levels_set"
    exchange: Venue
    symbol: Symbol
    stop: Positive | None
    target: Positive | None
    hold_until: Timestamp | None
    by: Literal["ruling", "owner", "trail"]
    """`trail`: what leaves at the target is gone, and the stop of the rest follows the price."""
    trade: Id | None = None
    """The trade they are of; None in entries of before it was written down."""


class TradeClosed(AccountEvent):
    """Appended by whoever closes, with the last fill: what is learned starts here."""

    kind: Literal["trade_closed"] = "trade_closed"
    summary: TradeSummary


class LockSet(AccountEvent):
    """New risk is refused: of one symbol, or of the whole desk."""

    kind: Literal["lock_set"] = "lock_set"
    protection: Protection
    symbol: Symbol | None
    until: Timestamp | None
    """None: until somebody lifts it."""
    reason: Reason


class LockLifted(AccountEvent):
    kind: Literal["lock_lifted"] = "lock_lifted"
    protection: Protection
    symbol: Symbol | None
    reason: Reason = ""


class MandateGranted(AccountEvent):
    kind: Literal["mandate_granted"] = "mandate_granted"
    mandate: Mandate
    hash: Hex64


class MandateRevoked(AccountEvent):
    kind: Literal["mandate_revoked"] = "mandate_revoked"
    hash: Hex64


class ManualChange(AccountEvent):
    """A person's entry by hand: opened, closed, rested, cancelled, liquidity."""

    kind: Literal["manual"] = "manual"
    change: Annotated[BookChange, Field(discriminator="kind")]


class Adopted(AccountEvent):
    """A difference to the venue that reconciliation settled, and how."""

    kind: Literal["adopted"] = "adopted"
    exchange: Venue
    what: Reason
    cash: Decimal = Decimal(0)
    """In the exchange's currency, where the venue's cash is not ours."""
    drift: Annotated[bool, Field(exclude_if=lambda drift: not drift)] = False
    """So small that the desk adopted it by itself: below zero it is a loss (`drift`). Else the owner's money, as in
    records of before (`adjustments`)."""


class MarginMoved(AccountEvent):
    """Money went from one venue's cash to another's, and there into the margin of what is held of a symbol."""

    kind: Literal["margin_moved"] = "margin_moved"
    key: Id
    """The intent it was moved for: it is moved once."""
    source: Venue
    target: Venue
    symbol: Symbol
    amount: Positive


class SleevesSet(AccountEvent):
    """What share of its capital each sleeve of the account is to have, whatever was set before; they add up to 1. The
    debate's is what is left of them."""

    kind: Literal["sleeves_set"] = "sleeves_set"
    shares: Annotated[dict[SleeveName, Positive], Field(min_length=1)]


class DayMarked(AccountEvent):
    """What an account with sleeves was worth when the desk first looked on a day. A core holds for months: what a day
    lost is counted from here, and not from where its positions were opened."""

    kind: Literal["day_marked"] = "day_marked"
    equity_usd: Decimal
    unrealised_usd: Decimal
    results_usd: Annotated[dict[SleeveName, Decimal], Field(exclude_if=lambda results: not results)] = Field(
        default_factory=dict
    )
    """What each sleeve had earned since it was given money, booked or open."""


class SleeveTransferred(AccountEvent):
    """Cash changed its sleeve. At the venues nothing moved."""

    kind: Literal["sleeve_transferred"] = "sleeve_transferred"
    key: Id
    """Of the transfer: it is made once."""
    source: SleeveName
    target: SleeveName
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3,5}$")]
    amount: Positive


class CashMoved(AccountEvent):
    """Cash went from one venue's wallet to another's of the same currency."""

    kind: Literal["cash_moved"] = "cash_moved"
    key: Id
    source: Venue
    target: Venue
    amount: Positive


class SleevesCrossed(AccountEvent):
    """One sleeve sold to another at the mark, and nothing was ordered at the venue."""

    kind: Literal["sleeves_crossed"] = "sleeves_crossed"
    key: Id
    """It happens once."""
    exchange: Venue
    symbol: Symbol
    seller: SleeveName
    buyer: SleeveName
    quantity: Positive
    price: Positive
    intents: dict[SleeveName, Id] = Field(default_factory=dict)
    """What each of them wanted, where it did not hold the symbol before."""


TradeEvent = Annotated[
    AccountOpened
    | IntentStored
    | IntentEnded
    | OrderPlanned
    | OrderUpdated
    | OrderLost
    | FillBooked
    | FundingBooked
    | LevelsSet
    | TradeClosed
    | LockSet
    | LockLifted
    | MandateGranted
    | MandateRevoked
    | ManualChange
    | Adopted
    | MarginMoved
    | SleevesSet
    | DayMarked
    | SleeveTransferred
    | SleevesCrossed
    | CashMoved
    | ClockSet,
    Field(discriminator="kind"),
]


class TradeEntry(Wire):
    """Events of one account that were written together. They are numbered from 1 without a gap."""

    account: Annotated[str, Field(min_length=1, max_length=200)]
    first: Annotated[int, Field(ge=1)]
    events: Annotated[tuple[TradeEvent, ...], Field(min_length=1)]


def paper_account(origin: str, name: str = "") -> str:
    """The account of paper trading in a market, or one of several there. `UsageError` for what is no name."""
    if name:
        check_account_name(name)
    return f"{PAPER_WORD}{origin}" if name in ("", PAPER_ACCOUNT) else f"{PAPER_WORD}{origin}:{name}"


def account_name(origin: str, name: str | None) -> str:
    """The whole name of what `--account` says; None: the paper account of the market that is read."""
    return name if name is not None and account_mode(name) != "paper" else paper_account(origin, name or "")


def account_word(account: str) -> str:
    """What a chat's command says for an account: `live`, `demo`, `paper:NAME`; nothing for a market's own on paper."""
    if account_mode(account) != "paper":
        return account
    _, _, name = account.removeprefix(PAPER_WORD).partition(":")
    return f"{PAPER_WORD}{name}" if name else ""


DAY_SUMMARY: Final = "trading_day"
"""The kind of the journal's entries."""


class DaySummary(Wire):
    account: str
    day: int
    """When it began, in Unix milliseconds."""
    trades: int
    net: dict[str, float]
    """By currency, as all that follow."""
    fees: dict[str, float]
    funding: dict[str, float]
    cash: dict[str, float]
    open_trades: int

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, content: Any) -> Any:
        return read_older_day(content)
