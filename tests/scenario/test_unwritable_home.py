"""A kill and a close at an exchange from a home that has no room, or that cannot be written at all."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.unit.doors.cli.test_run_command import NOBODY, powerless
from tests.wire.exchanges import binance
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.serving import serve_exchange
from tests.wire.order_gate import open_long
from zuno.adapters.clock.system import unix_millis
from zuno.kernel.errors import Unavailable
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.settings import Settings
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.trade_events import LIVE_ACCOUNT, ExitReason, Mandate, Protection
from zuno.trading.service.account import AccountDesk
from zuno.wiring.application import Application, _make_home

D = Decimal


@pytest.fixture
def home() -> Iterator[Path]:
    """Where somebody else can reach it, too."""
    found = Path(tempfile.mkdtemp(prefix="zuno-unwritable-"))
    yield found
    shutil.rmtree(found)


@contextmanager
def full_disk(home: Path) -> Iterator[None]:
    """No file of this process may grow, nor get a first byte."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def read_only(home: Path) -> Iterator[None]:
    files = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in files}
    for path in files:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        with powerless():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
            if os.geteuid() == 0:
                os.chown(path, 0, 0)


async def open_position(settings: Settings, fake: FakeBinance, mandate: Mandate) -> None:
    zuno = Application(settings)
    try:
        gate = await zuno._open_gate(LIVE_ACCOUNT, unix_millis)
        await gate.grant_mandate(mandate)
        gate = await zuno._open_gate(LIVE_ACCOUNT, unix_millis, entries=True)
        await gate.reconcile()
        mark = fake.engine.markets["BTCUSDT"].mark
        assert (await open_long(gate, unix_millis(), float(mark), 0.01)).state == "open"
    finally:
        await zuno.close()


async def act_on(settings: Settings, act: Callable[[AccountDesk], Awaitable[object]]) -> None:
    zuno = Application(settings, _make_home(settings.home))
    try:
        await act(zuno.account(LIVE_ACCOUNT))
    finally:
        await zuno.close()


@pytest.mark.parametrize(("hinder", "way"), [(full_disk, "kill"), (read_only, "close")])
async def test_what_lowers_risk_reaches_the_exchange_though_nothing_can_be_written(
    home: Path, hinder: Callable[[Path], AbstractContextManager[None]], way: str
) -> None:
    fake = FakeBinance()
    now = unix_millis()
    mandate = Mandate(
        symbols=(Symbol("BTCUSDT"),),
        venues=(Venue("BINANCE"),),
        max_margin_per_trade_usd=D(1_000),
        max_margin_per_day_usd=D(1_000),
        max_daily_loss_usd=D(500),
        granted=now,
        expires=now + DAY_MS,
    )

    async def act(account: AccountDesk) -> object:
        if way == "kill":
            return await account.kill(lambda word, what: True)
        return await account.close("all", lambda word, what: True)

    async with serve_exchange(fake.server):
        settings = Settings(
            home=home,
            binance_api_key=SecretStr(binance.KEY),
            binance_api_secret=SecretStr(binance.SECRET),
            binance_order_url=fake.server.url,
        )
        await act_on(settings, act)  # all it needs is loaded now: somebody else may not read it
        await act_on(settings, lambda account: account.unlock(None, lambda word, what: True))
        await open_position(settings, fake, mandate)
        with hinder(home), pytest.raises(Unavailable, match="recorded"):
            await act_on(settings, act)
        assert fake.engine.position("BTCUSDT").amount == 0

        zuno = Application(settings)
        try:
            gate = await zuno._open_gate(LIVE_ACCOUNT, unix_millis)
            await gate.reconcile()
            book, locks = gate.book, await gate.locks()
        finally:
            await zuno.close()
        assert (book.positions, book.open_orders) == ({}, {})
        killed = way == "kill"
        reason = ExitReason.KILL_SWITCH if killed else ExitReason.OWNER
        assert [summary.reason for summary in book.closed] == [reason]
        assert (Protection.KILL_SWITCH in {lock.protection for lock in locks}) is killed
        assert book.venue_balance(Venue("BINANCE")) == fake.engine.cash
