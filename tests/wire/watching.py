"""Positions and chains for the monitor's tests: a tick and a range are all that matters; chains fail on demand."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.kernel.errors import Unavailable, ZunoError
from zuno.kernel.text import Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.model.chains import ETH, ChainInfo, chain_named
from zuno.lp.model.market import GasQuote
from zuno.lp.ports.chain import Holdings, Missing, OwnedPositions, Snapshot

WALLET = Address("0x" + "ab" * 20)
OTHER = Address("0x" + "cd" * 20)
NOW = Seconds(1_800_000_000)
USDC = Token(Address("0x" + "11" * 20), "USDC", 6, verified=True)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file takes another's place meanwhile."""

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", full)
        yield


def block_at(at: int = NOW, number: int = 100) -> Block:
    return Block(number, HexId(f"0x{number:064x}"), Seconds(at))


def position(
    tick: int = 500,
    lower: int = 0,
    upper: int = 1_000,
    *,
    id: int = 1,
    chain: str = "base",
    liquidity: int = 10**12,
    subscribed: bool = False,
    owner: Address = WALLET,
    at: Block | None = None,
    growth: int = 0,
) -> LpPosition:
    pool = PoolState(
        HexId("0x" + "77" * 32),
        PoolKey(ETH.address, USDC.address, Pips(500), 10),
        ETH,
        USDC,
        SqrtPriceX96(1 << 96),
        Tick(tick),
        0,
        Pips(500),
        Liquidity(10**15),
        growth,
        growth,
        at or block_at(),
    )
    return LpPosition(
        id,
        chain,
        owner,
        pool,
        Range(Tick(lower), Tick(upper)),
        Liquidity(liquidity),
        Amount(0),
        Amount(0),
        Amount(0),
        Amount(0),
        subscribed,
    )


def info_of(name: str) -> ChainInfo:
    info = chain_named(name)
    assert info is not None
    return info


@dataclass
class WatchedChain:
    """What the monitor reads of a chain, and nothing else: any other question is a mistake and fails."""

    name: str = "base"
    held: list[LpPosition] = field(default_factory=list)
    missing: tuple[Missing, ...] = ()
    complete: bool = True
    note: str = ""
    block: Block = field(default_factory=block_at)
    fault: Exception | None = None
    gas_fault: ZunoError | None = None
    own: Address | None = WALLET
    reads: int = 0
    hold: Any = None
    """An event to wait for before answering."""

    @property
    def info(self) -> ChainInfo:
        return info_of(self.name)

    async def wallet(self) -> Address | None:
        return self.own

    async def holdings(self, owner: Address) -> Holdings:
        self.reads += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.fault is not None:
            raise self.fault
        mine = [
            replace(one, chain=self.name, pool=replace(one.pool, block=self.block))
            for one in self.held
            if one.owner == owner
        ]
        ids = tuple(one.id for one in mine) + tuple(one.id for one in self.missing)
        owned = OwnedPositions(self.block, owner, ids, len(ids), self.complete, self.note)
        return Holdings(owned, Snapshot(self.block, tuple(mine), self.missing))

    async def holdings_of(self, owners: Sequence[Address]) -> tuple[Holdings, ...]:
        return tuple([await self.holdings(owner) for owner in owners])

    async def gas(self) -> GasQuote:
        if self.gas_fault is not None:
            raise self.gas_fault
        return GasQuote(Wei(7), Wei(2))

    async def close(self) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the monitor has no business with {name}")


async def until(happened: Callable[[], object]) -> None:
    """Wait for something that another task does."""
    async with asyncio.timeout(20):
        while not happened():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def chains_of(chains: Sequence[WatchedChain]) -> Any:
    by_name = {chain.name: chain for chain in chains}

    def opened(name: str) -> Any:
        if name not in by_name:
            raise Unavailable(f"No RPC URL for {name}.")
        return by_name[name]

    return opened
