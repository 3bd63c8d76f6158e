"""Recorded minutes that nobody recorded: a walk from a seed, for tests that need a pool with a past."""

from __future__ import annotations

import random
from pathlib import Path

from zuno.adapters.imports.pool_minutes import COLUMNS
from zuno.kernel.units import Millis
from zuno.lp.model.minutes import MINUTE_MS, MinuteRepairs, PoolMinute, PoolMinutes

START = 1_658_188_800_000
TICK = 202_700


def draw_minutes(count: int, seed: int = 1, step: int = 4) -> PoolMinutes:
    dice = random.Random(seed)
    tick, rows = TICK, list[PoolMinute]()
    for number in range(count):
        close = tick + dice.randint(-step, step)
        low, high = min(tick, close) - dice.randint(0, step), max(tick, close) + dice.randint(0, step)
        in0, in1 = dice.randint(0, 50_000 * 10**6), dice.randint(0, 30 * 10**18)
        at = Millis(START + number * MINUTE_MS)
        rows.append(PoolMinute(at, tick, close, low, high, in0, in1, dice.randint(3, 6) * 10**17))
        tick = close
    return PoolMinutes(tuple(rows), no_repairs(count))


def no_repairs(rows: int) -> MinuteRepairs:
    return MinuteRepairs(
        files=1,
        rows=rows,
        sorted_rows=0,
        widened=0,
        repeated=0,
        contradicted=0,
        missing=0,
        missing_days=(),
        without_liquidity=0,
    )


def write_minutes(folder: Path, recorded: PoolMinutes) -> Path:
    lines = [",".join(COLUMNS)]
    for row in recorded.minutes:
        ticks = (row.open_tick, row.close_tick, row.lowest_tick, row.highest_tick)
        fields = (_moment(row.at), *ticks, row.in0, row.in1, row.liquidity)
        lines.append(",".join(map(str, fields)))
    (folder / "minutes.csv").write_text("\n".join(lines) + "\n")
    return folder


def _moment(at: Millis) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
