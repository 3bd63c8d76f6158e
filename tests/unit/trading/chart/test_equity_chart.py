"""The picture of an account's performance: what is drawn, by hand; equal charts are equal bytes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from zuno.adapters.chart.equity import BOTTOM, FALL_HEIGHT
from zuno.adapters.chart.frames import LAST, LEFT
from zuno.adapters.chart.painter import MatplotlibPainter
from zuno.kernel.units import Millis
from zuno.trading.chart.account_charts import describe_equity
from zuno.trading.chart.scales import calendar_ticks
from zuno.trading.model.chart import EquityChart
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.trading.rules.equity_lines import DESK, EquityLine
from zuno.trading.rules.performance import EquityPoint

MONDAY = 1_767_571_200_000  # 2026-01-05T00:00Z
VALUES = ("1000", "1100", "880", "990")


def chart(synthetic: bool = False) -> EquityChart:
    curve = [EquityPoint(Millis(MONDAY + i * HOUR_MS), Decimal(value)) for i, value in enumerate(VALUES)]
    return describe_equity(
        [EquityLine(DESK, tuple(curve))], (), "PAPER", "paper:recorded", "recorded", synthetic=synthetic
    )


def test_equity_and_drawdown_by_hand() -> None:
    found = chart()
    assert found.places == pytest.approx((0, 1 / 3, 2 / 3, 1))
    assert found.equity == (1_000.0, 1_100.0, 880.0, 990.0)
    assert found.drawdown == pytest.approx((0.0, 0.0, -20.0, -10.0))
    assert " 20.00 %" in found.figures
    assert "(-1.00 %)" in found.figures
    assert found.equity_axis.low < 880 < 1_100 < found.equity_axis.high
    with pytest.raises(ValueError, match="points"):
        describe_equity([], (), "PAPER", "a", "b", synthetic=False)


@pytest.mark.parametrize(("span", "first"), [(6 * HOUR_MS, "Jan 5"), (5 * DAY_MS, "Jan 5"), (400 * DAY_MS, "Feb")])
def test_dates_are_at_the_beginnings_of_hours_days_and_months(span: int, first: str) -> None:
    ticks = calendar_ticks(Millis(MONDAY), Millis(MONDAY + span))
    assert 2 <= len(ticks) <= 13
    assert all(0 <= tick.at <= 1 for tick in ticks)
    assert ticks[0].label in (first, "Apr")


@pytest.mark.slow
async def test_the_drawdown_is_one_shade_however_close_its_points_are() -> None:
    values = [Decimal(1_000), *[Decimal(800)] * 700]
    curve = [EquityPoint(Millis(MONDAY + i * HOUR_MS), value) for i, value in enumerate(values)]
    image = await MatplotlibPainter().paint_equity(
        replace(describe_equity([EquityLine(DESK, tuple(curve))], (), "PAPER", "a", "b", synthetic=False), times=())
    )
    with Image.open(BytesIO(image)) as picture:
        row = np.asarray(picture.convert("RGB"))[::-1][BOTTOM + FALL_HEIGHT // 2, LEFT + 20 : LAST - 20]
    assert len(np.unique(row, axis=0)) == 1


@pytest.mark.slow
async def test_equal_charts_are_equal_bytes_and_others_are_not() -> None:
    painter = MatplotlibPainter()
    image = await painter.paint_equity(chart())
    assert image.startswith(b"\x89PNG")
    assert await painter.paint_equity(chart()) == image
    for other in (chart(synthetic=True), replace(chart(), label="LIVE"), replace(chart(), equity=(1.0, 1.0, 1.0, 1.0))):
        assert await painter.paint_equity(other) != image
