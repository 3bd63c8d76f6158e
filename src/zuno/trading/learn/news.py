"""News recall for Meta: earlier news and narrative about what is told now, each story once, with who told it.

The store of series is the truth of what was said and when it was known; the index only says what is alike. What the
store does not hold as of the moment is not recalled, whatever the index holds. Nothing of it is ever a lesson.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.agents.case import Case
from zuno.trading.measure.setup import describe_setup
from zuno.trading.measure.similarity import ONE, measure_all_cosines
from zuno.trading.model.bundle import Bundle, Slot
from zuno.trading.model.market import DAY_MS, Feed, Symbol, Text, texts
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery
from zuno.trading.model.slots import MOST_STORIES, NOBODY, STORY_CHARS, NewsSlot, StoryNote, news_slot
from zuno.trading.model.venues import CHANNELS, SEARCH
from zuno.trading.ports.recall import Embedder, MemoryIndex
from zuno.trading.ports.series import SeriesStore, Slice


@dataclass(frozen=True, slots=True)
class NewsText:
    """One telling of something."""

    id: str
    channel: str
    """Who told it; two names are two sources."""
    at: Millis
    body: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Story:
    texts: tuple[NewsText, ...]
    """Oldest first."""

    @property
    def first(self) -> NewsText:
        return self.texts[0]

    @property
    def sources(self) -> int:
        """How many channels told it: who repeats themselves corroborates nothing."""
        return len({text.channel for text in self.texts})


def merge_stories(texts: Sequence[NewsText], duplicate: float) -> tuple[Story, ...]:
    """In the order in which they were told first. A text belongs to the first story that one of its earlier texts tells
    alike, whose cosine is `duplicate` or more: what is told later changes no story before it."""
    ordered = sorted(texts, key=lambda text: (text.at, text.id))
    alike = measure_all_cosines([text.vector for text in ordered]) >= round(duplicate * ONE)
    story_of = np.zeros(len(ordered), dtype=np.int64)
    stories: list[list[NewsText]] = []
    for place, text in enumerate(ordered):
        told = story_of[:place][alike[place, :place]]
        story_of[place] = told.min() if len(told) else len(stories)
        if len(told):
            stories[story_of[place]].append(text)
        else:
            stories.append([text])
    return tuple(Story(tuple(story)) for story in stories)


WINDOW_DAYS: Final = 14
MOST_TEXTS: Final = 240
"""Of a feed and a symbol that are looked back at, the newest."""
LOOKED_AT: Final = 40
"""Stories that are asked for; an index that was filled at other moments may hold some twice."""
ASKED_ABOUT: Final = 3
"""Of the newest texts: what they tell is what is asked about."""
BODY_CHARS: Final = 1_000
MOST_KEPT: Final = 4_000
"""Texts and vectors in memory, about a kilobyte each."""
_NOTE: Final = 200
_FEEDS: Final = ((Channel.NEWS, Feed.NEWS, CHANNELS), (Channel.NARRATIVE, Feed.NARRATIVE, SEARCH))


class NewsRecall:
    """Takes in what is new since the last cycle, and recalls for one case at a time."""

    def __init__(self, store: SeriesStore, index: MemoryIndex, embedder: Embedder) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._taken: set[str] | None = None
        """Ids that are known to be in the index."""
        self._vectors: dict[str, bytes] = {}
        """Of texts that were told before, by id: the same are told cycle after cycle."""
        self._records: dict[tuple[str, Symbol, Channel, Text], MemoryRecord] = {}
        """Of texts that were read before."""
        self._merged: tuple[tuple[str, ...], tuple[Story, ...]] | None = None

    async def __call__(self, case: Case) -> Sequence[Slot]:
        bundle = case.bundle
        told = await self._read_texts(bundle)
        if not told:
            return ()
        try:
            try:
                recalled = await self._recall(case, told)
            except Broken:  # damaged, or of another embedder: nobody else builds it anew
                await self._index.rebuild([])
                self._taken = None
                recalled = await self._recall(case, told)
        except (Unavailable, Broken) as error:
            recalled = NewsSlot(source=NOBODY, note=plain_text(str(error), _NOTE))
        return (news_slot(recalled, bundle.as_of),)

    async def _read_texts(self, bundle: Bundle) -> dict[str, tuple[MemoryRecord, Text]]:
        """What could be known strictly before the moment, by id, oldest first. A channel that repeats itself word for
        word is heard once."""
        since = Millis(bundle.as_of - WINDOW_DAYS * DAY_MS)
        slices = [
            Slice(texts(feed, venue, bundle.symbol.base), since, Millis(bundle.as_of - 1), MOST_TEXTS)
            for _, feed, venue in _FEEDS
        ]
        found: dict[tuple[str, str], tuple[MemoryRecord, Text]] = {}
        for (channel, _, _), rows in zip(_FEEDS, (await self._store.read_many(slices, bundle.as_of)).rows, strict=True):
            for row in rows:
                record = self._records.get(key := (bundle.origin, bundle.symbol, channel, row))
                if record is None:
                    if not (body := " ".join(row.body.split())[:BODY_CHARS]):
                        continue
                    record = self._records[key] = _build_record(bundle, channel, row, body)
                found.setdefault((row.channel, record.text.casefold()), (record, row))
        if len(self._records) > MOST_KEPT:
            self._records.clear()
        return {record.id: (record, row) for record, row in found.values()}

    async def _recall(self, case: Case, told: Mapping[str, tuple[MemoryRecord, Text]]) -> NewsSlot:
        bundle = case.bundle
        stories = await self._merge(told)
        await self._take_in([told[story.first.id][0] for story in stories])
        fresh = [record for record, _ in told.values() if bundle.as_of - record.at <= DAY_MS]
        asked = sorted(fresh, key=lambda record: (-record.at, record.id))[:ASKED_ABOUT]
        query = RecallQuery(
            text=" ".join(record.text for record in asked) or describe_setup(case.features, case.context),
            origin=bundle.origin,
            before=bundle.as_of,
            channels=tuple(channel for channel, _, _ in _FEEDS),
            symbol=bundle.symbol,
            limit=LOOKED_AT,
        )
        answer = await self._index.recall(query)
        story_of = {text.id: story for story in stories for text in story.texts}
        found: dict[str, tuple[Story, float | None]] = {}
        for each in answer.found:  # what the index holds of other moments is not told, or tells a story again
            if (story := story_of.get(each.id)) is not None:
                found.setdefault(story.first.id, (story, each.similarity))
        current = {record.id for record in asked}
        notes = [
            _story_note(story, similarity)
            for story, similarity in found.values()
            if story.sources > 1 or any(text.id not in current for text in story.texts)
        ]
        return NewsSlot(source=answer.source, note=answer.note, stories=tuple(notes[:MOST_STORIES]))

    async def _merge(self, told: Mapping[str, tuple[MemoryRecord, Text]]) -> tuple[Story, ...]:
        """What is told, each story once; the same as long as the same is told."""
        names = tuple(told)
        if self._merged is None or self._merged[0] != names:
            vectors = await self._embed([record for record, _ in told.values()])
            texts_told = [
                NewsText(record.id, row.channel, record.at, record.text, vector)
                for (record, row), vector in zip(told.values(), vectors, strict=True)
            ]
            self._merged = (names, merge_stories(texts_told, self._embedder.duplicate))
        return self._merged[1]

    async def _embed(self, records: Sequence[MemoryRecord]) -> list[bytes]:
        new = [record for record in records if record.id not in self._vectors]
        if len(self._vectors) + len(new) > MOST_KEPT:
            self._vectors.clear()
            new = list(records)
        vectors = await self._embedder.embed([record.text for record in new])
        self._vectors.update((record.id, vector) for record, vector in zip(new, vectors, strict=True))
        return [self._vectors[record.id] for record in records]

    async def _take_in(self, records: Sequence[MemoryRecord]) -> None:
        """Each story as it was told first: who tells it again is counted, and crowds nobody out."""
        if self._taken is None:
            self._taken = set(await self._index.ids())
        new = [record for record in records if record.id not in self._taken]
        if new:
            await self._index.add(new)
            self._taken.update(record.id for record in new)


def _build_record(bundle: Bundle, channel: Channel, row: Text, body: str) -> MemoryRecord:
    name = "\n".join((bundle.origin, bundle.symbol, channel, row.channel, str(row.at), body))
    return MemoryRecord(
        id=f"news_{hashlib.sha256(name.encode()).hexdigest()[:24]}",
        channel=channel,
        origin=bundle.origin,
        symbol=bundle.symbol,
        at=row.at,
        text=body,
    )


def _story_note(story: Story, similarity: float | None) -> StoryNote:
    return StoryNote(
        id=story.first.id,
        text=plain_text(story.first.body, STORY_CHARS),
        first=story.first.at,
        last=story.texts[-1].at,
        told=len(story.texts),
        sources=story.sources,
        similarity=similarity,
    )
