"""Wire the chat: its services, its model, its journal, and the replay of its answers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from zuno.adapters.model.recorded import RecordedModels
from zuno.doors.chat.desk import ROLE, ChatDesk, Speaker
from zuno.doors.chat.replay import ChatReplay
from zuno.doors.zuno import Zuno
from zuno.journal.port import Journal
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt
from zuno.lp.service.recommend import new_request_id
from zuno.wiring.cycles import list_replay_differences
from zuno.wiring.models import Models
from zuno.wiring.version import code_version

_ROOM: Final = "zuno.doors.chat"


def build_chat_desk(
    zuno: Zuno, journal: Callable[[], Awaitable[Journal]], models: Models, *, viewers_ask: bool
) -> ChatDesk:
    """`viewers_ask`: whether people who may only look are answered by a model, too."""

    async def model_context(request_id: str, who: Speaker) -> ModelContext | None:
        if who.viewer and not viewers_ask:
            return None
        registry = models.registry()
        if not registry.models_for(ROLE, 0).models:
            return None
        return models.model_context(await journal(), request_id, registry, desk=_ROOM, viewer=who.viewer)

    return ChatDesk(zuno, journal, model_context, lambda: new_request_id(os.urandom(16)))


def build_chat_replay(journal: Callable[[], Awaitable[Journal]], models: Models) -> ChatReplay:
    async def forget(attempt: Attempt) -> None:
        return None

    def rehearse(journal: Journal, attempts: Sequence[Attempt]) -> tuple[ModelContext, Callable[[], Sequence[str]]]:
        registry = RecordedModels(attempts)
        model_context = models.model_context(journal, "", registry, limited=False, desk=_ROOM)
        return replace(model_context, record=forget), lambda: list_replay_differences(registry)

    return ChatReplay(journal, rehearse, lambda: code_version())
