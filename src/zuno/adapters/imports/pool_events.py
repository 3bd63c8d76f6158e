"""Events of a pool, or its days, from a folder of CSV files; which of the two, or minutes, their columns say.

Events stand in their order: a row that is earlier than the one before is refused, for nobody could put it right.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from zuno.adapters.imports.pool_minutes import (
    list_files,
    read_names,
    read_pool_minutes,
    read_rows,
    read_time,
    read_whole,
)
from zuno.amm.model import Range
from zuno.amm.ticks import MAX_SQRT_PRICE, MAX_TICK, MIN_SQRT_PRICE, MIN_TICK
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Tick
from zuno.lp.model.tape import PoolAtDayEnd, PoolDays, PoolRecord, PoolTape, TapeChange, TapeSwap

R = TypeVar("R")
EVENT_COLUMNS: Final = tuple("time kind tick_lower tick_upper amount0 amount1 sqrt_price_x96 liquidity tick".split())
DAY_COLUMNS: Final = ("date", "sqrt_price_x96", "fee_growth0_x128", "fee_growth1_x128")
_DAY: Final = 86_400


def read_pool_record(folder: Path) -> PoolRecord:
    """Minutes where the first file is neither of the others."""
    files = list_files(folder)
    names = set(read_names(files[0]))
    if names.issuperset(EVENT_COLUMNS):
        events = [event for event in _read_all(files, EVENT_COLUMNS, _read_event, _time_of) if event is not None]
        if not any(isinstance(event, TapeSwap) for event in events):
            raise Malformed(f"{files[0].name} holds no swap.")
        return PoolTape(tuple(events))
    if names.issuperset(DAY_COLUMNS):
        days = _read_all(files, DAY_COLUMNS, _read_day, lambda day: day.day)
        if len(days) < 2:
            raise Malformed(f"{files[0].name} holds fewer than two days.")
        return PoolDays(tuple(days))
    return read_pool_minutes(folder)


def _read_all(
    files: Sequence[Path], columns: Sequence[str], read: Callable[[tuple[str, ...]], R], time: Callable[[R], int | None]
) -> list[R]:
    rows: list[R] = []
    last = 0
    for path in files:
        for number, row in read_rows(path, columns, read):
            at = time(row)
            if at is not None and at < last:
                raise Malformed(f"{path.name}, row {number}: it is earlier than the row before.")
            last = last if at is None else at
            rows.append(row)
    return rows


def _time_of(event: TapeSwap | TapeChange | None) -> int | None:
    return None if event is None else event.at


def _read_event(fields: tuple[str, ...]) -> TapeSwap | TapeChange | None:
    """None: a collect, or a burn of nothing before one, which move neither price nor liquidity."""
    at, kind = read_time(fields[0]), fields[1]
    if kind == "collect":
        return None
    if kind == "swap":
        names = ("amount0", "amount1", "sqrt_price_x96", "liquidity", "tick")
        in0, in1, root, liquidity, tick = map(read_whole, names, fields[4:])
        if not MIN_SQRT_PRICE <= root < MAX_SQRT_PRICE or not MIN_TICK < tick < MAX_TICK or liquidity < 0:
            raise ValueError("price, tick or liquidity is none of a pool")
        return TapeSwap(at, max(0, in0), max(0, in1), root, liquidity, tick)
    if kind not in ("mint", "burn"):
        raise ValueError(f"{kind[:40]!r} is no kind of event")
    lower, upper, delta = (read_whole("liquidity", fields[place]) for place in (2, 3, 7))
    if not MIN_TICK <= lower < upper <= MAX_TICK or delta < 0:
        raise ValueError("its range or liquidity is none of a pool")
    return TapeChange(at, Range(Tick(lower), Tick(upper)), delta if kind == "mint" else -delta) if delta else None


def _read_day(fields: tuple[str, ...]) -> PoolAtDayEnd:
    root, growth0, growth1 = map(read_whole, DAY_COLUMNS[1:], fields[1:])
    if not MIN_SQRT_PRICE <= root < MAX_SQRT_PRICE:
        raise ValueError("the price is none of a pool")
    return PoolAtDayEnd(read_time(fields[0]) // _DAY, root, growth0, growth1)
