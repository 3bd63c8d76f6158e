"""How much a look of the monitor asks of a node, on a wallet of a thousand positions: `python benchmarks/monitor.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. A look is everything: finding out what the wallet
holds, reading it at one block, the gas price, the samples, the alerts written to disk. The first look at a wallet
searches the chain's events for its positions; it counts like the others.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, time

from benchmarks.chain import MOST_REQUESTS, PATIENT, POSITIONS, World, build
from benchmarks.figure import report
from tests.wire.fakes.clock import FixedClock
from zuno.adapters.chain.rpc import RpcChain
from zuno.adapters.file_lock import monitor_lock
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.store.samples import SqliteSamples
from zuno.journal.journal import ChainedJournal
from zuno.kernel.units import Millis, Seconds
from zuno.lp.watch.monitor import Monitor, Watch
from zuno_devnet.node import DevnetNode as Devnet
from zuno_devnet.server import serve

LOOKS = 5
PERIOD = 60.0


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


async def measure(world: World, url: str, home: Path) -> bool:
    chain = RpcChain(world.info, [url], home / "chains", world.wallet, PATIENT)
    clock, store, samples = FixedClock(Seconds(int(time()))), AlertsFile(home), SqliteSamples(home)
    journal = ChainedJournal(
        MemoryStore(), KeyFile(home / "node.key"), code=lambda: "bench", now=lambda: Millis(0), secrets=()
    )

    async def opened() -> ChainedJournal:
        return journal

    monitor = Monitor(
        watches=lambda: [Watch(world.info.name, world.wallet, local=True)],
        chain_of=lambda name: chain,
        store=store,
        samples=samples,
        lock=monitor_lock(home),
        journal=opened,
        outbox=None,
        drain=None,
        clock=clock,
        period=PERIOD,
        tell=_tell,
    )
    requests, seconds = list[int](), list[float]()
    for _ in range(LOOKS + 1):
        before, began = chain.requests, perf_counter()
        tick = await monitor.tick()
        seconds.append(perf_counter() - began)
        requests.append(chain.requests - before)
        if tick.chains[0].positions != POSITIONS or tick.chains[0].failure or tick.chains[0].notes:
            raise ValueError(f"meant to look at {POSITIONS} positions: {tick.chains[0]}")
        world.chain.apply_block([], world.chain.head.timestamp + 12)
        clock.advance(Seconds(int(PERIOD)))
    await chain.close()
    await samples.close()
    one_by_one = "one request per read, 5 a position"
    good = report(
        "monitor.look.requests",
        max(requests),
        "HTTP requests",
        5 * POSITIONS,
        one_by_one,
        MOST_REQUESTS / (5 * POSITIONS),
        first=requests[0],
        later=max(requests[1:]),
        positions=POSITIONS,
    )
    return good & report(
        "monitor.look.time",
        median(seconds[1:]),
        "s",
        PERIOD,
        f"the period; the median of {LOOKS} looks",
        1 / 10,
        first=round(seconds[0], 3),
    )


def main() -> int:
    world = build()
    with serve(Devnet(world.chain)) as url, tempfile.TemporaryDirectory() as home:
        return 0 if asyncio.run(measure(world, url, Path(home))) else 1


if __name__ == "__main__":
    sys.exit(main())
