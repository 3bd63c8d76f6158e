"""The market regime by rule: stressed, volatile, trending or ranging."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from zuno.amm.model import Range
from zuno.kernel.statistics import percentile
from zuno.lp.model.ballot import Regime
from zuno.lp.rules.volatility import nano_returns

VOL_WINDOW_HOURS: Final = 24
LEAST_VOL_HISTORY: Final = 168
"""Rolling volatilities needed before a percentile of them means anything: a week."""
STRESSED_BPS_WITHOUT_HISTORY: Final = 650.0
VOLATILE_BPS_WITHOUT_HISTORY: Final = 500.0
GAS_SPIKE: Final = 5
TREND: Final = 0.45


@dataclass(frozen=True, slots=True)
class RegimeReading:
    """The label, what decided it, and what it does not rest on."""

    regime: Regime
    why: str
    """Its figures are slots of the pool's facts."""
    notes: tuple[str, ...] = ()


def classify(
    *,
    vol_bps: float | None,
    vol_history_bps: Sequence[float],
    gas_price_wei: int | None,
    gas_history_wei: Sequence[int],
    returns_24h: Sequence[float],
    tick: int | None = None,
    position: Range | None = None,
) -> RegimeReading:
    """The first rule that matches: stressed, volatile, trending, else ranging.

    `vol_bps` is the volatility of the last 24 h, `vol_history_bps` its own last 30 days (`returns.rolling_vol_bps`),
    `gas_history_wei` our own samples, `returns_24h` the last 24 hourly returns. What is missing cannot match,
    and the notes say so. `tick` and `position` belong together; a create debate has neither.
    """
    notes: list[str] = []
    high, raised, marks = volatility_marks(vol_history_bps)
    if vol_bps is None:
        notes.append("volatility unknown")
    elif len(vol_history_bps) < LEAST_VOL_HISTORY:
        notes.append(f"no 30 days of volatility of its own: {high:.0f} and {raised:.0f} bps stand in")
    if gas_price_wei is None or not gas_history_wei:
        notes.append("no gas samples of our own to compare with")

    def build_reading(regime: Regime, why: str) -> RegimeReading:
        return RegimeReading(regime, why, tuple(notes))

    if vol_bps is not None and vol_bps > high:
        return build_reading(
            Regime.STRESSED, f"volatility {{volatility}} a day is above {{volatility_high}} ({marks[0]})"
        )
    if gas_price_wei is not None and gas_history_wei and gas_price_wei > GAS_SPIKE * median(gas_history_wei):
        return build_reading(Regime.STRESSED, "gas is {gas_price_over_median} its median, above {gas_spike}")
    if tick is not None and position is not None:
        beyond = max(position.lower - tick, tick - position.upper)
        if 2 * beyond > position.width:
            return build_reading(Regime.STRESSED, "{outside_by} out of range, more than half its width of {width_held}")
    if vol_bps is not None and vol_bps > raised:
        return build_reading(
            Regime.VOLATILE, f"volatility {{volatility}} a day is above {{volatility_raised}} ({marks[1]})"
        )
    trend = trend_of(returns_24h)
    if trend is None:
        notes.append(f"{len(returns_24h)} of the last {VOL_WINDOW_HOURS} hourly returns known: no trend is read")
    elif trend > TREND:
        return build_reading(
            Regime.TRENDING, "{trend} of the last day's movement went one way, above {trend_threshold}"
        )
    return build_reading(Regime.RANGING, "no rule for stressed, volatile or trending matched")


def volatility_marks(history: Sequence[float]) -> tuple[float, float, tuple[str, str]]:
    """Above which a volatility is stressed or volatile, and what those marks are."""
    if len(history) < LEAST_VOL_HISTORY:
        stand_in = "a stand-in"
        return STRESSED_BPS_WITHOUT_HISTORY, VOLATILE_BPS_WITHOUT_HISTORY, (stand_in, stand_in)
    names = ("95th percentile of its own history", "75th percentile of its own history")
    return percentile(history, 95), percentile(history, 75), names


def trend_of(returns: Sequence[float]) -> float | None:
    """|Σr| / Σ|r|: 1 when every hour went the same way, 0 when they cancel."""
    if len(returns) < VOL_WINDOW_HOURS:
        return None
    last = nano_returns(returns[-VOL_WINDOW_HOURS:])
    travelled = sum(map(abs, last))
    return abs(sum(last)) / travelled if travelled else 0.0
