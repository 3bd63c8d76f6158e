"""The lab as a person asks it: a study of what the trading desk rules over synthetic markets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zuno.lab import statistics
from zuno.lab.market_study import MarketPlan, MarketStudy, RunTasks, describe_markets
from zuno.lab.model import MomentResult, StudyView
from zuno.trading.model.cycle import Call

if TYPE_CHECKING:
    from zuno.lab.checks import DeskChecks
    from zuno.lab.memory_service import MemoryStudy
    from zuno.lab.reports import LabReports
    from zuno.lab.trading.service import TradeLab


class StudyDesk:
    """Studies; of the home it holds the reports alone."""

    def __init__(
        self,
        run_markets: RunTasks[MarketPlan, MomentResult],
        memory: MemoryStudy | None = None,
        reports: LabReports | None = None,
        trade: TradeLab | None = None,
        checks: DeskChecks | None = None,
    ) -> None:
        """`memory`: the study of whether memory helps. `trade`: backtests of the desk. `reports`: what was
        found. `checks`: of what the desk must not do."""
        self.study = MarketStudy(run_markets, build_view).study
        self.memory = memory
        self.reports = reports
        self.trade = trade
        self.checks = checks


def build_view(results: Sequence[MomentResult], plans: Sequence[MarketPlan], stopped: bool) -> StudyView:
    total = len(results)
    judged = total >= statistics.MIN_MOMENTS and not stopped
    missed = tuple(statistics.failed_criteria(results)) if judged else ()
    held = [result for result in results if result.holding in ("long", "short")]
    return StudyView(
        ok=not missed,
        stopped=stopped,
        **describe_markets([plan.seed for plan in plans], sum(plan.moments for plan in plans), total),
        judged=judged,
        missed=missed,
        decisions=statistics.count_names((result.own.decision for result in results), total),
        rulings=statistics.count_names((result.own.ruling for result in results), total),
        exploration=sum(result.exploration for result in results),
        vetoes=statistics.count_names((result.own.veto for result in results if result.own.veto), total),
        regimes=statistics.count_names((result.regime for result in results), total),
        triage=statistics.count_names((name for result in results for name in result.anomalies), total),
        rules=statistics.count_rules(results),
        kinds=statistics.count_kinds(results),
        open_positions=len(held),
        closed=sum(result.own.ruling == Call.CANCEL_AND_CLOSE for result in held),
        symmetry=statistics.compare_sides(results),
        calibration=statistics.calibrate(results),
        power=statistics.state_power(results),
    )
