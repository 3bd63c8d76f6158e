"""A pool's last days: its fee growth from the best source there is, held against the LVR of a reference price."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Final, Self

from zuno.amm.integers import Q128
from zuno.amm.model import PoolState, price_of
from zuno.kernel.errors import Broken, Malformed, Unavailable
from zuno.kernel.text import base_and_quote
from zuno.kernel.units import Seconds
from zuno.lp.model.debate import FeeWindow, PoolCover
from zuno.lp.model.history import GrowthSample, PricedBlock
from zuno.lp.model.market import Fact, PricePath
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.samples import Samples
from zuno.lp.rules.fee_cover import (
    LogPrice,
    PoolDay,
    choose_minutes,
    log_of,
    measure_changes,
    measure_day,
    measure_variances,
)
from zuno.lp.rules.fee_yield import DAY, FORTNIGHT, LEAST_COVERED, WEEK, fee_window, find_sample, reach_of, sample_of

WINDOWS: Final = ((FORTNIGHT, "14 d"), (WEEK, "7 d"), (DAY, "24 h"))
OWN_PRICE: Final = "the pool's own price"
LATE: Final = DAY // 4
"""Seconds of a day that the reference may miss at its beginning."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A pool's fee growth at the ends of whole days back from now, oldest first."""

    marks: tuple[GrowthSample, ...]
    window: str
    """The time that was asked for, in words."""
    source: str
    notes: tuple[str, ...] = ()

    @property
    def edges(self) -> list[int]:
        return [mark.at for mark in self.marks]

    def measure(self) -> FeeWindow:
        return fee_window(self.marks[0], self.marks[-1], f"{self.window} of {self.source}")


@dataclass(frozen=True, slots=True)
class Reference:
    """The price whose variance is a pool's LVR."""

    path: Sequence[LogPrice]
    source: str
    minutes: int | None = None
    own: bool = False
    """The pool's own: it stands idle inside its fee."""

    @classmethod
    def by_feed(cls, fact: Fact[PricePath]) -> Self:
        path = [(point.at, log_of(point.price)) for point in fact.value.points]
        return cls(path, fact.source, fact.value.minutes)

    @classmethod
    def by_pool(cls, path: Iterable[PricedBlock]) -> Self:
        steps = [(step.block.timestamp, log_of(price_of(step.sqrt_price_x96))) for step in path]
        return cls(steps, OWN_PRICE, own=True)


Marks = tuple[tuple[GrowthSample, ...], str, tuple[str, ...]]
"""Of a growth, its source and notes."""
ReadGrowth = Callable[[PoolState, Chain, int], Awaitable[Marks]]


async def read_growth(
    pool: PoolState,
    chain: Chain,
    samples: Samples | None,
    windows: Sequence[tuple[int, str]] = WINDOWS,
    *,
    own_last: bool = False,
) -> Growth:
    """Over fourteen days, else seven, else one: from our own samples (`own_last`: if nothing else tells), the chain's
    past state or its Swap logs. `Unavailable` with the reasons of all."""
    readers: list[ReadGrowth] = [_read_archive, _read_swaps]
    if samples is not None:
        readers.insert(len(readers) if own_last else 0, partial(_read_samples, samples))
    why: list[str] = []
    for seconds, name in windows:
        for read in readers:
            try:
                marks, source, notes = await read(pool, chain, seconds)
            except (Unavailable, Malformed, Broken) as error:
                why.append(str(error))
                continue
            return Growth(marks, name, source, notes)
    raise Unavailable("; ".join(dict.fromkeys(why)))


async def _read_samples(samples: Samples, pool: PoolState, chain: Chain, seconds: int) -> Marks:
    now, reach = sample_of(pool), reach_of(DAY)
    oldest = Seconds(now.at - seconds)
    kept = await samples.pools(chain.info.name, pool.id, Seconds(oldest - reach_of(seconds)), Seconds(now.at))
    then = [sample_of(row) for row in kept]
    first = find_sample(then, oldest, reach_of(seconds))
    if first is None:
        raise Unavailable(f"no sample of our own is near {seconds // DAY} d old")
    days = (find_sample(then, at, reach) for at in range(oldest + DAY, now.at - reach, DAY))
    # A day without a sample is counted with the next.
    return (first, *(day for day in days if day is not None and day.at > first.at), now), "own samples", ()


async def _read_archive(pool: PoolState, chain: Chain, seconds: int) -> Marks:
    moments = [Seconds(pool.block.timestamp - ago) for ago in range(seconds, 0, -DAY)]
    past = [sample_of(await chain.pool_at(pool.id, moment)) for moment in moments]
    return (*past, sample_of(pool)), "archive", ()


async def _read_swaps(pool: PoolState, chain: Chain, seconds: int) -> Marks:
    fees = await chain.swap_fees(pool.id, Seconds(pool.block.timestamp - seconds))
    if not fees.swaps or fees.closed.timestamp - fees.opened.timestamp < LEAST_COVERED * seconds:
        raise Unavailable(f"the pool's swaps do not reach back over {seconds // DAY} d")
    notes = [f"estimated from {fees.swaps} swaps, donations unseen"]
    if fees.uneven:
        notes.append(f"{fees.uneven} of them ended in other liquidity than they began in: shared by the mean")
    return fees.days, "Swap logs", tuple(notes)


def hold_against(pool: PoolState, growth: Growth, reference: Reference) -> tuple[Growth, PoolCover]:
    """The days whose variance the reference tells, and no others: fees and LVR are of the same time."""
    growth, variances, minutes = find_variances(pool, growth, reference)
    if not variances:
        return growth, PoolCover(days=(), variance=None, source=reference.source)
    time = Fraction(growth.edges[-1] - growth.edges[0], DAY)
    mean = float(sum(map(Fraction, variances)) / time)
    days = measure_days(growth.marks, variances)
    return growth, PoolCover(days=days, variance=mean, source=reference.source, minutes=minutes)


def find_variances(pool: PoolState, growth: Growth, reference: Reference) -> tuple[Growth, Sequence[float], int | None]:
    """The last days that the reference tells, their variances, and how many minutes its returns span."""
    path, minutes = list(reference.path), reference.minutes
    if reference.own:
        path = [(growth.edges[0], log_of(price_of(growth.marks[0].sqrt_price_x96)))]
        path += [point for point in reference.path if point[0] > path[0][0]]
        minutes = choose_minutes(path, growth.edges, pool.lp_fee)
        if minutes is None:
            return growth, (), None
    measure = measure_changes if minutes is None else partial(measure_variances, minutes=minutes)
    found = [
        None if not path or path[0][0] > start + LATE else variance
        for start, variance in zip(growth.edges, measure(path, growth.edges), strict=False)
    ]
    first = max((place + 1 for place, variance in enumerate(found) if variance is None), default=0)
    if 0 < first < len(found):
        growth = replace(growth, marks=growth.marks[first:], window=f"{len(found) - first} d")
    return growth, [variance for variance in found[first:] if variance is not None], minutes


def measure_days(marks: Sequence[GrowthSample], variances: Sequence[float]) -> tuple[PoolDay, ...]:
    return tuple(
        measure_day(
            after.at // DAY,
            *(window.growth0_x128, window.growth1_x128),
            *(before.sqrt_price_x96, after.sqrt_price_x96),
            variance,
        )
        for (before, after), variance in zip(pairwise(marks), variances, strict=True)
        for window in [fee_window(before, after, "")]
    )


def add_rewards(growth: Growth, pool: PoolState, reward: Fraction) -> Growth:
    """What the owner says the pool pays its liquidity in range a day, in whole quote tokens, among the fees."""
    _, quote = base_and_quote(pool.token0, pool.token1)
    if not pool.liquidity:
        return growth
    amount = reward * 10**quote.decimals * (1 if quote is pool.token1 else price_of(pool.sqrt_price_x96))
    a_day = amount * Q128 / pool.liquidity

    def paid(mark: GrowthSample) -> GrowthSample:
        earned = int(a_day * (mark.at - growth.marks[0].at) / DAY)
        return replace(mark, growth1_x128=mark.growth1_x128 + earned)

    told = f"{float(reward):g} {quote.symbol} of rewards a day by the owner's settings"
    return replace(growth, marks=tuple(map(paid, growth.marks)), source=f"{growth.source} and {told}")
