"""A day of pushes through outages, limits, lost replies and kills: `python -m benchmarks.pushes`.

A simulated day over the real outbox, drain and notifier, against a Bot API on loopback. Two feeds append every event;
the drain is killed again and again, before it sends, after the message is taken, and after its mark. What arrived is
held against what happened: nothing may be missing or out of order, and a message may stand there twice only where its
reply was lost, which is counted. Prints one JSON line per figure and ends with 1 when a bar is missed.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import httpx2

from benchmarks.figure import report
from tests.wire.bot_api import CHAT, FAULTS, TOKEN, Bot, bot_api, refused
from tests.wire.fakes.clock import FixedClock
from tests.wire.model_server import Answer, cut, hang_up
from zuno.adapters.file_lock import FileLock, outbox_lock
from zuno.adapters.notifier.telegram import TelegramNotifier
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.kernel.notify import Button, Fact, Notice, NoticeKind, NoticeLabel, OutboxEntry, SendResult, Severity
from zuno.kernel.units import Seconds
from zuno.pushes.drain import OutboxDrain

DAY = 86_400
START = 1_760_000_000
EVENTS = 1_500
KILLS = 60
LOST_REPLIES = 40
OUTAGES: tuple[tuple[int, int, Answer], ...] = (
    (2 * 3_600, 3 * 3_600, FAULTS["500"]),
    (6 * 3_600, 6 * 3_600 + 1_800, refused(403, "Forbidden: bot was blocked by the user")),
    (9 * 3_600, 9 * 3_600 + 300, FAULTS["hang up"]),
    (12 * 3_600, 12 * 3_600 + 600, refused(429, "Too Many Requests: retry after 7", retry_after=7)),
    (15 * 3_600, 15 * 3_600 + 120, FAULTS["bad json"]),
    (18 * 3_600, 18 * 3_600 + 900, FAULTS["502"]),
)
"""From, until, and what every request is answered with."""
TIMED = 300


class Killed(BaseException):
    """The process is gone: nothing after it runs."""


@dataclass
class Doom:
    """When the process of the drain dies."""

    before_sending: bool = False
    before_the_mark: bool = False
    after_the_mark: bool = False

    def strike(self, step: str) -> None:
        if getattr(self, step):
            setattr(self, step, False)
            raise Killed


@dataclass
class Day:
    bot: Bot
    home: Path
    clock: FixedClock
    chance: random.Random
    doom: Doom = field(default_factory=Doom)
    kills: int = 0
    unheard: int = 0
    """Messages that were taken and whose sender never knew: a reply lost, or a kill before the mark."""

    def open_drain(self) -> tuple[OutboxDrain, SqliteOutbox, FileLock]:
        day = self

        class Notifier(TelegramNotifier):
            async def send(self, post: OutboxEntry, *, silent: bool = False) -> SendResult:
                day.doom.strike("before_sending")
                taken = len(day.bot.arrived)
                sent = await super().send(post, silent=silent)
                if len(day.bot.arrived) > taken and day.bot.reply is not None:
                    day.unheard += 1
                    day.bot.reply = None
                elif len(day.bot.arrived) > taken and day.doom.before_the_mark:
                    day.unheard += 1
                    day.doom.strike("before_the_mark")
                return sent

        class Outbox(SqliteOutbox):
            async def mark_delivered(self, number: int, at: Seconds) -> None:
                await super().mark_delivered(number, at)
                day.doom.strike("after_the_mark")

        lease, outbox = outbox_lock(self.home), Outbox(self.home)
        drain = OutboxDrain(outbox, Notifier(TOKEN, CHAT, self.bot.url), lease, self.clock, lambda line: None)
        return drain, outbox, lease

    def mood_at(self, second: int) -> Answer | None:
        return next((mood for begin, end, mood in OUTAGES if begin <= second < end), None)

    async def live(self) -> list[str]:
        """The day; the titles in the order of their events."""
        feeds = [SqliteOutbox(self.home), SqliteOutbox(self.home)]
        times = sorted(self.chance.randrange(DAY) for _ in range(EVENTS))
        kills = set(self.chance.sample(range(EVENTS), KILLS))
        losses = set(self.chance.sample(range(EVENTS), LOST_REPLIES))
        steps = ("before_sending", "before_the_mark", "after_the_mark")
        drain, outbox, lease = self.open_drain()
        second = 0
        rest_until = 0.0
        for number, at in enumerate(times):
            while second < at and (waits := (await outbox.status()).waiting):
                second = int(min(at, max(second + 1, rest_until)))
                self.clock.advance(Seconds(START + second - self.clock.now()))
                if second < rest_until:
                    break
                drain, outbox, lease, wait = await self.deliver(second, drain, outbox, lease)
                rest_until = second + (wait or 0.0)
                if wait is None and waits:
                    break
            second = at
            self.clock.advance(Seconds(START + second - self.clock.now()))
            for feed in feeds:  # each event is seen by both
                await feed.append(describe(number, second), f"event:{number}")
            if number in kills:
                setattr(self.doom, steps[number % 3], True)
            if number in losses:
                self.bot.reply = self.chance.choice((cut, hang_up))
            if second >= rest_until:
                drain, outbox, lease, wait = await self.deliver(second, drain, outbox, lease)
                rest_until = second + (wait or 0.0)
        self.doom, self.bot.reply = Doom(), None
        while (await outbox.status()).waiting:
            second += 300
            self.clock.advance(Seconds(300))
            drain, outbox, lease, _ = await self.deliver(second, drain, outbox, lease)
        await drain.close()
        return [f"event {number}" for number in range(EVENTS)]

    async def deliver(
        self, second: int, drain: OutboxDrain, outbox: SqliteOutbox, lease: FileLock
    ) -> tuple[OutboxDrain, SqliteOutbox, FileLock, float | None]:
        self.bot.mood = self.mood_at(second)
        try:
            return drain, outbox, lease, await drain.deliver()
        except Killed:  # the kernel takes its lock and its files; nobody says goodbye
            self.kills += 1
            lease.leave()
            await outbox.close()
            return *self.open_drain(), None


def describe(number: int, second: int) -> Notice:
    return Notice(
        kind=NoticeKind.CLOSE,
        title=f"event {number}",
        severity=Severity.WARNING,
        label=NoticeLabel.PAPER,
        at=Seconds(START + second),
        facts=(Fact("net PnL", "-$12.40"), Fact("result", "-1.06 R")),
        buttons=(Button("Why", "/why run_1"),),
    )


async def measure_day(home: Path) -> bool:
    async with bot_api() as bot:
        day = Day(bot, home, FixedClock(Seconds(START)), random.Random(17))
        expected = await day.live()
        arrived = [text.split("<b>")[1].split("<")[0] for text in bot.arrived]
    counts = Counter(arrived)
    firsts = list(dict.fromkeys(arrived))
    lost = sum(title not in counts for title in expected)
    doubled = sum(count - 1 for count in counts.values())
    misplaced = sum(
        before != after for before, after in zip(firsts, [t for t in expected if t in counts], strict=False)
    )
    against = f"{EVENTS} events in 24 simulated hours"
    more = {"kills": day.kills, "outage_hours": round(sum(end - begin for begin, end, _ in OUTAGES) / 3_600, 2)}
    good = report("pushes.day.lost", lost, "messages", EVENTS, against, 0.0, **more)
    good &= report("pushes.day.out_of_order", misplaced, "messages", EVENTS, against, 0.0)
    return good & report(
        "pushes.day.doubled",
        doubled,
        "messages",
        max(1, day.unheard),
        "messages that were taken and whose sender never heard so",
        1.0,
        replies_lost=day.unheard,
    )


async def measure_time(home: Path) -> bool:
    """Outbox, drain and notifier against the bare request they end in."""
    async with bot_api() as bot:
        outbox = SqliteOutbox(home)
        drain = OutboxDrain(
            outbox,
            TelegramNotifier(TOKEN, CHAT, bot.url),
            outbox_lock(home),
            FixedClock(Seconds(START)),
            lambda line: None,
        )
        began = perf_counter()
        for number in range(TIMED):
            await outbox.append(describe(number, 0), f"event:{number}")
            await drain.deliver()
        ours = perf_counter() - began
        await drain.close()
        await outbox.close()
        form = {"chat_id": CHAT, "text": "event", "parse_mode": "HTML"}
        async with httpx2.AsyncClient() as client:
            began = perf_counter()
            for _ in range(TIMED):
                await client.post(f"{bot.url}/bot{TOKEN}/sendMessage", json=form)
            bare = perf_counter() - began
    return report(
        "pushes.time",
        ours / TIMED * 1_000,
        "ms",
        bare / TIMED * 1_000,
        "a bare sendMessage through the same server",
        4.0,
    )


async def measure() -> bool:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        return await measure_day(Path(first)) & await measure_time(Path(second))


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure()) else 1)
