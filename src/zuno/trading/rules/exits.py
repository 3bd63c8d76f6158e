"""Open positions whose stop, target or hold time is passed: they end. A level is passed where the market is beyond it
now or any bar that began after it was set touched it; of a bar that touched both, the stop came first."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import Bars, bars
from zuno.trading.measure.features import fresh_rows
from zuno.trading.measure.indicators import drop_invalid_bars
from zuno.trading.model.account import Account, Holding
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import DEFAULT_HOLD
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import HOUR_MS, Candle, Mode, Series, Side, Timeframe, candles, parse_hours, timeframe_of
from zuno.trading.rules.account import DOLLAR
from zuno.trading.rules.draft import RuleName


@dataclass(frozen=True, slots=True)
class PositionExit:
    id: str
    rule: RuleName
    why: str


def find_exits(bundle: Bundle, account: Account, mark: Known[float]) -> tuple[PositionExit, ...]:
    """Of the bundle's symbol, in the order they are held. A position without levels is never among them."""
    held = [position for position in account.positions if position.symbol is bundle.symbol]
    exits = [_find_exit(bundle, position, mark) for position in held]
    return tuple(passed for passed in exits if passed is not None)


def hold_text(text: str, mode: Mode) -> str:
    """The duration as it is written, where it is one that lasts; else the mode's own."""
    return text if parse_hours(text) else DEFAULT_HOLD[mode]


def hold_hours(text: str, mode: Mode) -> int:
    return parse_hours(hold_text(text, mode))


def _find_exit(bundle: Bundle, position: Holding, mark: Known[float]) -> PositionExit | None:
    if (touched := _first_level(bundle, position, mark)) is not None:
        return touched
    hours = 0 if position.hold is None else parse_hours(position.hold)
    if hours and bundle.as_of >= position.opened + hours * HOUR_MS:
        return PositionExit(position.id, RuleName.HOLD_OVER, f"{position.id} was to be held for {position.hold}")
    return None


def _first_level(bundle: Bundle, position: Holding, mark: Known[float]) -> PositionExit | None:
    """What a bar since the opening reached first; else where the market stands."""
    seen = []
    for series in _series_of(position):
        rows: Sequence[Candle] = [row for row in bundle.rows(series) if row.at >= position.opened]
        seen.append(drop_invalid_bars(bars(timeframe_of(series), rows).upto(bundle.as_of)))
    stop, target = (min(_first_touch(bars_seen, *level) for bars_seen in seen) for level in _bounds(position))
    if min(stop, target) < inf:
        return _passed(position, stop=stop <= target, how="a bar since it was set reached it")
    now = _price_now(bundle, position, mark)
    if isinstance(now, Missing):
        return None
    beyond = [level is not None and (now >= level if above else now <= level) for level, above, _ in _bounds(position)]
    return _passed(position, stop=beyond[0], how=f"the market is at {now:,.2f}") if any(beyond) else None


_Bound = tuple[float | None, bool, Millis]
"""A level, whether it is reached from below, and since when it stands."""


def _bounds(position: Holding) -> tuple[_Bound, _Bound]:
    """Stop and target."""
    long, since = position.side is Side.LONG, position.levels_since or position.opened
    stop = (position.stop, not long, position.stop_since or since)
    return stop, (position.take, long, position.take_since or since)


def _passed(position: Holding, *, stop: bool, how: str) -> PositionExit:
    rule, level, name = RuleName.TARGET_PASSED, position.take, "target"
    if stop:
        rule, level, name = RuleName.STOP_PASSED, position.stop, "stop"
    return PositionExit(position.id, rule, f"the {name} of {position.id} is at {level:,.2f}: {how}")


def _series_of(position: Holding) -> tuple[Series[Candle], ...]:
    """In the position's own currency: hours for all of its life, minutes for the hours that are not whole."""
    venue, symbol = position.exchange, position.symbol
    if venue.currency != DOLLAR:
        return (candles(venue.feed, symbol, Timeframe.H1),)
    home, pair = symbol.venue.feed, symbol.pair
    return (candles(home, pair, Timeframe.H1), candles(home, pair, Timeframe.M1))


def _first_touch(seen: Bars, level: float | None, above: bool, since: Millis) -> float:
    """When the first bar began that reached a level after it was set; never is infinity."""
    if level is None:
        return inf
    reached = np.flatnonzero((seen.at >= since) & (seen.high >= level if above else seen.low <= level))
    return float(seen.at[reached[0]]) if len(reached) else inf


def _price_now(bundle: Bundle, position: Holding, mark: Known[float]) -> Known[float]:
    """The mark; where there is none, or in another currency, the last close that is not stale."""
    if position.exchange.currency == DOLLAR and not isinstance(mark, Missing):
        return mark
    for series in reversed(_series_of(position)):
        rows = fresh_rows(bundle, series)
        if not isinstance(rows, Missing) and rows:
            return rows[-1].close
    return Missing("no price is fresh")
