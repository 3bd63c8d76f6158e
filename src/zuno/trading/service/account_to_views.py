"""What is shown of an account: its page as views."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import RestingOrder
from zuno.trading.model.known import derive
from zuno.trading.model.market import HOUR_MS, SECOND_MS
from zuno.trading.model.orders import ZERO, Fill, OrderStatus, OrderType, TimeInForce, opening_side, to_decimal
from zuno.trading.model.sleeves import DEBATE, TWO_LEGGED
from zuno.trading.model.trade_events import MandateGranted, TradeIntent, TradeSummary
from zuno.trading.rules import performance
from zuno.trading.rules.book_state import ASSETS, RESULTS, LedgerAccount, OpenTrade, TrackedOrder
from zuno.trading.rules.equity_lines import EquityLine
from zuno.trading.rules.margin import liquidation_price
from zuno.trading.rules.ruling import MAX_ACCOUNT_LEVERAGE
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service import account_view, ledger_view
from zuno.trading.service.account_page import AccountPage
from zuno.trading.service.profit_view import EquityLineView, ProfitRowView


def risk_view(page: AccountPage) -> account_view.RiskBookView:
    """Positions, pending entries and LP inventory by symbol: signed for the delta, added up for the gross exposure, in
    which the legs of a sleeve are netted and sleeves are not."""
    rows, marks = [], page.usd_marks
    delta_usd: Decimal | None = ZERO
    gross_usd: Decimal | None = ZERO
    for symbol in page.symbols:
        by_sleeve = [page.book.sum_held(symbol, sleeve) for sleeve in page.book.sleeves]
        held, gross = sum(by_sleeve, ZERO), sum(map(abs, by_sleeve), ZERO)
        waiting = [order for order in page.book.to_pending() if order.symbol is symbol and not order.reduce_only]
        pending = sum((order.side.sign * to_decimal(order.quantity) for order in waiting), ZERO)
        lp = page.lp.get(symbol, ZERO)
        size = gross + sum((to_decimal(order.quantity) for order in waiting), ZERO) + lp
        if not size:
            continue
        mark = marks.get(symbol)
        delta = held + pending + lp
        rows.append(
            account_view.ExposureView(
                symbol=symbol,
                positions=held,
                pending=pending,
                lp=lp,
                delta=delta,
                delta_usd=None if mark is None else delta * mark,
                gross_usd=None if mark is None else size * mark,
            )
        )
        delta_usd = None if mark is None or delta_usd is None else delta_usd + delta * mark
        gross_usd = None if mark is None or gross_usd is None else gross_usd + size * mark
    leverage, equity = None, page.total_equity()[0]
    if gross_usd is not None and equity is not None:
        leverage = ZERO if not gross_usd else gross_usd / equity if equity > 0 else None
    return account_view.RiskBookView(
        rows=tuple(rows),
        delta_usd=delta_usd,
        gross_usd=gross_usd,
        equity_usd=equity,
        leverage=leverage,
        max_leverage=MAX_ACCOUNT_LEVERAGE,
        lp_simulated=page.lp_simulated,
    )


def profit_row_view(name: str, found: performance.Performance) -> ProfitRowView:
    held = None if found.mean_duration_ms is None else found.mean_duration_ms / HOUR_MS
    return derive(ProfitRowView, found, name=name, expectancy_usd=found.expectancy, mean_duration_hours=held)


def equity_line_view(line: EquityLine) -> EquityLineView:
    fall = performance.find_max_drawdown(line.points)
    depth = None if fall is None else fall.percent
    return derive(EquityLineView, line, max_drawdown_pct=depth)


def mandate_view(granted: MandateGranted | None, now: Millis) -> account_view.MandateView | None:
    if granted is None:
        return None
    sleeves = tuple(derive(account_view.MandatedSleeveView, sleeve) for sleeve in granted.mandate.sleeves)
    active = granted.mandate.expires > now
    return derive(account_view.MandateView, granted.mandate, hash=granted.hash, active=active, sleeves=sleeves)


def mark_views(page: AccountPage) -> tuple[account_view.MarkView, ...]:
    """Of what is held, and what the risk book counts in dollars."""
    held = {(trade.exchange, trade.symbol) for trade in page.book.trades.values()}
    shown = [(exchange, symbol) for exchange in page.book.venues for symbol in page.symbols]
    wanted = [place for place in shown if place in held or place[0] is place[1].venue]
    return tuple(view for place in wanted if (view := _mark_view(page, *place)) is not None)


def _mark_view(page: AccountPage, exchange: Venue, symbol: Symbol) -> account_view.MarkView | None:
    price = page.mark(symbol, exchange)
    if price is None:
        return None
    stored = None if (exchange, symbol) in page.marks else page.prices.find_source(symbol, exchange)
    source, age = (f"{exchange}, asked for this answer", 0) if stored is None else stored
    as_of = iso(Millis(page.at - age * SECOND_MS))
    return account_view.MarkView(
        symbol=symbol, exchange=exchange, price=price, source=source, as_of=as_of, age_seconds=age
    )


def uncovered_views(page: AccountPage) -> tuple[account_view.UncoveredView, ...]:
    """Return what of positions no stop at the exchange covers, where sleeves share a perpetual that holds stops."""
    views, book = list[account_view.UncoveredView](), page.book
    for trade in book.positions.values():
        beside = [] if trade.exchange.spot else book.positions_at(trade.exchange, trade.symbol)
        if trade.stop is None or trade.sleeve in TWO_LEGGED or len(beside) < 2 or not trade.exchange.holds_stops:
            continue
        orders = (order for order in book.list_ordered(trade.sleeve, trade.symbol) if order.purpose == "stop")
        standing = sum((order.left for order in orders if order.request.exchange is trade.exchange), ZERO)
        left = trade.quantity - min(standing, book.find_covered(trade))
        mark = page.mark(trade.symbol, trade.exchange)
        if left:
            views.append(
                derive(
                    account_view.UncoveredView,
                    trade,
                    quantity=left,
                    value=None if mark is None else left * mark,
                    currency=trade.exchange.currency,
                )
            )
    return tuple(views)


def position_views(page: AccountPage) -> tuple[account_view.TradePositionView, ...]:
    """Legs that hedge each other are one."""
    hedged = [_hedge_view(page, hedge) for hedge in page.book.list_hedges()]
    apart = (trade for trade in page.book.trades.values() if page.book.find_hedge(trade) is None)
    return (*hedged, *(_position_view(page, trade) for trade in apart))


def _hedge_view(page: AccountPage, hedge: TradeIntent) -> account_view.TradePositionView:
    """Under the id of its first leg: whatever ends that ends both."""
    trades = page.book.legs_of(hedge)
    legs = [_position_view(page, trade) for trade in trades]
    unrealised = None if any(leg.unrealised is None for leg in legs) else sum(leg.unrealised or 0.0 for leg in legs)
    short = next((leg for leg in legs if leg.liquidation is not None and leg.mark is not None), None)
    whole = account_view.HedgeView(
        legs=tuple(derive(account_view.HedgeLegView, leg) for leg in legs),
        net=sum(float(trade.side.sign * trade.quantity) for trade in trades),
        basis_pnl=None if unrealised is None else unrealised + sum(float(trade.gross) for trade in trades),
        distance_pct=None if short is None else ((short.liquidation or 0.0) / (short.mark or 1.0) - 1) * 100,
    )
    joined = {name: sum(getattr(leg, name) for leg in legs) for name in ("margin", "fees", "funding")}
    joined |= {"exchange": " / ".join(leg.exchange for leg in legs), "side": "hedged", "unrealised": unrealised}
    joined |= {"gain_pct": None, "decision": None, "orders": tuple(order for leg in legs for order in leg.orders)}
    liquidation = None if short is None else short.liquidation
    return legs[0].model_copy(update={**joined, "liquidation": liquidation, "hedge": whole})


def _position_view(page: AccountPage, trade: OpenTrade) -> account_view.TradePositionView:
    mark = page.mark(trade.symbol, trade.exchange)
    gain = None if mark is None else trade.unrealised_pnl(mark)
    bracket = trade.sleeve == DEBATE  # a disaster stop is no measure of risk
    risk = None if trade.first_stop is None or not bracket else trade.quantity * abs(trade.entry - trade.first_stop)
    listed = () if trade.manual else page.book.list_ordered(trade.sleeve, trade.symbol)
    orders = [order for order in listed if order.request.exchange is trade.exchange]
    protective = {order.purpose: order.request.client_id for order in orders if order.purpose in ("stop", "target")}
    return derive(
        account_view.TradePositionView,
        trade,
        entry=trade.entry if trade.holding is None else trade.holding.entry,
        currency=trade.exchange.currency,
        mark=mark,
        unrealised=gain,
        gain_pct=None if gain is None else gain / trade.cost * 100,
        r=None if gain is None or not risk else gain / risk,
        hedge=None,
        liquidation=None
        if trade.exchange.spot
        else liquidation_price(trade.side, trade.quantity, trade.cost, trade.margin),
        stop_order=protective.get("stop"),
        target_order=protective.get("target"),
        orders=tuple(order.request.client_id for order in orders),
    )


def order_views(book: TradingBook, *, everything: bool = False) -> tuple[account_view.TradeOrderView, ...]:
    """Those that are open, or all there ever were, the newest first; then those that were entered by hand."""
    tracked = book.orders if everything else book.open_orders
    orders = [_order_view(book, order) for order in reversed(tracked.values())]
    return (*orders, *map(_resting_view, book.resting.values()))


def _order_view(book: TradingBook, order: TrackedOrder) -> account_view.TradeOrderView:
    request = order.request
    intent = book.intents.get(order.intent)
    return derive(
        account_view.TradeOrderView,
        request,
        order,
        id=request.client_id,
        filled=max(order.filled, order.booked),
        price=request.trigger if request.price is None else request.price,
        currency=request.exchange.currency,
        sleeve=book.sleeve_of(order),
        intent=order.intent or None,
        decision=None if intent is None else intent.intent.decision,
    )


def _resting_view(order: RestingOrder) -> account_view.TradeOrderView:
    return derive(
        account_view.TradeOrderView,
        order,
        venue_id=None,
        side=opening_side(order.side),
        type=OrderType.LIMIT,
        purpose="entry",
        filled=0.0,
        average_price=None,
        currency=order.exchange.currency,
        time_in_force=TimeInForce.GTC,
        status=OrderStatus.OPEN,
        sleeve=DEBATE,
        planned=order.placed,
        expires=None,
        intent=None,
        decision=None,
        reason="by hand",
    )


def sleeve_views(page: AccountPage) -> tuple[account_view.SleeveView, ...]:
    book, rates, marks = page.book, page.rates, page.usd_marks
    whole, step = page.total_equity()[0], performance.current_step(page.book, page.at)
    ledgers = sleeve_ledger_views(book)
    views = []
    for sleeve in book.sleeves:
        at_cost = realised = ZERO
        for currency in dict.fromkeys(venue.currency for venue in book.venues):
            if (rate := rates.get(currency)) is not None:  # without one it counts nothing
                balances = book.sleeve_balances(sleeve, currency)
                bound = balances[LedgerAccount.MARGIN] + balances[LedgerAccount.INVENTORY]
                at_cost += (book.sleeve_cash(sleeve, currency) + bound) / rate
                realised -= sum((balances[account] for account in RESULTS), ZERO) / rate
        equity = performance.equity_usd(step, marks, rates, (sleeve,))
        views.append(
            account_view.SleeveView(
                name=sleeve,
                share=book.shares.of(sleeve),
                weight=None if equity is None or not whole or whole <= 0 else float(equity / whole),
                capital_usd=at_cost - realised,
                realised_usd=realised,
                open_usd=None if equity is None else float(equity - at_cost),
                equity_usd=equity,
                balanced=all(ledger.balanced for ledger in ledgers if ledger.sleeve == sleeve),
                holds=tuple(
                    account_view.SleeveHoldingView(symbol=symbol, quantity=held)
                    for symbol in page.symbols
                    if (held := book.sum_held(symbol, sleeve))
                ),
            )
        )
    return tuple(views)


def exchange_balance_view(page: AccountPage, exchange: Venue) -> account_view.ExchangeBalanceView:
    book = page.book
    marks = page.marks_at(exchange)
    pnl = None if marks is None else [trade.unrealised_pnl(marks[trade.symbol]) for trade in book.trades_at(exchange)]
    return account_view.ExchangeBalanceView(
        exchange=exchange,
        currency=exchange.currency,
        cash=book.cash(exchange),
        margin=book.margin(exchange),
        pending_margin=book.pending_margin(exchange),
        inventory=book.ledger.balance(exchange, LedgerAccount.INVENTORY),
        unrealised=None if pnl is None else float(sum(pnl, ZERO)),
        equity=None if marks is None else float(book.equity(exchange, marks)),
        free=None if marks is None else float(book.free(exchange, marks)),
    )


def ledger_balances_view(book: TradingBook, exchange: Venue) -> ledger_view.LedgerBalancesView:
    ledger = book.ledger
    balances = {account: ledger.balance(exchange, account) for account in LedgerAccount}
    fields = _balance_fields(balances, ledger.debits[exchange], ledger.credits[exchange])
    return ledger_view.LedgerBalancesView(exchange=exchange, currency=exchange.currency, **fields)


def sleeve_ledger_views(book: TradingBook) -> tuple[ledger_view.SleeveLedgerView, ...]:
    currencies = dict.fromkeys(venue.currency for venue in book.venues)
    views = []
    for sleeve in book.sleeves:
        for currency in currencies:
            balances = book.sleeve_balances(sleeve, currency)
            debits = sum((amount for amount in balances.values() if amount > 0), ZERO)
            credits = -sum((amount for amount in balances.values() if amount < 0), ZERO)
            fields = _balance_fields(balances, debits, credits)
            views.append(ledger_view.SleeveLedgerView(sleeve=sleeve, currency=currency, **fields))
    return tuple(views)


def _balance_fields(balances: Mapping[LedgerAccount, Decimal], debits: Decimal, credits: Decimal) -> dict[str, Any]:
    return {
        "balances": {account.value: _exact(amount) for account, amount in balances.items()},
        "debits": _exact(debits),
        "credits": _exact(credits),
        "assets": _exact(sum((balances[account] for account in ASSETS), ZERO)),
        "balanced": debits == credits and sum(balances.values(), ZERO) == 0,
    }


def _exact(amount: Decimal) -> str:
    return f"{amount.normalize():f}" if amount else "0"


def fill_view(fill: Fill) -> account_view.FillView:
    return derive(account_view.FillView, fill, order=fill.client_id, currency=fill.exchange.currency)


def closed_trade_view(trade: TradeSummary) -> account_view.ClosedTradeView:
    return derive(
        account_view.ClosedTradeView,
        trade,
        id=trade.trade,
        currency=trade.exchange.currency,
        r=performance.risk_multiple(trade),
        exit_reason=trade.reason,
        duration_hours=(trade.closed - trade.opened) / HOUR_MS,
    )


def posting_view(posting: performance.Posting) -> ledger_view.PostingView:
    lines = tuple({"account": account, "amount": _exact(amount)} for account, amount in posting.lines)
    return derive(ledger_view.PostingView, posting, currency=posting.exchange.currency, lines=lines)
