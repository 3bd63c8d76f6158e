"""The mirror image of a market: every log return negated, and with it funding, skew, book, tape and the economy.

A desk without a preference for one side must rule the mirror image the other way round. Prices are mirrored about the
last close before the moment, so that sizes in dollars stay what they are there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, fsum, log, sqrt
from typing import Any, Final, TypeAlias, TypeVar

from zuno.kernel.units import Millis
from zuno.lab.market_views import ChangedSeries
from zuno.markets.feeds import BINANCE, FIGURES, UPBIT, name_at
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.agents.macro_options import BALANCED, USUAL_SKEW
from zuno.trading.measure.options import PLAUSIBLE_IV, YEAR_MS
from zuno.trading.model import market
from zuno.trading.model.account import Account, Holding, RestingOrder
from zuno.trading.model.cycle import Call
from zuno.trading.ports.series import SeriesStore

R = TypeVar("R", bound=market.Row)
Mirror: TypeAlias = Callable[[Any, float], Any]
"""Of a row about an anchor."""
YIELDS: Final = frozenset({"DGS2", "DGS10", "FEDFUNDS"})
"""Figures in percentage points: their changes are negated, not their ratios."""
FULL_MOOD: Final = 100.0
"""The fear and greed index runs from 0 to this."""
WING_DEVIATIONS: Final = 0.4
"""Standard deviations from the forward beyond which the whole skew is mirrored; a 25-delta option lies further out."""
_LOOK_BACK: Final = 130 * market.DAY_MS
_OTHER: Final = {market.Side.LONG: market.Side.SHORT, market.Side.SHORT: market.Side.LONG}
_OTHER_CALL: Final = {Call.LONG: Call.SHORT, Call.SHORT: Call.LONG}


def mirror_call(call: Call) -> Call:
    """An exit and a HOLD are their own mirror images."""
    return _OTHER_CALL.get(call, call)


def mirror_price(price: float, anchor: float) -> float:
    """As far below the anchor as the price is above it, in logs."""
    return anchor * anchor / price


class MirroredSeries(ChangedSeries):
    """The mirror image of a store, to be read only. `open_mirror` makes one."""

    def __init__(self, store: SeriesStore, anchors: Mapping[str, float]) -> None:
        """`anchors`: by symbol or macro figure, the price about which it is mirrored."""
        super().__init__(store, "mirrored")
        self._anchors = anchors

    def anchor(self, symbol: Symbol) -> float:
        return self._anchors[symbol]

    def change_rows(self, series: market.Series[R], rows: Sequence[R]) -> Sequence[R]:
        mirror: Mirror | None = _mirror_yield if series.name in YIELDS else _MIRRORS.get(series.feed)
        symbol = series.name.partition("/")[0] + ("USDT" if series.feed is market.Feed.OPTIONS else "")
        anchor = self._anchors.get(symbol, 1.0)
        return rows if mirror is None or series.row is market.Heartbeat else tuple(mirror(row, anchor) for row in rows)


async def open_mirror(store: SeriesStore, at: Millis) -> MirroredSeries:
    """The mirror image of a market as it was known at a moment."""
    anchors: dict[str, float] = {}
    pairs = [(BINANCE, str(symbol)) for symbol in DEFAULT_SYMBOLS] + [
        (UPBIT, name_at(UPBIT, symbol)) for symbol in DEFAULT_SYMBOLS
    ]
    for venue, name in pairs:
        hours = await store.read(
            market.candles(venue, name, market.Timeframe.H1), Millis(at - _LOOK_BACK), at, at, newest=1
        )
        anchors[name] = hours[-1].close if hours else 1.0
    for venue, figures in FIGURES.items():
        for figure in figures:
            prints = await store.read(market.macro(venue, figure), Millis(at - _LOOK_BACK), at, at, newest=1)
            anchors[figure] = prints[-1].value if prints else 1.0
    return MirroredSeries(store, anchors)


def mirror_account(account: Account, mirror: MirroredSeries) -> Account:
    """Longs become shorts, entries their mirror images. Liquidity positions cannot be short and stay as they are."""

    def turn(holding: Holding) -> Holding:
        anchor = mirror.anchor(holding.symbol)
        levels = {"entry": holding.entry, "stop": holding.stop, "take": holding.take}
        return holding.model_copy(
            update={
                "side": _OTHER[holding.side],
                # The margin stays what it is.
                "quantity": holding.quantity * holding.entry / mirror_price(holding.entry, anchor),
                **{name: mirror_price(price, anchor) for name, price in levels.items() if price is not None},
            }
        )

    def turn_order(order: RestingOrder) -> RestingOrder:
        price = mirror_price(order.price, mirror.anchor(order.symbol))
        return order.model_copy(update={"side": _OTHER[order.side], "price": price})

    return replace(
        account, positions=tuple(map(turn, account.positions)), pending=tuple(map(turn_order, account.pending))
    )


def _mirror_candle(bar: market.Candle, anchor: float) -> market.Candle:
    square = anchor * anchor
    taken = None if bar.taker_buy is None else bar.volume - bar.taker_buy
    return market.Candle(
        bar.at, square / bar.open, square / bar.low, square / bar.high, square / bar.close, bar.volume, taken
    )


def _mirror_quotes(quotes: Sequence[market.Quote], anchor: float) -> tuple[market.Quote, ...]:
    """Levels keep their notional."""
    prices = [mirror_price(quote.price, anchor) for quote in quotes]
    return tuple(
        market.Quote(price, quote.size * quote.price / price) for quote, price in zip(quotes, prices, strict=True)
    )


def _mirror_event(event: market.TapeEvent, anchor: float) -> market.TapeEvent:
    price = mirror_price(event.price, anchor)
    return event._replace(side=_OTHER[event.side], price=price, quantity=event.quantity * event.price / price)


def _mirror_chain(chain: market.OptionChain, anchor: float) -> market.OptionChain:
    """Puts become calls as far on the other side of the forward, at the same volatility. A market usually pays more for
    puts and holds fewer of them: skew and put/call ratio are mirrored about what is usual."""
    puts, calls = (fsum(quote.open_interest for quote in chain.quotes if quote.call is call) for call in (False, True))
    ratio = puts / calls if calls else BALANCED
    share = max(0.0, (2 * BALANCED - ratio) * ratio)
    return market.OptionChain(chain.at, tuple(_mirror_option(quote, chain.at, anchor, share) for quote in chain.quotes))


def _mirror_option(quote: market.OptionQuote, at: Millis, anchor: float, put_share: float) -> market.OptionQuote:
    """A 25-delta put lies nearer to the forward than the call: in the wings the strike goes where the delta does."""
    strike = mirror_price(quote.strike, anchor)
    forward = None if quote.underlying is None else mirror_price(quote.underlying, anchor)
    volatility = quote.mark_iv
    if volatility and forward is not None and quote.expiry is not None and quote.expiry > at:
        root = sqrt((quote.expiry - at) / YEAR_MS) / 100
        away = log(strike / forward) / (volatility * root)
        tilt = min(1.0, max(-1.0, away / WING_DEVIATIONS))
        spread = volatility * root
        volatility = max(PLAUSIBLE_IV[0], round(volatility - USUAL_SKEW * tilt, 6))
        turned = volatility * root
        strike = forward * exp(away * turned + abs(tilt) * turned * (spread + turned) / 2)
    return replace(
        quote,
        strike=strike,
        call=not quote.call,
        mark_iv=volatility,
        open_interest=quote.open_interest * (put_share if quote.call else 1.0),
        underlying=forward,
    )


def _mirror_yield(row: market.MacroRelease, anchor: float) -> market.MacroRelease:
    return row._replace(value=2 * anchor - row.value)


_MIRRORS: Final[Mapping[market.Feed, Mirror]] = {
    market.Feed.CANDLES: _mirror_candle,
    market.Feed.FUNDING: lambda row, _: market.Funding(row.at, -row.rate, row.interval_hours),
    market.Feed.LONG_SHORT: lambda row, _: market.Level(row.at, 1 / row.value if row.value else row.value),
    market.Feed.BASIS: lambda row, anchor: market.MarkAndIndex(
        row.at, mirror_price(row.mark, anchor), mirror_price(row.spot, anchor)
    ),
    market.Feed.BOOK: lambda book, anchor: market.Book(
        book.at, _mirror_quotes(book.asks, anchor), _mirror_quotes(book.bids, anchor)
    ),
    market.Feed.LIQUIDATIONS: _mirror_event,
    market.Feed.WHALES: _mirror_event,
    market.Feed.OPTIONS: _mirror_chain,
    market.Feed.MACRO: lambda row, anchor: row._replace(
        value=mirror_price(row.value, anchor) if row.value else row.value
    ),
    market.Feed.FEAR_GREED: lambda row, _: market.Level(row.at, FULL_MOOD - row.value),
}
"""Open interest, volatility, exchange rates and words have no side: they stay as they are."""
