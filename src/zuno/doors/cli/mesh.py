"""`zuno mesh` and `zuno peer` commands."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.options import Answer, JsonLines, argument, command, group, option, whole_number

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.lp.service.mesh import MeshView
    from zuno.lp.service.mesh_supervisor import MeshEventView
    from zuno.lp.service.recommend import Listen

mesh = group("Run the LP debate between separate, mutually untrusting peers.")
Way = Annotated[
    str | None, option("--transport", "NAME", "iroh or axl (default: the running one, else iroh if installed).")
]
Transport = Annotated[
    str | None,
    option("--transport", "NAME", "inproc, iroh or axl (default: the mesh if all four peers answer, else inproc)."),
]


@command(mesh, "init")
def mesh_init(
    zuno: Zuno,
    host: Annotated[
        str | None, option("--host", "HOST", "Host name of this machine for other peers (default: 127.0.0.1).")
    ] = None,
    join: Annotated[str | None, option("--join", "FILE", "mesh.json copied from another machine.")] = None,
    roles: Annotated[list[str] | None, option("--role", "ROLE", "Role that runs on that machine; repeatable.")] = None,
) -> Answer:
    """Create keys and the peer table; existing ones are kept."""
    return zuno.mesh().init(host, join, roles or ())


@command(mesh, "up")
async def mesh_up(zuno: Zuno, transport: Way = None, json: JsonLines = False) -> View:
    """Start the local agents, restart those that die, show their status; until Ctrl-C."""
    from zuno.doors.cli.layout import DocumentBoard
    from zuno.doors.cli.service import serve

    with nullcontext() if json else DocumentBoard() as board:

        def show(view: MeshView) -> None:
            if board is not None:
                board.show(view.to_document())

        def run(hear: Callable[[MeshEventView], None], stop: asyncio.Event) -> Awaitable[View]:
            return zuno.mesh_host().up(transport, hear, show, stop)

        return await serve(run, json=json, ready=lambda event: event.event == "up", ending=(signal.SIGINT,))


@command(mesh, "down")
def mesh_down(zuno: Zuno) -> Answer:
    """Stop the mesh running in another terminal."""
    return zuno.mesh().down()


@command(mesh, "status", by=run_command.listen_and_answer)
def mesh_status(zuno: Zuno, listen: Listen, transport: Way = None) -> Answer:
    """Show each peer: pid, uptime, reachability, messages received, sent and rejected."""
    return zuno.mesh().status(transport, listen)


@command(mesh, "ping", by=run_command.listen_and_answer)
def mesh_ping(zuno: Zuno, listen: Listen, transport: Way = None) -> Answer:
    """Ping all four agents; exit 4 if one does not answer."""
    return zuno.mesh().ping(transport, listen)


@command(mesh, "join", by=run_command.listen_and_answer)
def mesh_join(
    zuno: Zuno, listen: Listen, request: Annotated[str, argument("REQUEST", "req_ and 16 hex digits.")]
) -> Answer:
    """Resume a debate that this home started on the mesh, and show the result."""
    return zuno.mesh().join(request, listen)


async def peer(
    zuno: Zuno,
    role: Annotated[str, argument("ROLE", "scout, strategist, critic or arbiter.")],
    transport: Way = None,
    parent: Annotated[int | None, typer.Option("--child-of", parser=whole_number, hidden=True)] = None,
) -> View:
    """Run one agent in this process until Ctrl-C or SIGTERM."""
    from zuno.doors.cli.service import stop_on_signals

    life = await zuno.peer(role, transport, parent=parent)
    return await life.run(stop_on_signals((signal.SIGINT,)))
