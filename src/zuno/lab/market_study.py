"""Studies over synthetic markets: which moments of which seeds are looked at, by how many processes."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.lab.model import StudiedMoment
from zuno.lab.workers import Progress, RunTasks, check_workers
from zuno.trading.model.cycle import EDITION

P = TypeVar("P")
M = TypeVar("M")
V = TypeVar("V")
MOST_MOMENTS: Final = 20_000
MOST_SEEDS: Final = 1_000
LARGEST_SEED: Final = 2**63 - 1
_SEEDS: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")


@dataclass(frozen=True, slots=True)
class MarketPlan:
    seed: int
    moments: int


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
    """Run the plans and sort their results, which workers send in any order. The second value: whether Ctrl-C came
    before the end. `done`: results of an earlier run; `keep` is called with each new one."""
    results = list(done)

    def add_result(result: M) -> None:
        results.append(result)
        keep(result)
        tell(len(results), asked)

    tell(len(results), asked)
    if not stop.is_set():
        await run(plans, workers, add_result, stop)
    results.sort(key=order)
    return results, stop.is_set() and len(results) < asked


S = TypeVar("S", bound=StudiedMoment)
BuildView: TypeAlias = Callable[[Sequence[S], Sequence[MarketPlan], bool], V]
"""The last: whether the study was stopped before its end."""


@dataclass(frozen=True, slots=True)
class MarketStudy(Generic[S, V]):
    """Moments of synthetic markets, and what they say together."""

    run_markets: RunTasks[MarketPlan, S]
    build: BuildView[S, V]

    async def study(self, moments: int, seeds: str, workers: int, tell: Progress, stop: asyncio.Event) -> V:
        """Look at so many moments of these markets. Once `stop` is set, what is known by then is the answer."""
        check_workers(workers)
        plans = plan_markets(moments, parse_seeds(seeds))
        results, stopped = await collect_results(
            self.run_markets, plans, workers, moments, lambda moment: (moment.seed, moment.number), tell, stop
        )
        return self.build(results, plans, stopped)


def parse_seeds(text: str) -> tuple[int, ...]:
    """`1-10`, `3` or `1,4,7-9`; each once, in ascending order."""
    seeds: set[int] = set()
    for part in text.split(","):
        match = _SEEDS.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"{plain_text(text, 40)!r} names no seeds; write 1-10 or 1,4,7.")
        first = int(match[1])
        last = int(match[2] or match[1])
        if last < first or last > LARGEST_SEED or last - first >= MOST_SEEDS:
            raise UsageError(f"{plain_text(part, 40)!r} is no range of at most {MOST_SEEDS} seeds.")
        seeds.update(range(first, last + 1))
    if len(seeds) > MOST_SEEDS:
        raise UsageError(f"{len(seeds)} seeds are too many; {MOST_SEEDS} is the most.")
    return tuple(sorted(seeds))


def plan_markets(moments: int, seeds: Sequence[int]) -> tuple[MarketPlan, ...]:
    """As many moments of each market as of any other; the first markets get what does not divide."""
    if not len(seeds) <= moments <= MOST_MOMENTS:
        raise UsageError(
            f"--moments is {moments}; give a whole number from {len(seeds)}, one a seed, to {MOST_MOMENTS}."
        )
    each, left = divmod(moments, len(seeds))
    return tuple(MarketPlan(seed, each + (place < left)) for place, seed in enumerate(seeds))


def describe_markets(seeds: Sequence[int], asked: int, moments: int) -> dict[str, Any]:
    """What every view of synthetic markets says of them."""
    market = {"synthetic": True, "origin": f"SYNTHETIC seeds {format_seeds(seeds)}", "edition": EDITION}
    return {**market, "seeds": tuple(seeds), "asked": asked, "moments": moments}


def format_seeds(seeds: Sequence[int]) -> str:
    """Runs of seeds by their ends: 1-10, 14."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1][1:] = [seed]
        else:
            runs.append([seed])
    return ", ".join("-".join(map(str, run)) for run in runs)
