"""How looks and alerts are shown to people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, heading, notes_block
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import plain_text
from zuno.lp.watch.alerts import AlertEventView, AlertRuleView, AlertsView, AlertView, AnsweredView, RuleView
from zuno.lp.watch.monitor import ChainLookView, TickView

_LONGEST_LINE = 400


def tick_line(tick: TickView) -> str:
    """A look as one line of a log."""
    parts = [_chain_line(chain) for chain in tick.chains]
    parts += [f"{name}: left alone for now" for name in tick.resting]
    if tick.events:
        parts.append(", ".join(f"{event.happening} {event.alert}" for event in tick.events[:5]))
    if len(tick.events) > 5:
        parts.append(f"{len(tick.events) - 5} more events")
    if tick.waiting:
        parts.append(f"{tick.waiting} undelivered")
    return f"{time_text(tick.at)}  {'; '.join(plain_text(part, _LONGEST_LINE) for part in (*parts, *tick.notes))}"


def show_tick(tick: TickView) -> RenderableType:
    table = Rows("chain", "block", "positions", "in range", "near edge", "out of range", "note", spare=("block",))
    for chain in tick.chains:
        told = "; ".join((*([chain.failure] if chain.failure else []), *chain.notes))
        table.add_row(
            chain.chain,
            "" if chain.block is None else str(chain.block),
            str(chain.positions),
            str(chain.in_range),
            str(chain.near_edge),
            str(chain.out_of_range),
            Text(plain_text(told, _LONGEST_LINE) if told else "", style=BAD if chain.failure else QUIET),
        )
    said = [Text(f"{event.happening}: {_event_line(event)}", style=_style(event.severity)) for event in tick.events]
    return Group(
        heading(f"Looked at {time_text(tick.at)}"), table, *said, *_alert_rows(tick.alerts), *notes_block(tick.notes)
    )


def show_alerts(view: AlertsView) -> RenderableType:
    when = "never" if view.looked_at is None else time_text(view.looked_at)
    rows = _alert_rows(view.alerts) or [Text("No alert is on.", style=GOOD if view.looked_at else QUIET)]
    past: list[RenderableType] = []
    if view.events is not None:
        table = Rows("when", "what", "alert", "about", "why", spare=("alert",))
        for event in view.events:
            table.add_row(time_text(event.at), event.happening, event.alert, _about(event), event.reason)
        past = [heading("What happened, newest first"), table if view.events else Text("Nothing yet.", style=QUIET)]
    return Group(
        heading(f"Alerts (last look: {when})"), *rows, *_rule_rows(view.rules), *past, *notes_block(view.notes)
    )


def show_answer(view: AnsweredView) -> RenderableType:
    return Group(Text(view.done, style=GOOD), *_alert_rows((view.alert,)))


def show_rule(view: RuleView) -> RenderableType:
    return Group(Text(view.done, style=GOOD), *_rule_rows((view.rule,)), *notes_block(view.notes))


def _rule_rows(rules: tuple[AlertRuleView, ...]) -> list[RenderableType]:
    if not rules:
        return []
    table = Rows("rule", "about", "tell when", "state")
    for rule in rules:
        level = f"{rule.condition.replace('_', ' ')} {rule.level} {rule.unit}"
        table.add_row(rule.id, f"position {rule.position} on {rule.chain}", level, rule.state)
    return [table]


def _alert_rows(alerts: tuple[AlertView, ...]) -> list[RenderableType]:
    if not alerts:
        return []
    table = Rows("alert", "severity", "about", "since", "state", "why", spare=("since",))
    for alert in alerts:
        state = f"snoozed until {time_text(alert.snoozed_until)}" if alert.snoozed_until is not None else alert.state
        table.add_row(
            alert.id,
            Text(alert.severity, style=_style(alert.severity)),
            _about(alert),
            time_text(alert.raised_at),
            state,
            alert.reason,
        )
    return [table]


def _chain_line(chain: ChainLookView) -> str:
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


def _event_line(event: AlertEventView) -> str:
    return f"{event.title}: {_about(event)}: {event.reason} ({event.alert})"


def _about(alert: AlertView | AlertEventView) -> str:
    return alert.chain if alert.position is None else f"position {alert.position} on {alert.chain}"


def _style(severity: str) -> str:
    return {"critical": BAD, "info": GOOD}.get(severity, "yellow")
