"""What one cycle of the trading desk came to, in the names of the public JSON: camel case around the desk's own parts.

Every text in it may be a model's: one printable line, bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import FieldSerializationInfo, field_serializer

from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, RecordedView, View
from zuno.llm.port import Attempt
from zuno.trading.model.bundle import CANDLES_ONLY
from zuno.trading.model.cycle import (
    AnswerSource,
    Blackboard,
    Decision,
    Expectation,
    FirstExpectation,
    Meta,
    Node,
    RuleChange,
    Ruling,
)
from zuno.trading.model.market import Mode, Symbol
from zuno.trading.model.outcome import MissingInput, Outcome
from zuno.trading.run.record import RunSummary
from zuno.trading.service.features_view import AnomalyView, SourceView, iso
from zuno.trading.service.memory_view import ReadMemoryView
from zuno.trading.service.origin_view import OriginView


class RulingExecutionView(View):
    """What came of a ruling at the order gate."""

    state: str
    """held, refused, working, open, closing, closed or ended."""
    reason: ForeignText
    intent: str | None
    account: str | None = None
    """Who acted, by its whole name."""


class RunView(OriginView, RecordedView):
    """A run that has ended."""

    run_id: str
    symbol: str
    mode: str
    as_of: str
    bundle_hash: str
    meta: Meta
    regime: str
    anomalies: tuple[AnomalyView, ...]
    blackboard: Blackboard
    decision: Decision
    """The Judge as validated: before expectancy, budget, CRO and guard."""
    ev: Expectation | FirstExpectation | None
    """None: nothing was to be opened. JSON then has nulls, beside what the models cost."""
    ruling: Ruling
    sources: tuple[SourceView, ...]
    absent: tuple[MissingInput, ...]
    degraded: tuple[MissingInput, ...]
    voices: tuple[AnswerSource, ...]
    chart: str | None
    """Where the picture was put; null where there is none."""
    trade_chart: str | None = None
    """Where the picture of the trade was put; null where nothing was to be opened."""
    report: str | None
    """Where the page was put."""
    code: str
    """The version of Zuno that decided it."""
    notes: tuple[ForeignText, ...] = ()
    execution: RulingExecutionView | None = None
    """Null where nobody was to act on the ruling."""
    memory: ReadMemoryView | None = None
    """What the Judge read of closed trades; null where the desk was not asked."""

    @property
    def llm_cost_usd(self) -> float:
        """A voice whose price nobody knows adds nothing."""
        return self.ev.llm_cost_usd if self.ev else sum(voice.usd or 0.0 for voice in self.voices)

    @field_serializer("ev")
    def _ev_fields(
        self, ev: Expectation | FirstExpectation | None, info: FieldSerializationInfo
    ) -> dict[str, bool | int | float | None] | None:
        if ev is not None or info.round_trip:
            return None if ev is None else ev.model_dump(by_alias=True)
        names = [field.alias or name for name, field in Expectation.model_fields.items()]
        return {**dict.fromkeys(names), "llm_cost_usd": self.llm_cost_usd}


class AttemptView(View):
    """One question to one model."""

    role: str
    attempt: int
    model: ForeignText
    outcome: str
    why: ForeignText
    said: ForeignText
    """What it wrote, its beginning."""
    tokens: int
    usd: float | None
    """Null: the price is not known."""
    estimated: bool
    """Whether tokens and dollars are the reservation, because the model did not say."""
    latency_ms: int


class CycleWhyView(OriginView):
    """The argument of a run as the journal has it; no model is asked."""

    run_id: str
    symbol: str
    mode: str
    as_of: str
    bundle_hash: str | None
    state: str
    started: str
    attempts: tuple[AttemptView, ...]
    rules: tuple[RuleChange, ...]
    """What fired, in that order, and what each changed."""
    run: RunView | None
    """Null while it has not ended."""
    reached: tuple[str, ...] = ()
    """The steps that are on record."""
    waiting: tuple[str, ...] = ()
    """Those that are not."""


class RunLineView(View):
    run_id: str
    symbol: str
    mode: str
    as_of: str | None
    """Null: it was cut off before the moment was known."""
    started: str
    state: str
    synthetic: bool | None
    candles_only: bool | None
    """Both null: it was cut off before the moment was known."""
    regime: str | None
    decision: str | None
    ruling: str | None
    allocation_pct: float | None
    leverage: float | None
    veto: ForeignText | None
    hash: str | None


class RunsView(View):
    runs: tuple[RunLineView, ...]
    more: bool = False
    """Whether older runs are left out."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as the journal knows it."""

    run_id: str
    symbol: Symbol
    mode: Mode
    as_of: Millis | None
    """None: it was cut off before the moment was known."""
    at: Millis
    """When it was started, by the clock on the wall."""
    state: Literal["ended", "unfinished", "expired"]
    """`expired`: an older edition began it, and nobody can finish it any more."""
    end: RunSummary | None
    """None as long as it has not ended."""
    origin: str | None = None
    """Whose past it is about; None as long as the moment is not known."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that is on record of a run: for a report or for whoever asks why."""

    line: RunLine
    outcome: Outcome | None
    """None as long as it has not ended."""
    view: RunView | None
    """As it is shown; None as long as it has not ended."""
    attempts: tuple[Attempt, ...]
    """What models were asked and said, in that order."""
    picture: bytes | None
    nodes: tuple[Node, ...] = ()
    """The steps that are on record."""
    live: bool = False


def run_view(record: RunRecord) -> RunView:
    """A run as it is shown; where its picture and its page are put is their reader's affair."""
    if record.view is not None:
        return record.view
    run_id, symbol = record.line.run_id, record.line.symbol
    if record.line.state == "expired":
        raise Refused(f"{run_id} was begun in an older edition and has expired; `zuno trade run {symbol}` begins anew.")
    raise Refused(f"{run_id} has not ended; `zuno trade resume {run_id}` takes it up again.")


def why_view(record: RunRecord) -> CycleWhyView:
    line, run, origin = record.line, record.view, record.line.origin or ""
    return CycleWhyView(
        synthetic=origin.startswith("SYNTHETIC"),
        live=record.live,
        origin=origin,
        run_id=line.run_id,
        symbol=line.symbol,
        mode=line.mode,
        as_of="" if line.as_of is None else iso(line.as_of),
        bundle_hash=None if run is None else run.bundle_hash,
        state=line.state,
        started=iso(line.at),
        attempts=tuple(map(_attempt_view, record.attempts)),
        rules=() if run is None else run.ruling.changes,
        run=run,
        reached=record.nodes,
        waiting=tuple(node for node in Node if node not in record.nodes),
    )


def runs_view(lines: Sequence[RunLine], most: int | None = None) -> RunsView:
    """The first `most` of them; any further one says that there are more."""
    shown = lines[:most]
    return RunsView(runs=tuple(map(_line_view, shown)), more=len(lines) > len(shown))


def _attempt_view(attempt: Attempt) -> AttemptView:
    return AttemptView(
        role=attempt.role,
        attempt=attempt.attempt,
        model=attempt.model,
        outcome=attempt.outcome,
        why=attempt.why,
        said=attempt.raw,
        tokens=attempt.tokens_in + attempt.tokens_out,
        usd=None if attempt.usd is None else float(attempt.usd),
        estimated=attempt.estimated,
        latency_ms=attempt.latency_ms,
    )


def _line_view(line: RunLine) -> RunLineView:
    end, origin = line.end, line.origin
    return RunLineView(
        run_id=line.run_id,
        symbol=line.symbol,
        mode=line.mode,
        as_of=None if line.as_of is None else iso(line.as_of),
        started=iso(line.at),
        state=line.state,
        synthetic=None if origin is None else origin.startswith("SYNTHETIC"),
        candles_only=None if origin is None else origin.startswith(CANDLES_ONLY),
        regime=None if end is None else end.regime,
        decision=None if end is None else end.decision,
        ruling=None if end is None else end.ruling,
        allocation_pct=None if end is None else end.allocation_pct,
        leverage=None if end is None else end.leverage,
        veto=None if end is None else end.veto,
        hash=None if end is None else end.hash,
    )
