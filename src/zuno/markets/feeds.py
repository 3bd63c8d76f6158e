"""Feeds: who is asked for what of a coin, and how each names it. A market's own venue is asked for its candles and its
book; perpetuals elsewhere, options, the economy and words are read beside it. A new source is a row here and an adapter
in `adapters/venues`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from zuno.markets.market import Symbol

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    """A venue as a source."""

    feed: str
    """The name its series carry."""
    quote: str = "USDT"
    form: str = "{base}{quote}"
    """How its series name a market."""
    perpetual: bool = True
    beside: bool = True
    """Its perpetual of a coin is read for every market of that coin, else for its own markets alone."""
    long_short: bool = True
    forced: bool = True
    """It streams forced trades."""
    large: bool = False
    """Its stream of large trades is listened to."""
    units: bool = True
    """It lists coins by the thousand (1000PEPE) as the default venue does."""
    quiet: bool = False
    """It makes no bar without a trade, so a bar that is not there may be no gap."""
    kept_days: Mapping[str, int] = field(default_factory=dict)
    """How long it keeps a kind of series, less a day; all others for ever."""


def _define_spot(feed: str, quote: str = "USDT", form: str = "{base}{quote}", quiet: bool = False) -> FeedRow:
    return FeedRow(
        feed=feed, quote=quote, form=form, quiet=quiet, perpetual=False, long_short=False, forced=False, units=False
    )


ROWS: Final[Mapping[str, FeedRow]] = {
    row.feed: row
    for row in (
        FeedRow(feed=BINANCE, large=True, kept_days={"open_interest": 29, "long_short": 29}),
        FeedRow(feed=BYBIT),
        FeedRow(feed=OKX, units=False, kept_days={"open_interest": 29, "long_short": 29, "funding": 89}),
        FeedRow(
            feed=HYPERLIQUID,
            quote="USDC",
            beside=False,
            long_short=False,
            forced=False,
            kept_days={"open_interest": 0},
        ),
        _define_spot("binance-spot"),
        _define_spot("bybit-spot"),
        _define_spot("okx-spot"),
        _define_spot(UPBIT, "KRW", "{quote}-{base}", quiet=True),
    )
}
PERPETUALS: Final = tuple(row.feed for row in ROWS.values() if row.perpetual and row.beside)
TAPES: Final = tuple(feed for feed in PERPETUALS if ROWS[feed].forced)
"""Whose forced trades are listened to."""
QUIET: Final = frozenset(row.feed for row in ROWS.values() if row.quiet)
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
    own = (symbol.venue.feed,) if ROWS[symbol.venue.feed].perpetual else ()
    by_thousand = symbol.base.startswith("1000")
    return own + tuple(feed for feed in PERPETUALS if feed not in own and (ROWS[feed].units or not by_thousand))


def is_perpetual(feed: str) -> bool:
    return feed in ROWS and ROWS[feed].perpetual


def tape_feeds(symbol: Symbol) -> tuple[str, ...]:
    """Whose forced trades of a coin are listened to."""
    return tuple(feed for feed in perpetual_feeds(symbol) if ROWS[feed].forced)


def large_trades_feed(symbol: Symbol) -> str:
    """Whose large trades of a coin are listened to."""
    return next(feed for feed in perpetual_feeds(symbol) if ROWS[feed].large)


def mark_feed(symbol: Symbol) -> str:
    """Whose mark and index price what is held of a market."""
    return perpetual_feeds(symbol)[0]
