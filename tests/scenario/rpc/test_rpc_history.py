"""Histories on the real contracts: the wallet's own balances are the judge, and attribution leaves no residual."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode

from zuno.amm.model import PoolKey
from zuno.kernel.errors import NotFound, Unavailable, UsageError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Seconds
from zuno.lp.model.history import PositionEvent, PositionHistory, WalletSwap
from zuno.lp.plan import calldata
from zuno.lp.plan.calldata import EncodedAction
from zuno.lp.rules.attribution import attribute

LIQUIDITY = 10**16
ETHER = 10**18
INCREASE, DECREASE, BURN, TAKE_PAIR = 0x00, 0x01, 0x03, 0x11
PERMIT2_TRANSFER_FROM, V4_POSITION_MANAGER_CALL = 0x02, 0x14


class Purse:
    """What the wallet really spent of a pair since it was opened, and what gas cost it."""

    def __init__(self, stage: Any, key: PoolKey) -> None:
        self._stage, self._key = stage, key
        self._before = self._now()

    def spent(self) -> tuple[int, int]:
        now = self._now()
        return self._before[0] - now[0], self._before[1] - now[1]

    def _now(self) -> tuple[int, int]:
        return self._stage.balance(self._key.currency0), self._stage.balance(self._key.currency1)


def assert_explains(history: PositionHistory, wallet_state: Purse) -> None:
    """Every wei that left or reached the wallet is in the record, and the record explains itself."""
    spent0, spent1 = wallet_state.spent()
    gas = sum(event.gas for event in history.events) if history.key.currency0 == NATIVE else 0
    others0, others1 = (sum(getattr(one, side) for one in history.externals) for side in ("amount0", "amount1"))
    assert sum(event.paid0 for event in history.events) - others0 + gas == spent0
    assert sum(event.paid1 for event in history.events) - others1 == spent1
    told = attribute(history)
    assert told.adds_up
    assert told.exact, history.computed


def both_pools(stage: Any) -> list[tuple[PoolKey, int, int]]:
    return [(stage.native_pool, -200_700, -199_980), (stage.weth_pool, -200_700, -199_980)]


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("which", [0, 1], ids=["native", "erc20"])
async def test_a_whole_life_is_told_to_the_wei(desk: Any, which: int) -> None:
    stage = desk.stage
    key, lower, upper = both_pools(stage)[which]
    value = 100 * ETHER if key.currency0 == NATIVE else 0
    wallet_state = Purse(stage, key)
    (token,) = stage.mint(key, lower, upper, LIQUIDITY)
    stage.trade(key, times=2)
    stage.modify([stage.changing(INCREASE, token, LIQUIDITY // 3), *stage.paying(key)], value=value)
    stage.trade(key)
    stage.modify([stage.changing(DECREASE, token, 0), *stage.closing(key)])  # collects
    stage.trade(key)
    stage.modify([stage.changing(DECREASE, token, LIQUIDITY // 2), *stage.closing(key)])
    chain = desk.chain(await desk.node())
    open_history = await chain.history(token, None)
    assert_explains(open_history, wallet_state)
    assert open_history.end is not None
    (position,) = (await chain.positions([token])).positions
    assert open_history.end.worth0 == position.amount0 + position.fees0
    stage.trade(key)
    stage.burn(key, token)
    history = await chain.history(token, None)
    assert history.end is None
    assert history.closed.number == stage.chain.head.number
    assert [event.liquidity_delta for event in history.events if isinstance(event, PositionEvent)] == [
        *(LIQUIDITY, LIQUIDITY // 3, 0, -(LIQUIDITY // 2)),
        -(LIQUIDITY + LIQUIDITY // 3 - LIQUIDITY // 2),
    ]
    assert history.notes == ()
    assert_explains(history, wallet_state)


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("which", [0, 1], ids=["native", "erc20"])
@pytest.mark.parametrize("closing", [BURN, DECREASE], ids=["burn", "decrease"])
async def test_a_rebalance_is_followed_back_and_nothing_is_lost_in_netting(desk: Any, which: int, closing: int) -> None:
    stage = desk.stage
    key, lower, upper = both_pools(stage)[which]
    value = 100 * ETHER if key.currency0 == NATIVE else 0
    wallet_state = Purse(stage, key)
    (old,) = stage.mint(key, lower, upper, LIQUIDITY)
    stage.trade(key, times=2)
    new = stage.next_token()
    steps = [
        stage.changing(closing, old, LIQUIDITY if closing == DECREASE else 0),
        stage.minting(key, lower - 600, upper - 600, LIQUIDITY // 2),
        *stage.closing(key),
    ]
    stage.modify([*steps, calldata.sweep(NATIVE, stage.wallet)] if value else steps, value=value)
    stage.trade(key)
    history = await desk.chain(await desk.node()).history(new, None)
    touches = [event for event in history.events if isinstance(event, PositionEvent)]
    assert [touch.position_id for touch in touches] == [old, old, new]
    assert [bool(touch.gas) for touch in touches] == [True, True, False]  # once per transaction
    assert history.notes == ()
    assert_explains(history, wallet_state)


@pytest.mark.soak
async def test_a_second_rebalance_and_a_window_that_opens_between_them(desk: Any) -> None:
    stage = desk.stage
    key, lower, upper = both_pools(stage)[1]
    (first,) = stage.mint(key, lower, upper, LIQUIDITY)
    stage.trade(key)
    second = stage.next_token()
    mint_second = stage.minting(key, lower - 600, upper + 600, LIQUIDITY // 2)
    stage.modify([stage.changing(BURN, first), mint_second, *stage.closing(key)])
    stage.trade(key)
    stage.pass_time(3600)
    chain = desk.chain(await desk.node())
    middle = stage.chain.head.timestamp
    (then,) = (await chain.positions([second])).positions
    wallet_state = Purse(stage, key)
    third = stage.next_token()
    mint_third = stage.minting(key, lower, upper, LIQUIDITY // 2)
    stage.modify([stage.changing(BURN, second), mint_third, *stage.closing(key)])
    stage.trade(key)
    history = await chain.history(third, Seconds(middle + 5))
    assert history.start is not None
    assert history.start.position_id == second
    assert history.start.block == then.block == history.opened
    assert (history.start.worth0, history.start.worth1) == (then.amount0 + then.fees0, then.amount1 + then.fees1)
    assert [event.position_id for event in history.events if isinstance(event, PositionEvent)] == [second, third]
    assert_explains(history, wallet_state)
    whole = await chain.history(third, None)
    lineage = [event.position_id for event in whole.events if isinstance(event, PositionEvent)]
    assert lineage == [first, first, second, second, third]
    assert attribute(whole).in_token1.residual == 0


async def test_the_swap_before_a_deposit_is_part_of_the_record(desk: Any) -> None:
    stage = desk.stage
    key = stage.native_pool
    stage.swap(key, True, ETHER, role="wallet")
    stage.pass_time(900)  # long before: not this deposit's business
    wallet_state = Purse(stage, key)
    stage.swap(key, True, ETHER // 7, role="wallet")
    stage.trade(key)
    (token,) = stage.mint(key, -200_700, -199_980, LIQUIDITY)
    stage.trade(key)
    history = await desk.chain(await desk.node()).history(token, None)
    assert [type(event) for event in history.events] == [WalletSwap, PositionEvent]
    assert any("prepared" in note for note in history.notes)
    assert history.opened == history.events[0].block
    assert_explains(history, wallet_state)


async def test_a_swap_inside_the_deposit_s_own_transaction(desk: Any) -> None:
    """Half the dollars are swapped and everything deposited by one router call; leftovers come back."""
    stage = desk.stage
    key, manager = stage.weth_pool, stage.info.deployment.position_manager
    dollars, half = 40_000 * 10**6, 20_000 * 10**6
    wallet_state, token = Purse(stage, key), stage.next_token()
    swap = [
        calldata.swap_exact_in_single(key, key.currency0 == stage.usdc, half, 0, stage.info.deployment.swap_struct),
        calldata.settle(stage.usdc, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(stage.weth, manager, calldata.OPEN_DELTA),
    ]
    deposit = [
        stage.minting(key, -200_700, -199_980, LIQUIDITY // 10),
        *(calldata.settle(currency, calldata.OPEN_DELTA, payer_is_user=False) for currency in (stage.weth, stage.usdc)),
        *(calldata.sweep(currency, stage.wallet) for currency in (stage.weth, stage.usdc)),
    ]
    pull = encode(("address", "address", "uint160"), (stage.usdc, manager, dollars - half))
    commands = [
        (PERMIT2_TRANSFER_FROM, pull),
        calldata.v4_swap(swap),
        (V4_POSITION_MANAGER_CALL, stage.modifying(deposit)),
    ]
    stage.send("wallet", stage.info.deployment.universal_router, calldata.execute(commands, 2**40))
    stage.trade(key)
    history = await desk.chain(await desk.node()).history(token, None)
    assert [type(event) for event in history.events] == [WalletSwap, PositionEvent]
    assert [bool(event.gas) for event in history.events] == [True, False]
    swapped = history.events[0]
    assert half in (swapped.paid0, swapped.paid1)
    assert_explains(history, wallet_state)


async def test_money_that_goes_elsewhere_is_booked_and_noted(desk: Any) -> None:
    """A burn whose proceeds go to a third party: the wallet received nothing, and the record says so."""
    stage = desk.stage
    key = stage.weth_pool
    wallet_state = Purse(stage, key)
    (token,) = stage.mint(key, -200_700, -199_980, LIQUIDITY)
    gift = EncodedAction(TAKE_PAIR, encode(("address",) * 3, (key.currency0, key.currency1, stage.trader)))
    stage.modify([stage.changing(BURN, token), gift])
    history = await desk.chain(await desk.node()).history(token, None)
    burn = history.events[-1]
    assert [(one.amount0, one.amount1) for one in history.externals] == [(burn.paid0, burn.paid1)]
    assert min(-burn.paid0, -burn.paid1) > 0
    assert any("wallet's" in note for note in history.notes)
    assert_explains(history, wallet_state)
    assert attribute(history).in_token1.external < 0


async def test_a_position_that_changed_hands_says_so(desk: Any) -> None:
    stage = desk.stage
    key = stage.weth_pool
    (token,) = stage.mint(key, -200_700, -199_980, LIQUIDITY, role="trader")
    give = calldata.call("transferFrom(address,address,uint256)", stage.trader, stage.wallet, token)
    stage.send("trader", stage.info.deployment.position_manager, give)
    wallet_state = Purse(stage, key)
    stage.trade(key)
    stage.burn(key, token)
    history = await desk.chain(await desk.node()).history(token, None)
    mint, burn = history.events
    assert (burn.paid0, burn.paid1) == wallet_state.spent()  # the burn is the wallet's, the mint was the giver's
    assert mint.paid0 > 0
    assert any("hands" in note for note in history.notes)


async def test_a_life_within_one_block(desk: Any) -> None:
    stage = desk.stage
    key, token = stage.weth_pool, stage.next_token()
    wallet_state = Purse(stage, key)
    stage.modify([stage.minting(key, -200_700, -199_980, LIQUIDITY), stage.changing(BURN, token), *stage.closing(key)])
    history = await desk.chain(await desk.node()).history(token, None)
    assert [event.liquidity_delta for event in history.events if isinstance(event, PositionEvent)] == [
        LIQUIDITY,
        -LIQUIDITY,
    ]
    assert_explains(history, wallet_state)


@pytest.mark.soak
async def test_a_crowded_block_does_not_blur_a_touch(desk: Any) -> None:
    """Trades before and after, and another position of the wallet, all in the block of the touch."""
    stage = desk.stage
    key = stage.weth_pool
    (token,) = stage.mint(key, -200_700, -199_980, LIQUIDITY)
    stage.trade(key)
    wallet_state = Purse(stage, key)
    manager = stage.info.deployment.position_manager
    collect = stage.modifying([stage.changing(DECREASE, token, 0), *stage.closing(key)])
    grow = stage.modifying(
        [
            stage.changing(INCREASE, token, LIQUIDITY),
            stage.minting(stage.native_pool, -201_000, -200_400, LIQUIDITY // 7),
            *stage.closing(key),
            *stage.closing(stage.native_pool),
        ]
    )
    there, back = stage.swapping(key, True, ETHER), stage.swapping(key, False, 2_500 * 10**6)
    stage.send_together(
        [
            ("trader", *there),
            ("wallet", manager, collect, 0),
            ("trader", *back),
        ]
    )
    stage.send_together([("trader", *there), ("wallet", manager, grow, 0), ("trader", *back), ("trader", *there)])
    history = await desk.chain(await desk.node()).history(token, Seconds(stage.chain.history.at(
        stage.chain.head.number - 2).timestamp))  # fmt: skip
    assert history.start is not None
    assert attribute(history).exact, history.computed
    (note,) = history.notes
    assert "equally" in note
    # The other position's USDC is the wallet's money too, but not this position's payment.
    spent0, spent1 = wallet_state.spent()
    ours0, ours1 = (sum(getattr(event, side) for event in history.events) for side in ("paid0", "paid1"))
    shared = spent1 - ours1 if key.currency1 == stage.usdc else spent0 - ours0
    assert shared > 0


async def test_gas_on_an_op_stack_rollup_includes_the_data_fee(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    node = await desk.node()
    (plain,) = (await desk.chain(node).history(token, None)).events
    honest = node.answer
    node.answer = lambda body: honest(body).replace(b'"effectiveGasPrice"', b'"l1Fee":"0x3e8","effectiveGasPrice"')
    (charged,) = (await desk.chain(node).history(token, None)).events
    assert charged.gas == plain.gas + 1_000


async def test_ids_and_windows_that_name_nothing(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    stage.burn(stage.weth_pool, token)
    stage.pass_time(3600)
    chain = desk.chain(await desk.node())
    for unknown in (0, -1, 10**6, 2**256):
        with pytest.raises(NotFound):
            await chain.history(unknown, None)
    with pytest.raises(NotFound, match="window"):
        await chain.history(token, Seconds(stage.chain.head.timestamp - 10))
    with pytest.raises(UsageError):
        await chain.history(token, Seconds(stage.chain.head.timestamp + 10))


async def test_a_node_without_past_state_is_named_as_the_reason(desk: Any) -> None:
    stage = desk.stage
    (token,) = stage.mint(stage.weth_pool, -200_700, -199_980, LIQUIDITY)
    stage.trade(stage.weth_pool)
    head = "0x" + stage.chain.head.hash.hex()

    def pruned(number: int, requests: list[dict[str, Any]]) -> Any:
        request = requests[0]
        if request["method"] == "eth_call" and request["params"][1]["blockHash"] != head:
            return desk.reply(
                request, error={"code": -32000, "message": "missing trie node 0xab (path ) state is gone"}
            )
        return None

    chain = desk.chain(await desk.node(pruned))
    with pytest.raises(Unavailable, match="archive"):
        await chain.history(token, None)


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("told", [True, False], ids=["timestamps in logs", "timestamps from headers"])
async def test_hourly_prices(desk: Any, told: bool) -> None:
    stage = desk.stage
    key = stage.weth_pool
    expected, since = {}, Seconds(stage.chain.head.timestamp + 1)
    for _ in range(4):
        for _ in range(3):
            stage.trade(key)
            expected[stage.chain.head.timestamp // 3600] = stage.chain.head
        stage.pass_time(3600)

    def untold(number: int, requests: list[dict[str, Any]]) -> Any:
        return None

    node = await desk.node(untold)
    if not told:
        plain = node.answer
        node.answer = lambda body: plain(body).replace(b'"blockTimestamp"', b'"ignored"')
    chain = desk.chain(node)
    pools = (await chain.pools()).pools
    pool = next(pool for pool in pools if pool.key == key)
    path = await chain.price_path(pool.id, since)
    assert [point.block.number for point in path] == [block.number for block in expected.values()]
    assert [point.block.timestamp for point in path] == [block.timestamp for block in expected.values()]
    assert path[-1].sqrt_price_x96 == pool.sqrt_price_x96
    if not told:
        singles = [body for body in node.seen if body[0]["method"] == "eth_getBlockByNumber" and len(body) == 1]
        headers = sum(method == "eth_getBlockByNumber" for method in node.methods)
        assert headers < 24 + 12  # fewer than the 24 blocks that had swaps, plus the search for the window
        assert len(singles) < headers
