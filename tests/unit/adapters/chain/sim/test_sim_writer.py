"""What is sent to sim is on disk before it counts, is played again by every process, and is told by its history."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.engine import SentTransaction, SimWorld
from zuno.adapters.chain.sim.gas import BLOCK_GAS, EARLIER, MEASURED, gas_needed
from zuno.adapters.chain.sim.history import position_history
from zuno.adapters.chain.sim.ledger import PROPOSER
from zuno.adapters.chain.sim.transactions import parse_transaction
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.chain.world import DEFAULT_SEED, DEPLOYMENT, OTHERS, SIM, USDC, WALLET, WETH, pool_specs
from zuno.amm.model import Range
from zuno.kernel.errors import Broken, DiskFull, NotFound, Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds, Tick
from zuno.lp.model.history import JournaledPlans, PositionEvent, PositionHistory, WalletSwap
from zuno.lp.model.plan import Grant
from zuno.lp.plan import calldata
from zuno.lp.plan.decoding import decode
from zuno.lp.ports.spending import Call, SendResult
from zuno.lp.rules.attribution import attribute

Sign = Callable[..., bytes]
Act = Callable[..., Call]
CURRENCIES = (NATIVE, WETH.address, USDC.address)
MANAGER, ROUTER, PERMIT2 = DEPLOYMENT.position_manager, DEPLOYMENT.universal_router, DEPLOYMENT.permit2
WETH_SPEC, _, NATIVE_SPEC = pool_specs()
PAIR = (WETH_SPEC.key.currency0, WETH_SPEC.key.currency1)
COIN = (NATIVE_SPEC.key.currency0, NATIVE_SPEC.key.currency1)
FIRST = 8
"""The wallet's next number when the story ends: six to get ready, two mints."""
EDGE, INSIDE = 1, 2
HELLO = Call(OTHERS, 1, b"")
AMPLE = 1 << 100


def closing(pair: tuple[Address, Address]) -> tuple[calldata.EncodedAction, calldata.EncodedAction]:
    return calldata.close_currency(pair[0]), calldata.close_currency(pair[1])


def minted(
    world: SimWorld, pool: int, liquidity: int = 10**13, owner: str = WALLET, width: int = 10
) -> calldata.EncodedAction:
    key = world.specs[pool].key
    here = world.pools[pool].slot0.tick // key.tick_spacing * key.tick_spacing
    reach = width * key.tick_spacing
    return calldata.mint_position(key, here - reach, here + reach, liquidity, AMPLE, AMPLE, owner)


# -- taking


@pytest.mark.soak
async def test_what_is_taken_is_seen_at_once_and_by_everyone_who_looks(
    chain: SimChain, writer: SimWriter, sign: Sign, tmp_path: Path
) -> None:
    elsewhere = SimChain(SimFile(tmp_path))
    other, before = SimWriter(elsewhere), await elsewhere.head()
    assert await writer.send(sign(HELLO, FIRST)) is SendResult.ACCEPTED
    head = await chain.head()
    assert (head.number, head.timestamp) == (before.number + 1, before.timestamp + 12)
    assert await elsewhere.head() == before, "a command answers from the world it opened"
    assert (await other.wallet_state(WALLET, CURRENCIES, ())).nonce == FIRST + 1
    assert await elsewhere.head() == head
    assert await SimChain(SimFile(tmp_path)).head() == head


@pytest.mark.slow
async def test_a_number_is_used_once_and_in_turn(writer: SimWriter, sign: Sign) -> None:
    with pytest.raises(Refused, match=f"next nonce {FIRST}, tx nonce {FIRST + 1}"):
        await writer.send(sign(HELLO, FIRST + 1))
    raw = sign(HELLO, FIRST)
    assert await writer.send(raw) is SendResult.ACCEPTED
    assert await writer.send(raw) is SendResult.KNOWN
    assert await writer.send(sign(Call(OTHERS, 2, b""), FIRST)) is SendResult.NONCE_SPENT


@pytest.mark.soak(every=5)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"gas": BLOCK_GAS + 1}, f"limit {BLOCK_GAS}"),
        ({"gas": 20_999}, "minimum needed 21000"),
        ({"maxPriorityFeePerGas": 5 * 10**9}, "higher than max fee"),
        ({"value": 10**7 * 10**18}, "insufficient funds for gas"),
        ({"gas": BLOCK_GAS, "maxFeePerGas": 10**18}, f"want {BLOCK_GAS * 10**18 + 1}"),
    ],
)
async def test_what_a_node_would_not_take(
    chain: SimChain, writer: SimWriter, sign: Sign, other: dict[str, int], word: str
) -> None:
    before = await chain.head()
    with pytest.raises(Refused, match=word):
        await writer.send(sign(HELLO, FIRST, **other))
    assert await chain.head() == before


@pytest.mark.slow
@pytest.mark.parametrize("other", [{"maxFeePerGas": 10**9 - 1, "maxPriorityFeePerGas": 1}, {"maxPriorityFeePerGas": 0}])
async def test_who_pays_too_little_is_told(writer: SimWriter, sign: Sign, other: dict[str, int]) -> None:
    assert await writer.send(sign(HELLO, FIRST, **other)) is SendResult.UNDERPRICED


@pytest.mark.slow
async def test_a_sender_pays_no_more_than_he_offered(chain: SimChain, writer: SimWriter, sign: Sign) -> None:
    offered = 10**9 + 7
    await writer.send(sign(HELLO, FIRST, maxFeePerGas=offered, maxPriorityFeePerGas=offered))
    trace = await writer.trace(WALLET, FIRST, list(chain.latest().mined))
    assert trace.mined is not None
    assert trace.mined.cost == 21_000 * offered
    before = SimWorld.play(DEFAULT_SEED).ledger
    after = chain.latest().ledger
    assert before.of(WALLET, NATIVE) - after.of(WALLET, NATIVE) == trace.mined.cost + 1
    assert after.of(PROPOSER, NATIVE) - before.of(PROPOSER, NATIVE) == 21_000 * 7


@pytest.mark.slow
async def test_the_trace_is_of_the_wallet_asked_for(chain: SimChain, writer: SimWriter, sign: Sign) -> None:
    await writer.send(sign(HELLO, FIRST))
    (tx,) = chain.latest().mined
    assert (await writer.trace(OTHERS, FIRST, [tx])).mined is None
    upper = HexId("0x" + tx[2:].upper())
    assert (await writer.trace(Address(WALLET.upper().replace("X", "x")), FIRST, [upper])).mined is not None


@pytest.mark.slow
async def test_the_wallet_is_born_with_the_devnets_permissions(writer: SimWriter) -> None:
    wallet_state = await writer.wallet_state(WALLET, CURRENCIES, (MANAGER, ROUTER))
    forever = Grant((1 << 160) - 1, Seconds((1 << 48) - 1))
    assert set(wallet_state.allowances.to_permit2.values()) == {(1 << 256) - 1}
    for token in CURRENCIES[1:]:
        assert wallet_state.allowances.grant(token, MANAGER) == forever
        assert wallet_state.allowances.grant(token, ROUTER) == Grant()


# -- gas


@pytest.mark.slow
def test_a_plans_steps_cost_what_was_measured(acting: Act) -> None:
    world = SimWorld.play(DEFAULT_SEED)
    burn, mint = calldata.burn_position(EDGE, 0, 0), minted(world, 0)
    for call, units in (
        (acting(mint, *closing(PAIR)), MEASURED.mint),
        (acting(burn, *closing(PAIR)), MEASURED.burn),
        (acting(burn, mint, *closing(PAIR)), MEASURED.burn_and_mint),
        (Call(WETH.address, 5, calldata.wrap()), MEASURED.wrap),
        (Call(USDC.address, 0, calldata.approve(PERMIT2, 5)), MEASURED.approve),
        (Call(USDC.address, 0, calldata.approve(PERMIT2, 0)), MEASURED.revoke),
        (Call(PERMIT2, 0, calldata.permit2_approve(USDC.address, ROUTER, 5, 5)), MEASURED.permit),
        (Call(PERMIT2, 0, calldata.permit2_approve(USDC.address, MANAGER, 5, 5)), MEASURED.permit_again),
    ):
        (tried,) = world.attempt(WALLET, [call])
        assert (tried.error, tried.gas_used, tried.gas_needed) == (None, units, units)
    swap = calldata.swap_exact_in_single(NATIVE_SPEC.key, True, 10**15, 0, DEPLOYMENT.swap_struct)
    band = Range(Tick(-6_000), Tick(6_000))
    from_credit = calldata.mint_from_deltas(NATIVE_SPEC.key, band, 1, 1, WALLET)
    for opened, units in ((from_credit, MEASURED.swap_and_mint), (minted(world, 2), MEASURED.swap_and_fixed_mint)):
        both = [calldata.v4_swap([swap]), calldata.position_manager_call([opened], 1 << 48)]
        whole = decode(ROUTER, 0, calldata.execute(both, 1 << 48), DEPLOYMENT.swap_struct)
        assert gas_needed(whole.call) == units


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("limit", [40_000, 70_000, 136_999, 137_000, 500_000])
async def test_gas_is_never_more_than_the_limit_and_too_little_is_lost(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act, limit: int
) -> None:
    good, bad = acting(calldata.burn_position(EDGE, 0, 0), *closing(PAIR)), acting(calldata.burn_position(99, 0, 0))
    await writer.send(sign(bad, FIRST, gas=limit))
    await writer.send(sign(good, FIRST + 1, gas=limit))
    reverted, burnt = (mined for _, mined in chain.latest().mined.values())
    assert not reverted.success
    assert 21_000 < reverted.gas_used <= min(limit, 137_000)
    enough = limit >= 137_000
    assert (burnt.success, burnt.gas_used) == (enough, min(limit, 137_000))
    assert (EDGE in chain.latest().nfts) != enough


# -- on disk


@pytest.mark.slow
async def test_a_world_from_before_the_table_was_measured_is_played_as_it_was(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act, tmp_path: Path
) -> None:
    tx = parse_transaction(sign(acting(calldata.burn_position(EDGE, 0, 0), *closing(PAIR)), FIRST), SIM.id)
    world = SimWorld.play(DEFAULT_SEED)
    world.transact(tx, world.next_time, gas_table=0)
    SimFile(tmp_path).save(world)
    assert "gasTable" not in (tmp_path / "sim.json").read_text()
    await writer.send(sign(acting(calldata.burn_position(INSIDE, 0, 0), *closing(COIN)), FIRST + 1))
    again = SimFile(tmp_path).load()
    assert [mined.gas_used for _, mined in again.mined.values()] == [EARLIER.burn, MEASURED.burn]


@pytest.mark.slow
async def test_a_world_played_again_is_the_same_to_the_last_balance(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act, tmp_path: Path
) -> None:
    await writer.send(sign(acting(minted(chain.latest(), 0), *closing(PAIR)), FIRST))
    await chain.move(Decimal(2))
    await writer.send(sign(acting(calldata.burn_position(EDGE, 0, 0)), FIRST + 1))
    await writer.send(sign(acting(calldata.burn_position(EDGE, 0, 0), *closing(PAIR)), FIRST + 2))
    ours, again = chain.latest(), SimFile(tmp_path).load()
    assert again.books.canonical_text() == ours.books.canonical_text()
    assert (again.pools, again.nonces, again.mined, again.head) == (ours.pools, ours.nonces, ours.mined, ours.head)
    assert (again.effects, again.all_nfts, again.closes) == (ours.effects, ours.all_nfts, ours.closes)
    assert [type(event).__name__ for event in again.events] == [
        "SentTransaction",
        "PriceShift",
        "SentTransaction",
        "SentTransaction",
    ]


@pytest.mark.slow
async def test_a_file_from_before_there_were_transactions_is_read(
    chain: SimChain, writer: SimWriter, sign: Sign, tmp_path: Path
) -> None:
    await chain.move(Decimal(2))
    path = tmp_path / "sim.json"
    document = json.loads(path.read_text())
    assert document["format"] == 2
    path.write_text(json.dumps({**document, "format": 1, "moves": document.pop("events")}))
    old = SimChain(SimFile(tmp_path))
    assert await old.head() == await chain.head()
    assert await SimWriter(old).send(sign(HELLO, FIRST)) is SendResult.ACCEPTED
    assert json.loads(path.read_text())["format"] == 2


@pytest.mark.soak
async def test_a_file_that_was_tampered_with_is_broken(
    chain: SimChain, writer: SimWriter, sign: Sign, tmp_path: Path
) -> None:
    """Balances, deeds, permissions and numbers are in the hash: no pool knows of any of these."""
    await writer.send(sign(Call(USDC.address, 0, calldata.approve(PERMIT2, 5)), FIRST))
    await writer.send(sign(HELLO, FIRST + 1))
    path = tmp_path / "sim.json"
    honest = json.loads(path.read_text())
    first, second = honest["events"]
    other = "0x" + sign(Call(OTHERS, 2, b""), FIRST + 1).hex()
    smaller = "0x" + sign(Call(USDC.address, 0, calldata.approve(PERMIT2, 4)), FIRST).hex()
    for events in (
        [first],
        [second, first],
        [first, {**second, "from": OTHERS}],
        [first, {**second, "transaction": other}],
        [{**first, "transaction": smaller}, second],
        [first, {**second, "timestamp": second["timestamp"] + 1}],
        [first, {**second, "transaction": "0x02c0"}],
        [first, {**second, "transaction": "0xzz"}],
        [first, {**second, "transaction": 7}],
    ):
        path.write_text(json.dumps({**honest, "events": events}))
        with pytest.raises(Broken, match="zuno sim reset"):
            SimFile(tmp_path).load()
    path.write_text(json.dumps(honest))
    SimFile(tmp_path).load()


@pytest.mark.soak
async def test_after_a_transaction_every_block_binds_the_balances(
    chain: SimChain, writer: SimWriter, sign: Sign, tmp_path: Path
) -> None:
    await writer.send(sign(HELLO, FIRST))
    honest, other = SimFile(tmp_path).load(), SimFile(tmp_path).load()
    other.ledger.pay(OTHERS, WALLET, NATIVE, 1)
    move = honest.next_move(honest.reference)
    for world in (honest, other):
        world.apply(move)
    assert honest.pools == other.pools
    assert honest.head.hash != other.head.hash
    assert honest.head.number == other.head.number


@pytest.mark.slow
def test_nothing_a_transaction_can_change_is_left_out_of_the_hash() -> None:
    honest = SimWorld.play(DEFAULT_SEED).books
    others = [honest.copy() for _ in range(5)]
    del others[0].nfts[EDGE]
    others[1].next_id += 1
    others[2].permissions.approve(WALLET, USDC.address, PERMIT2, 5)
    others[3].permissions.permit(WALLET, USDC.address, MANAGER, Grant(5, Seconds(5)))
    others[4].ledger.pay(WALLET, OTHERS, NATIVE, 1)
    assert honest.copy().canonical_text() == honest.canonical_text()
    assert len({books.canonical_text() for books in (honest, *others)}) == 6


@pytest.mark.slow
async def test_the_reference_is_as_young_as_the_head(chain: SimChain, writer: SimWriter, sign: Sign) -> None:
    before = chain.reference_closes()[-1][1]
    await writer.send(sign(HELLO, FIRST))
    assert chain.reference_closes()[-1] == ((await chain.head()).timestamp, before)


@pytest.mark.slow
async def test_what_cannot_be_saved_was_not_sent(
    chain: SimChain, writer: SimWriter, sign: Sign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, raw = await writer.wallet_state(WALLET, CURRENCIES, ()), sign(HELLO, FIRST)

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", full)
        with pytest.raises(DiskFull):
            await writer.send(raw)
    assert await chain.head() == before.block
    assert await writer.wallet_state(WALLET, CURRENCIES, ()) == before
    assert await writer.send(raw) is SendResult.ACCEPTED


@pytest.mark.slow
def test_two_who_send_at_once_take_turns(sign: Sign, tmp_path: Path) -> None:
    rivals = [sign(Call(OTHERS, value, b""), FIRST) for value in range(1, 5)]

    def send(raw: bytes) -> str:
        code = (
            "import sys, asyncio\nfrom pathlib import Path\n"
            "from zuno.adapters.chain.sim.chain import SimChain\n"
            "from zuno.adapters.chain.sim.world_file import SimFile\n"
            "from zuno.adapters.chain.sim.writer import SimWriter\n"
            "writer = SimWriter(SimChain(SimFile(Path(sys.argv[1]))))\n"
            "print(asyncio.run(writer.send(bytes.fromhex(sys.argv[2]))))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), raw.hex()], capture_output=True, text=True, timeout=120
        )
        return run.stdout.strip() or run.stderr

    with ThreadPoolExecutor(2) as pair:
        said = sorted(pair.map(send, rivals))
    assert said == ["accepted", "nonce_spent", "nonce_spent", "nonce_spent"]
    assert [type(event) for event in SimFile(tmp_path).load().events] == [SentTransaction]


# -- the past


@pytest.mark.soak
async def test_a_past_moment_is_before_or_after_a_transaction(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    start = await chain.head()
    await writer.send(sign(acting(calldata.burn_position(EDGE, 0, 0), *closing(PAIR)), FIRST))
    now = chain.latest()
    assert EDGE in now.past(start.timestamp).nfts
    assert EDGE in now.past(Seconds(start.timestamp + 11)).nfts
    assert EDGE not in now.past(Seconds(start.timestamp + 12)).nfts
    assert now.past(Seconds(start.timestamp + 12)).head == now.head
    pool = await chain.pool_at(WETH_SPEC.id, start.timestamp)
    assert pool.liquidity > (await chain.pool(WETH_SPEC.id)).liquidity


@pytest.mark.slow
async def test_a_burnt_position_is_gone_and_its_record_is_not(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    start = await chain.head()
    await chain.move(Decimal(1))
    await writer.send(sign(acting(calldata.burn_position(EDGE, 0, 0), *closing(PAIR)), FIRST))
    burnt_at = await chain.head()
    await chain.move(Decimal(1))
    snapshot = await chain.positions([EDGE, INSIDE])
    assert [missing.id for missing in snapshot.missing] == [EDGE]
    assert (await chain.owned(WALLET)).ids == (INSIDE,)
    for since in (None, start.timestamp):
        told = await chain.history(EDGE, since)
        assert (told.end, told.closed, told.path[-1].block) == (None, burnt_at, burnt_at)
        assert attribute(told).exact
    with pytest.raises(NotFound, match="burnt"):
        await chain.history(EDGE, burnt_at.timestamp)
    with pytest.raises(NotFound, match="No position 99"):
        await chain.history(99, None)


# -- records


async def done(writer: SimWriter, sign: Sign, call: Call) -> HexId:
    nonce = (await writer.wallet_state(WALLET, (), ())).nonce
    raw = sign(call, nonce)
    assert await writer.send(raw) is SendResult.ACCEPTED
    (tx,) = [tx for tx, (_, mined) in writer._chain.latest().mined.items() if mined.block == await writer._chain.head()]
    assert writer._chain.latest().mined[tx][1].success
    return tx


@pytest.mark.slow
async def test_what_was_taken_by_others_is_told_as_theirs(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    position = chain.latest().position(chain.latest().nfts[EDGE])
    half = calldata.decrease(EDGE, position.liquidity // 2, 0, 0)
    await done(writer, sign, acting(half, calldata.take_pair(*PAIR, OTHERS)))
    told = await chain.history(EDGE, None)
    (external,) = told.externals
    assert external.amount0 < 0
    assert external.amount1 < 0
    assert attribute(told).exact
    last = told.events[-1]
    assert isinstance(last, PositionEvent)
    assert (external.amount0, external.amount1) == (last.paid0, last.paid1)
    assert any("wallet's" in note for note in told.notes)


@pytest.mark.slow
async def test_ether_left_with_a_contract_is_told_as_taken(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    mint = minted(chain.latest(), 2)
    await done(writer, sign, acting(mint, calldata.settle_pair(*COIN), value=10**18))
    told = await chain.history(chain.latest().books.next_id - 1, None)
    (external,) = told.externals
    assert external.amount0 == -chain.latest().ledger.of(MANAGER, NATIVE) < 0
    assert attribute(told).exact


@pytest.mark.slow
async def test_one_closed_for_two_has_no_single_successor(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    world = chain.latest()
    two = (minted(world, 0), minted(world, 0, width=20))
    await done(writer, sign, acting(calldata.burn_position(EDGE, 0, 0), *two, *closing(PAIR)))
    told = await chain.history(world.books.next_id - 1, None)
    assert {event.position_id for event in told.events if isinstance(event, PositionEvent)} == {world.books.next_id - 1}
    assert re.search(r"\b2 new\b", told.notes[0])
    assert attribute(told).exact


@pytest.mark.slow
async def test_two_closed_for_one_are_nobodys_past(chain: SimChain, writer: SimWriter, sign: Sign, acting: Act) -> None:
    await done(writer, sign, acting(minted(chain.latest(), 0), *closing(PAIR)))
    second = chain.latest().books.next_id - 1
    burns = (calldata.burn_position(EDGE, 0, 0), calldata.burn_position(second, 0, 0))
    await done(writer, sign, acting(*burns, minted(chain.latest(), 0), *closing(PAIR)))
    told = await chain.history(second + 1, None)
    assert "2 positions" in told.notes[0]
    assert len(told.events) == 1
    assert attribute(told).exact


def test_what_no_journal_could_be_asked_about_is_no_more_than_a_guess() -> None:
    assert JournaledPlans().name_lineage([None]) is None
    assert JournaledPlans(note="the journal was not read").name_lineage([None]) == "chain guess"


@pytest.mark.slow
async def test_a_mint_follows_what_its_plan_closed_and_nothing_else(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    """No other home acts here: what was closed shortly before is not taken for a predecessor."""
    burn = await done(writer, sign, acting(calldata.burn_position(EDGE, 0, 0), *closing(PAIR)))
    hello = await done(writer, sign, HELLO)
    mint = await done(writer, sign, acting(minted(chain.latest(), 0), *closing(PAIR)))
    world, new = chain.latest(), chain.latest().books.next_id - 1
    alone = await chain.history(new, None)
    assert (_ids(alone), alone.lineage) == ([new], None)
    created = position_history(world, new, None, JournaledPlans({mint: None}))
    assert (_ids(created), created.lineage) == ([new], "journal")
    sent = {new: {tx: world.mined[tx][1].block for tx in (burn, hello, mint)}}
    moved = position_history(world, new, None, JournaledPlans({mint: (EDGE, burn)}, sent))
    assert (_ids(moved), moved.lineage) == ([EDGE, EDGE, new], "journal")
    beside = [event for event in moved.events if isinstance(event, WalletSwap)]
    assert [(event.tx, event.gas, event.gas_paid) for event in beside] == [
        (hello, world.mined[hello][1].cost, world.mined[hello][1].cost)
    ]
    assert attribute(moved).exact
    without = replace(moved, events=tuple(event for event in moved.events if event not in beside))
    assert attribute(moved).gas_wei - attribute(without).gas_wei == world.mined[hello][1].cost
    late = position_history(world, new, world.mined[burn][1].block.timestamp, JournaledPlans({mint: (EDGE, burn)}))
    assert _ids(late) == [new], "the window opens after the burn"


def _ids(told: PositionHistory) -> list[int]:
    return [event.position_id for event in told.events if isinstance(event, PositionEvent)]


async def test_a_move_in_one_transaction_that_no_plan_made_is_a_guess(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    await done(writer, sign, acting(calldata.burn_position(EDGE, 0, 0), minted(chain.latest(), 0), *closing(PAIR)))
    told = await chain.history(chain.latest().books.next_id - 1, None)
    assert told.lineage == "chain guess"


@pytest.mark.slow
async def test_one_that_was_only_made_smaller_is_nobodys_past(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    held = chain.latest().position(chain.latest().nfts[EDGE]).liquidity
    await done(writer, sign, acting(calldata.decrease(EDGE, held - 1, 0, 0), *closing(PAIR)))
    await done(writer, sign, acting(minted(chain.latest(), 0), *closing(PAIR)))
    told = await chain.history(chain.latest().books.next_id - 1, None)
    assert (len(told.events), told.notes) == (1, ())


@pytest.mark.slow
async def test_what_is_done_with_an_emptied_one_later_is_another_story(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    held = chain.latest().position(chain.latest().nfts[EDGE]).liquidity
    emptied = await done(writer, sign, acting(calldata.decrease(EDGE, held, 0, 0), *closing(PAIR)))
    mint = await done(writer, sign, acting(minted(chain.latest(), 0), *closing(PAIR)))
    new, plans = chain.latest().books.next_id - 1, JournaledPlans({mint: (EDGE, emptied)})
    before = position_history(chain.latest(), new, None, plans)
    await done(writer, sign, acting(calldata.increase(EDGE, 10**12, AMPLE, AMPLE), *closing(PAIR)))
    after = position_history(chain.latest(), new, None, plans)
    assert after.events == before.events
    assert _ids(after) == [EDGE, EDGE, new]
    assert attribute(after).exact
    assert attribute(await chain.history(EDGE, None)).exact


@pytest.mark.slow
async def test_what_the_pools_got_beyond_their_arithmetic_is_a_residual(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    await done(writer, sign, acting(calldata.burn_position(EDGE, 0, 0), minted(chain.latest(), 0), *closing(PAIR)))
    world = chain.latest()
    honest = world.effects[-1]
    key = (DEPLOYMENT.pool_manager, PAIR[1])
    world.effects[-1] = replace(honest, moved={**honest.moved, key: honest.moved[key] + 1})
    told = await chain.history(world.books.next_id - 1, None)
    assert attribute(told).in_token1.residual == -1
    assert [(one.amount0, one.amount1) for one in told.externals] == [(0, 1)], "and the wallet did not pay it"


@pytest.mark.slow
async def test_another_pools_closing_is_not_a_past(chain: SimChain, writer: SimWriter, sign: Sign, acting: Act) -> None:
    await done(writer, sign, acting(calldata.burn_position(INSIDE, 0, 0), *closing(COIN)))
    await done(writer, sign, acting(minted(chain.latest(), 0), *closing(PAIR)))
    told = await chain.history(chain.latest().books.next_id - 1, None)
    assert (len(told.events), told.notes) == (1, ())


@pytest.mark.soak
async def test_a_window_that_opens_after_the_move_begins_with_the_new_one(
    chain: SimChain, writer: SimWriter, sign: Sign, acting: Act
) -> None:
    await chain.move(Decimal(1))
    before = await chain.head()
    await done(writer, sign, acting(calldata.burn_position(EDGE, 0, 0), minted(chain.latest(), 0), *closing(PAIR)))
    moved, new = await chain.head(), chain.latest().books.next_id - 1
    await chain.move(Decimal(-1))
    whole, since, late = [await chain.history(new, at) for at in (None, before.timestamp, moved.timestamp)]
    assert [len(told.events) for told in (whole, since, late)] == [3, 2, 0]
    assert since.start is not None
    assert since.start.position_id == EDGE
    assert late.start is not None
    assert late.start.position_id == new
    assert all(attribute(told).exact for told in (whole, since, late))


@pytest.mark.slow
async def test_a_swap_in_the_same_transaction_is_the_positions_cost(
    chain: SimChain, writer: SimWriter, sign: Sign
) -> None:
    swap = calldata.swap_exact_in_single(NATIVE_SPEC.key, True, 10**18, 0, DEPLOYMENT.swap_struct)
    swapping = calldata.v4_swap(
        (swap, calldata.settle(NATIVE, 0, payer_is_user=True), calldata.take(USDC.address, MANAGER, 0))
    )
    acts = [
        minted(chain.latest(), 2),
        *(calldata.settle(currency, 0, payer_is_user=False) for currency in COIN),
        *(calldata.sweep(currency, WALLET) for currency in COIN),
    ]
    both = calldata.execute([swapping, calldata.position_manager_call(acts, 1 << 48)], 1 << 48)
    await done(writer, sign, Call(ROUTER, 3 * 10**18, both))
    told = await chain.history(chain.latest().books.next_id - 1, None)
    first, second = told.events
    assert isinstance(first, WalletSwap)
    assert isinstance(second, PositionEvent)
    assert (first.gas > 0, second.gas) == (True, 0), "gas once, on the first"
    assert first.swapped0 == 10**18
    assert attribute(told).exact
    assert attribute(told).in_token1.swap_cost > 0
    assert (await chain.swap_fees(NATIVE_SPEC.id, (await chain.head()).timestamp)).swaps == 0
    assert SIM.confirmations == 0
