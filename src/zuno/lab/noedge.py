"""Whether the desk claims an edge where there is none: its rules over many markets in which nothing can be foreseen.

In each world the desk rules at breakouts, one position at a time, and learns from its own closed trades. A trade enters
at the next hour's open, pays taker fees, assumed slippage and funding, and ends at its stop, its target or its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from zuno.kernel.errors import Usage
from zuno.kernel.units import Millis
from zuno.kernel.view import PartialView, View
from zuno.lab.bootstrap import gain_chance
from zuno.lab.comparisons import rate_interval
from zuno.lab.memory_study import ArmDesk, rule_case
from zuno.lab.no_edge_worlds import HourPool, NoEdgeWorld, WorldKind, find_breakouts, make_world
from zuno.lab.rulings import STARTING_ACCOUNT
from zuno.lab.service import MOST_WORKERS, Progress
from zuno.trading.agents.case import build_case
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.finest_bars import SpanBar
from zuno.trading.model.account import account_slots
from zuno.trading.model.cycle import EDITION, Expectation, JudgeKind
from zuno.trading.model.market import HOUR_MS, Mode
from zuno.trading.model.outcome import Outcome
from zuno.trading.model.record import ClosedTrade, DeskRecord, Exploration, record_slot
from zuno.trading.rules.calibration import calibrate
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.exploration import MONTH_MS
from zuno.trading.rules.inputs import ASSUMED_SLIPPAGE, Fees
from zuno.trading.rules.realised_path import percent_move, sign_of
from zuno.trading.rules.veto_play import BarColumns, WantedTrade, play_trade

MOST_WORLDS: Final = 20_000
JUDGED_FROM: Final = 1_000
"""Worlds from which on the verdict counts."""
CYCLES: Final = 40
"""Of one world at most."""
LEAST_TRADES: Final = 10
"""Of a world in which a claim can be made at all."""
LEVEL: Final = 0.05
CODE: Final = "noedge"
COSTS_PCT: Final = 2 * Fees().binance.taker + ASSUMED_SLIPPAGE.buy + ASSUMED_SLIPPAGE.sell
_MICRO: Final = 1_000_000
"""Returns of trades are whole millionths of a per cent of the notional."""


@dataclass(frozen=True, slots=True)
class WorldsPlan:
    """Some worlds of one kind, for one worker."""

    kind: WorldKind
    seeds: tuple[int, ...]
    pool: HourPool | None


@dataclass(frozen=True, slots=True)
class WorldTrade:
    side: str
    gross: int
    net: int


@dataclass(frozen=True, slots=True)
class WorldResult:
    """What the desk did in one world."""

    kind: str
    seed: int
    symbol: str
    cycles: int
    trades: tuple[WorldTrade, ...]
    believed: int
    """Trades that were opened outside exploration: the desk took its own record for an edge."""


RunWorlds: TypeAlias = Callable[
    [Sequence[WorldsPlan], int, Callable[[WorldResult], None], asyncio.Event], Awaitable[None]
]
ReadPools: TypeAlias = Callable[[], Awaitable[Sequence[HourPool]]]
"""Recorded hours of the home's market, a pool for each symbol that has enough."""


class RateView(View):
    """In how many worlds something was claimed, of those in which it could be."""

    claims: int
    worlds: int
    rate: float | None
    ci95: tuple[float, float] | None


class WorldKindView(View):
    kind: str
    worlds: int
    judged: int
    cycles: int
    trades: int
    mean_gross_pct: float | None
    mean_net_pct: float | None
    """Of a trade, of its notional."""
    net: RateView
    before_costs: RateView
    desk: RateView


class NoEdgeView(PartialView):
    """`ok`: the lower end of no interval lies above 0.05; judged from 1,000 worlds on."""

    edition: int
    origin: str
    """Whose hours the blocks are of."""
    asked: int
    worlds: int
    judged: int
    """Worlds with ten trades or more: in the others nothing can be claimed."""
    false_edge_rate: float | None
    """Share of judged worlds whose trades, after every cost, made money with a one-sided bootstrap p below 0.05."""
    ci95: tuple[float, float] | None
    before_costs: RateView
    """The same before costs: near 0.05 where nothing leaks from the future."""
    desk: RateView
    """Worlds in which the desk itself opened outside exploration, taking its record for an edge."""
    kinds: tuple[WorldKindView, ...]
    said: str


class NoEdgeStudy:
    def __init__(self, run_worlds: RunWorlds, read_pools: ReadPools) -> None:
        self._run_worlds = run_worlds
        self._read_pools = read_pools

    async def study(self, worlds: int, workers: int, tell: Progress, stop: asyncio.Event) -> NoEdgeView:
        """Half of the worlds are random walks. Once `stop` is set, what is known by then is the answer."""
        if not 1 <= workers <= MOST_WORKERS:
            raise Usage(f"--workers is {workers}; give a whole number from 1 to {MOST_WORKERS}.")
        if not 2 <= worlds <= MOST_WORLDS:
            raise Usage(f"--worlds is {worlds}; give a whole number from 2 to {MOST_WORLDS}.")
        pools = await self._read_pools()
        plans = plan_worlds(worlds, pools, workers)
        found: list[WorldResult] = []

        def hear(result: WorldResult) -> None:
            found.append(result)
            tell(len(found), worlds)

        tell(0, worlds)
        await self._run_worlds(plans, workers, hear, stop)
        found.sort(key=lambda result: (result.kind, result.seed))  # workers answer in any order
        origin = ", ".join(sorted({pool.label for pool in pools})) or "none"
        return build_no_edge_view(found, worlds, origin, stopped=stop.is_set() and len(found) < worlds)


def plan_worlds(worlds: int, pools: Sequence[HourPool], workers: int) -> tuple[WorldsPlan, ...]:
    """Seeds from 0 on. Without a recorded history every world is a walk."""
    blocks = worlds // 2 if pools else 0
    each = max(1, min(25, worlds // (4 * workers)))
    whole = [
        WorldsPlan(WorldKind.WALK, tuple(range(worlds - blocks)), None),
        *(
            WorldsPlan(WorldKind.BLOCKS, tuple(range(place, blocks, len(pools))), pool)
            for place, pool in enumerate(pools)
        ),
    ]
    return tuple(
        replace(plan, seeds=plan.seeds[start : start + each])
        for plan in whole
        for start in range(0, len(plan.seeds), each)
    )


async def study_worlds(plan: WorldsPlan, desk: ArmDesk) -> AsyncIterator[WorldResult]:
    for seed in plan.seeds:
        yield await study_world(make_world(plan.kind, seed, plan.pool), desk)


async def study_world(world: NoEdgeWorld, desk: ArmDesk) -> WorldResult:
    end = world.at(len(world.bars))
    bars = BarColumns(
        [SpanBar(world.at(hour), world.at(hour + 1), *row[:4]) for hour, row in enumerate(world.bars.tolist())]
    )
    closed: list[ClosedTrade] = []
    explored: list[Exploration] = []
    trades: list[WorldTrade] = []
    cycles = believed = 0
    free = Millis(0)
    for hour in find_breakouts(world.bars):
        at = world.at(hour)
        if at < free or cycles == CYCLES:
            continue
        cycles += 1
        outcome = await _rule(world, at, desk, closed, explored)
        wanted = _wanted_trade(outcome)
        if wanted is None or wanted.hold_until > end:
            continue
        net = play_trade(wanted, bars, (), COSTS_PCT, end, assumed=True)
        gross = play_trade(wanted, bars, (), 0.0, end, assumed=False)
        if net is None or gross is None or net.exit == "unfilled":
            continue
        free = net.resolved
        card, worth = outcome.ruling.card, outcome.expectation
        family = outcome.meta.regime.family
        if card is not None and card.exploration:
            explored.append(Exploration(at=at, judge=JudgeKind.RULES, family=family))
        else:
            believed += 1
        trades.append(WorldTrade(wanted.side.value, round(gross.pct * _MICRO), round(net.pct * _MICRO)))
        if isinstance(worth, Expectation):
            sign, entry = sign_of(wanted.side), float(world.bars[hour, 0])
            closed.append(
                ClosedTrade(
                    closed=net.resolved,
                    judge=JudgeKind.RULES,
                    family=family,
                    edge=worth.edge,
                    profit_pct=percent_move(wanted.target, entry, sign),
                    loss_pct=-percent_move(wanted.stop, entry, sign),
                    exit_pct=gross.pct,
                )
            )
    return WorldResult(world.kind.value, world.seed, world.symbol.value, cycles, tuple(trades), believed)


async def _rule(
    world: NoEdgeWorld,
    at: Millis,
    desk: ArmDesk,
    closed: Sequence[ClosedTrade],
    explored: Sequence[Exploration],
) -> Outcome:
    record = DeskRecord(
        calibrations=calibrate(closed), explorations=tuple(each for each in explored if each.at > at - MONTH_MS)
    )
    slots = [*account_slots(STARTING_ACCOUNT, at, CODE), record_slot(record, at)]
    return await rule_case(desk, build_case(await build_bundle(world.store, world.symbol, Mode.SWING, at, slots)))


def _wanted_trade(outcome: Outcome) -> WantedTrade | None:
    side, decision = outcome.ruling.decision.side, outcome.decision
    if side is None or decision.stop_loss is None or decision.take_profit is None:
        return None
    hold = hold_hours(decision.hold_duration, outcome.mode) * HOUR_MS
    return WantedTrade(outcome.as_of, side, decision.stop_loss, decision.take_profit, Millis(outcome.as_of + hold))


# -- what they say together


def build_no_edge_view(results: Sequence[WorldResult], asked: int, origin: str, *, stopped: bool) -> NoEdgeView:
    whole = _sum_worlds("all", results)
    kinds = tuple(
        _sum_worlds(kind.value, several)
        for kind in WorldKind
        if (several := [result for result in results if result.kind == kind.value])
    )
    claims = (whole.net, whole.before_costs, whole.desk)
    passed = all(claim.ci95 is None or claim.ci95[0] <= LEVEL for claim in claims)
    return NoEdgeView(
        ok=passed or len(results) < JUDGED_FROM or stopped,
        stopped=stopped,
        edition=EDITION,
        origin=origin,
        asked=asked,
        worlds=len(results),
        judged=whole.judged,
        false_edge_rate=whole.net.rate,
        ci95=whole.net.ci95,
        before_costs=whole.before_costs,
        desk=whole.desk,
        kinds=kinds,
        said=_verdict(len(results), passed=passed, stopped=stopped),
    )


def _verdict(worlds: int, *, passed: bool, stopped: bool) -> str:
    if stopped or worlds < JUDGED_FROM:
        return f"Not judged: a whole study of {JUDGED_FROM} worlds is needed."
    return "No edge is claimed more often than chance allows." if passed else "An edge is claimed where there is none."


def _sum_worlds(kind: str, results: Sequence[WorldResult]) -> WorldKindView:
    judged = [result for result in results if len(result.trades) >= LEAST_TRADES]
    trades = [trade for result in results for trade in result.trades]

    def count_gains(name: str) -> RateView:
        chances = (gain_chance([getattr(trade, name) for trade in result.trades], 1) for result in judged)
        return _rate(sum(chance is not None and chance < LEVEL for chance in chances), len(judged))

    return WorldKindView(
        kind=kind,
        worlds=len(results),
        judged=len(judged),
        cycles=sum(result.cycles for result in results),
        trades=len(trades),
        mean_gross_pct=_mean([trade.gross for trade in trades]),
        mean_net_pct=_mean([trade.net for trade in trades]),
        net=count_gains("net"),
        before_costs=count_gains("gross"),
        desk=_rate(sum(result.believed > 0 for result in judged), len(judged)),
    )


def _rate(claims: int, worlds: int) -> RateView:
    rate = round(claims / worlds, 6) if worlds else None
    return RateView(claims=claims, worlds=worlds, rate=rate, ci95=rate_interval(claims, worlds))


def _mean(micros: Sequence[int]) -> float | None:
    return round(sum(micros) / len(micros) / _MICRO, 6) if micros else None
