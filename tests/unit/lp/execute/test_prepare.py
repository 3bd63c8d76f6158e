"""A step handed out for somebody else to sign, without its owner being asked once more: what never happens then."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lp.execute.test_carrying import closing
from tests.unit.lp.execute.test_handed_out import WATCHED, send_step
from tests.unit.lp.execute.test_offer import service
from zuno.adapters.kill_lock import KillLockFile
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Address
from zuno.lp.execute.context import SpendingLimits
from zuno.lp.execute.plan_state import PlanProgress
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, StepHandedOut
from zuno.lp.plan.unsigned import safe_checksum
from zuno.lp.service.execution import Execution
from zuno.lp.service.execution_to_views import unsigned_view
from zuno.lp.service.execution_view import UnsignedView
from zuno.lp.service.plan_check import MOST_CALLS, PlanCheckView


async def hand_out(bench: Any, plan_id: str, **changes: Any) -> PlanProgress:
    progress, taken = await bench.book(plan_id), list(bench.pond.taken)
    await bench.gate(signer=WATCHED, **changes).hand_out(progress)
    assert bench.pond.taken == taken, "nothing is signed or sent"
    return progress


async def count_handed_out(bench: Any, plan_id: str) -> int:
    return sum([entry.kind == StepHandedOut.kind async for entry in bench.journal.entries(request_id=plan_id)])


async def test_asked_twice_it_gives_the_same_bytes_and_hands_out_once(bench: Any) -> None:
    plan_id = await bench.approved(await bench.two_steps())
    first = unsigned_view(await hand_out(bench, plan_id))
    assert unsigned_view(await hand_out(bench, plan_id)) == first
    assert unsigned_view(await bench.apply(plan_id, signer=WATCHED)) == first, "as `plan apply` hands it out"
    assert await count_handed_out(bench, plan_id) == 1
    assert (len(first.transactions), first.safe) == (1, None)


async def test_the_next_step_is_built_on_the_receipt_and_the_last_is_concluded_elsewhere(bench: Any) -> None:
    plan_id, bytes_seen = await bench.approved(await bench.two_steps()), list[str]()
    for _ in range(20):
        progress = await bench.book(plan_id)
        with suppress(Refused):
            await bench.gate(signer=WATCHED).hand_out(progress)
            bytes_seen.append(unsigned_view(progress).transactions[0].data)
            await send_step(bench, progress)
            continue
        break
    with pytest.raises(Refused, match=f"Nothing of {plan_id} is left.*zuno plan apply {plan_id}"):
        await hand_out(bench, plan_id)
    book = await bench.book(plan_id)
    assert book.over is None, "what ends a plan, and sets its hedge, is not for who only prepares"
    assert len(set(bytes_seen)) == len(bytes_seen) == len(book.steps)
    assert (await bench.apply(plan_id, signer=WATCHED)).state is PlanState.CONFIRMED


async def test_without_an_approval_it_names_the_command(bench: Any) -> None:
    drafted = await bench.drafted(await bench.told(Action.CLOSE))
    with pytest.raises(Refused, match=f"zuno plan approve {drafted.draft.plan_id}"):
        await hand_out(bench, drafted.draft.plan_id)


async def test_a_wallet_that_signs_here_is_not_served(bench: Any) -> None:
    plan_id = await closing(bench)
    with pytest.raises(Refused, match=f"zuno plan apply {plan_id}"):
        await bench.gate().hand_out(await bench.book(plan_id))
    assert bench.pond.taken == []
    assert not (await bench.book(plan_id)).begun


async def test_an_approval_that_has_run_out_hands_out_nothing(bench: Any) -> None:
    plan_id = await closing(bench)
    draft = (await bench.book(plan_id)).draft

    class Late:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.pond, name)

        async def wallet_state(self, *asked: Any) -> Any:
            seen = await bench.pond.wallet_state(*asked)
            return replace(seen, block=replace(seen.block, timestamp=draft.expires + 1))

    with pytest.raises(Refused, match="expired"):
        await hand_out(bench, plan_id, writer=Late())
    assert not (await bench.book(plan_id)).begun


async def test_a_changed_record_hands_out_nothing(bench: Any) -> None:
    plan_id = await closing(bench)
    progress = await bench.book(plan_id)
    step = replace(progress.draft.steps[0], data=progress.draft.steps[0].data + b"\x00")
    progress.draft = progress.draft.model_copy(update={"steps": (step,)})
    with pytest.raises(Refused, match="not what is on record"):
        await bench.gate(signer=WATCHED).hand_out(progress)
    assert await count_handed_out(bench, plan_id) == 0


async def test_caps_and_kills_hold_for_it_too(bench: Any, tmp_path: Path) -> None:
    plan_id = await bench.approved(await bench.creation())
    dear = bench.hands
    bench.hands = replace(dear, limits=SpendingLimits(usd_per_plan=Decimal(10)))
    with pytest.raises(Refused, match="ZUNO_SPEND_USD_PER_PLAN"):
        await hand_out(bench, plan_id)
    bench.hands = dear
    lock = KillLockFile(tmp_path / "home")
    lock.lock("live", "page")
    with pytest.raises(Refused, match="zuno trade unlock"):
        await hand_out(bench, plan_id, killed=lock.why_locked)
    assert await count_handed_out(bench, plan_id) == 0
    lock.unlock("live")
    await hand_out(bench, plan_id, killed=lock.why_locked)


# -- calls held against what was approved


class Checker:
    def __init__(self, bench: Any, execution: Execution, view: UnsignedView) -> None:
        self.bench, self.execution, self.view = bench, execution, view

    @property
    def shown(self) -> Any:
        return json.loads(self.view.model_dump_json(by_alias=True))

    async def check(self, given: Any) -> PlanCheckView:
        content = given if isinstance(given, bytes) else json.dumps(given).encode()
        return await self.execution.check(content, self.view.plan_id)


@pytest.fixture
async def safe(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Checker:
    """The batch of a plan of several calls."""

    async def is_contract(wallet: Any) -> bool:
        return True

    monkeypatch.setattr(bench.pond.writer, "is_contract", is_contract)
    plan_id = await bench.approved(await bench.two_steps())
    view = unsigned_view(await hand_out(bench, plan_id))
    assert view.safe is not None
    assert len(view.safe.transactions) > 2
    assert view.safe.meta.checksum == safe_checksum(view.safe)
    return Checker(bench, service(bench, bench.journal), view)


async def test_what_was_handed_out_is_equal(safe: Checker) -> None:
    for given in (safe.shown, safe.shown["safe"], safe.shown["safe"]["transactions"]):
        checked = await safe.check(given)
        assert (checked.ok, checked.differences) == (True, ())
        assert checked.approval_hash == safe.view.approval_hash
    assert (await safe.execution.check(json.dumps(safe.shown["safe"]).encode())).plan_id == safe.view.plan_id
    with pytest.raises(UsageError, match="--plan"):
        await safe.execution.check(json.dumps(safe.shown["safe"]["transactions"]).encode())


async def test_a_forged_recipient_is_said_in_words(safe: Checker) -> None:
    batch = safe.shown["safe"]
    wallet, thief = safe.bench.wallet[2:], safe.bench.others[2:]
    forged = next(place for place, call in enumerate(batch["transactions"]) if wallet in call["data"])
    batch["transactions"][forged]["data"] = batch["transactions"][forged]["data"].replace(wallet, thief)
    checked = await safe.check(batch)
    assert not checked.ok
    assert all(line.startswith(f"call {forged + 1}") for line in checked.differences)
    assert thief in " ".join(checked.differences)


async def test_every_other_change_is_found(safe: Checker) -> None:
    calls = safe.shown["safe"]["transactions"]

    async def find(changed: Any, **fields: Any) -> str:
        checked = await safe.check({**safe.shown["safe"], "transactions": changed, **fields})
        assert not checked.ok
        return "\n".join(checked.differences)

    swapped = await find([calls[1], calls[0], *calls[2:]])
    assert "call 1 is the approved call 2" in swapped
    assert "call 2 is the approved call 1" in swapped
    assert f"call {len(calls) + 1} was not approved" in await find([*calls, {"to": safe.bench.others, "value": "1"}])
    assert f"call {len(calls)} is missing" in await find(calls[:-1])
    assert "call 1 is missing" not in await find(calls[:1])
    assert "value is 5, approved 0" in await find([{**calls[0], "value": "5"}, *calls[1:]])
    assert f"to is {safe.bench.others}" in await find([{**calls[0], "to": safe.bench.others}, *calls[1:]])
    assert "would: something that no plan does" in await find([{**calls[0], "data": "0xdeadbeef"}, *calls[1:]])
    assert "chain 1, approved" in await find(calls, chainId="1")
    meta = {**safe.shown["safe"]["meta"], "createdFromSafeAddress": safe.bench.others}
    assert f"wallet {safe.bench.others}" in await find(calls, meta=meta)


async def test_a_plain_wallets_step_and_its_fee(bench: Any) -> None:
    plan_id = await bench.approved(await bench.two_steps())
    execution = service(bench, bench.journal)
    steps = (await bench.book(plan_id)).steps
    call = {"to": steps[0].step.to, "value": hex(steps[0].step.value), "data": "0x" + steps[0].step.data.hex()}
    first = await execution.check(json.dumps(call).encode(), plan_id)
    assert first.ok
    assert "its first step" in first.notes[0]
    view = unsigned_view(await hand_out(bench, plan_id))
    shown = json.loads(view.model_dump_json(by_alias=True))
    assert (await execution.check(json.dumps(shown).encode())).ok
    shown["transactions"][0]["maxFeePerGas"] = hex(10**15)
    assert "a unit of gas" in str((await execution.check(json.dumps(shown).encode())).differences)
    await send_step(bench, await bench.book(plan_id))


@pytest.mark.parametrize("name", ["serialized", "signingHash"])
async def test_other_bytes_beside_the_same_fields_are_found(bench: Any, name: str) -> None:
    plan_id = await bench.approved(await bench.two_steps())
    shown = json.loads(unsigned_view(await hand_out(bench, plan_id)).model_dump_json(by_alias=True))
    first = shown["transactions"][0]
    first[name] = first[name][:-2] + ("00" if first[name][-2:] != "00" else "01")
    checked = await service(bench, bench.journal).check(json.dumps(shown).encode())
    assert checked.differences == ("call 1: the bytes to sign are not those of its fields",)


async def test_what_would_be_called_otherwise_is_no_file_of_calls(safe: Checker) -> None:
    calls = safe.shown["safe"]["transactions"]
    for changed in ({"operation": 1}, {"operation": "1"}, {"contractMethod": {"name": "transfer"}}):
        with pytest.raises(UsageError):
            await safe.check([{**calls[0], **changed}, *calls[1:]])
    with pytest.raises(UsageError):
        await safe.check({**safe.shown, "transactions": [{"to": safe.bench.others, "value": "1"}]})
    assert (await safe.check([{**call, "operation": 0} for call in calls])).ok
    assert "a unit of gas" in str((await safe.check([{**calls[0], "gasPrice": 10**15}, *calls[1:]])).differences)


JUNK: tuple[bytes, ...] = (
    b"",
    b"nothing",
    b"{}",
    b"[]",
    b'{"transactions": []}',
    b'{"safe": 3}',
    b"[[[",
    b"[" * 100_000,
    b"\xff\xfe",
    b'[{"to": "0x12", "data": "0x"}]',
    b'[{"to": "0x%s", "data": "0x0"}]' % (b"ab" * 20),
    b'[{"to": "0x%s", "value": "1e3"}]' % (b"ab" * 20),
    b'[{"to": "0x%s", "value": -1}]' % (b"ab" * 20),
    b'[{"to": "0x%s", "value": 1.5}]' % (b"ab" * 20),
    json.dumps([{"to": "0x" + "ab" * 20}] * (MOST_CALLS + 1)).encode(),
)


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
async def test_junk_is_no_file_of_calls(bench: Any, junk: bytes) -> None:
    with pytest.raises(UsageError):
        await service(bench, bench.journal).check(junk, "plan_000000000001")


async def test_every_truncation_is_no_file_of_calls(safe: Checker) -> None:
    whole = json.dumps(safe.shown["safe"]).encode()
    for length in range(0, len(whole) - 1, 97):
        with pytest.raises(UsageError):
            await safe.check(whole[:length])


async def test_calls_of_a_plan_without_an_approval_are_refused(bench: Any) -> None:
    drafted = await bench.drafted(await bench.told(Action.CLOSE))
    given = json.dumps([{"to": Address("0x" + "ab" * 20)}]).encode()
    with pytest.raises(Refused, match="zuno plan approve"):
        await service(bench, bench.journal).check(given, drafted.draft.plan_id)
