"""What is kept beside the journal: the head in one sector, the lock, the note."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from zuno.adapters.store.table_store import HeadFile
from zuno.kernel.errors import Unavailable

FIRST, SECOND = b'{"seq":0}\n', b'{"seq":1000000}\n'


def test_a_head_fills_one_sector_and_comes_back_as_it_was_given(tmp_path: Path) -> None:
    outside = HeadFile(tmp_path, "journal")
    assert outside.head() is None
    outside.create(FIRST)
    assert outside.head() == FIRST
    outside.replace_head(SECOND)
    assert outside.head() == SECOND
    outside.replace_head(FIRST)
    assert outside.head() == FIRST
    file = tmp_path / "journal.head"
    assert file.stat().st_size == 512
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("place", [0, 5, 200, 510, 511])
def test_no_byte_of_the_sector_can_change_unseen(tmp_path: Path, place: int) -> None:
    outside = HeadFile(tmp_path, "journal")
    outside.create(FIRST)
    sector = bytearray((tmp_path / "journal.head").read_bytes())
    sector[place] ^= 1
    (tmp_path / "journal.head").write_bytes(sector)
    assert outside.head() != FIRST


@pytest.mark.parametrize("size", [0, 10, 511, 513])
def test_a_file_of_another_size_is_not_a_head(tmp_path: Path, size: int) -> None:
    outside = HeadFile(tmp_path, "journal")
    outside.create(FIRST)
    (tmp_path / "journal.head").write_bytes((tmp_path / "journal.head").read_bytes().ljust(513)[:size])
    assert outside.head() != FIRST


@pytest.mark.parametrize("head", [b"{}", b"x" * 512 + b"\n"])
def test_what_does_not_fit_is_not_written(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(ValueError, match=r"\bline\b"):
        HeadFile(tmp_path, "journal").create(head)


def test_a_note_outlives_its_writer(tmp_path: Path) -> None:
    outside = HeadFile(tmp_path, "journal")
    with outside.alone() as held:
        assert held.read_note() is None
        held.begin(b"a long note")
        held.begin(b"a note")
    with HeadFile(tmp_path, "journal").alone() as held:
        assert held.read_note() == b"a note"
        held.finish()
        assert held.read_note() is None


def test_whoever_waits_too_long_is_told_who_to_look_for(tmp_path: Path) -> None:
    with open(tmp_path / "journal.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match=r"journal\.lock"), HeadFile(tmp_path, "journal", patience=0.05).alone():
            pass


def test_a_home_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_bytes(b"a file, in which not even root can write another")
    with pytest.raises(Unavailable):
        HeadFile(home, "journal").create(FIRST)


def test_a_head_is_not_made_by_replacing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        HeadFile(tmp_path, "journal").replace_head(FIRST)
    assert not (tmp_path / "journal.head").exists()
