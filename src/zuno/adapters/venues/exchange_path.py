"""An exchange's five-minute candles as the price that arbitrage follows; the home keeps a month of each pair."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Final

from zuno.adapters.atomic_file import read_file, replace_file
from zuno.adapters.venues.binance import SPOT_BARS_A_PAGE, VENDOR
from zuno.adapters.venues.exchange import ExchangeClient, NotListed
from zuno.adapters.venues.paging import fetch_regular
from zuno.adapters.venues.vendor_json import parse_bar
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis, Seconds
from zuno.lp.model.chains import unwrap_symbol
from zuno.lp.model.market import Fact, Pair, PricePath, PricePoint
from zuno.trading.model.market import Candle

STEP: Final = 300
KEPT: Final = 31 * 86_400 + STEP
LIMIT: Final = Seconds(1_800)

Closes = dict[int, str]
"""By the moment a candle ended, with the digits of its close."""


class ExchangePath:
    """Legs without a market of their own are priced over the dollar. What was read is asked for once."""

    source = "Binance"

    def __init__(self, url: str | None, folder: Path) -> None:
        """`url` replaces the exchange's address; the candles are kept in the folder."""
        self._exchange, self._folder = ExchangeClient(VENDOR, url), folder
        self._lock = asyncio.Lock()
        self.close = self._exchange.close

    async def path(self, pair: Pair, since: Seconds, now: Seconds) -> Fact[PricePath]:
        base, quote = unwrap_symbol(pair.base), unwrap_symbol(pair.quote)
        if not (base.isalnum() and quote.isalnum()) or base.startswith("0x") or quote.startswith("0x"):
            raise Unavailable(f"{self.source} has no market of {pair}: one of its tokens is not a curated one")
        if base == quote:
            raise Unavailable(f"{pair} needs no market: both are one coin")
        async with self._lock:
            closes = await self._pair(base, quote, since, now)
        points = tuple(PricePoint(Seconds(at), closes[at]) for at in sorted(closes) if since <= at <= now)
        if not points:
            raise Unavailable(f"{self.source} has no candle of {pair} from {since} to {now}")
        return Fact(PricePath(pair, points, STEP // 60), self.source, points[-1].at, now, LIMIT)

    async def _pair(self, base: str, quote: str, since: Seconds, now: Seconds) -> dict[int, Fraction]:
        with suppress(NotListed):
            return await self._closes(base + quote, since, now)
        with suppress(NotListed):
            return {at: 1 / price for at, price in (await self._closes(quote + base, since, now)).items()}
        legs = [await self._closes(f"{leg}USDT", since, now) for leg in (base, quote)]
        return {at: legs[0][at] / legs[1][at] for at in legs[0].keys() & legs[1].keys()}

    async def _closes(self, symbol: str, since: Seconds, now: Seconds) -> dict[int, Fraction]:
        file = self._folder / f"{symbol}-5m.json"
        kept = _read(file)
        known = [at for at in kept if at <= now]
        begin = max(known) if known and min(known) <= since + STEP else since - STEP
        if begin + STEP <= now:
            kept |= await self._ask(symbol, begin, now)
            kept = {at: kept[at] for at in sorted(kept) if at > now - KEPT}
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, json.dumps(kept).encode(), durable=False)
        return {at: Fraction(price) for at, price in kept.items()}

    async def _ask(self, symbol: str, begin: int, now: int) -> Closes:
        """The closes of candles that ended after `begin`, by `now`."""
        first, last = -(-begin // STEP) * STEP, now // STEP * STEP - STEP

        async def page(low: Millis, high: Millis) -> Sequence[Candle]:
            span = {"interval": "5m", "startTime": low, "endTime": high, "limit": SPOT_BARS_A_PAGE}
            answer = await self._exchange.ask("publicGetKlines", "klines", symbol=symbol, **span)
            return [parse_bar(row, row.moment(0), range(1, 6), row.number(9)) for row in answer.items()]

        ends = Millis(1_000 * first), Millis(1_000 * last)
        bars = await fetch_regular("Binance's klines", page, *ends, 1_000 * STEP, SPOT_BARS_A_PAGE, ends[1])
        return {bar.at // 1_000 + STEP: str(bar.close) for bar in bars if bar.close > 0}


def _read(file: Path) -> Closes:
    """What a crash or another edition left unreadable is asked for again."""
    try:
        rows = json.loads(read_file(file) or b"{}")
        return {int(at): price for at, price in rows.items() if Fraction(price) > 0}
    except (ValueError, TypeError, AttributeError):
        return {}
