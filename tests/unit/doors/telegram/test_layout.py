"""Text in a chat: nothing foreign is markup, a link or a command, and no table is wider than a phone."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.telegram_html import find_tappable
from zuno.doors.telegram.layout import (
    TABLE_WIDTH,
    block,
    bold,
    code,
    fact,
    italic,
    note,
    quote,
    table,
    text,
    warning,
)
from zuno.kernel.chat_text import JOINER

HOSTILE = st.text(st.sampled_from("aB1 <>&\"'`/@#.:\u202e\u2066\u200b\x00\x1b\n\t日😀é"), max_size=40)
TAG = re.compile(r"</?(b|i|code|pre|blockquote)( expandable)?>")


@given(HOSTILE)
def test_no_foreign_text_is_markup_or_control(raw: str) -> None:
    for written in (text(raw), bold(raw), italic(raw), code(raw), fact(raw, raw), note(raw), warning(raw)):
        bare = TAG.sub("", written)
        assert not set("<>\u202e\u2066\u200b\x00\x1b\n") & set(bare)
        assert re.sub(r"&(amp|lt|gt);", "", bare).count("&") == 0
        assert html.unescape(bare).isprintable() or JOINER in bare


@pytest.mark.parametrize(
    "raw",
    [
        "/kill all",
        "see /approve",
        "@scammer",
        "#tag",
        "evil.com",
        "https://evil.com/x",
        "tg://resolve?domain=x",
        "(/kill)",
        "$BTC",
        "me@evil.com",
        "10.0.0.1/x",
    ],
)
def test_nothing_foreign_can_be_tapped(raw: str) -> None:
    for written in (text(raw), bold(raw), italic(raw)):
        assert find_tappable(written) == []
        assert html.unescape(TAG.sub("", written)).replace(JOINER, "") == raw


def test_figures_stay_as_they_are() -> None:
    for raw in ("-1.66 %, 93,600.50", "WETH/USDC 0.05 %", "12:30:05Z", "0.5 BTC", "a/b"):
        assert text(raw) == raw


def test_commands_in_backticks_are_in_type_of_one_width() -> None:
    assert text("`zuno trade unlock` lifts <it>") == "<code>/unlock</code> lifts &lt;it&gt;"


CELLS = st.text(st.sampled_from("ab 19,.%日\u202e<&"), max_size=14)


@st.composite
def grids(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 5))
    return draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=4))


@given(grids())
def test_a_table_is_as_wide_as_a_phone_at_most_or_cards(rows: list[list[str]]) -> None:
    columns = [f"column {number}" for number in range(len(rows[0]))]
    shown = table(columns, rows, spare=columns[2:])
    if shown.startswith("<pre>"):
        lines = html.unescape(shown.removeprefix("<pre>").removesuffix("</pre>")).split("\n")
        assert len(lines) == len(rows) + 1
        assert all(len(line) + line.count("日") <= TABLE_WIDTH for line in lines)
    else:
        assert shown.count("<b>column 0") == len(rows)


def test_figures_end_under_one_another_and_words_begin_there() -> None:
    shown = table(("day", "n", "by"), [("31", "2", "stop"), ("1", "12", "target")], left=("by",))
    assert shown == "<pre>day  n by\n31   2 stop\n1   12 target</pre>"


def test_spare_columns_go_first_and_in_order() -> None:
    row = ("long ETH", "x" * 12, "y" * 12, "z" * 12)
    assert "zzz" in table(("a", "b", "c", "d"), [row], spare=("b", "c"))
    assert "xxx" not in table(("a", "b", "c", "d"), [row], spare=("b", "c"))
    assert "yyy" in table(("a", "b", "c", "d"), [row], spare=("b", "c"))


def test_a_quote_of_nothing_is_nothing() -> None:
    assert quote() == quote("", "") == ""
    assert block(["<a>"]) == "<pre>&lt;a&gt;</pre>"
