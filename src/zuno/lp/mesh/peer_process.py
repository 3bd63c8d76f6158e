"""A mesh peer: journals a letter before acknowledging it, answers once, and resumes after a crash.

Time and transport are handed in, so that the same code runs on sockets and in a simulation.
"""

import asyncio
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.backoff import TokenBucket
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Broken, NotFound, Refused, ZunoError
from zuno.kernel.signing import NodeKey
from zuno.kernel.text import plain_text
from zuno.kernel.wire import Wire
from zuno.lp.mesh import delivery
from zuno.lp.mesh.envelope import MESSAGE_KINDS, ROUTES, Envelope, read_entry, to_bytes
from zuno.lp.mesh.message_handler import EnvelopeSigner, flow_failure, journal_envelope
from zuno.lp.mesh.peer import OutgoingMessage, Peer
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import AgentThought, Kind, Role, Thought
from zuno.lp.ports.mesh import PeerReport
from zuno.lp.ports.transport import ReceivedMessage

REJECTED: Final = "mesh_rejected"
DEAD_LETTER: Final = "mesh_dead_letter"
RESUMED: Final = "mesh_resumed"
MOST_RESUMED: Final = 2
"""Lives that may begin to answer a letter which an earlier one left: after that it is what they died of."""
NOTES: Final = 100
"""Rejections of one sender that are written down at once: a flood must not fill the journal. All are counted."""
NOTES_A_SECOND: Final = 1 / 60
"""And so many from then on: half a megabyte a day."""
MOST_REASONS: Final = 20
"""Counted apart for one sender: more than there are rules, and not so many that its inventions hide another's."""
MOST_UNANSWERED: Final = 64
"""Letters of one sender that wait for an answer: more are not acknowledged, and come again."""
ANSWERS_AT_ONCE: Final = 8
"""To one sender: each may ask a model, which takes its time."""
MOST_PONGS: Final = 64
"""Pongs of one peer that are kept until they are asked for."""
WINDOW_MS: Final = delivery.LIFETIME_MS + 2 * delivery.SKEW_MS
"""How long ago a letter may have been heard that would still be taken today, were it not remembered."""
_LONGEST_NOTE: Final = 500
_LONGEST_REASON: Final = 80
_VARYING: Final = re.compile(r"(?:msg_|req_)?[0-9a-f]*[0-9][0-9a-f]*")
_AGAIN_MS: Final = 3_000
"""What a repeated letter brought about is sent again no sooner than this."""
_REPEATED: Final = 2_000
_AT_HAND: Final = 64
"""Answers that are sent again without a look into the journal."""
_PAGE: Final = 512

Send = Callable[[delivery.Outgoing], Awaitable[None]]
Now = Callable[[], int]
Work = Sequence[Coroutine[Any, Any, None]]
AllOf = Callable[[Work], Awaitable[None]]


class ResumedNote(Wire):
    message_id: str


class DeadLetterNote(Wire):
    """A message that nobody acknowledged, or that its own receiver gave up."""

    to: Role
    message_id: str
    kind: Kind
    tries: int


@dataclass(slots=True)
class PeerStats:
    """Counters of one peer since its mesh was set up, for `mesh status`."""

    heard: int = 0
    said: int = 0
    again: int = 0
    dead: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By sender and reason."""
    _reasons: dict[str, str] = field(default_factory=dict)
    """By what they share: ids and numbers left out."""

    def add(self, before: PeerReport) -> None:
        """Goes on where the last life ended, as it reported."""
        self.heard += before.heard
        self.said += before.said
        self.again += before.again
        self.dead += before.dead
        self.rejected.update(before.rejected)
        self._reasons.update({_VARYING.sub("#", reason): reason for reason in before.rejected})

    def count_rejection(self, event: delivery.MessageRejected) -> None:
        """Count by sender and reason; reasons that differ in ids and numbers alone are one."""
        sender = f"from {'somebody' if event.claimed is None else f'the {event.claimed}'}: "
        reason = sender + plain_text(event.why, _LONGEST_REASON)
        shape = _VARYING.sub("#", reason)
        if shape not in self._reasons and sum(known.startswith(sender) for known in self._reasons) >= MOST_REASONS:
            shape = reason = f"{sender}something else"
        self.rejected[self._reasons.setdefault(shape, reason)] += 1


class ContextCache:
    """The contexts a peer has read or been given, cached for delivery, which does no I/O. Each giver's have a bound of
    their own. One that was let go is in the journal still."""

    def __init__(self, most: int = 32, most_bytes: int = 16 * 1024 * 1024) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._known: defaultdict[Role, OrderedDict[Digest, bytes]] = defaultdict(OrderedDict)

    def __call__(self, name: Digest) -> bytes | None:
        return next((known[name] for known in self._known.values() if name in known), None)

    def add(self, name: Digest, content: bytes, giver: Role) -> None:
        known = self._known[giver]
        known[name] = content
        while len(known) > self._most or (sum(map(len, known.values())) > self._most_bytes and len(known) > 1):
            known.popitem(last=False)


class MeshPeer:
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
        rules: delivery.DeliveryLimits | None = None,
        listen: Callable[[Envelope], Awaitable[None]] | None = None,
    ) -> None:
        """`peer` answers what is heard; the CLI has none and hears by `listen`."""
        self._role = role
        self._peer = peer
        self._journal = journal
        self._send = send
        self._now = now
        self._listen = listen
        self._bundles = ContextCache()
        self.delivery = delivery.Delivery(role, key, table, self._bundles, chance=chance, code=code, rules=rules)
        self._signer = EnvelopeSigner(role, key, now)
        self._rules = rules or delivery.DeliveryLimits()
        self._answering: dict[str, Role] = {}
        self._turns: defaultdict[Role, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(ANSWERS_AT_ONCE))
        self._repeated: defaultdict[Role, OrderedDict[str, int]] = defaultdict(OrderedDict)
        self._answers: OrderedDict[str, list[Envelope]] = OrderedDict()
        self._notes: dict[Role | None, TokenBucket] = {}
        self.stats = PeerStats()
        self.pongs: dict[tuple[Role, str], str] = {}
        """Pings that were answered: by whom, which, and their version."""

    async def take(self, received: ReceivedMessage) -> None:
        for letter in await self.hear(received):
            await self.answer(letter)

    async def hear(self, received: ReceivedMessage) -> Sequence[Envelope]:
        """Whatever arrives, written down and acknowledged; the letters that are left to be answered."""
        letters: list[Envelope] = []
        for event in self.delivery.take(received, self._now()):
            letters += await self._handle_event(event)
        return letters

    async def answer(self, letter: Envelope, *, resumed: bool = False) -> None:
        """One that `hear` left, or that came before a restart. Not more than a few to one sender at a time."""
        try:
            async with self._turns[letter.from_]:
                if resumed:
                    await self._note(RESUMED, ResumedNote(message_id=letter.id), letter.request_id)
                await self._answer(letter)
        finally:
            self._answering.pop(letter.id, None)

    async def tick(self) -> None:
        """Send again what is due, and write down what is given up."""
        out, dead = self.delivery.due(self._now())
        for outgoing in out:
            await self._send_or_lose(outgoing)
        for letter in dead:
            await self._record_dead_letter(letter)

    async def send_message(
        self,
        request_id: str,
        say: OutgoingMessage,
        cause: str | None,
        *,
        account: Envelope | None = None,
        edition: int = EDITION,
    ) -> Envelope:
        """Write it down, then send it until it is acknowledged. `account`: the letter it answers, whose sender pays."""
        envelope, body = self._signer.sign_message(request_id, say, cause, edition)
        await journal_envelope(self._journal, envelope, body)
        self.stats.said += 1
        if account is not None:
            await self._charge(account, envelope, len(body))
        if cause is not None:
            self._answers.setdefault(cause, []).append(envelope)
            while len(self._answers) > _AT_HAND:
                self._answers.popitem(last=False)
        await self._send_letter(envelope, body)
        return envelope

    async def repeat(self, envelope: Envelope) -> None:
        """Send a letter of our own once more, the same bytes."""
        await self._send_letter(envelope)

    async def ping(self, to: Role, nonce: str) -> None:
        await self._send_or_lose(self.delivery.ping(to, nonce, self._now()))

    async def resume(self, remembered: Callable[[], None] = lambda: None, all_of: AllOf | None = None) -> int:
        """After a start: call `remembered` before anything is taken in, send what may not have arrived, and answer what
        was not answered, several at a time by `all_of`. Returns how many letters were left unanswered."""
        heard: dict[str, Envelope] = {}
        sent: list[Envelope] = []
        for envelope in await self._recent():
            if envelope.from_ is self._role:
                sent.append(envelope)
                self._signer.counts[envelope.request_id] = max(
                    self._signer.counts[envelope.request_id], envelope.seq + _GAP
                )
            else:
                heard[envelope.id] = envelope
                self.delivery.remember(envelope)
        for envelope in sent:
            if (cause := heard.get(envelope.cause or "")) is not None:
                await self._charge(cause, envelope, len(to_bytes(envelope)))
        answered, now = {envelope.cause for envelope in sent}, self._now()
        left = [letter for letter in heard.values() if letter.id not in answered and letter.expires >= now]
        if self._peer is None:
            left = []
        for envelope in left:
            self._answering[envelope.id] = envelope.from_
        remembered()
        for envelope in heard.values():
            if envelope.expires >= now:
                await self._load_context(envelope)
        for envelope in sent:
            if envelope.expires >= now:
                await self._send_letter(envelope)
        await self._resume_answers(left, all_of or run_in_sequence)
        return len(left)

    async def _resume_answers(self, left: Sequence[Envelope], all_of: AllOf) -> None:
        """Answer what a restart left open: several at a time what is taken up for the first time. What was taken up
        before and has no answer still may be what ended the process: it is taken up alone, and then no more."""
        begun = Counter([str(entry.payload.get("messageId")) for entry in await self._newer(RESUMED)])
        fresh = [letter for letter in left if not begun[letter.id]]
        await all_of([self.answer(letter, resumed=True) for letter in fresh])
        for letter in left:
            if 0 < begun[letter.id] < MOST_RESUMED:
                await self.answer(letter, resumed=True)
            elif begun[letter.id]:
                await self._abandon_letter(letter, begun[letter.id])

    async def _abandon_letter(self, letter: Envelope, times: int) -> None:
        """One that cannot be answered ends its debate, and not this peer once more."""
        self._answering.pop(letter.id, None)
        await self._record_dead_letter(delivery.DeadLetter(self._role, letter, times))
        why = f"The {self._role} ended {times} times over {letter.kind} of the {letter.from_}; its log has more."
        await self.send_message(letter.request_id, self._failure(Broken(why)), letter.id, account=letter)

    def _failure(self, error: ZunoError) -> OutgoingMessage:
        return OutgoingMessage(Role.CLI, flow_failure(self._role, error))

    async def _handle_event(self, event: delivery.Event) -> list[Envelope]:
        """Returns the letters that are to be answered."""
        match event:
            case delivery.Outgoing():
                await self._send_or_lose(event)
            case delivery.EnvelopeReceived():
                return await self._accept_letter(event)
            case delivery.DuplicateEnvelope():
                await self._resend_answers(event)
            case delivery.ThoughtReceived(envelope):
                if self._listen is not None:
                    await self._listen(envelope)
            case delivery.ContextWanted(sender, name):
                # It may have come before a restart: then it is in the journal, and its sender knows that it arrived.
                with suppress(NotFound):
                    return await self._keep_context(
                        delivery.ContextReceived(sender, name, await self._journal.bundle(name))
                    )
            case delivery.ContextReceived():
                await self._journal.put_bundle(event.content)
                return await self._keep_context(event)
            case delivery.PongReceived(role, nonce, code):
                self._record_pong(role, nonce, code)
            case delivery.MessageRejected():
                await self._record_rejection(event)
        return []

    async def _keep_context(self, received: delivery.ContextReceived) -> list[Envelope]:
        self._bundles.add(received.digest, received.content, received.sender)
        ack, letters = self.delivery.acknowledge_context(received, self._now())
        await self._send_or_lose(ack)
        return [envelope for letter in letters for envelope in await self._accept_letter(letter)]

    async def _accept_letter(self, heard: delivery.EnvelopeReceived) -> list[Envelope]:
        """Written down first: an ack is a promise that a crash will not forget it."""
        envelope = heard.envelope
        if envelope.id in self._answering:
            return []
        spoken = [] if self._peer is not None else await self._said_in(envelope.request_id)
        known = (envelope.from_.value, envelope.id) in spoken  # another process of the owner has written it down
        refusal = None if known else self._refusal(envelope, [author for author, _ in spoken])
        if refusal is not None:
            await self._record_rejection(
                delivery.MessageRejected(why=refusal, claimed=envelope.from_, digest=heard.name)
            )
            return []
        self._answering[envelope.id] = envelope.from_
        try:
            if not known:
                await journal_envelope(self._journal, envelope, heard.body)
                self.stats.heard += 1
            await self._send_or_lose(self.delivery.acknowledge_envelope(envelope, self._now(), heard))
            await self._load_context(envelope)
            if self._listen is not None:
                await self._listen(envelope)
        except BaseException:
            del self._answering[envelope.id]
            raise
        if self._peer is not None:
            return [envelope]
        del self._answering[envelope.id]
        return []

    def _refusal(self, envelope: Envelope, spoken: Sequence[str]) -> str | None:
        """Why a letter that is believed is not taken in now, if it is not. `spoken`: who has spoken in its request, for
        the owner, whose processes share a journal and have not heard everything each."""
        sender = envelope.from_
        if self._peer is not None:
            if self.delivery.heard_before(envelope):
                kind, rounds = delivery.turn_of(envelope)
                return f"{sender} says {kind} after {rounds} rounds twice in one request"
            waiting = sum(role is sender for role in self._answering.values())
            return f"{sender} has {MOST_UNANSWERED} letters unanswered here" if waiting >= MOST_UNANSWERED else None
        if self._role.value not in spoken:
            return f"{sender} writes about a request that nobody here began"
        most = self._rules.letters_a_request
        return f"{sender} says more than {most} letters in one request" if spoken.count(sender.value) >= most else None

    async def _said_in(self, request_id: str) -> list[tuple[str, str]]:
        """Who said what in a request, as far as the journal knows."""
        entries = self._journal.entries(request_id=request_id)
        return [
            (entry.author.role, str(entry.payload.get("id"))) async for entry in entries if entry.kind in MESSAGE_KINDS
        ]

    def _record_pong(self, role: Role, nonce: str, code: str) -> None:
        mine = [key for key in self.pongs if key[0] is role]
        if len(mine) >= MOST_PONGS:
            del self.pongs[mine[0]]
        self.pongs[role, nonce] = code

    async def _answer(self, heard: Envelope) -> None:
        if self._peer is None:
            return
        if heard.edition != EDITION:
            say = self._failure(Refused(delivery.edition_refusal(heard.from_, heard.edition, self._role)))
            # In the words of its edition, or its owner would not hear it.
            await self.send_message(heard.request_id, say, heard.id, account=heard, edition=heard.edition)
            return

        async def think(thought: Thought) -> None:
            with suppress(ZunoError):
                say = OutgoingMessage(Role.CLI, AgentThought(thought=thought))
                envelope, body = self._signer.sign_message(heard.request_id, say, heard.id)
                for outgoing in self.delivery.prepare_thought(envelope, self._now(), body):
                    await self._send_or_lose(outgoing)

        says: Sequence[OutgoingMessage]
        try:
            says = await self._peer.handle(heard, think)
        except ZunoError as error:
            says = [self._failure(error)]
        for say in says:
            await self.send_message(heard.request_id, say, heard.id, account=heard)

    async def _resend_answers(self, letter: delivery.DuplicateEnvelope) -> None:
        """A message that was answered came again: its answer may have been lost."""
        if letter.id in self._answering:
            return
        now, repeated = self._now(), self._repeated[letter.sender]
        if now - repeated.get(letter.id, -_AGAIN_MS) < _AGAIN_MS:
            return
        repeated[letter.id] = now
        while len(repeated) > _REPEATED:
            repeated.popitem(last=False)
        self.stats.again += 1
        for answer in self._answers.get(letter.id) or await self._answers_to(letter):
            await self._send_letter(answer)

    async def _answers_to(self, letter: delivery.DuplicateEnvelope) -> list[Envelope]:
        """What was answered before a restart, or long ago."""
        entries = [entry async for entry in self._journal.entries(request_id=letter.request_id)]
        mine = (self._role.value, letter.id)
        messages = [read_entry(entry) for entry in entries if (entry.author.role, entry.payload.get("cause")) == mine]
        return [envelope for envelope in messages if envelope is not None]

    async def _send_letter(self, envelope: Envelope, body: bytes | None = None) -> None:
        await self._load_context(envelope)
        for outgoing in self.delivery.prepare_envelope(envelope, self._now(), body):
            await self._send_or_lose(outgoing)

    async def _load_context(self, envelope: Envelope) -> None:
        name = delivery.context_of(envelope)
        if name is not None and self._bundles(name) is None:
            with suppress(NotFound):
                self._bundles.add(name, await self._journal.bundle(name), envelope.from_)

    async def _charge(self, cause: Envelope, answer: Envelope, size: int) -> None:
        """What is written in answer to a letter is its sender's, and so is a context that was made for it."""
        name = delivery.context_of(answer)
        if name is not None and name != delivery.context_of(cause):
            await self._load_context(answer)
            size += len(self._bundles(name) or b"")
        self.delivery.charge(cause.from_, size)

    async def _send_or_lose(self, outgoing: delivery.Outgoing) -> None:
        with suppress(ZunoError):  # lost is lost: what matters is sent again
            await self._send(outgoing)

    async def _record_rejection(self, event: delivery.MessageRejected) -> None:
        """Counted by its reason, and written down unless there were many of late. Some of it is strangers' words."""
        self.stats.count_rejection(event)
        now = self._now()
        if self._notes.setdefault(event.claimed, TokenBucket(NOTES_A_SECOND, NOTES, now)).try_take(now):
            note = event.model_copy(update={"why": plain_text(event.why, _LONGEST_NOTE)})
            await self._note(REJECTED, note)

    async def _record_dead_letter(self, letter: delivery.DeadLetter) -> None:
        self.stats.dead += 1
        note = DeadLetterNote(
            to=letter.to, message_id=letter.envelope.id, kind=letter.envelope.kind, tries=letter.tries
        )
        await self._note(DEAD_LETTER, note, letter.envelope.request_id)

    async def _note(self, kind: str, note: Wire, request_id: str | None = None) -> None:
        await self._journal.append(kind=kind, author=Author(self._role.value), payload=note, request_id=request_id)

    async def _recent(self) -> list[Envelope]:
        """What was heard and said within the time in which it could be played again, oldest first."""
        entries = [
            entry
            for kind, (senders, receiver) in ROUTES.items()
            if kind is not Kind.AGENT_THOUGHT and (self._role is receiver or self._role in senders)
            for entry in await self._newer(kind.value)
        ]
        messages = [read_entry(entry) for entry in sorted(entries, key=lambda entry: entry.seq)]
        return [envelope for envelope in messages if envelope is not None]

    async def _newer(self, kind: str) -> list[Entry]:
        count, since = _PAGE, self._now() - WINDOW_MS
        while True:
            newest = await self._journal.latest(count, kind=kind)
            if len(newest) < count or newest[-1].at < since:
                return [entry for entry in newest if entry.at >= since]
            count *= 2


_GAP: Final = 1_000
"""Thoughts are numbered and not written down: after a restart counting begins well beyond them."""


async def run_in_sequence(work: Work) -> None:
    """Time and tasks are handed in: a world without either does one thing after the other."""
    try:
        for job in work:
            await job
    finally:
        for job in work:
            job.close()


async def run_concurrently(work: Work) -> None:
    """The first that fails ends all of them, and is what is raised."""
    tasks = [asyncio.ensure_future(job) for job in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_retries(peer: MeshPeer, sleep: Callable[[float], Awaitable[None]], period: float = 0.05) -> None:
    while True:
        await sleep(period)
        await peer.tick()


async def run_receiver(peer: MeshPeer, receive: Callable[[], Awaitable[ReceivedMessage]]) -> None:
    """Take what arrives, one at a time, for ever. An error that cannot be borne, as of a journal that cannot be
    written, ends it; what was not acknowledged comes again after the next start."""
    async with asyncio.TaskGroup() as answering:
        while True:
            for letter in await peer.hear(await receive()):
                answering.create_task(peer.answer(letter))
