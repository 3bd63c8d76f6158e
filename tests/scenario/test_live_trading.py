"""`zuno trade start --live` as a person runs it: at a terminal, with words typed, at fake exchanges on loopback."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.commands import shell
from tests.wire.exchanges import binance
from tests.wire.exchanges.account import FakeExchange
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.harness import WIRES, WireHarness
from tests.wire.exchanges.serving import serve_exchange
from tests.wire.live_home import ran, remembered
from tests.wire.trading_account import AccountStory
from tests.wire.vendors.living import Living, Venues, venues
from zuno.adapters.clock.system import unix_millis
from zuno.journal.port import Author
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.settings import Settings
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.cycle import STARTED, Style
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Mode, Side
from zuno.trading.model.trade_events import IntentKind, IntentLeg, IntentStored, TradeIntent, paper_account
from zuno.trading.rules.calibration import LIVE_TRADES
from zuno.trading.run.record import RunRequest
from zuno.wiring.application import Application

D = Decimal
SECONDS = 600
PRICE = D(60_000)
START = ("trade", "start", "--symbols", "BTCUSDT", "--live")


class Terminal:
    """A process with a terminal of its own."""

    def __init__(self, process: asyncio.subprocess.Process, person: int) -> None:
        self._process, self._person, self._read = process, person, 0
        self.screen = ""
        asyncio.get_running_loop().add_reader(person, self._hear)
        self._news = asyncio.Event()

    def _hear(self) -> None:
        try:
            self.screen += os.read(self._person, 65_536).decode(errors="replace")
        except OSError:  # nobody is at the other end any more
            asyncio.get_running_loop().remove_reader(self._person)
        self._news.set()

    async def expect(self, text: str) -> None:
        """It stands there, behind what was expected before."""
        async with asyncio.timeout(SECONDS):
            while text not in self.screen[self._read :]:
                assert self._process.returncode is None, self.screen
                self._news.clear()
                await self._news.wait()
        self._read = self.screen.index(text, self._read) + len(text)

    def type(self, line: str) -> None:
        os.write(self._person, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.write(self._person, b"\x03")

    async def wait(self) -> int:
        async with asyncio.timeout(SECONDS):
            return await self._process.wait()

    def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def terminal(home: Path, environment: dict[str, str], *words: str) -> AsyncIterator[Terminal]:
    person, tty = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "zuno",
        *words,
        env=shell(home, {**environment, "COLUMNS": "200"}),
        stdin=tty,
        stdout=tty,
        stderr=tty,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(tty, termios.TIOCSCTTY, 0),
    )
    os.close(tty)
    found = Terminal(process, person)
    try:
        yield found
    finally:
        found.end()
        await process.wait()
        asyncio.get_running_loop().remove_reader(person)
        os.close(person)


async def write_record(home: Path) -> None:
    """Enough paper trades that were closed in real time."""
    zuno = Application(Settings(home=home))
    try:
        journal, story = await zuno._open_journal(), AccountStory(zuno._trade_log(), paper_account("recorded"))
        asked = RunRequest(symbol=Symbol("BTCUSDT"), mode=Mode.SWING, as_of=None, live=True, chart=False)
        begin = unix_millis() - LIVE_TRADES * 2 * HOUR_MS
        for number in range(LIVE_TRADES):
            at = begin + number * 2 * HOUR_MS
            intent = await story.open_trade(at, Symbol("BTCUSDT"), Side.LONG, "0.005", "60000", "59400", "61200")
            await story.exit_trade(at + HOUR_MS, intent, "target")
            run = f"run_{number + 1:016x}"
            await journal.append(kind=STARTED, author=Author("desk"), payload=asked, request_id=run)
    finally:
        await zuno.close()


async def rule_entry(
    home: Path, venue: str = "BINANCE", price: D = PRICE, *, account: str = "live", name: str = "int_live"
) -> None:
    """What a desk stored that was killed before it sent anything: three parts, the first at the market."""
    zuno = Application(Settings(home=home))
    try:
        writer = AccountWriter(zuno._trade_log(), account)
        book = await writer.refresh()
        assert book.mandate is not None
        leg = IntentLeg(
            exchange=Venue(venue),
            quantity=D("0.010"),
            entry=price,
            stop=price * D("0.98"),
            target=price * D("1.04"),
            leverage=1,
        )
        now = unix_millis()
        intent = TradeIntent(
            id=name,
            decision="run_live",
            kind=IntentKind.OPEN,
            symbol=Symbol("BTCUSDT"),
            mode=Mode.SWING,
            side=Side.LONG,
            style=Style.SMART_DCA,
            legs=(leg,),
            valid_until=now + 15 * MINUTE_MS,
            mark=price,
            atr=price / 100,
            mandate=book.mandate.hash,
        )
        await writer.write([IntentStored(at=now, intent=intent, ruling=None)])
    finally:
        await zuno.close()


def entries(fake: FakeExchange) -> list[Any]:
    return [order for order in fake.engine.orders.values() if order.status == "NEW"]


def stops(fake: FakeExchange) -> list[Any]:
    return [algo for algo in fake.engine.algos.values() if algo.status == "NEW"]


async def wait_for(fake: FakeExchange, *, resting: int, protective: int) -> None:
    async with asyncio.timeout(SECONDS):
        while (len(entries(fake)), len(stops(fake))) != (resting, protective):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.soak
async def test_a_live_desk_is_started_protected_stopped_and_started_again_and_closes(home: Path) -> None:
    await remembered(home, Living())
    fake = FakeBinance()
    async with venues() as here, serve_exchange(fake.server):
        keys = {
            **here.environment,
            "ZUNO_BINANCE_API_KEY": binance.KEY,
            "ZUNO_BINANCE_API_SECRET": binance.SECRET,
            "ZUNO_BINANCE_ORDER_URL": fake.server.url,
            "ZUNO_MARKET": "live",
            "ZUNO_LIVE": "1",
        }
        away = Venues(keys)

        without = await ran(home, away, *START)
        assert without.code == 3, "no mandate"
        assert "mandate" in without.err
        assert "paper" in without.err

        words = ("--symbol", "BTCUSDT", "--margin-per-trade", "700", "--margin-per-day", "900")
        async with terminal(home, keys, "trade", "mandate", "grant", *words) as screen:
            await screen.expect("Type grant")
            screen.type("grant")
            assert await screen.wait() == 0

        fake.withdrawals = True
        withdraws = await ran(home, away, *START)
        assert withdraws.code == 3
        assert "withdraw" in withdraws.err
        fake.withdrawals = False

        async with terminal(home, keys, *START) as screen:
            await screen.expect("PAPER: live needs 40 trades")
            screen.interrupt()
            assert await screen.wait() == 0
        assert not [name for name in fake.server.asked if name.startswith(("POST", "DELETE"))]

        await write_record(home)
        async with terminal(home, keys, *START) as screen:
            await screen.expect("Type live")
            screen.type("paper")
            assert await screen.wait() == 3
        assert not fake.engine.orders

        await rule_entry(home)
        async with terminal(home, keys, *START) as screen:
            await screen.expect("REAL MONEY")
            await screen.expect("Type live")
            screen.type("live")
            await wait_for(fake, resting=2, protective=2)
            screen.interrupt()
            await screen.expect("The desk ended")
            assert await screen.wait() == 0
        assert (entries(fake), len(stops(fake))) == ([], 2), "entries end with the desk, stops stay"

        async with terminal(home, keys, *START) as screen:
            await screen.expect("Type live")
            screen.type("live")
            await screen.expect("LIVE: orders are placed")
            status = await ran(home, away, "trade", "status", "--account", "live", "--json")
            assert status.document["openTrades"] == 1
            assert status.document["protections"] == []
            stopped = await ran(home, away, "trade", "stop", "--account", "live", "--json")
            assert stopped.code == 0
            assert await screen.wait() == 0
        assert len(stops(fake)) == 2

        async with terminal(home, keys, "trade", "close", "all", "--account", "live") as screen:
            await screen.expect("Type close")
            screen.type("close")
            assert await screen.wait() == 0
        assert not fake.engine.positions or all(not held.amount for held in fake.engine.positions.values())
        assert (entries(fake), stops(fake)) == ([], [])
        balance = await ran(home, away, "trade", "balance", "--account", "live", "--json")
        cash = {purse["currency"]: purse["cash"] for purse in balance.document["purses"]}
        assert D(str(cash["USD"])) == fake.engine.cash, "the ledger equals the venue"

        async with terminal(home, keys, "trade", "run", "BTCUSDT", "--execute", "--live", "--no-chart") as screen:
            await screen.expect("Type live")
            screen.type("live")
            assert await screen.wait() == 0
            assert "LIVE" in screen.screen
        assert (entries(fake), stops(fake)) == ([], [])


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in WIRES if name != "BINANCE"])
async def test_a_live_desk_at_any_wire_protects_its_first_position_and_closes_it(home: Path, name: str) -> None:
    await remembered(home, Living())
    wire, venue = WireHarness(Venue(name)), Venue(name)
    fake, price = wire.fake, wire.price
    async with venues() as here, serve_exchange(fake.server):
        keys = {
            **here.environment,
            **WIRES[name].set_environment(venue, fake.server.url),
            "ZUNO_MARKET": "live",
            "ZUNO_LIVE": "1",
        }
        away = Venues(keys)
        listed = await ran(home, away, "markets", "--venue", name.lower(), "--refresh", "--json")
        assert listed.code == 0, listed.err
        words = ["--symbol", "BTCUSDT", "--margin-per-trade", "900", "--margin-per-day", "900", "--exchange", name]
        words += [] if venue.holds_stops else ["--stops", "watched"]
        async with terminal(home, keys, "trade", "mandate", "grant", *words) as screen:
            await screen.expect("Type grant")
            screen.type("grant")
            assert await screen.wait() == 0, screen.screen
        await write_record(home)
        await rule_entry(home, name, price)
        async with terminal(home, keys, *START) as screen:
            await screen.expect("REAL MONEY")
            await screen.expect("Type live")
            screen.type("live")
            await wait_for(fake, resting=2, protective=(2 - venue.spot) * venue.holds_stops)
            screen.interrupt()
            await screen.expect("The desk ended")
            assert await screen.wait() == 0
        held = await ran(home, away, "trade", "positions", "--account", "live", "--json")
        (position,) = held.document["positions"]
        assert position["stop"] is not None
        assert entries(fake) == []
        async with terminal(home, keys, "trade", "close", "all", "--account", "live") as screen:
            await screen.expect("Type close")
            screen.type("close")
            assert await screen.wait() == 0, screen.screen
        lot = fake.engine.markets[wire.market].lot
        assert fake.engine.position(wire.market).amount < lot
        assert (entries(fake), stops(fake)) == ([], [])
        assert fake.broker_marks == []
