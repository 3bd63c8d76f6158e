"""The exam of `AlertStore` and `Seat`: the file and the memory sit it unchanged; what only a file can do is below."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.fakes.alerts import AlertsInMemory, SeatInMemory
from tests.wire.watching import NOW, WALLET, full_disk, position
from zuno.adapters.file_lock import FileLock, monitor_lock
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.kernel.errors import Broken, DiskFull, Refused, Unavailable
from zuno.kernel.lock import ProcessLock
from zuno.kernel.units import Seconds
from zuno.lp.model.alerts import AlertBook
from zuno.lp.ports.samples import AlertStore
from zuno.lp.watch.rules import ChainReading, WalletReading, acknowledge, answer_alert, record_reading, snooze


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> AlertStore:
    return AlertsFile(tmp_path) if request.param == "file" else AlertsInMemory()


@pytest.fixture(params=["file", "memory"])
def seat(request: pytest.FixtureRequest, tmp_path: Path) -> ProcessLock:
    return monitor_lock(tmp_path) if request.param == "file" else SeatInMemory()


def seen(book: AlertBook) -> tuple[AlertBook, int]:
    crowd = (position(-50, id=2**255), position(20, id=2), position(-1, id=3, subscribed=True))
    book, events = record_reading(
        book, ChainReading("base", (WalletReading(WALLET, crowd, complete=True),), block_time=NOW), NOW
    )
    book, _ = record_reading(book, ChainReading("arbitrum", failure="no “answer”\n"), NOW)
    book, _ = answer_alert(book, book.active[0].id, lambda alert: acknowledge(alert, NOW))
    book, _ = answer_alert(book, book.active[1].id, lambda alert: snooze(alert, Seconds(NOW + 60), NOW))
    return replace(book, dropped=3), len(events)


async def test_a_book_nobody_wrote_is_empty(store: AlertStore) -> None:
    assert await store.book() == AlertBook()


async def test_what_was_written_comes_back_as_it_was(store: AlertStore) -> None:
    expected, count = seen(AlertBook())
    assert await store.change(seen) == count == 3
    assert await store.book() == expected


async def test_a_change_that_fails_changes_nothing(store: AlertStore) -> None:
    await store.change(seen)
    before = await store.book()

    def failing(book: AlertBook) -> tuple[AlertBook, None]:
        raise Refused("no")

    with pytest.raises(Refused):
        await store.change(failing)
    assert await store.book() == before


async def test_changes_at_once_lose_nothing(store: AlertStore) -> None:
    def more(book: AlertBook) -> tuple[AlertBook, None]:
        return replace(book, dropped=book.dropped + 1), None

    await asyncio.gather(*(store.change(more) for _ in range(20)))
    assert (await store.book()).dropped == 20


def test_a_seat_is_taken_once_and_free_again(seat: ProcessLock) -> None:
    seat.take()
    with pytest.raises(Refused, match="already"):
        seat.take()
    seat.leave()
    seat.take()
    seat.leave()
    seat.leave()


# -- the file alone


def _count(home: str, times: int) -> None:
    store = AlertsFile(Path(home))
    for _ in range(times):
        asyncio.run(store.change(lambda book: (replace(book, dropped=book.dropped + 1), None)))


def test_several_processes_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_count, args=(str(tmp_path), 15)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert asyncio.run(AlertsFile(tmp_path).book()).dropped == 45


def test_a_second_monitor_says_who_runs(tmp_path: Path) -> None:
    first = monitor_lock(tmp_path)
    first.take()
    with pytest.raises(Refused, match=f"process {os.getpid()}"):
        monitor_lock(tmp_path).take()
    first.leave()


async def test_the_file_is_private_and_small(tmp_path: Path) -> None:
    store = AlertsFile(tmp_path)
    await store.change(seen)
    assert stat.S_IMODE((tmp_path / "alerts.json").stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["alerts.json", "alerts.lock"]


async def test_an_unchanged_book_is_not_written(tmp_path: Path) -> None:
    store = AlertsFile(tmp_path)
    await store.change(seen)
    before = (tmp_path / "alerts.json").stat()
    await store.change(lambda book: (book, None))
    assert (tmp_path / "alerts.json").stat().st_ino == before.st_ino


def damaged(how: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(how(json.loads(data))).encode()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"[]",
        lambda data: b"null",
        lambda data: b"\xff\xfe",
        lambda data: b"[" * 100_000,
        damaged(lambda document: {**document, "format": 2}),
        damaged(lambda document: {"format": 1}),
        damaged(lambda document: {"format": 1, "book": {"active": 5}}),
        lambda data: data.replace(b'"alert_', b'"../ert_'),
        lambda data: data.replace(b"out_of_range", b"gone_fishing"),
        lambda data: data.replace(b'"number":1', b'"number":"x"'),
    ],
)
async def test_a_damaged_book_is_told_of_and_left_as_it_is(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    store, path = AlertsFile(tmp_path), tmp_path / "alerts.json"
    await store.change(seen)
    path.write_bytes(damage(path.read_bytes()))
    left = path.read_bytes()
    with pytest.raises(Broken, match="damaged"):
        await store.book()
    with pytest.raises(Broken):
        await store.change(seen)
    assert path.read_bytes() == left


async def test_a_writer_that_died_half_way_left_the_old_book(tmp_path: Path) -> None:
    store = AlertsFile(tmp_path)
    await store.change(seen)
    (tmp_path / ".0123.alerts.json.partial").write_text('{"format": 1, "bo')
    assert await store.book() == seen(AlertBook())[0]
    await store.change(lambda book: (replace(book, dropped=0), None))
    assert (await store.book()).dropped == 0


async def test_a_disk_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    store = AlertsFile(tmp_path)
    await store.change(seen)
    with full_disk(), pytest.raises(DiskFull):
        await store.change(lambda book: (replace(book, dropped=0), None))
    assert (await store.book()).dropped == 3


async def test_a_lock_held_for_too_long_is_told_of(tmp_path: Path) -> None:
    with FileLock(tmp_path / "alerts.lock"), pytest.raises(Unavailable, match=r"0\.05"):
        await AlertsFile(tmp_path, patience=0.05).change(seen)
