"""The debate's tilt of the core on record: scored once a day from the runs of the days that ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.wire import told
from tests.wire.fakes.series import MemorySeries
from tests.wire.hedges import HedgeHarness
from tests.wire.learning import ACCOUNT, ORIGIN, journal
from tests.wire.trades import decision
from zuno.journal.port import Journal
from zuno.kernel.canonical import canonical, to_json
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.learn.tilt_book import TiltBook, read_judge_view
from zuno.trading.model.account import read_slot
from zuno.trading.model.cycle import AnswerSource, Call, Decision, Node
from zuno.trading.model.market import DAY_MS, HOUR_MS, Candle, Timeframe
from zuno.trading.model.tilts import TILT_DAY, CoreSlot, TiltDay, describe_tilt
from zuno.trading.model.wanted import own_candles
from zuno.trading.ports.series import Batch, Origin
from zuno.trading.run.record import DESK, ENDED, JudgeRecord, kind_of, summarise_run
from zuno.trading.strategies.port import StrategyView, align_days
from zuno.trading.strategies.tilt import measure_tilt
from zuno.trading.strategies.trend import measure_trend

FIRST = Millis(1_640_995_200_000)
DAYS = 560
SAID_FROM = 180
Say = Callable[[Symbol, int], float]
"""τ of a market on a day, in steps of 0.05."""


def day(number: int) -> Millis:
    return Millis(FIRST + number * DAY_MS)


class World:
    """Two coins' days, and runs of a desk whose Judge says what he is told to."""

    def __init__(self, home: Path, seed: int = 7) -> None:
        self.dice = np.random.Generator(np.random.PCG64(seed))
        common = self.dice.normal(size=DAYS)
        self.moves = {symbol: 0.02 * (0.8 * common + 0.6 * self.dice.normal(size=DAYS)) for symbol in DEFAULT_SYMBOLS}
        self.store = MemorySeries(Origin(True, ORIGIN))
        self.journal: Journal = journal(home)
        self.runs = 0

    async def open(self) -> TiltBook:
        for symbol, moves in self.moves.items():
            closes = 100 * np.exp(np.cumsum(moves))
            rows = [
                Candle(day(number), price, price * 1.01, price * 0.99, price, 1.0, 0.5)
                for number, price in enumerate(closes.tolist())
            ]
            await self.store.write([Batch(own_candles(symbol, Timeframe.D1), rows)])
        return self.book()

    def book(self) -> TiltBook:
        async def opened() -> Journal:
            return self.journal

        return TiltBook(opened, self.store)

    async def run(self, at: Millis, symbol: Symbol, decided: Decision, account: str | None = ACCOUNT) -> None:
        self.runs += 1
        name, outcome = f"run_{self.runs}", told.outcome(decision=decided, origin=ORIGIN, as_of=at, symbol=symbol)
        voice = AnswerSource(role="judge", source=decided.source, why="", model=None, tokens=0, usd=None)
        judged = JudgeRecord(value=decided, voice=voice, ahead_usd=0.0)
        await self.journal.append_once(kind=kind_of(Node.JUDGE_AGENT), author=DESK, payload=judged, request_id=name)
        ended = summarise_run(outcome, account=account)
        await self.journal.append_once(kind=ENDED, author=DESK, payload=ended, request_id=name)

    async def live(self, book: TiltBook, say: Say, until: int = DAYS) -> TiltDay:
        """Day after day: the Judge speaks at noon, and after midnight it is scored."""
        for number in range(SAID_FROM, until):
            for symbol in DEFAULT_SYMBOLS:
                await self.run(Millis(day(number) + 12 * HOUR_MS), symbol, claim(say(symbol, number)))
            await book.score(ACCOUNT, day(number + 1))
        return (await book.read(ACCOUNT, day(until + 1)))[-1]


def claim(tilt: float) -> Decision:
    """As sure as that, with as much to win as to lose; a HOLD where there is nothing to say."""
    if not tilt:
        return decision(Call.HOLD)
    call = Call.LONG if tilt > 0 else Call.SHORT
    sign = 1 if tilt > 0 else -1
    odds = 50 + round(20 * min(1.0, abs(tilt)))
    return decision(
        call, entry_price=100.0, stop_loss=100.0 - 2 * sign, take_profit=100.0 + 2 * sign, win_probability_pct=odds
    )


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_judge_of_known_skill_has_the_slope_he_was_made_with(world: World) -> None:
    """He leans by a quarter of tomorrow's move in σ and as much noise again: β is the cov(τ, z) over the var(τ)."""
    noise = {symbol: world.dice.normal(size=DAYS) for symbol in DEFAULT_SYMBOLS}
    said: list[tuple[float, float]] = []

    def say(symbol: Symbol, number: int) -> float:
        ahead = float(world.moves[symbol][number + 1] / 0.02) if number + 1 < DAYS else 0.0
        tilt = round(max(-1.0, min(1.0, 0.25 * ahead + 0.25 * float(noise[symbol][number]))) * 20) / 20
        said.append((tilt, ahead))
        return tilt

    last = await world.live(await world.open(), say)
    tilts, aheads = (np.array(column) for column in zip(*said, strict=True))
    made = float(np.cov(tilts, aheads)[0, 1] / np.var(tilts))
    assert last.beta == pytest.approx(made, rel=0.08)
    assert last.se is not None
    assert last.days == DAYS - SAID_FROM - 1
    assert last.weight == pytest.approx(last.days / (last.days + 120))
    for tilt in last.markets:
        assert tilt.residual is not None
        assert tilt.multiplier == pytest.approx(max(0.5, min(1.5, 1 + 0.5 * last.weight * tilt.residual)))


async def test_who_echoes_the_core_earns_nothing(world: World) -> None:
    book = await world.open()
    columns = align_days(
        StrategyView(
            day(DAYS), {each.name: each for each in await book._read_histories(DEFAULT_SYMBOLS, FIRST, day(DAYS))}
        )
    )
    trend = measure_trend(columns)
    rows = {Symbol(name): row for row, name in enumerate(columns.names)}
    echo = {0: -1.0, 1: -0.7, 2: -0.4, 3: -0.1, 4: 0.2, 5: 0.5, 6: 0.8}
    last = await world.live(book, lambda symbol, number: echo[int(trend.up[rows[symbol], number])], SAID_FROM + 120)
    assert last.weight == 0.0
    assert {tilt.residual for tilt in last.markets} == {0.0}
    assert {tilt.multiplier for tilt in last.markets} == {1.0}
    assert [tilt.trend for tilt in last.markets] == [
        pytest.approx(int(trend.up[rows[Symbol(tilt.market)], SAID_FROM + 119]) / 6) for tilt in last.markets
    ]


async def test_scored_again_from_the_runs_it_is_the_same_bytes(tmp_path: Path) -> None:
    worlds = [World(tmp_path / name) for name in ("first", "again")]
    written = []
    for world in worlds:
        book = await world.open()
        await world.live(book, lambda symbol, number: (number * 7 % 11 - 5) / 10, SAID_FROM + 70)
        written.append([canonical(dict(entry.payload)) async for entry in world.journal.entries(kind=TILT_DAY)])
    assert written[0] == written[1]
    assert len(written[0]) == 70
    read = await worlds[0].book().read(ACCOUNT, day(DAYS))
    assert [canonical(to_json(scored)) for scored in read] == written[0]
    # What a day came to is worked out anew from what stands before it: nothing that came later matters.
    later = World(tmp_path / "later")
    book = await later.open()
    for number in range(SAID_FROM, SAID_FROM + 6):
        for symbol in DEFAULT_SYMBOLS:
            await later.run(Millis(day(number) + 12 * HOUR_MS), symbol, claim((number * 7 % 11 - 5) / 10))
    made_up = await book.score(ACCOUNT, day(SAID_FROM + 6))
    assert [canonical(to_json(scored)) for scored in made_up] == written[0][:6]


async def test_a_day_is_the_mean_of_its_cycles_before_any_rule(world: World) -> None:
    book, noon = await world.open(), Millis(day(200) + 12 * HOUR_MS)
    btc, eth = DEFAULT_SYMBOLS
    await world.run(day(200), btc, claim(1.0))
    await world.run(Millis(day(200) + 4 * HOUR_MS), btc, claim(0.0))
    await world.run(Millis(day(200) + 8 * HOUR_MS), btc, claim(-0.5))
    await world.run(noon, btc, decision(Call.CANCEL_AND_CLOSE))
    await world.run(noon, btc, claim(1.0))  # decided again
    await world.run(Millis(noon + 1), btc, claim(1.0).model_copy(update={"source": "fallback"}))
    await world.run(noon, eth, claim(1.0).model_copy(update={"source": "fallback"}))
    await world.run(noon, btc, claim(1.0), account="paper:another")
    await world.run(noon, btc, claim(1.0), account=None)
    await world.run(day(201), btc, claim(1.0))
    (scored,) = await book.score(ACCOUNT, Millis(day(201) + HOUR_MS))
    (tilt,) = scored.markets
    assert (scored.day, tilt.market, tilt.cycles, tilt.tilt) == (day(200), btc, 4, 0.125)
    assert (scored.weight, tilt.multiplier) == (0.0, 1.0)
    assert scored.find(eth) is None
    assert await book.find(ACCOUNT, day(200)) == scored
    assert await book.find(ACCOUNT, day(201)) is None


async def test_it_is_written_once(world: World) -> None:
    book = await world.open()
    await world.run(day(200), DEFAULT_SYMBOLS[0], claim(1.0))
    several = [book, world.book(), world.book()]
    await asyncio.gather(*(each.score(ACCOUNT, day(201)) for each in several))
    assert await book.score(ACCOUNT, day(201)) == ()
    assert len([entry async for entry in world.journal.entries(kind=TILT_DAY)]) == 1


async def test_what_an_outage_left_is_made_up_for_a_week(world: World) -> None:
    book = await world.open()
    for number in (200, 204, 205):
        await world.run(day(number), DEFAULT_SYMBOLS[0], claim(1.0))
    scored = await book.score(ACCOUNT, day(208))
    assert [each.day for each in scored] == [day(204), day(205)]


async def test_a_live_market_whose_last_day_is_late_is_asked_again_within_the_hour(world: World) -> None:
    await world.open()
    asked: list[Symbol] = []

    async def refresh(symbol: Symbol) -> None:
        asked.append(symbol)

    async def opened() -> Journal:
        return world.journal

    book = TiltBook(opened, world.store, refresh)
    await world.run(day(DAYS), DEFAULT_SYMBOLS[0], claim(1.0))
    with pytest.raises(Unavailable):
        await book.score(ACCOUNT, Millis(day(DAYS + 1) + 5_000))
    assert asked == [DEFAULT_SYMBOLS[0]]
    (scored,) = await book.score(ACCOUNT, Millis(day(DAYS + 1) + HOUR_MS))
    assert scored.day == day(DAYS)


async def test_a_cycle_is_told_what_the_core_holds_and_what_came_before_it(world: World) -> None:
    btc, desk, book = DEFAULT_SYMBOLS[0], HedgeHarness(), await world.open()
    assert await book.read_core(desk.gate, btc, Millis(desk.at)) is None
    await desk.open_hedge()
    last = Millis(desk.at - desk.at % DAY_MS - DAY_MS)
    for at, tilt in ((last, 1.0), (Millis(last + DAY_MS), -1.0)):
        await world.run(at, btc, claim(tilt), account=desk.gate.account)
        await book.score(desk.gate.account, Millis(at + DAY_MS))
    slot = await book.read_core(desk.gate, btc, Millis(desk.at))
    assert slot is not None
    core = read_slot(CoreSlot, slot.content, "the core")
    spot, short = sorted(core.holdings, key=lambda holding: -holding.weight_pct)
    assert (spot.sleeve, short.sleeve) == ("cash-carry", "cash-carry")
    assert spot.weight_pct == pytest.approx(-short.weight_pct, rel=1e-3)
    assert [(tilt.day, tilt.tilt) for tilt in core.tilts] == [(last, 1.0)], "today's is not over"
    assert core.score is not None
    other = await book.read_core(desk.gate, DEFAULT_SYMBOLS[1], Millis(desk.at))
    assert other is not None
    assert read_slot(CoreSlot, other.content, "the core").holdings == ()


@pytest.mark.parametrize(
    ("decided", "view"),
    [
        (decision(Call.LONG, win_probability_pct=50), (1, 0.5, 1 / 3)),
        (decision(Call.SHORT, win_probability_pct=20), (-1, 0.2, 1 / 3)),
        (decision(Call.HOLD), (0, 0.0, 0.0)),
        (decision(Call.LONG, stop_loss=None), (0, 0.0, 0.0)),
    ],
)
def test_what_a_judge_said(decided: Decision, view: Any) -> None:
    assert read_judge_view(summarise_run(told.outcome(decision=decided))) == pytest.approx(view)


def test_a_tilt_is_its_share_of_twenty_points() -> None:
    assert measure_tilt([(1, 0.5, 0.4), (-1, 0.6, 0.5)]) == 0.0
    assert measure_tilt([(1, 0.9, 0.1)]) == 1.0
    assert measure_tilt([(1, 0.1, 0.4)]) == -1.0, "a long that is worth less than its distances is no long"
    assert measure_tilt([]) is None


@pytest.mark.parametrize(
    ("tilt", "says"), [(0.0, "keep"), (0.09, "keep"), (-0.09, "keep"), (0.1, "more"), (-0.1, "less"), (-0.6, "out")]
)
def test_a_tilt_in_a_word(tilt: float, says: str) -> None:
    assert describe_tilt(tilt) == says
