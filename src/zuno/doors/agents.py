"""Who sits at the desks: each agent, and which model speaks for it or why none does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from zuno.kernel.view import View
from zuno.llm.port import ModelRegistry
from zuno.lp.service.mesh import MeshView
from zuno.present.document import Document, document, include, lines, table
from zuno.present.values import bad, quiet


class AgentView(View):
    desk: str
    """`lp` or `trading`."""
    role: str
    models: tuple[str, ...]
    """Best first; empty where the rules speak."""
    why: str


class AgentsView(View):
    chairs: tuple[AgentView, ...]
    where: str
    """Of the LP desk; the trading desk is always in this process."""
    install: str | None
    """The command that installs the models, where a key is set and they are not installed."""
    mesh: MeshView | None
    """The peers, where a mesh is set up; which models speak for those elsewhere only they know."""

    def to_document(self) -> Document:
        rows = (
            (agent.desk, agent.role, ", then ".join(agent.models) or quiet(f"rule: {agent.why}"))
            for agent in self.chairs
        )
        install = None if self.install is None else lines(bad(f"To install the models: {self.install}"))
        mesh = () if self.mesh is None else include(self.mesh.to_document())
        agents = table(("desk", "agent", "speaks by"), rows)
        return document(f"The agents; the LP desk {self.where}", agents, install, *mesh)


@dataclass(frozen=True, slots=True, eq=False)
class Agents:
    """Looks at the registry and at the mesh; no model is asked."""

    registry: ModelRegistry
    mesh: Callable[[], Awaitable[MeshView | None]]
    roles: Mapping[str, Sequence[str]]
    install: str | None
    """`roles` by desk; `install`: what installs the models' libraries, where they are not there."""

    async def status(self) -> AgentsView:
        chairs = [self._chair(desk, role) for desk, roles in self.roles.items() for role in roles]
        missing = self.install if any(chair.why == _ABSENT for chair in chairs) else None
        await self.registry.close()
        mesh = await self.mesh()
        there = mesh is not None and all(peer.answers for peer in mesh.peers)
        where = f"on the mesh over {mesh.transport}" if mesh is not None and there else "in this process"
        return AgentsView(chairs=tuple(chairs), where=where, install=missing, mesh=mesh)

    def _chair(self, desk: str, role: str) -> AgentView:
        assigned = self.registry.models_for(role, 0)
        names = tuple(model.name for model in assigned.models)
        if names and self.install is not None:
            return AgentView(desk=desk, role=role, models=(), why=_ABSENT)
        return AgentView(desk=desk, role=role, models=names, why=assigned.why)


_ABSENT = "a key is set, but the models are not installed"
