"""Figures as JSON: each beside its source, its moment and its age, which belong together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.wire.chart_bundles import AS_OF, BTC, changed, whole, without
from zuno.kernel.clock import iso
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, BYBIT, DERIBIT, OKX, PERPETUALS
from zuno.trading.measure.events import Move, Shock, ShockScan
from zuno.trading.measure.features import measure_features
from zuno.trading.measure.triage import Anomaly, Rule
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.market import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    Level,
    Series,
    Timeframe,
    books,
    candles,
    liquidations,
    open_interest,
    options,
)
from zuno.trading.service.features_to_view import features_view


def aged(bundle: Bundle, series: Series[Any], seconds: int) -> Bundle:
    """With the newest word of a series so much older."""
    moment = Millis(AS_OF - seconds * SECOND_MS)
    return replace(
        bundle,
        blocks=tuple(
            replace(one, as_of=moment, age=Seconds(seconds)) if one.series == series else one for one in bundle.blocks
        ),
    )


def shown(bundle: Bundle, part: str) -> tuple[Any, ...]:
    group = features_view(bundle, "name", measure_features(bundle)).features[part]
    return group["source"], group["asOf"], group["ageSeconds"], group["stale"]


def ticking(bundle: Bundle) -> Bundle:
    """Open interest of every venue, each five minutes of the last two hours and a day."""
    rows = [Level(Millis(at), 100.0) for at in range(AS_OF - 26 * HOUR_MS, AS_OF + 1, 5 * MINUTE_MS)]
    for venue in PERPETUALS:
        bundle = changed(bundle, open_interest(venue, BTC), lambda _: rows)
    return bundle


@pytest.mark.slow
def test_a_figure_of_several_venues_is_as_old_as_the_oldest_of_them() -> None:
    bundle = aged(aged(whole(), liquidations(BINANCE, BTC), 10), liquidations(BYBIT, BTC), 40)
    assert shown(bundle, "liquidations") == ("binance, bybit, okx", iso(Millis(AS_OF - 40 * SECOND_MS)), 40, False)
    late = aged(bundle, liquidations(BINANCE, BTC), 700)
    assert shown(late, "liquidations") == ("binance, bybit, okx", iso(Millis(AS_OF - 700 * SECOND_MS)), 700, True)


@pytest.mark.slow
def test_a_venue_that_is_not_in_a_figure_does_not_make_it_older() -> None:
    bundle = aged(ticking(whole()), open_interest(BYBIT, BTC), 120)
    two = iso(Millis(AS_OF - 120 * SECOND_MS))
    assert shown(bundle, "openInterest") == ("binance, bybit, okx", two, 120, False)
    gone = changed(bundle, open_interest(OKX, BTC), lambda rows: rows[:3])
    assert shown(aged(gone, open_interest(OKX, BTC), 90_000), "openInterest") == ("binance, bybit", two, 120, False)
    none = bundle
    for venue in PERPETUALS:
        none = aged(changed(none, open_interest(venue, BTC), lambda rows: rows[:3]), open_interest(venue, BTC), 90_000)
    assert shown(none, "openInterest")[0] == "binance, bybit, okx"


def test_what_rests_on_nothing_has_no_moment() -> None:
    bundle = without(whole(), *(open_interest(venue, BTC) for venue in PERPETUALS))
    assert shown(bundle, "openInterest") == (None, None, None, None)


@pytest.mark.parametrize("rule", Rule)
def test_an_anomaly_names_its_source_and_its_age(rule: Rule) -> None:
    """As old as the oldest of what its rule is held against; what is not here or stale is no source."""
    rests = {
        Rule.SPIKE: (candles(BINANCE, BTC, Timeframe.H1), "binance, bybit"),
        Rule.LIQUIDATION_CLUSTER: (liquidations(BYBIT, BTC), "binance, bybit, okx"),
        Rule.MICROSTRUCTURE_IMBALANCE: (books(BINANCE, BTC), "binance"),
        Rule.OPTIONS_PANIC: (options(DERIBIT, BTC.base), "deribit"),
    }
    series, source = rests[rule]
    bundle = whole()
    found = measure_features(bundle)
    if bundle.block(series) is None:  # type: ignore[arg-type]
        bundle = replace(bundle, blocks=(*bundle.blocks, Block(series, (), AS_OF, Seconds(0), Seconds(600))))  # type: ignore[arg-type]
    bundle = aged(ticking(bundle), series, 500)  # type: ignore[arg-type]
    bundle = aged(bundle, open_interest(OKX, BTC), 90_000)
    loud = replace(found, triage=replace(found.triage, anomalies=(Anomaly(rule, None, "it is so"),)))
    (one,) = features_view(bundle, "name", loud).anomalies
    assert (one.name, one.source, one.age_seconds) == (rule, source, 500)
    assert one.as_of == iso(Millis(AS_OF - 500 * SECOND_MS))


def test_a_shock_says_how_long_ago_it_was_and_where() -> None:
    bundle = whole()
    found = measure_features(bundle)
    assert isinstance(found.watch, ShockScan)
    shock = Shock(Millis(AS_OF - 90 * MINUTE_MS), 100.0, (Move(5, -0.02, 0.015),), 0.015, False)
    loud = replace(found, watch=replace(found.watch, shocks=(shock,)))
    (one,) = features_view(bundle, "name", loud).shocks
    assert (one.at, one.age_seconds, one.source, one.direction) == (iso(shock.at), 5_400, "binance", "down")
