"""Mend slips of the keyboard: a word that no example has, one letter away from exactly one that some example has."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from zuno.doors.reading.intents import load_catalogue
from zuno.doors.reading.orders import CONDITIONS, NEGATIONS
from zuno.lp.service.phrase import RISK, SPECIAL_WORDS

_WORD = re.compile(r"(?<![\w/.-])[a-z][a-z']{3,23}(?![\w/.-])", re.IGNORECASE)
_SHORTEST: Final = 4


def mend(text: str) -> str:
    """The line with its slips mended. A `not` is never the result; an order is taken from what was typed alone."""
    return _WORD.sub(lambda found: nearest_word(found.group().lower()) or found.group(), text)


@lru_cache(maxsize=4_096)
def nearest_word(word: str) -> str | None:
    """The known word one slip away; None where there is none, or several that are as likely."""
    if word in load_catalogue().vocabulary or word in SPECIAL_WORDS or word.removesuffix("s") in SPECIAL_WORDS:
        return None
    if any(word == no or _is_one_slip(word, no) for no in NEGATIONS | CONDITIONS if len(no) >= _SHORTEST - 1):
        return None  # it may be a no
    near = {other for shorter in _with_a_letter_less(word) for other in _mendable().get(shorter, ())}
    near = {other for other in near if _is_one_slip(word, other)}
    swapped = {other for other in near if sorted(other) == sorted(word)}
    alike = {other for other in near if (other[0], other[-1]) == (word[0], word[-1])}
    best = swapped or alike or near
    return best.pop() if len(best) == 1 else None


def _with_a_letter_less(word: str) -> list[str]:
    return [word, *(word[:at] + word[at + 1 :] for at in range(len(word)))]


def _is_one_slip(word: str, other: str) -> bool:
    """A letter too many, too few or changed, or two neighbours swapped."""
    if len(word) != len(other):
        longer, shorter = sorted((word, other), key=len, reverse=True)
        return shorter in _with_a_letter_less(longer)
    wrong = [at for at, (ours, theirs) in enumerate(zip(word, other, strict=True)) if ours != theirs]
    swapped = len(wrong) == 2 and wrong[1] == wrong[0] + 1 and word[wrong[0]] == other[wrong[1]]
    return len(wrong) == 1 or (swapped and word[wrong[1]] == other[wrong[0]])


@lru_cache(maxsize=1)
def _mendable() -> Mapping[str, set[str]]:
    """Known words by what is left of them without one letter: two words that share one differ by one slip."""
    known = load_catalogue().vocabulary - NEGATIONS - CONDITIONS
    table: dict[str, set[str]] = defaultdict(set)
    for word in known | RISK.keys():
        if len(word) >= _SHORTEST and word.isalpha():
            for shorter in _with_a_letter_less(word):
                table[shorter].add(word)
    return table
