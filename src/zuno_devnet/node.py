"""A chain with a mempool, a clock and a miner: what a node does, apart from JSON-RPC."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from eth_keys.datatypes import PrivateKey

from zuno.kernel.errors import Broken

from .block_builder import BlockBuilder
from .chain import GWEI, LocalChain
from .execution import CallMessage
from .history import LocalBlock
from .mempool import Mempool, SenderState
from .rpc_errors import RpcError, server_error
from .transactions import LocalTransaction, decode_transaction


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits on eth_getLogs such as public nodes have; none by default."""

    max_range: int | None = None
    max_results: int | None = None


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block, and the chain that can read its state."""

    chain: LocalChain
    block: LocalBlock


@dataclass(frozen=True, slots=True)
class _Snapshot:
    blocks: tuple[LocalBlock, ...]
    pool: Mempool
    offset: int


class DevnetNode:
    """Not thread-safe: `Rpc` answers its requests one at a time."""

    def __init__(
        self,
        chain: LocalChain,
        *,
        unlocked: Mapping[bytes, PrivateKey] | None = None,
        clock: Callable[[], float] = time.time,
        time_offset: int = 0,
    ) -> None:
        self.chain = chain
        self.pool = Mempool()
        self.unlocked = dict(unlocked or {})
        self.time_offset = time_offset
        self.log_limits = LogLimits()
        self.automine = True
        self._clock = clock
        self._next_timestamp: int | None = None
        self._snapshots: dict[int, _Snapshot] = {}
        self._snapshot_count = 0

    # -- time

    def now(self) -> int:
        """Chain time, were a block mined at this moment."""
        return max(self.chain.head.timestamp + 1, int(self._clock()) + self.time_offset)

    def increase_time(self, seconds: int) -> int:
        """Shift the clock for good; returns the whole shift so far."""
        self.time_offset += seconds
        return self.time_offset

    def set_next_timestamp(self, timestamp: int) -> None:
        if timestamp <= self.chain.head.timestamp:
            raise server_error(f"timestamp {timestamp} is not after the head's {self.chain.head.timestamp}")
        self._next_timestamp = timestamp

    # -- transactions

    def submit(self, raw: bytes) -> LocalTransaction:
        """eth_sendRawTransaction: check, queue, and mine at once unless automine is off."""
        tx = decode_transaction(raw, self.chain.chain_id)
        account = SenderState(self.chain.nonce(tx.sender), self.chain.balance(tx.sender))
        self.pool.admit(tx, account, self.chain.genesis.gas_limit)
        self._automine()
        return tx

    def send(
        self,
        sender: bytes,
        *,
        to: bytes | None,
        data: bytes = b"",
        value: int = 0,
        gas: int | None = None,
        nonce: int | None = None,
        max_fee: int | None = None,
        tip: int | None = None,
    ) -> LocalTransaction:
        """eth_sendTransaction: sign for an unlocked account, filling in what was left out."""
        key = self.unlocked.get(sender)
        if key is None:
            raise server_error("unknown account")
        tip = min(GWEI, max_fee or GWEI) if tip is None else tip
        if gas is None:
            gas = self.chain.estimate_gas(CallMessage(sender, to or b"", data, value))
        nonce = self.pending_nonce(sender) if nonce is None else nonce
        tx = self.chain.sign(key, to=to, data=data, value=value, gas=gas, nonce=nonce, max_fee=max_fee, tip=tip)
        return self.submit(tx.raw)

    def pending_nonce(self, sender: bytes) -> int:
        return self.pool.pending_nonce(sender, self.chain.nonce(sender))

    # -- mining

    def set_automine(self, on: bool) -> None:
        """Switching it on mines what waits in the mempool."""
        self.automine = on
        self._automine()

    def mine(self, timestamp: int | None = None) -> LocalBlock:
        """Mine a block of the transactions that are ready and fit; it may be empty."""
        return self._seal(self._fill(self.chain, timestamp))

    def mine_only(self, txs: Collection[LocalTransaction]) -> LocalBlock:
        """Mine a block of exactly these transactions, none of the mempool's. `Broken`, and no block, if one fails."""
        draft = self.chain.draft(self._next_timestamp or self.now())
        for tx in txs:
            try:
                error = draft.add(tx).error
            except RpcError as refusal:
                error = refusal.message
            if error is not None:
                raise Broken(f"a transaction to 0x{(tx.to or b'').hex()} failed: {error}")
        return self._seal(draft)

    def pending(self) -> BlockView:
        """The block that would be mined now, readable like any other."""
        scratch = self.chain.scratch()
        return BlockView(scratch, self._fill(scratch, None).seal())

    def reorg(self, depth: int, *, drop: Collection[bytes] = (), keep: bool = False) -> list[LocalBlock]:
        """Replace the last `depth` blocks by as many others; returns the new ones, oldest first.

        Their transactions go back to the mempool, except those in `drop`. They wait there unless `keep` asks
        for the first new block to carry them again.
        """
        if not 1 <= depth <= self.chain.head.number:
            raise server_error(f"cannot reorganise {depth} blocks of {self.chain.head.number}")
        removed = self.chain.rewind(self.chain.head.number - depth)[::-1]
        for block in removed:
            for tx in block.transactions:
                self.pool.insert(tx)
        for tx_hash in drop:
            self.pool.drop(tx_hash)
        for old in removed:
            # Salted with the hash it replaces, so even an empty block cannot come out the same.
            draft = self.chain.draft(old.timestamp, salt=old.hash)
            if keep:
                self._load(draft)
            self._seal(draft)
        return list(self.chain.history)[-depth:]

    # -- snapshots

    def snapshot(self) -> int:
        self._snapshot_count += 1
        blocks = tuple(self.chain.history)
        self._snapshots[self._snapshot_count] = _Snapshot(blocks, self.pool.copy(), self.time_offset)
        return self._snapshot_count

    def revert(self, snapshot_id: int) -> bool:
        """Go back to a snapshot. It and all later ones are deleted; False if there is none of that id."""
        snapshot = self._snapshots.get(snapshot_id)
        if snapshot is None:
            return False
        history = self.chain.history
        shared = len(snapshot.blocks)
        # A reorganisation may have replaced blocks below the snapshot: walk down to what both have.
        while shared > len(history) or history.at(shared - 1) is not snapshot.blocks[shared - 1]:
            shared -= 1
        self.chain.rewind(shared - 1)
        for block in snapshot.blocks[shared:]:
            history.append(block)
        self.pool = snapshot.pool.copy()
        self.time_offset = snapshot.offset
        self._next_timestamp = None
        self._snapshots = {i: s for i, s in self._snapshots.items() if i < snapshot_id}
        return True

    # -- inside

    def _automine(self) -> None:
        if self.automine and self.pool:
            draft = self._fill(self.chain, None)
            if draft.gas_used:
                self._seal(draft)

    def _fill(self, chain: LocalChain, timestamp: int | None) -> BlockBuilder:
        if timestamp is None:
            timestamp = self._next_timestamp or self.now()
        draft = chain.draft(timestamp)
        self._load(draft)
        return draft

    def _seal(self, draft: BlockBuilder) -> LocalBlock:
        block = self.chain.seal(draft)
        self._next_timestamp = None
        self.pool.drop_spent(self.chain.nonce)
        return block

    def _load(self, draft: BlockBuilder) -> None:
        """Fill a draft from the mempool: best tip first, first come first served between equals."""
        base_fee = draft.base_fee
        arrival = self.pool.arrival()
        lanes = [deque(run) for run in self.pool.lanes(self.chain.nonce)]

        def rank(lane: deque[LocalTransaction]) -> tuple[int, int]:
            return lane[0].price_at(base_fee), -arrival[lane[0].hash]

        while lanes:
            lane = max(lanes, key=rank)
            try:
                draft.add(lane[0])
            except RpcError:
                lanes.remove(lane)  # what follows in the lane cannot go without it
                continue
            lane.popleft()
            if not lane:
                lanes.remove(lane)
