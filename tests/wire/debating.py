"""A table for four peers, without a house around it: a frozen context, scripted models, a journal in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.wire.fakes.clock import FixedClock
from tests.wire.fakes.model import Script, ScriptedModel
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.model.daily_spend import DailySpendInMemory
from zuno.adapters.model.registry import ModelTable
from zuno.adapters.prices.feeds import ChainGas, NativePrice, SeededFeed, SeededPath
from zuno.adapters.store.memory import MemoryStore
from zuno.adapters.transport.inbox import InProcess
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Entry
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import HexId, Millis, Seconds
from zuno.llm.ask import Breakers, ModelContext
from zuno.llm.budget import Limits, RunBudget
from zuno.llm.port import Attempt, RoleModels
from zuno.llm.prompts import Prompts
from zuno.lp.agents.arbiter import Arbiter
from zuno.lp.agents.critic import Critic
from zuno.lp.agents.observe import Observer
from zuno.lp.agents.scout import Scout
from zuno.lp.agents.strategist import Strategist
from zuno.lp.mesh.envelope import Envelope, from_bytes
from zuno.lp.model.ballot import Exposure, RiskProfile
from zuno.lp.model.chains import ETHER
from zuno.lp.model.debate import (
    Capital,
    Context,
    FlowCreateStart,
    FlowStart,
    Kind,
    PlanReady,
    PositionRequest,
    Role,
    Thought,
)
from zuno.lp.model.market import Pair
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import Feeds
from zuno.lp.service.plan_record import build_plan, decided_hash
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import LocalDebateRunner
from zuno.lp.service.recorded_request import load_context

ROLES = ("scout", "strategist", "critic", "arbiter")
NOW = 1_700_000_000_000
REQUEST = "req_0123456789abcdef"


def feeds_of_sim(chain: SimChain) -> Callable[[Chain, HexId], Feeds]:
    pair = Pair("ETH", "USDC")
    prices, path = SeededFeed(pair, chain.reference_closes), SeededPath(pair, chain.reference_path)
    return lambda opened, pool_id: Feeds(prices, ChainGas(opened), NativePrice(prices, ETHER), path)


async def observed(home: Path, position: int = 1) -> Context:
    """The simulated world as the Scout would freeze it."""
    chain = SimChain(SimFile(home))
    start = FlowStart(chain="sim", position_id=position, profile=RiskProfile.BALANCED, max_rounds=2)
    return await Observer(chain, feeds_of_sim(chain)).observe(start)


async def surveyed(home: Path, *capital: tuple[str, str], exposure: Exposure | None = None) -> Context:
    """The simulated pools as the Scout would freeze them for an owner who brings this."""
    chain = SimChain(SimFile(home))
    wish = PositionRequest(
        capital=tuple(Capital(token=token, amount=Decimal(amount)) for token, amount in capital), exposure=exposure
    )
    start = FlowCreateStart(chain="sim", wish=wish, profile=RiskProfile.BALANCED, max_rounds=2)
    return await Observer(chain, feeds_of_sim(chain)).observe(start)


def shaken(context: Context, times: Fraction) -> Context:
    """The same world with returns so many times as large; what its pools' fees pay of that stays the same."""
    scenes = []
    for scene in context.scenes:
        returns = tuple(round(value * times) for value in scene.returns_nano)
        cover = scene.cover
        if cover is not None and cover.variance is not None:
            cover = cover.model_copy(update={"variance": cover.variance * float(times) ** 2})
        scenes.append(scene.model_copy(update={"returns_nano": returns, "cover": cover}))
    return context.model_copy(update={"scenes": tuple(scenes)})


class Overheard(InProcess):
    """The in-process transport, with an ear: it keeps what was sent, and may change or lose it on the way."""

    def __init__(self, change: Callable[[Envelope, bytes], bytes | None]) -> None:
        super().__init__()
        self._change = change
        self.sent: list[Envelope] = []

    async def send(self, to: Role, data: bytes) -> None:
        envelope = from_bytes(data)
        self.sent.append(envelope)
        changed = self._change(envelope, data)
        if changed is not None:
            await super().send(to, changed)


def as_it_is(envelope: Envelope, data: bytes) -> bytes | None:
    return data


def no_thoughts(envelope: Envelope, data: bytes) -> bytes | None:
    return None if envelope.kind is Kind.AGENT_THOUGHT else data


@dataclass
class Table:
    """One debate at a time, as often as wanted."""

    folder: Path
    context: Context
    scripts: Mapping[str, Script] = field(default_factory=dict)
    """A role's model; a role without one is deterministic."""
    change: Callable[[Envelope, bytes], bytes | None] = as_it_is
    timeout: float = 0.2
    patience: float = 600.0
    request: str = REQUEST
    started: int = NOW
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    models: dict[str, ScriptedModel] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = KeyFile(self.folder / "node.key")
        self.key.ensure()
        self.store = MemoryStore()
        ticks = itertools.count(self.started)
        self.now: Callable[[], Millis] = lambda: Millis(next(ticks))
        self.journal = ChainedJournal(self.store, self.key, code=lambda: "test", now=self.now)
        self.transport = Overheard(self.change)
        self.models = {role: ScriptedModel(script, f"model of {role}") for role, script in self.scripts.items()}

    async def debate(
        self, profile: RiskProfile = RiskProfile.BALANCED, max_rounds: int = 2, wait: float = 60.0
    ) -> PlanReady:
        """The end of the flow; `TimeoutError` when there is none, which no flow may do."""
        start: FlowStart | FlowCreateStart
        if self.context.wish is None:
            start = FlowStart(chain="sim", position_id=1, profile=profile, max_rounds=max_rounds)
        else:
            start = FlowCreateStart(chain="sim", wish=self.context.wish, profile=profile, max_rounds=max_rounds)
        end = await asyncio.wait_for(self.room(max_rounds).debate(start, self.thoughts.append), wait)
        return end.ready

    async def plan(self, profile: RiskProfile = RiskProfile.BALANCED, max_rounds: int = 2) -> PlanView:
        ready = await self.debate(profile, max_rounds)
        return build_plan(self.request, await load_context(self.journal, ready.debate.context), ready)[0]

    def room(self, max_rounds: int) -> LocalDebateRunner:
        model_context = self.model_context()
        peers = (
            Scout(self._observe, self.journal.put_bundle, model_context),
            Strategist(self._recall, model_context),
            Critic(self._recall, model_context),
            Arbiter(self._recall, model_context),
        )
        return LocalDebateRunner(
            peers, self.transport, self.journal, self.key, self.now, self.request, max_rounds, self.patience
        )

    def model_context(self) -> ModelContext:
        clock = FixedClock(Seconds(self.started // 1000))
        registry = {role: RoleModels((model,)) for role, model in self.models.items()}
        return ModelContext(
            registry=ModelTable(RoleModels((), "no key for a model"), registry),
            prompts=Prompts("zuno.lp.agents"),
            budget=RunBudget(Limits(), DailySpendInMemory(), clock),
            breakers=Breakers(),
            record=self._record,
            clock=clock,
            stopwatch=lambda: 0.0,
            sleep=self.sleep,
            timeout=self.timeout,
        )

    async def said(self) -> list[Entry]:
        return [entry async for entry in self.journal.entries(request_id=self.request)]

    async def kinds(self) -> list[str]:
        """What was said in the debate, in order, thoughts and model calls left out."""
        return [entry.kind for entry in await self.said() if entry.kind != "model_attempt"]

    async def _observe(self, start: FlowStart | FlowCreateStart) -> Context:
        context = self.context.model_copy(update={"profile": start.profile, "max_rounds": start.max_rounds})
        CONTEXTS[digest(canonical(context))] = context
        return context

    async def _recall(self, digest: str) -> Context:
        return await load_context(self.journal, digest)

    async def _record(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        await self.journal.append(
            kind="model_attempt", author=Author(attempt.role), payload=attempt, request_id=self.request
        )


# -- what a sound model would say


def scout_says(summary: str = "The pair trades quietly around its recent price.") -> str:
    return json.dumps({"summary": summary})


def shape(width: int, offset: int = 0, rationale: str = "Wide enough to stay in range for a while.") -> dict[str, Any]:
    return {"widthPercent": width, "centerOffsetTicks": offset, "rationale": rationale}


def strategist_says(*shapes: dict[str, Any]) -> str:
    return json.dumps({"shapes": list(shapes or (shape(120), shape(90)))})


def opening(pool: int, width: int, offset: int = 0, rationale: str = "Wide enough to last.") -> dict[str, Any]:
    return {**shape(width, offset, rationale), "poolIndex": pool, "exposureBias": "neutral"}


def judgment(index: int, verdict: str, reason: str = "I see it this way.") -> dict[str, Any]:
    return {"index": index, "verdict": verdict, "reason": reason, "suggestion": None}


def critic_says(*judgments: dict[str, Any]) -> str:
    return json.dumps({"judgments": list(judgments)})


def arbiter_says(
    index: int,
    verdict: str = "approve_with_caution",
    reasoning: str = "In round 0 nothing better was left on the table, so this one it is.",
    against: str | None = "It leaves the owner more room.",
) -> str:
    return json.dumps({"chosenIndex": index, "verdict": verdict, "againstAxis": against, "reasoning": reasoning})


CONTEXTS: dict[str, Context] = {}
"""What was argued about at any table, by hash."""


def outcome_of(ready: PlanReady) -> str:
    return decided_hash(CONTEXTS[ready.debate.context], ready)
