"""`zuno lab` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.lab_options import (
    Capital,
    Every,
    GasPrice,
    Moments,
    PoolData,
    Profile,
    Resume,
    Seeds,
    Width,
    WithModels,
    Workers,
    show_progress,
)
from zuno.doors.cli.options import Cluster, Home, Json, group, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.lab.lp.views import LpAblationView, LpLabView, SweepView
    from zuno.lab.memory_service import MemoryStudyView
    from zuno.lab.model import StudyView
    from zuno.lab.reports import LabReportsView
    from zuno.lab.trading.views import TradeLabView

lab = group("Backtests, ablations and statistical checks.")


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

    async def ask(zuno: Zuno) -> StudyView:
        desk = zuno.lab(cluster)
        return await show_progress("moments", lambda tell, stop: desk.study(moments, seeds, workers, tell, stop))

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


@lab.command("memory")
def lab_memory(
    ctx: typer.Context,
    seeds: Seeds = "1-6",
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Test whether memory helps: recall on, off, shuffled or most recent, with a planted setup and without."""

    async def ask(zuno: Zuno) -> MemoryStudyView:
        memory = zuno.lab(cluster).memory
        assert memory is not None
        return await show_progress("moments", lambda tell, stop: memory.study(seeds, workers, tell, stop))

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


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

    async def ask(zuno: Zuno) -> LpLabView:
        from zuno.lab.lp.question import read_question

        lab_desk = zuno.lp_lab(cluster)
        question = read_question(data, arms, capital, every, width, profile, gas, convention, models=models)
        view = await show_progress(
            "hours", lambda tell, stop: lab_desk.compare(question, workers, tell, stop, resume=resume)
        )
        run_command.complain(f"Report: {lab_desk.reports.describe_place(view.report)}")
        return view

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


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

    async def ask(zuno: Zuno) -> TradeLabView:
        return await _compare_arms(zuno, data, symbols, since, until, arms, models, workers, cluster, resume)

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


async def _compare_arms(
    zuno: Zuno,
    data: str | None,
    symbols: str,
    since: str | None,
    until: str | None,
    arms: str,
    models: bool,
    workers: int,
    cluster: str | None,
    resume: bool,
) -> TradeLabView:
    from zuno.lab.trading.question import read_question

    lab_desk = zuno.lab(cluster).trade
    assert lab_desk is not None
    question = read_question(data, symbols, since, until, arms, models=models)
    view = await show_progress(
        "decisions", lambda tell, stop: lab_desk.compare(question, workers, tell, stop, resume=resume)
    )
    run_command.complain(f"Report: {lab_desk.reports.describe_place(view.report)}")
    return view


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

    async def ask(zuno: Zuno) -> SweepView:
        sweep = zuno.lp_lab(cluster).sweep
        view = await show_progress("ranges", lambda tell, stop: sweep.sweep(data, ranges, capital, workers, tell, stop))
        run_command.complain(f"Report: {sweep.reports.describe_place(view.report)}")
        return view

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


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
        typer.Option("--horizon", metavar="HOURS", parser=whole_number, help="Hours over which a decision is scored."),
    ] = 24,
    width: Width = "5",
    profile: Profile = "balanced",
    gas: GasPrice = "0.1",
    models: WithModels = False,
    resume: Resume = False,
    since: Annotated[str | None, typer.Option("--from", metavar="WHEN", help="With --desk trade: start.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="With --desk trade: end.")] = None,
    workers: Workers = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Ablation: what each part of the debate adds. Every arm decides at the same moments."""

    async def ask(zuno: Zuno) -> LpAblationView | TradeLabView:
        from zuno.kernel.errors import UsageError
        from zuno.lab.lp.ablation import read_horizon
        from zuno.lab.lp.question import read_question
        from zuno.lab.trading.arms import Arm

        if desk == "trade":
            everything = ",".join(Arm)
            return await _compare_arms(
                zuno, data, "BTCUSDT,ETHUSDT", since, until, everything, models, workers, cluster, resume
            )
        if desk != "lp":
            raise UsageError("--desk is lp or trade.")
        lab_desk = zuno.lp_lab(cluster)
        question = read_horizon(
            read_question(data, "debate", capital, every, width, profile, gas, models=models), horizon
        )
        view = await show_progress(
            "episodes", lambda tell, stop: lab_desk.ablation.ablate(question, workers, tell, stop, resume=resume)
        )
        run_command.complain(f"Report: {lab_desk.ablation.reports.describe_place(view.report)}")
        return view

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


@lab.command("reports")
def lab_reports(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List the reports that the lab wrote in this home, with the command behind each."""

    async def ask(zuno: Zuno) -> LabReportsView:
        reports = zuno.lab().reports
        assert reports is not None
        return await reports.list()

    run_command.answer(ctx.obj.at(home), json, ask)
