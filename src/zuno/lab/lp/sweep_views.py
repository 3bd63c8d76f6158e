"""What a sweep of ranges found."""

from __future__ import annotations

from zuno.kernel.view import PartialView, View
from zuno.lab.lp.ranges import RangeView
from zuno.lp.model.minutes import MinuteRepairs


class QuantileView(View):
    share: int
    """Per cent of the ranges that did no better."""
    vs_hold_usd: float


class SweepView(PartialView):
    report: str
    data: str
    since: int
    until: int
    capital_usd: int
    asked: int
    ranges: int
    """That were played, each once: narrow ones that are alike after rounding to the pool's tick spacing are one."""
    above_hold: float
    """Share of the ranges that ended above holding."""
    quantiles: tuple[QuantileView, ...]
    best: tuple[RangeView, ...]
    worst: tuple[RangeView, ...]
    repairs: MinuteRepairs
    trials: int
    """Ranges that were ever tried in this home: the best of so many is no forecast."""


def describe_alike(view: SweepView) -> str:
    """How many of the ranges that were asked for are no ranges of their own; empty where all are."""
    if view.stopped or view.ranges == view.asked:
        return ""
    return (
        f"Of {view.asked:,} ranges {view.asked - view.ranges:,} narrow ones are the same as another after rounding "
        f"to the pool's tick spacing: {view.ranges:,} distinct ones were played."
    )
