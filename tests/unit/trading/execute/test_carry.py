"""`cash-carry` toward a target: opened, grown, cut and closed as two legs of one position, each change once; what is
too small, what cannot be paid, a market that ends, and a mandate that does not name it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.trading.execute.test_hedges import FaultyVenue, Killed, break_venue, is_settled, let_settle
from tests.wire.hedges import PERPETUAL, SPOT, HedgeHarness
from tests.wire.order_gate import BTC
from tests.wire.paper_venue import ACCOUNT
from zuno.adapters.venues.paper.tape import Mark
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.execute.carry import CARRY_LEVERAGE
from zuno.trading.execute.intents import LEGS_SETTLE_MS
from zuno.trading.execute.order_gate import ExecutionResult, OrderGate
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE, TREND
from zuno.trading.model.trade_events import (
    ExitReason,
    IntentKind,
    Mandate,
    MandatedSleeve,
    MarginMoved,
    SleevesSet,
    SleeveTransferred,
    TradeEvent,
)
from zuno.trading.rules.margin import liquidation_price
from zuno.trading.service.daily_targets import set_carry_targets
from zuno.trading.service.trade_desk import find_broken_invariant
from zuno.trading.strategies.scaler import SizedTarget

D = Decimal
LOT = D("0.001")
DAY = Millis(20_000 * DAY_MS)


async def open_sleeve(carry: str = "2000", trend: str = "", **named: Any) -> HedgeHarness:
    """An account whose sleeves have so much."""
    desk = HedgeHarness(**named)
    at, amounts = Millis(desk.at), {CASH_CARRY: carry, TREND: trend}
    given: list[TradeEvent] = [SleevesSet(at=at, shares={CASH_CARRY: D("0.5"), DEBATE: D("0.5")})]
    for name, amount in amounts.items():
        if amount:
            to = {"key": f"give-{name}", "source": DEBATE, "target": name, "currency": "USD", "amount": D(amount)}
            given.append(SleeveTransferred.model_validate({"at": at, **to}))
    await desk.log.append(ACCOUNT, given, 0)
    return desk


async def set_carry(desk: HedgeHarness, weight: str, day: int = 0) -> ExecutionResult:
    return await desk.gate.set_carry(BTC, PERPETUAL, D(weight), Millis(DAY + day * DAY_MS))


def short_of(desk: HedgeHarness) -> Decimal:
    return -desk.held().get(PERPETUAL, D(0))


async def check_wallets(desk: HedgeHarness) -> None:
    assert not await desk.gate.reconcile()
    for exchange in (SPOT, PERPETUAL):
        if exchange in desk.gate.book.venues:
            assert (await desk.open_venue(exchange).balance()).total == desk.gate.book.venue_balance(exchange)


# -- toward a target


async def test_a_weight_is_a_share_of_the_sleeve_for_each_leg() -> None:
    desk = await open_sleeve()
    assert (await set_carry(desk, "0.75")).state == "open"
    # 0.075 would be 1,500 dollars; with a margin of a third and fees the sleeve can pay a lot less.
    assert desk.held() == {SPOT: D("0.074"), PERPETUAL: D("-0.074")}
    short = desk.gate.book.positions[PERPETUAL, BTC, CASH_CARRY]
    assert short.leverage == CARRY_LEVERAGE
    end = liquidation_price(short.side, short.quantity, short.cost, short.margin)
    assert end is not None
    assert end / 20_000 > D("1.32")
    assert desk.gate.book.sleeve_cash(CASH_CARRY, "USD") >= 0
    await check_wallets(desk)


async def test_the_same_target_of_a_day_is_one_change() -> None:
    desk = await open_sleeve()
    first = await set_carry(desk, "0.3")
    desk.show(16_000)
    assert await set_carry(desk, "0.3") == first
    assert short_of(desk) == D("0.030")
    assert (await set_carry(desk, "0.3", day=1)).state == "open"
    assert short_of(desk) == D("0.037")


async def test_it_grows_and_shrinks_as_one_position() -> None:
    desk = await open_sleeve()
    for day, (weight, quantity) in enumerate([("0.2", "0.020"), ("0.6", "0.059"), ("0.3", "0.029"), ("0.5", "0.049")]):
        desk.show(20_000)
        assert (await set_carry(desk, weight, day)).state == "open"
        assert desk.held() == await desk.held_there() == {SPOT: D(quantity), PERPETUAL: -D(quantity)}
        assert find_broken_invariant(desk.gate.book) is None
        assert len(desk.gate.book.list_hedges()) == 1
        await check_wallets(desk)
    events = await desk.log.events(ACCOUNT)
    assert not any(isinstance(event, MarginMoved) for event in events)
    assert (await set_carry(desk, "0", 9)).state == "closed"
    assert desk.held() == await desk.held_there() == {}
    assert {trade.reason for trade in desk.gate.book.closed} == {ExitReason.DECISION}
    assert len(desk.gate.book.closed) == 2
    await check_wallets(desk)


@pytest.mark.parametrize(
    ("held", "wanted", "state"),
    [("0.05", "0.0509", "held"), ("0.05", "0.0492", "held"), ("0.05", "0.053", "held"), ("0.05", "0.047", "held"),
     ("0.05", "0.056", "open"), ("0.05", "0.044", "open")],
)  # fmt: skip
async def test_what_is_too_small_is_not_traded(held: str, wanted: str, state: str) -> None:
    """Under 2 % of a leg; and under the hundred dollars that the venue takes at least."""
    desk = HedgeHarness()
    await desk.open_hedge(held)
    result = await desk.open_hedge(wanted, "req_2")
    assert result.state == state
    assert bool(result.reason) == (state != "open")
    assert desk.held()[SPOT] == D(wanted if state == "open" else held)


async def test_what_could_never_be_sold_is_not_left() -> None:
    desk = HedgeHarness()
    await desk.open_hedge("0.05")
    assert (await desk.open_hedge("0.004", "req_2")).state == "closed"
    assert desk.held() == await desk.held_there() == {}


async def test_nothing_is_changed_while_a_change_is_worked() -> None:
    desk = break_venue(PERPETUAL, "", "lost before")
    await desk.open_hedge()
    await desk.open_hedge("0.06", "req_2")
    assert desk.gate.book.open_intents
    with pytest.raises(Unavailable):
        await desk.open_hedge("0.03", "req_3")


async def test_no_more_is_begun_than_both_legs_can_pay() -> None:
    desk = HedgeHarness()
    assert (await desk.open_hedge("0.6")).state == "open"  # 12,000 dollars, where 2,000 are
    assert desk.held() == {SPOT: D("0.099"), PERPETUAL: D("-0.099")}
    desk.show(20_000)
    assert (await desk.open_hedge("0.6", "req_2")).state == "refused"
    await check_wallets(desk)


async def test_without_cash_of_its_own_it_opens_nothing_and_does_not_grow() -> None:
    desk = HedgeHarness()
    assert (await set_carry(desk, "0.75")).state == "held"
    assert not desk.gate.book.intents
    desk = await open_sleeve()
    await set_carry(desk, "0.75")
    desk.show(15_000)
    assert (await set_carry(desk, "0.75", 1)).state == "refused"
    assert desk.gate.book.sleeve_cash(CASH_CARRY, "USD") >= 0


@pytest.mark.parametrize("faults", [("", "rejected", "rejected", "rejected"), ("", "lost before", "lost before")])
async def test_growth_that_one_leg_refuses_undoes_both_or_comes_to_be(faults: tuple[str, ...]) -> None:
    desk = break_venue(PERPETUAL, *faults)
    await desk.open_hedge()
    await desk.open_hedge("0.08", "req_2")
    await let_settle(desk)
    assert desk.held() == await desk.held_there()
    assert is_settled(desk.held())
    assert {trade.reason for trade in desk.gate.book.closed} <= {ExitReason.UNDONE}
    await check_wallets(desk)


async def test_the_day_carries_out_its_targets_and_asks_again_where_it_could_not() -> None:
    desk = await open_sleeve()
    wanted = {"BTCUSDT": SizedTarget(0.3, 1.0, "funding of 7 days at 9.1 % a year")}
    [line] = await set_carry_targets(desk.gate, wanted, DAY)
    assert (line.sleeve, line.market, line.state, line.weight) == (CASH_CARRY, "BTCUSDT", "open", 0.3)
    assert "9.1 %" in line.why
    assert short_of(desk) == D("0.030")
    desk.wraps = {SPOT: lambda venue: FaultyVenue(venue, [], [True])}
    desk.gate = desk.open_gate()
    [line] = await set_carry_targets(desk.gate, wanted, Millis(DAY + DAY_MS))
    assert line.state == "waiting"


# -- what ends it


async def test_a_market_that_ends_is_left_with_both_legs() -> None:
    desk = await open_sleeve()
    await set_carry(desk, "0.5")

    def end(venue: Any) -> Any:
        return EndingVenue(venue)

    desk.wraps = {SPOT: end}
    desk.gate = desk.open_gate()
    desk.show(20_000)
    assert (await set_carry(desk, "0.5", 1)).state == "closed"
    assert desk.held() == await desk.held_there() == {}
    assert (await set_carry(desk, "0.5", 2)).state == "refused"


class EndingVenue(FaultyVenue):
    """Lists the market no more."""

    def __init__(self, venue: Any) -> None:
        super().__init__(venue, [])

    def __getattr__(self, name: str) -> Any:
        return self._filters if name == "filters" else super().__getattr__(name)

    async def _filters(self, symbol: Any) -> Any:
        return (await self.venue.filters(symbol)).model_copy(update={"trading": False})


@pytest.mark.parametrize("act", ["kill", "one leg", "symbol"])
async def test_whoever_ends_one_leg_ends_both_after_growth(act: str) -> None:
    desk = HedgeHarness()
    await desk.open_hedge("0.03")
    await desk.open_hedge("0.05", "req_2")
    gate = desk.gate
    if act == "kill":
        await gate.kill()
    else:
        await gate.close(gate.book.positions[PERPETUAL, BTC, CASH_CARRY].id if act == "one leg" else BTC)
    assert desk.held() == await desk.held_there() == {}
    await check_wallets(desk)


# -- margin


async def test_the_mark_alone_counts_and_the_boundary_is_a_quarter() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    short = desk.gate.book.positions[PERPETUAL, BTC, CASH_CARRY]
    end = liquidation_price(short.side, short.quantity, short.cost, short.margin)
    assert end is not None
    boundary = float(end / D("1.25"))
    desk.show(60_000)  # a wick of the book, of +200 %
    desk.tapes[PERPETUAL].market[BTC][-1] = Mark(Millis(desk.at), boundary - 1)
    await desk.gate.advance()
    assert desk.held() == {SPOT: D("0.05"), PERPETUAL: D("-0.05")}
    desk.show(20_000)  # the book is back, the mark is not
    desk.tapes[PERPETUAL].market[BTC][-1] = Mark(Millis(desk.at), boundary + 1)
    await desk.gate.advance()
    assert desk.held() == {SPOT: D("0.037"), PERPETUAL: D("-0.037")}


async def test_where_no_margin_can_be_added_both_legs_go_at_once() -> None:
    desk = HedgeHarness()
    await desk.open_hedge()
    desk.gate = OrderGate(replace(desk.gate._account.gate, funds=None))
    desk.show(32_500)
    await desk.gate.advance()
    assert desk.held() == await desk.held_there() == {}
    assert {tracked.intent.kind for tracked in desk.gate.book.intents.values()} == {IntentKind.OPEN, IntentKind.CLOSE}
    await check_wallets(desk)


async def test_a_cut_for_a_target_moves_no_money_and_one_for_margin_does() -> None:
    desk = await open_sleeve()
    await set_carry(desk, "0.6")
    desk.show(20_000)
    await set_carry(desk, "0.4", 1)
    assert not [event for event in await desk.log.events(ACCOUNT) if isinstance(event, MarginMoved)]
    desk.show(21_400)
    await desk.gate.advance()
    assert short_of(desk) == D("0.029")
    [moved] = [event for event in await desk.log.events(ACCOUNT) if isinstance(event, MarginMoved)]
    assert moved.amount == D("0.010") * D("21399.9") * D("0.999") // D("0.01") * D("0.01")
    await check_wallets(desk)


# -- with money


def grant(desk: HedgeHarness, *names: str, **named: Any) -> Mandate:
    sleeves = tuple(MandatedSleeve(name=name, share=D("0.5"), max_drawdown=D("0.3")) for name in names)
    caps = dict.fromkeys(("max_margin_per_trade_usd", "max_margin_per_day_usd"), D(1_400))
    now = desk.at
    return Mandate(
        **{"symbols": (BTC,), "venues": (SPOT, PERPETUAL), "max_daily_loss_usd": D(500), **caps, **named},
        sleeves=sleeves,
        granted=Millis(now),
        expires=Millis(now + DAY_MS),
    )


async def open_live(*names: str, **named: Any) -> HedgeHarness:
    desk = await open_sleeve()
    desk.gate = OrderGate(replace(desk.gate._account.gate, live=True))
    if names:
        await desk.gate.grant_mandate(grant(desk, *names, **named))
    return desk


@pytest.mark.parametrize(
    ("names", "named"),
    [((), {}), (("trend",), {}), ((CASH_CARRY,), {"venues": (PERPETUAL,)})],
)
async def test_with_money_a_mandate_names_it(names: tuple[str, ...], named: Any) -> None:
    desk = await open_live(*names, **named)
    assert (await set_carry(desk, "0.5")).state == "refused"
    assert desk.held() == {}


async def test_with_money_it_cites_the_mandate_and_leaves_without_one() -> None:
    desk = await open_live(CASH_CARRY)
    assert (await set_carry(desk, "0.5")).state == "open"
    book = desk.gate.book
    assert book.mandate is not None
    assert {tracked.intent.mandate for tracked in book.intents.values()} == {book.mandate.hash}
    desk.at += 2 * DAY_MS
    desk.show(20_000)
    assert (await set_carry(desk, "0.7", 1)).state == "refused"
    assert (await set_carry(desk, "0.3", 1)).state == "open"
    assert (await set_carry(desk, "0", 2)).state == "closed"


# -- whatever happens

faults = st.lists(
    st.sampled_from(["", "", "", "rejected", "lost before", "lost after", "killed before", "killed after"]), max_size=10
)
weights = st.lists(st.sampled_from(["0.1", "0.3", "0.5", "0.75", "0", "close", "21400", "19000"]), max_size=6)


@settings(max_examples=40, deadline=None)
@given(faults, faults, weights)
async def test_whatever_happens_on_the_way_to_targets_no_leg_is_left_alone(
    at_spot: list[str], at_perpetuals: list[str], acts: list[str]
) -> None:
    desk = await open_sleeve()
    for exchange, left in ((SPOT, [*at_spot]), (PERPETUAL, [*at_perpetuals])):
        desk.wraps = {**desk.wraps, exchange: lambda venue, left=left: FaultyVenue(venue, left)}
    desk.gate = desk.open_gate()

    async def survive(act: Callable[[OrderGate], Any]) -> None:
        for _ in range(2):  # asked again, it is the same change
            try:
                await act(desk.gate)
            except Killed:
                desk.gate = desk.open_gate()
            except (Unavailable, NotFound, Refused):
                pass

    price = 20_000
    for day, act in enumerate(acts):
        if act == "close":
            await survive(lambda gate: gate.close(BTC, sleeve=CASH_CARRY))
        elif len(act) > 4:
            price = int(act)
        else:
            await survive(lambda gate, act=act, day=day: gate.set_carry(BTC, PERPETUAL, D(act), Millis(DAY + day)))  # type: ignore[misc]
        for _ in range(2):
            desk.show(price, later=LEGS_SETTLE_MS // 2)
            await survive(lambda gate: gate.advance())
    for _ in range(14):
        desk.show(price, later=LEGS_SETTLE_MS // 2)
        await survive(lambda gate: gate.advance())
    assert not await desk.gate.reconcile()
    assert desk.held() == await desk.held_there()
    assert is_settled(desk.held())
    assert find_broken_invariant(desk.gate.book) is None
    assert not desk.gate.book.open_intents
    await check_wallets(desk)
