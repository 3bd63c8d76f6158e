"""The account marked to market: equity, gross exposure, margin, and the position in the symbol of a cycle. A missing
mark makes the whole account unknown; a balance in a currency without a rate counts as zero."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import fsum, inf
from typing import Final, TypeVar

from zuno.kernel.canonical import Json
from zuno.kernel.errors import Malformed
from zuno.markets.feeds import ROWS
from zuno.markets.market import Catalogue, Symbol
from zuno.markets.routes import DEFAULT_ROUTES, Routes
from zuno.markets.venues import Venue
from zuno.trading.measure.features import Features, fresh_rows
from zuno.trading.measure.portable import nano_log, round_digits
from zuno.trading.model.account import (
    EQUITY,
    MARKETS,
    POSITIONS,
    Account,
    EquitySlot,
    Holding,
    MarketsSlot,
    OtherSleeves,
    PositionsSlot,
    RestingOrder,
    read_slot,
)
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.model.market import MarkAndIndex, Side, Timeframe
from zuno.trading.model.wanted import RATE_SERIES, mark_series, own_candles

N = TypeVar("N", float, Decimal)
DOLLAR: Final = "USD"
STABLE: Final = "USDC"
"""The coin whose price says whether a dollar is one."""
GROUP_DAYS: Final = 30
GROUP_CORRELATION: Final = Fraction(7, 10)
"""Of daily log returns over so many days, above which markets are one group."""
Rates = Mapping[str, Known[float]]
"""How much of a currency a dollar is; of the dollar 1."""


def rate_of(venue: Venue, rates: Mapping[str, Known[N]]) -> Known[N]:
    rate = rates.get(venue.currency)
    if rate is None:
        return Missing(f"nobody said what a dollar is in {venue.currency}")
    if isinstance(rate, Missing) or 0 < rate < inf:
        return rate
    return Missing(f"{rate} {venue.currency} for a dollar is no rate")


def currency_rates(quoted: Mapping[str, Known[float]]) -> Rates:
    """From rates as their sources quote them."""
    rates: dict[str, Known[float]] = {DOLLAR: 1.0, **quoted}
    for currency, rate in quoted.items():
        if not isinstance(rate, Missing) and ROWS[RATE_SERIES[currency].venue].quote != currency:
            rates[currency] = 1 / rate if rate > 0 else Missing(f"{rate} is no price")
    return rates


def quoted_rates(features: Features) -> dict[str, Known[float]]:
    return {currency: figure_in(level, "value") for currency, level in features.rates.items()}


@dataclass(frozen=True, slots=True)
class Margin:
    """Margin in use at one exchange, in its own currency."""

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
        return fsum(holding.quantity for holding in self.holdings)


@dataclass(frozen=True, slots=True)
class WholeAccount:
    """All sleeves of an account together, in dollars."""

    equity_usd: float
    exposure_usd: float
    others_net_usd: Mapping[Symbol, float]
    """Of the sleeves beside the debate, longs less shorts, orders that would add included."""


@dataclass(frozen=True, slots=True)
class MarkedAccount:
    """The debate's sleeve, which is the account where there is no other."""

    equity: Mapping[Venue, float]
    """In each exchange's own currency, marked. Zero without a rate of its currency."""
    equity_usd: float
    """Total equity. Liquidity positions are not counted: they cannot serve as margin."""
    exposure_usd: float
    """Gross: positions, orders that rest and add, and the inventory of liquidity positions."""
    margin: Mapping[Venue, Margin]
    free: Mapping[Venue, float]
    """What a new position may use, fee included: cash that is no margin, less open losses. Below zero: missing."""
    position: Position | None
    """In the symbol that is asked about."""
    gain_pct: float | None
    """What that position has gained of its entry, before leverage; null without one or without a rate."""
    pending: tuple[RestingOrder, ...]
    """Orders in the symbol that is asked about."""
    marks: Mapping[Symbol, float]
    """In dollars: of the symbol, and of everything that is held."""
    notes: tuple[str, ...] = ()
    whole: WholeAccount | None = None
    """None where the debate is all there is."""

    @property
    def leverage(self) -> float:
        """Account leverage; infinite when there is exposure and no equity."""
        account = self.whole or self
        if not account.exposure_usd:
            return 0.0
        return account.exposure_usd / account.equity_usd if account.equity_usd > 0 else inf


def mark_bundle_account(bundle: Bundle, features: Features) -> Known[MarkedAccount]:
    """The account in a bundle, marked at the bundle's own prices."""
    held = _read_account_slots(bundle)
    if isinstance(held, Missing):
        return held
    account, slot = held
    if slot.unread is not None:
        return Missing(f"what the liquidity positions hold could not be read: {slot.unread}")
    marks = {symbol: mark_of(bundle, symbol) for symbol in {bundle.symbol, *exposed_symbols(account)}}
    return mark_to_market(account, bundle.symbol, marks, currency_rates(quoted_rates(features)), slot.notes)


def read_markets(bundle: Bundle) -> tuple[Catalogue, Routes]:
    """Markets and routes in the slot of a bundle, else the built-in ones. `Malformed` for another content."""
    slot = bundle.slot(MARKETS)
    if slot is None:
        return Catalogue(), DEFAULT_ROUTES
    content = read_slot(MarketsSlot, slot.content, "markets")
    routes = Routes(content.routes)
    return Catalogue(content.markets, dict.fromkeys(routes.venues, slot.as_of)), routes


def account_of(bundle: Bundle) -> Known[Account]:
    """The account in the slots of a bundle. It is known where the market is not: an exit needs no mark."""
    held = _read_account_slots(bundle)
    return held if isinstance(held, Missing) else held[0]


def position_in(account: Account, symbol: Symbol) -> Position | None:
    """The book keeps one side of a symbol only, but for legs that hedge each other,
    which are no position of the debate."""
    holdings = tuple(holding for holding in account.positions if holding.symbol is symbol)
    return Position(symbol, holdings[0].side, holdings) if len({holding.side for holding in holdings}) == 1 else None


def find_group(bundle: Bundle, symbol: Symbol, held: Iterable[Symbol]) -> frozenset[Symbol]:
    """Markets among these that move with a symbol, itself included: their daily returns correlate, directly or by way
    of another. One whose days are not known is taken for one of them."""
    left = {other: _daily_returns(bundle, other) for other in {*held, symbol}}
    group, reached = {symbol}, [symbol]
    while reached:
        from_here = reached.pop()
        near = [other for other in left if other not in group and _correlate(left[from_here], left[other])]
        group.update(near)
        reached += near
    return frozenset(group)


def _daily_returns(bundle: Bundle, symbol: Symbol) -> dict[int, int]:
    """By the day's opening, in whole 1e-9 of the logarithm; empty where too few days are known."""
    rows = [row for row in bundle.rows(own_candles(symbol, Timeframe.D1)) if 0 < row.close < inf]
    closed = [row for row in rows if row.at + Timeframe.D1.millis <= bundle.as_of][-GROUP_DAYS - 1 :]
    logs: list[int] = nano_log([row.close for row in closed]).tolist() if closed else []
    returns = {int(row.at): after - before for row, before, after in zip(closed[1:], logs, logs[1:], strict=False)}
    return returns if len(returns) == GROUP_DAYS else {}


def _correlate(one_way: Mapping[int, int], other_way: Mapping[int, int]) -> bool:
    """Whether they correlate above `GROUP_CORRELATION`, in whole numbers: the same on every machine."""
    days = one_way.keys() & other_way.keys()
    if len(days) < GROUP_DAYS // 2:
        return True
    pairs = [(one_way[day], other_way[day]) for day in days]
    sum_x, sum_y, count = sum(x for x, _ in pairs), sum(y for _, y in pairs), len(pairs)
    shared = count * sum(x * y for x, y in pairs) - sum_x * sum_y
    spread = (count * sum(x * x for x, _ in pairs) - sum_x**2) * (count * sum(y * y for _, y in pairs) - sum_y**2)
    return shared > 0 and GROUP_CORRELATION.denominator**2 * shared**2 > GROUP_CORRELATION.numerator**2 * spread


def group_net_usd(account: MarkedAccount, held: Account, group: frozenset[Symbol]) -> float:
    """What a group of markets carries, longs less shorts, orders that would add included."""
    sizes = _list_sizes(held)
    sizes += [(pool.symbol, Side.LONG, pool.quantity) for pool in held.liquidity]
    return fsum(side.sign * quantity * account.marks[symbol] for symbol, side, quantity in sizes if symbol in group)


def group_side_usd(account: MarkedAccount, held: Account, group: frozenset[Symbol], side: Side) -> float:
    """What a group of markets carries one way, orders that would add included; pools are not counted."""
    sizes = [(symbol, quantity) for symbol, way, quantity in _list_sizes(held) if way is side and symbol in group]
    return fsum(quantity * account.marks[symbol] for symbol, quantity in sizes)


def _list_sizes(held: Account) -> list[tuple[Symbol, Side, float]]:
    sizes = [(holding.symbol, holding.side, holding.quantity) for holding in held.positions]
    return sizes + [(order.symbol, order.side, order.quantity) for order in held.pending if not order.reduce_only]


def mark_of(bundle: Bundle, symbol: Symbol) -> Known[float]:
    """The mark price of the futures exchange, in dollars; in a home of candles alone, the last close."""
    if bundle.never_recorded(mark_series(symbol)):
        return last_close(bundle, symbol)
    rows = fresh_rows(bundle, mark_series(symbol))
    if isinstance(rows, Missing):
        return rows
    return mark_price(rows[-1]) if rows else Missing(f"{mark_series(symbol)} has no row")


def last_close(bundle: Bundle, symbol: Symbol) -> Known[float]:
    """Of the finest bars that are not stale."""
    reason = "it was not asked for"
    for timeframe in Timeframe:
        rows = fresh_rows(bundle, own_candles(symbol, timeframe))
        if not isinstance(rows, Missing) and rows and 0 < rows[-1].close < inf:
            return rows[-1].close
        reason = rows.reason if isinstance(rows, Missing) else reason
    return Missing(f"no close is fresh: {reason}")


def mark_price(row: MarkAndIndex) -> Known[float]:
    return row.mark if 0 < row.mark < inf else Missing(f"a mark of {row.mark} is no price")


def mark_to_market(
    account: Account,
    symbol: Symbol | None,
    marks: Mapping[Symbol, Known[float]],
    rates: Rates,
    notes: Iterable[str] = (),
) -> Known[MarkedAccount]:
    prices: dict[Symbol, float] = {}
    for held_symbol in dict.fromkeys((*([] if symbol is None else [symbol]), *exposed_symbols(account))):
        mark = marks.get(held_symbol, Missing("nobody asked"))
        if isinstance(mark, Missing):
            return Missing(f"{held_symbol} has no mark: {mark.reason}")
        prices[held_symbol] = mark
    remarks = list(notes)
    equity, free, dollars = dict[Venue, float](), dict[Venue, float](), list[float]()
    for venue, cash in account.cash.items():
        rate, equity[venue], free[venue] = rate_of(venue, rates), 0.0, free_cash(account, venue)
        if isinstance(rate, Missing):
            remarks.append(f"what is at {venue} counts nothing: {rate.reason}")
            continue
        held = _positions_at(account, venue)
        if venue.spot:
            value = cash + fsum(holding.quantity * prices[holding.symbol] * rate for holding in held)
        else:
            value = cash + fsum(unrealised_pnl(holding, prices[holding.symbol] * rate) for holding in held)
            free[venue] += min(0.0, value - cash)
        equity[venue] = value
        dollars.append(value / rate)
    position = None if symbol is None else position_in(account, symbol)
    own_usd, own_exposure = fsum(dollars), _gross_exposure_usd(account, prices)
    return MarkedAccount(
        equity={venue: round_digits(amount) for venue, amount in equity.items()},
        equity_usd=round_digits(own_usd),
        exposure_usd=round_digits(own_exposure),
        margin={venue: margin_at(account, venue) for venue in account.cash},
        free={exchange: round_digits(amount) for exchange, amount in free.items()},
        position=position,
        gain_pct=None if position is None else _unrealised_pct(position, prices[position.symbol], rates),
        pending=tuple(order for order in account.pending if order.symbol is symbol),
        marks=prices,
        notes=tuple(remarks),
        whole=None if account.others is None else _add_sleeves(own_usd, own_exposure, account.others, prices, rates),
    )


def unrealised_pnl(holding: Holding, price: float) -> float:
    """Unrealised PnL at a price in the position's own currency, before fees."""
    return holding.side.sign * holding.quantity * (price - holding.entry)


def margin_at(account: Account, exchange: Venue) -> Margin:
    pending = fsum(order.margin for order in account.pending if order.exchange is exchange)
    return Margin(fsum(holding.margin for holding in _positions_at(account, exchange)), pending)


def free_cash(account: Account, exchange: Venue) -> float:
    """Cash that is no margin. Cash of a perpetual venue includes the margin of open positions."""
    margin = margin_at(account, exchange)
    return account.cash.get(exchange, 0.0) - (margin.pending if exchange.spot else margin.total)


# -- parts


def _read_account_slots(bundle: Bundle) -> Known[tuple[Account, PositionsSlot]]:
    contents: list[Json] = []
    for name in (POSITIONS, EQUITY):
        slot = bundle.slot(name)
        if slot is None:
            return Missing(f"the desk's {name}: {bundle.why_absent(name) or 'nobody looked'}")
        contents.append(slot.content)
    try:
        held = read_slot(PositionsSlot, contents[0], "positions")
        cash = read_slot(EquitySlot, contents[1], "cash")
    except Malformed as error:
        return Missing(str(error).rstrip("."))
    return Account(cash.cash, held.positions, held.pending, held.liquidity, held.others), held


def _positions_at(account: Account, exchange: Venue) -> list[Holding]:
    return [holding for holding in account.positions if holding.exchange is exchange]


def exposed_symbols(account: Account, *, whole: bool = True) -> list[Symbol]:
    """`whole`: of all sleeves, not of the debate alone."""
    adding = [order.symbol for order in account.pending if not order.reduce_only]
    others = () if account.others is None or not whole else account.others.exposures
    held = [holding.symbol for holding in account.positions]
    return [*held, *adding, *(part.symbol for parts in (account.liquidity, others) for part in parts)]


def _add_sleeves(
    own_usd: float, own_exposure: float, others: OtherSleeves, prices: Mapping[Symbol, float], rates: Rates
) -> WholeAccount:
    """Without the rate of one of its currencies the equity of the others counts nothing."""
    known = [(cash, rate) for currency, cash in others.cash.items() if isinstance(rate := rates.get(currency), float)]
    held = [part.held * prices[part.symbol] for part in others.exposures]
    equity = fsum((*held, *(cash / rate for cash, rate in known))) if len(known) == len(others.cash) else 0.0
    gross = fsum(part.gross * prices[part.symbol] for part in others.exposures)
    return WholeAccount(
        equity_usd=round_digits(own_usd + equity),
        exposure_usd=round_digits(own_exposure + gross),
        others_net_usd={part.symbol: (part.held + part.adding) * prices[part.symbol] for part in others.exposures},
    )


def _gross_exposure_usd(account: Account, prices: Mapping[Symbol, float]) -> float:
    """Gross, by quantity: the currency it was bought in does not matter. Legs that hedge each other are netted."""
    sides = {(holding.symbol, holding.side) for holding in account.positions}
    netted = dict.fromkeys(symbol for symbol, side in sides if side is Side.SHORT and (symbol, Side.LONG) in sides)
    sizes = [(holding.symbol, holding.quantity) for holding in account.positions if holding.symbol not in netted]
    for symbol in netted:
        legs = (holding for holding in account.positions if holding.symbol is symbol)
        sizes.append((symbol, fsum(leg.side.sign * leg.quantity for leg in legs)))
    sizes += [(order.symbol, order.quantity) for order in account.pending if not order.reduce_only]
    sizes += [(pool.symbol, pool.quantity) for pool in account.liquidity]
    return fsum(abs(quantity) * prices[symbol] for symbol, quantity in sizes)


def _unrealised_pct(position: Position, mark: float, rates: Rates) -> float | None:
    """Each part of it against its own entry, weighed by its size."""
    parts = [
        (holding.quantity, holding.side.sign * (mark * rate - holding.entry) / holding.entry * 100)
        for holding in position.holdings
        if not isinstance(rate := rate_of(holding.exchange, rates), Missing)
    ]
    size = fsum(quantity for quantity, _ in parts)
    return fsum(quantity * gain for quantity, gain in parts) / size if size else None
