"""What a model may hand back: a closed shape, read strictly."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Opinion(BaseModel):
    """The base of every shape a model may return, parts included: frozen, closed, no "0.7" for a number, no NaN.

    Percentages that face a model are whole numbers with bounds, because grammars enforce those; code divides.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
