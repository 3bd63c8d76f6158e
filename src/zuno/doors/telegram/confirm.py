"""What moves money is shown on a card first, and done once its owner confirms exactly that card, in time and once.

A card is bound to the person, the chat, its message, the command and a digest of what it shows. Play money is
confirmed by a button or a code, real money by the code alone, which has to be typed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from hmac import compare_digest
from typing import Final, TypeVar

from zuno.doors.telegram.commands import ChatRequest
from zuno.doors.telegram.layout import text
from zuno.doors.telegram.reply import MESSAGE_LIMIT, Button, Reply, count_units, split_message
from zuno.doors.zuno import Zuno
from zuno.kernel.chat import ChatStore, Confirmation
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis

T = TypeVar("T")
LASTS: Final = 300_000
"""Milliseconds until a card can no longer be confirmed."""
CLOCK_TOLERANCE: Final = 60_000
"""Milliseconds by which the clock may have been set back since the card was shown."""
MOST_WRONG_CODES: Final = 5
_MOST_CARDS: Final = 200
_KEY_BYTES: Final = 9
_CODES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ActionCard:
    command: str
    """As it would be typed."""
    shown: Reply
    """Id, amounts, bounds, expiry."""
    digest: str
    """Of everything that the action depends on."""
    verb: str
    real_money: bool
    act: Callable[[ChatRequest], Awaitable["Reply | ActionCard"]]
    """What is to be asked a second time answers with another card."""
    exact: bool = False
    """`act` does exactly what is shown; else the card is built anew when it is confirmed, and has to be the same."""


BuildCard = Callable[[ChatRequest, Zuno], Awaitable[ActionCard | Reply]]
"""The card of a command as it stands now; a reply where there is nothing to confirm."""


class Confirmations:
    """The cards that wait. `builders`: by the name of the command that asks for it."""

    def __init__(
        self,
        store: ChatStore,
        now: Callable[[], Millis],
        chance: Callable[[int], bytes],
        builders: Mapping[str, BuildCard],
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        """`chance`: unguessable bytes, for keys and codes. `elapsed`: seconds by a clock that nobody sets."""
        self._store = store
        self._now = now
        self._chance = chance
        self._builders = builders
        self._elapsed = elapsed or (lambda: asyncio.get_running_loop().time())
        self._cards: dict[str, ActionCard] = {}
        self._shown: dict[str, float] = {}
        """When this process showed a card: setting the clock back makes it no younger."""
        self._wrong: dict[tuple[int, int], int] = {}

    async def show(self, name: str, asked: ChatRequest, zuno: Zuno) -> Reply:
        """Send the card of a command; what is left to say."""
        return await self._send_card(asked, await self._builders[name](asked, zuno))

    async def confirm(self, asked: ChatRequest, zuno: Zuno) -> Reply:
        """By the card's button or code. `Refused` for a card that is old, used, foreign or of what has changed."""
        waiting = await self._find(asked)
        if waiting.user != asked.user:
            raise Refused("Only the person who asked for this can confirm it.")
        if waiting.chat != asked.chat or (asked.pressed and waiting.message != asked.message):
            raise Refused("This card belongs to another message.")
        shown = self._shown.get(waiting.key)
        over = shown is not None and self._elapsed() - shown >= LASTS / 1_000
        if over or not waiting.expires - LASTS - CLOCK_TOLERANCE <= self._now() < waiting.expires:
            await self._store.take_confirmation(waiting.key)
            raise Refused(f"This card has expired; send `{waiting.action}` again.")
        taken = await self._store.take_confirmation(waiting.key)
        if taken is None:
            raise Refused("This card was confirmed already.")
        self._wrong.pop((asked.user, asked.chat), None)
        card = self._cards.pop(taken.key, None)
        again = replace(asked, text=taken.action, words=tuple(taken.action.split()[1:]), pressed=False)
        if card is None or not card.exact:
            built = await self._builders[taken.action.split()[0].removeprefix("/")](again, zuno)
            if isinstance(built, Reply):
                return built
            if built.digest != taken.digest:
                await self._send_card(again, built)
                return Reply("This has changed since the card was shown, so nothing was done; above is the new card.")
            card = built
        marking = None if taken.message is None else asked.live.edit(taken.message, _mark_confirmed(card))
        beside = None if marking is None else asyncio.create_task(marking)  # a label does not keep the act waiting
        try:
            return await self._send_card(again, await card.act(again))
        finally:
            if beside is not None:
                await beside

    async def dismiss(self, asked: ChatRequest, zuno: Zuno) -> Reply:
        """Take a card back by its button, or without a word every card of this person here."""
        mine = await self._store.list_confirmations(asked.user, asked.chat)
        wanted = [waiting for waiting in mine if not asked.words or waiting.key == asked.words[0]]
        taken = [await self._store.take_confirmation(waiting.key) for waiting in wanted]
        for waiting in wanted:
            self._cards.pop(waiting.key, None)
        names = ", ".join(waiting.action for waiting in taken if waiting is not None)
        return Reply(f"Nothing was done; taken back: {text(names)}." if names else "No card waits for you here.")

    async def _send_card(self, asked: ChatRequest, card: ActionCard | Reply) -> Reply:
        """Send the card and bind it to the message it is. An empty reply: everything was said."""
        if isinstance(card, Reply):
            return card
        key = self._chance(_KEY_BYTES).hex()
        code = f"{int.from_bytes(self._chance(8), 'big') % _CODES:06}"
        waiting = Confirmation(
            key, asked.user, asked.chat, None, card.command, card.digest, code, Millis(self._now() + LASTS)
        )
        minutes, cancel = LASTS // 60_000, Button("Cancel", f"/dismiss {key}")
        if card.real_money:
            how = f"REAL MONEY. To go on, send <code>/confirm {code}</code> within {minutes} min."
            buttons = [cancel]
        else:
            how = f"Press {card.verb} within {minutes} min to go on, or send <code>/confirm {code}</code>."
            buttons = [Button(card.verb, f"/confirm {key}"), cancel]
        await self._store.put_confirmation(waiting)
        self._shown[key] = self._elapsed()
        _forget_oldest(self._shown)
        message = await asked.live.send(replace(card.shown, html=f"{card.shown.html}\n\n{how}", buttons=tuple(buttons)))
        if message is None:
            await self._store.take_confirmation(key)
            return Reply("")
        await self._store.put_confirmation(replace(waiting, message=message))
        if card.exact:
            self._cards[key] = card
            _forget_oldest(self._cards)
        return Reply("")

    async def _find(self, asked: ChatRequest) -> Confirmation:
        if len(asked.words) != 1:
            raise UsageError("Write `/confirm CODE`, with the code that is on the card.")
        typed = asked.words[0]
        if asked.pressed:
            found = await self._store.find_confirmation(typed)
            if found is None:
                raise Refused("This card was used or taken back already.")
            return found
        mine = await self._store.list_confirmations(asked.user, asked.chat)
        for waiting in mine:
            if compare_digest(waiting.code.encode(), typed.encode()):
                return waiting
        await self._count_wrong(asked, mine)
        raise Refused("No card with this code waits for you here.")

    async def _count_wrong(self, asked: ChatRequest, mine: tuple[Confirmation, ...]) -> None:
        """After too many wrong codes every card of this person is taken back: codes are short."""
        who = (asked.user, asked.chat)
        self._wrong[who] = self._wrong.get(who, 0) + 1
        if self._wrong[who] >= MOST_WRONG_CODES:
            del self._wrong[who]
            for waiting in mine:
                await self._store.take_confirmation(waiting.key)


def _forget_oldest(kept: dict[str, T]) -> None:
    while len(kept) > _MOST_CARDS:
        del kept[next(iter(kept))]


def _mark_confirmed(card: ActionCard) -> Reply:
    """What the card's last message says from then on."""
    said = f"<b>{card.verb}: confirmed.</b>"
    marked = f"{split_message(card.shown.html)[-1]}\n\n{said}"
    return Reply(marked if count_units(marked) <= MESSAGE_LIMIT else said)
