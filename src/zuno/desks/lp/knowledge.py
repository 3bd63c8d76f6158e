"""What an agent is told and may therefore say: the figures of a context and of a ballot, each with its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from zuno.core.amm.ticks import sqrt_price_at_tick
from zuno.core.profiles import LIMITS
from zuno.core.provenance.check import Facts, check
from zuno.core.provenance.figures import Figure, Unit
from zuno.core.returns import rolling_vol_bps
from zuno.desks.lp.scenes import NANO
from zuno.domain.debate import Candidate, Judgment
from zuno.domain.pool import PoolState, price_of
from zuno.domain.tokens import quoted
from zuno.messages.debate import Context, SceneFacts


def whole_price(sqrt_price_x96: int, pool: PoolState) -> Fraction:
    """Whole quote tokens for one whole base token."""
    price = price_of(sqrt_price_x96) * Fraction(10**pool.token0.decimals, 10**pool.token1.decimals)
    base, _ = quoted(pool.token0, pool.token1)
    return price if base is pool.token0 else 1 / price


def edges(candidate: Candidate, pool: PoolState) -> tuple[Fraction, Fraction] | None:
    """The prices of a candidate's range, lower first, the way people quote the pair."""
    if candidate.range is None:
        return None
    ticks = (candidate.range.lower, candidate.range.upper)
    low, high = sorted(whole_price(sqrt_price_at_tick(tick), pool) for tick in ticks)
    return low, high


def figures_of_context(context: Context) -> Iterator[Figure]:
    """The figures every agent of a debate knows."""
    limits = LIMITS[context.profile]
    yield Figure("floor 1×", limits.floor_1x_hours, Unit.HOURS, "profile")
    yield Figure("floor 2×", limits.floor_2x_hours, Unit.HOURS, "profile")
    yield Figure("gas ceiling", limits.gas_yield_ceiling, Unit.RATIO, "profile")
    yield Figure("block", context.block.number, Unit.BLOCK, context.chain)
    for scene in context.scenes:
        yield from _figures_of_scene(scene)
    for note in context.sources:
        if note.age_seconds is not None:
            yield Figure(f"age of {note.feed}", note.age_seconds, Unit.SECONDS, note.source or "")


def _figures_of_scene(scene: SceneFacts) -> Iterator[Figure]:
    pool, position = scene.pool, scene.position
    _, quote = quoted(pool.token0, pool.token1)
    source = f"block {pool.block.number}"
    yield Figure("price", whole_price(pool.sqrt_price_x96, pool), Unit.PRICE, source, symbol=quote.symbol)
    yield Figure("tick", pool.tick, Unit.TICK, source)
    yield Figure("spacing", pool.key.tick_spacing, Unit.TICK, source)
    yield Figure("fee", pool.lp_fee, Unit.PIPS, source)
    yield Figure("returns", len(scene.returns_nano), Unit.COUNT, "price history")
    vols = rolling_vol_bps([value / NANO for value in scene.returns_nano]) if len(scene.returns_nano) >= 24 else ()
    if vols:
        yield Figure("volatility", round(vols[-1], 1), Unit.BPS, "price history")
        ordered = sorted(vols)
        yield Figure("75th percentile of volatility", round(ordered[len(ordered) * 75 // 100], 1), Unit.BPS, "history")
        yield Figure("95th percentile of volatility", round(ordered[len(ordered) * 95 // 100], 1), Unit.BPS, "history")
    if scene.gas is not None:
        yield Figure("gas price", Fraction(scene.gas.price, 10**9), Unit.GWEI, "gas feed")
    if position is not None:
        for name, amount, token in (
            ("holds", position.amount0, pool.token0),
            ("holds", position.amount1, pool.token1),
            ("uncollected fees", position.fees0, pool.token0),
            ("uncollected fees", position.fees1, pool.token1),
        ):
            yield Figure(name, Fraction(amount, 10**token.decimals), Unit.AMOUNT, source, symbol=token.symbol)


def figures_of_ballot(context: Context, candidates: Sequence[Candidate]) -> Iterator[Figure]:
    """The figures of the candidates, each about its own."""
    for candidate in candidates:
        scene = context.scenes[candidate.pool_index]
        yield from _figures_of_candidate(candidate, scene.pool)


def _figures_of_candidate(candidate: Candidate, pool: PoolState) -> Iterator[Figure]:
    about, source, token1 = f"candidate {candidate.index}", "computed", pool.token1
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
    return Facts([*figures_of_context(context), *figures_of_ballot(context, candidates)], ids)


def unsupported_in(text: str, facts: Facts, about: str = "") -> list[str]:
    """The figures of a text that nothing backs."""
    return [claim.text for claim in check(text, facts, about).unsupported]


# -- the same figures as lines of a prompt


def context_lines(context: Context) -> str:
    lines = [
        f"profile {context.profile}: floors {_n(LIMITS[context.profile].floor_1x_hours)} h at 1× and "
        f"{_n(LIMITS[context.profile].floor_2x_hours)} h at 2×, gas/yield ceiling "
        f"{_n(LIMITS[context.profile].gas_yield_ceiling)}"
    ]
    for index, scene in enumerate(context.scenes):
        lines.append(f"pool {index}: regime {scene.regime} ({scene.regime_why})")
        for figure in _figures_of_scene(scene):
            lines.append(f"  {figure.name} {_n(figure.exact)} {figure.unit} {figure.symbol}".rstrip())
    return "\n".join(lines)


def candidate_lines(context: Context, candidates: Sequence[Candidate], judgments: Sequence[Judgment] = ()) -> str:
    said = {judgment.index: judgment for judgment in judgments}
    lines = []
    for candidate in candidates:
        pool = context.scenes[candidate.pool_index].pool
        parts = [f"{figure.name} {_n(figure.exact)}" for figure in _figures_of_candidate(candidate, pool)]
        lines.append(f"{candidate.index} {candidate.kind}: {', '.join(parts)}")
        if candidate.index in said:
            lines.append(f"  {said[candidate.index].verdict}: {said[candidate.index].reason}")
    return "\n".join(lines)


def _n(value: Fraction) -> str:
    """Four significant digits: enough to argue with, few enough to read."""
    if value == int(value) and abs(value) < 10**7:
        return str(int(value))
    return f"{float(value):.5g}" if abs(value) < 10**5 else f"{float(value):.0f}"
