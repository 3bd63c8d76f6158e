"""What the market did while a trade was held, from recorded candles: first touch, MFE, MAE, R, and the verdict.

Only candles that lie wholly between entry and exit count: of one that began before the entry nobody knows which of its
prices came after it. A candle that touched both levels touched the stop first. Of the candle in which a level ended the
trade, nothing beyond the exit is the trade's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final, Literal

from zuno.trading.measure.bars import SpanBar
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.market import HOUR_MS
from zuno.trading.model.memory import RealisedPath, Verdict
from zuno.trading.model.trade_events import ExitReason, TradeSummary
from zuno.trading.rules.performance import risk_multiple

FLAT_R: Final = 0.1
"""Below this many R either way a trade came to nothing."""
SLIPPAGE_SHARE: Final = 0.0025
"""Of the entry: how far from its level an exit by stop or target may have been filled."""

Touch = Literal["stop", "target"]


def trace_path(summary: TradeSummary, bars: Iterable[SpanBar]) -> RealisedPath:
    """The path of a closed trade. `bars` in its exchange's currency, in any order."""
    sign = summary.side.sign
    entry, last = float(summary.entry), float(summary.exit)
    stop, target = _price(summary.stop), _price(summary.target)
    inside = sorted(bar for bar in bars if summary.opened <= bar.start and bar.end <= summary.closed)
    whole = inside[:-1] if _ends_in(summary, inside) else inside
    prices = [last, *(price for bar in whole for price in (bar.high, bar.low))]
    if len(whole) < len(inside):  # what it went through before the level: the way it hurts comes first
        prices += [inside[-1].open]
        if summary.reason is ExitReason.TARGET:
            reached = bar_touch(inside[-1], sign, None, target) is not None
            prices += [_worst(inside[-1], sign), *([target] if target is not None and reached else [])]
    moves = [percent_move(price, entry, sign) for price in prices]
    touches = (bar_touch(bar, sign, stop, target) for bar in whole)
    multiple = risk_multiple(summary)
    held = summary.closed - summary.opened
    return RealisedPath(
        first_touch=next(filter(None, touches), None) or _touch_of_exit(summary, sign),
        mfe_pct=round_digits(max(0.0, *moves)),
        mae_pct=round_digits(-min(0.0, *moves)),
        exit_pct=moves[0],
        r=None if multiple is None else round_digits(float(multiple)),
        hold_hours=round_digits(held / HOUR_MS),
        bars=len(inside),
        uncovered_hours=round_digits((held - _sum_covered_time(inside)) / HOUR_MS),
    )


def judge_outcome(path: RealisedPath, net_pnl: Decimal) -> Verdict:
    """By what was won or lost after fees and funding, whatever was expected. Without a stop there is no R, and the sign
    of the money decides."""
    if path.r is None:
        return Verdict.SUCCESS if net_pnl > 0 else Verdict.FAILURE if net_pnl < 0 else Verdict.FLAT
    if abs(path.r) < FLAT_R:
        return Verdict.FLAT
    return Verdict.SUCCESS if path.r > 0 else Verdict.FAILURE


def percent_move(price: float, entry: float, sign: int) -> float:
    """From the entry, above zero where it went the trade's way."""
    return round_digits(100 * sign * (price / entry - 1))


def bar_touch(bar: SpanBar, sign: int, stop: float | None, target: float | None) -> Touch | None:
    """What a bar touched; the stop where it touched both."""
    if stop is not None and sign * (_worst(bar, sign) - stop) <= 0:
        return "stop"
    if target is not None and sign * (_best(bar, sign) - target) >= 0:
        return "target"
    return None


def _touch_of_exit(summary: TradeSummary, sign: int) -> Touch | None:
    """Where no whole candle shows a touch: the exit's own price, which may have slipped."""
    last, slipped = float(summary.exit), SLIPPAGE_SHARE * float(summary.entry)
    stop, target = _price(summary.stop), _price(summary.target)
    room = slipped if summary.reason is ExitReason.STOP else 0.0
    if stop is not None and sign * (last - stop) <= room:
        return "stop"
    room = slipped if summary.reason is ExitReason.TARGET else 0.0
    if target is not None and sign * (last - target) >= -room:
        return "target"
    return None


def _ends_in(summary: TradeSummary, inside: Sequence[SpanBar]) -> bool:
    """Whether the last candle is the one in which a level ended the trade."""
    if summary.reason not in (ExitReason.STOP, ExitReason.TARGET, ExitReason.LIQUIDATION) or not inside:
        return False
    last, slipped = float(summary.exit), SLIPPAGE_SHARE * float(summary.entry)
    return inside[-1].low - slipped <= last <= inside[-1].high + slipped


def _sum_covered_time(bars: Sequence[SpanBar]) -> int:
    """Milliseconds that bars in order of time cover, overlaps once."""
    covered, until = 0, 0
    for bar in bars:
        covered += max(0, bar.end - max(bar.start, until))
        until = max(until, bar.end)
    return covered


def _best(bar: SpanBar, sign: int) -> float:
    return bar.high if sign > 0 else bar.low


def _worst(bar: SpanBar, sign: int) -> float:
    return bar.low if sign > 0 else bar.high


def _price(level: Decimal | None) -> float | None:
    return None if level is None else float(level)
