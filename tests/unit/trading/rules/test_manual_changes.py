"""Rules of entries by hand: what a change makes of an account, what no exchange would take, and that the past stays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.accounts import FUTURES, SPOT, build_account, won_rates
from zuno.kernel.errors import NotFound, Refused
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.model.account import (
    Account,
    BookChange,
    Holding,
    LiquidityStated,
    OrderCancelled,
    OrderPlaced,
    PositionClosed,
    PositionOpened,
    RestingOrder,
)
from zuno.trading.model.market import Side
from zuno.trading.model.trade_events import LevelsSet, ManualChange
from zuno.trading.rules.account import MarkedAccount, free_cash, mark_to_market
from zuno.trading.rules.trading_book import TradingBook, format_money

BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")
STARTING_ACCOUNT = build_account(usd=2_000.0, krw=2_000_000.0)


def replay_changes(changes: Sequence[BookChange], before: Millis | None = None) -> Account:
    book = TradingBook()
    for change in changes:
        if before is None or change.at < before:
            book.apply(ManualChange(at=change.at, change=change))
    return book.to_account()


def opened(id: str = "pos_1", at: int = 10, fee: float = 0.5, **more: Any) -> PositionOpened:
    shape: dict[str, Any] = {
        "id": id, "symbol": BTC, "exchange": Venue("BINANCE"), "side": Side.LONG, "quantity": 0.02, "entry": 50_000.0,
        "leverage": 2.0, "opened": at, **more,
    }  # fmt: skip
    return PositionOpened(at=at, position=Holding(**shape), fee=fee)


def upbit(id: str = "pos_1", **more: Any) -> PositionOpened:
    shape = {"exchange": Venue("UPBIT"), "quantity": 0.01, "entry": 70_000_000.0, "leverage": 1.0, "fee": 350.0, **more}
    return opened(id, **shape)


def rested(id: str = "ord_1", at: int = 10, **more: Any) -> OrderPlaced:
    shape: dict[str, Any] = {
        "id": id, "symbol": BTC, "exchange": Venue("BINANCE"), "side": Side.LONG, "quantity": 0.02, "price": 50_000.0,
        "leverage": 1.0, "placed": at, **more,
    }  # fmt: skip
    return OrderPlaced(at=at, order=RestingOrder(**shape))


def test_opening_ties_up_margin_and_pays_the_fee() -> None:
    after = replay_changes([opened()])
    assert after.cash[FUTURES] == 1_999.5
    assert free_cash(after, Venue("BINANCE")) == 1_499.5
    bought = replay_changes([upbit()])
    assert bought.cash[SPOT] == 2_000_000 - 700_000 - 350
    assert free_cash(bought, Venue("UPBIT")) == bought.cash[SPOT]


def test_a_level_that_is_set_later_is_shown_with_its_moment() -> None:
    book = TradingBook()
    book.apply(ManualChange(at=Millis(10), change=opened()))
    fields: dict[str, Any] = {"exchange": Venue("BINANCE"), "symbol": BTC, "target": None, "hold_until": None}
    book.apply(LevelsSet(at=Millis(20), stop=Decimal(49_000), by="owner", **fields))
    (holding,) = book.to_account().positions
    assert (holding.stop, holding.stop_since, holding.take_since) == (49_000.0, 20, None)


def test_closing_realises_what_was_gained_less_the_fee() -> None:
    long = replay_changes([opened(), PositionClosed(at=20, id="pos_1", price=55_000.0, fee=0.55)])
    assert long == build_account(2_000 - 0.5 + 100 - 0.55, 2_000_000.0)
    short = replay_changes([opened(side=Side.SHORT), PositionClosed(at=20, id="pos_1", price=55_000.0, fee=0.55)])
    assert short.cash[FUTURES] == pytest.approx(2_000 - 0.5 - 100 - 0.55)
    spot = replay_changes([upbit(), PositionClosed(at=20, id="pos_1", price=77_000_000.0, fee=385.0)])
    assert spot.cash[SPOT] == pytest.approx(2_000_000 - 350 + 70_000 - 385)


def test_what_was_in_an_old_book_is_held_by_the_same_bytes() -> None:
    """A position's numbers are kept as they were written; only cash is exact now."""
    odd = opened(quantity=0.1 + 0.2, entry=1_234.567_891_234, leverage=2.7, fee=0.1 + 0.2)
    (held,) = replay_changes([odd]).positions
    assert held is odd.position
    assert replay_changes([odd]).cash[FUTURES] == 2_000 - 0.3


def test_an_order_reserves_cash_until_it_is_taken_back() -> None:
    waiting = replay_changes([rested()])
    assert waiting.cash[FUTURES] == 2_000.0
    assert free_cash(waiting, Venue("BINANCE")) == 1_000.0
    assert replay_changes([rested(), OrderCancelled(at=11, id="ord_1")]) == STARTING_ACCOUNT
    won = replay_changes([rested(exchange=Venue("UPBIT"), quantity=0.01, price=7e7)])
    assert free_cash(won, Venue("UPBIT")) == 1_300_000.0


def test_what_is_stated_of_liquidity_takes_the_place_of_what_was() -> None:
    one = LiquidityStated(at=1, symbol=ETH, quantity=1.5)
    two = LiquidityStated(at=2, symbol=BTC, quantity=0.1)
    three = LiquidityStated(at=3, symbol=ETH, quantity=0.5)
    found = replay_changes([one, two, three]).liquidity
    assert {each.symbol: each.quantity for each in found} == {BTC: 0.1, ETH: 0.5}
    assert replay_changes([one, LiquidityStated(at=2, symbol=ETH, quantity=0.0)]).liquidity == ()


REFUSED: list[tuple[str, list[BookChange], BookChange, str]] = [
    ("margin over cash", [], opened(quantity=0.09), "$2,250.00 and a fee of $0.50 are more than the $2,000.00"),
    ("the fee over cash", [], opened(quantity=0.08), "$2,000.00 and a fee of $0.50 are more than the $2,000.00"),
    ("beside what is open", [opened(quantity=0.06)], opened("pos_2", quantity=0.03), "than the $499.50"),
    ("beside what rests", [rested()], opened("pos_2", quantity=0.05), "than the $1,000.00"),
    ("an order over cash", [], rested(quantity=0.05), "$2,500.00 and a fee of $0.00"),
    ("won over cash", [], upbit(quantity=0.03), "₩2,100,000 and a fee of ₩350 are more than the ₩2,000,000"),
    ("leverage beyond", [], opened(leverage=3.5), "3.5 is not between 1 and 3"),
    ("leverage at Upbit", [], upbit(leverage=2.0), "its leverage is 1, not 2"),
    ("short at Upbit", [], upbit(side=Side.SHORT), "sold short"),
    ("an order short at Upbit", [], rested(exchange=Venue("UPBIT"), side=Side.SHORT), "sold short"),
    ("the other side", [opened()], opened("pos_2", side=Side.SHORT), "is long BTC"),
    ("the other side elsewhere", [upbit()], opened("pos_2", side=Side.SHORT), "one side of a symbol only"),
    ("an order of the other side", [opened()], rested(side=Side.SHORT), "one side of a symbol only"),
    ("a name twice", [opened()], opened(), "in the book already"),
    ("an order's name twice", [rested()], rested(), "in the book already"),
    (
        "backward",
        [opened(at=10)],
        LiquidityStated(at=9, symbol=ETH, quantity=1.0),
        "of 9 ms stands behind one of 10 ms",
    ),
]


@pytest.mark.parametrize(("before", "change", "said"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_what_no_exchange_would_take_is_refused(before: list[BookChange], change: BookChange, said: str) -> None:
    replay_changes(before)
    with pytest.raises(Refused, match=re.escape(said)):
        replay_changes([*before, change])


@pytest.mark.parametrize(
    "change",
    [PositionClosed(at=20, id="pos_2", price=1.0, fee=0.0), PositionClosed(at=20, id="ord_1", price=1.0, fee=0.0),
     OrderCancelled(at=20, id="pos_1"), OrderCancelled(at=20, id="ord_2")],
)  # fmt: skip
def test_what_is_not_there_cannot_be_ended(change: BookChange) -> None:
    with pytest.raises(NotFound):
        replay_changes([opened(), rested(), change])


def test_nothing_is_closed_before_it_was_opened() -> None:
    early = opened(at=10).model_copy(update={"at": Millis(5)})
    with pytest.raises(Refused, match=r"10 ms.*\b9 ms"):
        replay_changes([early, PositionClosed(at=9, id="pos_1", price=1.0, fee=0.0)])
    assert replay_changes([early, PositionClosed(at=10, id="pos_1", price=50_000.0, fee=0.0)]).positions == ()


def test_both_sides_of_two_symbols_may_be_held_and_a_side_be_topped_up() -> None:
    book = replay_changes(
        [opened(), opened("pos_2", symbol=ETH, side=Side.SHORT, quantity=0.01), opened("pos_3", at=11)]
    )
    assert [one.id for one in book.positions] == ["pos_1", "pos_2", "pos_3"]


def test_money_for_eyes() -> None:
    assert (format_money(-1_234.5, Venue("BINANCE")), format_money(-1_234.5, Venue("UPBIT"))) == (
        "-$1,234.50",
        "-₩1,234",
    )


# -- properties


@given(
    side=st.sampled_from(Side),
    price=st.floats(0.01, 1e6),
    margin=st.floats(1.0, 1_900.0),
    leverage=st.floats(1.0, 3.0),
    fee_in=st.floats(0.0, 20.0),
    fee_out=st.floats(0.0, 20.0),
)
def test_opening_and_closing_at_one_price_costs_exactly_the_fees(
    side: Side, price: float, margin: float, leverage: float, fee_in: float, fee_out: float
) -> None:
    change = opened(side=side, entry=price, quantity=margin * leverage / price, leverage=leverage, fee=fee_in)
    after = replay_changes([change, PositionClosed(at=20, id="pos_1", price=price, fee=fee_out)])
    assert after.cash[FUTURES] == pytest.approx(2_000 - fee_in - fee_out, abs=1e-9)
    assert (after.cash[SPOT], after.positions) == (2_000_000.0, ())


@given(price=st.floats(1e3, 1e9), margin=st.floats(1.0, 1_900_000.0), fee=st.floats(0.0, 900.0))
def test_the_same_for_what_is_bought_with_won(price: float, margin: float, fee: float) -> None:
    change = upbit(entry=price, quantity=margin / price, fee=fee)
    after = replay_changes([change, PositionClosed(at=20, id="pos_1", price=price, fee=fee)])
    assert after.cash[SPOT] == pytest.approx(2_000_000 - 2 * fee, abs=1e-3)
    assert after.cash[FUTURES] == 2_000.0


@st.composite
def stories(draw: st.DrawFn) -> list[BookChange]:
    """Changes somebody may want to write, of which the book takes those it can."""
    story: list[BookChange] = []
    at = 0
    for number in range(draw(st.integers(1, 14))):
        at += draw(st.integers(0, 3))
        symbol, names = (
            draw(st.sampled_from(DEFAULT_SYMBOLS)),
            [f"{kind}_{n}" for kind in ("pos", "ord") for n in range(number)],
        )
        size = draw(st.floats(0.001, 0.03))
        wishes: list[BookChange] = [
            opened(f"pos_{number}", at, symbol=symbol, quantity=size, side=draw(st.sampled_from(Side))),
            upbit(f"pos_{number}", at=at, symbol=symbol, quantity=size),
            rested(f"ord_{number}", at, symbol=symbol, quantity=size),
            LiquidityStated(at=at, symbol=symbol, quantity=size),
        ]
        if names:
            name, price = draw(st.sampled_from(names)), draw(st.floats(30_000.0, 70_000.0))
            wishes += [PositionClosed(at=at, id=name, price=price, fee=0.1), OrderCancelled(at=at, id=name)]
        wish = draw(st.sampled_from(wishes))
        try:
            replay_changes([*story, wish])
        except Refused:
            continue
        story.append(wish)
    return story


@pytest.mark.slow
@given(stories())
def test_an_earlier_answer_never_changes_by_later_writes(story: list[BookChange]) -> None:
    for length, change in enumerate(story, 1):
        for moment in range(change.at + 1):
            assert replay_changes(story[:length], Millis(moment)) == replay_changes(story, Millis(moment))


@pytest.mark.slow
@given(stories())
def test_a_book_never_ties_up_more_than_it_had(story: list[BookChange]) -> None:
    for length, change in enumerate(story, 1):
        account = replay_changes(story[:length])
        if isinstance(change, PositionOpened | OrderPlaced):
            assert all(free_cash(account, exchange) >= -1e-3 for exchange in DEFAULT_VENUES)


@pytest.mark.slow
@given(stories(), st.floats(30_000.0, 70_000.0), st.floats(1_000.0, 1_800.0))
def test_closing_at_the_mark_changes_equity_by_the_fee_alone(story: list[BookChange], mark: float, won: float) -> None:
    account = replay_changes(story)
    marks = dict.fromkeys(DEFAULT_SYMBOLS, mark)
    before = mark_to_market(account, None, marks, won_rates(won))
    assert isinstance(before, MarkedAccount)
    closes = [
        PositionClosed(at=99, id=held.id, price=mark if held.exchange is Venue("BINANCE") else mark * won, fee=0.25)
        for held in account.positions
    ]
    after = mark_to_market(replay_changes([*story, *closes]), None, marks, won_rates(won))
    assert isinstance(after, MarkedAccount)
    paid = sum(0.25 if one.exchange is Venue("BINANCE") else 0.25 / won for one in replay_changes(story).positions)
    assert after.equity_usd == pytest.approx(before.equity_usd - paid, abs=1e-6)
