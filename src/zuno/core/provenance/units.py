"""What stands around a number and makes it so many of something: scale, unit, currency and sign."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from zuno.core.provenance import words as w
from zuno.core.provenance.figures import Unit
from zuno.core.provenance.numerals import Numeral
from zuno.core.provenance.tokens import Tokens

_TOKEN_LIKE = re.compile(r"[A-Z][A-Z0-9]{1,9}")
"""Capitals behind a number are taken for a token even when no fact knows it: reading never depends on the facts, so
that a fact more cannot turn a sound text into an unsound one."""


class Written(NamedTuple):
    """What the words around a number make of it."""

    scale: int = 1
    unit: Unit | None = None
    hours: Fraction | None = None
    symbol: str = ""
    after: int = 0
    """The first token behind the number and its unit."""
    either: bool = False
    """ "15m" is minutes or millions."""
    broken: bool = False

    @property
    def bare(self) -> bool:
        return self.unit is None and self.hours is None


def scientific(tokens: Tokens, number: Numeral, after: int) -> tuple[Numeral, int]:
    """6.9×10^15 and its spellings: ×, x, · or *, then 10 ^ and an exponent."""
    if after < 0 or tokens.text(after) not in {"×", "x", "·", "*", "x10"}:
        return number, after
    at = after + 1
    if tokens.text(after) != "x10":
        if tokens.text(at) != "10":
            return number, after
        at += 1
    if not tokens.is_(at, "^"):
        return number, after
    negative = tokens.is_(at + 1, "-")
    exponent = tokens.text(at + 1 + negative)
    if not exponent.isdigit() or len(exponent) > 2:
        return number, after
    factor = Fraction(10) ** (-int(exponent) if negative else int(exponent))
    return (
        Numeral(
            number.start,
            tokens[at + 1 + negative].end,
            number.value * factor,
            number.unit_in_last_place * factor,
            number.unit_in_last_place * factor,
        ),
        at + 2 + negative,
    )


def unit_behind(tokens: Tokens, number: Numeral, at: int) -> Written:
    """k, M, %, bps, h, USDC, ticks … behind a number: glued, after one space, or hyphenated."""
    scale = 1
    glued = at < len(tokens) and tokens[at].start == number.end
    text = tokens.near(at, number.end)
    if text in (w.SCALES if glued else w.SCALE_WORDS):
        scale = w.SCALE_WORDS[text]
        at += 1
        text = tokens.near(at, tokens[at - 1].end)
        glued = False
    elif text == "m" and glued:
        return Written(either=True, after=at + 1, hours=Fraction(1, 60))
    elif text == "-" and glued and tokens.kind(at + 1) == "word" and tokens[at + 1].start == number.end + 1:
        hyphenated = tokens[at + 1].text.lower()
        if hyphenated in w.MEASURES:
            at, text, glued = at + 1, hyphenated, False
    elif text in w.FURTHER and tokens.word(at + 1) in w.MEASURES:
        at, text = at + 1, tokens.word(at + 1)
    return _unit(tokens, text, at, scale, glued)


def _unit(tokens: Tokens, text: str, at: int, scale: int, glued: bool) -> Written:
    lower = text.lower()
    if text == "%":
        return Written(scale, Unit.PERCENT, after=at + 1)
    if text == "×" and tokens.kind(at + 1) != "num":
        return Written(scale, Unit.RATIO, after=at + 1)
    if lower in w.HOURS_IN:
        return Written(scale, hours=w.HOURS_IN[lower], after=at + 1)
    often = lower == "times" and tokens.word(at + 1) in {"a", "per", "each", "every", "daily"}
    if lower in w.SHARES and not often and not (lower == "x" and tokens.kind(at + 1) == "num"):
        return Written(scale, w.SHARES[lower], after=at + 1)
    if lower in w.OTHERS:
        return Written(scale, w.OTHERS[lower], after=at + 1)
    if lower == "per" and tokens.word(at + 1) == "cent":
        return Written(scale, Unit.PERCENT, after=at + 2)
    if lower in {"percentage", "basis"} and tokens.word(at + 1) in {"point", "points"}:
        return Written(scale, Unit.PERCENT if lower == "percentage" else Unit.BPS, after=at + 2)
    upper = text.upper()
    if upper in w.WRAPPED or upper in w.SYMBOLS or (_TOKEN_LIKE.fullmatch(text) and text not in w.ACRONYMS):
        return Written(scale, Unit.AMOUNT, symbol=w.WRAPPED.get(upper, upper), after=at + 1)
    if glued and tokens.kind(at) in {"word", "num"}:
        return Written(after=at + 1, broken=lower not in {"st", "nd", "rd", "th"})
    return Written(scale, after=at if scale != 1 else 0)


def unit_before(tokens: Tokens, first: int, at: int, written: Written) -> Written:
    """$ and the words "tick" and "block" before a number."""
    for token in tokens.all[first:at]:
        if token.text in w.CURRENCIES:
            return written._replace(unit=Unit.AMOUNT, symbol=w.CURRENCIES[token.text])
    at = first - 1
    for _ in range(3):
        word = tokens.word(at)
        if word in {"tick", "ticks", "block"}:
            return written._replace(unit=w.OTHERS[word])
        if word in {"at", "of", "is", "range", "from", "between", "number"} or tokens.text(at) in {"[", "(", ":"}:
            at -= 1
        else:
            break
    return written


def sign(tokens: Tokens, at: int) -> tuple[str, int]:
    """The sign written before token `at`, and the first token of sign, currency and number together."""
    first, sign = at, ""
    for _ in range(2):
        before = first - 1
        text = tokens.text(before) if tokens.touches(before, first) else ""
        if text in w.CURRENCIES and first == at:
            first = before
        elif text in {"+", "±"} or (text in {"-", "–"} and not _joins(tokens, before)):
            first, sign = before, "-" if text in {"-", "–"} else text
            if first == at - 1 and tokens.touches(first - 1, first) and tokens.text(first - 1) in w.CURRENCIES:
                first -= 1
            break
        else:
            break
    if not sign:
        word = tokens.word(first - 1)
        sign = {"minus": "-", "negative": "-", "plus": "+"}.get(word, "")
        if word in {"minus", "plus"} and tokens.word(first - 2) not in w.LINKING:
            sign = ""  # "fees minus 0.3 of LVR" subtracts
    return sign, first


def _joins(tokens: Tokens, dash: int) -> bool:
    """Whether a dash ties two things together (2,368–2,660, sub-5, p10-20) instead of turning a sign."""
    return tokens.touches(dash - 1, dash) and (
        tokens.kind(dash - 1) in {"num", "word", "id", "date"} or tokens.text(dash - 1) in {"%", ")", "]", "×"}
    )
