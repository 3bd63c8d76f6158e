"""Axes a reader can count on: round ticks, dates at the beginnings of days, months and years, numbers in few digits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor, isfinite, log10
from typing import Final

from zuno.kernel.units import Millis
from zuno.trading.model.chart import Axis, Scale, Tick, short_text
from zuno.trading.model.market import DAY_MS, Timeframe

LOG_FROM: Final = 3.0
"""Highest over lowest price from which equal distances are equal ratios."""
PRICE_TICKS: Final = 12
VALUE_TICKS: Final = 4
TIME_TICKS: Final = 12
_MARGIN: Final = 0.05
_MANTISSAS: Final = (
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0),
    (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0),
)


def price_axis(low: float, high: float) -> Axis:
    """Prices above zero, with a little room either side."""
    if high < LOG_FROM * low:
        return money_axis((low, high))
    if not isfinite(high / low):
        raise ValueError(f"from {low:g} to {high:g} is no range of an axis")
    room = (high / low) ** _MARGIN
    bottom, top = low / room, high * room
    ticks = (Tick(at, f"{at:,.{_places(at / 10)}f}") for at in _log_ticks(bottom, top))
    return Axis(bottom, top, Scale.LOG, tuple(ticks))


def value_axis(values: Sequence[float], *, from_zero: bool) -> Axis:
    ends = (*values, 0.0) if from_zero else values
    return _linear(min(ends), max(ends), VALUE_TICKS, lambda at, step: short_text(at))


def money_axis(values: Sequence[float]) -> Axis:
    return _linear(min(values), max(values), PRICE_TICKS, lambda at, step: f"{at:,.{_places(step)}f}")


def calendar_ticks(first: Millis, last: Millis) -> tuple[Tick, ...]:
    """At shares of the time between two moments: the finest calendar steps that leave room for their labels."""
    return _calendar((*_HOURS, *_STEPS), first, last, max(1, last - first))


def _linear(low: float, high: float, most: int, label: Callable[[float, float], str]) -> Axis:
    """A linear axis with at most `most` + 1 ticks; a single value stands in the middle. `ValueError` for ends that are
    not finite."""
    largest = max(abs(low), abs(high))
    # Closer together than doubles tell apart from their rounding is one value.
    room = (high - low) * _MARGIN if high - low > 1e-9 * largest else 0.01 * largest or 1.0
    bottom, top = low - room, high + room
    if not isfinite(top - bottom):
        raise ValueError(f"from {low:g} to {high:g} is no range of an axis")
    step = _round_step((top - bottom) / most)
    places = (step * place for place in range(ceil(bottom / step), floor(top / step) + 1))
    return Axis(bottom, top, Scale.LINEAR, tuple(Tick(at, label(at, step)) for at in places if bottom <= at <= top))


def time_ticks(first: Millis, width: int, timeframe: Timeframe) -> tuple[Tick, ...]:
    """Of places from the bar that opened at `first`: the finest calendar steps that leave room for their labels."""
    steps = (step for step in _STEPS if step is not _STEPS[1] or timeframe.millis < DAY_MS)
    return _calendar(steps, first, first + (width - 1) * timeframe.millis, timeframe.millis)


def day_text(at: int) -> str:
    return f"{_when(at):%Y-%m-%d}"


def moment_text(at: int) -> str:
    return f"{_when(at):%Y-%m-%d %H:%M}"


def _round_step(wanted: float) -> float:
    """The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is no smaller. `ValueError` for what is no step."""
    if not (isfinite(wanted) and wanted > 0):
        raise ValueError(f"{wanted:g} is no step of an axis")
    power = 10.0 ** floor(log10(wanted))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= wanted * (1 - 1e-9))


def _places(step: float) -> int:
    """Digits after the point that tell two ticks apart: a step is 1, 2, 2.5 or 5 times a power of ten."""
    power = floor(log10(step) + 1e-9)
    return max(0, -power + (round(step / 10.0**power, 3) == 2.5)) if step < 10 else 0


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks: list[float] = []
    for mantissas in _MANTISSAS:
        every = (mantissa * 10.0**power for power in powers for mantissa in mantissas)
        ticks = [at for at in every if low <= at <= high]
        if len(ticks) >= PRICE_TICKS // 2:
            break
    return ticks[:: 1 + len(ticks) // (2 * PRICE_TICKS)]


def _when(at: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)


def _millis(day: datetime) -> int:
    return (day - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


_Step = Callable[[datetime], Iterator[datetime]]


def _every(step: timedelta) -> _Step:
    """Hours or days from midnight on; weeks begin on Mondays."""

    def step_starts(start: datetime) -> Iterator[datetime]:
        if step == timedelta(days=7):
            start += timedelta(days=-start.weekday() % 7)
        day = start.replace(hour=0, minute=0, second=0, microsecond=0)
        for count in range(100):
            if (moment := day + step * count) >= start:
                yield moment

    return step_starts


def _months(step: int) -> _Step:
    def month_starts(start: datetime) -> Iterator[datetime]:
        for month in range(start.year * 12, (start.year + 60) * 12, step):
            day = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
            if day >= start:
                yield day

    return month_starts


def _calendar(steps: Iterable[_Step], first: int, last: int, unit: int) -> tuple[Tick, ...]:
    """By the first of these steps of which there are more than one and not too many, in units since `first`."""
    start, end = _when(first), _when(last)
    for step in steps:
        moments = [moment for moment in step(start) if moment <= end]
        if 1 < len(moments) <= TIME_TICKS:
            return tuple(Tick((_millis(moment) - first) / unit, _label(moment, step)) for moment in moments)
    return (Tick(0.0, f"{start:%Y-%m-%d}"),)


_HOURS: Final = tuple(_every(timedelta(hours=hours)) for hours in (1, 3, 6))
_STEPS: Final = (
    *(_every(timedelta(days=days)) for days in (1, 2, 7)),
    *(_months(months) for months in (1, 3, 6, 12, 60)),
)


def _label(day: datetime, step: _Step) -> str:
    if day.hour:
        return f"{day:%H:%M}"
    if step in _STEPS[3:]:
        return f"{day:%Y}" if day.month == 1 else f"{day:%b}"
    return f"{day:%b} {day.day}"
