"""The head and tail of an envelope's bytes (sender, key, expiry, signature), read before the payload is parsed.

Canonical bytes sort their keys, so the payload stands between a front and a back of known shape. Sender and
signature are checked before the payload is parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from zuno.kernel.errors import Malformed
from zuno.kernel.wire import FIRST_EDITION
from zuno.lp.model.debate import Kind, Role

FRONT_BYTES: Final = 512
"""More than a front ever takes."""
_BACK_BYTES: Final = 512
_MESSAGE: Final = rb"msg_[0-9a-f]{16}"
_NUMBER: Final = rb"0|[1-9][0-9]{0,15}"
_FRONT: Final = re.compile(
    rb'\{"cause":(?:null|"%b"),(?:"edition":([1-9][0-9]{0,8}),)?"expires":(%b),"from":"([a-z]{1,16})","id":"(%b)",'
    rb'"key":"([0-9a-f]{64})","kind":"([a-z_]{1,32})","payload":\{' % (_MESSAGE, _NUMBER, _MESSAGE)
)
_BACK: Final = re.compile(
    rb'\},"requestId":"(req_[0-9a-f]{16})","seq":(%b),"sig":"([0-9a-f]{128})","to":"([a-z]{1,16})","ts":(%b),'
    rb'"version":1\}\Z' % (_NUMBER, _NUMBER)
)


@dataclass(frozen=True, slots=True)
class EnvelopeHead:
    sender: Role
    key: str
    kind: Kind
    id: str
    expires: int
    edition: int


@dataclass(frozen=True, slots=True)
class EnvelopeTail:
    request_id: str
    seq: int
    to: Role
    ts: int
    signature: bytes
    signed: bytes
    """The bytes the signature covers, if these are an envelope's: all but the signature."""


def parse_head(data: bytes) -> EnvelopeHead:
    """Of an envelope's first bytes; `Malformed` for what cannot be one."""
    found = _FRONT.match(data)
    if found is None:
        raise Malformed("this is no envelope: it does not begin like one")
    edition, expires, sender, name, key, kind = found.groups(b"%d" % FIRST_EDITION)
    try:
        speaker, message_kind = Role(sender.decode()), Kind(kind.decode())
    except ValueError:
        raise Malformed("this is no envelope: nobody has such a role, or says such a thing") from None
    return EnvelopeHead(speaker, key.decode(), message_kind, name.decode(), int(expires), int(edition))


def parse_tail(data: bytes) -> EnvelopeTail:
    """Of an envelope's whole bytes; `Malformed` for what cannot be one."""
    found = _BACK.search(data, max(0, len(data) - _BACK_BYTES))
    if found is None:
        raise Malformed("this is no envelope: it does not end like one")
    request_id, seq, signature, to, ts = found.groups()
    begins, ends = found.span(3)
    try:
        role = Role(to.decode())
    except ValueError:
        raise Malformed("this is no envelope: nobody has such a role") from None
    signed = data[:begins] + data[ends:]
    return EnvelopeTail(request_id.decode(), int(seq), role, int(ts), bytes.fromhex(signature.decode()), signed)
