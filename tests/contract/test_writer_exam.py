"""The exam of `Writer`: every adapter sits it unchanged, each on its own telling of the same story.

A case is a world that can be written to, its reader, and a stranger's world. To seat another adapter, add a function
that makes a case and name it in CASES; nothing else changes.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_utils.address import to_checksum_address

from zuno.adapters.chain.world import DEFAULT_SEED, DEPLOYMENT, DEVNET, USDC, WALLET, WETH, pool_specs
from zuno.amm.model import LpPosition, PoolKey
from zuno.amm.ticks import floor_to_spacing
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds, Wei
from zuno.lp.model.chains import ETH
from zuno.lp.model.gas import FeeBound
from zuno.lp.model.plan import Grant, WalletState
from zuno.lp.plan import calldata
from zuno.lp.plan.inventory import quotes
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.spending import Call, Fees, SendResult, Signed, SimulationMethod, Unsigned, Writer
from zuno_devnet.keys import dev_key

WETH_SPEC, _, NATIVE_SPEC = pool_specs()
CURRENCIES = (ETH.address, WETH.address, USDC.address)
MANAGER, ROUTER, PERMIT2 = DEPLOYMENT.position_manager, DEPLOYMENT.universal_router, DEPLOYMENT.permit2
FOREVER = Seconds(2**40)
GWEI = 10**9
FEES = Fees(Wei(100 * GWEI), Wei(GWEI))
MOST = 2**128 - 1
DOLLAR, ETHER = 10**6, 10**18
POSITION = 1
"""The wallet's in the WETH pool, in range."""


@dataclass(frozen=True)
class WriterCase:
    """A world to write to, and what is known of it without asking."""

    writer: Writer
    chain: Chain
    stranger: Callable[[], Awaitable[HexId]]
    """The genesis of another world under the same chain id."""
    wallet: Address = WALLET

    async def wallet_state(self) -> WalletState:
        return await self.writer.wallet_state(self.wallet, CURRENCIES, (MANAGER, ROUTER))

    async def sign(self, call: Call, *, nonce: int | None = None, gas: int = 2_000_000, fees: Fees = FEES) -> Signed:
        number = (await self.wallet_state()).next_nonce if nonce is None else nonce
        bound = FeeBound(fees.max_fee, fees.tip, Wei(gas * fees.max_fee))
        return sign(Unsigned(self.writer.info.id, number, call, gas, fees, bound))

    async def do(self, call: Call) -> Signed:
        """Sent, mined and gone well."""
        before = await self.wallet_state()
        signed = await self.sign(call)
        assert await self.writer.send(signed.raw) is SendResult.ACCEPTED
        trace = await self.writer.trace(self.wallet, before.next_nonce, [signed.hash])
        assert trace.mined is not None
        assert trace.mined.success
        return signed


def sign(tx: Unsigned) -> Signed:
    done = Account.sign_transaction(
        {
            "type": 2,
            "chainId": tx.chain_id,
            "nonce": tx.nonce,
            "to": to_checksum_address(tx.call.to),
            "value": tx.call.value,
            "data": tx.call.data,
            "gas": tx.gas,
            "maxFeePerGas": tx.fees.max_fee,
            "maxPriorityFeePerGas": tx.fees.tip,
        },
        dev_key("wallet").to_bytes(),
    )
    return Signed(HexId("0x" + bytes(done.hash).hex()), bytes(done.raw_transaction))


# -- what a wallet asks for


def approving(amount: int) -> Call:
    return Call(USDC.address, 0, calldata.approve(PERMIT2, amount))


def permitting(token: Address, spender: Address, amount: int, until: Seconds = FOREVER) -> Call:
    return Call(PERMIT2, 0, calldata.permit2_approve(token, spender, amount, until))


def swapping(key: PoolKey, zero_for_one: bool, amount: int) -> Call:
    paid, got = (key.currency0, key.currency1) if zero_for_one else (key.currency1, key.currency0)
    steps = [
        calldata.swap_exact_in_single(key, zero_for_one, amount, 0, DEPLOYMENT.swap_struct),
        calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(got, calldata.SENDER, calldata.OPEN_DELTA),
    ]
    return Call(ROUTER, amount if paid == NATIVE else 0, calldata.execute([calldata.v4_swap(steps)], FOREVER))


def minting(key: PoolKey, tick: int, most: int = MOST, liquidity: int = 10**13) -> Call:
    middle = floor_to_spacing(tick, key.tick_spacing)
    lower, upper = middle - 20 * key.tick_spacing, middle + 20 * key.tick_spacing
    steps = [
        calldata.mint_position(key, lower, upper, liquidity, most, most, WALLET),
        *(calldata.close_currency(currency) for currency in (key.currency0, key.currency1)),
    ]
    return Call(MANAGER, 0, calldata.modify_liquidities(steps, FOREVER))


def burning(position: LpPosition) -> Call:
    key = position.pool.key
    steps = [
        calldata.burn_position(position.id, 0, 0),
        *(calldata.close_currency(currency) for currency in (key.currency0, key.currency1)),
    ]
    return Call(MANAGER, 0, calldata.modify_liquidities(steps, FOREVER))


def taking_none_home(token: int, deadline: Seconds) -> Call:
    return Call(MANAGER, 0, calldata.modify_liquidities([calldata.burn_position(token, 0, 0)], deadline))


# -- who sits the exam


async def sim(home: Path, request: pytest.FixtureRequest, closing: AsyncExitStack) -> WriterCase:
    from zuno.adapters.chain.sim.chain import SimChain
    from zuno.adapters.chain.sim.world_file import SimFile

    writing = pytest.importorskip("zuno.adapters.chain.sim.writer", reason="sim cannot be written to yet")
    chain = SimChain(SimFile(home))

    async def stranger() -> HexId:
        elsewhere = home / "other"
        elsewhere.mkdir()
        other = SimChain(SimFile(elsewhere))
        await other.reset(DEFAULT_SEED + 1)
        return await writing.SimWriter(other).genesis()

    return WriterCase(writing.SimWriter(chain), chain, stranger)


async def rpc_on_devnet(home: Path, request: pytest.FixtureRequest, closing: AsyncExitStack) -> WriterCase:
    from zuno.adapters.chain.rpc import RpcChain
    from zuno_devnet.chain import Genesis
    from zuno_devnet.chain import LocalChain as EvmChain
    from zuno_devnet.node import DevnetNode
    from zuno_devnet.server import serve

    url = request.getfixturevalue("devnet_url")
    chain = RpcChain(DEVNET, [url], home / "cache", WALLET)
    closing.push_async_callback(chain.close)
    before = told(url, "evm_snapshot")
    closing.callback(lambda: told(url, "evm_revert", before))

    async def stranger() -> HexId:
        with serve(DevnetNode(EvmChain.create(Genesis(balances={}, timestamp=1)))) as other_url:
            other = RpcChain(DEVNET, [other_url], home / "other")
            closing.push_async_callback(other.close)
            return await other.writer().genesis()

    return WriterCase(chain.writer(), chain, stranger)


CASES: dict[str, Callable[[Path, pytest.FixtureRequest, AsyncExitStack], Awaitable[WriterCase]]] = {
    "sim": sim,
    "rpc on devnet": rpc_on_devnet,
}


def told(url: str, method: str, *params: object) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["result"]


@pytest.fixture(scope="module")
def devnet_url(request: pytest.FixtureRequest) -> Iterator[str]:
    pytest.importorskip("eth", reason="py-evm is the devnet extra")
    from zuno.adapters.chain.devnet.serve_world import open_node
    from zuno_devnet.artifacts import find_artifacts
    from zuno_devnet.server import serve

    cache: Path = request.getfixturevalue("world_cache")
    with serve(open_node(find_artifacts(request.getfixturevalue("node_modules")), cache, DEFAULT_SEED)[0]) as url:
        yield url


@pytest.fixture(params=CASES, ids=str)
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[WriterCase]:
    async with AsyncExitStack() as closing:
        yield await CASES[request.param](tmp_path, request, closing)


# -- the wallet


async def test_a_world_is_known_by_its_first_block(case: WriterCase) -> None:
    assert case.writer.info.id == 31337
    genesis = await case.writer.genesis()
    await case.do(approving(1))
    assert await case.writer.genesis() == genesis
    assert await case.stranger() != genesis


async def test_a_purse_is_what_the_wallet_holds_and_allows(case: WriterCase) -> None:
    wallet_state = await case.wallet_state()
    assert set(wallet_state.holdings) == set(CURRENCIES)
    assert min(wallet_state.holdings.values()) > 0
    assert wallet_state.nonce == wallet_state.next_nonce
    assert wallet_state.block == await case.chain.head()
    assert wallet_state.allowances.to_permit2.keys() == {WETH.address, USDC.address}
    assert wallet_state.allowances.grant(USDC.address, MANAGER).amount > 0
    assert wallet_state.allowances.grant(USDC.address, ROUTER) == Grant()


async def test_a_purse_after_approvals(case: WriterCase) -> None:
    await case.do(approving(12_345))
    until = Seconds((await case.chain.head()).timestamp + 1_000_000_000)
    await case.do(permitting(USDC.address, ROUTER, 678, until))
    allowances = (await case.wallet_state()).allowances
    assert allowances.to_permit2[USDC.address] == 12_345
    assert allowances.grant(USDC.address, ROUTER) == Grant(678, until)
    assert allowances.grant(WETH.address, ROUTER) == Grant()


async def test_a_stranger_s_purse_is_empty(case: WriterCase) -> None:
    nobody = Address("0x" + "77" * 20)
    wallet_state = await case.writer.wallet_state(nobody, CURRENCIES, (MANAGER,))
    assert set(wallet_state.holdings.values()) == {0}
    assert (wallet_state.nonce, wallet_state.next_nonce) == (0, 0)


async def test_each_transaction_takes_one_number(case: WriterCase) -> None:
    before = await case.wallet_state()
    for amount in (1, 2):
        await case.do(approving(amount))
    after = await case.wallet_state()
    assert (after.nonce, after.next_nonce) == (before.nonce + 2, before.next_nonce + 2)


# -- sending


async def test_the_same_bytes_twice_are_known(case: WriterCase) -> None:
    signed = await case.do(approving(1))
    before = await case.wallet_state()
    assert await case.writer.send(signed.raw) is SendResult.KNOWN
    assert (await case.wallet_state()).nonce == before.nonce


async def test_a_number_that_another_transaction_took_is_spent(case: WriterCase) -> None:
    number = (await case.wallet_state()).next_nonce
    ours = await case.sign(approving(2), nonce=number)
    foreign = await case.do(approving(1))
    assert await case.writer.send(ours.raw) is SendResult.NONCE_SPENT
    trace = await case.writer.trace(case.wallet, number, [ours.hash])
    assert (trace.mined, trace.waiting) == (None, ())
    assert trace.nonce > number
    found = await case.writer.trace(case.wallet, number, [ours.hash, foreign.hash])
    assert found.mined is not None
    assert found.mined.tx == foreign.hash


async def test_what_the_wallet_cannot_pay_is_refused(case: WriterCase) -> None:
    before = await case.wallet_state()
    dear = Call(Address("0x" + "77" * 20), before.holdings[NATIVE] + 1, b"")
    signed = await case.sign(dear, gas=21_000)
    with pytest.raises(Refused, match=str(before.holdings[NATIVE])):
        await case.writer.send(signed.raw)
    with pytest.raises(Refused):
        await case.writer.estimate(case.wallet, dear)
    tried = await case.writer.simulate(case.wallet, [approving(1), dear], CURRENCIES, WETH_SPEC.id)
    assert [call.error is None for call in tried.calls] == [True, False]
    assert (await case.wallet_state()).nonce == before.nonce


async def test_too_little_gas_is_refused(case: WriterCase) -> None:
    signed = await case.sign(approving(1), gas=20_999)
    with pytest.raises(Refused):
        await case.writer.send(signed.raw)


@pytest.mark.parametrize("spoil", [lambda raw: b"", lambda raw: raw[:-1], lambda raw: b"\x05" + raw[1:]])
async def test_bytes_that_are_no_transaction_are_refused(case: WriterCase, spoil: Callable[[bytes], bytes]) -> None:
    before = await case.wallet_state()
    with pytest.raises((Refused, Unavailable)):
        await case.writer.send(spoil((await case.sign(approving(1))).raw))
    assert (await case.wallet_state()).next_nonce == before.next_nonce


# -- simulating


async def swaps(case: WriterCase, native: bool) -> tuple[HexId, list[Call]]:
    if native:
        return NATIVE_SPEC.id, [swapping(NATIVE_SPEC.key, NATIVE_SPEC.eth_is_token0, ETHER)]
    permit = permitting(USDC.address, ROUTER, 1_000 * DOLLAR)
    return WETH_SPEC.id, [permit, swapping(WETH_SPEC.key, not WETH_SPEC.eth_is_token0, 1_000 * DOLLAR)]


@pytest.mark.parametrize("native", [True, False], ids=["native", "tokens"])
async def test_a_simulation_changes_nothing_and_equals_what_then_happens(case: WriterCase, native: bool) -> None:
    pool_id, calls = await swaps(case, native)
    before, price = await case.wallet_state(), (await case.chain.pool(pool_id)).sqrt_price_x96
    tried = await case.writer.simulate(case.wallet, calls, CURRENCIES, pool_id)
    again = await case.writer.simulate(case.wallet, calls, CURRENCIES, pool_id)
    assert (tried.how, tried.block) == (SimulationMethod.SIMULATED, before.block)
    assert again == tried
    assert await case.wallet_state() == before
    gas = 0
    for call, expected in zip(calls, tried.calls, strict=True):
        signed = await case.do(call)
        trace = await case.writer.trace(case.wallet, 0, [signed.hash])
        assert trace.mined is not None
        assert expected.error is None
        assert trace.mined.gas_used == expected.gas_used
        gas += trace.mined.cost
    after = await case.wallet_state()
    paid = {currency: after.holdings[currency] - before.holdings[currency] for currency in CURRENCIES}
    paid[NATIVE] += gas
    assert tried.changes == paid
    assert any(paid.values())
    assert tried.sqrt_price_after_x96 == (await case.chain.pool(pool_id)).sqrt_price_x96 != price


async def test_a_call_that_reverts_names_its_error_and_ends_the_simulation(case: WriterCase) -> None:
    pool = await case.chain.pool(WETH_SPEC.id)
    good, bad = minting(pool.key, pool.tick), minting(pool.key, pool.tick, most=10)
    alone = await case.writer.simulate(case.wallet, [good], CURRENCIES, pool.id)
    tried = await case.writer.simulate(case.wallet, [good, bad, good], CURRENCIES, pool.id)
    first, second = tried.calls
    assert first == alone.calls[0]
    assert second.error is not None
    assert second.error.startswith("MaximumAmountExceeded(10, ")
    assert tried.changes == alone.changes
    with pytest.raises(Refused, match=r"MaximumAmountExceeded\(10, "):
        await case.writer.estimate(case.wallet, bad)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (swapping(WETH_SPEC.key, not WETH_SPEC.eth_is_token0, DOLLAR), "AllowanceExpired"),
        (Call(MANAGER, 0, calldata.modify_liquidities([calldata.burn_position(3, 0, 0)], FOREVER)), "NotApproved"),
        (Call(MANAGER, 0, calldata.modify_liquidities([calldata.burn_position(1, 0, 0)], 1)), "DeadlinePassed"),
        (
            Call(MANAGER, 0, calldata.modify_liquidities([calldata.burn_position(1, 0, 0)], FOREVER)),
            "CurrencyNotSettled",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_revert_is_told_in_the_contract_s_own_word(case: WriterCase, call: Call, word: str) -> None:
    tried = await case.writer.simulate(case.wallet, [call], CURRENCIES, WETH_SPEC.id)
    (only,) = tried.calls
    assert only.error is not None
    assert only.error.startswith(word)
    assert set(tried.changes.values()) == {0}


async def test_a_transaction_that_reverts_costs_gas_and_changes_nothing_else(case: WriterCase) -> None:
    pool, before = await case.chain.pool(WETH_SPEC.id), await case.wallet_state()
    signed = await case.sign(minting(pool.key, pool.tick, most=10))
    assert await case.writer.send(signed.raw) is SendResult.ACCEPTED
    trace = await case.writer.trace(case.wallet, before.nonce, [signed.hash])
    assert trace.mined is not None
    assert not trace.mined.success
    assert trace.mined.minted == ()
    after = await case.wallet_state()
    assert before.holdings[NATIVE] - after.holdings[NATIVE] == trace.mined.cost > 0
    assert all(after.holdings[token] == before.holdings[token] for token in (WETH.address, USDC.address))
    assert after.nonce == before.nonce + 1


async def test_an_estimate_is_enough(case: WriterCase) -> None:
    pool = await case.chain.pool(WETH_SPEC.id)
    for call in (minting(pool.key, pool.tick), approving(7)):
        limit = await case.writer.estimate(case.wallet, call)
        signed = await case.sign(call, gas=limit)
        assert await case.writer.send(signed.raw) is SendResult.ACCEPTED
        trace = await case.writer.trace(case.wallet, 0, [signed.hash])
        assert trace.mined is not None
        assert trace.mined.success
        assert trace.mined.gas_used <= limit


# -- tracing


async def test_a_transaction_before_and_after_it_is_mined(case: WriterCase) -> None:
    before = await case.wallet_state()
    signed = await case.sign(approving(1))
    trace = await case.writer.trace(case.wallet, before.nonce, [signed.hash])
    assert (trace.mined, trace.waiting, trace.nonce, trace.depth) == (None, (), before.nonce, 0)
    assert trace.head == before.block
    assert await case.writer.send(signed.raw) is SendResult.ACCEPTED
    trace = await case.writer.trace(case.wallet, before.nonce, [signed.hash])
    assert trace.mined is not None
    assert (trace.mined.tx, trace.mined.success, trace.waiting) == (signed.hash, True, ())
    assert trace.nonce == trace.settled_nonce == before.nonce + 1
    assert trace.depth >= 1
    after = await case.wallet_state()
    assert before.holdings[NATIVE] - after.holdings[NATIVE] == trace.mined.cost


async def test_a_trace_of_nothing_is_a_count(case: WriterCase) -> None:
    wallet_state = await case.wallet_state()
    trace = await case.writer.trace(case.wallet, wallet_state.nonce, [])
    assert (trace.mined, trace.waiting, trace.nonce) == (None, (), wallet_state.nonce)


async def test_a_mint_tells_which_position_it_made(case: WriterCase) -> None:
    pool = await case.chain.pool(WETH_SPEC.id)
    signed = await case.do(minting(pool.key, pool.tick))
    trace = await case.writer.trace(case.wallet, 0, [signed.hash])
    assert trace.mined is not None
    (token,) = trace.mined.minted
    (position,) = (await case.chain.positions([token])).positions
    assert (position.owner, position.liquidity) == (case.wallet, 10**13)
    burnt = await case.do(burning(position))
    trace = await case.writer.trace(case.wallet, 0, [burnt.hash])
    assert trace.mined is not None
    assert trace.mined.minted == ()


# -- whatever a wallet sent, found without its hash


async def test_what_a_wallet_sent_is_found_from_a_block_on(case: WriterCase) -> None:
    first = await case.do(approving(MOST))
    after = (await case.chain.head()).number
    pool = await case.chain.pool(WETH_SPEC.id)
    calls = [minting(pool.key, pool.tick), minting(pool.key, pool.tick, most=10), approving(2)]
    sent = []
    for call in calls:
        signed = await case.sign(call)
        assert await case.writer.send(signed.raw) is SendResult.ACCEPTED
        sent.append(signed.hash)
    found = await case.writer.find_sent(case.wallet, after)
    assert [each.mined.tx for each in found.transactions] == sent
    assert [each.call for each in found.transactions] == calls
    assert {each.sender for each in found.transactions} == {case.wallet}
    assert [each.mined.success for each in found.transactions] == [True, False, True]
    assert [len(each.mined.minted) for each in found.transactions] == [1, 0, 0]
    assert found.head == await case.chain.head()
    assert found.settled.number <= found.head.number
    assert (await case.writer.find_sent(case.wallet, found.head.number)).transactions == ()
    assert (await case.writer.find_sent(Address("0x" + "77" * 20), after)).transactions == ()
    (named,) = (await case.writer.find_transaction(case.wallet, first.hash)).transactions
    assert (named.sender, named.call, named.mined.tx) == (case.wallet, approving(MOST), first.hash)
    assert (await case.writer.find_transaction(case.wallet, HexId("0x" + "12" * 32))).transactions == ()


async def test_a_key_s_wallet_is_no_contract(case: WriterCase) -> None:
    assert not await case.writer.is_contract(case.wallet)
    assert not await case.writer.is_contract(Address("0x" + "77" * 20))


# -- depth


@pytest.mark.parametrize("zero_for_one", [True, False])
@pytest.mark.parametrize("ether", [1, 40], ids=["shallow", "deep"])
async def test_a_quote_is_what_a_swap_then_pays(case: WriterCase, zero_for_one: bool, ether: int) -> None:
    spec = NATIVE_SPEC
    brings_ether = zero_for_one == spec.eth_is_token0
    amount = ether * ETHER if brings_ether else ether * 3_000 * DOLLAR
    depth = await case.writer.depth(spec.id)
    assert depth.pool == await case.chain.pool(spec.id)
    assert all(depth.known.contains(tick) for tick in depth.net)
    quoted = quotes(depth)(zero_for_one, amount)
    permit = permitting(USDC.address, ROUTER, amount)
    calls = [permit, swapping(spec.key, zero_for_one, amount)]
    tried = await case.writer.simulate(case.wallet, calls, CURRENCIES, spec.id)
    got, paid = (USDC.address, NATIVE) if brings_ether else (NATIVE, USDC.address)
    assert (tried.changes[got], tried.changes[paid]) == (quoted.amount_out, -quoted.amount_in)
    assert tried.sqrt_price_after_x96 == quoted.sqrt_price_after_x96


@pytest.mark.parametrize("zero_for_one", [True, False])
async def test_a_quote_without_our_position_is_what_a_swap_pays_after_its_burn(
    case: WriterCase, zero_for_one: bool
) -> None:
    spec = WETH_SPEC
    amount = 5 * ETHER if zero_for_one == spec.eth_is_token0 else 15_000 * DOLLAR
    (position,) = (await case.chain.positions([POSITION])).positions
    depth = await case.writer.depth(spec.id)
    flattered, quoted = quotes(depth)(zero_for_one, amount), quotes(depth, position)(zero_for_one, amount)
    paid, got = spec.key.currency0, spec.key.currency1
    if not zero_for_one:
        paid, got = got, paid
    calls = [burning(position), permitting(paid, ROUTER, amount)]
    before = await case.writer.simulate(case.wallet, calls, CURRENCIES, spec.id)
    calls.append(swapping(spec.key, zero_for_one, amount))
    after = await case.writer.simulate(case.wallet, calls, CURRENCIES, spec.id)
    assert after.changes[got] - before.changes[got] == quoted.amount_out < flattered.amount_out
    assert after.sqrt_price_after_x96 == quoted.sqrt_price_after_x96


async def test_depth_of_a_pool_that_is_not_there_is_refused(case: WriterCase) -> None:
    with pytest.raises(Refused):
        await case.writer.depth(HexId("0x" + "5a" * 32))
