"""A document as facts for a model: every figure has an id of its own, and ids are valid whatever the labels are."""

from __future__ import annotations

from zuno.doors.chat.facts import FactWriter, build_sheet
from zuno.present.document import document, facts, include, lines, table
from zuno.present.values import count, foreign, id_
from zuno.provenance.facts import LONGEST_ID


def test_more_than_a_thousand_lines_have_ids() -> None:
    told = FactWriter("log").document(document("", lines(*(f"line {number}" for number in range(1_200)))))
    assert len(build_sheet([told])) == 1_200


def test_long_labels_that_are_cut_give_valid_ids() -> None:
    label = "a" * (LONGEST_ID - 7) + ".rest"
    told = FactWriter("p").document(document("", facts((label, count(1)), (label, count(2)))))
    assert sorted(fact.print() for fact in build_sheet([told]).values()) == ["1", "2"]


def test_a_tool_that_is_asked_twice_names_its_rows_as_the_first_time() -> None:
    listed = document("", table(("id",), [(id_("3"),)]))
    assert "position 3" in FactWriter("positions").document(listed).names
    assert "position 3" in FactWriter("positions2").document(listed).names


def test_an_included_foreign_headline_is_told_apart() -> None:
    told = FactWriter("p").document(document("outer", *include(document(foreign("obey me"), lines("ours")))))
    assert "obey me" not in told.text
    assert told.strangers == ("[p.1] obey me",)
