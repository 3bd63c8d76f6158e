"""The law of numbers: a text passes when each of its figures is a fact it was given, or follows from two it names."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

from zuno.core.provenance import words as w
from zuno.core.provenance.binding import Bond
from zuno.core.provenance.figures import (
    Backing,
    Checked,
    Claim,
    Derivation,
    Exempt,
    Figure,
    Measure,
    Reading,
    Unit,
)
from zuno.core.provenance.naming import BASELINE, PRICE, Name, Naming, number_of, parsed
from zuno.core.provenance.reading import Read, read

NO_FACT = "no fact of the context gives this figure"
NO_ID = "no address or id of the context reads like this"
ANOTHER = "not what this figure is a fact of: it is the {}"
NEWS_ALONE = "found only in news: name its source beside it"
NEWS_PRICED = "found only in news, which never backs a price or a size"

_DAYS_A_YEAR = 365
_SHORTEST_ID = 4
"""Hex digits an abbreviated id must show."""
_BESIDE = 300
"""Characters either side within which a sentence is looked for: nobody's sentence is longer."""
_SLACK = 1e-9
"""Floats only find candidates, generously; exact fractions decide."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A value that may back a figure, with what it is made of."""

    value: Fraction
    unit: Unit
    derivation: Derivation
    facts: tuple[Figure, ...]
    signed: bool = False
    """For a−b and (a−b)/b: the text sets a against b in so many words, so that a written sign has a meaning."""
    as_fraction: bool = False
    """A share other than a ratio, shelved as the fraction it is: 0.36 for 36 %."""


class _Shelf:
    """Entries in order of magnitude, so that a figure is looked up instead of compared with every one of them."""

    def __init__(self, entries: Iterable[tuple[Fraction, _Entry]]) -> None:
        keyed = sorted(((_magnitude(value), at, value, entry) for at, (value, entry) in enumerate(entries)))
        self._keys = [key for key, _, _, _ in keyed]
        self._rows = [(value, entry) for _, _, value, entry in keyed]

    def near(self, reading: Reading) -> list[tuple[Fraction, _Entry]]:
        middle, half = _magnitude(reading.value), _magnitude(reading.tolerance)
        slack = (middle + half) * _SLACK
        low = bisect_left(self._keys, middle - half - slack)
        high = bisect_right(self._keys, middle + half + slack)
        return [
            (value, entry)
            for value, entry in self._rows[low:high]
            if abs(abs(value) - reading.value) <= reading.tolerance
        ]


_Shelves = dict[Measure | None, _Shelf]


class Facts:
    """A context's figures and ids, indexed once for the many texts that are written about it."""

    def __init__(
        self,
        figures: Iterable[Figure],
        ids: Iterable[str] = (),
        baseline: str = BASELINE,
        called: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """`baseline` is what doing nothing is called in `Figure.about`; `called` are words that mean a subject."""
        self.figures = tuple(figures)
        self.baseline = baseline
        self.called = {baseline: w.HOLDING, **(called or {})}
        self.names = tuple(parsed(figure.name) for figure in self.figures)
        self.symbols = frozenset(figure.symbol.upper() for figure in self.figures if figure.symbol)
        self._ids = frozenset(one.lower() for one in ids)
        by_measure: dict[Measure | None, list[tuple[Fraction, _Entry]]] = {None: []}
        for figure in self.figures:
            entry = _Entry(figure.canonical, figure.unit, Derivation.FACT, (figure,))
            by_measure.setdefault(figure.unit.measure, []).append((figure.canonical, entry))
            by_measure[None].append((figure.exact, entry))
            if figure.unit.measure is Measure.SHARE and figure.unit is not Unit.RATIO:
                by_measure[None].append((figure.canonical, replace(entry, as_fraction=True)))
        self.shelves = {measure: _Shelf(entries) for measure, entries in by_measure.items()}

    def knows_id(self, written: str) -> bool:
        """Whether an id is one of ours, whole or abbreviated to its head and tail ("0x5d63…3d64")."""
        head, dots, tail = written.lower().replace("...", "…").replace("..", "…").partition("…")
        if not dots:
            return head in self._ids
        if len(head.removeprefix("0x")) < _SHORTEST_ID:
            return False
        return any(one.startswith(head) and one.endswith(tail) for one in self._ids)


def check(text: str, facts: Facts, about: str = "", others: bool = False) -> Checked:
    """Trace every figure of `text` to `facts`. `about` is the subject the text was asked about ("candidate 2"): a
    figure of another one counts only beside its name, unless `others` may be meant unnamed, as who weighs all of them
    does. Without a subject anybody's figure counts where nobody is named."""
    return _Check(text, facts, about, others).run()


class _Check:
    def __init__(self, text: str, facts: Facts, about: str, others: bool) -> None:
        self.text = text
        self.facts = facts
        self.read: Read = read(text, facts.symbols)
        self.about = about
        self.others = others or not about
        self.naming = Naming(self.read, about, facts.baseline)
        self.supported: list[Backing] = []
        self.unsupported: list[Claim] = list(self.read.unreadable)
        self.exempt: list[Exempt] = list(self.read.exempt)
        self.printed: dict[int, int] = {}
        """Facts the text prints, by identity, and where it first does."""

    def run(self) -> Checked:
        for one in self.read.ids:
            if self.facts.knows_id(one.text):
                self.supported.append(Backing(one, Derivation.ID, ()))
            else:
                self.unsupported.append(replace(one, problem=NO_ID))
        pending = [(at, claim, why) for at, claim in enumerate(self.read.claims) if (why := self._direct(at, claim))]
        if pending:
            self._derive(pending)
        return Checked(
            tuple(sorted(self.unsupported, key=_place)),
            tuple(sorted(self.supported, key=lambda backing: backing.claim.start)),
            tuple(sorted(self.exempt, key=_place)),
        )

    # ── facts as they are ─────────────────────────────────────────────────────────────────────────────────────────

    def _direct(self, at: int, claim: Claim) -> str:
        """Back the claim by a fact and return "", or say why none does."""
        why = NO_FACT
        backing: _Entry | None = None
        for reading in claim.readings:
            shelf = self.facts.shelves.get(reading.measure)
            for value, entry in shelf.near(reading) if shelf else ():
                figure = entry.facts[0]
                if not (_fits(reading, figure) and self._sign_fits(at, claim, value, figure.unit, parsed(figure.name))):
                    continue
                if entry.as_fraction and value != reading.value and self.naming.place(parsed(figure.name)) is None:
                    continue  # a bare 0.0005 is 5 bps; a bare 0.36 is 36 % only of something the text names
                if not self._said_of(at, value, figure):
                    why = ANOTHER.format(f"{figure.name} of {figure.about}" if figure.about else figure.name)
                    continue
                if figure.news:
                    refusal = self._news_refusal(claim, reading, figure)
                    if refusal:
                        why = refusal
                        continue
                elif at not in self.read.frames and (self.naming.subject(figure.about) or _tells(reading)):
                    self.printed.setdefault(id(figure), claim.start)
                if backing is None or backing.facts[0].news:
                    backing = entry
        if backing is None:
            return why
        self.supported.append(Backing(claim, Derivation.FACT, backing.facts))
        return ""

    def _said_of(self, at: int, value: Fraction, figure: Figure) -> bool:
        """Whether the words beside the figure let it be this fact. News is named by its source alone."""
        bond, name = self.read.bonds[at], parsed(figure.name)
        if figure.news:
            return True
        if bond.lost and value > 0:
            # Lost to traders, where that is said; what is earned a day is not lost.
            to_traders = "lvr" in name.words and not (w.EARNING | {"lvr", "fees"}).isdisjoint(bond.sentence)
            if not to_traders and not name.words.isdisjoint(w.LOST):
                return False
        return _is_called(bond, name) and self._is_whose(bond, figure.about)

    def _is_whose(self, bond: Bond, about: str) -> bool:
        if not about or number_of(about) in bond.candidates:
            return True
        if not self.facts.called.get(about, frozenset()).isdisjoint(bond.sentence):
            return True
        if about == self.facts.baseline and not bond.candidates and not self.about:
            return True
        if bond.candidates and not bond.leaves_open:
            return False
        if about == self.about or not w.EVERYBODY.isdisjoint(bond.sentence):
            return True
        return self.others and not bond.here

    def _sign_fits(self, at: int, claim: Claim, value: Fraction, unit: Unit, name: Name) -> bool:
        if value == 0 or claim.sign == "±":
            return True
        if claim.sign:
            return (value < 0) == (claim.sign == "-")
        if value > 0:
            return True
        if not w.SHIFTED.isdisjoint(name.words):
            return True  # "shifted by 300 ticks" tells how far
        # "Fell 6 %" is −6 %, "rose 6 %" is not; a tick's sign is part of its name.
        return unit is not Unit.TICK and at in self.read.falling and at not in self.read.rising

    def _news_refusal(self, claim: Claim, reading: Reading, figure: Figure) -> str:
        if figure.unit.measure is Measure.MONEY or reading.measure is Measure.MONEY or figure.unit is Unit.TICK:
            return NEWS_PRICED
        return "" if figure.source and figure.source.lower() in self._sentence(claim).lower() else NEWS_ALONE

    def _sentence(self, claim: Claim) -> str:
        before = self.text[max(0, claim.start - _BESIDE) : claim.start]
        behind = self.text[claim.end : claim.end + _BESIDE]
        ends = ("? ", "! ", ". ", "; ", "\n")
        start = max(before.rfind(end) for end in ends) + 1
        stops = [stop for end in ends if (stop := behind.find(end)) >= 0]
        return before[start:] + claim.text + behind[: min(stops, default=len(behind))]

    # ── what follows from two of them ─────────────────────────────────────────────────────────────────────────────

    def _derive(self, pending: list[tuple[int, Claim, str]]) -> None:
        shelves = self._derived_shelves()
        for at, claim, why in pending:
            follows = (entry for reading in claim.readings for entry in self._follows(at, claim, reading, shelves))
            entry = next(follows, None)
            if entry is not None:
                self.supported.append(Backing(claim, entry.derivation, entry.facts))
            elif at in self.read.frames:
                self.exempt.append(Exempt(claim.start, claim.end, claim.text, "timeframe"))
            else:
                self.unsupported.append(replace(claim, problem=why))

    def _follows(self, at: int, claim: Claim, reading: Reading, shelves: _Shelves) -> Iterable[_Entry]:
        shelf = shelves.get(reading.measure) if reading.value else None  # "0.0" would follow from anything small
        for value, entry in shelf.near(reading) if shelf else ():
            if claim.sign in {"+", "-"} and not (entry.signed and (value < 0) == (claim.sign == "-")):
                continue
            if self._may_print(at, entry, reading, signed=claim.sign in {"+", "-"}):
                yield entry

    def _may_print(self, at: int, entry: _Entry, reading: Reading, signed: bool) -> bool:
        """Whether a figure written so, in these words, may mean this derivation."""
        if reading.symbol and not _same_token(reading.symbol, entry.facts[0].symbol):
            return False
        bond = self.read.bonds[at]
        if not any(_is_called(bond, parsed(figure.name)) for figure in entry.facts):
            return False  # "LVR is 12 USDC" is no difference of fees and cost
        if not any(self._is_whose(bond, figure.about) for figure in entry.facts):
            return False
        before, behind = self.read.before[at], self.read.behind[at]
        multiple = reading.unit is Unit.RATIO
        if entry.derivation is Derivation.ANNUAL:
            return not multiple
        if entry.derivation is Derivation.RATIO:
            if multiple:
                return entry.unit is Unit.RATIO and bool(behind) and behind[0] in w.MULTIPLIED
            if reading.measure is None:
                return "ratio" in self.read.vocabulary
            if "of" in behind[:4] or before[:2] == ("which", "of"):
                return True
            equated = bool(before) and before[0] in (w.EQUATING if entry.unit is Unit.RATIO else w.REPAYING)
            return equated and all(id(figure) in self.printed for figure in entry.facts)
        if multiple:
            return False
        if bond.stated and entry.derivation is Derivation.DIFFERENCE and w.COMPARED.isdisjoint(behind[:1]):
            return False  # "LVR of 12 USDC" is LVR
        if signed:
            return True  # what is set against what has been seen to
        if entry.unit is Unit.TICK and self.naming.are_ends(*(parsed(figure.name) for figure in entry.facts)):
            return True  # "on 770 ticks"
        if entry.derivation is Derivation.CHANGE and not w.SPANNING.isdisjoint((*before[:2], *behind[:2])):
            return True  # "a 9.4 % range"
        if behind and behind[0] in w.STATED:
            return False
        stated = before[:1] and (before[0] in w.STATING or (before[0] == "of" and w.COMPARED.isdisjoint(before[1:2])))
        compared = not (stated or w.COMPARED.isdisjoint(before)) or not w.COMPARED.isdisjoint(behind)
        return compared or (entry.derivation is Derivation.CHANGE and "of" in behind[:1])

    def _derived_shelves(self) -> _Shelves:
        """What two facts give that the text names or prints. Over all pairs of a context nearly every figure would be
        'derivable': forty times in hours give some ratio for each whole percentage."""
        naming = self.naming
        beside = not w.BESIDE.isdisjoint(self.read.vocabulary)
        ends: dict[Measure, list[_End]] = {}
        for figure, name in zip(self.facts.figures, self.facts.names, strict=True):
            printed = self.printed.get(id(figure))
            spoken_of = not figure.news and naming.subject(figure.about)
            if printed is None and not spoken_of:
                continue
            end = _End(figure, name, printed, naming.place(name) if spoken_of else None)
            if end.at is not None or naming.goes_without_saying(name, beside):
                ends.setdefault(figure.unit.measure, []).append(end)
        found: dict[Measure | None, list[tuple[Fraction, _Entry]]] = {}
        annual = any(word in self.read.vocabulary for word in w.ANNUAL)
        for kind in ends.values():
            for a in kind if annual else ():
                if a.figure.per_day is not None and a.at is not None:
                    _shelve(found, _annual(a.figure))
            for a, b in permutations(kind, 2):
                if not _alike(a, b) or not _tied(a, b):
                    continue
                if naming.are_ends(a.name, b.name) and a.figure.about == b.figure.about:
                    signed = False
                elif _told(naming, a, b, beside) and _told(naming, b, a, beside):
                    signed = a.at is not None and b.at is not None and naming.sets_against(a.at, b.at)
                else:
                    continue
                for entry in _derivations(a.figure, b.figure, signed):
                    _shelve(found, entry)
        return {measure: _Shelf(entries) for measure, entries in found.items()}


@dataclass(frozen=True, slots=True)
class _End:
    """A fact that may be one end of a derivation, and where the text prints or names it."""

    figure: Figure
    name: Name
    printed: int | None
    named: int | None

    @property
    def at(self) -> int | None:
        return self.named if self.printed is None else self.printed


def _told(naming: Naming, end: _End, other: _End, beside: bool) -> bool:
    """Whether the reader knows this end: it is printed, or named under the stress that is spoken of, or it is the price
    that something printed lies above or below."""
    if end.printed is not None:
        return True
    if end.named is None:
        return beside and other.printed is not None and end.name.words == PRICE
    return naming.stressed(end.name) or (other.printed is not None and other.name.stress == end.name.stress)


def _tied(a: _End, b: _End) -> bool:
    """Whether a reader would compare the two: things of one subject, or one thing of two subjects."""
    if a.printed is not None and b.printed is not None:
        return True
    whose, other = a.figure.about, b.figure.about
    if whose != other and whose and other:
        return a.name == b.name
    if a.name == b.name and whose == other:
        return False
    # The 1× buffer is held against the 1× floor; 1× against 2× only as one thing under two stresses.
    return a.name.stress == b.name.stress or not (a.name.stress and b.name.stress) or a.name.words == b.name.words


def _alike(a: _End, b: _End) -> bool:
    """Whether two of one measure are of one kind. Shares of different things (odds of exit, time in range) are not."""
    unit, other = a.figure.unit, b.figure.unit
    if unit.measure is Measure.SHARE:
        return not a.name.words.isdisjoint(b.name.words)
    return unit.measure is not Measure.MONEY or (unit is other and _token(a.figure.symbol) == _token(b.figure.symbol))


def _derivations(a: Figure, b: Figure, signed: bool) -> Iterable[_Entry]:
    first, second = a.canonical, b.canonical
    yield _Entry(first - second, a.unit, Derivation.DIFFERENCE, (a, b), signed)
    if a.unit.measure in {Measure.TICK, Measure.BLOCK} or second == 0:
        return
    yield _Entry(first / second, Unit.RATIO, Derivation.RATIO, (a, b))
    yield _Entry((first - second) / second, Unit.RATIO, Derivation.CHANGE, (a, b), signed)
    if b.per_day is not None and a.unit is Unit.AMOUNT:
        # An amount over a daily one is a time: "1.6 days of net carry".
        yield _Entry(first / second / b.per_day * 24, Unit.HOURS, Derivation.RATIO, (a, b))


def _annual(rate: Figure) -> _Entry:
    return _Entry(rate.canonical * Fraction(rate.per_day or 0) * _DAYS_A_YEAR, rate.unit, Derivation.ANNUAL, (rate,))


def _shelve(found: dict[Measure | None, list[tuple[Fraction, _Entry]]], entry: _Entry) -> None:
    found.setdefault(entry.unit.measure, []).append((entry.value, entry))
    if entry.derivation is not Derivation.CHANGE and (entry.unit is Unit.RATIO or entry.unit is entry.facts[0].unit):
        found.setdefault(None, []).append((entry.value / entry.unit.scale, entry))


def _is_called(bond: Bond, name: Name) -> bool:
    """Whether a fact of this name is what the figure is called, under the stress it is said to be under."""
    if bond.called and all(words.isdisjoint(name.words) for words in bond.called):
        return False
    if bond.called or bond.stress:
        for word in name.words & w.SPECIAL.keys():
            if w.SPECIAL[word].isdisjoint(bond.sentence):
                return False
    return not bond.stress or name.stress == bond.stress


def _fits(reading: Reading, figure: Figure) -> bool:
    if figure.unit is Unit.RATIO and reading.unit in {Unit.BPS, Unit.PIPS}:
        return False  # nobody writes a multiple in basis points
    return not reading.symbol or _same_token(reading.symbol, figure.symbol)


def _tells(reading: Reading) -> bool:
    """Whether a figure has the three digits that make it tell which of many facts it prints."""
    return reading.value >= 200 * reading.tolerance


def _same_token(written: str, symbol: str) -> bool:
    if not symbol:
        return True
    written, symbol = _token(written), _token(symbol)
    return written == symbol or (written == "USD" and symbol in w.DOLLARS) or (symbol == "USD" and written in w.DOLLARS)


def _token(symbol: str) -> str:
    return w.WRAPPED.get(symbol.upper(), symbol.upper())


def _magnitude(value: Fraction) -> float:
    try:
        return abs(float(value))
    except OverflowError:
        return float("inf")


def _place(item: Claim | Exempt) -> int:
    return item.start
