"""A line that the rules cannot read, in a house where a model is seated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.wire.model_server import chat, serving
from zuno.wiring import open_zuno

pytest.importorskip("pydantic_ai")
LINE = "gimme the lowdown on numero 7"


def said(intent: str, *slots: tuple[str, str]) -> bytes:
    return chat(json.dumps({"intent": intent, "slots": [{"name": name, "text": text} for name, text in slots]}))


async def test_a_seated_model_reads_the_line_and_is_on_record(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(lambda heard: said("inspect", ("position", "7"))) as server:
        monkeypatch.setenv("ZUNO_AGENT_MODEL", f"{server.origin}/v1#tiny")
        zuno = open_zuno(str(home))
        reading = await zuno.interpreter().read(LINE)
        tail = await zuno.audit().page(5)
        verdict = await zuno.audit().verify()
        await zuno.close()
    assert reading is not None
    assert reading.source == "model"
    assert reading.command() == ("lp", "inspect", "7")
    assert [(entry.kind, entry.role) for entry in tail.entries] == [("model_attempt", "reader")]
    assert verdict.ok
    assert (home / "spend.json").exists(), "the day's budget counts it"


async def test_a_model_that_says_approve_is_not_heard(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(lambda heard: said("approve", ("plan", "plan_0123456789ab"))) as server:
        monkeypatch.setenv("ZUNO_AGENT_MODEL", f"{server.origin}/v1#tiny")
        zuno = open_zuno(str(home))
        reading = await zuno.interpreter().read(f"{LINE} plan_0123456789ab")
        await zuno.close()
        assert len(server.heard) == 2, "once, and once more with its error named"
    assert reading is None


async def test_without_a_model_nothing_is_opened(home: Path) -> None:
    zuno = open_zuno(str(home))
    assert await zuno.interpreter().read(LINE) is None
    await zuno.close()
    assert not (home / "journal.db").exists()
