"""How much `zuno lp portfolio` asks of a node, on a wallet of a hundred positions: `python benchmarks/portfolio.py`.

Prints one JSON line and ends with 1 when the bar is missed. Everything counts: finding out what the wallet holds, its
positions at one block, and a week of fees, prices and time in range.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.chain import MOST_REQUESTS, PATIENT, World, build
from benchmarks.figure import report
from zuno.adapters.chain.rpc import RpcChain
from zuno.adapters.store.samples import SqliteSamples
from zuno.kernel.units import HexId
from zuno.lp.ports.market import Feeds
from zuno.lp.service.portfolio import PortfolioDesk, PortfolioView
from zuno.lp.service.positions import LpDesk
from zuno.lp.watch.monitor import Watch
from zuno_devnet.node import DevnetNode as Devnet
from zuno_devnet.server import serve

POSITIONS = 100
HOURS = 8 * 24
MORE_BATCHES = 6
"""A week's hours are four batches and not a day's one: three more to find their blocks, three to read them."""


def build_week(positions: int = POSITIONS) -> World:
    """The positions, and a week of blocks an hour apart."""
    world = build(positions)
    for _ in range(HOURS):
        world.chain.apply_block([], world.chain.head.timestamp + 3_600)
    return world


def _no_feeds(pool_id: HexId) -> Feeds:
    raise ValueError("a pool that is quoted in USDC needs no other price")


async def read_portfolio(world: World, url: str, home: Path) -> tuple[PortfolioView, int]:
    """The portfolio as it is asked for the first time, and how many HTTP requests it took."""
    chain = RpcChain(world.info, [url], home / "chains", world.wallet, PATIENT)
    samples = SqliteSamples(home)
    desk = PortfolioDesk(
        watches=lambda: [Watch(world.info.name, world.wallet)],
        desk_of=lambda name: LpDesk(chain, _no_feeds, samples=samples),
        labels={},
    )
    try:
        return await desk.portfolio(), chain.requests
    finally:
        await chain.close()
        await samples.close()


def main() -> int:
    world = build_week()
    with serve(Devnet(world.chain)) as url, tempfile.TemporaryDirectory() as home:
        view, requests = asyncio.run(read_portfolio(world, url, Path(home)))
    if len(view.positions) != POSITIONS or view.totals.unknown or view.totals.unpriced:
        raise ValueError(f"meant to value {POSITIONS} positions: {view.totals}")
    good = report(
        "portfolio.requests",
        requests,
        "HTTP requests",
        5 * POSITIONS,
        "one request per read, 5 a position",
        (MOST_REQUESTS + MORE_BATCHES) / (5 * POSITIONS),
        positions=POSITIONS,
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
