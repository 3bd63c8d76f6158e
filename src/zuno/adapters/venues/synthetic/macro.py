"""The synthetic economy: figures with their release times, fear and greed, and exchange rates."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from zuno.adapters.venues.synthetic import path
from zuno.adapters.venues.synthetic.candles import SyntheticMarket
from zuno.adapters.venues.synthetic.derivatives import GRID, build_level_batch, mark_polled
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, BINANCE, FRED, UPBIT, USDC_USDT, USDT_KRW, YAHOO
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, MacroRelease, Timeframe, fear_greed, macro, rates
from zuno.trading.ports.series import Batch

DAILY: Final[Mapping[str, tuple[str, float, float, int]]] = {
    "DGS2": (FRED, 4.1, 0.045, 44),
    "DGS10": (FRED, 4.4, 0.05, 44),
    "DTWEXBGS": (FRED, 121.0, 0.003, 0),
    "NASDAQCOM": (FRED, 17_000.0, 0.012, 25),
    "DCOILWTICO": (FRED, 72.0, 0.02, 0),
    "DXY": (YAHOO, 103.0, 0.004, 21),
    "NASDAQ": (YAHOO, 17_000.0, 0.012, 21),
    "GOLD": (YAHOO, 2_300.0, 0.009, 22),
    "OIL": (YAHOO, 72.0, 0.02, 22),
}
"""Source, start, daily deviation (yields: in points, the rest as a share), and hours from the day's start to its
release; 0: on the Monday after."""
SAME: Final[Mapping[str, str]] = {"NASDAQ": "NASDAQCOM", "OIL": "DCOILWTICO"}
"""Figures that two sources publish."""
HOLIDAYS: Final = frozenset({(1, 1), (7, 4), (12, 25)})
MACRO_DAYS: Final = 430


def build_batches(seed: int, leader: SyntheticMarket, krw_rate: Floats) -> list[Batch[Any]]:
    given: list[Batch[Any]] = [Batch(macro(whose, name), _daily(seed, name)) for name, (whose, *_) in DAILY.items()]
    given.append(Batch(macro(FRED, "CPIAUCSL"), list(_prices(seed))))
    given.append(Batch(macro(FRED, "FEDFUNDS"), list(_policy())))
    given.append(_build_fear_greed(seed, leader))
    return given + _rates(seed, krw_rate)


def _daily(seed: int, name: str) -> list[MacroRelease]:
    _, start, far, hours = DAILY[name]
    first = datetime.fromtimestamp(path.END / 1_000, UTC) - timedelta(days=MACRO_DAYS)
    days = [first + timedelta(days=ahead) for ahead in range(MACRO_DAYS)]
    days = [day for day in days if day.weekday() < 5 and (day.month, day.day) not in HOLIDAYS]
    walk = np.cumsum(path.RandomStream(seed, f"macro {SAME.get(name, name)}").normal(size=len(days)) * far)
    values = np.clip(start + walk, 0.1, None) if name.startswith("DGS") else start * exp(walk)
    return [
        MacroRelease(_millis(day), round(value, 4 if start < 1_000 else 2), _release_time(day, hours))
        for day, value in zip(days, values.tolist(), strict=True)
    ]


def _release_time(day: datetime, hours: int) -> Millis:
    """Never on a weekend; weekly releases on the Monday after, at 20:15."""
    out = day + (timedelta(hours=hours) if hours else timedelta(days=7 - day.weekday(), hours=20))
    out += timedelta(days=7 - out.weekday()) if out.weekday() >= 5 else timedelta()
    return Millis(_millis(out) + 15 * MINUTE_MS)


def _prices(seed: int) -> Iterator[MacroRelease]:
    """Consumer prices: released in the middle of the next month, and each January once more, revised."""
    draw, level = path.RandomStream(seed, "macro CPIAUCSL"), 312.0
    for month, after in _months():
        level = round(level * (1 + 0.0022 + float(draw.normal(0.001))), 3)
        released = _millis(after) + 11 * DAY_MS + 13 * HOUR_MS + 30 * MINUTE_MS
        yield MacroRelease(_millis(month), level, Millis(released))
        if month.month == 1:
            yield MacroRelease(_millis(month), round(level + 0.05, 3), Millis(released + 31 * DAY_MS))


def _policy() -> Iterator[MacroRelease]:
    for number, (month, after) in enumerate(_months()):
        yield MacroRelease(_millis(month), round(4.83 - 0.25 * (number // 5), 2), Millis(_millis(after) + 20 * HOUR_MS))


def _months() -> Iterator[tuple[datetime, datetime]]:
    """Each month released by the end, with the one after it."""
    end = datetime.fromtimestamp(path.END / 1_000, UTC)
    for back in range(14, 1, -1):
        month = end.year * 12 + end.month - 1 - back
        yield _first(month), _first(month + 1)


def _first(month: int) -> datetime:
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _millis(day: datetime) -> Millis:
    return Millis(int(day.timestamp()) * 1_000)


def _build_fear_greed(seed: int, made: SyntheticMarket) -> Batch[Any]:
    """High after rises, low after falls and in volatile times; published at midnight."""
    days = made.bars[Timeframe.D1]
    days = days.part(days.at >= path.HOURS_FROM)
    moved = log(days.close / days.open)
    relative_volatility = (
        path.sum_last_axis(made.path.sigma[path.hour_of(path.HOURS_FROM) :].reshape(-1, 24)) / 24 / made.path.coin.sigma
    )
    noise = path.RandomStream(seed, "mood").normal(3, len(moved))
    level = 52 + 190 * path.decay_noise(moved, 0.85) - 9 * (relative_volatility - 1.3) + noise
    values = np.clip(np.rint(level), 3, 97)
    at = days.at + DAY_MS
    return build_level_batch(fear_greed(ALTERNATIVE), at, values)


def _rates(seed: int, krw_rate: Floats) -> list[Batch[Any]]:
    """Won for a dollar, and one dollar's token in another's: a few basis points apart until fear comes."""
    at = path.MINUTES_FROM + GRID * (1 + np.arange((path.END - path.MINUTES_FROM) // GRID))
    read = mark_polled(at)
    by_minute = krw_rate[-(path.END - path.MINUTES_FROM) // MINUTE_MS :]
    apart = path.decay_noise(path.RandomStream(seed, USDC_USDT).normal(2e-5, len(at)), 0.99)
    given = {
        rates(UPBIT, USDT_KRW): by_minute[4::5],
        rates(BINANCE, USDC_USDT): np.round(1 + apart + draw_depegs(seed, at), 5),
    }
    return [build_level_batch(series, at[read], values[read]) for series, values in given.items()]


def draw_depegs(seed: int, at: path.Ints) -> Floats:
    """In some panics one of the two tokens loses its peg by per cents within hours, and regains it in days."""
    draw, slip = path.RandomStream(seed, "slip"), np.zeros(len(at))
    for hour in path.draw_panics(seed).tolist():
        doubted, way, far = draw.uniform() < 0.6, draw.integers(0, 2) * 2 - 1, draw.uniform(0.015, 0.04)
        since = (at - path.HOURS_FROM) / HOUR_MS - (hour - path.hour_of(path.HOURS_FROM))
        after = np.clip(since, 0, None)
        slip += doubted * way * far * np.minimum(after / 3, 1) * exp(-after / 30)
    return slip
