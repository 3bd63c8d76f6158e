"""Recall for a cycle, as slots of its bundle: trades whose setup was like this moment's, lessons about it, and for Meta
earlier news, each story once. Nothing later than the moment is looked at; a replay finds the same bytes."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.feeds import CHANNELS, SEARCH
from zuno.markets.market import Symbol
from zuno.trading.agents.case import Case, cache_by_market
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, MemoryIndexes
from zuno.trading.measure.setup import describe_setup, share_phrases
from zuno.trading.measure.similarity import NewsText, Story, merge_stories
from zuno.trading.model import memory
from zuno.trading.model.bundle import Bundle, Slot
from zuno.trading.model.known import derive
from zuno.trading.model.market import DAY_MS, Feed, Text, texts
from zuno.trading.ports.recall import Embedder, MemoryIndex
from zuno.trading.ports.series import SeriesStore, Slice

MIN_SHARED: Final = 0.3
"""Least share of phrases that two setups must have in common. Similarities of embedders have scales of their own. In a
synthetic market trades share 0.37 with the three most alike of their past, by the median."""
LOOKED_AT: Final = 24
_NOTE: Final = 200


@dataclass(eq=False)
class CaseRecall:
    """Recalls for one case at a time. Contents are the journal's: an index only says which ones are alike."""

    index: MemoryIndex | MemoryIndexes
    book: MemoryBook
    lessons: LessonBook
    counts: Callable[[str], Awaitable[bool]] | None = None
    """Whether the trades of a run may be recalled; None: all may. On a live market those of a recorded past may not."""
    _known: dict[str, bool] = field(default_factory=dict, init=False)

    async def __call__(self, case: Case) -> Sequence[Slot]:
        setup, bundle = _describe_case(case), case.bundle
        return (
            memory.make_slot(await self._recall(setup, bundle), bundle.as_of),
            memory.make_slot(await self._read_lessons(setup, bundle), bundle.as_of),
        )

    async def _recall(self, setup: str, bundle: Bundle) -> memory.MemorySlot:
        query = memory.RecallQuery(
            text=setup, origin=bundle.origin, before=bundle.as_of, recent_of=bundle.symbol, limit=LOOKED_AT
        )
        try:
            answer = await self.index.recall(query)
        except (Unavailable, Broken) as error:
            return memory.MemorySlot(setup=setup, source=memory.NOBODY, note=plain_text(str(error), _NOTE))
        notes: list[memory.MemoryNote] = []
        written = await self.book.read()
        for recalled in answer.found:
            post_mortem = written.get(recalled.id) if len(notes) < memory.MOST_MEMORIES else None
            if post_mortem is None or post_mortem.origin != bundle.origin or post_mortem.closed >= bundle.as_of:
                continue
            if not await self._may_recall(post_mortem):
                continue
            if recalled.similarity is None or share_phrases(setup, post_mortem.setup) >= MIN_SHARED:
                notes.append(note_memory(post_mortem, recalled.similarity))
        return memory.MemorySlot(setup=setup, source=answer.source, note=answer.note, memories=tuple(notes))

    async def _read_lessons(self, setup: str, bundle: Bundle) -> memory.FeedbackSlot:
        if not await self.lessons.read():
            return memory.FeedbackSlot()  # outcomes are not read for nothing
        known = [each for each in (await self.book.read()).values() if await self._may_recall(each)]
        standings = await self.lessons.advise(known, bundle.origin, setup, bundle.as_of)
        lessons = (derive(memory.LessonNote, each.lesson) for each in standings[: memory.MOST_LESSONS])
        return memory.FeedbackSlot(lessons=tuple(lessons))

    async def _may_recall(self, post_mortem: memory.PostMortem) -> bool:
        run = post_mortem.summary.decision
        if self.counts is None or run is None:
            return self.counts is None
        if run not in self._known:
            self._known[run] = await self.counts(run)
        return self._known[run]


@cache_by_market
def _describe_case(case: Case) -> str:
    return describe_setup(case.features, case.context)


def note_memory(post_mortem: memory.PostMortem, similarity: float | None = None) -> memory.MemoryNote:
    return derive(memory.MemoryNote, post_mortem, r=post_mortem.path.r, similarity=similarity)


WINDOW_DAYS: Final = 14
MOST_TEXTS: Final = 240
"""Of a feed and a symbol that are looked back at, the newest."""
STORIES_LOOKED_AT: Final = 40
"""Stories that are asked for; an index that was filled at other moments may hold some twice."""
ASKED_ABOUT: Final = 3
"""Of the newest texts: what they tell is what is asked about."""
BODY_CHARS: Final = 1_000
MOST_KEPT: Final = 4_000
"""Texts and vectors in memory, about a kilobyte each."""
_FEEDS: Final = ((memory.Channel.NEWS, Feed.NEWS, CHANNELS), (memory.Channel.NARRATIVE, Feed.NARRATIVE, SEARCH))


class NewsRecall:
    """Takes in what is new since the last cycle, and recalls for one case at a time."""

    def __init__(self, store: SeriesStore, index: MemoryIndex, embedder: Embedder) -> None:
        self._store, self._index, self._embedder = store, index, embedder
        self._taken: set[str] | None = None
        """Ids that are known to be in the index."""
        self._vectors: dict[str, bytes] = {}
        """Of texts that were told before, by id: the same are told cycle after cycle."""
        self._records: dict[tuple[str, Symbol, memory.Channel, Text], memory.MemoryRecord] = {}
        self._merged: tuple[tuple[str, ...], tuple[Story, ...]] | None = None

    async def __call__(self, case: Case) -> Sequence[Slot]:
        bundle = case.bundle
        records = await self._read_texts(bundle)
        if not records:
            return ()
        try:
            try:
                recalled = await self._recall(case, records)
            except Broken:  # damaged, or of another embedder: nobody else builds it anew
                await self._index.rebuild([])
                self._taken = None
                recalled = await self._recall(case, records)
        except (Unavailable, Broken) as error:
            recalled = memory.NewsSlot(source=memory.NOBODY, note=plain_text(str(error), _NOTE))
        return (memory.make_slot(recalled, bundle.as_of),)

    async def _read_texts(self, bundle: Bundle) -> dict[str, tuple[memory.MemoryRecord, Text]]:
        """What was known strictly before the moment, by id, oldest first; exact repeats of a channel once."""
        since = Millis(bundle.as_of - WINDOW_DAYS * DAY_MS)
        slices = [
            Slice(texts(feed, venue, bundle.symbol.base), since, Millis(bundle.as_of - 1), MOST_TEXTS)
            for _, feed, venue in _FEEDS
        ]
        unique: dict[tuple[str, str], tuple[memory.MemoryRecord, Text]] = {}
        for (channel, _, _), rows in zip(_FEEDS, (await self._store.read_many(slices, bundle.as_of)).rows, strict=True):
            for row in rows:
                record = self._records.get(key := (bundle.origin, bundle.symbol, channel, row))
                if record is None:
                    if not (body := " ".join(row.body.split())[:BODY_CHARS]):
                        continue
                    record = self._records[key] = _build_record(bundle, channel, row, body)
                unique.setdefault((row.channel, record.text.casefold()), (record, row))
        if len(self._records) > MOST_KEPT:
            self._records.clear()
        return {record.id: (record, row) for record, row in unique.values()}

    async def _recall(self, case: Case, records: Mapping[str, tuple[memory.MemoryRecord, Text]]) -> memory.NewsSlot:
        bundle = case.bundle
        stories = await self._merge(records)
        await self._take_in([records[story.first.id][0] for story in stories])
        fresh = [record for record, _ in records.values() if bundle.as_of - record.at <= DAY_MS]
        asked = sorted(fresh, key=lambda record: (-record.at, record.id))[:ASKED_ABOUT]
        query = memory.RecallQuery(
            text=" ".join(record.text for record in asked) or describe_setup(case.features, case.context),
            origin=bundle.origin,
            before=bundle.as_of,
            channels=tuple(channel for channel, _, _ in _FEEDS),
            symbol=bundle.symbol,
            limit=STORIES_LOOKED_AT,
        )
        answer = await self._index.recall(query)
        story_of = {text.id: story for story in stories for text in story.texts}
        recalled: dict[str, tuple[Story, float | None]] = {}
        for each in answer.found:  # what the index holds of other moments is not told, or tells a story again
            if (story := story_of.get(each.id)) is not None:
                recalled.setdefault(story.first.id, (story, each.similarity))
        current = {record.id for record in asked}
        notes = [
            memory.StoryNote(
                id=story.first.id,
                text=plain_text(story.first.body, memory.STORY_CHARS),
                first=story.first.at,
                last=story.texts[-1].at,
                told=len(story.texts),
                sources=story.sources,
                similarity=similarity,
            )
            for story, similarity in recalled.values()
            if story.sources > 1 or any(text.id not in current for text in story.texts)
        ]
        return memory.NewsSlot(source=answer.source, note=answer.note, stories=tuple(notes[: memory.MOST_STORIES]))

    async def _merge(self, records: Mapping[str, tuple[memory.MemoryRecord, Text]]) -> tuple[Story, ...]:
        """Stories of these texts, cached while the texts are the same."""
        names = tuple(records)
        if self._merged is None or self._merged[0] != names:
            vectors = await self._embed([record for record, _ in records.values()])
            texts_told = [
                NewsText(record.id, row.channel, record.at, record.text, vector)
                for (record, row), vector in zip(records.values(), vectors, strict=True)
            ]
            self._merged = (names, merge_stories(texts_told, self._embedder.duplicate))
        return self._merged[1]

    async def _embed(self, records: Sequence[memory.MemoryRecord]) -> list[bytes]:
        new = [record for record in records if record.id not in self._vectors]
        if len(self._vectors) + len(new) > MOST_KEPT:
            self._vectors.clear()
            new = list(records)
        vectors = await self._embedder.embed([record.text for record in new])
        self._vectors.update((record.id, vector) for record, vector in zip(new, vectors, strict=True))
        return [self._vectors[record.id] for record in records]

    async def _take_in(self, records: Sequence[memory.MemoryRecord]) -> None:
        """Only a story's first text is indexed; repeats are counted and crowd nobody out."""
        if self._taken is None:
            self._taken = set(await self._index.ids())
        new = [record for record in records if record.id not in self._taken]
        if new:
            await self._index.add(new)
            self._taken.update(record.id for record in new)


def _build_record(bundle: Bundle, channel: memory.Channel, row: Text, body: str) -> memory.MemoryRecord:
    name = "\n".join((bundle.origin, bundle.symbol, channel, row.channel, str(row.at), body))
    return memory.MemoryRecord(
        id=f"news_{hashlib.sha256(name.encode()).hexdigest()[:24]}",
        channel=channel,
        origin=bundle.origin,
        symbol=bundle.symbol,
        at=row.at,
        text=body,
    )
