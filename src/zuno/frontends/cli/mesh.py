"""The mesh on the command line: set it up, keep it running, look at it, and one agent alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.frontends.cli import answering
from zuno.frontends.cli.grammar import Home, Json, group, whole_number

if TYPE_CHECKING:
    import asyncio

    from zuno.app.keeping import MeshEventView
    from zuno.app.mesh import MeshView
    from zuno.app.views import View
    from zuno.app.zuno import Zuno

mesh = group("The mesh: the same debate between separate peers that do not trust each other.")
Way = Annotated[
    str | None,
    typer.Option("--transport", metavar="NAME", help="iroh or axl; else what runs, else iroh where it is installed."),
]
Transport = Annotated[
    str | None,
    typer.Option(
        "--transport", metavar="NAME", help="inproc, iroh or axl; else the mesh if all four answer, else inproc."
    ),
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON document an event, a line each.")]


@mesh.command("init")
def mesh_init(
    ctx: typer.Context,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="What others reach this machine by; else 127.0.0.1.")
    ] = None,
    join: Annotated[
        str | None, typer.Option("--join", metavar="FILE", help="The mesh.json of another machine, copied here.")
    ] = None,
    roles: Annotated[
        list[str] | None, typer.Option("--role", metavar="ROLE", help="A role that lives on that machine; repeatable.")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Make keys for every role and the table of who is who; what is there already stays."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.mesh().init(host, join, roles or ()))


@mesh.command("up")
def mesh_up(ctx: typer.Context, transport: Way = None, home: Home = None, json: Lines = False) -> None:
    """Start the agents whose keys are here, start again what dies, and show how they are, until Ctrl-C."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: _kept(zuno, transport, json))


@mesh.command("down")
def mesh_down(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """End the mesh that another terminal keeps running."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.mesh().down())


@mesh.command("status")
def mesh_status(ctx: typer.Context, transport: Way = None, home: Home = None, json: Json = False) -> None:
    """Show each peer: its process, since when, whether it answers, and what it heard, said and rejected."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.mesh().status(transport))


@mesh.command("ping")
def mesh_ping(ctx: typer.Context, transport: Way = None, home: Home = None, json: Json = False) -> None:
    """Exit 0 only when all four agents answer; else 4, with who does not."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.mesh().ping(transport))


@mesh.command("join")
def mesh_join(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="req_ and 16 hex digits.")],
    home: Home = None,
    json: Json = False,
) -> None:
    """Go on with a debate that this home began over the mesh, and show what came of it."""
    answering.listen_and_answer(ctx.obj.at(home), json, lambda zuno, listen: zuno.mesh().join(request, listen))


def peer(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="scout, strategist, critic or arbiter.")],
    transport: Way = None,
    parent: Annotated[int | None, typer.Option("--child-of", parser=whole_number, hidden=True)] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Run one agent in this process until it is asked to end (Ctrl-C, SIGTERM)."""

    async def lived(zuno: Zuno) -> View:
        life = await zuno.peer(role, transport, parent=parent)
        return await life.run(_stop_by_signal())

    answering.answer(ctx.obj.at(home), json, lived)


async def _kept(zuno: Zuno, transport: str | None, json: bool) -> View:
    from zuno.frontends.cli.mesh_screens import Board

    stop = _stop_by_signal()
    with Board(live=not json) as board:

        def hear(event: MeshEventView) -> None:
            try:
                if json:
                    sys.stdout.write(event.model_dump_json(by_alias=True, ensure_ascii=True) + "\n")
                    sys.stdout.flush()
                else:
                    board.say(event)
            except OSError:  # nobody reads our lines any more
                answering.hush()
                stop.set()

        def show(view: MeshView) -> None:
            board.show(view)

        return await zuno.mesh_host().up(transport, hear, show, stop)


def _stop_by_signal() -> asyncio.Event:
    import asyncio
    import signal
    from contextlib import suppress

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def end() -> None:
        """Once is a wish; a second Ctrl-C ends the process as it always does."""
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    for number in signals:
        with suppress(NotImplementedError, RuntimeError, ValueError):  # only a process's first thread hears signals
            loop.add_signal_handler(number, end)
    return stop
