"""A chain in process: genesis, blocks, reads and calls at any height, and going back."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Final

from eth.abc import BlockHeaderAPI
from eth.constants import BLANK_ROOT_HASH
from eth.db.atomic import AtomicDB
from eth.db.backends.memory import MemoryDB
from eth.vm.execution_context import ExecutionContext
from eth.vm.forks.prague.blocks import PragueBlockHeader
from eth_keys.datatypes import PrivateKey
from eth_typing import Address, BlockNumber, Hash32

from .block_builder import BlockBuilder, next_base_fee, next_header
from .execution import CallMessage, EvmState, ExecutionResult, FreeState, StateKind, execute
from .history import ChainIndex, LocalBlock, LocalReceipt
from .keys import dev_address
from .rpc_errors import RpcError, revert_error, server_error
from .transactions import LocalTransaction, sign

# py_ecc raises it to 100,000 on import, where nested JSON overflows the stack; 1,024 nested calls need less than this.
sys.setrecursionlimit(min(sys.getrecursionlimit(), 20_000))

GWEI: Final = 10**9
ETHER: Final = 10**18

# geth stops its search when the answer is known this well; a looser estimate is still sufficient gas.
_ESTIMATE_TOLERANCE: Final = 0.015
_CALL_STIPEND: Final = 2_300
_TRANSFER_GAS: Final = 21_000


@dataclass(frozen=True, slots=True)
class Genesis:
    """Everything the first block depends on; the same genesis always gives the same hash."""

    chain_id: int = 31337
    timestamp: int = 1_700_000_000
    gas_limit: int = 60_000_000
    base_fee: int = GWEI
    # Zero follows EIP-1559 to the letter; the default keeps gas from becoming free on an idle chain.
    base_fee_floor: int = GWEI
    balances: Mapping[bytes, int] = field(default_factory=dict)
    code: Mapping[bytes, bytes] = field(default_factory=dict)


class LocalChain:
    """One canonical chain over an append-only state database, so that the state after every block can be read."""

    def __init__(self, genesis: Genesis, store: MutableMapping[bytes, bytes], history: ChainIndex) -> None:
        self.genesis = genesis
        self.history = history
        self.store = store
        self._db = AtomicDB(MemoryDB(store))  # type: ignore[arg-type]  # any mapping does

    @classmethod
    def create(cls, genesis: Genesis) -> LocalChain:
        chain = cls(genesis, {}, ChainIndex())
        blank = PragueBlockHeader(
            difficulty=0,
            block_number=BlockNumber(0),
            gas_limit=genesis.gas_limit,
            timestamp=genesis.timestamp,
            coinbase=Address(dev_address("fees")),
            state_root=BLANK_ROOT_HASH,
            nonce=bytes(8),
            base_fee_per_gas=genesis.base_fee,
        )
        state = chain._open(EvmState, blank, root=blank.state_root, base_fee=genesis.base_fee)
        for address, balance in genesis.balances.items():
            state.set_balance(Address(address), balance)
        for address, code in genesis.code.items():
            state.set_code(Address(address), code)
        state.persist()
        header = blank.copy(state_root=state.state_root)
        chain.history.append(LocalBlock(header, (), 0))
        return chain

    def scratch(self) -> LocalChain:
        """A copy for blocks that are not to become part of the chain: its writes are discarded."""
        return LocalChain(self.genesis, ChainMap({}, self.store), self.history)

    @property
    def chain_id(self) -> int:
        return self.genesis.chain_id

    @property
    def head(self) -> LocalBlock:
        return self.history.head

    @property
    def next_base_fee(self) -> int:
        return self.base_fee_after(self.head)

    def base_fee_after(self, block: LocalBlock) -> int:
        return next_base_fee(block.header, self.genesis.base_fee_floor)

    # -- growing and shrinking

    def draft(self, timestamp: int, *, salt: bytes = b"") -> BlockBuilder:
        """Start the next block."""
        base_fee = self.next_base_fee
        header = next_header(self.head.header, timestamp=timestamp, base_fee=base_fee, salt=salt)
        return BlockBuilder(header, self._open(EvmState, header, root=self.head.header.state_root, base_fee=base_fee))

    def seal(self, draft: BlockBuilder) -> LocalBlock:
        """Make a draft the new head. A draft begun on another head is refused."""
        if draft.header.parent_hash != self.head.hash:
            raise server_error("the draft was begun on another head")
        block = draft.seal()
        self.history.append(block)
        return block

    def apply_block(self, txs: Iterable[LocalTransaction], timestamp: int, *, salt: bytes = b"") -> LocalBlock:
        """Mine exactly these transactions, in this order, or raise and change nothing.

        A transaction that reverts is mined as such: look at its receipt.
        """
        draft = self.draft(timestamp, salt=salt)
        for tx in txs:
            draft.add(tx)
        return self.seal(draft)

    def rewind(self, height: int) -> list[LocalBlock]:
        """Forget every block above `height`; returns them, newest first."""
        if not 0 <= height <= self.head.number:
            raise server_error(f"cannot rewind to block {height}: the head is {self.head.number}")
        return [self.history.pop() for _ in range(self.head.number - height)]

    def sign(
        self,
        key: PrivateKey,
        *,
        to: bytes | None,
        data: bytes = b"",
        value: int = 0,
        gas: int,
        nonce: int | None = None,
        max_fee: int | None = None,
        tip: int = GWEI,
    ) -> LocalTransaction:
        """A signed transaction that the next block will accept; the nonce defaults to the account's."""
        sender = key.public_key.to_canonical_address()
        return sign(
            key,
            chain_id=self.chain_id,
            nonce=self.nonce(sender) if nonce is None else nonce,
            to=to,
            data=data,
            value=value,
            gas=gas,
            max_fee=2 * self.next_base_fee + tip if max_fee is None else max_fee,
            tip=tip,
        )

    # -- reading

    def state(self, at: LocalBlock | None = None) -> EvmState:
        """The state after a block. Changes to it are not written back."""
        block = at or self.head
        return self._open(EvmState, block.header, root=block.header.state_root, base_fee=0)

    def balance(self, address: bytes, at: LocalBlock | None = None) -> int:
        return self.state(at).get_balance(Address(address))

    def nonce(self, address: bytes, at: LocalBlock | None = None) -> int:
        return self.state(at).get_nonce(Address(address))

    def code(self, address: bytes, at: LocalBlock | None = None) -> bytes:
        return self.state(at).get_code(Address(address))

    def storage(self, address: bytes, slot: int, at: LocalBlock | None = None) -> int:
        return self.state(at).get_storage(Address(address), slot)

    def receipt(self, tx_hash: bytes) -> LocalReceipt | None:
        mined = self.history.receipt(tx_hash)
        return mined[1] if mined else None

    # -- calling

    def free_state(self, at: LocalBlock | None = None) -> FreeState:
        """A state where calls run unpaid, in the context of the block they are asked at (as in geth)."""
        block = at or self.head
        return self.free_state_under(block.header, block.header.state_root)

    def free_state_under(self, header: BlockHeaderAPI, root: bytes) -> FreeState:
        return self._open(FreeState, header, root=root, base_fee=0)

    def execute_call(self, call: CallMessage, at: LocalBlock | None = None) -> ExecutionResult:
        """Run a call to its end, whatever that is."""
        return execute(self.free_state(at), self.with_gas(call))

    def call(self, call: CallMessage, at: LocalBlock | None = None) -> bytes:
        """The returned bytes, or the refusal a node would answer with."""
        return return_data(self.execute_call(call, at))

    def estimate_gas(self, call: CallMessage, at: LocalBlock | None = None) -> int:
        """A gas limit that suffices. It may exceed the gas used, for a call passes on 63/64 of its gas at most."""
        cap = self.with_gas(call).gas
        if call.max_fee_per_gas:
            # A call that names a price gets no more gas than its sender can pay for.
            funds = self.balance(call.sender, at) - call.value
            cap = min(cap, max(0, funds) // call.max_fee_per_gas)

        def attempt(gas: int) -> ExecutionResult:
            return execute(self.free_state(at), replace(call, gas=gas))

        if call.to and call.least_gas == _TRANSFER_GAS <= cap and attempt(_TRANSFER_GAS).ok:
            return _TRANSFER_GAS
        outcome = attempt(cap)
        if not outcome.ok:
            if outcome.error == "out of gas":
                raise server_error(f"gas required exceeds allowance ({cap})")
            return_data(outcome)
        # The gas spent before refunds is the least that may suffice.
        low, high = max(outcome.gas_spent, call.least_gas) - 1, cap
        guess = (outcome.gas_spent + _CALL_STIPEND) * 64 // 63
        while low + 1 < high and (high - low) / high > _ESTIMATE_TOLERANCE:
            middle = guess if low < guess < high else min((low + high) // 2, 2 * low)
            guess = 0
            if middle < call.least_gas or not attempt(middle).ok:
                low = middle
            else:
                high = middle
        return high

    def with_gas(self, call: CallMessage) -> CallMessage:
        """The call with a gas limit: its own, at most a block's, or a block's where it names none."""
        limit = self.genesis.gas_limit
        return replace(call, gas=min(call.gas, limit) if call.gas else limit)

    def _open(self, kind: type[StateKind], header: BlockHeaderAPI, *, root: bytes, base_fee: int) -> StateKind:
        """The state below `root`, seen from a block with `header`."""
        context = ExecutionContext(
            coinbase=header.coinbase,
            timestamp=header.timestamp,
            block_number=header.block_number,
            difficulty=0,
            mix_hash=header.mix_hash,
            gas_limit=header.gas_limit,
            prev_hashes=(Hash32(ancestor) for ancestor in self.history.ancestor_hashes(header.block_number)),
            chain_id=self.chain_id,
            base_fee_per_gas=base_fee,
            excess_blob_gas=0,
        )
        return kind(self._db, context, Hash32(root))


def return_data(outcome: ExecutionResult) -> bytes:
    """The output of a success; a failure becomes the error object a node answers with."""
    if outcome.ok:
        return outcome.output
    if outcome.is_revert:
        raise revert_error(outcome.output)
    raise RpcError(-32000, outcome.error or "")
