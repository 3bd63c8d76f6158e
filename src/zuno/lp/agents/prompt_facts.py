"""The facts an agent may cite, of a context and of its ballots, and the lines of its prompt."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Final

from zuno.amm.model import PoolState, whole_price
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import base_and_quote
from zuno.llm.prompts import Untrusted, estimate_tokens
from zuno.llm.question import BY_RULE, Screen, T
from zuno.lp.agents.pool_choice import pool_label
from zuno.lp.agents.pool_inputs import cover_of
from zuno.lp.model.ballot import Candidate, CandidateKind, Judgment
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.debate import Context, Debate, PoolFacts, Role, Round, Thought
from zuno.lp.rules.limits import LIMITS, ProfileLimits
from zuno.lp.rules.regime import GAS_SPIKE, TREND, trend_of, volatility_marks
from zuno.lp.rules.volatility import NANO, rolling_vol_bps
from zuno.lp.rules.worth import OPEN_DAYS, edge_over_hold, worth_token1
from zuno.provenance.facts import FactSheet, Figure, Unit
from zuno.provenance.refusal import find_faults
from zuno.provenance.slots import annotate, cite_round, cut, find_slots, render

FACTS_TOKENS: Final = 320
BALLOT_TOKENS: Final = 480
DEBATE_TOKENS: Final = 220
"""Of the 1,200 a small model reads, what the facts, the ballot and the argument so far may take."""
_REASON_CUTS: Final = (280, 120, 90, 60, 30, 0)
_LESSER_FACTS: Final = ("volatility_raised", "volatility_high", "returns", "tick_spacing", "gas_price", "trend", "tick")
"""Left out of a brief first, in this order."""
_COLUMNS: Final = (
    "lower upper buffer_1x buffer_2x buffer_3x exit_24h_1x fees_24h net_24h cost worth breakeven lvr_24h "
    "worth_less_hold buffer_1x_less_floor_1x buffer_2x_less_floor_2x price_less_lower_pct upper_less_price_pct "
    "fees_24h_over_lvr_24h"
).split()
"""Of the ballot in a brief, the last left out first."""
_HOLDING: Final = ("hold", "holds", "holding", "staying")


def edges(candidate: Candidate, pool: PoolState) -> tuple[Fraction, Fraction] | None:
    """The prices of a candidate's range, lower first, the way people quote the pair."""
    if candidate.range is None:
        return None
    ticks = (candidate.range.lower, candidate.range.upper)
    low, high = sorted(whole_price(sqrt_price_at_tick(tick), pool.token0, pool.token1) for tick in ticks)
    return low, high


def context_facts(context: Context) -> Iterator[Figure]:
    """The facts every agent of a debate knows; those of a pool carry its number where there are several."""
    limits = LIMITS[context.profile]
    yield Figure("floor_1x", limits.floor_1x_hours, Unit.HOURS)
    yield Figure("floor_2x", limits.floor_2x_hours, Unit.HOURS)
    yield Figure("gas_ceiling", limits.gas_yield_ceiling, Unit.RATIO)
    yield Figure("block", context.block.number, Unit.NUMBER, digits=0)
    yield Figure("open_days", OPEN_DAYS, Unit.DAYS, digits=0)
    yield Figure("gas_spike", GAS_SPIKE, Unit.RATIO)
    yield Figure("trend_threshold", TREND, Unit.NUMBER)
    for index, pool_facts in enumerate(context.scenes):
        yield from _pool_facts(pool_facts, pool_prefix(context, index))
    for index, line in enumerate(context.wish.capital if context.wish else ()):
        yield Figure(f"capital{index}", Fraction(line.amount), Unit.AMOUNT, symbol=line.token)


def pool_prefix(context: Context, index: int) -> str:
    return f"p{index}." if len(context.scenes) > 1 else ""


def cite_pool(context: Context, index: int, text: str) -> str:
    """A text about one pool, for a context that may have several."""
    slots = {slot.id for slot in find_slots(text)[0]}
    own = {fact.id for fact in _pool_facts(context.scenes[index], "")}
    for id_ in slots & own:
        text = text.replace(f"{{{id_}}}", f"{{{pool_prefix(context, index)}{id_}}}")
    return text


@lru_cache(maxsize=32)
def _pool_facts(pool_facts: PoolFacts, prefix: str) -> tuple[Figure, ...]:
    """Asked for by every reader of a debate, the same each time."""
    return tuple(_figures_of_pool(pool_facts, prefix))


def _figures_of_pool(pool_facts: PoolFacts, prefix: str) -> Iterator[Figure]:
    pool, position = pool_facts.pool, pool_facts.position
    _, quote = base_and_quote(pool.token0, pool.token1)

    def fact(id_: str, value: Fraction | int | float, unit: Unit, digits: int = 2, symbol: str = "") -> Figure:
        return Figure(f"{prefix}{id_}", value, unit, digits=digits, symbol=symbol, derived="_over_" in id_)

    yield fact("price", _price(pool), Unit.PRICE, symbol=quote.symbol)
    yield fact("tick", pool.tick, Unit.NUMBER, 0)
    yield fact("tick_spacing", pool.key.tick_spacing, Unit.TICKS, 0)
    yield fact("pool_fee", Fraction(pool.lp_fee, 10_000), Unit.PERCENT)
    yield fact("returns", len(pool_facts.returns_nano), Unit.NUMBER, 0)
    for id_, value in _volatility(pool_facts.returns_nano):
        yield fact(id_, value, Unit.BPS, 0)
    if (cover := cover_of(pool_facts)) is not None:
        for figure in cover_figures(cover):
            yield replace(figure, id=f"{prefix}{figure.id}")
    if (trend := trend_of([value / NANO for value in pool_facts.returns_nano])) is not None:
        yield fact("trend", trend, Unit.NUMBER)
    if pool_facts.gas is not None:
        yield fact("gas_price", Fraction(pool_facts.gas.price, 10**9), Unit.GWEI, 3)
        if pool_facts.gas_median:
            yield fact("gas_price_over_median", Fraction(pool_facts.gas.price) / pool_facts.gas_median, Unit.RATIO, 1)
    if position is not None:
        held = position.range
        yield fact("width_held", held.width, Unit.TICKS, 0)
        if not position.in_range:
            yield fact("outside_by", max(held.lower - pool.tick, pool.tick - held.upper), Unit.TICKS, 0)
        for id_, amount, token in (
            ("held0", position.amount0, pool.token0),
            ("held1", position.amount1, pool.token1),
            ("uncollected0", position.fees0, pool.token0),
            ("uncollected1", position.fees1, pool.token1),
        ):
            yield fact(id_, Fraction(amount, 10**token.decimals), Unit.AMOUNT, symbol=token.symbol)


def cover_figures(cover: FeeCover) -> Iterator[Figure]:
    for id_, value in (("", cover.ratio), ("_low", cover.low), ("_high", cover.high)):
        yield Figure(f"fees_over_lvr{id_}", value, Unit.NUMBER)
    yield Figure("cover_days", cover.days, Unit.DAYS, digits=0)


def _price(pool: PoolState) -> Fraction:
    return whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)


def _volatility(returns_nano: tuple[int, ...]) -> tuple[tuple[str, float], ...]:
    """The volatility now and the marks it is held against."""
    vols = rolling_vol_bps([value / NANO for value in returns_nano]) if len(returns_nano) >= 24 else ()
    if not vols:
        return ()
    high, raised, _ = volatility_marks(vols)
    found = (("volatility", vols[-1]), ("volatility_high", high), ("volatility_raised", raised))
    return tuple((id_, value) for id_, value in found if isfinite(value))


def ballot_facts(context: Context, candidates: Sequence[Candidate], prefix: str = "") -> Iterator[Figure]:
    hold = next((candidate for candidate in candidates if candidate.kind is CandidateKind.HOLD), None)
    for candidate in candidates:
        pool = context.scenes[candidate.pool_index].pool
        yield from _facts_of_candidate(f"{prefix}c{candidate.index}.", candidate, hold, pool, LIMITS[context.profile])


@lru_cache(maxsize=256)
def _facts_of_candidate(
    prefix: str, candidate: Candidate, hold: Candidate | None, pool: PoolState, limits: ProfileLimits
) -> tuple[Figure, ...]:
    """Asked for by every reader of a debate, the same each time."""
    facts = _candidate_facts(candidate, hold, pool, limits)
    return tuple(replace(fact, id=f"{prefix}{fact.id}") for fact in facts)


def _candidate_facts(
    candidate: Candidate, hold: Candidate | None, pool: PoolState, limits: ProfileLimits
) -> Iterator[Figure]:
    _, quote = base_and_quote(pool.token0, pool.token1)
    between, price = edges(candidate, pool), _price(pool)
    if between is not None and candidate.range is not None:
        yield Figure("lower", between[0], Unit.PRICE, symbol=quote.symbol)
        yield Figure("upper", between[1], Unit.PRICE, symbol=quote.symbol)
        yield Figure("price_less_lower_pct", 100 * (price - between[0]) / price, Unit.PERCENT, derived=True)
        yield Figure("upper_less_price_pct", 100 * (between[1] - price) / price, Unit.PERCENT, derived=True)
        yield Figure("lower_tick", candidate.range.lower, Unit.NUMBER, digits=0)
        yield Figure("upper_tick", candidate.range.upper, Unit.NUMBER, digits=0)
        yield Figure("width", candidate.range.width, Unit.TICKS, digits=0)
        if hold is not None and hold.range is not None:
            held = Fraction(candidate.range.width, hold.range.width)
            yield Figure("width_over_held", held, Unit.RATIO, derived=True)
    if candidate.cover is not None:
        yield from cover_figures(candidate.cover)
    for point, floor in zip(candidate.stress or (), (limits.floor_1x_hours, limits.floor_2x_hours, None), strict=False):
        times = f"{point.multiple}x"
        yield Figure(f"buffer_{times}", point.median_hours, Unit.HOURS, least=point.censored)
        yield Figure(f"p10_{times}", point.p10_hours, Unit.HOURS)
        yield Figure(f"exit_24h_{times}", 100 * point.p_exit_24h, Unit.PERCENT, digits=1)
        yield Figure(f"in_range_{times}", 100 * point.in_range_share, Unit.PERCENT, digits=1)
        if floor is not None:
            over = point.median_hours - floor
            yield Figure(f"buffer_{times}_less_floor_{times}", over, Unit.HOURS, signed=True, derived=True)
    yield from _carry_facts(candidate, hold, pool)


def _carry_facts(candidate: Candidate, hold: Candidate | None, pool: PoolState) -> Iterator[Figure]:
    carry, token1 = candidate.carry, pool.token1

    def amount(id_: str, value: Fraction | None, derived: bool = False) -> Iterator[Figure]:
        if value is not None:
            yield Figure(id_, value / 10**token1.decimals, Unit.AMOUNT, symbol=token1.symbol, derived=derived)

    yield from amount("fees_24h", carry.fees24h_token1)
    yield from amount("lvr_24h", carry.lvr24h_token1)
    yield from amount("net_24h", carry.net24h_token1)
    yield from amount("cost", carry.cost.total_token1)
    yield from amount("worth", worth_token1(candidate))
    net, held = carry.net24h_token1, hold.carry.net24h_token1 if hold else None
    if hold is not None and hold is not candidate and hold.pool_index == candidate.pool_index:
        yield from amount("net_24h_less_hold", None if net is None or held is None else net - held, derived=True)
        yield from amount("worth_less_hold", edge_over_hold(candidate, hold), derived=True)
    if carry.fees24h_token1 is not None and carry.lvr24h_token1:
        worth = carry.fees24h_token1 / carry.lvr24h_token1
        yield Figure("fees_24h_over_lvr_24h", worth, Unit.RATIO, derived=True)
    if carry.breakeven_hours is not None:
        yield Figure("breakeven", carry.breakeven_hours, Unit.HOURS, digits=1)
    if carry.gas_yield is not None:
        yield Figure("gas_yield", carry.gas_yield, Unit.RATIO)


def facts_of(context: Context, rounds: Sequence[Round] = (), number: int | None = None) -> FactSheet:
    """The facts that a text of round `number` may cite: candidates are those of its own ballot, and of earlier ones
    under the number of their round. Without a number it is the last round."""
    last = len(rounds) - 1 if number is None else number
    facts = list(context_facts(context))
    for index, round_ in enumerate(rounds[: last + 1]):
        facts += ballot_facts(context, round_.candidates, "" if index == last else f"r{index}.")
    pools = [pool_facts.pool for pool_facts in context.scenes]
    named = [pool for pool in pools if pool.token0.verified and pool.token1.verified]
    names = [pool_label(pool) for pool in named] + [
        token.symbol for pool in named for token in (pool.token0, pool.token1) if not token.symbol.isalpha()
    ]
    return FactSheet(facts, names=names, aliases=dict.fromkeys(_HOLDING, 0), rounds=last + 1)


def text_faults(
    text: str | None, facts: FactSheet, about: int | None = None, limits: tuple[int, int] = (1, 280)
) -> list[str]:
    return [] if not text else [str(fault) for fault in find_faults(text, facts, about=about, limits=limits)]


def screen_field(
    spoken: T, name: str, screen: Screen, facts: FactSheet, rules: str = "", about: int | None = None, most: int = 280
) -> T:
    """An answer without the faulty sentences of a field; where none is left, the rules' own words."""
    otherwise = cut(f"{BY_RULE}{rules}", facts, most, about) if rules else ""
    text = screen(getattr(spoken, name) or "", lambda piece: text_faults(piece, facts, about, (0, most)), otherwise)
    return spoken.model_copy(update={name: text})


def print_thoughts(context: Context, debate: Debate, decided: int | None = None) -> Iterator[Thought]:
    """The transcript as people read it, every figure from the facts of whoever reads."""
    sheets = [facts_of(context, debate.rounds, number) for number in range(max(len(debate.rounds), 1))]
    for thought in debate.transcript:
        facts = sheets[min(thought.round, len(sheets) - 1)]
        yield print_thought(thought, facts, decided)


def print_thought(thought: Thought, facts: FactSheet, decided: int | None = None) -> Thought:
    return thought.model_copy(update={"text": render(thought.text, facts, find_subject(thought, decided))})


def find_subject(thought: Thought, decided: int | None) -> int | None:
    head = thought.text.partition(",")[0].removeprefix("Candidate ")
    return int(head) if head.isdecimal() else decided if thought.role is Role.ARBITER else None


# -- the same facts as lines of a brief, few enough for a small model


def pairs_of(context: Context) -> Untrusted:
    """The tokens' names, chosen by strangers. Elsewhere they are tokenA and tokenB."""
    pools = [f"{pool_facts.pool.token0.symbol}/{pool_facts.pool.token1.symbol}" for pool_facts in context.scenes]
    return Untrusted(", ".join(pools), limit=40 * len(pools))


def context_lines(context: Context, tokens: int = FACTS_TOKENS) -> str:
    """The world; the lesser facts are left out where it would grow beyond `tokens`."""
    facts = FactSheet(context_facts(context))
    limits = ", ".join(_line(facts[id_]) for id_ in ("floor_1x", "floor_2x", "gas_ceiling"))
    head = f"profile {context.profile}: {limits}"
    for left_out in range(len(_LESSER_FACTS) + 1):
        text = "\n".join((head, *_pool_lines(context, _LESSER_FACTS[:left_out])))
        if estimate_tokens(text) <= tokens:
            break
    return text


def _pool_lines(context: Context, without: Iterable[str]) -> Iterator[str]:
    """One pool as facts with their ids; several as a table, whose columns are the ids."""
    pools = [[fact for fact in _pool_facts(pool_facts, "") if fact.id not in without] for pool_facts in context.scenes]
    if len(pools) == 1:
        yield f"regime {context.scenes[0].regime} ({context.scenes[0].regime_why})"
        yield ", ".join(map(_line, pools[0]))
        return
    tables = [{fact.id: _n(fact.number) for fact in pool} for pool in pools]
    columns = list(dict.fromkeys(id_ for table in tables for id_ in table))
    common = [id_ for id_ in columns if len({table.get(id_) for table in tables}) == 1]
    yield f"every pool, {{p0.…}}: {', '.join(f'{id_} {tables[0][id_]}' for id_ in common)}"
    own = [id_ for id_ in columns if id_ not in common]
    yield f"pools, cite {{p0.price}} and so on: {' | '.join(own)}"
    for index, table in enumerate(tables):
        yield f"p{index}: {' | '.join(table.get(id_, '-') for id_ in own)}"
    for reason in dict.fromkeys(f"{pool_facts.regime} ({pool_facts.regime_why})" for pool_facts in context.scenes):
        yield f"regime {reason}"


def candidate_lines(
    context: Context, rounds: Sequence[Round], judgments: Sequence[Judgment] = (), *, earlier: bool = False
) -> str:
    """The last ballot as a table whose columns are the ids, amounts in tokenB; columns, then reasons, are cut where it
    would grow too long. `earlier`: for whoever speaks in the next round."""
    facts = facts_of(context, rounds)
    prefix = f"r{len(rounds) - 1}." if earlier else ""

    by_index = {judgment.index: judgment for judgment in judgments}
    columns = len(_COLUMNS)
    for most in (*(280,) * (columns - 7), *_REASON_CUTS[1:]):
        lines = [f"cite {{{prefix}c2.buffer_2x}} and so on: {' | '.join(_COLUMNS[:columns])}"]
        for candidate in rounds[-1].candidates:
            row = " | ".join(_cell(facts, f"c{candidate.index}.{column}") for column in _COLUMNS[:columns])
            where = f" in pool {candidate.pool_index}" if len(context.scenes) > 1 and candidate.kind.move else ""
            lines.append(f"{prefix}c{candidate.index} {candidate.kind}{where}: {row}")
            if judgment := by_index.get(candidate.index):
                reason = cut(judgment.reason, facts, most) if most else ""
                reason = cite_round(reason, len(rounds) - 1) if earlier else reason
                lines[-1] += f" → {_format_judgment(judgment, reason)}"
        text = "\n".join(lines)
        if estimate_tokens(text) <= BALLOT_TOKENS:
            break
        columns = max(columns - 1, 7)
    return text


def debate_lines(context: Context, rounds: Sequence[Round]) -> str:
    """What was said of each candidate, round by round; cut like the ballot."""
    sheets = [facts_of(context, rounds, number) for number in range(len(rounds))]

    def write(number: int, judgment: Judgment, most: int) -> str:
        text = annotate(cut(judgment.reason, sheets[number], most), sheets[number])
        text = text if number == len(rounds) - 1 else cite_round(text, number)
        return f"{judgment.index} {_format_judgment(judgment, text if most else '')}"

    text = ""
    for most in _REASON_CUTS:
        text = "\n".join(
            f"round {number}: " + "; ".join(write(number, judgment, most) for judgment in round_.judgments)
            for number, round_ in enumerate(rounds)
        )
        if estimate_tokens(text) <= DEBATE_TOKENS:
            break
    return text


def _format_judgment(judgment: Judgment, reason: str) -> str:
    return f"{judgment.verdict}: {reason}" if reason else str(judgment.verdict)


def _cell(facts: FactSheet, id_: str) -> str:
    return _n(facts[id_].number, 4) if id_ in facts else "-"


def _line(fact: Figure) -> str:
    """With the tokens called by what a brief calls them."""
    if fact.unit is Unit.PRICE:
        return f"{{{fact.id}}} {_n(fact.number)}"
    if fact.unit is Unit.AMOUNT:
        return f"{{{fact.id}}} {_n(fact.number)} {'tokenA' if fact.id.endswith('0') else 'tokenB'}"
    return f"{{{fact.id}}} {fact.print()}"


def _n(value: Fraction, digits: int = 5) -> str:
    """So many significant digits: enough to argue with, few enough to read. None are dropped before the point."""
    if value == int(value) and abs(value) < 10**7:
        return str(int(value))
    return f"{float(value):.{digits}g}" if abs(value) < 10 ** (digits - 1) else f"{float(value):.0f}"
