"""Open interest in the synthetic market: it comes and goes with the restless hours, and knows nothing of the next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from zuno.adapters.venues.synthetic.candles import SyntheticMarket, build_market
from zuno.adapters.venues.synthetic.derivatives import GRID, TOLD, _crowd_moves, _lately, build_batches, build_grid
from zuno.adapters.venues.synthetic.path import HOURS_FROM, MINUTES_FROM, draw_paths, hour_of
from zuno.kernel.units import Millis
from zuno.markets.feeds import PERPETUALS
from zuno.markets.market import Symbol
from zuno.trading.measure.bars import Bars, Floats
from zuno.trading.measure.triage import Label, Spike, measure_spike
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, Feed, Level, Timeframe

pytestmark = pytest.mark.slow
SEEDS = (1, 2, 3, 11)


@dataclass(frozen=True, slots=True)
class Hours:
    """The hours that have minutes: what was open at the end of each, by venue."""

    made: SyntheticMarket
    levels: dict[str, list[Level]]
    opened: dict[str, Floats]
    moved: Floats
    ranged: Floats
    spikes: list[Spike]

    @property
    def changes(self) -> Floats:
        return np.diff(np.log(sum(self.opened.values())))


def hours_of(seed: int, one: SyntheticMarket) -> Hours:
    said = {
        batch.series.venue: list(batch.rows) for batch in build_batches(seed, one) if is_open_interest(batch.series)
    }
    ends = range(MINUTES_FROM + HOUR_MS, MINUTES_FROM + 45 * DAY_MS + 1, HOUR_MS)
    by_moment = {venue: {row.at: row.value for row in rows} for venue, rows in said.items()}
    opened = {venue: np.array([rows[Millis(at)] for at in ends]) for venue, rows in by_moment.items()}
    bars = one.bars[Timeframe.H1]
    prices = [one.grain.price(column) for column in bars.columns[1:5]]
    hours = Bars(Timeframe.H1, bars.at, *prices, one.grain.size(bars.volume), one.grain.size(bars.taker_buy))  # type: ignore[call-arg]
    spikes = [spike for at in ends[1:] if spike_at(hours, {}, at) and (spike := spike_at(hours, said, at))]
    late = hours.last(len(ends) - 1)
    return Hours(one, said, opened, np.log(late.close / late.open), np.log(late.high / late.low), spikes)


def spike_at(hours: Bars, said: dict[str, list[Level]], at: int) -> Spike | None:
    found = measure_spike(hours, said, Millis(at))
    return None if isinstance(found, Missing) or not found.is_spike else found


def is_open_interest(series: object) -> bool:
    return getattr(series, "feed", None) is Feed.OPEN_INTEREST


@pytest.fixture(scope="module", params=[SEEDS[:2], pytest.param(SEEDS, marks=pytest.mark.soak)], ids=str)
def every(request: pytest.FixtureRequest) -> list[Hours]:
    return [hours_of(seed, build_market(seed, path)) for seed in request.param for path in draw_paths(seed).values()]


@pytest.mark.soak
def test_a_fair_part_of_spikes_is_a_breakout_or_a_cascade(every: list[Hours]) -> None:
    together: Counter[Label | None] = Counter()
    for one in every:
        labels = Counter(spike.label for spike in one.spikes)
        assert len(one.spikes) >= 10
        assert 0.2 < 1 - labels[None] / len(one.spikes) < 0.70
        assert labels[Label.TRUE_BREAKOUT]
        assert labels[Label.LIQUIDATION_CASCADE]
        together += labels
    assert 0.3 < 1 - together[None] / together.total() < 0.65
    assert 0.5 < together[Label.TRUE_BREAKOUT] / together[Label.LIQUIDATION_CASCADE] < 2


@pytest.mark.soak
def test_big_hours_move_it_by_a_per_cent_either_way_and_quiet_ones_do_not(every: list[Hours]) -> None:
    for one in every:
        changes, ranged = one.changes, one.ranged
        big, quiet = ranged > np.quantile(ranged, 0.97), ranged < np.median(ranged)
        assert changes[big].max() > 0.007
        assert changes[big].min() < -0.007
        assert np.mean(np.abs(changes[quiet]) > 0.005) < 0.01
        assert changes[big].std() > 3 * changes[quiet].std()


@pytest.mark.soak
def test_venues_move_together_and_always_hold_something(every: list[Hours]) -> None:
    for one in every:
        assert set(one.opened) == set(PERPETUALS)
        assert min(row.value for rows in one.levels.values() for row in rows) > 0
        large = np.abs(one.changes) > 0.01
        ways = [np.sign(np.diff(opened))[large] for opened in one.opened.values()]
        assert large.sum() >= 5
        assert all(np.array_equal(way, ways[0]) for way in ways)


@pytest.mark.soak
def test_whether_holders_come_or_leave_says_nothing_of_which_way_it_goes(every: list[Hours]) -> None:
    for later in (0, 1):  # neither of the hour itself nor of the next
        both = [(one.changes[: len(one.moved) - later], one.moved[later:]) for one in every]
        told = np.concatenate([change * np.sign(moved) for change, moved in both])
        assert abs(told.mean()) < 3 * told.std() / np.sqrt(len(told))


@pytest.mark.soak
def test_a_jump_is_not_told_before_it_has_come() -> None:
    """Up to its own five minutes the crowd goes where it would have gone anyway."""
    path = draw_paths(3)[Symbol("BTCUSDT")]
    one = build_market(3, path)
    moves, seen = _crowd_moves(3, one, build_grid(one)), build_grid(one)
    hours = path.jumps.hour[path.jumps.hour >= hour_of(HOURS_FROM)] - hour_of(HOURS_FROM)
    cascades = path.jumps.cascade[path.jumps.hour >= hour_of(HOURS_FROM)]
    before, after = (
        np.sign([moves[hour * 12 + part].sum() for hour in hours]) for part in (slice_of(0), slice_of(TOLD))
    )
    way = np.where(cascades, -1, 1)
    assert np.all((after == way) | (after == 0))
    assert 0.3 < np.mean(before[before != 0] == way[before != 0]) < 0.7
    assert np.abs(seen.surprise[(hours[:, None] * 12 + np.arange(TOLD))]).max(axis=1).min() > 1


def slice_of(start: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(start, TOLD if start == 0 else 12)


@pytest.mark.soak
def test_what_was_lately_is_a_mean_that_looks_back() -> None:
    column = np.array([4.0, 2.0, 6.0, 0.0])
    assert _lately(column, 2 * GRID).tolist() == [4.0, 3.0, 4.0, 3.0]
    assert _lately(column, 9 * GRID).tolist() == [4.0, 3.0, 4.0, 3.0]
    assert _lately(column, GRID).tolist() == column.tolist()
