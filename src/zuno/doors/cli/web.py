"""`zuno web` commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json, group, whole_number

if TYPE_CHECKING:
    from zuno.doors.web_logins import Logins
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

web = typer.Typer(
    help="Serve the page on this machine until Ctrl-C or SIGTERM; make and end its logins.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)
token = group("Tokens for scripts that ask the page.")
web.add_typer(token, name="token")
Lines = Annotated[bool, typer.Option("--json", help="One JSON document per event.")]
Scope = Annotated[Literal["look", "act"], typer.Option("--scope", help="look, or act as well.")]
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token.")]


@web.callback()
def serve_web(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option("--port", metavar="N", parser=whole_number, help="Port; 0 picks a free one.")
    ] = 8420,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Bind address (default 127.0.0.1); plain HTTP.")
    ] = "127.0.0.1",
    home: Home = None,
    json: Lines = False,
) -> None:
    """Serve the page on this machine until Ctrl-C or SIGTERM, and print a link to log in."""
    ctx.obj = ctx.obj.at(home)
    if ctx.invoked_subcommand is None:
        run_command.answer(ctx.obj, json, lambda zuno: _serve_page(zuno, host, port, json))


@web.command("link")
def web_link(ctx: typer.Context, scope: Scope = "act", home: Home = None, json: Json = False) -> None:
    """Print a link for one login within two minutes."""
    run_command.answer(ctx.obj.at(home), json, _ask(lambda logins: logins.link(scope)))


@web.command("sessions")
def web_sessions(
    ctx: typer.Context,
    end: Annotated[str | None, typer.Option("--end", metavar="ID|all", help="End this session, or all.")] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """List browsers that are logged in, or end their sessions."""
    run_command.answer(ctx.obj.at(home), json, _ask(lambda logins: logins.list("session", end)))


@web.command("allow")
def web_allow(
    ctx: typer.Context,
    span: Annotated[str | None, typer.Option("--for", metavar="SPAN", help="Duration: 30m, 2h; at most 1d.")] = None,
    end: Annotated[bool, typer.Option("--end", help="From now on no more.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Let the page act with real money for a while; alone it says whether it may."""
    run_command.answer(ctx.obj.at(home), json, _ask(lambda logins: logins.allow(span, end=end)))


@token.command("create")
def web_token_create(
    ctx: typer.Context, name: TokenName, scope: Scope = "look", home: Home = None, json: Json = False
) -> None:
    """Make a token for a script, and print it once."""
    run_command.answer(ctx.obj.at(home), json, _ask(lambda logins: logins.create_token(name, scope)))


@token.command("list")
def web_token_list(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List tokens by name."""
    run_command.answer(ctx.obj.at(home), json, _ask(lambda logins: logins.list("token")))


@token.command("revoke")
def web_token_revoke(ctx: typer.Context, name: TokenName, home: Home = None, json: Json = False) -> None:
    """End a token."""
    run_command.answer(ctx.obj.at(home), json, _ask(lambda logins: logins.list("token", name)))


def _ask(question: Callable[[Logins], View]) -> Callable[[Zuno], Awaitable[View]]:
    async def ask(zuno: Zuno) -> View:
        return question(zuno.web_logins())

    return ask


async def _serve_page(zuno: Zuno, host: str, port: int, json: bool) -> View:
    from zuno.doors.cli.service import event_line, serve

    return await serve(zuno.web(host, port).run, event_line, json=json)
