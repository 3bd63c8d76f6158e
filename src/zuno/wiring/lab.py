"""Wire the lab: synthetic markets in folders that are removed afterwards, cycles without a model over them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.task_runner import TaskRunner
    from zuno.kernel.units import Millis
    from zuno.lab.lp.service import LpLab
    from zuno.lab.market_study import MarketPlan
    from zuno.lab.model import MomentResult
    from zuno.lab.reports import LabReports
    from zuno.lab.rulings import OpenCycles
    from zuno.lab.service import StudyDesk
    from zuno.trading.model.account import Account
    from zuno.trading.model.bundle import Slot
    from zuno.trading.ports.series import SeriesStore
    from zuno.trading.service.runs import Cycles
    from zuno.wiring.recordings import Recordings

CODE = "study"
"""What the journal of a study, which is forgotten, names as its code."""


def build_study_desk(settings: Settings, recordings: Recordings, cluster: str | None = None) -> StudyDesk:
    """`cluster`: the address of a Dask cluster that does the work; else processes of this machine do."""
    from zuno.lab.market_study import MarketStudy
    from zuno.lab.service import StudyDesk, build_view
    from zuno.wiring.desk_checks import build_desk_checks
    from zuno.wiring.memory_lab import build_memory_study
    from zuno.wiring.trade_lab import build_trade_lab

    reports = open_reports(settings.home)
    run = choose_runner(cluster)
    trade = build_trade_lab(settings, recordings, reports, run)
    checks = build_desk_checks(reports, recordings.own, run)
    study = MarketStudy(partial(run, study_plan), build_view)
    return StudyDesk(study, build_memory_study(run), reports, trade, checks)


def open_lp_lab(home: Path, cluster: str | None = None) -> LpLab:
    """On its own: nothing of the trading desk is loaded for it."""
    from zuno.wiring.lp_lab import build_lp_lab

    return build_lp_lab(home, open_reports(home), choose_runner(cluster))


def open_reports(home: Path) -> LabReports:
    from zuno.adapters.store.report_files import FolderOfReports
    from zuno.lab.reports import LabReports

    return LabReports(FolderOfReports(home / "lab"))


def choose_runner(cluster: str | None = None) -> TaskRunner:
    from zuno.adapters.dask_cluster import DaskCluster
    from zuno.adapters.worker_processes import run_in_processes

    return run_in_processes if cluster is None else DaskCluster(cluster)


async def study_plan(plan: MarketPlan) -> AsyncIterator[MomentResult]:
    """One market: loaded once, in a folder of its own that goes with it."""
    from zuno.lab.rulings import study_market
    from zuno.wiring.cycles import disable_tracing
    from zuno.wiring.desk_checks import open_market

    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-study-") as name:
        folder = Path(name)
        market = await open_market(plan.seed, folder)
        try:
            async for result in study_market(market, plan.moments, cycles_opener(folder)):
                yield result
        finally:
            await market.store.close()


def cycles_opener(folder: Path) -> OpenCycles:
    """Cycles that keep nothing: a journal in memory for each, and the folder for their checkpoints."""
    from zuno.adapters.account.closed_trades import MemoryTradeRecord
    from zuno.adapters.chart.painter import MatplotlibPainter
    from zuno.adapters.checkpoints.sqlite import sqlite_checkpoints
    from zuno.adapters.file_lock import symbol_lock
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.store.memory import MemoryStore
    from zuno.journal.journal import ChainedJournal
    from zuno.journal.port import Journal
    from zuno.trading.model.account import account_slots
    from zuno.trading.service.features import TradingDesk
    from zuno.trading.service.runs import Cycles, RunBackends
    from zuno.wiring.cycles import build_run_context
    from zuno.wiring.models import Models

    key = KeyFile(folder / "keys")
    models = Models(Settings(home=folder, deterministic=True))

    def open_cycles(store: SeriesStore, account: Account, at: Millis) -> Cycles:
        journal = ChainedJournal(MemoryStore(), key, code=lambda: CODE, now=lambda: at)

        async def open_journal() -> Journal:
            return journal

        async def read_slots(origin: str, before: Millis, present: bool, _: Account | None) -> Sequence[Slot]:
            return account_slots(account, before, CODE)

        async def refuse(*_: Any) -> Any:
            raise NotImplementedError("a study is not replayed")

        backends = RunBackends(
            journal=open_journal,
            held=read_slots,
            record=MemoryTradeRecord(),
            model_context=lambda notebook: build_run_context(models, notebook, models.registry()),
            checkpoints=lambda: sqlite_checkpoints(folder / "cycles.db"),
            lease=lambda symbol: symbol_lock(folder, symbol),
            rehearse=refuse,
            now=lambda: at,
            random=os.urandom,
            code=lambda: CODE,
        )
        return Cycles(TradingDesk(store, open_journal, MatplotlibPainter()), backends)

    return open_cycles
