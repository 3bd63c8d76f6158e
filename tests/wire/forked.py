"""`zuno` as a process of its own without the second or two its imports take: forked from a process that has made them.

Its streams, environment, session, signals and exit code are its own. What only a fresh interpreter has (the encoding of
its streams, settings of libraries, memory nobody shares) needs `[sys.executable, "-m", "zuno"]`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from functools import cache
from typing import IO, Any

from tests.paths import CHECKOUT

STREAMS = 3
LARGEST = 1 << 20
NUMBER = struct.Struct("=i")
IMPORTED = (
    "cryptography.hazmat.primitives.serialization",
    "httpx2",
    "rich.markdown",
    "zuno.adapters.chain.dev_signer",
    "zuno.adapters.chain.sim.writer",
    "zuno.adapters.keys.ed25519",
    "zuno.adapters.keys.wallets",
    "zuno.adapters.prices.feeds",
    "zuno.adapters.store.sqlite",
    "zuno.doors.cli.render",
    "zuno.lp.execute.gate",
    "zuno.lp.service.archive",
    "zuno.lp.service.execution",
    "zuno.lp.service.mesh",
    "zuno.lp.service.recommend",
    "zuno.wiring",
)
DESKS = ("zuno.adapters.series", "zuno.trading.run", "zuno.trading.service", "zuno.trading.watch")
"""Packages of which every module is imported: what the trading desk's commands would load for seconds."""


class ZunoProcess(subprocess.Popen[Any]):
    """What `Popen` makes of `zuno` with these words; of its options those that name streams, `cwd`, `env`, `text` and
    `start_new_session` count; the terminal at the stdin of a new session is its own."""

    _status: int = -1

    def __init__(self, words: list[str], **named: Any) -> None:
        super().__init__(words, **named)

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        """Where `Popen` would fork and execute: the parameters are those of CPython's own method."""
        cwd, env = rest[4:6]
        ends = rest[9:15]
        inputs, outputs, errors = ends[0], ends[3], ends[5]
        own_session = rest[20]
        streams = [given if given != -1 else own for own, given in enumerate((inputs, outputs, errors))]
        self._status, theirs = os.pipe()
        try:
            request = (list(args), dict(os.environ if env is None else env), cwd or os.getcwd(), own_session)
            _open_nursery().send(request, [*streams, theirs])
        finally:
            os.close(theirs)
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]
        self.pid = self._read_number()
        self._child_created = True

    def _read_number(self) -> int:
        found = os.read(self._status, NUMBER.size)
        if not found:
            raise ChildProcessError("the process that forks others has ended")
        return int(NUMBER.unpack(found)[0])

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        code = self._read_number()
        os.close(self._status)
        return self.pid, code

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self.returncode is None:
            pid, code = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(code)  # type: ignore[attr-defined]
        return self.returncode


def run_words(words: list[str], *, input: str | None = None, timeout: float = 60, **named: Any) -> Any:
    """As `subprocess.run` of `zuno` with these words, streams as text."""
    if input is not None:
        named["stdin"] = subprocess.PIPE
    with ZunoProcess(words, text=True, **named) as process:
        out, err = process.communicate(input, timeout)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


class _Nursery:
    """The process that forks the others; it ends with the process that asks it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.wire.forked"], stdin=theirs.fileno(), cwd=CHECKOUT
            )
        atexit.register(self._end)

    def send(self, request: object, streams: list[int]) -> None:
        socket.send_fds(self._requests, [pickle.dumps(request)], streams)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait()


_open_nursery = cache(_Nursery)


def serve(requests: socket.socket) -> tuple[list[str], dict[str, str], str, bool]:
    """Fork for every request and tell its number and how it ended; returns in the child."""
    running: dict[int, int] = {}
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                _tell(running.pop(ended[0]), ended[1], last=True)
        if requests.fileno() not in ready:
            continue
        body, given, _, _ = socket.recv_fds(requests, LARGEST, STREAMS + 1)
        if not body:
            sys.exit()
        *streams, status = given
        if pid := os.fork():
            running[pid] = status
            _tell(status, pid, last=False)
            for fd in streams:
                os.close(fd)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for fd in (*running.values(), status, woken, waking, requests.detach()):
            os.close(fd)
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
            os.close(fd)
        request: tuple[list[str], dict[str, str], str, bool] = pickle.loads(body)
        return request


def _tell(status: int, number: int, *, last: bool) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(status, NUMBER.pack(number))
    if last:
        os.close(status)


def _open_stream(number: int, mode: str, errors: str) -> IO[str]:
    lines = number == 2 or os.isatty(number)
    stream = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    if mode == "w":
        stream.reconfigure(line_buffering=lines)  # type: ignore[attr-defined]
    return stream


def main() -> None:
    from importlib import import_module

    from tests.crash.preload import preload
    from tests.wire.certificates import trust_nobody
    from tests.wire.copied_world import CopiedWorld
    from zuno.__main__ import main as zuno
    from zuno.adapters.chain.sim import world_file
    from zuno.adapters.chain.world import DEFAULT_SEED
    from zuno.adapters.eth_imports import import_eth_account
    from zuno.doors.cli.main import build_command

    trust_nobody()
    import_eth_account()
    for name in IMPORTED:
        import_module(name)
    preload(DESKS)
    build_command()
    CopiedWorld.play(DEFAULT_SEED)
    world_file.SimWorld = CopiedWorld  # type: ignore[assignment, attr-defined]
    gc.collect()
    gc.freeze()
    words, environment, place, own_session = serve(socket.socket(fileno=os.dup(0)))
    if own_session:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(place)
    sys.argv = ["zuno", *words]
    sys.stdin, sys.stdout = _open_stream(0, "r", "strict"), _open_stream(1, "w", "strict")
    sys.stderr = _open_stream(2, "w", "backslashreplace")
    try:
        zuno()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    # The end of an interpreter without its last walk through all modules, which takes longer than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code)


if __name__ == "__main__":
    main()
