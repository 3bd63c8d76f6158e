"""Whatever a view holds is in its document or named as left out, and text of strangers is marked as such."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.present.views import STRANGER, Maker, answers, changes, left_out
from zuno.kernel.view import View
from zuno.lp.service.execution_view import ExecutionView, SimulationView
from zuno.present.document import Document, Facts, Kind, Lines, Table, Value
from zuno.present.html import to_html
from zuno.present.text import count_columns, to_text

SAMPLES = 40
NOTHING_NEW = 12
"""After so many samples in a row that showed no further field, the rest would show none either."""


def read(kind: type[View], number: int, *, strangers: bool = False) -> tuple[View, Document]:
    view = Maker(f"{kind.__name__} {number}", strangers=strangers).view(kind)
    return view, view.to_document()


@pytest.mark.parametrize("kind", answers(), ids=lambda kind: kind.__name__)
def test_every_field_is_shown_or_named_as_left_out(kind: type[View]) -> None:
    met: set[tuple[type[View], str]] = set()
    shown: set[tuple[type[View], str]] = set()
    excused: set[tuple[type[View], str]] = set()
    newest = 0
    for number in range(SAMPLES):
        if not met - shown - excused and number - newest > NOTHING_NEW:
            break
        view, before = read(kind, number)
        for owner, name, change in changes(view, Maker(f"{number} other")):
            field = owner, name
            if field in shown or (owner is not kind and field in excused):
                continue
            if field not in met:
                met.add(field)
                newest = number
                if left_out(owner, name, kind):
                    excused.add(field)
            if change().to_document() != before:
                shown.add(field)
    hidden = {f"{owner.__name__}.{name}" for owner, name in met - shown - excused}
    assert not hidden, "neither shown nor in LEFT_OUT"
    own = {f"{owner.__name__}.{name}" for owner, name in excused & shown if owner is kind}
    assert not own, "in LEFT_OUT, and shown all the same"


@pytest.mark.parametrize("kind", answers(), ids=lambda kind: kind.__name__)
def test_text_of_strangers_is_marked(kind: type[View]) -> None:
    for number in range(10):
        _, document = read(kind, number, strangers=True)
        for value in values(document):
            assert STRANGER not in value.text or value.kind is Kind.FOREIGN or value.number is not None, value
        for words in own_words(document):
            assert STRANGER not in words


def test_a_strangers_token_in_a_result_or_a_note_is_marked() -> None:
    result = {"inToken1": {"result": "1.5", "token": STRANGER}}
    execution = Maker("execution").view(ExecutionView).model_copy(update={"outcome": result, "other_outcomes": ()})
    simulation = Maker("simulation").view(SimulationView).model_copy(update={"notes": (STRANGER,)})
    for view in (execution, simulation):
        marked = [value for value in values(view.to_document()) if STRANGER in value.text]
        assert [value.kind for value in marked] == [Kind.FOREIGN]


@pytest.mark.parametrize("kind", answers(), ids=lambda kind: kind.__name__)
def test_every_document_fits_narrow_and_wide_screens(kind: type[View]) -> None:
    for number in range(3):
        _, document = read(kind, number)
        for width in (40, 80, 200):
            verbatim = {line for value in verbatims(document) for line in value.text.split("\n")}
            assert all(
                count_columns(line) <= width or line in verbatim for line in to_text(document, width).split("\n")
            )
        assert to_html(document)


def values(document: Document) -> Iterator[Value]:
    yield from (document.headline, document.context, *document.urgent, *document.notes)
    for section in document.sections:
        for block in section.blocks:
            match block:
                case Facts(facts):
                    yield from (fact.value for fact in facts)
                case Table(_, rows):
                    yield from (cell for row in rows for cell in row.cells)
                case Lines(lines):
                    yield from lines


def verbatims(document: Document) -> Iterator[Value]:
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Lines) and block.mark == "verbatim":
                yield from block.lines


def own_words(document: Document) -> Iterator[str]:
    """Titles, labels, columns, sources and acts: always words of our own."""
    yield from (part for act in document.acts for part in (act.label, act.command))
    for section in document.sections:
        yield section.title
        for block in section.blocks:
            match block:
                case Facts(facts):
                    yield from (part for fact in facts for part in (fact.label, fact.source))
                case Table(columns):
                    yield from (column.name for column in columns)
