"""A home in one file: a zip archive with a manifest that the node signs. It is written while everything runs, and
restored into an empty folder. Private keys are never in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from pydantic import Field, ValidationError

from zuno.adapters.atomic_file import build_write_error, flush_to_disk
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.adapters.home_files import (
    FileKind,
    HomeFile,
    classify_file,
    copy_database,
    list_home,
    pin_database,
    translate_sqlite,
)
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.keys.keystore import read_keystore
from zuno.adapters.store.table_store import HeadFile
from zuno.kernel.errors import Broken, DiskFull, Malformed, Refused, Unavailable, UsageError
from zuno.kernel.signing import NodeKey
from zuno.kernel.wire import Hex64, Wire

FORMAT: Final = 1
DATE: Final = "{date}"
_SIGNED: Final = b"zuno backup 1\n"
_MANIFEST, _SIGNATURE = "manifest.json", "manifest.sig"
_MOST_MANIFEST: Final = 64 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_UNREADABLE = (BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, KeyError)
"""What the vendor raises for a damaged archive."""


class SavedFile(Wire):
    name: Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f][^\\\x00-\x1f]*$", max_length=500)]
    size: Annotated[int, Field(ge=0)]
    sha256: Hex64


class Manifest(Wire):
    format: Literal[1] = 1
    zuno: Annotated[str, Field(max_length=64)]
    node: Hex64
    made_at: Annotated[int, Field(ge=0, lt=2**53)]
    seq: Annotated[int, Field(ge=0)]
    hash: Hex64
    """Of the journal's newest entry at that moment."""
    files: tuple[SavedFile, ...]


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    manifest: Manifest
    size: int
    left_out: tuple[str, ...] = ()
    """Files of the home that are none of ours, and wallets that are not encrypted."""
    removed: tuple[Path, ...] = ()


ExportJournal = Callable[[Path], bytes | None]
"""Writes a journal that is not in the home as a SQLite one into a folder; its head."""


def write_backup(
    home: Path,
    wanted: Path,
    keep: int | None,
    key: NodeKey,
    code: str,
    now: int,
    export_journal: ExportJournal | None = None,
    kills: bytes | None = None,
) -> Backup:
    """`kills`: the content of `kill.lock` where others add to it. After an error the target is as it was."""
    if keep is not None and keep < 1:
        raise UsageError("--keep needs a number of backups, 1 or more.")
    wanted = wanted.expanduser()
    pattern = wanted / f"zuno-{DATE}.zip" if wanted.is_dir() else wanted
    if keep is not None and DATE not in pattern.name:
        raise UsageError(f"--keep needs a folder, or a name with {DATE} in it: zuno-{DATE}.zip.")
    stamp = datetime.fromtimestamp(now // 1_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    target = pattern.with_name(pattern.name.replace(DATE, stamp))
    with FileLock(home / "leases" / "backup.lock", "A backup of this home is being made by {}.", parents=True):
        try:
            key.ensure()
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and ((before := find_manifest(target)) is None or before.node != key.public):
                raise Refused(f"{target} is there and is no backup of this home; nothing was written.")
            scratch = f".zuno-backup-{key.public[:12]}-"
            for left in target.parent.glob(f"{scratch}*"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=scratch) as folder:
                writer = _Writer(home, Path(folder), export_journal, kills)
                manifest = writer.write(key, code, now)
                size = writer.draft.stat().st_size
                flush_to_disk(writer.draft)
                os.replace(writer.draft, target)
            flush_to_disk(target.parent)
        except OSError as error:
            raise build_write_error(target, error) from error
        removed = [] if keep is None else _remove_old(pattern, target, key.public, keep)
    return Backup(target, manifest, size, tuple(writer.left_out), tuple(removed))


def find_manifest(path: Path) -> Manifest | None:
    """Of a file that is a backup, by a signature that holds."""
    try:
        with _open_archive(path) as archive:
            return _read_manifest(archive, path)
    except (Broken, Malformed, Refused):
        return None


def _remove_old(pattern: Path, newest: Path, node: str, keep: int) -> list[Path]:
    """Of this home alone. By the journal's number first: the clock may have been set back."""
    paths = newest.parent.glob(pattern.name.replace("[", "[[]").replace(DATE, "*"))
    found = [(find_manifest(path), path) for path in paths if path != newest]
    dated = [(made.seq, made.made_at, path) for made, path in found if made is not None and made.node == node]
    removed = [path for *_, path in sorted(dated, reverse=True)[keep - 1 :]]
    for path in removed:
        path.unlink()
    return removed


class _Writer:
    def __init__(self, home: Path, folder: Path, export_journal: ExportJournal | None, kills: bytes | None) -> None:
        self._home = home
        self._folder = folder
        self._export_journal = export_journal
        self._kills = kills
        self.draft = folder / "backup.zip"
        self.left_out: list[str] = []
        self._saved: list[SavedFile] = []

    def write(self, key: NodeKey, code: str, now: int) -> Manifest:
        files = [file for file in list_home(self._home) if self._is_taken(file)]
        journals = {"", *(name for file in files if (name := file.name.removesuffix("journal.db")) != file.name)}
        market = [file.name for file in files if file.name.startswith("market/")]
        with ZipFile(self.draft, "w", compresslevel=1) as archive:
            heads = {place: self._add_journal(archive, place) for place in sorted(journals)}
            self._add_market(archive, market)
            known = {saved.name for saved in self._saved} | set(market)
            for name in (file.name for file in files if file.name not in known):
                if name.partition(".")[0].rpartition("/")[2] not in ("journal", "journal-postgres"):
                    self._add_file(archive, name)
            if self._kills is not None:
                self._add(archive, "kill.lock", self._write_temporary(self._kills))
            head: dict[str, Any] = {} if heads[""] is None else json.loads(heads[""])["head"]
            seq, newest = head.get("seq", 0), head.get("hash", "0" * 64)
            files_saved = tuple(sorted(self._saved, key=lambda file: file.name))
            manifest = Manifest(zuno=code, node=key.public, made_at=now, seq=seq, hash=newest, files=files_saved)
            content = manifest.model_dump_json(by_alias=True).encode()
            archive.writestr(_MANIFEST, content, ZIP_DEFLATED)
            archive.writestr(_SIGNATURE, key.sign(_SIGNED + content).hex())
        return manifest

    def _is_taken(self, file: HomeFile) -> bool:
        if file.kind is FileKind.OTHER:
            self.left_out.append(file.name)
        if not file.saved or (file.name == "kill.lock" and self._kills is not None):
            return False
        if file.name.startswith("wallets/0x") and not file.name.endswith(".watch.json"):
            try:
                read_keystore((self._home / file.name).read_bytes())
            except ValueError:
                self.left_out.append(file.name)
                return False
        return True

    def _add_journal(self, archive: ZipFile, place: str) -> bytes | None:
        """Rows, head and the note of an unfinished write as they are while nobody writes. Only the look is under the
        journal's lock: the copy reads on from that moment."""
        folder, copy, note = self._home / place, self._folder / "journal.db", b""
        if place == "" and self._export_journal is not None:
            head = self._export_journal(self._folder)
        elif not (folder / "journal.db").exists() and not (folder / "journal.head").exists():
            return None
        else:
            heads, source = HeadFile(folder, "journal"), None
            with ExitStack() as stack:
                with heads.alone() as held:
                    damage = heads.read_damage("") or ("its head is missing" if heads.head() is None else None)
                    if damage is not None:
                        raise Broken(f"The journal in {folder} is broken ({damage}); nothing was written.")
                    note, head = held.read_note() or b"", (folder / "journal.head").read_bytes()
                    if (folder / "journal.db").exists():
                        source = stack.enter_context(pin_database(folder / "journal.db"))
                if source is not None:
                    copy_database(source, copy)
        if copy.exists():
            self._add(archive, f"{place}journal.db", copy)
            copy.unlink()
        for name, content in (("head", head), ("lock", note)):
            if content:
                self._add(archive, f"{place}journal.{name}", self._write_temporary(content))
        return head

    def _add_market(self, archive: ZipFile, names: list[str]) -> None:
        """Its files and the database that names them, while nobody writes there."""
        database = self._home / "market" / "own" / "series.db"
        with ExitStack() as stack:
            if database.exists():
                stack.enter_context(translate_sqlite(database))
                writing = sqlite3.connect(database, timeout=WAIT_SECONDS, isolation_level=None)
                stack.callback(writing.close)
                writing.execute("BEGIN IMMEDIATE")
            for name in names:
                self._add_file(archive, name)

    def _add_file(self, archive: ZipFile, name: str) -> None:
        path = self._home / name
        try:
            if path.suffix != ".db":
                self._add(archive, name, path)
                return
            copy = self._folder / "copy.db"
            with pin_database(path) as source:
                copy_database(source, copy)
            self._add(archive, name, copy)
            copy.unlink()
        except FileNotFoundError:
            pass  # gone since it was listed

    def _write_temporary(self, content: bytes) -> Path:
        path = self._folder / "content"
        path.write_bytes(content)
        return path

    def _add(self, archive: ZipFile, name: str, path: Path) -> None:
        digest, size = hashlib.sha256(), 0
        archive.compression = ZIP_STORED if path.suffix in (".parquet", ".gz", ".zst", ".xz") else ZIP_DEFLATED
        with open(path, "rb") as source, archive.open(name, "w", force_zip64=True) as out:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                out.write(chunk)
        self._saved.append(SavedFile(name=name, size=size, sha256=digest.hexdigest()))


@contextmanager
def _open_archive(path: Path) -> Iterator[ZipFile]:
    try:
        with ZipFile(path) as archive:
            yield archive
    except _UNREADABLE as error:
        raise Malformed(f"{path} is no whole backup ({type(error).__name__}); nothing was written.") from error


def _read_manifest(archive: ZipFile, path: Path) -> Manifest:
    """The signed list of its files. `Malformed`: no backup, or cut off; `Refused`: of a newer Zuno; `Broken`: somebody
    changed it."""
    content = _read_bounded(archive, _MANIFEST)
    raw = json.loads(content)
    written = raw.get("format") if isinstance(raw, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise Refused(f"{path} was made by a newer Zuno (format {written}, this one reads {FORMAT}): update Zuno.")
    try:
        manifest = Manifest.model_validate(raw)
        signature = bytes.fromhex(_read_bounded(archive, _SIGNATURE).decode("ascii"))
    except ValidationError as error:
        raise Malformed(f"{path} has no manifest that can be read; nothing was written.") from error
    if not KeyFile(path).verify(manifest.node, _SIGNED + content, signature):
        raise Broken(f"{path} was changed since it was made: its signature does not hold; nothing was written.")
    return manifest


def _read_bounded(archive: ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        content = file.read(_MOST_MANIFEST + 1)
    if len(content) > _MOST_MANIFEST:
        raise BadZipFile("a manifest of that size")
    return content


@contextmanager
def unpack_backup(path: Path, home: Path) -> Iterator[tuple[Path, Manifest]]:
    """The files of a backup in a folder beside the home; at the end the folder becomes the home. After an error nothing
    is left. `Refused` for a home that holds anything but logs."""
    path, home = path.expanduser(), home.absolute()
    held = [file.name for file in list_home(home) if not file.name.startswith("logs/")]
    if held:
        raise Refused(f"{home} is not empty ({held[0]}); restore into an empty --home. Nothing was written.")
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    staged, turn = home.with_name(f".{home.name}.restoring"), home.with_name(f".{home.name}.restoring.lock")
    with FileLock(turn, "{} restores into this home already."):
        try:
            manifest = _unpack(path, staged)
            yield staged, manifest
            put_in_place(staged, home)
        except OSError as error:
            raise build_write_error(home, error) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            turn.unlink(missing_ok=True)


def _unpack(path: Path, folder: Path) -> Manifest:
    with _open_archive(path) as archive:
        manifest = _read_manifest(archive, path)
        _check_members(archive, manifest, path)
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        folder.mkdir(mode=0o700)
        if shutil.disk_usage(folder).free < sum(file.size for file in manifest.files):
            raise DiskFull(folder)
        for file in manifest.files:
            _extract(archive, file, folder, path)
    return manifest


def _check_members(archive: ZipFile, manifest: Manifest, path: Path) -> None:
    """Each file once, of the size that was signed, at a place where a home has such a file."""
    infos = {info.filename: info for info in archive.infolist()}
    names = [file.name for file in manifest.files]
    whole = sorted([*names, _MANIFEST, _SIGNATURE]) == sorted(info.filename for info in archive.infolist())
    if not whole or any(infos[file.name].file_size != file.size for file in manifest.files):
        raise Broken(f"{path} does not hold the files of its manifest; nothing was written.")
    for name in names:
        link = stat.S_ISLNK(infos[name].external_attr >> 16)
        stays = not {"", ".", ".."} & set(name.split("/"))
        if link or not stays or not (classify_file(name)[1] or Path(name).name == "journal.lock"):
            raise Refused(f"{path} holds {name[:80]!r}, which no backup has; nothing was written.")


def _extract(archive: ZipFile, file: SavedFile, folder: Path, path: Path) -> None:
    place, digest, left = folder / file.name, hashlib.sha256(), file.size
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        with archive.open(file.name) as source:
            while left >= 0 and (chunk := source.read(_CHUNK)):
                left -= len(chunk)
                digest.update(chunk)
                out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if left != 0 or digest.hexdigest() != file.sha256:
        raise Broken(f"{path}: {file.name} is not what the manifest says; nothing was written.")


def put_in_place(staged: Path, home: Path) -> None:
    """Make a whole folder the home, at once. What is there is an empty folder, or logs."""
    for folder in chain([staged], (path for path in staged.rglob("*") if path.is_dir())):
        flush_to_disk(folder)
    shutil.rmtree(home / "logs", ignore_errors=True)
    try:
        os.rename(staged, home)
    except OSError as error:
        raise Unavailable(
            f"{home} cannot be replaced ({error.strerror}); where it is a mount, name a folder inside it as --home."
        ) from error
    flush_to_disk(home.parent)
