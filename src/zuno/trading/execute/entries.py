"""Entries: whether a ruling may open something now, by the market's own price, the protections and the mandate; and the
orders by which an intent is worked at a venue."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import takewhile
from typing import Final, Literal

from zuno.kernel.errors import Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute import fills
from zuno.trading.execute.intents import RulingToExecute, build_open_intent, find_rates
from zuno.trading.execute.protection import is_tighter, protect, set_levels
from zuno.trading.execute.venue_context import DOLLAR, AccountContext, ExchangeState, VenueContext
from zuno.trading.model.cycle import Style
from zuno.trading.model.known import Known, Missing, pick
from zuno.trading.model.market import DAY_MS, MINUTE_MS
from zuno.trading.model.orders import ZERO, OrderRequest, OrderStatus, VenueQuote, client_order_id, opening_side
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import (
    DayMarked,
    IntentEnded,
    IntentKind,
    IntentLeg,
    LockSet,
    OrderPlanned,
    Protection,
    TradeEvent,
    TradeIntent,
)
from zuno.trading.rules import execution_styles, protections
from zuno.trading.rules.book_state import LedgerAccount, Place, TrackedIntent, TrackedOrder, round_money

JUDGE_EVERY_MS: Final = 5 * MINUTE_MS
"""How often protections are judged while nothing happens to the account; an entry judges them anew."""


class EntryRefused(Exception):
    """Why an entry may not be."""


class RiskChecker:
    """Says what keeps new risk back, and writes down what outlasts its cause."""

    def __init__(self, account: AccountContext) -> None:
        self.account = account
        self._judged = (0, Millis(0))
        """Events there were when protections were judged last, and when that was."""
        self._unknown_since: Millis | None = None
        """From when nobody knows what was lost today."""

    async def find_locks(self, symbol: Symbol | None = None) -> tuple[LockSet, ...]:
        """`symbol`: which one new risk is asked for; its price must be fresh, and being open it may be topped up."""
        gate = self.account.gate
        locks = protections.active_locks(await self.read_risk_state(symbol), gate.limits)
        locks = protections.add_kill(locks, gate.killed(), self.account.now())
        if symbol is not None and symbol in self.open_symbols():
            locks = tuple(lock for lock in locks if lock.protection is not Protection.MAX_OPEN_TRADES)
        return locks

    async def why_no_risk(self, symbol: Symbol, venues: Iterable[Venue], sleeve: str = DEBATE) -> str | None:
        """Why a sleeve takes no new risk in a symbol at these venues, if so."""
        gate = self.account.gate
        if not gate.entries:
            return gate.why_no_entries
        if (unfit := self.account.why_clock_unfit()) is not None:
            return unfit
        for venue in venues:
            if gate.find_stale is not None and (stale := await gate.find_stale(venue)) is not None:
                return stale
        locks = [
            lock
            for lock in await self.find_locks(symbol)
            if sleeve == DEBATE or lock.protection not in protections.OF_THE_DEBATE
        ]
        lock = protections.find_refusal(symbol, locks)
        return None if lock is None else protections.describe_lock(lock)

    async def store_hit_protections(self) -> str | None:
        """Those that outlast what set them off are written down. Why entries that wait may not go on, where a mandate's
        daily loss is reached or stays unknown."""
        account, book = self.account, self.account.book
        if not book.positions and not book.closed:
            return None
        if book.count == self._judged[0] and account.now() - self._judged[1] < JUDGE_EVERY_MS:
            return None
        self._judged = (book.count, account.now())
        events: list[TradeEvent] = []
        state = await self.read_risk_state(None)
        if (mark := await self.mark_day(state)) is not None:
            state = replace(state, day_marks=[*state.day_marks, mark])
        for lock in protections.triggered_protections(state, account.gate.limits):
            known = book.locks.get((lock.protection, lock.symbol))
            over = known is None or (known.until is not None and known.until <= lock.at)
            if lock.protection in protections.STORED and lock.until is not None and over:
                events.append(lock.model_copy(update={"at": account.event_time()}))
        await account.write(events)
        granted = account.book.mandate
        if not account.gate.live or granted is None or not account.book.list_intents(IntentKind.OPEN):
            return None
        lost, most = protections.find_day_loss(state), granted.mandate.max_daily_loss_usd
        if isinstance(lost, Missing):
            self._unknown_since = self._unknown_since or account.now()
            unknown = account.now() - self._unknown_since >= JUDGE_EVERY_MS
            return f"what was lost today is not known: {lost.reason}" if unknown else None
        self._unknown_since = None
        if lost < most:
            return None
        return f"${lost:,.2f} are lost today; the mandate allows ${most:,.2f}"

    async def mark_day(self, state: protections.RiskState | None = None) -> DayMarked | None:
        """Write what an account with sleeves is worth, once a day and before new risk is asked for: what was lost on
        the days before is not lost today. None: it is written, or cannot be told."""
        account, book = self.account, self.account.book
        if book.sleeves == (DEBATE,) or not (book.positions or book.closed):
            return None
        if protections.find_day_mark(state := state or await self.read_risk_state(None)) is not None:
            return None
        equity, unrealised, results = state.equity_usd, state.unrealised_usd, dict[str, Decimal]()
        for sleeve in book.sleeves:
            if isinstance(worth := await self.measure_sleeve(sleeve, state.rates), Missing):
                return None
            results[sleeve] = round_money(worth.equity_usd - worth.capital_usd)
        if isinstance(equity, Missing) or isinstance(unrealised, Missing):
            return None
        worth_usd = {"equity_usd": round_money(equity), "unrealised_usd": round_money(unrealised)}
        mark = DayMarked(at=account.event_time(), results_usd=results, **worth_usd)
        await account.write([mark])
        return mark

    async def read_risk_state(self, symbol: Symbol | None) -> protections.RiskState:
        book, venues = self.account.book, self.account.venues
        wanted = dict.fromkeys((*([] if symbol is None else [symbol]), *(t.symbol for t in book.trades.values())))
        quotes: dict[Place, Known[VenueQuote]] = {}
        first = next(iter(venues), None)
        for held in wanted:
            for exchange in venues:
                if exchange == first or book.trades_at(exchange):
                    quotes[exchange, held] = await self.known_quote(exchange, held)
        rates = await self._read_rates(quotes, next(iter(wanted), DEFAULT_SYMBOLS[0]))
        equity, unrealised = self._equity_usd(quotes, rates)
        price_times: dict[Symbol, Known[Millis]] = {}
        if symbol is not None:
            quote = Missing("no exchange is there") if first is None else quotes[first, symbol]
            price_times[symbol] = quote if isinstance(quote, Missing) else quote.at
        return protections.RiskState(
            **pick(book, "closed", "results", "lifted", "day_marks"),
            capital_usd=protections.sum_capital_usd(book, rates),
            now=self.account.now(),
            open_symbols=self.open_symbols(),
            equity_usd=equity,
            unrealised_usd=unrealised,
            rates=rates,
            price_times=price_times,
            locks=tuple(book.locks.values()),
        )

    async def read_sleeve_equity(self, sleeve: str, currency: str) -> Known[Decimal]:
        """At the marks of now."""
        marks = await self._read_marks(sleeve, currency)
        return marks if isinstance(marks, Missing) else self.account.book.sleeve_equity(sleeve, currency, marks)

    async def _read_marks(self, sleeve: str, currency: str | None = None) -> Known[dict[Place, Decimal]]:
        """Of what a sleeve holds, in a currency or in all."""
        marks: dict[Place, Decimal] = {}
        for trade in self.account.book.trades.values():
            if trade.sleeve == sleeve and currency in (None, trade.exchange.currency):
                quote = await self.known_quote(trade.exchange, trade.symbol)
                if isinstance(quote, Missing):
                    return quote
                marks[trade.exchange, trade.symbol] = quote.mark
        return marks

    async def require_sleeve_equity(self, sleeve: str, currency: str) -> Decimal:
        """`Unavailable` without a price of what it holds."""
        worth = await self.read_sleeve_equity(sleeve, currency)
        if isinstance(worth, Missing):
            raise Unavailable(f"What {sleeve} is worth is not known: {worth.reason}")
        return worth

    async def find_sleeve_fall(self, sleeve: str) -> Known[Decimal]:
        """Of a sleeve's equity from its highest of the marked days, a share of that."""
        worth = await self.measure_sleeve(sleeve, (await self.read_risk_state(None)).rates)
        if isinstance(worth, Missing):
            return worth
        return protections.find_sleeve_fall(sleeve, worth, self.account.book.day_marks)

    async def measure_sleeve(self, sleeve: str, rates: Mapping[str, Known[Decimal]]) -> Known[protections.SleeveWorth]:
        """Cash in a currency without a rate counts nothing; a position there makes it unknown."""
        book, equity, capital = self.account.book, ZERO, ZERO
        if isinstance(marks := await self._read_marks(sleeve), Missing):
            return marks
        for currency in dict.fromkeys(venue.currency for venue in book.venues):
            rate = rates.get(currency, Missing(f"nothing is quoted in {currency} here"))
            if not isinstance(rate, Missing):
                equity += book.sleeve_equity(sleeve, currency, marks) / rate
                balances = book.sleeve_balances(sleeve, currency)
                capital -= (balances[LedgerAccount.CAPITAL] + balances[LedgerAccount.ADJUSTMENTS]) / rate
            elif any(exchange.currency == currency for exchange, _ in marks):
                return rate
        return protections.SleeveWorth(equity, capital)

    async def known_quote(self, exchange: Venue, symbol: Symbol) -> Known[VenueQuote]:
        try:
            return await self.account.at(exchange).port.quote(symbol)
        except ZunoError as error:
            return Missing(str(error).rstrip("."))

    async def _read_rates(self, quotes: Mapping[Place, Known[VenueQuote]], symbol: Symbol) -> dict[str, Known[Decimal]]:
        """What one dollar is in each currency: by what the same coin costs in both, else by the market that is read."""
        gate, rates = self.account.gate, dict[str, Known[Decimal]]({DOLLAR: Decimal(1)})
        by_currency = {exchange.currency: exchange for exchange in reversed([*self.account.venues])}
        in_dollars = by_currency.pop(DOLLAR, None)
        if in_dollars is None and gate.rates is not None:
            return {**await gate.rates(), **rates}
        dollars: Known[VenueQuote] = Missing(f"nothing is quoted in {DOLLAR} here")
        if by_currency and in_dollars is not None:
            dollars = quotes.get((in_dollars, symbol)) or await self.known_quote(in_dollars, symbol)
        for currency, exchange in by_currency.items():
            quote = quotes.get((exchange, symbol)) or await self.known_quote(exchange, symbol)
            if isinstance(quote, Missing):
                rates[currency] = quote
            else:
                rates[currency] = dollars if isinstance(dollars, Missing) else quote.mark / dollars.mark
        return rates

    def _equity_usd(
        self, quotes: Mapping[Place, Known[VenueQuote]], rates: Mapping[str, Known[Decimal]]
    ) -> tuple[Known[Decimal], Known[Decimal]]:
        """In dollars. Cash in a currency without a rate counts nothing; a position there makes both unknown."""
        equity = unrealised = ZERO
        book = self.account.book
        for exchange in book.venues:
            trades = book.trades_at(exchange)
            marks: dict[Symbol, Decimal] = {}
            for trade in trades:
                quote = quotes.get((exchange, trade.symbol), Missing(f"{exchange} is not there"))
                if isinstance(quote, Missing):
                    return quote, quote
                marks[trade.symbol] = quote.mark
            rate = rates.get(exchange.currency, Missing(f"nothing is quoted in {exchange.currency} here"))
            if isinstance(rate, Missing):
                if trades:
                    return rate, rate
                continue
            equity += book.equity(exchange, marks) / rate
            unrealised += sum((trade.unrealised_pnl(marks[trade.symbol]) for trade in trades), ZERO) / rate
        return equity, unrealised

    def open_symbols(self) -> tuple[Symbol, ...]:
        """Of the debate: its own count of open trades is bounded."""
        book = self.account.book
        held = [trade.symbol for trade in book.trades.values() if trade.sleeve == DEBATE]
        held += [tracked.intent.symbol for tracked in book.list_intents(IntentKind.OPEN, sleeve=DEBATE)]
        return tuple(dict.fromkeys(held))

    async def why_no_mandate(
        self, intent: TradeIntent, places: Mapping[Venue, ExchangeState], order: RulingToExecute | None = None
    ) -> str | None:
        """Why the mandate does not cover an entry with money, if so. `order`: of the debate."""
        account, mark, book = self.account, intent.mark, self.account.book
        place = intent.symbol, intent.sleeve
        midnight = account.now() // DAY_MS * DAY_MS

        def margin_usd(of: TradeIntent) -> Decimal:
            return sum((leg.quantity * of.mark / leg.leverage for leg in of.legs), ZERO)

        def unfilled_usd(tracked: TrackedIntent, mark: Decimal) -> Decimal:
            """Of what is still to be filled of an entry, ordered or not."""
            left = book.find_left(tracked)
            return sum((max(ZERO, left[leg.exchange]) * mark / leg.leverage for leg in tracked.intent.legs), ZERO)

        def used_today(tracked: TrackedIntent) -> Decimal:
            """What has ended without being filled gives its margin back."""
            whole = margin_usd(tracked.intent)
            orders = filter(None, map(book.open_orders.get, tracked.orders))
            if tracked.state == "open" or any(order.purpose == "entry" for order in orders):
                return whole
            return whole - unfilled_usd(tracked, tracked.intent.mark)

        opened = (tracked for tracked in book.intents.values() if tracked.intent.kind is IntentKind.OPEN)
        own = [tracked for tracked in opened if tracked.intent.sleeve == intent.sleeve]
        today = (used_today(tracked) for tracked in own if tracked.stored >= midnight)
        older = (tracked for tracked in own if tracked.state == "open" and tracked.stored < midnight)
        earlier = (unfilled_usd(tracked, tracked.intent.mark) for tracked in older)
        held = (t.quantity * mark / t.leverage for t in book.positions.values() if (t.symbol, t.sleeve) == place)
        pending = (unfilled_usd(tracked, mark) for tracked in book.list_intents(IntentKind.OPEN, *place))
        lost = protections.find_day_loss(await self.read_risk_state(intent.symbol))
        if isinstance(lost, Missing):
            return f"what was lost today is not known: {lost.reason}"
        granted = book.active_mandate(account.now())
        named = granted is not None and any(sleeve.name == intent.sleeve for sleeve in granted.sleeves)
        entry = protections.LiveEntry(
            symbol=intent.symbol,
            exchanges=tuple(leg.exchange for leg in intent.legs),
            margin_usd=margin_usd(intent),
            margin_held_usd=sum(held, ZERO) + sum(pending, ZERO),
            margin_today_usd=sum(today, ZERO) + sum(earlier, ZERO),
            lost_today_usd=lost,
            without_stops=tuple(
                leg.exchange
                for leg in intent.legs
                if leg.stop is not None
                and (not places[leg.exchange].filters.holds_stops or self._is_netted(intent, leg))
            ),
            judge_failed=order is not None and order.judge_failed,
            policy="record" if order is None or order.ruling.card is None else order.ruling.card.policy,
            sleeve=intent.sleeve,
            sleeve_share=book.shares.of(intent.sleeve),
            sleeve_fall=await self.find_sleeve_fall(intent.sleeve) if named else ZERO,
        )
        return protections.find_mandate_refusal(granted, entry, account.now())

    def _is_netted(self, intent: TradeIntent, leg: IntentLeg) -> bool:
        """Return whether other sleeves hold more of the other side of the debate's perpetual than of its own, or will
        once their entries are filled: a stop at the venue would then be for less than all of it."""
        book, side = self.account.book, intent.side_of(leg)
        held = [] if leg.exchange.spot else book.positions_at(leg.exchange, intent.symbol)
        others = sum((trade.signed for trade in held if trade.sleeve != DEBATE), ZERO)
        for tracked in book.list_intents(IntentKind.OPEN, intent.symbol):
            for wanted in tracked.intent.legs if tracked.intent.sleeve != DEBATE else ():
                if wanted.exchange is leg.exchange and tracked.intent.side_of(wanted) is not side:
                    others -= side.sign * max(ZERO, book.find_left(tracked)[leg.exchange])
        return intent.sleeve == DEBATE and side.sign * others < 0


# -- may it be


async def prepare_entry(risk: RiskChecker, order: RulingToExecute) -> tuple[TradeIntent, list[TradeEvent]]:
    """The intent of an entry that may be, and what is written with it. Raises what keeps it back; sends nothing."""
    account = risk.account
    await risk.mark_day()
    base = order.symbol.base
    others = (symbol for symbol in risk.open_symbols() if symbol.base == base and symbol is not order.symbol)
    if (other := next(others, None)) is not None:
        raise EntryRefused(f"{base} is held as {other}, which has to be closed first")
    if (why := await risk.why_no_risk(order.symbol, dict.fromkeys(leg.venue for leg in order.ruling.legs))) is not None:
        raise EntryRefused(why)
    places = {leg.venue: await account.at(leg.venue).read_state(order.symbol) for leg in order.ruling.legs}
    mark = await account.read_dollar_mark(order.symbol)
    seen, most = order.mark or mark, execution_styles.MAX_DRIFT_ATR * (order.atr or ZERO)
    if order.atr is not None and mark is not None and seen is not None and abs(mark - seen) > most:
        raise EntryRefused(f"the mark moved from {seen} to {mark}, more than {execution_styles.MAX_DRIFT_ATR} ATR(1h)")
    intent = build_open_intent(account, order, places, mark)
    if isinstance(intent, str):
        raise EntryRefused(intent)
    if account.gate.live and (why := await risk.why_no_mandate(intent, places, order)) is not None:
        raise EntryRefused(why)
    return intent, _tighten_stops(account, intent)


def _tighten_stops(account: AccountContext, intent: TradeIntent) -> list[TradeEvent]:
    """A top-up may bring the stop of what is held nearer, never further."""
    events: list[TradeEvent] = []
    for leg in intent.legs:
        held = account.book.position(leg.exchange, intent.symbol, intent.sleeve)
        if held is not None and leg.stop is not None and is_tighter(leg.stop, held.stop, intent.side_of(leg)):
            events.append(set_levels(held, account.event_time(), leg.stop, held.target, "ruling"))
    return events


# -- its orders


async def work_entry(venue: VenueContext, tracked: TrackedIntent, *, placing: bool) -> None:
    """The next orders of an intent's leg at a venue. Without `placing` what may not go on is cancelled, no more."""
    intent, exchange, account = tracked.intent, venue.exchange, venue.account
    leg = next((leg for leg in intent.legs if leg.exchange == exchange), None)
    if leg is None or (intent.id, exchange) in account.ended_legs:
        return
    orders = venue.orders_of(tracked, "entry")
    now = venue.now()
    waiting = [order for order in orders if not order.status.final]
    if placing and any(order.status is OrderStatus.PLANNED for order in waiting):
        return
    # What is left of an entry whose trade has ended would open one that nobody ruled.
    closed = takewhile(lambda summary: summary.closed >= tracked.stored, reversed(venue.book.closed))
    of_sleeve = (summary for summary in closed if summary.sleeve == intent.sleeve)
    ended = "the trade has ended" if any(summary.symbol == intent.symbol for summary in of_sleeve) else None
    if (why := ended or why_stopped(account, intent)) is not None:
        for order in waiting:
            await fills.cancel_order(venue, order)
        account.ended_legs[intent.id, exchange] = why
        return
    if not placing or (waiting and all(order.expires is None or order.expires > now for order in waiting)):
        return
    lot, first = intent.hedge_lot, intent.legs[0].exchange
    if lot is not None and exchange is not first:  # in whole lots of what the first holds and it does not
        if (intent.id, first) not in account.ended_legs:
            return
        held, sold = (venue.book.position(at, intent.symbol, intent.sleeve) for at in (first, exchange))
        uncovered = (ZERO if held is None else held.quantity) - (ZERO if sold is None else sold.quantity)
        uncovered += sum((order.booked for order in orders), ZERO)  # this intent's own sales are part of its quantity
        quantity = execution_styles.round_to_step(min(uncovered, leg.quantity), lot)
        if quantity <= 0:
            account.ended_legs[intent.id, exchange] = "nothing was bought that it would hedge"
            return
        leg = leg.model_copy(update={"quantity": quantity})
    if orders and not waiting and intent.style is Style.SMART_DCA:
        account.ended_legs[intent.id, exchange] = ""
        return
    step = execution_styles.next_entry_step(await _build_task(venue, tracked, leg, anew=not orders), orders)
    for number in step.cancel:
        await fills.cancel_order(venue, orders[number])
    if step.done:
        account.ended_legs[intent.id, exchange] = step.why
    # The first leg of a hedge has a bound on its price; the second has to be there.
    if step.place:
        plans = step.place if lot is None or exchange is first else map(execution_styles.to_market, step.place)
        await _place_entries(venue, tracked, leg, plans, len(orders))


async def _place_entries(
    venue: VenueContext,
    tracked: TrackedIntent,
    leg: IntentLeg,
    plans: Iterable[execution_styles.EntryPlan],
    number: int,
) -> None:
    intent, at = tracked.intent, venue.account.event_time()
    planned: list[OrderPlanned] = []
    for plan in plans:
        request = OrderRequest(
            client_id=client_order_id(intent.id, leg.exchange, "entry", number + len(planned)),
            exchange=leg.exchange,
            symbol=intent.symbol,
            side=opening_side(intent.side_of(leg)),
            leverage=leg.leverage,
            **pick(plan, "type", "quantity", "price", "time_in_force"),
        )
        planned.append(OrderPlanned(at=at, intent=intent.id, purpose="entry", order=request, expires=plan.expires))
    await venue.account.write(planned)
    for event in planned:
        # What is held is protected before more is ordered.
        await protect(venue, intent.symbol)
        order = venue.book.open_orders.get(event.order.client_id)
        if order is not None and order.status is OrderStatus.PLANNED:
            await _send_entry(venue, order)


async def send_entry_again(venue: VenueContext, tracked: TrackedOrder, *, placing: bool) -> None:
    """An entry that a process planned and may not have sent: it is placed if the venue has it not and it is wanted."""
    if not placing and fills.may_arrive(venue, tracked):
        order = await fills.find_order(venue, tracked)
        if order is None:
            return
    else:
        order = await fills.find_planned(venue, tracked)
    if order is not None:
        await fills.book_orders(venue, tracked.request.symbol, [order])
        return
    why = _why_unwanted(venue, tracked)
    sending = not venue.account.gate.entries and venue.now() - tracked.planned < fills.SENDING_MS
    if placing or (why is not None and not sending):
        await _send_entry(venue, tracked, why or await _why_drifted(venue, tracked))


async def _send_entry(venue: VenueContext, tracked: TrackedOrder, why: str | None = None) -> None:
    """`why`: what speaks against it. A kill lock, pause or revoked mandate is asked for last of all. `Unavailable`
    while another sleeve's target may stand at the same perpetual: later it would take what is bought now."""
    if (why := why or _why_unwanted(venue, tracked)) is not None:
        await fills.give_up(venue, tracked, why)
    elif venue.account.unread:
        raise Unavailable(f"the entry {tracked.request.client_id} may be in no log: it is not sent")
    else:
        for other in venue.list_sharing(tracked.request.symbol):
            await fills.cancel_protection(other, tracked.request.symbol, ("target",))
        await fills.send(venue, tracked)


def _why_unwanted(venue: VenueContext, tracked: TrackedOrder) -> str | None:
    """Why an entry that the venue does not have is not to be placed any more."""
    stored = venue.book.open_intents.get(tracked.intent)
    if stored is None or venue.is_closing(tracked.request.symbol):
        return "its intent is over"
    if venue.now() > stored.intent.valid_until:
        return "the ruling is no longer valid"
    return why_stopped(venue.account, stored.intent)


def why_stopped(account: AccountContext, intent: TradeIntent) -> str | None:
    """Why nothing more is ordered of an entry that is being worked. With money a day's loss stops it, too."""
    live, granted = account.gate.live, account.book.mandate
    if (killed := account.gate.killed()) is not None:
        return f"{killed.kind}: {killed.why}"[:600]
    if live and (granted is None or granted.hash != intent.mandate or account.now() >= granted.mandate.expires):
        return "its mandate is revoked, replaced or has expired"
    for lock in account.book.active_locks(account.now(), intent.symbol):
        concerns = intent.sleeve == DEBATE or lock.protection not in protections.OF_THE_DEBATE
        if lock.protection in protections.MANUAL_UNLOCK or (
            live and concerns and lock.protection in protections.STORED
        ):
            return f"{lock.protection.value}: {lock.reason}"[:600]
    return None


async def _why_drifted(venue: VenueContext, tracked: TrackedOrder) -> str | None:
    """Whether the market went away from an entry while it could not be sent."""
    stored = venue.book.intents[tracked.intent]
    if stored.intent.take_at is not None:
        return None
    leg = next(leg for leg in stored.intent.legs if leg.exchange == venue.exchange)
    task = await _build_task(venue, stored, leg)
    return f"the mark moved from {task.mark} to {task.quote.mark}" if execution_styles.has_drifted(task) else None


async def _build_task(
    venue: VenueContext, tracked: TrackedIntent, leg: IntentLeg, *, anew: bool = False
) -> execution_styles.EntryTask:
    """Mark and ATR in the venue's currency: by what one entry is in the other, or by what both cost now. `anew`: with
    the filters as they are now."""
    intent, currency, now = tracked.intent, venue.exchange.currency, venue.now()
    quote = await venue.port.quote(intent.symbol)
    filters = await venue.read_filters(intent.symbol, anew=anew)
    in_dollars = next((other for other in intent.legs if other.exchange.currency == DOLLAR), None)
    if currency != DOLLAR and in_dollars is not None:
        rate = leg.entry / in_dollars.entry
    else:
        dollars = None if currency == DOLLAR else await venue.account.read_dollar_mark(intent.symbol)
        rate = find_rates([quote], dollars or intent.mark)[currency]
    return execution_styles.EntryTask(
        style=intent.style,
        side=opening_side(intent.side_of(leg)),
        quantity=leg.quantity,
        stop=leg.stop or ZERO,
        mark=intent.mark * rate,
        atr=intent.atr * rate,
        valid_until=intent.valid_until,
        quote=quote,
        filters=filters,
        now=now,
        take_at=intent.take_at,
    )


async def end_entries(account: AccountContext, reason: str, intent: str | None = None) -> None:
    """Write down that nothing more is entered: of one intent, or of all. A look at the venues cancels what waits."""
    ending = (tracked for tracked in account.book.list_intents(IntentKind.OPEN) if intent in (None, tracked.intent.id))
    await account.write([end_entry(account, tracked, reason) for tracked in ending])


def end_entry(account: AccountContext, tracked: TrackedIntent, why: str = "") -> IntentEnded:
    """Of an entry or of a cut, by what its orders were filled with."""
    intent = tracked.intent
    purpose = "exit" if intent.kind is IntentKind.CUT else "entry"
    whys = [why, *(account.ended_legs.pop((intent.id, leg.exchange), "") for leg in intent.legs)]
    entries = [order for order in map(account.book.orders.__getitem__, tracked.orders) if order.purpose == purpose]
    reasons = [*filter(None, whys), *(order.reason for order in entries if order.reason)]
    filled = sum((order.filled for order in entries), ZERO)
    state: Literal["done", "partial", "refused", "expired"]
    if filled >= sum((leg.quantity for leg in intent.legs), ZERO):
        state, reasons = "done", []
    elif filled:
        state = "partial"
    else:
        state = "refused" if any(order.status is OrderStatus.REJECTED for order in entries) else "expired"
    reason = "; ".join(dict.fromkeys(reasons))[:600]
    return IntentEnded(at=account.event_time(), intent=intent.id, state=state, reason=reason)
