"""One exam for every lease: the file lock of a home, and the row that homes on one database share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from zuno.adapters.file_lock import symbol_lock
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.lease import Fences, PostgresLease
from zuno.adapters.store.postgres import open_postgres
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.lock import Lease
from zuno.kernel.units import Millis

LONG = 3_600.0


@dataclass(frozen=True)
class Homes:
    """Leases of one name, each as another process would open it."""

    open: Callable[[], Lease]


@pytest.fixture(params=["file", "postgres"])
def homes(request: pytest.FixtureRequest, tmp_path: Path) -> Homes:
    if request.param == "file":
        return Homes(lambda: symbol_lock(tmp_path, "BTCUSDT"))
    url, name, numbers = request.getfixturevalue("postgres"), uuid4().hex, count(1)
    return Homes(lambda: PostgresLease(url, name, f"home {next(numbers)}", Fences(), LONG))


@pytest.fixture
def lease(homes: Homes) -> Iterator[Lease]:
    opened = homes.open()
    opened.take()
    yield opened
    opened.leave()


def test_a_second_is_refused_until_the_first_leaves(homes: Homes, lease: Lease) -> None:
    second = homes.open()
    with pytest.raises(Refused):
        second.take()
    lease.check()
    lease.leave()
    second.take()
    second.check()
    second.leave()


def test_what_is_not_held_is_refused_and_left_in_peace(homes: Homes, lease: Lease) -> None:
    other = homes.open()
    with pytest.raises(Refused):
        other.check()
    other.leave()
    lease.check()
    lease.leave()
    with pytest.raises(Refused):
        lease.check()
    lease.leave()
    lease.take()
    lease.check()


# -- the row


def run_sql(url: str, statement: str, *values: object) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode(), values).rowcount


def expire(url: str, name: str) -> None:
    """As for a holder that was cut off for longer than its lease lasts."""
    assert run_sql(url, "UPDATE zuno.leases SET expires = clock_timestamp() WHERE name = %s", name) == 1


def test_a_lease_that_was_taken_over_is_never_ours_again(postgres: str) -> None:
    name = uuid4().hex
    first, second = (PostgresLease(postgres, name, holder, Fences(), LONG) for holder in ("one home", "another"))
    first.take()
    expire(postgres, name)
    first.check()  # nobody else has had it
    second.take()
    with pytest.raises(Refused, match="another"):
        first.check()
    first.leave()
    second.check()
    expire(postgres, name)
    with pytest.raises(Refused):
        first.check()
    second.leave()


def test_a_lease_is_renewed_while_it_is_held(postgres: str) -> None:
    import psycopg

    name = uuid4().hex
    lease = PostgresLease(postgres, name, "a home", Fences(), lasts=0.03)
    lease.take()
    with psycopg.connect(postgres, autocommit=True) as connection:
        moments: set[tuple[object, ...]] = set()
        while len(moments) < 3:  # each renewal is a later end
            moments |= set(connection.execute("SELECT expires FROM zuno.leases WHERE name = %s", (name,)).fetchall())
    lease.leave()


async def test_a_journal_writes_nothing_with_an_old_token(postgres: str, tmp_path: Path) -> None:
    """Two homes on one database. The first is away until the second has taken its lease over."""
    name, journals, leases = uuid4().hex, [], []
    for home in (tmp_path / "first", tmp_path / "second"):
        home.mkdir()
        fences, key = Fences(), KeyFile(home / "node.key")
        key.ensure()
        store = open_postgres(postgres, home, key, fences)
        journals.append(ChainedJournal(store, key, code=lambda: "test", now=lambda: Millis(1_700_000_000_000)))
        leases.append(PostgresLease(postgres, name, home.name, fences, LONG))

    async def write(number: int, kind: str) -> None:
        await journals[number].append(kind=kind, author=Author("owner"), payload={"n": 1}, request_id="req_1")

    leases[0].take()
    await write(0, "before")
    expire(postgres, name)
    await write(0, "late_but_alone")
    leases[1].take()
    await write(1, "taken_over")
    with pytest.raises(Refused):
        await write(0, "with_an_old_token")
    leases[0].leave()
    await write(0, "without_a_lease")
    kinds = [[entry.kind async for entry in journal.entries()] for journal in journals]
    assert kinds == [["before", "late_but_alone", "without_a_lease"], ["taken_over"]]
    leases[1].leave()
    await asyncio.gather(*(journal.close() for journal in journals))


def test_a_postgres_that_is_away_is_unavailable_and_its_password_stays_unsaid() -> None:
    pytest.importorskip("psycopg", reason="no Postgres driver: make postgres")
    lease = PostgresLease("postgresql://zuno:hushhush@127.0.0.1:1/none", "BTCUSDT", "a home", Fences())
    with pytest.raises(Unavailable) as told:
        lease.take()
    assert "hushhush" not in str(told.value)
