"""A mesh peer on a transport: nobody waits for somebody else's silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from zuno.adapters.transport.inbox import InProcess
from zuno.kernel.errors import Unavailable
from zuno.lp.mesh.delivery import Outgoing
from zuno.lp.mesh.running import MOST_WAITING, Outbox, PeerRunner
from zuno.lp.model.debate import Role


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


class Broken(InProcess):
    """Tells why it sends nothing."""

    def __init__(self, why: Callable[[Role], str]) -> None:
        super().__init__()
        self.why: Callable[[Role], str] | None = why

    async def send(self, to: Role, data: bytes) -> None:
        if self.why is not None:
            raise Unavailable(self.why(to))


async def test_the_same_words_for_everybody_are_about_this_side() -> None:
    wire = Broken(lambda to: "No node answers; start it.")
    sends: list[Any] = []
    running = PeerRunner(Role.CLI, wire, lambda send: sends.append(send), stopwatch=lambda: 0.0, nonce=lambda: "")  # type: ignore[arg-type, return-value]

    async def told(*roles: Role) -> str | None:
        for role in roles:
            await sends[0](Outgoing(role, b"x"))
        for queue in running._outbox._queues.values():
            await asyncio.wait_for(queue.join(), 5)
        return running.unsent

    assert await told(Role.SCOUT) is None, "one that is not reached may be gone"
    assert await told(Role.CRITIC) == "No node answers; start it."
    wire.why = lambda to: f"The {to} is not there."
    assert await told(Role.SCOUT, Role.CRITIC) is None
    wire.why = None
    assert await told(Role.SCOUT, Role.CRITIC) is None
    assert running._outbox.lost == {}
    await running._outbox.close(1.0)
