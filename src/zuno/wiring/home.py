"""Wire the home's own desk: usage, backup, restore and move."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters import home_backup, home_move
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.home_files import FileKind, HomeFile, check_moved, list_home, mark_restored
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.kill_lock import KillLockFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.store.table_store import HeadFile
from zuno.doors.home import BackupView, HomeMoveView, HomeUsageView, PlaceView, RestoreView
from zuno.journal.journal import ChainedJournal, VerifyMode
from zuno.kernel.errors import Broken, Refused, UsageError
from zuno.settings import Settings
from zuno.trading.model.cycle import STARTED
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.store.postgres import PostgresTables
    from zuno.journal.port import Journal, JournalStore

_DAY_MS = 86_400_000
TO_DO = (
    "Private keys are in no backup: put the missing ones back from your copy (chmod 600). Until keys/node.key is there"
    " the journal is read and verified, and nothing is written.",
    "Wallets open with their passphrase; keys of exchanges and models come from the environment, as before.",
    "`zuno trade start` compares the account with its exchange before anything is opened: what happened there after the"
    " backup is found then. LP plans of the backup are approved anew.",
    "An invented market is made again: `zuno data synth --seed N`, where another seed than the first was used.",
)


class HomeKeeper:
    """The `HomeDesk` of a home."""

    def __init__(
        self, settings: Settings, key: KeyFile, kill_lock: KillLockFile, journal: Callable[[], Journal]
    ) -> None:
        """`journal`: to read."""
        self._home = settings.home.absolute()
        self._url = None if settings.database_url is None else settings.database_url.get_secret_value()
        self._key = key
        self._kill_lock = kill_lock
        self._journal = journal

    async def usage(self) -> HomeUsageView:
        files = await asyncio.to_thread(list_home, self._home)
        places: dict[tuple[str, str], list[HomeFile]] = {}
        for file in files:
            parts = file.name.removesuffix("-wal").removesuffix("-shm").split("/")
            place = "/".join(parts[: 2 if parts[0] in ("market", "mesh") else 1])
            places.setdefault((place, file.kind.value), []).append(file)
        rows = [
            PlaceView(
                name=name,
                kind=kind,
                files=len(held),
                bytes=sum(file.size for file in held),
                in_backup=any(file.saved for file in held),
            )
            for (name, kind), held in places.items()
        ]
        kinds = {kind.value: sum(file.size for file in files if file.kind is kind) for kind in FileKind}
        journal, first, cycles = self._journal(), 0, 0
        newest = await journal.latest(1)
        async for entry in journal.entries():
            first = entry.at
            break
        async for _ in journal.entries(kind=STARTED):
            cycles += 1
        days = (newest[0].at - first) / _DAY_MS if newest else 0.0
        size = None if self._url else sum(file.size for file in files if file.name.startswith("journal.db"))
        return HomeUsageView(
            home=str(self._home),
            bytes=sum(kinds.values()),
            free_bytes=shutil.disk_usage(self._home).free,
            kinds={kind: held for kind, held in kinds.items() if held},
            places=tuple(sorted(rows, key=lambda row: row.bytes, reverse=True)),
            entries=newest[0].seq if newest else 0,
            journal_bytes=size,
            days=days,
            cycles=cycles,
            journal_bytes_per_day=size / days if size is not None and days >= 1 else None,
            journal_bytes_per_cycle=size / cycles if size is not None and cycles else None,
        )

    async def backup(self, file: str, keep: int | None) -> BackupView:
        check_moved(self._home, in_postgres=self._url is not None)
        made = await asyncio.to_thread(
            home_backup.write_backup,
            self._home,
            Path(file),
            keep,
            self._key,
            code_version(),
            unix_millis(),
            None if self._url is None else self._export_journal,
            None if self._url is None else self._kill_lock.read_content(),
        )
        return BackupView(
            file=str(made.path),
            bytes=made.size,
            files=len(made.manifest.files),
            node=made.manifest.node,
            seq=made.manifest.seq,
            hash=made.manifest.hash,
            left_out=made.left_out,
            removed=tuple(map(str, made.removed)),
        )

    def _export_journal(self, folder: Path) -> bytes | None:
        heads = HeadFile(self._home, "journal-postgres")
        with self._open_postgres(self._url or "") as source:
            with heads.alone():
                head, last = heads.head(), source.last()
            home_move.export_journal(source, head, 0 if last is None else last.seq, folder)
        return head

    async def restore(self, file: str) -> RestoreView:
        if self._url is not None:
            raise Refused("A restored journal is a file of the home: unset ZUNO_DATABASE_URL first.")
        with home_backup.unpack_backup(Path(file), self._home) as (folder, manifest):
            entries = await verify_journals(folder)
            if KeyFile(folder / "keys" / "node.key").public != manifest.node or entries < manifest.seq:
                raise Broken(f"{file} does not hold the journal that its manifest names; nothing was written.")
            mark_restored(folder, entries)
            keys = [path.with_suffix(".key") for path in folder.rglob("*.pub")]
            missing = [str(path.relative_to(folder)) for path in keys if not path.exists()]
            killed = sorted(account for account, _ in KillLockFile(folder).list_kills())
        return RestoreView(
            home=str(self._home),
            node=manifest.node,
            files=len(manifest.files),
            bytes=sum(saved.size for saved in manifest.files),
            made_at=manifest.made_at // 1_000,
            zuno=manifest.zuno,
            entries=entries,
            killed=tuple(killed),
            missing=tuple(missing),
            todo=TO_DO,
        )

    async def move(self, folder: str | None, to: str | None) -> HomeMoveView:
        check_moved(self._home, in_postgres=self._url is not None)
        in_file = self._url is None
        if folder is not None and to is None:
            target = home_move.find_target(self._home, folder)
            heads = HeadFile(self._home, "journal" if in_file else "journal-postgres")
            size, entries = await home_move.move_home(self._home, target, self._verify_copy, heads)
            todo = f"Set ZUNO_HOME to {target}. The old folder refuses to start and still holds the keys: delete it."
            return HomeMoveView(moved_to=str(target), entries=entries, bytes=size, todo=todo)
        if folder is None and to is not None and in_file and to.startswith(("postgres://", "postgresql://")):
            with self._open_postgres(to) as tables:
                entries = await home_move.move_to_postgres(self._home, tables, partial(verify_store, key=self._key))
            todo = "Set ZUNO_DATABASE_URL to that URL: without it this home refuses to start."
            return HomeMoveView(moved_to="Postgres", entries=entries, bytes=None, todo=todo)
        raise UsageError("Name a folder, or --to postgres://USER@HOST/NAME where the journal is a file of the home.")

    async def _verify_copy(self, folder: Path) -> int:
        """Of a home: its journal, wherever that is, and those of its peers."""
        entries = await verify_journals(folder, self._key)
        if self._url is None:
            return entries
        from zuno.adapters.store.postgres import open_postgres

        return await verify_store(open_postgres(self._url, folder, self._key), self._key)

    @contextmanager
    def _open_postgres(self, url: str) -> Iterator[PostgresTables]:
        from zuno.adapters.store.lease import Fences
        from zuno.adapters.store.postgres import PostgresTables

        tables = PostgresTables(url, self._key, Fences())
        try:
            yield tables
        finally:
            tables.close()


async def verify_journals(folder: Path, key: KeyFile | None = None) -> int:
    """The entries of the journal in a home, each verified; those of its peers are verified too. `key`: of the home
    (default: the one in it)."""
    entries = 0
    for place in (folder, *(path.parent for path in sorted((folder / "mesh").glob("*/journal.db")))):
        own = KeyFile(place / ("keys/node.key" if place == folder else "peer.key"))
        count = await verify_store(open_sqlite(place), key if key is not None and place == folder else own)
        entries = count if place == folder else entries
    return entries


async def verify_store(store: JournalStore, key: KeyFile) -> int:
    journal = ChainedJournal(store, key, code=code_version, now=unix_millis)
    try:
        verdict = await journal.verify(VerifyMode.ALL)
    finally:
        await journal.close()
    if verdict.fault is not None:
        where = "" if verdict.fault.seq is None else f" at entry {verdict.fault.seq}"
        raise Broken(f"The copy of the journal is broken{where}: {verdict.fault.reason}; nothing was changed.")
    return verdict.entries
