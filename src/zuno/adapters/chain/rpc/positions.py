"""Positions as PositionManager knows them. Pool and range never change, changes of owner and subscriber leave an event:
so a remembered position costs one log query and one look at both."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.errors import CallReverted, NoSuchState, ResponseTooLarge
from zuno.adapters.chain.rpc.node import Log, RpcNode
from zuno.adapters.chain.rpc.transport import Callee
from zuno.amm.identity import decode_position_info, pool_id
from zuno.amm.model import Block, PoolKey, Range
from zuno.amm.ticks import MAX_TICK
from zuno.kernel.errors import Malformed, Unavailable, ZunoError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Pips, Seconds, Tick

T = TypeVar("T")
IDS_PER_CALL: Final = 500
"""Two words each: about 5 million gas and 130 kB; a node that allows less is asked for half as much at a time."""
LOOKED_AT: Final = 250
"""Remembered positions that are compared one by one; of more, only how many each owner has."""
TRUSTED_BLOCKS: Final = 2_000
"""Beyond this many blocks, reading every position again is cheaper than asking what happened since."""

_RECORD: Final = "positions"
_SAVE_EVERY: Final = 100
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{40}")

PackedPositions = dict[int, tuple[int, int]]
"""What `positionInfo` and `ownerOf` returned, of those that exist."""


@dataclass(frozen=True, slots=True)
class PositionNft:
    key: PoolKey
    pool_id: HexId
    range: Range
    owner: Address
    subscribed: bool


@dataclass(frozen=True, slots=True)
class PositionNfts:
    """Positions at one block; an id in neither dict does not exist."""

    nfts: dict[int, PositionNft]
    unread: dict[int, ZunoError]


class PositionReader:
    def __init__(self, node: RpcNode, position_manager: Address, cache: JsonCache) -> None:
        self._node = node
        self._manager = position_manager
        self._cache = cache
        self._known: dict[int, PositionNft] = {}
        self._keys: dict[str, PoolKey] = {}
        """By the first 25 bytes of the pool's id; a hash cannot come to mean another key."""
        self._seen: set[int] = set()
        """Those whose owner was looked at in the state of `_as_of` itself."""
        self._as_of: Block | None = None
        self._loaded = False
        self._saved_at = self._saved = 0
        self._lock = asyncio.Lock()

    async def read(self, ids: Iterable[int], at: Block) -> PositionNfts:
        """Positions at the head `at`, from memory where that is confirmed; one reader at a time changes memory."""
        async with self._lock:
            return await self._read_locked(ids, at)

    async def _read_locked(self, ids: Iterable[int], at: Block) -> PositionNfts:
        self._load()
        if self._as_of is not None and at.number < self._as_of.number:
            return await self.read_anew(ids, at)  # a node behind the last one; what we remember is of its future
        wanted = list(dict.fromkeys(ids))
        try:
            await self._catch_up(at)
            if self._as_of != at:
                self._seen.clear()
            if not await self._is_true_at(
                at, [each for each in wanted if each in self._known and each not in self._seen]
            ):
                self._forget()
        except (Unavailable, Malformed):
            return await self.read_anew(wanted, at)  # what we remember may still be true: it is kept for another time
        fresh = await self.read_anew([token for token in wanted if token not in self._known], at)
        self._known.update(fresh.nfts)
        self._seen.update(token for token in wanted if token in self._known)
        self._as_of = at
        # Of a long list every part brings some: thousands are written again once there are a quarter more of them.
        grown = len(self._known) - self._saved >= self._saved // 4 - IDS_PER_CALL
        if (fresh.nfts and grown) or at.number - self._saved_at >= _SAVE_EVERY:
            self._save()
        return PositionNfts({token: self._known[token] for token in wanted if token in self._known}, fresh.unread)

    async def read_anew(self, ids: Iterable[int], at: Block) -> PositionNfts:
        wanted = list(dict.fromkeys(ids))
        parts = [wanted[start : start + IDS_PER_CALL] for start in range(0, len(wanted), IDS_PER_CALL)]
        answers = await asyncio.gather(*(self._fetch(part, at) for part in parts), return_exceptions=True)
        packed, unread = PackedPositions(), dict[int, ZunoError]()
        for part, answer in zip(parts, answers, strict=True):
            if isinstance(answer, Unavailable | Malformed) and not isinstance(answer, NoSuchState):
                unread.update(dict.fromkeys(part, answer))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                packed.update(answer)
        if unread and len(unread) == len(wanted):
            raise next(iter(unread.values()))
        return PositionNfts(await self._unpack(packed, at), unread)

    async def _fetch(self, ids: Sequence[int], at: Block) -> PackedPositions:
        try:
            calls = [call for token in ids for call in (_info_call(token), _owner_call(token))]
            words = await self._words(calls, at, Callee.MAY_REVERT)
            pairs = zip(ids, words[::2], words[1::2], strict=True)
            return {token: (info, owner) for token, info, owner in pairs if info}
        except (CallReverted, ResponseTooLarge):
            # One burnt id makes ownerOf, and with it the whole call, revert: ask first who exists.
            return await self._fetch_in_two_calls(ids, at)

    async def _fetch_in_two_calls(self, ids: Sequence[int], at: Block) -> PackedPositions:
        try:
            infos = dict(zip(ids, await self._words([_info_call(token) for token in ids], at), strict=True))
            alive = [token for token, info in infos.items() if info]
            owners = await self._words([_owner_call(token) for token in alive], at)
        except (CallReverted, ResponseTooLarge):
            # The node's own limits, then: half as much at a time.
            if len(ids) == 1:
                raise
            half = len(ids) // 2
            return await self._fetch_in_two_calls(ids[:half], at) | await self._fetch_in_two_calls(ids[half:], at)
        return {token: (infos[token], owner) for token, owner in zip(alive, owners, strict=True)}

    async def _unpack(self, packed: PackedPositions, at: Block) -> dict[int, PositionNft]:
        """Positions from packed words: one has the ticks and 25 bytes of the pool's id; its key is filed per pool."""
        infos = {token: decode_position_info(info) for token, (info, _) in packed.items()}
        strange = sorted({info.pool_id_prefix for info in infos.values()} - self._keys.keys())
        questions = [abi.pool_keys(bytes.fromhex(prefix[2:])) for prefix in strange]
        self._keys.update(await self._multicall(questions, at, lambda filed: _parse_keys(strange, filed)))
        return {
            token: PositionNft(
                key := self._keys[info.pool_id_prefix],
                pool_id_of(key),
                Range(Tick(info.tick_lower), Tick(info.tick_upper)),
                _word_address(packed[token][1]),
                info.has_subscriber,
            )
            for token, info in infos.items()
        }

    async def _words(self, calls: Sequence[bytes], at: Block, callee: Callee = Callee.CERTAIN) -> list[int]:
        return await self._multicall(
            calls, at, lambda answers: [abi.decode_uint(word, "a view") for word in answers], callee
        )

    async def _multicall(
        self, calls: Sequence[bytes], at: Block, read: Callable[[Sequence[bytes]], T], callee: Callee = Callee.CERTAIN
    ) -> T:
        if not calls:
            return read(())
        question, count = abi.multicall(calls), len(calls)
        return await self._node.call(
            self._manager, question, at, lambda data: read(abi.multicall_results(data, count)), callee=callee
        )

    async def _catch_up(self, at: Block) -> None:
        """Bring the remembered positions up to `at`, or forget them; after a fault they are as before."""
        last = self._as_of
        if last is None or last.hash == at.hash:
            return
        if at.number - last.number > TRUSTED_BLOCKS or (await self._node.block(last.number)).hash != last.hash:
            self._forget()
            return
        topics = [[abi.TRANSFER, abi.SUBSCRIPTION, abi.UNSUBSCRIPTION]]
        events = await self._node.logs(self._manager, topics, last.number + 1, at.number)
        for event in events:
            self._apply_event(event)

    async def _is_true_at(self, at: Block, tokens: Sequence[int]) -> bool:
        """Whether these remembered positions match the state: events may come late."""
        if len(tokens) > LOOKED_AT:  # no owner is remembered with more positions than the state says
            held = Counter(nft.owner for nft in self._known.values())
            balances = await self.balances({self._known[token].owner for token in tokens}, at)
            return all(balance >= held[owner] for owner, balance in balances.items())
        try:
            calls = [call for token in tokens for call in (_owner_call(token), _info_call(token))]
            words = await self._words(calls, at, Callee.MAY_REVERT)
        except (CallReverted, ResponseTooLarge):
            return False  # one of them is burnt
        now = zip(map(_word_address, words[::2]), map(decode_position_info, words[1::2]), strict=True)
        known = (self._known[token] for token in tokens)
        return all(
            (owner, info.has_subscriber) == (nft.owner, nft.subscribed)
            for (owner, info), nft in zip(now, known, strict=True)
        )

    async def balances(self, owners: Collection[Address], at: Block) -> dict[Address, int]:
        asked = sorted(owners)
        if len(asked) == 1:
            question = abi.balance_of(asked[0])
            return {asked[0]: await self._node.call(self._manager, question, at, abi.uint_reader("balanceOf"))}
        parts = [asked[start : start + IDS_PER_CALL] for start in range(0, len(asked), IDS_PER_CALL)]
        calls = ([abi.balance_of(owner) for owner in part] for part in parts)
        balances = [balance for part in calls for balance in await self._words(part, at)]
        return dict(zip(asked, balances, strict=True))

    def _apply_event(self, event: Log) -> None:
        if event.topics[0] == abi.TRANSFER:
            token = int(event.topics[3], 16)
            if token in self._known:
                owner = abi.topic_address(event.topics[2])
                if owner == NATIVE:
                    del self._known[token]
                else:
                    self._known[token] = replace(self._known[token], owner=owner)
            return
        token = int(event.topics[1], 16)
        if token in self._known:
            self._known[token] = replace(self._known[token], subscribed=event.topics[0] == abi.SUBSCRIPTION)

    def _forget(self) -> None:
        self._known.clear()
        self._seen.clear()
        self._as_of, self._saved = None, 0

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        record = self._cache.load(_RECORD, _parse_record)
        if record is not None:
            self._as_of, self._known = record
            self._saved_at, self._saved = self._as_of.number, len(self._known)

    def _save(self) -> None:
        if self._as_of is None:
            return
        block = self._as_of
        self._saved_at, self._saved = block.number, len(self._known)
        nfts = {str(token): _nft_fields(nft) for token, nft in self._known.items()}
        self._cache.save(_RECORD, {"as_of": [block.number, block.hash, block.timestamp], "deeds": nfts})


def _info_call(token: int) -> bytes:
    return abi.POSITION_INFO + abi.word(token)


def _owner_call(token: int) -> bytes:
    return abi.OWNER_OF + abi.word(token)


def _word_address(word: int) -> Address:
    return abi.topic_address(abi.id_word(word))


def _parse_keys(prefixes: Sequence[str], filed: Sequence[bytes]) -> dict[str, PoolKey]:
    """Keys by the beginnings of their ids, under which they were filed."""
    keys = dict(zip(prefixes, map(abi.pool_key, filed), strict=True))
    if not all(pool_id_of(key).startswith(prefix) for prefix, key in keys.items()):
        raise Malformed("poolKeys: the key does not belong to the position")
    return keys


@lru_cache(maxsize=4096)
def pool_id_of(key: PoolKey) -> HexId:
    return HexId(pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks))


def _nft_fields(nft: PositionNft) -> list[Any]:
    key = nft.key
    return [
        *(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks),
        *(nft.range.lower, nft.range.upper, nft.owner, nft.subscribed),
    ]


def _parse_record(written: dict[str, Any]) -> tuple[Block, dict[int, PositionNft]]:
    number, block_hash, timestamp = written["as_of"]
    if type(number) is not int or type(timestamp) is not int or number < 0:
        raise ValueError("a block that is none")
    block = Block(number, HexId(str(block_hash)), Seconds(timestamp))
    return block, {int(token): _parse_nft(fields) for token, fields in written["deeds"].items()}


def _parse_nft(fields: Any) -> PositionNft:
    currency0, currency1, fee, tick_spacing, hooks, lower, upper, owner, subscribed = fields
    key = PoolKey(Address(currency0), Address(currency1), Pips(int(fee)), int(tick_spacing), Address(hooks))
    range_ = Range(Tick(int(lower)), Tick(int(upper)))
    if not -MAX_TICK <= range_.lower < range_.upper <= MAX_TICK or not _ADDRESS.fullmatch(owner):
        raise ValueError("no position has such a range or owner")
    return PositionNft(key, pool_id_of(key), range_, Address(owner), bool(subscribed))
