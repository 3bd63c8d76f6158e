"""A home in one file: a zip archive with a manifest that the node signs. It is written while everything runs, and
restored into an empty folder. Private keys are never in it."""

import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from pydantic import Field, ValidationError

from zuno.adapters.atomic_file import flush_to_disk, translate_write_errors
from zuno.adapters.file_lock import FileLock
from zuno.adapters.home_files import FileKind, classify_file, copy_files, list_home, stage_home
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.keys.keystore import read_keystore
from zuno.adapters.kill_lock import FOLDER as KILLS
from zuno.kernel.errors import Broken, DiskFull, Malformed, Refused, UsageError
from zuno.kernel.signing import NodeKey
from zuno.kernel.wire import Hex64, Wire

FORMAT: Final = 1
DATE: Final = "{date}"
NAME: Final = f"zuno-{DATE}.zip"
"""Of a backup in a folder."""
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
    """Of the journal's newest entry at that moment."""
    files: tuple[SavedFile, ...]


@dataclass(frozen=True, slots=True)
class Backup:
    path: Path
    manifest: Manifest
    size: int
    left_out: tuple[str, ...]
    """Files of the home that are none of ours, and wallets that are not encrypted."""
    removed: tuple[Path, ...]


ExportJournal = Callable[[Path], list[str]]
"""Writes a journal that is not in the home as a SQLite one into a folder, and the kills of others: the names."""


def write_backup(
    home: Path, wanted: Path, keep: int | None, key: NodeKey, code: str, now: int, export: ExportJournal | None = None
) -> Backup:
    """After an error the target is as it was."""
    if keep is not None and keep < 1:
        raise UsageError("--keep needs a number of backups, 1 or more.")
    wanted = wanted.expanduser()
    pattern = wanted / NAME if wanted.is_dir() else wanted
    if keep is not None and DATE not in pattern.name:
        raise UsageError(f"--keep needs a folder, or a name with {DATE} in it: {NAME}.")
    stamp = datetime.fromtimestamp(now // 1_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    target = pattern.with_name(pattern.name.replace(DATE, stamp))
    with FileLock(home / "leases" / "backup.lock", "A backup of this home is being made by {}."):
        with translate_write_errors(target):
            key.ensure()
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and ((before := find_manifest(target)) is None or before.node != key.public):
                raise Refused(f"{target} is there and is no backup of this home; nothing was written.")
            scratch = f".zuno-backup-{key.public[:12]}-"
            for left in target.parent.glob(f"{scratch}*"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=scratch) as folder:
                draft = Path(folder) / "backup.zip"
                manifest, left_out = _write_archive(draft, home, Path(folder), key, code, now, export)
                size = draft.stat().st_size
                flush_to_disk(draft)
                os.replace(draft, target)
            flush_to_disk(target.parent)
        removed = [] if keep is None else _remove_old(pattern, target, key.public, keep)
    return Backup(target, manifest, size, tuple(sorted(left_out)), tuple(removed))


def _write_archive(
    draft: Path, home: Path, folder: Path, key: NodeKey, code: str, now: int, export: ExportJournal | None
) -> tuple[Manifest, set[str]]:
    files: list[SavedFile] = []
    left_out: set[str] = set()
    seq = 0
    exported = [] if export is None else export(folder)
    not_these = {*exported, "journal.db", "journal.head", "journal.lock", "kill.lock"} if exported else set()
    inside = f"{KILLS}/" if exported else "/"  # an export has the kills of the home among all others

    def copy() -> Iterator[str]:
        """An archived bundle is in the archive before the journal says so: the archive is looked at last."""
        yield from exported
        for of_archive in (False, True):
            chosen = {name for name in _choose(home, left_out) - not_these if not name.startswith(inside)}
            yield from copy_files(home, folder, {name for name in chosen if name.startswith("archive/") is of_archive})

    with ZipFile(draft, "w", compresslevel=1) as archive:
        for name in copy():
            path = folder / name
            if name == "journal.head":
                seq = json.loads(path.read_bytes())["head"]["seq"]
            files.append(_add(archive, name, path))
            path.unlink()
        files.sort(key=lambda file: file.name)
        manifest = Manifest(zuno=code, node=key.public, made_at=now, seq=seq, files=tuple(files))
        content = manifest.model_dump_json(by_alias=True).encode()
        archive.writestr(_MANIFEST, content, ZIP_DEFLATED)
        archive.writestr(_SIGNATURE, key.sign(_SIGNED + content).hex())
    return manifest, left_out


def _choose(home: Path, left_out: set[str]) -> set[str]:
    chosen = set()
    for file in list_home(home):
        unsealed = False
        if file.saved and file.name.startswith("wallets/0x") and not file.name.endswith(".watch.json"):
            try:
                read_keystore((home / file.name).read_bytes())
            except ValueError:
                unsealed = True
        if unsealed or file.kind is FileKind.OTHER:
            left_out.add(file.name)
        elif file.saved:
            chosen.add(file.name)
    return chosen


def _add(archive: ZipFile, name: str, path: Path) -> SavedFile:
    digest, size = hashlib.sha256(), 0
    archive.compression = ZIP_STORED if path.suffix == ".parquet" else ZIP_DEFLATED
    with open(path, "rb") as source, archive.open(name, "w", force_zip64=True) as out:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            out.write(chunk)
    return SavedFile(name=name, size=size, sha256=digest.hexdigest())


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
    others = [(find_manifest(path), path) for path in paths if path != newest]
    dated = [(made.seq, made.made_at, path) for made, path in others if made is not None and made.node == node]
    removed = [path for *_, path in sorted(dated, reverse=True)[keep - 1 :]]
    for path in removed:
        path.unlink()
    return removed


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
    """The files of a backup in a folder that becomes the home at the end; after an error nothing is left."""
    path = path.expanduser()
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    with stage_home(home.absolute()) as folder:
        with _open_archive(path) as archive:
            manifest = _read_manifest(archive, path)
            if len(archive.infolist()) != len(manifest.files) + 2:
                raise Broken(f"{path} does not hold the files of its manifest alone; nothing was written.")
            if shutil.disk_usage(folder).free < sum(file.size for file in manifest.files):
                raise DiskFull(folder)
            for file in manifest.files:
                if classify_file(file.name)[0] is not FileKind.LOGIN:  # what was ended since would stand again
                    _extract(archive, file, folder, path)
        yield folder, manifest


def _extract(archive: ZipFile, file: SavedFile, folder: Path, path: Path) -> None:
    """To a place where a home has such a file; whatever the archive says of it, it becomes a plain file."""
    if {"", ".", ".."} & set(file.name.split("/")) or not classify_file(file.name)[1]:
        raise Refused(f"{path} holds {file.name[:80]!r}, which no backup has; nothing was written.")
    place, digest, left = folder / file.name, hashlib.sha256(), file.size
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out, archive.open(file.name) as source:
        while left >= 0 and (chunk := source.read(_CHUNK)):
            left -= len(chunk)
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if left != 0 or digest.hexdigest() != file.sha256:
        raise Broken(f"{path}: {file.name} is not what the manifest says; nothing was written.")
