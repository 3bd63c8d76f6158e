"""What the blackboard comes to: which way each entry looks, how much each voice weighs, and the sign of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import Final, TypeAlias

from zuno.core.features import Features
from zuno.core.known import Known, Missing
from zuno.core.structure.lines import Gauge
from zuno.core.structure.pivots import Way
from zuno.domain.cycle import CONVICTION, WEIGHTS, Expert, Signal
from zuno.domain.trading import Mode
from zuno.messages.cycle import (
    Blackboard,
    FlowAnomaly,
    GeometryEntry,
    LiquidityEntry,
    MacroEntry,
    MicrostructureEntry,
    Stance,
)

TRUST: Final = 1.5
"""How much more the expert weighs whom the directive names."""
DEAD_BAND: Final = 0.15
Entry: TypeAlias = LiquidityEntry | MicrostructureEntry | MacroEntry | GeometryEntry
_LEANS: Final[Mapping[str, Stance]] = {"BULLISH": 1, "UP": 1, "BEARISH": -1, "DOWN": -1, "NEUTRAL": 0}


def stance_of(entry: Entry, flow: Stance = 0) -> Stance:
    """Which way an entry looks, whatever it says of itself. Liquidity names no direction: `flow` is the one that was
    measured, and counts where an anomaly was found."""
    match entry:
        case LiquidityEntry():
            return 0 if entry.anomaly == "none" else flow
        case MacroEntry():
            return lean(entry.options_bias)
        case _:
            return lean(entry.directional_bias)


def lean(word: str) -> Stance:
    """BULLISH and UP are 1, BEARISH and DOWN −1, NEUTRAL 0."""
    return _LEANS[word]


def flow_stance(anomaly: FlowAnomaly, features: Features) -> Stance:
    """Which way an anomaly of the flow points, by what was measured: a divergence where it points, else where large
    takers lean; a hunt against the side that was hunted, for its sellers (or buyers) are spent."""
    if anomaly == "whale_cvd_divergence":
        return _divergence(features) or _whales(features)
    return _hunted(features) if anomaly == "liquidation_hunting" else 0


def weights(mode: Mode, trusted: Expert | None) -> Mapping[Expert, float]:
    """In the order of conviction; the trusted one weighs half as much again."""
    plain = zip(CONVICTION[mode], WEIGHTS, strict=True)
    return {expert: weight * (TRUST if expert is trusted else 1.0) for expert, weight in plain}


def score(board: Blackboard, mode: Mode, trusted: Expert | None) -> float:
    """Σ weight · stance · confidence. Who is absent adds nothing, and nobody weighs more for it."""
    weighed = weights(mode, trusted)
    # 0.6 · 0.25 is 0.15 and nothing beyond it: what doubles leave over decides nothing.
    return round(fsum(weighed[expert] * entry.stance * entry.confidence for expert, entry in entries(board).items()), 9)


def signal(score: float) -> Signal:
    if abs(score) <= DEAD_BAND:
        return Signal.NEUTRAL
    return Signal.BULLISH if score > 0 else Signal.BEARISH


def entries(board: Blackboard) -> Mapping[Expert, Entry]:
    """Who is there."""
    named: dict[Expert, Entry | None] = {
        Expert.LIQUIDITY: board.liquidity,
        Expert.MICROSTRUCTURE: board.microstructure,
        Expert.MACRO: board.macro,
        Expert.GEOMETRY: board.vlm_geometry,
    }
    return {expert: entry for expert, entry in named.items() if entry is not None}


def _divergence(features: Features) -> Stance:
    """Of the shortest timeframe that has one: the newest between price and CVD."""
    for _, frame in features.frames:
        if isinstance(frame, Missing):
            continue
        found = [one for one in frame.structure.divergences if one.gauge is Gauge.CVD]
        if found:
            return 1 if max(found, key=lambda one: one.known_at).way is Way.UP else -1
    return 0


def _whales(features: Features) -> Stance:
    flow = features.whales_day
    return _sign(flow if isinstance(flow, Missing) else flow.net_usd)


def _hunted(features: Features) -> Stance:
    longs, shorts = features.forced.longs_hour, features.forced.shorts_hour
    gone = [0.0 if isinstance(side, Missing) else side.usd for side in (longs, shorts)]
    return _sign(gone[0] - gone[1])


def _sign(figure: Known[float]) -> Stance:
    if isinstance(figure, Missing) or not figure:
        return 0
    return 1 if figure > 0 else -1
