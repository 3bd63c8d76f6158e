"""Answers in a narrow terminal and with odd figures: whole, in order, never cut."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.doors.cli.render import render
from zuno.kernel.numbers_text import time_text
from zuno.lp.service.local_chains import ResetView
from zuno.lp.service.position_past import Figures
from zuno.lp.service.to_views import pool_view, position_view, summary_view
from zuno.lp.service.views import PoolsView, PositionsView


@pytest.mark.parametrize("width", [40, 60, 80, 120])
async def test_no_width_loses_a_figure(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a person acts on is there in every terminal: the price, the range, the amounts, the fees, the worth."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    chain = SimChain(SimFile(tmp_path))
    snapshot, pools = await chain.positions([1, 2]), await chain.pools()
    shown = tuple(
        position_view(position).model_copy(update={"summary": summary_view(position, Figures(), None)})
        for position in snapshot.positions
    )
    render(
        PositionsView(
            chain="sim", block=1, timestamp=1, wallet=None, complete=True, note="", positions=shown, missing=()
        )
    )
    states = tuple(pool_view(pool, "sim") for pool in pools.pools)
    render(PoolsView(chain="sim", block=1, timestamp=1, pools=states, notes=()))
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width
    figures = ("3,074.82", "3,327.57", "5.772 WETH", "1,435.96 USDC", "22,561.83", "-0.7 %", "+7.4 %", "3,097.28")
    for figure in figures:
        assert figure in out


@pytest.mark.parametrize("timestamp", [10**11 * 400, 2**63, 2**256 - 1, -(2**70)])
def test_a_clock_beyond_every_calendar_is_a_number(timestamp: int, capsys: pytest.CaptureFixture[str]) -> None:
    render(ResetView(chain="sim", seed=7, block=1, timestamp=timestamp))
    assert str(timestamp) in capsys.readouterr().out.replace("\n", "")


def test_a_moment_is_a_date() -> None:
    assert time_text(1_769_817_600) == "2026-01-31 00:00 UTC"


async def test_worth_is_told_in_a_unit_of_more_than_one_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = await SimChain(SimFile(tmp_path)).positions([1])
    shown = position_view(snapshot.positions[0]).model_copy(update={"value_unit": "My Coin", "price_unit": "x per y"})
    render(
        PositionsView(
            chain="sim", block=1, timestamp=1, wallet=None, complete=True, note="", positions=(shown,), missing=()
        )
    )
    assert "My Coin" in capsys.readouterr().out
