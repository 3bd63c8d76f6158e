"""A worker in the foreground ends when it is asked to, and says so when it was not asked."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable

import pytest

from zuno.doors.cli.service import serve
from zuno.kernel.errors import Unavailable
from zuno.trading.service.collector import CollectedView

VIEW = CollectedView(rows=3, said="The collector ended.")


async def _one_line(hear: Callable[[CollectedView], None], stop: asyncio.Event) -> CollectedView:
    hear(VIEW)
    if not stop.is_set():
        asyncio.get_running_loop().call_soon(stop.set)
    await stop.wait()
    return VIEW


async def test_a_worker_whose_lines_are_read_ends_with_its_view(capsys: pytest.CaptureFixture[str]) -> None:
    assert await serve(_one_line, lambda view: view.said, json=False) is VIEW
    assert capsys.readouterr().out == "The collector ended.\n"


@pytest.mark.parametrize("json", [False, True])
async def test_a_worker_whose_lines_nobody_reads_ends_and_does_not_call_that_well(
    monkeypatch: pytest.MonkeyPatch, json: bool
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        with pytest.raises(Unavailable, match=os.strerror(errno.EPIPE)):
            await serve(_one_line, lambda view: view.said, json=json)
