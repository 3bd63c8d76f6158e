"""The exam of `TradeRecord`: whoever tells how trades came out sits it unchanged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal as D

import pytest

from tests.wire.trading_account import MemoryTradeRecord
from zuno.adapters.account.trade_log import LoggedTradeRecord, MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import JudgeKind, RegimeFamily, Style
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.model.orders import Fill, OrderRequest, OrderSide, OrderType
from zuno.trading.model.trade_events import (
    ExitReason,
    FillBooked,
    IntentKind,
    IntentLeg,
    IntentStored,
    OrderPlanned,
    TradeClosed,
    TradeEvent,
    TradeIntent,
    paper_account,
)
from zuno.trading.ports.trade_log import TradeRecord
from zuno.trading.rules.trading_book import TradingBook

HERE, THERE = "SYNTHETIC seed 1", "SYNTHETIC seed 2"
Open = Callable[[Mapping[str, Sequence[ClosedTrade]]], TradeRecord]


@pytest.fixture(params=["memory", "log"])
def record_of(request: pytest.FixtureRequest) -> Open:
    """A record in which these trades were closed."""
    return MemoryTradeRecord if request.param == "memory" else logged


def logged(
    trades: Mapping[str, Sequence[ClosedTrade]], counts: Callable[[str], Awaitable[bool]] | None = None
) -> LoggedTradeRecord:
    """The same trades as an account's fills."""
    log = MemoryTradeLog()
    for origin, several in trades.items():
        book, events = TradingBook(), list[TradeEvent]()

        def write(event: TradeEvent, book: TradingBook = book, events: list[TradeEvent] = events) -> None:
            book.apply(event)
            events.append(event)

        for number, trade in enumerate(several):
            write(IntentStored(at=trade.opened, intent=intent_of(trade, number), ruling=None))
            exit_price = 100 + D(str(trade.exit_pct))
            for side, price, at in (
                (OrderSide.BUY, D(100), trade.opened),
                (OrderSide.SELL, exit_price, trade.closed),
            ):
                client_id = f"{number}{side}"
                request = OrderRequest(
                    client_id=client_id,
                    exchange=Venue("BINANCE"),
                    symbol=Symbol("BTCUSDT"),
                    side=side,
                    type=OrderType.MARKET,
                    quantity=D(1),
                )
                write(OrderPlanned(at=at, intent=f"int_{number}", purpose="entry", order=request))
                fill = Fill(
                    id=client_id,
                    client_id=client_id,
                    exchange=Venue("BINANCE"),
                    symbol=Symbol("BTCUSDT"),
                    side=side,
                    quantity=D(1),
                    price=price,
                    fee=D(0),
                    maker=False,
                    at=at,
                )
                write(FillBooked(at=at, fill=fill))
            (ended,) = book.finished.values()
            write(TradeClosed(at=trade.closed, summary=book.summarise(ended, ExitReason.TARGET)))
        log._logs[paper_account(origin)] = events
    return LoggedTradeRecord(log, counts)


def intent_of(trade: ClosedTrade, number: int) -> TradeIntent:
    leg = IntentLeg(exchange=Venue("BINANCE"), quantity=D(1), entry=D(100), stop=D(98), target=D(104), leverage=1)
    return TradeIntent(
        id=f"int_{number}",
        decision=f"run_{number}",
        kind=IntentKind.OPEN,
        symbol=Symbol("BTCUSDT"),
        mode=Mode.SWING,
        side=Side.LONG,
        style=Style.MOMENTUM_SNIPER,
        legs=(leg,),
        valid_until=trade.closed,
        mark=D(100),
        atr=D(1),
        judge=trade.judge,
        family=trade.family,
        edge=trade.edge,
    )


def closed(at: int, exit_pct: float = 4.0) -> ClosedTrade:
    return ClosedTrade(
        opened=Millis(at - 1),
        closed=Millis(at),
        judge=JudgeKind.RULES,
        family=RegimeFamily.RANGE,
        edge=0.1,
        profit_pct=4.0,
        loss_pct=2.0,
        exit_pct=exit_pct,
    )


async def test_a_record_nobody_wrote_holds_none(record_of: Open) -> None:
    assert await record_of({}).closed_trades(HERE, Millis(2**50)) == ()


async def test_trades_come_back_in_the_order_they_were_closed(record_of: Open) -> None:
    trades = (closed(10), closed(20, -2.0), closed(30, 0.5))
    assert await record_of({HERE: trades}).closed_trades(HERE, Millis(99)) == trades


async def test_what_is_told_of_a_moment_was_closed_strictly_before(record_of: Open) -> None:
    record = record_of({HERE: (closed(10), closed(20))})
    for moment, count in ((10, 0), (11, 1), (20, 1), (21, 2)):
        assert len(await record.closed_trades(HERE, Millis(moment))) == count


async def test_a_later_trade_alters_no_earlier_answer(record_of: Open) -> None:
    fewer, more = (record_of({HERE: trades}) for trades in ((closed(10),), (closed(10), closed(20))))
    assert await fewer.closed_trades(HERE, Millis(20)) == await more.closed_trades(HERE, Millis(20))


async def test_another_markets_trades_are_not_in_it(record_of: Open) -> None:
    record = record_of({HERE: (closed(10),), THERE: (closed(11),)})
    assert await record.closed_trades(HERE, Millis(99)) == (closed(10),)


async def test_runs_of_a_recorded_past_do_not_count_where_real_time_is_asked_for() -> None:
    async def was_live(run: str) -> bool:
        return run == "run_1"

    record = logged({HERE: (closed(10), closed(20), closed(30))}, was_live)
    assert await record.closed_trades(HERE, Millis(99)) == (closed(20),)
