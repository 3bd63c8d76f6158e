"""How a command is declared, and options that commands share. Only typer is imported here: help must stay fast."""

import re
from collections.abc import Callable
from functools import cached_property
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from zuno.doors.cli import run_command

Answer = run_command.Answer
Function = TypeVar("Function", bound=Callable[..., Any])


def _leave_types_out(params: list[Any]) -> list[Any]:
    """Help names no type beside a flag: it takes no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class _Leaf(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        return _leave_types_out(super().get_params(ctx))


class _Branch(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _leave_types_out(super().get_params(ctx))


class _Commands(typer.Typer):
    def command(self, name: str | None = None, **options: Any) -> Any:
        return super().command(name, cls=_Leaf, **options)


def help_alone(ctx: typer.Context) -> None:
    """A group without a command shows what it can do."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def group(help: str, alone: Callable[[typer.Context], None] | None = help_alone) -> typer.Typer:
    """A group of commands; without a command it runs `alone`, or its own callback."""
    return _Commands(
        cls=_Branch,
        help=help,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        invoke_without_command=True,
        callback=alone,
    )


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


def option(names: str, metavar: str | None, help: str) -> Any:
    """An option with a value; `names`: as they are typed, "--lines -n"."""
    return typer.Option(*names.split(), metavar=metavar, help=help)


def number(names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names.split(), metavar=metavar, parser=whole_number, help=help)


def flag(names: str, help: str) -> Any:
    return typer.Option(*names.split(), help=help)


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help)


Home = Annotated[str | None, option("--home", "DIR", "Data directory (default: $ZUNO_HOME or ~/.zuno).")]
Cluster = Annotated[
    str | None, option("--cluster", "ADDRESS", "Run on this Dask cluster instead of local processes: tcp://HOST:PORT.")
]
Json = Annotated[bool, flag("--json", "Print one JSON document.")]
JsonLines = Annotated[bool, flag("--json", "One JSON document per event.")]
ChainName = Annotated[
    str | None,
    typer.Option(
        "--chain", metavar="NAME", callback=not_blank, help="Chain name or id: sim, devnet, base, arbitrum, 8453 …"
    ),
]


def command(
    group: typer.Typer, name: str, by: Callable[..., None] = run_command.answer
) -> Callable[[Function], Function]:
    """Add a function to a group as a command that takes `--home` and `--json` as well.

    `zuno`, and `listen` after it, are what `by` hands it. The other parameters are its options and arguments.
    A `json` of its own replaces the shared one and is passed on.
    """

    def register(function: Function) -> Function:
        group.command(name)(_Command(function, by))
        return function

    return register


class _Command:
    """A function as typer calls it. Annotations are evaluated only for commands that a line can need."""

    def __init__(self, function: Callable[..., Any], by: Callable[..., None]) -> None:
        self.__doc__, self.__globals__ = function.__doc__, function.__globals__
        self._function, self._by = function, by
        code, kinds = function.__code__, function.__annotations__
        own = code.co_varnames[: code.co_argcount]
        self.__annotations__ = {name: kinds[name] for name in own if name not in ("zuno", "listen")}

    @cached_property
    def __signature__(self) -> Signature:
        kinds = {"ctx": typer.Context, "home": Home, "json": Json} | get_type_hints(self, include_extras=True)
        last = {"home": None, "json": False}
        names = ["ctx", *(name for name in self.__annotations__ if name not in last), *last]
        defaults = last | {each.name: each.default for each in signature(self._function).parameters.values()}
        keyword, empty = Parameter.KEYWORD_ONLY, Parameter.empty
        return Signature(
            [Parameter(name, keyword, default=defaults.get(name, empty), annotation=kinds[name]) for name in names]
        )

    def __call__(self, ctx: typer.Context, home: str | None, json: bool, **given: Any) -> None:
        session: run_command.Session = ctx.obj.at(home)
        if "json" in self.__annotations__:
            given["json"] = json
        self._by(session, json, lambda *handed: self._function(*handed, **given))
