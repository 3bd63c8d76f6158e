"""Yggdrasil's addresses: as much of a node's public key as fits an IPv6 address.

AXL knows a sender by its address alone, and hands out a key rebuilt from it with the missing end filled up. Such a key
never equals the real one; both derive the same address.
"""

from __future__ import annotations

KEY_BYTES = 32
_KEY_BITS = 8 * KEY_BYTES
_KEPT_BITS = 112
_ALL = (1 << _KEY_BITS) - 1


def overlay_address(key: bytes) -> bytes:
    """The 16 bytes a node with this ed25519 public key is reached by.

    0x02; the count of leading zeros of the key; then, every bit turned over, the 112 bits behind the first one.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, this one {len(key)}")
    number = int.from_bytes(key, "big")
    zeros = _KEY_BITS - number.bit_length()
    behind = ((number ^ _ALL) << (zeros + 1)) & _ALL
    return bytes((0x02, zeros & 0xFF)) + (behind >> (_KEY_BITS - _KEPT_BITS)).to_bytes(_KEPT_BITS // 8, "big")
