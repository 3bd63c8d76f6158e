"""Move a home to another folder, or its journal to another database: copy, verify every signature, then switch by one
mark, `home.mark`, that every start reads. Killed at any moment, one of the two opens and the other says where."""

import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from zuno.adapters.atomic_file import flush_to_disk, translate_write_errors
from zuno.adapters.home_files import (
    POSTGRES,
    FileKind,
    copy_files,
    find_running,
    list_home,
    read_mark,
    set_mark,
    stage_home,
)
from zuno.adapters.kill_lock import KillLockFile
from zuno.adapters.store.sqlite import SqliteTables, open_archive
from zuno.adapters.store.table_store import PAGE, HeadFile, JournalLock, Tables, TableStore, read_last, read_stored
from zuno.journal.blocks import build_recipe
from zuno.journal.port import Row
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Broken, Refused, UsageError

VerifyFolder = Callable[[Path], Awaitable[int]]
"""How many entries the journal in a folder has; `Broken` unless every one holds."""


@contextmanager
def _stop_writers(home: Path, heads: HeadFile) -> Iterator[JournalLock]:
    """Nobody may be at work here; whoever begins meanwhile waits for the journal."""
    if running := find_running(home):
        raise Refused(f"Something runs in {home} ({', '.join(running)}): stop it first, then move. Nothing was moved.")
    with heads.alone() as held:
        yield held


async def move_home(home: Path, target: Path, verify: VerifyFolder, heads: HeadFile) -> tuple[int, int]:
    """Copy everything, keys included, to a folder that is not there yet or empty: bytes and entries. The old one stays,
    refuses to be opened and says where the home is. `heads`: of the journal that the home uses."""
    mark = read_mark(home)
    if target == home or home in target.parents:
        raise UsageError("A home is moved to another folder, outside of itself.")
    with translate_write_errors(target):
        with _stop_writers(home, heads):
            with stage_home(target) as staged:
                size = _copy_all(home, staged, target)
                set_mark(staged, {**mark, "from": str(home)})  # refuses to be opened until the old one is marked
                entries = await verify(staged)
            KillLockFile(home).copy_to(target)  # a kill waits for no copy
            set_mark(home, {"to": str(target)})
            heads.mark_broken(f"moved to {target}", "")  # for processes that have it open
        set_mark(target, mark)
    return size, entries


def _copy_all(home: Path, folder: Path, target: Path) -> int:
    size = 0
    names = [
        file.name
        for file in list_home(home)
        if (file.saved or file.kind is not FileKind.LOCK) and not file.name.endswith((".partial", "-wal", "-shm"))
    ]
    for name in copy_files(home, folder, names, held=True):
        copy = folder / name
        if copy.name == "axl.json":  # holds the path of a key
            copy.write_bytes(copy.read_bytes().replace(str(home).encode(), str(target).encode()))
        copy.chmod(0o600)
        flush_to_disk(copy)
        size += copy.stat().st_size
    return size


def copy_rows(source: Tables, target: Tables, upto: int | None = None) -> int:
    """Every row and bundle, byte for byte, to tables that hold none or the first of them; the number of the newest."""
    last = read_last(target)
    seq = 0 if last is None else last.seq
    while page := source.page(seq, upto, None, None, PAGE, False):
        rows = [row for row in page if isinstance(row, Row)]
        if len(rows) < len(page):
            raise Broken("An entry cannot be copied; run `zuno journal verify`.")
        target.insert(*rows)
        seq = page[-1].seq
    after, known = None, dict[int, bytes]()
    while names := source.bundle_names(after, PAGE):
        with target.transaction():
            target.store({name: _copy_bundle(name, source, target, known) for name in names})
        after = names[-1]
    return seq


def _copy_bundle(name: str, source: Tables, target: Tables, known: dict[int, bytes]) -> bytes:
    """What stands for a bundle in the target; an archive file stays where it is, so its name is enough."""
    stored = source.find_stored(name) or b""
    content = read_stored(source, name, stored, known)
    if isinstance(content, str):
        return stored
    if content is None or digest(content) != name:
        raise Broken(f"The bundle {name[:12]}… cannot be copied; run `zuno journal verify`.")
    return build_recipe(content, target.put_blocks)


async def move_to_postgres(home: Path, target: Tables, verify: Callable[[TableStore], Awaitable[int]]) -> int:
    """The journal from SQLite to Postgres, which may hold the beginning of the same chain: of a move that was cut off,
    or of an earlier one."""
    heads = HeadFile(home, "journal")
    with _stop_writers(home, heads) as held, tempfile.TemporaryDirectory(dir=home, prefix=".moving-") as scratch:
        head, note = heads.head(), held.read_note()
        if head is None:
            raise Refused("This home has no journal yet: set ZUNO_DATABASE_URL, and it begins in Postgres.")
        with closing(SqliteTables(home / "journal.db")) as source:
            copy_rows(source, target)
        copied = _put_head(Path(scratch), "journal-postgres", head, note)
        entries = await verify(TableStore(target, copied, open_archive(home)))
        _put_head(home, "journal-postgres", head, note).mark_broken(None, target.name)
        set_mark(home, {**read_mark(home), "to": POSTGRES})
        heads.mark_broken("moved to Postgres", "")  # for processes that have it open
    for end in ("db", "db-wal", "db-shm", "head", "broken"):
        with suppress(FileNotFoundError):
            os.replace(home / f"journal.{end}", home / f"journal.moved.{end}")
    return entries


def export_journal(source: Tables, heads: HeadFile, folder: Path) -> None:
    """A journal in Postgres as a SQLite one in a folder: its rows, its bundles and its head, as of one moment."""
    with heads.alone() as held:
        head, note, last = heads.head(), held.read_note(), read_last(source)
    if head is None:
        raise Refused("This home has no journal in Postgres yet.")
    with closing(SqliteTables(folder / "journal.db")) as target:
        copy_rows(source, target, 0 if last is None else last.seq)
    _put_head(folder, "journal", head, note)


def _put_head(folder: Path, name: str, head: bytes, note: bytes | None) -> HeadFile:
    """`note`: of an unfinished write, which the next start finishes."""
    (folder / f"{name}.lock").write_bytes(note or b"")
    heads = HeadFile(folder, name)
    heads.create(head)
    return heads
