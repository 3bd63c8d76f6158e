"""What a series of returns is worth: Sharpe, Sortino, Calmar, drawdown, and how much of a Sharpe ratio is luck.

Returns are fractions of one bar each, oldest first. What is shown is rounded: the same digits on every machine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import e, fsum, sqrt
from statistics import NormalDist
from typing import Final

from zuno.trading.measure.portable import exp, log, round_digits

DIGITS: Final = 9
"""Significant digits of a figure that is shown, hashed or compared."""
EULER_GAMMA: Final = 0.5772156649015329
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class ReturnFigures:
    """Of a series of returns; None where there is nothing to divide by."""

    max_drawdown: float
    """The deepest fall of the compounded returns below an earlier peak, a fraction of the peak."""
    sharpe: float | None
    """A year, against no return."""
    sortino: float | None
    """A year: the mean over the root of the mean squared loss."""
    calmar: float | None
    """Compounded growth a year over the deepest drawdown."""
    annual_return: float
    """Compounded, a fraction."""
    volatility: float
    """A year."""


def measure_returns(returns: Sequence[float], bars_per_year: float) -> ReturnFigures:
    count = len(returns)
    mean = fsum(returns) / count if count else 0.0
    deviation, _, _ = _moments(returns, mean)
    downside = sqrt(fsum(value * value for value in returns if value < 0) / count) if count else 0.0
    growth, drawdown = compound(returns)
    year, yearly = sqrt(bars_per_year), yearly_growth(growth, count, bars_per_year)
    return ReturnFigures(
        max_drawdown=round_figure(drawdown),
        sharpe=round_figure(mean / deviation * year) if deviation else None,
        sortino=round_figure(mean / downside * year) if downside else None,
        calmar=round_figure(yearly / drawdown) if drawdown else None,
        annual_return=round_figure(yearly),
        volatility=round_figure((deviation or 0.0) * year),
    )


def compound(returns: Iterable[float]) -> tuple[float, float]:
    """What one unit becomes, and its deepest fall below an earlier peak. What is lost whole stays lost."""
    worth = peak = 1.0
    deepest = 0.0
    for value in returns:
        worth = max(0.0, worth * (1 + value))
        peak = max(peak, worth)
        deepest = max(deepest, (peak - worth) / peak)
    return worth, deepest


def yearly_growth(growth: float, bars: int, bars_per_year: float) -> float:
    """Compounded growth a year, a fraction."""
    if growth <= 0 or not bars:
        return -1.0 if bars else 0.0
    return float(exp(float(log(growth)) * (bars_per_year / bars))) - 1


def probabilistic_sharpe(returns: Sequence[float], benchmark: float = 0.0) -> float | None:
    """The probability that the true Sharpe ratio of a bar is above `benchmark` (of a bar too), given length, skewness
    and kurtosis of the sample (Bailey and López de Prado). None where the returns do not vary."""
    mean = fsum(returns) / len(returns) if returns else 0.0
    deviation, skewness, kurtosis = _moments(returns, mean)
    if not deviation or skewness is None or kurtosis is None:
        return None
    return sharpe_probability(mean / deviation, benchmark, len(returns), skewness, kurtosis)


def sharpe_probability(sharpe: float, benchmark: float, bars: int, skewness: float, kurtosis: float) -> float:
    spread = 1 - skewness * sharpe + (kurtosis - 1) / 4 * sharpe * sharpe
    if spread <= 0:  # no sample has such moments, but rounded ones may
        return float(sharpe > benchmark)
    return round_figure(_NORMAL.cdf((sharpe - benchmark) * sqrt(bars - 1) / sqrt(spread)))


def expected_best_sharpe(trials: int, variance: float) -> float:
    """The best Sharpe ratio of a bar that so many trials without any edge are expected to show."""
    if trials <= 1:
        return 0.0
    high = (1 - EULER_GAMMA) * _NORMAL.inv_cdf(1 - 1 / trials)
    return sqrt(variance) * (high + EULER_GAMMA * _NORMAL.inv_cdf(1 - 1 / (trials * e)))


def deflated_sharpe(returns: Sequence[float], trials: int, variance: float | None = None) -> float | None:
    """The probability that a Sharpe ratio is more than the luckiest of so many trials.

    `variance`: of the trials' Sharpe ratios of a bar; None takes what ratios of trials without any edge have over as
    many bars, 1 / (bars − 1)."""
    if len(returns) < 2:
        return None
    spread = 1 / (len(returns) - 1) if variance is None else variance
    return probabilistic_sharpe(returns, expected_best_sharpe(trials, spread))


def estimate_trial_variance(sharpes: Sequence[float], bars: int) -> float:
    """Of Sharpe ratios of a bar; never below what luck alone makes of them, as that of a few arms that are alike is."""
    mean = fsum(sharpes) / len(sharpes) if sharpes else 0.0
    variance = fsum((value - mean) * (value - mean) for value in sharpes) / max(1, len(sharpes) - 1)
    return max(variance, 1 / max(1, bars - 1))


def _moments(returns: Sequence[float], mean: float) -> tuple[float | None, float | None, float | None]:
    """Deviation of a sample, skewness, kurtosis; None of them where nothing varies."""
    count = len(returns)
    apart = [value - mean for value in returns]
    squares = fsum(value * value for value in apart)
    # Equal returns leave what rounding their mean left.
    if count < 2 or squares <= count * (1e-15 * max(map(abs, returns))) ** 2:
        return None, None, None
    variance = squares / count
    third = fsum(value * value * value for value in apart) / count
    fourth = fsum(value * value * value * value for value in apart) / count
    return sqrt(squares / (count - 1)), third / (variance * sqrt(variance)), fourth / (variance * variance)


def round_figure(value: float) -> float:
    return round_digits(value, DIGITS)
