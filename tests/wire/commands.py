"""The command line as a person runs it: exit code and both streams, in a process of its own where that matters."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import PIPE
from threading import Thread
from typing import Any
from unittest.mock import patch

from tests.wire.forked import ZunoProcess
from zuno.doors.cli.main import run
from zuno.wiring import open_zuno

SECONDS = 240
"""What a command may take: less than a test may, so that it is the command that is named."""


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its stdout as one JSON document."""
        return json.loads(self.out)


Zuno = Callable[..., Ran]


def shell(home: Path, environment: dict[str, str]) -> dict[str, str]:
    """Only what a bare login shell has, and what the test sets."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    return {**bare, "ZUNO_HOME": str(home), **environment}


def run_zuno(home: Path, *arguments: str, **environment: str) -> Ran:
    """The whole command line behind its door, without the second an interpreter takes to start.

    In a thread, because a command has an event loop of its own and the test may have one too; one that never ends is
    left behind, and the test fails.
    """
    out, err, code = io.StringIO(), io.StringIO(), Future[int]()

    def answer() -> None:
        try:
            code.set_result(run(arguments, open_zuno, mender=partial(open_zuno, mending=True)))
        except BaseException as fault:
            code.set_exception(fault)

    with patch.dict(os.environ, shell(home, environment), clear=True), redirect_stdout(out), redirect_stderr(err):
        Thread(target=answer, daemon=True).start()
        return Ran(code.result(timeout=SECONDS), out.getvalue(), err.getvalue())


def run_process(home: Path, *arguments: str, **environment: str) -> Ran:
    """The same by a real process: for what only a process has, its streams and company."""
    with ZunoProcess(list(arguments), env=shell(home, environment), stdout=PIPE, stderr=PIPE, text=True) as process:
        out, err = process.communicate(timeout=SECONDS)
    return Ran(process.returncode, out, err)
