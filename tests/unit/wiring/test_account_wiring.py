"""Entries by hand are charged, and a cycle reckons with, the fees of the settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wire.accounts import build_fees
from tests.wire.trading_account import AccountStory
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.settings import read_settings
from zuno.trading.model.market import Side
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.wiring import Application


async def test_the_account_has_the_fees_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fees() -> Fees:
        house = Application(read_settings(os.environ, tmp_path))
        found = house._account_backends().fees
        await house.close()
        return found

    assert await fees() == Fees()
    for name, value in (("BINANCE_MAKER", "0.01"), ("BINANCE_TAKER", "0.04"), ("UPBIT", "0.1")):
        monkeypatch.setenv(f"ZUNO_FEE_{name}_PCT", value)
    assert await fees() == build_fees(FeeRates(0.01, 0.04), FeeRates(0.1, 0.1))


async def test_a_paper_account_reaches_the_venues_it_holds_something_at_whatever_the_routes_say(tmp_path: Path) -> None:
    house, account, venue = Application(read_settings({}, tmp_path)), "paper:recorded", Venue("BYBIT")
    try:
        assert venue not in (await house._open_gate(account, lambda: Millis(1))).paper_venues
        story = AccountStory(house._trade_log(), account)
        await story.open_trade(1, Symbol("SOLUSDT"), Side.LONG, "1", "100", "98", "104", exchange=venue)
        gate = await house._open_gate(account, lambda: Millis(1))
        assert gate.paper_venues == (*DEFAULT_VENUES, venue)
        assert (venue, Symbol("SOLUSDT")) in (await gate.refresh()).positions
    finally:
        await house.close()
