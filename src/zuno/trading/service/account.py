"""A trading account as a person asks about it and acts on it: every `zuno trade` command beside runs and charts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import repeat
from typing import Any, Final, Literal, TypeVar

from zuno.kernel import arguments
from zuno.kernel.accounts import account_mode, short_name
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, Refused, UsageError, ZunoError
from zuno.kernel.taxable import TaxableEvent
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue, parse_venue
from zuno.trading.chart.account_charts import describe_equity
from zuno.trading.execute.order_gate import OrderGate, request_name
from zuno.trading.model.account import BookChange
from zuno.trading.model.known import derive, or_none
from zuno.trading.model.market import DAY_MS, HOUR_MS, SECOND_MS, Timeframe
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE, NEW_PAPER_CASH
from zuno.trading.model.trade_events import Mandate, MandatedSleeve, ManualChange, Protection, TradeEvent
from zuno.trading.model.wanted import own_candles
from zuno.trading.ports.series import Slice
from zuno.trading.rules.book_state import OpenTrade
from zuno.trading.rules.equity_lines import CORE, HOLD, EquityLine, draw_lines
from zuno.trading.rules.performance import (
    AccountHistory,
    Close,
    GroupBy,
    drawdown_percents,
    find_max_drawdown,
    group_trades,
    mark_steps,
    measure_trades,
)
from zuno.trading.rules.protections import LONGEST_MANDATE, check_grant, describe_lock, find_drawdown, name_unlock
from zuno.trading.rules.taxable import list_taxable_events
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.account_page import AccountBackends, AccountPage, AccountPageReader, format_moment, list_held
from zuno.trading.service.account_to_views import (
    closed_trade_view,
    equity_line_view,
    exchange_balance_view,
    fill_view,
    ledger_balances_view,
    mandate_view,
    mark_views,
    order_views,
    position_views,
    posting_view,
    profit_row_view,
    risk_view,
    sleeve_ledger_views,
    sleeve_views,
    uncovered_views,
)
from zuno.trading.service.account_view import (
    ActionView,
    FillsView,
    LocksView,
    MandateStateView,
    SleevesView,
    TradeBalanceView,
    TradeOrdersView,
    TradePositionsView,
    TradeStatusView,
    TradesView,
)
from zuno.trading.service.closing import OpenRisk, describe_closed, describe_trade, find_closing, find_only
from zuno.trading.service.desk_view import describe_post_mortem, protection_view
from zuno.trading.service.ledger_view import LedgerView
from zuno.trading.service.live_start import Confirm, parse_mandated_sleeve
from zuno.trading.service.manual_entries import ClosingEntry, ManualEntry
from zuno.trading.service.profit_view import (
    EquityCurvesView,
    EquityCurveView,
    EquityPointView,
    PerformanceView,
    ProfitView,
)
from zuno.trading.service.strategies import SleeveAccount

MOST_LINES: Final = 10_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AccountFigures:
    """What is measured of an account all the time, by stored prices; None: a price is not known."""

    mode: Literal["paper", "demo", "live"]
    equity_usd: Decimal | None
    drawdown: Decimal | None
    """Below the peak of thirty days, as a share of it."""
    exposure_usd: Mapping[Symbol, Decimal]
    """Net, a short below zero, of the symbols whose price is known."""
    locks: Mapping[Protection, int]


class AccountDesk:
    """One account: the home's paper account in the market it reads, another of its paper accounts, or a live one."""

    def __init__(self, backends: AccountBackends, name: str | None = None) -> None:
        self._with = backends
        self._reader = AccountPageReader(backends, name)

    # -- looking

    async def list_exchange_accounts(self) -> tuple[str, ...]:
        """Those of this home in which anything ever happened: `demo`, `live`, `live:NAME`."""
        return tuple(sorted(name for name in await self._with.log.accounts() if account_mode(name) != "paper"))

    async def status(self) -> TradeStatusView:
        page = await self._reader.look(ask=True)
        whole = page.book.measure(page.rates)
        midnight = page.at // DAY_MS * DAY_MS
        today = measure_trades([trade for trade in page.book.closed if trade.closed >= midnight], page.rates)
        return TradeStatusView(
            **{**self._head(page), "notes": (*page.notes, *page.lp_notes)},
            running=self._with.running(page.name),
            **_measure_equity(page),
            unrealised_usd=page.unrealised_usd(),
            net_pnl_usd=whole.net_pnl,
            today_usd=today.net_pnl,
            open_trades=len(page.book.trades),
            open_orders=len(page.book.open_orders) + len(page.book.resting),
            closed_trades=len(page.book.closed),
            risk=risk_view(page),
            mandate=mandate_view(page.book.mandate, self._with.now()),
        )

    async def figures(self) -> AccountFigures:
        """From what is stored; nobody is asked."""
        page = await self._reader.glance()
        exposure = {symbol: Decimal(0) for symbol in page.usd_marks}
        for trade in page.book.trades.values():
            if trade.symbol in exposure:
                exposure[trade.symbol] += trade.side.sign * trade.quantity * page.usd_marks[trade.symbol]
        locks = Counter(lock.protection for lock in page.locks)
        drawdown = or_none(find_drawdown(page.risk_state(), self._with.limits)) if page.book.count else None
        equity = page.total_equity()[0] if page.book.count else None
        return AccountFigures(self._reader.mode, equity, drawdown, exposure, locks)

    async def read_sleeves(self) -> SleeveAccount:
        """What share each sleeve has and what it is worth, from what is stored; of a paper account that is not begun
        yet, what it will begin with."""
        page, opening = await self._reader.glance(), self._with.opening
        if not page.book.count and self._reader.mode == "paper" and opening is not None:
            if self._with.check_sleeves is not None:
                await self._with.check_sleeves(opening.shares)
            capital = {name: float(NEW_PAPER_CASH * opening.shares.of(name)) for name in opening.shares}
            return SleeveAccount(self._reader.title, opening.shares, NEW_PAPER_CASH, capital)
        worth = {sleeve.name: sleeve.equity_usd for sleeve in sleeve_views(page)}
        return SleeveAccount(self._reader.title, page.book.shares, page.total_equity()[0], worth)

    async def open_risk(self) -> OpenRisk:
        """What a kill would end, from the account's own log; where it cannot be read, everything is meant. An exchange
        is waited for seconds at most."""
        reader, book = self._reader, await self._read_known_book()
        answers = None if book is None else await reader.ask_exchanges(book)
        orders = None if book is None else len(book.open_orders) + len(book.resting)
        trades, notes = None if book is None else len(book.trades), reader.describe_answers(answers)
        notes = (*notes, *await self._list_unhedged())
        return OpenRisk(reader.short_name, reader.mode, orders, trades, answers, notes)

    async def _list_unhedged(self) -> tuple[str, ...]:
        """Liquidity that nothing hedges once everything here is closed."""
        if self._with.list_hedged is None:
            return ()
        with suppress(ZunoError):  # a kill waits for nothing else that works
            return tuple(f"unhedged then: {text}" for text in await self._with.list_hedged(self._reader.account))
        return ()

    async def positions(self, by: str | None = None) -> TradePositionsView:
        by, page = _parse_by_sleeve(by), await self._reader.look(ask=True)
        unrealised = page.unrealised_usd()
        return TradePositionsView(**self._head(page), by=by, positions=position_views(page), unrealised_usd=unrealised)

    async def orders(self, *, everything: bool = False, by: str | None = None) -> TradeOrdersView:
        """Those that are open, or all there ever were, the newest first. `by`: sleeve, or None."""
        by, page = _parse_by_sleeve(by), await self._reader.look(ask=True)
        return TradeOrdersView(**self._head(page), by=by, orders=order_views(page.book, everything=everything))

    async def sleeves(self) -> SleevesView:
        page = await self._reader.look(ask=True)
        return SleevesView(**self._head(page), **_measure_equity(page))

    async def fills(self, lines: int = 50, before: str | None = None) -> FillsView:
        """The newest first; `before`: those older than this one, `UsageError` where there is none."""
        page = await self._reader.look()
        fills = page.book.fills
        shown = _cut(fills, lines, before, lambda fill: fill.id)
        return FillsView(**self._head(page), total=len(fills), fills=tuple(map(fill_view, shown)))

    async def trades(self, lines: int = 50, before: str | None = None) -> TradesView:
        """As `fills`."""
        page = await self._reader.look()
        closed = page.book.closed
        shown = _cut(closed, lines, before, lambda trade: trade.trade)
        return TradesView(**self._head(page), total=len(closed), trades=tuple(map(closed_trade_view, shown)))

    async def ledger(self, lines: int = 50, before: str | None = None) -> LedgerView:
        """As `fills`, by the number of the event."""
        page = await self._reader.look()
        postings = page.book.postings
        shown = _cut(postings, lines, before, lambda posting: str(posting.number))
        return LedgerView(
            **self._head(page),
            total=len(postings),
            ledgers=tuple(ledger_balances_view(page.book, exchange) for exchange in page.book.venues),
            sleeves=sleeve_ledger_views(page.book),
            postings=tuple(map(posting_view, shown)),
        )

    async def list_taxable_events(self) -> tuple[TaxableEvent, ...]:
        """Of the whole account, in the order of its log."""
        if self._reader.name is None and not await self._with.log.accounts():
            return ()  # before the market is read, which a new home invents first
        page = await self._reader.look()
        return tuple(list_taxable_events(page.name, await self._with.log.events(page.name)))

    async def read_hour_close(self, coin: str, at: Millis) -> Decimal | None:
        """The dollars for a coin at the last hour that closed by `at`, from stored candles of a real market."""
        symbol = next((symbol for symbol in self._with.desk.markets if symbol.base == coin), None)
        if symbol is None or self._with.store.origin.synthetic:
            return None
        hours = Slice(own_candles(symbol, Timeframe.H1), Millis(at - 3 * HOUR_MS), at, newest=1)
        state = await self._with.store.read_many([hours], at)
        return to_decimal(state.rows[0][-1].close) if state.rows[0] else None

    async def balance(self) -> TradeBalanceView:
        page = await self._reader.look(ask=True)
        purses = tuple(exchange_balance_view(page, exchange) for exchange in page.book.venues)
        return TradeBalanceView(**self._head(page), **_measure_equity(page), purses=purses)

    async def profit(self, by: str | None = None) -> ProfitView:
        hint = f"grouping; write one of {', '.join(GroupBy)}"
        grouping = None if by is None else arguments.parse_word(GroupBy, by, hint)
        page, lines = await self._draw_lines(by_sleeve=grouping is GroupBy.SLEEVE)
        groups = {} if grouping is None else group_trades(page.book.closed, grouping)
        return ProfitView(
            **self._head(page),
            **_measure_drawdown(lines),
            by=grouping,
            whole=profit_row_view("all", page.book.measure(page.rates)),
            groups=tuple(profit_row_view(name, measure_trades(trades, page.rates)) for name, trades in groups.items()),
        )

    async def equity(self) -> PerformanceView:
        """Figures and the equity curve; nothing is painted."""
        return self._view_performance(*await self._draw_lines())

    async def curves(self) -> EquityCurvesView:
        """The curve of each sleeve beside those of desk, core and hold."""
        page, lines = await self._draw_lines(by_sleeve=True)
        curves = (
            derive(EquityCurveView, equity_line_view(line), usd=tuple(float(point.equity) for point in line.points))
            for line in lines
        )
        moments = tuple(point.at for point in lines[0].points) if lines else ()
        return EquityCurvesView(**self._head(page), at=moments, lines=tuple(curves))

    async def performance(self, by: str | None = None) -> tuple[PerformanceView, bytes | None]:
        """The same, and its picture where there is one. `by`: sleeve, or None."""
        page, lines = await self._draw_lines(by_sleeve=_parse_by_sleeve(by) is not None)
        view = self._view_performance(page, lines)
        return view, await self._paint(page, lines, view)

    async def _draw_lines(self, *, by_sleeve: bool = False) -> tuple[AccountPage, tuple[EquityLine, ...]]:
        page = await self._reader.look()
        steps = () if page.opened else page.book.steps
        closes = await self._reader.read_closes(steps[0].at if steps else page.at, page.at)
        for symbol, mark in page.usd_marks.items():
            closes.setdefault(symbol, []).append(Close(page.at, mark))
        marked = mark_steps(steps, closes, page.rates, page.at)
        return page, draw_lines(marked, page.rates, self._with.desk.markets, by_sleeve=by_sleeve)

    def _view_performance(self, page: AccountPage, lines: Sequence[EquityLine]) -> PerformanceView:
        curve = lines[0].points if lines else ()
        beside = {line.name: [float(point.equity) for point in line.points] for line in lines}
        core, hold = (beside.get(name, repeat(None, len(curve))) for name in (CORE, HOLD))
        start, end = (curve[0].equity, curve[-1].equity) if curve else (None, None)
        return PerformanceView(
            **self._head(page),
            **_measure_drawdown(lines),
            file=None,
            whole=profit_row_view("all", page.book.measure(page.rates)),
            start_usd=start,
            equity_usd=end,
            return_pct=lines[0].return_pct if lines else None,
            points=tuple(
                EquityPointView(
                    at=iso(point.at),
                    equity_usd=point.equity,
                    drawdown_pct=percent,
                    core_usd=in_core,
                    hold_usd=held,
                )
                for point, percent, in_core, held in zip(curve, drawdown_percents(curve), core, hold, strict=True)
            ),
        )

    async def locks(self) -> LocksView:
        return LocksView(**self._head(await self._reader.look()))

    async def mandate(self) -> MandateStateView:
        page = await self._reader.look()
        mandate = mandate_view(page.book.mandate, self._with.now())
        gap = "no mandate is granted" if mandate is None else "" if mandate.active else "the mandate has expired"
        said = f"{gap}: the desk trades on paper" if gap else ""
        return MandateStateView(**self._head(page), mandate=mandate, said=said)

    # -- acting

    async def close(self, which: str, confirm: Confirm = lambda word, what: False) -> ActionView:
        """Close a trade, everything of a symbol, or everything; entries that wait there are cancelled. `Refused` for a
        trade or a symbol of which nothing is open. With money the word `close` has to be typed."""
        page = await self._reader.look()
        before = page.book
        if page.liquidated:  # at their margin, not at the market
            await self._write_by_hand(page)
        if self._reader.mode == "live":
            closing = find_closing(before.trades.values(), which)
            held = ", ".join(f"{trade.id} ({describe_trade(trade)})" for trade in closing) or plain_text(which, 64)
            self._require_word(confirm, "close", f"LIVE: closed at the market: {held}.")
        gate, name = await self._open(), plain_text(which, 64).strip()
        request = request_name("close", name, gate.now())
        symbols = (*self._with.desk.markets, *list_held(before))
        named = next((symbol for symbol in symbols if symbol.upper() == name.upper()), name)
        await gate.close(None if name.lower() == "all" else named, request=request)
        said = describe_closed(before, gate.book, which)
        if not said and which.strip().lower() != "all":
            raise Refused(f"Nothing of {plain_text(which, 64)} is open; `zuno trade positions` lists what is.")
        return await self._tell_action(gate, *(said or ("nothing is open",)), ask=True)

    async def enter(self, entry: ManualEntry, as_of: str | None = None) -> ActionView:
        """Write an entry by hand, at a moment of the market; all of its changes or none. Nothing is sent."""
        if self._reader.mode != "paper":
            raise Refused("Entries by hand are of paper accounts: what an exchange holds is read from it.")
        page = await self._reader.look_for_entry(as_of)
        changes, said = entry.plan(page, self._with.fees)
        book = await self._write_by_hand(page, changes)
        page = replace(page, book=book, notes=(*page.notes, f"seen by every cycle after {format_moment(page.at)}"))
        return self._build_action(page, tuple(said))

    async def cancel(self, order: str) -> ActionView:
        id = plain_text(order, 64).strip()
        if id.startswith("ord_"):  # entered by hand
            return await self.enter(ClosingEntry(id))
        gate = await self._open()
        return await self._tell_action(gate, f"{await gate.cancel(id)} is cancelled")

    async def set_levels(self, trade: str, stop: str | None, target: str | None, confirm: Confirm) -> ActionView:
        """Move a stop or a target. What loosens them wants the word `loosen` to be typed."""
        if stop is None and target is None:
            raise UsageError("Give --stop, --target or both.")
        id = plain_text(trade, 64).strip()
        prices = [None if text is None else arguments.parse_amount(text) for text in (stop, target)]
        open_trades = (await self._reader.look()).book.trades
        held = open_trades.get(id) or find_only(open_trades.values(), id)
        id = id if held is None else held.id
        loosened = [] if held is None else _find_loosened(held, *prices)
        if loosened:
            what = f"{id}: {' and '.join(loosened)}. More can be lost, or gained later."
            self._require_word(confirm, "loosen", what)
        elif self._reader.mode == "live":
            self._require_word(confirm, "set", f"LIVE: levels of {id} are moved at the exchange.")
        gate = await self._open()
        moved = await gate.set_levels(id, *prices, confirmed=bool(loosened))
        return await self._tell_action(gate, f"{moved.id}: stop {moved.stop}, target {moved.target}")

    async def transfer(self, source: str, target: str, amount: str, confirm: Confirm) -> ActionView:
        """Give dollars of one sleeve to another, once the word `transfer` was typed."""
        if source == target:
            raise UsageError("A transfer is from one sleeve to another.")
        dollars, gate = arguments.parse_amount(amount), await self._open()
        known = (await gate.refresh()).sleeves
        if strange := next((name for name in (source, target) if name not in known), None):
            raise UsageError(f"{plain_text(strange, 40)} is no sleeve of {self._reader.title}: {', '.join(known)}.")
        self._require_word(confirm, "transfer", f"{self._reader.title}: ${dollars} of {source} become {target}'s.")
        by_hand = await gate.transfer(source, target, dollars, request_name(source, target, str(dollars), gate.now()))
        return await self._tell_action(gate, f"${dollars} of {source} are {target}'s", *by_hand)

    async def pause(self) -> ActionView:
        gate = await self._open()
        await gate.pause()
        return await self._tell_action(gate, "paused: no new trades; open ones go on", named=True)

    async def resume(self, confirm: Confirm = lambda word, what: False) -> ActionView:
        """With money the word `resume` has to be typed."""
        if self._reader.mode == "live":
            self._require_word(confirm, "resume", f"{self._reader.title}: the desk opens trades again.")
        gate = await self._open()
        return await self._tell_action(gate, "resumed" if await gate.resume() else "it was not paused", named=True)

    async def kill(self, confirm: Confirm | None, door: str = "terminal") -> ActionView:
        """Once the word `kill` was typed: first the account is locked in a file of the home, which needs nothing else
        that works; then all orders are cancelled, all positions closed, and the lock is written to its log. A lock that
        cannot be written keeps nobody from getting out: that is said after the rest was done.

        `confirm`: None where the word was typed already; no exchange is asked before the kill then.
        """
        if confirm is not None:
            risk = await self.open_risk()
            self._require_word(confirm, "kill", " ".join((f"{self._reader.title}: this {risk.ends}.", *risk.notes)))
        name, lock = self._reader.short_name, self._with.kill_lock
        trouble: list[BaseException] = []
        try:
            lock.lock(name, door)
        except ZunoError as error:
            trouble.append(error)
        try:
            before = await self._read_known_book()
        except NotFound:
            if name not in map(short_name, await self._with.log.accounts()):
                lock.unlock(name)  # in no market of this home: a process that reads another one lifts nobody's kill
            raise
        locked = f"the desk is locked until `{name_unlock(name)}` ({self._reader.title})"
        sharing = asyncio.create_task(asyncio.to_thread(lock.share, name, door))
        try:
            if not trouble and not await self._reader.has_market():
                return self._build_action(self._reader.empty_page(), said=(locked,))
            gate = await self._open()
            await gate.kill()
        except ZunoError as error:
            if not trouble:
                error.args = (f"{self._reader.title} is LOCKED. Not everything is closed: {error}",)
            raise
        finally:
            trouble += [error for error in await asyncio.gather(sharing, return_exceptions=True) if error]
        notes = tuple(f"not locked everywhere: {plain_text(str(error), 300)}" for error in trouble)
        known = before or TradingBook()
        said = (*describe_closed(known, gate.book, "all"), *await self._list_unhedged(), locked, *notes)
        return await self._tell_action(gate, *said, ask=True)

    async def unlock(self, protection: str | None = None, confirm: Confirm = lambda word, what: False) -> ActionView:
        """With money the word `unlock` has to be typed. What is killed after this was asked for stays killed."""
        kills, name = self._with.kill_lock, self._reader.short_name
        marks = await asyncio.to_thread(kills.list_marks, name)
        hint = f"protection; there are {', '.join(Protection)}"
        named = None if protection is None else arguments.parse_word(Protection, protection, hint)
        if self._reader.mode == "live":
            locks = [
                lock
                for lock in (await self._reader.look()).locks
                if named in (None, lock.protection) and lock.protection is not Protection.RESTORED
            ]
            lifted = "; ".join(map(describe_lock, locks)) or "nothing that stands now"
            self._require_word(confirm, "unlock", f"{self._reader.title}: this lifts {lifted}.")
        gate = await self._open()
        said = [f"{lock.protection} is lifted" for lock in await gate.unlock(named)] or ["nothing was locked"]
        if named in (None, Protection.KILL_SWITCH):
            await asyncio.to_thread(kills.unlock, name, marks)  # last: the log has it by now
        return await self._tell_action(gate, *said, named=True)

    async def reconcile(self) -> ActionView:
        """Hold the ledger against the exchanges, book what is missing there, and say what is left for the owner."""
        gate = await self._open()
        return await self._tell_action(gate, *(await gate.reconcile() or ("the ledger and the exchanges agree",)))

    async def adopt(self, confirm: Confirm) -> ActionView:
        """Take what was paid in or out at the exchange into the ledger, once the word `adopt` was typed, and lift the
        lock it set off. `Refused` on paper, where nobody pays in, and where positions differ too."""
        if self._reader.mode == "paper":
            raise Refused("A paper account has no exchange to differ from; say --account live or --account demo.")
        gate = await self._open()
        shown = await gate.find_cash_differences()
        if not shown:
            return await self._tell_action(gate, "the ledger and the exchanges agree")
        book = (await self._reader.look()).book
        lines = [
            f"{exchange} has {book.venue_balance(exchange) + cash:,.2f} {exchange.currency}, the ledger "
            f"{book.venue_balance(exchange):,.2f}: {_describe_cash(exchange, cash)} is booked as paid in or out by you"
            for exchange, cash in shown.items()
        ]
        self._require_word(confirm, "adopt", f"{self._reader.mode.upper()}: {'; '.join(lines)}.")
        await gate.adopt_cash(shown)
        return await self._tell_action(gate, *(f"adopted {_describe_cash(*item)}" for item in shown.items()))

    async def grant_mandate(self, mandate: Mandate, confirm: Confirm) -> MandateStateView:
        """Once the word `grant` was typed."""
        check_grant(mandate, mandate.granted)
        if self._with.check_sleeves is not None:
            await self._with.check_sleeves(mandate.shares)
        before = (await self._reader.look()).book.mandate
        replaced = "" if before is None else f" It replaces {before.hash[:16]}…."
        terms = (
            f"The desk may trade {', '.join(mandate.symbols)} at {', '.join(mandate.venues)} with real money until "
            f"{iso(mandate.expires)}: at most ${mandate.max_margin_per_trade_usd:,.2f} of margin per trade, "
            f"${mandate.max_margin_per_day_usd:,.2f} per day, and no new trade once "
            f"${mandate.max_daily_loss_usd:,.2f} are lost in a day. "
            f"Stops: {'at the exchange' if mandate.stops == 'venue' else 'watched by the desk'}. "
            f"{'Rules may' if mandate.judge_fallback else 'Rules may not'} decide when the Judge's model fails."
            f"{' Trades may be opened by the odds of the Judge alone.' if mandate.policy == 'seed' else ''}"
        )
        shown = [f"{terms}{replaced}", *[await self._describe_sleeve(mandate, sleeve) for sleeve in mandate.sleeves]]
        if not confirm("grant", "\n".join(shown)):
            raise Refused("The word was not typed; nothing was granted.")
        granted = await (await self._open()).grant_mandate(mandate)
        view = await self.mandate()
        return view.model_copy(update={"said": f"granted; every live order cites {granted.hash}"})

    async def _describe_sleeve(self, mandate: Mandate, sleeve: MandatedSleeve) -> str:
        head = (
            f"{sleeve.name}: {sleeve.share:.0%} of the account; nothing is added once it is {sleeve.max_drawdown:.0%} "
            "below its highest."
        )
        if sleeve.name in (DEBATE, LP_HEDGE) or self._with.describe_backtest is None:
            return head
        return f"{head} {await self._with.describe_backtest(sleeve.name, mandate.symbols)}"

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
        policy: str = "record",
        sleeves: Sequence[str] = (),
    ) -> Mandate:
        """`sleeves`: each as `trend:0.6:0.25`, its share and the largest fall."""
        now, span = self._with.now(), arguments.parse_span(lasts) * SECOND_MS
        if span > LONGEST_MANDATE:
            raise Refused(f"A mandate lasts 30 days at most, not {lasts}.")
        if stops not in ("venue", "watched"):
            raise UsageError(f"{plain_text(stops, 40)!r} says nothing of stops; write venue or watched.")
        if policy not in ("record", "seed"):
            raise UsageError(f"{plain_text(policy, 40)!r} is no policy; write record or seed.")
        return Mandate(
            symbols=tuple(dict.fromkeys(map(self._with.desk.parse_symbol, symbols))) or self._with.desk.markets,
            venues=tuple(dict.fromkeys(map(parse_venue, venues))) or self._with.venues(self._reader.account),
            max_margin_per_trade_usd=arguments.parse_amount(per_trade),
            max_margin_per_day_usd=arguments.parse_amount(per_day),
            max_daily_loss_usd=arguments.parse_amount(daily_loss),
            stops="watched" if stops == "watched" else "venue",
            judge_fallback=judge_fallback,
            policy="seed" if policy == "seed" else "record",
            sleeves=tuple(map(parse_mandated_sleeve, sleeves)),
            granted=now,
            expires=Millis(now + span),
        )

    async def revoke_mandate(self) -> MandateStateView:
        revoked = await (await self._open()).revoke_mandate()
        view = await self.mandate()
        return view.model_copy(update={"said": f"{revoked.hash} is revoked: no live order is placed under it"})

    # -- parts

    def _require_word(self, confirm: Confirm, word: str, what: str) -> None:
        if not confirm(word, what):
            raise Refused("The word was not typed; nothing was changed.")

    async def _write_by_hand(self, page: AccountPage, changes: Sequence[BookChange] = ()) -> AccountHistory:
        """All of them or none, behind the liquidations that the page found. The account after them."""
        events: list[TradeEvent] = [ManualChange(at=page.at, change=change) for change in page.liquidated]
        events += page.opened
        count = page.book.count - len(events)
        events += [ManualChange(at=page.at, change=change) for change in changes]
        book = await self._with.log.open_book(page.name, count)
        book.apply_all(events)
        await self._with.log.append(page.name, events, count)
        return book

    async def _open(self) -> OrderGate:
        return await self._with.open_gate(self._reader.name)

    async def _tell_action(self, gate: OrderGate, *said: str, named: bool = False, ask: bool = False) -> ActionView:
        """Learn from what was closed meanwhile, and say all of it. `named`: what was done says of which account. `ask`:
        the exchanges say what is left."""
        said = tuple(f"{line} ({self._reader.title})" for line in said) if named else said
        if self._with.learn is not None:
            learned = await self._with.learn(gate)
            said += (*map(describe_post_mortem, learned.post_mortems), *learned.notes)
        troubles = tuple(f"{exchange}: {why}" for exchange, why in gate.troubles.items())
        return self._build_action(await self._reader.look(ask=ask), said, troubles)

    def _build_action(self, page: AccountPage, said: tuple[str, ...], troubles: tuple[str, ...] = ()) -> ActionView:
        return ActionView(
            **{**self._head(page), "notes": (*page.notes, *troubles)},
            said=said,
            positions=position_views(page),
            orders=order_views(page.book),
        )

    async def _read_known_book(self) -> TradingBook | None:
        """None where the log cannot be read: a kill does not wait for it."""
        try:
            return await self._reader.read_book()
        except NotFound:
            raise
        except ZunoError:
            return None

    async def _paint(self, page: AccountPage, lines: Sequence[EquityLine], view: PerformanceView) -> bytes | None:
        painter = self._with.desk.painter
        if not lines or len(lines[0].points) < 2 or painter.media_type != "image/png":
            return None
        whose = (view.mode.upper(), page.name, view.origin)
        return await painter.paint_equity(describe_equity(lines, page.book.closed, *whose, synthetic=view.synthetic))

    def _head(self, page: AccountPage) -> dict[str, Any]:
        origin = self._with.desk.origin
        at_exchange = self._reader.mode != "paper"
        return {
            "synthetic": not at_exchange and origin.startswith("SYNTHETIC"),
            "origin": page.name if at_exchange else origin,
            "live": at_exchange or (self._with.desk.live(None) and not page.recorded),
            "account": page.name,
            "mode": self._reader.mode,
            "as_of": iso(page.at),
            "recorded": page.recorded,
            "marks": mark_views(page),
            "uncovered": uncovered_views(page),
            "protections": tuple(protection_view(lock, self._reader.short_name) for lock in page.locks),
            "exchanges": page.answers,
            "notes": page.notes,
        }


def _measure_equity(page: AccountPage) -> dict[str, Any]:
    equity, unknown = page.total_equity()
    return {"equity_usd": equity, "unknown": unknown, "sleeves": sleeve_views(page)}


def _measure_drawdown(lines: Sequence[EquityLine]) -> dict[str, Any]:
    """The one figure of a drawdown, wherever an account's is shown."""
    fields: dict[str, Any] = dict.fromkeys(("max_drawdown_usd", "max_drawdown_pct", "peak_at", "trough_at"))
    if (fall := find_max_drawdown(lines[0].points) if lines else None) is not None:
        fields |= {"max_drawdown_usd": float(fall.amount), "max_drawdown_pct": fall.percent}
        fields |= {"peak_at": iso(fall.peak_at), "trough_at": iso(fall.trough_at)}
    return {**fields, "lines": tuple(map(equity_line_view, lines))}


# -- what a person typed


def _parse_by_sleeve(by: str | None) -> str | None:
    if by not in (None, GroupBy.SLEEVE):
        raise UsageError(f"{plain_text(by or '', 40)!r} groups nothing here; write `--by {GroupBy.SLEEVE}`.")
    return by


def _describe_cash(exchange: Venue, cash: Decimal) -> str:
    return f"{cash.normalize():+,f} {exchange.currency} at {exchange}"


def _cut(items: Sequence[T], lines: int, before: str | None, name: Callable[[T], str]) -> Sequence[T]:
    """The last so many, newest first, of all or of those that stand before the one of this name."""
    if not 1 <= lines <= MOST_LINES:
        raise UsageError(f"Between 1 and {MOST_LINES:,} lines can be shown, not {lines}.")
    end = len(items)
    if before is not None:
        places = (place for place in range(end - 1, -1, -1) if name(items[place]) == before)
        if (end := next(places, -1)) < 0:
            raise UsageError(f"{plain_text(before, 64)!r} is not in this list; ask without it.")
        while end and name(items[end - 1]) == before:  # two postings of one event
            end -= 1
    return items[max(0, end - lines) : end][::-1]


def _find_loosened(trade: OpenTrade, stop: Decimal | None, target: Decimal | None) -> list[str]:
    sign = trade.side.sign
    levels = (("stop", trade.stop, stop, sign), ("target", trade.target, target, -sign))
    return [
        f"the {name} goes from {held.normalize():f} to {level.normalize():f}"
        for name, held, level, ahead in levels
        if held is not None and level is not None and ahead * (held - level) > 0
    ]
