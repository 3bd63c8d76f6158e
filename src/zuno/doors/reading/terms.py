"""A line as the examples are compared with it: small letters, slots by their kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from zuno.lp.service.phrase import SPECIAL_WORDS, TOKENS, Form, Term, split_phrase

_PLACE = re.compile(r"\{(\w+)\}")
_PLAIN_WORDS = re.compile(r"[a-z' ]*")
_KINDS: Final = {"id": "n", "price": "n", "count": "n", "req": "request"}
_PLAIN: Final = frozenset({Form.WORD, Form.POINTER, Form.ORDINAL, Form.SHARE, Form.ODD, Form.AMBIGUOUS})
_ONE_NUMBER: Final = frozenset({Form.NUMBER, Form.MONEY})
_ABOUT: Final = frozenset({"sim", "devnet"})
"""Chains that also speak for an intent by themselves."""


def normal_words(example: str) -> tuple[str, ...]:
    """An example's words, its places by their kind."""
    words: list[str] = []
    for part in _PLACE.split(example)[::2]:
        plain = part.split()
        is_plain = _PLAIN_WORDS.fullmatch(part) and SPECIAL_WORDS.isdisjoint(plain)
        words += plain if is_plain else normalize(split_phrase(part))
        words.append("")
    places = (f"{{{_KINDS.get(name, name)}}}" for name in _PLACE.findall(example))
    return tuple(word or next(places) for word in words[:-1])


def normalize(terms: Sequence[Term]) -> list[str]:
    words: list[str] = []
    for at, term in enumerate(terms):
        if term.kind in {Form.MARK, Form.JOINT}:
            continue
        if term.kind in _PLAIN:
            words.append(term.low)
        elif term.kind is Form.CHAIN and term.low in TOKENS and at and terms[at - 1].low == "on":
            words.append("{token}")
        elif term.kind is Form.PROFILE:
            words += ["{profile}", *term.low.split()]
        else:
            words.append("{n}" if term.kind in _ONE_NUMBER else f"{{{term.kind.value}}}")
            words += [term.low] if term.low in _ABOUT else []
    return words
