"""Wire the trading desk's backtests: a recorded store, and for every arm an account, a gate and a paper venue."""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.imports.files import HistoryFiles
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.table import InMemoryIndex
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.venues.paper.tape import FundingRate, MarketTape, Tick
from zuno.adapters.venues.paper.venue import PaperVenue, venue_account
from zuno.adapters.worker_processes import TaskRunner
from zuno.journal.journal import ChainedJournal
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.lab.replies import ModelMeter, keep_replies
from zuno.lab.reports import LabReports
from zuno.lab.strategies import (
    HistoryFolder,
    StrategyLab,
    StrategyTask,
    backtest_strategy,
    play_tilts,
    run_strategy,
)
from zuno.lab.trading import ablations
from zuno.lab.trading.arm_result import ArmResult, PriceSeries, cut_events, measure_arm
from zuno.lab.trading.arms import ALONE, ASKED, ORDER_ARMS, Arm
from zuno.lab.trading.cycles import BacktestCycles, BacktestHistory, always
from zuno.lab.trading.engine import DeskArm, Learning, Lockstep, run_desk_arm
from zuno.lab.trading.figures import MarketFigures
from zuno.lab.trading.order_arms import carry_out, slots_of
from zuno.lab.trading.question import TradeMarket
from zuno.lab.trading.service import ArmsTask, TradeLab
from zuno.llm.ask import ModelContext
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUE, Venue
from zuno.settings import Settings
from zuno.trading.data.daily_histories import read_days
from zuno.trading.learn.evaluator import Evaluator, LearningBackends
from zuno.trading.learn.recall import CaseRecall
from zuno.trading.model.bundle import Bundle, BundleEncoder
from zuno.trading.model.cycle import Node, Outcome
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Timeframe, candles, funding, rates
from zuno.trading.model.trade_events import paper_account
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import INVENTED, RECORDED, SeriesStore
from zuno.trading.rules.inputs import Fees
from zuno.trading.run.nodes import Cycle
from zuno.trading.run.record import ReportRecord, RunJournal
from zuno.trading.service.imports import Imports
from zuno.trading.strategies.catalogue import STRATEGIES
from zuno.trading.watch.desk_loop import MarketClock
from zuno.wiring.cycles import build_run_context, disable_tracing
from zuno.wiring.lab_models import FRESH_REPLIES, REPLIES, LabModels, follow, name_models
from zuno.wiring.orders import build_paper_gate, choose_latency, open_tape
from zuno.wiring.recordings import Recordings

CODE: Final = "backtest"
FUNDING_FILE: Final = "funding-daily"
FUNDING_SERIES: Final = "funding/binance/BTCUSDT"
"""Files of daily means do not name a symbol; those of the known folder are BTC's."""
SHORT_DAYS: Final = 730
"""A backtest on fewer says so."""
REPORT_MS: Final = 30 * 86_400_000
"""Between two progress reports of the arms; a run that is cut short answers with the last."""


def build_trade_lab(settings: Settings, recordings: Recordings, reports: LabReports, run: TaskRunner) -> TradeLab:
    @asynccontextmanager
    async def open_market(folder: str | None) -> AsyncIterator[TradeMarket]:
        if folder is None:
            own = recordings.selected_store()
            name = "synthetic" if own.origin.synthetic else "own"
            yield await read_market(own, settings.home / "market" / name, "", settings.markets)
            return
        with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as place:
            store, left_out = await import_history(folder, Path(place))
            try:
                market = await read_market(store, Path(place), folder, settings.markets)
                yield replace(market, left_out=left_out)
            finally:
                await store.close()

    play = partial(run, partial(run_task, str(settings.home)))
    return TradeLab(open_market, play, reports, partial(name_models, settings.home, "trading"))


def build_strategy_lab(reports: LabReports, run: TaskRunner) -> StrategyLab:
    return StrategyLab(read_histories, partial(run, run_strategy), reports)


async def import_history(folder: str, place: Path) -> tuple[SqliteSeries, tuple[str, ...]]:
    """Import a folder's files into a store that is deleted with the backtest; with the files that were left out, and
    why."""
    store = SqliteSeries(place, RECORDED)
    imports = Imports(HistoryFiles(), store, unix_millis, read_here=True)
    files = [file.path for file in HistoryFiles().find([folder])]
    means = [path for path in files if FUNDING_FILE in Path(path).name]
    view = await imports.run(
        [path for path in files if path not in means], None, "auto", lambda _: None, lambda _: True
    )
    if not view.rows:
        raise Refused(f"Nothing of {folder} could be imported: {view.files[0].failure}")
    done = list(view.files)
    if means:
        done += (await imports.run(means, FUNDING_SERIES, "auto", lambda _: None, lambda _: True)).files
    return store, tuple(f"{Path(file.file).name}: {file.failure}" for file in done if file.failure)


async def read_histories(folder: str) -> HistoryFolder:
    """Days of every market that a folder's files hold."""
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as place:
        store, left_out = await import_history(folder, Path(place))
        try:
            hours = f"/{Timeframe.H1}"
            names = [span.series.name for span in await store.spans() if span.series.venue == BINANCE]
            symbols = [Symbol(name.removesuffix(hours)) for name in names if name.endswith(hours)]
            histories = await read_days(store, symbols, Millis(2**53 - 1))
        finally:
            await store.close()
    if not histories:
        raise Refused(f"{folder} holds no hours of a market of {DEFAULT_VENUE.label}.")
    content = hashlib.sha256(repr(histories).encode())
    return HistoryFolder(folder, store.origin.label, histories, Digest(content.hexdigest()), left_out)


async def describe_backtest(store: SeriesStore, sleeve: str, symbols: Sequence[Symbol], at: Millis) -> str:
    """What a sleeve's strategy would have earned on the recorded days of these markets, in sentences."""
    if sleeve not in STRATEGIES:
        return f"{sleeve} is your own: what its shadow earned is its record. Not shown to be alpha."
    histories = tuple(history for history in await read_days(store, symbols, at) if history.days)
    days = sorted(day for history in histories for day in (history.days[0], history.days[-1]))
    row = backtest_strategy(StrategyTask(sleeve, histories, days[0], days[-1])) if days else None
    if row is None:
        return f"No backtest: the recorded days of {', '.join(symbols)} are too few for it. Not shown to be alpha."
    short = "" if row.days >= SHORT_DAYS else " That is a short history."
    sharpe = ""
    if row.sharpe is not None:
        between = "" if row.sharpe_ci95 is None else f" (95 %: {row.sharpe_ci95[0]:.2f} to {row.sharpe_ci95[1]:.2f})"
        sharpe = f", Sharpe ratio {row.sharpe:.2f}{between}"
    return " ".join(
        (
            f"Backtest on {row.days:,} days of {store.origin.label} from {row.since}: {row.annual_return:+.1%} a year"
            f"{sharpe}, worst fall {row.drawdown:.1%}, after costs, without the drawdown scaler.{short} Not shown to "
            "be alpha.",
            *(f"Not in it: {risk}." for risk in row.risks),
        )
    )


async def read_market(store: SeriesStore, place: Path, folder: str, markets: Sequence[Symbol]) -> TradeMarket:
    ever = Millis(2**53 - 1)
    prices: dict[Symbol, PriceSeries] = {}
    funded: dict[Symbol, frozenset[int]] = {}
    content, minutes = hashlib.sha256(store.origin.label.encode()), False
    for symbol in markets:
        rows = await store.read(candles(BINANCE, symbol, Timeframe.H1), Millis(0), ever, ever)
        if rows:
            prices[symbol] = PriceSeries(
                tuple(row.at + HOUR_MS for row in rows), tuple(float(row.close) for row in rows)
            )
            content.update(repr([tuple(row) for row in rows]).encode())
        settled = await store.read(funding(BINANCE, symbol), Millis(0), ever, ever)
        funded[symbol] = frozenset(row.at // DAY_MS for row in settled)
        for series in wanted_series(symbol):
            # A folder is read whole; of the home's own recording, which may be of minutes, the newest rows.
            some = await store.read(series, Millis(0), ever, ever, None if folder else 1)
            content.update(f"{series} {[tuple(row) if isinstance(row, tuple) else row for row in some]}".encode())
            minutes = minutes or (bool(some) and series == candles(BINANCE, symbol, Timeframe.M1))
    for span in await store.spans():
        content.update(repr(span).encode())
    krw_rate = await store.read(rates(UPBIT, USDT_KRW), Millis(0), ever, ever)
    return TradeMarket(
        place=str(place),
        folder=folder,
        origin=store.origin.label,
        synthetic=store.origin.synthetic,
        candles_only=store.origin.candles_only,
        minutes=minutes,
        prices=prices,
        funded_days=funded,
        krw_rate=PriceSeries(tuple(row.at for row in krw_rate), tuple(float(row.value) for row in krw_rate))
        if krw_rate
        else None,
        fingerprint=Digest(content.hexdigest()),
    )


async def run_task(home: str, task: ArmsTask) -> AsyncIterator[ArmResult | None]:
    """Run arms concurrently; yields each arm's result, and None for every slot played. `home`: whose models are asked
    where the task allows it, one arm after the other."""
    disable_tracing()
    store = SqliteSeries(Path(task.market.place), INVENTED if task.market.synthetic else RECORDED)
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as name:
        try:
            async with aclosing(follow(partial(_run_arms, home, task, store, Path(name)))) as heard:
                async for message in heard:
                    yield message
        finally:
            await store.close()


async def _run_arms(
    home: str, task: ArmsTask, store: SqliteSeries, folder: Path, hear: Callable[[ArmResult | None], None]
) -> None:
    span, prices = task.span, {symbol: task.market.prices[symbol] for symbol in task.symbols}
    for arm in (arm for arm in task.arms if arm in ORDER_ARMS):
        log, clock = MemoryTradeLog(), MarketClock(span.begin)
        venue = open_order_venue(store, log, arm, clock)
        orders = task.plan_orders(arm, prices)
        refused = await carry_out(arm.value, orders, venue, clock, span, lambda: hear(None))
        events = log.list_events(venue_account(arm.value, Venue("BINANCE")))
        hear(measure_arm(arm, events, prices, span, span.end, refused=refused))
    if all(arm in ORDER_ARMS for arm in task.arms):
        return
    lab_models = LabModels(home if task.models else None, folder)
    try:
        await _run_desk_arms(task, store, folder, lab_models, hear)
    finally:
        await lab_models.close()


async def _run_desk_arms(
    task: ArmsTask,
    store: SqliteSeries,
    folder: Path,
    lab_models: LabModels,
    hear: Callable[[ArmResult | None], None],
) -> None:
    desk_arms = [arm for arm in task.arms if arm not in ORDER_ARMS and can_run(lab_models, arm)]
    if not desk_arms:
        return
    span, prices = task.span, {symbol: task.market.prices[symbol] for symbol in task.symbols}
    figures = {symbol: MarketFigures(store, symbol) for symbol in task.symbols}
    for each in figures.values():
        await each.load([Millis(slot) for slot in slots_of(span)])
    voices = {symbol: ablations.SharedAnswers() for symbol in task.symbols}
    tick = MINUTE_MS if task.market.minutes else HOUR_MS
    desks = [
        build_desk_arm(arm, store, figures, voices, span.begin, tick, folder, lab_models, task.vote_tokens)
        for arm in desk_arms
    ]
    stop = asyncio.Event()
    reported: dict[Arm, Millis] = {}

    def tell(desk: DeskArm) -> Callable[[Millis], Any]:
        async def tell_moment(at: Millis) -> None:
            hear(None)
            if at - reported.setdefault(desk.arm, span.begin) >= REPORT_MS:
                reported[desk.arm] = at
                hear(desk.measure(prices, task.market.krw_rate, span, at))

        return tell_moment

    # What one arm was answered the next one finds in the book: arms that ask models do not come to a moment together.
    for abreast in [[desk] for desk in desks] if task.models else [desks]:
        lockstep = Lockstep(len(abreast))
        await asyncio.gather(*(run_desk_arm(desk, span, lockstep, tell(desk), stop) for desk in abreast))
        for desk in abreast:
            scored = await desk.record.score(cut_events(desk.events(), span.end), store, span.end)
            tilt = None
            if desk.arm is Arm.DEBATE:
                histories = await read_days(store, task.symbols, span.end)
                tilt = await asyncio.to_thread(play_tilts, desk.judge_views, histories, span.begin, span.end)
            hear(desk.measure(prices, task.market.krw_rate, span, span.end, scored, tilt))


def open_order_venue(store: SeriesStore, log: MemoryTradeLog, arm: Arm, clock: MarketClock) -> PaperVenue:
    """The paper venue of an arm without a desk. Buy-and-hold owns coins, and pays no funding."""

    async def read_clock() -> Millis:
        return clock.now()

    tape = open_tape(store, Venue("BINANCE"))
    if arm is Arm.HOLD:
        tape = SpotTape(tape)
    fees, latency = Fees().at(Venue("BINANCE")), choose_latency(store)
    return PaperVenue(Venue("BINANCE"), arm.value, log, tape, read_clock, fees, latency_ms=latency)


class SpotTape:
    def __init__(self, tape: MarketTape) -> None:
        self._tape = tape
        self.opening_ms = tape.opening_ms

    async def ticks(self, symbol: Symbol, after: Millis, until: Millis) -> Sequence[Tick]:
        return _without_funding(await self._tape.ticks(symbol, after, until))

    async def before(self, symbol: Symbol, moment: Millis) -> Sequence[Tick]:
        return _without_funding(await self._tape.before(symbol, moment))


def _without_funding(ticks: Sequence[Tick]) -> list[Tick]:
    return [tick for tick in ticks if not isinstance(tick, FundingRate)]


def can_run(lab_models: LabModels, arm: Arm) -> bool:
    if arm is Arm.AA and lab_models.asks:
        return lab_models.can_answer("judge", FRESH_REPLIES) or not lab_models.can_answer("judge")
    return arm not in ASKED or lab_models.can_answer(ASKED[arm])


def open_model_context(lab_models: LabModels, notebook: RunJournal, arm: Arm, meter: ModelMeter) -> ModelContext:
    book = FRESH_REPLIES if arm is Arm.AA else REPLIES
    model_context = build_run_context(lab_models.models, notebook, lab_models.registry(book))
    return keep_replies(model_context, lab_models.books[book], meter) if lab_models.asks else model_context


def build_desk_arm(
    arm: Arm,
    store: SqliteSeries,
    figures: Mapping[Symbol, MarketFigures],
    voices: Mapping[Symbol, ablations.SharedAnswers],
    begin: Millis,
    tick_ms: int,
    folder: Path,
    lab_models: LabModels | None = None,
    vote_tokens: int = 0,
) -> DeskArm:
    """An arm with its own account, gate, paper venue and memory."""
    settings = Settings(home=folder, deterministic=True, let_run_pct=50 if arm is Arm.LET_RUN else 0)
    models = lab_models or LabModels(None, folder)
    log, clock, history = MemoryTradeLog(), MarketClock(begin), BacktestHistory()
    # Runs, intents and lessons are named after it: one name, or arms that do the same would not be alike.
    account = paper_account(store.origin.label)
    meter = ModelMeter(clock.now)
    shared: list[ModelContext] = []

    def model_context(notebook: RunJournal) -> ModelContext:
        """Without models one context serves every cycle."""
        if models.asks:
            return open_model_context(models, notebook, arm, meter)
        if not shared:
            shared.append(open_model_context(models, notebook, arm, meter))
        return shared[0]

    seats = choose_cycle(arm, vote_tokens)
    cycles = {
        symbol: BacktestCycles(
            each,
            model_context,
            history,
            code=CODE,
            account=account,
            cycle=seats if models.asks else ablations.share_answers(seats, voices[symbol]),
            policy="seed" if arm is Arm.SEED else "record",
        )
        for symbol, each in figures.items()
    }
    learning = None if arm is Arm.NO_MEMORY else build_learning(account, log, store, model_context, folder / arm.value)
    return DeskArm(
        arm=arm,
        account=account,
        gate=build_paper_gate(settings, store, log, account, clock.now),
        clock=clock,
        cycles=cycles,
        events=lambda: log.list_events(account),
        learning=learning,
        tick_ms=tick_ms,
        meter=meter,
    )


def choose_cycle(arm: Arm, vote_tokens: int = 0) -> type[Cycle]:
    if arm in ALONE:
        return ablations.build_single_expert(ALONE[arm])
    if arm is Arm.VOTE:
        return ablations.let_judges_vote(vote_tokens)
    others: dict[Arm, type[Cycle]] = {
        Arm.NO_CRO: ablations.WithoutRiskOfficer,
        Arm.SINGLE: ablations.JudgeAlone,
        Arm.PLACEBO: ablations.PlaceboOfficer,
    }
    return others.get(arm, Cycle)


def build_learning(
    account: str,
    log: MemoryTradeLog,
    store: SqliteSeries,
    model_context: Callable[[RunJournal], ModelContext],
    folder: Path,
) -> Learning:
    """Post-mortems, recall and lessons as at the desk, in a journal and an index of the arm's own."""
    key = KeyFile(folder / "keys")
    key.ensure()
    journal = ChainedJournal(MemoryStore(), key, code=lambda: CODE, now=lambda: Millis(0))
    index, encoder = InMemoryIndex(HashedEmbedder()), BundleEncoder()
    evaluator = Evaluator(LearningBackends(always(journal), log, store, model_context, (index,)))

    async def keep_run(run_id: str, outcome: Outcome, bundle: Bundle) -> None:
        # A post-mortem asks what was recalled, and by which setup: the market's rows are not kept.
        name = await journal.put_bundle(encoder.encode(replace(bundle, blocks=())))
        report = ReportRecord(outcome=outcome.model_copy(update={"bundle": name}), at=outcome.as_of)
        await RunJournal(journal, run_id).keep(Node.GENERATE_REPORT, report)

    async def learn(at: Millis) -> int:
        return len((await evaluator.learn(account, store.origin.label, at)).lessons)

    return Learning(CaseRecall(index, evaluator.book, evaluator.lessons), keep_run, learn)
