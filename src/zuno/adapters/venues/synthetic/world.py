"""The synthetic market as a whole: a seed, and everything a store is to be filled with."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from zuno.adapters.venues.synthetic import books, candles, derivatives, macro, options, tape, texts
from zuno.adapters.venues.synthetic.dirt import DIRT, Dirt, stained
from zuno.adapters.venues.synthetic.path import Path, paths
from zuno.trading.model.market import Symbol
from zuno.trading.ports.series import Batch, Origin


@contextmanager
def _uncollected() -> Iterator[None]:
    """Millions of small things are made and kept: to look for garbage among them takes longer than to make them."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def origin(seed: int) -> Origin:
    return Origin(synthetic=True, label=f"SYNTHETIC seed {seed}")


def batches(seed: int, dirt: Sequence[Dirt] = DIRT) -> list[Batch[Any]]:
    return stained(drawn(seed, paths(seed)), dirt)


@_uncollected()
def drawn(seed: int, walks: Mapping[Symbol, Path]) -> list[Batch[Any]]:
    """Every feed that follows from these walks, clean."""
    won = candles.won_rate(seed)
    markets = {symbol: candles.market(seed, path) for symbol, path in walks.items()}
    given = macro.batches(seed, markets, won)
    for made in markets.values():
        given += candles.batches(made) + candles.won_batches(seed, made, won)
        given += derivatives.batches(seed, made) + books.batches(seed, made) + tape.batches(seed, made)
        given += options.batches(seed, made) + texts.batches(seed, made)
    return given
