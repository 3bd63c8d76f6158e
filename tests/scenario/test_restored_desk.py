"""A backup taken at any step of an entry that is being worked, restored and held against the exchange that went on:
nothing is bought twice, and what the book does not know keeps new risk back."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import WireHarness, over_binance
from tests.wire.homes import open_journal
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.home_backup import unpack_backup, write_backup
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.journal.port import Journal
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Style
from zuno.trading.model.trade_events import Protection

BTC = Symbol("BTCUSDT")


class DemoDesk(WireDesk):
    """Of an account at an exchange, which adopts the cash it finds there first."""

    def open_gate(self) -> OrderGate:
        venue, now = self.here.venue, self.here.fake.clock.now
        return OrderGate(GateContext(log=self.log, account="demo", venues={venue.exchange: venue}, now=now))


def open_desk(here: WireHarness, home: Path) -> WireDesk:
    home.mkdir(exist_ok=True)
    journal = open_journal(home)

    async def read_journal() -> Journal:
        return journal

    return DemoDesk(here, JournalTradeLog(read_journal))  # type: ignore[arg-type]


async def begin_account(desk: WireDesk) -> None:
    await desk.gate.pause()
    await desk.gate.resume()
    await desk.gate.reconcile()


def back_up_after(log: Any, appends: int, home: Path, file: Path) -> list[int]:
    """Make a backup after so many writes to the account's log; the list counts them."""
    count, append = [0], log.append

    async def append_and_back_up(*given: Any, **named: Any) -> Any:
        answer = await append(*given, **named)
        count[0] += 1
        if count[0] == appends:
            write_backup(home, file, None, KeyFile(home / "keys" / "node.key"), "test", 0)
        return answer

    log.append = append_and_back_up
    return count


def restore(file: Path, home: Path, key: Path) -> None:
    with unpack_backup(file, home):
        pass
    shutil.copy(key / "keys" / "node.key", home / "keys" / "node.key")


async def play(tmp_path: Path, appends: int) -> tuple[int, bool]:
    """How many writes the whole story has, and whether the restored desk had to be locked."""
    home, elsewhere, file = tmp_path / "home", tmp_path / "elsewhere", tmp_path / "a.zip"
    async with over_binance() as here:
        desk = open_desk(here, home)
        await begin_account(desk)
        count = back_up_after(desk.log, appends, home, file)
        ruling = desk.opening(BTC, 0.05, Style.SMART_DCA)
        await desk.gate.execute(ruling)
        await here.move(here.price * Decimal("0.985"))
        await desk.gate.advance()
        held = desk.held()
        assert held == Decimal("0.05")
        if count[0] < appends:
            return count[0], False
        restore(file, elsewhere, home)
        await here.restart()
        again = open_desk(here, elsewhere)
        await again.gate.reconcile()
        again.wait(7_000)
        await again.gate.advance()
        await again.gate.reconcile()
        book = again.gate.book
        position = book.position(Venue("BINANCE"), BTC)
        booked = Decimal(0) if position is None else position.quantity
        locked = any(lock.protection is Protection.RECONCILIATION for lock in book.locks.values())
        assert booked == held or locked
        for wish in (ruling, replace(ruling, run_id="run_after_the_restore")):
            if locked:
                await again.gate.execute(wish)
                await again.gate.advance()
        assert desk.held() == held
        made = Counter(order.client_id for order in here.fake.engine.orders.values())
        assert set(made.values()) == {1}
        return count[0], locked


@pytest.mark.parametrize("stride", [6, pytest.param(1, marks=pytest.mark.soak)])
async def test_what_was_ordered_after_the_backup_is_not_ordered_again(tmp_path: Path, stride: int) -> None:
    appends, locked, whole = 1, [], 1_000
    while appends <= whole:
        place = tmp_path / str(appends)
        place.mkdir()
        whole, was_locked = await play(place, appends)
        locked.append(was_locked)
        appends += stride
    assert whole >= 8
    assert set(locked) == {True, False}, locked


@pytest.mark.slow
async def test_a_backup_of_before_the_entry_locks_the_symbol(tmp_path: Path) -> None:
    home, elsewhere, file = tmp_path / "home", tmp_path / "elsewhere", tmp_path / "a.zip"
    async with over_binance() as here:
        desk = open_desk(here, home)
        await begin_account(desk)
        write_backup(home, file, None, KeyFile(home / "keys" / "node.key"), "test", 0)
        assert await desk.open() == "open"
        restore(file, elsewhere, home)
        await here.restart()
        again = open_desk(here, elsewhere)
        await again.gate.reconcile()
        assert {lock.protection for lock in await again.gate.locks()} >= {Protection.RECONCILIATION}
        assert (await again.gate.execute(desk.opening(BTC, 0.02))).state == "refused"
        assert desk.held() == Decimal("0.02")
