from __future__ import annotations

from hashlib import sha256
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.memory.hashed import DIMENSION, embed_text
from zuno.trading.measure.similarity import cosine

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
