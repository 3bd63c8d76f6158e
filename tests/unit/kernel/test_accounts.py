"""What accounts are called, and that a kill finds a named one by either of its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from zuno.adapters.kill_lock import KillLockFile
from zuno.kernel.accounts import account_mode, check_account_name, short_name
from zuno.kernel.errors import UsageError


@pytest.mark.parametrize(
    ("account", "mode", "short"),
    [
        ("live", "live", "live"),
        ("demo", "demo", "demo"),
        ("live:swiss", "live", "swiss"),
        ("demo:swiss", "demo", "swiss"),
        ("paper:recorded", "paper", "paper"),
        ("paper:recorded:swiss", "paper", "swiss"),
        ("live-test", "paper", "live-test"),
        ("own", "paper", "own"),
    ],
)
def test_a_whole_name_says_the_mode_and_the_name_of_the_option(account: str, mode: str, short: str) -> None:
    assert (account_mode(account), short_name(account)) == (mode, short)


def test_names_that_cannot_be() -> None:
    check_account_name("live:swiss")
    for name in ("", "a b", "Live", "other:swiss", "live:", "live:a:b"):
        with pytest.raises(UsageError):
            check_account_name(name)


@pytest.mark.parametrize("typed", ["swiss", "live:swiss"])
def test_a_kill_locks_a_named_account_by_either_name(tmp_path: Path, typed: str) -> None:
    lock = KillLockFile(tmp_path)
    lock.lock(typed, "terminal")
    assert lock.why_locked(short_name("live:swiss"))
    assert lock.why_locked("live") is None
