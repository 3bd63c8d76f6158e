"""Stories in the news: texts that tell the same thing are one, and who told it is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zuno.kernel.units import Millis
from zuno.trading.measure.similarity import list_cosines


@dataclass(frozen=True, slots=True)
class NewsText:
    """One telling of something."""

    id: str
    channel: str
    """Who told it; two names are two sources."""
    at: Millis
    body: str
    similarity: float | None
    """To what was asked."""
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
    """In the order in which their first texts are given. A text belongs to the first story that one of its texts tells
    alike: whose cosine is `duplicate` or more."""
    groups: list[list[int]] = []
    for number, cosines in enumerate(list_cosines([text.vector for text in texts])):
        group = next((group for group in groups if any(cosines[told] >= duplicate for told in group)), None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    stories = ([texts[number] for number in group] for group in groups)
    return tuple(Story(tuple(sorted(story, key=lambda text: (text.at, text.id)))) for story in stories)
