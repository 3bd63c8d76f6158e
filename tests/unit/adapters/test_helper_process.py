"""The process beside this one: whoever asks it may go away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from errno import EMFILE
from pathlib import Path
from typing import Any

from zuno.adapters.helper_process import Handle, HelperProcess, Tell


async def open_echo() -> Handle:
    async def echo(asked: Any, tell: Tell) -> Any:
        return asked

    return echo


async def test_a_process_that_cannot_be_started_is_started_later() -> None:
    failures = [OSError(EMFILE, "too many open files")]

    def read_arguments() -> tuple[Any, ...]:
        if failures:
            raise failures.pop()
        return ()

    helper = HelperProcess(open_echo, read_arguments)
    helper.start()
    try:
        async with asyncio.timeout(60):
            assert await helper.ask("what") == "what"
    finally:
        await asyncio.to_thread(helper.stop)


async def test_whoever_asks_and_goes_away_takes_the_answer_from_nobody_else() -> None:
    helper = HelperProcess(open_echo, tuple)
    helper.start()
    try:
        gone = asyncio.create_task(helper.ask("first"))
        await asyncio.sleep(0)
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        async with asyncio.timeout(60):
            assert await helper.ask("second") == "second"
    finally:
        await asyncio.to_thread(helper.stop)


KILLED = """
import asyncio, os, signal
from tests.unit.adapters.test_helper_process import HelperProcess, open_echo

async def run() -> None:
    helper = HelperProcess(open_echo, tuple)
    helper.start()
    await helper.ask("what")
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(run())
"""


def test_a_killed_parent_ends_it_without_a_word(tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    done = subprocess.run(
        [sys.executable, str(program)], env=os.environ | {"PYTHONPATH": os.getcwd()}, capture_output=True, timeout=120
    )  # its errors are read until the helper has ended as well
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
