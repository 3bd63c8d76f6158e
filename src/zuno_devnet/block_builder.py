"""A block under construction: transactions are added one by one, and `seal` writes the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import rlp
from eth.abc import BlockHeaderAPI
from eth.constants import BLANK_ROOT_HASH
from eth.db.trie import make_trie_root_and_nodes
from eth.vm.forks.prague.blocks import PragueBlockHeader
from eth_bloom.bloom import BloomFilter
from eth_hash.auto import keccak
from eth_typing import BlockNumber, Hash32
from eth_utils.exceptions import ValidationError

from .execution import EvmState, execute
from .history import LocalBlock, LocalReceipt, base_fee_of, numbered_logs
from .rpc_errors import server_error
from .transactions import LocalTransaction, floor_gas

_ELASTICITY: Final = 2
_CHANGE_DENOMINATOR: Final = 8


def next_base_fee(parent: BlockHeaderAPI, floor: int) -> int:
    """EIP-1559, never below `floor`: an idle chain would otherwise price gas at seven wei."""
    fee, target = base_fee_of(parent), parent.gas_limit // _ELASTICITY
    if parent.gas_used > target:
        step = fee * (parent.gas_used - target) // target // _CHANGE_DENOMINATOR
        return max(floor, fee + max(1, step))
    return max(floor, fee - fee * (target - parent.gas_used) // target // _CHANGE_DENOMINATOR)


def next_header(parent: BlockHeaderAPI, *, timestamp: int, base_fee: int, salt: bytes = b"") -> PragueBlockHeader:
    """The header a child of `parent` starts with. `salt` makes the hash of an otherwise equal block another."""
    if timestamp <= parent.timestamp:
        raise server_error(f"timestamp {timestamp} is not after the parent's {parent.timestamp}")
    return PragueBlockHeader(
        difficulty=0,
        block_number=BlockNumber(parent.block_number + 1),
        gas_limit=parent.gas_limit,
        timestamp=timestamp,
        coinbase=parent.coinbase,
        parent_hash=parent.hash,
        mix_hash=Hash32(keccak(parent.hash + salt)),
        nonce=bytes(8),
        base_fee_per_gas=base_fee,
    )


class _Encodable(Protocol):
    def encode(self) -> bytes: ...


class BlockBuilder:
    """Executes transactions on top of a parent; `seal` writes the state and yields the block."""

    def __init__(self, header: BlockHeaderAPI, state: EvmState) -> None:
        self.header = header
        self.state = state
        self.gas_used = 0
        self._receipts: list[LocalReceipt] = []
        self._encoded: list[_Encodable] = []
        self._log_count = 0

    @property
    def base_fee(self) -> int:
        return base_fee_of(self.header)

    @property
    def room(self) -> int:
        return self.header.gas_limit - self.gas_used

    def add(self, tx: LocalTransaction) -> LocalReceipt:
        """Execute one transaction, or refuse it and leave the draft as it was."""
        if tx.gas > self.room:
            raise server_error("gas limit reached")
        if tx.gas < max(tx.inner.intrinsic_gas, floor_gas(tx.data)):
            raise server_error("intrinsic gas too low")
        try:
            outcome = execute(self.state, tx)
        except ValidationError as error:
            raise server_error(f"invalid transaction: {error}") from error
        self.gas_used += outcome.gas_used
        wire = tx.inner.make_receipt(b"\x01" if outcome.ok else b"", self.gas_used, outcome.logs)
        receipt = LocalReceipt(
            tx=tx,
            index=len(self._receipts),
            gas_used=outcome.gas_used,
            cumulative_gas=self.gas_used,
            gas_price=tx.price_at(self.base_fee),
            contract=outcome.created,
            logs=numbered_logs(outcome.logs, self.header.block_number, len(self._receipts), self._log_count),
            bloom=wire.bloom,
            error=outcome.error,
            revert_data=b"" if outcome.ok else outcome.output,
        )
        self._log_count += len(outcome.logs)
        self._receipts.append(receipt)
        self._encoded.append(wire)
        return receipt

    def seal(self) -> LocalBlock:
        self.state.persist()
        bloom = BloomFilter()
        for receipt in self._receipts:
            bloom |= BloomFilter(receipt.bloom)
        header = self.header.copy(
            state_root=self.state.state_root,
            transaction_root=_root([receipt.tx.inner for receipt in self._receipts]),
            receipt_root=_root(self._encoded),
            bloom=int(bloom),
            gas_used=self.gas_used,
        )
        size = len(rlp.encode(header)) + sum(len(receipt.tx.raw) for receipt in self._receipts)
        return LocalBlock(header, tuple(self._receipts), size)


def _root(items: Sequence[_Encodable]) -> bytes:
    if not items:
        return BLANK_ROOT_HASH
    root, _ = make_trie_root_and_nodes(items)  # type: ignore[arg-type]  # needs `encode` alone
    return root
