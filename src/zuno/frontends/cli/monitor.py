"""The monitor and its alerts on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

if TYPE_CHECKING:
    from zuno.app.views import View
    from zuno.app.zuno import Zuno

monitor = group("The watch over every configured wallet: it reads and tells, and never starts a debate.")
alerts = typer.Typer(
    help="Alerts: those that are on, and your answers to them.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)
Lines = Annotated[bool, typer.Option("--json", help="One JSON document a look, a line each.")]
AlertId = Annotated[str, typer.Argument(metavar="ID", help="alert_ and 12 hex digits.")]


@monitor.command("once")
def monitor_once(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Look once at every watched wallet, tell what changed, and show what was seen."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.monitor().once())


@monitor.command("run")
def monitor_run(ctx: typer.Context, home: Home = None, json: Lines = False) -> None:
    """Keep looking, every ZUNO_MONITOR_INTERVAL_MS, until it is asked to end (Ctrl-C, SIGTERM)."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: _watched(zuno, json))


@alerts.callback()
def alerts_list(
    ctx: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="What happened before, too.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """List the alerts that are on."""
    ctx.obj = ctx.obj.at(home)
    if ctx.invoked_subcommand is None:
        answering.answer(ctx.obj, json, lambda zuno: zuno.alerts().list(everything=everything))


@alerts.command("ack")
def alerts_ack(ctx: typer.Context, alert: AlertId, home: Home = None, json: Json = False) -> None:
    """Say that you know: silence until it recovers or gets worse."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.alerts().ack(alert))


@alerts.command("snooze")
def alerts_snooze(
    ctx: typer.Context,
    alert: AlertId,
    span: Annotated[str, typer.Argument(metavar="SPAN", help="How long: 90m, 6h, 2d.")],
    home: Home = None,
    json: Json = False,
) -> None:
    """Silence an alert for a while; what is still wrong then is told at once."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.alerts().snooze(alert, span))


async def _watched(zuno: Zuno, json: bool) -> View:
    from zuno.frontends.cli.alert_screens import tick_line
    from zuno.frontends.cli.service import serve

    return await serve(zuno.monitor(announce=True).run, tick_line, json=json)
