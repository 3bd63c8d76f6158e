"""What a round of the monitor costs for a thousand and for ten thousand wallets with positions in twenty pools:
`python -m benchmarks.wallets`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The chain is generated
(`tests/wire/many_wallets.py`) and its node is a process of its own, so that time and memory are the monitor's. The
yardstick of ten thousand wallets is a thousand, per wallet and in the same run.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from benchmarks.figure import report
from tests.wire.fakes.clock import FixedClock
from tests.wire.many_wallets import INFO, GeneratedChain, serve_chain, wallet_address
from zuno.adapters.chain.rpc import RpcChain, RpcPolicy
from zuno.adapters.file_lock import monitor_lock
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.store.samples import SqliteSamples
from zuno.journal.journal import ChainedJournal
from zuno.kernel.units import Millis, Seconds
from zuno.lp.watch.monitor import Monitor, Watch

FEW, MANY, HELD, ROUNDS = 1_000, 10_000, 2, 3
FLAT = 1.3
MOST_REQUESTS = 0.05


@dataclass(frozen=True)
class Cost:
    """Of the first round, and of a later one."""

    first_requests: int
    requests: int
    first_seconds: float
    seconds: float
    """Of processor time."""
    wall: float
    kilobytes: float
    """Beyond what the imports took, at the highest."""


def serve_process(wallets: int, held: int, told: Connection) -> None:
    with serve_chain(GeneratedChain(wallets, held)) as url:
        told.send(url)
        told.recv()


def measure_process(wallets: int, held: int, url: str, told: Connection) -> None:
    with tempfile.TemporaryDirectory() as home:
        told.send(asyncio.run(measure(wallets, held, url, Path(home))))


async def measure(wallets: int, held: int, url: str, home: Path) -> Cost:
    chain = RpcChain(INFO, [url], home / "chains", None, RpcPolicy(timeout=120))
    samples = SqliteSamples(home)
    journal = ChainedJournal(
        MemoryStore(), KeyFile(home / "node.key"), code=lambda: "bench", now=lambda: Millis(0), secrets=()
    )

    async def opened() -> ChainedJournal:
        return journal

    watches = [Watch(INFO.name, wallet_address(number), local=True) for number in range(wallets)]
    monitor = Monitor(
        watches=lambda: watches,
        chain_of=lambda name: chain,
        store=AlertsFile(home),
        samples=samples,
        lock=monitor_lock(home),
        journal=opened,
        outbox=None,
        drain=None,
        clock=FixedClock(Seconds(1_800_000_000)),
        period=60.0,
        tell=lambda line: None,
        patience=3_600,
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    requests, seconds, wall = list[int](), list[float](), list[float]()
    for _ in range(ROUNDS + 1):
        asked, cpu, began = chain.requests, process_time(), perf_counter()
        tick = await monitor.tick()
        requests.append(chain.requests - asked)
        seconds.append(process_time() - cpu)
        wall.append(perf_counter() - began)
        look = tick.chains[0]
        if look.positions != wallets * held or look.failure or look.notes or not look.out_of_range:
            raise ValueError(f"meant to look at {wallets * held} positions: {look}")
        advance(url)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    await chain.close()
    await samples.close()
    return Cost(requests[0], max(requests[1:]), seconds[0], median(seconds[1:]), median(wall[1:]), peak)


def advance(url: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "zuno_advance", "params": []}).encode()
    urllib.request.urlopen(urllib.request.Request(url, body), timeout=60).read()


def play(wallets: int, held: int = HELD) -> Cost:
    spawn = multiprocessing.get_context("spawn")
    node_side, ours = spawn.Pipe()
    node = spawn.Process(target=serve_process, args=(wallets, held, node_side))
    node.start()
    monitor_side, answers = spawn.Pipe()
    reader = spawn.Process(target=measure_process, args=(wallets, held, ours.recv(), monitor_side))
    reader.start()
    monitor_side.close()
    try:
        cost: Cost = answers.recv()
    finally:
        ours.send(None)
        reader.join()
        node.join()
    return cost


def main() -> int:
    if len(sys.argv) > 2:  # wallets and positions of each, to look at other sizes
        sys.stderr.write(f"{play(int(sys.argv[1]), int(sys.argv[2]))}\n")
        return 0
    few, many = play(FEW), play(MANY)
    per = f"a wallet, of {FEW:,}; {HELD} positions each in 20 pools"
    good = report(
        "wallets.requests",
        many.requests / MANY,
        "HTTP requests a wallet",
        1,
        "one request a wallet",
        MOST_REQUESTS,
        first=many.first_requests,
        later=many.requests,
        wallets=MANY,
    )
    good &= report(
        "wallets.time",
        1e3 * many.seconds / MANY,
        "ms of processor a wallet",
        1e3 * few.seconds / FEW,
        per,
        FLAT,
        round_s=round(many.seconds, 2),
        first_s=round(many.first_seconds, 2),
        wall_s=round(many.wall, 2),
    )
    return not good & report(
        "wallets.memory",
        many.kilobytes / MANY,
        "kB a wallet",
        few.kilobytes / FEW,
        per,
        FLAT,
        peak_mb=many.kilobytes // 1e3,
    )


if __name__ == "__main__":
    sys.exit(main())
