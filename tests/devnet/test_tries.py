"""Remembered tries answer as py-evm's own do, whatever was written, undone, persisted or read before."""

from __future__ import annotations

import pytest
from eth.abc import AccountDatabaseAPI
from eth.constants import BLANK_ROOT_HASH
from eth.db.account import AccountDB
from eth.db.atomic import AtomicDB
from eth_typing import Address
from hypothesis import given
from hypothesis import strategies as st

from zuno_devnet.execution import Accounts

ADDRESSES = [Address(bytes([number]) * 20) for number in (1, 2, 3)]
SLOTS = range(4)
Step = tuple[str, int, int, int]
steps = st.tuples(
    st.sampled_from(("store", "store", "pay", "wipe", "undo", "root", "persist", "go back")),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 2),
)


def read_all(accounts: AccountDatabaseAPI) -> list[object]:
    read: list[object] = [accounts.get_storage(address, slot) for address in ADDRESSES for slot in SLOTS]
    return read + [(accounts.get_balance(address), accounts.account_exists(address)) for address in ADDRESSES]


def play(kind: type[AccountDB], story: list[Step]) -> tuple[object, object]:
    db, seen, roots = AtomicDB(), [], [BLANK_ROOT_HASH]
    accounts = kind(db)
    for what, who, slot, value in story:
        match what:
            case "store":
                accounts.set_storage(ADDRESSES[who], slot, value)
            case "pay":
                accounts.set_balance(ADDRESSES[who], value)
            case "wipe":
                accounts.delete_storage(ADDRESSES[who])
            case "undo":
                checkpoint = accounts.record()
                accounts.set_storage(ADDRESSES[who], slot, value)
                seen.append(read_all(accounts))
                accounts.discard(checkpoint)
            case "root":
                accounts.make_state_root()
            case "persist":
                accounts.make_state_root()
                accounts.persist()
                roots.append(accounts.state_root)
            case "go back":
                accounts = kind(db, roots[slot % len(roots)])
        seen.append(read_all(accounts))
    return seen, roots


@pytest.mark.slow
@given(st.lists(steps, min_size=3, max_size=12))
def test_remembered_and_plain_tries_answer_alike(story: list[Step]) -> None:
    assert play(Accounts, story) == play(AccountDB, story)


def test_what_a_slot_held_under_another_root_is_not_what_it_holds() -> None:
    story: list[Step] = [
        ("pay", 0, 0, 1),
        ("store", 0, 1, 1),
        ("persist", 0, 0, 0),
        ("go back", 0, 1, 0),
        ("store", 0, 1, 2),
        ("persist", 0, 0, 0),
        ("go back", 0, 1, 0),
        ("go back", 0, 2, 0),
    ]
    assert play(Accounts, story) == play(AccountDB, story)
