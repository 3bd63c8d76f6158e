"""A message that is edited: seldom enough, never wrong for long, and harmless when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zuno.doors.telegram.follow import EDIT_SECONDS, MOST_FAILURES, LiveMessage
from zuno.kernel.notify import RetryLater, SendResult, Sent, Undeliverable


class Chat:
    """Takes edits by a clock of its own, and answers as told, then `Sent`."""

    def __init__(self, *answers: SendResult) -> None:
        self.clock = 0.0
        self.answers = list(answers)
        self.tried: list[tuple[float, str]] = []
        self.shown = ""

    def now(self) -> float:
        return self.clock

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        await asyncio.sleep(0)
        self.clock += seconds

    async def write(self, html: str) -> SendResult:
        self.tried.append((self.clock, html))
        await asyncio.sleep(0)
        answer = self.answers.pop(0) if self.answers else Sent()
        if isinstance(answer, Sent):
            self.shown = html
        return answer

    def message(self) -> LiveMessage:
        return LiveMessage(self.write, now=self.now, sleep=self.sleep)


def follow(chat: Chat, states: Sequence[str], pauses: Sequence[int] = ()) -> None:
    async def watch() -> None:
        message = chat.message()
        for number, state in enumerate(states):
            message.show(state)
            for _ in range(pauses[number] if number < len(pauses) else 0):
                await asyncio.sleep(0)
        await asyncio.wait_for(message.finish(), 5)

    asyncio.run(watch())


ANSWERS = st.sampled_from((Sent(), RetryLater("outage"), RetryLater("429", 1), RetryLater("429", 35)))
STATES = st.tuples(st.sampled_from("abc"), st.integers(0, 6))


@given(st.lists(STATES, min_size=1, max_size=8), st.lists(ANSWERS, max_size=MOST_FAILURES - 1))
def test_the_last_state_is_shown_and_edits_keep_their_distance(
    shown: list[tuple[str, int]], answers: list[SendResult]
) -> None:
    states, pauses = [state for state, _ in shown], [pause for _, pause in shown]
    chat = Chat(*answers)
    follow(chat, states, pauses)
    assert chat.shown == states[-1]
    times = [at for at, _ in chat.tried]
    assert all(later - earlier >= EDIT_SECONDS for earlier, later in pairwise(times))
    for answer, earlier, later in zip(answers, times, times[1:], strict=False):
        if isinstance(answer, RetryLater) and answer.wait is not None:
            assert later - earlier >= answer.wait


def test_states_that_come_faster_than_edits_may_are_skipped() -> None:
    chat = Chat()
    follow(chat, [str(number) for number in range(100)], pauses=[3, 1])
    assert [html for _, html in chat.tried] == ["0", "99"]


def test_the_same_state_is_not_sent_twice() -> None:
    chat = Chat()
    follow(chat, ["same", "same", "same"], pauses=[5, 5])
    assert chat.tried == [(0.0, "same")]


def test_a_message_that_was_deleted_is_not_edited_again() -> None:
    chat = Chat(Sent(), Undeliverable("message to edit not found", all=False))
    follow(chat, ["first", "second", "third"], pauses=[9, 9])
    assert [html for _, html in chat.tried] == ["first", "second"]


def test_an_outage_that_lasts_is_given_up_and_raises_nothing() -> None:
    chat = Chat(*[RetryLater("outage")] * 50)
    follow(chat, ["state"])
    assert len(chat.tried) == MOST_FAILURES
