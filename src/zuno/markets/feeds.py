"""Feeds: who is asked for what of a coin, and how each names it. A market's own venue is asked for its candles and its
book; perpetuals elsewhere, options, the economy and words are read beside it. A new source has an adapter in
`adapters/venues`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from zuno.markets.market import Symbol
from zuno.markets.venues import VENUES, Venue

BINANCE: Final = "binance"
BYBIT: Final = "bybit"
OKX: Final = "okx"
HYPERLIQUID: Final = "hyperliquid"
UPBIT: Final = "upbit"
DERIBIT: Final = "deribit"
FRED: Final = "fred"
YAHOO: Final = "yahoo"
ALTERNATIVE: Final = "alternative.me"
SEARCH: Final = "search"
CHANNELS: Final = "channels"


ROWS: Final[Mapping[str, Venue]] = {venue.feed: venue for venue in VENUES}
"""Venues by the names of their series."""
PERPETUALS: Final = tuple(venue.feed for venue in VENUES if venue.beside and not venue.spot)
QUIET: Final = frozenset(venue.feed for venue in VENUES if venue.quiet)
FOREIGN_SPOT: Final = UPBIT
"""Whose spot market in another currency than the dollar is read beside every market."""
USDT_KRW: Final = "KRW-USDT"
USDC_USDT: Final = "USDC-USDT"
RATES: Final[Mapping[str, tuple[str, str]]] = {"KRW": (UPBIT, USDT_KRW), "USDC": (BINANCE, USDC_USDT)}
"""Who tells a currency's rate against the dollar, and under which name."""
OPTIONS: Final[Mapping[str, str]] = {"BTC": DERIBIT, "ETH": DERIBIT}
"""Who is asked for a coin's options and their volatility index; of other coins none are read."""


def options_feed(base: str) -> str:
    """Who would be asked for a coin's options, whether or not they are offered."""
    return OPTIONS.get(base, DERIBIT)


FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    FRED: ("DGS2", "DGS10", "CPIAUCSL", "FEDFUNDS", "DTWEXBGS", "NASDAQCOM", "DCOILWTICO"),
    YAHOO: ("DXY", "NASDAQ", "GOLD", "OIL"),
}


@lru_cache(maxsize=4_096)
def name_at(feed: str, symbol: Symbol) -> str:
    """How a feed's series name a market, or the same coin's market there."""
    row = ROWS.get(feed)
    if row is None:
        return symbol.pair
    return row.form.format(base=symbol.base, quote=symbol.quote if feed == symbol.venue.feed else row.quote)


@lru_cache(maxsize=1_024)
def perpetual_feeds(symbol: Symbol) -> tuple[str, ...]:
    """Whose perpetuals of a coin are read, the market's own first."""
    own = () if symbol.venue.spot else (symbol.venue.feed,)
    by_thousand = symbol.base.startswith("1000")
    return own + tuple(feed for feed in PERPETUALS if feed not in own and (ROWS[feed].units or not by_thousand))


def is_perpetual(feed: str) -> bool:
    return feed in ROWS and not ROWS[feed].spot


def tape_feeds(symbol: Symbol) -> tuple[str, ...]:
    """Whose forced trades of a coin are listened to."""
    return tuple(feed for feed in perpetual_feeds(symbol) if ROWS[feed].forced)


def large_trades_feed(symbol: Symbol) -> str:
    """Whose large trades of a coin are listened to."""
    return next(feed for feed in perpetual_feeds(symbol) if ROWS[feed].large)


def mark_feed(symbol: Symbol) -> str:
    """Whose mark and index price what is held of a market."""
    return perpetual_feeds(symbol)[0]
