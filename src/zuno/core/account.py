"""What the desk holds, marked to the market: equity, exposure, margin, and its position in the symbol of a cycle.

What cannot be marked makes the whole unknown, so that nobody takes new risk on half a sum. The won is the exception:
without it what is at Upbit counts nothing, which is less and never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import Final

from zuno.core.features import Features, fresh
from zuno.core.known import Known, Missing
from zuno.domain.account import Account, Holding, Resting
from zuno.domain.cycle import Exchange
from zuno.domain.errors import Malformed
from zuno.domain.trading import Marks, Side, Symbol, basis
from zuno.domain.units import Millis
from zuno.domain.venues import BINANCE
from zuno.messages.account import EQUITY, POSITIONS, PositionsSlot, account_in, read_equity, read_positions
from zuno.messages.bundle import Bundle
from zuno.messages.codec import Json

SIGN: Final[Mapping[Side, int]] = {Side.LONG: 1, Side.SHORT: -1}


@dataclass(frozen=True, slots=True)
class Margin:
    """What is tied up at one exchange, in its own currency."""

    open: float
    pending: float

    @property
    def total(self) -> float:
        return self.open + self.pending


@dataclass(frozen=True, slots=True)
class Position:
    """The desk's one position in a symbol, whatever exchanges carry it and however often it was topped up."""

    symbol: Symbol
    side: Side
    holdings: tuple[Holding, ...]

    @property
    def quantity(self) -> float:
        return fsum(one.quantity for one in self.holdings)

    @property
    def opened(self) -> Millis:
        """When the first of it was."""
        return min(one.opened for one in self.holdings)


@dataclass(frozen=True, slots=True)
class Standing:
    """The account as it stands at a moment of the market."""

    equity: Mapping[Exchange, float]
    """In each exchange's own currency, marked. Upbit's is zero without the won."""
    equity_usd: float
    """All of it. Liquidity positions are not in it: they are margin of nothing."""
    exposure_usd: float
    """Gross: positions, orders that rest and add, and the inventory of liquidity positions."""
    margin: Mapping[Exchange, Margin]
    position: Position | None
    """In the symbol that is asked about."""
    gain_pct: float | None
    """What that position has gained of its entry, before leverage; null without one or, at Upbit alone, the won."""
    pending: tuple[Resting, ...]
    """Orders in the symbol that is asked about."""
    marks: Mapping[Symbol, float]
    """In dollars: of the symbol, and of everything that is held."""
    notes: tuple[str, ...] = ()

    @property
    def leverage(self) -> float:
        """Of the whole account; without end where nothing is left to carry an exposure."""
        if not self.exposure_usd:
            return 0.0
        return self.exposure_usd / self.equity_usd if self.equity_usd > 0 else inf


def standing(bundle: Bundle, features: Features) -> Known[Standing]:
    """What the desk holds by the slots of a bundle, at the marks of the bundle."""
    held = _held(bundle)
    if isinstance(held, Missing):
        return held
    if held.slot.unread is not None:
        return Missing(f"what the liquidity positions hold could not be read: {held.slot.unread}")
    won = features.won
    rate = won if isinstance(won, Missing) else won.value
    marks = {symbol: mark_of(bundle, symbol) for symbol in Symbol}
    return marked(held.account, bundle.symbol, marks, rate, held.slot.notes)


def account_of(bundle: Bundle) -> Known[Account]:
    """The account in the slots of a bundle. It is known where the market is not: an exit needs no mark."""
    held = _held(bundle)
    return held if isinstance(held, Missing) else held.account


def position_in(account: Account, symbol: Symbol) -> Position | None:
    """The desk's position in a symbol. The book keeps one side of a symbol only."""
    holdings = tuple(one for one in account.positions if one.symbol is symbol)
    return Position(symbol, holdings[0].side, holdings) if holdings else None


def mark_of(bundle: Bundle, symbol: Symbol) -> Known[float]:
    """What the futures exchange marks positions at, in dollars."""
    rows = fresh(bundle, basis(BINANCE, symbol))
    if isinstance(rows, Missing):
        return rows
    return mark_in(rows[-1]) if rows else Missing(f"{basis(BINANCE, symbol)} has no row")


def mark_in(row: Marks) -> Known[float]:
    return row.mark if 0 < row.mark < inf else Missing(f"a mark of {row.mark} is no price")


def marked(
    account: Account,
    symbol: Symbol | None,
    marks: Mapping[Symbol, Known[float]],
    won: Known[float],
    notes: Iterable[str] = (),
) -> Known[Standing]:
    """An account at these marks, as somebody looks at it who asks about a symbol. `won`: for one dollar."""
    prices: dict[Symbol, float] = {}
    for one in dict.fromkeys((*([] if symbol is None else [symbol]), *_symbols(account))):
        mark = marks.get(one, Missing("nobody asked"))
        if isinstance(mark, Missing):
            return Missing(f"{one} has no mark: {mark.reason}")
        prices[one] = mark
    said = list(notes)
    rate = won if isinstance(won, Missing) or 0 < won < inf else Missing(f"{won} won for a dollar is no rate")
    upbit = dollars = 0.0
    if isinstance(rate, Missing):
        said.append(f"what is at {Exchange.UPBIT} counts nothing: {rate.reason}")
    else:
        upbit = account.krw + fsum(one.quantity * prices[one.symbol] * rate for one in _at(account, Exchange.UPBIT))
        dollars = upbit / rate
    binance = account.usd + fsum(unrealised(one, prices[one.symbol]) for one in _at(account, Exchange.BINANCE))
    position = None if symbol is None else position_in(account, symbol)
    return Standing(
        equity={Exchange.BINANCE: binance, Exchange.UPBIT: upbit},
        equity_usd=binance + dollars,
        exposure_usd=_exposure(account, prices),
        margin={exchange: margin_at(account, exchange) for exchange in Exchange},
        position=position,
        gain_pct=None if position is None else _gain(position, prices[position.symbol], rate),
        pending=tuple(one for one in account.pending if one.symbol is symbol),
        marks=prices,
        notes=tuple(said),
    )


def unrealised(holding: Holding, price: float) -> float:
    """What a position would bring beyond its entry, at a price in its own currency, before fees."""
    return SIGN[holding.side] * holding.quantity * (price - holding.entry)


def margin_at(account: Account, exchange: Exchange) -> Margin:
    return Margin(
        fsum(one.margin for one in _at(account, exchange)),
        fsum(one.margin for one in account.pending if one.exchange is exchange),
    )


# -- parts


@dataclass(frozen=True, slots=True)
class _Held:
    account: Account
    slot: PositionsSlot


def _held(bundle: Bundle) -> Known[_Held]:
    contents: list[Json] = []
    for name in (POSITIONS, EQUITY):
        slot = next((one for one in bundle.slots if one.name == name), None)
        if slot is None:
            return Missing(f"the desk's {name}: {bundle.why_absent(name) or 'nobody looked'}")
        contents.append(slot.content)
    try:
        held, cash = read_positions(contents[0]), read_equity(contents[1])
    except Malformed as error:
        return Missing(str(error).rstrip("."))
    return _Held(account_in(held, cash), held)


def _at(account: Account, exchange: Exchange) -> list[Holding]:
    return [one for one in account.positions if one.exchange is exchange]


def _symbols(account: Account) -> list[Symbol]:
    adding = [one.symbol for one in account.pending if not one.reduce_only]
    return [*(one.symbol for one in account.positions), *adding, *(one.symbol for one in account.liquidity)]


def _exposure(account: Account, prices: Mapping[Symbol, float]) -> float:
    """Gross, by quantity: what is bought with won moves with the same price."""
    sizes = [(one.symbol, one.quantity) for one in account.positions]
    sizes += [(one.symbol, one.quantity) for one in account.pending if not one.reduce_only]
    sizes += [(one.symbol, one.quantity) for one in account.liquidity]
    return fsum(abs(quantity) * prices[symbol] for symbol, quantity in sizes)


def _gain(position: Position, mark: float, won: Known[float]) -> float | None:
    """Each part of it against its own entry, weighed by its size."""
    parts: list[tuple[float, float]] = []
    for one in position.holdings:
        rate = 1.0 if one.exchange is Exchange.BINANCE else won
        if not isinstance(rate, Missing):
            parts.append((one.quantity, SIGN[one.side] * (mark * rate - one.entry) / one.entry * 100))
    size = fsum(quantity for quantity, _ in parts)
    return fsum(quantity * gain for quantity, gain in parts) / size if size else None
