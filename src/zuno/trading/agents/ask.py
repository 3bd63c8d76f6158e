"""How an agent of the trading desk is asked and heard: what it was told, what it said, who spoke and at what price."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, TypeVar

from zuno.llm.ask import ModelContext, ask
from zuno.llm.port import Image
from zuno.llm.prompts import Value
from zuno.llm.question import BY_RULE, Question, Screen, SourcedAnswer, T
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.refusal import find_faults
from zuno.provenance.slots import cut
from zuno.trading.agents.case import Case
from zuno.trading.agents.evidence import Reason, summarise_reasons
from zuno.trading.agents.known_data import find_gap
from zuno.trading.agents.prompt_budget import FittedPrompt, Line, Section, fit_prompt, max_prompt_chars
from zuno.trading.agents.prompt_facts import anomalies_section, figure_of, market_facts, market_section
from zuno.trading.model import cycle

S = TypeVar("S", bound=cycle.Sourced)
E = TypeVar("E", cycle.LiquidityOpinion, cycle.MicrostructureOpinion, cycle.MacroOpinion, cycle.GeometryOpinion)
MOST_BY_CANDLES: Final = 0.6
"""The confidence of liquidity and microstructure where candles are all there is."""
WHY_CHARS: Final = 2_000


Keep = Callable[[str, int, str], str]
"""Drops faulty sentences and cuts to a printed length; where none is left, the rules' words, marked as theirs."""


def keep_fields(opinion: T, rules: T | None, keep: Keep, **most: int) -> T:
    """The answer with these fields screened, each cut to its longest printed length."""
    kept = {name: keep(getattr(opinion, name), longest, getattr(rules, name, "")) for name, longest in most.items()}
    return opinion.model_copy(update=kept)


async def ask_numeric_expert(
    case: Case,
    expert: cycle.Expert,
    sections: Callable[[], Sequence[Section]],
    output: type[E],
    fallback: Callable[[], E],
    model_context: ModelContext,
) -> SourcedAnswer[E]:
    """Ask an expert who reads numbers: its prose is its rationale, its own figure its confidence. `sections`: beside
    the market and its anomalies."""
    spoken = await ask_agent(
        model_context,
        role=expert.value,
        sections=lambda: (market_section(case), anomalies_section(case), *sections()),
        output=output,
        fallback=fallback,
        prose=lambda opinion, keep: keep_fields(opinion, fallback(), keep, rationale=cycle.LONG_TEXT),
        own=lambda opinion: (figure_of(f"{expert}.confidence", opinion.confidence, Unit.NUMBER),),
        own_ids=(f"{expert}.confidence",),
    )
    return require_data(spoken, find_gap(case, expert), fallback)


async def ask_agent(
    model_context: ModelContext,
    *,
    role: str,
    sections: Callable[[], Sequence[Section]],
    output: type[T],
    fallback: Callable[[], T],
    prose: Callable[[T, Keep], T],
    own: Callable[[T], Sequence[Figure]] = lambda _: (),
    own_ids: Sequence[str] = (),
    judge: Callable[[T], str | None] = lambda _: None,
    doubt: Callable[[T], str | None] = lambda _: None,
    others: Mapping[str, Value] | None = None,
    images: tuple[Image, ...] = (),
    max_output_tokens: int = 1_500,
) -> SourcedAnswer[T]:
    """Ask one role, whose prompt has its name and is cut to its size. `prose`: the answer with its texts held to what
    was told. `own`: figures of the answer's own fields, which its prose may cite."""

    @cache
    def fit() -> FittedPrompt:
        line = Line(", ".join(f"{{{id_}}}" for id_ in own_ids))
        told = [*sections(), *([Section("of your own answer", 101, (line,))] if own_ids else [])]
        return fit_prompt(model_context.prompts, role, told, others or {}, max_prompt_chars(role))

    def screen_prose(opinion: T, screen: Screen) -> T:
        facts = FactSheet((*fit().figures, *own(opinion)))

        def keep(text: str, most: int, rules: str) -> str:
            otherwise = cut(f"{BY_RULE}{rules}", facts, most) if rules else ""
            return screen(text, lambda piece: map(str, find_faults(piece, facts, limits=(0, most))), otherwise)

        return prose(opinion, keep)

    question = Question(
        role=role,
        round=0,
        prompt=role,
        variables=lambda: fit().variables,
        output=output,
        fallback=fallback,
        judge=judge,
        doubt=doubt,
        prose=screen_prose,
        images=images,
        max_output_tokens=max_output_tokens,
    )
    return await ask(question, model_context)


def voice_of(role: str, spoken: SourcedAnswer[T]) -> cycle.AnswerSource:
    """Who spoke for the role. The cost in dollars is unknown if that of any attempt is."""
    costs = [attempt.usd for attempt in spoken.attempts]
    known = [cost for cost in costs if cost is not None]
    return cycle.AnswerSource(
        role=role,
        source=spoken.source,
        why=spoken.why[:WHY_CHARS],
        model=spoken.model,
        tokens=sum(attempt.tokens_in + attempt.tokens_out for attempt in spoken.attempts),
        usd=float(sum(known)) if len(known) == len(costs) else None,
    )


def require_data(spoken: SourcedAnswer[E], gap: str, fallback: Callable[[], E]) -> SourcedAnswer[E]:
    """The rules' answer in place of a model's that claims any confidence though the expert's own feed is missing."""
    if not gap or not spoken.value.confidence or spoken.source not in ("model", "repaired"):
        return spoken
    return replace(spoken, value=fallback(), source="fallback", why=f"sure of what it cannot know: {gap}")


def limit_confidence(confidence: float, most: float, of: str) -> tuple[float, str]:
    if confidence <= most:
        return confidence, ""
    return most, f"a confidence of {confidence:g} was cut to {most:g}: no surer than {of}"


def limit_to_candles(case: Case, confidence: float) -> tuple[float, str]:
    """The confidence of an expert who reads price and volume because its own feeds were never recorded."""
    if not case.bundle.candles_only:
        return confidence, ""
    return limit_confidence(confidence, MOST_BY_CANDLES, "price and volume make it")


def explain(case: Case, reasons: Sequence[Reason], otherwise: str) -> str:
    """The strongest reasons as a rationale; `otherwise` where there are none."""
    return cut(summarise_reasons(reasons, otherwise), market_facts(case), cycle.LONG_TEXT)


def to_answer(
    role: str, shape: type[S], spoken: SourcedAnswer[T], *remarks: str, **computed: object
) -> cycle.AgentAnswer[S]:
    return cycle.AgentAnswer(value=to_record(shape, spoken, *remarks, **computed), voice=voice_of(role, spoken))


def to_record(shape: type[S], spoken: SourcedAnswer[T], *remarks: str, **computed: object) -> S:
    """The answer as it goes on record: who gave it and why, and what code computed or replaced."""
    fields = {**spoken.value.model_dump(), "source": spoken.source, "why": join_reasons(spoken, *remarks), **computed}
    return shape.model_validate(fields, strict=False)


def join_reasons(spoken: SourcedAnswer[T], *remarks: str) -> str:
    """Why it was not the model, and what code did to its answer."""
    return "; ".join(filter(None, (spoken.why, *remarks)))[:WHY_CHARS]
