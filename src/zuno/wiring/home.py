"""Wire the home's own desk: usage, backup, restore and move."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters import home_backup, home_move
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.home_files import check_moved, list_home, read_mark, set_mark
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.kill_lock import FILE as KILL_LOCK
from zuno.adapters.kill_lock import KillLockFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.store.table_store import HeadFile
from zuno.doors.home import BackupView, HomeMoveView, HomeUnlockView, HomeUsageView, PlaceView, RestoreView
from zuno.journal.journal import ChainedJournal, VerifyMode
from zuno.kernel.errors import Broken, Refused, UsageError
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.trading.model.cycle import STARTED
from zuno.trading.model.trade_events import MandateRevoked
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.account.trade_log import JournalTradeLog
    from zuno.adapters.store.postgres import PostgresTables
    from zuno.journal.port import Journal, JournalStore

_DAY_MS = 86_400_000
TO_DO = (
    "The old machine may still run: stop it before anything is started here. Two desks with the same keys trade twice.",
    "LOCKED: both desks take no new risk until `zuno home unlock`; exits, stops and kill work. What was revoked, killed"
    " or paused after the backup is not known here: mandates of before do not count, and logins and tokens are gone.",
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
        self,
        settings: Settings,
        key: KeyFile,
        kill_lock: KillLockFile,
        journal: Callable[[], Journal],
        log: Callable[[], JournalTradeLog],
    ) -> None:
        self._home = settings.home.absolute()
        self._url = None if settings.database_url is None else settings.database_url.get_secret_value()
        self._key = key
        self._kill_lock = kill_lock
        self._journal = journal
        self._log = log

    async def usage(self) -> HomeUsageView:
        places: dict[tuple[str, str], tuple[int, int, bool]] = {}
        for file in await asyncio.to_thread(list_home, self._home):
            parts = file.name.removesuffix("-wal").removesuffix("-shm").split("/")
            place = "/".join(parts[: 2 if parts[0] in ("market", "mesh") else 1]), file.kind.value
            files, size, saved = places.get(place, (0, 0, False))
            places[place] = files + 1, size + file.size, saved or file.saved
        rows = [
            PlaceView(name=name, kind=kind, files=files, bytes=size, in_backup=saved)
            for (name, kind), (files, size, saved) in places.items()
        ]
        journal = self._journal()
        newest, oldest = await journal.latest(1), await anext(journal.entries(), None)
        return HomeUsageView(
            home=str(self._home),
            free_bytes=shutil.disk_usage(self._home).free,
            places=tuple(sorted(rows, key=lambda row: row.bytes, reverse=True)),
            entries=newest[0].seq if newest else 0,
            journal_bytes=None if self._url else sum(row.bytes for row in rows if row.name == "journal.db"),
            days=0.0 if oldest is None else (newest[0].at - oldest.at) / _DAY_MS,
            cycles=len([None async for _ in journal.entries(kind=STARTED)]),
        )

    async def backup(self, file: str, keep: int | None) -> BackupView:
        check_moved(self._home, in_postgres=self._url is not None)
        made = await asyncio.to_thread(
            home_backup.write_backup,
            self._home,
            Path(file, home_backup.NAME) if file.endswith("/") else Path(file),  # a folder, there or not
            keep,
            self._key,
            code_version(),
            unix_millis(),
            None if self._url is None else self._export,
        )
        return BackupView(
            file=str(made.path),
            bytes=made.size,
            files=len(made.manifest.files),
            node=made.manifest.node,
            seq=made.manifest.seq,
            left_out=made.left_out,
            removed=tuple(map(str, made.removed)),
        )

    def _export(self, folder: Path) -> list[str]:
        with self._open_postgres(self._url or "") as source:
            home_move.export_journal(source, HeadFile(self._home, "journal-postgres"), folder)
        if (kills := self._kill_lock.read_content()) is not None:
            (folder / KILL_LOCK).write_bytes(kills)
        return [path.name for path in folder.iterdir()]

    async def restore(self, file: str) -> RestoreView:
        if self._url is not None:
            raise Refused("A restored journal is a file of the home: unset ZUNO_DATABASE_URL first.")
        with home_backup.unpack_backup(Path(file), self._home) as (folder, manifest):
            entries = await verify_journals(folder)
            if KeyFile(folder / "keys" / "node.key").public != manifest.node or entries < manifest.seq:
                raise Broken(f"{file} does not hold the journal that its manifest names; nothing was written.")
            set_mark(folder, {"restored": entries})
            keys = [path.with_suffix(".key") for path in folder.rglob("*.pub")]
            missing = [str(path.relative_to(folder)) for path in keys if not path.exists()]
            KillLockFile(folder).lock_restored()
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

    async def unlock(self, confirm: Callable[[str, str], bool]) -> HomeUnlockView:
        if "restored" not in read_mark(self._home):
            raise Refused("This home was never restored from a backup; `zuno trade unlock` lifts other locks.")
        if not confirm("unlock", "The old machine is stopped; both desks may take new risk here, with real money too."):
            raise Refused("The word was not typed; nothing was changed.")
        log, revoked = self._log(), list[str]()
        for account in await log.accounts():
            book = await log.history(account)
            if book.granted is not None and book.mandate is None:  # it may have been revoked
                at = Millis(max(book.newest, unix_millis()))
                await log.append(account, [MandateRevoked(at=at, hash=book.granted.hash)], book.count)
                revoked.append(account)
        self._kill_lock.unlock_restored()
        return HomeUnlockView(revoked=tuple(revoked))

    async def move(self, folder: str | None, to: str | None) -> HomeMoveView:
        check_moved(self._home, in_postgres=self._url is not None)
        in_file = self._url is None
        if folder is not None and to is None:
            heads = HeadFile(self._home, "journal" if in_file else "journal-postgres")
            target = Path(folder).expanduser().absolute()  # noqa: ASYNC240 (words alone)
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
        entries = await verify_journals(folder)
        if self._url is None:
            return entries
        from zuno.adapters.store.postgres import open_postgres

        return await verify_store(open_postgres(self._url, folder, self._key), self._key)

    def _open_postgres(self, url: str) -> closing[PostgresTables]:
        from zuno.adapters.store.lease import Fences
        from zuno.adapters.store.postgres import PostgresTables

        return closing(PostgresTables(url, self._key, Fences()))


async def verify_journals(folder: Path) -> int:
    """The entries of the journal in a home, each verified; those of its peers are verified too."""
    for peer in (path.parent for path in (folder / "mesh").glob("*/journal.db")):
        await verify_store(open_sqlite(peer), KeyFile(peer / "peer.key"))
    return await verify_store(open_sqlite(folder), KeyFile(folder / "keys" / "node.key"))


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
