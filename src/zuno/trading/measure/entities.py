"""What a text is about and how that hangs together, by rule: names in headlines, conditions in setups."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from zuno.trading.measure.similarity import split_words

MOST_ENTITIES: Final = 40
_PHRASE: Final = re.compile(r"[;\n]")
_NAME: Final = re.compile(r"(?:[A-Z][\w.&'’-]*|\d[\d.,]*\w*)(?: (?:[A-Z][\w.&'’-]*|\d[\d.,]*\w*))*")
"""Words with a capital or a digit, side by side."""


@dataclass(frozen=True, slots=True)
class Relation:
    source: str
    target: str
    word: str
    """What stands between them."""


@dataclass(frozen=True, slots=True)
class Entities:
    names: tuple[str, ...]
    """In small letters, without the words that say nothing."""
    relations: tuple[Relation, ...]


def find_entities(text: str) -> Entities:
    """A setup's phrases, each an entity related to its subject; or a headline's names, each related to the next."""
    phrases = [phrase for phrase in _PHRASE.split(text) if phrase.strip()]
    return _read_setup(phrases) if len(phrases) > 1 else _read_headline(text)


def _read_setup(phrases: list[str]) -> Entities:
    names: dict[str, None] = {}
    relations: dict[Relation, None] = {}
    for phrase in phrases[:MOST_ENTITIES]:
        words = split_words(phrase)
        if not words:
            continue
        subject, condition = words[0], " ".join(words)
        names[condition] = None
        if condition != subject:
            names[subject] = None
            relations[Relation(subject, condition, "state")] = None
    return Entities(tuple(names), tuple(relations))


def _read_headline(text: str) -> Entities:
    found = [(match, " ".join(split_words(match[0]))) for match in _NAME.finditer(text)][:MOST_ENTITIES]
    named = [(match, name) for match, name in found if name]
    relations: dict[Relation, None] = {}
    for (match, name), (following, other) in pairwise(named):
        between = split_words(text[match.end() : following.start()])
        if name != other:
            relations[Relation(name, other, between[0] if between else "with")] = None
    return Entities(tuple(dict.fromkeys(name for _, name in named)), tuple(relations))
