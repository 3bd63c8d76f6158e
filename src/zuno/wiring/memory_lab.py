"""Wire the study of memory: markets with planted setups, and for each arm a memory of its own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.task_runner import TaskRunner
    from zuno.kernel.units import Millis
    from zuno.lab.memory_service import MemoryPlan, MemoryStudy
    from zuno.lab.memory_study import Arm, ArmDesk, MemoryMarket, MemoryMoment, World
    from zuno.llm.ask import ModelContext
    from zuno.trading.model.memory import PostMortem
    from zuno.trading.ports.recall import MemoryIndex
    from zuno.trading.run.record import RunJournal

CODE = "study"


def build_memory_study(run: TaskRunner) -> MemoryStudy:
    from zuno.lab.memory_service import MemoryStudy
    from zuno.trading.model.market import Symbol

    return MemoryStudy(partial(run, study_memory_plan), lambda seed: len(memory_moments(seed)) * len(Symbol))


async def study_memory_plan(plan: MemoryPlan) -> AsyncIterator[MemoryMoment]:
    """One market, in a folder of its own that goes with it."""
    from zuno.lab.memory_study import Arm, study_memory
    from zuno.wiring.cycles import disable_tracing

    disable_tracing()
    with tempfile.TemporaryDirectory(prefix="zuno-study-") as name:
        folder = Path(name)
        market = await open_planted_market(plan.seed, plan.world, folder)
        try:
            desks = [build_arm(arm, plan.seed, folder) for arm in Arm]
            async for moment in study_memory(market, desks):
                yield moment
        finally:
            await market.store.close()


async def open_planted_market(seed: int, world: World, folder: Path) -> MemoryMarket:
    from zuno.adapters.series.sqlite import SqliteSeries
    from zuno.adapters.venues.synthetic.path import END
    from zuno.adapters.venues.synthetic.planted import planted_batches, planted_origin
    from zuno.kernel.units import Millis
    from zuno.lab.memory_study import MemoryMarket, World

    consequences = world is World.PLANTED
    origin = planted_origin(seed, consequences=consequences)
    store = SqliteSeries(folder / "market", origin)
    await store.renew(origin, await asyncio.to_thread(planted_batches, seed, consequences=consequences))
    return MemoryMarket(seed, world, store, memory_moments(seed), Millis(END))


def memory_moments(seed: int) -> tuple[tuple[Millis, str], ...]:
    """When the signs of each slot are there, as long as a trade can still be seen to its end."""
    from zuno.adapters.venues.synthetic.path import END, MINUTES_FROM
    from zuno.adapters.venues.synthetic.planted import SHOWN_MS, planted_slots
    from zuno.kernel.units import Millis
    from zuno.lab.memory_study import LONGEST_MS
    from zuno.trading.model.market import DAY_MS

    return tuple(
        (Millis(start + SHOWN_MS), setup)
        for start, setup in planted_slots(seed)
        if MINUTES_FROM + 5 * DAY_MS <= start <= END - LONGEST_MS - DAY_MS
    )


def build_arm(arm: Arm, seed: int, folder: Path) -> ArmDesk:
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.memory.hashed import HashedEmbedder
    from zuno.adapters.memory.in_memory import InMemoryIndex
    from zuno.adapters.memory.jsonl import JsonlMemory
    from zuno.adapters.store.memory import MemoryStore
    from zuno.journal.journal import ChainedJournal
    from zuno.journal.port import Author, Journal
    from zuno.kernel.units import Millis
    from zuno.lab.memory_study import Arm, ArmDesk, ShuffledIndex
    from zuno.trading.learn.memory_book import LessonBook, MemoryBook, memory_record
    from zuno.trading.learn.recall import CaseRecall
    from zuno.trading.model.memory import POST_MORTEM
    from zuno.trading.run.record import RunJournal
    from zuno.wiring.cycles import build_run_context
    from zuno.wiring.models import Models

    key = KeyFile(folder / "keys")
    key.ensure()
    models = Models(Settings(home=folder, deterministic=True))

    def new_journal() -> ChainedJournal:
        return ChainedJournal(MemoryStore(), key, code=lambda: CODE, now=lambda: Millis(0))

    journal = new_journal()

    async def open_journal() -> Journal:
        return journal

    def model_context(notebook: RunJournal) -> ModelContext:
        return build_run_context(models, notebook, models.registry())

    index: MemoryIndex = InMemoryIndex(HashedEmbedder())
    if arm is Arm.SHUFFLED:
        index = ShuffledIndex(index, seed)
    elif arm is Arm.RECENT:
        index = JsonlMemory(folder / f"{arm}.jsonl")
    lessons = LessonBook(open_journal)
    book = MemoryBook(open_journal)

    async def remember(post_mortem: PostMortem) -> None:
        await journal.append_once(
            kind=POST_MORTEM, author=Author("post_mortem"), payload=post_mortem, request_id=post_mortem.id
        )
        await index.add([memory_record(post_mortem)])
        if arm is Arm.LESSONS:
            cases = (await book.read()).values()
            await lessons.correct(cases, post_mortem.origin, Millis(post_mortem.closed + 1), model_context)

    return ArmDesk(
        arm=arm,
        recall=None if arm is Arm.OFF else CaseRecall(index, book, lessons),
        remember=remember,
        model_context=model_context,
        open_journal=lambda: RunJournal(new_journal(), "run_0000000000000000"),
    )
