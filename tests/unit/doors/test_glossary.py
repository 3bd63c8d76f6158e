"""The glossary, asked by a term or by a line of the shell."""

from __future__ import annotations

import pytest

from zuno.doors.glossary import asked_term, look_up
from zuno.doors.reading.reader import read


@pytest.mark.parametrize(
    ("line", "term"),
    [
        ("what is lvr", "LVR, fee cover"),
        ("What’s impermanent loss?", "divergence loss"),
        ("explain hooks", "hook"),
        ("what does CVD stand for", "CVD"),
        ("meaning of tick spacing", "tick, spacing"),
        ("can you explain loss versus rebalancing please", "LVR, fee cover"),
    ],
)
def test_a_line_that_asks_what_a_term_means_is_answered_by_the_glossary(line: str, term: str) -> None:
    asked = asked_term(line)
    assert asked is not None
    assert [entry.term for entry in look_up(asked).entries] == [term]
    assert read(line).command()[0] == "glossary"


@pytest.mark.parametrize(
    "line",
    ["what is my portfolio worth", "what is the mandate", "what does trend hold", "explain the last decision", "lvr"],
)
def test_a_line_about_what_is_there_is_no_question_of_words(line: str) -> None:
    assert asked_term(line) is None


def test_a_word_that_is_no_term_shows_where_it_stands_and_an_unknown_one_says_so() -> None:
    mentioned = look_up("Kelly")
    assert not mentioned.known
    assert [entry.term for entry in mentioned.entries] == ["fair rate, edge, λ"]
    assert not look_up("zzzz").entries
    assert "zzzz" in look_up("zzzz").to_document().headline.text
    assert len(look_up(None).entries) > 40
