"""A home on the simulated chain whose owner grants mandates, and a monitor that looks once at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zuno.kernel.notify import Notice
from zuno.kernel.units import Millis
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.mandate_book import MandateBook, load_mandates
from zuno.lp.execute.plan_state import PlanProgress, load_progress
from zuno.lp.service.mandate_acts import MandateActor
from zuno.lp.service.mandates import LpMandatesView, MandateRequest
from zuno.lp.watch.plan_notices import PlanNotices
from zuno.lp.watch.rules import WalletReading
from zuno.wiring import Application, open_zuno

EDGE = "1"
Change = Callable[[ExecutionContext], ExecutionContext]


def agree(word: str, what: str) -> bool:
    return True


@dataclass
class MandatedHome:
    """Whatever `change` makes of the execution context is what the monitor acts with."""

    zuno: Application
    chain: str = "sim"
    later: int = 0
    """Milliseconds by which the monitor's clock is ahead."""
    change: Change = lambda context: context
    told: list[str] = field(default_factory=list)

    async def grant(self, **terms: Any) -> LpMandatesView:
        wanted = {"positions": [EDGE], "worth_per_day": "100000", "chain": self.chain, **terms}
        return await self.zuno.mandates().grant(MandateRequest(**wanted), agree)

    async def move(self, percent: str) -> None:
        await self.zuno.sim().move(percent)

    def now(self) -> Millis:
        from zuno.adapters.clock.system import unix_millis

        return Millis(unix_millis() + self.later)

    def actor(self) -> MandateActor:
        """A monitor's actor as after a start: it remembers nothing but what is stored."""
        made = self.zuno._build_actor()
        whole = made.execution.context_of

        async def open_context(chain: str) -> ExecutionContext:
            return self.change(replace(await whole(chain), now=self.now))

        made.execution = replace(made.execution, context_of=open_context)
        made.now, made.tell = self.now, self.told.append
        return made

    async def look(self, actor: MandateActor | None = None) -> None:
        """One round of the monitor on this chain."""
        opened = self.zuno._chains.current_chain(self.chain)
        wallet = await opened.wallet()
        assert wallet is not None
        reading = WalletReading(wallet, (await opened.holdings(wallet)).snapshot.positions, complete=True)
        await (actor or self.actor()).act(self.chain, (reading,))

    async def fall(self, actor: MandateActor | None = None, first: str = "-5", again: str = "-0.1") -> None:
        """The price goes beyond a level, and a monitor looks at two blocks."""
        await self.move(first)
        await self.look(actor)
        await self.move(again)
        await self.look(actor)

    async def held(self) -> set[int]:
        opened = self.zuno._chains.current_chain(self.chain)
        wallet = await opened.wallet()
        assert wallet is not None
        return set((await opened.owned(wallet)).ids)

    async def book(self) -> MandateBook:
        return await load_mandates(await self.zuno._open_journal())

    async def plans(self) -> list[PlanProgress]:
        """Of every act that was decided, oldest first."""
        journal = await self.zuno._open_journal()
        return [await load_progress(journal, act.plan_id) for _, act in (await self.book()).acts]

    async def pushes(self) -> list[Notice]:
        """What the journal says to the owner, oldest first."""
        journal, source = await self.zuno._open_journal(), PlanNotices()
        entries = [entry for kind in source.kinds async for entry in journal.entries(kind=kind)]
        entries.sort(key=lambda entry: entry.seq)
        keyed = [each for entry in entries for each in await source.describe(entry, journal)]
        assert len({key for key, _ in keyed}) == len(keyed)
        return [notice for _, notice in keyed]


@asynccontextmanager
async def mandated_home(home: Path) -> AsyncIterator[MandatedHome]:
    zuno = open_zuno(str(home))
    try:
        yield MandatedHome(zuno)
    finally:
        await zuno.close()
