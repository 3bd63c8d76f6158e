"""Who sits at the desk: each agent, and which model speaks for it or why none does."""

from __future__ import annotations

from zuno.app.views import View
from zuno.messages.debate import Role
from zuno.ports.model import Seats


class ChairView(View):
    role: str
    models: tuple[str, ...]
    """Best first; empty where the rules speak."""
    why: str


class ChairsView(View):
    chairs: tuple[ChairView, ...]
    where: str


class Chairs:
    """Looks at the seats; no model is asked."""

    def __init__(self, seats: Seats) -> None:
        self._seats = seats

    async def status(self) -> ChairsView:
        roles = (Role.SCOUT, Role.STRATEGIST, Role.CRITIC, Role.ARBITER)
        chairs = []
        for role in roles:
            seating = self._seats.seat(role.value, 0)
            names = tuple(model.name for model in seating.models)
            chairs.append(ChairView(role=role.value, models=names, why=seating.why))
        await self._seats.close()
        return ChairsView(chairs=tuple(chairs), where="in this process")
