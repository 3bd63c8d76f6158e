"""Runs of the trading desk as the journal has them: their list, and the argument of one."""

from dataclasses import dataclass

from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.llm.port import Attempt
from zuno.present.document import Act, Block, Document, Mark, Tone, Value, document, facts, lines, section, table
from zuno.present.values import bad, count, foreign, id_, number, percent, quiet, strong
from zuno.trading.model.bundle import CANDLES_ONLY
from zuno.trading.model.cycle import Node, Outcome, RuleChange
from zuno.trading.model.known import derive
from zuno.trading.run.record import MarketMoment, RunRequest, RunSummary
from zuno.trading.service.origin_view import OriginView
from zuno.trading.service.run_view import RunView, call_text, headline_notes, model_cost


class AttemptView(View):
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

    def to_document(self) -> Document:
        run = self.run
        named = (("run", id_(self.run_id)), ("started", f"{self.started}, {self.state}"))
        label = "SYNTHETIC" if self.synthetic else "PAPER" if run is None else run.label
        asked = section("What models were asked", *self._attempt_blocks())
        headline = f"{label} · Why: {self.symbol} {self.mode}"
        context = foreign(f"as of {self.as_of} · {self.market}")
        if run is None:
            steps = (("on record", ", ".join(self.reached)), ("not reached", bad(", ".join(self.waiting))))
            again = f"it has not ended; `zuno trade resume {self.run_id}` takes it up again"
            return document(headline, facts(*named, *steps), asked, context=context, notes=(again,), as_of=self.as_of)
        record = facts(*named, ("outcome", run.hash), ("bundle", self.bundle_hash or "none"))
        return document(
            headline,
            *run.to_sections(self.rules),
            asked,
            section("On record", record),
            context=context,
            urgent=[foreign(note, Tone.BAD) for note in headline_notes(run)],
            notes=run.ending_notes,
            as_of=self.as_of,
        )

    def _attempt_blocks(self) -> tuple[Block | None, ...]:
        if not self.attempts:
            return (lines("None: the rules spoke for everybody."),)
        rows = [
            (
                strong(f"{attempt.role} {attempt.attempt}"),
                foreign(attempt.model),
                Value(attempt.outcome, Tone.PLAIN if attempt.outcome == "ok" else Tone.BAD),
                count(attempt.tokens),
                model_cost(attempt.usd),
                "yes" if attempt.estimated else "",
                number(attempt.latency_ms / 1000, 1, unit="s"),
            )
            for attempt in self.attempts
        ]
        columns = ("role", "model", "outcome", "tokens", "cost", "estimated", "time")
        texts = (
            foreign(f"{attempt.role} {attempt.attempt}: {text}", Tone.QUIET)
            for attempt in self.attempts
            for text in (attempt.why, attempt.said)
            if text
        )
        return table(columns, rows, spare=("time", "estimated", "tokens", "model")), lines(*texts, mark=Mark.QUOTE)


class RunLineView(View):
    run_id: str
    symbol: str
    mode: str
    as_of: IsoTime | None
    """Null: it was cut off before the moment was known."""
    started: IsoTime
    state: str
    """ended, unfinished, or expired: an older edition began it, and nobody can finish it any more."""
    synthetic: bool | None
    candles_only: bool | None
    """Both null: it was cut off before the moment was known."""
    regime: str | None = None
    decision: str | None = None
    ruling: str | None = None
    allocation_pct: float | None = None
    leverage: float | None = None
    veto: ForeignText | None = None
    hash: str | None = None


class RunsView(View):
    runs: tuple[RunLineView, ...]
    more: bool = False
    """Whether older runs are left out."""

    def to_document(self) -> Document:
        if not self.runs:
            return document("Runs", lines("No run is on record; `zuno trade run BTCUSDT` makes one."))
        rows = [
            (
                id_(run.run_id),
                run.symbol,
                run.mode,
                "–" if run.as_of is None else f"{run.as_of[:16]}Z",
                bad(run.state) if run.ruling is None else strong(call_text(run.ruling)),
                "SYNTHETIC" if run.synthetic else "CANDLES ONLY" if run.candles_only else "",
                call_text(run.decision),
                foreign(run.veto or "–"),
                percent(run.allocation_pct),
                number(run.leverage, unit="×"),
                run.regime or "–",
                run.started,
            )
            for run in self.runs
        ]
        columns = ("run", "symbol", "mode", "as of", "ruling", "market", "judge", "veto", "size", "leverage", "regime")
        spare = ("started", "regime", "leverage", "size", "veto", "judge", "market", "mode", "as of")
        return document(
            "Runs, newest first",
            table((*columns, "started"), rows, spare=spare),
            lines(quiet("older runs are left out")) if self.more else None,
            acts=(Act("Why", f"trade why {self.runs[0].run_id}"),),
        )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that is on record of a run: for a report or for whoever asks why."""

    line: RunLineView
    origin: str
    """The market it is about."""
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
    line, run = record.line, record.view
    return derive(
        CycleWhyView,
        line,
        record,
        synthetic=bool(line.synthetic),
        as_of=line.as_of or "",
        bundle_hash=None if run is None else run.bundle_hash,
        attempts=tuple(
            derive(AttemptView, attempt, said=attempt.raw, tokens=attempt.tokens_in + attempt.tokens_out)
            for attempt in record.attempts
        ),
        rules=() if run is None else run.ruling.changes,
        run=run,
        reached=record.nodes,
        waiting=tuple(node for node in Node if node not in record.nodes),
    )


def run_line_view(
    run_id: str, started: Millis, asked: RunRequest, moment: MarketMoment | RunSummary | None, end: RunSummary | None
) -> RunLineView:
    """`moment`: None where it was cut off before the moment was known."""
    return derive(
        RunLineView,
        end,
        asked,
        run_id=run_id,
        as_of=None if moment is None else moment.as_of,
        started=started,
        state="ended" if end is not None else "expired" if asked.older else "unfinished",
        synthetic=None if moment is None else moment.origin.startswith("SYNTHETIC"),
        candles_only=None if moment is None else moment.origin.startswith(CANDLES_ONLY),
    )
