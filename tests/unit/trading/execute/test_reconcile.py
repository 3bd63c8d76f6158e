"""The book held against the venue: what is adopted, cancelled, left standing or locked, and what is asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.trading.execute.test_order_faults import SilentFor
from tests.unit.trading.execute.test_order_gate import DeafVenue, held, opened, place_foreign, protective
from tests.wire.accounts import FUTURES
from tests.wire.order_gate import BTC, GateHarness
from tests.wire.paper_venue import ACCOUNT, open_binance, open_upbit
from zuno.adapters.account.account_snapshot import dump_live, restore_book
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderStatus, OrderType
from zuno.trading.model.trade_events import Adopted, OrderLost, Protection
from zuno.trading.rules.book_state import LedgerAccount
from zuno.trading.rules.performance import trace_account
from zuno.trading.rules.protections import sum_results_usd
from zuno.trading.rules.trading_book import TradingBook

D = Decimal
DESK_LOCK = (Protection.RECONCILIATION, None)
BTC_LOCK = (Protection.RECONCILIATION, BTC)


async def at_venue(desk: GateHarness) -> dict[str, OrderType]:
    return {order.request.client_id: order.request.type for order in await desk.paper.open_venue().open_orders()}


async def place_stop(desk: GateHarness, client_id: str) -> None:
    request = OrderRequest(
        client_id=client_id,
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=OrderSide.SELL,
        type=OrderType.STOP_MARKET,
        quantity=D("0.010"),
        trigger=D(19_000),
        reduce_only=True,
    )
    await desk.paper.open_venue().place(request)


async def give_up(desk: GateHarness, client_id: str) -> None:
    """As a process does that the venue told it has no such order."""
    writer = AccountWriter(desk.log, ACCOUNT)
    await writer.refresh()
    await writer.write([OrderLost(at=Millis(desk.paper.at), client_id=client_id, reason="lost")])


async def test_a_stop_that_may_protect_what_nobody_understands_is_left_standing() -> None:
    """A home that was lost: the position and its stop are at the venue, the book has neither."""
    desk = GateHarness()
    await place_foreign(desk, "zn-entry", OrderType.MARKET)
    await place_stop(desk, "zn-stop")
    await place_foreign(desk, "zn-more")
    await desk.gate.reconcile()
    assert await at_venue(desk) == {"zn-stop": OrderType.STOP_MARKET}, "what would add to it is cancelled"
    assert BTC_LOCK in desk.gate.book.locks


async def test_a_stop_of_nothing_is_cancelled() -> None:
    desk = GateHarness()
    await place_stop(desk, "zn-stop")
    await desk.gate.reconcile()
    assert await at_venue(desk) == {}
    assert desk.gate.book.locks == {}


async def test_an_order_that_the_book_has_as_over_is_cancelled_where_it_stands() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))
    (id,) = desk.gate.book.open_orders
    await give_up(desk, id)
    await desk.gate.end_entries("the desk has ended")
    assert id in await at_venue(desk)
    await desk.restart().reconcile()
    assert await at_venue(desk) == {}
    assert desk.gate.book.locks == {}
    assert await desk.gate.reconcile() == ()


async def test_what_an_order_that_was_given_up_was_filled_with_is_booked_and_protected() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))
    (id,) = desk.gate.book.open_orders
    await give_up(desk, id)
    await desk.move(19_900)
    assert await desk.restart().reconcile()
    assert held(desk) == protective(desk)["stop"][0] == D("0.050")
    assert desk.gate.book.locks == {}
    assert await desk.gate.reconcile() == ()


class FillingVenue(DeafVenue):
    """The market moves while positions are asked for, the first time."""

    def __init__(self, desk: GateHarness) -> None:
        super().__init__(desk.paper.open_venue())
        self._desk, self._moved = desk, False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "positions" or self._moved:
            return found

        async def positions() -> Any:
            self._moved = True
            await self._desk.move(19_500)
            return await found()

        return positions


async def test_a_stop_that_is_filled_while_positions_are_compared_locks_nothing() -> None:
    desk = await opened()
    desk.venue = FillingVenue(desk)
    await desk.restart().reconcile()
    assert held(desk) == 0
    assert desk.gate.book.locks == {}
    assert desk.gate.book.closed


@pytest.mark.parametrize("silent", ["find", "positions", "open_orders", "balance", "funding"])
async def test_an_exchange_that_does_not_answer_at_start_locks_until_it_does(silent: str) -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    await desk.paper.owe(D(1_500))  # would be a difference, if it could be told
    venue.deaf_to = {silent}
    await desk.restart().reconcile()
    assert BTC_LOCK not in desk.gate.book.locks
    lock = desk.gate.book.locks[DESK_LOCK]
    assert lock.until is not None
    desk.wait(2_000)
    refused = await desk.gate.execute(desk.opening(run_id="run_2", quantity=0.01))
    assert refused.state == "refused"
    await desk.paper.owe(desk.gate.book.venue_balance(Venue("BINANCE")))
    venue.deaf_to = set()
    desk.wait(10 * MINUTE_MS)
    await desk.gate.advance()
    assert desk.gate.book.locks == {}


class Counting(DeafVenue):
    """Never says what it holds."""

    asked = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != "positions":
            return found

        async def positions() -> Any:
            self.asked += 1
            raise Unavailable("HTTP 502")

        return positions


async def test_an_exchange_that_stays_silent_is_asked_ever_more_seldom_and_stays_locked() -> None:
    paper = open_binance()
    venue = Counting(paper.open_venue())
    desk = await opened(GateHarness(paper, venue=venue))
    gate = desk.restart()
    await gate.reconcile()
    before = gate.book.count
    for _ in range(120):
        desk.wait(MINUTE_MS)
        await gate.advance()
        assert DESK_LOCK in {(lock.protection, lock.symbol) for lock in gate.book.active_locks(Millis(desk.paper.at))}
    assert gate.book.count - before < 12, "a lock now and then, not one each time"
    assert 20 < venue.asked < 40, "after 5, 10, 20 … s, and then every five minutes"


async def test_a_lock_of_an_exchange_that_nobody_asked_again_ends_and_the_next_start_asks() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    venue.deaf_to = {"balance"}
    await desk.gate.reconcile()
    venue.deaf_to = set()
    desk.wait(HOUR_MS)
    await desk.restart().reconcile()
    assert desk.gate.book.locks == {}
    assert (await desk.gate.execute(desk.opening())).state == "open"


async def test_no_entry_is_worked_before_the_book_was_compared() -> None:
    desk = GateHarness()
    await desk.gate.execute(desk.opening(style=Style.PASSIVE_MAKER))
    await desk.paper.owe(D(1_500))
    desk.wait(4 * MINUTE_MS)
    await desk.restart().reconcile()
    assert DESK_LOCK in desk.gate.book.locks
    assert len(desk.gate.book.orders) == 1


# -- while the desk runs

EVERY = Millis(5 * MINUTE_MS)


class WatchedVenue(DeafVenue):
    """Counts what it is asked, and lets something happen before it answers."""

    def __init__(self, desk: GateHarness) -> None:
        super().__init__(desk.paper.open_venue())
        self.asked: Counter[str] = Counter()
        self.before: dict[str, Callable[[], Awaitable[object]]] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name not in ("positions", "open_orders", "balance"):
            return found

        async def answer() -> Any:
            self.asked[name] += 1
            if (happen := self.before.pop(name, None)) is not None:
                await happen()
            return await found()

        return answer


async def running() -> tuple[GateHarness, WatchedVenue]:
    """A desk that has started, at a venue that is also traded by hand."""
    desk = GateHarness(compare_every=EVERY)
    desk.venue = venue = WatchedVenue(desk)
    desk.restart()
    assert (await desk.gate.execute(desk.opening())).state == "open"
    await desk.gate.reconcile()
    venue.asked.clear()
    return desk, venue


@pytest.mark.parametrize("kind", [OrderType.MARKET, OrderType.LIMIT])
async def test_what_a_hand_does_after_the_start_is_found_within_minutes(kind: OrderType) -> None:
    desk = GateHarness(compare_every=EVERY)
    await desk.gate.reconcile()
    await place_foreign(desk, "by-hand", kind)
    desk.wait(2_000)
    await desk.gate.advance()
    assert desk.gate.book.locks == {}
    desk.wait(EVERY)
    await desk.gate.advance()
    assert BTC_LOCK in desk.gate.book.locks
    written = desk.gate.book.count
    for _ in range(3):
        desk.wait(EVERY)
        await desk.gate.advance()
    assert desk.gate.book.count == written, "it is said once"
    assert (await desk.gate.execute(desk.opening(run_id="run_2"))).state == "refused"


async def test_a_running_desk_compares_every_few_minutes_and_no_more() -> None:
    desk, venue = await running()
    for _ in range(60):
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
    assert 10 <= venue.asked["positions"] <= 12
    assert set(venue.asked.values()) == {venue.asked["positions"]}, "each once where nothing differs"
    assert desk.gate.book.locks == {}
    paper = GateHarness()
    paper.venue = unasked = WatchedVenue(paper)
    paper.restart()
    for _ in range(60):
        paper.wait(MINUTE_MS)
        await paper.gate.advance()
    assert not unasked.asked, "nobody else trades on paper"


async def test_a_stop_that_another_process_moves_meanwhile_is_not_taken_for_a_stray_order() -> None:
    desk, venue = await running()
    (trade,) = desk.gate.book.trades

    async def tighten() -> None:
        other = GateHarness(desk.paper)
        await other.gate.set_levels(trade, D(19_700), None)

    venue.before["open_orders"] = tighten
    desk.wait(EVERY + MINUTE_MS)
    await desk.gate.advance()
    moved = [order for order in desk.gate.book.orders.values() if order.request.trigger == D(19_700)]
    assert [order.status for order in moved] == [OrderStatus.OPEN]
    assert desk.gate.book.locks == {}


@pytest.mark.parametrize("asked", ["positions", "balance"])
async def test_a_stop_that_is_filled_while_a_running_desk_compares_locks_nothing(asked: str) -> None:
    desk, venue = await running()
    venue.before[asked] = lambda: desk.move(19_500)
    desk.wait(EVERY + MINUTE_MS)
    await desk.gate.advance()
    await desk.gate.advance()
    assert desk.gate.book.locks == {}
    assert desk.gate.book.closed
    assert not [event for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted)]


class MovingVenue(DeafVenue):
    """What it says it holds, or has, is another thing each time it is asked."""

    def __init__(self, desk: GateHarness, moving: str) -> None:
        super().__init__(desk.paper.open_venue())
        self._moving, self._asked = moving, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name != self._moving:
            return found

        async def answer() -> Any:
            self._asked += 1
            if name == "balance":
                balance = await found()
                return balance.model_copy(update={"total": balance.total + self._asked})
            (position,) = await found()
            return (position.model_copy(update={"quantity": position.quantity + self._asked}),)

        return answer


@pytest.mark.parametrize("moving", ["positions", "balance"])
async def test_a_difference_that_is_another_at_every_look_is_not_acted_on(moving: str) -> None:
    desk = await opened()
    desk.venue = MovingVenue(desk, moving)
    said = await desk.restart().reconcile()
    assert len(said) == 1
    assert [(lock.protection, lock.until is None) for lock in desk.gate.book.locks.values()] == [
        (Protection.RECONCILIATION, False)
    ], "it is asked again, and not left to a person"
    assert not [event for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted)]
    desk.venue = None
    desk.wait(MINUTE_MS)
    await desk.restart().reconcile()
    assert desk.gate.book.locks == {}


class LateFunding(DeafVenue):
    """An exchange: funding is in its balance at the full hour, and listed a little later."""

    simulated = False

    def __init__(self, desk: GateHarness, paid: Decimal) -> None:
        super().__init__(desk.paper.open_venue())
        self._desk, self._paid, self._next_hour = desk, paid, desk.paper.at // HOUR_MS * HOUR_MS + HOUR_MS

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._venue, name)
        if name not in ("balance", "positions"):
            return found

        async def answer() -> Any:
            if name == "positions":  # the hour ends while the account is compared
                self._desk.paper.at = max(self._desk.paper.at, self._next_hour)
                return await found()
            balance = await found()
            return balance.model_copy(update={"total": balance.total + self._paid})

        return answer


async def test_funding_of_the_hour_that_is_not_listed_yet_is_not_taken_for_a_difference() -> None:
    """The comparison begins before the hour is full and ends after."""
    desk = await opened()
    desk.wait(HOUR_MS - desk.paper.at % HOUR_MS - 2_000)
    desk.venue = LateFunding(desk, D("-0.30"))
    await desk.restart().reconcile()
    assert not [event for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted)]
    assert desk.gate.book.locks[DESK_LOCK].until is not None
    with pytest.raises(Unavailable):
        await desk.gate.find_cash_differences()
    desk.wait(3 * MINUTE_MS)
    await desk.gate.advance()
    adopted = [event for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted)]
    assert [event.cash for event in adopted] == [D("-0.30")], "no longer funding that is on its way"
    assert desk.gate.book.locks == {}


async def test_an_outage_while_the_desk_runs_locks_nothing_until_it_has_lasted() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = GateHarness(paper, venue=venue, compare_every=EVERY)
    await desk.gate.reconcile()
    venue.deaf_to = {"positions"}
    for _ in range(20):
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
    assert desk.gate.book.locks == {}
    for _ in range(20):
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
    assert desk.gate.book.locks[DESK_LOCK].until is not None
    venue.deaf_to = set()
    desk.wait(10 * MINUTE_MS)
    await desk.gate.advance()
    assert desk.gate.book.locks == {}


async def test_an_exchange_that_is_silent_keeps_no_other_from_being_compared() -> None:
    paper = open_binance()
    silent = SilentFor(paper.open_venue())
    upbit = open_upbit()
    desk = GateHarness(paper, venue=silent, others={Venue("UPBIT"): upbit.venue}, compare_every=EVERY)
    upbit.at = desk.paper.at
    await desk.gate.reconcile()
    silent.deaf_to = {"positions"}
    await upbit.owe(D(1_000_000))
    desk.wait(EVERY + MINUTE_MS)
    upbit.at = desk.paper.at
    await desk.gate.advance()
    assert desk.gate.book.locks[DESK_LOCK].until is None, "the difference at the other one is found"


async def test_a_deposit_locks_and_is_adopted_by_the_owner_as_it_was_shown() -> None:
    desk = await opened()
    book = desk.gate.book
    await desk.paper.owe(book.venue_balance(Venue("BINANCE")) + 500)
    await desk.gate.reconcile()
    assert desk.gate.book.locks[DESK_LOCK].until is None
    shown = await desk.gate.find_cash_differences()
    assert shown == {Venue("BINANCE"): D(500)}
    with pytest.raises(Refused):
        await desk.gate.adopt_cash({Venue("BINANCE"): D(400)})
    assert DESK_LOCK in desk.gate.book.locks
    await desk.gate.adopt_cash(shown)
    assert desk.gate.book.locks == {}
    assert await desk.gate.reconcile() == ()
    adopted = [event for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted)]
    assert [event.cash for event in adopted] == [D(500)]
    assert await desk.gate.find_cash_differences() == {}


async def test_cash_is_not_adopted_while_positions_differ_or_an_exchange_is_silent() -> None:
    paper = open_binance()
    venue = SilentFor(paper.open_venue())
    desk = GateHarness(paper, venue=venue)
    await place_foreign(desk, "by-hand", OrderType.MARKET)
    with pytest.raises(Refused):
        await desk.gate.adopt_cash({Venue("BINANCE"): D(1)})
    venue.deaf_to = {"balance", "positions"}
    with pytest.raises(Unavailable):
        await desk.gate.find_cash_differences()


# -- cash that drifts


async def drift(desk: GateHarness, share: str) -> None:
    """The exchange's balance changes by a share of itself, and five minutes go by."""
    there = (await desk.paper.open_venue().balance()).total
    await desk.paper.owe(there * (1 + D(share)))
    desk.wait(EVERY + MINUTE_MS)
    await desk.gate.advance()


@pytest.mark.parametrize("shares", [("-0.00045",), ("0.00045",), ("-0.00045", "0.00045")])
async def test_the_drift_of_a_day_is_bounded_up_and_down(shares: tuple[str, ...]) -> None:
    """Once 150 of them, five minutes apart, took 6.5 % and locked nothing."""
    desk = GateHarness(compare_every=EVERY)
    await desk.gate.reconcile()
    adopted = 0
    while DESK_LOCK not in desk.gate.book.locks:
        assert adopted <= 5
        await drift(desk, shares[adopted % len(shares)])
        adopted += DESK_LOCK not in desk.gate.book.locks
    assert adopted == 5, "0.225 %; the sixth would be more than 0.25 %"
    lock = desk.gate.book.locks[DESK_LOCK]
    events = [event for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted)]
    assert lock.until is None
    assert all(iso(event.at) in lock.reason for event in events)
    assert (await desk.gate.execute(desk.opening())).state == "refused"

    shown = await desk.gate.find_cash_differences()
    await desk.gate.adopt_cash(shown)
    await drift(desk, shares[0])
    assert desk.gate.book.locks == {}, "the owner has looked: it is counted anew"
    assert len(desk.gate.book.drifts) == 1


async def test_after_a_day_a_drift_counts_no_more() -> None:
    desk = GateHarness(compare_every=EVERY)
    await desk.gate.reconcile()
    for _ in range(4):
        for _ in range(4):
            await drift(desk, "-0.00045")
        desk.wait(DAY_MS)
        await desk.restart().reconcile()
    assert desk.gate.book.locks == {}


async def test_cash_that_went_missing_is_a_loss_and_no_gain_hides_it() -> None:
    desk = GateHarness(compare_every=EVERY)
    await desk.gate.reconcile()
    for share in ("-0.0004", "0.0004", "-0.0004"):
        await drift(desk, share)
    book, rates = desk.gate.book, {"USD": D(1), "KRW": D(1_400)}
    gone, came, again = (event.cash for event in await desk.log.events(ACCOUNT) if isinstance(event, Adopted))
    assert (gone, came > 0) == (D("-0.8"), True)
    assert -book.ledger.balance(FUTURES, LedgerAccount.ADJUSTMENTS) == came
    assert (
        sum_results_usd(book.results, Millis(0), rates)
        == gone + again
        == -book.ledger.balance(FUTURES, LedgerAccount.DRIFT)
    )
    opened_with = book.ledger.balance(FUTURES, LedgerAccount.CAPITAL)
    assert opened_with == D(-2_000)
    restored = restore_book(dump_live(trace_account(await desk.log.events(ACCOUNT))), ())
    assert restored.drifts == book.drifts
    assert len(book.drifts) == 3


async def test_an_adoption_of_before_is_the_owners_money() -> None:
    book = TradingBook()
    book.apply(Adopted(at=Millis(1), exchange=FUTURES, what="adopted", cash=D(-5)))
    assert (book.results, book.drifts, book.ledger.balance(FUTURES, LedgerAccount.ADJUSTMENTS)) == ([], [], D(5))
    assert "drift" not in Adopted(at=Millis(1), exchange=FUTURES, what="adopted").model_dump()
