"""Writers that are killed with -9 at any moment: the chain holds, and at most the entry being written is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from zuno.journal.journal import RECOVERED, ChainedJournal
from zuno.kernel.units import Millis

WRITERS = 3

WRITER = """
import asyncio, sys
from pathlib import Path
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author

async def main(home, name):
    key = KeyFile(home / "keys" / "node.key")
    journal = ChainedJournal(open_sqlite(home), key, code=lambda: "test", now=unix_millis)
    number = 0
    while True:
        number += 1
        bundle = await journal.put_bundle(f"context {name} {number // 5}".encode())
        entry = await journal.append(
            kind="said", author=Author("critic"), payload={"n": number}, request_id=name, bundle=bundle
        )
        print(entry.seq, entry.hash, flush=True)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def opened(home: Path) -> ChainedJournal:
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.store.sqlite import open_sqlite

    return ChainedJournal(
        open_sqlite(home), KeyFile(home / "keys" / "node.key"), code=lambda: "test", now=lambda: Millis(1)
    )


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.soak)])
async def test_killed_writers_lose_at_most_the_entry_they_were_writing(home: Path, rounds: int) -> None:
    os.mkdir(home)
    chance = random.Random(os.environ.get("ZUNO_TEST_SEED", "the journal"))
    promised: dict[int, str] = {}
    killed = 0
    for turn in range(rounds):
        for seq, name in _write_and_kill(home, turn, chance):
            assert promised.setdefault(seq, name) == name, f"entry {seq} was promised twice"
        killed += WRITERS
        journal = opened(home)
        verdict = await journal.verify()
        assert verdict.ok, verdict.fault
        assert len(verdict.notes) <= 1  # the last one who died while writing; the others were found by those who lived
        assert await journal.start() == verdict.notes
        assert (await journal.verify()).notes == ()
        await journal.close()

    journal = opened(home)
    kept = [entry async for entry in journal.entries()]
    await journal.close()
    assert promised
    assert {seq: kept[seq - 1].hash for seq in promised} == promised  # nothing that was promised is gone
    unpromised = [entry for entry in kept if entry.kind == "said" and entry.seq not in promised]
    recovered = [entry for entry in kept if entry.kind == RECOVERED]
    lost = [one for entry in recovered if isinstance(one := entry.payload["lost"], dict)]
    deaths = Counter([*(entry.request_id for entry in unpromised), *(str(one["requestId"]) for one in lost)])
    assert set(deaths.values()) <= {1}  # written without a promise, or lost: at most one for each death
    assert len(recovered) <= killed
    per_writer: dict[str, list[int]] = {}
    for entry in kept:
        if entry.request_id is not None:
            per_writer.setdefault(entry.request_id, []).append(int(str(entry.payload["n"])))
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in per_writer.values())


def _write_and_kill(home: Path, turn: int, chance: random.Random) -> list[tuple[int, str]]:
    """Several writers at once, each killed at a moment of its own; what they had promised by then."""
    names = [f"w{turn}_{one}" for one in range(WRITERS)]
    promises = [home.parent / f"{name}.promised" for name in names]
    writers = []
    for name, promise in zip(names, promises, strict=True):
        with open(promise, "w") as out:
            writers.append(subprocess.Popen([sys.executable, "-c", WRITER, str(home), name], stdout=out))
    try:
        deadline = time.monotonic() + 60
        while not all(promise.stat().st_size for promise in promises):  # until all of them are writing
            assert time.monotonic() < deadline
            time.sleep(0.005)
        for writer in writers:
            time.sleep(chance.uniform(0.0, 0.12))
            os.kill(writer.pid, signal.SIGKILL)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    lines = [line for promise in promises for line in promise.read_text().splitlines(keepends=True)]
    pairs = [line.split() for line in lines if line.endswith("\n")]  # a last line may be cut
    return [(int(seq), name) for seq, name in pairs]
