"""Test keys, derived from public labels: anyone can compute them, so never fund them on another chain."""

from __future__ import annotations

from functools import cache

from eth_hash.auto import keccak
from eth_keys.datatypes import PrivateKey


@cache
def dev_key(role: str) -> PrivateKey:
    """The private key of a role."""
    return PrivateKey(keccak(f"zuno devnet {role}".encode()))


def dev_address(role: str) -> bytes:
    address: bytes = dev_key(role).public_key.to_canonical_address()
    return address
