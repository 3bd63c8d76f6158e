"""Prose read for its figures: every digit of a text ends in a claim to be backed or in a span that claims nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from zuno.core.provenance import words as w
from zuno.core.provenance.binding import Binding, Bond
from zuno.core.provenance.exempting import Weighing
from zuno.core.provenance.figures import Claim, Exempt, Measure, Reading, Unit
from zuno.core.provenance.numerals import Numeral, numerals
from zuno.core.provenance.plain import UNREADABLE, plain
from zuno.core.provenance.tokens import Tokens
from zuno.core.provenance.units import Written, scientific, sign, unit_before, unit_behind

_HALF = Fraction(1, 2)
_HEDGED = Fraction(1, 50)
""""About 2,400" may round to the hundred, but never by more than this share of itself."""

_BESIDE = 6
"""How many tokens away a word still speaks of a figure."""

_STRESSES = frozenset({"1", "2", "3"})

MOST_FIGURES = 2_000
"""What comes after this many figures is refused unread: it is no prose, and reading it would only cost time."""

CANNOT_READ = "this figure cannot be read"
TOO_MANY = "too many figures for prose"


@dataclass(slots=True)
class _Draft:
    """A claim while its neighbours may still lend it their unit."""

    start: int
    end: int
    number: Numeral
    written: Written
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
    bonds: list[Bond] = field(default_factory=list)
    """What each claim is said of."""


def read(text: str, symbols: frozenset[str] = frozenset()) -> Read:
    """Every figure of `text`. `symbols` are the known token symbols, in upper case: USDT0 is a name."""
    return _Reader(text, symbols).read()


class _Reader:
    def __init__(self, text: str, symbols: frozenset[str]) -> None:
        self.text = text
        self.plain, self.places = plain(text)
        self.symbols = symbols
        self.tokens = Tokens(self.plain)
        self.weigh = Weighing(self.tokens)
        self.out = Read(vocabulary=self.weigh.vocabulary, stresses=self.weigh.stresses, counts=self.weigh.counts)
        self.drafts: list[_Draft] = []

    def read(self) -> Read:
        at = 0
        while at < len(self.tokens):
            if len(self.out.exempt) + len(self.drafts) + len(self.out.unreadable) + len(self.out.ids) >= MOST_FIGURES:
                rest = self._span(self.tokens[at].start, self.tokens[-1].end)
                self.out.unreadable.append(Claim(*rest, readings=(), problem=TOO_MANY))
                break
            at = self._token(at)
        self._lend_units()
        binding = Binding(self.tokens)
        for draft in self.drafts:
            if draft.frame:
                self.out.frames.add(len(self.out.claims))
            self._surroundings(draft)
            claim = self._claim(draft)
            money = any(reading.measure in {Measure.MONEY, None} for reading in claim.readings)
            self.out.bonds.append(binding.bond(draft.first, draft.after, money))
            self.out.claims.append(claim)
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
            why = self.weigh.why_name(token.text, self.symbols)
            if why:
                self._exempt(token.start, token.end, why)
            else:
                self._unreadable(token.start, token.end)
            self.weigh.learn(lower, token.start)
            return at + 1
        if lower in w.NUMBER_WORDS or lower in w.MULTIPLIERS:
            return self._spelled(at)
        self.weigh.learn(lower, token.start)
        if lower in w.STRESS_WORDS and self.tokens.word(at + 1) in {"vol", "volatility"}:
            self.weigh.stresses.add(w.STRESS_WORDS[lower])
        if self.tokens.is_(at - 1, "/") and self.tokens.kind(at - 2) == "word" and not self._is_rate(at):
            self.weigh.learn("ratio", token.start)  # "LVR/fees"
        if lower in {"break", "breaks", "broke"} and self.tokens.word(at + 1 + self.tokens.is_(at + 1, "-")) == "even":
            self.weigh.learn("breakeven", token.start)
        return at + 1

    def _is_rate(self, at: int) -> bool:
        """USDC/day is a rate and WETH/USDC a pair; neither is a ratio of two facts."""
        return self.tokens.word(at) in w.HOURS_IN or self.tokens.text(at).upper() in w.SYMBOLS

    def _spelled(self, at: int) -> int:
        """ "twenty-four", "two hundred and forty": a figure in words is a figure."""
        first, total, part = self.tokens[at], 0, 0
        end, after = first.end, at
        while True:
            word = self.tokens.word(after)
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
            skip = after + (self.tokens.is_(after, "-") or self.tokens.word(after) == "and")
            following = self.tokens.word(skip)
            if following in w.MULTIPLIERS or (following in w.NUMBER_WORDS and self._continues(after - 1, following)):
                after = skip
            else:
                break
        number = Numeral(first.start, end, Fraction(total + part), Fraction(1), Fraction(1))
        self._figure(number, at, after)
        return after

    def _continues(self, at: int, following: str) -> bool:
        """Whether a number word goes on with the next: "twenty four" and "hundred two", not "one two"."""
        word = self.tokens.word(at)
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
        number, after = scientific(self.tokens, number, after)
        written = unit_behind(self.tokens, number, after) if after >= 0 else Written()
        end = self.tokens[written.after - 1].end if written.after else number.end
        following = max(written.after, after, at + 1)
        if written.broken:
            self._unreadable(number.start, end)
            return following
        for unit_word in range(max(after, at), written.after):
            self.weigh.learn(self.tokens.word(unit_word), self.tokens[unit_word].start)
        written_sign, first = sign(self.tokens, at)
        if written.unit is None and written.hours is None and not written.symbol:
            written = unit_before(self.tokens, first, at, written)
        why = self.weigh.why_exempt(number, written, at, following, written_sign)
        if why:
            self._exempt(number.start, end, why)
            return following
        self.drafts.append(
            _Draft(
                start=self.tokens[first].start if number.start == self.tokens[at].start else number.start,
                end=end,
                number=number,
                written=written,
                sign=written_sign,
                hedged=self._hedged(first),
                frame=self.weigh.is_frame(number, written, first, following),
                first=first,
                after=after if after >= 0 and self.tokens.word(after) in w.FURTHER else following,
            )
        )
        return following

    # ── claims ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _lend_units(self) -> None:
        """ "12–15 %", "$2,368 to 2,660": the ends of a range share what only one of them shows."""
        for left, right in zip(self.drafts, self.drafts[1:], strict=False):
            between = self.plain[left.end : right.start].strip()
            if len(between) > 3 or between not in {"-", "–", "—", "to", "..", "…"}:
                continue
            bare_left, bare_right = left.written.bare, right.written.bare
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
            self.tokens.all[at : at + _BESIDE]
            if step > 0
            else reversed(self.tokens.all[max(0, at + 1 - _BESIDE) : at + 1])
        ):
            if token.kind == "word":
                found.append(token.text.lower())
            elif token.text not in _STRESSES and (token.kind != "sym" or token.text in ".;:!?"):
                break
        return tuple(found)

    def _hedged(self, first: int) -> bool:
        before = self.tokens.word(first - 1)
        if before in {"to", "over", "under"}:
            return self.tokens.word(first - 2) in {"close", "just"}
        return before in w.HEDGES or self.tokens.is_(first - 1, "~")

    def _span(self, start: int, end: int) -> tuple[int, int, str]:
        if self.places is not None:
            start, end = self.places[start], self.places[end - 1] + 1
        return start, end, self.text[start:end]

    def _exempt(self, start: int, end: int, why: str) -> None:
        self.out.exempt.append(Exempt(*self._span(start, end), why))

    def _unreadable(self, start: int, end: int) -> None:
        self.out.unreadable.append(Claim(*self._span(start, end), readings=(), problem=CANNOT_READ))


def stems(vocabulary: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Each word and its singular, with its place."""
    for word, place in vocabulary.items():
        yield word, place
        if len(word) > 3 and word.endswith("s"):
            yield word[:-1], place
