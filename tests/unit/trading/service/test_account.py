"""A trading account as it is shown and acted on: figures by hand on an account with a past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.wire.fakes.painter import DigestPainter
from tests.wire.learning import Learning, journal
from tests.wire.order_gate import open_long
from tests.wire.trading_account import AccountStory, write_story
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.kill_lock import KillLockFile
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.doors.web.stops import StopDesk
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, Refused, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.execute.intents import build_close_intent, build_exit
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.learn.evaluator import Evaluation
from zuno.trading.learn.memory_book import post_mortem_id
from zuno.trading.model.account import Holding, PositionOpened
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Level,
    MarkAndIndex,
    Quote,
    Side,
    Timeframe,
    basis,
    books,
    candles,
    rates,
)
from zuno.trading.model.orders import ExchangeAnswer, Fill, OrderSide, client_order_id
from zuno.trading.model.sleeves import SleeveShares, find_unknown
from zuno.trading.model.trade_events import (
    ExitReason,
    FillBooked,
    IntentStored,
    ManualChange,
    OrderPlanned,
    Protection,
    paper_account,
)
from zuno.trading.ports.series import Batch, Origin
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.performance import trace_account
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.account import AccountDesk
from zuno.trading.service.account_page import AccountBackends
from zuno.trading.service.account_view import TradePositionsView, TradeStatusView
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.profit_view import PerformanceView, ProfitView
from zuno.wiring.orders import build_paper_venues

END = Millis(1_767_225_600_000)
ACCOUNT = paper_account("recorded")


@pytest.fixture(scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> SqliteSeries:
    store = SqliteSeries(tmp_path_factory.mktemp("market") / "own", Origin(False, "recorded"))
    times = [Millis(at) for at in range(END - DAY_MS, END + 1, 5 * MINUTE_MS)]
    hours = range(END - 2 * DAY_MS, END, HOUR_MS)

    def bar(at: int, price: float) -> Candle:
        return Candle(Millis(at), price, price + 10, price - 10, price, 5.0, 2.0)

    await store.write(
        [
            Batch(basis(BINANCE, Symbol("BTCUSDT")), [MarkAndIndex(at, 60_000.0, 60_010.0) for at in times]),
            Batch(basis(BINANCE, Symbol("ETHUSDT")), [MarkAndIndex(at, 3_000.0, 3_001.0) for at in times]),
            Batch(books(BINANCE, Symbol("BTCUSDT")), [Book(END, (Quote(59_990.0, 5.0),), (Quote(60_010.0, 5.0),))]),
            Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times]),
            Batch(candles(BINANCE, Symbol("BTCUSDT"), Timeframe.H1), [bar(at, 60_000.0) for at in hours]),
            Batch(candles(BINANCE, Symbol("ETHUSDT"), Timeframe.H1), [bar(at, 3_000.0) for at in hours]),
        ]
    )
    return store


class Market:
    """The account with a past, and the paper venues that carry it."""

    def __init__(self, store: SqliteSeries, home: Path) -> None:
        self.log = MemoryTradeLog()
        self.home = home
        self._store = store
        self.desk = TradingDesk(store, _nobody, DigestPainter())
        self.running: str | None = None
        self.learning = Learning(store, journal(home), self.log)
        self.evaluator = self.learning.evaluator()

    async def open_gate(self, name: str | None) -> OrderGate:
        account = paper_account("recorded", name or "")
        venues = build_paper_venues(self._store, self.log, account, lambda: END, Fees())
        return OrderGate(GateContext(self.log, account, venues, lambda: END))

    def account(self, name: str | None = None, ask: Any = None) -> AccountDesk:
        return AccountDesk(
            AccountBackends(
                desk=self.desk,
                store=self._store,
                log=self.log,
                inventory="nobody looks",
                open_gate=self.open_gate,
                limits=ProtectionLimits(),
                running=lambda account: self.running,
                now=lambda: END,
                kill_lock=KillLockFile(self.home),
                ask=ask,
                learn=self.evaluator.try_to_learn_from,
            ),
            name,
        )


async def _nobody() -> Any:
    raise AssertionError("no journal is asked")


def never(word: str, what: str) -> bool:
    raise AssertionError("nobody is asked")


@pytest.fixture
async def market(store: SqliteSeries, tmp_path: Path) -> Market:
    found = Market(store, tmp_path)
    await write_story(found.log, ACCOUNT, END)
    return found


async def test_the_status_is_one_risk_book_of_positions_and_liquidity(market: Market) -> None:
    view = await market.account().status()
    assert (view.account, view.mode, view.as_of, view.running) == (ACCOUNT, "paper", "2026-01-01T00:00:00Z", None)
    assert (view.open_trades, view.closed_trades, view.open_orders) == (1, 2, 2)
    assert [(row.symbol, row.positions, row.lp, row.delta_usd) for row in view.risk.rows] == [
        ("BTCUSDT", 0.02, 0.0, 1_200.0),
        ("ETHUSDT", 0.0, 0.25, 750.0),
    ]
    assert (view.risk.delta_usd, view.risk.gross_usd) == (1_950.0, 1_950.0)
    assert view.equity_usd is not None
    assert view.risk.leverage == pytest.approx(1_950 / view.equity_usd)
    assert "nobody looks" in view.notes


async def test_the_figures_are_the_statuss_and_nobody_is_asked(market: Market) -> None:
    async def ask(*asked: object) -> Any:
        raise AssertionError("no exchange is asked")

    status, figures = await market.account().status(), await market.account(ask=ask).figures()
    assert figures.equity_usd is not None
    assert float(figures.equity_usd) == status.equity_usd
    assert figures.mode == "paper"
    assert figures.exposure_usd == {Symbol("BTCUSDT"): Decimal(1_200), Symbol("ETHUSDT"): Decimal(0)}
    assert figures.drawdown is not None
    assert 0 <= figures.drawdown < 1
    KillLockFile(market.home).lock("paper", "by hand")
    assert (await market.account().figures()).locks[Protection.KILL_SWITCH] == 1


async def test_an_account_that_was_never_opened_has_no_equity(market: Market) -> None:
    figures = await market.account("live").figures()
    assert (figures.mode, figures.equity_usd, figures.drawdown) == ("live", None, None)


async def test_positions_have_levels_orders_and_pnl(market: Market) -> None:
    (position,) = (await market.account().positions()).positions
    assert (position.side, position.quantity, position.entry, position.mark) == ("long", 0.02, 59_500.0, 60_000.0)
    assert (position.stop, position.target, position.unrealised) == (58_900.0, 61_500.0, 10.0)
    assert position.r == pytest.approx(10 / 12)
    assert {position.stop_order, position.target_order} == set(position.orders)
    assert position.liquidation is not None
    assert position.liquidation < 58_900.0
    orders = (await market.account().orders()).orders
    assert {order.id for order in orders} == set(position.orders)
    assert len((await market.account().orders(everything=True)).orders) == 9


async def test_what_is_open_is_valued_at_prices_with_a_source_and_an_age(market: Market) -> None:
    view = await market.account().positions()
    (position,) = view.positions
    (mark,) = [mark for mark in view.marks if (mark.symbol, mark.exchange) == (position.symbol, position.exchange)]
    assert mark.price == position.mark
    assert mark.source
    assert mark.as_of <= view.as_of
    assert mark.age_seconds >= 0


async def test_every_figure_of_money_is_the_ledgers(market: Market) -> None:
    account = market.account()
    ledger = await account.ledger()
    assert all(found.balanced and found.debits == found.credits for found in ledger.ledgers)
    for posting in ledger.postings:
        assert sum(Decimal(line.amount) for line in posting.lines) == 0
    binance = ledger.ledgers[0].balances
    summed: dict[str, Decimal] = {}
    for posting in (await account.ledger(1_000)).postings:
        for line in posting.lines:
            if posting.exchange == "BINANCE":
                summed[line.account] = summed.get(line.account, Decimal(0)) + Decimal(line.amount)
    assert summed == {name: Decimal(amount) for name, amount in binance.items() if amount != "0"}
    purse = (await account.balance()).purses[0]
    assert purse.equity == pytest.approx(purse.cash + purse.margin + 10)
    trades = (await account.trades()).trades
    assert [trade.exit_reason for trade in trades] == ["stop", "target"]
    assert sum(trade.net_pnl for trade in trades) == pytest.approx(31.989)
    whole = (await account.profit()).whole
    assert (whole.net_pnl, whole.wins, whole.losses) == (pytest.approx(31.989), 1, 1)
    assert [row.name for row in (await account.profit("exit")).groups] == ["stop", "target"]


async def test_the_curve_starts_with_the_cash_and_ends_with_the_equity(market: Market) -> None:
    view, image = await market.account().performance()
    status = await market.account().status()
    assert view.start_usd == pytest.approx(2_000 + 2_000_000 / 1_400)
    assert view.equity_usd == pytest.approx(status.equity_usd)
    assert image is None, "nobody paints PNGs here"
    assert await market.account().equity() == view
    history = trace_account(await market.log.events(ACCOUNT))
    assert len(history.steps) == len({posting.number for posting in history.postings})


async def test_an_account_of_another_name_is_another_account(market: Market) -> None:
    await AccountStory(market.log, paper_account("recorded", "second")).come_to(END)
    other = await market.account("second").status()
    assert (other.account, other.open_trades, other.closed_trades) == (paper_account("recorded", "second"), 0, 0)
    assert other.equity_usd == pytest.approx(2_000 + 2_000_000 / 1_400)
    with pytest.raises(UsageError):
        market.account("a b")
    with pytest.raises(NotFound, match="second"):
        await market.account("secnod").trades()


async def test_an_account_in_recorded_time_stands_at_its_last_moment_while_the_market_goes_on(
    market: Market, store: SqliteSeries
) -> None:
    account = market.account()

    async def look() -> tuple[TradeStatusView, TradePositionsView, ProfitView, PerformanceView]:
        return (
            await account.status(),
            await account.positions(),
            await account.profit("day"),
            await account.equity(),
        )

    before = await look()
    later = Millis(END + 240 * DAY_MS)
    bars = [
        Batch(
            candles(BINANCE, symbol, Timeframe.H1),
            [Candle(Millis(later - HOUR_MS), 30_000.0, 30_000.0, 30_000.0, 30_000.0, 5.0, 2.0)],
        )
        for symbol in DEFAULT_SYMBOLS
    ]
    await store.write([*bars, Batch(rates(UPBIT, USDT_KRW), [Level(later, 2_800.0)])])
    assert (await market.desk.moment(Symbol("BTCUSDT"), None)).as_of == later
    assert await look() == before
    status, positions, _, equity = before
    assert (status.as_of, status.recorded, status.protections) == ("2026-01-01T00:00:00Z", True, ())
    assert [position.unrealised for position in positions.positions] == [10.0]
    assert equity.points[-1].at == status.as_of
    log = MemoryTradeLog()
    market.log = log
    await AccountStory(log, ACCOUNT).state_liquidity(END - HOUR_MS, Symbol("ETHUSDT"), 1.0)
    by_hand = await market.account().status()
    assert (by_hand.recorded, by_hand.as_of) == (False, iso(later)), "what a person wrote down stands at the market"


async def test_a_pause_stands_on_every_screen_until_it_is_lifted(market: Market) -> None:
    account = market.account()
    paused = await account.pause()
    assert [lock.protection for lock in paused.protections] == ["paused"]
    assert [lock.protection for lock in (await account.trades()).protections] == ["paused"]
    assert (await account.resume()).protections == ()
    with pytest.raises(UsageError):
        await account.unlock("luck")


async def test_bad_wishes_are_refused_by_kind(market: Market) -> None:
    account = market.account()
    (position,) = (await account.positions()).positions
    closed = (await account.trades()).trades[0].id
    with pytest.raises(Refused):
        await account.close(closed)
    with pytest.raises(NotFound):
        await account.close("trd_nothing")
    with pytest.raises(NotFound):
        await account.cancel("zn_nothing")
    with pytest.raises(Refused):
        await account.cancel(position.orders[0])
    with pytest.raises(UsageError):
        await account.set_levels(position.id, None, None, never)
    with pytest.raises(Refused):
        await account.set_levels(position.id, "60500", None, never)
    with pytest.raises(Refused):
        await account.set_levels(position.id, "58000", None, lambda word, what: False)
    with pytest.raises(Refused):
        await account.kill(lambda word, what: False)
    with pytest.raises(UsageError):
        await account.profit("colour")
    with pytest.raises(UsageError):
        await account.fills(0)


async def test_a_kill_of_an_account_in_another_market_stays_locked_and_one_of_nobody_does_not(market: Market) -> None:
    await AccountStory(market.log, paper_account("elsewhere", "other")).come_to(END)
    for name, locked in (("other", True), ("nosuch", False)):
        with pytest.raises(NotFound):
            await market.account(name).kill(None)
        assert (KillLockFile(market.home).why_locked(name) is not None) is locked


async def test_a_kill_of_the_page_asks_no_exchange_before_everything_is_closed(market: Market) -> None:
    """Nobody waits for an answer, which may take seconds, once the word was typed."""
    name, written = "demo", list[int]()

    async def ask(account: str, book: TradingBook) -> tuple[ExchangeAnswer, ...]:
        written.append(len(await market.log.events(paper_account("recorded", name))))
        return ()

    zuno: Any = SimpleNamespace(refresh=lambda: None, account=lambda account: market.account(account, ask))
    await StopDesk(zuno).handle(("kill", name), lambda line: None)
    assert all(written)


async def open_position(market: Market, account: AccountDesk) -> str:
    gate = await market.open_gate("second")
    await open_long(gate, END, 60_000.0)
    (position,) = (await account.positions()).positions
    return position.id


async def test_a_close_is_learned_from_at_once(market: Market) -> None:
    account = market.account("second")
    trade = await open_position(market, account)
    view = await account.close(trade)
    name = paper_account("recorded", "second")
    id = post_mortem_id(name, trade)
    assert any(id in line for line in view.said)
    assert id in await market.evaluator.book.read()
    assert not (await market.learning.evaluator().learn(name, "recorded", END)).post_mortems


async def test_the_live_market_is_read_before_a_post_mortem_and_never_for_nothing(market: Market) -> None:
    """Whichever act finds the close learns from it: here a pause, after an exchange closed the trade."""
    asked: list[Symbol] = []

    async def refresh(symbol: Symbol) -> None:
        asked.append(symbol)

    market.evaluator._with = replace(market.evaluator._with, refresh=refresh)
    account, name = market.account("second"), paper_account("recorded", "second")
    trade = await open_position(market, account)
    await account.pause()
    assert asked == []
    await (await market.open_gate("second")).close(trade)
    view = await account.pause()
    assert any(post_mortem_id(name, trade) in line for line in view.said)
    again = await account.resume()
    assert not any(post_mortem_id(name, trade) in line for line in again.said)
    assert asked == [Symbol("BTCUSDT")]


async def test_a_close_is_learned_from_though_the_clock_went_on_meanwhile(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the wall's clock a close is booked after the moment that the account was opened at."""
    trade = await open_position(market, market.account("second"))
    monkeypatch.setattr(OrderGate, "now", lambda gate: Millis(END - 1_000))
    view = await market.account("second").close(trade)
    assert any(post_mortem_id(paper_account("recorded", "second"), trade) in line for line in view.said)


@pytest.mark.parametrize("which", ["btcusdt", "BTCUSDT", "all", "the trade"])
async def test_what_an_exchange_has_not_closed_yet_is_not_called_nothing(
    market: Market, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    async def begin(gate: OrderGate, which: object, request: str) -> tuple[str, ...]:
        await gate.refresh()
        return ()

    account = market.account("second")
    trade = await open_position(market, account)
    monkeypatch.setattr(OrderGate, "close", begin)
    view = await account.close(trade if which == "the trade" else which)
    assert [line.partition(" ")[0] for line in view.said] == [trade]


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), RuntimeError("a bug")])
async def test_a_close_stands_when_nothing_can_be_learned_from_it(
    market: Market, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*_: object, **named: object) -> Evaluation:
        raise error

    monkeypatch.setattr(market.evaluator, "learn", fail)
    account = market.account("second")
    trade = await open_position(market, account)
    view = await account.close(trade)
    assert not view.positions
    assert [closed.id for closed in (await account.trades()).trades] == [trade]
    assert "zuno trade evaluate" in view.said[-1]


async def test_a_mandate_is_granted_by_a_word_shown_by_its_hash_and_revoked(market: Market) -> None:
    account = market.account()
    asked: list[str] = []

    def grant(word: str, what: str) -> bool:
        asked.append(word)
        return True

    terms = (["BTC"], ["binance"], "100", "300", "50", "7d", "venue")
    wish = account.build_mandate(*terms, judge_fallback=False)
    with pytest.raises(Refused):
        await account.grant_mandate(wish, lambda word, what: False)
    assert (await account.mandate()).mandate is None
    granted = await account.grant_mandate(wish, grant)
    assert asked == ["grant"]
    assert granted.mandate is not None
    assert granted.mandate.hash in granted.said
    assert (granted.mandate.active, granted.mandate.symbols) == (True, ("BTCUSDT",))
    assert (await account.revoke_mandate()).mandate is None
    with pytest.raises(Refused):
        await account.revoke_mandate()
    for wrong in ((*terms[:5], "31d", "venue"), (*terms[:2], "100", "50", "50", "7d", "venue")):
        with pytest.raises(Refused):
            await account.grant_mandate(account.build_mandate(*wrong, judge_fallback=False), never)
    with pytest.raises(UsageError):
        account.build_mandate(*terms[:6], "somewhere", judge_fallback=False)


@pytest.mark.parametrize("sleeve", ["trend", "trend:0.6", "trend:0:0.2", "trend:0.6:1.1", "trend:a:b"])
async def test_a_sleeve_of_a_mandate_has_a_name_a_share_and_a_fall(market: Market, sleeve: str) -> None:
    with pytest.raises(UsageError):
        market.account().build_mandate(
            ["BTC"], ["binance"], "100", "300", "50", "7d", "venue", judge_fallback=False, sleeves=[sleeve]
        )


async def test_a_mandate_names_sleeves_that_are_known(market: Market) -> None:
    async def check(shares: SleeveShares) -> None:
        if (why := find_unknown(shares, ("mine",))) is not None:
            raise UsageError(why)

    account = AccountDesk(replace(market.account()._with, check_sleeves=check), None)
    terms = (["BTC"], ["binance"], "100", "300", "50", "7d", "venue")
    wrong = account.build_mandate(*terms, judge_fallback=False, sleeves=["trned:0.6:0.2"])
    with pytest.raises(UsageError):
        await account.grant_mandate(wrong, never)
    own = account.build_mandate(*terms, judge_fallback=False, sleeves=["mine:0.2:0.2"])
    with pytest.raises(Refused):  # the word is asked for
        await account.grant_mandate(own, lambda word, what: False)


async def test_a_transfer_is_between_two_sleeves(market: Market) -> None:
    with pytest.raises(UsageError):
        await market.account().transfer("debate", "debate", "5", never)


async def test_the_backtest_of_a_sleeve_is_read_before_the_word(market: Market) -> None:
    shown = list[str]()

    async def describe(sleeve: str, symbols: Sequence[Symbol]) -> str:
        return f"backtest of {sleeve} on {', '.join(symbols)}"

    account = AccountDesk(replace(market.account()._with, describe_backtest=describe), None)
    wish = account.build_mandate(
        ["BTC"],
        ["binance"],
        *("100", "300", "50", "7d", "venue"),
        judge_fallback=False,
        sleeves=["trend:0.6:0.25", "debate:0.4:0.2"],
    )

    def grant(word: str, what: str) -> bool:
        shown.append(what)
        return True

    granted = await account.grant_mandate(wish, grant)
    assert "backtest of trend on BTCUSDT" in shown[0]
    assert "backtest of debate" not in shown[0]
    assert granted.mandate is not None
    assert [(each.name, each.share, each.max_drawdown) for each in granted.mandate.sleeves] == [
        ("trend", 0.6, 0.25),
        ("debate", 0.4, 0.2),
    ]


@pytest.mark.parametrize("name", ["../x", "a b", "ü", "a" * 65])
def test_no_door_takes_an_account_that_has_no_name(name: str) -> None:
    with pytest.raises(UsageError):
        paper_account("recorded", name)


async def test_a_close_finds_what_was_liquidated_at_its_margin(market: Market) -> None:
    """A long at 100,000 and 3× is over at 67,002; the mark is 60,000."""
    held = Holding(
        id="pos_1",
        symbol=Symbol("BTCUSDT"),
        exchange=Venue("BINANCE"),
        side=Side.LONG,
        quantity=0.006,
        entry=100_000.0,
        leverage=3.0,
        opened=END,
    )
    opened = ManualChange(at=END, change=PositionOpened(at=END, position=held, fee=0.0))
    await market.log.append(ACCOUNT, [opened], len(await market.log.events(ACCOUNT)))
    assert "pos_1" not in [position.id for position in (await market.account().positions()).positions]
    await market.account().close("all")
    trades = (await market.account().trades()).trades
    assert [trade.net_pnl for trade in trades if trade.id == "pos_1"] == [pytest.approx(-200.0)]


async def test_what_a_fee_in_coins_left_below_a_lot_is_said(market: Market) -> None:
    spot, btc, sold = Venue("BINANCE-SPOT"), Symbol("BTCUSDT"), Decimal("0.01228")
    market.log = log = MemoryTradeLog()
    writer, at = AccountWriter(log, ACCOUNT), Millis(END - HOUR_MS)
    story = AccountStory(log, ACCOUNT)
    await story.open_trade(at, btc, Side.LONG, "0.0122877", "60000", "59000", "62000", exchange=spot, leverage=1)
    await writer.refresh()
    assert not any("0.0000077" in note for note in (await market.account().positions()).notes)
    close = build_close_intent("int_" + "c" * 24, "owner", btc, Side.LONG, Decimal(60_000), ExitReason.OWNER)
    request = build_exit(client_order_id(close.id, spot, "exit"), spot, btc, OrderSide.SELL, sold)
    fill = Fill(
        id="sold", client_id=request.client_id, exchange=spot, symbol=btc, side=OrderSide.SELL, quantity=sold,
        price=Decimal(60_000), fee=Decimal(0), maker=False, at=Millis(END - MINUTE_MS),
    )  # fmt: skip
    await writer.write(
        [
            IntentStored(at=fill.at, intent=close, ruling=None),
            OrderPlanned(at=fill.at, intent=close.id, purpose="exit", order=request, lot=Decimal("0.00001")),
            FillBooked(at=fill.at, fill=fill),
        ]
    )
    view = await market.account().positions()
    assert view.positions == ()
    assert [note.split()[:4] for note in view.notes if "0.0000077" in note] == [["0.0000077", "BTC", "at", spot]]


async def test_a_mark_in_another_currency_counts_in_dollars(market: Market) -> None:
    upbit, won = Venue("UPBIT"), Symbol("upbit:BTC/KRW")
    market.log = log = MemoryTradeLog()
    story, at = AccountStory(log, ACCOUNT), Millis(END - HOUR_MS)
    await story.open_trade(at, won, Side.LONG, "0.01", "84000000", "80000000", "90000000", exchange=upbit, leverage=1)
    view = await market.account().status()
    [row] = view.risk.rows
    assert (row.symbol, row.positions, row.delta_usd) == (won, 0.01, pytest.approx(600.0))
    assert view.equity_usd == pytest.approx(2_000 + 2_000_000 / 1_400, rel=1e-3)
