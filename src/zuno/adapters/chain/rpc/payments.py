"""What a transaction was measured to move, held against what it did.

Three numbers per currency: what the pools' arithmetic says (changes, swaps, donations), what PoolManager received, and
what the wallet gave up. The first two must agree, or attribution will show a residual. The last two may differ: the
difference is money of others and recorded as such. Where one of them cannot be measured the first stands in for it, and
the record says that it was computed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from zuno.adapters.chain.rpc import abi, ledger
from zuno.adapters.chain.rpc.errors import NodeBehind
from zuno.adapters.chain.rpc.ledger import CoinChange
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import BlockReplay, PoolBlock, ReplayedChange, split_fees
from zuno.adapters.chain.states import Two
from zuno.amm.model import Block, PoolKey
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Wei

_POOL_EVENTS: Final = (abi.SWAP, abi.MODIFY_LIQUIDITY, abi.DONATE)
Amounts = dict[Address, int]


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


@dataclass(frozen=True, slots=True)
class Settlement:
    left: Two
    """What the pools received beyond their own arithmetic: what a residual will be made of."""
    others: Two
    """What was not the wallet's."""
    gas_paid: Wei | None
    swap_is_ours: bool
    notes: list[str]
    computed: list[str]


class PaymentSettler:
    def __init__(self, readers: Readers, effects_reader: EffectsReader, key: PoolKey, head: Block) -> None:
        self._node, self._times, self._scanner = readers.node, readers.times, readers.scanner
        self._effects, self._key, self._head = effects_reader, key, head
        self._pair = (key.currency0, key.currency1)
        self._pool_manager = readers.info.deployment.pool_manager
        wrapper = readers.info.wrapper.address if readers.info.wrapper else None
        # In a pool of the coin against its wrapper they are two assets, whatever a transaction does.
        self._wrapper = None if {NATIVE, wrapper} == set(self._pair) else wrapper
        self.token = next((side for side in self._pair if side not in (NATIVE, self._wrapper)), self._pair[1])
        """The currency of the pair whose Transfer events tell every payment: neither the coin nor its wrapper."""

    async def settle(self, receipt: Receipt, owner: Address, effects: PoolEffects, own: Two) -> Settlement:
        """Compare the three numbers; `own` is what the wallet's changes of liquidity cost by arithmetic."""
        notes, computed = list[str](), list[str]()
        wrapping = ledger.wraps(receipt, self._wrapper)
        by_coin = [side == NATIVE or (wrapping and side == self._wrapper) for side in self._pair]
        coin = None
        if any(by_coin) or receipt.sender == owner:
            coin = await self._coin_change(receipt, owner)
        gave = [self._amount_given(receipt, owner, side, coin, wrapping) for side in self._pair]
        loose = [of_coin and coin is not None and bool(coin.beside) for of_coin in by_coin]

        mine, swap_is_ours = expected_payment(effects, self._key, own, gave, loose, sent=receipt.sender == owner)

        unsure = [item.change.token for item, _ in effects.changes if not item.certain]
        if unsure:
            why = f"position {unsure[0]} was touched twice in block {receipt.block_number} around a trade"
            computed.append(f"{why}; the fees of both are right together, their split is not known")
        left, others = [0, 0], [0, 0]
        for side, currency in enumerate(self._pair):
            if unsure:
                continue
            expected = effects.totals.get(currency, 0)
            confirmed = gave[side] == mine[side]
            reached, why = await self._amount_reached(receipt, currency, expected, effects, confirmed=confirmed)
            left[side] = reached - expected
            if why:
                computed.append(why)
            elif loose[side] and gave[side] != mine[side]:
                computed.append(f"{receipt.tx} shares its block with other payments of the wallet")
            else:
                others[side] = mine[side] + left[side] - gave[side]
                if not others[side]:
                    continue
                if not by_coin[side]:
                    if await self._unlogged_gain(receipt.block_number, currency, owner, receipt) != 0:
                        computed.append(
                            f"{receipt.tx}: the wallet's balance of {currency} does not bear out its events"
                        )
                elif receipt.sender == owner:
                    computed.append(f"{receipt.tx}: what others paid of the native coin cannot be told from gas")
        if any(others):
            notes.append(
                f"{receipt.tx}: {others[0]} and {others[1]} base units of what moved were not the wallet's"
                " (another payer or recipient, a hook's or a token's fee); they count as flows of others"
            )
        gas_paid = None
        if coin is not None and receipt.sender == owner:
            told_by_side = any(
                of_coin and gave[side] == mine[side] and not others[side] for side, of_coin in enumerate(by_coin)
            )
            gas_paid = (
                Wei(coin.gas) if told_by_side else await self._observed_gas(receipt, coin, any(by_coin), computed)
            )
        return Settlement(_two(left), _two(others), gas_paid, swap_is_ours, notes, computed)

    async def _coin_change(self, receipt: Receipt, owner: Address) -> CoinChange:
        """What the wallet's native balance fell by, less what its other transactions of the block put into pools."""
        coin = await ledger.read_coin_change(self._node, self._times, receipt, owner, self._head)
        for other in coin.beside:
            if other.sender == owner:
                effects = await self._effects.effects_of(other)
                coin = replace(coin, fell=coin.fell - effects.totals.get(NATIVE, 0))
        return coin

    def _amount_given(
        self, receipt: Receipt, owner: Address, currency: Address, coin: CoinChange | None, wrapping: bool
    ) -> int:
        """What the wallet gave up of a currency; the native coin and its wrapper are one where a transaction wraps."""
        total = 0 if currency == NATIVE else ledger.amount_given(receipt.logs, currency, owner)
        if coin is not None and (currency == NATIVE or (wrapping and currency == self._wrapper)):
            total += coin.payment
        if wrapping and currency == NATIVE and self._wrapper is not None:
            total += ledger.amount_given(receipt.logs, self._wrapper, owner)
        return total

    async def _amount_reached(
        self, receipt: Receipt, currency: Address, expected: int, effects: PoolEffects, *, confirmed: bool
    ) -> tuple[int, str]:
        """What the pools received of a currency; where only arithmetic can say, why."""
        if currency == NATIVE:
            if confirmed:
                return expected, ""  # the wallet's own balance already says so
            reached = await ledger.read_pools_coin(self._node, self._times, receipt, self._pool_manager, self._head)
            if reached is None:
                return expected, f"{receipt.tx}: no balance tells what the pools received of the native coin"
        else:
            reached = ledger.received_by_pools(receipt.logs, currency, self._pool_manager)
        if reached != expected and effects.strange:
            return expected, f"{receipt.tx} also changed liquidity past PositionManager, whose price is not known"
        if reached != expected and currency != NATIVE:
            beyond = await self._unlogged_gain(receipt.block_number, currency, self._pool_manager)
            if beyond is not None and reached + beyond == expected:
                return expected, ""  # a token that keeps part of every transfer and does not say so
            if beyond != 0:
                return expected, f"{receipt.tx}: the events of {currency} do not tell what it moved"
        return reached, ""

    async def _unlogged_gain(
        self, number: int, currency: Address, party: Address, receipt: Receipt | None = None
    ) -> int | None:
        """What a party's balance gained over a block beyond its events, those of one transaction by its receipt."""
        logs = await ledger.read_transfers(self._scanner, currency, party, number, number)
        if receipt is not None:
            logs = [*(log for log in logs if log.tx != receipt.tx), *receipt.logs]
        return await ledger.unlogged_gain(self._node, self._times, (number, number), logs, currency, party, self._head)

    async def _observed_gas(
        self, receipt: Receipt, coin: CoinChange, coin_moved: bool, computed: list[str]
    ) -> Wei | None:
        """What the wallet's balance fell by where nothing but gas can have made it fall; else None, and why."""
        if not coin_moved:
            if coin.fell == coin.gas:
                return Wei(coin.fell)
            if not coin.beside and coin.fell > coin.gas and not await self._node.value(receipt.tx):
                return Wei(coin.fell)  # dearer than its receipt says: attribution will say so
        computed.append(
            f"the gas of {receipt.tx} is what its receipt says, {coin.gas} wei; the wallet's coin fell by {coin.fell}"
        )
        return None


def expected_payment(
    effects: PoolEffects, key: PoolKey, own: Two, gave: Sequence[int], loose: Sequence[bool], *, sent: bool
) -> tuple[Two, bool]:
    """What the wallet should have given up, and whether a swap is part of it. What it sent, it donated itself."""
    aside = of_pair(effects.donated, key) if sent else (0, 0)
    without = (own[0] + aside[0], own[1] + aside[1])
    swapped = effects.exchange(key)[1]
    if _took_part(gave, loose, without, swapped, sent=sent):
        return (without[0] + swapped[0], without[1] + swapped[1]), True
    return without, False


def _took_part(gave: Sequence[int], loose: Sequence[bool], without: Two, swapped: Two, *, sent: bool) -> bool:
    """Whether a swap in the transaction was the wallet's: its balances show it, or it sent it and they show more."""
    if not any(swapped):
        return False

    def shows(amounts: Sequence[int]) -> bool:
        return all(is_loose or seen == amount for seen, amount, is_loose in zip(gave, amounts, loose, strict=True))

    if shows((without[0] + swapped[0], without[1] + swapped[1])):
        return True
    return sent and not shows(without)


def _two(values: Sequence[int]) -> Two:
    return values[0], values[1]
