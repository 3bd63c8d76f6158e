"""A document as lines of text of a given width: no figure is cut, spare columns go first, then rows become cards."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, zip_longest
from typing import Final

from zuno.present.document import Column, Document, Fact, Facts, Lines, Mark, Row, Section, Table, Tone, Value

GAP: Final = "  "
_LEAST_ROOM: Final = 16
"""Columns that a value needs beside its label; with less it stands under it."""
_GLUE: Final = "\xa0"
"""A space where a line is not broken; a value never holds one."""
_BLANKS: Final = frozenset({"", "–", "?", "unknown"})


@dataclass(frozen=True, slots=True)
class Span:
    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]


def to_text(document: Document, width: int) -> str:
    return "\n".join("".join(span.text for span in line).rstrip() for line in layout(document, width))


def layout(document: Document, width: int) -> Iterator[Line]:
    """The lines of a document with their tones."""
    if document.headline.text:
        tone = document.headline.tone if document.headline.tone is not Tone.PLAIN else Tone.STRONG
        yield from _wrap_value(document.headline.with_tone(tone), width)
    if document.context.text:
        yield from _wrap_value(document.context.with_tone(Tone.QUIET), width)
    for value in document.urgent:
        yield from _wrap_value(_warn(value), width)
    for number, section in enumerate(document.sections):
        if number and section.title:
            yield ()
        yield from _layout_section(section, width)
    for value in document.notes:
        yield from _wrap_value(Value(f"note: {value.text}", Tone.QUIET), width)
    for picture in document.pictures:
        yield from _wrap_value(Value(f"{picture.caption or 'picture'}: {picture.file}"), width)
    if document.acts:
        commands = ", ".join(f"`zuno {act.command}`".replace(" ", _GLUE) for act in document.acts)
        yield from ((Span(line, Tone.QUIET),) for line in wrap(f"next: {commands}", width))


def _layout_section(section: Section, width: int) -> Iterator[Line]:
    if section.title:
        yield from _wrap_value(Value(section.title, Tone.STRONG), width)
    for block in section.blocks:
        match block:
            case Facts(facts):
                yield from layout_facts(facts, width)
            case Table():
                yield from layout_table(block, width)
            case Lines(values, mark):
                for value in values:
                    yield from _layout_line(value, mark, width)


def _layout_line(value: Value, mark: Mark, width: int) -> Iterator[Line]:
    match mark:
        case Mark.VERBATIM:
            yield from ((Span(line, value.tone),) for line in value.text.split("\n"))
        case Mark.NOTE:
            yield from _wrap_value(Value(f"note: {value.text}", Tone.QUIET), width)
        case Mark.WARNING:
            yield from _wrap_value(_warn(value), width)
        case Mark.SENTENCE | Mark.QUOTE:
            yield from _wrap_value(value, width)


def _warn(value: Value) -> Value:
    return value.with_tone(Tone.WARN) if value.tone is Tone.PLAIN else value


def layout_facts(facts: Sequence[Fact], width: int, indent: int = 0) -> Iterator[Line]:
    """Labels and values side by side; on a narrow screen the value stands under its label. Long values are wrapped."""
    label_width = max((count_columns(fact.label) for fact in facts), default=0)
    room = width - indent - label_width - len(GAP)
    below = room < _LEAST_ROOM
    margin = " " * min(indent, width // 4)
    for fact in facts:
        label = Span(margin + pad(fact.label, label_width) + GAP, Tone.QUIET)
        hanging = Span(" " * (indent + label_width + len(GAP)))
        if below:
            yield from ((Span(margin + part, Tone.QUIET),) for part in wrap(fact.label, width - len(margin)))
            label = hanging = Span(margin + GAP[: width // 4])
        for number, line in enumerate(_wrap_fact(fact, width - len(label.text) if below else room)):
            yield (hanging if number else label, *line)


def _wrap_fact(fact: Fact, width: int) -> Iterator[Line]:
    about = f"{GAP}({fact.about})" if fact.about else ""
    stale = f"{GAP}STALE" if fact.stale else ""
    text = fact.value.text.replace("\n", " ")
    if (about or stale) and count_columns(text + about + stale) <= width:
        yield (Span(text, fact.value.tone), Span(about, Tone.QUIET), Span(stale, Tone.BAD))
        return
    yield from _wrap_value(Value(text, fact.value.tone), width)
    for extra, tone in ((about, Tone.QUIET), (stale, Tone.BAD)):
        if extra:
            yield from _wrap_value(Value(extra.strip(), tone), width)


def layout_table(table: Table, width: int) -> Iterator[Line]:
    """The table as wide as it may be: without its spare columns where it must, else a card for each row."""
    fitting = fit_table(table, width)
    if fitting is None:
        for row in table.rows:
            yield from _layout_card(table.columns, row, width)
        return
    columns, rows = fitting
    spare = set(table.columns) - set(columns) if table.whole else ()
    widths = _column_widths(columns, rows)
    right = [is_numeric(rows, place) for place in range(len(columns))]
    header = [pad(column.name, size, right=end) for column, size, end in zip(columns, widths, right, strict=True)]
    yield (Span(GAP.join(header).rstrip(), Tone.QUIET),)
    for whole, row in zip(table.rows, rows, strict=True):
        cells = [cell.text.split("\n") for cell in row.cells]
        for parts in zip_longest(*cells, fillvalue=""):
            spans = []
            for part, cell, size, end in zip(parts, row.cells, widths, right, strict=True):
                spans += [Span(pad(part, size, right=end), cell_tone(cell, row)), Span(GAP)]
            yield tuple(spans[:-1])
        if spare:
            pairs = zip(table.columns, whole.cells, strict=True)
            kept = ((column, cell) for column, cell in pairs if column in spare and cell.text not in _BLANKS)
            about = ", ".join(f"{column.name} {one_line(cell, column)}".replace(" ", _GLUE) for column, cell in kept)
            yield from ((Span(f"    {line}", Tone.QUIET),) for line in wrap(about, width - 4) if about)


def fit_table(table: Table, width: int, gap: int = len(GAP)) -> tuple[tuple[Column, ...], tuple[Row, ...]] | None:
    """Columns and rows of the table that fit into the width; None: not even without the spare columns."""
    sizes = _column_widths(table.columns, table.rows)
    for most in range(max((column.rank for column in table.columns), default=0), -1, -1):
        kept = [column.rank <= most for column in table.columns]
        if sum(compress(sizes, kept)) + gap * (sum(kept) - 1) <= width:
            columns = tuple(compress(table.columns, kept))
            rows = tuple(Row(tuple(compress(row.cells, kept)), row.tone) for row in table.rows)
            return columns, rows
    return None


def is_numeric(rows: Sequence[Row], place: int) -> bool:
    """Whether a column holds figures alone, which end at its right edge."""
    cells = [row.cells[place] for row in rows]
    return any(cell.number is not None for cell in cells) and all(
        cell.number is not None or cell.text in _BLANKS for cell in cells
    )


def _layout_card(columns: Sequence[Column], row: Row, width: int) -> Iterator[Line]:
    """The first cell heads its card; the others stand under it by the names of their columns."""
    head, *cells = row.cells
    title = f"{columns[0].name} {one_line(head, columns[0])}".strip()
    tone = cell_tone(head, row)
    yield from _wrap_value(Value(title, Tone.STRONG if tone is Tone.PLAIN else tone), width)
    facts = [
        Fact(column.name, Value(one_line(cell, column), cell_tone(cell, row)))
        for column, cell in zip(columns[1:], cells, strict=True)
        if cell.text
    ]
    yield from layout_facts(facts, width, indent=2)


def cell_tone(cell: Value, row: Row) -> Tone:
    return row.tone if cell.tone is Tone.PLAIN else cell.tone


def one_line(cell: Value, column: Column) -> str:
    return column.joiner.join(cell.text.split("\n"))


def _column_widths(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    cells = zip(*(row.cells for row in rows), strict=True) if rows else [()] * len(columns)
    return [
        max(map(count_columns, (column.name, *(line for cell in below for line in cell.text.split("\n")))))
        for column, below in zip(columns, cells, strict=True)
    ]


def _wrap_value(value: Value, width: int) -> Iterator[Line]:
    for paragraph in value.text.split("\n"):
        for line in wrap(paragraph, width):
            yield (Span(line, value.tone),)


def wrap(text: str, width: int) -> list[str]:
    """Broken at spaces, not at glue; a word that is longer than the width is folded, whole."""
    if count_columns(text) <= width:
        return [text.replace(_GLUE, " ")]
    indent = text[: len(text) - len(text.lstrip(" "))][: width // 2]
    lines: list[str] = []
    current = ""
    for word in filter(None, text.split(" ")):
        joined = f"{current} {word}" if current else (word if lines else indent + word)
        if count_columns(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *folded, current = _fold(word if lines or current else indent + word, width)
        lines += folded
    return [line.replace(_GLUE, " ") for line in (*lines, current)]


def _fold(word: str, width: int) -> list[str]:
    pieces, size = [""], 0
    for char in word:
        columns = _char_columns(char)
        if size + columns > max(width, 2):
            pieces.append("")
            size = 0
        pieces[-1] += char
        size += columns
    return pieces


def pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - count_columns(text))
    return space + text if right else text + space


def count_columns(text: str) -> int:
    """Of a terminal: wide characters take two, marks none."""
    return len(text) if text.isascii() else sum(map(_char_columns, text))


def _char_columns(char: str) -> int:
    return 0 if unicodedata.category(char) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(char) in "WF" else 1
