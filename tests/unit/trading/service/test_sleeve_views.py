"""Sleeves as a person asks for them, on an account of months: what they have adds up to the account's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.wire.sleeve_home import write_sleeve_home
from zuno.kernel.errors import NotFound, UsageError
from zuno.present.document import Section, Table
from zuno.settings import Settings
from zuno.trading.service.account import AccountDesk
from zuno.wiring.application import Application

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AccountDesk]:
    home = tmp_path_factory.mktemp("sleeves")
    await write_sleeve_home(home)
    zuno = Application(Settings(home=home, recording="own"))
    yield zuno.account()
    await zuno.close()


async def test_capital_and_results_of_each_sleeve_are_its_equity_and_all_of_them_the_accounts(
    desk: AccountDesk,
) -> None:
    view = await desk.sleeves()
    assert [(sleeve.name, sleeve.share) for sleeve in view.sleeves] == [("debate", 0.4), ("trend", 0.6)]
    for sleeve in view.sleeves:
        assert sleeve.open_usd is not None
        assert sleeve.capital_usd + sleeve.realised_usd + sleeve.open_usd == pytest.approx(sleeve.equity_usd)
        assert sleeve.balanced
    assert sum(sleeve.equity_usd or 0 for sleeve in view.sleeves) == pytest.approx(view.equity_usd)
    debate, trend = view.sleeves
    assert [part.quantity for part in (*debate.holds, *trend.holds)] == [-0.005, 0.015]
    assert trend.capital_usd == 1_100  # 1,200, of which 100 went back
    weighed = (await desk.read_sleeves()).capital_usd
    assert weighed == {sleeve.name: pytest.approx(sleeve.equity_usd) for sleeve in view.sleeves}
    assert weighed["trend"] != pytest.approx(float(view.equity_usd or 0) * trend.share, rel=0.001)
    status, balance = await desk.status(), await desk.balance()
    assert status.sleeves == balance.sleeves == view.sleeves
    assert status.risk.rows[0].positions == pytest.approx(0.01)
    liquidity = status.risk.rows[0].lp  # of the simulated chain
    assert status.risk.rows[0].gross_usd == pytest.approx(
        (0.02 + liquidity) / (0.01 + liquidity) * (status.risk.rows[0].delta_usd or 0)
    )


@pytest.mark.parametrize(
    ("shares", "known"), [("trend:0.5,cash-carry:0.2,debate:0.3", True), ("trned:0.5,debate:0.5", False)]
)
async def test_an_account_that_is_not_begun_has_the_sleeves_of_the_setting(
    tmp_path: Path, shares: str, known: bool
) -> None:
    zuno = Application(Settings(home=tmp_path, sleeves=shares))
    await write_sleeve_home(tmp_path)  # another account's market
    account = zuno.account("new")
    if known:
        read = await account.read_sleeves()
        assert str(read.shares) == shares
        assert read.capital_usd == {"trend": 10_000, "cash-carry": 4_000, "debate": 6_000}
        with pytest.raises(NotFound):
            await account.equity()
    else:
        with pytest.raises(UsageError):
            await account.read_sleeves()
    await zuno.close()


async def test_positions_orders_and_results_are_told_apart(desk: AccountDesk) -> None:
    positions = await desk.positions()
    assert {position.side: position.sleeve for position in positions.positions} == {"long": "trend", "short": "debate"}
    for position in positions.positions:
        assert len(position.orders) == 2  # its own stop and target, and nobody else's
        assert position.stop_order in position.orders
    assert [position.r is None for position in positions.positions if position.sleeve == "trend"] == [True]
    (table, *_) = (part for part in positions.to_document().sections[0].blocks if isinstance(part, Table))
    assert table.columns[0].name == "sleeve"
    grouped = (await desk.positions("sleeve")).to_document()
    titles = [part.title for part in grouped.sections if isinstance(part, Section)]
    assert {"trend", "debate"} <= set(titles)
    for part in grouped.sections:
        if part.title in ("trend", "debate"):
            assert [block.columns[0].name for block in part.blocks if isinstance(block, Table)] == ["position"]
    assert {order.sleeve for order in (await desk.orders(by="sleeve")).orders} == {"trend", "debate"}
    profit = await desk.profit("sleeve")
    assert {group.name: group.trades for group in profit.groups} == {"debate": 5, "trend": 5}
    assert [line.name for line in profit.lines] == ["desk", "core", "hold", "debate", "trend"]
    for ask in (desk.positions, desk.performance):
        with pytest.raises(UsageError):
            await ask("day")


async def test_what_only_a_running_desk_stops_stands_first_in_coins_and_dollars(desk: AccountDesk) -> None:
    """Trend is long 0.015 and the debate short 0.005: the exchange has 0.010 long, and a stop of the short has nothing
    to reduce there."""
    positions = await desk.positions()
    assert {part.sleeve: part.quantity for part in positions.uncovered} == {"trend": 0.005, "debate": 0.005}
    marks = {position.sleeve: position.mark or 0.0 for position in positions.positions}
    for part in positions.uncovered:
        assert part.value == pytest.approx(0.005 * marks[part.sleeve])
        first = positions.to_document().urgent[positions.uncovered.index(part)].text
        assert "0.005 BTC" in first
        assert "only while the desk runs" in first


async def test_every_sleeve_has_its_ledger_and_all_of_them_are_the_exchanges(desk: AccountDesk) -> None:
    view = await desk.ledger()
    assert all(ledger.balanced for ledger in view.sleeves)
    for currency in ("USD", "KRW"):
        for account in view.ledgers[0].balances:
            whole = sum(float(ledger.balances[account]) for ledger in view.ledgers if ledger.currency == currency)
            apart = [float(ledger.balances[account]) for ledger in view.sleeves if ledger.currency == currency]
            assert sum(apart) == pytest.approx(whole)


async def test_the_picture_shows_desk_core_and_hold_on_the_same_days(desk: AccountDesk) -> None:
    view, picture = await desk.performance()
    assert picture is not None
    assert picture.startswith(b"\x89PNG")
    lines = {line.name: line for line in view.lines}
    assert set(lines) == {"desk", "core", "hold"}
    assert lines["desk"].return_pct == view.return_pct
    assert lines["core"].return_pct == pytest.approx(7.419, abs=0.01)
    assert all(line.sharpe is not None for line in view.lines)
    assert view.points[0].core_usd == view.points[0].hold_usd == view.points[0].equity_usd
