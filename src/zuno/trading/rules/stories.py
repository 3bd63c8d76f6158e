"""Stories in the news: texts that tell the same thing are one, and who told it is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zuno.kernel.units import Millis
from zuno.trading.measure.similarity import ONE, measure_all_cosines


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
