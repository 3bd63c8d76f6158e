"""A gate on the simulated chain, a journal in memory, and a node that can be told to keep transactions waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from zuno.adapters.chain.dev_signer import DevSigner
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.chain.world import OTHERS, SIM, WALLET, pool_specs
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.prices.feeds import ChainGas, NativePrice, SeededFeed
from zuno.adapters.store.memory import MemoryStore
from zuno.amm.identity import pool_id
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.journal.journal import ChainedJournal
from zuno.kernel.units import Address, HexId, Millis, Seconds, Tick
from zuno.lp.execute.context import ExecutionContext, Timeouts
from zuno.lp.execute.draft import SimulatedDraft
from zuno.lp.execute.gate import Gate
from zuno.lp.execute.plan_state import PlanProgress, append_event, load_progress
from zuno.lp.model.chains import ETHER
from zuno.lp.model.market import Pair
from zuno.lp.model.plan_events import Action, Draft, Instruction, PlanInstructed
from zuno.lp.plan.calldata import key_tuple
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.spending import NonceStatus, SendResult
from zuno_devnet.keys import dev_key

EDGE, INSIDE = 1, 2
WETH_POOL, _, NATIVE_POOL = (HexId(pool_id(*key_tuple(spec.key))) for spec in pool_specs())


@dataclass
class Pond:
    """The simulated chain's node, in front of which transactions may be kept waiting, lost or outbid."""

    writer: SimWriter
    chain: SimChain
    holding: bool = False
    waiting: list[tuple[HexId, bytes]] = field(default_factory=list)
    answers: list[SendResult | Exception] = field(default_factory=list)
    """What the node says to the next bytes, in place of taking them."""
    taken: list[bytes] = field(default_factory=list)
    """Every set of bytes a node was given, in order."""
    later: int = 0
    """Seconds by which the head's time is ahead of the simulated one: sim's time passes with transactions alone."""
    settled: int | None = None
    """Transactions that count as final, where that is fewer than are mined."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)

    async def send(self, raw: bytes) -> SendResult:
        self.taken.append(raw)
        if self.answers:
            said = self.answers.pop(0)
            if isinstance(said, Exception):
                raise said
            return said
        if not self.holding:
            return await self.writer.send(raw)
        tx = HexId("0x" + _hash(raw).hex())
        if tx in [one for one, _ in self.waiting]:
            return SendResult.KNOWN
        self.waiting.append((tx, raw))
        return SendResult.ACCEPTED

    async def mine(self, at: int = -1) -> None:
        """The one that pays best is mined; whatever else waited under its number is gone."""
        _, raw = self.waiting[at]
        self.waiting.clear()
        await self.writer.send(raw)

    async def trace(self, wallet: Address, nonce: int, hashes: Sequence[HexId]) -> NonceStatus:
        seen = await self.writer.trace(wallet, nonce, hashes)
        head = replace(seen.head, timestamp=Seconds(seen.head.timestamp + self.later))
        here = tuple(tx for tx, _ in self.waiting if tx in hashes)
        settled = seen.settled_nonce if self.settled is None else self.settled
        return replace(seen, head=head, waiting=here, settled_nonce=settled)


def _hash(raw: bytes) -> bytes:
    from eth_hash.auto import keccak

    return bytes(keccak(raw))


class Bench:
    """One wallet on the simulated chain, and plans of every kind for it."""

    wallet, others, edge, inside, info = WALLET, OTHERS, EDGE, INSIDE, SIM
    weth_pool, native_pool = WETH_POOL, NATIVE_POOL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chain = SimChain(SimFile(folder))
        self.pond = Pond(SimWriter(self.chain), self.chain)
        self.key = KeyFile(folder / "node.key")
        self.store = MemoryStore()
        self.journal = self._journal()
        self.clock = 0.0
        self.asleep: list[Callable[[], Any]] = []
        """What happens while the gate sleeps, one line each time."""
        self.heard: list[str] = []
        self._ids = count(1)
        self.hands = self._hands()
        self.key.ensure()

    def _journal(self) -> ChainedJournal:
        moments = count(1_700_000_000_000)
        return ChainedJournal(self.store, self.key, code=lambda: "0+test", now=lambda: Millis(next(moments)))

    def _hands(self) -> ExecutionContext:
        prices = SeededFeed(Pair("ETH", "USDC"), self.chain.reference_closes)
        writer: Any = self.pond
        return ExecutionContext(
            chain=self.chain,
            writer=writer,
            signer=DevSigner(SIM.id),
            feeds_of=lambda pool: Feeds(prices, ChainGas(self.chain), NativePrice(prices, ETHER)),
            journal=self.journal,
            key=self.key,
            lock=_turn,
            sleep=self._sleep,
            stopwatch=lambda: self.clock,
            now=lambda: Millis(1_700_000_000_000),
            timeouts=Timeouts(poll_interval=1, speed_up=30, patience=20),
        )

    async def _sleep(self, seconds: float) -> None:
        self.clock += seconds
        if self.asleep:
            done = self.asleep.pop(0)()
            if asyncio.iscoroutine(done):
                await done

    def gate(self, **changes: Any) -> Gate:
        return Gate(replace(self.hands, **changes))

    def wait(self, seconds: float) -> None:
        self.clock += seconds

    # -- plans

    async def position(self, token_id: int = EDGE) -> LpPosition:
        (found,) = (await self.chain.positions([token_id])).positions
        return found

    async def owned(self) -> set[int]:
        return set((await self.chain.owned(WALLET)).ids)

    def around(self, pool: PoolState, reach: int) -> Range:
        spacing = pool.key.tick_spacing
        middle = pool.tick // spacing * spacing
        return Range(Tick(middle - reach * spacing), Tick(middle + reach * spacing))

    async def told(self, action: Action, token_id: int = EDGE, **other: Any) -> Instruction:
        position = await self.position(token_id)
        about = None if action is Action.CREATE else token_id
        return Instruction(
            action=action,
            chain="sim",
            pool_id=position.pool.id,
            tick=position.pool.tick,
            position_id=about,
            **other,
        )

    async def two_steps(self, token_id: int = EDGE) -> Instruction:
        position = await self.position(token_id)
        return await self.told(Action.REBALANCE, token_id, range=self.around(position.pool, 60))

    async def creation(self, token_id: int = EDGE, **other: Any) -> Instruction:
        pool = (await self.position(token_id)).pool
        capital = {"capital0": 10**18, **other}
        return await self.told(Action.CREATE, token_id, range=self.around(pool, 50), **capital)

    async def every_kind(self) -> dict[str, Instruction]:
        """One instruction of each action, in a pool of tokens and in one of ether."""
        made: dict[str, Instruction] = {}
        for name, token_id in (("tokens", EDGE), ("ether", INSIDE)):
            made[f"collect {name}"] = await self.told(Action.COLLECT, token_id)
            made[f"close {name}"] = await self.told(Action.CLOSE, token_id)
            made[f"remove {name}"] = await self.told(Action.REMOVE, token_id, share=Fraction(1, 3))
            made[f"add {name}"] = await self.told(Action.ADD, token_id, capital0=10**17, capital1=300 * 10**6)
            made[f"rebalance {name}"] = await self.two_steps(token_id)
            made[f"create {name}"] = await self.creation(token_id, capital1=10**9)
            made[f"swap and create {name}"] = await self.creation(token_id)
        made["wrap and create"] = await self.creation(EDGE, capital1=10**9, brings_ether=True)
        return made

    async def drafted(self, told: Instruction) -> SimulatedDraft:
        plan_id = f"plan_{next(self._ids):012x}"
        event = PlanInstructed(plan_id=plan_id, plan_hash="ab" * 32, instruction=told)
        await append_event(self.journal, PlanProgress(plan_id), event)
        return await self.gate().draft(plan_id, "ab" * 32, told)

    async def approved(self, told: Instruction) -> str:
        drafted = await self.drafted(told)
        gate = self.gate()
        await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
        return drafted.draft.plan_id

    async def apply(self, plan_id: str, **changes: Any) -> PlanProgress:
        return await self.gate(**changes).apply(plan_id, _yes, self.heard.append)

    async def cancel(self, plan_id: str, **changes: Any) -> PlanProgress:
        return await self.gate(**changes).cancel(plan_id, self.heard.append)

    async def book(self, plan_id: str) -> PlanProgress:
        return await load_progress(self.journal, plan_id)

    # -- somebody else with the same key

    async def spend_number(self, nonce: int) -> None:
        """A transaction from elsewhere takes the wallet's number."""
        fields = {
            "type": 2,
            "chainId": SIM.id,
            "nonce": nonce,
            "to": bytes.fromhex(OTHERS[2:]),
            "value": 1,
            "gas": 30_000,
            "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 10**9,
        }
        self.pond.waiting.clear()
        await self.pond.writer.send(
            bytes(Account.sign_transaction(fields, dev_key("wallet").to_bytes()).raw_transaction)
        )


def _yes(*shown: object) -> bool:
    return True


@contextmanager
def _turn(name: str) -> Iterator[None]:
    yield


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def two_halves(tmp_path_factory: pytest.TempPathFactory) -> Draft:
    """A rebalance with a swap: one step now, and a second half."""

    async def drafted() -> Draft:
        bench = Bench(tmp_path_factory.mktemp("sim"))
        return (await bench.drafted(await bench.two_steps())).draft

    return asyncio.run(drafted())


@pytest.fixture(scope="session")
def new_bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Bench]:
    """A bench of its own for every example of a property."""
    return lambda: Bench(tmp_path_factory.mktemp("sim"))
