"""A peer at work: take a message, journal it, let the peer answer, sign and send what it says."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.signing import NodeKey
from zuno.kernel.text import plain_text
from zuno.lp.mesh.delivery import LIFETIME_MS
from zuno.lp.mesh.envelope import (
    LONGEST_TEXT,
    Envelope,
    from_bytes,
    insert_signature,
    message_id,
    parse_tail,
    signed_part,
)
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import Arguing, FlowFailed, Role

Now = Callable[[], int]
"""Unix milliseconds."""


@dataclass(slots=True)
class EnvelopeSigner:
    """Builds and signs a role's envelopes; ids follow from the request, the role and the count."""

    role: Role
    key: NodeKey
    now: Now
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def envelope(self, request_id: str, say: OutgoingMessage, cause: str | None) -> Envelope:
        return self.sign_message(request_id, say, cause)[0]

    def sign_message(
        self, request_id: str, say: OutgoingMessage, cause: str | None, edition: int = EDITION
    ) -> tuple[Envelope, bytes]:
        """The envelope, and its bytes as they travel."""
        seq = self.counts[request_id]
        self.counts[request_id] = seq + 1
        at = self.now()
        unsigned = Envelope.model_construct(
            request_id=request_id,
            from_=self.role,
            to=say.to,
            kind=say.payload.kind,
            payload=say.payload,
            ts=at,
            id=message_id(request_id, self.role, seq),
            version=1,
            edition=edition,
            seq=seq,
            cause=cause,
            expires=at + LIFETIME_MS,
            key=self.key.public,
            sig="",
        )
        signed = signed_part(unsigned)
        signature = self.key.sign(signed).hex()
        return unsigned.model_copy(update={"sig": signature}), insert_signature(signed, signature)


async def journal_envelope(journal: Journal, envelope: Envelope, body: bytes | None = None) -> None:
    """A message goes into the journal before it goes out. The context it argues about is named by the entry itself, so
    that whoever checks the journal misses the bundle if it is gone."""
    payload = envelope.payload
    await journal.append(
        kind=envelope.kind.value,
        author=Author(envelope.from_.value, envelope.key),
        payload=envelope if body is None else json.loads(body),  # what was spelled once need not be lowered again
        request_id=envelope.request_id,
        bundle=Digest(payload.debate.context) if isinstance(payload, Arguing) else None,
    )


def open_envelope(data: bytes, key: NodeKey, me: Role, now: int) -> Envelope:
    """The envelope, if it is for `me`, has not expired and is signed by the key it names. Else `Malformed`."""
    envelope = from_bytes(data)
    if envelope.to is not me:
        raise Malformed(f"{envelope.id} is for {envelope.to}, not for {me}")
    if envelope.expires < now:
        raise Malformed(f"{envelope.id} expired {now - envelope.expires} ms ago")
    tail = parse_tail(data)
    if not key.verify(envelope.key, tail.signed, tail.signature):
        raise Malformed(f"{envelope.id} is not signed by its key")
    return envelope


def flow_failure(role: Role, error: ZunoError) -> FlowFailed:
    branches = {UsageError: "usage", Refused: "refused", Unavailable: "unavailable"}
    kind = next((name for branch, name in branches.items() if isinstance(error, branch)), "broken")
    return FlowFailed(at=role, error=kind, reason=plain_text(str(error), LONGEST_TEXT))
