"""`kill.lock` in the home: a line for every account that was killed, `ACCOUNT [TIME [DOOR]]`.

It can be made by hand: `echo live >> kill.lock`. A file that is empty or cannot be read locks every account.
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, LiteralString

from zuno.adapters.atomic_file import flush_to_disk, replace_file, translate_write_errors
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import FileLock
from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, check_account_name, short_name
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError, ZunoError

FILE: Final = "kill.lock"
DEFAULT_HOME: Final = "~/.zuno"
_WAIT_SECONDS: Final = 0.5
"""How long a kill waits for another writer before it writes all the same."""
_SCHEMA: Final[LiteralString] = "CREATE TABLE IF NOT EXISTS zuno.kills (account text PRIMARY KEY, said text NOT NULL)"


def find_home(home: str | None, environment: Mapping[str, str]) -> Path:
    """The home, without reading other settings: a kill must not fail on one that cannot be read."""
    set_home = next((value for name, value in environment.items() if name.upper() == "ZUNO_HOME" and value), None)
    return Path(home or set_home or DEFAULT_HOME).expanduser()


def _describe_kill(door: str) -> str:
    """When and where; undated if the clock cannot be read."""
    try:
        return f"{iso(unix_millis())} {door}"
    except ZunoError:
        return f"undated {door}"


class KillLockFile:
    """The `KillLock` of a home. `database_url`: of the Postgres that it shares with other homes. `named`: accounts at
    exchanges that settings name; other homes may hold the keys of the same, and accounts on paper are each home's
    own."""

    def __init__(self, home: Path, database_url: str | None = None, named: Iterable[str] = ()) -> None:
        self.path = home / FILE
        self._turn = FileLock(home / "leases" / FILE, timeout=_WAIT_SECONDS)
        self._url = database_url
        self._shared = {LIVE_ACCOUNT, DEMO_ACCOUNT, *named}
        self._ready = False

    def why_locked(self, account: str | None = None) -> str | None:
        try:
            kills = self._read()
            if self._url is not None and (account in self._shared or (account is None and not kills)):
                kills = self._shared_kills() | kills
        except ZunoError as error:
            return str(error)
        killed = next(iter(kills), "") if account is None else account
        return f"{killed} was killed ({kills[killed] or 'by hand'})" if killed in kills else None

    def check(self) -> None:
        """Raises where it cannot be read, here or in the database: then nobody knows who is locked."""
        self._read()
        self._shared_kills()

    def list_kills(self) -> frozenset[tuple[str, str]]:
        """Accounts in the file, each with when and where; empty if the file cannot be read."""
        with suppress(ZunoError):
            return frozenset(self._read().items())
        return frozenset()

    def lock(self, account: str, door: str) -> None:
        account = short_name(account)
        check_account_name(account)
        with suppress(OSError):  # or the write says why
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            with suppress(ZunoError):  # whoever holds it was stopped half-way
                stack.enter_context(self._turn)
            try:
                kills = self._read()
            except Refused:
                return  # every account is locked
            if account not in kills:
                self._write({**kills, account: _describe_kill(door)})

    def share(self, account: str, door: str) -> None:
        if self._url is not None and account in self._shared:
            statement: LiteralString = "INSERT INTO zuno.kills VALUES (%s, %s) ON CONFLICT DO NOTHING"
            self._query(statement, account, f"{_describe_kill(door)} of another home")

    def unlock(self, account: str) -> None:
        with self._turn:
            kills = self._read()
            if kills.pop(account, None) is not None:
                self._write(kills)
        if self._url is not None and account in self._shared:
            self._query("DELETE FROM zuno.kills WHERE account = %s", account)

    def read_content(self) -> bytes | None:
        """The file as it would be in a home of its own, with the kills of the database; None: nobody is killed."""
        try:
            kills = self._shared_kills() | self._read()
        except Refused:
            return self.path.read_bytes()  # it locks every account, and goes on to
        return _encode(kills) if kills else None

    def _shared_kills(self) -> dict[str, str]:
        return {} if self._url is None else self._query("SELECT account, said FROM zuno.kills")

    def _read(self) -> dict[str, str]:
        """When and where each account was killed. `Refused` where the file names none, or cannot be read."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._refuse(error.strerror or "unread") from error
        lines = [line.split(" ", 1) for line in content.decode("utf-8", "replace").splitlines()]
        try:
            for account, *_ in lines:
                check_account_name(account)
        except UsageError as error:
            raise self._refuse("damaged") from error
        if not content.endswith(b"\n"):
            raise self._refuse("cut off" if content else "it names none")
        return {account: " ".join(details) for account, *details in lines}

    def _refuse(self, why: str) -> Refused:
        return Refused(f"{self.path} locks every account ({why}); look at it, and remove it by hand to lift it.")

    def _write(self, kills: Mapping[str, str]) -> None:
        with translate_write_errors(self.path):
            if kills:
                replace_file(self.path, _encode(kills))
            else:
                self.path.unlink()
                flush_to_disk(self.path.parent)

    def _query(self, statement: LiteralString, *values: str) -> dict[str, str]:
        from zuno.adapters.store.lease import connect, create_schema

        assert self._url is not None
        with connect(self._url) as connection:
            if not self._ready:
                create_schema(connection, _SCHEMA)
                self._ready = True
            answer = connection.execute(statement, values)
            return dict(answer.fetchall()) if answer.description else {}


def _encode(kills: Mapping[str, str]) -> bytes:
    return "".join(f"{account} {why}\n" for account, why in kills.items()).encode()
