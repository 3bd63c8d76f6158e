"""Which facts a text speaks of: a derivation is traceable only when the reader is told both of its ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from zuno.core.provenance.reading import Read, stems

_PART = re.compile(r"[0-9]+(?:th|st|nd|rd|[A-Za-z×]+)?|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*(?![a-z])|[^\W\d_]+[0-9]*")
_STRESS = re.compile(r"([1-9])[×x]|x([1-9])")
_FRAME = re.compile(r"[0-9]+[hdmw]")

_FILLING = frozenset(
    "price edge realised realized hours hour of the in at per a an day daily probability share strength tier id quote "
    "expected total rate carry position pool holds amount break time tick".split()
)
"""Words of a name that say little beside the others; a name of nothing else is taken whole."""

_EDGE = "edge edges"
_FLOOR = "floor floors"
# "10 % from the edge" leaves the price unsaid, "2 h over the floor" the buffer.
_STAYING = (
    "buffer buffers survival survive survives cushion last lasts outlive outlives runway median stay stays stands"
)
_SAID: dict[str, frozenset[str]] = {
    name: frozenset(said.split())
    for name, said in {
        "price": f"price spot trade trades trading market pool {_EDGE}",
        "reference": "reference oracle feed",
        "lower": f"lower bottom {_EDGE}",
        "upper": f"upper top {_EDGE}",
        "buffer": f"{_STAYING} {_FLOOR}",
        "median": f"typical {_STAYING} {_FLOOR}",
        "floor": f"{_FLOOR} minimum required requirement wants asks demands needs profile",
        "ceiling": "ceiling cap",
        "fees": "fee fees earn earns income gross revenue yield",
        "net": "net nets carry",
        "cost": "cost costs costing gas",
        "worth": "worth value position deposit nav capital",
        "exit": "exit exits leave leaves odds",
        "range": "range",
        "volatility": "vol volatility sigma σ",
        "even": "breakeven recoup payback repays repaid",
        "offset": "offset shift shifted centre center",
        "width": "width wide wider narrow narrower",
    }.items()
}
"""How prose says a word of a name, where it is not the word itself."""
_SAID |= {"vol": _SAID["volatility"], "value": _SAID["worth"], "fee": _SAID["fees"], "breakeven": _SAID["even"]}

_SPANNING = frozenset("range band wide width span spans spanning edges tick ticks".split())
"""Words that speak of a range's two ends at once, and of nothing else's."""
_ENDS = (frozenset({"lower"}), frozenset({"upper"}))
_NUMBERED = frozenset("candidate candidates option options move moves".split())
_STAYING_PUT = frozenset("hold holds holding stay staying current present".split())


@dataclass(frozen=True, slots=True)
class Name:
    """A fact's name as prose would have it."""

    words: frozenset[str]
    stress: int
    """The stress multiple it belongs to; 0 when to none."""


@lru_cache(maxsize=4096)
def parsed(name: str) -> Name:
    """ "p10 2×" → p10, at 2×; "lowerPrice" and "lower_price" → lower."""
    stress = _STRESS.search(name)
    parts = [part.lower() for part in _PART.findall(_STRESS.sub(" ", name))]
    said = [part for part in parts if not _FRAME.fullmatch(part)]
    telling = frozenset(part for part in said if part not in _FILLING)
    return Name(telling or frozenset(said), int(stress[1] or stress[2]) if stress else 0)


class Naming:
    """What a text names, asked of one fact or two at a time: no other fact has a say, so more facts never name less."""

    def __init__(self, read: Read, about: str) -> None:
        self._places = dict(stems(read.vocabulary))
        self._read = read
        self._about = about
        self._numbered = not _NUMBERED.isdisjoint(self._places)
        self.spanning = not _SPANNING.isdisjoint(self._places)
        self._staying_put = not _STAYING_PUT.isdisjoint(self._places)
        self._subjects: dict[str, bool] = {}

    def subject(self, about: str) -> bool:
        """Whether the text speaks of this subject: its own one, everybody's, or one it mentions."""
        if about in {"", self._about}:
            return True
        known = self._subjects.get(about)
        if known is None:
            known = self._subjects[about] = self._mentions(about)
        return known

    def _mentions(self, about: str) -> bool:
        *head, last = about.lower().split() or [""]
        if last.isdigit():
            return self._numbered and int(last) in self._read.counts
        if last == "hold" and not head:
            return self._staying_put
        return all(word in self._places for word in (*head, last))

    def place(self, name: Name) -> int | None:
        """Where the text first names it; None when it does not. A multiple left unsaid means 1×."""
        if name.stress and name.stress not in (self._read.stresses or {1}):
            return None
        places: list[int] = []
        for word in name.words:
            found = [self._places[said] for said in _SAID.get(word, ()) if said in self._places]
            if word in self._places:
                found.append(self._places[word])
            if not found:
                return None
            places.append(min(found))
        return min(places)

    def are_ends(self, a: Name, b: Name) -> bool:
        """Whether the two are a range's ends and the text speaks of the range as a whole."""
        return self.spanning and {a.words, b.words} == set(_ENDS)
