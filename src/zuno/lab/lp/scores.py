"""What can be seen of an arm in a few weeks: the fees of its positions less their LVR, day by day, and what is left of
their result beside a short that takes the price out of it.

LVR is counted as fee cover counts it, over returns of as many minutes as the pool's fee asks for, all grids taken
together. Everything is in base units of token0, the pool's dollar; token1 is what the short sells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.lab.lp.backtest import HeldSpan
from zuno.lab.lp.cover import DAY
from zuno.lab.lp.fast import Floats, MinuteColumns, amounts_at, fees_by_minute
from zuno.lab.lp.tape import SwapColumns, earn_on_path
from zuno.lp.rules.fee_cover import GRIDS

MINUTE: Final = 60
HEDGE_COST: Final = 0.0009
"""Of what a short trades: a taker's fee of 0.05 % and 0.04 % of slippage."""
HEDGE_BAND: Final = 0.10
"""Of the most a position can hold, at most its worth at first: a short that is off by as much is set again."""
FUNDING_MINUTES: Final = 480
Times: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScoredRecord:
    columns: MinuteColumns
    minutes: int
    """That a return spans."""
    fee_pips: int
    swaps: SwapColumns | None = None
    """Of a tape: fees are then counted swap by swap."""


@dataclass(frozen=True, slots=True)
class Score:
    """Of an arm's positions, by day."""

    fees: tuple[int, ...]
    lvr: tuple[int, ...]

    @property
    def carry(self) -> tuple[int, ...]:
        return tuple(earned - lost for earned, lost in zip(self.fees, self.lvr, strict=True))


@dataclass(frozen=True, slots=True)
class HedgeScore:
    """Of an arm's positions with a short beside them: fees, what the price did to both, what the short cost."""

    alone: tuple[int, ...]
    """By day, without the short."""
    hedged: tuple[int, ...]
    resets: int
    turnover: int
    cost: int
    funding: int


@dataclass(frozen=True, slots=True)
class Days:
    """What happened at some times, added up by day from a start on; the last day takes what is left over."""

    start: int
    count: int

    @classmethod
    def between(cls, start: int, end: int) -> "Days":
        return cls(start, max(1, (end - start) // DAY))

    def add_up(self, times: Times, amounts: Floats) -> NDArray[np.int64]:
        totals = np.zeros(self.count, dtype=np.int64)
        places = np.minimum((times - 1 - self.start) // DAY, self.count - 1)
        np.add.at(totals, places, np.rint(amounts).astype(np.int64))
        return totals


def score_positions(record: ScoredRecord, spans: Sequence[HeldSpan], days: Days) -> Score:
    fees, lvr = np.zeros((2, days.count), dtype=np.int64)
    for span in spans:
        fees += days.add_up(*_earn(record, span))
        lvr += days.add_up(*_lose(record, span))
    return Score(tuple(fees.tolist()), tuple(lvr.tolist()))


def _earn(record: ScoredRecord, span: HeldSpan) -> tuple[Times, Floats]:
    if record.swaps is not None:
        swaps = record.swaps.select(span.start, span.end)
        fees0, fees1 = earn_on_path(swaps, span.range, span.liquidity, record.fee_pips)
        return swaps.at, fees0 + fees1 / (swaps.after * swaps.after)
    columns = record.columns.select_minutes(span.start, span.end)
    fees0, fees1 = fees_by_minute(columns, span.range, span.liquidity, record.fee_pips)
    return columns.at // 1000 + MINUTE, fees0 + fees1 / (columns.roots * columns.roots)


def count_fees(record: ScoredRecord, span: HeldSpan, root: float) -> float:
    """Of a tape: all of a position's fees at one price."""
    assert record.swaps is not None
    fees0, fees1 = earn_on_path(record.swaps.select(span.start, span.end), span.range, span.liquidity, record.fee_pips)
    return float(fees0.sum() + fees1.sum() / (root * root))


def _lose(record: ScoredRecord, span: HeldSpan) -> tuple[Times, Floats]:
    """What was held at the beginning of each return, less what is held at its end, at the price of its end."""
    step = MINUTE if record.minutes == GRIDS[0] else GRIDS[0] * MINUTE
    times, roots = _sample(record.columns, span, step)
    held0, held1 = amounts_at(roots, span.range, span.liquidity)
    apart, last = record.minutes * MINUTE // step, len(times) - 1
    # Every grid begins and ends with the position: its first and last returns may be shorter.
    ends = np.concatenate((np.arange(1, last + 1), np.full(apart - 1, last)))
    starts = np.maximum(np.concatenate((np.arange(1, last + 1) - apart, last - np.arange(1, apart))), 0)
    prices = roots[ends] * roots[ends]
    return times[ends], ((held0[starts] - held0[ends]) + (held1[starts] - held1[ends]) / prices) / apart


def _sample(columns: MinuteColumns, span: HeldSpan, step: int) -> tuple[Times, Floats]:
    """Moments of a position, its first and last among them, and the square roots of the prices that stood then."""
    times = np.unique(np.append(np.arange(span.start, span.end, step, dtype=np.int64), span.end))
    places = np.searchsorted(columns.at // 1000 + MINUTE, times, side="right") - 1
    return times, columns.roots[np.maximum(places, 0)]


def score_hedges(record: ScoredRecord, spans: Sequence[HeldSpan], days: Days, funding: float) -> HedgeScore:
    """`funding`: what a short receives every eight hours, as a share of its worth."""
    alone, hedged = np.zeros((2, days.count), dtype=np.int64)
    resets, turnover, received = 0, 0.0, 0.0
    for span in spans:
        times, roots = _sample(record.columns, span, MINUTE)
        held0, held1 = amounts_at(roots, span.range, span.liquidity)
        _, full = amounts_at(np.array([np.inf]), span.range, span.liquidity)
        prices = 1 / (roots * roots)
        most = min(float(full[0]), float(held1[0] + held0[0] / prices[0]))
        short = np.array(_follow(held1.tolist(), HEDGE_BAND * most))
        traded = np.abs(np.diff(short, prepend=0.0)) * prices
        resets += int(np.count_nonzero(traded[1:]))
        traded[-1] += short[-1] * prices[-1]
        paid = short[:-1] * prices[:-1] * np.diff(times) / (FUNDING_MINUTES * MINUTE) * funding
        moved = days.add_up(times[1:], np.diff(held0 + held1 * prices)) + days.add_up(*_earn(record, span))
        alone += moved
        hedged += moved + days.add_up(times[1:], paid - short[:-1] * np.diff(prices))
        hedged -= days.add_up(np.maximum(times, span.start + 1), HEDGE_COST * traded)
        turnover, received = turnover + float(traded.sum()), received + float(paid.sum())
    return HedgeScore(
        tuple(alone.tolist()),
        tuple(hedged.tolist()),
        *(resets, round(turnover), round(HEDGE_COST * turnover), round(received)),
    )


def _follow(wanted: Sequence[float], band: float) -> list[float]:
    short, shorts = wanted[0], []
    for amount in wanted:
        if abs(amount - short) >= band:
            short = amount
        shorts.append(short)
    return shorts
