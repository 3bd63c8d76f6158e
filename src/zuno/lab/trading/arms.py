"""What a backtest of the trading desk compares."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from zuno.trading.model.cycle import Expert


class Arm(StrEnum):
    DEBATE = "debate"
    HOLD = "hold"
    SMA = "sma"
    LIQUIDITY = "liquidity"
    MICROSTRUCTURE = "microstructure"
    MACRO = "macro"
    GEOMETRY = "geometry"
    NO_CRO = "no-cro"
    NO_MEMORY = "no-memory"
    SEED = "seed"
    """The desk whose expected value goes by the Judge's own odds alone (`ZUNO_EV=seed`)."""
    LET_RUN = "let-run"
    """The whole desk; half of each trade runs on past its target behind a trailing stop."""
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
MODELS_FOR: Final[Mapping[Arm, str]] = {
    Arm.AA: "models that are asked everything once more",
    Arm.SINGLE: "one model asked once for the whole decision",
    Arm.VOTE: "models that vote at the debate's tokens",
    Arm.PLACEBO: "a risk officer whose model reads nothing of the case",
}
"""What models are asked for, or their recorded replies."""
NEED_MODEL: Final = (Arm.SINGLE, Arm.VOTE, Arm.PLACEBO)
"""Arms that are nothing by rules."""
ASKED: Final[Mapping[Arm, str]] = {Arm.SINGLE: "judge", Arm.VOTE: "judge", Arm.PLACEBO: "risk_manager"}
"""The role whose model it is."""
DESK_ARMS: Final = (
    *(Arm.DEBATE, *ALONE, Arm.NO_CRO, Arm.NO_MEMORY, Arm.SEED, Arm.LET_RUN),
    *(Arm.AA, Arm.SINGLE, Arm.VOTE, Arm.PLACEBO),
)
AFTER_DEBATE: Final[Mapping[Arm, str]] = {Arm.RANDOM: "trades", Arm.VOTE: "tokens"}
"""Arms that are matched with something of the debate."""
ORDER_ARMS: Final = (Arm.HOLD, Arm.SMA, Arm.RANDOM)
ASK_NOBODY: Final = (Arm.HOLD, Arm.SMA)
DECIDED_BY: Final[Mapping[Arm, str]] = {
    Arm.DEBATE: "debate by rules",
    Arm.HOLD: "nobody: bought at the start, spot, no funding",
    Arm.SMA: "moving averages of 50 and 200 four-hour closes, long or flat",
    **{arm: f"{expert.value} alone, by rules" for arm, expert in ALONE.items()},
    Arm.NO_CRO: "debate by rules, without the risk officer's rules",
    Arm.NO_MEMORY: "debate by rules, without memory",
    Arm.SEED: "debate by rules, EV by the Judge's own odds",
    Arm.LET_RUN: "debate by rules, half of each trade let run past its target",
    Arm.RANDOM: "chance: as many entries as the debate, same sides, sizes and holds",
    Arm.AA: "debate by rules, once more: no noise, by construction",
}
BY_MODELS: Final[Mapping[Arm, str]] = {
    Arm.AA: "debate with models, once more with fresh replies: the noise floor",
    Arm.SINGLE: "the Judge's model, asked once, over a blackboard by rules",
    Arm.VOTE: "votes of the Judge's model at the debate's tokens, over a blackboard by rules",
    Arm.PLACEBO: "debate with models, the risk officer's shown nothing of the case",
}
NO_MODEL: Final = "it needs a model or recorded replies, and this backtest asks none (--models)"
NO_REPLY: Final = "no model is configured for it, and no reply is kept"


def describe_arm(arm: Arm, models: bool) -> str:
    """Who decides in an arm. `models`: whether models answered."""
    if not models:
        return DECIDED_BY.get(arm) or f"{MODELS_FOR[arm]}, whose place the rules took"
    return BY_MODELS.get(arm) or DECIDED_BY[arm].replace("by rules", "with models")
