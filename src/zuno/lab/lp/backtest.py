"""One arm over a recorded pool, decision by decision, and where its money went."""

from asyncio import sleep
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

from zuno.amm.model import Range, price_of
from zuno.kernel.errors import Refused
from zuno.kernel.units import Seconds, Wei
from zuno.lab.lp.arms import Arm, ArmAction, ArmPlan, BacktestPool, ModelUse, Move, describe_move
from zuno.lab.lp.fast import USD
from zuno.lp.model.ballot import CandidateKind
from zuno.lp.model.history import PositionEvent, WalletSwap
from zuno.lp.model.market import HOUR, GasQuote
from zuno.lp.model.plan import MEASURED_GAS
from zuno.lp.rules.attribution import PnlTerms, attribute
from zuno.lp.rules.carry import steps_for

ZERO: Final = Fraction(0)


@dataclass(frozen=True, slots=True)
class HeldSpan:
    """A position from its mint to its burn, or to the end."""

    start: Seconds
    end: Seconds
    range: Range
    liquidity: int


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What an arm made, in base units of token0."""

    arm: Arm
    net: Fraction
    """Models not paid."""
    terms: PnlTerms
    """Of its positions."""
    idle_effect: Fraction
    """What the price did to tokens that lay in the wallet."""
    hourly: tuple[int, ...]
    """Worth at the end of every hour, the start first, less what models took by then."""
    spans: tuple[HeldSpan, ...]
    minutes: int
    minutes_in_range: int
    decisions: int
    refused: int
    """Decisions that the wallet could not carry out."""
    moves: tuple[Move, ...]
    """What was carried out, in order."""
    used: ModelUse

    @property
    def rebalances(self) -> int:
        return len(self.moves)

    @property
    def residual(self) -> Fraction:
        """What balances show and the terms do not explain."""
        return self.net - self.terms.explained_result - self.idle_effect


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a backtest begins and how often it decides."""

    start: Seconds
    end: Seconds
    every: Seconds

    @property
    def decisions(self) -> int:
        """How many there are; the start is not one of them."""
        return -(-(self.end - self.start) // self.every) - 1


async def run_arm(
    plan: ArmPlan, pool: BacktestPool, schedule: Schedule, gas: GasQuote, tell: Callable[[], None]
) -> ArmResult:
    """Play the record from the start of the schedule, at which the pool stands already; `tell` is called every hour."""
    first_balances, first_price = pool.balances, pool.state().sqrt_price_x96
    if plan.first is not None:
        pool.open_position(plan.first, _gas_of(CandidateKind.OPEN, gas))
    worths = [value_in_token0(first_balances, first_price)]
    paid = [ZERO]
    used = ModelUse()
    moves: list[Move] = []
    minutes = inside = decisions = refused = 0
    moment = schedule.start
    while moment < schedule.end:
        hour = Seconds(min(moment + HOUR, schedule.end))
        for minute in range(moment + 60, hour + 1, 60):
            pool.play_until(Seconds(minute))
            minutes += 1
            inside += pool.range is not None and pool.range.contains(pool.state().tick)
        moment = hour
        worths.append(value_in_token0(pool.worth(), pool.state().sqrt_price_x96))
        paid.append(Fraction(used.usd) * USD)
        tell()
        await sleep(0)  # whoever waits for Ctrl-C hears it
        if moment < schedule.end and (moment - schedule.start) % schedule.every == 0:
            decisions += 1
            act = await plan.decide(pool)
            used = used.plus(act.used)
            move = describe_move(act, pool.state())
            try:
                if carry_out(act, pool, gas):
                    moves.append(move)
            except Refused:
                refused += 1
    return ArmResult(
        arm=plan.arm,
        net=worths[-1] - worths[0],
        terms=attribute(pool.history()).in_token0 if pool.events else PnlTerms(),
        idle_effect=_idle_effect(pool, first_balances, first_price),
        hourly=tuple(round(worth - models) for worth, models in zip(worths, paid, strict=True)),
        spans=tuple(held_spans(pool.events, schedule.end)),
        minutes=minutes,
        minutes_in_range=inside,
        decisions=decisions,
        refused=refused,
        moves=tuple(moves),
        used=used,
    )


def carry_out(act: ArmAction, pool: BacktestPool, gas: GasQuote) -> bool:
    """Carry out an action. Returns whether anything was done; on `Refused` nothing was."""
    if act.close:
        if pool.range is None:
            return False
        pool.close_position(_gas_of(CandidateKind.CLOSE, gas))
        return True
    if act.range is None or act.range == pool.range:
        return False
    if pool.range is None:
        pool.open_position(act.range, _gas_of(CandidateKind.OPEN, gas))
    else:
        # Burnt and minted by two transactions, with a swap in the second, as the planner does it: tried before sent.
        for each in (pool.copy(), pool):
            each.close_position(_gas_of(CandidateKind.CLOSE, gas))
            each.open_position(act.range, _gas_of(CandidateKind.OPEN, gas))
    return True


def average_results(results: Sequence[ArmResult]) -> ArmResult:
    """The mean of several runs of one arm: each held its share of the liquidity."""
    count, first = len(results), results[0]
    terms = PnlTerms(
        **{
            term.name: sum((getattr(result.terms, term.name) for result in results), ZERO) / count
            for term in fields(PnlTerms)
            if getattr(first.terms, term.name) is not None
        }
    )
    return replace(
        first,
        net=sum((result.net for result in results), ZERO) / count,
        terms=terms,
        idle_effect=sum((result.idle_effect for result in results), ZERO) / count,
        hourly=tuple(round(Fraction(sum(worths), count)) for worths in zip(*(r.hourly for r in results), strict=True)),
        minutes=sum(result.minutes for result in results),
        minutes_in_range=sum(result.minutes_in_range for result in results),
        spans=tuple(replace(span, liquidity=span.liquidity // count) for result in results for span in result.spans),
    )


def held_spans(events: Sequence[PositionEvent | WalletSwap], end: Seconds) -> Iterator[HeldSpan]:
    """Of everything that a wallet did by `end`."""
    opened: PositionEvent | None = None
    for event in events:
        if isinstance(event, WalletSwap):
            continue
        if opened is not None:
            yield HeldSpan(opened.block.timestamp, event.block.timestamp, opened.range, opened.liquidity_after)
        opened = event if event.liquidity_after else None
    if opened is not None:
        yield HeldSpan(opened.block.timestamp, end, opened.range, opened.liquidity_after)


def _gas_of(kind: CandidateKind, gas: GasQuote) -> Wei:
    steps = steps_for(kind, None, 2 if kind is CandidateKind.OPEN else 0)
    return Wei(sum(MEASURED_GAS[step] for step in steps) * gas.price)


def value_in_token0(amounts: tuple[int, int], sqrt_price_x96: int) -> Fraction:
    """In base units of token0."""
    return amounts[0] + amounts[1] / price_of(sqrt_price_x96)


def _idle_effect(pool: BacktestPool, balances: tuple[int, int], sqrt_price_x96: int) -> Fraction:
    """What the price did to the wallet's own tokens between any two of its transactions."""
    held, native = [*balances], None if not pool.events else pool.history().native_side
    marks = [(sqrt_price_x96, (held[0], held[1]))]
    for event in pool.events:
        price = event.sqrt_price_before_x96 if isinstance(event, WalletSwap) else event.sqrt_price_x96
        held[0] -= event.paid0
        held[1] -= event.paid1
        if native is not None:
            held[native] -= event.gas if event.gas_paid is None else event.gas_paid
        marks.append((price, (held[0], held[1])))
    marks.append((pool.state().sqrt_price_x96, (held[0], held[1])))
    spans = ((kept, before, price) for (before, kept), (price, _) in pairwise(marks))
    return sum((value_in_token0(kept, price) - value_in_token0(kept, before) for kept, before, price in spans), ZERO)
