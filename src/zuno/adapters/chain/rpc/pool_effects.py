"""What a transaction did to the pools, by its events and the contracts' arithmetic, as amounts the pools were owed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from zuno.adapters.chain.rpc import abi, ledger
from zuno.adapters.chain.rpc.errors import Behind
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import DONATE, PoolBlock, Replay, Worked, resplit
from zuno.amm.model import Block, PoolKey
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId

_DOINGS: Final = (abi.SWAP, abi.MODIFY_LIQUIDITY, DONATE)
_SWAP_FIELDS: Final = ("int128", "int128", "uint160", "uint128", "int24", "uint24")
Amounts = dict[Address, int]
Two = tuple[int, int]


@dataclass(frozen=True)
class Doings:
    """What a transaction did to the pools, by its events, as amounts that the pools were owed."""

    changes: list[tuple[Worked, Amounts]]
    swaps: list[tuple[Log, PoolKey, Amounts]]
    donated: Amounts
    strange: bool
    """Somebody's liquidity changed past PositionManager, or in a pool without a known key."""

    @cached_property
    def swapped(self) -> Amounts:
        return sum_of(amounts for _, _, amounts in self.swaps)

    @cached_property
    def whole(self) -> Amounts:
        return sum_of([*(amounts for _, amounts in self.changes), self.swapped, self.donated])

    def exchange(self, key: PoolKey) -> tuple[list[Log], Two]:
        """The swaps from one of the pair's currencies into the other, through others or directly."""
        pair = (key.currency0, key.currency1)
        through_others = any(amount for currency, amount in self.swapped.items() if currency not in pair)
        chosen = [
            (log, amounts)
            for log, pool, amounts in self.swaps
            if not through_others or {pool.currency0, pool.currency1} == set(pair)
        ]
        total = sum_of(amounts for _, amounts in chosen)
        paid = of_pair(total, key)
        return ([log for log, _ in chosen], paid) if paid[0] * paid[1] < 0 else ([], (0, 0))


class Workings:
    """Transactions and blocks near one pool, worked through; each block once."""

    def __init__(self, readers: Readers, replay: Replay, key: PoolKey, head: Block) -> None:
        self._read, self._replay, self._head = readers, replay, head
        self._pair = (key.currency0, key.currency1)
        self._pool_manager = readers.info.deployment.pool_manager
        self._blocks: dict[tuple[HexId, int], PoolBlock] = {}

    async def of(self, receipt: Receipt) -> Doings:
        """What a transaction did, every change of liquidity near the pair worked out."""
        done = self._done(receipt)
        keys = {pool_id: await self._read.keys.find(pool_id, self._head) for pool_id in {log.topics[1] for log in done}}
        doings = Doings([], [], {}, strange=None in keys.values())
        ours = {change.log.index: change for change in self._replay.changes(done)}
        for log in done:
            key = keys[log.topics[1]]
            if key is None:
                continue
            near = bool({key.currency0, key.currency1} & set(self._pair))
            if log.topics[0] == abi.SWAP:
                amounts = abi.decoded(_SWAP_FIELDS, log.data, "a Swap event")
                doings.swaps.append((log, key, amounts_of(key, -amounts[0], -amounts[1])))
            elif log.topics[0] == DONATE:
                amount0, amount1 = abi.decoded(["uint256", "uint256"], log.data, "a Donate event")
                for currency, amount in amounts_of(key, amount0, amount1).items():
                    doings.donated[currency] = doings.donated.get(currency, 0) + amount
            elif near and log.index in ours:
                item = (await self.block(log.topics[1], log.block_number)).worked.get(log.index)
                if item is None:
                    raise Behind(f"the events of block {log.block_number} and the receipt of {receipt.tx} differ")
                doings.changes.append((item, amounts_of(key, item.owed0, item.owed1)))
            elif near:
                doings = replace(doings, strange=True)
        return doings

    async def block(self, pool_id: HexId, number: int) -> PoolBlock:
        """A pool's block, worked through once, with the changes around a trade told apart where payments can."""
        known = self._blocks.get((pool_id, number))
        if known is None:
            known = self._blocks[pool_id, number] = await self._replay.block(pool_id, number, self._head)
            unsure = {item.change.token for item in known.worked.values() if not item.certain}
            for token in sorted(unsure):
                mine = [item for item in known.worked.values() if item.change.token == token]
                fees = {item.change.log.index: await self._fees_seen(item) for item in mine}
                resplit(known, token, fees)
        return known

    async def _fees_seen(self, item: Worked) -> tuple[int | None, int | None]:
        """The fees a change paid out, where its transaction did nothing else to the pools and the token has events."""
        receipt = await self._read.node.receipt(item.change.log.tx)
        key = await self._read.keys.find(item.change.pool_id, self._head)
        if key is None or len(self._done(receipt)) > 1:
            return None, None

        def seen(currency: Address, principal: int) -> int | None:
            if currency == NATIVE:
                return None
            return principal - ledger.received_by_pools(receipt.logs, currency, self._pool_manager)

        return seen(key.currency0, item.principal0), seen(key.currency1, item.principal1)

    def _done(self, receipt: Receipt) -> list[Log]:
        return [
            log for log in receipt.logs if log.address == self._pool_manager and log.topics and log.topics[0] in _DOINGS
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
