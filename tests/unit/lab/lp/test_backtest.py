"""A backtest of the LP desk that is stopped, and moves that are refused."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.pool_minutes import TICK, draw_minutes, write_minutes
from zuno.adapters.chain.recorded.world import USDC_WETH, RecordedWorld, fixed_gas
from zuno.adapters.store.report_files import FolderOfReports
from zuno.amm.model import Range
from zuno.kernel.errors import Refused
from zuno.kernel.units import Tick
from zuno.lab.lp.arms import ArmAction
from zuno.lab.lp.backtest import carry_out
from zuno.lab.lp.question import read_question
from zuno.lab.reports import LabReports
from zuno.wiring.lp_lab import build_lp_lab


@pytest.mark.soak
async def test_a_run_that_is_stopped_before_the_debate_is_done_leaves_a_report(tmp_path: Path) -> None:
    """Chance is matched with a debate that is not there."""
    (tmp_path / "pool").mkdir()
    folder = write_minutes(tmp_path / "pool", draw_minutes(60 * (168 + 30)))
    stop = asyncio.Event()

    async def run_first(work: Any, tasks: Any, workers: int, hear: Any, stop: asyncio.Event) -> None:
        async for result in work(tasks[0]):
            hear(result)
        stop.set()

    lab = build_lp_lab(tmp_path / "home", LabReports(FolderOfReports(tmp_path / "home" / "lab")), run_first)
    question = read_question(str(folder), "hold,debate,random", 10_000, 1, "5", "balanced", "0.1")
    view = await lab.compare(question, 1, lambda done, all: None, stop)
    assert view.stopped
    assert [arm.name for arm in view.arms] == ["hold"]


def test_a_move_whose_second_half_is_refused_leaves_the_position_as_it_was() -> None:
    base, gas = TICK // 10 * 10, fixed_gas(Decimal("0.1"))
    above = Range(Tick(base + 200), Tick(base + 400))
    world = RecordedWorld(USDC_WETH, draw_minutes(5), 5_000 * 10**6, 10**15)
    carry_out(ArmAction(above), world, gas)
    trial = world.copy()
    trial.balances = (0, 10**18)
    carry_out(ArmAction(close=True), trial, gas)
    world.balances = before = (world.balances[0], 10**18 - trial.balances[1] + 1)  # pays for the close alone
    with pytest.raises(Refused):
        carry_out(ArmAction(Range(Tick(base - 200), Tick(base + 200))), world, gas)
    assert (world.range, world.balances, len(world.events)) == (above, before, 2), "a swap and a mint"
