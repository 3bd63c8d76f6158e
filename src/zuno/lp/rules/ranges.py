"""Turn a proposed width and offset into a range aligned to the tick spacing."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Final

from zuno.amm.model import Range
from zuno.amm.ticks import ceil_to_spacing, floor_to_spacing, max_usable_tick, min_usable_tick
from zuno.kernel.units import Tick
from zuno.lp.model.ballot import Candidate, CandidateKind, Exposure, Fault, Judgment
from zuno.lp.rules.limits import ProfileLimits
from zuno.lp.rules.stress import StressPaths, barriers, survives_hours

LEAST_SPACINGS: Final = 4
"""The narrowest base width: below it snapping to the spacing would decide more than the multiplier does."""
CREATE_BUFFER: Final = Fraction(3, 2)
"""A new position's 1.0× lasts this many times the profile's 1× floor."""
MULTIPLIER_BOUNDS: Final = (Fraction(3, 10), Fraction(7, 2))
OFFSET_BOUND_TICKS: Final = 2_400
LONG_SHIFT: Final = Fraction(1, 6)
"""How much of its width a long-token range moves: two thirds of it then lie on the far side of the price. A quarter
would take so much off the buffer that 1.0× of a new position fell under the floor it was made to clear."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a strategist may say about a range; everything else is computed."""

    width_multiplier: Fraction
    center_offset_ticks: int = 0
    pool_index: int = 0
    exposure: Exposure = Exposure.NEUTRAL

    def __post_init__(self) -> None:
        least, most = MULTIPLIER_BOUNDS
        if not least <= self.width_multiplier <= most:
            raise ValueError(f"width multiplier {self.width_multiplier} is not in {least}–{most}")
        if abs(self.center_offset_ticks) > OFFSET_BOUND_TICKS:
            raise ValueError(f"centre offset {self.center_offset_ticks} is beyond ±{OFFSET_BOUND_TICKS} ticks")


DETERMINISTIC_SHAPES: Final = (Shape(Fraction(7, 5)), Shape(Fraction(13, 20)), Shape(Fraction(1)))
"""What the Strategist proposes without a model: 1.4×, 0.65×, 1.0×."""


@dataclass(frozen=True, slots=True)
class Move:
    """A range on the ballot, and what taking it would be called."""

    kind: CandidateKind
    range: Range
    pool_index: int = 0

    @property
    def key(self) -> tuple[int, int, int]:
        """Two moves with the same key are the same move."""
        return self.pool_index, self.range.lower, self.range.upper


@dataclass(frozen=True, slots=True)
class PoolGrid:
    """A pool as ranges see it: where it stands, its grid, and what 1.0× means there."""

    tick: Tick
    sqrt_price_x96: int
    tick_spacing: int
    base_width: int
    current: Range | None = None
    """The range held now; None when a position is to be opened."""
    capital_is_token0: bool = True
    """Which token the owner brings (create debates)."""


def rebalance_base_width(current: Range, tick_spacing: int) -> int:
    """1.0× of a rebalance: the current width, but at least four spacings."""
    return max(current.width, LEAST_SPACINGS * tick_spacing)


def create_base_width(
    paths: StressPaths, *, tick: int, sqrt_price_x96: int, tick_spacing: int, limits: ProfileLimits
) -> int | None:
    """1.0× of a create: the least width whose 1× buffer is 1.5 × the profile's floor. None if no width has it."""
    wanted = CREATE_BUFFER * limits.floor_1x_hours
    return _narrowest_width(
        tick, tick_spacing, lambda band: survives_hours(paths, barriers(band, sqrt_price_x96, tick), 1, wanted)
    )


def place(center: int, width: Fraction, tick_spacing: int) -> Range:
    """The range of about this width around the centre: the lower tick floors, the upper one ceils, both usable."""
    lower = floor_to_spacing(floor(center - width / 2), tick_spacing)
    upper = ceil_to_spacing(ceil(center + width / 2), tick_spacing)
    least, most = min_usable_tick(tick_spacing), max_usable_tick(tick_spacing)
    lower = min(max(lower, least), most - tick_spacing)
    upper = max(min(upper, most), lower + tick_spacing)
    return Range(Tick(lower), Tick(upper))


def propose(grids: Sequence[PoolGrid], shapes: Sequence[Shape], tried: AbstractSet[tuple[int, int, int]]) -> list[Move]:
    """The shapes as moves, in order. One that was tried before, is there already or is held now is dropped."""
    wanted = []
    for shape in shapes:
        grid = grids[shape.pool_index]
        width = grid.base_width * shape.width_multiplier
        center = grid.tick + shape.center_offset_ticks
        if shape.exposure is not Exposure.NEUTRAL:
            # A range sells token0 on the way up and token1 on the way down: more room on that side, a longer stay.
            shift = floor(width * LONG_SHIFT)
            center += shift if grid.capital_is_token0 else -shift
        wanted.append((shape.pool_index, place(center, width, grid.tick_spacing)))
    return _list_new_moves(grids, wanted, tried)


def judged_moves(candidates: Sequence[Candidate], judgments: Sequence[Judgment]) -> list[tuple[Move, Fault]]:
    return [
        (Move(candidate.kind, candidate.range, candidate.pool_index), judgment.fault)
        for candidate, judgment in zip(candidates, judgments, strict=True)
        if candidate.kind.move and candidate.range is not None
    ]


def revise(
    grids: Sequence[PoolGrid],
    judged: Sequence[tuple[Move, Fault]],
    paths: Sequence[StressPaths | None],
    limits: ProfileLimits,
    tried: AbstractSet[tuple[int, int, int]],
) -> list[Move]:
    """The moves that answer a critique, in order; never one that was tried. An empty list means: hold.

    Too thin → the narrowest range about the same centre that clears both floors. Outside → the same about the
    price. Too dear in gas → back to hold, since no other width makes gas cheaper. Unknown or empty → hold as well.
    An objection the rules do not share → half as wide again.
    """
    answers = [
        (old.pool_index, _answer(grids[old.pool_index], old.range, fault, paths[old.pool_index], limits))
        for old, fault in judged
    ]
    return _list_new_moves(grids, answers, tried)


def find_narrowest_range(paths: StressPaths, grid: PoolGrid, center: int, limits: ProfileLimits) -> Range | None:
    """The least width about this centre whose buffers reach both floors; None if no range does."""

    def meets_floors(band: Range) -> bool:
        edges = barriers(band, grid.sqrt_price_x96, grid.tick)
        return survives_hours(paths, edges, 1, limits.floor_1x_hours) and survives_hours(
            paths, edges, 2, limits.floor_2x_hours
        )

    width = _narrowest_width(center, grid.tick_spacing, meets_floors)
    return None if width is None else place(center, Fraction(width), grid.tick_spacing)


def kind_of(current: Range | None, new: Range, tick_spacing: int) -> CandidateKind:
    """What a change of range is called. Snapping alone adds up to one spacing, which is no change of width."""
    if current is None:
        return CandidateKind.OPEN
    if new.width > current.width + tick_spacing:
        return CandidateKind.WIDEN
    if new.width < current.width - tick_spacing:
        return CandidateKind.TIGHTEN
    return CandidateKind.SHIFT


def _answer(grid: PoolGrid, old: Range, fault: Fault, paths: StressPaths | None, limits: ProfileLimits) -> Range | None:
    match fault:
        case Fault.THIN_1X | Fault.THIN_2X:
            center = (old.lower + old.upper) // 2
            return None if paths is None else find_narrowest_range(paths, grid, center, limits)
        case Fault.OUTSIDE:
            return None if paths is None else find_narrowest_range(paths, grid, grid.tick, limits)
        case Fault.OPINION:
            return place((old.lower + old.upper) // 2, Fraction(3 * old.width, 2), grid.tick_spacing)
        case Fault.NONE | Fault.DEAR | Fault.UNKNOWN | Fault.EMPTY | Fault.UNPAID:
            return None


def _narrowest_width(center: int, tick_spacing: int, meets_floors: Callable[[Range], bool]) -> int | None:
    """Ranges about one centre lie inside each other as they widen, so what clears once clears for ever."""
    most = 2 * (max_usable_tick(tick_spacing) + abs(center)) // tick_spacing + 2

    def is_wide_enough(spacings: int) -> bool:
        return meets_floors(place(center, Fraction(spacings * tick_spacing), tick_spacing))

    if not is_wide_enough(most):
        return None
    return (1 + bisect_left(range(1, most), True, key=is_wide_enough)) * tick_spacing


def _list_new_moves(
    grids: Sequence[PoolGrid], wanted: Sequence[tuple[int, Range | None]], tried: AbstractSet[tuple[int, int, int]]
) -> list[Move]:
    """These ranges by pool as moves, each once; not what was tried before or is held now."""
    moves: dict[tuple[int, int, int], Move] = {}
    for index, band in wanted:
        grid = grids[index]
        if band is not None and band != grid.current:
            move = Move(kind_of(grid.current, band, grid.tick_spacing), band, index)
            if move.key not in tried:
                moves.setdefault(move.key, move)
    return list(moves.values())
