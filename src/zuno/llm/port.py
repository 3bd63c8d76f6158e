"""The model port: one request out, one text or one failure back."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol

from pydantic import Field

from zuno.kernel.wire import Wire

FailureKind = Literal["malformed", "timeout", "refused", "unavailable", "budget", "breaker"]
"""Why there is no text. `budget` and `breaker` are the runtime's own refusals: nobody was asked."""

Outcome = Literal["ok", "out_of_bounds", "unsupported_figure"] | FailureKind
"""How one attempt ended. `malformed` is also a text that is not the object asked for."""


@dataclass(frozen=True, slots=True)
class Spend:
    """Tokens and dollars together; negative when something is given back."""

    tokens: int = 0
    usd: Decimal = Decimal(0)

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.tokens + other.tokens, self.usd + other.usd)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.tokens - other.tokens, self.usd - other.usd)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that may be spent; None is no limit."""

    tokens: int | None = None
    usd: Decimal | None = None

    def __str__(self) -> str:
        parts = [f"{self.tokens} tokens"] if self.tokens is not None else []
        parts += [f"${self.usd}"] if self.usd is not None else []
        return " and ".join(parts) or "no limit"

    def is_exceeded_by(self, total: Spend) -> bool:
        over_tokens = self.tokens is not None and total.tokens > self.tokens
        return over_tokens or (self.usd is not None and total.usd > self.usd)


@dataclass(frozen=True, slots=True)
class Image:
    media_type: Literal["image/png", "image/jpeg", "image/webp"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Turn:
    who: Literal["user", "model"]
    text: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything sent to a model. No keys, nothing that depends on the machine or the time."""

    role: str
    round: int
    attempt: int
    """From 1, over all models and repairs of one question."""
    system: str
    turns: tuple[Turn, ...]
    shape: str
    """A name for the answer's shape."""
    schema: str
    """The JSON schema of the answer, its fields in the order they are to be written."""
    max_output_tokens: int
    timeout: float
    """Seconds after which nobody waits any more."""
    images: tuple[Image, ...] = ()
    fingerprint: str = ""
    """SHA-256 of all the above but the timeout, and of the model's name."""


@dataclass(frozen=True, slots=True)
class Usage:
    tokens_in: int
    tokens_out: int
    usd: Decimal | None
    """None: the price is not known."""
    estimated: bool = False
    """True: the model did not say, and the whole reservation is counted."""


@dataclass(frozen=True, slots=True)
class Answered:
    text: str
    usage: Usage | None
    """None: the model did not say."""


@dataclass(frozen=True, slots=True)
class Failed:
    """No usable text came."""

    kind: FailureKind
    why: str
    """One clause for a person; quotes nothing a server sent and holds no key."""
    usage: Usage | None = None
    """None: it is not known what the call took; zero when it certainly took nothing."""
    raw: str = ""
    """Evidence: what the model said instead."""
    cut: bool = False
    """Whether `raw` is only the beginning."""


Reply = Answered | Failed


class Model(Protocol):
    """Promises to return whatever the world does; what it raises is our own bug.

    - One call is one request: no retry, no second model, no repair.
    - Cancelling a call ends it at once and leaves the model usable.
    - Calls may run side by side.
    - Neither text nor failure holds a key.
    """

    @property
    def name(self) -> str:
        """The model as a person would configure it; never a secret."""

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        """What so many tokens cost in dollars; None where nobody knows."""

    async def ready(self) -> None:
        """Do what needs doing once, such as loading a library: it is not the model that takes this time."""

    async def reply(self, request: ModelRequest) -> Reply: ...

    async def close(self) -> None:
        """Give back what is held; a second time is harmless."""


@dataclass(frozen=True, slots=True)
class RoleModels:
    models: tuple[Model, ...]
    why: str = ""


class ModelRegistry(Protocol):
    """Promises the same answer for the same role and round as long as it is open."""

    def models_for(self, role: str, round: int) -> RoleModels: ...
    async def close(self) -> None: ...


class Attempt(Wire):
    """One attempt at one question: what is journaled before anything is made of it, and all a replay needs."""

    role: str
    round: int = Field(ge=0)
    attempt: int = Field(ge=1)
    model: str
    request: str
    outcome: Outcome
    why: str
    raw: str
    cut: bool
    tokens_in: int = Field(ge=0)
    tokens_out: int = Field(ge=0)
    usd: Decimal | None
    estimated: bool
    latency_ms: int = Field(ge=0)

    @property
    def reply(self) -> Reply:
        """What came back then, as far as it was kept."""
        usage = Usage(self.tokens_in, self.tokens_out, self.usd, self.estimated)
        match self.outcome:
            case "ok" | "out_of_bounds" | "unsupported_figure":
                return Answered(self.raw, usage)
            case "malformed" if self.raw and not self.cut:
                return Answered(self.raw, usage)
            case fault:
                return Failed(fault, self.why, usage, self.raw, self.cut)


class DailySpend(Protocol):
    """Promises what was spent on a day by everyone who shares it, other processes included.

    `Unavailable` when the book cannot be read or written: then nothing was booked.
    """

    async def book(self, day: int, change: Spend, ceiling: Ceiling) -> bool:
        """Add `change` to the day's total in one step, unless the total would pass the ceiling.

        `day` counts from the epoch. A change may be negative (a reservation given back).
        """

    async def total(self, day: int) -> Spend: ...
