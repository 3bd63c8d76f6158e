"""What an agent is told and may therefore say: the figures of a context and of a ballot, each with its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache

from zuno.agents.prompts import Untrusted
from zuno.agents.tokens import estimate_tokens
from zuno.core.amm.ticks import sqrt_price_at_tick
from zuno.core.profiles import LIMITS
from zuno.core.provenance.check import NO_FACT, Facts, check
from zuno.core.provenance.figures import Claim, Figure, Unit
from zuno.core.provenance.words import HOLDING
from zuno.core.returns import NANO, percentile, rolling_vol_bps
from zuno.domain.debate import Candidate, CandidateKind, Judgment, Stress
from zuno.domain.pool import PoolState, whole_price
from zuno.domain.tokens import quoted
from zuno.messages.debate import Context, Round, SceneFacts

FACTS_TOKENS = 360
BALLOT_TOKENS = 550
DEBATE_TOKENS = 220
"""Of the 1,200 a small model reads, what the facts, the ballot and the argument so far may take."""
_REASON_CUTS = (280, 120, 90, 60, 30, 0)
_FACT_CUTS = ((), ("75th", "95th"), ("75th", "95th", "returns", "spacing", "gas price"))

_KIND_WORDS = {
    CandidateKind.HOLD: HOLDING,
    CandidateKind.CLOSE: frozenset({"close", "closing", "closed"}),
    CandidateKind.WIDEN: frozenset({"widen", "widening", "widened"}),
    CandidateKind.TIGHTEN: frozenset({"tighten", "tightening", "tightened"}),
    CandidateKind.SHIFT: frozenset({"shift", "shifting", "shifted"}),
}
"""What a candidate is called by what it does."""


def edges(candidate: Candidate, pool: PoolState) -> tuple[Fraction, Fraction] | None:
    """The prices of a candidate's range, lower first, the way people quote the pair."""
    if candidate.range is None:
        return None
    ticks = (candidate.range.lower, candidate.range.upper)
    low, high = sorted(whole_price(sqrt_price_at_tick(tick), pool.token0, pool.token1) for tick in ticks)
    return low, high


def figures_of_context(context: Context) -> Iterator[Figure]:
    """The figures every agent of a debate knows."""
    limits = LIMITS[context.profile]
    yield Figure("floor 1×", limits.floor_1x_hours, Unit.HOURS, "profile")
    yield Figure("floor 2×", limits.floor_2x_hours, Unit.HOURS, "profile")
    yield Figure("gas ceiling", limits.gas_yield_ceiling, Unit.RATIO, "profile")
    yield Figure("block", context.block.number, Unit.BLOCK, context.chain)
    for scene in context.scenes:
        yield from _figures_of_scene(scene, (scene.pool.token0.symbol, scene.pool.token1.symbol))
    for line in context.wish.capital if context.wish else ():
        yield Figure("capital", Fraction(line.amount), Unit.AMOUNT, "the owner", symbol=line.token)
    for note in context.sources:
        if note.age_seconds is not None:
            yield Figure(f"age of {note.feed}", note.age_seconds, Unit.SECONDS, note.source or "")


def _figures_of_scene(scene: SceneFacts, names: tuple[str, str]) -> Iterator[Figure]:
    """A pool's figures with its tokens called by these names: their symbols, or what a prompt calls them."""
    pool, position = scene.pool, scene.position
    _, quote = quoted(pool.token0, pool.token1)
    name0, name1 = names
    priced_in, source = name0 if quote is pool.token0 else name1, f"block {pool.block.number}"
    price = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
    yield Figure("price", price, Unit.PRICE, source, symbol=priced_in)
    yield Figure("tick", pool.tick, Unit.TICK, source)
    yield Figure("spacing", pool.key.tick_spacing, Unit.TICK, source)
    yield Figure("fee", pool.lp_fee, Unit.PIPS, source)
    yield Figure("returns", len(scene.returns_nano), Unit.COUNT, "price history")
    for name, value in _volatility(scene.returns_nano):
        yield Figure(name, value, Unit.BPS, "price history")
    if scene.gas is not None:
        yield Figure("gas price", Fraction(scene.gas.price, 10**9), Unit.GWEI, "gas feed")
    if position is not None:
        held = position.range
        yield Figure("width held", held.width, Unit.TICK, source)
        if not position.in_range:
            yield Figure("outside by", max(held.lower - pool.tick, pool.tick - held.upper), Unit.TICK, source)
        for name, amount, token, called in (
            ("holds", position.amount0, pool.token0, name0),
            ("holds", position.amount1, pool.token1, name1),
            ("uncollected fees", position.fees0, pool.token0, name0),
            ("uncollected fees", position.fees1, pool.token1, name1),
        ):
            yield Figure(name, Fraction(amount, 10**token.decimals), Unit.AMOUNT, source, symbol=called)


@lru_cache(maxsize=8)
def _volatility(returns_nano: tuple[int, ...]) -> tuple[tuple[str, float], ...]:
    """The volatility now and where it usually ends; asked for in every turn of a debate, the same each time."""
    vols = rolling_vol_bps([value / NANO for value in returns_nano]) if len(returns_nano) >= 24 else ()
    if not vols:
        return ()
    return (
        ("volatility", round(vols[-1], 1)),
        ("75th percentile of volatility", round(percentile(vols, 75), 1)),
        ("95th percentile of volatility", round(percentile(vols, 95), 1)),
    )


def figures_of_ballot(context: Context, candidates: Sequence[Candidate]) -> Iterator[Figure]:
    """The figures of the candidates, each about its own."""
    for candidate in candidates:
        scene = context.scenes[candidate.pool_index]
        yield from _figures_of_candidate(candidate, scene.pool)


def _figures_of_candidate(candidate: Candidate, pool: PoolState) -> Iterator[Figure]:
    about, source, token1 = about_of(candidate.index), "computed", pool.token1
    _, quote = quoted(pool.token0, pool.token1)
    between = edges(candidate, pool)
    if between is not None and candidate.range is not None:
        for name, price in zip(("lower price", "upper price"), between, strict=True):
            yield Figure(name, price, Unit.PRICE, source, symbol=quote.symbol, about=about)
        yield Figure("lower tick", candidate.range.lower, Unit.TICK, source, about=about)
        yield Figure("upper tick", candidate.range.upper, Unit.TICK, source, about=about)
        yield Figure("width", candidate.range.width, Unit.TICK, source, about=about)
    for point in candidate.stress or ():
        name = f"{point.multiple}×"
        yield Figure(f"buffer {name}", point.median_hours, Unit.HOURS, source, about=about)
        yield Figure(f"tenth percentile exit {name}", point.p10_hours, Unit.HOURS, source, about=about)
        yield Figure(f"exit chance in 24h {name}", 100 * point.p_exit_24h, Unit.PERCENT, source, about=about)
        yield Figure(f"time in range {name}", 100 * point.in_range_share, Unit.PERCENT, source, about=about)
    carry = candidate.carry
    parts = (
        ("fees 24h", carry.fees24h_token1),
        ("LVR 24h", carry.lvr24h_token1),
        ("net carry 24h", carry.net24h_token1),
        ("cost", carry.cost.total_token1),
    )
    for name, value in parts:
        if value is not None:
            amount = value / 10**token1.decimals
            yield Figure(name, amount, Unit.AMOUNT, source, symbol=token1.symbol, about=about, per_day=1)
    if carry.breakeven_hours is not None:
        yield Figure("break-even", carry.breakeven_hours, Unit.HOURS, source, about=about)
    if carry.gas_yield is not None:
        yield Figure("gas over yield", carry.gas_yield, Unit.RATIO, source, about=about)


def facts_of(context: Context, candidates: Sequence[Candidate] = ()) -> Facts:
    ids = [identity for scene in context.scenes for identity in (scene.pool.id, scene.pool.key.hooks)]
    figures = [*figures_of_context(context), *figures_of_ballot(context, candidates)]
    hold = next((one for one in candidates if one.kind is CandidateKind.HOLD), None)
    called: dict[str, frozenset[str]] = {}
    for one in candidates:  # of several rounds, where a number stands for one thing after the other
        about = about_of(one.index)
        called[about] = called.get(about, frozenset()) | _KIND_WORDS.get(one.kind, frozenset())
    return Facts(figures, ids, about_of(hold.index) if hold else "", called)


def about_of(index: int) -> str:
    """What a candidate is called where figures are traced."""
    return f"candidate {index}"


class Backing:
    """Finds the figures of a text that nothing backs. The facts are gathered when the first text comes."""

    def __init__(self, context: Context, candidates: Sequence[Candidate] = ()) -> None:
        self._context = context
        self._candidates = candidates

    @cached_property
    def _facts(self) -> Facts:
        return facts_of(self._context, self._candidates)

    def __call__(self, text: str, about: int | None = None, others: bool = False) -> list[str]:
        """What is wrong with which figure. `about` is the candidate the text judges: another one's figure must stand
        with its name, unless `others` may be meant as well."""
        checked = check(text, self._facts, "" if about is None else about_of(about), others)
        return [_fault(claim) for claim in checked.unsupported]


def _fault(claim: Claim) -> str:
    return claim.text if claim.problem == NO_FACT else f"{claim.text} ({claim.problem})"


# -- the same figures as lines of a prompt, few enough for a small model


def pairs_of(context: Context) -> Untrusted:
    """The tokens' names, chosen by strangers. Elsewhere they are tokenA and tokenB: a digit would read as a figure."""
    pools = [f"{scene.pool.token0.symbol}/{scene.pool.token1.symbol}" for scene in context.scenes]
    return Untrusted(", ".join(pools), limit=40 * len(pools))


def context_lines(context: Context, tokens: int = FACTS_TOKENS) -> str:
    """The world, a line for each pool; the lesser figures are left out where it would grow beyond `tokens`."""
    limits = LIMITS[context.profile]
    lines = [
        f"profile {context.profile}: floors {_n(limits.floor_1x_hours)} h at 1× and {_n(limits.floor_2x_hours)} h at "
        f"2×, gas/yield ceiling {_n(limits.gas_yield_ceiling)}"
    ]
    text = ""
    for without in _FACT_CUTS:
        text = "\n".join((*lines, *_pool_lines(context.scenes, without)))
        if estimate_tokens(text) <= tokens:
            break
    return text


def _pool_lines(scenes: Sequence[SceneFacts], without: Sequence[str]) -> Iterator[str]:
    """A line for each pool, and before them what several pools have in common, said once."""
    pools = [
        [
            f"regime {scene.regime} ({scene.regime_why})",
            *(
                _worded(figure)
                for figure in _figures_of_scene(scene, ("tokenA", "tokenB"))
                if not figure.name.startswith(tuple(without))
            ),
        ]
        for scene in scenes
    ]
    common = [words for words in pools[0] if len(pools) > 1 and all(words in pool for pool in pools)]
    if common:
        yield f"every pool: {', '.join(common)}"
    for index, pool in enumerate(pools):
        yield f"pool {index}: {', '.join(words for words in pool if words not in common)}"


def candidate_lines(
    context: Context, candidates: Sequence[Candidate], judgments: Sequence[Judgment] = (), tokens: int = BALLOT_TOKENS
) -> str:
    """The ballot, a line each, amounts in tokenB; the reasons are cut where it would grow beyond `tokens`."""
    text = ""
    for most in _REASON_CUTS:
        text = "\n".join(_ballot_lines(context, candidates, judgments, most))
        if estimate_tokens(text) <= tokens:
            break
    return text


def debate_lines(rounds: Sequence[Round], tokens: int = DEBATE_TOKENS) -> str:
    """What was said of each candidate, round by round; cut like the ballot."""
    text = ""
    for most in _REASON_CUTS:
        text = "\n".join(
            f"round {number}: " + "; ".join(f"{one.index} {_judged(one, most)}" for one in round_.judgments)
            for number, round_ in enumerate(rounds)
        )
        if estimate_tokens(text) <= tokens:
            break
    return text


def _ballot_lines(
    context: Context, candidates: Sequence[Candidate], judgments: Sequence[Judgment], most: int
) -> Iterator[str]:
    said = {judgment.index: judgment for judgment in judgments}
    for candidate in candidates:
        parts = [f"{candidate.index} {candidate.kind}"]
        between = edges(candidate, context.scenes[candidate.pool_index].pool)
        if len(context.scenes) > 1 and candidate.kind.move:
            parts.append(f"pool {candidate.pool_index}")
        if between is not None:
            parts.append(f"{_n(between[0])} to {_n(between[1])}")
        parts += _stress_words(candidate.stress)
        parts += _carry_words(candidate, 10 ** context.scenes[candidate.pool_index].pool.token1.decimals)
        judged = f" → {_judged(said[candidate.index], most)}" if candidate.index in said else ""
        yield ", ".join(parts) + judged


def _stress_words(tested: Stress | None) -> list[str]:
    if tested is None:
        return []
    buffers = "/".join(str(point.median_hours) for point in tested)
    return [f"buffers {buffers} h", f"exit in 24h {_n(100 * tested.x1.p_exit_24h, 2)} %"]


def _carry_words(candidate: Candidate, whole: int) -> list[str]:
    carry = candidate.carry
    parts = (("fees", carry.fees24h_token1), ("net", carry.net24h_token1), ("cost", carry.cost.total_token1))
    words = [f"{name} {'unknown' if value is None else _n(value / whole, 3)}" for name, value in parts]
    if carry.breakeven_hours is not None:
        words.append(f"break-even {_n(carry.breakeven_hours, 3)} h")
    return words


def _judged(judgment: Judgment, most: int) -> str:
    reason = judgment.reason if len(judgment.reason) <= most else judgment.reason[: max(most - 1, 0)] + "…"
    return f"{judgment.verdict}: {reason}" if most else str(judgment.verdict)


def _worded(figure: Figure) -> str:
    unit = figure.symbol or ("" if figure.unit in (Unit.TICK, Unit.COUNT) else figure.unit)
    return f"{figure.name} {_n(figure.exact)} {unit}".rstrip()


def _n(value: Fraction, digits: int = 5) -> str:
    """So many significant digits: enough to argue with, few enough to read. None are dropped before the point."""
    if value == int(value) and abs(value) < 10**7:
        return str(int(value))
    return f"{float(value):.{digits}g}" if abs(value) < 10 ** (digits - 1) else f"{float(value):.0f}"
