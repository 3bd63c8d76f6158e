"""The future cut off or scrambled changes nothing; a store that leaks an hour of it is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from zuno.kernel.units import Millis
from zuno.lab.lookahead import (
    CutSeries,
    LookaheadMoment,
    ScrambledSeries,
    StartupResult,
    build_lookahead_view,
    compare_moment,
)
from zuno.lab.market_study import MarketPlan
from zuno.lab.market_views import ChangedSeries
from zuno.lab.moments import Moment, MomentKind
from zuno.lab.no_edge_worlds import NoEdgeWorld, WorldKind, find_breakouts, make_world
from zuno.lab.rulings import STARTING_ACCOUNT
from zuno.markets.feeds import BINANCE
from zuno.trading.model.market import HOUR_MS, Mode, Series, Timeframe, candles
from zuno.trading.ports.series import SeriesSnapshot, SeriesStore, Slice
from zuno.wiring.lab import open_rules


class LeakySeries(ChangedSeries):
    """Knows an hour too much."""

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        later = [Slice(each.series, each.since, Millis(each.until + HOUR_MS), each.newest) for each in slices]
        return await super().read_many(later, Millis(known_by + HOUR_MS))

    def change_rows(self, series: Series[Any], rows: Sequence[Any]) -> Sequence[Any]:
        return rows


@pytest.fixture(scope="module")
def world() -> NoEdgeWorld:
    return make_world(WorldKind.WALK, 0)


async def compare(store: SeriesStore, world: NoEdgeWorld, folder: Path, lengths: Sequence[int] = ()) -> LookaheadMoment:
    first, *later = (world.at(hour) for hour in find_breakouts(world.bars)[:3])
    moment = Moment(0, MomentKind.ORDINARY, first, world.symbol, Mode.SWING)
    return await compare_moment(store, 0, moment, STARTING_ACCOUNT, later, open_rules(folder), lengths)


@pytest.mark.slow
async def test_a_decision_is_the_same_without_a_future_and_with_another(world: NoEdgeWorld, tmp_path: Path) -> None:
    found = await compare(world.store, world, tmp_path, [199])
    assert found.leaks == ()
    (short,) = found.startups
    assert short.differences["1h ema200"] == 1.0  # of 199 bars there is none
    assert short.differences["1h tenkan"] == 0.0
    assert not {"1h obv", "1h cvd"} & short.differences.keys()


@pytest.mark.slow
async def test_a_planted_leak_is_found(world: NoEdgeWorld, tmp_path: Path) -> None:
    found = await compare(LeakySeries(world.store), world, tmp_path)
    assert {"cut inputs", "cut figures", "scrambled inputs", "scrambled figures"} <= set(found.leaks)


async def test_what_had_happened_by_then_stays(world: NoEdgeWorld) -> None:
    at = world.at(5_000)
    series, since, until = candles(BINANCE, world.symbol, Timeframe.H1), world.at(4_990), world.at(5_009)
    rows = await world.store.read(series, since, until, until)
    assert await CutSeries(world.store, at).read(series, since, until, until) == rows[:10]
    scrambled = await ScrambledSeries(world.store, at).read(series, since, until, until)
    assert scrambled[:10] == rows[:10]
    assert [row.at for row in scrambled] == [row.at for row in rows]
    assert all(row.close == pytest.approx(1.07 * own.close) for row, own in zip(scrambled[10:], rows[10:], strict=True))


def test_leaks_and_changed_rulings_are_counted() -> None:
    def moment(number: int, ruling: str, short: str, *leaks: str) -> LookaheadMoment:
        startups = (StartupResult(199, short, short, {"1h atr": 0.01 * number, "1h rsi": 0.0}),)
        return LookaheadMoment(1, number, Millis(0), "BTCUSDT", "swing", ruling, ruling, leaks, startups)

    plans = [MarketPlan(1, 3)]
    moments = [moment(0, "HOLD", "HOLD"), moment(1, "LONG", "HOLD"), moment(2, "HOLD", "HOLD", "cut ruling")]
    view = build_lookahead_view(moments, plans, stopped=False)
    assert (view.ok, view.leaks, view.compared) == (False, 1, 6)
    assert view.differences[0].differs == ("cut ruling",)
    short = view.startups[0]
    assert (short.rulings.count, short.rulings.total) == (1, 3)
    assert [(drift.indicator, drift.largest, drift.mean) for drift in short.indicators] == [("1h atr", 0.02, 0.01)]
    assert build_lookahead_view(moments[:2], plans, stopped=True).ok
