"""A backup of a home that is written to, and what restores it: whole, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.wire.homes import (
    ARCHIVE_FILE,
    NOW,
    append,
    die_at_each_step,
    fill_home,
    leave_unfinished,
    open_journal,
    put_bundle_forms,
    read_bundles,
    read_files,
    write,
)
from zuno.adapters import home_files
from zuno.adapters.home_backup import Backup, find_manifest, unpack_backup, write_backup
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.kill_lock import KillLockFile
from zuno.journal.blocks import ArchiveMissing
from zuno.kernel.errors import Broken, Malformed, Refused, Unavailable, UsageError
from zuno.wiring.home import verify_journals


@pytest.fixture
def filled(home: Path) -> Path:
    return fill_home(home)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def back_up(home: Path, target: Path, keep: int | None = None, at: int = NOW) -> Backup:
    return write_backup(home, target, keep, KeyFile(home / "keys" / "node.key"), "test", at)


def restore(file: Path, home: Path) -> int:
    with unpack_backup(file, home) as (folder, _):
        return asyncio.run(verify_journals(folder))


def test_a_backup_restores_what_cannot_be_made_again_and_no_private_key(
    filled: Path, out: Path, tmp_path: Path
) -> None:
    made = back_up(filled, out / "a.zip")
    assert (made.manifest.seq, made.manifest.node) == (8, KeyFile(filled / "keys" / "node.key").public)
    assert made.left_out == ("passphrase", f"wallets/0x{'cd' * 20}.json")
    elsewhere = tmp_path / "elsewhere"
    assert restore(out / "a.zip", elsewhere) == 8
    before, after = read_files(filled), read_files(elsewhere)
    assert not [name for name in after if name.endswith(".key") or name.startswith(("logs/", "market/synthetic"))]
    assert {"journal.head", "keys/node.pub", "mesh/critic/journal.db", "market/own/series.db", "spend.json"} <= set(
        after
    )
    for name in ("kill.lock", "market/own/history/a.parquet", "keys/node.pub", "mesh/critic/peer.pub"):
        assert after[name] == before[name]
    assert KillLockFile(elsewhere).why_locked("live") is not None
    assert len([name for name in after if name.startswith("wallets/")]) == 1
    assert {path.stat().st_mode & 0o077 for path in elsewhere.rglob("*") if path.is_file()} == {0}
    # It is read and verified by the public key alone, and goes on once the private one is back.
    assert asyncio.run(read_entries(elsewhere)) == 8
    with pytest.raises(Broken, match=r"node\.key"):
        write(open_journal(elsewhere), 1)
    (elsewhere / "keys" / "node.key").write_bytes((filled / "keys" / "node.key").read_bytes())
    (elsewhere / "keys" / "node.key").chmod(0o600)
    write(open_journal(elsewhere), 1)
    assert asyncio.run(verify_journals(elsewhere)) == 9


def test_each_backup_of_a_journal_that_is_being_written_is_whole(home: Path, out: Path, tmp_path: Path) -> None:
    fill_home(home, 1)
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(_write_on(home))
        finally:
            os._exit(0)
    try:
        seqs = []
        for number in range(4):
            made = back_up(home, out / f"{number}.zip")
            entries = restore(made.path, tmp_path / f"r{number}")
            assert entries == made.manifest.seq
            seqs.append(entries)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert seqs == sorted(seqs)
    assert seqs[-1] > seqs[0]


async def read_entries(home: Path) -> int:
    journal = open_journal(home)
    count = len([entry async for entry in journal.entries()])
    await journal.close()
    return count


async def _write_on(home: Path) -> None:
    journal = open_journal(home)
    while True:
        await append(journal, 20)


def test_bundles_in_each_form_and_the_archive_are_carried(filled: Path, out: Path, tmp_path: Path) -> None:
    bundles = put_bundle_forms(filled)
    (filled / "archive").rename(tmp_path / "other disk")
    (filled / "archive").symlink_to(tmp_path / "other disk")
    made = back_up(filled, out / "a.zip")
    assert f"archive/{ARCHIVE_FILE}" in {file.name for file in made.manifest.files}
    elsewhere = tmp_path / "elsewhere"
    assert restore(out / "a.zip", elsewhere) == 11
    assert read_bundles(open_journal(elsewhere), bundles) == bundles
    (elsewhere / "archive" / ARCHIVE_FILE).unlink()
    with pytest.raises(ArchiveMissing, match=ARCHIVE_FILE):
        read_bundles(open_journal(elsewhere), bundles)


def test_a_bundle_that_is_archived_during_the_backup_is_in_it(
    filled: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive file is new since the home was listed, and the journal points to it."""
    bundles: dict[str, bytes] = {}
    plain = home_files._hold_journal

    def archive_first(path: Path) -> Any:
        if path == filled / "journal" and not bundles:
            bundles.update(put_bundle_forms(filled))
        return plain(path)

    monkeypatch.setattr(home_files, "_hold_journal", archive_first)
    back_up(filled, out / "a.zip")
    restore(out / "a.zip", tmp_path / "elsewhere")
    assert len(bundles) == 3
    assert read_bundles(open_journal(tmp_path / "elsewhere"), bundles) == bundles


def test_the_note_of_an_unfinished_write_is_carried(filled: Path, out: Path, tmp_path: Path) -> None:
    leave_unfinished(open_journal(filled))
    back_up(filled, out / "a.zip")
    assert restore(out / "a.zip", tmp_path / "elsewhere") == 8
    shutil.copy(filled / "keys" / "node.key", tmp_path / "elsewhere" / "keys" / "node.key")
    write(open_journal(tmp_path / "elsewhere"), 1)
    assert asyncio.run(verify_journals(tmp_path / "elsewhere")) == 10  # with the one that says what was lost


def test_a_home_without_a_journal_is_backed_up(home: Path, out: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "journal.lock").touch()  # somebody looked
    (home / "kill.lock").write_text("live by hand\n")
    assert back_up(home, out / "a.zip").manifest.seq == 0
    assert restore(out / "a.zip", tmp_path / "elsewhere") == 0
    assert KillLockFile(tmp_path / "elsewhere").why_locked("live") is not None


def test_keep_removes_the_oldest_of_this_home_alone(filled: Path, out: Path, tmp_path: Path) -> None:
    other = fill_home(tmp_path / "other", 1)
    back_up(other, out / "zuno-20200101T000000Z.zip")
    (out / "zuno-19990101T000000Z.zip").write_text("not a backup")
    for day in range(5):
        write(open_journal(filled), 1)
        made = back_up(filled, out, 2, NOW - day * 86_400_000)  # the clock is set back a day each time
        assert made.path.exists()
    assert len(made.removed) == 1
    names = sorted(path.name for path in out.iterdir())
    assert len(names) == 4
    assert {"zuno-20200101T000000Z.zip", "zuno-19990101T000000Z.zip"} < set(names)
    with pytest.raises(UsageError):
        back_up(filled, out / "a.zip", 2)
    with pytest.raises(UsageError):
        back_up(filled, out, 0)
    with pytest.raises(Refused):
        back_up(filled, out / "zuno-19990101T000000Z.zip")
    assert (out / "zuno-19990101T000000Z.zip").read_text() == "not a backup"


def test_a_cut_or_changed_backup_writes_nothing(filled: Path, out: Path, tmp_path: Path) -> None:
    back_up(filled, out / "a.zip")
    whole, target, bad = (out / "a.zip").read_bytes(), tmp_path / "elsewhere", out / "b.zip"
    restore(out / "a.zip", target)
    as_made = read_files(target)
    shutil.rmtree(target)
    for cut in range(0, len(whole), len(whole) // 12):
        bad.write_bytes(whole[:cut])
        with pytest.raises(Malformed):
            restore(bad, target)
    for place in range(5, len(whole), len(whole) // 40):
        bad.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            restore(bad, target)
        except (Malformed, Broken, Refused):
            assert not target.exists()
        else:  # a bit of the archive's own that carries nothing: the content is what was signed
            assert read_files(target) == as_made
            shutil.rmtree(target)
    assert sorted(path.name for path in tmp_path.iterdir() if "staged" in path.name) == []


def rewrite(source: Path, target: Path, home: Path, change: Any, *, sign: bool = True) -> None:
    """The backup with its manifest and members changed, signed anew by the home's own key or left as it was."""
    with zipfile.ZipFile(source) as archive:
        members = {info.filename: (info, archive.read(info)) for info in archive.infolist()}
    manifest = json.loads(members.pop("manifest.json")[1])
    signature = members.pop("manifest.sig")[1]
    change(manifest, members)
    content = json.dumps(manifest).encode()
    if sign:
        signature = KeyFile(home / "keys" / "node.key").sign(b"zuno backup 1\n" + content).hex().encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, body in members.values():
            archive.writestr(info, body)
        archive.writestr("manifest.json", content)
        archive.writestr("manifest.sig", signature)


def _be_newer(manifest: Any, members: Any) -> None:
    manifest["format"] = 2


def _rename(name: str) -> Any:
    def change(manifest: Any, members: Any) -> None:
        info, body = members.pop("spend.json")
        info.filename = name
        members[name] = info, body
        next(file for file in manifest["files"] if file["name"] == "spend.json")["name"] = name

    return change


def _be_link(manifest: Any, members: Any) -> None:
    members["spend.json"][0].external_attr = 0o120777 << 16


def _add_member(manifest: Any, members: Any) -> None:
    members["alerts.json"] = zipfile.ZipInfo("alerts.json"), b"{}"


def _change_member(manifest: Any, members: Any) -> None:
    members["spend.json"] = members["spend.json"][0], b"[]"


def _be_a_bomb(manifest: Any, members: Any) -> None:
    members["spend.json"] = members["spend.json"][0], bytes(50_000_000)


def _claim_more(manifest: Any, members: Any) -> None:
    manifest["seq"] += 5


def _drop_file(manifest: Any, members: Any) -> None:
    del members["kill.lock"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_be_newer, Refused),
        (_rename("../spend.json"), Refused),
        (_rename("lab/../../spend.json"), Refused),
        (_rename("/tmp/spend.json"), (Refused, Malformed)),
        (_rename("keys/node.key"), Refused),
        (_rename("notes.txt"), Refused),
        (_add_member, Broken),
        (_drop_file, Broken),
        (_change_member, Broken),
        (_be_a_bomb, Broken),
    ],
)
def test_a_backup_that_was_made_to_harm_writes_nothing(
    filled: Path, out: Path, tmp_path: Path, change: Any, error: Any
) -> None:
    back_up(filled, out / "a.zip")
    rewrite(out / "a.zip", out / "b.zip", filled, change)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(error):
        restore(out / "b.zip", tmp_path / "elsewhere")
    assert set(tmp_path.rglob("*")) == before


def test_a_member_that_says_it_is_a_link_becomes_a_plain_file(filled: Path, out: Path, tmp_path: Path) -> None:
    back_up(filled, out / "a.zip")
    rewrite(out / "a.zip", out / "b.zip", filled, _be_link)
    restore(out / "b.zip", tmp_path / "elsewhere")
    assert not [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_symlink()]


def test_a_manifest_that_somebody_else_wrote_is_not_believed(filled: Path, out: Path, tmp_path: Path) -> None:
    back_up(filled, out / "a.zip")
    rewrite(out / "a.zip", out / "b.zip", filled, _claim_more, sign=False)
    with pytest.raises(Broken):
        restore(out / "b.zip", tmp_path / "elsewhere")


@pytest.mark.parametrize("there", ["journal.db", "kill.lock", "web.lock", "notes.txt"])
def test_a_home_that_holds_anything_is_left_alone(filled: Path, out: Path, tmp_path: Path, there: str) -> None:
    back_up(filled, out / "a.zip")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / there).write_text("x")
    with pytest.raises(Refused):
        restore(out / "a.zip", elsewhere)
    assert read_files(elsewhere) == {there: b"x"}
    (elsewhere / there).unlink()
    (elsewhere / "logs").mkdir()
    (elsewhere / "logs" / "zuno.log").write_text("x")
    assert restore(out / "a.zip", elsewhere) == 8


def test_a_broken_journal_is_not_backed_up_over_a_whole_one(filled: Path, out: Path) -> None:
    back_up(filled, out / "a.zip")
    whole = (out / "a.zip").read_bytes()
    (filled / "journal.broken").write_text("entry 3: its body and its hash disagree\n")
    with pytest.raises(Broken):
        back_up(filled, out / "a.zip")
    (filled / "journal.broken").unlink()
    (filled / "journal.head").unlink()
    with pytest.raises(Broken):
        back_up(filled, out / "a.zip")
    assert (out / "a.zip").read_bytes() == whole


@pytest.mark.parametrize("room", [100, 5_000, 20_000])
def test_a_full_disk_leaves_the_older_backup_and_no_half_file(filled: Path, out: Path, room: int) -> None:
    back_up(filled, out / "a.zip")
    whole = (out / "a.zip").read_bytes()
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            back_up(filled, out / "a.zip")
        except Unavailable:  # `DiskFull`, or what SQLite calls an I/O error
            os._exit(7)
        except BaseException:
            os._exit(8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"a.zip": whole}


STRIDES = pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.soak)])
"""Every fifth step; `make soak` tries all."""


@STRIDES
def test_a_backup_killed_at_any_step_leaves_the_older_one_or_the_new(filled: Path, out: Path, stride: int) -> None:
    target = out / "a.zip"
    back_up(filled, target)
    node = KeyFile(filled / "keys" / "node.key").public

    def after(ended: bool) -> None:
        made = find_manifest(target)
        assert made is not None
        assert made.node == node

    steps = die_at_each_step(lambda: back_up(filled, target, at=NOW + 1_000), lambda: None, after, stride)
    assert steps > 20
    assert [path.name for path in out.iterdir()] == ["a.zip"]  # the last one removed what the dead had left


@STRIDES
def test_a_restore_killed_at_any_step_leaves_no_home_or_a_whole_one(
    filled: Path, out: Path, tmp_path: Path, stride: int
) -> None:
    back_up(filled, out / "a.zip")
    elsewhere, ends = tmp_path / "new" / "home", []

    def before() -> None:
        if elsewhere.exists():
            shutil.rmtree(elsewhere)
        elsewhere.mkdir(parents=True)

    def after(ended: bool) -> None:
        names = set(read_files(elsewhere))
        assert not names or {"journal.db", "journal.head", "kill.lock", "keys/node.pub"} <= names
        ends.append(bool(names))

    def act() -> None:
        with unpack_backup(out / "a.zip", elsewhere):
            pass

    die_at_each_step(act, before, after, stride)
    assert ends[0] is False
    assert ends[-1] is True
    assert [path.name for path in elsewhere.parent.iterdir()] == ["home"]
    assert asyncio.run(verify_journals(elsewhere)) == 8
