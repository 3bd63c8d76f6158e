"""What a tool found, as a model reads it and the journal keeps it: facts by id, and texts of strangers apart."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from zuno.kernel.text import plain_text
from zuno.kernel.wire import Wire
from zuno.present.document import Column, Document, Facts, Kind, Lines, Mark, Table, Value
from zuno.present.text import one_line
from zuno.present.values import count
from zuno.provenance.facts import LONGEST_ID, FactSheet, Figure, Unit

MAX_ROWS: Final = 10
"""Lines of a list that a model is told; how many there are is a fact."""
_SHOWN_CHARS: Final = 200
_UNITS: Final = {
    "": Unit.NUMBER,
    "R": Unit.NUMBER,
    "%": Unit.PERCENT,
    "×": Unit.RATIO,
    "h": Unit.HOURS,
    "s": Unit.SECONDS,
    "bps": Unit.BPS,
    "gwei": Unit.GWEI,
    "ticks": Unit.TICKS,
}
"""By the unit of a document's value; any other is the symbol of an amount."""
_BRACKETS: Final = str.maketrans("[]", "()")
_NAME: Final = re.compile(r"[^{}<>\n]{1,60}")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{4}(?:[0-9a-fA-F]{36}|…[0-9a-fA-F]{4})(?![0-9a-fA-F])")
"""A model's vendor is not told whose wallet it is."""


class FactRecord(Wire):
    """A figure on record. Its value is a decimal number, or words of our own."""

    id: str
    value: str
    unit: Unit
    symbol: str = ""
    digits: int = 2
    signed: bool = False

    @property
    def figure(self) -> Figure:
        value = self.value if self.unit is Unit.WORDS else Decimal(self.value)
        return Figure(self.id, value, self.unit, self.symbol, self.digits, self.signed)


class ToolFacts(Wire):
    """The output of one tool."""

    text: str
    strangers: tuple[str, ...] = ()
    figures: tuple[FactRecord, ...] = ()
    names: tuple[str, ...] = ()
    """Names with digits in them that prose may say: `position 3`."""
    as_of: str | None = None
    ids: tuple[str, ...] = ()
    """What may be named in a proposal: ids of positions, plans, alerts, runs, symbols."""
    failed: bool = False


def slug(label: str) -> str:
    """A label as a part of an id: `net PnL` is `net_pnl`."""
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_") or "value"


def build_sheet(outputs: Iterable[ToolFacts]) -> FactSheet:
    every = list(outputs)
    figures = (record.figure for output in every for record in output.figures)
    return FactSheet(figures, names=(name for output in every for name in output.names))


class FactWriter:
    """Collects the lines of one output; every id begins with its prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._lines: list[str] = []
        self._strangers: list[str] = []
        self._records: dict[str, FactRecord] = {}
        self._uses = Counter[str]()
        self._names: list[str] = []
        self._ids: list[str] = []

    def line(self, *parts: str) -> None:
        self._lines.append("; ".join(part for part in parts if part))

    def name(self, name: str) -> str:
        """A name that prose may say as it stands; one of other signs is told apart."""
        if not _NAME.fullmatch(name):
            return self.stranger(name)
        self._names += [name, name[0].upper() + name[1:]]
        return name

    def id(self, *ids: str | None) -> None:
        """Ids that a proposal may name."""
        self._ids += [id_ for id_ in ids if id_]

    def stranger(self, text: str) -> str:
        """A text that we did not write, by its number; empty where there is none."""
        if not text:
            return ""
        text = _ADDRESS.sub("(address)", text)
        label = f"[{self.prefix}.{len(self._strangers) + 1}]"
        self._strangers.append(f"{label} {plain_text(text.translate(_BRACKETS), _SHOWN_CHARS)}")
        return f"text {label}"

    def document(self, document: Document) -> ToolFacts:
        """A document as a model is told it: every figure by its id, texts of strangers apart."""
        self.line(self._tell_value("headline", document.headline), self._tell_value("context", document.context))
        for value in document.urgent:
            self.line(self._tell_value("urgent", value))
        for section in document.sections:
            if section.title:
                self.line(section.title)
            for block in section.blocks:
                self._write_block(block)
        for value in document.notes:
            self.line(self._tell_value("note", value))
        return self.build(document.as_of)

    def _write_block(self, block: Facts | Table | Lines) -> None:
        match block:
            case Facts(facts):
                for fact in facts:
                    source = replace(fact, notes=()).about
                    about = self._tell_value(f"{fact.label} source", Value(source))
                    value = self._tell_value(fact.label, fact.value)
                    self.line(
                        f"{fact.label}: {value}", about, "stale" if fact.stale else "", *map(self.stranger, fact.notes)
                    )
            case Table(columns, rows):
                if len(rows) > MAX_ROWS:
                    self.line(
                        f"{self._tell_value('rows', count(len(rows)))} rows, the first {MAX_ROWS} of which follow"
                    )
                for number, row in enumerate(rows[:MAX_ROWS], 1):
                    cells = (
                        f"{column.name}: {self._tell_cell(f'r{number}', cell, column)}".removeprefix(": ")
                        for column, cell in zip(columns, row.cells, strict=True)
                        if cell.text
                    )
                    self.line(f"row {number}" if rows[1:] else "", *cells)
            case Lines(_, Mark.VERBATIM):
                pass
            case Lines(texts, mark):
                for text in texts[:MAX_ROWS] if mark is Mark.QUOTE else texts:
                    self.line(self._tell_value("text", text))

    def _tell_cell(self, row: str, cell: Value, column: Column) -> str:
        return self._tell_value(f"{row}.{slug(column.name)}", replace(cell, text=one_line(cell, column)))

    def _tell_value(self, label: str, value: Value) -> str:
        """What holds a digit gets an id, so that prose can cite it; words of ours stand as they are."""
        text = _ADDRESS.sub("(address)", value.text.replace("\n", " "))
        if not text:
            return ""
        if value.kind is Kind.FOREIGN:
            return self.stranger(text)
        if value.kind is Kind.NAME:
            return self.name(text)
        if value.kind is Kind.ID:
            self.id(text)
            noun = label.rpartition(".")[2]
            kind = self.prefix.rstrip("0123456789").removesuffix("s")  # `positions2` is the second list of positions
            title = f"{kind if noun == 'id' else noun} {text}"
            if _NAME.fullmatch(title):
                self.name(title)
        if value.number is None and not any(char.isdigit() for char in text):
            return text
        id_ = self._new_id(label)
        if value.number is not None:
            unit = _UNITS.get(value.unit, Unit.AMOUNT)
            symbol = value.unit if unit is Unit.AMOUNT else ""
            record = FactRecord(
                id=id_, value=f"{value.number:f}", unit=unit, symbol=symbol, digits=value.digits, signed=value.signed
            )
        else:
            record = FactRecord(id=id_, value=plain_text(text, _SHOWN_CHARS), unit=Unit.WORDS)
        return self._tell(record)

    def _new_id(self, label: str) -> str:
        """The label as an id; the second fact of a label gets `_2`, and so on."""
        base = f"{self.prefix}.{'.'.join(map(slug, label.split('.')))}"[: LONGEST_ID - 6].rstrip("._")
        self._uses[base] += 1
        id_ = base if self._uses[base] == 1 else f"{base}_{self._uses[base]}"
        return self._new_id(label) if id_ in self._records else id_

    def build(self, as_of: str | None = None, *, failed: bool = False) -> ToolFacts:
        return ToolFacts(
            text="\n".join(self._lines),
            strangers=tuple(self._strangers),
            figures=tuple(self._records.values()),
            names=tuple(dict.fromkeys(self._names)),
            as_of=as_of,
            ids=tuple(dict.fromkeys(self._ids)),
            failed=failed,
        )

    def _tell(self, record: FactRecord) -> str:
        self._records[record.id] = record
        return f"{{{record.id}}} = {record.figure.print()}"
