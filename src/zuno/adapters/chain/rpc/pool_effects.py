"""What a transaction did to the pools, from its events and the contracts' arithmetic, as amounts the pools were
owed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from zuno.adapters.chain.rpc import abi, ledger
from zuno.adapters.chain.rpc.errors import NodeBehind
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import BlockReplay, PoolBlock, ReplayedChange, split_fees
from zuno.amm.model import Block, PoolKey
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId

_POOL_EVENTS: Final = (abi.SWAP, abi.MODIFY_LIQUIDITY, abi.DONATE)
Amounts = dict[Address, int]
Two = tuple[int, int]


@dataclass(frozen=True)
class PoolEffects:
    changes: list[tuple[ReplayedChange, Amounts]]
    swaps: list[tuple[Log, PoolKey, Amounts]]
    donated: Amounts
    strange: bool
    """Somebody's liquidity changed past PositionManager, or in a pool without a known key."""

    @cached_property
    def swap_totals(self) -> Amounts:
        return sum_of(amounts for _, _, amounts in self.swaps)

    @cached_property
    def totals(self) -> Amounts:
        return sum_of([*(amounts for _, amounts in self.changes), self.swap_totals, self.donated])

    def exchange(self, key: PoolKey) -> tuple[list[Log], Two]:
        """The swaps from one of the pair's currencies into the other, through others or directly."""
        pair = (key.currency0, key.currency1)
        through_others = any(amount for currency, amount in self.swap_totals.items() if currency not in pair)
        chosen = [
            (log, amounts)
            for log, pool, amounts in self.swaps
            if not through_others or {pool.currency0, pool.currency1} == set(pair)
        ]
        total = sum_of(amounts for _, amounts in chosen)
        paid = of_pair(total, key)
        return ([log for log, _ in chosen], paid) if paid[0] * paid[1] < 0 else ([], (0, 0))


class EffectsReader:
    """Computes the effects of transactions near one pool; each block once."""

    def __init__(self, readers: Readers, replay: BlockReplay, key: PoolKey, head: Block) -> None:
        self._read, self._replay, self._head = readers, replay, head
        self._pair = (key.currency0, key.currency1)
        self._pool_manager = readers.info.deployment.pool_manager
        self._blocks: dict[tuple[HexId, int], PoolBlock] = {}

    async def effects_of(self, receipt: Receipt) -> PoolEffects:
        pool_events = self._pool_events(receipt)
        keys = {
            pool_id: await self._read.keys.find(pool_id, self._head)
            for pool_id in {log.topics[1] for log in pool_events}
        }
        effects = PoolEffects([], [], {}, strange=None in keys.values())
        ours = {change.log.index: change for change in self._replay.changes(pool_events)}
        for log in pool_events:
            key = keys[log.topics[1]]
            if key is None:
                continue
            near = bool({key.currency0, key.currency1} & set(self._pair))
            if log.topics[0] == abi.SWAP:
                amounts = abi.decode_abi(abi.SWAP_FIELDS, log.data, "a Swap event")
                effects.swaps.append((log, key, amounts_of(key, -amounts[0], -amounts[1])))
            elif log.topics[0] == abi.DONATE:
                amount0, amount1 = abi.decode_abi(["uint256", "uint256"], log.data, "a Donate event")
                for currency, amount in amounts_of(key, amount0, amount1).items():
                    effects.donated[currency] = effects.donated.get(currency, 0) + amount
            elif near and log.index in ours:
                item = (await self.block(log.topics[1], log.block_number)).replayed.get(log.index)
                if item is None:
                    raise NodeBehind(f"the events of block {log.block_number} and the receipt of {receipt.tx} differ")
                effects.changes.append((item, amounts_of(key, item.owed0, item.owed1)))
            elif near:
                effects = replace(effects, strange=True)
        return effects

    async def block(self, pool_id: HexId, number: int) -> PoolBlock:
        """A pool's block, worked through once, with the changes around a trade told apart where payments can."""
        known = self._blocks.get((pool_id, number))
        if known is None:
            known = self._blocks[pool_id, number] = await self._replay.block(pool_id, number, self._head)
            unsure = {item.change.token for item in known.replayed.values() if not item.certain}
            for token in sorted(unsure):
                mine = [item for item in known.replayed.values() if item.change.token == token]
                fees = {item.change.log.index: await self._observed_fees(item) for item in mine}
                split_fees(known, token, fees)
        return known

    async def _observed_fees(self, item: ReplayedChange) -> tuple[int | None, int | None]:
        """The fees a change paid out, where its transaction did nothing else to the pools and the token has events."""
        receipt = await self._read.node.receipt(item.change.log.tx)
        key = await self._read.keys.find(item.change.pool_id, self._head)
        if key is None or len(self._pool_events(receipt)) > 1:
            return None, None

        def observed_fee(currency: Address, principal: int) -> int | None:
            if currency == NATIVE:
                return None
            return principal - ledger.received_by_pools(receipt.logs, currency, self._pool_manager)

        return observed_fee(key.currency0, item.principal0), observed_fee(key.currency1, item.principal1)

    def _pool_events(self, receipt: Receipt) -> list[Log]:
        return [
            log
            for log in receipt.logs
            if log.address == self._pool_manager and log.topics and log.topics[0] in _POOL_EVENTS
        ]


def amounts_of(key: PoolKey, amount0: int, amount1: int) -> Amounts:
    return {key.currency0: int(amount0), key.currency1: int(amount1)}


def sum_of(parts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for amounts in parts:
        for currency, amount in amounts.items():
            total[currency] = total.get(currency, 0) + amount
    return total


def of_pair(amounts: Amounts, key: PoolKey) -> Two:
    return amounts.get(key.currency0, 0), amounts.get(key.currency1, 0)
