"""A watch-only wallet's plan as an owner meets it: what is shown, what is printed, and what is printed again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from zuno.adapters.chain.world import SIM, WALLET
from zuno.adapters.keys.wallets import WatchOnly
from zuno.doors.cli.render import render as print_screen
from zuno.doors.telegram.render import render as write_message
from zuno.kernel.errors import Refused, UsageError
from zuno.lp.service.execution import Consent, Execution
from zuno.lp.service.execution_view import ApprovalView, ExecutionView, UnsignedView
from zuno.wiring import Application, open_zuno
from zuno_devnet.keys import dev_key

YES = Consent(lambda view: True, lambda view: True)


def silently(line: str) -> None:
    """Nobody listens."""


@pytest.fixture
async def zuno(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Application]:
    """The simulated world, whose wallet has its key elsewhere."""
    opened = open_zuno(str(tmp_path))
    watched: Any = WatchOnly(WALLET)
    monkeypatch.setattr(opened._signers, "of", lambda chain: watched)
    yield opened
    await opened.close()


async def send(zuno: Application, view: UnsignedView) -> str:
    (tx,) = view.transactions
    writer = zuno._chains.writer("sim")
    fields = {
        "type": 2,
        "chainId": SIM.id,
        "nonce": (await writer.wallet_state(WALLET, (), ())).nonce,
        "to": bytes.fromhex(tx.to[2:]),
        "value": int(tx.value, 16),
        "data": tx.data,
        "gas": int(tx.gas, 16),
        "maxFeePerGas": 10**10,
        "maxPriorityFeePerGas": 10**9,
    }
    signed = Account.sign_transaction(fields, dev_key("wallet").to_bytes())
    await writer.send(bytes(signed.raw_transaction))
    return "0x" + bytes(signed.hash).hex()


async def approve_close(execution: Execution) -> str:
    plan = await execution.close("1", "sim")
    await execution.approve(plan.plan_id, YES)
    return plan.plan_id


async def test_what_is_shown_before_is_not_handed_out_and_what_is_handed_out_is_shown_again(
    zuno: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    execution = zuno.execution()
    plan_id = await approve_close(execution)
    offer = await execution.offer_apply(plan_id)
    assert isinstance(offer, ApprovalView), "no bytes before the owner said yes"
    assert (await execution.status(plan_id)).state == "approved"
    first = await execution.apply(plan_id, Consent.bound_to(offer.approval_hash, "test"), silently)
    assert isinstance(first, UnsignedView)
    assert await execution.apply(plan_id, YES, silently) == first
    assert await execution.offer_apply(plan_id) == first, "nothing new is to be confirmed"
    status = await execution.status(plan_id)
    waiting = f"handed out: waiting for {WALLET} to send step 1 of 1"
    assert (status.state, status.why) == ("handed_out", waiting)
    (line,) = (await zuno.archive().plans(5)).plans
    assert line.state == "handed_out"
    assert [waits.plan_id for waits in (await execution.list_waiting()).plans] == [plan_id]
    for shown in (first, status):
        print_screen(shown)
        assert waiting in " ".join(capsys.readouterr().out.split())
        assert waiting in write_message(shown).html
    with pytest.raises(UsageError):
        await execution.apply(plan_id, YES, silently, "0x1234")
    with pytest.raises(Refused, match="0x" + "ab" * 32):
        await execution.apply(plan_id, YES, silently, "0x" + "AB" * 32)
    tx = await send(zuno, first)
    done = await execution.apply(plan_id, YES, silently, tx.upper().replace("0X", "0x"))
    assert isinstance(done, ExecutionView)
    assert (done.state, done.steps[0].tx_hash, done.problems) == ("confirmed", tx, ())
    assert done.outcome is not None
    with pytest.raises(Refused, match=f"{plan_id} is {done.state}"):
        await execution.apply(plan_id, YES, silently)


async def test_a_plan_of_the_desk_says_on_its_card_what_it_waits_for(zuno: Application) -> None:
    plan = await zuno.advice(offline=True).rebalance("1", chain="sim", candidate=1)
    execution = zuno.execution()
    await execution.approve(plan.plan_id, YES)
    before = await zuno.archive().plan(plan.plan_id)
    view = await execution.apply(plan.plan_id, YES, silently)
    assert isinstance(view, UnsignedView)
    after = await zuno.archive().plan(plan.plan_id)
    waiting = f"handed out: waiting for {WALLET} to send step 1 of 1"
    assert after == before.model_copy(update={"cautions": (waiting, *before.cautions)})
    await send(zuno, view)
    assert (await execution.apply(plan.plan_id, YES, silently)).state == "confirmed"
    assert await zuno.archive().plan(plan.plan_id) == before, "the decision is as it was"
