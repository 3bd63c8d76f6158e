"""A table of roles, each with its models or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping

from zuno.llm.port import Model, RoleModels


class ModelTable:
    """A fixed table, and a default for roles that are not in it. Owns its models."""

    def __init__(self, otherwise: RoleModels, roles: Mapping[str, RoleModels] | None = None) -> None:
        self._otherwise = otherwise
        self._roles = dict(roles or {})

    def models_for(self, role: str, round: int) -> RoleModels:
        return self._roles.get(role, self._otherwise)

    async def close(self) -> None:
        assigned = (self._otherwise, *self._roles.values())
        models: dict[int, Model] = {id(model): model for assigned in assigned for model in assigned.models}
        for model in models.values():
            await model.close()
