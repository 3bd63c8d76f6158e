"""How long recall takes beside the one product it cannot do without, and how fast memories are taken in:
`python benchmarks/memory.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The default index holds fifty thousand setups of
fifteen phrases each, embedded offline; recall is what a cycle asks for: embed the setup, look up its words, multiply,
decay, rank. The yardstick multiplies the same vectors with one of them and does nothing else. A cycle with memory is of
a home with two hundred closed trades, three of which it recalls.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.figure import report, report_pairs, settle_disk
from tests.wire.post_mortems import START as CLOSED_FROM
from tests.wire.post_mortems import post_mortem
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.adapters.venues.synthetic.path import END
from zuno.journal.port import Author
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.settings import read_settings
from zuno.trading.agents.learned import read_memories
from zuno.trading.learn.memory_book import MemoryBook, update_index
from zuno.trading.measure.similarity import unpack_vector
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS
from zuno.trading.model.memory import POST_MORTEM, Channel, MemoryRecord, PostMortem, RecallQuery
from zuno.trading.run.record import load_bundle
from zuno.wiring import Application

MEMORIES = 50_000
REPEATS = 25
SEED = 11
CYCLES = 40
WARM_UPS = 3
CLOSED_TRADES = 200
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
            symbol=Symbol("BTCUSDT"),
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


async def measure_cycles(home: Path) -> list[tuple[float, float]]:
    """Milliseconds of cycles that recall and of those that do not, the mean of two each: both take turns at the same
    moments, and are first in one of two, as the first reads what is new."""
    house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
    await house.data().synth(SEED)
    remembering, forgetful = house.cycles(), house.cycles()
    forgetful._with = replace(forgetful._with, recall=None)
    moments = [str(END - turn * HOUR_MS // 4) for turn in range(CYCLES + WARM_UPS - 1, -1, -1)]
    first = await remembering.run("BTCUSDT", as_of=moments[0], chart=False)
    recalled = read_memories(await load_bundle(await house._open_journal(), first.bundle))
    assert recalled is not None
    written = [build_memory(number, recalled.setup, first.origin, first.as_of) for number in range(CLOSED_TRADES)]
    journal = await house._open_journal()
    for told in written:
        await journal.append_once(kind=POST_MORTEM, author=Author("post_mortem"), payload=told, request_id=told.id)
    await update_index(MemoryBook(house._open_journal), house._memory_index())
    settle_disk()
    times: dict[bool, list[float]] = {True: [], False: []}
    for turn, moment in enumerate(moments):
        for with_memory in (True, False) if turn % 2 else (False, True):
            start = perf_counter()
            outcome = await (remembering if with_memory else forgetful).run("BTCUSDT", as_of=moment, chart=False)
            times[with_memory].append(perf_counter() - start)
            found = read_memories(await load_bundle(journal, outcome.bundle))
            if with_memory != (found is not None and len(found.memories) == 3):
                raise ValueError("meant to time a cycle that recalls three trades, and one that recalls none")
    await house.close()
    ours, theirs = (
        [500 * (first + second) for first, second in zip(taken[WARM_UPS::2], taken[WARM_UPS + 1 :: 2], strict=True)]
        for taken in (times[True], times[False])
    )
    return list(zip(ours, theirs, strict=True))


def build_memory(number: int, setup: str, origin: str, before: int) -> PostMortem:
    """Alike the setup of now in all but a few of its phrases."""
    chance = random.Random(number)
    phrases = setup.split("; ")
    for place in chance.sample(range(len(phrases)), number % 8):
        phrases[place] = f"{chance.choice(SUBJECTS)} {chance.choice(STATES)}"
    day = -1 - number / 2
    return post_mortem(number, "; ".join(phrases), origin=origin, day=(before - CLOSED_FROM) / DAY_MS + day)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "home").mkdir()
        # Before the index of fifty thousand: what that leaves in memory and on the disk is no part of a cycle.
        pairs = asyncio.run(measure_cycles(Path(folder) / "home"))
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
        report_pairs("cycle with memory", pairs, "the same cycle without recall", 1.15, memories=CLOSED_TRADES),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
