"""Whether the desk claims an edge in markets where nothing can be foreseen, learning from its own closed trades."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import stdev
from typing import Final

from zuno.kernel.canonical import Digest, digest
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.kernel.wire import pick
from zuno.lab.comparisons import gain_chance, measure_rate
from zuno.lab.lookahead import OpenModelContext
from zuno.lab.market_study import collect_results
from zuno.lab.model import CheckView, RateView, table_of, warn_partial
from zuno.lab.no_edge_worlds import HourPool, NoEdgeWorld, WorldKind, find_breakouts
from zuno.lab.report_page import Charts, rate_chart
from zuno.lab.rulings import STARTING_ACCOUNT
from zuno.lab.trading.cycles import BacktestCycles, BacktestHistory
from zuno.lab.trading.figures import MarketFigures
from zuno.lab.workers import Progress, RunTasks, check_workers
from zuno.markets.venues import DEFAULT_VENUE
from zuno.present.document import Document, Tone, Value, as_value, document, lines, section
from zuno.present.values import count, percent
from zuno.trading.model.account import account_slots
from zuno.trading.model.cycle import EDITION, Expectation, JudgeKind, Outcome
from zuno.trading.model.market import HOUR_MS
from zuno.trading.model.memory import ClosedTrade, DeskRecord
from zuno.trading.rules.calibration import calibrate, find_slope
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.inputs import ASSUMED_SLIPPAGE
from zuno.trading.rules.trade_outcomes import BarColumns, PlannedTrade, SimulatedTrade, percent_move, simulate_trade

MOST_WORLDS: Final = 20_000
MIN_WORLDS: Final = 1_000
"""Worlds from which on the verdict counts."""
CYCLES: Final = 24
"""Of one world at most."""
LEAST_TRADES: Final = 10
"""Of a world that counts."""
LEVEL: Final = 0.05
MOST_WEIGHED: Final = 0.07
MOST_OPENED: Final = 0.01
CODE: Final = "noedge"
COSTS_PCT: Final = 2 * DEFAULT_VENUE.taker + ASSUMED_SLIPPAGE.buy + ASSUMED_SLIPPAGE.sell
_MICRO: Final = 1_000_000
_VERDICTS: Final = {
    True: "No edge is claimed more often than chance allows.",
    False: "An edge is claimed where there is none.",
}
_NOT_JUDGED: Final = f"Not judged: {MIN_WORLDS:,} worlds are needed, and {LEAST_TRADES} trades in some of them."


@dataclass(frozen=True, slots=True)
class WorldsPlan:
    kind: WorldKind
    seeds: tuple[int, ...]
    pool: HourPool | None


class WorldResult(View):
    """What the desk did in one world. Returns of trades are millionths of a per cent of their notional."""

    kind: WorldKind
    seed: int
    symbol: str
    cycles: int
    gross: tuple[int, ...]
    net: tuple[int, ...]
    believed: int
    """Rulings that opened outside exploration: the desk took its own record for an edge."""
    weighed: bool
    """Whether in the end the record has a weight above zero."""
    gained: bool
    """Whether the trades made money after costs, too clearly for chance."""
    gained_before_costs: bool


class WorldKindView(View):
    kind: str
    worlds: int
    judged: int
    cycles: int
    trades: int
    mean_gross_pct: float | None
    mean_net_pct: float | None
    """Of a trade, of its notional."""
    standard_error_pct: float | None
    """Of the mean before costs."""
    net: RateView
    before_costs: RateView
    opened: RateView
    weighed: RateView


class NoEdgeView(CheckView):
    """`ok`: the lower end of no interval lies above its bar: 0.05 of worlds with a claim, 0.07 with a weight at the
    end, 0.01 of rulings opened outside exploration; null where fewer than 1,000 worlds are done."""

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
    opened: RateView
    """Rulings that opened outside exploration. Those of one world hang together: the interval is too narrow."""
    weighed: RateView
    """Worlds after which the record has a weight above zero: it would be believed in part."""
    kinds: tuple[WorldKindView, ...]
    said: str

    def to_document(self) -> Document:
        before, opened, weighed = (
            as_value(rate.to_cells()[0]).text for rate in (self.before_costs, self.opened, self.weighed)
        )
        return document(
            Value(self.said, {True: Tone.GOOD, False: Tone.BAD, None: Tone.QUIET}[self.ok]),
            section(
                "Share of worlds with a claim",
                table_of(
                    self.kinds,
                    {
                        "worlds": lambda kind: kind.kind,
                        "judged": lambda kind: f"{kind.judged} of {kind.worlds}",
                        "after costs": lambda kind: kind.net.to_cells()[0],
                        "95 %": lambda kind: kind.net.to_cells()[1],
                        "before costs": lambda kind: kind.before_costs.to_cells()[0],
                        "95 % of it": lambda kind: kind.before_costs.to_cells()[1],
                        "rulings opened": lambda kind: kind.opened.to_cells()[0],
                        "record weighs": lambda kind: kind.weighed.to_cells()[0],
                    },
                    spare=("95 % of it", "record weighs"),
                ),
                lines(
                    ""
                    if self.false_edge_rate is None or self.ci95 is None
                    else f"An edge is claimed after costs in {self.false_edge_rate:.1%} of {self.judged} worlds "
                    f"({self.ci95[0]:.1%} to {self.ci95[1]:.1%}), before costs in {before}; "
                    f"the desk opened on its record in {opened} of its rulings, and after {weighed} of the worlds it "
                    "would believe it."
                ),
            ),
            section(
                "Trades",
                table_of(
                    self.kinds,
                    {
                        "worlds": lambda kind: kind.kind,
                        "cycles": lambda kind: count(kind.cycles),
                        "trades": lambda kind: count(kind.trades),
                        "mean before costs": lambda kind: percent(kind.mean_gross_pct, 3, signed=True),
                        "standard error": lambda kind: percent(kind.standard_error_pct, 3),
                        "mean after costs": lambda kind: percent(kind.mean_net_pct, 3, signed=True),
                    },
                ),
            ),
            context=f"{self.worlds:,} of {self.asked:,} worlds, {self.judged:,} of them with ten trades or more; "
            f"blocks of {self.origin}; edition {self.edition}; no model",
            urgent=warn_partial(self),
            notes=(
                "an edge is claimed where a world's trades made money with a one-sided bootstrap p below 0.05; nothing "
                "can be foreseen in these markets: before costs one world in twenty makes such a claim by chance",
                *self.name_report(),
            ),
        )

    def draw_charts(self) -> Charts:
        rates = [
            (f"{kind.kind}, {name}", rate)
            for kind in self.kinds
            for name, rate in (("after costs", kind.net), ("before costs", kind.before_costs), ("record", kind.weighed))
        ]
        return {"Share of worlds with a claim": (rate_chart("Share of worlds", rates),)}


@dataclass(frozen=True, slots=True)
class NoEdgeStudy:
    run_worlds: RunTasks[WorldsPlan, WorldResult]
    read_pools: Callable[[], Awaitable[Sequence[HourPool]]]
    """Recorded hours of the home's market, a pool for each symbol that has enough."""

    async def study(
        self,
        worlds: int,
        pools: Sequence[HourPool],
        workers: int,
        tell: Progress,
        stop: asyncio.Event,
        done: Sequence[WorldResult] = (),
        keep: Callable[[WorldResult], None] = lambda result: None,
    ) -> NoEdgeView:
        """Half of the worlds are random walks. `done`: what an earlier run had results; `keep` is told each new one."""
        check_workers(workers)
        if not 2 <= worlds <= MOST_WORLDS:
            raise UsageError(f"--worlds is {worlds}; give a whole number from 2 to {MOST_WORLDS}.")
        plans = plan_worlds(worlds, pools, workers, [(result.kind, result.seed) for result in done])
        results, stopped = await collect_results(
            self.run_worlds, plans, workers, worlds, lambda each: (each.kind, each.seed), tell, stop, done, keep
        )
        origin = ", ".join(sorted({pool.label for pool in pools})) or "none"
        return build_no_edge_view(results, worlds, origin, stopped=stopped)


def fingerprint_pools(pools: Sequence[HourPool]) -> Digest:
    return digest(b"".join(pool.hours.astype("<i8").tobytes() for pool in pools))


def plan_worlds(
    worlds: int, pools: Sequence[HourPool], workers: int, done: Collection[tuple[WorldKind, int]] = ()
) -> tuple[WorldsPlan, ...]:
    """Seeds from 0 on, without those that are done. Without a recorded history every world is a walk."""
    blocks = worlds // 2 if pools else 0
    each = max(1, min(25, worlds // (4 * workers)))
    whole = [
        WorldsPlan(WorldKind.WALK, tuple(range(worlds - blocks)), None),
        *(
            WorldsPlan(WorldKind.BLOCKS, tuple(range(place, blocks, len(pools))), pool)
            for place, pool in enumerate(pools)
        ),
    ]
    left = [replace(plan, seeds=tuple(seed for seed in plan.seeds if (plan.kind, seed) not in done)) for plan in whole]
    return tuple(
        replace(plan, seeds=plan.seeds[start : start + each])
        for plan in left
        for start in range(0, len(plan.seeds), each)
    )


async def study_world(world: NoEdgeWorld, model_context: OpenModelContext) -> WorldResult:
    end = world.at(len(world.bars))
    bars = BarColumns(world.path)
    moments = [world.at(hour) for hour in find_breakouts(world.bars)]
    figures = MarketFigures(world.store, world.symbol)
    await figures.load(moments[: 2 * CYCLES])  # most worlds are through by then; later ones are measured one by one
    cycles = BacktestCycles(figures, model_context, BacktestHistory(), code=CODE)
    closed: list[ClosedTrade] = []
    grosses: list[int] = []
    nets: list[int] = []
    ruled = believed = 0
    free = Millis(0)
    for at in moments:
        if at < free or ruled == CYCLES:
            continue
        ruled += 1
        outcome = await cycles.run(at, account_slots(STARTING_ACCOUNT, at, CODE), closed)
        card, wanted = outcome.ruling.card, _planned_trade(outcome)
        believed += card is not None and not card.exploration
        if wanted is None or wanted.hold_until > end:
            continue
        net = simulate_trade(wanted, bars, (), COSTS_PCT, end, assumed=True)
        gross = simulate_trade(wanted, bars, (), 0.0, end, assumed=False)
        if net is None or gross is None or net.exit == "unfilled":
            continue
        free = net.resolved
        grosses.append(round(gross.pct * _MICRO))
        nets.append(round(net.pct * _MICRO))
        if isinstance(outcome.expectation, Expectation):
            closed.append(_close_trade(outcome, outcome.expectation, wanted, gross, bars))
    record = DeskRecord(calibrations=calibrate(closed))
    weighed = find_slope(record, JudgeKind.RULES).weight > 0
    return WorldResult(
        kind=world.kind,
        seed=world.seed,
        symbol=world.symbol.value,
        cycles=ruled,
        gross=tuple(grosses),
        net=tuple(nets),
        believed=believed,
        weighed=weighed,
        gained=is_gain(nets),
        gained_before_costs=is_gain(grosses),
    )


def is_gain(returns: Sequence[int]) -> bool:
    """Whether so much is won by chance in fewer than one world in twenty."""
    chance = gain_chance(returns, 1)
    return chance is not None and chance < LEVEL


def _close_trade(
    outcome: Outcome, worth: Expectation, wanted: PlannedTrade, played: SimulatedTrade, bars: BarColumns
) -> ClosedTrade:
    entry = float(bars.open[int(bars.start.searchsorted(wanted.at))])
    sign = wanted.side.sign
    return ClosedTrade(
        opened=wanted.at,
        closed=played.resolved,
        judge=JudgeKind.RULES,
        family=outcome.meta.regime.family,
        edge=worth.edge,
        profit_pct=percent_move(wanted.target, entry, sign),
        loss_pct=-percent_move(wanted.stop, entry, sign),
        exit_pct=played.pct,
    )


def _planned_trade(outcome: Outcome) -> PlannedTrade | None:
    side, decision = outcome.ruling.decision.side, outcome.decision
    if side is None or decision.stop_loss is None or decision.take_profit is None:
        return None
    hold = hold_hours(decision.hold_duration, outcome.mode) * HOUR_MS
    return PlannedTrade(outcome.as_of, side, decision.stop_loss, decision.take_profit, Millis(outcome.as_of + hold))


def build_no_edge_view(results: Sequence[WorldResult], asked: int, origin: str, *, stopped: bool) -> NoEdgeView:
    whole = _sum_worlds("all", results)
    kinds = tuple(
        _sum_worlds(kind.value, several)
        for kind in WorldKind
        if (several := [result for result in results if result.kind is kind])
    )
    bars = ((whole.net, LEVEL), (whole.before_costs, LEVEL), (whole.weighed, MOST_WEIGHED), (whole.opened, MOST_OPENED))
    passed = all(claim.ci95 is None or claim.ci95[0] <= most for claim, most in bars)
    judged = len(results) >= MIN_WORLDS and whole.judged > 0 and not stopped
    return NoEdgeView(
        ok=passed if judged else None,
        stopped=stopped,
        edition=EDITION,
        origin=origin,
        asked=asked,
        worlds=len(results),
        **pick(whole, "judged", "before_costs", "opened", "weighed"),
        false_edge_rate=whole.net.rate,
        ci95=whole.net.ci95,
        kinds=kinds,
        said=_VERDICTS[passed] if judged else _NOT_JUDGED,
    )


def _sum_worlds(kind: str, results: Sequence[WorldResult]) -> WorldKindView:
    judged = [result for result in results if len(result.net) >= LEAST_TRADES]
    gross = [pct for result in results for pct in result.gross]
    return WorldKindView(
        kind=kind,
        worlds=len(results),
        judged=len(judged),
        cycles=sum(result.cycles for result in results),
        trades=sum(len(result.net) for result in results),
        mean_gross_pct=_mean(gross),
        mean_net_pct=_mean([pct for result in results for pct in result.net]),
        standard_error_pct=round(stdev(gross) / sqrt(len(gross)) / _MICRO, 6) if len(gross) > 1 else None,
        net=measure_rate(sum(result.gained for result in judged), len(judged)),
        before_costs=measure_rate(sum(result.gained_before_costs for result in judged), len(judged)),
        opened=measure_rate(sum(result.believed for result in results), sum(result.cycles for result in results)),
        weighed=measure_rate(sum(result.weighed for result in judged), len(judged)),
    )


def _mean(micros: Sequence[int]) -> float | None:
    return round(sum(micros) / len(micros) / _MICRO, 6) if micros else None
