"""How an agent of the trading desk is asked and heard: what it was told, what it said, who spoke and at what price."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from zuno.agents.ask import Minds, ask
from zuno.agents.prompts import Value
from zuno.agents.question import Question, Spoken, T
from zuno.core.menu import Menu
from zuno.core.provenance.figures import Figure, Unit
from zuno.desks.trading.briefing import Section, brief, cap_of
from zuno.desks.trading.knowledge import Backing, figures
from zuno.desks.trading.opinions import LiquidityOpinion, MacroOpinion, MicrostructureOpinion
from zuno.messages.cycle import Voice
from zuno.ports.model import Image

V = TypeVar("V")
E = TypeVar("E", LiquidityOpinion, MicrostructureOpinion, MacroOpinion)
WHY_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Heard(Generic[V]):
    """A word for the record, and whose it was."""

    value: V
    voice: Voice


@dataclass(frozen=True, slots=True)
class Asking(Generic[T]):
    """One role's question, before it is cut to its room."""

    role: str
    """Also the name of its prompt."""
    sections: Sequence[Section]
    output: type[T]
    twin: Callable[[], T]
    texts: Callable[[T], Iterable[str]]
    """What of the answer is prose: every figure in it must have been told."""
    own: Callable[[T], Sequence[Figure]] = lambda _: ()
    """Figures of the answer's own fields, which its prose may repeat."""
    judge: Callable[[T], str | None] = lambda _: None
    others: Mapping[str, Value] | None = None
    images: tuple[Image, ...] = ()
    max_output_tokens: int = 1_500


def to_expert(role: str, sections: Sequence[Section], output: type[E], twin: Callable[[], E]) -> Asking[E]:
    """The question to an expert who reads numbers: its prose is its rationale, its own figure its confidence."""
    return Asking(
        role=role,
        sections=sections,
        output=output,
        twin=twin,
        texts=lambda said: (said.rationale,),
        own=lambda said: figures("confidence", said.confidence, Unit.RATIO),
    )


async def hear(asking: Asking[T], minds: Minds) -> Spoken[T]:
    told = brief(minds.prompts, asking.role, asking.sections, asking.others or {}, cap_of(asking.role))

    def unsupported(said: T) -> list[str]:
        return Backing((*told.figures, *asking.own(said)))(*asking.texts(said))

    question = Question(
        role=asking.role,
        round=0,
        prompt=asking.role,
        variables=told.variables,
        output=asking.output,
        fallback=asking.twin,
        judge=asking.judge,
        unsupported=unsupported,
        images=asking.images,
        max_output_tokens=asking.max_output_tokens,
    )
    return await ask(question, minds)


def voice_of(role: str, spoken: Spoken[T]) -> Voice:
    """Who spoke for the role. Dollars are unknown as soon as those of one attempt are."""
    costs = [attempt.usd for attempt in spoken.attempts]
    known = [cost for cost in costs if cost is not None]
    return Voice(
        role=role,
        source=spoken.source,
        why=spoken.why[:WHY_CHARS],
        model=spoken.model,
        tokens=sum(attempt.tokens_in + attempt.tokens_out for attempt in spoken.attempts),
        usd=float(sum(known)) if len(known) == len(costs) else None,
    )


def snapped(menu: Menu, price: float | None) -> float | None:
    """The level that is meant; None where it is none of the menu's."""
    return None if price is None else menu.snap(price)


def noted(spoken: Spoken[T], *remarks: str) -> str:
    """Why it was not the model, and what code did to its answer."""
    return "; ".join(filter(None, (spoken.why, *remarks)))[:WHY_CHARS]
