"""`zuno lab` commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Cluster, command, flag, group, number, option
from zuno.kernel.errors import UsageError

if TYPE_CHECKING:
    import asyncio

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.lab.lp.days import LpDaysView
    from zuno.lab.lp.views import LpAblationView, LpLabView, SweepView
    from zuno.lab.reports import LabReports
    from zuno.lab.strategies_view import StrategyLabView
    from zuno.lab.trading.service import TradeLab
    from zuno.lab.trading.views import TradeLabView
    from zuno.lab.workers import Progress


V = TypeVar("V")
R = TypeVar("R", "LpLabView | LpDaysView", "TradeLabView", "StrategyLabView", "SweepView", "LpAblationView")

Workers = Annotated[int, number("--workers", "N", "Worker processes; results do not change.")]
Moments = Annotated[int, number("--moments", "N", "Number of sampled moments.")]
Seeds = Annotated[str, option("--seeds", "LIST", "Synthetic markets by seed: 1-10 or 1,4,7.")]
Resume = Annotated[bool, flag("--resume", "Resume an interrupted run.")]
PoolData = Annotated[
    str, option("--data", "DIR", "Folder of a pool's minutes or events (CSV, also compressed by gzip).")
]
Capital = Annotated[int, number("--capital", "USD", "Starting capital, half in each token.")]
Every = Annotated[int, number("--every", "HOURS", "Hours between two decisions.")]
Width = Annotated[str, option("--width", "PERCENT", "Half-width of a range, in percent of the price.")]
Profile = Annotated[str, option("--profile", None, "Risk profile of the debate: conservative, balanced, aggressive.")]
GasPrice = Annotated[str, option("--gas-gwei", "GWEI", "Gas price, in gwei.")]
WithModels = Annotated[bool, flag("--models", "Let the configured models argue, within their budgets; else by rules.")]


lab = group("Backtests, ablations and statistical checks.")


@command(lab, "study", by=run_command.partial_verdict)
async def lab_study(
    zuno: Zuno, moments: Moments = 400, seeds: Seeds = "1-10", workers: Workers = 2, cluster: Cluster = None
) -> View:
    """Evaluate the rule-based desk at sampled moments of synthetic markets: decisions, symmetry, calibration."""
    return await show_progress("moments", partial(zuno.lab(cluster).market.study, moments, seeds, workers))


@command(lab, "memory", by=run_command.partial_verdict)
async def lab_memory(zuno: Zuno, seeds: Seeds = "1-6", workers: Workers = 2, cluster: Cluster = None) -> View:
    """Test whether memory helps: recall on, off, shuffled or most recent, with a planted setup and without."""
    return await show_progress("moments", partial(zuno.lab(cluster).memory.study, seeds, workers))


@command(lab, "lp", by=run_command.partial_verdict)
async def lab_lp(
    zuno: Zuno,
    data: PoolData,
    arms: Annotated[
        str,
        option(
            "--arms",
            "LIST",
            "Arms to compare: hold, passive, reset, fee-cover, random, score, no-critic, placebo-critic, debate.",
        ),
    ] = "hold,passive,reset,fee-cover,debate",
    capital: Capital = 10_000,
    every: Every = 4,
    width: Width = "5",
    profile: Profile = "balanced",
    gas: GasPrice = "0.1",
    funding: Annotated[
        str, option("--funding", "BP", "Funding that a short beside a position receives every 8 h, in basis points.")
    ] = "0",
    models: WithModels = False,
    resume: Resume = False,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> View:
    """Backtest the LP desk on a pool's recorded minutes or events: fee cover, and every arm over the same hours. Of a
    pool by day: fee cover and wide ranges."""
    from zuno.lab.lp.question import read_question

    lab_desk = zuno.lp_lab(cluster)
    question = read_question(data, arms, capital, every, width, profile, gas, funding, models=models)
    return await _report("hours", lab_desk.reports, partial(lab_desk.compare, question, workers, resume=resume))


@command(lab, "trade", by=partial(run_command.partial_verdict, no=run_command.REFUSED))
async def lab_trade(
    zuno: Zuno,
    data: Annotated[
        str | None,
        option(
            "--data", "DIR", "Folder of market history (as `data import` reads it); default: this home's own recording."
        ),
    ] = None,
    symbols: Annotated[str, option("--symbols", "LIST", "Markets to trade (default: all of ZUNO_MARKETS).")] = "",
    since: Annotated[str | None, option("--from", "WHEN", "Default: 200 days after the first candle.")] = None,
    until: Annotated[str | None, option("--until --to", "WHEN", "Default: the last candle.")] = None,
    arms: Annotated[
        str,
        option(
            "--arms",
            "LIST",
            "Arms to compare: debate, hold, sma, liquidity, microstructure, macro, geometry, no-cro, no-memory, "
            "seed, let-run, random, aa, single, vote, placebo.",
        ),
    ] = "debate,hold,sma,random",
    models: WithModels = False,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
) -> View:
    """Backtest the trading desk on recorded candles: same agents, rules, ledger and paper venue, every cost counted."""
    from zuno.lab.trading.question import read_question

    lab_desk = zuno.lab(cluster).trade
    chosen = symbols or ",".join(zuno.markets)
    question = read_question(data, chosen, since, until, arms, models=models, markets=zuno.markets)
    return await _report("decisions", lab_desk.reports, partial(lab_desk.compare, question, workers, resume=resume))


@command(lab, "strategies", by=partial(run_command.partial_verdict, no=run_command.REFUSED))
async def lab_strategies(
    zuno: Zuno,
    data: Annotated[str, option("--data", "DIR", "Folder of hourly candles and funding (as `data import` reads it).")],
    markets: Annotated[str, option("--markets", "LIST", "Markets to hold (default: all of the folder).")] = "",
    since: Annotated[str | None, option("--from", "WHEN", "First day (default: the first of the folder).")] = None,
    until: Annotated[str | None, option("--until --to", "WHEN", "Last day (default: the last of the folder).")] = None,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
) -> View:
    """Backtest the core strategies on daily closes: Sharpe with its interval, falls, costs, years, bull and bear."""
    from zuno.lab.strategies import StrategyQuestion

    lab_desk = zuno.lab(cluster).strategies
    question = StrategyQuestion(data, markets, since, until)
    return await _report("strategies", lab_desk.reports, partial(lab_desk.backtest, question, workers, resume=resume))


@command(lab, "sweep", by=run_command.partial_verdict)
async def lab_sweep(
    zuno: Zuno,
    data: PoolData,
    ranges: Annotated[int, number("--ranges", "N", "How many ranges, a multiple of 25.")] = 1_000,
    capital: Capital = 10_000,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> View:
    """Sweep static ranges over a pool's recorded minutes with the fast engine."""
    sweep = zuno.lp_lab(cluster).sweep
    return await _report("ranges", sweep.reports, partial(sweep.sweep, data, ranges, capital, workers))


@command(lab, "ablate", by=partial(run_command.partial_verdict, no=run_command.REFUSED))
async def lab_ablate(
    zuno: Zuno,
    data: Annotated[str, option("--data", "DIR", "Folder of a pool's minute rows, or of candles for --desk trade.")],
    desk: Annotated[str, option("--desk", None, "Desk to ablate: lp or trade.")] = "lp",
    capital: Capital = 10_000,
    every: Every = 4,
    horizon: Annotated[int, number("--horizon", "HOURS", "Hours over which a decision is scored.")] = 24,
    width: Width = "5",
    profile: Profile = "balanced",
    gas: GasPrice = "0.1",
    models: WithModels = False,
    resume: Resume = False,
    since: Annotated[str | None, option("--from", "WHEN", "With --desk trade: start.")] = None,
    until: Annotated[str | None, option("--until --to", "WHEN", "With --desk trade: end.")] = None,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> View:
    """Ablation: what each part of the debate adds. Every arm decides at the same moments."""
    from zuno.lab.lp.ablation import read_horizon
    from zuno.lab.lp.question import read_question
    from zuno.lab.trading.arms import Arm

    if desk == "trade":
        return await lab_trade(zuno, data, "", since, until, ",".join(Arm), models, workers, cluster, resume)
    if desk != "lp":
        raise UsageError("--desk is lp or trade.")
    ablation = zuno.lp_lab(cluster).ablation
    question = read_horizon(read_question(data, "debate", capital, every, width, profile, gas, models=models), horizon)
    return await _report("episodes", ablation.reports, partial(ablation.ablate, question, workers, resume=resume))


@command(lab, "reports")
async def lab_reports(zuno: Zuno) -> View:
    """List the reports that the lab wrote in this home, with the command behind each."""
    return await zuno.lab().reports.list()


Account = Annotated[str | None, option("--account", "NAME", "Another paper account (default: the market's own).")]
RecordedPool = Annotated[str | None, option("--data", "DIR", "Folder of a pool's minute rows: check the LP desk too.")]
AsOf = Annotated[str | None, option("--as-of", "WHEN", "Use only what was known then.")]

Report = Annotated[
    str | None, option("--report", "ID", "A backtest of `lab trade` instead (`lab reports` lists them).")
]
DeskArm = Annotated[str, option("--arm", "ARM", "With --report: arm to score.")]


@command(lab, "noedge", by=run_command.partial_verdict)
async def lab_noedge(
    zuno: Zuno,
    worlds: Annotated[int, number("--worlds", "N", "Worlds: half random walks, half shuffled history.")] = 1_000,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
) -> View:
    """False-positive rate of the desk on markets without an edge."""
    return await show_progress("worlds", partial(zuno.lab(cluster).checks.noedge, worlds, workers, resume=resume))


@command(lab, "lookahead", by=run_command.partial_verdict)
async def lab_lookahead(
    zuno: Zuno,
    moments: Moments = 60,
    seeds: Seeds = "1-4",
    data: RecordedPool = None,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> View:
    """Check for look-ahead bias: rule again without the future and with shorter histories."""
    return await show_progress("moments", partial(zuno.lab(cluster).checks.lookahead, moments, seeds, data, workers))


@command(lab, "invariance", by=run_command.partial_verdict)
async def lab_invariance(
    zuno: Zuno,
    moments: Moments = 60,
    seeds: Seeds = "1-4",
    data: RecordedPool = None,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> View:
    """Share of decisions that flip with masked symbols, scaled prices, a mirror, another order or other words."""
    return await show_progress("moments", partial(zuno.lab(cluster).checks.invariance, moments, seeds, data, workers))


@command(lab, "calibration")
async def lab_calibration(
    zuno: Zuno, report: Report = None, arm: DeskArm = "debate", as_of: AsOf = None, account: Account = None
) -> View:
    """Calibration of each agent's probabilities, in this home's account or in a backtest; writes a report."""
    if report is None:
        view = await zuno.learning(account).reliability(as_of)
    else:
        view = await _backtests(zuno, as_of, account).read_calibration(report, arm)
    zuno.lab().checks.report_scores("calibration", view, "" if report is None else f" --report {report} --arm {arm}")
    return view


@command(lab, "vetoes")
async def lab_vetoes(
    zuno: Zuno, report: Report = None, arm: DeskArm = "debate", as_of: AsOf = None, account: Account = None
) -> View:
    """What vetoes and cuts saved or cost, in this home's account or in a backtest; writes a report."""
    if report is None:
        view = await zuno.learning(account).vetoes(as_of)
    else:
        view = await _backtests(zuno, as_of, account).read_vetoes(report, arm)
    zuno.lab().checks.report_scores("vetoes", view, "" if report is None else f" --report {report} --arm {arm}")
    return view


def _backtests(zuno: Zuno, as_of: str | None, account: str | None) -> TradeLab:
    if as_of is not None or account is not None:
        raise UsageError("--as-of and --account are of this home's own record; a --report is as its backtest ended.")
    return zuno.lab().trade


async def show_progress(unit: str, work: Callable[[Progress, asyncio.Event], Awaitable[V]]) -> V:
    """Do it with a bar of how far it is; Ctrl-C sets the event."""
    from zuno.doors.cli.progress_bar import ProgressBar
    from zuno.doors.cli.service import stop_on_signals
    from zuno.lab.workers import StoppedEarly

    with ProgressBar(unit, run_command.complain) as bar:
        try:
            return await work(bar.tell, stop_on_signals())
        except StoppedEarly as stopped:
            run_command.complain(f"zuno: {stopped}")
            raise KeyboardInterrupt from stopped


async def _report(unit: str, reports: LabReports, work: Callable[[Progress, asyncio.Event], Awaitable[R]]) -> R:
    """The same, and where its report lies."""
    view = await show_progress(unit, work)
    run_command.complain(f"Report: {reports.describe_place(view.report)}")
    return view
