"""The synthetic market as a whole: a seed, and everything a store is to be filled with."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from zuno.adapters.venues.synthetic import books, candles, derivatives, macro, options, tape, texts
from zuno.adapters.venues.synthetic.injected_faults import MARKET_FAULTS, MarketFault, inject_faults
from zuno.adapters.venues.synthetic.path import Path, draw_paths
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


def describe_origin(seed: int) -> Origin:
    return Origin(synthetic=True, label=f"SYNTHETIC seed {seed}")


def build_batches(seed: int, faults: Sequence[MarketFault] = MARKET_FAULTS) -> list[Batch[Any]]:
    return inject_faults(draw_batches(seed, draw_paths(seed)), faults)


@_without_gc()
def draw_batches(seed: int, walks: Mapping[Symbol, Path]) -> list[Batch[Any]]:
    """Every feed that follows from these walks, clean."""
    krw_rate = candles.draw_krw_rate(seed)
    markets = {symbol: candles.build_market(seed, path) for symbol, path in walks.items()}
    given = macro.build_batches(seed, markets, krw_rate)
    for made in markets.values():
        given += candles.build_batches(made) + candles.build_krw_batches(seed, made, krw_rate)
        given += (
            derivatives.build_batches(seed, made) + books.build_batches(seed, made) + tape.build_batches(seed, made)
        )
        given += options.build_batches(seed, made) + texts.build_batches(seed, made)
    return given
