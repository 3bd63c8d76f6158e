"""A small market that every vendor of the tests knows, each in its own words."""

from __future__ import annotations

from dataclasses import dataclass, field

from zuno.kernel.units import Millis
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Funding,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    OptionQuote,
    Quote,
    Text,
    Timeframe,
)

NOON = Millis(1_760_000_400_000 // HOUR_MS * HOUR_MS)
"""A full hour in October 2025; all the world ends here."""
HALF_PAST = Millis(NOON + 30 * MINUTE_MS)
SYMBOL = "BTCUSDT"


def bars(count: int, timeframe: Timeframe = Timeframe.H1, *, upto: int = NOON) -> list[Candle]:
    """So many bars that all had closed by then, and one more that is not over."""
    last = timeframe.floor(upto)
    made = []
    for place in range(count + 1):
        at = last - (count - place) * timeframe.millis
        price = 60_000.0 + 25.5 * ((place * 7) % 13)
        made.append(
            Candle(Millis(at), price, price + 40.25, price - 31.5, price + 8.75, 12.5 + place, 6.25 + place / 4)
        )
    return made


@dataclass
class World:
    """What a venue knows; times are its own."""

    now: int = HALF_PAST
    candles: list[Candle] = field(default_factory=lambda: bars(30, upto=HALF_PAST))
    timeframe: Timeframe = Timeframe.H1
    hours: float = 8.0
    funding: list[Funding] = field(
        default_factory=lambda: [
            Funding(Millis(NOON - n * 8 * HOUR_MS), round(0.0001 + n * 1e-5, 8), 8.0) for n in range(12, -1, -1)
        ]
    )
    funding_next: Funding = field(default_factory=lambda: Funding(HALF_PAST, 0.00012, 8.0))
    open_interest: list[Level] = field(
        default_factory=lambda: [Level(Millis(NOON - n * 5 * MINUTE_MS), 81_000.5 + n) for n in range(24, -1, -1)]
    )
    long_short: list[Level] = field(
        default_factory=lambda: [Level(Millis(NOON - n * 5 * MINUTE_MS), 1.25 + n / 64) for n in range(24, -1, -1)]
    )
    basis: MarkAndIndex = field(default_factory=lambda: MarkAndIndex(HALF_PAST, 60_012.5, 60_001.25))
    book: Book = field(
        default_factory=lambda: Book(
            HALF_PAST,
            tuple(Quote(60_000.0 - n / 2, 1.5 + n) for n in range(20)),
            tuple(Quote(60_000.5 + n / 2, 2.5 + n) for n in range(20)),
        )
    )
    chain: OptionChain = field(
        default_factory=lambda: OptionChain(
            HALF_PAST,
            tuple(
                OptionQuote(
                    f"BTC-{day}-{strike}-{'C' if call else 'P'}",
                    Millis(NOON + days * DAY_MS),
                    float(strike),
                    call,
                    55.5 + strike / 10_000,
                    120.5,
                    7.25,
                    60_010.0 + days,
                )
                for day, days in (("17OCT25", 8), ("31OCT25", 22))
                for strike in (55_000, 60_000, 65_000)
                for call in (True, False)
            ),
        )
    )
    dvol: list[Level] = field(
        default_factory=lambda: [Level(Millis(NOON - n * HOUR_MS), 40.5 + n / 8) for n in range(30, -1, -1)]
    )
    prints: list[MacroRelease] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
