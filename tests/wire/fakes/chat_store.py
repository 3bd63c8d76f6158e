"""A chat store that lives as long as its process."""

from __future__ import annotations

from collections.abc import Mapping

from zuno.kernel.chat import ChatButton, Confirmation, RunningRequest


class ChatStoreInMemory:
    """Nothing here awaits, so nobody can come between looking and marking."""

    def __init__(self) -> None:
        self._updates: set[tuple[int, int]] = set()
        self._buttons: dict[str, ChatButton] = {}
        self._confirmations: dict[str, Confirmation] = {}
        self._taken: set[str] = set()
        self._requests: dict[str, RunningRequest] = {}

    async def claim_update(self, bot: int, update: int) -> bool:
        fresh = (bot, update) not in self._updates
        self._updates.add((bot, update))
        return fresh

    async def put_buttons(self, buttons: Mapping[str, ChatButton]) -> None:
        self._buttons |= buttons

    async def find_button(self, key: str) -> ChatButton | None:
        return self._buttons.get(key)

    async def put_confirmation(self, confirmation: Confirmation) -> None:
        if confirmation.key not in self._taken:
            self._confirmations[confirmation.key] = confirmation

    async def find_confirmation(self, key: str) -> Confirmation | None:
        return self._confirmations.get(key)

    async def list_confirmations(self, user: int, chat: int) -> tuple[Confirmation, ...]:
        found = [each for each in self._confirmations.values() if (each.user, each.chat) == (user, chat)]
        return tuple(reversed(found))

    async def take_confirmation(self, key: str) -> Confirmation | None:
        found = self._confirmations.pop(key, None)
        if found is not None:
            self._taken.add(key)
        return found

    async def begin_request(self, request: RunningRequest) -> None:
        self._requests[request.key] = request

    async def end_request(self, key: str) -> None:
        self._requests.pop(key, None)

    async def take_unended_requests(self) -> tuple[RunningRequest, ...]:
        found, self._requests = tuple(self._requests.values()), {}
        return found

    async def close(self) -> None:
        """Nothing is open."""
