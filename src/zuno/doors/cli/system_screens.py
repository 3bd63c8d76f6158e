"""Health checks, logs and exports for eyes."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, grid, heading
from zuno.doors.doctor import DoctorView
from zuno.doors.export import ExportView, to_csv
from zuno.doors.logs import LogsView

_STATES = {"ok": GOOD, "warn": "yellow", "fail": BAD, "off": QUIET}
_LEVELS = {"warning": "yellow", "error": BAD, "critical": BAD, "debug": QUIET}


def show_doctor(view: DoctorView) -> RenderableType:
    table = grid()
    table.add_column(overflow="fold")
    for check in view.checks:
        text = Text(check.text)
        if check.advice:
            text.append(f"\n→ {check.advice}", style=QUIET)
        table.add_row(check.topic, Text(check.state, style=_STATES[check.state]), text)
    failed = [check.text if check.topic == "record" else check.topic for check in view.checks if check.state == "fail"]
    warned = [check.topic for check in view.checks if check.state == "warn"]
    if failed:
        end = Text(f"not ready: {', '.join(dict.fromkeys(failed))}", style=BAD)
    elif warned:
        end = Text(f"ready, with warnings: {', '.join(dict.fromkeys(warned))}", style="yellow")
    else:
        end = Text("ready", style=GOOD)
    return Group(heading("Checks before live trading" if view.live else "Checks"), table, end)


def show_logs(view: LogsView) -> RenderableType:
    if not view.lines:
        return Text(f"nothing of that level is in {view.file}", style=QUIET)
    lines = []
    for line in view.lines:
        text = Text.assemble((line.at, QUIET), " ", (f"{line.level:<8}", _LEVELS.get(line.level, "")))
        text.append(f" {line.where}: ", style=QUIET)
        text.append(line.text.replace("\n", "\n    "))
        lines.append(text)
    return Group(*lines)


def csv_text(view: ExportView) -> str:
    """What goes to stdout: the table itself, or where it was written."""
    if view.file is not None:
        return f"{len(view.rows)} rows of {view.what} are in {view.file}\n"
    return to_csv(view)
