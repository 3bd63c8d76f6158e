"""`zuno`: hand the command line to its front end; everything else is opened when a command needs it."""

from __future__ import annotations

import gc
import io
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from zuno.doors.shell.turns import ShellHost
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.lp.service.views import PositionsView

T = TypeVar("T")


def _open(home: str | None, *, mending: bool = False) -> Zuno:
    from zuno.wiring import open_zuno

    zuno = open_zuno(home, mending=mending)
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    return zuno


def _lock_account(home: str | None, account: str) -> None:
    from zuno.adapters.kill_lock import KillLockFile, find_home

    KillLockFile(find_home(home, os.environ)).lock(account, "terminal")


def _find_account(home: str | None, account: str) -> str | None:
    from zuno.settings import read_settings

    return read_settings(os.environ, None if home is None else Path(home)).find_account(account)


def main() -> None:
    gc.disable()  # until Zuno is open: what is imported stays, and looking through it takes a tenth of a command's time
    _mend_streams()
    signal.signal(signal.SIGTERM, _stop_on_sigterm)
    if "ZUNO_PART" in os.environ:
        from zuno.adapters.part_processes import follow_supervisor
        from zuno.doors.cli.service import supervisor

        supervisor.append(follow_supervisor())
    try:
        from zuno.doors.cli.main import run

        code = run(
            sys.argv[1:],
            _open,
            shell=_shell if _somebody_there() else None,
            lock_account=_lock_account,
            find_account=_find_account,
            mender=partial(_open, mending=True),
        )
    except KeyboardInterrupt:  # before the command line was even read
        from zuno.doors.cli.run_command import tell_stopped

        code = tell_stopped(json="--json" in sys.argv)
    from zuno.doors.cli.run_command import find_exit_code

    _discard_errors()
    # The system takes it all back at once; DuckDB alone counts at the end what was left to it, and prints that.
    (gc.unfreeze if "duckdb" in sys.modules else gc.freeze)()
    sys.exit(find_exit_code(code))


def _stop_on_sigterm(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends a command as Ctrl-C does, also where Ctrl-C is ignored (`zuno … &` in a script)."""
    from zuno.doors.cli.run_command import note_sigterm

    note_sigterm()
    interrupt = signal.getsignal(signal.SIGINT)
    (interrupt if callable(interrupt) else signal.default_int_handler)(signal.SIGINT, frame)


def _discard_errors() -> None:
    """What stderr could not take stays in its buffer, and would end the process with 120 instead of its own code."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _somebody_there() -> bool:
    """A person at a terminal, or lines in a pipe or a file; otherwise `zuno` alone shows its help."""
    if _at_a_terminal():
        return True
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return sys.stdin is not None and (stat.S_ISFIFO(mode) or stat.S_ISREG(mode))


def _shell(home: str | None) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # Ctrl-C would only end its line
    if _at_a_terminal():
        from zuno.doors.shell.terminal import converse

        return converse(door_of(home))
    from zuno.doors.shell.turns import run_lines

    return run_lines(door_of(home), sys.stdin)


def door_of(home: str | None) -> ShellHost:
    """The command line, handed to the shell: the two front ends do not know each other."""
    from zuno.adapters.atomic_file import replace_file
    from zuno.doors.cli.grammar_lookup import CommandTree
    from zuno.doors.cli.main import run
    from zuno.doors.shell.turns import ShellHost

    def open_home(elsewhere: str | None, *, mending: bool = False) -> Zuno:
        return _open(home if elsewhere is None else elsewhere, mending=mending)

    def lock_here(elsewhere: str | None, account: str) -> None:
        _lock_account(home if elsewhere is None else elsewhere, account)

    def find_here(elsewhere: str | None, account: str) -> str | None:
        return _find_account(home if elsewhere is None else elsewhere, account)

    def running(words: Sequence[str], shown: Callable[[View], None]) -> int:
        mender = partial(open_home, mending=True)
        return run(words, open_home, shown=shown, lock_account=lock_here, find_account=find_here, mender=mender)

    return ShellHost(
        running,
        CommandTree(),
        open_home(None).place(),
        lambda text: _ask_once(open_home(None), lambda zuno: zuno.interpreter().read(text)),
        partial(replace_file, durable=False),
        lambda chain: _list_positions(open_home(None), chain),
    )


def _ask_once(zuno: Zuno, question: Callable[[Zuno], Awaitable[T]]) -> T:
    import asyncio

    async def answer() -> T:
        try:
            return await question(zuno)
        finally:
            await zuno.close()

    return asyncio.run(answer())


def _list_positions(zuno: Zuno, chain: str | None) -> PositionsView | None:
    from zuno.kernel.errors import ZunoError

    try:
        return _ask_once(zuno, lambda opened: opened.lp(chain).positions())
    except ZunoError:
        return None


def _mend_streams() -> None:
    """A closed stream swallows what is written; one that cannot spell a sign writes a question mark."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
