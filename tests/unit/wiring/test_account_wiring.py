"""Entries by hand are charged, and a cycle reckons with, the fees of the settings."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from tests.wire.accounts import build_fees
from tests.wire.trading_account import AccountStory
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.settings import read_settings
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.trade_events import CashMoved
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.trading.rules.sleeve_funds import build_transfer
from zuno.wiring import Application
from zuno.wiring.orders import build_exchange_gate, build_paper_venues


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
        assert (await gate.refresh()).position(venue, Symbol("SOLUSDT")) is not None
    finally:
        await house.close()


async def test_a_move_of_cash_that_a_crash_left_undone_is_made_once(tmp_path: Path) -> None:
    """Neither venue has a log of its own yet: what they begin with is from before the move."""
    settings = read_settings({}, tmp_path).model_copy(update={"sleeves": "trend:0.6,debate:0.4"})
    house, account = Application(settings), "paper:recorded"
    try:
        gate = await house._open_gate(account, lambda: Millis(1))
        await gate.advance()
        spot, perpetual = Venue("BINANCE-SPOT"), Venue("BINANCE")
        transfer = build_transfer(Millis(2), "req_1", "trend", "debate", Decimal(1_000))
        move = CashMoved(at=Millis(2), key="mov_1", source=spot, target=perpetual, amount=Decimal(1_000))
        await house._trade_log().append(account, [transfer, move], gate.book.count)
        gate = await house._open_gate(account, lambda: Millis(3))
        assert await gate.reconcile() == ()
        totals = {venue: (await gate._account.venues[venue].balance()).total for venue in (spot, perpetual)}
        assert totals == {spot: Decimal(11_000), perpetual: Decimal(9_000)}
        assert not gate.book.locks
    finally:
        await house.close()


async def test_with_money_a_transfer_says_what_is_to_be_moved_by_hand(tmp_path: Path) -> None:
    settings = read_settings({}, tmp_path).model_copy(update={"target_taker_minutes": 10})
    house = Application(settings)
    venues = build_paper_venues(
        house._recordings.selected_store(), house._trade_log(), "paper:recorded", lambda: Millis(1), Fees(),
        (Venue("BINANCE"), Venue("BINANCE-SPOT")), cash=dict.fromkeys((Venue("BINANCE"),), Decimal(5_000)),
    )  # fmt: skip
    try:
        gate = build_exchange_gate(
            house._trade_log(), "demo", venues, lambda: Millis(1), entries=True, settings=settings
        )
        assert gate._account.gate.take_after == 10 * MINUTE_MS
        await gate.reconcile()
        assert await gate.transfer("debate", "trend", Decimal(1_000), "req_1") == (
            "move 1000.00 USD from BINANCE to BINANCE-SPOT",
        )
    finally:
        await house.close()
