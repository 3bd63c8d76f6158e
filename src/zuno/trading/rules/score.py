"""The blackboard score: stance and weight of each entry, and the signal of their sum."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Final, TypeAlias

from zuno.trading.measure.features import Features
from zuno.trading.measure.structure import DivergenceSource
from zuno.trading.model import cycle
from zuno.trading.model.known import Known, Missing, figure_in
from zuno.trading.model.market import Mode

TRUSTED_WEIGHT: Final = 1.5
"""Weight multiplier of the expert the directive names."""
DEAD_BAND: Final = 0.15
Entry: TypeAlias = cycle.LiquidityEntry | cycle.MicrostructureEntry | cycle.MacroEntry | cycle.GeometryEntry
ExpertOpinion: TypeAlias = (
    cycle.LiquidityOpinion | cycle.MicrostructureOpinion | cycle.MacroOpinion | cycle.GeometryOpinion
)
STANCES: Final[Mapping[str, cycle.Stance]] = {"BULLISH": 1, "UP": 1, "BEARISH": -1, "DOWN": -1, "NEUTRAL": 0}


def entry_stance(entry: ExpertOpinion, flow: cycle.Stance = 0) -> cycle.Stance:
    """Which way an expert looks. Liquidity names no direction: `flow` is the measured one."""
    match entry:
        case cycle.LiquidityOpinion():
            return flow
        case cycle.MacroOpinion():
            return STANCES[entry.options_bias]
        case _:
            return STANCES[entry.directional_bias]


def flow_stance(anomaly: cycle.FlowAnomaly, features: Features) -> cycle.Stance:
    """Of a divergence where it points, else as large takers lean; of a hunt against the hunted side."""
    if anomaly == "whale_cvd_divergence":
        whales = features.whales_day
        return _divergence_stance(features) or _sign(figure_in(whales, "net_usd"))
    return _liquidation_stance(features) if anomaly == "liquidation_hunting" else 0


def expert_weights(mode: Mode, trusted: cycle.Expert | None) -> Mapping[cycle.Expert, float]:
    """In the order of conviction; the trusted one weighs half as much again."""
    plain = zip(cycle.CONVICTION[mode], cycle.WEIGHTS, strict=True)
    return {expert: weight * (TRUSTED_WEIGHT if expert is trusted else 1.0) for expert, weight in plain}


@dataclass(frozen=True, slots=True)
class BoardScore:
    all: float
    """Σ weight · stance · confidence. Who is silent adds nothing, and nobody weighs more for it."""
    heard: float
    """The same over the weight of those who have data: the dominant signal is the sign of it."""

    @property
    def signal(self) -> cycle.Signal:
        return signal_of_score(self.heard)


def score_entries(
    entries: Mapping[cycle.Expert, Entry],
    mode: Mode,
    trusted: cycle.Expert | None,
    *,
    silent: Collection[cycle.Expert] = (),
    seconds: Collection[cycle.Expert] = (),
) -> BoardScore:
    """`silent`: who has no data. `seconds`: who may follow but not lead, and adds no more than the strongest of the
    others that look the same way."""
    weighed, plain = expert_weights(mode, trusted), expert_weights(mode, None)
    added = {expert: weighed[expert] * entry.stance * entry.confidence for expert, entry in entries.items()}
    for expert in added.keys() & set(seconds):
        others = (abs(share) for other, share in added.items() if other is not expert and share * added[expert] > 0)
        added[expert] = max(-(most := max(others, default=0.0)), min(most, added[expert]))
    # 0.6 · 0.25 is 0.15 and nothing beyond it: what doubles leave over decides nothing.
    total = round(fsum(added.values()), 9)
    heard = fsum(weight for expert, weight in plain.items() if expert not in silent)
    return BoardScore(total, round(total / heard, 9) if heard else 0.0)


def signal_of_score(board_score: float) -> cycle.Signal:
    if abs(board_score) <= DEAD_BAND:
        return "NEUTRAL"
    return "BULLISH" if board_score > 0 else "BEARISH"


def board_entries(board: cycle.Blackboard) -> Mapping[cycle.Expert, Entry]:
    named: dict[cycle.Expert, Entry | None] = {
        cycle.Expert.LIQUIDITY: board.liquidity,
        cycle.Expert.MICROSTRUCTURE: board.microstructure,
        cycle.Expert.MACRO: board.macro,
        cycle.Expert.GEOMETRY: board.vlm_geometry,
    }
    return {expert: entry for expert, entry in named.items() if entry is not None}


def _divergence_stance(features: Features) -> cycle.Stance:
    """Of the shortest timeframe that has one: the newest between price and CVD."""
    for _, frame in features.frames:
        if isinstance(frame, Missing):
            continue
        of_cvd = [each for each in frame.structure.divergences if each.gauge is DivergenceSource.CVD]
        if of_cvd:
            return max(of_cvd, key=lambda divergence: divergence.known_at).way.sign
    return 0


def _liquidation_stance(features: Features) -> cycle.Stance:
    longs, shorts = features.forced.longs_hour, features.forced.shorts_hour
    gone = [0.0 if isinstance(side, Missing) else side.usd for side in (longs, shorts)]
    return _sign(gone[0] - gone[1])


def _sign(figure: Known[float]) -> cycle.Stance:
    if isinstance(figure, Missing) or not figure:
        return 0
    return 1 if figure > 0 else -1
