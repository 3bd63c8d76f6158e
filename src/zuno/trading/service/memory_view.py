"""Memories and lessons in the names of the public JSON. Their sentences may be a model's: one printable line each."""

from collections.abc import Iterator, Sequence
from typing import Final

from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import (
    Act,
    Block,
    Document,
    Facts,
    Table,
    Tone,
    Value,
    document,
    facts,
    lines,
    section,
    table,
)
from zuno.present.values import count, foreign, hours, id_, multiple, number, percent
from zuno.trading.model.known import derive
from zuno.trading.model.memory import LessonReview, LessonStanding, PostMortem, RealisedPath

_NONE: Final = "No trade was learned from yet; `zuno trade evaluate` learns from every trade that has closed."


class LearnedView(View):
    """What a closed trade taught."""

    id: str
    symbol: str
    side: str
    closed: IsoTime
    verdict: str
    outcome: ForeignText
    constraint: ForeignText


class MemoryView(LearnedView):
    setup: ForeignText
    r: float | None
    similarity: float | None
    """Null: found by its age alone."""

    @property
    def trade(self) -> str:
        return f"{self.side} {self.symbol}"

    @property
    def likeness(self) -> Value:
        return Value("the most recent") if self.similarity is None else number(self.similarity)

    def to_facts(self) -> Facts:
        return facts(
            ("verdict", self.verdict),
            ("result", multiple(self.r)),
            ("outcome", foreign(self.outcome)),
            ("constraint", foreign(self.constraint)),
            ("setup", foreign(self.setup, Tone.QUIET)),
            ("similarity", self.likeness),
        )


class LessonView(View):
    id: str
    side: str
    condition: ForeignText
    text: ForeignText
    verdict: str
    cases: tuple[str, ...]
    """The post-mortems it was drawn from."""
    written: IsoTime
    expires: IsoTime


class MemoriesView(View):
    memories: tuple[MemoryView, ...] = ()

    def to_document(self) -> Document:
        if not self.memories:
            return document("Memory", lines(_NONE))
        return document("Memory, newest first", _memory_table(self.memories), acts=(Act("Lessons", "memory lessons"),))


class SearchView(View):
    query: ForeignText
    source: str
    """Which store answered; `recent3`: the most recent, because none did."""
    note: ForeignText = ""
    """Why a fallback answered, or nothing is alike."""
    memories: tuple[MemoryView, ...] = ()

    def to_document(self) -> Document:
        memories = (
            section(f"{memory.id}: {memory.trade}, closed {memory.closed}", memory.to_facts())
            for memory in self.memories
        )
        nothing = lines("Nothing like it is remembered.") if not self.memories else None
        notes = (foreign(note) for note in (f"from {self.source}", self.note) if note)
        return document(foreign(f"Memory: {self.query}"), nothing, *memories, notes=notes)


class PostMortemView(LearnedView):
    """A post-mortem in full: SETUP / OUTCOME / FUTURE CONSTRAINT, and the path it was labelled from."""

    market: str
    account: str
    mode: str | None
    regime: str | None
    exchange: str
    opened: IsoTime
    exit_reason: str
    setup: ForeignText
    path: RealisedPath
    fees: str
    funding: str
    net_pnl: str
    run_id: str | None
    """The run that opened the trade; null: a person did."""
    source: str
    """Who wrote outcome and constraint: model or rules."""
    why_rules: ForeignText

    def to_document(self) -> Document:
        path = self.path
        label = "SYNTHETIC · " if self.market.startswith("SYNTHETIC") else ""
        return document(
            f"{label}{self.side} {self.symbol}: {self.verdict}",
            facts(
                ("memory", id_(self.id)),
                ("SETUP", foreign(self.setup)),
                ("OUTCOME", foreign(self.outcome)),
                ("FUTURE CONSTRAINT", foreign(self.constraint)),
                ("result", multiple(path.r)),
                ("before costs", percent(path.exit_pct, signed=True)),
                ("net PnL", self.net_pnl),
                ("fees", self.fees),
                ("funding", self.funding),
                ("first touch", f"{path.first_touch or 'neither stop nor target'}; closed by {self.exit_reason}"),
                ("MFE", percent(path.mfe_pct)),
                ("MAE", percent(path.mae_pct)),
                ("bars", count(path.bars)),
                ("held", hours(path.hold_hours)),
                ("opened", self.opened),
                ("closed", f"{self.closed} at {self.exchange}"),
                ("not recorded", hours(path.uncovered_hours)) if path.uncovered_hours else None,
                ("regime", f"{self.regime or 'not known'}, {self.mode or 'no mode'}"),
                ("run", id_(self.run_id) if self.run_id else "none: opened by hand"),
                ("written by", foreign(f"{self.source} ({self.why_rules})" if self.why_rules else self.source)),
            ),
            context=f"{self.account} · {self.market}",
            acts=[Act("Why", f"trade why {self.run_id}") if self.run_id else None],
            as_of=self.closed,
        )


class LessonStandingView(LessonView):
    state: str
    since: IsoTime
    against: tuple[str, ...]
    """Cases of the same setup and side that came out otherwise when it was written."""
    confirmed: tuple[str, ...]
    contradicted: tuple[str, ...]
    """Later post-mortems of its setup and side."""
    review: ForeignText
    """What became of a contradicted one."""

    def to_facts(self) -> Facts:
        later = f"{len(self.confirmed)} confirmed it, {len(self.contradicted)} did not"
        return facts(
            ("lesson", foreign(self.text)),
            ("verdict", self.verdict),
            ("setups", foreign(self.condition, Tone.QUIET)),
            ("cases", ", ".join(self.cases)),
            ("against", ", ".join(self.against)) if self.against else None,
            ("since then", foreign(f"{later}: {self.review}" if self.review else later)),
            ("written", self.written),
            ("expires", self.expires),
        )


class LessonsView(View):
    lessons: tuple[LessonStandingView, ...] = ()

    def to_document(self) -> Document:
        if not self.lessons:
            nothing = "No lesson yet: one needs five closed trades of alike setups that came out the same way."
            return document("Lessons", lines(nothing))
        lessons = (
            section(f"{lesson.id}: {lesson.side}, {lesson.state} since {lesson.since}", lesson.to_facts())
            for lesson in self.lessons
        )
        return document("Lessons", *lessons)


class ForgottenView(View):
    id: str
    symbol: str

    def to_document(self) -> Document:
        forgotten = f"{self.id} ({self.symbol}) is forgotten: nothing recalls it and no lesson is drawn from it."
        return document(forgotten)


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

    def to_blocks(self) -> Iterator[Block]:
        if self.memories:
            yield _memory_table(self.memories, recalled=True)
        said = {each.id: f"{each.side}, {each.verdict}, {len(each.cases)} cases: {each.text}" for each in self.lessons}
        alike = None if self.memories or self.note else ("memory", "no closed trade had a setup like this one")
        yield facts(
            alike,
            *((f"lesson {id}", foreign(text)) for id, text in said.items()),
            ("changed", foreign(self.changed or "nothing by rule")),
            ("cited", ", ".join(self.cited)) if self.cited else None,
            ("asked", foreign(f"{self.source}: {self.note}" if self.note else self.source)),
            ("setup", foreign(self.setup, Tone.QUIET)),
        )


def _memory_table(memories: Sequence[MemoryView], *, recalled: bool = False) -> Table:
    """`recalled`: because they are like a setup."""
    columns = ("memory", "closed", "trade", "verdict", "R", "outcome", "future constraint")
    rows = [
        (
            id_(memory.id),
            f"{memory.closed[:16]}Z",
            memory.trade,
            memory.verdict,
            multiple(memory.r),
            foreign(memory.outcome),
            foreign(memory.constraint),
            *((memory.likeness,) if recalled else ()),
        )
        for memory in memories
    ]
    return table((*columns, *(("similarity",) if recalled else ())), rows, spare=("outcome", "future constraint"))


def post_mortem_view(post_mortem: PostMortem) -> PostMortemView:
    summary = post_mortem.summary
    return derive(
        PostMortemView,
        post_mortem,
        summary,
        market=post_mortem.origin,
        exit_reason=summary.reason,
        fees=f"{summary.fees:f}",
        funding=f"{summary.funding:f}",
        net_pnl=f"{summary.net_pnl:f}",
        run_id=summary.decision,
    )


def standing_view(standing: LessonStanding, review: LessonReview | None) -> LessonStandingView:
    return derive(LessonStandingView, standing, standing.lesson, review="" if review is None else review.text)
