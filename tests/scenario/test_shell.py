"""An evening in the shell: a person types, things are shown, and `it` is what they look at."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.wire.forked import ZunoProcess, run_words
from zuno.__main__ import door_of
from zuno.doors.shell.terminal import converse

PATIENCE = 120.0
"""Seconds for one answer; a machine that is busy is not a failure."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|\r")


def typed(home: Path, *lines: str) -> int:
    """The whole shell, at a keyboard that types these lines."""
    with create_pipe_input() as keys:
        keys.send_text("".join(f"{line}\r" for line in lines))
        return converse(door_of(str(home)), keys, DummyOutput())


def test_an_evening(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = typed(
        home,
        "show positions",
        "inspect the first",
        "recommend rebalance, safely",
        "why",
        "what are my options",
        "switch to devnet",
        "switch to sim",
        "pnl of it since 7d",
        "exit",
        "show pools",
    )
    told = capsys.readouterr()
    assert code == 0
    echoes = [line for line in told.err.splitlines() if line.startswith("→")]
    plan = re.search(r"plan_[0-9a-f]{12}", told.out)
    assert plan is not None
    assert [" ".join(line.split()) for line in echoes] == [
        "→ zuno lp positions",
        "→ zuno lp inspect 1 --chain sim",
        "→ zuno lp recommend rebalance 1 --profile conservative --chain sim",
        f"→ zuno why {plan[0]}",
        f"→ zuno plan show {plan[0]}",
        "→ zuno lp pnl 1 --since 7d --chain sim",
    ]
    assert "Position 1: " in told.out
    assert "exact" in told.out
    assert "Pools on" not in told.out, "exit was the end"
    history = (home / "history").read_text().splitlines()
    assert history[:2] == ["show positions", "inspect the first"]


def test_ctrl_c_clears_a_line_and_ctrl_d_leaves(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with create_pipe_input() as keys:
        keys.send_text("show pos\x03show pools\r\x04")
        assert converse(door_of(str(home)), keys, DummyOutput()) == 0
    assert "Pools: 3" in capsys.readouterr().out
    assert (home / "history").read_text() == "show pools\n"


def test_the_word_cannot_be_typed_where_there_is_no_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(home, "recommend rebalance 1", "approve it", "apply it", "exit") == 0
    told = capsys.readouterr()
    assert told.err.count(" terminal") >= 1
    assert "approved" not in told.out


def test_the_demos_plan_is_not_this_homes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed(home, "demo", "approve it", "exit")
    assert "Which plan?" in capsys.readouterr().err


def piped(home: Path, text: str) -> Any:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    environment = {**bare, "ZUNO_HOME": str(home)}
    return run_words([], input=text, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280)


def test_lines_in_a_pipe_are_run_one_after_the_other(home: Path) -> None:
    ran = piped(home, "# a remark\nshow positions\ninspect the second\nwhat is the weather\nlp pools --json\n")
    assert ran.returncode == 2, "the last line that failed"
    assert "Position 2: " in ran.stdout
    assert '"pools":[' in ran.stdout
    assert "  1  zuno help" in ran.stderr, "what cannot be done is answered, with what can"
    assert not (home / "history").exists(), "nobody typed these"


def test_nobody_there_gets_the_help(home: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    environment = {**bare, "ZUNO_HOME": str(home)}
    ran = run_words([], stdin=subprocess.DEVNULL, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert ran.returncode == 0
    assert "Usage" in ran.stdout


def test_a_home_that_cannot_be_used_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = piped(tmp_path / "file", "show positions\n")
    assert ran.returncode == 4
    assert str(tmp_path / "file") in ran.stderr
    assert "Traceback" not in ran.stderr


class Terminal:
    """The shell in a process with a terminal of its own."""

    def __init__(self, home: Path) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
        self.process = ZunoProcess(
            [],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**bare, "ZUNO_HOME": str(home), "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self.screen = ""

    def type(self, text: str) -> None:
        self.screen = ""
        os.write(self._fd, text.encode())

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while words not in self.screen:
            assert time.monotonic() < deadline, f"no {words!r} in {self.screen[-2000:]}"
            if select.select([self._fd], [], [], 0.5)[0]:
                seen = os.read(self._fd, 65_536)
                if b"\x1b[6n" in seen:
                    os.write(self._fd, b"\x1b[1;1R")  # where the cursor is, as a terminal answers
                self.screen += _ESCAPES.sub("", seen.decode("utf-8", "replace"))

    def ended(self) -> int:
        """Its exit code; what it still writes is read, or it would wait for its reader."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError):
                if select.select([self._fd], [], [], 0.2)[0]:
                    os.read(self._fd, 65_536)
        return self.process.wait(timeout=1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._fd)


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    opened = Terminal(home)
    try:
        yield opened
    finally:
        opened.close()


def test_at_a_real_terminal_the_word_is_typed(terminal: Any) -> None:
    terminal.wait_for("zuno›")
    terminal.type("recommend rebalance 1\r")
    terminal.wait_for("native price")
    plan = re.search(r"plan_[0-9a-f]{12}", terminal.screen)
    assert plan is not None
    terminal.wait_for("zuno›")
    terminal.type("approve it\r")
    terminal.wait_for(f"Type approve to approve {plan[0]}:")
    assert f"→ zuno plan approve {plan[0]}" in terminal.screen
    terminal.type("yes\n")
    terminal.wait_for("zuno›")
    terminal.type("status of the plan\r")
    terminal.wait_for(f"→ zuno plan status {plan[0]}")
    terminal.wait_for("zuno›")
    terminal.type("monitor run\r")
    terminal.wait_for("sim block")
    terminal.type("\x03")
    terminal.wait_for("The monitor ended")
    terminal.wait_for("zuno›")
    terminal.type("exit\r")
    assert terminal.ended() == 0
