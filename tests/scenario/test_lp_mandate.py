"""A mandate on the real contracts: it exits while nobody looks, and tells its owner; a reorg changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from tests.scenario.test_gate_devnet import Desk, Script, desk, house, node, plan_id  # noqa: F401  # fixtures
from tests.wire.bot_api import CHAT, TOKEN, bot_api
from zuno.lp.execute.gate import ActReason, Gate
from zuno.lp.execute.mandates import append_mandate_event
from zuno.lp.execute.plan_state import PlanProgress, append_event, load_progress
from zuno.lp.model.mandate import ExitTerms, LpMandate, MandatedAct, MandateGranted
from zuno.lp.model.plan import PlanState, StepKind
from zuno.lp.model.plan_events import Action, Instruction, PlanInstructed
from zuno.lp.rules.mandate import hash_mandate, mandate_bytes, plan_swap

Zuno = Callable[..., Any]
HERE = {"ZUNO_CHAIN_ID": "devnet"}


async def test_a_mandate_exits_while_nobody_looks_and_tells_its_owner(devnet: Zuno) -> None:
    async def run(*words: str, **settings: str) -> Any:
        ran = await asyncio.to_thread(devnet, *words, **{**HERE, **settings})
        assert ran.code == 0, ran.err
        return ran

    async def held() -> set[str]:
        return {each["id"] for each in (await run("lp", "positions", "--json")).document["positions"]}

    async with bot_api() as bot:
        told = {
            "ZUNO_TELEGRAM_BOT_TOKEN": TOKEN,
            "ZUNO_TELEGRAM_CHAT_ID": CHAT,
            "ZUNO_TELEGRAM_API_BASE_URL": bot.url,
        }
        terms = ("--position", "1", "--exit-below", "3000", "--to", "token1", "--worth-per-day", "100000")
        await run("lp", "mandate", "grant", *terms, "--yes")
        await run("devnet", "move", "--percent", "-5")
        await run("monitor", "once", **told)
        assert "1" in await held()
        await run("devnet", "move", "--percent", "-0.1")
        await run("monitor", "once", **told)
        assert "1" not in await held()
        texts = list(bot.arrived)
    plan = (await run("plan", "list", "--json")).document["plans"][0]
    assert (plan["choice"], plan["state"]) == ("close", "confirmed")
    status = (await run("plan", "status", plan["planId"], "--json")).document
    assert [step["kind"] for step in status["steps"]][-1] == "swap"
    (began,) = [text for text in texts if "By your mandate: exit" in text]
    assert "critic" in began
    assert any("Plan applied" in text and plan["planId"] in text for text in texts)
    await run("lp", "mandate", "revoke")


async def test_an_exit_at_a_price_that_is_reorganised_away_is_done_once(desk: Desk, plan_id: str) -> None:  # noqa: F811
    """Its bytes are sent again: the owner's level was reached, and there is one burn whatever the next blocks say."""
    position, hands, node = await desk.position(), desk.hands, desk.node  # noqa: F811
    now = hands.now()
    pool = position.pool
    price = pool.price * 10 ** (pool.token0.decimals - pool.token1.decimals)
    ends = ExitTerms(below=round(float(price) * 1.01), worst_percent=5, to="token1")
    mandate = LpMandate(
        chain="devnet",
        chain_id=hands.info.id,
        genesis=await hands.writer.genesis(),
        wallet=hands.wallet,
        positions=(position.id,),
        acts=(MandatedAct.EXIT,),
        exit=ends,
        worth_usd_per_day=10**6,
        gas_per_day=10**18,
        least_gap=3_600,
        granted=now,
        expires=now + 86_400_000,
    )
    name = hash_mandate(mandate)
    signature = hands.key.sign(mandate_bytes(mandate)).hex()
    await append_mandate_event(hands.journal, MandateGranted(mandate=mandate, hash=name, signature=signature))
    told = Instruction(
        action=Action.CLOSE,
        chain="devnet",
        pool_id=pool.id,
        tick=pool.tick,
        position_id=position.id,
        swap_home=plan_swap(mandate, pool, pool.tick),
    )
    event = PlanInstructed(plan_id=plan_id, plan_hash="ab" * 32, instruction=told)
    await append_event(hands.journal, PlanProgress(plan_id), event)
    gate = Gate(hands)
    drafted = await gate.draft(plan_id, "ab" * 32, told)
    await gate.approve(drafted.draft, gate.approval(drafted.draft, "the monitor", name), None, ActReason("below"))

    def reorganise() -> None:
        mined = node.ask("eth_getBlockByNumber", "latest", False)["transactions"]
        node.automine(False)
        node.ask("zuno_reorg", "0x1", {"drop": mined})

    def mine_again() -> None:
        node.automine(True)
        node.mine()

    await desk.gate(Script(node, reorganise, lambda: None, mine_again)).apply(plan_id, lambda *shown: True, print)
    book = await load_progress(hands.journal, plan_id)
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())  # type: ignore[union-attr]
    assert book.steps[0].step.kind is StepKind.BURN
    assert len(book.steps[0].signed) == 1
    assert position.id not in await desk.owned()
