"""One file per exchange: its table of names and numbers, and what is truly its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from zuno.adapters.venues.exchange import ApiKeys
from zuno.adapters.venues.orders.client import TradingClient
from zuno.adapters.venues.orders.core import VenueAccount
from zuno.adapters.venues.orders.wires.binance_spot import BinanceFunds, BinanceSpotOrders
from zuno.adapters.venues.orders.wires.binance_usdm import BinanceOrders
from zuno.adapters.venues.orders.wires.bybit import BybitOrders, BybitSpotOrders
from zuno.adapters.venues.orders.wires.hyperliquid import HyperliquidOrders
from zuno.adapters.venues.orders.wires.okx import OkxOrders, OkxSpotOrders
from zuno.adapters.venues.orders.wires.upbit import UpbitOrders
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue

PERPETUALS: Final = (BinanceOrders, BybitOrders, OkxOrders, HyperliquidOrders)
SPOT: Final = (BinanceSpotOrders, BybitSpotOrders, OkxSpotOrders, UpbitOrders)
ACCOUNTS: Final[Mapping[Venue, type[VenueAccount]]] = {
    account.wire.exchange: account for account in (*PERPETUALS, *SPOT)
}


def build_funds(venues: Mapping[Venue, object]) -> BinanceFunds | None:
    """Between the wallets of an account, where they are apart and both are open here."""
    spot, futures = (venues.get(account.wire.exchange) for account in (BinanceSpotOrders, BinanceOrders))
    if isinstance(spot, BinanceSpotOrders) and isinstance(futures, BinanceOrders):
        return BinanceFunds(spot, futures)
    return None


def build_account(
    venue: Venue, keys: ApiKeys, symbols: Sequence[Symbol], url: str | None = None, page: int = 0, **options: Any
) -> VenueAccount:
    """`url` replaces the exchange's address; `page`: rows of an answer. `options`: of an `ExchangeClient`."""
    account = ACCOUNTS[venue]
    return account(TradingClient(account.wire, keys, url, **options), symbols, page)
