"""A resident across its lives: what an earlier one was given is found again, and what cannot be borne is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.agents.peer import Say, Think
from zuno.agents.post import Outgoing, Rules
from zuno.agents.resident import Resident, attend
from zuno.domain.errors import Unavailable
from zuno.domain.units import Millis
from zuno.memory.journal import ChainedJournal
from zuno.messages.codec import canonical, digest
from zuno.messages.debate import ContextObserved, Debate, Role
from zuno.messages.envelope import Envelope
from zuno.ports.transport import Parcel

REQUEST = "req_00000000000000cc"
CONTEXT = canonical({"world": "round"})
OBSERVED = ContextObserved(debate=Debate(flow="rebalance", context=digest(CONTEXT)))


class Mute:
    """A Strategist that only listens."""

    role = Role.STRATEGIST

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[Say]:
        self.heard.append(envelope.id)
        return []


class Pair:
    """A Scout that talks to a Strategist, and a clock for both."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_700_000_000_000
        self.keys = {role: KeyFile(folder / f"{role.value}.key") for role in (Role.SCOUT, Role.STRATEGIST)}
        for key in self.keys.values():
            key.ensure()
        self.journals = {role: self.journal(role) for role in self.keys}
        self.way: list[tuple[Role, Outgoing]] = []
        self.scout = self.resident(Role.SCOUT, None)

    def journal(self, role: Role) -> ChainedJournal:
        return ChainedJournal(MemoryStore(), self.keys[role], code=lambda: "test", now=lambda: Millis(self.now))

    def resident(self, role: Role, peer: Mute | None) -> Resident:
        async def send(one: Outgoing) -> None:
            self.way.append((role, one))

        table = {one: key.public for one, key in self.keys.items()}
        journal, key = self.journals[role], self.keys[role]
        return Resident(role, peer, journal, key, table, send, lambda: self.now, chance=Random(1), code="test")

    async def carry(self, strategist: Resident) -> int:
        """Everything on its way, until nothing is; how many messages there were."""
        count = 0
        while self.way:
            sender, one = self.way.pop(0)
            count += 1
            await (self.scout if one.to is Role.SCOUT else strategist).take(Parcel(one.data, sender))
        return count


async def test_a_context_given_to_an_earlier_life_is_found_in_the_journal(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    first, second = Mute(), Mute()
    before = pair.resident(Role.STRATEGIST, first)
    await pair.scout.say(REQUEST, Say(Role.STRATEGIST, OBSERVED), None)
    assert await pair.carry(before) == 4  # the letter, its context, and an ack of each
    after = pair.resident(Role.STRATEGIST, second)
    await pair.scout.say("req_00000000000000dd", Say(Role.STRATEGIST, OBSERVED), None)
    # The letter and two acks: the Scout was told that the context arrived, and does not send it again.
    assert await pair.carry(after) == 3
    assert (len(first.heard), len(second.heard)) == (1, 1)
    assert pair.scout.post.waiting == 0


async def test_a_context_that_was_lost_is_sent_again_when_a_letter_stays_unanswered(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.scout.say(REQUEST, Say(Role.STRATEGIST, OBSERVED), None)
    await pair.carry(pair.resident(Role.STRATEGIST, Mute()))
    pair.journals[Role.STRATEGIST] = pair.journal(Role.STRATEGIST)  # somebody emptied its folder
    mute = Mute()
    after = pair.resident(Role.STRATEGIST, mute)
    await pair.scout.say("req_00000000000000dd", Say(Role.STRATEGIST, OBSERVED), None)
    for _ in range(Rules().tries):
        await pair.carry(after)
        pair.now += 6_000
        await pair.scout.tick()
    assert len(mute.heard) == 1
    assert pair.scout.post.waiting == 0
    assert pair.scout.standing.dead == 0


async def test_nothing_is_taken_in_before_what_was_heard_is_remembered(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.scout.say(REQUEST, Say(Role.STRATEGIST, OBSERVED), None)
    (letter, _) = [one.data for _, one in pair.way]
    await pair.carry(pair.resident(Role.STRATEGIST, Mute()))
    after = pair.resident(Role.STRATEGIST, None)
    remembered: list[int] = []
    await after.resume(lambda: remembered.append(after.standing.heard))
    assert remembered == [0]
    await after.take(Parcel(letter, Role.SCOUT))
    assert (after.standing.heard, after.standing.again) == (0, 1)


async def test_what_cannot_be_borne_ends_the_attendance(tmp_path: Path) -> None:
    """A journal that cannot be written must be seen, not swallowed by a task nobody waits for."""
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.scout.say(REQUEST, Say(Role.STRATEGIST, OBSERVED), None)
    parcels = [Parcel(one.data, Role.SCOUT) for _, one in pair.way]

    class Full(MemoryStore):
        async def put_bundle(self, name: str, content: bytes) -> None:
            raise Unavailable("The disk is full.")

    pair.journals[Role.STRATEGIST] = ChainedJournal(
        Full(), pair.keys[Role.STRATEGIST], code=lambda: "test", now=lambda: Millis(pair.now)
    )
    strategist = pair.resident(Role.STRATEGIST, Mute())

    async def receive() -> Parcel:
        if not parcels:
            await asyncio.Event().wait()
        return parcels.pop(0)

    with pytest.raises(ExceptionGroup) as caught:
        await attend(strategist, receive)
    assert caught.group_contains(Unavailable, match="The disk is full")
