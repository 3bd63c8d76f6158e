"""Random orders in random markets: whatever happens, the ledger balances and the venue is no kinder than a real one."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as D

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.accounts import FUTURES
from tests.wire.paper_venue import START
from zuno.adapters.venues.paper.matching import PaperExchange
from zuno.adapters.venues.paper.tape import Bar, FundingRate, Mark, Tick
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.model.market import MINUTE_MS, Book, Quote, Side
from zuno.trading.model.orders import Fill, FundingPayment, OrderRequest, OrderSide, OrderStatus, OrderType, TimeInForce
from zuno.trading.model.trade_events import FillBooked, FundingBooked
from zuno.trading.rules.book_state import LedgerAccount, round_money
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.trading_book import TradingBook

pytestmark = pytest.mark.slow

BTC = Symbol("BTCUSDT")
PRICE = {Venue("BINANCE"): 20_000.0, Venue("UPBIT"): 28_000_000.0}
ORDER_TYPES = st.sampled_from(list(OrderType))


def equity_by_fills(exchange: Venue, fills: Sequence[Fill], payments: Sequence[FundingPayment], mark: D) -> tuple[D, D]:
    """What an account is worth by its flows alone, and what is held: nothing of the ledger is asked."""
    cash, held = exchange.paper_cash, D(0)
    for fill in fills:
        cash -= fill.side.sign * fill.quantity * fill.price + fill.fee
        held += fill.side.sign * fill.quantity
    cash += sum((payment.amount for payment in payments), D(0))
    return cash + held * mark, held


def cut_to_held(before: Sequence[Fill], fill: Fill) -> Fill:
    """Return the part of a fill that a book can take: of a sale at a spot exchange what is held there."""
    held = sum((past.side.sign * past.quantity for past in before if past.exchange is fill.exchange), D(0))
    if not fill.exchange.spot or fill.side is OrderSide.BUY or fill.quantity <= held:
        return fill
    return fill.model_copy(update={"quantity": held, "fee": round_money(fill.fee * held / fill.quantity)})


def require_balanced(book: TradingBook, exchange: Venue, expected: D, held: D, mark: D) -> None:
    ledger = book.ledger
    assert ledger.debits[exchange] == ledger.credits[exchange]
    assert abs(book.equity(exchange, dict.fromkeys(DEFAULT_SYMBOLS, mark)) - expected) < D("1e-9")
    position = book.position(exchange, BTC)
    signed = D(0) if position is None else position.quantity * (1 if position.side is Side.LONG else -1)
    assert signed == held


# -- the ledger


@st.composite
def bookings(draw: st.DrawFn) -> list[FillBooked | FundingBooked]:
    events: list[FillBooked | FundingBooked] = []
    for number in range(draw(st.integers(1, 12))):
        at = Millis(number)
        if draw(st.integers(0, 5)) == 0:
            amount = D(draw(st.integers(-(10**9), 10**9))).scaleb(-8)
            paid = FundingPayment(id=f"p{number}", exchange=Venue("BINANCE"), symbol=BTC, amount=amount, at=at)
            events.append(FundingBooked(at=at, payment=paid))
            continue
        fill = Fill(
            id=f"f{number}",
            client_id=f"c{number}",
            exchange=draw(st.sampled_from(list(DEFAULT_VENUES))),
            symbol=BTC,
            side=draw(st.sampled_from(list(OrderSide))),
            quantity=D(draw(st.integers(1, 10**8))).scaleb(-8),
            price=D(draw(st.integers(1, 10**12))).scaleb(-4),
            fee=D(draw(st.integers(-(10**6), 10**8))).scaleb(-8),
            maker=False,
            at=at,
        )
        events.append(FillBooked(at=at, fill=fill))
    return events


@settings(max_examples=40)
@given(bookings(), st.integers(1, 10**9))
def test_the_ledger_balances_after_every_event(events: list[FillBooked | FundingBooked], price: int) -> None:
    """Turns, partial closes, rebates and prices from nothing to a hundred million; of a sale at a spot exchange as much
    as is held is booked, and a sale of nothing is refused."""
    book, mark = TradingBook(), D(price).scaleb(-2)
    fills: list[Fill] = []
    payments: list[FundingPayment] = []
    for event in events:
        before = (book.count, book.to_account())
        try:
            book.apply(event)
        except Refused:
            assert (book.count, book.to_account()) == before
            continue
        if isinstance(event, FillBooked):
            fills.append(cut_to_held(fills, event.fill))
        else:
            payments.append(event.payment)
        for exchange in DEFAULT_VENUES:
            here = [fill for fill in fills if fill.exchange is exchange]
            expected, held = equity_by_fills(exchange, here, payments if exchange is Venue("BINANCE") else (), mark)
            require_balanced(book, exchange, expected, held, mark)
            fees = book.ledger.balance(exchange, LedgerAccount.FEES)
            assert fees == sum((fill.fee for fill in here), D(0))


# -- the venue


@st.composite
def requests(draw: st.DrawFn, exchange: Venue, last: float, number: int) -> OrderRequest:
    """Mostly such as a desk sends, some that no venue takes."""
    kind = draw(ORDER_TYPES)
    tick = D("0.1") if exchange is Venue("BINANCE") else D(1_000)
    near = D(repr(last * (1 + draw(st.integers(-40, 40)) / 1_000))) // tick * tick
    lots = draw(st.integers(1, 150))
    quantity = D(lots).scaleb(-3)
    return OrderRequest(
        client_id=f"c{number}",
        exchange=exchange,
        symbol=BTC,
        side=draw(st.sampled_from(list(OrderSide))),
        type=kind,
        quantity=quantity,
        price=near if kind is OrderType.LIMIT else None,
        trigger=near if kind in (OrderType.STOP_MARKET, OrderType.TAKE_PROFIT_MARKET) else None,
        time_in_force=draw(st.sampled_from(list(TimeInForce))) if kind is OrderType.LIMIT else TimeInForce.GTC,
        reduce_only=draw(st.booleans()),
        leverage=1 if exchange is Venue("UPBIT") else draw(st.integers(1, 3)),
    )


@st.composite
def tick_at(draw: st.DrawFn, minute: int, last: float) -> tuple[Tick, float]:
    """The next word of the market, and the price after it."""
    at = Millis(START + (minute + 1) * MINUTE_MS)
    now = round(last * (1 + draw(st.sampled_from((-400, -60, -9, -2, 0, 1, 8, 70, 500))) / 1_000), 1)
    match draw(st.integers(0, 5)):
        case 0:
            return Mark(at, now), now
        case 1:
            size = draw(st.integers(1, 200)) / 1_000
            levels = [(Quote(round(now - step, 1), size), Quote(round(now + step, 1), size)) for step in (0.5, 5.0)]
            return Book(at, tuple(bid for bid, _ in levels), tuple(ask for _, ask in levels)), now
        case 2:
            return FundingRate(at, draw(st.integers(-30, 30)) / 10_000), last
        case _:
            opened = round(last * (1 + draw(st.integers(-20, 20)) / 1_000), 1)
            high, low = max(opened, now) * 1.01, min(opened, now) * 0.99
            return Bar(Millis(at - MINUTE_MS), at, opened, high, low, now), now


@settings(max_examples=15)
@given(st.data(), st.sampled_from(list(DEFAULT_VENUES)))
def test_whatever_is_ordered_the_venue_stays_sound(data: st.DataObject, exchange: Venue) -> None:
    engine = PaperExchange(exchange, Fees().at(exchange))
    last = PRICE[exchange]
    start = Bar(Millis(START - MINUTE_MS), Millis(START), last, last, last, last)
    engine.advance(BTC, [start])
    for minute in range(data.draw(st.integers(3, 25))):
        now = Millis(START + minute * MINUTE_MS)
        if data.draw(st.booleans()):
            request = data.draw(requests(exchange, last, minute))
            before = engine.book.position(exchange, BTC)
            side = None if before is None else before.side
            order = engine.place(request, now)
            assert engine.place(request, now) == engine.to_order(request.client_id)
            after = engine.book.position(exchange, BTC)
            if request.reduce_only and after is not None:
                assert after.side is side
            assert order.filled <= request.quantity
        tick, last = data.draw(tick_at(minute, last))
        engine.advance(BTC, [tick])
        mark = engine.market_state[BTC].mark
        assert mark is not None
        fills, payments = engine.fills[BTC], engine.payments[BTC]
        expected, held = equity_by_fills(exchange, fills, payments, D(repr(mark)))
        require_balanced(engine.book, exchange, expected, held, D(repr(mark)))
        assert engine.book.cash(exchange) >= 0
        assert not engine.spot or held >= 0
        for known in engine.book.orders.values():
            assert known.filled == known.booked <= known.request.quantity
            assert (known.status is OrderStatus.FILLED) == (known.filled == known.request.quantity)
    other = PaperExchange(exchange, Fees().at(exchange))
    other.restore(engine.events)
    assert other.book.to_account() == engine.book.to_account()
    assert (other.fills[BTC], other.payments[BTC]) == (engine.fills[BTC], engine.payments[BTC])
    assert [other.to_order(id) for id in other.book.orders] == [engine.to_order(id) for id in engine.book.orders]


@pytest.mark.parametrize("leverage", [1, 2, 3])
@settings(max_examples=20)
@given(side=st.sampled_from(list(OrderSide)), moves=st.lists(st.integers(-300, 400), min_size=1, max_size=12))
def test_no_position_loses_more_than_its_margin(leverage: int, side: OrderSide, moves: list[int]) -> None:
    engine = PaperExchange(Venue("BINANCE"), Fees().at(FUTURES))
    last = 20_000.0
    engine.advance(BTC, [Bar(Millis(START - MINUTE_MS), Millis(START), last, last, last, last)])
    request = OrderRequest(
        client_id="in",
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=side,
        type=OrderType.MARKET,
        quantity=D("0.09"),
        leverage=leverage,
    )
    assert engine.place(request, Millis(START)).status is OrderStatus.FILLED
    left = engine.book.cash(Venue("BINANCE"))
    for minute, move in enumerate(moves):
        gap = round(last * (1 + move / 1_000), 1)
        at = Millis(START + (minute + 1) * MINUTE_MS)
        engine.advance(BTC, [Bar(Millis(at - MINUTE_MS), at, gap, gap, gap, gap)])
        last = gap
        worth = engine.book.equity(Venue("BINANCE"), dict.fromkeys(DEFAULT_SYMBOLS, D(repr(gap))))
        assert worth >= left
