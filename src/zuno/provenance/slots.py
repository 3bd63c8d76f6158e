"""Texts with slots: find the slots, mask them, and print the text with its figures."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from zuno.provenance.facts import ID, LONGEST_ID, FactSheet, Figure

_SLOT: Final = re.compile(r"\{([^{}]*)\}")
_OWN: Final = re.compile(r"\{(c\d+\.)")
_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s|$)")
MARK: Final = "\ue000"
"""Replaces a slot where prose alone is read."""

_LOSSES = "loses|losing|lose|lost|bleeds|bleeding|bleed|fell|dropped|slipped|declined|down|loss of|losses of"
LOSING: Final = re.compile(rf"\b(?:{_LOSSES})(?: (?:about|by|roughly|nearly|only|some|a|around|another))* ?$", re.I)


@dataclass(frozen=True, slots=True)
class Slot:
    id: str
    start: int
    end: int


def find_slots(text: str) -> tuple[list[Slot], list[str]]:
    """The slots of a text, and the pieces with braces that are none."""
    slots, broken = [], []
    for match in _SLOT.finditer(text):
        if ID.fullmatch(match[1]) and len(match[1]) <= LONGEST_ID:
            slots.append(Slot(match[1], match.start(), match.end()))
        else:
            broken.append(match[0])
    if re.search(r"[{}]", _SLOT.sub("", text)):
        broken.append("a brace without its pair")
    return slots, broken


def mask_slots(text: str, slots: Iterable[Slot]) -> str:
    """The prose with one mark in the place of each slot."""
    return _replace_slots(text, slots, lambda slot: MARK)


def _replace_slots(text: str, slots: Iterable[Slot], write: Callable[[Slot], str]) -> str:
    parts, last = [], 0
    for slot in slots:
        parts += [text[last : slot.start], write(slot)]
        last = slot.end
    return "".join(parts) + text[last:]


def render(text: str, facts: Mapping[str, Figure], about: int | None = None) -> str:
    """The text as people read it. `about`: its candidate; a figure of another candidate or of a stress that its
    sentence does not name is printed with that name. A slot that cites no fact says so."""

    def write(slot: Slot) -> str:
        fact = facts.get(slot.id)
        if fact is None:
            return f"[no fact {slot.id}]"
        losing = fact.number < 0 and bool(LOSING.search(text[: slot.start]))
        return fact.print(absolute=losing) + _attribution(text, slot, fact, facts, about)

    return _replace_slots(text, find_slots(text)[0], write)


def annotate(text: str, facts: Mapping[str, Figure]) -> str:
    """The text for a brief: each slot stays, and its value stands behind it."""

    def write(slot: Slot) -> str:
        fact = facts.get(slot.id)
        return text[slot.start : slot.end] + ("" if fact is None else f" ({fact.print()})")

    return _replace_slots(text, find_slots(text)[0], write)


def cite_round(text: str, number: int) -> str:
    """The same text for a later round: its candidates are those of round `number`."""
    return _OWN.sub(rf"{{r{number}.\1", text)


def cut(text: str, facts: Mapping[str, Figure], limit: int, about: int | None = None) -> str:
    """The text within `limit` printed characters: whole words, never within a slot."""
    if len(render(text, facts, about)) <= limit:
        return text
    words = re.findall(r"\S+\s*", text)
    low, high = 0, len(words)
    while low < high:  # the most words that fit
        middle = (low + high + 1) // 2
        fits = len(render("".join(words[:middle]).rstrip() + "…", facts, about)) <= limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return "".join(words[:low]).rstrip().rstrip(",;:—-") + "…"


def cited_ids(texts: Iterable[str]) -> Iterator[str]:
    return (slot.id for text in texts for slot in find_slots(text)[0])


def list_cited(texts: Iterable[str], facts: Mapping[str, Figure]) -> dict[str, dict[str, str]]:
    """Each fact that a text cites, as it is kept beside the text: its exact value, its unit and what was printed."""
    cited = ((id_, facts.get(id_)) for id_ in cited_ids(texts))
    return {
        id_: {"value": str(fact.value), "unit": fact.unit.value, "printed": fact.print()}
        for id_, fact in cited
        if fact is not None
    }


def sentence_around(text: str, at: int) -> tuple[int, int]:
    """Where the sentence around `at` begins and ends; a point within a slot ends nothing."""
    start, end = 0, len(text)
    for match in _SENTENCE_END.finditer(text):
        if match.end() <= at:
            start = match.end()
        else:
            end = match.end()
            break
    return start, end


def candidate_mentions(sentence: str, facts: Mapping[str, Figure]) -> list[tuple[int, int, int]]:
    """The candidates a sentence names: start, end, number."""
    aliases = facts.aliases if isinstance(facts, FactSheet) else {}
    mentions = [
        (match.start(), match.end(), int(number))
        for match in re.finditer(r"(?i)\b(?:candidates?|options?|moves?)((?:[ ,/&]|and|or|vs\.?|#|\d+)*\d+)", sentence)
        for number in re.findall(r"\d+", match[1])
    ]
    if aliases:
        words = "|".join(map(re.escape, aliases))
        mentions += [
            (match.start(), match.end(), aliases[match[1].lower()])
            for match in re.finditer(rf"(?i)\b({words})\b", sentence)
        ]
    return sorted(mentions)


def _attribution(text: str, slot: Slot, fact: Figure, facts: Mapping[str, Figure], about: int | None) -> str:
    if fact.candidate is None:
        return ""
    start, end = sentence_around(text, slot.start)
    sentence = text[start:end]
    parts = []
    named = {number for _, _, number in candidate_mentions(sentence, facts)}
    if fact.round is not None:
        if not re.search(rf"(?i)\bround {fact.round}\b", sentence):
            parts.append(f"candidate {fact.candidate} of round {fact.round}")
    elif fact.candidate != about and fact.candidate not in named:
        parts.append(f"candidate {fact.candidate}")
    if fact.stress is not None and fact.stress > 1 and not re.search(rf"\b{fact.stress}(?:\.0)? ?[×x]", sentence):
        parts.append(f"at {fact.stress}×")
    return f" ({', '.join(parts)})" if parts else ""
