"""Pieces of a report's page: headings, tables and charts in HTML and SVG, with no script and nothing fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from math import floor, log10
from typing import Final

from zuno.kernel.view import PartialView

WIDTH: Final = 900
HEIGHT: Final = 300
LEFT, RIGHT, TOP, BOTTOM = 100, 12, 18, 28
ROW: Final = 22
COLOURS: Final = 8
MOST_POINTS: Final = 1_500
_STEPS: Final = (1, 2, 5, 10)

_STYLE: Final = """
:root { --ink: #16202b; --quiet: #566472; --paper: #ffffff; --card: #f4f6f8; --line: #d5dce3; --bad: #a84800;
  --c0: #0a5fb4; --c1: #a84800; --c2: #11703c; --c3: #8a2f8f; --c4: #6b5a00; --c5: #0b7285; --c6: #b3203a;
  --c7: #566472; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --quiet: #a3b0bd; --paper: #12171d; --card: #1b222a;
  --line: #36414c; --bad: #ffb068; --c0: #78b9ff; --c1: #ffb068; --c2: #6fd49a; --c3: #dd9be0; --c4: #e2cf6a;
  --c5: #6cd3e6; --c6: #ff8fa3; --c7: #a3b0bd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; border-bottom: 1px solid var(--line); }
p { margin: .4rem 0; } .quiet { color: var(--quiet); } .warn { color: var(--bad); font-weight: 700; }
code { font: .85rem/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
.wide { overflow-x: auto; } .wide + .wide { margin-top: 1.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { text-align: right; padding: .25rem .45rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; } th.t, td.t { text-align: left; }
th.t:first-child, td.t:first-child { position: sticky; left: 0; background: var(--paper); }
figure { margin: .8rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--quiet); font-size: 13px; } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .zero { stroke: var(--quiet); stroke-width: 1.2; } svg path { fill: none; stroke-width: 2; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .3rem 0; padding: 0; list-style: none; }
.legend svg { width: 2rem; height: .8rem; display: inline-block; }
@media (max-width: 40rem) { svg text { font-size: 24px; } svg text.name { font-size: 20px; }
  svg path { stroke-width: 4; } svg circle { r: 9px; } svg .spare { display: none; } }
@media print { :root { --ink: #000; --quiet: #444; --paper: #fff; --card: #fff; --line: #999; }
  body { max-width: none; } figure, tr { break-inside: avoid; } }
""" + "".join(
    f".k{k} {{ stroke: var(--c{k}); }} .f{k} {{ fill: var(--c{k}); }} svg path.k{k} {{ stroke-dasharray: {dash}; }}\n"
    for k, dash in enumerate(("none", "8 4", "2 3", "10 3 2 3", "5 2", "1 4", "12 5", "3 6"))
)


@dataclass(frozen=True, slots=True)
class Line:
    """A series over time; the points are (Unix seconds, value)."""

    name: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar of signed parts for one name; `parts` go by the names of the chart."""

    name: str
    parts: Sequence[float]


def build_page(title: str, command: str, sections: Iterable[str]) -> str:
    """A whole document that needs nothing but itself."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f'<meta name="color-scheme" content="light dark">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f"</head>\n<body>\n<header><h1>{escape(title)}</h1>\n<p><code>{escape(command)}</code></p></header>\n<main>\n"
        + "\n".join(sections)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, kind: str = "") -> str:
    """`kind`: `quiet` or `warn`."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(names: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int = 1) -> str:
    """The first columns are words and stand left; the others are figures."""

    def cells(tag: str, fields: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=t' if place < text_columns else ''}>{escape(field)}</{tag}>"
            for place, field in enumerate(fields)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', names)}</tr></thead>"
    return f'<div class="wide"><table>{head}\n<tbody>\n{body}\n</tbody></table></div>'


def line_chart(caption: str, lines: Sequence[Line], unit: str = "USD") -> str:
    """Lines over the same time; nothing to draw is an empty text."""
    drawn = [line for line in lines if len(line.points) > 1]
    if not drawn:
        return ""
    times = [at for line in drawn for at, _ in (line.points[0], line.points[-1])]
    values = [value for line in drawn for _, value in line.points]
    first, last = min(times), max(times)
    marks = _ticks(min(values), max(values))
    low, high = min(marks[0], min(values)), max(marks[-1], max(values))

    def x(at: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / max(1, last - first)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    parts = [
        _grid_line(mark, LEFT, y(mark), WIDTH - RIGHT, y(mark))
        + f'<text x="{LEFT - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{_short(mark, marks)}</text>'
        for mark in marks
    ]
    for place in range(5):
        at = first + (last - first) * place // 4
        anchor = "start" if place == 0 else "end" if place == 4 else "middle"
        spare = ' class="spare"' if place % 2 else ""
        day = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d" if last - first >= 8 * 86_400 else "%m-%d %H:%M")
        parts.append(f'<text{spare} x="{x(at):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{day}</text>')
    for number, line in enumerate(drawn):
        points = _thin(line.points)
        path = "M" + "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in points)
        parts.append(f'<path class="k{number % COLOURS}" d="{path}"><title>{escape(line.name)}</title></path>')
    return _figure(f"{caption} ({unit})", HEIGHT, parts, [line.name for line in drawn])


def bar_chart(caption: str, names: Sequence[str], rows: Sequence[Bars], unit: str = "USD") -> str:
    """For every row its parts side by side from zero: what is gained to the right, what is lost to the left."""
    if not rows:
        return ""
    sums = [sum(part for part in row.parts if part * sign > 0) for row in rows for sign in (1, -1)]
    left, height, x, parts = _lay_out_rows([row.name for row in rows], [0.0, *sums])
    for place, row in enumerate(rows):
        top = TOP + place * ROW
        parts.append(f'<text class="name" x="{left - 8}" y="{top + 15}" text-anchor="end">{escape(row.name)}</text>')
        reached = {True: 0.0, False: 0.0}
        for number, part in enumerate(row.parts):
            if part == 0:
                continue
            start = reached[part > 0]
            reached[part > 0] = end = start + part
            a, b = sorted((x(start), x(end)))
            parts.append(
                f'<rect class="f{number % COLOURS}" x="{a:.1f}" y="{top + 3}" width="{max(b - a, 0.5):.1f}" '
                f'height="{ROW - 7}">'
                f"<title>{escape(names[number])} {part:+,.2f}</title></rect>"
            )
    return _figure(f"{caption} ({unit})", height, parts, names, filled=True)


def interval_chart(
    caption: str, rows: Sequence[tuple[str, float, tuple[float, float] | None]], unit: str = "USD"
) -> str:
    """A dot with its interval for every name, and zero between them."""
    if not rows:
        return ""
    ends = [0.0] + [value for _, middle, span in rows for value in (middle, *(span or ()))]
    left, height, x, parts = _lay_out_rows([name for name, _, _ in rows], ends)
    for place, (name, middle, span) in enumerate(rows):
        across = TOP + place * ROW + ROW / 2
        parts.append(f'<text class="name" x="{left - 8}" y="{across + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        if span is not None:
            parts.append(
                f'<path class="k0" d="M{x(span[0]):.1f} {across:.1f}L{x(span[1]):.1f} {across:.1f}">'
                f"<title>{span[0]:+,.2f} to {span[1]:+,.2f}</title></path>"
            )
        parts.append(
            f'<circle class="f0" cx="{x(middle):.1f}" cy="{across:.1f}" r="4"><title>{middle:+,.2f}</title></circle>'
        )
    return _figure(f"{caption} ({unit})", height, parts, [])


def heat_map(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[float | None]]],
    axes: tuple[str, str],
    signs: tuple[str, str],
    unit: str = "USD",
) -> str:
    """A cell for every column of every row: its colour says on which side of zero it lies, and its strength how far.
    `axes`: what goes across and down. `signs`: what above and below zero are. None is left blank."""
    most = max((abs(value) for _, cells in rows for value in cells if value is not None), default=0.0)
    if most == 0:
        return ""
    left, top, high = LEFT, TOP + 34, 12
    wide = (WIDTH - left - RIGHT) / len(columns)
    parts = [
        f'<text class="name" x="{WIDTH - RIGHT}" y="{TOP + 4}" text-anchor="end">{escape(axes[0])} →</text>',
        f'<text class="name" x="0" y="{TOP + 4}">{escape(axes[1])} ↓</text>',
    ]
    for place in range(0, len(columns), max(1, (len(columns) - 1) // 8)):
        last = place == len(columns) - 1
        x = WIDTH - RIGHT if last else left + wide * (place + 0.5)
        parts.append(
            f'<text class="name" x="{x:.1f}" y="{TOP + 26}" text-anchor="{"end" if last else "middle"}">'
            f"{escape(columns[place])}</text>"
        )
    for number, (name, cells) in enumerate(rows):
        y = top + number * high
        if number % 2 == 0:  # a label is higher than a row
            parts.append(
                f'<text class="name" x="{left - 8}" y="{y + high - 1}" text-anchor="end">{escape(name)}</text>'
            )
        for place, value in enumerate(cells):
            if value is not None:
                parts.append(
                    f'<rect class="f{int(value < 0)}" fill-opacity="{0.08 + 0.92 * abs(value) / most:.2f}" '
                    f'x="{left + wide * place:.1f}" y="{y}" width="{wide - 1:.1f}" height="{high - 1}">'
                    f"<title>{escape(name)}, {escape(columns[place])}: {value:+,.2f}</title></rect>"
                )
    named = f"{caption} ({unit}, the strongest colour is {most:,.2f})"
    return _figure(named, top + len(rows) * high + 6, parts, signs, filled=True)


def describe_unfinished(view: PartialView, part: str) -> list[str]:
    return [paragraph(f"Unfinished: stopped before every {part} was done.", "warn")] if view.stopped else []


def format_moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def draw_down(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """How far below its highest value so far a series stands, in per cent of it: 0 or less."""
    peak, fallen = points[0][1], []
    for at, value in points:
        peak = max(peak, value)
        fallen.append((at, 100 * (value - peak) / peak if peak > 0 else 0.0))
    return fallen


def format_span(ends: tuple[float, float] | None) -> str:
    return "too few" if ends is None else f"{ends[0]:+,.2f} to {ends[1]:+,.2f}"


def _figure(caption: str, height: int, parts: Sequence[str], names: Sequence[str], *, filled: bool = False) -> str:
    shape = '<rect class="f{0}" width="28" height="10"/>' if filled else '<path class="k{0}" d="M0 6H30"/>'
    legend = "".join(
        f'<li><svg viewBox="0 0 30 12" aria-hidden="true">{shape.format(number % COLOURS)}</svg> {escape(name)}</li>'
        for number, name in enumerate(names)
    )
    legend = f'<ul class="legend">{legend}</ul>' if legend else ""
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption>{legend}\n"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(caption)}">\n'
        + "\n".join(parts)
        + "\n</svg></figure>"
    )


def _lay_out_rows(
    names: Sequence[str], values: Sequence[float]
) -> tuple[int, int, Callable[[float], float], list[str]]:
    """Of a chart with a row for each name: where its values begin, its height, the place of a value, and its grid."""
    marks = _ticks(min(values), max(values))
    low, high = marks[0], marks[-1]
    left = min(16 + 12 * max(map(len, names)), WIDTH // 2)  # room for the longest name as a phone writes it
    height = TOP + len(names) * ROW + BOTTOM

    def x(value: float) -> float:
        return left + (WIDTH - left - RIGHT) * (value - low) / (high - low)

    parts = []
    for mark in marks:
        anchor = "end" if mark == high else "middle"  # the last label ends where the chart does
        label = f'<text x="{x(mark):.1f}" y="{height - 8}" text-anchor="{anchor}">{_short(mark, marks)}</text>'
        parts.append(_grid_line(mark, x(mark), TOP, x(mark), height - BOTTOM) + label)
    return left, height, x, parts


def _grid_line(mark: float, x1: float, y1: float, x2: float, y2: float) -> str:
    kind = "zero" if mark == 0 else "grid"
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _ticks(low: float, high: float) -> list[float]:
    """Round values that hold both ends, four to eight of them."""
    if high <= low:
        low, high = low - 1, high + 1
    rough = (high - low) / 6
    power = 10.0 ** floor(log10(rough))
    step = next(power * size for size in _STEPS if power * size >= rough)
    first, last = floor(low / step), -floor(-high / step)
    return [step * place for place in range(first, last + 1)]


def _short(mark: float, marks: Sequence[float]) -> str:
    step = min(abs(after - before) for before, after in pairwise(marks))
    digits = max(0, -floor(log10(step)))
    return f"{mark:,.{digits}f}"


def _thin(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """No more points than a screen shows; the last one stays."""
    step = -(-len(points) // MOST_POINTS)
    return points if step == 1 else [*points[:-1:step], points[-1]]
