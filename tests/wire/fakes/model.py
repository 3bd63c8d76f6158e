"""A model that says what it is told to: the shipped fake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal

from zuno.llm.port import Answered, Failed, ModelRequest, Reply, Usage


class Silence:
    """The line of a model that never answers."""


Line = str | Answered | Failed | Silence
Script = Callable[[ModelRequest], Line]


class ScriptedModel:
    """Speaks the script's line for each request, after a fixed time. Keeps what it was asked."""

    def __init__(
        self,
        script: Script,
        name: str = "scripted",
        *,
        usage: tuple[int, int] | None = (100, 50),
        usd_per_token: Decimal | None = Decimal(0),
        seconds: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._script = script
        self.name = name
        self._usage = usage
        self._usd_per_token = usd_per_token
        self._seconds = seconds
        self._sleep = sleep
        self.asked: list[ModelRequest] = []

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        return None if self._usd_per_token is None else self._usd_per_token * (tokens_in + tokens_out)

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Reply:
        self.asked.append(request)
        line = self._script(request)
        if self._seconds:
            await self._sleep(self._seconds)
        if isinstance(line, Silence):
            await asyncio.Event().wait()
        if isinstance(line, Answered | Failed):
            return line
        usage = None
        if self._usage is not None:
            usage = Usage(*self._usage, usd=await self.price(*self._usage))
        return Answered(str(line), usage)

    async def close(self) -> None:
        return None


def in_order(lines: Iterable[Line]) -> Script:
    """One line after the other, whatever is asked; an unexpected request is a `StopIteration` of the test's own."""
    remaining = iter(lines)
    return lambda request: next(remaining)
