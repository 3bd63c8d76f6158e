"""A resident on a transport: nobody waits for somebody else's silence."""

from __future__ import annotations

import asyncio

from zuno.adapters.transport.inproc import InProcess
from zuno.agents.post import Outgoing
from zuno.agents.running import MOST_WAITING, Outbox
from zuno.domain.errors import Unavailable
from zuno.messages.debate import Role


class Ringing(InProcess):
    """Some calls ring for ever."""

    def __init__(self, *silent: bytes) -> None:
        super().__init__()
        self._silent = silent
        self.ringing = 0

    async def send(self, to: Role, data: bytes) -> None:
        if data in self._silent:
            self.ringing += 1
            await asyncio.Event().wait()
        await super().send(to, data)


async def test_a_message_that_rings_for_ever_holds_up_no_other() -> None:
    wire = Ringing(b"to a process that is gone", b"to a critic that is gone")
    outbox = Outbox(wire)
    await outbox.send(Outgoing(Role.CLI, b"to a process that is gone"))
    await outbox.send(Outgoing(Role.CRITIC, b"to a critic that is gone"))
    await outbox.send(Outgoing(Role.CLI, b"to the next one"))
    async with asyncio.timeout(5):
        assert (await wire.receive(Role.CLI)).data == b"to the next one"
    assert wire.ringing == 2
    await outbox.close(0.01)


async def test_what_waits_goes_out_before_it_closes() -> None:
    wire = InProcess()
    outbox = Outbox(wire)
    for number in range(100):
        await outbox.send(Outgoing(Role.SCOUT, b"%d" % number))
    await outbox.close(5.0)
    async with asyncio.timeout(5):
        assert {int((await wire.receive(Role.SCOUT)).data) for _ in range(100)} == set(range(100))


async def test_what_does_not_fit_is_lost_and_said_so() -> None:
    wire = InProcess()
    outbox = Outbox(wire)
    lost = 0
    for _ in range(MOST_WAITING + 5):  # nobody carries while nobody waits
        try:
            await outbox.send(Outgoing(Role.SCOUT, b"x"))
        except Unavailable:
            lost += 1
    assert lost == 5
    await outbox.close(5.0)
