"""What trading accounts are called, and the lock that a kill puts on them."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text

PAPER_ACCOUNT: Final = "paper"
"""The home's own paper account, which has no name of its own."""
PAPER_WORD: Final = f"{PAPER_ACCOUNT}:"
LIVE_ACCOUNT: Final = "live"
"""At the exchanges, with money."""
DEMO_ACCOUNT: Final = "demo"
"""At an exchange's demo trading, without money."""
RESERVED_ACCOUNTS: Final = (PAPER_ACCOUNT, LIVE_ACCOUNT, DEMO_ACCOUNT)
_ACCOUNT_NAME: Final = re.compile(rf"(?:(?:{LIVE_ACCOUNT}|{DEMO_ACCOUNT}):)?[A-Za-z0-9_-]{{1,64}}")


@dataclass(frozen=True, slots=True)
class HomeLock:
    """Why the home lets an account open nothing new."""

    why: str
    lifted_by: str = "zuno trade unlock"
    kind: Literal["kill_switch", "restored"] = "kill_switch"


class KillLock(Protocol):
    """Killed accounts, by the names that `--account` takes. Readable without database, market or network."""

    def why_locked(self, account: str | None = None) -> HomeLock | None:
        """Why an account may open nothing new; None as an account: whether any is locked. What cannot be read counts
        as locked, and a home that was restored is, until its owner unlocks it."""

    def lock(self, account: str, door: str) -> None:
        """On disk when it returns; again is harmless. `door`: where it was asked for."""

    def share(self, account: str, door: str) -> None:
        """Lock it for other homes on the same database too, if the account can be theirs."""

    def list_marks(self, account: str) -> frozenset[str]:
        """One for each kill of the account that stands in this home."""

    def unlock(self, account: str, marks: Collection[str] | None = None) -> None:
        """Here and for the other homes; of the kills in this home these alone, if any are named. `Refused` where the
        lock names no accounts: it is removed by hand."""


def check_account_name(name: str) -> None:
    if is_account_name(name):
        return
    if name.lower() in RESERVED_ACCOUNTS:
        raise UsageError(f"No account is called {name}; write {name.lower()}.")
    raise UsageError(f"{plain_text(name, 40)!r} is no name of an account; use up to 64 letters, digits, - and _.")


def is_account_name(name: str) -> bool:
    return _ACCOUNT_NAME.fullmatch(name) is not None and (name in RESERVED_ACCOUNTS) == (
        name.lower() in RESERVED_ACCOUNTS
    )


def account_mode(account: str) -> Literal["paper", "demo", "live"]:
    """By its whole name: `live` and `demo` for keys of the environment, `live:NAME` for those of a named account."""
    word = account.partition(":")[0]
    return "live" if word == LIVE_ACCOUNT else "demo" if word == DEMO_ACCOUNT else "paper"


def short_name(account: str) -> str:
    """What `--account` says for an account's whole name: `live`, `demo`, `paper` for a market's own, or a name."""
    if account_mode(account) != "paper":
        return account.partition(":")[2] or account
    if not account.startswith(PAPER_WORD):
        return account
    return account.removeprefix(PAPER_WORD).partition(":")[2] or PAPER_ACCOUNT
