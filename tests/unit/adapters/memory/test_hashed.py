from __future__ import annotations

import asyncio
from hashlib import sha256
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.vectors import cosine
from zuno.adapters.memory.hashed import DIMENSION, HashedEmbedder, embed_text
from zuno.adapters.memory.table import InMemoryIndex
from zuno.kernel.units import Millis
from zuno.trading.measure.similarity import split_phrases
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery

PHRASES = st.lists(
    st.sampled_from(["funding high", "failed breakout", "RSI 1h overbought", "price under VWAP", "1.5 to 100,000"]),
    max_size=12,
)


def test_a_vector_is_the_same_on_every_machine() -> None:
    text = "failed breakout; funding high; RSI 1h overbought; 100,000 업비트"
    assert sha256(embed_text(text)).hexdigest() == "ee1252a21d5cda005d8148727fac78f1a31442a3da979c62cc10c00e5bc6ab24"


@given(PHRASES, st.randoms(use_true_random=False))
def test_the_order_of_phrases_does_not_matter(phrases: list[str], chance: Random) -> None:
    shuffled = list(phrases)
    chance.shuffle(shuffled)
    assert embed_text("; ".join(phrases)) == embed_text("; ".join(shuffled))


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_cosine_is_between_nothing_and_one_and_says_the_same_both_ways(first: str, second: str) -> None:
    one_way, other = embed_text(first), embed_text(second)
    assert len(one_way) == DIMENSION
    assert 0 <= cosine(one_way, other) == cosine(other, one_way) <= 1
    assert cosine(one_way, one_way) == (1 if any(one_way) else 0)


def test_forms_of_a_word_are_near_and_other_numbers_and_pairs_are_not() -> None:
    setup = "funding high; volatility low"
    assert cosine(embed_text("breakouts failed"), embed_text("failed breakout")) > 0.4
    assert cosine(embed_text("above 100,000"), embed_text("above 110,000")) < 0.2
    assert cosine(embed_text("volatility low; high funding"), embed_text(setup)) == 1
    assert cosine(embed_text("volatility high; funding low"), embed_text(setup)) < 0.8


def test_setups_are_told_apart_by_their_phrases() -> None:
    """The same words in other phrases are another setup; of what is no setup, words count."""
    index = InMemoryIndex(HashedEmbedder())
    asked = "failed breakout up 4h; RSI 1h strong; RSI 4h weak; funding high; volatility low; structure up 1d"
    swapped = "failed breakout up 1d; RSI 1h weak; RSI 4h strong; funding low; volatility high; structure up 4h"
    near = "failed breakout up 4h; RSI 1h strong; RSI 4h weak; funding neutral; volatility low; structure down 1d"
    records = [
        MemoryRecord(id=name, channel=Channel.SYSTEM_POST_MORTEM, origin="here", symbol=None, at=Millis(1), text=text)
        for name, text in (("swapped", swapped), ("near", near))
    ]

    async def recall(text: str) -> dict[str, float]:
        await index.add(records)
        answer = await index.recall(RecallQuery(text=text, origin="here", before=Millis(2)))
        return {found.id: found.similarity or 0.0 for found in answer.found}

    found = asyncio.run(recall(asked))
    assert found["near"] > found["swapped"] + 0.3
    assert asyncio.run(recall("funding neutral"))["near"] > asyncio.run(recall("funding neutral"))["swapped"]
    assert split_phrases("failed breakout; high funding") == ()
    assert split_phrases(asked) == split_phrases("; ".join(" ".join(p.split()[::-1]) for p in asked.split("; ")))
