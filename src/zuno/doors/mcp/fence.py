"""Documents of `--json` with every text in them fenced, as prompts fence it: a token name, a headline, a memory or a
model may have written any of it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from zuno.kernel.view import MAX_TEXT_CHARS, View, write_document
from zuno.llm.prompts import Untrusted
from zuno.lp.model.chains import CHAINS
from zuno.trading.model.market import Symbol

_WORD: Final = re.compile(r"[A-Za-z0-9_&+-]{0,24}")
"""A word of ours, or nothing: too short to say anything."""
_REGULAR: Final = re.compile(
    r"|[+-]?[0-9]+(\.[0-9]+)?"  # a number, an amount to the last wei
    r"|(0x|[a-z]{1,12}_)?[0-9a-f]{8,128}|0x[0-9a-fA-F]{40}"  # a hash, an id, an address
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,15}Z"  # a moment
)
_STRANGERS: Final = re.compile(
    r"(?i)\w*(symbol|token|base|quote|pair|label|unit|name|title|text|note|reason|why|query|model|rationale|said|because|"
    "headline|caution|constraint|condition|setup|review|narrative|failed|failure|error|detail|unknown|difference|whyrule|"
    "scenario|technical|derivatives|experts|logic|factor|uncertainty|claim|tiebreaker|consensus_signal)s?[01]?"
)
"""Fields in which a stranger may have chosen every word: there a single short one is fenced too, unless it is ours."""
_OURS: Final = frozenset({"USD", "gwei", *Symbol, *(token.symbol for chain in CHAINS for token in chain.tokens)})
_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A field's name; others are keys of a map, and texts."""


def fence_text(text: str, field: str = "") -> str:
    """`field`: whose text it is."""
    ours = text in _OURS if _STRANGERS.fullmatch(field) else _WORD.fullmatch(text)
    return text if ours or _REGULAR.fullmatch(text) else Untrusted(text, MAX_TEXT_CHARS).fenced_text


def fence_document(view: View) -> dict[str, Any]:
    """Fenced by what a text looks like and not by who should have written it: nothing has to be marked for it."""
    document: dict[str, Any] = _fence(json.loads(write_document(view)))
    return document


def describe_fenced(view: type[View]) -> dict[str, Any]:
    """The schema of such a document: a fenced text has no longer the length and the form it had."""
    written = view.model_json_schema(mode="serialization")
    # A view that leaves fields out when it is written says nothing of them there.
    described = written if "properties" in written else view.model_json_schema(mode="validation")
    schema: dict[str, Any] = _remove_bounds(described)
    return schema


def _remove_bounds(part: Any) -> Any:
    if isinstance(part, list):
        return [_remove_bounds(item) for item in part]
    if not isinstance(part, dict):
        return part
    bounds = ("maxLength", "pattern") if part.get("type") == "string" else ()
    return {name: _remove_bounds(item) for name, item in part.items() if name not in bounds}


def _fence(value: Any, field: str = "") -> Any:
    match value:
        case str():
            return fence_text(value, field)
        case list():
            return [_fence(item, field) for item in value]
        case dict():
            return {
                name if _NAME.fullmatch(name) else fence_text(name): _fence(item, name) for name, item in value.items()
            }
        case _:
            return value
