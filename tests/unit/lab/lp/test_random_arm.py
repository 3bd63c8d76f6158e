"""The random arm makes the debate's own moves, each once, at other moments."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from zuno.amm.model import Range
from zuno.amm.ticks import MAX_TICK
from zuno.kernel.units import Tick
from zuno.lab.lp.arms import STAY, ArmAction, Move, describe_move, move_at_random, place_range

SPACING = 10
MOVES: tuple[Move, ...] = (None, (-503, 497), (-103, 197), None, (-13, 7))


def pool(tick: int) -> Any:
    state = SimpleNamespace(tick=tick, key=SimpleNamespace(tick_spacing=SPACING))
    return SimpleNamespace(state=lambda: state, tick=tick, key=state.key)


async def draw(seed: int, decisions: int = 12) -> list[ArmAction]:
    decide = move_at_random(MOVES, decisions, seed)
    return [await decide(pool(1_003 + 7 * place)) for place in range(decisions)]


async def test_every_move_is_made_once_and_as_wide() -> None:
    for seed in range(20):
        acts = [act for act in await draw(seed) if act != STAY]
        widths = sorted(act.range.upper - act.range.lower for act in acts if act.range is not None)
        assert widths == [20, 300, 1_000]
        assert sum(act.close for act in acts) == 2
        assert not any(first.close and second.close for first, second in pairwise(acts)), "nothing would be open"
    assert len({tuple(await draw(seed)) for seed in range(20)}) == 20
    assert await draw(3) == await draw(3)
    assert sum(act != STAY for act in await draw(0, decisions=len(MOVES))) == len(MOVES)


@pytest.mark.parametrize("tick", [1_003, 1_000, -77])
def test_a_move_lies_as_far_from_another_price(tick: int) -> None:
    then = ArmAction(Range(Tick(500), Tick(1_500)))
    move = describe_move(then, pool(1_003))
    assert move == (-503, 497)
    placed = place_range(pool(tick), move)
    assert placed.upper - placed.lower == 1_000
    assert tick - 503 - SPACING < placed.lower <= tick - 503
    assert placed.lower % SPACING == 0
    widest = place_range(pool(tick), (-2 * MAX_TICK, 2 * MAX_TICK))
    assert (widest.lower, widest.upper) == (-MAX_TICK // SPACING * SPACING + SPACING, MAX_TICK // SPACING * SPACING)
    assert describe_move(ArmAction(close=True), pool(tick)) is None
