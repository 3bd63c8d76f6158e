"""The mirror image of a market is a market, its own mirror image is the market again, and it is ruled the other way."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import isclose, log
from pathlib import Path
from typing import Any

import pytest

from tests.wire.desk_bundles import PRICE, World, bundle_of, holding
from tests.wire.desk_roles import argued
from tests.wire.fakes.series import MemorySeries
from zuno.kernel.errors import Refused
from zuno.lab.mirror import MirroredSeries, mirror_account, mirror_call, open_mirror
from zuno.lab.model import MirrorDifferenceView
from zuno.markets.feeds import BINANCE, DERIBIT
from zuno.markets.market import Symbol
from zuno.trading.agents.macro_options import BALANCED, USUAL_SKEW
from zuno.trading.measure.data_quality import find_row_fault
from zuno.trading.measure.options import measure_surface
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import Call
from zuno.trading.model.market import Feed, Heartbeat, Side, Timeframe, candles, options
from zuno.trading.ports.series import Batch, Origin

WORLDS = [World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03), World(drift=0.003, lean=0.75, whales=0.5, seed=4)]


async def mirror_of(bundle: Bundle) -> MirroredSeries:
    store = MemorySeries(Origin(True, "SYNTHETIC"))
    await store.write([Batch(block.series, block.rows) for block in bundle.blocks])
    return await open_mirror(store, bundle.as_of)


def mirror_bundle(bundle: Bundle, mirror: MirroredSeries) -> Bundle:
    blocks = tuple(replace(block, rows=mirror.change_rows(block.series, block.rows)) for block in bundle.blocks)
    return replace(bundle, blocks=blocks)


def numbers(row: Any) -> list[float]:
    """Every number in a row, however deep."""
    if isinstance(row, int | float):
        return [float(row)]
    if isinstance(row, tuple | list):
        return [number for part in row for number in numbers(part)]
    return [number for name in getattr(row, "__slots__", ()) for number in numbers(getattr(row, name))]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return bundle_of(WORLDS[0])


@pytest.mark.soak
async def test_a_mirrored_market_is_one_that_can_be_and_mirrored_again_is_the_first(bundle: Bundle) -> None:
    mirror = await mirror_of(bundle)
    for block in bundle.blocks:
        once = mirror.change_rows(block.series, block.rows)
        assert [find_row_fault(block.series, row, None) for row in once] == [None] * len(once)
        if block.series.feed is Feed.OPTIONS:
            continue  # mirrored about what is usual
        twice = mirror.change_rows(block.series, once)
        for row, again in zip(block.rows, twice, strict=True):
            pairs = list(zip(numbers(row), numbers(again), strict=True))
            assert all(isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs), block.series


@pytest.mark.slow
async def test_log_returns_are_negated_and_what_has_no_side_stays(bundle: Bundle) -> None:
    mirror = await mirror_of(bundle)
    series = candles(BINANCE, Symbol("BTCUSDT"), Timeframe.H1)
    rows = bundle.rows(series)
    assert not hasattr(rows, "reason")
    turned = mirror.change_rows(series, rows)
    for place in range(1, 50):
        own = log(rows[-place].close / rows[-place - 1].close)
        assert log(turned[-place].close / turned[-place - 1].close) == pytest.approx(-own, abs=1e-12)
    for block in bundle.blocks:
        if block.series.feed in (Feed.OPEN_INTEREST, Feed.DVOL, Feed.NEWS) or block.series.row is Heartbeat:
            assert mirror.change_rows(block.series, block.rows) == block.rows


@pytest.mark.slow
@pytest.mark.parametrize("skew", [-2.0, 1.5, 6.0])
async def test_skew_and_put_call_ratio_are_mirrored_about_what_is_usual(skew: float) -> None:
    bundle = bundle_of(World(skew=skew))
    mirror = await mirror_of(bundle)
    series = options(DERIBIT, "BTC")
    there, here = (
        measure_surface(rows[-1]) for rows in (bundle.rows(series), mirror.change_rows(series, bundle.rows(series)))
    )
    for a, b, usual in (
        (there.week.skew25, here.week.skew25, USUAL_SKEW),
        (there.put_call_open_interest, here.put_call_open_interest, BALANCED),
    ):
        assert isinstance(a, float)
        assert isinstance(b, float)
        assert b - usual == pytest.approx(usual - a, abs=0.1)
    assert here.week.atm == pytest.approx(there.week.atm, abs=0.3)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
async def test_the_mirrored_market_is_argued_the_other_way_round(world: World) -> None:
    bundle = bundle_of(world)
    there, here = await argued(bundle), await argued(mirror_bundle(bundle, await mirror_of(bundle)))
    assert here.decision.decision is mirror_call(there.decision.decision)
    for name in ("liquidity", "microstructure"):
        assert getattr(here.board, name).stance == -getattr(there.board, name).stance


@pytest.mark.slow
async def test_an_account_is_mirrored_at_the_same_margin(bundle: Bundle) -> None:
    mirror, account = await mirror_of(bundle), holding(Side.LONG, 0.9 * PRICE)
    (own,), (turned,) = account.positions, mirror_account(account, mirror).positions
    assert turned.side is Side.SHORT
    assert turned.margin == pytest.approx(own.margin)
    assert log(turned.entry / mirror.anchor(Symbol("BTCUSDT"))) == pytest.approx(
        -log(own.entry / mirror.anchor(Symbol("BTCUSDT")))
    )


@pytest.mark.slow
async def test_a_mirror_takes_no_rows(bundle: Bundle) -> None:
    mirror = await mirror_of(bundle)
    with pytest.raises(Refused):
        await mirror.write([])
    assert mirror.origin.synthetic
    assert "mirrored" in mirror.origin.label


def test_an_exit_and_a_hold_are_their_own_mirror_images() -> None:
    assert [mirror_call(call) for call in Call] == [Call.SHORT, Call.LONG, Call.HOLD, Call.CANCEL_AND_CLOSE]


def cause(row: MirrorDifferenceView) -> str:
    if "minimum_order" in (row.veto, row.mirrored_veto):
        return "minimum_order"
    return "not opened" if None in (row.ev_pct, row.mirrored_ev_pct) else "ev"


@pytest.mark.soak
async def test_whole_synthetic_markets_are_ruled_the_other_way_round_in_the_mirror(tmp_path: Path) -> None:
    """Of 200 moments 150 have a mirror image, and 148 are mirrored. What differs is small and named: a score of 0.450
    against one of 0.448 at the bound of 0.45, and a SHORT at $286,000, where a lot of Binance risks more than an
    exploration may and Upbit takes the LONG in smaller parts."""
    import asyncio

    from zuno.settings import Settings
    from zuno.wiring.lab import build_study_desk
    from zuno.wiring.recordings import Recordings

    settings = Settings(home=tmp_path)
    desk = build_study_desk(settings, Recordings(settings))
    view = await desk.market.study(200, "1-5", 2, lambda done, total: None, asyncio.Event())
    differences = view.symmetry.differences
    assert view.symmetry.compared >= 150
    assert view.symmetry.mirrored + len(differences) == view.symmetry.compared
    assert (view.symmetry.share or 0.0) >= 0.95
    assert [row for row in differences if not row.small] == []
    assert Counter(cause(row) for row in differences) == {"not opened": 1, "minimum_order": 1}
