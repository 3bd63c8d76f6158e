"""Plans of wallets whose key is elsewhere, on the real contracts: handed out once, recognised on the chain, counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_account import Account

from tests.wire.stage_plans import RANGE, Plans, id_of
from tests.wire.tokens import BATCHING_WALLET
from zuno.adapters.keys.wallets import WatchOnly
from zuno.amm.model import PoolKey, Range
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Tick
from zuno.lp.execute.context import SpendingLimits
from zuno.lp.execute.handed_out import explain_waiting
from zuno.lp.model.plan import PlanState, StepKind, StepState
from zuno.lp.model.plan_events import Action, Instruction
from zuno.lp.plan import calldata
from zuno.lp.service.execution_to_views import execution_view, unsigned_view
from zuno.lp.service.execution_view import UnsignedView
from zuno_devnet.keys import dev_key
from zuno_devnet.node import DevnetNode

ETHER = 10**18
SOMEBODY = Address("0x" + "77" * 20)


class Watched(Plans):
    """Plans of a wallet that is only watched, and a signer elsewhere that has its key."""

    lines: list[str]
    """What it was told."""

    async def hand_out(self, plan_id: str, **changes: Any) -> UnsignedView:
        """What `plan apply` prints; a fresh gate each time, as after a restart."""
        await self.gate(**changes).apply(plan_id, _yes, self.lines.append)
        return unsigned_view(await self.book(plan_id))

    async def send_elsewhere(self, view: UnsignedView, *, more: int = 0, fee: int = 7 * 10**9) -> HexId:
        """Signed by the key with fees of the signer's own; `more`: gas added to the limit advised."""
        (tx,) = view.transactions
        fields = {
            "type": 2,
            "chainId": int(tx.chain_id, 16),
            "nonce": self.stage.chain.nonce(bytes.fromhex(self.stage.wallet[2:])),
            "to": bytes.fromhex(tx.to[2:]),
            "value": int(tx.value, 16),
            "data": tx.data,
            "gas": int(tx.gas, 16) + more,
            "maxFeePerGas": fee,
            "maxPriorityFeePerGas": 10**9,
        }
        signed = Account.sign_transaction(fields, dev_key("wallet").to_bytes())
        await self.hands.writer.send(bytes(signed.raw_transaction))
        return HexId("0x" + bytes(signed.hash).hex())

    async def finish(self, plan_id: str) -> int:
        """Every step handed out and sent, one after the other; how many there were."""
        for sent in range(20):
            await self.gate().apply(plan_id, _yes, self.lines.append)
            if (await self.book(plan_id)).over is not None:
                return sent
            await self.send_elsewhere(unsigned_view(await self.book(plan_id)))
        raise AssertionError("it never ends")

    async def kinds(self, plan_id: str) -> list[str]:
        return [entry.kind async for entry in self.journal.entries(request_id=plan_id)]


def _yes(*shown: object) -> bool:
    return True


@pytest.fixture(scope="module")
def one_stage(new_stage: Any) -> Any:
    """Its time passes with its blocks, and nothing is allowed to anybody."""
    stage = new_stage()
    at = stage.info.deployment
    for token in (stage.weth, stage.usdc):
        stage.send("wallet", token, calldata.call("approve(address,uint256)", at.permit2, 0))
        for spender in (at.position_manager, at.universal_router):
            grant = calldata.call("approve(address,address,uint160,uint48)", token, spender, 0, 0)
            stage.send("wallet", at.permit2, grant)
    stage.node = DevnetNode(stage.chain, clock=lambda: stage.chain.head.timestamp + 12)
    return stage


@pytest.fixture
def stage(one_stage: Any) -> Iterator[Any]:
    info, first = one_stage.info, one_stage.node.snapshot()
    yield one_stage
    one_stage.info = info
    assert one_stage.node.revert(first)


@pytest.fixture
async def plans(desk: Any, stage: Any, tmp_path: Path) -> Watched:
    return await watch(desk, stage, tmp_path)


async def watch(desk: Any, stage: Any, folder: Path, wallet: Address | None = None) -> Watched:
    plans = Watched(stage, desk.chain(await desk.node()), folder)
    plans.lines = []
    plans.hands = replace(plans.hands, signer=WatchOnly(wallet or stage.wallet))
    return plans


@pytest.fixture
async def deep(desk: Any, stage: Any, tmp_path: Path) -> Watched:
    """Where a receipt is final three blocks on."""
    stage.info = replace(stage.info, confirmations=3)
    return await watch(desk, stage, tmp_path)


def mint_out_of_range(stage: Any) -> int:
    """All dollars: a move into the range around the price has to swap."""
    permit2, manager = stage.info.deployment.permit2, stage.info.deployment.position_manager
    for token in (stage.weth, stage.usdc):
        stage.send("wallet", token, calldata.call("approve(address,uint256)", permit2, 2**256 - 1))
        grant = calldata.call("approve(address,address,uint160,uint48)", token, manager, 2**160 - 1, 2**48 - 1)
        stage.send("wallet", permit2, grant)
    (token_id,) = stage.mint(stage.weth_pool, -201_000, -200_820, 10**15)
    for token in (stage.weth, stage.usdc):
        stage.send("wallet", token, calldata.call("approve(address,uint256)", permit2, 0))
        grant = calldata.call("approve(address,address,uint160,uint48)", token, manager, 0, 0)
        stage.send("wallet", permit2, grant)
    return int(token_id)


async def creation(plans: Watched) -> Instruction:
    """Half an ether and dollars beside it, nothing of which is allowed to anybody yet."""
    return await plans.creation(plans.stage.weth_pool, ETHER // 2, 1_000 * 10**6)


# -- a plain wallet


async def test_a_second_half_that_nobody_asks_for_leaves_the_plan_partial(plans: Watched, stage: Any) -> None:
    told = await plans.told(Action.REBALANCE, mint_out_of_range(stage), range=RANGE)
    plan_id, first = await plans.approved(told), stage.next_token()
    burn = await plans.hand_out(plan_id)
    assert (burn.state, len(burn.transactions), burn.safe) == ("handed_out", 1, None)
    await plans.send_elsewhere(burn)

    stage.pass_time(20 * 60)  # nobody asked for the second half as long as the bounds allow
    with pytest.raises(Refused, match="partial: 1"):
        await plans.hand_out(plan_id)
    assert (await plans.book(plan_id)).state is PlanState.PARTIAL
    assert stage.next_token() == first


async def test_a_swapping_rebalance_is_handed_out_in_both_halves_and_finished_once(plans: Watched, stage: Any) -> None:
    """The second half has a deadline of its own, as far away as the approved bounds have it."""
    told = await plans.told(Action.REBALANCE, mint_out_of_range(stage), range=RANGE)
    plan_id, first = await plans.approved(told), stage.next_token()
    book = await plans.book(plan_id)
    assert book.draft is not None
    expires = book.draft.expires
    burn = await plans.hand_out(plan_id)
    stage.pass_time(14 * 60)
    await plans.send_elsewhere(burn)
    stage.pass_time(5 * 60)
    assert stage.chain.head.timestamp > expires
    approve = await plans.hand_out(plan_id)
    assert approve.deadline > stage.chain.head.timestamp > expires
    assert approve.deadline <= stage.chain.head.timestamp + book.draft.bounds.deadline_seconds
    await plans.send_elsewhere(approve)
    assert await plans.finish(plan_id) == 2, "the permit, and then swap and mint"
    done = await plans.book(plan_id)
    assert done.over is not None
    assert (done.state, done.over.problems) == (PlanState.CONFIRMED, ())
    kinds = [step.step.kind for step in done.steps]
    assert kinds == [StepKind.BURN, StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE, StepKind.SWAP_AND_MINT]
    assert done.over.new_position_id == first
    assert stage.next_token() == first + 1, "one position, once"
    assert plans.left_behind(stage.weth_pool) == [0] * 4
    mints = [step for step in done.steps if step.step.kind is StepKind.SWAP_AND_MINT]
    assert mints[0].step.deadline == approve.deadline
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.CONFIRMED}"):
        await plans.hand_out(plan_id)


async def test_asked_again_it_shows_the_same_bytes_and_says_what_it_waits_for(plans: Watched, stage: Any) -> None:
    plan_id = await plans.approved(await creation(plans))
    book = await plans.book(plan_id)
    assert book.draft is not None
    total = len(book.draft.steps)
    first = await plans.hand_out(plan_id)
    kinds = await plans.kinds(plan_id)
    assert kinds[-2:] == ["plan_applying", "handed_out"], "the intent comes first"
    entries = await plans.journal.latest(1)
    stage.pass_time(60)
    assert await plans.hand_out(plan_id) == first
    assert await plans.journal.latest(1) == entries, "nothing new was handed out"
    status, _ = await plans.gate().status(plan_id)
    assert await plans.journal.latest(1) == entries
    assert re.search(rf"{stage.wallet}.*\bstep 1 of {total}$", explain_waiting(status))
    seen = await execution_view(plans.hands, status, (await creation(plans)))
    assert (seen.state, seen.why) == ("handed_out", explain_waiting(status))
    handed = status.steps[0].handed_out
    assert handed is not None
    step = status.steps[0].step
    assert (handed.to, handed.value, handed.data) == (step.to, step.value, step.data)
    assert handed.deadline == book.draft.expires


async def test_half_executed_by_another_signer_and_then_finished_once(plans: Watched, stage: Any) -> None:
    """A step is sent twice and other transactions come between: only the step itself counts, once."""
    plan_id, opened = await plans.approved(await creation(plans)), stage.next_token()
    first = await plans.hand_out(plan_id)
    stage.send("wallet", SOMEBODY, b"", 1)
    hashes = [await plans.send_elsewhere(first), await plans.send_elsewhere(first)]
    second = await plans.hand_out(plan_id)
    book = await plans.book(plan_id)
    assert [step.state for step in book.steps[:2]] == [StepState.FINAL, StepState.HANDED_OUT]
    assert book.steps[0].tx == hashes[0]
    assert second.transactions[0].data != first.transactions[0].data
    hashes.append(await plans.send_elsewhere(first))
    assert await plans.hand_out(plan_id) == second, "the step before, sent once more, is not the next"
    await plans.send_elsewhere(second)
    await plans.finish(plan_id)
    book = await plans.book(plan_id)
    assert book.over is not None
    assert (book.state, book.over.new_position_id, book.over.problems) == (PlanState.CONFIRMED, opened, ())
    assert stage.next_token() == opened + 1
    assert sum(step.mined.cost for step in book.steps if step.mined is not None) > 0


async def test_the_owner_is_asked_before_anything_is_handed_out(plans: Watched) -> None:
    plan_id = await plans.approved(await creation(plans))
    with pytest.raises(Refused, match="confirmed"):
        await plans.gate().apply(plan_id, lambda *shown: False, plans.lines.append)
    assert (await plans.book(plan_id)).state is PlanState.APPROVED
    assert not (await plans.book(plan_id)).begun


async def test_what_is_handed_out_counts_until_it_expires(plans: Watched, stage: Any) -> None:
    """Half an ether and a thousand dollars are about 2,000: two such plans are more than a day's cap of 3,000."""
    limits = SpendingLimits(usd_per_plan=Decimal(2_500), usd_per_day=Decimal(3_000))
    first = await plans.approved(await creation(plans), limits=limits)
    await plans.send_elsewhere(await plans.hand_out(first, limits=limits))
    tight = replace(limits, usd_per_plan=Decimal(1_000))
    with pytest.raises(Refused, match="ZUNO_SPEND_USD_PER_PLAN"):
        await plans.approved(await creation(plans), limits=tight)
    with pytest.raises(Refused, match="a day"):
        await plans.approved(await creation(plans), limits=limits)
    stage.pass_time(16 * 60)
    with pytest.raises(Refused, match="expired") as ended:
        await plans.hand_out(first, limits=limits)
    assert "allowed: 0.3" in str(ended.value)
    assert "Permit2" in str(ended.value)
    book = await plans.book(first)
    assert (book.state, book.over and book.over.new_position_id) == (PlanState.EXPIRED, None)
    with pytest.raises(Refused, match=f"{first} is {PlanState.EXPIRED}"):
        await plans.hand_out(first, limits=limits)
    second = await plans.approved(await creation(plans), limits=limits)
    assert (await plans.hand_out(second, limits=limits)).plan_id == second, "the cap was given back"


async def test_it_expires_by_a_final_block_and_not_before(deep: Watched, stage: Any) -> None:
    plan_id = await deep.approved(await deep.told(Action.CLOSE, mint_out_of_range(stage)))
    view = await deep.hand_out(plan_id)
    stage.pass_time(16 * 60)
    assert await deep.hand_out(plan_id) == view, "it may be mined still, in a block that takes this one's place"
    looked, _ = await deep.gate().status(plan_id)
    assert looked.state is PlanState.HANDED_OUT
    for _ in range(2):
        stage.pass_time(12)
    looked, _ = await deep.gate().status(plan_id)
    assert looked.state is PlanState.EXPIRED
    with pytest.raises(Refused, match="expired"):
        await deep.gate().offer(await deep.book(plan_id))
    assert (await deep.book(plan_id)).over is None, "a look writes nothing"
    with pytest.raises(Refused, match="expired"):
        await deep.hand_out(plan_id)


async def test_one_wallet_has_one_plan_handed_out_at_a_time(plans: Watched) -> None:
    first, second = [await plans.approved(await creation(plans)) for _ in range(2)]
    await plans.hand_out(first)
    with pytest.raises(Refused, match=f"{first}.*{plans.stage.wallet}"):
        await plans.hand_out(second)
    await plans.gate().cancel(first, plans.lines.append)
    assert (await plans.hand_out(second)).plan_id == second


async def test_a_step_that_reverted_is_told_and_handed_out_again(plans: Watched, stage: Any) -> None:
    """Too little gas, by the signer's own choice. What is handed out again has the same bytes, and counts once."""
    plan_id = await plans.approved(await plans.told(Action.CLOSE, mint_out_of_range(stage)))
    burn = await plans.hand_out(plan_id)
    await plans.send_elsewhere(burn, more=-int(burn.transactions[0].gas, 16) + 90_000)
    looked, _ = await plans.gate().status(plan_id)
    assert looked.steps[0].state is StepState.REVERTED
    again = await plans.hand_out(plan_id)
    assert again.transactions[0].data == burn.transactions[0].data
    assert "reverted" in " ".join(plans.lines)
    kinds = await plans.kinds(plan_id)
    assert (kinds.count("plan_applying"), kinds.count("handed_out")) == (1, 2)
    await plans.send_elsewhere(again)
    assert await plans.finish(plan_id) == 0
    book = await plans.book(plan_id)
    assert book.over is not None
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    assert book.steps[0].reverted_cost > 0


async def test_a_step_that_reverted_and_went_through_later_is_done(plans: Watched, stage: Any) -> None:
    """Its owner tried again without asking: it is recognised, and not handed out a second time."""
    plan_id = await plans.approved(await plans.told(Action.CLOSE, mint_out_of_range(stage)))
    burn = await plans.hand_out(plan_id)
    await plans.send_elsewhere(burn, more=-int(burn.transactions[0].gas, 16) + 90_000)
    await plans.gate().reconcile(plans.lines.append)
    assert (await plans.book(plan_id)).steps[0].state is StepState.REVERTED
    tx = await plans.send_elsewhere(burn)
    assert await plans.finish(plan_id) == 0
    book = await plans.book(plan_id)
    assert (book.state, book.steps[0].tx) == (PlanState.CONFIRMED, tx)


async def test_a_reorganisation_takes_a_step_back_and_brings_it_again(deep: Watched, stage: Any) -> None:
    plan_id = await deep.approved(await deep.told(Action.CLOSE, mint_out_of_range(stage)))
    burn, before = await deep.hand_out(plan_id), stage.node.snapshot()
    tx = await deep.send_elsewhere(burn)
    assert (await deep.gate().apply(plan_id, _yes, deep.lines.append)).steps[0].state is StepState.MINED
    assert stage.node.revert(before)
    stage.pass_time(24)
    assert await deep.hand_out(plan_id) == burn
    book = await deep.book(plan_id)
    assert (book.steps[0].state, book.steps[0].mined) == (StepState.HANDED_OUT, None)
    assert await deep.send_elsewhere(burn) == tx, "the same bytes, under the same number"
    for _ in range(2):
        stage.pass_time(12)
    assert await deep.finish(plan_id) == 0
    assert (await deep.kinds(plan_id)).count("handed_out") == 1
    assert (await deep.book(plan_id)).state is PlanState.CONFIRMED


async def test_a_plan_that_is_called_off_says_what_can_still_be_sent(plans: Watched, stage: Any) -> None:
    plan_id = await plans.approved(await creation(plans))
    for _ in range(3):
        await plans.send_elsewhere(await plans.hand_out(plan_id))
    await plans.hand_out(plan_id)
    book = await plans.gate().cancel(plan_id, plans.lines.append)
    assert book.over is not None
    assert book.state is PlanState.CANCELLED
    assert "step 4 of 5" in book.over.why
    assert "allowed" in book.over.why
    assert "to Permit2" in book.over.why
    assert book.steps[-1].handed_out is None, "what moves money was never handed out"
    burn = await plans.approved(await plans.told(Action.CLOSE, mint_out_of_range(stage)))
    view = await plans.hand_out(burn)
    ended = await plans.gate().cancel(burn, plans.lines.append)
    assert ended.over is not None
    assert "until" in ended.over.why
    await plans.send_elsewhere(view)
    with pytest.raises(Refused, match=f"{burn} is {PlanState.CANCELLED}"):
        await plans.hand_out(burn)


async def test_calling_off_what_was_sent_meanwhile_says_that_it_is_done(plans: Watched, stage: Any) -> None:
    plan_id = await plans.approved(await plans.told(Action.CLOSE, mint_out_of_range(stage)))
    await plans.send_elsewhere(await plans.hand_out(plan_id))
    book = await plans.gate().cancel(plan_id, plans.lines.append)
    assert book.state is PlanState.CONFIRMED


# -- named by its hash


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("sender", "was sent by"),
        ("target", "it calls"),
        ("value", "it sends 1 wei"),
        ("calldata", "calldata is not the step's"),
        ("reverted", "it reverted in block"),
        ("unknown", "it is not known there"),
        ("before", "before the step was handed out"),
    ],
)
async def test_a_hash_of_something_else_is_refused(plans: Watched, stage: Any, what: str, reason: str) -> None:
    token_id = mint_out_of_range(stage)
    early = stage.send("wallet", SOMEBODY, b"", 1)
    plan_id = await plans.approved(await plans.told(Action.CLOSE, token_id))
    view = await plans.hand_out(plan_id)
    (burn,) = view.transactions
    data, tx = bytes.fromhex(burn.data[2:]), HexId("0x" + "12" * 32)
    match what:
        case "sender":
            tx = _hash(stage.send("trader", SOMEBODY, b"", 1))
        case "target":
            tx = _hash(stage.send("wallet", SOMEBODY, data))
        case "value":
            fees = [stage.changing(0x01, token_id), *stage.closing(stage.weth_pool)]
            tx = _hash(stage.send("wallet", burn.to, stage.modifying(fees), 1))
        case "calldata":
            fees = [stage.changing(0x01, token_id), *stage.closing(stage.weth_pool)]
            tx = _hash(stage.send("wallet", burn.to, stage.modifying(fees)))
        case "reverted":
            tx = await plans.send_elsewhere(view, more=-int(burn.gas, 16) + 90_000)
        case "before":
            tx = _hash(early)
    entries = await plans.journal.latest(1)
    with pytest.raises(Refused, match=reason):
        await plans.gate().apply(plan_id, _yes, plans.lines.append, tx)
    assert await plans.journal.latest(1) == entries
    if what == "unknown":
        tx = await plans.send_elsewhere(view)
        assert (await plans.gate().apply(plan_id, _yes, plans.lines.append, tx)).state is PlanState.CONFIRMED


def _hash(receipt: Any) -> HexId:
    return HexId("0x" + bytes(receipt.tx.hash).hex())


async def test_a_node_without_old_counts_needs_the_hash(plans: Watched, desk: Any, stage: Any) -> None:
    """A full node keeps the state of some blocks only; transactions and receipts it has for good."""
    plan_id = await plans.approved(await plans.told(Action.CLOSE, mint_out_of_range(stage)))
    tx = await plans.send_elsewhere(await plans.hand_out(plan_id))
    for _ in range(3):
        stage.pass_time(12)
    head = (await plans.hands.chain.head()).hash

    def forget(asked: dict[str, Any], reply: Any) -> Any:
        at = asked["params"][-1] if asked["method"] == "eth_getTransactionCount" else None
        if isinstance(at, dict) and at["blockHash"] != head:
            fault = {"code": -32000, "message": "missing trie node"}
            return {"jsonrpc": "2.0", "id": asked["id"], "error": fault}
        return reply

    plans.through(desk.chain(await desk.bent(forget)))
    plans.hands = replace(plans.hands, signer=WatchOnly(stage.wallet))
    with pytest.raises(Unavailable, match="--tx HASH"):
        await plans.hand_out(plan_id)
    assert (await plans.gate().apply(plan_id, _yes, plans.lines.append, tx)).state is PlanState.CONFIRMED


async def test_a_wallet_with_a_key_has_nothing_to_name(plans: Watched, stage: Any) -> None:
    from zuno.adapters.chain.dev_signer import DevSigner

    key = DevSigner(stage.info.id)
    plan_id = await plans.approved(await plans.told(Action.CLOSE, mint_out_of_range(stage)), signer=key)
    with pytest.raises(Refused, match="was handed out"):
        await plans.gate(signer=key).apply(plan_id, _yes, plans.lines.append, HexId("0x" + "12" * 32))


# -- a Safe


@pytest.fixture
async def safe(desk: Any, stage: Any, tmp_path: Path) -> Watched:
    """The wallet is a contract, which holds tokens, a position out of range, and no ether."""
    code = BATCHING_WALLET
    wallet = stage.create(b"\x61" + len(code).to_bytes(2, "big") + b"\x80\x60\x0a\x5f\x39\x5f\xf3" + code)
    for token, amount in ((stage.weth, 5 * ETHER), (stage.usdc, 10**10)):
        stage.send("trader", token, calldata.call("transfer(address,uint256)", wallet, amount))
    return await watch(desk, stage, tmp_path, wallet)


def run_batch(stage: Any, wallet: Address, view: UnsignedView) -> Any:
    """What the Transaction Builder makes of the file, sent by one of the Safe's owners."""
    assert view.safe is not None
    calls = [(call.to, int(call.value), bytes.fromhex(call.data[2:])) for call in view.safe.transactions]
    return stage.send("trader", wallet, pack(calls))


def pack(calls: list[tuple[str, int, bytes]]) -> bytes:
    sizes = (
        (bytes.fromhex(to[2:]), value.to_bytes(32, "big"), len(data).to_bytes(32, "big")) for to, value, data in calls
    )
    return b"".join(b"".join((*head, data)) for head, (_, _, data) in zip(sizes, calls, strict=True))


@pytest.mark.parametrize("named", [False, True], ids=["by its logs", "by its hash"])
async def test_a_safe_gets_one_batch_which_is_recognised(safe: Watched, stage: Any, named: bool) -> None:
    wallet, opened = safe.hands.wallet, stage.next_token()
    plan_id = await safe.approved(await creation(safe))
    view = await safe.hand_out(plan_id)
    assert (view.transactions, view.state) == ((), "handed_out")
    assert view.safe is not None
    assert len(view.safe.transactions) == 5
    stage.mint(stage.weth_pool, RANGE.lower, RANGE.upper, 10**12, role="trader")
    assert await safe.hand_out(plan_id) == view, "somebody else's position of the same range is not ours"
    done = run_batch(stage, wallet, view)
    if named:
        other = stage.send("wallet", SOMEBODY, b"", 1)
        with pytest.raises(Refused, match="position"):
            await safe.gate().apply(plan_id, _yes, safe.lines.append, _hash(other))
        await safe.gate().apply(plan_id, _yes, safe.lines.append, _hash(done))
    else:
        await safe.gate().apply(plan_id, _yes, safe.lines.append)
    book = await safe.book(plan_id)
    assert book.over is not None
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    assert book.over.new_position_id == opened + 1
    assert {step.tx for step in book.steps} == {_hash(done)}
    assert sum(step.mined.cost for step in book.steps if step.mined) == 0, "the Safe paid for no gas"


async def test_a_safe_moves_a_position_with_a_swap_in_one_batch(safe: Watched, stage: Any) -> None:
    wallet = safe.hands.wallet
    first = await safe.approved(await safe.creation(stage.weth_pool, 0, 10**9, Range(Tick(-201_000), Tick(-200_820))))
    run_batch(stage, wallet, await safe.hand_out(first))
    await safe.gate().apply(first, _yes, safe.lines.append)
    over = (await safe.book(first)).over
    assert over is not None
    assert over.new_position_id is not None
    plan_id = await safe.approved(await safe.told(Action.REBALANCE, over.new_position_id, range=RANGE))
    view = await safe.hand_out(plan_id)
    assert view.safe is not None
    assert len(view.safe.transactions) > 2, "burn, allowances, swap and mint"
    before = stage.node.snapshot()
    (burn, *_) = view.safe.transactions
    stage.send("trader", wallet, pack([(burn.to, int(burn.value), bytes.fromhex(burn.data[2:]))]))
    assert await safe.hand_out(plan_id) == view, "the burn alone is not the batch"
    assert stage.node.revert(before)
    run_batch(stage, wallet, view)
    await safe.gate().apply(plan_id, _yes, safe.lines.append)
    book = await safe.book(plan_id)
    assert book.over is not None
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    (moved,) = (await safe.hands.chain.positions([book.over.new_position_id or 0])).positions
    assert (moved.owner, moved.range) == (wallet, RANGE)


async def test_a_safe_that_does_nothing_lets_its_plan_expire(safe: Watched, stage: Any) -> None:
    plan_id = await safe.approved(await creation(safe))
    await safe.hand_out(plan_id)
    stage.pass_time(16 * 60)
    with pytest.raises(Refused, match="expired"):
        await safe.hand_out(plan_id)


async def test_what_a_safe_does_about_no_position_is_known_by_its_hash(safe: Watched, stage: Any) -> None:
    wallet, permit2 = safe.hands.wallet, stage.info.deployment.permit2
    allow = calldata.call("approve(address,uint256)", permit2, 5)
    stage.send("trader", wallet, pack([(stage.usdc, 0, allow)]))
    pool = await safe.hands.chain.pool(id_of(stage.weth_pool))
    told = Instruction(action=Action.REVOKE, chain="devnet", pool_id=pool.id, tick=pool.tick, tokens=(stage.usdc,))
    plan_id = await safe.approved(told)
    view = await safe.hand_out(plan_id)
    other = stage.send("trader", wallet, pack([(stage.usdc, 0, allow)]))
    done = run_batch(stage, wallet, view)
    assert await safe.hand_out(plan_id) == view
    with pytest.raises(Refused, match="step's"):
        await safe.gate().apply(plan_id, _yes, safe.lines.append, _hash(other))
    book = await safe.gate().apply(plan_id, _yes, safe.lines.append, _hash(done))
    assert (book.state, book.steps[0].tx) == (PlanState.CONFIRMED, _hash(done))


# -- gas up front


def leave_ether(stage: Any, amount: int) -> None:
    """Send away all the wallet's ether but so much."""
    base = stage.chain.next_base_fee
    value = stage.balance(NATIVE) - amount - 21_000 * (base + 10**9)
    tx = stage.chain.sign(dev_key("wallet"), to=bytes.fromhex(SOMEBODY[2:]), value=value, gas=21_000, tip=10**9)
    stage.chain.apply_block([tx], stage.chain.head.timestamp + 12)


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("kind", ["swapping rebalance", "create", "ether"])
async def test_a_wallet_with_just_enough_gets_to_the_end_and_one_wei_less_does_not_begin(
    desk: Any, stage: Any, tmp_path: Path, kind: str
) -> None:
    plans = Plans(stage, desk.chain(await desk.node()), tmp_path)
    key: PoolKey = stage.native_pool if kind == "ether" else stage.weth_pool
    if kind == "swapping rebalance":
        told = await plans.told(Action.REBALANCE, mint_out_of_range(stage), range=RANGE)
    else:
        told = await plans.creation(key, ETHER // 2, 1_000 * 10**6)
    plan_id = await plans.approved(told)
    value = (await plans.book(plan_id)).draft.steps[-1].value  # type: ignore[union-attr]
    leave_ether(stage, value + 1)
    with pytest.raises(Refused, match=rf"0\.\d+ ETH.*{stage.wallet}") as refused:
        await plans.apply(plan_id)
    missing = str(refused.value).split("send ")[1].split(" ETH")[0]
    need = stage.balance(NATIVE) + int(Decimal(missing) * ETHER)
    stage.send("trader", stage.wallet, b"", need - 1 - stage.balance(NATIVE))
    with pytest.raises(Refused, match=r"send 0\.000000000000000001 ETH"):
        await plans.apply(plan_id)
    assert (await plans.book(plan_id)).state is PlanState.APPROVED, "nothing was signed"
    stage.send("trader", stage.wallet, b"", 1)
    assert stage.balance(NATIVE) == need
    book = await plans.apply(plan_id)
    assert book.over is not None
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    assert len(book.steps) > 1
