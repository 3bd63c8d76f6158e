"""Which positions a position came from: a rebalance closes one token and mints another, at once or shortly after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.errors import NodeBehind
from zuno.adapters.chain.rpc.node import Log, Receipt
from zuno.adapters.chain.rpc.positions import PositionNft
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import BlockReplay, unpack_info
from zuno.adapters.chain.rpc.scan import Query
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed, NotFound
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.history import JournaledPlans

NOBODY: Address = NATIVE
"""The zero address again: tokens come from it when minted and go to it when burnt."""
PREPARATION: Final = Seconds(900)
"""How long before a deposit a swap of the wallet, or the closing of a position, counts as made for it."""
_STARTS: Final = "its record starts there"


@dataclass(frozen=True, slots=True)
class PositionLife:
    """A position in the window: its NFT while it had one, and the transfers of it."""

    token: int
    nft: PositionNft
    transfers: tuple[Log, ...]
    until: tuple[int, int] | None = None
    """Block and index of the transaction that closed it for its successor; later events belong to another record."""

    def knows(self, moment: Log) -> bool:
        return self.until is None or (moment.block_number, moment.tx_index) <= self.until

    @property
    def mint(self) -> Log | None:
        return next((log for log in self.transfers if sender_of(log) == NOBODY), None)

    @property
    def burn(self) -> Log | None:
        return next((log for log in self.transfers if receiver_of(log) == NOBODY), None)

    def owner_at(self, position: tuple[int, int]) -> Address:
        """Who held it when an event happened; PositionManager burns the token before it empties the position."""
        owner = self.nft.owner
        for transfer in reversed(self.transfers):
            if transfer.position <= position and receiver_of(transfer) != NOBODY:
                return receiver_of(transfer)
            if sender_of(transfer) != NOBODY:
                owner = sender_of(transfer)
        return owner


class LineageReader:
    def __init__(self, readers: Readers, replay: BlockReplay) -> None:
        self._read = readers
        self._node, self._positions, self._times = readers.node, readers.positions, readers.times
        self._chain_name = readers.info.name
        self._manager = readers.info.deployment.position_manager
        self._replay = replay

    async def read(
        self, token: int, first: int, head: Block, plans: JournaledPlans
    ) -> tuple[list[PositionLife], list[str]]:
        """The position and those it was rebalanced from since block `first`, newest first, and what to know of it."""
        lives, notes = [await self._read_life(token, first, head)], [plans.note] if plans.note else []
        while (mint := lives[-1].mint) is not None:
            if mint.tx in plans.mints:
                closing = await self._read_closing(plans, mint, first)
            else:
                closing = await self._find_closing(lives[-1], mint, first, head)
            notes += closing.notes
            if closing.token is None:
                break
            life = await self._read_life(closing.token, first, head)
            lives.append(replace(life, until=closing.until))
        for life in lives:
            notes += [
                f"position {life.token} changed hands in block {log.block_number}; what moved with it is no payment"
                for log in life.transfers
                if NOBODY not in (sender_of(log), receiver_of(log))
            ]
        return lives, notes

    async def _read_life(self, token: int, first: int, head: Block) -> PositionLife:
        """Its Transfer events back to its mint or to the window's first block, and its NFT when it last had one."""
        query = Query(self._manager, (abi.TRANSFER, None, None, abi.id_word(token)))
        transfers = list[Log]()
        async for span in self._read.scanner.back(query, first, head.number):
            transfers = [*span.logs, *transfers]
            if transfers and sender_of(transfers[0]) == NOBODY:
                break
        return PositionLife(token, await self._read_nft(token, transfers, head), tuple(transfers))

    async def _read_nft(self, token: int, transfers: Sequence[Log], head: Block) -> PositionNft:
        if not transfers or receiver_of(transfers[-1]) != NOBODY:
            nft = (await self._positions.read([token], head)).nfts.get(token)
            if nft is None:
                raise NotFound(f"position {token} on {self._chain_name} was burnt before the window opens")
            if transfers and receiver_of(transfers[-1]) != nft.owner:
                raise NodeBehind(f"position {token} has another owner than its events tell")
            return nft
        burn = transfers[-1]
        before = await self._times.block(burn.block_number - 1, head)
        nft = (await self._positions.read_anew([token], before)).nfts.get(token)
        return nft if nft is not None else await self._nft_from_events(token, burn, head)

    async def _nft_from_events(self, token: int, burn: Log, head: Block) -> PositionNft:
        """A position that lived within one block left no state behind, only events."""
        logs = (await self._node.receipt(burn.tx)).logs
        mine = next((change for change in self._replay.changes(logs) if change.token == token), None)
        key = None if mine is None else await self._read.keys.find(mine.pool_id, head)
        if mine is None or key is None:
            raise Malformed(f"position {token} was minted and burnt in one block without a liquidity event")
        return PositionNft(key, mine.pool_id, mine.range, sender_of(burn), subscribed=False)

    # -- what was closed for a mint

    async def shortly_before(self, moment: Log, head: Block) -> int:
        """The first block whose transactions can have been made for what happened at a moment."""
        at = await self._times.block(moment.block_number, head)
        before = await self._times.last_by(Seconds(at.timestamp - PREPARATION), head)
        return 0 if before is None else before.number + 1

    async def _read_closing(self, plans: JournaledPlans, mint: Log, first: int) -> _Closing:
        """The position that a plan closed for its mint, if that was in the window."""
        closed = plans.mints[mint.tx]
        if closed is None or (receipt := await self._node.receipt(closed[1])).block_number < first:
            return _Closing()
        return _Closing(closed[0], (receipt.block_number, receipt.tx_index))

    async def _find_closing(self, life: PositionLife, mint: Log, first: int, head: Block) -> _Closing:
        """The position that the wallet closed in the transaction of this mint, or else shortly before it."""
        owner = receiver_of(mint)
        receipt = await self._node.receipt(mint.tx)
        emptied = await self._find_emptied(receipt, life, owner, head)
        if len(emptied) > 1:
            return _Closing(notes=[f"{len(emptied)} positions were closed when {life.token} was minted: {_STARTS}"])
        closing = _Closing(emptied[0], (receipt.block_number, receipt.tx_index)) if emptied else None
        if closing is None:
            low = max(first, await self.shortly_before(mint, head))
            closing = await self._find_closed_before(life, receipt, owner, low, head)
        siblings = self._find_minted(receipt, life, owner)
        if closing.token is not None and len(siblings) > 1:
            note = (
                f"position {closing.token} was closed for {len(siblings)} new ones, {life.token} among them: {_STARTS}"
            )
            return _Closing(notes=[note])
        return closing

    async def _find_closed_before(
        self, life: PositionLife, mint: Receipt, owner: Address, first: int, head: Block
    ) -> _Closing:
        """A rebalance in two transactions: closed, then swapped and minted, with no other deposit in between."""
        closed = list[tuple[int, Receipt]]()
        for receipt in await self._read_sent_before(life, mint, owner, first, head):
            changes = [change for change in self._replay.changes(receipt.logs) if change.pool_id == life.nft.pool_id]
            if any(change.delta > 0 for change in changes):
                closed = []  # what was closed before has found its successor
            else:
                closed += [(token, receipt) for token in await self._find_emptied(receipt, life, owner, head)]
        if len(closed) != 1:
            note = f"{len(closed)} positions were closed shortly before {life.token} was minted: {_STARTS}"
            return _Closing(notes=[note] if closed else [])
        ((token, receipt),) = closed
        blocks = await self._times.blocks([receipt.block_number, mint.block_number], head)
        waited = blocks[mint.block_number].timestamp - blocks[receipt.block_number].timestamp
        note = f"position {token} was closed {waited} s before {life.token} was minted and counts as its predecessor"
        return _Closing(token, (receipt.block_number, receipt.tx_index), [note])

    async def _read_sent_before(
        self, life: PositionLife, mint: Receipt, owner: Address, first: int, head: Block
    ) -> list[Receipt]:
        """The owner's transactions between block `first` and the mint that changed positions of the pool, in order."""
        edges = await self._times.blocks([max(0, first - 1), mint.block_number], head)
        sent = await self._node.transaction_count(owner, edges[mint.block_number])
        sent -= await self._node.transaction_count(owner, edges[max(0, first - 1)]) + (mint.sender == owner)
        if sent <= 0:
            return []  # the common case, and the reason to ask: strangers' changes may be many
        topics = (abi.MODIFY_LIQUIDITY, life.nft.pool_id, abi.address_word(self._manager))
        query = Query(self._read.info.deployment.pool_manager, topics)
        logs = await self._read.scanner.all(query, first, mint.block_number)
        moment = (mint.block_number, mint.tx_index)
        txs = dict.fromkeys(log.tx for log in logs if (log.block_number, log.tx_index) < moment)
        return [receipt for tx in txs if (receipt := await self._node.receipt(tx)).sender == owner]

    def _find_minted(self, receipt: Receipt, life: PositionLife, owner: Address) -> list[int]:
        grown = {change.token for change in self._replay.changes(receipt.logs) if change.pool_id == life.nft.pool_id}
        return [
            token
            for log in self._nft_transfers(receipt)
            if sender_of(log) == NOBODY and receiver_of(log) == owner and (token := int(log.topics[3], 16)) in grown
        ]

    def _nft_transfers(self, receipt: Receipt) -> list[Log]:
        return [log for log in receipt.logs if log.address == self._manager and log.topics[:1] == (abi.TRANSFER,)]

    async def _find_emptied(self, receipt: Receipt, life: PositionLife, owner: Address, head: Block) -> list[int]:
        shrunk = {
            change.token: change
            for change in self._replay.changes(receipt.logs)
            if change.pool_id == life.nft.pool_id and change.delta < 0 and change.token != life.token
        }
        burnt = {
            int(log.topics[3], 16): sender_of(log) for log in self._nft_transfers(receipt) if receiver_of(log) == NOBODY
        }
        emptied = [token for token in shrunk if burnt.get(token) == owner]
        kept = [change for token, change in shrunk.items() if token not in burnt]
        if kept:
            at = await self._times.block(receipt.block_number, head)
            slots = (slot for change in kept for slot in self._replay.place(change).position)
            words = await self._read.storage.words(slots, at)
            nfts = (await self._positions.read_anew([change.token for change in kept], at)).nfts
            emptied += [
                change.token
                for change in kept
                if unpack_info(self._replay.place(change), words).liquidity == 0
                and (nft := nfts.get(change.token)) is not None
                and nft.owner == owner
            ]
        return emptied


@dataclass(frozen=True, slots=True)
class _Closing:
    """Which position a mint succeeded, if any, and when that one's record ends."""

    token: int | None = None
    until: tuple[int, int] | None = None
    notes: list[str] = field(default_factory=list)


def sender_of(transfer: Log) -> Address:
    return abi.topic_address(transfer.topics[1])


def receiver_of(transfer: Log) -> Address:
    return abi.topic_address(transfer.topics[2])
