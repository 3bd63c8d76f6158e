"""The canonical chain as an index of its blocks, receipts and logs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eth.abc import BlockHeaderAPI

from .transactions import LocalTransaction


@dataclass(frozen=True, slots=True)
class LocalLog:
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    tx_index: int
    index: int  # within the block


@dataclass(frozen=True, slots=True)
class LocalReceipt:
    """A receipt, with `error` and `revert_data`, which geth's JSON does not have."""

    tx: LocalTransaction
    index: int
    gas_used: int
    cumulative_gas: int
    gas_price: int
    contract: bytes | None
    logs: tuple[LocalLog, ...]
    bloom: int
    error: str | None = None
    revert_data: bytes = b""

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class LocalBlock:
    header: BlockHeaderAPI
    receipts: tuple[LocalReceipt, ...]
    size: int

    @property
    def number(self) -> int:
        return self.header.block_number

    @property
    def hash(self) -> bytes:
        return self.header.hash

    @property
    def timestamp(self) -> int:
        return self.header.timestamp

    @property
    def base_fee(self) -> int:
        return base_fee_of(self.header)

    @property
    def transactions(self) -> tuple[LocalTransaction, ...]:
        return tuple(receipt.tx for receipt in self.receipts)

    def logs(self) -> Iterator[LocalLog]:
        for receipt in self.receipts:
            yield from receipt.logs


RawLog = tuple[bytes, tuple[int, ...], bytes]


def numbered_logs(raw: Sequence[RawLog], block_number: int, tx_index: int, first: int) -> tuple[LocalLog, ...]:
    """A transaction's logs with their positions in the block."""
    return tuple(
        LocalLog(
            address, tuple(topic.to_bytes(32, "big") for topic in topics), data, block_number, tx_index, first + offset
        )
        for offset, (address, topics, data) in enumerate(raw)
    )


def base_fee_of(header: BlockHeaderAPI) -> int:
    return header.base_fee_per_gas or 0


Topics = Sequence[frozenset[bytes] | None]


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The filter of eth_getLogs: an empty set of addresses means any; None in `topics` is a wildcard."""

    first: int
    last: int
    addresses: frozenset[bytes] = frozenset()
    topics: Topics = ()

    def accepts(self, log: LocalLog) -> bool:
        if self.addresses and log.address not in self.addresses:
            return False
        if len(log.topics) < len(self.topics):
            return False
        return all(wanted is None or topic in wanted for wanted, topic in zip(self.topics, log.topics, strict=False))


class ChainIndex:
    """Blocks in order, and where to find each block, transaction and log."""

    def __init__(self) -> None:
        self._blocks: list[LocalBlock] = []
        self._by_hash: dict[bytes, LocalBlock] = {}
        self._receipts: dict[bytes, tuple[LocalBlock, LocalReceipt]] = {}
        # One list of logs per address and per (position, topic), in chain order: every cut is a bisection.
        self._by_address: defaultdict[bytes, list[LocalLog]] = defaultdict(list)
        self._by_topic: defaultdict[tuple[int, bytes], list[LocalLog]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[LocalBlock]:
        return iter(self._blocks)

    @property
    def head(self) -> LocalBlock:
        return self._blocks[-1]

    def at(self, number: int) -> LocalBlock | None:
        return self._blocks[number] if 0 <= number < len(self._blocks) else None

    def by_hash(self, block_hash: bytes) -> LocalBlock | None:
        return self._by_hash.get(block_hash)

    def receipt(self, tx_hash: bytes) -> tuple[LocalBlock, LocalReceipt] | None:
        return self._receipts.get(tx_hash)

    def append(self, block: LocalBlock) -> None:
        self._blocks.append(block)
        self._by_hash[block.hash] = block
        for receipt in block.receipts:
            self._receipts[receipt.tx.hash] = (block, receipt)
        for log in block.logs():
            for entry in self._entries(log):
                entry.append(log)

    def pop(self) -> LocalBlock:
        """Take the head off, with everything that was known through it."""
        block = self._blocks.pop()
        del self._by_hash[block.hash]
        for receipt in block.receipts:
            del self._receipts[receipt.tx.hash]
        for log in reversed(tuple(block.logs())):
            for entry in self._entries(log):
                entry.pop()
        return block

    def ancestor_hashes(self, number: int) -> Iterator[bytes]:
        """Hashes of the blocks before `number`, newest first: what BLOCKHASH may see."""
        for height in range(number - 1, max(-1, number - 257), -1):
            yield self._blocks[height].hash

    def logs(self, wanted: LogFilter) -> Iterator[LocalLog]:
        """Matching logs in chain order."""
        first, last = max(0, wanted.first), min(wanted.last, len(self._blocks) - 1)
        indexed = [[self._by_address[a] for a in wanted.addresses if a in self._by_address]]
        indexed = indexed if wanted.addresses else []
        for position, topics in enumerate(wanted.topics):
            if topics is not None:
                keys = [(position, topic) for topic in topics]
                indexed.append([self._by_topic[key] for key in keys if key in self._by_topic])
        if not indexed:
            for number in range(first, last + 1):
                yield from (log for log in self._blocks[number].logs() if wanted.accepts(log))
            return
        cuts = [[_within(entry, first, last) for entry in entries] for entries in indexed]
        narrowest = min(cuts, key=lambda entries: sum(map(len, entries)))
        candidates = [log for entry in narrowest for log in entry]
        if len(narrowest) > 1:
            candidates.sort(key=lambda log: (log.block_number, log.index))
        yield from filter(wanted.accepts, candidates)

    def _entries(self, log: LocalLog) -> Iterator[list[LocalLog]]:
        yield self._by_address[log.address]
        for position, topic in enumerate(log.topics):
            yield self._by_topic[position, topic]


def _within(entry: list[LocalLog], first: int, last: int) -> list[LocalLog]:
    start = bisect_left(entry, first, key=lambda log: log.block_number)
    return entry[start : bisect_right(entry, last, key=lambda log: log.block_number)]
