"""The trading desk's cycles with their plugs: checkpoints, a lease for each symbol, minds that remember."""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from zuno.settings import Settings
from zuno.wiring.minds import Models
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.model.recorded import RecordedSeats
    from zuno.agents.ask import Minds
    from zuno.app.cycle import Cycles, Rehearsal, Slots
    from zuno.app.trading import TradingDesk
    from zuno.desks.trading.notebook import Notebook
    from zuno.domain.trading import Symbol
    from zuno.ports.alerts import Seat
    from zuno.ports.journal import Journal
    from zuno.ports.model import Attempt, Seats
    from zuno.ports.signing import NodeKey

DESK = "zuno.desks.trading"
QUIET = {
    # LangGraph brings a tracer that sends every prompt and every answer away as soon as somebody's shell says so.
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    # Read when it is imported: bytes in a checkpoint may not name a type to be made of them.
    "LANGGRAPH_STRICT_MSGPACK": "true",
}


def hush() -> None:
    """Before LangGraph is imported, whatever the environment says."""
    os.environ.update(QUIET)


COLLECT_AFTER = (100_000, 20, 50)
"""A cycle reads rows by the ten thousands and keeps them while it lasts: to go through all of them whenever seven
hundred more have come costs a third of its time."""


def cycles_of(
    settings: Settings,
    desk: TradingDesk,
    journal: Callable[[], Awaitable[Journal]],
    key: NodeKey,
    models: Models,
    held: Slots,
) -> Cycles:
    from zuno.adapters.clock.system import unix_millis
    from zuno.app.cycle import Backing, Cycles

    hush()
    gc.set_threshold(*COLLECT_AFTER)

    def lease(symbol: Symbol) -> Seat:
        from zuno.adapters.store.seats import SymbolSeat

        return SymbolSeat(settings.home, symbol)

    def checkpoints() -> AbstractAsyncContextManager[Any]:
        if settings.database_url is not None:
            from zuno.adapters.checkpoints.postgres import postgres_checkpoints

            return postgres_checkpoints(settings.database_url.get_secret_value())
        from zuno.adapters.checkpoints.sqlite import sqlite_checkpoints

        return sqlite_checkpoints(settings.home / "cycles.db")

    async def rehearse(attempts: Sequence[Attempt], whys: Mapping[str, str]) -> Rehearsal:
        return _rehearsal(models, key, attempts, whys)

    return Cycles(
        desk,
        Backing(
            journal=journal,
            held=held,
            minds=lambda notebook: remembering(models, notebook, models.seats()),
            checkpoints=checkpoints,
            lease=lease,
            rehearse=rehearse,
            now=unix_millis,
            random=os.urandom,
            code=code_version,
        ),
    )


def remembering(models: Models, notebook: Notebook, seats: Seats, *, limited: bool = True) -> Minds:
    """Minds that know what was asked in this run already, and what it cost."""
    from decimal import Decimal

    from zuno.domain.spend import Spend

    minds = models.minds(notebook.journal, notebook.run_id, seats, limited=limited, desk=DESK)
    for attempt in notebook.attempts:
        minds.budget.spent += Spend(attempt.tokens_in + attempt.tokens_out, attempt.usd or Decimal(0))
    return replace(minds, record=notebook.record, recall=notebook.recall)


def _rehearsal(models: Models, key: NodeKey, attempts: Sequence[Attempt], whys: Mapping[str, str]) -> Rehearsal:
    """A journal that is forgotten, and seats that say again what was said."""
    from zuno.adapters.clock.system import unix_millis
    from zuno.adapters.model.recorded import RecordedSeats
    from zuno.adapters.store.memory import MemoryStore
    from zuno.app.cycle import Rehearsal
    from zuno.memory.journal import ChainedJournal

    journal = ChainedJournal(MemoryStore(), key, code=code_version, now=unix_millis, secrets=())
    seats = RecordedSeats(attempts, whys=whys)
    return Rehearsal(
        journal, lambda notebook: remembering(models, notebook, seats, limited=False), lambda: noticed(seats)
    )


def noticed(seats: RecordedSeats) -> tuple[str, ...]:
    """What a rehearsal asked differently, and what it never asked for."""
    unheard = (f"{one.role}, round {one.round}: a recorded reply was not asked for" for one in seats.unheard)
    return (*seats.differences, *unheard)
