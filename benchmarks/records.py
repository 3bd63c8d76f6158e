"""What a long record costs: `python -m benchmarks.records`.

Prints one JSON line per figure and ends with 1 when a bar is missed. `journal verify` in its three ways beside SHA-256
of the same bodies and ed25519 of the same signatures; the page's account routes and lists after 20,000 events beside
the same after 200; `zuno trade status` in a new process, by the CPU it takes.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from benchmarks.figure import report, report_pairs
from benchmarks.web import serve
from tests.unit.trading.long_account import list_entries
from tests.wire.post_mortems import post_mortem
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.venues.synthetic.path import END
from zuno.journal.journal import ChainedJournal, VerifyMode
from zuno.journal.port import Author, Row
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.settings import read_settings
from zuno.trading.model.cycle import EDITION, STARTED
from zuno.trading.model.market import HOUR_MS, Mode
from zuno.trading.model.memory import POST_MORTEM
from zuno.trading.model.trade_events import TradeEvent
from zuno.trading.run.record import RunRequest
from zuno.wiring import Application

ENTRIES = 10_000
CHAIN_RATE, ALL_RATE = 20_000, 5_000
CHAIN_BAR, ALL_BAR = 30.0, 1.6
"""Times the yardstick."""
FEW, MANY = 200, 20_000
TRADE_EVERY = 6 * HOUR_MS
"""The same pace in both: the longer account is the older one."""
LOOKS, ROUTE_BAR, COLD_BAR = 15, 1.5, 1.5
EVENTS_OF_AN_ENTRY, EVENTS_OF_A_RUN = 10, 20
ROUTES = ("home", "trading/account", "trading/trades", "trading/ledger", "trading/runs", "trust/memories", "lp/plans")


async def compare_verify(folder: Path) -> bool:
    """In memory: what a disk costs is the same for all of them."""
    store, key = MemoryStore(), KeyFile(folder / "node.key")
    journal = ChainedJournal(store, key, code=lambda: "bench", now=lambda: Millis(1_700_000_000_000))
    payload = {"figures": [number / 7 for number in range(30)], "text": "long side, two thirds of the range" * 8}
    for number in range(ENTRIES):
        await journal.append(kind="said", author=Author("bench"), payload=payload, request_id=f"req_{number // 10}")
    rows = [row for row in store.kept.values() if isinstance(row, Row)]
    start = process_time()
    for row in rows:
        sha256(row.body).hexdigest()
    hashing = process_time() - start
    start = process_time()
    for row in rows:
        key.verify(key.public, b"zuno journal entry 1\n" + row.hash.encode(), bytes.fromhex(row.signature))
    signing = process_time() - start
    assert (await journal.verify(VerifyMode.ALL, seal=True)).sealed == ENTRIES
    passed = []
    for mode, yardstick, against, bar, rate in (
        (VerifyMode.CHAIN, hashing, "SHA-256 of the bodies", CHAIN_BAR, CHAIN_RATE),
        (VerifyMode.ALL, signing, "ed25519 of the signatures", ALL_BAR, ALL_RATE),
    ):
        start = process_time()
        assert (await journal.verify(mode)).ok
        spent = process_time() - start
        more = {"entries_per_second": round(ENTRIES / spent), "wanted": rate}
        passed.append(report(f"journal verify, {mode}", spent, "CPU s", yardstick, against, bar, **more))
    start = process_time()
    assert (await journal.verify(VerifyMode.QUICK)).first == ENTRIES
    passed.append(report("journal verify, quick", process_time() - start, "CPU s", hashing, "SHA-256 of all", 1.0))
    return all(passed)


async def fill_home(house: Application, count: int) -> None:
    """An account of so many events, a run and a post-mortem for every few of them."""
    log, journal = house._trade_log(), await house._open_journal()
    await house.account().status()  # the market is made
    account = house.account()._reader.account
    together, written = list[TradeEvent](), 0
    for events in list_entries(count, start=END - (count // 12 + 4) * TRADE_EVERY, step_ms=TRADE_EVERY):
        together += events
        if len(together) >= EVENTS_OF_AN_ENTRY:
            await log.append(account, together, written)
            written, together = written + len(together), []
    asked = RunRequest(symbol=Symbol("BTCUSDT"), mode=Mode.SWING, as_of=None, live=False, chart=False, edition=EDITION)
    for number in range(count // EVENTS_OF_A_RUN + 60):  # a page of fifty is full in both
        await journal.append(kind=STARTED, author=Author("desk"), payload=asked, request_id=f"run_{number:016x}")
        told = post_mortem(number, "range; above the average", origin="SYNTHETIC seed 7", day=number / 100)
        await journal.append(kind=POST_MORTEM, author=Author("post_mortem"), payload=told, request_id=told.id)


async def ask(host: str, port: int, token: str, path: str) -> float:
    """Milliseconds of one request."""
    start = perf_counter()
    reader, writer = await asyncio.open_connection(host, port)
    head = (f"GET /api/v1/{path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}", "Connection: close")
    writer.write(("\r\n".join((*head, "", ""))).encode())
    answer = await reader.read()
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        sys.exit(f"{path} answered {answer[:80]!r}")
    return (perf_counter() - start) * 1_000


async def compare_routes(homes: Sequence[Path]) -> bool:
    passed = []
    async with AsyncExitStack() as stack:
        places = []
        for home in homes:
            house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
            stack.push_async_callback(house.close)
            places.append(await stack.enter_async_context(serve(house)))
        few, many = places
        for route in ROUTES:
            first = await ask(*many, route)
            await ask(*few, route)
            pairs = [(await ask(*many, route), await ask(*few, route)) for _ in range(LOOKS)]
            against = f"the same after {FEW}"
            passed.append(report_pairs(f"/{route}, {MANY:,} events", pairs, against, ROUTE_BAR, first_ms=round(first)))
    return all(passed)


def run_cold(home: Path) -> float:
    """CPU seconds of `zuno trade status`."""
    before = os.times()
    environment = {**os.environ, "ZUNO_HOME": str(home), "ZUNO_DETERMINISTIC": "true"}
    command = [sys.executable, "-m", "zuno", "trade", "status", "--json"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


async def run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        passed = [await compare_verify(Path(folder))]
        homes = []
        for count in (FEW, MANY):
            home = Path(folder) / f"home_{count}"
            home.mkdir()
            house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
            await fill_home(house, count)
            await house.close()
            homes.append(home)
        cold = [(run_cold(homes[1]), run_cold(homes[0])) for _ in range(5)]
        value, yardstick = (median(times) for times in zip(*cold, strict=True))
        passed.append(report("zuno trade status, cold", value, "CPU s", yardstick, f"after {FEW} events", COLD_BAR))
        passed.append(await compare_routes(homes))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
