"""Positions of two legs that hedge each other: opened, watched, cut and closed as one; whatever fails in between, no
leg is left alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.hedges import PERPETUAL, SPOT, HedgeHarness
from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import ACCOUNT
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.venue import PaperFunds, venue_account
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.carry import HedgeTarget
from zuno.trading.execute.intents import LEGS_SETTLE_MS
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import Order, OrderRequest, OrderStatus
from zuno.trading.model.sleeves import CASH_CARRY
from zuno.trading.model.trade_events import (
    ExitReason,
    IntentKind,
    Mandate,
    MandatedSleeve,
    MarginMoved,
    SleeveTransferred,
)
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.margin import liquidation_price
from zuno.trading.rules.performance import trace_account
from zuno.trading.service.trade_desk import find_broken_invariant

LOT = Decimal("0.001")
QUANTITY = Decimal("0.05")


class Killed(BaseException):
    """The process ends here."""


@dataclass
class FaultyVenue:
    """Does with each order what the next word says; without one what the venue does."""

    venue: OrderVenue
    faults: list[str]
    down: list[bool] = field(default_factory=lambda: [False])

    def __getattr__(self, name: str) -> Any:
        if self.down[0] and name in ("place", "find", "fills", "quote", "filters", "positions", "cancel"):
            return self._fail
        return self._place if name == "place" else getattr(self.venue, name)

    async def _fail(self, *args: Any, **named: Any) -> Any:
        raise Unavailable("it is down")

    async def _place(self, order: OrderRequest, good_till: Millis | None = None, **named: Any) -> Order:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "killed before":
            raise Killed
        if fault == "lost before":
            raise Unavailable("no reply")
        if fault == "rejected":
            return Order(
                request=order, venue_id="x", status=OrderStatus.REJECTED, updated=await self.now(), reason="no"
            )
        placed = await self.venue.place(order, good_till, **named)
        if fault == "killed after":
            raise Killed
        self.down[0] = fault == "down after"
        if fault in ("lost after", "down after"):
            raise Unavailable("no reply")
        return placed


def break_venue(exchange: Venue, *faults: str) -> HedgeHarness:
    left = list(faults)
    return HedgeHarness(wraps={exchange: lambda venue: FaultyVenue(venue, left)})


async def let_settle(desk: HedgeHarness, price: object = 20_000) -> None:
    """Until everything that waits has had its time."""
    for _ in range(4):
        desk.show(price, later=LEGS_SETTLE_MS)
        await desk.gate.advance()
    await desk.gate.reconcile()
    await desk.gate.advance()


def is_settled(held: dict[Venue, Decimal]) -> bool:
    return not held or (len(held) == 2 and abs(sum(held.values(), Decimal(0))) <= LOT)


# -- opening and closing


async def test_both_legs_are_opened_and_closed_as_one() -> None:
    desk = HedgeHarness()
    assert (await desk.open_hedge()).state == "open"
    assert desk.held() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}
    book = desk.gate.book
    assert book.open_orders == book.open_intents == {}
    assert find_broken_invariant(book) is None
    desk.fund(0.0001)
    desk.show(21_000)
    await desk.gate.advance()
    assert not await desk.gate.reconcile()
    assert desk.gate.book.positions[PERPETUAL, BTC, "cash-carry"].funding > 0
    await desk.gate.close(BTC, sleeve=CASH_CARRY)
    assert desk.held() == await desk.held_there() == {}
    assert not await desk.gate.reconcile()
    assert {(trade.exchange, trade.side, trade.reason) for trade in desk.gate.book.closed} == {
        (SPOT, Side.LONG, ExitReason.OWNER),
        (PERPETUAL, Side.SHORT, ExitReason.OWNER),
    }


async def test_the_same_request_is_one_position() -> None:
    desk = HedgeHarness()
    first = await desk.open_hedge()
    assert await desk.open_hedge() == first
    assert desk.held()[SPOT] == QUANTITY
    assert (await desk.open_hedge(request="req_2")).state == "held"
    assert desk.held() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}


async def test_a_leg_by_its_id_closes_both() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    await desk.gate.close(desk.gate.book.positions[SPOT, BTC, "cash-carry"].id)
    assert desk.held() == {}


async def test_a_kill_closes_both_legs() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    await desk.gate.kill()
    assert desk.held() == await desk.held_there() == {}


async def test_the_debate_trades_beside_a_hedge_of_its_symbol() -> None:
    """At the perpetual its long and the hedge's short are one position: the venue's wallet and what it holds are as the
    book foresees, and neither closes the other's."""
    desk = HedgeHarness()
    await desk.open_hedge()
    rulings = GateHarness()
    opened = await desk.gate.execute(rulings.opening(Side.LONG))
    assert opened.state == "open"
    book = desk.gate.book
    held = {trade.sleeve: trade.signed for trade in book.positions_at(PERPETUAL, BTC)}
    assert held == {"cash-carry": -QUANTITY, "debate": held["debate"]}
    assert held["debate"] > 0
    there = await desk.held_there()
    assert there.get(PERPETUAL, 0) == held["debate"] - QUANTITY
    assert await desk.gate.reconcile() == ()
    assert (await desk.open_venue(PERPETUAL).balance()).total == book.venue_balance(PERPETUAL)
    closed = await desk.gate.execute(rulings.closing())
    assert closed.state == "closed"
    assert await desk.gate.reconcile() == ()
    assert (await desk.open_venue(PERPETUAL).balance()).total == desk.gate.book.venue_balance(PERPETUAL)
    assert desk.held() == await desk.held_there() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}
    with pytest.raises(Refused):
        await desk.gate.set_levels(desk.gate.book.positions[PERPETUAL, BTC, "cash-carry"].id, Decimal(30_000), None)


@pytest.mark.parametrize(
    ("bought", "sold", "quantity"),
    [(PERPETUAL, SPOT, "0.05"), (SPOT, Venue("BYBIT"), "0.05"), (SPOT, SPOT, "0.05"), (SPOT, PERPETUAL, "0.001")],
)
async def test_what_is_no_pair_or_too_small_is_refused(bought: Venue, sold: Venue, quantity: str) -> None:
    desk = HedgeHarness()
    result = await desk.gate.set_hedge(HedgeTarget(BTC, bought, sold, Decimal(quantity), "req_1"))
    assert result.state == "refused"
    assert not desk.gate.book.intents


async def test_nothing_hedged_is_nothing_to_close() -> None:
    desk = HedgeHarness()
    assert (await desk.open_hedge("0")).state == "held"
    assert not desk.gate.book.intents


async def test_a_single_position_without_a_stop_is_still_a_broken_invariant() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    book = desk.gate.book
    book.positions[SPOT, BTC, "cash-carry"].quantity -= 2 * LOT
    assert find_broken_invariant(book) is not None


# -- legs that do not match


async def test_the_second_leg_is_as_much_as_the_first_was_filled() -> None:
    desk = HedgeHarness()
    desk.show(20_000, {SPOT: "0.0125"})
    await desk.open_hedge()
    assert desk.held() == {SPOT: Decimal("0.0125"), PERPETUAL: Decimal("-0.012")}
    await let_settle(desk)
    assert desk.held() == {SPOT: Decimal("0.0125"), PERPETUAL: Decimal("-0.012")}
    assert find_broken_invariant(desk.gate.book) is None


@pytest.mark.parametrize("faults", [("rejected",) * 9, ("lost before",) * 2, ("lost after",)])
async def test_a_second_leg_that_fails_undoes_both_or_comes_to_be(faults: tuple[str, ...]) -> None:
    desk = break_venue(PERPETUAL, *faults)
    await desk.open_hedge()
    await let_settle(desk)
    assert desk.held() == await desk.held_there()
    assert is_settled(desk.held())
    assert {trade.reason for trade in desk.gate.book.closed} <= {ExitReason.UNDONE}


async def test_a_second_leg_that_is_filled_in_part_undoes_both() -> None:
    desk = HedgeHarness()
    desk.show(20_000, {PERPETUAL: "0.01"})
    await desk.open_hedge()
    await let_settle(desk)
    assert desk.held() == await desk.held_there() == {}
    assert not await desk.gate.reconcile()


async def test_a_venue_that_is_down_between_the_legs_undoes_the_first_in_time() -> None:
    down = [False]
    desk = HedgeHarness(wraps={PERPETUAL: lambda venue: FaultyVenue(venue, [], down)})
    desk.wraps = {**desk.wraps, SPOT: lambda venue: Breaking(venue, down)}
    desk.gate = desk.open_gate()
    await desk.open_hedge()
    assert desk.held() == {SPOT: QUANTITY}
    desk.show(20_000, later=LEGS_SETTLE_MS // 2)
    await desk.gate.advance()
    assert desk.held() == {SPOT: QUANTITY}
    desk.show(20_000, later=LEGS_SETTLE_MS // 2)
    await desk.gate.advance()
    assert desk.held() == {}
    down[0] = False
    await let_settle(desk)
    assert desk.held() == await desk.held_there() == {}


async def test_what_may_have_been_sold_short_is_waited_for_before_the_other_leg_goes() -> None:
    down, lost = [False], ["down after"]
    desk = HedgeHarness(wraps={PERPETUAL: lambda venue: FaultyVenue(venue, lost, down)})
    await desk.open_hedge()
    for _ in range(3):
        desk.show(20_000, later=LEGS_SETTLE_MS)
        await desk.gate.advance()
        assert desk.held() == {SPOT: QUANTITY}
    down[0] = False
    await let_settle(desk)
    assert desk.held() == await desk.held_there() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}


@dataclass
class Breaking:
    """Takes another venue down with its first order."""

    venue: OrderVenue
    down: list[bool]

    def __getattr__(self, name: str) -> Any:
        return self._place if name == "place" and not self.down[0] else getattr(self.venue, name)

    async def _place(self, order: OrderRequest, good_till: Millis | None = None, **named: Any) -> Order:
        placed = await self.venue.place(order, good_till, **named)
        self.down[0] = True
        return placed


async def test_a_liquidated_short_takes_the_other_leg_with_it() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    desk.show(41_000)  # in one step: no look came between
    await desk.gate.advance()
    assert desk.held() == await desk.held_there() == {}
    assert {trade.exchange: trade.reason for trade in desk.gate.book.closed} == {
        PERPETUAL: ExitReason.LIQUIDATION,
        SPOT: ExitReason.UNDONE,
    }


faults = st.lists(
    st.sampled_from(["", "", "rejected", "lost before", "lost after", "killed before", "killed after"]), max_size=8
)
sizes = st.lists(st.sampled_from(["0.0301", "0.007", "1000"]), min_size=2, max_size=2)


@settings(max_examples=60, deadline=None)
@given(faults, faults, sizes, st.sampled_from([20_000, 32_500]), st.booleans())
async def test_whatever_happens_no_leg_is_left_alone(
    at_spot: list[str], at_perpetuals: list[str], sizes: list[str], price: int, closing: bool
) -> None:
    desk = HedgeHarness()
    for exchange, left in ((SPOT, [*at_spot]), (PERPETUAL, [*at_perpetuals])):
        desk.wraps = {**desk.wraps, exchange: lambda venue, left=left: FaultyVenue(venue, left)}
    desk.gate = desk.open_gate()
    desk.show(20_000, dict(zip((SPOT, PERPETUAL), sizes, strict=True)))

    async def survive(act: Callable[[OrderGate], Any]) -> None:
        try:
            await act(desk.gate)
        except Killed:
            desk.gate = desk.open_gate()
        except (Unavailable, NotFound):
            pass

    await survive(lambda gate: gate.set_hedge(HedgeTarget(BTC, SPOT, PERPETUAL, QUANTITY, "req_1")))
    for number in range(20):
        desk.show(20_000 if number < 4 else price, later=LEGS_SETTLE_MS // 2)
        await survive(lambda gate: gate.advance())
    if closing:
        await survive(lambda gate: gate.close(BTC, sleeve=CASH_CARRY))
        for _ in range(14):
            desk.show(price, later=LEGS_SETTLE_MS // 2)
            await survive(lambda gate: gate.advance())
    assert not await desk.gate.reconcile()
    assert desk.held() == await desk.held_there()
    assert is_settled(desk.held())
    assert not closing or not desk.held()
    for exchange in (SPOT, PERPETUAL):
        balance = await desk.open_venue(exchange).balance()
        assert balance.total == desk.gate.book.venue_balance(exchange)


# -- margin


async def test_a_short_near_its_liquidation_is_cut_with_the_other_leg_and_gets_the_proceeds() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    desk.show(31_500)
    await desk.gate.advance()
    assert desk.held() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}
    desk.show(32_500)
    await desk.gate.advance()
    assert desk.held() == await desk.held_there() == {SPOT: Decimal("0.037"), PERPETUAL: Decimal("-0.037")}
    book = desk.gate.book
    [moved] = [event for event in await desk.log.events("paper:test") if isinstance(event, MarginMoved)]
    assert moved.amount == Decimal("422.07")  # 0.013 at 32,499.9 less 0.1 %
    short = book.positions[PERPETUAL, BTC, "cash-carry"]
    assert short.margin == Decimal("740.00") - Decimal("0.0037") + moved.amount
    end = liquidation_price(short.side, short.quantity, short.cost, short.margin)
    assert end is not None
    assert end / 32_500 > Decimal("1.5")
    assert book.open_intents == {}
    assert find_broken_invariant(book) is None
    assert not await desk.gate.reconcile()
    desk.show(32_600)
    await desk.gate.advance()
    assert desk.held()[SPOT] == Decimal("0.037")
    desk.show(42_000)  # beyond where it would have been liquidated with the margin of before
    await desk.gate.advance()
    assert desk.held() == await desk.held_there() == {SPOT: Decimal("0.027"), PERPETUAL: Decimal("-0.027")}


async def test_money_is_moved_once_though_the_process_ends_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    desk.show(32_500)
    append, appended = MemoryTradeLog.append, []

    async def die(log: MemoryTradeLog, account: str, events: Any, after: int) -> None:
        await append(log, account, events, after)
        if any(isinstance(event, MarginMoved) for event in events):
            appended.append(account)
            raise Killed

    monkeypatch.setattr(MemoryTradeLog, "append", die)
    for _ in range(3):
        with pytest.raises(Killed):
            await desk.gate.advance()
        desk.gate = desk.open_gate()
    await desk.gate.advance()
    assert appended == [venue_account("paper:test", SPOT), venue_account("paper:test", PERPETUAL), "paper:test"]
    assert not await desk.gate.reconcile()
    for exchange in (SPOT, PERPETUAL):
        assert (await desk.open_venue(exchange).balance()).total == desk.gate.book.venue_balance(exchange)
    book = trace_account(await desk.log.events("paper:test"))
    assert (
        book.positions[PERPETUAL, BTC, "cash-carry"].margin
        == desk.gate.book.positions[PERPETUAL, BTC, "cash-carry"].margin
    )


async def test_where_money_cannot_be_moved_both_legs_go(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*args: Any) -> None:
        raise Refused("the key may not transfer")

    desk = HedgeHarness()
    await desk.open_hedge()
    monkeypatch.setattr(PaperFunds, "add_margin", refuse)
    desk.show(32_500)
    await desk.gate.advance()
    await desk.gate.advance()
    assert desk.held() == await desk.held_there() == {}
    assert not await desk.gate.reconcile()
    states = {each.intent.kind: each.state for each in desk.gate.book.intents.values()}
    assert (states[IntentKind.CUT], states[IntentKind.CLOSE]) == ("refused", "done")


async def test_what_is_too_small_to_be_cut_is_closed() -> None:
    desk = HedgeHarness()
    await desk.open_hedge("0.005")
    desk.show(32_500)
    await desk.gate.advance()
    assert desk.held() == {}


# -- with money


async def open_live_hedge(**named: Any) -> tuple[HedgeHarness, str]:
    desk = HedgeHarness(live=True)
    sleeve = MandatedSleeve(name="cash-carry", share=Decimal("0.5"), max_drawdown=Decimal("0.1"))
    fields: dict[str, Any] = {
        "symbols": (BTC,),
        "venues": (SPOT, PERPETUAL),
        "max_margin_per_trade_usd": Decimal(10),
        "max_margin_per_day_usd": Decimal(10),
        "max_daily_loss_usd": Decimal(100),
        "sleeves": (sleeve,),
        "granted": desk.at,
        "expires": desk.at + DAY_MS,
    }
    await desk.gate.grant_mandate(Mandate(**{**fields, **named}))
    moved: dict[str, Any] = {
        "key": "k",
        "source": "debate",
        "target": "cash-carry",
        "currency": "USD",
        "amount": Decimal(500),
    }
    await desk.log.append(ACCOUNT, [SleeveTransferred(at=Millis(desk.at), **moved)], desk.gate.book.count)
    return desk, (await desk.open_hedge()).state


async def test_two_legs_are_opened_with_money_where_the_mandate_names_the_sleeve() -> None:
    desk, state = await open_live_hedge()
    assert state == "open"
    assert desk.held() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}
    book = desk.gate.book
    assert book.mandate is not None
    assert {tracked.intent.mandate for tracked in book.intents.values()} == {book.mandate.hash}
    assert book.shares.to_record() == {"cash-carry": Decimal("0.5"), "debate": Decimal("0.5")}


@pytest.mark.parametrize(
    "named",
    [
        {"sleeves": ()},
        {"sleeves": (MandatedSleeve(name="trend", share=Decimal("0.5"), max_drawdown=Decimal("0.3")),)},
        {"venues": (PERPETUAL,)},
        {"symbols": (Symbol("ETHUSDT"),)},
    ],
)
async def test_two_legs_with_money_need_a_mandate_that_names_them(named: dict[str, Any]) -> None:
    desk, state = await open_live_hedge(**named)
    assert state == "refused"
    assert desk.held() == {}


async def test_a_mandate_that_ends_adds_nothing_and_keeps_nobody_from_closing() -> None:
    desk, _ = await open_live_hedge()
    desk.show(20_000, later=DAY_MS)
    await desk.gate.advance()
    assert desk.held() == {SPOT: QUANTITY, PERPETUAL: -QUANTITY}
    await desk.gate.close(BTC, sleeve=CASH_CARRY)
    assert desk.held() == {}
    assert (await desk.open_hedge(request="req_2")).state == "refused"
