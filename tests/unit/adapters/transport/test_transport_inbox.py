"""What waits to be taken: in order, bounded, and closed for everyone at once."""

from __future__ import annotations

import asyncio

import pytest

from zuno.adapters.transport.inbox import Inbox
from zuno.kernel.errors import Unavailable
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import ReceivedMessage


def received(data: bytes) -> ReceivedMessage:
    return ReceivedMessage(data, Role.SCOUT)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_first_in_first_out() -> None:
    inbox = Inbox()
    for number in range(3):
        inbox.put(received(b"%d" % number))
    assert [(await inbox.take()).data for _ in range(3)] == [b"0", b"1", b"2"]


async def test_whoever_waits_gets_the_next_and_nobody_gets_it_twice() -> None:
    inbox = Inbox()
    waiting = [asyncio.create_task(inbox.take()) for _ in range(3)]
    await settled()
    inbox.put(received(b"a"))
    inbox.put(received(b"b"))
    await settled()
    assert sorted(task.result().data for task in waiting if task.done()) == [b"a", b"b"]
    inbox.put(received(b"c"))
    assert {(await task).data for task in waiting} == {b"a", b"b", b"c"}


@pytest.mark.parametrize(("most", "most_bytes"), [(2, 1_000), (1_000, 8)])
async def test_full_it_has_no_room_until_one_is_taken(most: int, most_bytes: int) -> None:
    inbox = Inbox(most, most_bytes)
    await inbox.room()
    inbox.put(received(b"1234"))
    await inbox.room()
    inbox.put(received(b"5678"))
    room = asyncio.create_task(inbox.room())
    await settled()
    assert not room.done()
    await inbox.take()
    await asyncio.wait_for(room, 5)


async def test_a_waiter_who_was_cancelled_takes_nothing_along() -> None:
    inbox = Inbox()
    gone, staying = asyncio.create_task(inbox.take()), asyncio.create_task(inbox.take())
    await settled()
    inbox.put(received(b"one"))
    gone.cancel()
    assert (await asyncio.wait_for(staying, 5)).data == b"one"


async def test_closing_ends_every_wait_and_forgets_what_was_there() -> None:
    inbox = Inbox(most=1)
    inbox.put(received(b"one"))
    room = asyncio.create_task(inbox.room())
    await settled()
    inbox.close()
    inbox.close(ValueError("too late to be the reason"))
    assert inbox.is_closed
    for wait in (room, inbox.take(), inbox.room()):
        with pytest.raises(Unavailable, match="closed"):
            await wait


async def test_a_carrier_that_failed_is_seen_by_whoever_waits() -> None:
    inbox = Inbox()
    waiting = asyncio.create_task(inbox.take())
    await settled()
    inbox.close(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        await waiting
