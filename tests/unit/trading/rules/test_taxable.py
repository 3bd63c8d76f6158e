"""Which events of an account's log are taxable, and with which amounts."""

from __future__ import annotations

from decimal import Decimal as D

from tests.unit.trading.rules.test_trading_book import UPBIT, fill
from zuno.kernel.taxable import Amount, TaxableEvent
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Holding, PositionClosed, PositionOpened
from zuno.trading.model.market import Side
from zuno.trading.model.orders import FundingPayment, OrderSide
from zuno.trading.model.trade_events import FundingBooked, ManualChange, TradeEvent
from zuno.trading.rules.taxable import list_taxable_events


def list_events(*events: TradeEvent) -> list[TaxableEvent]:
    return list(list_taxable_events("live", events))


def test_a_futures_fill_moves_the_contract_and_its_fee() -> None:
    trade, fee = list_events(fill(1, OrderSide.SELL, "0.02", "60000", "0.6"))
    assert (trade.kind, trade.received, trade.given) == ("trade", (), (Amount(D("0.02"), "BTCUSDT perpetual"),))
    assert trade.value == Amount(D(1_200), "USD")
    assert (fee.kind, fee.given, fee.value) == ("fee", (Amount(D("0.6"), "USD"),), Amount(D("-0.6"), "USD"))
    assert (trade.id, trade.reference, fee.id) == ("f1", "c1", "f1")


def test_a_spot_fill_exchanges_coins_for_won() -> None:
    (bought,) = list_events(fill(1, OrderSide.BUY, "0.5", "1000", exchange=UPBIT))
    (sold,) = list_events(fill(2, OrderSide.SELL, "0.5", "1000", exchange=UPBIT))
    coins, won = (Amount(D("0.5"), "BTC"),), (Amount(D(500), "KRW"),)
    assert (bought.received, bought.given, sold.received, sold.given) == (coins, won, won, coins)


def test_a_rebate_and_a_fee_in_another_coin() -> None:
    _, rebate = list_events(fill(1, OrderSide.BUY, "1", "100", "-0.02"))
    assert (rebate.kind, rebate.received, rebate.given) == ("fee", (Amount(D("0.02"), "USD"),), ())
    _, fee = list_events(fill(1, OrderSide.BUY, "1", "100", foreign_fee="0.001 BNB"))
    assert (fee.kind, fee.given, fee.value) == ("fee", (Amount(D("0.001"), "BNB"),), Amount(D("-0.001"), "BNB"))


def test_funding_has_its_sign() -> None:
    payment = FundingPayment(
        id="p1", exchange=Venue("BINANCE"), symbol=Symbol("BTCUSDT"), amount=D("-1.5"), at=Millis(5)
    )
    (paid,) = list_events(FundingBooked(at=Millis(5), payment=payment))
    assert (paid.kind, paid.received, paid.given, paid.id) == ("funding", (), (Amount(D("1.5"), "USD"),), "p1")


def test_a_short_that_was_written_down_realises_what_the_price_fell() -> None:
    holding = Holding(
        id="pos_1", symbol=Symbol("BTCUSDT"), exchange=Venue("BINANCE"), side=Side.SHORT, quantity=0.1, entry=60_000.0,
        leverage=2, opened=Millis(1),
    )  # fmt: skip
    opened = ManualChange(at=Millis(1), change=PositionOpened(at=Millis(1), position=holding, fee=3.0))
    closed = ManualChange(at=Millis(2), change=PositionClosed(at=Millis(2), id="pos_1", price=59_000.0, fee=2.95))
    events = list_events(opened, closed)
    assert [event.kind for event in events] == ["trade", "fee", "trade", "pnl", "fee"]
    assert events[3].value == Amount(D(100), "USD")
    assert (len(events[0].given), len(events[2].received)) == (1, 1)
