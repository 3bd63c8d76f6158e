"""`kills/` in the home: a file for every kill, `ACCOUNT.MOMENT.…`, that says when and where. No kill waits for another
writer, and none overwrites another's.

`kill.lock` beside it holds a line for every account, `ACCOUNT [TIME [DOOR]]`: Zuno 1.0 wrote it, and it can be made by
hand (`echo live >> kill.lock`). What is empty there or cannot be read locks every account. So does `restored.lock`,
which a restore writes.
"""

import os
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, LiteralString
from uuid import uuid4

from zuno.adapters.atomic_file import flush_to_disk, read_file, replace_file, translate_write_errors
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, HomeLock, check_account_name, is_account_name, short_name
from zuno.kernel.clock import iso
from zuno.kernel.errors import DiskFull, Refused, ZunoError

FILE: Final = "kill.lock"
FOLDER: Final = "kills"
RESTORED: Final = "restored.lock"
DEFAULT_HOME: Final = "~/.zuno"
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
        self.folder = home / FOLDER
        self._restored = home / RESTORED
        self._turn = FileLock(home / "leases" / FILE, timeout=WAIT_SECONDS)  # of unlocks: a kill waits for nobody
        self._url = database_url
        self._shared = {LIVE_ACCOUNT, DEMO_ACCOUNT, *named}
        self._ready = False

    def why_locked(self, account: str | None = None) -> HomeLock | None:
        try:
            kills, restored = self._read(), read_file(self._restored)
            if self._url is not None and (account in self._shared or (account is None and not kills)):
                kills = self._shared_kills() | kills
        except ZunoError as error:
            return HomeLock(str(error))
        killed = next(iter(kills), "") if account is None else account
        if killed in kills:
            return HomeLock(
                why=f"{killed} was killed ({kills[killed] or 'by hand'})",
                lifted_by=f"zuno trade unlock --account {killed}",
            )
        if restored is None:
            return None
        return HomeLock(
            why=f"this home was restored from a backup ({restored.decode(errors='replace').strip()})",
            lifted_by="zuno home unlock",
            kind="restored",
        )

    def check(self) -> None:
        """Raises where it cannot be read, here or in the database: then nobody knows who is locked."""
        self._read()
        self._shared_kills()

    def list_kills(self) -> frozenset[tuple[str, str]]:
        """Accounts of this home, each with when and where first; empty if they cannot be read."""
        with suppress(ZunoError):
            return frozenset(self._read().items())
        return frozenset()

    def lock(self, account: str, door: str) -> None:
        account = short_name(account)
        check_account_name(account)
        with translate_write_errors(self.folder):
            self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            kill = self.folder / f"{account}.{time.time_ns():020d}.{uuid4().hex[:12]}"
            try:
                replace_file(kill, f"{_describe_kill(door)}\n".encode())
            except DiskFull:
                kill.touch(0o600)  # its name is enough; where not even that finds room, that is raised
            flush_to_disk(self.folder.parent)

    def lock_restored(self) -> None:
        replace_file(self._restored, f"{iso(unix_millis())}\n".encode())

    def unlock_restored(self) -> None:
        with translate_write_errors(self._restored):
            self._restored.unlink(missing_ok=True)
            flush_to_disk(self._restored.parent)

    def share(self, account: str, door: str) -> None:
        if self._url is not None and account in self._shared:
            statement: LiteralString = "INSERT INTO zuno.kills VALUES (%s, %s) ON CONFLICT DO NOTHING"
            self._query(statement, account, f"{_describe_kill(door)} of another home")

    def list_marks(self, account: str) -> frozenset[str]:
        return frozenset(path.name for killed, path in self._list_files() if killed == account)

    def unlock(self, account: str, marks: Collection[str] | None = None) -> None:
        """What is killed while this runs stays killed."""
        with self._turn, translate_write_errors(self.folder):
            by_hand, marks = self._read_lines(), self.list_marks(account) if marks is None else marks
            lifted = [self.folder / name for name in marks]
            if by_hand.pop(account, None) is not None:
                if by_hand:
                    replace_file(self.path, _encode(by_hand))
                else:
                    lifted.append(self.path)
            for path in lifted:
                path.unlink(missing_ok=True)
                flush_to_disk(path.parent)
        if self._url is not None and account in self._shared and not self.list_marks(account):
            self._query("DELETE FROM zuno.kills WHERE account = %s", account)

    def read_content(self) -> bytes | None:
        """As `kill.lock` would be in a home of its own, with the kills of the database; None: nobody is killed."""
        try:
            kills = self._shared_kills() | self._read()
        except Refused:
            return read_file(self.path) or b""  # it locks every account, and goes on to
        return _encode(kills) if kills else None

    def copy_to(self, home: Path) -> None:
        """Copy what stands to another home: a kill waits for no copy."""
        for path in (self.path, *(path for _, path in self._list_files())):
            if (content := read_file(path)) is not None:
                place = home / path.relative_to(self.path.parent)
                place.parent.mkdir(mode=0o700, exist_ok=True)
                replace_file(place, content)

    def _shared_kills(self) -> dict[str, str]:
        return {} if self._url is None else self._query("SELECT account, said FROM zuno.kills")

    def _read(self) -> dict[str, str]:
        """When and where each account was killed first. `Refused` where that cannot be read."""
        kills = self._read_lines()
        for account, path in self._list_files():
            if (said := read_file(path)) is not None:  # or it was lifted since it was listed
                kills.setdefault(account, " ".join(said.decode("utf-8", "replace").split()))
        return kills

    def _list_files(self) -> list[tuple[str, Path]]:
        """Each kill's account and file, oldest first. `Refused` where one names no account."""
        try:
            listed = os.listdir(self.folder) if self.folder.exists() else []
        except OSError as error:
            raise self._refuse(self.folder, error.strerror or "unread") from error
        names = sorted(name for name in listed if not name.startswith("."))
        files = [(name.partition(".")[0], self.folder / name) for name in names]
        for account, path in files:
            if not is_account_name(account):
                raise self._refuse(path, "it names none")
        return files

    def _read_lines(self) -> dict[str, str]:
        """Of the file. `Refused` where it names no account, or cannot be read."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._refuse(self.path, error.strerror or "unread") from error
        lines = [line.split(" ", 1) for line in content.decode("utf-8", "replace").splitlines()]
        if not all(is_account_name(account) for account, *_ in lines):
            raise self._refuse(self.path, "damaged")
        if not content.endswith(b"\n"):
            raise self._refuse(self.path, "cut off" if content else "it names none")
        return {account: " ".join(details) for account, *details in lines}

    def _refuse(self, path: Path, why: str) -> Refused:
        return Refused(f"{path} locks every account ({why}); look at it, and remove it by hand to lift it.")

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
