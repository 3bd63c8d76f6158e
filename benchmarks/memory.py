"""How long recall takes beside the one product it cannot do without, and how fast memories are taken in:
`python benchmarks/memory.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The default index holds fifty thousand setups of
fifteen phrases each, embedded offline; recall is what a cycle asks for: embed the setup, look up its words, multiply,
decay, rank. The yardstick multiplies the same vectors with one of them and does nothing else.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.figure import report
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.kernel.units import Millis
from zuno.trading.measure.similarity import unpack_vector
from zuno.trading.model.market import MINUTE_MS, Symbol
from zuno.trading.model.memory import Channel, MemoryRecord, RecallQuery

MEMORIES = 50_000
REPEATS = 25
INGEST_PER_SECOND = 500.0
START = 1_700_000_000_000
SUBJECTS = (
    "funding", "open interest", "volatility", "RSI 1h", "RSI 4h", "RSI 1d", "spread", "book depth", "taker flow",
    "basis", "put skew", "liquidations of longs", "liquidations of shorts", "whale flow", "dollar index",
    "price to VWAP 4h", "structure 4h", "structure 1d", "Bollinger bands", "fear and greed",
)  # fmt: skip
STATES = ("extremely high", "high", "rising", "neutral", "falling", "low", "extremely low")


def setup(chance: random.Random) -> str:
    return "; ".join(f"{subject} {chance.choice(STATES)}" for subject in chance.sample(SUBJECTS, 15))


def memories(chance: random.Random) -> list[MemoryRecord]:
    return [
        MemoryRecord(
            id=f"pm_{number:08d}",
            channel=Channel.SYSTEM_POST_MORTEM,
            origin="paper",
            symbol=Symbol.BTCUSDT,
            at=Millis(START + number * 15 * MINUTE_MS),
            text=setup(chance),
        )
        for number in range(MEMORIES)
    ]


async def measure(folder: Path) -> tuple[float, float, float]:
    """Milliseconds of a recall and of the bare product, the median of many; seconds a memory takes to be added."""
    chance = random.Random(7)
    index = SqliteMemoryIndex(folder / "index.db", HashedEmbedder())
    records = memories(chance)
    start = perf_counter()
    await index.add(records)
    added = (perf_counter() - start) / MEMORIES
    vectors = await HashedEmbedder().embed([record.text for record in records])
    matrix = np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(MEMORIES, -1).astype(np.float32)
    queries = [
        RecallQuery(text=setup(chance), origin="paper", before=Millis(START + MEMORIES * 15 * MINUTE_MS))
        for _ in range(REPEATS)
    ]
    for query in queries:  # its vectors are read and its words looked up once
        await index.recall(query)
    recalls, products = [], []
    for place, query in enumerate(queries):
        vector = unpack_vector(vectors[place])
        start = perf_counter()
        _ = matrix @ vector
        products.append(perf_counter() - start)
        start = perf_counter()
        await index.recall(query)
        recalls.append(perf_counter() - start)
    index.close()
    return 1e3 * median(recalls), 1e3 * median(products), added


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        recall, product, added = asyncio.run(measure(Path(folder)))
    passed = [
        report("recall over 50,000 memories", recall, "ms", product, "one product with the same vectors", 4.0),
        report(
            "taking a memory in",
            1e3 * added,
            "ms",
            1e3 / INGEST_PER_SECOND,
            "five hundred in a second",
            1.0,
            per_second=round(1 / added, 1),
        ),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
