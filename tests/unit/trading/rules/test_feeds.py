"""From a bundle of the invented market to a ruling: with the Judge's decision fixed, losing a feed never raises it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from tests.wire.fakes.series import MemorySeries
from tests.wire.trades import CASH, PROVEN, decision, holding, no_more, resting, ruled_on
from zuno.adapters.venues.synthetic.path import END, draw_paths
from zuno.adapters.venues.synthetic.world import describe_origin, draw_batches
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, PERPETUALS
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.measure.triage import Anomaly, Label, Rule, Triage, UnjudgedRule
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import Absent, Bundle, Slot
from zuno.trading.model.cycle import Call, Decision
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Feed, Mode, Side, alive, basis, liquidations
from zuno.trading.model.memory import make_slot
from zuno.trading.model.wanted import neighbour_series
from zuno.trading.ports.series import Batch
from zuno.trading.rules.draft import RulingDraft
from zuno.trading.rules.inputs import RulingInputs, build_ruling_inputs, missing_essentials
from zuno.trading.rules.price_menu import PriceMenu, build_price_menu

SEED = 11
QUIET = Millis(END)
LOUD = Millis(END - 3 * 61 * HOUR_MS)
"""A moment at which the curve had moved too far."""


@cache
def market() -> MemorySeries:
    store = MemorySeries(describe_origin(SEED))
    given = draw_batches(SEED, {Symbol("BTCUSDT"): draw_paths(SEED)[Symbol("BTCUSDT")]})
    marks = next(batch.rows for batch in given if batch.series == basis(BINANCE, Symbol("BTCUSDT")))
    asyncio.run(store.write([*given, *(Batch(series, marks) for series in neighbour_series(Symbol("BTCUSDT")))]))
    return store


def slots(account: Account, at: Millis) -> list[Slot]:
    """The account, and a record by which a claimed edge counts."""
    return [*account_slots(account, at), make_slot(PROVEN, at)]


@cache
def bundle(at: Millis, mode: Mode = Mode.SWING, account: Account = CASH) -> Bundle:
    """Not more of it than every figure needs, for it is measured many times."""
    whole = asyncio.run(build_bundle(market(), Symbol("BTCUSDT"), mode, at, slots(account, at)))
    enough = {"1m": 120, "1h": 800, "4h": 260, "1d": 200, "1w": 120, "alive": 8 * 24 * 60}
    rows = {block.series: block.rows[-enough.get(block.series.name.split("/")[-1], 4_000) :] for block in whole.blocks}
    return replace(whole, blocks=tuple(replace(block, rows=rows[block.series]) for block in whole.blocks))


def told(given: Bundle) -> RulingInputs:
    measured = measure_features(given)
    return build_ruling_inputs(given, measured, build_price_menu(given, measured))


def offered(given: Bundle) -> PriceMenu:
    return build_price_menu(given, measure_features(given))


def without(given: Bundle, what: str) -> Bundle:
    """A feed, or a slot of the desk's own, that is not there."""
    return replace(
        given,
        blocks=tuple(block for block in given.blocks if str(block.series) != what),
        slots=tuple(slot for slot in given.slots if slot.name != what),
        absent=(*given.absent, Absent(what, "it was lost")),
    )


def names(given: Bundle) -> list[str]:
    return [*(str(block.series) for block in given.blocks), *(slot.name for slot in given.slots)]


def choose(found: list[str], every: int) -> list[str]:
    """The first of each kind, and each so-many-th."""
    kinds = [name.partition("/")[0] for name in found]
    return [name for i, name in enumerate(found) if i % every == 0 or kinds[i] not in kinds[:i]]


def decided(given: RulingInputs) -> list[Decision]:
    """Trades of every kind at the market's price, as sure as can be."""
    assert not isinstance(given.mark, Missing)
    assert not isinstance(given.atr, Missing)
    found = []
    for call in (Call.LONG, Call.SHORT):
        sign = 1 if call is Call.LONG else -1
        prices = {
            "entry_price": given.mark,
            "stop_loss": given.mark - sign * 2 * given.atr,
            "take_profit": given.mark + sign * 4 * given.atr,
        }
        for leverage in (1, 3) if call is Call.LONG else (2,):
            found.append(decision(call, leverage=leverage, allocation_pct=60, win_probability_pct=80, **prices))
    return found


def rulings(given: RulingInputs, said: list[Decision]) -> list[RulingDraft]:
    return [ruled_on(one, given, 80, cost=0.02) for one in said]


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "feeds", "every"),
    [
        (QUIET, "", 12),
        (LOUD, "macro dvol options liquidations rates", 1),
        pytest.param(QUIET, "", 1, marks=pytest.mark.soak),
    ],
)
def test_losing_any_feed_never_raises_a_ruling(at: Millis, feeds: str, every: int) -> None:
    whole = bundle(at)
    given = told(whole)
    assert missing_essentials(given) == ()
    said = decided(given)
    before = rulings(given, said)
    assert all(one.opens for one in before)
    ends: Counter[bool] = Counter()
    for name in choose([name for name in names(whole) if name.startswith(tuple(feeds.split()) or "")], every):
        after = rulings(told(without(whole, name)), said)
        for one, two in zip(after, before, strict=True):
            assert no_more(one, two), name
            ends[one.opens] += 1
    assert ends[True] > 20 / every
    assert ends[False]  # some are lost altogether, and some are not


@pytest.mark.slow
def test_losing_any_feed_of_a_position_never_raises_a_ruling() -> None:
    """Spot and futures both held, an order waiting, another symbol open: everything that has to be marked."""
    account = replace(
        CASH,
        positions=(
            holding(Side.LONG, 50.0, entry=30_000.0),
            holding(Side.LONG, 100_000.0, exchange=Venue("UPBIT"), id="pos_2", entry=40e6),
            holding(Side.SHORT, 300.0, 2.0, symbol=Symbol("ETHUSDT"), id="pos_3", entry=30_000.0),
        ),
        pending=(resting(Side.LONG, 20.0, price=30_000.0, quantity=0.0005),),
    )
    for mode in Mode:
        whole = bundle(QUIET, mode, account)
        given = told(whole)
        said = decided(given)
        before = rulings(given, said)
        assert any(one.opens for one in before)
        ends = {one.call for one in before}
        assert Call.CANCEL_AND_CLOSE in ends  # what would go the other way
        for name in (one for one in names(whole) if one.startswith(("rates", "basis/binance", "positions", "equity"))):
            after = rulings(told(without(whole, name)), said)
            assert all(no_more(one, two) for one, two in zip(after, before, strict=True)), name


@pytest.mark.slow
def test_a_stale_feed_is_a_lost_one() -> None:
    whole = bundle(QUIET)
    said = decided(told(whole))
    for gone in ("book/binance/BTCUSDT", "funding/binance/BTCUSDT/next", "basis/binance/BTCUSDT"):
        blocks = tuple(
            replace(block, age=Seconds(block.limit + 1)) if str(block.series) == gone else block
            for block in whole.blocks
        )
        given = told(replace(whole, blocks=blocks))
        assert missing_essentials(given)
        assert not any(one.opens for one in rulings(given, said))


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_every_timeframe_of_the_mode_is_needed(mode: Mode) -> None:
    whole = bundle(QUIET, mode)
    for timeframe in mode.timeframes:
        gone = missing_essentials(told(without(whole, f"candles/binance/BTCUSDT/{timeframe}")))
        assert any(one.startswith("candles") for one in gone), timeframe


@pytest.mark.slow
def test_silence_of_a_stream_is_not_quiet() -> None:
    whole = bundle(QUIET)
    assert isinstance(told(whole).longs_liquidated, float)
    for venue in ("binance", "bybit"):
        for name in (f"liquidations/{venue}/BTCUSDT", str(alive(Feed.LIQUIDATIONS, venue, Symbol("BTCUSDT")))):
            assert isinstance(told(without(whole, name)).longs_liquidated, Missing), name


def test_minutes_nobody_heard_count_like_the_others() -> None:
    """A day of 1,440 minutes of which the first 72 were not heard."""
    whole = bundle(QUIET)
    since = QUIET - DAY_MS + 72 * MINUTE_MS
    feeds = {str(alive(Feed.LIQUIDATIONS, venue, Symbol("BTCUSDT"))) for venue in PERPETUALS}
    feeds |= {str(liquidations(venue, Symbol("BTCUSDT"))) for venue in PERPETUALS}
    deaf = tuple(
        replace(block, rows=[row for row in block.rows if row.at >= since]) if str(block.series) in feeds else block
        for block in whole.blocks
    )
    given = replace(whole, blocks=deaf)
    found = told(given)
    for side in Side:
        heard = sum(
            row.usd
            for venue in PERPETUALS
            for row in given.rows(liquidations(venue, Symbol("BTCUSDT")))
            if row.side is side and row.at < QUIET
        )
        assert heard > 0
        liquidated = found.longs_liquidated if side is Side.LONG else found.shorts_liquidated
        assert liquidated == pytest.approx(heard * 1_440 / 1_368)


def test_what_triage_found_is_among_the_terms() -> None:
    whole = bundle(QUIET)
    measured, menu = measure_features(whole), offered(whole)
    calm = build_ruling_inputs(whole, replace(measured, triage=Triage((), ())), menu)
    assert (calm.panic, calm.breakout, calm.high_volatility) == (False, False, False)
    spike = build_ruling_inputs(
        whole, replace(measured, triage=Triage((Anomaly(Rule.SPIKE, Label.TRUE_BREAKOUT, ""),), ())), menu
    )
    assert (spike.panic, spike.breakout, spike.high_volatility) == (False, True, True)
    panic = build_ruling_inputs(
        whole, replace(measured, triage=Triage((Anomaly(Rule.OPTIONS_PANIC, None, ""),), ())), menu
    )
    assert (panic.panic, panic.breakout, panic.high_volatility) == (True, False, True)
    blind = tuple(UnjudgedRule(rule, "nobody said") for rule in Rule)
    lost = build_ruling_inputs(whole, replace(measured, triage=Triage((), blind)), menu)
    assert all(isinstance(one, Missing) for one in (lost.panic, lost.breakout, lost.high_volatility))


@pytest.mark.slow
def test_the_draw_rests_on_the_bars_alone() -> None:
    whole = bundle(QUIET)
    assert told(without(whole, "dvol/deribit/BTC")).seed == told(whole).seed
    assert told(bundle(LOUD)).seed != told(whole).seed


@pytest.mark.slow
def test_the_menu_of_a_real_moment() -> None:
    whole = bundle(QUIET)
    given, menu = told(whole), offered(whole)
    assert not isinstance(menu.now, Missing)
    assert not isinstance(menu.atr, Missing)
    book = measure_features(whole).book
    assert not isinstance(book, Missing)
    moved = replace(measure_features(whole), book=replace(book, mid=book.mid + 7.0))
    assert (menu.now, build_price_menu(whole, moved).now) == (book.mid, book.mid + 7.0)
    kinds = Counter(level.kind for level in menu.levels)
    assert kinds["mark"] == 1
    assert kinds["range"] == 16
    assert kinds["pool"] == 4
    assert {"pivot", "fibonacci", "average", "band", "profile"} <= set(kinds)
    assert len({level.id for level in menu.levels}) == len(menu.levels)
    assert list(menu.levels) == sorted(menu.levels, key=lambda level: (level.price, level.id))
    steps = [level.price / menu.tick for level in menu.levels]
    assert steps == pytest.approx([round(step) for step in steps], abs=1e-4)
    ranges = {level.id: level.price for level in menu.levels if level.kind == "range"}
    assert ranges["range_up_2.5"] == pytest.approx(menu.now + 2.5 * menu.atr, abs=menu.tick)
    assert ranges["range_down_5"] == pytest.approx(menu.now - 5 * menu.atr, abs=menu.tick)
    above = [level.price for level in menu.levels if level.id.startswith("pool_above")]
    below = [level.price for level in menu.levels if level.id.startswith("pool_below")]
    assert max(below) < menu.now < min(above)
    assert given.atr == menu.atr


def test_a_menu_without_a_book_stands_on_the_last_close() -> None:
    whole = without(bundle(QUIET), "book/binance/BTCUSDT")
    menu = offered(whole)
    assert (
        menu.now == whole.rows(next(b.series for b in whole.blocks if str(b.series).endswith("BTCUSDT/1m")))[-1].close
    )
    bare = bundle(QUIET)
    for name in [name for name in names(bare) if name.startswith(("candles/binance", "book"))]:
        bare = without(bare, name)
    empty = offered(bare)
    assert (empty.levels, isinstance(empty.now, Missing), isinstance(empty.atr, Missing)) == ((), True, True)
    assert empty.snap(33_000.0) is None
