"""Parse a model's reply: it must be exactly the object asked for and in bounds; sentences of its prose that cite no
facts for their figures are left out."""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Generic, Literal, NoReturn

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from zuno.llm.prompts import Untrusted, strip_fences
from zuno.llm.question import Question, T

MAX_REPLY_CHARS = 16_000
"""Longer is no answer to any of our questions; what is kept of it is `EVIDENCE_CHARS`."""
EVIDENCE_CHARS = 2_000
MAX_WHY_CHARS = 400
ECHO_WORDS = 5
ECHO_SIGNS = 30
"""So many words of an untrusted text in a row are repetition, not mention; so are so many letters and digits, for
scripts without spaces."""
PROSE_CHARS = 500
"""A longer field holds sentences and may be cut; a shorter one is a name."""
MOST_SENTENCES = 40
"""Of a faulty text: each is checked with all before it."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.DOTALL)
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r".*?(?:[.!?]+(?=\s|$)|\n|$)\s*", re.DOTALL)
_LINK = re.compile(r"://|\bwww\.|\b[\w-]+\.[a-z]{2,}/\w", re.IGNORECASE)
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_BOUNDS = frozenset(
    (
        "greater_than greater_than_equal less_than less_than_equal multiple_of "
        "string_too_short string_too_long too_short too_long"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Unusable:
    kind: Literal["malformed", "out_of_bounds"]
    why: str


@dataclass(frozen=True, slots=True)
class Usable(Generic[T]):
    value: T
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class TextScreen:
    untrusted: tuple[Untrusted, ...]
    reasons: list[str] = field(default_factory=list)
    screened: set[str] = field(default_factory=set)

    def __call__(self, text: str, faults: Callable[[str], Iterable[str]], otherwise: str) -> str:
        self.screened.add(text)

        def find(piece: str) -> list[str]:
            return [stranger] if (stranger := _find_stranger([piece], self.untrusted)) else [*faults(piece)]

        if not text.strip() or not find(text):
            return text
        kept, sentences = "", [*filter(str.strip, _SENTENCE.findall(text))]
        if len(sentences) > MOST_SENTENCES:
            self.reasons.append(f"what follows {MOST_SENTENCES} sentences")
        for sentence in sentences[:MOST_SENTENCES]:
            # Held against what is kept already as well: a fault may lie across two sentences, or in their length.
            if faulty := find(sentence.strip()) or find(f"{kept}{sentence}".strip()):
                self.reasons.extend(faulty)
            else:
                kept += sentence
        return kept.strip() or otherwise


def parse_reply(text: str, question: Question[T], untrusted: tuple[Untrusted, ...]) -> Usable[T] | Unusable:
    """Schema, then bounds; the first that fails is the error. Then the texts are screened, and a field of which nothing
    is left is one that is missing."""
    if len(text) > MAX_REPLY_CHARS:
        return Unusable("malformed", f"{len(text)} characters, where {MAX_REPLY_CHARS} are the most")
    body = _strip_code_fence(text)
    try:
        value, cut = _validate(body, question.output)
    except ValidationError as error:
        return _explain_invalid(error)
    try:
        _check_strict_json(body)
    except ValueError as error:
        return Unusable("malformed", shorten_reason(str(error)))
    if error_named := question.judge(value):
        return Unusable("out_of_bounds", _find_stranger([error_named], untrusted) or shorten_reason(error_named))
    screen = TextScreen(untrusted, cut)
    kept = question.prose(value, screen)
    fields = [text for text in _strings(value.model_dump()) if text not in screen.screened]
    if stranger := _find_stranger(fields, untrusted):
        return Unusable("out_of_bounds", stranger)
    left_out = f"left out: {'; '.join(dict.fromkeys(screen.reasons))}" if screen.reasons else ""
    if left_out and (gone := question.judge(kept)):
        return Unusable("out_of_bounds", shorten_reason(f"{gone} ({left_out})"))
    return Usable(kept, shorten_reason(left_out))


def _validate(body: str, output: type[T]) -> tuple[T, list[str]]:
    """The object, and what was cut off for it: too long prose ends with its last sentence in bounds."""
    try:
        return output.model_validate_json(body), []
    except ValidationError as error:
        bounds = [
            (detail["loc"], detail.get("ctx", {}).get("max_length", 0), detail["type"]) for detail in error.errors()
        ]
        if any(kind != "string_too_long" or most < PROSE_CHARS for _, most, kind in bounds):
            raise
        document = json.loads(body)
        try:
            for (*path, name), most, _ in bounds:
                holder = reduce(getitem, path, document)
                holder[name] = _cut_text(holder[name], most)
            value = output.model_validate_json(json.dumps(document))
        except (ValidationError, LookupError, TypeError):
            raise error from None
        return value, [f"what follows {most} characters" for _, most, _ in bounds]


def _cut_text(text: str, most: int) -> str:
    kept = ""
    for sentence in _SENTENCE.findall(text):
        if len((kept + sentence).rstrip()) > most:
            break
        kept += sentence
    return kept.rstrip()


def _find_stranger(texts: list[str], untrusted: tuple[Untrusted, ...]) -> str:
    """What in these texts came from untrusted input, or nothing."""
    if any(_is_control(sign) for text in texts for sign in text if sign not in "\n\t"):
        return "a text holds control or invisible characters"
    if any(map(_LINK.search, texts)):
        return "a text holds a link"
    # Not which words: the error is told outside of any fence.
    return "a text repeats what a stranger wrote" if _echoes(texts, untrusted) else ""


def extract_field(text: str, name: str) -> object:
    """One field of an answer of which the rest may not do; None where it is no plain object, or gives a field twice."""
    body = _strip_code_fence(text)
    try:
        _check_strict_json(body)
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields.get(name) if isinstance(fields, dict) else None


def _strip_code_fence(text: str) -> str:
    body = text.strip()
    fenced = _FENCED.fullmatch(body)
    return fenced[1] if fenced else body


def shorten_reason(why: str) -> str:
    """Short, one line, printable and outside of any fence: parts of it may be the model's own words."""
    line = strip_fences("".join("�" if _is_control(sign) else sign for sign in why.replace("\n", " ")))
    return line if len(line) <= MAX_WHY_CHARS else line[: MAX_WHY_CHARS - 1] + "…"


def _explain_invalid(error: ValidationError) -> Unusable:
    details = error.errors(include_url=False, include_input=False, include_context=False)
    kind: Literal["malformed", "out_of_bounds"] = (
        "out_of_bounds" if all(detail["type"] in _BOUNDS for detail in details) else "malformed"
    )
    return Unusable(kind, shorten_reason("; ".join(map(_describe_error, details[:4]))))


def _describe_error(detail: ErrorDetails) -> str:
    # A field nobody asked for has a name the model chose: a sentence is none.
    names = (str(part) for part in detail["loc"])
    where = ".".join(name if name.isdecimal() or _FIELD.fullmatch(name) else "a field" for name in names)
    return f"{where}: {detail['msg']}" if where else detail["msg"]


def _check_strict_json(body: str) -> None:
    """What pydantic lets pass: a field given twice, and NaN or infinity."""

    def check_pairs(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name[:40]} is given twice")

    def parse_finite(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"{text[:40]} is no number")
        return number

    def reject_non_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no number")

    json.loads(body, object_pairs_hook=check_pairs, parse_float=parse_finite, parse_constant=reject_non_number)


def _strings(dumped: object) -> Iterator[str]:
    if isinstance(dumped, str):
        yield dumped
    elif isinstance(dumped, Mapping):
        for part in dumped.values():
            yield from _strings(part)
    elif isinstance(dumped, list | tuple | set | frozenset):
        for part in dumped:
            yield from _strings(part)


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _echoes(strings: list[str], untrusted: tuple[Untrusted, ...]) -> bool:
    """Whether a run of words or signs came from fenced text."""
    behind = [_words(stranger.safe_text) for stranger in untrusted if not stranger.quotable]
    given = [_words(text) for text in strings]
    return _share_run(behind, given, ECHO_WORDS) or _share_run(_join_words(behind), _join_words(given), ECHO_SIGNS)


def _join_words(texts: list[list[str]]) -> list[str]:
    return ["".join(words) for words in texts]


def _share_run(some: Sequence[Sequence[str]], others: Sequence[Sequence[str]], length: int) -> bool:
    runs = {run for pieces in some for run in _runs(pieces, length)}
    return any(run in runs for pieces in others for run in _runs(pieces, length))


def _runs(pieces: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(pieces[at : at + length]) for at in range(len(pieces) - length + 1))


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
