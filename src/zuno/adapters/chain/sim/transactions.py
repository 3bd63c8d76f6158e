"""Parse signed EIP-1559 transactions and recover their signers. The RLP reader is our own, because a vendor's takes
longer to load than the saved transactions take to replay."""

from dataclasses import dataclass
from typing import Final

from eth_hash.auto import keccak

from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.ports.spending import Call

_DYNAMIC_FEE: Final = 0x02
_UNSIGNED_FIELDS: Final = 9
_FIELDS: Final = 12
_NO_ACCESS_LIST: Final = b"\xc0"
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_WORD_BITS: Final = 256


@dataclass(frozen=True, slots=True)
class SimTransaction:
    hash: HexId
    raw: bytes
    sender: Address
    nonce: int
    call: Call
    gas: int
    max_fee: Wei
    tip: Wei

    @property
    def cost(self) -> int:
        """The most this transaction can take from its sender."""
        return self.gas * self.max_fee + self.call.value


def parse_transaction(raw: bytes, chain_id: int, sender: Address | None = None) -> SimTransaction:
    """`Refused` for bytes that are not a signed EIP-1559 transaction of this chain; `sender` is trusted if given."""
    if raw[:1] != bytes([_DYNAMIC_FEE]):
        raise Refused("transaction type not supported: sim takes EIP-1559 transactions alone")
    items = _items(raw[1:])
    if len(items) != _FIELDS:
        raise Refused(f"rlp: {len(items)} fields where a signed EIP-1559 transaction has {_FIELDS}")
    chain, nonce, tip, max_fee, gas, to, value, data, access, parity, r, s = items
    if _item_int(chain) != chain_id:
        raise Refused(f"invalid chain id for signer: have {_item_int(chain)} want {chain_id}")
    if access != _NO_ACCESS_LIST:
        raise Refused("access lists are in no plan of ours: sim does not take them")
    target = _item_bytes(to)
    if len(target) != 20:
        raise Refused("a transaction without a target creates a contract, which sim cannot run")
    if sender is None:
        unsigned = b"".join(items[:_UNSIGNED_FIELDS])
        digest = keccak(bytes([_DYNAMIC_FEE]) + _list_header(len(unsigned)) + unsigned)
        sender = _recover_signer(digest, _item_int(parity), _item_int(r), _item_int(s))
    return SimTransaction(
        hash=HexId("0x" + keccak(raw).hex()),
        raw=raw,
        sender=sender,
        nonce=_item_int(nonce),
        call=Call(Address("0x" + target.hex()), _item_int(value), _item_bytes(data)),
        gas=_item_int(gas),
        max_fee=Wei(_item_int(max_fee)),
        tip=Wei(_item_int(tip)),
    )


def _recover_signer(digest: bytes, parity: int, r: int, s: int) -> Address:
    from eth_keys.datatypes import Signature
    from eth_keys.exceptions import BadSignature
    from eth_utils.exceptions import ValidationError

    if parity > 1 or not 0 < r < _ORDER or not 0 < s <= _ORDER // 2:
        raise Refused("invalid sender: invalid transaction v, r, s values")
    try:
        key = Signature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError, ValueError) as error:
        raise Refused("invalid sender: invalid transaction v, r, s values") from error
    return Address("0x" + key.to_canonical_address().hex())


# -- RLP, strictly: each item is kept as the bytes it is encoded in


def _items(data: bytes) -> list[bytes]:
    """The items of a list that is all there is."""
    kind, at, end = _span(data, 0)
    if kind != "list" or end != len(data):
        raise Refused("rlp: a transaction is one list, and nothing after it")
    items = []
    while at < len(data):
        _, _, after = _span(data, at)
        items.append(data[at:after])
        at = after
    return items


def _span(data: bytes, at: int) -> tuple[str, int, int]:
    """What an item is, where its content begins and where it ends."""
    if at >= len(data):
        raise Refused("rlp: the bytes end too early")
    first = data[at]
    if first < 0x80:
        return "text", at, at + 1
    kind, base = ("text", 0x80) if first < 0xC0 else ("list", 0xC0)
    length, start = first - base, at + 1
    if length > 55:
        size = length - 55
        start += size
        length = int.from_bytes(data[at + 1 : start], "big")
        if length <= 55 or data[at + 1] == 0:
            raise Refused("rlp: a length is not written as short as it can be")
    end = start + length
    if end > len(data):
        raise Refused("rlp: the bytes end too early")
    if kind == "text" and length == 1 and data[start] < 0x80:
        raise Refused("rlp: a byte is not written as short as it can be")
    return kind, start, end


def _item_bytes(item: bytes) -> bytes:
    kind, start, end = _span(item, 0)
    if kind != "text":
        raise Refused("rlp: a list where a value belongs")
    return item[start:end]


def _item_int(item: bytes) -> int:
    text = _item_bytes(item)
    if text[:1] == b"\0" or len(text) * 8 > _WORD_BITS:
        raise Refused("rlp: a number is not written as short as it can be, or is too large")
    return int.from_bytes(text, "big")


def _list_header(length: int) -> bytes:
    if length <= 55:
        return bytes([0xC0 + length])
    size = (length.bit_length() + 7) // 8
    return bytes([0xF7 + size]) + length.to_bytes(size, "big")
