"""Who sits at the desk: each agent, and which model speaks for it or why none does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from zuno.kernel.view import View
from zuno.llm.port import ModelRegistry
from zuno.lp.model.debate import Role
from zuno.lp.service.mesh import MeshView


class AgentView(View):
    role: str
    models: tuple[str, ...]
    """Best first; empty where the rules speak."""
    why: str


class AgentsView(View):
    chairs: tuple[AgentView, ...]
    where: str
    mesh: MeshView | None
    """The peers, where a mesh is set up; which models speak for those elsewhere only they know."""


class Agents:
    """Looks at the registry and at the mesh; no model is asked."""

    def __init__(self, registry: ModelRegistry, mesh: Callable[[], Awaitable[MeshView | None]]) -> None:
        self._registry = registry
        self._mesh = mesh

    async def status(self) -> AgentsView:
        roles = (Role.SCOUT, Role.STRATEGIST, Role.CRITIC, Role.ARBITER)
        chairs = []
        for role in roles:
            assigned = self._registry.models_for(role.value, 0)
            names = tuple(model.name for model in assigned.models)
            chairs.append(AgentView(role=role.value, models=names, why=assigned.why))
        await self._registry.close()
        mesh = await self._mesh()
        there = mesh is not None and all(peer.answers for peer in mesh.peers)
        where = f"on the mesh over {mesh.transport}" if mesh is not None and there else "in this process"
        return AgentsView(chairs=tuple(chairs), where=where, mesh=mesh)
