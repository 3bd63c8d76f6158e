"""Synthetic coins that are drawn from their names: the same for a seed whatever others are asked for, and like a coin
in every feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from zuno.adapters.venues.synthetic.candles import build_market
from zuno.adapters.venues.synthetic.path import COINS, draw_coin, draw_paths
from zuno.adapters.venues.synthetic.world import draw_batches
from zuno.markets.market import Symbol
from zuno.trading.measure.data_quality import find_row_fault
from zuno.trading.model.market import Series, Timeframe, basis, candles
from zuno.trading.model.wanted import wanted_series

SEED = 3
HYPER = Symbol("hyperliquid:DOGE/USDC:USDC")


@pytest.fixture(scope="module")
def world() -> Mapping[Series[Any], Sequence[Any]]:
    return {batch.series: batch.rows for batch in draw_batches(SEED, draw_paths(SEED, [HYPER]))}


def test_every_feed_of_the_market_has_rows_that_a_market_can_have_made(
    world: Mapping[Series[Any], Sequence[Any]],
) -> None:
    assert set(wanted_series(HYPER)) <= set(world)
    assert not [series for series in world if series.feed in ("options", "dvol")]
    for series, rows in world.items():
        assert all(find_row_fault(series, row, None) is None for row in rows[:: max(1, len(rows) // 50)])


def test_marks_are_near_the_bars_and_finer_than_them(world: Mapping[Series[Any], Sequence[Any]]) -> None:
    close = world[candles("hyperliquid", HYPER, Timeframe.M1)][-1].close
    marks = [row.mark for row in world[basis("hyperliquid", HYPER)][-200:]]
    assert marks[-1] == pytest.approx(close, rel=1e-3)
    assert len(set(marks)) > 150


def test_a_coin_is_the_same_whatever_others_are_asked_for() -> None:
    sol, xrp = Symbol("SOLUSDT"), Symbol("XRPUSDT")
    alone, among = draw_paths(SEED, [sol])[sol], draw_paths(SEED, [xrp, sol])[sol]
    assert alone.coin == among.coin
    assert all(np.array_equal(one, other) for one, other in zip(alone.steps, among.steps, strict=True))
    assert draw_coin(SEED, "SOL") != draw_coin(SEED + 1, "SOL") != draw_coin(SEED + 1, "XRP")


def test_drawn_coins_are_plain_numbers_with_six_digits_to_a_price() -> None:
    for seed in range(40):
        coin = draw_coin(seed, "SOL")
        assert float(f"{coin.start:.2e}") == coin.start
        assert 1e5 <= coin.start * coin.ticks < 1e6
        assert (0.1 <= coin.start <= 300, 0.0045 <= coin.sigma <= 0.0075, 0.6 <= coin.together <= 0.85) == (True,) * 3
    assert {coin.ticks for coin in COINS.values()} == {10, 100}
    drawn = draw_coin(SEED, "SOL")
    assert (drawn.start, drawn.sigma, drawn.together, drawn.traded) == GOLDEN


GOLDEN = (0.676, 0.00666, 0.607, 2_550_000_000.0)
"""On every machine."""


def test_steps_follow_the_leading_coin_as_far_as_it_is_drawn() -> None:
    leader, sol = Symbol("BTCUSDT"), Symbol("SOLUSDT")
    paths = draw_paths(SEED, [leader, sol])
    moved = [np.diff(np.log(build_market(SEED, paths[symbol]).bars[Timeframe.H1].close)) for symbol in (leader, sol)]
    together = np.corrcoef(moved[0].tolist(), moved[1].tolist())[0, 1]
    assert together == pytest.approx(paths[sol].coin.together, abs=0.12)
