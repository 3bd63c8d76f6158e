"""The synthetic market's options: a chain every hour and an index of implied volatility.

Near expiries follow today's volatility and far ones the long run, so the term structure inverts in a panic; puts get
dear after a fall.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from zuno.adapters.venues.synthetic import path
from zuno.adapters.venues.synthetic.candles import SyntheticMarket
from zuno.adapters.venues.synthetic.derivatives import build_level_batch
from zuno.kernel.units import Millis
from zuno.markets.feeds import DERIBIT
from zuno.trading.measure.bars import Floats
from zuno.trading.measure.portable import exp, log
from zuno.trading.model.market import DAY_MS, HOUR_MS, OptionChain, OptionQuote, Timeframe, dvol, options
from zuno.trading.ports.series import Batch

SIDE: Final = 7
"""Strikes on either side of the one nearest to the forward."""
DVOL_DAYS: Final = 120
YEAR_MS: Final = 365 * DAY_MS
FADE_YEARS: Final = 12 / 365
"""How fast volatility is expected to return to the usual."""
PREMIUM: Final = 7.0
"""Vol points a buyer pays over what is expected, for a far expiry; hardly any for tomorrow's."""
_TENS: Final = np.array([float(10**power) for power in range(16)])
_MONTHS: Final = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()


@dataclass(frozen=True, slots=True, eq=False)
class VolatilityState:
    """What options are priced from, hour by hour: yearly volatility now and in the long run, and fear."""

    now: Floats
    usual: Floats
    fear: Floats
    """Positive after a fall."""


def build_batches(seed: int, made: SyntheticMarket) -> list[Batch[Any]]:
    mood = _build_volatility_state(seed, made)
    at = path.END - HOUR_MS * np.arange(DVOL_DAYS * 24 - 1, -1, -1)
    values = np.round(_atm(mood, slice(-DVOL_DAYS * 24, None), 30 / 365), 2)
    index = build_level_batch(dvol(DERIBIT, made.symbol.base), at, values)
    return [index, Batch(options(DERIBIT, made.symbol.base), list(_chains(seed, made, mood)))]


def _build_volatility_state(seed: int, made: SyntheticMarket) -> VolatilityState:
    hours = made.bars[Timeframe.H1]
    sigma = made.path.sigma[path.hour_of(int(hours.at[0])) :]
    year = np.sqrt(24 * 365)
    square = np.square(sigma)
    day, month = (
        path.decay_noise(square / span, 1 - 1 / span, float(path.sum_last_axis(square[:720]) / 720))
        for span in (24, 480)
    )
    noise = exp(path.decay_noise(path.RandomStream(seed, f"mood {made.symbol}").normal(0.008, len(sigma)), 0.96))
    usual = np.sqrt((month + np.square(1.4 * made.path.coin.sigma)) / 2)
    moved = np.diff(log(hours.close), prepend=log(hours.open[0]))
    fear = np.clip(path.decay_noise(-moved / made.path.coin.sigma, 1 - 1 / 48) / 7, -2, 3)
    return VolatilityState(usual * exp(0.65 * log(np.sqrt(day) / usual)) * year * noise, usual * year, fear)


def _atm(mood: VolatilityState, place: path.Ints | slice, years: Floats | float) -> Floats:
    """Percent a year at the money, for expiries so many years away."""
    passed = np.maximum(np.asarray(years), 1e-4) / FADE_YEARS
    near = (1 - exp(-passed)) / passed
    now = np.square(mood.now[place])
    usual = np.square(mood.usual[place])
    square = usual + (now - usual) * near
    return np.asarray(np.clip(100 * np.sqrt(square) + PREMIUM * (1 - near), 15, 180), dtype=np.float64)


def _chains(seed: int, made: SyntheticMarket, mood: VolatilityState) -> Iterator[OptionChain]:
    """A chain on every full hour. Hours with the same expiries are drawn at once."""
    closes = made.grain.price(made.bars[Timeframe.H1].close)
    at = path.END - HOUR_MS * np.arange(len(closes) - 1, -1, -1)
    late = np.flatnonzero(at > path.MINUTES_FROM)
    for places in np.split(late, np.flatnonzero(np.diff((at[late] - 8 * HOUR_MS) // DAY_MS)) + 1):
        smiles = _smiles(mood, places, at[places], closes[places])
        halves = [_half(seed, made.symbol.base, smiles, call) for call in (False, True)]
        for moment, puts, calls in zip(at[places].tolist(), *halves, strict=True):
            yield OptionChain(Millis(moment), (*puts, *calls))


@dataclass(frozen=True, slots=True, eq=False)
class _Smiles:
    """Hours with the same expiries: one number for each hour, expiry and strike."""

    at: path.Ints
    expiry: path.Ints
    strike: Floats
    forward: Floats
    moneyness: Floats
    mark_iv: Floats


def _smiles(mood: VolatilityState, places: path.Ints, at: path.Ints, spot: Floats) -> _Smiles:
    listed = np.array(_list_expiries((int(at[0]) - 8 * HOUR_MS) // DAY_MS))
    years = (listed - at[:, None]) / YEAR_MS
    atm = _atm(mood, places[:, None], years)
    forward = np.round(spot[:, None] * exp(years * (0.05 - 0.02 * mood.fear[places])[:, None]), 2)
    strike = _strikes(forward, atm, years)
    moneyness = log(strike / forward[:, :, None]) / (atm / 100 * np.sqrt(years))[:, :, None]
    bent = np.clip(moneyness, -4, 4)
    slope = -(1.2 + 2.2 * mood.fear[places])[:, None] * atm / 60
    smile = np.clip(atm[:, :, None] + slope[:, :, None] * bent + 1.6 * np.square(bent), 5, 400)
    shape = strike.shape
    return _Smiles(
        np.broadcast_to(at[:, None, None], shape),
        np.broadcast_to(listed[None, :, None], shape),
        strike,
        np.broadcast_to(forward[:, :, None], shape),
        moneyness,
        np.round(smile, 2),
    )


def _half(seed: int, base: str, smiles: _Smiles, call: bool) -> list[list[OptionQuote]]:
    # Open interest: most near the money, and each option's own.
    near = exp(-0.5 * np.square(smiles.moneyness / 1.5))
    own = 0.3 + 1.4 * _hash_uniform(seed, smiles.expiry, smiles.strike, call)
    held = np.round((10 + 900 * near) * own * (1.0 if call else 0.8), 1)
    traded = np.round(held * (0.02 + 0.05 * _hash_uniform(seed + 1, smiles.at, smiles.strike, call)), 1)
    columns = (smiles.expiry, smiles.strike, smiles.mark_iv, held, traded, smiles.forward)
    hours = [column.reshape(len(smiles.at), -1).tolist() for column in columns]
    kinds = [call] * (held.size // len(held))
    return [
        list(map(OptionQuote, map(partial(_name, base, call), expiry, strike), expiry, strike, kinds, *rest))
        for expiry, strike, *rest in zip(*hours, strict=True)
    ]


def _strikes(forward: Floats, atm: Floats, years: Floats) -> Floats:
    """Fifteen strikes around each forward on round numbers, ⅓ to ⅔ of the expected move apart."""
    apart = np.maximum(_power_of_two(atm / 100 * np.sqrt(years) / 3), 2.0**-8)[:, :, None]
    apart = np.maximum(apart, _power_of_two(1.5 / forward)[:, :, None])
    exact = exp(apart * (np.rint(log(forward)[:, :, None] / apart) + np.arange(-SIDE, SIDE + 1)))
    unit = _TENS[np.maximum(0, np.searchsorted(_TENS, exact, side="right") - 4)]
    return np.asarray(np.rint(exact / unit) * unit, dtype=np.float64)


def _power_of_two(values: Floats) -> Floats:
    """The least power of two that is no less."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(1.0, exponent - (mantissa == 0.5)))


def _hash_uniform(seed: int, left: Any, right: Any, call: bool) -> Floats:
    """A number in [0, 1) that depends on these arguments alone."""
    mixed = np.asarray(left, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.asarray(np.rint(right), dtype=np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed += np.uint64((2 * seed + call) * 0x165667B19E3779F9 % 2**64)
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) / 2.0**53, dtype=np.float64)


@lru_cache(maxsize=64)
def _list_expiries(day: int) -> tuple[int, ...]:
    """What is listed: two days, three Fridays, the last Friday of two months and of a quarter, at 08:00 UTC."""
    today = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
    friday = today + timedelta(days=(3 - today.weekday()) % 7 + 1)
    months = [last for ahead in range(8) if (last := _last_friday(today, ahead)) > today]
    quarter = next(last for last in months if last.month % 3 == 0 and last > months[1])
    days = {today + timedelta(days=1), today + timedelta(days=3), *months[:2], quarter}
    days |= {friday + timedelta(weeks=week) for week in range(3)}
    return tuple(sorted(int(day.timestamp()) * 1_000 + 8 * HOUR_MS for day in days))


def _last_friday(today: datetime, ahead: int) -> datetime:
    month = today.year * 12 + today.month - 1 + ahead + 1
    end = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) - timedelta(days=1)
    return end - timedelta(days=(end.weekday() - 4) % 7)


@lru_cache(maxsize=100_000)
def _name(base: str, call: bool, expiry: int, strike: float) -> str:
    day = datetime.fromtimestamp(expiry / 1_000, UTC)
    return f"{base}-{day.day}{_MONTHS[day.month - 1]}{day:%y}-{strike:.0f}-{'C' if call else 'P'}"
