"""What stands on the paper: looked at pixel by pixel, at the size a model sees it."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.wire.chart_bundles import DAYS, changed, whole
from zuno.adapters.chart.canvas import BLUE, GREY, PURPLE, VERMILLION
from zuno.adapters.chart.frames import LAST, LEFT, PROFILE, PanelFrame, layout_bars, rows
from zuno.adapters.chart.painter import ACROSS, MODELLED, OBSERVED, _heat_caption, paint_png
from zuno.trading.chart.charting import describe
from zuno.trading.model.chart import HEIGHT, WIDTH, Axis, Heat, MissingPanel, Picture, PricePanel, Scale
from zuno.trading.model.market import Mode

Pixels = NDArray[np.uint8]
PICTURE = describe(whole())


def look(picture: Picture) -> Pixels:
    """Rows from the bottom up, as the frames count."""
    with Image.open(BytesIO(paint_png(picture))) as image:
        return np.asarray(image.convert("RGB"))[::-1]


def price(picture: Picture) -> PricePanel:
    assert isinstance(picture.price, PricePanel)
    return picture.price


def bare(picture: Picture, **more: Any) -> Picture:
    """Nothing but candles in the price panel."""
    nothing = {"curves": (), "marks": (), "zones": (), "slants": (), "swing": None, "absent": ()}
    blank = {"profile": MissingPanel("p", "none"), "heat": MissingPanel("h", "none")}
    return replace(picture, synthetic=False, price=replace(price(picture), **(nothing | blank | more)))


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def of(pixels: Pixels, colour: str) -> NDArray[np.bool_]:
    return np.asarray((pixels == rgb(colour)).all(axis=2))


@pytest.mark.slow
def test_the_image_has_the_size_a_model_sees_and_no_word_about_its_making() -> None:
    with Image.open(BytesIO(paint_png(PICTURE))) as image:
        assert (image.size, image.format) == ((WIDTH, HEIGHT), "PNG")
        assert set(image.info) <= {"dpi"}
    assert WIDTH % 28 == HEIGHT % 28 == 0
    assert WIDTH // 28 * (HEIGHT // 28) <= 1_568


@pytest.mark.slow
def test_a_rise_is_hollow_and_a_fall_is_full() -> None:
    picture = bare(describe(changed(whole(), DAYS, lambda rows: rows[-12:])))
    pixels, where = look(picture), layout_bars(picture.width)
    frame = PanelFrame(*rows(4)[0], price(picture).axis)
    candles, seen = price(picture).candles, set()
    for place, (opened, close) in enumerate(zip(candles.open, candles.close, strict=True)):
        x = int(where.middle(np.array([float(place)]))[0])
        low, high = sorted((frame.at(opened), frame.at(close)))
        if high - low < 6:
            continue
        seen.add(close >= opened)
        inside = pixels[int(low) + 3 : int(high) - 2, x + 2]
        assert {tuple(one) for one in inside.tolist()} == {(255, 255, 255) if close >= opened else rgb(VERMILLION)}
    assert seen == {True, False}


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
def test_every_bar_stands_apart_at_its_place_and_height(mode: Mode) -> None:
    picture = bare(describe(whole(mode)))
    pixels, where = look(picture), layout_bars(picture.width)
    frame = PanelFrame(*rows(4)[0], price(picture).axis)
    panel = pixels[frame.bottom + 1 : frame.top, LEFT + 1 : LAST - PROFILE]
    inked = (panel.max(axis=2).astype(int) - panel.min(axis=2)) > 30  # anything with a colour of its own
    candles = price(picture).candles
    for place, (low, high) in enumerate(zip(candles.low, candles.high, strict=True)):
        x = int(where.middle(np.array([float(place)]))[0]) - LEFT - 1
        (ys,) = np.nonzero(inked[:, x])
        assert abs(ys.min() + frame.bottom + 1 - frame.at(low)) <= 1.5
        assert abs(ys.max() + frame.bottom + 1 - frame.at(high)) <= 1.5
    middles = where.middle(np.arange(picture.width, dtype=float))
    assert np.diff(middles).min() > where.body
    assert middles[0] - where.body / 2 >= LEFT
    assert middles[-1] + where.body / 2 <= LAST - PROFILE


@pytest.mark.slow
def test_an_empty_place_is_empty() -> None:
    picture = bare(describe(changed(whole(), DAYS, lambda rows: (*rows[-9:-5], *rows[-4:]))))
    pixels, where = look(replace(picture, times=())), layout_bars(picture.width)
    frame = PanelFrame(*rows(4)[0], price(picture).axis)
    x = int(where.middle(np.array([4.0]))[0])
    strip = pixels[frame.bottom + 2 : frame.top - 1, x - 2 : x + 3].astype(int)
    assert (strip.max(axis=2) - strip.min(axis=2)).max() == 0  # the grid is grey


EDGES = tuple(np.linspace(price(PICTURE).axis.low, price(PICTURE).axis.high, 11).tolist())
COLUMN = (0.0, 0.0, 100.0, 0.0, 0.0, 25.0, 0.0, 0.0, 0.0, 0.0)


NOTHING = (0.0,) * len(COLUMN)


def heat_of(observed: tuple[bool, ...], heard: tuple[bool, ...], little: float = 0.0) -> Heat:
    """Pools in every bar, and where somebody listened so much of it forced out."""
    forced = tuple(tuple(little * usd for usd in COLUMN) if so else NOTHING for so in observed)
    return Heat("whichever", "a note", EDGES, (COLUMN,) * len(observed), forced, observed, heard)


@pytest.mark.slow
def test_the_heat_map_is_darkest_where_most_is() -> None:
    count = len(PICTURE.places)
    heat = heat_of((False,) * count, (True,) * (count - 1) + (False,))
    frame = PanelFrame(*rows(4)[0], price(PICTURE).axis)
    pixels = look(replace(bare(PICTURE, heat=heat, axis=replace(frame.axis, ticks=())), times=()))
    levels = [np.median(pixels[int(frame.at((a + b) / 2)), LEFT + 5 : LAST - PROFILE - 5]) for a, b in pairwise(EDGES)]
    assert levels[2] == 176
    assert 176 < levels[5] < 230
    assert {levels[place] for place in (0, 3, 8, 9)} == {255}
    foot = of(pixels, PURPLE)[frame.bottom + 2]
    assert foot.sum() > 2
    assert np.nonzero(foot)[0].min() > LAST - PROFILE - 8


@pytest.mark.soak
def test_observed_bars_are_of_another_colour_and_as_dark_as_their_own_kind() -> None:
    """A thousandth of what stands is forced out in a day: on one scale it would not be seen."""
    count = len(PICTURE.places)
    observed = tuple(place >= count // 2 for place in range(count))
    heat = heat_of(observed, (True,) * count, 0.001)
    frame = PanelFrame(*rows(4)[0], price(PICTURE).axis)
    pixels = look(replace(bare(PICTURE, heat=heat, axis=replace(frame.axis, ticks=())), times=()))
    middle = int(layout_bars(PICTURE.width).middle(np.array([count // 2]))[0])
    for place, (low, high) in enumerate(pairwise(EDGES)):
        row = pixels[int(frame.at((low + high) / 2))]
        left, right = (np.median(part, axis=0) for part in (row[LEFT + 5 : middle - 8], row[middle + 8 : LAST - 70]))
        if COLUMN[place] == 0:
            assert left.tolist() == right.tolist() == [255, 255, 255]
        elif place == 2:
            assert left.tolist() == list(MODELLED)
            assert right.tolist() == list(OBSERVED)
        else:
            assert left[0] == left[1] == left[2]
            assert right[2] < right[1] < 255


@pytest.mark.parametrize(
    ("observed", "heard", "told"),
    [
        ((False, False), (True, True), "liquidations, grey MODELLED: a note"),
        ((False, True), (True, True), "liquidations, yellow OBSERVED, grey MODELLED: a note"),
        (
            (True, True),
            (True, False),
            "liquidations, yellow OBSERVED, grey MODELLED: a note; purple foot: not heard whole",
        ),
    ],
)
def test_the_legend_names_the_kinds_that_are_drawn(
    observed: tuple[bool, ...], heard: tuple[bool, ...], told: str
) -> None:
    assert told_of(bare(PICTURE, heat=heat_of(observed, heard))) == told


@pytest.mark.soak
def test_the_longest_legend_has_room() -> None:
    since = "forced out in 179 bars from 2025-12-18, a lower bound, binance alone"
    longest = f"{since}; pools from open interest at 5×–100×"
    count = len(PICTURE.places)
    heat = heat_of((True, False) * (count // 2), (False,) + (True,) * (count - 1))
    picture = bare(PICTURE, heat=replace(heat, note=longest))
    told = told_of(picture)
    assert len(told) <= ACROSS
    assert "100×" in told
    line = look(picture)[HEIGHT - 58 : HEIGHT - 46].min(axis=(0, 2))
    end = int(np.flatnonzero(line < 128).max())
    assert WIDTH - 120 < end < WIDTH - 6, "it is that long, and does not run off the paper"


def told_of(picture: Picture) -> str:
    return _heat_caption(picture.price)


@pytest.mark.soak
def test_a_log_axis_puts_the_heat_where_the_prices_are() -> None:
    axis = Axis(100.0, 10_000.0, Scale.LOG, ())
    edges, column, none = (100.0, 900.0, 1_100.0, 10_000.0), (0.0, 9.0, 0.0), (False,) * 180
    nothing = ((0.0,) * len(column),) * 180
    heat = Heat("modelled", "", edges, (column,) * 180, nothing, none, (True,) * 180)
    frame = PanelFrame(*rows(4)[0], axis)
    pixels = look(replace(bare(PICTURE, heat=heat, axis=axis), times=()))
    shaded = [
        y for y in range(frame.bottom + 2, frame.top - 2) if np.median(pixels[y, LEFT + 5 : LAST - PROFILE]) == 176
    ]
    assert abs(shaded[0] - frame.at(900.0)) <= 1
    assert abs(shaded[-1] - frame.at(1_100.0)) <= 1


@pytest.mark.soak
def test_what_is_above_the_panel_is_named_at_its_edge() -> None:
    mark = replace(price(PICTURE).marks[0], price=price(PICTURE).axis.high * 5, label="far")
    near = look(bare(PICTURE, marks=(replace(mark, price=price(PICTURE).axis.high),)))
    far = look(bare(PICTURE, marks=(mark,)))
    frame = PanelFrame(*rows(4)[0], price(PICTURE).axis)
    assert (far[: frame.top + 1, LAST + 30 :] != near[: frame.top + 1, LAST + 30 :]).any()
    assert (far[frame.top + 2 : HEIGHT - 60] == near[frame.top + 2 : HEIGHT - 60]).all()


@pytest.mark.soak
def test_labels_do_not_touch_each_other() -> None:
    """Thirty levels at almost one price: each line of text has white above and below it."""
    marks = [
        replace(price(PICTURE).marks[0], id=str(n), label=f"pivot high {n}", price=40_000.0 + n) for n in range(30)
    ]
    pixels = look(bare(PICTURE, marks=tuple(marks)))
    bottom, height = rows(4)[0]
    text = pixels[bottom : bottom + height, LAST + 36 : WIDTH - 4].min(axis=(1, 2)) < 128
    starts = int((np.diff(text.astype(int)) == 1).sum())
    assert starts == 30


@pytest.mark.soak
def test_no_label_runs_off_the_paper() -> None:
    wide = [replace(one, price=188_888.0 + place) for place, one in enumerate(price(PICTURE).marks)]
    curves = [replace(one, last=188_888.0) for one in price(PICTURE).curves]
    pixels = look(replace(PICTURE, price=replace(price(PICTURE), marks=tuple(wide), curves=tuple(curves)), origin=""))
    assert (pixels[:, WIDTH - 2 :] == 255).all()


@pytest.mark.slow
def test_an_invented_market_bears_its_mark_across_the_price() -> None:
    said = look(replace(bare(PICTURE), synthetic=True))
    unsaid = look(bare(PICTURE))
    bottom, height = rows(4)[0]
    changed_rows = np.nonzero((said != unsaid).any(axis=(1, 2)))[0]
    assert bottom < changed_rows.min()
    assert (said != unsaid).any(axis=2)[bottom : bottom + height].sum() > 5_000


@pytest.mark.soak
def test_volume_and_funding_have_the_candles_colours() -> None:
    pixels = look(bare(PICTURE))
    for bottom, height in (rows(4)[1], rows(4)[4]):
        part = pixels[bottom + 2 : bottom + height - 18, LEFT + 2 : LAST - 2]
        assert of(part, VERMILLION).sum() > 50
        assert of(part, BLUE).sum() > 50


@pytest.mark.soak
def test_a_missing_panel_says_so_in_its_place() -> None:
    gone = replace(PICTURE, panels=(*PICTURE.panels[:-1], MissingPanel("funding", "nobody answered")))
    bottom, height = rows(4)[4]
    part = look(gone)[bottom + 2 : bottom + height - 2, LEFT + 2 : LAST - 2]
    assert of(part, VERMILLION).sum() > 10
    assert not of(part, BLUE).any()
    assert of(look(gone), GREY).any()


def test_colours_are_told_apart_without_red_or_green() -> None:
    """Machado, Oliveira and Fernandes 2009, complete deuteranopia, in linear light."""
    see = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]])
    light = [((np.array(rgb(colour)) / 255 + 0.055) / 1.055) ** 2.4 for colour in (BLUE, VERMILLION)]
    rise, fall = (np.clip(see @ one, 0, 1) for one in light)
    assert np.linalg.norm(rise - fall) > 0.3
