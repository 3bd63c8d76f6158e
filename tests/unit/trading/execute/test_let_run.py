"""A winner may run: a part leaves at the target, and the stop of the rest follows the price."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.unit.trading.execute.test_order_gate import events_of, held, opened, protective
from tests.wire.order_gate import BTC, GateHarness, rule
from tests.wire.paper_venue import open_upbit
from zuno.trading.model.cycle import Call, Closing, RuleChange, Style, Target
from zuno.trading.model.market import Side
from zuno.trading.model.trade_events import ExitReason, IntentStored, LevelsSet
from zuno.trading.rules.calibration import score_exit, to_closed_trade
from zuno.trading.rules.trading_book import TRAIL_ATR

D = Decimal


async def running(share: int = 40) -> GateHarness:
    """A long of 0.050 at 20,000, stop 19,600 and target 20,800, whose target took its part."""
    desk = await opened(GateHarness(let_run_pct=share))
    await desk.move(20_810)
    await desk.gate.advance()
    return desk


def trail_of(desk: GateHarness) -> Decimal:
    (intent,) = (tracked.intent for tracked in desk.gate.book.intents.values())
    return TRAIL_ATR * intent.atr


async def test_at_the_venue_the_target_takes_a_part_and_the_stop_holds_all() -> None:
    desk = await opened(GateHarness(let_run_pct=40))
    assert protective(desk) == {"stop": (D("0.050"), D("19600.0")), "target": (D("0.030"), D("20800.0"))}
    assert (await desk.gate.reconcile()) == ()


async def test_after_the_target_the_stop_of_the_rest_trails_and_never_goes_back() -> None:
    desk = await running()
    assert held(desk) == D("0.020")
    assert set(protective(desk)) == {"stop"}
    trail = trail_of(desk)
    stops = [protective(desk)["stop"][1]]
    for price in (21_500, 23_000, 22_500, 24_000, 23_900):
        await desk.move(price)
        await desk.gate.advance()
        stops.append(protective(desk)["stop"][1])
        assert protective(desk)["stop"][0] == held(desk) == D("0.020")
        assert desk.gate.needs_watch
    assert stops == sorted(stops)  # type: ignore[type-var]
    assert stops[-1] == D(24_000) - trail
    assert {event.by for event in await events_of(desk, LevelsSet)} == {"trail"}
    await desk.move(D(24_000) - trail - 10)
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert (held(desk), summary.reason, summary.quantity) == (0, ExitReason.STOP, D("0.050"))
    assert summary.target == D("20800.0"), "R and y are of what was planned"
    assert not await desk.gate.reconcile()


async def test_y_is_of_the_exit_by_quantity() -> None:
    desk = await running()
    await desk.move(20_790)
    await desk.gate.close(BTC)
    (summary,) = desk.gate.book.closed
    fills = [order for order in desk.gate.book.orders.values() if order.request.reduce_only and order.filled]
    by_hand = sum(order.filled * (order.average_price or 0) for order in fills) / D("0.050")
    assert summary.exit == pytest.approx(by_hand)
    trade = to_closed_trade(summary)
    assert trade is not None
    expected = (trade.exit_pct + trade.loss_pct) / (trade.profit_pct + trade.loss_pct)
    assert score_exit(trade) == pytest.approx(min(1.0, expected))


async def test_a_stop_before_the_target_ends_all_of_it() -> None:
    desk = await opened(GateHarness(let_run_pct=40))
    await desk.move(19_590)
    await desk.gate.advance()
    (summary,) = desk.gate.book.closed
    assert (held(desk), protective(desk), summary.reason) == (0, {}, ExitReason.STOP)


async def test_a_restart_knows_what_has_left() -> None:
    desk = await running()
    before = protective(desk)
    await desk.restart().advance()
    assert (held(desk), protective(desk)) == (D("0.020"), before)


async def test_a_watched_target_sells_the_part_and_goes_on_watching() -> None:
    desk = await opened(GateHarness(paper=open_upbit(), let_run_pct=50), quantity=0.03)
    await desk.move(52_100_000)
    await desk.gate.advance()
    await desk.gate.advance()
    assert held(desk) == D("0.015")
    trade = desk.gate.book.position(desk.paper.exchange, BTC)
    assert trade is not None
    assert (trade.target, trade.leaving) == (None, 0)


async def test_a_cycle_that_finds_the_target_passed_closes_the_part() -> None:
    desk = await opened(GateHarness(let_run_pct=40))
    (trade,) = desk.gate.book.positions.values()
    as_of = desk.gate.now()
    change = RuleChange(by="target_passed", field="decision", **{"from": "HOLD", "to": "CANCEL_AND_CLOSE"}, why="bar")
    close = Closing(venue=trade.exchange, what="position", id=trade.id, side=Side.LONG, quantity=0.03)
    ruling = rule(Call.CANCEL_AND_CLOSE, as_of, closes=(close,), changes=(change,)).model_copy(
        update={"execution_style": Style.CASINO_EXIT, "target_exchange": Target.BINANCE}
    )
    await desk.gate.execute(desk.order(ruling, as_of, "run_x"))
    await desk.gate.advance()
    assert held(desk) == D("0.020")
    assert set(protective(desk)) == {"stop"}


async def test_off_the_records_have_their_old_bytes() -> None:
    desk = await opened()
    (stored,) = await events_of(desk, IntentStored)
    assert "leaves" not in stored.intent.model_dump_json()
    (holding,) = desk.gate.book.to_account().positions
    assert not {"leaves", "levels_since", "stop_since", "take_since"} & set(holding.model_dump())


@pytest.mark.parametrize(("share", "quantity", "leaves"), [(10, 0.006, None), (50, 0.007, D("0.004")), (0, 0.05, None)])
async def test_parts_are_whole_lots(share: int, quantity: float, leaves: Decimal | None) -> None:
    desk = await opened(GateHarness(let_run_pct=share), quantity=quantity)
    (stored,) = await events_of(desk, IntentStored)
    assert [leg.leaves for leg in stored.intent.legs] == [leaves]
