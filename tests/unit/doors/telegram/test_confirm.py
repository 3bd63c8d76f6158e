"""Cards: bound to person, chat, message, command and content; confirmed in time and once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from itertools import count
from typing import cast

import pytest

from tests.wire.fakes.chat_store import ChatStoreInMemory
from zuno.doors.telegram.access import Role
from zuno.doors.telegram.commands import ChatRequest
from zuno.doors.telegram.confirm import CLOCK_TOLERANCE, LASTS, MOST_WRONG_CODES, ActionCard, Confirmations
from zuno.doors.telegram.follow import LiveMessage
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.notify import SendResult, Sent
from zuno.kernel.units import Millis

OWNER, OTHER, CHAT, GROUP = 11, 12, 11, -500
NOBODY = cast(Zuno, None)


class Writer:
    """A chat that takes messages."""

    def __init__(self) -> None:
        self.sent: dict[int, Reply] = {}
        self.edited: dict[int, Reply] = {}
        self.takes = True

    async def send(self, reply: Reply) -> int | None:
        if not self.takes:
            return None
        self.sent[len(self.sent) + 100] = reply
        return max(self.sent)

    async def edit(self, message: int, reply: Reply) -> SendResult:
        self.edited[message] = reply
        return Sent()

    def follow(self) -> LiveMessage:
        raise NotImplementedError


class Desk:
    """One thing that can be done, whose state may change, and the cards for it."""

    def __init__(self, *, real_money: bool = False, exact: bool = False) -> None:
        self.state = "one lot"
        self.done: list[str] = []
        self.now = Millis(100_000_000)
        self.elapsed = 5.0
        self.store = ChatStoreInMemory()
        self.writer = Writer()
        self.real_money, self.exact = real_money, exact
        self.cards = self.open()

    def open(self) -> Confirmations:
        """As a process does when it starts."""
        numbers = count(1)
        return Confirmations(
            self.store,
            lambda: self.now,
            lambda size: next(numbers).to_bytes(size, "big"),
            {"fx": self.build},
            lambda: self.elapsed,
        )

    async def build(self, asked: ChatRequest, zuno: Zuno) -> ActionCard | Reply:
        seen = self.state

        async def act(confirmed: ChatRequest) -> Reply:
            self.done.append(seen)
            return Reply(f"done: {seen}")

        command = " ".join(("/fx", *asked.words))
        return ActionCard(command, Reply(f"closes {seen}"), seen, "Close", self.real_money, act, self.exact)

    def asked(
        self, text: str, user: int = OWNER, chat: int = CHAT, message: int = 1, *, pressed: bool = False
    ) -> ChatRequest:
        words = tuple(text.split()[1:])
        return ChatRequest(user, chat, message, text, words, Role.OWNER, self.writer, self.cards, pressed)

    def ask(self) -> tuple[int, str, str]:
        """The card's message, its code, and what its first button says."""
        run(lambda: self.cards.show("fx", self.asked("/fx 1"), NOBODY))
        message = max(self.writer.sent)
        card = self.writer.sent[message]
        code = re.search(r"/confirm ([0-9]{6})", card.html)
        assert code is not None
        return message, code[1], card.buttons[0].words

    def press(self, message: int, words: str, user: int = OWNER, chat: int = CHAT) -> Reply:
        return run(lambda: self.cards.confirm(self.asked(words, user, chat, message, pressed=True), NOBODY))

    def type(self, text: str, user: int = OWNER, chat: int = CHAT) -> Reply:
        return run(lambda: self.cards.confirm(self.asked(text, user, chat), NOBODY))


def run(work: Callable[[], Awaitable[Reply]]) -> Reply:
    async def call() -> Reply:
        return await work()

    return asyncio.run(call())


def test_a_pressed_card_acts_once() -> None:
    desk = Desk()
    message, _, button = desk.ask()
    assert desk.press(message, button).html == "done: one lot"
    assert "confirmed" in desk.writer.edited[message].html
    with pytest.raises(Refused):
        desk.press(message, button)
    assert desk.done == ["one lot"]


def test_a_code_confirms_as_the_button_does() -> None:
    desk = Desk()
    _, code, _ = desk.ask()
    desk.type(f"/confirm {code}")
    with pytest.raises(Refused):
        desk.type(f"/confirm {code}")
    assert desk.done == ["one lot"]


def test_real_money_has_no_button_that_confirms() -> None:
    desk = Desk(real_money=True)
    _, code, button = desk.ask()
    assert not button.startswith("/confirm")
    desk.type(f"/confirm {code}")
    assert desk.done == ["one lot"]


@pytest.mark.parametrize(("user", "chat"), [(OTHER, CHAT), (OWNER, GROUP), (OTHER, GROUP)])
def test_another_person_or_chat_confirms_nothing(user: int, chat: int) -> None:
    desk = Desk()
    message, code, button = desk.ask()
    with pytest.raises(Refused):
        desk.press(message, button, user, chat)
    with pytest.raises(Refused):
        desk.type(f"/confirm {code}", user, chat)
    assert not desk.done
    desk.press(message, button)
    assert desk.done, "a foreign attempt must not use the card up"


def test_a_button_under_another_message_confirms_nothing() -> None:
    desk = Desk()
    message, _, button = desk.ask()
    with pytest.raises(Refused):
        desk.press(message + 1, button)
    assert not desk.done


def test_the_key_of_a_button_is_no_code() -> None:
    desk = Desk(real_money=True)
    desk.ask()
    (waiting,) = asyncio.run(desk.store.list_confirmations(OWNER, CHAT))
    with pytest.raises(Refused):
        desk.type(f"/confirm {waiting.key}")
    assert not desk.done


@pytest.mark.parametrize(("later", "acts"), [(LASTS - 1, True), (LASTS, False)])
def test_a_card_ends_with_its_time(later: int, acts: bool) -> None:
    desk = Desk()
    message, _, button = desk.ask()
    desk.now = Millis(desk.now + later)
    if acts:
        desk.press(message, button)
    else:
        with pytest.raises(Refused):
            desk.press(message, button)
    assert bool(desk.done) is acts


def test_a_card_from_a_clock_that_was_ahead_is_over() -> None:
    desk = Desk()
    message, _, button = desk.ask()
    desk.now = Millis(desk.now - 86_400_000)
    with pytest.raises(Refused):
        desk.press(message, button)
    assert not desk.done


@pytest.mark.parametrize(("jump", "acts"), [(-CLOCK_TOLERANCE, True), (-CLOCK_TOLERANCE - 1, False), (LASTS, False)])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_jump_of_the_clock_ends_a_card_or_changes_nothing(jump: int, acts: bool, restarted: bool) -> None:
    desk = Desk()
    message, _, button = desk.ask()
    desk.now = Millis(desk.now + jump)
    desk.cards = desk.open() if restarted else desk.cards
    if acts:
        desk.press(message, button)
    else:
        with pytest.raises(Refused):
            desk.press(message, button)
    assert desk.done == ["one lot"] * acts


def test_a_clock_that_is_set_back_makes_no_card_younger() -> None:
    """The wall clock says it was shown a minute ago; ten have passed."""
    desk = Desk()
    message, _, button = desk.ask()
    desk.now, desk.elapsed = Millis(desk.now + 60_000), desk.elapsed + 600.0
    with pytest.raises(Refused):
        desk.press(message, button)
    assert desk.done == []


def test_what_changed_since_is_shown_anew_and_not_done() -> None:
    desk = Desk()
    message, _, button = desk.ask()
    desk.state = "two lots"
    desk.press(message, button)
    assert not desk.done
    newest = max(desk.writer.sent)
    assert "two lots" in desk.writer.sent[newest].html
    desk.press(newest, desk.writer.sent[newest].buttons[0].words)
    assert desk.done == ["two lots"]


def test_an_exact_card_does_what_it_showed_or_is_shown_anew_after_a_restart() -> None:
    desk = Desk(exact=True)
    message, _, button = desk.ask()
    desk.state = "two lots"
    desk.press(message, button)
    assert desk.done == ["one lot"], "what was shown is what is signed"
    message, _, button = desk.ask()
    desk.cards, desk.state = desk.open(), "three lots"
    desk.press(message, button)
    assert desk.done == ["one lot"]


def test_a_card_survives_a_restart_while_nothing_changed() -> None:
    desk = Desk()
    message, _, button = desk.ask()
    desk.cards = desk.open()
    desk.press(message, button)
    assert desk.done == ["one lot"]


def test_wrong_codes_end_the_cards() -> None:
    desk = Desk()
    _, code, _ = desk.ask()
    for _ in range(MOST_WRONG_CODES):
        with pytest.raises(Refused):
            desk.type("/confirm 999999")
    with pytest.raises(Refused):
        desk.type(f"/confirm {code}")
    assert not desk.done


def test_a_dismissed_card_confirms_nothing() -> None:
    desk = Desk()
    message, code, button = desk.ask()
    run(lambda: desk.cards.dismiss(desk.asked("/dismiss"), NOBODY))
    with pytest.raises(Refused):
        desk.press(message, button)
    with pytest.raises(Refused):
        desk.type(f"/confirm {code}")
    assert not desk.done


def test_another_person_dismisses_nothing() -> None:
    desk = Desk()
    message, _, button = desk.ask()
    run(lambda: desk.cards.dismiss(desk.asked(button.replace("confirm", "dismiss"), OTHER), NOBODY))
    desk.press(message, button)
    assert desk.done


def test_a_card_that_did_not_arrive_waits_for_nobody() -> None:
    desk = Desk()
    desk.writer.takes = False
    run(lambda: desk.cards.show("fx", desk.asked("/fx 1"), NOBODY))
    assert asyncio.run(desk.store.list_confirmations(OWNER, CHAT)) == ()


def test_two_presses_at_once_act_once() -> None:
    desk = Desk()
    message, _, button = desk.ask()

    async def both() -> list[object]:
        presses = [desk.cards.confirm(desk.asked(button, message=message, pressed=True), NOBODY) for _ in range(2)]
        return list(await asyncio.gather(*presses, return_exceptions=True))

    answers = asyncio.run(both())
    assert sum(isinstance(answer, Refused) for answer in answers) == 1
    assert desk.done == ["one lot"]


@pytest.mark.parametrize("text", ["/confirm", "/confirm 1 2"])
def test_a_confirmation_without_its_code_is_asked_back(text: str) -> None:
    with pytest.raises(UsageError):
        Desk().type(text)
