"""The market's past on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group

data = group("The trading desk's market: what is kept of its past, and what is wrong with it.")


@data.command("status")
def data_status(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List every series that is kept: how many rows, from when to when, and whose past it is."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.data().status())


@data.command("synth")
def data_synth(
    ctx: typer.Context,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Equal seeds give equal markets.")] = 1,
    home: Home = None,
    json: Json = False,
) -> None:
    """Invent a whole market from a seed, SYNTHETIC wherever it is shown; the one invented before is forgotten."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.data().synth(seed))


@data.command("check")
def data_check(
    ctx: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what a rule can mend, and say what was done.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Find gaps, conflicts, bad rows, frozen stretches and bars that do not add up; exit 3 while any remain."""
    answering.verdict(ctx.obj.at(home), json, lambda zuno: zuno.data().check(repair=repair), no=answering.REFUSED)
