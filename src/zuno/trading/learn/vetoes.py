"""The veto ledger: decisions that wanted to open and were vetoed or cut are played on what the market did then, and
scored once, when that is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import Millis
from zuno.trading.data.price_path import read_bars, read_funding
from zuno.trading.learn.memory_book import parse_entry
from zuno.trading.model.cycle import Call, Exchange, Node
from zuno.trading.model.market import HOUR_MS, Symbol
from zuno.trading.model.memory import VETO_SCORE, RuleShare, VetoScore
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.trade_outcomes import (
    BarColumns,
    PlannedTrade,
    belongs_to_account,
    share_of_veto,
    shares_of_cuts,
    simulate_trade,
)
from zuno.trading.run.record import ENDED, ReportRecord, RunSummary, kind_of

AUTHOR: Final = Author("veto_ledger")


@dataclass(frozen=True, slots=True)
class WaitingVeto:
    """A decision that was vetoed or cut and is not resolved yet."""

    id: str
    run: str
    summary: RunSummary
    wanted: PlannedTrade
    rules: tuple[RuleShare, ...]


class VetoLedger:
    """Reads runs and scores on from where it has read."""

    def __init__(self, journal: Callable[[], Awaitable[Journal]], store: SeriesStore, fees: Fees) -> None:
        self._journal = journal
        self._store = store
        self._fees = fees
        self._read_runs = self._read_scores = 0
        self._scores: dict[str, VetoScore] = {}
        self._waiting: dict[str, WaitingVeto] = {}

    async def read(self) -> tuple[VetoScore, ...]:
        """Every score, in the order they were written."""
        journal = await self._journal()
        async for entry in journal.entries(kind=VETO_SCORE, after=self._read_scores):
            score = parse_entry(entry, VetoScore, "score of a veto")
            self._scores[score.id] = score
            self._waiting.pop(score.id, None)
            self._read_scores = entry.seq
        return tuple(self._scores.values())

    async def score(self, account: str, origin: str, at: Millis) -> tuple[tuple[VetoScore, ...], int]:
        """Score what is resolved by a moment of the market, on paper also runs that no account acts on: the new scores,
        and how many wait."""
        await self.read()
        await self._read_new_runs()
        due = [
            waiting
            for waiting in self._waiting.values()
            if waiting.summary.origin == origin
            and belongs_to_account(account, waiting.summary.account)
            and waiting.summary.as_of < at
        ]
        scores = await play_vetoes(due, self._store, self._fees, at)
        journal = await self._journal()
        for score in scores:
            await journal.append_once(kind=VETO_SCORE, author=AUTHOR, payload=score, request_id=score.id)
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
            waiting = find_veto(run, past, await _read_changes(journal, run, past))
            if waiting is not None:
                self._waiting[id] = waiting


def find_veto(run: str, past: RunSummary, changed: Sequence[RuleShare]) -> WaitingVeto | None:
    """`changed`: what rules took away of a trade that was opened all the same. None: nothing was taken away."""
    rules = (share_of_veto(past.veto),) if past.ruling is Call.HOLD and past.veto is not None else tuple(changed)
    wanted = _planned_trade(past)
    return None if wanted is None or not rules else WaitingVeto(_score_id(past), run, past, wanted, rules)


async def play_vetoes(due: Sequence[WaitingVeto], store: SeriesStore, fees: Fees, at: Millis) -> list[VetoScore]:
    """Those that are resolved by a moment of the market."""
    scores: list[VetoScore] = []
    for symbol in dict.fromkeys(waiting.summary.symbol for waiting in due):
        scores += await _play(symbol, [each for each in due if each.summary.symbol is symbol], store, fees, at)
    return scores


async def _play(
    symbol: Symbol, due: Sequence[WaitingVeto], store: SeriesStore, fees: Fees, at: Millis
) -> list[VetoScore]:
    since = min(waiting.wanted.at for waiting in due)
    until = Millis(min(at, max(waiting.wanted.hold_until for waiting in due)))
    bars = BarColumns(await read_bars(store, Exchange.BINANCE, symbol, since, until, known_by=at))
    funding = await read_funding(store, symbol, since, until, known_by=at)
    taken = 2 * fees.at(Exchange.BINANCE).taker
    assumed = store.origin.candles_only and not funding
    scores = []
    for waiting in due:
        played = simulate_trade(waiting.wanted, bars, funding, taken, at, assumed=assumed)
        if played is None:
            continue
        past = waiting.summary
        scores.append(
            VetoScore(
                id=waiting.id,
                run=waiting.run,
                account=past.account,
                origin=past.origin,
                symbol=past.symbol,
                mode=past.mode,
                side=waiting.wanted.side,
                regime=past.regime,
                judge=past.judge,
                decided=past.as_of,
                resolved=played.resolved,
                exit=played.exit,
                pct=played.pct,
                r=played.r,
                rules=waiting.rules,
            )
        )
    return scores


def _score_id(past: RunSummary) -> str:
    return f"veto_{digest(canonical([past.origin, past.account, past.symbol, past.mode, past.as_of]))[:24]}"


def _planned_trade(past: RunSummary) -> PlannedTrade | None:
    """What the Judge decided; None where it wanted to open nothing, or at no prices."""
    side = past.decision.side
    if side is None or past.stop_loss is None or past.take_profit is None:
        return None
    hold = hold_hours(past.hold_duration, past.mode) * HOUR_MS
    return PlannedTrade(past.as_of, side, past.stop_loss, past.take_profit, Millis(past.as_of + hold))


async def _read_changes(journal: Journal, run: str, past: RunSummary) -> tuple[RuleShare, ...]:
    if past.ruling.side is None:
        return ()
    reports = await journal.latest(1, request_id=run, kind=kind_of(Node.GENERATE_REPORT))
    if not reports:
        return ()
    outcome = ReportRecord.model_validate(dict(reports[0].payload), strict=False).outcome
    return shares_of_cuts(outcome.decision, outcome.ruling.changes)
