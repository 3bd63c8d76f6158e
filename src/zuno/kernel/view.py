"""Base classes of all views, and the type for text that we did not write."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from zuno.kernel.text import plain_text

MAX_TEXT_CHARS: Final = 2_000
"""Characters of one text that are shown."""


def sanitise(text: str) -> str:
    """Text of a peer, a model or a feed made safe for a screen; empty stays empty."""
    return plain_text(text, MAX_TEXT_CHARS) if text else text


ForeignText = Annotated[str, AfterValidator(sanitise)]
"""Text that we may not have written: one printable line, bounded."""


class View(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,  # a command needs one of these, not all of them
    )


def write_document(view: View) -> str:
    """What `--json` prints and the page's interface answers: ASCII, so that no terminal's encoding can spoil it."""
    return view.model_dump_json(by_alias=True, ensure_ascii=True)


class VerdictView(View):
    """An answer that is yes or no: `ok` false is exit code 5, with the whole document still on stdout."""

    ok: bool


class PartialView(View):
    """An answer that Ctrl-C may cut short: `stopped` true is exit code 130, with what was known by then on stdout."""

    ok: bool | None
    """False is exit code 5; null: not judged."""
    stopped: bool


class ReplayView(VerdictView):
    """Whether the recorded inputs give the same decided bytes today.

    An older edition is not replayed: `identical` is null, and `ok` says whether the record is intact."""

    identical: bool | None
    edition: int
    request_id: str
    hash: str | None
    replayed_hash: str | None
    code_then: str
    code_now: str
    differences: tuple[ForeignText, ...]
