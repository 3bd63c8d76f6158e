"""The gate against the real contracts while the chain misbehaves: whatever happens, one plan is one position.

The gate sleeps between two looks at the chain; here every sleep is a line of a script that does something to the chain,
so that the story is the same on every machine.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_account import Account

from zuno.adapters.chain.devnet.keys import dev_key
from zuno.adapters.chain.devnet.story import WALLET_ROLE
from zuno.adapters.chain.rpc.chain import RpcChain
from zuno.adapters.chain.rpc.transport import Policy
from zuno.adapters.chain.world import DEVNET, WALLET
from zuno.core.planning import positions
from zuno.domain.errors import Refused, Unavailable
from zuno.domain.execution import PlanState, StepState
from zuno.domain.pool import LpPosition, Range
from zuno.domain.units import Tick
from zuno.execution.book import Book, open_book, say
from zuno.execution.drafting import look
from zuno.execution.gate import Gate
from zuno.execution.hands import Hands, Pace
from zuno.messages.execution import Action, Instruction, PlanInstructed
from zuno.ports.spending import Call, Sending
from zuno.wiring import House, open_zuno

EDGE = 1
Line = Callable[[], None]


def silently(line: str) -> None:
    """Nobody listens."""


@dataclass
class Node:
    """The running devnet, to be misused."""

    url: str

    def ask(self, method: str, *params: object) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            said = json.loads(answer.read())
        assert "error" not in said, said
        return said["result"]

    def automine(self, on: bool) -> None:
        self.ask("evm_setAutomine", on)

    def mine(self) -> None:
        self.ask("evm_mine")

    def pass_time(self, seconds: int) -> None:
        self.ask("evm_increaseTime", hex(seconds))
        self.mine()

    def waiting(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("zuno_mempool")
        return found

    def drop(self, tx: str) -> None:
        assert self.ask("zuno_dropTransaction", tx)

    def push_tick(self) -> None:
        """Somebody trades through the pools, far."""


class Script:
    """What happens at each sleep; when it is read to the end, blocks are mined so that nobody waits for ever."""

    def __init__(self, node: Node, *lines: Line) -> None:
        self._node = node
        self._lines = list(lines)
        self.slept = 0
        self.clock = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        assert self.slept < 60, "the gate waits for something that never comes"
        self.clock += seconds
        (self._lines.pop(0) if self._lines else self._node.mine)()
        await asyncio.sleep(0)

    def stopwatch(self) -> float:
        return self.clock

    def wait(self, seconds: float) -> Line:
        """A line in which nothing happens for long."""

        def line() -> None:
            self.clock += seconds

        return line


@pytest.fixture
def node(devnet_home: Path) -> Iterator[Node]:
    running = Node(json.loads((devnet_home / "devnet.json").read_text())["url"])
    shutil.rmtree(devnet_home / "chains", ignore_errors=True)
    before = running.ask("evm_snapshot")
    yield running
    running.automine(True)
    assert running.ask("evm_revert", before)


@pytest.fixture
async def house(devnet_home: Path) -> AsyncIterator[House]:
    opened = open_zuno(str(devnet_home))
    yield opened
    await opened.close()


@dataclass
class Desk:
    """A gate on the devnet, three confirmations deep, and the script its sleeps follow."""

    node: Node
    hands: Hands

    def gate(self, script: Script, **changes: Any) -> Gate:
        hands = replace(self.hands, sleep=script.sleep, stopwatch=script.stopwatch, **changes)
        return Gate(hands)

    async def position(self, token_id: int = EDGE) -> LpPosition:
        (found,) = (await self.hands.chain.positions([token_id])).positions
        return found

    async def approved(self, told: Instruction, plan_id: str) -> str:
        gate = Gate(self.hands)
        await say(
            self.hands.journal,
            Book(plan_id),
            PlanInstructed(plan_id=plan_id, plan_hash="ab" * 32, instruction=told),
        )
        drafted = await gate.draft(plan_id, "ab" * 32, told)
        await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
        return plan_id

    async def owned(self) -> tuple[int, ...]:
        return (await self.hands.chain.owned(self.hands.wallet)).ids

    async def one_step(self) -> Instruction:
        """A range that takes the edge position's tokens as they are."""
        position = await self.position()
        sight = await look(self.hands, position.pool.id, position.id)
        spacing, tick = position.pool.key.tick_spacing, position.pool.tick
        for width in range(4, 200):
            band = Range(Tick(position.range.lower - spacing), Tick((tick // spacing + width) * spacing))
            if positions.rebalance(sight.terms(self.hands, self.hands.limits.bounds), position, band).later is None:
                return self._rebalance(position, band)
        raise AssertionError("no range of one step")

    async def two_steps(self) -> Instruction:
        position = await self.position()
        spacing, tick = position.pool.key.tick_spacing, position.pool.tick
        middle = tick // spacing * spacing
        return self._rebalance(position, Range(Tick(middle - 60 * spacing), Tick(middle + 60 * spacing)))

    def _rebalance(self, position: LpPosition, band: Range) -> Instruction:
        return Instruction(
            action=Action.REBALANCE,
            chain="devnet",
            pool_id=position.pool.id,
            tick=position.pool.tick,
            position_id=position.id,
            range=band,
        )


@pytest.fixture
async def desk(node: Node, house: House, tmp_path: Path) -> AsyncIterator[Desk]:
    info = replace(DEVNET, confirmations=3)
    chain = RpcChain(info, (node.url,), tmp_path / "chain", WALLET, Policy(timeout=15))
    hands = replace(
        await house._hands("devnet"), chain=chain, writer=chain.writer(), pace=Pace(look=1, speed_up=30, patience=500)
    )
    yield Desk(node, hands)
    await chain.close()


_ids = iter(f"plan_{number:012x}" for number in range(0xA000, 0xB000))


@pytest.fixture
def plan_id(request: pytest.FixtureRequest) -> str:
    """A new one for each test: the home and its journal are shared."""
    return next(_ids)


def yes(*shown: object) -> bool:
    return True


async def concluded(desk: Desk, plan_id: str, before: tuple[int, ...], told: Instruction) -> Book:
    """The plan is confirmed, its one new position lies where it was asked to, and the old one is gone."""
    book = await open_book(desk.hands.journal, plan_id)
    assert book.state is PlanState.CONFIRMED, book.over
    assert book.over is not None
    assert book.over.problems == ()
    after = await desk.owned()
    (new,) = set(after) - set(before)
    assert new == book.over.new_position_id
    assert set(before) - set(after) == {told.position_id}
    assert (await desk.position(new)).range == told.range
    return book


# -- waiting


async def test_a_transaction_that_was_evicted_is_given_back_as_the_same_bytes(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    seen: list[str] = []

    def evict() -> None:
        (waiting,) = node.waiting()
        seen.append(waiting["hash"])
        node.drop(waiting["hash"])

    def look_again() -> None:
        (waiting,) = node.waiting()
        seen.append(waiting["hash"])

    await desk.gate(Script(node, evict, look_again)).apply(plan_id, yes, silently)
    book = await concluded(desk, plan_id, before, told)
    assert len(seen) == 2
    assert set(seen) == {book.steps[0].newest.hash}
    assert len(book.steps[0].signed) == 1


async def test_a_reorganisation_takes_a_step_back_to_sent_and_the_same_bytes_win(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    states: list[StepState] = []

    async def state() -> StepState:
        return (await open_book(desk.hands.journal, plan_id)).steps[0].state

    def tell(line: str) -> None:
        if "reorganised" in line:
            states.append(StepState.SENT)

    def reorganise() -> None:
        (mined,) = [node.ask("eth_getBlockByNumber", "latest", False)["transactions"]]
        node.automine(False)
        node.ask("zuno_reorg", "0x1", {"drop": mined})

    await desk.gate(Script(node, reorganise, lambda: None)).apply(plan_id, yes, tell)
    book = await concluded(desk, plan_id, before, told)
    assert states == [StepState.SENT]
    assert len(book.steps[0].signed) == 1
    assert await state() is StepState.FINAL


async def test_a_step_that_waits_too_long_is_sped_up_with_the_same_number(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    script = Script(node)
    script._lines = [script.wait(31), lambda: None]
    await desk.gate(script).apply(plan_id, yes, silently)
    book = await concluded(desk, plan_id, before, told)
    first, second = book.steps[0].signed
    assert first.nonce == second.nonce
    assert second.max_fee >= first.max_fee * 110 // 100
    assert second.tip >= first.tip * 110 // 100
    assert book.steps[0].mined is not None
    assert book.steps[0].mined.hash == second.hash


async def test_the_speed_up_stops_at_the_approved_bound(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    script = Script(node)
    script._lines = [script.wait(31) for _ in range(15)]
    heard: list[str] = []
    await desk.gate(script).apply(plan_id, yes, heard.append)
    book = await concluded(desk, plan_id, before, told)
    assert book.draft is not None
    fees = [one.max_fee for one in book.steps[0].signed]
    assert len(fees) > 3
    assert max(fees) <= book.draft.gas.max_fee
    assert any("would pass the bound" in line for line in heard)


async def test_patience_ends_and_the_next_apply_goes_on(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    script = Script(node, *[lambda: None] * 10)
    pace = Pace(look=1, speed_up=99, patience=5)
    with pytest.raises(Unavailable, match="still on its way"):
        await desk.gate(script, pace=pace).apply(plan_id, yes, silently)
    assert (await open_book(desk.hands.journal, plan_id)).state is PlanState.APPLYING
    node.automine(True)
    await desk.gate(Script(node)).apply(plan_id, yes, silently)
    book = await concluded(desk, plan_id, before, told)
    assert len(book.steps[0].signed) == 1


# -- somebody else's transaction


async def test_a_foreign_transaction_at_our_number_supersedes_ours_and_the_step_is_done_under_another(
    desk: Desk, plan_id: str
) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)

    def overtake() -> None:
        (waiting,) = node.waiting()
        signed = Account.sign_transaction(
            {
                "chainId": DEVNET.id,
                "nonce": int(waiting["nonce"], 16),
                "to": "0x" + "11" * 20,
                "value": 0,
                "gas": 30_000,
                "maxFeePerGas": 10**12,
                "maxPriorityFeePerGas": 10**11,
            },
            dev_key(WALLET_ROLE).to_bytes(),
        )
        node.ask("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex())
        node.mine()

    heard: list[str] = []
    await desk.gate(Script(node, overtake)).apply(plan_id, yes, heard.append)
    book = await concluded(desk, plan_id, before, told)
    assert any("superseded" in line for line in heard)
    assert len(book.steps[0].signed) == 1, "bytes under the old number are no longer anybody's"


# -- the node's word


class Deaf:
    """A node that takes the bytes and never says so."""

    def __init__(self, writer: Any, fails: int, *, delivers: bool) -> None:
        self._writer = writer
        self._fails = fails
        self._delivers = delivers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def send(self, raw: bytes) -> Sending:
        self._fails -= 1
        if self._fails < 0 or self._delivers:
            said: Sending = await self._writer.send(raw)
            if self._fails < 0:
                return said
        raise Unavailable("the node did not answer")


@pytest.mark.parametrize("delivers", [True, False], ids=["taken", "lost"])
async def test_an_answer_that_never_came_is_no_reason_to_do_it_twice(desk: Desk, plan_id: str, delivers: bool) -> None:
    told, before = await desk.one_step(), await desk.owned()
    await desk.approved(told, plan_id)
    writer: Any = Deaf(desk.hands.writer, 1, delivers=delivers)
    with pytest.raises(Unavailable, match="did not answer"):
        await desk.gate(Script(desk.node), writer=writer).apply(plan_id, yes, silently)
    assert (await open_book(desk.hands.journal, plan_id)).steps[0].state is StepState.SIGNED
    await desk.gate(Script(desk.node)).apply(plan_id, yes, silently)
    book = await concluded(desk, plan_id, before, told)
    assert len(book.steps[0].signed) == 1


async def test_a_journal_that_cannot_be_written_sends_nothing(desk: Desk, plan_id: str) -> None:
    """The disk is full when the signed bytes are to be stored: they are never sent."""

    class Full:
        def __init__(self, journal: Any) -> None:
            self._journal = journal

        def __getattr__(self, name: str) -> Any:
            return getattr(self._journal, name)

        async def append(self, *, kind: str, **entry: Any) -> Any:
            if kind == "step_signed":
                raise Unavailable("journal.db did not answer (database or disk is full).")
            return await self._journal.append(kind=kind, **entry)

    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    journal: Any = Full(desk.hands.journal)
    with pytest.raises(Unavailable, match="full"):
        await desk.gate(Script(node), journal=journal).apply(plan_id, yes, silently)
    assert node.waiting() == []
    node.automine(True)
    await desk.gate(Script(node)).apply(plan_id, yes, silently)
    await concluded(desk, plan_id, before, told)


# -- calling off


async def test_cancel_overtakes_what_is_on_its_way(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    with pytest.raises(Unavailable):
        await desk.gate(Script(node, *[lambda: None] * 10), pace=Pace(look=1, patience=3)).apply(plan_id, yes, silently)
    book = await desk.gate(Script(node)).cancel(plan_id, silently)
    assert book.state is PlanState.CANCELLED
    assert book.steps[0].state is StepState.SUPERSEDED
    assert await desk.owned() == before
    node.automine(True)
    with pytest.raises(Refused, match="cancelled already"):
        await desk.gate(Script(node)).apply(plan_id, yes, silently)


async def test_cancel_that_comes_too_late_says_what_was_done(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    with pytest.raises(Unavailable):
        await desk.gate(Script(node, *[lambda: None] * 10), pace=Pace(look=1, patience=3)).apply(plan_id, yes, silently)
    node.mine()
    book = await desk.gate(Script(node)).cancel(plan_id, silently)
    assert book.state is PlanState.CONFIRMED
    await concluded(desk, plan_id, before, told)


async def test_a_deadline_that_passes_in_the_mempool_frees_the_number(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)

    def stuck() -> None:
        """Somebody else's blocks go by, without ours, until it is too late."""
        (waiting,) = node.waiting()
        node.drop(waiting["hash"])
        node.pass_time(1000)

    with pytest.raises(Refused, match="deadline passed"):
        await desk.gate(Script(node, stuck)).apply(plan_id, yes, silently)
    book = await open_book(desk.hands.journal, plan_id)
    assert book.state is PlanState.FAILED
    assert await desk.owned() == before


async def test_a_revert_ends_the_plan_and_nothing_moved(desk: Desk, plan_id: str) -> None:
    """The step runs out of gas on the chain."""

    class Stingy:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._writer, name)

        async def estimate(self, wallet: Any, call: Call) -> int:
            return 150_000

    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    held = await desk.position()
    await desk.approved(told, plan_id)
    writer: Any = Stingy(desk.hands.writer)
    with pytest.raises(Refused, match=r"ended as failed: burn and mint: it reverted in block \d+"):
        await desk.gate(Script(node), writer=writer).apply(plan_id, yes, silently)
    book = await open_book(desk.hands.journal, plan_id)
    assert (book.state, book.steps[0].state) == (PlanState.FAILED, StepState.REVERTED)
    assert await desk.owned() == before
    assert (await desk.position()).liquidity == held.liquidity
    with pytest.raises(Refused, match="failed already"):
        await desk.gate(Script(node)).apply(plan_id, yes, silently)
