"""What the Judge and Meta read of the desk's memory, and how far the rules heed it: they only ever claim less for it.
Figures and phrases are code's; sentences may be a model's and are untrusted text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt
from zuno.llm.prompts import Untrusted
from zuno.llm.question import Opinion
from zuno.provenance.facts import Figure, Unit
from zuno.provenance.slots import cited_ids, render
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import ask_agent, keep_fields
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.measure.similarity import MOST_ENTITIES, Entities, Relation, find_entities, split_words
from zuno.trading.model.account import read_slot
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import LONG_TEXT
from zuno.trading.model.market import HOUR_MS, Side
from zuno.trading.model.memory import (
    FEEDBACK,
    MEMORY,
    NOBODY,
    RAG,
    FeedbackSlot,
    MemorySlot,
    NewsSlot,
    StoryNote,
    Verdict,
)
from zuno.trading.model.tilts import CORE, CoreSlot, describe_tilt

LEAST_FAILURES: Final = 2
"""Of recalled trades of a side, none of them a success, before the rules claim less for that side."""
FAILURE_POINTS: Final = 7
"""Points of probability for each of them: three that failed leave nothing of what the rules can claim."""
LESSON_POINTS: Final = 10
"""For each lesson against the side. Contradicted ones are never read."""
MOST_POINTS: Final = 20
POINTS: Final = "learned.points"
"""The fact that holds what was taken off."""
WORDS_CHARS: Final = 2_400
NEWS_CHARS: Final = 1_600


@dataclass(frozen=True, slots=True)
class LearnedCut:
    """What memory takes off the probability that the rules claim for a side, and because of what."""

    points: int
    memories: tuple[str, ...]
    """Facts they are told under."""
    lessons: tuple[str, ...]


def read_memories(bundle: Bundle) -> MemorySlot | None:
    """None: the desk was not asked what it remembers. `Malformed` for a slot that is none."""
    slot = bundle.slot(MEMORY)
    return None if slot is None else read_slot(MemorySlot, slot.content, "recalled memories")


def read_feedback(bundle: Bundle) -> FeedbackSlot:
    slot = bundle.slot(FEEDBACK)
    return FeedbackSlot() if slot is None else read_slot(FeedbackSlot, slot.content, "lessons")


def find_cut(bundle: Bundle, side: Side) -> LearnedCut | None:
    """Two recalled failures of the side and no success, or a lesson against it; None where nothing speaks against."""
    recalled = read_memories(bundle)
    same = [
        (memory_id(place), memory)
        for place, memory in enumerate(() if recalled is None else recalled.memories, 1)
        if memory.side is side
    ]
    failed = [name for name, memory in same if memory.verdict is Verdict.FAILURE]
    if len(failed) < LEAST_FAILURES or any(memory.verdict is Verdict.SUCCESS for _, memory in same):
        failed = []
    against = [
        lesson_id(place)
        for place, lesson in enumerate(read_feedback(bundle).lessons, 1)
        if lesson.side is side and lesson.verdict is Verdict.FAILURE
    ]
    points = min(FAILURE_POINTS * len(failed) + LESSON_POINTS * len(against), MOST_POINTS)
    return LearnedCut(points, tuple(failed), tuple(against)) if points else None


def describe_cut(cut: LearnedCut) -> str:
    reasons = []
    if cut.memories:
        names = ", ".join(f"{{{name}}}" for name in cut.memories)
        reasons.append(f"trades of this side failed in setups like this one ({names})")
    if cut.lessons:
        names = ", ".join(f"{{{name}}}" for name in cut.lessons)
        reasons.append(f"lessons speak against it ({names})")
    return f"{{{POINTS}}} less are claimed because {' and '.join(reasons)}"


def memory_id(place: int) -> str:
    return f"memory_{place}"


def lesson_id(place: int) -> str:
    return f"lesson_{place}"


# -- what the Judge is told


@prompt_facts.section("memories", 78)
def memory_section(bundle: Bundle) -> Iterator[Line]:
    recalled = read_memories(bundle)
    if recalled is None:
        yield Line("the desk was not asked what it remembers")
        return
    if recalled.source == NOBODY:  # why not may be told in a stranger's words
        yield Line("the store of memories did not answer: nothing is known of earlier trades")
    elif any(memory.similarity is None for memory in recalled.memories):
        yield Line("the store did not answer: these are the most recent of the symbol, whatever their setup")
    elif not recalled.memories:
        yield Line("no closed trade had a setup like this one")
    for place, memory in enumerate(recalled.memories, 1):
        name, closed = memory_id(place), f"{memory.side} {memory.symbol}, closed {iso(memory.closed)[:10]}"
        yield _cite_case(name, memory.id, memory.verdict, closed)
        if memory.similarity is not None:
            yield prompt_facts.fact(f"{name}.similarity", memory.similarity, Unit.NUMBER, note="of the setups")
        if memory.r is not None:
            yield prompt_facts.fact(f"{name}.r", memory.r, Unit.NUMBER, signed=True, note="R, after costs")
        yield Line(f"setup of {name}: {memory.setup}")


def _cite_case(name: str, id_: str, verdict: Verdict, more: str) -> Line:
    """A line whose citation prints the id and the verdict alone."""
    label = f"{id_} ({verdict})"
    return Line(f"{{{name}}} {label}: {more}", (Figure(name, label, Unit.WORDS),))


@prompt_facts.section("lessons", 77)
def feedback_section(bundle: Bundle) -> Iterator[Line]:
    lessons = read_feedback(bundle).lessons
    for place, lesson in enumerate(lessons, 1):
        note = f"{lesson.side} in such setups, {len(lesson.cases)} cases"
        yield _cite_case(lesson_id(place), lesson.id, lesson.verdict, note)
        yield Line(f"setups of {lesson_id(place)}: {lesson.condition}")
    if not lessons:
        yield Line("no lesson is about this setup")


def core_sections(bundle: Bundle) -> tuple[Section, ...]:
    """What the account holds when nobody argues, and what the Judge's tilts of it were worth. None without a core."""
    slot = bundle.slot(CORE)
    if slot is None:
        return ()
    core = read_slot(CoreSlot, slot.content, "the core")
    lines = [Line("what the account holds whatever is decided here; how far you lean tilts it tomorrow, trade or not")]
    weights: dict[str, dict[Side, float]] = {}
    for holding in core.holdings:
        legs, side = weights.setdefault(holding.sleeve, {}), Side.SHORT if holding.weight_pct < 0 else Side.LONG
        legs[side] = legs.get(side, 0.0) + holding.weight_pct
    for sleeve, legs in weights.items():
        id_, note = f"core.{sleeve.replace('-', '_')}", f"of the sleeve {sleeve}"
        for side, weight in legs.items():
            own = f"{id_}.short" if side is Side.SHORT and len(legs) > 1 else id_  # no sleeve has a point in its name
            lines.append(prompt_facts.fact(own, weight, Unit.PERCENT, 1, signed=True, note=note))
    if not core.holdings:
        lines.append(Line("nothing of this market"))
    score = core.score
    if score is None or score.beta is None or score.se is None:
        lines.append(Line("no tilt was scored yet"))
    else:
        lines.append(prompt_facts.fact("tilt.slope", score.beta, Unit.NUMBER, 3, signed=True, note="next day, in σ"))
        lines.append(prompt_facts.fact("tilt.error", score.se, Unit.NUMBER, 3, note="standard error of the slope"))
        lines.append(prompt_facts.fact("tilt.days", float(score.days), Unit.NUMBER, 0, note="days scored"))
        lines.append(prompt_facts.fact("tilt.weight", 100 * score.weight, Unit.PERCENT, 0, note="of a tilt counts"))
    for place, past in enumerate(core.tilts, 1):
        note = f"{describe_tilt(past.tilt)}, said on {iso(Millis(past.day))[:10]}; core times {past.multiplier:.2f}"
        lines.append(prompt_facts.fact(f"tilt.past_{place}", past.tilt, Unit.NUMBER, signed=True, note=note))
    return (Section("core", 79, tuple(lines)),)


def words_section(bundle: Bundle) -> Section:
    """The sentences of recalled memories and lessons; quotable only where rules wrote all of them."""
    recalled, feedback = read_memories(bundle), read_feedback(bundle)
    memories = () if recalled is None else recalled.memories
    sentences = [
        f"{memory_id(place)} OUTCOME: {memory.outcome} FUTURE CONSTRAINT: {memory.constraint}"
        for place, memory in enumerate(memories, 1)
    ]
    sentences += [f"{lesson_id(place)}: {lesson.text}" for place, lesson in enumerate(feedback.lessons, 1)]
    authors = [memory.source for memory in memories] + [lesson.source for lesson in feedback.lessons]
    by_rules = all(author == "rules" for author in authors)
    text = Untrusted(" · ".join(sentences) or "none", limit=WORDS_CHARS, quotable=by_rules)
    return Section("post_mortems", 30, strangers=text)


# -- what Meta is told


def read_news(bundle: Bundle) -> tuple[StoryNote, ...]:
    slot = bundle.slot(RAG)
    return () if slot is None else read_slot(NewsSlot, slot.content, "recalled news").stories


def news_section(bundle: Bundle, summary: str = "") -> Section:
    """Earlier news that was recalled, as untrusted text. `summary`: by the role `rag`, told first."""
    stories = read_news(bundle)
    if not stories:
        return Section("recalled", 18, strangers=Untrusted("none", limit=NEWS_CHARS, quotable=True))
    texts = [f"[{describe_story(story, bundle.as_of)}] {story.text}" for story in stories]
    texts = [f"[in short] {summary}", *texts] if summary else texts
    return Section("recalled", 18, strangers=Untrusted(" · ".join(texts), limit=NEWS_CHARS))


def describe_story(story: StoryNote, as_of: int) -> str:
    hours = (as_of - story.first) // HOUR_MS
    channels = "channel" if story.sources == 1 else "channels"
    return f"{story.sources} {channels}, first {hours} h before"


RAG_ROLE: Final = "rag"
_STORIES_CHARS: Final = 2_400


class RagOpinion(Opinion):
    summary: Annotated[str, Field(min_length=1, max_length=2 * LONG_TEXT)]


@dataclass(frozen=True, slots=True)
class NewsReading:
    """What a model made of recalled news: still untrusted text."""

    summary: str = ""
    """Citations printed; empty where no model's words stand."""
    attempts: tuple[Attempt, ...] = ()
    why: str = ""


async def summarise_news(bundle: Bundle, model_context: ModelContext) -> NewsReading:
    """Nobody is asked where nothing was recalled."""
    stories = read_news(bundle)
    if not stories:
        return NewsReading()
    lines = [Line(f"{bundle.symbol}, {bundle.mode}; what was told before now and is alike")]
    for place, story in enumerate(stories, 1):
        label, name = f"story {place} ({describe_story(story, bundle.as_of)})", story_id(place)
        lines.append(Line(f"{{{name}}} {label}", (Figure(name, label, Unit.WORDS),)))
    section = Section("stories", 100, tuple(lines))
    texts = " · ".join(f"{story_id(place)}: {story.text}" for place, story in enumerate(stories, 1))
    # Quotable, because a summary repeats some words of its texts and is itself untrusted.
    quoted = Section("texts", 90, strangers=Untrusted(texts, limit=_STORIES_CHARS, quotable=True))
    spoken = await ask_agent(
        model_context,
        role=RAG_ROLE,
        sections=lambda: (section, quoted),
        output=RagOpinion,
        fallback=lambda: answer_by_rules(stories),
        prose=lambda opinion, keep: keep_fields(opinion, None, keep, summary=LONG_TEXT),
    )
    if spoken.source not in ("model", "repaired"):
        return NewsReading("", spoken.attempts, spoken.why if spoken.source == "fallback" else "")
    if not any(cited_ids([spoken.value.summary])):
        return NewsReading("", spoken.attempts, spoken.why or "its summary cites no story")
    return NewsReading(render(spoken.value.summary, prompt_facts.build_sheet([section]))[:LONG_TEXT], spoken.attempts)


def answer_by_rules(stories: Sequence[StoryNote]) -> RagOpinion:
    names = ", ".join(f"{{{story_id(place)}}}" for place, _ in enumerate(stories, 1))
    return RagOpinion(summary=f"Earlier news that are alike: {names}.")


def story_id(place: int) -> str:
    return f"story_{place}"


EXTRACTION_ROLE: Final = "rag_extraction"
_TEXT_CHARS: Final = 2_000

_Name = Annotated[str, Field(min_length=1, max_length=80)]


class RelationOpinion(Opinion):
    source: _Name
    target: _Name
    word: Annotated[str, Field(min_length=1, max_length=40)]


class ExtractionOpinion(Opinion):
    names: Annotated[tuple[_Name, ...], Field(max_length=MOST_ENTITIES)]
    relations: Annotated[tuple[RelationOpinion, ...], Field(max_length=MOST_ENTITIES)] = ()


async def extract_entities(text: str, model_context: ModelContext) -> Entities:
    spoken = await ask_agent(
        model_context,
        role=EXTRACTION_ROLE,
        sections=lambda: (
            Section("task", 100, (Line("One text."),)),
            Section("text", 90, strangers=Untrusted(text, limit=_TEXT_CHARS, quotable=True)),
        ),
        output=ExtractionOpinion,
        fallback=lambda: ExtractionOpinion(names=()),
        prose=lambda opinion, keep: opinion,
        judge=lambda opinion: _objection(opinion, text),
    )
    return _normalise(spoken.value) if spoken.source in ("model", "repaired") else find_entities(text)


def _objection(opinion: ExtractionOpinion, text: str) -> str | None:
    held = set(split_words(text))
    foreign = [name for name in opinion.names if not (words := split_words(name)) or not held.issuperset(words)]
    if foreign:
        return f"{foreign[0]!r} does not stand in the text"
    ends = {end for relation in opinion.relations for end in (relation.source, relation.target)}
    if unnamed := sorted(ends - set(opinion.names)):
        return f"{unnamed[0]!r} is related and not among names"
    return None


def _normalise(opinion: ExtractionOpinion) -> Entities:
    plain = {name: " ".join(split_words(name)) for name in opinion.names}
    relations = {
        Relation(plain[each.source], plain[each.target], " ".join(split_words(each.word)) or "with"): None
        for each in opinion.relations
        if plain[each.source] != plain[each.target]
    }
    return Entities(tuple(dict.fromkeys(plain.values())), tuple(relations))
