"""Fee cover of recorded pools, and being in or out by it."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tests.paths import REAL_EVENTS, REAL_MINUTES, SHARED_DATA
from tests.wire.pool_minutes import START, draw_minutes
from zuno.adapters.imports.pool_events import read_pool_record
from zuno.kernel.units import Seconds
from zuno.lab.lp.arms import STAY, ArmAction, stay_while_it_pays
from zuno.lab.lp.cover import DAY, days_of, measure_record, measure_until, path_of_minutes, path_of_tape, predict_weeks
from zuno.lab.lp.days import build_days_view
from zuno.lab.lp.debate_checks import change_minutes, scramble_minutes
from zuno.lp.model.cover import FeeCover, PoolDay
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.model.tape import PoolDays, PoolTape


@pytest.mark.slow
def test_a_real_pool_by_the_minute() -> None:
    if not REAL_MINUTES.is_dir():
        pytest.skip("the minute rows of a real pool are not on this machine")
    recorded = read_pool_record(REAL_MINUTES)
    assert isinstance(recorded, PoolMinutes)
    found = measure_record(path_of_minutes(recorded, 500))
    assert found.cover is not None
    assert (found.minutes, found.cover.days) == (5, 22)
    assert found.cover.ratio == pytest.approx(0.79, abs=0.02)
    assert set(found.by_minutes) == {5, 30, 60}
    assert (found.weeks.weeks, found.weeks.correlation) == (1, None)


@pytest.mark.slow
def test_a_real_pool_by_its_events() -> None:
    if not REAL_EVENTS.exists():
        pytest.skip("the events of a real pool are not on this machine")
    tape = read_pool_record(REAL_EVENTS)
    assert isinstance(tape, PoolTape)
    found = measure_record(path_of_tape(tape, 500))
    assert found.cover is not None
    assert (found.minutes, found.cover.ratio) == (60, pytest.approx(0.98, abs=0.03))
    assert found.by_minutes == pytest.approx({5: 1.30, 30: 1.03, 60: 0.98}, abs=0.02)


def test_a_real_pool_by_day() -> None:
    folder = SHARED_DATA / "pool-daily"
    if not folder.is_dir():
        pytest.skip("the days of a real pool are not on this machine")
    record = read_pool_record(folder)
    assert isinstance(record, PoolDays)
    view = build_days_view(record, "", "", 10_000)
    (full,) = view.arms
    assert (full.fees_pct_year, full.lvr_pct_year) == (pytest.approx(1.60, abs=0.01), pytest.approx(2.07, abs=0.01))
    assert (full.ci95, view.minutes, view.weeks.weeks) == (None, 1_440, 138)
    assert len(days_of(record)) == 980


def test_nothing_after_a_moment_is_looked_at() -> None:
    recorded = draw_minutes(60 * 24 * 9, step=18)
    at = Seconds(START // 1000 + 8 * DAY)
    minutes = scramble_minutes(recorded.minutes, change_minutes(recorded.minutes), at)
    other = PoolMinutes(minutes, recorded.repairs)
    own = measure_until(path_of_minutes(recorded, 500), at)
    assert own is not None
    assert own.days == 8
    assert measure_until(path_of_minutes(other, 500), at) == own
    assert measure_until(path_of_minutes(other, 500), Seconds(at + DAY)) != own
    assert measure_until(path_of_minutes(recorded, 500), Seconds(START // 1000 + DAY)) is None


def draw_days(count: int, cover: Callable[[int], float], seed: int = 3) -> list[PoolDay]:
    dice = random.Random(seed)
    days = []
    for day in range(count):
        lvr = dice.uniform(0.5, 1.5)
        days.append(PoolDay(day, lvr * cover(day) * dice.uniform(0.9, 1.1), lvr))
    return days


def test_a_fortnight_predicts_the_week_after_where_pools_stay_what_they_are() -> None:
    lasting = predict_weeks(draw_days(1_000, lambda day: 1.6 if day // 100 % 2 else 0.6))
    assert lasting.weeks == (1_000 - 14) // 7
    assert lasting.correlation is not None
    assert lasting.ci95 is not None
    assert 0.6 < lasting.ci95[0] < lasting.correlation < lasting.ci95[1]
    assert (lasting.after_paying.fees_over_lvr or 0) > 1.4 > 0.8 > (lasting.after_not_paying.fees_over_lvr or 1)
    nothing = predict_weeks(draw_days(1_000, lambda day: 1.0))
    assert nothing.ci95 is not None
    assert nothing.ci95[0] < 0 < nothing.ci95[1]
    short = predict_weeks(draw_days(40, lambda day: 1.0))
    assert (short.weeks, short.correlation, short.smallest) == (3, None, None)


@pytest.mark.parametrize(
    ("inside", "low", "high", "days", "act"),
    [
        (True, 0.7, 0.9, 7, "close"),
        (True, 0.7, 0.9, 6, "stay"),
        (True, 0.85, 1.05, 14, "stay"),
        (False, 1.04, 1.3, 14, "open"),
        (False, 1.04, 1.3, 13, "stay"),
        (False, 1.01, 1.3, 14, "stay"),
        (False, 0.7, 0.9, 14, "stay"),
    ],
)
async def test_in_or_out_by_fee_cover_with_its_error(
    inside: bool, low: float, high: float, days: int, act: str
) -> None:
    held = SimpleNamespace(contains=lambda tick: True) if inside else None
    state = SimpleNamespace(tick=200_000, key=SimpleNamespace(tick_spacing=10))
    pool: Any = SimpleNamespace(range=held, state=lambda: state, head=SimpleNamespace(timestamp=Seconds(5)))
    decide = stay_while_it_pays(Fraction(1, 20), lambda at: FeeCover((low + high) / 2, low, high, days, 0.1))
    done = await decide(pool)
    assert {"close": done.close, "open": done.range is not None, "stay": done == STAY}[act]
    assert await stay_while_it_pays(Fraction(1, 20), lambda at: None)(pool) == ArmAction()
