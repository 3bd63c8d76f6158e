"""What a position earned from every swap of a pool: on the path that was recorded, and with the position in the pool.

On the recorded path a position of liquidity ℓ earns `ℓ·f/(1−f)·|Δ√P|` of token1 from a swap that raised the price and
`ℓ·f/(1−f)·|Δ(1/√P)|` of token0 from one that lowered it, as far as the swap went inside its range. That is exact where
the position is too small to change the path.

The replay lets the position change it: every swap brings the amount that it brought, to our own integer pool. For that
the liquidity everywhere is needed. Where a swap ended, the record tells it, less what was added and removed by then; so
the net liquidity of a tick is known where swaps ended on both sides of it. Of the other ticks only the sum over several
is known, and none beyond the prices that were traded.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zuno.amm.integers import Q96
from zuno.amm.model import Range
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_SQRT_PRICE, MAX_TICK, MIN_SQRT_PRICE, sqrt_price_at_tick
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Tick
from zuno.lab.lp.backtest import HeldSpan
from zuno.lab.lp.fast import PIPS, Floats
from zuno.lp.model.tape import PoolTape, TapeChange, TapeSwap

OTHERS: Final = "0x" + "bb" * 20
OURS: Final = "0x" + "aa" * 20


@dataclass(frozen=True, slots=True)
class SwapColumns:
    at: NDArray[np.int64]
    before: Floats
    """Square roots of prices; the first swap's is its own end, for nobody knows where it began."""
    after: Floats

    def select(self, start: int, end: int) -> "SwapColumns":
        """The swaps after `start` and up to `end`."""
        first, last = np.searchsorted(self.at, (start, end), side="right")
        return SwapColumns(*(getattr(self, field.name)[first:last] for field in fields(self)))


def to_swap_columns(tape: PoolTape) -> SwapColumns:
    swaps = tape.swaps
    after = np.array([swap.sqrt_price_x96 / Q96 for swap in swaps])
    before = np.concatenate((after[:1], after[:-1]))
    return SwapColumns(np.array([swap.at for swap in swaps], dtype=np.int64), before, after)


def earn_on_path(columns: SwapColumns, held: Range, liquidity: float, fee_pips: int) -> tuple[Floats, Floats]:
    """By swap, in both tokens."""
    low, high = sqrt_price_at_tick(held.lower) / Q96, sqrt_price_at_tick(held.upper) / Q96
    before, after = np.clip(columns.before, low, high), np.clip(columns.after, low, high)
    rate = liquidity * (fee_pips / (PIPS - fee_pips))
    return rate * np.maximum(1 / after - 1 / before, 0.0), rate * np.maximum(after - before, 0.0)


@dataclass(frozen=True, slots=True)
class TickMap:
    """Liquidity before the first event, by the lower tick of each step of the grid that swaps could have ended in."""

    spacing: int
    liquidity: Mapping[Tick, int]
    """Where it is known."""
    traded: Range

    def list_ticks(self) -> tuple[tuple[Tick, ...], tuple[Tick, ...]]:
        """The grid's ticks between the traded prices whose net liquidity is known, and the others."""
        ticks = [Tick(at) for at in range(self.traded.lower + self.spacing, self.traded.upper, self.spacing)]
        known = tuple(at for at in ticks if {at, Tick(at - self.spacing)} <= self.liquidity.keys())
        return known, tuple(sorted(set(ticks) - set(known)))


def map_ticks(tape: PoolTape, spacing: int) -> TickMap:
    """`Malformed` where two swaps contradict each other about the same place."""
    added: defaultdict[int, int] = defaultdict(int)
    first: dict[Tick, int] = {}
    ended = [swap.tick // spacing * spacing for swap in tape.swaps]
    traded = Range(Tick(min(ended)), Tick(max(ended) + spacing))
    for event in tape.events:
        if isinstance(event, TapeChange):
            start, end = max(traded.lower, event.range.lower), min(traded.upper, event.range.upper)
            for at in range(start // spacing * spacing, end, spacing):
                added[at] += event.delta
        else:
            at = Tick(event.tick // spacing * spacing)
            liquidity = event.liquidity - added[at]
            if first.setdefault(at, liquidity) != liquidity:
                raise Malformed(f"The liquidity at tick {at} is not what earlier events make of it.")
    return TickMap(spacing, first, traded)


@dataclass(frozen=True, slots=True)
class Replay:
    fees0: int
    fees1: int
    sqrt_price_x96: int
    """At the end."""


def replay(tape: PoolTape, ticks: TickMap, fee_pips: int, spans: Sequence[HeldSpan]) -> Replay:
    """Every event with these positions in the pool; amounts that came in are those of the record."""
    pool = open_pool(tape, ticks, fee_pips)
    acts = sorted(_list_acts(spans), key=lambda act: act[0])
    fees0 = fees1 = place = 0

    def act_until(at: int) -> None:
        nonlocal place, fees0, fees1
        while place < len(acts) and acts[place][0] < at:
            _, held, delta, number = acts[place]
            change = pool.modify_liquidity(OURS, held.lower, held.upper, delta, number)
            fees0, fees1, place = fees0 + change.fees0, fees1 + change.fees1, place + 1

    started = False
    for event in tape.events:
        act_until(event.at if started else 0)
        if isinstance(event, TapeChange):
            pool.modify_liquidity(OTHERS, event.range.lower, event.range.upper, event.delta, 0)
        elif started:
            falling = event.in0 > 0
            if came_in := event.in0 or event.in1:
                pool.swap(falling, -came_in, MIN_SQRT_PRICE + 1 if falling else MAX_SQRT_PRICE - 1)
        started = started or isinstance(event, TapeSwap)
    act_until(tape.events[-1].at + 1 + max((span.end for span in spans), default=0))
    return Replay(fees0, fees1, pool.slot0.sqrt_price_x96)


def _list_acts(spans: Sequence[HeldSpan]) -> Iterator[tuple[int, Range, int, int]]:
    for number, span in enumerate(spans):
        yield span.start, span.range, span.liquidity, number
        yield span.end, span.range, -span.liquidity, number


def open_pool(tape: PoolTape, ticks: TickMap, fee_pips: int) -> Pool:
    """The pool where the first swap ended. A place nobody knows is like the nearest known one below it, or above."""
    first, spacing = tape.swaps[0], ticks.spacing
    pool = Pool.initialize(fee_pips, spacing, first.sqrt_price_x96)
    early = _find_early_positions(tape)
    for held, liquidity in early.items():
        pool.modify_liquidity(OTHERS, held.lower, held.upper, liquidity, 0)
    edge = MAX_TICK // spacing * spacing
    rest: list[tuple[int, int]] = []
    for at in range(ticks.traded.lower, ticks.traded.upper, spacing):
        if (known := ticks.liquidity.get(Tick(at))) is not None:
            rest.append((at, known - sum(size for held, size in early.items() if held.contains(Tick(at)))))
    runs = [(at, liquidity) for liquidity, run in groupby(rest, lambda row: row[1]) for at, _ in [next(run)]]
    starts = [-edge, *(at for at, _ in runs[1:]), edge]
    for (lower, upper), (_, liquidity) in zip(pairwise(starts), runs, strict=True):
        if liquidity < 0:
            raise Malformed(f"More liquidity was removed at tick {lower} than there was.")
        if liquidity:
            pool.modify_liquidity(OTHERS, lower, upper, liquidity, 1)
    return pool


def _find_early_positions(tape: PoolTape) -> dict[Range, int]:
    """Liquidity that was removed and never added: it must have been there."""
    held: defaultdict[Range, int] = defaultdict(int)
    lowest: defaultdict[Range, int] = defaultdict(int)
    for event in tape.events:
        if isinstance(event, TapeChange):
            held[event.range] += event.delta
            lowest[event.range] = min(lowest[event.range], held[event.range])
    return {held_range: -least for held_range, least in lowest.items() if least}
