"""What a vetoed trade would have come to, and who took how much of one that was cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.learning import minute
from tests.wire.trades import decision
from zuno.kernel.units import Millis
from zuno.trading.measure.bars import SpanBar
from zuno.trading.model.cycle import RuleChange
from zuno.trading.model.market import Funding, Side
from zuno.trading.model.memory import RuleShare, VetoScore
from zuno.trading.rules.trade_outcomes import (
    BarColumns,
    PlannedTrade,
    SimulatedTrade,
    share_of_veto,
    shares_of_cuts,
    simulate_trade,
    total_vetoes,
)

WANTED = PlannedTrade(minute(0), Side.LONG, 98.0, 104.0, minute(60))


def bar(number: int, low: float, high: float, opened: float = 100.0, close: float = 100.0) -> SpanBar:
    return SpanBar(minute(number), minute(number + 1), opened, high, low, close)


END = minute(60)


def play(*bars: SpanBar, now: Millis = END, wanted: PlannedTrade = WANTED, **given: Any) -> SimulatedTrade | None:
    asked: dict[str, Any] = {"funding": [], "fees_pct": 0.0, "assumed": False} | given
    return simulate_trade(wanted, BarColumns(bars), now=now, **asked)


def test_it_is_filled_at_the_next_open_and_ends_at_the_first_level() -> None:
    missed = bar(-1, 90, 110)
    won = play(missed, bar(0, 99, 101), bar(1, 99, 105), bar(2, 90, 99))
    assert won == SimulatedTrade("target", minute(2), 4.0, 2.0)
    both = play(bar(0, 97, 105))
    assert both is not None
    assert (both.exit, both.r) == ("stop", pytest.approx(-1))
    gap = play(bar(0, 99, 101), bar(1, 95, 97, opened=96))
    assert gap is not None
    assert gap.pct == pytest.approx(-4.0)


@pytest.mark.parametrize(
    ("side", "stop", "target", "opened", "low", "high", "how", "pct"),
    [
        (Side.LONG, 98.0, 104.0, 96.0, 95.0, 97.0, "stop", -4.0),
        (Side.LONG, 98.0, 104.0, 106.0, 105.0, 107.0, "target", 6.0),
        (Side.LONG, 98.0, 104.0, 106.0, 90.0, 107.0, "target", 6.0),  # at the target before it fell
        (Side.LONG, 98.0, 104.0, 97.0, 90.0, 107.0, "stop", -3.0),
        (Side.LONG, 98.0, 104.0, 98.0, 98.0, 107.0, "stop", -2.0),
        (Side.LONG, 98.0, 104.0, 99.0, 97.0, 100.0, "stop", -2.0),
        (Side.SHORT, 102.0, 96.0, 104.0, 103.0, 105.0, "stop", -4.0),
        (Side.SHORT, 102.0, 96.0, 94.0, 93.0, 103.0, "target", 6.0),
        (Side.SHORT, 102.0, 96.0, 99.0, 95.0, 101.0, "target", 4.0),
    ],
)
def test_a_bar_that_opens_beyond_a_level_fills_at_its_open(
    side: Side, stop: float, target: float, opened: float, low: float, high: float, how: str, pct: float
) -> None:
    wanted = PlannedTrade(minute(0), side, stop, target, minute(60))
    played = play(bar(0, 99, 101), bar(1, low, high, opened=opened), wanted=wanted)
    assert played is not None
    assert (played.exit, played.pct) == (how, pytest.approx(pct))


def test_it_is_resolved_only_when_a_level_was_touched_or_its_hold_is_over() -> None:
    quiet = [bar(number, 99, 101, close=101) for number in range(60)]
    assert play(*quiet, now=minute(59)) is None
    over = play(*quiet, now=minute(60))
    assert over == SimulatedTrade("time", END, 1.0, 0.5)
    assert play(now=minute(30)) is None
    assert play(now=minute(60)) is None, "nothing was recorded of it yet"
    assert play(*quiet[:59], now=minute(90)) is None, "the end of its hold was not recorded yet"
    hour = SpanBar(minute(0), minute(90), 100, 101, 99, 100)
    assert play(*quiet[:59], hour, now=minute(90)) == over, "a coarser bar shows that the market went on"
    late = play(bar(60, 99, 101), now=minute(90))
    assert late == SimulatedTrade("unfilled", minute(60), 0.0, 0.0)
    beyond = play(bar(0, 104, 106, opened=105))
    assert beyond == SimulatedTrade("unfilled", minute(1), 0.0, 0.0)


def test_fees_and_funding_are_charged_to_it() -> None:
    path = [bar(0, 99, 101), bar(1, 99, 105)]
    paid = [Funding(minute(1), 0.001, 8), Funding(minute(30), 0.5, 8)]
    long = play(*path, fees_pct=0.1, funding=paid)
    assert long is not None
    assert long.pct == pytest.approx(4 - 0.1 - 0.1)
    short = play(
        bar(0, 99, 101),
        bar(1, 95, 101),
        wanted=PlannedTrade(minute(0), Side.SHORT, 102.0, 96.0, minute(60)),
        fees_pct=0.1,
        funding=paid,
    )
    assert short is not None
    assert short.pct == pytest.approx(4 - 0.1 + 0.1)


_range = st.tuples(st.floats(90, 110), st.floats(90, 110)).map(sorted)


@given(ranges=st.lists(_range, min_size=1, max_size=40), cut=st.integers(1, 40))
def test_what_comes_after_a_moment_changes_nothing_that_was_known_at_it(ranges: list[list[float]], cut: int) -> None:
    bars = [bar(number, low, high, low, high) for number, (low, high) in enumerate(ranges)]
    then = play(*bars, now=minute(cut))
    assert then == play(*bars[:cut], now=minute(cut))
    later = play(*bars, now=minute(60))
    assert then is None or then == later, "what is resolved stays as it is"
    assert then is None or then.resolved <= minute(cut)


def change(by: str, field: str, old: Any, new: Any) -> RuleChange:
    return RuleChange(by=by, field=field, from_=old, to=new, why="")


def test_each_rule_has_the_share_it_took() -> None:
    """Of 40 % at 2×: the budget leaves half, the officer one times, the guard half of what is left."""
    found = shares_of_cuts(
        decision(),
        [
            change("risk_budget", "allocation_pct", 40, 20),
            change("cro_1_leverage (unknown)", "leverage", 2, 1),
            change("cro_6_style", "execution_style", "PASSIVE_MAKER", "SMART_DCA"),
            change("leverage_guard", "legs.BINANCE.margin", 100.0, 50.0),
        ],
    )
    assert found == (
        RuleShare(rule="risk_budget", owner="desk", share=0.5),
        RuleShare(rule="cro_1_leverage", owner="cro", share=0.25),
        RuleShare(rule="leverage_guard", owner="guard", share=0.125),
    )
    assert share_of_veto("judge_ev") == RuleShare(rule="judge_ev", owner="expectancy", share=1.0)
    assert not shares_of_cuts(decision(), [])


def score(r: float, *rules: RuleShare, how: str = "stop") -> VetoScore:
    return VetoScore.model_validate(
        {
            "id": "veto_1",
            "run": "run_1",
            "account": None,
            "origin": "here",
            "symbol": "BTCUSDT",
            "mode": "swing",
            "side": "long",
            "regime": "RANGE_BOUND",
            "judge": "rules",
            "decided": 1,
            "resolved": 2,
            "exit": how,
            "pct": 2 * r,
            "r": r,
            "rules": rules,
        }
    )


def test_a_veto_saves_the_loss_and_costs_the_gain_that_was_not_made() -> None:
    veto, cut = share_of_veto("expectancy"), RuleShare(rule="leverage_guard", owner="guard", share=0.5)
    expectancy, guard = total_vetoes([score(-1, veto), score(2, veto), score(0, veto, how="unfilled"), score(2, cut)])
    assert (expectancy.rule, expectancy.n, expectancy.saved_trades, expectancy.cost_trades) == ("expectancy", 3, 1, 1)
    assert (expectancy.total_r, expectancy.unfilled, expectancy.vetoes) == (-1, 1, 3)
    assert expectancy.mean_r == pytest.approx(-1 / 3)
    assert (guard.rule, guard.vetoes, guard.total_r, guard.error_r) == ("leverage_guard", 0, -1, None)
    assert guard.mean_pct == pytest.approx(-2)
