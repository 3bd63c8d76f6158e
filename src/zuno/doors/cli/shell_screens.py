"""How a reading of the shell and the agents look on a screen."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.agents import AgentsView
from zuno.doors.cli.layout import BAD, QUIET, Rows, grid, heading
from zuno.doors.cli.mesh_screens import show_mesh
from zuno.doors.reading.parse_view import ParseView


def show_reading(view: ParseView) -> RenderableType:
    facts = grid()
    facts.add_row("intent", Text(view.intent, style=BAD if view.dangerous else ""))
    for name, value in view.slots.items():
        facts.add_row(name, value)
    facts.add_row("confidence", f"{view.confidence:g}")
    if view.command:
        facts.add_row("command", f"zuno {shlex.join(view.command)}")
    if view.missing:
        facts.add_row("missing", ", ".join(view.missing))
    if view.unused:
        facts.add_row("not understood", ", ".join(view.unused))
    if view.ask:
        facts.add_row("asks back", view.ask)
    for at, choice in enumerate(view.choices):
        facts.add_row("" if at else "perhaps", f"zuno {shlex.join(choice)}")
    for at, reason in enumerate(view.why):
        facts.add_row("" if at else "because", Text(reason, style=QUIET))
    return facts


def render_agents(view: AgentsView) -> RenderableType:
    table = Rows("desk", "agent", "speaks by", between={"desk": " "})
    for agent in view.chairs:
        table.add_row(agent.desk, agent.role, ", then ".join(agent.models) or Text(f"rule: {agent.why}", style=QUIET))
    install = [] if view.install is None else [Text(f"To install the models: {view.install}", style=BAD)]
    mesh = [] if view.mesh is None else [Text(), show_mesh(view.mesh)]
    return Group(heading(f"The agents; the LP desk {view.where}"), table, *install, *mesh)
