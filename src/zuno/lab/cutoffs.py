"""Training cutoffs of models. Days before a model's cutoff are in-sample: it may have read what happened."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from zuno.kernel.view import View
from zuno.lab.model import AskingArm
from zuno.present.document import Section, lines, section

CUTOFFS: Final = {
    "claude-3-5": "2024-07",
    "claude-3-7": "2024-11",
    "claude-opus-4": "2025-03",
    "claude-sonnet-4": "2025-03",
    "gemini-2.0": "2024-08",
    "gemini-2.5": "2025-01",
    "gpt-4.1": "2024-06",
    "gpt-4o": "2023-10",
    "gpt-5": "2024-09",
    "llama-3.1": "2023-12",
    "llama-3.3": "2023-12",
}
"""Months that vendors name, by a model's name without its date or size; of the others nobody knows."""
_VARIANT: Final = re.compile(r"(?:-(?!\d{1,2}(?:-|$)).+)?")
"""What may follow a name: a date or a size. A further version is another model."""


class ModelCutoffView(View):
    """A model that argued, and whether the backtest lies before its training cutoff."""

    model: str
    cutoff: str | None
    """A month; null: not known, which counts as in-sample."""
    in_sample: bool


def describe_models(models: Sequence[ModelCutoffView], arms: Sequence[AskingArm]) -> Section:
    tokens, usd = sum(arm.model_tokens for arm in arms), sum(arm.model_cost_usd for arm in arms)
    return section(
        "Models",
        lines(
            *(
                f"{model.model}: trained until {model.cutoff or 'an unknown month'}; these days "
                + ("are in-sample for it." if model.in_sample else "came later.")
                for model in models
            ),
            f"{tokens:,} tokens, {usd:,.2f} USD." if models or tokens else "None: the agents argued by rules.",
        ),
    )


def judge_models(models: frozenset[str], moment: int) -> tuple[ModelCutoffView, ...]:
    """`moment`: start of the backtest in Unix seconds; a model whose cutoff is later is in-sample."""
    month = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m")
    return tuple(
        ModelCutoffView(model=model, cutoff=cutoff, in_sample=cutoff is None or month <= cutoff)
        for model in sorted(models)
        for cutoff in (find_cutoff(model),)
    )


def find_cutoff(model: str) -> str | None:
    """A name is `vendor:model`, or the model alone."""
    name = model.rsplit(":", 1)[-1].rsplit("/", 1)[-1].lower()
    named = [known for known in CUTOFFS if name.startswith(known) and _VARIANT.fullmatch(name.removeprefix(known))]
    return CUTOFFS[named[0]] if named else None
