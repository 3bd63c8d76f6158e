"""Reading what was recalled: a model sums up earlier news for Meta, story by story, and names the entities of a text
for the graph of memories. Without a model Meta reads the stories themselves, and rules find the entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt
from zuno.llm.prompts import Untrusted
from zuno.llm.question import Opinion
from zuno.provenance.facts import Figure, Unit
from zuno.provenance.slots import cited_ids, render
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import AgentQuestion, ask_agent, keep_fields
from zuno.trading.agents.learned import describe_story, read_news
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.measure.similarity import MOST_ENTITIES, Entities, Relation, find_entities, split_words
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import LONG_TEXT
from zuno.trading.model.slots import StoryNote

ROLE: Final = "rag"
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
    """Why not, where a model was asked."""


async def summarise_news(bundle: Bundle, model_context: ModelContext) -> NewsReading:
    """Nobody is asked where nothing was recalled."""
    stories = read_news(bundle)
    if not stories:
        return NewsReading()
    section = _stories_section(bundle, stories)
    spoken = await ask_agent(
        AgentQuestion(
            role=ROLE,
            sections=lambda: (section, _texts_section(stories)),
            output=RagOpinion,
            fallback=lambda: answer_by_rules(stories),
            prose=lambda opinion, keep: keep_fields(opinion, None, keep, summary=LONG_TEXT),
        ),
        model_context,
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


def _stories_section(bundle: Bundle, stories: Sequence[StoryNote]) -> Section:
    lines = [Line(f"{bundle.symbol}, {bundle.mode}; what was told before now and is alike")]
    for place, story in enumerate(stories, 1):
        label = f"story {place} ({describe_story(story, bundle.as_of)})"
        name = story_id(place)
        lines.append(Line(f"{{{name}}} {label}", (Figure(name, label, Unit.WORDS),)))
    return Section("stories", 100, tuple(lines))


def _texts_section(stories: Sequence[StoryNote]) -> Section:
    """Quotable, because a summary repeats some words of its texts and is itself untrusted."""
    texts = " · ".join(f"{story_id(place)}: {story.text}" for place, story in enumerate(stories, 1))
    return Section("texts", 90, strangers=Untrusted(texts, limit=_STORIES_CHARS, quotable=True))


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
        AgentQuestion(
            role=EXTRACTION_ROLE,
            sections=lambda: (
                Section("task", 100, (Line("One text."),)),
                Section("text", 90, strangers=Untrusted(text, limit=_TEXT_CHARS, quotable=True)),
            ),
            output=ExtractionOpinion,
            fallback=lambda: ExtractionOpinion(names=()),
            prose=lambda opinion, keep: opinion,
            judge=lambda opinion: _objection(opinion, text),
        ),
        model_context,
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
