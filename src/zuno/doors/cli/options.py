"""Options shared by all commands. Only typer is imported here, so that help and completion stay fast."""

from __future__ import annotations

import re
from typing import Annotated

import typer


def group(help: str) -> typer.Typer:
    return typer.Typer(
        help=help,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        callback=help_alone,
    )


def help_alone(ctx: typer.Context) -> None:
    """A group without a command shows what it can do."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def not_blank(typed: str | None) -> str | None:
    """An empty variable in a script must not choose the default chain."""
    if typed is not None and not typed.strip():
        raise typer.BadParameter("it needs a name.")
    return typed


def whole_number(typed: object) -> int:
    """Plain digits alone: `int` would also read other scripts' digits and underscores."""
    if not re.fullmatch(r"[+-]?[0-9]{1,80}", str(typed)):
        raise typer.BadParameter(f"{str(typed)[:40]!r} is not a whole number.")
    return int(str(typed))


Home = Annotated[
    str | None, typer.Option("--home", metavar="DIR", help="Data directory (default: $ZUNO_HOME or ~/.zuno).")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="Run on this Dask cluster instead of local processes: tcp://HOST:PORT."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
ChainName = Annotated[
    str | None,
    typer.Option(
        "--chain",
        metavar="NAME",
        callback=not_blank,
        help="Chain name or id: sim, devnet, base, arbitrum, 8453 …",
    ),
]
