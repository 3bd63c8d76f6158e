"""The chat store port: what a bot in a chat has to remember across restarts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from zuno.kernel.units import Millis


@dataclass(frozen=True, slots=True)
class ChatButton:
    """What pressing a button asks, as it would be typed, and the chat it was shown in."""

    words: str
    chat: int


@dataclass(frozen=True, slots=True)
class Confirmation:
    """An action that waits for its owner's confirmation, bound to what was shown."""

    key: str
    user: int
    chat: int
    message: int | None
    """The message with the card, once it is sent."""
    action: str
    """The words that act, as they were typed."""
    digest: str
    """Of everything the card shows, so that a changed plan, amount or bound is noticed."""
    code: str
    expires: Millis


@dataclass(frozen=True, slots=True)
class RunningRequest:
    key: str
    user: int
    chat: int
    text: str
    """As it was typed."""


class ChatStore(Protocol):
    """Promises to remember what it was told, across restarts and among all processes of a home.

    - `claim_update` is true for whoever asks first, once and for all; so is `take_confirmation` not None. Looking and
      marking are one step.
    - The newest 100,000 updates and buttons and 1,000 confirmations and requests are kept; nothing here reads a clock,
      so whoever takes a confirmation compares `expires` itself.
    - `Unavailable` where the store does not answer: then nothing was remembered.
    """

    async def claim_update(self, bot: int, update: int) -> bool:
        """Whether this update of this bot was never seen before."""

    async def put_buttons(self, buttons: Mapping[str, ChatButton]) -> None: ...
    async def find_button(self, key: str) -> ChatButton | None: ...

    async def put_confirmation(self, confirmation: Confirmation) -> None:
        """Keep a confirmation, or replace the one of that key unless it was taken."""

    async def find_confirmation(self, key: str) -> Confirmation | None: ...

    async def list_confirmations(self, user: int, chat: int) -> tuple[Confirmation, ...]:
        """Those of a person in a chat that were not taken yet, newest first."""

    async def take_confirmation(self, key: str) -> Confirmation | None:
        """The confirmation, for the first who takes it; None ever after."""

    async def begin_request(self, request: RunningRequest) -> None: ...
    async def end_request(self, key: str) -> None: ...

    async def take_unended_requests(self) -> tuple[RunningRequest, ...]:
        """Those that were begun and never ended, oldest first, for the first who takes them."""

    async def close(self) -> None: ...
