"""A reading as a screen or a script is shown it."""

from __future__ import annotations

from zuno.doors.reading.commands import QUESTIONS, command_of, template_of
from zuno.doors.reading.intents import DANGEROUS, Reading
from zuno.doors.reading.reader import read
from zuno.kernel.text import plain_text
from zuno.kernel.view import View

_MOST_SHOWN = 400


class ParseView(View):
    text: str
    intent: str
    slots: dict[str, str]
    confidence: float
    why: tuple[str, ...]
    command: tuple[str, ...]
    """The words after `zuno`, with a place in capitals for what is missing; none where the line is asked back."""
    complete: bool
    """Whether `command` can be run as it stands."""
    missing: tuple[str, ...]
    ask: str
    """What the shell would ask back."""
    suggestion: str | None
    """What may have been meant, where that was not taken for granted."""
    dangerous: bool
    """Whether it leads to a signature or a key."""
    source: str


def parse_view(reading: Reading) -> ParseView:
    ask = reading.ask or (QUESTIONS[reading.missing[0]] if reading.missing else "")
    return ParseView(
        text=plain_text(reading.text, _MOST_SHOWN),
        intent=reading.intent.value,
        slots=reading.slots.said(),
        confidence=reading.confidence,
        why=reading.why,
        command=template_of(reading),
        complete=bool(command_of(reading)),
        missing=reading.missing,
        ask=ask,
        suggestion=None if reading.suggestion is None else reading.suggestion.value,
        dangerous=reading.intent in DANGEROUS,
        source=reading.source,
    )


async def parse_line(text: str) -> ParseView:
    """How the shell reads a line, by rule alone."""
    return parse_view(read(text))
