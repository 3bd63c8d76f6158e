"""Wire the LP desk's backtests: recorded minutes on our own pool, and the desk's agents at a table of their own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.adapters.chain.recorded.chain import RecordedChain
    from zuno.adapters.chain.recorded.world import RecordedWorld
    from zuno.lab.lp.arms import Act, ArmPlan, Decide
    from zuno.lab.lp.backtest import ArmResult
    from zuno.lab.lp.market import BacktestPool
    from zuno.lab.lp.service import ArmTask, HourPlayed, LpLab
    from zuno.lp.model.ballot import RiskProfile
    from zuno.lp.model.debate import Wish
    from zuno.lp.model.minutes import PoolMinutes

CODE: Final = "backtest"
PATIENCE: Final = 120.0
"""Seconds for a debate without models."""


def build_lp_lab() -> LpLab:
    from zuno.lab.lp.service import LpLab

    return LpLab(read_minutes, run_arms)


@lru_cache(maxsize=1)
def read_minutes(folder: str) -> PoolMinutes:
    from zuno.adapters.imports.pool_minutes import read_pool_minutes

    return read_pool_minutes(Path(folder).expanduser())


async def run_arms(
    tasks: Sequence[ArmTask], workers: int, hear: Callable[[ArmResult | HourPlayed], None], stop: asyncio.Event
) -> None:
    from zuno.adapters.worker_processes import run_in_processes

    await run_in_processes(run_task, tasks, workers, hear, stop)


async def run_task(task: ArmTask) -> AsyncIterator[ArmResult | HourPlayed]:
    """One arm, with a sign of life for every hour that was played."""
    from zuno.adapters.chain.recorded.chain import USDC_WETH, RecordedChain, fixed_gas
    from zuno.adapters.chain.recorded.world import RecordedWorld
    from zuno.lab.lp.backtest import run_arm
    from zuno.lab.lp.service import USD, HourPlayed

    question, recorded = task.question, read_minutes(task.question.folder)
    world = RecordedWorld(USDC_WETH, recorded, 0, 0)
    world.play_until(task.schedule.start)
    half = Fraction(question.capital * USD, 2)
    world.balances = (int(half), int(half * world.state().price))
    gas = fixed_gas(question.gas_gwei)
    with tempfile.TemporaryDirectory(prefix="zuno-backtest-") as name:
        plan = build_arm(task, world, RecordedChain(world, gas), Path(name))
        played: asyncio.Queue[None] = asyncio.Queue()
        running = asyncio.ensure_future(run_arm(plan, world, task.schedule, gas, lambda: played.put_nowait(None)))
        while not running.done() or not played.empty():
            if played.empty():
                await asyncio.sleep(0.05)
                continue
            played.get_nowait()
            yield HourPlayed(task.arm)
        yield running.result()


def build_arm(task: ArmTask, world: RecordedWorld, chain: RecordedChain, folder: Path) -> ArmPlan:
    from zuno.lab.lp.arms import WIDE, Arm, ArmPlan, centre_range, reset_at_edge, stay

    question, state = task.question, world.state()
    first = centre_range(state, question.half_width)
    match task.arm:
        case Arm.HOLD:
            return ArmPlan(task.arm, None, stay)
        case Arm.PASSIVE:
            return ArmPlan(task.arm, centre_range(state, WIDE), stay)
        case Arm.RESET:
            return ArmPlan(task.arm, first, reset_at_edge(question.half_width))
        case Arm.DEBATE:
            return ArmPlan(task.arm, first, hold_debates(chain, question.profile, folder))


def hold_debates(chain: RecordedChain, profile: RiskProfile, folder: Path) -> Decide:
    """The desk's four agents by rules; their plan is carried out as if its owner had approved it at once."""
    from zuno.adapters.clock.system import unix_millis
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.prices.gas import ChainGas, NativePrice
    from zuno.adapters.prices.pool_history import PoolHistory
    from zuno.adapters.store.memory import MemoryStore
    from zuno.journal.journal import ChainedJournal
    from zuno.lab.lp.arms import STAY, Act
    from zuno.lp.agents.observe import observe
    from zuno.lp.model.ballot import CandidateKind, PlanVerdict
    from zuno.lp.model.debate import Context, FlowCreateStart, FlowStart
    from zuno.lp.ports.market import Feeds
    from zuno.lp.service.recommend import new_request_id
    from zuno.wiring.minds import Models
    from zuno.wiring.table import build_table

    settings = Settings(home=folder, deterministic=True)
    models, key = Models(settings), KeyFile(folder / "keys")
    rounds = settings.max_debate_rounds
    prices = PoolHistory(chain, chain.world.pool_id)
    feeds = Feeds(prices, ChainGas(chain), NativePrice(prices))

    async def look(start: FlowStart | FlowCreateStart) -> Context:
        return await observe(start, chain, lambda *_: feeds)

    async def decide(pool: BacktestPool) -> Act:
        journal = ChainedJournal(MemoryStore(), key, code=lambda: CODE, now=unix_millis)
        request_id = new_request_id(chain.world.head.number.to_bytes(16, "big"))
        minds = models.minds(journal, request_id, models.registry())
        table = build_table(journal, key, request_id, rounds, look, minds, PATIENCE)
        shared: dict[str, Any] = {"chain": chain.info.name, "profile": profile, "max_rounds": rounds}
        start: FlowStart | FlowCreateStart
        if pool.range is None:
            start = FlowCreateStart(wish=_wish_for(chain.world), **shared)
        else:
            start = FlowStart(position_id=chain.world.position_id, **shared)
        ready = (await table.debate(start, lambda thought: None)).ready
        chosen = ready.debate.rounds[-1].candidates[ready.decision.index]
        if ready.decision.verdict is PlanVerdict.REJECT or chosen.kind is CandidateKind.HOLD:
            return STAY
        return Act(close=True) if chosen.kind is CandidateKind.CLOSE else Act(chosen.range)

    return decide


def _wish_for(world: RecordedWorld) -> Wish:
    """Everything in the wallet, in the recorded pool."""
    from decimal import Decimal

    from zuno.lp.model.debate import Capital, Wish

    tokens = (world.market.token0, world.market.token1)
    return Wish(
        capital=tuple(
            Capital(token=token.symbol, amount=Decimal(amount).scaleb(-token.decimals))
            for token, amount in zip(tokens, world.balances, strict=True)
            if amount
        ),
        pair=(tokens[0].symbol, tokens[1].symbol),
    )
