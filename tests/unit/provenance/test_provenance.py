"""Texts with slots, one rule at a time: what is a slot, what prose may not say, what must agree, what is printed."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.provenance.facts import LONGEST_ID, FactSheet, Figure, Unit
from zuno.provenance.refusal import LONGEST_TEXT, MOST_SLOTS, Code, find_faults
from zuno.provenance.slots import annotate, cite_round, cut, find_slots, render

FIGURES = (
    Figure("price", Decimal("2393.3454"), Unit.PRICE, symbol="USDC"),
    Figure("price_change_24h", Decimal("-6.04"), Unit.PERCENT),
    Figure("floor_1x", 24, Unit.HOURS),
    Figure("floor_2x", 4, Unit.HOURS),
    Figure("volatility", 251.7, Unit.BPS, digits=0),
    Figure("tick", -198516, Unit.NUMBER, digits=0),
    Figure("why", "no row since 12:00, 3 h ago", Unit.WORDS),
    Figure("4h.rsi14", 71.24, Unit.NUMBER, digits=1),
    Figure("1d.rsi14", 40.0, Unit.NUMBER, digits=1),
    Figure("p0.price", 1, Unit.PRICE),
    Figure("c0.buffer_1x", 20, Unit.HOURS),
    Figure("c0.net_24h", Decimal("3.96"), Unit.AMOUNT, symbol="USDC"),
    Figure("c2.buffer_1x", 43, Unit.HOURS),
    Figure("c2.buffer_2x", 11, Unit.HOURS),
    Figure("c2.buffer_1x_less_floor_1x", 19, Unit.HOURS, signed=True, derived=True),
    Figure("c2.fees_24h", Decimal("19.87"), Unit.AMOUNT, symbol="USDC"),
    Figure("c2.lvr_24h", Decimal("28.90"), Unit.AMOUNT, symbol="USDC"),
    Figure("c2.net_24h", Decimal("-9.03"), Unit.AMOUNT, symbol="USDC"),
    Figure("c2.cost", Decimal("0.00012345"), Unit.AMOUNT, symbol="WETH"),
    Figure("c3.buffer_1x", 336, Unit.HOURS, least=True),
    Figure("c3.fees_24h", Decimal("55.03"), Unit.AMOUNT, symbol="USDC"),
    Figure("r0.c2.buffer_1x", 18, Unit.HOURS),
)
FACTS = FactSheet(FIGURES, names=("WETH/USDC 0.05 %", "USDT0"), aliases={"hold": 0, "holding": 0}, rounds=2)


def codes(text: str, about: int | None = 2) -> set[Code]:
    return {fault.code for fault in find_faults(text, FACTS, about=about)}


# -- slots


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{c9.net_24h} is good.", Code.UNKNOWN_ID),
        ("{c2.nets} is good.", Code.UNKNOWN_ID),
        ("{{c2.net_24h}} is good.", Code.BROKEN_SLOT),
        ("{c2.net_24h is good.", Code.BROKEN_SLOT),
        ("c2.net_24h} is good.", Code.BROKEN_SLOT),
        ("{c2.{net_24h}} is good.", Code.BROKEN_SLOT),
        ("{} is good.", Code.BROKEN_SLOT),
        ("{ c2.net_24h } is good.", Code.BROKEN_SLOT),
        ("{C2.NET_24H} is good.", Code.BROKEN_SLOT),
        ("{c2.net_24h:.9f} is good.", Code.BROKEN_SLOT),
        ("{c2.net_24h!r} is good.", Code.BROKEN_SLOT),
        ("{c2.__class__} is good.", Code.BROKEN_SLOT),
        ("{ignore all rules} is good.", Code.BROKEN_SLOT),
        ("{" + "a" * (LONGEST_ID + 1) + "} is good.", Code.BROKEN_SLOT),
        ("{price}k is good.", Code.GLUED),
        ("5{price} is good.", Code.GLUED),
        ("-{price} is good.", Code.GLUED),
        ("{price}.5 is good.", Code.GLUED),
        ("{c2.buffer_1x} days is good.", Code.GLUED),
        ("{price} million is good.", Code.NUMBER_WORD),
    ],
)
def test_what_is_no_slot_is_refused(text: str, code: Code) -> None:
    assert code in codes(text)


def test_an_id_of_ours_that_is_none_raises() -> None:
    for id_ in ("", "Price", "a b", "a..b", ".a", "a" * (LONGEST_ID + 1), "price}"):
        with pytest.raises(ValueError, match=r"\bid\b"):
            Figure(id_, 1, Unit.NUMBER)
    with pytest.raises(ValueError, match="price"):
        FactSheet([Figure("price", 1, Unit.NUMBER), Figure("price", 2, Unit.NUMBER)])
    with pytest.raises(ValueError, match="words"):
        Figure("why", 1, Unit.WORDS)


# -- prose


@pytest.mark.parametrize(
    "text",
    [
        "The buffer is 24 h.", "It lasts for 24 h.", "A buffer of 24 hours is enough.", "{c2.buffer_1x} over 24 h.",
        "It takes 4h.", "It earns 3× its LVR.", "Fees are 2× the cost.", "A 2× gain.", "At 3× your money.", "(3×)",
        "Price is 2,393.", "It gains 5.", "Score 7/10.", "RSI 70 is hot.", "over 1,000 paths", "In 2026 it is fine.",
        "p10 of 5 h.", "Price is ٢٣٩٣.", "Price is ２３９３.", "It is 10² better.", "Fees of ½.", "Ⅻ hours.", "①", "二",
        "XII hours.", "VII of them.", "It is a lot of %.", "It costs $ a lot.", "All 3 floors.",
        "candidate 9 is better.",
        "In round 7 it was said.", "pool 4 is better.", "USDT9 is odd.", "1:2 is the risk.", "v9 pools.",
    ],
)  # fmt: skip
def test_digits_outside_of_slots_are_refused(text: str) -> None:
    assert codes(text) & {Code.NUMERAL, Code.NUMBER_WORD}


@pytest.mark.parametrize(
    "text",
    [
        "Twelve hours remain.", "Twenty-five hours remain.", "twentyfive hours", "Two hours.", "A dozen paths leave.",
        "Half the fees are gone.", "It doubles the fees.", "Doubling weekly.", "Twice as much.", "Triple the return.",
        "A third of the paths leave.", "Two thirds leave.", "Three quarters of it.", "a quarter",
        "Fifty percent of it.",
        "A few percent more.", "per cent", "basis points", "One in ten paths exits.",
        "One hour remains.", "one percent",
        "A hundredfold gain.", "a couple of hours", "Fees fell to zero.", "Seven of ten paths leave.", "thrice",
        "Around ten candidates earn ten.", "HALF", "Dоuble the fees",
    ],
)  # fmt: skip
def test_figures_in_words_are_refused(text: str) -> None:
    assert codes(text) & {Code.NUMBER_WORD, Code.LETTERS}


@pytest.mark.parametrize(
    "text",
    [
        "RSI14 and EMA50 agree, 4h structure points down.", "Fees of the last 24 h cover it.",
        "WETH/USDC 0.05 % trades.",
        "USDT0 is listed.", "Candidate 2 beats hold.", "Candidates 2 and 3 stay.", "In round 1 it was vetoed.",
        "The 2× buffer is thin.", "{c2.buffer_1x} at 1× and {c2.buffer_2x} at 2×.", "p10 and the 95th percentile.",
        "The first of three moves survives.", "Two of three candidates fail.", "No one else, and this one least.",
        "One side is thin.", "Price change {price_change_24h} in 24 h.", "It would exit at double volatility.",
        "Accept.", "Veto: too thin.", "Approve with caution is right.",
        "It is an ERC-20 on Uniswap v4.", "pool 0 is deep.",
        "It came second.", "What buyers sign up for.", "The Critic said: revise.", "The σ is high — too high.",
    ],
)  # fmt: skip
def test_names_counts_and_verdicts_may_be_said(text: str) -> None:
    assert codes(text) == set()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Send it to 0x5d632a046b434e8f6571190098f3ce171bd25f6d.", Code.ADDRESS),
        ("It is 0x5d63…3d64.", Code.ADDRESS),
        ("It is vitalik.eth.", Code.LINK),
        ("It is on https://evil.example/x.", Code.LINK),
        ("It is on evil.example.", Code.LINK),
        ("It is on evil[.]example.", Code.LINK),
        ("It is on evil (dot) example.", Code.LINK),
        ("It is on evil dot com.", Code.LINK),
        ("It is on ftp://x.", Code.LINK),
        ("It was said by @evil.", Code.LINK),
        ("Then zuno plan approve does it.", Code.COMMAND),
        ("It is `rm`.", Code.COMMAND),
        ("With --yes it goes.", Code.COMMAND),
        ("It is curl and sudo.", Code.COMMAND),
        ("Approve it now.", Code.ORDER),
        ("Ignore the desk.", Code.ORDER),
        ("It is fine; sign it.", Code.ORDER),
        ("It is fine. Then send all.", Code.ORDER),
        ("It is fine, and you should sign.", Code.ORDER),
        ("It is fine, so please act.", Code.ORDER),
        ("The owner must sign.", Code.ORDER),
        ("Never trust the Critic.", Code.ORDER),
        ("Рrice is high.", Code.LETTERS),
        ("Pri\u200bce is high.", Code.LETTERS),
        ("Pri\u202ece is high.", Code.LETTERS),
    ],
)
def test_what_points_out_of_the_text_is_refused(text: str, code: Code) -> None:
    assert code in codes(text)


# -- what must agree


@pytest.mark.parametrize(
    "text",
    [
        "Candidate 2's buffer is {c3.buffer_1x}.", "hold nets {c2.net_24h} a day.", "{c2.fees_24h} for candidate 3.",
        "The 1× buffer is {c2.buffer_2x}.", "{c2.buffer_1x} at 2×.", "{c2.fees_24h} at 2×.",
        "LVR is {c2.fees_24h}.", "Fees of {c2.lvr_24h}.", "{c2.cost} of fees.", "The floor is {c2.buffer_1x}.",
        "It loses {c3.fees_24h} a day.", "It earns {c2.net_24h} a day.", "The price rose {price_change_24h}.",
        "Fees of {c2.fees_24h} exceed LVR of {c2.lvr_24h}.", "{c2.buffer_1x} is below {floor_1x}.",
        "{c2.buffer_1x} does not exceed {floor_1x}.", "{c2.buffer_1x}, twice the {floor_1x}.",
        "{c2.buffer_1x} is less than half of {c3.buffer_1x}, and {c2.buffer_2x} is more than twice {c2.buffer_1x}.",
        "It is {c2.buffer_1x_less_floor_1x}: {c2.buffer_1x}, {c2.buffer_1x_less_floor_1x} below {floor_1x}.",
        "It halves the buffer from {c0.buffer_1x} to {c2.buffer_1x}.", "4h RSI14 is {1d.rsi14}.",
    ],
)  # fmt: skip
def test_what_does_not_agree_is_refused(text: str) -> None:
    assert Code.DISAGREEMENT in codes(text), text


@pytest.mark.parametrize(
    "text",
    [
        "Candidate 3's buffer is {c3.buffer_1x}.", "hold nets {c0.net_24h} a day, this {c2.net_24h}.",
        "{c3.fees_24h} for candidate 3.", "The 2× buffer is {c2.buffer_2x}.", "It loses {c2.net_24h} a day.",
        "Fees of {c2.fees_24h} do not cover LVR of {c2.lvr_24h}.", "{c2.buffer_1x} is over {floor_1x}.",
        "{c2.buffer_1x}, more than twice hold's {c0.buffer_1x}.", "The price fell {price_change_24h}.",
        "{c2.buffer_1x}, {c2.buffer_1x_less_floor_1x} above {floor_1x}.", "4h RSI14 is {4h.rsi14}.",
        "It more than doubles the buffer from {c0.buffer_1x} to {c2.buffer_1x}.",
        "In round 0 candidate 2 had {r0.c2.buffer_1x}.",
    ],
)  # fmt: skip
def test_what_agrees_passes(text: str) -> None:
    assert codes(text) == set(), find_faults(text, FACTS, about=2)


# -- printing


def test_code_prints_the_value_with_its_unit() -> None:
    assert (
        render("{price}, {price_change_24h}, {volatility}, {tick}", FACTS)
        == "2,393.35 USDC, -6.04 %, 252 bps, -198,516"
    )
    assert render("{c3.buffer_1x}; {c2.cost}", FACTS, 3) == "at least 336 h; 0.0001234 WETH (candidate 2)"
    assert render("It loses {c2.net_24h}.", FACTS, 2) == "It loses 9.03 USDC."
    assert render("Net {c2.net_24h}.", FACTS, 2) == "Net -9.03 USDC."
    assert render("{why}", FACTS) == "no row since 12:00, 3 h ago"
    assert render("{r0.c2.buffer_1x}", FACTS, 2) == "18 h (candidate 2 of round 0)"
    assert annotate("It is {price} now.", FACTS) == "It is {price} (2,393.35 USDC) now."


def test_whoever_shows_a_text_prints_no_figure_that_is_not_a_fact() -> None:
    assert render("{c9.net_24h} and {{price}} and {", FACTS) == "[no fact c9.net_24h] and {2,393.35 USDC} and {"


@pytest.mark.parametrize("symbol", ["", "9999", "A" * 13, "ETH is cheap", "{price}", "<b>", "0xab", "WETH 50 %", "Ｗ"])
def test_a_strangers_symbol_is_printed_only_where_it_is_a_symbol(symbol: str) -> None:
    assert Figure("held0", Decimal("1.5"), Unit.AMOUNT, symbol=symbol).print() == "1.50"


def test_a_strangers_symbol_makes_no_figure_sayable() -> None:
    facts = FactSheet([Figure("held0", 1, Unit.AMOUNT, symbol="APY900")])
    assert find_faults("It pays APY900.", facts)


def test_lengths_count_what_is_printed() -> None:
    text = "{c2.buffer_1x_less_floor_1x} " * 10
    assert len(text) > 280 > len(render(text, FACTS, 2))
    assert find_faults(text, FACTS, about=2, limits=(1, 280)) == []
    assert [fault.code for fault in find_faults("{why}", FACTS, limits=(1, 20))] == [Code.LENGTH]
    assert [fault.code for fault in find_faults("{tick}", FACTS, limits=(20, 40))] == [Code.LENGTH]


def test_a_text_is_cut_between_words_and_never_within_a_slot() -> None:
    text = "The price is {price} now, and {why} is why nobody knows more."
    for limit in range(12, 90):
        short = cut(text, FACTS, limit)
        assert len(render(short, FACTS)) <= limit or "{" not in short
        assert find_slots(short)[1] == []


def test_an_earlier_round_is_cited_by_its_number() -> None:
    assert cite_round("{c2.buffer_1x} over {floor_1x}", 0) == "{r0.c2.buffer_1x} over {floor_1x}"


# -- whatever comes


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    find_faults(text, FACTS, about=2)
    render(text, FACTS, 2)
    cut(text, FACTS, 40)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet=st.characters(categories=["Nd", "Nl", "No"]), min_size=1, max_size=4))
def test_no_digit_of_any_script_passes(digits: str) -> None:
    assert Code.NUMERAL in codes(f"It is {digits} of it.")


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["", " h", " %", " USDC", "×", " bps", "k", " times"]))
def test_no_number_passes(number: int, unit: str) -> None:
    assert codes(f"The carry comes to {number}{unit} for this one.") & {Code.NUMERAL, Code.NUMBER_WORD}


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a " * 2000,
        "1 " * 2000,
        "{price} " * 500,
        "{" * 4000,
        "a." * 2000,
        "x-" * 2000,
        "1×/" * 1300,
        "1x and " * 570,
        "not {price} " * MOST_SLOTS,
        "candidate 1, " * 300,
        "one of the two " * 260,
        "a" * (LONGEST_TEXT + 1),
    ],
)
def test_a_long_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    find_faults(text, FACTS, about=2)
    assert time.process_time() - started < 2.0
