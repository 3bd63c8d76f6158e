"""Move a home to another folder, or its journal to another database: copy, verify every signature, then switch by one
mark, `home.moved`, that every start reads. Killed at any moment, one of the two opens and the other says where."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zuno.adapters.atomic_file import build_write_error, flush_to_disk, replace_file
from zuno.adapters.home_backup import put_in_place
from zuno.adapters.home_files import (
    MARK,
    POSTGRES,
    FileKind,
    copy_database,
    find_running,
    list_home,
    pin_database,
    read_mark,
)
from zuno.adapters.store.sqlite import SqliteTables, open_archive
from zuno.adapters.store.table_store import PAGE, HeadFile, Tables, TableStore, read_stored
from zuno.journal.blocks import build_recipe
from zuno.journal.port import Row
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Broken, Refused, UsageError

VerifyFolder = Callable[[Path], Awaitable[int]]
"""How many entries the journal in a folder has; `Broken` unless every one holds."""


def _set_mark(home: Path, mark: dict[str, str]) -> None:
    if mark:
        replace_file(home / MARK, json.dumps(mark).encode() + b"\n")
    else:
        (home / MARK).unlink()


@contextmanager
def _stop_writers(home: Path, heads: HeadFile) -> Iterator[None]:
    """Nobody may be at work here; whoever begins meanwhile waits for the journal."""
    if running := find_running(home):
        raise Refused(f"Something runs in {home} ({', '.join(running)}): stop it first, then move. Nothing was moved.")
    with heads.alone():
        yield


def find_target(home: Path, folder: str) -> Path:
    """Where a home would be moved to."""
    target = Path(folder).expanduser().absolute()
    if target == home or home in target.parents:
        raise UsageError("A home is moved to another folder, outside of itself.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(f"{target} is there and is not an empty folder; nothing was moved.")
    return target


async def move_home(home: Path, target: Path, verify: VerifyFolder, heads: HeadFile) -> tuple[int, int]:
    """Copy everything, keys included, to a folder that is not there yet or empty: bytes and entries. The old folder
    stays, refuses to be opened and says where the home is. `heads`: of the journal that the home uses."""
    staged, mark = target.with_name(f".{target.name}.moving"), read_mark(home)
    try:
        with _stop_writers(home, heads):
            shutil.rmtree(staged, ignore_errors=True)  # of a process that was killed
            try:
                size = _copy_files(home, staged, target)
                _set_mark(staged, {**mark, "from": str(home)})
                entries = await verify(staged)
                put_in_place(staged, target)  # refuses to be opened until the old one is marked
            finally:
                shutil.rmtree(staged, ignore_errors=True)
            _set_mark(home, {"to": str(target)})
            heads.mark_broken(f"moved to {target}", "")  # for processes that have it open
        _set_mark(target, mark)
    except OSError as error:
        raise build_write_error(target, error) from error
    return size, entries


def _copy_files(home: Path, folder: Path, target: Path) -> int:
    size = 0
    folder.mkdir(mode=0o700, parents=True)
    for file in list_home(home):
        source, copy = home / file.name, folder / file.name
        if file.kind is FileKind.LOCK and source.name != "journal.lock":  # which holds the note of an unfinished write
            continue
        if source.name.endswith((".partial", ".db-wal", ".db-shm")):
            continue
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if source.suffix == ".db":
            with pin_database(source) as pinned:
                copy_database(pinned, copy)
        elif source.name == "axl.json":  # holds the path of a key
            copy.write_bytes(source.read_bytes().replace(str(home).encode(), str(target).encode()))
        else:
            shutil.copyfile(source, copy)
        copy.chmod(0o600)
        flush_to_disk(copy)
        size += copy.stat().st_size
    return size


def copy_rows(source: Tables, target: Tables, upto: int | None = None) -> int:
    """Every row and bundle, byte for byte, to tables that hold none or the first of them; the number of the newest."""
    last = target.last()
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
    stored = source.stored(name) or b""
    content = read_stored(source, name, stored, known)
    if isinstance(content, str):
        return stored
    if content is None or digest(content) != name:
        raise Broken(f"The bundle {name[:12]}… cannot be copied; run `zuno journal verify`.")
    return build_recipe(content, target.put_blocks)


async def move_to_postgres(home: Path, target: Tables, verify: Callable[[TableStore], Awaitable[int]]) -> int:
    """The journal from SQLite to Postgres, which may hold the beginning of the same chain: of a move that was cut off,
    or of an earlier one."""
    heads, there, source = (
        HeadFile(home, "journal"),
        HeadFile(home, "journal-postgres"),
        SqliteTables(home / "journal.db"),
    )
    with _stop_writers(home, heads), tempfile.TemporaryDirectory(dir=home, prefix=".moving-") as scratch:
        head = heads.head()
        if head is None:
            raise Refused("This home has no journal yet: set ZUNO_DATABASE_URL, and it begins in Postgres.")
        try:
            copy_rows(source, target)
        finally:
            source.close()
        copied = HeadFile(Path(scratch), "journal-postgres")
        copied.create(head)
        entries = await verify(TableStore(target, copied, open_archive(home)))
        there.create(head)
        there.mark_broken(None, target.name)
        _set_mark(home, {"to": POSTGRES})
        heads.mark_broken("moved to Postgres", "")  # for processes that have it open
    for end in ("db", "db-wal", "db-shm", "head", "broken"):
        with suppress(FileNotFoundError):
            os.replace(home / f"journal.{end}", home / f"journal.moved.{end}")
    return entries


def export_journal(source: Tables, head: bytes | None, upto: int | None, folder: Path) -> None:
    """A journal in Postgres as a SQLite one in a folder: its rows, its bundles and the head of that moment."""
    if head is None:
        raise Refused("This home has no journal in Postgres yet.")
    target = SqliteTables(folder / "journal.db")
    try:
        copy_rows(source, target, upto)
        HeadFile(folder, "journal").create(head)
    finally:
        target.close()
