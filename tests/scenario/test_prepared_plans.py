"""An approved plan of a wallet whose key is elsewhere: prepared for an assistant, and held against its approval."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CHECKOUT
from tests.scenario.test_handed_out_service import YES, send, silently
from tests.wire.assistant_side import Assistant, assistant_at, read_text
from tests.wire.commands import run_zuno
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.chain.world import WALLET
from zuno.adapters.keys.wallets import WatchOnly
from zuno.doors.mcp import services
from zuno.doors.mcp.tools import TOOLS
from zuno.lp.model.plan_events import SafeBatch
from zuno.lp.plan.unsigned import safe_checksum
from zuno.lp.service.execution_view import UnsignedView

STARTS = {"lp_recommend_rebalance", "trade_analyze", "backtest", "prepare_plan"}


def test_no_tool_signs_sends_approves_or_cancels() -> None:
    """What a tool may ask is typed: these methods, and none that moves anything."""
    assert {name for name, tool in TOOLS.items() if tool.starts} == STARTS
    asked = {
        name
        for kind in vars(services).values()
        if getattr(kind, "_is_protocol", False) and kind.__module__ == services.__name__
        for name in vars(kind)
        if not name.startswith("_")
    }
    forbidden = ("sign", "send", "approve", "apply", "cancel", "close", "kill", "unlock", "set_", "write", "order")
    assert [name for name in asked if any(word in name for word in forbidden)] == []
    assert [name for name in vars(services.PlanPreparer) if not name.startswith("_")] == ["simulate", "prepare"]


@asynccontextmanager
async def watching(home: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> AsyncIterator[Assistant]:
    """At the simulated world, whose wallet has its key elsewhere."""
    async with assistant_at(home, **settings) as opened:
        watched: Any = WatchOnly(WALLET)
        monkeypatch.setattr(opened.zuno._signers, "of", lambda chain: watched)
        yield opened


async def test_an_assistant_prepares_what_its_owner_approved(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(home, monkeypatch) as assistant:
        execution = assistant.zuno.execution()
        plan = (await execution.close("1", "sim")).plan_id
        told = await assistant.fail("prepare_plan", plan=plan)
        assert told.startswith("refused: ")
        assert f"zuno plan approve {plan}" in told
        await execution.approve(plan, YES)
        prepared = await assistant.ask("prepare_plan", plan=plan)
        assert prepared == await assistant.ask("prepare_plan", plan=plan)
        (transaction,) = prepared["transactions"]
        assert transaction["data"].startswith("0x")
        assert len(transaction["serialized"]) > 1_000, "whole, and without a fence"
        shown = await execution.apply(plan, YES, silently)
        assert isinstance(shown, UnsignedView)
        assert [each.model_dump() for each in shown.transactions] == prepared["transactions"]
        calls = home / "calls.json"
        calls.write_text(json.dumps(prepared))
        for arguments in ((str(calls),), (str(calls), "--plan", plan)):
            ran = run_zuno(home, "plan", "check", *arguments, "--json")
            assert (ran.code, ran.document["ok"], ran.document["planHash"]) == (0, True, prepared["planHash"])
        transaction["to"] = "0x" + "ab" * 20
        calls.write_text(json.dumps(prepared))
        ran = run_zuno(home, "plan", "check", str(calls))
        assert ran.code == 5
        assert "0x" + "ab" * 20 in ran.out
        await send(assistant.zuno, await execution.prepare(plan))
        assert f"zuno plan apply {plan}" in await assistant.fail("prepare_plan", plan=plan)
        assert (await execution.apply(plan, YES, silently)).state == "confirmed"
        assert "confirmed" in await assistant.fail("prepare_plan", plan=plan)


async def test_a_safe_is_given_one_file_whose_checksum_holds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_contract(writer: SimWriter, wallet: Any) -> bool:
        return True

    monkeypatch.setattr(SimWriter, "is_contract", is_contract)
    async with watching(home, monkeypatch) as assistant:
        plan = (await assistant.zuno.advice(offline=True).rebalance("1", chain="sim", candidate=1)).plan_id
        await assistant.zuno.execution().approve(plan, YES)
        prepared = await assistant.ask("prepare_plan", plan=plan)
        assert prepared["transactions"] == []
        batch = SafeBatch.model_validate(prepared["safe"])
        assert batch.meta.checksum == safe_checksum(batch)
        result = await assistant.client.call_tool("prepare_plan", {"plan": plan})
        line = next(line for line in read_text(result).splitlines() if line.startswith("{"))
        assert json.loads(line) == prepared["safe"]


async def test_what_cannot_be_prepared_or_checked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(home, monkeypatch) as assistant:
        for wrong in ("plan_000000000000", "../../etc/passwd", ""):
            assert (await assistant.fail("prepare_plan", plan=wrong)).partition(":")[0] in ("refused", "usage")
        junk = home / "junk.json"
        junk.write_bytes(b"[1," * 1_700_000)
        missing = home / "missing.json"
        half = home / "half.json"
        half.write_text('[{"to": "0x')
        for file, code in ((junk, 3), (missing, 3), (home, 3), (half, 2)):
            ran = run_zuno(home, "plan", "check", str(file), "--plan", "plan_000000000000")
            assert (ran.code, ran.out) == (code, ""), file
            assert len(ran.err) < 400


PAGE = (CHECKOUT / "docs" / "mcp.md").read_text().split("## Three conversations")[1].split("\n## ")[0]


def unify(text: str) -> str:
    """Ids and hashes differ from home to home, fences and columns do not matter here."""
    plain = re.sub(r"</? ?untrusted ?>", "", text)
    return " ".join(re.sub(r"\b(plan|req|run)_[0-9a-f]+", r"\1", plain).split())


async def test_the_conversations_of_the_page_are_real(invented: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(invented, monkeypatch, sleeves="trend:0.6,debate:0.4") as assistant:
        answer, calls, ids, approve = "", 0, dict[str, str](), False
        for line in re.sub(r"```\n(.*?)```", r"\1", PAGE, flags=re.DOTALL).splitlines():
            if line.startswith("→ "):
                tool, arguments = line[2:].split(" ", 1)
                given = {name: ids.get(name, value) for name, value in json.loads(arguments).items()}
                if tool == "prepare_plan" and approve:
                    await assistant.zuno.execution().approve(ids["plan"], YES)
                approve = tool == "prepare_plan"
                answer = read_text(await assistant.client.call_tool(tool, given))
                while tool == "analysis_get" and ": running" in answer:
                    answer = read_text(await assistant.client.call_tool(tool, given))
                calls += 1
                for found in re.findall(r"\b(?:plan|req)_[0-9a-f]+", answer):
                    ids["plan" if found.startswith("plan") else "id"] = found
            elif answer and line != "…" and not re.match(r"you  |assistant  |  ", line):
                assert re.search(re.escape(unify(line)).replace("…", ".*"), unify(answer)), line
            else:
                answer = ""
    assert calls == 8
