"""The kill lock of a home at the paper venue: no entry is sent while it stands; exits, stops and cancels are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.order_gate import GateHarness
from zuno.adapters.kill_lock import KillLockFile
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.model.cycle import Style
from zuno.trading.model.trade_events import OrderPlanned, Protection


class KillableHarness(GateHarness):
    def __init__(self, home: Path, lock: KillLockFile | None = None, account: str = "paper") -> None:
        self.lock = lock or KillLockFile(home)
        self.killable = account
        super().__init__()

    def open_gate(self) -> OrderGate:
        return OrderGate(replace(super().open_gate()._account.gate, killed=lambda: self.lock.why_locked(self.killable)))


@pytest.fixture
def harness(tmp_path: Path) -> KillableHarness:
    return KillableHarness(tmp_path / "home")


async def test_an_entry_is_refused_and_a_cycle_says_why(harness: KillableHarness) -> None:
    harness.lock.lock("paper", "page")
    result = await harness.gate.execute(harness.opening())
    assert (result.state, Protection.KILL_SWITCH.value in result.reason) == ("refused", True)
    assert not harness.gate.book.orders
    assert [lock.protection for lock in await harness.gate.locks()] == [Protection.KILL_SWITCH]
    harness.lock.unlock("paper")
    assert (await harness.gate.execute(harness.opening(run_id="run_2"))).state == "open"


async def test_an_entry_that_was_planned_is_not_sent(harness: KillableHarness) -> None:
    """The lock is looked at after the order was stored, as the last thing before it is sent."""
    write = harness.gate._account.write

    async def write_and_kill(events: object) -> None:
        await write(events)  # type: ignore[arg-type]
        if any(isinstance(event, OrderPlanned) for event in events):  # type: ignore[attr-defined]
            harness.lock.lock("paper", "terminal")

    harness.gate._account.write = write_and_kill
    result = await harness.gate.execute(harness.opening())
    book = harness.gate.book
    assert result.state == "ended"
    assert [(order.purpose, order.status.final, order.filled) for order in book.orders.values()] == [("entry", True, 0)]
    assert not book.positions


async def test_what_is_held_is_closed_and_what_waits_is_cancelled(harness: KillableHarness) -> None:
    await harness.gate.execute(harness.opening(style=Style.SMART_DCA))
    assert harness.gate.book.positions
    waiting = [order for order in harness.gate.book.open_orders.values() if order.purpose == "entry"]
    assert waiting
    harness.lock.lock("paper", "page")
    await harness.gate.cancel(waiting[0].request.client_id)
    await harness.gate.advance()
    book = harness.gate.book
    assert not [order for order in book.open_orders.values() if order.purpose == "entry"]
    assert {order.purpose for order in book.open_orders.values()} == {"stop", "target"}, "what is held stays protected"
    await harness.gate.close(None)
    assert not harness.gate.book.positions
