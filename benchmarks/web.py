"""What the page's server costs: `python -m benchmarks.web`.

Prints one JSON line per figure and ends with 1 when a bar is missed. `/api/v1/lp/positions`, from the request's first
byte to the answer's last, beside the service call it makes; a debate with twenty viewers of the event stream, in a
process of their own, beside the same debate with nobody watching.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.debate import timed
from benchmarks.figure import report_pairs, settle_disk
from zuno.doors.web_door import WebEventView
from zuno.settings import read_settings
from zuno.wiring import Application

LOOKS, LOOK_BAR = 200, 1.5
DEBATES, VIEWERS, DEBATE_BAR = 20, 20, 1.05
POSITION = "1"
WATCH = """
import selectors, socket, sys
host, port, token, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
ready = selectors.DefaultSelector()
for _ in range(count):
    opened = socket.create_connection((host, port))
    asked = ("GET /api/v1/events HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}", "", "")
    opened.sendall("\\r\\n".join(asked).encode())
    opened.recv(65536)
    ready.register(opened, selectors.EVENT_READ)
print("watching", flush=True)
ends = 0
while ends < count:
    for key, _ in ready.select():
        ends += key.fileobj.recv(65536).count(b"event: debate")
"""
READ = """
import socket, sys
from time import perf_counter
opened = socket.create_connection((sys.argv[1], int(sys.argv[2])))
opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
asked = ("GET /api/v1/lp/positions HTTP/1.1", f"Host: {sys.argv[1]}", f"Authorization: Bearer {sys.argv[3]}", "", "")
request = "\\r\\n".join(asked).encode()
for _ in sys.stdin:
    start = perf_counter()
    opened.sendall(request)
    said, size = b"", None
    while size is None or len(said) < size:
        part = opened.recv(1 << 20)
        said += part
        if size is None and b"\\r\\n\\r\\n" in said:
            head = said[:said.index(b"\\r\\n\\r\\n")].lower()
            size = len(head) + 4 + int(head.split(b"content-length: ")[1].split()[0])
        if not part:
            break
    print((perf_counter() - start) * 1000, flush=True)
    if not said.startswith(b"HTTP/1.1 200") or b'"positions"' not in said:
        sys.exit(f"meant to read positions, got {said[:60]!r}")
"""


@asynccontextmanager
async def serve(house: Application) -> AsyncIterator[tuple[str, int, str]]:
    """Host, port and token of a server in this process."""
    told: asyncio.Queue[WebEventView] = asyncio.Queue()
    stop = asyncio.Event()
    running = asyncio.create_task(house.web("127.0.0.1", 0).run(told.put_nowait, stop))
    parts = urlsplit((await told.get()).url or "")
    try:
        yield str(parts.hostname), int(parts.port or 0), house.web_logins().create_token("bench", "look").token or ""
    finally:
        stop.set()
        await running


async def compare_positions(house: Application, host: str, port: int, token: str) -> bool:
    command = [sys.executable, "-c", READ, host, str(port), token]
    reading = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert reading.stdin is not None
    assert reading.stdout is not None
    asking, told = reading.stdin, reading.stdout

    async def read_over_the_socket() -> float:
        asking.write(b"\n")
        await asking.drain()
        return float(await told.readline())

    async def ask_the_service() -> None:
        await house.lp(None).list_positions()

    for _ in range(5):
        await read_over_the_socket()
        await ask_the_service()
    pairs = [(await read_over_the_socket(), await timed(ask_the_service)) for _ in range(LOOKS)]
    asking.close()
    await reading.wait()
    return report_pairs("/api/v1/lp/positions", pairs, "the service call", LOOK_BAR)


async def compare_debates(house: Application, host: str, port: int, token: str) -> bool:
    async def debate() -> None:
        await house.advice(offline=True).rebalance(POSITION)

    await debate()
    settle_disk()
    pairs = []
    for _ in range(DEBATES):
        command = [sys.executable, "-c", WATCH, host, str(port), token, str(VIEWERS)]
        watching = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert watching.stdout is not None
        await watching.stdout.readline()
        await asyncio.sleep(0.5)
        watched = await timed(debate)
        await asyncio.wait_for(watching.wait(), 30)  # every viewer was told the end
        await asyncio.sleep(0.5)
        pairs.append((watched, await timed(debate)))
    return report_pairs(f"a debate with {VIEWERS} viewers", pairs, "the same debate unseen", DEBATE_BAR)


async def run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
        async with serve(house) as (host, port, token):
            passed = [await compare_positions(house, host, port, token)]
            passed.append(await compare_debates(house, host, port, token))
        await house.close()
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
