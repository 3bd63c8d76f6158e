"""Signed transactions, with the sender recovered once: that costs more than everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eth.abc import SignedTransactionAPI
from eth.vm.forks.prague.transactions import PragueTransactionBuilder
from eth_hash.auto import keccak
from eth_keys.datatypes import PrivateKey
from eth_keys.exceptions import BadSignature
from eth_typing import Address
from eth_utils.exceptions import ValidationError
from rlp.exceptions import RLPException

from .rpc_errors import server_error

LEGACY: Final = 0
ACCESS_LIST: Final = 1
DYNAMIC_FEE: Final = 2
_ACCEPTED: Final = frozenset({LEGACY, ACCESS_LIST, DYNAMIC_FEE})
_HALF_ORDER: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_FLOOR_PER_TOKEN: Final = 10
_TOKENS_PER_NONZERO: Final = 4


@dataclass(frozen=True, slots=True)
class LocalTransaction:
    """`raw` are the bytes on the wire; everything else follows from them."""

    inner: SignedTransactionAPI
    raw: bytes
    hash: bytes
    sender: bytes

    @property
    def type(self) -> int:
        return self.inner.type_id or LEGACY

    @property
    def nonce(self) -> int:
        return self.inner.nonce

    @property
    def gas(self) -> int:
        return self.inner.gas

    @property
    def to(self) -> bytes | None:
        """None creates a contract."""
        return self.inner.to or None

    @property
    def value(self) -> int:
        return self.inner.value

    @property
    def data(self) -> bytes:
        return self.inner.data

    @property
    def max_fee(self) -> int:
        return self.inner.max_fee_per_gas

    @property
    def tip(self) -> int:
        return self.inner.max_priority_fee_per_gas

    @property
    def cost(self) -> int:
        """The most this transaction can take from its sender."""
        return self.gas * self.max_fee + self.value

    @property
    def access_list(self) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
        return tuple((address, tuple(slots)) for address, slots in self.inner.access_list)

    def price_at(self, base_fee: int) -> int:
        return min(self.max_fee, base_fee + self.tip)


def decode_transaction(raw: bytes, chain_id: int) -> LocalTransaction:
    """Read raw bytes as a node does; undecodable, foreign or badly signed ones are refused."""
    if not raw:
        raise server_error("typed transaction too short")
    if raw[0] <= 0x7F and raw[0] not in _ACCEPTED - {LEGACY}:
        raise server_error("transaction type not supported")
    try:
        inner = PragueTransactionBuilder.decode(raw)
        inner.validate()
    except (RLPException, ValidationError, ValueError, TypeError) as error:
        raise server_error(f"rlp: {error}") from error
    _check_chain(inner, chain_id)
    try:
        if inner.s > _HALF_ORDER:
            raise BadSignature("s in the upper half of the curve order")
        sender = inner.sender
    except (BadSignature, ValidationError, ValueError) as error:
        raise server_error("invalid sender: invalid transaction v, r, s values") from error
    return LocalTransaction(inner, raw, keccak(raw), sender)


def restore(raw: bytes, sender: bytes) -> LocalTransaction:
    """A transaction that was accepted before: its sender is not recovered again."""
    inner = PragueTransactionBuilder.decode(raw)
    # `sender` is a cached property: filling its slot spares one signature recovery per stored transaction.
    inner.__dict__["sender"] = Address(sender)
    return LocalTransaction(inner, raw, keccak(raw), sender)


def sign(
    key: PrivateKey,
    *,
    chain_id: int,
    nonce: int,
    to: bytes | None,
    data: bytes = b"",
    value: int = 0,
    gas: int,
    max_fee: int,
    tip: int,
) -> LocalTransaction:
    unsigned = PragueTransactionBuilder.new_unsigned_dynamic_fee_transaction(
        chain_id=chain_id,
        nonce=nonce,
        max_priority_fee_per_gas=tip,
        max_fee_per_gas=max_fee,
        gas=gas,
        to=Address(to or b""),
        value=value,
        data=data,
        access_list=[],
    )
    return restore(unsigned.as_signed_transaction(key).encode(), key.public_key.to_canonical_address())


def floor_gas(data: bytes) -> int:
    """EIP-7623: calldata is never cheaper than this, whatever the execution costs."""
    zeros = data.count(0)
    return 21_000 + _FLOOR_PER_TOKEN * (zeros + _TOKENS_PER_NONZERO * (len(data) - zeros))


def _check_chain(inner: SignedTransactionAPI, chain_id: int) -> None:
    if inner.chain_id is None:
        raise server_error("only replay-protected (EIP-155) transactions allowed over RPC")
    if inner.chain_id != chain_id:
        raise server_error(f"invalid sender: invalid chain id for signer: have {inner.chain_id} want {chain_id}")
