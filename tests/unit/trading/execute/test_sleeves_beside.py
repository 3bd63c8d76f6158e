"""Carry, trend and the debate at the same spot and perpetual, in whatever order they trade: legs stay matched, nobody
sells what is another's, and wallets are as the book foresees."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.trading.execute.test_carry import check_wallets, open_sleeve
from tests.unit.trading.execute.test_hedges import LOT
from tests.wire.hedges import PERPETUAL, SPOT, HedgeHarness
from tests.wire.order_gate import BTC, card, rule
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import LEGS_SETTLE_MS, RulingToExecute
from zuno.trading.execute.targets import TargetPosition
from zuno.trading.model.cycle import Call, Leg, Style, Target
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE, TREND
from zuno.trading.rules.margin import liquidation_price

D = Decimal


async def debate(desk: HedgeHarness, venue: Venue, side: Side | None, price: int, number: int) -> None:
    """The debate rules: a bracket of 20 % each way, or out."""
    at, sign, quantity = Millis(desk.at), 1 if side is Side.LONG else -1, 0.012
    legs: tuple[Leg, ...] = ()
    if side is not None:
        size = dict.fromkeys(("margin", "notional"), quantity * price)
        legs = (Leg(venue=venue, side=side, currency="USD", leverage=1.0, quantity=quantity, **size),)
    call = Call.CANCEL_AND_CLOSE if side is None else Call.LONG if side is Side.LONG else Call.SHORT
    opened = None if side is None else card(side, price, price * (1 - sign * 0.2), price * (1 + sign * 0.2), quantity)
    named: dict[str, Any] = {"card": opened, "target_exchange": None if side is None else Target.BINANCE}
    ruling = rule(call, at, execution_style=Style.MOMENTUM_SNIPER, legs=legs, **named)
    mark = D(price)
    await desk.gate.execute(
        RulingToExecute(
            f"run_{number}", BTC, Mode.SWING, at, ruling, Millis(at + 15 * MINUTE_MS), mark, mark / 100
        )
    )  # fmt: skip


async def follow_trend(desk: HedgeHarness, target: tuple[Venue, str] | None, number: int) -> None:
    """Trend is to hold so much, and nothing else."""
    wanted = [] if target is None else [TargetPosition(target[0], BTC, D(target[1]))]
    await desk.gate.set_targets({TREND: wanted}, Millis(number), f"req_{number}")


def check_sleeves(desk: HedgeHarness, price: int) -> None:
    book = desk.gate.book
    marks = {(exchange, BTC): D(price) for exchange in (SPOT, PERPETUAL)}
    whole = sum((book.equity(venue, {BTC: D(price)}) for venue in book.venues if venue.currency == "USD"), D(0))
    assert sum((book.sleeve_equity(name, "USD", marks) for name in book.sleeves), D(0)) == whole
    for name in (*book.sleeves, TREND):
        assert sum(book.sleeve_balances(name, "USD").values()) == 0


RULINGS = [(PERPETUAL, Side.LONG), (PERPETUAL, Side.SHORT), (SPOT, Side.LONG), (SPOT, None)]
acts = st.lists(
    st.one_of(
        st.sampled_from([19_000, 20_000, 21_300, 22_500, "wait"]),
        st.tuples(st.just(CASH_CARRY), st.sampled_from(["0.2", "0.45", "0.7", "0"])),
        st.tuples(st.just(DEBATE), st.sampled_from(RULINGS)),
        st.tuples(st.just(TREND), st.sampled_from([(SPOT, "0.008"), (SPOT, "0.02"), (PERPETUAL, "0.012"), None])),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(acts)
@example([(CASH_CARRY, "0.2"), (TREND, (SPOT, "0.02")), "wait", (TREND, (SPOT, "0.008"))])
async def test_sleeves_trade_beside_each_other(acts: list[Any]) -> None:
    desk = await open_sleeve("1500", "400")
    price = 20_000
    for number, act in enumerate(acts):
        match act:
            case int():
                price = act
            case ("cash-carry", weight):
                await desk.gate.set_carry(BTC, PERPETUAL, D(weight), Millis(number))
            case ("debate", (venue, side)):
                await debate(desk, venue, side, price, number)
            case "wait":
                desk.show(price, later=31 * MINUTE_MS)  # trend waits at the touch, then takes
            case ("trend", target):
                await follow_trend(desk, target, number)
        desk.fund(0.0001)
        for _ in range(3):
            desk.show(price, later=LEGS_SETTLE_MS // 2)
            await desk.gate.advance()
        book = desk.gate.book
        held = [book.position(exchange, BTC, CASH_CARRY) for exchange in (SPOT, PERPETUAL)]
        assert abs(sum((leg.signed for leg in held if leg is not None), D(0))) <= LOT
        check_sleeves(desk, price)
        await check_wallets(desk)
        assert not book.locks
        assert not book.is_worked(BTC, CASH_CARRY)
    desk.show(price)
    await desk.gate.kill()
    assert desk.gate.book.positions == {}
    assert await desk.held_there() == {}
    await check_wallets(desk)


BESIDE = [[(DEBATE, Side.SHORT)], [(TREND, PERPETUAL)], [(TREND, PERPETUAL), (DEBATE, Side.SHORT)]]


@pytest.mark.parametrize("others", BESIDE)
async def test_a_liquidation_of_what_sleeves_share_is_booked_as_the_parts_of_each(others: list[Any]) -> None:
    """The venue has their net position alone. Whose part ends with it is the book's to say; what is then left of a
    pair goes, though it is too small for an order."""
    desk = await open_sleeve("1500", "400")
    await desk.gate.set_carry(BTC, PERPETUAL, D("0.2"), Millis(1))
    for number, (sleeve, what) in enumerate(others):
        if sleeve == DEBATE:
            await debate(desk, PERPETUAL, what, 20_000, number)
        else:
            await follow_trend(desk, (what, "0.008"), number)
    for _ in range(2):  # trend waits at the touch, then takes
        desk.show(20_000, later=31 * MINUTE_MS)
        await desk.gate.advance()
    desk.show(30_000)  # in one step: no look came between
    for _ in range(4):
        desk.show(30_000, later=LEGS_SETTLE_MS)
        await desk.gate.advance()
    check_sleeves(desk, 30_000)
    await check_wallets(desk)
    book = desk.gate.book
    assert not book.locks
    assert not book.open_intents
    assert not [place for place in book.positions if place[2] == CASH_CARRY]


async def test_the_venues_own_liquidation_counts_where_sleeves_share_a_perpetual() -> None:
    """The debate's long ends at a loss: at the venue the short is now sold lower on average, and liquidated sooner."""
    desk = await open_sleeve("1500", "400")
    await desk.gate.set_carry(BTC, PERPETUAL, D("0.5"), Millis(1))
    before = desk.held()
    await debate(desk, PERPETUAL, Side.LONG, 20_000, 1)
    desk.show(16_500)
    await debate(desk, PERPETUAL, None, 16_500, 2)
    assert desk.held() == before
    short = desk.gate.book.positions[PERPETUAL, BTC, CASH_CARRY]
    own = liquidation_price(short.side, short.quantity, short.cost, short.margin)
    [there] = await desk.open_venue(PERPETUAL).positions()
    assert own is not None
    assert there.liquidation is not None
    assert there.liquidation < D("1.25") * 20_500 < own
    desk.show(20_500)
    await desk.gate.advance()
    assert 0 < -desk.held()[PERPETUAL] < -before[PERPETUAL]
    await check_wallets(desk)
