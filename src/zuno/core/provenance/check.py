"""The law of numbers: a text passes when each of its figures is a fact it was given, or follows from two it names."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from zuno.core.provenance import words as w
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
from zuno.core.provenance.naming import Name, Naming, parsed
from zuno.core.provenance.reading import Read, read

NO_FACT = "no fact of the context gives this figure"
NO_ID = "no address or id of the context reads like this"
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
    in_order: bool = True
    """For a−b and (a−b)/b: the text speaks of a before b, so a written sign means what it says."""


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


class Facts:
    """A context's figures and ids, indexed once for the many texts that are written about it."""

    def __init__(self, figures: Iterable[Figure], ids: Iterable[str] = ()) -> None:
        self.figures = tuple(figures)
        self.names = tuple(parsed(figure.name) for figure in self.figures)
        self.symbols = frozenset(figure.symbol.upper() for figure in self.figures if figure.symbol)
        self._ids = frozenset(one.lower() for one in ids)
        by_measure: dict[Measure | None, list[tuple[Fraction, _Entry]]] = {None: []}
        for figure in self.figures:
            entry = _Entry(figure.canonical, figure.unit, Derivation.FACT, (figure,))
            by_measure.setdefault(figure.unit.measure, []).append((figure.canonical, entry))
            by_measure[None].append((figure.exact, entry))
            if figure.unit.measure is Measure.SHARE and figure.unit is not Unit.RATIO:
                by_measure[None].append((figure.canonical, entry))  # a bare 0.0005 is 5 bps
        self.shelves = {measure: _Shelf(entries) for measure, entries in by_measure.items()}

    def knows_id(self, written: str) -> bool:
        """Whether an id is one of ours, whole or abbreviated to its head and tail ("0x5d63…3d64")."""
        head, dots, tail = written.lower().replace("...", "…").replace("..", "…").partition("…")
        if not dots:
            return head in self._ids
        if len(head.removeprefix("0x")) < _SHORTEST_ID:
            return False
        return any(one.startswith(head) and one.endswith(tail) for one in self._ids)


def check(text: str, facts: Facts, about: str = "") -> Checked:
    """Trace every figure of `text` to `facts`. `about` is the subject the text was asked about ("candidate 2")."""
    return _Check(text, facts, about).run()


class _Check:
    def __init__(self, text: str, facts: Facts, about: str) -> None:
        self.text = text
        self.facts = facts
        self.about = about
        self.read: Read = read(text, facts.symbols)
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
                if not (_fits(reading, figure) and self._sign_fits(at, claim, value, figure.unit)):
                    continue
                if figure.news:
                    refusal = self._news_refusal(claim, reading, figure)
                    if refusal:
                        why = refusal
                        continue
                else:
                    self.printed.setdefault(id(figure), claim.start)
                if backing is None or backing.facts[0].news:
                    backing = entry
        if backing is None:
            return why
        self.supported.append(Backing(claim, Derivation.FACT, backing.facts))
        return ""

    def _sign_fits(self, at: int, claim: Claim, value: Fraction, unit: Unit) -> bool:
        if value == 0 or claim.sign == "±":
            return True
        if claim.sign:
            return (value < 0) == (claim.sign == "-")
        if value > 0:
            return True
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
            entry = next(
                (entry for reading in claim.readings for entry in self._follows(claim, reading, shelves)), None
            )
            if entry is not None:
                self.supported.append(Backing(claim, entry.derivation, entry.facts))
            elif at in self.read.frames:
                self.exempt.append(Exempt(claim.start, claim.end, claim.text, "timeframe"))
            else:
                self.unsupported.append(replace(claim, problem=why))

    def _follows(self, claim: Claim, reading: Reading, shelves: dict[Measure | None, _Shelf]) -> Iterable[_Entry]:
        shelf = shelves.get(reading.measure)
        for value, entry in shelf.near(reading) if shelf else ():
            if not _may_print(entry, reading):
                continue
            if claim.sign in {"+", "-"} and not (entry.in_order and (value < 0) == (claim.sign == "-")):
                continue
            yield entry

    def _derived_shelves(self) -> dict[Measure | None, _Shelf]:
        """What two facts give that the text names or prints. Over all pairs of a context nearly every figure would be
        'derivable': forty times in hours give some ratio for each whole percentage."""
        naming = Naming(self.read, self.about)
        ends: list[tuple[Figure, Name, int | None]] = []
        for figure, name in zip(self.facts.figures, self.facts.names, strict=True):
            if figure.news:
                continue
            place = self.printed.get(id(figure))
            if place is None and naming.subject(figure.about):
                place = naming.place(name)
                if place is None and not (naming.spanning and name.words <= {"lower", "upper"}):
                    continue
            elif place is None:
                continue
            ends.append((figure, name, place))
        found: dict[Measure | None, list[tuple[Fraction, _Entry]]] = {}
        annual = any(word in self.read.vocabulary for word in w.ANNUAL)
        turned = any(word in self.read.vocabulary for word in w.AGAINST)
        for a, a_name, a_place in ends:
            if annual and a.per_day is not None:
                _shelve(found, _annual(a))
            for b, b_name, b_place in ends:
                if a is b or not _alike(a, b) or not self._tied(naming, a, a_name, b, b_name):
                    continue
                spanned = a_place is None or b_place is None
                if spanned and not naming.are_ends(a_name, b_name):
                    continue
                in_order = spanned or turned or (a_place or 0) < (b_place or 0)
                for entry in _derivations(a, b, in_order):
                    _shelve(found, entry)
        return {measure: _Shelf(entries) for measure, entries in found.items()}

    def _tied(self, naming: Naming, a: Figure, a_name: Name, b: Figure, b_name: Name) -> bool:
        """Whether a reader would compare the two: things of one subject, or one thing of two subjects."""
        if id(a) in self.printed and id(b) in self.printed:
            return True
        if a.about == b.about or not a.about or not b.about:
            if a_name == b_name and a.about == b.about:
                return False
            # The 1× buffer is held against the 1× floor; 1× against 2× only as one thing under two stresses.
            return (
                a_name.stress == b_name.stress or not (a_name.stress and b_name.stress) or a_name.words == b_name.words
            )
        return a_name == b_name and naming.subject(a.about) and naming.subject(b.about)


def _alike(a: Figure, b: Figure) -> bool:
    if a.unit.measure is not b.unit.measure:
        return False
    return a.unit.measure is not Measure.MONEY or (a.unit is b.unit and _token(a.symbol) == _token(b.symbol))


def _derivations(a: Figure, b: Figure, in_order: bool) -> Iterable[_Entry]:
    first, second = a.canonical, b.canonical
    yield _Entry(first - second, a.unit, Derivation.DIFFERENCE, (a, b), in_order)
    if a.unit.measure in {Measure.TICK, Measure.BLOCK} or second == 0:
        return
    yield _Entry(first / second, Unit.RATIO, Derivation.RATIO, (a, b))
    yield _Entry((first - second) / second, Unit.RATIO, Derivation.CHANGE, (a, b), in_order)
    if b.per_day is not None and a.unit is Unit.AMOUNT:
        # An amount over a daily one is a time: "1.6 days of net carry".
        yield _Entry(first / second / b.per_day * 24, Unit.HOURS, Derivation.RATIO, (a, b))


def _annual(rate: Figure) -> _Entry:
    return _Entry(rate.canonical * Fraction(rate.per_day or 0) * _DAYS_A_YEAR, rate.unit, Derivation.ANNUAL, (rate,))


def _shelve(found: dict[Measure | None, list[tuple[Fraction, _Entry]]], entry: _Entry) -> None:
    found.setdefault(entry.unit.measure, []).append((entry.value, entry))
    if entry.derivation is not Derivation.CHANGE:
        found.setdefault(None, []).append((entry.value / entry.unit.scale, entry))


def _may_print(entry: _Entry, reading: Reading) -> bool:
    """Whether a figure written so may mean this derivation."""
    if reading.symbol and not _same_token(reading.symbol, entry.facts[0].symbol):
        return False
    if entry.derivation is Derivation.RATIO and entry.unit is Unit.RATIO:
        shares = entry.facts[0].unit.measure is Measure.SHARE
        return reading.unit is Unit.RATIO or reading.measure is None or not shares
    if entry.derivation is Derivation.CHANGE:
        return reading.unit is not Unit.RATIO
    return reading.unit is not Unit.RATIO or entry.unit is Unit.RATIO


def _fits(reading: Reading, figure: Figure) -> bool:
    return not reading.symbol or _same_token(reading.symbol, figure.symbol)


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
