"""Finding what exists: the pools of curated pairs and the positions of a wallet, complete or saying that it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.cache import Shelf
from zuno.adapters.chain.rpc.errors import NoSuchMethod, NoSuchState
from zuno.adapters.chain.rpc.node import Log, Node
from zuno.adapters.chain.rpc.positions import Deeds, id_of
from zuno.adapters.chain.rpc.scan import Query, Scanner, Trail
from zuno.amm.model import Block, PoolKey
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Address, HexId, Pips
from zuno.lp.model.chains import ChainInfo, curated_keys
from zuno.lp.ports.chain import OwnedPositions

OWNED_STRETCHES: Final = 2_000
POOL_STRETCHES: Final = 200
"""Log queries one run may spend on a search before it returns what it has; the next run goes on from there."""
SMALL_CHAIN: Final = 100_000
"""Blocks that are searched sooner than their beginning is found."""
_SHELF: Final = "deployed"


class Birthday:
    """The block before which v4 has no events, so that no search goes further back."""

    def __init__(self, node: Node, contract: Address, shelf: Shelf) -> None:
        self._node = node
        self._contract = contract
        self._shelf = shelf
        self.remembered = False
        """Whether the last answer was one of an earlier run."""

    async def block(self, head: int) -> int:
        if head < SMALL_CHAIN:
            return 0
        known = self._shelf.load(_SHELF, self._written)
        self.remembered = known is not None and known <= head
        if known is not None and self.remembered:
            return known
        try:
            found = await self._search(head)
            # One wrong answer on the way would hide events for ever: what is kept was looked at from both sides.
            sure = found == 0 or not await self._node.has_code(self._contract, found - 1)
            if not sure or not await self._node.has_code(self._contract, found):
                return 0
        except (NoSuchState, NoSuchMethod):
            return 0  # no archive: the search itself will have to find the beginning
        self._shelf.save(_SHELF, {self._contract: found})
        return found

    def forget(self) -> None:
        """For when a search from here on did not find what must be there."""
        self._shelf.save(_SHELF, {})

    async def _search(self, head: int) -> int:
        low, high = 0, head
        while low < high:
            middle = (low + high) // 2
            if await self._node.has_code(self._contract, middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _written(self, record: dict[str, Any]) -> int | None:
        known = record.get(self._contract)
        if known is not None and (type(known) is not int or known < 0):
            raise ValueError("a block number that is none")
        return known


class Wallets:
    """Which positions a wallet holds. PositionManager cannot be asked, so its Transfer events are."""

    def __init__(self, node: Node, scanner: Scanner, deeds: Deeds, birthday: Birthday, info: ChainInfo, shelf: Shelf):
        self._node = node
        self._scanner = scanner
        self._deeds = deeds
        self._birthday = birthday
        self._info = info
        self._shelf = shelf
        self._manager = info.deployment.position_manager

    async def owned(self, owner: Address, head: Block) -> OwnedPositions:
        """Every id whose last Transfer went to `owner`: candidates from events, each confirmed by ownerOf at `head`."""
        balance = await self._balance(owner, head)
        if balance == 0:
            return OwnedPositions(head, owner, (), 0, complete=True)
        # Only what came in: what left again is told apart by ownerOf, which must be asked anyway.
        query = Query(self._manager, (abi.TRANSFER, None, abi.address_word(owner)))
        trail = Trail(self._node, self._scanner, self._shelf, f"owned-{owner}", query, _received, _token_id)
        try:
            await trail.open()
            held = await self._held(owner, trail.found, head)
            held, why = await self._search(trail, owner, held, balance, head)
            if len(held) < balance and not why and (trail.resumed or self._birthday.remembered):
                # What was remembered misses something (a deep reorganisation, a wrong answer): once more without it.
                trail.forget()
                self._birthday.forget()
                held, why = await self._search(trail, owner, held, balance, head)
        except (Unavailable, Malformed) as fault:
            if isinstance(fault, NoSuchState):
                raise
            held, why = set(), str(fault)
        if len(held) == balance:
            return OwnedPositions(head, owner, tuple(sorted(held)), balance, complete=True)
        note = f"found {len(held)} of {balance} positions: {why or 'the events of the rest are not on this node'}"
        note = f"{note}; run again to go on from here"
        return OwnedPositions(head, owner, tuple(sorted(held)), balance, complete=False, note=note)

    async def _search(
        self, trail: Trail, owner: Address, held: set[int], balance: int, head: Block
    ) -> tuple[set[int], str]:
        """Widen `held` until it is as large as the balance; the text says why it is not."""
        if len(held) == balance:
            return held, ""
        stretches = 0
        try:
            async for news in trail.walk(await self._birthday.block(head.number), head, self._info.confirmations):
                held = held | await self._held(owner, news, head)
                if len(held) == balance:
                    return held, ""
                stretches += 1
                if stretches >= OWNED_STRETCHES:
                    return held, f"stopped after {stretches} log queries"
        except NoSuchState:
            raise
        except (Unavailable, Malformed) as fault:
            return held, str(fault)
        return held, ""

    async def _held(self, owner: Address, candidates: Iterable[str], head: Block) -> set[int]:
        read = await self._deeds.read(map(_token_id, candidates), head)
        if read.unread:
            raise next(iter(read.unread.values()))
        return {token for token, deed in read.deeds.items() if deed.owner == owner}

    async def _balance(self, owner: Address, head: Block) -> int:
        return await self._node.call(self._manager, abi.balance_of(owner), head, abi.numbered("balanceOf"))


@dataclass(frozen=True, slots=True)
class Curated:
    """Keys of the curated currencies, probed tiers first."""

    keys: dict[HexId, PoolKey]
    told: frozenset[HexId]
    """Those that Initialize events tell of."""
    notes: tuple[str, ...]
    """What could not be searched."""


class Keys:
    """Pool keys: the curated ones are computed, the others found by their Initialize events or PositionManager."""

    def __init__(self, node: Node, scanner: Scanner, birthday: Birthday, info: ChainInfo, shelf: Shelf) -> None:
        self._node = node
        self._birthday = birthday
        self._info = info
        self._scanner = scanner
        self._known = {id_of(key): key for key in curated_keys(info)}
        curated = [abi.address_word(token.address) for token in info.tokens]
        query = Query(info.deployment.pool_manager, (abi.INITIALIZE, None, curated, curated))
        self._trail = Trail(node, scanner, shelf, "pools", query, _initialized, _key_from)
        self._turn = asyncio.Lock()
        self._missed: dict[HexId, HexId] = {}
        """Pools whose events were searched in vain, with the head they were searched from: another may tell."""

    async def curated(self, head: Block) -> Curated:
        """Every key of the curated currencies; one search at a time, because they share their record."""
        async with self._turn:
            return await self._curated(head)

    def doubts(self, found: Curated, priced: Collection[HexId]) -> tuple[str, ...]:
        """What to say of a search that missed a pool with a price; its record is dropped.

        Every pool has an Initialize event. A search that saw none of those we know may have missed any other as well,
        so it is not kept: without a known pool among its findings nothing speaks for it.
        """
        missed = set(priced) - found.told
        if found.notes or (found.told and not missed):
            return ()
        self._trail.drop()
        self._birthday.forget()
        self._node.leave_alone()
        return (_unsearched(f"the events leave out {len(missed)} of the pools that exist"),) if missed else ()

    async def _curated(self, head: Block) -> Curated:
        notes: tuple[str, ...] = ()
        try:
            await self._trail.open()
            notes = await self._search(head)
        except NoSuchState:
            raise
        except (Unavailable, Malformed) as fault:
            notes = (_unsearched(str(fault)),)
        keys = {id_of(key): key for key in curated_keys(self._info)}
        told = {id_of(key): key for key in map(_key_from, self._trail.found)}
        keys |= {pool_id: key for pool_id, key in told.items() if pool_id not in keys}
        self._known.update(keys)
        return Curated(keys, frozenset(told), notes)

    def named(self, pool_id: HexId) -> PoolKey | None:
        """The key if it is known already."""
        return self._known.get(pool_id)

    async def find(self, pool_id: HexId, head: Block) -> PoolKey | None:
        """The key behind an id, from the cheapest source that knows it; None if none does at this block."""
        if pool_id in self._known:
            return self._known[pool_id]
        question = abi.pool_keys(bytes.fromhex(pool_id[2:52]))
        key = await self._node.call(self._info.deployment.position_manager, question, head, abi.pool_key)
        if key.tick_spacing == 0 or id_of(key) != pool_id:
            found = None if self._missed.get(pool_id) == head.hash else await self._initialized(pool_id, head)
            if found is None:
                self._missed[pool_id] = head.hash
                return None
            key = found
        self._known[pool_id] = key
        return key

    async def _initialized(self, pool_id: HexId, head: Block) -> PoolKey | None:
        query = Query(self._info.deployment.pool_manager, (abi.INITIALIZE, pool_id))
        async for stretch in self._scanner.back(query, await self._birthday.block(head.number), head.number):
            for log in stretch.logs:
                return _key_from(_initialized(log))
        return None

    async def _search(self, head: Block) -> tuple[str, ...]:
        first, stretches = await self._birthday.block(head.number), 0
        async for _ in self._trail.walk(first, head, self._info.confirmations):
            stretches += 1
            if stretches >= POOL_STRETCHES:
                left = self._trail.unsearched(first, head.number - self._info.confirmations)
                return (_unsearched(f"{left} older blocks are left for the next run"),) if left else ()
        return ()


def _unsearched(why: str) -> str:
    return f"usual fee tiers were probed, but the search for other pools is incomplete: {why}"


def _token_id(finding: str) -> int:
    if not finding.isdecimal() or int(finding) >= 1 << 256:
        raise ValueError("no token has such an id")
    return int(finding)


def _received(log: Log) -> str:
    return str(int(log.topics[3], 16))


def _initialized(log: Log) -> str:
    fee, spacing, hooks, _, _ = abi.decoded(
        ["uint24", "int24", "address", "uint160", "int24"], log.data, "an Initialize event"
    )
    currencies = (abi.address_in(log.topics[2]), abi.address_in(log.topics[3]))
    return ",".join((*currencies, str(fee), str(spacing), hooks.lower()))


def _key_from(finding: str) -> PoolKey:
    currency0, currency1, fee, spacing, hooks = finding.split(",")
    key = PoolKey(Address(currency0), Address(currency1), Pips(int(fee)), int(spacing), Address(hooks))
    id_of(key)  # which a key of other than five fitting parts does not have
    return key
