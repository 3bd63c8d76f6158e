"""`zuno data synth` on the command line: a whole market, labelled, over whatever was invented before."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.wire.commands import run_zuno
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.trading.model.market import Level, fear_greed
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring.recordings import Recordings

END = 1_767_225_600_000
BEFORE = fear_greed("somebody else")


@pytest.mark.soak
def test_a_market_is_invented_over_the_one_before(home: Path) -> None:
    async def earlier() -> None:
        store = SqliteSeries(home / "market" / "synthetic", Origin(True, "SYNTHETIC seed 10"))
        await store.write([Batch(BEFORE, [Level(Millis(END), 50.0)])])
        await store.close()

    asyncio.run(earlier())
    done = run_zuno(home, "data", "synth", "--seed", "11", "--json")
    assert done.code == 0
    view = done.document
    assert (view["synthetic"], view["origin"], view["seed"], view["last"]) == (True, "SYNTHETIC seed 11", 11, END)
    assert (view["setAside"], view["repeated"], view["corrected"]) == (3, 60, 1)
    status = run_zuno(home, "data", "status", "--json").document
    assert (status["origin"], status["rows"]) == ("SYNTHETIC seed 11", view["rows"])
    kept = {one["series"]: one["count"] for one in status["series"]}
    assert str(BEFORE) not in kept
    assert kept["candles/binance/BTCUSDT/1d"] == 3_300
    assert "SYNTHETIC seed 11" in run_zuno(home, "data", "status").out


async def test_a_damaged_invented_market_is_made_anew_when_asked(home: Path) -> None:
    recordings = Recordings(Settings(home=home))
    rows = [Batch(BEFORE, [Level(Millis(END), 50.0)])]
    await recordings.replace_synthetic(Origin(True, "SYNTHETIC seed 10"), rows)
    await recordings.close()
    file = home / "market" / "synthetic" / "series.db"
    file.write_bytes(b"no database" * 2_000)
    again = Recordings(Settings(home=home))
    with pytest.raises(Broken, match="data synth"):
        await again.synthetic().spans()
    made = await again.replace_synthetic(Origin(True, "SYNTHETIC seed 11"), rows)
    assert made.origin.label == "SYNTHETIC seed 11"
    assert [span.count for span in await again.synthetic().spans()] == [1]
    await again.close()


def test_a_seed_that_is_none_is_a_mistake_and_invents_nothing(home: Path) -> None:
    for seed in ("-1", str(2**63)):
        done = run_zuno(home, "data", "synth", "--seed", seed)
        assert done.code == 2
        assert re.search(r"\b0 to \d", done.err)
    assert not (home / "market").exists()
