"""The synthetic market as a whole: every feed is there, fits the price, knows no future, and has its dirt."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.wire.fakes.series import MemorySeries
from tests.wire.resampling import resample_bars
from zuno.adapters.venues.synthetic.candles import KRW_MINUTES_FROM
from zuno.adapters.venues.synthetic.injected_faults import EDITS, MARKET_FAULTS, MarketFault, inject_faults
from zuno.adapters.venues.synthetic.macro import draw_depegs
from zuno.adapters.venues.synthetic.path import (
    DAYS_FROM,
    END,
    HOURS,
    HOURS_FROM,
    MINUTES_FROM,
    Path,
    draw_panics,
    draw_paths,
)
from zuno.adapters.venues.synthetic.tape import HEARD_FROM
from zuno.adapters.venues.synthetic.world import describe_origin, draw_batches
from zuno.kernel.units import Millis
from zuno.markets.feeds import (
    ALTERNATIVE,
    BINANCE,
    DERIBIT,
    FIGURES,
    FRED,
    OKX,
    PERPETUALS,
    UPBIT,
    USDC_USDT,
    USDT_KRW,
    name_at,
)
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.measure.data_quality import complete_at, find_row_fault
from zuno.trading.measure.derivatives import PLAUSIBLE_RATE
from zuno.trading.measure.features import CADENCE_DAYS, last_print
from zuno.trading.measure.options import measure_surface
from zuno.trading.measure.order_book import (
    BookFigures,
    book_figures,
    find_book_fault,
    find_fake_walls,
    traded_in_minutes,
)
from zuno.trading.model.known import Missing
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    STALE_AFTER,
    Feed,
    Heartbeat,
    Series,
    Side,
    Text,
    Timeframe,
    basis,
    books,
    candles,
    dvol,
    fear_greed,
    funding,
    funding_next,
    liquidations,
    macro,
    open_interest,
    options,
    rates,
    whales,
)
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch

pytestmark = pytest.mark.slow
SEED = 11
AFTER = MINUTES_FROM + 20 * DAY_MS + 13 * HOUR_MS
"""Where the mirror stands."""
FULL_HOURS = np.arange(MINUTES_FROM + HOUR_MS, END + 1, HOUR_MS)
World = Mapping[Series[Any], Sequence[Any]]


@pytest.fixture(scope="module")
def walks() -> Mapping[Symbol, Path]:
    return draw_paths(SEED)


@pytest.fixture(scope="module")
def clean(walks: Mapping[Symbol, Path]) -> World:
    world = {batch.series: batch.rows for batch in draw_batches(SEED, walks)}
    gc.freeze()  # two million small things that stay: looked through again and again, they would slow every test down
    return world


@pytest.fixture(scope="module")
def dirty(clean: World) -> World:
    return {
        batch.series: batch.rows for batch in inject_faults([Batch(series, rows) for series, rows in clean.items()])
    }


# -- it is all there


def test_every_series_the_desk_wants_is_here(clean: World) -> None:
    assert {series for symbol in DEFAULT_SYMBOLS for series in wanted_series(symbol)} - set(clean) == set()


def test_every_row_is_one_a_market_can_have_made(clean: World) -> None:
    for series, rows in clean.items():
        assert all(later.at >= earlier.at for earlier, later in pairwise(rows)), series
        assert [why for row in rows[::17] if (why := find_row_fault(series, row, None))] == []


def test_nothing_is_of_after_the_end(clean: World) -> None:
    for series, rows in clean.items():
        assert rows[-1].at <= END
        if series.feed is not Feed.MACRO:
            assert complete_at(series, rows[-1]) <= END


@pytest.mark.soak
def test_every_feed_is_fresh_at_every_full_hour(clean: World) -> None:
    for symbol in DEFAULT_SYMBOLS:
        for series in wanted_series(symbol):
            rows = clean[series]
            if series.feed in (Feed.LIQUIDATIONS, Feed.WHALES) and series.row is not Heartbeat:
                continue
            known = np.sort(np.array([complete_at(series, row) for row in rows]))
            hours = FULL_HOURS[HEARD_FROM.get(series.venue, 0) < FULL_HOURS] if series.row is Heartbeat else FULL_HOURS
            age = hours - known[np.searchsorted(known, hours, side="right") - 1]
            assert age.min() >= 0, series
            assert age.max() <= limit(series, rows) * 1_000, series


def limit(series: Series[Any], rows: Sequence[Any]) -> float:
    if series.feed is Feed.CANDLES:
        return 2 * Timeframe(series.name.rpartition("/")[2]).millis / 1_000
    if series.feed is Feed.MACRO:
        return CADENCE_DAYS.get(series.name, 0) * 86_400 + STALE_AFTER[Feed.MACRO]
    settled = series.feed is Feed.FUNDING and not series.name.endswith("/next")
    return STALE_AFTER[series.feed] + (rows[-1].interval_hours * 3_600 if settled else 0)


# -- prices


@pytest.mark.soak(every=5)
@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
@pytest.mark.parametrize(
    ("fine", "coarse"),
    [("1m", "1h"), ("1m", "1d"), ("1h", "4h"), ("1h", "1d"), ("1d", "1w")],
)
def test_a_coarse_bar_is_exactly_what_its_fine_bars_make(clean: World, symbol: Symbol, fine: str, coarse: str) -> None:
    parts, wholes = Timeframe(fine), Timeframe(coarse)
    made = resample_bars(wholes, parts, clean[candles(BINANCE, symbol, parts)])
    held = {bar.at: bar for bar in clean[candles(BINANCE, symbol, wholes)]}
    assert len(made) > 40
    assert all(held[bar.at] == bar for bar in made)


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_the_won_market_follows_and_makes_no_bar_without_a_trade(clean: World, symbol: Symbol) -> None:
    name = name_at(UPBIT, symbol)
    minutes = clean[candles(UPBIT, name, Timeframe.M1)]
    assert minutes[0].at >= KRW_MINUTES_FROM
    assert 0.97 < len(minutes) / ((END - KRW_MINUTES_FROM) // MINUTE_MS) < 1
    hours = {bar.at: bar for bar in clean[candles(UPBIT, name, Timeframe.H1)]}
    for bar in resample_bars(Timeframe.H1, Timeframe.M1, minutes):
        assert hours[bar.at] == bar
    won = {row.at: row.value for row in clean[rates(UPBIT, USDT_KRW)]}
    for bar in clean[candles(BINANCE, symbol, Timeframe.H1)][-40:]:
        fair = bar.close * won[bar.at + HOUR_MS]
        assert abs(hours[bar.at].close / fair - 1) < 0.003
    assert all(bar.taker_buy is None for bar in minutes)


def test_a_dollar_is_a_dollar_until_fear_comes(clean: World) -> None:
    rows = clean[rates(BINANCE, USDC_USDT)]
    fear = [DAYS_FROM + hour * HOUR_MS for hour in draw_panics(SEED).tolist()]
    calm = [row.value for row in rows if not any(0 <= row.at - at < 10 * DAY_MS for at in fear)]
    assert len(set(calm)) > 20
    assert max(abs(value - 1) for value in calm) < 0.005


def test_in_some_panics_a_dollarslips_and_comes_back() -> None:
    at = np.arange(MINUTES_FROM, END, HOUR_MS)
    furthest = {seed: np.abs(draw_depegs(seed, at)) for seed in range(1, 13)}
    slipped = [slip for slip in furthest.values() if slip.max() > 0.01]
    assert 3 <= len(slipped) <= 10
    assert all(slip[-1] < 0.001 and 0.005 < np.mean(slip > 0.01) < 0.1 for slip in slipped)


# -- holders


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
@pytest.mark.parametrize("venue", PERPETUALS)
def test_funding_is_a_fraction_for_the_venues_own_interval(clean: World, venue: str, symbol: Symbol) -> None:
    settled = clean[funding(venue, symbol)]
    hours = 4 if (venue, symbol) == (OKX, Symbol("ETHUSDT")) else 8
    assert {later.at - earlier.at for earlier, later in pairwise(settled)} == {hours * HOUR_MS}
    assert {row.interval_hours for row in settled} == {hours}
    assert max(abs(row.rate) for row in settled) <= PLAUSIBLE_RATE
    assert min(row.rate for row in settled) < 0 < max(row.rate for row in settled)
    predicted = {row.at: row.rate for row in clean[funding_next(venue, symbol)]}
    for row in settled[-30:]:
        assert predicted[row.at] == pytest.approx(row.rate, abs=2e-8), "what is predicted at the end is what is paid"


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_a_jump_tears_positions_down_or_builds_them_up(
    clean: World, walks: Mapping[Symbol, Path], symbol: Symbol
) -> None:
    jumps = walks[symbol].jumps
    for venue in PERPETUALS:
        level = {row.at: row.value for row in clean[open_interest(venue, symbol)]}
        for hour, cascade in zip(jumps.hour.tolist(), jumps.cascade.tolist(), strict=True):
            start = END - (HOURS - hour) * HOUR_MS
            if start > MINUTES_FROM:
                change = level[start + HOUR_MS] / level[start] - 1
                assert (change < -0.005) if cascade else (change > 0.005)


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_a_mark_stands_near_the_price(clean: World, symbol: Symbol) -> None:
    closes = {bar.at + HOUR_MS: bar.close for bar in clean[candles(BINANCE, symbol, Timeframe.H1)]}
    for venue in PERPETUALS:
        rows = [row for row in clean[basis(venue, symbol)] if row.at in closes]
        assert max(abs(row.mark / closes[row.at] - 1) for row in rows) < 0.0005
        assert max(abs(row.mark / row.spot - 1) for row in rows) < 0.004


# -- books


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_books_fit_the_price_and_are_sometimes_thin(clean: World, symbol: Symbol) -> None:
    rows = clean[books(BINANCE, symbol)]
    assert len(rows) == 5 * 45 * 24
    assert all(len(book.bids) == len(book.asks) == 50 for book in rows)
    assert [flaw for book in rows[::3] if (flaw := find_book_fault(book))] == []
    closes = {bar.at + HOUR_MS: bar.close for bar in clean[candles(BINANCE, symbol, Timeframe.H1)]}
    last = rows[4::5]
    figures = [found for book in last if isinstance(found := book_figures(book), BookFigures)]
    assert max(abs(found.mid / closes[found.at + 500] - 1) for found in figures) < 0.0005
    thin = sum(isinstance(found.buy_slippage_bps, Missing) for found in figures) / len(figures)
    leaning = np.array([found.imbalance for found in figures if not isinstance(found.imbalance, Missing)])
    assert 0.002 < thin < 0.03
    assert 0 < np.mean(np.abs(leaning) > 0.7) < 0.05
    assert abs(leaning.mean()) < 0.06


@pytest.mark.soak
def test_walls_are_shown_and_withdrawn_now_and_then(clean: World) -> None:
    rows, symbol = clean[books(BINANCE, "BTCUSDT")], "BTCUSDT"
    minutes = {bar.at: bar for bar in clean[candles(BINANCE, symbol, Timeframe.M1)]}
    found = 0
    for start in range(0, len(rows), 5):
        looks = rows[start : start + 5]
        traded = traded_in_minutes([minutes[Timeframe.M1.floor(looks[0].at)]])
        walls = find_fake_walls(looks, traded)
        found += not isinstance(walls, Missing) and bool(walls.fake)
    assert 0.005 < found / (len(rows) / 5) < 0.05


# -- the tape


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_a_fall_forces_longs_out_and_a_rise_shorts(clean: World, symbol: Symbol) -> None:
    minutes = {bar.at: bar for bar in clean[candles(BINANCE, symbol, Timeframe.M1)]}
    for venue in HEARD_FROM:
        forced = {(side, way): 0.0 for side in Side for way in (False, True)}
        for row in clean[liquidations(venue, symbol)]:
            bar = minutes[Timeframe.M1.floor(row.at)]
            assert bar.low <= row.price <= bar.high
            assert row.usd == pytest.approx(row.price * row.quantity, abs=0.01)
            forced[row.side, bar.close > bar.open] += row.usd
        assert forced[Side.LONG, False] > 3 * forced[Side.LONG, True]
        assert forced[Side.SHORT, True] > 3 * forced[Side.SHORT, False]


@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_large_trades_are_part_of_their_minutes_volume(clean: World, symbol: Symbol) -> None:
    minutes = {bar.at: bar for bar in clean[candles(BINANCE, symbol, Timeframe.M1)]}
    taken: Counter[tuple[int, Side]] = Counter()
    for row in clean[whales(BINANCE, symbol)]:
        assert row.usd >= 100_000
        at = Timeframe.M1.floor(row.at)
        assert minutes[at].low <= row.price <= minutes[at].high
        taken[at, row.side] += row.quantity
    assert len(taken) > 1_000
    for (at, side), quantity in taken.items():  # type: ignore[assignment]
        bar = minutes[Millis(at)]
        assert quantity <= (bar.taker_buy if side is Side.LONG else bar.volume - bar.taker_buy)


def test_the_names_of_trades_are_their_own(clean: World) -> None:
    for series, rows in clean.items():
        if series.feed in (Feed.LIQUIDATIONS, Feed.WHALES) and series.row is not Heartbeat:
            assert len({(row.at, row.id) for row in rows}) == len(rows)


# -- options


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_every_chain_has_a_whole_surface(clean: World, symbol: Symbol) -> None:
    chains = clean[options(DERIBIT, symbol.base)]
    assert [chain.at for chain in chains] == FULL_HOURS.tolist()
    for chain in chains[::6]:
        listed = {(quote.expiry, quote.call): set[float]() for quote in chain.quotes}
        for quote in chain.quotes:
            listed[quote.expiry, quote.call].add(quote.strike)
        assert len({expiry for expiry, _ in listed}) >= 6
        assert min(map(len, listed.values())) >= 15
        found = measure_surface(chain)
        assert not isinstance(found.week.skew25, Missing)
        assert not isinstance(found.month.skew25, Missing)
        assert not isinstance(found.term, Missing)
        assert found.unplaced == found.dropped == 0


@pytest.mark.soak
@pytest.mark.parametrize("symbol", DEFAULT_SYMBOLS)
def test_the_term_structure_turns_over_in_a_panic_and_puts_get_dear_after_a_fall(clean: World, symbol: Symbol) -> None:
    chains = clean[options(DERIBIT, symbol.base)][::4]
    closes = {bar.at + HOUR_MS: bar.close for bar in clean[candles(BINANCE, symbol, Timeframe.H1)]}
    found = [measure_surface(chain) for chain in chains]
    term = np.array([one.term for one in found], dtype=float)
    skew = np.array([one.month.skew25 for one in found], dtype=float)
    index = {row.at: row.value for row in clean[dvol(DERIBIT, symbol.base)]}
    values = np.array([index[Millis(one.at)] for one in found])
    moved = np.array([np.log(closes[one.at] / closes[one.at - 48 * HOUR_MS]) for one in found])
    assert term.min() < -1
    assert term.max() > 2
    assert np.corrcoef(term, values)[0, 1] > 0.4
    assert np.corrcoef(skew, moved)[0, 1] < -0.5
    assert len(clean[dvol(DERIBIT, symbol.base)]) >= 60 * 24


# -- the world around


def test_the_economy_is_printed_late_and_revised_once(clean: World) -> None:
    for venue, figures in FIGURES.items():
        for figure in figures:
            rows = clean[macro(venue, figure)]
            assert all(row.released > row.at for row in rows)
            assert not isinstance(last_print(figure, rows, Millis(END)), Missing)
    prices = clean[macro(FRED, "CPIAUCSL")]
    again = [day for day, count in Counter(row.at for row in prices).items() if count == 2]
    assert len(again) == 1
    first, revised = sorted((row for row in prices if row.at == again[0]), key=lambda row: row.released)
    assert first.value != revised.value


def test_mood_follows_the_days(clean: World) -> None:
    mood = clean[fear_greed(ALTERNATIVE)]
    days = {bar.at + DAY_MS: bar for bar in clean[candles(BINANCE, "BTCUSDT", Timeframe.D1)]}
    assert len(mood) == (END - HOURS_FROM) // DAY_MS
    assert all(0 <= row.value <= 100 and row.value == int(row.value) for row in mood)
    moved = [np.log(days[row.at].close / days[Millis(row.at - 7 * DAY_MS)].open) for row in mood]
    assert np.corrcoef(moved, [row.value for row in mood])[0, 1] > 0.4


def test_words_are_short_and_never_say_what_drives_the_market(clean: World) -> None:
    said = [row for rows in clean.values() for row in rows if isinstance(row, Text)]
    assert len(said) > 1_000
    words = " ".join({row.body.lower() for row in said} | {str(series) for series in clean})
    assert max(len(row.body) for row in said) < 300
    for secret in ("panic", "cascade", "breakout", "regime", "jump", "synthetic", "sigma"):
        assert secret not in words


# -- no edge: what is shown by a moment does not know which way it goes from there


@pytest.mark.soak
def test_nothing_shown_by_a_moment_depends_on_what_comes_after(clean: World, walks: Mapping[Symbol, Path]) -> None:
    """The same market in a mirror from one moment on, which is exactly as likely: every row known by then is the same,
    so nobody can tell which of the two is to come."""
    turned = {Symbol("BTCUSDT"): walks[Symbol("BTCUSDT")].mirror(AFTER)}
    other = {batch.series: batch.rows for batch in draw_batches(SEED, turned)}
    assert set(wanted_series(Symbol("BTCUSDT"))) <= other.keys()
    for series, rows in other.items():
        before = [row for row in clean[series] if complete_at(series, row) <= AFTER]
        assert [row for row in rows if complete_at(series, row) <= AFTER] == before, series
    closes = [
        np.log([bar.close for bar in world[candles(BINANCE, "BTCUSDT", Timeframe.H1)][-500:]])
        for world in (clean, other)
    ]
    assert np.allclose(np.diff(closes[0]), -np.diff(closes[1]), atol=1e-4)


def test_equal_seeds_give_equal_bytes(clean: World) -> None:
    digest = hashlib.sha256()
    for series, rows in sorted(clean.items(), key=lambda pair: str(pair[0])):
        if series.row is not Heartbeat:
            digest.update(f"{series} {len(rows)} {rows[:: max(1, len(rows) // 20)]!r}".encode())
    assert digest.hexdigest() == "6bb81d446fe59c53015484d603eb0bf9b39486158a23c49a601c5bcdeed35785"


# -- dirt


@pytest.mark.parametrize("dirt", MARKET_FAULTS, ids=lambda dirt: f"{dirt.kind} {dirt.series}")
def test_a_stain_is_where_the_table_says(clean: World, dirty: World, dirt: MarketFault) -> None:
    before, after = (
        [row for row in world[dirt.series] if dirt.first <= row.at <= dirt.last] for world in (clean, dirty)
    )
    assert dirt.last < END - 2 * DAY_MS
    match dirt.kind:
        case "gap":
            assert after == []
            assert before or dirt.series.feed is Feed.LIQUIDATIONS, "something was there"
        case "repeated":
            assert len(before) == 60
            assert after == before + before
        case "corrected":
            (wrong, right) = after
            assert [right] == before
            assert wrong.at == right.at
            assert wrong.close > right.high
            assert find_row_fault(dirt.series, wrong, None) is None, (
                "only the second word shows that the first was wrong"
            )
        case "shuffled":
            assert after != before
            assert sorted(after) == before
        case "not a number" | "high below low" | "negative volume":
            why = find_row_fault(dirt.series, after[0], None) or ""
            assert {
                "not a number": "nan",
                "high below low": "below low",
                "negative volume": "-",
            }[dirt.kind] in why
        case "wrong sum":
            assert after[0].volume == before[0].volume + 100
        case "percent":
            assert len(before) >= 3
            assert [row.rate for row in after] == [row.rate * 100 for row in before]
            assert min(abs(row.rate) for row in after) > PLAUSIBLE_RATE
        case "frozen":
            assert len({row.value for row in after}) == 1 < len({row.value for row in before})
            assert [row.at for row in after] == [row.at for row in before]
            assert len(after) >= 12
        case "crossed":
            assert "crossed" in (find_book_fault(after[0]) or "")
        case "no expiries":
            assert {quote.expiry for quote in after[0].quotes} == {None}
            assert isinstance(measure_surface(after[0]).term, Missing)


@pytest.mark.soak
def test_every_way_of_being_wrong_is_in_the_table_and_nothing_else_is_touched(clean: World, dirty: World) -> None:
    assert {dirt.kind for dirt in MARKET_FAULTS} == set(EDITS)
    for series, rows in clean.items():
        places = [(dirt.first, dirt.last) for dirt in MARKET_FAULTS if dirt.series == series]
        kept, left = (
            [row for row in world if not any(first <= row.at <= last for first, last in places)]
            for world in (rows, dirty[series])
        )
        assert kept == left


@pytest.mark.soak
async def test_a_store_takes_the_dirt_as_it_promises(dirty: World) -> None:
    store = MemorySeries(describe_origin(SEED))
    stained_bars = {dirt.series for dirt in MARKET_FAULTS if dirt.series.feed is Feed.CANDLES}
    written = await store.write([Batch(series, dirty[series]) for series in stained_bars])
    assert (written.bad, written.same, written.changed) == (3, 60, 1)
    kinds = Counter(flaw.kind for flaw in await store.flaws())
    assert kinds == {"bad": 3, "duplicate": 60, "conflict": 1}
    assert store.origin.synthetic
    assert store.origin.label == f"SYNTHETIC seed {SEED}"
