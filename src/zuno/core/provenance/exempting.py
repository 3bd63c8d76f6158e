"""Digits that claim nothing: indicator parameters, timeframes, dates, ordinals, small counts, stress multiples."""

from __future__ import annotations

import re
from fractions import Fraction

from zuno.core.provenance import words as w
from zuno.core.provenance.figures import Unit
from zuno.core.provenance.numerals import Numeral
from zuno.core.provenance.tokens import Tokens
from zuno.core.provenance.units import Written

_GLUED = re.compile(r"([a-z]+?)_?([0-9]{1,4})((?:h|d|m|w)?)")
_TAILS = {"m": Fraction(1, 60), "h": Fraction(1), "d": Fraction(24), "w": Fraction(168)}


class Weighing:
    """Decides which numbers claim nothing, and keeps what they say beside: stresses, counts, indicator names."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.stresses: set[int] = set()
        self.counts: set[int] = set()
        self.vocabulary: dict[str, int] = {}
        self.closed_at = -1
        """Up to this token index, numbers stand in an indicator's parentheses."""

    def learn(self, word: str, place: int) -> None:
        self.vocabulary.setdefault(word, place)

    def why_exempt(self, number: Numeral, written: Written, at: int, after: int, sign: str) -> str:
        if not number.whole:
            return ""
        value = int(number.value)
        bare = written.unit is None and written.hours is None and written.scale == 1
        behind = self.tokens.text(written.after - 1).lower() if written.after else ""
        if bare and behind in {"st", "nd", "rd", "th"}:
            return self._ordinal(value, after, number.start)
        if self._is_parameter(value, bare, written, at, after, number.start):
            return "indicator"
        if written.unit is Unit.RATIO and value in {1, 2, 3} and behind in {"×", "x"} and not sign:
            return self._stress(value, at, after)
        if not bare:
            return ""
        if self.tokens.is_(at - 1, "^") and self.tokens.kind(at - 2) == "word":
            return "notation"
        if self.tokens.is_(at - 1, "-") and self.tokens.word(at - 2) in w.STANDARDS:
            return "parameter"
        is_year = 1990 <= value <= 2099 and self.tokens.plain[number.start : number.end] == str(value) and not sign
        if is_year and self.tokens.word(at - 1) in {"in", "since", "during", "until", "year", "early", "late", "mid"}:
            return "date"
        if value <= w.MOST_COUNTED and not sign and not self._is_measured(at):
            self.counts.add(value)
            return "count"
        return ""

    def _ordinal(self, value: int, after: int, start: int) -> str:
        if self.tokens.word(after).startswith("percentile"):
            self.learn(f"{value}th", start)
            return "ordinal" if value in w.PERCENTILES else ""
        return "ordinal" if value <= w.MOST_ORDINAL else ""

    def _is_parameter(self, value: int, bare: bool, written: Written, at: int, after: int, start: int) -> bool:
        if value not in w.PERIODS:
            return False
        before, behind = self.tokens.word(at - 1), self.tokens.word(after)
        if not bare:
            return written.hours == 24 and behind in w.AVERAGES | {"moving"}  # "the 200-day moving average"
        if at <= self.closed_at:
            return True
        if self.tokens.text(at - 1) in {"(", "-", "/"}:
            head = self.tokens.word(at - 2)
            if head in w.INDICATORS or (self.tokens.text(at - 1) == "/" and head.rstrip("0123456789") in w.INDICATORS):
                if self.tokens.is_(at - 1, "("):
                    self.closed_at = self._closing(at)
                self.learn(f"{head}{value}", start)
                return True
        if before in w.AVERAGES or (
            before in w.OSCILLATORS
            and value in w.OSCILLATOR_PERIODS
            and (behind in {"at", "is", "of", "reads", "near", "on"} or self.tokens.text(after) in {"=", ":"})
        ):
            self.learn(f"{before}{value}", start)
            return True
        hyphen = self.tokens.is_(after, "-")
        named = self.tokens.word(after + hyphen)
        if named in w.AVERAGES or (hyphen and named in {"period", "bar"}):
            self.learn(f"{named}{value}", start)
            return True
        return False

    def _closing(self, at: int) -> int:
        for ahead in range(at, min(at + 8, len(self.tokens))):
            if self.tokens.is_(ahead, ")"):
                return ahead
        return at

    def _stress(self, value: int, at: int, after: int) -> str:
        before, behind = self.tokens.word(at - 1), self.tokens.word(after)
        slashed = self.tokens.is_(at - 1, "/") or self.tokens.text(after) in {"/", ":"}
        loose = before in w.STRESSING_TOO and behind not in w.COMPARING
        if behind in w.STRESSED or slashed or before in w.STRESSING or loose:
            self.stresses.add(value)
            return "stress multiple"
        return ""

    def _is_measured(self, at: int) -> bool:
        before = self.tokens.word(at - 1)
        return before in w.MEASURED or (before in w.LINKING and self.tokens.word(at - 2) in w.MEASURED)

    def is_frame(self, number: Numeral, written: Written, first: int, after: int) -> bool:
        """4h, 24h, "the last 7 days": a conventional span where a span is meant, and no measurement beside it."""
        if written.hours is None or not number.whole or int(number.value) not in w.FRAMES.get(written.hours, ()):
            return False
        behind = self.tokens.word(after + self.tokens.is_(after, "-"))
        before = self.tokens.word(first - 1)
        if behind in w.FRAMED or before in w.FRAMING:
            return True
        if before == "times" and behind == "of" and self.tokens.word(after + 1) in w.FRAMED:
            return True  # "0.4 times 24 h of fees"
        around = {self.tokens.word(at) for at in (first - 3, first - 2, first - 1, after, after + 1)}
        if around & w.VALUED:
            return False
        compact = self.tokens.plain[number.end : number.end + 1].isalpha()
        return before in w.FRAMING_TOO or compact or self.tokens.text(first - 1) in {"<", "/", "≤"}

    def why_name(self, text: str, symbols: frozenset[str]) -> str:
        """RSI14, p10, v4, fees24h, USDT0: names that happen to end in digits. Any other such word hides a figure."""
        if text.upper() in symbols:
            return "token"
        glued = _GLUED.fullmatch(text.lower().removesuffix("'s"))
        if glued is None:
            return ""
        head, number, tail = glued[1], int(glued[2]), glued[3]
        if tail:
            return "timeframe" if number in w.FRAMES[_TAILS[tail]] and head in w.FRAME_NAMES else ""
        if head in w.INDICATORS and number in w.PERIODS:
            return "indicator"
        if (head == "p" and number in w.PERCENTILES) or head in w.STANDARDS:
            return "parameter"
        if head in w.LABELS and number <= w.MOST_COUNTED:
            self.counts.add(number)
            return "count"
        return ""
