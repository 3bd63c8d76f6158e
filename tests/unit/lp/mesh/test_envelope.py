"""The envelope: exactly its fields, one spelling, and no byte that can be changed unnoticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.kernel.canonical import canonical, decode_canonical, digest
from zuno.kernel.errors import Malformed
from zuno.lp.mesh.envelope import Envelope, from_bytes, signed_part, to_bytes
from zuno.lp.mesh.message_handler import open_envelope
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import FlowStart, Kind, Role

Spoken = tuple[KeyFile, dict[Kind, Envelope]]

THE_SEEDS = {"requestId", "from", "to", "kind", "payload", "ts"}
OURS = {"id", "version", "edition", "seq", "cause", "expires", "key", "sig"}

GOLDEN = Envelope(
    request_id="req_0123456789abcdef",
    from_=Role.CLI,
    to=Role.SCOUT,
    kind=Kind.FLOW_START,
    payload=FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2),
    ts=1_700_000_000_000,
    id="msg_00112233445566ff",
    seq=0,
    cause=None,
    expires=1_700_000_900_000,
    key="ab" * 32,
    sig="cd" * 64,
)


@pytest.mark.slow
def test_the_fields_are_the_seeds_and_ours_and_no_others(spoken: Spoken) -> None:
    for envelope in spoken[1].values():
        assert set(document(envelope)) == THE_SEEDS | OURS


def test_golden_bytes() -> None:
    """Peers of other versions read these bytes: a change here is a new `version`."""
    data = to_bytes(GOLDEN)
    assert data == (
        b'{"cause":null,"expires":1700000900000,"from":"cli","id":"msg_00112233445566ff","key":"' + b"ab" * 32 + b'",'
        b'"kind":"flow_start","payload":{"chain":"sim","kind":"flow_start","maxRounds":2,"positionId":1,'
        b'"profile":"balanced"},"requestId":"req_0123456789abcdef","seq":0,"sig":"' + b"cd" * 64 + b'",'
        b'"to":"scout","ts":1700000000000,"version":1}'
    )
    assert digest(data) == "27d5c7f71a0090811c753f93b6bcbeb65aec9d572df3fad5c83bda2fae559dda"


def test_the_signature_covers_everything_but_itself() -> None:
    assert decode_canonical(signed_part(GOLDEN)) == {**document(GOLDEN), "sig": ""}


def document(envelope: Envelope) -> dict[str, Any]:
    found = decode_canonical(to_bytes(envelope))
    assert isinstance(found, dict)
    return found


def believed(data: bytes, key: KeyFile, to: Role, now: int = 0) -> bool:
    try:
        open_envelope(data, key, to, now)
    except Malformed:
        return False
    return True


@pytest.mark.slow
def test_what_was_signed_is_believed(spoken: Spoken) -> None:
    key, envelopes = spoken
    for envelope in envelopes.values():
        assert believed(to_bytes(envelope), key, envelope.to)
        assert believed(to_bytes(envelope), key, envelope.to, envelope.expires)
        assert not believed(to_bytes(envelope), key, envelope.to, envelope.expires + 1)


def test_it_is_only_for_the_one_it_names(spoken: Spoken) -> None:
    key, envelopes = spoken
    assert not believed(to_bytes(envelopes[Kind.PROPOSAL]), key, Role.ARBITER)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_byte_can_be_changed(spoken: Spoken, data: st.DataObject) -> None:
    key, envelopes = spoken
    envelope = envelopes[data.draw(st.sampled_from(sorted(envelopes)))]
    whole = bytearray(to_bytes(envelope))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    assert not believed(bytes(whole), key, envelope.to)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_byte_can_be_left_out_or_added(spoken: Spoken, data: st.DataObject) -> None:
    key, envelopes = spoken
    envelope = envelopes[data.draw(st.sampled_from(sorted(envelopes)))]
    whole = to_bytes(envelope)
    place = data.draw(st.integers(0, len(whole) - 1))
    assert not believed(whole[:place] + whole[place + 1 :], key, envelope.to)
    added = bytes([data.draw(st.integers(0, 255))])
    longer = whole[:place] + added + whole[place:]
    assert not believed(longer, key, envelope.to)


def test_another_key_cannot_sign_for_this_one(spoken: Spoken, tmp_path: Any) -> None:
    key, envelopes = spoken
    stranger = KeyFile(tmp_path / "stranger.key")
    stranger.ensure()
    said = envelopes[Kind.PROPOSAL]
    forged = said.model_copy(update={"sig": stranger.sign(signed_part(said)).hex()})
    assert not believed(to_bytes(forged), key, said.to)
    assert not believed(to_bytes(said.model_copy(update={"sig": ""})), key, said.to)


HARM: dict[str, Callable[[dict[str, Any]], Any]] = {
    "the payload of another kind": lambda one: one.update(kind="critique"),
    "an unknown kind": lambda one: one.update(kind="gossip"),
    "a field too many": lambda one: one.update(extra=1),
    "a field too many in the payload": lambda one: one["payload"].update(confidence=1.0),
    "a field too few": lambda one: one.pop("cause"),
    "a field by its Python name": lambda one: one.update(request_id=one.pop("requestId")),
    "no payload": lambda one: one.pop("payload"),
    "a payload that is a list": lambda one: one.update(payload=[]),
    "a number as text": lambda one: one.update(seq="0"),
    "a number with a point": lambda one: one.update(seq=0.0),
    "a truth for a number": lambda one: one.update(seq=False),
    "a number as text in the payload": lambda one: one["payload"].update(positionId="1"),
    "a time before time": lambda one: one.update(ts=-1),
    "another version": lambda one: one.update(version=2),
    "an unknown role": lambda one: one.update(to="auditor"),
    "an id that could be a path": lambda one: one.update(requestId="req_../../../etc"),
    "an id with a newline": lambda one: one.update(requestId="req_0123456789abcdef\n"),
    "a key in capitals": lambda one: one.update(key="AB" * 32),
    "a signature cut short": lambda one: one.update(sig="cd" * 63),
    "position nought": lambda one: one["payload"].update(positionId=0),
    "more rounds than allowed": lambda one: one["payload"].update(maxRounds=11),
    "an unknown profile": lambda one: one["payload"].update(profile="reckless"),
}


@pytest.mark.parametrize("name", HARM)
def test_what_is_no_envelope_is_malformed(name: str) -> None:
    one = document(GOLDEN)
    HARM[name](one)
    with pytest.raises(Malformed):
        from_bytes(canonical(one))


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "with spaces": lambda data: json.dumps(json.loads(data)).encode(),
    "in another order": lambda data: json.dumps(
        dict(reversed(json.loads(data).items())), separators=(",", ":")
    ).encode(),
    "with a newline at its end": lambda data: data + b"\n",
    "with a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "in UTF-16": lambda data: data.decode().encode("utf-16"),
    "with an escape nobody needs": lambda data: data.replace(b'"sim"', b'"\\u0073im"'),
    "with a field given twice": lambda data: data.replace(b'"seq":0', b'"seq":0,"seq":0'),
    "with NaN": lambda data: data.replace(b'"seq":0', b'"seq":NaN'),
    "with infinity": lambda data: data.replace(b'"seq":0', b'"seq":1e999'),
    "with an exponent": lambda data: data.replace(b'"seq":0', b'"seq":0e0'),
    "with minus nought": lambda data: data.replace(b'"seq":0', b'"seq":-0'),
    "cut": lambda data: data[:-1],
    "twice": lambda data: data + data,
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_another_spelling_is_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        from_bytes(SPELLINGS[name](to_bytes(GOLDEN)))


MEGABYTES = 10 * 1024 * 1024


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff" * MEGABYTES,
        b"[" * MEGABYTES,
        b"1" * MEGABYTES,
        b'{"a":' * (MEGABYTES // 5),
        b'"' + b"x" * MEGABYTES + b'"',
    ],
    ids=["no text", "brackets", "digits", "nesting", "one long word"],
)
def test_ten_megabytes_of_garbage_are_malformed(garbage: bytes) -> None:
    with pytest.raises(Malformed):
        from_bytes(garbage)
