"""What the market did while a trade was held."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.learning import minute, summary
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.measure.bars import SpanBar, select_finest_bars
from zuno.trading.model.market import HOUR_MS, Candle, Side, Timeframe
from zuno.trading.model.memory import Verdict
from zuno.trading.model.trade_events import ExitReason, LevelsSet
from zuno.trading.rules.trade_outcomes import judge_outcome, trace_path


def bar(number: int, low: float, high: float, opened: float | None = None) -> SpanBar:
    return SpanBar(minute(number), minute(number + 1), low if opened is None else opened, high, low, high)


def test_of_the_bar_that_ended_it_nothing_beyond_the_exit_counts() -> None:
    last = bar(9, 97, 105, opened=99)
    stopped = trace_path(summary(), [last])
    assert (stopped.first_touch, stopped.mfe_pct) == ("stop", 0)
    assert stopped.mae_pct == pytest.approx(2)
    won = trace_path(summary(exit=Decimal(104), reason=ExitReason.TARGET), [bar(9, 98.5, 105, opened=99)])
    assert won.first_touch == "target"
    assert (won.mfe_pct, won.mae_pct) == pytest.approx((4, 1.5))
    slipped = summary(exit=Decimal("103.9"), reason=ExitReason.TARGET)
    assert trace_path(slipped, [bar(9, 99, 105)]).mfe_pct == pytest.approx(4), "the price was at the target"


def test_behaviour_18_a_trade_that_later_hits_its_stop_is_a_failure() -> None:
    """However well it stood before: the verdict is the path's, not the entry's."""
    path = trace_path(summary(), [bar(0, 100, 103.9), bar(4, 99, 102), bar(8, 97.5, 99, opened=98.5)])
    assert path.first_touch == "stop"
    assert path.mfe_pct == pytest.approx(3.9)
    assert path.mae_pct == pytest.approx(2.0), "below its stop it was not held any more"
    assert path.r == pytest.approx(-1.05)
    assert judge_outcome(path, summary().net_pnl) is Verdict.FAILURE


@pytest.mark.parametrize(
    ("side", "bars", "touched"),
    [
        (Side.LONG, [bar(1, 99, 105), bar(2, 97, 99)], "target"),
        (Side.LONG, [bar(1, 97, 105)], "stop"),
        (Side.SHORT, [bar(1, 95, 101), bar(2, 101, 103)], "target"),
        (Side.SHORT, [bar(1, 95, 103)], "stop"),
        (Side.LONG, [bar(1, 99, 101)], None),
    ],
)
def test_a_bar_that_touches_both_levels_touched_the_stop_first(
    side: Side, bars: list[SpanBar], touched: str | None
) -> None:
    way = 1 if side is Side.LONG else -1
    trade = summary(
        side=side,
        stop=Decimal(100 - 2 * way),
        target=Decimal(100 + 4 * way),
        exit=Decimal(100),
        reason=ExitReason.OWNER,
    )
    assert trace_path(trade, bars).first_touch == touched


def test_bars_that_lie_partly_outside_do_not_count() -> None:
    """What such a bar touched it may have touched before the entry or after the exit."""
    trade = summary(opened=minute(1) + 1, closed=minute(5) - 1, exit=Decimal(101), reason=ExitReason.OWNER)
    path = trace_path(trade, [bar(1, 90, 110), bar(2, 99.5, 100.5), bar(4, 90, 110)])
    assert (path.first_touch, path.bars) == (None, 1)
    assert path.mae_pct == pytest.approx(0.5)
    assert path.mfe_pct == pytest.approx(1.0), "the exit itself was the best of it"
    assert path.uncovered_hours == pytest.approx((4 - 1) / 60, abs=1e-4)


def test_without_any_bar_the_exit_speaks() -> None:
    path = trace_path(summary(exit=Decimal("97.9")), [])
    assert (path.first_touch, path.bars, path.mfe_pct) == ("stop", 0, 0)
    slipped = summary(exit=Decimal("103.95"), reason=ExitReason.TARGET)
    assert trace_path(slipped, []).first_touch == "target"
    between = summary(exit=Decimal("101"), reason=ExitReason.OWNER)
    assert trace_path(between, []).first_touch is None


def change(at: int, stop: object, target: object, by: Literal["owner", "ruling", "trail"] = "owner") -> LevelsSet:
    levels = {"stop": Decimal(str(stop)), "target": None if target is None else Decimal(str(target))}
    place = {"exchange": Venue("BINANCE"), "symbol": Symbol("BTCUSDT"), "trade": "trd_1"}
    return LevelsSet(at=minute(at), hold_until=None, by=by, **levels, **place)


def test_what_a_level_ended_has_touched_it() -> None:
    """A raised stop, which is not the one R is counted by, and the stop of what ran on behind its target."""
    raised = summary(exit=Decimal("101"))
    assert trace_path(raised, [], [change(5, 101, 104)]).first_touch == "stop"
    assert trace_path(raised, [bar(1, 99, 105)]).first_touch == "stop", "its exchange goes by the mark"
    assert trace_path(raised, [bar(1, 99, 105)], [change(2, 100, None, "trail")]).first_touch == "target"
    reached = summary(exit=Decimal("102"), reason=ExitReason.TARGET)
    assert trace_path(reached, [bar(1, 97, 100)], [change(5, 98, 102)]).first_touch == "target"


@pytest.mark.parametrize(
    ("bars", "touched"),
    [
        ([bar(1, 98.5, 101)], None),  # before the stop was raised to 99
        ([bar(5, 98.5, 101)], None),  # in the minute of it
        ([bar(6, 98.5, 101)], "stop"),
        ([bar(1, 99, 103.5)], None),  # before the target was brought to 103
        ([bar(6, 99.5, 103.5)], "target"),
        ([bar(5, 97.9, 104.1)], None),
    ],
)
def test_a_bar_counts_for_a_level_that_stood_in_all_of_it(bars: list[SpanBar], touched: str | None) -> None:
    trade = summary(exit=Decimal(101), reason=ExitReason.OWNER)
    moved = change(5, 99, 103).model_copy(update={"at": minute(5) + 30_000})
    assert trace_path(trade, bars, [moved]).first_touch == touched
    kept = moved.model_copy(update={"target": Decimal(104)})
    assert trace_path(trade, [bar(5, 99.5, 104.1)], [kept]).first_touch == "target", "nobody moved that one"


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"exit": Decimal(102)}, Verdict.SUCCESS),
        ({"exit": Decimal("100.2")}, Verdict.FLAT),
        ({"exit": Decimal("100.2"), "funding": Decimal("-0.5")}, Verdict.FAILURE),
        ({"exit": Decimal(101), "stop": None}, Verdict.SUCCESS),
        ({"exit": Decimal(100), "stop": None}, Verdict.FAILURE),
    ],
)
def test_the_verdict_is_net_of_fees_and_funding(changed: dict[str, Any], verdict: Verdict) -> None:
    trade = summary(reason=ExitReason.OWNER, **changed)
    assert judge_outcome(trace_path(trade, []), trade.net_pnl) is verdict


_prices = st.tuples(st.floats(50, 150), st.floats(50, 150)).map(sorted)


@given(ranges=st.lists(_prices, min_size=1, max_size=30), cut=st.integers(0, 30))
def test_what_happens_after_the_exit_changes_nothing(ranges: list[list[float]], cut: int) -> None:
    bars = [bar(number, low, high) for number, (low, high) in enumerate(ranges)]
    trade = summary(closed=minute(min(cut, len(bars))))
    assert trace_path(trade, bars) == trace_path(trade, bars[:cut])


@given(ranges=st.lists(_prices, min_size=1, max_size=20))
def test_a_mirrored_market_gives_the_mirrored_path(ranges: list[list[float]]) -> None:
    def build(mirrored: bool) -> list[SpanBar]:
        return [
            bar(number, 200 - high, 200 - low) if mirrored else bar(number, low, high)
            for number, (low, high) in enumerate(ranges)
        ]

    here = summary(closed=minute(20), reason=ExitReason.OWNER)
    there = summary(
        closed=minute(20),
        side=Side.SHORT,
        stop=Decimal(102),
        target=Decimal(96),
        exit=Decimal(102),
        reason=ExitReason.OWNER,
    )
    path, mirror = trace_path(here, build(False)), trace_path(there, build(True))
    assert path.first_touch == mirror.first_touch
    assert path.mfe_pct == pytest.approx(mirror.mfe_pct, abs=1e-9)
    assert path.mae_pct == pytest.approx(mirror.mae_pct, abs=1e-9)


def test_coarser_bars_fill_the_gaps_of_finer_ones() -> None:
    hour = Timeframe.H1.floor(minute(0))
    minutes = [Candle(minute(number), 1, 1, 1, 1, 1.0, None) for number in range(60)]
    coarse = [Candle(hour + number * HOUR_MS, 1, 2, 1, 2, 1.0, None) for number in range(2)]  # type: ignore[arg-type]
    found = select_finest_bars([(Timeframe.M1, minutes), (Timeframe.H1, coarse)])
    assert len(found) == 61
    holed = select_finest_bars([(Timeframe.M1, minutes[1:]), (Timeframe.H1, coarse)])
    assert sum(span.end - span.start == HOUR_MS for span in holed) == 2
