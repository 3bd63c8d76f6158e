"""What a close or a kill ends, and what became of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from zuno.kernel.errors import UsageError
from zuno.trading.model.orders import ExchangeAnswer
from zuno.trading.model.trade_events import TradeSummary
from zuno.trading.rules.book_state import OpenTrade
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.account_view import TradePositionView

H = TypeVar("H", OpenTrade, TradePositionView)


@dataclass(frozen=True, slots=True)
class OpenRisk:
    """What is open in an account, as it is written down, and what its exchanges say beside that."""

    account: str
    mode: Literal["paper", "demo", "live"]
    orders: int | None
    trades: int | None
    """None: the log cannot be read."""
    exchanges: tuple[ExchangeAnswer, ...] | None
    notes: tuple[str, ...]

    @property
    def ends(self) -> str:
        """What a kill does, in words."""
        orders, trades = ("all" if count is None else count for count in (self.orders, self.trades))
        return f"cancels {orders} orders, closes {trades} positions at the market and locks the desk"


def find_closing(held: Iterable[H], which: str) -> tuple[H, ...]:
    """What a close ends: with a trade of the desk, whatever its sleeve holds of its symbol at other exchanges."""
    name, trades = which.strip().lower(), tuple(held)
    named = next((trade for trade in trades if trade.id.lower() == name), None)
    if named is None:
        return tuple(trade for trade in trades if name in ("all", trade.symbol.lower()))
    if named.manual:
        return (named,)
    place = named.symbol, named.sleeve
    return tuple(trade for trade in trades if (trade.symbol, trade.sleeve) == place and not trade.manual)


def find_only(held: Iterable[OpenTrade], symbol: str) -> OpenTrade | None:
    """The one trade of a symbol; `UsageError` where there are several."""
    trades = [trade for trade in held if trade.symbol.lower() == symbol.strip().lower()]
    if len(trades) > 1:
        raise UsageError(f"More than one position of {trades[0].symbol} is open: {', '.join(t.id for t in trades)}.")
    return trades[0] if trades else None


def describe_trade(trade: OpenTrade | TradeSummary) -> str:
    return f"{trade.side} {trade.quantity.normalize():f} {trade.symbol.base} at {trade.exchange}"


def describe_closed(before: TradingBook, after: TradingBook, which: str) -> tuple[str, ...]:
    """What became of what was held and ordered; an exchange may need a while."""
    wanted = {trade.id for trade in find_closing(before.trades.values(), which)}
    said: list[str] = []
    for trade in after.closed[len(before.closed) :]:
        exit_price, net = (f"{float(number):,.2f}" for number in (trade.exit, trade.net_pnl))
        came = f"is closed at {exit_price}: {net} {trade.exchange.currency} net"
        said.append(f"{trade.trade} ({describe_trade(trade)}) {came}")
    gone = [id for id in (*before.open_orders, *before.resting) if id not in {**after.open_orders, **after.resting}]
    said += [f"{len(gone)} orders are over"] if gone else []
    return (*said, *(f"{id} is not closed yet; `zuno trade positions` shows it" for id in after.trades if id in wanted))
