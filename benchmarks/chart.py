"""How long a chart takes beside a bare matplotlib figure with the same artists: `python benchmarks/chart.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The yardstick puts the very same lines, boxes,
image and words on an empty figure, each made by its constructor from arrays that lie ready, and must write the same
bytes. Ours starts from the description: places, scales, labels that do not
overlap, fonts and styles are its own. What describing costs, from a frozen bundle, stands beside it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from time import process_time
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from benchmarks.figure import report
from zuno.adapters.chart.painter import ChartRenderer, paint_png
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, PERPETUALS
from zuno.markets.market import Symbol
from zuno.trading.chart.charting import describe
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.chart import HEIGHT, WIDTH
from zuno.trading.model.market import DAY_MS, HOUR_MS, Candle, Funding, Level, Mode, Series, Timeframe, candles
from zuno.trading.model.market import funding as funding_of
from zuno.trading.model.market import open_interest as open_interest_of

REPEATS = 15
AS_OF = Millis(1_767_225_600_000)
BTC = Symbol("BTCUSDT")

Maker = Callable[[], Artist]


def walk(timeframe: Timeframe, count: int) -> list[Candle]:
    dice = np.random.default_rng(count)
    close = 40_000 * np.exp(np.cumsum(dice.normal(0, 0.02, count)))
    opened = np.concatenate(([40_000.0], close[:-1]))
    high = np.maximum(opened, close) * (1 + np.abs(dice.normal(0, 0.005, count)))
    low = np.minimum(opened, close) * (1 - np.abs(dice.normal(0, 0.005, count)))
    volume = dice.lognormal(3, 0.5, count)
    last = timeframe.floor(AS_OF) - timeframe.millis
    at = [Millis(last - (count - 1 - place) * timeframe.millis) for place in range(count)]
    columns = (opened, high, low, close, volume, volume * dice.uniform(0.3, 0.7, count))
    return list(map(Candle, at, *(column.tolist() for column in columns)))


def market(mode: Mode) -> Bundle:
    """A bundle with everything a chart shows."""
    reach = {Timeframe.H1: 4_344, Timeframe.H4: 1_000, Timeframe.D1: 1_000, Timeframe.W1: 520}
    found: list[tuple[Series[Any], list[Any]]] = [
        (candles(BINANCE, BTC, timeframe), walk(timeframe, count)) for timeframe, count in reach.items()
    ]
    moments = range(AS_OF - 180 * DAY_MS, AS_OF + 1, 8 * HOUR_MS)
    for venue in PERPETUALS:
        rates = [Funding(Millis(at), 1e-4 * np.sin(at / 9e8), 8.0) for at in moments]
        levels = [Level(Millis(at), 9e4 + 1e3 * np.cos(at / 9e8)) for at in moments]
        found += [(funding_of(venue, BTC), rates), (open_interest_of(venue, BTC), levels)]
    blocks = (Block(series, tuple(rows), AS_OF, Seconds(0), Seconds(600)) for series, rows in found)
    return Bundle(BTC, mode, AS_OF, "SYNTHETIC", tuple(blocks), ())


def makers(figure: Figure) -> Iterator[Maker]:
    """For each artist of a figure, a way to make it anew from what lies ready."""
    for artist in figure.artists:
        match artist:
            case LineCollection():
                yield _anew(LineCollection, artist, artist.get_segments())
            case PolyCollection():
                corners = [np.array(path.vertices)[:4] for path in artist.get_paths()]
                yield _anew(PolyCollection, artist, corners)
            case Line2D():
                yield _anew(Line2D, artist, *artist.get_data())
            case Text():
                yield _anew(Text, artist, *artist.get_position(), artist.get_text())
            case _:
                raise TypeError(f"{type(artist).__name__} is not known to this bench")


def _anew(kind: type[Any], model: Artist, *data: Any) -> Maker:
    def made() -> Artist:
        artist: Artist = kind(*data)
        artist.update_from(model)
        artist.set(zorder=model.get_zorder(), snap=False)
        return artist

    return made


def bare(ready: list[Maker], images: list[Any]) -> bytes:
    out = BytesIO()
    figure = Figure((WIDTH / 100, HEIGHT / 100), dpi=100, facecolor="white")
    for image in images:
        figure.figimage(image.get_array(), image.ox, image.oy, origin="lower", zorder=image.get_zorder())
    for maker in ready:
        figure.add_artist(maker())
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(out, metadata={"Software": None})
    return out.getvalue()


def best_times(*jobs: Callable[[], object]) -> list[float]:
    """Milliseconds of work of each job, the best of several turns; the jobs take turns, so a busy machine hits all."""
    best = [float("inf")] * len(jobs)
    for job in jobs:
        job()
    gc.disable()
    try:
        for _ in range(REPEATS):
            for place, job in enumerate(jobs):
                start = process_time()
                job()
                best[place] = min(best[place], (process_time() - start) * 1e3)
    finally:
        gc.enable()
    return best


def measured(mode: Mode) -> bool:
    bundle = market(mode)
    picture = describe(bundle)
    figure = ChartRenderer(picture).draw()
    ready, images = list(makers(figure)), list(figure.images)
    png = paint_png(picture)
    if bare(ready, images) != png:
        sys.stderr.write("the yardstick does not draw the same picture\n")
        return False
    ours, theirs, told = best_times(lambda: paint_png(picture), lambda: bare(ready, images), lambda: describe(bundle))
    return report(
        f"chart of {picture.timeframe} × {picture.width}",
        ours,
        "ms",
        theirs,
        "a bare matplotlib figure with the same artists",
        1.5,
        artists=len(ready) + len(images),
        describing_ms=round(told, 1),
        png_kb=round(len(png) / 1e3),
    )


def main() -> int:
    passed = [measured(mode) for mode in Mode]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
