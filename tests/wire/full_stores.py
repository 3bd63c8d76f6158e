"""Every store that writes, on a disk that is full: run in a mount namespace of its own, which has a small disk.

Prints one JSON object: for each store what it said when there was no room, and whether all was well before and after.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.wire.homes import fill_home, open_journal, put_bundle_forms, read_bundles
from tests.wire.watching import NOW
from zuno.adapters.atomic_file import replace_file
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.checkpoints import sqlite_checkpoints
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.keys.wallets import WalletFolder
from zuno.adapters.mesh.folder import MeshFiles
from zuno.adapters.model.daily_spend import DailySpendFile
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.adapters.store.samples import SqliteSamples
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.errors import ZunoError
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Millis, Seconds, Wei
from zuno.llm.port import Ceiling, Spend
from zuno.lp.model.alerts import AlertBook
from zuno.lp.ports.mesh import RunningMesh
from zuno.lp.ports.samples import GasSample
from zuno.lp.watch.rules import ChainReading, record_reading
from zuno.settings import Settings
from zuno.trading.model.market import HOUR_MS, Candle, Timeframe, candles
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring import Application
from zuno.wiring.home import verify_journals

DISK = "8m"
HOURS = candles("binance", "BTCUSDT", Timeframe.H1)
Write = Callable[[int], Awaitable[Any]]
Stores = dict[str, Write]
"""Each writes something of its own, the larger the number the more."""


def mount_and_report(place: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "zuno-test", place], check=True)
    told = try_home(Path(place)) | asyncio.run(try_stores(Path(place))) | try_commands(Path(place))
    sys.stdout.write(json.dumps(told))


async def try_stores(disk: Path) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, write in open_stores(disk).items():
        await write(1)
        filler = fill(disk)
        told[name] = await attempt(write)
        filler.unlink()
        await write(2)  # nothing of it is stuck
    return told


def try_commands(disk: Path) -> dict[str, Any]:
    told: dict[str, Any] = {}
    zuno = [sys.executable, "-m", "zuno", "--home", str(disk / "home"), "lp", "recommend", "rebalance", "1", "--json"]
    subprocess.run(zuno, check=True, capture_output=True)
    backup = [*zuno[:5], "backup", str(disk / "a.zip"), "--json"]
    subprocess.run(backup, check=True, capture_output=True)
    older = (disk / "a.zip").read_bytes()
    filler = fill(disk)
    full = subprocess.run(backup, check=False, capture_output=True, text=True)
    told["backup"] = [full.returncode, json.loads(full.stdout)["error"]["message"]]
    told["older backup"] = (disk / "a.zip").read_bytes() == older
    ran = subprocess.run(zuno, check=False, capture_output=True, text=True)
    told["command line"] = [ran.returncode, json.loads(ran.stdout)["error"]["message"]]
    filler.unlink()
    verified = subprocess.run([*zuno[:5], "journal", "verify"], check=False, capture_output=True)
    told["journal verify"] = verified.returncode
    return told


def try_home(disk: Path) -> dict[str, Any]:
    """What a home's own commands say with no room, with a little and with some more; the home is whole after each."""
    home, backup = fill_home(disk / "whole"), disk / "b.zip"
    bundles = put_bundle_forms(home)
    told: dict[str, Any] = {}

    def run(*words: str) -> Callable[[int], Coroutine[None, None, None]]:
        async def act(size: int) -> None:
            zuno = Application(Settings(home=disk / "new" if words[0] == "restore" else home))
            try:
                match words:
                    case "backup", file:
                        await zuno.home_desk().backup(file, None)
                    case "restore", file:
                        await zuno.home_desk().restore(file)
                    case "move", folder:
                        await zuno.home_desk().move(folder, None)
                    case _:
                        await zuno.compact_home(Seconds(86_400))
            finally:
                await zuno.close()

        return act

    asyncio.run(run("backup", str(backup))(0))
    older = backup.read_bytes()
    for words in (("backup", str(backup)), ("restore", str(backup)), ("move", str(disk / "new")), ("compact",)):
        said = []
        for room in (0, 16_384, 40_960):
            filler = fill(disk)
            os.truncate(filler, filler.stat().st_size - room)
            said.append(asyncio.run(attempt(run(*words)))[0])
            filler.unlink()
            assert (backup.read_bytes(), asyncio.run(verify_journals(home))) == (older, 11), words
            assert read_bundles(open_journal(home), bundles) == bundles, words
            left = [path.name for path in disk.iterdir() if path.name not in ("whole", "b.zip")]
            assert left == [], (words, left)
        told[f"home {words[0]}"] = said
    asyncio.run(run("compact")(0))
    assert read_bundles(open_journal(home), bundles) == bundles
    shutil.rmtree(home)
    backup.unlink()
    return told


def fill(disk: Path) -> Path:
    """To the last byte."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler


async def attempt(write: Write) -> list[str]:
    try:
        await write(50_000)
    except ZunoError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:
        return [type(error).__name__, f"bug: {error}"]
    return ["", "it was written"]


def open_stores(disk: Path) -> Stores:
    def alerted(size: int) -> Callable[[AlertBook], tuple[AlertBook, None]]:
        reading = ChainReading("base", failure="x" * size)
        return lambda book: (record_reading(book, reading, Seconds(NOW + size))[0], None)

    def folder(name: str) -> Path:
        place = disk / name
        place.mkdir(mode=0o700)
        return place

    key = KeyFile(folder("journal") / "node.key")
    key.ensure()
    journal = ChainedJournal(open_sqlite(disk / "journal"), key, code=lambda: "test", now=unix_millis)
    series = SqliteSeries(folder("series"), Origin(False, "recorded"))
    samples, alerts = SqliteSamples(folder("samples")), AlertsFile(folder("alerts"))
    outbox = SqliteOutbox(folder("outbox"))
    daily_spend, mesh = DailySpendFile(folder("daybook") / "spend.json"), MeshFiles(folder("mesh"))
    world = SimFile(folder("sim"))
    keys, wallets, checkpoints = folder("keys"), folder("wallets"), folder("checkpoints") / "cycles.db"
    counter = iter(range(1_000))

    async def append(size: int) -> None:
        await journal.append(kind="test", author=Author("cli"), payload={"text": "x" * size})

    async def bundle(size: int) -> None:
        await journal.put_bundle(os.urandom(size))

    async def bars(size: int) -> None:
        rows = [Candle(Millis(HOUR_MS * hour), 5.0, 6.0, 4.0, 5.0, size, None) for hour in range(size // 10 + 1)]
        await series.write([Batch(HOURS, rows)])

    async def sample(size: int) -> None:
        gas = [GasSample("base", Seconds(NOW + second), Wei(size)) for second in range(size // 10 + 1)]
        await samples.keep([], gas, Seconds(NOW))

    async def alert(size: int) -> None:
        await alerts.change(alerted(size))

    async def push(size: int) -> None:
        notice = Notice(NoticeKind.SUMMARY, "Day", Severity.INFO, NoticeLabel.PAPER, Seconds(NOW), picture=bytes(size))
        await outbox.append(notice, str(next(counter)))

    async def spend(size: int) -> None:
        await daily_spend.book(size, Spend(size, Decimal(1)), Ceiling())

    async def running(size: int) -> None:
        mesh.keep_running_mesh(RunningMesh(transport="x" * size, restarts={}))

    async def sim(size: int) -> None:
        world.save(world.load())

    async def new_key(size: int) -> None:
        KeyFile(keys / str(next(counter)) / "node.key").ensure()

    async def wallet(size: int) -> None:
        WalletFolder(wallets, Passphrases(None, lambda *ignored: SecretStr("a passphrase")), rounds=2).create()

    async def checkpoint(size: int) -> None:
        async with sqlite_checkpoints(checkpoints) as saver:
            place = {"thread_id": str(next(counter)), "checkpoint_ns": "", "checkpoint_id": "1"}
            await saver.aput_writes({"configurable": place}, [("said", os.urandom(size))], "task")

    async def plain(size: int) -> None:
        replace_file(disk / "plain", os.urandom(size))

    return {
        "journal entry": append,
        "journal bundle": bundle,
        "series": bars,
        "samples": sample,
        "alerts": alert,
        "outbox": push,
        "day book": spend,
        "mesh folder": running,
        "sim world": sim,
        "node key": new_key,
        "wallet": wallet,
        "checkpoints": checkpoint,
        "any file": plain,
    }


if __name__ == "__main__":
    mount_and_report(sys.argv[1])
