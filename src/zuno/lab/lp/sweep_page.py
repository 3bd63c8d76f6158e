"""The page of a sweep of ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zuno.amm.model import Range
from zuno.lab.lp.ranges import SHIFTS, RangeView
from zuno.lab.lp.repairs import describe_repairs
from zuno.lab.lp.views import SweepView, describe_alike
from zuno.lab.report_page import build_page, describe_unfinished, format_moment, heading, heat_map, paragraph, table

MOST_ROWS = 40


def build_sweep_page(
    view: SweepView, title: str, command: str, grid: Sequence[Range], found: Sequence[RangeView]
) -> str:
    """`grid`: every width at every shift, in their order."""
    return build_page(
        title,
        command,
        [
            *describe_unfinished(view, "range"),
            paragraph(
                f"{format_moment(view.since)} to {format_moment(view.until)} UTC; {view.capital_usd:,} USD, half of "
                "it in each token before. A range is opened once and kept; fees by the fast engine, the first swap at "
                "the pool's fee without impact, no gas."
            ),
            *([paragraph(alike, "quiet")] if (alike := describe_alike(view)) else []),
            paragraph(
                f"{view.above_hold:.1%} of the ranges ended above holding. {view.trials:,} ranges were ever tried in "
                "this home: the best of so many is no forecast."
            ),
            heading("Against holding"),
            heat_map(
                "Net result less that of holding, by the range's half-width and by where its centre lies",
                [f"{100 * (2 * place - (SHIFTS - 1)) / (2 * (SHIFTS - 1)):+.0f} %" for place in range(SHIFTS)],
                list(_rows(grid, found)),
                ("centre from the price, in half-widths", "half-width, ticks"),
                ("above holding", "below holding"),
            ),
            table(
                ("share of the ranges", "against hold, at most"),
                [(f"{row.share} %", f"{row.vs_hold_usd:+,.2f}") for row in view.quantiles],
            ),
            heading("The best"),
            _table(view.best),
            heading("The worst"),
            _table(view.worst),
            heading("Data"),
            paragraph(describe_repairs(view.repairs)),
        ],
    )


def _rows(grid: Sequence[Range], found: Sequence[RangeView]) -> Iterator[tuple[str, list[float | None]]]:
    """A row for every width, or for so many of them as can be told apart."""
    ended = {(row.lower, row.upper): row.vs_hold_usd for row in found}
    widths = len(grid) // SHIFTS
    shown = range(widths) if widths <= MOST_ROWS else [widths * place // MOST_ROWS for place in range(MOST_ROWS)]
    for step in shown:
        row = grid[step * SHIFTS : (step + 1) * SHIFTS]
        half = (row[0].upper - row[0].lower) // 2
        yield f"±{half:,}", [ended.get((held.lower, held.upper)) for held in row]


def _table(rows: Sequence[RangeView]) -> str:
    return table(
        ("range, ticks", "net", "against hold", "fees", "in range", "drawdown"),
        [
            (
                f"{row.lower}…{row.upper}",
                f"{row.net_pnl_usd:+,.2f}",
                f"{row.vs_hold_usd:+,.2f}",
                f"{row.fees:,.2f}",
                f"{row.time_in_range:.1%}",
                f"{row.max_drawdown:.2%}",
            )
            for row in rows
        ],
    )
