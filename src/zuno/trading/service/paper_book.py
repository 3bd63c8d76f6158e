"""The paper book as a person keeps it: open, close, state, look; and the account that a cycle is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeAlias

from zuno.kernel import arguments
from zuno.kernel.errors import Refused, Unknown, Usage, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View
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
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import (
    HOUR_MS,
    Side,
    Symbol,
    parse_symbol,
)
from zuno.trading.ports.account import PaperBook
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.account import margin_at, mark_to_market, unrealised_pnl
from zuno.trading.rules.exits import parse_hours
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.margin import liquidation_distance
from zuno.trading.rules.paper_book import (
    MAX_LEVERAGE,
    apply_change,
    find_order,
    find_position,
    format_money,
    free_cash,
    new_id,
)
from zuno.trading.run.record import MarketMoment
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.features_view import iso
from zuno.trading.service.origin_view import OriginView
from zuno.trading.service.prices import Prices, read_prices

MOST_PRICE: Final = 1e12
_EVER: Final = Millis(2**53)
_BASES: Final[Mapping[str, Symbol]] = {
    "ETH": Symbol.ETHUSDT,
    "WETH": Symbol.ETHUSDT,
    "WBTC": Symbol.BTCUSDT,
    "cbBTC": Symbol.BTCUSDT,
}
"""Tokens that move with what the desk trades."""

Inventory: TypeAlias = Callable[[], Awaitable[Mapping[str, Decimal]]] | str
"""Reads the token amounts in the owner's liquidity positions, by verified symbol, or says why none are read."""


class PositionView(View):
    """A position at the market's price. Money in the exchange's own currency; what cannot be marked is null."""

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
    gain_pct: float | None
    """Of the entry, before leverage."""
    stop: float | None
    target: float | None
    hold: str | None
    """Longest holding time, such as 5d."""
    hold_until: str | None
    opened: str


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
    placed: str


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


@dataclass(frozen=True, slots=True)
class _Page:
    """The book as somebody is about to write in it."""

    moment: Millis
    changes: tuple[BookChange, ...]
    account: Account
    prices: Prices
    notes: tuple[str, ...]


class PaperBookDesk:
    """One home's paper book of the market it reads."""

    def __init__(
        self, desk: TradingDesk, store: SeriesStore, book: PaperBook, inventory: Inventory, fees: Fees | None = None
    ) -> None:
        self._fees = fees or Fees()
        self._desk = desk
        self._store = store
        self._book = book
        self._inventory = inventory

    async def show(self, as_of: str | None = None) -> BookView:
        moment = await self._find_moment(as_of, Symbol)
        account = await self._book.at(self._desk.origin, moment.as_of)
        return self._view(account, moment.as_of, await read_prices(self._store, moment.as_of), moment.notes)

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
        what, way, where = parse_symbol(symbol), _parse_side(side), _parse_exchange(exchange)
        put, times = float(arguments.parse_amount(margin)), _parse_leverage(leverage)
        if pending and entry is None:
            raise Usage("An order that rests waits for a price; give --entry PRICE.")
        if pending and (stop, target, hold) != (None, None, None):
            raise Usage("--stop, --target and --hold belong to a position; an order that rests has none.")
        page = await self._open_page(as_of, (what,))
        price, source = self._price(page, what, where, entry, "--entry")
        quantity = put * times / price
        number = len(page.changes) + 1
        words = (what, where, way, quantity, price, times, page.moment, pending)
        shape: dict[str, Any] = {
            "id": new_id("ord" if pending else "pos", self._desk.origin, number, *words),
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
            fee = self._fee(where, quantity * price)
            exits = _parse_exits(way, price, times, stop, target, hold)
            position = Holding(**shape, entry=price, opened=page.moment, **exits)
            change = PositionOpened(at=page.moment, position=position, fee=fee)
            done = f"{shape['id']} is open, for a fee of {format_money(fee, where)}"
        said = (
            f"{done}: {way} {quantity:.6g} {what.base} at {price:,.2f} ({source}), margin {format_money(put, where)} "
            f"at {where}, {times:g}×"
        )
        return await self._write_changes(page, [change], [said])

    async def close(self, which: str, at: str | None = None, as_of: str | None = None) -> BookView:
        """Close a position or take an order back, by its id; or everything of a symbol."""
        page = await self._open_page(as_of, Symbol)
        account, name = page.account, which.strip()
        symbol = _symbol_or_none(name)
        if symbol is None:
            position, order = _find_by_id(account, name)
            positions, orders = ([position] if position else []), ([order] if order else [])
        else:
            positions = [position for position in account.positions if position.symbol is symbol]
            orders = [order for order in account.pending if order.symbol is symbol]
            if not positions and not orders:
                raise Unknown(f"Nothing of {symbol} is open or rests at {format_moment(page.moment)}.")
            if at is not None and len({position.exchange for position in positions}) > 1:
                raise Usage(f"{symbol} is held in two currencies; close each by its id, with a price of its own.")
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

    async def slots(self, origin: str, moment: Millis, present: bool) -> list[Slot]:
        """The account for a bundle of that moment, and the fees where they are not the usual ones. `present`: of a live
        market, where the chain can be asked too."""
        return [*await self._account_slots(origin, moment, present), *self._fee_slots(moment)]

    # -- parts

    def _fee_slots(self, moment: Millis) -> list[Slot]:
        binance, upbit = self._fees.binance, self._fees.upbit
        if self._fees == Fees():
            return []
        return [
            fees_slot(FeesSlot(binance_maker=binance.maker, binance_taker=binance.taker, upbit=upbit.taker), moment)
        ]

    async def _account_slots(self, origin: str, moment: Millis, present: bool) -> list[Slot]:
        account = await self._book.at(origin, moment)
        if isinstance(self._inventory, str):
            return account_slots(account, moment, notes=(self._inventory,))
        if not present:
            why = "liquidity positions are read in the present only; what was stated by hand counts"
            return account_slots(account, moment, notes=(why,))
        try:
            found = sum_inventory(await self._inventory())
        except Usage as error:
            return account_slots(account, moment, notes=(f"liquidity positions are not read: {_error_clause(error)}",))
        except ZunoError as error:
            return account_slots(account, moment, unread=_error_clause(error))
        return account_slots(_with_liquidity(account, found), moment)

    def _fee(self, exchange: Exchange, notional: float) -> float:
        """The taker's, either way: what is written by hand is done at once."""
        return notional * self._fees.at(exchange).taker / 100

    async def _find_moment(self, as_of: str | None, symbols: Sequence[Symbol] | type[Symbol]) -> MarketMoment:
        """The latest moment that is known of any of these; of a live market all marks are asked for once."""
        found: list[MarketMoment] = []
        refusal: Refused | Usage | None = None
        for symbol in symbols:
            try:
                found.append(await self._desk.moment(symbol, as_of))
            except (Refused, Usage) as error:  # nothing is recorded of it, or not then
                refusal = refusal or error
            if found and self._desk.live(as_of):
                break
        if refusal is not None and not found:
            raise refusal
        return max(found, key=lambda moment: moment.as_of)

    async def _open_page(self, as_of: str | None, symbols: Sequence[Symbol] | type[Symbol]) -> _Page:
        looked = await self._find_moment(as_of, symbols)
        changes = await self._book.changes(self._desk.origin)
        newest = changes[-1].at if changes else 0
        moment = looked.as_of
        if as_of is None and not self._desk.live(as_of):
            # A cycle at the end sees what was before it.
            moment = Millis(max(looked.as_of - 1, min(newest, looked.as_of)))
        if moment < newest:
            raise Refused(
                f"The book's newest change is of {format_moment(Millis(newest))} and {format_moment(moment)} is before "
                f"it; a book is written forward: give {format_moment(Millis(newest))} or a later moment."
            )
        account = await self._book.at(self._desk.origin, _EVER)
        return _Page(moment, changes, account, await read_prices(self._store, moment), looked.notes)

    def _price(
        self, page: _Page, symbol: Symbol, exchange: Exchange, given: str | None, option: str
    ) -> tuple[float, str]:
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
        account = page.account
        for change in changes:
            account = apply_change(account, change)
        for place, change in enumerate(changes, len(page.changes)):
            await self._book.write(self._desk.origin, change, place)
        seen = f"seen by every cycle after {format_moment(page.moment)}"
        view = self._view(account, page.moment, page.prices, (*page.notes, seen))
        return view.model_copy(update={"said": tuple(said)})

    def _view(self, account: Account, moment: Millis, prices: Prices, notes: Sequence[str]) -> BookView:
        whole = mark_to_market(account, None, prices.marks, prices.won)
        known = or_none(whole)
        equity = {} if known is None else known.equity
        leverage = None if known is None or not isfinite(known.leverage) else known.leverage
        said = [*notes, *(() if known is None else known.notes)]
        return BookView(
            synthetic=self._desk.origin.startswith("SYNTHETIC"),
            origin=self._desk.origin,
            as_of=iso(moment),
            positions=tuple(_position_view(position, prices) for position in account.positions),
            pending=tuple(map(_order_view, account.pending)),
            liquidity=tuple(_inventory_view(pool, prices) for pool in account.liquidity),
            purses=tuple(_balance_view(account, exchange, equity.get(exchange)) for exchange in Exchange),
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


def _with_liquidity(account: Account, found: Mapping[Symbol, float]) -> Account:
    """What was read, or what was stated where that is more: an exposure is never made smaller by being told twice."""
    stated = {pool.symbol: pool.quantity for pool in account.liquidity}
    most = {symbol: max(stated.get(symbol, 0.0), found.get(symbol, 0.0)) for symbol in Symbol}
    held = (Liquidity(symbol=symbol, quantity=size) for symbol, size in most.items() if size)
    return replace(account, liquidity=tuple(held))


def format_moment(moment: Millis) -> str:
    """A moment as people read it and `--as-of` takes it."""
    return iso(moment).removesuffix("Z").removesuffix(":00")


# -- what a person typed


def _parse_side(text: str) -> Side:
    try:
        return Side(text.strip().lower())
    except ValueError:
        raise Usage(f"{plain_text(text, 40)!r} is no side; write long or short.") from None


def _parse_exchange(text: str) -> Exchange:
    try:
        return Exchange(text.strip().upper())
    except ValueError:
        raise Usage(f"{plain_text(text, 40)!r} is no exchange of this desk; write binance or upbit.") from None


def _symbol_or_none(text: str) -> Symbol | None:
    try:
        return parse_symbol(text)
    except Usage:
        return None


def _parse_leverage(text: str) -> float:
    times = float(arguments.parse_amount(text.strip().lower().removesuffix("x")))
    if not 1 <= times <= MAX_LEVERAGE:
        raise Refused(f"A leverage of {times:g} is not between 1 and {MAX_LEVERAGE:g}.")
    return times


def _parse_price(text: str) -> float:
    price = float(arguments.parse_amount(text))
    if price > MOST_PRICE:
        raise Usage(f"A price of {price:g} is above {MOST_PRICE:g}; check it.")
    return price


def _parse_exits(
    side: Side, entry: float, leverage: float, stop: str | None, target: str | None, hold: str | None
) -> dict[str, float | str | None]:
    """`Refused` where the stop is not behind the entry or behind the liquidation, or the target not ahead of it."""
    sign = 1 if side is Side.LONG else -1
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
        raise Usage(f"{plain_text(longest, 40)!r} is no holding time; write 12h, 5d or 6w.")
    return {"stop": levels["stop"], "take": levels["target"], "hold": longest}


def _parse_quantity(text: str) -> float:
    digits = text.strip().replace(",", "")
    return 0.0 if digits and not digits.strip("0.") and digits != "." else float(arguments.parse_amount(text))


def _find_by_id(account: Account, id: str) -> tuple[Holding | None, RestingOrder | None]:
    if id.startswith("ord_"):
        return None, find_order(account, id)
    return find_position(account, plain_text(id, 40)), None


def _error_clause(error: ZunoError) -> str:
    return plain_text(str(error), 300).rstrip(".")


# -- views


def _position_view(holding: Holding, prices: Prices) -> PositionView:
    mark = or_none(prices.of(holding.symbol, holding.exchange))
    gain = None if mark is None else unrealised_pnl(holding, mark)
    return PositionView(
        id=holding.id,
        symbol=holding.symbol,
        exchange=holding.exchange,
        side=holding.side,
        quantity=holding.quantity,
        entry=holding.entry,
        leverage=holding.leverage,
        currency=holding.exchange.currency,
        margin=holding.margin,
        mark=mark,
        unrealised=gain,
        gain_pct=None if gain is None else gain / (holding.quantity * holding.entry) * 100,
        stop=holding.stop,
        target=holding.take,
        hold=holding.hold,
        hold_until=None if holding.hold is None else iso(Millis(holding.opened + parse_hours(holding.hold) * HOUR_MS)),
        opened=iso(holding.opened),
    )


def _order_view(order: RestingOrder) -> OrderView:
    return OrderView(
        id=order.id,
        symbol=order.symbol,
        exchange=order.exchange,
        side=order.side,
        quantity=order.quantity,
        price=order.price,
        leverage=order.leverage,
        currency=order.exchange.currency,
        margin=order.margin,
        placed=iso(order.placed),
    )


def _inventory_view(pool: Liquidity, prices: Prices) -> InventoryView:
    mark = or_none(prices.marks[pool.symbol])
    return InventoryView(symbol=pool.symbol, quantity=pool.quantity, usd=None if mark is None else pool.quantity * mark)


def _balance_view(account: Account, exchange: Exchange, equity: float | None) -> BalanceView:
    margin = margin_at(account, exchange)
    return BalanceView(
        exchange=exchange,
        currency=exchange.currency,
        cash=account.usd if exchange is Exchange.BINANCE else account.krw,
        equity=equity,
        margin_open=margin.open,
        margin_pending=margin.pending,
        free=free_cash(account, exchange),
    )
