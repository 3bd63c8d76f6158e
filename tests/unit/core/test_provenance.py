"""Figures in prose, one rule at a time: how they are read, what claims nothing, what backs them and what does not."""

from __future__ import annotations

import random
import time
import unicodedata
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from zuno.core.provenance.check import NEWS_ALONE, NEWS_PRICED, NO_FACT, NO_ID, Facts, check
from zuno.core.provenance.figures import LONGEST_NAMED, MOST_NAMED, Checked, Derivation, Figure, Measure, Unit
from zuno.core.provenance.naming import parsed
from zuno.core.provenance.numerals import numerals
from zuno.core.provenance.plain import plain
from zuno.core.provenance.reading import MOST_FIGURES, read

POOL = "0x5d632a046b434e8f6571190098f3ce171bd25f6d41f24c9df92adeaeca313d64"
PLAN = "plan_0123456789ab"


def figure(name: str, value: str, unit: Unit, **more: object) -> Figure:
    return Figure(name, Decimal(value), unit, "test", **more)  # type: ignore[arg-type]


FIGURES = (
    figure("price", "2393.35", Unit.PRICE, symbol="USDC"),
    figure("reference price", "2394.21", Unit.PRICE, symbol="USDC"),
    figure("lower price", "2368.5", Unit.PRICE, symbol="USDC"),
    figure("upper price", "2659.81", Unit.PRICE, symbol="USDC"),
    figure("tick", "-198516", Unit.TICK),
    figure("lower tick", "-198620", Unit.TICK),
    figure("upper tick", "-197460", Unit.TICK),
    figure("price change 24h", "-6.04", Unit.PERCENT),
    figure("realised volatility", "251.7", Unit.BPS),
    figure("fee tier", "500", Unit.PIPS),
    figure("buffer 1×", "43.2", Unit.HOURS),
    figure("buffer 2×", "11.4", Unit.HOURS),
    figure("floor 1×", "24", Unit.HOURS),
    figure("floor 2×", "4", Unit.HOURS),
    figure("exit probability 1×", "28.37", Unit.PERCENT),
    figure("width multiplier", "1.4", Unit.RATIO),
    figure("fees 24h", "19.87", Unit.AMOUNT, symbol="USDC", per_day=1),
    figure("LVR 24h", "13.02", Unit.AMOUNT, symbol="USDC"),
    figure("net carry 24h", "6.85", Unit.AMOUNT, symbol="USDC"),
    figure("cost", "12.61", Unit.AMOUNT, symbol="USDC"),
    figure("position worth", "19945.34", Unit.AMOUNT, symbol="USDC"),
    figure("holds WETH", "7.26862", Unit.AMOUNT, symbol="WETH"),
    figure("pool liquidity", "3512000", Unit.AMOUNT, symbol="USDC"),
    figure("liquidity", "6916620035728586", Unit.COUNT),
    figure("gas price", "2.04", Unit.GWEI),
    figure("price age", "97", Unit.SECONDS),
    figure("block", "19730412", Unit.BLOCK),
    figure("hourly returns", "719", Unit.COUNT),
    figure("funding rate", "0.0113", Unit.PERCENT, per_day=3),
    figure("RSI14 1h", "71.24", Unit.COUNT),
    Figure("rate cut odds", Decimal(63), Unit.PERCENT, "Harbour Wire", news=True),
    Figure("analyst target", Decimal(95000), Unit.PRICE, "Harbour Wire", news=True, symbol="USD"),
)
FACTS = Facts(FIGURES, (POOL, PLAN))


def checked(text: str) -> Checked:
    return check(text, FACTS)


def offending(text: str) -> list[str]:
    return [claim.text for claim in checked(text).unsupported]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value", "last"),
    [
        ("2393", "2393", "1"),
        ("2,393.35", "2393.35", "0.01"),
        ("1,234,567", "1234567", "1"),
        ("2'393.5", "2393.5", "0.1"),
        ("1_000", "1000", "1"),
        ("2\u202f393", "2393", "1"),
        ("2.393,35", "2393.35", "0.01"),
        ("1.234.567", "1234567", "1"),
        ("0,05", "0.05", "0.01"),
        ("1,5", "1.5", "0.1"),
        (".5", "0.5", "0.1"),
        ("6.9e15", "6.9e15", "1e14"),
        ("5e-4", "0.0005", "0.0001"),
    ],
)
def test_numbers_are_read_exactly_with_the_place_of_their_last_digit(text: str, value: str, last: str) -> None:
    found = numerals(text)
    assert found is not None
    assert [(one.value, one.unit_in_last_place) for one in found] == [(Fraction(value), Fraction(last))]


@pytest.mark.parametrize(("text", "values"), [("12,26,9", [12, 26, 9]), ("198620,197460", [198620, 197460])])
def test_a_list_is_not_a_number(text: str, values: list[int]) -> None:
    found = numerals(text, 7)
    assert found is not None
    assert [one.value for one in found] == values
    assert [text[one.start - 7 : one.end - 7] for one in found] == [str(value) for value in values]


@pytest.mark.parametrize("text", ["1.2.3", "9" * 61, "1e999", "12,34.5.6"])
def test_what_no_one_can_read_is_not_guessed(text: str) -> None:
    assert numerals(text) is None
    assert offending(f"It is {text}.") == [text]


@pytest.mark.parametrize(
    ("text", "measure", "value"),
    [
        ("12 %", Measure.SHARE, "0.12"),
        ("12%", Measure.SHARE, "0.12"),
        ("12 percent", Measure.SHARE, "0.12"),
        ("12 per cent", Measure.SHARE, "0.12"),
        ("12 percentage points", Measure.SHARE, "0.12"),
        ("45bps", Measure.SHARE, "0.0045"),
        ("45 basis points", Measure.SHARE, "0.0045"),
        ("500 pips", Measure.SHARE, "0.0005"),
        ("1.4×", Measure.SHARE, "1.4"),
        ("1.4x", Measure.SHARE, "1.4"),
        ("1.4 times", Measure.SHARE, "1.4"),
        ("43.2 h", Measure.TIME, "43.2"),
        ("43.2-hour", Measure.TIME, "43.2"),
        ("13 more hours", Measure.TIME, "13"),
        ("90 minutes", Measure.TIME, "1.5"),
        ("1.5 days", Measure.TIME, "36"),
        ("97 s", Measure.TIME, "97/3600"),
        ("$2,393", Measure.MONEY, "2393"),
        ("1.2k USDC", Measure.MONEY, "1200"),
        ("3.5M USDC", Measure.MONEY, "3500000"),
        ("3.5 million dollars", Measure.MONEY, "3500000"),
        ("12 ARB", Measure.MONEY, "12"),
        ("tick 198516", Measure.TICK, "198516"),
        ("1,160 ticks", Measure.TICK, "1160"),
        ("2.04 gwei", Measure.GAS, "2.04"),
        ("block 19730412", Measure.BLOCK, "19730412"),
        ("1.2k", None, "1200"),
        ("6.9×10^15", None, "6.9e15"),
        ("6.9·10¹⁵", None, "6.9e15"),
        ("5×10⁻⁴", None, "0.0005"),
        ("٢٣٩٣", None, "2393"),
        ("２３９３．５", None, "2393.5"),
        ("twenty-four hours", Measure.TIME, "24"),
        ("two hundred and forty USDC", Measure.MONEY, "240"),
        ("eleven", None, "11"),
    ],
)
def test_units_and_scales_are_understood(text: str, measure: Measure | None, value: str) -> None:
    found = read(f"It was {text}, we think.")
    assert [(one.readings[0].measure, one.readings[0].value) for one in found.claims] == [(measure, Fraction(value))]
    assert found.unreadable == []


@pytest.mark.parametrize(
    ("text", "tolerance"), [("2,393", "0.5"), ("2,393.4", "0.05"), ("1.2k", "50"), ("2,400", "0.5"), ("3.5M", "50000")]
)
def test_the_tolerance_is_half_the_last_printed_digit(text: str, tolerance: str) -> None:
    assert read(f"at {text}.").claims[0].readings[0].tolerance == Fraction(tolerance)


def test_a_hedge_makes_trailing_zeros_a_rounding_within_reason() -> None:
    assert read("about 2,390").claims[0].readings[0].tolerance == 5
    assert read("~2,400").claims[0].readings[0].tolerance == 48  # not 50: a fiftieth at most
    assert read("about 4,000").claims[0].readings[0].tolerance == 80
    assert checked("It trades at about 2,400 USDC.").ok
    assert offending("It trades at 2,400 USDC.") == ["2,400 USDC"]


def test_lower_case_m_is_minutes_or_millions() -> None:
    assert [one.value for one in read("15m").claims[0].readings] == [Fraction(1, 4), 15_000_000]


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("-5 %", ["-"]),
        ("−5 %", ["-"]),
        ("(–5 %)", ["-"]),
        ("+5 %", ["+"]),
        ("±5 %", ["±"]),
        ("-$50", ["-"]),
        ("is minus 50", ["-"]),
        ("20 minus 15 USDC", ["", ""]),
        ("2,368–2,660", ["", ""]),
        ("2,368 – 2,660", ["", ""]),
        ("-198620 to -197460", ["-", "-"]),
        ("sub-50 bps", [""]),
    ],
)
def test_a_dash_is_a_sign_or_a_range(text: str, signs: list[str]) -> None:
    assert [claim.sign for claim in read(text).claims] == signs


def test_the_ends_of_a_range_share_the_unit_one_of_them_shows() -> None:
    for text in ("12–15 %", "12 to 15 %", "12-15%"):
        assert {claim.readings[0].measure for claim in read(text).claims} == {Measure.SHARE}
    assert [claim.readings[0].symbol for claim in read("$2,368–2,660").claims] == ["USD", "USD"]
    assert [claim.readings[0].value for claim in read("12–15k").claims] == [12_000, 15_000]


def test_claims_know_their_place_in_the_text_as_it_was_written() -> None:
    text = "½ of it: 9\u200b9 %, tick −198 516 and ２３ h"
    for claim in (*read(text).claims, *read(text).unreadable):
        assert text[claim.start : claim.end] == claim.text
    assert [claim.text for claim in read(text).claims] == ["9\u200b9 %", "−198 516"[:4], "516", "２３ h"]


def test_plain_text_keeps_every_place() -> None:
    shown, places = plain("a\u200b①²½\u00ad９")
    assert places is not None
    assert (shown, places) == ("a\ufffc^2\ufffc9", [0, 2, 3, 3, 4, 6])
    assert plain("2,393.35 USDC") == ("2,393.35 USDC", None)


# ── what claims nothing ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "RSI14 and EMA200 agree",
        "RSI(14), MACD(12,26,9) and MACD (12, 26, 9)",
        "the EMA 50 is over the 200 EMA",
        "EMA50/200 crossed",
        "the 200-day moving average and a 14-period RSI",
        "RSI-14 turned",
        "on the 4h and the 1d chart",
        "over 24 h, in the last 7 days, per 24 hours",
        "24h fees against 24h LVR",
        "P(exit) within 24 h",
        "since 2026-10-04, at 14:30 UTC on 12 October, October 12th, 2026, and in 2024",
        "2026-10-04T12:00:00Z",
        "the 1st and the 22nd, above the 95th percentile",
        "candidate 4 beat 3 of 5 in round 2",
        "three candidates, ten feeds",
        "at 2× the buffer holds; the 3× case and 1×/2×/3×",
        "Uniswap v4, ERC20, EIP-1559 and p10 on an L2",
        "σ² of it",
        "three times a day",
    ],
)
def test_these_digits_claim_nothing(text: str) -> None:
    assert check(text, Facts(())).unsupported == ()


@pytest.mark.parametrize(
    ("text", "offends"),
    [
        ("RSI (71) is high", ["71"]),
        ("RSI 71", ["71"]),
        ("EMA 2393", ["2393"]),
        ("a 31 h window", ["31 h"]),
        ("the buffer is 24 h", ["24 h"]),
        ("a 48h buffer", ["48h"]),
        ("it breaks even in 24 h", ["24 h"]),
        ("the 97th percentile", ["97th"]),
        ("11 candidates", ["11"]),
        ("7 %", ["7 %"]),
        ("7 h", ["7 h"]),
        ("price 7", ["7"]),
        ("a tick of 9", ["9"]),
        ("fees are 2× LVR", ["2×"]),
        ("it costs 2024 USDC", ["2024 USDC"]),
        ("at 2024", ["2024"]),
        ("price2400", ["price2400"]),
        ("2400abc", ["2400abc"]),
        ("½ of it", ["½"]),
        ("二十 percent", ["二", "十"]),
        ("Ⅻ hours", ["Ⅻ"]),
        ("thirty percent", ["thirty percent"]),
        ("2^256", ["256"]),
        ("9 hundred USDC", ["9 hundred USDC"]),
        ("a dozen ETH", ["dozen ETH"]),
        ("a hundred dollars", ["hundred dollars"]),
        ("it stays 48h", ["48h"]),
        ("2 395 USDC", ["395 USDC"]),
        ("2O95", ["2O95"]),
        ("MACD(12,26,9,77)", ["77"]),
    ],
)
def test_these_do(text: str, offends: list[str]) -> None:
    assert [claim.text for claim in check(text, Facts(())).unsupported] == offends


# ── facts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "Price 2,393.35, or 2393.4, or 2,393, or 2.39k, $2.4k, or about 2,400 USDC.",
        "The fee is 0.05 %, 5 bps, 500 pips or 0.0005.",
        "Volatility of 2.517 %, 2.5 %, 252 bps.",
        "43 h, 43.2 hours, 1.8 days, 2,592 minutes.",
        "Age 97 seconds, 1.6 minutes, 0.027 h.",
        "Ticks -198620 to −197460; now -198516.",
        "Range 2,368–2,660 and [2,368.5, 2,659.81].",
        "L is 6.9e15, 6.92×10^15, 6,916,620,035,728,586.",
        "It fell 6 %, is down 6.04 %, at -6.0 %.",
        "P(exit) of 0.28, that is 28 %.",
        "7.27 WETH or 7.269 ETH; 3.5M USDC.",
        "Width 1.4×, 1.4x, 140 %.",
        "Block 19,730,412 and 719 returns, RSI14 at 71.",
    ],
)
def test_a_fact_may_be_printed_as_people_print_it(text: str) -> None:
    assert offending(text) == []


@pytest.mark.parametrize(
    ("text", "offends"),
    [
        ("Price 2,395.", ["2,395"]),
        ("Price 2,393.40.", ["2,393.40"]),
        ("24 % of it", ["24 %"]),  # 24 is hours
        ("43.2 USDC", ["43.2 USDC"]),
        ("7.27 USDC", ["7.27 USDC"]),
        ("19,945 WETH", ["19,945 WETH"]),
        ("19,945 ARB", ["19,945 ARB"]),
        ("5 %, for 5 bps", ["5 %"]),
        ("tick 198516", ["tick 198516"[5:]]),
        ("+6.04 %", ["+6.04 %"]),
        ("It rose 6.04 %.", ["6.04 %"]),
        ("a change of 6.04 %", ["6.04 %"]),
        ("-2,393 USDC", ["-2,393 USDC"]),
        ("0.28 of something", ["0.28"]),
        ("£2,393", ["£2,393"]),
        ("2.0k", ["2.0k"]),
    ],
)
def test_but_not_bent(text: str, offends: list[str]) -> None:
    assert offending(text) == offends


def test_a_backing_names_its_fact() -> None:
    (backing,) = checked("Spot is 2,393.4 USDC.").supported
    assert backing.derivation is Derivation.FACT
    assert [fact.name for fact in backing.facts] == ["price"]
    assert backing.claim.text == "2,393.4 USDC"
    assert backing.claim.readings[0].tolerance == Fraction(1, 20)


# ── two facts ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "derivation", "names"),
    [
        ("The price is 1.05 % above the lower edge.", Derivation.CHANGE, ["price", "lower price"]),
        ("The price is 24.85 USDC above the lower edge.", Derivation.DIFFERENCE, ["price", "lower price"]),
        ("The range is 1,160 ticks wide.", Derivation.DIFFERENCE, ["upper tick", "lower tick"]),
        ("The range is 12.3 % wide.", Derivation.CHANGE, ["upper price", "lower price"]),
        ("The 1× buffer is 1.8× the floor.", Derivation.RATIO, ["buffer 1×", "floor 1×"]),
        ("The 1× buffer is 180 % of the floor.", Derivation.RATIO, ["buffer 1×", "floor 1×"]),
        ("The 2× buffer clears its floor by 7.4 h.", Derivation.DIFFERENCE, ["buffer 2×", "floor 2×"]),
        ("Fees are 53 % above LVR.", Derivation.CHANGE, ["fees 24h", "LVR 24h"]),
        ("The cost is 63 % of a day's fees.", Derivation.RATIO, ["cost", "fees 24h"]),
        ("Funding is 12.4 % annualised.", Derivation.ANNUAL, ["funding rate"]),
        ("Fees come to 7,253 USDC a year.", Derivation.ANNUAL, ["fees 24h"]),
        ("Cost 12.61 USDC is 0.63 days of fees.", Derivation.RATIO, ["cost", "fees 24h"]),
    ],
)
def test_what_follows_from_two_facts_the_text_names(text: str, derivation: Derivation, names: list[str]) -> None:
    found = checked(text)
    assert found.unsupported == ()
    derived = [backing for backing in found.supported if backing.derivation is not Derivation.FACT]
    assert [(one.derivation, sorted(fact.name for fact in one.facts)) for one in derived] == [
        (derivation, sorted(names))
    ]


@pytest.mark.parametrize(
    ("text", "offends"),
    [
        ("It is 1.05 % above.", "1.05 %"),  # above what?
        ("The price is 1.05 h above the lower edge.", "1.05 h"),
        ("The range is 1,160 USDC wide.", "1,160 USDC"),
        ("The 1× buffer is 10.8× the floor.", "10.8×"),  # 43.2 / 4: another floor
        ("At 1× and 2× the buffer is 10.8× the floor.", "10.8×"),  # no one holds the 1× buffer against the 2× floor
        ("The fees are 53 %, LVR is lost.", "53 %"),  # nothing compared
        ("The price is above the lower edge, at 1.05 %.", "1.05 %"),
        ("The buffer beats the 19.2 h floor.", "19.2 h"),  # 43.2 − 24, said of the floor
        ("The buffer clears a floor of 19.2 h.", "19.2 h"),
        ("The 1× buffer: 1.8×, says the floor.", "1.8×"),
        ("Funding is 12.4 %.", "12.4 %"),  # no word of a year
        ("The price and the buffer are 55.4 apart.", "55.4"),  # no kind in common
        ("Between block and tick lie 19,928,928.", "19,928,928"),
        ("Fees plus LVR are 32.89 USDC above zero.", "32.89 USDC"),  # a+b is no derivation
        ("The margin over the floor is 0.00 h.", "0.00 h"),  # zero follows from anything small
    ],
)
def test_what_does_not(text: str, offends: str) -> None:
    assert offending(text) == [offends]


def test_a_sign_written_on_a_derived_figure_is_held_to_it() -> None:
    assert checked("The buffer is at +19.2 h against the floor.").ok
    assert offending("The buffer is at −19.2 h against the floor.") == ["−19.2 h"]


def test_facts_of_one_candidate_do_not_back_another_unmentioned_one() -> None:
    facts = Facts(
        [
            figure("fees 24h", "20", Unit.AMOUNT, symbol="USDC", about="candidate 2"),
            figure("fees 24h", "31", Unit.AMOUNT, symbol="USDC", about="candidate 3"),
        ]
    )
    assert check("Candidate 3 makes 11 USDC more fees.", facts, "candidate 2").ok
    assert not check("It makes 11 USDC more fees.", facts, "candidate 2").ok
    apart = Facts([facts.figures[0], figure("LVR 24h", "31", Unit.AMOUNT, symbol="USDC", about="candidate 3")])
    assert not check("Candidate 3's LVR is 11 USDC above the fees.", apart, "candidate 2").ok


# ── what a figure is said of ──────────────────────────────────────────────────────────────────────────────────────

BALLOT = Facts(
    [
        *(
            figure(name, value, unit, about=f"candidate {index}", symbol="USDC" if unit is Unit.AMOUNT else "")
            for index, values in {
                0: ("9", "3", "40", "31", "9", "0"),
                2: ("27", "7", "75", "60", "15", "12.5"),
                3: ("45", "11", "102", "74.84", "27.16", "14"),
                4: ("13", "4.5", "61", "80.5", "-19.5", "13.5"),
            }.items()
            for (name, unit), value in zip(
                (
                    ("buffer 1×", Unit.HOURS),
                    ("buffer 2×", Unit.HOURS),
                    ("fees 24h", Unit.AMOUNT),
                    ("LVR 24h", Unit.AMOUNT),
                    ("net carry 24h", Unit.AMOUNT),
                    ("cost", Unit.AMOUNT),
                ),
                values,
                strict=True,
            )
        ),
        figure("upper price", "2500", Unit.PRICE, symbol="USDC", about="candidate 3"),
        figure("tenth percentile exit 1×", "10", Unit.HOURS, about="candidate 3"),
        figure("price", "2393.35", Unit.PRICE, symbol="USDC"),
        figure("floor 1×", "24", Unit.HOURS),
        figure("floor 2×", "4", Unit.HOURS),
    ],
    baseline="candidate 0",
    called={"candidate 4": frozenset({"tighten"})},
)
CANDIDATE_2, CANDIDATE_3, NOBODY = "candidate 2", "candidate 3", ""


@pytest.mark.parametrize(
    ("about", "said", "false", "offends"),
    [
        # whose
        (NOBODY, "Candidate 3's 1x buffer is 45 h.", "Candidate 2's 1x buffer is 45 h.", "45 h"),
        (NOBODY, "Candidate 3 earns 102 USDC a day.", "Candidate 4 earns 102 USDC a day.", "102 USDC"),
        (NOBODY, "It lasts 45 h for candidate 3.", "It lasts 45 h for candidate 2.", "45 h"),
        (NOBODY, "Candidates 2 and 3 last 27 h and 45 h.", "Option 2 lasts 45 h.", "45 h"),
        (CANDIDATE_3, "It lasts 45 h.", "It lasts 27 h.", "27 h"),
        (CANDIDATE_3, "Candidate 2 lasts 27 h, but this one 45 h.", "Candidate 2 lasts 45 h.", "45 h"),
        (CANDIDATE_3, "It lasts 45 h, hold 9 h.", "It lasts 9 h.", "9 h"),
        (CANDIDATE_3, "The tighten lasts 13 h.", "The widen lasts 13 h.", "13 h"),
        (CANDIDATE_3, "Candidate 2 beats it. It lasts 27 h.", "It lasts 27 h, they say.", "27 h"),
        # what
        (CANDIDATE_2, "LVR is 60 USDC.", "LVR is 75 USDC.", "75 USDC"),
        (CANDIDATE_2, "Fees of 75 USDC.", "Fees of 60 USDC.", "60 USDC"),
        (CANDIDATE_2, "It pays 60 USDC a day of LVR.", "It pays 75 USDC a day of LVR.", "75 USDC"),
        (CANDIDATE_2, "A cost of only 12.5 USDC.", "A cost of only 15 USDC.", "15 USDC"),
        (CANDIDATE_3, "The 1× floor is 24 h.", "The 1× floor is 45 h.", "45 h"),
        (CANDIDATE_3, "The tenth percentile exit is 10 h.", "The 1× floor is 10 h.", "10 h"),
        (CANDIDATE_3, "A 45 h buffer.", "A 10 h buffer.", "10 h"),
        (CANDIDATE_3, "The price is 2393.35.", "The price is 2500.", "2500"),
        (CANDIDATE_3, "The upper price is 2500.", "The price is about 2500.", "2500"),
        # under what
        (CANDIDATE_3, "The 2× floor is 4 h.", "The 2× floor is 24 h.", "24 h"),
        (CANDIDATE_3, "It has 11 h at 2×.", "It has 45 h at 2×.", "45 h"),
        (CANDIDATE_3, "The buffer at 2× is 11 h.", "The buffer under 2× is 45 h.", "45 h"),
        # which way
        (CANDIDATE_3, "It earns 27.16 USDC a day.", "It loses 27.16 USDC a day.", "27.16 USDC"),
        ("candidate 4", "It loses 19.5 USDC a day.", "It earns 19.5 USDC a day.", "19.5 USDC"),
        (CANDIDATE_3, "Earns 102 USDC, loses 74.84 USDC to LVR.", "A loss of 27.16 USDC.", "27.16 USDC"),
    ],
)
def test_a_figure_belongs_to_what_it_is_said_of(about: str, said: str, false: str, offends: str) -> None:
    assert check(said, BALLOT, about).complaint == ""
    assert [claim.text for claim in check(false, BALLOT, about).unsupported] == [offends]


def test_who_weighs_all_may_mean_others_unnamed_but_not_misname_them() -> None:
    assert check("The widest lasts 45 h.", BALLOT, CANDIDATE_2, others=True).ok
    assert check("In round 0 the axis was 45 h.", BALLOT, CANDIDATE_2, others=True).ok
    assert not check("In round 0 the axis was 45 h.", BALLOT, CANDIDATE_2).ok
    assert not check("Candidate 2 has 45 h.", BALLOT, CANDIDATE_2, others=True).ok


def test_the_complaint_says_whose_a_misplaced_figure_is() -> None:
    (claim,) = check("Candidate 2 lasts 45 h.", BALLOT).unsupported
    assert claim.problem.endswith("it is the buffer 1× of candidate 3")


@pytest.mark.parametrize(
    ("name", "words", "stress"),
    [
        ("lower price", {"lower"}, 0),
        ("lowerPrice", {"lower"}, 0),
        ("price_upper", {"upper"}, 0),
        ("buffer 2×", {"buffer"}, 2),
        ("x3.medianHours", {"median"}, 3),
        ("p10 1x", {"p10"}, 1),
        ("fees24h", {"fees"}, 0),
        ("price", {"price"}, 0),
        ("75th percentile of volatility", {"75th", "percentile", "volatility"}, 0),
    ],
)
def test_names_are_read_in_any_spelling(name: str, words: set[str], stress: int) -> None:
    assert (set(parsed(name).words), parsed(name).stress) == (words, stress)


# ── news and ids ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_news_counts_beside_its_source_only() -> None:
    assert checked("Harbour Wire sees 63 % odds.").ok
    assert checked("The odds are 63 % (harbour wire).").ok
    apart = checked("Harbour Wire writes. The odds are 63 %.")
    assert [claim.problem for claim in apart.unsupported] == [NEWS_ALONE]
    assert [claim.problem for claim in checked("The odds are 63 %.").unsupported] == [NEWS_ALONE]


def test_news_never_backs_a_price_or_a_size() -> None:
    for text in ("Harbour Wire: $95,000", "Harbour Wire: 95,000", "Harbour Wire: 95k USDC"):
        assert [claim.problem for claim in checked(text).unsupported] == [NEWS_PRICED]
    sizes = Facts([Figure("inflow", 812, Unit.AMOUNT, "Harbour Wire", news=True)])
    assert not check("Harbour Wire: 812", sizes).ok


def test_news_is_no_end_of_a_derivation() -> None:
    facts = Facts([Figure("odds", 63, Unit.PERCENT, "Wire", news=True), figure("odds floor", "60", Unit.PERCENT)])
    assert not check("Wire: odds 5 % above the odds floor", facts).ok


def test_an_address_or_id_must_be_one_of_the_context() -> None:
    for known in (POOL, POOL.upper().replace("0X", "0x"), "0x5d63…3d64", "0x5d632a0...", "0x5d63..3d64", PLAN):
        assert checked(f"Pool {known} it is.").ok, known
    for foreign in ("0x" + "ab" * 20, POOL[:-1] + "5", "0x5d63…3d65", "0x5…", "plan_ffffffffffff", "0xdead"):
        assert [claim.problem for claim in checked(f"Pay {foreign} now").unsupported] == [NO_ID], foreign
    assert not checked("Pay 39dde55bf9d7add0a554ed9e2fc6a23c72f2519c").ok


def test_symbols_with_digits_are_names() -> None:
    facts = Facts([figure("worth", "50", Unit.AMOUNT, symbol="USDT0")])
    assert check("50 USDT0, in USDT0", facts).ok
    assert not check("in USDT0", Facts(())).ok


# ── what is shown ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_complaint_names_the_figures_and_stays_short() -> None:
    assert checked("Price 2,393.").complaint == ""
    assert checked("Price 2,395 and 77 %.").complaint == f"2,395: {NO_FACT}; 77 %: {NO_FACT}"
    long = checked("77 " * 500 + "9" * 10_000)
    assert len(long.unsupported) == 501
    assert len(long.complaint) <= MOST_NAMED * (LONGEST_NAMED + 80)


def test_text_without_figures_passes() -> None:
    for text in ("", "Hold.", "The range is narrow and the fees are thin — wait…", "👍🏽 naïve café"):
        assert checked(text) == Checked((), (), ())


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SUFFIXES = {
    Unit.PRICE: " USDC",
    Unit.AMOUNT: " USDC",
    Unit.PERCENT: " %",
    Unit.BPS: " bps",
    Unit.PIPS: " pips",
    Unit.RATIO: "×",
    Unit.HOURS: " h",
    Unit.SECONDS: " s",
    Unit.TICK: " ticks",
    Unit.BLOCK: " blocks",
    Unit.GWEI: " gwei",
    Unit.COUNT: "",
}
decimals = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=8)


@given(decimals, st.sampled_from(list(Unit)), st.integers(0, 10), st.booleans(), st.booleans())
def test_a_fact_printed_at_any_precision_passes(
    value: Decimal, unit: Unit, places: int, grouped: bool, bare: bool
) -> None:
    shown = f"{value:{',' if grouped else ''}.{places}f}"
    text = f"It stands now near {shown}{'' if bare else SUFFIXES[unit]}."
    facts = Facts([Figure("it", value, unit, "test", symbol="USDC")])
    assert check(text, facts).unsupported == ()


@given(decimals.filter(lambda value: abs(value) > 11), st.integers(1, 6), st.sampled_from([-1, 1]))
def test_a_fact_off_by_one_in_the_last_place_does_not(value: Decimal, places: int, step: int) -> None:
    assume((abs(value).scaleb(places) % 1) != Decimal("0.5"))  # half way either neighbour is a fair rounding
    shown = Decimal(f"{value:.{places}f}") + step * Decimal(1).scaleb(-places)
    facts = Facts([Figure("it", value, Unit.HOURS, "test")])
    assert len(check(f"It is {shown:f} h.", facts).unsupported) == 1


WORDS = (
    "price buffer floor above below the of by fees edge range candidate 2 1× 2× % h bps USDC - – ( ) . , ~ $ k".split()
)
fragments = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.integers(0, 10**7).map(str),
        st.sampled_from([f"{float(one.exact):.2f}" for one in FIGURES]),
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(fragments, st.randoms(use_true_random=False), st.sampled_from(["", " "]))
def test_more_facts_never_make_a_sound_figure_unsound(parts: list[str], chance: random.Random, glue: str) -> None:
    text = (glue or " ").join(parts)
    some = [one for one in FIGURES if chance.random() < 0.6]
    few, many = check(text, Facts(some)), check(text, Facts([*some, *(one for one in FIGURES if one not in some)]))
    assert {claim.start for claim in many.unsupported} <= {claim.start for claim in few.unsupported}


@settings(max_examples=400)
@given(
    st.text(
        st.one_of(st.sampled_from("0123456789.,-–+$%×xkMhe()/^ \u200b²½٣９abRSI_0x'"), st.characters()), max_size=60
    )
)
def test_no_digit_is_overlooked(text: str) -> None:
    """Whatever means a number to a reader lies in a claim or in a span that was weighed and found to claim nothing."""
    found = checked(text)
    claims = (*found.unsupported, *(backing.claim for backing in found.supported))
    spans = [(one.start, one.end) for one in claims] + [(one.start, one.end) for one in found.exempt]
    for place, char in enumerate(text):
        if unicodedata.numeric(char, None) is not None:
            assert any(start <= place < end for start, end in spans), (char, place, spans)
    assert all(text[claim.start : claim.end] == claim.text for claim in found.unsupported)


# ── hostile text ──────────────────────────────────────────────────────────────────────────────────────────────────

SIZE = 200_000
HOSTILE = {
    "digits": "1" * SIZE,
    "counts": "1 " * (SIZE // 2),
    "figures": " ".join(str(number) for number in range(11, 36_000)),
    "commas": "1," * (SIZE // 2),
    "dots": "1." * (SIZE // 2),
    "hex": "0x" + "a1" * (SIZE // 2),
    "prefixes": "0x1..." * (SIZE // 6),
    "number words": "nine hundred " * (SIZE // 13),
    "signs": "$-" * (SIZE // 2),
    "parentheses": "(" * SIZE,
    "indicators": "rsi(14," * (SIZE // 7),
    "powers": "1×10^9" * (SIZE // 6),
    "superscripts": "²" * SIZE,
    "invisible": "9\u200b" * (SIZE // 2),
    "letters": "a" * SIZE,
    "apostrophes": "a'" * (SIZE // 2),
    "months": "May " * (SIZE // 4),
    "dates": "2026-01-" * (SIZE // 8),
    "ranges": "12–" * (SIZE // 3),
    "halves": "½" * SIZE,
    "marks": "9" + "\u0301" * SIZE,
    "candidates": "candidate 2 77.7 h " * (SIZE // 19),
    "one long sentence": "candidate 2 " + "and then " * (SIZE // 10) + "77.7 h for " * 2_000,
    "names": "price buffer floor fees lower upper above 1× of " * (SIZE // 48) + "by 77.7 h " * 9,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_two_hundred_kilobytes_of_anything_end_soon(name: str) -> None:
    started = time.process_time()
    found = checked(HOSTILE[name])
    assert time.process_time() - started < 3
    assert len(found.supported) + len(found.exempt) + len(found.unsupported) <= MOST_FIGURES + 1


def test_the_work_grows_with_the_text_and_no_faster() -> None:
    def spent(size: int) -> float:
        text = ("aaaa " * 30 + "12:").ljust(size, "(")
        return min(_timed(text) for _ in range(3))

    assert spent(160_000) < 12 * spent(40_000) + 0.02


def _timed(text: str) -> float:
    started = time.process_time()
    checked(text)
    return time.process_time() - started
