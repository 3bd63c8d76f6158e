"""`zuno lab` commands that hold the desks to what they must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.lab import lab as lab
from zuno.doors.cli.lab_options import Moments, Resume, Seeds, Workers, show_progress
from zuno.doors.cli.options import Cluster, Home, Json, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.lab.checks import DeskChecks
    from zuno.lab.invariance import InvarianceView
    from zuno.lab.lookahead import LookaheadView
    from zuno.lab.noedge import NoEdgeView
    from zuno.lab.trading.service import TradeLab
    from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView

Account = Annotated[
    str | None,
    typer.Option("--account", metavar="NAME", help="Another paper account (default: the market's own)."),
]
RecordedPool = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows: check the LP desk too."),
]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="WHEN", help="Use only what was known then.")]

Report = Annotated[
    str | None,
    typer.Option("--report", metavar="ID", help="A backtest of `lab trade` instead (`lab reports` lists them)."),
]
DeskArm = Annotated[str, typer.Option("--arm", metavar="ARM", help="With --report: arm to score.")]


def _checks(zuno: Zuno, cluster: str | None = None) -> DeskChecks:
    checks = zuno.lab(cluster).checks
    assert checks is not None
    return checks


@lab.command("noedge")
def lab_noedge(
    ctx: typer.Context,
    worlds: Annotated[
        int,
        typer.Option(
            "--worlds", metavar="N", parser=whole_number, help="Worlds: half random walks, half shuffled history."
        ),
    ] = 1_000,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """False-positive rate of the desk on markets without an edge."""

    async def ask(zuno: Zuno) -> NoEdgeView:
        checks = _checks(zuno, cluster)
        return await show_progress(
            "worlds", lambda tell, stop: checks.noedge(worlds, workers, tell, stop, resume=resume)
        )

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


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
    """Check for look-ahead bias: rule again without the future and with shorter histories."""

    async def ask(zuno: Zuno) -> LookaheadView:
        checks = _checks(zuno, cluster)
        return await show_progress(
            "moments", lambda tell, stop: checks.lookahead(moments, seeds, data, workers, tell, stop)
        )

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


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

    async def ask(zuno: Zuno) -> InvarianceView:
        checks = _checks(zuno, cluster)
        return await show_progress(
            "moments", lambda tell, stop: checks.invariance(moments, seeds, data, workers, tell, stop)
        )

    run_command.partial_verdict(ctx.obj.at(home), json, ask)


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
        _checks(zuno).report_calibration(view, command)
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
        _checks(zuno).report_vetoes(view, command)
        return view

    run_command.answer(ctx.obj.at(home), json, ask)


def _backtests(zuno: Zuno, as_of: str | None, account: str | None) -> TradeLab:
    from zuno.kernel.errors import UsageError

    if as_of is not None or account is not None:
        raise UsageError("--as-of and --account are of this home's own record; a --report is as its backtest ended.")
    trade = zuno.lab().trade
    assert trade is not None
    return trade
