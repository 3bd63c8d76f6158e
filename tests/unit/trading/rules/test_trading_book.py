"""The trading book: what events add up to, which cannot be, and that the ledger balances after each."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import pytest

from tests.wire.accounts import FUTURES, build_account, open_account
from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding, PositionClosed, PositionOpened
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import DAY_MS, Mode, Side
from zuno.trading.model.orders import Fill, FundingPayment, Order, OrderRequest, OrderSide, OrderStatus, OrderType
from zuno.trading.model.trade_events import (
    Adopted,
    ExitReason,
    FillBooked,
    FundingBooked,
    IntentKind,
    IntentLeg,
    IntentStored,
    LevelsSet,
    LockSet,
    ManualChange,
    OrderPlanned,
    OrderUpdated,
    Protection,
    TradeClosed,
    TradeEvent,
    TradeIntent,
)
from zuno.trading.rules.book_state import Ledger, LedgerAccount
from zuno.trading.rules.trading_book import TradingBook

BTC, BINANCE, UPBIT = Symbol("BTCUSDT"), Venue("BINANCE"), Venue("UPBIT")


def fill(
    number: int, side: OrderSide, quantity: str, price: str, fee: str = "0", *, client: str = "c1", **more: object
) -> FillBooked:
    shape = {
        "id": f"f{number}",
        "client_id": client,
        "exchange": BINANCE,
        "symbol": BTC,
        "side": side,
        "quantity": D(quantity),
        "price": D(price),
        "fee": D(fee),
        "maker": False,
        "at": Millis(number),
    }
    return FillBooked(at=Millis(number), fill=Fill.model_validate(shape | more))


def intent(id: str = "int_1") -> IntentStored:
    leg = IntentLeg(exchange=BINANCE, quantity=D("0.02"), entry=D(60_000), stop=D(58_000), target=D(64_000), leverage=3)
    wish = TradeIntent(
        id=id,
        decision="run_1",
        kind=IntentKind.OPEN,
        symbol=BTC,
        mode=Mode.SWING,
        side=Side.LONG,
        style=Style.MOMENTUM_SNIPER,
        legs=(leg,),
        hold="5d",
        valid_until=Millis(10**6),
        mark=D(60_000),
        atr=D(500),
    )
    return IntentStored(at=Millis(1), intent=wish, ruling=None)


def planned(client: str = "c1", quantity: str = "0.02", *, reduce_only: bool = False) -> OrderPlanned:
    request = OrderRequest(
        client_id=client,
        exchange=BINANCE,
        symbol=BTC,
        side=OrderSide.SELL if reduce_only else OrderSide.BUY,
        type=OrderType.LIMIT,
        quantity=D(quantity),
        price=D(60_000),
        reduce_only=reduce_only,
        leverage=3,
    )
    return OrderPlanned(at=Millis(1), intent="int_1", purpose="exit" if reduce_only else "entry", order=request)


def started() -> TradingBook:
    book = TradingBook()
    opened = open_account(at=Millis(0), usd=D(2_000), krw=D(2_000_000))
    for event in (opened, intent(), planned()):
        book.apply(event)
    return book


def test_a_trade_from_flat_to_flat_is_accounted_to_the_cent() -> None:
    book = started()
    book.apply(fill(2, OrderSide.BUY, "0.01", "60000", "0.3"))
    book.apply(fill(3, OrderSide.BUY, "0.01", "60300", "0.3015"))
    trade = book.positions[BINANCE, BTC, "debate"]
    assert (trade.quantity, trade.entry, trade.margin) == (D("0.02"), D("60150"), D("401"))
    assert (trade.stop, trade.target, trade.hold_until) == (D(58_000), D(64_000), Millis(2 + 5 * DAY_MS))
    assert book.cash(BINANCE) == D("1598.3985")
    assert book.equity(BINANCE, {BTC: D(61_150)}) == D("2000") - D("0.6015") + D("20")
    payment = FundingPayment(id="p1", exchange=BINANCE, symbol=BTC, amount=D("-0.12"), at=Millis(4))
    book.apply(FundingBooked(at=Millis(4), payment=payment))
    book.apply(fill(5, OrderSide.SELL, "0.005", "62150", "0.155375"))
    assert (trade.gross, trade.margin) == (D("10"), D("300.75"))
    book.apply(fill(6, OrderSide.SELL, "0.015", "59150", "0.443625"))
    assert book.positions == {}
    assert book.trades == {}
    summary = book.summarise(trade, ExitReason.STOP)
    assert (summary.entry, summary.exit, summary.quantity) == (D(60_150), D(59_900), D("0.02"))
    assert (summary.gross_pnl, summary.fees, summary.funding) == (D("-5"), D("1.2005"), D("-0.12"))
    assert summary.net_pnl == D("-6.3205")
    assert book.cash(BINANCE) == D("2000") + summary.net_pnl == book.venue_balance(BINANCE)
    book.apply(TradeClosed(at=Millis(6), summary=summary))
    assert book.closed == [summary]
    assert sum(result.amount for result in book.results) == summary.net_pnl
    assert [result.at for result in book.results] == [2, 3, 4, 5, 6]
    with pytest.raises(Refused):  # a second thread that closed it too
        book.apply(TradeClosed(at=Millis(6), summary=summary))
    assert book.ledger.debits[BINANCE] == book.ledger.credits[BINANCE]


def test_fills_and_funding_are_booked_once_by_their_id() -> None:
    book = started()
    payment = FundingPayment(id="p1", exchange=BINANCE, symbol=BTC, amount=D("-0.12"), at=Millis(2))
    once: list[TradeEvent] = [fill(2, OrderSide.BUY, "0.01", "60000"), FundingBooked(at=Millis(2), payment=payment)]
    book.apply_all(once)
    cash = book.cash(BINANCE)
    for event in once:
        with pytest.raises(Refused):
            book.apply(event)
    assert (BINANCE, "f2") in book.fills_by_id
    assert (BINANCE, "p1") in book.payment_ids
    assert (book.cash(BINANCE), book.count) == (cash, 5)


def test_a_fill_beyond_the_position_turns_it() -> None:
    book = started()
    book.apply(fill(2, OrderSide.BUY, "0.01", "60000", "0.6"))
    book.apply(fill(3, OrderSide.SELL, "0.03", "61000", "0.9", client="other"))
    (old,), new = book.finished.values(), book.positions[BINANCE, BTC, "debate"]
    assert (old.gross, old.fees) == (D(10), D("0.9"))
    assert (new.side, new.quantity, new.fees, new.intent) == (Side.SHORT, D("0.02"), D("0.6"), "")
    assert book.equity(BINANCE, {BTC: D(60_000)}) == D(2_000) + 10 - D("1.5") + 20


@pytest.mark.parametrize(
    "event",
    [
        fill(2, OrderSide.SELL, "1", "80000000", exchange=UPBIT),
        fill(2, OrderSide.BUY, "1000000000", "60000000000"),
        intent(),
        planned(),
        OrderPlanned(at=Millis(2), intent="int_2", purpose="entry", order=planned("c2").order),
        LevelsSet(at=Millis(2), exchange=BINANCE, symbol=BTC, stop=D(1), target=None, hold_until=None, by="owner"),
        open_account(at=Millis(2), usd=D(1), krw=D(1)),
        LockSet(at=Millis(0), protection=Protection.PAUSED, symbol=None, until=None, reason="backward"),
    ],
    ids=[
        "sold without holding",
        "more than there is in the world",
        "an intent twice",
        "an order twice",
        "an order of no intent",
        "levels of nothing",
        "opened twice",
        "backward",
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(event: object) -> None:
    book = started()
    before = (book.count, book.to_account(), book.cash(BINANCE), len(book.orders), dict(book.locks))
    with pytest.raises(Refused):
        book.apply(event)  # type: ignore[arg-type]
    assert (book.count, book.to_account(), book.cash(BINANCE), len(book.orders), dict(book.locks)) == before


def test_what_an_order_reduces_beyond_all_that_is_held_is_booked_and_said() -> None:
    """The book missed something: it goes on holding what the exchange's fills add up to, with no level of a trade."""
    book = started()
    book.apply(planned("c2", "0.05", reduce_only=True))
    book.apply(fill(2, OrderSide.BUY, "0.02", "60000"))
    book.apply(fill(3, OrderSide.SELL, "0.02", "60000", client="c2"))
    assert not book.overfill
    book.apply(fill(4, OrderSide.SELL, "0.01", "60000", client="c2"))
    (trade,) = book.positions.values()
    assert book.overfill
    assert (trade.signed, trade.stop, trade.intent) == (D("-0.01"), None, "")


def test_a_fill_that_is_left_out_is_known_and_moves_no_money() -> None:
    book = started()
    sold = fill(2, OrderSide.SELL, "1", "80000000", exchange=UPBIT).model_copy(update={"left_out": "not held"})
    cash = book.cash(UPBIT)
    book.apply(sold)
    assert (book.cash(UPBIT), book.positions) == (cash, {})
    with pytest.raises(Refused):
        book.apply(sold)


def test_levels_are_of_the_trade_they_name_and_of_no_later_one() -> None:
    book = started()
    book.apply(fill(2, OrderSide.BUY, "0.02", "60000"))
    (trade,) = book.trades
    fields: dict[str, Any] = {"exchange": BINANCE, "symbol": BTC, "target": None, "hold_until": None, "by": "owner"}
    book.apply(LevelsSet(at=Millis(9), stop=D(1), trade=trade, **fields))
    assert book.trades[trade].stop == D(1)
    with pytest.raises(Refused):
        book.apply(LevelsSet(at=Millis(9), stop=D(2), trade="trd_gone", **fields))
    book.apply(LevelsSet(at=Millis(9), stop=D(3), **fields))
    assert book.trades[trade].stop == D(3), "an entry of before"


def test_a_level_that_stays_keeps_the_moment_it_was_set() -> None:
    book = started()
    book.apply(fill(2, OrderSide.BUY, "0.02", "60000"))
    (trade,) = book.trades
    fields: dict[str, Any] = {"exchange": BINANCE, "symbol": BTC, "hold_until": None, "by": "owner", "trade": trade}
    moments = []
    for at, stop, target in ((9, 1, 5), (10, 1, 6), (11, 2, 6), (12, 2, 6)):
        book.apply(LevelsSet(at=Millis(at), stop=D(stop), target=D(target), **fields))
        (holding,) = book.to_account().positions
        moments.append((holding.stop_since, holding.take_since))
    assert moments == [(9, 9), (9, 10), (11, 10), (11, 10)]


def test_an_order_goes_forward_and_late_words_are_no_news() -> None:
    book = started()
    request = planned().order

    def word(status: OrderStatus, filled: str) -> Order:
        return Order(request=request, venue_id="v1", status=status, filled=D(filled), updated=Millis(2))

    open_, part, done = word(OrderStatus.OPEN, "0"), word(OrderStatus.OPEN, "0.01"), word(OrderStatus.FILLED, "0.02")
    book.apply(OrderUpdated(at=Millis(2), order=part))
    assert not book.is_update(open_)
    assert not book.is_update(part)
    assert [order.quantity for order in book.to_pending()] == [0.01]
    book.apply(OrderUpdated(at=Millis(2), order=done))
    assert not book.is_update(part)
    assert book.open_orders == {}
    for late in (open_, part):
        with pytest.raises(Refused):
            book.apply(OrderUpdated(at=Millis(3), order=late))


def test_what_a_person_wrote_down_is_held_as_it_was_and_kept_apart_from_the_venue() -> None:
    book = started()
    holding = Holding(
        id="pos_1",
        symbol=Symbol("ETHUSDT"),
        exchange=BINANCE,
        side=Side.LONG,
        quantity=0.3,
        entry=2_500.1,
        leverage=2.5,
        opened=Millis(2),
    )
    book.apply(ManualChange(at=Millis(2), change=PositionOpened(at=Millis(2), position=holding, fee=0.375)))
    assert book.to_account().positions == (holding,)
    assert book.to_account().cash[FUTURES] == 1_999.625
    assert book.venue_balance(BINANCE) == 2_000
    closed = PositionClosed(at=Millis(3), id="pos_1", price=2_600.1, fee=0.39)
    book.apply(ManualChange(at=Millis(3), change=closed))
    assert book.to_account() == build_account(usd=2_000 + 30 - 0.375 - 0.39, krw=2_000_000.0, pending=book.to_pending())
    assert [trade.reason for trade in book.closed] == [ExitReason.MANUAL]
    assert book.ledger.balance(BINANCE, LedgerAccount.MANUAL) == D("-29.235")
    assert book.venue_balance(BINANCE) == 2_000


def test_a_difference_that_was_adopted_is_in_the_books() -> None:
    book = started()
    book.apply(Adopted(at=Millis(2), exchange=BINANCE, what="a transfer", cash=D("-12.5")))
    assert book.cash(BINANCE) == book.venue_balance(BINANCE) == D("1987.5")


def test_free_money_is_limited_by_equity() -> None:
    book = started()
    book.apply_all([fill(2, OrderSide.BUY, "0.02", "60000")])
    assert book.free(BINANCE, {BTC: D(60_000)}) == 1_600
    assert book.free(BINANCE, {BTC: D(70_000)}) == 1_600
    assert book.free(BINANCE, {BTC: D(50_000)}) == 1_400


def test_a_posting_that_does_not_balance_is_broken() -> None:
    ledger: Ledger[Venue] = Ledger()
    with pytest.raises(Broken):
        ledger.post(BINANCE, (LedgerAccount.CASH, D(1)), (LedgerAccount.CAPITAL, D(-2)))
    ledger.post(BINANCE, (LedgerAccount.CASH, D(1)), (LedgerAccount.CAPITAL, D(-1)))
    ledger.check(BINANCE, D(0), D(0))
    with pytest.raises(Broken):
        ledger.check(BINANCE, D(1), D(0))
