"""What the journal gives back of a debate, and what it refuses to vouch for once somebody was at it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.wire.debating import REQUEST, Table, observed, scout_says
from tests.wire.fakes.model import ScriptedModel
from zuno.adapters.model.registry import ModelTable
from zuno.journal.decision_view import DECISION_VIEW
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Entry, Journal
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.llm.port import RoleModels
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.model.debate import Kind
from zuno.lp.service.archive import Archive
from zuno.lp.service.plan_replay import ReplayDebateRunner
from zuno.lp.service.plan_view import PlanView, plan_id_of
from zuno.lp.service.recorded_request import RecordedRequest, read_request
from zuno.provenance.facts import Figure
from zuno.settings import Settings, read_settings
from zuno.wiring import Application
from zuno.wiring.version import code_version


class Seated(Application):
    """A house with a scout of its own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        scout = ScriptedModel(lambda request: scout_says(), "a scout")
        self._models._registry = ModelTable(RoleModels((), "no key"), {"scout": RoleModels((scout,))})


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Application]:
    house = Seated(read_settings({}, tmp_path))
    yield house
    await house.close()


@pytest.fixture
async def plan(house: Application) -> PlanView:
    return await house.advice().rebalance("1", chain="sim")


def tamper(home: Path, *statements: str) -> None:
    with sqlite3.connect(home / "journal.db") as database:
        for statement in statements:
            assert database.execute(statement).rowcount


async def copied(journal: Journal, entries: Sequence[Entry], request: str, **changes: Any) -> None:
    """The same entries in another request, the record of the plan with changes (None: without that field)."""
    for entry in entries:
        payload = json.loads(canonical(dict(entry.payload)))
        if "requestId" in payload:
            payload["requestId"] = request
        if entry.kind == "plan":
            payload = {name: value for name, value in {**payload, **changes}.items() if value is not None}
        await journal.append(
            kind=entry.kind, author=entry.author, payload=payload, request_id=request, bundle=entry.bundle
        )


async def debate_of(journal: Journal, request: str) -> list[Entry]:
    """A request's entries up to the record of its plan, which is the last."""
    return [entry async for entry in journal.entries(request_id=request) if entry.kind != DECISION_VIEW]


async def end_of(journal: Journal, request: str) -> str:
    (entry,) = await journal.latest(1, request_id=request, kind="plan_ready")
    return digest(canonical(dict(entry.payload)))


def reopened(home: Path) -> Application:
    return Seated(read_settings({}, home))


@pytest.mark.slow
async def test_a_plan_comes_back_as_it_was(house: Application, plan: PlanView) -> None:
    archive = house.archive()
    assert await archive.plan(plan.plan_id) == plan
    why = await archive.why(plan.request_id)
    assert why.plan == plan
    assert why.transcript == plan.transcript
    replayed = await archive.replay(plan.plan_id)
    assert (replayed.identical, replayed.hash, replayed.replayed_hash) == (True, plan.hash, plan.hash)


@pytest.mark.slow
async def test_the_owners_choice_comes_back_and_is_what_is_replayed(house: Application, plan: PlanView) -> None:
    other = next(one.index for one in plan.candidates if one.index != plan.recommended.index and one.verdict != "veto")
    own = await house.advice().rebalance("1", chain="sim", candidate=other)
    assert (own.decided_by, own.recommended.index) == ("owner", other)
    assert own.hash != plan.hash
    archive = house.archive()
    assert await archive.plan(own.plan_id) == own
    assert (await archive.why(own.request_id)).plan == own
    replayed = await archive.replay(own.plan_id)
    assert (replayed.identical, replayed.hash, replayed.replayed_hash) == (True, own.hash, own.hash)


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flow_start", "context_observed", "proposal", "plan_ready", "model_attempt", "plan"])
async def test_a_debate_with_a_part_missing_is_broken_not_replayed(
    house: Application, plan: PlanView, kind: str, tmp_path: Path
) -> None:
    await house.advice().rebalance("1", chain="sim")  # others came after it
    await house.close()
    tamper(tmp_path, f"DELETE FROM entries WHERE kind = '{kind}' AND request_id = '{plan.request_id}'")
    again = reopened(tmp_path)
    with pytest.raises(Broken, match="journal verify"):
        await again.archive().replay(plan.request_id)
    await again.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["proposal", "plan_ready", "plan"])
async def test_a_part_moved_to_another_request_is_broken(
    house: Application, plan: PlanView, kind: str, tmp_path: Path
) -> None:
    await house.close()
    tamper(tmp_path, f"UPDATE entries SET request_id = 'req_0000000000000000' WHERE kind = '{kind}'")
    again = reopened(tmp_path)
    with pytest.raises(Broken):
        await again.archive().replay(plan.request_id)
    await again.close()


@pytest.mark.slow
async def test_a_context_that_is_gone_is_found(house: Application, plan: PlanView, tmp_path: Path) -> None:
    await house.close()
    tamper(tmp_path, "DELETE FROM bundles")
    again = reopened(tmp_path)
    verdict = await again.audit().verify()
    assert not verdict.ok
    with sqlite3.connect(tmp_path / "journal.db") as database:
        (named,) = database.execute("SELECT seq FROM entries WHERE kind = 'context_observed'").fetchone()
    assert verdict.first_bad is not None
    assert verdict.first_bad.seq == named
    assert "missing" in verdict.first_bad.reason
    for ask in (again.archive().replay, again.archive().decision, again.archive().stress_fan):
        with pytest.raises(Broken, match="context"):
            await ask(plan.plan_id)
    assert await again.archive().plan(plan.plan_id) == plan, "what was shown is an entry of its own"
    await again.close()


@pytest.mark.slow
async def test_a_replay_says_what_was_recorded_and_not_asked_for(house: Application, plan: PlanView) -> None:
    """An attempt nobody asks for again is a difference, even where the decision is the same."""
    journal = house.journal()
    entries = await debate_of(journal, plan.request_id)
    attempt = next(entry for entry in entries if entry.kind == "model_attempt")
    other = json.loads(canonical(dict(attempt.payload))) | {"round": 7}
    request = "req_00000000000000ab"
    await copied(journal, entries[:-1], request)
    await journal.append(kind=attempt.kind, author=attempt.author, payload=other, request_id=request)
    await copied(journal, entries[-1:], request, message=await end_of(journal, request))
    replayed = await house.archive().replay(request)
    assert replayed.hash == replayed.replayed_hash
    assert not replayed.identical
    assert any("asked" in one for one in replayed.differences)


@pytest.mark.slow
async def test_a_plan_that_its_debate_does_not_give_is_a_difference(house: Application, plan: PlanView) -> None:
    journal, request = house.journal(), "req_00000000000000cd"
    entries = await debate_of(journal, plan.request_id)
    await copied(journal, entries[:-1], request)
    await copied(journal, entries[-1:], request, message=await end_of(journal, request), hash="0" * 64)
    replayed = await house.archive().replay(request)
    assert not replayed.identical
    assert any("record" in one for one in replayed.differences)


@pytest.mark.slow
async def test_a_plan_of_record_names_the_message_it_stands_on(house: Application, plan: PlanView) -> None:
    """In one process too; where that message is not in the journal nothing else is shown in its place."""
    journal, request = house.journal(), "req_00000000000000ef"
    (record,) = await journal.latest(1, request_id=plan.request_id, kind="plan")
    assert record.payload["message"] == await end_of(journal, plan.request_id)
    entries = await debate_of(journal, plan.request_id)
    await copied(journal, entries, request)  # a debate of another request is signed in another way
    for ask in (house.archive().why, house.archive().replay):
        with pytest.raises(Broken, match="gone"):
            await ask(request)


@pytest.mark.slow
async def test_a_record_from_before_messages_were_named_stands_on_the_end_before_it(
    house: Application, plan: PlanView
) -> None:
    journal, request = house.journal(), "req_00000000000000aa"
    entries = await debate_of(journal, plan.request_id)
    await copied(journal, entries[:-1], request)
    await _another_end(journal, request)
    await copied(journal, entries[-1:], request, message=None)
    (old,) = await journal.latest(1, request_id=request, kind="plan")
    assert "message" not in old.payload
    await _another_end(journal, request)
    shown = (await house.archive().why(request)).plan
    assert shown is not None
    assert (shown.hash, shown.confidence, shown.transcript) == (plan.hash, plan.confidence, plan.transcript)
    assert (await house.archive().replay(request)).identical


@pytest.mark.slow
async def test_a_message_is_found_by_what_it_says_and_not_by_its_place(house: Application, plan: PlanView) -> None:
    """The record names the second of three ends."""
    journal, request = house.journal(), "req_00000000000000bb"
    entries = await debate_of(journal, plan.request_id)
    ends = [number for number, entry in enumerate(entries) if entry.kind == "plan_ready"]
    await copied(journal, entries[: ends[0] + 1], request)
    await _another_end(journal, request)
    named = await end_of(journal, request)
    await copied(journal, entries[ends[0] :], request, message=named)
    shown = (await house.archive().why(request)).plan
    assert shown is not None
    assert (shown.hash, shown.confidence, shown.transcript) == (plan.hash, 1.0, ())


async def _another_end(journal: Journal, request: str) -> None:
    """The newest end once more, surer of itself and in other words."""
    (entry,) = await journal.latest(1, request_id=request, kind="plan_ready")
    payload = json.loads(canonical(dict(entry.payload)))
    payload["payload"]["confidence"] = 1.0
    payload["payload"]["debate"]["transcript"] = []
    await journal.append(kind=entry.kind, author=entry.author, payload=payload, request_id=request, bundle=entry.bundle)


@pytest.mark.soak
async def test_of_two_plans_of_one_request_each_is_read_by_its_name(house: Application, plan: PlanView) -> None:
    """As a journal may hold them from before a request had one plan."""
    journal, archive = house.journal(), house.archive()
    free = next(one.index for one in plan.candidates if one.verdict != "veto" and one.index != plan.recommended.index)
    own = await house.advice().rebalance("1", chain="sim", candidate=free)
    digest_of_own = plan_id_of(plan.request_id, own.hash)
    (record,) = await journal.latest(1, request_id=plan.request_id, kind="plan")
    second = {**record.payload, "planId": digest_of_own, "hash": own.hash, "ownerChoice": free, "decidedBy": "owner"}
    await journal.append(kind="plan", author=record.author, payload=second, request_id=plan.request_id)
    chosen = plan.recommended.index
    for plan_id, hashed, index in ((plan.plan_id, plan.hash, chosen), (digest_of_own, own.hash, free)):
        decided = await archive.decision(plan_id)
        assert (decided.hash, decided.chosen.index) == (hashed, index)
        assert (await archive.plan(plan_id)).plan_id == plan_id
        shown = (await archive.why(plan_id)).plan
        assert shown is not None
        assert shown.plan_id == plan_id
        assert (await archive.replay(plan_id)).hash == hashed
    shown = (await archive.why(plan.request_id)).plan
    assert shown is not None
    assert shown.plan_id == plan.plan_id  # the first is the request's


@pytest.mark.slow
async def test_a_choice_that_gives_another_hash_is_not_carried_out(house: Application, plan: PlanView) -> None:
    journal, made_up = house.journal(), "0" * 64
    named = plan_id_of(plan.request_id, made_up)
    free = next(one.index for one in plan.candidates if one.verdict != "veto" and one.index != plan.recommended.index)
    (record,) = await journal.latest(1, request_id=plan.request_id, kind="plan")
    forged = {**record.payload, "planId": named, "hash": made_up, "ownerChoice": free, "decidedBy": "owner"}
    await journal.append(kind="plan", author=record.author, payload=forged, request_id=plan.request_id)
    with pytest.raises(Broken, match="hash"):
        await house.archive().decision(named)


@pytest.mark.slow
async def test_the_verdict_that_counts_is_the_one_in_the_hash(
    house: Application, plan: PlanView, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(*args: Any) -> RecordedRequest:
        recorded = await read_request(*args)
        assert recorded.plan is not None
        return replace(recorded, plan=recorded.plan.model_copy(update={"verdict": "reject"}))

    monkeypatch.setattr("zuno.lp.service.archive.recorded_request.read_request", read)
    decided = await house.archive().decision(plan.plan_id)
    assert (decided.hash, decided.chosen.index, decided.rejected) == (plan.hash, plan.recommended.index, None)


@pytest.mark.slow
async def test_a_refused_choice_shows_its_ballot_in_process_too(house: Application, plan: PlanView) -> None:
    vetoed = next(one.index for one in plan.candidates if one.verdict == "veto")
    with pytest.raises(Refused, match=rf"\b{vetoed}\b.*\bvetoed\b") as raised:
        await house.advice().rebalance("1", chain="sim", candidate=vetoed)
    request = str(raised.value).split("`zuno why ")[1].split("`")[0]
    (note,) = await house.journal().latest(1, request_id=request, kind="choice_refused")
    assert (note.payload["choice"], note.payload["message"]) == (vetoed, await end_of(house.journal(), request))
    shown = (await house.archive().why(request)).plan
    assert shown is not None
    assert shown.hash == plan.hash
    assert request not in [line.request_id for line in (await house.archive().plans()).plans]


@pytest.mark.soak
async def test_plans_that_differ_in_anything_a_person_reads_are_told_apart(house: Application, plan: PlanView) -> None:
    advice, archive = house.advice(), house.archive()
    more, less = await advice.create("2 WETH"), await advice.create("1 WETH")
    told = {change.what for change in (await archive.diff(more.plan_id, less.plan_id)).changes}
    assert {"puts in", "hash"} <= told
    told = {change.what for change in (await archive.diff(plan.plan_id, more.plan_id)).changes}
    assert {"kind", "position"} <= told
    assert (await archive.diff(plan.plan_id, plan.plan_id)).changes == ()
    again = await advice.rebalance("1", chain="sim")
    assert (await archive.diff(plan.plan_id, again.plan_id)).changes == ()


@pytest.mark.slow
async def test_a_failed_flow_shows_how_far_it_came(tmp_path: Path) -> None:
    def lossy(envelope: Envelope, data: bytes) -> bytes | None:
        return None if envelope.kind is Kind.PROPOSAL else data

    table = Table(tmp_path, await observed(tmp_path), change=lossy, patience=4.0)
    with pytest.raises(Unavailable):
        await table.debate()

    async def journal() -> Journal:
        return table.journal

    async def nobody(*arguments: object) -> ReplayDebateRunner:
        raise AssertionError("nothing to replay")

    archive = Archive(journal, nobody, lambda: "test")
    why = await archive.why(REQUEST)
    assert why.plan is None
    assert why.failed is not None
    assert "did not end" in why.failed
    assert [one.role for one in why.transcript[:2]] == ["scout", "strategist"]
    with pytest.raises(Refused, match=rf"{REQUEST} .*\breplay\b"):
        await archive.replay(REQUEST)


async def test_a_plan_shows_the_figures_of_its_end(
    house: Application, plan: PlanView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where today's code would print another figure: a replay names it, and the decided bytes are the same."""
    assert (await house.archive().replay(plan.plan_id)).view_differences == ()
    real = Figure.print
    monkeypatch.setattr(Figure, "print", lambda fact, **how: real(fact, **how) + "?")
    archive = house.archive()
    assert await archive.plan(plan.plan_id) == plan
    assert (await archive.why(plan.request_id)).plan == plan
    replayed = await archive.replay(plan.plan_id)
    assert replayed.hash == plan.hash
    assert any(difference.startswith("view.transcript[") for difference in replayed.view_differences)
    assert any("facts.c2.buffer_1x.printed" in difference for difference in replayed.view_differences)


async def test_a_plan_whose_process_died_before_its_view_is_stored_later_and_once(
    house: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = ChainedJournal.append_once

    async def die(journal: ChainedJournal, **entry: Any) -> Entry:
        if entry["kind"] == DECISION_VIEW:
            raise Unavailable("gone")
        return await write(journal, **entry)

    with monkeypatch.context() as patched:
        patched.setattr(ChainedJournal, "append_once", die)
        with pytest.raises(Unavailable):
            await house.advice().rebalance("1", chain="sim")
    (line,) = (await house.archive().plans()).plans
    (newest,) = await house.journal().latest(1)
    looked = await house.archive().plan(line.plan_id)
    assert (looked.computed_by, newest.kind) == (code_version(), "plan")
    assert (await house.journal().latest(1)) == [newest]
    assert [(await house.upgrade_journal()).stored for _ in range(2)] == [1, 0]
    shown = await house.archive().plan(line.plan_id)
    assert shown == looked.model_copy(update={"computed_by": None, "computed_why": ""})
