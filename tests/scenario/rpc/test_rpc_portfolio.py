"""A hundred positions are valued, with a week of their past, in few requests."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from benchmarks.chain import MOST_REQUESTS
from benchmarks.portfolio import MORE_BATCHES, POSITIONS, build_week, read_portfolio
from zuno_devnet.node import DevnetNode
from zuno_devnet.server import serve


@pytest.mark.soak
async def test_a_hundred_positions_are_a_few_requests(tmp_path: Path) -> None:
    world = build_week()
    with serve(DevnetNode(world.chain)) as url:
        first, cold = await read_portfolio(world, url, tmp_path)
        again, warm = await read_portfolio(world, url, tmp_path)
    assert max(cold, warm) <= MOST_REQUESTS + MORE_BATCHES
    assert first == again
    assert len(first.positions) == POSITIONS
    assert first.totals.unknown == first.totals.unpriced == ()
    worths = [Decimal(line.worth or "nan") for line in first.positions]
    assert Decimal(first.totals.worth or "nan") == pytest.approx(sum(worths), rel=Decimal("1e-6"))
    assert {line.time_in_range for line in first.positions} == {1.0}
    assert first.totals.fees24h == "0"  # nobody traded that week, and that is known
