"""What happened to a position, from its events: every touch with the wallet's measured amounts, exact to the wei.

What the wallet paid is measured per transaction. Where one transaction holds several touches, each gets what the
contracts' arithmetic says it cost, and whatever the measurement has beyond that is put on an event too: nothing that
moved is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from zuno.adapters.chain.rpc import wire
from zuno.adapters.chain.rpc.faults import NoSuchState
from zuno.adapters.chain.rpc.ledger import paid
from zuno.adapters.chain.rpc.lineage import Life, Lineages
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import Change, Replay, Worked
from zuno.adapters.chain.rpc.scan import Query
from zuno.adapters.chain.rpc.storage import holding, place
from zuno.core.amm.identity import pool_slots, unpack_slot0
from zuno.domain.errors import Malformed, Unavailable, Unknown, Usage
from zuno.domain.history import PositionHistory, PricedBlock, Standing, Touch, WalletSwap
from zuno.domain.pool import Block, PoolKey
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address, HexId, Liquidity, Seconds, SqrtPriceX96

PREPARATION_BLOCKS: Final = 50
"""How long before a deposit a swap of the wallet between the pool's two currencies counts as made for it."""

Event = Touch | WalletSwap
Dated = list[tuple[tuple[int, int], Event]]
"""Events with their place in the chain, because one block may hold several."""


class Histories:
    """Histories of positions, ended at a head."""

    def __init__(self, readers: Readers) -> None:
        self._read = readers
        self._info, self._node, self._times = readers.info, readers.node, readers.times
        self._pool_manager = readers.info.deployment.pool_manager
        self._manager = readers.info.deployment.position_manager
        self._replay = Replay(readers.node, readers.storage, readers.times, self._pool_manager, self._manager)
        self._lineages = Lineages(readers, self._replay)

    async def of(self, token: int, since: Seconds | None, head: Block) -> PositionHistory:
        if since is not None and since > head.timestamp:
            raise Usage(f"the window would open at {since}, after the chain's own time {head.timestamp}")
        if not 0 < token < await self._next_token(head):
            raise Unknown(f"no position {token} on {self._info.name}: it was never minted")
        start = None if since is None else await self._times.last_by(since, head)
        try:
            return await self._told(token, start, head)
        except NoSuchState as missing:
            if (await self._node.block(head.number)).hash != head.hash:
                raise
            raise Unavailable(f"a history needs a node that keeps past state (an archive node): {missing}") from missing

    async def _told(self, token: int, start: Block | None, head: Block) -> PositionHistory:
        first = await self._read.birthday.block(head.number) if start is None else start.number + 1
        lives, notes = await self._lineages.of(token, first, head)
        newest, oldest = lives[0], lives[-1]
        key = newest.deed.key
        closed = head if newest.burn is None else await self._times.block(newest.burn.block_number, head)
        # A mint inside the window means that there was nothing before it to stand on.
        standing = None if start is None or oldest.mint is not None else await self._standing(oldest, start)
        end = await self._standing(newest, head) if newest.burn is None else None
        events, said = await self._events(lives, first, closed.number, head)
        if standing is None and not events:
            raise Malformed(f"position {token} was minted without a liquidity event")
        opened = events[0].block if standing is None else standing.block
        tokens = await self._read.tokens.read((key.currency0, key.currency1), head)
        return PositionHistory(
            key=key,
            token0=tokens[key.currency0],
            token1=tokens[key.currency1],
            opened=opened,
            closed=closed,
            start=standing,
            end=end,
            events=tuple(events),
            path=await self._path(newest.deed.pool_id, opened, closed),
            native_side=self._info.native_side(key),
            notes=(*notes, *said),
        )

    async def _next_token(self, head: Block) -> int:
        return wire.number(await self._node.call(self._manager, wire.NEXT_TOKEN_ID, head), "nextTokenId")

    async def _standing(self, life: Life, at: Block) -> Standing:
        where = place(self._manager, life.deed.pool_id, life.deed.range.lower, life.deed.range.upper, life.token)
        held = holding(where, await self._read.storage.words(where.slots(), at))
        return Standing(
            position_id=life.token,
            range=life.deed.range,
            block=at,
            sqrt_price_x96=SqrtPriceX96(held.slot0.sqrt_price_x96),
            liquidity=Liquidity(held.info.liquidity),
            worth0=held.amount0 + held.fees0,
            worth1=held.amount1 + held.fees1,
            fee_growth_inside0_x128=held.inside0,
            fee_growth_inside1_x128=held.inside1,
            fee_growth_inside0_last_x128=held.info.fee_growth_inside0_last_x128,
            fee_growth_inside1_last_x128=held.info.fee_growth_inside1_last_x128,
        )

    async def _path(self, pool_id: HexId, opened: Block, closed: Block) -> tuple[PricedBlock, ...]:
        """The price when the window opened, after every hour's last swap, and when it closed."""
        slot0 = pool_slots(pool_id).slot0
        inside = await self._read.prices.hourly(pool_id, opened.number + 1, closed)
        priced = {block.block.number: block for block in inside}
        for edge in (opened, closed):
            word = (await self._read.storage.words([slot0], edge))[slot0]
            priced[edge.number] = PricedBlock(edge, SqrtPriceX96(unpack_slot0(word).sqrt_price_x96))
        return tuple(priced[number] for number in sorted(priced))

    # -- what happened

    async def _events(self, lives: Sequence[Life], first: int, last: int, head: Block) -> tuple[list[Event], list[str]]:
        by_token = {life.token: life for life in lives}
        deed = lives[0].deed
        query = Query(self._pool_manager, (wire.MODIFY_LIQUIDITY, deed.pool_id, wire.address_word(self._manager)))
        found = self._replay.changes(await self._read.scanner.all(query, first, last))
        changes = [change for change in found if change.token in by_token]
        dated, notes = Dated(), list[str]()
        by_tx = dict[HexId, list[Change]]()
        for change in changes:
            by_tx.setdefault(change.log.tx, []).append(change)
        for tx, ours in by_tx.items():
            owner = by_token[ours[0].token].owner_at(ours[0].log)
            told, said = await self._transaction(await self._node.receipt(tx), ours, owner, deed.key, head)
            dated += told
            notes += said
        deposits = [(change.log, by_token[change.token].owner_at(change.log)) for change in changes if change.delta > 0]
        swaps, said = await self._preparations(deposits, deed.key, deed.pool_id, first, by_tx, head)
        return [event for _, event in sorted(dated + swaps, key=lambda item: item[0])], notes + said

    async def _transaction(
        self, receipt: Receipt, ours: Sequence[Change], owner: Address, key: PoolKey, head: Block
    ) -> tuple[Dated, list[str]]:
        """The touches of one transaction, with what the wallet paid in it spread over them."""
        worked = await self._worked(receipt, key, head)
        block = await self._times.block(receipt.block_number, head)
        touches = [_touch(worked[change.log.index][0], block) for change in ours]
        notes = [
            f"position {change.token} was touched twice in block {block.number} around a trade; the fees of both are"
            " right together, their split is not known"
            for change in ours
            if not worked[change.log.index][0].certain
        ]
        beyond = list[int]()
        for currency in (key.currency0, key.currency1):
            measured = await paid(self._node, self._times, receipt, currency, owner, head)
            expected = sum(owed.get(currency, 0) for _, owed in worked.values())
            if not measured.alone and measured.amount != expected:
                notes.append(f"{receipt.tx} shares its block with other payments: amounts are computed, not measured")
            beyond.append(measured.amount - expected if measured.alone else 0)
        events: Dated = [(change.log.position, touch) for change, touch in zip(ours, touches, strict=True)]
        if any(beyond):
            events, said = await self._place_rest(receipt, events, (beyond[0], beyond[1]), ours[0].pool_id, head)
            notes += said
        events.sort(key=lambda item: item[0])
        return _charged(events, receipt, owner), notes

    async def _worked(
        self, receipt: Receipt, key: PoolKey, head: Block
    ) -> dict[int, tuple[Worked, dict[Address, int]]]:
        """Every change PositionManager made in a transaction, and what it moved of the two currencies, by log index.

        Other positions count too, of this pool or of one that shares a currency: their payments are in the measurement.
        """
        result = dict[int, tuple[Worked, dict[Address, int]]]()
        changes = self._replay.changes(receipt.logs)
        for pool_id in dict.fromkeys(change.pool_id for change in changes):
            other = await self._read.keys.find(pool_id, head)
            if other is None or not {other.currency0, other.currency1} & {key.currency0, key.currency1}:
                continue
            through = await self._replay.block(pool_id, receipt.block_number, head)
            for change in changes:
                if change.pool_id == pool_id:
                    item = through.worked[change.log.index]
                    result[change.log.index] = item, {other.currency0: item.owed0, other.currency1: item.owed1}
        return result

    async def _place_rest(
        self, receipt: Receipt, events: Dated, beyond: tuple[int, int], pool_id: HexId, head: Block
    ) -> tuple[Dated, list[str]]:
        """What the wallet paid beyond the touches: a swap in the same transaction, or else the last touch bears it."""
        swap = next((log for log in receipt.logs if self._is_swap(log)), None)
        if swap is not None:
            price = (await self._replay.block(pool_id, receipt.block_number, head)).price_before(swap.index)
            block = await self._times.block(receipt.block_number, head)
            return [*events, (swap.position, WalletSwap(block, receipt.tx, price, *beyond))], []
        position, last = events[-1]
        if not isinstance(last, Touch):
            raise Malformed("a transaction without touches has nothing to bear its rest")
        borne = replace(last, paid0=last.paid0 + beyond[0], paid1=last.paid1 + beyond[1])
        note = (
            f"{receipt.tx}: the wallet paid {beyond[0]} and {beyond[1]} base units beyond the pool's own arithmetic"
            f" (a hook, a transfer fee or another recipient); they are booked on position {last.position_id}"
        )
        return [*events[:-1], (position, borne)], [note]

    # -- swaps made for a deposit

    async def _preparations(
        self,
        deposits: Sequence[tuple[Log, Address]],
        key: PoolKey,
        pool_id: HexId,
        first: int,
        touched: Iterable[HexId],
        head: Block,
    ) -> tuple[Dated, list[str]]:
        """Swaps between the pool's two currencies that the wallet sent itself shortly before it deposited."""
        seen, swaps, notes = set(touched), Dated(), list[str]()
        for deposit, owner in deposits:
            low = max(first, deposit.block_number - PREPARATION_BLOCKS)
            for tx in await self._paid_out(key, owner, low, deposit.block_number):
                if tx in seen:
                    continue
                seen.add(tx)
                receipt = await self._node.receipt(tx)
                swap = next((log for log in receipt.logs if self._is_swap(log)), None)
                if swap is None or receipt.sender != owner or swap.position > deposit.position:
                    continue
                moved = [
                    await paid(self._node, self._times, receipt, currency, owner, head)
                    for currency in (key.currency0, key.currency1)
                ]
                if not all(side.alone for side in moved):
                    notes.append(f"the swap {tx} shares its block with other payments and cannot be measured")
                    continue
                paid0, paid1 = (side.amount for side in moved)
                if paid0 * paid1 >= 0:
                    continue  # not an exchange of one for the other
                price = (await self._replay.block(pool_id, swap.block_number, head)).price_before(swap.index)
                block = await self._times.block(swap.block_number, head)
                swaps.append((swap.position, WalletSwap(block, tx, price, paid0, paid1, receipt.cost)))
        return swaps, notes

    async def _paid_out(self, key: PoolKey, owner: Address, first: int, last: int) -> list[HexId]:
        """Transactions in which an ERC-20 of the pair entered or left the wallet: any exchange moves at least one."""
        currency = key.currency1 if key.currency0 == NATIVE else key.currency0
        wallet = wire.address_word(owner)
        logs = [
            *await self._read.scanner.all(Query(currency, (wire.TRANSFER, wallet)), first, last),
            *await self._read.scanner.all(Query(currency, (wire.TRANSFER, None, wallet)), first, last),
        ]
        return list(dict.fromkeys(log.tx for log in sorted(logs, key=lambda log: log.position)))

    def _is_swap(self, log: Log) -> bool:
        return log.address == self._pool_manager and log.topics[:1] == (wire.SWAP,)


def _touch(item: Worked, block: Block) -> Touch:
    change = item.change
    return Touch(
        position_id=change.token,
        range=change.range,
        block=block,
        tx=change.log.tx,
        sqrt_price_x96=item.sqrt_price_x96,
        liquidity_delta=change.delta,
        liquidity_after=Liquidity(item.after.liquidity),
        paid0=item.owed0,
        paid1=item.owed1,
        fee_growth_inside0_x128=item.after.fee_growth_inside0_last_x128,
        fee_growth_inside1_x128=item.after.fee_growth_inside1_last_x128,
    )


def _charged(events: Dated, receipt: Receipt, owner: Address) -> Dated:
    """Gas once per transaction, on its first event, if the wallet paid it."""
    if receipt.sender != owner:
        return events
    position, first = events[0]
    return [(position, replace(first, gas=receipt.cost)), *events[1:]]
