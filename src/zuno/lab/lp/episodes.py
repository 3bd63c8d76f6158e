"""Frozen episodes: the same position at the same moment for every arm, and what each one's decision came to.

The position is the one that resetting at the edge has come to by then. Every arm decides about it; what it decides is
carried out and played for the horizon: worth at the end less worth at the start; and fees less LVR, without what the
price did. Gas and swaps are paid in both.
"""

from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from zuno.amm.model import price_of
from zuno.kernel.errors import Refused
from zuno.kernel.units import Seconds
from zuno.kernel.view import View
from zuno.lab.lp.arms import STAY, WIDE, Arm, ArmAction, BacktestPool, Decide, centre_range, reset_at_edge
from zuno.lab.lp.backtest import Schedule, carry_out, held_spans, value_in_token0
from zuno.lab.lp.scores import Days, ScoredRecord, score_positions
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
    carry: dict[str, int]
    """The same without what the price did: fees less LVR, gas and swaps."""
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
    record: ScoredRecord


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
    played: dict[ArmAction, tuple[int, int]] = {}
    end_price = state.price
    for act in acts.values():
        if act not in played:
            net, carry, end_price = _play(pool.copy(), act, rules)
            played[act] = net, carry
    # Prices are of token0 in token1: what token1 costs goes the other way.
    return EpisodeView(
        at=pool.head.timestamp,
        price_change=round(float(state.price / end_price) - 1, 6),
        acts={arm: describe_act(act) for arm, act in acts.items()},
        outcomes={arm: played[act][0] for arm, act in acts.items()},
        carry={arm: played[act][1] for arm, act in acts.items()},
        tokens={arm: act.used.tokens for arm, act in acts.items() if act.used.tokens},
        model_usd={arm: float(act.used.usd) for arm, act in acts.items() if act.used.usd},
        models=tuple(sorted(frozenset().union(*(act.used.models for act in acts.values())))),
        unanswered={arm: act.used.unanswered for arm, act in acts.items() if act.used.unanswered},
    )


def _play(pool: BacktestPool, act: ArmAction, rules: EpisodeRules) -> tuple[int, int, Fraction]:
    start, first_price = pool.head.timestamp, pool.state().sqrt_price_x96
    before = value_in_token0(pool.worth(), first_price)
    with suppress(Refused):  # what cannot be carried out leaves everything as it is
        carry_out(act, pool, rules.gas)
    end = Seconds(start + rules.horizon)
    held = [] if pool.range is None else [replace([*held_spans(pool.events, end)][-1], start=start)]
    cost = before - value_in_token0(pool.worth(), first_price)
    score = score_positions(rules.record, held, Days(start, 1))
    pool.play_until(end)
    price = pool.state().sqrt_price_x96
    return round(value_in_token0(pool.worth(), price) - before), sum(score.carry) - round(cost), price_of(price)


def describe_act(act: ArmAction) -> str:
    if act.close:
        return CLOSE
    return HELD if act.range is None else f"{act.range.lower}…{act.range.upper}"


def mix_random(
    episodes: Sequence[EpisodeView], arm: str, read: Callable[[EpisodeView], Mapping[str, int]]
) -> list[int]:
    """What as many closes and new ranges as an arm's, at random episodes, come to on average, for every episode."""
    acts, count = [episode.acts[arm] for episode in episodes], max(1, len(episodes))
    closes = Fraction(acts.count(CLOSE), count)
    ranges = Fraction(sum(act not in (HELD, CLOSE) for act in acts), count)
    return [
        round(
            closes * read(episode)[Arm.HOLD]
            + ranges * read(episode)[CENTRE]
            + (1 - closes - ranges) * read(episode)[HELD]
        )
        for episode in episodes
    ]
