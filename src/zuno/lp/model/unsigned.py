"""Transactions for somebody else's signer, in the words that other wallets read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from zuno.kernel.wire import Wire


class UnsignedTransaction(Wire):
    """EIP-1559 in the names and the hex of JSON-RPC, and the same as bytes."""

    type: Literal["0x2"] = "0x2"
    chain_id: str
    from_: str = Field(alias="from")
    nonce: str
    to: str
    value: str
    data: str
    gas: str
    max_fee_per_gas: str
    max_priority_fee_per_gas: str
    serialized: str
    """0x02 and the fields as RLP: what an offline signer takes."""
    signing_hash: str
    """What is signed, for a screen to compare."""


class SafeMeta(Wire):
    name: str
    description: str
    tx_builder_version: str
    created_from_safe_address: str
    created_from_owner_address: str = ""
    checksum: str


class SafeTransaction(Wire):
    """Raw bytes: without a method the builder shows and sends `data` as it is."""

    to: str
    value: str
    """Wei, in decimal."""
    data: str
    contract_method: None = None
    contract_inputs_values: None = None


class SafeBatch(Wire):
    """A file for the Transaction Builder of a Safe, which makes one atomic transaction of it."""

    version: Literal["1.0"] = "1.0"
    chain_id: str
    created_at: int
    """Unix milliseconds."""
    meta: SafeMeta
    transactions: tuple[SafeTransaction, ...]
