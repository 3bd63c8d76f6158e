"""`zuno monitor` and `zuno alerts` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Answer, ChainName, Home, Json, argument, command, flag, group, option
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import plain_text

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.lp.watch.monitor import ChainLookView, TickView

monitor = group("Watch positions of all configured wallets and send alerts. Read-only.")
alerts = group("List, add, remove, acknowledge and snooze alerts.", None)
Lines = Annotated[bool, flag("--json", "One JSON document per check.")]
_LONGEST_LINE = 400
AlertId = Annotated[str, argument("ID", "alert_ and 12 hex digits.")]


@command(monitor, "once")
def monitor_once(zuno: Zuno) -> Answer:
    """Check every wallet once, send alerts, show the result."""
    return zuno.monitor().once()


@command(monitor, "run")
async def monitor_run(zuno: Zuno, json: Lines = False) -> View:
    """Check every ZUNO_MONITOR_INTERVAL_MS until Ctrl-C or SIGTERM."""
    from zuno.doors.cli.service import report_ready, serve

    report_ready()  # the first look may take minutes
    return await serve(
        zuno.monitor(announce=True).run, format_tick, json=json, beside=(zuno.upgrade_journal, zuno.serve_metrics)
    )


@alerts.callback()
def alerts_list(
    ctx: typer.Context,
    everything: Annotated[bool, flag("--all", "Include past alerts.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """List active alerts, and the price and fee alerts that are set."""
    ctx.obj = ctx.obj.at(home)
    if ctx.invoked_subcommand is None:
        run_command.answer(ctx.obj, json, lambda zuno: zuno.alerts().list(everything=everything))


@command(alerts, "add")
def alerts_add(
    zuno: Zuno,
    position: Annotated[str, argument("ID", "Position id (NFT token id).")],
    above: Annotated[str | None, option("--price-above", "N", "Alert when the pool price reaches N.")] = None,
    below: Annotated[str | None, option("--price-below", "N", "Alert when the pool price falls to N.")] = None,
    fees: Annotated[
        str | None, option("--fees-above", "N", "Alert when uncollected fees reach N quote tokens.")
    ] = None,
    chain: ChainName = None,
) -> Answer:
    """Add a price or fee alert for a position. Sent once, armed again after it clears."""
    from zuno.lp.model.alerts import Condition

    levels = {Condition.PRICE_ABOVE: above, Condition.PRICE_BELOW: below, Condition.FEES_ABOVE: fees}
    return zuno.alerts().add(position, chain, levels)


@command(alerts, "remove")
def alerts_remove(zuno: Zuno, rule: Annotated[str, argument("RULE", "rule_ and 12 hex digits.")]) -> Answer:
    """Remove a price or fee alert."""
    return zuno.alerts().remove(rule)


@command(alerts, "ack")
def alerts_ack(zuno: Zuno, alert: AlertId) -> Answer:
    """Acknowledge an alert: silent until it recovers or gets worse."""
    return zuno.alerts().ack(alert)


@command(alerts, "snooze")
def alerts_snooze(
    zuno: Zuno, alert: AlertId, span: Annotated[str, argument("SPAN", "Duration: 90m, 6h, 2d.")]
) -> Answer:
    """Snooze an alert; sent again afterwards if still active."""
    return zuno.alerts().snooze(alert, span)


def format_tick(tick: TickView) -> str:
    """A look as one line of a log."""
    parts = [_format_chain(chain) for chain in tick.chains]
    parts += [f"{name}: left alone for now" for name in tick.resting]
    if tick.events:
        parts.append(", ".join(f"{event.happening} {event.alert}" for event in tick.events[:5]))
    if len(tick.events) > 5:
        parts.append(f"{len(tick.events) - 5} more events")
    if tick.waiting:
        parts.append(f"{tick.waiting} undelivered")
    return f"{time_text(tick.at)}  {'; '.join(plain_text(part, _LONGEST_LINE) for part in (*parts, *tick.notes))}"


def _format_chain(chain: ChainLookView) -> str:
    if chain.failure and not chain.wallets:
        return f"{chain.chain}: not read ({chain.failure})"
    counts = [f"{chain.positions} positions"]
    counts += [
        f"{count} {name}"
        for count, name in (
            (chain.out_of_range, "out of range"),
            (chain.near_edge, "near the edge"),
            (chain.empty, "empty"),
            (chain.unread, "unread"),
        )
        if count
    ]
    failed = f" ({chain.failure})" if chain.failure else ""
    return f"{chain.chain} block {chain.block}: {', '.join(counts)}{failed}"
