"""What an option chain says of fear: puts against calls, volatility at the money, its skew and its term structure, by
Black-76 on the forward of each expiry, without interest. Nothing is extrapolated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, fsum, inf, log, sqrt
from statistics import median
from typing import Final

from zuno.kernel.units import Millis
from zuno.trading.measure.portable import RATIO_PLACES
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, OptionChain, OptionQuote

YEAR_MS: Final = 365 * DAY_MS
WING: Final = 0.25
SHORT_DAYS: Final = 7
LONG_DAYS: Final = 30
TOO_NEAR_MS: Final = 48 * HOUR_MS
"""An expiry nearer than this is noise: it is shown, and takes no part in a tenor."""
PLAUSIBLE_IV: Final = (5.0, 1_000.0)
"""Vol points. What lies outside is a fraction taken for a percentage, or nothing."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """One expiry's smile, in vol points (percent a year)."""

    at: Millis
    years: float
    forward: Known[float]
    atm: Known[float]
    put25: Known[float]
    call25: Known[float]
    quotes: int


@dataclass(frozen=True, slots=True)
class Tenor:
    """The surface so many days out, in vol points."""

    days: int
    atm: Known[float]
    skew25: Known[float]
    """IV of the 25-delta put less that of the 25-delta call: positive when puts are dear."""


@dataclass(frozen=True, slots=True)
class Surface:
    at: Millis
    put_call_open_interest: Known[float]
    put_call_volume: Known[float]
    expiries: tuple[Expiry, ...]
    week: Tenor
    month: Tenor
    term: Known[float]
    """ATM IV of the week less that of the month, in vol points."""
    unplaced: int
    """Quotes that name no expiry."""
    dropped: int
    """Quotes that cannot be: a strike, an interest or a volume no market has."""


def normal_cdf(x: float) -> float:
    return erfc(-x / sqrt(2)) / 2


def delta(forward: float, strike: float, sigma: float, years: float, *, call: bool) -> float:
    """How much an option follows its forward: 0 to 1 for a call, −1 to 0 for a put. `sigma` is a fraction a year."""
    spread = sigma * sqrt(years)
    first = log(forward / strike) / spread + spread / 2
    return normal_cdf(first) if call else -normal_cdf(-first)


def measure_surface(chain: OptionChain) -> Surface:
    """Every figure of a chain, or why it is not there."""
    sound = [quote for quote in chain.quotes if _possible(quote)]
    by_expiry: dict[Millis, list[OptionQuote]] = {}
    for quote in sound:
        if quote.expiry is not None and quote.expiry > chain.at:
            by_expiry.setdefault(quote.expiry, []).append(quote)
    unplaced = sum(quote.expiry is None for quote in sound)
    live = [quote for quote in sound if quote.expiry is None or quote.expiry > chain.at]
    expiries = tuple(_expiry(at, quotes, chain.at) for at, quotes in sorted(by_expiry.items()))
    nothing = None if expiries else "missing: the chain is empty"
    if chain.quotes and not expiries:
        none_to_come = f"({unplaced} of {len(chain.quotes)} name none)"
        nothing = f"missing: no option of the chain names an expiry to come {none_to_come}"
    week, month = (_tenor(days, chain.at, expiries, nothing) for days in (SHORT_DAYS, LONG_DAYS))
    return Surface(
        chain.at,
        _put_call(live, "open interest", lambda quote: quote.open_interest),
        _put_call(live, "volume", lambda quote: quote.volume),
        expiries,
        week,
        month,
        _difference(week.atm, month.atm),
        unplaced,
        len(chain.quotes) - len(sound),
    )


def _possible(quote: OptionQuote) -> bool:
    return 0 < quote.strike < inf and 0 <= quote.open_interest < inf and 0 <= quote.volume < inf


def _put_call(quotes: Sequence[OptionQuote], what: str, of: Callable[[OptionQuote], float]) -> Known[float]:
    puts, calls = (fsum(of(quote) for quote in quotes if quote.call is call) for call in (False, True))
    if not calls:
        return Missing(f"calls have no {what} to hold the puts' {puts:g} against")
    return puts / calls


def _expiry(at: Millis, quotes: Sequence[OptionQuote], now: Millis) -> Expiry:
    years = (at - now) / YEAR_MS
    forwards = [quote.underlying for quote in quotes if quote.underlying is not None and 0 < quote.underlying < inf]
    if not forwards:
        none = Missing("no quote of this expiry names its forward")
        return Expiry(at, years, none, none, none, none, len(quotes))
    forward = median(forwards)
    put25, call25 = (_wing(quotes, forward, years, call=call) for call in (False, True))
    return Expiry(at, years, forward, _at_the_money(quotes, forward), put25, call25, len(quotes))


def _vols(quotes: Sequence[OptionQuote]) -> list[tuple[float, float]]:
    """Strike and IV of what is plausibly quoted, by strike."""
    low, high = PLAUSIBLE_IV
    return sorted((q.strike, q.mark_iv) for q in quotes if q.mark_iv is not None and low <= q.mark_iv <= high)


def _at_the_money(quotes: Sequence[OptionQuote], forward: float) -> Known[float]:
    """IV at K = F: interpolated variance of out-of-the-money options, or the mean of put and call."""
    smile = dict(_vols(quotes)) | dict(_vols([quote for quote in quotes if quote.call == (quote.strike > forward)]))
    if here := [iv for strike, iv in _vols(quotes) if strike == forward]:
        return fsum(here) / len(here)
    below = max((strike for strike in smile if strike < forward), default=None)
    above = min((strike for strike in smile if strike > forward), default=None)
    if below is None or above is None:
        return Missing(f"no strike with a volatility {'below' if below is None else 'above'} the forward {forward:g}")
    weight = log(forward / below) / log(above / below)
    return round(sqrt(smile[below] ** 2 * (1 - weight) + smile[above] ** 2 * weight), RATIO_PLACES)


def _wing(quotes: Sequence[OptionQuote], forward: float, years: float, *, call: bool) -> Known[float]:
    """IV where the delta is a quarter: along delta, between the strikes on either side of it, nearest to the money."""
    vols = _vols([quote for quote in quotes if quote.call is call])
    deltas = [(abs(delta(forward, strike, iv / 100, years, call=call)), iv) for strike, iv in vols]
    outward = deltas if call else deltas[::-1]
    for (nearer, near_iv), (further, far_iv) in pairwise(outward):
        if nearer >= WING >= further and nearer > further:
            weight = (nearer - WING) / (nearer - further)
            return round(near_iv * (1 - weight) + far_iv * weight, RATIO_PLACES)
    name = "call" if call else "put"
    return Missing(f"no {name} strikes on both sides of a delta of {WING}: {len(vols)} {name}s have a volatility")


def _tenor(days: int, now: Millis, expiries: Sequence[Expiry], nothing: str | None) -> Tenor:
    if nothing is not None:
        return Tenor(days, Missing(nothing), Missing(nothing))
    usable = [expiry for expiry in expiries if expiry.at - now >= TOO_NEAR_MS]
    puts, calls = (_at_days(days, usable, of) for of in (lambda expiry: expiry.put25, lambda expiry: expiry.call25))
    return Tenor(days, _at_days(days, usable, lambda expiry: expiry.atm), _difference(puts, calls))


def _at_days(days: int, expiries: Sequence[Expiry], of: Callable[[Expiry], Known[float]]) -> Known[float]:
    """Total variance along time, between the nearest expiries that have the figure."""
    years = days * DAY_MS / YEAR_MS
    figures = [(expiry.years, of(expiry)) for expiry in expiries]
    having = [(at, figure) for at, figure in figures if not isinstance(figure, Missing)]
    before = max((pair for pair in having if pair[0] <= years), default=None)
    after = min((pair for pair in having if pair[0] >= years), default=None)
    if before is None or after is None:
        early, side = (True, "at or before") if before is None else (False, "at or after")
        there = (figure for at, figure in figures if (at <= years if early else at >= years))
        why = dict.fromkeys(figure.reason for figure in there if isinstance(figure, Missing))
        return Missing(
            f"missing: no expiry of two days or more {side} {days} days has this figure "
            f"({'; '.join(why) or 'none is listed'})"
        )
    if before[0] == after[0]:
        return before[1]
    weight = (years - before[0]) / (after[0] - before[0])
    variance = before[1] ** 2 * before[0] * (1 - weight) + after[1] ** 2 * after[0] * weight
    return round(sqrt(variance / years), RATIO_PLACES)


def _difference(left: Known[float], right: Known[float]) -> Known[float]:
    if isinstance(left, Missing):
        return left
    return right if isinstance(right, Missing) else round(left - right, RATIO_PLACES)
