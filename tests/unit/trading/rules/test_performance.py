"""How trades came out: figures by hand, and what holds for any trades and any curve."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.accounts import FUTURES, SPOT, decimal_rates
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.market import DAY_MS, HOUR_MS, Side
from zuno.trading.model.trade_events import ExitReason, TradeSummary
from zuno.trading.rules.performance import (
    AccountStep,
    Close,
    EquityPoint,
    GroupBy,
    OpenQuantity,
    drawdown_percents,
    find_max_drawdown,
    group_trades,
    mark_steps,
    measure_trades,
    risk_multiple,
)

MONDAY = 1_767_571_200_000  # 2026-01-05T00:00Z
WON = Decimal(1_400)


def trade(
    number: int, net: str, *, closed: int = MONDAY, exchange: Venue = Venue("BINANCE"), **changed: object
) -> TradeSummary:
    """Two coins from 100 with a stop at 95: R is 10."""
    fees, funding = Decimal("0.4"), Decimal("-0.1")
    plain = TradeSummary(
        trade=f"trade_{number}",
        intent=f"intent_{number}",
        decision=None,
        exchange=exchange,
        symbol=Symbol("BTCUSDT"),
        side=Side.LONG,
        mode=None,
        opened=Millis(closed - 6 * HOUR_MS),
        closed=Millis(closed),
        quantity=Decimal(2),
        entry=Decimal(100),
        exit=Decimal(101),
        stop=Decimal(95),
        target=Decimal(110),
        gross_pnl=Decimal(net) + fees - funding,
        fees=fees,
        funding=funding,
        net_pnl=Decimal(net),
        reason=ExitReason.TARGET if Decimal(net) > 0 else ExitReason.STOP,
        exploration=False,
        judge=None,
        family=None,
        edge=None,
        llm_cost_usd=Decimal("0.02"),
    )
    return plain.model_copy(update=changed)


def test_figures_by_hand() -> None:
    """+20, −10, −5, +15: 35 over 15; 2R, −1R, −0.5R, 1.5R; 5 a trade."""
    nets = ("20", "-10", "-5", "15")
    found = measure_trades(
        [trade(i, net, closed=MONDAY + i * HOUR_MS) for i, net in enumerate(nets)], decimal_rates(None)
    )
    assert (found.trades, found.wins, found.losses, found.win_rate) == (4, 2, 2, Decimal("0.5"))
    assert (found.net_pnl, found.gross_pnl) == (Decimal(20), Decimal(22))
    assert (found.fees, found.funding, found.model_cost) == (Decimal("1.6"), Decimal("-0.4"), Decimal("0.08"))
    assert found.profit_factor == Decimal(35) / 15
    assert (found.expectancy, found.expectancy_r, found.r_trades) == (Decimal(5), Decimal("0.5"), 4)
    assert (found.best, found.worst) == (Decimal(20), Decimal(-10))
    assert found.mean_duration_ms == 6 * HOUR_MS


def test_no_trade_has_no_rate() -> None:
    found = measure_trades([], decimal_rates(WON))
    assert (found.trades, found.win_rate, found.profit_factor, found.expectancy_r) == (0, None, None, None)
    assert (found.mean_duration_ms, found.best, found.expectancy) == (None, None, None)


def test_small_gains_and_a_large_loss_are_a_gain_in_r_and_a_loss_in_money() -> None:
    """+12.5 of 10 at risk is 1.25 R, −25 of 25 at risk is −1 R."""
    large = trade(2, "-25", quantity=Decimal(5))
    found = measure_trades([trade(1, "12.5"), large], decimal_rates(None))
    assert (found.expectancy, found.expectancy_r, found.r_trades) == (Decimal("-6.25"), Decimal("0.125"), 2)


def test_won_are_dollars_at_a_rate_and_nothing_without_one() -> None:
    trades = [trade(1, "14000", exchange=Venue("UPBIT")), trade(2, "5")]
    assert measure_trades(trades, decimal_rates(WON)).net_pnl == 15
    without = measure_trades(trades, decimal_rates(None))
    assert (without.net_pnl, without.trades, without.unconverted) == (5, 1, 1)


def test_a_trade_without_a_stop_of_its_own_has_no_r() -> None:
    bare = trade(1, "7", stop=None)
    assert risk_multiple(bare) is None
    assert risk_multiple(trade(2, "10").model_copy(update={"sleeve": "trend"})) is None
    found = measure_trades([bare, trade(2, "10")], decimal_rates(None))
    assert (found.expectancy_r, found.r_trades) == (1, 1)


def test_groups_are_named_by_the_close() -> None:
    sunday = MONDAY - 1
    trades = [trade(1, "5", closed=sunday), trade(2, "-5", symbol=Symbol("ETHUSDT"), side=Side.SHORT)]
    names = {by: list(group_trades(trades, by)) for by in GroupBy}
    assert names == {
        GroupBy.DAY: ["2026-01-04", "2026-01-05"],
        GroupBy.WEEK: ["2025-12-29", "2026-01-05"],
        GroupBy.MONTH: ["2026-01"],
        GroupBy.SYMBOL: ["BTCUSDT", "ETHUSDT"],
        GroupBy.EXIT: ["stop", "target"],
        GroupBy.SLEEVE: ["debate"],
        GroupBy.SIDE: ["long", "short"],
    }


def test_an_equity_curve_by_hand() -> None:
    """2,000 dollars and 1,400,000 won; 0.1 BTC long from 100, then a tenth at Upbit; closes of 110 and 90."""
    steps = [
        AccountStep(Millis(0), {FUTURES: Decimal(2_000), SPOT: Decimal(1_400_000)}),
        AccountStep(
            Millis(10),
            {FUTURES: Decimal(1_999), SPOT: Decimal(1_400_000)},
            (OpenQuantity(Venue("BINANCE"), Symbol("BTCUSDT"), Decimal(10), Decimal(100)),),
        ),
        AccountStep(
            Millis(30),
            {FUTURES: Decimal(1_999), SPOT: Decimal(1_260_000)},
            (
                OpenQuantity(Venue("BINANCE"), Symbol("BTCUSDT"), Decimal(-10), Decimal(100)),
                OpenQuantity(Venue("UPBIT"), Symbol("BTCUSDT"), Decimal(1), Decimal(140_000)),
            ),
        ),
    ]
    closes = {Symbol("BTCUSDT"): [Close(Millis(5), Decimal(100)), *(Close(Millis(t), Decimal(p)) for t, p in PRICES)]}
    marked = mark_steps(steps, closes, decimal_rates(WON), Millis(50))
    points = [EquityPoint(moment.at, moment.equity) for moment in marked]
    assert [(point.at, point.equity) for point in points] == [
        (0, 3_000),
        (5, 3_000),
        (10, 2_999),
        (20, 3_099),
        (30, 1_999 - 100 + 900 + 110),
        (40, 1_999 + 100 + 900 + 90),
        (50, 1_999 + 100 + 900 + 90),
    ]
    fall = find_max_drawdown(points)
    assert fall is not None
    assert (fall.amount, fall.peak_at, fall.trough_at) == (190, 20, 30)
    assert fall.percent == Decimal(190) / 3_099 * 100


PRICES = ((20, 110), (40, 90))


def test_what_has_no_price_has_no_point() -> None:
    held = (OpenQuantity(Venue("BINANCE"), Symbol("ETHUSDT"), Decimal(1), Decimal(100)),)
    steps = [AccountStep(Millis(0), {FUTURES: Decimal(10), SPOT: Decimal(0)}, held)]
    assert mark_steps(steps, {}, decimal_rates(None), Millis(9)) == ()
    closes = {Symbol("BTCUSDT"): [Close(Millis(9), Decimal(1))]}
    assert mark_steps([], closes, decimal_rates(None), Millis(9)) == (), "an account without a past, at a close"
    assert find_max_drawdown(()) is None


MONEY = st.decimals(-1_000, 1_000, places=2)


@given(st.lists(st.tuples(MONEY, st.integers(0, 40)), max_size=12), st.sampled_from(GroupBy))
def test_groups_add_up_to_the_whole(results: list[tuple[Decimal, int]], by: GroupBy) -> None:
    trades = [trade(i, str(net), closed=MONDAY + day * DAY_MS) for i, (net, day) in enumerate(results)]
    whole = measure_trades(trades, decimal_rates(WON))
    parts = [measure_trades(group, decimal_rates(WON)) for group in group_trades(trades, by).values()]
    for figure in ("trades", "wins", "losses", "net_pnl", "gross_pnl", "fees", "funding", "model_cost"):
        assert sum(getattr(part, figure) for part in parts) == getattr(whole, figure)
    assert whole.gross_pnl - whole.fees + whole.funding == whole.net_pnl
    assert measure_trades(reversed(trades), decimal_rates(WON)) == whole


@given(st.lists(MONEY, min_size=1, max_size=30))
def test_a_drawdown_is_the_deepest_of_the_curve_that_is_drawn(equities: list[Decimal]) -> None:
    curve = [EquityPoint(Millis(i), equity) for i, equity in enumerate(equities)]
    found = find_max_drawdown(curve)
    assert found is not None
    assert found.peak_at <= found.trough_at
    assert found.amount == equities[found.peak_at] - equities[found.trough_at]
    percents = drawdown_percents(curve)
    assert all(percent is None or percent <= 0 for percent in percents)
    deepest = min((percent for percent in percents if percent is not None), default=Decimal(0))
    assert (found.percent or Decimal(0)) == pytest.approx(-deepest)
    if not deepest:
        assert found.amount == max(a - b for i, a in enumerate(equities) for b in equities[i:])
