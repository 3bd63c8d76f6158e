"""A home's first look at its market invents it, once for everybody who waits and whoever has given up waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from zuno.adapters.venues.synthetic import world
from zuno.settings import Settings
from zuno.wiring.recordings import Recordings


async def test_a_market_is_invented_once_though_the_first_to_wait_gave_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    go_on = Event()

    def invent_slowly(seed: int, symbols: object) -> list[Any]:
        begun.append(seed)
        assert go_on.wait(60)
        return []

    monkeypatch.setattr(world, "build_batches", invent_slowly)
    recordings = Recordings(Settings(home=tmp_path))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await recordings.invent_first(7)
    waiting = [asyncio.create_task(recordings.invent_first(7)) for _ in range(3)]
    await asyncio.sleep(0.05)
    go_on.set()
    assert set(await asyncio.gather(*waiting)) == {recordings.synthetic()}
    assert begun == [7]
    await recordings.close()
