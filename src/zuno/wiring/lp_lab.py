"""Wire the LP desk's backtests: recorded minutes on our own pool, and the desk's agents in this process."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from zuno.adapters.chain.recorded.world import USDC_WETH, RecordedChain, RecordedWorld, fixed_gas
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.imports.pool_events import read_pool_record
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.prices.feeds import ChainGas, NativePrice, PoolHistory
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.worker_processes import TaskRunner
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.errors import Refused
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis, Seconds
from zuno.lab.lp import debate_checks, desk_arms
from zuno.lab.lp.ablation import EpisodesTask, LpAblation
from zuno.lab.lp.arms import (
    RANDOM_DRAWS,
    STAY,
    WIDE,
    Arm,
    ArmAction,
    ArmPlan,
    BacktestPool,
    Decide,
    ModelUse,
    centre_range,
    move_at_random,
    reset_at_edge,
    stay,
    stay_while_it_pays,
)
from zuno.lab.lp.backtest import ArmResult, average_results, run_arm
from zuno.lab.lp.cover import PoolPath, measure_record, measure_until
from zuno.lab.lp.episodes import EpisodeRules, EpisodeView, run_episode, walk_moments
from zuno.lab.lp.fast import USD, to_columns
from zuno.lab.lp.question import LpQuestion
from zuno.lab.lp.ranges import play_ranges
from zuno.lab.lp.scores import ScoredRecord
from zuno.lab.lp.service import ArmTask, LpLab, path_of
from zuno.lab.lp.sweep import LpSweep
from zuno.lab.replies import ModelMeter, keep_replies
from zuno.lab.reports import LabReports
from zuno.llm.ask import ModelContext
from zuno.lp.agents.observe import Observer
from zuno.lp.model.ballot import PlanVerdict
from zuno.lp.model.debate import Capital, Context, FlowCreateStart, FlowStart, PlanReady, PositionRequest, Role
from zuno.lp.model.market import HOUR, GasQuote
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.model.tape import PoolDays, PoolRecord, PoolTape
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.fee_cover import GRIDS
from zuno.lp.service.recommend import new_request_id
from zuno.wiring.lab_models import FRESH_REPLIES, REPLIES, LabModels, follow, name_models
from zuno.wiring.mesh import Seat, build_local_debate

CODE: Final = "backtest"
PATIENCE: Final = 120.0
"""Seconds for a debate without models."""


def build_lp_lab(home: Path, reports: LabReports, run: TaskRunner) -> LpLab:
    name = partial(name_models, home, "lp")
    sweep = LpSweep(read_minutes, partial(run, play_ranges), reports, USDC_WETH.fee)
    ablation = LpAblation(read_minutes, partial(run, partial(run_moments, str(home))), reports, name)
    play = partial(run, partial(run_task, str(home)))
    return LpLab(read_record, play, reports, USDC_WETH.fee, USDC_WETH.tick_spacing, ablation, sweep, name)


@lru_cache(maxsize=1)
def read_record(folder: str) -> PoolRecord:
    return read_pool_record(Path(folder).expanduser())


@lru_cache(maxsize=1)
def read_minutes(folder: str) -> PoolMinutes:
    """Of a tape: the minutes in which it traded."""
    record = read_record(folder)
    if isinstance(record, PoolDays):
        raise Refused(f"{plain_text(folder, 200)} is a pool by day: `zuno lab lp` reads it, nothing else does.")
    return record.to_minutes() if isinstance(record, PoolTape) else record


@lru_cache(maxsize=1)
def read_path(folder: str) -> PoolPath:
    record = read_record(folder)
    return path_of(record if isinstance(record, PoolTape) else read_minutes(folder), USDC_WETH.fee)


async def run_task(home: str, task: ArmTask) -> AsyncIterator[ArmResult | None]:
    """Run one arm; yields None for every hour played."""
    draws = RANDOM_DRAWS if task.arm is Arm.RANDOM else 1
    results: list[ArmResult] = []
    for draw in range(draws):
        async for result in _play(home, task, draw):
            if result is not None:
                results.append(result)
            elif draw == 0:
                yield None
    yield results[0] if draws == 1 else average_results(results)


async def _play(home: str, task: ArmTask, draw: int) -> AsyncIterator[ArmResult | None]:
    world = open_world(task.question, task.schedule.start)
    gas = gas_of(task.question)
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as name:
        desk = LabDesk(RecordedChain(world, gas), task.question, home, Path(name))
        plan = build_arm(task, world, desk, draw)

        async def play(tell: Callable[[ArmResult | None], None]) -> None:
            tell(await run_arm(plan, world, task.schedule, gas, lambda: tell(None)))

        try:
            async with aclosing(follow(play)) as heard:
                async for message in heard:
                    yield message
        finally:
            await desk.close()


def open_world(question: LpQuestion, start: int) -> RecordedWorld:
    """The recorded pool at the first decision, and a wallet with half of the capital in each token."""
    world = warm_up(question.folder, start).copy()
    _fund_wallet(world, question.capital)
    return world


def _fund_wallet(world: RecordedWorld, capital: int) -> None:
    half = Fraction(capital * USD, 2)
    world.balances = (int(half), int(half * world.state().price))


@lru_cache(maxsize=1)
def warm_up(folder: str, start: int) -> RecordedWorld:
    """Cached, because all arms of a process start from it."""
    world = RecordedWorld(USDC_WETH, read_minutes(folder), 0, 0)
    world.play_until(Seconds(start))
    return world


def gas_of(question: LpQuestion) -> GasQuote:
    return fixed_gas(question.gas_gwei)


def build_arm(task: ArmTask, world: RecordedWorld, desk: LabDesk, draw: int) -> ArmPlan:
    question, state = task.question, world.state()
    first = centre_range(state, question.half_width)
    match task.arm:
        case Arm.HOLD:
            return ArmPlan(task.arm, None, stay)
        case Arm.PASSIVE:
            return ArmPlan(task.arm, centre_range(state, WIDE), stay)
        case Arm.RESET:
            return ArmPlan(task.arm, first, reset_at_edge(question.half_width))
        case Arm.COVER:
            return ArmPlan(task.arm, first, decide_by_cover(question))
        case Arm.RANDOM:
            return ArmPlan(task.arm, first, move_at_random(task.moves, task.schedule.decisions, draw))
        case _:
            return ArmPlan(task.arm, first, desk.decider(task.arm))


def decide_by_cover(question: LpQuestion) -> Decide:
    path = read_path(question.folder)
    return stay_while_it_pays(question.half_width, lambda at: measure_until(path, at))


async def run_moments(home: str, task: EpisodesTask) -> AsyncIterator[EpisodeView]:
    """The episodes of one task, on one path through the record."""
    base = task.question.base
    world, gas = open_world(base, task.schedule.start), gas_of(base)
    minutes = await asyncio.to_thread(lambda: measure_record(read_path(base.folder)).minutes) or GRIDS[-1]
    record = ScoredRecord(to_columns(read_minutes(base.folder)), minutes, USDC_WETH.fee)
    rules = EpisodeRules(base.half_width, Seconds(task.question.horizon_hours * HOUR), gas, record)
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as name:
        desk = LabDesk(RecordedChain(world, gas), base, home, Path(name))
        try:
            deciders = {Arm.COVER: decide_by_cover(base), **desk.ablation_deciders()}
            async for _ in walk_moments([world], task.schedule, frozenset(task.moments), base.half_width, gas):
                yield await run_episode(world, deciders, rules)
        finally:
            await desk.close()


async def argue_in_futures(task: debate_checks.PoolTask) -> AsyncIterator[debate_checks.DebateMoment]:
    minutes, start = read_minutes(task.question.folder).minutes, Seconds(task.schedule.start)
    gas = gas_of(task.question)
    records = {
        debate_checks.WHOLE: minutes,
        debate_checks.CUT: debate_checks.cut_minutes(minutes, start),
        debate_checks.SCRAMBLED: debate_checks.scramble_minutes(minutes, debate_checks.change_minutes(minutes), start),
    }
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as name:
        worlds = {}
        for future, record in records.items():
            world = replay_record(task.question, record, start)
            desk = LabDesk(RecordedChain(world, gas), task.question, name, Path(name) / future)
            worlds[future] = (world, desk.argue)
        async for moment in debate_checks.compare_futures(worlds, minutes, task, gas):
            yield moment


async def argue_in_orders(task: debate_checks.PoolTask) -> AsyncIterator[debate_checks.DebateMoment]:
    world, gas = open_world(task.question, task.schedule.start), gas_of(task.question)
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as name:
        desk = LabDesk(RecordedChain(world, gas), task.question, name, Path(name))
        reordered = partial(desk.argue, seats={Role.STRATEGIST: debate_checks.ReversedStrategist})
        async for moment in debate_checks.compare_orders(world, desk.argue, reordered, task, gas):
            yield moment


def replay_record(question: LpQuestion, minutes: debate_checks.Minutes, start: Seconds) -> RecordedWorld:
    """A pool with these minutes alone, played to the first decision."""
    record = replace(read_minutes(question.folder), minutes=minutes)
    world = RecordedWorld(USDC_WETH, record, 0, 0)
    world.play_until(start)
    _fund_wallet(world, question.capital)
    return world


class LabDesk:
    """The desk's agents over a recorded pool, by rules or with models; their decisions are carried out at once."""

    def __init__(self, chain: RecordedChain, question: LpQuestion, home: str, folder: Path) -> None:
        """`home`: whose models are asked where the question allows it. `folder`: for temporary keys."""
        self._chain, self._profile = chain, question.profile
        self._models, self._key = LabModels(home if question.models else None, folder), KeyFile(folder / "keys")
        self._rounds = self._models.settings.max_debate_rounds
        self._debated = 0
        """Tokens of the last debate."""
        prices = PoolHistory(chain, chain.world.pool_id)
        self._feeds = Feeds(prices, ChainGas(chain), NativePrice(prices, chain.info.native))

    async def close(self) -> None:
        await self._models.close()

    def ablation_deciders(self) -> dict[str, Decide]:
        """A decider for every arm that asks the desk; those that need a model only where there is one."""
        arms = [Arm.SCORE, Arm.NO_CRITIC, Arm.PLACEBO, Arm.DEBATE]
        if self._models.can_answer("strategist"):
            arms += [Arm.SINGLE, Arm.VOTE]
        if self._models.can_answer("strategist", FRESH_REPLIES):
            arms.append(Arm.AA)
        return {arm: self.decider(arm) for arm in arms}

    def decider(self, arm: str) -> Decide:
        async def decide_by_single_agent(pool: BacktestPool) -> ArmAction:
            context = await self._look(self._start(pool))
            if arm == Arm.SCORE:
                return desk_arms.choose_best_score(context)
            meter = self._open_meter()
            model_context, _ = self._open_model_context(REPLIES, "zuno.lab.lp", meter)
            act = await (
                desk_arms.choose_by_single_agent(context, model_context)
                if arm == Arm.SINGLE
                else desk_arms.choose_by_vote(context, model_context, self._debated)
            )
            return replace(act, used=replace(act.used, unanswered=meter.unanswered))

        if arm in (Arm.SCORE, Arm.SINGLE, Arm.VOTE):
            return decide_by_single_agent
        if arm == Arm.AA:
            return partial(self._debate, None, book=FRESH_REPLIES)
        critics: dict[str, Seat] = {Arm.NO_CRITIC: desk_arms.AbsentCritic, Arm.PLACEBO: desk_arms.PlaceboCritic}
        return partial(self._debate, critics.get(arm))

    async def _debate(self, critic: Seat | None, pool: BacktestPool, book: str = REPLIES) -> ArmAction:
        meter = self._open_meter()
        ready = await self.argue(pool, book, {} if critic is None else {Role.CRITIC: critic}, meter)
        chosen = ready.debate.rounds[-1].candidates[ready.decision.index]
        used = ModelUse(
            sum(voice.tokens for voice in ready.debate.spoke),
            sum((voice.usd or Decimal(0) for voice in ready.debate.spoke), Decimal(0)),
            frozenset(voice.model for voice in ready.debate.spoke if voice.model),
            meter.unanswered,
        )
        if critic is None and book == REPLIES:
            self._debated = used.tokens
        rejected = ready.decision.verdict is PlanVerdict.REJECT
        return replace(STAY if rejected else desk_arms.act_on(chosen), used=used)

    async def argue(
        self,
        pool: BacktestPool,
        book: str = REPLIES,
        seats: Mapping[Role, Seat] | None = None,
        meter: ModelMeter | None = None,
    ) -> PlanReady:
        model_context, journal = self._open_model_context(book, "zuno.lp.agents", meter or self._open_meter())
        request_id, rounds = self._request_id(), self._rounds
        table = build_local_debate(journal, self._key, request_id, rounds, self._look, model_context, PATIENCE, seats)
        return (await table.debate(self._start(pool), lambda thought: None)).ready

    def _open_meter(self) -> ModelMeter:
        return ModelMeter(lambda: Millis(1000 * self._chain.world.head.timestamp))

    def _open_model_context(self, book: str, prompts: str, meter: ModelMeter) -> tuple[ModelContext, Journal]:
        journal = ChainedJournal(MemoryStore(), self._key, code=lambda: CODE, now=unix_millis)
        registry = self._models.registry(book)
        model_context = self._models.models.model_context(journal, self._request_id(), registry, desk=prompts)
        if self._models.asks:
            model_context = keep_replies(model_context, self._models.books[book], meter)
        return model_context, journal

    def _request_id(self) -> str:
        return new_request_id(self._chain.world.head.number.to_bytes(16, "big"))

    async def _look(self, start: FlowStart | FlowCreateStart) -> Context:
        return await Observer(self._chain, lambda *_: self._feeds).observe(start)

    def _start(self, pool: BacktestPool) -> FlowStart | FlowCreateStart:
        shared: dict[str, Any] = {"chain": self._chain.info.name, "profile": self._profile, "max_rounds": self._rounds}
        if pool.range is None:
            return FlowCreateStart(wish=_build_position_request(self._chain.world), **shared)
        return FlowStart(position_id=self._chain.world.position_id, **shared)


def _build_position_request(world: RecordedWorld) -> PositionRequest:
    tokens = (world.market.token0, world.market.token1)
    return PositionRequest(
        capital=tuple(
            Capital(token=token.symbol, amount=Decimal(amount).scaleb(-token.decimals))
            for token, amount in zip(tokens, world.balances, strict=True)
            if amount
        ),
        pair=(tokens[0].symbol, tokens[1].symbol),
    )
