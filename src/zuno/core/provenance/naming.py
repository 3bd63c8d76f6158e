"""Which facts a text speaks of: a derivation is traceable only when the reader is told both of its ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from zuno.core.provenance import words as w
from zuno.core.provenance.reading import Read, stems

_PART = re.compile(r"[0-9]+(?:th|st|nd|rd|[A-Za-z×]+)?|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*(?![a-z])|[^\W\d_]+[0-9]*")
_STRESS = re.compile(r"([1-9])[×x]|x([1-9])")
_FRAME = re.compile(r"[0-9]+[hdmw](?![A-Za-z])")

_FILLING = frozenset(
    "price edge realised realized hours hour of the in at per a an day daily probability share strength tier id quote "
    "expected total rate carry position pool break time tick".split()
)
"""Words of a name that say little beside the others; a name of nothing else is taken whole."""

_EDGE = "edge edges room headroom bound bounds boundary boundaries"
_BOTTOM = "lower bottom downside low"
_TOP = "upper top upside high"
_FLOOR = "floor floors margin margins clear clears cleared pass passes passing fail fails miss misses need needs"
# "10 % from the edge" leaves the price unsaid, "2 h over the floor" the buffer.
_STAYING = (
    "buffer buffers survival survive survives cushion last lasts outlive outlives runway median stay stays stands"
)
_SAID: dict[str, frozenset[str]] = {
    name: frozenset(said.split())
    for name, said in {
        "price": f"price spot trade trades trading market pool {_EDGE} {_BOTTOM} {_TOP}",
        "reference": "reference oracle feed",
        "lower": f"{_BOTTOM} below {_EDGE}",
        "upper": f"{_TOP} above {_EDGE}",
        "buffer": f"{_STAYING} {_FLOOR}",
        "median": f"typical normal usual {_STAYING} {_FLOOR}",
        "floor": f"{_FLOOR} minimum required requirement wants asks demands profile",
        "ceiling": "ceiling cap",
        "fees": "fee fees earn earns income gross revenue yield",
        "net": "net nets carry earn earns beat beats",
        "cost": "cost costs costing gas",
        "worth": "worth value position deposit nav capital",
        "exit": "exit exits leave leaves odds",
        "range": "range",
        "holds": "holds holding sits balance",
        "amount": "amount amounts deposit deposits",
        "volatility": "vol volatility sigma σ",
        "even": "breakeven recoup payback repays repaid",
        "offset": "offset shift shifted centre center",
        "width": "width wide wider narrow narrower",
    }.items()
}
"""How prose says a word of a name, where it is not the word itself."""
_SAID |= {"vol": _SAID["volatility"], "value": _SAID["worth"], "fee": _SAID["fees"], "breakeven": _SAID["even"]}

PRICE = frozenset({"price"})
_ENDS = (frozenset({"lower"}), frozenset({"upper"}))
_NUMBERED = frozenset("candidate candidates option options move moves".split())
BASELINE = "hold"


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
    said = [part.lower() for part in _PART.findall(_FRAME.sub(" ", _STRESS.sub(" ", name)))]
    telling = frozenset(part for part in said if part not in _FILLING)
    return Name(telling or frozenset(said), int(stress[1] or stress[2]) if stress else 0)


@lru_cache(maxsize=256)
def number_of(about: str) -> int | None:
    """The number of a subject that has one: 2 of "candidate 2"."""
    last = about.rpartition(" ")[2]
    return int(last) if last.isdigit() else None


class Naming:
    """What a text names, asked of one fact or two at a time: no other fact has a say, so more facts never name less."""

    def __init__(self, read: Read, about: str, baseline: str = BASELINE) -> None:
        self._places = dict(stems(read.vocabulary))
        self._read = read
        self._whose = frozenset({"", baseline, about})
        self._numbered = not _NUMBERED.isdisjoint(self._places)
        self.spanning = not w.SPANNING.isdisjoint(self._places)
        self._against = [self._places[word] for word in w.AGAINST if word in self._places]
        self._subjects: dict[str, bool] = {}

    def subject(self, about: str) -> bool:
        """Whether the text speaks of this subject: its own one, everybody's, doing nothing, or one it mentions.

        Doing nothing is what every move is measured against, said or not.
        """
        if about in self._whose:
            return True
        known = self._subjects.get(about)
        if known is None:
            known = self._subjects[about] = self._mentions(about)
        return known

    def _mentions(self, about: str) -> bool:
        *head, last = about.lower().split() or [""]
        if last.isdigit():
            return self._numbered and int(last) in self._read.counts
        return all(word in self._places for word in (*head, last))

    def stressed(self, name: Name) -> bool:
        """Whether the text speaks of its stress multiple; one left unsaid means 1×."""
        return not name.stress or name.stress in (self._read.stresses or {1})

    def place(self, name: Name) -> int | None:
        """Where the text first says the name's words, at whatever stress; None when it does not."""
        places: list[int] = []
        for word in name.words:
            found = [self._places[said] for said in _SAID.get(word, ()) if said in self._places]
            if word in self._places:
                found.append(self._places[word])
            if not found:
                return None
            places.append(min(found))
        return min(places)

    def goes_without_saying(self, name: Name, beside: bool) -> bool:
        """Whether the fact may be meant though unnamed: a range's ends by its width, the price by what is beside it."""
        return (self.spanning and name.words in _ENDS) or (beside and name.words == PRICE)

    def sets_against(self, a_place: int, b_place: int) -> bool:
        """Whether the text measures the first against the second: "12 h against the floor", "more than hold"."""
        return any(at < b_place and not at < a_place < b_place for at in self._against)

    def are_ends(self, a: Name, b: Name) -> bool:
        """Whether the two are a range's ends and the text speaks of the range as a whole."""
        return self.spanning and {a.words, b.words} == set(_ENDS)
