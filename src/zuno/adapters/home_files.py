"""What a home holds: every file by its name, with its kind and whether a backup takes it."""

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final

from zuno.adapters.atomic_file import flush_to_disk, replace_file, translate_write_errors
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.sqlite_file import translate_sqlite
from zuno.adapters.store.table_store import HeadFile
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
    (FileKind.MONEY, True, "kill.lock kills/* restored.lock spend.json spend-viewers.json telegram.db"),
    (FileKind.LOCK, True, "journal.lock mesh/*/journal.lock"),
    (FileKind.LOCK, False, "*.lock leases/* home.mark mesh/*/axl.pid devnet.json"),
    (FileKind.KEY, True, "keys/*.pub peer.pub mesh/*/peer.pub wallets/0x*.json"),
    (FileKind.KEY, False, "keys/* wallets/* *.key web-factors.json"),
    (FileKind.LOGIN, False, "web-*.json web-token"),
    (FileKind.LOG, False, "logs/* *.log *.log.before history"),
    (FileKind.RECORD, True, "journal.db journal.head mesh/*/journal.db mesh/*/journal.head"),
    (FileKind.RECORD, False, "journal*.head journal*.broken mesh/*/journal.*"),
    (FileKind.RECORD, True, "archive/* zuno.toml wallets.* alerts.json outbox.db samples.db sim.json"),
    (FileKind.RECORD, True, "strategies/* market/own/* lab/* mesh/mesh.json mesh/*/axl.json"),
    (FileKind.CACHE, False, "markets.json cycles.db memory/* market/synthetic/* chains/* prices/*"),
    (FileKind.CACHE, False, "devnet/* reports/* charts/* mesh/*"),
)
"""The first that fits counts; a star stands for folders too. `True`: a backup takes it. A private key is never taken; a
wallet is, where it is encrypted by its passphrase. A journal's lock holds the note of an unfinished write."""
MARK: Final = "home.mark"
"""Says to which entry a home was restored, where it, or its journal, was moved to, and where a copy comes from."""
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
    """Every file, sorted by name; symlinks are neither followed nor listed, but for the archive's folder, which may lie
    on another disk."""
    files: list[HomeFile] = []
    archive = home / "archive"
    for folder, _, names in chain(os.walk(home), os.walk(archive) if archive.is_symlink() else ()):
        for path in (Path(folder) / name for name in names):
            with suppress(FileNotFoundError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    name = path.relative_to(home).as_posix()
                    files.append(HomeFile(name, *classify_file(name), status.st_size))
    return sorted(files, key=lambda file: file.name)


def measure_home(home: Path) -> int:
    """Bytes of all files but the archive's, which may lie on another disk."""
    return sum(file.size for file in list_home(home) if not file.name.startswith("archive/"))


def find_running(home: Path) -> list[str]:
    return [
        file.name
        for file in list_home(home)
        if file.name.endswith(".lock") and file.name != "kill.lock" and FileLock(home / file.name).is_held()
    ]


def copy_files(home: Path, folder: Path, names: Iterable[str], *, held: bool = False) -> Iterator[str]:
    """Copy files of a home to a folder while everything runs, and say each that is there: a database as it is at one
    moment, a journal with its head, market data with the database that names them. `held`: the caller holds the home's
    own journal. Whoever keeps the copies flushes them."""
    ordered = sorted(names, key=lambda name: (not _group(name).endswith("journal"), _group(name), name))
    for group, members in groupby(ordered, _group):
        copied: list[str] = []
        with ExitStack() as reading:
            databases: dict[str, sqlite3.Connection] = {}
            with ExitStack() as alone:
                if group.endswith("journal") and not (held and group == "journal"):
                    alone.enter_context(_hold_journal(home / group))
                if group == "market" and (home / "market" / "own" / "series.db").exists():
                    market = alone.enter_context(_open_database(home / "market" / "own" / "series.db", "rw"))
                    market.execute("BEGIN IMMEDIATE")
                for name in members:
                    (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    with suppress(FileNotFoundError):  # gone since it was listed
                        if name.endswith(".db"):
                            mode = "rw" if name.startswith("archive/") else "ro"  # to undo what a kill left half done
                            databases[name] = reading.enter_context(_open_database(home / name, mode))
                            databases[name].execute("BEGIN")
                            databases[name].execute("SELECT count(*) FROM sqlite_master").fetchone()
                        else:
                            shutil.copyfile(home / name, folder / name)
                        copied.append(name)
            for name, source in databases.items():
                with _open_database(folder / name, "rwc") as target:
                    target.execute("PRAGMA synchronous = OFF")
                    source.backup(target)
        yield from copied


def _group(name: str) -> str:
    """What is copied as of the same moment."""
    file = name.rpartition("/")[2]
    if file.startswith("journal."):
        return name.removesuffix(file) + "journal"
    return "market" if name.startswith("market/own/") else name


@contextmanager
def _hold_journal(path: Path) -> Iterator[None]:
    heads = HeadFile(path.parent, path.name)
    with heads.alone():
        headless = heads.head() is None and path.with_suffix(".db").exists()
        if damage := heads.read_damage("") or ("its head is missing" if headless else ""):
            raise Broken(f"The journal in {path.parent} is broken ({damage}); nothing was written.")
        yield


@contextmanager
def _open_database(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    with translate_sqlite(path, "it cannot be copied."):
        url = f"{path.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(url, uri=True, timeout=WAIT_SECONDS, isolation_level=None)) as connection:
            yield connection


@contextmanager
def stage_home(home: Path) -> Iterator[Path]:
    """A folder beside a home that is not there yet or holds nothing but logs; at the end it becomes the home, at once.
    After an error nothing is left. `Refused` for a home that holds anything."""
    kept = [file.name for file in list_home(home) if not file.name.startswith("logs/")]
    if kept:
        raise Refused(f"{home} is not empty ({kept[0]}): name an empty folder. Nothing was written.")
    staged, turn = home.with_name(f".{home.name}.staged"), home.with_name(f".{home.name}.staged.lock")
    with FileLock(turn, "{} writes this home already."), translate_write_errors(home):
        try:
            shutil.rmtree(staged, ignore_errors=True)  # of a process that was killed
            staged.mkdir(mode=0o700)
            yield staged
            for folder in chain([staged], (path for path in staged.rglob("*") if path.is_dir())):
                flush_to_disk(folder)
            shutil.rmtree(home / "logs", ignore_errors=True)
            with translate_write_errors(home, "; where it is a mount, name a folder inside it as --home"):
                os.rename(staged, home)
            flush_to_disk(home.parent)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            turn.unlink(missing_ok=True)


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


def read_mark(home: Path) -> dict[str, Any]:
    """`to` and `from`: places; `restored`: the newest entry when the home was restored."""
    try:
        mark = json.loads((home / MARK).read_bytes())
        if isinstance(mark, dict) and isinstance(mark.get("restored", 0), int):
            return mark
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        pass
    raise Broken(f"{home / MARK} cannot be read; it says whether this home was moved or restored.")


def set_mark(home: Path, mark: dict[str, Any]) -> None:
    replace_file(home / MARK, json.dumps(mark).encode() + b"\n")
