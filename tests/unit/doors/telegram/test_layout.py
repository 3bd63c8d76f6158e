"""Text in a chat: nothing foreign is markup, a link or a command, and no table is wider than a phone."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.telegram_html import find_tappable
from zuno.doors.telegram.layout import (
    bold,
    code,
    fact,
    italic,
    text,
    warning,
)
from zuno.kernel.chat_text import JOINER

HOSTILE = st.text(st.sampled_from("aB1 <>&\"'`/@#.:\u202e\u2066\u200b\x00\x1b\n\t日😀é"), max_size=40)
TAG = re.compile(r"</?(b|i|code|pre|blockquote)( expandable)?>")


@given(HOSTILE)
def test_no_foreign_text_is_markup_or_control(raw: str) -> None:
    for written in (text(raw), bold(raw), italic(raw), code(raw), fact(raw, raw), warning(raw)):
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
