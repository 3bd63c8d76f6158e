"""A home with a little of everything a backup takes and leaves, without a desk in it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.keys.wallets import WalletFolder
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, JournalStore
from zuno.kernel.canonical import Digest
from zuno.kernel.units import Millis

NOW = 1_790_000_000_000


def chained(store: JournalStore, key: KeyFile) -> ChainedJournal:
    return ChainedJournal(store, key, code=lambda: "test", now=lambda: Millis(NOW))


def open_journal(home: Path) -> ChainedJournal:
    return chained(open_sqlite(home), KeyFile(home / "keys" / "node.key"))


async def append(journal: ChainedJournal, count: int) -> None:
    for number in range(count):
        bundle = await journal.put_bundle(b'{"block":%d}' % number)
        await journal.append(kind="said", author=Author("critic"), payload={"n": number}, bundle=bundle)


def write(journal: ChainedJournal, count: int) -> None:
    """Append and close."""

    async def act() -> None:
        await append(journal, count)
        await journal.close()

    asyncio.run(act())


def fill_home(home: Path, entries: int = 8) -> Path:
    peer = home / "mesh" / "critic"
    peer.mkdir(parents=True)
    home.chmod(0o700)
    write(open_journal(home), entries)
    write(chained(open_sqlite(peer), KeyFile(peer / "peer.key")), 2)
    (home / "kill.lock").write_text("live 2026-11-18T00:00:00Z terminal\n")
    (home / "spend.json").write_text("{}")
    (home / "passphrase").write_text("correct horse")
    (home / "logs").mkdir()
    (home / "logs" / "zuno.log").write_text("words\n")
    for place in ("market/own", "market/synthetic"):
        (home / place / "history").mkdir(parents=True)
        (home / place / "history" / "a.parquet").write_bytes(b"PAR1")
        with sqlite3.connect(home / place / "series.db") as connection:
            connection.execute("CREATE TABLE rows (at INTEGER)")
        connection.close()
    with sqlite3.connect(home / "telegram.db") as connection:
        connection.execute("CREATE TABLE updates (id INTEGER)")
        connection.execute("INSERT INTO updates VALUES (7)")
    connection.close()
    wallets = WalletFolder(home / "wallets", Passphrases(None, lambda prompt: SecretStr("long enough")), rounds=2)
    wallets.create()
    (home / "wallets" / f"0x{'cd' * 20}.json").write_text('{"key": "00"}')
    return home


ARCHIVE_FILE = "bundles-2026-01.db"


def put_bundle_forms(home: Path) -> dict[str, bytes]:
    """Bundles as they may be stored: in blocks, as their own bytes (by an older Zuno), in an archive file."""
    rows = [[1_767_225_600_000 + 60_000 * number, number, "x" * 20] for number in range(300)]
    contents = {
        form: json.dumps({"form": form, "rows": rows}, separators=(",", ":")).encode()
        for form in ("blocks", "plain", "archived")
    }

    async def act() -> dict[str, str]:
        store = open_sqlite(home)
        journal = chained(store, KeyFile(home / "keys" / "node.key"))
        names = {form: await journal.put_bundle(content) for form, content in contents.items()}
        for name in names.values():
            await journal.append(kind="said", author=Author("critic"), payload={}, bundle=name)
        assert await store.archive_bundles(ARCHIVE_FILE, [names["archived"]]) == 1
        await journal.close()
        return dict(names)

    names = asyncio.run(act())
    with sqlite3.connect(home / "journal.db") as connection:
        connection.execute("UPDATE bundles SET content = ? WHERE hash = ?", (contents["plain"], names["plain"]))
    connection.close()
    return {name: contents[form] for form, name in names.items()}


def leave_unfinished(journal: ChainedJournal) -> None:
    """A write that was killed after its note and before its row: the next one says what was lost."""

    async def act() -> None:
        tables: Any = journal._store._tables  # type: ignore[attr-defined]
        tables.insert = None
        with suppress(TypeError):
            await append(journal, 1)
        await journal.close()

    asyncio.run(act())


def read_bundles(journal: ChainedJournal, names: Iterable[str]) -> dict[str, bytes | None]:
    async def act() -> dict[str, bytes | None]:
        try:
            return {name: await journal.bundle(Digest(name)) for name in names}
        finally:
            await journal.close()

    return asyncio.run(act())


def read_files(home: Path) -> dict[str, bytes]:
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def _die_after(steps: int) -> Callable[[], None]:
    left = [steps]

    def tick() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return tick


def _tick_before(tick: Callable[[], None], plain: Callable[..., Any]) -> Callable[..., Any]:
    def act(*given: Any, **named: Any) -> Any:
        tick()
        return plain(*given, **named)

    return act


def die_at_each_step(
    act: Callable[[], object], before: Callable[[], None], after: Callable[[bool], None], stride: int = 1
) -> int:
    """Run `act` in forks of this process, each killed a step further on: at every open, rename, flush, folder and link.
    `before` and `after` run around each, the latter with whether it came to its end. How many steps there were."""
    step = 0
    while True:
        before()
        pid = os.fork()
        if pid == 0:
            tick = _die_after(step)
            for name in ("open", "fsync", "replace", "rename", "mkdir", "unlink", "ftruncate", "pwrite", "rmdir"):
                setattr(os, name, _tick_before(tick, getattr(os, name)))
            try:
                act()
            except BaseException:
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        ended = not os.WIFSIGNALED(status)
        assert not ended or os.WEXITSTATUS(status) == 0
        after(ended)
        if ended:
            return step
        step += stride
        assert step < 2_000
