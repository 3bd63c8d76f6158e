"""A stored view is shown only where it is whole, of a version this Zuno knows and bound to the decision."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from typing import Any

import pytest

from zuno.journal.decision_view import MAX_CONTENT, DecisionRecord, Facts, list_differences, pack_view
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.kernel.errors import Broken, Malformed
from zuno.kernel.view import RecordedView

DECIDED = "ab" * 32
FACTS: Facts = {"1d.adx14": {"value": "29.09", "unit": "number", "printed": "29.1"}}


class Shown(RecordedView):
    text: str


VIEW = Shown(hash=DECIDED, text="ADX is 29.1")
STORED = pack_view(VIEW, FACTS).model_dump(by_alias=True)


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


def test_lists_of_other_lengths_differ_as_a_whole() -> None:
    assert list(list_differences({"a": [1, 2]}, {"a": [1]})) == ["a was [1, 2], is [1]"]
    assert list(list_differences({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})) == ["a[1].b was 2, is 3"]
    assert list(list_differences({"a": [1]}, {"a": [1]})) == []
