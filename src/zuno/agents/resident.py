"""A peer that lives on a mesh: it writes down what it hears before it says so, answers once, and goes on after a crash.

Time and transport are handed in, so that the same code runs on sockets and in a simulation.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

from zuno.agents.peer import Peer, Say
from zuno.agents.post import (
    Again,
    Answered,
    DeadLetter,
    Event,
    Heard,
    Outgoing,
    Overheard,
    Post,
    Received,
    Rejected,
    Rules,
    context_of,
)
from zuno.agents.station import Mouth, error_kind, keep
from zuno.domain.errors import Unknown, ZunoError
from zuno.messages.codec import Digest
from zuno.messages.debate import AgentThought, FlowFailed, Kind, Role, Thought
from zuno.messages.envelope import Envelope
from zuno.messages.wire import Wire
from zuno.ports.journal import Author, Entry, Journal
from zuno.ports.signing import NodeKey
from zuno.ports.transport import Parcel

REJECTED: Final = "mesh_rejected"
DEAD_LETTER: Final = "mesh_dead_letter"
_KINDS: Final = frozenset(kind.value for kind in Kind)
_MOST_NOTES: Final = 200
"""Rejections written down in one life: a flood must not fill the journal. The rest are counted."""
_MOST_REASONS: Final = 50
_AGAIN_MS: Final = 3_000
"""What a repeated letter brought about is sent again no sooner than this."""
_REMEMBERED: Final = 2_000

Send = Callable[[Outgoing], Awaitable[None]]
Now = Callable[[], int]


class RejectedNote(Wire):
    """A message that was not believed."""

    why: str
    claimed: Role | None
    digest: str | None


class DeadLetterNote(Wire):
    """A message that nobody acknowledged."""

    to: Role
    message_id: str
    kind: Kind
    tries: int


@dataclass(slots=True)
class Standing:
    """What a peer has seen, for whoever asks how it is."""

    heard: int = 0
    said: int = 0
    again: int = 0
    dead: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


class Bundles:
    """The contexts a peer has read or been given, at hand for the post office, which cannot wait for a disk."""

    def __init__(self) -> None:
        self._known: dict[Digest, bytes] = {}

    def __call__(self, name: Digest) -> bytes | None:
        return self._known.get(name)

    def add(self, name: Digest, content: bytes) -> None:
        self._known[name] = content
        while len(self._known) > 64:
            self._known.pop(next(iter(self._known)))


class Resident:
    """One role at home on a mesh, with a journal of its own."""

    def __init__(
        self,
        role: Role,
        peer: Peer | None,
        journal: Journal,
        key: NodeKey,
        table: Mapping[Role, str],
        send: Send,
        now: Now,
        *,
        chance: Random,
        code: str,
        rules: Rules | None = None,
        listen: Callable[[Envelope], Awaitable[None]] | None = None,
    ) -> None:
        """`peer` answers what is heard; the CLI has none and hears by `listen`."""
        self._role = role
        self._peer = peer
        self._journal = journal
        self._send = send
        self._now = now
        self._listen = listen
        self._bundles = Bundles()
        self._post = Post(role, key, table, self._bundles, chance=chance, code=code, rules=rules)
        self._mouth = Mouth(role, key, now)
        self._answering: set[str] = set()
        self._repeated: dict[str, int] = {}
        self.standing = Standing()
        self.answered: dict[tuple[Role, str], str] = {}
        """Pings that were answered: by whom, which, and their version."""

    @property
    def post(self) -> Post:
        return self._post

    async def take(self, parcel: Parcel) -> None:
        """Whatever arrives."""
        for event in self._post.take(parcel, self._now()):
            await self._do(event)
        for sender, name in self._post.wanted:
            await self._recall(sender, name)

    async def tick(self) -> None:
        """Send again what is due, and write down what is given up."""
        out, dead = self._post.due(self._now())
        for one in out:
            await self._out(one)
        for letter in dead:
            await self._buried(letter)

    async def say(self, request_id: str, say: Say, cause: str | None) -> Envelope:
        """Write it down, then send it until it is acknowledged."""
        envelope = self._mouth.envelope(request_id, say, cause)
        await keep(self._journal, envelope)
        self.standing.said += 1
        await self._letter(envelope)
        return envelope

    async def repeat(self, envelope: Envelope) -> None:
        """Send a letter of our own once more, the same bytes."""
        await self._letter(envelope)

    async def ping(self, to: Role, nonce: str) -> None:
        await self._out(self._post.ping(to, nonce, self._now()))

    async def resume(self, remembered: Callable[[], None] = lambda: None) -> int:
        """After a start: remember what was heard, answer what was not answered, send what may not have arrived.

        Nothing may be taken in before `remembered` is called, or an old letter would pass for a new one; answering
        may take long. Returns how many letters were left unanswered.
        """
        heard: dict[str, Envelope] = {}
        said: dict[str, list[Envelope]] = {}
        for envelope in await self._recent():
            if envelope.from_ is self._role:
                said.setdefault(envelope.cause or "", []).append(envelope)
                self._mouth.counts[envelope.request_id] = max(
                    self._mouth.counts[envelope.request_id], envelope.seq + _GAP
                )
            else:
                heard[envelope.id] = envelope
                self._post.remember(envelope)
        remembered()
        now, left = self._now(), 0
        for envelope in heard.values():
            if envelope.expires < now:
                continue
            await self._know(envelope)
            answers = said.get(envelope.id)
            if answers is None and self._peer is not None:
                left += 1
                await self._answer(envelope)
        for letters in said.values():
            for envelope in letters:
                if envelope.expires >= now:
                    await self._letter(envelope)
        return left

    # -- what events mean

    async def _do(self, event: Event) -> None:
        match event:
            case Outgoing():
                await self._out(event)
            case Heard(envelope):
                await self._hear(envelope)
            case Again(envelope):
                await self._hear_again(envelope)
            case Overheard(envelope):
                if self._listen is not None:
                    await self._listen(envelope)
            case Received():
                await self._journal.put_bundle(event.content)
                self._bundles.add(event.digest, event.content)
                ack, letters = self._post.kept(event, self._now())
                await self._out(ack)
                for letter in letters:
                    await self._do(letter)
            case Answered(role, nonce, code):
                self.answered[role, nonce] = code
            case Rejected():
                await self._note(event)

    async def _recall(self, sender: Role, name: Digest) -> None:
        """A context that is waited for may have come to an earlier life: then it is in the journal, and whoever sent
        it knows that it arrived."""
        with suppress(Unknown):
            await self._do(Received(sender, name, await self._journal.bundle(name)))

    async def _hear(self, envelope: Envelope) -> None:
        """Written down first: an ack is a promise that a crash will not forget it."""
        if envelope.id in self._answering:
            return
        self._answering.add(envelope.id)
        try:
            await keep(self._journal, envelope)
            self.standing.heard += 1
            await self._out(self._post.accepted(envelope, self._now()))
            await self._know(envelope)
            if self._listen is not None:
                await self._listen(envelope)
            if self._peer is not None:
                await self._answer(envelope)
        finally:
            self._answering.discard(envelope.id)

    async def _answer(self, heard: Envelope) -> None:
        if self._peer is None:
            return

        async def think(thought: Thought) -> None:
            with suppress(ZunoError):
                said = self._mouth.envelope(heard.request_id, Say(Role.CLI, AgentThought(thought=thought)), heard.id)
                for one in self._post.thought(said, self._now()):
                    await self._out(one)

        says: Sequence[Say]
        try:
            says = await self._peer.handle(heard, think)
        except ZunoError as error:
            says = [Say(Role.CLI, FlowFailed(at=self._role, error=error_kind(error), reason=str(error)))]
        for say in says:
            await self.say(heard.request_id, say, heard.id)

    async def _hear_again(self, envelope: Envelope) -> None:
        """Somebody repeats a letter that was answered: they, or whoever we told, may have missed the answer."""
        if envelope.id in self._answering:
            return
        now = self._now()
        if now - self._repeated.get(envelope.id, -_AGAIN_MS) < _AGAIN_MS:
            return
        self._repeated[envelope.id] = now
        while len(self._repeated) > _REMEMBERED:
            self._repeated.pop(next(iter(self._repeated)))
        self.standing.again += 1
        entries = [entry async for entry in self._journal.entries(request_id=envelope.request_id)]
        for entry in entries:
            said = _envelope(entry)
            if said is not None and said.from_ is self._role and said.cause == envelope.id:
                await self._letter(said)

    async def _letter(self, envelope: Envelope) -> None:
        await self._know(envelope)
        for one in self._post.letter(envelope, self._now()):
            await self._out(one)

    async def _know(self, envelope: Envelope) -> None:
        """Have the context of a message at hand."""
        name = context_of(envelope)
        if name is not None and self._bundles(name) is None:
            with suppress(Unknown):
                self._bundles.add(name, await self._journal.bundle(name))

    async def _out(self, one: Outgoing) -> None:
        with suppress(ZunoError):  # lost is lost: what matters is sent again
            await self._send(one)

    async def _note(self, event: Rejected) -> None:
        why = event.why[:80]
        known = why in self.standing.rejected or len(self.standing.rejected) < _MOST_REASONS
        self.standing.rejected[why if known else "something else"] += 1
        if sum(self.standing.rejected.values()) <= _MOST_NOTES:
            note = RejectedNote(why=event.why[:500], claimed=event.claimed, digest=event.digest)
            await self._journal.append(kind=REJECTED, author=Author(self._role.value), payload=note)

    async def _buried(self, letter: DeadLetter) -> None:
        self.standing.dead += 1
        note = DeadLetterNote(
            to=letter.to, message_id=letter.envelope.id, kind=letter.envelope.kind, tries=letter.tries
        )
        await self._journal.append(
            kind=DEAD_LETTER,
            author=Author(self._role.value),
            payload=note,
            request_id=letter.envelope.request_id,
        )

    async def _recent(self) -> list[Envelope]:
        """Messages of the newest entries, oldest first."""
        newest = await self._journal.latest(_REMEMBERED)
        found = [_envelope(entry) for entry in reversed(newest)]
        return [one for one in found if one is not None]


_GAP: Final = 1_000
"""Thoughts are numbered and not written down: a new life counts from well beyond them."""


def _envelope(entry: Entry) -> Envelope | None:
    return Envelope.model_validate(dict(entry.payload)) if entry.kind in _KINDS else None


async def patrol(resident: Resident, sleep: Callable[[float], Awaitable[None]], period: float = 0.05) -> None:
    """Look for what is due, for ever."""
    while True:
        await sleep(period)
        await resident.tick()


async def attend(resident: Resident, receive: Callable[[], Awaitable[Parcel]]) -> None:
    """Take what arrives, for ever; a long answer does not keep others waiting. What cannot be borne, a journal that
    cannot be written for one, ends it all: what was not acknowledged comes again after the next start."""
    async with asyncio.TaskGroup() as answering:
        while True:
            answering.create_task(resident.take(await receive()))
