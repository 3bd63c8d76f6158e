"""The glossary of the pages, asked by a term: by a command, a shell line or a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from zuno.doors.docs_site import find_docs
from zuno.kernel.text import plain_text
from zuno.kernel.view import View
from zuno.kernel.wire import Wire
from zuno.present.document import Document, document, facts

_ROW: Final = re.compile(r"^\| (?!term \|)([^|]+?) \| (.+) \|$", re.MULTILINE)
_SAME_AS: Final = re.compile(r"[^:;,(.]+(?=[:;,(.]|$)")
_LONGEST_NAME: Final = 4
"""Words of a meaning's beginning that may be asked for as well: "impermanent loss: …"."""
_QUESTION: Final = re.compile(
    r"(?:(?:please|pls|hey|hi|zuno|can you|could you|tell me) )*(?:(?:what(?:'?s| is| are)|explain|define|glossary)"
    r"(?: the (?:meaning|definition) of)?|(?:the )?(?:meaning|definition) of|what (?P<does>do|does)) (?:an? )?"
    r"(?P<term>.+?)(?: (?P<end>means?|stands? for|again|exactly|please|pls))*"
)


class GlossaryEntry(Wire):
    term: str
    meaning: str


class GlossaryView(View):
    asked: str | None
    known: bool
    """Whether the term is one of the glossary; else the entries are those that mention it."""
    entries: tuple[GlossaryEntry, ...]

    def to_document(self) -> Document:
        asked = None if self.asked is None else plain_text(self.asked, 60)
        if asked is None:
            headline = "Glossary"
        elif self.known:
            headline = asked
        else:
            headline = f"{asked} is not in the glossary" + ("; it stands in" if self.entries else "")
        return document(headline, facts(*((entry.term, entry.meaning) for entry in self.entries)))


def asked_term(line: str) -> str | None:
    """The term of a line that asks what one means; None where it asks something else."""
    match = _QUESTION.fullmatch(" ".join(line.lower().replace("’", "'").strip(" ?!.").split()))
    if match is None or (match["does"] and not match["end"]):
        return None
    return match["term"] if _find(match["term"]) else None


def look_up(term: str | None) -> GlossaryView:
    """The entries of a term, or those that mention it; without a term all of them."""
    entries = _find(term) if term else _load()
    known = bool(entries)
    if term and not known:
        entries = tuple(entry for entry in _load() if set(_words(term)) <= set(_words(entry.meaning)))
    return GlossaryView(asked=term or None, known=known, entries=entries)


def _find(term: str) -> tuple[GlossaryEntry, ...]:
    """Entries of that name; else the one whose names hold every word: "tick spacing" of "tick, spacing"."""
    words = tuple(_words(term))
    named = tuple(entry for entry in _load() if words in _names(entry))
    return named or tuple(entry for entry in _load() if words and set(words) <= set(_words(entry.term)))


def _names(entry: GlossaryEntry) -> Iterator[tuple[str, ...]]:
    yield from (tuple(_words(name)) for name in entry.term.split(","))
    same = _SAME_AS.match(entry.meaning)
    if same is not None and len(same[0].split()) <= _LONGEST_NAME:
        yield tuple(_words(same[0]))


def _words(text: str) -> Iterator[str]:
    for word in re.findall(r"[\w']+", text.lower()):
        yield word.removesuffix("s") if len(word) > 3 and not word.endswith(("ss", "us", "is")) else word


@lru_cache(maxsize=1)
def _load() -> tuple[GlossaryEntry, ...]:
    docs = find_docs()
    text = "" if docs is None else (docs / "glossary.md").read_text(encoding="utf-8")
    return tuple(GlossaryEntry(term=term, meaning=meaning.replace("`", "")) for term, meaning in _ROW.findall(text))
