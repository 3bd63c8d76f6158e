"""`zuno mesh` and `zuno peer` commands."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Home, Json, group, whole_number

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.lp.service.mesh import MeshView
    from zuno.lp.service.mesh_supervisor import MeshEventView

mesh = group("Run the LP debate between separate, mutually untrusting peers.")
Way = Annotated[
    str | None,
    typer.Option("--transport", metavar="NAME", help="iroh or axl (default: the running one, else iroh if installed)."),
]
Transport = Annotated[
    str | None,
    typer.Option(
        "--transport",
        metavar="NAME",
        help="inproc, iroh or axl (default: the mesh if all four peers answer, else inproc).",
    ),
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON document per event.")]


@mesh.command("init")
def mesh_init(
    ctx: typer.Context,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST", help="Host name of this machine for other peers (default: 127.0.0.1)."),
    ] = None,
    join: Annotated[
        str | None, typer.Option("--join", metavar="FILE", help="mesh.json copied from another machine.")
    ] = None,
    roles: Annotated[
        list[str] | None, typer.Option("--role", metavar="ROLE", help="Role that runs on that machine; repeatable.")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Create keys and the peer table; existing ones are kept."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.mesh().init(host, join, roles or ()))


@mesh.command("up")
def mesh_up(ctx: typer.Context, transport: Way = None, home: Home = None, json: Lines = False) -> None:
    """Start the local agents, restart those that die, show their status; until Ctrl-C."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: _run_mesh(zuno, transport, json))


@mesh.command("down")
def mesh_down(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Stop the mesh running in another terminal."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.mesh().down())


@mesh.command("status")
def mesh_status(ctx: typer.Context, transport: Way = None, home: Home = None, json: Json = False) -> None:
    """Show each peer: pid, uptime, reachability, messages received, sent and rejected."""
    run_command.listen_and_answer(ctx.obj.at(home), json, lambda zuno, listen: zuno.mesh().status(transport, listen))


@mesh.command("ping")
def mesh_ping(ctx: typer.Context, transport: Way = None, home: Home = None, json: Json = False) -> None:
    """Ping all four agents; exit 4 if one does not answer."""
    run_command.listen_and_answer(ctx.obj.at(home), json, lambda zuno, listen: zuno.mesh().ping(transport, listen))


@mesh.command("join")
def mesh_join(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="req_ and 16 hex digits.")],
    home: Home = None,
    json: Json = False,
) -> None:
    """Resume a debate that this home started on the mesh, and show the result."""
    run_command.listen_and_answer(ctx.obj.at(home), json, lambda zuno, listen: zuno.mesh().join(request, listen))


def peer(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="scout, strategist, critic or arbiter.")],
    transport: Way = None,
    parent: Annotated[int | None, typer.Option("--child-of", parser=whole_number, hidden=True)] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run one agent in this process until Ctrl-C or SIGTERM."""

    async def run_peer(zuno: Zuno) -> View:
        from zuno.doors.cli.service import stop_on_signals

        life = await zuno.peer(role, transport, parent=parent)
        return await life.run(stop_on_signals((signal.SIGINT,)))

    run_command.answer(ctx.obj.at(home), json, run_peer)


class _Board:
    """A live table at a terminal, plain lines elsewhere."""

    def __init__(self, *, live: bool) -> None:
        from rich.live import Live

        from zuno.doors.cli.layout import console

        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False) if live and self._console.is_terminal else None

    def __enter__(self) -> _Board:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, view: MeshView) -> None:
        from rich.text import Text

        from zuno.doors.cli.screen import paint_document

        if self._live is not None:
            self._live.update(Text.from_ansi(paint_document(view.to_document())), refresh=True)

    def say(self, event: MeshEventView) -> None:
        from rich.text import Text

        from zuno.doors.cli.service import event_line
        from zuno.kernel.view import sanitise

        self._console.print(Text(sanitise(event_line(event))), soft_wrap=True)


async def _run_mesh(zuno: Zuno, transport: str | None, json: bool) -> View:
    from zuno.doors.cli.service import stop_on_signals
    from zuno.kernel.view import write_document

    stop = stop_on_signals((signal.SIGINT,))
    with _Board(live=not json) as board:

        def hear(event: MeshEventView) -> None:
            try:
                if json:
                    sys.stdout.write(write_document(event) + "\n")
                    sys.stdout.flush()
                else:
                    board.say(event)
            except OSError:  # nobody reads our lines any more
                run_command.discard_stdout()
                stop.set()

        def show(view: MeshView) -> None:
            board.show(view)

        return await zuno.mesh_host().up(transport, hear, show, stop)
