"""Entries by hand: prices they take, moments they are written at, and the account a cycle is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.accounts import FUTURES, SPOT, build_fees
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.kill_lock import KillLockFile
from zuno.kernel.errors import Broken, NotFound, Refused, Unavailable, UsageError
from zuno.kernel.text import Token
from zuno.kernel.units import Address, Millis
from zuno.lp.service.positions import token_amounts
from zuno.lp.service.views import MissingView, PoolKeyView, PositionsView, PositionView
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.routes import DEFAULT_ROUTES, Routes
from zuno.markets.venues import Venue
from zuno.trading.model.account import (
    FEES,
    Account,
    BookChange,
    EquitySlot,
    FeesSlot,
    Holding,
    LiquidityStated,
    PositionsSlot,
    VenueFees,
    read_slot,
)
from zuno.trading.model.bundle import Slot
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Level,
    MarkAndIndex,
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.model.trade_events import ManualChange, TradeEvent, paper_account
from zuno.trading.ports.series import Batch, Origin, Source
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.service.account import AccountDesk
from zuno.trading.service.account_page import AccountBackends, AccountPageReader, read_before, sum_inventory
from zuno.trading.service.account_view import ActionView, ExchangeBalanceView, TradePositionView
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.manual_entries import ClosingEntry, LiquidityAmount, OpeningEntry
from zuno.trading.service.prices import list_marks

END = Millis(1_767_225_600_000)
BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")
WORLD = Origin(True, "SYNTHETIC seed 3")
WHY = "nobody looks for liquidity here"


class BookInMemory(MemoryTradeLog):
    """The log, and the paper account that it adds up to."""

    async def at(self, origin: str, moment: Millis) -> Account:
        return (await read_before(self, paper_account(origin), moment)).to_account()

    async def changes(self, origin: str) -> list[BookChange]:
        found = await self.events(paper_account(origin))
        return [event.change for event in found if isinstance(event, ManualChange)]

    async def write(self, origin: str, change: BookChange, after: int) -> None:
        await self.append(paper_account(origin), [ManualChange(at=change.at, change=change)], after)


async def nobody(*asked: object) -> Any:
    raise AssertionError("no journal is needed")


async def market(*, eth: bool = True, won: bool = True) -> MemorySeries:
    """Two days of five minutes: each hour a thousandth dearer."""
    store = MemorySeries(WORLD)
    times = [Millis(at) for at in range(END - 2 * DAY_MS, END + 1, 5 * MINUTE_MS)]

    def dear(start: float, at: int) -> float:
        return start * (1 + (at - END) / HOUR_MS / 1_000)

    bar = Candle(Millis(END - MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0, 0.5)
    batches: list[Batch[Any]] = [
        Batch(candles(BINANCE, BTC, Timeframe.M1), [bar._replace(at=times[0]), bar]),
        Batch(basis(BINANCE, BTC), [MarkAndIndex(at, dear(60_000, at), dear(60_001, at)) for at in times]),
    ]
    if eth:
        batches.append(Batch(basis(BINANCE, ETH), [MarkAndIndex(at, dear(3_000, at), dear(3_001, at)) for at in times]))
    if won:
        batches.append(Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times]))
    await store.write(batches)
    return store


class Hand:
    """A person who enters things by hand, and looks at the account."""

    def __init__(
        self,
        store: MemorySeries,
        log: BookInMemory | None = None,
        inventory: Any = WHY,
        fees: Fees | None = None,
        routes: Routes = DEFAULT_ROUTES,
        **more: Any,
    ) -> None:
        desk = TradingDesk(store, nobody, None, **more)  # type: ignore[arg-type]  # nobody paints here
        self.backends = AccountBackends(
            desk=desk,
            store=store,
            log=log or BookInMemory(),
            inventory=inventory,
            open_gate=nobody,
            limits=ProtectionLimits(),
            running=lambda account: None,
            now=lambda: END,
            kill_lock=KillLockFile(Path("no home")),
            fees=fees or Fees(),
            routes=routes,
        )
        self.account = AccountDesk(self.backends)

    async def add(self, symbol: str, side: str, margin: str, *, as_of: str | None = None, **more: Any) -> ActionView:
        return await self.account.enter(
            OpeningEntry.parse(self.backends.desk.markets, symbol, side, margin, **more), as_of
        )

    async def close(self, which: str, at: str | None = None, as_of: str | None = None) -> ActionView:
        return await self.account.enter(ClosingEntry.parse(which, at), as_of)

    async def state(self, symbol: str, quantity: str) -> ActionView:
        return await self.account.enter(LiquidityAmount.parse(self.backends.desk.markets, symbol, quantity))

    async def positions(self) -> tuple[TradePositionView, ...]:
        return (await self.account.positions()).positions

    async def balances(self) -> tuple[ExchangeBalanceView, ...]:
        return (await self.account.balance()).purses

    async def slots(self, moment: Millis, *, present: bool = False) -> list[Slot]:
        return await AccountPageReader(self.backends).read_slots(WORLD.label, moment, present)

    async def held(self, moment: Millis) -> tuple[Holding, ...]:
        """The positions that a cycle of that moment is given."""
        return read_slot(PositionsSlot, (await self.slots(moment))[0].content, "positions").positions


async def test_a_position_is_opened_at_the_mark_and_says_where_from() -> None:
    hand = Hand(await market())
    view = await hand.add("BTCUSDT", "long", "500", leverage="2")
    (position,) = view.positions
    assert (position.side, position.exchange, position.leverage, position.currency) == ("long", "BINANCE", 2.0, "USD")
    assert position.manual
    assert position.entry == pytest.approx(60_000 * (1 - 5 / 60 / 1_000))
    assert position.mark == pytest.approx(position.entry)
    assert position.quantity * position.entry == pytest.approx(1_000.0)
    assert "299 s" in view.said[0]
    assert "$0.50" in view.said[0]
    assert view.synthetic
    assert (await hand.balances())[0].cash == pytest.approx(1_499.5)
    status = await hand.account.status()
    assert status.risk.gross_usd == pytest.approx(1_000.0, rel=1e-3)
    assert status.equity_usd == pytest.approx(1_999.5 + 2_000_000 / 1_400, abs=0.1)


async def test_what_is_added_without_a_moment_is_seen_at_the_end_of_the_market() -> None:
    store, book = await market(), BookInMemory()
    view = await Hand(store, book).add("BTC", "long", "500")
    assert view.as_of == "2025-12-31T23:59:59.999Z"
    assert [one.id for one in (await book.at(WORLD.label, END)).positions] == [view.positions[0].id]
    shown = await Hand(store, book).account.positions()
    assert shown.as_of == "2026-01-01T00:00:00Z"
    assert shown.positions[0].mark == 60_000.0
    assert shown.positions[0].unrealised is not None
    assert shown.positions[0].unrealised > 0


async def test_what_is_added_at_a_moment_is_seen_after_it_and_not_at_it() -> None:
    hand, at = Hand(await market()), Millis(END - DAY_MS)
    await hand.add("BTC", "long", "500", as_of="24h")
    for moment in (at - HOUR_MS, at):
        assert await hand.held(Millis(moment)) == ()
    (one,) = await hand.held(Millis(at + 1))
    assert one.entry == pytest.approx(60_000 * 0.976)


async def test_upbit_is_in_won_at_the_mark_times_the_rate() -> None:
    hand = Hand(await market())
    view = await hand.add("ETH", "long", "400,000", exchange="upbit")
    (position,) = view.positions
    assert position.currency == "KRW"
    assert position.entry == pytest.approx(3_000 * 1_400 * (1 - 5 / 60 / 1_000))
    assert position.quantity * position.entry == pytest.approx(400_000)
    assert "rates/upbit/KRW-USDT" in view.said[0]
    _, upbit = await hand.balances()
    assert upbit.cash == pytest.approx(2_000_000 - 400_000 - 200)
    assert upbit.equity == pytest.approx(2_000_000 - 200, abs=50)


async def test_without_a_price_one_has_to_be_stated() -> None:
    hand = Hand(await market(eth=False, won=False))
    with pytest.raises(Refused, match=r"rates/upbit/KRW-USDT.*--entry"):
        await hand.add("BTC", "long", "400000", exchange="upbit")
    view = await hand.add("BTC", "long", "400000", exchange="upbit", entry="84000000")
    assert "(as stated)" in view.said[0]
    assert view.positions[0].mark is None
    assert (await hand.balances())[1].equity is None
    with pytest.raises(Refused, match="--at"):
        await hand.close("BTCUSDT")
    with pytest.raises(Refused, match="free"):  # cash alone counts where nothing is borrowed
        await hand.add("BTC", "long", "1600000", exchange="upbit", entry="84000000")
    await hand.add("BTC", "long", "1500000", exchange="upbit", entry="84000000")


async def test_a_stale_mark_is_no_price_and_makes_the_whole_unknown() -> None:
    store = await market(eth=False)
    hand = Hand(store)
    await store.write([Batch(basis(BINANCE, ETH), [MarkAndIndex(Millis(END - 11 * MINUTE_MS), 3_000.0, 3_000.0)])])
    with pytest.raises(Refused, match="659 s"):
        await hand.add("ETH", "short", "100")
    await hand.add("ETH", "short", "100", entry="3000")
    status = await hand.account.status()
    assert (status.equity_usd, status.risk.gross_usd, status.risk.leverage) == (None, None, None)
    assert status.unknown is not None
    assert "ETHUSDT" in status.unknown
    assert (await hand.balances())[0].equity is None
    with pytest.raises(Refused, match="free"):
        await hand.add("ETH", "short", "100", entry="3000")


async def test_a_home_of_candles_marks_at_the_last_close() -> None:
    """Of the finest bars that are not stale; where something was collected, there is no mark but a mark."""
    store = MemorySeries(Origin(False, "recorded"))
    for timeframe, ago, close in ((Timeframe.H1, 2 * HOUR_MS, 61_000.0), (Timeframe.D1, DAY_MS, 59_000.0)):
        bar = Candle(Millis(END - ago), close, close, close, close, 1.0, None)
        await store.write([Batch(candles(BINANCE, BTC, timeframe), [bar], None, Source.IMPORTED, "bars.csv")])
    view = await Hand(store).add("BTCUSDT", "long", "500", as_of=str(END))
    assert (view.positions[0].entry, view.positions[0].mark) == (61_000.0, 61_000.0)
    await store.write([Batch(rates(UPBIT, USDT_KRW), [Level(END, 1_400.0)], END)])
    with pytest.raises(Refused):
        await Hand(store).add("BTCUSDT", "long", "500", as_of=str(END))


async def test_an_order_rests_at_its_price_and_is_taken_back() -> None:
    hand = Hand(await market())
    with pytest.raises(UsageError, match="give --entry"):
        await hand.add("ETH", "long", "300", pending=True)
    view = await hand.add("ETH", "long", "300", leverage="3", entry="2400", pending=True)
    (order,) = view.orders
    assert order.id.startswith("ord_")
    assert (order.side, order.price, order.quantity, order.status) == ("BUY", 2_400.0, 0.375, "OPEN")
    assert (await hand.account.orders()).orders == view.orders
    binance, _ = await hand.balances()
    assert (binance.free, binance.cash, binance.pending_margin) == (1_700.0, 2_000.0, 300.0)
    assert (await hand.account.status()).risk.gross_usd == pytest.approx(0.375 * 3_000, rel=1e-3)
    assert (await hand.close(order.id)).orders == ()
    (again,) = (await hand.add("ETH", "long", "300", entry="2400", pending=True)).orders
    assert (await hand.account.cancel(again.id)).orders == ()
    with pytest.raises(NotFound):
        await hand.account.cancel(again.id)


async def test_closing_a_symbol_closes_all_of_it_and_nothing_else() -> None:
    store, book = await market(), BookInMemory()
    await Hand(store, book).add("ETH", "long", "300")
    await Hand(store, book).add("ETH", "long", "400000", exchange="upbit")
    await Hand(store, book).add("ETH", "long", "100", entry="2000", pending=True)
    btc = (await Hand(store, book).add("BTC", "short", "100")).positions[-1]
    with pytest.raises(UsageError, match="currencies"):
        await Hand(store, book).close("ETHUSDT", at="3000")
    view = await Hand(store, book).close("eth")
    assert [one.id for one in view.positions] == [btc.id]
    assert view.orders == ()
    assert len(view.said) == 3
    with pytest.raises(NotFound, match="ETHUSDT"):
        await Hand(store, book).close("ETHUSDT")


async def test_fees_are_in_a_bundle_where_they_are_not_the_usual_ones() -> None:
    store = await market()

    async def named(fees: Fees | None = None) -> list[Slot]:
        return [slot for slot in await Hand(store, fees=fees).slots(END) if slot.name == FEES]

    assert await named() == await named(Fees()) == []
    (slot,) = await named(build_fees(FeeRates(0.01, 0.04), FeeRates(0.1, 0.1)))
    assert read_slot(FeesSlot, slot.content, "fees") == FeesSlot(
        fees={FUTURES: VenueFees(maker=0.01, taker=0.04), SPOT: VenueFees(maker=0.1, taker=0.1)}
    )
    assert (slot.as_of, slot.source) == (END, "settings")


async def test_a_close_at_a_price_realises_it_with_the_fee_of_the_house() -> None:
    hand = Hand(await market(), fees=Fees({FUTURES: FeeRates(0.0, 1.0)}))
    opened = await hand.add("BTC", "short", "500", entry="60000")
    view = await hand.close(opened.positions[0].id, at="48000")
    assert (await hand.balances())[0].cash == pytest.approx(2_000 - 5 + 100 - 4)
    assert "$96.00" in view.said[0]
    (trade,) = (await hand.account.trades()).trades
    assert (trade.net_pnl, trade.exit, trade.exit_reason) == (pytest.approx(91.0), 48_000.0, "manual")


@pytest.mark.parametrize(
    ("words", "more", "error", "said"),
    [
        (("BTC", "long", "0"), {}, UsageError, "0 opens nothing"),
        (("BTC", "long", "-5"), {}, UsageError, "above zero, -5 is not"),
        (("BTC", "long", "x"), {}, UsageError, "not an amount"),
        (("BTC", "up", "5"), {}, UsageError, "'up' is no side"),
        (("DOGE", "long", "5"), {}, UsageError, "not traded here"),
        (("BTC", "long", "5"), {"exchange": "moon"}, UsageError, "no venue"),
        (("BTC", "long", "5"), {"exchange": "bybit"}, Refused, "no money at BYBIT"),
        (("BTC", "long", "5"), {"leverage": "0.5"}, Refused, "0.5 is not between 1 and 3"),
        (("BTC", "long", "5"), {"leverage": "3.1"}, Refused, "3.1 is not between 1 and 3"),
        (("BTC", "long", "5"), {"entry": "0"}, UsageError, "amount of 0"),
        (("BTC", "long", "5"), {"entry": "9e9"}, UsageError, "not an amount"),
        (("BTC", "long", "5"), {"entry": "2000000000000"}, UsageError, "above 1e"),
        (("BTC", "long", "1999.5"), {}, Refused, r"more than the \$2,000.00"),
        (("BTC", "short", "5"), {"exchange": "upbit"}, Refused, "sold short"),
        (("BTC", "long", "5"), {"as_of": "2026-01-02"}, UsageError, "lies after the end"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_is_written(
    words: tuple[str, str, str], more: dict[str, str], error: type[Exception], said: str
) -> None:
    book = BookInMemory()
    with pytest.raises(error, match=said):
        await Hand(await market(), book).add(*words, **more)
    assert await book.changes(WORLD.label) == []


async def test_an_account_is_written_forward() -> None:
    store, book = await market(), BookInMemory()
    await Hand(store, book).add("BTC", "long", "100", as_of="12h")
    with pytest.raises(Refused, match=r"2025-12-31T12:00.*2025-12-31T11:00"):
        await Hand(store, book).add("ETH", "long", "100", as_of="13h")
    await Hand(store, book).add("ETH", "long", "100", as_of="12h")
    await Hand(store, book).add("BTC", "long", "100", as_of=str(END))
    last = await Hand(store, book).add("BTC", "long", "100")
    assert last.as_of == "2026-01-01T00:00:00Z"


async def test_closing_before_opening_and_names_nobody_has_are_refused() -> None:
    store, book = await market(), BookInMemory()
    view = await Hand(store, book).add("BTC", "long", "100", as_of="12h")
    with pytest.raises(Refused, match="before"):
        await Hand(store, book).close(view.positions[0].id, as_of="13h")
    for name in ("pos_00000000", "ord_00000000", "nonsense"):
        with pytest.raises(NotFound, match=name):
            await Hand(store, book).close(name)


async def test_whoever_looked_before_somebody_else_wrote_is_refused() -> None:
    store = await market()

    class Raced(BookInMemory):
        async def append(self, account: str, events: Sequence[TradeEvent], after: int) -> None:
            other = LiquidityStated(at=Millis(END - 1), symbol=ETH, quantity=9.0)
            await super().append(account, [ManualChange(at=other.at, change=other)], after)
            await super().append(account, events, after)

    book = Raced()
    with pytest.raises(Refused, match="else"):
        await Hand(store, book).add("BTC", "long", "100")
    assert (await book.at(WORLD.label, END)).positions == ()


async def test_an_account_that_contradicts_itself_is_broken() -> None:
    store, book = await market(), BookInMemory()
    await book.write(WORLD.label, LiquidityStated(at=9, symbol=ETH, quantity=1.0), 0)
    await book.write(WORLD.label, LiquidityStated(at=8, symbol=ETH, quantity=1.0), 1)
    with pytest.raises(Broken):
        await Hand(store, book).positions()
    with pytest.raises(Broken):
        await Hand(store, book).add("BTC", "long", "1")


async def test_one_recorded_symbol_is_enough_to_look() -> None:
    store = MemorySeries(Origin(False, "recorded"))
    with pytest.raises(Refused, match="BTCUSDT"):
        await Hand(store).positions()
    await store.write([Batch(basis(BINANCE, ETH), [MarkAndIndex(END, 3_000.0, 3_000.0)])])
    view = await Hand(store).account.status()
    assert (view.as_of, view.unknown, view.synthetic) == ("2026-01-01T00:00:00Z", None, False)


async def test_a_moment_that_one_symbol_has_is_enough_to_write() -> None:
    """The candles of one end a day before those of the other."""
    store = MemorySeries(Origin(False, "recorded"))
    for symbol, end in ((BTC, END - DAY_MS), (ETH, END)):
        marks = [MarkAndIndex(Millis(at), 3_000.0, 3_000.0) for at in range(END - 2 * DAY_MS, end + 1, HOUR_MS)]
        await store.write([Batch(basis(BINANCE, symbol), marks)])
    hand = Hand(store)
    assert (await hand.add("ETH", "long", "10", as_of=str(END - HOUR_MS))).as_of == "2025-12-31T23:00:00Z"
    for beyond in (str(END + DAY_MS), "once"):
        with pytest.raises(UsageError):
            await hand.add("ETH", "long", "10", as_of=beyond)


@pytest.mark.parametrize(("side", "stop"), [("long", "40300"), ("short", "79500")])
async def test_a_stop_before_the_liquidation_is_taken(side: str, stop: str) -> None:
    view = await Hand(await market()).add("BTCUSDT", side, "100", entry="60000", leverage="3", stop=stop)
    assert view.positions[0].stop == float(stop)


async def test_a_live_account_looks_at_the_marks_once_and_writes_now() -> None:
    store, looks = await market(), list[Symbol]()

    async def refresh(symbol: Symbol) -> tuple[Millis, dict[str, str]]:
        looks.append(symbol)
        return Millis(END + 7), {}

    live = Hand(store, refresh=refresh, now=lambda: Millis(END + 7))
    assert (await live.add("ETH", "long", "10")).as_of == "2026-01-01T00:00:00.007Z"
    assert looks == [BTC]
    assert len(await live.positions()) == 1
    assert looks == [BTC, BTC]
    assert {str(one) for one in list_marks(DEFAULT_SYMBOLS)} == {
        "basis/binance/BTCUSDT",
        "basis/binance/ETHUSDT",
        "rates/binance/USDC-USDT",
        "rates/upbit/KRW-USDT",
    }


# -- liquidity


async def test_liquidity_is_stated_by_hand() -> None:
    hand = Hand(await market())
    view = await hand.state("ETHUSDT", "1.5")
    assert "1.5 ETH" in view.said[0]
    status = await hand.account.status()
    assert [(row.symbol, row.lp) for row in status.risk.rows] == [("ETHUSDT", 1.5)]
    assert status.risk.gross_usd == pytest.approx(4_500, rel=1e-3)
    assert status.equity_usd == pytest.approx(2_000 + 2_000_000 / 1_400)
    await hand.state("ETH", "0")
    assert (await hand.account.status()).risk.rows == ()
    for bad in ("-1", "much", ".", ""):
        with pytest.raises(UsageError):
            await hand.state("ETH", bad)


def token(symbol: str, verified: bool = True) -> Token:
    return Token(address=Address("0x" + "1" * 40), symbol=symbol, decimals=18, verified=verified)


def position(one: Token, other: Token, amounts: tuple[str, str, str, str]) -> PositionView:
    key = PoolKeyView(
        id="0x1", currency0=one, currency1=other, fee=500, tick_spacing=10, hooks="0x0", dynamic_fee=False, label="x"
    )
    return PositionView.model_construct(  # type: ignore[call-arg]
        pool=key,
        amount0_human=amounts[0],
        fees0_human=amounts[1],
        amount1_human=amounts[2],
        fees1_human=amounts[3],
    )


def wallet(*positions: PositionView, complete: bool = True) -> PositionsView:
    return PositionsView.model_construct(
        chain="base",
        block=1,
        timestamp=1,
        wallet="0x1",
        complete=complete,
        note="",
        positions=positions,
        missing=() if complete else (MissingView(id="7", reason="unread"),),
    )


def test_what_moves_with_the_desks_symbols_is_summed_by_base() -> None:
    amounts = token_amounts(
        wallet(
            position(token("ETH"), token("USDC"), ("1.25", "0.25", "900", "1")),
            position(token("cbBTC"), token("WETH"), ("0.1", "0.01", "2", "0.5")),
            position(token("WBTC"), token("USDC"), ("0.2", "0", "1", "1")),
            position(token("WETH", verified=False), token("USDC"), ("1000", "0", "1", "1")),
        )
    )
    assert sum_inventory(amounts, (BTC, ETH)) == {ETH: 4.0, BTC: pytest.approx(0.31)}


def test_tokens_count_for_the_markets_of_the_desk_alone() -> None:
    amounts = {"POL": Decimal(3), "WPOL": Decimal(4), "WETH": Decimal(1)}
    assert sum_inventory(amounts, (Symbol("POLUSDT"),)) == {Symbol("POLUSDT"): 7.0}


async def test_any_market_and_venue_of_the_desk_is_entered() -> None:
    sol = Symbol("bybit:SOL/USDT:USDT")
    store = MemorySeries(WORLD)
    rows = [MarkAndIndex(Millis(at), 100.0, 100.0) for at in range(END - DAY_MS, END + 1, 5 * MINUTE_MS)]
    bar = Candle(Millis(END - MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0, 0.5)
    await store.write([Batch(basis("bybit", sol), rows), Batch(candles("bybit", sol, Timeframe.M1), [bar])])
    bybit = Venue("BYBIT")
    routes = Routes({"BINANCE": {bybit: 1.0}, "UPBIT": {Venue("OKX-SPOT"): 1.0}, "SPLIT": {bybit: 1.0}})
    hand = Hand(store, routes=routes, markets=(sol,))
    view = await hand.add("sol", "long", "500", leverage="2")
    await hand.add("SOL", "long", "100", exchange="okx-spot")
    assert [(held.symbol, held.exchange) for held in view.positions] == [(sol, "BYBIT")]
    assert {purse.exchange: round(purse.cash) for purse in await hand.balances()} == {"BYBIT": 1_499, "OKX-SPOT": 1_900}
    with pytest.raises(Refused, match="BYBIT"):
        await hand.add("SOL", "long", "100", exchange="okx")
    await hand.state("SOL", "2")
    closed = await hand.close("SOL")
    assert closed.positions == ()
    events = await hand.backends.log.events(paper_account(WORLD.label))
    assert [event.kind for event in events][:2] == ["account_opened", "manual"]


def test_a_wallet_that_was_read_in_part_says_so() -> None:
    with pytest.raises(Unavailable, match="1 positions"):
        token_amounts(wallet(complete=False))


async def given(inventory: Any, *, present: bool = True, stated: float = 0.0) -> tuple[Any, Any]:
    book = BookInMemory()
    if stated:
        await book.write(WORLD.label, LiquidityStated(at=1, symbol=ETH, quantity=stated), 0)
    slots = await Hand(await market(), book, inventory).slots(END, present=present)
    assert [slot.name for slot in slots] == ["positions", "equity"]
    assert {slot.as_of for slot in slots} == {END}
    cash = read_slot(EquitySlot, slots[1].content, "cash")
    assert (cash.cash[FUTURES], cash.cash[SPOT]) == (2_000.0, 2_000_000.0)
    held = read_slot(PositionsSlot, slots[0].content, "positions")
    return {one.symbol: one.quantity for one in held.liquidity}, held


def reads(*positions: PositionView) -> Callable[[], Any]:
    async def read() -> Mapping[str, Decimal]:
        return token_amounts(wallet(*positions))

    return read


def fails(error: Exception) -> Callable[[], Any]:
    async def read() -> Mapping[str, Decimal]:
        raise error

    return read


async def test_a_cycle_is_given_what_the_wallet_holds_or_what_is_stated_where_that_is_more() -> None:
    read = reads(position(token("ETH"), token("USDC"), ("2", "0", "1", "1")))
    assert (await given(read))[0] == {ETH: 2.0}
    assert (await given(read, stated=1.0))[0] == {ETH: 2.0}
    assert (await given(read, stated=3.0))[0] == {ETH: 3.0}


async def test_where_nobody_looks_the_reason_is_given() -> None:
    found, held = await given(WHY, stated=1.0)
    assert (found, held.unread, held.notes) == ({ETH: 1.0}, None, (WHY,))
    found, held = await given(fails(UsageError("Whose positions? Set a wallet.")), stated=1.0)
    assert (found, held.unread) == ({ETH: 1.0}, None)
    assert "Whose positions?" in held.notes[0]
    found, held = await given(fails(AssertionError("the past is not on chain")), present=False, stated=1.0)
    assert (found, held.unread) == ({ETH: 1.0}, None)
    assert "present" in held.notes[0]


async def test_a_wallet_that_cannot_be_read_leaves_the_account_unread() -> None:
    for read in (fails(Unavailable("The node is away.")), fails(Broken("Two blocks disagree."))):
        _, held = await given(read)
        assert held.unread is not None
        assert held.unread.endswith(("The node is away", "Two blocks disagree"))


async def test_an_id_is_that_of_the_entry_and_its_place() -> None:
    names = []
    for amounts in (("10", "10"), ("10", "11")):
        hand = Hand(await market())
        names.append([(await hand.add("BTC", "long", amount)).positions[-1].id for amount in amounts])
    assert all(re.fullmatch("pos_[0-9a-f]{8}", id) for id in names[0])
    assert names[0][0] == names[1][0]
    assert len({*names[0], *names[1]}) == 3


async def test_entries_by_hand_are_of_paper_accounts() -> None:
    live = AccountDesk(Hand(await market()).backends, "live")
    with pytest.raises(Refused):
        await live.enter(LiquidityAmount.parse((ETH,), "ETH", "1"))
    with pytest.raises(Refused):
        await live.cancel("ord_00000000")


async def test_a_position_keeps_its_stop_target_and_hold() -> None:
    book = BookInMemory()
    view = await Hand(await market(), book).add("BTCUSDT", "short", "500", stop="61,500", target="57000", hold="3D")
    (position,) = view.positions
    assert (position.stop, position.target) == (61_500.0, 57_000.0)
    assert position.hold_until == "2026-01-03T23:59:59.999Z"
    (held,) = (await book.at(WORLD.label, Millis(2**50))).positions
    assert (held.stop, held.take, held.hold) == (61_500.0, 57_000.0, "3d")
    plain = (await Hand(await market()).add("BTCUSDT", "long", "500")).positions[0]
    assert (plain.stop, plain.target, plain.hold_until) == (None, None, None)


@pytest.mark.parametrize(
    ("side", "exits", "error"),
    [
        ("long", {"stop": "60001"}, Refused),
        ("long", {"target": "59000"}, Refused),
        ("short", {"stop": "59000"}, Refused),
        ("short", {"target": "60001"}, Refused),
        ("long", {"stop": "40200", "leverage": "3"}, Refused),  # liquidated at 40,201
        ("short", {"stop": "79800", "leverage": "3"}, Refused),  # at 79,602
        ("short", {"stop": "119500"}, Refused),
        ("long", {"hold": "soon"}, UsageError),
        ("long", {"hold": "0d"}, UsageError),
        ("long", {"stop": "59000", "pending": True}, UsageError),
    ],
)
async def test_exits_that_make_no_sense_are_refused(side: str, exits: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await Hand(await market()).add("BTCUSDT", side, "100", entry="60000", **exits)


# -- what is free, and what the market did meanwhile


async def falling_market(low: float, now: float) -> MemorySeries:
    """Bitcoin at 60,000 until two hours ago; then it was at `low` for an hour, and is at `now`."""
    store = MemorySeries(WORLD)
    times = [Millis(at) for at in range(END - 2 * DAY_MS, END + 1, 5 * MINUTE_MS)]
    hours = [Millis(at) for at in range(END - 2 * DAY_MS, END, HOUR_MS)]

    def price(at: int) -> float:
        return 60_000.0 if at < END - 2 * HOUR_MS else low if at < END - HOUR_MS else now

    bars = [Candle(at, price(at), price(at), price(at), price(at), 1.0, 0.5) for at in hours]
    await store.write(
        [
            Batch(candles(BINANCE, BTC, Timeframe.H1), bars),
            Batch(candles(BINANCE, BTC, Timeframe.M1), [bars[0]._replace(at=times[0])]),
            Batch(basis(BINANCE, BTC), [MarkAndIndex(at, price(at), price(at)) for at in times]),
            Batch(basis(BINANCE, ETH), [MarkAndIndex(at, 3_000.0, 3_000.0) for at in times]),
            Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times]),
        ]
    )
    return store


async def test_losses_that_are_not_taken_are_not_free() -> None:
    store, book = await falling_market(50_000.0, 50_000.0), BookInMemory()
    await Hand(store, book).add("BTC", "long", "900", leverage="2", as_of="24h")
    with pytest.raises(Refused, match="free"):
        await Hand(store, book).add("ETH", "long", "900")
    await Hand(store, book).add("ETH", "long", "790")
    assert (await Hand(store, book).balances())[0].free == pytest.approx(
        2_000 - 900 - 790 - 300 - 0.9 - 0.395, abs=0.01
    )


async def test_a_position_half_under_water_at_three_times_is_liquidated_and_loses_its_margin() -> None:
    for now in (28_800.0, 61_000.0):  # also where the price came back since
        store, book = await falling_market(28_800.0, now), BookInMemory()
        hand = Hand(store, book)
        await hand.add("BTC", "long", "1,900", leverage="3", as_of="24h")
        before = (await book.at(WORLD.label, END)).cash[FUTURES]
        view = await hand.account.positions()
        assert view.positions == ()
        assert any("liquidated" in note for note in view.notes)
        assert (await hand.balances())[0].equity == pytest.approx(before - 1_900, abs=1e-6)
        assert (await hand.account.figures()).equity_usd == pytest.approx(
            Decimal(before) - 1_900 + Decimal(2_000_000) / 1_400, abs=Decimal("1e-6")
        )
        assert await hand.held(END) == ()
        assert await hand.held(Millis(END - 3 * HOUR_MS)) != ()
        assert len(await book.changes(WORLD.label)) == 1  # a look writes nothing
        after = await hand.add("ETH", "long", "50")
        assert any("liquidated" in note for note in after.notes)
        assert [change.kind for change in await book.changes(WORLD.label)] == ["opened", "closed", "opened"]
        assert not any("liquidated" in note for note in (await hand.account.positions()).notes)
        with pytest.raises(Refused):
            await hand.add("ETH", "long", "60")


async def test_an_account_below_zero_opens_nothing_and_says_so() -> None:
    store, book = await falling_market(60_000.0, 60_000.0), BookInMemory()
    opened = await Hand(store, book).add("BTC", "short", "1,900", as_of="24h")
    await Hand(store, book).close(opened.positions[0].id, at="153000", as_of="23h")  # as it could be written down
    assert (await Hand(store, book).balances())[0].equity == pytest.approx(-948, abs=1)
    with pytest.raises(Refused, match=r"BINANCE.*-\$9\d\d"):
        await Hand(store, book).add("ETH", "long", "10")


async def test_an_entry_far_from_the_mark_is_refused() -> None:
    store, book = await market(), BookInMemory()
    for entry in ("53000", "67000"):
        with pytest.raises(Refused, match="mark"):
            await Hand(store, book).add("BTC", "long", "100", entry=entry)
    with pytest.raises(Refused, match="mark"):
        await Hand(store, book).add("BTC", "long", "100", entry="6000", pending=True)
    await Hand(store, book).add("BTC", "long", "100", entry="59000")
