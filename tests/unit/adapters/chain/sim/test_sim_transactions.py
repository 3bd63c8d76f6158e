"""Signed bytes as sim reads them: what every library would read, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from eth_account import Account
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.chain.sim.transactions import parse_transaction
from zuno.adapters.chain.world import OTHERS, SIM, WALLET
from zuno.kernel.errors import Refused
from zuno.lp.ports.spending import Call
from zuno_devnet.keys import dev_key

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
TO = "0x" + "12" * 20


def signed_with_hash(**other: Any) -> tuple[bytes, str]:
    fields = {
        "type": 2,
        "chainId": SIM.id,
        "nonce": 5,
        "maxPriorityFeePerGas": 1,
        "maxFeePerGas": 2,
        "gas": 21_000,
        "to": bytes.fromhex(TO[2:]),
        "value": 0,
        "data": b"",
        **other,
    }
    done = Account.sign_transaction(fields, dev_key("wallet").to_bytes())
    return bytes(done.raw_transaction), "0x" + bytes(done.hash).hex()


def signed(**other: Any) -> bytes:
    return signed_with_hash(**other)[0]


@pytest.mark.soak
@settings(max_examples=examples(40), deadline=None)
@given(
    nonce=st.integers(0, 2**64 - 1),
    value=st.integers(0, 2**200),
    gas=st.integers(0, 2**64 - 1),
    fee=st.integers(0, 2**100),
    data=st.one_of(st.binary(max_size=80), st.binary(min_size=60_000, max_size=70_000)),
)
def test_every_field_is_read_as_it_was_signed(nonce: int, value: int, gas: int, fee: int, data: bytes) -> None:
    raw, known_by = signed_with_hash(
        nonce=nonce, value=value, gas=gas, maxFeePerGas=fee, maxPriorityFeePerGas=fee // 2, data=data
    )
    tx = parse_transaction(raw, SIM.id)
    assert (tx.sender, tx.nonce, tx.gas, tx.max_fee, tx.tip) == (WALLET, nonce, gas, fee, fee // 2)
    assert tx.call == Call(TO, value, data)  # type: ignore[arg-type]
    assert tx.cost == gas * fee + value
    assert tx.hash == known_by
    assert parse_transaction(raw, SIM.id, OTHERS).sender == OTHERS, "who signed is not recovered again"


@pytest.mark.parametrize("at", range(0, 107, 3))
@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_a_changed_byte_is_refused_or_somebody_elses(at: int, flip: int) -> None:
    raw = bytearray(signed())
    raw[at % len(raw)] ^= flip
    try:
        tx = parse_transaction(bytes(raw), SIM.id)
    except Refused:
        return
    assert tx.sender != WALLET


def test_bytes_cut_short_or_drawn_out_are_refused() -> None:
    raw = signed(data=b"x" * 300)
    for cut in range(len(raw)):
        with pytest.raises(Refused):
            parse_transaction(raw[:cut], SIM.id)
    with pytest.raises(Refused, match=r"\bafter\b"):
        parse_transaction(raw + b"\0", SIM.id)


def test_what_is_no_transaction_of_ours_is_refused() -> None:
    with pytest.raises(Refused, match="have 1 want 31337"):
        parse_transaction(signed(chainId=1), SIM.id)
    with pytest.raises(Refused, match="contract"):
        parse_transaction(signed(to=b""), SIM.id)
    with pytest.raises(Refused, match="access"):
        parse_transaction(signed(accessList=[{"address": TO, "storageKeys": []}]), SIM.id)
    legacy = {"nonce": 0, "gasPrice": 1, "gas": 21_000, "to": bytes.fromhex(TO[2:]), "value": 0, "chainId": SIM.id}
    old = bytes(Account.sign_transaction(legacy, dev_key("wallet").to_bytes()).raw_transaction)
    with pytest.raises(Refused, match="EIP-1559"):
        parse_transaction(old, SIM.id)
    with pytest.raises(Refused):
        parse_transaction(b"\x02" + b"\xf9" * 5000, SIM.id)


def test_the_other_signature_of_the_same_words_is_refused() -> None:
    """Every signature has a twin with a large s; taken, one transaction would have two hashes."""
    raw = signed()
    assert raw[-33] == 0xA0
    s = int.from_bytes(raw[-32:], "big")
    parity = raw[-67]
    twin = raw[:-67] + bytes([0x80 if parity == 1 else 1]) + raw[-66:-32] + (ORDER - s).to_bytes(32, "big")
    with pytest.raises(Refused, match="v, r, s"):
        parse_transaction(twin, SIM.id)


def test_what_could_be_written_shorter_is_refused() -> None:
    """One transaction, one spelling: otherwise the same words would have several hashes."""
    tail = bytes([0x01, 0x02, 0x80, 0x94]) + b"\x12" * 20 + bytes([0x80, 0x80, 0xC0, 0x01, 0x01, 0x01])
    chain = bytes([0x82]) + SIM.id.to_bytes(2, "big")

    def whole(nonce: bytes) -> bytes:
        body = chain + nonce + tail
        return b"\x02" + bytes([0xC0 + len(body)]) + body

    assert parse_transaction(whole(b"\x05"), SIM.id, WALLET).nonce == 5
    for spelling, word in (
        (b"\x81\x05", "a byte is not"),
        (b"\x00", "a number is not"),
        (b"\x82\x00\x05", "a number is not"),
        (b"\xb8\x01\x05", "a length is not"),
        (b"\xb9\x00\x01\x05", "a length is not"),
        (b"\xc1\x05", "a list where a value"),
    ):
        with pytest.raises(Refused, match=word):
            parse_transaction(whole(spelling), SIM.id, WALLET)
