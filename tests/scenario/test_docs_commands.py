"""Lines of the documentation that only look, run as they are written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.architecture.test_docs_parity import PAGES, command_lines
from tests.wire.commands import run_zuno

LOOKS = (
    "agents|alerts( --all| --json)?|config (check|show)|data status|export .+|journal (tail|verify).*|lab reports"
    "|logs.*|lp (inspect|pnl|pool|pools|portfolio|positions|whatif)( .+)?|markets.*|parse .+|plan list.*"
    "|memory (lessons|search .+)|status|strategy (list|show|targets).*"
    "|trade (balance|positions|profit|runs|sleeves|status|trades).*|version"
    "|wallet (allowances|balance|show).*"
)
ELSEWHERE = re.compile(r"…|\b(ID|VENUE|ALERT)\b|--chain base|--refresh|--account live|--currency")
"""What a reader fills in, a network or an account that is not there."""


def list_looks() -> dict[str, str]:
    found: dict[str, str] = {}
    for page in (page for page in PAGES if page.name != "CHANGELOG.md"):
        for line in command_lines(page):
            if re.fullmatch(f"zuno ({LOOKS})", line) and not ELSEWHERE.search(line):
                found.setdefault(line, page.name)
    return found


def test_what_pages_say_to_look_at_can_be_looked_at(
    invented: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = list_looks()
    assert len(lines) > 45
    assert set(lines.values()) > {"commands.md", "first-hour.md", "liquidity.md", "your-data.md", "runbook.md"}
    assert run_zuno(invented, "lp", "recommend", "rebalance", "1", "--json").code == 0, "so that there is a record"
    failed = {}
    for line, page in lines.items():
        ran = run_zuno(invented, *shlex.split(line)[1:])
        if ran.code:
            failed[line] = (page, ran.code, ran.err)
    assert not failed, "\n".join(map(str, failed.items()))
