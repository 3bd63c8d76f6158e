"""Markets: what is listed at a venue, by which rules, and how it is named.

A full name is `venue:BASE/QUOTE` for spot and `venue:BASE/QUOTE:SETTLE` for a perpetual. `BTCUSDT` is the short name of
the default venue's perpetual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any, Final

from zuno.kernel.errors import NotFound, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.venues import DEFAULT_VENUE, VENUES, Kind, Name, Venue, find_near, venue_of

MAX_LIST_AGE: Final = 24 * 3_600_000
"""Milliseconds. For live orders a venue's list is not older."""
_SHORT: Final = re.compile(rf"([A-Z0-9]{{1,16}}){DEFAULT_VENUE.quote}")
_FULL: Final = re.compile(r"([a-z]{2,16}):([A-Z0-9]{1,16})/([A-Z0-9]{2,8})(?::([A-Z0-9]{2,8}))?")
_OTHER_NAMES: Final[Mapping[str, str]] = {"XBT": "BTC", "XDG": "DOGE"}
"""Coins that a venue or its customers call otherwise, one for one."""
_UNITS: Final = re.compile(r"(1000000|10000|1000|1M|k)(?=[A-Z])")
"""How a venue's name of a coin begins whose unit is many coins."""
DOLLARS: Final = ("USDT", "USDC")
"""Currencies that a market of a desk may be priced in; what is held at venues of others is converted by its rate."""
_COINS: Final = {"1000000": 1_000_000, "10000": 10_000, "1000": 1_000, "1M": 1_000_000, "k": 1_000}
MOST_MARKETS: Final = 50
"""That one desk trades: each is a cycle, and a set of feeds."""


class Symbol(Name):
    """The name of a market that the desk decides about: short for the default venue's perpetual, else its full name.
    `ValueError` for what is no such name."""

    venue: Venue
    base: str
    quote: str

    def __new__(cls, name: str) -> Symbol:
        if (known := _SYMBOLS.get(name)) is not None:
            return known
        symbol = super().__new__(cls, name)
        if short := _SHORT.fullmatch(name):
            symbol.venue, symbol.base, symbol.quote = DEFAULT_VENUE, short[1], DEFAULT_VENUE.quote
        elif full := _FULL.fullmatch(name):
            venue = venue_of(full[1], Kind.PERPETUAL if full[4] else Kind.SPOT)
            if venue is None or (full[4] or venue.quote) != venue.quote:
                raise ValueError("no venue with such markets")
            symbol.venue, symbol.base, symbol.quote = venue, full[2], full[3]
        else:
            raise ValueError("no name of a market; write BTCUSDT, binance:BTC/USDT or bybit:BTC/USDT:USDT")
        return _SYMBOLS.setdefault(str(symbol), symbol)

    @property
    def pair(self) -> str:
        """How series of it are named at any venue."""
        return f"{self.base}{self.quote}"


_SYMBOLS: Final[dict[str, Symbol]] = {}
DEFAULT_SYMBOLS: Final = (Symbol("BTCUSDT"), Symbol("ETHUSDT"))


@dataclass(frozen=True, kw_only=True)
class Market:
    """One market by the rules of its venue."""

    venue: Venue
    base: str
    quote: str
    tick: float
    lot: float
    """Of the base currency, whatever unit the venue counts in."""
    min_notional: float
    contract_size: float = 1.0
    """Base units of one of the venue's units of size."""
    maker: float
    taker: float
    """In per cent of the notional."""
    funding_hours: int = 0
    trading: bool = True

    @property
    def kind(self) -> Kind:
        return self.venue.kind

    @property
    def usable(self) -> bool:
        """Without a tick, a lot or a name nothing can be ordered there."""
        figures = (self.tick, self.lot, self.min_notional, self.maker, self.taker)
        named = self.base.isalnum() and self.quote.isalnum() and self.base.isascii()
        return named and all(map(isfinite, figures)) and min(self.tick, self.lot) > 0

    @property
    def name(self) -> str:
        spot = f"{self.venue.house}:{self.base}/{self.quote}"
        return spot if self.venue.spot else f"{spot}:{self.venue.quote}"

    @cached_property
    def symbol(self) -> Symbol:
        short = self.venue is DEFAULT_VENUE and self.quote == DEFAULT_VENUE.quote
        return Symbol(f"{self.base}{self.quote}" if short else self.name)


_BUILT_IN: Final[Mapping[str, tuple[float, float, float]]] = {
    "BTC": (0.1, 0.001, 100.0), "ETH": (0.01, 0.001, 20.0), "SOL": (0.01, 0.01, 5.0), "BNB": (0.01, 0.01, 5.0),
    "XRP": (0.0001, 0.1, 5.0), "ADA": (0.0001, 1.0, 5.0), "DOGE": (0.00001, 1.0, 5.0), "LINK": (0.001, 0.01, 20.0),
    "LTC": (0.01, 0.001, 20.0), "TRX": (0.00001, 1.0, 5.0),
}  # fmt: skip
"""Tick, lot and least order of the default venue's perpetuals, where no list was ever read."""
KNOWN_COINS: Final = frozenset(_BUILT_IN)
"""Those that a phrase may call by their short names."""


def assume_market(venue: Venue, base: str, quote: str = "") -> Market:
    """A market by built-in rules: what a desk without a network goes by."""
    tick, lot, least = _BUILT_IN.get(base, (0.0001, 0.1, 5.0))
    if venue is not DEFAULT_VENUE:
        least = venue.least_notional
        lot = 1e-8 if venue.spot else lot
    fees: dict[str, Any] = {name: getattr(venue, name) for name in ("maker", "taker", "funding_hours")}
    return Market(venue=venue, base=base, quote=quote or venue.quote, tick=tick, lot=lot, min_notional=least, **fees)


@dataclass(frozen=True)
class Catalogue:
    """Markets that venues list, with the moment each venue's list is of. A venue without a list goes by built-in
    rules, which never serve for live orders."""

    markets: tuple[Market, ...] = ()
    read_at: Mapping[Venue, Millis] = field(default_factory=dict)

    @cached_property
    def _by_place(self) -> Mapping[tuple[Venue, str, str], Market]:
        return {(market.venue, market.base, market.quote): market for market in self.markets}

    def find(self, venue: Venue, symbol: Symbol) -> Market:
        """The market in which a venue carries a symbol. `NotFound` where it lists none."""
        quote = symbol.quote if venue is symbol.venue else venue.quote
        if venue not in self.read_at:
            return assume_market(venue, symbol.base, quote)
        market = self._by_place.get((venue, symbol.base, quote))
        if market is not None:
            return market
        coin = _UNITS.sub("", symbol.base)
        other = next((each for each in self.markets if each.venue is venue and _UNITS.sub("", each.base) == coin), None)
        if other is not None:
            raise NotFound(
                f"{venue.label} lists {other.base}, which is another unit than {symbol.base}: it is not carried there."
            )
        raise NotFound(f"{venue.label} lists no {symbol.base}/{quote}.")

    def find_listed(self, venue: Venue, symbol: Symbol) -> Market | None:
        """None where the venue does not list it."""
        try:
            return self.find(venue, symbol)
        except NotFound:
            return None

    def list_at(self, venue: Venue) -> tuple[Market, ...]:
        if venue in self.read_at:
            return tuple(market for market in self.markets if market.venue is venue)
        return tuple(assume_market(venue, base) for base in _BUILT_IN)

    def find_stale(self, venue: Venue, now: Millis) -> str | None:
        """Why the venue's list does not serve for live orders: it is missing or older than a day."""
        at = self.read_at.get(venue)
        if at is not None and 0 <= now - at <= MAX_LIST_AGE:
            return None
        age = "was never read" if at is None else f"is {abs(now - at) / 3_600_000:.0f} hours old"
        age = age if at is None or at <= now else "is dated after this machine's clock"
        return f"the list of {venue.label} {age}; `zuno markets --refresh --venue {venue.lower()}` reads it"

    def require_listed(self, symbol: Symbol) -> None:
        """`UsageError` with the nearest names for a coin that its venue does not list, and never did. Where its list
        was never read, a coin is taken as it is if no coin that is known is called nearly so."""
        bases = [market.base for market in self.list_at(symbol.venue) if market.quote == symbol.quote]
        if symbol.base in bases:
            return
        read, coin = symbol.venue in self.read_at, _UNITS.sub("", symbol.base)
        near = [base for base in bases if _UNITS.sub("", base) == coin]
        near = near or find_near(symbol.base, bases, 3, 0.5 if read else 0.8)
        if near or read:
            names = f"; the nearest: {', '.join(near)}" if near else ""
            advice = "" if read else ". Its list was never read: `zuno markets --refresh` does"
            raise UsageError(f"{symbol.venue.label} lists no {symbol.base}/{symbol.quote}{names}{advice}.")

    def renew(self, venue: Venue, listed: Iterable[Market], at: Millis) -> Catalogue:
        """With the venue's list as it was read at a moment. A market that it had and has no more stays, as one that is
        not traded: something may be held there."""
        named = {(market.base, market.quote): market for market in listed}
        gone = (
            replace(market, trading=False)
            for market in (self.list_at(venue) if venue in self.read_at else ())
            if (market.base, market.quote) not in named
        )
        others = (market for market in self.markets if market.venue is not venue)
        return Catalogue((*others, *named.values(), *gone), {**self.read_at, venue: at})

    def search(self, venue: Venue | None = None, kind: Kind | None = None, text: str = "") -> Iterator[Market]:
        """By a coin as any venue calls it, or by a part of a name."""
        wanted = _UNITS.sub("", text).upper()
        wanted = _OTHER_NAMES.get(wanted, wanted)
        for place in VENUES:
            if (venue is None or place is venue) and (kind is None or place.kind is kind):
                listed = self.list_at(place)
                yield from (each for each in listed if wanted in f"{each.name} {each.base}{each.quote}".upper())


def describe_unit(base: str) -> str:
    """What one unit of such a coin is, where it is many of them."""
    unit = _UNITS.match(base)
    return f"{base} is {_COINS[unit[1]]:,} {base[unit.end() :]}, in price, lot and size" if unit else ""


def describe_limits(venue: Venue) -> tuple[str, ...]:
    """What a venue cannot do, in words, to be said before anything is decided for it."""
    perpetual = venue_of(venue.house, Kind.PERPETUAL), venue_of(venue.house, Kind.SPOT)
    limits = (
        (not venue.holds_stops, "holds no stop orders: the desk watches them"),
        (not venue.shorts, "cannot be sold short"),
        (venue.spot and venue.holds_stops, "holds the stop alone: the desk watches the target"),
        (perpetual == (venue, None), "perpetuals only"),
        (venue.agent_key, "an agent key, never the wallet's own"),
    )
    return tuple(words for limited, words in limits if limited)


def describe_venue(venue: Venue) -> str:
    return f"{venue}: {'; '.join(describe_limits(venue)) or 'everything that the desk asks of a venue'}"


def spell_symbol(text: str) -> Symbol:
    """A market as a person writes it: `SOL`, `sol/usdt`, `binance:SOL/USDT:USDT`. `UsageError` for what is none."""
    word = plain_text(text, 60).strip()
    house, _, rest = word.partition(":")
    try:
        if rest:
            full = Symbol(f"{house.lower()}:{rest.upper()}")
            short = full.venue is DEFAULT_VENUE and full.quote == DEFAULT_VENUE.quote
            return Symbol(full.pair) if short else full
        name = word.upper().replace("/", "").replace("-", "").removesuffix(DEFAULT_VENUE.quote)
        return Symbol(f"{_OTHER_NAMES.get(name, name)}{DEFAULT_VENUE.quote}")
    except ValueError as error:
        raise UsageError(f"{word!r} is {error}.") from None


def parse_symbol(text: str, known: Iterable[Symbol] = DEFAULT_SYMBOLS) -> Symbol:
    """One of these markets by what a person writes: its name, or its coin where only one of them is of it."""
    several = tuple(known)
    word = plain_text(text, 60).strip()
    coin = _OTHER_NAMES.get(word.upper(), word.upper())
    symbol: Symbol | None = None
    try:
        symbol = spell_symbol(word)
    except UsageError:
        if ":" in word:
            raise
    if symbol is not None and symbol in several:
        return symbol
    named = [each for each in several if each.base == coin]
    if len(named) == 1:
        return named[0]
    near = [] if named else find_near(coin, [*several, *(each.base for each in several)])
    hint = f"; did you mean {near[0]}? This" if near else "; this"
    raise UsageError(f"{word!r} is not traded here{hint} desk trades {', '.join(several)} (ZUNO_MARKETS).")


def parse_markets(texts: Iterable[str]) -> tuple[Symbol, ...]:
    """Markets for a desk to trade, in this order. `UsageError` for none, for one that is named twice, for one that is
    not priced in its venue's dollars, and for more than `MOST_MARKETS`."""
    several = tuple(map(spell_symbol, texts))
    twice = next((symbol for place, symbol in enumerate(several) if symbol in several[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice.")
    for symbol in several:
        if symbol.quote not in DOLLARS or symbol.quote != symbol.venue.quote:
            other = f"{symbol.base}{DEFAULT_VENUE.quote}"
            raise UsageError(
                f"{symbol} is priced in {symbol.quote}: a desk decides in dollars, and pays at {symbol.venue.label} in "
                f"{symbol.venue.quote}. {other} is carried by every venue of the routes."
            )
    bases = [symbol.base for symbol in several]
    coin = next((base for base in bases if bases.count(base) > 1), None)
    if coin is not None:
        raise UsageError(f"{coin} is named by two of its markets: a desk holds one position of a coin.")
    if not 0 < len(several) <= MOST_MARKETS:
        raise UsageError(f"A desk trades 1 to {MOST_MARKETS} markets, not {len(several)}.")
    return several
