"""`zuno journal` as a person runs it: whole, harmed, crashed, and without anybody's secrets in it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zuno.journal.port import Author
from zuno.kernel.errors import Refused
from zuno.wiring import Application, code_version, open_zuno

Zuno = Callable[..., Any]

SECRETS = {
    "OPENAI_API_KEY": "sk-proj-0123456789abcdef",
    "ZUNO_COINGECKO_API_KEY": "CG-0123456789abcdef",
    "ZUNO_TELEGRAM_BOT_TOKEN": "123456:telegram-token-abcdef",
    "ZUNO_BASE_RPC_URL": "https://base.example/v2/rpc-key-one,https://base.example/v2/rpc-key-two",
}


async def fill(house: Application, count: int = 10) -> None:
    journal = house.journal()
    bundle = await journal.put_bundle(b'{"block":7}')
    for number in range(count):
        await journal.append(
            kind="critique",
            author=Author("critic"),
            payload={"text": f"words {number}", "x": number / 7},
            request_id=f"req_{number // 4:016x}",
            bundle=bundle,
        )
    await house.close()


@pytest.fixture
async def filled(home: Path) -> Path:
    await fill(open_zuno(str(home)))
    return home


def sql(home: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(home / "journal.db", isolation_level=None)
    try:
        assert connection.execute(statement, values).rowcount
    finally:
        connection.close()


def test_an_archived_debate_is_replayed_from_its_file_or_the_file_is_named(zuno: Zuno, home: Path) -> None:
    plan = zuno("lp", "recommend", "rebalance", "1", "--transport", "inproc", "--json").document
    assert zuno("home", "compact", "--older", "soon").code == 2
    view = zuno("home", "compact", "--older", "0d", "--json").document
    (file,) = view["files"]
    assert view["archived"] > 0
    assert zuno("replay", plan["planId"], "--json").document["identical"] is True
    (home / "archive" / file).rename(home / file)
    ran = zuno("replay", plan["planId"], "--json")
    assert (ran.code, file in ran.document["error"]["message"]) == (4, True)
    verified = zuno("journal", "verify", "--json")
    assert (verified.code, verified.document["ok"]) == (0, True)
    assert file in verified.document["notes"][0]
    (home / file).rename(home / "archive" / file)
    assert zuno("replay", plan["planId"]).code == 0


def test_doctor_warns_of_a_disk_budget_that_is_nearly_used(zuno: Zuno, filled: Path) -> None:
    (filled / "large").write_bytes(bytes(900_000))
    for budget, states in (("0", ["ok"]), ("1", ["ok", "warn"]), ("10", ["ok", "ok"])):
        checks = zuno("doctor", "--json", ZUNO_DISK_BUDGET_MB=budget).document["checks"]
        assert [check["state"] for check in checks if check["topic"] == "disk"] == states
    assert zuno("doctor", ZUNO_DISK_BUDGET_MB="-1").code == 2


def test_an_empty_journal_is_whole(zuno: Zuno, home: Path) -> None:
    ran = zuno("journal", "verify", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert (ran.document["ok"], ran.document["entries"]) == (True, 0)
    assert not (home / "journal.db").exists()
    assert not (home / "keys").exists()
    assert "entries" not in zuno("journal", "tail").out
    assert zuno("journal", "tail", "--json").document["entries"] == []


async def test_a_whole_journal(zuno: Zuno, filled: Path) -> None:
    ran = zuno("journal", "verify", "--json")
    seen = {"ok": True, "entries": 10, "mode": "all", "first": 1, "signatures": 10, "sealed": 10}
    assert (ran.code, ran.document) == (0, seen)  # without a checkpoint everything is verified, then sealed
    assert "whole: 11 entries" in zuno("journal", "verify").out
    seen = {"ok": True, "entries": 11, "mode": "all", "first": 1, "signatures": 11, "sealed": 10}
    assert zuno("journal", "verify", "--all", "--json").document == seen
    quick = zuno("journal", "verify", "--quick", "--json").document
    assert (quick["mode"], quick["first"], quick["signatures"]) == ("quick", 10, 2)
    assert zuno("journal", "verify", "--quick", "--all").code == 2
    tail = zuno("journal", "tail", "-n", "4", "--json").document["entries"][1:]
    assert [(one["seq"], one["kind"], one["requestId"], one["role"]) for one in tail] == [
        (10, "critique", "req_0000000000000002", "critic"),
        (9, "critique", "req_0000000000000002", "critic"),
        (8, "critique", "req_0000000000000001", "critic"),
    ]
    assert tail[0]["code"] == code_version()
    assert "critique" in zuno("journal", "tail").out
    assert zuno("journal", "tail", "-n", "0").code == 2


async def test_one_changed_byte_is_exit_5_with_the_document_still_on_stdout(zuno: Zuno, filled: Path) -> None:
    connection = sqlite3.connect(filled / "journal.db", isolation_level=None)
    body = bytearray(connection.execute("SELECT body FROM entries WHERE seq = 6").fetchone()[0])
    connection.close()
    body[len(body) // 2] ^= 1
    sql(filled, "UPDATE entries SET body = ? WHERE seq = 6", bytes(body))
    ran = zuno("journal", "verify", "--json")
    assert ran.code == 5
    assert (ran.document["ok"], ran.document["entries"], ran.document["firstBad"]["seq"]) == (False, 5, 6)
    assert "hash" in ran.document["firstBad"]["reason"]
    told = zuno("journal", "verify")
    assert told.code == 5
    assert re.search(r"BROKEN .*\b6\b", told.out)


async def test_the_newest_entries_deleted_are_missed(zuno: Zuno, filled: Path) -> None:
    sql(filled, "DELETE FROM entries WHERE seq > 7")
    ran = zuno("journal", "verify", "--json")
    assert ran.code == 5
    assert ran.document["firstBad"]["seq"] == 8
    assert re.findall(r"\d+", ran.document["firstBad"]["reason"]) == ["8", "10"]


async def test_damage_outside_the_entries(zuno: Zuno, filled: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(filled, whole)

    def verdict() -> Any:
        ran = zuno("journal", "verify", "--json")
        assert ran.code == (0 if ran.document["ok"] else 5)
        shutil.rmtree(filled)
        shutil.copytree(whole, filled)
        return ran.document

    (filled / "journal.head").unlink()
    assert "missing" in verdict()["firstBad"]["reason"]
    (filled / "journal.head").write_bytes(b"\x00" * 512)
    assert "damaged" in verdict()["firstBad"]["reason"]
    (filled / "journal.db").unlink()
    found = verdict()["firstBad"]
    assert (found["seq"], re.findall(r"\d+", found["reason"])) == (1, ["1", "10"])
    (filled / "journal.db").write_bytes(b"garbage" * 1_000)
    assert "database" in verdict()["firstBad"]["reason"]
    sql(filled, "UPDATE bundles SET content = X'00'")
    assert verdict()["firstBad"]["seq"] == 1
    (filled / "keys" / "node.key").unlink()
    unsealed = verdict()  # its public half is enough to check, not to seal
    assert (unsealed["ok"], unsealed["entries"], unsealed.get("sealed"), len(unsealed["notes"])) == (True, 10, None, 1)
    (filled / "keys" / "node.key").unlink()
    (filled / "keys" / "node.pub").unlink()
    gone = verdict()["firstBad"]
    assert gone["seq"] is None
    assert "missing" in gone["reason"]
    assert (verdict()["entries"], verdict()["ok"]) == (10, True)


async def test_a_key_that_others_can_read_is_refused(zuno: Zuno, filled: Path) -> None:
    os.chmod(filled / "keys" / "node.key", 0o644)
    ran = zuno("journal", "verify", "--json")
    assert (ran.code, ran.document["error"]["kind"]) == (3, "refused")


async def test_what_a_crash_left_behind_is_said(zuno: Zuno, filled: Path) -> None:
    note = b'{"hash":"%s","kind":"critique","requestId":"req_1","seq":11}' % (b"0" * 64)
    (filled / "journal.lock").write_bytes(note)
    ran = zuno("journal", "verify", "--json")
    assert (ran.code, ran.document["ok"], ran.document["entries"]) == (0, True, 10)
    (note,) = ran.document["notes"]
    assert re.search(r"\b11 \(critique of req_1\)", note)
    assert f"note: {note}" in " ".join(zuno("journal", "verify").out.split())


async def test_secrets_of_the_environment_never_reach_the_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    house = open_zuno(str(home))
    await fill(house)
    values = [part for value in SECRETS.values() for part in value.split(",")]
    for secret in values:
        with pytest.raises(Refused):
            await house.journal().append(kind="said", author=Author("critic"), payload={"text": f"I know {secret}!"})
        with pytest.raises(Refused):
            await house.journal().put_bundle(secret.encode())
    await house.close()
    stored = b"".join(file.read_bytes() for file in map(home.joinpath, os.listdir(home)) if file.is_file())
    assert b"critique" in stored
    assert not [secret for secret in values if secret.encode() in stored]


def test_a_database_is_named_as_one(zuno: Zuno) -> None:
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    wrong = zuno("journal", "verify", "--json", ZUNO_DATABASE_URL="mysql://zuno:hush-hush@host/db")
    assert wrong.code == 2
    assert "ZUNO_DATABASE_URL" in wrong.err
    assert "hush-hush" not in wrong.err + wrong.out


@pytest.mark.parametrize("command", [("journal", "verify"), ("journal", "tail"), ("plan", "list")], ids=" ".join)
def test_a_database_that_does_not_answer_is_not_an_empty_journal(
    zuno: Any, home: Path, command: tuple[str, str]
) -> None:
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    ran = zuno(*command, "--json", ZUNO_DATABASE_URL="postgresql://zuno:hush-hush@127.0.0.1:1/none")
    assert (ran.code, ran.document["error"]["kind"]) == (4, "unavailable")
    assert "hush-hush" not in ran.err + ran.out
    assert not list(home.glob("*.broken"))


@pytest.mark.parametrize(
    "place",
    ["[::1/none", "127.0.0.1:port/none", "127.0.0.1:99999/none", "host/none?nosuch=1", "zuno:hush%zz@host/none"],
)
def test_a_database_url_that_names_no_place_is_a_mistake_in_a_setting(zuno: Any, home: Path, place: str) -> None:
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    for command in ("verify", "tail"):
        ran = zuno("journal", command, "--json", ZUNO_DATABASE_URL=f"postgresql://{place}")
        assert (ran.code, ran.document["error"]["kind"]) == (2, "usage")
        assert place not in ran.err + ran.out
    assert not list(home.glob("*.broken"))
