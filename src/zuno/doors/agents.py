"""Who sits at the desk: each agent, and which model speaks for it or why none does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from zuno.kernel.view import View
from zuno.llm.port import Seats
from zuno.lp.model.debate import Role
from zuno.lp.service.mesh import MeshView


class ChairView(View):
    role: str
    models: tuple[str, ...]
    """Best first; empty where the rules speak."""
    why: str


class ChairsView(View):
    chairs: tuple[ChairView, ...]
    where: str
    mesh: MeshView | None
    """The peers, where a mesh is set up; which models speak for those elsewhere only they know."""


class Chairs:
    """Looks at the seats and at the mesh; no model is asked."""

    def __init__(self, seats: Seats, mesh: Callable[[], Awaitable[MeshView | None]]) -> None:
        self._seats = seats
        self._mesh = mesh

    async def status(self) -> ChairsView:
        roles = (Role.SCOUT, Role.STRATEGIST, Role.CRITIC, Role.ARBITER)
        chairs = []
        for role in roles:
            seating = self._seats.seat(role.value, 0)
            names = tuple(model.name for model in seating.models)
            chairs.append(ChairView(role=role.value, models=names, why=seating.why))
        await self._seats.close()
        mesh = await self._mesh()
        there = mesh is not None and all(peer.answers for peer in mesh.peers)
        where = f"on the mesh over {mesh.transport}" if mesh is not None and there else "in this process"
        return ChairsView(chairs=tuple(chairs), where=where, mesh=mesh)
