"""A result is called exact when it is, and says what was computed and what others paid when it is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.doors.cli.render import render
from zuno.lp.model.history import ExternalFlow
from zuno.lp.rules.attribution import attribute
from zuno.lp.service.to_views import pnl_view


def test_what_was_computed_is_said_instead_of_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = asyncio.run(SimChain(SimFile(tmp_path)).history(1, None))
    render(pnl_view("sim", 1, history, attribute(history)))
    plain = capsys.readouterr().out
    assert "exact" in plain
    assert "others" not in plain
    assert "computed:" not in plain
    mint = history.events[0]
    gift = ExternalFlow(mint.block, mint.tx, history.path[0].sqrt_price_x96, 10**18, 0)
    labelled = replace(history, computed=("what it was worth",), externals=(gift,))
    render(pnl_view("sim", 1, labelled, attribute(labelled)))
    shown = capsys.readouterr().out
    assert "exact" not in shown
    assert "measured" in shown
    assert "computed: what it was worth" in shown
    assert "others" in shown
