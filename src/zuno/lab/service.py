"""The lab as a person asks it: a study of what the trading desk rules over synthetic markets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.lab import statistics
from zuno.lab.model import MomentResult, StudyView
from zuno.lab.workers import Progress, check_workers
from zuno.trading.model.cycle import EDITION, Call

if TYPE_CHECKING:
    from zuno.lab.checks import DeskChecks
    from zuno.lab.memory_service import MemoryStudy
    from zuno.lab.reports import LabReports
    from zuno.lab.trading.service import TradeLab

P = TypeVar("P")
M = TypeVar("M")
V = TypeVar("V")
MOST_MOMENTS: Final = 20_000
MOST_SEEDS: Final = 1_000
LARGEST_SEED: Final = 2**63 - 1
_SEEDS: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")


@dataclass(frozen=True, slots=True)
class MarketPlan:
    """How many moments of which market are studied."""

    seed: int
    moments: int


RunTasks: TypeAlias = Callable[[Sequence[P], int, Callable[[M], None], asyncio.Event], Awaitable[None]]
"""Does these tasks in so many processes, tells each result, and returns early once the event is set."""


async def collect_results(
    run: RunTasks[P, M],
    plans: Sequence[P],
    workers: int,
    asked: int,
    order: Callable[[M], Any],
    tell: Progress,
    stop: asyncio.Event,
    done: Sequence[M] = (),
    keep: Callable[[M], None] = lambda result: None,
) -> tuple[list[M], bool]:
    """Every result in this order, for workers answer in any, and whether Ctrl-C came before the end. `done`: what an
    earlier run had found; `keep` is told what this one finds."""
    found = list(done)

    def hear(result: M) -> None:
        found.append(result)
        keep(result)
        tell(len(found), asked)

    tell(len(found), asked)
    if not stop.is_set():
        await run(plans, workers, hear, stop)
    found.sort(key=order)
    return found, stop.is_set() and len(found) < asked


class _StudiedMoment(Protocol):
    @property
    def seed(self) -> int: ...
    @property
    def number(self) -> int: ...


S = TypeVar("S", bound=_StudiedMoment)


BuildView: TypeAlias = Callable[[Sequence[S], Sequence[MarketPlan], bool], V]
"""The last: whether the study was stopped before its end."""


class MarketStudy(Generic[S, V]):
    """Moments of synthetic markets, and what they say together."""

    def __init__(self, run_markets: RunTasks[MarketPlan, S], build: BuildView[S, V]) -> None:
        self._run_markets = run_markets
        self._build = build

    async def study(self, moments: int, seeds: str, workers: int, tell: Progress, stop: asyncio.Event) -> V:
        """Look at so many moments of these markets. Once `stop` is set, what is known by then is the answer."""
        check_workers(workers)
        plans = plan_markets(moments, parse_seeds(seeds))
        found, stopped = await collect_results(
            self._run_markets, plans, workers, moments, lambda moment: (moment.seed, moment.number), tell, stop
        )
        return self._build(found, plans, stopped)


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


def parse_seeds(text: str) -> tuple[int, ...]:
    """`1-10`, `3` or `1,4,7-9`; each once, in ascending order."""
    found: set[int] = set()
    for part in text.split(","):
        match = _SEEDS.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"{plain_text(text, 40)!r} names no seeds; write 1-10 or 1,4,7.")
        first = int(match[1])
        last = int(match[2] or match[1])
        if last < first or last > LARGEST_SEED or last - first >= MOST_SEEDS:
            raise UsageError(f"{plain_text(part, 40)!r} is no range of at most {MOST_SEEDS} seeds.")
        found.update(range(first, last + 1))
    if len(found) > MOST_SEEDS:
        raise UsageError(f"{len(found)} seeds are too many; {MOST_SEEDS} is the most.")
    return tuple(sorted(found))


def plan_markets(moments: int, seeds: Sequence[int]) -> tuple[MarketPlan, ...]:
    """As many moments of each market as of any other; the first markets get what does not divide."""
    if not len(seeds) <= moments <= MOST_MOMENTS:
        raise UsageError(
            f"--moments is {moments}; give a whole number from {len(seeds)}, one a seed, to {MOST_MOMENTS}."
        )
    each, left = divmod(moments, len(seeds))
    return tuple(MarketPlan(seed, each + (place < left)) for place, seed in enumerate(seeds))


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


def describe_markets(seeds: Sequence[int], asked: int, moments: int) -> dict[str, Any]:
    """What every view of synthetic markets says of them."""
    return {
        "synthetic": True,
        "origin": f"SYNTHETIC seeds {format_seeds(seeds)}",
        "edition": EDITION,
        "seeds": tuple(seeds),
        "asked": asked,
        "moments": moments,
    }


def format_seeds(seeds: Sequence[int]) -> str:
    """Runs of seeds by their ends: 1-10, 14."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1][1:] = [seed]
        else:
            runs.append([seed])
    return ", ".join("-".join(map(str, run)) for run in runs)
