"""One service: its parts in order, what dies, what hangs, what is given up, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.wire.fakes.outbox import OutboxInMemory
from zuno.doors.serve import (
    MOST_SILENT_LOOKS,
    POLICY,
    STEADY,
    Part,
    ServeBackends,
    ServeEventView,
    ServeReport,
    Supervisor,
)
from zuno.kernel.errors import DiskFull, Refused, Unavailable
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Millis


class Pretended:
    """A part without a process."""

    def __init__(self, name: str, pid: int, story: Story) -> None:
        self.name, self.pid, self.ready, self.hangs = name, pid, False, False
        self._beats = 0
        self.signals: list[bool] = []
        self._story = story
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def beats(self) -> int:
        self._beats += not self.hangs
        return self._beats

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def die(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    def signal(self, *, hard: bool = False) -> None:
        self.signals.append(hard)
        self._story.ended.append(self.name)
        if hard or self.name not in self._story.stubborn:
            self.die(-9 if hard else 0)

    def last_words(self) -> str:
        return "Port 8420 is in use."


@dataclass
class Story:
    """A supervisor whose sleeps take no time; parts live and die as the test says."""

    names: Sequence[str] = ("mesh", "monitor", "desk", "page", "telegram")
    watchdog: float | None = None
    moment: float = 0.0
    clock: int = 1_700_000_000_000
    stubborn: frozenset[str] = frozenset()
    held: dict[str, int] = field(default_factory=dict)
    born: list[Pretended] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    events: list[ServeEventView] = field(default_factory=list)
    manager: list[str] = field(default_factory=list)
    reports: list[ServeReport] = field(default_factory=list)
    outbox: Any = field(default_factory=OutboxInMemory)
    before: ServeReport | None = None
    healthy: bool = True
    """New parts are ready at once."""
    no_process: bool = False

    def __post_init__(self) -> None:
        self.stop = asyncio.Event()
        self.gate = asyncio.Event()
        self.parts = [Part(name, (name,), find_holder=lambda name=name: self.held.get(name)) for name in self.names]  # type: ignore[misc]

    def backends(self) -> ServeBackends:
        async def nothing(*given: object) -> Any:
            return ()

        async def drain(ending: asyncio.Event) -> None:
            await ending.wait()

        return ServeBackends(
            parts=self.parts,
            start=self._start,
            end_orphans=nothing,
            check=nothing,
            lock=_NoLock(),
            manager=lambda *lines: self.manager.extend(lines),
            watchdog_seconds=self.watchdog,
            outbox=self.outbox,
            drain=drain,
            label=NoticeLabel.PAPER,
            read=lambda: self.before,
            keep=self.reports.append,
            pid=77,
            now=lambda: Millis(self.clock),
            stopwatch=lambda: self.moment,
            sleep=self._sleep,
        )

    def _start(self, name: str, words: Sequence[str], hear: Callable[[str], None]) -> Pretended:
        if self.no_process:
            raise Unavailable("No process can be started (Resource temporarily unavailable).")
        child = Pretended(name, 1_000 + len(self.born), self)
        child.ready = self.healthy
        self.born.append(child)
        return child

    async def _sleep(self, seconds: float) -> None:
        if seconds != 1.0 or not self.pauses or self.pauses[-1] != 1.0:
            self.pauses.append(seconds)
        await asyncio.sleep(0)

    def run(self) -> asyncio.Task[Any]:
        return asyncio.ensure_future(Supervisor(self.backends()).run(self.events.append, self.stop))

    async def beat(self, looks: int = 40) -> None:
        for _ in range(looks):
            await asyncio.sleep(0)

    def of(self, name: str) -> list[Pretended]:
        return [child for child in self.born if child.name == name]

    def told(self, event: str) -> list[str | None]:
        return [view.part for view in self.events if view.event == event]

    async def notices(self) -> list[tuple[str, Severity]]:
        found: list[tuple[str, Severity]] = []
        while (entry := await self.outbox.next()) is not None:
            assert entry.notice.kind is NoticeKind.SERVICE
            found.append((entry.notice.title, entry.notice.severity))
            await self.outbox.mark_delivered(entry.number, 0)
        return found

    def state(self, name: str) -> str:
        return next(part.state for part in self.reports[-1].parts if part.name == name)


class _NoLock:
    def take(self) -> None: ...

    def leave(self) -> None: ...


async def test_parts_start_in_order_and_end_the_other_way_round() -> None:
    story = Story()
    story.healthy = False
    task = story.run()
    for number, name in enumerate(story.names):
        await story.beat()
        assert [child.name for child in story.born] == list(story.names[: number + 1])  # each waits for the one before
        story.of(name)[0].ready = True
    await story.beat()
    assert story.manager.count("READY=1") == 1
    assert not story.reports[-1].list_troubles(Millis(story.clock))
    story.stop.set()
    view = await task
    assert story.ended == list(reversed(story.names))
    assert set(view.restarts.values()) == {0}
    assert story.reports[-1].over
    assert story.manager.index("READY=1") < story.manager.index("STOPPING=1")


async def test_what_dies_is_started_again_and_pushed_once_an_outage() -> None:
    story = Story()
    task = story.run()
    await story.beat()
    for _ in range(3):
        story.of("desk")[-1].die(-9)
        await story.beat()
    assert len(story.of("desk")) == 4
    assert [pause for pause in story.pauses if pause != 1.0] == [2.0, 4.0]
    assert await story.notices() == [("The desk died", Severity.CRITICAL)]
    assert len(story.of("page")) == 1
    story.moment += STEADY.first
    await story.beat()
    assert await story.notices() == [("The desk is back", Severity.INFO)]
    story.of("desk")[-1].die(70)
    await story.beat()
    assert await story.notices() == [("The desk died", Severity.CRITICAL)]  # another outage
    story.stop.set()
    assert (await task).restarts["desk"] == 4


async def test_one_that_dies_every_minute_is_no_storm_of_pushes() -> None:
    story = Story()
    task = story.run()
    await story.beat()
    for _ in range(60):
        story.moment += 40.0
        await story.beat()
        story.of("desk")[-1].die(70)
        await story.beat()
    assert len(story.of("desk")) == 61
    assert [title for title, _ in await story.notices()] == ["The desk died", "The desk is back", "The desk died"]
    story.stop.set()
    await task


async def test_one_that_only_dies_is_given_up_and_the_others_go_on() -> None:
    story = Story(watchdog=30.0)
    task = story.run()
    await story.beat()
    for _ in range(POLICY.most_deaths + 1):
        story.of("page")[-1].die(3)
        await story.beat()
    assert len(story.of("page")) == POLICY.most_deaths + 1
    assert story.state("page") == "given up"
    (trouble,) = story.reports[-1].list_troubles(Millis(story.clock))
    assert "Port 8420 is in use." in trouble
    assert await story.notices() == [("The page died", Severity.WARNING), ("The page is given up", Severity.CRITICAL)]
    assert not task.done()
    story.manager.clear()
    await story.beat()
    assert "WATCHDOG=1" in story.manager  # the page is not essential
    story.stop.set()
    await task


async def test_what_passes_by_itself_is_waited_for() -> None:
    story = Story()
    task = story.run()
    await story.beat()
    for _ in range(3 * POLICY.most_deaths):
        story.of("desk")[-1].die(4)
        await story.beat()
    assert len(story.of("desk")) == 3 * POLICY.most_deaths + 1
    assert story.pauses.count(POLICY.backoff.longest) > POLICY.most_deaths
    assert await story.notices() == [("The desk died", Severity.CRITICAL)]
    story.stop.set()
    await task


async def test_a_start_that_takes_long_is_no_life() -> None:
    story = Story(names=("monitor", "page"), healthy=False)
    task = story.run()
    await story.beat()
    for _ in range(POLICY.most_deaths + 1):
        story.moment += 2 * POLICY.long_life
        story.of("monitor")[-1].die(3)
        await story.beat()
    assert story.state("monitor") == "given up"
    assert [pause for pause in story.pauses if pause > 1.0][:3] == [2.0, 4.0, 8.0]
    story.stop.set()
    await task


async def test_the_watchdog_is_fed_only_while_essential_parts_live() -> None:
    story = Story(watchdog=30.0)
    task = story.run()
    await story.beat()
    assert "WATCHDOG=1" in story.manager
    for _ in range(POLICY.most_deaths + 1):
        story.of("monitor")[-1].die(70)
        await story.beat()
    story.manager.clear()
    await story.beat()
    assert "WATCHDOG=1" not in story.manager
    assert not any(child.signals for child in story.of("desk"))
    story.stop.set()
    await task


async def test_without_a_watchdog_nothing_is_fed() -> None:
    story = Story()
    task = story.run()
    await story.beat()
    assert "READY=1" in story.manager
    assert "WATCHDOG=1" not in story.manager
    story.stop.set()
    await task


async def test_a_part_that_hangs_is_killed_and_a_clock_step_kills_nobody() -> None:
    story = Story()
    task = story.run()
    await story.beat()
    for step in (-7_200_000, +7_200_000):
        story.clock += step
        await story.beat(MOST_SILENT_LOOKS * 2)
    assert not any(child.signals for child in story.born)
    hung = story.of("monitor")[0]
    hung.hangs = True
    await story.beat(MOST_SILENT_LOOKS * 4)
    assert hung.signals == [True]
    assert len(story.of("monitor")) == 2
    story.stop.set()
    await task


async def test_one_that_was_asked_to_end_or_cannot_be_meant_is_not_started_again() -> None:
    story = Story()
    task = story.run()
    await story.beat()
    story.of("desk")[0].die(0)
    story.of("telegram")[0].die(2)
    await story.beat()
    assert (story.state("desk"), story.state("telegram")) == ("ended", "given up")
    assert len(story.of("desk")) == len(story.of("telegram")) == 1
    assert await story.notices() == [("The telegram is given up", Severity.CRITICAL)]
    story.stop.set()
    await task


async def test_where_no_part_can_be_kept_alive_the_service_ends() -> None:
    story = Story(names=("page",))
    story.no_process = True
    with pytest.raises(Unavailable, match="No process can be started"):
        await story.run()
    assert "READY=1" in story.manager or story.reports[-1].over
    assert await story.notices() == [("The page is given up", Severity.CRITICAL)]


async def test_a_part_that_runs_elsewhere_is_named_and_taken_over_when_it_ends() -> None:
    story = Story(held={"monitor": 4_242})
    task = story.run()
    await story.beat()
    assert story.state("monitor") == "elsewhere"
    assert "4242" in next(event.text for event in story.events if event.part == "monitor")
    assert not story.of("monitor")
    assert "READY=1" in story.manager
    story.held.clear()
    await story.beat()
    assert story.state("monitor") == "ready"
    story.stop.set()
    await task


async def test_sigterm_during_the_start_ends_what_was_started() -> None:
    story = Story()
    story.healthy = False
    task = story.run()
    await story.beat()
    assert [child.name for child in story.born] == ["mesh"]
    story.stop.set()
    await task
    assert story.ended == ["mesh"]
    assert len(story.born) == 1
    assert "READY=1" not in story.manager


async def test_whoever_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.doors.serve.END_SECONDS", 0.01)
    story = Story(stubborn=frozenset({"desk"}))
    task = story.run()
    await story.beat()
    story.stop.set()
    await task
    assert story.of("desk")[0].signals == [False, True]
    assert story.of("monitor")[0].signals == [False]


async def test_a_second_ctrl_c_kills_what_is_left() -> None:
    story = Story(stubborn=frozenset({"telegram"}))
    task = story.run()
    await story.beat()
    story.stop.set()
    await story.beat()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(child.signals[-1] for child in story.born)
    assert story.reports[-1].over


async def test_parts_that_are_left_out_are_said_and_nothing_at_all_is_refused() -> None:
    story = Story()
    story.parts = [replace(part, missing="" if part.name == "page" else "not set") for part in story.parts]
    task = story.run()
    await story.beat()
    assert [child.name for child in story.born] == ["page"]
    assert story.told("note") == ["mesh", "monitor", "desk", "telegram"]
    assert "READY=1" in story.manager
    story.stop.set()
    await task
    story.parts = [replace(part, missing="not set") for part in story.parts]
    with pytest.raises(Refused):
        await Supervisor(story.backends()).run(story.events.append, story.stop)


async def test_a_service_that_was_killed_says_so_when_it_is_started_again() -> None:
    killed = ServeReport(pid=5, since=1, at=2, started=True, parts=())
    story = Story(before=killed)
    task = story.run()
    await story.beat()
    assert [title for title, _ in await story.notices()] == ["The service was killed and is started again"]
    story.stop.set()
    await task
    ended = Story(before=killed.model_copy(update={"over": True}))
    task = ended.run()
    await ended.beat()
    assert await ended.notices() == []
    ended.stop.set()
    await task


async def test_a_push_waits_for_room_on_the_disk() -> None:
    class Full(OutboxInMemory):
        full = True

        async def append(self, notice: Notice, key: str) -> int:
            if self.full:
                raise DiskFull("home")
            return await super().append(notice, key)

    story = Story(outbox=Full())
    task = story.run()
    await story.beat()
    story.of("page")[0].die(-9)
    await story.beat()
    assert await story.notices() == []
    story.outbox.full = False
    await story.beat()
    assert await story.notices() == [("The page died", Severity.WARNING)]
    story.stop.set()
    await task
