"""The parts of a document. A view writes itself as one; terminal, chat, page and assistant render it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from itertools import compress
from typing import Protocol, runtime_checkable


class Tone(StrEnum):
    """How a reader should take a text; a door chooses colour or sign for it."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    QUIET = "quiet"
    STRONG = "strong"


class Kind(StrEnum):
    """Who wrote a text, and what it may be used for."""

    TEXT = "text"
    """Words of our own."""
    NAME = "name"
    """A name we gave ("position 3"), which prose may repeat."""
    ID = "id"
    """An id: copied as it is, and what a proposal may name."""
    FOREIGN = "foreign"
    """Text of a model, a peer, a feed or a contract. A model is shown it apart from our own words."""


@dataclass(frozen=True, slots=True)
class Value:
    """A text as people read it, and the exact number behind it where there is one."""

    text: str
    tone: Tone = Tone.PLAIN
    kind: Kind = Kind.TEXT
    number: Decimal | None = None
    unit: str = ""
    """What the number counts: a currency or token symbol, `%`, `h`, `s`, `×`, `R`, `bps`, `gwei`; or nothing."""
    digits: int = 2
    signed: bool = False
    short: str = ""
    """The same in a table on a phone; empty: the text itself."""

    def __post_init__(self) -> None:
        if not self.text.isprintable():  # whatever wrote it, no screen gets a control character
            kept = (char if char.isprintable() or char == "\n" else " " if char.isspace() else "" for char in self.text)
            object.__setattr__(self, "text", "".join(kept))

    def with_tone(self, tone: Tone) -> Value:
        return replace(self, tone=tone)


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    value: Value
    source: str = ""
    age_seconds: int | None = None
    stale: bool = False
    notes: tuple[str, ...] = ()

    @property
    def figure(self) -> bool:
        return self.value.number is not None

    @property
    def about(self) -> str:
        """Where the value comes from, how old it is, and its notes: one printable line, or empty."""
        age = "" if self.age_seconds is None else f"{self.age_seconds} s old"
        about = "; ".join(part for part in (", ".join(filter(None, (self.source, age))), *self.notes) if part)
        return Value(about).text.replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Facts:
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    rank: int = 0
    """On a narrow screen the column with the highest rank goes first; rank 0 stays."""
    joiner: str = " "
    """Between the lines of a cell where they must be one."""


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[Value, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    whole: bool = False
    """Columns that do not fit a terminal stand under their row."""


class Mark(StrEnum):
    """What a line of text is."""

    SENTENCE = "sentence"
    NOTE = "note"
    WARNING = "warning"
    QUOTE = "quote"
    """Longer text that a small screen may fold."""
    VERBATIM = "verbatim"
    """Spaces count, and nothing is wrapped: a drawing, a log, a command to copy."""


@dataclass(frozen=True, slots=True)
class Lines:
    lines: tuple[Value, ...]
    mark: Mark = Mark.SENTENCE


Block = Facts | Table | Lines


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under one title. A message that is too long is broken between sections."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Those outside of tables, in order."""
        return tuple(fact for block in self.blocks if isinstance(block, Facts) for fact in block.facts)

    @property
    def sentences(self) -> tuple[Value, ...]:
        """Lines of its own words that are neither notes nor drawings."""
        blocks = (block for block in self.blocks if isinstance(block, Lines) and block.mark is Mark.SENTENCE)
        return tuple(line for block in blocks for line in block.lines)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Table))


@dataclass(frozen=True, slots=True)
class Act:
    """What the reader may do next."""

    label: str
    command: str
    """As it is typed in a terminal, without `zuno`: `lp recommend rebalance 1`. A door turns it into its own form."""


@dataclass(frozen=True, slots=True)
class Picture:
    file: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    headline: Value
    context: Value = Value("")
    """Of when and where it is true."""
    urgent: tuple[Value, ...] = ()
    """What comes before every figure: locked, out of range, stale."""
    sections: tuple[Section, ...] = ()
    notes: tuple[Value, ...] = ()
    acts: tuple[Act, ...] = ()
    pictures: tuple[Picture, ...] = ()
    as_of: str | None = None

    @property
    def facts(self) -> Iterator[Fact]:
        """Every fact outside of tables, in order."""
        for section in self.sections:
            yield from section.facts


Part = Block | Section | None
"""None is left out, so that a condition can stand where the part does."""


def document(
    headline: str | Value,
    *parts: Part,
    context: str | Value = "",
    urgent: Iterable[str | Value] = (),
    notes: Iterable[str | Value] = (),
    acts: Iterable[Act | None] = (),
    pictures: Iterable[Picture] = (),
    as_of: str | None = None,
) -> Document:
    """A document of blocks and sections; blocks before a section stand in one without a title."""
    sections: list[Section] = []
    loose: list[Block] = []
    for part in parts:
        if isinstance(part, Section):
            if loose:
                sections.append(Section("", tuple(loose)))
                loose = []
            sections.append(part)
        elif part is not None:
            loose.append(part)
    if loose:
        sections.append(Section("", tuple(loose)))
    return Document(
        as_value(headline),
        as_value(context),
        tuple(value for value in map(as_value, urgent) if value.text),
        tuple(section for section in sections if section.blocks),
        tuple(value for value in map(as_value, notes) if value.text),
        tuple(act for act in acts if act is not None),
        tuple(pictures),
        as_of,
    )


def section(title: str, *blocks: Block | None) -> Section:
    return Section(title, tuple(block for block in blocks if block is not None))


def include(inner: Document) -> Iterator[Section]:
    """A document as sections of another: its headline becomes the title of the first, or a line where we did not write
    it. A section holds no acts and no pictures: the caller passes them on."""
    foreign = inner.headline.kind is Kind.FOREIGN
    head: list[Block] = [Lines((inner.headline.with_tone(Tone.STRONG),))] if foreign else []
    if inner.context.text:
        head.append(Lines((inner.context.with_tone(Tone.QUIET),)))
    if inner.urgent:
        head.append(Lines(inner.urgent, Mark.WARNING))
    first, *others = inner.sections or (Section("", ()),)
    if first.title:
        others = [first, *others]
        first = Section("", ())
    yield Section("" if foreign else inner.headline.text, (*head, *first.blocks))
    yield from others
    if inner.notes:
        yield Section("", (Lines(inner.notes, Mark.NOTE),))


def select_columns(whole: Document, names: Collection[str]) -> Document:
    """The same with no other columns in its tables; a table that has none of them is left out."""

    def cut(block: Block) -> Block | None:
        if not isinstance(block, Table):
            return block
        kept = [column.name in names for column in block.columns]
        rows = (replace(line, cells=tuple(compress(line.cells, kept))) for line in block.rows)
        return replace(block, columns=tuple(compress(block.columns, kept)), rows=tuple(rows)) if any(kept) else None

    sections = (section(part.title, *map(cut, part.blocks)) for part in whole.sections)
    return replace(whole, sections=tuple(part for part in sections if part.blocks))


def map_values(whole: Document, change: Callable[[Value], Value]) -> Document:
    """The same with every text changed but labels, titles and commands; a fact's source and notes count as foreign."""

    def rewrite(text: str) -> str:
        return change(Value(text, kind=Kind.FOREIGN)).text if text else ""

    def change_fact(fact: Fact) -> Fact:
        notes = tuple(map(rewrite, fact.notes))
        return replace(fact, value=change(fact.value), source=rewrite(fact.source), notes=notes)

    def change_block(block: Block) -> Block:
        match block:
            case Facts(facts):
                return Facts(tuple(map(change_fact, facts)))
            case Table(_, rows):
                return replace(block, rows=tuple(replace(line, cells=tuple(map(change, line.cells))) for line in rows))
            case Lines(values, mark):
                return Lines(tuple(map(change, values)), mark)

    return replace(
        whole,
        headline=change(whole.headline),
        context=change(whole.context),
        urgent=tuple(map(change, whole.urgent)),
        sections=tuple(Section(part.title, tuple(map(change_block, part.blocks))) for part in whole.sections),
        notes=tuple(map(change, whole.notes)),
    )


def facts(*rows: tuple[str, str | Value] | Fact | None) -> Facts:
    """Labels and values, one under another; None is left out."""
    return Facts(
        tuple(row if isinstance(row, Fact) else Fact(row[0], as_value(row[1])) for row in rows if row is not None)
    )


def table(
    columns: Sequence[str],
    rows: Iterable[Row | Sequence[str | Value]],
    *,
    spare: Sequence[str] = (),
    joiners: Mapping[str, str] | None = None,
    whole: bool = False,
) -> Table:
    """`spare` columns go in this order where the table is too wide, under their row if it is `whole`; `joiners` stand
    between the lines of a cell where they must be one line."""
    ranks = {name: len(spare) - place for place, name in enumerate(spare)}
    if unknown := ranks.keys() - set(columns):
        raise ValueError(f"no column is called {', '.join(sorted(unknown))}")
    built = tuple(Column(name, ranks.get(name, 0), (joiners or {}).get(name, " ")) for name in columns)
    filled = tuple(entry if isinstance(entry, Row) else row(*entry) for entry in rows)
    for entry in filled:
        if len(entry.cells) != len(built):
            raise ValueError(f"{len(entry.cells)} cells under {len(built)} columns")
    return Table(built, filled, whole)


def row(*cells: str | Value, tone: Tone = Tone.PLAIN) -> Row:
    return Row(tuple(map(as_value, cells)), tone)


def lines(*texts: str | Value, mark: Mark = Mark.SENTENCE) -> Lines | None:
    """One line each; an empty one is left out, and nothing at all is no block."""
    values = tuple(value for value in map(as_value, texts) if value.text)
    return Lines(values, mark) if values else None


def as_value(value: str | Value) -> Value:
    return value if isinstance(value, Value) else Value(value)


@runtime_checkable
class Documented(Protocol):
    """A view that writes itself as a document."""

    def to_document(self) -> Document: ...


def document_of(view: object) -> Document:
    if not isinstance(view, Documented):
        raise TypeError(f"{type(view).__name__} has no document")
    return view.to_document()
