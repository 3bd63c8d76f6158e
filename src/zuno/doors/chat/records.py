"""What the journal keeps of a chat: the question, every tool call, and the turn as it ended."""

from __future__ import annotations

from typing import Final, Literal

from zuno.doors.chat.facts import ToolFacts
from zuno.kernel.wire import Wire

TURN_KIND: Final = "chat"
QUESTION_KIND: Final = "chat_question"
CALL_KIND: Final = "chat_tool"


class QuestionRecord(Wire):
    """Written before a model is asked."""

    chat: str
    user: str
    question: str
    history: str
    """Earlier turns as the model reads them."""


class CallRecord(Wire):
    tool: str
    arguments: dict[str, str]
    output: ToolFacts


class SourceRecord(Wire):
    """What an answer was read from."""

    command: str
    as_of: str | None


class TurnRecord(Wire):
    """One line of a person and what was answered."""

    chat: str
    user: str
    question: str
    """Empty where the line may hold a secret."""
    answer: str
    """As it was shown, figures printed."""
    cited: str
    """The model's words with slots; empty where the rules answered."""
    proposal: str
    source: Literal["model", "rules"]
    why: str
    """Why no model answered, where one might have."""
    sources: tuple[SourceRecord, ...]
