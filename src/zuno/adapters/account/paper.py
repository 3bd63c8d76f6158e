"""The paper book in the journal: numbered changes, chained and signed like everything else that is remembered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pydantic import TypeAdapter, ValidationError

from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import canonical, digest, to_json
from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.trading.model.account import BOOK_CHANGE, Account, BookChange, BookEntry
from zuno.trading.rules.paper_book import replay_changes

_OWNER: Final = Author("owner")
_ENTRY: Final = TypeAdapter(BookEntry)


class JournalBook:
    """The `PaperBook` over the journal of this home."""

    def __init__(self, journal: Callable[[], Awaitable[Journal]]) -> None:
        self._journal = journal

    async def at(self, origin: str, moment: Millis) -> Account:
        try:
            return replay_changes(await self.changes(origin), moment)
        except Refused as error:
            raise Broken(f"The paper book of {origin} contradicts itself: {error}") from error

    async def changes(self, origin: str) -> tuple[BookChange, ...]:
        journal = await self._journal()
        found: list[BookChange] = []
        async for entry in journal.entries(kind=BOOK_CHANGE):
            if entry.payload.get("origin") != origin:
                continue
            try:
                written = _ENTRY.validate_json(canonical(entry.payload), strict=True)
            except ValidationError as error:
                raise Broken(f"Entry {entry.seq} of the journal is no change of a paper book.") from error
            if written.number != len(found) + 1:
                raise Broken(
                    f"The paper book of {origin} has a change {written.number} behind {len(found)} others (entry "
                    f"{entry.seq}); run `zuno journal verify`."
                )
            found.append(written.change)
        return tuple(found)

    async def write(self, origin: str, change: BookChange, after: int) -> None:
        if (here := len(await self.changes(origin))) < after:
            raise Refused(f"The book has {here} changes, not {after}; look again.")
        journal = await self._journal()
        number = after + 1
        entry = BookEntry(origin=origin, number=number, change=change)
        # The number is part of the request's name, and a request has one entry of a kind: whoever is second finds the
        # first one's change in its place.
        place = f"book_{digest(origin.encode())[:16]}_{number}"
        stands = await journal.append_once(kind=BOOK_CHANGE, author=_OWNER, payload=entry, request_id=place)
        if stands.payload != to_json(entry):
            raise Refused(f"The book has more than {after} changes by now: somebody else wrote; look again.")
