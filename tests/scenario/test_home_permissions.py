"""A home is its owner's alone from the first moment of every file, whatever umask a command was started with."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT
from tests.wire.commands import shell
from zuno.adapters.home_files import FileKind, list_home

WATCHED = """
import json, os, sys
home, commands = sys.argv[1], json.loads(sys.argv[2])
from tests.crash.preload import KEYS, preload
from tests.wire.forked import DESKS
from zuno.__main__ import _open
from zuno.doors.cli.main import run

preload((*KEYS, "langgraph.checkpoint.sqlite", "zuno.adapters.chart", *DESKS))  # once, not in every child

def note(event, given):
    # An instant is enough: whoever makes a file under another umask is written down, and so is SQLite's.
    if event == "open" and (given[2] or 0) & os.O_CREAT or event in ("os.mkdir", "sqlite3.connect"):
        path = os.fsdecode(given[0]) if isinstance(given[0], (str, bytes, os.PathLike)) else ""
        path = path.removeprefix("file://").split("?")[0]
        umask = os.umask(0o077)
        os.umask(umask)
        if path.startswith(home + "/") and umask != 0o077:
            sys.stderr.write(f"WIDE {event} {path}\\n")

for words in commands:
    child = os.fork()
    if not child:
        os.umask(0)
        sys.addaudithook(note)
        sys.exit(run(words, _open))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stderr.write(f"CODE {code} {words}\\n")
"""


def find_wide(folder: Path) -> list[str]:
    return [
        f"{stat.S_IMODE(path.lstat().st_mode):o} {path.relative_to(folder)}"
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
    ]


TRADING = [
    ["trade", "run", "BTCUSDT", "--execute"],
    ["trade", "pause"],
    ["trade", "kill", "--yes"],
    ["trade", "evaluate"],
]


@pytest.mark.slow
def test_nothing_in_a_home_is_ever_open_to_others(tmp_path: Path) -> None:
    check_home(tmp_path, [])


@pytest.mark.soak
def test_nothing_that_trading_writes_is_open_to_others(tmp_path: Path, invented_market: Path) -> None:
    market = tmp_path / "home" / "market"
    shutil.copytree(invented_market, market)
    for path in (market.parent, market, *market.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    check_home(tmp_path, TRADING)


def check_home(folder: Path, trading: list[list[str]]) -> None:
    home, elsewhere = folder / "home", folder / "elsewhere"
    home.mkdir(mode=0o700, exist_ok=True)
    commands = [
        ["doctor"],
        *trading,
        ["lp", "positions"],
        ["lp", "recommend", "rebalance", "1"],
        ["wallet", "import", "--watch", "0x" + "ab" * 20],
        ["journal", "verify"],
        ["logs"],
        ["export", "lp", "--out", str(home / "exports" / "lp.csv")],
        ["export", "lp", "--out", str(elsewhere / "lp.csv")],
    ]
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED, str(home), json.dumps(commands)],
        cwd=CHECKOUT,
        env=shell(home, {}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    codes = [line.split()[1] for line in ran.stderr.splitlines() if line.startswith("CODE ")]
    assert codes == ["0"] * len(commands), ran.stderr
    assert not [line for line in ran.stderr.splitlines() if line.startswith("WIDE ")]
    made = {path.name for path in home.rglob("*")}
    assert {"journal.db", "journal.head", "journal.lock", "lp.csv", "node.key"} <= made
    assert find_wide(home) == []
    assert [file.name for file in list_home(home) if file.kind is FileKind.OTHER] == ["exports/lp.csv"]
    # What the user asks for elsewhere is as the user's own umask has it.
    assert stat.S_IMODE((elsewhere / "lp.csv").stat().st_mode) == 0o666
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o777
