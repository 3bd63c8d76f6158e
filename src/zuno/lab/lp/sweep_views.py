"""What a sweep of ranges found."""

from __future__ import annotations

from zuno.kernel.view import PartialView, View
from zuno.lab.lp.ranges import RangeView


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
    ranges: int
    above_hold: float
    """Share of the ranges that ended above holding."""
    quantiles: tuple[QuantileView, ...]
    best: tuple[RangeView, ...]
    worst: tuple[RangeView, ...]
    trials: int
    """Ranges that were ever tried in this home: the best of so many is no forecast."""
