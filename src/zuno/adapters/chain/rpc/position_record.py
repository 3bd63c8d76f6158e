"""Build the entries of a position's history from one transaction: its changes and swaps, with what was paid for
them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.payments import EffectsReader, PaymentSettler, PoolEffects, of_pair, sum_of
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import BlockReplay, LiquidityEvent, ReplayedChange
from zuno.adapters.chain.states import Share, Two, build_event
from zuno.amm.model import Block, PoolKey
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.model.history import ExternalFlow, PositionEvent, WalletSwap

Event = PositionEvent | WalletSwap
DatedEvents = list[tuple[tuple[int, int], Event]]
"""Events with their place in the chain, because one block may hold several."""


@dataclass(slots=True)
class HistoryEntries:
    events: DatedEvents = field(default_factory=list)
    externals: list[ExternalFlow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)

    def add(self, other: HistoryEntries) -> None:
        self.events += other.events
        self.externals += other.externals
        self.notes += other.notes
        self.computed += other.computed


class EntryBuilder:
    def __init__(self, readers: Readers, replay: BlockReplay, key: PoolKey, pool_id: HexId, head: Block) -> None:
        self._read, self._replay = readers, replay
        self._times = readers.times
        self.key, self._pool_id, self._head = key, pool_id, head
        self._pair = (key.currency0, key.currency1)
        self._manager = readers.info.deployment.position_manager
        self._effects = EffectsReader(readers, replay, key, head)
        self._settler = PaymentSettler(readers, self._effects, key, head)
        self.token = self._settler.token

    # -- entries

    async def build_touches(self, receipt: Receipt, ours: Sequence[LiquidityEvent], owner: Address) -> HistoryEntries:
        effects = await self._effects.effects_of(receipt)
        block = await self._times.block(receipt.block_number, self._head)
        share = await self.read_share(receipt, ours, owner)
        own = of_pair(
            sum_of(amounts for item, amounts in effects.changes if item.change.token in share.everyone), self.key
        )
        settled = await self._settler.settle(receipt, owner, effects, own)
        entries = HistoryEntries(notes=settled.notes, computed=settled.computed)
        indexes = {change.log.index for change in ours}
        mine = [item for item, _ in effects.changes if item.change.log.index in indexes]
        last = mine[-1]
        for item in mine:
            left = settled.left if item is last else (0, 0)
            entries.events.append((item.change.log.position, _touch(item, block, left)))
        if settled.swap_is_ours:
            logs, swapped = effects.exchange(self.key)
            entries.events.append(await self._swap(receipt, logs, swapped, share, (0, 0)))
        entries.events.sort(key=lambda entry: entry[0])
        if receipt.sender == owner:
            entries.events[0] = _with_gas(entries.events[0], receipt, settled.gas_paid, share)
        others = self._our_part(settled.others, effects, indexes, share)
        if any(others):
            entries.externals.append(ExternalFlow(block, receipt.tx, last.sqrt_price_x96, *others))
        shared = sorted(set(share.everyone) - set(share.ours))
        if shared and receipt.sender == owner:
            entries.notes.append(
                f"{receipt.tx} also touched the wallet's positions {shared}: gas and any swap in it are shared equally"
            )
        return entries

    async def build_swap(self, receipt: Receipt, owner: Address, share: Share) -> HistoryEntries | None:
        """A swap that the wallet sent by itself, between the pair's two currencies; None if it is not one."""
        if receipt.sender != owner:
            return None
        effects = await self._effects.effects_of(receipt)
        logs, swapped = effects.exchange(self.key)
        if not logs or effects.changes:
            return None
        settled = await self._settler.settle(receipt, owner, effects, (0, 0))
        if not settled.swap_is_ours:
            return None
        entry = await self._swap(receipt, logs, swapped, share, settled.left)
        entries = HistoryEntries(notes=settled.notes, computed=settled.computed)
        entries.events.append(_with_gas(entry, receipt, settled.gas_paid, share))
        others = (share.of(settled.others[0]), share.of(settled.others[1]))
        if any(others):
            _, swap = entry
            entries.externals.append(ExternalFlow(swap.block, receipt.tx, swap.sqrt_price_before_x96, *others))
        return entries

    async def read_share(self, receipt: Receipt, ours: Iterable[LiquidityEvent], owner: Address) -> Share:
        tokens = {change.token for change in ours}
        strangers = {change.token for change in self._replay.changes(receipt.logs)} - tokens
        owners = dict[int, Address]()
        for log in receipt.logs:
            if log.address == self._manager and log.topics[:1] == (abi.TRANSFER,):
                came_from, went_to = abi.topic_address(log.topics[1]), abi.topic_address(log.topics[2])
                owners[int(log.topics[3], 16)] = came_from if went_to == NATIVE else went_to
        if strangers - owners.keys():
            at = await self._times.block(receipt.block_number, self._head)
            nfts = (await self._read.positions.read_anew(strangers - owners.keys(), at)).nfts
            owners |= {token: nft.owner for token, nft in nfts.items()}
        return Share(tokens, tokens | {token for token in strangers if owners.get(token) == owner})

    # -- putting it down

    async def _swap(
        self, receipt: Receipt, logs: Sequence[Log], swapped: Two, share: Share, left: Two
    ) -> tuple[tuple[int, int], WalletSwap]:
        price = (await self._effects.block(self._pool_id, receipt.block_number)).price_before(logs[0].index)
        at = await self._times.block(receipt.block_number, self._head)
        part = (share.of(swapped[0]), share.of(swapped[1]))
        paid = (part[0] + left[0], part[1] + left[1])
        return logs[0].position, WalletSwap(at, receipt.tx, price, *part, *paid)

    def _our_part(self, others: Two, effects: PoolEffects, indexes: Collection[int], share: Share) -> Two:
        """Others' money on this record's positions: all of it, or by size where the wallet's other positions shared."""
        if set(share.ours) == set(share.everyone):
            return others
        parts = list[int]()
        for side, currency in enumerate(self._pair):
            sizes = {
                item.change.log.index: abs(amounts.get(currency, 0))
                for item, amounts in effects.changes
                if item.change.token in share.everyone
            }
            whole = sum(sizes.values())
            ours = sum(size for index, size in sizes.items() if index in indexes)
            parts.append(others[side] * ours // whole if whole else share.of(others[side]))
        return parts[0], parts[1]


def _touch(item: ReplayedChange, block: Block, left: Two) -> PositionEvent:
    change, price, paid = item.change, item.sqrt_price_x96, (item.owed0 + left[0], item.owed1 + left[1])
    return build_event(change.token, change.range, block, change.log.tx, price, change.delta, item.after, paid)


def _with_gas(
    entry: tuple[tuple[int, int], Event], receipt: Receipt, gas_paid: Wei | None, share: Share
) -> tuple[tuple[int, int], Event]:
    """Gas once per transaction, on its first event."""
    position, event = entry
    paid = None if gas_paid is None else Wei(share.of(gas_paid))
    return position, replace(event, gas=Wei(share.of(receipt.cost)), gas_paid=paid)
