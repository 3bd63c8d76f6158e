"""How few requests a ranking of pools takes, and how little its memory grows with them: `python -m
benchmarks.pool_ranking`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The chain is a generated one of 200 pools with a
month of swaps, or of 50; each ranking is a process of its own, so that nothing of the node is counted. The yardstick of
requests is one per day of a pool.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

from benchmarks.figure import report
from tests.wire.many_pools import PoolChain, plain_pools, rank_pools
from tests.wire.many_wallets import serve_chain
from zuno.lp.rules.pool_rank import WINDOW_DAYS
from zuno.lp.service.pool_ranking import CHUNK

POOLS = 200
MOST_REQUESTS = 15
"""Of a chunk."""
MOST_GROWTH = 1.4
"""From 50 to 200 pools: their list comes in one answer; what is read of each is let go with its chunk."""


def rank(url: str, home: str) -> None:
    """What one ranking took, on stdout."""
    tracemalloc.start()
    view, requests = asyncio.run(rank_pools(url, Path(home)))
    peak = tracemalloc.get_traced_memory()[1]
    sys.stdout.write(json.dumps({"ranked": view.ranked, "requests": requests, "peak": peak}))


def measure(pools: int) -> dict[str, int]:
    with serve_chain(PoolChain(plain_pools(pools))) as url, tempfile.TemporaryDirectory() as home:
        words = [sys.executable, "-m", "benchmarks.pool_ranking", url, home]
        figures: dict[str, int] = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    if figures["ranked"] != pools:
        raise ValueError(f"meant to rank {pools} pools, ranked {figures['ranked']}")
    return figures


def main() -> int:
    few, many = measure(CHUNK), measure(POOLS)
    chunks = POOLS // CHUNK
    asked = WINDOW_DAYS * CHUNK
    against = f"one request per day of a pool, {WINDOW_DAYS} days of {CHUNK} pools"
    good = report(
        "pools.rank.requests", many["requests"] / chunks, "requests a chunk", asked, against, MOST_REQUESTS / asked
    )
    good &= report(
        "pools.rank.memory", many["peak"] / 2**20, "MB at most", few["peak"] / 2**20, f"{CHUNK} pools", MOST_GROWTH
    )
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rank(*sys.argv[1:])
    else:
        sys.exit(main())
