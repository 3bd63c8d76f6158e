"""How the arms of an LP backtest decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import log
from random import Random
from typing import Final, Protocol, TypeAlias

from zuno.amm.model import Block, PoolState, Range
from zuno.amm.ticks import MAX_TICK, ceil_to_spacing, floor_to_spacing
from zuno.kernel.units import Seconds, Tick, Wei
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.history import PositionEvent, PositionHistory, WalletSwap
from zuno.lp.rules.worth import CLOSE_DAYS, OPEN_DAYS

WIDE: Final = Fraction(1, 2)
"""Half-width of the passive range in the log of the price: from 0.61 to 1.65 times the price."""
OPEN_ABOVE: Final = 1.03
"""What the lower end of a fee cover must be, for a range to be worth its costs."""
RANDOM_DRAWS: Final = 4
"""Paths that the random arm is the mean of."""


class Arm(StrEnum):
    HOLD = "hold"
    PASSIVE = "passive"
    RESET = "reset"
    COVER = "fee-cover"
    RANDOM = "random"
    SCORE = "score"
    NO_CRITIC = "no-critic"
    PLACEBO = "placebo-critic"
    DEBATE = "debate"
    SINGLE = "single"
    VOTE = "vote"
    AA = "aa"


ASK_NOBODY: Final = (Arm.HOLD, Arm.PASSIVE, Arm.RESET, Arm.COVER, Arm.SCORE)
"""Arms that are the same whatever models there are."""
NEED_MODEL: Final = (Arm.SINGLE, Arm.VOTE, Arm.AA)
"""Arms that are nothing without a model; they decide at the moments of an ablation alone."""
WHOLE_RUN: Final = tuple(arm for arm in Arm if arm not in NEED_MODEL)


class BacktestPool(Protocol):
    """A recorded pool with one wallet. It knows nothing later than the moment it was played to."""

    @property
    def head(self) -> Block: ...

    @property
    def at_end(self) -> bool:
        """Whether the record has no minute left."""

    @property
    def balances(self) -> tuple[int, int]:
        """Of the wallet, beside its position."""

    @property
    def range(self) -> Range | None:
        """Of the wallet's position; None: it has none."""

    @property
    def events(self) -> list[PositionEvent | WalletSwap]:
        """What the wallet did, oldest first."""

    def copy(self) -> BacktestPool:
        """An independent copy at the same moment."""

    def play_until(self, moment: Seconds) -> None: ...

    def open_position(self, held: Range, gas: Wei) -> None:
        """Mint with everything the wallet holds, after the swap that this needs. `Refused` where that is too little."""

    def close_position(self, gas: Wei) -> None: ...
    def state(self) -> PoolState: ...

    def worth(self) -> tuple[int, int]:
        """Of wallet and position, fees included, in both tokens."""

    def history(self) -> PositionHistory:
        """What attribution explains. `Refused` before the first position."""


@dataclass(frozen=True, slots=True)
class ModelUse:
    tokens: int = 0
    usd: Decimal = Decimal(0)
    models: frozenset[str] = frozenset()
    unanswered: int = 0
    """Questions to which no model said anything, so that rules answered."""

    def plus(self, other: ModelUse) -> ModelUse:
        return ModelUse(
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.models | other.models,
            self.unanswered + other.unanswered,
        )


@dataclass(frozen=True, slots=True)
class ArmAction:
    """What an arm does at a decision: nothing, close the position, or move to a range."""

    range: Range | None = None
    close: bool = False
    used: ModelUse = field(default=ModelUse(), compare=False)


STAY: Final = ArmAction()
Move: TypeAlias = tuple[int, int] | None
"""Where an act that was carried out put the range, in ticks from the price; None: it closed the position."""
Decide: TypeAlias = Callable[[BacktestPool], Awaitable[ArmAction]]
"""Asked at every decision; sees the pool as it is played so far."""


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """An arm's first range (None: it holds the tokens) and who decides from then on."""

    arm: Arm
    first: Range | None
    decide: Decide


def centre_range(pool: PoolState, half_width: Fraction) -> Range:
    """A range of this half-width, in the log of the price, around the current price."""
    reach = round(float(half_width) / _LOG_TICK)
    spacing = pool.key.tick_spacing
    edge = MAX_TICK // spacing * spacing
    lower = max(-edge, floor_to_spacing(pool.tick - reach, spacing))
    return Range(Tick(lower), Tick(min(edge, max(lower + spacing, ceil_to_spacing(pool.tick + reach, spacing)))))


_LOG_TICK: Final = log(1.0001)


async def stay(pool: BacktestPool) -> ArmAction:
    return STAY


def reset_at_edge(half_width: Fraction) -> Decide:
    """Centre the range anew once the price has left it."""

    async def decide(pool: BacktestPool) -> ArmAction:
        state = pool.state()
        if pool.range is None or pool.range.contains(state.tick):
            return STAY
        return ArmAction(centre_range(state, half_width))

    return decide


def stay_while_it_pays(half_width: Fraction, measure: Callable[[Seconds], FeeCover | None]) -> Decide:
    """Out once fees surely paid less than LVR, in again once they surely paid more; in range as `reset_at_edge`."""
    reset = reset_at_edge(half_width)

    async def decide(pool: BacktestPool) -> ArmAction:
        cover = measure(pool.head.timestamp)
        if pool.range is None:
            pays = cover is not None and cover.days >= OPEN_DAYS and cover.low > OPEN_ABOVE
            return ArmAction(centre_range(pool.state(), half_width)) if pays else STAY
        if cover is not None and cover.days >= CLOSE_DAYS and cover.high < 1:
            return ArmAction(close=True)
        return await reset(pool)

    return decide


def move_at_random(moves: Sequence[Move], decisions: int, seed: int) -> Decide:
    """Make these moves in random order at random decisions."""
    chance = Random(seed)
    places = sorted(chance.sample(range(decisions), len(moves)))
    planned = dict(zip(places, _shuffle_moves(moves, chance), strict=True))
    number = -1

    async def decide(pool: BacktestPool) -> ArmAction:
        nonlocal number
        number += 1
        if number not in planned:
            return STAY
        move = planned[number]
        return ArmAction(close=True) if move is None else ArmAction(place_range(pool.state(), move))

    return decide


def _shuffle_moves(moves: Sequence[Move], chance: Random) -> Sequence[Move]:
    """An order in which every close has something to close; where chance finds none, the one they were made in."""
    for _ in range(1_000):
        order = chance.sample(moves, len(moves))
        if not any(first is None and second is None for first, second in pairwise(order)):
            return order
    return moves


def describe_move(act: ArmAction, pool: PoolState) -> Move:
    return None if act.range is None else (act.range.lower - pool.tick, act.range.upper - pool.tick)


def place_range(pool: PoolState, move: tuple[int, int]) -> Range:
    """As wide, and as far from the price as the grid lets it."""
    spacing = pool.key.tick_spacing
    edge = MAX_TICK // spacing * spacing
    lower = max(-edge, floor_to_spacing(pool.tick + move[0], spacing))
    return Range(Tick(lower), Tick(min(edge, lower + move[1] - move[0])))
