"""Wire the trading desk's cycles: checkpoints, a lock per symbol, models with the run's memory."""

import gc
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from decimal import Decimal
from typing import Any

from zuno.adapters import checkpoints
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import symbol_lock
from zuno.adapters.model.recorded import RecordedModels
from zuno.adapters.store.lease import Fences, PostgresLease
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.kernel.lock import Lease
from zuno.kernel.signing import NodeKey
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt, ModelRegistry, Spend
from zuno.markets.market import Symbol
from zuno.settings import Settings
from zuno.trading.agents.case import Case
from zuno.trading.model.bundle import Slot
from zuno.trading.run.record import RunJournal
from zuno.trading.service.run_replay import ReplayContext
from zuno.trading.service.runs import Recall
from zuno.wiring.models import Models
from zuno.wiring.version import code_version

DESK = "zuno.trading.agents"
TRACING_OFF = {
    # LangGraph brings a tracer that sends every prompt and every answer away as soon as somebody's shell says so.
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    # Read when it is imported: bytes in a checkpoint may not name a type to be made of them.
    "LANGGRAPH_STRICT_MSGPACK": "true",
}


def disable_tracing() -> None:
    """Call before LangGraph is imported, whatever the environment says."""
    os.environ.update(TRACING_OFF)


def prepare_cycles() -> None:
    disable_tracing()
    gc.set_threshold(*COLLECT_AFTER)


COLLECT_AFTER = (100_000, 20, 50)
"""A cycle keeps tens of thousands of rows alive; the default collection threshold costs a third of its time."""


def open_checkpoints(settings: Settings) -> AbstractAsyncContextManager[Any]:
    if settings.database_url is None:
        return checkpoints.sqlite_checkpoints(settings.home / "cycles.db")
    return checkpoints.postgres_checkpoints(settings.database_url.get_secret_value())


def join_recalls(*recalls: Recall) -> Recall:
    """The slots of all recalls, in order."""

    async def recall(case: Case) -> Sequence[Slot]:
        return [slot for each in recalls for slot in await each(case)]

    return recall


def symbol_lease(settings: Settings, symbol: Symbol, fences: Fences) -> Lease:
    """The lease of a symbol: among the processes of this home, or among all homes on its database."""
    if settings.database_url is None:
        return symbol_lock(settings.home, symbol)
    holder = f"process {os.getpid()} on {os.uname().nodename}"
    return PostgresLease(settings.database_url.get_secret_value(), symbol, holder, fences)


def build_run_context(
    models: Models, notebook: RunJournal, registry: ModelRegistry, *, limited: bool = True
) -> ModelContext:
    """A model context that knows what this run has asked already, and what it cost."""
    model_context = models.model_context(notebook.journal, notebook.run_id, registry, limited=limited, desk=DESK)
    for attempt in notebook.attempts:
        model_context.budget.spent += Spend(attempt.tokens_in + attempt.tokens_out, attempt.usd or Decimal(0))
    return replace(model_context, record=notebook.record, recall=notebook.recall)


async def build_rehearsal(
    models: Models, key: NodeKey, attempts: Sequence[Attempt], whys: Mapping[str, str]
) -> ReplayContext:
    """For a replay: an in-memory journal and the recorded replies."""
    journal = ChainedJournal(MemoryStore(), key, code=code_version, now=unix_millis, secrets=())
    registry = RecordedModels(attempts, whys=whys)
    return ReplayContext(
        journal,
        lambda notebook: build_run_context(models, notebook, registry, limited=False),
        registry.list_differences,
    )
