"""Sleeves that share a perpetual: each one's own stop stands at the venue for what the net leaves of it, and whatever
was filled is booked to the sleeve whose coins it was."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.trading.execute.test_targets import OWN, SleevesWorld, World, ruling_of
from tests.wire.hedges import PERPETUAL, SPOT
from tests.wire.order_gate import BTC
from tests.wire.paper_venue import ACCOUNT
from zuno.kernel.errors import DiskFull, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.fills import closes_all
from zuno.trading.execute.intents import build_exit
from zuno.trading.execute.targets import TargetPosition
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.orders import Fill, OrderRequest, OrderSide, OrderType, client_order_id
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE, TREND
from zuno.trading.model.trade_events import (
    ExitReason,
    LockSet,
    Mandate,
    MandatedSleeve,
    OrderLost,
    OrderPlanned,
    Protection,
)

D = Decimal


async def open_world(**named: Any) -> World:
    """`lp-hedge` has $400 of the debate's."""
    world = await World(**named).open()
    await world.gate.refresh()
    await world.gate.transfer(DEBATE, LP_HEDGE, D(400), "req_margin")
    return world


async def hold(world: World, quantity: str, sleeve: str = TREND, at: Venue = PERPETUAL) -> str:
    """A sleeve takes so much at once; `lp-hedge` without a stop."""
    apart: dict[str, Any] = {"stop_distance": None} if sleeve == LP_HEDGE else {}
    target = TargetPosition(at, BTC, D(quantity), at_once=True, **apart)
    world.show(20_000)
    return (await world.gate.set_targets({sleeve: [target]}, Millis(world.at), f"req_{world.at}"))[0].state


async def enter(world: World, side: Side) -> str:
    """The debate takes 0.01 with levels a fifth away."""
    world.show(20_000)
    return (await world.gate.execute(ruling_of(side, world.at))).state


def leave_alone(world: World, *prices: int) -> None:
    """The market goes through these prices, and nobody of the desk looks."""
    for price in prices:
        world.show(price)


async def list_conditional(world: World) -> dict[tuple[str, OrderType], Decimal]:
    """By whose they are, as they stand at the venue."""
    book = world.gate.book
    standing = await world.open_venue(PERPETUAL).open_orders()
    return {(book.sleeve_of(book.orders[o.request.client_id]), o.request.type): o.left for o in standing}


# -- what stands at the venue


async def test_a_stop_that_fires_while_nobody_looks_takes_only_its_own_sleeves_coins() -> None:
    world = await open_world()
    assert await hold(world, "0.012") == "done"
    assert await enter(world, Side.LONG) == "open"
    assert await list_conditional(world) == {
        (TREND, OrderType.STOP_MARKET): D("0.012"),
        (DEBATE, OrderType.STOP_MARKET): D("0.01"),
    }
    leave_alone(world, 24_500, 15_900)  # its target, later its stop
    world.gate = world.open_gate()
    await world.gate.advance()
    assert await world.held_there() == {PERPETUAL: D("0.012")}
    assert (world.of(DEBATE, PERPETUAL), world.of(TREND, PERPETUAL)) == (D(0), D("0.012"))
    await world.check()
    assert not world.gate.book.locks


async def test_a_hedge_on_the_other_side_is_left_whole_by_a_stop_beside_it() -> None:
    world = await open_world()
    assert await hold(world, "-0.012", LP_HEDGE) == "done"
    assert await enter(world, Side.SHORT) == "open"
    assert await list_conditional(world) == {(DEBATE, OrderType.STOP_MARKET): D("0.01")}
    leave_alone(world, 15_500, 24_100)
    await world.gate.advance()
    assert await world.held_there() == {PERPETUAL: D("-0.012")}
    assert await hold(world, "-0.012", LP_HEDGE) == "held"
    await world.check()


async def test_a_target_is_taken_by_the_desk_where_sleeves_share() -> None:
    world = await open_world()
    await hold(world, "0.012")
    await enter(world, Side.LONG)
    leave_alone(world, 24_500)
    await world.gate.advance()
    assert await world.held_there() == {PERPETUAL: D("0.012")}
    assert [(summary.sleeve, summary.reason) for summary in world.gate.book.closed] == [(DEBATE, ExitReason.TARGET)]
    await world.check()


async def test_a_target_goes_before_another_sleeve_enters_beside_it() -> None:
    world = await open_world()
    await enter(world, Side.LONG)
    assert (DEBATE, OrderType.TAKE_PROFIT_MARKET) in await list_conditional(world)
    world.show(20_000)
    await world.set("0.012", at=PERPETUAL)  # it waits at the touch, and is filled while nobody looks
    assert (DEBATE, OrderType.TAKE_PROFIT_MARKET) not in await list_conditional(world)
    leave_alone(world, 19_900, 24_500, 15_900)
    await world.gate.advance()
    assert world.of(TREND, PERPETUAL) == D("0.012")
    await world.check()
    assert not world.gate.book.locks


class Deaf:
    """Answers no cancel of these types."""

    def __init__(self, venue: Any) -> None:
        self._venue = venue
        self.unanswered: set[OrderType] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._venue, name)

    async def cancel(self, symbol: Any, client_id: str, kind: Any = None) -> Any:
        if kind in self.unanswered:
            raise Unavailable("no answer")
        return await self._venue.cancel(symbol, client_id, kind)


async def test_nothing_is_entered_beside_a_target_that_may_still_stand() -> None:
    world = await open_world(wraps={PERPETUAL: Deaf})
    await enter(world, Side.LONG)
    port: Any = world.venues[PERPETUAL]
    port.unanswered = {OrderType.TAKE_PROFIT_MARKET}
    world.show(20_000)
    await world.set("0.012", at=PERPETUAL)
    assert (TREND, OrderType.LIMIT) not in await list_conditional(world)
    assert PERPETUAL in world.gate.troubles
    port.unanswered = set()
    await world.wait(2)
    assert (TREND, OrderType.LIMIT) in await list_conditional(world)
    assert (DEBATE, OrderType.TAKE_PROFIT_MARKET) not in await list_conditional(world)


async def test_an_exit_is_not_harmless_twice_while_another_sleeve_waits_to_enter() -> None:
    """What that one is filled with meanwhile, the second would sell."""
    world = await open_world()
    await enter(world, Side.LONG)
    venue = world.gate._account.at(PERPETUAL)
    exit = build_exit(client_order_id("close", PERPETUAL, "exit"), PERPETUAL, BTC, OrderSide.SELL, D("0.01"))
    assert closes_all(venue, exit)
    world.show(20_000)
    assert (await world.set("0.012", at=PERPETUAL)).state == "working"
    assert not closes_all(venue, exit)


@pytest.mark.parametrize(("others", "covered"), [("-0.007", "0.003"), ("-0.012", "0"), ("0.012", "0.01")])
async def test_a_stop_is_for_what_the_net_leaves_of_a_position(others: str, covered: str) -> None:
    world = await open_world()
    await hold(world, others, LP_HEDGE)
    await enter(world, Side.LONG)
    stops = await list_conditional(world)
    assert stops == ({(DEBATE, OrderType.STOP_MARKET): D(covered)} if D(covered) else {})
    leave_alone(world, 15_900)
    await world.gate.advance()
    assert (world.of(DEBATE, PERPETUAL), world.of(LP_HEDGE, PERPETUAL)) == (D(0), D(others))
    await world.check()


async def test_a_rest_too_small_for_an_order_takes_no_hedge_and_goes_with_it() -> None:
    world = await open_world()
    await hold(world, "-0.006", LP_HEDGE)
    await enter(world, Side.LONG)
    leave_alone(world, 15_900)
    orders = len(world.gate.book.orders)
    await world.wait(3, 15_900)
    assert (world.of(DEBATE, PERPETUAL), world.of(LP_HEDGE, PERPETUAL)) == (D("0.006"), D("-0.006"))
    assert len(world.gate.book.orders) == orders
    await world.check()
    await world.gate.kill()
    assert not world.gate.book.positions
    assert await world.held_there() == {}


async def test_a_stop_is_never_away_while_sleeves_cross() -> None:
    """At every write and every order between, one stood for what was held."""
    world = await open_world()
    await hold(world, "0.02")
    seen: list[bool] = []
    append = world.log.append

    async def watch(account: str, events: Any, after: int) -> None:
        if account == ACCOUNT:
            seen.append((TREND, OrderType.STOP_MARKET) in await list_conditional(world))
        await append(account, events, after)

    world.log.append = watch
    world.show(20_000)
    await world.set_several({TREND: "0.012", OWN: "0.008"}, PERPETUAL)
    assert world.of(OWN, PERPETUAL) == D("0.008")
    assert all(seen)
    assert set(await list_conditional(world)) == {(TREND, OrderType.STOP_MARKET), (OWN, OrderType.STOP_MARKET)}


# -- new risk with money


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize(("stops", "side", "state"), [
    ("venue", Side.LONG, "refused"), ("watched", Side.LONG, "open"), ("venue", Side.SHORT, "open"),
])  # fmt: skip
async def test_with_money_the_debate_opens_only_what_a_stop_at_the_venue_covers(
    stops: Any, side: Side, state: str, filled: bool
) -> None:
    """Of what another sleeve holds, and of what it waits to be filled with."""
    world = await SleevesWorld().begin()
    world.live = True
    world.gate = world.open_gate()
    caps = dict.fromkeys(("max_margin_per_trade_usd", "max_margin_per_day_usd", "max_daily_loss_usd"), D(5_000))
    named = MandatedSleeve(name=TREND, share=D("0.6"), max_drawdown=D("0.3"))
    terms: dict[str, Any] = {"granted": Millis(world.at), "expires": Millis(world.at + DAY_MS), "sleeves": (named,)}
    await world.gate.grant_mandate(Mandate(symbols=(BTC,), venues=(PERPETUAL,), stops=stops, **terms, **caps))
    assert (await world.set("-0.006", at=PERPETUAL, at_once=filled)).state == ("done" if filled else "working")
    assert (await world.gate.execute(ruling_of(side, world.at))).state == state


# -- what the venue did is booked


async def wedge(world: World) -> None:
    """As 1.0 left it: the debate's stop and target stood beside another sleeve's position, both were filled, and the
    second fill was refused at every look."""
    await enter(world, Side.LONG)
    trade = world.gate.book.position(PERPETUAL, BTC)
    assert trade is not None
    await hold(world, "0.012")
    again = client_order_id(trade.intent, PERPETUAL, "target", 9)
    target = OrderRequest(
        client_id=again,
        exchange=PERPETUAL,
        symbol=BTC,
        side=OrderSide.SELL,
        type=OrderType.TAKE_PROFIT_MARKET,
        quantity=D("0.01"),
        trigger=trade.target,
        reduce_only=True,
    )
    book = world.gate.book
    planned = OrderPlanned(at=book.newest, intent=trade.intent, purpose="target", order=target)
    await world.log.append(ACCOUNT, [planned], book.count)
    await world.open_venue(PERPETUAL).place(target)
    leave_alone(world, 24_500, 15_900)
    why = "what BINANCE says cannot be booked: 0.01 were sold of 0 BTC that are held."
    lock = LockSet(at=Millis(world.at), protection=Protection.RECONCILIATION, symbol=BTC, until=None, reason=why)
    await world.log.append(ACCOUNT, [lock], book.count + 1)
    world.gate = world.open_gate()


async def test_an_overfill_is_booked_against_the_sleeve_that_lost_the_coins_and_locks() -> None:
    world = await open_world()
    await wedge(world)
    assert await world.held_there() == {PERPETUAL: D("0.002")}
    await world.gate.advance()
    assert (world.of(DEBATE, PERPETUAL), world.of(TREND, PERPETUAL)) == (D(0), D("0.002"))
    lock = world.gate.book.locks[Protection.RECONCILIATION, BTC]
    assert TREND in lock.reason
    assert [(stop, left) for stop, left in (await list_conditional(world)).items()] == [
        ((TREND, OrderType.STOP_MARKET), D("0.002"))
    ]
    before = world.gate.book.count
    await world.gate.advance()
    assert world.gate.book.count == before


async def test_an_account_that_was_wedged_goes_on_once_its_owner_has_looked() -> None:
    world = await open_world()
    await wedge(world)
    said = await world.gate.reconcile()
    assert any("unlock reconciliation" in line for line in said)
    await world.gate.unlock(Protection.RECONCILIATION)
    assert await hold(world, "0.012") == "done"
    assert await world.held_there() == {PERPETUAL: D("0.012")}
    await world.check()


class Telling:
    """Lists a sale of the owner's own coins beside the desk's fills."""

    def __init__(self, venue: Any) -> None:
        self._venue = venue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._venue, name)

    async def fills(self, symbol: Any, since: Millis) -> tuple[Fill, ...]:
        told: tuple[Fill, ...] = await self._venue.fills(symbol, since)
        shape = {"id": "theirs", "client_id": "hand", "exchange": SPOT, "symbol": BTC, "side": OrderSide.SELL}
        sums = {"quantity": D("0.5"), "price": D(20_000), "fee": D(0)}
        return (Fill.model_validate({**shape, **sums, "maker": False, "at": since}), *told)


async def test_a_fill_that_cannot_be_booked_keeps_back_no_other_and_is_asked_about_once() -> None:
    world = await open_world(wraps={SPOT: Telling})
    assert await hold(world, "0.03", at=SPOT) == "done"
    assert D("0.0299") < world.of(TREND)
    assert (Protection.RECONCILIATION, BTC) in world.gate.book.locks
    await world.gate.unlock(Protection.RECONCILIATION)
    world.gate = world.open_gate()
    for _ in range(3):
        world.show(20_000)
        await world.gate.advance()
    assert (Protection.RECONCILIATION, BTC) not in world.gate.book.locks


async def test_an_order_that_was_lost_and_stands_again_is_booked_and_cancelled() -> None:
    """The exchange did not know it any more, and part of it is filled by the time that another process looks."""
    world = await open_world()
    world.show(20_000)
    assert (await world.set("0.012", at=PERPETUAL)).state == "working"
    book, (lost,) = world.gate.book, world.gate.book.open_orders
    await world.log.append(ACCOUNT, [OrderLost(at=book.newest, client_id=lost, reason="not known")], book.count)
    world.show(19_990, {PERPETUAL: "0.004"})
    world.gate = world.open_gate()
    await world.gate.reconcile()
    assert world.of(TREND, PERPETUAL) == D("0.004")
    assert (await list_conditional(world))[TREND, OrderType.STOP_MARKET] == D("0.004")
    assert lost not in {order.request.client_id for order in await world.open_venue(PERPETUAL).open_orders()}
    await world.check()


# -- without the log


@pytest.mark.parametrize("unread", [("positions",), ()])
async def test_a_close_without_the_log_leaves_what_is_anothers(
    unread: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry whose cancel is not answered may be filled or not: nothing of the other sleeve's goes for it."""
    world = await open_world()
    await hold(world, "0.012")
    await enter(world, Side.LONG)
    resting = OrderRequest(
        client_id=client_order_id("more", PERPETUAL, "entry"),
        exchange=PERPETUAL,
        symbol=BTC,
        side=OrderSide.BUY,
        type=OrderType.LIMIT,
        price=D(10_000),
        quantity=D("0.01"),
    )
    book, held = world.gate.book, world.gate.book.position(PERPETUAL, BTC)
    assert held is not None
    planned = OrderPlanned(at=book.newest, intent=held.intent, purpose="entry", order=resting)
    await world.log.append(ACCOUNT, [planned], book.count)
    await world.open_venue(PERPETUAL).place(resting)
    await world.gate.refresh()
    port = world.venues[PERPETUAL]

    async def fail(*args: Any) -> Any:
        raise Unavailable("no answer")

    async def cancel(symbol: Any, client_id: str, kind: Any = None) -> Any:
        if client_id == resting.client_id:
            raise Unavailable("no answer")
        return await type(port).cancel(port, symbol, client_id, kind)

    async def full(*args: Any) -> None:
        raise DiskFull("the home")

    monkeypatch.setattr(port, "cancel", cancel)
    for name in unread:
        monkeypatch.setattr(port, name, fail)
    append = world.log.append
    monkeypatch.setattr(
        world.log, "append", lambda account, *rest: full() if account == ACCOUNT else append(account, *rest)
    )
    with pytest.raises(Unavailable):
        await world.gate.close(BTC, sleeve=DEBATE)
    assert await world.held_there() == {PERPETUAL: D("0.012")}


# -- in whatever order


acts = st.lists(
    st.one_of(
        st.tuples(st.just(TREND), st.sampled_from(["0.012", "0.02", "-0.008", "0"])),
        st.tuples(st.just(LP_HEDGE), st.sampled_from(["-0.006", "-0.012", "0"])),
        st.tuples(st.just(DEBATE), st.sampled_from([Side.LONG, Side.SHORT])),
        st.tuples(st.just("away"), st.lists(st.sampled_from([15_900, 18_000, 22_000, 24_100]), max_size=3)),
        st.just("restart"),
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(acts)
async def test_no_sleeves_stop_ever_takes_anothers_coins(acts: list[Any]) -> None:
    world = await open_world()
    for act in acts:
        before = {sleeve: world.of(sleeve, PERPETUAL) for sleeve in (TREND, LP_HEDGE)}
        match act:
            case (_, Side() as side):
                await enter(world, side)
            case ("away", prices):
                leave_alone(world, *prices)
                await world.gate.advance()
                assert world.of(LP_HEDGE, PERPETUAL) == before[LP_HEDGE]
                assert world.of(TREND, PERPETUAL) in (before[TREND], D(0))
            case "restart":
                world.gate = world.open_gate()
            case (str(sleeve), str(quantity)):
                await hold(world, quantity, sleeve)
        for _ in range(2):
            world.show(20_000)
            await world.gate.advance()
        book, net = world.gate.book, D(0)
        stops = await list_conditional(world)
        for trade in book.positions_at(PERPETUAL, BTC):
            net += trade.signed
            assert stops.get((trade.sleeve, OrderType.STOP_MARKET), D(0)) == (
                D(0) if trade.sleeve == LP_HEDGE else book.find_covered(trade)
            )
        assert sum(left for (_, kind), left in stops.items() if kind is OrderType.STOP_MARKET) <= abs(net)
        assert (await world.held_there()).get(PERPETUAL, D(0)) == net
        assert not book.locks
    await world.check()
