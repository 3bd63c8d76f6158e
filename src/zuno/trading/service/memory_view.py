"""Memories and lessons in the names of the public JSON. Their sentences may be a model's: one printable line each."""

from __future__ import annotations

from zuno.kernel.clock import iso
from zuno.kernel.view import ForeignText, View
from zuno.trading.model.memory import LessonReview, LessonStanding, PostMortem
from zuno.trading.model.memory_slots import LessonNote, MemoryNote


class MemoryView(View):
    """A post-mortem that was recalled."""

    id: str
    symbol: str
    closed: str
    setup: ForeignText
    outcome: ForeignText
    constraint: ForeignText
    r: float | None
    similarity: float | None
    """Null: found by its age alone."""
    side: str
    verdict: str


class LessonView(View):
    id: str
    side: str
    condition: ForeignText
    text: ForeignText
    verdict: str
    cases: tuple[str, ...]
    """The post-mortems it was drawn from."""
    written: str
    expires: str


class MemoriesView(View):
    memories: tuple[MemoryView, ...] = ()


class SearchView(View):
    query: ForeignText
    source: str
    """Which store answered; `recent3`: the most recent, because none did."""
    note: ForeignText = ""
    """Why a fallback answered, or nothing is alike."""
    memories: tuple[MemoryView, ...] = ()


class PathView(View):
    """What the market did between entry and exit. Per cents are of the entry, in the trade's direction."""

    first_touch: str | None
    mfe_pct: float
    mae_pct: float
    exit_pct: float
    r: float | None
    hold_hours: float
    bars: int
    uncovered_hours: float


class PostMortemView(View):
    """A post-mortem in full: SETUP / OUTCOME / FUTURE CONSTRAINT, and the path it was labelled from."""

    id: str
    market: str
    account: str
    symbol: str
    side: str
    mode: str | None
    regime: str | None
    exchange: str
    opened: str
    closed: str
    exit_reason: str
    setup: ForeignText
    outcome: ForeignText
    constraint: ForeignText
    verdict: str
    path: PathView
    fees: str
    funding: str
    net_pnl: str
    run_id: str | None
    """The run that opened the trade; null: a person did."""
    source: str
    """Who wrote outcome and constraint: model or rules."""
    why_rules: ForeignText


class LessonStandingView(LessonView):
    """A lesson as it stands after the newest close."""

    state: str
    since: str
    against: tuple[str, ...]
    """Cases of the same setup and side that came out otherwise when it was written."""
    confirmed: tuple[str, ...]
    contradicted: tuple[str, ...]
    """Later post-mortems of its setup and side."""
    review: ForeignText
    """What became of a contradicted one."""


class LessonsView(View):
    lessons: tuple[LessonStandingView, ...] = ()


class ForgottenView(View):
    id: str
    symbol: str


class ReadMemoryView(View):
    """What the Judge of a run read of the desk's memory, and what came of it."""

    setup: ForeignText
    source: str
    note: ForeignText
    memories: tuple[MemoryView, ...]
    lessons: tuple[LessonView, ...]
    cited: tuple[str, ...]
    """Ids of those that its words cite."""
    changed: ForeignText
    """What it changed, as far as code can say; empty: nothing."""


def memory_view(note: MemoryNote) -> MemoryView:
    return MemoryView(
        id=note.id,
        symbol=note.symbol,
        closed=iso(note.closed),
        setup=note.setup,
        outcome=note.outcome,
        constraint=note.constraint,
        r=note.r,
        similarity=note.similarity,
        side=note.side,
        verdict=note.verdict,
    )


def post_mortem_view(told: PostMortem) -> PostMortemView:
    summary = told.summary
    return PostMortemView(
        id=told.id,
        market=told.origin,
        account=told.account,
        symbol=told.symbol,
        side=told.side,
        mode=told.mode,
        regime=told.regime,
        exchange=summary.exchange,
        opened=iso(summary.opened),
        closed=iso(told.closed),
        exit_reason=summary.reason,
        setup=told.setup,
        outcome=told.outcome,
        constraint=told.constraint,
        verdict=told.verdict,
        path=PathView.model_validate(told.path.model_dump()),
        fees=f"{summary.fees:f}",
        funding=f"{summary.funding:f}",
        net_pnl=f"{summary.net_pnl:f}",
        run_id=summary.decision,
        source=told.source,
        why_rules=told.why_rules,
    )


def standing_view(standing: LessonStanding, review: LessonReview | None) -> LessonStandingView:
    lesson = standing.lesson
    return LessonStandingView(
        id=lesson.id,
        side=lesson.side,
        condition=lesson.condition,
        text=lesson.text,
        verdict=lesson.verdict,
        cases=lesson.cases,
        written=iso(lesson.written),
        expires=iso(lesson.expires),
        state=standing.state,
        since=iso(standing.since),
        against=lesson.against,
        confirmed=standing.confirmed,
        contradicted=standing.contradicted,
        review="" if review is None else review.text,
    )


def lesson_view(note: LessonNote) -> LessonView:
    return LessonView(
        id=note.id,
        side=note.side,
        condition=note.condition,
        text=note.text,
        verdict=note.verdict,
        cases=note.cases,
        written=iso(note.written),
        expires=iso(note.expires),
    )
