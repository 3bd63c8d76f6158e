"""A trading account as it is shown: status, positions, orders, fills, trades, ledger, balances, profit, locks, mandate.

Money in an exchange's own currency unless a name says USD. What is not known is null.
"""

from __future__ import annotations

from typing import Literal

from zuno.kernel.numbers_text import currency_text, multiple_text
from zuno.kernel.view import ForeignText, View
from zuno.trading.model.orders import ExchangeAnswer
from zuno.trading.service.origin_view import OriginView
from zuno.trading.service.trade_desk import ProtectionView


class MarkView(View):
    """A price that positions are valued at, in the exchange's own currency."""

    symbol: str
    exchange: str
    price: float
    source: str
    """Series of the store, or the exchange itself."""
    as_of: str
    age_seconds: int


class AccountView(OriginView):
    """What every answer about an account says. Cash, fees and what is closed are the account's own log at `asOf`;
    what is open is valued at `marks`."""

    account: str
    mode: Literal["paper", "demo", "live"]
    as_of: str
    recorded: bool = False
    """Whether the account is in recorded time: `asOf` is its own last moment, and the market may go on after it."""
    marks: tuple[MarkView, ...] = ()
    protections: tuple[ProtectionView, ...]
    exchanges: tuple[ExchangeAnswer, ...] | None = None
    """What the exchanges of a live or demo account answered; null: none was asked."""
    notes: tuple[ForeignText, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing is held but what the log has: on paper always, else by the exchanges' own word."""
        return self.mode == "paper" or not (self.exchanges is None or any(map(ExchangeAnswer.describe, self.exchanges)))


class ExchangeBalanceView(View):
    """What is at one exchange, in its own currency."""

    exchange: str
    currency: str
    cash: float
    """That is not margin."""
    margin: float
    pending_margin: float
    inventory: float
    """Coins at cost, of a spot exchange."""
    unrealised: float | None
    equity: float | None
    free: float | None
    """What a new position may use; below zero so much is missing."""


class ExposureView(View):
    """A symbol's part of the risk book: positions, pending entries and LP inventory. Above zero is long."""

    symbol: str
    positions: float
    pending: float
    lp: float
    delta: float
    """In the base currency."""
    delta_usd: float | None
    gross_usd: float | None


class RiskBookView(View):
    """Trading and liquidity positions taken together, as the leverage guard counts them."""

    rows: tuple[ExposureView, ...]
    delta_usd: float | None
    gross_usd: float | None
    equity_usd: float | None
    leverage: float | None
    max_leverage: float


class MandateView(View):
    hash: str
    symbols: tuple[str, ...]
    venues: tuple[str, ...]
    max_margin_per_trade_usd: float
    max_margin_per_day_usd: float
    max_daily_loss_usd: float
    stops: str
    judge_fallback: bool
    granted: str
    expires: str
    active: bool


class TradeOrderView(View):
    """An order: as it was planned, and as the exchange has it."""

    id: str
    venue_id: str | None
    exchange: str
    symbol: str
    side: str
    type: str
    purpose: str
    quantity: float
    filled: float
    price: float | None
    """Limit or trigger."""
    average_price: float | None
    currency: str
    time_in_force: str
    reduce_only: bool
    status: str
    planned: str
    expires: str | None
    intent: str | None
    decision: str | None
    reason: ForeignText


class ManualOrderView(View):
    """An order that a person wrote down in the paper book."""

    id: str
    exchange: str
    symbol: str
    side: str
    quantity: float
    price: float
    currency: str


class TradePositionView(View):
    id: str
    symbol: str
    exchange: str
    side: str
    quantity: float
    entry: float
    leverage: float
    currency: str
    margin: float
    mark: float | None
    unrealised: float | None
    """Before fees."""
    gain_pct: float | None
    """Of the entry, before leverage."""
    r: float | None
    """Unrealised PnL over the risk at the first stop."""
    stop: float | None
    target: float | None
    liquidation: float | None
    """The mark at which the exchange takes the position; null where nothing is borrowed."""
    hold_until: str | None
    opened: str
    fees: float
    funding: float
    manual: bool
    exploration: bool
    decision: str | None
    stop_order: str | None
    target_order: str | None
    """Client ids of the protective orders; null where the desk watches the level itself."""
    orders: tuple[str, ...]
    """Client ids of every open order of this position."""


class TradeStatusView(AccountView):
    """The account in one screen."""

    running: ForeignText | None
    """The process that trades here, where one does."""
    equity_usd: float | None
    unrealised_usd: float | None
    net_pnl_usd: float
    """Of closed trades."""
    today_usd: float
    """Of trades that were closed since midnight UTC."""
    open_trades: int
    open_orders: int
    closed_trades: int
    unknown: ForeignText | None
    """Why equity cannot be told."""
    risk: RiskBookView
    mandate: MandateView | None


class TradePositionsView(AccountView):
    positions: tuple[TradePositionView, ...]
    unrealised_usd: float | None


class TradeOrdersView(AccountView):
    orders: tuple[TradeOrderView, ...]
    manual: tuple[ManualOrderView, ...]


class FillView(View):
    id: str
    order: str
    exchange: str
    symbol: str
    side: str
    quantity: float
    price: float
    fee: float
    currency: str
    maker: bool
    liquidation: bool
    at: str


class FillsView(AccountView):
    """Newest first."""

    fills: tuple[FillView, ...]
    total: int


class ClosedTradeView(View):
    id: str
    symbol: str
    exchange: str
    side: str
    mode: str | None
    quantity: float
    entry: float
    exit: float
    currency: str
    gross_pnl: float
    fees: float
    funding: float
    net_pnl: float
    r: float | None
    exit_reason: str
    opened: str
    closed: str
    duration_hours: float
    exploration: bool
    decision: str | None


class TradesView(AccountView):
    """Newest first."""

    trades: tuple[ClosedTradeView, ...]
    total: int


class LedgerLineView(View):
    account: str
    amount: str
    """A debit is above zero."""


class PostingView(View):
    number: int
    at: str
    exchange: str
    currency: str
    what: ForeignText
    lines: tuple[LedgerLineView, ...]


class LedgerBalancesView(View):
    """Exact, as decimal strings."""

    exchange: str
    currency: str
    balances: dict[str, str]
    debits: str
    credits: str
    assets: str
    """Equity with positions at cost."""
    balanced: bool


class LedgerView(AccountView):
    """Postings newest first."""

    ledgers: tuple[LedgerBalancesView, ...]
    postings: tuple[PostingView, ...]
    total: int


class TradeBalanceView(AccountView):
    purses: tuple[ExchangeBalanceView, ...]
    equity_usd: float | None
    unknown: ForeignText | None


class ProfitRowView(View):
    """Figures over closed trades, in USD."""

    name: str
    trades: int
    wins: int
    losses: int
    win_rate: float | None
    net_pnl: float
    gross_pnl: float
    profit_factor: float | None
    expectancy_usd: float | None
    """Mean net PnL of a trade: larger trades weigh more."""
    expectancy_r: float | None
    """Mean net PnL over the risk at the first stop, of the `rTrades` that had one: each counts alike."""
    r_trades: int
    mean_duration_hours: float | None
    fees: float
    funding: float
    model_cost: float
    best: float | None
    worst: float | None
    unconverted: int


class DrawdownView(AccountView):
    """The deepest fall of the account's equity, open positions included, by its share of the peak."""

    max_drawdown_usd: float | None
    max_drawdown_pct: float | None
    peak_at: str | None
    trough_at: str | None


class ProfitView(DrawdownView):
    by: str | None
    whole: ProfitRowView
    groups: tuple[ProfitRowView, ...]


class EquityPointView(View):
    at: str
    equity_usd: float
    drawdown_pct: float | None


class PerformanceView(DrawdownView):
    """Equity of the account at the closes that are stored, and how far it fell."""

    file: str | None
    """Where the picture is."""
    whole: ProfitRowView
    start_usd: float | None
    equity_usd: float | None
    return_pct: float | None
    points: tuple[EquityPointView, ...]


class LocksView(AccountView):
    """Protections that stand now; the same as `protections`, for whoever asked for nothing else."""


class MandateStateView(AccountView):
    mandate: MandateView | None
    said: str


class ActionView(AccountView):
    """What was done, and the positions and orders that are left."""

    said: tuple[ForeignText, ...]
    positions: tuple[TradePositionView, ...]
    orders: tuple[TradeOrderView, ...]


# -- in words


def describe_expectancy(row: ProfitRowView) -> str:
    """In money and in R, and what each is the mean of: a large loss and small gains may give them different signs."""
    r = f"{multiple_text(row.expectancy_r)} a trade of the {row.r_trades} with a stop, each counted alike"
    return f"{currency_text(row.expectancy_usd)} a trade" + ("" if row.expectancy_r is None else f"; {r}")


def describe_drawdown(view: DrawdownView) -> str:
    if not view.max_drawdown_usd:
        return "none"
    share = "" if view.max_drawdown_pct is None else f" ({view.max_drawdown_pct:.2f} %)"
    return f"{currency_text(view.max_drawdown_usd)}{share}, {view.peak_at} to {view.trough_at}"
