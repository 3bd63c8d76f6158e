"""Replies of models, kept by the request they answered: a study runs again without a key, to the same bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from zuno.kernel.units import Millis
from zuno.lab.reports import ReportFiles, whole_lines
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt, Failed, ModelRequest, Outcome, Reply, RoleModels

_KEPT: Final[frozenset[Outcome]] = frozenset({"ok", "malformed", "out_of_bounds", "unsupported_figure"})
"""What a model said. That nobody answered is no reply, and is asked again."""


PriceModel: TypeAlias = Callable[[str, int, int], Awaitable[Decimal | None]]


class ReplyBook:
    """`replies.jsonl` of the lab's folder, or another file of the same form for replies that are to be fresh."""

    def __init__(self, files: ReportFiles, name: str, price: PriceModel | None = None) -> None:
        """`price`: what tokens of a model by its name take; else nothing."""
        self._price = price
        self._files, self._name = files, f"{name}.jsonl"
        lines = whole_lines(files.read(self._name))
        self._attempts = {attempt.request: attempt for attempt in map(Attempt.model_validate_json, lines)}

    def recall(self, request: ModelRequest) -> Attempt | None:
        return self._attempts.get(request.fingerprint)

    async def record(self, attempt: Attempt) -> None:
        if attempt.outcome in _KEPT and attempt.request not in self._attempts:
            self._attempts[attempt.request] = attempt
            self._files.add_lines(self._name, [attempt.model_dump_json(by_alias=True)])

    def models_for(self, role: str, round: int) -> RoleModels:
        """The models of which replies to this role are kept: a registry for whoever has no key."""
        names = sorted({attempt.model for attempt in self._attempts.values() if attempt.role == role})
        models = tuple(_KeptModel(name, self._price) for name in names)
        return RoleModels(models, "" if models else "no model is configured and no reply is kept")

    async def close(self) -> None:
        return None


class ModelCharge(NamedTuple):
    """What one reply took, fresh or kept: an arm pays for what it heard."""

    at: Millis
    tokens: int
    usd: Decimal
    model: str
    """Empty where nothing was said."""


class ModelMeter:
    """Counts what the models of one arm took."""

    def __init__(self, now: Callable[[], Millis]) -> None:
        self._now = now
        self.charges: list[ModelCharge] = []

    def add(self, attempt: Attempt) -> None:
        spent = attempt.usd if attempt.usd is not None else Decimal(0)
        said = attempt.model if attempt.outcome in _KEPT else ""
        self.charges.append(ModelCharge(self._now(), attempt.tokens_in + attempt.tokens_out, spent, said))


def keep_replies(minds: ModelContext, book: ReplyBook, meter: ModelMeter) -> ModelContext:
    """Asks only what the book does not hold, and keeps what is answered."""

    def recall(request: ModelRequest) -> Attempt | None:
        known = book.recall(request)
        if known is not None:
            meter.add(known)
        return known

    async def record(attempt: Attempt) -> None:
        await minds.record(attempt)
        await book.record(attempt)
        meter.add(attempt)

    return replace(minds, recall=recall, record=record)


def draw_again(minds: ModelContext, number: int) -> ModelContext:
    """The same minds, whose replies to the same requests are others: the first of them is 0."""
    if not number:
        return minds

    def recall(request: ModelRequest) -> Attempt | None:
        return minds.recall(replace(request, fingerprint=f"{request.fingerprint}/{number}"))

    async def record(attempt: Attempt) -> None:
        await minds.record(attempt.model_copy(update={"request": f"{attempt.request}/{number}"}))

    return replace(minds, recall=recall, record=record)


class _KeptModel:
    """Known by name alone: what is not in the book it cannot answer."""

    def __init__(self, name: str, price: PriceModel | None) -> None:
        self.name = name
        self._price = price

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        return Decimal(0) if self._price is None else await self._price(self.name, tokens_in, tokens_out)

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Reply:
        return Failed("unavailable", "no reply to this request is kept")

    async def close(self) -> None:
        return None
