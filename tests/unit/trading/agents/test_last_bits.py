"""The last bit of a price, or of what a library computed, changes no printed digit and no ruling."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf, nextafter
from random import Random
from typing import Any

import numpy as np
import pytest
import talib

from tests.wire.desk_bundles import World, bundle_of, minds_of, saying
from tests.wire.desk_roles import ROLES, argued
from zuno.trading.measure.portable import PRICE_DIGITS, round_prices
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.market import Candle

WORLDS = [World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03), World(drift=0.012, lean=0.75, seed=4)]


async def answered(bundle: Bundle) -> list[Any]:
    """What is drawn from, the prices on offer, what the rules said and ruled, and every prompt."""
    debate = await argued(bundle)
    told: list[Any] = [
        debate.case.inputs.seed,
        debate.case.menu,
        debate.meta,
        debate.board,
        debate.decision,
        debate.draft,
    ]
    for role in ROLES:
        model = saying(debate.twin(role).model_dump_json())
        await debate.ask(role, minds_of(model))
        told += [request.turns[0].text for request in model.asked]
    return told


def shift_candles(bundle: Bundle, dice: Random) -> Bundle:
    """Every open, high, low and close of every bar moved by one unit of its last place, up or down."""

    def shift(row: Candle) -> Candle:
        prices = {
            name: nextafter(getattr(row, name), dice.choice((0.0, inf))) for name in ("open", "high", "low", "close")
        }
        return row._replace(**prices)  # type: ignore[arg-type]

    def shift_rows(block: Block) -> Block:
        return replace(block, rows=tuple(shift(row) if isinstance(row, Candle) else row for row in block.rows))

    return replace(bundle, blocks=tuple(map(shift_rows, bundle.blocks)))


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
async def test_one_unit_of_the_last_place_of_every_price_changes_nothing(world: World) -> None:
    bundle = bundle_of(world)
    before = await answered(bundle)
    assert len(before) > len(ROLES)
    for seed in range(2):
        assert await answered(shift_candles(bundle, Random(seed))) == before


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
async def test_the_last_bits_of_a_library_change_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that fuses products with sums, and a C library with its own logarithm, move a result by so much."""
    bundle = bundle_of(world)
    before = await answered(bundle)
    dice = np.random.default_rng(5)

    def tremble(values: Any) -> Any:
        return values * (1 + dice.integers(-4, 5, len(values)) * 2.0**-52)

    def trembling(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            return tuple(map(tremble, found)) if isinstance(found, tuple) else tremble(found)

        return call

    for name in ("EMA", "RSI", "MACD", "ADX", "ATR"):
        monkeypatch.setattr(talib, name, trembling(getattr(talib, name)))
    for name in ("log", "erfc"):
        plain = getattr(sys.modules["zuno.trading.measure.options"], name)
        monkeypatch.setattr(f"zuno.trading.measure.options.{name}", lambda x, plain=plain: plain(x) * (1 + 2.0**-52))
    assert await answered(bundle) == before


def test_a_price_is_kept_as_its_venue_wrote_it() -> None:
    written = np.array([80_123.4, 79_999.99, 103_000.1, 0.1, 1_234.56])
    assert round_prices(written).tolist() == written.tolist()
    assert round_prices(np.nextafter(written, np.inf)).tolist() == written.tolist()
    assert round_prices(np.array([1 / 3]))[0] == float(f"{1 / 3:.{PRICE_DIGITS}g}")
    assert not len(round_prices(np.array([])))
