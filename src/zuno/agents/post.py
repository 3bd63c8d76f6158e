"""Delivery between peers that do not trust each other, without any I/O: what to send, what to believe, what to give up.

Whoever drives it hands in parcels and the time, and sends what it returns. A letter is acknowledged when it is written
down, sent again until then, and given up after a bounded number of tries. A context travels once to each peer and is
named by its hash ever after. Thoughts are thrown like paper planes.

A neighbour with a right key is not trusted with our memory, our disk or our time either: everything that is kept for it
has a bound of its own, and who it is comes before what it says.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final, TypeVar

from pydantic import ValidationError

from zuno.agents.allowance import Allowance
from zuno.agents.past import Past
from zuno.agents.routes import ROUTES
from zuno.domain.errors import Malformed
from zuno.domain.tokens import plain_text
from zuno.messages.codec import Digest, decoded, digest, spelled
from zuno.messages.cover import FRONT_BYTES, Back, Front, back_of, front_of
from zuno.messages.debate import AgentThought, Arguing, Kind, Role
from zuno.messages.envelope import Envelope, from_bytes, message_id, to_bytes
from zuno.messages.frames import Ack, Frame, Ping, Pong, frame_signed_part
from zuno.ports.signing import NodeKey
from zuno.ports.transport import Parcel

LIFETIME_MS: Final = 15 * 60 * 1000
"""How long a message is good for at most."""
SKEW_MS: Final = 60_000
"""How far two peers' clocks may be apart."""
_MAGIC: Final = b"\x00ZM1"
"""Begins with a byte that no JSON begins with: no router on the way takes it for its own."""
_MOST_MADE_OF_A_BYTE: Final = 1_032
"""By this way of packing."""
LONGEST_CODE: Final = 64
"""Characters of a version as it is shown."""
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

    def largest(self, sort: _Sort) -> int:
        match sort:
            case _Sort.LETTER:
                return self.largest_letter
            case _Sort.BUNDLE:
                return self.largest_context
            case _:
                return self.largest_note


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
    name: Digest
    """Of its bytes."""
    body: bytes

    @property
    def size(self) -> int:
        return len(self.body)


@dataclass(frozen=True, slots=True)
class Again:
    """A letter that was taken in before: whoever sent it may have missed what it brought about."""

    sender: Role
    id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Overheard:
    """A thought. Nothing depends on it."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Wanted:
    """A letter waits for a context that an earlier life may have been given."""

    sender: Role
    digest: Digest


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


Event = Heard | Again | Overheard | Wanted | Received | Answered | Rejected | Outgoing


@dataclass(slots=True)
class _Pending:
    """Something that is sent until it is acknowledged."""

    to: Role
    data: bytes
    tries: int
    next_at: int
    envelope: Envelope | None
    """None for a context."""


Content = Callable[[Digest], bytes | None]
"""The bytes of a context that is kept here; None where it is not."""


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
        self._pasts = {role: self._past() for role in table}
        self._held_by: defaultdict[Role, OrderedDict[Digest, None]] = defaultdict(OrderedDict)
        self._awaiting: defaultdict[Role, OrderedDict[str, Heard]] = defaultdict(OrderedDict)
        self._early: defaultdict[Role | None, OrderedDict[Digest, bytes]] = defaultdict(OrderedDict)
        self._gates: dict[tuple[Role | None, bool], Allowance] = {}
        self._unpacking: dict[Role | None, Allowance] = {}
        self._own_thoughts: dict[Role, Allowance] = {}

    # -- sending

    def letter(self, envelope: Envelope, now: int, body: bytes | None = None) -> list[Outgoing]:
        """Something that must arrive, and behind it the context it names where the other side may not have it yet."""
        body = body or to_bytes(envelope)
        letter = self._keep_sending(envelope.to, digest(body), _packed(_Sort.LETTER, body), envelope, now)
        return [letter, *self._context(envelope, now)]

    def thought(self, envelope: Envelope, now: int, body: bytes) -> list[Outgoing]:
        """Something that may get lost; more than a few a second are."""
        rate = self._rules.outgoing_thoughts_a_second
        allowance = self._own_thoughts.setdefault(envelope.to, Allowance(rate, 2 * rate, now))
        return [Outgoing(envelope.to, _packed(_Sort.THOUGHT, body))] if allowance.takes(now) else []

    def ping(self, to: Role, nonce: str, now: int) -> Outgoing:
        frame = self._signed(Ping(by=self._me, to=to, ts=now, key=self._key.public, nonce=nonce))
        return Outgoing(to, _packed(_Sort.PING, spelled(frame)))

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

    def forget(self, request_id: str) -> None:
        """A debate is over: nothing of it is sent again."""
        for name, one in list(self._pending.items()):
            if one.envelope is not None and one.envelope.request_id == request_id:
                del self._pending[name]

    # -- receiving

    def take(self, parcel: Parcel, now: int) -> list[Event]:
        """What a parcel means. Whatever is wrong with it, it is an event and never an error."""
        sort = _sort_of(parcel.data)
        if not self._gate(parcel.sender, sort, now):
            what = "messages" if sort is None else f"{sort.name.lower()}s"
            return [Rejected(f"more than it may send ({what})", parcel.sender)]
        if len(parcel.data) > self._rules.largest_context:
            why = f"a message of {len(parcel.data)} bytes is over the limit of {self._rules.largest_context}"
            return [Rejected(why, parcel.sender)]
        try:
            packed = parcel.data[len(_MAGIC) + 1 :]
            match sort:
                case None:
                    raise Malformed("these are not bytes of a peer")
                case _Sort.LETTER | _Sort.THOUGHT:
                    return self._envelope(sort, packed, parcel, now)
                case _Sort.BUNDLE:
                    return self._bundle(self._unpacked(sort, packed, parcel), parcel, now)
                case _Sort.ACK:
                    return self._acked(self._opened(Ack, sort, packed, parcel, now))
                case _Sort.PING:
                    ping = self._opened(Ping, sort, packed, parcel, now)
                    pong = Pong(
                        by=self._me, to=ping.by, ts=now, key=self._key.public, nonce=ping.nonce, code=self._code
                    )
                    return [Outgoing(ping.by, _packed(_Sort.PONG, spelled(self._signed(pong))))]
                case _Sort.PONG:
                    heard = self._opened(Pong, sort, packed, parcel, now)
                    return [Answered(heard.by, heard.nonce, plain_text(heard.code, LONGEST_CODE))]
        except Malformed as error:
            small = len(parcel.data) <= self._rules.largest_letter  # more is not worth the time a hash takes
            return [Rejected(str(error), parcel.sender, digest(parcel.data) if small else None)]

    def accepted(self, envelope: Envelope, now: int, heard: Heard | None = None) -> Outgoing:
        """A letter is written down: remember it and tell its sender."""
        return self._ack(envelope.from_, self.remember(envelope, heard), now)

    def kept(self, received: Received, now: int) -> tuple[Outgoing, list[Heard]]:
        """A context is kept: tell its sender, and take up the letters that waited for it."""
        self._holds(received.sender, received.digest)
        letters = self._waiting_for(received.digest)
        for one in letters:
            del self._awaiting[one.envelope.from_][one.envelope.id]
        return self._ack(received.sender, received.digest, now), letters

    def heard_before(self, envelope: Envelope) -> bool:
        """Whether its sender has had this very turn in the request: another letter in its place changes nothing."""
        past = self._pasts.get(envelope.from_)
        return past is not None and past.has_turn(envelope.request_id, turn_of(envelope))

    def charge(self, sender: Role, size: int) -> None:
        """Bytes written down here because of what it said: they are its own."""
        past = self._pasts.get(sender)
        if past is not None:
            past.wrote(size)

    def remember(self, envelope: Envelope, heard: Heard | None = None) -> Digest:
        """A letter that was taken in, perhaps before this process began: it is never taken in again."""
        if heard is None:
            body = to_bytes(envelope)
            name, size = digest(body), len(body)
        else:
            name, size = heard.name, heard.size
        until = envelope.expires + SKEW_MS
        past = self._pasts.get(envelope.from_)
        if past is not None:  # else whoever said it has left the table
            past.add(envelope.id, name, envelope.request_id, envelope.seq, until, size, turn_of(envelope))
        return name

    # -- the rules, one by one

    def _envelope(self, sort: _Sort, packed: bytes, parcel: Parcel, now: int) -> list[Event]:
        """Who says it, then whether it is signed, then whether there is room for it, and only then what it says."""
        fronts: list[Front] = []

        def glance(head: bytes) -> None:
            fronts.append(front_of(head))
            self._check_front(fronts[0], sort, parcel, now)

        body = self._unpacked(sort, packed, parcel, glance)
        (front,), back = fronts, back_of(body)
        self._check_back(front, back, now)
        past, name = self._pasts[front.sender], digest(body)
        before = past.name_of(front.id)
        if before == name and sort is _Sort.LETTER:  # its ack was lost, or it asks once more
            return [self._ack(front.sender, name, now), Again(front.sender, front.id, back.request_id)]
        if not self._key.verify(front.key, back.signed, back.signature):
            raise Malformed(f"{front.id} is not signed by its key")
        if before is not None:
            raise Malformed(f"{front.sender} said {front.id} twice, and not the same")
        if sort is _Sort.THOUGHT:
            return [Overheard(_thought(body))]
        if past.passed(back.request_id, back.seq):
            raise Malformed(f"{front.id} is number {back.seq} of {front.sender}, which was passed already")
        if refusal := past.refusal(back.request_id, len(body), now):
            raise Malformed(f"{front.sender} {refusal}")
        return self._believed(Heard(from_bytes(body), name, body), now)

    def _check_front(self, front: Front, sort: _Sort, parcel: Parcel, now: int) -> None:
        self._check_sender(front.sender, front.key, parcel)
        senders, receiver = ROUTES[front.kind]
        if front.sender not in senders:
            raise Malformed(f"{front.sender} may not say {front.kind} to {self._me}")
        if receiver is not self._me:
            raise Malformed(f"a message is for {receiver}, not for {self._me}")
        if (front.kind is Kind.AGENT_THOUGHT) != (sort is _Sort.THOUGHT):
            raise Malformed(f"a {front.kind} came as a {sort.name.lower()}")
        if front.expires + SKEW_MS < now:
            raise Malformed(f"{front.id} expired {now - front.expires} ms ago")

    def _check_back(self, front: Front, back: Back, now: int) -> None:
        if back.to is not self._me:
            raise Malformed(f"a message is for {back.to}, not for {self._me}")
        if front.expires - back.ts > LIFETIME_MS:
            raise Malformed(f"{front.id} wants to be good for {front.expires - back.ts} ms")
        if back.ts - SKEW_MS > now:
            raise Malformed(f"{front.id} is from {back.ts - now} ms ahead")
        if front.id != message_id(back.request_id, front.sender, back.seq):
            raise Malformed(f"{front.id} is not the name of what {front.sender} says there")

    def _believed(self, heard: Heard, now: int) -> list[Event]:
        """A letter with room for it; its context may not be here yet, and then nothing is acknowledged."""
        named = context_of(heard.envelope)
        if named is None or self._content(named) is not None:
            return [heard]
        sender = heard.envelope.from_
        waiting = self._awaiting[sender]
        waiting[heard.envelope.id] = heard
        while len(waiting) > self._rules.waiting_letters or (
            sum(one.size for one in waiting.values()) > self._rules.waiting_bytes
        ):
            waiting.popitem(last=False)
        for early in self._early.values():
            if (content := early.pop(named, None)) is not None:
                return [self._received(sender, named, content, now)]
        return [Wanted(sender, named)]

    def _received(self, sender: Role, name: Digest, content: bytes, now: int) -> Received:
        """On the account of whoever named it."""
        past = self._pasts[sender]
        if refusal := past.too_much(len(content), now):
            raise Malformed(f"{sender} {refusal}")
        past.wrote(len(content))
        return Received(sender, name, content)

    def _waiting_for(self, name: Digest) -> list[Heard]:
        return [
            one for letters in self._awaiting.values() for one in letters.values() if context_of(one.envelope) == name
        ]

    def _bundle(self, content: bytes, parcel: Parcel, now: int) -> list[Event]:
        """A context vouches for itself by its hash; it is kept where a letter that was believed names it."""
        name = digest(content)
        if self._content(name) is not None:
            return [] if parcel.sender is None else [self._ack(parcel.sender, name, now)]
        if letters := self._waiting_for(name):
            return [self._received(letters[0].envelope.from_, name, content, now)]
        early = self._early[parcel.sender]
        early[name] = content  # it overtook its letter
        while len(early) > self._rules.early_contexts or sum(map(len, early.values())) > self._rules.early_bytes:
            early.popitem(last=False)
        return []

    def _acked(self, ack: Ack) -> list[Event]:
        for name in map(Digest, ack.of):
            one = self._pending.pop((ack.by, name), None)
            if one is not None and one.envelope is None:
                self._holds(ack.by, name)
        return []

    def _opened(self, shape: type[F], sort: _Sort, packed: bytes, parcel: Parcel, now: int) -> F:
        try:
            frame = shape.model_validate(decoded(self._unpacked(sort, packed, parcel)))
        except ValidationError:
            raise Malformed(f"this is no {shape.__name__.lower()}") from None
        self._check_sender(frame.by, frame.key, parcel)
        if frame.to is not self._me:
            raise Malformed(f"a message is for {frame.to}, not for {self._me}")
        if abs(frame.ts - now) > SKEW_MS + self._rules.slowest_retry_ms:
            raise Malformed(f"a {shape.__name__.lower()} of {frame.by} is {now - frame.ts} ms old")
        if not self._key.verify(frame.key, frame_signed_part(frame), bytes.fromhex(frame.sig)):
            raise Malformed(f"a {shape.__name__.lower()} of {frame.by} is not signed by its key")
        return frame

    def _check_sender(self, claimed: Role, key: str, parcel: Parcel) -> None:
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

    def _gate(self, sender: Role | None, sort: _Sort | None, now: int) -> bool:
        """Whether it may send one more, whatever it is. What it unpacks to is known afterwards: whoever sent too much
        waits then."""
        thought, rules = sort is _Sort.THOUGHT, self._rules
        rate = rules.thoughts_a_second if thought else rules.letters_a_second
        number = self._gates.setdefault((sender, thought), Allowance(rate, rules.burst, now))
        size = self._unpacking.setdefault(sender, Allowance(rules.bytes_a_second, rules.bytes_burst, now))
        return number.takes(now) and size.has(now)

    def _unpacked(
        self, sort: _Sort, packed: bytes, parcel: Parcel, glance: Callable[[bytes], None] = lambda head: None
    ) -> bytes:
        largest = self._rules.largest(sort)
        if len(packed) > largest:
            raise Malformed(f"a {sort.name.lower()} of {len(packed)} bytes is over the limit of {largest}")
        return _unpacked(sort, packed, largest, glance, self._unpacking[parcel.sender].pay)

    def _past(self) -> Past:
        rules = self._rules
        paper = Allowance(rules.paper_a_second, rules.paper_bytes)
        return Past(rules.requests_of_a_sender, rules.letters_a_request, paper)

    def _holds(self, role: Role, name: Digest) -> None:
        """The other side has that context."""
        held = self._held_by[role]
        held[name] = None
        while len(held) > self._rules.known_contexts:
            held.popitem(last=False)

    def _ack(self, to: Role, name: Digest, now: int) -> Outgoing:
        frame = self._signed(Ack(by=self._me, to=to, ts=now, key=self._key.public, of=(name,)))
        return Outgoing(to, _packed(_Sort.ACK, spelled(frame)))

    def _signed(self, frame: F) -> F:
        return frame.model_copy(update={"sig": self._key.sign(frame_signed_part(frame)).hex()})


def context_of(envelope: Envelope) -> Digest | None:
    """The context a message argues about."""
    payload = envelope.payload
    return Digest(payload.debate.context) if isinstance(payload, Arguing) else None


def _packed(sort: _Sort, body: bytes) -> bytes:
    return _MAGIC + sort.value + zlib.compress(body, 1)


def turn_of(envelope: Envelope) -> tuple[Kind, int]:
    """What a letter is in its debate: of each there is one."""
    payload = envelope.payload
    return envelope.kind, len(payload.debate.rounds) if isinstance(payload, Arguing) else 0


def _sort_of(data: bytes) -> _Sort | None:
    """What sort of message it is; None for what is none."""
    head = len(_MAGIC)
    try:
        return _Sort(data[head : head + 1]) if data.startswith(_MAGIC) else None
    except ValueError:
        return None


def _unpacked(
    sort: _Sort, packed: bytes, largest: int, glance: Callable[[bytes], None], pay: Callable[[int], None]
) -> bytes:
    """`glance` sees the first bytes before the others are unpacked, and may raise. Whatever comes of it is paid for."""
    opener, made = zlib.decompressobj(), 0
    try:
        head = opener.decompress(packed, FRONT_BYTES)
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


def _thought(body: bytes) -> Envelope:
    envelope = from_bytes(body)
    payload = envelope.payload
    if isinstance(payload, AgentThought) and payload.thought.role is not envelope.from_:
        raise Malformed(f"{envelope.from_} thinks aloud as {payload.thought.role}")
    return envelope
