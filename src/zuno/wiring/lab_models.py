"""What labs share: where reports are written, where tasks run, and the models of a backtest with their kept replies."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from zuno.adapters.store.report_files import FolderOfReports
from zuno.adapters.worker_processes import DaskCluster, TaskRunner, run_in_processes
from zuno.kernel.canonical import Json
from zuno.lab.replies import KeptOrConfigured, ReplyBook, RoleTable, describe_models
from zuno.lab.reports import LabReports
from zuno.llm.port import ModelRegistry
from zuno.settings import Settings, agent_roles, read_settings
from zuno.wiring.models import Models, missing_models

M = TypeVar("M")
REPLIES: Final = "replies"
FRESH_REPLIES: Final = "replies-aa"


async def follow(work: Callable[[Callable[[M], None]], Coroutine[Any, Any, None]]) -> AsyncGenerator[M, None]:
    """What some work tells as it goes on, until it ends; what it raises is raised."""
    heard: asyncio.Queue[M] = asyncio.Queue()
    running = asyncio.ensure_future(work(heard.put_nowait))
    try:
        while True:
            getting = asyncio.ensure_future(heard.get())
            await asyncio.wait({running, getting}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                getting.cancel()
                break
            yield getting.result()
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def name_models(home: Path, desk: str) -> dict[str, Json]:
    lab_models = LabModels(str(home), home)
    try:
        return lab_models.name_models(desk)
    finally:
        await lab_models.close()


class LabModels:
    def __init__(self, home: str | None, folder: Path) -> None:
        """`home`: whose models are asked; None: no models. `folder`: the home of the default settings then."""
        self.asks = home is not None
        self.settings = (
            Settings(home=folder, deterministic=True) if home is None else read_settings(os.environ, Path(home))
        )
        self.models = Models(self.settings)
        self.books: dict[str, ReplyBook] = {}
        if home is not None:
            self.models.offline = missing_models() is not None
            Path(home).mkdir(mode=0o700, parents=True, exist_ok=True)
            files = FolderOfReports(Path(home) / "lab")
            self.books = {
                name: ReplyBook(files, name, partial(self._describe, name)) for name in (REPLIES, FRESH_REPLIES)
            }

    def registry(self, book: str) -> ModelRegistry:
        """The configured models; for a role without one, those whose replies are kept."""
        registry = self.models.registry()
        return KeptOrConfigured(registry, self.books[book]) if self.asks else registry

    def can_answer(self, role: str, book: str = REPLIES) -> bool:
        """Whether a role has a model, or kept replies."""
        configured = bool(self.models.registry().models_for(role, 0).models)
        return configured or (self.asks and self.books[book].has_reply(role))

    async def close(self) -> None:
        await self.models.close()

    def name_models(self, desk: str) -> dict[str, Json]:
        registry = self.registry(REPLIES)
        names: dict[str, Json] = {
            role: [model.name for model in registry.models_for(role, 0).models] for role in agent_roles()[desk]
        }
        return {"models": names, **({"rounds": self.settings.max_debate_rounds} if desk == "lp" else {})}

    async def _describe(self, book: str) -> RoleTable:
        return await describe_models(self.registry(book), [role for desk in agent_roles().values() for role in desk])


def open_reports(home: Path) -> LabReports:
    return LabReports(FolderOfReports(home / "lab"))


def choose_runner(cluster: str | None = None) -> TaskRunner:
    return run_in_processes if cluster is None else DaskCluster(cluster)
