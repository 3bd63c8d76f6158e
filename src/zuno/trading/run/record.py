"""What the nodes of a run put on record, each once: a node that is run again finds what stands. And what earlier runs
of a journal came to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeVar, cast

from pydantic import Field, ValidationError

from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import Digest, Json, canonical, digest, to_json
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.kernel.wire import FIRST_EDITION, Edition
from zuno.llm.port import Attempt, Image, ModelRequest
from zuno.markets.market import Symbol
from zuno.trading.model import cycle
from zuno.trading.model.bundle import Bundle, Slot, read_bundle
from zuno.trading.model.cycle import ENDED as ENDED
from zuno.trading.model.known import pick
from zuno.trading.model.market import DAY_MS, Mode
from zuno.trading.model.memory import Exploration
from zuno.trading.rules.calibration import judge_kind

P = TypeVar("P", bound=cycle.Part)

EXPIRED = "cycle_expired"
"""The end of a run that an older edition began and did not finish."""
EXPLORED = "exploration"
"""The kind of entry by which explorations are counted: written before the ruling that opens one."""
ATTEMPT = "model_attempt"
DESK = Author("trading")
_PICTURES = ("image/png", "image/jpeg", "image/webp")


def kind_of(node: cycle.Node) -> str:
    return f"cycle_{node.value}"


class RunRequest(cycle.Part):
    symbol: Symbol
    mode: Mode
    as_of: str | None
    """As it was asked; None: now, or the end of the recording."""
    live: bool
    """Whether the clock on the wall is the market's."""
    chart: bool
    edition: Edition = FIRST_EDITION
    """Of the rules it is argued by."""
    account: Annotated[str | None, Field(exclude_if=lambda account: account is None)] = None
    """The account that acts on the ruling; None: nobody does."""

    @property
    def older(self) -> bool:
        return self.edition < cycle.EDITION


class RunExpiry(cycle.Part):
    why: str


class RunSummary(cycle.Part):
    """What a later run may look back at."""

    symbol: Symbol
    mode: Mode
    as_of: Millis
    origin: str
    regime: cycle.Regime
    signal: cycle.Signal | None
    score: float | None
    decision: cycle.Call
    entry_price: float | None
    stop_loss: float | None
    take_profit: float | None
    hold_duration: str
    win_probability_pct: int
    ruling: cycle.Call
    allocation_pct: float
    leverage: float
    veto: str | None
    hash: str
    """Of the outcome, which the report's node holds."""
    judge: cycle.JudgeKind | None = None
    exploration: bool = False
    account: Annotated[str | None, Field(exclude_if=lambda account: account is None)] = None
    """The account that acted on it; None: nobody did."""
    expired: bool = False
    """It came back too late after its report: what that would have opened is opened no more."""


def summarise_run(outcome: cycle.Outcome, expired: bool = False, account: str | None = None) -> RunSummary:
    board, decision, ruling = outcome.board.synthesis, outcome.decision, outcome.ruling
    return RunSummary(
        **pick(outcome, "symbol", "mode", "as_of", "origin", "hash"),
        **pick(decision, "decision", "entry_price", "stop_loss", "take_profit", "hold_duration", "win_probability_pct"),
        **pick(ruling, "allocation_pct", "leverage", "veto"),
        regime=outcome.meta.regime,
        signal=None if board is None else board.dominant_signal,
        score=None if board is None else board.score,
        ruling=ruling.decision,
        judge=judge_kind(decision),
        exploration=ruling.card is not None and ruling.card.exploration,
        account=account,
        expired=expired,
    )


class MarketMoment(cycle.Part):
    """Which moment it is, and which sources did not answer at it."""

    as_of: Millis
    origin: str
    failures: Mapping[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()


class BundleName(cycle.Part):
    """The run's frozen input, by its name."""

    bundle: str


class TriageRecord(cycle.Part):
    anomalies: tuple[cycle.AnomalyRecord, ...]


class ChartRecord(cycle.Part):
    chart: cycle.Chart | None
    why: str = ""
    """Why there is none; empty where none was asked for."""


class JudgeRecord(cycle.AgentAnswer[cycle.Decision]):
    ahead_usd: float
    """What the review that follows was expected to cost."""


class ExplorationClaim(cycle.Part):
    """An exploration that a run is about to rule. Of two at one instant the one whose entry is earlier comes first."""

    origin: str
    symbol: Symbol
    mode: Mode
    explored: Exploration
    account: Annotated[str | None, Field(exclude_if=lambda account: account is None)] = None


class GuardRecord(cycle.Part):
    expectation: cycle.Expectation | None
    ruling: cycle.Ruling
    at: Millis
    """When it was ruled: the wall's clock of a live run, the market's of a recorded one."""
    explored: tuple[Exploration, ...] | None = None
    """Where an exploration was about to be ruled: those that came before it, as they were counted then."""


class SkipRecord(cycle.Part):
    skipped: str


class CasesRecord(cycle.Part):
    """Records of closed trades that were labelled since the run before; whoever learns from closes writes them."""

    records: tuple[str, ...]


class ExecutionRecord(cycle.Part):
    state: str
    reason: str
    intent: str | None


class ReportRecord(cycle.Part):
    outcome: cycle.Outcome
    at: Millis


class RunJournal:
    """The record of one run, read when it is opened and written node by node."""

    def __init__(self, journal: Journal, run_id: str) -> None:
        self.journal = journal
        self.run_id = run_id
        self.started_at = Millis(0)
        """By the clock on the wall; 0 where nobody started it."""
        self.attempts: list[Attempt] = []
        self._kept: dict[str, Mapping[str, Json]] = {}
        self._digests: dict[str, Digest] = {}
        self._parts: dict[tuple[str, type[cycle.Part]], cycle.Part] = {}
        """What was read in its shape; it never changes."""
        self._replies: dict[tuple[str, int, int, str], Attempt] = {}

    async def open(self) -> RunJournal:
        async for entry in self.journal.entries(request_id=self.run_id):
            if entry.kind == ATTEMPT:
                self._remember(Attempt.model_validate(dict(entry.payload)))
            else:
                self._kept.setdefault(entry.kind, entry.payload)
            if entry.kind == cycle.STARTED:
                self.started_at = entry.at
        return self

    async def record(self, attempt: Attempt) -> None:
        """On disk before anything is made of it."""
        await self.journal.append(kind=ATTEMPT, author=Author(attempt.role), payload=attempt, request_id=self.run_id)
        self._remember(attempt)

    def recall(self, request: ModelRequest) -> Attempt | None:
        return self._replies.get((request.role, request.round, request.attempt, request.fingerprint))

    def has(self, kind: str | cycle.Node) -> bool:
        return _kind(kind) in self._kept

    async def keep(self, kind: str | cycle.Node, part: cycle.Part) -> None:
        """Put it on record, unless something stands there."""
        entry = await self.journal.append_once(kind=_kind(kind), author=DESK, payload=part, request_id=self.run_id)
        self._kept[_kind(kind)] = entry.payload

    def read(self, kind: str | cycle.Node, shape: type[P]) -> P:
        key = (name := _kind(kind), shape)
        try:
            if key not in self._parts:
                self._parts[key] = shape.model_validate(self._kept[name], strict=False)
        except KeyError:
            why = f"The journal has no {name} of {self.run_id}, which is known to be there; run `zuno journal verify`."
            raise Broken(why) from None
        except ValidationError as error:
            why = f"The journal's {name} of {self.run_id} is none this Zuno takes ({error.error_count()} faults)."
            raise Broken(why) from error
        return cast("P", self._parts[key])

    def raw(self, kind: str | cycle.Node) -> Mapping[str, Json]:
        """What was put on record, whatever this Zuno's own shapes are."""
        return self._kept[_kind(kind)]

    def read_execution(self) -> ExecutionRecord | None:
        """What came of the ruling; None where nobody was to act on it, or the run has not come there."""
        if not self.has(cycle.Node.EXECUTE_TRADE) or "skipped" in self.raw(cycle.Node.EXECUTE_TRADE):
            return None
        return self.read(cycle.Node.EXECUTE_TRADE, ExecutionRecord)

    def digest(self, node: cycle.Node) -> Digest:
        """The name of what a node put on record."""
        if not self.has(node):
            raise Broken(f"The journal has no {_kind(node)} of {self.run_id}; run `zuno journal verify`.")
        if node not in self._digests:
            self._digests[node] = digest(canonical(dict(self._kept[_kind(node)])))
        return self._digests[node]

    def _remember(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self._replies[(attempt.role, attempt.round, attempt.attempt, attempt.request)] = attempt


def _kind(of: str | cycle.Node) -> str:
    return kind_of(of) if isinstance(of, cycle.Node) else of


async def load_bundle(journal: Journal, name: str) -> Bundle:
    return read_bundle(await journal.bundle(Digest(name)))


async def load_image(journal: Journal, painted: ChartRecord) -> Image | None:
    chart = painted.chart
    if chart is None or chart.media_type not in _PICTURES:
        return None
    media_type = cast(Literal["image/png", "image/jpeg", "image/webp"], chart.media_type)
    return Image(media_type, await journal.bundle(Digest(chart.sha256)))


@dataclass(frozen=True, slots=True)
class LoggedClaim:
    seq: int
    run_id: str
    claim: ExplorationClaim


class RunHistory(Protocol):
    async def list_ended(self) -> list[RunSummary]:
        """The newest first."""

    async def list_claims(self) -> list[LoggedClaim]:
        """The oldest first."""

    async def find_summary(self, run_id: str) -> RunSummary | None:
        """How a run ended; None where it has not."""


class PastRuns:
    """The newest runs that ended, and every exploration. Other processes may write to the journal beside this one."""

    def __init__(self, journal: Journal, most: int) -> None:
        """`most`: runs that are looked back at."""
        self.journal = journal
        self._most = most
        self._ended: dict[str, RunSummary] = {}
        self._claims: list[LoggedClaim] = []
        self._last_ended: int | None = None
        self._last_claim = 0
        self._reading = asyncio.Lock()

    async def list_ended(self) -> list[RunSummary]:
        async with self._reading:
            if self._last_ended is None:
                entries = (await self.journal.latest(self._most, kind=ENDED))[::-1]
            else:
                entries = [entry async for entry in self.journal.entries(kind=ENDED, after=self._last_ended)]
            for entry in entries:
                self._ended[entry.request_id or ""] = RunSummary.model_validate(dict(entry.payload))
            self._last_ended = entries[-1].seq if entries else self._last_ended or 0
            for run_id in list(self._ended)[: -self._most]:
                del self._ended[run_id]
        return list(self._ended.values())[::-1]

    async def list_claims(self) -> list[LoggedClaim]:
        async with self._reading:
            async for entry in self.journal.entries(kind=EXPLORED, after=self._last_claim):
                claim = ExplorationClaim.model_validate(dict(entry.payload), strict=False)
                self._claims.append(LoggedClaim(entry.seq, entry.request_id or "", claim))
                self._last_claim = entry.seq
        return list(self._claims)

    async def find_summary(self, run_id: str) -> RunSummary | None:
        if run_id in self._ended:
            return self._ended[run_id]
        entries = await self.journal.latest(1, request_id=run_id, kind=ENDED)
        return RunSummary.model_validate(dict(entries[0].payload)) if entries else None


async def read_previous_decision(past: RunHistory, asked: RunRequest, moment: MarketMoment) -> list[Slot]:
    """The last earlier decision about a symbol of this market and mode; of two at one moment the newer one."""
    about = asked.symbol, asked.mode, moment.origin
    same = (run for run in await past.list_ended() if (run.symbol, run.mode, run.origin) == about)
    earlier = (run for run in same if asked.account in (None, run.account) and run.as_of < moment.as_of)
    best = max(earlier, key=lambda run: run.as_of, default=None)
    if best is None:
        return []
    content = best.model_dump(exclude={"symbol", "origin", "hash"})
    return [Slot("previous_decision", to_json(content), best.as_of, "journal")]


async def list_explorations(
    past: RunHistory, asked: RunRequest, moment: MarketMoment, before: int | None = None
) -> tuple[Exploration, ...]:
    """Explorations of this market in the 24 hours before, of every symbol. `before`: only entries earlier than this
    one. A run that is made again does not count against itself, one ruled twice counts once, one that came to nothing
    not at all."""
    explorations: dict[tuple[Millis, Symbol, Mode], Exploration] = {}
    for logged in await past.list_claims():
        if before is not None and logged.seq >= before:
            break
        claim = logged.claim
        at, key = claim.explored.at, (claim.explored.at, claim.symbol, claim.mode)
        recent = claim.origin == moment.origin and moment.as_of - DAY_MS < at <= moment.as_of
        again = key == (moment.as_of, asked.symbol, asked.mode)
        if again or not recent or asked.account not in (None, claim.account):
            continue
        ended = await past.find_summary(logged.run_id)
        if ended is None or ended.exploration:
            explorations[key] = claim.explored
    return tuple(explorations[key] for key in sorted(explorations))
