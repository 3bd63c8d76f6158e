"""The process that runs an owner's `targets(view)`. It is started by path, imports nothing of Zuno, and confines itself
before a line of the owner's runs: no files, no network, no other processes, little memory.

stdin: `{"layers": …, "memory": bytes, "seconds": …, "parent": pid, "code": …, "view": …}`. The last line of stdout:
`{"targets": …}` or `{"error": …}`, with what is within reach and which layers hold. Where anything is within reach,
the owner's code is not run.
"""

import _socket
import ctypes
import json
import os
import platform
import resource
import struct
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

MODULES: Final = (
    "bisect collections dataclasses datetime decimal enum fractions functools heapq itertools json math operator "
    "random re statistics string time typing _strptime _socket"
).split()
"""Imported before the files are gone: what a strategy may import."""
_ALLOWED: Final = {
    "x86_64": (0xC000003E, "0 1 3 5 8 9 10 11 12 13 14 15 24 25 28 35 39 60 96 131 186 202 228 230 231 318"),
    "aarch64": (
        0xC00000B7,
        "63 64 57 80 62 222 226 215 214 134 135 139 124 216 233 101 172 93 169 132 178 98 113 115 94 278",
    ),
}
"""By machine: its name in a seccomp filter, and the system calls that computing needs: read write close fstat lseek
mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn sched_yield mremap madvise nanosleep getpid exit
gettimeofday sigaltstack gettid futex clock_gettime clock_nanosleep exit_group getrandom."""
_RIGHTS: Final = (13, 14, 15, 15, 16)
"""How many rights over files each version of Landlock knows."""
_NAMESPACES: Final = 0x10000000 | 0x20000 | 0x40000000 | 0x8000000 | 0x4000000  # user, mount, network, ipc, uts
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def call(name: str, *given: int | bytes | None) -> int:
    """A function of the C library; `OSError` where it fails."""
    answer = getattr(_LIBC, name)(*(ctypes.c_long(each) if isinstance(each, int) else each for each in given))
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(answer)


def limit_resources(memory: int, seconds: int) -> None:
    limits = {"AS": memory, "CPU": seconds, "FSIZE": 0, "NPROC": 0, "CORE": 0, "NOFILE": 16}
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    call("prctl", 1, 9, 0, 0, 0)  # it is killed when its parent is gone
    call("prctl", 4, 0, 0, 0, 0)  # nobody reads its memory
    call("prctl", 38, 1, 0, 0, 0)  # no new privileges


def enter_namespaces() -> None:
    """A network without interfaces, and a root without files."""
    call("unshare", _NAMESPACES)
    call("mount", b"none", b"/", None, 0x40000 | 0x4000, None)  # private, recursive
    call("mount", b"none", b"/tmp", b"tmpfs", 1 | 2 | 4 | 8, b"size=4k")  # read-only
    os.chdir("/tmp")
    call("syscall", _PIVOT_ROOT[platform.machine()], b".", b".")
    call("umount2", b".", 2)
    os.chdir("/")


def enter_landlock() -> None:
    """No right over any file; from version 4 no TCP, from 6 no signal and no socket to another process."""
    version = call("syscall", 444, None, 0, 1)
    files = (1 << _RIGHTS[min(version, len(_RIGHTS)) - 1]) - 1
    rights = struct.pack("=QQQ", files, 3, 3)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    ruleset = call("syscall", 444, rights, len(rights), 0)
    call("syscall", 446, ruleset, 0)
    os.close(ruleset)


def filter_system_calls() -> None:
    """All but those of `_ALLOWED` fail with EPERM; those of another machine's tables end the process."""
    machine, numbers = _ALLOWED[platform.machine()]
    steps = [(0x20, 0, 0, 4), (0x15, 1, 0, machine), (0x06, 0, 0, 0x80000000), (0x20, 0, 0, 0)]
    for number in map(int, numbers.split()):
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x7FFF0000)]
    steps.append((0x06, 0, 0, 0x00050001))
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    call("prctl", 22, 2, struct.pack("@HP", len(steps), ctypes.addressof(program)), 0, 0)


LAYERS: Final = {"namespaces": enter_namespaces, "landlock": enter_landlock, "seccomp": filter_system_calls}


def confine(layers: list[str]) -> dict[str, str]:
    """Apply what the kernel has of these; what is wrong with each, empty where it holds."""
    states = {}
    for name in layers:
        try:
            LAYERS[name]()
            states[name] = ""
        except (OSError, KeyError, AttributeError) as error:
            states[name] = str(error)
    return states


def find_reached(parent: int) -> list[str]:
    """What succeeds of what must fail."""
    attempts: dict[str, Any] = {
        "files": lambda: os.open(__file__, os.O_RDONLY),
        "the network": lambda: _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", 9)),
        "new processes": lambda: os.fork() or os._exit(0),
        "other processes": lambda: os.kill(parent, 0),
    }
    reached = []
    for name, attempt in attempts.items():
        try:
            attempt()
            reached.append(name)
        except OSError:
            continue
    return reached


def ask_strategy(code: str, view: dict[str, Any]) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "strategy"}
    markets = {name: SimpleNamespace(**history) for name, history in view.pop("markets", {}).items()}
    for history in markets.values():
        history.funding = {int(day): paid for day, paid in history.funding.items()}
    exec(compile(code, "strategy.py", "exec"), scope)
    targets = scope["targets"](SimpleNamespace(markets=markets, **view))
    if not isinstance(targets, dict):
        raise TypeError(f"targets(view) returned {type(targets).__name__}, not a dict")
    return {str(name): weight for name, weight in targets.items()}


def main() -> None:
    with os.fdopen(0, "rb", closefd=False) as stdin:
        asked = json.loads(stdin.read())
    for name in MODULES:
        import_module(name)
    limit_resources(asked["memory"], asked["seconds"])
    states = {"layers": confine(asked["layers"]), "reached": find_reached(asked["parent"])}
    try:
        targets = {} if states["reached"] else ask_strategy(asked["code"], asked["view"])
        answer = json.dumps({"targets": targets, **states})
    except BaseException as error:  # the owner's code may end in any way
        answer = json.dumps({"error": f"{type(error).__name__}: {error}"[:300], **states})
    os.write(1, f"\n{answer}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
