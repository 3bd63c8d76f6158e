"""What the desk remembers: post-mortems of closed trades, lessons drawn from them, and news, each with the moment from
which it could be known; and the slots of a bundle that a cycle is given of it: the record by judge,
memories, lessons and earlier news."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.kernel.canonical import to_json
from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.kernel.wire import Wire
from zuno.markets.market import Symbol
from zuno.trading.model.account import Above, Id, NotBelow, Timestamp
from zuno.trading.model.bundle import Slot
from zuno.trading.model.cycle import JudgeKind, Policy, Regime, RegimeFamily
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.trade_events import ExitReason, TradeSummary

POST_MORTEM: Final = "post_mortem"
MEMORY_FORGOTTEN: Final = "memory_forgotten"
LESSON: Final = "lesson"
LESSON_REVIEW: Final = "lesson_review"
CASE_RECORD: Final = "case_record"
VETO_SCORE: Final = "veto_score"
"""Kinds of the journal's entries that memory is made of; files and indexes are built from them and can be rebuilt."""

SETUP_MAX: Final = 1_200
Sentence = Annotated[str, Field(min_length=1, max_length=600)]
Share = Annotated[float, Field(ge=0, le=1)]
SetupText = Annotated[str, Field(min_length=1, max_length=SETUP_MAX)]


class Channel(StrEnum):
    """Where a memory comes from. A headline never becomes a lesson: only post-mortems are the desk's own."""

    SYSTEM_POST_MORTEM = "SYSTEM_POST_MORTEM"
    NEWS = "NEWS"
    NARRATIVE = "NARRATIVE"


class Verdict(StrEnum):
    """How a trade came out, from the path that happened and never from what was expected."""

    SUCCESS = "SUCCESS"
    """R above zero after fees and funding."""
    FAILURE = "FAILURE"
    FLAT = "FLAT"
    """Within a tenth of R of nothing."""


class RealisedPath(Wire):
    """What the market did between entry and exit. Per cents are of the entry, in the trade's direction."""

    first_touch: Literal["stop", "target"] | None
    """None: neither before the exit."""
    mfe_pct: NotBelow
    """The most it was ahead."""
    mae_pct: NotBelow
    """The most it was behind."""
    exit_pct: float
    r: float | None
    """Net of fees and funding, in units of what the stop would have lost; None without a stop."""
    hold_hours: NotBelow
    bars: Annotated[int, Field(ge=0)]
    """Whole candles between entry and exit; 0: none were recorded, and MFE and MAE are of entry and exit alone."""
    uncovered_hours: NotBelow = 0.0
    """Of the time it was held: no whole candle is recorded of it, so that what happened in it is not known."""


class RememberedTrade(Wire):
    """A closed trade, whatever is kept of it."""

    id: Id
    """From account and trade."""
    account: Annotated[str, Field(min_length=1, max_length=200)]
    origin: str
    """Whose past it is about: paper on a recorded past is never recalled in another market."""
    symbol: Symbol
    side: Side
    mode: Mode | None
    regime: Regime | None
    closed: Timestamp
    """By the market's clock: nothing before this moment may know of it."""
    verdict: Verdict


class WordedRecord(Wire):
    source: Literal["model", "rules"]
    """Who wrote the sentences. Figures are code's in both cases."""
    why_rules: str = ""
    """Why no model did, where one was to."""


class PostMortem(RememberedTrade, WordedRecord):
    """One closed trade as it is remembered, in the seed's three parts. Written once per trade."""

    setup: SetupText
    """What stood at the entry, in the words of `measure/setup.py`; recall goes by similarity to it."""
    outcome: Sentence
    constraint: Sentence
    path: RealisedPath
    summary: TradeSummary


class AgentClaim(Wire):
    """What an agent claimed about a trade, beside what came of it (`rules/calibration.py`)."""

    role: Annotated[str, Field(min_length=1, max_length=40)]
    source: JudgeKind
    claimed: Share
    outcome: Share
    """1: as claimed, 0: not, between them where the trade ended between its levels."""
    fair: Share
    """The probability without any opinion, by the distances alone."""


class ReliabilityBin(View):
    """Claims of about the same probability."""

    low: float
    high: float
    n: int
    claimed: float
    came: float


class MemoryForgotten(Wire):
    """That its owner had a post-mortem forgotten: from then on nobody recalls it or learns from it."""

    id: Id


class CaseRecord(RememberedTrade):
    """data_synthesis: one labelled record per closed trade, for whoever trains or audits on it."""

    judge: JudgeKind | None
    family: RegimeFamily | None
    opened: Timestamp
    reason: ExitReason
    decision: Id | None
    bundle: str | None
    """The hash of what was known at the decision."""
    r: float | None
    fees: float
    funding: float
    claims: tuple[AgentClaim, ...] = ()
    """Of the run that opened it; none where a person did, and for the second leg of an entry at two exchanges."""


class RuleShare(Wire):
    """How much of a wanted trade a rule took away."""

    rule: Annotated[str, Field(min_length=1, max_length=40)]
    owner: Literal["expectancy", "cro", "guard", "desk"]
    share: Share
    """Of the notional that the Judge wanted; 1: a veto."""

    def describe(self) -> str:
        return self.rule if self.share == 1 else f"{self.rule} {100 * self.share:.0f} %"


class VetoScore(Wire):
    """A decision that wanted to open and was vetoed or cut, and how the trade would have come out."""

    id: Id
    """From market, account, symbol, mode and moment: a decision that is made again is scored once."""
    run: Id
    account: Annotated[str | None, Field(max_length=200)]
    origin: str
    symbol: Symbol
    mode: Mode
    side: Side
    regime: Regime
    judge: JudgeKind | None
    decided: Timestamp
    resolved: Timestamp
    """By the market's clock: nothing before this moment may know of it."""
    exit: Literal["stop", "target", "time", "unfilled"]
    pct: float
    """Of the notional, net of fees and funding."""
    r: float
    rules: Annotated[tuple[RuleShare, ...], Field(min_length=1)]
    wanted_usd: Annotated[float | None, Field(ge=0, exclude_if=lambda size: size is None)] = None
    """The notional before the rules; None: it was not worked out, as of a veto before there was a size."""
    left_usd: Annotated[float | None, Field(ge=0, exclude_if=lambda size: size is None)] = None


class MemoryRecord(Wire):
    """One thing that can be recalled, as an index holds it."""

    id: Id
    channel: Channel
    origin: str
    symbol: Symbol | None
    at: Timestamp
    """From when on it could be known."""
    text: Annotated[str, Field(min_length=1, max_length=4_000)]
    """What similarity is measured by: a post-mortem's setup, a headline."""


class RecallQuery(Wire):
    """What to recall, and as of when."""

    text: Annotated[str, Field(max_length=10_000)]
    origin: str
    before: Timestamp
    """Only what was known strictly before."""
    channels: tuple[Channel, ...] = (Channel.SYSTEM_POST_MORTEM,)
    symbol: Symbol | None = None
    """None: of every symbol."""
    recent_of: Symbol | None = None
    """Whose most recent are taken where the store cannot be asked; None: as `symbol` says."""
    limit: Annotated[int, Field(ge=1, le=100)] = 3


class Recalled(Wire):
    """A memory that was found."""

    id: Id
    similarity: Share | None
    """To the query, in four decimals; None where it was found by its age alone."""
    score: Share
    """Similarity after time decay: what it is ranked by."""


class RecallResult(Wire):
    source: Annotated[str, Field(max_length=80)]
    """Which store answered, such as `sqlite`, `milvus`; `recent3` where none could."""
    found: tuple[Recalled, ...]
    note: str = ""
    """Why a fallback answered."""


class LessonNote(Wire):
    """What a cycle is given of a lesson."""

    id: Id
    written: Timestamp
    """By the market's clock: when the last of its cases closed."""
    expires: Timestamp
    condition: SetupText
    """Phrases of `measure/setup.py` that its cases share: it is about setups that have all of them."""
    side: Side
    verdict: Verdict
    """How trades of that side come out there: SUCCESS or FAILURE."""
    text: Sentence
    cases: Annotated[tuple[Id, ...], Field(min_length=5)]
    """Post-mortems it was drawn from: those that came out so, in the order they closed."""
    source: Literal["model", "rules"]


class Lesson(LessonNote, WordedRecord):
    """A rule of thumb from resolved cases that agree. It expires, and later outcomes are held against it."""

    origin: str
    against: tuple[Id, ...] = ()
    """Post-mortems of the same setup and side that came out otherwise."""


class LessonState(StrEnum):
    ACTIVE = "active"
    CONTRADICTED = "contradicted"
    """Later outcomes spoke against it: shown, and no advice any more."""
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """Too few of its cases are remembered: their owner had them forgotten."""


class LessonStanding(Wire):
    """A lesson as it stood at a moment, with the outcomes since."""

    lesson: Lesson
    state: LessonState
    since: Timestamp
    """From when on it has been in that state."""
    confirmed: tuple[Id, ...]
    contradicted: tuple[Id, ...]
    """Post-mortems of its setup and side that closed after it was written, by whether they came out so too."""


class LessonReview(WordedRecord):
    """What became of a lesson that later outcomes contradicted."""

    id: Id
    at: Timestamp
    text: Sentence
    confirmed: tuple[Id, ...]
    contradicted: tuple[Id, ...]


RECORD: Final = "record"
"""The slot of a bundle that holds it."""
MAX_EDGE: Final = 0.20
"""Beyond which no claim counts, whoever makes it."""

Edge = Annotated[float, Field(ge=-MAX_EDGE, le=MAX_EDGE)]


class ClosedTrade(Wire):
    """A trade that has ended, by target, stop, time or a decision."""

    opened: Timestamp
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
    """Sums over the closed trades of one judge, from which its slope and error follow. A trade's weight halves with
    every 150 that the judge closed after it."""

    judge: JudgeKind
    family: Annotated[RegimeFamily | None, Field(exclude_if=lambda family: family is None)] = None
    """One regime family by itself, as in records of editions before the eighth, whose trades have equal weights."""
    n: Annotated[int, Field(ge=0)]
    edge_gain: float
    """Σ weight · edge · (score − fair)."""
    edge_squared: NotBelow
    """Σ weight · edge²."""
    edge_variance: NotBelow
    """Of the first sum."""


class Exploration(Wire):
    """An exploration that was ruled, by the market's clock."""

    at: Timestamp
    judge: JudgeKind
    family: RegimeFamily


class DeskRecord(Wire):
    """What was learned before a moment."""

    calibrations: tuple[Calibration, ...] = ()
    explorations: tuple[Exploration, ...] = ()
    """Of the last day; in records of older editions, of thirty."""
    money: Annotated[bool, Field(exclude_if=lambda money: not money)] = False
    """Whether the cycle acts with money: then nothing is explored, and an edge needs trades that prove it."""
    policy: Policy = "record"


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


class FeedbackSlot(Wire):
    lessons: Annotated[tuple[LessonNote, ...], Field(max_length=MOST_LESSONS)] = ()


class StoryNote(Wire):
    """Earlier news that was recalled: one story, however often and by whomever it was told. A stranger's words."""

    id: Id
    text: Annotated[str, Field(min_length=1, max_length=STORY_CHARS)]
    """As it was told first."""
    first: Timestamp
    last: Timestamp
    told: Annotated[int, Field(ge=1)]
    sources: Annotated[int, Field(ge=1)]
    """How many channels told it."""
    similarity: Annotated[float, Field(ge=0, le=1)] | None


class NewsSlot(Wire):
    source: Annotated[str, Field(max_length=80)]
    """Which store answered; `none` where it did not."""
    note: str = ""
    stories: Annotated[tuple[StoryNote, ...], Field(max_length=MOST_STORIES)] = ()


def make_slot(content: DeskRecord | MemorySlot | FeedbackSlot | NewsSlot, as_of: Millis) -> Slot:
    name = {DeskRecord: RECORD, MemorySlot: MEMORY, FeedbackSlot: FEEDBACK, NewsSlot: RAG}[type(content)]
    return Slot(name, to_json(content), as_of, getattr(content, "source", "journal"))
