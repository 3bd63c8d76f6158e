"""The view of a finished run or plan as it was shown, stored as an entry bound to the decided hash.

It may be missing: an older Zuno decided, or a process died before storing it. Then it is computed and says so; `zuno
journal upgrade` and the next start of a desk store it. Its content comes from entries and bundles that were searched
for secrets when they were written.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from zuno.journal.chain import Record
from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import Json, canonical, decode_canonical, to_json
from zuno.kernel.errors import Broken, Malformed, Unavailable, ZunoError
from zuno.kernel.view import ForeignText, RecordedView, VerdictView, View
from zuno.kernel.wire import Hex64
from zuno.present.document import Document, document, lines
from zuno.present.values import bad, foreign, good, quiet

V = TypeVar("V", bound=RecordedView)
Facts = Mapping[str, Mapping[str, str]]
"""Every fact that a shown text cites: by id its value, its unit and what was printed."""

DECISION_VIEW: Final = "decision_view"
"""The kind of entry; a run or a debate has one at most."""
MAX_CONTENT: Final = 4 * 1024 * 1024
"""Bytes that a stored view may unpack to; one of a whole debate has a hundredth of that."""


class StoredView(Record):
    decided: Hex64
    """The hash of the decision that it shows."""
    version: int
    """Of the view's fields. A reader takes every version up to its own."""
    content: str
    """Canonical JSON, `view` and `facts`, compressed by zlib, in base64."""


class JournalUpgradeView(View):
    """What `zuno journal upgrade` did."""

    stored: int
    """Views of finished runs and plans that had none."""
    not_stored: tuple[ForeignText, ...]
    """Runs and debates whose view this Zuno cannot compute, and why."""

    def to_document(self) -> Document:
        views = f"{self.stored:,} {'view' if self.stored == 1 else 'views'}"
        return document(f"{views} of finished runs and plans stored.", notes=map(foreign, self.not_stored))


def pack_view(view: RecordedView, facts: Facts) -> StoredView:
    packed = zlib.compress(canonical(_write_content(view, facts)), 9)
    return StoredView(decided=view.hash, version=view.VERSION, content=b64encode(packed).decode())


@dataclass(frozen=True, slots=True)
class DecisionRecord(Generic[V]):
    """The view of one decision: what is stored of it, and how today's code computes it."""

    shape: type[V]
    decided: str
    stored: Mapping[str, Json] | None
    compute: Callable[[], Awaitable[tuple[V, Facts]]]

    async def show(self, code: str) -> V:
        """The stored view; where none can be read it is computed, and says by which Zuno and why."""
        try:
            return read_view(self.shape, self.decided, self.stored)
        except Malformed as error:
            why = str(error)
        view, _ = await self.compute()
        return view.model_copy(update={"computed_by": code, "computed_why": why})

    async def compare(self) -> tuple[str, ...]:
        """Where today's code shows something else than the stored view."""
        if self.stored is None:
            return ()
        try:
            before = _unpack_view(self.shape, self.decided, self.stored)
            return tuple(list_differences(before, _write_content(*await self.compute())))
        except ZunoError as error:
            return (str(error),)

    async def pack(self) -> StoredView:
        """What is to be stored. `Broken` where the record gives another hash than it names."""
        view, facts = await self.compute()
        if view.hash != self.decided:
            raise Broken(f"The record names hash {self.decided[:12]}…, its content gives {view.hash[:12]}….")
        return pack_view(view, facts)


def read_view(shape: type[V], decided: str, stored: Mapping[str, Json] | None) -> V:
    """The view that was stored of a decision, by its hash; `Malformed` says why none can be shown."""
    try:
        return shape.model_validate(_unpack_view(shape, decided, stored)["view"], strict=False)
    except ValidationError as error:
        raise Malformed(f"the view on record has {error.error_count()} fields that do not fit") from error


def _unpack_view(shape: type[RecordedView], decided: str, stored: Mapping[str, Json] | None) -> dict[str, Any]:
    if stored is None:
        raise Malformed("its view is not on record")
    try:
        packed = StoredView.model_validate(dict(stored))
        if packed.version > shape.VERSION:
            raise Malformed(f"the view on record is of version {packed.version}, which this Zuno does not know")
        opener = zlib.decompressobj()
        data = opener.decompress(b64decode(packed.content, validate=True), MAX_CONTENT)
        content = decode_canonical(data) if opener.eof and not opener.unused_data else None
    except (ValueError, zlib.error) as error:
        raise Malformed(f"the view on record cannot be read ({type(error).__name__})") from error
    if not isinstance(content, dict) or content.keys() != {"view", "facts"} or not isinstance(content["view"], dict):
        raise Malformed("the view on record is cut, too large or has other parts")
    if not packed.decided == content["view"].get("hash") == decided:
        raise Malformed("the view on record is of another decision")
    return content


def _write_content(view: RecordedView, facts: Facts) -> Json:
    fields = view.model_dump(by_alias=True, round_trip=True, exclude={"computed_by", "computed_why"})
    return to_json({"view": fields, "facts": facts})


def list_differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Every value of two documents that is not the same, under its path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from list_differences(before.get(name), after.get(name), f"{where}.{name}" if where else name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from list_differences(old, new, f"{where}[{at}]")
    elif before != after:
        yield f"{where + ' was ' if where else 'was '}{str(before)[:80]}, is {str(after)[:80]}"


async def store_missing_views(
    journal: Journal, ended: str, author: Author, load: Callable[[str], Awaitable[DecisionRecord[Any]]]
) -> JournalUpgradeView:
    """Store the view of each request that has an entry of the kind `ended` and no view."""
    known = {entry.request_id async for entry in journal.entries(kind=DECISION_VIEW)}
    decided = [entry.request_id or "" async for entry in journal.entries(kind=ended)]
    stored, failed = 0, []
    for request_id in dict.fromkeys(decided):
        if request_id in known:
            continue
        try:
            packed = await (await load(request_id)).pack()
            await journal.append_once(kind=DECISION_VIEW, author=author, payload=packed, request_id=request_id)
            stored += 1
        except Unavailable:
            raise
        except (ZunoError, ValidationError) as error:  # one that cannot be read keeps no other from its view
            failed.append(f"{request_id}: {error}")
    return JournalUpgradeView(stored=stored, not_stored=tuple(failed))


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
    view_differences: tuple[ForeignText, ...] = ()
    """Where today's code shows something else than the stored view. That is a difference of code: what was decided may
    still be identical, and `ok` does not hang on it."""

    def to_document(self) -> Document:
        by = f"decided by {self.code_then}, replayed by {self.code_now}"
        match self.identical, self.ok:
            case True, _:
                head = good(f"Identical: {self.hash}")
            case False, _:
                head = bad(f"NOT identical: {self.hash} then, {self.replayed_hash} now")
            case None, ok:
                by = f"decided by {self.code_then} in edition {self.edition}: other rules than today's, not replayed"
                head = good(f"The record holds: {self.hash}") if ok else bad(f"The record does NOT hold: {self.hash}")
        shown = (f"shown differently by today's code: {difference}" for difference in self.view_differences)
        return document(head, lines(quiet(by)), notes=map(foreign, (*self.differences, *shown)))
