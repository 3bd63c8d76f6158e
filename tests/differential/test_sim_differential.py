"""The same signed bytes on the real contracts and on sim: equal to the wei after every one of them, gas apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_abi.abi import decode as abi_decode
from eth_abi.abi import encode as abi_encode
from eth_account import Account
from eth_hash.auto import keccak

from zuno.adapters.chain.devnet.serve_world import PriceMover
from zuno.adapters.chain.devnet.world_builder import WALLET_ROLE, check_against_sim, open_world
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.contracts import NO_REASON
from zuno.adapters.chain.sim.history import position_history
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.chain.world import DEFAULT_SEED, DEPLOYMENT, OTHERS, SIM, USDC, WALLET, WETH, pool_specs
from zuno.amm.identity import decode_position_info
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, PoolKey, PoolState, Range
from zuno.amm.ticks import floor_to_spacing, sqrt_price_at_tick
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Pips, Seconds, Tick, Wei
from zuno.lp.model.history import JournaledPlans
from zuno.lp.model.plan import Bounds, Grant, Step, StepPlan
from zuno.lp.plan import calldata, minting, positions
from zuno.lp.plan.approvals import build_revocations
from zuno.lp.plan.context import PlanContext
from zuno.lp.plan.inventory import burn_proceeds, market_without_us, plan_swap_and_deposit
from zuno.lp.ports.spending import Call, Fees, Mined, SendResult
from zuno.lp.rules.attribution import attribute
from zuno_devnet.artifacts import find_artifacts
from zuno_devnet.chain import ETHER
from zuno_devnet.execution import CallMessage as EvmCall
from zuno_devnet.keys import dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.params import Params

MANAGER, ROUTER, PERMIT2 = DEPLOYMENT.position_manager, DEPLOYMENT.universal_router, DEPLOYMENT.permit2
CURRENCIES = (NATIVE, WETH.address, USDC.address)
HOLDERS = (WALLET, OTHERS, DEPLOYMENT.pool_manager, MANAGER, ROUTER)
WETH_POOL, _, NATIVE_POOL = (spec.key for spec in pool_specs())
EDGE, INSIDE = 1, 2
FOREVER = (1 << 48) - 1
FEES = Fees(Wei(4 * 10**9), Wei(10**9))
ERRORS = (
    "AllowanceExpired(uint256)",
    "CannotUpdateEmptyPosition()",
    "CurrencyNotSettled()",
    "DeadlinePassed(uint256)",
    "DeltaNotNegative(address)",
    "DeltaNotPositive(address)",
    "ERC20TransferFailed()",
    "InsufficientAllowance(uint256)",
    "MaximumAmountExceeded(uint128,uint128)",
    "MinimumAmountInsufficient(uint128,uint128)",
    "NativeTransferFailed()",
    "NotApproved(address)",
    "OnlyMintAllowed()",
    "PoolNotInitialized()",
    "SafeCastOverflow()",
    "SwapAmountCannotBeZero()",
    "TickMisaligned(int24,int24)",
    "TicksMisordered(int24,int24)",
    "TransactionDeadlinePassed()",
    "UnsafeCast()",
    "UnsupportedAction(uint256)",
    "V4TooLittleReceived(uint256,uint256)",
)


def sign(nonce: int, call: Call, gas: int = 3_000_000, fees: Fees = FEES, chain_id: int = SIM.id) -> bytes:
    fields = {
        "type": 2,
        "chainId": chain_id,
        "nonce": nonce,
        "maxPriorityFeePerGas": fees.tip,
        "maxFeePerGas": fees.max_fee,
        "gas": gas,
        "to": bytes.fromhex(call.to[2:]),
        "value": call.value,
        "data": call.data,
    }
    return bytes(Account.sign_transaction(fields, dev_key(WALLET_ROLE).to_bytes()).raw_transaction)


@dataclass
class Stage:
    """Both chains, told the same at the same times."""

    node: DevnetNode
    pusher: PriceMover
    chain: SimChain
    gas: int = 0
    """What the devnet's wallet paid for gas beyond what sim's paid, story included."""
    error: str = ""
    """What the last transaction was refused with on sim."""
    used: int = 0
    """Gas that the last one took on the devnet."""

    def __post_init__(self) -> None:
        self.writer = SimWriter(self.chain)
        self.world = self.chain.latest()
        self.gas = self.world.ledger.of(WALLET, NATIVE) - self.node.chain.balance(_bytes(WALLET))

    # acts

    async def push(self, percent: str) -> None:
        moved = await self.chain.move(Decimal(percent))
        self.node.set_next_timestamp(moved.block.timestamp)
        self.pusher.methods()["zuno_move"](self.node, Params([percent]))
        self.world = self.chain.latest()
        self.compare()

    async def tell(self, call: Call, name: str = "", gas: int = 3_000_000) -> Mined:
        """One transaction of the wallet, on both."""
        nonce = self.world.nonces[WALLET]
        raw = sign(nonce, call, gas)
        (simulated,) = (await self.writer.simulate(WALLET, [call], CURRENCIES, pool_specs()[0].id)).calls
        self.error = simulated.error or ""
        assert await self.writer.send(raw) is SendResult.ACCEPTED
        self.world = self.chain.latest()
        self.node.set_next_timestamp(self.world.head.timestamp)
        tx = self.node.submit(raw)
        (receipt,) = self.node.chain.history.at(self.node.chain.head.number).receipts  # type: ignore[union-attr]
        trace = await self.writer.trace(WALLET, nonce, [HexId("0x" + tx.hash.hex())])
        assert trace.mined is not None
        assert trace.mined.success == receipt.ok, (simulated.error, receipt.error, receipt.revert_data.hex())
        if not receipt.ok and gas == 3_000_000:
            assert simulated.error is not None
            assert same_error(simulated.error, receipt.revert_data), (name, simulated.error, receipt.revert_data.hex())
        self.gas += receipt.gas_used * receipt.gas_price - trace.mined.cost
        self.used = receipt.gas_used
        self.compare()
        return trace.mined

    async def do(self, steps: Sequence[Step]) -> None:
        for step in steps:
            mined = await self.tell(Call(step.to, step.value, step.data), step.kind)
            assert mined.success, step.kind
            # The table is measured where storage was written before; a new range writes up to three words anew.
            assert (self.used - 3 * 17_100) * Fraction(9, 10) < mined.gas_used < self.used * Fraction(16, 10), step.kind

    async def refuses(self, call: Call, error: str) -> None:
        mined = await self.tell(call, error)
        assert not mined.success, error
        assert self.error.partition("(")[0] == error

    def acting(self, *acts: calldata.EncodedAction, value: int = 0, deadline: int = FOREVER) -> Call:
        """A call of PositionManager."""
        return Call(MANAGER, value, calldata.modify_liquidities(acts, deadline))

    def routing(self, *commands: tuple[int, bytes], value: int = 0, deadline: int = FOREVER) -> Call:
        return Call(ROUTER, value, calldata.execute(commands, deadline))

    # reads, all of sim: the two are equal

    def pool(self, key: PoolKey) -> PoolState:
        return self.world.state([spec.key for spec in self.world.specs].index(key))

    def position(self, token_id: int) -> LpPosition:
        return self.world.position(self.world.nfts[token_id])

    async def terms(self, bounds: Bounds | None = None) -> PlanContext:
        wallet_state = await self.writer.wallet_state(WALLET, CURRENCIES, (MANAGER, ROUTER))
        now = Seconds(wallet_state.block.timestamp)
        return PlanContext(
            DEPLOYMENT,
            WALLET,
            now,
            wallet_state.holdings,
            wallet_state.allowances,
            bounds or Bounds(),
            wrapper=WETH.address,
        )

    # the comparison

    def ask(self, to: Address, types: str, signature: str, *values: object) -> Any:
        call = EvmCall(_bytes(WALLET), _bytes(to), calldata.call(signature, *values))
        return abi_decode(types.split(), self.node.chain.call(self.node.chain.with_gas(call)))

    def compare(self) -> None:
        world, chain = self.world, self.node.chain
        assert chain.head.timestamp == world.head.timestamp
        assert chain.head.number == world.head.number
        check_against_sim(chain, world)
        for holder in HOLDERS:
            for token in CURRENCIES[1:]:
                assert self.ask(token, "uint256", "balanceOf(address)", holder)[0] == world.ledger.of(holder, token)
            if holder != OTHERS:
                gas = self.gas if holder == WALLET else 0
                assert chain.balance(_bytes(holder)) + gas == world.ledger.of(holder, NATIVE), holder
        for holder in (WALLET, OTHERS):
            assert chain.nonce(_bytes(holder)) == world.nonces[holder]

    def compare_deeds(self) -> None:
        """What is slow to ask for, once a test is over."""
        world = self.world
        for token in CURRENCIES[1:]:
            allowed = self.ask(token, "uint256", "allowance(address,address)", WALLET, PERMIT2)[0]
            assert allowed == world.books.permissions.allowance(WALLET, token, PERMIT2)
            for spender in (MANAGER, ROUTER):
                signature, types = "allowance(address,address,address)", "uint160 uint48 uint48"
                amount, until, _ = self.ask(PERMIT2, types, signature, WALLET, token, spender)
                assert Grant(amount, until) == world.books.permissions.grant(WALLET, token, spender)
        assert self.ask(MANAGER, "uint256", "nextTokenId()")[0] == world.books.next_id
        for token_id in range(1, world.books.next_id):
            self.compare_deed(token_id)

    def compare_deed(self, token_id: int) -> None:
        world = self.world
        *_, packed = self.ask(
            MANAGER, "address address uint24 int24 address uint256", "getPoolAndPositionInfo(uint256)", token_id
        )
        nft = world.nfts.get(token_id)
        assert (packed == 0) == (nft is None)
        if nft is None:
            return
        info = decode_position_info(packed)
        assert (info.tick_lower, info.tick_upper) == (nft.range.lower, nft.range.upper)
        assert self.ask(MANAGER, "address", "ownerOf(uint256)", token_id)[0] == nft.owner
        held = self.ask(MANAGER, "uint128", "getPositionLiquidity(uint256)", token_id)[0]
        assert held == world.position(nft).liquidity


def same_error(said: str, data: bytes) -> bool:
    """Whether the contracts said what sim says, numbers included; both contracts wrap what they were told by others."""
    if said.startswith(f"{NO_REASON}: sim cannot read it"):
        return True
    if said == NO_REASON:
        return not data
    if said.isupper():
        return said.encode() in data
    name, _, values = said.removesuffix(")").partition("(")
    signature = next(one for one in ERRORS if one.startswith(f"{name}("))
    selector, types = keccak(signature.encode())[:4], signature[len(name) + 1 : -1].split(",")
    if not values:
        return selector in data
    numbers = [
        value if kind == "address" else int(value) for kind, value in zip(types, values.split(", "), strict=True)
    ]
    return selector + abi_encode(types, numbers) in data


def _bytes(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))


@pytest.fixture(scope="module")
def node(world_cache: Path, node_modules: Path) -> DevnetNode:
    chain = open_world(find_artifacts(node_modules), world_cache, DEFAULT_SEED, lambda done, total: None)
    return DevnetNode(chain, clock=lambda: 0.0)


@pytest.fixture
def stage(node: DevnetNode, tmp_path: Path) -> Any:
    before = node.snapshot()
    chain = SimChain(SimFile(tmp_path))
    both = Stage(node, PriceMover(chain.latest().reference), chain)
    try:
        yield both
        both.compare()
        both.compare_deeds()
    finally:
        assert node.revert(before)


def around(pool: PoolState, below: int, above: int) -> Range:
    spacing = pool.key.tick_spacing
    here = floor_to_spacing(pool.tick, spacing)
    return Range(Tick(here - below * spacing), Tick(here + above * spacing))


def needs_no_swap(position: LpPosition, least: int = 12) -> Range:
    """Another range that the position's own tokens fit as they are."""
    for below in count(least):
        for above in range(least // 2, 200):
            band = around(position.pool, below, above)
            fits = plan_swap_and_deposit(
                market_without_us(position.pool, position), band, *burn_proceeds(position), may_swap=True
            )
            if fits.prep is None and band != position.range and fits.liquidity:
                return band
        assert below < 100
    raise AssertionError


async def test_both_start_equal(stage: Stage) -> None:
    stage.compare()
    stage.compare_deeds()


@pytest.mark.soak(every=2)
@pytest.mark.parametrize(
    ("key", "held", "capital"),
    [(WETH_POOL, EDGE, {WETH.address: 3 * ETHER}), (NATIVE_POOL, INSIDE, {NATIVE: 3 * ETHER})],
    ids=["weth", "native"],
)
async def test_every_kind_of_plan_ends_on_the_same_wei(
    stage: Stage, key: PoolKey, held: int, capital: dict[Address, int]
) -> None:
    # Create, with a swap of the one token that is brought.
    pool = stage.pool(key)
    amounts = [capital.get(side, 0) for side in (key.currency0, key.currency1)]
    opened = stage.world.books.next_id
    await stage.do(minting.create(await stage.terms(), pool, around(pool, 25, 25), *amounts).steps)
    await stage.push("1.5")
    await stage.push("-2")

    # Compound, collect, add, remove.
    await stage.do(positions.compound(await stage.terms(), stage.position(held)).steps)
    await stage.push("0.6")
    await stage.push("-0.4")
    await stage.do(positions.collect(await stage.terms(), stage.position(held)).steps)
    await stage.push("0.8")
    position = stage.position(held)
    await stage.do(positions.add(await stage.terms(), position, position.amount0, position.amount1).steps)
    await stage.do(positions.remove(await stage.terms(), stage.position(held), Fraction(1, 3)).steps)

    # Move in one step.
    moved = stage.world.books.next_id
    position = stage.position(held)
    plan = positions.rebalance(await stage.terms(), position, needs_no_swap(position))
    assert plan.later is None
    await stage.do(plan.steps)

    # Move in two, out of range.
    await stage.push("-35")
    last = await in_two_steps(stage, moved)

    # Everything home; what the record says adds up.
    await stage.push("2")
    for token_id in (opened, last):
        await stage.do(positions.close(await stage.terms(), stage.position(token_id)).steps)
    for token_id in (held, moved, last, opened):
        told = await stage.chain.history(token_id, None)
        assert attribute(told).exact, token_id
        assert told.externals == ()
    burn = next(effects.tx for effects in stage.world.effects if moved in effects.burnt)
    mint = next(effects.tx for effects in stage.world.effects if last in effects.minted)
    told = position_history(stage.world, last, None, JournaledPlans({mint: (moved, burn)}))
    assert {event.position_id for event in told.events if hasattr(event, "position_id")} == {held, moved, last}


async def in_two_steps(stage: Stage, token_id: int) -> int:
    position = stage.position(token_id)
    key = position.pool.key
    plan: StepPlan = positions.rebalance(await stage.terms(), position, around(position.pool, 30, 30))
    assert plan.later is not None
    await stage.do(plan.steps)
    new = stage.world.books.next_id
    later = positions.finish_rebalance(plan.later, await stage.terms(), stage.pool(key), *burn_proceeds(position))
    await stage.do(later)
    return new


# -- what no plan does, and what goes wrong


PAIR = (WETH_POOL.currency0, WETH_POOL.currency1)
COIN = (NATIVE_POOL.currency0, NATIVE_POOL.currency1)
AMPLE = 1 << 100
SENDER, CONTRACT = calldata.SENDER, f"0x{2:040x}"
ALL_IT_HAS = 1 << 255


def closing(pair: tuple[Address, Address]) -> tuple[calldata.EncodedAction, calldata.EncodedAction]:
    return calldata.close_currency(pair[0]), calldata.close_currency(pair[1])


def mint(
    stage: Stage, key: PoolKey, liquidity: int = 10**12, owner: str = WALLET, **other: int
) -> calldata.EncodedAction:
    band = around(stage.pool(key), 10, 10)
    lower, upper = other.get("lower", band.lower), other.get("upper", band.upper)
    most = other.get("most", AMPLE)
    return calldata.mint_position(key, lower, upper, liquidity, most, most, owner)


async def test_debts_and_credits_must_come_to_nothing(stage: Stage) -> None:
    collect, half = calldata.decrease(EDGE, 0, 0, 0), calldata.decrease(EDGE, stage.position(EDGE).liquidity // 2, 0, 0)
    await stage.refuses(stage.acting(collect), "CurrencyNotSettled")
    await stage.refuses(stage.acting(half, calldata.settle_pair(*PAIR)), "DeltaNotNegative")
    await stage.refuses(stage.acting(mint(stage, WETH_POOL), calldata.take_pair(*PAIR, WALLET)), "DeltaNotPositive")
    too_much = calldata.settle(WETH.address, 5 * ETHER, payer_is_user=True)
    await stage.refuses(stage.acting(mint(stage, WETH_POOL), too_much, *closing(COIN)), "CurrencyNotSettled")
    await stage.refuses(stage.acting(calldata.take(USDC.address, WALLET, 5)), "CurrencyNotSettled")
    await stage.refuses(stage.acting(calldata.take(USDC.address, WALLET, 1 << 127)), "SafeCastOverflow")
    await stage.refuses(stage.acting(calldata.take(USDC.address, WALLET, 1 << 100)), "ERC20TransferFailed")
    await stage.refuses(stage.acting(calldata.take(NATIVE, WALLET, 1 << 100)), "NativeTransferFailed")
    # Paid by the contract itself, which has nothing.
    by_contract = calldata.settle(USDC.address, 5, payer_is_user=False)
    await stage.refuses(stage.acting(by_contract), "ERC20TransferFailed")
    assert (await stage.tell(stage.acting(collect, calldata.take_pair(*PAIR, WALLET)))).success
    assert (await stage.tell(stage.acting(collect, *closing(PAIR)))).success, "nothing is left to take, which is fine"
    assert (await stage.tell(stage.acting(half, calldata.take_pair(*PAIR, OTHERS)))).success
    assert (await stage.tell(stage.acting(*closing(COIN)))).success
    assert (await stage.tell(stage.acting())).success


async def test_positions_are_their_owners(stage: Stage) -> None:
    held = stage.position(EDGE)
    give = stage.acting(mint(stage, WETH_POOL, owner=OTHERS), *closing(PAIR))
    assert (await stage.tell(give)).minted == ()
    theirs = stage.world.books.next_id - 1
    await stage.refuses(stage.acting(calldata.increase(theirs, 1, AMPLE, AMPLE), *closing(PAIR)), "NotApproved")
    await stage.refuses(stage.acting(calldata.decrease(theirs, 0, 0, 0), *closing(PAIR)), "NotApproved")
    await stage.refuses(stage.acting(calldata.burn_position(theirs, 0, 0), *closing(PAIR)), "NotApproved")
    await stage.refuses(stage.acting(calldata.burn_position(theirs + 1, 0, 0)), "NOT_MINTED")
    await stage.refuses(stage.acting(calldata.decrease(0, 0, 0, 0)), "NOT_MINTED")
    await stage.refuses(stage.acting(mint(stage, WETH_POOL, owner=NATIVE), *closing(PAIR)), "INVALID_RECIPIENT")
    # Emptied, then burnt: the minima of nothing are not looked at.
    whole = calldata.decrease(EDGE, held.liquidity, 0, 0)
    more = calldata.decrease(EDGE, held.liquidity + 1, 0, 0)
    await stage.refuses(stage.acting(more, *closing(PAIR)), "SafeCastOverflow")
    assert (await stage.tell(stage.acting(whole, *closing(PAIR)))).success
    told = await stage.chain.history(EDGE, None)
    assert attribute(told).exact
    assert told.end is not None
    assert (told.end.liquidity, told.end.worth0) == (0, 0)
    await stage.refuses(stage.acting(calldata.decrease(EDGE, 0, 0, 0)), "CannotUpdateEmptyPosition")
    assert (await stage.tell(stage.acting(calldata.burn_position(EDGE, AMPLE, AMPLE)))).success
    assert attribute(await stage.chain.history(EDGE, None)).exact
    await stage.refuses(stage.acting(calldata.burn_position(EDGE, 0, 0)), "NOT_MINTED")
    # Minted and burnt at once, and for the sender by its placeholder.
    fresh = stage.world.books.next_id
    at_once = (mint(stage, WETH_POOL, owner=SENDER), calldata.burn_position(fresh, 0, 0), *closing(PAIR))
    assert (await stage.tell(stage.acting(*at_once))).success
    assert (await stage.tell(stage.acting(mint(stage, WETH_POOL, owner=SENDER), *closing(PAIR)))).minted == (fresh + 1,)


async def test_bounds_and_deadlines(stage: Stage) -> None:
    held = stage.position(EDGE)
    now = stage.world.head.timestamp
    burn = calldata.burn_position(EDGE, held.amount0, held.amount1)
    collect = (calldata.decrease(EDGE, 0, 0, 0), calldata.take_pair(*PAIR, WALLET))
    await stage.refuses(stage.acting(burn, *closing(PAIR), deadline=now + 11), "DeadlinePassed")
    assert (await stage.tell(stage.acting(*collect, deadline=now + 24))).success, "the last second is still in time"
    richer = calldata.burn_position(EDGE, held.amount0, held.amount1 + 1)
    await stage.refuses(stage.acting(richer, *closing(PAIR)), "MinimumAmountInsufficient")
    dearer = calldata.decrease(EDGE, held.liquidity // 2, AMPLE, 0)
    await stage.refuses(stage.acting(dearer, *closing(PAIR)), "MinimumAmountInsufficient")
    await stage.refuses(stage.acting(mint(stage, WETH_POOL, most=1), *closing(PAIR)), "MaximumAmountExceeded")
    more = calldata.increase(EDGE, 10**12, AMPLE, 1)
    await stage.refuses(stage.acting(more, *closing(PAIR)), "MaximumAmountExceeded")
    tick = stage.pool(WETH_POOL).tick
    odd = mint(stage, WETH_POOL, lower=floor_to_spacing(tick, 10) - 5)
    await stage.refuses(stage.acting(odd, *closing(PAIR)), "TickMisaligned")
    turned = mint(stage, WETH_POOL, lower=100, upper=-100)
    await stage.refuses(stage.acting(turned, *closing(PAIR)), "TicksMisordered")
    nowhere = calldata.mint_position(replace(WETH_POOL, fee=Pips(501)), -100, 100, 1, AMPLE, AMPLE, WALLET)
    await stage.refuses(stage.acting(nowhere), "PoolNotInitialized")
    await stage.refuses(stage.acting(mint(stage, WETH_POOL, liquidity=0)), "CannotUpdateEmptyPosition")
    assert (await stage.tell(stage.acting(burn, *closing(PAIR)))).success


@pytest.mark.soak
async def test_fees_widen_no_bound(stage: Stage) -> None:
    """What is added is bounded by its principal, even where fees pay for all of it; what is taken is, too."""
    held = stage.position(EDGE)
    edges = sqrt_price_at_tick(held.range.lower), sqrt_price_at_tick(held.range.upper)
    liquidity = held.liquidity // 100
    need0, need1 = amounts_for_liquidity(held.pool.sqrt_price_x96, *edges, liquidity, round_up=True)
    get0, get1 = amounts_for_liquidity(held.pool.sqrt_price_x96, *edges, liquidity, round_up=False)
    assert 0 < need0 < held.fees0
    assert 0 < need1 < held.fees1
    for act, error in (
        (calldata.increase(EDGE, liquidity, need0 - 1, need1), "MaximumAmountExceeded"),
        (calldata.increase(EDGE, liquidity, need0, need1 - 1), "MaximumAmountExceeded"),
        (calldata.decrease(EDGE, liquidity, get0 + 1, get1), "MinimumAmountInsufficient"),
        (calldata.decrease(EDGE, liquidity, get0, get1 + 1), "MinimumAmountInsufficient"),
    ):
        await stage.refuses(stage.acting(act, *closing(PAIR)), error)
    assert (await stage.tell(stage.acting(calldata.decrease(EDGE, liquidity, get0, get1), *closing(PAIR)))).success
    await stage.push("0.5")
    await stage.push("-0.5")
    held = stage.position(EDGE)
    need0, need1 = amounts_for_liquidity(held.pool.sqrt_price_x96, *edges, liquidity, round_up=True)
    assert held.fees0 > 0 < held.fees1
    more = calldata.increase(EDGE, liquidity, need0, need1)
    assert (await stage.tell(stage.acting(more, *closing(PAIR)))).success


async def test_a_plan_that_comes_too_late_or_finds_another_price(stage: Stage) -> None:
    (late,) = positions.close(await stage.terms(Bounds(deadline_seconds=11)), stage.position(INSIDE)).steps
    await stage.refuses(Call(late.to, late.value, late.data), "DeadlinePassed")
    pool = stage.pool(NATIVE_POOL)
    plan = minting.create(await stage.terms(), pool, around(pool, 20, 20), 2 * ETHER, 6_000 * 10**6)
    await stage.push("1.2")
    *first, last = plan.steps
    await stage.do(first)
    await stage.refuses(Call(last.to, last.value, last.data), "V4TooLittleReceived")
    pool = stage.pool(WETH_POOL)
    swap = minting.create(await stage.terms(), pool, around(pool, 20, 20), *_all_usdc(WETH_POOL, 6_000))
    await stage.push("1.2")
    *first, last = swap.steps
    await stage.do(first)
    await stage.refuses(Call(last.to, last.value, last.data), "V4TooLittleReceived")
    for step in build_revocations(await stage.terms(), CURRENCIES):
        assert (await stage.tell(Call(step.to, step.value, step.data))).success
    position = stage.position(EDGE)
    *_, add = positions.add(await stage.terms(), position, 10**18, 10**18).steps
    await stage.refuses(Call(add.to, add.value, add.data), "AllowanceExpired")


def _all_usdc(key: PoolKey, usdc: int) -> tuple[int, int]:
    return (usdc * 10**6, 0) if key.currency0 == USDC.address else (0, usdc * 10**6)


@pytest.mark.soak
async def test_allowances_are_used_up_and_end(stage: Stage) -> None:
    more = stage.acting(mint(stage, WETH_POOL), *closing(PAIR))
    grant = "approve(address,address,uint160,uint48)"

    async def permit(amount: int, until: int) -> None:
        assert (await stage.tell(Call(PERMIT2, 0, calldata.call(grant, USDC.address, MANAGER, amount, until)))).success

    async def allow(amount: int) -> None:
        assert (await stage.tell(Call(USDC.address, 0, calldata.approve(PERMIT2, amount)))).success

    await permit(1, FOREVER)
    await stage.refuses(more, "InsufficientAllowance")
    await permit(AMPLE, 0)
    await stage.refuses(more, "AllowanceExpired")
    await permit(AMPLE, stage.world.head.timestamp + 23)
    await stage.refuses(more, "AllowanceExpired")
    await permit(AMPLE, stage.world.head.timestamp + 24)
    assert (await stage.tell(more)).success
    await permit((1 << 160) - 1, FOREVER)
    await allow(1)
    await stage.refuses(more, "TRANSFER_FROM_FAILED")
    await allow(1 << 90)
    assert (await stage.tell(more)).success
    assert stage.world.books.permissions.allowance(WALLET, USDC.address, PERMIT2) < 1 << 90
    # More than the wallet has.
    huge = stage.acting(mint(stage, WETH_POOL, liquidity=10**22), *closing(PAIR))
    await stage.refuses(huge, "TRANSFER_FROM_FAILED")
    cut = calldata.settle(USDC.address, (1 << 160) + 5, payer_is_user=True)
    await stage.refuses(stage.acting(cut), "CurrencyNotSettled")


@pytest.mark.soak
async def test_ether_goes_where_it_is_sent_and_stays_where_nobody_sweeps(stage: Stage) -> None:
    new = mint(stage, NATIVE_POOL)
    await stage.refuses(stage.acting(new, *closing(COIN)), NO_REASON)
    await stage.refuses(stage.acting(new, calldata.settle_pair(*COIN), value=1), NO_REASON)
    assert (await stage.tell(stage.acting(new, calldata.settle_pair(*COIN), value=ETHER))).success
    assert stage.world.ledger.of(MANAGER, NATIVE) > 0
    await stage.refuses(stage.acting(calldata.sweep(NATIVE, CONTRACT)), "NativeTransferFailed")
    await stage.refuses(stage.acting(calldata.sweep(NATIVE, ROUTER)), "NativeTransferFailed")
    await stage.refuses(stage.acting(calldata.sweep(PERMIT2, WALLET)), NO_REASON)
    assert (
        await stage.tell(stage.acting(calldata.sweep(NATIVE, SENDER), calldata.sweep(USDC.address, SENDER)))
    ).success
    assert stage.world.ledger.of(MANAGER, NATIVE) == 0
    collect = calldata.decrease(INSIDE, 0, 0, 0)
    assert (await stage.tell(stage.acting(collect, calldata.take_pair(*COIN, CONTRACT)))).success
    pay_back = (calldata.settle(currency, ALL_IT_HAS, payer_is_user=False) for currency in COIN)
    half = calldata.decrease(INSIDE, 1, 0, 0)
    await stage.refuses(stage.acting(half, *pay_back), "CurrencyNotSettled")
    assert (
        await stage.tell(stage.acting(calldata.sweep(NATIVE, OTHERS), calldata.sweep(USDC.address, ROUTER)))
    ).success
    assert (await stage.tell(Call(OTHERS, 7, b""))).success
    assert (await stage.tell(Call(WALLET, 0, b""))).gas_used == 21_000
    assert (await stage.tell(Call(OTHERS, 0, b"\x01\x02"))).success, "an account without code takes any words"
    assert (await stage.tell(Call(WETH.address, 3 * ETHER, calldata.wrap()))).success
    for call in (
        Call(MANAGER, 5, b""),
        Call(PERMIT2, 5, b""),
        Call(WETH.address, 1, calldata.approve(PERMIT2, 5)),
        Call(USDC.address, 0, calldata.wrap()),
        Call(ROUTER, 0, calldata.modify_liquidities([], FOREVER)),
        Call(MANAGER, 0, stage.acting(collect).data[:-1]),
        Call(MANAGER, 0, stage.acting(calldata.EncodedAction(0x16, b"")).data),
    ):
        assert not (await stage.tell(call, "odd")).success


async def test_what_a_stranger_leaves_on_the_contracts_stops_a_position_of_two_tokens_and_costs_it_nothing(
    stage: Stage,
) -> None:
    """Maxima with room for it would let through what pulled liquidity does to the price."""
    collect = calldata.decrease(INSIDE, 0, 0, 0)
    cent = (calldata.take(USDC.address, CONTRACT, 10_000), *closing(COIN))
    assert (await stage.tell(stage.acting(collect, *cent))).success
    pool = stage.pool(WETH_POOL)
    plan = minting.create(await stage.terms(), pool, around(pool, 20, 20), 5 * ETHER, 12_388 * 10**6)
    *first, last = plan.steps
    await stage.do(first)
    held = [stage.world.ledger.of(WALLET, currency) for currency in CURRENCIES[1:]]
    await stage.refuses(Call(last.to, last.value, last.data), "MaximumAmountExceeded")
    assert [stage.world.ledger.of(WALLET, currency) for currency in CURRENCIES[1:]] == held
    assert (await stage.tell(stage.acting(calldata.sweep(USDC.address, SENDER)))).success
    await stage.do((last,))


async def test_the_router_swaps_and_mints_and_does_nothing_else(stage: Stage) -> None:
    def swap(amount: int = ETHER // 100, least: int = 0, key: PoolKey = NATIVE_POOL) -> calldata.EncodedAction:
        return calldata.swap_exact_in_single(key, True, amount, least, DEPLOYMENT.swap_struct)

    pay = calldata.settle(NATIVE, calldata.OPEN_DELTA, payer_is_user=True)
    get = calldata.take(USDC.address, SENDER, calldata.OPEN_DELTA)
    ether = ETHER // 100
    whole = calldata.v4_swap((swap(), pay, get))
    assert (await stage.tell(stage.routing(whole, value=ether), "swap")).success
    await stage.refuses(stage.routing(whole, value=ether - 1), NO_REASON)
    late = stage.routing(whole, value=ether, deadline=stage.world.head.timestamp + 11)
    await stage.refuses(late, "TransactionDeadlinePassed")
    greedy = calldata.v4_swap((swap(least=AMPLE), pay, get))
    await stage.refuses(stage.routing(greedy, value=ether), "V4TooLittleReceived")
    await stage.refuses(stage.routing(calldata.v4_swap((swap(amount=0), pay))), "SwapAmountCannotBeZero")
    elsewhere = calldata.v4_swap((swap(key=replace(NATIVE_POOL, fee=Pips(7))),))
    await stage.refuses(stage.routing(elsewhere), "PoolNotInitialized")
    await stage.refuses(stage.routing(calldata.v4_swap((swap(), get)), value=ether), "CurrencyNotSettled")
    await stage.refuses(stage.routing(calldata.v4_swap((mint(stage, NATIVE_POOL),))), "UnsupportedAction")
    await stage.refuses(stage.routing(calldata.v4_swap((calldata.sweep(NATIVE, WALLET),))), "UnsupportedAction")
    await stage.refuses(stage.acting(swap()), "UnsupportedAction")
    # The wallet never let the router move anything.
    move = calldata.permit2_transfer_from(USDC.address, MANAGER, 10**6)
    await stage.refuses(stage.routing(move), "AllowanceExpired")
    grant = "approve(address,address,uint160,uint48)"
    permit = Call(PERMIT2, 0, calldata.call(grant, USDC.address, ROUTER, 10**10, FOREVER))
    assert (await stage.tell(permit)).success
    assert (await stage.tell(stage.routing(move), "transfer")).success
    here = calldata.permit2_transfer_from(USDC.address, CONTRACT, 10**6)
    home = calldata.permit2_transfer_from(USDC.address, SENDER, 10**6)
    assert (await stage.tell(stage.routing(here, home, here))).success
    back = calldata.swap_exact_in_single(NATIVE_POOL, False, 10**6, 0, DEPLOYMENT.swap_struct)
    own = calldata.settle(USDC.address, ALL_IT_HAS, payer_is_user=False)
    coin = calldata.take(NATIVE, CONTRACT, calldata.OPEN_DELTA)
    await stage.refuses(stage.routing(calldata.v4_swap((own, back, coin))), "CurrencyNotSettled")
    rest = calldata.swap_exact_in_single(NATIVE_POOL, False, calldata.OPEN_DELTA, 0, DEPLOYMENT.swap_struct)
    assert (await stage.tell(stage.routing(calldata.v4_swap((own, rest, coin))))).success
    assert stage.world.ledger.of(ROUTER, NATIVE) > 0
    broke = calldata.settle(USDC.address, 5, payer_is_user=False)
    await stage.refuses(stage.routing(calldata.v4_swap((broke,))), "TRANSFER_FAILED")
    vast = calldata.settle(USDC.address, 1 << 200, payer_is_user=True)
    await stage.refuses(stage.routing(calldata.v4_swap((vast,))), "UnsafeCast")
    # All the router's ether goes along with a call of PositionManager.
    for act in (calldata.increase(EDGE, 1, 9, 9), calldata.decrease(EDGE, 0, 0, 0), calldata.burn_position(EDGE, 0, 0)):
        call = stage.routing(calldata.position_manager_call((act,), FOREVER))
        await stage.refuses(call, "OnlyMintAllowed")
    for late_inside in (stage.world.head.timestamp, 0):
        late = stage.routing(calldata.position_manager_call((), late_inside))
        await stage.refuses(late, "DeadlinePassed")
    to_manager = calldata.permit2_transfer_from(USDC.address, MANAGER, 3 * 10**9)
    paying = (calldata.settle(currency, 0, payer_is_user=False) for currency in COIN)
    sweeping = (calldata.sweep(currency, WALLET) for currency in COIN)
    minting_ = calldata.position_manager_call((mint(stage, NATIVE_POOL), *paying, *sweeping), FOREVER)
    minted = await stage.tell(stage.routing(to_manager, minting_, value=ETHER))
    assert minted.minted == (stage.world.books.next_id - 1,)
    given_to_router = calldata.position_manager_call((mint(stage, NATIVE_POOL, owner=SENDER),), FOREVER)
    await stage.refuses(stage.routing(given_to_router), "CurrencyNotSettled")
    # There the caller is the router: it owns what it mints, and has let nobody move its tokens.
    closes = calldata.position_manager_call((mint(stage, NATIVE_POOL), *closing(COIN)), FOREVER)
    await stage.refuses(stage.routing(closes, value=ETHER), "AllowanceExpired")
    kept = (
        mint(stage, NATIVE_POOL, owner=SENDER),
        *(calldata.settle(currency, 0, payer_is_user=False) for currency in COIN),
        *(calldata.sweep(NATIVE, WALLET), calldata.sweep(USDC.address, SENDER)),
    )
    keeping = await stage.tell(stage.routing(to_manager, calldata.position_manager_call(kept, FOREVER), value=ETHER))
    assert (keeping.success, keeping.minted) == (True, ())
    assert stage.world.nfts[stage.world.books.next_id - 1].owner == ROUTER
    assert stage.world.ledger.of(ROUTER, USDC.address) > 0
    assert (await stage.tell(stage.routing(value=3))).success, "no command: the ether stays with the router"
    assert stage.world.ledger.of(ROUTER, NATIVE) == 3


async def test_gas_below_the_need_is_spent_for_nothing(stage: Stage) -> None:
    (step,) = positions.close(await stage.terms(), stage.position(EDGE)).steps
    mined = await stage.tell(Call(step.to, step.value, step.data), gas=70_000)
    assert (mined.success, mined.gas_used) == (False, 70_000)


async def test_two_positions_in_one_transaction_share_its_gas(stage: Stage) -> None:
    await stage.push("1")
    both = stage.acting(
        calldata.decrease(EDGE, 0, 0, 0), calldata.decrease(INSIDE, 0, 0, 0), *closing(PAIR), *closing(COIN)
    )
    mined = await stage.tell(both)
    records = [await stage.chain.history(held, None) for held in (EDGE, INSIDE)]
    assert all(attribute(record).exact for record in records)
    assert sum(record.events[-1].gas for record in records) == mined.cost
    assert records[0].notes != ()
