"""A run is shown as it was when it ended, whatever the code has become since."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.cycling import Desk, market
from tests.wire.fakes.series import MemorySeries
from zuno.journal.blocks import unpack
from zuno.journal.decision_view import DECISION_VIEW
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Entry
from zuno.kernel.errors import Broken, Unavailable
from zuno.trading.measure import indicators
from zuno.trading.model.cycle import Outcome
from zuno.trading.run.record import ENDED
from zuno.trading.service.report import Reports

BTC = "BTCUSDT"


@pytest.fixture(scope="module")
def store() -> MemorySeries:
    return asyncio.run(market(thin=True))


@pytest.fixture
def desk(tmp_path: Path, store: MemorySeries) -> Desk:
    return Desk(tmp_path, store)


def shift_adx(monkeypatch: pytest.MonkeyPatch) -> None:
    real = indicators.adx
    monkeypatch.setattr(indicators, "adx", lambda *prices: real(*prices) + 7.0)


async def stored_views(desk: Desk) -> list[Entry]:
    return [entry async for entry in (await desk.opened()).entries(kind=DECISION_VIEW)]


async def end_without_view(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """A run whose process dies between its end and its view."""
    journal = await desk.opened()
    assert isinstance(journal, ChainedJournal)
    write = journal.append_once

    async def die(**entry: Any) -> Entry:
        if entry["kind"] == DECISION_VIEW:
            raise Unavailable("gone")
        return await write(**entry)

    with monkeypatch.context() as patched:
        patched.setattr(journal, "append_once", die)
        with pytest.raises(Unavailable):
            await desk.cycles.run(BTC)
    (ended,) = await journal.latest(1, kind=ENDED)
    return await desk.cycles.outcome(ended.request_id or "")


async def test_a_run_shows_the_figures_of_its_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = await desk.cycles.run(BTC)
    reports = Reports(desk.cycles)
    before = await desk.cycles.why(outcome.run_id)
    assert before.run is not None
    assert "ADX14 is 29.1" in before.run.meta.rationale
    assert before.run.computed_by is None
    shift_adx(monkeypatch)
    assert await desk.cycles.why(outcome.run_id) == before
    assert (await reports.resume(outcome.run_id, lambda event: None)).view == before.run
    (entry,) = await stored_views(desk)
    assert entry.payload["decided"] == outcome.hash


async def test_a_look_loads_a_record_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = await desk.cycles.run(BTC)
    journal, walks = await desk.opened(), []
    assert isinstance(journal, ChainedJournal)
    read = journal.entries

    def count(**which: Any) -> AsyncIterator[Entry]:
        walks.append(which)
        return read(**which)

    monkeypatch.setattr(journal, "entries", count)
    reports = Reports(desk.cycles)
    for look in (desk.cycles.why, reports.show, lambda run_id: reports.resume(run_id, lambda event: None)):
        walks.clear()
        await look(outcome.run_id)
        assert walks == [{"request_id": outcome.run_id}]
    walks.clear()
    assert [line.run_id for line in (await desk.cycles.runs()).runs] == [outcome.run_id]
    assert walks == []


async def test_a_replay_says_what_is_shown_otherwise_and_leaves_the_decision_identical(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = await desk.cycles.run(BTC)
    assert (await desk.cycles.replay(outcome.run_id)).view_differences == ()
    shift_adx(monkeypatch)
    replayed = await desk.cycles.replay(outcome.run_id)
    assert (replayed.ok, replayed.identical, replayed.hash) == (True, True, outcome.hash)
    assert replayed.differences == ()
    paths = {difference.partition(" was ")[0]: difference for difference in replayed.view_differences}
    assert paths.keys() == {"facts.1d.adx14.value", "facts.1d.adx14.printed", "view.meta.rationale"}
    assert paths["facts.1d.adx14.printed"].endswith("was 29.1, is 36.1")


async def test_a_run_without_its_view_is_computed_by_a_look_that_writes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = await end_without_view(desk, monkeypatch)
    head, cycles = (desk.home / "journal.head").read_bytes(), desk.cycles
    looked = await cycles.why(outcome.run_id)
    assert looked.run is not None
    assert (looked.run.computed_by, looked.run.hash) == ("test", outcome.hash)
    assert (await Reports(cycles).resume(outcome.run_id, lambda event: None)).view.computed_by == "test"
    assert (await cycles.replay(outcome.run_id)).view_differences == ()
    assert (desk.home / "journal.head").read_bytes() == head
    upgraded = await cycles.store_missing_views()
    assert (upgraded.stored, upgraded.not_stored) == (1, ())
    shown = (await cycles.why(outcome.run_id)).run
    assert shown == looked.run.model_copy(update={"computed_by": None, "computed_why": ""})


async def test_a_view_is_stored_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = await end_without_view(desk, monkeypatch)
    await desk.cycles.run(BTC)
    both = await asyncio.gather(desk.cycles.store_missing_views(), desk.cycles.store_missing_views())
    assert {view.stored for view in both} == {1}, "both looked before either wrote"
    assert (await desk.cycles.store_missing_views()).stored == 0
    entries = await stored_views(desk)
    assert sorted(entry.request_id == outcome.run_id for entry in entries) == [False, True]


async def test_a_run_that_has_not_ended_has_no_view(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await desk.opened()
    assert isinstance(journal, ChainedJournal)
    write = journal.append_once

    async def die(**entry: Any) -> Entry:
        if entry["kind"] == ENDED:
            raise Unavailable("gone")
        return await write(**entry)

    with monkeypatch.context() as patched:
        patched.setattr(journal, "append_once", die)
        with pytest.raises(Unavailable):
            await desk.cycles.run(BTC)
    assert (await desk.cycles.store_missing_views()).stored == 0
    (started,) = await journal.latest(1, kind="cycle_started")
    record = await desk.cycles.record(started.request_id or "")
    assert (record.view, record.outcome) == (None, None)
    await desk.cycles.resume(started.request_id or "")
    assert len(await stored_views(desk)) == 1


async def test_a_view_that_was_changed_is_refused(desk: Desk, store: MemorySeries) -> None:
    outcome = await desk.cycles.run(BTC)
    await desk.close()
    with sqlite3.connect(desk.home / "journal.db") as database:
        (body,) = database.execute("SELECT body FROM entries WHERE kind = ?", (DECISION_VIEW,)).fetchone()
        whole = unpack(bytes(body).partition(b"\n")[2])
        assert whole is not None
        other = whole.replace(b'"version":2', b'"version":1')
        assert other != whole
        database.execute("UPDATE entries SET body = ? WHERE kind = ?", (other, DECISION_VIEW))
    again = Desk(desk.home, store)
    journal = await again.opened()
    assert isinstance(journal, ChainedJournal)
    verdict = await journal.verify()
    (number,) = [entry.fault.seq for entry in (verdict,) if entry.fault is not None]
    assert number == verdict.entries + 1
    with pytest.raises(Broken, match="journal verify"):
        await again.cycles.why(outcome.run_id)
    await again.close()
