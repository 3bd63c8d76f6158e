"""Alerts are sent in order, once each, through outages, and never at the cost of a look."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.wire.bot_api import CHAT, FAULTS, TOKEN, bot_api, refused
from tests.wire.fakes.alerts import AlertsInMemory
from tests.wire.fakes.notifier import MemoryNotifier
from tests.wire.watching import NOW, WALLET, full_disk, position, until
from zuno.adapters.notifier.telegram import TelegramNotifier
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.kernel.errors import NoRoom
from zuno.kernel.notify import Post, RetryLater, SendResult, Sent, Undeliverable
from zuno.kernel.units import Seconds
from zuno.lp.ports.alerts import AlertStore
from zuno.lp.watch.alerts import FIRST_WAIT, LONGEST_WAIT, AlertSender
from zuno.lp.watch.rules import ChainReading, WalletReading, pending_events, record_reading


async def raise_alerts(store: AlertStore, *ids: int, at: int = NOW) -> None:
    crowd = tuple(position(-50, id=number) for number in ids)
    look = ChainReading("base", (WalletReading(WALLET, crowd),), block_time=NOW)
    await store.change(lambda book: record_reading(book, look, Seconds(at)))


async def waiting(store: AlertStore) -> int:
    return len(pending_events(await store.book()))


async def test_what_waits_is_delivered_in_order_and_once() -> None:
    store, notifier = AlertsInMemory(), MemoryNotifier()
    sender = AlertSender(store, notifier, print)
    await raise_alerts(store, 3, 1, 2)
    assert await sender.deliver() is None
    assert await sender.deliver() is None
    assert [dict(notice.facts)["position"] for notice in notifier.sent] == ["3", "1", "2"]


async def test_an_hour_of_outage_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """Over the real wire, with another process's worth of sender after the outage."""
    told: list[str] = []
    async with bot_api() as bot:
        store = AlertsFile(tmp_path)
        telegram = TelegramNotifier(TOKEN, CHAT, bot.url, timeout=0.2)
        sender = AlertSender(store, telegram, told.append)
        moods = ["500", "hang up", "cut", "bad json", "502"]
        elapsed, number, waits = 0.0, 0, list[float]()
        while elapsed < 3_600:
            bot.mood = FAULTS[moods[number % len(moods)]]
            number += 1
            await raise_alerts(store, number, at=int(NOW + elapsed))
            wait = await sender.deliver()
            assert wait is not None
            waits.append(wait)
            elapsed += wait
        await sender.close()
        assert waits == sorted(waits)
        assert (waits[0], waits[-1]) == (FIRST_WAIT, LONGEST_WAIT)
        assert bot.arrived == []
        assert await waiting(store) == number
        assert (await store.book()).trouble
        bot.mood = None
        again = AlertSender(store, TelegramNotifier(TOKEN, CHAT, bot.url), told.append)
        assert await again.deliver() is None
        await again.close()
        ids = [text.split("position: ")[1].split("\n")[0] for text in bot.arrived]
        assert ids == [str(one) for one in range(1, number + 1)]
    assert (await store.book()).trouble == ""
    assert not any(TOKEN in line for line in told)


async def test_the_wait_the_service_asks_for_is_kept() -> None:
    store = AlertsInMemory()
    await raise_alerts(store, 1)
    sender = AlertSender(store, MemoryNotifier([RetryLater("slow down", 77.0), RetryLater("slow down", 0.0)]), print)
    assert await sender.deliver() == 77.0
    assert await sender.deliver() == FIRST_WAIT
    assert await sender.deliver() is None


async def test_success_forgets_the_back_off() -> None:
    store = AlertsInMemory()
    await raise_alerts(store, 1, 2)
    outcomes: list[SendResult] = [RetryLater("down"), RetryLater("down"), Sent(), RetryLater("down")]
    sender = AlertSender(store, MemoryNotifier(outcomes), lambda line: None)
    assert [await sender.deliver() for _ in range(3)] == [FIRST_WAIT, 2 * FIRST_WAIT, FIRST_WAIT]


async def test_a_message_that_is_refused_makes_way_and_is_counted() -> None:
    store, told = AlertsInMemory(), list[str]()
    await raise_alerts(store, 1, 2)
    notifier = MemoryNotifier([Undeliverable("refused (HTTP 400)", all=False)])
    await AlertSender(store, notifier, told.append).deliver()
    assert [dict(notice.facts)["position"] for notice in notifier.sent] == ["2"]
    assert (await store.book()).dropped == 1
    assert told == ["refused (HTTP 400); this one is not tried again."]


async def test_a_wrong_setting_is_told_once_and_not_tried_again_before_a_new_start() -> None:
    store, told = AlertsInMemory(), list[str]()
    await raise_alerts(store, 1, 2)
    notifier = MemoryNotifier([Undeliverable("no such bot", all=True)] * 5)
    sender = AlertSender(store, notifier, told.append)
    for _ in range(3):
        assert await sender.deliver() is None
    assert notifier.tries == 1
    assert len(told) == 1
    assert await waiting(store) == 2
    mended = MemoryNotifier()
    await AlertSender(store, mended, told.append).deliver()
    assert [dict(notice.facts)["position"] for notice in mended.sent] == ["1", "2"]


@pytest.mark.parametrize("status", [401, 404])
async def test_so_do_telegrams_own_refusals(status: int, tmp_path: Path) -> None:
    async with bot_api() as bot:
        bot.mood = refused(status)
        store = AlertsFile(tmp_path)
        await raise_alerts(store, 1)
        sender = AlertSender(store, TelegramNotifier(TOKEN, CHAT, bot.url), lambda line: None)
        await sender.deliver()
        await sender.deliver()
        await sender.close()
        assert len(bot.heard) == 1


async def test_one_outage_is_complained_of_once() -> None:
    store, told = AlertsInMemory(), list[str]()
    await raise_alerts(store, 1)
    sender = AlertSender(store, MemoryNotifier([RetryLater("down")] * 5), told.append)
    for _ in range(5):
        await sender.deliver()
    assert told == ["down; it is tried again."]


async def test_with_nobody_to_deliver_to_nothing_waits() -> None:
    store = AlertsInMemory()
    await raise_alerts(store, 1)
    assert await AlertSender(store, None, print).deliver() is None
    assert await waiting(store) == 0


async def test_a_crash_between_the_answer_and_its_note_repeats_one_message(tmp_path: Path) -> None:
    store, notifier = AlertsFile(tmp_path), MemoryNotifier()
    await raise_alerts(store, 1, 2)
    with full_disk(), pytest.raises(NoRoom):
        await AlertSender(store, notifier, print).deliver()
    await AlertSender(store, notifier, print).deliver()
    assert [dict(notice.facts)["position"] for notice in notifier.sent] == ["1", "1", "2"]


async def test_news_wakes_it_and_a_stop_ends_it() -> None:
    store, notifier, stop = AlertsInMemory(), MemoryNotifier(), asyncio.Event()
    sender = AlertSender(store, notifier, print)
    running = asyncio.create_task(sender.run(stop))
    await asyncio.sleep(0.01)
    await raise_alerts(store, 1)
    sender.wake()
    await until(lambda: notifier.sent)
    stop.set()
    await asyncio.wait_for(running, 5)


async def test_a_stop_does_not_wait_for_the_back_off() -> None:
    store, stop = AlertsInMemory(), asyncio.Event()
    await raise_alerts(store, 1)
    running = asyncio.create_task(AlertSender(store, MemoryNotifier([RetryLater("down", 3_000.0)]), print).run(stop))
    await asyncio.sleep(0.01)
    stop.set()
    await asyncio.wait_for(running, 5)


async def test_a_book_that_cannot_be_reached_does_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "alerts.json").mkdir()
    store, stop, told = AlertsFile(tmp_path), asyncio.Event(), list[str]()
    running = asyncio.create_task(AlertSender(store, MemoryNotifier(), told.append).run(stop))
    await until(lambda: told)
    assert not running.done()
    stop.set()
    await asyncio.wait_for(running, 5)


class Faulty(MemoryNotifier):
    """A mistake of ours, once."""

    async def send(self, post: Post, *, silent: bool = False) -> SendResult:
        if not self.tries:
            self.tries += 1
            raise KeyError("https://api.example/bot123:secret")
        return await super().send(post, silent=silent)


async def test_a_mistake_of_ours_is_told_without_its_words_and_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.lp.watch.alerts.FIRST_WAIT", 0.0)
    store, notifier, stop, told = AlertsInMemory(), Faulty(), asyncio.Event(), list[str]()
    await raise_alerts(store, 1)
    running = asyncio.create_task(AlertSender(store, notifier, told.append).run(stop))
    await until(lambda: notifier.sent or running.done())
    stop.set()
    await asyncio.wait_for(running, 5)
    assert told == ["Zuno has a bug (KeyError); it is tried again."]


async def test_a_damaged_book_is_told_and_read_again_once_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zuno.lp.watch.alerts.FIRST_WAIT", 0.0)
    file = tmp_path / "alerts.json"
    file.write_text("{")
    store, notifier, stop, told = AlertsFile(tmp_path), MemoryNotifier(), asyncio.Event(), list[str]()
    sender = AlertSender(store, notifier, told.append)
    running = asyncio.create_task(sender.run(stop))
    await until(lambda: told or running.done())
    file.unlink()
    await raise_alerts(store, 1)
    sender.wake()
    await until(lambda: notifier.sent or running.done())
    stop.set()
    await asyncio.wait_for(running, 5)
    assert len(told) == 1
    assert "is damaged" in told[0]
