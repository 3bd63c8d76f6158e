"""Replies of models, kept by the request they answered: a study runs again without a key, to the same bytes."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from zuno.lab.reports import ReportFiles, whole_lines
from zuno.llm.port import Attempt, Failed, ModelRequest, Outcome, Reply, RoleModels

_KEPT: Final[frozenset[Outcome]] = frozenset({"ok", "malformed", "out_of_bounds", "unsupported_figure"})
"""What a model said. That nobody answered is no reply, and is asked again."""


class ReplyBook:
    """`replies.jsonl` of the lab's folder, or another file of the same form for replies that are to be fresh."""

    def __init__(self, files: ReportFiles, name: str) -> None:
        self._files, self._name = files, f"{name}.jsonl"
        lines = whole_lines(files.read(self._name))
        self._attempts = {attempt.request: attempt for attempt in map(Attempt.model_validate_json, lines)}

    def recall(self, request: ModelRequest) -> Attempt | None:
        return self._attempts.get(request.fingerprint)

    async def record(self, attempt: Attempt) -> None:
        if attempt.outcome in _KEPT and attempt.request not in self._attempts:
            self._attempts[attempt.request] = attempt
            self._files.add_lines(self._name, [attempt.model_dump_json(by_alias=True)])

    def models_for(self, role: str, round: int) -> RoleModels:
        """The models of which replies to this role are kept: a registry for whoever has no key."""
        names = sorted({attempt.model for attempt in self._attempts.values() if attempt.role == role})
        models = tuple(_KeptModel(name) for name in names)
        return RoleModels(models, "" if models else "no model is configured and no reply is kept")

    async def close(self) -> None:
        return None


class _KeptModel:
    """Known by name alone: what is not in the book it cannot answer."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        return Decimal(0)

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Reply:
        return Failed("unavailable", "no reply to this request is kept")

    async def close(self) -> None:
        return None
