"""py-evm's account database, with what was read from its tries remembered.

A trie's root is the hash of all it holds: under one root a key has one value for good, whoever asks. Every call opens
the state anew and reads the same slots below the same few roots, a dozen nodes each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eth.abc import AccountStorageDatabaseAPI, AtomicDatabaseAPI
from eth.constants import BLANK_ROOT_HASH
from eth.db.accesslog import KeyAccessLoggerDB
from eth.db.account import AccountDB
from eth.db.cache import CacheDB
from eth.db.hash_trie import HashTrie
from eth.db.journal import JournalDB
from eth.db.storage import AccountStorageDB, StorageLookup
from eth_typing import Address, Hash32

_VALUES_KEPT: Final = 50_000
_values: dict[tuple[bytes, bytes], bytes] = {}


def _remember(root: bytes, key: bytes, read: Callable[[bytes], bytes]) -> bytes:
    """What was read under this root before. A node that is missing raises, and is missed again next time."""
    asked = (root, key)
    found = _values.get(asked)
    if found is None:
        found = read(key)
        if len(_values) >= _VALUES_KEPT:
            _values.clear()
        _values[asked] = found
    return found


class _Slots(StorageLookup):
    """The storage of an account by slot, from its trie."""

    def __getitem__(self, key: bytes) -> bytes:
        read = super().__getitem__
        return read(key) if self._write_trie is not None else _remember(self._starting_root_hash, key, read)


class _Storage(AccountStorageDB):
    def __init__(self, db: AtomicDatabaseAPI, storage_root: Hash32, address: Address) -> None:
        super().__init__(db, storage_root, address)
        self._storage_lookup = _Slots(db, storage_root, address)
        self._storage_cache = CacheDB(self._storage_lookup)
        self._locked_changes = JournalDB(self._storage_cache)
        self._journal_storage = JournalDB(self._locked_changes)


class _AccountTrie(HashTrie):
    def __getitem__(self, key: bytes) -> bytes:
        return _remember(self.root_hash, key, super().__getitem__)


class Accounts(AccountDB):
    """py-evm's own, but for the two tries below it."""

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
