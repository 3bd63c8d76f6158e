"""A line cut into tokens: ids, amounts, spans, chains and pairs first, then words, mended where that can be done."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from zuno.doors.reading.spelling import nearest, one_slip_from
from zuno.doors.reading.words import (
    ARTICLES,
    DANGEROUS_VERBS,
    KNOWN,
    LONGEST_PHRASE,
    MENDABLE,
    NEGATIONS,
    PHRASES,
    WORDS,
)
from zuno.lp.model.chains import chain_named
from zuno.lp.service.wish_words import CHAIN_WORDS, TOKENS, token_named

MAX_TEXT: Final = 400
"""Longer is no line of a shell: it is asked back unread."""

_NUMBER = r"[0-9]{1,30}(?:,[0-9]{3}){0,9}(?:\.[0-9]{1,30})?|\.[0-9]{1,30}"
_PIECE = re.compile(
    r"(?P<plan>plan_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<request>req_[0-9a-f]{16})(?![0-9a-z_])"
    r"|(?P<alert>alert_[0-9a-f]{12})(?![0-9a-z_])"
    r"|(?P<badid>(?:plan|req|alert)_?[0-9a-z]*[0-9][0-9a-z_]*)"
    r"|(?P<option>--?[a-z][a-z-]*)"
    r"|(?P<hex>0x[0-9a-f]*)"
    rf"|(?P<percent>[-+]?(?:{_NUMBER})\s?(?:%|percent\b|pct\b))"
    rf"|(?P<fee>(?:{_NUMBER})\s?(?:bps?|pips?|basis points?)\b)"
    r"|(?P<span>[0-9]{1,6}\s?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|m|h|d|w)\b)"
    rf"|(?P<amount>(?:{_NUMBER})\s?(?P<unit>[a-z][a-z0-9.]{{0,15}})\b)"
    r"|(?P<number>#?[0-9]+(?![0-9]*[.,][0-9]))(?![0-9a-z_])"
    r"|(?P<broken>[0-9]+(?:[.,][0-9]+)+)"
    r"|(?P<pair>[a-z][a-z0-9.]{0,15}\s?/\s?[a-z][a-z0-9.]{0,15})"
    r"|(?P<word>[a-z]+(?:[-'&][a-z]+)*)"
    r"|(?P<mark>[?])"
    r"|(?P<joint>[,;])"
    r"|(?P<dull>[.!:()\s])"
    r"|(?P<odd>\w+|\S)"
)
_SPANS = {"mi": "m", "m": "m", "h": "h", "d": "d", "w": "w"}
_BEFORE_ONE = frozenset({"a", "an", "last", "past"})
_ONE_SPAN = {"minute": "1m", "hour": "1h", "day": "1d", "week": "1w"}
_SAME = str.maketrans({"’": "'", "‘": "'", "−": "-", "–": "-", "“": '"', "”": '"'})


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a particular: its concept, and what it was typed as."""

    concept: str
    text: str
    value: str = ""
    mended: bool = False
    definite: bool = False
    """Whether `the` stood before it."""

    @property
    def said(self) -> str:
        return f"{self.text!r} as {self.value!r}" if self.mended else repr(self.text)


def tokens_of(text: str) -> list[Token]:
    """The line's tokens, phrases joined. Anything that is no plain letter or digit is a token `ODD`."""
    plain = text.translate(_SAME)
    folded = unicodedata.normalize("NFKC", plain)
    odd = [Token("ODD", "unusual characters")] if folded != plain else []
    return [*odd, *_join_phrases(_with_chains(_with_articles(list(_pieces(folded.lower())))))]


def _pieces(text: str) -> Iterator[Token]:
    for found in _PIECE.finditer(text):
        kind, said = str(found.lastgroup), found.group()
        if kind == "unit":
            kind = "amount"
        match kind:
            case "dull":
                continue
            case "amount":
                yield from _amount(said, found["unit"])
            case "word":
                yield _word(said)
            case "percent":
                yield Token("PERCENT", said, _percent(said))
            case "fee":
                yield Token("FEE", said, said)
            case "span":
                number, unit = re.split(r"(?<=[0-9])\s?(?=[a-z])", said, maxsplit=1)
                yield Token("SPAN", said, number + (_SPANS.get(unit[:2]) or _SPANS[unit[0]]))
            case "pair":
                names = [part.strip() for part in said.split("/")]
                yield Token("PAIR", said, "/".join(map(token_named, names)))
            case "number":
                yield Token("NUMBER", said, said.lstrip("#"))
            case "mark":
                yield Token("QUESTION", "?")
            case "joint":
                yield Token("JOINT", said)
            case "plan" | "request" | "alert":
                yield Token({"plan": "PLANID", "request": "REQUESTID", "alert": "ALERTID"}[kind], said, said)
            case "badid":
                yield Token("BADID", said)
            case "broken":  # "1,5": in pieces, what is behind the comma would be read for the whole
                yield Token("BADNUMBER", said)
            case _:
                yield Token("ODD", said)


def _percent(said: str) -> str:
    return re.sub(r"\s?(?:%|percent|pct)$", "", said).removeprefix("+")


def _amount(said: str, unit: str) -> Iterator[Token]:
    """A number and a token's name are an amount; before any other word it is a number by itself."""
    number = said[: -len(unit)].strip()
    if unit in TOKENS:
        yield Token("AMOUNT", said, f"{number} {token_named(unit)}")
        return
    glued = not said[: -len(unit)].endswith(" ")
    if glued or not number.isdigit():
        yield Token("ODD", said)
    else:
        yield Token("NUMBER", number, number)
        yield _word(unit)


@lru_cache(maxsize=4_096)
def _word(said: str) -> Token:
    word = said.removesuffix("'s") if said.removesuffix("'s") in WORDS and said not in KNOWN else said
    if word in WORDS or word in KNOWN:
        return Token(WORDS.get(word, "FILL"), said, word)
    if word in TOKENS:
        return Token("TOKEN", said, word)
    if one_slip_from(word, DANGEROUS_VERBS):
        return Token("SLIP", said, str(one_slip_from(word, DANGEROUS_VERBS)))
    if one_slip_from(word, NEGATIONS):
        return Token("NEG", said, word)
    if word in CHAIN_WORDS or chain_named(word):
        return Token("UNKNOWN", said, word)  # `_with_chains` knows what to make of it
    if mended := nearest(word, MENDABLE):
        return Token(MENDABLE[mended], said, mended, mended=True)
    return Token("UNKNOWN", said, word)


def _with_articles(tokens: list[Token]) -> list[Token]:
    """Articles go; what stood behind `the` keeps that in mind."""
    kept: list[Token] = []
    definite = False
    for at, token in enumerate(tokens):
        if token.concept == "FILL" and token.value in ARTICLES and not _one_span(tokens, at):
            definite = definite or token.value == "the"
            continue
        kept.append(replace(token, definite=definite))
        definite = False
    return kept


def _one_span(tokens: list[Token], at: int) -> bool:
    return False if at + 1 >= len(tokens) else tokens[at].value in {"a", "an"} and tokens[at + 1].value in _ONE_SPAN


def _with_chains(tokens: list[Token]) -> list[Token]:
    """Chains by name or id: `on base`, `base sepolia`, `chain 8453`; a token's name only behind `on` or `to`."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        token, behind = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
        before = out[-1].value if out else ""
        if token.value in _BEFORE_ONE and behind is not None and behind.value in _ONE_SPAN:
            out.append(Token("SPAN", f"{token.text} {behind.text}", _ONE_SPAN[behind.value]))
            at += 2
            continue
        both = f"{token.value}-{behind.value}" if behind is not None else ""
        if both and chain_named(both):
            out.append(Token("CHAIN", f"{token.text} {behind.text}" if behind else token.text, both))
            at += 2
            continue
        out.append(_chain_token(token, before) or token)
        at += 1
    return out


def _chain_token(token: Token, before: str) -> Token | None:
    if token.concept not in {"UNKNOWN", "TOKEN", "NUMBER"}:
        return None
    info = chain_named(token.value)
    if token.value in CHAIN_WORDS:
        return Token("CHAIN", token.text, info.name if info else token.value)
    if info and before in {"on", "to", "chain", "use"}:
        return Token("CHAIN", token.text, info.name)
    return None


def _join_phrases(tokens: list[Token]) -> list[Token]:
    """Phrases become one token, the longest first."""
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        for length in range(min(LONGEST_PHRASE, len(tokens) - at), 0, -1):
            part = tokens[at : at + length]
            concept = PHRASES.get(tuple(token.value for token in part))
            if concept is not None:
                said = " ".join(token.text for token in part)
                value = " ".join(token.value for token in part)
                out.append(
                    Token(
                        concept, said, value, any(token.mended for token in part), any(token.definite for token in part)
                    )
                )
                at += length
                break
        else:
            out.append(tokens[at])
            at += 1
    return out
