"""Frozen episodes: the same position at the same moment for every arm, and what each one's decision came to.

The position is the one that resetting at the edge has come to by then. Every arm decides about it; what it decides is
carried out and played for the horizon. Worth at the end less worth at the start, gas and swaps paid.
"""

from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zuno.amm.model import price_of
from zuno.kernel.errors import Refused
from zuno.kernel.units import Seconds
from zuno.kernel.view import View
from zuno.lab.lp.arms import STAY, WIDE, Arm, ArmAction, BacktestPool, Decide, centre_range, reset_at_edge
from zuno.lab.lp.backtest import Schedule, carry_out, value_in_token0
from zuno.lp.model.market import GasQuote

CENTRE: Final = "centre"
"""Not an arm: the range centred anew, which is what the random arm does when it takes a new range."""
HELD: Final = "stay"
CLOSE: Final = "close"


class EpisodeView(View):
    """One moment; everything by arm. An arm that could not be asked is in none of them."""

    at: int
    price_change: float
    """Of token1 in token0 over the horizon, as a share."""
    acts: dict[str, str]
    outcomes: dict[str, int]
    """In millionths of a dollar, models not paid."""
    tokens: dict[str, int]
    model_usd: dict[str, float]
    models: tuple[str, ...]
    unanswered: dict[str, int]
    """Questions to models that nobody answered, so that rules did."""


@dataclass(frozen=True, slots=True)
class EpisodeRules:
    half_width: Fraction
    horizon: Seconds
    gas: GasQuote


async def walk_moments(
    pools: Sequence[BacktestPool],
    schedule: Schedule,
    moments: Collection[int],
    half_width: Fraction,
    gas: GasQuote,
    prepare: Callable[[Seconds], None] = lambda moment: None,
) -> AsyncIterator[Seconds]:
    """All pools at one wanted moment after the other, with the position that resetting at the edge has come to.
    `prepare` is called before each decision of the schedule."""
    decide = reset_at_edge(half_width)
    for pool in pools:
        carry_out(ArmAction(centre_range(pool.state(), half_width)), pool, gas)
    for moment in map(Seconds, range(schedule.start + schedule.every, max(moments) + 1, schedule.every)):
        prepare(moment)
        for pool in pools:
            pool.play_until(moment)
        await sleep(0)
        if moment in moments:
            yield moment
        for pool in pools:
            with suppress(Refused):
                carry_out(await decide(pool), pool, gas)


async def run_episode(pool: BacktestPool, deciders: Mapping[str, Decide], rules: EpisodeRules) -> EpisodeView:
    """`deciders`: of the arms that ask the desk; each is handed the pool as it stands, and the others decide here."""
    state = pool.state()
    acts: dict[str, ArmAction] = {
        HELD: STAY,
        CENTRE: ArmAction(centre_range(state, rules.half_width)),
        Arm.HOLD: ArmAction(close=True),
        Arm.PASSIVE: ArmAction(centre_range(state, WIDE)),
        Arm.RESET: await reset_at_edge(rules.half_width)(pool),
    }
    for arm, decide in deciders.items():
        acts[arm] = await decide(pool)
    played: dict[ArmAction, int] = {}
    end_price = state.price
    for act in acts.values():
        if act not in played:
            played[act], end_price = _play(pool.copy(), act, rules)
    # Prices are of token0 in token1: what token1 costs goes the other way.
    return EpisodeView(
        at=pool.head.timestamp,
        price_change=round(float(state.price / end_price) - 1, 6),
        acts={arm: describe_act(act) for arm, act in acts.items()},
        outcomes={arm: played[act] for arm, act in acts.items()},
        tokens={arm: act.used.tokens for arm, act in acts.items() if act.used.tokens},
        model_usd={arm: float(act.used.usd) for arm, act in acts.items() if act.used.usd},
        models=tuple(sorted(frozenset().union(*(act.used.models for act in acts.values())))),
        unanswered={arm: act.used.unanswered for arm, act in acts.items() if act.used.unanswered},
    )


def _play(pool: BacktestPool, act: ArmAction, rules: EpisodeRules) -> tuple[int, Fraction]:
    start = pool.head.timestamp
    before = value_in_token0(pool.worth(), pool.state().sqrt_price_x96)
    with suppress(Refused):  # what cannot be carried out leaves everything as it is
        carry_out(act, pool, rules.gas)
    pool.play_until(Seconds(start + rules.horizon))
    price = pool.state().sqrt_price_x96
    return round(value_in_token0(pool.worth(), price) - before), price_of(price)


def describe_act(act: ArmAction) -> str:
    if act.close:
        return CLOSE
    return HELD if act.range is None else f"{act.range.lower}…{act.range.upper}"


def mix_random(episodes: Sequence[EpisodeView], arm: str) -> list[int]:
    """What as many closes and as many new ranges as an arm's, at episodes drawn blindly, come to on average over all
    draws, for every episode."""
    acts, count = [episode.acts[arm] for episode in episodes], max(1, len(episodes))
    closes = Fraction(acts.count(CLOSE), count)
    ranges = Fraction(sum(act not in (HELD, CLOSE) for act in acts), count)
    return [
        round(
            closes * episode.outcomes[Arm.HOLD]
            + ranges * episode.outcomes[CENTRE]
            + (1 - closes - ranges) * episode.outcomes[HELD]
        )
        for episode in episodes
    ]
