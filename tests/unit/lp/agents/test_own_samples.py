"""Our own samples come first: for the fee window where one is near enough, and for what gas is held against."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.wire.debating import feeds_of_sim
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.store.samples import SqliteSamples
from zuno.amm.model import PoolState
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import HexId, Seconds, Wei
from zuno.lp.agents.observe import GAS_SAMPLED, Observer
from zuno.lp.model.ballot import Regime, RiskProfile
from zuno.lp.model.debate import Context, FlowStart, SourceNote
from zuno.lp.model.history import SwapFees
from zuno.lp.ports.samples import GasSample, PoolSample, Samples
from zuno.lp.rules.fee_yield import DAY, WEEK


@pytest.fixture
def chain(tmp_path: Path) -> SimChain:
    return SimChain(SimFile(tmp_path))


class Forgetful(SimChain):
    """A node without past state or events."""

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        raise Unavailable("not kept")

    async def swap_fees(self, pool_id: HexId, since: Seconds) -> SwapFees:
        raise Unavailable("not kept")


@pytest.fixture
async def samples(tmp_path: Path) -> AsyncIterator[SqliteSamples]:
    opened = SqliteSamples(tmp_path)
    yield opened
    await opened.close()


async def seen(chain: SimChain, samples: Samples | None) -> Context:
    start = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
    return await Observer(chain, feeds_of_sim(chain), samples).observe(start)


async def pool_of(chain: SimChain) -> PoolState:
    return (await chain.positions([1])).positions[0].pool


def sample_of(pool: PoolState, *, chain: str = "sim") -> PoolSample:
    return PoolSample(
        chain,
        pool.id,
        pool.block,
        pool.sqrt_price_x96,
        pool.tick,
        pool.liquidity,
        pool.fee_growth_global0_x128,
        pool.fee_growth_global1_x128,
    )


def source(context: Context, feed: str) -> SourceNote | None:
    return next((note for note in context.sources if note.feed.startswith(feed)), None)


async def keep(chain: SimChain, samples: SqliteSamples, *ages: int) -> list[PoolSample]:
    now = await pool_of(chain)
    kept = [sample_of(await chain.pool_at(now.id, Seconds(now.block.timestamp - age))) for age in ages]
    await samples.keep(kept, [], now.block.timestamp)
    return kept


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ages", "used", "label"),
    [
        ((2 * WEEK, WEEK, DAY), 0, "14 d of own samples"),
        ((WEEK, DAY), 0, "7 d of own samples"),
        ((WEEK - 20 * 3_600, DAY), 0, "7 d of own samples"),
        ((WEEK - 22 * 3_600, DAY), 1, "24 h of own samples"),
        ((3 * DAY, DAY + 2 * 3_600), 1, "24 h of own samples"),
    ],
)
async def test_a_sample_that_is_near_opens_the_window(
    chain: SimChain, samples: SqliteSamples, ages: tuple[int, ...], used: int, label: str, tmp_path: Path
) -> None:
    kept, now = await keep(chain, samples, *ages), await pool_of(chain)
    context = await seen(Forgetful(SimFile(tmp_path)), samples)
    fees = context.scenes[0].fees
    assert fees is not None
    assert (fees.label, fees.seconds) == (label, now.block.timestamp - kept[used].block.timestamp)
    assert fees.growth0_x128 == now.fee_growth_global0_x128 - kept[used].fee_growth_global0_x128
    assert fees.growth1_x128 == now.fee_growth_global1_x128 - kept[used].fee_growth_global1_x128
    told = source(context, "fee growth")
    assert told is not None
    assert told.source == label


@pytest.mark.slow
@pytest.mark.parametrize("ages", [(), (3 * DAY,), (DAY - 4 * 3_600,), (WEEK + 22 * 3_600,)])
async def test_without_a_near_one_the_next_source_is_asked(
    chain: SimChain, samples: SqliteSamples, ages: tuple[int, ...]
) -> None:
    await keep(chain, samples, *ages)
    fees = (await seen(chain, samples)).scenes[0].fees
    assert fees is not None
    assert fees.label == "14 d of archive"


@pytest.mark.slow
async def test_another_chains_samples_are_not_ours(chain: SimChain, samples: SqliteSamples) -> None:
    now = await pool_of(chain)
    past = await chain.pool_at(now.id, Seconds(now.block.timestamp - WEEK))
    await samples.keep([sample_of(past, chain="base")], [], now.block.timestamp)
    fees = (await seen(chain, samples)).scenes[0].fees
    assert fees is not None
    assert fees.label == "14 d of archive"


async def test_damaged_samples_cost_their_source_and_nothing_else(chain: SimChain, tmp_path: Path) -> None:
    (tmp_path / "samples.db").write_bytes(b"no database at all, but long enough to be taken for one" * 50)
    broken = SqliteSamples(tmp_path)
    context = await seen(chain, broken)
    fees, gas = context.scenes[0].fees, source(context, "gas samples")
    assert fees is not None
    assert fees.label == "14 d of archive"
    assert gas is not None
    assert "samples.db" in gas.notes[0]


async def keep_gas(chain: SimChain, samples: SqliteSamples, price: int, count: int, age: int = 0) -> None:
    head = await chain.head()
    prices = [GasSample("sim", Seconds(head.timestamp - age - 300 * step), Wei(price)) for step in range(count)]
    await samples.keep([], prices, head.timestamp)


async def test_gas_above_five_times_its_own_median_is_stress(chain: SimChain, samples: SqliteSamples) -> None:
    price = (await chain.gas()).price
    await keep_gas(chain, samples, price // 5 - 1, 99)
    context = await seen(chain, samples)
    scene, told = context.scenes[0], source(context, "gas samples")
    assert scene.regime is Regime.STRESSED
    assert "{gas_spike}" in scene.regime_why
    assert told is not None
    assert (told.source, told.notes) == ("own samples", ("99 of the last 7 days",))


@pytest.mark.slow
async def test_usual_gas_is_none_and_the_note_is_gone(chain: SimChain, samples: SqliteSamples) -> None:
    without = (await seen(chain, None)).scenes[0]
    assert any("gas samples" in note for note in without.regime_notes)
    await keep_gas(chain, samples, (await chain.gas()).price, 9)
    scene = (await seen(chain, samples)).scenes[0]
    assert scene.regime is without.regime
    assert not any("gas samples" in note for note in scene.regime_notes)


async def test_gas_of_another_week_does_not_count(chain: SimChain, samples: SqliteSamples) -> None:
    await keep_gas(chain, samples, 1, 9, age=GAS_SAMPLED + 1)
    scene = (await seen(chain, samples)).scenes[0]
    assert any("gas samples" in note for note in scene.regime_notes)


@pytest.mark.slow
async def test_what_was_sampled_is_frozen_in_the_context(chain: SimChain, samples: SqliteSamples) -> None:
    """A replay reads these bytes, never the samples again."""
    await keep(chain, samples, WEEK)
    context = await seen(chain, samples)
    assert Context.model_validate(decode_canonical(canonical(context))) == context
