"""The desk's memory as the journal holds it: post-mortems, less what its owner forgot, and lessons, written once when
resolved cases agree and reviewed once when later ones contradict them. Files and indexes follow it."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.llm.ask import ModelContext
from zuno.trading.agents.post_mortem import LESSON_ROLE, REVIEWER, word_lesson, word_review
from zuno.trading.model import memory
from zuno.trading.model.known import derive
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.rules.lessons import choose_advice, derive_lessons, fits_setup, review_lessons
from zuno.trading.run.record import RunJournal

W = TypeVar("W", bound=Wire)
_PREFIX: Final = "pm_"
_LEAST_PART: Final = 10
"""Memories that an index is given at once: a tenth of what it lacks, but not fewer than these."""
TellProgress = Callable[[str, int, int], None]
"""Told which store took in how many memories of how many it lacked."""


def post_mortem_id(account: str, trade: str) -> str:
    """A trade has one, whoever writes it."""
    return f"{_PREFIX}{digest(canonical([account, trade]))[:24]}"


def memory_record(post_mortem: memory.PostMortem) -> memory.MemoryRecord:
    own = {"channel": memory.Channel.SYSTEM_POST_MORTEM, "at": post_mortem.closed, "text": post_mortem.setup}
    return derive(memory.MemoryRecord, post_mortem, **own)


class MemoryBook:
    def __init__(self, journal: Callable[[], Awaitable[Journal]]) -> None:
        self._journal = journal
        self._read_to = {memory.POST_MORTEM: 0, memory.MEMORY_FORGOTTEN: 0}
        self._written: dict[str, memory.PostMortem] = {}
        self.forgotten: set[str] = set()

    async def read(self) -> dict[str, memory.PostMortem]:
        """Every post-mortem that was not forgotten, by id, in the order they were written."""
        journal = await self._journal()
        async for entry in journal.entries(kind=memory.POST_MORTEM, after=self._read_to[memory.POST_MORTEM]):
            written = read_post_mortem(entry)
            self._written[written.id] = written
            self._read_to[memory.POST_MORTEM] = entry.seq
        async for entry in journal.entries(kind=memory.MEMORY_FORGOTTEN, after=self._read_to[memory.MEMORY_FORGOTTEN]):
            self.forgotten.add(entry.request_id or "")
            self._read_to[memory.MEMORY_FORGOTTEN] = entry.seq
        return {id: written for id, written in self._written.items() if id not in self.forgotten}

    async def find(self, id: str) -> memory.PostMortem | None:
        """One post-mortem; None where there is none, or it was forgotten. The others are not read for it."""
        journal = await self._journal()
        entries = await journal.latest(1, request_id=id, kind=memory.POST_MORTEM)
        if not entries or await journal.latest(1, request_id=id, kind=memory.MEMORY_FORGOTTEN):
            return None
        return read_post_mortem(entries[0])

    async def newest(self, count: int, before: str | None = None) -> tuple[memory.PostMortem, ...]:
        """Those that were written last and not forgotten, the newest first; `before`: of those written before this one,
        none where nobody wrote it. Older ones are not read."""
        journal, start = await self._journal(), None
        if before is not None:
            named = await journal.latest(1, request_id=before, kind=memory.POST_MORTEM)
            start = named[0].seq if named else 0
        forgotten = {entry.request_id async for entry in journal.entries(kind=memory.MEMORY_FORGOTTEN)}
        kept: list[memory.PostMortem] = []
        while len(kept) < count:
            entries = await journal.latest(count, kind=memory.POST_MORTEM, before=start)
            kept += [read_post_mortem(entry) for entry in entries if entry.request_id not in forgotten]
            if len(entries) < count:
                break
            start = entries[-1].seq
        return tuple(kept[:count])


async def update_index(book: MemoryBook, index: MemoryIndex, tell: TellProgress | None = None) -> None:
    """Bring an index in step with the journal, in parts that each stay. A damaged index, or one of another embedder, is
    rebuilt starting with one small part, so that an embedder that does not answer costs no vectors."""
    try:
        await _add_missing(book, index, tell)
    except Broken:
        first = [memory_record(each) for each in [*(await book.read()).values()][:_LEAST_PART]]
        await index.rebuild(first, sorted(book.forgotten))
        await _add_missing(book, index, tell)


async def _add_missing(book: MemoryBook, index: MemoryIndex, tell: TellProgress | None) -> None:
    there, written = await index.ids(), await book.read()  # what is in an index was in the journal before
    if there - written.keys() - book.forgotten:
        raise Broken(f"{index.name} holds memories that are not in the journal.")
    missing = [memory_record(each) for id, each in written.items() if id not in there]
    part = max(_LEAST_PART, len(missing) // 10 + 1)
    for start in range(0, len(missing), part):
        await index.add(missing[start : start + part])
        if tell is not None:
            tell(index.name, min(start + part, len(missing)), len(missing))
    if missing:
        kept = await index.ids()
        await book.read()  # what was forgotten meanwhile, perhaps in another process, need not be there
        if written.keys() - kept - book.forgotten:
            raise Broken(f"{index.name} does not keep what it is given.")
    for id in sorted(there & book.forgotten):
        await index.remove(id)


class MemoryIndexes:
    """Compared with the journal when a process begins and when something is new. The last one is asked."""

    def __init__(self, book: MemoryBook, indexes: Sequence[MemoryIndex], tell: TellProgress | None = None) -> None:
        self._book, self._indexes, self._tell = book, indexes, tell
        self._updated: tuple[int, int] | None = None
        """How much was written and forgotten when all of them were in step."""

    @property
    def name(self) -> str:
        return self._indexes[-1].name

    async def recall(self, query: memory.RecallQuery) -> memory.RecallResult:
        """What the index lacks, or who answers in its place, is in the note."""
        notes = await self.update()
        answer = await self._indexes[-1].recall(query)
        self._updated = None if answer.note else self._updated  # it may be damaged since
        return answer.model_copy(update={"note": answer.note or "; ".join(notes)})

    async def remove(self, id: str) -> None:
        await self._indexes[-1].remove(id)

    async def update(self) -> tuple[str, ...]:
        """Why one could not be: the journal holds it all, and the next time tries again."""
        written = await self._book.read()
        state = (len(written), len(self._book.forgotten))
        if state == self._updated:
            return ()
        notes = []
        for index in self._indexes:
            try:
                await update_index(self._book, index, self._tell if index is self._indexes[-1] else None)
            except (Unavailable, Broken) as error:
                notes.append(f"{index.name} lacks memories, of {len(written):,} in the journal: {error}")
        self._updated = None if notes else state
        return tuple(notes)


def read_post_mortem(entry: Entry) -> memory.PostMortem:
    return parse_entry(entry, memory.PostMortem, "post-mortem")


def parse_entry(entry: Entry, shape: type[W], what: str) -> W:
    """What an entry of the journal holds. `Broken` where it was not written from this shape."""
    try:
        return shape.model_validate_json(canonical(entry.payload), strict=True)
    except ValueError as error:
        raise Broken(f"Entry {entry.seq} of the journal is no {what}.") from error


async def write_once(journal: Journal, author: Author, kind: str, payload: W, id: str) -> W:
    """What stands then: this, or what was written first."""
    entry = await journal.append_once(kind=kind, author=author, payload=payload, request_id=id)
    return parse_entry(entry, type(payload), kind)


LESSON_AUTHOR: Final = Author(LESSON_ROLE)
REVIEW_AUTHOR: Final = Author(REVIEWER)


class Learned(NamedTuple):
    lessons: tuple[memory.Lesson, ...] = ()
    reviews: tuple[memory.LessonReview, ...] = ()


class LessonBook:
    """Lessons as the journal holds them. Reads on from where it has read."""

    def __init__(self, journal: Callable[[], Awaitable[Journal]]) -> None:
        self._journal = journal
        self._read_to = {memory.LESSON: 0, memory.LESSON_REVIEW: 0}
        self._lessons: dict[str, memory.Lesson] = {}
        self._reviews: dict[str, memory.LessonReview] = {}

    async def read(self) -> dict[str, memory.Lesson]:
        await self._read_on(memory.LESSON, memory.Lesson, self._lessons)
        return dict(self._lessons)

    async def reviews(self) -> dict[str, memory.LessonReview]:
        """What became of contradicted lessons, by the lesson's id."""
        await self._read_on(memory.LESSON_REVIEW, memory.LessonReview, self._reviews)
        return dict(self._reviews)

    async def list_standings(
        self, post_mortems: Iterable[memory.PostMortem], origin: str, before: Millis
    ) -> tuple[memory.LessonStanding, ...]:
        """The lessons of a market as they stood, the newest first. `post_mortems`: all that are remembered."""
        ours = [lesson for lesson in (await self.read()).values() if lesson.origin == origin]
        return review_lessons(ours, post_mortems, before)

    async def advise(
        self, post_mortems: Iterable[memory.PostMortem], origin: str, setup: str, before: Millis
    ) -> tuple[memory.LessonStanding, ...]:
        """The lessons that are valid at a moment and fit a setup."""
        lessons = (await self.read()).values()
        fitting = [lesson for lesson in lessons if lesson.origin == origin and fits_setup(lesson, setup)]
        return choose_advice(review_lessons(fitting, post_mortems, before), setup)

    async def correct(
        self,
        post_mortems: Iterable[memory.PostMortem],
        origin: str,
        before: Millis,
        model_context: Callable[[RunJournal], ModelContext],
    ) -> Learned:
        """Write new lessons of a market and review contradicted ones, strictly before a moment. Idempotent."""
        journal = await self._journal()
        cases = {case.id: case for case in post_mortems}
        written = await self.read()
        lessons = []
        for lesson in derive_lessons(cases.values(), origin):
            if lesson.id in written or lesson.written >= before:
                continue
            drawn = [cases[id] for id in (*lesson.cases, *lesson.against)]
            worded = await word_lesson(lesson, drawn, model_context(await RunJournal(journal, lesson.id).open()))
            lessons.append(await write_once(journal, LESSON_AUTHOR, memory.LESSON, worded, lesson.id))
        reviewed = await self.reviews()
        reviews = []
        for standing in await self.list_standings(cases.values(), origin, before):
            id = standing.lesson.id
            if standing.state is not memory.LessonState.CONTRADICTED or id in reviewed:
                continue
            later = [cases[each] for each in (*standing.confirmed, *standing.contradicted)]
            review = await word_review(standing, later, model_context(await RunJournal(journal, id).open()))
            reviews.append(await write_once(journal, REVIEW_AUTHOR, memory.LESSON_REVIEW, review, id))
        return Learned(tuple(lessons), tuple(reviews))

    async def _read_on(self, kind: str, shape: type[W], into: dict[str, W]) -> None:
        journal = await self._journal()
        async for entry in journal.entries(kind=kind, after=self._read_to[kind]):
            into[entry.request_id or ""] = parse_entry(entry, shape, entry.kind)
            self._read_to[kind] = entry.seq
