"""`zuno status`: on a home where nothing runs, nothing can be written, something is locked, something runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.doors.cli.test_run_command import NOBODY, powerless
from tests.wire.commands import Zuno, run_zuno
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import monitor_lock, serve_lock
from zuno.doors.serve import OLD_REPORT_MS, PartView, ServeReport
from zuno.doors.status import StatusView
from zuno.present.text import to_text
from zuno.trading.model.market import DAY_MS
from zuno.wiring import open_zuno


def test_an_empty_home_has_a_status(zuno: Zuno, home: Path) -> None:
    shown = zuno("status")
    assert shown.code == 0
    assert len(shown.out.strip().splitlines()) <= 10
    view = zuno("status", "--json").document
    assert (view["ready"], view["pid"], view["parts"], view["entries"]) == (False, None, [], 0)
    assert (view["openTrades"], view["openOrders"], view["locks"], view["notes"]) == (0, 0, [], [])


def test_what_runs_by_itself_and_what_is_locked_is_shown(zuno: Zuno, home: Path) -> None:
    assert zuno("monitor", "once").code == 0
    (home / "kill.lock").write_text("paper 2026-01-01T00:00:00Z terminal\n")
    with monitor_lock(home):
        view = zuno("status", "--json").document
    (part,) = view["parts"]
    assert (part["name"], part["state"], part["pid"] is not None, part["since"] is not None) == (
        "monitor",
        "ready",
        True,
        True,
    )
    assert view["lastLook"] > 1_700_000_000_000
    assert view["nextCycle"] is None
    (lock,) = view["locks"]
    assert "killed" in lock
    assert view["usedBytes"] > 0


def test_options_of_a_part_that_cannot_be_read_are_named(zuno: Zuno) -> None:
    refused = zuno("serve", "--page", '"--port 9', "--json")
    assert (refused.code, refused.document["error"]["kind"]) == (2, "usage")


def test_a_part_that_is_given_up_is_why_it_is_not_ready(zuno: Zuno, home: Path) -> None:
    now = unix_millis()
    page = PartView(name="page", state="given up", restarts=10, why="Port 8420 is in use.")
    desk = PartView(name="desk", state="ready", pid=4_242, since=now, restarts=2)
    report = ServeReport(pid=77, since=now, at=now, started=True, parts=(desk, page))
    (home / "leases").mkdir(parents=True)
    (home / "leases" / "serve.json").write_text(report.model_dump_json(by_alias=True))
    assert zuno("status", "--json").document["pid"] is None  # it does not run any more
    with serve_lock(home):
        view = zuno("status", "--json").document
        assert (view["ready"], view["pid"]) == (False, 77)
        assert ["Port 8420" in trouble for trouble in view["troubles"]] == [True]
        assert view["nextCycle"] > now
        late = report.model_copy(update={"at": now - OLD_REPORT_MS - 60_000, "parts": (desk,)})
        (home / "leases" / "serve.json").write_text(late.model_dump_json(by_alias=True))
        (trouble,) = zuno("status", "--json").document["troubles"]
        assert "written nothing" in trouble
        (home / "leases" / "serve.json").write_text('{"pid": "of another version"}')
        assert zuno("status", "--json").code == 0


@pytest.mark.parametrize("idle", [(), ("mesh", "desk", "telegram")])
def test_a_service_has_ten_lines_on_an_old_terminal(idle: tuple[str, ...], zuno: Zuno, home: Path) -> None:
    now = unix_millis()
    since, names = now - 12 * DAY_MS, ("mesh", "monitor", "desk", "page", "telegram")
    parts = (
        PartView(name=name, state="left out")
        if name in idle
        else PartView(name=name, state="ready", pid=4_194_304, since=since)
        for name in names
    )
    report = ServeReport(pid=4_194_303, since=since, at=now, started=True, parts=tuple(parts))
    (home / "leases").mkdir(parents=True)
    (home / "leases" / "serve.json").write_text(report.model_dump_json(by_alias=True))
    with serve_lock(home):
        view = StatusView.model_validate_json(zuno("status", "--json").out)
    lines = to_text(
        view.model_copy(update={"last_run": "run_0123456789ab", "home": "/var/lib/zuno"}).to_document(), 80
    ).split("\n")
    assert len(lines) == 10
    assert all(name in lines[2] for name in names)


@pytest.fixture
def sealed_home() -> Iterator[Path]:
    """Where somebody else can reach it, too."""
    home = Path(tempfile.mkdtemp(prefix="zuno-sealed-"))
    assert run_zuno(home, "monitor", "once").code == 0
    assert run_zuno(home, "status").code == 0  # all it needs is loaded now
    for path in (*home.rglob("*"), home):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o555 if path.is_dir() else 0o400)
    yield home
    for path in (home, *home.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(home)


async def test_a_home_that_cannot_be_written_has_a_status(sealed_home: Path) -> None:
    with powerless():
        zuno = open_zuno(str(sealed_home))
        view = await zuno.status()
        assert zuno.find_troubles() == ()
        await zuno.close()
    assert view.notes == ()
    assert (view.pid, view.entries, view.open_trades, view.alerts) == (None, 1, 0, 1)
    assert view.last_look is not None
