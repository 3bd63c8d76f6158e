"""Sleeves trade toward targets: the difference alone, once, passive first, crossed where sleeves meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from tests.wire.hedges import LIMITS, PERPETUAL, SPOT, HedgeHarness
from tests.wire.order_gate import BTC, card, rule
from tests.wire.paper_venue import ACCOUNT, START
from zuno.adapters.venues.paper.venue import PaperFunds, PaperVenue
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.targets import TargetPosition, TargetResult, stop_distance
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, Leg, Style, Target
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Mode, Side
from zuno.trading.model.orders import OrderStatus, OrderType
from zuno.trading.model.sleeves import DEBATE, DEBATE_ALONE, NEW_PAPER, TREND, SleeveShares, parse_sleeves
from zuno.trading.model.trade_events import (
    AccountOpened,
    IntentKind,
    Mandate,
    MandatedSleeve,
    Protection,
    SleevesSet,
    SleeveTransferred,
)
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.rules.sleeve_funds import list_places, plan_opening
from zuno.trading.service.daily_targets import DailyTargets
from zuno.trading.service.trade_desk import find_broken_invariant
from zuno.trading.strategies.catalogue import STRATEGIES
from zuno.trading.strategies.port import MarketHistory, StrategyView
from zuno.trading.strategies.scaler import SizedTarget, size_targets

D = Decimal
OWN = "own"
DAY = Millis(START)


class World(HedgeHarness):
    """Both venues with $2,000; trend and a strategy of the owner's have $1,500 each."""

    async def open(self) -> World:
        shares = {TREND: D("0.375"), OWN: D("0.375"), DEBATE: D("0.25")}
        at, key = Millis(START), "opening"
        await self.log.append(
            ACCOUNT,
            [
                AccountOpened(at=at, cash={PERPETUAL: D(2_000), SPOT: D(2_000)}),
                SleevesSet(at=at, shares=shares),
                *(
                    SleeveTransferred(
                        at=at, key=f"{key}-{sleeve}", source=DEBATE, target=sleeve, currency="USD", amount=D(1_500)
                    )
                    for sleeve in (TREND, OWN)
                ),
            ],
            0,
        )
        return self

    async def set(
        self,
        quantity: object,
        sleeve: str = TREND,
        at: Venue = SPOT,
        decided: Millis = DAY,
        **more: Any,
    ) -> TargetResult:
        target = TargetPosition(at, BTC, D(str(quantity)), **more)
        return (await self.gate.set_targets({sleeve: [target]}, decided, "run_targets"))[0]

    async def set_several(self, quantities: Mapping[str, object], at: Venue = SPOT) -> tuple[TargetResult, ...]:
        wanted = {name: [TargetPosition(at, BTC, D(str(quantity)))] for name, quantity in quantities.items()}
        return await self.gate.set_targets(wanted, DAY, "run_targets")

    async def wait(self, minutes: int, price: object = 20_000) -> None:
        """The market goes on at a price, and the desk looks every minute."""
        for _ in range(minutes):
            self.show(price, later=MINUTE_MS)
            await self.gate.advance()

    def of(self, sleeve: str, at: Venue = SPOT) -> Decimal:
        trade = self.gate.book.position(at, BTC, sleeve)
        return D(0) if trade is None else trade.signed

    async def check(self) -> None:
        """The book is the venues', in positions and in money."""
        assert await self.gate.reconcile() == ()
        assert find_broken_invariant(self.gate.book) is None
        held = dict[Venue, Decimal]()
        for (exchange, _, _), trade in self.gate.book.positions.items():
            held[exchange] = held.get(exchange, D(0)) + trade.signed
        assert {at: quantity for at, quantity in held.items() if quantity} == await self.held_there()


@pytest.fixture
async def world() -> World:
    return await World().open()


async def test_an_increase_waits_at_the_touch_and_takes_what_is_left_after_half_an_hour(world: World) -> None:
    result = await world.set("0.03")
    assert result.state == "working"
    waiting = [order.request for order in world.gate.book.open_orders.values()]
    assert [(order.type, order.price, order.time_in_force.value) for order in waiting] == [
        (OrderType.LIMIT, D("19999.9"), "POST_ONLY")
    ]
    await world.wait(28)
    assert not world.of(TREND)
    await world.wait(4)
    trade = world.gate.book.position(SPOT, BTC, TREND)
    assert trade is not None
    assert trade.quantity > D("0.0299")
    assert (trade.stop, trade.target) == (D("15000.0"), None)
    assert [order.request.type for order in world.gate.book.open_orders.values()] == [OrderType.STOP_MARKET]
    assert world.gate.book.intents[result.intent or ""].state == "done"
    await world.check()


async def test_the_same_target_again_orders_nothing(world: World) -> None:
    first = await world.set("0.03")
    again = await world.set("0.03")
    assert again.intent == first.intent
    world.gate = world.open_gate()
    await world.set("0.03")
    assert len(world.gate.book.orders) == 1
    await world.wait(32)
    assert (await world.set("0.03")).state == "done"
    assert len(world.gate.book.intents) == 1


async def test_another_target_replaces_the_one_that_is_worked(world: World) -> None:
    first = await world.set("0.03")
    second = await world.set("0.02")
    assert world.gate.book.intents[first.intent or ""].state == "expired"
    assert second.state == "working"
    await world.wait(32)
    assert D("0.0199") < world.of(TREND) < D("0.02001")
    await world.check()


@pytest.mark.parametrize("at", [SPOT, PERPETUAL])
async def test_a_smaller_target_cuts_and_the_stop_stands_for_the_rest(world: World, at: Venue) -> None:
    await world.set("0.04", at=at)
    await world.wait(32)
    result = await world.set("0.02", at=at, decided=Millis(world.at))
    tracked = world.gate.book.intents[result.intent or ""]
    assert tracked.intent.kind is IntentKind.CUT
    await world.gate.advance()
    waiting = {order.purpose: order.left for order in world.gate.book.open_orders.values()}
    assert set(waiting) == {"exit", "stop"}
    if at is SPOT:  # both share one balance
        assert sum(waiting.values()) <= world.of(TREND)
    await world.wait(5)
    assert find_broken_invariant(world.gate.book) is None
    await world.wait(28)
    assert D("0.0199") < world.of(TREND, at) < D("0.02005")
    assert tracked.state == "done"
    stops = [order for order in world.gate.book.open_orders.values() if order.purpose == "stop"]
    assert [order.left for order in stops] == [world.of(TREND, at) // D("0.00001") * D("0.00001")]
    await world.check()


async def test_zero_closes_and_what_is_not_named_too(world: World) -> None:
    await world.set("0.03")
    await world.wait(32)
    result = (await world.gate.set_targets({TREND: []}, Millis(world.at), "run_targets"))[0]
    assert result.state == "done"
    assert not world.gate.book.positions
    assert [summary.sleeve for summary in world.gate.book.closed] == [TREND]
    await world.check()


async def test_what_is_bought_of_another_sleeve_is_crossed_and_only_the_rest_is_ordered(world: World) -> None:
    await world.set("0.04")
    await world.wait(32)
    before = await world.held_there()
    orders = len(world.gate.book.orders)
    trend, own = await world.set_several({TREND: "0.01", OWN: "0.03"})
    assert (trend.state, own.state) == ("done", "done")
    assert await world.held_there() == before
    assert D("0.0099") < world.of(TREND) < D("0.0101")
    assert D("0.0298") < world.of(OWN) <= D("0.03")
    new = [order.request.type for order in [*world.gate.book.orders.values()][orders:]]
    assert set(new) == {OrderType.STOP_MARKET}
    await world.check()


async def test_a_sleeve_that_ends_sells_to_one_that_begins(world: World) -> None:
    await world.set("0.02")
    await world.wait(32)
    await world.set_several({TREND: 0, OWN: "0.03"})
    assert not world.of(TREND)
    assert [summary.reason.value for summary in world.gate.book.closed] == ["decision"]
    await world.wait(32)
    assert D("0.0298") < world.of(OWN) <= D("0.03")
    await world.check()


async def test_opposite_sides_of_a_perpetual_are_watched_and_net(world: World) -> None:
    await world.set_several({TREND: "0.03", OWN: "-0.03"}, PERPETUAL)
    assert (world.of(TREND, PERPETUAL), world.of(OWN, PERPETUAL)) == (D("0.03"), D("-0.03"))
    assert not world.gate.book.orders
    await world.check()
    await world.wait(1, 26_000)  # beyond the short's stop
    await world.wait(1, 26_000)
    assert (world.of(TREND, PERPETUAL), world.of(OWN, PERPETUAL)) == (D("0.03"), D(0))
    await world.check()


async def test_a_difference_below_the_least_order_or_within_the_band_is_not_ordered(world: World) -> None:
    await world.set("0.03")
    await world.wait(32)
    for quantity, band in (("0.0301", 0), ("0.031", 100)):
        result = await world.set(quantity, decided=Millis(world.at), band=D(band))
        assert (result.state, result.intent) == ("held", None)
        assert result.reason
    assert len(world.gate.book.intents) == 1


@pytest.mark.parametrize("quantity", ["NaN", "Infinity", "1e9", "-0.01"])
async def test_a_target_that_cannot_be_is_refused(world: World, quantity: str) -> None:
    result = await world.set(quantity)
    assert result.state == "refused"
    assert not world.gate.book.intents


@pytest.mark.parametrize("apart", ["0", "-0.1", "1"])
async def test_a_target_without_room_for_its_stop_is_refused(world: World, apart: str) -> None:
    result = await world.set("0.03", at=PERPETUAL, stop_distance=D(apart))
    assert result.state == "refused"
    assert not world.gate.book.intents


async def test_a_target_between_two_lots_is_rounded_down(world: World) -> None:
    await world.set("0.0309", at=PERPETUAL)
    assert [order.request.quantity for order in world.gate.book.orders.values()] == [D("0.03")]


async def test_no_more_than_the_sleeve_has_is_ordered(world: World) -> None:
    result = await world.set("0.08")  # $1,600 of $1,500
    assert result.state == "working"
    ordered = sum(order.request.quantity for order in world.gate.book.orders.values())
    assert D("0.07") < ordered < D("0.075")
    assert "free" in result.reason or "free" in world.gate.book.intents[result.intent or ""].intent.left_out


async def test_pause_keeps_increases_back_and_lets_decreases_pass(world: World) -> None:
    await world.set("0.04")
    await world.wait(32)
    await world.gate.pause()
    refused = await world.set("0.06", decided=Millis(world.at))
    assert refused.state == "refused"
    assert Protection.PAUSED.value in refused.reason
    assert (await world.set("0.02", decided=Millis(world.at + 1))).state == "working"
    await world.wait(32)
    assert world.of(TREND) < D("0.0201")


async def test_a_market_without_a_price_is_waited_for_and_named(world: World) -> None:
    await world.set("0.03")
    await world.wait(32)
    world.at += 3_600_000 * 30
    result = (await world.gate.set_targets({TREND: []}, Millis(world.at), "run_targets"))[0]
    assert result.state == "waiting"
    assert "stale" in result.reason


async def test_a_restart_goes_on_with_what_waits(world: World) -> None:
    await world.set("0.03")
    world.gate = world.open_gate()
    await world.wait(32)
    assert world.of(TREND) > D("0.0299")
    assert all(
        order.status in (OrderStatus.FILLED, OrderStatus.CANCELED, OrderStatus.OPEN)
        for order in world.gate.book.orders.values()
    )
    await world.check()


def test_the_disaster_stop_is_at_eight_deviations_or_a_quarter() -> None:
    assert [stop_distance(D(sigma)) for sigma in ("0.01", "0.04", "0.2")] == [D("0.25"), D("0.32"), D("0.9")]


class SleevesWorld(World):
    """A new paper account of `trend:0.6,debate:0.4`."""

    live = False

    def __post_init__(self) -> None:
        opening = plan_opening(NEW_PAPER, (PERPETUAL,), PERPETUAL)
        assert opening is not None
        self.opening = opening
        self.funds = PaperFunds(ACCOUNT, self.log, lambda: Millis(self.at), opening.cash)
        self.move_cash: Any = self.funds.move_cash
        super().__post_init__()

    def open_gate(self) -> OrderGate:
        self.venues = {
            exchange: PaperVenue(
                exchange,
                ACCOUNT,
                self.log,
                self.tapes[exchange],
                self.now,
                Fees().at(exchange),
                latency_ms=0,
                cash=self.opening.cash[exchange],
            )
            for exchange in (PERPETUAL, SPOT)
        }
        return OrderGate(
            GateContext(
                log=self.log,
                account=ACCOUNT,
                venues=self.venues,
                now=lambda: Millis(self.at),
                limits=LIMITS,
                live=self.live,
                funds=self.funds,
                opening=self.opening,
                sleeve_places=partial(list_places, (PERPETUAL,), PERPETUAL),
                move_cash=self.move_cash,
            )
        )

    async def begin(self) -> SleevesWorld:
        await self.gate.advance()
        return self


async def test_a_transfer_moves_money_between_wallets_once_whatever_was_done_before() -> None:
    world = await SleevesWorld().begin()
    await world.gate.transfer(TREND, DEBATE, D(1_000), "req_1")
    world.gate = world.open_gate()
    await world.gate.transfer(TREND, DEBATE, D(1_000), "req_1")
    book = world.gate.book
    assert (book.sleeve_cash(TREND, "USD"), book.sleeve_cash(DEBATE, "USD")) == (D(11_000), D(9_000))
    totals = {at: (await venue.balance()).total for at, venue in world.venues.items()}
    assert totals == {SPOT: D(11_000), PERPETUAL: D(9_000)}
    assert await world.gate.reconcile() == ()
    with pytest.raises(Refused):
        await world.gate.transfer(TREND, DEBATE, D(11_001), "req_2")


async def test_wallets_follow_what_is_written_when_a_process_ends_in_between() -> None:
    world = await SleevesWorld().begin()

    async def die(*move: object) -> D:
        raise Unavailable("the process ended")

    move_cash, world.move_cash = world.move_cash, die
    with pytest.raises(Unavailable):
        await world.open_gate().transfer(TREND, DEBATE, D(1_000), "req_1")
    world.move_cash = move_cash
    world.gate = world.open_gate()
    assert await world.gate.reconcile() == ()
    assert (await world.venues[PERPETUAL].balance()).total == D(9_000)
    assert not world.gate.book.locks


async def test_money_follows_the_shares_as_far_as_it_is_free() -> None:
    world = await SleevesWorld().begin()
    await world.set("0.5")
    await world.wait(32)
    await world.wait(1, 30_000)
    await world.gate.set_shares(SleeveShares(((TREND, D("0.1")), (DEBATE, D("0.9")))))
    await world.gate.restore_shares("month 1")
    await world.gate.restore_shares("month 1")
    book = world.gate.book
    assert book.sleeve_cash(TREND, "USD") < D("0.01")
    assert D(9_900) < book.sleeve_cash(DEBATE, "USD") < D(10_000)
    await world.check()


async def test_a_new_account_begins_in_sleeves_with_the_same_money_at_the_venues() -> None:
    world = await SleevesWorld().begin()
    book = world.gate.book
    assert (book.cash(SPOT), book.cash(PERPETUAL)) == (D(12_000), D(8_000))
    assert (book.sleeve_cash(TREND, "USD"), book.sleeve_cash(DEBATE, "USD")) == (D(12_000), D(8_000))
    assert book.shares == NEW_PAPER
    await world.check()
    await world.set("0.5")
    await world.wait(32)
    world.gate = world.open_gate()
    assert world.of(TREND) == 0  # not read yet
    await world.gate.advance()
    assert world.of(TREND) > D("0.49")
    await world.check()


def test_the_shares_decide_where_the_money_of_a_new_account_lies() -> None:
    upbit = Venue("UPBIT")
    carry = plan_opening(parse_sleeves("cash-carry:0.4,debate:0.6"), (PERPETUAL, upbit), PERPETUAL)
    assert carry is not None
    assert carry.cash == {PERPETUAL: D(14_000), upbit: D(2_000_000), SPOT: D(6_000)}
    assert plan_opening(DEBATE_ALONE, (PERPETUAL, upbit), PERPETUAL) is None
    assert plan_opening(NEW_PAPER, (Venue("HYPERLIQUID"),), Venue("HYPERLIQUID")) is None  # counted in another currency


async def test_what_other_sleeves_add_is_none_of_the_debates_margin_of_the_day() -> None:
    world = await SleevesWorld().begin()
    world.live = True
    world.gate = world.open_gate()
    caps = dict.fromkeys(("max_margin_per_trade_usd", "max_margin_per_day_usd"), D(500))
    named = MandatedSleeve(name=TREND, share=D("0.6"), max_drawdown=D("0.3"))
    until = Millis(world.at + DAY_MS)
    await world.gate.grant_mandate(
        Mandate(
            symbols=(BTC,),
            venues=(SPOT, PERPETUAL),
            max_daily_loss_usd=D(5_000),
            sleeves=(named,),
            granted=Millis(world.at),
            expires=until,
            **caps,
        )
    )
    assert (await world.set("0.3")).state == "working"
    assert (await world.gate.execute(ruling_of(Side.LONG, world.at))).state == "open"
    more = [replace(ruling_of(Side.LONG, world.at), as_of=Millis(world.at - number)) for number in (1, 2)]
    assert [(await world.gate.execute(order)).state for order in more] == ["open", "refused"]


async def test_by_hand_no_sleeve_is_given_more_than_its_mandate_says() -> None:
    world = await SleevesWorld().begin()
    world.live = True
    world.gate = world.open_gate()
    await world.gate.refresh()
    whole = await world.gate.read_capital(TREND) + await world.gate.read_capital(DEBATE)
    share = round(await world.gate.read_capital(TREND) / whole, 2)
    named = MandatedSleeve(name=TREND, share=share + D("0.05"), max_drawdown=D("0.3"))
    caps = dict.fromkeys(("max_margin_per_trade_usd", "max_margin_per_day_usd", "max_daily_loss_usd"), D(500))
    until = Millis(world.at + DAY_MS)
    terms: dict[str, Any] = {"sleeves": (named,), "granted": Millis(world.at), "expires": until, **caps}
    await world.gate.grant_mandate(Mandate(symbols=(BTC,), venues=(SPOT,), **terms))
    await world.gate.transfer(DEBATE, TREND, whole * D("0.03"), "req_1")
    with pytest.raises(Refused):
        await world.gate.transfer(DEBATE, TREND, whole * D("0.03"), "req_2")
    await world.gate.transfer(TREND, DEBATE, whole * D("0.03"), "req_3")


async def test_a_mandate_for_hedges_alone_leaves_the_shares_as_they_are() -> None:
    world = await SleevesWorld().begin()
    world.live = True
    world.gate = world.open_gate()
    await world.gate.refresh()
    before = world.gate.book.shares
    named = MandatedSleeve(name="lp-hedge", share=D("0.2"), max_drawdown=D("0.3"))
    caps = dict.fromkeys(("max_margin_per_trade_usd", "max_margin_per_day_usd", "max_daily_loss_usd"), D(500))
    terms: dict[str, Any] = {"sleeves": (named,), "granted": Millis(world.at), "expires": Millis(world.at + DAY_MS)}
    await world.gate.grant_mandate(Mandate(symbols=(BTC,), venues=(PERPETUAL,), **terms, **caps))
    assert world.gate.book.shares == before
    assert TREND in before


async def test_after_a_mandate_nothing_is_added_and_decreases_and_stops_go_on() -> None:
    world = await SleevesWorld().begin()
    world.live = True
    world.gate = world.open_gate()
    assert "no mandate" in (await world.set("0.3")).reason
    named = MandatedSleeve(name=TREND, share=D("0.6"), max_drawdown=D("0.3"))
    await world.gate.grant_mandate(
        Mandate(
            symbols=(BTC,),
            venues=(SPOT,),
            max_margin_per_trade_usd=D(12_000),
            max_margin_per_day_usd=D(12_000),
            max_daily_loss_usd=D(5_000),
            sleeves=(named,),
            granted=Millis(world.at),
            expires=Millis(world.at + DAY_MS),
        )
    )
    assert (await world.set("0.3")).state == "working"
    await world.wait(32)
    world.show(20_000, later=DAY_MS)
    refused = await world.set("0.4", decided=Millis(world.at))
    assert refused.state == "refused"
    assert (await world.set("0.1", decided=Millis(world.at + 1))).state == "working"
    await world.wait(32)
    assert D("0.099") < world.of(TREND) < D("0.101")
    stop = next(order for order in world.gate.book.open_orders.values() if order.purpose == "stop")
    assert abs(stop.left - world.of(TREND)) < D("0.00002")
    await world.check()


async def test_the_days_targets_of_a_rising_market_are_bought_with_their_stop() -> None:
    world = await SleevesWorld().begin()
    day = Millis(world.at // DAY_MS * DAY_MS)
    begun = [day - (150 - number) * DAY_MS for number in range(150)]
    closes = [10_000 * 1.005**number * (1 + 0.01 * (number % 2)) for number in range(150)]
    history = MarketHistory("BTCUSDT", tuple(begun), tuple(closes))

    async def read_view(at: Millis) -> StrategyView:
        assert at == day
        return StrategyView(at, {history.name: history})

    async def decide(account: str, sleeve: str, view: StrategyView) -> Mapping[str, SizedTarget] | None:
        strategy = STRATEGIES.get(sleeve)
        return None if strategy is None else size_targets(strategy, view)

    targets = DailyTargets(read_view, lambda symbol: SPOT, decide)
    (line,) = await targets.set(world.gate, day, day)
    assert (line.sleeve, line.market, line.state) == (TREND, "BTCUSDT", "working")
    await world.wait(32)
    wanted = D(str(line.weight)) * 12_000 / D(str(closes[-1]))
    assert abs(world.of(TREND) / min(wanted, 12_000 / D(20_050)) - 1) < D("0.01")
    trade = world.gate.book.position(SPOT, BTC, TREND)
    assert trade is not None
    assert trade.stop == D(15_000)
    again = await targets.set(world.gate, day, day)
    assert [line.state for line in again] in (["held"], ["done"])
    await world.check()


# -- one exchange, several sleeves


async def test_a_perpetual_has_one_leverage_whoever_enters_it() -> None:
    world = await World().open()
    await world.set("-0.01", OWN, PERPETUAL)
    await world.wait(32)
    assert (await world.gate.execute(ruling_of(Side.LONG, world.at, leverage=3))).state == "open"
    trade = world.gate.book.position(PERPETUAL, BTC)
    assert trade is not None
    assert (trade.leverage, trade.quantity) == (D(1), D("0.01")), "no more margin than was ruled"
    requests = [order.request for order in world.gate.book.orders.values() if order.request.exchange is PERPETUAL]
    assert {request.leverage for request in requests} == {1}


async def test_what_was_crossed_keeps_the_leverage_of_the_exchange() -> None:
    world = await World().open()
    await world.gate.execute(ruling_of(Side.LONG, world.at, leverage=3))
    await world.set_several({TREND: "0.01", OWN: "-0.01"}, PERPETUAL)
    trades = world.gate.book.positions_at(PERPETUAL, BTC)
    assert {trade.sleeve: trade.leverage for trade in trades} == dict.fromkeys((DEBATE, TREND, OWN), D(3))


async def test_a_loss_of_the_days_before_is_not_lost_at_the_first_target_of_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.unit.trading.execute.test_targets.LIMITS", ProtectionLimits(cooldown_minutes=0))
    monkeypatch.setattr("tests.wire.hedges.LIMITS", ProtectionLimits(cooldown_minutes=0))
    world = await World().open()
    await world.set("0.06")
    await world.wait(33)
    world.show(17_500, later=DAY_MS - world.at % DAY_MS + 30_000)  # nobody looked since midnight
    assert (await world.set("0.07", decided=Millis(world.at))).state == "working"
    assert len(world.gate.book.day_marks) == 2


async def test_money_that_waits_to_be_spent_is_not_given_away() -> None:
    world = await SleevesWorld().begin()
    await world.set("0.5")
    with pytest.raises(Refused):
        await world.gate.transfer(TREND, DEBATE, D(3_000), "req_1")
    assert (await world.set("0.5")).state == "working"


async def test_a_wallet_that_does_not_answer_keeps_nobody_from_getting_out() -> None:
    world = await SleevesWorld().begin()
    await world.set("0.2")
    await world.wait(32)
    move_cash = world.move_cash

    async def fail(*move: object) -> D:
        raise Unavailable("no answer")

    world.move_cash = fail
    world.gate = world.open_gate()
    with pytest.raises(Unavailable):
        await world.gate.transfer(TREND, DEBATE, D(1_000), "req_1")
    await world.gate.kill()
    assert not world.gate.book.positions
    assert world.gate.troubles
    object.__setattr__(world.gate._account.gate, "move_cash", move_cash)
    await world.gate.advance()
    assert not world.gate.troubles
    assert (await world.venues[PERPETUAL].balance()).total == D(9_000)


async def test_a_target_set_again_at_another_price_goes_on_with_what_is_worked(world: World) -> None:
    first = await world.set("0.03", band=D(50))
    await world.wait(20)
    again = await world.set("0.0295", band=D(50))
    assert (again.state, again.intent) == ("working", first.intent)
    other = await world.set("0.02", band=D(50))
    assert other.intent != first.intent


async def test_an_exit_that_the_exchange_refuses_for_margin_is_crossed() -> None:
    class Refusing:
        """Has no margin for what the debate's exit would leave."""

        def __init__(self, venue: Any) -> None:
            self.venue = venue

        def __getattr__(self, name: str) -> Any:
            return getattr(self.venue, name)

        async def place(self, request: Any, expires: Any = None, **named: Any) -> Any:
            if request.type is OrderType.MARKET and not request.reduce_only:
                request = request.model_copy(update={"quantity": D(90)})
            return await self.venue.place(request, expires, **named)

    world = await World(wraps={PERPETUAL: Refusing}).open()
    await world.set("0.01", TREND, PERPETUAL)
    await world.wait(32)
    await world.gate.execute(ruling_of(Side.SHORT, world.at))
    await world.gate.close(BTC, sleeve=DEBATE)
    await world.wait(4)
    assert not world.gate.book.positions
    assert await world.held_there() == {}


async def test_a_transfer_of_money_tells_what_is_moved_by_hand() -> None:
    world = await SleevesWorld().begin()
    world.move_cash = None
    by_hand = await world.open_gate().transfer(TREND, DEBATE, D(1_000), "req_1")
    assert by_hand
    assert "1000" in by_hand[0]


def ruling_of(side: Side, at: int, leverage: int = 1) -> RulingToExecute:
    quantity, price, sign = 0.01 * leverage, 20_000, side.sign
    size = {"margin": quantity * price / leverage, "notional": quantity * price}
    leg = Leg(venue=PERPETUAL, side=side, currency="USD", leverage=leverage, quantity=quantity, **size)
    levels = card(side, price, price * (1 - sign * 0.2), price * (1 + sign * 0.2), quantity)
    named: dict[str, Any] = {"card": levels, "target_exchange": Target.BINANCE, "legs": (leg,)}
    ruling = rule(Call.LONG if sign > 0 else Call.SHORT, Millis(at), execution_style=Style.MOMENTUM_SNIPER, **named)
    until = Millis(at + 15 * MINUTE_MS)
    return RulingToExecute("run_1", BTC, Mode.SWING, Millis(at), ruling, until, D(price), D(200))


async def test_an_owners_weights_are_held_however_small_and_sold_short_at_the_perpetual() -> None:
    world = await World().open()
    await world.gate.refresh()
    day = Millis(world.at // DAY_MS * DAY_MS)
    history = MarketHistory("BTCUSDT", (day - DAY_MS,), (20_000.0,))
    weights: dict[str, float | None] = {TREND: None}

    async def read_view(at: Millis) -> StrategyView:
        return StrategyView(at, {history.name: history})

    async def decide(account: str, sleeve: str, view: StrategyView) -> Mapping[str, SizedTarget] | None:
        weight = weights[sleeve]
        return None if weight is None else {"BTCUSDT": SizedTarget(weight, 1.0, "asked for")}

    daily = DailyTargets(read_view, lambda symbol: SPOT, decide)
    for number, weight in enumerate((-0.3, -0.38, 0.0)):
        weights[OWN] = weight
        capital, later = await world.gate.read_capital(OWN), Millis(day + number)
        (line,) = await daily.set(world.gate, later, later)
        assert (line.sleeve, line.state) == (OWN, "done" if not weight else "working"), line.why
        await world.wait(32)
        wanted = D(str(weight)) * capital / 20_000
        assert abs(world.of(OWN, PERPETUAL) - wanted) <= D("0.001")
        assert not world.of(OWN)
        await world.check()


async def test_a_live_days_last_bar_is_waited_for_within_the_hour() -> None:
    world = await SleevesWorld().begin()
    day, asked = Millis(world.at // DAY_MS * DAY_MS), list[str]()
    history = MarketHistory("BTCUSDT", (day - 3 * DAY_MS, day - 2 * DAY_MS), (10_000.0, 10_000.0))
    gone = MarketHistory("ETHUSDT", (day - 9 * DAY_MS,), (1_000.0,))

    async def read_view(at: Millis) -> StrategyView:
        return StrategyView(at, {history.name: history, gone.name: gone})

    async def decide(account: str, sleeve: str, view: StrategyView) -> Mapping[str, SizedTarget] | None:
        return None

    async def refresh(symbol: Symbol) -> None:
        asked.append(symbol)

    live = DailyTargets(read_view, lambda symbol: SPOT, decide, refresh)
    with pytest.raises(Unavailable, match="BTCUSDT"):
        await live.set(world.gate, day, Millis(day + 5_000))
    assert asked == [BTC], "what is gone for days is not waited for"
    assert await live.set(world.gate, day, Millis(day + 61 * MINUTE_MS)) == ()
    assert await DailyTargets(read_view, lambda symbol: SPOT, decide).set(world.gate, day, day) == ()


async def test_a_sleeve_without_a_share_ends_what_it_holds() -> None:
    world = await World().open()
    await world.set("0.03")
    await world.wait(32)
    assert world.of(TREND)
    day = Millis(world.at // DAY_MS * DAY_MS)
    await world.gate.set_shares(DEBATE_ALONE)

    async def read_view(at: Millis) -> StrategyView:
        return StrategyView(at, {})

    async def decide(account: str, sleeve: str, view: StrategyView) -> Mapping[str, SizedTarget] | None:
        raise AssertionError(sleeve)

    (line,) = await DailyTargets(read_view, lambda symbol: SPOT, decide).set(world.gate, day, day)
    assert (line.sleeve, line.weight) == (TREND, 0.0)
    await world.wait(2)
    assert not world.of(TREND)
    await world.check()
