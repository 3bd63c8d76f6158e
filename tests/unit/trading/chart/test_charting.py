"""What a chart of a bundle shows: the right bars, the features' own levels, and a reason for all that is not there."""

from __future__ import annotations

import re
from dataclasses import replace
from math import nan

import pytest

from tests.wire.chart_bundles import AS_OF, BTC, DAYS, HOURS, MINUTES, WEEKS, block, changed, walk, whole, without
from zuno.adapters.chart.frames import rows
from zuno.kernel.units import Millis
from zuno.markets.feeds import PERPETUALS
from zuno.trading.chart.charting import (
    FEWEST_TRADE_BARS,
    MOST_GAPS,
    MOST_PIVOTS,
    PLACES_AHEAD,
    describe,
    describe_trade,
)
from zuno.trading.chart.scales import day_text
from zuno.trading.measure.bars import LOOKBACK, bars
from zuno.trading.measure.features import measure_features
from zuno.trading.measure.frames import measure_frame
from zuno.trading.measure.indicators import compute_indicators, volume_profile, vwap
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.chart import (
    CurveKind,
    Heat,
    MarkKind,
    MissingPanel,
    Panel,
    Picture,
    PricePanel,
    Scale,
    TradePlan,
)
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Feed,
    Funding,
    Level,
    Mode,
    Side,
    Timeframe,
    alive,
    funding,
    liquidations,
)
from zuno.trading.model.market import open_interest as opened


def price(picture: Picture) -> PricePanel:
    assert isinstance(picture.price, PricePanel)
    return picture.price


def panel(picture: Picture, name: str) -> Panel:
    (found,) = (one for one in picture.panels if isinstance(one, Panel) and one.name == name)
    return found


def why(picture: Picture, title: str) -> str:
    parts: list[object] = [*picture.panels, picture.price]
    if isinstance(picture.price, PricePanel):
        parts += [*picture.price.absent, picture.price.heat, picture.price.profile]
    (found,) = (one for one in parts if isinstance(one, MissingPanel) and one.title == title)
    return found.why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "timeframe", "count"), [(Mode.SWING, Timeframe.D1, 180), (Mode.POSITION, Timeframe.W1, 260)]
)
def test_a_mode_shows_its_own_bars(mode: Mode, timeframe: Timeframe, count: int) -> None:
    bundle = whole(mode)
    picture = describe(bundle)
    rows = bundle.rows(DAYS if mode is Mode.SWING else WEEKS)[-count:]
    assert (picture.timeframe, picture.width, picture.places) == (timeframe, count, tuple(range(count)))
    assert picture.first == rows[0].at
    candles = price(picture).candles
    assert list(zip(candles.open, candles.high, candles.low, candles.close, strict=True)) == [row[1:5] for row in rows]
    assert len(picture.panels) == 4


def test_levels_are_those_of_the_features() -> None:
    bundle = whole()
    frame = measure_frame(bars(Timeframe.D1, bundle.rows(DAYS)), Mode.SWING.shoulder)
    assert frame is not None
    known = {level.id: level.price for level in frame.structure.levels}
    drawn = price(describe(bundle))
    own = ("view.", "1m.", "1h.")
    levels = {mark.id: mark.price for mark in drawn.marks} | {one.id: one.price for one in drawn.slants}
    levels |= {curve.id: curve.last for curve in drawn.curves}
    shared = {name: level for name, level in levels.items() if not name.startswith(own)}
    assert len(shared) > 10
    assert {name: pytest.approx(known[name]) for name in shared} == shared


def test_curves_are_the_columns_of_all_bars_cut_to_what_is_shown() -> None:
    bundle = whole()
    gauges = compute_indicators(bars(Timeframe.D1, bundle.rows(DAYS)).last(LOOKBACK))
    (average,) = (curve for curve in price(describe(bundle)).curves if curve.kind is CurveKind.EMA200)
    assert list(average.values) == [value if value == value else None for value in gauges.ema200[-180:].tolist()]
    assert average.last == gauges.ema200[-1]


def test_the_day_vwap_is_of_hours_as_each_bar_closed() -> None:
    bundle = whole()
    (curve,) = (one for one in price(describe(bundle)).curves if one.kind is CurveKind.DAY_VWAP)
    prices = vwap(bars(Timeframe.H1, bundle.rows(HOURS))).tolist()
    assert list(curve.values[-60:]) == pytest.approx(prices[23::24])
    assert set(curve.values[:-60]) == {None}
    assert curve.last == prices[-1]


@pytest.mark.slow
def test_the_day_vwap_goes_on_after_the_last_bar() -> None:
    later = Millis(AS_OF + 5 * HOUR_MS)
    hours = block(HOURS, walk(Timeframe.H1, 240, 3, until=later))
    bundle = replace(
        whole(), as_of=later, blocks=(*(b for b in whole().blocks if b.series not in (HOURS, MINUTES)), hours)
    )
    picture = describe(bundle)
    (curve,) = (one for one in price(picture).curves if one.kind is CurveKind.DAY_VWAP)
    assert picture.width == 180
    assert curve.last == vwap(bars(Timeframe.H1, hours.rows))[-1] != curve.values[-1]
    (now,) = (mark for mark in price(picture).marks if mark.kind is MarkKind.NOW)
    assert (now.id, now.price) == ("1h.close", hours.rows[-1].close)


@pytest.mark.slow
def test_hours_that_end_before_the_bars_are_no_day() -> None:
    picture = describe(changed(whole(), HOURS, lambda rows: rows[:-1]))
    assert "1d bar" in why(picture, "day VWAP")
    broken = describe(changed(whole(), HOURS, lambda rows: rows[-5:]))
    assert "hour" in why(broken, "day VWAP")


def test_now_is_the_newest_close_and_always_in_view() -> None:
    far = Candle(Millis(AS_OF - MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    drawn = price(describe(changed(whole(), MINUTES, lambda rows: (*rows[:-1], far))))
    (now,) = (mark for mark in drawn.marks if mark.kind is MarkKind.NOW)
    assert (now.id, now.price, drawn.axis.scale) == ("1m.close", 1.0, Scale.LOG)
    assert drawn.axis.low < 1.0


@pytest.mark.slow
def test_the_profile_is_of_the_bars_that_are_shown() -> None:
    bundle = whole()
    found = volume_profile(bars(Timeframe.D1, bundle.rows(DAYS)).last(180))
    drawn = price(describe(bundle))
    assert found is not None
    assert drawn.profile == found
    assert {mark.id: mark.price for mark in drawn.marks if mark.kind is MarkKind.PROFILE} == {
        "view.poc": found.poc,
        "view.value_low": found.value_low,
        "view.value_high": found.value_high,
    }


@pytest.mark.slow
def test_only_the_nearest_pivots_and_gaps_are_drawn_and_the_rest_is_counted() -> None:
    drawn = price(describe(whole()))
    counts = {kind: sum(mark.kind is kind for mark in drawn.marks) for kind in MarkKind}
    assert counts[MarkKind.PIVOT] <= MOST_PIVOTS
    assert counts[MarkKind.GAP] <= 2 * MOST_GAPS
    frame = measure_frame(bars(Timeframe.D1, whole().rows(DAYS)), 5)
    assert frame is not None
    inside = [one for one in frame.structure.levels if drawn.axis.low <= one.price <= drawn.axis.high]
    places = sum(one.kind in ("pivot", "gap") for one in inside)
    assert drawn.left_out == places - counts[MarkKind.PIVOT] - counts[MarkKind.GAP]
    (now,) = (mark.price for mark in drawn.marks if mark.kind is MarkKind.NOW)
    shown = [abs(mark.price - now) for mark in drawn.marks if mark.kind is MarkKind.PIVOT]
    left = [abs(one.price - now) for one in inside if one.kind == "pivot" and one.id not in {m.id for m in drawn.marks}]
    assert not left or max(shown) <= min(left)


@pytest.mark.slow
def test_a_gap_is_shaded_between_its_edges() -> None:
    drawn = price(describe(whole(Mode.POSITION)))
    edges = [mark.price for mark in drawn.marks if mark.kind is MarkKind.GAP]
    assert sorted(edge for zone in drawn.zones for edge in (zone.low, zone.high)) == sorted(edges)
    assert all(zone.low < zone.high for zone in drawn.zones)


@pytest.mark.slow
def test_lines_begin_where_what_made_them_was() -> None:
    bundle = whole()
    picture = describe(bundle)
    lows = {row.low: row.at for row in bundle.rows(DAYS)}
    first = picture.first or 0
    for mark in price(picture).marks:
        if mark.id.startswith("1d.pivot_low"):
            assert mark.since == max(0, (lows[mark.price] - first) / DAY_MS)


# -- the heat map


def test_a_map_is_observed_where_it_was_heard_and_modelled_before() -> None:
    heat = price(describe(whole())).heat
    assert isinstance(heat, Heat)
    assert heat.origin == "observed and modelled"
    assert heat.observed == (False,) * 178 + (True, True)
    assert all(heat.heard)
    since = f"forced out from {day_text(AS_OF - 2 * DAY_MS)}, a lower bound; pools from open interest"
    assert heat.note == f"{since} at 5×–100×"
    assert len(heat.columns) == len(heat.forced) == 180
    assert {len(column) for column in (*heat.columns, *heat.forced)} == {len(heat.edges) - 1}
    assert sum(heat.forced[-1]) == pytest.approx(len(PERPETUALS) * 5e4 * 20, rel=0.2)
    assert sum(heat.standing) > 0


def test_the_largest_pools_that_stand_now_are_marked_on_either_side() -> None:
    panel = price(describe(whole()))
    assert isinstance(panel.heat, Heat)
    (now,) = (mark.price for mark in panel.marks if mark.kind is MarkKind.NOW)
    pools = {mark.id: mark for mark in panel.marks if mark.kind is MarkKind.POOL}
    assert pools
    assert set(pools) <= {f"view.pool_{name}_{rank}" for name in ("above", "below") for rank in (1, 2)}
    assert all(("above" in name) == (mark.price > now) for name, mark in pools.items())
    assert {mark.since for mark in pools.values()} == {179.0}


@pytest.mark.slow
def test_a_day_in_between_that_nobody_heard_is_told() -> None:
    bundle, turn = whole(), AS_OF - DAY_MS
    for venue in PERPETUALS:  # the first of the two days was the day before
        bundle = changed(
            bundle,
            alive(Feed.LIQUIDATIONS, venue, BTC),
            lambda rows: tuple(row if row.at >= turn else row._replace(at=Millis(row.at - DAY_MS)) for row in rows),
        )
    heat = price(describe(bundle)).heat
    assert isinstance(heat, Heat)
    assert heat.observed == (False,) * 177 + (True, False, True)
    assert re.search(rf"\b2 bars\b.*\b{day_text(AS_OF - 3 * DAY_MS)}\b", heat.note)


@pytest.mark.slow
def test_a_venue_that_is_not_heard_makes_no_silence() -> None:
    heat = price(describe(without(whole(), alive(Feed.LIQUIDATIONS, "bybit", BTC)))).heat
    assert isinstance(heat, Heat)
    assert heat.origin == "modelled"
    assert heat.note.startswith("pools from ")
    assert not any(heat.observed)


@pytest.mark.slow
def test_a_venue_nobody_listened_to_leaves_the_others_silence_known() -> None:
    one = without(whole(), alive(Feed.LIQUIDATIONS, "bybit", BTC), liquidations("bybit", BTC))
    heat = price(describe(one)).heat
    assert isinstance(heat, Heat)
    assert heat.observed == (False,) * 178 + (True, True)
    assert ("binance, okx" in heat.note, "bybit" in heat.note) == (True, False)
    assert sum(heat.forced[-1]) == pytest.approx(2 * 5e4 * 20, rel=0.2)
    assert measure_features(one).forced.day.complete  # the figures follow the same rule
    both = [each for venue in PERPETUALS for each in (alive(Feed.LIQUIDATIONS, venue, BTC), liquidations(venue, BTC))]
    nobody = price(describe(without(whole(), *both))).heat
    assert isinstance(nobody, Heat)
    assert nobody.origin == "modelled"


# -- the panels


def test_funding_is_the_mean_of_a_bars_rates_in_per_cent_for_eight_hours() -> None:
    day = AS_OF - DAY_MS
    rates = [Funding(Millis(day + hour * HOUR_MS), rate, 4.0) for hour, rate in ((4, 1e-4), (8, 2e-4), (24, 3e-4))]
    # The rate at a bar's first moment was paid for the time before it.
    early = Funding(Millis(day), -9e-4, 4.0)
    bundle = changed(whole(), funding("binance", BTC), lambda rows: (early, *rates))
    found = panel(describe(bundle), "funding")
    assert found.values[-2:] == (pytest.approx(-0.18), pytest.approx(0.04))
    assert (found.last, found.rising[-2:]) == (pytest.approx(0.04), (False, True))
    assert "2025-12-30" in found.note


@pytest.mark.slow
def test_a_rate_in_per_cent_is_dropped_and_the_next_venue_speaks() -> None:
    percent = changed(
        whole(), funding("binance", BTC), lambda rows: [row._replace(rate=row.rate * 100 + 1) for row in rows]
    )
    assert "bybit" in panel(describe(percent), "funding").title
    one = changed(whole(), funding("binance", BTC), lambda rows: (*rows[:-1], rows[-1]._replace(rate=0.01)))
    found = panel(describe(one), "funding")
    assert "binance" in found.title
    assert "1 rates" in found.note


@pytest.mark.slow
def test_open_interest_is_of_the_same_venues_in_every_bar() -> None:
    bundle = whole()
    found = panel(describe(bundle), "open_interest")
    lasts = [bundle.rows(opened(venue, BTC))[-1].value for venue in PERPETUALS]
    assert found.last == pytest.approx(sum(lasts))
    assert found.title.endswith("binance + bybit + okx")
    gone = changed(bundle, opened("okx", BTC), lambda rows: rows[:-6])
    alone = panel(describe(gone), "open_interest")
    assert alone.last == pytest.approx(sum(lasts[:2]))
    assert None not in alone.values
    assert alone.note.split()[1:] == ["okx"]


def test_a_venue_that_has_just_begun_does_not_shorten_the_sum() -> None:
    young = changed(whole(), opened("okx", BTC), lambda rows: rows[-9:])
    found = panel(describe(young), "open_interest")
    assert found.title.endswith("binance + bybit")
    assert None not in found.values
    assert found.note.split()[1:] == ["okx"]


@pytest.mark.slow
def test_a_bar_one_venue_missed_has_no_sum() -> None:
    hole = changed(
        whole(), opened("okx", BTC), lambda rows: [row for row in rows if row.at // DAY_MS != AS_OF // DAY_MS - 9]
    )
    values = panel(describe(hole), "open_interest").values
    # The reading at midnight closes the bar before; those of the day itself are gone but for that of its end.
    assert sum(value is None for value in values) in (0, 1)
    late = changed(
        whole(),
        opened("okx", BTC),
        lambda rows: [row for row in rows if not AS_OF - 5 * DAY_MS < row.at <= AS_OF - 4 * DAY_MS],
    )
    assert [place for place, value in enumerate(panel(describe(late), "open_interest").values) if value is None] == [
        175
    ]


def test_readings_that_cannot_be_are_no_readings() -> None:
    bad = changed(whole(), opened("binance", BTC), lambda rows: [Level(row.at, nan) for row in rows])
    assert panel(describe(bad), "open_interest").title.endswith("bybit + okx")


@pytest.mark.slow
def test_cvd_breaks_where_nobody_says_who_took() -> None:
    def silent(rows: tuple[Candle, ...]) -> list[Candle]:
        return [row._replace(taker_buy=None) if place == len(rows) - 3 else row for place, row in enumerate(rows)]

    found = panel(describe(changed(whole(), DAYS, silent)), "cvd")
    assert found.values[-3] is None
    assert "1 bars" in found.note
    last = whole().rows(DAYS)[-2:]
    assert found.last == pytest.approx(sum(2 * (row.taker_buy or 0) - row.volume for row in last))


# -- what is not there


@pytest.mark.slow
def test_what_is_absent_says_why() -> None:
    gone = [funding(venue, BTC) for venue in PERPETUALS] + [opened(venue, BTC) for venue in PERPETUALS]
    picture = describe(without(whole(), *gone, HOURS))
    for title in ("funding", "open interest"):
        assert why(picture, title).startswith(", ".join(PERPETUALS))
    assert why(picture, "day VWAP") == "the venue did not answer"
    quiet = describe(changed(whole(), DAYS, lambda rows: [row._replace(volume=0.0, taker_buy=None) for row in rows]))
    assert "volume" in why(quiet, "CVD")
    assert "volume" in why(quiet, "volume profile")


def test_without_bars_everything_is_absent_and_nothing_fails() -> None:
    picture = describe(without(whole(), DAYS, why="HTML\nfrom the \x1b[31mexchange"))
    assert why(picture, "price") == "HTML from the [31mexchange"
    assert [type(one) for one in picture.panels] == [MissingPanel] * 4
    assert (picture.first, picture.places, picture.times) == (None, (), ())
    bad = describe(changed(whole(), DAYS, lambda rows: [row._replace(high=nan) for row in rows]))
    assert "no 1d bar" in why(bad, "price")
    old = describe(changed(whole(), DAYS, lambda rows: rows[:100]))
    assert "before" in why(old, "price")


@pytest.mark.parametrize("count", [1, 2, 3, 25])
def test_few_bars_are_a_narrow_picture(count: int) -> None:
    picture = describe(changed(whole(), DAYS, lambda rows: rows[-count:]))
    assert (picture.width, len(picture.places)) == (count, count)
    assert re.findall(r"\d+", why(picture, "EMA200")) == ["200", "1", str(count)]


def test_missing_bars_leave_their_places_empty_and_are_counted() -> None:
    picture = describe(changed(whole(), DAYS, lambda rows: (*rows[-30:-10], *rows[-9:])))
    assert picture.places == (*range(20), *range(21, 30))
    assert [re.findall(r"\d+", note) for note in picture.notes] == [["1", "30"]]


def test_a_stale_feed_is_said_and_its_places_stay_empty() -> None:
    bundle = changed(whole(), DAYS, lambda rows: rows[:-5])
    late = replace(bundle, blocks=tuple(replace(b, age=5 * 86_400) if b.series == DAYS else b for b in bundle.blocks))  # type: ignore[arg-type]
    picture = describe(late)
    assert (picture.width, len(picture.places)) == (180, 175)
    stale, missing = picture.notes
    assert (stale.startswith("STALE"), re.findall(r"\d+", stale)) == (True, ["5"])
    assert re.findall(r"\d+", missing) == ["5", "180"]


@pytest.mark.slow
def test_a_feed_that_stands_still_is_said() -> None:
    note = "the last 7 rows are the same: the feed stands still"
    blocks = tuple(replace(b, notes=(note, "other")) if b.series == DAYS else b for b in whole().blocks)
    assert describe(replace(whole(), blocks=blocks)).notes == (note,)


@pytest.mark.slow
def test_a_stale_panel_says_so() -> None:
    blocks = tuple(replace(b, age=7_200) if b.series == opened("okx", BTC) else b for b in whole().blocks)  # type: ignore[arg-type]
    assert "STALE: okx" in panel(describe(replace(whole(), blocks=blocks)), "open_interest").note


@pytest.mark.slow
def test_nothing_later_than_the_moment_is_shown() -> None:
    def leaked(bundle: Bundle) -> Bundle:
        forming = Candle(AS_OF, 1.0, 2e6, 1.0, 1e6, 1.0, 1.0)
        return changed(changed(bundle, DAYS, lambda rows: (*rows, forming)), MINUTES, lambda rows: (*rows, forming))

    assert describe(leaked(whole())) == describe(whole())


@pytest.mark.slow
def test_equal_bundles_are_equal_pictures() -> None:
    assert describe(whole()) == describe(whole())


@pytest.mark.slow
def test_the_mark_of_an_invented_market() -> None:
    assert describe(whole()).synthetic
    assert not describe(whole(origin="recorded")).synthetic


# -- the trade


def plan(bundle: Bundle, stop_pct: float = -1.4, liquidation: float | None = None) -> TradePlan:
    close = bundle.rows(DAYS)[-1].close
    stop, target = close * (1 + stop_pct / 100), close * (1 - 1.7 * stop_pct / 100)
    return TradePlan(Side.LONG if stop_pct < 0 else Side.SHORT, close, stop, target, liquidation, True, "its card")


@pytest.mark.parametrize("stop_pct", [-1.4, 1.4, -9.0])
def test_a_trade_is_drawn_where_its_stop_can_be_seen(stop_pct: float) -> None:
    bundle = without(whole(Mode.POSITION), HOURS, MINUTES)
    trade = plan(bundle, stop_pct)
    picture = describe_trade(bundle, trade)
    panel = price(picture)
    assert panel.trade == trade
    assert panel.axis.low < min(trade.stop, trade.target)
    assert max(trade.stop, trade.target) < panel.axis.high
    (_, height), *_ = rows(4)
    seen = height * abs(trade.entry - trade.stop) / (panel.axis.high - panel.axis.low)
    assert seen >= 15, "pixels"
    assert FEWEST_TRADE_BARS <= len(picture.places) <= 90
    assert picture.width == len(picture.places) + PLACES_AHEAD
    assert trade.side.upper() in picture.title


@pytest.mark.slow
def test_its_levels_are_labelled_with_how_far_they_are() -> None:
    bundle = without(whole(Mode.POSITION), HOURS, MINUTES)
    marks = {mark.id: mark for mark in price(describe_trade(bundle, plan(bundle, liquidation=1_000.0))).marks}
    assert marks["trade.entry"].label == "entry"
    assert marks["trade.stop"].label == "stop −1.40 %"
    assert marks["trade.target"].label == "target +2.38 %"
    assert marks["trade.liquidation"].price == 1_000.0
    assert not {MarkKind.FIBONACCI, MarkKind.GAP} & {mark.kind for mark in marks.values()}
    assert price(describe(bundle)).trade is None


def test_a_trade_without_bars_to_draw_it_on_says_so() -> None:
    picture = describe_trade(whole(), plan(whole()))
    assert isinstance(picture.price, MissingPanel)
    assert "4h" in picture.price.why
