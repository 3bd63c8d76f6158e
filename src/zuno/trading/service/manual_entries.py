"""Entries by hand: positions, orders and liquidity that a person writes into a paper account. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from zuno.kernel import arguments
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import NotFound, Refused, UsageError
from zuno.kernel.numbers_text import price_text, quantity_text
from zuno.kernel.text import plain_text
from zuno.markets.market import Symbol, parse_symbol
from zuno.markets.venues import Venue, parse_venue
from zuno.trading.model import account
from zuno.trading.model.known import Missing, pick
from zuno.trading.model.market import Side, parse_hours
from zuno.trading.model.orders import to_decimal
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.margin import liquidation_distance
from zuno.trading.rules.trading_book import MAX_MANUAL_LEVERAGE, check_affordable, find_resting, format_money
from zuno.trading.service.account_page import AccountPage, format_moment

MOST_PRICE: Final = 1e12
MAX_ENTRY_AWAY: Final = 0.10
"""How far from the mark a position may be opened, as a share of it."""
MAX_ORDER_AWAY: Final = 0.50
"""How far from it an order may rest."""


class ManualEntry(Protocol):
    def plan(self, page: AccountPage, fees: Fees) -> tuple[Sequence[account.BookChange], Sequence[str]]:
        """The changes of an account at its page's moment, and what they are in words. `Refused` where there can be
        none. Fees are the taker's: what is written by hand is done at once."""


@dataclass(frozen=True, slots=True)
class OpeningEntry:
    """A position that was opened, or an order that rests at its price. Margin and prices in the exchange's own
    currency. A cycle ends a position whose stop, target or hold is passed."""

    symbol: Symbol
    side: Side
    exchange: Venue
    margin: float
    leverage: float
    entry: float | None
    """None: the mark."""
    stop: float | None
    target: float | None
    hold: str | None
    pending: bool

    @classmethod
    def parse(
        cls,
        markets: Iterable[Symbol],
        symbol: str,
        side: str,
        margin: str,
        *,
        leverage: str = "1",
        entry: str | None = None,
        exchange: str = "",
        stop: str | None = None,
        target: str | None = None,
        hold: str | None = None,
        pending: bool = False,
    ) -> OpeningEntry:
        """`markets`: those of the desk. Without an exchange it is the market's own."""
        if pending and entry is None:
            raise UsageError("An order that rests waits for a price; give --entry PRICE.")
        if pending and (stop, target, hold) != (None, None, None):
            raise UsageError("--stop, --target and --hold belong to a position; an order that rests has none.")
        longest = None if hold is None else hold.strip().lower()
        if longest is not None and not parse_hours(longest):
            raise UsageError(f"{plain_text(longest, 40)!r} is no holding time; write 12h, 5d or 6w.")
        times = float(arguments.parse_amount(leverage.strip().lower().removesuffix("x")))
        if not 1 <= times <= MAX_MANUAL_LEVERAGE:
            raise Refused(f"A leverage of {times:g} is not between 1 and {MAX_MANUAL_LEVERAGE:g}.")
        market = parse_symbol(symbol, markets)
        return cls(
            market,
            arguments.parse_word(Side, side, "side; write long or short"),
            parse_venue(exchange) if exchange else market.venue,
            float(arguments.parse_amount(margin)),
            times,
            _parse_price(entry),
            _parse_price(stop),
            _parse_price(target),
            longest,
            pending,
        )

    def plan(self, page: AccountPage, fees: Fees) -> tuple[Sequence[account.BookChange], Sequence[str]]:
        price, source = _find_price(page, self.symbol, self.exchange, self.entry, "--entry")
        self._check_levels(page, price)
        quantity = self.margin * self.leverage / price
        fee = quantity * price * fees.at(self.exchange).taker / 100
        _check_free(page, self.exchange, self.margin, fee)
        words = (self.symbol, self.exchange, self.side, quantity, price, self.leverage, page.at, self.pending)
        name = digest(canonical([page.name, page.book.count + 1, *words]))[:8]
        shape = pick(self, "symbol", "exchange", "side", "leverage")
        shape |= {"id": f"{'ord' if self.pending else 'pos'}_{name}", "quantity": quantity}
        if self.pending:
            order = account.RestingOrder(**shape, price=price, placed=page.at)
            change: account.BookChange = account.OrderPlaced(at=page.at, order=order)
            done = f"{order.id} rests"
        else:
            exits = {"stop": self.stop, "take": self.target, "hold": self.hold}
            position = account.Holding(**shape, entry=price, opened=page.at, **exits)
            change = account.PositionOpened(at=page.at, position=position, fee=fee)
            done = f"{position.id} is open, for a fee of {format_money(fee, self.exchange)}"
        line = (
            f"{done}: {self.side} {quantity_text(quantity)} {self.symbol.base} at {price_text(price)} ({source}), "
            f"margin {format_money(self.margin, self.exchange)} at {self.exchange}, {self.leverage:g}×"
        )
        return [change], [line]

    def _check_levels(self, page: AccountPage, entry: float) -> None:
        """`Refused` for an entry far from a known mark, a stop that is not behind it and ahead of the liquidation, or
        a target that is not ahead."""
        mark, most = page.prices.of(self.symbol, self.exchange), MAX_ORDER_AWAY if self.pending else MAX_ENTRY_AWAY
        if not isinstance(mark, Missing) and abs(entry / mark - 1) > most:
            raise Refused(
                f"An entry at {price_text(entry)} is {abs(entry / mark - 1):.0%} from the mark of {price_text(mark)}; "
                f"up to {most:.0%} is allowed."
            )
        sign, begins = self.side.sign, f"A {self.side} from {price_text(entry)}"
        for name, level, ahead in (("stop", self.stop, -sign), ("target", self.target, sign)):
            if level is not None and ahead * (level - entry) <= 0:
                place = "below" if ahead < 0 else "above"
                raise Refused(f"{begins} has its {name} {place} the entry, not at {price_text(level)}.")
        liquidation = entry * (1 - sign * liquidation_distance(self.leverage, self.side))
        if self.stop is not None and sign * (self.stop - liquidation) <= 0:
            raise Refused(
                f"{begins} at {self.leverage:g}× is liquidated at {price_text(liquidation)}; its stop has to be "
                f"{'above' if sign > 0 else 'below'} that, not at {price_text(self.stop)}."
            )


@dataclass(frozen=True, slots=True)
class ClosingEntry:
    """A position that was closed or an order that was taken back, by its id; or everything of a symbol."""

    which: str
    price: float | None = None
    """None: the mark."""

    @classmethod
    def parse(cls, which: str, at: str | None) -> ClosingEntry:
        return cls(plain_text(which, 64).strip(), _parse_price(at))

    def plan(self, page: AccountPage, fees: Fees) -> tuple[Sequence[account.BookChange], Sequence[str]]:
        book, symbol = page.book, None
        with suppress(UsageError):
            symbol = parse_symbol(self.which, page.symbols)
        if symbol is None:
            orders = [find_resting(book, self.which)] if self.which.startswith("ord_") else []
            trades = [book.trades[self.which]] if self.which in book.trades else []
            if not trades and not orders:
                raise NotFound(f"No position {self.which} is open; `zuno trade positions` lists those that are.")
        else:
            trades = [trade for trade in book.trades.values() if trade.symbol is symbol]
            orders = [order for order in book.resting.values() if order.symbol is symbol]
            if not trades and not orders:
                raise NotFound(f"Nothing of {symbol} is open or rests at {format_moment(page.at)}.")
            if self.price is not None and len({trade.exchange.currency for trade in trades}) > 1:
                raise UsageError(f"{symbol} is held in several currencies; close each by its id, with its own price.")
        changes: list[account.BookChange] = [account.OrderCancelled(at=page.at, id=order.id) for order in orders]
        report = [f"{order.id} rests no longer" for order in orders]
        for trade in trades:
            price, source = _find_price(page, trade.symbol, trade.exchange, self.price, "--at")
            fee = float(trade.quantity) * price * fees.at(trade.exchange).taker / 100
            changes.append(account.PositionClosed(at=page.at, id=trade.id, price=price, fee=fee))
            gain = float(trade.unrealised_pnl(to_decimal(price))) - fee
            net, paid = (format_money(amount, trade.exchange) for amount in (gain, fee))
            report.append(f"{trade.id} is closed at {price_text(price)} ({source}): {net} after a fee of {paid}")
        return changes, report


@dataclass(frozen=True, slots=True)
class LiquidityAmount:
    """How much of a symbol's base currency the owner's liquidity positions hold; 0 is none."""

    symbol: Symbol
    quantity: float

    @classmethod
    def parse(cls, markets: Iterable[Symbol], symbol: str, quantity: str) -> LiquidityAmount:
        digits = quantity.strip().replace(",", "")
        nothing = "0" in digits and not digits.strip("0.")
        return cls(parse_symbol(symbol, markets), 0.0 if nothing else float(arguments.parse_amount(quantity)))

    def plan(self, page: AccountPage, fees: Fees) -> tuple[Sequence[account.BookChange], Sequence[str]]:
        change = account.LiquidityStated(at=page.at, symbol=self.symbol, quantity=self.quantity)
        return [change], [f"liquidity positions hold {self.quantity:g} {self.symbol.base}"]


def _parse_price(text: str | None) -> float | None:
    price = None if text is None else float(arguments.parse_amount(text))
    if price is not None and price > MOST_PRICE:
        raise UsageError(f"A price of {price:g} is above {MOST_PRICE:g}; check it.")
    return price


def _find_price(
    page: AccountPage, symbol: Symbol, exchange: Venue, given: float | None, option: str
) -> tuple[float, str]:
    if given is not None:
        return given, "as stated"
    price = page.prices.of(symbol, exchange)
    if isinstance(price, Missing):
        raise Refused(
            f"The market's price of {symbol} at {exchange} is not known at {format_moment(page.at)} "
            f"({price.reason}); give {option} PRICE."
        )
    source, age = page.prices.find_source(symbol, exchange) or ("stored", 0)
    return price, f"{source}, {age} s old"


def _check_free(page: AccountPage, exchange: Venue, margin: float, fee: float) -> None:
    """`Refused` where margin and fee are more than is free; losses that are not taken count."""
    book, marks = page.book, page.marks_at(exchange)
    if exchange not in book.venues:
        raise Refused(f"The account has no money at {exchange}; it has some at {', '.join(book.venues)}.")
    if marks is None and not exchange.spot:
        raise Refused(f"What is free at {exchange} is not known: a position there has no mark.")
    if marks is not None and (equity := book.equity(exchange, marks)) <= 0:
        worth = format_money(float(equity), exchange)
        raise Refused(f"The equity at {exchange} is {worth}: nothing can be opened on it.")
    check_affordable(exchange, to_decimal(margin), to_decimal(fee), book.free(exchange, marks or {}))
