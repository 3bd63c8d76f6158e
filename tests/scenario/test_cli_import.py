"""A real market brought in: three years of hours from files, a cycle on them, and what the screens say of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import SHARED_DATA
from tests.wire.commands import run_zuno

HISTORY = SHARED_DATA / "btc-eth-history"
HEADER = "date,open,high,low,close,volume\n"


OWN = {"ZUNO_RECORDING": "own"}


def test_a_file_is_imported_once_and_told(tmp_path: Path) -> None:
    hours = "".join(
        f"2024-01-{day:02} {hour:02}:00:00,42000,42001,41999,42000,1\n" for day in (1, 2, 3) for hour in range(24)
    )
    file = tmp_path / "btc-1h.csv"
    file.write_text(HEADER + hours + "2024-01-04 00:30:00,42000,42001,41999,42000,1\n")
    home = tmp_path / "home"
    done = run_zuno(home, "data", "import", str(file), "--json", **OWN)
    assert done.code == 3  # a row of a series that the desk reads
    assert (done.document["new"], done.document["setAside"]) == (72, 1)
    assert done.document["files"][0]["lines"][0]["line"] == 74
    assert run_zuno(home, "data", "import", str(file), "--json", **OWN).document["new"] == 0
    status = run_zuno(home, "data", "status", "--json", **OWN).document
    assert status["candlesOnly"] is True
    (bars,) = (series for series in status["series"] if series["series"].endswith("/1h"))
    assert bars["sources"][0]["file"] == "btc-1h.csv"
    shown = run_zuno(home, "data", "import", str(file), **OWN).out
    assert "line 74" in shown
    assert run_zuno(home, "data", "import", str(tmp_path / "nothing.csv"), **OWN).code == 3
    assert run_zuno(home, "data", "import", str(file), "--format", "xml", **OWN).code == 2


def test_a_cycle_on_real_years(tmp_path: Path) -> None:
    if not HISTORY.is_dir():
        pytest.skip("no recorded years of BTC and ETH beside the checkout")
    home = tmp_path / "home"
    files = [str(HISTORY / f"{name}-1h.csv.gz") for name in ("btc", "eth")]
    done = run_zuno(home, "data", "import", *files, "--json", **OWN)
    assert done.code == 0
    assert (done.document["new"], done.document["setAside"]) == (52_558, 0)
    for moment in ("2024-08-05T12:00", "2022-11-09T12:00"):
        run = run_zuno(home, "trade", "run", "BTCUSDT", "--as-of", moment, "--no-chart", "--json", **OWN)
        assert run.code == 0, run.err
        assert run.document["regime"] == "VOLATILITY_PANIC"
        assert run.document["candlesOnly"] is True
    newest = run_zuno(home, "trade", "features", "ETHUSDT", "--json", **OWN).document
    assert newest["asOf"] == "2025-04-28T08:00:00Z"
    assert run_zuno(home, "trade", "run", "BTCUSDT", "--as-of", "2010-01-01", **OWN).code == 2


MEASURED = """
import asyncio, json, resource, sys
from pathlib import Path
from zuno.adapters.imports.files import HistoryFiles
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.trading.ports.series import Origin
from zuno.trading.service.imports import Imports

async def run():
    store = SqliteSeries(Path(sys.argv[1]), Origin(False, "recorded"))
    imports = Imports(HistoryFiles(), store, lambda: Millis(4_000_000_000_000), read_here=True)
    view = await imports.run([sys.argv[2]], None, "auto", lambda progress: None, lambda question: True)
    await store.close()
    print(json.dumps([view.new, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))

asyncio.run(run())
"""


@pytest.mark.soak
def test_a_large_file_is_streamed(tmp_path: Path) -> None:
    """Four times the rows take little more memory: what is held is a block, whatever the file."""
    peaks = {}
    for rows in (500_000, 2_000_000):
        file = tmp_path / "btc-1m.csv"
        with open(file, "w") as out:
            out.write(HEADER)
            for minute in range(rows):
                out.write(f"{(1_500_000_000 // 60 + minute) * 60},40000.5,40001.5,39999.5,40000.25,1.5\n")
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(tmp_path / str(rows)), str(file)], capture_output=True, check=True
        )
        new, peaks[rows] = json.loads(done.stdout)
        assert new == rows
    few, many = peaks.values()
    assert many < 1.6 * few
