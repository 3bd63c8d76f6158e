"""A model's help with a line the rules could not read: it may pick among intents that change nothing, and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.doors.reading.intents import GUESSABLE, Intent, Reading
from zuno.doors.reading.reader import apply_model_intent
from zuno.doors.reading.secrecy import looks_secret
from zuno.doors.reading.tokens import MAX_TEXT
from zuno.llm.ask import ModelContext, ask
from zuno.llm.prompts import Untrusted
from zuno.llm.question import Opinion, Question

ROLE: Final = "reader"
NONE: Final = "none"
_MEANINGS: Final[Mapping[Intent, str]] = MappingProxyType(
    {
        Intent.POSITIONS: "list the wallet's positions",
        Intent.INSPECT: "one position in full",
        Intent.IN_RANGE: "whether positions are in range",
        Intent.OUT_OF_RANGE: "which positions are out of range",
        Intent.RISKY: "which positions are near an edge",
        Intent.REBALANCE: "let the desk argue what to do with a position",
        Intent.CREATE: "let the desk argue how to open a position",
        Intent.OPTIONS: "the other candidates of a plan",
        Intent.WHY: "why a plan was decided so",
        Intent.DIFF: "compare two plans",
        Intent.SIMULATE: "try a plan without sending it",
        Intent.STATUS: "how far a plan has come",
        Intent.PLANS: "list plans",
        Intent.PLAN: "show a plan",
        Intent.BALANCES: "what the wallet holds",
        Intent.ALLOWANCES: "who may move its tokens",
        Intent.WALLET: "which wallet this is",
        Intent.SWITCH: "speak of another chain",
        Intent.AGENTS: "who sits at the desk",
        Intent.ALERTS: "list alerts",
        Intent.POOLS: "list pools",
        Intent.PNL: "what a position earned or lost",
        Intent.HISTORY: "what was planned before",
        Intent.JOURNAL: "the newest entries of the journal",
        Intent.VERIFY: "check the journal",
        Intent.REPLAY: "hold a debate again",
        Intent.DEVNET_STATUS: "whether the local chain runs",
        Intent.DEMO: "the tour",
        Intent.HELP: "what can be said",
    }
)
OFFERED: Final = tuple(intent.value for intent in _MEANINGS)

SlotName = Literal["position", "plan", "alert", "chain", "span", "amount"]


class Particular(Opinion):
    name: SlotName
    text: Annotated[str, Field(min_length=1, max_length=60)]


class Meaning(Opinion):
    intent: Annotated[str, Field(max_length=20, json_schema_extra={"enum": [*OFFERED, NONE]})]
    slots: Annotated[list[Particular], Field(max_length=6)]


class Interpreter:
    """Asks the reader's model; without one there is no answer."""

    def __init__(self, minds: Callable[[], Awaitable[ModelContext | None]]) -> None:
        self._minds = minds

    async def read(self, text: str) -> Reading | None:
        """What a line means, or None: nobody sits there, nobody knows, or what was said will not do."""
        if len(text) > MAX_TEXT or looks_secret(text):
            return None
        minds = await self._minds()
        if minds is None:
            return None
        try:
            spoken = await ask(_question(text), minds)
        finally:
            await minds.registry.close()
        return None if spoken.model is None else _reading(text, spoken.value)


def _question(text: str) -> Question[Meaning]:
    intents = "\n".join(f"{intent.value}: {meaning}" for intent, meaning in _MEANINGS.items())
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
    if meaning.intent not in OFFERED or Intent(meaning.intent) not in GUESSABLE:
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
    return apply_model_intent(Intent(meaning.intent), text, {slot.name: slot.text for slot in meaning.slots})
