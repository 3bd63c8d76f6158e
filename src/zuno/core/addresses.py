"""Addresses as people compare them: mixed case that carries a checksum (EIP-55)."""

from __future__ import annotations

from eth_hash.auto import keccak

from zuno.domain.units import Address


def checksummed(address: Address) -> str:
    """The address in the case that its own hash gives it."""
    digits = address.lower().removeprefix("0x")
    nibbles = keccak(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if nibble >= "8" else digit for digit, nibble in zip(digits, nibbles, strict=False)
    )


def mistyped(text: str) -> bool:
    """An address in mixed case whose checksum is wrong; all lower or all upper case claims none."""
    digits = text.removeprefix("0x")
    return digits not in (digits.lower(), digits.upper()) and text != checksummed(Address(text.lower()))
