"""Wire the trading desk's live venues, collector and downloads from the settings."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from zuno.adapters.clock.system import steady_millis, unix_millis
from zuno.adapters.file_lock import collector_lock
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol, parse_symbol
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.venues.macro import Fred
    from zuno.trading.data.check import Fetch
    from zuno.trading.data.intake import Intake, Sources
    from zuno.trading.ports.series import Batch, SeriesStore
    from zuno.trading.service.collector import Collector
    from zuno.trading.service.download import Downloads
    from zuno.trading.service.features import Refresh

ListHeld: TypeAlias = Callable[[], Awaitable[Sequence[Symbol]]]
"""What accounts hold or wait for, whatever markets the desk trades now."""


class Markets:
    """The live venues, opened when first needed. Exchanges need the extra."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: list[Callable[[], Awaitable[None]]] = []

    def collector(
        self, store: SeriesStore, symbols: Sequence[str], markets: tuple[Symbol, ...], held: ListHeld | None = None
    ) -> Collector:
        """`held`: what is collected whatever is asked for."""
        from zuno.trading.service.collector import Collector

        return Collector(
            sources=self.sources,
            store=store,
            seat=collector_lock(self._settings.home / "market" / "own"),
            symbols=tuple(dict.fromkeys(parse_symbol(symbol, markets) for symbol in symbols)) or markets,
            now=unix_millis,
            sleep=asyncio.sleep,
            chance=random.random,
            held=held,
        )

    def downloads(self, store: SeriesStore, markets: tuple[Symbol, ...], *, read_here: bool) -> Downloads:
        from zuno.trading.service.download import Downloads

        return Downloads(self.sources, store, unix_millis, read_here=read_here, markets=markets)

    def refresh(self, store: SeriesStore, markets: Sequence[Symbol], held: ListHeld) -> Refresh:
        async def refresh(symbol: Symbol) -> tuple[Millis, Mapping[str, str]]:
            several = (*markets, *await held())
            return await self._open_intake(store).refresh_market(symbol, several)

        return refresh

    def refresh_marks(self, store: SeriesStore, markets: Sequence[Symbol], held: ListHeld) -> Refresh:
        """Refresh only the prices that accounts are marked by."""
        from zuno.trading.service.prices import list_marks

        async def refresh(symbol: Symbol) -> tuple[Millis, Mapping[str, str]]:
            marks = dict.fromkeys(list_marks((*markets, *await held())))
            return await self._open_intake(store).refresh(tuple(marks))

        return refresh

    def _open_intake(self, store: SeriesStore) -> Intake:
        from zuno.trading.data.intake import Intake

        async def keep(batch: Batch[Any]) -> None:
            await store.write([batch])

        return Intake(self.sources, store, keep, unix_millis)

    def fetch(self) -> Fetch:
        return lambda series, since, until: self.sources.ask(series, since, until)

    async def close(self) -> None:
        while self._opened:
            await self._opened.pop()()

    @cached_property
    def sources(self) -> Sources:
        from zuno.adapters.venues import binance, bybit, deribit, hyperliquid, okx, upbit
        from zuno.adapters.venues.exchange import ExchangeClient, ExchangeVendor
        from zuno.adapters.venues.macro import FearGreed, Yahoo
        from zuno.adapters.venues.web import WebService
        from zuno.markets.feeds import ALTERNATIVE, BINANCE, BYBIT, DERIBIT, OKX, UPBIT, YAHOO
        from zuno.trading.data.intake import Sources

        settings = self._settings

        def exchange(vendor: ExchangeVendor) -> ExchangeClient:
            opened = ExchangeClient(vendor, getattr(settings, f"{vendor.name.lower()}_url"))
            self._opened.append(opened.close)
            return opened

        clients = [exchange(module.VENDOR) for module in (binance, bybit, okx)]
        binances, bybits, okxs = binance.Binance(clients[0]), bybit.Bybit(clients[1]), okx.Okx(clients[2])
        perpetuals = (binances, bybits, okxs, hyperliquid.Hyperliquid(exchange(hyperliquid.VENDOR)))
        spots = (binance.BinanceSpot(clients[0]), bybit.BybitSpot(clients[1]), okx.OkxSpot(clients[2]))
        priced: dict[str, Any] = {feed.venue: feed for feed in (*perpetuals, *spots)}
        upbits, deribits = upbit.Upbit(exchange(upbit.VENDOR)), deribit.Deribit(exchange(deribit.VENDOR))
        yahoos = Yahoo(self._web(WebService("Yahoo", settings.yahoo_url)))
        moods = FearGreed(self._web(WebService("alternative.me", settings.fear_greed_url)), unix_millis)
        macro, texts, closed = self._with_keys()
        return Sources(
            candles={**priced, UPBIT: upbits},
            derivatives={feed.venue: feed for feed in perpetuals},
            books=priced,
            options={DERIBIT: deribits},
            macro={YAHOO: yahoos, **macro},
            levels={ALTERNATIVE: moods, UPBIT: upbits, BINANCE: binances},
            texts=texts,
            tapes={
                BINANCE: binance.BinanceTape(steady_millis, settings.binance_stream_url),
                BYBIT: bybit.BybitTape(steady_millis, settings.bybit_stream_url),
                OKX: okx.OkxTape(steady_millis, settings.okx_stream_url, contract=okxs.contract),
            },
            closed=closed,
        )

    def _with_keys(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
        """Feeds that need a key or a setting: macro, texts, and why some of them cannot be asked."""
        from zuno.adapters.venues.texts import PATIENCE, PUBLIC_URL, Channels, Search
        from zuno.adapters.venues.web import WebService
        from zuno.markets.feeds import CHANNELS, FRED, SEARCH

        settings = self._settings
        macro: dict[str, Any] = {}
        texts: dict[str, Any] = {}
        closed: dict[str, str] = {}
        try:
            macro[FRED] = self.open_fred()
        except Unavailable as error:
            closed[FRED] = str(error).rstrip(".")
        if settings.perplexity_api_key is None:
            closed[SEARCH] = "the search needs a key: set ZUNO_PERPLEXITY_API_KEY"
        else:
            key = settings.perplexity_api_key.get_secret_value()
            headers = {"authorization": f"Bearer {key}"}
            web = WebService("The search", settings.perplexity_url, secret=key, headers=headers, patience=PATIENCE)
            texts[SEARCH] = Search(self._web(web), unix_millis)
        if not settings.news_channels:
            closed[CHANNELS] = "no channel is read: set ZUNO_NEWS_CHANNELS"
        else:
            web = self._web(WebService("Telegram", PUBLIC_URL))
            texts[CHANNELS] = Channels(web, settings.news_channels)
        return macro, texts, closed

    def open_fred(self) -> Fred:
        from zuno.adapters.venues.macro import Fred
        from zuno.adapters.venues.web import WebService

        if self._settings.fred_api_key is None:
            raise Unavailable("FRED needs a key, which is free: set ZUNO_FRED_API_KEY.")
        key = self._settings.fred_api_key.get_secret_value()
        return Fred(self._web(WebService("FRED", self._settings.fred_url, secret=key)), key, unix_millis)

    def _web(self, web: Any) -> Any:
        self._opened.append(web.close)
        return web
