"""Which pool pays, over a whole chain: few requests, nothing read twice, going on after a kill, and every odd pool."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import CHECKOUT
from tests.wire.commands import Zuno
from tests.wire.many_pools import (
    BLOCK_SECONDS,
    DAY,
    HEAD,
    VARIANCE,
    MadePool,
    PoolChain,
    odd_pools,
    plain_pools,
    rank_pools,
)
from tests.wire.many_wallets import serve_chain
from zuno.lp.rules.pool_rank import WORTH
from zuno.lp.service.pool_ranking import CHUNK, RankedPoolView

MOST_REQUESTS = 15
MARKS = 31


@pytest.fixture(scope="module")
def plain() -> list[MadePool]:
    return plain_pools(200)


@pytest.fixture
def chain(plain: list[MadePool]) -> PoolChain:
    return PoolChain(plain)


@pytest.fixture
def url(chain: PoolChain) -> Iterator[str]:
    with serve_chain(chain) as address:
        yield address


async def test_200_pools_take_few_requests_and_nothing_is_read_twice(
    chain: PoolChain, url: str, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    view, requests = await rank_pools(url, tmp_path, tell=lambda *far: told.append(far))
    assert told == [(50, 200), (100, 200), (150, 200), (200, 200)]
    assert (view.ranked, len(view.pools), {row.pays for row in view.pools}) == (200, 200, {False})
    lows = [row.ci80[0] for row in view.pools if row.ci80]
    assert lows == sorted(lows, reverse=True)
    assert requests <= MOST_REQUESTS * 200 // CHUNK
    assert len(chain.past) == MARKS * 200 // CHUNK
    chain.past.clear()
    again, _ = await rank_pools(url, tmp_path)
    assert chain.past == []
    assert again.pools == view.pools


async def test_the_next_day_only_that_day_is_read(plain: list[MadePool], tmp_path: Path) -> None:
    chain = PoolChain(plain[:60])
    with serve_chain(chain) as url:
        chain.head = HEAD - DAY // BLOCK_SECONDS
        before, _ = await rank_pools(url, tmp_path)
        chain.head, chain.past = HEAD, []
        after, _ = await rank_pools(url, tmp_path)
        assert len(chain.past) == 2 * 2  # both ends of the day, for two chunks
        fresh, _ = await rank_pools(url, tmp_path / "other")
    assert after.until == before.until + DAY
    assert [row.pool.id for row in after.pools] == [row.pool.id for row in fresh.pools]
    for kept, read in zip(after.pools, fresh.pools, strict=True):
        assert kept == read


async def test_a_kill_in_the_middle_costs_no_finished_chunk(chain: PoolChain, url: str, tmp_path: Path) -> None:
    rank_and_kill(url, tmp_path)
    assert len(chain.past) == 2 * MARKS
    chain.past.clear()
    view, _ = await rank_pools(url, tmp_path)
    assert view.ranked == 200
    assert len(chain.past) == 2 * MARKS


def rank_and_kill(url: str, home: Path) -> None:
    """A process that is killed once it has read a hundred pools."""
    words = [sys.executable, "-m", "tests.wire.many_pools", url, str(home), "100"]
    with subprocess.Popen(words, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "100\n"
        killed.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("archive", [True, False])
async def test_every_odd_pool_has_its_reason(archive: bool, tmp_path: Path) -> None:
    odd = odd_pools()
    chain = PoolChain([*odd.values(), *plain_pools(3)], archive=archive)
    with serve_chain(chain) as url:
        view, requests = await rank_pools(url, tmp_path)
    rows = {name: next(row for row in view.pools if row.pool.id == pool.id) for name, pool in odd.items()}
    assert {name: row.not_ranked for name, row in rows.items()} == {
        "pays": None,
        "hooked": None,
        "own": None,
        "idle": "no swaps for a day",
        "dynamic": "dynamic fee",
        "sharing": "hook may take a share",
        "nought": "odd decimals",
        "thirty": "odd decimals",
        "young": "under 14 days",
        "still": "no reference price",
    }
    assert (view.ranked, requests <= MOST_REQUESTS + 6) == (6, True)
    assert {name for name, row in rows.items() if row.pays is not None} == {"pays", "hooked", "own"}
    assert rows["own"].measured_by == "the pool's own price"
    assert rows["pays"].pays
    assert not rows["hooked"].pays
    assert check_sums(rows["pays"]) == pytest.approx(1.6, rel=0.05)
    assert rows["dynamic"].fees_per10k7d is not None
    assert rows["dynamic"].volume_usd7d is None
    assert (rows["young"].age_days or 30) <= 6
    assert rows["pays"].age_days == 30
    text = view.to_document().headline.text
    assert "2 of 6" in text


def check_sums(row: RankedPoolView) -> float:
    """The LVR of a week by the variance of the reference; the fees beside it."""
    assert row.fees_per10k7d is not None
    assert row.lvr_per10k7d is not None
    assert row.lvr_per10k7d == pytest.approx(10_000 * 7 * VARIANCE / 4 / WORTH, rel=0.01)
    return row.fees_per10k7d / row.lvr_per10k7d


async def test_a_node_that_keeps_no_past_leaves_pools_unread(tmp_path: Path) -> None:
    chain = PoolChain(plain_pools(3), archive=False)
    chain.keeps_events = False
    with serve_chain(chain) as url:
        view, _ = await rank_pools(url, tmp_path)
        assert (view.ranked, {row.not_ranked for row in view.pools}) == (0, {"could not be read"})
        assert view.notes
        chain.keeps_events = True
        again, _ = await rank_pools(url, tmp_path)
    assert again.ranked == 3


def test_sim_has_two_pools_that_pay_and_one_that_does_not(zuno: Zuno) -> None:
    ran = zuno("lp", "pools", "--rank", "--json")
    rows = [(row["pool"]["label"], row["pays"]) for row in ran.document["pools"]]
    assert rows == [("WETH/USDC 0.05 %", True), ("WETH/USDC 0.30 %", True), ("ETH/USDC 0.30 %", False)]
    assert ran.document["ranked"] == 3
    first = ran.document["pools"][0]
    assert first["ci80"][0] < first["feesOverLvr"] < first["ci80"][1]
    assert all(first[name] > 0 for name in ("feesPer10k7d", "lvrPer10k7d", "feesPer10k30d", "lvrPer10k30d", "depthUsd"))
    assert (first["notRanked"], first["measuredBy"], first["ageDays"]) == (None, "seed", 30)
    larger = zuno("lp", "pools", "WETH/USDC", "--rank", "--amount", "1,000,000", "--json").document
    assert larger["ranked"] == len(larger["pools"]) == 2  # ETH is also its wrapper, WETH is not its coin
    assert larger["pools"][0]["dilution"] > 10 * first["dilution"]
    assert zuno("lp", "pools", "usdc/ETH", "--rank", "--json").document["ranked"] == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--rank", "DOGE"], 3),
        (["--rank", "ETH/DAI"], 3),
        (["--rank", "0x" + "12" * 20], 3),
        (["--rank", "ETH/WETH"], 3),
        (["--rank", "--amount", "0"], 2),
        (["--rank", "--amount", "much"], 2),
        (["--rank", "ETH/"], 2),
        (["ETH"], 2),
        (["--amount", "5"], 2),
    ],
)
def test_bad_words_are_refused(zuno: Zuno, words: list[str], code: int) -> None:
    assert zuno("lp", "pools", *words).code == code
