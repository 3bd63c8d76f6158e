"""Base classes of all views, and the type for text that we did not write."""

from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, BeforeValidator, ConfigDict

from zuno.kernel.clock import iso
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import plain_text
from zuno.kernel.wire import Wire

MAX_TEXT_CHARS: Final = 2_000
"""Characters of one text that are shown."""


def sanitise(text: str) -> str:
    """Text of a peer, a model or a feed made safe for a screen; empty stays empty."""
    return plain_text(text, MAX_TEXT_CHARS) if text else text


ForeignText = Annotated[str, AfterValidator(sanitise)]
"""Text that we may not have written: one printable line, bounded."""
IsoTime = Annotated[str, BeforeValidator(lambda at: iso(at) if isinstance(at, int) else at)]
"""A moment in words, which may be given in Unix milliseconds."""


class View(Wire):
    """What a door shows; a figure of it may be infinite."""

    model_config = ConfigDict(allow_inf_nan=True)


def write_document(view: View) -> str:
    """What `--json` prints and the page's interface answers: ASCII, so that no terminal's encoding can spoil it."""
    return view.model_dump_json(by_alias=True, ensure_ascii=True)


class RecordedView(View):
    """What is shown of a decision: the view that was stored when it was made, or one computed for this look."""

    VERSION: ClassVar[int] = 1
    """Of the fields as they are stored. Where they change it is raised, what reads the older ones is written, and a
    fixture of the new one is added to `tests/golden/views`."""
    hash: str
    """Of what was decided."""
    computed_by: str | None = None
    """The version of Zuno that computed it for this look; null: it was stored."""
    computed_why: ForeignText = ""
    """Why the stored one is not shown."""

    @property
    def computed_notes(self) -> tuple[str, ...]:
        """What a door says of a view that was computed for this look."""
        return () if self.computed_by is None else (f"computed by Zuno {self.computed_by}: {self.computed_why}",)


class EventView(View):
    """One thing that happened to a process in the foreground, worth a line."""

    at: int
    """Unix milliseconds."""
    event: str
    text: ForeignText

    def write_line(self) -> str:
        return f"{time_text(self.at // 1000)}  {self.text}"


class VerdictView(View):
    """An answer that is yes or no: `ok` false is exit code 5, with the whole document still on stdout."""

    ok: bool


class PartialView(View):
    """An answer that Ctrl-C may cut short: `stopped` true is exit code 130, with what was known by then on stdout."""

    ok: bool | None
    """False is exit code 5; null: not judged."""
    stopped: bool
