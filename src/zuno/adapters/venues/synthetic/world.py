"""The synthetic market of a seed: every batch that a store is filled with."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from zuno.adapters.venues.synthetic import candles, derivatives, macro, options, tape
from zuno.adapters.venues.synthetic.candles import SyntheticMarket
from zuno.adapters.venues.synthetic.injected_faults import MARKET_FAULTS, MarketFault, inject_faults
from zuno.adapters.venues.synthetic.path import END, LEADER, MINUTES_FROM, Path, RandomStream, draw_paths
from zuno.adapters.venues.synthetic.tape import build_book_batches
from zuno.kernel.units import Millis
from zuno.markets.feeds import CHANNELS, OPTIONS, SEARCH
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Feed, Text, Timeframe, texts
from zuno.trading.ports.series import Batch, Origin


@contextmanager
def _without_gc() -> Iterator[None]:
    """Garbage collection among millions of kept objects takes longer than making them."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def describe_origin(seed: int) -> Origin:
    return Origin(synthetic=True, label=f"SYNTHETIC seed {seed}")


def build_batches(
    seed: int, symbols: Sequence[Symbol] = DEFAULT_SYMBOLS, faults: Sequence[MarketFault] = MARKET_FAULTS
) -> list[Batch[Any]]:
    return inject_faults(draw_batches(seed, draw_paths(seed, symbols)), faults)


@_without_gc()
def draw_batches(seed: int, walks: Mapping[Symbol, Path]) -> list[Batch[Any]]:
    krw_rate = candles.draw_krw_rate(seed)
    markets = {symbol: candles.build_market(seed, path) for symbol, path in walks.items()}
    leader = markets.get(LEADER) or candles.build_market(seed, draw_paths(seed, [LEADER])[LEADER])
    given = macro.build_batches(seed, leader, krw_rate)
    for made in markets.values():
        given += candles.build_batches(made) + candles.build_krw_batches(seed, made, krw_rate)
        given += derivatives.build_batches(seed, made) + build_book_batches(seed, made) + tape.build_batches(seed, made)
        given += options.build_batches(seed, made) if made.symbol.base in OPTIONS else []
        given += build_text_batches(seed, made)
    return given


WRITERS: Final = ("market-wire", "desk-notes", "exchange-watch")
NEWS_EVERY: Final = 2 * HOUR_MS
NARRATIVE_EVERY: Final = 12 * HOUR_MS
_NEWS: Final = (
    "{name} {moved} over the last day; traders call the session {pace}.",
    "Spot desks report {pace} trading in {name}, which {moved} in 24 hours.",
    "{name} {moved} since yesterday. Turnover was {volume} its weekly mean.",
    "A day in {name}: the price {moved}, with turnover {volume} the mean of the week.",
)
_NARRATIVE: Final = (
    "Commentary on {name} is about the last day, in which it {moved}, with turnover {volume} the mean of the week. No "
    "single event is named as the reason.",
    "Writers call the market {pace}. {name} {moved} in a day; opinions on what follows differ.",
)


def build_text_batches(seed: int, made: SyntheticMarket) -> list[Batch[Any]]:
    about = made.symbol.base
    news = _write_texts(seed, made, "news", NEWS_EVERY, 10 * MINUTE_MS, _NEWS)
    narrative = _write_texts(seed, made, "narrative", NARRATIVE_EVERY, 5 * MINUTE_MS, _NARRATIVE)
    search = [Text(row.at, SEARCH, row.id, row.body) for row in narrative]
    return [Batch(texts(Feed.NEWS, CHANNELS, about), news), Batch(texts(Feed.NARRATIVE, SEARCH, about), search)]


def _write_texts(
    seed: int, made: SyntheticMarket, name: str, every: int, after: int, forms: tuple[str, ...]
) -> list[Text]:
    """One text in every stretch of time, from the bars that had closed by then."""
    draw = RandomStream(seed, f"{name} {made.symbol}")
    hours = made.bars[Timeframe.H1]
    written = []
    for at in range(MINUTES_FROM, END, every):
        last = int(np.searchsorted(hours.at, at)) - 1
        form, channel = draw.integers(0, len(forms)), draw.integers(0, len(WRITERS))
        moved = hours.close[last] / hours.close[last - 24] - 1
        busy = hours.volume[last - 23 : last + 1].mean() / hours.volume[last - 167 : last + 1].mean()
        pace, volume = "ordinary", "near"
        if not 0.75 <= busy <= 1.3:
            pace, volume = ("busy", "well above") if busy > 1 else ("quiet", "well below")
        words = f"{'rose' if moved > 0 else 'fell'} {abs(moved):.1%}" if abs(moved) >= 0.002 else "hardly moved"
        body = forms[form].format(name=made.symbol.base, moved=words, pace=pace, volume=volume)
        written.append(Text(Millis(at + after), WRITERS[channel], f"{made.symbol.base}-{name}-{at}", body))
    return written
