"""Texts that tell the same are one story, in the order they were told; what comes later changes none before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.memory.hashed import DUPLICATE, embed_text
from zuno.kernel.units import Millis
from zuno.trading.measure.similarity import NewsText, merge_stories

BODIES = ("Orbit halts withdrawals", "Orbit halts withdrawals today", "Court postpones ruling", "A quiet weekend")
TEXTS = st.builds(
    lambda place, hour, channel: (place, hour, channel),
    st.integers(0, len(BODIES) - 1),
    st.integers(0, 9),
    st.sampled_from("abc"),
)


def text(number: int, place: int, hour: int, channel: str) -> NewsText:
    return NewsText(f"news_{number}", channel, Millis(hour), BODIES[place], embed_text(BODIES[place]))


@pytest.mark.slow
@given(st.lists(TEXTS, max_size=12), st.integers(0, 10))
def test_later_texts_change_no_story_before_them(found: list[tuple[int, int, str]], hour: int) -> None:
    texts = [text(number, *each) for number, each in enumerate(found)]
    whole = merge_stories(texts, DUPLICATE)
    before = merge_stories([each for each in texts if each.at < hour], DUPLICATE)
    cut = [tuple(each for each in story.texts if each.at < hour) for story in whole]
    assert [story.texts for story in before] == [story for story in cut if story]
    assert sorted(each.id for story in whole for each in story.texts) == sorted(each.id for each in texts)
    assert merge_stories(texts[::-1], DUPLICATE) == whole
    assert all(story.sources == len({each.channel for each in story.texts}) for story in whole)
