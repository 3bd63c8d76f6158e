"""Who sits where: a table of roles, each with its models or the reason why none."""

from __future__ import annotations

from collections.abc import Mapping

from zuno.llm.port import Model, Seating


class SeatingTable:
    """A fixed table, and one seating for everyone who is not on it. Owns its models."""

    def __init__(self, otherwise: Seating, roles: Mapping[str, Seating] | None = None) -> None:
        self._otherwise = otherwise
        self._roles = dict(roles or {})

    def seat(self, role: str, round: int) -> Seating:
        return self._roles.get(role, self._otherwise)

    async def close(self) -> None:
        seatings = (self._otherwise, *self._roles.values())
        models: dict[int, Model] = {id(model): model for seating in seatings for model in seating.models}
        for model in models.values():
            await model.close()
