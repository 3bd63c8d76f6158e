"""A strategy in Python: its file is read here and runs in a process of its own that has no keys and reaches nothing.

Whether that holds is tried, not assumed: in every process code of ours attempts what must fail, once it is confined.
Where anything succeeds, the owner's code is not run there.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from zuno.adapters.atomic_file import read_foreign_file
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis

CHILD: Final = Path(__file__).with_name("confined_child.py")
LAYERS: Final = ("namespaces", "landlock", "seccomp")
MEMORY_BYTES: Final = 512 * 1024 * 1024
MOST_BYTES: Final = 256 * 1024
"""Of code, and of what it writes."""
_log: Final = logging.getLogger(__name__)


@dataclass(eq=False)
class Confinement:
    """Runs code that may not be trusted. `layers`: those that are tried."""

    seconds: float
    layers: Sequence[str] = LAYERS
    platform: str = sys.platform
    _lacking: str = field(default="", init=False)  # of these layers, in the last process

    async def find_gap(self) -> str:
        """Why no code can be run here now; empty: it is confined."""
        try:
            await self.run("def targets(view): return {}", b"{}")
        except Refused as error:
            return str(error)
        return ""

    async def run(self, code: str, view: bytes) -> dict[str, Any]:
        """The child's answer. `Refused` where it is not confined: the code was not run. `Unavailable` for one that
        takes too long, `Malformed` for one that is none."""
        if self.platform != "linux":
            raise Refused("only Linux can confine it")
        limits = {
            "layers": self.layers,
            "memory": MEMORY_BYTES,
            "seconds": int(self.seconds) + 2,
            "parent": os.getpid(),
            "code": code,
        }
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-B", str(CHILD), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL,
            env={}, cwd="/", start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self.seconds):
                output = await _exchange(child, json.dumps(limits).encode()[:-1] + b',"view":' + view + b"}")
                ended = await child.wait()
        except TimeoutError:
            raise Unavailable(f"it took longer than {self.seconds:g} s") from None
        finally:
            if child.returncode is None:  # once it has been waited for, its id may be another's
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            await child.communicate()
        try:
            answer: dict[str, Any] = json.loads(output.rstrip().rpartition(b"\n")[2])
            reached = ", ".join(answer["reached"])
            lacking = "; ".join(f"{name}: {trouble}" for name, trouble in answer["layers"].items() if trouble)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise Malformed(f"it ended without an answer (exit code {ended})") from None
        if lacking != self._lacking:
            self._lacking = lacking
            _log.warning("strategies in Python are confined %s", f"without {lacking}" if lacking else "by all layers")
        if reached:
            raise Refused("; ".join(filter(None, (f"this kernel leaves {reached} within reach", lacking))))
        return answer


async def _exchange(child: asyncio.subprocess.Process, asked: bytes) -> bytes:
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        child.stdin.write(asked)
        await child.stdin.drain()
        child.stdin.close()
    output = b""
    while chunk := await child.stdout.read(65_536):
        output += chunk
        if len(output) > MOST_BYTES:
            raise Malformed(f"it wrote more than {MOST_BYTES // 1024} KB")
    return output


def read_code(path: Path) -> tuple[str, str]:
    """A strategy's code and its digest. `Refused` for a file that is none."""
    content = read_foreign_file(path, MOST_BYTES)
    if content is None:
        raise Refused(f"there is no file {path}")
    return content.decode(errors="replace"), sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class PythonStrategy:
    path: Path
    digest: str
    """As it was added."""
    confinement: Confinement

    async def ask(self, at: Millis, view: bytes) -> Mapping[str, object]:
        code, digest = read_code(self.path)
        if digest != self.digest:
            raise Refused(f"{self.path} was changed since it was added; add it again")
        answer = await self.confinement.run(code, view)
        if not isinstance(targets := answer.get("targets"), dict):
            raise Malformed(f"it raised {plain_text(str(answer.get('error')), 200)}")
        return targets
