"""The exam of `Painter`: matplotlib's and the fake sit it; how an image must look is in the painter's own tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.examples import mark_all_but
from tests.paths import CHECKOUT
from tests.wire.chart_bundles import DAYS, changed, whole, without
from tests.wire.fakes.painter import DigestPainter
from zuno.adapters.chart.painter import MatplotlibPainter
from zuno.trading.chart.charting import describe
from zuno.trading.model.chart import MissingPanel, Panel, Picture, PricePanel, TradePlan
from zuno.trading.model.market import Mode, Side
from zuno.trading.ports.chart import Painter

PICTURE = describe(whole())
POSITION = describe(whole(Mode.POSITION))


TRADE = TradePlan(Side.LONG, 40_000.0, 39_000.0, 42_000.0, None, True, "a card")
Usual = dict[type[Painter], bytes]


@pytest.fixture(params=["matplotlib", "digest"])
def candidate(request: pytest.FixtureRequest) -> Painter:
    return MatplotlibPainter() if request.param == "matplotlib" else DigestPainter()


def priced(picture: Picture, change: Callable[[PricePanel], PricePanel]) -> Picture:
    assert isinstance(picture.price, PricePanel)
    return replace(picture, price=change(picture.price))


def panel(picture: Picture, place: int, **changes: object) -> Picture:
    panels = list(picture.panels)
    assert isinstance(panels[place], Panel)
    panels[place] = replace(panels[place], **changes)  # type: ignore[arg-type]
    return replace(picture, panels=tuple(panels))


OTHERS: dict[str, Picture] = {
    "a title": replace(PICTURE, title="another"),
    "an origin": replace(PICTURE, origin="SYNTHETIC seed 2"),
    "no longer synthetic": replace(PICTURE, synthetic=False),
    "a note": replace(PICTURE, notes=("STALE",)),
    "a date": replace(PICTURE, times=PICTURE.times[1:]),
    "a bar": priced(
        PICTURE, lambda p: replace(p, candles=replace(p.candles, high=(*p.candles.high[:-1], p.axis.high)))
    ),
    "a curve": priced(PICTURE, lambda p: replace(p, curves=p.curves[1:])),
    "a level": priced(PICTURE, lambda p: replace(p, marks=p.marks[1:])),
    "a price": priced(
        PICTURE, lambda p: replace(p, marks=(replace(p.marks[0], price=p.marks[0].price * 1.02), *p.marks[1:]))
    ),
    "a gap": priced(PICTURE, lambda p: replace(p, zones=p.zones[1:])),
    "a trend line": priced(PICTURE, lambda p: replace(p, slants=p.slants[1:])),
    "the swing": priced(PICTURE, lambda p: replace(p, swing=None)),
    "the profile": priced(PICTURE, lambda p: replace(p, profile=MissingPanel("volume profile", "gone"))),
    "the heat map": priced(PICTURE, lambda p: replace(p, heat=MissingPanel("liquidation heat map", "gone"))),
    "a trade": priced(PICTURE, lambda p: replace(p, trade=TRADE)),
    "its card": priced(PICTURE, lambda p: replace(p, trade=replace(TRADE, card="another"))),
    "its stop": priced(PICTURE, lambda p: replace(p, trade=replace(TRADE, stop=TRADE.stop * 0.97))),
    "a value": panel(PICTURE, 1, last=1.0),
    "a panel's note": panel(PICTURE, 2, note="absent before"),
    "rises": panel(PICTURE, 0, rising=(True,) * len(PICTURE.places)),
    "a panel": replace(PICTURE, panels=(*PICTURE.panels[:-1], MissingPanel("funding", "gone"))),
    "why it is gone": replace(PICTURE, panels=(*PICTURE.panels[:-1], MissingPanel("funding", "nobody answered"))),
}
STRANGE = "$\\nonsense{$ _{ ^ \u202e\u2066\U0001f600 漢字 \x00\n\t " + "x" * 400
FLAT = {"open": 9.0, "high": 9.0, "low": 9.0, "close": 9.0}
LITTLE: dict[str, Picture] = {
    "nothing": describe(without(whole(), *(block.series for block in whole().blocks))),
    "one bar": describe(changed(whole(), DAYS, lambda rows: rows[-1:])),
    "holes": describe(changed(whole(), DAYS, lambda rows: rows[-40::3])),
    "one price": describe(changed(whole(), DAYS, lambda rows: [row._replace(**FLAT) for row in rows])),
    "no panels": replace(PICTURE, panels=()),
    "strange words": replace(PICTURE, title=STRANGE, notes=("$" * 300,)),
    "strange reasons": replace(PICTURE, panels=(MissingPanel("$", "\n" * 50 + "why " * 900), *PICTURE.panels[1:])),
    "no words": replace(PICTURE, title="", origin="", notes=("",)),
}


@pytest.fixture(scope="module")
def usual() -> Usual:
    """What each makes of the usual picture, once."""
    return {kind: asyncio.run(kind().paint(PICTURE)) for kind in (MatplotlibPainter, DigestPainter)}


@pytest.mark.soak(every=2)
async def test_equal_pictures_are_equal_bytes(candidate: Painter, usual: Usual) -> None:
    twice = describe(whole())
    assert twice is not PICTURE
    assert await candidate.paint(POSITION) != usual[type(candidate)]
    assert await candidate.paint(twice) == usual[type(candidate)]


@pytest.mark.soak
async def test_pictures_painted_at_the_same_time_do_not_disturb_each_other(candidate: Painter, usual: Usual) -> None:
    first, second, third = await asyncio.gather(*map(candidate.paint, (PICTURE, POSITION, PICTURE)))
    assert first == third == usual[type(candidate)] != second


@pytest.mark.soak(every=6)
@pytest.mark.parametrize("change", mark_all_but(3, OTHERS, pytest.mark.soak))
async def test_whatever_is_described_is_painted(candidate: Painter, usual: Usual, change: str) -> None:
    assert await candidate.paint(OTHERS[change]) != usual[type(candidate)]


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("little", mark_all_but(2, LITTLE, pytest.mark.soak))
async def test_any_picture_can_be_painted(candidate: Painter, little: str) -> None:
    assert await candidate.paint(LITTLE[little])


@pytest.mark.soak(every=2)
def test_another_process_with_another_taste_paints_the_same(candidate: Painter, usual: Usual, tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text(
        "font.family: cursive\nfont.size: 30\nlines.linewidth: 9\nsavefig.facecolor: red\nsavefig.dpi: 33\n"
        "text.antialiased: False\npath.snap: False\nlines.solid_capstyle: round\npatch.antialiased: False\n"
    )
    kind = type(candidate)
    code = (
        "import asyncio, sys\n"
        "from tests.wire.chart_bundles import whole\nfrom zuno.trading.chart.charting import describe\n"
        f"from {kind.__module__} import {kind.__name__} as Kind\n"
        "sys.stdout.buffer.write(asyncio.run(Kind().paint(describe(whole()))))\n"
    )
    taste = {"MATPLOTLIBRC": str(tmp_path), "PYTHONHASHSEED": "7", "TZ": "Asia/Seoul"}
    environment = {**os.environ, **taste, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment, cwd=tmp_path)
    assert done.stdout == usual[type(candidate)]
    assert [path.name for path in tmp_path.iterdir()] == ["matplotlibrc"]


def test_the_bytes_are_what_they_are_called(candidate: Painter, usual: Usual) -> None:
    data = usual[type(candidate)]
    assert data.startswith(b"\x89PNG\r\n\x1a\n") == (candidate.media_type == "image/png")
