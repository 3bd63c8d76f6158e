"""An account of any length: trades at both exchanges with their intents, orders, fills and funding, some by hand, and
what else happens to one, in entries as the desk writes them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal as D
from random import Random

from tests.wire.accounts import open_account
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding, LiquidityStated, PositionClosed, PositionOpened
from zuno.trading.model.cycle import JudgeKind, Style
from zuno.trading.model.market import HOUR_MS, Mode, Side
from zuno.trading.model.orders import (
    Fill,
    FundingPayment,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
)
from zuno.trading.model.trade_events import (
    ExitReason,
    FillBooked,
    FundingBooked,
    IntentEnded,
    IntentKind,
    IntentLeg,
    IntentStored,
    LevelsSet,
    LockLifted,
    LockSet,
    Mandate,
    MandateGranted,
    ManualChange,
    OrderLost,
    OrderPlanned,
    OrderUpdated,
    Protection,
    TradeClosed,
    TradeEvent,
    TradeIntent,
)
from zuno.trading.rules.trading_book import TradingBook

START = 1_700_000_000_000


def list_entries(count: int, seed: int = 1, start: int = START, step_ms: int = HOUR_MS) -> Iterator[list[TradeEvent]]:
    """Entries of at least `count` events."""
    chance, book, at, number = Random(seed), TradingBook(), start, 0
    opened = open_account(at=Millis(at), usd=D(20_000), krw=D(20_000_000))
    book.apply(opened)
    yield [opened]
    while book.count < count:
        number += 1
        exchange = Venue("UPBIT") if chance.random() < 0.3 else Venue("BINANCE")
        for make in (_make_trade, _make_aside):
            yield from make(book, exchange, number, at, chance)
        at += step_ms


def _make_trade(book: TradingBook, exchange: Venue, number: int, at: int, chance: Random) -> Iterator[list[TradeEvent]]:
    symbol = chance.choice([*DEFAULT_SYMBOLS])
    won = exchange is Venue("UPBIT")
    price = D(chance.randint(50_000, 70_000)) * (1_400 if won else 1)
    quantity = D(chance.randint(1, 9)) / 1_000
    leg = IntentLeg(
        exchange=exchange, quantity=quantity, entry=price, stop=price * D("0.97"), target=price * D("1.06"),
        leverage=1 if won else 3,
    )  # fmt: skip
    intent = TradeIntent(
        id=f"int_{number}", decision=f"run_{number:016x}", kind=IntentKind.OPEN, symbol=symbol, mode=Mode.SWING,
        side=Side.LONG, style=Style.MOMENTUM_SNIPER, legs=(leg,), hold="5d", valid_until=Millis(at + HOUR_MS),
        mark=price, atr=D(500), judge=chance.choice([None, *JudgeKind]), edge=chance.random(),
    )  # fmt: skip

    def request(purpose: str, side: OrderSide) -> OrderRequest:
        return OrderRequest(
            client_id=f"zn{number:06d}{purpose}", exchange=exchange, symbol=symbol, side=side, type=OrderType.LIMIT,
            quantity=quantity, price=price, reduce_only=purpose != "entry", leverage=leg.leverage,
        )  # fmt: skip

    entry, stop = request("entry", OrderSide.BUY), request("stop", OrderSide.SELL)

    def update(order: OrderRequest, status: OrderStatus, filled: D, later: int) -> OrderUpdated:
        told = Order(
            request=order, venue_id=f"v{order.client_id}", status=status, filled=filled, updated=Millis(at + later),
            average_price=price if filled else None,
        )  # fmt: skip
        return OrderUpdated(at=Millis(at + later), order=told)

    def fill(order: OrderRequest, size: D, paid: D, later: int) -> FillBooked:
        booked = Fill(
            id=f"{order.client_id}{later}", client_id=order.client_id, exchange=exchange, symbol=symbol,
            side=order.side, quantity=size, price=paid, fee=size * paid / 2_000, maker=True, at=Millis(at + later),
        )  # fmt: skip
        return FillBooked(at=Millis(at + later), fill=booked)

    first: list[TradeEvent] = [
        IntentStored(at=Millis(at), intent=intent, ruling=None),
        OrderPlanned(at=Millis(at), intent=intent.id, purpose="entry", order=entry),
    ]
    yield _apply(book, first)
    if chance.random() < 0.1:
        lost = OrderLost(at=Millis(at + 1), client_id=entry.client_id, reason="the exchange does not know it")
        ended = IntentEnded(at=Millis(at + 1), intent=intent.id, state="refused", reason="lost")
        yield _apply(book, [lost, ended])
        return
    part = quantity / 2
    yield _apply(book, [update(entry, OrderStatus.OPEN, D(0), 2)])
    yield _apply(book, [fill(entry, part, price, 3), update(entry, OrderStatus.OPEN, part, 3)])
    yield _apply(book, [fill(entry, part, price + 10, 4), update(entry, OrderStatus.FILLED, quantity, 4)])
    planned = OrderPlanned(at=Millis(at + 5), intent=intent.id, purpose="stop", order=stop)
    yield _apply(book, [planned, update(stop, OrderStatus.OPEN, D(0), 5)])
    yield _apply(book, [IntentEnded(at=Millis(at + 6), intent=intent.id, state="done")])
    if not won and chance.random() < 0.5:
        amount = D(chance.randint(-900, 900)) / 1_000
        paid = FundingPayment(id=f"p{number}", exchange=exchange, symbol=symbol, amount=amount, at=Millis(at + 7))
        yield _apply(book, [FundingBooked(at=Millis(at + 7), payment=paid)])
    moved = LevelsSet(
        at=Millis(at + 8), exchange=exchange, symbol=symbol, stop=price * D("0.98"), target=None, hold_until=None,
        by="owner",
    )  # fmt: skip
    yield _apply(book, [moved])
    out = price + chance.randint(-2_000, 3_000)
    events = _apply(book, [fill(stop, quantity, out, 9), update(stop, OrderStatus.FILLED, quantity, 9)])
    for trade in [*book.finished.values()]:
        summary = book.summarise(trade, ExitReason.STOP)
        events += _apply(book, [TradeClosed(at=Millis(at + 9), summary=summary)])
    yield events


def _make_aside(book: TradingBook, exchange: Venue, number: int, at: int, chance: Random) -> Iterator[list[TradeEvent]]:
    """What happens now and then."""
    lot = chance.randint(0, 9)
    later = Millis(at + 20)
    if lot == 0:
        until = None if chance.random() < 0.5 else Millis(at + HOUR_MS)
        yield _apply(
            book, [LockSet(at=later, protection=Protection.COOLDOWN, symbol=None, until=until, reason="three stops")]
        )
    elif lot == 1:
        yield _apply(book, [LockLifted(at=later, protection=Protection.COOLDOWN, symbol=None)])
    elif lot == 2 and not any(trade.manual for trade in book.trades.values()):
        held = Holding(
            id=f"pos_{number}", symbol=Symbol("BTCUSDT"), exchange=Venue("BINANCE"), side=Side.LONG, quantity=0.01,
            entry=60_000.5, leverage=2.0, opened=later, stop=None, take=None, hold=None,
        )  # fmt: skip
        yield _apply(book, [ManualChange(at=later, change=PositionOpened(at=later, position=held, fee=0.25))])
    elif lot == 3:
        for trade in [trade for trade in book.trades.values() if trade.manual]:
            closed = PositionClosed(at=later, id=trade.id, price=61_000.0, fee=0.25)
            yield _apply(book, [ManualChange(at=later, change=closed)])
    elif lot == 4:
        stated = LiquidityStated(at=later, symbol=Symbol("ETHUSDT"), quantity=chance.random())
        yield _apply(book, [ManualChange(at=later, change=stated)])
    elif lot == 5:
        mandate = Mandate(
            symbols=(Symbol("BTCUSDT"),), venues=(exchange,), max_margin_per_trade_usd=D(100),
            max_margin_per_day_usd=D(300), max_daily_loss_usd=D(50), granted=later, expires=Millis(later + HOUR_MS),
        )  # fmt: skip
        yield _apply(book, [MandateGranted(at=later, mandate=mandate, hash=f"{number:064x}")])


def _apply(book: TradingBook, events: list[TradeEvent]) -> list[TradeEvent]:
    book.apply_all(events)
    return events
