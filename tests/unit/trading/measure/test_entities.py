from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zuno.trading.measure.similarity import MOST_ENTITIES, Relation, find_entities


def test_a_headline_is_about_its_names() -> None:
    found = find_entities("SEC delays decision on Grayscale's Ethereum ETF")
    assert found.names == ("sec", "grayscale s ethereum etf")
    assert found.relations == (Relation("sec", "grayscale s ethereum etf", "delays"),)


def test_a_setup_is_about_its_conditions() -> None:
    found = find_entities("funding high; failed breakout; funding high")
    assert found.names == ("funding high", "funding", "failed breakout", "failed")
    assert found.relations[0] == Relation("funding", "funding high", "state")


@given(st.text(max_size=300))
def test_any_text_has_few_entities_and_no_relation_to_itself(text: str) -> None:
    found = find_entities(text)
    assert len(found.names) <= 2 * MOST_ENTITIES
    assert all(relation.source != relation.target for relation in found.relations)
    assert {end for relation in found.relations for end in (relation.source, relation.target)} <= set(found.names)
