"""Whether everything that is configured works, line by line, and what to do where it does not."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from zuno.kernel.errors import ZunoError
from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.present.document import Document, Fact, Tone, document, facts, lines
from zuno.present.values import foreign, good, warn

State = Literal["ok", "warn", "fail", "off"]
_TONES: Final = {"ok": Tone.GOOD, "warn": Tone.WARN, "fail": Tone.BAD, "off": Tone.QUIET}


class CheckView(View):
    """One line. `off`: not configured, and nothing is wrong with that."""

    topic: str
    """home, config, store, keys, clock, market, models, chains, memory, pushes, outbox, venue, mandate, sleeve,
    record."""
    state: State
    text: ForeignText
    advice: str = ""
    """What to do; empty where nothing is to be done."""


class DoctorView(VerdictView):
    """`ok` is false where a line failed; with `live`, what trading with money needs may not be off."""

    live: bool
    checks: tuple[CheckView, ...]

    def to_document(self) -> Document:
        failed = [check.text if check.topic == "record" else check.topic for check in self.checks_in("fail")]
        warned = [check.topic for check in self.checks_in("warn")]
        if failed:
            end = foreign(f"not ready: {', '.join(dict.fromkeys(failed))}", Tone.BAD)
        elif warned:
            end = warn(f"ready, with warnings: {', '.join(dict.fromkeys(warned))}")
        else:
            end = good("ready" if self.ok else "not ready")
        rows = [
            Fact(
                check.topic,
                foreign(f"{check.state} · {check.text}", _TONES[check.state]),
                notes=(check.advice,) if check.advice else (),
            )
            for check in self.checks
        ]
        return document("Checks before live trading" if self.live else "Checks", facts(*rows), lines(end))

    def checks_in(self, state: State) -> list[CheckView]:
        return [check for check in self.checks if check.state == state]


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
