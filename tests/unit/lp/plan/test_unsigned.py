"""What other signers are handed: bytes that an Ethereum library signs as its own, and a file a Safe takes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
import rlp as vendor
from eth_account import Account
from eth_hash.auto import keccak
from hypothesis import example, given
from hypothesis import strategies as st

from zuno.kernel.units import Address, Millis
from zuno.lp.plan.unsigned import build_unsigned, checksum_address, has_wrong_checksum, rlp, safe_batch, safe_checksum

WALLET = Address("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed")
TOKEN = Address("0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359")
KEY = "0x" + "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"


@dataclass(frozen=True)
class Call:
    to: Address
    value: int
    data: bytes


APPROVE = Call(TOKEN, 0, bytes.fromhex("095ea7b3") + bytes(64))
PAY = Call(WALLET, 10**18, b"")
nested = st.recursive(st.binary(max_size=80), lambda inner: st.lists(inner, max_size=60), max_leaves=80)


def test_addresses_carry_their_checksum() -> None:
    """Of EIP-55 itself."""
    for known in (
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "0xde709f2102306220921060314715629080e2fb77",
    ):
        assert checksum_address(Address(known.lower())) == known
        assert not has_wrong_checksum(known)
        assert not has_wrong_checksum(known.lower())
    assert has_wrong_checksum("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed")
    assert has_wrong_checksum("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAee")


@pytest.mark.slow
@given(nested)
@example(b"\x7f")
@example(b"\x80")
@example(b"\x00")
@example(bytes(55))
@example(bytes(56))
@example([bytes(54)])
@example([bytes(55)])
def test_rlp_is_what_the_library_writes(item: object) -> None:
    assert rlp(item) == vendor.encode(item)  # type: ignore[arg-type]


@pytest.mark.slow
@given(
    st.integers(0, 2**64), st.integers(0, 2**64 - 1), st.integers(0, 2**96), st.binary(max_size=300), st.integers(0, 9)
)
def test_the_bytes_are_those_a_signer_would_sign(chain: int, nonce: int, value: int, data: bytes, tip: int) -> None:
    shown = build_unsigned(
        chain_id=chain, wallet=WALLET, nonce=nonce, call=Call(TOKEN, value, data), gas=21_000, max_fee=10, tip=tip
    )
    fields = shown.model_dump(by_alias=True, exclude={"serialized", "signing_hash", "from_"})
    signed = Account.sign_transaction(fields, KEY)
    raw = vendor.decode(bytes(signed.raw_transaction)[1:])
    assert shown.serialized == "0x02" + vendor.encode(raw[:9]).hex()
    assert shown.signing_hash == "0x" + keccak(bytes.fromhex(shown.serialized[2:])).hex()


def test_the_fields_have_their_public_names() -> None:
    shown = build_unsigned(chain_id=8453, wallet=WALLET, nonce=7, call=APPROVE, gas=60_000, max_fee=2_000, tip=3)
    assert shown.model_dump(by_alias=True) | {"serialized": "", "signingHash": ""} == {
        "type": "0x2",
        "chainId": "0x2105",
        "from": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "nonce": "0x7",
        "to": "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "value": "0x0",
        "data": "0x095ea7b3" + "00" * 64,
        "gas": "0xea60",
        "maxFeePerGas": "0x7d0",
        "maxPriorityFeePerGas": "0x3",
        "serialized": "",
        "signingHash": "",
    }


def batch(name: str = "Rebalance of 1", description: str = "größer") -> dict[str, object]:
    made = safe_batch(
        chain_id=42161,
        wallet=WALLET,
        calls=(APPROVE, PAY),
        created_at=Millis(1_761_326_849_944),
        name=name,
        description=description,
    )
    document: dict[str, object] = json.loads(made.model_dump_json(by_alias=True))
    return document


def test_a_safe_batch_has_the_builders_shape() -> None:
    document = batch()
    assert document == {
        "version": "1.0",
        "chainId": "42161",
        "createdAt": 1_761_326_849_944,
        "meta": {
            "name": "Rebalance of 1",
            "description": "größer",
            "txBuilderVersion": "1.18.2",
            "createdFromSafeAddress": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "createdFromOwnerAddress": "",
            "checksum": document["meta"]["checksum"],  # type: ignore[index]
        },
        "transactions": [
            {
                "to": "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
                "value": "0",
                "data": "0x095ea7b3" + "00" * 64,
                "contractMethod": None,
                "contractInputsValues": None,
            },
            {
                "to": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
                "value": "1000000000000000000",
                "data": "0x",
                "contractMethod": None,
                "contractInputsValues": None,
            },
        ],
    }


def test_the_checksum_is_the_builders() -> None:
    """Written out by hand: names sorted and listed, then the values, each with a comma; the name counts as null."""
    transaction = (
        '{{["contractInputsValues","contractMethod","data","to","value"]null,null,"{data}","{to}","{value}",}}'
    )
    first = transaction.format(
        data="0x095ea7b3" + "00" * 64, to="0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", value="0"
    )
    second = transaction.format(data="0x", to="0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", value=str(10**18))
    text = (
        '{["chainId","createdAt","meta","transactions","version"]"42161",1761326849944,'
        '{["createdFromOwnerAddress","createdFromSafeAddress","description","name","txBuilderVersion"]'
        '"","0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","größer",null,"1.18.2",},'
        f'[{first},{second}],"1.0",}}'
    )
    expected = "0x" + keccak(text.encode()).hex()
    assert batch()["meta"]["checksum"] == expected  # type: ignore[index]
    assert batch(name="another name")["meta"]["checksum"] == expected, "a batch may be renamed"  # type: ignore[index]
    assert batch(description="another")["meta"]["checksum"] != expected  # type: ignore[index]


def test_a_checksum_can_be_checked_again() -> None:
    made = safe_batch(chain_id=1, wallet=WALLET, calls=(PAY,), created_at=Millis(0), name="one", description="payment")
    assert safe_checksum(made) == made.meta.checksum
