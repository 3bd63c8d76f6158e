"""Who paid what: ordinary ways to pay for a position on the real contracts, each explained to the wei or labelled."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pytest
import rlp
from eth_abi.abi import encode
from eth_hash.auto import keccak

from zuno.adapters.prices.feeds import ChainGas, NativePrice, SeededFeed
from zuno.amm.identity import pool_id
from zuno.amm.model import PoolKey
from zuno.amm.ticks import tick_at_sqrt_price
from zuno.kernel.errors import Broken
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds
from zuno.lp.model.history import PositionEvent, PositionHistory, WalletSwap
from zuno.lp.model.market import Pair
from zuno.lp.plan import calldata
from zuno.lp.plan.calldata import EncodedAction
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.attribution import attribute
from zuno.lp.service.positions import LpDesk

LOWER, UPPER = -200_700, -199_980
LIQUIDITY = 10**16
ETHER = 10**18
INCREASE, DECREASE, BURN, TAKE_PORTION, WRAP, UNWRAP = 0x00, 0x01, 0x03, 0x10, 0x15, 0x16
V4_POSITION_MANAGER_CALL = 0x14
EVERYTHING = 1 << 255
MODIFIED = "0x" + keccak(b"ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)").hex()
FACTORY = bytes.fromhex("601480600a5f395ff3005f35602036038060205f375f5ff55f5260205ff3")
"""Creates what follows the salt in its call data, at the address CREATE2 gives it."""


class Purse:
    """What somebody really spent of a pair since it was opened."""

    def __init__(self, stage: Any, key: PoolKey, role: str = "wallet") -> None:
        self._now = lambda: tuple(stage.balance(side, role) for side in (key.currency0, key.currency1))
        self._before = self._now()

    def spent(self) -> tuple[int, int]:
        now = self._now()
        return self._before[0] - now[0], self._before[1] - now[1]


def wallet_paid(history: PositionHistory) -> tuple[int, int]:
    others = [(one.amount0, one.amount1) for one in history.externals]
    gas = sum(event.gas for event in history.events) if history.key.currency0 == NATIVE else 0
    return (
        sum(event.paid0 for event in history.events) - sum(one[0] for one in others) + gas,
        sum(event.paid1 for event in history.events) - sum(one[1] for one in others),
    )


async def told(desk: Any, token: int) -> PositionHistory:
    return await desk.chain(await desk.node()).history(token, None)


def tick_of(stage: Any, key: PoolKey) -> int:
    """Where the price is."""
    wanted = bytes.fromhex(pool_id(*calldata.key_tuple(key))[2:])
    return tick_at_sqrt_price(stage.ask(stage.info.deployment.state_view, calldata.call("getSlot0(bytes32)", wanted)))


def collecting(stage: Any, key: PoolKey, token: int) -> tuple[str, str, bytes, int]:
    steps = [stage.changing(DECREASE, token, 0), *stage.closing(key)]
    return "wallet", stage.info.deployment.position_manager, stage.modifying(steps), 0


async def test_ether_wrapped_on_the_way_into_a_weth_pool(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    wallet_state, coins, token = Purse(stage, key), stage.balance(NATIVE), stage.next_token()
    steps = [
        EncodedAction(WRAP, encode(("uint256",), (EVERYTHING,))),
        stage.minting(key, LOWER, UPPER, LIQUIDITY),
        calldata.settle(stage.weth, calldata.OPEN_DELTA, payer_is_user=False),
        calldata.settle(stage.usdc, calldata.OPEN_DELTA, payer_is_user=True),
        EncodedAction(UNWRAP, encode(("uint256",), (EVERYTHING,))),
        calldata.sweep(NATIVE, stage.wallet),
    ]
    stage.modify(steps, value=100 * ETHER)
    stage.trade(key)
    history = await told(desk, token)
    (mint,) = history.events
    side = 0 if key.currency0 == stage.weth else 1
    assert wallet_state.spent()[side] == 0  # no wrapped ether left the wallet
    assert (mint.paid0, mint.paid1)[side] == coins - stage.balance(NATIVE) - mint.gas > 0
    assert history.externals == ()
    assert attribute(history).exact, history.computed


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("native", [True, False], ids=["native", "erc20"])
async def test_positions_somebody_else_paid_for(desk: Any, native: bool) -> None:
    stage = desk.stage
    key = stage.native_pool if native else stage.weth_pool
    mine, theirs, token = Purse(stage, key), Purse(stage, key, "trader"), stage.next_token()
    mints = [stage.minting(key, LOWER, UPPER, size, stage.wallet) for size in (LIQUIDITY, LIQUIDITY // 3)]
    receipt = stage.modify([*mints, *stage.paying(key, "trader")], "trader", value=100 * ETHER if native else 0)
    gas = receipt.gas_used * receipt.gas_price if native else 0
    gift = theirs.spent()
    stage.trade(key)
    for size in (LIQUIDITY, LIQUIDITY // 3):
        history = await told(desk, token)
        (mint,) = history.events
        (given,) = history.externals
        assert mint.liquidity_delta == size  # type: ignore[union-attr]
        assert mint.gas == 0  # the giver's
        assert (given.amount0, given.amount1) == (mint.paid0, mint.paid1)
        assert wallet_paid(history) == mine.spent() == (0, 0)
        result = attribute(history)
        assert result.exact, history.computed
        assert result.in_token1.external == result.in_token1.flows > 0
        assert any("wallet's" in note for note in history.notes)
        gift, token = (gift[0] - mint.paid0, gift[1] - mint.paid1), token + 1
    assert gift == (gas, 0)


@pytest.mark.soak
async def test_two_touches_around_a_trade_in_one_block_are_told_apart_by_what_they_paid(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    manager = stage.info.deployment.position_manager
    grow = stage.modifying([stage.changing(INCREASE, token, LIQUIDITY), *stage.closing(key)])
    there, back = stage.swapping(key, True, ETHER), stage.swapping(key, False, 2_500 * 10**6)
    wallet_state = Purse(stage, key)
    stage.send_together(
        [("trader", *there), ("wallet", manager, grow, 0), ("trader", *back), collecting(stage, key, token)]
    )
    stage.send_together(
        [("trader", *there), collecting(stage, key, token), ("trader", *back), collecting(stage, key, token)]
    )
    stage.trade(key)
    history = await told(desk, token)
    _, grown, *collects = history.events
    assert grown.sqrt_price_x96 != collects[0].sqrt_price_x96  # type: ignore[union-attr]
    in_both = [(event.paid0, event.paid1) for event in collects]
    # A trade in one direction pays fees in one token: the split shows in who got which.
    assert [amounts[0] < 0 for amounts in in_both] == [False, True, False]
    assert [amounts[1] < 0 for amounts in in_both] == [True, False, True]
    assert sum(event.paid0 for event in history.events[1:]) == wallet_state.spent()[0]
    assert sum(event.paid1 for event in history.events[1:]) == wallet_state.spent()[1]
    assert attribute(history).exact, history.computed


@pytest.mark.soak
async def test_a_mint_and_a_collect_around_a_trade_in_one_block(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    token, manager = stage.next_token(), stage.info.deployment.position_manager
    mint = stage.modifying([stage.minting(key, LOWER, UPPER, LIQUIDITY), *stage.closing(key)])
    there = stage.swapping(key, True, ETHER)
    stage.send_together([("wallet", manager, mint, 0), ("trader", *there), collecting(stage, key, token)])
    stage.trade(key)
    history = await told(desk, token)
    result = attribute(history)
    assert result.exact, history.computed
    assert result.fees0 > 0


async def test_native_payments_that_share_a_block_are_computed_and_say_so(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.native_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    there = stage.swapping(key, True, ETHER)
    stage.send_together(
        [("trader", *there), collecting(stage, key, token), ("trader", *there), collecting(stage, key, token)]
    )
    history = await told(desk, token)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    assert any("split" in why for why in history.computed)


@pytest.mark.soak
async def test_other_transactions_of_the_wallet_in_the_block(desk: Any) -> None:
    """Their gas is known and does not blur the balance; a payment into the wallet does, and is said."""
    stage, key = desk.stage, desk.stage.native_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    approve = calldata.call("approve(address,uint256)", stage.info.deployment.permit2, 2**256 - 1)
    stage.send_together([collecting(stage, key, token), ("wallet", stage.usdc, approve, 0)])
    history = await told(desk, token)
    assert attribute(history).exact, history.computed
    other, manager = stage.next_token(), stage.info.deployment.position_manager
    mint = stage.modifying([stage.minting(key, LOWER, UPPER, LIQUIDITY), *stage.paying(key)])
    stage.send_together([collecting(stage, key, token), ("wallet", manager, mint, 100 * ETHER)])
    for one in (token, other):  # one balance for both, and both together explain it
        history = await told(desk, one)
        assert attribute(history).exact, history.computed
    stage.trade(key)
    stage.send_together([collecting(stage, key, token), ("trader", stage.wallet, b"", ETHER)])
    history = await told(desk, token)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    assert any("shares" in why or "balance" in why for why in history.computed)
    assert history.externals == ()


@pytest.mark.soak
async def test_an_emptied_ancestor_that_is_filled_again_is_another_story(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (old,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    new = stage.next_token()
    move = [stage.changing(DECREASE, old, LIQUIDITY), stage.minting(key, LOWER - 600, UPPER, LIQUIDITY // 2)]
    stage.modify([*move, *stage.closing(key)])
    stage.pass_time(1_000)
    stage.modify([stage.changing(INCREASE, old, LIQUIDITY // 5), *stage.closing(key)])
    stage.trade(key)
    history = await told(desk, new)
    assert [event.position_id for event in history.events if isinstance(event, PositionEvent)] == [old, old, new]
    assert attribute(history).exact, history.computed
    refilled = await told(desk, old)
    deltas = [event.liquidity_delta for event in refilled.events if isinstance(event, PositionEvent)]
    assert deltas == [LIQUIDITY, -LIQUIDITY, LIQUIDITY // 5]
    assert attribute(refilled).exact, refilled.computed


@pytest.mark.soak
async def test_a_hook_that_keeps_the_fees_is_seen_and_named(desk: Any) -> None:
    stage = desk.stage
    key = stage.key(stage.weth, stage.usdc, 500, 10, fee_taking_hook(stage))
    stage.initialize(key)
    stage.mint(key, LOWER, UPPER, LIQUIDITY, role="trader")
    wallet_state = Purse(stage, key)
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    stage.modify([stage.changing(DECREASE, token, LIQUIDITY // 2), *stage.closing(key)])
    history = await told(desk, token)
    (kept,) = history.externals
    assert min(-kept.amount0, -kept.amount1) > 0
    assert wallet_paid(history) == wallet_state.spent()
    result = attribute(history)
    assert (result.fees0, result.fees1) == (-kept.amount0, -kept.amount1)  # all of them
    assert result.exact, history.computed
    stage.trade(key)
    history = await told(desk, token)
    assert any("burn" in note for note in history.notes)
    assert attribute(history).exact, history.computed


async def test_a_token_that_keeps_part_of_a_transfer_and_does_not_say_so(desk: Any) -> None:
    stage = desk.stage
    manager = stage.info.deployment.position_manager
    token0 = fee_on_transfer_token(stage)
    key = stage.key(token0, stage.usdc, 3000, 60)
    stage.initialize(key, 1 << 96)
    wallet_state, token = Purse(stage, key), stage.next_token()
    steps = [
        calldata.settle(token0, 10**15, payer_is_user=True),  # a hundredth of it never arrives
        stage.minting(key, -600, 600, 10**14),
        *stage.closing(key),
    ]
    stage.send("wallet", manager, stage.modifying(steps))
    history = await told(desk, token)
    side = 0 if key.currency0 == token0 else 1
    (lost,) = history.externals
    assert (lost.amount0, lost.amount1)[side] == -(10**13)
    assert wallet_paid(history) == wallet_state.spent()
    assert attribute(history).exact, history.computed


async def test_gas_and_a_swap_for_two_positions_are_charged_once_between_them(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.native_pool
    stage.pass_time(1_000)
    swap = stage.swap(key, True, ETHER // 7, role="wallet")
    one, two = stage.mint(key, LOWER, UPPER, LIQUIDITY, count=2)
    stage.trade(key)
    histories = [await told(desk, token) for token in (one, two)]
    for history in histories:
        assert [type(event) for event in history.events] == [WalletSwap, PositionEvent]
        assert any("equally" in note for note in history.notes)
        assert attribute(history).exact, history.computed
    swaps = [history.events[0] for history in histories]
    assert sum(event.swapped0 for event in swaps) == ETHER // 7  # type: ignore[misc, union-attr]
    assert sum(event.gas for event in swaps) == swap.gas_used * swap.gas_price
    assert abs(swaps[0].gas - swaps[1].gas) <= 1


@pytest.mark.soak
async def test_a_swap_belongs_to_the_first_deposit_after_it(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    stage.swap(key, True, ETHER // 7, role="wallet")
    (first,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    second, manager = stage.next_token(), stage.info.deployment.position_manager
    mint = stage.modifying([stage.minting(key, LOWER, UPPER, LIQUIDITY), *stage.paying(key)])
    after_both = stage.swapping(key, True, ETHER // 7)
    stage.send_together([("wallet", manager, mint, 0), ("wallet", *after_both)])
    assert [type(event) for event in (await told(desk, first)).events] == [WalletSwap, PositionEvent]
    assert [type(event) for event in (await told(desk, second)).events] == [PositionEvent]


async def test_a_swap_of_more_than_the_deposit_took_was_not_made_for_it(desk: Any) -> None:
    """Much ether sold for other reasons a block before: none of its cost is this small position's."""
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    stage.swap(key, False, 300 * 10**6, role="wallet")
    stage.swap(key, True, 20 * ETHER, role="wallet")
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    history = await told(desk, token)
    assert [type(event) for event in history.events] == [WalletSwap, PositionEvent]
    (swap, _) = history.events
    assert max(swap.paid0, swap.paid1) == 300 * 10**6
    assert any("deposit" in note for note in history.notes)
    assert any("prepared" in note for note in history.notes)
    assert attribute(history).in_token1.residual == 0


async def test_swaps_do_not_prepare_what_somebody_else_deposits(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    stage.swap(key, False, 300 * 10**6, role="wallet")
    token = stage.next_token()
    stage.modify([stage.minting(key, LOWER, UPPER, LIQUIDITY, stage.wallet), *stage.paying(key, "trader")], "trader")
    history = await told(desk, token)
    assert [type(event) for event in history.events] == [PositionEvent]
    assert attribute(history).in_token1.residual == 0


@pytest.mark.parametrize(("waited", "counts"), [(899, True), (900, False)])
async def test_how_long_before_a_deposit_a_swap_counts(desk: Any, waited: int, counts: bool) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    stage.swap(key, False, 300 * 10**6, role="wallet")
    swapped = stage.chain.head.number
    stage.pass_time(waited - 12)
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    node = await desk.node()
    history = await desk.chain(node).history(token, None)
    assert [type(event) for event in history.events] == [WalletSwap] * counts + [PositionEvent]
    # Nothing older than what counts is searched for changes of liquidity.
    asked = [request["params"][0] for body in node.seen for request in body if request["method"] == "eth_getLogs"]
    changes = [int(query["fromBlock"], 16) for query in asked if MODIFIED in query["topics"][:1]]
    assert changes
    assert min(changes) > swapped - counts


async def test_a_swap_of_other_currencies_in_the_transaction_is_no_swap_of_the_position(desk: Any) -> None:
    """Ether becomes dollars in another pool, and the dollars go into this one: not an exchange of its two tokens."""
    stage, key = desk.stage, desk.stage.weth_pool
    manager, token = stage.info.deployment.position_manager, stage.next_token()
    swap = [
        calldata.swap_exact_in_single(stage.native_pool, True, ETHER, 0, stage.info.deployment.swap_struct),
        calldata.settle(NATIVE, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(stage.usdc, manager, calldata.OPEN_DELTA),
    ]
    upper = tick_of(stage, key) // key.tick_spacing * key.tick_spacing - 100
    deposit = [
        stage.minting(key, upper - 100, upper, LIQUIDITY // 100),  # below the price: dollars alone
        calldata.settle(stage.usdc, calldata.OPEN_DELTA, payer_is_user=False),
        calldata.sweep(stage.usdc, stage.wallet),
    ]
    commands = [calldata.v4_swap(swap), (V4_POSITION_MANAGER_CALL, stage.modifying(deposit))]
    wallet_state = Purse(stage, key)
    stage.send("wallet", stage.info.deployment.universal_router, calldata.execute(commands, 2**40), value=ETHER)
    history = await told(desk, token)
    (mint,) = history.events
    assert isinstance(mint, PositionEvent)
    (others,) = history.externals
    side = 0 if key.currency0 == stage.usdc else 1
    assert (others.amount0, others.amount1)[side] == (mint.paid0, mint.paid1)[side] - wallet_state.spent()[side]
    assert attribute(history).adds_up
    assert attribute(history).in_token1.swap_cost == 0


async def test_somebody_else_s_swap_in_the_transaction_of_a_mint_is_not_the_wallet_s(desk: Any) -> None:
    """A stranger swaps and gives the wallet a position in one go: a gift, and no swap cost."""
    stage, key = desk.stage, desk.stage.weth_pool
    manager, token = stage.info.deployment.position_manager, stage.next_token()
    zero_for_one = key.currency0 == stage.usdc
    swap = [
        calldata.swap_exact_in_single(key, zero_for_one, 40_000 * 10**6, 0, stage.info.deployment.swap_struct),
        calldata.settle(stage.usdc, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(stage.weth, manager, calldata.OPEN_DELTA),
    ]
    deposit = [
        stage.minting(key, -190_000, -189_000, LIQUIDITY // 100, stage.wallet),  # above the price: ether alone
        calldata.settle(stage.weth, calldata.OPEN_DELTA, payer_is_user=False),
        calldata.sweep(stage.weth, stage.trader),
    ]
    commands = [calldata.v4_swap(swap), (V4_POSITION_MANAGER_CALL, stage.modifying(deposit))]
    stage.send("trader", stage.info.deployment.universal_router, calldata.execute(commands, 2**40))
    stage.swap(key, not zero_for_one, 20 * ETHER)  # about where it was
    history = await told(desk, token)
    (mint,) = history.events
    assert isinstance(mint, PositionEvent)
    assert [(one.amount0, one.amount1) for one in history.externals] == [(mint.paid0, mint.paid1)]
    assert attribute(history).exact, history.computed


async def test_a_swap_that_pays_somebody_a_share_is_still_the_wallet_s(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    wallet_state = Purse(stage, key)
    swap = [
        calldata.swap_exact_in_single(
            key, key.currency0 == stage.usdc, 1_000 * 10**6, 0, stage.info.deployment.swap_struct
        ),
        calldata.settle(stage.usdc, calldata.OPEN_DELTA, payer_is_user=True),
        EncodedAction(TAKE_PORTION, encode(("address", "address", "uint256"), (stage.weth, stage.trader, 100))),
        calldata.take(stage.weth, calldata.SENDER, calldata.OPEN_DELTA),
    ]
    data = calldata.execute([calldata.v4_swap(swap)], 2**40)
    stage.send("wallet", stage.info.deployment.universal_router, data)
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    history = await told(desk, token)
    swapped, _ = history.events
    assert isinstance(swapped, WalletSwap)
    (share,) = history.externals
    side = 0 if key.currency0 == stage.weth else 1
    got, kept = -(swapped.swapped0, swapped.swapped1)[side], -(share.amount0, share.amount1)[side]
    assert kept == got // 100 > 0
    assert wallet_paid(history) == wallet_state.spent()
    result = attribute(history)
    assert result.exact, history.computed
    assert result.in_token1.swap_cost > 0


async def test_only_the_pair_s_own_exchange_is_the_swap_made_for_a_deposit(desk: Any) -> None:
    stage, key, struct = desk.stage, desk.stage.weth_pool, desk.stage.info.deployment.swap_struct
    stage.pass_time(1_000)
    swaps = [
        calldata.swap_exact_in_single(key, key.currency0 == stage.usdc, 1_000 * 10**6, 0, struct),
        calldata.swap_exact_in_single(stage.native_pool, True, ETHER // 10, 0, struct),
        calldata.settle(NATIVE, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.settle(stage.usdc, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(stage.weth, calldata.SENDER, calldata.OPEN_DELTA),
    ]
    data = calldata.execute([calldata.v4_swap(swaps)], 2**40)
    stage.send("wallet", stage.info.deployment.universal_router, data, value=ETHER // 10)
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    history = await told(desk, token)
    swap, _ = history.events
    assert isinstance(swap, WalletSwap)
    assert (swap.swapped0, swap.swapped1)[key.currency1 == stage.usdc] == 1_000 * 10**6
    assert attribute(history).adds_up


@pytest.mark.soak
async def test_one_position_closed_for_two_is_followed_by_neither(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    (old,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    one = stage.next_token()
    mints = [stage.minting(key, LOWER - 600, UPPER + shift, LIQUIDITY // 4) for shift in (0, 600)]
    stage.modify([stage.changing(BURN, old), *mints, *stage.closing(key)])
    for token in (one, one + 1):
        history = await told(desk, token)
        assert [event.position_id for event in history.events] == [token]  # type: ignore[union-attr]
        assert any(f"position {old} " in note for note in history.notes)
        assert attribute(history).adds_up
    stage.burn(key, one)
    for token in stage.mint(key, LOWER, UPPER, LIQUIDITY, count=2):  # the same in two transactions
        history = await told(desk, token)
        assert [event.position_id for event in history.events] == [token]  # type: ignore[union-attr]
        assert any(f"position {one} " in note for note in history.notes)


async def test_a_rebalance_in_two_transactions_with_a_swap_between(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    wallet_state = Purse(stage, key)
    (old,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    stage.burn(key, old)
    stage.trade(key)
    stage.swap(key, False, 500 * 10**6, role="wallet")
    stage.pass_time(300)
    (new,) = stage.mint(key, LOWER - 600, UPPER, LIQUIDITY // 3)
    stage.trade(key)
    history = await told(desk, new)
    kinds = [event.position_id if isinstance(event, PositionEvent) else "swap" for event in history.events]
    assert kinds == [old, old, "swap", new]
    assert wallet_paid(history) == wallet_state.spent()
    assert any(re.search(rf"\bposition {old} .*\bpredecessor\b", note) for note in history.notes)
    assert attribute(history).exact, history.computed
    (later,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)  # the closing has found its successor already
    assert [event.position_id for event in (await told(desk, later)).events] == [later]  # type: ignore[union-attr]
    stage.burn(key, later)
    stage.pass_time(900)
    (much_later,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    assert [event.position_id for event in (await told(desk, much_later)).events] == [much_later]  # type: ignore[union-attr]


@pytest.mark.soak
async def test_a_position_that_somebody_else_closed_is_nobody_s_predecessor(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    (old,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    allow = calldata.call("approve(address,uint256)", stage.trader, old)
    stage.send("wallet", stage.info.deployment.position_manager, allow)
    home = calldata.take_pair(key.currency0, key.currency1, stage.wallet)
    stage.modify([stage.changing(BURN, old), home], "trader")
    (new,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    assert [event.position_id for event in (await told(desk, new)).events] == [new]  # type: ignore[union-attr]
    mint, burn = (await told(desk, old)).events
    assert mint.gas > 0
    assert burn.gas == 0  # the operator's


@pytest.mark.soak
async def test_what_the_wallet_donates_in_the_same_transaction_is_its_own_and_no_payment_of_others(desk: Any) -> None:
    """It collects and gives dollars to the pool at once, through a contract that lives for one transaction."""
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    gift, manager = 1_000 * 10**6, stage.info.deployment.position_manager
    router = stage.create(
        compiled(stage, "v4-core/out/PoolDonateTest.sol/PoolDonateTest.json")
        + encode(("address",), (stage.info.deployment.pool_manager,))
    )
    nonce = stage.chain.nonce(bytes.fromhex(stage.wallet[2:]))
    helper = "0x" + keccak(rlp.encode([bytes.fromhex(stage.wallet[2:]), nonce + 2]))[12:].hex()
    stage.send("wallet", stage.usdc, calldata.call("approve(address,uint256)", helper, gift))
    stage.send("wallet", manager, calldata.call("approve(address,uint256)", helper, token))
    home = calldata.take_pair(key.currency0, key.currency1, stage.wallet)
    amounts = (gift, 0) if key.currency0 == stage.usdc else (0, gift)
    donate = f"donate({calldata.KEY},uint256,uint256,bytes)"
    wallet_state = Purse(stage, key)
    stage.send(
        "wallet",
        None,
        calling(
            (stage.usdc, calldata.call("transferFrom(address,address,uint256)", stage.wallet, helper, gift)),
            (stage.usdc, calldata.call("approve(address,uint256)", router, gift)),
            (manager, stage.modifying([stage.changing(DECREASE, token, 0), home])),
            (router, calldata.call(donate, calldata.key_tuple(key), *amounts, b"")),
        ),
    )
    spent = wallet_state.spent()
    history = await told(desk, token)
    assert history.externals == ()
    assert attribute(history).exact, history.computed
    collected = history.events[-1]
    assert (collected.paid0 + amounts[0], collected.paid1 + amounts[1]) == spent


# -- what a residual is for


@pytest.mark.soak
async def test_a_burn_that_would_pay_a_wei_less_is_a_residual(desk: Any) -> None:
    """Nothing was touched in between, and still a wrong worth shows; what else is known of the record is said."""
    stage, key = desk.stage, desk.stage.weth_pool
    token, _ = stage.mint(key, LOWER, UPPER, LIQUIDITY, count=2)
    node = await desk.node()
    view = await LpDesk(desk.chain(node), no_feeds).pnl(str(token), None)
    assert view.exact
    assert view.computed == ()
    pool_manager = stage.info.deployment.pool_manager
    honest = node.answer

    def a_wei_less(body: bytes) -> bytes:
        reply = json.loads(honest(body))
        for block in reply["result"] if "eth_simulateV1" in body.decode() else ():
            for log in block["calls"][0]["logs"]:
                if log["address"] == stage.usdc and log["topics"][1].endswith(pool_manager[2:]):
                    log["data"] = f"0x{int(log['data'], 16) - 1:064x}"
        return json.dumps(reply).encode()

    node.answer = a_wei_less
    result = attribute(await desk.chain(node).history(token, None))
    assert not result.adds_up
    assert max(abs(result.in_token0.residual), abs(result.in_token1.residual)) >= 1
    with pytest.raises(Broken, match=r"unexplained.*equally"):
        await LpDesk(desk.chain(node), no_feeds).pnl(str(token), None)


async def test_without_pretended_burns_the_worth_is_computed_and_nothing_is_called_exact(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)

    def old_node(number: int, requests: list[dict[str, Any]]) -> Any:
        request = requests[0]
        if request["method"] == "eth_simulateV1":
            return desk.reply(request, error={"code": -32601, "message": "the method does not exist"})
        return None

    view = await LpDesk(desk.chain(await desk.node(old_node)), no_feeds).pnl(str(token), None)
    assert (view.in_token0.residual, view.in_token1.residual) == ("0", "0")
    assert not view.exact
    (why,) = view.computed
    assert "eth_simulateV1" in why


async def test_a_payment_the_pool_s_arithmetic_does_not_know_is_a_residual(desk: Any) -> None:
    """A wei more reached the pools than the change of liquidity costs."""
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    node = await desk.node()
    honest = node.answer

    def a_wei_more(body: bytes) -> bytes:
        reply = json.loads(honest(body))
        for log in reply["result"]["logs"] if b"TransactionReceipt" in body else ():
            if log["address"] == stage.usdc:
                log["data"] = f"0x{int(log['data'], 16) + 1:064x}"
        return json.dumps(reply).encode()

    node.answer = a_wei_more
    assert not attribute(await desk.chain(node).history(token, None)).adds_up


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("native", [True, False], ids=["native", "erc20"])
async def test_a_receipt_that_understates_the_gas_is_noticed(desk: Any, native: bool) -> None:
    stage = desk.stage
    key = stage.native_pool if native else stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    node = await desk.node()
    honest = node.answer
    cheap = re.compile(rb'"gasUsed": ?"0x[0-9a-f]+"')
    node.answer = lambda body: (
        cheap.sub(b'"gasUsed":"0x1"', honest(body)) if b"TransactionReceipt" in body else honest(body)
    )
    history = await desk.chain(node).history(token, None)
    result = attribute(history)
    assert not result.exact
    if native:
        # One balance holds gas and payment: it cannot say which of them was wrong.
        assert any("gas" in why for why in history.computed)
    else:
        assert not result.adds_up


@pytest.mark.soak
async def test_a_receipt_that_overstates_the_gas_is_labelled(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    node = await desk.node()
    honest = node.answer
    node.answer = lambda body: honest(body).replace(b'"effectiveGasPrice"', b'"l1Fee":"0x3e8","effectiveGasPrice"')
    history = await desk.chain(node).history(token, None)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    assert any("receipt" in why for why in history.computed)


@pytest.mark.soak(every=3)
@pytest.mark.parametrize(
    ("by_scalar", "fees"),
    [
        (2, {"operatorFeeScalar": hex(2_000_000)}),
        (100, {"operatorFeeScalar": "0x1", "daFootprintGasScalar": hex(400)}),
        (0, {}),
    ],
    ids=["isthmus", "jovian", "constant alone"],
)
async def test_what_a_rollup_s_operator_takes_is_gas(desk: Any, by_scalar: int, fees: dict[str, str]) -> None:
    """Beside a lower gas price the wallet pays `by_scalar` wei per gas, and one more as a constant."""
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)

    def rollup(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_getTransactionReceipt":
            receipt = reply["result"]
            receipt |= {
                "effectiveGasPrice": hex(int(receipt["effectiveGasPrice"], 16) - by_scalar - 1),
                "operatorFeeConstant": receipt["gasUsed"],
                **fees,
            }
        return reply

    plain = await told(desk, token)
    history = await desk.chain(await desk.bent(rollup)).history(token, None)
    assert [event.gas for event in history.events] == [event.gas for event in plain.events]
    assert attribute(history).exact, history.computed


@pytest.mark.soak
async def test_gas_that_cannot_be_told_from_the_wallet_s_other_payments_is_labelled(desk: Any) -> None:
    """Its coin fell by more than the receipt says, because it sent some elsewhere in the same block."""
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    stage.send_together([collecting(stage, key, token), ("wallet", stage.trader, b"", ETHER)])
    history = await told(desk, token)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    assert any("receipt" in why for why in history.computed)


async def test_native_money_of_others_beside_another_use_of_the_pools_is_labelled(desk: Any) -> None:
    """One balance of PoolManager for a gift and a stranger's swap in one block."""
    stage, key = desk.stage, desk.stage.native_pool
    manager, token = stage.info.deployment.position_manager, stage.next_token()
    gift = stage.modifying([stage.minting(key, LOWER, UPPER, LIQUIDITY), *stage.paying(key, "trader")])
    stage.send_together([("trader", manager, gift, 100 * ETHER), ("trader", *stage.swapping(key, True, ETHER))])
    history = await told(desk, token)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    assert any("balance" in why for why in history.computed)


async def test_a_token_whose_events_do_not_tell_what_it_moved_is_labelled(desk: Any) -> None:
    """Its transfers, the pools' arithmetic and PoolManager's balance are three different numbers."""
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)  # no swap of another test has prepared this deposit
    middle = tick_of(stage, key) // key.tick_spacing * key.tick_spacing
    (token,) = stage.mint(key, middle - 300, middle + 300, LIQUIDITY)
    head, holder = "0x" + stage.chain.head.hash.hex(), stage.info.deployment.pool_manager[2:]

    def bend(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_getTransactionReceipt":
            for log in reply["result"]["logs"]:
                if log["address"] == stage.usdc:
                    log["data"] = f"0x{int(log['data'], 16) + 1:064x}"
        if asked["method"] == "eth_call" and asked["params"][0]["to"].lower() == stage.usdc:
            asks_now = asked["params"][1] == {"blockHash": head, "requireCanonical": True}
            if asks_now and asked["params"][0]["data"].endswith(holder):
                return {**reply, "result": f"0x{int(reply['result'], 16) + 5:064x}"}
        return reply

    history = await desk.chain(await desk.bent(bend)).history(token, None)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    assert any("moved" in why for why in history.computed)


# -- gas in a pool that cannot price it


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("dollars_are", [0, 1])
async def test_gas_is_priced_from_outside_where_the_pool_cannot(desk: Any, dollars_are: int) -> None:
    stage = desk.stage
    other = stage.token_named("AAA", 18)
    while (int(other, 16) < int(stage.usdc, 16)) != bool(dollars_are):
        other = stage.token_named("AAA", 18)
    for call in (
        calldata.call("mint(address,uint256)", stage.wallet, 10**24),
        calldata.call("approve(address,uint256)", stage.info.deployment.permit2, 2**256 - 1),
    ):
        stage.send("wallet", other, call)
    manager = stage.info.deployment.position_manager
    grant = calldata.call("approve(address,address,uint160,uint48)", other, manager, 2**160 - 1, 2**48 - 1)
    stage.send("wallet", stage.info.deployment.permit2, grant)
    key = stage.key(other, stage.usdc, 3000, 60)
    stage.initialize(key, 3 << 96)  # nine of token1 for one of token0, in base units
    (token,) = stage.mint(key, 21_000, 23_400, 10**12)
    chain = desk.chain(await desk.node())
    closes = ((Seconds(stage.chain.head.timestamp - 60), Fraction(2_000)),)

    def feeds(_: HexId) -> Feeds:
        prices = SeededFeed(Pair("ETH", "USDC"), lambda: closes)
        return Feeds(prices, ChainGas(chain), NativePrice(prices, chain.info.native))

    view = await LpDesk(chain, feeds).pnl(str(token), None)
    assert view.gas_valued
    in_dollars = (view.in_token0, view.in_token1)[dollars_are]
    assert float(in_dollars.gas) == pytest.approx(int(view.gas_wei) / 10**18 * 2_000, abs=1e-6)
    assert any("coin" in note for note in view.notes)
    assert view.exact, view.computed
    closes = ()  # type: ignore[assignment]
    unpriced = await LpDesk(chain, feeds).pnl(str(token), None)
    assert not unpriced.gas_valued
    assert unpriced.in_token1.gas == "0"
    assert any("gas" in note for note in unpriced.notes)


def no_feeds(_: HexId) -> Feeds:
    raise AssertionError("a pool of ether prices its own gas")


# -- contracts of strangers


def calling(*calls: tuple[str, bytes]) -> bytes:
    """Init code that makes these calls one after the other, and fails if one of them does."""

    def push(value: int) -> bytes:
        return b"\x63" + value.to_bytes(4, "big")

    def code(data_at: int) -> bytes:
        made = b""
        for target, payload in calls:
            size = push(len(payload))
            made += size + push(data_at) + b"\x5f\x39"  # CODECOPY to memory
            made += b"\x5f\x5f" + size + b"\x5f\x5f\x73" + bytes.fromhex(target[2:]) + b"\x5a\xf1"  # CALL
            made += push(len(made) + 9) + b"\x57\x5f\x5f\xfd\x5b"  # go on, or REVERT
            data_at += len(payload)
        return made + b"\x00"

    return code(len(code(0))) + b"".join(payload for _, payload in calls)


def fee_taking_hook(stage: Any) -> Address:
    """v4-core's hook that takes all fees on liquidity changes, at an address whose last bits say so."""
    flags = 1 << 10 | 1 << 8 | 1 << 1 | 1 << 0
    manager = encode(("address",), (stage.info.deployment.pool_manager,))
    init = compiled(stage, "v4-core/out/LPFeeTakingHook.sol/LPFeeTakingHook.json") + manager
    factory, code_hash = stage.create(FACTORY), keccak(init)
    for salt in range(1 << 20):
        seed = b"\xff" + bytes.fromhex(factory[2:]) + salt.to_bytes(32, "big") + code_hash
        address = keccak(seed)[12:]
        if int.from_bytes(address[-2:], "big") & 0x3FFF == flags:
            stage.send("trader", factory, salt.to_bytes(32, "big") + init)
            return Address("0x" + address.hex())
    raise AssertionError("no such address")


def fee_on_transfer_token(stage: Any) -> Address:
    """v4-periphery's token whose transferFrom delivers less than its event says."""
    manager, permit2 = stage.info.deployment.position_manager, stage.info.deployment.permit2
    init = compiled(stage, "v4-periphery/foundry-out/MockFeeOnTransfer.sol/MockFOT.json")
    token: Address = stage.create(init + encode(("address",), (manager,)))
    stage.send("wallet", token, calldata.call("mint(address,uint256)", stage.wallet, 10**24))
    stage.send("wallet", token, calldata.call("setFee(uint256)", 100))
    stage.send("wallet", token, calldata.call("approve(address,uint256)", permit2, 2**256 - 1))
    grant = calldata.call("approve(address,address,uint160,uint48)", token, manager, 2**160 - 1, 2**48 - 1)
    stage.send("wallet", permit2, grant)
    return token


def compiled(stage: Any, path: str) -> bytes:
    artifact = json.loads((stage.artifacts.scope / path).read_text())
    return bytes.fromhex(artifact["bytecode"]["object"].removeprefix("0x"))
