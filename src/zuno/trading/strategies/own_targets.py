"""What an owner's strategy is shown, which of its answers count, and what its shadow would have earned."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import sqrt
from operator import mul
from statistics import fmean, stdev
from typing import Final

from zuno.kernel.errors import Malformed
from zuno.kernel.text import plain_text
from zuno.trading.model.known import pick
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.own_strategies import OwnAnswer
from zuno.trading.strategies.port import DAYS_PER_YEAR, WEIGHT_PLACES, StrategyView

CAP: Final = 1.0
"""Of a sleeve's weights, whichever side they are on."""
COST: Final = 0.0009
"""Of what a shadow trades."""
LEAST_SHADOW_DAYS: Final = 1
"""A strategy with a shorter shadow gets no share."""
_MOST: Final = CAP + 1e-9


def encode_view(view: StrategyView) -> bytes:
    fields = ("name", "days", "closes", "funding", "spot")
    markets = {name: pick(history, *fields) for name, history in view.markets.items()}
    return json.dumps({"at": view.at, "markets": markets}).encode()


def check_targets(answer: Mapping[str, object], sides: Mapping[str, bool]) -> dict[str, float]:
    """The weights of an answer, zeros left out. `sides`: the markets that the sleeve may trade, and whether each can be
    sold short. `Malformed` names what is wrong."""
    weights: dict[str, float] = {}
    for name, weight in answer.items():
        market = plain_text(name, 40)
        if name not in sides:
            raise Malformed(f"{market} is no market it may trade; there are {', '.join(sides)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight != weight:
            raise Malformed(f"the weight of {market} is {plain_text(repr(weight), 40)}, not a number")
        if abs(weight) > _MOST:
            raise Malformed(f"the weight of {market} is beyond {CAP:g}")
        if weight < 0 and not sides[name]:
            raise Malformed(f"the weight of {market} is below 0; a spot market is not sold short")
        if weight:
            weights[name] = round(float(weight), WEIGHT_PLACES)
    if (total := sum(map(abs, weights.values()))) > _MOST:
        raise Malformed(f"the weights add up to {total:.6g}, more than {CAP:g}")
    return weights


@dataclass(frozen=True, slots=True)
class ShadowRecord:
    days: int = 0
    """From the first answer to the last."""
    returns: Mapping[int, float] = field(default_factory=dict)
    """After costs, by the end of the day in Unix milliseconds; days without an answer are part of the next one's."""
    gain: float = 0.0
    costs: float = 0.0
    fall: float = 0.0
    """The deepest from a high."""
    sharpe: float | None = None
    """A year; None where nothing varies."""


def measure_shadow(answers: Sequence[OwnAnswer]) -> ShadowRecord:
    """What these answers, oldest first, would have earned: each held from its close to the next one's, with costs for
    what is traded there. A market without a later close stands still; funding is not counted."""
    held: dict[str, float] = {}
    returns, costs = dict[int, float](), 0.0
    for answer, following in pairwise(answers):
        wanted, later = answer.targets, following.closes
        moves = {name: later.get(name, close) / close - 1 for name, close in answer.closes.items() if close > 0}
        cost = COST * sum(abs(wanted.get(name, 0.0) - held.get(name, 0.0)) for name in wanted.keys() | held.keys())
        gross = sum(weight * moves.get(name, 0.0) for name, weight in wanted.items())
        returns[following.at], costs = max(gross - cost, -1.0), costs + cost
        worth = max(1 + gross, 1e-9)
        held = {name: weight * (1 + moves.get(name, 0.0)) / worth for name, weight in wanted.items()}
    if not returns:
        return ShadowRecord()
    days, gains = round((answers[-1].at - answers[0].at) / DAY_MS), list(returns.values())
    equity = [1.0, *accumulate((1 + gain for gain in gains), mul)]
    fall = max(1 - worth / high for worth, high in zip(equity, accumulate(equity, max), strict=True))
    deviation = stdev(gains) if len(gains) > 1 else 0.0
    sharpe = fmean(gains) / deviation * sqrt(DAYS_PER_YEAR * len(gains) / days) if deviation else None
    return ShadowRecord(days, returns, equity[-1] - 1, costs, fall, sharpe)
