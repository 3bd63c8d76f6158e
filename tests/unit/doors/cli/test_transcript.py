"""The preview of a debate on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from zuno.doors.cli import layout
from zuno.doors.cli.transcript import Preview
from zuno.lp.model.debate import Role, Thought
from zuno.lp.service.recommend import Waiting


def test_the_newest_line_says_whom_the_debate_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    terminal = Console(file=file, width=100, height=20, force_terminal=True, color_system=None)
    monkeypatch.setattr(layout, "console", lambda: terminal)
    with Preview() as preview:
        preview.hear(Thought(role=Role.SCOUT, round=0, seq=0, text="one pool", speaker="deterministic"))
        preview.hear(Waiting((Role.CRITIC,), 12))
        drawn = file.getvalue().rpartition("one pool")[2]
    assert "critic" in drawn
    assert "12 s" in drawn
