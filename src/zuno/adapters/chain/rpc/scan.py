"""Search a chain's past for events, newest first, in spans as wide as the node allows; settled spans are cached."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.errors import NoSuchState, RangeRefused, ResponseTooLarge
from zuno.adapters.chain.rpc.node import Log, RpcNode, Topics
from zuno.amm.model import Block
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Address

FIRST_SPAN: Final = 50_000
MOST_QUERIES: Final = 5_000
"""Log queries one search may take, refused ones included; a node that needs more is not fit to be searched."""
_FORGIVE_AFTER: Final = 32


@dataclass(frozen=True, slots=True)
class Query:
    address: Address
    topics: Topics


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """A run of blocks, both ends included, and the events in it."""

    first: int
    last: int
    logs: tuple[Log, ...]


class Scanner:
    """Log queries whose width adapts: narrower when the node refuses, wider when it does not."""

    def __init__(self, node: RpcNode, first_span: int = FIRST_SPAN) -> None:
        self._node = node
        self.span = first_span
        self._refused: int | None = None
        self._since_refusal = 0

    async def back(self, query: Query, first: int, last: int) -> AsyncIterator[BlockSpan]:
        """Every block from `last` down to `first`, in spans, newest first."""
        for _ in range(MOST_QUERIES):
            if last < first:
                return
            low = max(first, last - self.span + 1)
            try:
                logs = await self._node.logs(query.address, query.topics, low, last)
            except (RangeRefused, ResponseTooLarge) as refusal:
                self._narrow(last - low + 1, refusal)
                continue
            self._widen()
            yield BlockSpan(low, last, tuple(logs))
            last = low - 1
        if last >= first:
            left = last - first + 1
            raise Unavailable(f"{MOST_QUERIES} log queries did not suffice, {left} blocks are left: use a better node")

    async def all(self, query: Query, first: int, last: int) -> list[Log]:
        """Everything between two blocks, oldest first."""
        spans = [block_span async for block_span in self.back(query, first, last)]
        return [log for block_span in reversed(spans) for log in block_span.logs]

    def _narrow(self, refused: int, refusal: Exception) -> None:
        if refused <= 1:
            raise Unavailable(f"the node refuses logs of a single block: {refusal}") from refusal
        self._refused, self._since_refusal = refused, 0
        self.span = max(1, refused // 2)

    def _widen(self) -> None:
        self._since_refusal += 1
        if self._since_refusal >= _FORGIVE_AFTER:
            self._refused = None  # the dense span may be behind us
        # Creeping up to the refused width, not onto it, or every second query would be wasted.
        limit = self.span * 2 if self._refused is None else max(self.span, self._refused * 3 // 4)
        self.span = min(self.span * 2, limit)


Spans = list[tuple[int, int]]


def add_span(spans: Spans, first: int, last: int) -> Spans:
    """The spans with this one merged in, sorted and without overlaps."""
    merged: Spans = []
    for low, high in sorted([*spans, (first, last)]):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def gaps(spans: Spans, first: int, last: int) -> Spans:
    """What is missing between two blocks, newest first."""
    missing, high = Spans(), last
    for low, top in sorted(spans, reverse=True):
        if top < high:
            missing.append((max(first, top + 1), high))
        high = min(high, low - 1)
        if high < first:
            break
    if high >= first:
        missing.append((first, high))
    return [(low, top) for low, top in missing if low <= top]


@dataclass(eq=False)
class LogSearch:
    """A search that is cached on disk after every span. Blocks younger than the chain's confirmations are searched
    again; the anchor's hash voids the record after a deeper reorganisation or on another chain. `keep` makes a finding
    of an event; `check` raises ValueError for a finding it cannot have made."""

    node: RpcNode
    scanner: Scanner
    cache: JsonCache
    name: str
    query: Query
    keep: Callable[[Log], str]
    check: Callable[[str], object]
    _anchor: tuple[int, str] | None = field(default=None, init=False)
    _searched: Spans = field(default_factory=list, init=False)
    found: dict[str, None] = field(default_factory=dict, init=False)
    """In the order found; a dict because sets have none."""
    resumed: bool = field(default=False, init=False)

    async def open(self) -> None:
        """Load the record, if it is of this chain."""
        self.forget()
        record = self.cache.load(self.name, self._parse_record)
        if record is None:
            return
        anchor, searched, found = record
        with suppress(NoSuchState):
            if (await self.node.block(anchor[0])).hash == anchor[1]:
                self._anchor, self._searched, self.found, self.resumed = anchor, searched, dict.fromkeys(found), True

    def _parse_record(self, written: dict[str, Any]) -> tuple[tuple[int, str], Spans, list[str]]:
        number, block_hash = written["anchor"]
        searched = [(first, last) for first, last in written["searched"]]
        if not all(type(at) is int and at >= 0 for at in (number, *chain.from_iterable(searched))):
            raise ValueError("a block number that is none")
        for finding in written["found"]:
            self.check(finding)
        return (number, str(block_hash)), searched, list(written["found"])

    def forget(self) -> None:
        self._anchor, self._searched, self.found, self.resumed = None, [], {}, False

    def drop(self) -> None:
        """Forget the record on disk too: it was wrong."""
        self.forget()
        self.cache.drop(self.name)

    async def walk(self, first: int, head: Block, confirmations: int) -> AsyncIterator[list[str]]:
        """Search what is still unsearched, newest first; yields what each span brought."""
        settled = head.number - confirmations
        for low, high in gaps(self._searched, first, head.number):
            async for block_span in self.scanner.back(self.query, low, high):
                kept = dict.fromkeys(self.keep(log) for log in reversed(block_span.logs))
                news = [finding for finding in kept if finding not in self.found]
                self.found.update(kept)
                await self._tick_off(block_span, settled)
                yield news

    def count_unsearched(self, first: int, last: int) -> int:
        return sum(high - low + 1 for low, high in gaps(self._searched, first, last))

    async def _tick_off(self, block_span: BlockSpan, settled: int) -> None:
        last = min(block_span.last, settled)
        if last < block_span.first:
            return
        if self._anchor is None or last > self._anchor[0]:
            block = await self.node.block(last)
            self._anchor = (block.number, block.hash)
        self._searched = add_span(self._searched, block_span.first, last)
        self.cache.save(
            self.name, {"anchor": list(self._anchor), "searched": self._searched, "found": list(self.found)}
        )
