"""Cycles of the trading desk over a recorded market: they decide as `Cycles.run` does, and write nothing down."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from zuno.kernel.canonical import Digest, Json, digest
from zuno.kernel.units import Millis
from zuno.lab.trading.figures import MarketFigures
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt
from zuno.trading.agents.case import Case, replace_bundle
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import ExecutionResult
from zuno.trading.model.bundle import Bundle, BundleEncoder, Slot, add_slots
from zuno.trading.model.cycle import EDITION, Decision, EvPolicy, Node, Outcome, Part
from zuno.trading.model.known import derive, pick
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.memory import ClosedTrade, DeskRecord, Exploration, make_slot
from zuno.trading.rules.calibration import calibrate
from zuno.trading.run import record as records
from zuno.trading.run.nodes import Cycle, CycleSources, Listen
from zuno.trading.service.runs import Recall, price_review

if TYPE_CHECKING:
    from zuno.journal.port import Journal

P = TypeVar("P", bound=Part)
T = TypeVar("T")
Execute: TypeAlias = Callable[[RulingToExecute], Awaitable[ExecutionResult]]
OpenCycle: TypeAlias = Callable[[records.RunJournal, CycleSources, ModelContext, Listen, str], Cycle]
"""An arm may have nodes of its own: a subclass of `Cycle`."""


def always(value: T) -> Callable[..., Awaitable[T]]:
    """A source of a cycle that always returns this value."""

    async def say(*_: object) -> T:
        return value

    return say


def build_sources(
    moment: records.MarketMoment,
    gather: Callable[[records.MarketMoment], Awaitable[tuple[Digest, Case]]],
    **others: Any,
) -> CycleSources:
    """Sources of a cycle in the lab: the moment stands, no chart is drawn, no bundle kept. `others` replace these."""

    async def refuse(name: str) -> Bundle:
        raise NotImplementedError("the lab keeps no bundle")

    rest: dict[str, Any] = {"ahead": always(0.0), "claim_exploration": always(()), **others}
    return CycleSources(
        collect=always(moment),
        gather=gather,
        recorded=refuse,
        paint=always(records.ChartRecord(chart=None)),
        image=always(None),
        now=lambda node, as_of: as_of,
        new_cases=always(()),
        **rest,
    )


async def run_nodes(cycle: Cycle, order: Sequence[Node] = tuple(Node)) -> Outcome:
    steps = cycle.steps()
    for node in order:
        await steps[node]()
    return cycle.outcome


class RunNotes(records.RunJournal):
    """A run's journal in memory."""

    def __init__(self, run_id: str) -> None:
        super().__init__(cast("Journal", None), run_id)
        self._said: dict[str | Node, Part] = {}

    async def record(self, attempt: Attempt) -> None:
        self._remember(attempt)

    def has(self, kind: str | Node) -> bool:
        return kind in self._said

    async def keep(self, kind: str | Node, said: Part) -> None:
        self._said.setdefault(kind, said)

    def read(self, kind: str | Node, shape: type[P]) -> P:
        return cast("P", self._said[kind])

    def raw(self, kind: str | Node) -> Mapping[str, Json]:
        return self._said[kind].model_dump()

    def digest(self, node: Node) -> Digest:
        return Digest(node.value)


class BacktestHistory:
    """Earlier runs of one backtest, of all its symbols, in the order of time."""

    def __init__(self) -> None:
        self._ended: dict[str, records.RunSummary] = {}
        self._newest: dict[tuple[object, ...], records.RunSummary] = {}
        self._claims: list[records.LoggedClaim] = []
        """Of the last day: nothing looks further back."""
        self._count = 0

    def end_run(self, run_id: str, summary: records.RunSummary) -> None:
        key = (summary.symbol, summary.mode, summary.origin, summary.account)
        before = self._newest.get(key)
        if before is not None and before.as_of >= summary.as_of:
            raise ValueError("a backtest goes forward in time")
        self._newest[key] = self._ended[run_id] = summary

    def claim_exploration(self, run_id: str, claim: records.ExplorationClaim) -> int:
        """The number of its entry."""
        self._count += 1
        since = claim.explored.at - DAY_MS
        self._claims = [logged for logged in self._claims if logged.claim.explored.at > since]
        self._claims.append(records.LoggedClaim(self._count, run_id, claim))
        return self._count

    async def list_ended(self) -> list[records.RunSummary]:
        return list(self._newest.values())

    async def list_claims(self) -> list[records.LoggedClaim]:
        return self._claims

    async def find_summary(self, run_id: str) -> records.RunSummary | None:
        return self._ended.get(run_id)


@dataclass(frozen=True, slots=True)
class BacktestCycles:
    """Cycles of one symbol, one moment after the other."""

    figures: MarketFigures
    model_context: Callable[[records.RunJournal], ModelContext]
    history: BacktestHistory
    """Shared by the symbols of one backtest."""
    code: str
    account: str | None = None
    cycle: OpenCycle = Cycle
    encoder: BundleEncoder | None = None
    """Names the bundle of an outcome as the journaled cycle does; None: that name is empty."""
    order: Sequence[Node] = tuple(Node)
    policy: EvPolicy = "record"

    async def run(
        self,
        at: Millis,
        held: Sequence[Slot],
        closed: Sequence[ClosedTrade] = (),
        *,
        execute: Execute | None = None,
        recall: Recall | None = None,
        run_id: str | None = None,
    ) -> Outcome:
        """Argue and rule at a moment, later than the one before.

        `held`: the account (`account_slots`) and fees, where they are not the usual ones. `closed`: trades that had
        ended by then, for the calibration. `execute`: acts on the ruling. `recall`: memories of the case.
        """
        figures, history = self.figures, self.history
        same = pick(figures, "symbol", "mode") | pick(self, "account")
        asked = records.RunRequest(**same, as_of=str(at), live=False, chart=False, edition=EDITION)
        moment = records.MarketMoment(as_of=at, origin=figures.origin)
        about = f"{self.account} {self.figures.symbol} {self.figures.mode} {at}"
        notes = RunNotes(run_id or "run_" + sha256(about.encode()).hexdigest()[:16])
        model_context = self.model_context(notes)

        async def gather(moment: records.MarketMoment) -> tuple[Digest, Case]:
            record = DeskRecord(
                calibrations=calibrate(closed),
                explorations=await records.list_explorations(history, asked, moment),
                policy=self.policy,
            )
            previous = await records.read_previous_decision(history, asked, moment)
            bundle, case = await figures.measure(at, [*held, *previous, make_slot(record, at)])
            if recall is not None:
                bundle = add_slots(bundle, await recall(case))
                case = replace_bundle(case, bundle)
            return Digest("") if self.encoder is None else digest(self.encoder.encode(bundle)), case

        async def claim_exploration(own: Exploration) -> tuple[Exploration, ...]:
            claim = derive(records.ExplorationClaim, asked, moment, explored=own)
            number = history.claim_exploration(notes.run_id, claim)
            return await records.list_explorations(history, asked, moment, before=number)

        async def ahead(decision: Decision) -> float:
            return await price_review(decision, model_context)

        sources = build_sources(moment, gather, ahead=ahead, claim_exploration=claim_exploration, execute=execute)
        cycle = self.cycle(notes, sources, model_context, lambda event: None, self.code)
        outcome = await run_nodes(cycle, self.order)
        history.end_run(notes.run_id, records.summarise_run(outcome, account=self.account))
        return outcome
