"""The synthetic walk: how restless it is, how it trades, and that nothing of its past tells which way it goes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.examples import mark_all_but
from zuno.adapters.venues.synthetic.candles import SyntheticMarket, TickBars, build_market
from zuno.adapters.venues.synthetic.path import (
    DAYS_FROM,
    END,
    HOURS,
    HOURS_FROM,
    MINUTES_FROM,
    ZONES,
    Path,
    RandomStream,
    decay_noise,
    draw_paths,
    hour_of,
)
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.measure.bars import Bars as Columns
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.triage import measure_spike
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, Timeframe

pytestmark = pytest.mark.slow
SEEDS = (1, 2, 3, 11)
MANY = range(1_000, 1_012)
STOP, TARGET = 1.5, 3.0
"""Of a trade, in usual moves of two hours."""
PATIENCE = 400


@pytest.fixture(scope="module", params=mark_all_but(2, SEEDS, pytest.mark.soak))
def made(request: pytest.FixtureRequest) -> dict[Symbol, SyntheticMarket]:
    return {symbol: build_market(request.param, path) for symbol, path in draw_paths(request.param).items()}


@pytest.fixture(scope="module")
def walks() -> list[Path]:
    """Of many markets; one symbol of each, for the two go together."""
    return [draw_paths(seed)[Symbol("BTCUSDT")] for seed in MANY]


@pytest.fixture(scope="module")
def markets(walks: list[Path]) -> list[SyntheticMarket]:
    return [build_market(seed, walk) for seed, walk in zip(MANY, walks, strict=True)]


@pytest.fixture(scope="module")
def many(markets: list[SyntheticMarket]) -> list[tuple[Floats, Floats, Floats]]:
    """Highs, lows and closes of their hours, as logarithms."""
    hours = [one.bars[Timeframe.H1] for one in markets]
    return [(np.log(bars.high), np.log(bars.low), np.log(bars.close)) for bars in hours]


def returns(bars: TickBars) -> Floats:
    return np.diff(np.log(bars.close))


@pytest.mark.soak(every=2)
def test_the_market_is_as_long_as_it_should_be(made: dict[Symbol, SyntheticMarket]) -> None:
    for one in made.values():
        counts = {timeframe: len(bars.at) for timeframe, bars in one.bars.items()}
        assert counts == {"1m": 45 * 1_440, "1h": 400 * 24, "4h": 400 * 6, "1d": 3_300, "1w": 471}
        for timeframe, bars in one.bars.items():
            assert np.all(np.diff(bars.at) == timeframe.millis)
            assert all(timeframe.floor(at) == at for at in bars.at.tolist()[:50])
            whole = timeframe.floor(END)
            assert bars.at[-1] == whole - timeframe.millis  # the week that is not over is not here


@pytest.mark.soak
def test_hours_have_fat_tails(made: dict[Symbol, SyntheticMarket]) -> None:
    for one in made.values():
        moved = returns(one.bars[Timeframe.H1])
        beyond = np.mean((moved - moved.mean()) ** 4) / np.var(moved) ** 2 - 3
        assert beyond > 5, "even over and above a normal one's three"


@pytest.mark.soak
def test_restless_hours_come_together(made: dict[Symbol, SyntheticMarket]) -> None:
    for one in made.values():
        far = np.abs(returns(one.bars[Timeframe.H1]))
        assert np.corrcoef(far[24:], far[:-24])[0, 1] > 0.05


@pytest.mark.soak
def test_volume_has_its_hours(made: dict[Symbol, SyntheticMarket]) -> None:
    for one in made.values():
        bars = one.bars[Timeframe.H1]
        by_hour = bars.volume.reshape(-1, 24)  # the first hour is a midnight's
        assert bars.at[0] % DAY_MS == 0
        for middle in (by_hour.mean(axis=0), np.median(by_hour, axis=0)):
            assert middle.max() / middle.min() >= 1.5


@pytest.mark.soak
def test_spikes_are_as_rare_as_in_a_real_market(made: dict[Symbol, SyntheticMarket]) -> None:
    for one in made.values():
        hours = columns(one, Timeframe.H1)
        found = [measure_spike(hours, {}, Millis(at)) for at in range(END - 300 * DAY_MS, END, 7 * HOUR_MS)]
        known = [spike for spike in found if not isinstance(spike, Missing)]
        assert len(known) == len(found)
        assert 0.005 < sum(spike.is_spike for spike in known) / len(known) < 0.05


@pytest.mark.soak
def test_both_symbols_go_together(made: dict[Symbol, SyntheticMarket]) -> None:
    both = [returns(one.bars[Timeframe.H1]) for one in made.values()]
    assert 0.7 < np.corrcoef(*both)[0, 1] < 0.95  # type: ignore[call-overload]


@pytest.mark.soak
def test_takers_lean_the_way_the_price_goes(made: dict[Symbol, SyntheticMarket]) -> None:
    for one in made.values():
        bars = one.minutes
        share = bars.taker_buy / bars.volume
        assert np.all((share > 0) & (share < 1))
        assert np.corrcoef(share[1:], np.sign(returns(bars)))[0, 1] > 0.5


@pytest.mark.soak
@pytest.mark.parametrize("timeframe", [Timeframe.D1, Timeframe.H1])
def test_takers_lean_as_far_however_finely_time_was_cut(
    made: dict[Symbol, SyntheticMarket], timeframe: Timeframe
) -> None:
    """A day of minutes leans as far as one of hours and as one that was walked whole, and with its price like them."""
    for one in made.values():
        bars = one.bars[timeframe]
        leaning, moved = 2 * bars.taker_buy / bars.volume - 1, np.log(bars.close / bars.open)
        parts = [(bars.at >= zone.start) & (bars.at < zone.end) for zone in ZONES if zone.bar <= timeframe.millis]
        spreads = [float(leaning[part].std()) for part in parts]
        assert min(spreads) > 0.025
        for coarse, fine in pairwise(spreads):
            assert 0.6 < fine / coarse < 1.6
        assert min(np.corrcoef(leaning[part], moved[part])[0, 1] for part in parts) > 0.25


@pytest.mark.soak
def test_every_market_has_a_panic_to_look_at_and_a_quiet_end(made: dict[Symbol, SyntheticMarket]) -> None:
    jumps = made[Symbol("BTCUSDT")].path.jumps
    late = jumps.hour >= hour_of(MINUTES_FROM)
    assert np.any(jumps.cascade[late])
    assert jumps.hour.max() < HOURS - 72
    far = np.abs(returns(made[Symbol("BTCUSDT")].bars[Timeframe.H1]))[-45 * 24 :]
    assert far.max() > 0.03
    assert far[-72:].max() < 0.03


# -- no edge


@pytest.mark.soak
def test_the_mirror_image_goes_the_other_way_and_has_the_same_past(made: dict[Symbol, SyntheticMarket]) -> None:
    after = MINUTES_FROM + 17 * DAY_MS + 5 * HOUR_MS
    for one in made.values():
        turned = one.path.mirror(after)
        for zone, steps, other in zip(ZONES, one.path.steps, turned.steps, strict=True):
            kept = max(0, min(zone.end, after) - zone.start) * zone.per_hour // HOUR_MS
            assert np.array_equal(other.reshape(-1)[:kept], steps.reshape(-1)[:kept])
            assert np.array_equal(other.reshape(-1)[kept:], -steps.reshape(-1)[kept:])
        assert turned.sigma is one.path.sigma, "how far it goes does not depend on which way it went"


@pytest.mark.soak
@pytest.mark.parametrize("zone", range(3))
def test_no_step_goes_on_where_the_last_ones_went(walks: list[Path], zone: int) -> None:
    """At the finest there is: whether a step goes the way of the one before, of the one before that, and so on."""
    for lag in (1, 2, 5, 12):
        same = [np.sign(walk.steps[zone].reshape(-1)) for walk in walks]
        together = sum(float((way[lag:] * way[:-lag]).sum()) for way in same)
        count = sum(len(way) - lag for way in same)
        assert abs(together / count) < 3 / np.sqrt(count)


@pytest.mark.soak
def test_an_hour_goes_up_as_often_as_down_whatever_the_one_before_did(
    many: list[tuple[Floats, Floats, Floats]],
) -> None:
    ways = [np.sign(np.diff(close)) for _, _, close in many]
    for said in (ways, [way[1:] * way[:-1] for way in ways]):
        up, down = (sum(int((one == way).sum()) for one in said) for way in (1, -1))
        assert abs(up / (up + down) - 0.5) < 1.96 * 0.5 / np.sqrt(up + down)


@pytest.mark.soak
@pytest.mark.parametrize("timeframe", [Timeframe.M1, Timeframe.H1, Timeframe.D1])
def test_how_takers_lean_says_nothing_of_the_next_bar(markets: list[SyntheticMarket], timeframe: Timeframe) -> None:
    said = []
    for one in markets:
        bars = one.bars[timeframe]
        said.append((bars.taker_buy[:-1] / bars.volume[:-1] - 0.5) * np.sign(returns(bars)))
    each = np.concatenate(said)
    assert abs(each.mean()) < 3 * each.std() / np.sqrt(len(each))


@pytest.mark.soak
@pytest.mark.parametrize("lookback", [1, 6, 24, 168])
def test_neither_following_nor_fading_a_move_beats_the_driftless_rate(
    many: list[tuple[Floats, Floats, Floats]], lookback: int
) -> None:
    """A stop at 1.5 and a target at 3 usual moves: who is touched first. The driftless rate is what both ways get
    together; following and fading each lie in its 95 % band."""
    touched = {way: [trade(*hours, lookback, way) for hours in many] for way in (1, -1)}
    hits = {way: sum(sum(one) for one in found) for way, found in touched.items()}
    counts = {way: sum(len(one) for one in found) for way, found in touched.items()}
    driftless = sum(hits.values()) / sum(counts.values())
    assert min(counts.values()) > 2_000
    assert 0.25 < driftless < 0.40
    for way in (1, -1):
        band = 1.96 * np.sqrt(driftless * (1 - driftless) / counts[way])
        assert abs(hits[way] / counts[way] - driftless) < band


def trade(high: Floats, low: Floats, close: Floats, lookback: int, way: int) -> list[bool]:
    """One trade after the other, each the way of the last move (1) or against it (−1): whether its target came first.
    An hour that touched both counts as lost."""
    won: list[bool] = []
    at, usual = lookback + 168, np.abs(np.diff(close))
    while at < len(close) - 1:
        long = (close[at] > close[at - lookback]) == (way > 0)
        far = usual[at - 168 : at].mean() * 2
        ahead = slice(at + 1, at + PATIENCE)
        if long:
            gained, lost = high[ahead] >= close[at] + TARGET * far, low[ahead] <= close[at] - STOP * far
        else:
            gained, lost = low[ahead] <= close[at] - TARGET * far, high[ahead] >= close[at] + STOP * far
        over = np.flatnonzero(gained | lost)
        if not len(over):
            break
        won.append(bool(not lost[over[0]]))
        at += int(over[0]) + 1
    return won


# -- chance


def test_equal_seeds_give_equal_walks_and_others_other_ones() -> None:
    one, same, other = (draw_paths(seed)[Symbol("ETHUSDT")] for seed in (5, 5, 6))
    assert all(np.array_equal(left, right) for left, right in zip(one.steps, same.steps, strict=True))
    assert not np.array_equal(one.steps[0], other.steps[0])


@pytest.mark.soak
def test_every_part_has_a_stream_of_its_own() -> None:
    draws = {name: RandomStream(3, name).uniform() for name in ("jumps", "panics", "jump", "s")}
    assert len(set(draws.values())) == len(draws)
    assert RandomStream(3, "jumps").uniform() == draws["jumps"]


@pytest.mark.soak
def test_noise_fades_as_the_sum_says() -> None:
    noise = np.array([1.0, 0.0, 2.0])
    assert decay_noise(noise, 0.5, start=4.0).tolist() == [3.0, 1.5, 2.75]


@pytest.mark.soak
def test_time_is_cut_where_it_says() -> None:
    assert [zone.start for zone in ZONES] == [DAYS_FROM, HOURS_FROM, MINUTES_FROM]
    assert ZONES[-1].end == END
    assert hour_of(END) == HOURS


def columns(one: SyntheticMarket, timeframe: Timeframe) -> Columns:
    bars = one.bars[timeframe]
    prices = [one.grain.price(column) for column in bars.columns[1:5]]
    return Columns(timeframe, bars.at, *prices, one.grain.size(bars.volume), one.grain.size(bars.taker_buy))  # type: ignore[call-arg]
