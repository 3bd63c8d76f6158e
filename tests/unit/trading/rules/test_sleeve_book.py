"""Sleeves in the trading book: debits equal credits in each, all of them together are the account, and the wallet of a
venue with one position per symbol is foreseen though its sleeves hold both sides."""

from __future__ import annotations

from decimal import Decimal as D

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.trading.rules.test_trading_book import BINANCE, BTC, fill, intent, planned
from zuno.adapters.account.account_snapshot import dump_live, dump_whole, restore_book
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.model.orders import FundingPayment, OrderSide
from zuno.trading.model.sleeves import DEBATE, SleeveShares, find_unknown, parse_sleeves
from zuno.trading.model.trade_events import (
    AccountOpened,
    FillBooked,
    FundingBooked,
    IntentStored,
    SleevesCrossed,
    SleevesSet,
    SleeveTransferred,
    TradeEvent,
)
from zuno.trading.rules.book_state import LedgerAccount
from zuno.trading.rules.performance import AccountHistory, trace_account
from zuno.trading.rules.trading_book import TradingBook

SPOT = Venue("BINANCE-SPOT")
SLEEVES = (DEBATE, "trend", "mine")
BUY, SELL = OrderSide.BUY, OrderSide.SELL


def begin(*events: TradeEvent) -> list[TradeEvent]:
    """An account of three sleeves with an intent and an order of each at the perpetual."""
    started: list[TradeEvent] = [AccountOpened(at=Millis(0), cash={BINANCE: D(90_000), SPOT: D(90_000)})]
    started.append(SleevesSet(at=Millis(0), shares=dict.fromkeys(("trend", "mine", DEBATE), D(1))))
    for sleeve in SLEEVES[1:]:
        given = {"source": DEBATE, "target": sleeve, "currency": "USD", "amount": D(50_000)}
        started.append(SleeveTransferred.model_validate({"at": 0, "key": f"give-{sleeve}", **given}))
    for sleeve in SLEEVES:
        wish = intent(f"int_{sleeve}").intent.model_copy(update={"sleeve": sleeve})
        started.append(IntentStored(at=Millis(1), intent=wish, ruling=None))
        for order in (planned(f"c_{sleeve}"), planned(f"s_{sleeve}", reduce_only=True)):
            started.append(order.model_copy(update={"at": Millis(1), "intent": wish.id}))
    return [*started, *events]


def cross(at: int, seller: str, buyer: str, quantity: str, price: str, exchange: Venue = BINANCE) -> SleevesCrossed:
    return SleevesCrossed(
        at=Millis(at), key=f"x{at}", exchange=exchange, symbol=BTC, seller=seller, buyer=buyer, quantity=D(quantity),
        price=D(price),
    )  # fmt: skip


def check_sleeves(book: TradingBook, price: D) -> None:
    marks = {(BINANCE, BTC): price, (SPOT, BTC): price}
    equity = sum(book.equity(venue, {BTC: price}) for venue in (BINANCE, SPOT))
    assert sum(book.sleeve_equity(sleeve, "USD", marks) for sleeve in SLEEVES) == equity
    for sleeve in SLEEVES:
        assert sum(book.sleeve_balances(sleeve, "USD").values()) == 0
        assert book.sleeve_ledger.debits[sleeve, "USD"] == book.sleeve_ledger.credits[sleeve, "USD"]


class OneWayVenue:
    """The wallet of a venue with one position per symbol, from its fills alone."""

    def __init__(self, cash: D) -> None:
        self.wallet, self.held, self.average = cash, D(0), D(0)

    def fill(self, signed: D, price: D) -> None:
        if self.held * signed < 0:
            closed = min(abs(signed), abs(self.held))
            self.wallet += closed * (price - self.average) * (1 if self.held > 0 else -1)
            if abs(signed) > abs(self.held):
                self.average = price
        else:
            held = self.held + signed
            self.average = (self.average * self.held + price * signed) / held if held else D(0)
        self.held += signed


deals = st.tuples(
    st.sampled_from(SLEEVES), st.sampled_from([BUY, SELL]), st.integers(1, 64), st.integers(40_000, 70_000)
)
stops = st.tuples(st.just("stop"), deals)
"""An order that only reduces: the venue fills no more of it than its net position."""
crossings = st.tuples(st.permutations(SLEEVES), st.integers(1, 64), st.integers(40_000, 70_000))


@given(st.lists(deals | crossings | stops, max_size=12))
def test_sleeves_add_up_and_the_venues_wallet_is_foreseen(steps: list[tuple[object, ...]]) -> None:
    book, venue = TradingBook(), OneWayVenue(D(90_000))
    book.apply_all(begin())
    for number, step in enumerate(steps, 10):
        match step:
            case ("stop", (str(sleeve), OrderSide() as side, int(size), int(price))):
                quantity = min(D(size) / 1024, -side.sign * venue.held)
                if quantity > 0:
                    apply_stop(book, fill(number, side, str(quantity), str(price), client=f"s_{sleeve}"), sleeve)
                    venue.fill(side.sign * quantity, D(price))
            case (str(sleeve), OrderSide() as side, int(size), int(price)):
                quantity = D(size) / 1024
                book.apply(fill(number, side, str(quantity), str(price), client=f"c_{sleeve}"))
                venue.fill(side.sign * quantity, D(price))
            case ([str(seller), str(buyer), *_], int(size), int(price)):
                book.apply(cross(number, seller, buyer, str(D(size) / 1024), str(price)))
        check_sleeves(book, D(55_000))
        assert sum(trade.signed for trade in book.positions_at(BINANCE, BTC)) == venue.held
        assert abs(book.venue_balance(BINANCE) - venue.wallet) < D("1e-6")
    copy = restore_book(*_split(trace_account([*begin()])))
    assert copy.sleeve_cash("trend", "USD") == 50_000


def apply_stop(book: TradingBook, event: FillBooked, sleeve: str) -> None:
    """A sleeve's stop takes of another only what the sleeve itself did not hold, and that is said."""
    before = {trade.sleeve: trade.signed for trade in book.positions_at(BINANCE, BTC)}
    book.apply(event)
    after = {trade.sleeve: trade.signed for trade in book.positions_at(BINANCE, BTC)}
    own = max(D(0), -event.fill.side.sign * before.get(sleeve, D(0)))
    assert bool(book.overfill) == (event.fill.quantity > own)
    if not book.overfill:
        others = [name for name in SLEEVES if name != sleeve]
        assert {name: after.get(name) for name in others} == {name: before.get(name) for name in others}


def _split(book: AccountHistory) -> tuple[bytes, list[bytes]]:
    live, past = dump_whole(book)
    return live, [past]


def test_a_snapshot_keeps_sleeves_nets_and_keys() -> None:
    events = begin(
        fill(10, BUY, "0.02", "60000", "1", client="c_trend"),
        fill(11, SELL, "0.01", "61000", client="c_debate"),
        cross(12, "trend", "mine", "0.005", "62000"),
    )
    book = trace_account(events)
    again = restore_book(*_split(book))
    assert dump_live(again) == dump_live(book)
    assert again.nets == book.nets
    assert again.venue_balance(BINANCE) == book.venue_balance(BINANCE)
    with pytest.raises(Refused):
        again.apply(cross(12, "trend", "mine", "0.005", "62000"))


def test_a_fill_is_its_orders_sleeves_and_a_trade_knows_it() -> None:
    book = trace_account(begin(fill(10, BUY, "0.02", "60000", "2", client="c_trend")))
    (trade,) = book.positions.values()
    assert (trade.sleeve, book.position(BINANCE, BTC)) == ("trend", None)
    assert book.sleeve_balances("trend", "USD")[LedgerAccount.FEES] == 2
    assert book.sleeve_balances(DEBATE, "USD")[LedgerAccount.FEES] == 0


def test_funding_is_split_by_what_each_sleeve_holds() -> None:
    paid = FundingPayment(id="p1", exchange=BINANCE, symbol=BTC, amount=D(-1), at=Millis(12))
    book = trace_account(
        begin(
            fill(10, BUY, "0.03", "60000", client="c_trend"),
            fill(11, SELL, "0.01", "60000", client="c_mine"),
            FundingBooked(at=Millis(12), payment=paid),
        )
    )
    assert book.sleeve_balances("trend", "USD")[LedgerAccount.FUNDING] == D("1.5")
    assert book.sleeve_balances("mine", "USD")[LedgerAccount.FUNDING] == D("-0.5")


def test_more_than_is_free_is_not_transferred_and_nothing_twice() -> None:
    book = trace_account(begin())
    gift = SleeveTransferred(
        at=Millis(2), key="again", source="trend", target="mine", currency="USD", amount=D(60_000)
    )  # fmt: skip
    with pytest.raises(Refused):
        book.apply(gift)
    less = gift.model_copy(update={"amount": D(1)})
    book.apply(less)
    with pytest.raises(Refused):
        book.apply(less)
    check_sleeves(book, D(1))


def test_coins_that_a_sleeve_does_not_hold_are_not_crossed() -> None:
    book = trace_account(begin())
    with pytest.raises(Refused):
        book.apply(cross(12, "trend", "mine", "0.005", "62000", SPOT))


@pytest.mark.parametrize(
    "text",
    ["trend:0.5", "trend:0.5,trend:0.5", "trend:x", "", "lp-hedge:1", "trend:-1,debate:2", "Trend:1", "x:nan"],
)
def test_shares_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_sleeves(text)


def test_shares_are_read_and_unknown_sleeves_named() -> None:
    shares = parse_sleeves(" trend:0.5, cash-carry:0.2,debate:0.3 ")
    assert str(shares) == "trend:0.5,cash-carry:0.2,debate:0.3"
    assert find_unknown(shares) is None
    assert "trend" in (find_unknown(parse_sleeves("trent:1")) or "")
    assert find_unknown(parse_sleeves("mine:1"), ("mine",)) is None
    assert SleeveShares().of(DEBATE) == 1
