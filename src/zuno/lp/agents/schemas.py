"""The shapes a model may return to this desk; everything else is computed."""

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Literal

from pydantic import Field, model_validator

from zuno.llm.question import Opinion
from zuno.lp.model.debate import MOST_CANDIDATES
from zuno.lp.rules.limits import MOST_PROPOSED

TEXT_CHARS = (1, 280)
SUMMARY_CHARS = (20, 280)
REASONING_CHARS = (40, 2_000)
"""Least and most characters of a text as it is printed. A model's text may be twice as long, because it cites facts by
ids, which are longer than the figures printed in their place."""

Text = Annotated[str, Field(min_length=1, max_length=2 * TEXT_CHARS[1])]


class ScoutOpinion(Opinion):
    summary: Annotated[str, Field(min_length=SUMMARY_CHARS[0], max_length=2 * SUMMARY_CHARS[1])]


class ShapeOpinion(Opinion):
    width_percent: Annotated[int, Field(ge=30, le=350, alias="widthPercent")]
    center_offset_ticks: Annotated[int, Field(ge=-2400, le=2400, alias="centerOffsetTicks")]
    rationale: Text

    @model_validator(mode="before")
    @classmethod
    def _read_multiplier(cls, given: object) -> object:
        """The width may also be said as a multiplier, `widthMultiplier` 1.4 for 140 percent."""
        if isinstance(given, Mapping) and "widthPercent" not in given:
            multiplier = given.get("widthMultiplier")
            if isinstance(multiplier, int | float) and not isinstance(multiplier, bool) and isfinite(multiplier):
                others = {name: value for name, value in given.items() if name != "widthMultiplier"}
                return {**others, "widthPercent": round(100 * multiplier)}
        return given


class StrategistOpinion(Opinion):
    shapes: Annotated[list[ShapeOpinion], Field(min_length=2, max_length=MOST_PROPOSED)]


class CreateShapeOpinion(ShapeOpinion):
    pool_index: Annotated[int, Field(ge=0, alias="poolIndex")]
    exposure_bias: Annotated[Literal["long-token", "neutral"], Field(alias="exposureBias")]


class CreateStrategistOpinion(Opinion):
    shapes: Annotated[list[CreateShapeOpinion], Field(min_length=2, max_length=MOST_PROPOSED)]


class JudgmentOpinion(Opinion):
    index: Annotated[int, Field(ge=0)]
    verdict: Literal["accept", "revise", "veto"]
    reason: Text
    suggestion: Text | None


class CriticOpinion(Opinion):
    judgments: Annotated[list[JudgmentOpinion], Field(min_length=1, max_length=MOST_CANDIDATES)]


class ArbiterOpinion(Opinion):
    chosen_index: Annotated[int, Field(ge=0, alias="chosenIndex")]
    verdict: Literal["approve", "approve_with_caution", "reject"]
    against_axis: Annotated[Text | None, Field(alias="againstAxis")]
    """Why it is not the candidate that stands first by the profile's axis; null where it is that one."""
    reasoning: Annotated[str, Field(min_length=REASONING_CHARS[0], max_length=2 * REASONING_CHARS[1])]
