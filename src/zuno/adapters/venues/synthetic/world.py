"""The synthetic market as a whole: a seed, and everything a store is to be filled with."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from zuno.adapters.venues.synthetic import books, candles, derivatives, macro, options, tape, texts
from zuno.adapters.venues.synthetic.injected_faults import MARKET_FAULTS, MarketFault, inject_faults
from zuno.adapters.venues.synthetic.path import Path, paths
from zuno.trading.model.market import Symbol
from zuno.trading.ports.series import Batch, Origin


@contextmanager
def _without_gc() -> Iterator[None]:
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


def batches(seed: int, faults: Sequence[MarketFault] = MARKET_FAULTS) -> list[Batch[Any]]:
    return inject_faults(draw_batches(seed, paths(seed)), faults)


@_without_gc()
def draw_batches(seed: int, walks: Mapping[Symbol, Path]) -> list[Batch[Any]]:
    """Every feed that follows from these walks, clean."""
    won = candles.won_rate(seed)
    markets = {symbol: candles.market(seed, path) for symbol, path in walks.items()}
    given = macro.batches(seed, markets, won)
    for made in markets.values():
        given += candles.batches(made) + candles.won_batches(seed, made, won)
        given += derivatives.batches(seed, made) + books.batches(seed, made) + tape.batches(seed, made)
        given += options.batches(seed, made) + texts.batches(seed, made)
    return given
