"""One transaction entered in a position's record: what its events say was done, against what was measured to move.

Three numbers per currency: what the pools' arithmetic says (changes, swaps, donations), what PoolManager received, and
what the wallet gave up. The first two must agree, or attribution will show a residual. The last two may differ: the
difference is money of others and recorded as such. Where one of them cannot be measured the first stands in for it, and
the record says that it was computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from zuno.adapters.chain.rpc import ledger, wire
from zuno.adapters.chain.rpc.faults import Behind
from zuno.adapters.chain.rpc.ledger import Coin
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import DONATE, Change, PoolBlock, Replay, Worked, resplit
from zuno.domain.history import External, Touch, WalletSwap
from zuno.domain.pool import Block, PoolKey
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address, HexId, Liquidity, Wei

Event = Touch | WalletSwap
Dated = list[tuple[tuple[int, int], Event]]
"""Events with their place in the chain, because one block may hold several."""
_DOINGS: Final = (wire.SWAP, wire.MODIFY_LIQUIDITY, DONATE)
_SWAP_FIELDS: Final = ("int128", "int128", "uint160", "uint128", "int24", "uint24")
Amounts = dict[Address, int]
Two = tuple[int, int]


@dataclass(slots=True)
class Told:
    """What a record gains from transactions."""

    events: Dated = field(default_factory=list)
    externals: list[External] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)

    def add(self, other: Told) -> None:
        self.events += other.events
        self.externals += other.externals
        self.notes += other.notes
        self.computed += other.computed


@dataclass(frozen=True, slots=True)
class Share:
    """Whose transaction it is: this record's positions among all of the wallet's that it touched."""

    ours: Collection[int]
    everyone: Collection[int]

    def of(self, amount: int) -> int:
        """Equal parts that add up to the whole, whichever record asks."""
        order = sorted(self.everyone)
        parts = [amount * (at + 1) // len(order) - amount * at // len(order) for at in range(len(order))]
        return sum(part for token, part in zip(order, parts, strict=True) if token in self.ours)


@dataclass(frozen=True)
class _Doings:
    """What a transaction did to the pools, by its events, as amounts that the pools were owed."""

    changes: list[tuple[Worked, Amounts]]
    swaps: list[tuple[Log, PoolKey, Amounts]]
    donated: Amounts
    strange: bool
    """Somebody's liquidity changed past PositionManager, or in a pool without a known key."""

    @cached_property
    def swapped(self) -> Amounts:
        return _sum(amounts for _, _, amounts in self.swaps)

    @cached_property
    def whole(self) -> Amounts:
        return _sum([*(amounts for _, amounts in self.changes), self.swapped, self.donated])

    def exchange(self, key: PoolKey) -> tuple[list[Log], Two]:
        """The swaps from one of the pair's currencies into the other, through others or directly."""
        pair = (key.currency0, key.currency1)
        through_others = any(amount for currency, amount in self.swapped.items() if currency not in pair)
        chosen = [
            (log, amounts)
            for log, pool, amounts in self.swaps
            if not through_others or {pool.currency0, pool.currency1} == set(pair)
        ]
        total = _sum(amounts for _, amounts in chosen)
        paid = (total.get(pair[0], 0), total.get(pair[1], 0))
        return ([log for log, _ in chosen], paid) if paid[0] * paid[1] < 0 else ([], (0, 0))


@dataclass(frozen=True, slots=True)
class _Settled:
    """A transaction's payments once all three numbers are compared."""

    left: Two
    """What the pools received beyond their own arithmetic: what a residual will be made of."""
    others: Two
    """What was not the wallet's."""
    gas_paid: Wei | None
    swap_is_ours: bool
    notes: list[str]
    computed: list[str]


class Books:
    """The transactions of one pool's positions, entered one by one."""

    def __init__(self, readers: Readers, replay: Replay, key: PoolKey, pool_id: HexId, head: Block) -> None:
        self._read, self._replay = readers, replay
        self._node, self._times = readers.node, readers.times
        self.key, self._pool_id, self._head = key, pool_id, head
        self._pair = (key.currency0, key.currency1)
        self._pool_manager = readers.info.deployment.pool_manager
        self._manager = readers.info.deployment.position_manager
        wrapper = next((token.address for token in readers.info.tokens if token.symbol == "WETH"), None)
        # In a pool of the coin against its wrapper they are two assets, whatever a transaction does.
        self._wrapper = None if {NATIVE, wrapper} == set(self._pair) else wrapper
        self._blocks: dict[tuple[HexId, int], PoolBlock] = {}

    @property
    def token(self) -> Address:
        """The currency of the pair whose Transfer events tell every payment: neither the coin nor, if that can be, its
        wrapper, of which wrapping makes some without one."""
        return next((side for side in self._pair if side not in (NATIVE, self._wrapper)), self._pair[1])

    # -- entries

    async def touched(self, receipt: Receipt, ours: Sequence[Change], owner: Address) -> Told:
        """The touches of one transaction, with what was paid in it."""
        doings = await self._doings(receipt)
        block = await self._times.block(receipt.block_number, self._head)
        share = await self.share(receipt, ours, owner)
        own = self._two(_sum(amounts for item, amounts in doings.changes if item.change.token in share.everyone))
        settled = await self._settle(receipt, owner, doings, own)
        told = Told(notes=settled.notes, computed=settled.computed)
        indexes = {change.log.index for change in ours}
        mine = [item for item, _ in doings.changes if item.change.log.index in indexes]
        last = mine[-1]
        for item in mine:
            left = settled.left if item is last else (0, 0)
            told.events.append((item.change.log.position, _touch(item, block, left)))
        if settled.swap_is_ours:
            logs, swapped = doings.exchange(self.key)
            told.events.append(await self._swap(receipt, logs, swapped, share, (0, 0)))
        told.events.sort(key=lambda entry: entry[0])
        if receipt.sender == owner:
            told.events[0] = _charged(told.events[0], receipt, settled.gas_paid, share)
        others = self._our_part(settled.others, doings, indexes, share)
        if any(others):
            told.externals.append(External(block, receipt.tx, last.sqrt_price_x96, *others))
        shared = sorted(set(share.everyone) - set(share.ours))
        if shared and receipt.sender == owner:
            told.notes.append(
                f"{receipt.tx} also touched the wallet's positions {shared}: gas and any swap in it are shared equally"
            )
        return told

    async def prepared(self, receipt: Receipt, owner: Address, share: Share) -> Told | None:
        """A swap that the wallet sent by itself, between the pair's two currencies; None if it is not one."""
        if receipt.sender != owner:
            return None
        doings = await self._doings(receipt)
        logs, swapped = doings.exchange(self.key)
        if not logs or doings.changes:
            return None
        settled = await self._settle(receipt, owner, doings, (0, 0))
        if not settled.swap_is_ours:
            return None
        entry = await self._swap(receipt, logs, swapped, share, settled.left)
        told = Told(notes=settled.notes, computed=settled.computed)
        told.events.append(_charged(entry, receipt, settled.gas_paid, share))
        others = (share.of(settled.others[0]), share.of(settled.others[1]))
        if any(others):
            swap = entry[1]
            assert isinstance(swap, WalletSwap)
            told.externals.append(External(swap.block, receipt.tx, swap.sqrt_price_before_x96, *others))
        return told

    async def share(self, receipt: Receipt, ours: Iterable[Change], owner: Address) -> Share:
        """Which of a transaction's positions are the wallet's."""
        tokens = {change.token for change in ours}
        strangers = {change.token for change in self._replay.changes(receipt.logs)} - tokens
        owners = dict[int, Address]()
        for log in receipt.logs:
            if log.address == self._manager and log.topics[:1] == (wire.TRANSFER,):
                came_from, went_to = wire.address_in(log.topics[1]), wire.address_in(log.topics[2])
                owners[int(log.topics[3], 16)] = came_from if went_to == NATIVE else went_to
        if strangers - owners.keys():
            at = await self._times.block(receipt.block_number, self._head)
            deeds = (await self._read.deeds.read_anew(strangers - owners.keys(), at)).deeds
            owners |= {token: deed.owner for token, deed in deeds.items()}
        return Share(tokens, tokens | {token for token in strangers if owners.get(token) == owner})

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

    # -- what was done

    async def _doings(self, receipt: Receipt) -> _Doings:
        done = [
            log for log in receipt.logs if log.address == self._pool_manager and log.topics and log.topics[0] in _DOINGS
        ]
        keys = {pool_id: await self._read.keys.find(pool_id, self._head) for pool_id in {log.topics[1] for log in done}}
        doings = _Doings([], [], {}, strange=None in keys.values())
        ours = {change.log.index: change for change in self._replay.changes(done)}
        for log in done:
            key = keys[log.topics[1]]
            if key is None:
                continue
            near = bool({key.currency0, key.currency1} & set(self._pair))
            if log.topics[0] == wire.SWAP:
                amounts = wire.decoded(_SWAP_FIELDS, log.data, "a Swap event")
                doings.swaps.append((log, key, _amounts(key, -amounts[0], -amounts[1])))
            elif log.topics[0] == DONATE:
                amount0, amount1 = wire.decoded(["uint256", "uint256"], log.data, "a Donate event")
                for currency, amount in _amounts(key, amount0, amount1).items():
                    doings.donated[currency] = doings.donated.get(currency, 0) + amount
            elif near and log.index in ours:
                item = (await self.block(log.topics[1], log.block_number)).worked.get(log.index)
                if item is None:
                    raise Behind(f"the events of block {log.block_number} and the receipt of {receipt.tx} differ")
                doings.changes.append((item, _amounts(key, item.owed0, item.owed1)))
            elif near:
                doings = replace(doings, strange=True)
        return doings

    async def _fees_seen(self, item: Worked) -> tuple[int | None, int | None]:
        """The fees a change paid out, where its transaction did nothing else to the pools and the token has events."""
        receipt = await self._node.receipt(item.change.log.tx)
        done = [
            log for log in receipt.logs if log.address == self._pool_manager and log.topics and log.topics[0] in _DOINGS
        ]
        key = await self._read.keys.find(item.change.pool_id, self._head)
        if key is None or len(done) > 1:
            return None, None

        def seen(currency: Address, principal: int) -> int | None:
            if currency == NATIVE:
                return None
            return principal - ledger.received_by_pools(receipt.logs, currency, self._pool_manager)

        return seen(key.currency0, item.principal0), seen(key.currency1, item.principal1)

    # -- what moved

    async def _settle(self, receipt: Receipt, owner: Address, doings: _Doings, own: Two) -> _Settled:
        notes, computed = list[str](), list[str]()
        wrapping = ledger.wraps(receipt, self._wrapper)
        by_coin = [side == NATIVE or (wrapping and side == self._wrapper) for side in self._pair]
        coin = None
        if any(by_coin) or receipt.sender == owner:
            coin = await self._coin(receipt, owner)
        gave = [self._gave(receipt, owner, side, coin, wrapping) for side in self._pair]
        loose = [of_coin and coin is not None and bool(coin.beside) for of_coin in by_coin]

        aside = self._two(doings.donated) if receipt.sender == owner else (0, 0)
        without = (own[0] + aside[0], own[1] + aside[1])
        swapped = doings.exchange(self.key)[1]
        swap_is_ours = _took_part(gave, loose, without, swapped, sent=receipt.sender == owner)
        mine = (without[0] + swapped[0], without[1] + swapped[1]) if swap_is_ours else without

        unsure = [item.change.token for item, _ in doings.changes if not item.certain]
        if unsure:
            why = f"position {unsure[0]} was touched twice in block {receipt.block_number} around a trade"
            computed.append(f"{why}; the fees of both are right together, their split is not known")
        left, others = [0, 0], [0, 0]
        for side, currency in enumerate(self._pair):
            if unsure:
                continue
            expected = doings.whole.get(currency, 0)
            confirmed = gave[side] == mine[side]
            reached, why = await self._reached(receipt, currency, expected, doings, confirmed=confirmed)
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
                    if await self._unlogged(receipt.block_number, currency, owner, receipt) != 0:
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
            gas_paid = Wei(coin.gas) if told_by_side else await self._gas_seen(receipt, coin, any(by_coin), computed)
        return _Settled(_pair(left), _pair(others), gas_paid, swap_is_ours, notes, computed)

    async def _coin(self, receipt: Receipt, owner: Address) -> Coin:
        """What the wallet's native balance fell by, less what its other transactions of the block put into pools."""
        coin = await ledger.coin(self._node, self._times, receipt, owner, self._head)
        for other in coin.beside:
            if other.sender == owner:
                doings = await self._doings(other)
                coin = replace(coin, fell=coin.fell - doings.whole.get(NATIVE, 0))
        return coin

    def _gave(self, receipt: Receipt, owner: Address, currency: Address, coin: Coin | None, wrapping: bool) -> int:
        """What the wallet gave up of a currency; the native coin and its wrapper are one where a transaction wraps."""
        total = 0 if currency == NATIVE else ledger.given_up(receipt.logs, currency, owner)
        if coin is not None and (currency == NATIVE or (wrapping and currency == self._wrapper)):
            total += coin.paid
        if wrapping and currency == NATIVE and self._wrapper is not None:
            total += ledger.given_up(receipt.logs, self._wrapper, owner)
        return total

    async def _reached(
        self, receipt: Receipt, currency: Address, expected: int, doings: _Doings, *, confirmed: bool
    ) -> tuple[int, str]:
        """What the pools received of a currency; where only arithmetic can say, why."""
        if currency == NATIVE:
            if confirmed:
                return expected, ""  # the wallet's own balance already says so
            reached = await ledger.pools_coin(self._node, self._times, receipt, self._pool_manager, self._head)
            if reached is None:
                return expected, f"{receipt.tx}: no balance tells what the pools received of the native coin"
        else:
            reached = ledger.received_by_pools(receipt.logs, currency, self._pool_manager)
        if reached != expected and doings.strange:
            return expected, f"{receipt.tx} also changed liquidity past PositionManager, whose price is not known"
        if reached != expected and currency != NATIVE:
            beyond = await self._unlogged(receipt.block_number, currency, self._pool_manager)
            if beyond is not None and reached + beyond == expected:
                return expected, ""  # a token that keeps part of every transfer and does not say so
            if beyond != 0:
                return expected, f"{receipt.tx}: the events of {currency} do not tell what it moved"
        return reached, ""

    async def _unlogged(
        self, number: int, currency: Address, party: Address, receipt: Receipt | None = None
    ) -> int | None:
        """What a party's balance gained over a block beyond its events, those of one transaction by its receipt."""
        logs = await ledger.transfers(self._node, currency, party, number)
        if receipt is not None:
            logs = [*(log for log in logs if log.tx != receipt.tx), *receipt.logs]
        return await ledger.unlogged(self._node, self._times, (number, number), logs, currency, party, self._head)

    async def _gas_seen(self, receipt: Receipt, coin: Coin, coin_moved: bool, computed: list[str]) -> Wei | None:
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

    # -- putting it down

    async def _swap(
        self, receipt: Receipt, logs: Sequence[Log], swapped: Two, share: Share, left: Two
    ) -> tuple[tuple[int, int], Event]:
        price = (await self.block(self._pool_id, receipt.block_number)).price_before(logs[0].index)
        at = await self._times.block(receipt.block_number, self._head)
        part = (share.of(swapped[0]), share.of(swapped[1]))
        paid = (part[0] + left[0], part[1] + left[1])
        return logs[0].position, WalletSwap(at, receipt.tx, price, *part, *paid)

    def _our_part(self, others: Two, doings: _Doings, indexes: Collection[int], share: Share) -> Two:
        """Others' money on this record's positions: all of it, or by size where the wallet's other positions shared."""
        if set(share.ours) == set(share.everyone):
            return others
        parts = list[int]()
        for side, currency in enumerate(self._pair):
            sizes = {
                item.change.log.index: abs(amounts.get(currency, 0))
                for item, amounts in doings.changes
                if item.change.token in share.everyone
            }
            whole = sum(sizes.values())
            ours = sum(size for index, size in sizes.items() if index in indexes)
            parts.append(others[side] * ours // whole if whole else share.of(others[side]))
        return _pair(parts)

    def _two(self, amounts: Amounts) -> Two:
        return amounts.get(self._pair[0], 0), amounts.get(self._pair[1], 0)


def _took_part(gave: Sequence[int], loose: Sequence[bool], without: Two, swapped: Two, *, sent: bool) -> bool:
    """Whether a swap in the transaction was the wallet's: its balances show it, or it sent it and they show more."""
    if not any(swapped):
        return False

    def shows(amounts: Sequence[int]) -> bool:
        return all(is_loose or seen == one for seen, one, is_loose in zip(gave, amounts, loose, strict=True))

    if shows((without[0] + swapped[0], without[1] + swapped[1])):
        return True
    return sent and not shows(without)


def _touch(item: Worked, block: Block, left: Two) -> Touch:
    change = item.change
    return Touch(
        position_id=change.token,
        range=change.range,
        block=block,
        tx=change.log.tx,
        sqrt_price_x96=item.sqrt_price_x96,
        liquidity_delta=change.delta,
        liquidity_after=Liquidity(item.after.liquidity),
        paid0=item.owed0 + left[0],
        paid1=item.owed1 + left[1],
        fee_growth_inside0_x128=item.after.fee_growth_inside0_last_x128,
        fee_growth_inside1_x128=item.after.fee_growth_inside1_last_x128,
    )


def _charged(
    entry: tuple[tuple[int, int], Event], receipt: Receipt, gas_paid: Wei | None, share: Share
) -> tuple[tuple[int, int], Event]:
    """Gas once per transaction, on its first event."""
    position, event = entry
    paid = None if gas_paid is None else Wei(share.of(gas_paid))
    return position, replace(event, gas=Wei(share.of(receipt.cost)), gas_paid=paid)


def _amounts(key: PoolKey, amount0: int, amount1: int) -> Amounts:
    return {key.currency0: int(amount0), key.currency1: int(amount1)}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for amounts in parts:
        for currency, amount in amounts.items():
            total[currency] = total.get(currency, 0) + amount
    return total


def _pair(values: Sequence[int]) -> Two:
    return values[0], values[1]
