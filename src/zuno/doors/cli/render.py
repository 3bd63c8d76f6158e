"""An answer on stdout: its document, as wide as the terminal is, in colours where it has them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from zuno.present.document import Document, Tone, document_of
from zuno.present.text import Line, layout

if TYPE_CHECKING:
    from zuno.kernel.view import View

PIPED_WIDTH: Final = 120
"""Piped output has no width of its own: tables get room rather than folding."""
_CODES: Final[Mapping[Tone, str]] = {
    Tone.GOOD: "32",
    Tone.BAD: "31",
    Tone.WARN: "33",
    Tone.QUIET: "2",
    Tone.STRONG: "1",
}
_piped_width = ContextVar("piped_width", default=PIPED_WIDTH)


@contextmanager
def narrow_pipe() -> Iterator[None]:
    """What is piped meanwhile fits an old terminal of 80 columns."""
    before = _piped_width.set(80)
    try:
        yield
    finally:
        _piped_width.reset(before)


def render(view: View) -> None:
    print_document(document_of(view))


def print_document(document: Document) -> None:
    sys.stdout.write(f"{paint_document(document)}\n")
    sys.stdout.flush()


def paint_document(document: Document) -> str:
    """Its lines as this terminal shows them."""
    colour = _is_terminal() and "NO_COLOR" not in os.environ and os.environ.get("TERM") not in ("dumb", "unknown")
    width = shutil.get_terminal_size().columns if _is_terminal() else _piped_width.get()
    return "\n".join(_paint_line(line, colour) for line in layout(document, width))


def _is_terminal() -> bool:
    return os.environ.get("TTY_COMPATIBLE") == "1" or sys.stdout.isatty()


def _paint_line(line: Line, colour: bool) -> str:
    if not colour:
        return "".join(span.text for span in line).rstrip()
    return "".join(
        f"\x1b[{_CODES[span.tone]}m{span.text}\x1b[0m" if span.tone in _CODES and span.text.strip() else span.text
        for span in line
    ).rstrip()
