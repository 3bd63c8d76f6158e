"""A document as the HTML that Telegram knows, narrow enough for a phone, with every text escaped."""

from collections.abc import Callable
from html import escape
from typing import Final

from zuno.kernel.chat_text import format_text
from zuno.kernel.view import sanitise
from zuno.present.document import Document, Fact, Facts, Kind, Lines, Mark, Row, Section, Table, Tone, Value
from zuno.present.text import cell_tone, count_columns, fit_table, is_numeric, one_line, pad

PHONE_WIDTH: Final = 38
"""Characters of a monospace line that a phone of 360 px shows without wrapping."""

Translate = Callable[[str], str]
"""Says a sentence with the commands of the door, where it names one of the terminal."""


def to_html(document: Document, translate: Translate = str) -> str:
    """Paragraphs for the head, each section and the notes; empty lines between them, where a message may be broken."""
    writer = _Writer(translate)
    urgent = [f"⚠ {writer.value(value)}" for value in document.urgent]
    head = join(writer.value(document.headline, "b"), writer.value(document.context, "i"), *urgent)
    sections = map(writer.section, document.sections)
    notes = join(*(writer.note(value) for value in document.notes))
    return "\n\n".join(part for part in (head, *sections, notes) if part)


class _Writer:
    def __init__(self, translate: Translate) -> None:
        self._translate = translate

    def value(self, value: Value, tag: str = "") -> str:
        if not value.text:
            return ""
        if value.kind is Kind.ID and not tag:
            return f"<code>{escape(sanitise(value.text), quote=False)}</code>"
        return self.text(value.text, tag)

    def text(self, raw: str, tag: str = "") -> str:
        return format_text(self._translate(sanitise(raw)), tag)

    def note(self, value: Value) -> str:
        return self.text(f"note: {value.text}", "i")

    def section(self, section: Section) -> str:
        blocks = map(self._block, section.blocks)
        return join(self.text(section.title, "b") if section.title else "", *blocks)

    def _block(self, block: Facts | Table | Lines) -> str:
        match block:
            case Facts(facts):
                return join(*map(self._fact, facts))
            case Table():
                return self._table(block)
            case Lines(values, Mark.VERBATIM):
                return _preformat("\n".join(value.text for value in values))
            case Lines(values, Mark.NOTE):
                return join(*map(self.note, values))
            case Lines(values, Mark.QUOTE):
                return f"<blockquote expandable>{join(*map(self.value, values))}</blockquote>"
            case Lines(values, mark):
                return join(*(self._sentence(value, mark) for value in values))

    def _sentence(self, value: Value, mark: Mark) -> str:
        if mark is Mark.WARNING or value.tone in (Tone.BAD, Tone.WARN):
            return f"⚠ {self.value(value)}"
        return self.value(value, {Tone.STRONG: "b", Tone.QUIET: "i"}.get(value.tone, ""))

    def _fact(self, fact: Fact) -> str:
        about = f" {self.text(f'({fact.about})')}" if fact.about else ""
        warning = "⚠ " if fact.value.tone in (Tone.BAD, Tone.WARN) and fact.value.number is None else ""
        value = self.value(Value(fact.value.text.replace("\n", " "), kind=fact.value.kind))
        return f"<b>{self.text(fact.label)}</b>: {warning}{value}{about}{' STALE' if fact.stale else ''}"

    def _table(self, table: Table) -> str:
        """Monospaced where it fits a phone, without spare columns if need be; else a card for each row."""
        fitting = fit_table(_clean(table), PHONE_WIDTH, gap=1)
        if fitting is None:
            return "\n\n".join(self._card(table, row) for row in table.rows)
        columns, rows = fitting
        grid = [[column.name for column in columns], *([cell.text for cell in row.cells] for row in rows)]
        sizes = [max(map(count_columns, column)) for column in zip(*grid, strict=True)]
        right = [is_numeric(rows, place) for place in range(len(columns))]
        padded = (
            " ".join(pad(cell, size, right=end) for cell, size, end in zip(line, sizes, right, strict=True))
            for line in grid
        )
        return _preformat("\n".join(line.rstrip() for line in padded))

    def _card(self, table: Table, row: Row) -> str:
        (first, head), *others = zip(table.columns, row.cells, strict=True)
        title = self.text(f"{first.name} {one_line(head, first)}".strip(), "b")
        facts = (
            self._fact(Fact(column.name, Value(one_line(cell, column), cell.tone, cell.kind, cell.number)))
            for column, cell in others
            if cell.text and cell.text != "–"
        )
        warning = "⚠ " if cell_tone(head, row) in (Tone.BAD, Tone.WARN) and head.number is None else ""
        return join(warning + title, *facts)


def _clean(table: Table) -> Table:
    """Each cell on one printable line that keeps its indent."""

    def clean(cell: Value, place: int) -> Value:
        text = cell.short or one_line(cell, table.columns[place])
        indent = " " * min(2, len(text) - len(text.lstrip(" ")))
        return Value(indent + sanitise(text), cell.tone, cell.kind, cell.number)

    rows = (Row(tuple(clean(cell, place) for place, cell in enumerate(row.cells)), row.tone) for row in table.rows)
    return Table(table.columns, tuple(rows))


def join(*parts: str) -> str:
    """Lines one under another; an empty one is left out."""
    return "\n".join(part for part in parts if part)


def _preformat(text: str) -> str:
    return f"<pre>{escape(text, quote=False)}</pre>"
