"""A home that collected before, and commands run in it among venues on loopback."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.wire.commands import Ran, shell
from tests.wire.vendors.living import Living, Venues
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.markets.feeds import PERPETUALS
from zuno.trading.model.market import HOUR_MS, Timeframe, candles, dvol, funding, open_interest
from zuno.trading.ports.series import Batch, Origin

OWN = Origin(False, "recorded")
BARS = {timeframe: candles("binance", "BTCUSDT", timeframe) for timeframe in Timeframe}


async def remembered(home: Path, world: Living) -> None:
    """What an earlier collector kept, up to some hours ago: nobody needs to wait for years to be fetched."""
    store = SqliteSeries(home / "market" / "own", OWN)
    batches: list[Batch[Any]] = []
    for timeframe, series in BARS.items():
        closed = [one for one in Living(timeframe).candles if one.at + timeframe.millis <= world.now - 3 * HOUR_MS]
        batches.append(Batch(series, closed))
    for venue in PERPETUALS:
        batches.append(Batch(funding(venue, "BTCUSDT"), world.funding[:-1]))
        points = [one for one in world.open_interest if one.at < world.now - 12 * HOUR_MS]
        batches.append(Batch(open_interest(venue, "BTCUSDT"), points))
    batches.append(Batch(dvol("deribit", "BTC"), world.dvol[:-9]))
    await store.write(batches)
    await store.close()


async def run(home: Path, here: Venues, *words: str, **more: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "zuno",
        *words,
        env=shell(home, {**here.environment, **more}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
    )


async def ran(home: Path, here: Venues, *words: str, **more: str) -> Ran:
    running = await run(home, here, *words, **more)
    out, err = await asyncio.wait_for(running.communicate(), 600)
    assert running.returncode is not None
    return Ran(running.returncode, out.decode(), err.decode())
