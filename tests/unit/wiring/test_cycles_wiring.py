"""Cycles as wiring makes them: a budget that outlives a process, what a replay notices, a server if one is named."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.model.recorded import RecordedModels
from zuno.adapters.model.registry import ModelTable
from zuno.llm.port import Attempt, ModelRequest, RoleModels, Turn
from zuno.settings import read_settings
from zuno.trading.run.record import RunJournal
from zuno.wiring import Application
from zuno.wiring.cycles import build_run_context
from zuno.wiring.models import Models


def attempt(role: str = "judge", tokens: int = 100, usd: str = "0.25") -> Attempt:
    return Attempt(
        role=role, round=0, attempt=1, model="m", request="asked", outcome="ok", why="", raw="{}", cut=False,
        tokens_in=tokens, tokens_out=50, usd=Decimal(usd), estimated=False, latency_ms=1,
    )  # fmt: skip


async def test_what_a_run_spent_before_it_died_counts_when_it_is_resumed(tmp_path: Path) -> None:
    house = Application(read_settings({}, tmp_path))
    models = Models(read_settings({}, tmp_path))
    notebook = RunJournal(await house._open_journal(), "run_0123456789abcdef")
    await notebook.record(attempt())
    await notebook.record(attempt("meta", 20, "0.10"))
    again = await RunJournal(notebook.journal, notebook.run_id).open()
    budget = build_run_context(models, again, ModelTable(RoleModels((), "nobody"))).budget
    assert (budget.spent.tokens, budget.spent.usd) == (220, Decimal("0.35"))
    assert isinstance(await budget.reserve(10, Decimal("0.16")), str), "50 cents is what a run may spend"
    await house.close()


async def test_a_rehearsal_notices_what_is_asked_differently_and_what_is_not_asked() -> None:
    registry = RecordedModels([attempt(), attempt("meta")])
    assert len(registry.list_differences()) == 2
    (model,) = registry.models_for("judge", 0).models
    request = ModelRequest("judge", 0, 1, "", (Turn("user", ""),), "x", "{}", 10, 1.0, fingerprint="otherwise")
    await model.reply(request)
    assert [said.partition(":")[0] for said in registry.list_differences()] == [
        "judge, round 0, attempt 1",
        "meta, round 0",
    ]


@pytest.mark.parametrize("url", [None, "postgresql://nobody:secret@127.0.0.1:9/none"])
async def test_checkpoints_are_kept_where_the_journal_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None
) -> None:
    from zuno.adapters import checkpoints

    opened: list[Any] = []
    monkeypatch.setattr(checkpoints, "sqlite_checkpoints", lambda path: opened.append(path))
    monkeypatch.setattr(checkpoints, "postgres_checkpoints", lambda given: opened.append(given))
    if url is not None:
        monkeypatch.setenv("ZUNO_DATABASE_URL", url)
    house = Application(read_settings({"ZUNO_DATABASE_URL": url} if url else {}, tmp_path))
    house.cycles()._with.checkpoints()
    assert opened == [tmp_path / "cycles.db" if url is None else url]
    await house.close()
