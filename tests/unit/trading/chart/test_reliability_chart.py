"""The picture of agents' calibration: what is drawn, and that equal charts are equal bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.examples import mark_all_but
from zuno.adapters.chart.painter import MatplotlibPainter
from zuno.trading.chart.account_charts import describe_reliability
from zuno.trading.model.chart import ReliabilityChart
from zuno.trading.model.cycle import JudgeKind
from zuno.trading.model.memory import ReliabilityBin
from zuno.trading.rules.calibration import LEAST_OUTCOMES, Reliability


def bin_of(n: int) -> ReliabilityBin:
    return ReliabilityBin(low=0.5, high=0.6, n=n, claimed=0.55, came=0.25)


def row(role: str, regime: str = "all", n: int = 4) -> Reliability:
    figures = {"n": n, "brier": 0.2, "skill": None, "ece": 0.3, "bins": (bin_of(n),), "enough": n >= LEAST_OUTCOMES}
    return Reliability(role=role, source=JudgeKind.RULES, regime=regime, **figures)


def chart(*rows: Reliability, synthetic: bool = False) -> ReliabilityChart:
    return describe_reliability(rows, "PAPER", "paper:recorded", "recorded", synthetic=synthetic)


def test_an_agent_has_a_panel_with_its_regimes() -> None:
    found = chart(row("judge"), row("judge", "RANGE_BOUND", 3), row("macro", n=60))
    judge, macro = found.panels
    assert judge.points == (bin_of(4),)
    assert judge.regimes == (("RANGE_BOUND", (bin_of(3),)),)
    assert not macro.regimes
    assert "verdict" not in found.figures
    assert "verdict" in chart(row("judge")).figures


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("panels", mark_all_but(2, [0, 1, 5, 10], pytest.mark.soak))
async def test_equal_charts_are_equal_bytes_and_others_are_not(panels: int) -> None:
    rows = [row(f"agent_{number}") for number in range(panels)]
    painter = MatplotlibPainter()
    image = await painter.paint_reliability(chart(*rows))
    assert image.startswith(b"\x89PNG")
    assert await painter.paint_reliability(chart(*rows)) == image
    for other in (chart(*rows, synthetic=True), replace(chart(*rows), title="another")):
        assert await painter.paint_reliability(other) != image
