"""Pushes are sent in order, once each, by one process, through outages, refusals and kills."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.bot_api import CHAT, FAULTS, TOKEN, bot_api, refused
from tests.wire.fakes.alerts import SeatInMemory
from tests.wire.fakes.clock import FixedClock
from tests.wire.fakes.notifier import MemoryNotifier
from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.model_server import http
from tests.wire.watching import NOW, full_disk, until
from zuno.adapters.file_lock import outbox_lock
from zuno.adapters.notifier.telegram import TelegramNotifier
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Unavailable
from zuno.kernel.lock import ProcessLock
from zuno.kernel.notify import (
    Notice,
    NoticeKind,
    NoticeLabel,
    Notifier,
    Outbox,
    OutboxEntry,
    OutboxState,
    RetryLater,
    SendResult,
    Sent,
    Severity,
    Undeliverable,
)
from zuno.kernel.units import Seconds
from zuno.pushes.drain import FIRST_WAIT, LONGEST_WAIT, OutboxDrain
from zuno.pushes.rules import PushMode, PushRules, QuietHours

NOTICE = Notice(NoticeKind.ALERT, "Out of range", Severity.WARNING, NoticeLabel.LIVE, Seconds(NOW))


async def append(outbox: Outbox, *titles: str, **changes: object) -> None:
    for title in titles:
        await outbox.append(replace(NOTICE, title=title, **changes), title)  # type: ignore[arg-type]


def drain_of(
    outbox: Outbox, notifier: Notifier, told: list[str] | None = None, *, lease: ProcessLock | None = None
) -> OutboxDrain:
    told = [] if told is None else told
    return OutboxDrain(outbox, notifier, lease or SeatInMemory(), FixedClock(Seconds(NOW)), told.append)


def titles(notifier: MemoryNotifier) -> list[str]:
    return [notice.title for notice in notifier.sent]


async def test_what_waits_is_delivered_in_order_and_once() -> None:
    outbox, notifier = OutboxInMemory(), MemoryNotifier()
    drain = drain_of(outbox, notifier)
    await append(outbox, "3", "1", "2", "1")
    assert await drain.deliver() is None
    assert await drain.deliver() is None
    assert titles(notifier) == ["3", "1", "2"]


@pytest.mark.slow
async def test_an_hour_of_outage_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """Over the real wire, with another process's worth of drain after the outage."""
    told: list[str] = []
    async with bot_api() as bot:
        outbox = SqliteOutbox(tmp_path)
        drain = drain_of(outbox, TelegramNotifier(TOKEN, CHAT, bot.url, timeout=0.2), told, lease=outbox_lock(tmp_path))
        moods = ["500", "hang up", "cut", "bad json", "502"]
        elapsed, number, waits = 0.0, 0, list[float]()
        while elapsed < 3_600:
            bot.mood = FAULTS[moods[number % len(moods)]]
            number += 1
            await append(outbox, f"event {number}")
            wait = await drain.deliver()
            assert wait is not None
            waits.append(wait)
            elapsed += wait
        await drain.close()
        assert waits == sorted(waits)
        assert (waits[0], waits[-1]) == (FIRST_WAIT, LONGEST_WAIT)
        assert bot.arrived == []
        status = await outbox.status()
        assert status.waiting == number
        assert status.trouble
        bot.mood = None
        again = drain_of(outbox, TelegramNotifier(TOKEN, CHAT, bot.url), told, lease=outbox_lock(tmp_path))
        assert await again.deliver() is None
        await again.close()
        assert [text.split("<b>")[1].split("<")[0] for text in bot.arrived] == [
            f"event {event}" for event in range(1, number + 1)
        ]
    assert (await outbox.status()).trouble == ""
    assert not any(TOKEN in line for line in told)


async def test_the_wait_the_service_asks_for_is_kept() -> None:
    outbox = OutboxInMemory()
    await append(outbox, "1")
    drain = drain_of(outbox, MemoryNotifier([RetryLater("slow down", 77.0), RetryLater("slow down", 0.0)]))
    assert await drain.deliver() == 77.0
    assert await drain.deliver() == FIRST_WAIT
    assert await drain.deliver() is None


async def test_success_forgets_the_back_off() -> None:
    outbox = OutboxInMemory()
    await append(outbox, "1", "2")
    outcomes: list[SendResult] = [RetryLater("down"), RetryLater("down"), Sent(), RetryLater("down")]
    drain = drain_of(outbox, MemoryNotifier(outcomes))
    assert [await drain.deliver() for _ in range(3)] == [FIRST_WAIT, 2 * FIRST_WAIT, FIRST_WAIT]


async def test_a_message_that_is_refused_makes_way_and_is_counted() -> None:
    outbox, told = OutboxInMemory(), list[str]()
    await append(outbox, "1", "2")
    notifier = MemoryNotifier([Undeliverable("refused (HTTP 400)", all=False)])
    await drain_of(outbox, notifier, told).deliver()
    assert titles(notifier) == ["2"]
    assert (await outbox.status()).undeliverable == 1
    assert [line.partition(";")[0] for line in told] == ["refused (HTTP 400)"]


async def test_a_wrong_setting_is_told_once_and_tried_again_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    outbox, told = OutboxInMemory(), list[str]()
    await append(outbox, "1", "2")
    notifier = MemoryNotifier([Undeliverable("no such bot", all=True)] * 4)
    drain = drain_of(outbox, notifier, told)
    waits = [await drain.deliver() for _ in range(3)]
    assert waits == [300.0, 600.0, 1_200.0]
    assert (len(told), (await outbox.status()).waiting, (await outbox.status()).trouble) == (1, 2, "no such bot")
    monkeypatch.setattr("zuno.pushes.drain.REFUSED_BACKOFF", Backoff(0.0, 0.0))
    stop = asyncio.Event()
    running = asyncio.create_task(drain.run(stop))
    await until(lambda: len(notifier.sent) == 2)
    stop.set()
    await asyncio.wait_for(running, 5)
    assert titles(notifier) == ["1", "2"]
    assert (await outbox.status()).trouble == ""


async def test_while_its_setting_is_wrong_another_process_sends() -> None:
    outbox, told, seat = OutboxInMemory(), list[str](), SeatInMemory()
    await append(outbox, "1", "2")
    notifier = MemoryNotifier([Undeliverable("no such bot", all=True)] * 5)
    drain = drain_of(outbox, notifier, told, lease=seat)
    stop = asyncio.Event()
    running = asyncio.create_task(drain.run(stop))
    await until(lambda: told)
    drain.wake()
    mended = MemoryNotifier()
    await until(lambda: not seat.is_taken)
    await drain_of(outbox, mended, told, lease=seat).deliver()  # though the first still runs
    assert (titles(mended), notifier.tries) == (["1", "2"], 1)
    stop.set()
    await asyncio.wait_for(running, 5)


@pytest.mark.parametrize("status", [401, 404])
async def test_telegrams_own_refusals_are_tried_again_seldom_and_a_proxys_soon(status: int) -> None:
    async with bot_api() as bot:
        outbox = OutboxInMemory()
        await append(outbox, "1")
        drain = drain_of(outbox, TelegramNotifier(TOKEN, CHAT, bot.url))
        bot.mood = http(status, b"<html>Please log in</html>", "text/html")
        assert await drain.deliver() == FIRST_WAIT
        bot.mood = refused(status)
        wait = await drain.deliver()
        assert wait is not None
        assert wait >= LONGEST_WAIT
        bot.mood = None
        assert await drain.deliver() is None
        await drain.close()
        assert len(bot.arrived) == 1


async def test_one_outage_is_complained_of_once() -> None:
    outbox, told = OutboxInMemory(), list[str]()
    await append(outbox, "1")
    drain = drain_of(outbox, MemoryNotifier([RetryLater("down")] * 5), told)
    for _ in range(5):
        await drain.deliver()
    assert [line.partition(";")[0] for line in told] == ["down"]


async def test_a_kind_that_is_off_is_skipped_and_a_silent_one_makes_no_sound() -> None:
    outbox, notifier = OutboxInMemory(), MemoryNotifier()
    await append(outbox, "fill", kind=NoticeKind.FILL)
    await append(outbox, "ruling", kind=NoticeKind.RULING)
    await append(outbox, "stop", kind=NoticeKind.STOP)
    rules = PushRules({NoticeKind.FILL: PushMode.OFF, NoticeKind.RULING: PushMode.SILENT})
    await OutboxDrain(outbox, notifier, SeatInMemory(), FixedClock(Seconds(NOW)), print, rules).deliver()
    assert list(zip(titles(notifier), notifier.silent, strict=True)) == [("ruling", True), ("stop", False)]
    assert (post := await outbox.find(1)) is not None
    assert post.state is OutboxState.SKIPPED
    assert (await outbox.status()).undeliverable == 0


async def test_quiet_hours_take_the_sound_of_what_is_not_critical() -> None:
    outbox, notifier = OutboxInMemory(), MemoryNotifier()
    await append(outbox, "calm")
    await append(outbox, "critical", severity=Severity.CRITICAL)
    rules = PushRules(quiet=QuietHours(0, 24 * 60))
    await OutboxDrain(outbox, notifier, SeatInMemory(), FixedClock(Seconds(NOW)), print, rules).deliver()
    assert notifier.silent == [True, False]


# -- one sender among several processes


async def test_of_two_drains_one_sends_and_the_other_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zuno.pushes.drain.LEASE_EVERY", 0.01)
    monkeypatch.setattr("zuno.pushes.drain.LOOK_EVERY", 0.01)
    outbox, stops = SqliteOutbox(tmp_path), [asyncio.Event(), asyncio.Event()]
    notifiers = [MemoryNotifier(), MemoryNotifier()]
    drains = [drain_of(outbox, notifier, lease=outbox_lock(tmp_path)) for notifier in notifiers]
    first = asyncio.create_task(drains[0].run(stops[0]))
    await append(outbox, "1")
    await until(lambda: notifiers[0].sent)
    second = asyncio.create_task(drains[1].run(stops[1]))
    await append(outbox, "2")  # another process's: nobody wakes it
    await until(lambda: len(notifiers[0].sent) == 2)
    await drains[1].deliver_once()
    stops[0].set()
    await first
    await append(outbox, "3")
    await until(lambda: notifiers[1].sent)
    stops[1].set()
    await second
    assert (titles(notifiers[0]), titles(notifiers[1])) == (["1", "2"], ["3"])
    await outbox.close()


HOLDER = """
import asyncio, os, signal, sys
from pathlib import Path
from zuno.adapters.file_lock import outbox_lock
from zuno.adapters.clock.system import SystemClock
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.kernel.notify import Sent
from zuno.pushes.drain import OutboxDrain

home, step = Path(sys.argv[1]), sys.argv[2]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Wire:
    async def send(self, post, *, silent=False):
        if step == "before sending":
            die()
        with open(home / "arrived", "a") as file:
            file.write(post.notice.title + "\\n")
        if step == "before the mark":
            die()
        return Sent()

    async def close(self):
        pass

class Outbox(SqliteOutbox):
    async def mark_delivered(self, number, at):
        await super().mark_delivered(number, at)
        if step == "after the mark":
            die()

drain = OutboxDrain(Outbox(home), Wire(), outbox_lock(home), SystemClock(), print)
asyncio.run(drain.deliver())
"""


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "arrived"),
    [
        ("before sending", ["1", "2", "3"]),
        ("before the mark", ["1", "1", "2", "3"]),  # nobody can know whether it arrived
        ("after the mark", ["1", "2", "3"]),
    ],
)
def test_a_kill_at_any_step_loses_nothing_and_repeats_at_most_one(
    tmp_path: Path, step: str, arrived: list[str]
) -> None:
    asyncio.run(append(SqliteOutbox(tmp_path), "1", "2", "3"))
    codes = []
    for doomed in (step, "never"):
        ran = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", HOLDER, str(tmp_path), doomed])
        codes.append(ran)
    assert codes == [-signal.SIGKILL, 0]
    assert (tmp_path / "arrived").read_text().split() == arrived
    assert asyncio.run(SqliteOutbox(tmp_path).status()).waiting == 0


async def test_an_answer_that_is_lost_doubles_one_message() -> None:
    outbox = OutboxInMemory()

    class Deaf(MemoryNotifier):
        async def send(self, post: OutboxEntry, *, silent: bool = False) -> SendResult:
            lost = not self.tries
            sent = await super().send(post, silent=silent)
            return RetryLater("the answer was lost") if lost else sent

    notifier = Deaf()
    await append(outbox, "1", "2")
    drain = drain_of(outbox, notifier)
    assert await drain.deliver() is not None
    assert await drain.deliver() is None
    assert titles(notifier) == ["1", "1", "2"]


async def test_a_full_disk_after_the_answer_repeats_nothing_while_the_process_lives(tmp_path: Path) -> None:
    outbox, notifier = SqliteOutbox(tmp_path), MemoryNotifier()
    await append(outbox, "1", "2")
    drain, broken = drain_of(outbox, notifier), outbox.mark_delivered

    async def no_room(number: int, at: Seconds) -> None:
        raise Unavailable("no room")

    outbox.mark_delivered = no_room
    for _ in range(2):
        with pytest.raises(Unavailable):
            await drain.deliver()
    outbox.mark_delivered = broken
    assert await drain.deliver() is None
    assert titles(notifier) == ["1", "2"]
    await outbox.close()


# -- as a task


async def test_news_wakes_it_and_a_stop_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.pushes.drain.LOOK_EVERY", 3_600.0)
    outbox, notifier, stop = OutboxInMemory(), MemoryNotifier(), asyncio.Event()
    drain = drain_of(outbox, notifier)
    running = asyncio.create_task(drain.run(stop))
    await asyncio.sleep(0.01)
    await append(outbox, "1")
    drain.wake()
    await until(lambda: notifier.sent)
    stop.set()
    await asyncio.wait_for(running, 5)


async def test_a_stop_does_not_wait_for_the_back_off() -> None:
    outbox, stop = OutboxInMemory(), asyncio.Event()
    await append(outbox, "1")
    running = asyncio.create_task(drain_of(outbox, MemoryNotifier([RetryLater("down", 3_000.0)])).run(stop))
    await asyncio.sleep(0.01)
    stop.set()
    await asyncio.wait_for(running, 5)


class Faulty(MemoryNotifier):
    """A mistake of ours, once."""

    async def send(self, post: OutboxEntry, *, silent: bool = False) -> SendResult:
        if not self.tries:
            self.tries += 1
            raise KeyError("https://api.example/bot123:secret")
        return await super().send(post, silent=silent)


async def test_a_mistake_of_ours_is_told_without_its_words_and_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.pushes.drain.FIRST_WAIT", 0.0)
    outbox, notifier, stop, told = OutboxInMemory(), Faulty(), asyncio.Event(), list[str]()
    await append(outbox, "1")
    running = asyncio.create_task(drain_of(outbox, notifier, told).run(stop))
    await until(lambda: notifier.sent or running.done())
    stop.set()
    await asyncio.wait_for(running, 5)
    assert ["(KeyError)" in line for line in told] == [True]


async def test_a_damaged_outbox_is_told_and_read_again_once_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zuno.pushes.drain.FIRST_WAIT", 0.0)
    monkeypatch.setattr("zuno.pushes.drain.LOOK_EVERY", 0.01)
    file = tmp_path / "outbox.db"
    file.write_text("no database" * 1_000)
    outbox, notifier, stop, told = SqliteOutbox(tmp_path), MemoryNotifier(), asyncio.Event(), list[str]()
    running = asyncio.create_task(drain_of(outbox, notifier, told).run(stop))
    await until(lambda: told or running.done())
    file.unlink()
    await append(outbox, "1")
    await until(lambda: notifier.sent or running.done())
    stop.set()
    await asyncio.wait_for(running, 5)
    await outbox.close()
    assert len(told) == 1
    assert "damaged" in told[0]


async def test_a_full_disk_leaves_what_waits(tmp_path: Path) -> None:
    outbox = SqliteOutbox(tmp_path)
    await append(outbox, "1")
    with full_disk():
        await drain_of(outbox, MemoryNotifier([RetryLater("down")])).deliver_once()
    assert (await outbox.status()).waiting == 1
    await outbox.close()
