"""What models cost: every attempt counts once, under its role and UTC day; what has no price adds nothing."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.doors.costs import ModelCosts
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.units import Millis
from zuno.llm.port import Attempt

DAY_MS = 86_400_000


def attempt(role: str, usd: str | None, outcome: str = "ok") -> Attempt:
    return Attempt.model_validate(
        {
            "role": role,
            "round": 0,
            "attempt": 1,
            "model": "m",
            "request": "f" * 64,
            "outcome": outcome,
            "why": "",
            "raw": "{}",
            "cut": False,
            "tokens_in": 100,
            "tokens_out": 10,
            "usd": None if usd is None else Decimal(usd),
            "estimated": False,
            "latency_ms": 5,
        }
    )


async def test_attempts_are_summed_by_role_and_day(tmp_path: Path) -> None:
    key, clock = KeyFile(tmp_path / "desk.key"), [Millis(10 * DAY_MS)]
    key.ensure()
    journal = ChainedJournal(MemoryStore(), key, code=lambda: "test", now=lambda: clock[0])
    for day, given in (
        (10, attempt("judge", "0.1")),
        (10, attempt("judge", "0.2", "timeout")),
        (11, attempt("judge", None)),
        (11, attempt("critic", "0.05")),
    ):
        clock[0] = Millis(day * DAY_MS + DAY_MS - 1)
        await journal.append(kind="model_attempt", author=Author(given.role), payload=given, request_id="run_1")
    view = await ModelCosts(journal).show()
    assert [(row.day, row.role, row.attempts, row.failed, row.unpriced) for row in view.rows] == [
        ("1970-01-12", "critic", 1, 0, 0),
        ("1970-01-12", "judge", 1, 0, 1),
        ("1970-01-11", "judge", 2, 1, 0),
    ]
    assert view.rows[2].usd == pytest.approx(0.3)
    assert (view.attempts, view.unpriced, view.cut) == (4, 1, False)
    assert view.usd == pytest.approx(0.35)
