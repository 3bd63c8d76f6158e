"""Desk, core and hold: each from the desk's first equity on, on the same days, and money that changed its sleeve is no
result of either."""

from __future__ import annotations

from decimal import Decimal as D
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.orders import ZERO
from zuno.trading.rules.equity_lines import CORE, DESK, HOLD, LEAST_DAYS, EquityLine, draw_lines
from zuno.trading.rules.performance import (
    AccountStep,
    EquityPoint,
    MarkedStep,
    OpenQuantity,
    SleeveMoney,
    equity_usd,
)

BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")
BINANCE = Venue("BINANCE")
RATES = {"USD": D(1)}
START = 20_000 * DAY_MS


def moment(
    day: int, whole: str, trend: str | None, capital: str = "0", btc: str = "100", held: str = "0"
) -> MarkedStep:
    """`trend`, `capital`, `held`: cash, capital and bitcoin of that sleeve, entered at 100."""
    quantity = D(held)
    parts = (OpenQuantity(BINANCE, BTC, quantity, D(100), "trend"),) if quantity else ()
    money = () if trend is None else (SleeveMoney("trend", "USD", D(trend), D(capital)),)
    step = AccountStep(Millis(START + day * DAY_MS), {BINANCE: D(whole)}, parts, money)
    marks = {BTC: D(btc), ETH: D(10)}
    equity = equity_usd(step, marks, RATES)
    assert equity is not None
    return MarkedStep(step.at, step, marks, equity)


def ends(marked: list[MarkedStep], *, by_sleeve: bool = False) -> dict[str, D]:
    lines = draw_lines(marked, RATES, (BTC, ETH), by_sleeve=by_sleeve)
    assert len({tuple(point.at for point in line.points) for line in lines}) == 1
    assert {line.points[0].equity for line in lines} == {marked[0].equity}
    return {line.name: line.points[-1].equity for line in lines}


def test_lines_by_hand() -> None:
    """The core has half of 1,000 and makes 10 % of it; bitcoin rises by 10 %, ether stands."""
    marked = [moment(0, "1000", "500", "500", held="5"), moment(1, "1000", "500", "500", "110", held="5")]
    assert ends(marked, by_sleeve=True) == {DESK: 1_050, CORE: 1_100, HOLD: 1_050, "debate": 1_000, "trend": 1_100}


def test_an_account_of_the_debate_has_no_core_and_nothing_traded_no_line() -> None:
    assert ends([moment(0, "1000", None), moment(1, "900", None)]) == {DESK: 900, HOLD: 1_000}
    assert draw_lines([], RATES, (BTC,)) == ()


@given(st.lists(st.tuples(st.integers(-300, 300), st.integers(-9, 9)), min_size=1, max_size=12))
def test_transfers_are_nobodys_result(days: list[tuple[int, int]]) -> None:
    """Money goes to the core and back while it earns some per cent of what it has: its line is these per cents."""
    cash, capital, debate, marked = D(1_000), D(1_000), D(5_000), [moment(0, "6000", "1000", "1000")]
    for number, (moved, percent) in enumerate(days, 1):
        given_ = max(D(moved), -cash / 2)
        before = cash + max(ZERO, given_)  # what comes works that day, what goes worked that day
        gain = before * percent / 100
        cash, capital, debate = cash + given_ + gain, capital + given_, debate - given_
        marked.append(moment(number, str(cash + debate), str(cash), str(capital)))
    grown = list(accumulate((1 + D(percent) / 100 for _, percent in days), lambda one, other: one * other))
    found = ends(marked, by_sleeve=True)
    assert abs(found[CORE] - 6_000 * grown[-1]) < D("1e-9")
    assert abs(found["debate"] - 6_000) < D("1e-9")


def test_the_sleeves_of_a_step_add_up_to_the_account() -> None:
    step = moment(0, "1000", "400", "400", "130", held="2")
    parts = [equity_usd(step.step, step.marks, RATES, (sleeve,)) for sleeve in ("trend", "debate")]
    assert parts == [460, 600]
    assert equity_usd(step.step, step.marks, RATES, ("trend", "debate")) == step.equity == 1_060


def test_a_sharpe_ratio_needs_days() -> None:
    def line(count: int) -> EquityLine:
        worth = accumulate([D(100)] + [D("1.02"), D("0.99")] * (count // 2), lambda one, other: one * other)
        return EquityLine(
            DESK, tuple(EquityPoint(Millis(START + n * DAY_MS), equity) for n, equity in enumerate(worth))
        )

    assert line(LEAST_DAYS - 2).sharpe is None
    sharpe = line(LEAST_DAYS).sharpe
    assert sharpe == pytest.approx(0.005 / (0.015 * (30 / 29) ** 0.5) * 365**0.5)
