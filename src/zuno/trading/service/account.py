"""A trading account as a person asks about it and acts on it: every `zuno trade` command beside runs and charts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal

from zuno.kernel import arguments
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, Unavailable, Usage, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.chart.equity_chart import describe_equity
from zuno.trading.learn.evaluator import Evaluation
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.known import Known, Missing, or_none
from zuno.trading.model.market import DAY_MS, HOUR_MS, SECOND_MS, Side, Symbol, Timeframe, basis, candles, parse_symbol
from zuno.trading.model.orders import ZERO
from zuno.trading.model.trade_events import (
    AccountOpened,
    FillBooked,
    LockSet,
    Mandate,
    MandateGranted,
    TradeEvent,
    account_mode,
    account_name,
    check_account_name,
)
from zuno.trading.model.venues import BINANCE
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.account_history import current_step, trace_account
from zuno.trading.rules.ledger import LedgerAccount
from zuno.trading.rules.leverage_guard import MAX_ACCOUNT_LEVERAGE
from zuno.trading.rules.mandate import LONGEST_MANDATE, check_grant
from zuno.trading.rules.margin import liquidation_price
from zuno.trading.rules.performance import (
    Close,
    EquityPoint,
    GroupBy,
    Performance,
    build_equity_curve,
    drawdown_percents,
    equity_usd,
    find_max_drawdown,
    group_trades,
    measure_trades,
    risk_multiple,
)
from zuno.trading.rules.protections import ProtectionLimits, RiskState, active_locks, describe_lock
from zuno.trading.rules.trading_book import OpenTrade, TrackedOrder, TradingBook
from zuno.trading.service.account_view import (
    ActionView,
    ClosedTradeView,
    EquityPointView,
    ExposureView,
    FillsView,
    FillView,
    LedgerBalancesView,
    LedgerLineView,
    LedgerView,
    LocksView,
    MandateStateView,
    MandateView,
    ManualOrderView,
    MarkView,
    PerformanceView,
    PostingView,
    ProfitRowView,
    ProfitView,
    PurseView,
    RiskBookView,
    TradeBalanceView,
    TradeOrdersView,
    TradeOrderView,
    TradePositionsView,
    TradePositionView,
    TradeStatusView,
    TradesView,
)
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.live_start import Confirm
from zuno.trading.service.orders import OrdersAnswer, TradingOrders, describe_cash, parse_protection
from zuno.trading.service.paper_book import Inventory, sum_inventory
from zuno.trading.service.prices import NO_PRICES, Prices, read_prices
from zuno.trading.service.trade_desk import describe_post_mortem, protection_view

_LOG = logging.getLogger(__name__)
MOST_LINES: Final = 10_000
_FINE_DAYS: Final = 60
"""An account that is younger is drawn by the hour."""


@dataclass(frozen=True, slots=True)
class AccountBackends:
    """What an account is read from and acted on with; wiring chooses it."""

    desk: TradingDesk
    store: SeriesStore
    log: TradeLog
    inventory: Inventory
    orders: TradingOrders
    limits: ProtectionLimits
    running: Callable[[str], str | None]
    """The process that trades for an account, where one does."""
    now: Callable[[], Millis]
    """The wall's clock: a mandate is for money, which no recording moves."""
    marks: Callable[[str], Awaitable[Mapping[tuple[Exchange, Symbol], Decimal]]] | None = None
    """What an account at exchanges is marked by: their own prices of what it holds."""
    learn: Callable[[str, Millis, Sequence[Symbol]], Awaitable[Evaluation]] | None = None
    """Learns from what an account closed by a moment, in these symbols at least; None: an evaluation does later."""


@dataclass(frozen=True, slots=True)
class OpenRisk:
    """What is open in an account, as it is written down."""

    account: str
    mode: Literal["paper", "demo", "live"]
    orders: int
    trades: int


@dataclass(frozen=True, slots=True)
class _AccountPage:
    """An account at the market's moment."""

    name: str
    events: tuple[TradeEvent, ...]
    book: TradingBook
    at: Millis
    prices: Prices
    lp: Mapping[Symbol, Decimal]
    locks: tuple[LockSet, ...]
    notes: tuple[str, ...]
    lp_notes: tuple[str, ...]
    """What is not read of liquidity positions, and why."""
    marks: Mapping[tuple[Exchange, Symbol], Decimal] = field(default_factory=dict)
    """Prices that the exchanges themselves say."""

    @property
    def won(self) -> Decimal | None:
        rate = or_none(self.prices.won)
        return None if rate is None else _decimal(rate)

    def mark(self, symbol: Symbol, exchange: Exchange) -> Decimal | None:
        if (exchange, symbol) in self.marks:
            return self.marks[exchange, symbol]
        price = or_none(self.prices.of(symbol, exchange))
        return None if price is None else _decimal(round_digits(price))

    @property
    def usd_marks(self) -> dict[Symbol, Decimal]:
        found = {symbol: self.mark(symbol, Exchange.BINANCE) for symbol in Symbol}
        return {symbol: mark for symbol, mark in found.items() if mark is not None}


class AccountDesk:
    """One account: the home's paper account in the market it reads, another of its paper accounts, or a live one."""

    def __init__(self, backends: AccountBackends, name: str | None = None) -> None:
        """`name`: of `--account`."""
        if name is not None:
            check_account_name(name)
        self._with = backends
        self._name = name

    # -- looking

    async def list_exchange_accounts(self) -> tuple[str, ...]:
        """Those of this home in which anything ever happened: `live`, `demo`."""
        return tuple(name for name in await self._with.log.accounts() if account_mode(name) != "paper")

    async def status(self) -> TradeStatusView:
        page = await self._look()
        equity, unknown = _total_equity(page)
        whole = measure_trades(page.book.closed, page.won)
        midnight = page.at // DAY_MS * DAY_MS
        today = measure_trades([trade for trade in page.book.closed if trade.closed >= midnight], page.won)
        return TradeStatusView(
            **{**self._head(page), "notes": (*page.notes, *page.lp_notes)},
            running=self._with.running(page.name),
            equity_usd=_float(equity),
            unrealised_usd=_float(_unrealised_usd(page)),
            net_pnl_usd=float(whole.net_pnl),
            today_usd=float(today.net_pnl),
            open_trades=len(page.book.trades),
            open_orders=len(page.book.open_orders) + len(page.book.resting),
            closed_trades=len(page.book.closed),
            unknown=unknown,
            risk=_risk_view(page, equity),
            mandate=_mandate_view(page.book.mandate, self._with.now()),
        )

    async def open_risk(self) -> OpenRisk:
        """What a kill would end, from the account's own log alone: it can be asked while no exchange answers."""
        return self._sum_risk(await self._read_book())

    async def positions(self) -> TradePositionsView:
        page = await self._look()
        return TradePositionsView(
            **self._head(page), positions=_position_views(page), unrealised_usd=_float(_unrealised_usd(page))
        )

    async def orders(self, *, everything: bool = False) -> TradeOrdersView:
        """Those that are open, or all there ever were, the newest first."""
        page = await self._look()
        tracked = page.book.orders if everything else page.book.open_orders
        manual = tuple(
            ManualOrderView(
                id=order.id,
                exchange=order.exchange,
                symbol=order.symbol,
                side=order.side,
                quantity=order.quantity,
                price=order.price,
                currency=order.exchange.currency,
            )
            for order in page.book.resting.values()
        )
        orders = tuple(_order_view(page.book, order) for order in reversed(tracked.values()))
        return TradeOrdersView(**self._head(page), orders=orders, manual=manual)

    async def fills(self, lines: int = 50) -> FillsView:
        page = await self._look()
        fills = [event.fill for event in page.events if isinstance(event, FillBooked)]
        shown = fills[::-1][: _check_lines(lines)]
        return FillsView(
            **self._head(page),
            total=len(fills),
            fills=tuple(
                FillView(
                    id=fill.id,
                    order=fill.client_id,
                    exchange=fill.exchange,
                    symbol=fill.symbol,
                    side=fill.side,
                    quantity=float(fill.quantity),
                    price=float(fill.price),
                    fee=float(fill.fee),
                    currency=fill.exchange.currency,
                    maker=fill.maker,
                    liquidation=fill.liquidation,
                    at=iso(fill.at),
                )
                for fill in shown
            ),
        )

    async def trades(self, lines: int = 50) -> TradesView:
        page = await self._look()
        shown = page.book.closed[::-1][: _check_lines(lines)]
        return TradesView(
            **self._head(page),
            total=len(page.book.closed),
            trades=tuple(
                ClosedTradeView(
                    id=trade.trade,
                    symbol=trade.symbol,
                    exchange=trade.exchange,
                    side=trade.side,
                    mode=trade.mode,
                    quantity=float(trade.quantity),
                    entry=float(trade.entry),
                    exit=float(trade.exit),
                    currency=trade.exchange.currency,
                    gross_pnl=float(trade.gross_pnl),
                    fees=float(trade.fees),
                    funding=float(trade.funding),
                    net_pnl=float(trade.net_pnl),
                    r=_float(risk_multiple(trade)),
                    exit_reason=trade.reason,
                    opened=iso(trade.opened),
                    closed=iso(trade.closed),
                    duration_hours=(trade.closed - trade.opened) / HOUR_MS,
                    exploration=trade.exploration,
                    decision=trade.decision,
                )
                for trade in shown
            ),
        )

    async def ledger(self, lines: int = 50) -> LedgerView:
        page = await self._look()
        history = trace_account(page.events)
        shown = history.postings[::-1][: _check_lines(lines)]
        return LedgerView(
            **self._head(page),
            total=len(history.postings),
            ledgers=tuple(_ledger_balances(page.book, exchange) for exchange in Exchange),
            postings=tuple(
                PostingView(
                    number=posting.number,
                    at=iso(posting.at),
                    exchange=posting.exchange,
                    currency=posting.exchange.currency,
                    what=posting.what,
                    lines=tuple(
                        LedgerLineView(account=account, amount=_exact(amount)) for account, amount in posting.lines
                    ),
                )
                for posting in shown
            ),
        )

    async def balance(self) -> TradeBalanceView:
        page = await self._look()
        equity, unknown = _total_equity(page)
        purses = tuple(_purse_view(page, exchange) for exchange in Exchange)
        return TradeBalanceView(**self._head(page), purses=purses, equity_usd=_float(equity), unknown=unknown)

    async def profit(self, by: str | None = None) -> ProfitView:
        grouping = None if by is None else _parse_group(by)
        page = await self._look()
        groups = {} if grouping is None else group_trades(page.book.closed, grouping)
        return ProfitView(
            **self._head(page),
            by=grouping,
            whole=_profit_row("all", measure_trades(page.book.closed, page.won)),
            groups=tuple(_profit_row(name, measure_trades(trades, page.won)) for name, trades in groups.items()),
        )

    async def equity(self) -> PerformanceView:
        """Figures and the equity curve; nothing is painted."""
        return self._measure_equity(*await self._read_curve())

    async def performance(self) -> tuple[PerformanceView, bytes | None]:
        """The same, and its picture where there is one."""
        page, curve = await self._read_curve()
        view = self._measure_equity(page, curve)
        return view, await self._paint(page, curve, view)

    async def _read_curve(self) -> tuple[_AccountPage, tuple[EquityPoint, ...]]:
        page = await self._look()
        history = trace_account(page.events)
        closes = await self._closes(history.steps[0].at if history.steps else page.at, page.at)
        for symbol, mark in page.usd_marks.items():
            closes.setdefault(symbol, []).append(Close(page.at, mark))
        return page, tuple(build_equity_curve(history.steps, closes, page.won, page.at))

    def _measure_equity(self, page: _AccountPage, curve: Sequence[EquityPoint]) -> PerformanceView:
        percents = drawdown_percents(curve)
        fall = find_max_drawdown(curve)
        start = curve[0].equity if curve else None
        end = curve[-1].equity if curve else None
        gain = None if start is None or end is None or start <= 0 else (end - start) / start * 100
        return PerformanceView(
            **self._head(page),
            file=None,
            whole=_profit_row("all", measure_trades(page.book.closed, page.won)),
            start_usd=_float(start),
            equity_usd=_float(end),
            return_pct=_float(gain),
            max_drawdown_usd=_float(None if fall is None else fall.amount),
            max_drawdown_pct=_float(None if fall is None else fall.percent),
            peak_at=None if fall is None else iso(fall.peak_at),
            trough_at=None if fall is None else iso(fall.trough_at),
            points=tuple(
                EquityPointView(at=iso(point.at), equity_usd=float(point.equity), drawdown_pct=_float(percent))
                for point, percent in zip(curve, percents, strict=True)
            ),
        )

    async def locks(self) -> LocksView:
        return LocksView(**self._head(await self._look()))

    async def mandate(self) -> MandateStateView:
        page = await self._look()
        mandate = _mandate_view(page.book.mandate, self._with.now())
        said = "no mandate is granted: the desk trades on paper" if mandate is None else ""
        if mandate is not None and not mandate.active:
            said = "the mandate has expired: the desk trades on paper"
        return MandateStateView(**self._head(page), mandate=mandate, said=said)

    # -- acting

    async def close(self, which: str, confirm: Confirm = lambda word, what: False) -> ActionView:
        """Close a trade, everything of a symbol, or everything; entries that wait there are cancelled. `Refused` for a
        trade or a symbol of which nothing is open. With money the word `close` has to be typed."""
        before = (await self._look()).book
        if self._mode == "live":
            held = ", ".join(_list_closing(before, which)) or plain_text(which, 64)
            self._require_word(confirm, "close", f"LIVE: closed at the market: {held}.")
        answer = await self._orders.close(plain_text(which, 64), self._name)
        said = _describe_closed(before, answer.book, which)
        notes = await self._learn(before, answer)
        if not said and which.strip().lower() != "all":
            raise Refused(f"Nothing of {plain_text(which, 64)} is open; `zuno trade positions` lists what is.")
        return await self._tell_action(replace(answer, said=(*(said or ("nothing is open",)), *notes)))

    async def cancel(self, order: str) -> ActionView:
        return await self._tell_action(await self._orders.cancel(plain_text(order, 64), self._name))

    async def set_levels(self, trade: str, stop: str | None, target: str | None, confirm: Confirm) -> ActionView:
        """Move a stop or a target. What loosens them wants the word `loosen` to be typed."""
        id = plain_text(trade, 64).strip()
        prices = [None if text is None else arguments.parse_amount(text) for text in (stop, target)]
        held = (await self._look()).book.trades.get(id)
        loosened = [] if held is None else _find_loosened(held, *prices)
        confirmed = bool(loosened)
        if loosened:
            what = f"{id}: {' and '.join(loosened)}. More can be lost, or later be won."
            self._require_word(confirm, "loosen", what)
        elif self._mode == "live":
            self._require_word(confirm, "set", f"LIVE: levels of {id} are moved at the exchange.")
        return await self._tell_action(
            await self._orders.set_levels(id, stop, target, confirmed=confirmed, account=self._name)
        )

    async def pause(self) -> ActionView:
        """No new trades; open ones go on."""
        return await self._tell_action(await self._orders.pause(self._name), named=True)

    async def resume(self, confirm: Confirm = lambda word, what: False) -> ActionView:
        """With money the word `resume` has to be typed."""
        if self._mode == "live":
            self._require_word(confirm, "resume", f"{self._title}: the desk opens trades again.")
        return await self._tell_action(await self._orders.resume(self._name), named=True)

    async def kill(self, confirm: Confirm) -> ActionView:
        """Cancel all orders, close all positions and lock, once the word `kill` was typed."""
        before = await self._read_book()
        risk = self._sum_risk(before)
        what = f"this cancels {risk.orders} orders, closes {risk.trades} positions at the market and locks the desk."
        self._require_word(confirm, "kill", f"{self._title}: {what}")
        answer = await self._orders.kill(self._name)
        locked = f"the desk is locked until `zuno trade unlock` ({self._title})"
        said = (*_describe_closed(before, answer.book, "all"), locked, *await self._learn(before, answer))
        return await self._tell_action(replace(answer, said=said))

    async def unlock(self, protection: str | None = None, confirm: Confirm = lambda word, what: False) -> ActionView:
        """With money the word `unlock` has to be typed."""
        if self._mode == "live":
            names = None if protection is None else parse_protection(protection)
            locks = [lock for lock in (await self._look()).locks if names in (None, lock.protection)]
            lifted = "; ".join(map(describe_lock, locks)) or "nothing that stands now"
            self._require_word(confirm, "unlock", f"{self._title}: this lifts {lifted}.")
        return await self._tell_action(await self._orders.unlock(protection, self._name), named=True)

    async def adopt(self, confirm: Confirm) -> ActionView:
        """Take what was paid in or out at the exchange into the ledger, once the word `adopt` was typed, and lift the
        lock it set off. `Refused` on paper, where nobody pays in, and where positions differ too."""
        if self._mode == "paper":
            raise Refused("A paper account has no exchange to differ from; say --account live or --account demo.")
        shown = await self._orders.find_cash_differences(self._name)
        if not shown:
            answer = await self._orders.show(self._name)
            return await self._tell_action(replace(answer, said=("the ledger and the exchanges agree",)))
        book = (await self._look()).book
        lines = [
            f"{exchange} has {book.venue_balance(exchange) + cash:,.2f} {exchange.currency}, the ledger "
            f"{book.venue_balance(exchange):,.2f}: {describe_cash(exchange, cash)} is booked as paid in or out by you"
            for exchange, cash in shown.items()
        ]
        self._require_word(confirm, "adopt", f"{self._mode.upper()}: {'; '.join(lines)}.")
        return await self._tell_action(await self._orders.adopt_cash(shown, self._name))

    async def grant_mandate(self, mandate: Mandate, confirm: Confirm) -> MandateStateView:
        """Once the word `grant` was typed."""
        check_grant(mandate, mandate.granted)
        before = (await self._look()).book.mandate
        replaced = "" if before is None else f" It replaces {before.hash[:16]}…."
        if not confirm("grant", f"{_format_mandate(mandate)}{replaced}"):
            raise Refused("The word was not typed; nothing was granted.")
        granted, _ = await self._orders.grant_mandate(mandate, self._name)
        view = await self.mandate()
        return view.model_copy(update={"said": f"granted; every live order cites {granted.hash}"})

    def build_mandate(
        self,
        symbols: Sequence[str],
        venues: Sequence[str],
        per_trade: str,
        per_day: str,
        daily_loss: str,
        lasts: str,
        stops: str,
        *,
        judge_fallback: bool,
    ) -> Mandate:
        """What a person typed as a mandate from now on."""
        now, span = self._with.now(), arguments.parse_span(lasts) * SECOND_MS
        if span > LONGEST_MANDATE:
            raise Refused(f"A mandate lasts 30 days at most, not {lasts}.")
        if stops not in ("venue", "watched"):
            raise Usage(f"{plain_text(stops, 40)!r} says nothing of stops; write venue or watched.")
        return Mandate(
            symbols=tuple(dict.fromkeys(map(parse_symbol, symbols))),
            venues=tuple(dict.fromkeys(map(_parse_exchange, venues))),
            max_margin_per_trade_usd=arguments.parse_amount(per_trade),
            max_margin_per_day_usd=arguments.parse_amount(per_day),
            max_daily_loss_usd=arguments.parse_amount(daily_loss),
            stops="watched" if stops == "watched" else "venue",
            judge_fallback=judge_fallback,
            granted=now,
            expires=Millis(now + span),
        )

    async def revoke_mandate(self) -> MandateStateView:
        revoked, _ = await self._orders.revoke_mandate(self._name)
        view = await self.mandate()
        return view.model_copy(update={"said": f"{revoked.hash} is revoked: no live order is placed under it"})

    # -- parts

    @property
    def account(self) -> str:
        """Known for good once a moment was asked for."""
        return account_name(self._with.desk.origin, self._name)

    @property
    def _mode(self) -> Literal["paper", "demo", "live"]:
        return account_mode(self.account)

    @property
    def _title(self) -> str:
        """What is acted on, in a sentence: nobody is to kill one account and believe it was another."""
        return f"{self._mode.upper()} account {self.account}"

    def _require_word(self, confirm: Confirm, word: str, what: str) -> None:
        if not confirm(word, what):
            raise Refused("The word was not typed; nothing was changed.")

    @property
    def _orders(self) -> TradingOrders:
        return self._with.orders

    async def _learn(self, before: TradingBook, answer: OrdersAnswer) -> tuple[str, ...]:
        """The post-mortems of what was just closed, in words. The close is booked: whatever fails here, it stands, and
        the next evaluation learns from it."""
        closed = answer.book.closed[len(before.closed) :]
        if not closed or self._with.learn is None:
            return ()
        try:
            symbols = list(dict.fromkeys(summary.symbol for summary in closed))
            at = Millis(max(answer.now, answer.book.newest))  # the wall's clock went on while it was closed
            learned = await self._with.learn(answer.account, at, symbols)
        except Exception as error:
            _LOG.warning("not learned from yet: %s", error, exc_info=not isinstance(error, ZunoError))
            why = f" ({plain_text(str(error), 200)})" if isinstance(error, ZunoError) else ""
            return (f"not learned from yet{why}; `zuno trade evaluate` does",)
        return (*map(describe_post_mortem, learned.post_mortems), *learned.notes)

    async def _tell_action(self, answer: OrdersAnswer, *, named: bool = False) -> ActionView:
        """`named`: what was done says of which account."""
        page = await self._look()
        troubles = tuple(f"{exchange}: {why}" for exchange, why in answer.troubles.items())
        return ActionView(
            **{**self._head(page), "notes": (*page.notes, *troubles)},
            said=tuple(f"{line} ({self._title})" for line in answer.said) if named else answer.said,
            positions=_position_views(page),
            orders=tuple(_order_view(page.book, order) for order in page.book.open_orders.values()),
        )

    async def _moment(self) -> tuple[Millis, tuple[str, ...]]:
        """The latest moment that is known of any symbol; of a live market all marks are asked for once."""
        desk = self._with.desk
        refusal: Refused | None = None
        found: list[tuple[Millis, tuple[str, ...]]] = []
        for symbol in Symbol:
            try:
                moment = await desk.moment(symbol, None)
                found.append((moment.as_of, tuple(moment.notes)))
            except Refused as error:
                refusal = refusal or error
            if found and desk.live(None):
                break
        if not found:
            assert refusal is not None
            raise refusal
        return max(found)

    async def _find_present(self) -> tuple[Millis, tuple[str, ...]]:
        """Of an account at exchanges, which goes on whatever market is read here and whoever is silent."""
        if not self._with.desk.live(None):
            return self._with.now(), ("prices of what is not held are read with ZUNO_MARKET=live",)
        try:
            moment, notes = await self._moment()
        except ZunoError as error:
            return self._with.now(), (f"the market is not read: {plain_text(str(error), 300)}",)
        return Millis(max(moment, self._with.now())), notes

    async def _look(self) -> _AccountPage:
        if self._mode == "paper":
            moment, notes = await self._moment()
        else:
            moment, notes = await self._find_present()
        events = await self._with.log.events(self.account)
        book = TradingBook()
        if self._mode != "paper" and not events:
            book.apply(AccountOpened(at=moment, usd=ZERO, krw=ZERO))
        book.apply_all(events)
        at = Millis(max(moment, book.newest))
        paper = self._mode == "paper" or self._with.desk.live(None)
        prices = await read_prices(self._with.store, at) if paper else NO_PRICES
        marks = {} if self._mode == "paper" or self._with.marks is None else await self._with.marks(self.account)
        if self._mode != "paper" and self._with.marks is not None:
            notes += _list_unmarked(book, marks)
        lp, said = await self._read_liquidity(book)
        page = _AccountPage(self.account, events, book, at, prices, lp, (), notes, said, marks)
        return replace(page, locks=active_locks(_risk_state(page), self._with.limits))

    def _sum_risk(self, book: TradingBook) -> OpenRisk:
        return OpenRisk(self.account, self._mode, len(book.open_orders) + len(book.resting), len(book.trades))

    async def _read_book(self) -> TradingBook:
        """The account as it is written down; neither a chain nor an exchange is waited for, and a market only on paper,
        whose account it names."""
        if self._mode == "paper":
            with suppress(Unavailable):
                await self._moment()
        book = TradingBook()
        book.apply_all(await self._with.log.events(self.account))
        return book

    async def _read_liquidity(self, book: TradingBook) -> tuple[dict[Symbol, Decimal], tuple[str, ...]]:
        """By base currency: what was read or what was stated, whichever is more."""
        stated = {pool.symbol: _decimal(pool.quantity) for pool in book.liquidity.values()}
        if isinstance(self._with.inventory, str):
            return stated, (self._with.inventory,)
        try:
            read = sum_inventory(await self._with.inventory())
        except ZunoError as error:
            return stated, (f"liquidity positions are not read: {plain_text(str(error), 300).rstrip('.')}",)
        most = {symbol: max(stated.get(symbol, ZERO), _decimal(read.get(symbol, 0.0))) for symbol in Symbol}
        return {symbol: size for symbol, size in most.items() if size}, ()

    async def _closes(self, since: Millis, until: Millis) -> dict[Symbol, list[Close]]:
        """Of the finest bars that are stored and not too many."""
        frames = (Timeframe.H1, Timeframe.H4, Timeframe.D1)
        wanted = frames if until - since <= _FINE_DAYS * DAY_MS else frames[1:]
        found: dict[Symbol, list[Close]] = {}
        for symbol in Symbol:
            for timeframe in wanted:
                start = Millis(since - 2 * timeframe.millis)
                series = candles(BINANCE, symbol, timeframe)
                state = await self._with.store.read_many([Slice(series, start, until)], until)
                closes = [Close(Millis(row.at + timeframe.millis), _decimal(row.close)) for row in state.rows[0]]
                if closes:
                    found[symbol] = closes
                    break
        return found

    async def _paint(self, page: _AccountPage, curve: Sequence[EquityPoint], view: PerformanceView) -> bytes | None:
        painter = self._with.desk.painter
        if len(curve) < 2 or painter.media_type != "image/png":
            return None
        return await painter.paint_equity(
            describe_equity(
                curve, page.book.closed, view.mode.upper(), page.name, view.origin, synthetic=view.synthetic
            )
        )

    def _head(self, page: _AccountPage) -> dict[str, Any]:
        origin = self._with.desk.origin
        at_exchange = self._mode != "paper"
        return {
            "synthetic": not at_exchange and origin.startswith("SYNTHETIC"),
            "origin": page.name if at_exchange else origin,
            "live": at_exchange or self._with.desk.live(None),
            "account": page.name,
            "mode": self._mode,
            "as_of": iso(page.at),
            "marks": _mark_views(page),
            "protections": tuple(map(protection_view, page.locks)),
            "notes": page.notes,
        }


# -- what a person typed


def _parse_group(text: str) -> GroupBy:
    try:
        return GroupBy(text.strip().lower())
    except ValueError:
        raise Usage(f"{plain_text(text, 40)!r} is no grouping; write one of {', '.join(GroupBy)}.") from None


def _parse_exchange(text: str) -> Exchange:
    try:
        return Exchange(text.strip().upper())
    except ValueError:
        raise Usage(f"{plain_text(text, 40)!r} is no exchange of this desk; write binance or upbit.") from None


def _check_lines(lines: int) -> int:
    if not 1 <= lines <= MOST_LINES:
        raise Usage(f"Between 1 and {MOST_LINES:,} lines can be shown, not {lines}.")
    return lines


def _find_loosened(trade: OpenTrade, stop: Decimal | None, target: Decimal | None) -> list[str]:
    """Levels that would go further from the market."""
    sign = 1 if trade.side is Side.LONG else -1
    found = []
    if trade.stop is not None and stop is not None and sign * (trade.stop - stop) > 0:
        found.append(f"the stop goes from {_price(trade.stop)} to {_price(stop)}")
    if trade.target is not None and target is not None and sign * (target - trade.target) > 0:
        found.append(f"the target goes from {_price(trade.target)} to {_price(target)}")
    return found


def _list_closing(book: TradingBook, which: str) -> list[str]:
    """What a close ends: with a trade of the desk, whatever the desk holds of its symbol at other exchanges."""
    name = which.strip()
    named = book.trades.get(name)
    return [
        f"{trade.id} ({trade.side} {trade.quantity.normalize():f} {trade.symbol.base} at {trade.exchange})"
        for trade in book.trades.values()
        if name.lower() == "all"
        or name.upper() == trade.symbol.value
        or trade.id == name
        or (named is not None and trade.symbol is named.symbol and not trade.manual and not named.manual)
    ]


def _describe_closed(before: TradingBook, after: TradingBook, which: str) -> tuple[str, ...]:
    """What became of what was held and ordered; an exchange may need a while."""
    name = which.strip()
    wanted = {
        trade.id for trade in before.trades.values() if name.lower() == "all" or name in (trade.id, trade.symbol.value)
    }
    said: list[str] = []
    for trade in after.closed[len(before.closed) :]:
        exit_price, net = (f"{float(number):,.2f}" for number in (trade.exit, trade.net_pnl))
        what = f"{trade.side} {trade.quantity.normalize():f} {trade.symbol.base} at {trade.exchange}"
        said.append(f"{trade.trade} ({what}) is closed at {exit_price}: {net} {trade.exchange.currency} net")
    gone = [id for id in (*before.open_orders, *before.resting) if id not in {**after.open_orders, **after.resting}]
    said += [f"{len(gone)} orders are over"] if gone else []
    return (*said, *(f"{id} is not closed yet; `zuno trade positions` shows it" for id in after.trades if id in wanted))


# -- figures


def _total_equity(page: _AccountPage) -> tuple[Decimal | None, str | None]:
    missing = [
        f"{trade.symbol} has no mark"
        for trade in page.book.trades.values()
        if page.mark(trade.symbol, Exchange.BINANCE) is None
    ]
    if missing:
        return None, missing[0]
    return equity_usd(current_step(page.book, page.at), page.usd_marks, page.won), None


def _unrealised_usd(page: _AccountPage) -> Decimal | None:
    total = ZERO
    for trade in page.book.trades.values():
        mark = page.mark(trade.symbol, trade.exchange)
        rate = Decimal(1) if trade.exchange is Exchange.BINANCE else page.won
        if mark is None or rate is None:
            return None
        total += trade.unrealised(mark) / rate
    return total


def _risk_state(page: _AccountPage) -> RiskState:
    equity, unknown = _total_equity(page)
    unrealised = _unrealised_usd(page)
    book = page.book
    opening = {tracked.intent.symbol for tracked in book.open_intents.values() if tracked.intent.kind == "open"}
    won = page.prices.won
    ages: dict[Symbol, Known[Millis]] = {}
    for symbol in {trade.symbol for trade in book.trades.values()}:
        age = page.prices.ages.get(str(basis(BINANCE, symbol)))
        if age is not None:
            ages[symbol] = Millis(page.at - age * SECOND_MS)
    return RiskState(
        now=page.at,
        open_symbols=frozenset({trade.symbol for trade in book.trades.values()} | opening),
        closed=book.closed,
        results=book.results,
        equity_usd=Missing(unknown or "no mark") if equity is None else equity,
        unrealised_usd=Missing("no mark") if unrealised is None else unrealised,
        won=won if isinstance(won, Missing) else _decimal(won),
        price_times=ages,
        locks=tuple(book.locks.values()),
        lifted=book.lifted,
    )


def _risk_view(page: _AccountPage, equity: Decimal | None) -> RiskBookView:
    """Positions, pending entries and LP inventory by symbol: signed for the delta, added up for the gross exposure."""
    rows = []
    delta_usd: Decimal | None = ZERO
    gross_usd: Decimal | None = ZERO
    for symbol in Symbol:
        held = sum(
            (_sign(trade.side) * trade.quantity for trade in page.book.trades.values() if trade.symbol is symbol), ZERO
        )
        waiting = [order for order in page.book.to_pending() if order.symbol is symbol and not order.reduce_only]
        pending = sum((_sign(order.side) * _decimal(order.quantity) for order in waiting), ZERO)
        lp = page.lp.get(symbol, ZERO)
        size = sum((trade.quantity for trade in page.book.trades.values() if trade.symbol is symbol), ZERO)
        size += sum((_decimal(order.quantity) for order in waiting), ZERO) + lp
        if not size:
            continue
        mark = page.mark(symbol, Exchange.BINANCE)
        delta = held + pending + lp
        rows.append(
            ExposureView(
                symbol=symbol,
                positions=float(held),
                pending=float(pending),
                lp=float(lp),
                delta=float(delta),
                delta_usd=_float(None if mark is None else delta * mark),
                gross_usd=_float(None if mark is None else size * mark),
            )
        )
        delta_usd = None if mark is None or delta_usd is None else delta_usd + delta * mark
        gross_usd = None if mark is None or gross_usd is None else gross_usd + size * mark
    leverage = None
    if gross_usd is not None and equity is not None:
        leverage = ZERO if not gross_usd else gross_usd / equity if equity > 0 else None
    return RiskBookView(
        rows=tuple(rows),
        delta_usd=_float(delta_usd),
        gross_usd=_float(gross_usd),
        equity_usd=_float(equity),
        leverage=_float(leverage),
        max_leverage=MAX_ACCOUNT_LEVERAGE,
    )


def _profit_row(name: str, found: Performance) -> ProfitRowView:
    return ProfitRowView(
        name=name,
        trades=found.trades,
        wins=found.wins,
        losses=found.losses,
        win_rate=_float(found.win_rate),
        net_pnl=float(found.net_pnl),
        gross_pnl=float(found.gross_pnl),
        profit_factor=_float(found.profit_factor),
        expectancy_r=_float(found.expectancy_r),
        max_drawdown=float(found.max_drawdown),
        mean_duration_hours=None if found.mean_duration_ms is None else found.mean_duration_ms / HOUR_MS,
        fees=float(found.fees),
        funding=float(found.funding),
        model_cost=float(found.model_cost),
        best=_float(found.best),
        worst=_float(found.worst),
        unconverted=found.unconverted,
    )


# -- views


def _mandate_view(granted: MandateGranted | None, now: Millis) -> MandateView | None:
    if granted is None:
        return None
    mandate = granted.mandate
    return MandateView(
        hash=granted.hash,
        symbols=mandate.symbols,
        venues=mandate.venues,
        max_margin_per_trade_usd=float(mandate.max_margin_per_trade_usd),
        max_margin_per_day_usd=float(mandate.max_margin_per_day_usd),
        max_daily_loss_usd=float(mandate.max_daily_loss_usd),
        stops=mandate.stops,
        judge_fallback=mandate.judge_fallback,
        granted=iso(mandate.granted),
        expires=iso(mandate.expires),
        active=mandate.expires > now,
    )


def _format_mandate(mandate: Mandate) -> str:
    return (
        f"The desk may trade {', '.join(mandate.symbols)} at {', '.join(mandate.venues)} with real money until "
        f"{iso(mandate.expires)}: at most ${mandate.max_margin_per_trade_usd:,.2f} of margin per trade, "
        f"${mandate.max_margin_per_day_usd:,.2f} per day, and no new trade once ${mandate.max_daily_loss_usd:,.2f} are "
        f"lost in a day. Stops: {'at the exchange' if mandate.stops == 'venue' else 'watched by the desk'}. "
        f"{'Rules may' if mandate.judge_fallback else 'Rules may not'} decide when the Judge's model fails."
    )


def _mark_views(page: _AccountPage) -> tuple[MarkView, ...]:
    """Of what is held, and what the risk book counts in dollars."""
    held = {(trade.exchange, trade.symbol) for trade in page.book.trades.values()}
    shown = [(exchange, symbol) for exchange in Exchange for symbol in Symbol]
    wanted = [place for place in shown if place in held or place[0] is Exchange.BINANCE]
    return tuple(view for place in wanted if (view := _mark_view(page, *place)) is not None)


def _mark_view(page: _AccountPage, exchange: Exchange, symbol: Symbol) -> MarkView | None:
    price = page.mark(symbol, exchange)
    if price is None:
        return None
    stored = None if (exchange, symbol) in page.marks else page.prices.find_source(symbol, exchange)
    source, age = (f"{exchange}, asked for this answer", 0) if stored is None else stored
    return MarkView(
        symbol=symbol,
        exchange=exchange,
        price=float(price),
        source=source,
        as_of=iso(Millis(page.at - age * SECOND_MS)),
        age_seconds=age,
    )


def _liquidation_price(trade: OpenTrade) -> Decimal | None:
    if trade.exchange is not Exchange.BINANCE:
        return None
    return liquidation_price(trade.side, trade.quantity, trade.cost, trade.margin)


def _position_views(page: _AccountPage) -> tuple[TradePositionView, ...]:
    return tuple(_position_view(page, trade) for trade in page.book.trades.values())


def _position_view(page: _AccountPage, trade: OpenTrade) -> TradePositionView:
    mark = page.mark(trade.symbol, trade.exchange)
    gain = None if mark is None else trade.unrealised(mark)
    risk = None if trade.first_stop is None else trade.quantity * abs(trade.entry - trade.first_stop)
    orders = [] if trade.manual else _orders_of(page.book, trade)
    protective = {order.purpose: order.request.client_id for order in orders if order.purpose in ("stop", "target")}
    return TradePositionView(
        id=trade.id,
        symbol=trade.symbol,
        exchange=trade.exchange,
        side=trade.side,
        quantity=float(trade.quantity),
        entry=float(trade.entry),
        leverage=float(trade.leverage),
        currency=trade.exchange.currency,
        margin=float(trade.margin),
        mark=_float(mark),
        unrealised=_float(gain),
        gain_pct=_float(None if gain is None else gain / trade.cost * 100),
        r=_float(None if gain is None or not risk else gain / risk),
        stop=_float(trade.stop),
        target=_float(trade.target),
        liquidation=_float(_liquidation_price(trade)),
        hold_until=None if trade.hold_until is None else iso(trade.hold_until),
        opened=iso(trade.opened),
        fees=float(trade.fees),
        funding=float(trade.funding),
        manual=trade.manual,
        exploration=trade.exploration,
        decision=trade.decision,
        stop_order=protective.get("stop"),
        target_order=protective.get("target"),
        orders=tuple(order.request.client_id for order in orders),
    )


def _orders_of(book: TradingBook, trade: OpenTrade) -> list[TrackedOrder]:
    place = (trade.exchange, trade.symbol)
    return [order for order in book.open_orders.values() if (order.request.exchange, order.request.symbol) == place]


def _order_view(book: TradingBook, order: TrackedOrder) -> TradeOrderView:
    request = order.request
    intent = book.intents.get(order.intent)
    return TradeOrderView(
        id=request.client_id,
        venue_id=order.venue_id,
        exchange=request.exchange,
        symbol=request.symbol,
        side=request.side,
        type=request.type,
        purpose=order.purpose,
        quantity=float(request.quantity),
        filled=float(max(order.filled, order.booked)),
        price=_float(request.price if request.price is not None else request.trigger),
        average_price=_float(order.average_price),
        currency=request.exchange.currency,
        time_in_force=request.time_in_force,
        reduce_only=request.reduce_only,
        status=order.status,
        planned=iso(order.planned),
        expires=None if order.expires is None else iso(order.expires),
        intent=order.intent or None,
        decision=None if intent is None else intent.intent.decision,
        reason=order.reason,
    )


def _purse_view(page: _AccountPage, exchange: Exchange) -> PurseView:
    book = page.book
    trades = book.trades_at(exchange)
    marks = {trade.symbol: page.mark(trade.symbol, exchange) for trade in trades}
    known = {symbol: mark for symbol, mark in marks.items() if mark is not None}
    whole = len(known) == len(marks)
    return PurseView(
        exchange=exchange,
        currency=exchange.currency,
        cash=float(book.cash(exchange)),
        margin=float(book.margin(exchange)),
        pending_margin=float(book.pending_margin(exchange)),
        inventory=float(book.ledger.balance(exchange, LedgerAccount.INVENTORY)),
        unrealised=float(sum((trade.unrealised(known[trade.symbol]) for trade in trades), ZERO)) if whole else None,
        equity=float(book.equity(exchange, known)) if whole else None,
        free=float(book.free(exchange, known)) if whole else None,
    )


def _ledger_balances(book: TradingBook, exchange: Exchange) -> LedgerBalancesView:
    ledger = book.ledger
    balances = {account.value: ledger.balance(exchange, account) for account in LedgerAccount}
    return LedgerBalancesView(
        exchange=exchange,
        currency=exchange.currency,
        balances={name: _exact(amount) for name, amount in balances.items()},
        debits=_exact(ledger.debits(exchange)),
        credits=_exact(ledger.credits(exchange)),
        assets=_exact(ledger.assets(exchange)),
        balanced=ledger.debits(exchange) == ledger.credits(exchange) and sum(balances.values(), ZERO) == 0,
    )


def _sign(side: Side) -> int:
    return 1 if side is Side.LONG else -1


def _price(level: Decimal | None) -> str:
    return "none" if level is None else f"{level.normalize():f}"


def _exact(amount: Decimal) -> str:
    return f"{amount.normalize():f}" if amount else "0"


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))


def _list_unmarked(book: TradingBook, marks: Mapping[tuple[Exchange, Symbol], Decimal]) -> tuple[str, ...]:
    """Exchanges with open positions that say nothing of them."""
    silent = dict.fromkeys(place[0] for place in book.positions if place not in marks)
    return tuple(
        f"{exchange}: positions are open there and it does not answer; check its keys, the mandate and the network"
        for exchange in silent
    )
