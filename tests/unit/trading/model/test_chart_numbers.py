"""The numbers beside a chart are of exactly what is drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.chart_bundles import AS_OF, DAYS, changed, whole, without
from zuno.trading.chart.charting import describe
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.chart import Heat, Panel, PricePanel, numbers
from zuno.trading.model.market import DAY_MS, Feed, Mode, alive


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
def test_every_level_that_is_labelled_is_told_once(mode: Mode) -> None:
    picture = describe(whole(mode))
    told = numbers(picture)["price"]
    drawn = picture.price
    assert told is not None
    assert isinstance(drawn, PricePanel)
    labels = {mark.id: (mark.label, mark.price) for mark in drawn.marks}
    labels |= {slant.id: (slant.label, slant.end[1]) for slant in drawn.slants}
    labels |= {curve.id: (curve.label, curve.last) for curve in drawn.curves}
    assert {level["id"]: (level["label"], level["price"]) for level in told["levels"]} == labels
    assert [level["price"] for level in told["levels"]] == sorted(level["price"] for level in told["levels"])
    assert {level["kind"] for level in told["levels"]} >= {"pivot", "profile", "average", "vwap", "now"}


@pytest.mark.slow
def test_axes_last_values_and_the_last_bar() -> None:
    picture, told = describe(whole()), numbers(describe(whole()))
    row = whole().rows(DAYS)[-1]
    assert tuple(told["price"]["last"].values()) == row[:5]
    assert (told["first"], told["bars"], told["places"]) == (AS_OF - 180 * DAY_MS, 180, 180)
    drawn = [panel for panel in picture.panels if isinstance(panel, Panel)]
    assert [(one["name"], one["axis"]["low"], one["axis"]["high"], one["last"]) for one in told["panels"]] == [
        (panel.name, panel.axis.low, panel.axis.high, panel.last) for panel in drawn
    ]
    assert told["synthetic"]
    assert told["origin"] == "SYNTHETIC seed 1"


def test_the_last_bar_is_dated_by_its_place() -> None:
    told = numbers(describe(changed(whole(), DAYS, lambda rows: (*rows[-9:-5], *rows[-4:-1]))))["price"]
    assert told is not None
    assert told["last"]["at"] == whole().rows(DAYS)[-2].at


def test_the_hottest_cells_of_the_newest_bar_come_first() -> None:
    heat, told = heats(whole())
    assert (told["origin"], told["newest"]) == ("observed and modelled", "observed")
    for cells, column in ((told["forced"], heat.forced[-1]), (told["standing"], heat.standing)):
        assert [cell["usd"] for cell in cells] == sorted((usd for usd in column if usd), reverse=True)[:5]
        assert all(cell["low"] < cell["high"] for cell in cells)


@pytest.mark.slow
def test_it_is_told_since_when_the_map_is_observed() -> None:
    heat, told = heats(whole())
    assert told["note"] == heat.note
    assert (told["observedBars"], told["observedFrom"]) == (2, AS_OF - 2 * DAY_MS)
    holed = heats(changed(whole(), DAYS, lambda rows: (*rows[-9:-5], *rows[-4:-2], rows[-1])))[1]
    assert (holed["observedBars"], holed["observedFrom"]) == (1, AS_OF - DAY_MS), "dated by its place"


def test_a_map_that_nobody_heard_is_said_to_be_modelled() -> None:
    heat, told = heats(without(whole(), alive(Feed.LIQUIDATIONS, "bybit", "BTCUSDT")))
    assert (told["origin"], told["newest"], told["observedBars"], told["observedFrom"]) == (
        "modelled",
        "modelled",
        0,
        None,
    )
    assert told["forced"] == ()
    assert heat.standing == heat.columns[-1]


def heats(bundle: Bundle) -> tuple[Heat, dict[str, Any]]:
    """As drawn, and as told."""
    picture = describe(bundle)
    told = numbers(picture)["price"]
    assert isinstance(picture.price, PricePanel)
    assert isinstance(picture.price.heat, Heat)
    assert told is not None
    return picture.price.heat, told["heat"]


def test_what_is_absent_is_listed_with_its_reason() -> None:
    told = numbers(describe(without(whole(), DAYS)))
    assert told["price"] is None
    assert [part["what"] for part in told["absent"]] == ["price", "volume", "CVD", "open interest", "funding"]
    assert told["absent"][0]["why"] == "the venue did not answer"


@pytest.mark.slow
def test_the_numbers_are_plain_json() -> None:
    told = numbers(describe(whole()))
    assert json.loads(json.dumps(told))["price"]["levels"] == list(told["price"]["levels"])
    assert told["asOf"] == AS_OF
