"""docs/your-strategy.md as written: its ten lines run in shadow, its CSV is read, its signed signal is taken."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.paths import CHECKOUT, SOURCE
from tests.wire.homes import open_journal
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.strategies.csv_file import read_weights
from zuno.adapters.strategies.python_file import Confinement
from zuno.adapters.strategies.webhook import SignalListener, check_signal
from zuno.journal.port import Journal
from zuno.kernel.units import Millis
from zuno.trading.strategies.own_targets import encode_view
from zuno.trading.strategies.port import StrategyView, build_history

PAGE = (CHECKOUT / "docs" / "your-strategy.md").read_text()


def find_block(language: str, holding: str = "") -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(block for block in blocks if holding in block)


async def test_the_ten_lines_answer() -> None:
    code = find_block("python")
    assert len(code.strip().splitlines()) == 10
    rising = build_history("BTCUSDT", [(day * 86_400_000, 100.0 + day) for day in range(60)])
    falling = build_history("ETHUSDT", [(day * 86_400_000, 100.0 - day) for day in range(60)])
    view = encode_view(StrategyView(60 * 86_400_000, {"BTCUSDT": rising, "ETHUSDT": falling}))
    assert (await Confinement(5.0).run(code, view))["targets"] == {"BTCUSDT": 0.5}


def test_the_csv_and_the_charting_service_are_read() -> None:
    assert read_weights(find_block("csv"), Millis(1_768_000_000_000)) == {"BTCUSDT": 0.0, "ETHUSDT": 0.2}
    body = find_block("json").replace("{{timenow}}", "2026-01-09T12:00:00Z")
    now = Millis(1_767_960_060_000)
    mark, sent, targets = check_signal({}, body.encode(), json.loads(body)["secret"], now)
    assert mark.startswith("BTCUSDT 2026-01-09T12:00:00Z")
    assert (sent, targets) == (1_767_960_000_000, {"BTCUSDT": 0.25})


async def test_the_script_is_taken_once(tmp_path: Path) -> None:
    journal, secret, port = open_journal(tmp_path), "0123456789abcdef0123", 28_790

    async def read() -> Journal:
        return journal

    listener = SignalListener({"signals": secret}, read, unix_millis)
    serving = asyncio.create_task(listener.serve("127.0.0.1", port))
    script = (
        find_block("sh", "openssl dgst")
        .replace("8790", str(port))
        .replace("curl", "curl --retry-connrefused --retry 5")
    )
    environment = {"PATH": os.environ["PATH"], "ZUNO_WEBHOOK_SECRETS": f"signals={secret}"}
    try:
        done = await asyncio.to_thread(
            subprocess.run, ["bash", "-c", script], capture_output=True, text=True, env=environment, check=False
        )
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        await journal.close()
    assert "200 taken" in done.stdout


@pytest.mark.slow
def test_it_runs_in_shadow_from_the_terminal(tmp_path: Path, home: Path, invented_market: Path) -> None:
    """Over three days of recorded time."""
    home.mkdir(exist_ok=True)
    (home / "market").symlink_to(invented_market)
    (tmp_path / "fifty.py").write_text(find_block("python"))

    def zuno(*words: str) -> str:
        command = [str(CHECKOUT / ".venv" / "bin" / "zuno"), *words, "--home", str(tmp_path / "home"), "--json"]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert json.loads(zuno("strategy", "add", "fifty", "--file", "fifty.py"))["days"] == 0
    zuno("trade", "start", "--speed", "max", "--from", "3d", "--mode", "position")
    shadow = json.loads(zuno("strategy", "shadow", "fifty"))
    assert (shadow["days"], shadow["aside"], len(shadow["returns"])) == (3, "", 3)
    assert (tmp_path / "home" / "strategies" / "fifty.py").exists()
    zuno("strategy", "remove", "fifty")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sleeve_of_ones_own_holds_what_its_shadow_held(tmp_path: Path, home: Path, invented_market: Path) -> None:
    """Over recorded days: refused without a shadow, then short at the perpetual and long beside the debate."""
    home.mkdir(exist_ok=True)
    (home / "market").symlink_to(invented_market)
    (tmp_path / "mine.csv").write_text("time,market,weight\n2020-01-01,BTCUSDT,-0.3\n2020-01-01,ETHUSDT,0.05\n")

    def zuno(*words: str, sleeves: str) -> subprocess.CompletedProcess[str]:
        command = [str(CHECKOUT / ".venv" / "bin" / "zuno"), *words, "--home", str(tmp_path / "home"), "--json"]
        environment = os.environ | {"ZUNO_SLEEVES": sleeves}
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)

    days = ("trade", "start", "--speed", "max", "--from", "2d", "--mode", "position", "--account")
    mine, alone = "mine:0.5,debate:0.5", "debate:1"
    assert zuno("strategy", "add", "mine", "--csv", "mine.csv", sleeves=alone).returncode == 0
    assert zuno(*days, "first", sleeves=mine).returncode != 0, "it has no shadow"
    assert zuno(*days, "shadowing", sleeves=alone).returncode == 0
    ran = zuno(*days, "second", sleeves=mine)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["invariants"] == "ok"
    shown = json.loads(zuno("trade", "positions", "--by", "sleeve", "--account", "second", sleeves=mine).stdout)
    held = {row["symbol"]: row["side"] for row in shown["positions"] if row["sleeve"] == "mine"}
    assert held == {"BTCUSDT": "short", "ETHUSDT": "long"}


def test_code_comes_by_the_terminal_alone() -> None:
    """Page, bot, chat and assistant hold a `Zuno` as well: none asks it for this service, but the page for records."""
    doors = SOURCE / "doors"
    holders = [path for path in doors.rglob("*.py") if "own_strategies" in path.read_text()]
    assert sorted(str(path.relative_to(doors)) for path in holders) == [
        "cli/strategy.py",
        "web/routes/trading.py",
        "zuno.py",
    ]
    asked = re.findall(r"own_strategies\(\)(\S*)", (doors / "web/routes/trading.py").read_text())
    assert asked == [".records())"]
