"""The monitor: what one look does, what a failing chain cannot do, and how it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.wire.fakes.alerts import AlertsInMemory, SeatInMemory
from tests.wire.fakes.clock import FixedClock
from tests.wire.fakes.notifier import MemoryNotifier
from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.watching import NOW, OTHER, WALLET, WatchedChain, block_at, chains_of, full_disk, position, until
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.store.samples import SqliteSamples
from zuno.amm.model import LpPosition
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Broken, Malformed, NotFound, Refused, Unavailable, UsageError
from zuno.kernel.units import HexId, Millis, Seconds
from zuno.lp.model.alerts import Condition
from zuno.lp.ports.chain import Missing
from zuno.lp.ports.samples import AlertStore
from zuno.lp.watch.alerts import AlertDesk
from zuno.lp.watch.monitor import Monitor, TickView, Watch
from zuno.pushes.drain import OutboxDrain

POOL = HexId("0x" + "77" * 32)
OUT = -50


@dataclass
class House:
    """A monitor over chains of the test's making."""

    folder: Path
    chains: Sequence[WatchedChain]
    watches: list[Watch] = field(default_factory=list)
    notifier: MemoryNotifier = field(default_factory=MemoryNotifier)
    period: float = 3_600
    patience: float = 30.0
    journal_fault: Exception | None = None
    store: AlertStore = field(default_factory=AlertsInMemory)
    outbox: OutboxInMemory = field(default_factory=OutboxInMemory)
    told: list[str] = field(default_factory=list)
    pings: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watches = self.watches or [Watch(chain.name, WALLET) for chain in self.chains]
        self.clock = FixedClock(NOW)
        self.seat = SeatInMemory()
        self.samples = SqliteSamples(self.folder)
        self.samples_path = self.folder / "samples.db"
        self.journal = ChainedJournal(
            MemoryStore(), KeyFile(self.folder / "node.key"), code=lambda: "test", now=lambda: Millis(NOW * 1000)
        )
        self.drain = OutboxDrain(self.outbox, self.notifier, SeatInMemory(), self.clock, self.told.append)
        self.monitor = Monitor(
            watches=lambda: self.watches,
            chain_of=chains_of(self.chains),
            store=self.store,
            samples=self.samples,
            lock=self.seat,
            journal=self._journal,
            outbox=self.outbox,
            drain=self.drain,
            clock=self.clock,
            period=self.period,
            tell=self.told.append,
            patience=self.patience,
            ping=self._ping,
        )
        self.desk = AlertDesk(
            self.store, self.outbox, self._journal, self.clock, self._position, lambda held: held.owner == WALLET
        )

    async def _ping(self, ok: bool) -> None:
        self.pings.append(ok)

    async def _position(self, text: str, chain: str | None) -> LpPosition:
        return next(held for known in self.chains for held in known.held if str(held.id) == text)

    async def _journal(self) -> ChainedJournal:
        if self.journal_fault is not None:
            raise self.journal_fault
        return self.journal

    async def later(self, seconds: int = 60) -> TickView:
        self.clock.advance(Seconds(seconds))
        for chain in self.chains:
            chain.block = block_at(self.clock.now(), chain.block.number + 1)
        return await self.monitor.tick()

    async def entries(self) -> list[Any]:
        return [entry.payload async for entry in self.journal.entries(kind="alert")]


def happenings(tick: TickView) -> list[str]:
    return [event.happening for event in tick.events]


async def test_a_look_counts_raises_samples_and_journals(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(id=1), position(20, id=2), position(OUT, id=3), position(id=4, liquidity=0)])
    house = House(tmp_path, [chain])
    tick = await house.monitor.once()
    (look,) = tick.chains
    assert (look.positions, look.in_range, look.near_edge, look.out_of_range, look.empty) == (4, 2, 1, 1, 1)
    assert happenings(tick) == ["raised", "raised"]
    assert [(alert.position, alert.severity) for alert in tick.alerts] == [("2", "warning"), ("3", "critical")]
    assert [notice.title for notice in house.notifier.sent] == ["Near the edge", "Out of range"]
    (sample,) = await house.samples.pools("base", POOL, NOW, NOW)
    assert (sample.block, sample.tick) == (chain.block, 500)
    assert [one.price for one in await house.samples.gas("base", NOW, NOW)] == [9]
    assert [(entry["happening"], entry["subject"]["position"]) for entry in await house.entries()] == [
        ("raised", 2),
        ("raised", 3),
    ]


async def test_a_second_look_tells_and_journals_nothing_twice(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)])])
    await house.monitor.once()
    tick = await house.later()
    await house.monitor.once()
    assert happenings(tick) == []
    assert len(await house.entries()) == len(house.notifier.sent) == 1


async def test_a_level_is_set_reached_told_and_removed(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(500), position(500, id=2, owner=OTHER)])
    house = House(tmp_path, [chain])
    levels: dict[Condition, str | None] = dict.fromkeys(Condition, None)
    # One base unit for one: 10¹² USDC per ETH.
    said = await house.desk.add("1", None, {**levels, Condition.PRICE_ABOVE: "1,000,000.5"})
    assert (said.rule.state, "reached" in said.notes[0]) == ("armed", True)
    again = await house.desk.add("1", None, {**levels, Condition.PRICE_ABOVE: "1000000.5"})
    assert again.rule.id == said.rule.id
    assert happenings(await house.later()) == ["raised"]
    assert happenings(await house.later()) == []
    (alert,) = (await house.desk.list()).alerts
    assert (alert.rule, alert.condition, alert.severity) == (said.rule.id, "price_above", "warning")
    assert (await house.desk.list()).rules[0].state == "reached"
    assert [entry["subject"]["rule"] for entry in await house.entries()] == [said.rule.id]
    assert "watch" in (await house.desk.add("2", None, {**levels, Condition.FEES_ABOVE: "1"})).notes[0]
    assert (await house.desk.remove(said.rule.id)).rule.id == said.rule.id
    assert (await house.desk.list()).alerts == ()
    done = [entry.payload["done"] async for entry in house.journal.entries(kind="alert_rule")]
    assert done == ["added", "added", "removed"]
    none: dict[Condition, str] = {}
    for wrong in (none, {Condition.PRICE_ABOVE: "1", Condition.PRICE_BELOW: "2"}, {Condition.PRICE_ABOVE: "-1"}):
        with pytest.raises(UsageError):
            await house.desk.add("1", None, {**levels, **wrong})
    with pytest.raises(NotFound):
        await house.desk.remove(said.rule.id)


async def test_recovery_is_told(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)])
    house = House(tmp_path, [chain])
    await house.monitor.tick()
    chain.held = [position(500)]
    assert happenings(await house.later()) == ["recovered"]
    assert (await house.desk.list()).alerts == ()


@pytest.mark.parametrize(
    "fault", [Unavailable("no answer."), Malformed("nonsense"), Refused("no"), Broken("books"), KeyError("bug")]
)
async def test_a_chain_that_fails_stops_no_other(tmp_path: Path, fault: Exception) -> None:
    base, arbitrum = WatchedChain("base", [position(OUT)], fault=fault), WatchedChain("arbitrum", [position(OUT)])
    house = House(tmp_path, [base, arbitrum])
    tick = await house.monitor.once()
    assert [chain.chain for chain in tick.chains if chain.failure] == ["base"]
    assert [alert.chain for alert in tick.alerts] == ["arbitrum"]


@pytest.mark.slow
async def test_a_chain_that_hangs_is_given_up_and_the_others_are_judged_meanwhile(tmp_path: Path) -> None:
    base, arbitrum = WatchedChain("base", hold=asyncio.Event()), WatchedChain("arbitrum", [position(OUT)])
    house = House(tmp_path, [base, arbitrum], patience=0.5)
    looking = asyncio.create_task(house.monitor.tick())
    await until(lambda: house.samples_path.exists())
    assert not looking.done()
    assert [alert.subject.chain for alert in (await house.store.book()).active] == ["arbitrum"]
    tick = await looking
    assert "0.5 s" in tick.chains[0].failure


async def test_a_chain_that_cannot_be_opened_is_a_failure_like_any_other(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain("base")], [Watch("base", WALLET), Watch("mainnet", WALLET)])
    tick = await house.monitor.tick()
    assert "mainnet" in tick.chains[1].failure


async def test_three_failures_are_an_alert_and_then_the_chain_is_left_alone(tmp_path: Path) -> None:
    chain = WatchedChain(fault=Unavailable("down"))
    house = House(tmp_path, [chain, WatchedChain("arbitrum")])
    ticks = [await house.later() for _ in range(4)]
    assert [happenings(tick) for tick in ticks] == [[], [], ["raised"], []]
    assert [tick.resting for tick in ticks] == [(), (), (), ("base",)]
    assert chain.reads == 3
    assert ticks[3].alerts[0].condition == "unreachable"


async def test_a_chain_that_answers_again_recovers(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)], fault=Unavailable("down"))
    house = House(tmp_path, [chain], period=0.01)
    for _ in range(3):
        await house.later()
    chain.fault = None
    await asyncio.sleep(0.05)  # the rest after the third failure is one period
    assert happenings(await house.later()) == ["recovered", "raised"]


async def test_nothing_read_at_all_is_exit_four(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(fault=Unavailable("down."))])
    with pytest.raises(Unavailable, match="base: "):
        await house.monitor.once()
    house.seat.take()


async def test_nothing_to_watch_is_said(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain()])
    house.watches = []
    with pytest.raises(UsageError, match="ZUNO_AGENT_WALLET_ADDRESS"):
        await house.monitor.once()


async def test_a_stale_block_raises_and_clears_nothing(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)])
    house = House(tmp_path, [chain])
    await house.monitor.tick()
    chain.held = [position(500)]
    house.clock.advance(Seconds(901))
    tick = await house.monitor.tick()
    assert happenings(tick) == []
    assert re.search(r"\b15 min\b.*\bago\b", tick.chains[0].failure)


async def test_a_block_older_than_one_seen_before_tells_nothing(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)])
    house = House(tmp_path, [chain])
    await house.monitor.tick()
    chain.held, chain.block = [position(500)], block_at(NOW - 1, 99)
    tick = await house.monitor.tick()
    assert happenings(tick) == []
    assert "older" in tick.chains[0].failure


async def test_a_block_ahead_of_its_time_tells_nothing_and_does_not_make_later_ones_old(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)], block=block_at(NOW + 901))
    house = House(tmp_path, [chain])
    tick = await house.monitor.tick()
    assert happenings(tick) == []
    assert re.search(r"\b15 min\b.*\bnow\b", tick.chains[0].failure)
    chain.block = block_at(NOW)
    assert happenings(await house.monitor.tick()) == ["raised"]


async def test_a_clock_that_is_a_little_behind_the_chain_is_no_trouble(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)], block=block_at(NOW + 900))])
    assert happenings(await house.monitor.tick()) == ["raised"]


async def test_a_local_world_has_a_clock_of_its_own(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)], block=block_at(1_000))
    house = House(tmp_path, [chain], [Watch("base", local=True)])
    assert happenings(await house.monitor.tick()) == ["raised"]
    chain.held, chain.block = [position(500)], block_at(900)
    assert happenings(await house.monitor.tick()) == ["recovered"]


async def test_a_position_that_is_unread_keeps_its_alert_and_is_counted(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT, id=1), position(OUT, id=2)])
    house = House(tmp_path, [chain])
    await house.monitor.tick()
    chain.held, chain.missing = [position(500, id=2)], (Missing(1, "no answer", unread=True),)
    tick = await house.later()
    assert happenings(tick) == ["recovered"]
    assert tick.chains[0].unread == 1
    assert [alert.position for alert in tick.alerts] == ["1"]
    chain.missing = (Missing(1, "burnt"),)
    assert happenings(await house.later()) == ["ended"]


async def test_a_wallet_that_could_not_be_listed_is_a_failure(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(complete=False, note="found 0 of 3 positions")])
    with pytest.raises(Unavailable, match="found 0 of 3"):
        await house.monitor.once()


async def test_a_list_that_is_not_whole_ends_nothing(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT, id=1), position(id=2)])
    house = House(tmp_path, [chain])
    await house.monitor.tick()
    chain.held, chain.complete, chain.note = [position(20, id=2)], False, "found 1 of 2 positions"
    tick = await house.later()
    assert [(event.happening, event.position) for event in tick.events] == [("raised", "2")]
    assert (tick.chains[0].notes, tick.chains[0].failure) == (("found 1 of 2 positions",), "")


async def test_two_wallets_on_one_chain_and_one_that_leaves_the_list(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT, id=1), position(OUT, id=2, owner=OTHER)])
    house = House(tmp_path, [chain], [Watch("base", WALLET), Watch("base", OTHER)])
    tick = await house.monitor.tick()
    assert {alert.wallet for alert in tick.alerts} == {WALLET, OTHER}
    house.watches = [Watch("base", OTHER)]
    tick = await house.later()
    assert happenings(tick) == ["ended"]
    assert {alert.wallet for alert in tick.alerts} == {OTHER}


async def test_a_chain_without_a_wallet_is_a_note(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(own=None)], [Watch("base")])
    tick = await house.monitor.once()
    assert "ZUNO_AGENT_WALLET_ADDRESS" in tick.chains[0].notes[0]


async def test_gas_that_cannot_be_read_costs_only_its_sample(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)], gas_fault=Unavailable("no gas."))])
    tick = await house.monitor.tick()
    assert happenings(tick) == ["raised"]
    assert tick.chains[0].notes[0].endswith(": no gas")
    assert len(tick.chains[0].notes) == 1
    assert tick.chains[0].failure == ""
    assert await house.samples.gas("base", NOW, NOW) == ()
    assert len(await house.samples.pools("base", POOL, NOW, NOW)) == 1


async def test_samples_that_cannot_be_kept_stop_no_alert(tmp_path: Path) -> None:
    (tmp_path / "samples.db").mkdir()
    house = House(tmp_path, [WatchedChain(held=[position(OUT)])])
    tick = await house.monitor.tick()
    assert happenings(tick) == ["raised"]
    assert "sample" in tick.chains[0].notes[0]


@pytest.mark.parametrize("fault", [Unavailable("the store is down."), Broken("an entry was changed.")])
async def test_a_journal_that_cannot_be_written_stops_no_alert_and_catches_up(tmp_path: Path, fault: Exception) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)])], journal_fault=fault)
    tick = await house.monitor.once()
    assert [note.endswith(f": {str(fault).rstrip('.')}") for note in tick.notes] == [True]
    assert len(house.notifier.sent) == 1
    house.journal_fault = None
    await house.later()
    assert [entry["happening"] for entry in await house.entries()] == ["raised"]


async def test_a_journal_that_nothing_is_written_in_is_not_even_opened(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position()])], journal_fault=AssertionError("opened"))
    await house.monitor.once()


async def test_the_owners_answers_are_kept_and_journaled(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)])])
    (alert,) = (await house.monitor.once()).alerts
    answered = await house.desk.ack(alert.id)
    assert answered.alert.state == "acknowledged"
    assert (await house.desk.snooze(alert.id, "6h")).alert.snoozed_until == NOW + 6 * 3_600
    assert [entry["happening"] for entry in await house.entries()] == ["raised", "acknowledged", "snoozed"]
    listed = await house.desk.list(everything=True)
    assert [event.happening for event in listed.events or ()] == ["snoozed", "acknowledged", "raised"]
    assert listed.waiting == 0
    assert (await house.later(7 * 3_600)).events[0].happening == "reminded"


@pytest.mark.parametrize(
    "text", ["", "alert_", "alert_00000000000g", "../alerts", "alert_0000000000000", "ALERT_00000000000a"]
)
async def test_an_id_that_is_none_is_a_mistake(tmp_path: Path, text: str) -> None:
    house = House(tmp_path, [])
    with pytest.raises(UsageError, match=r"\balert_"):
        await house.desk.ack(text)
    with pytest.raises(UsageError):
        await house.desk.snooze(text, "6h")


@pytest.mark.parametrize("span", ["", "6", "h", "-6h", "6 hours", "0h", "31d", "999999w", "٦h"])
async def test_a_span_that_is_none_is_a_mistake(tmp_path: Path, span: str) -> None:
    house = House(tmp_path, [])
    with pytest.raises(UsageError, match=r"90m|snooze"):
        await house.desk.snooze("alert_000000000000", span)


async def test_an_alert_that_is_not_on_is_refused(tmp_path: Path) -> None:
    house = House(tmp_path, [])
    with pytest.raises(NotFound, match="alert_000000000000"):
        await house.desk.ack("alert_000000000000")
    assert await house.entries() == []


async def test_ticks_never_overlap_and_a_slow_one_delays_the_next(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position()], hold=asyncio.Event())
    house = House(tmp_path, [chain], period=0.005)
    stop, heard = asyncio.Event(), list[TickView]()
    running = asyncio.create_task(house.monitor.run(heard.append, stop))
    await asyncio.sleep(0.1)
    assert (chain.reads, heard) == (1, [])
    chain.hold.set()
    await until(lambda: len(heard) >= 3)
    stop.set()
    assert (await running).ticks == len(heard) == chain.reads


async def test_a_ping_follows_each_round_and_says_whether_anything_was_read(tmp_path: Path) -> None:
    good, bad = WatchedChain("arbitrum", held=[position()]), WatchedChain(fault=Unavailable("no node"))
    house, stop = House(tmp_path, [good, bad], period=0.005), asyncio.Event()
    running = asyncio.create_task(house.monitor.run(lambda tick: None, stop))
    await until(lambda: house.pings)
    house.watches = [Watch(bad.name, WALLET)]
    await until(lambda: False in house.pings)
    stop.set()
    await running
    assert house.pings[0] is True


async def test_what_one_chain_has_to_say_does_not_wait_for_another(tmp_path: Path) -> None:
    slow, quick = WatchedChain("base", hold=asyncio.Event()), WatchedChain("arbitrum", [position(OUT)])
    house = House(tmp_path, [slow, quick])
    stop, heard = asyncio.Event(), list[TickView]()
    running = asyncio.create_task(house.monitor.run(heard.append, stop))
    await until(lambda: house.notifier.sent)
    assert heard == []
    slow.hold.set()
    stop.set()
    await running


async def test_an_end_that_no_look_tells_is_delivered_too(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)])], period=0.005)
    stop = asyncio.Event()
    running = asyncio.create_task(house.monitor.run(lambda tick: None, stop))
    await until(lambda: house.notifier.sent)
    house.watches = [Watch("base", OTHER)]
    await until(lambda: len(house.notifier.sent) == 2)
    stop.set()
    await running
    assert house.notifier.sent[1].title == "Alert ended"


async def test_a_look_under_way_is_stored_before_the_end(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT)], hold=asyncio.Event())
    house = House(tmp_path, [chain])
    stop = asyncio.Event()
    running = asyncio.create_task(house.monitor.run(lambda tick: None, stop))
    await until(lambda: chain.reads)
    stop.set()
    await asyncio.sleep(0.02)
    assert not running.done()
    chain.hold.set()
    assert (await asyncio.wait_for(running, 10)).ticks == 1
    assert len((await house.store.book()).active) == 1
    house.seat.take()  # free again


async def test_a_second_monitor_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain()])
    house.seat.take()
    with pytest.raises(Refused):
        await house.monitor.once()
    with pytest.raises(Refused):
        await house.monitor.run(lambda tick: None, asyncio.Event())
    with pytest.raises(Refused):
        house.seat.take()


async def test_a_full_disk_costs_a_look_and_not_the_monitor(tmp_path: Path) -> None:
    house = House(tmp_path, [WatchedChain(held=[position(OUT)])], period=0.005, store=AlertsFile(tmp_path))
    stop, heard = asyncio.Event(), list[TickView]()
    with full_disk():
        running = asyncio.create_task(house.monitor.run(heard.append, stop))
        await until(lambda: house.told)
        assert heard == []
    await until(lambda: heard)
    stop.set()
    await running
    assert happenings(heard[0]) == ["raised"]


@pytest.mark.soak
async def test_a_crowd_is_one_reading_of_its_wallet(tmp_path: Path) -> None:
    chain = WatchedChain(held=[position(OUT, id=number) for number in range(1, 1_001)])
    house = House(tmp_path, [chain])
    tick = await house.monitor.tick()
    assert (chain.reads, len(tick.events)) == (1, 1_000)
