"""The journal's SQLite file under hands that know SQL, and under damage."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
import string
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal, Verdict
from zuno.journal.port import Author
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import Millis

COLUMNS = ("seq", "at", "request_id", "kind", "body", "hash", "signature")
ENTRIES = 40


def opened(home: Path) -> ChainedJournal:
    return ChainedJournal(
        open_sqlite(home),
        KeyFile(home / "keys" / "node.key"),
        code=lambda: "test",
        now=lambda: Millis(1_700_000_000_000),
    )


async def verified(home: Path) -> Verdict:
    journal = opened(home)
    try:
        return await journal.verify()
    finally:
        await journal.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("journal")
    asyncio.run(fill(home))
    return home


@pytest.fixture
def filled(template: Path, tmp_path: Path) -> Path:
    """A home with a journal of forty entries."""
    return shutil.copytree(template, tmp_path / "home")


async def fill(home: Path) -> None:
    journal = opened(home)
    bundle = await journal.put_bundle(b"frozen context")
    for number in range(ENTRIES):
        await journal.append(
            kind="said",
            author=Author("critic"),
            payload={"text": f"words {number} é", "n": number},
            request_id=f"req_{number // 5:04d}" if number % 7 else None,
            bundle=bundle if number % 2 else None,
        )
    await journal.close()


def forget(home: Path, pattern: str) -> None:
    for file in home.glob(pattern):
        file.unlink()


def run(home: Path, statement: str, *values: Any) -> list[Any]:
    connection = sqlite3.connect(home / "journal.db", isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def one_byte_off(value: Any, chance: random.Random) -> Any:
    """The value as it would be with one of its bytes changed."""
    if isinstance(value, bytes):
        changed = bytearray(value)
        changed[chance.randrange(len(changed))] ^= chance.randrange(1, 256)
        return bytes(changed)
    if isinstance(value, str):
        place = chance.randrange(len(value))
        other = chance.choice([letter for letter in string.printable if letter != value[place]])
        return value[:place] + other + value[place + 1 :]
    return value ^ (1 << chance.randrange(40))


@pytest.mark.slow
async def test_one_byte_anywhere_is_found_and_its_entry_named(filled: Path) -> None:
    chance = random.Random(20_261)
    for turn in range(210):
        seq, column = chance.randrange(1, ENTRIES + 1), COLUMNS[turn % len(COLUMNS)]
        ((before,),) = run(filled, f"SELECT {column} FROM entries WHERE seq = ?", seq)
        if before is None:
            continue
        after = one_byte_off(before, chance)
        if column == "seq" and 1 <= after <= ENTRIES:
            after += ENTRIES  # a number that is taken cannot be given twice
        run(filled, f"UPDATE entries SET {column} = ? WHERE seq = ?", after, seq)
        verdict = await verified(filled)
        assert verdict.fault is not None, (seq, column, before, after)
        assert verdict.fault.seq == (seq if after != 0 or column != "seq" else 0), (seq, column, before, after)
        assert verdict.entries == (seq - 1 if verdict.fault.seq else 0)
        run(filled, f"UPDATE entries SET {column} = ? WHERE seq = ?", before, after if column == "seq" else seq)
    assert (await verified(filled)).ok


async def test_capitals_in_a_hash_or_signature_are_a_change(filled: Path) -> None:
    for column in ("hash", "signature"):
        run(filled, f"UPDATE entries SET {column} = upper({column}) WHERE seq = 9")
        verdict = await verified(filled)
        assert verdict.fault is not None
        assert verdict.fault.seq == 9
        run(filled, f"UPDATE entries SET {column} = lower({column}) WHERE seq = 9")
    assert (await verified(filled)).ok


@pytest.mark.parametrize(
    "change",
    [
        "body = CAST(body AS TEXT)",
        "body = ''",
        "body = 7",
        "at = 'noon'",
        "at = 1.5",
        "at = CAST(at AS BLOB)",
        "kind = 3",
        "kind = CAST(X'FFFE' AS TEXT)",
        "request_id = X'00'",
        "request_id = CAST(X'72FF' AS TEXT)",
        "hash = CAST(hash AS BLOB)",
        "signature = CAST(signature AS BLOB)",
        "signature = ''",
        "hash = ''",
        "signature = signature || ' '",
        "body = body || ' '",
        "body = CAST(body || ' ' AS BLOB)",
    ],
)
async def test_values_of_other_types_are_found(filled: Path, change: str) -> None:
    run(filled, f"UPDATE entries SET {change} WHERE seq = 12")
    verdict = await verified(filled)
    assert verdict.fault is not None
    assert verdict.fault.seq == 12
    journal = opened(filled)
    with pytest.raises(Broken, match="entry 12"):
        _ = [entry async for entry in journal.entries()]
    await journal.close()


async def test_the_newest_entries_deleted(filled: Path) -> None:
    for newest in (ENTRIES - 1, ENTRIES - 10, 0):
        run(filled, "DELETE FROM entries WHERE seq > ?", newest)
        verdict = await verified(filled)
        assert verdict.fault is not None
        assert (verdict.entries, verdict.fault.seq) == (newest, newest + 1)
        assert "cut" in verdict.fault.reason
    run(filled, "DROP TABLE entries")
    assert (await verified(filled)).fault is not None


@pytest.fixture
def damaged_index(filled: Path) -> Path:
    """A database whose look-up by request lies, while its rows are whole."""
    connection = sqlite3.connect(filled / "journal.db", isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'request_id, seq', 'kind, seq') WHERE name = 'entries_by_request'"
    )
    connection.close()
    return filled


async def test_an_index_that_does_not_match_its_rows_is_found(damaged_index: Path) -> None:
    verdict = await verified(damaged_index)
    assert verdict.fault is not None
    assert verdict.fault.seq is None
    assert "damaged" in verdict.fault.reason


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a letter" * 300, b"SQLite format 3\x00" + bytes(200)]
)
async def test_a_file_that_is_no_database_is_broken_with_a_sentence(filled: Path, content: bytes) -> None:
    forget(filled, "journal.db-*")
    (filled / "journal.db").write_bytes(content)
    verdict = await verified(filled)
    assert verdict.fault is not None
    assert verdict.fault.seq == 1
    journal = opened(filled)
    with pytest.raises(Broken):
        await journal.append(kind="said", author=Author("critic"), payload={})
    await journal.close()
    assert (filled / "journal.db").read_bytes() == content


async def test_a_database_that_is_gone_is_a_cut_tail(filled: Path) -> None:
    forget(filled, "journal.db*")
    verdict = await verified(filled)
    assert verdict.fault is not None
    assert (verdict.entries, verdict.fault.seq) == (0, 1)
    journal = opened(filled)
    with pytest.raises(Broken, match="cut"):
        await journal.append(kind="said", author=Author("critic"), payload={})
    await journal.close()
    assert not (filled / "journal.db").exists()


@pytest.mark.parametrize("opened_by", ["read", "write"])
async def test_a_database_that_goes_away_under_an_open_store_is_not_an_empty_one(filled: Path, opened_by: str) -> None:
    journal = opened(filled)
    if opened_by == "read":
        assert await journal.latest(1)
    else:
        await journal.append(kind="said", author=Author("critic"), payload={})
    away = filled.with_name("elsewhere")
    shutil.move(filled, away)
    with pytest.raises(Unavailable):
        await journal.latest(1)
    shutil.move(away, filled)
    assert len(await journal.latest(1)) == 1
    await journal.close()


@pytest.mark.slow
async def test_damaged_pages_are_found(filled: Path) -> None:
    chance = random.Random(7)
    whole = (filled / "journal.db").read_bytes()
    found = 0
    for _ in range(30):
        page = bytearray(whole)
        start = chance.randrange(100, len(page) - 64)
        page[start : start + 64] = chance.randbytes(64)
        (filled / "journal.db").write_bytes(page)
        try:
            found += not (await verified(filled)).ok
        finally:
            forget(filled, "journal.db-*")
    assert found >= 15  # the rest fell on unused space, which no entry is stored in


def test_the_files_are_for_their_owner_alone(filled: Path) -> None:
    for name in ("journal.db", "journal.head", "journal.lock"):
        assert (filled / name).stat().st_mode & 0o077 == 0, name


def test_nothing_changes_an_entry() -> None:
    """Append-only is a property of the code: no statement of ours touches a stored entry. A compaction changes how a
    bundle is stored, and removes blocks that none uses. What is no journal is apart."""
    import zuno.adapters.store as room

    apart = ("samples.py", "lease.py", "outbox.py", "chat_store.py")
    journal = [path for path in Path(room.__path__[0]).glob("*.py") if path.name not in apart]
    assert {"sqlite.py", "postgres.py", "table_store.py"} <= {path.name for path in journal}
    for path in journal:
        text = path.read_text()
        changed = re.findall(r"(?:UPDATE|DELETE FROM|REPLACE INTO|TRUNCATE|DROP TABLE) (?!SET)([a-z.]+)", text)
        assert {name.removeprefix("zuno.") for name in changed} <= {"bundles", "blocks"}, path
        assert "DELETE FROM" not in text or "bundles" not in re.findall(r"DELETE FROM (?:zuno\.)?([a-z]+)", text), path


class PowerCut(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("deaths", [(1, 1), (1, 2), (1, 2, 2), (1, 1, 2, 1)])
async def test_any_number_of_crashes_in_a_row_is_recovered(filled: Path, deaths: tuple[int, ...]) -> None:
    """Each start dies as it writes the head for the n-th time: the one a crash left, or the next entry's own."""
    for nth in deaths:
        store = open_sqlite(filled)
        write_head, calls = store._head_file.replace_head, 0

        def dying(head: bytes, nth: int = nth, write_head: Any = write_head) -> None:
            nonlocal calls
            calls += 1
            if calls == nth:
                raise PowerCut
            write_head(head)

        store._head_file.replace_head = dying
        journal = ChainedJournal(
            store, KeyFile(filled / "keys" / "node.key"), code=lambda: "test", now=lambda: Millis(1_700_000_000_000)
        )
        with pytest.raises(PowerCut):
            await journal.append(kind="last_words", author=Author("critic"), payload={})
        await journal.close()
    after = opened(filled)
    assert (await after.append(kind="said", author=Author("critic"), payload={})).kind == "said"
    await after.close()
    assert (await verified(filled)).ok
