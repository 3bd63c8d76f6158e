"""A watch-only wallet's plan on the simulated chain, and a wallet with just enough ether."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from eth_account import Account

from zuno.adapters.chain.world import OTHERS, SIM, WALLET
from zuno.adapters.keys.wallets import WatchOnly
from zuno.kernel.errors import Broken, Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import HexId
from zuno.lp.execute.plan_state import PlanProgress
from zuno.lp.model.plan import PlanState, StepState
from zuno.lp.model.plan_events import Action, StepHandedOut, StepSigned
from zuno.lp.service.execution_to_views import unsigned_view
from zuno_devnet.keys import dev_key

ETHER = 10**18
WATCHED: Any = WatchOnly(WALLET)


async def send_elsewhere(
    bench: Any, to: str, value: int = 0, data: bytes = b"", gas: int = 2_000_000, fee: int = 10**10
) -> HexId:
    """Signed by whoever has the key, with fees of their own."""
    nonce = (await bench.pond.wallet_state(WALLET, (), ())).nonce
    fields = {
        "type": 2,
        "chainId": SIM.id,
        "nonce": nonce,
        "to": bytes.fromhex(to[2:]),
        "value": value,
        "data": data,
        "gas": gas,
        "maxFeePerGas": fee,
        "maxPriorityFeePerGas": 10**9,
    }
    signed = Account.sign_transaction(fields, dev_key("wallet").to_bytes())
    await bench.pond.writer.send(bytes(signed.raw_transaction))
    return HexId("0x" + bytes(signed.hash).hex())


async def send_step(bench: Any, book: PlanProgress) -> HexId:
    (handed,) = (step.handed_out for step in book.steps if step.state is StepState.HANDED_OUT)
    assert handed is not None
    return await send_elsewhere(bench, handed.to, handed.value, handed.data)


async def test_a_plan_of_two_halves_is_handed_out_step_by_step(bench: Any) -> None:
    plan_id = await bench.approved(await bench.two_steps())
    before, sent = await bench.owned(), 0
    while (book := await bench.apply(plan_id, signer=WATCHED)).over is None:
        assert book.state is PlanState.HANDED_OUT
        again = await bench.apply(plan_id, signer=WATCHED)
        assert unsigned_view(again) == unsigned_view(book)
        await send_step(bench, book)
        sent += 1
    assert (book.state, sent, book.over.problems) == (PlanState.CONFIRMED, len(book.steps), ())
    assert await bench.owned() - before == {book.over.new_position_id}
    assert before - await bench.owned() == {bench.edge}
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.CONFIRMED}"):
        await bench.apply(plan_id, signer=WATCHED)


async def test_a_key_that_comes_later_signs_nothing_of_what_was_handed_out(bench: Any) -> None:
    """Whoever it was handed to may send it at any moment: two would be one too many."""
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    first = await bench.apply(plan_id, signer=WATCHED)
    assert unsigned_view(await bench.apply(plan_id)) == unsigned_view(first)
    assert bench.pond.taken == []
    with pytest.raises(Refused, match=plan_id):
        await bench.apply(await bench.approved(await bench.told(Action.COLLECT, bench.inside)))
    await send_step(bench, first)
    assert (await bench.apply(plan_id)).state is PlanState.CONFIRMED


async def test_a_step_that_is_handed_out_is_never_signed(bench: Any) -> None:
    book = await bench.apply(await bench.approved(await bench.told(Action.CLOSE)), signer=WATCHED)
    signed = StepSigned(plan_id=book.plan_id, step=0, nonce=1, hash="0x", raw="0x", gas=1, max_fee=1, tip=1)
    with pytest.raises(Broken):
        book.apply_event(signed)
    handed = book.steps[0].handed_out
    assert handed is not None
    with pytest.raises(Broken):
        book.apply_event(handed)


async def test_an_approval_of_what_is_handed_out_is_refused(bench: Any) -> None:
    """A second approval would begin it anew."""
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    book = await bench.apply(plan_id, signer=WATCHED)
    assert book.draft is not None
    gate = bench.gate(signer=WATCHED)
    with pytest.raises(Refused, match="handed_out"):
        await gate.approve(book.draft, gate.approval(book.draft, "test"))
    with pytest.raises(Refused, match="handed_out"):
        await gate.draft(plan_id, "ab" * 32, book.draft.instruction)


async def test_a_batch_that_a_crash_cut_short_is_shown_to_nobody_and_completed(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a batch would be a burn without its mint."""
    plan_id, append, kinds = await bench.approved(await bench.two_steps()), bench.journal.append, list[str]()

    async def is_contract(wallet: Any) -> bool:
        return True

    async def crash(*, kind: str, **entry: Any) -> Any:
        kinds.append(kind)
        if kinds.count(StepHandedOut.kind) == 2:
            raise KeyboardInterrupt
        return await append(kind=kind, **entry)

    monkeypatch.setattr(bench.pond.writer, "is_contract", is_contract)
    with monkeypatch.context() as crashing:
        crashing.setattr(bench.journal, "append", crash)
        with pytest.raises(KeyboardInterrupt):
            await bench.apply(plan_id, signer=WATCHED)
    book = await bench.book(plan_id)
    assert [step.state for step in book.steps][:2] == [StepState.HANDED_OUT, StepState.PLANNED]
    with pytest.raises(Refused):
        unsigned_view(book)
    book = await bench.apply(plan_id, signer=WATCHED)
    assert {step.state for step in book.steps} == {StepState.HANDED_OUT}
    view = unsigned_view(book)
    assert view.safe is not None
    assert [call.data for call in view.safe.transactions] == ["0x" + step.step.data.hex() for step in book.steps]


async def test_a_hash_is_named_in_any_case(bench: Any) -> None:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    tx = await send_step(bench, await bench.apply(plan_id, signer=WATCHED))
    gate = bench.gate(signer=WATCHED)
    with pytest.raises(Refused, match="0x" + "ab" * 32):
        await gate.apply(plan_id, lambda *shown: True, bench.heard.append, HexId("0x" + "ab" * 32))
    book = await gate.apply(plan_id, lambda *shown: True, bench.heard.append, tx)
    assert (book.state, book.steps[0].tx) == (PlanState.CONFIRMED, tx)


# -- gas up front


@pytest.mark.parametrize("kind", ["rebalance", "wrap and create", "close"])
async def test_just_enough_ether_gets_to_the_end_and_one_wei_less_does_not_begin(bench: Any, kind: str) -> None:
    told = await {
        "rebalance": bench.two_steps,
        "wrap and create": lambda: bench.creation(capital1=10**9, brings_ether=True),
        "close": lambda: bench.told(Action.CLOSE),
    }[kind]()
    plan_id = await bench.approved(told)
    value = (await bench.book(plan_id)).draft.steps[0].value

    async def held() -> int:
        return int((await bench.pond.wallet_state(WALLET, (NATIVE,), ())).holdings[NATIVE])

    async def leave(amount: int) -> None:
        price = (await bench.chain.gas()).price
        await send_elsewhere(bench, OTHERS, await held() - amount - 21_000 * price, gas=21_000, fee=price)

    await leave(value + 1)
    with pytest.raises(Refused, match=f"ETH to {WALLET}") as refused:
        await bench.apply(plan_id)
    missing = int(Decimal(str(refused.value).split("send ")[1].split(" ETH")[0]) * ETHER)
    for more in (missing - 1, 1):
        with pytest.raises(Refused, match=f"ETH to {WALLET}"):
            await bench.apply(plan_id)
        assert (await bench.book(plan_id)).state is PlanState.APPROVED, "nothing was signed"
        give(bench, more)
    book = await bench.apply(plan_id)
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())


def give(bench: Any, amount: int) -> None:
    """Others give the wallet ether, in the world itself: theirs is no key to sign with."""
    bench.chain._now.ledger.pay(OTHERS, WALLET, NATIVE, amount)
