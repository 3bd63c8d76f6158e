"""A lease as a row in Postgres: homes that share a database never act on one symbol at the same time.

The row has a fencing token that grows with every holder. The journal of the process asks for the tokens of its leases
in the same transaction as it writes (`postgres.py`), so a process that was paused until its lease was taken over writes
nothing more, and an order is written down before it is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, LiteralString

from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.installation import name_install

if TYPE_CHECKING:
    import psycopg

LEASE_SECONDS: Final = 30.0
"""How long a lease outlives a process that stopped renewing it, by the database's clock."""
CONNECT_SECONDS: Final = 10
_SCHEMA: Final[LiteralString] = """CREATE TABLE IF NOT EXISTS zuno.leases (
    name text PRIMARY KEY, token bigint NOT NULL, holder text NOT NULL, expires timestamptz NOT NULL)"""
_TAKE: Final[LiteralString] = """
    INSERT INTO zuno.leases AS lease VALUES (%(name)s, 1, %(holder)s, clock_timestamp() + %(lasts)s)
    ON CONFLICT (name) DO UPDATE
        SET token = lease.token + 1, holder = excluded.holder, expires = clock_timestamp() + %(lasts)s
        WHERE lease.expires <= clock_timestamp()
    RETURNING token"""
_RENEW: Final[LiteralString] = (
    "UPDATE zuno.leases SET expires = clock_timestamp() + %(lasts)s WHERE name = %(name)s AND token = %(token)s"
)
_LEAVE: Final[LiteralString] = (
    "UPDATE zuno.leases SET expires = clock_timestamp() WHERE name = %(name)s AND token = %(token)s"
)


class Fences:
    """The fencing tokens of the leases that this process holds."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def add(self, name: str, token: int) -> None:
        self._tokens = {**self._tokens, name: token}

    def drop(self, name: str) -> None:
        self._tokens = {held: token for held, token in self._tokens.items() if held != name}

    def check(self, connection: psycopg.Connection) -> None:
        """`Refused` where another process has taken a lease; the rows stay locked until the transaction ends."""
        tokens = self._tokens
        if not tokens:
            return
        rows = connection.execute(
            "SELECT name, token, holder FROM zuno.leases WHERE name = ANY(%s) FOR SHARE", (list(tokens),)
        ).fetchall()
        holders = {name: (token, holder) for name, token, holder in rows}
        for name, token in tokens.items():
            now, holder = holders.get(name, (None, "nobody"))
            if now != token:
                raise Refused(f"The lease of {name} went to {holder} while this process was away; nothing was written.")


@dataclass(eq=False, repr=False)
class PostgresLease:
    """The `Lease` of a name, renewed by a thread while it is held."""

    url: str
    name: str
    holder: str
    """This process's name in the message to a second one."""
    fences: Fences
    lasts: float = LEASE_SECONDS
    _token: int | None = field(default=None, init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)
    _renewing: threading.Thread | None = field(default=None, init=False)

    def take(self) -> None:
        with connect(self.url) as connection:
            create_schema(connection, _SCHEMA)
            taken = connection.execute(_TAKE, self._values(holder=self.holder)).fetchone()
            if taken is None:
                held = connection.execute("SELECT holder FROM zuno.leases WHERE name = %s", (self.name,)).fetchone()
                raise Refused(
                    f"{self.name} is being worked on by {'another process' if held is None else held[0]}; wait for it,"
                    f" or end it: its lease is over {self.lasts:g} s after it stops."
                )
        self._token = int(taken[0])
        self.fences.add(self.name, self._token)
        self._ended = threading.Event()
        self._renewing = threading.Thread(
            target=self._renew_until, args=(self._ended, self._token), name=f"zuno-lease-{self.name}", daemon=True
        )
        self._renewing.start()

    def check(self) -> None:
        if self._token is None:
            raise Refused(f"The lease of {self.name} is not held.")
        own = Fences()
        own.add(self.name, self._token)
        with connect(self.url) as connection:
            own.check(connection)

    def leave(self) -> None:
        if self._token is None:
            return
        self._ended.set()
        if self._renewing is not None:
            self._renewing.join()
        with suppress(ZunoError), connect(self.url) as connection:  # else it ends by itself
            connection.execute(_LEAVE, self._values(token=self._token))
        self.fences.drop(self.name)
        self._token = None

    def _renew_until(self, ended: threading.Event, token: int) -> None:
        """Failures are ignored: the next write checks the lease."""
        while not ended.wait(self.lasts / 3):
            with suppress(ZunoError), connect(self.url) as connection:
                if not connection.execute(_RENEW, self._values(token=token)).rowcount:
                    return

    def _values(self, **more: str | int) -> dict[str, object]:
        from datetime import timedelta

        return {"name": self.name, "lasts": timedelta(seconds=self.lasts), **more}


@contextmanager
def connect(url: str) -> Iterator[psycopg.Connection]:
    with translate_postgres("of leases and kills"):
        import psycopg

        with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS) as connection:
            connection.execute("SET statement_timeout = '10s'")
            yield connection


def create_schema(connection: psycopg.Connection, *statements: LiteralString) -> None:
    """One process at a time: IF NOT EXISTS alone is no shield against a race."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('zuno schema'))")
        for statement in ("CREATE SCHEMA IF NOT EXISTS zuno", *statements):
            connection.execute(statement)


@contextmanager
def translate_postgres(which: str) -> Iterator[None]:
    """Our errors for the vendor's; they never hold the URL, which has a password."""
    try:
        import psycopg

        try:
            yield
        except psycopg.errors.UniqueViolation as error:
            raise Broken("An entry of that number is in the journal already.") from error
        except (psycopg.OperationalError, psycopg.errors.InsufficientPrivilege) as error:
            raise Unavailable(f"The Postgres {which} did not answer ({type(error).__name__}).") from error
        except psycopg.Error as error:
            raise Broken(f"The Postgres {which} cannot be used as one ({type(error).__name__}).") from error
    except ImportError as error:
        raise Unavailable(f"Postgres needs its driver: {name_install('postgres')}.") from error
