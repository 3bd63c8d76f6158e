"""Backtests of the core strategies on daily closes: filled at the deciding close, costs on every change of a weight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from statistics import stdev
from typing import Final

import numpy as np

from zuno.kernel import arguments
from zuno.kernel.canonical import Digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.wire import derive
from zuno.lab import strategies_view
from zuno.lab.comparisons import POWER_Z, draw_sharpes, middle_of
from zuno.lab.reports import LabReports, report_id, trial_id
from zuno.lab.returns import compound, measure_returns, round_figure
from zuno.lab.trading.views import KINDS, name_kind
from zuno.lab.trading.views import TREND as BULL_MOVE
from zuno.lab.trading.views import TREND_DAYS as BULL_DAYS
from zuno.lab.workers import Progress, RunTasks, check_any_done, check_workers, write_command
from zuno.markets.market import Symbol, parse_symbol
from zuno.trading.learn.tilt_book import JudgeView
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.market import DAY_MS
from zuno.trading.strategies.catalogue import STRATEGIES, STRATEGY_EDITION
from zuno.trading.strategies.port import DAYS_PER_YEAR, Floats, MarketHistory, StrategyView, align_days
from zuno.trading.strategies.scaler import simulate, sum_rows
from zuno.trading.strategies.tilt import DayTilt, measure_tilt, score_tilts
from zuno.trading.strategies.trend import TREND, VOL_HOLD

KIND: Final = "strategies"
CARRY_RISKS: Final = (
    "funding prints alone: no basis between spot and perpetual, no margin call, no liquidation by mark, no venue that "
    "fails; its Sharpe ratio would mean nothing and is not shown",
)
BLOCK_DAYS: Final = 30
"""Drawn together by the bootstrap: as long as volatility is measured over."""
DIGITS: Final = 9
NOT_COMPARED: Final = strategies_view.DifferenceView(sharpe=None, ci95=None, smallest=None)


@dataclass(frozen=True, slots=True)
class HistoryFolder:
    folder: str
    origin: str
    markets: tuple[MarketHistory, ...]
    fingerprint: Digest
    left_out: tuple[str, ...] = ()  # files that could not be imported, and why


@dataclass(frozen=True, slots=True)
class StrategyQuestion:
    folder: str
    markets: str
    """Names with commas between them; empty: all of the folder."""
    since: str | None
    until: str | None

    @property
    def command(self) -> str:
        options = {"data": self.folder, "markets": self.markets, "from": self.since, "until": self.until}
        return write_command("strategies", options)


@dataclass(frozen=True, slots=True)
class StrategyTask:
    """One strategy over days `[first, last]`, by when they begin."""

    name: str
    markets: tuple[MarketHistory, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StrategyLab:
    read_histories: Callable[[str], Awaitable[HistoryFolder]]
    run_tasks: RunTasks[StrategyTask, strategies_view.StrategyRowView]
    reports: LabReports

    async def backtest(
        self, question: StrategyQuestion, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> strategies_view.StrategyLabView:
        """Every strategy over the same days. Once `stop` is set, what is known by then is the answer."""
        check_workers(workers)
        data = await self.read_histories(question.folder)
        markets = choose_markets(data, question.markets)
        first, last = choose_days(markets, question.since, question.until)
        asked = {"markets": [market.name for market in markets], "first": first, "last": last}
        report = report_id(KIND, asked, data.fingerprint, STRATEGY_EDITION)
        rows = {
            row.name: row for row in self.reports.load_parts(report, strategies_view.StrategyRowView, resume=resume)
        }
        wanted = [StrategyTask(name, markets, first, last) for name in STRATEGIES if name not in rows]

        def hear(row: strategies_view.StrategyRowView) -> None:
            rows[row.name] = row
            self.reports.keep_part(report, row)
            tell(len(rows), len(STRATEGIES))

        await self.run_tasks(wanted, workers, hear, stop)
        check_any_done(len(rows) or not stop.is_set())
        tried = {trial_id(KIND, name, asked, data.fingerprint, STRATEGY_EDITION): name for name in rows}
        self.reports.note_trials(KIND, tried)
        done = [rows[name] for name in STRATEGIES if name in rows]
        view = strategies_view.StrategyLabView(
            ok=not data.left_out,
            stopped=stop.is_set(),
            report=report,
            data=plain_text(data.folder, 200),
            origin=data.origin,
            markets=tuple(market.name for market in markets),
            since=format_day(first),
            until=format_day(last),
            headline=describe_alpha(done),
            strategies=tuple(done),
            left_out=tuple(plain_text(file, 300) for file in data.left_out),
            not_run=() if stop.is_set() else tuple(NOT_RUN.format(name) for name in STRATEGIES if name not in rows),
            notes=NOTES,
        )
        title = f"Core strategies, {len(markets)} market{'s' * (len(markets) != 1)}, {view.since} to {view.until}"
        self.reports.save_view(report, KIND, title, question.command, view)
        return view


NOT_RUN: Final = "{} was not run: no market has the closed days, or the funding, that it needs"
NOTES: Final = (
    "decided on the day's last close and filled at it; prices are taken as spot, without funding but for cash-carry",
    *(
        f"{strategy.name} pays {10_000 * strategy.cost:g} bp of what a weight changes by"
        for strategy in STRATEGIES.values()
    ),
    f"a day is bull or bear where holding had gained or lost {100 * BULL_MOVE:.0f} % over the {BULL_DAYS} days before "
    "it, else sideways",
    f"95 %: blocks of {BLOCK_DAYS} days drawn at random; one history is one sample of what could have been",
)


def describe_alpha(rows: Sequence[strategies_view.StrategyRowView]) -> str:
    """Whether any strategy is more than holding sized by volatility, in one sentence."""
    judged = {row.name: row.difference for row in rows if row.difference.ci95 is not None}
    if not judged:
        return "Not judged: too few days, or funding prints alone."
    if shown := [name for name, gain in judged.items() if gain.ci95 is not None and gain.ci95[0] > 0]:
        return f"Above vol-hold over these days: {', '.join(shown)}."
    found = ", ".join(f"{gain.smallest or 0.0:.2f} for {name}" for name, gain in judged.items())
    return (
        "Not shown to be alpha: against vol-hold at the same costs no interval is above zero; four of five such "
        f"histories would show a Sharpe that is higher by {found}."
    )


def choose_markets(data: HistoryFolder, names: str) -> tuple[MarketHistory, ...]:
    """Return the named markets, or all of the folder. `Refused` where the folder lacks a named one."""
    known = {Symbol(market.name): market for market in data.markets}
    if not names.strip():
        return data.markets
    try:
        chosen = dict.fromkeys(parse_symbol(name, known) for name in names.split(","))
    except UsageError as error:
        raise Refused(
            f"The folder has no hours of a market of {plain_text(names, 200)}: it has {', '.join(known)}."
            + "".join(f" {file}." for file in data.left_out)
        ) from error
    return tuple(known[symbol] for symbol in chosen)


def choose_days(markets: Sequence[MarketHistory], since: str | None, until: str | None) -> tuple[int, int]:
    """The first and the last day, by when they begin; both ends belong to the backtest."""
    earliest = Millis(min(market.days[0] for market in markets))
    latest = Millis(max(market.days[-1] for market in markets))
    end = Millis(latest + DAY_MS - 1)
    first, last = (
        earliest if since is None else arguments.parse_market_moment(since, end, end, earliest),
        latest if until is None else arguments.parse_market_moment(until, end, end, earliest),
    )
    if last - first < DAY_MS:
        raise UsageError(
            f"From {iso(first)} to {iso(last)} is less than two days; give --from and --until further apart."
        )
    return first - first % DAY_MS, last - last % DAY_MS


async def run_strategy(task: StrategyTask) -> AsyncIterator[strategies_view.StrategyRowView]:
    row = await asyncio.to_thread(backtest_strategy, task)
    if row is not None:
        yield row


def backtest_strategy(task: StrategyTask) -> strategies_view.StrategyRowView | None:
    """None where no market has, on any of the days, what the strategy needs."""
    strategy = STRATEGIES[task.name]
    view = StrategyView(task.last + DAY_MS, {market.name: market for market in task.markets})
    columns = align_days(view)
    weights, listed = strategy.weigh_days(columns), strategy.list_markets(columns)
    before = np.zeros_like(listed)
    before[:, 1:] = listed[:, :-1]
    inside = (columns.days >= task.first) & before.any(axis=0)
    if not inside.any():
        return None
    begin = int(np.flatnonzero(inside)[0])
    moves, earned = columns.measure_moves(), strategy.earn(columns)
    path = simulate(weights, earned, strategy.cost)
    scaled = simulate(weights * path.scale(), earned, strategy.cost)
    carry = strategy.legs > 1
    counts = np.maximum(1, before.sum(axis=0))
    hold = (sum_rows(before * moves) / counts)[begin:].tolist()
    sized = simulate(VOL_HOLD.weigh_days(columns), moves, VOL_HOLD.cost).returns[begin:].tolist()
    days, returns = columns.days[begin:].tolist(), path.returns[begin:].tolist()
    years = len(days) / DAYS_PER_YEAR
    turns = fsum(path.traded[begin:].tolist()) / years
    own, shadow = measure_path(returns), measure_path(scaled.returns[begin:].tolist())
    return strategies_view.StrategyRowView(
        **(own.model_dump(by_alias=False) | ({"sharpe": None, "sharpe_ci95": None} if carry else {})),
        name=task.name,
        since=format_day(days[0]),
        days=len(days),
        turns_per_year=round_figure(turns),
        costs=round_figure(strategy.cost * turns),
        funding=round_figure(fsum(returns) / years + strategy.cost * turns) if carry else 0.0,
        scaled=derive(strategies_view.ResultView, shadow, **({"sharpe": None} if carry else {})),
        benchmark=strategies_view.BenchmarkView(hold=measure_path(hold), vol_hold=measure_path(sized)),
        difference=NOT_COMPARED if carry else compare(returns, sized),
        years=split_days([format_day(day)[:4] for day in days], returns, hold),
        regimes=split_days(classify_days(sum_rows(before * moves) / counts, begin), returns, hold, KINDS),
        risks=CARRY_RISKS if carry else (),
        equity=sample_weekly(returns),
        equity_hold=sample_weekly(hold),
    )


def play_tilts(
    views: Mapping[tuple[int, Symbol], Sequence[JudgeView]], histories: Sequence[MarketHistory], begin: int, end: int
) -> strategies_view.TiltView | None:
    """What Judges said day by day, on the core's trend from one moment to another. Each evening's weight is what the
    desk would have given it: scored on the days that were over. None where the core held no market."""
    tilts = [
        DayTilt(day, market, tilt)
        for (day, market), judged in sorted(views.items())
        if (tilt := measure_tilt(judged)) is not None
    ]
    markets = {history.name: history for history in histories}
    columns = align_days(StrategyView(end, markets))
    weights, listed = TREND.weigh_days(columns), TREND.list_markets(columns)
    inside = np.flatnonzero((columns.days + DAY_MS >= begin) & listed.any(axis=0))
    if not tilts or not inside.size:
        return None
    factors, whole, weighed = np.ones_like(weights), np.ones_like(weights), 0
    for place in inside.tolist():
        score = score_tilts(tilts, StrategyView(int(columns.days[place]) + DAY_MS, markets))
        weighed += score.weight > 0
        for row, name in enumerate(columns.names):
            factors[row, place] = score.multiplier(name)
            whole[row, place] = score.model_copy(update={"weight": 1.0}).multiplier(name)
    cap = 1 / np.maximum(1, listed.sum(axis=0))
    moves = columns.measure_moves()
    first = int(inside[0]) + 1
    core, tilted, full = (
        simulate(np.minimum(weights * factor, cap), moves, TREND.cost).returns[first:].tolist()
        for factor in (1.0, factors, whole)
    )
    return strategies_view.TiltView(
        **score.model_dump(include={"beta", "se", "weight", "days"}),
        weighed_days=weighed,
        core=measure_path(core),
        tilted=measure_path(tilted),
        gain=compare(tilted, core),
        full=measure_path(full),
        full_gain=compare(full, core),
    )


def measure_path(returns: Sequence[float]) -> strategies_view.PathView:
    figures = measure_returns(returns, DAYS_PER_YEAR)
    draws = draw_sharpes(returns, BLOCK_DAYS, DAYS_PER_YEAR)
    middle = None if draws is None else middle_of(draws)
    return derive(strategies_view.PathView, figures, sharpe_ci95=middle, drawdown=figures.max_drawdown)


def compare(returns: Sequence[float], other: Sequence[float]) -> strategies_view.DifferenceView:
    draws, theirs = (draw_sharpes(each, BLOCK_DAYS, DAYS_PER_YEAR) for each in (returns, other))
    first, second = (measure_returns(each, DAYS_PER_YEAR).sharpe for each in (returns, other))
    if draws is None or theirs is None or first is None or second is None:
        return NOT_COMPARED
    apart = draws - theirs
    smallest = round_figure(POWER_Z * stdev(apart.tolist()))
    return strategies_view.DifferenceView(sharpe=round_figure(first - second), ci95=middle_of(apart), smallest=smallest)


def classify_days(hold: Floats, begin: int) -> list[str]:
    """Kind of market of each day by what holding gained in the thirty days before it."""
    worth = np.cumprod(1 + hold).tolist()
    kinds = []
    for day in range(begin, len(worth)):
        move = round(worth[day - 1] / worth[day - 1 - BULL_DAYS] - 1, DIGITS) if day > BULL_DAYS else 0.0
        kinds.append(name_kind(move))
    return kinds


def split_days(
    names: Sequence[str], returns: Sequence[float], hold: Sequence[float], order: Sequence[str] = ()
) -> tuple[strategies_view.StretchView, ...]:
    stretches = []
    for name in order or [name for name, _ in groupby(names)]:
        places = [place for place, each in enumerate(names) if each == name]
        worth, deepest = compound(returns[place] for place in places)
        held, _ = compound(hold[place] for place in places)
        gain, drawdown, hold_gain = map(round_figure, (worth - 1, deepest, held - 1))
        stretches.append(
            strategies_view.StretchView(name=name, days=len(places), gain=gain, drawdown=drawdown, hold=hold_gain)
        )
    return tuple(stretches)


def sample_weekly(returns: Sequence[float]) -> tuple[float, ...]:
    worth = np.cumprod(1 + np.array(returns)).tolist()
    return (1.0, *(round_digits(value, 6) for value in worth[6::7]))


def format_day(day: int) -> str:
    return iso(Millis(day))[:10]
