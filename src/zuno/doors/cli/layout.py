"""How answers are laid out: tables that stay readable in a narrow terminal, and numbers rounded for eyes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import compress

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GOOD, BAD, QUIET = "green", "red", "dim"
_ANY_WIDTH = 10_000
_PIPED_WIDTH = 120


class _Console(Console):
    """Rich ends the process where a pipe breaks; how we end is decided elsewhere."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


_piped_width = ContextVar("piped_width", default=_PIPED_WIDTH)


@contextmanager
def narrow_pipe() -> Iterator[None]:
    """What is piped meanwhile fits an old terminal."""
    before = _piped_width.set(80)
    try:
        yield
    finally:
        _piped_width.reset(before)


def console() -> Console:
    """Where people read. Symbols come from strangers, so nothing in a text is markup."""
    plain = _Console(highlight=False, markup=False, emoji=False)
    # Piped output has no width of its own: give tables room rather than folding them.
    width = _piped_width.get()
    return plain if plain.is_terminal else _Console(highlight=False, markup=False, emoji=False, width=width)


class Rows:
    """A table that no terminal cuts: too wide, it first does without its spare columns, then is a card for each row."""

    def __init__(self, *columns: str, spare: Sequence[str] = (), between: Mapping[str, str] | None = None) -> None:
        """`spare` columns go in this order; `between` joins a column's lines where they must be one, else a space."""
        self._columns = columns
        self._spare = spare
        self._between = between or {}
        self._rows: list[tuple[tuple[str | Text, ...], str, bool]] = []

    def add_row(self, *cells: str | Text, style: str = "", end_section: bool = False) -> None:
        self._rows.append((cells, style, end_section))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for spared in range(len(self._spare) + 1):
            table = self._table(without=self._spare[:spared])
            if Measurement.get(console, options.update(max_width=_ANY_WIDTH), table).maximum <= options.max_width:
                yield table
                return
        yield from self._cards()

    def _table(self, without: Sequence[str]) -> Table:
        table = Table(box=None, pad_edge=False, header_style=QUIET)
        kept = [name not in without for name in self._columns]
        for column in compress(self._columns, kept):
            table.add_column(column, justify="right" if column.startswith("in ") else "left")
        for cells, style, end_section in self._rows:
            table.add_row(*compress(cells, kept), style=style, end_section=end_section)
        return table

    def _cards(self) -> Iterator[RenderableType]:
        """The first cell heads its card; the others stand under it by the names of their columns."""
        for (head, *cells), style, _ in self._rows:
            card = grid()
            for name, cell in zip(self._columns[1:], cells, strict=True):
                if cell:
                    card.add_row(name, self._one_line(name, cell), style=style)
            top = self._one_line(self._columns[0], head)
            if self._columns[0]:
                top = Text.assemble((f"{self._columns[0]} ", QUIET), top)
            top.stylize("bold")
            yield top
            yield Padding(card, (0, 0, 0, 2))

    def _one_line(self, column: str, cell: str | Text) -> Text:
        text = cell if isinstance(cell, Text) else Text(cell)
        line = Text(self._between.get(column, " ")).join(text.split("\n"))
        line.style = text.style
        return line


def grid() -> Table:
    """Names and values side by side; a value that is too long goes on in the next line, whole."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style=QUIET)
    facts.add_column(overflow="fold")
    return facts


def heading(text: str) -> Text:
    return Text(text, style="bold")


def notes_block(lines: Sequence[str]) -> list[Text]:
    return [Text(f"note: {line}", style=QUIET) for line in lines]
