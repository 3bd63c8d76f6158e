"""Whether memory helps: the same moments ruled with recall on, off, shuffled and by recency alone."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Final

from zuno.kernel.canonical import Digest
from zuno.kernel.units import Millis
from zuno.kernel.wire import derive
from zuno.lab.rulings import STARTING_ACCOUNT
from zuno.lab.trading.cycles import always, build_sources, run_nodes
from zuno.llm.ask import ModelContext
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import DEFAULT_VENUE, Venue
from zuno.trading.agents.case import Case, build_case, replace_bundle
from zuno.trading.agents.learned import find_cut
from zuno.trading.agents.post_mortem import ClosedCase, write_post_mortem
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.data.price_path import read_bars, read_funding
from zuno.trading.learn.memory_book import post_mortem_id
from zuno.trading.measure.bars import SpanBar
from zuno.trading.measure.setup import describe_setup
from zuno.trading.model.account import account_slots
from zuno.trading.model.bundle import Slot, add_slots
from zuno.trading.model.cycle import Expectation, JudgeKind, Outcome
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode, Side
from zuno.trading.model.memory import DeskRecord, MemoryRecord, PostMortem, RecallQuery, RecallResult, make_slot
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.trade_events import ExitReason, TradeSummary, paper_account
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.trade_outcomes import bar_touch, judge_outcome, trace_path
from zuno.trading.run.nodes import Cycle
from zuno.trading.run.record import MarketMoment, RunJournal

MODE: Final = Mode.SWING
LONGEST_MS: Final = 5 * 24 * HOUR_MS
"""The longest hold of the rules: what begins later than this before the market's end is left out."""
NOTIONAL: Final = Decimal(1_000)
CODE: Final = "study"
_NO_DIGEST: Final = Digest("0" * 64)


class Arm(StrEnum):
    ON = "on"
    OFF = "off"
    SHUFFLED = "shuffled"
    RECENT = "recent3"
    LESSONS = "on+lessons"


class World(StrEnum):
    PLANTED = "planted"
    """Two setups keep coming back: trades in one of them fail, trades in the other pay."""
    NO_EDGE = "no edge"
    """The same signs, and nothing follows from them."""


@dataclass(frozen=True, slots=True)
class MemoryMarket:
    seed: int
    world: World
    store: SeriesStore
    moments: tuple[tuple[Millis, str], ...]
    """When it is ruled, and which setup was planted there."""
    end: Millis


@dataclass(slots=True)
class ArmDesk:
    """One arm's past in one market; wiring gives it its memory."""

    arm: Arm
    recall: Callable[[Case], Awaitable[Sequence[Slot]]] | None
    """None: nothing is remembered."""
    remember: Callable[[PostMortem], Awaitable[None]]
    model_context: Callable[[RunJournal], ModelContext]
    open_journal: Callable[[], RunJournal]
    busy_until: dict[Symbol, Millis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TradeResult:
    side: str
    r: int
    """In ten-thousandths of R, after fees and funding."""
    hit: bool


@dataclass(frozen=True, slots=True)
class MemoryMoment:
    """What the arms did at one moment of one symbol; an arm that held a position, or ruled HOLD, has no trade."""

    seed: int
    world: str
    number: int
    day: int
    """Of the market's clock: trades of one day are one draw of the bootstrap."""
    symbol: str
    setup: str
    """That was planted: failing, paying or ordinary."""
    trades: dict[str, TradeResult]


class ShuffledIndex:
    """Finds as many memories as the index behind it, but any that could be known."""

    name: Final = "shuffled"

    def __init__(self, index: MemoryIndex, seed: int) -> None:
        self._index = index
        self._seed = seed
        self._known: dict[str, Millis] = {}

    async def add(self, records: Sequence[MemoryRecord]) -> None:
        await self._index.add(records)
        self._known.update((record.id, record.at) for record in records)

    async def recall(self, query: RecallQuery) -> RecallResult:
        answer = await self._index.recall(query)
        known = [id for id, at in self._known.items() if at < query.before]
        known.sort(key=lambda id: sha256(f"{self._seed} {query.before} {id}".encode()).digest())
        pairs = zip(answer.found, known, strict=False)
        drawn = tuple(each.model_copy(update={"id": id, "similarity": None}) for each, id in pairs)
        return RecallResult(source=self.name, found=drawn)

    async def remove(self, id: str) -> None:
        await self._index.remove(id)
        self._known.pop(id, None)

    async def ids(self) -> frozenset[str]:
        return frozenset(self._known)

    async def rebuild(self, records: Sequence[MemoryRecord], removed: Collection[str] = ()) -> None:
        await self._index.rebuild(records, removed)
        self._known = {record.id: record.at for record in records if record.id not in removed}


async def study_memory(market: MemoryMarket, desks: Sequence[ArmDesk]) -> AsyncIterator[MemoryMoment]:
    for number, (at, setup) in enumerate(market.moments):
        for symbol in DEFAULT_SYMBOLS:
            trades: dict[str, TradeResult] = {}
            ready = [desk for desk in desks if desk.busy_until.get(symbol, 0) <= at]
            if ready and (opening := await _find_opening(market, ready[0], symbol, at)) is not None:
                for desk in ready:
                    if await opens_with_memory(desk, opening):
                        # What is remembered at once is recalled only at moments after its close.
                        await desk.remember(opening.post_mortem)
                        desk.busy_until[symbol] = opening.post_mortem.closed
                        trades[desk.arm.value] = opening.result
            yield MemoryMoment(market.seed, market.world.value, number, at // DAY_MS, symbol.value, setup, trades)


@dataclass(frozen=True, slots=True)
class Opening:
    """What the desk opens at a moment without memory, and what came of it."""

    case: Case
    side: Side
    post_mortem: PostMortem

    @property
    def result(self) -> TradeResult:
        r = self.post_mortem.path.r
        assert r is not None, "every trade of the study has a stop"
        return TradeResult(self.side.value, round(r * 10_000), r > 0)


async def opens_with_memory(desk: ArmDesk, opening: Opening) -> bool:
    """A memory only takes something off what is claimed, levels stay; where it takes off nothing the ruling stands."""
    if desk.recall is None:
        return True
    recalled = await desk.recall(opening.case)
    if find_cut(add_slots(opening.case.bundle, recalled), opening.side) is None:
        return True
    outcome = await rule_case(desk, opening.case, recalled)
    return outcome.ruling.decision.side is opening.side


async def read_case(store: SeriesStore, symbol: Symbol, at: Millis) -> Case:
    slots = [*account_slots(STARTING_ACCOUNT, at, CODE), make_slot(DeskRecord(), at)]
    return build_case(await build_bundle(store, symbol, MODE, at, slots))


async def _find_opening(market: MemoryMarket, desk: ArmDesk, symbol: Symbol, at: Millis) -> Opening | None:
    case = await read_case(market.store, symbol, at)
    outcome = await rule_case(desk, case)
    summary = await simulate_trade(market.store, outcome, market.end)
    if summary is None:
        return None
    return Opening(case, summary.side, await _write_case(market.store, desk, case, outcome, summary))


async def _write_case(
    store: SeriesStore, desk: ArmDesk, case: Case, outcome: Outcome, summary: TradeSummary
) -> PostMortem:
    at, symbol = case.bundle.as_of, case.bundle.symbol
    account = paper_account(case.bundle.origin)
    bars = await read_bars(store, Venue("BINANCE"), symbol, at, summary.closed, known_by=summary.closed)
    path = trace_path(summary, bars)
    closed = ClosedCase(
        summary=summary,
        path=path,
        verdict=judge_outcome(path, summary.net_pnl),
        setup=describe_setup(case.features, case.context),
        regime=outcome.meta.regime,
    )
    written = await write_post_mortem(closed, desk.model_context(desk.open_journal()))
    return derive(
        PostMortem,
        closed,
        written,
        id=post_mortem_id(account, summary.trade),
        account=account,
        origin=case.bundle.origin,
        symbol=symbol,
        side=summary.side,
        mode=MODE,
        closed=summary.closed,
    )


async def rule_case(desk: ArmDesk, case: Case, recalled: Sequence[Slot] = ()) -> Outcome:
    """The nodes of a cycle over a case that is there already, with what was recalled."""
    case = replace_bundle(case, add_slots(case.bundle, recalled))
    bundle = case.bundle
    sources = build_sources(MarketMoment(as_of=bundle.as_of, origin=bundle.origin), always((_NO_DIGEST, case)))
    journal = desk.open_journal()
    return await run_nodes(Cycle(journal, sources, desk.model_context(journal), lambda event: None, CODE))


async def simulate_trade(store: SeriesStore, outcome: Outcome, end: Millis) -> TradeSummary | None:
    """What was ruled, carried to its end; None where nothing was to be opened, or the price had left its levels."""
    side, decision, at = outcome.ruling.decision.side, outcome.decision, outcome.as_of
    stop, target = decision.stop_loss, decision.take_profit
    if side is None or stop is None or target is None:
        return None
    until = Millis(min(at + hold_hours(decision.hold_duration, outcome.mode) * HOUR_MS, end))
    bars = await read_bars(store, Venue("BINANCE"), outcome.symbol, at, until, known_by=until)
    sign = side.sign
    if not bars or not sign * stop < sign * bars[0].open < sign * target:
        return None
    last, price, reason = _find_exit(bars, sign, stop, target)
    entry, leaves = to_decimal(bars[0].open), to_decimal(price)
    quantity = (NOTIONAL / entry).quantize(Decimal("0.00000001"))
    gross = quantity * (leaves - entry) * sign
    fees = quantity * (entry + leaves) * to_decimal(DEFAULT_VENUE.taker) / 100
    paid = await read_funding(store, outcome.symbol, at, last.end, known_by=last.end)
    funding = -sum((to_decimal(row.rate) for row in paid), Decimal(0)) * quantity * entry * sign
    return TradeSummary(
        trade=f"{outcome.symbol}_{at}",
        intent=f"int_{outcome.symbol}_{at}",
        decision=None,
        exchange=Venue("BINANCE"),
        symbol=outcome.symbol,
        side=side,
        mode=outcome.mode,
        opened=at,
        closed=last.end,
        quantity=quantity,
        entry=entry,
        exit=leaves,
        stop=to_decimal(stop),
        target=to_decimal(target),
        gross_pnl=gross,
        fees=fees,
        funding=funding,
        net_pnl=gross - fees + funding,
        reason=reason,
        exploration=True,
        judge=JudgeKind.RULES,
        family=outcome.meta.regime.family,
        edge=outcome.expectation.edge if isinstance(outcome.expectation, Expectation) else None,
    )


def _find_exit(bars: Sequence[SpanBar], sign: int, stop: float, target: float) -> tuple[SpanBar, float, ExitReason]:
    """At the level that was touched first, or at the open beyond it; at the last close where none was."""
    for bar in bars:
        touch = bar_touch(bar, sign, stop, target)
        if touch == "stop":
            return bar, sign * min(sign * stop, sign * bar.open), ExitReason.STOP
        if touch == "target":
            return bar, target, ExitReason.TARGET
    return bars[-1], bars[-1].close, ExitReason.HOLD_OVER
