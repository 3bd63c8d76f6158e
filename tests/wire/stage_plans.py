"""Plans for the wallet of a stage of real contracts, through a gate that reads and writes by one node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from zuno.adapters.chain.dev_signer import DevSigner
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.prices.feeds import ChainGas, NativePrice, PoolHistory
from zuno.adapters.store.memory import MemoryStore
from zuno.amm.identity import pool_id
from zuno.amm.model import LpPosition, PoolKey, Range
from zuno.journal.journal import ChainedJournal
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Millis, Tick
from zuno.lp.execute.context import ExecutionContext, Timeouts
from zuno.lp.execute.draft import SimulatedDraft
from zuno.lp.execute.gate import Gate
from zuno.lp.execute.plan_state import PlanProgress, append_event, load_progress
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, Instruction, PlanInstructed
from zuno.lp.plan import calldata
from zuno.lp.ports.market import Feeds

RANGE = Range(Tick(-201_000), Tick(-199_980))


def id_of(key: PoolKey) -> HexId:
    return HexId(pool_id(*calldata.key_tuple(key)))


class Plans:
    """A gate that reads and writes through one node, and plans for the stage's wallet."""

    def __init__(self, stage: Any, chain: Any, folder: Path) -> None:
        self.stage = stage
        self.store = MemoryStore()
        self.key = KeyFile(folder / "node.key")
        self.key.ensure()
        moments = count(1_700_000_000_000)
        self.journal = ChainedJournal(self.store, self.key, code=lambda: "0", now=lambda: Millis(next(moments)))
        self.clock = 0.0
        self._ids = count(1)
        self.hands = self.through(chain)

    def through(self, chain: Any) -> ExecutionContext:
        def feeds(pool: HexId) -> Feeds:
            own = PoolHistory(chain, pool)
            return Feeds(own, ChainGas(chain), NativePrice(own, chain.info.native))

        self.hands = ExecutionContext(
            chain=chain,
            writer=chain.writer(),
            signer=DevSigner(self.stage.info.id),
            feeds_of=feeds,
            journal=self.journal,
            key=self.key,
            lock=_turn,
            sleep=self._sleep,
            stopwatch=lambda: self.clock,
            now=lambda: Millis(1_700_000_000_000),
            timeouts=Timeouts(poll_interval=1, speed_up=30, patience=10),
        )
        return self.hands

    async def _sleep(self, seconds: float) -> None:
        self.clock += seconds

    def gate(self, **changes: Any) -> Gate:
        return Gate(replace(self.hands, **changes))

    async def position(self, token_id: int) -> LpPosition:
        (found,) = (await self.hands.chain.positions([token_id])).positions
        return found

    async def told(self, action: Action, token_id: int, **other: Any) -> Instruction:
        pool = (await self.position(token_id)).pool
        return Instruction(
            action=action, chain=self.stage.info.name, pool_id=pool.id, tick=pool.tick, position_id=token_id, **other
        )

    async def creation(self, key: PoolKey, capital0: int, capital1: int, band: Range = RANGE) -> Instruction:
        pool = await self.hands.chain.pool(id_of(key))
        return Instruction(
            action=Action.CREATE,
            chain=self.stage.info.name,
            pool_id=pool.id,
            tick=pool.tick,
            range=band,
            capital0=capital0,
            capital1=capital1,
        )

    async def draft(self, told: Instruction, **changes: Any) -> SimulatedDraft:
        plan_id = f"plan_{next(self._ids):012x}"
        event = PlanInstructed(plan_id=plan_id, plan_hash="ab" * 32, instruction=told)
        await append_event(self.journal, PlanProgress(plan_id), event)
        return await self.gate(**changes).draft(plan_id, "ab" * 32, told)

    async def approved(self, told: Instruction, **changes: Any) -> str:
        drafted = await self.draft(told, **changes)
        gate = self.gate(**changes)
        await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
        return drafted.draft.plan_id

    async def apply(self, plan_id: str, **changes: Any) -> PlanProgress:
        return await self.gate(**changes).apply(plan_id, _yes, _silently)

    async def done(self, told: Instruction, **changes: Any) -> PlanProgress:
        """Approved, applied, and all as it was asked."""
        book = await self.apply(await self.approved(told, **changes), **changes)
        assert book.state is PlanState.CONFIRMED
        assert book.over is not None
        assert book.over.problems == ()
        return book

    async def book(self, plan_id: str) -> PlanProgress:
        return await load_progress(self.journal, plan_id)

    def left_behind(self, key: PoolKey) -> list[int]:
        """What lies in the contracts that pass tokens on, where anybody can take it."""
        at = self.stage.info.deployment
        return [
            _held(self.stage, currency, holder)
            for currency in (key.currency0, key.currency1)
            for holder in (at.position_manager, at.universal_router)
        ]


def _held(stage: Any, currency: Address, holder: Address) -> int:
    if currency == NATIVE:
        return int(stage.chain.balance(bytes.fromhex(holder[2:])))
    return int(stage.ask(currency, calldata.call("balanceOf(address)", holder)))


def _yes(*shown: object) -> bool:
    return True


def _silently(line: str) -> None:
    """Nobody listens."""


@contextmanager
def _turn(name: str) -> Iterator[None]:
    yield
