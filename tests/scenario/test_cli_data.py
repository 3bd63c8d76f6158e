"""`zuno data status` and `zuno data check` on the command line, on a store as another process left it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.wire.commands import run_zuno
from tests.wire.resampling import resample_bars
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.trading.model.market import Candle, Timeframe, candles
from zuno.trading.ports.series import Batch, Origin

AT = Millis(1_767_225_600_000)
M1, H1 = candles("binance", "BTCUSDT", Timeframe.M1), candles("binance", "BTCUSDT", Timeframe.H1)
MINUTES = [
    Candle(Millis(AT + n * 60_000), 100.0 + n % 3, 110.0 + n % 5, 90.0, 101.0, 1.0 + n, None) for n in range(180)
]
HOURS = list(resample_bars(Timeframe.H1, Timeframe.M1, MINUTES))


@pytest.fixture
def kept(home: Path) -> Path:
    """A synthetic past with a wrong hour and a bad one, and half of it sealed."""

    async def fill() -> None:
        store = SqliteSeries(home / "market" / "synthetic", Origin(True, "SYNTHETIC seed 11"))
        hours = [HOURS[0], HOURS[1]._replace(high=80.0), HOURS[2]._replace(close=99.0)]
        await store.write([Batch(M1, MINUTES), Batch(H1, hours)])
        await store.seal(MINUTES[90].at)
        await store.close()

    asyncio.run(fill())
    return home


def test_status_says_what_is_here_and_whose_it_is(kept: Path) -> None:
    done = run_zuno(kept, "data", "status", "--json")
    assert done.code == 0
    assert done.document == {
        "synthetic": True,
        "origin": "SYNTHETIC seed 11",
        "candlesOnly": False,
        "live": False,
        "rows": 182,
        "unsettled": {"bad": 1},
        "notes": ["ZUNO_MARKET=recorded, ZUNO_RECORDING=auto, nothing was imported"],
        "chosenBy": "ZUNO_MARKET=recorded, ZUNO_RECORDING=auto, nothing was imported",
        "series": [
            {
                "series": str(H1),
                "count": 2,
                "first": AT,
                "last": HOURS[2].at,
                "sealed": 1,
                "place": "2026-01-01 00:00 – 2026-01-01 02:00 UTC",
                "sources": [],
                "missing": 1,
                "used": True,
                "usedFrom": "",
                "doubled": 0,
                "gaps": [
                    {
                        "first": HOURS[1].at,
                        "last": HOURS[1].at,
                        "count": 1,
                        "place": "2026-01-01 01:00 UTC",
                    }
                ],
            },
            {
                "series": str(M1),
                "count": 180,
                "first": AT,
                "last": MINUTES[-1].at,
                "sealed": 90,
                "place": "2026-01-01 00:00 – 2026-01-01 02:59 UTC",
                "sources": [],
                "missing": 0,
                "used": True,
                "usedFrom": "",
                "doubled": 0,
                "gaps": [],
            },
        ],
    }
    screen = run_zuno(kept, "data", "status").out
    assert "SYNTHETIC seed 11" in screen
    assert str(M1) in screen


def test_check_finds_mends_and_is_done(kept: Path) -> None:
    found = run_zuno(kept, "data", "check", "--json")
    assert found.code == 3
    kinds = [(flaw["kind"], flaw["place"], flaw["mended"]) for flaw in found.document["flaws"]]
    assert kinds == [
        ("bad", "2026-01-01 01:00 UTC", None),
        ("gap", "2026-01-01 01:00 UTC", None),
        ("disagreement", "2026-01-01 02:00 UTC", None),
    ]
    assert (found.document["ok"], found.document["remaining"]) == (False, 3)
    screen = run_zuno(kept, "data", "check")
    assert screen.code == 3
    assert "3 remain." in screen.out

    mended = run_zuno(kept, "data", "check", "--repair", "--json")
    assert mended.code == 0
    assert ["60 1m" in flaw["mended"] for flaw in mended.document["flaws"]] == [True] * 3
    again = run_zuno(kept, "data", "check", "--repair", "--json")
    assert again.code == 0
    assert (again.document["flaws"], again.document["settledBefore"]) == ([], 2)
    assert run_zuno(kept, "data", "check", "--json").document["flaws"] == []


def test_a_screen_shows_what_was_done(kept: Path) -> None:
    done = run_zuno(kept, "data", "check", "--repair")
    assert done.code == 0
    assert " 60 1m " in " ".join(done.out.split())
    assert "3 mended, 0 remain." in done.out


def test_looking_at_nothing_makes_nothing(home: Path) -> None:
    done = run_zuno(home, "data", "status")
    assert done.code == 0
    assert "SYNTHETIC: 0 rows" in done.out
    assert "zuno data synth" in done.out
    assert run_zuno(home, "data", "check", "--json").document["ok"] is True
    assert run_zuno(home, "data", "check", "--repair", "--json").code == 0
    assert list(home.iterdir()) == []


def test_the_setting_chooses_the_store(kept: Path) -> None:
    own = run_zuno(kept, "data", "status", "--json", ZUNO_RECORDING="own").document
    assert (own["synthetic"], own["origin"], own["rows"]) == (False, "recorded", 0)
    assert run_zuno(kept, "data", "status", ZUNO_RECORDING="mine").code == 2


def test_a_damaged_store_is_exit_5_with_a_sentence(kept: Path) -> None:
    (path,) = (kept / "market" / "synthetic" / "history").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    done = run_zuno(kept, "data", "check")
    assert done.code == 5
    assert path.name in done.err


def test_many_flaws_are_counted_on_a_screen_and_listed_in_json(home: Path) -> None:
    async def fill() -> None:
        store = SqliteSeries(home / "market" / "synthetic", Origin(True, "SYNTHETIC seed 11"))
        await store.write([Batch(M1, [*MINUTES[:-1:2], MINUTES[-1]])])
        await store.close()

    asyncio.run(fill())
    done = run_zuno(home, "data", "check")
    assert (done.code, "`--json`" in done.out) == (3, True)
    assert len(run_zuno(home, "data", "check", "--json").document["flaws"]) == 89
