"""Unsigned calls for another wallet to sign: an EIP-1559 transaction, or a batch file for a Safe."""

import json
from collections.abc import Sequence
from typing import Final, Protocol

from eth_hash.auto import keccak

from zuno.kernel.units import Address, Millis
from zuno.lp.model.plan_events import SafeBatch, SafeMeta, SafeTransaction, UnsignedTransaction

TX_BUILDER_VERSION: Final = "1.18.2"
"""Of the Transaction Builder whose files these are like; it reads those of others too."""
_TYPE: Final = b"\x02"

Rlp = bytes | Sequence["Rlp"]


class CallRequest(Protocol):
    """Whatever an account is asked to call: a step, a call."""

    @property
    def to(self) -> Address: ...
    @property
    def value(self) -> int: ...
    @property
    def data(self) -> bytes: ...


def build_unsigned(
    *, chain_id: int, wallet: Address, nonce: int, call: CallRequest, gas: int, max_fee: int, tip: int
) -> UnsignedTransaction:
    """One transaction that lacks its signature alone."""
    fields: list[Rlp] = [_integer(number) for number in (chain_id, nonce, tip, max_fee, gas)]
    fields += [bytes.fromhex(call.to.removeprefix("0x")), _integer(call.value), call.data, ()]
    serialized = _TYPE + rlp(fields)
    return UnsignedTransaction(
        chain_id=hex(chain_id),
        from_=checksum_address(wallet),
        nonce=hex(nonce),
        to=checksum_address(call.to),
        value=hex(call.value),
        data="0x" + call.data.hex(),
        gas=hex(gas),
        max_fee_per_gas=hex(max_fee),
        max_priority_fee_per_gas=hex(tip),
        serialized="0x" + serialized.hex(),
        signing_hash="0x" + keccak(serialized).hex(),
    )


def safe_batch(
    *, chain_id: int, wallet: Address, calls: Sequence[CallRequest], created_at: Millis, name: str, description: str
) -> SafeBatch:
    """All calls as one file for the Safe's Transaction Builder."""
    safe, version = checksum_address(wallet), TX_BUILDER_VERSION
    meta = {"name": name, "description": description, "tx_builder_version": version, "created_from_safe_address": safe}
    batch = SafeBatch(
        chain_id=str(chain_id),
        created_at=created_at,
        meta=SafeMeta(**meta, checksum=""),
        transactions=tuple(
            SafeTransaction(to=checksum_address(call.to), value=str(call.value), data="0x" + call.data.hex())
            for call in calls
        ),
    )
    return batch.model_copy(update={"meta": batch.meta.model_copy(update={"checksum": safe_checksum(batch)})})


def safe_checksum(batch: SafeBatch) -> str:
    """What the Transaction Builder compares: the keccak of the file in its own order, without its name."""
    whole = batch.model_dump(by_alias=True)
    whole["meta"]["name"] = None
    del whole["meta"]["checksum"]
    return "0x" + keccak(_serialize_sorted(whole).encode()).hex()


def _serialize_sorted(value: object) -> str:
    """An object is its sorted names as a list and then its values, each followed by a comma."""
    if isinstance(value, dict):
        names = sorted(value)
        return "{" + _json(names) + "".join(f"{_serialize_sorted(value[name])}," for name in names) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_serialize_sorted, value)) + "]"
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def rlp(item: Rlp) -> bytes:
    """Recursive length prefix, as transactions are written."""
    if isinstance(item, bytes):
        return item if len(item) == 1 and item[0] < 0x80 else _length(len(item), 0x80) + item
    body = b"".join(map(rlp, item))
    return _length(len(body), 0xC0) + body


def _length(size: int, offset: int) -> bytes:
    if size < 56:
        return bytes([offset + size])
    digits = _integer(size)
    return bytes([offset + 55 + len(digits)]) + digits


def _integer(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


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
