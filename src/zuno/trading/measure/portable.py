"""Numbers that are the same on every machine: logarithms, exponentials, and the digits a figure is kept to. IEEE 754
fixes sums, products, quotients and roots; last bits of all else are the processor's own. What seeds a draw, is hashed
or is held against a bound is an integer, made of those four in a fixed order, or rounded here first."""

import math
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

PRICE_DIGITS: Final = 12
"""Of a price as it comes in: more than any venue prints of BTC or ETH, and fewer than the last bit can change."""
GAUGE_DIGITS: Final = 11
"""Of a gauge's last value, those of a price gauge counted from the first digit of the price."""
RATIO_PLACES: Final = 9
"""Decimals of a share, a ratio or a volatility that is held against a bound."""
USD_PLACES: Final = 2
PRICE_PLACES: Final = 8
"""Decimals of a price that is hashed, or compared with another."""
NANO: Final = 10**9
"""Logarithms of prices that are added up or compared are whole numbers of 1e-9."""

_LN2_HIGH: Final = 0.6931471803691238
"""ln 2 with its last 21 bits empty: times a whole exponent it is exact."""
_LN2_LOW: Final = 1.9082149292705877e-10
_ODD: Final = tuple(1 / odd for odd in range(23, 0, -2))
"""Of atanh: beyond them nothing reaches the last bit, for an argument of at most 0.172."""
_FACTORIALS: Final = (
    *(1 / 6227020800, 1 / 479001600, 1 / 39916800, 1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720),
    *(1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0),
)
"""Of exp, for an argument of at most 0.347."""


def log(values: ArrayLike) -> NDArray[np.float64]:
    """The natural logarithm, within three units of the last place. Of what is not above zero: whatever comes."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    low = mantissa < 0.7071067811865476
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), (exponent - low).astype(np.float64)
    share = (mantissa - 1) / (mantissa + 1)
    square = share * share
    series = np.full_like(square, _ODD[0])
    for factor in _ODD[1:]:
        series *= square
        series += factor
    return np.asarray(exponent * _LN2_HIGH + (exponent * _LN2_LOW + 2 * share * series))


def log_of(value: float) -> float:
    """`log` of one number above zero, to the same bit: an array of one costs fifty times as much."""
    mantissa, exponent = math.frexp(value)
    if mantissa < 0.7071067811865476:
        mantissa, exponent = 2 * mantissa, exponent - 1
    share = (mantissa - 1) / (mantissa + 1)
    square = share * share
    series = _ODD[0]
    for factor in _ODD[1:]:
        series = series * square + factor
    return exponent * _LN2_HIGH + (exponent * _LN2_LOW + 2 * share * series)


def exp(values: ArrayLike) -> NDArray[np.float64]:
    """e to the power of these, within two units of the last place, between −700 and 700."""
    given = np.asarray(values, dtype=np.float64)
    power = np.rint(given * 1.4426950408889634)
    rest = (given - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.full_like(rest, _FACTORIALS[0])
    for factor in _FACTORIALS[1:]:
        series *= rest
        series += factor
    return np.asarray(np.ldexp(series, power.astype(np.int32)))


def tanh(values: ArrayLike) -> NDArray[np.float64]:
    """Beyond twenty it is one."""
    return np.asarray(1 - 2 / (exp(2 * np.clip(np.asarray(values, dtype=np.float64), -20, 20)) + 1))


def nano_log(prices: ArrayLike) -> NDArray[np.int64]:
    """The logarithm in whole 1e-9."""
    return np.asarray(np.rint(log(prices) * NANO).astype(np.int64))


def round_digits(value: float, digits: int = PRICE_DIGITS) -> float:
    """To so many significant digits: what a last bit may change is gone."""
    return float(f"{value:.{digits}g}") + 0.0


def places(price: float, digits: int) -> int:
    """Decimals that a price with so many digits has."""
    return digits - 1 - Decimal(price).adjusted()


def round_prices(prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each to as many decimals as the first of them has with twelve digits."""
    return np.round(prices, places(float(prices[0]), PRICE_DIGITS)) if len(prices) else prices


def price_units(prices: NDArray[np.float64]) -> NDArray[np.int64]:
    """What is hashed of prices, the same bytes everywhere."""
    return np.asarray(np.rint(prices * 10.0**PRICE_PLACES).astype("<i8"))
