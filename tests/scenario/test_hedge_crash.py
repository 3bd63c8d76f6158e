"""Kill -9 between the legs: a hedged rebalance on the devnet and a fake exchange, finished by whoever looks next.

The process that applies the plan dies once the new position stands, at a point of setting its short: before it is
written what is to be short, after that, after the order's intent, or once the exchange has the order. In every case one
look of the monitor leaves one position, and as much short as it holds.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from tests.crash.matrix import _command, ask, forked
from tests.wire.commands import run_process, run_zuno
from tests.wire.exchanges.harness import WireHarness, open_wire, over_wire
from zuno.adapters.clock.system import unix_millis
from zuno.journal.journal import ChainedJournal
from zuno.kernel.units import Millis
from zuno.lp.model.chains import ChainInfo
from zuno.lp.model.hedges import HedgeSet, PerpetualQuote, ShortState
from zuno.markets.market import Catalogue, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.trade_events import AccountOpened
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.rules.sleeve_funds import list_places
from zuno.wiring import Application, open_zuno
from zuno.wiring.hedges import SleeveShorts

BINANCE, MARKET, LOT = Venue("BINANCE"), "ETHUSDT", Decimal("0.001")
CASH, ACCOUNT = Decimal(200_000), "demo"
POINTS = ("plan_over", HedgeSet.kind, "intent_stored", "order_planned", "sent")


class ShortsAtTheFake(SleeveShorts):
    async def quote(self, coin: str, chain: ChainInfo) -> PerpetualQuote:
        return PerpetualQuote(MARKET, Fraction(9, 10_000), Fraction(0), "a fake exchange")

    async def set_shorts(
        self, account: str, wanted: Mapping[str, Decimal], decided: Millis
    ) -> Mapping[str, ShortState]:
        state = await super().set_shorts(account, wanted, decided)
        die_at("sent")
        return state


class HedgedHouse(Application):
    url = ""

    @cached_property
    def _shorts(self) -> Any:
        async def play() -> str:
            return ACCOUNT

        async def view(symbol: Symbol) -> Any:
            raise AssertionError

        return ShortsAtTheFake(self._gate_at_the_fake, play, None, Catalogue, view, real_time=True)

    async def _gate_at_the_fake(self, account: str) -> OrderGate:
        log = self._trade_log()
        if not (await log.history(account)).count:
            await log.append(account, [AccountOpened(at=unix_millis(), cash={BINANCE: CASH})], 0)
        return OrderGate(
            GateContext(
                log=log,
                account=account,
                venues={BINANCE: open_wire("BINANCE", self.url, asyncio.sleep)},
                now=unix_millis,
                limits=ProtectionLimits(),
                sleeve_places=lambda sleeve: list_places((BINANCE,), BINANCE, sleeve),
            )
        )


FATAL: list[str] = []


def die_at(point: str) -> None:
    if point in FATAL:
        os.kill(os.getpid(), signal.SIGKILL)


async def append_and_die(journal: ChainedJournal, *, kind: str, **entry: Any) -> Any:
    written = await APPEND(journal, kind=kind, **entry)
    die_at(kind)
    payload = json.dumps(entry.get("payload", ""), default=str)
    for name in POINTS[2:4]:
        if f'"{name}"' in payload or f"kind='{name}'" in payload:
            die_at(name)
    return written


APPEND = ChainedJournal.append


async def run(home: Path, here: WireHarness, *arguments: str, fatal: str | None = None) -> tuple[int, Any]:
    def work() -> Any:
        FATAL[:] = [] if fatal is None else [fatal]
        ChainedJournal.append = append_and_die  # type: ignore[assignment]

        def opener(where: str | None) -> Application:
            house = open_zuno(where)
            house.__class__ = HedgedHouse
            house.url = here.server.url  # type: ignore[attr-defined]
            return house

        code, out, err = _command(home, (*arguments, "--json"), opener)
        return {"code": code, "err": err, "document": json.loads(out) if out.strip() else None}

    return await asyncio.to_thread(forked, work)


def read_net(here: WireHarness) -> Decimal:
    return sum((position.amount for position in here.fake.engine.positions.values()), Decimal(0))


@pytest.fixture(scope="module")
def own_devnet(built_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of this file's own: what it hedges is no other test's."""
    home = tmp_path_factory.mktemp("hedged")
    (home / "devnet").symlink_to(built_home / "devnet")
    started = run_process(home, "devnet", "up", "--background", "--port", "0", "--json")
    assert started.code == 0, started.err
    try:
        yield home
    finally:
        run_zuno(home, "devnet", "down")


@pytest.fixture
def fresh(own_devnet: Path) -> Iterator[Path]:
    """The chain as it began, and a journal in which nothing was hedged."""
    url = json.loads((own_devnet / "devnet.json").read_text())["url"]
    before = ask(url, "evm_snapshot")
    yield own_devnet
    assert ask(url, "evm_revert", before)
    for left in own_devnet.glob("journal.*"):
        left.unlink()


@pytest.mark.parametrize(
    "point", [None, "plan_over", pytest.param("hedge_set", marks=pytest.mark.soak), "sent"], ids=str
)
async def test_killed_between_the_legs_a_hedged_rebalance_is_finished(fresh: Path, point: str | None) -> None:
    home = fresh
    async with over_wire("BINANCE") as here:
        here.fake.engine.cash = CASH
        here.fake.engine.move(MARKET, Decimal(3_000) - LOT * 10, Decimal(3_000) + LOT * 10, Decimal(1_000), None)
        await here.venue.balance()
        asked = ("lp", "recommend", "rebalance", "1", "--chain", "devnet", "--hedged", "--candidate", "2")
        _, said = await run(home, here, *asked)
        assert said["code"] == 0, said["err"]
        plan = said["document"]["planId"]
        _, said = await run(home, here, "plan", "approve", plan, "--yes")
        assert said["code"] == 0, said["err"]
        status, said = await run(home, here, "plan", "apply", plan, "--yes", fatal=point)
        if point is None:
            assert (status, said["code"]) == (0, 0), said
        else:
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
            status, said = await run(home, here, "monitor", "once")
            assert (status, said["code"]) == (0, 0), said
        _, listed = await run(home, here, "lp", "positions", "--chain", "devnet")
        (new,) = [each for each in listed["document"]["positions"] if int(each["id"]) > 2]
        held = Decimal(new["amount0Human"])
        assert abs(read_net(here) + held) < Decimal("0.1") * max(held, Decimal(1))
        made = list(here.fake.engine.orders.values())
        assert len({order.client_id for order in made}) == len(made)
        _, sleeves = await run(home, here, "monitor", "once")
        assert not [note for note in sleeves["document"]["notes"] if "unhedged" in note]
        assert len(here.fake.engine.orders) == len(made)
