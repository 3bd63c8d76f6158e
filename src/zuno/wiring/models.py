"""Wire the models: registry, budgets, breakers, prompts, record."""

from __future__ import annotations

from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING

from zuno.adapters.clock.system import SystemClock
from zuno.kernel.installation import name_install
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.journal.port import Journal
    from zuno.llm.ask import Breakers, ModelContext
    from zuno.llm.port import Attempt, ModelRegistry
    from zuno.llm.prompts import Prompts


class Models:
    def __init__(self, settings: Settings) -> None:
        self.offline = False
        """True: no model is asked, whatever keys are set."""
        self._settings = settings
        self._registry: ModelRegistry | None = None
        self._breakers: Breakers | None = None
        self._prompts: dict[str, Prompts] = {}

    def registry(self) -> ModelRegistry:
        if self.offline:
            from zuno.adapters.model.registry import ModelTable
            from zuno.llm.port import RoleModels

            return ModelTable(RoleModels((), "the tour asks no model"))
        if self._registry is None:  # one for all debates of this process: models keep connections
            self._registry = self._open_models()
        return self._registry

    def model_context(
        self,
        journal: Journal,
        request_id: str,
        registry: ModelRegistry,
        *,
        limited: bool = True,
        desk: str = "zuno.lp.agents",
        viewer: bool = False,
    ) -> ModelContext:
        """What asking a model needs; a replay (`limited` false) spends nothing. `desk`: the package whose prompts are
        read. `viewer`: asked by somebody who may only look."""
        from zuno.adapters.model.daily_spend import DailySpendFile, DailySpendInMemory
        from zuno.journal.port import Author
        from zuno.llm.ask import Breakers, ModelContext
        from zuno.llm.budget import DayShare, Limits, RunBudget
        from zuno.llm.port import Ceiling
        from zuno.llm.prompts import Prompts

        settings, clock = self._settings, SystemClock()
        limits = Limits(
            Ceiling(settings.budget_tokens_per_run, settings.budget_usd_per_run),
            Ceiling(settings.budget_tokens_per_day, settings.budget_usd_per_day),
        )

        async def record(attempt: Attempt) -> None:
            await journal.append(
                kind="model_attempt", author=Author(attempt.role), payload=attempt, request_id=request_id
            )

        self._breakers = self._breakers or Breakers()  # a model that is down stays so in the next debate
        days = DailySpendFile(settings.home / "spend.json") if limited else DailySpendInMemory()
        share = None
        if viewer:
            limit = Ceiling(settings.budget_tokens_per_day_viewers)
            share = DayShare(limit, DailySpendFile(settings.home / "spend-viewers.json"))
        return ModelContext(
            registry=registry,
            prompts=self._prompts.setdefault(desk, Prompts(desk)),
            budget=RunBudget(limits if limited else Limits(), days, clock, share),
            breakers=self._breakers if limited else Breakers(threshold=None),
            record=record,
            clock=clock,
            stopwatch=perf_counter,
            timeout=settings.model_timeout_seconds,
        )

    async def close(self) -> None:
        if self._registry is not None:
            await self._registry.close()
            self._registry = None

    def _open_models(self) -> ModelRegistry:
        from zuno.adapters.model.registry import ModelKeys, open_models
        from zuno.adapters.model.vendors import Price

        settings = self._settings
        prices = {name: Price(*usd) for name, usd in settings.model_prices.items()}
        hosts = {host: key.get_secret_value() for host, key in settings.model_keys.items()}
        keys = ModelKeys(settings.vendor_keys(), hosts)
        table = settings.model_table()
        table["reader"] = table["scout"]  # who puts a market into words can read a line
        return open_models(table, keys, prices, settings.deterministic)


def missing_models() -> str | None:
    """The command that installs the vendors' libraries; None if they are installed."""
    return name_install("models") if find_spec("pydantic_ai") is None else None
