"""The cosine from which on two headlines are one piece of news, held against headlines labelled by hand."""

from __future__ import annotations

import json
from itertools import combinations

from tests.paths import CHECKOUT
from zuno.adapters.memory.hashed import DUPLICATE, embed_text
from zuno.trading.measure.similarity import ONE, measure_all_cosines


def test_the_threshold_separates_the_same_news_from_other_news() -> None:
    groups = json.loads((CHECKOUT / "tests/golden/headlines.json").read_text())["groups"]
    headlines = [(place, embed_text(text)) for place, group in enumerate(groups) for text in group]
    same: list[float] = []
    other: list[float] = []
    cosines = measure_all_cosines([vector for _, vector in headlines]) / ONE
    for (first, (group, _)), (second, (another, _)) in combinations(enumerate(headlines), 2):
        (same if group == another else other).append(cosines[first, second])
    assert (sum(value >= DUPLICATE for value in same), len(same)) == (79, 99)
    assert (sum(value >= DUPLICATE for value in other), len(other)) == (0, 8_286)
    assert round(max(other), 2) == 0.66
