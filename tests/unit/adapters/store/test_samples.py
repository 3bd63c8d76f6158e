"""Our own samples: what goes in comes out, and forty days of them stay a small file."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from zuno.adapters.store.samples import BUCKET, DAY, KEPT, SqliteSamples
from zuno.amm.model import Block
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import HexId, Liquidity, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.ports.samples import GasSample, PoolSample

NOW = Seconds(1_800_000_000)
POOL, OTHER = HexId("0x" + "77" * 32), HexId("0x" + "88" * 32)
MOST = 2**256 - 1


def sample(at: int = NOW, pool: HexId = POOL, chain: str = "base", growth: int = 5) -> PoolSample:
    block = Block(at // 2, HexId(f"0x{at:064x}"), Seconds(at))
    return PoolSample(chain, pool, block, SqrtPriceX96(2**160 - 1), Tick(-887_272), Liquidity(2**128 - 1), growth, MOST)


def gas(at: int = NOW, price: int = 9, chain: str = "base") -> GasSample:
    return GasSample(chain, Seconds(at), Wei(price))


@pytest.fixture
async def samples(tmp_path: Path) -> AsyncIterator[SqliteSamples]:
    opened = SqliteSamples(tmp_path)
    yield opened
    await opened.close()


async def all_pools(samples: SqliteSamples, chain: str = "base") -> list[int]:
    return [one.block.timestamp for one in await samples.pools(chain, POOL, Seconds(0), Seconds(2**40))]


async def test_reading_before_anything_was_kept_makes_nothing(samples: SqliteSamples, tmp_path: Path) -> None:
    assert await samples.pools("base", POOL, Seconds(0), NOW) == ()
    assert await samples.gas("base", Seconds(0), NOW) == ()
    await samples.keep([], [], NOW)
    assert not (tmp_path / "samples.db").exists()


async def test_what_goes_in_comes_out_to_the_last_bit(samples: SqliteSamples, tmp_path: Path) -> None:
    kept = [sample(NOW - 60, growth=MOST), sample(NOW)]
    await samples.keep([kept[1], kept[0], sample(pool=OTHER), sample(chain="arbitrum")], [gas(price=2**200)], NOW)
    assert await samples.pools("base", POOL, Seconds(NOW - 60), NOW) == tuple(kept)
    assert await samples.pools("base", POOL, Seconds(NOW - 59), NOW) == (kept[1],)
    assert await samples.pools("base", POOL, Seconds(NOW - 60), Seconds(NOW - 1)) == (kept[0],)
    assert await samples.gas("base", NOW, NOW) == (gas(price=2**200),)
    assert stat.S_IMODE((tmp_path / "samples.db").stat().st_mode) == 0o600


async def test_they_outlive_the_process(samples: SqliteSamples, tmp_path: Path) -> None:
    await samples.keep([sample()], [gas()], NOW)
    await samples.close()
    again = SqliteSamples(tmp_path)
    assert await again.pools("base", POOL, NOW, NOW) == (sample(),)
    await again.close()


async def test_a_moment_read_again_is_replaced(samples: SqliteSamples) -> None:
    await samples.keep([sample(growth=1)], [gas(price=1)], NOW)
    other = replace(sample(growth=2), block=Block(1, HexId("0x" + "99" * 32), NOW))
    await samples.keep([other], [gas(price=2)], NOW)
    assert await samples.pools("base", POOL, NOW, NOW) == (other,)
    assert await samples.gas("base", NOW, NOW) == (gas(price=2),)


async def test_gas_counts_once_in_five_minutes(samples: SqliteSamples) -> None:
    start = NOW - NOW % BUCKET
    for second in range(0, 2 * BUCKET, 60):
        await samples.keep([], [gas(start + second, price=second)], NOW)
    assert [one.price for one in await samples.gas("base", Seconds(0), Seconds(NOW + DAY))] == [0, BUCKET]


async def test_beyond_a_day_one_in_five_minutes_stays_and_beyond_forty_days_none(samples: SqliteSamples) -> None:
    start = NOW - NOW % BUCKET
    for second in range(0, 3 * BUCKET, 60):
        at = Seconds(start + second)
        await samples.keep([sample(at)], [gas(at)], at)
    assert len(await all_pools(samples)) == 15
    just_a_day = Seconds(start + DAY)
    await samples.keep([sample(just_a_day)], [], just_a_day)
    assert len(await all_pools(samples)) == 16
    later = Seconds(start + 2 * DAY)
    await samples.keep([sample(later)], [], later)
    assert await all_pools(samples) == [start, start + BUCKET, start + 2 * BUCKET, just_a_day, later]
    much_later = Seconds(start + KEPT + BUCKET)
    await samples.keep([sample(much_later)], [], much_later)
    # The first is older than forty days, the second just as old.
    assert await all_pools(samples) == [start + BUCKET, start + 2 * BUCKET, just_a_day, later, much_later]
    assert [one.at for one in await samples.gas("base", Seconds(0), much_later)] == [start + BUCKET, start + 2 * BUCKET]


async def test_age_is_of_the_reading_not_of_a_local_worlds_own_clock(samples: SqliteSamples) -> None:
    await samples.keep([sample(1_000, chain="sim")], [], NOW)
    await samples.keep([sample()], [], Seconds(NOW + DAY))
    assert await all_pools(samples, "sim") == [1_000]


async def test_tidying_leaves_other_pools_alone(samples: SqliteSamples) -> None:
    start = NOW - NOW % BUCKET
    at = Seconds(start + 60)
    await samples.keep([sample(start), sample(at, pool=OTHER), sample(at, chain="arbitrum")], [], NOW)
    late = Seconds(NOW + 2 * DAY)
    await samples.keep([sample(late)], [], late)
    assert len(await samples.pools("base", OTHER, Seconds(0), late)) == 1
    assert len(await all_pools(samples, "arbitrum")) == 1


async def test_a_damaged_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "samples.db").write_bytes(b"this is no database, and it is long enough to be looked at" * 100)
    broken = SqliteSamples(tmp_path)
    with pytest.raises(Broken, match=r"samples\.db"):
        await broken.pools("base", POOL, Seconds(0), NOW)
    with pytest.raises(Broken):
        await broken.keep([sample()], [], NOW)
    await broken.close()


async def test_a_row_that_no_sample_makes_is_told_of(samples: SqliteSamples, tmp_path: Path) -> None:
    await samples.keep([sample()], [gas()], NOW)
    with sqlite3.connect(tmp_path / "samples.db") as connection:
        connection.execute("UPDATE pools SET growth0 = 'many'")
        connection.execute("UPDATE gas SET price = ''")
    connection.close()
    with pytest.raises(Broken):
        await samples.pools("base", POOL, NOW, NOW)
    with pytest.raises(Broken):
        await samples.gas("base", NOW, NOW)


async def test_a_place_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    nowhere = SqliteSamples(tmp_path / "file")
    with pytest.raises(Unavailable):
        await nowhere.keep([sample()], [], NOW)
