"""What a backtest of the trading desk compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zuno.trading.model.cycle import Expert


class Arm(StrEnum):
    DEBATE = "debate"
    """The whole desk."""
    HOLD = "hold"
    SMA = "sma"
    LIQUIDITY = "liquidity"
    MICROSTRUCTURE = "microstructure"
    MACRO = "macro"
    GEOMETRY = "geometry"
    """The desk with one expert, who speaks for all four."""
    NO_CRO = "no-cro"
    NO_MEMORY = "no-memory"
    RANDOM = "random"
    AA = "aa"
    """The debate once more: by how much two runs of the same desk differ."""
    SINGLE = "single"
    VOTE = "vote"
    PLACEBO = "placebo"


ALONE: Final[Mapping[Arm, Expert]] = {
    Arm.LIQUIDITY: Expert.LIQUIDITY,
    Arm.MICROSTRUCTURE: Expert.MICROSTRUCTURE,
    Arm.MACRO: Expert.MACRO,
    Arm.GEOMETRY: Expert.GEOMETRY,
}
NEED_MODEL: Final[Mapping[Arm, str]] = {
    Arm.SINGLE: "one model asked once for the whole decision",
    Arm.VOTE: "models that vote at the debate's tokens",
    Arm.PLACEBO: "a risk officer whose model reads nothing of the case",
}
"""What is asked, and cannot be without models or their recorded replies."""
DESK_ARMS: Final = (Arm.DEBATE, *ALONE, Arm.NO_CRO, Arm.NO_MEMORY, Arm.AA)
ORDER_ARMS: Final = (Arm.HOLD, Arm.SMA, Arm.RANDOM)
DECIDED_BY: Final[Mapping[Arm, str]] = {
    Arm.DEBATE: "debate by rules",
    Arm.HOLD: "nobody: bought at the start, spot, no funding",
    Arm.SMA: "moving averages of 50 and 200 four-hour closes, long or flat",
    **{arm: f"{expert.value} alone, by rules" for arm, expert in ALONE.items()},
    Arm.NO_CRO: "debate by rules, without the risk officer's rules",
    Arm.NO_MEMORY: "debate by rules, without memory",
    Arm.RANDOM: "chance: as many entries as the debate, same sides, sizes and holds",
    Arm.AA: "debate by rules, once more",
    **{arm: f"not run: {what}" for arm, what in NEED_MODEL.items()},
}


@dataclass(frozen=True, slots=True)
class SkippedArm:
    """An arm that was not run, and why."""

    arm: Arm
    reason: str


NO_MODEL: Final = "it needs a model or recorded replies, and this backtest asks none"
