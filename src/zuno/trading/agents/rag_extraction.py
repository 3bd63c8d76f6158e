"""What a text is about, for the graph of memories: found by a model or by rules. A name that the text does not hold is
nobody's."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from zuno.llm.ask import ModelContext
from zuno.llm.prompts import Untrusted
from zuno.llm.question import Opinion
from zuno.trading.agents.ask import AgentQuestion, ask_agent
from zuno.trading.agents.prompt_budget import Line, Section
from zuno.trading.measure.entities import MOST_ENTITIES, Entities, Relation, find_entities
from zuno.trading.measure.similarity import split_words

ROLE: Final = "rag_extraction"
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
            role=ROLE,
            sections=lambda: (
                Section("task", 100, (Line("One text."),)),
                Section("text", 90, strangers=Untrusted(text, limit=_TEXT_CHARS, quotable=True)),
            ),
            output=ExtractionOpinion,
            fallback=lambda: ExtractionOpinion(names=()),
            prose=lambda opinion, keep: opinion,
            judge=lambda said: _objection(said, text),
        ),
        model_context,
    )
    return _normalise(spoken.value) if spoken.source in ("model", "repaired") else find_entities(text)


def _objection(said: ExtractionOpinion, text: str) -> str | None:
    held = set(split_words(text))
    foreign = [name for name in said.names if not (words := split_words(name)) or not held.issuperset(words)]
    if foreign:
        return f"{foreign[0]!r} does not stand in the text"
    ends = {end for relation in said.relations for end in (relation.source, relation.target)}
    if unnamed := sorted(ends - set(said.names)):
        return f"{unnamed[0]!r} is related and not among names"
    return None


def _normalise(said: ExtractionOpinion) -> Entities:
    plain = {name: " ".join(split_words(name)) for name in said.names}
    relations = {
        Relation(plain[each.source], plain[each.target], " ".join(split_words(each.word)) or "with"): None
        for each in said.relations
        if plain[each.source] != plain[each.target]
    }
    return Entities(tuple(dict.fromkeys(plain.values())), tuple(relations))
