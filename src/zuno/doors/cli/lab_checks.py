"""`zuno lab` commands that hold the desks to what they must not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.lab import lab as lab
from zuno.doors.cli.lab_options import Moments, Resume, Seeds, Workers, show_progress
from zuno.doors.cli.options import Cluster, command, whole_number

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
    typer.Option("--data", metavar="DIR", help="Folder of a pool's minute rows: the LP desk is looked at too."),
]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="WHEN", help="As known at that moment.")]

Report = Annotated[
    str | None,
    typer.Option("--report", metavar="ID", help="A backtest of `lab trade` instead (`lab reports` lists them)."),
]
DeskArm = Annotated[str, typer.Option("--arm", metavar="ARM", help="With --report: whose decisions.")]


def _checks(zuno: Zuno, cluster: str | None = None) -> DeskChecks:
    checks = zuno.lab(cluster).checks
    assert checks is not None
    return checks


@command(lab, "noedge", by=run_command.partial_verdict)
async def lab_noedge(
    zuno: Zuno,
    /,
    worlds: Annotated[
        int,
        typer.Option(
            "--worlds", metavar="N", parser=whole_number, help="Half random walks, half shuffled blocks of history."
        ),
    ] = 1_000,
    workers: Workers = 2,
    cluster: Cluster = None,
    resume: Resume = False,
) -> NoEdgeView:
    """False-positive rate of the desk on markets without an edge."""
    checks = _checks(zuno, cluster)
    return await show_progress("worlds", lambda tell, stop: checks.noedge(worlds, workers, tell, stop, resume=resume))


@command(lab, "lookahead", by=run_command.partial_verdict)
async def lab_lookahead(
    zuno: Zuno,
    /,
    moments: Moments = 60,
    seeds: Seeds = "1-4",
    data: RecordedPool = None,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> LookaheadView:
    """Look-ahead and warm-up bias check."""
    checks = _checks(zuno, cluster)
    return await show_progress(
        "moments", lambda tell, stop: checks.lookahead(moments, seeds, data, workers, tell, stop)
    )


@command(lab, "invariance", by=run_command.partial_verdict)
async def lab_invariance(
    zuno: Zuno,
    /,
    moments: Moments = 60,
    seeds: Seeds = "1-4",
    data: RecordedPool = None,
    workers: Workers = 2,
    cluster: Cluster = None,
) -> InvarianceView:
    """Share of decisions that flip with masked symbols, scaled prices, a mirror, another order or other words."""
    checks = _checks(zuno, cluster)
    return await show_progress(
        "moments", lambda tell, stop: checks.invariance(moments, seeds, data, workers, tell, stop)
    )


@command(lab, "calibration")
async def lab_calibration(
    zuno: Zuno, /, report: Report = None, arm: DeskArm = "debate", as_of: AsOf = None, account: Account = None
) -> TradeCalibrationView:
    """Calibration of each agent's probabilities, in this home's account or in a backtest; writes a report."""
    if report is None:
        view, command = await zuno.learning(account).reliability(as_of), ""
    else:
        view = await _backtests(zuno, as_of, account).read_calibration(report, arm)
        command = f" --report {report} --arm {arm}"
    _checks(zuno).report_calibration(view, command)
    return view


@command(lab, "vetoes")
async def lab_vetoes(
    zuno: Zuno, /, report: Report = None, arm: DeskArm = "debate", as_of: AsOf = None, account: Account = None
) -> VetoesView:
    """What vetoes and cuts saved or cost, in this home's account or in a backtest; writes a report."""
    if report is None:
        view, command = await zuno.learning(account).vetoes(as_of), ""
    else:
        view = await _backtests(zuno, as_of, account).read_vetoes(report, arm)
        command = f" --report {report} --arm {arm}"
    _checks(zuno).report_vetoes(view, command)
    return view


def _backtests(zuno: Zuno, as_of: str | None, account: str | None) -> TradeLab:
    from zuno.kernel.errors import UsageError

    if as_of is not None or account is not None:
        raise UsageError("--as-of and --account are of this home's own record; a --report is as its backtest ended.")
    trade = zuno.lab().trade
    assert trade is not None
    return trade
