"""`zuno agents`: the agents and their models."""

from __future__ import annotations

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json


def agents(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Show the model of each agent, or why it runs on rules. No model calls."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.agents().status())
