"""What one cycle of the trading desk came to: the whole of it on record, under a hash anybody can compute again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.units import Millis
from zuno.llm.question import Source
from zuno.trading.model.cycle import (
    AnswerSource,
    Blackboard,
    Decision,
    Expectation,
    FirstExpectation,
    Meta,
    Node,
    Part,
    Ruling,
)
from zuno.trading.model.market import Mode, Symbol

NodeState = Literal["waits", "speaks", "done", "skipped"]
DIGITS: Final = 9
"""Significant digits of a float that enter the hash."""


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """What whoever watches a run is told of one of its nodes."""

    node: Node
    state: NodeState
    """`waits`: for a model or a painter; `speaks`: an agent has answered; `done`; `skipped`: it had nothing to do."""
    source: Source | None = None
    usd: float | None = None
    note: str = ""


class AnomalyRecord(Part):
    """One anomaly of triage."""

    rule: str
    label: str | None
    said: str


class MissingInput(Part):
    """Something the desk had to do without."""

    what: str
    why: str


class Chart(Part):
    """The picture that was looked at."""

    sha256: str
    media_type: str


class Outcome(Part):
    """A finished run. Everything below `chart` is about this run of it, not about what was decided."""

    symbol: Symbol
    mode: Mode
    as_of: Millis
    origin: str
    bundle: str
    """The hash of the input."""
    meta: Meta
    anomalies: tuple[AnomalyRecord, ...]
    board: Blackboard
    decision: Decision
    expectation: Expectation | FirstExpectation | None
    """None: nothing was to be opened."""
    ruling: Ruling
    degraded: tuple[MissingInput, ...]
    voices: tuple[AnswerSource, ...]
    chart: Chart | None
    run_id: str
    code: str
    """The version of Zuno that decided it."""
    hash: str
    notes: tuple[str, ...] = ()


_OF_THE_RUN: Final = frozenset({"chart", "run_id", "code", "hash", "notes"})
_COST: Final = frozenset({"tokens", "usd"})
_COST_IN_EXPECTATION: Final = frozenset({"llm_cost_usd", "ev_pct"})
_COST_IN_CARD: Final = frozenset({"llm_cost_pct", "ev_pct"})
"""Expectancy holds the model's cost; everything else it is made of stays."""


def content_for_hash(outcome: Outcome) -> bytes:
    """The canonical bytes of what was decided: no id, no cost, no clock on a wall, no image; floats rounded."""
    return recorded_content(outcome.model_dump(by_alias=True))


def recorded_content(outcome: Mapping[str, Any]) -> bytes:
    """The same of an outcome as it is on record, whatever this Zuno's own shapes are."""
    kept = _without(outcome, _OF_THE_RUN)
    kept["voices"] = [_without(voice, _COST) for voice in kept["voices"]]
    if kept["expectation"] is not None:
        kept["expectation"] = _without(kept["expectation"], _COST_IN_EXPECTATION)
    kept["ruling"] = _ruling_content(kept["ruling"])
    return canonical(_round_floats(kept))


def _ruling_content(ruling: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that older editions did not have, where they are empty."""
    kept = dict(ruling)
    card = kept.pop("card", None)
    if card is not None:
        kept["card"] = _without(card, _COST_IN_CARD)
    kept["legs"] = [
        _without(leg, frozenset({"quantity"})) if leg.get("quantity") is None else leg for leg in kept["legs"]
    ]
    return kept


def _without(fields: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def hash_of(outcome: Outcome) -> Digest:
    return digest(content_for_hash(outcome))


def with_hash(outcome: Outcome) -> Outcome:
    """The outcome under its hash."""
    return outcome.model_copy(update={"hash": hash_of(outcome)})


def _round_floats(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _round_floats(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_round_floats(item) for item in value]
    return value
