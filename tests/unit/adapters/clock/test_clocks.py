"""The two clocks: neither runs backwards."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.fakes.clock import FixedClock
from zuno.adapters.clock.system import SystemClock, unix_millis
from zuno.kernel.clock import Clock
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds


@given(st.lists(st.floats(min_value=1, max_value=2e9), min_size=1))
def test_the_system_clock_never_runs_backwards(readings: list[float]) -> None:
    source = iter(readings)
    clock: Clock = SystemClock(lambda: next(source))
    seen = [clock.now() for _ in readings]
    assert seen == sorted(seen)
    assert seen[-1] == int(max(readings))
    assert all(type(moment) is int for moment in seen)


def test_the_system_clock_tells_the_machines_time() -> None:
    before = int(time.time())
    assert before <= SystemClock().now() <= time.time()


@pytest.mark.parametrize("seconds", [-18_000_000.0, -0.5, 0.0])
def test_a_clock_before_1970_is_told_plainly(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    with pytest.raises(Unavailable, match="1970"):
        SystemClock(lambda: seconds).now()
    monkeypatch.setattr(time, "time_ns", lambda: int(seconds * 1e9))
    with pytest.raises(Unavailable, match="1970"):
        unix_millis()


def test_the_fixed_clock_stands_until_advanced() -> None:
    clock = FixedClock(Seconds(1000))
    port: Clock = clock
    assert (port.now(), port.now()) == (1000, 1000)
    assert clock.advance(Seconds(60)) == 1060
    assert clock.advance(Seconds(0)) == port.now() == 1060


def test_the_fixed_clock_cannot_be_turned_back() -> None:
    clock = FixedClock(Seconds(1000))
    with pytest.raises(ValueError, match="advance"):
        clock.advance(Seconds(-1))
    assert clock.now() == 1000
