"""Delivery between peers that do not trust each other, without any I/O: what to send, what to believe, what to give up.

Whoever drives it hands in parcels and the time, and sends what it returns. A letter is acknowledged when it is written
down, sent again until then, and given up after a bounded number of tries. A context travels once to each peer and is
named by its hash ever after. Thoughts are thrown like paper planes.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final, TypeVar

from pydantic import ValidationError

from zuno.agents.routes import may_say
from zuno.domain.errors import Malformed
from zuno.messages.codec import Digest, canonical, decoded, digest
from zuno.messages.debate import AgentThought, Arguing, Kind, Role
from zuno.messages.envelope import Envelope, from_bytes, message_id, signed_part, to_bytes
from zuno.messages.frames import Ack, Frame, Ping, Pong, frame_signed_part
from zuno.ports.signing import NodeKey
from zuno.ports.transport import Parcel

LIFETIME_MS: Final = 15 * 60 * 1000
"""How long a message is good for at most."""
SKEW_MS: Final = 60_000
"""How far two peers' clocks may be apart."""
_MAGIC: Final = b"\x00ZM1"
"""Begins with a byte that no JSON begins with: no router on the way takes it for its own."""
_DOUBTFUL: Final = 4
"""Tries after which the other side may have lost the context it once had."""
F = TypeVar("F", bound=Frame)


class _Sort(bytes, Enum):
    LETTER = b"L"
    THOUGHT = b"T"
    BUNDLE = b"B"
    ACK = b"A"
    PING = b"P"
    PONG = b"Q"


@dataclass(frozen=True, slots=True)
class Rules:
    """The bounds of delivery."""

    first_retry_ms: int = 250
    slowest_retry_ms: int = 5_000
    tries: int = 16
    """About a minute in all; then it is a dead letter."""
    largest: int = 16 * 1024 * 1024
    """Bytes of one message, packed or unpacked."""
    remembered: int = 20_000
    """Messages whose repetition is known for one."""
    waiting_letters: int = 64
    """Letters kept while the context they name is on its way."""
    early_contexts: int = 4
    """Contexts kept that overtook the letters naming them."""
    letters_a_second: float = 50.0
    thoughts_a_second: float = 10.0
    burst: float = 100.0
    outgoing_thoughts_a_second: float = 8.0


# -- what comes of it


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Bytes for somebody."""

    to: Role
    data: bytes


@dataclass(frozen=True, slots=True)
class Heard:
    """A letter to be written down and answered; `Post.accepted` acknowledges it."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Again:
    """A letter that was taken in before: whoever sent it may have missed what it brought about."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Overheard:
    """A thought. Nothing depends on it."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Received:
    """A context to be kept; `Post.kept` acknowledges it."""

    sender: Role
    digest: Digest
    content: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """A peer is there."""

    role: Role
    nonce: str
    code: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that was not believed, and why. `claimed` is who it said it was from."""

    why: str
    claimed: Role | None = None
    digest: Digest | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A letter nobody acknowledged."""

    to: Role
    envelope: Envelope
    tries: int


Event = Heard | Again | Overheard | Received | Answered | Rejected | Outgoing


@dataclass(slots=True)
class _Pending:
    """Something that is sent until it is acknowledged."""

    to: Role
    data: bytes
    tries: int
    next_at: int
    envelope: Envelope | None
    """None for a context."""


@dataclass(slots=True)
class _Bucket:
    """How much of something is let through: so much a second, and a burst."""

    rate: float
    burst: float
    left: float
    at: int

    def takes(self, now: int) -> bool:
        self.left = min(self.burst, self.left + self.rate * max(0, now - self.at) / 1000)
        self.at = max(self.at, now)
        if self.left < 1:
            return False
        self.left -= 1
        return True


Content = Callable[[Digest], bytes | None]
"""The bytes of a context that is kept here; None where it is not."""


@dataclass(slots=True)
class _Memory:
    """A bounded number of things, the oldest forgotten first."""

    most: int
    known: OrderedDict[tuple[Role, str], Digest] = field(default_factory=OrderedDict)

    def __getitem__(self, key: tuple[Role, str]) -> Digest | None:
        return self.known.get(key)

    def add(self, key: tuple[Role, str], value: Digest) -> None:
        self.known[key] = value
        while len(self.known) > self.most:
            self.known.popitem(last=False)


class Post:
    """One role's post office."""

    def __init__(
        self,
        me: Role,
        key: NodeKey,
        table: Mapping[Role, str],
        content: Content,
        *,
        chance: Random,
        code: str,
        rules: Rules | None = None,
    ) -> None:
        """`table`: the public key of every role; whoever holds another key is nobody."""
        self._me = me
        self._key = key
        self._table = dict(table)
        self._content = content
        self._chance = chance
        self._code = code
        self._rules = rules or Rules()
        self._pending: dict[tuple[Role, Digest], _Pending] = {}
        self._taken = _Memory(self._rules.remembered)
        self._last_seq: OrderedDict[tuple[Role, str], int] = OrderedDict()
        self._held_by: defaultdict[Role, set[Digest]] = defaultdict(set)
        self._awaiting: OrderedDict[Digest, list[Envelope]] = OrderedDict()
        self._early: OrderedDict[Digest, bytes] = OrderedDict()
        self._gates: dict[tuple[Role | None, bool], _Bucket] = {}
        self._own_thoughts: dict[Role, _Bucket] = {}

    # -- sending

    def letter(self, envelope: Envelope, now: int) -> list[Outgoing]:
        """Something that must arrive, and behind it the context it names where the other side may not have it yet."""
        body = to_bytes(envelope)
        letter = self._keep_sending(envelope.to, digest(body), _packed(_Sort.LETTER, body), envelope, now)
        return [letter, *self._context(envelope, now)]

    def thought(self, envelope: Envelope, now: int) -> list[Outgoing]:
        """Something that may get lost; more than a few a second are."""
        rate = self._rules.outgoing_thoughts_a_second
        bucket = self._own_thoughts.setdefault(envelope.to, _Bucket(rate, 2 * rate, 2 * rate, now))
        return [Outgoing(envelope.to, _packed(_Sort.THOUGHT, to_bytes(envelope)))] if bucket.takes(now) else []

    def ping(self, to: Role, nonce: str, now: int) -> Outgoing:
        frame = self._signed(Ping(by=self._me, to=to, ts=now, key=self._key.public, nonce=nonce))
        return Outgoing(to, _packed(_Sort.PING, canonical(frame)))

    def due(self, now: int) -> tuple[list[Outgoing], list[DeadLetter]]:
        """What has to be sent again by now, and what is given up."""
        out: list[Outgoing] = []
        dead: list[DeadLetter] = []
        for name, one in list(self._pending.items()):
            if one.next_at > now:
                continue
            expired = one.envelope is not None and one.envelope.expires + SKEW_MS < now
            if one.tries >= self._rules.tries or expired:
                del self._pending[name]
                if one.envelope is not None:
                    dead.append(DeadLetter(one.to, one.envelope, one.tries))
                continue
            out.append(Outgoing(one.to, one.data))
            one.tries += 1
            one.next_at = now + self._pause(one.tries)
            if one.tries == _DOUBTFUL and one.envelope is not None:
                out += self._context(one.envelope, now, doubtful=True)
        return out, dead

    @property
    def next_due(self) -> int | None:
        """When something has to be sent again."""
        return min((one.next_at for one in self._pending.values()), default=None)

    @property
    def waiting(self) -> int:
        """What is not acknowledged yet."""
        return len(self._pending)

    @property
    def wanted(self) -> list[tuple[Role, Digest]]:
        """Contexts that letters wait for, and who named them."""
        return [(letters[0].from_, name) for name, letters in self._awaiting.items() if letters]

    def forget(self, request_id: str) -> None:
        """A debate is over: nothing of it is sent again."""
        for name, one in list(self._pending.items()):
            if one.envelope is not None and one.envelope.request_id == request_id:
                del self._pending[name]

    # -- receiving

    def take(self, parcel: Parcel, now: int) -> list[Event]:
        """What a parcel means. Whatever is wrong with it, it is an event and never an error."""
        try:
            sort, body = _unpacked(parcel.data, self._rules.largest)
            if not self._gate(parcel.sender, sort, now):
                return [Rejected(f"more than it may send ({sort.name.lower()}s)", parcel.sender)]
            match sort:
                case _Sort.LETTER | _Sort.THOUGHT:
                    return self._envelope(sort, body, parcel, now)
                case _Sort.BUNDLE:
                    return self._bundle(body, parcel, now)
                case _Sort.ACK:
                    return self._acked(self._opened(Ack, body, parcel, now))
                case _Sort.PING:
                    ping = self._opened(Ping, body, parcel, now)
                    pong = Pong(
                        by=self._me, to=ping.by, ts=now, key=self._key.public, nonce=ping.nonce, code=self._code
                    )
                    return [Outgoing(ping.by, _packed(_Sort.PONG, canonical(self._signed(pong))))]
                case _Sort.PONG:
                    heard = self._opened(Pong, body, parcel, now)
                    return [Answered(heard.by, heard.nonce, heard.code)]
        except Malformed as error:
            return [Rejected(str(error), parcel.sender, digest(parcel.data))]

    def accepted(self, envelope: Envelope, now: int) -> Outgoing:
        """A letter is written down: remember it and tell its sender."""
        self.remember(envelope)
        return self._ack(envelope.from_, digest(to_bytes(envelope)), now)

    def kept(self, received: Received, now: int) -> tuple[Outgoing, list[Heard]]:
        """A context is kept: tell its sender, and take up the letters that waited for it."""
        self._held_by[received.sender].add(received.digest)
        letters = self._awaiting.pop(received.digest, [])
        return self._ack(received.sender, received.digest, now), [Heard(one) for one in letters]

    def remember(self, envelope: Envelope) -> None:
        """A letter that was taken in, perhaps before this process began: it is never taken in again."""
        self._taken.add((envelope.from_, envelope.id), digest(to_bytes(envelope)))
        place = (envelope.from_, envelope.request_id)
        self._last_seq[place] = max(self._last_seq.pop(place, -1), envelope.seq)
        while len(self._last_seq) > self._rules.remembered:
            self._last_seq.popitem(last=False)

    # -- the rules, one by one

    def _envelope(self, sort: _Sort, body: bytes, parcel: Parcel, now: int) -> list[Event]:
        envelope = from_bytes(body)
        self._check_sender(envelope.from_, envelope.key, envelope.to, parcel)
        if not may_say(envelope.kind, envelope.from_, envelope.to):
            raise Malformed(f"{envelope.from_} may not say {envelope.kind} to {envelope.to}")
        if (envelope.kind is Kind.AGENT_THOUGHT) != (sort is _Sort.THOUGHT):
            raise Malformed(f"a {envelope.kind} came as a {sort.name.lower()}")
        if envelope.expires + SKEW_MS < now:
            raise Malformed(f"{envelope.id} expired {now - envelope.expires} ms ago")
        if envelope.expires - envelope.ts > LIFETIME_MS:
            raise Malformed(f"{envelope.id} wants to be good for {envelope.expires - envelope.ts} ms")
        if envelope.id != message_id(envelope.request_id, envelope.from_, envelope.seq):
            raise Malformed(f"{envelope.id} is not the name of what {envelope.from_} says there")
        if isinstance(envelope.payload, AgentThought) and envelope.payload.thought.role is not envelope.from_:
            raise Malformed(f"{envelope.from_} thinks aloud as {envelope.payload.thought.role}")
        if envelope.ts - SKEW_MS > now:
            raise Malformed(f"{envelope.id} is from {envelope.ts - now} ms ahead")
        if not self._key.verify(envelope.key, signed_part(envelope), bytes.fromhex(envelope.sig)):
            raise Malformed(f"{envelope.id} is not signed by its key")
        if sort is _Sort.THOUGHT:
            return [Overheard(envelope)]
        name = digest(body)
        before = self._taken[envelope.from_, envelope.id]
        if before is not None:
            if before != name:
                raise Malformed(f"{envelope.from_} said {envelope.id} twice, and not the same")
            return [self._ack(envelope.from_, name, now), Again(envelope)]  # its ack was lost, or it asks once more
        if envelope.seq <= self._last_seq.get((envelope.from_, envelope.request_id), -1):
            raise Malformed(f"{envelope.id} is number {envelope.seq} of {envelope.from_}, which was passed already")
        named = context_of(envelope)
        if named is not None and self._content(named) is None:
            self._wait_for(named, envelope)
            early = self._early.pop(named, None)
            return [] if early is None else [Received(envelope.from_, named, early)]
        return [Heard(envelope)]

    def _wait_for(self, named: Digest, envelope: Envelope) -> None:
        """The context it names is not here yet: it is on its way behind or before it, and nothing is acknowledged."""
        letters = self._awaiting.setdefault(named, [])
        if all(one.id != envelope.id for one in letters):
            letters.append(envelope)
        while sum(map(len, self._awaiting.values())) > self._rules.waiting_letters:
            self._awaiting.popitem(last=False)

    def _bundle(self, content: bytes, parcel: Parcel, now: int) -> list[Event]:
        """A context vouches for itself by its hash; it is kept where a letter that was believed names it."""
        name = digest(content)
        letters = self._awaiting.get(name)
        if self._content(name) is not None:
            return [] if parcel.sender is None else [self._ack(parcel.sender, name, now)]
        if letters:
            return [Received(letters[0].from_, name, content)]
        self._early[name] = content  # it overtook its letter
        while len(self._early) > self._rules.early_contexts:
            self._early.popitem(last=False)
        return []

    def _acked(self, ack: Ack) -> list[Event]:
        for name in map(Digest, ack.of):
            one = self._pending.pop((ack.by, name), None)
            if one is not None and one.envelope is None:
                self._held_by[ack.by].add(name)
        return []

    def _opened(self, shape: type[F], body: bytes, parcel: Parcel, now: int) -> F:
        try:
            frame = shape.model_validate(decoded(body))
        except ValidationError:
            raise Malformed(f"this is no {shape.__name__.lower()}") from None
        self._check_sender(frame.by, frame.key, frame.to, parcel)
        if abs(frame.ts - now) > SKEW_MS + self._rules.slowest_retry_ms:
            raise Malformed(f"a {shape.__name__.lower()} of {frame.by} is {now - frame.ts} ms old")
        if not self._key.verify(frame.key, frame_signed_part(frame), bytes.fromhex(frame.sig)):
            raise Malformed(f"a {shape.__name__.lower()} of {frame.by} is not signed by its key")
        return frame

    def _check_sender(self, claimed: Role, key: str, to: Role, parcel: Parcel) -> None:
        if to is not self._me:
            raise Malformed(f"a message is for {to}, not for {self._me}")
        if self._table.get(claimed) != key:
            raise Malformed(f"{key[:16]}… is not the key of {claimed}")
        if parcel.sender is not None and parcel.sender is not claimed:
            raise Malformed(f"{parcel.sender}'s endpoint speaks as {claimed}")

    # -- small things

    def _context(self, envelope: Envelope, now: int, *, doubtful: bool = False) -> list[Outgoing]:
        """The context a letter names, where the other side may not have it: `doubtful` of what it once said it had."""
        to, named = envelope.to, context_of(envelope)
        if named is None or (to, named) in self._pending or (named in self._held_by[to] and not doubtful):
            return []
        content = self._content(named)
        return [] if content is None else [self._keep_sending(to, named, _packed(_Sort.BUNDLE, content), None, now)]

    def _keep_sending(self, to: Role, name: Digest, data: bytes, envelope: Envelope | None, now: int) -> Outgoing:
        self._pending[to, name] = _Pending(to, data, 1, now + self._pause(1), envelope)
        return Outgoing(to, data)

    def _pause(self, tries: int) -> int:
        """Twice as long each time, up to a bound, and never quite the same."""
        plain = min(self._rules.slowest_retry_ms, self._rules.first_retry_ms << (tries - 1))
        return int(plain * self._chance.uniform(0.75, 1.25))

    def _gate(self, sender: Role | None, sort: _Sort, now: int) -> bool:
        thought, rules = sort is _Sort.THOUGHT, self._rules
        rate = rules.thoughts_a_second if thought else rules.letters_a_second
        bucket = self._gates.setdefault((sender, thought), _Bucket(rate, rules.burst, rules.burst, now))
        return bucket.takes(now)

    def _ack(self, to: Role, name: Digest, now: int) -> Outgoing:
        frame = self._signed(Ack(by=self._me, to=to, ts=now, key=self._key.public, of=(name,)))
        return Outgoing(to, _packed(_Sort.ACK, canonical(frame)))

    def _signed(self, frame: F) -> F:
        return frame.model_copy(update={"sig": self._key.sign(frame_signed_part(frame)).hex()})


def context_of(envelope: Envelope) -> Digest | None:
    """The context a message argues about."""
    payload = envelope.payload
    return Digest(payload.debate.context) if isinstance(payload, Arguing) else None


def _packed(sort: _Sort, body: bytes) -> bytes:
    return _MAGIC + sort.value + zlib.compress(body, 1)


def _unpacked(data: bytes, largest: int) -> tuple[_Sort, bytes]:
    if len(data) > largest:
        raise Malformed(f"a message of {len(data)} bytes is over the limit of {largest}")
    head = len(_MAGIC)
    if not data.startswith(_MAGIC) or len(data) <= head:
        raise Malformed("these are not bytes of a peer")
    try:
        sort = _Sort(data[head : head + 1])
        opener = zlib.decompressobj()
        body = opener.decompress(data[head + 1 :], largest)
    except (ValueError, zlib.error):
        raise Malformed("these bytes cannot be unpacked") from None
    if opener.unconsumed_tail:
        raise Malformed(f"a message unpacks to more than {largest} bytes")
    if not opener.eof or opener.unused_data:
        raise Malformed("these bytes are cut, or something follows them")
    return sort, body
