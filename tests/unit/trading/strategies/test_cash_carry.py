"""`cash-carry`: its switch, what it needs, and what the days of funding are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, HOUR_MS, Funding
from zuno.trading.strategies.catalogue import STRATEGIES
from zuno.trading.strategies.port import MarketHistory, StrategyView, align_days, build_history

CARRY = STRATEGIES["cash-carry"]


def make_history(rates: Sequence[float | None], *, name: str = "A", spot: bool = True) -> MarketHistory:
    """Funding of each day as a rate a year; None where it is not known."""
    days = tuple(DAY_MS * day for day in range(len(rates)))
    paid = {day: rate / 365 for day, rate in zip(days, rates, strict=True) if rate is not None}
    return MarketHistory(name, days, (100.0,) * len(days), paid, spot)


def weigh(*histories: MarketHistory, days: int) -> list[list[float]]:
    view = StrategyView(DAY_MS * days, {history.name: history for history in histories})
    return [[round(float(weight), 9) for weight in row] for row in CARRY.weigh_days(align_days(view))]


def test_on_above_five_and_off_below_one() -> None:
    rates = [0.06] * 8 + [0.03] * 8 + [0.0] * 8 + [0.03] * 8
    (weights,) = weigh(make_history(rates), days=len(rates))
    assert weights[:6] == [0.0] * 5 + [0.75]
    assert weights[6:20] == [0.75] * 14
    assert weights[-9:] == [0.0] * 9


def test_funding_that_is_missing_switches_it_off() -> None:
    rates: list[float | None] = [0.06] * 10 + [None] + [0.06] * 3 + [None] + [0.06] * 8
    (weights,) = weigh(make_history(rates), days=len(rates))
    assert weights[13] == 0.75  # one of seven days may be missing
    assert weights[14:17] == [0.0] * 3
    targets = CARRY.targets(StrategyView(DAY_MS * 16, {"A": make_history(rates)}))
    assert targets["A"].weight == 0
    assert "5 of the last 7 days" in targets["A"].why


def test_markets_without_spot_or_funding_share_no_capital() -> None:
    histories = [
        make_history([0.06] * 10),
        make_history([0.06] * 10, name="B", spot=False),
        make_history([None] * 10, name="C"),
    ]
    assert [row[-1] for row in weigh(*histories, days=10)] == [0.75, 0.0, 0.0]
    whole = weigh(histories[0], make_history([0.06] * 10, name="B"), days=10)
    assert [row[-1] for row in whole] == [0.375, 0.375]


def test_a_delisted_market_is_left() -> None:
    targets = CARRY.targets(StrategyView(DAY_MS * 20, {"A": make_history([0.06] * 10)}))
    assert targets["A"].weight == 0
    assert "delisted" in targets["A"].why


def test_a_day_of_funding_ends_with_the_print_of_midnight() -> None:
    """Binance stamps a print with the end of its interval, some milliseconds late."""
    prints = [Funding(Millis(HOUR_MS * 8 * place + 4), 0.0001 * place, 8.0) for place in range(1, 8)]
    history = build_history("A", [(0, 1.0)], prints)
    assert history.funding == pytest.approx({0: 0.0006, DAY_MS: 0.0015})
