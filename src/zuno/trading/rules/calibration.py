"""How far agents are believed: the slope of what a judge's closed trades came to on the edge it claimed, and how
reliable the probabilities of all agents are (Brier score, skill, calibration error).

A slope and not a count: by count alone the weight of an opinion grows with losing trades. What counts as a claim:

- Judge: its win probability, against the score of the exit (`score_exit`); fair is the rate by the distances alone.
- Experts: a stance with confidence c claims that the price goes its way over the trade with probability (1 + c) / 2;
  against the direction from entry to exit, fair by the distances. A neutral stance claims nothing.
- Meta names a regime and no probability: it claims nothing that can be scored so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import fsum, sqrt
from typing import ClassVar, Final, Protocol

from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import Decision, JudgeKind, Outcome, Regime, RegimeFamily
from zuno.trading.model.market import Side
from zuno.trading.model.memory import MAX_EDGE, AgentClaim, Calibration, ClosedTrade, DeskRecord, ReliabilityBin
from zuno.trading.model.trade_events import ExitReason, TradeSummary
from zuno.trading.rules.score import board_entries

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
    """How often the target comes first without drift: at this rate nothing is gained or lost on average."""
    return loss / (profit + loss)


def clamp_edge(opinion: float, fair: float) -> float:
    """Claims beyond `MAX_EDGE` count as that."""
    return min(MAX_EDGE, max(-MAX_EDGE, opinion - fair))


def score_exit(trade: ClosedTrade) -> float:
    """0 at the stop, 1 at the target, in between for time and early exits. Its mean without drift is the fair rate."""
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


def list_closed_trades(summaries: Iterable[TradeSummary], before: Millis) -> tuple[ClosedTrade, ...]:
    """Trades closed strictly before a moment, by the leg closed first; no manual positions or undone entries."""
    trades: dict[str, ClosedTrade] = {}
    for summary in summaries:
        if summary.closed < before and summary.intent not in trades and (trade := to_closed_trade(summary)) is not None:
            trades[summary.intent] = trade
    return tuple(trades.values())


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
    fair = round_digits(breakeven_win_rate(trade.profit_pct, trade.loss_pct))
    claims = [
        AgentClaim(
            role=JUDGE,
            source=judge_kind(outcome.decision),
            claimed=outcome.decision.win_probability_pct / 100,
            outcome=round_digits(score_exit(trade)),
            fair=fair,
        )
    ]
    came = 0.5 if trade.exit_pct == 0 else 1.0 if trade.exit_pct > 0 else 0.0
    for expert, entry in board_entries(outcome.board).items():
        if not entry.stance:
            continue
        same = (entry.stance > 0) is (summary.side is Side.LONG)
        claims.append(
            AgentClaim(
                role=expert.value,
                source=JudgeKind.MODEL if entry.source in ("model", "repaired") else JudgeKind.RULES,
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
    """Whether there are outcomes enough for a verdict."""
    LEFT_OUT: ClassVar = frozenset({"enough"})


class ClaimedTrade(Protocol):
    """A closed trade and what agents had claimed of it."""

    @property
    def claims(self) -> Sequence[AgentClaim]: ...

    @property
    def regime(self) -> Regime | None: ...


def measure_reliability(cases: Iterable[ClaimedTrade]) -> tuple[Reliability, ...]:
    """Each agent, first over all regimes, then in each that occurred."""
    groups: dict[tuple[str, JudgeKind, str], list[AgentClaim]] = {}
    for case in cases:
        for claim in case.claims:
            for regime in (EVERY_REGIME, *([] if case.regime is None else [case.regime.value])):
                groups.setdefault((claim.role, claim.source, regime), []).append(claim)
    order = [EVERY_REGIME, *Regime]
    keys = sorted(groups, key=lambda key: (key[0] != "judge", key[0], key[1], order.index(key[2])))
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
