"""An account brought in step with its venues.

`advance` takes their news and goes on with everything that is open, whatever happened before: a start, a tick of the
watch and a new ruling are the same path. What it does follows from the book and the venues' word alone, so that a
process may end anywhere and another go on. `VenueComparison` holds the book against the venues, at start and every few
minutes: positions, orders and cash. Nothing is guessed.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final

from zuno.kernel.accounts import short_name
from zuno.kernel.backoff import Backoff
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute import closes
from zuno.trading.execute.entries import end_entry, send_entry_again, work_entry
from zuno.trading.execute.fills import book_orders, find_order, send_exit_again, settle_funding, take_news
from zuno.trading.execute.intents import LEGS_SETTLE_MS
from zuno.trading.execute.protection import cancel_leftovers, close_by_rule, protect
from zuno.trading.execute.transfers import finish_moves
from zuno.trading.execute.venue_context import AccountContext, VenueContext
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from zuno.trading.model.orders import OUR_PREFIX, ZERO, ExchangeAnswer, Order, OrderStatus, Unbooked
from zuno.trading.model.trade_events import (
    Adopted,
    ExitReason,
    IntentEnded,
    IntentKind,
    MarginMoved,
    Protection,
    TradeEvent,
    account_mode,
)
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.book_state import Purpose, TrackedIntent
from zuno.trading.rules.execution_styles import round_to_step
from zuno.trading.rules.trading_book import TradingBook

MAX_PASSES: Final = 24
"""Rounds at one exchange in one go; each goes on from what the one before booked."""
CASH_TOLERANCE: Final = Decimal("0.0005")
"""By what share the venue's cash may differ and be adopted: roundings and rebates. More stops the desk."""
DRIFT_TOLERANCE: Final = Decimal("0.0025")
"""What such differences may add up to within a day, up or down, as a share of the equity. More stops the desk."""
MOST_NAMED: Final = 6
"""Earlier differences that a lock names."""
MOST_LOOKS: Final = 3
"""A difference counts when it is found twice, with the news taken in between; so often it is looked for."""
SETTLING_MS: Final = 2 * MINUTE_MS
"""After each full hour: funding that is paid then is listed a little later, and no balance is compared meanwhile."""
RECENT_MS: Final = DAY_MS
"""Orders that were planned since then are looked up once more where a position differs."""
RECONCILE_AGAIN: Final = Backoff(5 * SECOND_MS, 5 * MINUTE_MS)
"""Between two tries to compare the book with an exchange that did not answer."""
UNCOMPARED_MS: Final = 30 * MINUTE_MS
"""How long the lock of an exchange that could not be compared lasts; set anew while it cannot be."""
ANSWER_SECONDS: Final = 3.0
"""For so long a look waits: a kill may be behind it."""


async def advance(account: AccountContext, *, settle: bool = False, entries: bool = True) -> None:
    """Take the venues' news into the log and go on with everything that is open. What one exchange cannot or will not
    do keeps no other from its stops. `settle`: ask for funding whenever it was asked for last. Without `entries` none
    is placed this time."""
    await account.read_clock()
    if account.started is None:
        await account.open(account.event_time())
        account.started = account.now()
    unmoved: dict[Venue, str] = {}
    try:
        await finish_moves(account)
    except (Unavailable, Refused) as error:  # nobody's close waits for it
        places = (at for move in account.book.moves for at in (move.source, move.target))
        unmoved = dict.fromkeys(places, f"cash is not moved yet: {error}")
    again = True
    while again:
        known = {*account.book.open_intents}
        # Of a hedge what is bought comes first: its other leg is as much as that.
        for exchange in sorted(account.venues, key=lambda exchange: bool(account.hedges()) and not exchange.spot):
            failures: dict[str, None] = {}
            for sleeve in account.list_sleeves(exchange):
                venue = account.at(exchange, sleeve)
                await _advance_at(venue, settle=settle, placing=account.gate.entries and entries)
                failures |= dict.fromkeys([*venue.failures, *venue.memory.funding_troubles.values()])
            account.troubles.pop(exchange, None)
            if failures:
                account.troubles[exchange] = "; ".join(failures)
        for exchange, why in unmoved.items():
            account.troubles[exchange] = "; ".join(filter(None, (account.troubles.get(exchange), why)))
        _note_missing(account)
        await _end_intents(account)
        await _settle_hedges(account)
        # What is to become of one leg is to become of both at once.
        again = bool(account.hedges()) and not account.book.open_intents.keys() <= known


def _note_missing(account: AccountContext) -> None:
    """Exchanges where something is held or ordered, and that nothing can be done at here."""
    held = [exchange for exchange, _, _ in account.book.positions]
    ordered = [order.request.exchange for order in account.book.open_orders.values()]
    for exchange in dict.fromkeys([*account.troubles, *held, *ordered]):
        if exchange in account.venues:
            continue
        account.troubles.pop(exchange, None)
        if exchange in held or exchange in ordered:
            text = "positions are open" if exchange in held else "orders are open"
            account.troubles[exchange] = f"{text} there, and this desk has no access to it: nobody looks after them"


async def _advance_at(venue: VenueContext, *, settle: bool, placing: bool) -> None:
    """In each symbol what is held comes first. What fails for one keeps no other from being closed or protected."""
    read: list[Symbol] = []
    for _ in range(MAX_PASSES):
        before = venue.book.count
        read = [symbol for symbol in venue.symbols() if await _secure_symbol(venue, symbol)]
        for symbol in read:
            if not venue.is_unresponsive():
                await _work_entries(venue, symbol, placing=placing)
        if venue.book.count == before:
            break
    for symbol in venue.symbols():
        await venue.attempt(closes.undo_unbooked(venue, symbol))
    if not venue.is_unresponsive():
        await settle_funding(venue, read, anew=settle)


async def _secure_symbol(venue: VenueContext, symbol: Symbol) -> bool:
    """Take the news of a symbol, close what is to be closed, and protect what is held. Whether the news was taken:
    without it nothing new is opened; closing and protecting go on by what the book knows."""
    watched = venue.position(symbol)
    if watched is not None and (venue.nets(symbol) or not await venue.holds_stops(symbol)):
        # Nobody but the desk watches these levels: they do not wait for the news.
        await protect(venue, symbol)
        await closes.work_closes(venue, symbol)
    else:
        watched = None
    has_news = not venue.is_unresponsive() and await venue.attempt(take_news(venue, symbol))
    await venue.attempt(closes.undo_given_up(venue, symbol))
    await _resolve_planned(venue, symbol, "exit")
    await closes.work_closes(venue, symbol)
    await closes.work_cut(venue, symbol)
    if not venue.is_closing(symbol):
        await _resolve_planned(venue, symbol, "stop", "target")
        if watched is None or venue.position(symbol) is not watched:
            await protect(venue, symbol)
    if not venue.is_unresponsive():
        await cancel_leftovers(venue, symbol)
    return has_news


async def _resolve_planned(venue: VenueContext, symbol: Symbol, *purposes: Purpose) -> None:
    """Orders that a process planned and may not have sent: what the venue has not is placed if it is still wanted."""
    for order in venue.open_orders(symbol):
        if order.status is OrderStatus.PLANNED and order.purpose in purposes:
            await venue.attempt(send_exit_again(venue, order))


async def _work_entries(venue: VenueContext, symbol: Symbol, *, placing: bool) -> None:
    """What an entry has filled is protected before anything else is asked."""
    for order in venue.open_orders(symbol):
        if order.status is OrderStatus.PLANNED and order.purpose == "entry":
            await venue.attempt(send_entry_again(venue, order, placing=placing))
            await protect(venue, symbol)
    for tracked in venue.book.list_intents(IntentKind.OPEN, symbol, venue.sleeve):
        if not venue.is_closing(symbol):
            await venue.attempt(work_entry(venue, tracked, placing=placing))
            await protect(venue, symbol)


async def _end_intents(account: AccountContext) -> None:
    """Entries whose every leg is worked to its end, and closes of what is held no more."""
    events: list[TradeEvent] = []
    # Closes first: whether one is over hangs on the legs of the entries it ended.
    for tracked in sorted(account.book.open_intents.values(), key=lambda tracked: tracked.intent.kind):
        intent, at = tracked.intent, account.event_time()
        if intent.kind is IntentKind.CLOSE:
            if closes.is_closed(account, intent.symbol, intent.sleeve):
                events.append(IntentEnded(at=at, intent=intent.id, state="done"))
            elif (why := closes.why_not_closed(account, tracked)) is not None:
                account.refused[intent.sleeve, intent.symbol] = at
                events.append(IntentEnded(at=at, intent=intent.id, state="refused", reason=why))
        elif intent.hedge_lot is None and intent.kind is IntentKind.CUT:
            if closes.is_closed_leg(account, tracked) or closes.is_worked(account, tracked):
                events.append(end_entry(account, tracked))
        elif intent.kind is IntentKind.OPEN and closes.is_worked(account, tracked):
            events.append(end_entry(account, tracked))
    await account.write(events)


async def _settle_hedges(account: AccountContext) -> None:
    """Both legs are to go where they do not match, or were not cut alike, in time. An order of which nobody knows
    whether it was filled is waited for."""
    for tracked in account.book.list_intents(IntentKind.CUT):
        if tracked.intent.hedge_lot is not None:
            await _finish_cut(account, tracked)
    for hedge in account.book.list_hedges():
        symbol, sleeve = hedge.symbol, hedge.sleeve
        cuts, entries = (account.book.list_intents(kind, symbol, sleeve) for kind in (IntentKind.CUT, IntentKind.OPEN))
        settling = any(account.now() - tracked.stored < LEGS_SETTLE_MS for tracked in (*cuts, *entries))
        unknown = any(order.status is OrderStatus.PLANNED for order in account.book.list_ordered(sleeve, symbol))
        if settling or unknown or (not cuts and account.book.is_matched(hedge)):
            continue
        for leg in account.book.legs_of(hedge):
            if leg.exchange in account.venues and not account.is_closing(symbol, sleeve):
                await close_by_rule(account.at(leg.exchange, sleeve), leg, ExitReason.UNDONE)


async def _finish_cut(account: AccountContext, tracked: TrackedIntent) -> None:
    """Once both legs are cut, what the first brought in becomes margin of the other; where that cannot be, both go.
    Money is moved under the intent's own id, and before anything else is said of the cut. None is moved where a target
    asked for the cut."""
    intent, at = tracked.intent, account.event_time()
    (bought, sold), symbol, funds = intent.legs, intent.symbol, account.gate.funds
    if any(left > 0 for left in account.book.find_left(tracked).values()):
        if closes.is_closed_leg(account, tracked):
            await account.write([IntentEnded(at=at, intent=intent.id, state="undone", reason="the symbol is closed")])
        return
    if intent.reason is not None:
        await account.write([IntentEnded(at=at, intent=intent.id, state="done")])
        return
    sales = {id for id in tracked.orders if account.book.orders[id].request.exchange == bought.exchange}
    amount = round_to_step(account.book.sum_proceeds(sales), Decimal(1).scaleb(-sold.exchange.cash_decimals))
    try:
        if funds is None or amount <= 0:
            raise Refused("no money can be moved here")
        amount = await funds.add_margin(intent.id, bought.exchange, sold.exchange, symbol, amount)
    except Refused as error:
        # The close first: a process that ended in between would cut once more.
        await closes.store_close(account, symbol, ExitReason.UNDONE, intent.decision, sleeve=intent.sleeve)
        ended = IntentEnded(at=account.event_time(), intent=intent.id, state="refused", reason=str(error)[:600])
        await account.write([ended])
    except ZunoError as error:
        for leg in intent.legs:
            account.troubles[leg.exchange] = f"whether {amount} became margin is not known: {error}"
    else:
        source, target = bought.exchange, sold.exchange
        moved = MarginMoved(at=at, key=intent.id, source=source, target=target, symbol=symbol, amount=amount)
        await account.write([moved, IntentEnded(at=at, intent=intent.id, state="done")])


# -- comparing


async def reconcile_venue(venue: VenueContext) -> list[str]:
    """What was found different, and what was done about it. `Unavailable` where the venue's news could not be taken,
    it does not answer, or what differs is another thing at every look: nothing can be said of it then."""
    _check_news(venue)
    report: list[str] = []
    differing, before = await find_differing_positions(venue.port, venue.book), dict[Symbol, Unbooked]()
    for _ in range(MOST_LOOKS):
        if differing == before:
            break
        # Something may have been filled since; or an order that was given up was filled after all.
        await _advance_all(venue)
        for symbol in differing:
            report += await _book_late_fills(venue, symbol)
        differing, before = await find_differing_positions(venue.port, venue.book), differing
    if differing and differing != before:
        raise Unavailable(f"{'; '.join(map(str, differing.values()))}: it is still moving")
    for symbol, difference in differing.items():
        await venue.account.lock(symbol, str(difference))
        report.append(str(difference))
    report += await _reconcile_orders(venue, differing)
    return [*report, *await _reconcile_cash(venue)]


async def find_cash_difference(venue: VenueContext) -> Decimal:
    """By how much the venue's balance is above the book's. `Refused` where positions differ too."""
    _check_news(venue)
    differing = await find_differing_positions(venue.port, venue.book)
    if differing:
        raise Refused(f"{'; '.join(map(str, differing.values()))}: settle that first, then the cash.")
    difference = await _find_difference(venue)
    if difference:
        _check_settled(venue)
    return difference


def _check_settled(venue: VenueContext) -> None:
    """Called where a difference is about to be used, however long it took to find. `Unavailable` while funding of the
    hour may be paid and not listed."""
    now, exchange = venue.account.event_time(), venue.exchange
    hour = now // HOUR_MS * HOUR_MS
    if venue.port.simulated or not venue.exchange.funding_hours or now - hour >= SETTLING_MS:
        return
    opened = [trade.opened for trade in venue.book.trades_at(exchange)]
    opened += [trade.opened for trade in venue.book.closed if trade.exchange == exchange and trade.closed >= hour]
    if any(moment <= hour for moment in opened):
        raise Unavailable(f"{exchange} may still be settling the hour's funding; its balance is compared after that")


def _check_news(venue: VenueContext) -> None:
    if (trouble := venue.account.troubles.get(venue.exchange)) is not None:
        raise Unavailable(trouble)


async def _advance_all(venue: VenueContext) -> None:
    await advance(venue.account, settle=True, entries=False)
    _check_news(venue)


async def find_differing_positions(port: OrderVenue, book: TradingBook) -> dict[Symbol, Unbooked]:
    """Once fills are booked, what is held must be the same."""
    there = {position.symbol: position.quantity * position.side.sign for position in await port.positions()}
    ours = {**book.dust.get(port.exchange, {})}
    for (exchange, symbol, _), trade in book.positions.items():
        if exchange == port.exchange:
            ours[symbol] = ours.get(symbol, ZERO) + trade.signed
    return {
        symbol: Unbooked(exchange=port.exchange, symbol=symbol, quantity=theirs, booked=booked)
        for symbol in sorted(there.keys() | ours.keys())
        if (theirs := there.get(symbol, ZERO)) != (booked := ours.get(symbol, ZERO))
    }


async def _book_late_fills(venue: VenueContext, symbol: Symbol) -> list[str]:
    """Fills of our own orders that the book has as over."""
    report: list[str] = []
    since = venue.book.newest - RECENT_MS
    for known in list(reversed(venue.book.orders.values())):
        request = known.request
        if known.planned < since:
            break
        if (request.exchange, request.symbol) != (venue.exchange, symbol) or not known.status.final or not known.left:
            continue
        order = await find_order(venue, known)
        if order is not None and order.filled > known.booked:
            await book_orders(venue, symbol, [order])
            report.append(f"booked what {request.client_id} was filled with after it was given up")
    return report


async def _reconcile_orders(venue: VenueContext, differing: dict[Symbol, Unbooked]) -> list[str]:
    """Orders at the venue that the book does not know, or has as over: our own are cancelled, but none that may protect
    a position nobody understands; a stranger's stops the symbol."""
    report, account = list[str](), venue.account
    standing = await venue.port.open_orders()
    await account.refresh()  # another process may have planned and sent one meanwhile
    for order in find_unbooked_orders(standing, venue.book):
        request = order.request
        known = venue.book.orders.get(request.client_id)
        if not request.client_id.startswith(OUR_PREFIX):
            text = f"an order at {venue.exchange} is not of this desk: {request.client_id}"
            await account.lock(request.symbol, text)
        elif request.reduce_only and request.symbol in differing:
            text = f"left the order {request.client_id} standing: it may protect what {venue.exchange} holds"
        else:
            cancelled = await venue.port.cancel(request.symbol, request.client_id, request.type)
            standing_as = "does not know" if known is None else "has as over"
            text = f"cancelled the order {request.client_id}, which the book {standing_as}"
            await account.write([Adopted(at=account.event_time(), exchange=venue.exchange, what=text)])
            if known is not None:
                await book_orders(venue, request.symbol, [cancelled])
        report.append(text)
    return report


def find_unbooked_orders(standing: Iterable[Order], book: TradingBook) -> list[Order]:
    return [order for order in standing if order.request.client_id not in book.open_orders]


async def _reconcile_cash(venue: VenueContext) -> list[str]:
    """Of venues with one wallet the first stands for all."""
    account, exchange = venue.account, venue.exchange
    currency, mode, sharing = exchange.currency, account_mode(account.name), account.list_sharing(exchange)
    if exchange is not sharing[0]:
        if exchange in venue.book.ledger.balances:
            return []
        text = f"{exchange} has the cash of {sharing[0]}: they are one wallet"
        await account.write([Adopted(at=account.event_time(), exchange=exchange, what=text)])
        return [text]
    difference, before = await _find_difference(venue), ZERO
    for _ in range(MOST_LOOKS):
        if difference == before:
            break
        await _advance_all(venue)  # something may have been filled or paid since
        difference, before = await _find_difference(venue), difference
    if not difference:
        return []
    if difference != before:
        raise Unavailable(f"the balance of {exchange} is still moving")
    ours = _expect_balance(venue)
    total = ours + difference
    drift = mode == "paper" or any(map(venue.book.ledger.debits.__getitem__, sharing))
    text = f"the account begins with the {total} {currency} at {exchange}"
    if drift:
        _check_settled(venue)
        if (why := _why_too_much(venue, difference, ours)) is not None:
            if mode != "paper":
                command = f"`zuno trade adopt --account {short_name(account.name)}`"
                why += f"; a deposit or withdrawal of yours is taken over by {command}"
            await account.lock(None, why)
            return [why]
        text = f"adopted {difference} {currency} that the balance of {exchange} differs by"
    await account.write([Adopted(at=account.event_time(), exchange=exchange, what=text, cash=difference, drift=drift)])
    return [text]


def _why_too_much(venue: VenueContext, difference: Decimal, ours: Decimal) -> str | None:
    """Why a difference of cash is not adopted: by itself, or with those of the last day, up or down. None: it is."""
    account, exchange = venue.account, venue.exchange
    why = f"{exchange} has {ours + difference} {exchange.currency}, the book {ours}"
    if abs(difference) > CASH_TOLERANCE * max(abs(ours), Decimal(1)):
        return why
    sharing, since = account.list_sharing(exchange), account.event_time() - DAY_MS
    earlier = [drift for drift in venue.book.drifts if drift.exchange in sharing and drift.at > since]
    moved = sum((abs(drift.cash) for drift in earlier), abs(difference))
    equity = max(abs(ours), sum(map(venue.book.ledger.assets, sharing), ZERO), Decimal(1))
    if moved <= DRIFT_TOLERANCE * equity:
        return None
    named = ", ".join(f"{drift.cash} at {iso(drift.at)}" for drift in earlier[-MOST_NAMED:])
    return f"{why}; with {len(earlier)} adopted within a day (last {named}) it is {moved}, over 0.25 % of the equity"


async def _find_difference(venue: VenueContext) -> Decimal:
    return (await venue.port.balance()).total - _expect_balance(venue)


def _expect_balance(venue: VenueContext) -> Decimal:
    """By the book: of all venues with the same wallet together, but on paper, where each has one of its own. A venue
    that a paper account has not opened yet has what it will open with; an account with money opens with nothing."""
    account, exchange, on_paper = venue.account, venue.exchange, account_mode(venue.account.name) == "paper"
    if not account.book.opened or (on_paper and exchange not in account.book.venues):
        return account.usual_cash(exchange) if on_paper else ZERO
    return sum(map(account.book.venue_balance, account.list_sharing(exchange)), ZERO)


async def ask_exchange(venue: OrderVenue, book: TradingBook, now: Callable[[], Millis]) -> ExchangeAnswer:
    exchange, asked = venue.exchange, iso(now())
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            balance = await venue.balance()
            unbooked = list((await find_differing_positions(venue, book)).values())
            orders = find_unbooked_orders(await venue.open_orders(), book)
    except (ZunoError, TimeoutError) as error:
        why = str(error) or f"no answer within {ANSWER_SECONDS:g} s"
        return ExchangeAnswer(exchange=exchange, asked_at=asked, unknown=why)
    for request, left in ((order.request, order.left * order.request.side.sign) for order in orders):
        unbooked.append(Unbooked(exchange=exchange, symbol=request.symbol, order=request.client_id, quantity=left))
    total, free = float(balance.total), float(balance.available)
    return ExchangeAnswer(exchange=exchange, asked_at=asked, total=total, free=free, unbooked=tuple(unbooked))


class VenueComparison:
    """Compares at the start, every few minutes, and again after an outage."""

    def __init__(self, account: AccountContext) -> None:
        self._account = account
        self._uncompared: dict[Venue, str] = {}
        """Exchanges that reconciliation could not ask, and why: asked again from `_compare_at`."""
        self._compare_at, self._failures = Millis(0), 0
        self._compared: dict[Venue, Millis] = {}
        """When each exchange was last found comparable, or this process began to look."""

    async def compare_if_due(self) -> None:
        """What could not be compared is asked again ever more seldom; what could be, every few minutes: somebody may
        trade there by hand. An outage in between locks nothing until it has lasted."""
        now, every = self._account.now(), self._account.gate.compare_every
        if self._uncompared:
            if now >= self._compare_at:
                await self.compare(tuple(self._uncompared))
        elif every is not None:
            due = [
                exchange
                for exchange in self._account.venues
                if now - self._compared.setdefault(exchange, now) >= every and now >= self._compare_at
            ]
            if due:
                self._compare_at = Millis(now + MINUTE_MS)
                await advance(self._account, settle=True, entries=False)
                await self.compare(due, patience=UNCOMPARED_MS)

    async def compare(self, exchanges: Sequence[Venue], patience: int = 0) -> list[str]:
        """Hold the book against exchanges. One that does not answer, for longer than `patience` since it was compared,
        locks the desk until it does; the lock has an end of its own, should nobody ask again."""
        report, unknown, account = list[str](), False, self._account
        for exchange in exchanges:
            try:
                report += await reconcile_venue(account.at(exchange))
                self._uncompared.pop(exchange, None)
                self._compared[exchange] = account.now()
            except Broken:
                raise
            except ZunoError as error:
                if patience and account.now() - self._compared.get(exchange, account.now()) < patience:
                    unknown = True
                    continue
                self._uncompared[exchange] = str(error)
                report.append(f"{exchange} cannot be compared with the book yet: {error}")
        if self._uncompared:
            self._failures += 1
            self._compare_at = Millis(account.now() + round(RECONCILE_AGAIN.delay(self._failures)))
        else:
            self._failures = 0
        if self._uncompared or not unknown:  # else no lock is set, and none that stands is lifted
            await self._lock_uncompared()
        return report

    async def _lock_uncompared(self) -> None:
        """A difference that somebody has to look at locks for longer, and stays."""
        account = self._account
        known = account.book.locks.get((Protection.RECONCILIATION, None))
        if known is not None and known.until is None:
            return
        if not self._uncompared:
            if known is not None:
                await account.lift(Protection.RECONCILIATION, None, "the exchanges answered")
            return
        if known is None or known.until is None or known.until < self._compare_at + UNCOMPARED_MS // 2:
            why = "; ".join(f"{exchange} is not compared yet: {why}" for exchange, why in self._uncompared.items())
            until = Millis(account.event_time() + UNCOMPARED_MS)
            await account.write_lock(Protection.RECONCILIATION, why, until=until)

    async def find_cash_differences(self) -> dict[Venue, Decimal]:
        account = self._account
        if not account.venues:
            raise Unavailable("No exchange of this account can be asked here: its keys, or a mandate, are missing.")
        await advance(account, settle=True, entries=False)
        first = {account.list_sharing(exchange)[0]: None for exchange in account.venues}
        differences = {exchange: await find_cash_difference(account.at(exchange)) for exchange in first}
        return {exchange: cash for exchange, cash in differences.items() if cash}
