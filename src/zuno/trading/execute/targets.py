"""Sleeves' targets: what each is to hold of a market, brought about by the difference to what it holds.

One round takes the targets of all sleeves. What one buys of what another sells goes from sleeve to sleeve at the mark,
the rest is ordered. Every change is an intent that is written first, under an id made of the target and the moment it
was decided: whatever crashes, a difference is ordered once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import permutations
from typing import Final, Literal

from zuno.kernel.errors import NotFound, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import ConcurrentWrite
from zuno.trading.execute.closes import store_close, why_unsellable
from zuno.trading.execute.entries import RiskChecker, end_entry
from zuno.trading.execute.fills import cancel_protection
from zuno.trading.execute.intents import CLOSE_LIFE, build_id
from zuno.trading.execute.protection import set_levels
from zuno.trading.execute.reconcile import advance
from zuno.trading.execute.venue_context import DOLLAR, AccountContext, ExchangeState
from zuno.trading.model import trade_events
from zuno.trading.model.cycle import Style
from zuno.trading.model.known import Missing, pick
from zuno.trading.model.market import DAY_MS, Mode, Side
from zuno.trading.model.orders import ZERO, OrderStatus
from zuno.trading.rules.book_state import OpenTrade, Place, TrackedIntent
from zuno.trading.rules.execution_styles import SLIPPAGE_CAP, meets_minimum, round_to_step

LEAST_STOP: Final = Decimal("0.25")
STOP_SIGMAS: Final = Decimal(8)
MOST_STOP: Final = Decimal("0.9")
MOST_OF_CAPITAL: Final = Decimal("1.1")
"""What a sleeve's targets may be worth: prices move between the decision and the order."""


TargetState = Literal["held", "refused", "waiting", "working", "closing", "done"]
"""`held`: there is nothing to order. `waiting`: it has to be asked for again. `done`: its orders are over."""


@dataclass(frozen=True, slots=True)
class TargetPosition:
    exchange: Venue
    symbol: Symbol
    quantity: Decimal
    """Below zero: short."""
    stop_distance: Decimal | None = LEAST_STOP
    """Of the disaster stop, a fraction of the price. None: it hedges what is held elsewhere, and has no stop."""
    band: Decimal = ZERO
    """A smaller difference, in the venue's currency, is not ordered; but a position that is to end is ended."""
    at_once: bool = False
    """The difference is taken, and does not wait at the touch."""


@dataclass(frozen=True, slots=True)
class TargetResult:
    sleeve: str
    exchange: Venue
    symbol: Symbol
    state: TargetState
    reason: str = ""
    intent: str | None = None


def stop_distance(daily_sigma: Decimal) -> Decimal:
    """How far the disaster stop is from the price: eight daily deviations, at least 25 %."""
    return min(MOST_STOP, max(LEAST_STOP, STOP_SIGMAS * daily_sigma))


@dataclass(slots=True)
class _Change:
    id: str
    sleeve: str
    target: TargetPosition
    state: ExchangeState
    trade: OpenTrade | None
    difference: Decimal
    """Still to be ordered."""
    crossed: Decimal = ZERO
    """Of it, with other sleeves."""
    ends: bool = False
    """Whether all that is held goes."""
    why_less: str = ""

    @property
    def place(self) -> Place:
        return self.target.exchange, self.target.symbol

    @property
    def stop(self) -> Decimal | None:
        if self.target.stop_distance is None:
            return None
        side = Side.LONG if self.target.quantity > 0 else Side.SHORT
        price = self.state.quote.mark * (1 - side.sign * self.target.stop_distance)
        return round_to_step(price, self.state.filters.tick)


class _Settled(Exception):
    """Why nothing is ordered toward a target now."""

    def __init__(self, state: TargetState, why: str) -> None:
        super().__init__(why)
        self.state: TargetState = state


@dataclass(slots=True, eq=False)
class TargetRound:
    account: AccountContext
    risk: RiskChecker
    wanted: Mapping[str, Sequence[TargetPosition]]
    """Of each sleeve all that it is to hold; what it holds beside is ended."""
    decided: Millis
    decision: str
    _spent: dict[tuple[str, str] | Venue, Decimal] = field(default_factory=dict)
    """Of free cash, by sleeve and by venue."""
    _kept: dict[tuple[str, Venue, Symbol], str] = field(default_factory=dict)
    """What is being worked and as good as a target."""

    async def carry_out(self) -> tuple[TargetResult, ...]:
        account = self.account
        await advance(account)
        targets = [(sleeve, target) for sleeve, several in self.wanted.items() for target in several]
        named = {(target.exchange, target.symbol, sleeve) for sleeve, target in targets}
        for exchange, symbol, sleeve in account.book.positions:
            if sleeve in self.wanted and (exchange, symbol, sleeve) not in named:
                targets.append((sleeve, TargetPosition(exchange, symbol, ZERO)))
        await self.risk.mark_day()
        await self._end_others(targets)
        changes, settled = list[_Change](), dict[int, TargetResult]()
        too_much = {sleeve: await self._why_too_much(sleeve) for sleeve in self.wanted}
        for number, (sleeve, target) in enumerate(targets):
            try:
                if (change := await self._find_change(sleeve, target, too_much[sleeve])) is not None:
                    changes.append(change)
            except _Settled as over:
                settled[number] = TargetResult(sleeve, target.exchange, target.symbol, over.state, str(over))
            except (Unavailable, NotFound) as error:
                why = f"the exchange did not answer: {error}"
                settled[number] = TargetResult(sleeve, target.exchange, target.symbol, "waiting", why)
        crossed = await self._cross(changes)
        await account.write([*await self._build_intents(changes), *crossed, *self._renew_stops(changes)])
        for change in changes:
            if change.difference and change.ends:
                symbol, reason = change.target.symbol, trade_events.ExitReason.DECISION
                await store_close(account, symbol, reason, self.decision, sleeve=change.sleeve)
        await advance(account)
        less = {change.id: change.why_less for change in changes}
        return tuple(
            settled.get(number) or self._describe(sleeve, target, less.get(self._id(sleeve, target), ""))
            for number, (sleeve, target) in enumerate(targets)
        )

    def _id(self, sleeve: str, target: TargetPosition) -> str:
        wanted = f"{target.quantity:f}" if target.quantity.is_finite() else str(target.quantity)
        place = (target.exchange, target.symbol, sleeve)
        return build_id(self.account.name, *place, "target", self.decided, wanted)

    async def _end_others(self, targets: Sequence[tuple[str, TargetPosition]]) -> None:
        """What is being worked toward other targets of these sleeves ends with what it has, but what is as good."""
        book, ids = self.account.book, {self._id(sleeve, target) for sleeve, target in targets}
        self._kept = {
            (sleeve, target.exchange, target.symbol): tracked.intent.id
            for sleeve, target in targets
            for tracked in book.open_intents.values()
            if tracked.intent.sleeve == sleeve and self._leads_to(tracked, target)
        }
        ids |= {*self._kept.values()}
        others = [
            tracked
            for tracked in book.open_intents.values()
            if tracked.intent.take_at is not None
            and tracked.intent.sleeve in self.wanted
            and tracked.intent.id not in ids
            and not any(book.orders[id].status is OrderStatus.PLANNED for id in tracked.orders)
        ]
        if others:
            await self.account.write([end_entry(self.account, tracked, "another target") for tracked in others])
            await advance(self.account)

    def _leads_to(self, tracked: TrackedIntent, target: TargetPosition) -> bool:
        """Whether what is worked brings a sleeve to within the band of a target: set again at another price on the same
        day, it would begin to wait anew each time."""
        intent, book = tracked.intent, self.account.book
        leg = next((leg for leg in intent.legs if leg.exchange is target.exchange), None)
        if leg is None or intent.take_at is None or intent.symbol is not target.symbol or not target.quantity:
            return False
        held = book.position(target.exchange, target.symbol, intent.sleeve)
        left = book.find_left(tracked)[leg.exchange]
        sign = intent.side.sign if intent.kind is trade_events.IntentKind.OPEN else -intent.side.sign
        reached = (ZERO if held is None else held.signed) + sign * left
        return abs(target.quantity - reached) * leg.entry < target.band

    async def _why_too_much(self, sleeve: str) -> str | None:
        """Why a sleeve's targets add no risk: together they are worth more than its capital, or nobody knows."""
        worth: dict[str, Decimal] = {}
        for target in self.wanted[sleeve]:
            if not target.quantity.is_finite():
                continue  # refused by itself
            quote = await self.risk.known_quote(target.exchange, target.symbol)
            if isinstance(quote, Missing):
                continue  # of a market without a price nothing is bought
            currency = target.exchange.currency
            worth[currency] = worth.get(currency, ZERO) + abs(target.quantity) * quote.mark
        for currency, wanted in worth.items():
            capital = await self.risk.read_sleeve_equity(sleeve, currency)
            if isinstance(capital, Missing):
                return f"what {sleeve} is worth is not known: {capital.reason}"
            if wanted > MOST_OF_CAPITAL * capital:
                return f"targets of {wanted:,.2f} are more than the {capital:,.2f} {currency} of {sleeve}"
        return None

    # -- the difference

    async def _find_change(self, sleeve: str, target: TargetPosition, too_much: str | None) -> _Change | None:
        """None: it is ordered already. `_Settled` where nothing is to be ordered."""
        account, exchange, symbol = self.account, target.exchange, target.symbol
        apart = LEAST_STOP if target.stop_distance is None else target.stop_distance
        if not target.quantity.is_finite() or not ZERO < apart < 1:
            raise _Settled("refused", f"{target.quantity} of {symbol} is no target")
        venue, id = account.at(exchange, sleeve), self._id(sleeve, target)
        trade = venue.position(symbol)
        if id in account.book.intents or (sleeve, exchange, symbol) in self._kept:
            return None
        if venue.is_closing(symbol):
            raise _Settled("closing" if not target.quantity else "waiting", f"{symbol} is being closed")
        if any(order.purpose in ("entry", "exit") for order in venue.open_orders(symbol)):
            raise _Settled("waiting", f"an earlier order of {symbol} at {exchange} is not over yet")
        state = await venue.read_state(symbol)
        mark, filters = state.quote.mark, state.filters
        held = ZERO if trade is None else trade.signed
        quantity = round_to_step(target.quantity, filters.lot)
        if held * quantity < 0:
            quantity = ZERO  # the other side begins once this one has ended
        if not quantity and trade is not None:
            if (why := await why_unsellable(venue, trade)) is not None:
                raise _Settled("held", why)
            return _Change(id, sleeve, target, state, trade, -held, ends=True)
        difference = round_to_step(quantity - held, filters.lot)
        change = _Change(id, sleeve, target, state, trade, difference)
        worth = abs(difference) * mark
        if not difference or not meets_minimum(abs(difference), mark, filters):
            why = f"the difference of {worth:,.2f} {exchange.currency} is less than {exchange} takes"
            raise _Settled("held", why if difference or quantity != target.quantity else "")
        if worth < target.band:
            raise _Settled("held", f"the difference of {worth:,.2f} {exchange.currency} is within the band")
        if abs(quantity) > abs(held):
            if (why := too_much or await self._why_no_increase(sleeve, target, state)) is not None:
                raise _Settled("refused", why)
            self._fit_cash(change)
            if account.gate.live:
                intent, states = await self._build_intent(change), {exchange: change.state}
                if (why := await self.risk.why_no_mandate(intent, states)) is not None:
                    raise _Settled("refused", why)
        return change

    async def _why_no_increase(self, sleeve: str, target: TargetPosition, state: ExchangeState) -> str | None:
        exchange, symbol = target.exchange, target.symbol
        if exchange.spot and target.quantity < 0:
            return f"{exchange} is a spot exchange: nothing can be sold short there"
        if not state.filters.trading:
            return f"{symbol} is not traded at {exchange}"
        return await self.risk.why_no_risk(symbol, [exchange], sleeve)

    def _fit_cash(self, change: _Change) -> None:
        """No more than is free in the sleeve and in the wallet. `_Settled` where that is less than the venue takes."""
        book, exchange, state = self.account.book, change.target.exchange, change.state
        sleeve = (change.sleeve, exchange.currency)
        spent = sum((self._spent.get(venue, ZERO) for venue in self.account.list_sharing(exchange)), ZERO)
        there = self.account.free_cash(exchange) - spent
        free = min(book.sleeve_free(*sleeve) - self._spent.get(sleeve, ZERO), there)
        price = max(state.quote.ask, state.quote.mark) * (1 + SLIPPAGE_CAP) * (1 + Decimal(str(exchange.taker)) / 100)
        most = round_to_step(max(ZERO, free) / price, state.filters.lot)
        if most < abs(change.difference):
            change.why_less = f"{free:,.2f} {exchange.currency} are free, enough for {most}"
            if not meets_minimum(most, state.quote.mark, state.filters):
                raise _Settled("refused", change.why_less)
            change.difference = most if change.difference > 0 else -most
        for place in (sleeve, exchange):
            self._spent[place] = self._spent.get(place, ZERO) + abs(change.difference) * price

    # -- what is done about it

    async def _cross(self, changes: Sequence[_Change]) -> list[trade_events.TradeEvent]:
        """What one sleeve sells and another buys of a market, at the mark. Where stops bind it, they go first."""
        events: list[trade_events.TradeEvent] = []
        for seller, buyer in permutations(changes, 2):
            quantity = round_to_step(min(-seller.difference, buyer.difference), seller.state.filters.lot)
            if seller.place != buyer.place or quantity <= 0 or not await self._free_balance(seller, buyer):
                continue
            at, price = self.account.event_time(), seller.state.quote.mark
            key = build_id(self.account.name, "cross", seller.id, buyer.id, str(seller.difference))
            for change, signed in ((seller, quantity), (buyer, -quantity)):
                change.difference, change.crossed = change.difference + signed, change.crossed + quantity
                rest = abs(change.difference)
                if rest and not change.ends and not meets_minimum(rest, price, change.state.filters):
                    change.difference = ZERO
            crossed = trade_events.SleevesCrossed(
                **pick(seller.target, "exchange", "symbol"),
                at=at,
                key=key,
                seller=seller.sleeve,
                buyer=buyer.sleeve,
                quantity=quantity,
                price=price,
                intents={change.sleeve: change.id for change in (seller, buyer) if not change.ends},
            )
            events.append(crossed)
        return events

    async def _free_balance(self, *pair: _Change) -> bool:
        for change in pair:
            venue, symbol = self.account.at(change.target.exchange, change.sleeve), change.target.symbol
            before = None if change.trade is None else change.trade.quantity
            try:
                if venue.binds_balance:  # elsewhere the old stop stands until the new one does
                    await cancel_protection(venue, symbol)
            except ZunoError:
                return False
            now = venue.position(symbol)
            if (None if now is None else now.quantity) != before:
                raise ConcurrentWrite  # a stop was filled meanwhile: the differences are others
        return True

    async def _build_intents(self, changes: Iterable[_Change]) -> list[trade_events.TradeEvent]:
        events: list[trade_events.TradeEvent] = []
        for change in changes:
            if change.ends or not (change.difference or change.crossed):
                continue
            intent, at = await self._build_intent(change), self.account.event_time()
            events.append(trade_events.IntentStored(at=at, intent=intent, ruling=None))
            if not change.difference:
                why = "crossed with another sleeve"
                events.append(trade_events.IntentEnded(at=at, intent=intent.id, state="done", reason=why))
        return events

    async def _build_intent(self, change: _Change) -> trade_events.TradeIntent:
        """Of what is to be ordered; of what was crossed where that is all."""
        account, gate, target = self.account, self.account.gate, change.target
        (exchange, symbol), mark, now = change.place, change.state.quote.mark, account.now()
        held = ZERO if change.trade is None else change.trade.signed
        opening = change.difference * held >= 0 if change.difference else abs(target.quantity) > abs(held)
        dollars = None if exchange.currency == DOLLAR else await account.read_dollar_mark(symbol)
        leg = trade_events.IntentLeg(
            exchange=exchange,
            quantity=abs(change.difference) or change.crossed,
            entry=mark,
            stop=change.stop,
            leverage=account.book.find_leverage(exchange, symbol) or 1,
        )
        return trade_events.TradeIntent(
            id=change.id,
            decision=self.decision,
            kind=trade_events.IntentKind.OPEN if opening else trade_events.IntentKind.CUT,
            symbol=symbol,
            mode=Mode.POSITION,
            side=Side.LONG if target.quantity > 0 else Side.SHORT,
            style=Style.PASSIVE_MAKER,
            legs=(leg,),
            valid_until=Millis(now + DAY_MS if opening else CLOSE_LIFE),
            mark=dollars or mark,
            atr=ZERO,
            mandate=account.mandate_hash() if gate.live else None,
            left_out=change.why_less[:600],
            sleeve=change.sleeve,
            take_at=Millis(now if target.at_once else now + gate.take_after),
        )

    def _renew_stops(self, changes: Iterable[_Change]) -> list[trade_events.TradeEvent]:
        at = self.account.event_time()
        return [
            set_levels(change.trade, at, change.stop, None, "ruling")
            for change in changes
            if change.trade is not None and not change.ends and (change.difference or change.crossed)
        ]

    def _describe(self, sleeve: str, target: TargetPosition, why_less: str) -> TargetResult:
        place = sleeve, target.exchange, target.symbol
        id = self._kept.get(place) or self._id(sleeve, target)
        tracked = self.account.book.intents.get(id)
        if tracked is None:
            if why_less:
                return TargetResult(*place, "refused", why_less)
            closing = self.account.is_closing(target.symbol, sleeve)
            return TargetResult(*place, "closing" if closing else "done")
        return TargetResult(*place, "working" if tracked.state == "open" else "done", tracked.reason or why_less, id)
