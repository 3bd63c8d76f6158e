"""How a mesh looks on a screen."""

from __future__ import annotations

from types import TracebackType

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, console, heading
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import plain_text
from zuno.lp.service.mesh import MeshTableView, MeshView, PeerView, PingView
from zuno.lp.service.mesh_supervisor import MeshEventView

_COLUMNS = ("peer", "state", "node", "process", "since", "restarts", "round trip", "heard", "said", "rejected")
_LONGEST_VERSION, _LONGEST_REASON, _LONGEST_LINE = 64, 120, 500


def show_table(view: MeshTableView) -> RenderableType:
    table = Rows("role", "key", "kept", "iroh", "AXL", spare=("AXL",))
    for line in view.roles:
        where = "here" if line.here else Text("elsewhere", style=QUIET)
        addresses = (_peer_text(text, _LONGEST_LINE) for text in (line.iroh_address, line.axl_api_url))
        table.add_row(line.role, f"{line.key[:16]}…", where, *addresses)
    shared = Text(f"The table is {view.folder}/mesh.json; nothing in it is secret.", style=QUIET)
    return Group(heading(view.said), table, shared)


def show_mesh(view: MeshView) -> RenderableType:
    table = Rows(*_COLUMNS, "strangers", "dead", "version", spare=("version", "since", "restarts"))
    for peer in view.peers:
        table.add_row(
            peer.role,
            _state(peer),
            Text(peer.node or "", style=GOOD if peer.node == "ok" else BAD),
            _count_text(peer.pid) if peer.here else "elsewhere",
            "" if peer.since is None else time_text(peer.since // 1000),
            str(peer.restarts),
            "" if peer.round_trip_ms is None else f"{peer.round_trip_ms:.1f} ms",
            _count_text(peer.heard),
            _count_text(peer.said),
            Text(_count_text(peer.rejected), style=BAD if peer.rejected else ""),
            _count_text(peer.strangers),
            Text(_count_text(peer.dead), style=BAD if peer.dead else ""),
            _peer_text(peer.version, _LONGEST_VERSION),
        )
    kept = "kept running by nobody here" if view.kept_by is None else f"kept running by process {view.kept_by}"
    reasons = [
        Text(f"{peer.role} rejected {times}× {_peer_text(why, _LONGEST_REASON)}", style=QUIET)
        for peer in view.peers
        for why, times in peer.reasons.items()
    ]
    nodes = [("cli", view.node, view.node_why), *((peer.role, peer.node, peer.node_why) for peer in view.peers)]
    wrong = [
        Text(f"{role} node: {node}. {_peer_text(why, _LONGEST_LINE)}", style=BAD) for role, node, why in nodes if why
    ]
    over = view.transport if view.node is None else f"{view.transport} (node: {view.node})"
    return Group(heading(f"The mesh over {over}, {kept}"), table, *wrong, *reasons)


def show_ping(view: PingView) -> RenderableType:
    table = Rows("peer", "round trip")
    for role, trip in view.answered.items():
        table.add_row(role, f"{trip:.1f} ms")
    return Group(heading(f"All four answer over {view.transport}"), table)


class Board:
    """A live table at a terminal, plain lines elsewhere."""

    def __init__(self, *, live: bool) -> None:
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False) if live and self._console.is_terminal else None

    def __enter__(self) -> Board:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, event: MeshEventView) -> None:
        told = _peer_text(event.text, _LONGEST_LINE)
        self._console.print(Text(f"{time_text(event.at // 1000)}  {told}"), soft_wrap=True)

    def show(self, view: MeshView) -> None:
        if self._live is not None:
            self._live.update(show_mesh(view), refresh=True)


def _state(peer: PeerView) -> Text:
    if peer.answers is not None:
        return Text("answers", style=GOOD) if peer.answers else Text("silent", style=BAD)
    return Text("there", style=GOOD) if peer.since is not None else Text("not there", style=BAD)


def _peer_text(text: str | None, limit: int) -> str:
    """A peer's words, or words that quote them."""
    return "" if text is None else plain_text(text, limit)


def _count_text(number: int | None) -> str:
    return "" if number is None else str(number)
