"""Which positions a position came from: a rebalance closes one token and mints another in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zuno.adapters.chain.rpc import wire
from zuno.adapters.chain.rpc.deeds import Deed
from zuno.adapters.chain.rpc.node import Log
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import Replay, info_at
from zuno.adapters.chain.rpc.scan import Query
from zuno.domain.errors import Malformed, Unknown
from zuno.domain.pool import Block
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address

NOBODY: Address = NATIVE
"""The zero address again: tokens come from it when minted and go to it when burnt."""


@dataclass(frozen=True, slots=True)
class Life:
    """A position in the window: its deed while it had one, and its comings and goings."""

    token: int
    deed: Deed
    transfers: tuple[Log, ...]

    @property
    def mint(self) -> Log | None:
        return next((log for log in self.transfers if sender_of(log) == NOBODY), None)

    @property
    def burn(self) -> Log | None:
        return next((log for log in self.transfers if receiver_of(log) == NOBODY), None)

    def owner_at(self, moment: Log) -> Address:
        """Who held it when an event happened; PositionManager burns the token before it empties the position."""
        owner = self.deed.owner
        for transfer in reversed(self.transfers):
            if transfer.position <= moment.position and receiver_of(transfer) != NOBODY:
                return receiver_of(transfer)
            if sender_of(transfer) != NOBODY:
                owner = sender_of(transfer)
        return owner


class Lineages:
    """Finds a position's life and its ancestors' lives within a window."""

    def __init__(self, readers: Readers, replay: Replay) -> None:
        self._read = readers
        self._node, self._deeds, self._times = readers.node, readers.deeds, readers.times
        self._chain_name = readers.info.name
        self._manager = readers.info.deployment.position_manager
        self._replay = replay

    async def of(self, token: int, first: int, head: Block) -> tuple[list[Life], list[str]]:
        """The position and those it was rebalanced from since block `first`, newest first, and what to know of it."""
        lives, notes = [await self._life(token, first, head)], list[str]()
        while (mint := lives[-1].mint) is not None:
            emptied = await self._emptied_for(lives[-1], mint, head)
            if len(emptied) > 1:
                notes.append(f"{len(emptied)} positions were closed when {lives[-1].token} was minted: it starts there")
            if len(emptied) != 1:
                break
            lives.append(await self._life(emptied[0], first, head))
        for life in lives:
            notes += [
                f"position {life.token} changed hands in block {log.block_number}; what moved with it is no payment"
                for log in life.transfers
                if NOBODY not in (sender_of(log), receiver_of(log))
            ]
        return lives, notes

    async def _life(self, token: int, first: int, head: Block) -> Life:
        """Its Transfer events back to its mint or to the window's first block, and its deed when it last had one."""
        query = Query(self._manager, (wire.TRANSFER, None, None, wire.id_word(token)))
        transfers = list[Log]()
        async for stretch in self._read.scanner.back(query, first, head.number):
            transfers = [*stretch.logs, *transfers]
            if transfers and sender_of(transfers[0]) == NOBODY:
                break
        return Life(token, await self._deed(token, transfers, head), tuple(transfers))

    async def _deed(self, token: int, transfers: Sequence[Log], head: Block) -> Deed:
        if not transfers or receiver_of(transfers[-1]) != NOBODY:
            deed = (await self._deeds.read([token], head)).deeds.get(token)
            if deed is None:
                raise Unknown(f"position {token} on {self._chain_name} was burnt before the window opens")
            return deed
        burn = transfers[-1]
        before = await self._times.block(burn.block_number - 1, head)
        deed = (await self._deeds.read_anew([token], before)).deeds.get(token)
        return deed if deed is not None else await self._deed_from_events(token, burn, head)

    async def _deed_from_events(self, token: int, burn: Log, head: Block) -> Deed:
        """A position that lived within one block left no state behind, only events."""
        logs = (await self._node.receipt(burn.tx)).logs
        mine = next((change for change in self._replay.changes(logs) if change.token == token), None)
        key = None if mine is None else await self._read.keys.find(mine.pool_id, head)
        if mine is None or key is None:
            raise Malformed(f"position {token} was minted and burnt in one block without a liquidity event")
        return Deed(key, mine.pool_id, mine.range, sender_of(burn), subscribed=False)

    async def _emptied_for(self, life: Life, mint: Log, head: Block) -> list[int]:
        """Positions of the same pool and owner that the transaction of this mint burnt or emptied."""
        receipt = await self._node.receipt(mint.tx)
        owner = receiver_of(mint)
        shrunk = {
            change.token: change
            for change in self._replay.changes(receipt.logs)
            if change.pool_id == life.deed.pool_id and change.delta < 0 and change.token != life.token
        }
        burnt = {
            int(log.topics[3], 16): sender_of(log)
            for log in receipt.logs
            if log.address == self._manager and log.topics[0] == wire.TRANSFER and receiver_of(log) == NOBODY
        }
        emptied = [token for token in shrunk if burnt.get(token) == owner]
        kept = [change for token, change in shrunk.items() if token not in burnt]
        if kept:
            at = await self._times.block(mint.block_number, head)
            slots = (slot for change in kept for slot in self._replay.place(change).position)
            words = await self._read.storage.words(slots, at)
            deeds = (await self._deeds.read_anew([change.token for change in kept], at)).deeds
            emptied += [
                change.token
                for change in kept
                if info_at(self._replay.place(change), words).liquidity == 0
                and (deed := deeds.get(change.token)) is not None
                and deed.owner == owner
            ]
        return emptied


def sender_of(transfer: Log) -> Address:
    return wire.address_in(transfer.topics[1])


def receiver_of(transfer: Log) -> Address:
    return wire.address_in(transfer.topics[2])
