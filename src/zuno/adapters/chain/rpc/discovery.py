"""Find the pools of curated pairs and the positions of a wallet; an incomplete search says so."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.errors import NoSuchMethod, NoSuchState
from zuno.adapters.chain.rpc.node import Log, RpcNode
from zuno.adapters.chain.rpc.positions import PositionReader, pool_id_of
from zuno.adapters.chain.rpc.scan import LogSearch, Query, Scanner
from zuno.amm.model import Block, PoolKey
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Address, HexId, Pips
from zuno.lp.model.chains import ChainInfo, curated_keys
from zuno.lp.ports.chain import OwnedPositions, PastPositions

OWNED_QUERIES: Final = 2_000
POOL_QUERIES: Final = 200
"""Log queries one run may spend on a search before it returns what it has; the next run goes on from there."""
SMALL_CHAIN: Final = 100_000
"""Blocks that are searched sooner than their beginning is found."""
_RECORD: Final = "deployed"
Held = dict[int, Address]
"""Positions by id, with their owner."""


class DeploymentBlock:
    """The block before which v4 has no events: no search goes further back."""

    def __init__(self, node: RpcNode, contract: Address, cache: JsonCache) -> None:
        self._node = node
        self._contract = contract
        self._cache = cache
        self.remembered = False
        """Whether the last answer was one of an earlier run."""

    async def block(self, head: int) -> int:
        if head < SMALL_CHAIN:
            return 0
        known = self._cache.load(_RECORD, self._parse_record)
        self.remembered = known is not None and known <= head
        if known is not None and self.remembered:
            return known
        try:
            first = await self._search(head)
            # One wrong answer on the way would hide events for ever: what is kept was looked at from both sides.
            sure = first == 0 or not await self._node.has_code(self._contract, first - 1)
            if not sure or not await self._node.has_code(self._contract, first):
                return 0
        except (NoSuchState, NoSuchMethod):
            return 0  # no archive: the search itself will have to find the beginning
        self._cache.save(_RECORD, {self._contract: first})
        return first

    def forget(self) -> None:
        """Drop the record: a search from that block missed something that exists."""
        self._cache.save(_RECORD, {})

    async def _search(self, head: int) -> int:
        low, high = 0, head
        while low < high:
            middle = (low + high) // 2
            if await self._node.has_code(self._contract, middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _parse_record(self, record: dict[str, Any]) -> int | None:
        known = record.get(self._contract)
        if known is not None and (type(known) is not int or known < 0):
            raise ValueError("a block number that is none")
        return known


@dataclass(eq=False)
class OwnedReader:
    """Which positions a wallet holds. PositionManager cannot be asked, so its Transfer events are."""

    node: RpcNode
    scanner: Scanner
    positions: PositionReader
    deployment: DeploymentBlock
    info: ChainInfo
    cache: JsonCache

    async def read_owned(self, owners: Sequence[Address], head: Block) -> list[OwnedPositions]:
        """Every id whose last Transfer went to one of `owners`: candidates from events, each confirmed by ownerOf at
        `head`. Many owners share a search; its record is theirs together."""
        balances = await self.positions.balances(owners, head)
        wanted = {owner: balance for owner, balance in balances.items() if balance}
        held, why = Held(), ""
        if wanted:
            words = [abi.address_word(owner) for owner in owners]
            name = owners[0] if len(owners) == 1 else sha256("".join(sorted(owners)).encode()).hexdigest()[:40]
            # Only what came in: what left again is told apart by ownerOf, which must be asked anyway.
            query = Query(
                self.info.deployment.position_manager, (abi.TRANSFER, None, words[0] if len(words) == 1 else words)
            )
            log_search = LogSearch(
                self.node, self.scanner, self.cache, f"owned-{name}", query, _format_transfer, _parse_token_id
            )
            try:
                await log_search.open()
                held = await self._confirm_owned(wanted, log_search.found, head)
                held, why = await self._search(log_search, held, wanted, head)
                if len(held) < sum(wanted.values()) and not why and (log_search.resumed or self.deployment.remembered):
                    # What was remembered misses something (a deep reorganisation, a wrong answer): once more, then.
                    log_search.forget()
                    self.deployment.forget()
                    held, why = await self._search(log_search, held, wanted, head)
            except (Unavailable, Malformed) as fault:
                if isinstance(fault, NoSuchState):
                    raise
                held, why = Held(), str(fault)
        ids: dict[Address, list[int]] = {owner: [] for owner in owners}
        for token, owner in held.items():
            ids[owner].append(token)
        return [_owned_positions(head, owner, ids[owner], balances[owner], why) for owner in owners]

    async def read_past(self, owner: Address, head: Block) -> PastPositions:
        """Every id that a Transfer took from `owner` and none has brought back."""
        query = Query(self.info.deployment.position_manager, (abi.TRANSFER, abi.address_word(owner)))
        log_search = LogSearch(
            self.node, self.scanner, self.cache, f"past-{owner}", query, _format_transfer, _parse_token_id
        )
        spans, note, held = 0, "", set[int]()
        try:
            await log_search.open()
            first = await self.deployment.block(head.number)
            async for _ in log_search.walk(first, head, self.info.confirmations):
                spans += 1
                if spans >= OWNED_QUERIES:
                    note = f"stopped after {spans} log queries; run again to go on from here"
                    break
            held = set(await self._confirm_owned({owner}, log_search.found, head))
        except (Unavailable, Malformed) as fault:
            if isinstance(fault, NoSuchState):
                raise
            note = f"the search did not end: {fault}"
        ids = sorted({_parse_token_id(finding) for finding in log_search.found} - held)
        return PastPositions(head, owner, tuple(ids), not note, note)

    async def _search(
        self, log_search: LogSearch, held: Held, wanted: Mapping[Address, int], head: Block
    ) -> tuple[Held, str]:
        """Widen `held` until it is as large as the balances; the text says why it is not."""
        balance = sum(wanted.values())
        if len(held) == balance:
            return held, ""
        spans = 0
        try:
            async for news in log_search.walk(await self.deployment.block(head.number), head, self.info.confirmations):
                held = held | await self._confirm_owned(wanted, news, head)
                if len(held) == balance:
                    return held, ""
                spans += 1
                if spans >= OWNED_QUERIES:
                    return held, f"stopped after {spans} log queries"
        except NoSuchState:
            raise
        except (Unavailable, Malformed) as fault:
            return held, str(fault)
        return held, ""

    async def _confirm_owned(self, owners: Collection[Address], candidates: Iterable[str], head: Block) -> Held:
        read = await self.positions.read(map(_parse_token_id, candidates), head)
        if read.unread:
            raise next(iter(read.unread.values()))
        return {token: nft.owner for token, nft in read.nfts.items() if nft.owner in owners}


def _owned_positions(head: Block, owner: Address, ids: list[int], balance: int, why: str) -> OwnedPositions:
    complete = len(ids) == balance
    why = why or "the events of the rest are not on this node"
    note = "" if complete else f"found {len(ids)} of {balance} positions: {why}; run again to go on from here"
    return OwnedPositions(head, owner, tuple(sorted(ids)), balance, complete=complete, note=note)


@dataclass(frozen=True, slots=True)
class CuratedKeys:
    keys: dict[HexId, PoolKey]
    initialized: frozenset[HexId]
    """Those with an Initialize event."""
    notes: tuple[str, ...]
    """What could not be searched."""


class PoolKeyReader:
    """Pool keys: the curated ones are computed, the others found by their Initialize events or PositionManager."""

    def __init__(
        self, node: RpcNode, scanner: Scanner, deployment: DeploymentBlock, info: ChainInfo, cache: JsonCache
    ) -> None:
        self._node = node
        self._deployment = deployment
        self._info = info
        self._scanner = scanner
        self.known = {pool_id_of(key): key for key in curated_keys(info)}
        find_curated = [abi.address_word(token.address) for token in info.tokens]
        query = Query(info.deployment.pool_manager, (abi.INITIALIZE, None, find_curated, find_curated))
        self._log_search = LogSearch(node, scanner, cache, "pools", query, _format_initialize, _parse_key)
        self._lock = asyncio.Lock()
        self._missed: dict[HexId, HexId] = {}
        """Pools whose events were searched in vain, with the head they were searched from: another may tell."""

    async def find_curated(self, head: Block) -> CuratedKeys:
        """Every key of the curated currencies; one search at a time, because they share their record."""
        notes: tuple[str, ...] = ()
        async with self._lock:
            try:
                await self._log_search.open()
                notes = await self._search(head)
            except NoSuchState:
                raise
            except (Unavailable, Malformed) as fault:
                notes = (_incomplete_note(str(fault)),)
            initialized = {pool_id_of(key): key for key in map(_parse_key, self._log_search.found)}
        keys = initialized | {pool_id_of(key): key for key in curated_keys(self._info)}
        self.known.update(keys)
        return CuratedKeys(keys, frozenset(initialized), notes)

    def check_search(self, curated: CuratedKeys, priced: Collection[HexId]) -> tuple[str, ...]:
        """What to say of a search that missed a pool with a price. Its record is dropped, because it may have missed
        others as well."""
        missed = set(priced) - curated.initialized
        if curated.notes or (curated.initialized and not missed):
            return ()
        self._log_search.drop()
        self._deployment.forget()
        self._node.provider.skip_last_node()
        return (_incomplete_note(f"the events leave out {len(missed)} of the pools that exist"),) if missed else ()

    async def find(self, pool_id: HexId, head: Block) -> PoolKey | None:
        """The key behind a pool id, from the cheapest source that knows it; None if none does at this block."""
        if pool_id in self.known:
            return self.known[pool_id]
        question = abi.pool_keys(bytes.fromhex(pool_id[2:52]))
        key = await self._node.call(self._info.deployment.position_manager, question, head, abi.pool_key)
        if key.tick_spacing == 0 or pool_id_of(key) != pool_id:
            event = None if self._missed.get(pool_id) == head.hash else await self._find_initialize_event(pool_id, head)
            if event is None:
                self._missed[pool_id] = head.hash
                return None
            key = event
        self.known[pool_id] = key
        return key

    async def _find_initialize_event(self, pool_id: HexId, head: Block) -> PoolKey | None:
        query = Query(self._info.deployment.pool_manager, (abi.INITIALIZE, pool_id))
        async for span in self._scanner.back(query, await self._deployment.block(head.number), head.number):
            for log in span.logs:
                return _parse_key(_format_initialize(log))
        return None

    async def _search(self, head: Block) -> tuple[str, ...]:
        first, spans = await self._deployment.block(head.number), 0
        async for _ in self._log_search.walk(first, head, self._info.confirmations):
            spans += 1
            if spans >= POOL_QUERIES:
                left = self._log_search.count_unsearched(first, head.number - self._info.confirmations)
                return (_incomplete_note(f"{left} older blocks are left for the next run"),) if left else ()
        return ()


def _incomplete_note(why: str) -> str:
    return f"usual fee tiers were probed, but the search for other pools is incomplete: {why}"


def _parse_token_id(finding: str) -> int:
    if not finding.isdecimal() or int(finding) >= 1 << 256:
        raise ValueError("no token has such an id")
    return int(finding)


def _format_transfer(log: Log) -> str:
    return str(int(log.topics[3], 16))


def _format_initialize(log: Log) -> str:
    fee, spacing, hooks, _, _ = abi.decode_abi(abi.INITIALIZE_FIELDS, log.data, "an Initialize event")
    currencies = (abi.topic_address(log.topics[2]), abi.topic_address(log.topics[3]))
    return ",".join((*currencies, str(fee), str(spacing), hooks.lower()))


def _parse_key(finding: str) -> PoolKey:
    currency0, currency1, fee, spacing, hooks = finding.split(",")
    key = PoolKey(Address(currency0), Address(currency1), Pips(int(fee)), int(spacing), Address(hooks))
    pool_id_of(key)  # which a key of other than five fitting parts does not have
    return key
