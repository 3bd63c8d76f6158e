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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_account import Account
from eth_utils.address import to_checksum_address

from zuno.adapters.chain.devnet.world_builder import OTHERS_ROLE, WALLET_ROLE
from zuno.adapters.chain.rpc.chain import RpcChain
from zuno.adapters.chain.rpc.transport import RpcPolicy
from zuno.adapters.chain.world import DEVNET, SWAP_ROUTER, USDC, WALLET, WETH
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.doors.cli.main import run
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Tick
from zuno.lp.execute.context import ExecutionContext, SpendingLimits, Timeouts
from zuno.lp.execute.draft import read_onchain_state
from zuno.lp.execute.gate import Gate
from zuno.lp.execute.plan_state import PlanProgress, append_event, load_progress
from zuno.lp.execute.verify_outcome import gas_spent
from zuno.lp.model.plan import Bounds, PlanState, StepState
from zuno.lp.model.plan_events import Action, Instruction, PlanInstructed
from zuno.lp.plan import calldata, positions
from zuno.lp.plan.sizing import fix_capital
from zuno.lp.ports.spending import Call, SendResult
from zuno.lp.service.positions import LpDesk
from zuno.wiring import Application, open_zuno
from zuno_devnet.keys import dev_address, dev_key

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
async def house(devnet_home: Path) -> AsyncIterator[Application]:
    opened = open_zuno(str(devnet_home))
    yield opened
    await opened.close()


@dataclass
class Desk:
    """A gate on the devnet, three confirmations deep, and the script its sleeps follow."""

    node: Node
    hands: ExecutionContext

    def gate(self, script: Script, **changes: Any) -> Gate:
        hands = replace(self.hands, sleep=script.sleep, stopwatch=script.stopwatch, **changes)
        return Gate(hands)

    async def position(self, token_id: int = EDGE) -> LpPosition:
        (found,) = (await self.hands.chain.positions([token_id])).positions
        return found

    async def approved(self, told: Instruction, plan_id: str) -> str:
        gate = Gate(self.hands)
        await append_event(
            self.hands.journal,
            PlanProgress(plan_id),
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
        sight = await read_onchain_state(self.hands, position.pool.id, position.id)
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
async def desk(node: Node, house: Application, tmp_path: Path) -> AsyncIterator[Desk]:
    info = replace(DEVNET, confirmations=3)
    chain = RpcChain(info, (node.url,), tmp_path / "chain", WALLET, RpcPolicy(timeout=15))
    hands = replace(
        await house._execution_context("devnet"),
        chain=chain,
        writer=chain.writer(),
        timeouts=Timeouts(poll_interval=1, speed_up=30, patience=500),
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


async def concluded(desk: Desk, plan_id: str, before: tuple[int, ...], told: Instruction) -> PlanProgress:
    """The plan is confirmed, its one new position lies where it was asked to, and the old one is gone."""
    book = await load_progress(desk.hands.journal, plan_id)
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


@pytest.mark.soak
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
        return (await load_progress(desk.hands.journal, plan_id)).steps[0].state

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


@pytest.mark.soak
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


@pytest.mark.soak
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
    assert any("bound" in line for line in heard)


@pytest.mark.soak
async def test_patience_ends_and_the_next_apply_goes_on(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    script = Script(node, *[lambda: None] * 10)
    pace = Timeouts(poll_interval=1, speed_up=99, patience=5)
    with pytest.raises(Unavailable, match=plan_id):
        await desk.gate(script, timeouts=pace).apply(plan_id, yes, silently)
    assert (await load_progress(desk.hands.journal, plan_id)).state is PlanState.APPLYING
    node.automine(True)
    await desk.gate(Script(node)).apply(plan_id, yes, silently)
    book = await concluded(desk, plan_id, before, told)
    assert len(book.steps[0].signed) == 1


# -- somebody else's transaction


@pytest.mark.soak
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

    async def send(self, raw: bytes) -> SendResult:
        self._fails -= 1
        if self._fails < 0 or self._delivers:
            said: SendResult = await self._writer.send(raw)
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
    assert (await load_progress(desk.hands.journal, plan_id)).steps[0].state is StepState.SIGNED
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
        await desk.gate(Script(node, *[lambda: None] * 10), timeouts=Timeouts(poll_interval=1, patience=3)).apply(
            plan_id, yes, silently
        )
    book = await desk.gate(Script(node)).cancel(plan_id, silently)
    assert book.state is PlanState.CANCELLED
    assert book.steps[0].state is StepState.SUPERSEDED
    assert await desk.owned() == before
    node.automine(True)
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.CANCELLED}"):
        await desk.gate(Script(node)).apply(plan_id, yes, silently)


@pytest.mark.soak
async def test_cancel_that_comes_too_late_says_what_was_done(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)
    with pytest.raises(Unavailable):
        await desk.gate(Script(node, *[lambda: None] * 10), timeouts=Timeouts(poll_interval=1, patience=3)).apply(
            plan_id, yes, silently
        )
    node.mine()
    book = await desk.gate(Script(node)).cancel(plan_id, silently)
    assert book.state is PlanState.CONFIRMED
    await concluded(desk, plan_id, before, told)


@pytest.mark.soak
async def test_a_deadline_that_passes_in_the_mempool_frees_the_number(desk: Desk, plan_id: str) -> None:
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    node.automine(False)

    def stuck() -> None:
        """Somebody else's blocks go by, without ours, until it is too late."""
        (waiting,) = node.waiting()
        node.drop(waiting["hash"])
        node.pass_time(1000)

    with pytest.raises(Refused, match="deadline"):
        await desk.gate(Script(node, stuck)).apply(plan_id, yes, silently)
    book = await load_progress(desk.hands.journal, plan_id)
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
    with pytest.raises(Refused, match=f"{plan_id}.*{PlanState.FAILED}"):
        await desk.gate(Script(node), writer=writer).apply(plan_id, yes, silently)
    book = await load_progress(desk.hands.journal, plan_id)
    assert (book.state, book.steps[0].state) == (PlanState.FAILED, StepState.REVERTED)
    assert await desk.owned() == before
    assert (await desk.position()).liquidity == held.liquidity
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.FAILED}"):
        await desk.gate(Script(node)).apply(plan_id, yes, silently)


# -- two halves


def moved(devnet_home: Path, percent: str) -> None:
    """Somebody trades every pool to another price."""
    with ThreadPoolExecutor(1) as thread:
        code = thread.submit(
            run, ("devnet", "move", "--percent", percent, "--home", str(devnet_home)), open_zuno
        ).result()
    assert code == 0


async def halves(desk: Desk, plan_id: str, meanwhile: Line) -> tuple[Instruction, tuple[int, ...]]:
    """Apply a two-step rebalance; `meanwhile` happens when the first half is final and the second is not begun."""
    told, before = await desk.two_steps(), await desk.owned()
    await desk.approved(told, plan_id)

    class Between:
        """Everything of the writer; the first look at the wallet after the burn is when something happens."""

        def __init__(self, writer: Any) -> None:
            self._writer = writer
            self.burned = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._writer, name)

        async def wallet_state(self, *asked: Any) -> Any:
            book = await load_progress(desk.hands.journal, plan_id)
            if book.state is PlanState.PARTIAL and not self.burned:
                self.burned = True
                meanwhile()
            return await self._writer.wallet_state(*asked)

    writer: Any = Between(desk.hands.writer)
    await desk.gate(Script(desk.node), writer=writer).apply(plan_id, yes, silently)
    return told, before


async def test_a_rebalance_with_a_swap_is_two_halves_and_one_position(desk: Desk, plan_id: str) -> None:
    held = await desk.hands.writer.wallet_state(WALLET, (USDC.address, WETH.address), ())
    told, before = await halves(desk, plan_id, lambda: None)
    book = await concluded(desk, plan_id, before, told)
    assert [step.step.kind.value for step in book.steps] == [
        "burn",
        "permit2_approve",
        "permit2_approve",
        "swap_and_mint",
    ]
    after = await desk.hands.writer.wallet_state(
        WALLET, (USDC.address, WETH.address), (DEVNET.deployment.universal_router,)
    )
    assert all(after.holdings[each] >= held.holdings[each] for each in held.holdings), "only the proceeds were spent"
    for token in (USDC.address, WETH.address):
        grant = after.allowances.grant(token, DEVNET.deployment.universal_router)
        assert grant.amount == 0, "what was allowed was used up to the last unit"


async def test_a_price_that_leaves_the_bounds_between_the_halves_leaves_the_tokens_in_the_wallet(
    desk: Desk, plan_id: str, devnet_home: Path
) -> None:
    held = await desk.hands.writer.wallet_state(WALLET, (USDC.address, WETH.address), ())
    position = await desk.position()
    with pytest.raises(Refused, match=r"\b50\b") as refused:
        await halves(desk, plan_id, lambda: moved(devnet_home, "-2"))
    assert "zuno lp recommend create" in str(refused.value)
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.state is PlanState.PARTIAL
    assert book.over is None
    after = await desk.hands.writer.wallet_state(WALLET, (USDC.address, WETH.address), ())
    assert after.holdings[USDC.address] == held.holdings[USDC.address] + position.amount1 + position.fees1
    assert after.holdings[WETH.address] == held.holdings[WETH.address] + position.amount0 + position.fees0
    # The price comes back while the approval lasts: the second half is done after all, once.
    moved(devnet_home, "2.040816")
    before = (*await desk.owned(), EDGE)
    await desk.gate(Script(desk.node)).apply(plan_id, yes, silently)
    await concluded(desk, plan_id, before, await instruction(desk, plan_id))


async def instruction(desk: Desk, plan_id: str) -> Instruction:
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.instructed is not None
    return book.instructed.instruction


@pytest.mark.soak
async def test_after_the_approval_s_end_the_second_half_is_not_signed_any_more(desk: Desk, plan_id: str) -> None:
    with pytest.raises(Refused, match=r"expired.*partial") as refused:
        await halves(desk, plan_id, lambda: desk.node.pass_time(1000))
    assert "zuno lp recommend create" in str(refused.value)
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.over is not None
    assert (book.over.state, "approval" in book.over.why) == (PlanState.PARTIAL, True)
    assert EDGE not in await desk.owned()
    with pytest.raises(Refused, match=f"{plan_id} is {PlanState.PARTIAL}"):
        await desk.gate(Script(desk.node)).cancel(plan_id, silently)


@pytest.mark.soak
async def test_tokens_that_left_the_wallet_between_the_halves_are_not_missed(desk: Desk, plan_id: str) -> None:
    """Half of what the burn paid is spent elsewhere: the new position is smaller, and nothing else is touched."""
    position = await desk.position()
    gone = (position.amount0 + position.fees0) // 2

    def spend() -> None:
        call = calldata.call("transfer(address,uint256)", "0x" + "22" * 20, gone)
        signed = Account.sign_transaction(
            {
                "chainId": DEVNET.id,
                "nonce": int(desk.node.ask("eth_getTransactionCount", WALLET, "latest"), 16),
                "to": to_checksum_address(WETH.address),
                "value": 0,
                "data": call,
                "gas": 100_000,
                "maxFeePerGas": 10**11,
                "maxPriorityFeePerGas": 10**9,
            },
            dev_key(WALLET_ROLE).to_bytes(),
        )
        desk.node.ask("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex())

    held = await desk.hands.writer.wallet_state(WALLET, (WETH.address,), ())
    await halves(desk, plan_id, spend)
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.over is not None
    assert book.over.state is PlanState.CONFIRMED
    assert "meanwhile" in book.over.problems[0], "the owner is told that it does not add up"
    after = await desk.hands.writer.wallet_state(WALLET, (WETH.address,), ())
    assert after.holdings[WETH.address] >= held.holdings[WETH.address], "the wallet's own tokens were not drawn on"


# -- plans that need allowances


async def test_what_was_allowed_is_taken_back_when_the_plan_fails(desk: Desk, plan_id: str) -> None:
    """The mint of a create runs out of gas after its approvals went through."""

    class Stingy:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._writer, name)

        async def estimate(self, wallet: Any, call: Call) -> int:
            units: int = await self._writer.estimate(wallet, call)
            return 160_000 if units > 200_000 else units

    told = await creation(desk)
    await desk.approved(told, plan_id)
    before, router = await desk.owned(), DEVNET.deployment.universal_router
    writer: Any = Stingy(desk.hands.writer)
    with pytest.raises(Refused, match=f"{plan_id}.*{PlanState.FAILED}"):
        await desk.gate(Script(desk.node), writer=writer).apply(plan_id, yes, silently)
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.state is PlanState.FAILED
    assert [step.part.value for step in book.steps if step.state is StepState.FINAL][-1] == "revoking"
    wallet_state = await desk.hands.writer.wallet_state(WALLET, (USDC.address, WETH.address), (router,))
    assert all(wallet_state.allowances.grant(token, router).amount == 0 for token in (USDC.address, WETH.address))
    assert wallet_state.allowances.to_permit2[WETH.address] > 0, "the owner's own standing allowance was not touched"
    assert await desk.owned() == before


async def creation(desk: Desk) -> Instruction:
    """Two WETH into a range around the price: a part is swapped."""
    pool = (await desk.position()).pool
    middle = pool.tick // pool.key.tick_spacing * pool.key.tick_spacing
    return Instruction(
        action=Action.CREATE,
        chain="devnet",
        pool_id=pool.id,
        tick=pool.tick,
        range=Range(Tick(middle - 500), Tick(middle + 500)),
        capital0=2 * 10**18,
    )


@pytest.mark.soak
async def test_a_create_swaps_and_mints_and_says_which_position_is_new(desk: Desk, plan_id: str) -> None:
    told, before = await creation(desk), await desk.owned()
    await desk.approved(told, plan_id)
    await desk.gate(Script(desk.node)).apply(plan_id, yes, silently)
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.state is PlanState.CONFIRMED
    assert book.over is not None
    assert set(await desk.owned()) - set(before) == {book.over.new_position_id}
    assert book.over.problems == ()
    assert (await desk.position(book.over.new_position_id or 0)).range == told.range


# -- another plan of the same wallet


async def test_one_plan_at_a_time_per_wallet(desk: Desk, plan_id: str) -> None:
    """A plan whose transaction still waits holds the wallet's next number."""
    told, before, node = await desk.one_step(), await desk.owned(), desk.node
    await desk.approved(told, plan_id)
    other = await desk.approved(await creation(desk), next(_ids))
    node.automine(False)
    with pytest.raises(Unavailable):
        await desk.gate(Script(node, *[lambda: None] * 10), timeouts=Timeouts(poll_interval=1, patience=3)).apply(
            plan_id, yes, silently
        )
    with pytest.raises(Refused, match=f"{plan_id}.*transaction"):
        await desk.gate(Script(node)).apply(other, yes, silently)
    node.automine(True)
    node.mine()
    node.mine()
    node.mine()
    await desk.gate(Script(node)).apply(other, yes, silently)
    settled = await load_progress(desk.hands.journal, plan_id)
    assert settled.steps[0].state is StepState.FINAL, "held against the chain before the other one began"
    await desk.gate(Script(node)).apply(plan_id, yes, silently)
    assert set(before) - set(await desk.owned()) == {EDGE}


# -- what a plan may take


async def holdings(desk: Desk) -> dict[str, int]:
    wallet_state = await desk.hands.writer.wallet_state(WALLET, (WETH.address, USDC.address), ())
    return {currency: wallet_state.holdings[currency] for currency in (WETH.address, USDC.address)}


def adding(position: LpPosition, capital0: int, capital1: int, counterpart: Literal[0, 1]) -> Instruction:
    return Instruction(
        action=Action.ADD,
        chain="devnet",
        pool_id=position.pool.id,
        tick=position.pool.tick,
        position_id=position.id,
        capital0=capital0,
        capital1=capital1,
        counterpart=counterpart,
    )


def uncapped(desk: Desk) -> Desk:
    """Caps in dollars that hold nothing back."""
    return replace(desk, hands=replace(desk.hands, limits=SpendingLimits(Bounds(), Decimal(10**12), Decimal(10**12))))


async def test_below_its_range_a_position_takes_nothing_for_dollars_that_were_named(
    desk: Desk, plan_id: str, devnet_home: Path
) -> None:
    moved(devnet_home, "-2")
    position, before, rich = await desk.position(), await holdings(desk), uncapped(desk)
    assert position.pool.tick < position.range.lower
    with pytest.raises(Refused, match="WETH"):
        fix_capital(position, {1: 100 * 10**6}, (before[WETH.address], before[USDC.address]), 50)
    told = adding(position, before[WETH.address], 100 * 10**6, counterpart=0)
    with pytest.raises(Refused, match="WETH"):
        await rich.approved(told, plan_id)
    assert await holdings(desk) == before


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("percent", ["-0.3", "0.3", "-0.45"])
async def test_an_addition_takes_what_was_shown_at_most_wherever_the_price_went(
    desk: Desk, plan_id: str, devnet_home: Path, percent: str
) -> None:
    position, before, rich = await desk.position(), await holdings(desk), uncapped(desk)
    capital = fix_capital(position, {1: 2_000 * 10**6}, (before[WETH.address], before[USDC.address]), 50)
    await rich.approved(adding(position, *capital, counterpart=0), plan_id)
    moved(devnet_home, percent)
    try:
        await rich.gate(Script(desk.node)).apply(plan_id, yes, silently)
    except Refused:
        assert await holdings(desk) == before
        return
    after = await holdings(desk)
    assert 0 < before[WETH.address] - after[WETH.address] <= capital[0]
    assert before[USDC.address] - after[USDC.address] <= capital[1] == 2_000 * 10**6
    assert (await desk.position()).liquidity > position.liquidity


# -- leaving a pool that is off its reference


def push_pool(node: Node, pool: PoolState, factor: Fraction) -> None:
    """A stranger trades one pool to another price; the reference stays where it is."""
    target = isqrt(pool.sqrt_price_x96**2 * factor.numerator // factor.denominator)
    swap = f"swap({calldata.KEY},(bool,int256,uint160),(bool,bool),bytes)"
    down = target < pool.sqrt_price_x96
    data = calldata.call(swap, calldata.key_tuple(pool.key), (down, -(1 << 120), target), (False, False), b"")
    stranger = "0x" + dev_address(OTHERS_ROLE).hex()
    wish = {"from": stranger, "to": SWAP_ROUTER, "data": "0x" + data.hex(), "gas": hex(5_000_000)}
    node.ask("eth_sendTransaction", wish)
    node.mine()


@pytest.mark.parametrize(
    ("factor", "again"),
    [
        (Fraction(1015, 1000), Fraction(9965, 10_000)),
        (Fraction(1015, 1000), Fraction(10_035, 10_000)),
        (Fraction(1000, 1015), Fraction(10_035, 10_000)),
    ],
)
async def test_a_pool_off_its_reference_can_be_left_and_pays_what_the_card_says_at_least(
    desk: Desk, plan_id: str, factor: Fraction, again: Fraction
) -> None:
    """On the contracts, with the price pushed once more between the approval and the burn, as a sandwich would."""
    push_pool(desk.node, (await desk.position()).pool, factor)
    position, before = await desk.position(), await holdings(desk)
    told = Instruction(
        action=Action.CLOSE,
        chain="devnet",
        pool_id=position.pool.id,
        tick=position.pool.tick,
        position_id=position.id,
    )
    with pytest.raises(Refused, match=r"1\.\d\d %.*--anyway"):
        await desk.approved(told, plan_id)
    leaving = next(_ids)
    await desk.approved(told.model_copy(update={"anyway": True}), leaving)
    draft = (await load_progress(desk.hands.journal, leaving)).draft
    assert draft is not None
    (shown,) = draft.exits
    push_pool(desk.node, position.pool, again)
    await desk.gate(Script(desk.node)).apply(leaving, yes, silently)
    book = await load_progress(desk.hands.journal, leaving)
    assert book.over is not None
    assert (book.over.state, book.over.problems) == (PlanState.CONFIRMED, ())
    assert EDGE not in await desk.owned()
    after = await holdings(desk)
    paid = (after[WETH.address] - before[WETH.address], after[USDC.address] - before[USDC.address])
    reference = Fraction(shown.reference_price) * Fraction(10**6, 10**18)
    assert paid[0] * reference + paid[1] >= Fraction(shown.worst) * 10**6 - 1
    shown_now = (position.amount0 + position.fees0, position.amount1 + position.fees1)
    # Below its range it is all WETH, whatever is done to the price there.
    assert (paid == shown_now) is (shown.worst == shown.worth) is (factor < 1)


# -- which positions belong together, and what they cost


async def close_edge(desk: Desk, plan_id: str) -> None:
    position = await desk.position()
    told = Instruction(
        action=Action.CLOSE,
        chain="devnet",
        pool_id=position.pool.id,
        tick=position.pool.tick,
        position_id=EDGE,
    )
    await desk.approved(told, plan_id)
    await desk.gate(Script(desk.node)).apply(plan_id, yes, silently)


async def test_a_create_after_a_close_is_no_rebalance_and_pays_for_its_own_allowances(
    desk: Desk, plan_id: str, house: Application
) -> None:
    created, told = next(_ids), await creation(desk)
    await close_edge(desk, plan_id)
    await desk.approved(told, created)
    await desk.gate(Script(desk.node)).apply(created, yes, silently)
    book = await load_progress(desk.hands.journal, created)
    assert book.over is not None
    assert book.over.new_position_id is not None
    new = str(book.over.new_position_id)
    view = await house.lp("devnet").pnl(new, None)
    assert (view.position_ids, view.lineage, view.exact) == ((new,), "journal", True), view.computed
    assert {step.step.kind.value for step in book.steps} > {"permit2_approve"}
    assert int(view.gas_wei) == gas_spent(book), "every transaction of the plan, to the wei"
    assert view.in_token0.residual == view.in_token1.residual == "0"
    # To somebody without this journal the two look like one: a guess, which is said, and nothing is called exact.
    stranger = await LpDesk(desk.hands.chain, desk.hands.feeds_of).pnl(new, None)
    assert (stranger.position_ids, stranger.lineage, stranger.exact) == ((str(EDGE), new), "chain guess", False)


async def test_a_rebalance_in_two_halves_is_one_record_with_all_its_gas(
    desk: Desk, plan_id: str, house: Application
) -> None:
    before = await house.lp("devnet").pnl(str(EDGE), None)
    await halves(desk, plan_id, lambda: None)
    book = await load_progress(desk.hands.journal, plan_id)
    assert book.over is not None
    new = str(book.over.new_position_id)
    view = await house.lp("devnet").pnl(new, None)
    assert (view.position_ids, view.lineage, view.exact) == ((str(EDGE), new), "journal", True), view.computed
    assert int(view.gas_wei) - int(before.gas_wei) == gas_spent(book)
    assert not [note for note in view.notes if "predecessor" in note]


async def test_what_a_failed_plan_burned_is_the_positions_cost(desk: Desk, plan_id: str, house: Application) -> None:
    """A rebalance whose second half runs out of gas: its allowances, the revert and taking them back again."""

    class Stingy:
        def __init__(self, writer: Any) -> None:
            self._writer = writer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._writer, name)

        async def estimate(self, wallet: Any, call: Call) -> int:
            units: int = await self._writer.estimate(wallet, call)
            return 160_000 if call.to == DEVNET.deployment.universal_router else units

    before, writer = await house.lp("devnet").pnl(str(EDGE), None), Stingy(desk.hands.writer)
    await desk.approved(await desk.two_steps(), plan_id)
    stingy: Any = writer
    with pytest.raises(Refused, match="partial"):
        await desk.gate(Script(desk.node), writer=stingy).apply(plan_id, yes, silently)
    book = await load_progress(desk.hands.journal, plan_id)
    assert {step.part.value for step in book.steps} == {"first", "later", "revoking"}
    assert any(step.state is StepState.REVERTED for step in book.steps)
    view = await house.lp("devnet").pnl(str(EDGE), None)
    assert int(view.gas_wei) - int(before.gas_wei) == gas_spent(book)
    assert view.exact, view.computed
