"""Strategies of the owner's own from their registration to their record: asked once a day, set aside with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.fakes.painter import DigestPainter
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable, UsageError
from zuno.kernel.notify import NoticeKind, Severity
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.pushes.feed import JournalFeed
from zuno.trading.model.market import DAY_MS, HOUR_MS, Candle, Timeframe
from zuno.trading.model.own_strategies import OWN_ANSWER, Registration, StrategyForm
from zuno.trading.model.sleeves import parse_sleeves
from zuno.trading.model.wanted import own_candles
from zuno.trading.ports.series import RECORDED, Batch
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.own_strategies import OwnStrategies
from zuno.trading.watch.notices import TradingNotices

FIRST = Millis(1_760_054_400_000)
"""2025-10-10."""
BTC, SPOT = Symbol("BTCUSDT"), Symbol("binance:ETH/USDT")
DAYS = 6


class Answers:
    """An `OwnStrategy` that answers what it is told to."""

    def __init__(self) -> None:
        self.answer: Mapping[str, object] | Exception = {BTC: 0.5}
        self.asked: list[Millis] = []

    async def ask(self, at: Millis, view: bytes) -> Mapping[str, object]:
        self.asked.append(at)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class House:
    def __init__(self, folder: Path, *, live: bool = False) -> None:
        self.now = FIRST
        self.journal = ChainedJournal(
            MemoryStore(), KeyFile(folder / "node.key"), code=lambda: "test", now=lambda: self.now
        )
        self.store, self.answers, self.outbox = MemorySeries(RECORDED), Answers(), OutboxInMemory()
        desk = TradingDesk(self.store, self.open, DigestPainter(), markets=(BTC, SPOT))
        self.own = OwnStrategies(self.open, desk, live, self.check, lambda registration: self.answers)

    async def open(self) -> Journal:
        return self.journal

    async def check(self, registration: Registration) -> Registration:
        return registration

    async def fill(self) -> None:
        for symbol in (BTC, SPOT):
            rows = [
                Candle(Millis(FIRST + day * DAY_MS), price, price, price, price, 1.0, None)
                for day, price in enumerate([100.0, 110.0, 99.0, 100.0, 101.0, 102.0][:DAYS])
            ]
            await self.store.write([Batch(own_candles(symbol, Timeframe.D1), rows)])

    async def ask(self, days: int) -> list[str]:
        """At midnight after so many days."""
        self.now = Millis(FIRST + days * DAY_MS + 5_000)
        return await self.own.ask_all(self.now)

    def feed(self) -> JournalFeed:
        source = TradingNotices(MemoryTradeLog(), None)  # type: ignore[arg-type]  # no account is described
        return JournalFeed(self.outbox, self.open, [source], lambda: self.now, lambda line: None)


@pytest.fixture
async def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    await house.fill()
    await house.own.add("mine", StrategyForm.CSV, "/targets.csv")
    return house


async def test_it_is_asked_once_a_day_and_its_shadow_is_shown(house: House) -> None:
    for days in (1, 2, 2, 3):
        assert await house.ask(days) == []
    assert len(house.answers.asked) == 3
    view = await house.own.shadow("mine")  # of the end of the data, which was not asked for
    assert view.days == DAYS - 1
    assert len(view.returns) == 3
    assert view.targets == {BTC: 0.5}
    assert view.aside == ""
    assert view.gain == pytest.approx(
        (1 + 0.05 - 0.00045)
        * (1 - 0.05 - 0.0009 * abs(0.5 - 0.55 / 1.05))
        * (1 + 0.5 * 3 / 99 - 0.0009 * abs(0.5 - 0.45 / 0.95))
        - 1
    )


async def test_a_fault_sets_it_aside_and_it_keeps_what_it_held(house: House) -> None:
    await house.ask(1)
    for days, fault in enumerate((Unavailable("it took longer than 5 s"), Malformed("it raised ValueError: no")), 2):
        house.answers.answer = fault
        assert await house.ask(days) == [f"mine: {fault}"]
        newest = (await house.own.answers("mine"))[-1]
        assert (newest.aside, newest.targets) == (str(fault), {BTC: 0.5})
    house.answers.answer = {BTC: -0.25}
    assert await house.ask(4) == ["mine: counts again"]
    assert (await house.own.answers("mine"))[-1].targets == {BTC: -0.25}


@pytest.mark.parametrize(
    "answer", [{BTC: float("nan")}, {BTC: 1e9}, {"DOGEUSDT": 0.1}, {SPOT: -0.1}, {BTC: 0.6, SPOT: 0.6}, {BTC: "0.1"}]
)
async def test_an_answer_that_does_not_count_sets_it_aside(house: House, answer: Mapping[str, object]) -> None:
    house.answers.answer = answer
    assert len(await house.ask(1)) == 1
    (stored,) = await house.own.answers("mine")
    assert stored.targets == {}
    assert stored.aside


async def test_the_owner_is_told_once_for_each_reason(house: House) -> None:
    await house.feed().step()
    house.answers.answer = Unavailable("it took longer than 5 s")
    for days in (1, 2, 3):
        await house.ask(days)
        await house.feed().step()
    house.answers.answer = Malformed("it raised ValueError: no")
    await house.ask(4)
    await house.feed().step()
    house.answers.answer = {}
    await house.ask(5)
    await house.feed().step()
    notices = []
    while (entry := await house.outbox.next()) is not None:
        notices.append(entry.notice)
        await house.outbox.mark_skipped(entry.number, entry.notice.at)
    assert [(notice.kind, notice.severity, notice.reason) for notice in notices] == [
        (NoticeKind.SERVICE, Severity.WARNING, "it took longer than 5 s"),
        (NoticeKind.SERVICE, Severity.WARNING, "it raised ValueError: no"),
        (NoticeKind.SERVICE, Severity.INFO, ""),
    ]


async def test_recorded_time_pushes_nothing(house: House) -> None:
    await house.feed().step()
    house.answers.answer = Unavailable("no signal has come yet")
    house.now = Millis(FIRST + 300 * DAY_MS)
    await house.own.ask_all(Millis(FIRST + DAY_MS))
    assert await house.feed().step() == 0


async def test_a_fault_in_asking_one_is_none_of_the_other(house: House) -> None:
    other = Answers()
    house.own = OwnStrategies(
        house.open, house.own.desk, False, house.check, lambda row: other if row.name == "other" else house.answers
    )
    await house.own.add("other", StrategyForm.WEBHOOK)
    house.answers.answer = Refused("no Python strategy is run here")
    await house.ask(1)
    assert (await house.own.answers("other"))[-1].targets == {BTC: 0.5}


async def test_signals_count_up_to_a_minute_after_the_day(house: House) -> None:
    await house.own.ask_all(Millis(FIRST + DAY_MS + 5_000))
    await house.own.ask_all(Millis(FIRST + 2 * DAY_MS + 9 * HOUR_MS))
    assert house.answers.asked == [FIRST + DAY_MS + 5_000, FIRST + 2 * DAY_MS + 60_000]


async def test_a_day_that_is_not_known_yet_is_not_asked_for(house: House) -> None:
    with pytest.raises(Unavailable):
        await house.ask(DAYS + 1)
    assert house.answers.asked == []


async def test_a_share_takes_a_shadow(house: House) -> None:
    await house.ask(1)
    with pytest.raises(Refused):
        await house.own.check_shares(parse_sleeves("mine:1"))
    await house.ask(2)
    await house.own.check_shares(parse_sleeves("mine:1"))
    with pytest.raises(UsageError):
        await house.own.check_shares(parse_sleeves("nobody:1"))


async def test_adding_it_again_begins_a_new_shadow(house: House) -> None:
    for days in (1, 2):
        await house.ask(days)
    view = await house.own.add("mine", StrategyForm.CSV, "/other.csv")
    assert (view.days, view.asked, view.path) == (0, None, "/other.csv")
    await house.ask(2)
    assert len(await house.own.answers("mine")) == 1


async def test_live_and_recorded_shadows_are_apart(house: House) -> None:
    await house.ask(1)
    live = OwnStrategies(house.open, house.own.desk, True, house.check, house.own.open)
    assert await live.answers("mine") == []


async def test_what_is_removed_is_not_asked(house: House) -> None:
    await house.own.remove("mine")
    assert await house.ask(1) == []
    assert house.answers.asked == []
    assert await house.own.names() == ()
    for act in (house.own.remove, house.own.shadow):
        with pytest.raises(NotFound):
            await act("mine")


@pytest.mark.parametrize("name", ["trend", "debate", "lp-hedge", "hold", "Mine", "", "a b", "../x", "x" * 33, "_"])
async def test_names_that_are_none_or_taken(house: House, name: str) -> None:
    with pytest.raises(UsageError):
        await house.own.add(name, StrategyForm.WEBHOOK)


async def test_what_was_asked_is_on_record(house: House) -> None:
    await house.ask(1)
    (entry,) = await house.journal.latest(5, kind=OWN_ANSWER)
    payload: dict[str, Any] = dict(entry.payload)
    assert payload == {"name": "mine", "at": FIRST + DAY_MS, "targets": {BTC: 0.5}, "closes": {BTC: 100.0, SPOT: 100.0}}


def end_of(days: int) -> Millis:
    return Millis(FIRST + days * DAY_MS)


async def test_a_sleeve_holds_what_was_asked_for_on_each_day_of_a_second_run(house: House) -> None:
    """Answers of days that come later in recorded time are on record already."""
    for days in range(1, DAYS):
        house.answers.answer = {BTC: days / 10, SPOT: -0.0}
        await house.ask(days)
    assert await house.own.size_targets("mine", end_of(1)) is None, "no day of its shadow is over"
    for days in (2, 4, 3):
        sized = await house.own.size_targets("mine", Millis(end_of(days) + 5_000))
        assert sized is not None
        assert {market: (target.weight, target.scale) for market, target in sized.items()} == {BTC: (days / 10, 1.0)}
    assert len(house.answers.asked) == DAYS - 1, "a day is asked for once"


async def test_a_sleeve_keeps_what_it_holds_without_an_answer_that_counts(house: House) -> None:
    for days in (1, 2):
        await house.ask(days)
    house.answers.answer = Malformed("it raised ValueError: no")
    assert await house.own.size_targets("mine", end_of(3)) is None
    house.answers.answer = {}
    assert await house.own.size_targets("mine", end_of(4)) == {}, "an empty answer is one: nothing is held"
    await house.own.remove("mine")
    assert await house.own.size_targets("mine", end_of(5)) is None
    await house.own.add("mine", StrategyForm.CSV, "/other.csv")
    assert await house.own.size_targets("mine", end_of(5)) is None, "new code has no shadow yet"


async def test_a_sleeve_is_scaled_by_the_fall_of_its_shadow(house: House) -> None:
    closes = [100.0, 100.0, 76.0, 76.0]
    rows = [Candle(end_of(20 + day), price, price, price, price, 1.0, None) for day, price in enumerate(closes)]
    await house.store.write([Batch(own_candles(BTC, Timeframe.D1), rows)])
    house.answers.answer = {BTC: 1.0}
    for days in (21, 22, 23):
        await house.ask(days)
    sized = await house.own.size_targets("mine", end_of(24))
    assert sized is not None
    assert sized[BTC].scale == pytest.approx((0.30 - 0.24) / 0.15, abs=0.01)
    assert sized[BTC].weight == pytest.approx(1.0 * sized[BTC].scale), "all of it, scaled"
