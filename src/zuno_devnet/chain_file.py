"""A whole chain as one file, so that a chain is built once and opened in a second."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import rlp
from eth.vm.forks.prague.blocks import PragueBlockHeader

from zuno.kernel.errors import Malformed, Unavailable

from .chain import Genesis, LocalChain
from .history import ChainIndex, LocalBlock, LocalReceipt, numbered_logs
from .transactions import restore

# Anything that changes what the bytes mean changes this line, and old files are then rebuilt.
_MAGIC: Final = b"zuno devnet chain, format 1\n"
_DIGEST_SIZE: Final = 32
_KEY_SIZE: Final = 32
_SIZE: Final = struct.Struct(">I")
_LEVEL: Final = 1


def dump(chain: LocalChain) -> bytes:
    """The content of a file that `load` opens."""
    body = zlib.compress(b"".join(_write_body(chain)), _LEVEL)
    return _MAGIC + hashlib.sha256(body).digest() + body


def load(path: Path) -> LocalChain:
    """Open a saved chain. `Malformed`: another kind of file, another format or a damaged one, so build it again."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise Unavailable(f"there is no saved chain at {path}") from error
    if not content.startswith(_MAGIC):
        raise Malformed(f"{path} is not a chain of this format; delete it and build it again")
    start = len(_MAGIC) + _DIGEST_SIZE
    digest, body = content[len(_MAGIC) : start], memoryview(content)[start:]
    if hashlib.sha256(body).digest() != digest:
        raise Malformed(f"{path} is damaged or cut short; delete it and build it again")
    try:
        return _read_body(zlib.decompress(body))
    except (ValueError, KeyError, TypeError, IndexError, struct.error, zlib.error) as error:
        raise Malformed(f"{path} cannot be read ({error}); delete it and build it again") from error


def _write_body(chain: LocalChain) -> Iterator[bytes]:
    blocks = [_write_block(block) for block in chain.history]
    document = json.dumps({"genesis": _write_genesis(chain.genesis), "blocks": blocks}, separators=(",", ":")).encode()
    yield _SIZE.pack(len(document))
    yield document
    yield _SIZE.pack(len(chain.store))
    for key, value in chain.store.items():
        yield key
        yield _SIZE.pack(len(value))
        yield value


def _read_body(body: bytes) -> LocalChain:
    (size,) = _SIZE.unpack_from(body)
    start = _SIZE.size
    document = json.loads(body[start : start + size])
    position = start + size
    (count,) = _SIZE.unpack_from(body, position)
    position += _SIZE.size
    store: dict[bytes, bytes] = {}
    for _ in range(count):
        value_at = position + _KEY_SIZE + _SIZE.size
        (length,) = _SIZE.unpack_from(body, position + _KEY_SIZE)
        store[body[position : position + _KEY_SIZE]] = body[value_at : value_at + length]
        position = value_at + length
    history = ChainIndex()
    for shape in document["blocks"]:
        history.append(_read_block(shape))
    return LocalChain(_read_genesis(document["genesis"]), store, history)


def _write_genesis(genesis: Genesis) -> dict[str, Any]:
    return {
        **{field.name: getattr(genesis, field.name) for field in fields(genesis)},
        "balances": {address.hex(): balance for address, balance in genesis.balances.items()},
        "code": {address.hex(): code.hex() for address, code in genesis.code.items()},
    }


def _read_genesis(shape: dict[str, Any]) -> Genesis:
    balances = {bytes.fromhex(address): balance for address, balance in shape["balances"].items()}
    code = {bytes.fromhex(address): bytes.fromhex(code) for address, code in shape["code"].items()}
    return Genesis(**{**shape, "balances": balances, "code": code})


def _write_block(block: LocalBlock) -> list[Any]:
    return [rlp.encode(block.header).hex(), block.size, [_write_receipt(receipt) for receipt in block.receipts]]


def _read_block(shape: list[Any]) -> LocalBlock:
    encoded, size, receipts = shape
    header = rlp.decode(bytes.fromhex(encoded), PragueBlockHeader)
    read: list[LocalReceipt] = []
    gas = logs = 0
    for index, entry in enumerate(receipts):
        receipt = _read_receipt(entry, header.block_number, index, gas_before=gas, logs_before=logs)
        gas, logs = receipt.cumulative_gas, logs + len(receipt.logs)
        read.append(receipt)
    return LocalBlock(header, tuple(read), size)


def _write_receipt(receipt: LocalReceipt) -> list[Any]:
    return [
        receipt.tx.raw.hex(),
        receipt.tx.sender.hex(),
        receipt.gas_used,
        receipt.gas_price,
        receipt.contract.hex() if receipt.contract else "",
        f"{receipt.bloom:x}",
        receipt.error,
        receipt.revert_data.hex(),
        [[log.address.hex(), [topic.hex() for topic in log.topics], log.data.hex()] for log in receipt.logs],
    ]


def _read_receipt(
    shape: list[Any], block_number: int, index: int, *, gas_before: int, logs_before: int
) -> LocalReceipt:
    raw, sender, gas_used, gas_price, contract, bloom, error, revert_data, logs = shape
    raw_logs = [
        (bytes.fromhex(log[0]), tuple(int(topic, 16) for topic in log[1]), bytes.fromhex(log[2])) for log in logs
    ]
    return LocalReceipt(
        tx=restore(bytes.fromhex(raw), bytes.fromhex(sender)),
        index=index,
        gas_used=gas_used,
        cumulative_gas=gas_before + gas_used,
        gas_price=gas_price,
        contract=bytes.fromhex(contract) or None,
        logs=numbered_logs(raw_logs, block_number, index, logs_before),
        bloom=int(bloom, 16),
        error=error,
        revert_data=bytes.fromhex(revert_data),
    )
