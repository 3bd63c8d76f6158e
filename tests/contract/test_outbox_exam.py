"""The exam of `Outbox`: the file and the memory sit it unchanged; what only a file can do is below."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.watching import NOW
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.kernel.errors import Broken
from zuno.kernel.notify import (
    KEPT_SECONDS,
    PICTURE_SECONDS,
    Button,
    Fact,
    Notice,
    NoticeKind,
    NoticeLabel,
    Outbox,
    OutboxEntry,
    OutboxState,
    OutboxStatus,
    Severity,
)
from zuno.kernel.units import Seconds

NOTICE = Notice(
    kind=NoticeKind.CLOSE,
    title="BTC long closed “by the owner”",
    severity=Severity.WARNING,
    label=NoticeLabel.PAPER,
    at=Seconds(NOW),
    facts=(Fact("net", "+12.40 USD"), Fact("R", "+1.20")),
    reason="<b>hold over</b>\n",
    reference="trade_1",
    buttons=(Button("Why", "/why run_1"), Button("Trades", "/trades")),
    picture=b"\x89PNG\x00\xff",
)
FILL = replace(NOTICE, kind=NoticeKind.FILL, picture=None, buttons=())


@pytest.fixture(params=["file", "memory"])
def outbox(request: pytest.FixtureRequest, tmp_path: Path) -> Outbox:
    return SqliteOutbox(tmp_path, most_waiting=5) if request.param == "file" else OutboxInMemory(most_waiting=5)


async def waiting_keys(outbox: Outbox) -> list[str]:
    keys = []
    while (post := await outbox.next()) is not None:
        keys.append(post.key)
        await outbox.mark_delivered(post.number, Seconds(NOW))
    return keys


async def test_an_outbox_nobody_wrote_to_is_empty(outbox: Outbox) -> None:
    assert await outbox.next() is None
    assert await outbox.find(1) is None
    assert await outbox.status() == OutboxStatus()
    assert await outbox.cursor("alerts") is None


async def test_a_notice_comes_back_as_it_was(outbox: Outbox) -> None:
    number = await outbox.append(NOTICE, "a")
    assert await outbox.next() == await outbox.find(number) == OutboxEntry(number, "a", NOTICE, OutboxState.WAITING)


async def test_a_key_is_stored_once_and_order_is_kept(outbox: Outbox) -> None:
    numbers = [await outbox.append(replace(NOTICE, title=key), key) for key in ("b", "a", "b", "c", "a")]
    assert numbers == [1, 2, 1, 3, 2]
    assert await waiting_keys(outbox) == ["b", "a", "c"]
    assert await outbox.append(NOTICE, "b") == 1
    assert await outbox.next() is None


async def test_what_is_settled_stays_settled(outbox: Outbox) -> None:
    first, second, third = [await outbox.append(FILL, key) for key in "abc"]
    await outbox.mark_undeliverable(first, "refused", NOW)
    await outbox.mark_delivered(first, NOW)
    await outbox.mark_skipped(second, NOW)
    await outbox.mark_delivered(third, NOW)
    await outbox.mark_undeliverable(third, "refused", NOW)
    states = [post.state for number in (first, second, third) if (post := await outbox.find(number))]
    assert states == [OutboxState.UNDELIVERABLE, OutboxState.SKIPPED, OutboxState.DELIVERED]
    assert (await outbox.status()).undeliverable == 1


async def test_the_status_counts_by_kind_and_names_the_last_trouble(outbox: Outbox) -> None:
    first = await outbox.append(NOTICE, "a")
    await outbox.append(FILL, "b")
    await outbox.mark_undeliverable(first, "refused", NOW)
    assert await outbox.status() == OutboxStatus(1, 1, "refused")
    assert await outbox.status(NoticeKind.FILL) == OutboxStatus(1, 0, "refused")
    assert await outbox.status(NoticeKind.CLOSE) == OutboxStatus(0, 1, "refused")
    await outbox.record_trouble("down")
    assert (await outbox.status()).trouble == "down"
    await outbox.mark_delivered(2, NOW)
    assert await outbox.status() == OutboxStatus(0, 1, "")


async def test_the_oldest_makes_way_when_too_many_wait(outbox: Outbox) -> None:
    for number in range(8):
        await outbox.append(FILL, f"key {number}")
    assert await outbox.status() == OutboxStatus(5, 3, "")
    assert await waiting_keys(outbox) == [f"key {number}" for number in range(3, 8)]


async def test_old_pictures_and_older_notices_go_but_what_waits_stays(outbox: Outbox) -> None:
    first, second = [await outbox.append(NOTICE, key) for key in "ab"]
    await outbox.mark_delivered(first, NOW)
    later = await outbox.append(NOTICE, "c")
    await outbox.mark_delivered(later, Seconds(NOW + PICTURE_SECONDS + 1))
    assert (post := await outbox.find(first)) is not None
    assert post.notice == replace(NOTICE, picture=None)
    last = await outbox.append(NOTICE, "d")
    await outbox.mark_delivered(last, Seconds(NOW + KEPT_SECONDS + 1))
    assert await outbox.find(first) is None
    assert (post := await outbox.next()) is not None
    assert (post.number, post.notice) == (second, NOTICE)
    assert await outbox.append(NOTICE, "e") == last + 1


async def test_cursors_are_kept_by_name(outbox: Outbox) -> None:
    await outbox.move_cursor("alerts", "3")
    await outbox.move_cursor("trades:live", "7")
    await outbox.move_cursor("alerts", "4")
    assert [await outbox.cursor(feed) for feed in ("alerts", "trades:live", "trades")] == ["4", "7", None]


@pytest.mark.parametrize("number", [0, -1, 2**63, 10**40])
async def test_a_number_nobody_gave_finds_nothing(outbox: Outbox, number: int) -> None:
    await outbox.append(NOTICE, "a")
    assert await outbox.find(number) is None
    await outbox.mark_delivered(2, NOW)
    assert await outbox.status() == OutboxStatus(1, 0, "")


async def test_appends_at_once_lose_and_double_nothing(outbox: Outbox) -> None:
    numbers = await asyncio.gather(*(outbox.append(FILL, f"key {index % 4}") for index in range(20)))
    assert sorted(set(numbers)) == [1, 2, 3, 4]
    assert (await outbox.status()).waiting == 4


# -- the file alone


def _append_some(home: str, count: int) -> None:
    async def append() -> None:
        outbox = SqliteOutbox(Path(home))
        for index in range(count):
            await outbox.append(FILL, f"key {index}")

    asyncio.run(append())


def _append_and_die(home: str) -> None:
    async def append() -> None:
        outbox = SqliteOutbox(Path(home))
        await outbox.append(FILL, "a")
        await outbox.move_cursor("alerts", "1")
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(append())


def test_several_processes_append_each_key_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_some, args=(str(tmp_path), 20)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert asyncio.run(SqliteOutbox(tmp_path).status()).waiting == 20


def test_what_was_appended_survives_a_kill(tmp_path: Path) -> None:
    worker = multiprocessing.get_context("fork").Process(target=_append_and_die, args=(str(tmp_path),))
    worker.start()
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    outbox = SqliteOutbox(tmp_path)
    assert asyncio.run(outbox.status()).waiting == 1
    assert asyncio.run(outbox.cursor("alerts")) == "1"


async def test_reading_makes_no_file_and_the_file_is_private(tmp_path: Path) -> None:
    outbox = SqliteOutbox(tmp_path)
    await outbox.next()
    assert os.listdir(tmp_path) == []
    await outbox.append(NOTICE, "a")
    assert stat.S_IMODE((tmp_path / "outbox.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["{", "{}", '{"kind":"gone_fishing"}'])
async def test_a_notice_that_is_none_is_told_of(tmp_path: Path, text: str) -> None:
    outbox = SqliteOutbox(tmp_path)
    await outbox.append(NOTICE, "a")
    with sqlite3.connect(tmp_path / "outbox.db") as connection:
        connection.execute("UPDATE notices SET notice = ?", (text,))
    connection.close()
    with pytest.raises(Broken):
        await outbox.next()


async def test_a_file_that_is_no_database_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "outbox.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(Broken):
        await SqliteOutbox(tmp_path).append(NOTICE, "a")
