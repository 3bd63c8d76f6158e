"""Documents as text and as a phone's HTML: whole, in order, never cut, no wider than the screen."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.present.document import (
    Act,
    Fact,
    Kind,
    Mark,
    Tone,
    Value,
    document,
    facts,
    include,
    lines,
    row,
    section,
    select_columns,
    table,
)
from zuno.present.html import PHONE_WIDTH, to_html
from zuno.present.text import Span, count_columns, layout, to_text, wrap
from zuno.present.values import amount, bad, count, foreign, gain, id_, money, number, percent, share

RANGES = table(
    ("id", "range", "state", "hash"),
    [("1", "2,368.50\n2,659.81", "in range\n9 % to edge", "f" * 12)],
    spare=("hash",),
    joiners={"range": " – "},
)


def printed(*parts: object, width: int) -> list[str]:
    return to_text(document("", *parts), width).split("\n")  # type: ignore[arg-type]


def test_a_table_stands_where_it_fits() -> None:
    assert printed(RANGES, width=60) == [
        "id  range     state        hash",
        "1   2,368.50  in range     ffffffffffff",
        "    2,659.81  9 % to edge",
    ]


def test_spare_columns_go_first() -> None:
    assert printed(RANGES, width=30) == [
        "id  range     state",
        "1   2,368.50  in range",
        "    2,659.81  9 % to edge",
    ]


def test_spare_columns_of_a_whole_table_stand_under_their_row() -> None:
    assert printed(replace(RANGES, whole=True), width=30) == [
        "id  range     state",
        "1   2,368.50  in range",
        "    2,659.81  9 % to edge",
        "    hash ffffffffffff",
    ]


def test_a_next_command_is_not_broken() -> None:
    acts = (Act("Go", "lp positions"), Act("Why", "why plan_0123456789ab"))
    assert to_text(document("", acts=acts), 30).split("\n") == [
        "next: `zuno lp positions`,",
        "`zuno why plan_0123456789ab`",
    ]


def test_a_row_that_does_not_fit_is_a_card_with_everything_on_it() -> None:
    card = printed(RANGES, width=24)
    assert card[0] == "id 1"
    for figure in ("2,368.50", "2,659.81", "9 %", "ffffffffffff"):
        assert any(figure in line for line in card)


def test_a_long_word_is_folded_not_cut() -> None:
    pool = "0x" + "5d" * 32
    assert "".join(line[9:] for line in printed(facts(("pool id", pool)), width=40)) == pool


def test_figures_end_under_one_another_and_words_begin_there() -> None:
    days = table(("day", "n", "by"), [("31", count(2), "stop"), ("1", count(12), "target")])
    assert printed(days, width=40) == ["day   n  by", "31    2  stop", "1    12  target"]
    assert to_html(document("", days)) == "<pre>day  n by\n31   2 stop\n1   12 target</pre>"


def test_order_of_a_document() -> None:
    inner = document("Inner", facts(("worth", money(12.5))), notes=("small",), context="then")
    whole = document(
        "Headline",
        section("Section", facts(Fact("price", amount("1", "ETH"), "feed", 7, stale=True, notes=("late",)))),
        *include(inner),
        context="now",
        urgent=("out of range",),
        notes=("a note", ""),
        acts=(Act("Go", "lp positions"), None),
    )
    assert to_text(whole, 80).split("\n") == [
        "Headline",
        "now",
        "out of range",
        "Section",
        "price  1 ETH  (feed, 7 s old; late)  STALE",
        "",
        "Inner",
        "then",
        "worth  $12.50",
        "note: small",
        "note: a note",
        "next: `zuno lp positions`",
    ]
    message = to_html(whole)
    assert message.startswith("<b>Headline</b>\n<i>now</i>\n⚠ out of range\n\n<b>Section</b>")
    assert "STALE" in message


def test_tones_reach_the_spans() -> None:
    spans = [span for line in layout(document("", facts(("PnL", gain(-3.0)))), 40) for span in line]
    assert spans == [Span("PnL  ", Tone.QUIET), Span("-$3.00", Tone.BAD)]


def test_a_loss_that_rounds_to_nothing_has_no_colour() -> None:
    assert gain(-0.001).tone is Tone.PLAIN
    assert gain(0.01).tone is Tone.GOOD


def test_a_value_keeps_its_exact_number() -> None:
    assert (money(None).number, percent(None).number, share(None).number) == (None, None, None)
    assert str(share(0.25).number) == "25.00"
    assert (number(1.5, 1, unit="×").text, number(2, 0, unit="ms").text) == ("1.5×", "2 ms")


def test_no_control_character_reaches_a_screen() -> None:
    assert Value("a\x1b[2J\u202eb\nc").text == "a[2Jb\nc"
    assert foreign("one\ntwo").text == "one two"
    assert foreign("x").kind is Kind.FOREIGN
    assert Fact("gas", foreign("x"), "a\x1b[2J", notes=("b\n\u202ec",)).about == "a[2J; b c"


def test_ids_are_copied_by_a_tap_and_quotes_open() -> None:
    message = to_html(document("", facts(("id", id_("<a>"))), lines("long", mark=Mark.QUOTE)))
    assert message == "<b>id</b>: <code>&lt;a&gt;</code>\n<blockquote expandable>long</blockquote>"


def test_a_table_of_fewer_columns_keeps_its_rows() -> None:
    short = select_columns(document("", RANGES), ("id", "hash"))
    assert to_text(short, 40).split("\n") == ["id  hash", "1   ffffffffffff"]


def test_rows_and_spare_columns_are_checked() -> None:
    with pytest.raises(ValueError, match="cells"):
        table(("a", "b"), [("1",)])
    with pytest.raises(ValueError, match="column"):
        table(("a",), [row("1")], spare=("b",))
    assert lines("", "") is None


CELLS = st.text(st.sampled_from("ab 19,.%日\u202e<&"), max_size=14)


@st.composite
def grids(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 5))
    return draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=4))


@given(grids())
def test_a_table_is_as_wide_as_a_phone_at_most_or_cards(rows: list[list[str]]) -> None:
    columns = [f"column {place}" for place in range(len(rows[0]))]
    shown = to_html(document("", table(columns, rows, spare=columns[2:])))
    if shown.startswith("<pre>"):
        written = html.unescape(shown.removeprefix("<pre>").removesuffix("</pre>")).split("\n")
        assert len(written) == len(rows) + 1
        assert all(count_columns(line) <= PHONE_WIDTH for line in written)
    else:
        assert shown.count("<b>column 0") == len(rows)


@given(st.text(st.sampled_from("ab 日é-"), max_size=80), st.integers(4, 40))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    wrapped = wrap(text, width)
    assert all(count_columns(line) <= width for line in wrapped)
    assert "".join("".join(wrapped).split()) == "".join(text.split())


def test_white_space_of_any_kind_keeps_words_apart() -> None:
    assert Value("Bitcoin\u00a0falls\tnow\u2028again").text == "Bitcoin falls now again"


def test_source_and_notes_of_a_fact_are_one_printable_line() -> None:
    fact = Fact("price", Value("1"), source="a\x1b[2J\nb", notes=("c\nd",))
    assert printed(facts(fact), width=40) == ["price  1  (a[2J b; c d)"]


def test_a_value_under_its_label_has_the_whole_width() -> None:
    label = "a label of thirty-one characters"
    assert printed(facts((label, "words that fit into one line")), width=40) == [
        label,
        "  words that fit into one line",
    ]


@pytest.mark.parametrize("width", [4, 9, 17])
def test_facts_and_cards_are_no_wider_than_a_narrow_screen(width: int) -> None:
    shown = printed(facts(("a long label", "123456789012345678")), RANGES, width=width)
    assert max(map(count_columns, shown)) <= width


def test_the_head_of_a_card_keeps_its_tone() -> None:
    wide = ("feed", "x" * 30, "y" * 30)
    feeds = table(wide, [(bad("down"), "1", "2"), row("up", "1", "2", tone=Tone.WARN), ("idle", "1", "2")])
    heads = [line[0] for line in layout(document("", feeds), 20) if line[0].text.startswith("feed")]
    assert [head.tone for head in heads] == [Tone.BAD, Tone.WARN, Tone.STRONG]
    cards = to_html(document("", feeds)).split("\n\n")
    assert [card.startswith("⚠ <b>feed") for card in cards] == [True, True, False]


def test_marks_take_no_column() -> None:
    assert [count_columns(text) for text in ("e\u0301", "ก\u0e31", "1\u20e3")] == [1, 1, 1]


def test_an_empty_urgent_line_is_left_out() -> None:
    assert to_html(document("head", urgent=["", "late"])) == "<b>head</b>\n⚠ late"


def test_a_table_without_any_selected_column_is_left_out() -> None:
    whole = document("head", section("Ranges", RANGES), section("Days", table(("day",), [("1",)])))
    assert to_text(select_columns(whole, ("day",)), 40).split("\n") == ["head", "Days", "day", "1"]


def test_a_foreign_headline_stays_foreign_where_it_is_included() -> None:
    (part,) = include(document(foreign("words of a peer"), lines("ours")))
    whole = document("outer", part)
    assert part.title == ""
    assert to_text(whole, 40).split("\n") == ["outer", "words of a peer", "ours"]
    assert "<b>words of a peer</b>" in to_html(whole)


def test_what_rounds_to_zero_has_no_minus() -> None:
    assert (percent(-0.001).text, percent(-0.001, signed=True).text, number(-0.001).text) == (
        "0.00 %",
        "+0.00 %",
        "0.00",
    )
