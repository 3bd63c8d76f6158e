"""Sign transactions with a private key: EIP-1559 alone, deterministic (RFC 6979, low s).

Shared by the adapter families `chain` and `keys`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import SecretBytes

from zuno.adapters.eth_imports import import_eth_account
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, HexId
from zuno.lp.ports.spending import Signed, Unsigned

if TYPE_CHECKING:
    from eth_account.datastructures import SignedTransaction
    from eth_account.signers.local import LocalAccount
    from eth_account.types import TransactionDictType

KEY_BYTES = 32
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def is_key(raw: bytes) -> bool:
    return len(raw) == KEY_BYTES and 0 < int.from_bytes(raw, "big") < _ORDER


def address_of(key: SecretBytes) -> Address:
    return Address(_account(key).address.lower())


def sign(key: SecretBytes, tx: Unsigned) -> Signed:
    """The signed bytes; `Refused` where the fields are not valid, or where what it may cost has no bound or is above
    it: the last look, whoever asks."""
    excess = None if tx.bound is None else tx.bound.find_excess(tx.fees.max_fee, tx.fees.tip, tx.gas)
    if tx.bound is None or excess is not None:
        why = "has no bound" if excess is None else f"bids a {excess[0]} of {excess[1]} wei, above {excess[2]}"
        raise Refused(f"The transaction number {tx.nonce} to {tx.call.to} {why}: it is not signed.")
    signed: SignedTransaction | None = None
    if _possible(tx):
        with suppress(Exception):  # the vendor raises half a dozen kinds, and its frames hold the key
            signed = _account(key).sign_transaction(_fields(tx))
    if signed is None:  # raised here, so that no trace leads into those frames
        raise Refused(f"The transaction number {tx.nonce} to {tx.call.to} cannot be signed; its fields are not valid.")
    return Signed(HexId("0x" + signed.hash.hex().removeprefix("0x")), bytes(signed.raw_transaction))


def _account(key: SecretBytes) -> LocalAccount:
    account: LocalAccount = import_eth_account().from_key(key.get_secret_value())
    return account


def _possible(tx: Unsigned) -> bool:
    """The protocol's widths; the vendor would sign numbers that no node can read."""
    longs, words = (tx.nonce, tx.gas), (tx.chain_id, tx.call.value, tx.fees.max_fee, tx.fees.tip)
    return (
        all(0 <= number < 1 << 64 for number in longs)
        and all(0 <= number < 1 << 256 for number in words)
        and _ADDRESS.fullmatch(tx.call.to) is not None
    )


def _fields(tx: Unsigned) -> TransactionDictType:
    return {
        "type": 2,
        "chainId": tx.chain_id,
        "nonce": tx.nonce,
        "maxPriorityFeePerGas": tx.fees.tip,
        "maxFeePerGas": tx.fees.max_fee,
        "gas": tx.gas,
        "to": bytes.fromhex(tx.call.to.removeprefix("0x")),
        "value": tx.call.value,
        "data": tx.call.data,
        "accessList": (),
    }
