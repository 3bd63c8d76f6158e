"""How an answer is laid out in a chat: Telegram's HTML, narrow enough for a phone, with every foreign word escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from html import escape
from itertools import compress
from typing import Final

from zuno.doors.telegram.terminal_words import translate_commands
from zuno.kernel.chat_text import format_text
from zuno.kernel.view import sanitise

TABLE_WIDTH: Final = 38
"""Characters of a monospace line that a phone of 360 px shows without wrapping."""


def text(raw: str) -> str:
    """Plain text on one line: escaped, and nothing in it to tap; what stands in backticks is in type of one width."""
    return _format(raw)


def bold(raw: str) -> str:
    return _format(raw, "b")


def italic(raw: str) -> str:
    return _format(raw, "i")


def _format(raw: str, tag: str = "") -> str:
    return format_text(translate_commands(sanitise(raw)), tag)


def code(raw: str) -> str:
    """An id or a price that is copied by a tap."""
    return f"<code>{escape(sanitise(raw), quote=False)}</code>"


def command(words: str) -> str:
    """A command of the chat; the first word of it can be tapped."""
    return escape(sanitise(words), quote=False)


def fact(name: str, value: str) -> str:
    return f"<b>{text(name)}</b>: {text(value)}"


def note(line: str) -> str:
    return italic(f"note: {line}")


def warning(line: str) -> str:
    return f"⚠ {text(line)}"


def quote(*lines: str) -> str:
    """Longer text that opens by a tap; the lines are HTML."""
    told = join(*lines)
    return f"<blockquote expandable>{told}</blockquote>" if told else ""


def join(*parts: str) -> str:
    """Lines one under another; an empty one is left out."""
    return "\n".join(part for part in parts if part)


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def block(lines: Iterable[str]) -> str:
    """Lines in type of one width; not sanitised, so that spaces stay."""
    return f"<pre>{escape(chr(10).join(lines), quote=False)}</pre>"


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    spare: Sequence[str] = (),
    left: Collection[str] = (),
) -> str:
    """A table in monospace; too wide for a phone, it does without its `spare` columns in that order, then is a card for
    each row. The first column and those of `left` begin at their left edge, the others end at their right one."""
    cells = [tuple(map(_clean_cell, row)) for row in rows]
    for spared in range(len(spare) + 1):
        kept = [column not in spare[:spared] for column in columns]
        names = tuple(compress(columns, kept))
        lines = _align([names, *(tuple(compress(row, kept)) for row in cells)], {names[0], *left})
        if max(map(_count_columns, lines)) <= TABLE_WIDTH:
            return block(lines)
    return "\n".join(_card(columns, row) for row in cells)


def _clean_cell(cell: str) -> str:
    """One printable line that keeps its indent."""
    indent = len(cell) - len(cell.lstrip(" "))
    return " " * min(indent, 2) + sanitise(cell)


def _align(rows: Sequence[Sequence[str]], left: Collection[str]) -> list[str]:
    widths = [max(map(_count_columns, column)) for column in zip(*rows, strict=True)]
    starts = [name in left for name in rows[0]]
    return [
        " ".join(
            cell + " " * (width - _count_columns(cell)) if start else " " * (width - _count_columns(cell)) + cell
            for cell, width, start in zip(row, widths, starts, strict=True)
        ).rstrip()
        for row in rows
    ]


def _count_columns(cell: str) -> int:
    """Wide characters take two columns, marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in cell
    )


def _card(columns: Sequence[str], row: Sequence[str]) -> str:
    head, *values = row
    lines = [fact(name, value) for name, value in zip(columns[1:], values, strict=True) if value]
    return join(bold(f"{columns[0]} {head}".strip()), *lines)
