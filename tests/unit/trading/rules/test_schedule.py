"""The schedule: one job per slot, the same name whenever it is asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode
from zuno.trading.watch.desk_loop import CADENCE, JobKind, current_jobs, next_slot

DAY = 20_000 * DAY_MS


def test_swing_runs_every_four_hours_and_position_once_a_day() -> None:
    for mode, count in ((Mode.SWING, 6), (Mode.POSITION, 1)):
        jobs = {
            job.name("paper:x")
            for minute in range(0, 24 * 60, 7)
            for job in current_jobs([Symbol("BTCUSDT")], mode, Millis(DAY + minute * 60_000))
            if job.kind is JobKind.CYCLE
        }
        assert len(jobs) == count
    assert next_slot(Mode.SWING, Millis(DAY)) == DAY + 4 * HOUR_MS
    assert next_slot(Mode.POSITION, Millis(DAY + 1)) == DAY + DAY_MS


@given(st.integers(0, 40_000 * DAY_MS), st.sampled_from(list(Mode)))
def test_a_restart_at_any_moment_finds_the_job_of_its_slot(now: int, mode: Mode) -> None:
    jobs = current_jobs(DEFAULT_SYMBOLS, mode, Millis(now))
    assert [job.name("a") for job in jobs] == [
        job.name("a") for job in current_jobs(DEFAULT_SYMBOLS, mode, Millis(now))
    ]
    for job in jobs:
        span = CADENCE[mode] if job.kind is JobKind.CYCLE else DAY_MS
        assert job.slot <= now < job.slot + span
    assert next_slot(mode, Millis(now)) > now


def test_jobs_of_other_accounts_symbols_modes_and_slots_have_other_names() -> None:
    names = [
        job.name(account)
        for account in ("paper:x", "paper:x:second")
        for mode in Mode
        for at in (DAY, DAY + DAY_MS)
        for job in current_jobs(DEFAULT_SYMBOLS, mode, Millis(at))
        if job.kind is JobKind.CYCLE
    ]
    assert len(set(names)) == len(names) == 16
