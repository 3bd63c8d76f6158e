"""A model's help with a line the examples cannot read: it may pick among intents that change nothing, and no more."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.doors.reading.intents import Reading, load_catalogue, may_be_guessed
from zuno.doors.reading.reader import apply_model_intent
from zuno.doors.reading.secrecy import looks_secret
from zuno.llm.ask import ModelContext, ask
from zuno.llm.prompts import Untrusted
from zuno.llm.question import Opinion, Question
from zuno.lp.service.phrase import MAX_TEXT

ROLE: Final = "reader"
NONE: Final = "none"


_LEFT_OUT: Final = ("lab_", "export_", "config_", "home_", "glossary")


def offered_intents() -> tuple[str, ...]:
    """The question has to fit a small model: what runs for minutes, writes files or is read before is left out."""
    return tuple(name for name in load_catalogue().intents if may_be_guessed(name) and not name.startswith(_LEFT_OUT))


SlotName = Literal["position", "plan", "alert", "chain", "span", "amount"]


class Particular(Opinion):
    name: SlotName
    text: Annotated[str, Field(min_length=1, max_length=60)]


class Meaning(Opinion):
    intent: Annotated[str, Field(max_length=20)]
    slots: Annotated[list[Particular], Field(max_length=6)]


class Interpreter:
    """Asks the reader's model; without one there is no answer."""

    def __init__(self, model_context: Callable[[], Awaitable[ModelContext | None]]) -> None:
        self._model_context = model_context

    async def read(self, text: str) -> Reading | None:
        """What a line means; None without a model, or where its answer is empty or unusable."""
        if len(text) > MAX_TEXT or looks_secret(text):
            return None
        model_context = await self._model_context()
        if model_context is None:
            return None
        try:
            spoken = await ask(_question(text), model_context)
        finally:
            await model_context.registry.close()
        return None if spoken.model is None else _reading(text, spoken.value)


def _question(text: str) -> Question[Meaning]:
    catalogue = load_catalogue().intents
    intents = "\n".join(f"{name}: {_typical_line(name, catalogue[name].examples)}" for name in offered_intents())
    return Question(
        role=ROLE,
        round=0,
        prompt="reader",
        variables=lambda: {"line": Untrusted(text, MAX_TEXT, quotable=True), "intents": intents},
        output=Meaning,
        fallback=lambda: Meaning(intent=NONE, slots=[]),
        judge=lambda meaning: _judge_meaning(text, meaning),
        max_output_tokens=300,
    )


def _judge_meaning(text: str, meaning: Meaning) -> str | None:
    if meaning.intent == NONE:
        return None
    if meaning.intent not in offered_intents():
        return "the intent is none of those offered"
    for slot in meaning.slots:
        if slot.text.casefold() not in text.casefold():
            return f"the {slot.name} does not stand in the line"
    if _reading(text, meaning) is None:
        return "the slots are not what they are said to be"
    return None


def _reading(text: str, meaning: Meaning) -> Reading | None:
    """The line under that intent, its slots read from the copied words by the same rules as any other's."""
    if meaning.intent == NONE:
        return None
    return apply_model_intent(meaning.intent, text, {slot.name: slot.text for slot in meaning.slots})


def _typical_line(name: str, examples: Sequence[tuple[str, ...]]) -> str:
    """The first that says more than the intent's own name."""
    known = set(name.split("_"))
    return " ".join(next((words for words in examples if not set(words) <= known), examples[0]))
