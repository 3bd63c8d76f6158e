"""What was revoked after a backup does not stand again when the backup is restored."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tests.wire.account_home import END, write_account_home
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.settings import Settings
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.model.trade_events import IntentKind, Mandate, MandateGranted
from zuno.trading.rules.protections import hash_mandate
from zuno.wiring.application import Application
from zuno.wiring.web import FACTORS_FILE, LOGINS_FILE

ACCOUNT = "paper:recorded"


def open_home(home: Path) -> Application:
    return Application(Settings(home=home, recording="own"))


async def open_gate(zuno: Application) -> OrderGate:
    return await zuno._open_gate(ACCOUNT, lambda: END)


def build_grant(at: int) -> MandateGranted:
    mandate = Mandate(
        symbols=(Symbol("BTCUSDT"),),
        venues=(Venue("BINANCE"),),
        max_margin_per_trade_usd=Decimal(100),
        max_margin_per_day_usd=Decimal(300),
        max_daily_loss_usd=Decimal(50),
        granted=at,
        expires=at + 86_400_000,
    )
    return MandateGranted(at=Millis(at), mandate=mandate, hash=hash_mandate(mandate))


@pytest.fixture
async def restored(tmp_path: Path) -> Path:
    """Of a home with two mandates, a token that may act and leave for the page, as they stood before they ended."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    await write_account_home(old)
    zuno = open_home(old)
    for account in ("live", "live:second"):
        await zuno._trade_log().append(account, [build_grant(END)], 0)
    zuno.web_logins().create_token("bot", "act")
    zuno.web_logins().allow("30m")
    made = await zuno.home_desk().backup(str(tmp_path / "a.zip"), None)
    assert not {LOGINS_FILE, FACTORS_FILE} & set(made.left_out)
    await zuno.close()
    there = open_home(new)
    await there.home_desk().restore(made.file)
    await there.close()
    shutil.copy(old / "keys" / "node.key", new / "keys" / "node.key")
    return new


async def test_a_restored_home_takes_no_new_risk_until_its_owner_unlocks_it(restored: Path) -> None:
    zuno = open_home(restored)
    (lock,) = (lock for lock in (await zuno.account(None).locks()).protections if lock.protection == "restored")
    assert "`zuno home unlock`" in lock.ends
    shown = await zuno.lp("sim").list_positions()
    assert any("`zuno home unlock`" in line for line in shown.urgent)
    gate = await open_gate(zuno)
    assert await gate.unlock() == (), "a lock of the whole home is no account's"
    assert "restored" in [lock.protection for lock in await gate.locks()]
    trade = next(iter(gate.book.trades.values()))
    await gate.close(trade.id)
    assert gate.book.list_intents(IntentKind.CLOSE, trade.symbol, trade.sleeve), "exits work"
    for account in (None, "live", "live:new"):
        found = zuno.kill_lock.why_locked(account)
        assert found is not None
        assert (found.kind, found.lifted_by) == ("restored", "zuno home unlock")
    with pytest.raises(Refused):
        await zuno.home_desk().unlock(lambda word, what: False)
    assert zuno.kill_lock.why_locked()
    await zuno.home_desk().unlock(lambda word, what: word == "unlock")
    assert zuno.kill_lock.why_locked() is None
    assert "restored" not in [lock.protection for lock in await gate.locks()]
    await zuno.close()


async def test_mandates_logins_and_leave_of_before_are_gone(restored: Path) -> None:
    zuno = open_home(restored)
    logins = zuno.web_logins()
    assert (logins.list("token").logins, logins.allow().until) == ((), None)
    log = zuno._trade_log()
    assert (await log.history("live")).mandate is None, "before it is unlocked, too"
    granted = build_grant(END + 1)
    await log.append("live:second", [granted], 1)
    view = await zuno.home_desk().unlock(lambda word, what: True)
    assert view.revoked == ("live",)
    assert (await log.history("live")).mandate is None
    kept = (await log.history("live:second")).mandate
    assert kept is not None
    assert kept.hash == granted.hash
    await zuno.close()


async def test_a_mandate_of_before_does_not_count_though_the_lock_was_deleted_by_hand(restored: Path) -> None:
    (restored / "restored.lock").unlink()
    zuno = open_home(restored)
    assert zuno.kill_lock.why_locked() is None
    log = zuno._trade_log()
    for book in (await log.history("live"), await log.open_book("live")):
        assert book.mandate is None
        assert book.active_mandate(Millis(END + 1)) is None
    assert await log.verify_snapshots() == ()
    granted = build_grant(END + 1)
    await log.append("live", [granted], 1)
    assert (await log.history("live")).mandate == granted, "a new one counts"
    await zuno.close()


async def test_a_home_that_was_never_restored_has_no_such_lock(tmp_path: Path) -> None:
    zuno = open_home(tmp_path)
    assert zuno.kill_lock.why_locked() is None
    with pytest.raises(Refused):
        await zuno.home_desk().unlock(lambda word, what: True)
    await zuno.close()
