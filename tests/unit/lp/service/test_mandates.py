"""Granting, showing and revoking: what is refused, what is signed, and what a changed mandate is worth."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.wire.mandates import MandatedHome, agree, mandated_home
from zuno.adapters.keys.wallets import WatchOnly
from zuno.kernel.errors import Refused, UsageError, ZunoError
from zuno.kernel.units import Address
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.mandates import append_mandate_event
from zuno.lp.model.mandate import MandatedAct, MandateGranted
from zuno.lp.rules.mandate import hash_mandate, mandate_bytes
from zuno.lp.service.mandates import AS_IS, MandateDesk, MandateRequest

DAY = 86_400_000
OTHER = "0x" + "22" * 20


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[MandatedHome]:
    async with mandated_home(tmp_path) as opened:
        yield opened


REFUSED: dict[str, tuple[dict[str, Any], type[ZunoError]]] = {
    "31 days": ({"lasts": "31d"}, Refused),
    "another wallet": ({"wallet": OTHER}, Refused),
    "a cap of 0 dollars": ({"worth_per_day": "0"}, UsageError),
    "a cap of 0 gas": ({"gas_per_day": "0"}, UsageError),
    "a cap below the position": ({"worth_per_day": "100"}, Refused),
    "a position that is not there": ({"positions": ["77"]}, Refused),
    "no position": ({"positions": []}, UsageError),
    "no pool": ({"positions": [], "pools": ["0x" + "ab" * 32]}, Refused),
    "nothing allowed": ({"below": None}, Refused),
    "a level that is reached": ({"below": "5000"}, Refused),
    "levels that cross": ({"below": "2900", "above": "2800"}, Refused),
    "an unknown end": ({"to": "token2"}, UsageError),
    "no price": ({"worst": "100"}, UsageError),
    "an end without an exit": ({"below": None, "to": "token1", "acts": [MandatedAct.COMPOUND]}, UsageError),
    "two pairs": ({"positions": ["1", "2"]}, Refused),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_nobody_may_grant(home: MandatedHome, name: str) -> None:
    terms, error = REFUSED[name]
    with pytest.raises(error):
        await home.grant(**{"below": "2800", **terms})
    assert (await home.book()).granted == {}


async def _with(home: MandatedHome, change: Any) -> MandateDesk:
    whole = home.zuno.mandates()

    async def open_context(chain: str) -> ExecutionContext:
        context: ExecutionContext = change(await whole.context_of(chain))
        return context

    return replace(whole, context_of=open_context)


class SafeWriter:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def is_contract(self, wallet: Address) -> bool:
        return True


async def test_a_safe_and_a_watched_wallet_get_none(home: MandatedHome) -> None:
    safe: Any = lambda context: replace(context, writer=SafeWriter(context.writer))  # noqa: E731
    watched: Any = lambda context: replace(context, signer=WatchOnly(context.wallet))  # noqa: E731
    for change in (safe, watched):
        desk = await _with(home, change)
        with pytest.raises(Refused, match="Safe"):
            await desk.grant(MandateRequest(positions=["1"], below="2800", worth_per_day="100000"), agree)


async def test_a_script_grants_where_there_is_no_real_money_alone(home: MandatedHome) -> None:
    real: Any = lambda context: replace(context, chain=_Real(context.chain))  # noqa: E731
    request = MandateRequest(positions=["1"], below="2800", worth_per_day="100000")
    with pytest.raises(Refused, match="--yes"):
        await (await _with(home, real)).grant(request, agree, scripted=True)
    assert (await home.zuno.mandates().grant(request, agree, scripted=True)).mandates[0].active


class _Real:
    def __init__(self, chain: Any) -> None:
        self._chain = chain

    def __getattr__(self, name: str) -> Any:
        return replace(self._chain.info, testnet=False) if name == "info" else getattr(self._chain, name)


async def test_the_card_says_what_as_is_is_and_what_is_not_guaranteed(home: MandatedHome) -> None:
    asked: list[str] = []

    def confirm(word: str, what: str) -> bool:
        asked.append(f"{word}: {what}")
        return True

    request = MandateRequest(positions=["1"], below="2800", worth_per_day="100000")
    await home.zuno.mandates().grant(request, confirm)
    assert AS_IS in asked[0]
    assert "Not guaranteed" in asked[0]
    assert asked[0].startswith("grant: ")


async def test_a_new_mandate_replaces_the_old_one_and_a_revocation_ends_it(home: MandatedHome) -> None:
    first = (await home.grant(below="2800")).mandates[0].hash
    second = (await home.grant(below="2700")).mandates[0].hash
    shown = await home.zuno.mandates().show()
    assert [each.hash for each in shown.mandates] == [second] != [first]
    assert (await home.zuno.mandates().revoke()).mandates == ()
    with pytest.raises(Refused):
        await home.zuno.mandates().revoke()


async def test_a_mandate_of_another_chain_is_not_revoked_by_its_name(home: MandatedHome) -> None:
    await home.grant(below="2800")
    with pytest.raises(Refused):
        await home.zuno.mandates().revoke("base")
    assert len((await home.zuno.mandates().show()).mandates) == 1


CHANGED: dict[str, Any] = {
    "wallet": lambda mandate: {"wallet": OTHER},
    "chain": lambda mandate: {"chain": "devnet"},
    "chain id": lambda mandate: {"chain_id": 1},
    "genesis": lambda mandate: {"genesis": "0x" + "11" * 32},
    "expiry": lambda mandate: {"expires": mandate.expires + 20 * DAY},
    "level": lambda mandate: {"exit": mandate.exit.model_copy(update={"below": mandate.exit.below + 100})},
    "cap": lambda mandate: {"worth_usd_per_day": mandate.worth_usd_per_day * 2},
}


@pytest.mark.parametrize("signed", ["by nobody", "rehashed", "hash alone"])
@pytest.mark.parametrize("name", CHANGED)
async def test_a_changed_mandate_is_none(home: MandatedHome, name: str, signed: str) -> None:
    """Whoever can write in the journal and not sign with the node's key gets no act out of it."""
    await home.grant(below="3000")
    (granted,) = (await home.book()).standing.values()
    mandate = granted.mandate.model_copy(update=CHANGED[name](granted.mandate))
    told = granted.hash if signed == "by nobody" else hash_mandate(mandate)
    forged = MandateGranted(mandate=mandate, hash=told, signature=granted.signature)
    if signed == "hash alone":
        forged = granted.model_copy(update={"hash": "ab" * 32})
    await append_mandate_event(await home.zuno._open_journal(), forged)
    await home.fall()
    held = name in ("wallet", "chain") and signed != "hash alone"  # of somebody else: the first one stands beside it
    assert await home.held() == ({2} if held else {1, 2})
    if held:
        (plan,) = await home.plans()
        assert plan.approved is not None
        assert plan.approved.approval.mandate == granted.hash


@pytest.mark.parametrize("name", ["chain id", "genesis"])
async def test_a_mandate_this_node_signed_for_another_chain_is_not_acted_on_here(home: MandatedHome, name: str) -> None:
    await home.grant(below="3000")
    (granted,) = (await home.book()).standing.values()
    mandate = granted.mandate.model_copy(update=CHANGED[name](granted.mandate))
    context = await home.zuno._execution_context("sim")
    signature = context.key.sign(mandate_bytes(mandate)).hex()
    other = MandateGranted(mandate=mandate, hash=hash_mandate(mandate), signature=signature)
    await append_mandate_event(context.journal, other)
    await home.fall()
    assert await home.held() == {1, 2}


async def test_a_mandate_older_than_the_backup_of_a_home_is_granted_anew(home: MandatedHome) -> None:
    await home.grant(below="3000")
    home.change = lambda context: replace(context, restored=10**9)
    await home.fall()
    assert await home.held() == {1, 2}
    assert await home.plans() == []
