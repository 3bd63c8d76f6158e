"""What is learned from outcomes: every closed trade becomes, once, a post-mortem, a memory and a labelled record;
decisions that were vetoed or cut are played on the market and scored once. The journal decides what was written."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Final

from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.errors import Malformed, NotFound, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.markets.market import Symbol
from zuno.trading.agents.case import build_case
from zuno.trading.agents.learned import read_memories
from zuno.trading.agents.post_mortem import ClosedCase, write_post_mortem
from zuno.trading.data.price_path import read_bars, read_funding
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.learn import memory_book
from zuno.trading.learn.tilt_book import TiltBook
from zuno.trading.measure.portable import round_digits
from zuno.trading.measure.setup import describe_setup
from zuno.trading.model import memory
from zuno.trading.model.bundle import read_bundle
from zuno.trading.model.cycle import Call, Node, Outcome
from zuno.trading.model.known import derive
from zuno.trading.model.market import HOUR_MS
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import LevelsSet, Protection, TradeClosed, TradeSummary
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.ports.series import SeriesStore
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules import trade_outcomes
from zuno.trading.rules.calibration import list_claims, to_closed_trade
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.inputs import Fees
from zuno.trading.run.record import ENDED, ReportRecord, RunJournal, RunSummary

VETO_AUTHOR: Final = Author("veto_ledger")


@dataclass(frozen=True, slots=True)
class WaitingVeto:
    id: str
    run: str
    summary: RunSummary
    wanted: trade_outcomes.PlannedTrade
    rules: tuple[memory.RuleShare, ...]
    wanted_usd: float | None = None
    left_usd: float | None = None


class VetoLedger:
    """Reads runs and scores on from where it has read."""

    def __init__(self, journal: Callable[[], Awaitable[Journal]], store: SeriesStore, fees: Fees) -> None:
        self._journal, self._store, self._fees = journal, store, fees
        self._read_runs = self._read_scores = 0
        self._scores: dict[str, memory.VetoScore] = {}
        self._waiting: dict[str, WaitingVeto] = {}

    async def read(self) -> tuple[memory.VetoScore, ...]:
        journal = await self._journal()
        async for entry in journal.entries(kind=memory.VETO_SCORE, after=self._read_scores):
            score = memory_book.parse_entry(entry, memory.VetoScore, "score of a veto")
            self._scores[score.id] = score
            self._waiting.pop(score.id, None)
            self._read_scores = entry.seq
        return tuple(self._scores.values())

    async def score(self, account: str, origin: str, at: Millis) -> tuple[tuple[memory.VetoScore, ...], int]:
        """Score what is resolved by a moment of the market, on paper also runs that no account acts on: the new scores,
        and how many wait."""
        await self.read()
        await self._read_new_runs()
        here = [each for each in self._waiting.values() if each.summary.origin == origin and each.summary.as_of < at]
        due = [each for each in here if trade_outcomes.belongs_to_account(account, each.summary.account)]
        scores = await play_vetoes(due, self._store, self._fees, at)
        journal = await self._journal()
        for score in scores:
            await journal.append_once(kind=memory.VETO_SCORE, author=VETO_AUTHOR, payload=score, request_id=score.id)
        await self.read()
        return tuple(self._scores[score.id] for score in scores), len(due) - len(scores)

    async def _read_new_runs(self) -> None:
        journal = await self._journal()
        async for entry in journal.entries(kind=ENDED, after=self._read_runs):
            self._read_runs = entry.seq
            past = RunSummary.model_validate(dict(entry.payload), strict=False)
            id = _score_id(past)
            if id in self._scores or id in self._waiting:
                continue
            run = entry.request_id or ""
            changed, wanted, left = await _read_changes(journal, run, past)
            if (waiting := find_veto(run, past, changed)) is not None:
                self._waiting[id] = replace(waiting, wanted_usd=wanted, left_usd=left)


def find_veto(run: str, past: RunSummary, changed: Sequence[memory.RuleShare]) -> WaitingVeto | None:
    """`changed`: what rules took away of a trade that was opened all the same. None: nothing was taken away."""
    if past.ruling is Call.HOLD and past.veto is not None:
        changed = (trade_outcomes.share_of_veto(past.veto),)
    wanted = _planned_trade(past)
    return None if wanted is None or not changed else WaitingVeto(_score_id(past), run, past, wanted, tuple(changed))


async def play_vetoes(due: Sequence[WaitingVeto], store: SeriesStore, fees: Fees, at: Millis) -> list[memory.VetoScore]:
    scores: list[memory.VetoScore] = []
    for symbol in dict.fromkeys(waiting.summary.symbol for waiting in due):
        here = [waiting for waiting in due if waiting.summary.symbol is symbol]
        since = min(waiting.wanted.at for waiting in here)
        until = Millis(min(at, max(waiting.wanted.hold_until for waiting in here)))
        bars = trade_outcomes.BarColumns(await read_bars(store, symbol.venue, symbol, since, until, known_by=at))
        funding = await read_funding(store, symbol, since, until, known_by=at)
        assumed, taken = store.origin.candles_only and not funding, 2 * fees.at(symbol.venue).taker
        for waiting in here:
            played = trade_outcomes.simulate_trade(waiting.wanted, bars, funding, taken, at, assumed=assumed)
            if played is not None:
                own = {"side": waiting.wanted.side, "decided": waiting.summary.as_of}
                scores.append(derive(memory.VetoScore, waiting, waiting.summary, played, **own))
    return scores


def _score_id(past: RunSummary) -> str:
    return f"veto_{digest(canonical([past.origin, past.account, past.symbol, past.mode, past.as_of]))[:24]}"


def _planned_trade(past: RunSummary) -> trade_outcomes.PlannedTrade | None:
    """What the Judge decided; None where it wanted to open nothing, or at no prices."""
    side = past.decision.side
    if side is None or past.stop_loss is None or past.take_profit is None:
        return None
    hold = hold_hours(past.hold_duration, past.mode) * HOUR_MS
    return trade_outcomes.PlannedTrade(past.as_of, side, past.stop_loss, past.take_profit, Millis(past.as_of + hold))


async def _read_changes(
    journal: Journal, run: str, past: RunSummary
) -> tuple[tuple[memory.RuleShare, ...], float | None, float | None]:
    """What rules took of a trade that was ruled, and its notional before and behind them. What a protection refused at
    the order gate is all of it."""
    if past.ruling.side is None:
        return (), None, None
    notebook = await RunJournal(journal, run).open()
    if not notebook.has(Node.GENERATE_REPORT):
        return (), None, None
    outcome = notebook.read(Node.GENERATE_REPORT, ReportRecord).outcome
    size = None if outcome.ruling.card is None else outcome.ruling.card.notional_usd
    done = notebook.read_execution()
    if done is not None and done.state == "refused" and (why := done.reason.partition(" ")[0]) in list(Protection):
        return (trade_outcomes.share_of_veto(why),), size, 0.0
    shares = trade_outcomes.shares_of_cuts(outcome.decision, outcome.ruling.changes)
    kept = 1 - fsum(part.share for part in shares)
    return shares, None if size is None or kept <= 0 else round_digits(size / kept), size


_LOG = logging.getLogger(__name__)
AUTHOR: Final = Author("post_mortem")
NO_SETUP: Final = "no setup on record"


@dataclass(frozen=True, slots=True)
class LearningBackends:
    journal: Callable[[], Awaitable[Journal]]
    log: TradeLog
    store: SeriesStore
    model_context: Callable[[RunJournal], ModelContext]
    """Asks models with what one request has on record."""
    indexes: Sequence[MemoryIndex] = ()
    tell: Callable[[str, int, int], None] | None = None
    fees: Fees = field(default_factory=Fees)
    """What exchanges take, for trades that were not made."""
    refresh: Callable[[Symbol], Awaitable[None]] | None = None
    """Reads what a live market did since the last look, before post-mortems are written; None: it is a recording."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    post_mortems: tuple[memory.PostMortem, ...] = ()
    vetoes: tuple[memory.VetoScore, ...] = ()
    lessons: tuple[memory.Lesson, ...] = ()
    reviews: tuple[memory.LessonReview, ...] = ()
    waiting: int = 0
    """Decisions that were vetoed or cut, whose trade would not be over yet."""
    notes: tuple[str, ...] = ()


class Evaluator:
    """Learns from the accounts of one home. It keeps how far it has read."""

    def __init__(self, backends: LearningBackends) -> None:
        self._with = backends
        self.book = memory_book.MemoryBook(backends.journal)
        self.indexes = memory_book.MemoryIndexes(self.book, backends.indexes, backends.tell)
        self.lessons = memory_book.LessonBook(backends.journal)
        self.vetoes = VetoLedger(backends.journal, backends.store, backends.fees)
        self.tilts = TiltBook(backends.journal, backends.store, backends.refresh)
        self._cases: list[memory.CaseRecord] = []
        self._read_cases = 0
        self._read: dict[str, int] = {}
        """Events of each account, up to the first that is still to be learned from."""
        self._intents: dict[str, set[str]] = {}
        """Whose claims were scored: the leg that closed first."""
        self._indexed = False
        """Whether the indexes were found in step since this process began."""
        self._closes: dict[str, int] = {}
        self._changes: dict[tuple[str, str | None], list[LevelsSet]] = {}
        """Of the levels of trades that are open, by account and trade."""

    async def evaluate(self, account: str, origin: str, at: Millis) -> Evaluation:
        """Score closed trades and vetoed or cut decisions that are resolved by a moment of the market. Idempotent."""
        learned = await self.learn(account, origin, at)
        vetoes, waiting = await self.vetoes.score(account, origin, at)
        return replace(learned, vetoes=vetoes, waiting=waiting)

    async def learn_from(self, gate: OrderGate) -> Evaluation:
        """Learn from what the account of a gate has closed; costs nothing where nothing is new."""
        closed, at = len(gate.book.closed), Millis(max(gate.now(), gate.book.newest))  # the wall's clock went on
        if closed == self._closes.get(gate.account):
            return Evaluation()
        learned = await self.learn(gate.account, self._with.store.origin.label, at)
        self._closes[gate.account] = closed
        return learned

    async def try_to_learn_from(self, gate: OrderGate) -> Evaluation:
        """The same after an act. The closes are booked: a failure here becomes a note, and the next look learns from
        them."""
        closed = gate.book.closed
        try:
            if not closed or await self._is_learned(memory_book.post_mortem_id(gate.account, closed[-1].trade)):
                return Evaluation()
            if self._with.refresh is not None:
                for symbol in {summary.symbol for summary in closed}:
                    await self._with.refresh(symbol)
            return await self.learn_from(gate)
        except Exception as error:
            _LOG.warning("not learned from yet: %s", error, exc_info=not isinstance(error, ZunoError))
            why = f" ({plain_text(str(error), 200)})" if isinstance(error, ZunoError) else ""
            return Evaluation(notes=(f"not learned from yet{why}; `zuno trade evaluate` does",))

    async def learn(self, account: str, origin: str, at: Millis) -> Evaluation:
        """Learn from every trade of an account that was closed by a moment of the market."""
        learned: list[memory.PostMortem] = []
        count = self._read.get(account, 0)
        intents = self._intents.setdefault(account, set())
        for event in await self._with.log.events(account, count):
            if isinstance(event, LevelsSet):
                self._changes.setdefault((account, event.trade), []).append(event)
            if isinstance(event, TradeClosed) and event.summary.sleeve == DEBATE and not event.summary.hedged:
                if event.at > at:
                    break
                first = event.summary.intent not in intents
                written = await self._learn(account, origin, event.summary, at, first=first)
                learned += [] if written is None else [written]
                if to_closed_trade(event.summary) is not None:
                    intents.add(event.summary.intent)
            if isinstance(event, TradeClosed):
                self._changes.pop((account, event.summary.trade), None)
            count += 1
            self._read[account] = count
        if not learned and self._indexed:
            return Evaluation()
        self._indexed = False
        notes = await self.indexes.update()
        remembered = (await self.book.read()).values()
        corrected = await self.lessons.correct(remembered, origin, Millis(at + 1), self._with.model_context)
        self._indexed = not notes
        return Evaluation(tuple(learned), lessons=corrected.lessons, reviews=corrected.reviews, notes=notes)

    async def cases(self, account: str, before: Millis) -> tuple[memory.CaseRecord, ...]:
        """Labelled records of an account's trades that were closed strictly before a moment."""
        records = await read_cases(await self._with.journal(), self._read_cases)
        self._cases += [record for _, record in records]
        self._read_cases = records[-1][0] if records else self._read_cases
        return tuple(case for case in self._cases if case.account == account and case.closed < before)

    async def _is_learned(self, id: str) -> bool:
        """Whether a post-mortem has its labelled record, and with it all that closed before."""
        return bool(await (await self._with.journal()).latest(1, request_id=id, kind=memory.CASE_RECORD))

    async def _learn(
        self, account: str, origin: str, summary: TradeSummary, at: Millis, *, first: bool
    ) -> memory.PostMortem | None:
        """The post-mortem, where it is new; the labelled record follows it."""
        journal = await self._with.journal()
        id = memory_book.post_mortem_id(account, summary.trade)
        if await self._is_learned(id):
            return None
        opened = None if summary.decision is None else await RunJournal(journal, summary.decision).open()
        run = None  # a person's, or of a run that has no report
        if opened is not None and opened.has(Node.GENERATE_REPORT):
            run = opened.read(Node.GENERATE_REPORT, ReportRecord).outcome
        if entries := await journal.latest(1, request_id=id, kind=memory.POST_MORTEM):
            post_mortem = memory_book.read_post_mortem(entries[0])
        else:
            written = await self._write(id, account, origin, summary, run, at)
            post_mortem = await memory_book.write_once(journal, AUTHOR, memory.POST_MORTEM, written, id)
        record = derive(
            memory.CaseRecord,
            post_mortem,
            summary,
            bundle=None if run is None else run.bundle,
            r=post_mortem.path.r,
            fees=float(summary.fees),
            funding=float(summary.funding),
            claims=list_claims(run, summary) if run is not None and first else (),
        )
        await journal.append_once(kind=memory.CASE_RECORD, author=AUTHOR, payload=record, request_id=id)
        return post_mortem

    async def _write(
        self, id: str, account: str, origin: str, summary: TradeSummary, run: Outcome | None, at: Millis
    ) -> memory.PostMortem:
        journal, changes = await self._with.journal(), self._changes.get((account, summary.trade), ())
        about = summary.exchange, summary.symbol, summary.opened, summary.closed
        path = trade_outcomes.trace_path(summary, await read_bars(self._with.store, *about, known_by=at), changes)
        case = ClosedCase(
            summary=summary,
            path=path,
            verdict=trade_outcomes.judge_outcome(path, summary.net_pnl),
            setup=await self._describe_setup(journal, run),
            regime=None if run is None else run.meta.regime,
        )
        words = await write_post_mortem(case, self._with.model_context(await RunJournal(journal, id).open()))
        market = origin if run is None else run.origin
        return derive(memory.PostMortem, words, case, summary, id=id, account=account, origin=market)

    async def _describe_setup(self, journal: Journal, run: Outcome | None) -> str:
        """The setup when the trade was decided: as the run recalled by it, else measured again from its bundle."""
        if run is None:
            return NO_SETUP
        try:
            bundle = read_bundle(await journal.bundle(Digest(run.bundle)))
            if (recalled := read_memories(bundle)) is not None:
                return recalled.setup
            case = build_case(bundle)
        except (Malformed, NotFound):  # of an older Zuno
            return NO_SETUP
        return describe_setup(case.features, case.context)


async def read_cases(journal: Journal, after: int = 0) -> list[tuple[int, memory.CaseRecord]]:
    return [
        (entry.seq, memory_book.parse_entry(entry, memory.CaseRecord, "record of a closed trade"))
        async for entry in journal.entries(kind=memory.CASE_RECORD, after=after)
    ]
