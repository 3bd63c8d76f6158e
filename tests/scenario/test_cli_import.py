"""A real market brought in: three years of hours from files, a cycle on them, and what the screens say of it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.paths import SHARED_DATA
from tests.wire.commands import run_zuno, shell
from tests.wire.forked import ZunoProcess

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


def test_the_order_of_dates_is_asked_for(tmp_path: Path) -> None:
    hours = "".join(f"{day:02}/01/2024 {hour:02}:00,100,101,99,100,1\n" for day in range(1, 14) for hour in range(24))
    file, home = tmp_path / "btc * [1h] 1h.csv", tmp_path / "home"
    file.write_text(HEADER + hours + f"14/01/2024 00:00,100,101,99,{'1' * 300_000},1\n")
    for dates, new in ((), 0), (("--dates", "month-first"), 0), (("--dates", "day-first"), 13 * 24):
        done = run_zuno(home, "data", "import", str(file), *dates, "--yes", "--json", **OWN)
        assert (done.code, done.document["new"]) == (3, new)
        assert bool(done.document["files"][0]["failure"]) is not bool(new)
    assert done.document["files"][0]["lines"][0]["line"] == 13 * 24 + 2
    assert run_zuno(home, "data", "import", str(file), "--dates", "european", **OWN).code == 2


def write_hours(file: Path, price: float, hours: int = 24 * 40) -> Path:
    """Until the last of 2023."""
    begin = datetime(2024, 1, 1) - timedelta(hours=hours)
    rows = (f"{begin + timedelta(hours=hour)},{price},{price + hour},{price - 1},{price},1\n" for hour in range(hours))
    file.write_text(HEADER + "".join(rows))
    return file


def test_what_was_imported_is_what_the_home_reads(tmp_path: Path) -> None:
    home, file = tmp_path / "home", write_hours(tmp_path / "btc-1h.csv", 42_000.0)
    before = run_zuno(home, "data", "status", "--json").document
    assert (before["synthetic"], before["rows"]) == (True, 0)
    done = run_zuno(home, "data", "import", str(file), "--json")
    assert (done.code, done.document["new"], len(done.document["notes"])) == (0, 960, 1)  # another market from now on
    assert run_zuno(home, "data", "import", str(file), "--json").document["notes"] == []
    status = run_zuno(home, "data", "status", "--json").document
    (hours,) = (series for series in status["series"] if series["series"].endswith("/1h"))
    assert (status["synthetic"], status["candlesOnly"], hours["used"]) == (False, True, True)
    assert (hours["usedFrom"], hours["last"]) == ("imported btc-1h.csv", 1_704_067_200_000 - 3_600_000)
    assert run_zuno(home, "trade", "features", "BTCUSDT", "--json").document["asOf"] == "2024-01-01T00:00:00Z"
    assert "btc-1h.csv" in run_zuno(home, "data", "status").out
    invented = run_zuno(home, "data", "status", "--json", ZUNO_RECORDING="synthetic").document
    assert (invented["synthetic"], invented["rows"]) == (True, 0)


def test_unlikely_prices_without_a_terminal_are_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    files = [str(write_hours(tmp_path / f"{name}-1h.csv", price, 48)) for name, price in (("eth", 42e3), ("btc", 42e3))]
    refused = run_zuno(home, "data", "import", *files, "--json")
    assert (refused.code, refused.document["rows"]) == (3, 48)
    assert [bool(file["failure"]) for file in refused.document["files"]] == [True, False]
    fresh = tmp_path / "fresh"
    taken = run_zuno(fresh, "data", "import", files[0], "--yes", "--json")
    assert (taken.code, taken.document["rows"]) == (0, 48)


def test_a_process_that_imported_ends_without_a_word(tmp_path: Path) -> None:
    file = write_hours(tmp_path / "btc-1h.csv", 42e3, 48)
    done = subprocess.run(
        [sys.executable, "-m", "zuno", "data", "import", str(file), "--json"],
        env=shell(tmp_path / "home", {}),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""


@pytest.mark.soak(every=3)
@pytest.mark.parametrize(("word", "code", "rows"), [("y\n", 0, 48), ("\n", 3, 0), ("no\n", 3, 0)])
def test_unlikely_prices_are_asked_about_at_a_terminal(tmp_path: Path, word: str, code: int, rows: int) -> None:
    home, file = tmp_path / "home", write_hours(tmp_path / "btc-1h.csv", 4_200_000.0, 48)
    person, terminal = pty.openpty()
    try:
        process = ZunoProcess(
            ["data", "import", str(file)],
            env=shell(home, {}),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            start_new_session=True,
        )
        seen = b""
        while b"to go on" not in seen:
            seen += os.read(person, 4_096)
        os.write(person, word.encode())
        process.communicate(timeout=120)
        assert process.returncode == code
    finally:
        os.close(person)
        os.close(terminal)
    status = run_zuno(home, "data", "status", "--json", **OWN).document
    assert sum(series["count"] for series in status["series"] if series["series"].endswith("/1h")) == rows


@pytest.mark.soak
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
