"""Whether everything that is configured works, line by line, and what to do where it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from zuno.kernel.errors import ZunoError
from zuno.kernel.view import ForeignText, VerdictView, View

State = Literal["ok", "warn", "fail", "off"]


class CheckView(View):
    """One line. `off`: not configured, and nothing is wrong with that."""

    topic: str
    """home, store, keys, clock, market, models, chains, memory, pushes, outbox, venue, mandate, record."""
    state: State
    text: ForeignText
    advice: str = ""
    """What to do; empty where nothing is to be done."""


class DoctorView(VerdictView):
    """`ok` is false where a line failed; with `live`, what trading with money needs may not be off."""

    live: bool
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at. Raised errors are its failure. `needed_live`: off is a failure before money is traded."""

    topic: str
    look: Callable[[], Awaitable[Sequence[CheckView]]]
    advice: str = ""
    needed_live: bool = False


class Doctor:
    """Runs every check; none of them changes anything."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = checks

    async def examine(self, *, live: bool = False) -> DoctorView:
        results = await asyncio.gather(*(self._look(check, live) for check in self._checks))
        lines = tuple(line for lines in results for line in lines)
        return DoctorView(ok=all(line.state != "fail" for line in lines), live=live, checks=lines)

    async def _look(self, check: Check, live: bool) -> list[CheckView]:
        try:
            lines = list(await check.look())
        except ZunoError as error:
            return [CheckView(topic=check.topic, state="fail", text=str(error), advice=check.advice)]
        if not live or not check.needed_live:
            return lines
        return [line.model_copy(update={"state": "fail"}) if line.state == "off" else line for line in lines]
