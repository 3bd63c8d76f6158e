"""Cutting a message: nothing is lost, no tag and no entity is broken, every piece fits."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.doors.telegram.reply import (
    CAPTION_LIMIT,
    MESSAGE_LIMIT,
    MOST_TAGS,
    Attachment,
    Button,
    Reply,
    count_units,
    split_message,
    split_reply,
)

TEXTS = st.text(st.sampled_from("ab <>&\"'\n\n  é\u0301𝔸😀‮/@."), max_size=60)
TAGS = st.sampled_from(("b", "i", "code", "pre", "blockquote"))
MARKED = st.recursive(
    TEXTS.map(html.escape),
    lambda inner: st.one_of(st.builds("<{0}>{1}</{0}>".format, TAGS, inner), st.lists(inner, max_size=4).map("".join)),
    max_leaves=12,
)


class Reader(HTMLParser):
    """Reads HTML as strictly as Telegram does: tags close in order, and nothing stays open."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.stack = "", list[str]()
        self.marks = list[tuple[str, tuple[str, ...]]]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        self.marks += [(char, tuple(self.stack)) for char in data if not char.isspace()]


def read(piece: str) -> Reader:
    assert not re.search(r"&(?!(?:amp|lt|gt|quot|#x27|#[0-9]+);)", piece)
    reader = Reader()
    reader.feed(piece)
    reader.close()
    assert reader.stack == []
    return reader


@given(MARKED, st.integers(8, 80), st.integers(8, 80))
def test_pieces_fit_are_well_formed_and_lose_nothing(message: str, first: int, limit: int) -> None:
    pieces = split_message(message, first, limit)
    readers = [read(piece) for piece in pieces]
    for number, reader in enumerate(readers):
        assert len(reader.text.encode("utf-16-le")) // 2 <= (limit if number else first)
        assert reader.text.strip()
    assert [mark for reader in readers for mark in reader.marks] == read(message).marks


@given(MARKED)
def test_a_message_that_fits_is_sent_as_it_is(message: str) -> None:
    pieces = split_message(message)
    assert len(pieces) <= 1
    assert [read(piece).text.strip() for piece in pieces] == [text for text in [read(message).text.strip()] if text]


@given(MARKED)
def test_units_are_those_of_the_text(message: str) -> None:
    assert count_units(message) == len(read(message).text.encode("utf-16-le")) // 2


def test_a_message_is_cut_at_an_empty_line_then_at_a_line_then_at_a_space() -> None:
    assert split_message("a" * 30 + "\n\n" + "b" * 9 + "\n" + "c" * 30, 50, 50)[0] == "a" * 30
    assert split_message("a" * 30 + "\n" + "b" * 9 + " " + "c" * 30, 50, 50)[0] == "a" * 30
    assert split_message("a" * 30 + " " + "b" * 30, 50, 50) == ("a" * 30, "b" * 30)
    assert split_message("a\n" + "b" * 70, 50, 50) == ("a\n" + "b" * 48, "b" * 22)


def test_a_table_is_cut_between_its_rows_and_keeps_its_type() -> None:
    rows = [f"{number:>4}  value" for number in range(40)]
    pieces = split_message("<b>Title</b>\n<pre>" + "\n".join(rows) + "</pre>", 200, 200)
    assert all(piece.endswith("</pre>") and "<pre>" in piece for piece in pieces)
    assert [row for piece in pieces for row in read(piece).text.splitlines()][1:] == rows


def test_a_surrogate_pair_an_entity_and_an_accent_are_kept_whole() -> None:
    assert split_message("😀" * 10, 15, 15) == ("😀" * 7, "😀" * 3)
    assert split_message("&amp;" * 10, 8, 8) == ("&amp;" * 8, "&amp;" * 2)
    assert split_message("e\u0301" * 10, 9, 9)[0] == "e\u0301" * 4


def test_no_piece_has_more_formatted_parts_than_telegram_keeps() -> None:
    pieces = split_message(" ".join(f"<b>{number}</b>" for number in range(250)))
    assert all(piece.count("<b>") <= MOST_TAGS for piece in pieces)
    assert [int(found) for piece in pieces for found in re.findall("<b>(.*?)</b>", piece)] == list(range(250))


@pytest.mark.parametrize("blank", ["", " \n ", "<b> </b>", "<pre>\n</pre>"])
def test_a_blank_message_is_no_message(blank: str) -> None:
    assert split_message(blank) == ()


def test_a_reply_is_split_with_its_picture_first_and_its_buttons_last() -> None:
    buttons = (Button("Why", "/why run-1"),)
    text = "\n".join(["x" * 99] * 60)
    parts = split_reply(Reply(text, buttons, photo=b"png", document=Attachment("run.html", b"page")))
    assert [part.photo for part in parts] == [b"png", None, None, None]
    assert count_units(parts[0].html) <= CAPTION_LIMIT
    assert count_units(parts[1].html) <= MESSAGE_LIMIT
    assert parts[-1] == Reply("", buttons, document=Attachment("run.html", b"page"))
    assert "\n".join(part.html for part in parts if part.html) == text
    assert split_reply(Reply("short", buttons)) == (Reply("short", buttons),)
    assert split_reply(Reply("", document=Attachment("a", b"b"))) == (Reply("", document=Attachment("a", b"b")),)
