"""How far agents are believed: the slope of what a judge's closed trades came to on the edge it claimed, and how
reliable the probabilities of all agents are. By count alone the weight of an opinion would grow with losing trades.

A Judge claims its win probability, scored by `score_exit`. An expert's stance with confidence c claims (1 + c) / 2 for
its way from entry to exit; a neutral one claims nothing, and neither does Meta."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import fsum, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.trading.measure.portable import exp, round_digits
from zuno.trading.model.cycle import Decision, JudgeKind, Outcome, Regime, RegimeFamily
from zuno.trading.model.market import Side
from zuno.trading.model.memory import MAX_EDGE, AgentClaim, Calibration, ClosedTrade, DeskRecord, ReliabilityBin
from zuno.trading.model.trade_events import ExitReason, TradeSummary
from zuno.trading.rules.score import Entry, board_entries

LIVE_TRADES: Final = 40
"""Closed trades of a judge that live trading needs."""
MIN_TRADES: Final = 10
"""Closed trades below which a record has no weight."""
CONFIDENCE: Final = 1.28
"""Posterior standard deviations that are taken off the slope: one-sided, 90 %."""
LN_2: Final = 0.6931471805599453
HALF_LIFE: Final = 150
"""Later trades of the same judge after which a trade counts half."""


@dataclass(frozen=True, slots=True)
class EdgeSlope:
    """β with its standard error; None without any claimed edge to fit it to. Its prior is normal, of variance 1."""

    n: int
    beta: float | None
    error: float | None

    @property
    def weight(self) -> float:
        """λ: the share of a claimed edge that counts."""
        if self.n < MIN_TRADES or self.beta is None or self.error is None:
            return 0.0
        variance = self.error * self.error
        mean, deviation = self.beta / (1 + variance), sqrt(variance / (1 + variance))
        return round_digits(min(1.0, max(0.0, mean - CONFIDENCE * deviation)))


NO_SLOPE: Final = EdgeSlope(0, None, None)


def judge_kind(answer: Decision | Entry) -> JudgeKind:
    return JudgeKind.MODEL if answer.source in ("model", "repaired") else JudgeKind.RULES


def breakeven_win_rate(profit: float, loss: float) -> float:
    """How often the target comes first without drift: at this rate nothing is gained or lost on average."""
    return loss / (profit + loss)


def clamp_edge(opinion: float, fair: float) -> float:
    """Claims beyond `MAX_EDGE` count as that."""
    return min(MAX_EDGE, max(-MAX_EDGE, opinion - fair))


def score_exit(trade: ClosedTrade) -> float:
    """0 at the stop, 1 at the target, in between for time and early exits. Its mean without drift is the fair rate."""
    return min(1.0, max(0.0, (trade.exit_pct + trade.loss_pct) / (trade.profit_pct + trade.loss_pct)))


def _fair_rate(trade: ClosedTrade) -> float:
    return breakeven_win_rate(trade.profit_pct, trade.loss_pct)


def calibrate(trades: Iterable[ClosedTrade], *, families: bool = False) -> tuple[Calibration, ...]:
    """The sums of each judge that has closed any; symbols and regime families are pooled. `families`: of each regime
    family by itself, to be looked at; they decide nothing."""
    groups: dict[tuple[JudgeKind, RegimeFamily | None], list[ClosedTrade]] = {}
    for trade in trades:
        groups.setdefault((trade.judge, trade.family if families else None), []).append(trade)
    return tuple(_sum_trades(*group, groups[group]) for group in sorted(groups, key=str))


def _sum_trades(judge: JudgeKind, family: RegimeFamily | None, trades: list[ClosedTrade]) -> Calibration:
    """The variance is that of independent trades at their fair rates or, where it is more, that of the gains as they
    came, products of trades whose holds overlap included."""
    spans = np.array([(trade.opened, trade.closed) for trade in trades], dtype=np.int64)
    later = len(trades) - np.searchsorted(np.sort(spans[:, 1]), spans[:, 1], side="right")
    edge, score, fair = np.array([(trade.edge, score_exit(trade), _fair_rate(trade)) for trade in trades]).T
    claim = exp(-LN_2 / HALF_LIFE * later) * edge
    gains = claim * (score - fair)
    independent = fsum((claim * claim * fair * (1 - fair)).tolist())
    return Calibration(
        judge=judge,
        family=family,
        n=len(trades),
        edge_gain=round_digits(fsum(gains.tolist())),
        edge_squared=round_digits(fsum((claim * edge).tolist())),
        edge_variance=round_digits(max(independent, _sum_overlapping(spans, gains))),
    )


def _sum_overlapping(spans: NDArray[np.int64], gains: NDArray[np.float64]) -> float:
    """The products of gains of every two trades whose holds overlap, each with itself included: the squared sum of a
    cluster where all overlap. By whole chains a desk that always holds something would never count."""
    opened, closed = spans[:, 0], np.maximum(spans[:, 1], spans[:, 0] + 1)
    order, by_close = np.lexsort((gains, closed, opened)), np.lexsort((gains, closed))
    closed_gains = np.concatenate(((0.0,), np.cumsum(gains[by_close])))
    closed_before = np.searchsorted(closed[by_close], opened[order], side="right")
    gains = gains[order]
    still_open = np.cumsum(gains) - gains - closed_gains[closed_before]
    return fsum((gains * (gains + 2 * still_open)).tolist())


def find_slope(record: DeskRecord, judge: JudgeKind) -> EdgeSlope:
    """Of everything the judge closed. A record of an older edition has families alone and no slope."""
    own = (slope_of(sums) for sums in record.calibrations if (sums.judge, sums.family) == (judge, None))
    return next(own, NO_SLOPE)


def slope_of(sums: Calibration) -> EdgeSlope:
    if sums.edge_squared <= 0:
        return EdgeSlope(sums.n, None, None)
    return EdgeSlope(sums.n, sums.edge_gain / sums.edge_squared, sqrt(sums.edge_variance) / sums.edge_squared)


def list_closed_trades(summaries: Iterable[TradeSummary], before: Millis) -> tuple[ClosedTrade, ...]:
    """Trades closed strictly before a moment, by the leg closed first; no manual positions or undone entries."""
    trades: dict[str, ClosedTrade] = {}
    for summary in summaries:
        if summary.closed < before and summary.intent not in trades and (trade := to_closed_trade(summary)) is not None:
            trades[summary.intent] = trade
    return tuple(trades.values())


@lru_cache(maxsize=8192)  # a desk asks of every trade it ever closed, cycle after cycle
def to_closed_trade(summary: TradeSummary) -> ClosedTrade | None:
    judge, family, edge = summary.judge, summary.family, summary.edge
    if judge is None or family is None or edge is None or summary.stop is None or summary.target is None:
        return None
    if summary.reason in (ExitReason.UNDONE, ExitReason.MANUAL):
        return None
    sign = summary.side.sign

    def percent(price: Decimal) -> float:
        return round_digits(float(100 * sign * (price / summary.entry - 1)))

    profit, loss = percent(summary.target), -percent(summary.stop)
    if profit <= 0 or loss <= 0:  # filled beyond a level: no claim was made about such a trade
        return None
    return ClosedTrade(
        opened=summary.opened,
        closed=summary.closed,
        judge=judge,
        family=family,
        edge=min(MAX_EDGE, max(-MAX_EDGE, edge)),
        profit_pct=profit,
        loss_pct=loss,
        exit_pct=percent(summary.exit),
    )


JUDGE = "judge"


def list_claims(outcome: Outcome, summary: TradeSummary) -> tuple[AgentClaim, ...]:
    """Of the run that opened a trade; none of a trade that counts for nobody's record."""
    trade = to_closed_trade(summary)
    if trade is None:
        return ()
    fair = round_digits(_fair_rate(trade))
    claimed, came = outcome.decision.win_probability_pct / 100, round_digits(score_exit(trade))
    source = judge_kind(outcome.decision)
    claims = [AgentClaim(role=JUDGE, source=source, claimed=claimed, outcome=came, fair=fair)]
    came = 0.5 if trade.exit_pct == 0 else 1.0 if trade.exit_pct > 0 else 0.0
    for expert, entry in board_entries(outcome.board).items():
        if not entry.stance:
            continue
        same = (entry.stance > 0) is (summary.side is Side.LONG)
        claims.append(
            AgentClaim(
                role=expert.value,
                source=judge_kind(entry),
                claimed=round_digits((1 + entry.confidence) / 2),
                outcome=came if same else 1 - came,
                fair=fair if same else round_digits(1 - fair),
            )
        )
    return tuple(claims)


LEAST_OUTCOMES: Final = 50
"""Below this many no verdict is given: chance alone could explain what is seen."""
BINS: Final = 10
EVERY_REGIME: Final = "all"
_SCALE: Final = 10**6
"""Claims are put into bins as whole millionths: no last bit moves one."""


class Reliability(View):
    """Of one agent, by who spoke for it and in which regime."""

    role: str
    source: JudgeKind
    regime: str
    """`all`, or one regime."""
    n: int
    brier: float
    """Mean squared distance of claim and outcome; 0 is best."""
    skill: float | None
    """1 − Brier / Brier of the fair rate: above zero, claims said more than the distances. None where that is zero."""
    ece: float
    """Mean distance of claimed and come, bin by bin."""
    bins: tuple[ReliabilityBin, ...]
    enough: bool
    """For a verdict."""


def measure_reliability(trades: Iterable[tuple[Sequence[AgentClaim], Regime | None]]) -> tuple[Reliability, ...]:
    """Each agent, first over all regimes, then in each that occurred. `trades`: what was claimed of closed ones."""
    groups: dict[tuple[str, JudgeKind, str], list[AgentClaim]] = {}
    for claims, occurred in trades:
        for claim in claims:
            for regime in filter(None, (EVERY_REGIME, occurred)):
                groups.setdefault((claim.role, claim.source, str(regime)), []).append(claim)
    order = [EVERY_REGIME, *Regime]
    keys = sorted(groups, key=lambda key: (key[0] != JUDGE, key[0], key[1], order.index(key[2])))
    return tuple(_measure(*key, groups[key]) for key in keys)


def _measure(role: str, source: JudgeKind, regime: str, claims: Sequence[AgentClaim]) -> Reliability:
    n = len(claims)
    brier = fsum((claim.claimed - claim.outcome) ** 2 for claim in claims) / n
    fair = fsum((claim.fair - claim.outcome) ** 2 for claim in claims) / n
    bins = _fill_bins(claims)
    return Reliability(
        role=role,
        source=source,
        regime=regime,
        n=n,
        brier=round_digits(brier),
        skill=None if fair == 0 else round_digits(1 - brier / fair),
        ece=round_digits(fsum(each.n * abs(each.claimed - each.came) for each in bins) / n),
        bins=bins,
        enough=n >= LEAST_OUTCOMES,
    )


def _fill_bins(claims: Sequence[AgentClaim]) -> tuple[ReliabilityBin, ...]:
    """Only bins that hold any; the last one includes 1."""
    held: dict[int, list[AgentClaim]] = {}
    for claim in claims:
        place = min(BINS - 1, round(claim.claimed * _SCALE) * BINS // _SCALE)
        held.setdefault(place, []).append(claim)
    return tuple(
        ReliabilityBin(
            low=place / BINS,
            high=(place + 1) / BINS,
            n=len(members),
            claimed=round_digits(fsum(claim.claimed for claim in members) / len(members)),
            came=round_digits(fsum(claim.outcome for claim in members) / len(members)),
        )
        for place, members in sorted(held.items())
    )
