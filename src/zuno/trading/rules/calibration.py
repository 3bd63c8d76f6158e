"""How far a judge's claimed edge is believed: the slope of what its closed trades came to on what it claimed.

A slope and not a count: by count alone the weight of an opinion grows with losing trades.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final

from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import Decision, JudgeKind, RegimeFamily
from zuno.trading.model.record import MAX_EDGE, Calibration, ClosedTrade, DeskRecord

PRIOR_TRADES: Final = 40
"""Closed trades at which a record counts half, and from which on it is no longer explored daily."""
CONFIDENCE: Final = 1.64
"""Standard errors that are taken off the slope: one-sided, 95 %."""


@dataclass(frozen=True, slots=True)
class EdgeSlope:
    """β with its error; None without any claimed edge to fit it to."""

    n: int
    beta: float | None
    error: float | None

    @property
    def weight(self) -> float:
        """λ: the share of a claimed edge that counts."""
        if self.beta is None or self.error is None:
            return 0.0
        believed = min(1.0, max(0.0, self.beta - CONFIDENCE * self.error))
        return round_digits(self.n / (self.n + PRIOR_TRADES) * believed)


def judge_kind(decision: Decision) -> JudgeKind:
    return JudgeKind.MODEL if decision.source in ("model", "repaired") else JudgeKind.RULES


def breakeven_win_rate(profit: float, loss: float) -> float:
    """How often the target comes first without drift: at this rate nothing is won or lost on average."""
    return loss / (profit + loss)


def clamp_edge(opinion: float, fair: float) -> float:
    """Whoever claims more is not believed more."""
    return min(MAX_EDGE, max(-MAX_EDGE, opinion - fair))


def score_exit(trade: ClosedTrade) -> float:
    """0 at the stop, 1 at the target, in between what a time or early exit brought. Its mean without drift is the fair
    rate; counting resolved trades alone would be biased."""
    return min(1.0, max(0.0, (trade.exit_pct + trade.loss_pct) / (trade.profit_pct + trade.loss_pct)))


def calibrate(trades: Iterable[ClosedTrade]) -> tuple[Calibration, ...]:
    """The sums of each judge and regime family that has closed any; symbols are pooled."""
    groups: dict[tuple[JudgeKind, RegimeFamily], list[ClosedTrade]] = {}
    for trade in trades:
        groups.setdefault((trade.judge, trade.family), []).append(trade)
    return tuple(_sum_trades(judge, family, groups[judge, family]) for judge, family in sorted(groups))


def _sum_trades(judge: JudgeKind, family: RegimeFamily, trades: list[ClosedTrade]) -> Calibration:
    rows = [(trade.edge, score_exit(trade), breakeven_win_rate(trade.profit_pct, trade.loss_pct)) for trade in trades]
    return Calibration(
        judge=judge,
        family=family,
        n=len(rows),
        edge_gain=round_digits(fsum(edge * (score - fair) for edge, score, fair in rows)),
        edge_squared=round_digits(fsum(edge * edge for edge, _, _ in rows)),
        edge_variance=round_digits(fsum(edge * edge * fair * (1 - fair) for edge, _, fair in rows)),
    )


def find_slope(record: DeskRecord, judge: JudgeKind, family: RegimeFamily) -> EdgeSlope:
    sums = next((sums for sums in record.calibrations if (sums.judge, sums.family) == (judge, family)), None)
    if sums is None:
        return EdgeSlope(0, None, None)
    if sums.edge_squared <= 0:
        return EdgeSlope(sums.n, None, None)
    return EdgeSlope(sums.n, sums.edge_gain / sums.edge_squared, sqrt(sums.edge_variance) / sums.edge_squared)
