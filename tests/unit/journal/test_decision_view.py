"""A stored view is shown only where it is whole, of a version this Zuno knows and bound to the decision."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.wire.learning import journal
from zuno.journal.decision_view import (
    DECISION_VIEW,
    MAX_CONTENT,
    DecisionRecord,
    Facts,
    list_differences,
    pack_view,
    store_missing_views,
)
from zuno.journal.port import Author
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.kernel.errors import Broken, Malformed
from zuno.kernel.view import RecordedView

DECIDED = "ab" * 32
FACTS: Facts = {"1d.adx14": {"value": "29.09", "unit": "number", "printed": "29.1"}}


class Shown(RecordedView):
    text: str


VIEW = Shown(hash=DECIDED, text="ADX is 29.1")
STORED = pack_view(VIEW, FACTS).model_dump(by_alias=True)
OTHER = pack_view(VIEW.model_copy(update={"hash": "cd" * 32}), FACTS).model_dump(by_alias=True)


async def compute() -> tuple[Shown, Facts]:
    facts = {"1d.adx14": {**FACTS["1d.adx14"], "value": "36.09"}}
    return VIEW.model_copy(update={"text": "ADX is 36.1"}), facts


def record(stored: Any, decided: str = DECIDED) -> DecisionRecord[Shown]:
    return DecisionRecord(Shown, decided, stored, compute)


def packed(content: bytes) -> dict[str, Any]:
    return {**STORED, "content": b64encode(zlib.compress(content)).decode()}


async def test_the_stored_view_is_shown_and_not_the_computed_one() -> None:
    assert await record(STORED).show("9.9") == VIEW
    content: Any = decode_canonical(zlib.decompress(b64decode(STORED["content"])))
    assert content == {"view": {"hash": DECIDED, "text": "ADX is 29.1"}, "facts": FACTS}


BAD: dict[str, Any] = {
    "missing": None,
    "newer version": {**STORED, "version": 2},
    "no version": {name: value for name, value in STORED.items() if name != "version"},
    "another decision": {**STORED, "decided": "cd" * 32},
    "content of another decision": pack_view(VIEW.model_copy(update={"hash": "cd" * 32}), FACTS).model_dump(
        by_alias=True
    )
    | {"decided": DECIDED},
    "another field": {**STORED, "more": 1},
    "no base64": {**STORED, "content": "{}"},
    "no zlib": {**STORED, "content": b64encode(b"nothing").decode()},
    "cut": {**STORED, "content": b64encode(b64decode(STORED["content"])[:-5]).decode()},
    "something behind it": {**STORED, "content": b64encode(b64decode(STORED["content"]) + b"x").decode()},
    "bomb": packed(b'{"facts":{},"view":"' + b"0" * (16 * MAX_CONTENT) + b'"}'),
    "not canonical": packed(b'{ "facts": {}, "view": {} }'),
    "no object": packed(b"[]"),
    "another part": packed(canonical({"view": {}, "facts": {}, "text": ""})),
    "no facts": packed(canonical({"view": {"hash": DECIDED, "text": ""}})),
    "another shape": packed(canonical({"view": {"hash": DECIDED, "title": ""}, "facts": {}})),
}


@pytest.mark.parametrize("stored", BAD.values(), ids=BAD)
async def test_what_cannot_be_read_is_computed_and_says_so(stored: Any) -> None:
    shown = await record(stored).show("9.9")
    assert (shown.text, shown.computed_by) == ("ADX is 36.1", "9.9")
    assert shown.computed_why
    assert len(shown.computed_notes) == 1


async def test_a_comparison_names_each_field_that_is_shown_otherwise() -> None:
    assert set(await record(STORED).compare()) == {
        "facts.1d.adx14.value was 29.09, is 36.09",
        "view.text was ADX is 29.1, is ADX is 36.1",
    }
    assert await record(None).compare() == ()
    assert len(await record(BAD["newer version"]).compare()) == 1


async def test_a_record_that_gives_another_hash_is_not_stored() -> None:
    with pytest.raises(Broken):
        await record(None, "cd" * 32).pack()
    assert (await record(None).pack()).decided == DECIDED


async def test_an_error_of_the_comparison_is_told() -> None:
    async def fail() -> tuple[Shown, Facts]:
        raise Malformed("the bundle is none this Zuno takes")

    told = await DecisionRecord(Shown, DECIDED, STORED, fail).compare()
    assert told == ("the bundle is none this Zuno takes",)


async def test_missing_views_are_stored_in_order_and_one_that_cannot_be_read_keeps_no_other(tmp_path: Path) -> None:
    book, ended = journal(tmp_path), Author("critic")
    names = [f"req_{number}" for number in range(6)]
    for name in names:
        await book.append(kind="ended", author=ended, payload={}, request_id=name)

    async def load(request_id: str) -> DecisionRecord[Shown]:
        if request_id == "req_2":
            Shown.model_validate({"hash": 1})
        return record(None, "cd" * 32 if request_id == "req_4" else DECIDED)

    view = await store_missing_views(book, "ended", ended, load)
    assert (view.stored, [line.partition(":")[0] for line in view.not_stored]) == (4, ["req_2", "req_4"])
    stored = [entry.request_id async for entry in book.entries(kind=DECISION_VIEW)]
    assert stored == [name for name in names if name not in ("req_2", "req_4")]
    assert (await store_missing_views(book, "ended", ended, load)).stored == 0


def test_lists_of_other_lengths_differ_as_a_whole() -> None:
    assert list(list_differences({"a": [1, 2]}, {"a": [1]})) == ["a was [1, 2], is [1]"]
    assert list(list_differences({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})) == ["a[1].b was 2, is 3"]
    assert list(list_differences({"a": [1]}, {"a": [1]})) == []
