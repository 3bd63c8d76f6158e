"""What fits into a prompt: sections by their weight; whole ones are left out, the lightest first, and that is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from zuno.llm.prompts import Prompts, Untrusted, Value
from zuno.provenance.facts import Figure

CAPS: Final[Mapping[str, int]] = {
    "judge": 25_000, "post_mortem": 10_000, "self_correction": 10_000, "feedback": 10_000, "rag": 5_000,
    "rag_extraction": 5_000,
}  # fmt: skip
DEFAULT_CAP: Final = 15_000
"""Characters of system and user together, by role."""
FACTS: Final = "facts"
"""The place of a prompt where sections go."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a model reads, and the figures in it that it may cite."""

    told: str | Callable[[], str]
    """The text, or what writes it: rules cite figures of lines that nobody reads."""
    figures: tuple[Figure, ...] = ()

    @property
    def text(self) -> str:
        return self.told if isinstance(self.told, str) else self.told()


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    weight: int
    """The heavier, the longer it stays."""
    lines: tuple[Line, ...] = ()
    strangers: Untrusted | None = None
    """Words of strangers, which have a place of their own: the one named like the title."""

    @property
    def text(self) -> str:
        return "\n".join((f"## {self.title}", *(line.text for line in self.lines)))

    def at_weight(self, weight: int) -> Section:
        return replace(self, weight=weight)


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """The values of a prompt's places, and the figures that were told with them."""

    variables: Mapping[str, Value]
    figures: tuple[Figure, ...]
    left_out: tuple[str, ...]


def max_prompt_chars(role: str) -> int:
    return CAPS.get(role, DEFAULT_CAP)


def fit_prompt(
    prompts: Prompts, name: str, sections: Sequence[Section], others: Mapping[str, Value], cap: int
) -> FittedPrompt:
    """The prompt's values within `cap` characters: only sections are left out. `ValueError` if too long without any."""
    kept = list(sections)
    while True:
        variables = _variables(kept, sections, others)
        prompt = prompts.render(name, variables)
        if len(prompt.system) + len(prompt.user) <= cap:
            left_out = tuple(section.title for section in sections if section not in kept)
            figures = tuple(figure for section in kept for line in section.lines for figure in line.figures)
            return FittedPrompt(variables, figures, left_out)
        if not kept:
            raise ValueError(f"prompt {name} takes more than {cap} characters without any section")
        kept.remove(min(kept, key=lambda section: section.weight))


def _variables(kept: Sequence[Section], all_: Sequence[Section], others: Mapping[str, Value]) -> dict[str, Value]:
    gone = [section.title for section in all_ if section not in kept]
    parts = [section.text for section in kept if section.strangers is None]
    if gone:
        parts.append(f"(left out for want of room: {', '.join(gone)})")
    variables: dict[str, Value] = {**others, FACTS: "\n\n".join(parts)}
    for section in all_:
        if section.strangers is not None:
            variables[section.title] = section.strangers if section in kept else "(left out for want of room)"
    return variables
