"""The desk at a fake exchange over its own wire format, with faults injected: what is held stays protected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import over_binance, over_upbit
from tests.wire.exchanges.serving import DOWN, Request, json_answer
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.errors import DiskFull, NotFound, Unavailable
from zuno.markets.feeds import UPBIT, name_at
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.fills import RESEND_MS
from zuno.trading.model.cycle import Style
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderStatus, OrderType
from zuno.trading.model.trade_events import ExitReason, LockSet, Protection, TradeEvent

BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")
ALWAYS = 10_000
ALGO = "fapi/v1/algoOrder"
FORBIDDEN = json_answer({"error": {"name": "out_of_scope", "message": "권한이 부족합니다."}}, 401)


@pytest.fixture
async def desk() -> AsyncIterator[WireDesk]:
    async with over_binance() as here:
        yield WireDesk(here)


def fake(desk: WireDesk) -> FakeBinance:
    assert isinstance(desk.here.fake, FakeBinance)
    return desk.here.fake


def silence(desk: WireDesk, *names: str) -> None:
    for name in names:
        desk.here.server.fail(name, DOWN, ALWAYS)


async def test_an_entry_whose_stop_cannot_be_sent_is_undone_after_a_minute(desk: WireDesk) -> None:
    """Deaf to stop orders alone: plain orders must not need the other endpoint."""
    silence(desk, f"POST /{ALGO}", f"GET /{ALGO}", f"DELETE /{ALGO}")
    await desk.open()
    assert desk.held() == Decimal("0.02")
    for _ in range(3):
        desk.wait(25_000)
        await desk.gate.advance()
    assert desk.held() == 0
    assert [summary.reason for summary in desk.gate.book.closed] == [ExitReason.UNDONE]
    desk.here.server.faults.clear()
    desk.wait(MINUTE_MS)
    await desk.gate.advance()
    assert desk.gate.book.open_orders == desk.gate.book.open_intents == desk.gate.troubles == {}


async def test_a_clock_that_is_told_slowly_is_no_clock_that_is_wrong(desk: WireDesk) -> None:
    slow = iter([5 * MINUTE_MS])

    def change(name: str, document: Any) -> Any:
        if name.endswith("/time"):
            desk.wait(next(slow, 0))  # between the exchange's word and ours
        return document

    desk.here.server.change = change
    assert await desk.open() == "open"
    assert desk.gate.now() == desk.now()


async def test_an_exit_goes_before_a_stop_that_cannot_be_sent(desk: WireDesk) -> None:
    silence(desk, f"POST /{ALGO}", f"GET /{ALGO}")
    await desk.open()
    asked = len(desk.here.server.asked)
    await desk.gate.kill()
    assert desk.held() == 0
    later = desk.here.server.asked[asked:]
    assert f"GET /{ALGO}" not in later[: later.index("POST /fapi/v1/order")]


async def test_a_symbol_that_cannot_be_read_keeps_no_other_from_its_stop_or_the_kill_switch(desk: WireDesk) -> None:
    for symbol, quantity in ((BTC, 0.02), (ETH, 0.5)):
        assert await desk.open(symbol, quantity) == "open"
    spoil_trades(desk, BTC)
    desk.wait(MINUTE_MS)
    await desk.here.venue.cancel(ETH, next(iter(stops(desk, ETH))))  # by another hand
    await desk.gate.advance()
    assert len(stops(desk, ETH)) == 1
    await desk.gate.kill()
    assert desk.held(BTC) == desk.held(ETH) == 0
    assert [place[1] for place in desk.gate.book.positions] == [BTC]
    assert Venue("BINANCE") in desk.gate.troubles
    desk.here.server.change = lambda name, document: document
    await desk.gate.advance()
    assert desk.gate.book.positions == desk.gate.troubles == {}


def spoil_trades(desk: WireDesk, symbol: Symbol) -> None:
    def change(name: str, document: Any) -> Any:
        rows = name.endswith("userTrades")
        return [{**row, "qty": "?"} if row["symbol"] == symbol else row for row in document] if rows else document

    desk.here.server.change = change


def stops(desk: WireDesk, symbol: Symbol) -> list[str]:
    algos = fake(desk).engine.algos.values()
    return [a.client_id for a in algos if a.status == "NEW" and a.symbol == symbol and a.type == "STOP_MARKET"]


async def test_a_fee_in_another_currency_is_told_and_stops_new_risk_alone(desk: WireDesk) -> None:
    assert await desk.open(ETH, 0.5) == "open"
    fake(desk).fee_burn = True  # switched on between two looks at the account
    assert await desk.open() == "open"
    assert len(stops(desk, BTC)) == 1
    position = desk.gate.book.positions[Venue("BINANCE"), BTC, "debate"]
    assert position.fees == 0
    lock = desk.gate.book.locks[Protection.RECONCILIATION, BTC]
    assert "0.60000100 BNB" in lock.reason
    assert (Protection.RECONCILIATION, ETH) not in desk.gate.book.locks
    await desk.gate.kill()
    assert desk.held(BTC) == desk.held(ETH) == 0
    assert desk.gate.book.positions == {}


@pytest.mark.parametrize("style", [Style.MOMENTUM_SNIPER, Style.SMART_DCA])
async def test_the_stop_is_sent_before_anything_else_is_asked(desk: WireDesk, style: Style) -> None:
    await desk.here.venue.now()
    await desk.open(style=style)
    asked = desk.here.server.asked
    between = asked[asked.index("POST /fapi/v1/order") + 1 : asked.index(f"POST /{ALGO}")]
    # its fills are awaited, then booked; the stop is looked up, then placed
    assert between == ["GET /fapi/v1/userTrades", "GET /fapi/v1/userTrades", f"GET /{ALGO}"]
    assert asked.count("GET /fapi/v1/income") == 1


async def test_an_order_whose_reply_was_lost_is_not_made_twice(desk: WireDesk) -> None:
    post = "POST /fapi/v1/order"
    silence(desk, post)
    await desk.open()
    assert desk.here.server.count(post) == 1
    desk.wait(3_000)
    await desk.gate.advance()
    assert desk.here.server.count(post) == 1
    desk.here.server.faults.clear()
    desk.wait(RESEND_MS - 3_000)
    await desk.here.venue.now()  # its requests are dated by the exchange's clock
    await desk.gate.advance()
    assert desk.here.server.count(post) == 2
    assert desk.held() == Decimal("0.02")
    assert len(stops(desk, BTC)) == 1


async def test_an_entry_on_its_way_when_its_process_died_is_not_made_twice(desk: WireDesk) -> None:
    """For a few seconds it may arrive, whoever looks: the exchange takes an id again once its order is filled."""
    post = "POST /fapi/v1/order"
    silence(desk, post)
    await desk.open()
    desk.here.server.faults.clear()
    await desk.restart()
    await desk.gate.advance()
    await desk.gate.end_entries("the desk has ended")
    assert desk.here.server.count(post) == 1
    assert len(desk.gate.book.open_orders) == 1
    await desk.restart()
    await desk.gate.advance()
    desk.wait(RESEND_MS)
    await desk.gate.advance()
    assert desk.here.server.count(post) == 1
    assert desk.gate.book.open_orders == {}


async def test_more_filled_than_was_ordered_is_booked_and_locks(desk: WireDesk) -> None:
    """The exchange takes an id again once its order is over: somebody sent a cut twice."""
    for quantity in ("0.02", "0.012"):
        await desk.set_target(Decimal(quantity))
    (cut,) = (id for id, order in desk.gate.book.orders.items() if order.purpose == "exit")
    fake(desk).place_meanwhile(cut, "BTCUSDT", "SELL", Decimal("0.008"), None)
    await desk.gate.advance()
    (trade,) = desk.gate.book.positions.values()
    assert trade.quantity == desk.held() == Decimal("0.004")
    assert (Protection.RECONCILIATION, BTC) in desk.gate.book.locks


async def test_parts_of_an_entry_filled_while_no_desk_ran_are_protected_at_the_first_look(desk: WireDesk) -> None:
    assert await desk.open(quantity=0.05, style=Style.SMART_DCA) == "working"
    assert stop_quantities(desk) == [Decimal("0.021")]
    await desk.here.move(desk.here.price * Decimal("0.985"))
    assert desk.held() == Decimal("0.05")
    await desk.restart()
    await desk.gate.advance()
    assert stop_quantities(desk) == [Decimal("0.05")]


def stop_quantities(desk: WireDesk) -> list[Decimal]:
    algos = fake(desk).engine.algos.values()
    return [algo.quantity for algo in algos if algo.status == "NEW" and algo.type == "STOP_MARKET"]


async def test_an_order_that_the_exchange_does_not_find_yet_is_not_given_up(desk: WireDesk) -> None:
    """Reads come from a copy that may be seconds behind: an entry given up would be filled and stand without a stop."""
    routes, get, post = desk.here.server.routes, "GET /fapi/v1/order", "POST /fapi/v1/order"
    find, make = routes[get], routes[post]

    def make_unlisted(request: Request) -> Any:
        routes[get] = lambda request: json_answer({"code": -2013, "msg": "Order does not exist."}, 400)
        return make(request)

    routes[post] = make_unlisted
    assert await desk.open(style=Style.PASSIVE_MAKER) == "working"
    desk.wait(5_000)
    await desk.gate.advance()
    assert [order.status for order in desk.gate.book.orders.values()] == [OrderStatus.OPEN]
    assert desk.gate.book.locks == {}
    routes[get] = find
    await desk.here.move(desk.here.price * Decimal("0.99"))
    await desk.gate.advance()
    assert stop_quantities(desk) == [desk.held()] == [Decimal("0.02")]


async def test_a_desk_that_starts_while_filters_cannot_be_read_protects_and_closes(desk: WireDesk) -> None:
    silence(desk, f"POST /{ALGO}")
    await desk.open()
    desk.here.server.faults.clear()
    silence(desk, "GET /fapi/v1/exchangeInfo")
    await desk.restart()
    desk.wait(7_000)
    await desk.gate.advance()
    assert len(stops(desk, BTC)) == 1
    await desk.gate.kill()
    assert desk.held() == 0


@pytest.mark.parametrize("news", ["slow", "broken"])
async def test_levels_that_only_the_desk_watches_do_not_wait_for_the_news(news: str) -> None:
    async with over_upbit() as here:
        desk = WireDesk(here)
        assert await desk.open() == "open"
        if news == "broken":
            silence(desk, "GET /v1/orders/closed")
        asked = len(here.server.asked)
        await here.move(here.price * Decimal("0.97"))
        await desk.gate.advance()
        assert desk.held() == 0
        later = here.server.asked[asked:]
        assert later.index("POST /v1/orders") < later.index("GET /v1/orders/closed")
        here.server.faults.clear()
        desk.wait(MINUTE_MS)
        await desk.gate.advance()
        assert [summary.reason for summary in desk.gate.book.closed] == [ExitReason.STOP]
        assert here.server.count("POST /v1/orders") == 2


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize(("way", "list_returns"), [("stop", False), ("stop", True), ("kill", False)])
async def test_an_entry_is_booked_and_sold_though_the_list_of_closed_orders_cannot_be_read(
    way: str, list_returns: bool, refused: bool
) -> None:
    """Upbit lists the trades of an order with the order itself."""
    async with over_upbit() as here:
        desk = WireDesk(here)

        def silence_list() -> None:
            here.server.fail("GET /v1/orders/closed", FORBIDDEN if refused else DOWN, ALWAYS)

        silence_list()
        await desk.open()
        booked = [position.quantity for position in desk.gate.book.positions.values()]
        assert booked == [desk.held()] == [Decimal("0.02")]
        assert Venue("UPBIT") in desk.gate.troubles
        if list_returns:
            here.server.faults.clear()
            await desk.gate.advance()
            assert [position.quantity for position in desk.gate.book.positions.values()] == booked
            assert desk.gate.book.open_intents == desk.gate.troubles == {}
            silence_list()
        if way == "kill":
            await desk.gate.kill()
        else:
            await here.move(here.price * Decimal("0.97"))
            await desk.gate.advance()
        assert desk.held() == 0
        reason = ExitReason.KILL_SWITCH if way == "kill" else ExitReason.STOP
        assert [summary.reason for summary in desk.gate.book.closed] == [reason]
        assert here.server.count("POST /v1/orders") == 2


async def test_a_position_is_closed_though_orders_cannot_be_looked_up(desk: WireDesk) -> None:
    await desk.open()
    silence(desk, "GET /fapi/v1/order")
    await desk.gate.kill()
    assert desk.held() == 0
    for _ in range(3):
        desk.wait(7_000)
        await desk.gate.advance()
    assert desk.here.server.count("POST /fapi/v1/order") == 2
    assert [summary.reason for summary in desk.gate.book.closed] == [ExitReason.KILL_SWITCH]


async def test_an_entry_is_cancelled_though_its_fills_cannot_be_read(desk: WireDesk) -> None:
    assert await desk.open(style=Style.PASSIVE_MAKER) == "working"
    await desk.here.move(desk.here.price * Decimal("0.99"), Decimal("0.005"))
    assert desk.held() == Decimal("0.005")
    spoil_trades(desk, BTC)
    await desk.gate.kill()
    assert desk.held() == 0
    await desk.here.move(desk.here.price * Decimal("0.98"))
    assert desk.held() == 0


@pytest.mark.parametrize("way", ["watch", "kill", "restart"])
async def test_an_entry_whose_fills_cannot_be_read_is_undone(desk: WireDesk, way: str) -> None:
    """What is not in the book has no stop: after a minute it is closed by what the exchange says it holds."""
    before = (await desk.here.venue.balance()).total
    spoil_trades(desk, BTC)
    await desk.open()
    assert desk.held() == Decimal("0.02")
    if way == "kill":
        await desk.gate.kill()
        assert desk.held() == 0
    if way == "restart":
        await desk.restart()
    for _ in range(5):
        desk.wait(25_000)
        await desk.gate.advance()
    assert desk.held() == 0
    assert desk.here.server.count("POST /fapi/v1/order") == 2
    desk.here.server.change = lambda name, document: document
    for _ in range(2):
        desk.wait(7_000)
        await desk.gate.advance()
    book = desk.gate.book
    assert [summary.reason for summary in book.closed] == [
        ExitReason.KILL_SWITCH if way == "kill" else ExitReason.UNDONE
    ]
    assert book.positions == book.open_orders == book.open_intents == desk.gate.troubles == {}
    assert [(await desk.here.venue.balance()).total - before] == [summary.net_pnl for summary in book.closed]
    assert desk.here.server.count("POST /fapi/v1/order") == 2


class FullLog(MemoryTradeLog):
    """A disk that takes so many entries more; None: there is room."""

    room: int | None = None

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        if self.room is not None:
            if not self.room:
                raise DiskFull("the home")
            self.room -= 1
        await super().append(account, events, after)


@pytest.mark.parametrize("style", [Style.MOMENTUM_SNIPER, Style.PASSIVE_MAKER])
@pytest.mark.parametrize("way", ["kill", "close", "kill after its lock and close were written"])
async def test_a_full_disk_keeps_nobody_from_closing(style: Style, way: str) -> None:
    """The entry is on the disk, its fill is not: there is no stop."""
    async with over_binance() as here:
        log = FullLog()
        desk = WireDesk(here, log)
        before = (await here.venue.balance()).total
        log.room = 2
        await desk.open(style=style)
        if style is Style.PASSIVE_MAKER:
            await here.move(here.price * Decimal("0.99"), Decimal("0.005"))
        held = desk.held()
        assert held > 0
        log.room = 2 if "written" in way else 0
        for _ in range(2):
            with pytest.raises(Unavailable):
                await (desk.gate.close(None) if way == "close" else desk.gate.kill())
            assert desk.held() == 0
            assert here.server.count("POST /fapi/v1/order") == 2
        await here.move(here.price * Decimal("0.97"))
        assert desk.held() == 0
        log.room = None
        await desk.restart()
        desk.wait(MINUTE_MS)
        await desk.gate.kill()
        book = desk.gate.book
        assert book.positions == book.open_orders == book.open_intents == {}
        assert [summary.quantity for summary in book.closed] == [held]
        assert (Protection.KILL_SWITCH, None) in book.locks
        assert [(await here.venue.balance()).total - before] == [summary.net_pnl for summary in book.closed]
        assert here.server.count("POST /fapi/v1/order") == 2


class GoneLog(MemoryTradeLog):
    """A database that answers so many calls more; None: it answers."""

    left: int | None = None

    def _answer(self) -> None:
        if self.left is not None:
            if not self.left:
                raise Unavailable("The database does not answer.")
            self.left -= 1

    async def events(self, account: str, after: int = 0) -> tuple[TradeEvent, ...]:
        self._answer()
        return await super().events(account, after)

    async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
        self._answer()
        await super().append(account, events, after)


@pytest.mark.parametrize("answers", [0, 1, 2, 3])
@pytest.mark.parametrize("way", ["kill", "close"])
async def test_a_log_that_goes_away_during_a_close_keeps_nobody_from_it(way: str, answers: int) -> None:
    """Neither read nor written from then on: what is held is what was known."""
    async with over_binance() as here:
        log = GoneLog()
        desk = WireDesk(here, log)
        before = (await here.venue.balance()).total
        await desk.open()
        held = desk.held()
        assert held > 0
        log.left = answers
        with pytest.raises(Unavailable):
            await (desk.gate.close(None) if way == "close" else desk.gate.kill())
        assert desk.held() == 0
        log.left = None
        desk.wait(MINUTE_MS)
        await (desk.gate.close(None) if way == "close" else desk.gate.kill())
        book = desk.gate.book
        assert book.positions == book.open_orders == book.open_intents == {}
        assert [summary.quantity for summary in book.closed] == [held]
        assert [(await here.venue.balance()).total - before] == [summary.net_pnl for summary in book.closed]
        assert here.server.count("POST /fapi/v1/order") == 2


@pytest.mark.parametrize("way", ["kill", "close", "kill after its lock and close were written"])
@pytest.mark.parametrize("booked", [True, False])
async def test_an_exit_that_could_not_be_written_is_ours_at_the_next_start(way: str, booked: bool) -> None:
    """By its client id: nothing is locked as a stranger's, and a kill that was thrown stays thrown."""
    async with over_binance() as here:
        await here.owe(Decimal(2_000))  # as the book begins
        log = FullLog()
        desk = WireDesk(here, log)
        before = (await here.venue.balance()).total
        log.room = None if booked else 2
        await desk.open()
        log.room = 2 if "written" in way else 0
        with pytest.raises(Unavailable):
            await (desk.gate.close(None) if way == "close" else desk.gate.kill())
        assert desk.held() == 0
        log.room = None
        await desk.restart()
        desk.wait(MINUTE_MS)
        await desk.gate.reconcile()
        await desk.gate.advance()
        book = desk.gate.book
        killed = way != "close"
        assert [summary.reason for summary in book.closed] == [
            ExitReason.KILL_SWITCH if killed else ExitReason.OWNER,
        ]
        assert set(book.locks) == ({(Protection.KILL_SWITCH, None)} if killed else set())
        assert book.positions == book.open_orders == book.open_intents == {}
        assert [(await here.venue.balance()).total - before] == [summary.net_pnl for summary in book.closed]
        assert here.server.count("POST /fapi/v1/order") == 2


@pytest.mark.parametrize("by", ["id", "symbol"])
async def test_a_full_disk_keeps_nobody_from_closing_one_trade(by: str) -> None:
    async with over_binance() as here:
        log = FullLog()
        desk = WireDesk(here, log)
        for symbol, quantity in ((BTC, 0.02), (ETH, 0.5)):
            assert await desk.open(symbol, quantity) == "open"
        log.room = 0
        trade = desk.gate.book.positions[Venue("BINANCE"), BTC, "debate"].id
        for _ in range(2):
            with pytest.raises(Unavailable):
                await desk.gate.close(trade if by == "id" else BTC)
            assert (desk.held(BTC), desk.held(ETH)) == (0, Decimal("0.5"))
        with pytest.raises(NotFound):
            await desk.gate.close("trd_unknown")
        log.room = None
        await desk.gate.advance()
        assert [(summary.symbol, summary.reason) for summary in desk.gate.book.closed] == [(BTC, ExitReason.OWNER)]
        assert desk.gate.book.locks == {}
        assert here.server.count("POST /fapi/v1/order") == 3


async def test_a_hand_that_turns_a_position_leaves_no_stop_of_the_other_side(desk: WireDesk) -> None:
    await desk.open()
    assert len(stops(desk, BTC)) == 1
    turn = OrderRequest(
        client_id="by-hand",
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=OrderSide.SELL,
        type=OrderType.MARKET,
        quantity=Decimal("0.05"),
    )
    await desk.here.venue.place(turn)
    await desk.gate.advance()
    assert desk.held() == Decimal("-0.03")
    assert [algo.client_id for algo in fake(desk).engine.algos.values() if algo.status == "NEW"] == []
    assert (Protection.RECONCILIATION, BTC) in desk.gate.book.locks
    assert [summary.reason for summary in desk.gate.book.closed] == [ExitReason.MANUAL]


async def test_a_full_disk_closes_no_more_than_ours(desk: WireDesk) -> None:
    log = desk.log = FullLog()
    desk.gate = desk.open_gate()
    await desk.open()
    request = OrderRequest(
        client_id="by_hand",
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=OrderSide.BUY,
        type=OrderType.MARKET,
        quantity=Decimal("0.03"),
    )
    await desk.here.venue.place(request)
    assert desk.held() == Decimal("0.05")
    log.room = 0
    for _ in range(2):
        with pytest.raises(Unavailable):
            await desk.gate.kill()
        assert desk.held() == Decimal("0.03")


async def test_an_entry_that_went_on_filling_is_closed_by_the_next_kill(desk: WireDesk) -> None:
    log = desk.log = FullLog()
    desk.gate = desk.open_gate()
    log.room = 2
    await desk.open(style=Style.PASSIVE_MAKER)
    silence(desk, "DELETE /fapi/v1/order")
    for part in ("0.005", "0.004"):
        await desk.here.move(desk.here.price * Decimal("0.99"), Decimal(part))
        assert desk.held() == Decimal(part)
        with pytest.raises(Unavailable):
            await desk.gate.kill()
        assert desk.held() == 0


async def test_exits_that_could_not_be_written_are_booked_together_as_one_close() -> None:
    async with over_binance() as here:
        await here.owe(Decimal(2_000))  # as the book begins
        log = FullLog()
        desk = WireDesk(here, log)
        log.room = 2
        await desk.open(style=Style.PASSIVE_MAKER)
        silence(desk, "DELETE /fapi/v1/order")
        for part in ("0.005", "0.004"):
            await here.move(here.price * Decimal("0.99"), Decimal(part))
            with pytest.raises(Unavailable):
                await desk.gate.kill()
        here.server.faults.clear()
        log.room = None
        await desk.restart()
        await desk.gate.reconcile()
        await desk.gate.advance()
        book = desk.gate.book
        assert [summary.reason for summary in book.closed] == [ExitReason.KILL_SWITCH] * len(book.closed)
        assert sum(summary.quantity for summary in book.closed) == Decimal("0.009")
        assert set(book.locks) == {(Protection.KILL_SWITCH, None)}
        assert book.positions == book.open_orders == book.open_intents == {}
        events = await log.events(desk.gate.account)
        assert [event.protection for event in events if isinstance(event, LockSet)] == [Protection.KILL_SWITCH]
        assert (await here.venue.balance()).total == book.venue_balance(Venue("BINANCE"))


@pytest.mark.parametrize("restarted", [True, False])
async def test_a_kill_that_could_not_be_written_locks_though_a_close_was_stored_since(
    desk: WireDesk, restarted: bool
) -> None:
    log = desk.log = FullLog()
    desk.gate = desk.open_gate()
    await desk.open()
    log.room = 0
    with pytest.raises(Unavailable):
        await desk.gate.kill()
    log.room = None
    if restarted:
        await desk.restart()
    await desk.gate.close(None)
    desk.wait(MINUTE_MS)
    await desk.gate.advance()
    book = desk.gate.book
    assert set(book.locks) == {(Protection.KILL_SWITCH, None)}
    assert book.positions == book.open_orders == book.open_intents == {}
    await desk.gate.unlock()
    desk.wait(MINUTE_MS)
    await desk.gate.advance()
    assert desk.gate.book.locks == {}


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("gone", [True, False], ids=["database gone", "disk full"])
async def test_a_kill_that_could_not_be_written_locks_though_a_close_is_being_worked(
    gone: bool, restarted: bool
) -> None:
    """The exchange did not answer the close that is stored."""
    async with over_binance() as here:
        await here.owe(Decimal(2_000))  # as the book begins
        log = GoneLog() if gone else FullLog()
        desk = WireDesk(here, log)
        await desk.open()
        silence(desk, "POST /fapi/v1/order")
        await desk.gate.close(None)
        assert desk.held()
        here.server.faults.clear()
        desk.wait(10_000)
        await here.venue.now()
        if isinstance(log, GoneLog):
            log.left = 1
        else:
            log.room = 0
        with pytest.raises(Unavailable):
            await desk.gate.kill()
        assert desk.held() == 0
        if isinstance(log, GoneLog):
            log.left = None
        else:
            log.room = None
        if restarted:
            await desk.restart()
        desk.wait(MINUTE_MS)
        await desk.gate.reconcile()
        await desk.gate.advance()
        book = desk.gate.book
        assert book.positions == book.open_orders == book.open_intents == {}
        assert [summary.reason for summary in book.closed] == [ExitReason.OWNER]
        assert set(book.locks) == {(Protection.KILL_SWITCH, None)}
        await desk.gate.unlock()
        await desk.gate.advance()
        assert desk.gate.book.locks == {}


OWNED = Decimal("0.5")


@asynccontextmanager
async def spot_desk() -> AsyncIterator[tuple[WireDesk, FullLog]]:
    """With a position at a spot exchange where the owner has coins, too: nothing keeps a sale from taking those."""
    async with over_upbit() as here:
        desk = WireDesk(here, log := FullLog())
        here.fake.engine.position(name_at(UPBIT, BTC)).amount += OWNED
        assert await desk.open() == "open"
        yield desk, log


@pytest.mark.parametrize(("first", "way"), [("kill", "kill"), ("kill", "close"), ("kill", "stop"), ("close", "ruling")])
async def test_what_was_sold_unwritten_at_a_spot_exchange_is_not_sold_again(first: str, way: str) -> None:
    async with spot_desk() as (desk, log):
        log.room = 0
        with pytest.raises(Unavailable):
            await (desk.gate.kill() if first == "kill" else desk.gate.close(None))
        assert desk.held() == OWNED
        log.room = None
        await desk.restart()
        if way == "stop":
            await desk.here.move(desk.here.price * Decimal("0.97"))
            await desk.gate.advance()
        elif way == "ruling":
            await desk.gate.execute(desk.closing(BTC))
        else:
            await (desk.gate.kill() if way == "kill" else desk.gate.close(None))
        await desk.gate.advance()
        assert desk.held() == OWNED
        assert desk.here.server.count("POST /v1/orders") == 2
        book = desk.gate.book
        assert book.positions == book.open_orders == book.open_intents == {}
        assert set(book.locks) == ({(Protection.KILL_SWITCH, None)} if "kill" in (first, way) else set())


@pytest.mark.parametrize("written", [True, False])
async def test_nothing_is_sold_again_at_a_spot_exchange_while_earlier_exits_are_unread(written: bool) -> None:
    async with spot_desk() as (desk, log):
        log.room = 0
        with pytest.raises(Unavailable):
            await desk.gate.close(None)
        desk.here.server.fail("GET /v1/order", DOWN, ALWAYS)
        log.room = None if written else 0
        with suppress(Unavailable):
            await desk.gate.kill()
        assert desk.held() == OWNED
        desk.here.server.faults.clear()
        log.room = None
        desk.wait(7_000)
        await desk.gate.kill()
        await desk.gate.advance()
        assert desk.held() == OWNED
        assert desk.gate.book.positions == desk.gate.book.open_intents == {}
        assert desk.here.server.count("POST /v1/orders") == 2


async def test_a_stop_at_a_spot_exchange_waits_for_no_read() -> None:
    """Where nothing is known to have been sent unwritten."""
    async with spot_desk() as (desk, _):
        desk.here.server.fail("GET /v1/order", DOWN, ALWAYS)
        await desk.here.move(desk.here.price * Decimal("0.97"))
        await desk.gate.advance()
        assert desk.held() == OWNED


async def test_a_full_disk_keeps_nobody_from_selling_at_a_spot_exchange() -> None:
    async with over_upbit() as here:
        log = FullLog()
        desk = WireDesk(here, log)
        log.room = 2
        await desk.open()
        assert desk.held() > 0
        for _ in range(2):
            with pytest.raises(Unavailable):
                await desk.gate.kill()
            assert desk.held() == 0
            assert here.server.count("POST /v1/orders") == 2
