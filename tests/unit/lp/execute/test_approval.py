"""A row in a database is no approval: only this node's signature over exactly this plan, these bytes, this chain is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.lp.execute.checks import approval_hash, check_approval, check_chain, check_not_expired, signing_bytes
from zuno.lp.execute.plan_state import PlanProgress, draft_digest
from zuno.lp.model.plan import Flow, Leftover
from zuno.lp.model.plan_events import Approval, Draft, ExitWorth, PlanApproved

KINDS = [
    f"{action} {pool}"
    for action in ("collect", "close", "remove", "add", "rebalance", "create", "swap and create")
    for pool in ("tokens", "ether")
] + ["wrap and create"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_draft_of_every_kind_comes_back_byte_for_byte(bench: Any, kind: str) -> None:
    told = (await bench.every_kind())[kind]
    draft = (await bench.drafted(told)).draft
    again = Draft.model_validate(decode_canonical(canonical(draft)))
    assert again == draft
    assert canonical(again) == canonical(draft)
    assert (draft.later is not None) is kind.startswith("rebalance")


async def approved(bench: Any) -> tuple[PlanProgress, Approval, Draft]:
    plan_id = await bench.approved(await bench.two_steps())
    book = await bench.book(plan_id)
    return book, book.approved.approval, book.draft


async def test_what_was_approved_is_what_is_applied(bench: Any) -> None:
    book, approval, draft = await approved(bench)
    assert check_approval(book, bench.key) == draft
    assert approval.draft == draft_digest(draft)
    assert (approval.plan_id, approval.chain_id, approval.wallet) == (book.plan_id, bench.info.id, bench.wallet)
    assert approval.expires == draft.expires
    assert approval.genesis == draft.genesis
    assert approval.who.endswith(f" {bench.key.public[:16]}")


OTHER = {
    "plan_id": "plan_" + "f" * 12,
    "plan_hash": "cd" * 32,
    "draft": "ef" * 32,
    "chain_id": 1,
    "genesis": "0x" + "11" * 32,
    "wallet": "0x" + "22" * 20,
    "expires": 2**33,
    "who": "somebody else",
    "mandate": "ab" * 32,
}


def test_every_field_of_an_approval_is_tried() -> None:
    assert set(OTHER) == set(Approval.model_fields)


@pytest.mark.parametrize("name", sorted(OTHER))
async def test_a_changed_field_of_the_approval_is_not_what_was_signed(bench: Any, name: str) -> None:
    book, approval, _ = await approved(bench)
    forged = approval.model_copy(update={name: OTHER[name]})
    assert approval_hash(forged) != approval_hash(approval)
    book.approved = book.approved.model_copy(update={"approval": forged})  # type: ignore[union-attr]
    with pytest.raises(Refused, match="signature"):
        check_approval(book, bench.key)


@pytest.mark.parametrize("name", sorted(set(OTHER) - {"who", "mandate"}))
async def test_an_approval_this_node_signed_for_something_else_is_none(bench: Any, name: str) -> None:
    book, approval, _ = await approved(bench)
    other = approval.model_copy(update={name: OTHER[name]})
    signature = bench.key.sign(signing_bytes(other)).hex()
    book.approved = PlanApproved(plan_id=book.plan_id, approval=other, signature=signature)
    with pytest.raises(Refused, match=r"\brecord|plan_|transactions"):
        check_approval(book, bench.key)


async def test_a_changed_byte_of_the_draft_is_not_what_was_approved(bench: Any) -> None:
    book, _, draft = await approved(bench)
    first = draft.steps[0]
    changed: dict[str, Any] = {
        "steps": (replace(first, data=first.data[:-1] + b"\1"), *draft.steps[1:]),
        "bounds": replace(draft.bounds, slippage_bps=9_999),
        "caps": (Flow(NATIVE, 10**30),),
        "proceeds": (Flow(NATIVE, 10**30),),
        "expires": draft.expires + 1,
        "gas": draft.gas.model_copy(update={"max_fee": draft.gas.max_fee + 1}),
        "later": None,
        "notes": ("a note",),
        "leftover": Leftover(1, 2, 3, 4, 5, "because"),
        "route": draft.pool.key,
        "others": (draft.position,),
        "exits": (ExitWorth(**dict.fromkeys(ExitWorth.model_fields, "1")),),
        "block": replace(draft.block, number=draft.block.number + 1),
        "pool": replace(draft.pool, tick=draft.pool.tick + 1),  # type: ignore[arg-type]
        "position": None,
        "wallet": OTHER["wallet"],
        "chain_id": 1,
        "genesis": OTHER["genesis"],
        "plan_hash": OTHER["plan_hash"],
        "plan_id": OTHER["plan_id"],
        "instruction": draft.instruction.model_copy(update={"tick": 0}),
    }
    assert set(changed) == set(Draft.model_fields)
    for name, value in changed.items():
        book.draft = draft.model_copy(update={name: value})
        with pytest.raises(Refused, match="record"):
            check_approval(book, bench.key)


async def test_another_node_s_signature_is_none(bench: Any, tmp_path: Path) -> None:
    book, approval, _ = await approved(bench)
    other = KeyFile(tmp_path / "other.key")
    other.ensure()
    assert check_approval(book, bench.key)
    with pytest.raises(Refused, match="signature"):
        check_approval(book, other)
    book.approved = book.approved.model_copy(update={"signature": other.sign(signing_bytes(approval)).hex()})  # type: ignore[union-attr]
    with pytest.raises(Refused, match="signature"):
        check_approval(book, bench.key)


async def test_a_signature_over_the_bare_words_is_none(bench: Any) -> None:
    """The node signs other things with the same key: an approval has a seal of its own."""
    book, approval, _ = await approved(bench)
    bare = bench.key.sign(canonical(approval)).hex()
    book.approved = book.approved.model_copy(update={"signature": bare})  # type: ignore[union-attr]
    with pytest.raises(Refused, match="signature"):
        check_approval(book, bench.key)


@pytest.mark.slow
@pytest.mark.parametrize("signature", ["", "00", "00" * 63, "00" * 65, "zz" * 64, "AB" * 64, "00" * 64 + "\n"])
async def test_an_odd_signature_is_not_even_a_row(bench: Any, signature: str) -> None:
    book, approval, _ = await approved(bench)
    with pytest.raises(ValueError, match="signature"):
        PlanApproved(plan_id=book.plan_id, approval=approval, signature=signature)


@pytest.mark.parametrize("signature", ["00" * 64, "ff" * 64])
async def test_a_signature_of_nothing_is_none(bench: Any, signature: str) -> None:
    book, _, _ = await approved(bench)
    book.approved = book.approved.model_copy(update={"signature": signature})  # type: ignore[union-attr]
    with pytest.raises(Refused, match="signature"):
        check_approval(book, bench.key)


async def test_a_plan_nobody_approved_is_not_applied(bench: Any) -> None:
    drafted = await bench.drafted(await bench.two_steps())
    with pytest.raises(Refused, match="approved"):
        await bench.apply(drafted.draft.plan_id)


async def test_half_a_record_is_no_approval(bench: Any) -> None:
    book, _, _ = await approved(bench)
    for half in (replace(book, draft=None), replace(book, approved=None)):
        with pytest.raises(Refused, match="approved"):
            check_approval(half, bench.key)


async def test_another_plan_s_approval_is_of_another_plan(bench: Any) -> None:
    one, _, _ = await approved(bench)
    other, _, _ = await approved(bench)
    one.approved, one.draft = other.approved, other.draft
    with pytest.raises(Refused, match=f"{other.plan_id}.*{one.plan_id}"):
        check_approval(one, bench.key)


async def test_the_last_second_is_still_in_time(bench: Any) -> None:
    _, _, draft = await approved(bench)
    check_not_expired(draft, draft.expires)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=rf"{draft.expires}, 1 s\b"):
        check_not_expired(draft, draft.expires + 1)  # type: ignore[arg-type]


async def test_the_same_id_is_not_the_same_chain(bench: Any) -> None:
    _, _, draft = await approved(bench)
    await check_chain(bench.hands, draft)
    for name, words in (
        ("chain_id", "for chain id 1, this is"),
        ("genesis", "a chain that began with 0x1111111111…, this one 0x"),
        ("wallet", f"for the wallet {OTHER['wallet']}, the wallet here is {bench.wallet}"),
    ):
        with pytest.raises(Refused, match=words):
            await check_chain(bench.hands, draft.model_copy(update={name: OTHER[name]}))
