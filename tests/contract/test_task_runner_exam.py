"""Whatever tasks are spread over keeps the promises of `TaskRunner`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.lab.trading.test_trade_lab import SPAN, write_hours
from tests.wire.pool_minutes import draw_minutes, write_minutes
from tests.wire.tasks import count, fail, never_end
from zuno.adapters.store.report_files import FolderOfReports
from zuno.adapters.worker_processes import DaskCluster, TaskRunner, run_in_processes
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.kernel.view import write_document
from zuno.lab.no_edge_worlds import WorldKind
from zuno.lab.noedge import WorldResult, WorldsPlan
from zuno.lab.reports import LabReports
from zuno.lab.trading.question import read_question
from zuno.settings import Settings
from zuno.wiring.lab import study_worlds_plan
from zuno.wiring.lp_lab import build_lp_lab
from zuno.wiring.recordings import Recordings
from zuno.wiring.trade_lab import build_trade_lab


@pytest.fixture(params=["one process", "two processes", pytest.param("dask", marks=pytest.mark.soak)])
async def runner(request: pytest.FixtureRequest) -> AsyncIterator[tuple[TaskRunner, int]]:
    if request.param != "dask":
        yield run_in_processes, 1 if request.param == "one process" else 2
        return
    distributed = pytest.importorskip("distributed", reason="needs the extra: cluster")
    async with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, asynchronous=True
    ) as cluster:
        yield DaskCluster(cluster.scheduler_address), 2


Runner = tuple[TaskRunner, int]


async def test_every_result_is_told_once(runner: Runner) -> None:
    run, workers = runner
    told: list[tuple[int, int]] = []
    await run(count, (3, 1, 2, 1), workers, told.append, asyncio.Event())
    assert sorted(told) == [(1, 0), (1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]


async def test_tasks_that_are_still_being_planned_are_waited_for(runner: Runner) -> None:
    run, workers = runner
    told: list[tuple[int, int]] = []

    async def plan() -> tuple[int, ...]:
        await asyncio.sleep(0.01)
        return 1, 2, 1

    await run(count, plan(), workers, told.append, asyncio.Event())
    assert sorted(told) == [(1, 0), (1, 0), (2, 0), (2, 1)]

    async def fail_to_plan() -> tuple[int, ...]:
        raise Refused("no")

    with pytest.raises(Refused):
        await run(count, fail_to_plan(), workers, told.append, asyncio.Event())


async def test_what_a_task_raises_is_raised(runner: Runner) -> None:
    run, workers = runner
    with pytest.raises(Refused):
        await run(fail, (1, 2), workers, lambda result: None, asyncio.Event())


async def test_once_stopped_the_rest_is_given_up(runner: Runner) -> None:
    run, workers = runner
    stop = asyncio.Event()
    told: list[int] = []

    def hear(result: int) -> None:
        told.append(result)
        stop.set()

    await run(never_end, (0, 1), workers, hear, stop)
    assert told == [0]


def test_an_address_that_is_none() -> None:
    with pytest.raises(UsageError):
        DaskCluster("localhost")


@pytest.mark.soak
async def test_a_cluster_that_is_away() -> None:
    pytest.importorskip("distributed", reason="needs the extra: cluster")
    with pytest.raises(Unavailable):
        await DaskCluster("tcp://127.0.0.1:9")(count, (1,), 1, lambda result: None, asyncio.Event())


@pytest.mark.soak
async def test_a_study_has_the_same_bytes_whoever_works(runner: Runner) -> None:
    """Two worlds without an edge, over one process, two, and a cluster."""
    run, workers = runner
    told: list[WorldResult] = []
    plans = [WorldsPlan(WorldKind.WALK, (seed,), None) for seed in (5, 6)]
    await run(study_worlds_plan, plans, workers, told.append, asyncio.Event())
    told.sort(key=lambda result: result.seed)
    assert digest(b"".join(write_document(result).encode() for result in told))[:12] == "d33cc1a2ffa4"


@pytest.mark.soak
async def test_a_backtest_and_a_sweep_leave_the_same_bytes_whoever_works(runner: Runner, tmp_path: Path) -> None:
    """Reports, their pages and the trials of a home, against those of one process."""
    candles = write_hours(tmp_path / "candles")
    (tmp_path / "pool").mkdir()
    minutes = write_minutes(tmp_path / "pool", draw_minutes(60 * (168 + 25)))
    question = read_question(str(candles), "BTCUSDT", *SPAN, "debate,geometry,hold,sma,random")

    async def fill_home(home: Path, run: TaskRunner, workers: int) -> dict[str, bytes]:
        settings, reports = Settings(home=home), LabReports(FolderOfReports(home / "lab"))
        trade = build_trade_lab(settings, Recordings(settings), reports, run)
        await trade.compare(question, workers, lambda done, total: None, asyncio.Event())
        sweep = build_lp_lab(home, reports, run).sweep
        await sweep.sweep(str(minutes), 50, 10_000, workers, lambda done, total: None, asyncio.Event())
        return {path.name: path.read_bytes() for path in (home / "lab").iterdir()}

    alone = await fill_home(tmp_path / "alone", run_in_processes, 1)
    assert sorted(name.partition("-")[0] for name in alone if name.endswith("html")) == ["sweep", "trade"]
    assert await fill_home(tmp_path / "spread", *runner) == alone
