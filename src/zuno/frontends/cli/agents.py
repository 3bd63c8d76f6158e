"""`zuno agents`: who sits at the desk."""

from __future__ import annotations

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json


def agents(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Show each agent and the model that speaks for it, or why the rules do; no model is asked."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.chairs().status())
