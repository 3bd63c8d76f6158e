"""What the journal keeps of the owner's own strategies."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.wire import Wire
from zuno.trading.model.sleeves import SleeveName

OWN_STRATEGY: Final = "own_strategy"
OWN_SIGNAL: Final = "own_signal"
OWN_ANSWER: Final = "own_answer"
"""Kinds of entries."""


class StrategyForm(StrEnum):
    PYTHON = "python"
    CSV = "csv"
    WEBHOOK = "webhook"


class Registration(Wire):
    """A strategy as it was added in the terminal; without a form it was removed."""

    name: SleeveName
    form: StrategyForm | None
    path: str = ""
    digest: str = ""
    """Of a Python file: other content is not run."""


class Signal(Wire):
    """Targets that came by webhook, whole: a market that is not named has weight 0."""

    name: str
    targets: dict[str, float]
    sent: Annotated[int | None, Field(exclude_if=lambda sent: sent is None)] = None
    """By its own time, in Unix milliseconds; None in records of before."""


class OwnAnswer(Wire):
    """What a strategy wanted at the end of a day, or why it was set aside."""

    name: str
    at: int
    """The end of the day, in Unix milliseconds."""
    targets: dict[str, float]
    """Checked; of a strategy that is set aside, what it held before."""
    closes: dict[str, float]
    """Of every market it was shown."""
    aside: Annotated[str, Field(exclude_if=lambda reason: not reason)] = ""
    news: Annotated[bool, Field(exclude_if=lambda news: not news)] = False
    """Whether `aside` changed since the answer before: the owner is told."""
