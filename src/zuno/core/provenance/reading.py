"""Prose read for its figures: every digit of a text ends in a claim to be backed or in a span that claims nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from zuno.core.provenance import words as w
from zuno.core.provenance.figures import Claim, Exempt, Measure, Reading, Unit
from zuno.core.provenance.numerals import Numeral, numerals
from zuno.core.provenance.plain import UNREADABLE, plain

_HALF = Fraction(1, 2)
_HEDGED = Fraction(1, 20)
""""About 2,400" may round to the hundred, but never by more than this share of itself."""

_BESIDE = 6
"""How many tokens away a word still speaks of a figure."""

_STRESSES = frozenset({"1", "2", "3"})

MOST_FIGURES = 2_000
"""What comes after this many figures is refused unread: it is no prose, and reading it would only cost time."""

CANNOT_READ = "this figure cannot be read"
TOO_MANY = "too many figures for prose"

_YEAR = r"(?:19|20)[0-9]{2}"
_DAY = r"(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
# Every alternative has a bounded length or repeats possessively, so that no text makes the scan backtrack.
_TOKEN = re.compile(
    rf"""
    (?P<id>   (?<![0-9A-Za-z_])0[xX][0-9A-Fa-f][0-9A-Za-z]*+(?:(?:…|\.\.\.?+)[0-9A-Za-z]*+)?+
            | (?<![0-9A-Za-z_])(?:plan|req|alert|act)_[0-9A-Za-z]++ )
  | (?P<date> (?<![\w.,-])(?:
              {_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:[T ]{_CLOCK}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?
            | {_CLOCK}
            | [0-9]{{1,2}}([./])[0-9]{{1,2}}\3{_YEAR}
            | {_DAY}\ (?:of\ )?(?:{w.MONTHS})(?:,?\ {_YEAR})?
            | (?:{w.MONTHS})\.?\ (?:{_DAY}(?:,?\ {_YEAR})?|{_YEAR})(?!\ ?%|\ ?(?:h|bps|x|×)\b)
            )(?![\w]|[.,:][0-9]) )
  | (?P<num>  (?:(?<![.\w])\.)?+[0-9]++(?:[.,'_\u202f][0-9]++)*+(?:[eE][+-]?+[0-9]++(?![0-9A-Za-z]))?+ )
  | (?P<word> [^\W\d]\w*+(?:'[^\W\d]++)?+ )
  | (?P<sym>  [^\w\s] )
    """,
    re.VERBOSE,
)
_TOKEN_LIKE = re.compile(r"[A-Z][A-Z0-9]{1,9}")
"""Capitals behind a number are taken for a token even when no fact knows it: reading never depends on the facts, so
that a fact more cannot turn a sound text into an unsound one."""
_GLUED = re.compile(r"([a-z]+?)_?([0-9]{1,4})((?:h|d|m|w)?)")


class Token(NamedTuple):
    kind: str
    start: int
    end: int
    text: str


class _Written(NamedTuple):
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


@dataclass(slots=True)
class _Draft:
    """A claim while its neighbours may still lend it their unit."""

    start: int
    end: int
    number: Numeral
    written: _Written
    sign: str
    hedged: bool
    frame: bool
    first: int
    """Index of its first token, sign and currency included."""
    after: int
    """Index of the token behind its unit."""


@dataclass(slots=True)
class Read:
    """A text taken apart."""

    claims: list[Claim] = field(default_factory=list)
    frames: set[int] = field(default_factory=set)
    """Claims, by index, that may be timeframes: nothing is wrong when no fact backs them."""
    ids: list[Claim] = field(default_factory=list)
    unreadable: list[Claim] = field(default_factory=list)
    exempt: list[Exempt] = field(default_factory=list)
    vocabulary: dict[str, int] = field(default_factory=dict)
    """Each word in lower case and where it first stands."""
    stresses: set[int] = field(default_factory=set)
    """The stress multiples the text speaks of."""
    counts: set[int] = field(default_factory=set)
    falling: set[int] = field(default_factory=set)
    rising: set[int] = field(default_factory=set)
    """Claims, by index, beside a word that turns their sign."""
    before: list[tuple[str, ...]] = field(default_factory=list)
    behind: list[tuple[str, ...]] = field(default_factory=list)
    """The words beside each claim, nearest first, up to the next figure or the end of the sentence."""


def read(text: str, symbols: frozenset[str] = frozenset()) -> Read:
    """Every figure of `text`. `symbols` are the known token symbols, in upper case: USDT0 is a name."""
    return _Reader(text, symbols).read()


class _Reader:
    def __init__(self, text: str, symbols: frozenset[str]) -> None:
        self.text = text
        self.plain, self.places = plain(text)
        self.symbols = symbols
        self.tokens = [
            Token(match.lastgroup or "", match.start(), match.end(), match[0]) for match in _TOKEN.finditer(self.plain)
        ]
        self.out = Read()
        self.drafts: list[_Draft] = []
        self.closed_at = -1
        """Up to this token index, numbers stand in an indicator's parentheses."""

    def read(self) -> Read:
        at = 0
        while at < len(self.tokens):
            if len(self.out.exempt) + len(self.drafts) + len(self.out.unreadable) + len(self.out.ids) >= MOST_FIGURES:
                rest = self._span(self.tokens[at].start, self.tokens[-1].end)
                self.out.unreadable.append(Claim(*rest, readings=(), problem=TOO_MANY))
                break
            at = self._token(at)
        self._lend_units()
        for draft in self.drafts:
            if draft.frame:
                self.out.frames.add(len(self.out.claims))
            self._surroundings(draft)
            self.out.claims.append(self._claim(draft))
        return self.out

    # ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _token(self, at: int) -> int:
        token = self.tokens[at]
        if token.kind == "num":
            return self._number(at)
        if token.kind == "word":
            return self._word(at)
        if token.kind == "id":
            self.out.ids.append(Claim(*self._span(token.start, token.end), readings=()))
        elif token.kind == "date":
            self._exempt(token.start, token.end, "date")
        elif token.text == UNREADABLE:
            self._unreadable(token.start, token.end)
        return at + 1

    def _word(self, at: int) -> int:
        token = self.tokens[at]
        lower = token.text.lower().removesuffix("'s")
        if any(char.isdigit() for char in lower):
            self._name_with_digits(token, lower)
            self._learn(lower, token.start)
            return at + 1
        if lower in w.NUMBER_WORDS or (lower in w.MULTIPLIERS and self._word_at(at - 1) == "a"):
            return self._spelled(at)
        self._learn(lower, token.start)
        if lower in w.STRESS_WORDS and self._word_at(at + 1) in {"vol", "volatility"}:
            self.out.stresses.add(w.STRESS_WORDS[lower])
        if self._is(at - 1, "/") and self._kind_at(at - 2) == "word" and not self._is_rate(at):
            self._learn("ratio", token.start)  # "LVR/fees"
        if lower in {"break", "breaks", "broke"} and self._word_at(at + 1 + self._is(at + 1, "-")) == "even":
            self._learn("breakeven", token.start)
        return at + 1

    def _is_rate(self, at: int) -> bool:
        """USDC/day is a rate and WETH/USDC a pair; neither is a ratio of two facts."""
        return self._word_at(at) in w.HOURS_IN or self._text_at(at).upper() in w.SYMBOLS

    def _name_with_digits(self, token: Token, lower: str) -> None:
        """RSI14, p10, v4, fees24h, USDT0: names that happen to end in digits. Any other such word hides a figure."""
        glued = _GLUED.fullmatch(lower)
        why = ""
        if token.text.upper() in self.symbols:
            why = "token"
        elif glued:
            head, number, tail = glued[1], int(glued[2]), glued[3]
            if tail:
                frames = w.FRAMES[{"h": Fraction(1), "d": Fraction(24), "w": Fraction(168)}.get(tail, Fraction(1, 60))]
                why = "timeframe" if number in frames and head in w.FRAMED | {"exit", "p", "pexit"} else ""
            elif head in w.INDICATORS and number in w.PERIODS:
                why = "indicator"
            elif (head == "p" and number in w.PERCENTILES) or head in w.STANDARDS:
                why = "parameter"
            elif head in w.LABELS and number <= w.MOST_COUNTED:
                why = "count"
                self.out.counts.add(number)
        if why:
            self._exempt(token.start, token.end, why)
        else:
            self._unreadable(token.start, token.end)

    def _spelled(self, at: int) -> int:
        """ "twenty-four", "two hundred and forty": a figure in words is a figure."""
        first, total, part = self.tokens[at], 0, 0
        end, after = first.end, at
        while True:
            word = self._word_at(after)
            if word in w.NUMBER_WORDS:
                part += w.NUMBER_WORDS[word]
            elif word == "hundred":
                part = max(part, 1) * 100
            elif word in w.MULTIPLIERS:
                total, part = total + max(part, 1) * w.MULTIPLIERS[word], 0
            else:
                break
            end, after = self.tokens[after].end, after + 1
            if after - at > 16:  # "nine nine nine …" is read in bounded bites
                break
            skip = after + (self._is(after, "-") or self._word_at(after) == "and")
            following = self._word_at(skip)
            if following in w.MULTIPLIERS or (following in w.NUMBER_WORDS and self._continues(after - 1, following)):
                after = skip
            else:
                break
        number = Numeral(first.start, end, Fraction(total + part), Fraction(1), Fraction(1))
        self._figure(number, at, after)
        return after

    def _continues(self, at: int, following: str) -> bool:
        """Whether a number word goes on with the next: "twenty four" and "hundred two", not "one two"."""
        word = self._word_at(at)
        value = w.NUMBER_WORDS.get(word)
        return value is None or (value >= 20 and w.NUMBER_WORDS[following] < 10)

    # ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _number(self, at: int) -> int:
        token = self.tokens[at]
        found = numerals(token.text, token.start)
        if found is None:
            self._unreadable(token.start, token.end)
            return at + 1
        for number in found[:-1]:
            self._figure(number, at, -1)
        return self._figure(found[-1], at, at + 1)

    def _figure(self, number: Numeral, at: int, after: int) -> int:
        """One number. `after` is the token its unit would begin with, -1 inside a list. Returns the next token."""
        number, after = self._scientific(number, after)
        written = self._unit_behind(number, after) if after >= 0 else _Written()
        end = self.tokens[written.after - 1].end if written.after else number.end
        following = max(written.after, after, at + 1)
        if written.broken:
            self._unreadable(number.start, end)
            return following
        for unit_word in range(max(after, at), written.after):
            self._learn(self._word_at(unit_word), self.tokens[unit_word].start)
        sign, first = self._sign(at)
        if written.unit is None and written.hours is None and not written.symbol:
            written = self._unit_before(first, at, written)
        why = self._why_exempt(number, written, at, following, sign)
        if why:
            self._exempt(number.start, end, why)
            return following
        self.drafts.append(
            _Draft(
                start=self.tokens[first].start if number.start == self.tokens[at].start else number.start,
                end=end,
                number=number,
                written=written,
                sign=sign,
                hedged=self._hedged(first),
                frame=self._is_frame(number, written, first, following),
                first=first,
                after=after if after >= 0 and self._word_at(after) in w.FURTHER else following,
            )
        )
        return following

    def _scientific(self, number: Numeral, after: int) -> tuple[Numeral, int]:
        """6.9×10^15 and its spellings: ×, x, · or *, then 10 ^ and an exponent."""
        if after < 0 or self._text_at(after) not in {"×", "x", "·", "*", "x10"}:
            return number, after
        at = after + 1
        if self._text_at(after) != "x10":
            if self._text_at(at) != "10":
                return number, after
            at += 1
        if not self._is(at, "^"):
            return number, after
        negative = self._is(at + 1, "-")
        exponent = self._text_at(at + 1 + negative)
        if not exponent.isdigit() or len(exponent) > 2:
            return number, after
        factor = Fraction(10) ** (-int(exponent) if negative else int(exponent))
        return (
            Numeral(
                number.start,
                self.tokens[at + 1 + negative].end,
                number.value * factor,
                number.unit_in_last_place * factor,
                number.unit_in_last_place * factor,
            ),
            at + 2 + negative,
        )

    def _unit_behind(self, number: Numeral, at: int) -> _Written:
        """k, M, %, bps, h, USDC, ticks … behind a number: glued, after one space, or hyphenated."""
        scale, either = 1, False
        glued = at < len(self.tokens) and self.tokens[at].start == number.end
        text = self._near(at, number.end)
        if text in (w.SCALES if glued else w.SCALE_WORDS):
            scale = w.SCALE_WORDS[text]
            at += 1
            text = self._near(at, self.tokens[at - 1].end)
            glued = False
        elif text == "m" and glued:
            either, at = True, at + 1
            return _Written(either=either, after=at, hours=Fraction(1, 60))
        elif text == "-" and glued and self._kind_at(at + 1) == "word" and self.tokens[at + 1].start == number.end + 1:
            hyphenated = self.tokens[at + 1].text.lower()
            if hyphenated in w.HOURS_IN or hyphenated in w.SHARES or hyphenated in w.OTHERS:
                at, text, glued = at + 1, hyphenated, False
        elif text in w.FURTHER and self._word_at(at + 1) in w.MEASURES:
            at, text = at + 1, self._word_at(at + 1)
        return self._unit(text, at, scale, glued)

    def _unit(self, text: str, at: int, scale: int, glued: bool) -> _Written:
        lower = text.lower()
        if text == "%":
            return _Written(scale, Unit.PERCENT, after=at + 1)
        if text == "×" and self._kind_at(at + 1) != "num":
            return _Written(scale, Unit.RATIO, after=at + 1)
        if lower in w.HOURS_IN:
            return _Written(scale, hours=w.HOURS_IN[lower], after=at + 1)
        often = lower == "times" and self._word_at(at + 1) in {"a", "per", "each", "every", "daily"}
        if lower in w.SHARES and not often and not (lower == "x" and self._kind_at(at + 1) == "num"):
            return _Written(scale, w.SHARES[lower], after=at + 1)
        if lower in w.OTHERS:
            return _Written(scale, w.OTHERS[lower], after=at + 1)
        if lower == "per" and self._word_at(at + 1) == "cent":
            return _Written(scale, Unit.PERCENT, after=at + 2)
        if lower in {"percentage", "basis"} and self._word_at(at + 1) in {"point", "points"}:
            return _Written(scale, Unit.PERCENT if lower == "percentage" else Unit.BPS, after=at + 2)
        upper = text.upper()
        if upper in w.WRAPPED or upper in w.SYMBOLS or (_TOKEN_LIKE.fullmatch(text) and text not in w.ACRONYMS):
            return _Written(scale, Unit.AMOUNT, symbol=w.WRAPPED.get(upper, upper), after=at + 1)
        if glued and self._kind_at(at) in {"word", "num"}:
            return _Written(after=at + 1, broken=lower not in {"st", "nd", "rd", "th"})
        return _Written(scale, after=at if scale != 1 else 0)

    def _unit_before(self, first: int, at: int, written: _Written) -> _Written:
        """$ and the words "tick" and "block" before a number."""
        for token in self.tokens[first:at]:
            if token.text in w.CURRENCIES:
                return written._replace(unit=Unit.AMOUNT, symbol=w.CURRENCIES[token.text])
        at = first - 1
        for _ in range(3):
            word = self._word_at(at)
            if word in {"tick", "ticks", "block"}:
                return written._replace(unit=w.OTHERS[word])
            if word in {"at", "of", "is", "range", "from", "between", "number"} or self._text_at(at) in {"[", "(", ":"}:
                at -= 1
            else:
                break
        return written

    def _sign(self, at: int) -> tuple[str, int]:
        """The sign written before token `at`, and the first token of sign, currency and number together."""
        first, sign = at, ""
        for _ in range(2):
            before = first - 1
            text = self._text_at(before) if self._touches(before, first) else ""
            if text in w.CURRENCIES and first == at:
                first = before
            elif text in {"+", "±"} or (text in {"-", "–"} and not self._joins(before)):
                first, sign = before, "-" if text in {"-", "–"} else text
                if first == at - 1 and self._touches(first - 1, first) and self._text_at(first - 1) in w.CURRENCIES:
                    first -= 1
                break
            else:
                break
        if not sign:
            word = self._word_at(first - 1)
            sign = {"minus": "-", "negative": "-", "plus": "+"}.get(word, "")
            if word in {"minus", "plus"} and self._word_at(first - 2) not in w.LINKING:
                sign = ""  # "fees minus 0.3 of LVR" subtracts
        return sign, first

    def _joins(self, dash: int) -> bool:
        """Whether a dash ties two things together (2,368–2,660, sub-5, p10-20) instead of turning a sign."""
        return self._touches(dash - 1, dash) and (
            self._kind_at(dash - 1) in {"num", "word", "id", "date"} or self._text_at(dash - 1) in {"%", ")", "]", "×"}
        )

    # ── what claims nothing ───────────────────────────────────────────────────────────────────────────────────────

    def _why_exempt(self, number: Numeral, written: _Written, at: int, after: int, sign: str) -> str:
        if not number.whole:
            return ""
        value = int(number.value)
        bare = written.unit is None and written.hours is None and written.scale == 1
        behind = self._text_at(written.after - 1).lower() if written.after else ""
        if bare and behind in {"st", "nd", "rd", "th"}:
            return self._ordinal(value, after, number.start)
        if self._is_parameter(value, bare, written, at, after, number.start):
            return "indicator"
        if written.unit is Unit.RATIO and value in {1, 2, 3} and behind in {"×", "x"} and not sign:
            return self._stress(value, at, after)
        if not bare:
            return ""
        if self._is(at - 1, "^") and self._kind_at(at - 2) == "word":
            return "notation"
        if self._is(at - 1, "-") and self._word_at(at - 2) in w.STANDARDS:
            return "parameter"
        is_year = 1990 <= value <= 2099 and self.plain[number.start : number.end] == str(value) and not sign
        if is_year and self._word_at(at - 1) in {"in", "since", "during", "until", "year", "early", "late", "mid"}:
            return "date"
        if value <= w.MOST_COUNTED and not sign and not self._is_measured(at):
            self.out.counts.add(value)
            return "count"
        return ""

    def _ordinal(self, value: int, after: int, start: int) -> str:
        if self._word_at(after).startswith("percentile"):
            self._learn(f"{value}th", start)
            return "ordinal" if value in w.PERCENTILES else ""
        return "ordinal" if value <= w.MOST_ORDINAL else ""

    def _is_parameter(self, value: int, bare: bool, written: _Written, at: int, after: int, start: int) -> bool:
        if value not in w.PERIODS:
            return False
        before, behind = self._word_at(at - 1), self._word_at(after)
        if not bare:
            return written.hours == 24 and behind in w.AVERAGES | {"moving"}  # "the 200-day moving average"
        if at <= self.closed_at:
            return True
        if self._text_at(at - 1) in {"(", "-", "/"}:
            head = self._word_at(at - 2)
            if head in w.INDICATORS or (self._text_at(at - 1) == "/" and head.rstrip("0123456789") in w.INDICATORS):
                if self._is(at - 1, "("):
                    self.closed_at = self._closing(at)
                self._learn(f"{head}{value}", start)
                return True
        if before in w.AVERAGES or (
            before in w.OSCILLATORS
            and value in w.OSCILLATOR_PERIODS
            and (behind in {"at", "is", "of", "reads", "near", "on"} or self._text_at(after) in {"=", ":"})
        ):
            self._learn(f"{before}{value}", start)
            return True
        hyphen = self._is(after, "-")
        named = self._word_at(after + hyphen)
        if named in w.AVERAGES or (hyphen and named in {"period", "bar"}):
            self._learn(f"{named}{value}", start)
            return True
        return False

    def _closing(self, at: int) -> int:
        for ahead in range(at, min(at + 8, len(self.tokens))):
            if self._is(ahead, ")"):
                return ahead
        return at

    def _stress(self, value: int, at: int, after: int) -> str:
        before, behind = self._word_at(at - 1), self._word_at(after)
        slashed = self._is(at - 1, "/") or self._text_at(after) in {"/", ":"}
        loose = before in w.STRESSING_TOO and behind not in w.COMPARING
        if behind in w.STRESSED or slashed or before in w.STRESSING or loose:
            self.out.stresses.add(value)
            return "stress multiple"
        return ""

    def _is_measured(self, at: int) -> bool:
        before = self._word_at(at - 1)
        return before in w.MEASURED or (before in w.LINKING and self._word_at(at - 2) in w.MEASURED)

    def _is_frame(self, number: Numeral, written: _Written, first: int, after: int) -> bool:
        """4h, 24h, "the last 7 days": a conventional span where a span is meant, and no measurement beside it."""
        if written.hours is None or not number.whole or int(number.value) not in w.FRAMES.get(written.hours, ()):
            return False
        behind = self._word_at(after + self._is(after, "-"))
        if behind in w.FRAMED:
            return True
        around = {self._word_at(at) for at in (first - 3, first - 2, first - 1, after, after + 1)}
        if around & w.VALUED:
            return False
        before = self._word_at(first - 1)
        compact = self.plain[number.end : number.end + 1].isalpha()
        return before in w.FRAMING or compact or self._text_at(first - 1) in {"<", "/", "≤"}

    # ── claims ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _lend_units(self) -> None:
        """ "12–15 %", "$2,368 to 2,660": the ends of a range share what only one of them shows."""
        for left, right in zip(self.drafts, self.drafts[1:], strict=False):
            between = self.plain[left.end : right.start].strip()
            if len(between) > 3 or between not in {"-", "–", "—", "to", "..", "…"}:
                continue
            bare_left, bare_right = _is_bare(left.written), _is_bare(right.written)
            scale = left.written.scale
            if scale == 1 and between in {"-", "–"}:
                scale = right.written.scale
            if bare_left:
                left.written = right.written._replace(scale=scale)
            elif bare_right and right.written.scale == 1:
                right.written = left.written._replace(scale=1)

    def _claim(self, draft: _Draft) -> Claim:
        number, written = draft.number, draft.written
        scale = Fraction(written.scale)
        value = number.value * scale
        tolerance = number.unit_in_last_place * scale * _HALF
        if draft.hedged:
            tolerance = max(tolerance, min(number.unit_in_last_nonzero * scale * _HALF, value * _HEDGED))
        if written.hours is not None:
            timed = Reading(value * written.hours, tolerance * written.hours, Measure.TIME, Unit.HOURS)
            readings: tuple[Reading, ...] = (timed,)
            if written.either:
                million = 10**6
                readings += (Reading(value * million, tolerance * million, None),)
        elif written.unit is None:
            readings = (Reading(value, tolerance, None),)
        else:
            unit = written.unit
            readings = (Reading(value * unit.scale, tolerance * unit.scale, unit.measure, unit, written.symbol),)
        start, end, text = self._span(draft.start, draft.end)
        return Claim(start, end, text, readings, draft.sign)

    def _surroundings(self, draft: _Draft) -> None:
        index = len(self.out.claims)
        before = self._beside(draft.first - 1, -1)
        behind = self._beside(draft.after, 1)
        if not w.FALLING.isdisjoint(before) or not w.FALLING.isdisjoint(behind):
            self.out.falling.add(index)
        if before and before[0] in w.RISING:
            self.out.rising.add(index)
        self.out.before.append(before)
        self.out.behind.append(behind)

    def _beside(self, at: int, step: int) -> tuple[str, ...]:
        found: list[str] = []
        for token in (
            self.tokens[at : at + _BESIDE] if step > 0 else reversed(self.tokens[max(0, at + 1 - _BESIDE) : at + 1])
        ):
            if token.kind == "word":
                found.append(token.text.lower())
            elif token.text not in _STRESSES and (token.kind != "sym" or token.text in ".;:!?"):
                break
        return tuple(found)

    def _hedged(self, first: int) -> bool:
        before = self._word_at(first - 1)
        if before in {"to", "over", "under"}:
            return self._word_at(first - 2) in {"close", "just"}
        return before in w.HEDGES or self._is(first - 1, "~")

    # ── small looks around ────────────────────────────────────────────────────────────────────────────────────────

    def _span(self, start: int, end: int) -> tuple[int, int, str]:
        if self.places is not None:
            start, end = self.places[start], self.places[end - 1] + 1
        return start, end, self.text[start:end]

    def _exempt(self, start: int, end: int, why: str) -> None:
        self.out.exempt.append(Exempt(*self._span(start, end), why))

    def _unreadable(self, start: int, end: int) -> None:
        self.out.unreadable.append(Claim(*self._span(start, end), readings=(), problem=CANNOT_READ))

    def _learn(self, word: str, place: int) -> None:
        self.out.vocabulary.setdefault(word, place)

    def _text_at(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def _kind_at(self, at: int) -> str:
        return self.tokens[at].kind if 0 <= at < len(self.tokens) else ""

    def _word_at(self, at: int) -> str:
        if 0 <= at < len(self.tokens) and self.tokens[at].kind == "word":
            return self.tokens[at].text.lower()
        return ""

    def _is(self, at: int, text: str) -> bool:
        return 0 <= at < len(self.tokens) and self.tokens[at].text == text

    def _touches(self, left: int, right: int) -> bool:
        return left >= 0 and self.tokens[left].end == self.tokens[right].start

    def _near(self, at: int, end: int) -> str:
        """The token at `at` when at most a space lies between."""
        return self.tokens[at].text if at < len(self.tokens) and self.tokens[at].start - end <= 1 else ""


def _is_bare(written: _Written) -> bool:
    return written.unit is None and written.hours is None


def stems(vocabulary: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Each word and its singular, with its place."""
    for word, place in vocabulary.items():
        yield word, place
        if len(word) > 3 and word.endswith("s"):
            yield word[:-1], place
