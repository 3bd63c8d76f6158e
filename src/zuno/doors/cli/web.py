"""`zuno web` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, JsonLines, argument, command, flag, group, number, option

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

web = group("Serve the page on this machine until Ctrl-C or SIGTERM; make and end its logins.", None)
token = group("Tokens for scripts that use the page's interface.")
web.add_typer(token, name="token")
factor = group("Second factors, which acts need behind a public URL.")
web.add_typer(factor, name="factor")
Scope = Annotated[Literal["look", "act"], option("--scope", None, "look (read only) or act.")]
FactorName = Annotated[str, argument("NAME", "Name of the factor.")]
TokenName = Annotated[str, argument("NAME", "Name of the token.")]


@web.callback()
def serve_web(
    ctx: typer.Context,
    port: Annotated[int, number("--port", "N", "Port; 0 picks a free one.")] = 8420,
    host: Annotated[str, option("--host", "ADDRESS", "Bind address; plain HTTP, not encrypted.")] = "127.0.0.1",
    public_url: Annotated[
        str | None, option("--public-url", "URL", "Public https URL of the proxy in front of the page.")
    ] = None,
    home: Home = None,
    json: JsonLines = False,
) -> None:
    """Serve the page on this machine until Ctrl-C or SIGTERM, and print a link to log in."""
    from zuno.doors.cli.service import serve

    ctx.obj = ctx.obj.at(home)
    if ctx.invoked_subcommand is None:
        run_command.answer(ctx.obj, json, lambda zuno: serve(zuno.web(host, port, public_url).run, json=json))


@command(web, "link")
async def web_link(zuno: Zuno, scope: Scope = "act") -> View:
    """Print a link for one login within two minutes."""
    return zuno.web_logins().link(scope)


@command(web, "sessions")
async def web_sessions(
    zuno: Zuno, end: Annotated[str | None, option("--end", "ID|all", "End this session, or all.")] = None
) -> View:
    """List browsers that are logged in, or end their sessions."""
    return zuno.web_logins().list("session", end)


@command(web, "allow")
async def web_allow(
    zuno: Zuno,
    span: Annotated[str | None, option("--for", "SPAN", "Duration: 30m, 2h; at most 1d.")] = None,
    end: Annotated[bool, flag("--end", "Withdraw the permission now.")] = False,
) -> View:
    """Let the page act with real money for a limited time; without options, show until when."""
    return zuno.web_logins().allow(span, end=end)


@command(token, "create")
async def web_token_create(zuno: Zuno, name: TokenName, scope: Scope = "look") -> View:
    """Make a token for a script, and print it once."""
    return zuno.web_logins().create_token(name, scope)


@command(token, "list")
async def web_token_list(zuno: Zuno) -> View:
    """List tokens by name."""
    return zuno.web_logins().list("token")


@command(token, "revoke")
async def web_token_revoke(zuno: Zuno, name: TokenName) -> View:
    """Revoke a token."""
    return zuno.web_logins().list("token", name)


@command(factor, "add")
async def web_factor_add(
    zuno: Zuno, kind: Annotated[str, argument("KIND", "totp: codes of an authenticator app.")], name: FactorName
) -> View:
    """Add a second factor, and print its otpauth:// URI once."""
    return zuno.web_logins().factors.add(kind, name)


@command(factor, "list")
async def web_factor_list(zuno: Zuno) -> View:
    """List second factors by name."""
    return zuno.web_logins().factors.list()


@command(factor, "remove")
async def web_factor_remove(zuno: Zuno, name: FactorName) -> View:
    """Remove a second factor; also lets codes be tried again after too many wrong ones."""
    return zuno.web_logins().factors.remove(name)
