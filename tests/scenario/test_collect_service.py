"""The collector as a process among venues on loopback: killed with -9, begun again, ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.wire.live_home import BARS, OWN, ran, remembered, run
from tests.wire.vendors.living import Living, Venues, bar, venues
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.markets.feeds import PERPETUALS
from zuno.trading.model.market import DAY_MS, MINUTE_MS, liquidations, open_interest

EVER = Millis(2**62)


@asynccontextmanager
async def collecting(home: Path, here: Venues) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await run(home, here, "data", "collect", "--symbol", "BTCUSDT", "--json")
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.communicate()


async def line(running: asyncio.subprocess.Process) -> Any:
    assert running.stdout is not None
    return json.loads(await asyncio.wait_for(running.stdout.readline(), 90))


@pytest.mark.soak
async def test_a_kill_leaves_neither_a_hole_nor_a_duplicate(home: Path) -> None:
    world = Living()
    await remembered(home, world)
    async with venues() as here:
        async with collecting(home, here) as first:
            while len(here.rest["BINANCE"].asked) < 6:
                assert first.returncode is None
                await asyncio.sleep(0.01)
            os.kill(first.pid, signal.SIGKILL)
        assert first.returncode == -signal.SIGKILL
        async with collecting(home, here) as second:
            status = await line(second)
            assert (status["fresh"], status["failing"], status["store"]) == (status["series"], [], "")
            assert [one["heard"] for one in status["streams"]] == [True, True, True]
            third = await ran(home, here, "data", "collect", "--once")
            assert third.code == 3
            assert f"(process {second.pid})" in third.err
            second.send_signal(signal.SIGTERM)
            last = await line(second)
            while "said" not in last:
                last = await line(second)
            assert "written" in last["said"]
            assert await asyncio.wait_for(second.wait(), 30) == 0
    await assert_whole(home, world)


async def assert_whole(home: Path, world: Living) -> None:
    store = SqliteSeries(home / "market" / "own", OWN)
    now = world.now
    for timeframe, series in BARS.items():
        found = await store.read(series, Millis(0), EVER, EVER)
        closed = range(found[0].at, found[-1].at + 1, timeframe.millis)
        assert list(found) == [bar(at, timeframe) for at in closed]
        assert found[-1].at >= timeframe.floor(now - 2 * MINUTE_MS) - timeframe.millis
    for venue in PERPETUALS:
        fine = await store.read(open_interest(venue, "BTCUSDT"), Millis(now - DAY_MS), EVER, EVER)
        assert [one.at for one in fine] == list(range(fine[0].at, fine[-1].at + 1, 5 * MINUTE_MS))
        assert fine[-1].at > now - 10 * MINUTE_MS
    for venue in ("binance", "bybit"):
        assert await store.read(liquidations(venue, "BTCUSDT"), Millis(0), EVER, EVER)
    assert await store.flaws() == ()
    await store.close()
