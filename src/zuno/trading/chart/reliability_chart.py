"""What is drawn of agents' calibration: claimed against came, a panel for each agent and who spoke for it."""

from __future__ import annotations

from collections.abc import Sequence

from zuno.trading.model.chart import ReliabilityChart, ReliabilityPanel, ReliabilityPoint
from zuno.trading.rules.reliability import EVERY_REGIME, LEAST_OUTCOMES, Reliability


def describe_reliability(
    rows: Sequence[Reliability], label: str, account: str, origin: str, *, synthetic: bool
) -> ReliabilityChart:
    """`label`: PAPER or LIVE."""
    whole = [row for row in rows if row.regime == EVERY_REGIME]
    most = max((row.n for row in whole), default=0)
    verdict = f" · under {LEAST_OUTCOMES} outcomes no verdict is given" if most < LEAST_OUTCOMES else ""
    return ReliabilityChart(
        title=f"Calibration of {account}",
        label=label,
        figures=f"claimed (across) against what came (up); on the diagonal they are equal{verdict}",
        origin=origin,
        synthetic=synthetic,
        panels=tuple(
            ReliabilityPanel(
                title=f"{row.role} ({row.source})",
                figures=_figures(row),
                points=_points(row),
                regimes=tuple(
                    (other.regime, _points(other))
                    for other in rows
                    if (other.role, other.source) == (row.role, row.source) and other.regime != EVERY_REGIME
                ),
            )
            for row in whole
        ),
    )


def _figures(row: Reliability) -> str:
    skill = "" if row.skill is None else f" · skill {row.skill:+.2f}"
    return f"n {row.n} · Brier {row.brier:.3f}{skill} · ECE {row.ece:.2f}"


def _points(row: Reliability) -> tuple[ReliabilityPoint, ...]:
    return tuple(ReliabilityPoint(each.claimed, each.came, each.n) for each in row.bins)
