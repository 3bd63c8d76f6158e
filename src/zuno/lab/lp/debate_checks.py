"""Whether the LP desk's debate knows anything of the minutes after it, or hangs on the order of its candidates.

At moments of a recorded pool the desk argues about the position that resetting at the edge has come to. It argues again
in a pool whose record ends there, in one whose record goes on otherwise, or over the same candidates in another order.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Protocol, TypeAlias

from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.clock import iso
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds
from zuno.kernel.view import View
from zuno.lab.comparisons import measure_rate
from zuno.lab.lp.arms import BacktestPool
from zuno.lab.lp.backtest import Schedule
from zuno.lab.lp.desk_arms import act_on
from zuno.lab.lp.episodes import describe_act, walk_moments
from zuno.lab.lp.question import LpQuestion, ReadMinutes, fingerprint_minutes, plan_schedule, read_question
from zuno.lab.market_study import collect_results
from zuno.lab.model import RateView
from zuno.lab.workers import Progress, RunTasks
from zuno.lp.agents.strategist import ProposalInputs, Strategist
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import Debate, PlanReady
from zuno.lp.model.market import GasQuote
from zuno.lp.model.minutes import PoolMinute
from zuno.lp.rules.ranges import Move, Shape
from zuno.present.document import Section, Value, lines, section, table
from zuno.present.values import bad, count, good, quiet

WHOLE: Final = "whole"
CUT: Final = "cut"
SCRAMBLED: Final = "scrambled"
REORDERED: Final = "candidates reordered"
LISTED: Final = 20
"""Flips that are listed."""
Minutes: TypeAlias = tuple[PoolMinute, ...]


class ReplayedPool(BacktestPool, Protocol):
    """A recorded pool whose record can be exchanged for another."""

    minutes: Minutes


Argue: TypeAlias = Callable[[BacktestPool], Awaitable[PlanReady]]


@dataclass(frozen=True, slots=True)
class DebateMoment:
    """What was chosen, what differs with another future, and what was chosen of the candidates in another order."""

    at: int
    choice: str
    leaks: tuple[str, ...] = ()
    reordered: str | None = None


@dataclass(frozen=True, slots=True)
class PoolTask:
    question: LpQuestion
    schedule: Schedule
    moments: tuple[int, ...]


def cut_minutes(minutes: Minutes, at: Seconds) -> Minutes:
    """Minutes that had ended by then."""
    return minutes[: _count_over(minutes, at)]


def scramble_minutes(minutes: Minutes, other: Minutes, at: Seconds) -> Minutes:
    """Minutes that had ended by then, followed by those of `other`."""
    over = _count_over(minutes, at)
    return minutes[:over] + other[over:]


def change_minutes(minutes: Minutes) -> Minutes:
    """Minutes with a price 7 % higher, three times the volume, half the liquidity."""
    return tuple(
        replace(
            minute,
            open_tick=minute.open_tick + 677,
            close_tick=minute.close_tick + 677,
            lowest_tick=minute.lowest_tick + 677,
            highest_tick=minute.highest_tick + 677,
            in0=3 * minute.in0,
            in1=3 * minute.in1,
            liquidity=minute.liquidity // 2,
        )
        for minute in minutes
    )


def _count_over(minutes: Minutes, at: Seconds) -> int:
    return bisect_right(minutes, int(at), key=lambda minute: minute.at // 1000 + 60)


class _ReversedInputs(ProposalInputs):
    def moves(self, shapes: Sequence[Shape]) -> list[Move]:
        return super().moves(shapes)[::-1]


class ReversedStrategist(Strategist):
    """A Strategist that proposes its ranges in reverse order."""

    async def _build_inputs(self, debate: Debate) -> ProposalInputs:
        inputs = await super()._build_inputs(debate)
        return _ReversedInputs(**{field.name: getattr(inputs, field.name) for field in fields(inputs)})


async def compare_futures(
    worlds: Mapping[str, tuple[ReplayedPool, Argue]], minutes: Minutes, task: PoolTask, gas: GasQuote
) -> AsyncIterator[DebateMoment]:
    """`worlds`: the pool at the start of the schedule under each of the three names, and the desk that sees it."""
    other = change_minutes(minutes)

    def set_futures(at: Seconds) -> None:
        worlds[CUT][0].minutes = cut_minutes(minutes, at)
        worlds[SCRAMBLED][0].minutes = scramble_minutes(minutes, other, at)

    pools = [pool for pool, _ in worlds.values()]
    half_width = task.question.half_width
    async for at in walk_moments(pools, task.schedule, task.moments, half_width, gas, set_futures):
        ready = {name: await argue(pool) for name, (pool, argue) in worlds.items()}
        own = dict(fingerprint(ready[WHOLE]))
        leaks = [
            f"{name} {part}"
            for name in (CUT, SCRAMBLED)
            for part, digest_there in fingerprint(ready[name])
            if digest_there != own[part]
        ]
        yield DebateMoment(at, describe_choice(ready[WHOLE]), tuple(leaks))


async def compare_orders(
    pool: ReplayedPool, argue: Argue, argue_reordered: Argue, task: PoolTask, gas: GasQuote
) -> AsyncIterator[DebateMoment]:
    async for at in walk_moments([pool], task.schedule, task.moments, task.question.half_width, gas):
        own, other = await argue(pool), await argue_reordered(pool)
        yield DebateMoment(at, describe_choice(own), reordered=describe_choice(other))


def fingerprint(ready: PlanReady) -> Iterator[tuple[str, Digest]]:
    """Of what was read, of every candidate and its judgments, and of the decision."""
    yield "inputs", Digest(ready.debate.context)
    yield "debate", digest(canonical([part.model_dump(mode="json") for part in ready.debate.rounds]))
    yield "decision", digest(canonical(ready.model_dump(mode="json", exclude={"debate"})))


def describe_choice(ready: PlanReady) -> str:
    """Which range, and whether it is approved; not its number on the ballot."""
    chosen = ready.debate.rounds[-1].candidates[ready.decision.index]
    return f"{describe_act(act_on(chosen))}, {ready.decision.verdict.value}"


class PoolLeakView(View):
    at: str
    differs: tuple[str, ...]


class PoolCheckView(View):
    """The LP desk's debates over a recorded pool."""

    data: str
    edition: int
    since: str
    until: str
    asked: int
    moments: int

    def describe_record(self) -> str:
        return (
            f"{self.moments:,} of {self.asked:,} moments of {self.data}, {self.since} to {self.until}, edition "
            f"{self.edition} of the LP desk"
        )


class PoolLookaheadView(PoolCheckView):
    compared: int
    """Debates that were compared with one that cannot know the future."""
    leaks: int
    differences: tuple[PoolLeakView, ...]

    def list_leaks(self) -> list[Value]:
        compared = (
            f"{self.leaks} leaks of the LP desk: {self.compared:,} debates with later minutes cut off or scrambled; "
            f"{self.describe_record()}."
        )
        leaks = [bad(f"LEAK  {leak.at}: {', '.join(leak.differs)}") for leak in self.differences]
        return [bad(compared) if self.leaks else good(compared), *leaks]


class ChoiceFlipView(View):
    at: str
    choice: str
    changed: str


class PoolInvarianceView(PoolCheckView):
    change: str
    choices: RateView
    """How many flip."""
    ranges: RateView
    """The same of those that take a new range on either side: to stay or to close has one place on every ballot."""
    flips: tuple[ChoiceFlipView, ...]

    def describe(self) -> Section:
        rates = (*self.choices.to_cells(), *self.ranges.to_cells())
        return section(
            "Choices of the LP desk that flip",
            table(
                ("change", "moments", "choices flip", "95 %", "new range: flip", "95 % of it", "with a new range"),
                [(self.change, count(self.moments), *rates, count(self.ranges.total))],
                spare=("with a new range", "95 % of it"),
            ),
            lines(quiet(f"{self.describe_record()}.")),
            table(
                ("moment", "choice", "after the change"), [(flip.at, flip.choice, flip.changed) for flip in self.flips]
            )
            if self.flips
            else None,
        )


RunPoolTasks: TypeAlias = RunTasks[PoolTask, DebateMoment]


@dataclass(frozen=True, slots=True)
class DebateChecks:
    """The LP desk by rules at moments of a recorded pool."""

    read_minutes: ReadMinutes
    run_futures: RunPoolTasks
    run_orders: RunPoolTasks

    async def read(self, folder: str) -> Digest:
        """The fingerprint of the record; raises what is wrong with it before a long study begins."""
        return fingerprint_minutes(await asyncio.to_thread(self.read_minutes, folder))

    async def lookahead(
        self, folder: str, moments: int, workers: int, tell: Progress, stop: asyncio.Event
    ) -> tuple[PoolLookaheadView, bool]:
        """The view, and whether Ctrl-C came before the end."""
        results, asked, stopped = await self._study(self.run_futures, folder, moments, workers, tell, stop)
        return build_pool_lookahead(results, plain_text(folder, 200), asked), stopped

    async def invariance(
        self, folder: str, moments: int, workers: int, tell: Progress, stop: asyncio.Event
    ) -> tuple[PoolInvarianceView, bool]:
        results, asked, stopped = await self._study(self.run_orders, folder, moments, workers, tell, stop)
        return build_pool_invariance(results, plain_text(folder, 200), asked), stopped

    async def _study(
        self, run: RunPoolTasks, folder: str, moments: int, workers: int, tell: Progress, stop: asyncio.Event
    ) -> tuple[list[DebateMoment], int, bool]:
        recorded = await asyncio.to_thread(self.read_minutes, folder)
        question = read_question(folder, "debate", 10_000, 1, "5", "balanced", "0.1")
        schedule = plan_schedule(recorded, question.every_hours)
        wanted = choose_hours(schedule, moments)
        shares = [wanted[place::workers] for place in range(workers)]
        tasks = [PoolTask(question, schedule, share) for share in shares if share]
        results, stopped = await collect_results(run, tasks, workers, len(wanted), lambda moment: moment.at, tell, stop)
        return results, len(wanted), stopped


def choose_hours(schedule: Schedule, count: int) -> tuple[int, ...]:
    """`count` decisions of the schedule, evenly spaced; all of them where there are fewer."""
    every = range(schedule.start + schedule.every, schedule.end, schedule.every)
    count = min(count, len(every))
    return tuple(every[(2 * place + 1) * len(every) // (2 * count)] for place in range(count))


def build_pool_lookahead(moments: Sequence[DebateMoment], data: str, asked: int) -> PoolLookaheadView:
    leaky = [moment for moment in moments if moment.leaks]
    return PoolLookaheadView(
        **_describe_moments(moments, data, asked),
        compared=2 * len(moments),
        leaks=len(leaky),
        differences=tuple(PoolLeakView(at=_moment([moment]), differs=moment.leaks) for moment in leaky),
    )


def build_pool_invariance(moments: Sequence[DebateMoment], data: str, asked: int) -> PoolInvarianceView:
    ranged = [moment for moment in moments if "…" in f"{moment.choice}{moment.reordered}"]
    flipped = [moment for moment in moments if moment.reordered != moment.choice]
    return PoolInvarianceView(
        **_describe_moments(moments, data, asked),
        change=REORDERED,
        choices=measure_rate(len(flipped), len(moments)),
        ranges=measure_rate(sum(moment.reordered != moment.choice for moment in ranged), len(ranged)),
        flips=tuple(
            ChoiceFlipView(at=_moment([moment]), choice=moment.choice, changed=moment.reordered or "")
            for moment in flipped[:LISTED]
        ),
    )


def _describe_moments(moments: Sequence[DebateMoment], data: str, asked: int) -> dict[str, Any]:
    span = {"since": _moment(moments[:1]), "until": _moment(moments[-1:])}
    return {"data": data, "edition": EDITION, **span, "asked": asked, "moments": len(moments)}


def _moment(moments: Sequence[DebateMoment]) -> str:
    return iso(Millis(1000 * moments[0].at)) if moments else ""
