"""`zuno lab` commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Cluster, Home, Json, group, whole_number

if TYPE_CHECKING:
    import asyncio

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import PartialView
    from zuno.lab.lp.views import LpAblationView, LpLabView, SweepView
    from zuno.lab.reports import LabReports, LabReportsView
    from zuno.lab.trading.question import TradeQuestion
    from zuno.lab.trading.service import TradeLab
    from zuno.lab.trading.views import TradeLabView
    from zuno.lab.workers import Progress
    from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView

V = TypeVar("V", bound="PartialView")
R = TypeVar("R", "LpLabView", "LpAblationView", "SweepView", "TradeLabView")
Work = Callable[["Zuno", "Progress", "asyncio.Event"], Awaitable[V]]

Workers = Annotated[
    int, typer.Option("--workers", metavar="N", parser=whole_number, help="Worker processes; results do not change.")
]
Moments = Annotated[int, typer.Option("--moments", metavar="N", parser=whole_number, help="Number of sampled moments.")]
Seeds = Annotated[str, typer.Option("--seeds", metavar="LIST", help="Synthetic markets by seed: 1-10 or 1,4,7.")]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")]
PoolData = Annotated[
    str, typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows (CSV, also compressed by gzip).")
]
Capital = Annotated[
    int,
    typer.Option("--capital", metavar="USD", parser=whole_number, help="Starting capital, half in each token."),
]
Every = Annotated[
    int, typer.Option("--every", metavar="HOURS", parser=whole_number, help="Hours between two decisions.")
]
Width = Annotated[
    str, typer.Option("--width", metavar="PERCENT", help="Half-width of a range, in percent of the price.")
]
Profile = Annotated[
    str, typer.Option("--profile", help="Risk profile of the debate: conservative, balanced, aggressive.")
]
GasPrice = Annotated[str, typer.Option("--gas-gwei", metavar="GWEI", help="Gas price, in gwei.")]
WithModels = Annotated[
    bool, typer.Option("--models", help="Let the configured models argue, within their budgets; else by rules.")
]
Account = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", help="Another paper account (default: the market's own)."),
]
RecordedPool = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows: the LP desk is looked at too."),
]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="WHEN", help="As known at that moment.")]
Report = Annotated[
    str | None,
    typer.Option("--report", metavar="ID", help="A backtest of `lab trade` instead (`lab reports` lists them)."),
]
DeskArm = Annotated[str, typer.Option("--arm", metavar="ARM", help="With --report: whose decisions.")]

lab = group("Backtests, ablations and statistical checks.")


def run_study(ctx: typer.Context, home: Home, json: bool, unit: str, work: Work[V]) -> None:
    """Answer with what `work` returns. A bar shows its progress; Ctrl-C sets the event."""

    async def ask(zuno: Zuno) -> V:
        from zuno.doors.cli.progress_bar import ProgressBar
        from zuno.doors.cli.service import stop_on_signals
        from zuno.lab.workers import StoppedEarly

        with ProgressBar(unit) as bar:
            try:
                return await work(zuno, bar.tell, stop_on_signals())
            except StoppedEarly as stopped:
                run_command.complain(f"zuno: {stopped}")
                raise KeyboardInterrupt from stopped

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


def name_report(reports: LabReports, view: R) -> R:
    run_command.complain(f"Report: {reports.describe_place(view.report)}")
    return view


@lab.command("study")
def lab_study(
    ctx: typer.Context,
    moments: Moments = 400,
    seeds: Seeds = "1-10",
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Evaluate the rule-based desk at sampled moments of synthetic markets: decisions, symmetry, calibration."""
    run_study(
        *(ctx, home, json, "moments"),
        lambda zuno, tell, stop: zuno.lab(cluster).market.study(moments, seeds, workers, tell, stop),
    )


@lab.command("memory")
def lab_memory(
    ctx: typer.Context,
    seeds: Seeds = "1-6",
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Does memory help? Trades with recall on, off, shuffled and recent3, with a planted setup and without."""
    run_study(
        *(ctx, home, json, "moments"),
        lambda zuno, tell, stop: zuno.lab(cluster).memory.study(seeds, workers, tell, stop),
    )


@lab.command("lp")
def lab_lp(
    ctx: typer.Context,
    data: PoolData,
    arms: Annotated[
        str,
        typer.Option(
            "--arms",
            metavar="LIST",
            help="Arms to compare: hold, passive, reset, random, score, no-critic, placebo-critic, debate.",
        ),
    ] = "hold,passive,reset,debate",
    capital: Capital = 10_000,
    every: Every = 4,
    width: Width = "5",
    profile: Profile = "balanced",
    gas: GasPrice = "0.1",
    convention: Annotated[
        str, typer.Option("--convention", help="Fee convention of the fast engine: intrabar, close-tick.")
    ] = "intrabar",
    models: WithModels = False,
    resume: Resume = False,
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Backtest the LP desk on a pool's recorded minutes: every arm over the same hours, every cost counted."""

    async def compare(zuno: Zuno, tell: Progress, stop: asyncio.Event) -> LpLabView:
        from zuno.lab.lp.question import read_question

        desk = zuno.lp_lab(cluster)
        question = read_question(data, arms, capital, every, width, profile, gas, convention, models=models)
        return name_report(desk.reports, await desk.compare(question, workers, tell, stop, resume=resume))

    run_study(ctx, home, json, "hours", compare)


@lab.command("trade")
def lab_trade(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder of market history (as `data import` reads it); default: this home's own recording.",
        ),
    ] = None,
    symbols: Annotated[
        str, typer.Option("--symbols", metavar="LIST", help="Symbols to trade: BTCUSDT, ETHUSDT.")
    ] = "BTCUSDT,ETHUSDT",
    since: Annotated[
        str | None, typer.Option("--from", metavar="WHEN", help="Default: 200 days after the first candle.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="Default: the last candle.")] = None,
    arms: Annotated[
        str,
        typer.Option(
            "--arms",
            metavar="LIST",
            help="Arms to compare: debate, hold, sma, liquidity, microstructure, macro, geometry, no-cro, no-memory, "
            "random, aa, single, vote, placebo.",
        ),
    ] = "debate,hold,sma,random",
    models: WithModels = False,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Backtest the trading desk on recorded candles: same agents, rules, ledger and paper venue, every cost counted."""

    from zuno.lab.trading.question import read_question

    question = read_question(data, symbols, since, until, arms, models=models)
    run_study(ctx, home, json, "decisions", partial(_compare_arms, question, workers, cluster, resume))


async def _compare_arms(
    question: TradeQuestion,
    workers: int,
    cluster: str | None,
    resume: bool,
    zuno: Zuno,
    tell: Progress,
    stop: asyncio.Event,
) -> TradeLabView:
    desk = zuno.lab(cluster).trade
    return name_report(desk.reports, await desk.compare(question, workers, tell, stop, resume=resume))


@lab.command("sweep")
def lab_sweep(
    ctx: typer.Context,
    data: PoolData,
    ranges: Annotated[
        int, typer.Option("--ranges", metavar="N", parser=whole_number, help="How many ranges, a multiple of 25.")
    ] = 1_000,
    capital: Capital = 10_000,
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Sweep static ranges over a pool's recorded minutes with the fast engine."""

    async def play(zuno: Zuno, tell: Progress, stop: asyncio.Event) -> SweepView:
        desk = zuno.lp_lab(cluster)
        return name_report(desk.reports, await desk.sweep.sweep(data, ranges, capital, workers, tell, stop))

    run_study(ctx, home, json, "ranges", play)


@lab.command("ablate")
def lab_ablate(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows, or of candles for --desk trade."),
    ],
    desk: Annotated[str, typer.Option("--desk", help="Desk to ablate: lp or trade.")] = "lp",
    capital: Capital = 10_000,
    every: Every = 4,
    horizon: Annotated[
        int,
        typer.Option(
            "--horizon", metavar="HOURS", parser=whole_number, help="Evaluation horizon of a decision, in hours."
        ),
    ] = 24,
    width: Width = "5",
    profile: Profile = "balanced",
    gas: GasPrice = "0.1",
    models: WithModels = False,
    resume: Resume = False,
    since: Annotated[str | None, typer.Option("--from", metavar="WHEN", help="With --desk trade.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="With --desk trade.")] = None,
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Ablation: what each part of the debate adds. Every arm decides at the same moments."""

    async def ablate(zuno: Zuno, tell: Progress, stop: asyncio.Event) -> LpAblationView:
        from zuno.lab.lp.ablation import read_horizon
        from zuno.lab.lp.question import read_question

        lab_desk = zuno.lp_lab(cluster)
        base = read_question(data, "debate", capital, every, width, profile, gas, models=models)
        view = await lab_desk.ablation.ablate(read_horizon(base, horizon), workers, tell, stop, resume=resume)
        return name_report(lab_desk.reports, view)

    if desk == "lp":
        run_study(ctx, home, json, "episodes", ablate)
        return
    from zuno.kernel.errors import UsageError
    from zuno.lab.trading.arms import Arm
    from zuno.lab.trading.question import read_question

    if desk != "trade":
        raise UsageError("--desk is lp or trade.")
    question = read_question(data, "BTCUSDT,ETHUSDT", since, until, ",".join(Arm), models=models)
    run_study(ctx, home, json, "decisions", partial(_compare_arms, question, workers, cluster, resume))


@lab.command("reports")
def lab_reports(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List the reports that the lab wrote in this home, with the command behind each."""

    async def ask(zuno: Zuno) -> LabReportsView:
        return await zuno.lab().reports.list()

    run_command.answer(ctx.obj.at(home), json, ask)


@lab.command("noedge")
def lab_noedge(
    ctx: typer.Context,
    worlds: Annotated[
        int,
        typer.Option(
            "--worlds", metavar="N", parser=whole_number, help="Half random walks, half shuffled blocks of history."
        ),
    ] = 1_000,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """False-positive rate of the desk on markets without an edge."""
    run_study(
        *(ctx, home, json, "worlds"),
        lambda zuno, tell, stop: zuno.lab(cluster).checks.noedge(worlds, workers, tell, stop, resume=resume),
    )


@lab.command("lookahead")
def lab_lookahead(
    ctx: typer.Context,
    moments: Moments = 60,
    seeds: Seeds = "1-4",
    data: RecordedPool = None,
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Look-ahead and warm-up bias check."""
    run_study(
        *(ctx, home, json, "moments"),
        lambda zuno, tell, stop: zuno.lab(cluster).checks.lookahead(moments, seeds, data, workers, tell, stop),
    )


@lab.command("invariance")
def lab_invariance(
    ctx: typer.Context,
    moments: Moments = 60,
    seeds: Seeds = "1-4",
    data: RecordedPool = None,
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Share of decisions that flip with masked symbols, scaled prices, a mirror, another order or other words."""
    run_study(
        *(ctx, home, json, "moments"),
        lambda zuno, tell, stop: zuno.lab(cluster).checks.invariance(moments, seeds, data, workers, tell, stop),
    )


@lab.command("calibration")
def lab_calibration(
    ctx: typer.Context,
    report: Report = None,
    arm: DeskArm = "debate",
    as_of: AsOf = None,
    account: Account = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Calibration of each agent's probabilities, in this home's account or in a backtest; writes a report."""

    async def ask(zuno: Zuno) -> TradeCalibrationView:
        if report is None:
            view, command = await zuno.learning(account).reliability(as_of), ""
        else:
            view = await _backtests(zuno, as_of, account).read_calibration(report, arm)
            command = f" --report {report} --arm {arm}"
        zuno.lab().checks.report_calibration(view, command)
        return view

    run_command.answer(ctx.obj.at(home), json, ask)


@lab.command("vetoes")
def lab_vetoes(
    ctx: typer.Context,
    report: Report = None,
    arm: DeskArm = "debate",
    as_of: AsOf = None,
    account: Account = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """What vetoes and cuts saved or cost, in this home's account or in a backtest; writes a report."""

    async def ask(zuno: Zuno) -> VetoesView:
        if report is None:
            view, command = await zuno.learning(account).vetoes(as_of), ""
        else:
            view = await _backtests(zuno, as_of, account).read_vetoes(report, arm)
            command = f" --report {report} --arm {arm}"
        zuno.lab().checks.report_vetoes(view, command)
        return view

    run_command.answer(ctx.obj.at(home), json, ask)


def _backtests(zuno: Zuno, as_of: str | None, account: str | None) -> TradeLab:
    from zuno.kernel.errors import UsageError

    if as_of is not None or account is not None:
        raise UsageError("--as-of and --account are of this home's own record; a --report is as its backtest ended.")
    return zuno.lab().trade
