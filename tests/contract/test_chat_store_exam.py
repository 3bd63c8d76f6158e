"""The exam of `ChatStore`: the file and the memory sit it unchanged; what only a file can do is below."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.fakes.chat_store import ChatStoreInMemory
from zuno.adapters.store import chat_store
from zuno.adapters.store.chat_store import SqliteChatStore
from zuno.kernel.chat import ChatButton, ChatStore, Confirmation, RunningRequest
from zuno.kernel.errors import Broken, Unavailable
from zuno.kernel.units import Millis

CARD = Confirmation(
    "k1", 7, -100_123_456_789_012, None, "/approve plan_1", "ab" * 32, "4821", Millis(1_900_000_000_000)
)


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ChatStore:
    return SqliteChatStore(tmp_path) if request.param == "file" else ChatStoreInMemory()


async def test_an_update_is_claimed_once_for_each_bot(store: ChatStore) -> None:
    assert [await store.claim_update(1, 5), await store.claim_update(1, 5), await store.claim_update(1, 4)] == [
        True,
        False,
        True,
    ]
    assert await store.claim_update(2**52, 5)
    await store.close()


async def test_of_many_who_claim_at_once_one_gets_it(store: ChatStore) -> None:
    assert sum(await asyncio.gather(*(store.claim_update(1, 9) for _ in range(20)))) == 1
    await store.close()


async def test_a_button_is_found_by_its_key(store: ChatStore) -> None:
    assert await store.find_button("a") is None
    await store.put_buttons({"a": ChatButton("/why run_1", -5), "b": ChatButton("/experts ‮run_1", 2**52)})
    await store.put_buttons({})
    assert await store.find_button("b") == ChatButton("/experts ‮run_1", 2**52)
    await store.close()


async def test_requests_that_never_ended_are_taken_once(store: ChatStore) -> None:
    asked = [RunningRequest(f"k{number}", 7, -(2**52), f"/analyze {number}") for number in range(3)]
    for request in asked:
        await store.begin_request(request)
    await store.end_request("k1")
    await store.end_request("k9")
    assert await store.take_unended_requests() == (asked[0], asked[2])
    assert await store.take_unended_requests() == ()
    await store.close()


async def test_a_confirmation_is_taken_once(store: ChatStore) -> None:
    await store.put_confirmation(CARD)
    await store.put_confirmation(replace(CARD, message=44))
    assert await store.find_confirmation("k1") == replace(CARD, message=44)
    taken = await asyncio.gather(*(store.take_confirmation("k1") for _ in range(8)))
    assert [each for each in taken if each is not None] == [replace(CARD, message=44)]
    assert await store.find_confirmation("k1") is None
    await store.put_confirmation(CARD)
    assert await store.take_confirmation("k1") is None
    await store.close()


async def test_confirmations_are_listed_by_person_and_chat_newest_first(store: ChatStore) -> None:
    for key, user in (("k1", 7), ("k2", 8), ("k3", 7)):
        await store.put_confirmation(replace(CARD, key=key, user=user))
    assert [each.key for each in await store.list_confirmations(7, CARD.chat)] == ["k3", "k1"]
    assert await store.list_confirmations(7, 7) == ()
    await store.close()


async def test_another_process_of_the_home_sees_the_same(tmp_path: Path) -> None:
    first, second = SqliteChatStore(tmp_path), SqliteChatStore(tmp_path)
    assert await first.claim_update(1, 1)
    assert not await second.claim_update(1, 1)
    await first.put_confirmation(CARD)
    assert await second.take_confirmation("k1") == CARD
    assert await first.take_confirmation("k1") is None
    await first.close()
    await second.close()


async def test_looking_makes_no_file_and_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    store = SqliteChatStore(tmp_path)
    assert await store.find_button("a") is None
    assert not (tmp_path / "telegram.db").exists()
    await store.claim_update(1, 1)
    assert stat.S_IMODE((tmp_path / "telegram.db").stat().st_mode) == 0o600
    await store.close()


async def test_the_oldest_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_store, "KEPT", {"updates": 3})
    monkeypatch.setattr(chat_store, "_TIDY_EVERY", 5)
    store = SqliteChatStore(tmp_path)
    for update in range(10):
        assert await store.claim_update(1, update)
    assert not await store.claim_update(1, 9)
    assert await store.claim_update(1, 0)
    await store.close()


async def test_a_damaged_file_and_one_that_cannot_be_opened_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "telegram.db").write_bytes(b"not a database, not at all" * 50)
    with pytest.raises(Broken):
        await SqliteChatStore(tmp_path).claim_update(1, 1)
    blocked = tmp_path / "other"
    (blocked / "telegram.db").mkdir(parents=True)
    with pytest.raises(Unavailable):
        await SqliteChatStore(blocked).claim_update(1, 1)


async def test_a_busy_file_is_waited_for(tmp_path: Path) -> None:
    store = SqliteChatStore(tmp_path)
    await store.claim_update(1, 1)
    other = sqlite3.connect(tmp_path / "telegram.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(store.claim_update(1, 2))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    assert await waiting
    await store.close()
