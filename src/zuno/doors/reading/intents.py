"""The intents of `examples.toml`, and what a reading of a line says of itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal

from zuno.lp.service.phrase import SPECIAL_WORDS, TOKENS, Form, Term, split_phrase

_PLACE = re.compile(r"\{(\w+)\}")
_PLAIN_WORDS = re.compile(r"[a-z' ]*")
_KINDS: Final = {"id": "n", "price": "n", "count": "n", "req": "request"}
_PLAIN: Final = frozenset({Form.WORD, Form.POINTER, Form.ORDINAL, Form.SHARE, Form.ODD, Form.AMBIGUOUS})
_ONE_NUMBER: Final = frozenset({Form.NUMBER, Form.MONEY})
_ABOUT: Final = frozenset({"sim", "devnet"})
"""Chains that also speak for an intent by themselves."""


@lru_cache(maxsize=1)
def _load_raw() -> dict[str, Any]:
    text = (files("zuno.doors.reading") / "examples.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=1)
def _short_forms() -> tuple[re.Pattern[str], Mapping[str, str]]:
    meanings = {form: word for word, forms in _load_raw()["short"].items() for form in forms.split(", ")}
    longest = sorted(map(re.escape, meanings), key=len, reverse=True)
    return re.compile(rf"(?<![\w/.-])(?:{'|'.join(longest)})(?![\w/.-])", re.IGNORECASE), meanings


def write_out(text: str) -> str:
    """The line with the field's short forms written out: `sl` is a stop."""
    pattern, meanings = _short_forms()
    return pattern.sub(lambda match: meanings[match[0].lower()], text)


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


Words = tuple[str, ...]
UNCLEAR: Final = "unclear"
"""Asked back; nothing is done."""
OWN: Final = frozenset({"switch", "help", "exit"})
"""What the shell does by itself."""
_TYPICAL: Final = 3
_GROUP = re.compile(r"\[([^]]*)\]|(\S+)")
POINTED_AT: Final = frozenset({"position", "plan", "alert", "run", "reference"})


_GAPS: Final = {"above": "PRICE"}
"""What stands in a command for a slot that is missing, where its own name would not say it."""


@dataclass(frozen=True, slots=True)
class Intent:
    name: str
    groups: tuple[tuple[Words, bool], ...]
    """The command's words, in groups that stand or fall together; whether the group is optional."""
    signs: frozenset[str]
    """One of these must stand in the line, spelled right; empty: it signs nothing."""
    moves: bool
    answer: str
    """Said where there is no command."""
    nearest: tuple[str, ...]
    """The intents offered beside the answer."""
    needs_one: tuple[str, ...]
    """Slots of which one must be said."""
    examples: tuple[Words, ...]
    takes: frozenset[str]
    needs: tuple[str, ...]
    """In the order they are asked for."""
    vocabulary: frozenset[str]
    """The words of its examples."""

    def command(self, slots: Mapping[str, str], *, gaps: bool = False) -> Words:
        """The words after `zuno`; with `gaps` a slot that is missing stands in capitals."""
        words: list[str] = []
        for group, optional in self.groups:
            wanted = [slot for word in group for slot in _PLACE.findall(word)]
            if optional and not all(slot in slots for slot in wanted):
                continue
            for word in group:
                values = [slots.get(slot, slot.upper() if gaps else "") for slot in _PLACE.findall(word)]
                if not values:
                    words.append(word)
                    continue
                first, *more = values[0].split(" + ")
                words.append(first)
                for value in more:  # an option that is said twice: --amount A --amount B
                    words += [words[-2], value]
        return tuple(words)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything `examples.toml` says."""

    intents: Mapping[str, Intent]
    fillers: frozenset[str]
    courtesies: tuple[Words, ...]
    """What may lead a line and says nothing, the longest first."""
    groups: frozenset[str]
    """Names of groups of commands: they may lead an order too."""
    verbs: frozenset[str]
    """Every word that signs."""
    soft: frozenset[str]
    """Those of them that a line which is clearly something else may hold."""
    questions: Mapping[str, str]
    """What is asked where a slot is missing."""
    vocabulary: frozenset[str]


@lru_cache(maxsize=1)
def load_catalogue() -> Catalogue:
    raw = {name: table for name, table in _load_raw().items() if name != "short"}
    fillers, groups, phrases = raw.pop("fillers").split(), raw.pop("groups").split(), raw.pop("courtesies")
    soft = frozenset(raw.pop("soft").split())
    courtesies = sorted((tuple(line.split()) for line in phrases.strip().splitlines()), key=len, reverse=True)
    questions = raw.pop("questions")
    intents = {name: _intent(name, table) for name, table in raw.items()}
    known = (word for intent in intents.values() for word in intent.vocabulary)
    return Catalogue(
        intents=MappingProxyType(intents),
        fillers=frozenset(fillers),
        courtesies=tuple(courtesies),
        groups=frozenset(groups),
        verbs=frozenset(word for intent in intents.values() for word in intent.signs),
        soft=soft,
        questions=MappingProxyType(questions),
        vocabulary=frozenset([*known, *fillers, *groups, *(word for words in courtesies for word in words)]),
    )


def _intent(name: str, table: Mapping[str, str]) -> Intent:
    command = _GROUP.findall(table.get("command", ""))
    groups = tuple((tuple((group or word).split()), bool(group)) for group, word in command)
    examples = tuple(normal_words(write_out(line)) for line in table["examples"].strip().splitlines())
    return Intent(
        name=name,
        groups=groups,
        signs=frozenset(table.get("signs", "").split()),
        moves=bool(table.get("moves", False)),
        answer=table.get("answer", ""),
        nearest=tuple(table.get("nearest", "").split()),
        needs_one=tuple(table.get("needs", "").split()),
        examples=examples,
        takes=frozenset(_PLACE.findall(table.get("command", ""))),
        needs=tuple(slot for words, optional in groups if not optional for slot in _PLACE.findall(" ".join(words))),
        vocabulary=frozenset(word for example in examples for word in example),
    )


def intent_of(name: str) -> Intent:
    return load_catalogue().intents[name]


@dataclass(frozen=True, slots=True)
class Reading:
    """One line, read. Nothing is done on a reading that asks."""

    text: str
    intent: str
    slots: Mapping[str, str] = field(default_factory=dict)
    """As text that a command takes. `refers` is `last`, `first` … of what was shown, `holds` the token or pair of the
    position that is meant."""
    confidence: float = 0.0
    why: tuple[str, ...] = ()
    """Which words gave what."""
    unused: tuple[str, ...] = ()
    """What was found in the line and is of no use to the command."""
    ask: str = ""
    """What to ask back, where the line does not say what to do."""
    choices: tuple[Reading, ...] = ()
    """What may have been meant, the nearest first; at most three."""
    suggestion: str | None = None
    """An order that was nearly given."""
    source: Literal["examples", "model"] = "examples"

    @property
    def signs(self) -> bool:
        return self.intent != UNCLEAR and bool(intent_of(self.intent).signs)

    @property
    def missing(self) -> tuple[str, ...]:
        """What the intent still needs, in the order it is asked for."""
        if self.intent == UNCLEAR:
            return ()
        intent = intent_of(self.intent)
        pointed = bool(POINTED_AT & intent.takes) and ("refers" in self.slots or "holds" in self.slots)
        open_ = [need for need in intent.needs if need not in self.slots and not (pointed and need in POINTED_AT)]
        one_of = intent.needs_one and not any(need in self.slots for need in intent.needs_one)
        return (*open_, *(intent.needs_one[:1] if one_of else ()))

    @property
    def template(self) -> Words:
        """The words after `zuno`, with a place in capitals for what is missing."""
        if self.intent == UNCLEAR or self.ask:
            return ()
        intent = intent_of(self.intent)
        open_ = intent.needs_one[:1] if set(self.missing) & set(intent.needs_one) else ()
        return intent.command({**self.slots, **{need: _GAPS.get(need, need.upper()) for need in open_}}, gaps=True)

    def command(self, chain: str | None = None) -> Words:
        """The words after `zuno` once nothing is missing; else none. `chain` is meant where the line names none."""
        if self.ask or self.intent in {UNCLEAR, *OWN} or self.missing or {"refers", "holds"} & self.slots.keys():
            return ()
        intent = intent_of(self.intent)
        slots = self.slots if chain is None or "chain" in self.slots else {**self.slots, "chain": chain}
        return intent.command(slots)


def may_be_guessed(name: str) -> bool:
    """What a model may say a line means: whatever signs nothing and changes nothing a person would miss."""
    known = load_catalogue().intents.get(name)
    return known is not None and bool(known.groups) and not (known.signs or known.moves or known.answer)


def typical_lines() -> tuple[str, ...]:
    """A few lines of each intent that can be typed as they stand."""
    every = (intent.examples for intent in load_catalogue().intents.values())
    plain = ([words for words in examples if not any(word.startswith("{") for word in words)] for examples in every)
    return tuple(" ".join(words) for lines in plain for words in lines[:_TYPICAL])
