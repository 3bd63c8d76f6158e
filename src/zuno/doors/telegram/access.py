"""Who may ask: owners and viewers by their user ids, groups by name, nobody else; strangers get silence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from zuno.kernel.units import Millis

if TYPE_CHECKING:
    from telegram import Update

PRIVATE: Final = "private"
HOUR: Final = 3_600_000
RECORDS_AN_HOUR: Final = 30
"""Of strangers, all together."""
SAME_STRANGER_AGAIN: Final = 600_000
"""Milliseconds until the same person or chat is recorded once more."""


class Role(StrEnum):
    OWNER = "owner"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True)
class Sender:
    """Where an update comes from. None: the update does not say."""

    kind: str
    user: int | None
    chat: int | None
    chat_type: str | None
    masked: bool
    """A bot, or somebody who writes in the name of a group or a channel: the user id is not theirs."""


def find_sender(update: Update) -> Sender:
    """Of an update of any kind, those that Telegram adds later included: what is not understood has no user."""
    kind = next((kind for kind in update.ALL_TYPES if getattr(update, kind, None) is not None), "unknown")
    user, chat = update.effective_user, update.effective_chat
    message = update.effective_message
    behalf = getattr(message, "sender_chat", None) is not None and update.callback_query is None
    return Sender(
        kind,
        None if user is None else user.id,
        None if chat is None else chat.id,
        None if chat is None else str(chat.type),
        masked=behalf or (user is not None and user.is_bot),
    )


class Access:
    """The allow-list. Empty lists admit nobody."""

    def __init__(self, owners: Iterable[int], viewers: Iterable[int], groups: Iterable[int]) -> None:
        self.owners = frozenset(owners)
        self.viewers = frozenset(viewers) - self.owners
        self.groups = frozenset(groups)

    def find_role(self, sender: Sender) -> Role | None:
        """What this person may do in this chat; None is a stranger."""
        if sender.user is None or sender.chat is None or sender.masked or not self._admits_chat(sender):
            return None
        if sender.user in self.owners:
            return Role.OWNER
        return Role.VIEWER if sender.user in self.viewers else None

    def _admits_chat(self, sender: Sender) -> bool:
        """A private chat has its person's id; every other chat is a group that has to be listed."""
        if sender.chat_type == PRIVATE:
            return sender.chat == sender.user
        return sender.chat in self.groups


class StrangerRecords:
    """Decides which strangers are written down, so that nobody can fill a disk by writing to a bot."""

    def __init__(self) -> None:
        self._recorded: dict[tuple[int | None, int | None], Millis] = {}
        self.skipped = 0
        """Since the last record."""

    def take_turn(self, sender: Sender, now: Millis) -> bool:
        """Whether this one is recorded. Time that runs backwards forgets what came later."""
        self._recorded = {who: at for who, at in self._recorded.items() if 0 <= now - at < HOUR}
        who = (sender.user, sender.chat)
        last = self._recorded.get(who)
        full = len(self._recorded) >= RECORDS_AN_HOUR and last is None
        if full or (last is not None and now - last < SAME_STRANGER_AGAIN):
            self.skipped += 1
            return False
        self._recorded[who] = now
        return True
