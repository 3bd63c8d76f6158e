"""`zuno backup`, `restore` and `home` as a person runs them: exit codes, and what a restored home can do."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.wire.commands import Ran, Zuno, run_zuno
from zuno.adapters.home_files import FileKind, list_home
from zuno.wiring import open_zuno

EDGE = "1"
"""A position that a recommendation moves."""


@pytest.fixture
def lived(zuno: Zuno, home: Path) -> Path:
    """With a plan that is approved and one that is not, a watched wallet, an alert book and a killed account."""
    home.mkdir()
    plan = decide(zuno)
    assert zuno("plan", "approve", plan, "--yes").code == 0
    assert zuno("wallet", "import", "--watch", "0x" + "ab" * 20).code == 0
    assert zuno("monitor", "once").code == 0
    (home / "kill.lock").write_text("live by hand\n")
    return home


def unlock(home: Path) -> tuple[str, ...]:
    """As its owner does at a terminal: the accounts whose mandates were revoked by it."""

    async def ask() -> tuple[str, ...]:
        zuno = open_zuno(str(home))
        try:
            return (await zuno.home_desk().unlock(lambda word, what: word == "unlock")).revoked
        finally:
            await zuno.close()

    return asyncio.run(ask())


def decide(zuno: Zuno) -> str:
    ran = zuno("lp", "recommend", "rebalance", EDGE, "--json")
    assert ran.code == 0, ran.err
    return str(ran.document["planId"])


def test_a_backup_is_restored_elsewhere_and_says_what_is_missing(zuno: Zuno, lived: Path, tmp_path: Path) -> None:
    assert [file.name for file in list_home(lived) if file.kind is FileKind.OTHER] == []
    file, elsewhere = tmp_path / "zuno-{date}.zip", tmp_path / "elsewhere"
    made = zuno("backup", str(file), "--keep", "2", "--json")
    assert made.code == 0, made.err
    entries = zuno("journal", "verify", "--json").document["entries"]
    assert (made.document["seq"], made.document["leftOut"]) == (entries, [])

    def there(*words: str) -> Ran:
        return run_zuno(elsewhere, *words)

    restored = there("restore", made.document["file"], "--json")
    assert restored.code == 0, restored.err
    assert restored.document["entries"] == entries
    assert restored.document["missing"] == ["keys/node.key"]
    assert restored.document["killed"] == ["live"]
    assert there("restore", made.document["file"]).code == 3
    verdict = there("journal", "verify", "--all", "--json").document
    assert (verdict["ok"], verdict["entries"], verdict["mode"]) == (True, entries, "all")
    plans = there("plan", "list", "--json")
    assert plans.code == 0
    assert plans.document == zuno("plan", "list", "--json").document
    plan = plans.document["plans"][0]["planId"]
    unsigned = there("plan", "approve", plan, "--yes")
    assert (unsigned.code, "node.key" in unsigned.err) == (5, True)
    shutil.copy(lived / "keys" / "node.key", elsewhere / "keys" / "node.key")
    killed = there("plan", "apply", plan, "--yes")
    assert (killed.code, "killed" in killed.err) == (3, True)
    (elsewhere / "kill.lock").unlink()
    checks = there("doctor", "--json").document["checks"]
    assert [line["advice"].count("zuno home unlock") for line in checks if line["topic"] == "kill"] == [1]
    held = there("plan", "apply", plan, "--yes")
    assert (held.code, "zuno home unlock" in held.err) == (3, True)
    unlock(elsewhere)
    stale = there("plan", "apply", plan, "--yes")
    assert (stale.code, "backup" in stale.err) == (3, True)
    assert there("plan", "simulate", plan).code == 0
    assert there("plan", "apply", plan, "--yes").code == 3  # a look renews no approval
    assert there("plan", "approve", plan, "--yes").code == 0
    assert there("plan", "apply", plan, "--yes").code == 0


def test_bad_input(zuno: Zuno, lived: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    file.write_bytes(b"PK\x03\x04")
    assert run_zuno(tmp_path / "elsewhere", "restore", str(file)).code == 4
    assert run_zuno(tmp_path / "elsewhere", "restore", str(tmp_path / "none.zip")).code == 2
    url = {"ZUNO_DATABASE_URL": "postgres://127.0.0.1:1/none"}
    assert run_zuno(tmp_path / "elsewhere", "restore", str(file), **url).code == 3
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert zuno("backup", str(file)).code == 3  # it is somebody's file
    assert zuno("backup", str(tmp_path / "b.zip"), "--keep", "2").code == 2
    assert zuno("backup", f"{tmp_path}/nightly/", "--keep", "2").code == 0
    assert [path.suffix for path in (tmp_path / "nightly").iterdir()] == [".zip"]
    assert zuno("home", "move").code == 2
    assert zuno("home", "move", str(lived / "below")).code == 2
    assert zuno("home", "move", str(tmp_path / "x"), "--to", "postgres://127.0.0.1:1/none").code == 2
    away = zuno("home", "move", "--to", "postgres://zuno:hushhush@127.0.0.1:1/none")
    assert (away.code, "hushhush" in away.err) == (4, False)
    assert zuno("journal", "verify").code == 0


def test_a_backup_that_is_not_what_was_made_is_refused_with_its_own_code(
    zuno: Zuno, lived: Path, tmp_path: Path
) -> None:
    whole, file, elsewhere = tmp_path / "whole.zip", tmp_path / "bad.zip", tmp_path / "elsewhere"
    assert zuno("backup", str(whole)).code == 0

    def rewrite(changed: str, content: bytes) -> None:
        with ZipFile(whole) as source, ZipFile(file, "w") as target:
            for name in source.namelist():
                target.writestr(name, content if name == changed else source.read(name))

    def restore() -> tuple[int, str]:
        ran = run_zuno(elsewhere, "restore", str(file), "--json")
        assert [path.name for path in elsewhere.iterdir() if path.name != "logs"] == []
        return ran.code, ran.document["error"]["message"]

    elsewhere.mkdir(mode=0o700)
    file.write_bytes(whole.read_bytes()[:-5_000])
    code, cut_off = restore()
    assert (code, "no whole backup" in cut_off) == (4, True)
    with ZipFile(file, "w") as foreign:
        foreign.writestr("holiday.jpg", b"x")
    assert restore()[0] == 4
    rewrite("manifest.json", b'{"format": 2}')
    code, newer = restore()
    assert (code, "update Zuno" in newer) == (3, True)
    with ZipFile(whole) as archive:
        manifest = archive.read("manifest.json")
    rewrite("manifest.json", manifest.replace(b'"seq":', b'"seq":1'))
    code, forged = restore()
    assert (code, "signature" in forged) == (5, True)
    rewrite("kill.lock", b"")
    code, unlocked = restore()  # the kill lock taken out of it
    assert (code, "kill.lock" in unlocked) == (5, True)
    in_use = zuno("restore", str(whole), "--json")
    assert (in_use.code, "not empty" in in_use.document["error"]["message"]) == (3, True)


def test_usage_and_a_move(zuno: Zuno, lived: Path, tmp_path: Path) -> None:
    usage = zuno("home", "usage", "--json").document
    assert sum(place["bytes"] for place in usage["places"]) >= (lived / "journal.db").stat().st_size
    assert usage["freeBytes"] > 0
    assert {"journal.db", "wallets", "keys", "kill.lock"} <= {place["name"] for place in usage["places"]}
    assert usage["journalBytes"] >= max(place["bytes"] for place in usage["places"] if place["name"] == "journal.db")
    target = tmp_path / "moved"
    moved = zuno("home", "move", str(target), "--json")
    assert moved.code == 0, moved.err
    assert moved.document["entries"] == usage["entries"]
    refused = zuno("plan", "list")
    assert (refused.code, str(target) in refused.err) == (3, True)
    assert zuno("backup", str(tmp_path / "a.zip")).code == 3
    assert run_zuno(target, "plan", "list").code == 0
    assert run_zuno(target, "journal", "verify").code == 0
    assert (target / "kill.lock").read_text() == "live by hand\n"


def test_an_empty_home_is_empty_after_everything_was_asked_of_it(zuno: Zuno, home: Path, tmp_path: Path) -> None:
    """None of them begins a journal: one without a head would be a broken one."""
    asked = (
        ("home", "usage"),
        ("home", "compact"),
        ("status",),
        ("backup", str(tmp_path / "empty")),
        ("journal", "verify"),
    )
    assert [zuno(*words).code for words in asked] == [0] * len(asked)
    assert not (home / "journal.db").exists()
    assert zuno("lp", "recommend", "rebalance", "1", "--transport", "inproc").code == 0
    assert zuno("journal", "verify", "--all").code == 0
