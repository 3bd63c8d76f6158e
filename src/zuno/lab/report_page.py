"""The page of a report: its document and charts in one HTML file, drawn by `templates/report.html`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from math import floor, log10
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from zuno.lab.model import RateView, format_span
from zuno.present.document import Document, Table

if TYPE_CHECKING:
    from jinja2 import Template


WIDTH: Final = 900
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 100, 12, 18, 28
ROW: Final = 22
CELL: Final = 12
MOST_POINTS: Final = 1_500
_FIGURE: Final = re.compile(r"[+−-]?[0-9]|–?$|too few")
Points: TypeAlias = Sequence[tuple[int, float]]
"""A series over time: Unix seconds and values."""


class GridLine(NamedTuple):
    kind: str
    x1: float
    y1: float
    x2: float
    y2: float


class Bar(NamedTuple):
    colour: int
    x: float
    y: float
    width: float
    height: int
    title: str
    opacity: float = 1


class Path(NamedTuple):
    colour: int
    points: Sequence[tuple[float, float]]
    title: str


class Dot(NamedTuple):
    x: float
    y: float
    title: str


class Label(NamedTuple):
    x: float
    y: float
    text: str
    anchor: str = "end"
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart is made of, in pixels."""

    caption: str
    legend: Sequence[str] = ()
    filled: bool = False
    """Whether the legend shows areas, not lines."""
    height: int = HEIGHT
    width: int = WIDTH
    lines: list[GridLine] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


Charts: TypeAlias = Mapping[str, Sequence[Chart | None]]
"""By the title of the section that they stand in."""
NO_CHARTS: Final[Charts] = {}


@runtime_checkable
class Charted(Protocol):
    def draw_charts(self) -> Charts: ...


def build_page(title: str, command: str, document: Document, charts: Charts = NO_CHARTS) -> str:
    """A whole file that needs nothing but itself: no script, nothing fetched, every text escaped."""
    return _page_template().render(title=title, command=command, document=document, charts=charts)


@cache
def _page_template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"px": "{:.1f}".format, "column_kinds": _column_kinds}
    return environment.from_string((files("zuno.lab") / "templates" / "report.html").read_text(encoding="utf-8"))


def _column_kinds(table: Table) -> list[str]:
    """The class of each column: words stand left, as the first one always does, and figures right."""
    texts = [[row.cells[place].text for row in table.rows] for place in range(len(table.columns))]
    return ["" if place and all(map(_FIGURE.match, cells)) else " class=t" for place, cells in enumerate(texts)]


def line_chart(caption: str, series: Iterable[tuple[str, Points]], unit: str = "USD") -> Chart | None:
    """Named series over the same time; None where there is nothing to draw."""
    drawn = [(name, points) for name, points in series if len(points) > 1]
    if not drawn:
        return None
    times = [at for _, points in drawn for at, _ in (points[0], points[-1])]
    values = [value for _, points in drawn for _, value in points]
    first, last = min(times), max(times)
    marks = _ticks(min(values), max(values))
    low, high = min(marks[0], min(values)), max(marks[-1], max(values))

    def x(at: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / max(1, last - first)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    chart = Chart(f"{caption} ({unit})", [name for name, _ in drawn])
    for mark in marks:
        chart.lines.append(GridLine("grid" if mark else "zero", LEFT, y(mark), WIDTH - RIGHT, y(mark)))
        chart.labels.append(Label(LEFT - 6, y(mark) + 4, _short(mark, marks)))
    for place in range(5):
        at = first + (last - first) * place // 4
        day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d" if last - first >= 8 * 86_400 else "%m-%d %H:%M")
        anchor = "start" if place == 0 else "end" if place == 4 else "middle"
        chart.labels.append(Label(x(at), HEIGHT - 8, day, anchor, "spare" if place % 2 else ""))
    for number, (name, points) in enumerate(drawn):
        chart.paths.append(Path(number, [(x(at), y(value)) for at, value in _thin(points)], name))
    return chart


def bar_chart(caption: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]) -> Chart | None:
    """For every row its parts side by side from zero: what is gained to the right, what is lost to the left."""
    if not rows:
        return None
    sums = [sum(part for part in parts if part * sign > 0) for _, parts in rows for sign in (1, -1)]
    chart, x = _lay_out_rows(f"{caption} (USD)", [name for name, _ in rows], [0.0, *sums], names)
    for place, (_, parts) in enumerate(rows):
        reached = {True: 0.0, False: 0.0}
        for number, part in enumerate(parts):
            if part == 0:
                continue
            start = reached[part > 0]
            reached[part > 0] = end = start + part
            left, right = sorted((x(start), x(end)))
            title = f"{names[number]} {part:+,.2f}"
            chart.bars.append(Bar(number, left, TOP + place * ROW + 3, max(right - left, 0.5), ROW - 7, title))
    return chart


def interval_chart(
    caption: str, rows: Sequence[tuple[str, float, tuple[float, float] | None]], unit: str = "USD"
) -> Chart | None:
    """A dot with its interval for every name, and zero between them."""
    if not rows:
        return None
    ends = [0.0] + [value for _, middle, span in rows for value in (middle, *(span or ()))]
    chart, x = _lay_out_rows(f"{caption} ({unit})", [name for name, _, _ in rows], ends)
    for place, (_, middle, span) in enumerate(rows):
        across = TOP + place * ROW + ROW / 2
        if span is not None:
            chart.paths.append(Path(0, [(x(end), across) for end in span], format_span(span)))
        chart.dots.append(Dot(x(middle), across, f"{middle:+,.2f}"))
    return chart


def rate_chart(caption: str, rates: Iterable[tuple[str, RateView]]) -> Chart | None:
    """Rates with their intervals, in per cent."""
    rows = [
        (name, 100 * (rate.rate or 0.0), None if rate.ci95 is None else (100 * rate.ci95[0], 100 * rate.ci95[1]))
        for name, rate in rates
    ]
    return interval_chart(caption, rows, "%")


def heat_map(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[float | None]]],
    axes: tuple[str, str],
    signs: tuple[str, str],
) -> Chart | None:
    """A cell for every column of every row: its colour says on which side of zero it lies, and its strength how far.
    `axes`: what goes across and down. `signs`: what above and below zero are. None is left blank."""
    most = max((abs(value) for _, cells in rows for value in cells if value is not None), default=0.0)
    if most == 0:
        return None
    top, wide = TOP + 34, (WIDTH - LEFT - RIGHT) / len(columns)
    named = f"{caption} (USD, the strongest colour is {most:,.2f})"
    chart = Chart(named, signs, filled=True, height=top + len(rows) * CELL + 6)
    chart.labels.append(Label(WIDTH - RIGHT, TOP + 4, f"{axes[0]} →", "end", "name"))
    chart.labels.append(Label(0, TOP + 4, f"{axes[1]} ↓", "start", "name"))
    for place in range(0, len(columns), max(1, (len(columns) - 1) // 8)):
        last = place == len(columns) - 1
        x = WIDTH - RIGHT if last else LEFT + wide * (place + 0.5)
        chart.labels.append(Label(x, TOP + 26, columns[place], "end" if last else "middle", "name"))
    for number, (name, cells) in enumerate(rows):
        y = top + number * CELL
        if number % 2 == 0:  # a label is higher than a row
            chart.labels.append(Label(LEFT - 8, y + CELL - 1, name, "end", "name"))
        for place, value in enumerate(cells):
            if value is not None:
                title, opacity = f"{name}, {columns[place]}: {value:+,.2f}", 0.08 + 0.92 * abs(value) / most
                chart.bars.append(Bar(int(value < 0), LEFT + wide * place, y, wide - 1, CELL - 1, title, opacity))
    return chart


def draw_down(points: Points) -> list[tuple[int, float]]:
    """How far below its highest value so far a series stands, in per cent of it: 0 or less."""
    peaks = accumulate((value for _, value in points), max)
    return [
        (at, 100 * (value - peak) / peak if peak > 0 else 0.0) for (at, value), peak in zip(points, peaks, strict=True)
    ]


def _lay_out_rows(
    caption: str, names: Sequence[str], values: Sequence[float], legend: Sequence[str] = ()
) -> tuple[Chart, Callable[[float], float]]:
    """A chart with a row for each name and its grid, and the place of a value."""
    marks = _ticks(min(values), max(values))
    low, high = marks[0], marks[-1]
    left = min(16 + 12 * max(map(len, names)), WIDTH // 2)  # room for the longest name as a phone writes it
    chart = Chart(caption, legend, filled=True, height=TOP + len(names) * ROW + BOTTOM)

    def x(value: float) -> float:
        return left + (WIDTH - left - RIGHT) * (value - low) / (high - low)

    for mark in marks:
        chart.lines.append(GridLine("grid" if mark else "zero", x(mark), TOP, x(mark), chart.height - BOTTOM))
        anchor = "end" if mark == high else "middle"  # the last label ends where the chart does
        chart.labels.append(Label(x(mark), chart.height - 8, _short(mark, marks), anchor))
    for place, name in enumerate(names):
        chart.labels.append(Label(left - 8, TOP + place * ROW + 15, name, "end", "name"))
    return chart, x


def _ticks(low: float, high: float) -> list[float]:
    """Round values that hold both ends, four to eight of them."""
    if high <= low:
        low, high = low - 1, high + 1
    rough = (high - low) / 6
    power = 10.0 ** floor(log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough)
    first, last = floor(low / step), -floor(-high / step)
    return [step * place for place in range(first, last + 1)]


def _short(mark: float, marks: Sequence[float]) -> str:
    step = min(abs(after - before) for before, after in pairwise(marks))
    return f"{mark:,.{max(0, -floor(log10(step)))}f}"


def _thin(points: Points) -> Points:
    """No more points than a screen shows; the last one stays."""
    step = -(-len(points) // MOST_POINTS)
    return points if step == 1 else [*points[:-1:step], points[-1]]
