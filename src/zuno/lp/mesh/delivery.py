"""Delivery between peers that do not trust each other, without any I/O: what to send, what to believe, what to give up.

Whoever drives it hands in messages and the time, and sends what it returns. A letter is acknowledged when it is written
down, sent again until then, and given up after a bounded number of tries. A context travels once to each peer and is
named by its hash ever after. Thoughts are sent once, without acknowledgement.

A neighbour with a right key is not trusted with our memory, our disk or our time either: everything that is kept for it
has a bound of its own, and who it is comes before what it says.
"""

import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from zuno.kernel.backoff import Backoff, TokenBucket
from zuno.kernel.canonical import Digest, decode_canonical, digest, encode_model
from zuno.kernel.errors import Malformed
from zuno.kernel.signing import NodeKey
from zuno.kernel.text import plain_text
from zuno.kernel.wire import Wire
from zuno.lp.mesh import envelope as wire
from zuno.lp.mesh.replay_guard import ReplayGuard
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import AgentThought, Arguing, Kind, Role
from zuno.lp.ports.transport import ReceivedMessage

LIFETIME_MS: Final = 15 * 60 * 1000
"""How long a message is good for at most."""
SKEW_MS: Final = 60_000
"""How far two peers' clocks may be apart."""
_MAGIC: Final = b"\x00ZM1"
"""Begins with a byte that no JSON begins with: no router on the way takes it for its own."""
_MOST_MADE_OF_A_BYTE: Final = 1_032
"""By this way of packing."""
_RESEND_CONTEXT_AFTER: Final = 4
"""Tries after which the other side may have lost the context it once had."""
F = TypeVar("F", bound=wire.Frame)


class _MessageType(bytes, Enum):
    LETTER = b"L"
    THOUGHT = b"T"
    BUNDLE = b"B"
    ACK = b"A"
    PING = b"P"
    PONG = b"Q"


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    first_retry_ms: int = 250
    slowest_retry_ms: int = 5_000
    tries: int = 16
    """About a minute in all; then it is a dead letter."""
    largest_letter: int = 1024 * 1024
    """Bytes, unpacked. A debate of eleven rounds with five moves each takes a quarter of it."""
    largest_context: int = 4 * 1024 * 1024
    """Bytes, unpacked. Five pools with their price histories take a fiftieth of it."""
    largest_note: int = 16 * 1024
    """Bytes of an ack, a ping, a pong or a thought, whose text is of 2,000 characters at most."""
    letters_a_request: int = 32
    """Of one sender: it needs eleven to argue for ten rounds."""
    requests_of_a_sender: int = 512
    """Within the quarter of an hour its letters are good for: a debate every other second."""
    paper_bytes: int = 32 * 1024 * 1024
    """Of one sender, its letters and what was answered, before it has to slow down: some hundred debates, or ten of the
    longest."""
    paper_a_second: float = 4 * 1024
    """Bytes it may have written down from then on: a third of a gigabyte a day, however it tries."""
    waiting_letters: int = 16
    """Of one sender, kept while the context they name is on its way."""
    waiting_bytes: int = 4 * 1024 * 1024
    early_contexts: int = 4
    """Of one sender, kept though they overtook the letters naming them."""
    early_bytes: int = 8 * 1024 * 1024
    known_contexts: int = 1_024
    """Of one neighbour, known to be there: a longer memory would only save sending one again."""
    letters_a_second: float = 50.0
    thoughts_a_second: float = 10.0
    burst: float = 100.0
    bytes_a_second: float = 512 * 1024
    """Of one sender, unpacked and read: a twentieth of this process's time."""
    bytes_burst: float = 8 * 1024 * 1024
    outgoing_thoughts_a_second: float = 8.0

    def largest(self, sort: _MessageType) -> int:
        large = {_MessageType.LETTER: self.largest_letter, _MessageType.BUNDLE: self.largest_context}
        return large.get(sort, self.largest_note)


@dataclass(frozen=True, slots=True)
class Outgoing:
    to: Role
    data: bytes


@dataclass(frozen=True, slots=True)
class EnvelopeReceived:
    """A letter to be written down and answered; `Delivery.acknowledge_envelope` acknowledges it."""

    envelope: wire.Envelope
    name: Digest
    body: bytes


@dataclass(frozen=True, slots=True)
class DuplicateEnvelope:
    """A message that was accepted before: its answer may have been lost."""

    sender: Role
    id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class ThoughtReceived:
    """A thought. Nothing depends on it."""

    envelope: wire.Envelope


@dataclass(frozen=True, slots=True)
class ContextWanted:
    """A letter waits for a context that may have come before a restart."""

    sender: Role
    digest: Digest


@dataclass(frozen=True, slots=True)
class ContextReceived:
    """A context to be kept; `Post.acknowledge_context` acknowledges it."""

    sender: Role
    digest: Digest
    content: bytes


@dataclass(frozen=True, slots=True)
class PongReceived:
    role: Role
    nonce: str
    code: str


class MessageRejected(Wire):
    """Something that was not believed, and why. `claimed` is who it said it was from."""

    why: str
    claimed: Role | None = None
    digest: Digest | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    to: Role
    envelope: wire.Envelope
    tries: int


Event = (
    EnvelopeReceived
    | DuplicateEnvelope
    | ThoughtReceived
    | ContextWanted
    | ContextReceived
    | PongReceived
    | MessageRejected
    | Outgoing
)


@dataclass(slots=True)
class _Pending:
    to: Role
    data: bytes
    tries: int
    next_at: int
    envelope: wire.Envelope | None
    """None for a context."""


LoadContext = Callable[[Digest], bytes | None]


class Delivery:
    """One role's message delivery: retries, acknowledgements, limits and replay checks."""

    def __init__(
        self,
        me: Role,
        key: NodeKey,
        table: Mapping[Role, str],
        content: LoadContext,
        *,
        chance: Random,
        code: str,
        rules: DeliveryLimits | None = None,
    ) -> None:
        """`table`: the public key of every role; messages signed by any other key are rejected."""
        self._me = me
        self._key = key
        self._table = dict(table)
        self._content = content
        self._chance = chance
        self._code = code
        self._rules = rules or DeliveryLimits()
        self._pending: dict[tuple[Role, Digest], _Pending] = {}
        requests, letters = self._rules.requests_of_a_sender, self._rules.letters_a_request
        self._replay_guards = {
            role: ReplayGuard(requests, letters, TokenBucket(self._rules.paper_a_second, self._rules.paper_bytes))
            for role in table
        }
        self._contexts_known_by: defaultdict[Role, OrderedDict[Digest, None]] = defaultdict(OrderedDict)
        self._awaiting: defaultdict[Role, OrderedDict[str, EnvelopeReceived]] = defaultdict(OrderedDict)
        self._early: defaultdict[Role | None, OrderedDict[Digest, bytes]] = defaultdict(OrderedDict)
        self._message_buckets: dict[tuple[Role | None, bool], TokenBucket] = {}
        self._byte_buckets: dict[Role | None, TokenBucket] = {}
        self._own_thoughts: dict[Role, TokenBucket] = {}

    def prepare_envelope(self, envelope: wire.Envelope, now: int, body: bytes | None = None) -> list[Outgoing]:
        """Something that must arrive, and behind it the context it names where the other side may not have it yet."""
        body = body or wire.to_bytes(envelope)
        letter = self._keep_sending(envelope.to, digest(body), _pack(_MessageType.LETTER, body), envelope, now)
        return [letter, *self._context(envelope, now)]

    def prepare_thought(self, envelope: wire.Envelope, now: int, body: bytes) -> list[Outgoing]:
        """Something that may get lost; more than a few a second are."""
        rate = self._rules.outgoing_thoughts_a_second
        allowance = self._own_thoughts.setdefault(envelope.to, TokenBucket(rate, 2 * rate, now))
        return [Outgoing(envelope.to, _pack(_MessageType.THOUGHT, body))] if allowance.try_take(now) else []

    def ping(self, to: Role, nonce: str, now: int) -> Outgoing:
        return self._sign_frame(_MessageType.PING, wire.Ping(**self._head(to, now), nonce=nonce))

    def due(self, now: int) -> tuple[list[Outgoing], list[DeadLetter]]:
        """What has to be sent again by now, and what is given up."""
        out: list[Outgoing] = []
        dead: list[DeadLetter] = []
        for name, pending in list(self._pending.items()):
            if pending.next_at > now:
                continue
            expired = pending.envelope is not None and pending.envelope.expires + SKEW_MS < now
            if pending.tries >= self._rules.tries or expired:
                del self._pending[name]
                if pending.envelope is not None:
                    dead.append(DeadLetter(pending.to, pending.envelope, pending.tries))
                continue
            out.append(Outgoing(pending.to, pending.data))
            pending.tries += 1
            pending.next_at = now + self._pause(pending.tries)
            if pending.tries == _RESEND_CONTEXT_AFTER and pending.envelope is not None:
                out += self._context(pending.envelope, now, doubtful=True)
        return out, dead

    @property
    def next_due(self) -> int | None:
        return min((pending.next_at for pending in self._pending.values()), default=None)

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def forget(self, request_id: str) -> None:
        """A debate is over: nothing of it is sent again."""
        for name, pending in list(self._pending.items()):
            if pending.envelope is not None and pending.envelope.request_id == request_id:
                del self._pending[name]

    def take(self, received: ReceivedMessage, now: int) -> list[Event]:
        """What a message means. Whatever is wrong with it, it is an event and never an error."""
        sort = _message_type(received.data)
        if not self._admits(received.sender, sort, now):
            what = "messages" if sort is None else f"{sort.name.lower()}s"
            return [MessageRejected(why=f"more than it may send ({what})", claimed=received.sender)]
        if len(received.data) > self._rules.largest_context:
            why = f"a message of {len(received.data)} bytes is over the limit of {self._rules.largest_context}"
            return [MessageRejected(why=why, claimed=received.sender)]
        try:
            packed = received.data[len(_MAGIC) + 1 :]
            match sort:
                case None:
                    raise Malformed("these are not bytes of a peer")
                case _MessageType.LETTER | _MessageType.THOUGHT:
                    return self._receive_envelope(sort, packed, received, now)
                case _MessageType.BUNDLE:
                    return self._receive_context(self._unpack_limited(sort, packed, received), received, now)
                case _MessageType.ACK:
                    return self._handle_ack(self._open_frame(wire.Ack, sort, packed, received, now))
                case _MessageType.PING:
                    ping = self._open_frame(wire.Ping, sort, packed, received, now)
                    code = wire.version_text(self._code, EDITION)
                    pong = wire.Pong(**self._head(ping.by, now), nonce=ping.nonce, code=code)
                    return [self._sign_frame(_MessageType.PONG, pong)]
                case _MessageType.PONG:
                    heard = self._open_frame(wire.Pong, sort, packed, received, now)
                    return [PongReceived(heard.by, heard.nonce, plain_text(heard.code, wire.LONGEST_VERSION))]
        except Malformed as error:
            small = len(received.data) <= self._rules.largest_letter  # more is not worth the time a hash takes
            named = digest(received.data) if small else None
            return [MessageRejected(why=str(error), claimed=received.sender, digest=named)]

    def acknowledge_envelope(
        self, envelope: wire.Envelope, now: int, heard: EnvelopeReceived | None = None
    ) -> Outgoing:
        """A letter is written down: remember it and tell its sender."""
        return self._ack(envelope.from_, self.remember(envelope, heard), now)

    def acknowledge_context(self, received: ContextReceived, now: int) -> tuple[Outgoing, list[EnvelopeReceived]]:
        """A context is kept: tell its sender, and take up the letters that waited for it."""
        self._note_context_known(received.sender, received.digest)
        letters = self._waiting_for(received.digest)
        for letter in letters:
            del self._awaiting[letter.envelope.from_][letter.envelope.id]
        return self._ack(received.sender, received.digest, now), letters

    def heard_before(self, envelope: wire.Envelope) -> bool:
        """Whether its sender has had this very turn in the request: another letter in its place changes nothing."""
        past = self._replay_guards.get(envelope.from_)
        return past is not None and past.has_turn(envelope.request_id, turn_of(envelope))

    def charge(self, sender: Role, size: int) -> None:
        """Bytes written down here because of what it said: they are its own."""
        past = self._replay_guards.get(sender)
        if past is not None:
            past.charge_bytes(size)

    def remember(self, envelope: wire.Envelope, heard: EnvelopeReceived | None = None) -> Digest:
        """A letter that was taken in, perhaps before this process began: it is never taken in again."""
        if heard is None:
            body = wire.to_bytes(envelope)
            name, size = digest(body), len(body)
        else:
            name, size = heard.name, len(heard.body)
        until = envelope.expires + SKEW_MS
        past = self._replay_guards.get(envelope.from_)
        if past is not None:  # else whoever said it has left the table
            past.add(envelope.id, name, envelope.request_id, envelope.seq, until, size, turn_of(envelope))
        return name

    def _receive_envelope(self, sort: _MessageType, packed: bytes, received: ReceivedMessage, now: int) -> list[Event]:
        """Who says it, then whether it is signed, then whether there is room for it, and only then what it says."""
        fronts: list[wire.EnvelopeHead] = []

        def glance(head: bytes) -> None:
            fronts.append(wire.parse_head(head))
            self._check_front(fronts[0], sort, received, now)

        body = self._unpack_limited(sort, packed, received, glance)
        (front,), back = fronts, wire.parse_tail(body)
        self._check_back(front, back, now)
        past, name = self._replay_guards[front.sender], digest(body)
        before = past.name_of(front.id)
        if before == name and sort is _MessageType.LETTER:  # its ack was lost, or it asks once more
            return [self._ack(front.sender, name, now), DuplicateEnvelope(front.sender, front.id, back.request_id)]
        if not self._key.verify(front.key, back.signed, back.signature):
            raise Malformed(f"{front.id} is not signed by its key")
        if before is not None:
            raise Malformed(f"{front.sender} said {front.id} twice, and not the same")
        if front.edition > EDITION:  # nobody here knows what it may say; an older one is answered, with a refusal
            raise Malformed(edition_refusal(front.sender, front.edition, self._me))
        if sort is _MessageType.THOUGHT:
            return [ThoughtReceived(_parse_thought(body))]
        if past.is_replayed(back.request_id, back.seq):
            raise Malformed(f"{front.id} is number {back.seq} of {front.sender}, which was passed already")
        if refusal := past.refusal(back.request_id, len(body), now):
            raise Malformed(f"{front.sender} {refusal}")
        return self._admit_letter(EnvelopeReceived(wire.from_bytes(body), name, body), now)

    def _check_front(self, front: wire.EnvelopeHead, sort: _MessageType, received: ReceivedMessage, now: int) -> None:
        self._check_sender(front.sender, front.key, received)
        senders, receiver = wire.ROUTES[front.kind]
        if front.sender not in senders:
            raise Malformed(f"{front.sender} may not say {front.kind} to {self._me}")
        if receiver is not self._me:
            raise Malformed(f"a message is for {receiver}, not for {self._me}")
        if (front.kind is Kind.AGENT_THOUGHT) != (sort is _MessageType.THOUGHT):
            raise Malformed(f"a {front.kind} came as a {sort.name.lower()}")
        if front.expires + SKEW_MS < now:
            raise Malformed(f"{front.id} expired {now - front.expires} ms ago")

    def _check_back(self, front: wire.EnvelopeHead, back: wire.EnvelopeTail, now: int) -> None:
        if back.to is not self._me:
            raise Malformed(f"a message is for {back.to}, not for {self._me}")
        if front.expires - back.ts > LIFETIME_MS:
            raise Malformed(f"{front.id} wants to be good for {front.expires - back.ts} ms")
        if back.ts - SKEW_MS > now:
            raise Malformed(f"{front.id} is from {back.ts - now} ms ahead")
        if front.id != wire.message_id(back.request_id, front.sender, back.seq):
            raise Malformed(f"{front.id} is not the name of what {front.sender} says there")

    def _admit_letter(self, heard: EnvelopeReceived, now: int) -> list[Event]:
        """A letter with room for it; its context may not be here yet, and then nothing is acknowledged."""
        named = context_of(heard.envelope)
        if named is None or self._content(named) is not None:
            return [heard]
        sender = heard.envelope.from_
        waiting = self._awaiting[sender]
        waiting[heard.envelope.id] = heard
        while len(waiting) > self._rules.waiting_letters or (
            sum(len(letter.body) for letter in waiting.values()) > self._rules.waiting_bytes
        ):
            waiting.popitem(last=False)
        for early in self._early.values():
            if (content := early.pop(named, None)) is not None:
                return [self._context_received(sender, named, content, now)]
        return [ContextWanted(sender, named)]

    def _context_received(self, sender: Role, name: Digest, content: bytes, now: int) -> ContextReceived:
        """Charge it to the sender that named it."""
        past = self._replay_guards[sender]
        if refusal := past.storage_refusal(len(content), now):
            raise Malformed(f"{sender} {refusal}")
        past.charge_bytes(len(content))
        return ContextReceived(sender, name, content)

    def _waiting_for(self, name: Digest) -> list[EnvelopeReceived]:
        return [
            letter
            for letters in self._awaiting.values()
            for letter in letters.values()
            if context_of(letter.envelope) == name
        ]

    def _receive_context(self, content: bytes, received: ReceivedMessage, now: int) -> list[Event]:
        """A context is identified by its hash; it is kept where an accepted message names it."""
        name = digest(content)
        if self._content(name) is not None:
            return [] if received.sender is None else [self._ack(received.sender, name, now)]
        if letters := self._waiting_for(name):
            return [self._context_received(letters[0].envelope.from_, name, content, now)]
        early = self._early[received.sender]
        early[name] = content  # it overtook its letter
        while len(early) > self._rules.early_contexts or sum(map(len, early.values())) > self._rules.early_bytes:
            early.popitem(last=False)
        return []

    def _handle_ack(self, ack: wire.Ack) -> list[Event]:
        for name in map(Digest, ack.of):
            pending = self._pending.pop((ack.by, name), None)
            if pending is not None and pending.envelope is None:
                self._note_context_known(ack.by, name)
        return []

    def _open_frame(self, shape: type[F], sort: _MessageType, packed: bytes, received: ReceivedMessage, now: int) -> F:
        try:
            frame = shape.model_validate(decode_canonical(self._unpack_limited(sort, packed, received)))
        except ValidationError:
            raise Malformed(f"this is no {shape.__name__.lower()}") from None
        self._check_sender(frame.by, frame.key, received)
        if frame.to is not self._me:
            raise Malformed(f"a message is for {frame.to}, not for {self._me}")
        if abs(frame.ts - now) > SKEW_MS + self._rules.slowest_retry_ms:
            raise Malformed(f"a {shape.__name__.lower()} of {frame.by} is {now - frame.ts} ms old")
        if not self._key.verify(frame.key, wire.frame_signed_part(frame), bytes.fromhex(frame.sig)):
            raise Malformed(f"a {shape.__name__.lower()} of {frame.by} is not signed by its key")
        return frame

    def _check_sender(self, claimed: Role, key: str, received: ReceivedMessage) -> None:
        if self._table.get(claimed) != key:
            raise Malformed(f"{key[:16]}… is not the key of {claimed}")
        if received.sender is not None and received.sender is not claimed:
            raise Malformed(f"{received.sender}'s endpoint speaks as {claimed}")

    def _context(self, envelope: wire.Envelope, now: int, *, doubtful: bool = False) -> list[Outgoing]:
        """The context a letter names, where the other side may not have it: `doubtful` of what it once said it had."""
        to, named = envelope.to, context_of(envelope)
        if named is None or (to, named) in self._pending or (named in self._contexts_known_by[to] and not doubtful):
            return []
        if (content := self._content(named)) is None:
            return []
        return [self._keep_sending(to, named, _pack(_MessageType.BUNDLE, content), None, now)]

    def _keep_sending(self, to: Role, name: Digest, data: bytes, envelope: wire.Envelope | None, now: int) -> Outgoing:
        self._pending[to, name] = _Pending(to, data, 1, now + self._pause(1), envelope)
        return Outgoing(to, data)

    def _pause(self, tries: int) -> int:
        retries = Backoff(self._rules.first_retry_ms, self._rules.slowest_retry_ms, jitter=(0.75, 1.25))
        return int(retries.delay(tries, self._chance.random()))

    def _admits(self, sender: Role | None, sort: _MessageType | None, now: int) -> bool:
        """Whether a sender may send one more message. Its unpacked size is charged afterwards."""
        thought, rules = sort is _MessageType.THOUGHT, self._rules
        rate = rules.thoughts_a_second if thought else rules.letters_a_second
        number = self._message_buckets.setdefault((sender, thought), TokenBucket(rate, rules.burst, now))
        size = self._byte_buckets.setdefault(sender, TokenBucket(rules.bytes_a_second, rules.bytes_burst, now))
        return number.try_take(now) and size.has(now)

    def _unpack_limited(
        self,
        sort: _MessageType,
        packed: bytes,
        received: ReceivedMessage,
        glance: Callable[[bytes], None] = lambda head: None,
    ) -> bytes:
        largest = self._rules.largest(sort)
        if len(packed) > largest:
            raise Malformed(f"a {sort.name.lower()} of {len(packed)} bytes is over the limit of {largest}")
        return _unpack(sort, packed, largest, glance, self._byte_buckets[received.sender].pay)

    def _note_context_known(self, role: Role, name: Digest) -> None:
        held = self._contexts_known_by[role]
        held[name] = None
        while len(held) > self._rules.known_contexts:
            held.popitem(last=False)

    def _ack(self, to: Role, name: Digest, now: int) -> Outgoing:
        return self._sign_frame(_MessageType.ACK, wire.Ack(**self._head(to, now), of=(name,)))

    def _head(self, to: Role, now: int) -> dict[str, Any]:
        return {"by": self._me, "to": to, "ts": now, "key": self._key.public}

    def _sign_frame(self, sort: _MessageType, frame: wire.Frame) -> Outgoing:
        signed = frame.model_copy(update={"sig": self._key.sign(wire.frame_signed_part(frame)).hex()})
        return Outgoing(frame.to, _pack(sort, encode_model(signed)))


def context_of(envelope: wire.Envelope) -> Digest | None:
    payload = envelope.payload
    return Digest(payload.debate.context) if isinstance(payload, Arguing) else None


def edition_refusal(sender: Role, edition: int, me: Role) -> str:
    return f"The {sender} argues in edition {edition} and the {me} in edition {EDITION}; run the same Zuno for both."


def _pack(sort: _MessageType, body: bytes) -> bytes:
    return _MAGIC + sort.value + zlib.compress(body, 1)


def turn_of(envelope: wire.Envelope) -> tuple[Kind, int]:
    """What a letter is in its debate: of each there is one."""
    payload = envelope.payload
    return envelope.kind, len(payload.debate.rounds) if isinstance(payload, Arguing) else 0


def _message_type(data: bytes) -> _MessageType | None:
    head = len(_MAGIC)
    try:
        return _MessageType(data[head : head + 1]) if data.startswith(_MAGIC) else None
    except ValueError:
        return None


def _unpack(
    sort: _MessageType, packed: bytes, largest: int, glance: Callable[[bytes], None], pay: Callable[[int], None]
) -> bytes:
    """`glance` sees the first bytes before the others are unpacked, and may raise. Whatever comes of it is paid for."""
    opener, made = zlib.decompressobj(), 0
    try:
        head = opener.decompress(packed, wire.FRONT_BYTES)
        made = len(head)
        glance(head)
        body = head + opener.decompress(opener.unconsumed_tail, max(1, largest + 1 - len(head)))
        made = len(body)
    except zlib.error:
        made = min(largest, _MOST_MADE_OF_A_BYTE * len(packed))  # how much it was before it broke off is not told
        raise Malformed("these bytes cannot be unpacked") from None
    finally:
        pay(made)
    if len(body) > largest:
        raise Malformed(f"a {sort.name.lower()} unpacks to more than {largest} bytes")
    if not opener.eof or opener.unused_data:
        raise Malformed("these bytes are cut, or something follows them")
    return body


def _parse_thought(body: bytes) -> wire.Envelope:
    envelope = wire.from_bytes(body)
    payload = envelope.payload
    if isinstance(payload, AgentThought) and payload.thought.role is not envelope.from_:
        raise Malformed(f"{envelope.from_} thinks aloud as {payload.thought.role}")
    return envelope
