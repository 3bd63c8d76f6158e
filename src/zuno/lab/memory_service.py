"""The study of memory: arms side by side, and paired intervals of their differences."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import pstdev
from typing import Final, TypeAlias

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from zuno.kernel.errors import UsageError
from zuno.kernel.view import View
from zuno.lab.comparisons import DRAWS, POWER_Z
from zuno.lab.market_study import collect_results, describe_markets, parse_seeds
from zuno.lab.memory_study import Arm, MemoryMoment, World
from zuno.lab.model import MarketStudyView, describe_study, table_of, warn_partial
from zuno.lab.workers import Progress, RunTasks, check_workers
from zuno.present.document import Block, Document, document, section, table
from zuno.present.values import count, number, share

LEAST_OUTCOMES: Final = 50
"""Outcomes of each of two arms, below which no verdict on them is given."""
MOST_MARKETS: Final = 200
PAIRS: Final = (
    (Arm.ON, Arm.OFF),
    (Arm.ON, Arm.RECENT),
    (Arm.ON, Arm.SHUFFLED),
    (Arm.RECENT, Arm.OFF),
    (Arm.SHUFFLED, Arm.OFF),
    (Arm.LESSONS, Arm.OFF),
)
CRITERIA: Final = (
    (World.PLANTED, Arm.ON, Arm.OFF, "better"),
    (World.PLANTED, Arm.ON, Arm.RECENT, "better"),
    (World.NO_EDGE, Arm.ON, Arm.OFF, "no difference"),
)
"""What is asked of memory."""
TOO_FEW: Final = "too few outcomes"
Table: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    seed: int
    world: World
    moments: int
    """How many symbols at moments are ruled."""


class ArmView(View):
    """What one arm traded in one world."""

    arm: str
    trades: int
    failing_trades: int
    paying_trades: int
    """In the setups of that name, which mean something in the planted world alone."""
    hit_rate: float | None
    mean_r: float | None


class IntervalView(View):
    difference: float
    low: float
    high: float
    """The 95 % interval of a paired bootstrap over days."""
    detectable: float
    """The difference that would have been seen in four of five such studies: 2.8 standard errors."""


class PairView(View):
    """The first arm less the second."""

    first: str
    second: str
    hit_rate: IntervalView | None
    r: IntervalView | None
    verdict: str
    """By R: better, worse, no difference; `too few outcomes` under 50 of either arm."""


class WorldView(View):
    world: str
    moments: int
    arms: tuple[ArmView, ...]
    pairs: tuple[PairView, ...]


class MemoryStudyView(MarketStudyView):
    """`ok`: no bar was missed. `judged`: every bar has outcomes enough, and the study was not stopped."""

    worlds: tuple[WorldView, ...]

    def to_document(self) -> Document:
        return document(
            describe_study(self),
            *(
                section(f"{world.world}, {world.moments:,} moments", _arm_table(world), _pair_table(world))
                for world in self.worlds
            ),
            self.list_bars("a whole study with 50 outcomes of each arm"),
            urgent=warn_partial(self),
        )


def _arm_table(world: WorldView) -> Block:
    return table_of(
        world.arms,
        {
            "recall": lambda arm: arm.arm,
            "trades": lambda arm: count(arm.trades),
            "failing setup": lambda arm: count(arm.failing_trades),
            "paying setup": lambda arm: count(arm.paying_trades),
            "hit rate": lambda arm: share(arm.hit_rate),
            "mean R": lambda arm: number(arm.mean_r, 3, signed=True),
        },
    )


def _pair_table(world: WorldView) -> Block:
    return table(
        ("difference", "hit rate", "95 %", "R", "95 % of it", "R seen at 80 %", "verdict by R"),
        [
            (
                f"{pair.first} less {pair.second}",
                "" if (hit := pair.hit_rate) is None else share(hit.difference, signed=True),
                "" if hit is None else f"{100 * hit.low:+.1f} % to {100 * hit.high:+.1f} %",
                "" if (r := pair.r) is None else number(r.difference, 3, signed=True),
                "" if r is None else f"{r.low:+.3f} to {r.high:+.3f}",
                "" if r is None else number(r.detectable, 3),
                pair.verdict,
            )
            for pair in world.pairs
        ],
        spare=("R seen at 80 %", "95 %"),
    )


@dataclass(frozen=True, slots=True)
class MemoryStudy:
    """Nothing is read from a home and nothing is written there."""

    run_markets: RunTasks[MemoryPlan, MemoryMoment]
    count_moments: Callable[[int], int]
    """Of the market of a seed."""

    async def study(self, seeds: str, workers: int, tell: Progress, stop: asyncio.Event) -> MemoryStudyView:
        """Once `stop` is set, what is known by then is the answer."""
        check_workers(workers)
        named = parse_seeds(seeds)
        if 2 * len(named) > MOST_MARKETS:
            raise UsageError(f"{len(named)} seeds are too many; {MOST_MARKETS // 2} is the most.")
        plans = [MemoryPlan(seed, world, self.count_moments(seed)) for seed in named for world in World]
        asked = sum(plan.moments for plan in plans)
        results, stopped = await collect_results(
            self.run_markets, plans, workers, asked, attrgetter("world", "seed", "number", "symbol"), tell, stop
        )
        return build_memory_view(results, named, asked, stopped=stopped)


def build_memory_view(
    moments: Sequence[MemoryMoment], seeds: Sequence[int], asked: int, *, stopped: bool
) -> MemoryStudyView:
    worlds = tuple(_world_view(world, [each for each in moments if each.world == world.value]) for world in World)
    verdicts = {(view.world, pair.first, pair.second): pair.verdict for view in worlds for pair in view.pairs}
    judged = not stopped and all(verdicts[world, first, second] != TOO_FEW for world, first, second, _ in CRITERIA)
    missed = tuple(
        f"{world}: {first} against {second} is {verdicts[world, first, second]}; {asked_for} is asked"
        for world, first, second, asked_for in (CRITERIA if judged else ())
        if verdicts[world, first, second] != asked_for
    )
    markets = describe_markets(seeds, asked, len(moments))
    return MemoryStudyView(ok=not missed, stopped=stopped, **markets, judged=judged, missed=missed, worlds=worlds)


def _world_view(world: World, moments: Sequence[MemoryMoment]) -> WorldView:
    tables = {arm: sum_by_day(moments, arm) for arm in Arm}
    drawn = draw_days(len(next(iter(tables.values()))))
    return WorldView(
        world=world.value,
        moments=len(moments),
        arms=tuple(_arm_view(arm, moments) for arm in Arm),
        pairs=tuple(_pair_view(first, second, tables[first], tables[second], drawn) for first, second in PAIRS),
    )


def _arm_view(arm: Arm, moments: Sequence[MemoryMoment]) -> ArmView:
    trades = [(each.setup, each.trades[arm.value]) for each in moments if arm.value in each.trades]
    count = len(trades)
    return ArmView(
        arm=arm.value,
        trades=count,
        failing_trades=sum(setup == "failing" for setup, _ in trades),
        paying_trades=sum(setup == "paying" for setup, _ in trades),
        hit_rate=round(sum(trade.hit for _, trade in trades) / count, 4) if count else None,
        mean_r=round(sum(trade.r for _, trade in trades) / count / 10_000, 4) if count else None,
    )


def sum_by_day(moments: Sequence[MemoryMoment], arm: Arm) -> Table:
    """Trades, hits and R (in ten-thousandths) by day of each market: symbols move together, so a day is one draw."""
    sums: dict[tuple[int, int], list[int]] = {}
    for moment in moments:
        row = sums.setdefault((moment.seed, moment.day), [0, 0, 0])
        if (trade := moment.trades.get(arm.value)) is not None:
            row[0] += 1
            row[1] += trade.hit
            row[2] += trade.r
    return np.array([sums[key] for key in sorted(sums)], dtype=np.int64).reshape(-1, 3)


def draw_days(count: int) -> Table:
    """How often each day is in each draw of the bootstrap: the same on every machine."""
    chance = Generator(PCG64(SeedSequence([count])))
    drawn = chance.integers(0, max(1, count), (DRAWS, count))
    return np.array([np.bincount(places, minlength=count) for places in drawn], dtype=np.int64).reshape(DRAWS, count)


def _pair_view(first: Arm, second: Arm, table: Table, base: Table, drawn: Table) -> PairView:
    counts = (int(table[:, 0].sum()), int(base[:, 0].sum()))
    hits = _compare(table, base, drawn, 1, 1)
    r = _compare(table, base, drawn, 2, 10_000)
    verdict = TOO_FEW
    if min(counts) >= LEAST_OUTCOMES and r is not None:
        verdict = "better" if r.low > 0 else "worse" if r.high < 0 else "no difference"
    return PairView(first=first.value, second=second.value, hit_rate=hits, r=r, verdict=verdict)


def _compare(table: Table, base: Table, drawn: Table, column: int, unit: int) -> IntervalView | None:
    """The difference of the means over trades. Sums are whole numbers: only the quotients are rounded."""
    if not table[:, 0].sum() or not base[:, 0].sum():
        return None
    trades, others = drawn @ table[:, 0], drawn @ base[:, 0]
    sums, other_sums = drawn @ table[:, column], drawn @ base[:, column]
    both = (trades > 0) & (others > 0)
    differences = np.sort(sums[both] / trades[both] / unit - other_sums[both] / others[both] / unit)
    cut = len(differences) // 40  # on either side of 95 %
    whole = table[:, column].sum() / table[:, 0].sum() / unit - base[:, column].sum() / base[:, 0].sum() / unit
    return IntervalView(
        difference=round(float(whole), 4),
        low=round(float(differences[cut]), 4),
        high=round(float(differences[len(differences) - 1 - cut]), 4),
        detectable=round(POWER_Z * pstdev(differences.tolist()), 4),
    )
