"""Every gauge against another implementation, its rules on any market, and what it says of markets that do nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, fields

import numpy as np
import pytest
import talib
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire import textbook
from tests.wire.markets import MIDNIGHT, flat, of_closes, small_markets, walk
from tests.wire.real_minutes import grouped, minutes
from zuno.kernel.units import Millis
from zuno.trading.measure import indicators
from zuno.trading.measure.bars import LOOKBACK, Bars, Floats, bars
from zuno.trading.measure.frames import measure_frame
from zuno.trading.measure.indicators import (
    BLOCK_ROWS,
    IndicatorSeries,
    IndicatorValues,
    compute_indicators,
    drop_invalid_bars,
    rolling_sum,
    take_last_indicators,
)
from zuno.trading.measure.portable import GAUGE_DIGITS, places
from zuno.trading.model.market import Candle, Mode, Timeframe

PRICE_LIKE = (
    "macd macd_signal macd_histogram ema9 ema21 ema50 ema200 atr bb_upper bb_middle bb_lower keltner_upper "
    "keltner_middle keltner_lower supertrend tenkan kijun span_a span_b lead_a lead_b chikou vwap"
).split()
NAMES = [each.name for each in fields(IndicatorSeries)]


def compute_last_indicators(market: Bars) -> IndicatorValues | None:
    frame = measure_frame(market, 5)
    return None if frame is None else frame.readings


def agree(ours: Floats, theirs: textbook.Column, rel: float = 1e-9, abs_: float = 1e-9) -> None:
    assert len(ours) == len(theirs)
    assert [math.isnan(value) for value in ours] == [value is None for value in theirs]
    assert [value for value in ours if not math.isnan(value)] == pytest.approx(
        [value for value in theirs if value is not None], rel=rel, abs=abs_
    )


def oracle(market: Bars) -> dict[str, textbook.Column]:
    high, low, close, volume = (each.tolist() for each in (market.high, market.low, market.close, market.volume))
    upper, middle, lower = textbook.bollinger(close)
    line, signal, histogram = textbook.macd(close)
    k, d = textbook.stoch_rsi(textbook.rsi(close))
    channel = textbook.keltner(high, low, close)
    trend, side = textbook.supertrend(high, low, close)
    tenkan, kijun, lead_b = (textbook.middle_of(high, low, span) for span in (9, 26, 52))
    both = zip(tenkan, kijun, strict=True)
    lead_a: textbook.Column = [None if a is None or b is None else (a + b) / 2 for a, b in both]
    count = len(close)
    return {
        "rsi": textbook.rsi(close),
        "stoch_rsi_k": k,
        "stoch_rsi_d": d,
        "macd": line,
        "macd_signal": signal,
        "macd_histogram": histogram,
        "adx": textbook.adx(high, low, close),
        **{f"ema{span}": textbook.ema(close, span) for span in (9, 21, 50, 200)},
        "atr": textbook.atr(high, low, close),
        "bb_upper": upper,
        "bb_middle": middle,
        "bb_lower": lower,
        "keltner_upper": channel[0],
        "keltner_middle": channel[1],
        "keltner_lower": channel[2],
        "supertrend": trend,
        "supertrend_side": side,
        "tenkan": tenkan,
        "kijun": kijun,
        "lead_a": lead_a,
        "lead_b": lead_b,
        "span_a": ([None] * 26 + lead_a)[:count],
        "span_b": ([None] * 26 + lead_b)[:count],
        "chikou": [None if i < 26 else close[i] for i in range(count)],
        "mfi": textbook.mfi(high, low, close, volume),
        "cmf": textbook.cmf(high, low, close, volume),
        "obv": textbook.obv(close, volume),
        "vwap": textbook.vwap(market.at.tolist(), high, low, close, volume),
    }


def real_hours() -> Bars:
    return bars(Timeframe.H1, grouped(minutes(), Timeframe.H1))


@pytest.mark.slow
@pytest.mark.parametrize("market", [walk(400, seed=2), walk(260, seed=3, start=1e-7), walk(260, seed=4, start=1e9)])
def test_every_column_is_what_its_definition_says(market: Bars) -> None:
    ours = compute_indicators(market)
    scale = float(market.close[0]) * 1e-9
    for name, column in oracle(market).items():
        agree(getattr(ours, name), column, rel=1e-8, abs_=scale if name in PRICE_LIKE else 1e-7)


@pytest.mark.soak
def test_every_column_is_what_its_definition_says_on_a_real_market() -> None:
    market = real_hours()
    ours = compute_indicators(market)
    for name, column in oracle(market).items():
        agree(getattr(ours, name), column, rel=1e-8, abs_=1e-6)


@pytest.mark.soak
@settings(max_examples=examples(60), deadline=None)
@given(small_markets(most=80))
def test_ties_flat_stretches_and_bars_without_volume_change_no_definition(market: Bars) -> None:
    """Where a tie is decided by rounding (Supertrend), or a range is nothing but rounding (StochRSI of another RSI),
    two ways of computing may differ: those are held to our own figures below."""
    ours = compute_indicators(market)
    theirs = oracle(market)
    for name in set(theirs) - {"supertrend", "supertrend_side", "stoch_rsi_k", "stoch_rsi_d"}:
        agree(getattr(ours, name), theirs[name], abs_=1e-6)
    strength: textbook.Column = [None if math.isnan(value) else float(value) for value in ours.rsi]
    k, d = textbook.stoch_rsi(strength)
    agree(ours.stoch_rsi_k, k, abs_=1e-6)
    agree(ours.stoch_rsi_d, d, abs_=1e-6)


def test_ours_are_ta_libs_where_ta_lib_has_them_too() -> None:
    market = walk(600, seed=5)
    ours = compute_indicators(market)
    high, low, close, volume = market.high, market.low, market.close, market.volume
    typical = talib.TYPPRICE(high, low, close)
    money = talib.AD(high, low, close, volume)
    flow = talib.SUM(np.diff(money, prepend=0.0), 20) / talib.SUM(volume, 20)
    fast_k, fast_d = talib.STOCHRSI(close, 14, 14, 3)
    for mine, theirs in (
        (ours.mfi, talib.MFI(high, low, close, volume, 14)),
        (ours.cmf, flow),
        (ours.stoch_rsi_k, fast_d),
        (ours.stoch_rsi_d, talib.SMA(fast_d, 3)),
        (ours.tenkan, talib.MIDPRICE(high, low, 9)),
        (ours.kijun, talib.MIDPRICE(high, low, 26)),
        (ours.lead_b, talib.MIDPRICE(high, low, 52)),
        (ours.keltner_upper, talib.EMA(close, 20) + 1.5 * talib.ATR(high, low, close, 20)),
        (ours.bb_width * ours.bb_middle, 4 * talib.STDDEV(close, 20, 1)),
        (indicators.anchored_vwap(market, 0), np.cumsum(typical * volume) / np.cumsum(volume)),
        (rolling_sum(volume, 13), talib.SUM(volume, 13)),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert not np.allclose(ours.stoch_rsi_k[40:], fast_k[40:])


def test_wilders_own_first_sums_fade_from_adx() -> None:
    """ta-lib begins with the sums of 13 bars where Wilder has 14: after 200 bars nobody can tell."""
    market = walk(400, seed=6)
    wilders = textbook.adx(market.high.tolist(), market.low.tolist(), market.close.tolist(), first=14)
    assert compute_indicators(market).adx[250:] == pytest.approx([value or 0.0 for value in wilders[250:]], rel=1e-5)


def test_golden_figures_of_a_walk() -> None:
    """Frozen: a change of any of these is a change of what the desk sees."""
    found = compute_last_indicators(walk(1_200, seed=7))
    assert found is not None
    seen = asdict(found).items()
    assert {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in seen} == GOLDEN


@pytest.mark.slow
def test_golden_figures_of_a_real_market() -> None:
    found = compute_last_indicators(real_hours())
    assert found is not None
    seen = {name: float(f"{getattr(found, name):.6g}") for name in REAL}
    assert seen == REAL


def test_only_the_last_thousand_bars_count() -> None:
    market = walk(LOOKBACK + 300, seed=8)
    assert compute_last_indicators(market) == compute_last_indicators(market.last(LOOKBACK))
    assert compute_last_indicators(market) != compute_last_indicators(market.last(LOOKBACK - 1))


@pytest.mark.parametrize("timeframe", sorted({frame for mode in Mode for frame in mode.timeframes}))
@pytest.mark.parametrize("count", [200, 201, 700])
def test_behaviour_02_two_hundred_bars_yield_rsi_atr_adx_and_bollinger_on_every_timeframe(
    timeframe: Timeframe, count: int
) -> None:
    for market in (walk(count, seed=9, timeframe=timeframe), flat(count, timeframe=timeframe)):
        found = compute_last_indicators(market)
        assert found is not None
        for name in ("rsi", "atr", "adx", "bb_upper", "bb_middle", "bb_lower", "bb_width", "ema200", "macd"):
            assert getattr(found, name) is not None, name


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(small_markets(least=34))
def test_behaviour_03_macd_histogram_is_line_minus_signal(market: Bars) -> None:
    ours = compute_indicators(market)
    np.testing.assert_array_equal(ours.macd_histogram, ours.macd - ours.macd_signal)
    assert not np.isnan(ours.macd_histogram[33:]).any()
    found = compute_last_indicators(market)
    assert found is not None
    assert found.macd is not None
    assert found.macd_signal is not None
    # Each of the three is rounded by itself.
    unit = 10.0 ** -places(found.close, GAUGE_DIGITS)
    assert found.macd_histogram == pytest.approx(found.macd - found.macd_signal, abs=2 * unit)


def test_behaviour_03_a_rising_market_has_its_line_above_its_signal() -> None:
    """Swapped names would pass the sum and fail here."""
    found = compute_last_indicators(of_closes([100 * 1.001 ** (i * i / 40) for i in range(120)]))
    assert found is not None
    assert found.macd is not None
    assert found.macd_signal is not None
    assert found.macd > found.macd_signal > 0


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(small_markets(least=9))
def test_behaviour_04_tenkan_is_the_middle_of_nine_bars(market: Bars) -> None:
    ours = compute_indicators(market)
    for row in range(8, len(market)):
        window = slice(row - 8, row + 1)
        assert ours.tenkan[row] == (max(market.high[window]) + min(market.low[window])) / 2
    assert np.isnan(ours.tenkan[:8]).all()


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets(), st.integers(0, 89))
def test_behaviour_15_truncating_the_future_changes_no_column(market: Bars, cut: int) -> None:
    same_before(market, cut % len(market))


@pytest.mark.parametrize("cut", [1, 9, 26, 52, 78, 120, 201, 299])
def test_behaviour_15_truncating_the_future_changes_no_column_of_a_long_walk(cut: int) -> None:
    same_before(walk(300, seed=15), cut)


def same_before(market: Bars, cut: int) -> None:
    """To the last bit."""
    then = market.upto(int(market.at[cut]))
    assert len(then) == cut
    whole, part = compute_indicators(market), compute_indicators(then)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(whole, name)[:cut], getattr(part, name), err_msg=name)


@pytest.mark.slow
def test_a_window_is_the_same_wherever_a_long_column_is_divided() -> None:
    """Windows are computed in blocks of rows; what a block lacks at its edge stands in the one before."""
    long = walk(2 * BLOCK_ROWS + 40, seed=16)
    short = Bars(long.timeframe, *(getattr(long, each.name)[-BLOCK_ROWS:] for each in fields(Bars)[1:]))
    whole, part = compute_indicators(long), compute_indicators(short)
    for name in ("bb_upper", "bb_middle", "bb_lower", "mfi", "cmf"):
        np.testing.assert_array_equal(getattr(whole, name)[-BLOCK_ROWS + 20 :], getattr(part, name)[20:], err_msg=name)


@pytest.mark.parametrize("cut", [1, 15, 50, 201, 333, 527])
def test_behaviour_15_truncating_the_future_changes_no_reading_of_a_real_market(cut: int) -> None:
    market = real_hours()
    then = market.upto(int(market.at[cut]))
    assert len(then) == cut
    whole = compute_indicators(market)
    seen = IndicatorSeries(*(getattr(whole, name)[:cut] for name in NAMES))
    assert compute_last_indicators(then) == take_last_indicators(then, seen)


def scaled(market: Bars, price: float, volume: float = 1.0) -> Bars:
    opens, highs, lows, closes = (each * price for each in (market.open, market.high, market.low, market.close))
    taken = market.taker_buy * volume
    return Bars(market.timeframe, market.at, opens, highs, lows, closes, market.volume * volume, taken)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(-200, 200), st.integers(-60, 60))
def test_no_gauge_depends_on_the_unit_of_price_or_volume(seed: int, price: int, volume: int) -> None:
    """Powers of two lose no digit, so not a bit may differ; other factors only by rounding."""
    market = walk(230, seed=seed)
    plain, other = compute_indicators(market), compute_indicators(scaled(market, 2.0**price, 2.0**volume))
    for name in NAMES:
        factor = 2.0**price if name in PRICE_LIKE else 2.0**volume if name in ("obv", "cvd") else 1.0
        np.testing.assert_array_equal(getattr(other, name), getattr(plain, name) * factor, err_msg=name)


@pytest.mark.parametrize("factor", [1e-9, 3.7e-5, 0.1, 7.0, 1e6, 1.3e11])
def test_no_gauge_depends_on_the_currency(factor: float) -> None:
    market = walk(300, seed=11)
    plain, other = compute_indicators(market), compute_indicators(scaled(market, factor))
    for name in NAMES:
        times = factor if name in PRICE_LIKE else 1.0
        np.testing.assert_allclose(
            getattr(other, name), getattr(plain, name) * times, rtol=1e-8, atol=1e-9 * max(times, 1e-12), err_msg=name
        )


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(small_markets())
def test_every_gauge_stays_in_its_range(market: Bars) -> None:
    ours = compute_indicators(market)
    for name, low, high in (
        ("rsi", 0, 100),
        ("stoch_rsi_k", 0, 100),
        ("stoch_rsi_d", 0, 100),
        ("adx", 0, 100),
        ("mfi", 0, 100),
        ("cmf", -1, 1),
        ("atr", 0, 100),
        ("squeeze", 0, 1),
        ("bb_width", 0, 10),
    ):
        column = getattr(ours, name)
        seen = column[~np.isnan(column)]
        assert np.all((seen >= low - 1e-9) & (seen <= high + 1e-9)), name
    known = ~np.isnan(ours.vwap)
    assert np.all(ours.vwap[known] >= market.low.min() - 1e-9)
    assert np.all(ours.vwap[known] <= market.high.max() + 1e-9)
    assert np.all(~(ours.bb_lower > ours.bb_middle) & ~(ours.bb_middle > ours.bb_upper))
    for name in NAMES:
        assert not np.isinf(getattr(ours, name)).any()


@pytest.mark.parametrize("price", [1e-12, 0.1, 3.0, 43_210.123, 1e15])
@pytest.mark.parametrize("volume", [0.0, 1e-9, 5.0, 1e12])
def test_a_market_that_stands_still_is_said_to(price: float, volume: float) -> None:
    found = compute_last_indicators(flat(300, price, volume))
    assert found is not None
    assert (found.rsi, found.adx, found.atr, found.tenkan) == (50.0, 0.0, 0.0, price)
    assert (found.bb_upper, found.bb_lower) == pytest.approx((price, price), rel=1e-12)
    assert found.bb_width == pytest.approx(0, abs=1e-12)
    assert (found.stoch_rsi_k, found.stoch_rsi_d, found.mfi) == (None, None, None)
    assert found.squeeze is True
    assert (found.supertrend, found.supertrend_side) == (price, 1)
    assert found.ema200 == pytest.approx(price, rel=1e-12)
    assert found.macd_histogram == pytest.approx(0, abs=price * 1e-12)
    if volume == 0:
        assert (found.cmf, found.vwap, found.cvd, found.obv) == (None, None, 0.0, 0.0)
    else:
        assert (found.cmf, found.cvd) == (0.0, 0.0)
        assert found.vwap == pytest.approx(price, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_market_that_stopped_keeps_its_rsi_and_has_no_bands(seed: int) -> None:
    """Averages that fade to nothing, sums of windows that have gone by: neither may leave anything behind."""
    moving = walk(100, seed=seed).close.tolist()
    ours = compute_indicators(of_closes(moving + [moving[-1]] * 900))
    assert ours.rsi[99:] == pytest.approx([ours.rsi[99]] * 901, rel=1e-9)
    assert 20 < ours.rsi[-1] < 80
    assert np.isnan(ours.stoch_rsi_k[115:]).all()
    assert np.isnan(ours.mfi[115:]).all()
    assert (ours.bb_upper[-1], ours.bb_lower[-1]) == pytest.approx((moving[-1],) * 2, rel=1e-12)
    assert ours.bb_width[150:] == pytest.approx([0.0] * 850, abs=1e-12)
    assert ours.adx[400:] == pytest.approx([ours.adx[-1]] * 600, abs=1e-6)
    assert 0 < ours.adx[-1] < 100
    assert ours.squeeze[-1] == 1


def test_the_first_move_ends_the_balance_of_a_market_that_stood_still() -> None:
    ours = compute_indicators(of_closes([100.0] * 40 + [101.0, 101.0, 100.0]))
    assert ours.rsi[14:40].tolist() == [50.0] * 26
    assert ours.rsi[40:42].tolist() == [100.0, 100.0]
    assert 40 < ours.rsi[42] < 60
    early = compute_indicators(of_closes([100.0] * 5 + [101.0] * 30))
    assert early.rsi[14:].tolist() == [100.0] * 21


@pytest.mark.parametrize(("step", "strength"), [(1.0, 100.0), (-1.0, 0.0)])
def test_a_market_that_only_goes_one_way_is_at_the_end_of_the_scale(step: float, strength: float) -> None:
    found = compute_last_indicators(of_closes([1_000 + step * i for i in range(260)]))
    assert found is not None
    assert found.rsi == strength
    assert found.mfi == pytest.approx(strength, abs=1e-9)
    assert found.adx == pytest.approx(100)
    assert found.stoch_rsi_k is None
    assert found.supertrend_side == step


@pytest.mark.parametrize("count", range(1, 60))
def test_every_gauge_begins_with_the_bar_that_completes_it(count: int) -> None:
    """How many bars each needs, and not one less; `walk` begins at midnight, so a day's VWAP is there at once."""
    found = compute_last_indicators(walk(count, seed=13))
    assert found is not None
    for name, needs in NEEDS.items():
        assert (getattr(found, name) is not None) == (count >= needs), name


NEEDS = {
    "rsi": 15,
    "stoch_rsi_k": 30,
    "stoch_rsi_d": 32,
    "macd": 34,
    "macd_signal": 34,
    "macd_histogram": 34,
    "adx": 28,
    "ema9": 9,
    "ema21": 21,
    "ema50": 50,
    "atr": 15,
    "bb_upper": 20,
    "bb_width": 20,
    "keltner_upper": 21,
    "keltner_middle": 20,
    "squeeze": 21,
    "supertrend": 11,
    "supertrend_side": 11,
    "tenkan": 9,
    "kijun": 26,
    "span_a": 52,
    "lead_a": 26,
    "lead_b": 52,
    "chikou": 27,
    "mfi": 15,
    "cmf": 20,
    "obv": 1,
    "vwap": 1,
    "cvd": 1,
}


def test_no_bars_have_no_readings() -> None:
    nothing = bars(Timeframe.H1, [])
    assert compute_last_indicators(nothing) is None
    assert all(len(getattr(compute_indicators(nothing), name)) == 0 for name in NAMES)


def test_chikou_is_kept_where_it_is_known() -> None:
    market = walk(60, seed=14)
    ours = compute_indicators(market)
    assert ours.chikou[59] == market.close[59]
    assert math.isnan(ours.chikou[25])
    assert ours.span_a[58] == ours.lead_a[32]


def test_the_days_vwap_begins_anew_at_midnight_and_needs_the_whole_day() -> None:
    market = walk(60, seed=15)
    ours = indicators.vwap(market)
    assert ours[24] == pytest.approx((market.high[24] + market.low[24] + market.close[24]) / 3)
    late = indicators.vwap(market.last(50))  # from 10:00 on
    assert np.isnan(late[:14]).all()
    np.testing.assert_allclose(late[14:], ours[24:], rtol=1e-12)


def test_a_day_that_lacks_its_first_hours_has_no_vwap_and_the_next_has() -> None:
    market = walk(72, seed=15)
    here = np.delete(np.arange(72), [24, 25, 26])
    numbers = (market.open, market.high, market.low, market.close, market.volume, market.taker_buy)
    holed = Bars(Timeframe.H1, market.at[here], *(column[here] for column in numbers))
    ours = indicators.vwap(holed)
    assert np.isnan(ours).tolist() == [False] * 24 + [True] * 21 + [False] * 24
    np.testing.assert_allclose(ours[-24:], indicators.vwap(market)[-24:], rtol=1e-12)


@pytest.mark.parametrize("timeframe", [Timeframe.D1, Timeframe.W1])
def test_bars_of_a_day_or_more_have_no_days_vwap(timeframe: Timeframe) -> None:
    found = compute_last_indicators(walk(60, timeframe=timeframe))
    assert found is not None
    assert found.vwap is None


def test_an_anchored_vwap_begins_with_its_bar() -> None:
    market = walk(50, seed=16)
    ours = indicators.anchored_vwap(market, int(market.at[20]))
    assert np.isnan(ours[:20]).all()
    tail = [(market.high[i] + market.low[i] + market.close[i]) / 3 * market.volume[i] for i in range(20, 50)]
    assert ours[-1] == pytest.approx(sum(tail) / sum(market.volume[20:].tolist()))
    assert ours[20] == pytest.approx(tail[0] / market.volume[20])
    between = indicators.anchored_vwap(market, int(market.at[20]) - 1)
    np.testing.assert_array_equal(between, ours)
    assert np.isnan(indicators.anchored_vwap(market, int(market.at[-1]) + 1)).all()


def candle(i: int, volume: float = 10.0, taker: float | None = 5.0, close: float = 100.0) -> Candle:
    return Candle(Millis(MIDNIGHT + i * Timeframe.H1.millis), 100.0, 110.0, 90.0, close, volume, taker)


def test_cvd_adds_what_takers_bought_less_what_they_sold_and_begins_anew_after_silence() -> None:
    takers = [None, 6.0, 4.0, 10.0, None, 0.0, 5.0, 10.0]
    ours = indicators.cvd(bars(Timeframe.H1, [candle(i, 10.0, taker) for i, taker in enumerate(takers)]))
    assert [None if math.isnan(value) else value for value in ours] == [None, 2, 0, 10, None, -10, -10, 0]


BAD: dict[str, Callable[[Candle], Candle]] = {
    "nan": lambda row: row._replace(close=math.nan),
    "inf": lambda row: row._replace(high=math.inf),
    "negative": lambda row: row._replace(low=-1.0),
    "zero": lambda row: row._replace(low=0.0),
    "high < low": lambda row: row._replace(high=80.0),
    "open outside": lambda row: row._replace(open=111.0),
    "close outside": lambda row: row._replace(close=89.0),
    "volume": lambda row: row._replace(volume=-1.0),
    "volume nan": lambda row: row._replace(volume=math.nan),
    "taker": lambda row: row._replace(taker_buy=11.0),
    "taker < 0": lambda row: row._replace(taker_buy=-1.0),
}


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD)
def test_a_bar_no_market_can_have_made_is_counted_and_not_read(spoil: Callable[[Candle], Candle]) -> None:
    rows = [candle(i, close=100.0 + i % 3) for i in range(60)]
    clean = compute_last_indicators(bars(Timeframe.H1, rows[:30] + rows[31:]))
    found = compute_last_indicators(bars(Timeframe.H1, [*rows[:30], spoil(rows[30]), *rows[31:]]))
    assert clean is not None
    assert found is not None
    assert (found.unsound, found.missing, clean.missing) == (1, 1, 1)
    assert asdict(found) == asdict(clean) | {"unsound": 1}
    assert compute_last_indicators(bars(Timeframe.H1, [spoil(rows[0])])) is None


def test_sound_bars_are_left_as_they_are() -> None:
    market = walk(20)
    assert drop_invalid_bars(market) is market


def test_missing_bars_are_counted() -> None:
    found = compute_last_indicators(bars(Timeframe.H1, [candle(i) for i in (0, 1, 4, 5, 9)]))
    assert found is not None
    assert (found.bars, found.missing) == (5, 5)


def test_figures_of_a_real_market_are_plausible() -> None:
    market = real_hours()
    ours = compute_indicators(market)
    price = market.close

    def between(column: Floats, low: float, high: float) -> None:
        seen = column[~np.isnan(column)]
        assert len(seen) > 300
        assert low < seen.min() < seen.max() < high

    between(ours.rsi, 10, 90)
    between(ours.adx, 5, 75)
    between(ours.atr / price, 0.004, 0.03)
    between(ours.bb_width, 0.005, 0.25)
    between(ours.mfi, 1, 99)
    between(ours.cmf, -0.6, 0.6)
    between(ours.ema200 / price, 0.8, 1.2)
    between(ours.macd / price, -0.04, 0.04)
    between(ours.vwap / price, 0.9, 1.1)
    assert 0.05 < np.nanmean(ours.squeeze) < 0.5
    flips = np.count_nonzero(np.diff(ours.supertrend_side[~np.isnan(ours.supertrend_side)]))
    assert 8 < flips < 40
    within = (market.close <= ours.bb_upper) & (market.close >= ours.bb_lower)
    assert 0.8 < within[20:].mean() < 0.99


def test_readings_name_every_column() -> None:
    assert {each.name for each in fields(IndicatorValues)} - set(NAMES) == {"at", "bars", "missing", "unsound", "close"}
    assert set(NAMES) <= {each.name for each in fields(IndicatorValues)}


GOLDEN: dict[str, float | int | bool | None] = {
    "at": 1704322800000,
    "bars": 1000,
    "missing": 0,
    "unsound": 0,
    "close": 33724.8257,
    "rsi": 47.864671,
    "stoch_rsi_k": 3.38047628,
    "stoch_rsi_d": 11.2065506,
    "macd": 137.73807,
    "macd_signal": 207.542256,
    "macd_histogram": -69.804187,
    "adx": 28.0685596,
    "ema9": 34020.1541,
    "ema21": 33935.5507,
    "ema50": 33700.5812,
    "ema200": 32225.9625,
    "atr": 505.568121,
    "bb_upper": 34782.1918,
    "bb_middle": 34020.8338,
    "bb_lower": 33259.4759,
    "bb_width": 0.044758334,
    "keltner_upper": 34707.9016,
    "keltner_middle": 33946.5262,
    "keltner_lower": 33185.1508,
    "squeeze": False,
    "supertrend": 33098.5187,
    "supertrend_side": 1,
    "tenkan": 34403.9281,
    "kijun": 33923.3448,
    "span_a": 33030.0302,
    "span_b": 33662.3505,
    "lead_a": 34163.6365,
    "lead_b": 33670.3458,
    "chikou": 33724.8257,
    "mfi": 38.2162892,
    "cmf": -0.235603823,
    "obv": -632.79558,
    "vwap": 33855.0004,
    "cvd": -1659.08267,
}
REAL: dict[str, float] = {
    "rsi": 40.4488,
    "macd": -15.5548,
    "macd_signal": -15.9292,
    "adx": 31.3941,
    "atr": 15.6939,
    "ema200": 1695.16,
    "bb_width": 0.0840053,
    "supertrend": 1739.21,
    "kijun": 1730.58,
    "span_b": 1742.88,
    "stoch_rsi_d": 58.5883,
    "mfi": 34.0763,
    "cmf": -0.237411,
    "vwap": 1722.16,
    "cvd": 528.431,
}
