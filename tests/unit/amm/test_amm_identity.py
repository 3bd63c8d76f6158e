"""Identities by example; equality with the contracts' own storage is in tests/differential."""

from __future__ import annotations

from eth_abi.abi import encode
from eth_abi.packed import encode_packed
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm import identity
from zuno.amm.pool import Slot0

int24 = st.integers(-(1 << 23), (1 << 23) - 1)
uint24 = st.integers(0, (1 << 24) - 1)


@given(st.integers(0, (1 << 160) - 1), int24, uint24, uint24)
def test_slot0_unpacks_what_was_packed(price: int, tick: int, protocol_fee: int, lp_fee: int) -> None:
    word = lp_fee << 208 | protocol_fee << 184 | (tick & 0xFFFFFF) << 160 | price
    assert identity.unpack_slot0(word) == Slot0(price, tick, protocol_fee, lp_fee)


@given(st.binary(min_size=25, max_size=25), int24, int24, st.booleans())
def test_position_info_unpacks_what_was_packed(prefix: bytes, lower: int, upper: int, subscribed: bool) -> None:
    word = int.from_bytes(prefix, "big") << 56 | (upper & 0xFFFFFF) << 32 | (lower & 0xFFFFFF) << 8 | subscribed
    assert identity.decode_position_info(word) == identity.PositionManagerInfo(
        "0x" + prefix.hex(), lower, upper, subscribed
    )


def test_all_five_parts_of_a_key_count() -> None:
    key = ("0x" + "00" * 20, "0x" + "11" * 20, 3000, 60, "0x" + "00" * 20)
    others = [
        ("0x" + "01" * 20, *key[1:]),
        (key[0], "0x" + "12" * 20, *key[2:]),
        (*key[:2], 500, *key[3:]),
        (*key[:3], 10, key[4]),
        (*key[:4], "0x" + "40" * 20),
    ]
    ids = {identity.pool_id(*each) for each in (key, *others)}
    assert len(ids) == 6
    assert all(len(each) == 66 for each in ids)


def test_all_four_parts_of_a_position_count() -> None:
    owner = "0x" + "ab" * 20
    keys = {
        identity.position_key(owner, -60, 60, 0),
        identity.position_key(owner, -60, 60, 1),
        identity.position_key(owner, -60, 120, 0),
        identity.position_key(owner, -120, 60, 0),
        identity.position_key("0x" + "ac" * 20, -60, 60, 0),
    }
    assert len(keys) == 5
    assert identity.position_key(owner.upper().replace("X", "x"), -60, 60, 0) in keys


addresses = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())


@given(addresses, addresses, uint24, int24, addresses)
def test_a_pool_id_is_the_hash_of_the_abi_encoded_key(
    first: str, second: str, fee: int, spacing: int, hooks: str
) -> None:
    encoded = encode(["address", "address", "uint24", "int24", "address"], [first, second, fee, spacing, hooks])
    assert identity.pool_id(first, second, fee, spacing, hooks) == "0x" + keccak(encoded).hex()


@given(addresses, int24, int24, st.integers(0, (1 << 256) - 1))
def test_a_position_key_is_the_hash_of_its_packed_parts(owner: str, lower: int, upper: int, salt: int) -> None:
    packed = encode_packed(["address", "int24", "int24", "bytes32"], [owner, lower, upper, salt.to_bytes(32, "big")])
    assert identity.position_key(owner, lower, upper, salt) == "0x" + keccak(packed).hex()
