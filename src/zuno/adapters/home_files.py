"""What a home holds: every file by its name, with its kind and whether a backup takes it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.file_lock import FileLock
from zuno.adapters.sqlite_file import SqliteFile
from zuno.kernel.errors import Broken, Refused


class FileKind(StrEnum):
    RECORD = "record"
    """Nothing else can say it again."""
    MONEY = "money"
    """What keeps money back: locks, budgets, confirmations that were used."""
    KEY = "key"
    LOGIN = "login"
    CACHE = "cache"
    """Made again when it is missing."""
    LOCK = "lock"
    LOG = "log"
    OTHER = "other"
    """Not ours."""


_RULES: Final[tuple[tuple[FileKind, bool, str], ...]] = (
    (FileKind.CACHE, False, ".*.partial */.*.partial journal.moved.* .moving-*"),
    (FileKind.MONEY, True, "kill.lock spend.json spend-viewers.json telegram.db"),
    (FileKind.MONEY, False, "restored.json"),
    (FileKind.LOCK, False, "*.lock leases/* home.moved mesh/*/axl.pid devnet.json"),
    (FileKind.KEY, True, "keys/*.pub peer.pub mesh/*/peer.pub wallets/0x*.json"),
    (FileKind.KEY, False, "keys/* wallets/* *.key web-factors.json"),
    (FileKind.LOGIN, True, "web-*.json"),
    (FileKind.LOGIN, False, "web-token"),
    (FileKind.LOG, False, "logs/* *.log *.log.before history"),
    (FileKind.RECORD, True, "journal.db journal*.head journal*.broken mesh/*/journal.db mesh/*/journal.*"),
    (FileKind.RECORD, True, "archive/* zuno.toml wallets.* alerts.json outbox.db samples.db sim.json"),
    (FileKind.RECORD, True, "market/own/* lab/* mesh/mesh.json mesh/*/axl.json"),
    (FileKind.CACHE, False, "cycles.db memory/* market/synthetic/* chains/* devnet/* reports/* charts/* mesh/*"),
)
"""The first that fits counts; a star stands for folders too. `True`: a backup takes it. A private key is never taken; a
wallet is, where it is encrypted by its passphrase."""
RESTORED: Final = "restored.json"
MARK: Final = "home.moved"
"""Says where a home, or its journal, was moved to; in a new folder, where it comes from."""
POSTGRES: Final = "postgres"
_BESIDE_DATABASE: Final = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class HomeFile:
    name: str
    """Within the home, with slashes."""
    kind: FileKind
    saved: bool
    size: int


def classify_file(name: str) -> tuple[FileKind, bool]:
    """Its kind, and whether a backup takes it as it is."""
    beside = next((end for end in _BESIDE_DATABASE if name.endswith(f".db{end}")), "")
    name = name.removesuffix(beside)
    for kind, saved, patterns in _RULES:
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return kind, saved and not beside
    return FileKind.OTHER, False


def list_home(home: Path) -> list[HomeFile]:
    """Every file, sorted by name; symlinks are neither followed nor listed."""
    files: list[HomeFile] = []
    for folder, _, names in os.walk(home):
        for path in (Path(folder) / name for name in names):
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue
            if path.is_file() and not path.is_symlink():
                name = path.relative_to(home).as_posix()
                files.append(HomeFile(name, *classify_file(name), status.st_size))
    return sorted(files, key=lambda file: file.name)


def find_running(home: Path) -> list[str]:
    """The locks of this home that some process holds."""
    return [
        file.name
        for file in list_home(home)
        if file.name.endswith(".lock") and file.name != "kill.lock" and FileLock(home / file.name).is_held()
    ]


@contextmanager
def pin_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A read transaction: what others commit meanwhile is not seen through it."""
    with translate_sqlite(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30, isolation_level=None)
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield connection
        finally:
            connection.close()


def copy_database(source: sqlite3.Connection, path: Path) -> None:
    """All of a pinned database in a new file, by SQLite's own copy. Whoever keeps the file flushes it."""
    with translate_sqlite(path):
        target = sqlite3.connect(path, isolation_level=None)
        try:
            target.execute("PRAGMA synchronous = OFF")
            source.backup(target)
        finally:
            target.close()


def translate_sqlite(path: Path) -> AbstractContextManager[None]:
    return SqliteFile(path, lambda connection: None, "it cannot be copied.").translate_errors()


def mark_restored(home: Path, seq: int) -> None:
    replace_file(home / RESTORED, json.dumps({"seq": seq}).encode() + b"\n")


def read_restored(home: Path) -> int:
    """The newest entry when the home was restored; 0: it never was."""
    try:
        return int(json.loads((home / RESTORED).read_bytes())["seq"])
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Broken(f"{home / RESTORED} cannot be read; it says to which entry this home was restored.") from error


def check_moved(home: Path, *, in_postgres: bool) -> None:
    """`Refused` where the home, or its journal, is elsewhere by now."""
    mark = read_mark(home)
    place, origin = mark.get("to"), mark.get("from")
    if place == POSTGRES and not in_postgres:
        raise Refused(f"The journal of {home} was moved to Postgres: set ZUNO_DATABASE_URL.")
    if place not in (None, POSTGRES):
        raise Refused(f"This home was moved to {place}: use --home {place}, or set ZUNO_HOME to it.")
    if origin is not None and Path(origin).exists() and read_mark(Path(origin)).get("to") != str(home.absolute()):
        raise Refused(f"{home} is a copy that was not finished; {origin} is the home. Delete the copy and move again.")


def read_mark(home: Path) -> dict[str, str]:
    try:
        mark = json.loads((home / MARK).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise Broken(f"{home / MARK} cannot be read; it says where this home was moved.") from error
    return mark if isinstance(mark, dict) else {}
