"""A key's address in Yggdrasil, and that a key rebuilt from an address has the same one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.wire.axl_node import address_of, rebuilt
from zuno.adapters.transport.axl import overlay_address

KEYS = st.one_of(
    st.binary(min_size=32, max_size=32),
    # Keys that begin with many zeros are what the count in the second byte is for.
    st.builds(lambda zeros, rest: bytes(zeros) + rest[zeros:], st.integers(0, 31), st.binary(min_size=32, max_size=32)),
).filter(any)


@pytest.mark.parametrize(
    ("key", "address"),
    [
        # No zero in front: the one is skipped, the other bits turned over.
        ("80" + "00" * 31, "0200" + "ff" * 14),
        ("ff" * 32, "0200" + "00" * 14),
        # A zero and a one in front are both left out.
        ("40" + "00" * 31, "0201" + "ff" * 14),
        # 8 zeros, then 0b1010_0101: the bits behind its first one are 010_0101, turned over 101_1010.
        ("00a5" + "ff" * 30, "0208" + "b4" + "00" * 13),
        # 255 zeros: nothing is left behind the last bit.
        ("00" * 31 + "01", "02ff" + "00" * 14),
        # The vector of Yggdrasil's own test.
        ("bdbacfd82240de3dcd123924cbb55256fb8dab08aa98e305528ab84f419e6efb", "0200848a604fbb7e438465db8db66895"),
    ],
)
def test_the_address_of_a_key(key: str, address: str) -> None:
    assert overlay_address(bytes.fromhex(key)).hex() == address


@given(KEYS)
def test_it_is_what_the_bits_written_out_say(key: bytes) -> None:
    assert overlay_address(key).hex() == address_of(key.hex())


@given(KEYS)
def test_a_rebuilt_key_is_another_key_with_the_same_address(key: bytes) -> None:
    again = rebuilt(address_of(key.hex()))
    assert overlay_address(bytes.fromhex(again)) == overlay_address(key)
    zeros = 256 - int.from_bytes(key, "big").bit_length()
    assert f"{int(again, 16):0256b}"[: zeros + 113] == f"{int.from_bytes(key, 'big'):0256b}"[: zeros + 113]


@given(KEYS, st.integers(0, 255))
def test_every_bit_that_fits_counts_and_no_other_does(key: bytes, at: int) -> None:
    number = int.from_bytes(key, "big")
    turned = number ^ (1 << (255 - at))
    assume(turned)
    kept = 256 - number.bit_length() + 113
    assert (overlay_address(turned.to_bytes(32, "big")) != overlay_address(key)) == (at < kept)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match=f"32 bytes.*{size}"):
        overlay_address(bytes(size))
