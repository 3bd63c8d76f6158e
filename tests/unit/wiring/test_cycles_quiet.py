"""LangGraph's own tracer stays silent, whatever somebody's shell says: nothing of a run leaves the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STORY = """
import asyncio, sys
from pathlib import Path

reached = []
sys.addaudithook(lambda event, given: reached.append(event) if event in {
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"} else None)

from zuno.adapters.checkpoints import sqlite_checkpoints
from zuno.trading.model.cycle import Node
from zuno.wiring import open_zuno

if sys.argv[2] == "house":
    open_zuno(sys.argv[1]).cycles()
from zuno.trading.run.graph import run_graph

async def step():
    return "0" * 64

async def main():
    async with sqlite_checkpoints(Path(sys.argv[1]) / "cycles.db") as saver:
        await run_graph("run_1", {node: step for node in Node}, saver)

asyncio.run(main())

from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
from langgraph.checkpoint.serde._msgpack import STRICT_MSGPACK_ENABLED
from langsmith.utils import tracing_is_enabled
print("reached" if reached else "silent", bool(tracing_is_enabled()), STRICT_MSGPACK_ENABLED)
"""


def told(home: Path, how: str) -> list[str]:
    shell = {
        name: value for name, value in os.environ.items() if not name.startswith(("LANG", "ZUNO_")) or name == "LANG"
    } | {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "lsv2_not_a_key",
        "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-c", STORY, str(home), how], capture_output=True, text=True, env=shell, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "then"), [("house", ["silent", "False", "True"]), ("bare", ["reached", "True", "False"])]
)
def test_no_socket_is_opened_where_the_house_was_asked(tmp_path: Path, how: str, then: list[str]) -> None:
    """Without the house the same shell makes it talk: so silence means something."""
    assert told(tmp_path, how) == then
