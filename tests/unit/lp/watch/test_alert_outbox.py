"""From the book of alerts to the outbox: each event for the owner once, whatever was interrupted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.fakes.alerts import AlertsInMemory
from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.watching import NOW, WALLET, position
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.kernel.errors import Unavailable
from zuno.kernel.notify import Notice, NoticeLabel
from zuno.kernel.units import Seconds
from zuno.lp.model.alerts import Subject
from zuno.lp.ports.samples import AlertStore
from zuno.lp.watch.alerts import append_alerts, build_notice
from zuno.lp.watch.rules import ChainReading, WalletReading, acknowledge, answer_alert, pending_events, record_reading


async def raise_alerts(store: AlertStore, *ids: int, tick: int = -50) -> None:
    crowd = tuple(position(tick, id=number) for number in ids)
    look = ChainReading("base", (WalletReading(WALLET, crowd),), block_time=NOW)
    await store.change(lambda book: record_reading(book, look, Seconds(NOW)))


async def drain(outbox: OutboxInMemory) -> list[Notice]:
    notices = []
    while (post := await outbox.next()) is not None:
        notices.append(post.notice)
        await outbox.mark_delivered(post.number, NOW)
    return notices


def positions(notices: list[Notice]) -> list[str]:
    return [dict(notice.facts)["position"] for notice in notices]


async def test_events_are_appended_once_and_in_order() -> None:
    store, outbox = AlertsInMemory(), OutboxInMemory()
    await raise_alerts(store, 3, 1)
    await append_alerts(store, outbox)
    await raise_alerts(store, 2)
    await append_alerts(store, outbox)
    await append_alerts(store, outbox)
    assert positions(await drain(outbox)) == ["3", "1", "2"]


async def test_a_kill_before_the_book_is_marked_appends_nothing_twice() -> None:
    class Dying(AlertsInMemory):
        async def change(self, make):
            raise Unavailable("killed")

    store, outbox = AlertsInMemory(), OutboxInMemory()
    await raise_alerts(store, 1, 2)
    dying = Dying()
    dying._book = await store.book()
    with pytest.raises(Unavailable):
        await append_alerts(dying, outbox)
    await append_alerts(store, outbox)
    assert positions(await drain(outbox)) == ["1", "2"]


async def test_the_owners_own_answers_are_not_told_back() -> None:
    store, outbox = AlertsInMemory(), OutboxInMemory()
    await raise_alerts(store, 1)
    book = await store.book()
    await store.change(lambda latest: answer_alert(latest, book.active[0].id, lambda alert: acknowledge(alert, NOW)))
    await append_alerts(store, outbox)
    assert len(await drain(outbox)) == 1


async def test_without_anybody_to_tell_nothing_waits_for_one_who_comes_later() -> None:
    store, outbox = AlertsInMemory(), OutboxInMemory()
    await raise_alerts(store, 1)
    await append_alerts(store, None)
    assert list(pending_events(await store.book())) == []
    await append_alerts(store, outbox)
    assert await outbox.next() is None


async def test_an_older_home_pushes_only_what_was_not_pushed(tmp_path: Path) -> None:
    store, outbox = AlertsFile(tmp_path), OutboxInMemory()
    await raise_alerts(store, 1, 2, 3)
    file = tmp_path / "alerts.json"
    document = json.loads(file.read_text())
    document["book"] |= {"pushed": 2, "trouble": "Telegram could not be reached"}
    file.write_text(json.dumps(document))
    await append_alerts(store, outbox)
    assert positions(await drain(outbox)) == ["3"]


async def test_an_alert_offers_its_answers_and_says_whose_money_it_is() -> None:
    store, outbox = AlertsInMemory(), OutboxInMemory()
    await raise_alerts(store, 1)
    await raise_alerts(store, 1, tick=500)
    await append_alerts(store, outbox)
    raised, recovered = await drain(outbox)
    alert = raised.reference
    assert [button.words for button in raised.buttons] == [
        f"/ack {alert}",
        f"/snooze {alert} 6h",
        "/recommend 1 base",
    ]
    assert recovered.buttons == ()
    event = (await store.book()).events[0]
    assert raised.label is NoticeLabel.LIVE
    for chain in ("sim", "devnet"):
        assert build_notice(replace(event, subject=Subject(chain))).label is NoticeLabel.SYNTHETIC
