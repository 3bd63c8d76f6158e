"""What an arm's events come to: won in dollars, funding by trade, and nothing of what is ordered at the last moment."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D

import pytest

from tests.unit.trading.rules.test_trading_book import fill, intent, planned
from tests.wire.accounts import FUTURES, SPOT, open_account
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.lab.trading.arm_result import ArmResult, PriceSeries, Span, measure_arm
from zuno.lab.trading.arms import Arm
from zuno.lab.trading.question import TradeMarket, read_question
from zuno.lab.trading.views import build_view
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.trading.model.orders import FundingPayment, OrderSide
from zuno.trading.model.trade_events import FundingBooked, TradeEvent

BTC = Symbol("BTCUSDT")
SPAN = Span(Millis(0), Millis(2 * DAY_MS))
PRICES = {
    BTC: PriceSeries((0, DAY_MS), (90_000.0, 93_000.0)),
    Symbol("ETHUSDT"): PriceSeries((0, DAY_MS), (3_000.0, 2_900.0)),
}
WON = PriceSeries((0, DAY_MS + 1), (1_000.0, 1_250.0))
"""A dollar is worth more on the second day."""
OPENED = open_account(at=Millis(0), usd=FUTURES.paper_cash, krw=SPOT.paper_cash)


MARKET = TradeMarket(
    place="",
    folder="",
    origin="made up",
    synthetic=False,
    candles_only=True,
    minutes=False,
    prices=PRICES,
    funded_days={BTC: frozenset({0})},
    krw_rate=None,
    fingerprint=Digest("0" * 64),
)


def measure(*events: TradeEvent, krw_rate: PriceSeries | None = None) -> ArmResult:
    return measure_arm(Arm.DEBATE, [OPENED, *events], PRICES, SPAN, SPAN.end, krw_rate=krw_rate)


def pay_funding(at: int, amount: str) -> FundingBooked:
    payment = FundingPayment(id=f"p{at}", exchange=Venue("BINANCE"), symbol=BTC, amount=D(amount), at=Millis(at))
    return FundingBooked(at=Millis(at), payment=payment)


def test_won_is_counted_in_dollars() -> None:
    bought = fill(HOUR_MS, OrderSide.BUY, "0.01", "90000000", "450", exchange=Venue("UPBIT"))
    sold = fill(30 * HOUR_MS, OrderSide.SELL, "0.01", "93600000", "468", exchange=Venue("UPBIT"))
    result = measure(bought, sold, krw_rate=WON)
    (trade,) = result.trades
    assert trade.net == round((36_000 - 450 - 468) / 1_250 * 10**6)
    assert trade.notional == 900_000 // 1_250 * 10**6
    assert result.fees == round(918 / 1_250 * 10**6)
    begin, midnight, end = result.worth
    assert begin == 2_000 * 10**6
    assert midnight == begin + round((930 - 900_450 / 1_000) * 10**6), "coins in dollars, cash at the day's rate"
    assert end == begin + trade.net
    assert 0 < result.exposure < 1
    with pytest.raises(Broken, match="KRW"):
        measure(bought)


def test_what_is_ordered_at_the_last_moment_is_not_counted() -> None:
    last = fill(SPAN.end, OrderSide.BUY, "0.01", "90000")
    assert measure(last).open_trades == 1, "a fill of an order that waited"
    ordered = [event.model_copy(update={"at": SPAN.end}) for event in (intent(), planned(quantity="0.01"))]
    after = measure(*ordered, last)
    assert (after.open_trades, after.net) == (0, 0)
    early = [event.model_copy(update={"at": Millis(SPAN.end - 1)}) for event in (intent(), planned(quantity="0.01"))]
    assert measure(*early, last).open_trades == 1


def test_what_the_market_did_in_the_last_bar_counts_though_something_was_ordered_before_it_was_noted() -> None:
    """The exit of BTC is ordered at the last moment; the stop of ETH was passed in the bar before it."""
    eth = Symbol("ETHUSDT")
    events: list[TradeEvent] = [
        fill(1, OrderSide.BUY, "0.01", "90000", client="b"),
        fill(2, OrderSide.BUY, "0.1", "3000", client="e", symbol=eth),
        planned("exit", "0.01", reduce_only=True).model_copy(update={"at": SPAN.end}),
        fill(SPAN.end, OrderSide.SELL, "0.01", "95000", client="exit"),
        fill(SPAN.end, OrderSide.SELL, "0.1", "2900", client="stop", id="f9", symbol=eth),
        pay_funding(SPAN.end, "-1"),
    ]
    result = measure(*events)
    assert [(trade.symbol, trade.net) for trade in result.trades] == [(eth, -10_000_000)]
    assert (result.open_trades, result.funding) == (1, -1_000_000)


def test_chance_is_compared_with_closed_trades_before_their_own_funding() -> None:
    """The open trade paid more than all the others; its funding is none of theirs."""
    result = measure(
        fill(HOUR_MS, OrderSide.BUY, "0.01", "90000", "0.5"),
        pay_funding(8 * HOUR_MS, "-1.25"),
        fill(9 * HOUR_MS, OrderSide.SELL, "0.01", "91000", "0.5"),
        fill(10 * HOUR_MS, OrderSide.BUY, "0.01", "91000", "0.5"),
        pay_funding(16 * HOUR_MS, "-40"),
    )
    (trade,) = result.trades
    assert (trade.net, trade.funding, result.funding) == (7_750_000, -1_250_000, -41_250_000)
    question = read_question(None, "BTCUSDT", None, None, "debate")
    view = build_view("id", question, MARKET, SPAN, [result], stopped=False)
    assert view.random is not None
    assert view.random.debate_usd == 9.0


def test_a_debate_alone_is_compared_with_nothing() -> None:
    question = read_question(None, "BTCUSDT", None, None, "debate")
    view = build_view("id", question, MARKET, SPAN, [measure()], stopped=False)
    assert "Not judged" in view.headline


def test_notes_tell_what_the_record_holds() -> None:
    question = read_question(None, "BTCUSDT", None, None, "debate")

    def notes(market: TradeMarket) -> str:
        return " ".join(build_view("id", question, market, SPAN, [measure()], stopped=False).notes)

    assert "1 of 2 days" in notes(MARKET)
    assert "1970-01" in notes(MARKET)
    whole = replace(MARKET, funded_days={BTC: frozenset({0, 1})}, synthetic=True)
    assert "funding" not in notes(whole)
    assert "ends in" not in notes(whole)
    later = PriceSeries((0, 400 * DAY_MS), (90_000.0, 93_000.0))
    assert "1971-02" in notes(replace(MARKET, prices={BTC: later}))


def test_an_arm_that_a_stopped_run_had_not_come_to_needs_no_model() -> None:
    def list_not_run(*, models: bool, stopped: bool) -> list[str]:
        question = read_question(None, "BTCUSDT", None, None, "debate,aa,single", models=models)
        return [row.arm for row in build_view("id", question, MARKET, SPAN, [measure()], stopped=stopped).not_run]

    assert list_not_run(models=False, stopped=True) == ["single"]
    assert list_not_run(models=True, stopped=True) == []
    assert list_not_run(models=True, stopped=False) == ["aa", "single"]
