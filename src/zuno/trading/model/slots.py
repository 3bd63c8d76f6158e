"""What a cycle is given of the desk's own: its record by judge and regime, memories of closed trades, lessons and
earlier news. Each is a slot of the bundle."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.kernel.canonical import to_json
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.trading.model.account import Above, Id, NotBelow, Timestamp
from zuno.trading.model.bundle import Slot
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.market import Side, Symbol
from zuno.trading.model.memory import Sentence, SetupText, Verdict

RECORD: Final = "record"
"""The slot of a bundle that holds it."""
MAX_EDGE: Final = 0.20
"""Beyond which no claim counts, whoever makes it."""

Edge = Annotated[float, Field(ge=-MAX_EDGE, le=MAX_EDGE)]


class ClosedTrade(Wire):
    """A trade that has ended, by target, stop, time or a decision."""

    closed: Timestamp
    judge: JudgeKind
    family: RegimeFamily
    edge: Edge
    """As it was claimed when the trade was opened, clamped."""
    profit_pct: Above
    loss_pct: Above
    """From entry to target and to stop, in per cent of the entry."""
    exit_pct: float
    """From entry to exit, in per cent of the entry before costs; below zero is a loss."""


class Calibration(Wire):
    """Sums over the closed trades of one judge and regime family, from which its slope and error follow."""

    judge: JudgeKind
    family: RegimeFamily
    n: Annotated[int, Field(ge=0)]
    edge_gain: float
    """Σ edge · (score − fair)."""
    edge_squared: NotBelow
    """Σ edge²."""
    edge_variance: NotBelow
    """Σ edge² · fair · (1 − fair)."""


class Exploration(Wire):
    """An exploration that was ruled, by the market's clock."""

    at: Timestamp
    judge: JudgeKind
    family: RegimeFamily


class DeskRecord(Wire):
    """What was learned before a moment."""

    calibrations: tuple[Calibration, ...] = ()
    explorations: tuple[Exploration, ...] = ()
    """Of the last thirty days."""
    money: Annotated[bool, Field(exclude_if=lambda money: not money)] = False
    """Whether the cycle acts with money: then nothing is explored, and an edge needs trades that prove it."""


def record_slot(record: DeskRecord, as_of: Millis) -> Slot:
    return Slot(RECORD, to_json(record), as_of, "journal")


MEMORY: Final = "memory"
FEEDBACK: Final = "feedback"
RAG: Final = "rag"
"""The slots of a bundle that hold them."""
NOBODY: Final = "none"
"""The source where no store answered."""
MOST_MEMORIES: Final = 3
MOST_LESSONS: Final = 3
MOST_STORIES: Final = 5
STORY_CHARS: Final = 280


class MemoryNote(Wire):
    """A closed trade that was recalled."""

    id: Id
    symbol: Symbol
    side: Side
    closed: Timestamp
    setup: SetupText
    outcome: Sentence
    constraint: Sentence
    verdict: Verdict
    r: float | None
    similarity: Annotated[float, Field(ge=0, le=1)] | None
    """To the setup of this moment; None where it was found by its age alone."""
    source: Literal["model", "rules"]
    """Who wrote outcome and constraint."""


class MemorySlot(Wire):
    setup: SetupText
    """Of this moment: what was recalled by."""
    source: Annotated[str, Field(max_length=80)]
    """Which store answered; `recent3`: the most recent of the symbol, because none did."""
    note: str = ""
    """Why a fallback answered, or nobody."""
    memories: Annotated[tuple[MemoryNote, ...], Field(max_length=MOST_MEMORIES)] = ()


class LessonNote(Wire):
    """A lesson that is valid at this moment and about its setup."""

    id: Id
    side: Side
    condition: SetupText
    text: Sentence
    verdict: Verdict
    """What its cases agree on."""
    cases: Annotated[tuple[Id, ...], Field(min_length=5)]
    written: Timestamp
    expires: Timestamp
    source: Literal["model", "rules"]


class FeedbackSlot(Wire):
    lessons: Annotated[tuple[LessonNote, ...], Field(max_length=MOST_LESSONS)] = ()


def memory_slot(recalled: MemorySlot, as_of: Millis) -> Slot:
    return Slot(MEMORY, to_json(recalled), as_of, recalled.source)


def feedback_slot(feedback: FeedbackSlot, as_of: Millis) -> Slot:
    return Slot(FEEDBACK, to_json(feedback), as_of, "journal")


class StoryNote(Wire):
    """Earlier news that was recalled: one story, however often and by whomever it was told. A stranger's words."""

    id: Id
    text: Annotated[str, Field(min_length=1, max_length=STORY_CHARS)]
    """As it was told first."""
    first: Timestamp
    last: Timestamp
    told: Annotated[int, Field(ge=1)]
    """How often."""
    sources: Annotated[int, Field(ge=1)]
    """How many channels told it."""
    similarity: Annotated[float, Field(ge=0, le=1)] | None


class NewsSlot(Wire):
    source: Annotated[str, Field(max_length=80)]
    """Which store answered; `none` where it did not."""
    note: str = ""
    stories: Annotated[tuple[StoryNote, ...], Field(max_length=MOST_STORIES)] = ()


def news_slot(recalled: NewsSlot, as_of: Millis) -> Slot:
    return Slot(RAG, to_json(recalled), as_of, recalled.source)
