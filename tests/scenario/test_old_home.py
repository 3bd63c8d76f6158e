"""A home written before entries had an edition: it opens, nothing is argued again, what was half done can be ended."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.paths import GOLDEN
from tests.wire.commands import Zuno
from tests.wire.forked import ZunoProcess
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.canonical import canonical
from zuno.lp.mesh.envelope import Envelope, to_bytes
from zuno.lp.model import ballot
from zuno.lp.model.debate import Kind
from zuno.lp.model.plan import PLAN_KIND
from zuno.lp.service.plan_view import plan_id_of
from zuno.trading.model import cycle
from zuno.wiring.version import code_version

HOMES = GOLDEN / "homes"
OLD: dict[str, Any] = json.loads((HOMES / "edition_1.json").read_text())
ARGUED = [plan for plan in OLD["plans"] if plan["requestId"]]
UNSIGNED = [plan["planId"] for plan in ARGUED if plan["status"] in ("drafted", "approved") and plan["choice"] != "hold"]
SENT, HALFWAY = "plan_ece87df6dc99", "plan_9eeb8060298f"
UNDEBATED = "plan_8b12202f2dc8"
ENDED = [run for run in OLD["runs"] if run["state"] == "ended"]
CUT_OFF = [run["runId"] for run in OLD["runs"] if run["state"] == "unfinished"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(HOMES / "edition_1.tar.gz") as packed:
        packed.extractall(tmp_path / "home", filter="data")
    return tmp_path / "home"


def entries(home: Path) -> int:
    with sqlite3.connect(home / "journal.db") as journal:
        (count,) = journal.execute("SELECT count(*) FROM entries").fetchone()
    return int(count)


def fields(rows: list[dict[str, Any]], *names: str) -> list[list[Any]]:
    return [[row[name] for name in names] for row in rows]


def test_the_journal_holds_and_everything_is_listed(zuno: Zuno, home: Path) -> None:
    verdict = zuno("journal", "verify", "--json").document
    assert fields([verdict], "ok", "mode", "entries", "signatures") == [[True, "all", OLD["entries"], OLD["entries"]]]
    names = ("planId", "requestId", "kind", "choice", "decidedBy", "positionId", "state")
    assert fields(zuno("plan", "list", "--json").document["plans"], *names) == fields(OLD["plans"], *names)
    runs = zuno("trade", "runs", "--json").document["runs"]
    columns = ("runId", "symbol", "mode", "decision", "ruling", "hash")
    assert fields(runs, *columns) == fields(OLD["runs"], *columns)
    assert [run["state"] for run in runs] == ["ended", "expired", "expired", "ended"]
    assert zuno("alerts", "--json").document["alerts"][0]["id"] == OLD["alert"]
    assert entries(home) == OLD["entries"] + 1  # the first verification sealed it


def test_a_plan_of_an_older_edition_is_shown_and_not_argued_again(zuno: Zuno, home: Path) -> None:
    for plan in ARGUED:
        shown = zuno("plan", "show", plan["planId"], "--json").document
        assert (shown["planId"], shown["hash"]) == (plan["planId"], plan["hash"])
        assert (shown["confidence"], len(shown["transcript"])) == (plan["confidence"], plan["thoughts"])
        ran = zuno("replay", plan["planId"], "--json")
        assert ran.code == 0, ran.err
        said = ran.document
        assert (said["ok"], said["identical"], said["edition"]) == (True, None, 1)
        assert (said["hash"], said["replayedHash"], said["differences"]) == (plan["hash"], None, [])
        assert zuno("plan", "status", plan["planId"], "--json").document["state"] == plan["status"]
    assert zuno("why", ARGUED[0]["requestId"], "--json").document["plan"]["planId"] == ARGUED[0]["planId"]
    assert "edition 1" in zuno("replay", SENT).out


def test_a_run_of_an_older_edition_is_shown_and_not_argued_again(zuno: Zuno, home: Path) -> None:
    for run in ENDED:
        ran = zuno("replay", run["runId"], "--json")
        assert ran.code == 0, ran.err
        assert (ran.document["identical"], ran.document["edition"], ran.document["hash"]) == (None, 1, run["hash"])
        assert zuno("trade", "why", run["runId"], "--json").document["state"] == "ended"
        assert zuno("trade", "resume", run["runId"], "--json").document["hash"] == run["hash"]
    assert entries(home) == OLD["entries"]


def view_of(zuno: Zuno, reference: str) -> dict[str, Any]:
    document: dict[str, Any] = zuno("why", reference, "--json").document
    shown: dict[str, Any] = document.get("run") or document["plan"]
    return shown


def count_views(home: Path) -> int:
    with sqlite3.connect(home / "journal.db") as journal:
        (count,) = journal.execute("SELECT count(*) FROM entries WHERE kind = 'decision_view'").fetchone()
    return int(count)


def test_what_has_no_stored_view_is_computed_and_marked_until_the_journal_is_upgraded(zuno: Zuno, home: Path) -> None:
    decided = [*(run["runId"] for run in ENDED), *(plan["planId"] for plan in ARGUED)]
    head = (home / "journal.head").read_bytes()
    looked = {reference: view_of(zuno, reference) for reference in decided}
    assert {(view["computedBy"], bool(view["computedWhy"])) for view in looked.values()} == {(code_version(), True)}
    assert all("computed" in zuno("why", reference).out for reference in decided)
    assert (home / "journal.head").read_bytes() == head, "a look writes nothing"
    assert zuno("journal", "upgrade", "--json").document == {"stored": len(decided), "notStored": []}
    assert zuno("journal", "upgrade", "--json").document == {"stored": 0, "notStored": []}
    assert entries(home) == OLD["entries"] + len(decided)
    for reference, before in looked.items():
        assert view_of(zuno, reference) == {**before, "computedBy": None, "computedWhy": ""}
        replayed = zuno("replay", reference, "--json")
        assert (replayed.code, replayed.document["hash"]) == (0, before["hash"])
        assert replayed.document["viewDifferences"] == []
    assert zuno("journal", "verify").code == 0


def test_the_next_start_of_a_desk_stores_missing_views(zuno: Zuno, home: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    desk = ZunoProcess(
        ["monitor", "run"], env={**bare, "ZUNO_HOME": str(home)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while count_views(home) < len(ENDED) + len(ARGUED) and time.monotonic() < deadline:
            time.sleep(0.2)
        desk.send_signal(signal.SIGTERM)
        assert desk.wait(60) == 0
    finally:
        desk.kill()
    assert count_views(home) == len(ENDED) + len(ARGUED)
    assert zuno("journal", "upgrade", "--json").document["stored"] == 0
    assert zuno("journal", "verify").code == 0


def test_a_half_applied_plan_is_finished(zuno: Zuno) -> None:
    ran = zuno("plan", "apply", SENT, "--yes", "--json")
    assert ran.code == 0, ran.err
    assert (ran.document["state"], ran.document["newPositionId"]) == ("confirmed", "5")
    assert zuno("journal", "verify").code == 0


@pytest.mark.parametrize("plan_id", [SENT, HALFWAY])
def test_a_half_applied_plan_is_cancelled(zuno: Zuno, plan_id: str) -> None:
    ran = zuno("plan", "cancel", plan_id, "--json")
    assert (ran.code, ran.document["state"]) == (0, "cancelled"), ran.err
    assert zuno("plan", "apply", plan_id, "--yes").code == 3


def test_a_plan_with_nothing_signed_needs_a_fresh_debate(zuno: Zuno, home: Path) -> None:
    assert len(UNSIGNED) == 3
    for plan_id in UNSIGNED:
        for words in (("simulate",), ("approve", "--yes"), ("apply", "--yes")):
            ran = zuno("plan", words[0], plan_id, *words[1:], "--json")
            assert (ran.code, ran.document["error"]["kind"]) == (3, "refused")
            assert "edition 1" in ran.err
    assert entries(home) == OLD["entries"]
    assert zuno("plan", "cancel", UNSIGNED[0], "--json").document["state"] == "cancelled"


def test_a_plan_without_a_debate_has_no_edition(zuno: Zuno) -> None:
    assert zuno("plan", "approve", UNDEBATED, "--yes").code == 0
    ran = zuno("plan", "apply", UNDEBATED, "--yes", "--json")
    assert (ran.code, ran.document["state"]) == (0, "confirmed"), ran.err


def test_a_run_that_was_cut_off_ends_expired(zuno: Zuno, home: Path) -> None:
    for run_id in CUT_OFF:
        for _ in range(2):
            ran = zuno("trade", "resume", run_id, "--json")
            assert (ran.code, ran.document["error"]["kind"]) == (3, "refused")
        assert zuno("replay", run_id).code == 3
    with sqlite3.connect(home / "journal.db") as journal:
        ended = journal.execute("SELECT request_id FROM entries WHERE kind = 'cycle_expired'").fetchall()
    assert [run_id for (run_id,) in ended] == CUT_OFF
    with sqlite3.connect(home / "cycles.db") as checkpoints:
        assert checkpoints.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
    assert zuno("journal", "verify").code == 0


def test_a_debate_of_today_carries_its_edition_and_is_argued_again(zuno: Zuno, home: Path) -> None:
    plan = zuno("lp", "recommend", "rebalance", "2", "--transport", "inproc", "--json").document
    said = zuno("replay", plan["planId"], "--json").document
    assert (said["identical"], said["edition"]) == (True, ballot.EDITION)
    with sqlite3.connect(home / "journal.db") as journal:
        (body,) = journal.execute("SELECT body FROM entries WHERE kind = 'flow_start' ORDER BY seq DESC").fetchone()
    assert json.loads(body)["payload"]["edition"] == ballot.EDITION
    assert zuno("plan", "simulate", plan["planId"]).code == 0


def test_messages_without_an_edition_keep_their_bytes(home: Path) -> None:
    kinds = ", ".join(f"'{kind.value}'" for kind in Kind)
    with sqlite3.connect(home / "journal.db") as journal:
        bodies = [json.loads(body) for (body,) in journal.execute(f"SELECT body FROM entries WHERE kind IN ({kinds})")]
    assert len(bodies) == 26
    for body in bodies:
        envelope = Envelope.model_validate(body["payload"])
        assert envelope.edition == 1
        assert to_bytes(envelope) == canonical(body["payload"])


@pytest.mark.parametrize(
    ("kind", "edition"), [("flow_start", ballot.EDITION + 1), ("cycle_started", cycle.EDITION + 1)]
)
async def test_a_newer_zunos_home_is_refused_and_left_alone(zuno: Zuno, home: Path, kind: str, edition: int) -> None:
    key = KeyFile(home / "keys" / "node.key")
    journal = ChainedJournal(open_sqlite(home), key, code=lambda: "newer", now=unix_millis)
    new: dict[str, object] = {"edition": edition, "something": "nobody here knows"}
    await journal.append(kind=kind, author=Author("cli"), payload=new, request_id="req_00000000000000aa")
    await journal.close()
    before = entries(home)
    commands = (
        ("plan", "list"),
        ("plan", "apply", SENT, "--yes"),
        ("lp", "recommend", "rebalance", "2", "--transport", "inproc"),
        ("trade", "runs"),
        ("trade", "resume", CUT_OFF[0]),
        ("replay", SENT),
    )
    for words in commands:
        ran = zuno(*words, "--json")
        assert (ran.code, ran.document["error"]["kind"]) == (3, "refused"), words
        assert f"edition {edition}" in ran.err
    assert zuno("journal", "verify").code == 0
    assert entries(home) == before


def change_hash(kind: str, payload: dict[str, Any]) -> None:
    if kind == PLAN_KIND:
        payload["hash"] = "ab" * 32
        payload["planId"] = plan_id_of("req_00000000000000bb", payload["hash"])


def change_plan_id(kind: str, payload: dict[str, Any]) -> None:
    if kind == PLAN_KIND:
        payload["planId"] = "plan_0123456789ab"


def change_ruling(kind: str, payload: dict[str, Any]) -> None:
    if kind == "cycle_generate_report":
        payload["outcome"]["ruling"]["allocation_pct"] += 1.0


def change_end(kind: str, payload: dict[str, Any]) -> None:
    if kind == "cycle_ended":
        payload["hash"] = "ab" * 32


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (ARGUED[0]["requestId"], "req_00000000000000bb", change_hash),
        (ARGUED[0]["requestId"], "req_00000000000000bb", change_plan_id),
        (ENDED[0]["runId"], "run_00000000000000bb", change_ruling),
        (ENDED[0]["runId"], "run_00000000000000bb", change_end),
    ],
)
async def test_a_record_whose_hash_does_not_follow_from_it_is_found(
    zuno: Zuno, home: Path, old: str, new: str, change: Callable[[str, dict[str, Any]], None]
) -> None:
    """Chained and signed by the home's own key, as only its owner could."""
    journal = ChainedJournal(open_sqlite(home), KeyFile(home / "keys" / "node.key"), code=lambda: "x", now=unix_millis)
    for entry in [entry async for entry in journal.entries(request_id=old)]:
        payload = json.loads(json.dumps(entry.payload))
        change(entry.kind, payload)
        await journal.append(kind=entry.kind, author=entry.author, payload=payload, request_id=new, bundle=entry.bundle)
    await journal.close()
    assert zuno("journal", "verify").code == 0
    ran = zuno("replay", new, "--json")
    assert (ran.code, ran.document["ok"], ran.document["identical"]) == (5, False, None)
    assert len(ran.document["differences"]) == 1
