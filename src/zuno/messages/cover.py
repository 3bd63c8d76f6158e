"""What stands outside on a packed envelope: who, to whom, until when and signed how, read before the inside is parsed.

Canonical bytes sort their keys, so the payload stands between a front and a back of known shape. Whoever is nobody, or
has not signed these very bytes, never makes anybody parse them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from zuno.domain.errors import Malformed
from zuno.messages.debate import Kind, Role

FRONT_BYTES: Final = 512
"""More than a front ever takes."""
_BACK_BYTES: Final = 512
_MESSAGE: Final = rb"msg_[0-9a-f]{16}"
_NUMBER: Final = rb"0|[1-9][0-9]{0,15}"
_FRONT: Final = re.compile(
    rb'\{"cause":(?:null|"%b"),"expires":(%b),"from":"([a-z]{1,16})","id":"(%b)","key":"([0-9a-f]{64})",'
    rb'"kind":"([a-z_]{1,32})","payload":\{' % (_MESSAGE, _NUMBER, _MESSAGE)
)
_BACK: Final = re.compile(
    rb'\},"requestId":"(req_[0-9a-f]{16})","seq":(%b),"sig":"([0-9a-f]{128})","to":"([a-z]{1,16})","ts":(%b),'
    rb'"version":1\}\Z' % (_NUMBER, _NUMBER)
)


@dataclass(frozen=True, slots=True)
class Front:
    sender: Role
    key: str
    kind: Kind
    id: str
    expires: int


@dataclass(frozen=True, slots=True)
class Back:
    request_id: str
    seq: int
    to: Role
    ts: int
    signature: bytes
    signed: bytes
    """The bytes the signature covers, if these are an envelope's: all but the signature."""


def front_of(data: bytes) -> Front:
    """Of an envelope's first bytes; `Malformed` for what cannot be one."""
    found = _FRONT.match(data)
    if found is None:
        raise Malformed("this is no envelope: it does not begin like one")
    expires, sender, name, key, kind = found.groups()
    try:
        return Front(Role(sender.decode()), key.decode(), Kind(kind.decode()), name.decode(), int(expires))
    except ValueError:
        raise Malformed("this is no envelope: nobody has such a role, or says such a thing") from None


def back_of(data: bytes) -> Back:
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
    return Back(request_id.decode(), int(seq), role, int(ts), bytes.fromhex(signature.decode()), signed)
