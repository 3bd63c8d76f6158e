"""A home that moves to another folder: copied, verified, switched; one of the two opens at any moment."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.wire.homes import (
    die_at_each_step,
    fill_home,
    open_journal,
    put_bundle_forms,
    read_bundles,
    read_files,
    write,
)
from zuno.adapters.file_lock import desk_lock
from zuno.adapters.home_files import check_moved
from zuno.adapters.home_move import move_home
from zuno.adapters.kill_lock import KillLockFile
from zuno.adapters.store.table_store import HeadFile
from zuno.kernel.errors import Broken, Refused, UsageError
from zuno.wiring.home import verify_journals


@pytest.fixture
def filled(home: Path) -> Path:
    return fill_home(home)


def move(home: Path, target: Path) -> tuple[int, int]:
    return asyncio.run(move_home(home, target, verify_journals, HeadFile(home, "journal")))


def opens(home: Path) -> bool:
    """As a start does: the mark is read, then the journal must hold and have entries."""
    if not (home / "journal.head").exists():
        return False
    try:
        check_moved(home, in_postgres=False)
    except Refused:
        return False
    return asyncio.run(verify_journals(home)) >= 8


def test_everything_moves_and_the_old_one_says_where(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "home"
    (filled / "mesh" / "critic" / "axl.json").write_text(
        json.dumps({"PrivateKeyPath": f"{filled}/mesh/critic/axl.key"})
    )
    before = read_files(filled)
    size, entries = move(filled, target)
    after = read_files(target)
    assert entries == 8
    ours = (content for name, content in after.items() if not name.endswith(("-shm", "-wal", "home.mark")))
    assert size == sum(map(len, ours))
    gone = {name for name in before if name not in after}
    assert {name for name in gone if not name.endswith((".lock", "-wal", "-shm"))} == set()
    assert after["keys/node.key"] == before["keys/node.key"]
    assert json.loads(after["mesh/critic/axl.json"])["PrivateKeyPath"] == f"{target}/mesh/critic/axl.key"
    assert KillLockFile(target).why_locked("live") is not None
    assert (opens(filled), opens(target)) == (False, True)
    with pytest.raises(Refused, match=str(target)):
        check_moved(filled, in_postgres=False)
    write(open_journal(target), 1)
    with pytest.raises(Broken, match="moved to"):  # a process that had it open all the time
        write(open_journal(filled), 1)
    with pytest.raises(UsageError):
        move(target, target / "below")
    with pytest.raises(Refused):
        move(target, filled)


def test_a_kill_during_the_move_is_carried(filled: Path, tmp_path: Path) -> None:
    async def kill_and_verify(copy: Path) -> int:
        KillLockFile(filled).lock("demo", "cli")
        return await verify_journals(copy)

    target = tmp_path / "elsewhere"
    asyncio.run(move_home(filled, target, kill_and_verify, HeadFile(filled, "journal")))
    assert {account for account, _ in KillLockFile(target).list_kills()} == {"demo", "live"}


def test_bundles_in_each_form_and_the_archive_are_carried(filled: Path, tmp_path: Path) -> None:
    bundles = put_bundle_forms(filled)
    move(filled, tmp_path / "elsewhere")
    assert read_bundles(open_journal(tmp_path / "elsewhere"), bundles) == bundles


def test_nothing_moves_while_something_runs(filled: Path, tmp_path: Path) -> None:
    before = read_files(filled)
    with desk_lock(filled, "paper"), pytest.raises(Refused, match=r"desk-paper\.lock"):
        move(filled, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()
    assert {name for name in read_files(filled) if name not in before} <= {"leases/desk-paper.lock"}


def test_a_journal_that_does_not_hold_stays_where_it_is(filled: Path, tmp_path: Path) -> None:
    head = bytearray((filled / "journal.head").read_bytes())
    head[40] ^= 1
    (filled / "journal.head").write_bytes(head)
    with pytest.raises(Broken):
        move(filled, tmp_path / "elsewhere")
    assert not [path for path in tmp_path.iterdir() if path != filled]


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.soak)])
def test_a_move_killed_at_any_step_leaves_one_home_that_opens(filled: Path, tmp_path: Path, stride: int) -> None:
    place = tmp_path / "tries"
    home, target, seen = place / "old", place / "new", set()

    def before() -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(filled, home)

    def after(ended: bool) -> None:
        state = (opens(home), opens(target))
        assert sum(state) == 1
        seen.add(state)

    die_at_each_step(lambda: move(home, target), before, after, stride)
    assert seen == {(True, False), (False, True)}
