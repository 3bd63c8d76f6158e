"""A position's history from its events: every change of liquidity with the amounts that were measured to move."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zuno.adapters.chain.rpc import abi, ledger
from zuno.adapters.chain.rpc.errors import NodeBehind, NoSuchMethod, NoSuchState
from zuno.adapters.chain.rpc.ledger import ETHER, amount_given, received_by_pools
from zuno.adapters.chain.rpc.lineage import LineageReader, PositionLife
from zuno.adapters.chain.rpc.node import Log, RpcNode
from zuno.adapters.chain.rpc.position_record import DatedEvents, EntryBuilder, HistoryEntries
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import BlockReplay, LiquidityEvent
from zuno.adapters.chain.rpc.scan import Query
from zuno.adapters.chain.rpc.storage import locate_position, read_worth
from zuno.adapters.chain.states import build_snapshot
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.amm.model import Block, PoolKey
from zuno.kernel.errors import Malformed, NotFound, Unavailable, UsageError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds, SqrtPriceX96, Wei
from zuno.lp.model.chains import Deployment
from zuno.lp.model.history import (
    JournaledPlans,
    PositionEvent,
    PositionHistory,
    PositionSnapshot,
    PricedBlock,
    WalletSwap,
)
from zuno.lp.plan import calldata

SPARE_PERCENT = 5
"""How much more than a deposit took a swap may have brought for it: the price moves in between."""


class HistoryReader:
    def __init__(self, readers: Readers) -> None:
        self._read = readers
        self._info, self._node, self._times = readers.info, readers.node, readers.times
        self._pool_manager = readers.info.deployment.pool_manager
        self._manager = readers.info.deployment.position_manager
        self._replay = BlockReplay(readers)
        self._lineage_reader = LineageReader(readers, self._replay)
        self._burn_simulator = BurnSimulator(readers.node, readers.info.deployment)

    async def read(self, token: int, since: Seconds | None, head: Block, plans: JournaledPlans) -> PositionHistory:
        if since is not None and since > head.timestamp:
            raise UsageError(f"the window would open at {since}, after the chain's own time {head.timestamp}")
        next_token = await self._node.call(self._manager, abi.NEXT_TOKEN_ID, head, abi.uint_reader("nextTokenId"))
        if not 0 < token < next_token:
            raise NotFound(f"no position {token} on {self._info.name}: it was never minted")
        start = None if since is None else await self._times.last_by(since, head)
        try:
            return await self._build_history(token, start, head, plans)
        except NoSuchState as missing:
            if isinstance(missing, NodeBehind) or (await self._node.block(head.number)).hash != head.hash:
                raise
            raise Unavailable(f"a history needs a node that keeps past state (an archive node): {missing}") from missing

    async def _build_history(
        self, token: int, start: Block | None, head: Block, plans: JournaledPlans
    ) -> PositionHistory:
        first = await self._read.deployed.block(head.number) if start is None else start.number + 1
        lives, notes = await self._lineage_reader.read(token, first, head, plans)
        newest, oldest = lives[0], lives[-1]
        if start is None and oldest.mint is None:
            seen = min((log.block_number for log in oldest.transfers), default=head.number + 1)
            raise NodeBehind(
                f"the node lacks events before block {seen}: it knows of no mint of position {oldest.token}"
            )
        key = newest.nft.key
        closed = head if newest.burn is None else await self._times.block(newest.burn.block_number, head)
        entries = HistoryEntries(notes=notes)
        # A mint inside the window means that there was nothing before it to stand on.
        standing = (
            None if start is None or oldest.mint is not None else await self._read_standing(oldest, start, entries)
        )
        end = await self._read_standing(newest, head, entries) if newest.burn is None else None
        if oldest.mint is not None:
            first = max(first, await self._lineage_reader.shortly_before(oldest.mint, head))
        entries.add(await self._read_events(lives, first, closed.number, head))
        for life in lives:
            await self._add_gas(plans.sent.get(life.token, {}), newest.nft.pool_id, start, head, entries)
        events = tuple(event for _, event in sorted(entries.events, key=lambda entry: entry[0]))
        if standing is None and not events:
            raise Malformed(f"position {token} was minted without a liquidity event")
        opened = events[0].block if standing is None else standing.block
        _check_complete(entries.events, standing, end)
        path = await self._read_path(newest.nft.pool_id, opened, closed, entries)
        tokens = await self._read.tokens.read((key.currency0, key.currency1), head)
        return PositionHistory(
            key=key,
            token0=tokens[key.currency0],
            token1=tokens[key.currency1],
            opened=opened,
            closed=closed,
            start=standing,
            end=end,
            events=events,
            path=path,
            native_side=self._info.native_side(key),
            externals=tuple(entries.externals),
            lineage=plans.name_lineage([None if life.mint is None else life.mint.tx for life in lives]),
            computed=tuple(entries.computed),
            notes=tuple(entries.notes),
        )

    async def _read_standing(self, life: PositionLife, at: Block, entries: HistoryEntries) -> PositionSnapshot:
        """A position between touches, its worth from a pretended burn where the node can pretend."""
        nft = life.nft
        where = locate_position(self._manager, nft.pool_id, nft.range, life.token)
        held = read_worth(where, await self._read.storage.words(where.slots(), at))
        worth = (held.amount0 + held.fees0, held.amount1 + held.fees1)
        burn = await self._burn_simulator.simulate(life.token, life.owner_at((at.number + 1, -1)), nft.key, at)
        if isinstance(burn, BurnResult) and burn.blind_to_coin and worth[0]:
            burn = "the node's eth_simulateV1 does not report moves of native coin"
        if isinstance(burn, str):
            entries.computed.append(f"what position {life.token} was worth at block {at.number}: {burn}")
        else:
            worth = (burn.paid0, burn.paid1)
            kept = (burn.paid0 - burn.received0, burn.paid1 - burn.received1)
            if any(kept):
                entries.notes.append(
                    f"of the position's worth at block {at.number} a burn would leave {kept[0]} and {kept[1]} units"
                    " with others (a hook's or a token's fee)"
                )
        price, inside = held.slot0.sqrt_price_x96, (held.inside0, held.inside1)
        return build_snapshot(life.token, nft.range, at, price, held.info, worth, inside)

    async def _read_path(
        self, pool_id: HexId, opened: Block, closed: Block, entries: HistoryEntries
    ) -> tuple[PricedBlock, ...]:
        """The price when the window opened, after the last swap of every hour, and when it closed. The state judges the
        events at both ends: swaps that do not lead to the closing price are not all of them."""
        slot0 = pool_slots(pool_id).slot0
        inside = await self._read.prices.read_path(pool_id, opened.number + 1, closed, self._info.path_seconds)
        edges = [
            PricedBlock(edge, SqrtPriceX96(unpack_slot0(words[slot0]).sqrt_price_x96))
            for edge in (opened, closed)
            for words in [await self._read.storage.words([slot0], edge)]
        ]
        if [edges[0], *inside][-1].sqrt_price_x96 != edges[1].sqrt_price_x96:
            entries.computed.append(
                f"LVR: the node's Swap events do not lead to the price at block {closed.number}, some are missing"
            )
        priced = {point.block.number: point for point in (*inside, *edges)}
        return tuple(priced[number] for number in sorted(priced))

    async def _add_gas(
        self, sent: Mapping[HexId, Block], pool_id: HexId, start: Block | None, head: Block, entries: HistoryEntries
    ) -> None:
        """What the wallet paid for transactions of its plans that are not in the record yet."""
        slot0, known = pool_slots(pool_id).slot0, {event.tx for _, event in entries.events}
        for tx, mined in sent.items():
            if tx in known or mined.number > head.number or (start is not None and mined.number <= start.number):
                continue
            block = await self._times.block(mined.number, head)
            if block.hash != mined.hash:
                continue  # reorganised away, or of a local world that is no more
            receipt = await self._node.receipt(tx)
            coin = await ledger.read_coin_change(self._node, self._times, receipt, receipt.sender, head)
            paid = coin.fell if coin.fell == coin.gas else coin.fell - await self._node.value(tx)
            if paid < coin.gas or (coin.beside and paid != coin.gas):
                entries.computed.append(f"the gas of {tx} is what its receipt says: its block holds other payments")
                paid = coin.gas
            price = SqrtPriceX96(unpack_slot0((await self._read.storage.words([slot0], block))[slot0]).sqrt_price_x96)
            event = WalletSwap(block, tx, price, 0, 0, 0, 0, receipt.cost, Wei(paid))
            entries.events.append(((block.number, -1), event))

    # -- what happened

    async def _read_events(self, lives: Sequence[PositionLife], first: int, last: int, head: Block) -> HistoryEntries:
        by_token = {life.token: life for life in lives}
        nft = lives[0].nft
        builder = EntryBuilder(self._read, self._replay, nft.key, nft.pool_id, head)
        query = Query(self._pool_manager, (abi.MODIFY_LIQUIDITY, nft.pool_id, abi.address_word(self._manager)))
        changes = self._replay.changes(await self._read.scanner.all(query, first, last))
        entries, by_tx = HistoryEntries(), dict[HexId, list[LiquidityEvent]]()
        for change in changes:
            if change.token in by_token and by_token[change.token].knows(change.log):
                by_tx.setdefault(change.log.tx, []).append(change)
        for tx, ours in by_tx.items():
            owner = by_token[ours[0].token].owner_at(ours[0].log.position)
            entries.add(await builder.build_touches(await self._node.receipt(tx), ours, owner))
        seen = set(by_tx)
        for ours in by_tx.values():
            deposit = next((change for change in ours if change.delta > 0), None)
            if deposit is not None:
                owner = by_token[deposit.token].owner_at(deposit.log.position)
                earlier = [change.log for change in changes if change.delta > 0 and change.log.tx not in by_tx]
                taken = _sum_paid(
                    event
                    for _, event in entries.events
                    if isinstance(event, PositionEvent) and event.tx == deposit.log.tx
                )
                entries.add(
                    await self._read_preparing_swaps(builder, deposit, ours, owner, earlier, first, seen, taken, head)
                )
        return entries

    async def _read_preparing_swaps(
        self,
        builder: EntryBuilder,
        deposit: LiquidityEvent,
        ours: Sequence[LiquidityEvent],
        owner: Address,
        others: Sequence[Log],
        first: int,
        seen: set[HexId],
        taken: tuple[int, int],
        head: Block,
    ) -> HistoryEntries:
        """Swaps of the pool's currencies that the wallet sent shortly before its own deposit. A swap belongs to the
        first deposit after it, and the latest count first until they have brought what the deposit took (`taken`)."""
        entries, low = HistoryEntries(), max(first, await self._lineage_reader.shortly_before(deposit.log, head))
        receipt = await self._node.receipt(deposit.log.tx)
        if receipt.sender != owner:
            return entries
        share = await builder.read_share(receipt, ours, owner)
        currency, span = builder.token, (low, deposit.log.block_number)
        moved = await ledger.read_transfers(self._read.scanner, currency, owner, *span)
        if await ledger.unlogged_gain(self._node, self._times, span, moved, currency, owner, head) != 0:
            entries.computed.append(
                f"which swaps prepared {deposit.log.tx}: the wallet's balance of {currency} moved otherwise from block"
                f" {span[0]} to {span[1]} than its Transfer events say"
            )
        left = [max(0, most) * (100 + SPARE_PERCENT) // 100 for most in taken]
        for log in reversed(moved):
            if log.tx in seen or log.position > deposit.log.position:
                continue
            seen.add(log.tx)
            swap = await builder.build_swap(await self._node.receipt(log.tx), owner, share)
            if swap is None or await self._is_claimed(log, deposit.log, others, owner):
                continue
            paid = _sum_paid(event for _, event in swap.events if isinstance(event, WalletSwap))
            brought = [max(0, -amount) for amount in paid]
            if any(got > most for got, most in zip(brought, left, strict=True)):
                entries.notes.append(
                    f"the swap {log.tx} brought more than the deposit in {deposit.log.tx} took: it is not counted as"
                    " made for it"
                )
                continue
            left = [most - got for got, most in zip(brought, left, strict=True)]
            entries.notes.append(f"the swap {log.tx} is taken to have prepared the deposit in {deposit.log.tx}")
            entries.add(swap)
        return entries

    async def _is_claimed(self, swap: Log, deposit: Log, others: Sequence[Log], owner: Address) -> bool:
        """Whether the wallet deposited into the pool in between, for a position of another record."""
        between = [log for log in others if swap.position < log.position < deposit.position]
        return any([(await self._node.receipt(log.tx)).sender == owner for log in between])


def _sum_paid(events: Iterable[PositionEvent | WalletSwap]) -> tuple[int, int]:
    paid = [(event.paid0, event.paid1) for event in events]
    return sum(paid0 for paid0, _ in paid), sum(paid1 for _, paid1 in paid)


def _check_complete(events: DatedEvents, start: PositionSnapshot | None, end: PositionSnapshot | None) -> None:
    """Every change must begin with the liquidity that the one before it left, else events are missing."""
    held = {} if start is None else {start.position_id: int(start.liquidity)}
    for _, event in sorted(events, key=lambda entry: entry[0]):
        if isinstance(event, PositionEvent):
            if held.get(event.position_id, 0) != event.liquidity_after - event.liquidity_delta:
                raise NodeBehind(
                    f"the node lacks events before block {event.block.number}: position {event.position_id} held other"
                    " liquidity by then than they tell"
                )
            held[event.position_id] = event.liquidity_after
    if end is not None and held.get(end.position_id, 0) != end.liquidity:
        raise NodeBehind(f"the node lacks events of position {end.position_id}, whose liquidity is not what they tell")


_NO_HURRY = 2**40


@dataclass(frozen=True, slots=True)
class BurnResult:
    """What the pool would pay, and what of it would reach the owner."""

    paid0: int
    paid1: int
    received0: int
    received1: int
    blind_to_coin: bool
    """True: the pool holds native coin and the simulation names no move of any."""


class BurnSimulator:
    """Simulated burns, where the node offers eth_simulateV1."""

    def __init__(self, node: RpcNode, deployment: Deployment) -> None:
        self._node = node
        self._at = deployment
        self._refusal = ""

    async def simulate(self, token: int, owner: Address, key: PoolKey, at: Block) -> BurnResult | str:
        """The burn on top of a block, or why it could not be simulated."""
        if self._refusal:
            return self._refusal
        steps = [calldata.burn_position(token, 0, 0), calldata.take_pair(key.currency0, key.currency1, owner)]
        data = calldata.modify_liquidities(steps, _NO_HURRY)
        try:
            logs = await self._node.simulate(owner, self._at.position_manager, data, at)
        except NoSuchMethod:
            self._refusal = "the node does not offer eth_simulateV1"
            return self._refusal
        except (Unavailable, Malformed) as fault:
            return str(fault)
        paid0, paid1 = (
            -received_by_pools(logs, side, self._at.pool_manager) for side in (key.currency0, key.currency1)
        )
        received0, received1 = (
            -amount_given(logs, ETHER if side == NATIVE else side, owner) for side in (key.currency0, key.currency1)
        )
        blind = key.currency0 == NATIVE and not any(log.address == ETHER for log in logs)
        return BurnResult(paid0, paid1, received0, received1, blind)
