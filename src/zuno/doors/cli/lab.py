"""`zuno lab` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Cluster, Home, Json, group, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.lab.lp.ablation import LpAblationView
    from zuno.lab.lp.sweep import SweepView
    from zuno.lab.lp.views import LpLabView
    from zuno.lab.memory_service import MemoryStudyView
    from zuno.lab.model import StudyView
    from zuno.lab.reports import LabReportsView
    from zuno.lab.trading.views import TradeLabView

lab = group("Backtests and studies: does the argument pay?")


@lab.command("study")
def lab_study(
    ctx: typer.Context,
    moments: Annotated[
        int, typer.Option("--moments", metavar="N", parser=whole_number, help="How many moments are ruled on.")
    ] = 400,
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="LIST", help="Synthetic markets by seed: 1-10 or 1,4,7.")
    ] = "1-10",
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
    ] = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Rule on many moments of synthetic markets without a model: mix, symmetry, calibration, power, rule counts."""
    run_command.partial_verdict(ctx.obj.at(home), json, lambda zuno: _study(zuno, moments, seeds, workers, cluster))


async def _study(zuno: Zuno, moments: int, seeds: str, workers: int, cluster: str | None) -> StudyView:
    from zuno.doors.cli.progress_bar import ProgressBar
    from zuno.doors.cli.service import stop_on_signals

    with ProgressBar("moments") as bar:
        return await zuno.lab(cluster).study(moments, seeds, workers, bar.tell, stop_on_signals())


@lab.command("memory")
def lab_memory(
    ctx: typer.Context,
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="LIST", help="Synthetic markets by seed: 1-6 or 1,4,7.")
    ] = "1-6",
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
    ] = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Does memory help? Trades with recall on, off, shuffled and recent3, with a planted setup and without."""
    run_command.partial_verdict(ctx.obj.at(home), json, lambda zuno: _memory(zuno, seeds, workers, cluster))


async def _memory(zuno: Zuno, seeds: str, workers: int, cluster: str | None) -> MemoryStudyView:
    from zuno.doors.cli.progress_bar import ProgressBar
    from zuno.doors.cli.service import stop_on_signals

    study = zuno.lab(cluster).memory
    assert study is not None
    with ProgressBar("moments") as bar:
        return await study.study(seeds, workers, bar.tell, stop_on_signals())


@lab.command("lp")
def lab_lp(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows (CSV, also compressed by gzip)."),
    ],
    arms: Annotated[
        str,
        typer.Option(
            "--arms",
            metavar="LIST",
            help="What is compared: hold, passive, reset, random, score, no-critic, placebo-critic, debate.",
        ),
    ] = "hold,passive,reset,debate",
    capital: Annotated[
        int,
        typer.Option("--capital", metavar="USD", parser=whole_number, help="Half of it in each token at the start."),
    ] = 10_000,
    every: Annotated[
        int, typer.Option("--every", metavar="HOURS", parser=whole_number, help="Hours between two decisions.")
    ] = 4,
    width: Annotated[
        str, typer.Option("--width", metavar="PERCENT", help="How far the first range and a reset reach to each side.")
    ] = "5",
    profile: Annotated[
        str, typer.Option("--profile", help="Risk profile of the debate: conservative, balanced, aggressive.")
    ] = "balanced",
    gas: Annotated[str, typer.Option("--gas-gwei", metavar="GWEI", help="Price of a unit of gas.")] = "0.1",
    convention: Annotated[
        str, typer.Option("--convention", help="Of the fast engine's fees: intrabar, close-tick.")
    ] = "intrabar",
    models: Annotated[
        bool, typer.Option("--models", help="Let the configured models argue, within their budgets; else by rules.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the arms that a stopped run left.")] = False,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
    ] = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Backtest the LP desk on a pool's recorded minutes: every arm over the same hours, every cost counted."""

    async def ask(zuno: Zuno) -> LpLabView:
        from zuno.doors.cli.progress_bar import ProgressBar
        from zuno.doors.cli.service import stop_on_signals
        from zuno.lab.lp.service import read_question

        lab_desk = zuno.lab(cluster).lp
        assert lab_desk is not None
        question = read_question(data, arms, capital, every, width, profile, gas, convention, models=models)
        with ProgressBar("hours") as bar:
            view = await lab_desk.compare(question, workers, bar.tell, stop_on_signals(), resume=resume)
        run_command.complain(f"Report: {lab_desk.describe_place(view)}")
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
        str, typer.Option("--symbols", metavar="LIST", help="What is traded: BTCUSDT, ETHUSDT.")
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
            help="What is compared: debate, hold, sma, liquidity, microstructure, macro, geometry, no-cro, no-memory, "
            "random, aa, single, vote, placebo.",
        ),
    ] = "debate,hold,sma,random",
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
    ] = 2,
    cluster: Cluster = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the arms that an unfinished run had done.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Backtest the trading desk on recorded candles: same agents, rules, ledger and paper venue, every cost counted."""

    async def ask(zuno: Zuno) -> TradeLabView:
        return await _compare_arms(zuno, data, symbols, since, until, arms, workers, cluster, resume)

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


async def _compare_arms(
    zuno: Zuno,
    data: str | None,
    symbols: str,
    since: str | None,
    until: str | None,
    arms: str,
    workers: int,
    cluster: str | None,
    resume: bool,
) -> TradeLabView:
    from zuno.doors.cli.progress_bar import ProgressBar
    from zuno.doors.cli.service import stop_on_signals
    from zuno.lab.trading.service import read_question

    lab_desk = zuno.lab(cluster).trade
    assert lab_desk is not None
    question = read_question(data, symbols, since, until, arms)
    with ProgressBar("decisions") as bar:
        view = await lab_desk.compare(question, workers, bar.tell, stop_on_signals(), resume=resume)
    run_command.complain(f"Report: {lab_desk.describe_place(view)}")
    return view


@lab.command("sweep")
def lab_sweep(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows (CSV, also compressed by gzip)."),
    ],
    ranges: Annotated[
        int, typer.Option("--ranges", metavar="N", parser=whole_number, help="How many ranges, a multiple of 25.")
    ] = 1_000,
    capital: Annotated[
        int, typer.Option("--capital", metavar="USD", parser=whole_number, help="Half of it in each token before.")
    ] = 10_000,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
    ] = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Keep many ranges over a pool's recorded minutes by the fast engine: what the choice of the range decides."""

    async def ask(zuno: Zuno) -> SweepView:
        from zuno.doors.cli.progress_bar import ProgressBar
        from zuno.doors.cli.service import stop_on_signals

        lab_desk = zuno.lab(cluster).lp
        assert lab_desk is not None
        with ProgressBar("ranges") as bar:
            return await lab_desk.sweep.sweep(data, ranges, capital, workers, bar.tell, stop_on_signals())

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


@lab.command("ablate")
def lab_ablate(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows, or of candles for --desk trade."),
    ],
    desk: Annotated[str, typer.Option("--desk", help="Whose argument is taken apart: lp or trade.")] = "lp",
    capital: Annotated[
        int,
        typer.Option("--capital", metavar="USD", parser=whole_number, help="Of the position decided about."),
    ] = 10_000,
    every: Annotated[
        int, typer.Option("--every", metavar="HOURS", parser=whole_number, help="Hours between two decisions.")
    ] = 4,
    horizon: Annotated[
        int, typer.Option("--horizon", metavar="HOURS", parser=whole_number, help="How long a decision is played on.")
    ] = 24,
    width: Annotated[
        str, typer.Option("--width", metavar="PERCENT", help="How far the position's range reaches to each side.")
    ] = "5",
    profile: Annotated[
        str, typer.Option("--profile", help="Risk profile of the debate: conservative, balanced, aggressive.")
    ] = "balanced",
    gas: Annotated[str, typer.Option("--gas-gwei", metavar="GWEI", help="Price of a unit of gas.")] = "0.1",
    models: Annotated[
        bool,
        typer.Option("--models", help="Let the configured models argue, within their budgets; replies are kept."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the episodes that a stopped run left.")] = False,
    since: Annotated[str | None, typer.Option("--from", metavar="WHEN", help="With --desk trade.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="With --desk trade.")] = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", parser=whole_number, help="Processes; changes the time alone.")
    ] = 2,
    cluster: Cluster = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """What each part of the argument adds: every arm decides about the same position at the same moments."""

    async def ask(zuno: Zuno) -> LpAblationView | TradeLabView:
        from zuno.doors.cli.progress_bar import ProgressBar
        from zuno.doors.cli.service import stop_on_signals
        from zuno.kernel.errors import Usage
        from zuno.lab.lp.ablation import read_horizon
        from zuno.lab.lp.service import read_question
        from zuno.lab.trading.arms import Arm

        if desk == "trade":
            everything = ",".join(Arm)
            return await _compare_arms(
                zuno, data, "BTCUSDT,ETHUSDT", since, until, everything, workers, cluster, resume
            )
        if desk != "lp":
            raise Usage("--desk is lp or trade.")
        lab_desk = zuno.lab(cluster).lp
        assert lab_desk is not None
        question = read_horizon(
            read_question(data, "debate", capital, every, width, profile, gas, models=models), horizon
        )
        with ProgressBar("episodes") as bar:
            view = await lab_desk.ablation.ablate(question, workers, bar.tell, stop_on_signals(), resume=resume)
        run_command.complain(f"Report: {lab_desk.ablation.describe_place(view)}")
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
