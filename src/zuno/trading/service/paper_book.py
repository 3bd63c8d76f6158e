"""The paper book as a person keeps it: open, close, state, look; and the account that a cycle is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import takewhile
from math import isfinite
from typing import Any, ClassVar, Final, TypeAlias

from zuno.kernel import arguments
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, Refused, UsageError, ZunoError
from zuno.kernel.numbers_text import quantity_text
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.markets.feeds import BINANCE
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue, parse_venue
from zuno.present.document import Document, Tone, Value, document, facts, lines, section, table
from zuno.present.values import bad, foreign, gain, id_, money, number, percent
from zuno.trading.data.intake import clause
from zuno.trading.model.account import (
    Account,
    BookChange,
    FeesSlot,
    Holding,
    Liquidity,
    LiquidityStated,
    OrderCancelled,
    OrderPlaced,
    PositionClosed,
    PositionOpened,
    RestingOrder,
    account_slots,
    fees_slot,
)
from zuno.trading.model.bundle import Slot
from zuno.trading.model.known import Known, Missing, derive, or_none
from zuno.trading.model.market import Side, Timeframe, candles, parse_hours
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.trade_events import ManualChange, paper_account
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.rules.account import MarkedAccount, free_cash, margin_at, mark_to_market, unrealised_pnl
from zuno.trading.rules.book_state import hold_until
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.margin import find_liquidation, liquidation_distance
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.trading_book import (
    MAX_MANUAL_LEVERAGE,
    TradingBook,
    check_affordable,
    find_resting,
    format_money,
    new_id,
)
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.origin_view import OriginView
from zuno.trading.service.prices import Prices, read_prices

MOST_PRICE: Final = 1e12
MAX_ENTRY_AWAY: Final = 0.10
"""How far from the mark a position may be opened, as a share of it."""
MAX_ORDER_AWAY: Final = 0.50
"""How far from it an order may rest."""
_BASES: Final[Mapping[str, Symbol]] = {
    "ETH": Symbol("ETHUSDT"),
    "WETH": Symbol("ETHUSDT"),
    "WBTC": Symbol("BTCUSDT"),
    "cbBTC": Symbol("BTCUSDT"),
}
"""Tokens that move with what the desk trades."""

Inventory: TypeAlias = Callable[[], Awaitable[Mapping[str, Decimal]]] | str
"""Reads the token amounts in the owner's liquidity positions, by verified symbol, or says why none are read."""


class HeldView(View):
    """What is held, at the market's price. Money in the exchange's own currency; what cannot be marked is null."""

    id: str
    symbol: str
    exchange: str
    side: str
    quantity: float
    entry: float
    leverage: float
    currency: str
    margin: float
    mark: float | None
    unrealised: float | None
    """Before fees."""
    gain_pct: float | None
    """Of the entry, before leverage."""


class PositionView(HeldView):
    """A position at the market's price. Money in the exchange's own currency; what cannot be marked is null."""

    stop: float | None
    target: float | None
    hold: str | None
    """Longest holding time, such as 5d."""
    hold_until: IsoTime | None
    opened: IsoTime


class OrderView(View):
    id: str
    symbol: str
    exchange: str
    side: str
    quantity: float
    price: float
    leverage: float
    currency: str
    margin: float
    placed: IsoTime


class BalanceView(View):
    """What is at one exchange, in its own currency."""

    exchange: str
    currency: str
    cash: float
    equity: float | None
    margin_open: float
    margin_pending: float
    free: float


class InventoryView(View):
    symbol: str
    quantity: float
    usd: float | None


class BookView(OriginView):
    """The paper book at a moment of the market: what was done strictly before it."""

    as_of: str
    recorded: bool = False
    """Whether the account is in recorded time: `asOf` is its own last moment."""
    said: tuple[ForeignText, ...] = ()
    """What was just done."""
    positions: tuple[PositionView, ...]
    pending: tuple[OrderView, ...]
    liquidity: tuple[InventoryView, ...]
    purses: tuple[BalanceView, ...]
    equity_usd: float | None
    exposure_usd: float | None
    """Gross: positions, orders that rest, liquidity."""
    leverage: float | None
    """Exposure over equity; null where one of them is not known or nothing is left."""
    unknown: ForeignText | None
    """Why the whole cannot be told."""
    notes: tuple[ForeignText, ...] = ()
    LEFT_OUT: ClassVar = frozenset({"synthetic", "live", "recorded", "PositionView.hold"})

    def to_document(self) -> Document:
        positions = ("id", "position", "entry", "mark", "margin", "unrealised", "of the entry", "exits", "opened")
        orders = ("id", "order", "price", "margin", "placed")
        balances = ("exchange", "cash", "equity", "margin open", "margin pending", "free")
        unknown = None if self.unknown is None else ("the whole", foreign(f"unknown: {self.unknown}", Tone.BAD))
        return document(
            foreign(f"Paper book, as of {self.as_of} · {self.origin}"),
            lines(*map(foreign, self.said)),
            table(positions, map(_position_row, self.positions), spare=("opened", "margin"))
            if self.positions
            else lines("no position is open"),
            section("Orders that rest", table(orders, map(_order_row, self.pending), spare=("placed",)))
            if self.pending
            else None,
            section(
                "Cash",
                table(balances, map(_balance_row, self.purses), spare=("margin pending",)),
                facts(
                    *(
                        (
                            "in liquidity",
                            f"{quantity_text(pool.quantity)} {Symbol(pool.symbol).base}, {money(pool.usd).text}",
                        )
                        for pool in self.liquidity
                    ),
                    unknown,
                    ("equity", money(self.equity_usd)),
                    ("exposure", money(self.exposure_usd)),
                    ("leverage", bad("unknown") if self.leverage is None else number(self.leverage, unit="×")),
                ),
            ),
            notes=map(foreign, self.notes),
            as_of=self.as_of,
        )


def _position_row(position: PositionView) -> tuple[str | Value, ...]:
    currency = position.currency
    exits = (
        None if position.stop is None else f"stop {money(position.stop, currency).text}",
        None if position.target is None else f"target {money(position.target, currency).text}",
        None if position.hold_until is None else f"until {position.hold_until}",
    )
    return (
        id_(position.id),
        f"{position.side} {quantity_text(position.quantity)} {Symbol(position.symbol).base} "
        f"{position.leverage:g}× {position.exchange}",
        money(position.entry, currency),
        money(position.mark, currency),
        money(position.margin, currency),
        gain(position.unrealised, currency),
        percent(position.gain_pct, signed=True),
        ", ".join(filter(None, exits)) or "–",
        position.opened,
    )


def _order_row(order: OrderView) -> tuple[str | Value, ...]:
    return (
        id_(order.id),
        f"{order.side} {quantity_text(order.quantity)} {Symbol(order.symbol).base} "
        f"{order.leverage:g}× {order.exchange}",
        money(order.price, order.currency),
        money(order.margin, order.currency),
        order.placed,
    )


def _balance_row(balance: BalanceView) -> tuple[str | Value, ...]:
    amounts = (balance.cash, balance.equity, balance.margin_open, balance.margin_pending, balance.free)
    return (balance.exchange, *(money(amount, balance.currency) for amount in amounts))


@dataclass(frozen=True, slots=True)
class _Page:
    moment: Millis
    book: TradingBook
    liquidated: tuple[PositionClosed, ...]
    account: Account
    """Without what is liquidated."""
    prices: Prices
    notes: tuple[str, ...]


@dataclass(eq=False)
class PaperBookDesk:
    desk: TradingDesk
    store: SeriesStore
    log: AccountLog
    inventory: Inventory
    fees: Fees = field(default_factory=Fees)

    async def show(self, as_of: str | None = None) -> BookView:
        moment = await self.desk.newest_moment(as_of)
        own = self._recorded_moment(await self.log.history(paper_account(self.desk.origin)), as_of)
        at, notes = (moment.as_of, moment.notes) if own is None else (own, ())
        prices = await read_prices(self.store, at, recorded=own is not None)
        # A market's moment is looked at from before it; an account's own last one holds what happened then.
        account, ended = await self._read_account(self.desk.origin, at if own is None else Millis(at + 1), prices)
        said = tuple(f"{close.id} is liquidated: its margin is lost" for close in ended)
        view = self._view(account, at, prices, (*notes, *said))
        return view.model_copy(update={"recorded": own is not None})

    async def add(
        self,
        symbol: str,
        side: str,
        margin: str,
        *,
        leverage: str = "1",
        entry: str | None = None,
        exchange: str = "binance",
        stop: str | None = None,
        target: str | None = None,
        hold: str | None = None,
        as_of: str | None = None,
        pending: bool = False,
    ) -> BookView:
        """Open a position, or let an order rest at its price. Margin and prices in the exchange's own currency. A cycle
        ends a position whose stop, target or hold is passed."""
        what, way = parse_symbol(symbol), arguments.parse_word(Side, side, "side; write long or short")
        where = parse_exchange(exchange)
        put, times = float(arguments.parse_amount(margin)), _parse_leverage(leverage)
        if pending and entry is None:
            raise UsageError("An order that rests waits for a price; give --entry PRICE.")
        if pending and (stop, target, hold) != (None, None, None):
            raise UsageError("--stop, --target and --hold belong to a position; an order that rests has none.")
        page = await self._open_page(as_of, (what,))
        price, source = self._price(page, what, where, entry, "--entry")
        _check_entry(price, page.prices.of(what, where), pending)
        quantity = put * times / price
        fee = self._fee(where, quantity * price)
        self._check_affordable(page, where, put, fee)
        number = page.book.count + 1
        words = (what, where, way, quantity, price, times, page.moment, pending)
        shape: dict[str, Any] = {
            "id": new_id("ord" if pending else "pos", self.desk.origin, number, *words),
            "symbol": what,
            "exchange": where,
            "side": way,
            "quantity": quantity,
            "leverage": times,
        }
        if pending:
            change: BookChange = OrderPlaced(
                at=page.moment, order=RestingOrder(**shape, price=price, placed=page.moment)
            )
            done = f"{shape['id']} rests"
        else:
            exits = _parse_exits(way, price, times, stop, target, hold)
            position = Holding(**shape, entry=price, opened=page.moment, **exits)
            change = PositionOpened(at=page.moment, position=position, fee=fee)
            done = f"{shape['id']} is open, for a fee of {format_money(fee, where)}"
        said = (
            f"{done}: {way} {quantity_text(quantity)} {what.base} at {price:,.2f} ({source}), "
            f"margin {format_money(put, where)} at {where}, {times:g}×"
        )
        return await self._write_changes(page, [change], [said])

    async def close(self, which: str, at: str | None = None, as_of: str | None = None) -> BookView:
        """Close a position or take an order back, by its id; or everything of a symbol."""
        page = await self._open_page(as_of, DEFAULT_SYMBOLS)
        account, name = page.account, which.strip()
        symbol = None
        with suppress(UsageError):
            symbol = parse_symbol(name)
        if symbol is None:
            position, order = _find_by_id(page, name)
            positions, orders = ([position] if position else []), ([order] if order else [])
        else:
            positions = [position for position in account.positions if position.symbol is symbol]
            orders = [order for order in page.book.resting.values() if order.symbol is symbol]
            if not positions and not orders:
                raise NotFound(f"Nothing of {symbol} is open or rests at {format_moment(page.moment)}.")
            if at is not None and len({position.exchange for position in positions}) > 1:
                raise UsageError(f"{symbol} is held in two currencies; close each by its id, with a price of its own.")
        changes: list[BookChange] = []
        said: list[str] = []
        for order in orders:
            changes.append(OrderCancelled(at=page.moment, id=order.id))
            said.append(f"{order.id} rests no longer")
        for held in positions:
            price, source = self._price(page, held.symbol, held.exchange, at, "--at")
            fee = self._fee(held.exchange, held.quantity * price)
            changes.append(PositionClosed(at=page.moment, id=held.id, price=price, fee=fee))
            result = format_money(unrealised_pnl(held, price) - fee, held.exchange)
            said.append(
                f"{held.id} is closed at {price:,.2f} ({source}): {result} after a fee of "
                f"{format_money(fee, held.exchange)}"
            )
        return await self._write_changes(page, changes, said)

    async def liquidity(self, symbol: str, quantity: str, as_of: str | None = None) -> BookView:
        """State how much of a symbol's base the owner's liquidity positions hold; 0 is none."""
        what, amount = parse_symbol(symbol), _parse_quantity(quantity)
        page = await self._open_page(as_of, (what,))
        change = LiquidityStated(at=page.moment, symbol=what, quantity=amount)
        return await self._write_changes(page, [change], [f"liquidity positions hold {amount:g} {what.base}"])

    async def slots(self, origin: str, moment: Millis, present: bool, account: Account | None = None) -> list[Slot]:
        """The account for a bundle of that moment, and the fees where they are not the usual ones. `present`: of a live
        market, where the chain can be asked too. `account`: of a cycle that acts; None: the market's own."""
        if account is None:
            account, _ = await self._read_account(origin, moment, await read_prices(self.store, moment))
        slots = await self._account_slots(account, moment, present)
        binance, upbit = self.fees.binance, self.fees.upbit
        if self.fees != Fees():
            fees = FeesSlot(binance_maker=binance.maker, binance_taker=binance.taker, upbit=upbit.taker)
            slots.append(fees_slot(fees, moment))
        return slots

    # -- parts

    async def _account_slots(self, account: Account, moment: Millis, present: bool) -> list[Slot]:
        if isinstance(self.inventory, str):
            return account_slots(account, moment, notes=(self.inventory,))
        if not present:
            why = "liquidity positions are read in the present only; what was stated by hand counts"
            return account_slots(account, moment, notes=(why,))
        try:
            found = sum_inventory(await self.inventory())
        except UsageError as error:
            return account_slots(account, moment, notes=(f"liquidity positions are not read: {clause(error)}",))
        except ZunoError as error:
            return account_slots(account, moment, unread=clause(error))
        stated = {pool.symbol: pool.quantity for pool in account.liquidity}  # whichever is more: never counted as less
        most = {symbol: max(stated.get(symbol, 0.0), found.get(symbol, 0.0)) for symbol in DEFAULT_SYMBOLS}
        held = tuple(Liquidity(symbol=symbol, quantity=size) for symbol, size in most.items() if size)
        return account_slots(replace(account, liquidity=held), moment)

    def _fee(self, exchange: Venue, notional: float) -> float:
        """The taker's, either way: what is written by hand is done at once."""
        return notional * self.fees.at(exchange).taker / 100

    async def _open_page(self, as_of: str | None, symbols: Sequence[Symbol]) -> _Page:
        looked = await self.desk.newest_moment(as_of, symbols)
        book = await self.log.open_book(paper_account(self.desk.origin))
        newest = book.newest
        moment = looked.as_of
        own = self._recorded_moment(book, as_of)
        if own is not None:
            moment = own
        elif as_of is None and not self.desk.live(as_of):
            # A cycle at the end sees what was before it.
            moment = Millis(max(looked.as_of - 1, min(newest, looked.as_of)))
        if moment < newest:
            raise Refused(
                f"The book's newest change is of {format_moment(Millis(newest))} and {format_moment(moment)} is before "
                f"it; a book is written forward: give {format_moment(Millis(newest))} or a later moment."
            )
        prices = await read_prices(self.store, moment, recorded=own is not None)
        liquidated = await self._find_liquidated(book, moment, prices)
        return _Page(moment, book, liquidated, _without(book, liquidated), prices, looked.notes)

    def _recorded_moment(self, book: TradingBook, as_of: str | None) -> Millis | None:
        """Of an account in recorded time, where no moment is asked for."""
        return book.recorded_moment(live=self.desk.live(None)) if as_of is None else None

    async def _read_account(
        self, origin: str, moment: Millis, prices: Prices
    ) -> tuple[Account, tuple[PositionClosed, ...]]:
        """What was held strictly before a moment, and which positions were liquidated by then and nobody wrote it."""
        book = await read_before(self.log, paper_account(origin), moment)
        liquidated = await self._find_liquidated(book, moment, prices)
        return _without(book, liquidated), liquidated

    async def _find_liquidated(self, book: TradingBook, moment: Millis, prices: Prices) -> tuple[PositionClosed, ...]:
        """Positions of a person are not watched: each look finds what the market has done to them."""
        trades = [trade for trade in book.trades.values() if trade.manual and trade.margin and trade.opened <= moment]
        if not trades:
            return ()
        slices = [
            Slice(candles(BINANCE, trade.symbol, Timeframe.H1), Timeframe.H1.floor(trade.opened), moment)
            for trade in trades
        ]
        state = await self.store.read_many(slices, moment)
        found = (
            find_liquidation(trade, rows, or_none(prices.marks[trade.symbol]), moment)
            for trade, rows in zip(trades, state.rows, strict=True)
        )
        return tuple(close for close in found if close is not None)

    def _check_affordable(self, page: _Page, exchange: Venue, margin: float, fee: float) -> None:
        """`Refused` where margin and fee are more than is free; losses that are not taken count."""
        whole = mark_to_market(page.account, None, page.prices.marks, page.prices.krw_rate)
        if isinstance(whole, Missing):
            if any(held.exchange is exchange for held in page.account.positions):
                raise Refused(f"What is free at {exchange} is not known: {whole.reason}.")
            free = free_cash(page.account, exchange)
        else:
            free = whole.free[exchange]
            if (equity := whole.equity[exchange]) <= 0 and not (exchange is Venue("UPBIT") and page.account.krw > 0):
                raise Refused(
                    f"The equity at {exchange} is {format_money(equity, exchange)}: nothing can be opened on it."
                )
        check_affordable(exchange, to_decimal(margin), to_decimal(fee), to_decimal(free))

    def _price(self, page: _Page, symbol: Symbol, exchange: Venue, given: str | None, option: str) -> tuple[float, str]:
        if given is not None:
            return _parse_price(given), "as stated"
        price = page.prices.of(symbol, exchange)
        if isinstance(price, Missing):
            raise Refused(
                f"The market's price of {symbol} at {exchange} is not known at {format_moment(page.moment)} "
                f"({price.reason}); give {option} PRICE."
            )
        return price, page.prices.source_text(symbol, exchange)

    async def _write_changes(self, page: _Page, changes: Sequence[BookChange], said: Sequence[str]) -> BookView:
        """All of them tried before the first is written."""
        account = paper_account(self.desk.origin)
        events = [ManualChange(at=change.at, change=change) for change in (*page.liquidated, *changes)]
        before = page.book.count
        page.book.apply_all(events)
        await self.log.append(account, events, before)
        said = [*(f"{close.id} is liquidated: its margin is lost" for close in page.liquidated), *said]
        seen = f"seen by every cycle after {format_moment(page.moment)}"
        view = self._view(page.book.to_account(), page.moment, page.prices, (*page.notes, seen))
        return view.model_copy(update={"said": tuple(said)})

    def _view(self, account: Account, moment: Millis, prices: Prices, notes: Sequence[str]) -> BookView:
        whole = mark_to_market(account, None, prices.marks, prices.krw_rate)
        known = or_none(whole)
        leverage = None if known is None or not isfinite(known.leverage) else known.leverage
        said = [*notes, *(() if known is None else known.notes)]
        return BookView(
            synthetic=self.desk.origin.startswith("SYNTHETIC"),
            origin=self.desk.origin,
            as_of=iso(moment),
            positions=tuple(_position_view(position, prices) for position in account.positions),
            pending=tuple(derive(OrderView, order, currency=order.exchange.currency) for order in account.pending),
            liquidity=tuple(_inventory_view(pool, prices) for pool in account.liquidity),
            purses=tuple(_balance_view(account, exchange, known) for exchange in DEFAULT_VENUES),
            equity_usd=None if known is None else known.equity_usd,
            exposure_usd=None if known is None else known.exposure_usd,
            leverage=leverage,
            unknown=whole.reason if isinstance(whole, Missing) else None,
            notes=tuple(said),
        )


def sum_inventory(amounts: Mapping[str, Decimal]) -> dict[Symbol, float]:
    """How much of what the desk trades is among these token amounts, by base asset."""
    found: dict[Symbol, Decimal] = {}
    for token, amount in amounts.items():
        if (symbol := _BASES.get(token)) is not None:
            found[symbol] = found.get(symbol, Decimal(0)) + amount
    return {symbol: float(quantity) for symbol, quantity in found.items()}


def format_moment(moment: Millis) -> str:
    """A moment as people read it and `--as-of` takes it."""
    return iso(moment).removesuffix("Z").removesuffix(":00")


# -- what a person typed


def parse_exchange(text: str) -> Venue:
    return parse_venue(text)


def _parse_leverage(text: str) -> float:
    times = float(arguments.parse_amount(text.strip().lower().removesuffix("x")))
    if not 1 <= times <= MAX_MANUAL_LEVERAGE:
        raise Refused(f"A leverage of {times:g} is not between 1 and {MAX_MANUAL_LEVERAGE:g}.")
    return times


def _parse_price(text: str) -> float:
    price = float(arguments.parse_amount(text))
    if price > MOST_PRICE:
        raise UsageError(f"A price of {price:g} is above {MOST_PRICE:g}; check it.")
    return price


def _parse_exits(
    side: Side, entry: float, leverage: float, stop: str | None, target: str | None, hold: str | None
) -> dict[str, float | str | None]:
    """`Refused` where the stop is not behind the entry or behind the liquidation, or the target not ahead of it."""
    sign = side.sign
    levels = {name: None if text is None else _parse_price(text) for name, text in (("stop", stop), ("target", target))}
    for name, ahead in (("stop", -1), ("target", 1)):
        level = levels[name]
        if level is not None and sign * ahead * (level - entry) <= 0:
            place = "below" if sign * ahead < 0 else "above"
            raise Refused(f"A {side} from {entry:,.2f} has its {name} {place} the entry, not at {level:,.2f}.")
    liquidation = entry * (1 - sign * liquidation_distance(leverage, side))
    if (level := levels["stop"]) is not None and sign * (level - liquidation) <= 0:
        raise Refused(
            f"A {side} from {entry:,.2f} at {leverage:g}× is liquidated at {liquidation:,.2f}; its stop has to be "
            f"{'above' if sign > 0 else 'below'} that, not at {level:,.2f}."
        )
    longest = None if hold is None else hold.strip().lower()
    if longest is not None and not parse_hours(longest):
        raise UsageError(f"{plain_text(longest, 40)!r} is no holding time; write 12h, 5d or 6w.")
    return {"stop": levels["stop"], "take": levels["target"], "hold": longest}


def _parse_quantity(text: str) -> float:
    digits = text.strip().replace(",", "")
    return 0.0 if digits and not digits.strip("0.") and digits != "." else float(arguments.parse_amount(text))


def _find_by_id(page: _Page, id: str) -> tuple[Holding | None, RestingOrder | None]:
    if id.startswith("ord_"):
        return None, find_resting(page.book, plain_text(id, 40))
    for holding in page.account.positions:
        if holding.id == id:
            return holding, None
    raise NotFound(f"No position {plain_text(id, 40)} is open; `zuno trade book show` lists those that are.")


def _without(book: TradingBook, liquidated: Sequence[PositionClosed]) -> Account:
    account = book.to_account()
    if not liquidated:
        return account
    gone = {close.id for close in liquidated}
    lost = sum((book.trades[id].margin for id in gone), Decimal(0))
    held = tuple(holding for holding in account.positions if holding.id not in gone)
    return replace(account, usd=float(Decimal(repr(account.usd)) - lost), positions=held)


def _check_entry(price: float, mark: Known[float], pending: bool) -> None:
    """`Refused` for an entry far from the mark; where that is not known, what is stated counts."""
    most = MAX_ORDER_AWAY if pending else MAX_ENTRY_AWAY
    if isinstance(mark, Missing) or abs(price / mark - 1) <= most:
        return
    raise Refused(
        f"An entry at {price:,.2f} is {abs(price / mark - 1):.0%} from the mark of {mark:,.2f}; "
        f"up to {most:.0%} is allowed."
    )


# -- views


def _position_view(holding: Holding, prices: Prices) -> PositionView:
    mark = or_none(prices.of(holding.symbol, holding.exchange))
    gain = None if mark is None else unrealised_pnl(holding, mark)
    return derive(
        PositionView,
        holding,
        currency=holding.exchange.currency,
        mark=mark,
        unrealised=gain,
        gain_pct=None if gain is None else gain / (holding.quantity * holding.entry) * 100,
        target=holding.take,
        hold_until=hold_until(holding.opened, holding.hold),
    )


def _inventory_view(pool: Liquidity, prices: Prices) -> InventoryView:
    mark = or_none(prices.marks[pool.symbol])
    return InventoryView(symbol=pool.symbol, quantity=pool.quantity, usd=None if mark is None else pool.quantity * mark)


def _balance_view(account: Account, exchange: Venue, marked: MarkedAccount | None) -> BalanceView:
    margin = margin_at(account, exchange)
    return BalanceView(
        exchange=exchange,
        currency=exchange.currency,
        cash=account.usd if exchange is Venue("BINANCE") else account.krw,
        equity=None if marked is None else marked.equity[exchange],
        margin_open=margin.open,
        margin_pending=margin.pending,
        free=free_cash(account, exchange) if marked is None else marked.free[exchange],
    )


async def read_before(log: AccountLog, account: str, moment: Millis) -> TradingBook:
    """What was written of strictly before a moment: a later event never alters it."""
    newest = await log.history(account)
    if newest.newest < moment or not newest.count:
        return newest
    book = TradingBook()
    book.apply_all(takewhile(lambda event: event.at < moment, await log.events(account)))
    return book
