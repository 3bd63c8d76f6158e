"""A reading as a screen or a script is shown it."""

import shlex
from collections.abc import Awaitable, Callable

from zuno.doors.reading.intents import Reading, load_catalogue
from zuno.doors.reading.reader import read
from zuno.doors.reading.seen import asks_for_list, find_position, to_shown_positions
from zuno.kernel.errors import ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lp.service.views import PositionsView
from zuno.present.document import Document, Tone, Value, document, facts
from zuno.present.values import foreign

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
    unused: tuple[str, ...]
    """What was found in the line and is of no use to the command."""
    ask: str
    """What the shell would ask back."""
    choices: tuple[tuple[str, ...], ...]
    """Up to three commands that may have been meant, the nearest first."""
    suggestion: str | None
    """An order that was nearly given, and is not taken for granted."""
    dangerous: bool
    """Whether it leads to a signature, a key or a booking."""
    source: str

    def to_document(self) -> Document:
        choices = (f"zuno {shlex.join(choice)}" for choice in self.choices)
        return document(
            "",
            facts(
                ("intent", Value(self.intent, Tone.BAD if self.dangerous else Tone.PLAIN)),
                *((name, foreign(value)) for name, value in self.slots.items()),
                ("confidence", f"{self.confidence:g}"),
                ("command", foreign(f"zuno {shlex.join(self.command)}")) if self.command else None,
                ("missing", ", ".join(self.missing)) if self.missing else None,
                ("not understood", foreign(", ".join(self.unused))) if self.unused else None,
                ("asks back", foreign(self.ask)) if self.ask else None,
                *(("" if at else "perhaps", foreign(choice)) for at, choice in enumerate(choices)),
                *(("" if at else "because", foreign(reason, Tone.QUIET)) for at, reason in enumerate(self.why)),
            ),
        )


def question_for(slot: str) -> str:
    return load_catalogue().questions.get(slot, f"Which {slot}?")


def parse_view(reading: Reading) -> ParseView:
    return derive(
        ParseView,
        reading,
        text=plain_text(reading.text, _MOST_SHOWN),
        slots=dict(reading.slots),
        command=reading.template,
        complete=bool(reading.command()),
        ask=reading.ask or (question_for(reading.missing[0]) if reading.missing else ""),
        choices=tuple(choice.template for choice in reading.choices),
        dangerous=reading.signs,
    )


async def parse_line(text: str, positions: Callable[[], Awaitable[PositionsView]]) -> ParseView:
    """How the shell reads a line, by the examples alone; `positions` is asked where one is meant by what it holds."""
    reading = read(text)
    if not asks_for_list(reading):
        return parse_view(reading)
    try:
        shown = await positions()
    except ZunoError:
        return parse_view(reading)
    return parse_view(find_position(reading, to_shown_positions(shown)))
