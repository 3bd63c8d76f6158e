"""A pool by day: what a full range of it was paid, and whether its fee cover lasts."""

from collections.abc import Mapping
from math import fsum

from zuno.amm.integers import Q96
from zuno.kernel.numbers_text import time_text
from zuno.kernel.view import PartialView, View
from zuno.lab.lp.cover import DAY, WeeksView, days_of, predict_weeks
from zuno.lab.lp.views import describe_cover
from zuno.lab.model import figure, name_report, remark, table_of
from zuno.lp.model.tape import PoolDays
from zuno.present.document import Document, document, section
from zuno.present.values import percent

YEAR_DAYS = 365
DAY_MINUTES = 1_440


class WideArmView(View):
    """A range that the price never left, kept at the same worth."""

    name: str
    fees_less_lvr: float
    """USD over all days."""
    ci95: None
    """A day's variance is one return: no interval by day."""
    fees_pct_year: float
    lvr_pct_year: float


class LpDaysView(PartialView):
    report: str
    data: str
    since: int
    until: int
    days: int
    capital_usd: int
    fees_over_lvr: float
    minutes: int
    by_minutes: Mapping[int, float]
    weeks: WeeksView
    arms: tuple[WideArmView, ...]

    def to_document(self) -> Document:
        return document(
            describe_cover(self.fees_over_lvr, None),
            section(
                "Fees less LVR",
                table_of(
                    self.arms,
                    {
                        "range": lambda arm: arm.name,
                        "fees − LVR, USD": lambda arm: figure(arm.fees_less_lvr, signed=True),
                        "fees a year": lambda arm: percent(arm.fees_pct_year),
                        "LVR a year": lambda arm: percent(arm.lvr_pct_year),
                    },
                ),
                remark(
                    "A day's variance is its one squared return: enough over years and for a range the price never "
                    "leaves, too little for an interval by day."
                ),
            ),
            self.weeks.describe(),
            context=f"{time_text(self.since)} to {time_text(self.until)}, {self.days:,} days, {self.capital_usd:,} USD",
            notes=name_report(self.report, self.data),
        )


def build_days_view(record: PoolDays, report: str, data: str, capital: int) -> LpDaysView:
    days = days_of(record)
    roots = {row.day: row.sqrt_price_x96 / Q96 for row in record.days}
    # Over all prices a unit of liquidity is worth 2·√P of token1.
    fees, lvr = (fsum(getattr(day, part) / (2 * roots[day.day]) for day in days) for part in ("fees", "lvr"))
    ratio = round(fsum(day.fees for day in days) / fsum(day.lvr for day in days), 6)
    full = WideArmView(
        name="full-range",
        fees_less_lvr=round(capital * (fees - lvr), 2),
        ci95=None,
        fees_pct_year=round(100 * fees * YEAR_DAYS / len(days), 6),
        lvr_pct_year=round(100 * lvr * YEAR_DAYS / len(days), 6),
    )
    return LpDaysView(
        ok=True,
        stopped=False,
        report=report,
        data=data,
        since=record.days[0].day * DAY,
        until=(record.days[-1].day + 1) * DAY,
        days=len(days),
        capital_usd=capital,
        fees_over_lvr=ratio,
        minutes=DAY_MINUTES,
        by_minutes={DAY_MINUTES: ratio},
        weeks=predict_weeks(days),
        arms=(full,),
    )
