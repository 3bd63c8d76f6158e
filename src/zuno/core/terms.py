"""Everything the arithmetic, the risk office and the guard look at, each figure known or missing with its reason."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import fsum
from operator import attrgetter
from typing import Final, TypeVar

from zuno.core.account import Standing, account_of, mark_of, standing
from zuno.core.bars import LOOKBACK, Bars, bars
from zuno.core.features import Features, fresh
from zuno.core.indicators.columns import sound
from zuno.core.known import Known, Missing
from zuno.core.menu import atr_of
from zuno.core.tape import Stream, Tally, tally
from zuno.core.triage import Label, Rule, Triage
from zuno.domain.account import Account
from zuno.domain.cycle import DEFAULT_HOLD, Exchange
from zuno.domain.trading import DAY_MS, MINUTE_MS, Feed, Mode, Row, Side, Symbol, alive, candles, liquidations
from zuno.domain.units import Millis
from zuno.domain.venues import BINANCE, TAPES
from zuno.messages.bundle import Bundle

R = TypeVar("R", bound=Row)
HEARD_SHARE: Final = 0.9
"""Of a day's minutes, how many must have been heard for its forced trades to be known."""
TRAP_USD: Final = 50e6
"""Forced out on the other side in a day: what moved for them is spent."""
ESSENTIAL: Final[Mapping[str, str]] = {
    "bars": "candles",
    "atr": "candles",
    "slippage": "book",
    "funding_next": "funding",
    "funding_week": "funding",
    "mark": "mark",
    "standing": "equity and positions",
    "account": "equity and positions",
}
"""Figures without which nothing new is risked, and what a person calls them."""
_HOLD: Final = re.compile(r"(\d{1,3})(h|d|w)")
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}


@dataclass(frozen=True, slots=True)
class Rates:
    """What an exchange takes of a notional, in per cent."""

    maker: float
    taker: float


@dataclass(frozen=True, slots=True)
class Fees:
    binance: Rates = Rates(0.02, 0.05)
    upbit: Rates = Rates(0.05, 0.05)

    def at(self, exchange: Exchange) -> Rates:
        return self.binance if exchange is Exchange.BINANCE else self.upbit


@dataclass(frozen=True, slots=True)
class Slippage:
    """What $100k cost against the mid, in per cent, either way."""

    buy: float
    sell: float


@dataclass(frozen=True, slots=True)
class Terms:
    """As of one moment. What is missing makes rules stricter, never milder."""

    symbol: Symbol
    mode: Mode
    as_of: Millis
    bars: Known[Bars] = field(repr=False)
    """The mode's shortest, the last thousand; missing where any of the mode's timeframes is."""
    atr: Known[float]
    mark: Known[float]
    slippage: Known[Slippage]
    funding_next: Known[float]
    """Predicted, as a fraction for eight hours."""
    funding_week: Known[float]
    """The mean of seven days, as a fraction for eight hours."""
    panic: Known[bool]
    """Whether options are in panic."""
    day_rank: Known[float]
    """Where the day's volatility stands among those of half a year."""
    curve_change: Known[float]
    """2s10s against five prints earlier, in percentage points."""
    longs_forced: Known[float]
    shorts_forced: Known[float]
    """Dollars liquidated in a day."""
    breakout: Known[bool]
    """Whether a spike was called a true breakout."""
    restless: Known[bool]
    """Whether anything forced or violent was found."""
    dollar: Known[float]
    """USDT for one USDC."""
    won: Known[float]
    """For one USDT."""
    account: Known[Account]
    """What is held, which is known without a mark."""
    standing: Known[Standing]
    fees: Fees = field(default_factory=Fees)
    paper: bool = True
    resolved: int = 0
    """Trades of this judge and regime whose end is known."""

    def forced(self, side: Side) -> Known[float]:
        return self.longs_forced if side is Side.LONG else self.shorts_forced

    @property
    def seed(self) -> int:
        """Of the bars that are drawn from and nothing else: what has no part in it cannot change the draw."""
        if isinstance(self.bars, Missing):
            return 0
        text = b"".join(column.tobytes() for column in (self.bars.close, self.bars.high, self.bars.low))
        return int.from_bytes(sha256(text).digest()[:8], "big")


def terms_of(
    bundle: Bundle, features: Features, *, fees: Fees | None = None, paper: bool = True, resolved: int = 0
) -> Terms:
    perpetual = next(one for one in features.perpetuals if one.venue == BINANCE)
    slope, forced = features.economy.slope, _forced(bundle)
    return Terms(
        symbol=bundle.symbol,
        mode=bundle.mode,
        as_of=bundle.as_of,
        bars=_bars(bundle),
        atr=atr_of(bundle, features),
        mark=mark_of(bundle, bundle.symbol),
        slippage=_slippage(features),
        funding_next=perpetual.predicted if isinstance(perpetual.predicted, Missing) else perpetual.predicted.per_8h,
        funding_week=perpetual.week if isinstance(perpetual.week, Missing) else perpetual.week.per_8h,
        panic=_fired(features.triage, Rule.OPTIONS_PANIC),
        day_rank=features.volatility if isinstance(features.volatility, Missing) else features.volatility.rank,
        curve_change=slope if isinstance(slope, Missing) else slope.change,
        longs_forced=forced[Side.LONG],
        shorts_forced=forced[Side.SHORT],
        breakout=_breakout(features.triage),
        restless=_fired(features.triage, Rule.SPIKE, Rule.LIQUIDATION_CLUSTER, Rule.OPTIONS_PANIC),
        dollar=features.dollar if isinstance(features.dollar, Missing) else features.dollar.value,
        won=features.won if isinstance(features.won, Missing) else features.won.value,
        account=account_of(bundle),
        standing=standing(bundle, features),
        fees=fees or Fees(),
        paper=paper,
        resolved=resolved,
    )


def hold_text(text: str, mode: Mode) -> str:
    """The duration as it is written, where it is one that lasts; else the mode's own."""
    return text if _hours(text) else DEFAULT_HOLD[mode]


def hold_hours(text: str, mode: Mode) -> int:
    return _hours(hold_text(text, mode))


def _hours(text: str) -> int:
    found = _HOLD.fullmatch(text)
    return int(found[1]) * _HOURS[found[2]] if found and found[1].isascii() else 0


def _bars(bundle: Bundle) -> Known[Bars]:
    for timeframe in bundle.mode.timeframes:
        rows = fresh(bundle, candles(BINANCE, bundle.symbol, timeframe))
        if isinstance(rows, Missing):
            return Missing(f"{timeframe} bars: {rows.reason}")
    shortest = bundle.mode.timeframes[0]
    given = bars(shortest, bundle.rows(candles(BINANCE, bundle.symbol, shortest)))
    window = sound(given.upto(bundle.as_of)).last(LOOKBACK)
    return window if len(window) else Missing(f"no {shortest} bar can be believed")


def _slippage(features: Features) -> Known[Slippage]:
    book = features.book
    if isinstance(book, Missing):
        return book
    buy, sell = book.buy_slippage_bps, book.sell_slippage_bps
    if isinstance(buy, Missing):
        return buy
    return sell if isinstance(sell, Missing) else Slippage(buy / 100, sell / 100)


def _fired(found: Triage, *rules: Rule) -> Known[bool]:
    if any(one.rule in rules for one in found.anomalies):
        return True
    unknown = next((one for one in found.unknown if one.rule in rules), None)
    return False if unknown is None else Missing(unknown.reason)


def _breakout(found: Triage) -> Known[bool]:
    if any(one.label is Label.TRUE_BREAKOUT for one in found.anomalies):
        return True
    known = _fired(found, Rule.SPIKE)
    return known if isinstance(known, Missing) else False


def _forced(bundle: Bundle) -> Mapping[Side, Known[float]]:
    """A day's forced trades of every venue that is listened to, minutes nobody heard counted like the others. Where one
    was not heard, the rest is known only if it is too much already."""
    since = Millis(bundle.as_of - DAY_MS)
    days: list[Tally] = []
    gone: list[str] = []
    for venue in TAPES:
        strikes = fresh(bundle, liquidations(venue, bundle.symbol))
        if isinstance(strikes, Missing):
            gone.append(f"{venue}: {strikes.reason}")
            continue
        signs = bundle.rows(alive(Feed.LIQUIDATIONS, venue, bundle.symbol))
        day = tally([Stream(venue, _since(strikes, since), _since(signs, since))], since, bundle.as_of)
        days.append(day)
        if day.heard < HEARD_SHARE * day.minutes:
            gone.append(f"{venue}: {day.heard} of {day.minutes} minutes were heard")
    sums = {side: fsum(_whole(day, side) for day in days) for side in Side}
    return {side: usd if not gone or usd > TRAP_USD else Missing("; ".join(gone)) for side, usd in sums.items()}


def _whole(day: Tally, side: Side) -> float:
    usd = day.usd(side)
    return 0.0 if isinstance(usd, Missing) else usd * day.minutes / max(day.heard, HEARD_SHARE * day.minutes)


def _since(rows: Sequence[R], since: int) -> Sequence[R]:
    """Of rows in their order, those from the beginning of that minute on."""
    return rows[bisect_left(rows, since // MINUTE_MS * MINUTE_MS, key=attrgetter("at")) :]


def lacking(terms: Terms) -> tuple[str, ...]:
    """What is missing of what new risk needs, each with its reason."""
    found: dict[str, str] = {}
    for name, called in ESSENTIAL.items():
        figure = getattr(terms, name)
        if isinstance(figure, Missing):
            found.setdefault(called, f"{called}: {figure.reason}")
    return tuple(found.values())
