"""Runs transactions by py-evm's Prague rules, and calls without checks of balance or fee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from eth._utils.address import generate_contract_address
from eth.abc import (
    AccountStorageDatabaseAPI,
    AtomicDatabaseAPI,
    ComputationAPI,
    MessageAPI,
    StateAPI,
    TransactionContextAPI,
)
from eth.constants import BLANK_ROOT_HASH
from eth.db.accesslog import KeyAccessLoggerDB
from eth.db.account import AccountDB
from eth.db.cache import CacheDB
from eth.db.hash_trie import HashTrie
from eth.db.journal import JournalDB
from eth.db.storage import AccountStorageDB, StorageLookup
from eth.exceptions import (
    InsufficientFunds,
    InsufficientStack,
    InvalidInstruction,
    InvalidJumpDestination,
    OutOfGas,
    Revert,
    StackDepthLimit,
    VMError,
    WriteProtection,
)
from eth.vm.forks.prague.computation import PragueComputation
from eth.vm.forks.prague.state import PragueState, PragueTransactionExecutor
from eth_typing import Address, Hash32

from .history import RawLog
from .opcodes import find_jump_targets, replace_opcodes
from .rpc_errors import server_error
from .transactions import LocalTransaction, floor_gas

_GETH_NAMES: Final[tuple[tuple[type[VMError], str], ...]] = (
    (Revert, "execution reverted"),
    (OutOfGas, "out of gas"),
    (InvalidInstruction, "invalid opcode: INVALID"),
    (InvalidJumpDestination, "invalid jump destination"),
    (InsufficientStack, "stack underflow"),
    (StackDepthLimit, "max call depth exceeded"),
    (WriteProtection, "write protection"),
    (InsufficientFunds, "insufficient balance for transfer"),
)

# EIP-7528's stand-in address for ether; geth logs a transfer of value from it when asked to trace transfers.
ETHER_ADDRESS: Final = bytes.fromhex("ee" * 20)
TRANSFER_TOPIC: Final = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

_VALUES_KEPT: Final = 50_000
_values: dict[tuple[bytes, bytes], bytes] = {}
"""Values read from tries, by root and key. A root is the hash of all below it, so a value under it never changes; every
call opens the state anew and reads the same slots below the same few roots, a dozen nodes each."""


@dataclass(frozen=True, slots=True)
class CallMessage:
    """A message without a signature: what eth_call, eth_estimateGas and eth_simulateV1 execute.

    Has the attributes that py-evm reads from a transaction, so that one executor serves both.
    """

    sender: bytes
    to: bytes
    data: bytes = b""
    value: int = 0
    gas: int = 0
    max_fee_per_gas: int = 0
    max_priority_fee_per_gas: int = 0
    access_list: tuple[tuple[bytes, tuple[int, ...]], ...] = ()
    type_id: int = 2

    @property
    def intrinsic_gas(self) -> int:
        zeros = self.data.count(0)
        gas = 21_000 + 4 * zeros + 16 * (len(self.data) - zeros)
        gas += sum(2_400 + 1_900 * len(slots) for _, slots in self.access_list)
        return gas if self.to else gas + 32_000

    @property
    def least_gas(self) -> int:
        return max(self.intrinsic_gas, floor_gas(self.data))


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What executing one transaction or call did."""

    gas_used: int
    gas_spent: int  # before refunds: what had to be there while it ran
    output: bytes
    error: str | None = None
    logs: tuple[RawLog, ...] = field(default=())
    created: bytes | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def is_revert(self) -> bool:
        return self.error == "execution reverted"


class Computation(PragueComputation):
    """Prague, with a log entry per transfer of ether when the state asks for it."""

    opcodes = replace_opcodes(PragueComputation.opcodes)

    def __init__(self, state: StateAPI, message: MessageAPI, transaction_context: TransactionContextAPI) -> None:
        super().__init__(state, message, transaction_context)
        self.jump_targets = find_jump_targets(message.code)
        traced = isinstance(state, FreeState) and state.trace_transfers
        if traced and message.should_transfer_value and message.value:
            # The callee's own entry: it vanishes with the frame if the frame reverts.
            topics = (TRANSFER_TOPIC, message.sender, message.storage_address)
            self.add_log_entry(
                Address(ETHER_ADDRESS),
                tuple(int.from_bytes(topic, "big") for topic in topics),
                message.value.to_bytes(32, "big"),
            )


def _read_cached(root: bytes, key: bytes, read: Callable[[bytes], bytes]) -> bytes:
    """The value of a key under a root, read once. A missing node raises and is not cached."""
    value = _values.get((root, key))
    if value is None:
        value = read(key)
        if len(_values) >= _VALUES_KEPT:
            _values.clear()
        _values[root, key] = value
    return value


class _Slots(StorageLookup):
    """The storage of an account by slot, from its trie."""

    def __getitem__(self, key: bytes) -> bytes:
        read = super().__getitem__
        return read(key) if self._write_trie is not None else _read_cached(self._starting_root_hash, key, read)


class _Storage(AccountStorageDB):
    def __init__(self, db: AtomicDatabaseAPI, storage_root: Hash32, address: Address) -> None:
        super().__init__(db, storage_root, address)
        self._storage_lookup = _Slots(db, storage_root, address)
        self._storage_cache = CacheDB(self._storage_lookup)
        self._locked_changes = JournalDB(self._storage_cache)
        self._journal_storage = JournalDB(self._locked_changes)


class _AccountTrie(HashTrie):
    def __getitem__(self, key: bytes) -> bytes:
        return _read_cached(self.root_hash, key, super().__getitem__)


class Accounts(AccountDB):
    """py-evm's account database, with cached reads of its tries."""

    def __init__(self, db: AtomicDatabaseAPI, state_root: Hash32 = BLANK_ROOT_HASH) -> None:
        super().__init__(db, state_root)
        self._trie = _AccountTrie(self._trie._db)
        self._trie_logger = KeyAccessLoggerDB(self._trie, log_missing_keys=False)
        self._trie_cache = CacheDB(self._trie_logger)
        self._journaltrie = JournalDB(self._trie_cache)

    def _get_address_store(self, address: Address) -> AccountStorageDatabaseAPI:
        if address not in self._account_stores:
            self._account_stores[address] = _Storage(self._raw_store_db, self._get_storage_root(address), address)
        return self._account_stores[address]


class EvmState(PragueState):
    computation_class = Computation
    account_db_class = Accounts


class FreeExecutor(PragueTransactionExecutor):
    def validate_transaction(self, transaction: Any) -> None:
        """A call needs no signature, no right nonce and no money for gas; the caller checks the rest."""


class FreeState(EvmState):
    """Where calls run. The base fee is zero, so a call that names no price pays none (as in geth)."""

    transaction_executor_class = FreeExecutor
    trace_transfers: bool = False


StateKind = TypeVar("StateKind", bound=EvmState)


def execute(state: EvmState, tx: LocalTransaction | CallMessage) -> ExecutionResult:
    """Run one transaction; the state keeps its effects. Refused if it may not run at all."""
    message: Any = tx.inner if isinstance(tx, LocalTransaction) else tx
    if isinstance(tx, CallMessage):
        _check_funds(state, tx)
    nonce = state.get_nonce(Address(tx.sender))
    # Ends the previous transaction: warm slots cool down and "original" storage values are taken anew.
    state.lock_changes()
    computation = state.apply_transaction(message)
    return ExecutionResult(
        gas_used=_gas_used(tx.gas, computation),
        gas_spent=tx.gas - computation.get_gas_remaining(),
        output=computation.output,
        error=_error_name(computation),
        logs=computation.get_log_entries(),
        created=None if tx.to else generate_contract_address(Address(tx.sender), nonce),
    )


def _check_funds(state: EvmState, call: CallMessage) -> None:
    have, want = state.get_balance(Address(call.sender)), call.value + call.gas * call.max_fee_per_gas
    if have < want:
        raise server_error(
            f"insufficient funds for gas * price + value: address 0x{call.sender.hex()} have {have} want {want}"
        )
    if call.gas < call.intrinsic_gas:
        raise server_error(f"intrinsic gas too low: have {call.gas}, want {call.intrinsic_gas}")


def _gas_used(limit: int, computation: ComputationAPI) -> int:
    """Refunds give back a fifth at most, and calldata has a floor."""
    spent = limit - computation.get_gas_remaining()
    return spent - min(computation.get_gas_refund(), spent // 5) + computation.data_floor_gas


def _error_name(computation: ComputationAPI) -> str | None:
    if computation.is_success:
        return None
    for kind, name in _GETH_NAMES:
        if isinstance(computation.error, kind):
            return name
    return str(computation.error)
