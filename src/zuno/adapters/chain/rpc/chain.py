"""The live chain behind the Chain port: each answer is read at one block, the node's latest. Confirmations decide what
is cached on disk; a cached fact is checked against its block's hash."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median_low
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.abi import events_of
from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.errors import BadRequest, CallReverted, NodeBehind, NoSuchMethod, NoSuchState
from zuno.adapters.chain.rpc.history import HistoryReader
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.positions import PositionNft, PositionNfts
from zuno.adapters.chain.rpc.readers import PinnedRead, Readers
from zuno.adapters.chain.rpc.storage import (
    PositionPlace,
    TickReader,
    Words,
    locate_position,
    pool_state,
    read_worth,
)
from zuno.adapters.chain.rpc.survey import Surveyor, pool_words
from zuno.adapters.chain.rpc.transport import Callee, FailoverProvider, RpcPolicy
from zuno.adapters.chain.rpc.validate import ResultValidator
from zuno.adapters.chain.rpc.writer import RpcWriter
from zuno.adapters.chain.states import build_position
from zuno.amm.fees import earned_rounding_down
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.amm.integers import ceil_div
from zuno.amm.model import Block, Depth, LpPosition, PoolKey, PoolState
from zuno.kernel.errors import Malformed, NotFound, PoolNotInitialized, Refused, Unavailable, UsageError
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Seconds, SqrtPriceX96, Wei
from zuno.lp.model.chains import ChainInfo, DataFee
from zuno.lp.model.history import PositionHistory, PricedBlock, ReadPlans, SwapFees, read_no_plans
from zuno.lp.model.market import HOUR, GasQuote
from zuno.lp.ports import chain as port

_POOL_ID: Final = re.compile(r"0x[0-9a-f]{64}")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{40}")
_UINT256: Final = 1 << 256
MOST_PRICES: Final = 168
"""Of a window; a longer one than a week has them further apart than an hour."""


class RpcChain:
    """Chain over JSON-RPC. `urls` are tried in order; `cache_dir` may be deleted at any time."""

    def __init__(
        self,
        info: ChainInfo,
        urls: Sequence[str],
        cache_dir: Path,
        wallet: Address | None = None,
        policy: RpcPolicy | None = None,
        read_plans: ReadPlans = read_no_plans,
    ) -> None:
        self.info = info
        self._wallet = None if wallet is None else _address(wallet)
        answers = ResultValidator(events_of(info.deployment))
        self._node = RpcNode(FailoverProvider(urls, info.id, info.rpc_url_variable, policy, answers))
        # Another deployment on the same chain id (a devnet made anew) must not inherit this one's memory.
        cache = JsonCache(cache_dir / f"{info.id}-{info.deployment.position_manager}")
        self._read = Readers.create(self._node, info, cache)
        self._history_reader = HistoryReader(self._read)
        self._read_plans = read_plans
        self._at_head = PinnedRead(self._read)
        self._ticks = TickReader(self._read.storage)
        self._surveyor = Surveyor(self._read, self._ticks)

    @property
    def requests(self) -> int:
        return self._node.provider.requests

    async def head(self) -> Block:
        return await self._node.head()

    async def wallet(self) -> Address | None:
        return self._wallet

    async def pools(self) -> port.PoolsFound:
        return await self._at_head(self._pools_at)

    async def pool(self, pool_id: HexId) -> PoolState:
        wanted = _check_pool_id(pool_id)
        return await self._at_head(lambda head: self._pool_at(wanted, head))

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        present = await self.pool(pool_id)
        return await self._at_head(lambda head: self._past_pool(present, moment, head))

    async def depth(self, pool_id: HexId) -> Depth:
        wanted = _check_pool_id(pool_id)
        return await self._at_head(lambda head: self._depth_at(wanted, head))

    async def owned(self, owner: Address) -> port.OwnedPositions:
        holder = _address(owner)
        return (await self._at_head(lambda head: self._read.owned.read_owned([holder], head)))[0]

    async def holdings(self, owner: Address) -> port.Holdings:
        return (await self.holdings_of([owner]))[0]

    async def holdings_of(self, owners: Sequence[Address]) -> tuple[port.Holdings, ...]:
        holders = list(dict.fromkeys(map(_address, owners)))
        return await self._at_head(lambda head: self._holdings_at(holders, head)) if holders else ()

    async def past_positions(self, owner: Address) -> port.PastPositions:
        holder = _address(owner)
        return await self._at_head(lambda head: self._read.owned.read_past(holder, head))

    async def positions(self, ids: Sequence[int]) -> port.Snapshot:
        return await self._at_head(lambda head: self._positions_at(ids, head))

    async def witness(self, block: Block, pool_ids: Sequence[HexId], position_ids: Sequence[int]) -> port.StateAtBlock:
        return await self._at_head(lambda head: self._witness_at(block, pool_ids, position_ids, head))

    async def history(self, position_id: int, since: Seconds | None) -> PositionHistory:
        plans, read = await self._read_plans(self.info.name), self._history_reader.read
        return await self._at_head(lambda head: read(position_id, since, head, plans), by_events=True)

    async def window(self, positions: Sequence[LpPosition], since: Seconds) -> port.PositionsWindow:
        now = positions[0].block
        try:
            return await self._window_at(positions, since, now)
        except NoSuchState as lost:
            self._read.times.forget_after(-1)
            raise Unavailable(f"the past of block {now.number} could not be read: {lost}") from lost

    async def price_path(self, pool_id: HexId, since: Seconds, step: int = HOUR) -> tuple[PricedBlock, ...]:
        wanted = (await self.pool(pool_id)).id
        return await self._at_head(lambda head: self._price_path_at(wanted, since, head, step), by_events=True)

    async def swap_fees(self, pool_id: HexId, since: Seconds) -> SwapFees:
        wanted = (await self.pool(pool_id)).id

        async def read(head: Block) -> SwapFees:
            return await self._read.prices.swap_fees(await self._pool_at(wanted, head), since, head)

        return await self._at_head(read, by_events=True)

    async def survey(
        self,
        pool_ids: Sequence[HexId],
        moments: Sequence[Seconds],
        since: Mapping[HexId, Seconds],
        priced: Collection[HexId] = (),
    ) -> tuple[port.SurveyedPool, ...]:
        async def read(head: Block) -> tuple[port.SurveyedPool, ...]:
            words = await self._read.storage.words((slot for id_ in pool_ids for slot in pool_words(id_)), head)
            keys = {id_: key for id_ in pool_ids if (key := await self._read.keys.find(id_, head)) is not None}
            states = await self._pool_states(keys, words, head)
            pools = [states[id_] for id_ in pool_ids if id_ in states]
            return await self._surveyor.survey(pools, moments, since, priced, head)

        return await self._at_head(read, by_events=True)

    async def gas(self) -> GasQuote:
        return await self._at_head(lambda head: quote_gas(self._node, self.info.data_fee, head))

    def writer(self) -> RpcWriter:
        """The same chain to write to, on the same connections; closed with this one."""
        return RpcWriter(self._read, self._at_head, self._depth_at, self.gas)

    async def close(self) -> None:
        await self._node.provider.close()

    # -- at one block

    async def _depth_at(self, pool_id: HexId, head: Block) -> Depth:
        return await self._ticks.read_depth(await self._pool_at(pool_id, head), head)

    async def _pools_at(self, head: Block) -> port.PoolsFound:
        curated = await self._read.keys.find_curated(head)
        keys = curated.keys
        # Prices first: most probed tiers have no pool, and their other words are not worth asking for.
        probes = {pool_id: pool_slots(pool_id) for pool_id in keys}
        prices = await self._read.storage.words((slots.slot0 for slots in probes.values()), head)
        alive = {pool_id: slots for pool_id, slots in probes.items() if prices[slots.slot0]}
        words = prices | await self._read.storage.words((slot for pool in alive for slot in pool_words(pool)), head)
        states = await self._pool_states({pool_id: keys[pool_id] for pool_id in alive}, words, head)
        notes = (*curated.notes, *self._read.keys.check_search(curated, alive.keys()))
        return port.PoolsFound(head, tuple(sorted(states.values(), key=lambda pool: pool.key.order)), notes)

    async def _pool_at(self, pool_id: HexId, head: Block) -> PoolState:
        words = await self._read.storage.words(pool_words(pool_id), head)
        priced = bool(words[pool_slots(pool_id).slot0])
        # Without a price there is no Initialize event to find, so only a key we can name makes it a pool.
        key = await self._read.keys.find(pool_id, head) if priced else self._read.keys.known.get(pool_id)
        if key is None and priced:
            raise Unavailable(
                f"pool {pool_id} has a price, but the events of this node do not tell its key: use another"
            )
        if key is None:
            raise NotFound(f"no pool {pool_id} on {self.info.name}")
        state = (await self._pool_states({pool_id: key}, words, head)).get(pool_id)
        if state is None:
            raise PoolNotInitialized(f"pool {pool_id} on {self.info.name} has no price yet")
        return state

    async def _past_pool(self, present: PoolState, moment: Seconds, head: Block) -> PoolState:
        block = await self._read.times.last_by(moment, head)
        if block is not None:
            try:
                words = await self._read.storage.words(pool_words(present.id), block)
            except NoSuchState as missing:
                raise Unavailable(f"a past state needs a node that keeps it (an archive node): {missing}") from missing
            past = pool_state(present.key, present.id, (present.token0, present.token1), words, block)
            if past is not None:
                return past
        raise Unavailable(f"pool {present.id} has no price as early as {moment}")

    async def _holdings_at(self, owners: Sequence[Address], head: Block) -> tuple[port.Holdings, ...]:
        every = await self._read.owned.read_owned(owners, head)
        snapshot = await self._positions_at([token for owned in every for token in owned.ids], head)
        read = {position.id: position for position in snapshot.positions}
        lost = {missing.id: missing for missing in snapshot.missing}
        return tuple(
            port.Holdings(
                owned,
                port.Snapshot(
                    head,
                    tuple(read[token] for token in owned.ids if token in read),
                    tuple(lost[token] for token in owned.ids if token in lost),
                ),
            )
            for owned in every
        )

    async def _positions_at(self, ids: Sequence[int], head: Block) -> port.Snapshot:
        wanted = list(dict.fromkeys(ids))
        read = await self._read.positions.read([token for token in wanted if 0 < token < _UINT256], head)
        return await self._snapshot(wanted, read, head)

    async def _witness_at(
        self, block: Block, pool_ids: Sequence[HexId], position_ids: Sequence[int], head: Block
    ) -> port.StateAtBlock:
        if block.number > head.number or await self._node.block(block.number) != block:
            raise Refused(f"{self.info.name} has no block {block.number} with hash {block.hash[:12]}…")
        try:
            nfts = await self._read.positions.read_anew(position_ids, block)
            snapshot = await self._snapshot(list(dict.fromkeys(position_ids)), nfts, block)
            pools = {position.pool.id: position.pool for position in snapshot.positions}
            for pool_id in pool_ids:
                if pool_id not in pools:
                    with suppress(NotFound, PoolNotInitialized):
                        pools[pool_id] = await self._pool_at(pool_id, block)
        except NoSuchState as missing:
            raise Unavailable(f"the state of block {block.number} is not kept any more: {missing}") from missing
        unread = next((gap.reason for gap in snapshot.missing if gap.unread), None)
        if unread is not None:
            raise Unavailable(f"the state of block {block.number} could not be read: {unread}")
        return port.StateAtBlock(block, pools, {position.id: position for position in snapshot.positions})

    async def _snapshot(self, wanted: Sequence[int], read: PositionNfts, head: Block) -> port.Snapshot:
        manager = self.info.deployment.position_manager
        places = {token: locate_position(manager, nft.pool_id, nft.range, token) for token, nft in read.nfts.items()}
        words, fault = await self._read.storage.some_words(
            (slot for at in places.values() for slot in at.slots()), head
        )
        whole = {token: at for token, at in places.items() if all(slot in words for slot in at.slots())}
        keys = {at.pool_id: read.nfts[token].key for token, at in whole.items()}
        pools = await self._pool_states(keys, words, head)
        positions = {
            token: self._position(token, read.nfts[token], at, pools[at.pool_id], words) for token, at in whole.items()
        }
        reasons = {token: str(why) for token, why in read.unread.items()}
        reasons |= {token: str(fault) for token in places if token not in whole}
        return port.Snapshot(
            head,
            tuple(positions[token] for token in wanted if token in positions),
            tuple(
                port.Missing(token, reasons[token], unread=True)
                if token in reasons
                else port.Missing(token, "never minted, or burnt")
                for token in wanted
                if token not in positions
            ),
        )

    def _position(self, token: int, nft: PositionNft, at: PositionPlace, pool: PoolState, words: Words) -> LpPosition:
        state = read_worth(at, words)
        held, amounts, fees = state.info.liquidity, (state.amount0, state.amount1), (state.fees0, state.fees1)
        chain = self.info.name
        return build_position(token, chain, nft.owner, pool, nft.range, held, amounts, fees, nft.subscribed)

    async def _pool_states(self, keys: dict[HexId, PoolKey], words: Words, head: Block) -> dict[HexId, PoolState]:
        currencies = {currency for key in keys.values() for currency in (key.currency0, key.currency1)}
        tokens: dict[Address, Token] = await self._read.tokens.read(currencies, head) if currencies else {}
        states = {
            pool_id: pool_state(key, pool_id, (tokens[key.currency0], tokens[key.currency1]), words, head)
            for pool_id, key in keys.items()
        }
        return {pool_id: state for pool_id, state in states.items() if state is not None}

    async def _window_at(self, positions: Sequence[LpPosition], since: Seconds, head: Block) -> port.PositionsWindow:
        step = max(HOUR, (head.timestamp - since) // MOST_PRICES)
        steps = range(since // step * step + step, head.timestamp, step)  # whole ones: the same when asked again later
        blocks = await self._read.times.list_blocks_near([since, *steps], step, head)
        manager, storage = self.info.deployment.position_manager, self._read.storage
        places = {
            position.id: locate_position(manager, position.pool.id, position.range, position.id)
            for position in positions
        }
        slots = list(dict.fromkeys(slot for place in places.values() for slot in place.slots()))
        pools = {place.pool_id: place.pool.slot0 for place in places.values()}
        now = await storage.words_again(slots, head)
        prices = list(pools.values())
        between = [(block, prices) for block in blocks[1:-1]]
        try:
            past = await storage.words_of_past([(blocks[0], slots), *between])
        except NoSuchState as missing:
            raise Unavailable(f"a past state needs a node that keeps it (an archive node): {missing}") from missing
        except Malformed as empty:
            raise Unavailable(f"the pools cannot be read at block {blocks[0].number}: {empty}") from empty
        then = past[0]
        fees = dict[int, tuple[int, int]]()
        for token, place in places.items():
            start, end = read_worth(place, then), read_worth(place, now)
            if start.info.liquidity == end.info.liquidity:
                fees[token] = (
                    earned_rounding_down(end.inside0, start.inside0, end.info.liquidity),
                    earned_rounding_down(end.inside1, start.inside1, end.info.liquidity),
                )
        priced_blocks = [
            (block, {pool_id: unpack_slot0(words[slot0]).sqrt_price_x96 for pool_id, slot0 in pools.items()})
            for block, words in zip(blocks, (*past, now), strict=True)
        ]
        paths = {
            pool_id: tuple(
                PricedBlock(block, SqrtPriceX96(priced[pool_id])) for block, priced in priced_blocks if priced[pool_id]
            )
            for pool_id in pools
        }
        return port.PositionsWindow(blocks[0], head, fees, paths)

    async def _price_path_at(self, pool_id: HexId, since: Seconds, head: Block, step: int) -> tuple[PricedBlock, ...]:
        before = await self._read.times.last_by(Seconds(since - 1), head)
        first = 0 if before is None else before.number + 1
        path = await self._read.prices.read_path(pool_id, first, head, step)
        if path:
            slot0 = pool_slots(pool_id).slot0
            now = unpack_slot0((await self._read.storage.words([slot0], head))[slot0]).sqrt_price_x96
            if path[-1].sqrt_price_x96 != now:
                raise NodeBehind("the last swap among the events is not the one that left the pool's price")
        return tuple(path)


def _check_pool_id(text: HexId) -> HexId:
    wanted = HexId(text.lower())
    if not _POOL_ID.fullmatch(wanted):
        raise UsageError("a pool id is 0x and 64 hex digits")
    return wanted


def _address(text: str) -> Address:
    address = Address(text.lower())
    if not _ADDRESS.fullmatch(address):
        raise UsageError("an address is 0x and 40 hex digits")
    return address


RECENT_BLOCKS: Final = 20
_MEDIAN: Final = 50
GAS_PRICE_ORACLE: Final = Address("0x420000000000000000000000000000000000000f")
ARB_GAS_INFO: Final = Address("0x000000000000000000000000000000000000006c")
_UPPER_BOUND: Final = abi.selector("getL1FeeUpperBound(uint256)")
_L1_BASE_FEE: Final = abi.selector("l1BaseFee()")
_BLOB_BASE_FEE: Final = abi.selector("blobBaseFee()")
_BASE_FEE_SCALAR: Final = abi.selector("baseFeeScalar()")
_BLOB_BASE_FEE_SCALAR: Final = abi.selector("blobBaseFeeScalar()")
_PRICES_IN_WEI: Final = abi.selector("getPricesInWei()")
_SMALLEST: Final = 500
"""Bytes of the smallest liquidity transaction: a collect."""
_L1_GAS_PER_BYTE: Final = 16


async def quote_gas(node: RpcNode, data_fee: DataFee, at: Block) -> GasQuote:
    price_data = {DataFee.NONE: _no_data_fee, DataFee.OP_STACK: _op_stack, DataFee.ARBITRUM: _arbitrum}[data_fee]
    (base_fee, tip), per_byte = await asyncio.gather(_execution(node), price_data(node, at))
    data = None if per_byte is None else Wei(per_byte)
    return GasQuote(Wei(base_fee), Wei(tip), data, estimates_hold_data_fee=data_fee is DataFee.ARBITRUM)


async def _no_data_fee(node: RpcNode, at: Block) -> None:
    return None


async def _execution(node: RpcNode) -> tuple[int, int]:
    """Base fee of the next block and the median of recent blocks' median tips."""
    try:
        base_fee, tips = await node.fee_history(RECENT_BLOCKS, _MEDIAN)
    except (NoSuchMethod, BadRequest):
        return await _whole_price(node)
    if tips:
        return base_fee, median_low(tips)
    # Empty blocks, or a node that reports no tips.
    try:
        return base_fee, await node.suggested_tip()
    except NoSuchMethod:
        return base_fee, max(0, await node.gas_price() - base_fee)


async def _whole_price(node: RpcNode) -> tuple[int, int]:
    """A node that knows one price only: split off the tip it suggests, if it suggests one."""
    price = await node.gas_price()
    try:
        tip = min(price, await node.suggested_tip())
    except NoSuchMethod:
        tip = 0
    return price - tip, tip


async def _op_stack(node: RpcNode, at: Block) -> int:
    """Wei per byte of transaction, from above: since Fjord asked for the smallest transaction we send (at most 7 % too
    much); before, 16 L1 gas a byte at (16·baseFeeScalar·l1BaseFee + blobBaseFeeScalar·blobBaseFee) / 16e6 wei."""
    try:
        bound = await _oracle(node, _UPPER_BOUND + abi.word(_SMALLEST), at, Callee.MAY_REVERT)
        return ceil_div(bound, _SMALLEST)
    except CallReverted:
        words = (_L1_BASE_FEE, _BASE_FEE_SCALAR, _BLOB_BASE_FEE, _BLOB_BASE_FEE_SCALAR)
        base, base_scalar, blob, blob_scalar = await asyncio.gather(*(_oracle(node, word, at) for word in words))
        return ceil_div(_L1_GAS_PER_BYTE * base_scalar * base + blob_scalar * blob, 10**6)


async def _oracle(node: RpcNode, question: bytes, at: Block, callee: Callee = Callee.CERTAIN) -> int:
    return await node.call(GAS_PRICE_ORACLE, question, at, abi.uint_reader("the gas oracle"), callee=callee)


async def _arbitrum(node: RpcNode, at: Block) -> int:
    """Nitro's second price: its L1 price of a calldata unit times the 16 units of a byte."""
    prices = await node.call(
        ARB_GAS_INFO, _PRICES_IN_WEI, at, lambda data: abi.decode_abi(["uint256"] * 6, data, "getPricesInWei")
    )
    return int(prices[1])
