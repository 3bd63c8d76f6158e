"""Turns between processes: one at a time by name, given back however the holder ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from zuno.adapters.store.turns import Turns
from zuno.domain.errors import Refused, Unavailable

HOLDER = """
import sys, time
from pathlib import Path
from zuno.adapters.store.turns import Turns
with Turns(Path(sys.argv[1])).alone("sim-0xa1"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(home: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate(timeout=10)


def test_a_name_is_held_once_and_others_are_free(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    with turns.alone("a"):
        with pytest.raises(Refused, match=f"used by process {os.getpid()}; wait until it is done"), turns.alone("a"):
            raise AssertionError("held twice")
        with turns.alone("b"):
            pass
        with Turns(tmp_path / ".").alone("b"):
            pass
    with turns.alone("a"):
        pass


def test_a_turn_is_given_back_after_an_error(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    with pytest.raises(ZeroDivisionError), turns.alone("a"):
        raise ZeroDivisionError
    with turns.alone("a"):
        pass


def test_a_refused_turn_does_not_disturb_the_holder(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    with turns.alone("a"):
        for _ in range(3):
            with pytest.raises(Refused, match=f"process {os.getpid()}"), turns.alone("a"):
                raise AssertionError("held twice")


def test_another_process_s_turn_is_known_by_its_number_and_ends_with_it(tmp_path: Path) -> None:
    child = holder(tmp_path)
    try:
        with pytest.raises(Refused, match=f"used by process {child.pid};"), Turns(tmp_path).alone("sim-0xa1"):
            raise AssertionError("held twice")
        os.kill(child.pid, signal.SIGKILL)
        child.wait(timeout=10)
        with Turns(tmp_path).alone("sim-0xa1"):
            pass
    finally:
        end(child)


def test_a_holder_that_left_a_longer_number_behind_is_not_named(tmp_path: Path) -> None:
    """The file of an earlier process is cut before the new number is written."""
    (tmp_path / "turn-a.lock").write_text("99999999999")
    with Turns(tmp_path).alone("a"):
        assert (tmp_path / "turn-a.lock").read_text() == str(os.getpid())


def test_the_lock_is_its_owner_s_alone(tmp_path: Path) -> None:
    with Turns(tmp_path).alone("a"):
        assert stat.S_IMODE((tmp_path / "turn-a.lock").stat().st_mode) == 0o600


def test_words_in_the_file_are_not_repeated(tmp_path: Path) -> None:
    with Turns(tmp_path).alone("a"):
        (tmp_path / "turn-a.lock").write_bytes(b"\xff\x1b[31m nobody")
        with pytest.raises(Refused, match="used by another process"), Turns(tmp_path).alone("a"):
            raise AssertionError("held twice")


def test_a_home_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="nothing was done"), Turns(tmp_path / "gone").alone("a"):
        raise AssertionError("held nowhere")
