"""The book held against a venue, at start and every few minutes: positions, orders and cash. Nothing is guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final

from zuno.kernel.backoff import Backoff
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken, Refused, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.order_worker import OrderWorker
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from zuno.trading.model.orders import OUR_PREFIX, SPOT, ZERO, ExchangeAnswer, Order, Unbooked
from zuno.trading.model.trade_events import Adopted, LockSet, Protection, account_mode
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.trading_book import TradingBook

CASH_TOLERANCE: Final = Decimal("0.0005")
"""Share of the balance by which the venue's cash may differ and be adopted: roundings and rebates. More stops the
desk."""
MOST_LOOKS: Final = 3
"""A difference counts when it is found twice, with the news taken in between; so often it is looked for."""
SETTLING_MS: Final = 2 * MINUTE_MS
"""After each full hour: funding that is paid then is listed a little later, and no balance is compared meanwhile."""
RECENT_MS: Final = DAY_MS
"""Orders that were planned since then are looked up once more where a position differs."""


async def reconcile_venue(venue: OrderVenue, state: GateState, worker: OrderWorker) -> list[str]:
    """What was found different, and what was done about it. `Unavailable` where the venue's news could not be taken,
    it does not answer, or what differs is another thing at every look: nothing can be said of it then."""
    _check_news(venue, worker)
    said: list[str] = []
    differing, before = await find_differing_positions(venue, state.book), dict[Symbol, Unbooked]()
    for _ in range(MOST_LOOKS):
        if differing == before:
            break
        # Something may have been filled since; or an order that was given up was filled after all.
        await _take_news(venue, worker)
        for symbol in differing:
            said += await _book_late_fills(venue, state, worker, symbol)
        differing, before = await find_differing_positions(venue, state.book), differing
    if differing and differing != before:
        raise Unavailable(f"{'; '.join(map(str, differing.values()))}: it is still moving")
    for symbol, difference in differing.items():
        await state.lock(symbol, str(difference))
        said.append(str(difference))
    said += await _reconcile_orders(venue, state, worker, differing)
    return [*said, *await _reconcile_cash(venue, state, worker)]


async def find_cash_difference(venue: OrderVenue, state: GateState, worker: OrderWorker) -> Decimal:
    """By how much the venue's balance is above the book's. `Refused` where positions differ too: their cash is not
    the owner's to adopt."""
    _check_news(venue, worker)
    differing = await find_differing_positions(venue, state.book)
    if differing:
        raise Refused(f"{'; '.join(map(str, differing.values()))}: settle that first, then the cash.")
    difference = await _find_difference(venue, state)
    if difference:
        _check_settled(venue, state.book, state.event_time())
    return difference


def _check_settled(venue: OrderVenue, book: TradingBook, now: Millis) -> None:
    """Called where a difference is about to be used, however long it took to find. `Unavailable` while funding of the
    hour may be paid and not listed."""
    hour, exchange = now // HOUR_MS * HOUR_MS, venue.exchange
    if venue.simulated or exchange in SPOT or now - hour >= SETTLING_MS:
        return
    opened = [trade.opened for trade in book.trades_at(exchange)]
    opened += [trade.opened for trade in book.closed if trade.exchange is exchange and trade.closed >= hour]
    if any(moment <= hour for moment in opened):
        raise Unavailable(f"{exchange} may still be settling the hour's funding; its balance is compared after that")


def _check_news(venue: OrderVenue, worker: OrderWorker) -> None:
    if (trouble := worker.troubles.get(venue.exchange)) is not None:
        raise Unavailable(trouble)


async def _take_news(venue: OrderVenue, worker: OrderWorker) -> None:
    await worker.advance(settle=True, entries=False)
    _check_news(venue, worker)


async def find_differing_positions(venue: OrderVenue, book: TradingBook) -> dict[Symbol, Unbooked]:
    """Once fills are booked, what is held must be the same."""
    differing: dict[Symbol, Unbooked] = {}
    there = {position.symbol: position.quantity * position.side.sign for position in await venue.positions()}
    for symbol in DEFAULT_SYMBOLS:
        held = book.positions.get((venue.exchange, symbol))
        ours = ZERO if held is None else held.quantity * held.side.sign
        theirs = there.get(symbol, ZERO)
        if ours != theirs:
            differing[symbol] = Unbooked(exchange=venue.exchange, symbol=symbol, quantity=theirs, booked=ours)
    return differing


async def _book_late_fills(venue: OrderVenue, state: GateState, worker: OrderWorker, symbol: Symbol) -> list[str]:
    """Fills of our own orders that the book has as over."""
    said: list[str] = []
    since = state.book.newest - RECENT_MS
    for known in list(reversed(state.book.orders.values())):
        request = known.request
        if known.planned < since:
            break
        if (request.exchange, request.symbol) != (venue.exchange, symbol) or not known.status.final or not known.left:
            continue
        found = await venue.find(symbol, request.client_id, request.type)
        if found is not None and found.filled > known.booked:
            await worker.book_order(venue, found)
            said.append(f"booked what {request.client_id} was filled with after it was given up")
    return said


async def _reconcile_orders(
    venue: OrderVenue, state: GateState, worker: OrderWorker, differing: dict[Symbol, Unbooked]
) -> list[str]:
    """Orders at the venue that the book does not know, or has as over: our own are cancelled, but none that may protect
    a position nobody understands; a stranger's stops the symbol."""
    said: list[str] = []
    standing = await venue.open_orders()
    await state.writer.refresh()  # another process may have planned and sent one meanwhile
    for order in find_unbooked_orders(standing, state.book):
        request = order.request
        known = state.book.orders.get(request.client_id)
        if not request.client_id.startswith(OUR_PREFIX):
            why = f"an order at {venue.exchange} is not of this desk: {request.client_id}"
            await state.lock(request.symbol, why)
            said.append(why)
        elif request.reduce_only and request.symbol in differing:
            said.append(f"left the order {request.client_id} standing: it may protect what {venue.exchange} holds")
        else:
            cancelled = await venue.cancel(request.symbol, request.client_id, request.type)
            standing_as = "does not know" if known is None else "has as over"
            what = f"cancelled the order {request.client_id}, which the book {standing_as}"
            await state.write([Adopted(at=state.event_time(), exchange=venue.exchange, what=what)])
            if known is not None:
                await worker.book_order(venue, cancelled)
            said.append(what)
    return said


def find_unbooked_orders(standing: Iterable[Order], book: TradingBook) -> list[Order]:
    return [order for order in standing if order.request.client_id not in book.open_orders]


async def _reconcile_cash(venue: OrderVenue, state: GateState, worker: OrderWorker) -> list[str]:
    difference, before = await _find_difference(venue, state), ZERO
    for _ in range(MOST_LOOKS):
        if difference == before:
            break
        await _take_news(venue, worker)  # something may have been filled or paid since
        difference, before = await _find_difference(venue, state), difference
    if not difference:
        return []
    if difference != before:
        raise Unavailable(f"the balance of {venue.exchange} is still moving")
    ours = state.book.venue_balance(venue.exchange)
    total = ours + difference
    currency, mode = venue.exchange.currency, account_mode(state.account)
    if mode != "paper" and not state.book.ledger.debits[venue.exchange]:
        what = f"the account begins with the {total} {currency} at {venue.exchange}"
        await state.write([Adopted(at=state.event_time(), exchange=venue.exchange, what=what, cash=difference)])
        return [what]
    _check_settled(venue, state.book, state.event_time())
    if abs(difference) > CASH_TOLERANCE * max(abs(ours), Decimal(1)):
        why = f"{venue.exchange} has {total} {currency}, the book {ours}"
        if mode != "paper":
            why += f"; a deposit or withdrawal of yours is taken over by `zuno trade adopt --account {mode}`"
        await state.lock(None, why)
        return [why]
    what = f"adopted {difference} {currency} that the balance of {venue.exchange} differs by"
    await state.write([Adopted(at=state.event_time(), exchange=venue.exchange, what=what, cash=difference)])
    return [what]


async def _find_difference(venue: OrderVenue, state: GateState) -> Decimal:
    return (await venue.balance()).total - state.book.venue_balance(venue.exchange)


ANSWER_SECONDS: Final = 3.0
"""For so long a look waits: a kill may be behind it."""


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


RECONCILE_AGAIN: Final = Backoff(5 * SECOND_MS, 5 * MINUTE_MS)
"""Between two tries to compare the book with an exchange that did not answer."""
UNCOMPARED_MS: Final = 30 * MINUTE_MS
"""How long the lock of an exchange that could not be compared lasts; set anew while it cannot be."""


class VenueComparison:
    """Compares at the start, every few minutes, and again after an outage."""

    def __init__(self, state: GateState, worker: OrderWorker) -> None:
        self._state = state
        self._worker = worker
        self._uncompared: dict[Venue, str] = {}
        """Exchanges that reconciliation could not ask, and why: asked again from `_compare_at`."""
        self._compare_at, self._failures = Millis(0), 0
        self._compared: dict[Venue, Millis] = {}
        """When each exchange was last found comparable, or this process began to look."""

    async def compare_if_due(self) -> None:
        """What could not be compared is asked again ever more seldom; what could be, every few minutes: somebody may
        trade there by hand. An outage in between locks nothing until it has lasted."""
        now, every = self._state.now(), self._state.context.compare_every
        if self._uncompared:
            if now >= self._compare_at:
                await self.compare(tuple(self._uncompared))
        elif every is not None:
            due = [
                exchange
                for exchange in self._state.venues
                if now - self._compared.setdefault(exchange, now) >= every and now >= self._compare_at
            ]
            if due:
                self._compare_at = Millis(now + MINUTE_MS)
                await self._worker.advance(settle=True, entries=False)
                await self.compare(due, patience=UNCOMPARED_MS)

    async def compare(self, exchanges: Sequence[Venue], patience: int = 0) -> list[str]:
        """Hold the book against exchanges. One that does not answer, for longer than `patience` since it was compared,
        locks the desk until it does: it is asked again by the watch, and the lock has an end of its own should nobody
        ask."""
        said, unknown = list[str](), False
        for exchange in exchanges:
            try:
                said += await reconcile_venue(self._state.venues[exchange], self._state, self._worker)
                self._uncompared.pop(exchange, None)
                self._compared[exchange] = self._state.now()
            except Broken:
                raise
            except ZunoError as error:
                if patience and self._state.now() - self._compared.get(exchange, self._state.now()) < patience:
                    unknown = True
                    continue
                self._uncompared[exchange] = str(error)
                said.append(f"{exchange} cannot be compared with the book yet: {error}")
        if self._uncompared:
            self._failures += 1
            self._compare_at = Millis(self._state.now() + round(RECONCILE_AGAIN.delay(self._failures)))
        else:
            self._failures = 0
        if self._uncompared or not unknown:  # else no lock is set, and none that stands is lifted
            await self._lock_uncompared()
        return said

    async def _lock_uncompared(self) -> None:
        """A difference that somebody has to look at locks for longer, and stays."""
        known = self._state.book.locks.get((Protection.RECONCILIATION, None))
        if known is not None and known.until is None:
            return
        if not self._uncompared:
            if known is not None:
                await self._state.lift(Protection.RECONCILIATION, None, "the exchanges answered")
            return
        if known is None or known.until is None or known.until < self._compare_at + UNCOMPARED_MS // 2:
            lock = LockSet(
                at=self._state.event_time(),
                protection=Protection.RECONCILIATION,
                symbol=None,
                until=Millis(self._state.event_time() + UNCOMPARED_MS),
                reason="; ".join(
                    f"{exchange} is not compared yet: {why}" for exchange, why in self._uncompared.items()
                )[:600],
            )
            await self._state.write([lock])

    async def find_cash_differences(self) -> dict[Venue, Decimal]:
        if not self._state.venues:
            raise Unavailable("No exchange of this account can be asked here: its keys, or a mandate, are missing.")
        await self._worker.advance(settle=True, entries=False)
        found = {
            exchange: await find_cash_difference(venue, self._state, self._worker)
            for exchange, venue in self._state.venues.items()
        }
        return {exchange: cash for exchange, cash in found.items() if cash}
