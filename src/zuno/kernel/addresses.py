"""EIP-55 checksums of addresses."""

from __future__ import annotations

from eth_hash.auto import keccak

from zuno.kernel.units import Address


def checksum_address(address: Address) -> str:
    """The address in EIP-55 mixed case."""
    digits = address.lower().removeprefix("0x")
    nibbles = keccak(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if nibble >= "8" else digit for digit, nibble in zip(digits, nibbles, strict=False)
    )


def has_wrong_checksum(text: str) -> bool:
    """Whether a mixed-case address has a wrong checksum. All lower or all upper case has none to check."""
    digits = text.removeprefix("0x")
    return digits not in (digits.lower(), digits.upper()) and text != checksum_address(Address(text.lower()))
