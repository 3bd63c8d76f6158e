"""Memories and lessons by hand, and the slots of a bundle that hold them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.wire.desk_bundles import AS_OF
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.bundle import Slot
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.memory import (
    FeedbackSlot,
    LessonNote,
    MemoryNote,
    MemorySlot,
    Verdict,
    make_slot,
)

SETUP = "failed breakout up 4h; RSI 1h overbought; funding high"


def memory(number: int, side: Side, verdict: Verdict, **changes: object) -> MemoryNote:
    r = {Verdict.SUCCESS: 1.4, Verdict.FAILURE: -1.05, Verdict.FLAT: 0.02}[verdict]
    note = MemoryNote(
        id=f"pm_{number:024x}",
        symbol=Symbol("BTCUSDT"),
        side=side,
        closed=Millis(AS_OF - number * DAY_MS),
        setup=SETUP,
        outcome="The stop was touched first.",
        constraint="Wait for a close beyond the level.",
        verdict=verdict,
        r=r,
        similarity=0.9,
        source="rules",
    )
    return note.model_copy(update=changes)


def lesson(number: int, side: Side, verdict: Verdict, **changes: object) -> LessonNote:
    note = LessonNote(
        id=f"les_{number:016x}",
        side=side,
        condition="failed breakout up 4h; funding high",
        text=f"A {side} in this setup came to nothing.",
        verdict=verdict,
        cases=tuple(f"pm_{case:024x}" for case in range(100, 106)),
        written=Millis(AS_OF - 10 * DAY_MS),
        expires=Millis(AS_OF + 80 * DAY_MS),
        source="rules",
    )
    return note.model_copy(update=changes)


def slots(
    memories: Sequence[MemoryNote] = (), lessons: Sequence[LessonNote] = (), source: str = "sqlite", note: str = ""
) -> tuple[Slot, Slot]:
    recalled = MemorySlot(setup=SETUP, source=source, note=note, memories=tuple(memories))
    return make_slot(recalled, AS_OF), make_slot(FeedbackSlot(lessons=tuple(lessons)), AS_OF)
