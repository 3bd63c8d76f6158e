"""An envelope's outside is what its inside says, and the quick way of spelling it is the long one's."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.kernel.canonical import canonical, encode_model
from zuno.kernel.errors import Malformed
from zuno.kernel.wire import Wire
from zuno.lp.mesh.envelope import FRONT_BYTES, Envelope, insert_signature, parse_head, parse_tail, signed_part, to_bytes
from zuno.lp.model.ballot import Verdict
from zuno.lp.model.debate import FlowFailed, Kind, Role

Spoken = tuple[KeyFile, dict[Kind, Envelope]]


def test_front_and_back_say_what_the_envelope_says(spoken: Spoken) -> None:
    key, envelopes = spoken
    for envelope in envelopes.values():
        data = to_bytes(envelope)
        front, back = parse_head(data[:FRONT_BYTES]), parse_tail(data)
        told = (envelope.from_, envelope.key, envelope.kind, envelope.id, envelope.expires)
        assert (front.sender, front.key, front.kind, front.id, front.expires) == told
        assert (back.request_id, back.seq, back.to, back.ts) == (
            envelope.request_id,
            envelope.seq,
            envelope.to,
            envelope.ts,
        )
        assert back.signed == signed_part(envelope)
        assert key.verify(front.key, back.signed, back.signature)
        assert insert_signature(back.signed, envelope.sig) == data


def test_words_that_look_like_an_outside_are_inside(spoken: Spoken) -> None:
    """A reason that quotes the end of an envelope, signature and all."""
    envelope = spoken[1][Kind.FLOW_FAILED]
    quoted = to_bytes(envelope)[-400:].decode() + '"sig":""'
    payload = FlowFailed(at=Role.SCOUT, error="broken", reason=quoted)
    quoting = envelope.model_copy(update={"payload": payload})
    assert parse_tail(to_bytes(quoting)).signed == signed_part(quoting)
    assert insert_signature(signed_part(quoting), quoting.sig) == to_bytes(quoting)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"from":"cli"', b'"from":"owner"'),
        (b'"kind":"flow_start"', b'"kind":"flow_stop"'),
        (b'"cause":null', b'"cause":""'),
        (b'{"cause"', b' {"cause"'),
        (b'"expires":1', b'"expires":01'),
    ],
)
def test_what_does_not_begin_like_an_envelope(spoken: Spoken, old: bytes, new: bytes) -> None:
    data = to_bytes(spoken[1][Kind.FLOW_START])
    assert old in data
    with pytest.raises(Malformed, match="envelope"):
        parse_head(data.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"to":"scout"', b'"to":"owner"'),
        (b'"version":1}', b'"version":2}'),
        (b'"version":1}', b'"version":1} '),
        (b'"version":1}', b'"version":1}\n'),
        (b'"sig":"', b'"sig":"0'),
    ],
)
def test_what_does_not_end_like_one(spoken: Spoken, old: bytes, new: bytes) -> None:
    data = to_bytes(spoken[1][Kind.FLOW_START])
    assert old in data
    with pytest.raises(Malformed, match="envelope"):
        parse_tail(data.replace(old, new, 1))


class Number(IntEnum):
    ONE = 1


class Held(Wire):
    whole: int
    share: Fraction
    price: Decimal
    real: float
    word: str
    seen: tuple[str | None, ...]
    verdict: Verdict
    number: Number
    sure: bool


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(
    whole=st.integers(-(2**256) + 1, 2**256 - 1) | st.integers(-9, 9),
    share=st.fractions(),
    price=st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=12),
    real=st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, -0.05]),
    word=st.text(st.characters(exclude_categories=["Cs"])),
    seen=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=4),
)
def test_the_quick_spelling_is_the_long_one(
    whole: int, share: Fraction, price: Decimal, real: float, word: str, seen: list[str | None]
) -> None:
    held = Held(
        whole=whole, share=share, price=price, real=real, word=word, seen=tuple(seen), verdict=Verdict.VETO,
        number=Number.ONE, sure=True,
    )  # fmt: skip
    assert encode_model(held) == canonical(held)


def test_and_so_it_is_for_every_kind_of_message(spoken: Spoken) -> None:
    assert all(to_bytes(envelope) == canonical(envelope) for envelope in spoken[1].values())


@pytest.mark.parametrize("whole", [2**256, -(2**256), 10**100])
def test_a_number_without_a_spelling_has_none_either_way(whole: int) -> None:
    held = Held.model_construct(whole=whole)  # type: ignore[call-arg]
    for spelling in (canonical, encode_model):
        with pytest.raises(ValueError, match="256 bits"):
            spelling(held)
