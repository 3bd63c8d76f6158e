"""Events that a node leaves out: the state notices, and the record says so or is not told at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from zuno.adapters.chain.rpc import abi
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Seconds
from zuno.lp.model.history import WalletSwap
from zuno.lp.plan import calldata
from zuno.lp.rules.attribution import attribute

LOWER, UPPER = -200_700, -199_980
LIQUIDITY = 10**16
ETHER = 10**18
INCREASE, DECREASE, BURN = 0x00, 0x01, 0x03


def without_logs(left_out: Callable[[dict[str, Any], dict[str, Any]], bool]) -> Any:
    """A node whose searches miss events; `left_out` is asked with the query and each of them."""

    def bend(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] != "eth_getLogs":
            return reply
        query = asked["params"][0]
        return {**reply, "result": [log for log in reply["result"] if not left_out(query, log)]}

    return bend


def wide(query: dict[str, Any]) -> bool:
    """A search, rather than a look at one block."""
    return bool(query["fromBlock"] != query["toBlock"])


@pytest.mark.soak
async def test_missing_swaps_are_noticed_by_the_price_they_should_lead_to(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    for _ in range(2):
        stage.pass_time(3600)
        stage.swap(key, True, ETHER // 2)
    whole = await desk.chain(await desk.node()).history(token, None)
    assert whole.computed == ()
    assert attribute(whole).exact
    last = stage.chain.head.number
    no_swaps = without_logs(lambda query, log: log["topics"][0] == abi.SWAP and wide(query))
    not_the_last = without_logs(
        lambda query, log: log["topics"][0] == abi.SWAP and int(log["blockNumber"], 16) == last and wide(query)
    )
    for bend in (no_swaps, not_the_last):
        history = await desk.chain(await desk.bent(bend)).history(token, None)
        result = attribute(history)
        assert history.path[-1] == whole.path[-1]
        assert result.adds_up
        assert not result.exact
        (why,) = history.computed
        assert "LVR: " in why
    # A window without a swap is no reason for doubt.
    stage.pass_time(60)
    since = Seconds(stage.chain.head.timestamp - 30)
    assert attribute(await desk.chain(await desk.bent(no_swaps)).history(token, since)).exact


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("native", [True, False], ids=["native", "erc20"])
async def test_missing_transfers_are_noticed_by_the_wallet_s_balance(desk: Any, native: bool) -> None:
    stage = desk.stage
    key = stage.native_pool if native else stage.weth_pool
    stage.pass_time(1_000)
    stage.swap(key, True, ETHER // 7, role="wallet")
    (token,) = stage.mint(key, LOWER - LOWER % 60, UPPER - UPPER % 60, LIQUIDITY)
    honest = await desk.chain(await desk.node()).history(token, None)
    assert [type(event) for event in honest.events].count(WalletSwap) == 1
    assert attribute(honest).exact, honest.computed
    tokens = (stage.weth, stage.usdc)
    hidden = without_logs(lambda query, log: log["address"].lower() in tokens and wide(query))
    history = await desk.chain(await desk.bent(hidden)).history(token, None)
    assert attribute(history).in_token1.swap_cost == 0
    assert not attribute(history).exact
    assert any("prepared" in why for why in history.computed)


async def test_ether_that_was_wrapped_before_a_deposit_raises_no_doubt(desk: Any) -> None:
    """The WETH of real chains makes tokens without a Transfer event, which this one's is taken out for."""
    stage, key = desk.stage, desk.stage.weth_pool
    stage.pass_time(1_000)
    stage.send("wallet", stage.weth, calldata.call("deposit()"), value=ETHER)
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    nobody = abi.address_word(NATIVE)
    like_weth9 = without_logs(lambda query, log: log["address"].lower() == stage.weth and log["topics"][1] == nobody)
    history = await desk.chain(await desk.bent(like_weth9)).history(token, None)
    assert attribute(history).exact, history.computed


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("left_out", [False, True], ids=["told", "left out"])
async def test_money_of_others_is_believed_only_if_the_wallet_s_balance_bears_it_out(desk: Any, left_out: bool) -> None:
    """A receipt without the wallet's own transfer looks as if somebody else had taken the proceeds."""
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    target = stage.wallet if left_out else stage.trader
    home = calldata.take_pair(key.currency0, key.currency1, target)
    stage.modify([stage.changing(DECREASE, token, LIQUIDITY // 2), home])
    wallet = abi.address_word(stage.wallet)

    def bend(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_getTransactionReceipt" and left_out:
            logs = [log for log in reply["result"]["logs"] if log["topics"][2:] != [wallet]]
            return {**reply, "result": {**reply["result"], "logs": logs}}
        return reply

    history = await desk.chain(await desk.bent(bend)).history(token, None)
    result = attribute(history)
    if left_out:
        assert not result.exact
    else:
        assert history.externals
        assert result.exact, history.computed


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("side", ["usdc", "weth"])
async def test_a_wallet_s_transfer_that_a_receipt_gives_to_somebody_else(desk: Any, side: str) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.trade(key)
    stage.modify([stage.changing(DECREASE, token, LIQUIDITY // 2), *stage.closing(key)])
    wallet, stranger = abi.address_word(stage.wallet), abi.address_word(stage.trader)
    currency = getattr(stage, side)

    def bend(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_getTransactionReceipt":
            for log in reply["result"]["logs"]:
                if log["address"].lower() == currency and log["topics"][2:] == [wallet]:
                    log["topics"][2] = stranger
        return reply

    history = await desk.chain(await desk.bent(bend)).history(token, None)
    assert history.externals
    assert not attribute(history).exact
    assert any("events" in why for why in history.computed)


@pytest.mark.soak
async def test_a_simulation_that_is_blind_to_native_coin_measures_none(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.native_pool
    (token,) = stage.mint(key, -201_000, -199_980, LIQUIDITY)
    (below,) = stage.mint(key, -206_400, -205_800, LIQUIDITY)  # dollars alone

    def bend(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_simulateV1":
            for call in reply["result"][0]["calls"]:
                call["logs"] = [log for log in call["logs"] if log["address"] != "0x" + "ee" * 20]
        return reply

    chain = desk.chain(await desk.bent(bend))
    history = await chain.history(token, None)
    result = attribute(history)
    assert result.adds_up
    assert not result.exact
    (why,) = history.computed
    assert "native coin" in why
    in_dollars = await chain.history(below, None)
    assert attribute(in_dollars).exact, in_dollars.computed


@pytest.mark.soak
async def test_a_node_without_old_events_is_named_as_the_reason(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    minted = stage.chain.head.number
    stage.trade(key)
    stage.modify([stage.changing(INCREASE, token, LIQUIDITY // 10), *stage.closing(key)])
    grown = stage.chain.head.number
    stage.modify([stage.changing(DECREASE, token, LIQUIDITY // 5), *stage.closing(key)])
    shrunk = stage.chain.head.number
    stage.trade(key)

    def hiding(first: int, last: int, topic: str) -> Any:
        return without_logs(
            lambda query, log: (
                wide(query) and first <= int(log["blockNumber"], 16) <= last and log["topics"][0] == topic
            )
        )

    mint_gone, no_mint = hiding(0, minted, abi.TRANSFER), "knows of no mint"
    changes = {
        f"before block {grown}": (minted, minted),
        f"before block {shrunk}": (grown, grown),
        f"lacks events of position {token}": (shrunk, shrunk),
    }
    with pytest.raises(Unavailable, match=f"{no_mint}.*position {token}"):
        await desk.chain(await desk.bent(mint_gone)).history(token, None)
    for said, (first, last) in changes.items():
        with pytest.raises(Unavailable, match=said):
            await desk.chain(await desk.bent(hiding(first, last, abi.MODIFY_LIQUIDITY))).history(token, None)


async def test_a_window_needs_the_events_since_it_opened_and_no_older_ones(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    (token,) = stage.mint(key, LOWER, UPPER, LIQUIDITY)
    stage.pass_time(600)
    opened = stage.chain.head
    stage.trade(key)
    stage.modify([stage.changing(INCREASE, token, LIQUIDITY // 10), *stage.closing(key)])
    old = without_logs(lambda query, log: int(log["blockNumber"], 16) <= opened.number)
    history = await desk.chain(await desk.bent(old)).history(token, Seconds(opened.timestamp))
    assert len(history.events) == 1
    assert attribute(history).exact, history.computed
