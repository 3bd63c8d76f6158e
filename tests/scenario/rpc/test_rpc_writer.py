"""Writing through nodes as they are: transactions that wait, vanish, come back or lose; nodes that lag, hang or lie."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_hash.auto import keccak
from eth_utils.address import to_checksum_address

from zuno.adapters.chain.rpc import RpcPolicy, RpcWriter
from zuno.amm.identity import pool_id
from zuno.amm.model import PoolKey
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId
from zuno.lp.model.plan import Grant
from zuno.lp.plan import calldata
from zuno.lp.plan.inventory import quotes
from zuno.lp.ports.spending import Call, NonceStatus, SendResult, SimulationMethod
from zuno_devnet.keys import dev_key
from zuno_devnet.rpc import Rpc
from zuno_devnet.transactions import LocalTransaction, sign

ETHER, GWEI = 10**18, 10**9
SOMEBODY = Address("0x" + "77" * 20)


def id_of(key: PoolKey) -> HexId:
    return HexId(pool_id(*calldata.key_tuple(key)))


def hash_of(tx: LocalTransaction) -> HexId:
    return HexId("0x" + tx.hash.hex())


def paying(
    stage: Any, value: int = 1, *, nonce: int | None = None, tip: int = GWEI, role: str = "wallet"
) -> LocalTransaction:
    """A transfer that could be the wallet's next one."""
    sender = dev_key(role).public_key.to_canonical_address()
    return sign(
        dev_key(role),
        chain_id=stage.info.id,
        nonce=stage.chain.nonce(sender) if nonce is None else nonce,
        to=bytes.fromhex(SOMEBODY[2:]),
        data=b"",
        value=value,
        gas=21_000,
        max_fee=10 * GWEI + 2 * tip,
        tip=tip,
    )


def swap(stage: Any, key: PoolKey, amount: int = ETHER) -> Call:
    to, data, value = stage.swapping(key, True, amount)
    return Call(Address(to), value, data)


@pytest.fixture(scope="module")
def one_stage(new_stage: Any) -> Any:
    return new_stage()


@pytest.fixture
def stage(one_stage: Any) -> Iterator[Any]:
    """One world for the whole file, as it was at first for every test."""
    info, first = one_stage.info, one_stage.node.snapshot()
    yield one_stage
    one_stage.info = info
    one_stage.node.set_automine(True)
    assert one_stage.node.revert(first)


@pytest.fixture
async def writer(desk: Any) -> RpcWriter:
    return desk.chain(await desk.node()).writer()


async def traced(writer: RpcWriter, stage: Any, *txs: LocalTransaction) -> NonceStatus:
    return await writer.trace(stage.wallet, txs[0].nonce, [hash_of(tx) for tx in txs])


# -- what becomes of a transaction


async def test_a_transaction_that_waits_counts_and_is_known(writer: RpcWriter, stage: Any) -> None:
    stage.node.set_automine(False)
    tx = paying(stage)
    before = await writer.wallet_state(stage.wallet, [NATIVE], [])
    assert await writer.send(tx.raw) is SendResult.ACCEPTED
    assert await writer.send(tx.raw) is SendResult.KNOWN
    wallet_state = await writer.wallet_state(stage.wallet, [NATIVE], [])
    assert (wallet_state.nonce, wallet_state.next_nonce) == (before.nonce, before.nonce + 1)
    trace = await traced(writer, stage, tx)
    assert (trace.mined, trace.waiting, trace.nonce) == (None, (hash_of(tx),), tx.nonce)
    stage.node.mine()
    trace = await traced(writer, stage, tx)
    assert trace.mined is not None
    assert (trace.waiting, trace.nonce) == ((), tx.nonce + 1)


async def test_a_transaction_the_node_dropped_is_nowhere_and_can_be_sent_again(writer: RpcWriter, stage: Any) -> None:
    stage.node.set_automine(False)
    tx = paying(stage)
    await writer.send(tx.raw)
    assert stage.node.pool.drop(tx.hash)
    trace = await traced(writer, stage, tx)
    assert (trace.mined, trace.waiting, trace.nonce) == (None, (), tx.nonce)
    assert await writer.send(tx.raw) is SendResult.ACCEPTED


async def test_a_reorganisation_takes_a_receipt_back(writer: RpcWriter, stage: Any) -> None:
    tx = paying(stage)
    await writer.send(tx.raw)
    assert (await traced(writer, stage, tx)).mined is not None
    stage.node.set_automine(False)
    stage.node.reorg(1)
    trace = await traced(writer, stage, tx)
    assert (trace.mined, trace.waiting, trace.nonce) == (None, (hash_of(tx),), tx.nonce)
    stage.node.mine()
    again = (await traced(writer, stage, tx)).mined
    assert again is not None
    assert again.success


async def test_a_reorganisation_that_loses_the_transaction(writer: RpcWriter, stage: Any) -> None:
    tx = paying(stage)
    await writer.send(tx.raw)
    stage.node.reorg(1, drop=[tx.hash])
    trace = await traced(writer, stage, tx)
    assert (trace.mined, trace.waiting, trace.nonce, trace.settled_nonce) == (None, (), tx.nonce, tx.nonce)


async def test_the_one_that_replaced_it_is_found_among_those_asked_about(writer: RpcWriter, stage: Any) -> None:
    stage.node.set_automine(False)
    first, second = paying(stage), paying(stage, tip=2 * GWEI)
    assert await writer.send(first.raw) is SendResult.ACCEPTED
    assert await writer.send(paying(stage, value=2).raw) is SendResult.UNDERPRICED
    assert await writer.send(second.raw) is SendResult.ACCEPTED
    trace = await traced(writer, stage, first, second)
    assert trace.waiting == (hash_of(second),)
    stage.node.mine()
    trace = await traced(writer, stage, first, second)
    assert trace.mined is not None
    assert trace.mined.tx == hash_of(second)
    assert await writer.send(first.raw) is SendResult.NONCE_SPENT
    assert await writer.send(second.raw) is SendResult.KNOWN


async def test_a_foreign_transaction_at_our_number(writer: RpcWriter, stage: Any) -> None:
    ours = paying(stage)
    stage.node.submit(paying(stage, value=3).raw)
    trace = await traced(writer, stage, ours)
    assert (trace.mined, trace.waiting) == (None, ())
    assert trace.nonce == trace.settled_nonce == ours.nonce + 1
    assert await writer.send(ours.raw) is SendResult.NONCE_SPENT


@pytest.mark.parametrize("confirmations", [0, 1, 2, 3])
async def test_a_number_is_settled_after_so_many_blocks(desk: Any, stage: Any, confirmations: int) -> None:
    stage.info = replace(stage.info, confirmations=confirmations)
    writer = desk.chain(await desk.node()).writer()
    tx = paying(stage)
    await writer.send(tx.raw)
    for depth in range(1, 5):
        trace = await traced(writer, stage, tx)
        assert trace.depth == depth
        assert trace.settled_nonce - tx.nonce == (depth >= max(1, confirmations))
        stage.node.mine()


async def test_a_transaction_that_reverts_is_mined_and_says_so(writer: RpcWriter, stage: Any) -> None:
    call = swap(stage, stage.weth_pool)
    tx = stage.chain.sign(dev_key("empty"), to=bytes.fromhex(call.to[2:]), data=call.data, gas=500_000)
    assert await writer.send(tx.raw) is SendResult.ACCEPTED
    empty = Address("0x" + tx.sender.hex())
    mined = (await writer.trace(empty, tx.nonce, [hash_of(tx)])).mined
    assert mined is not None
    assert not mined.success


async def test_minted_are_those_that_the_wallet_was_given(writer: RpcWriter, stage: Any) -> None:
    key, first = stage.weth_pool, stage.next_token()
    steps = [
        stage.minting(key, -200_700, -199_980, 10**12),
        stage.minting(key, -200_700, -199_980, 10**12, stage.trader),
        stage.minting(key, -200_700, -199_980, 10**12),
        *stage.paying(key),
    ]
    receipt = stage.modify(steps)
    trace = await writer.trace(stage.wallet, receipt.tx.nonce, [HexId("0x" + receipt.tx.hash.hex())])
    assert trace.mined is not None
    assert trace.mined.minted == (first, first + 2)


# -- nodes as they are


async def test_a_node_that_does_not_answer_is_unavailable(desk: Any, stage: Any) -> None:
    hurried = RpcPolicy(timeout=0.2, rounds=2, first_pause=0.01, longest_pause=0.02, cool_down=0.2)
    writer = desk.chain(await desk.node(lambda number, requests: desk.trouble("slow")), policy=hurried).writer()
    with pytest.raises(Unavailable):
        await writer.send(paying(stage).raw)
    with pytest.raises(Unavailable):
        await writer.wallet_state(stage.wallet, [NATIVE], [])
    with pytest.raises(Unavailable):
        await writer.genesis()


def when(method: str, trouble: Any) -> Any:
    return lambda number, requests: trouble if requests[0]["method"] == method else None


async def test_the_next_node_gets_the_bytes_that_one_did_not_answer_to(desk: Any, stage: Any) -> None:
    mute = await desk.node(when("eth_sendRawTransaction", desk.trouble("slow")))
    sound = await desk.node()
    tx = paying(stage)
    once = RpcPolicy(timeout=2, rounds=2, first_pause=0.01, longest_pause=0.02, cool_down=600)
    assert await desk.chain(mute, sound, policy=once).writer().send(tx.raw) is SendResult.ACCEPTED
    assert mute.methods.count("eth_sendRawTransaction") == 1
    assert stage.chain.receipt(tx.hash) is not None


async def test_an_answer_lost_on_the_way_leaves_it_open_and_the_same_bytes_do_no_harm(desk: Any, stage: Any) -> None:
    writer = desk.chain(await desk.node(when("eth_sendRawTransaction", desk.trouble("cut")))).writer()
    tx = paying(stage)
    with pytest.raises(Unavailable, match=r"\bbytes\b"):
        await writer.send(tx.raw)
    assert (await traced(writer, stage, tx)).mined is not None
    sound = desk.chain(await desk.node()).writer()
    assert await sound.send(tx.raw) is SendResult.KNOWN


async def test_a_node_of_another_chain_gets_nothing(desk: Any, stage: Any) -> None:
    def elsewhere(asked: dict[str, Any], reply: Any) -> Any:
        return {**reply, "result": "0x1"} if asked["method"] == "eth_chainId" else reply

    wrong = await desk.bent(elsewhere)
    with pytest.raises(Malformed, match="chain 1, expected 31337"):
        await desk.chain(wrong).writer().send(paying(stage).raw)
    assert "eth_sendRawTransaction" not in wrong.methods
    assert await desk.chain(wrong, await desk.node()).writer().send(paying(stage).raw) is SendResult.ACCEPTED


async def test_a_node_that_says_another_hash_is_not_believed(desk: Any, stage: Any) -> None:
    def lying(asked: dict[str, Any], reply: Any) -> Any:
        return {**reply, "result": "0x" + "12" * 32} if asked["method"] == "eth_sendRawTransaction" else reply

    with pytest.raises(Malformed, match=r"\banother\b"):
        await desk.chain(await desk.bent(lying)).writer().send(paying(stage).raw)


async def saying(desk: Any, message: str) -> Any:
    """A node with these words for every transaction."""

    def plan(number: int, requests: list[dict[str, Any]]) -> Any:
        if requests[0]["method"] != "eth_sendRawTransaction":
            return None
        return desk.reply(requests[0], error={"code": -32000, "message": message})

    return await desk.node(plan)


async def test_a_refusal_does_not_make_a_node_rest(desk: Any, stage: Any) -> None:
    picky, second = await saying(desk, "transaction underpriced"), await desk.node()
    writer = desk.chain(picky, second).writer()
    assert await writer.send(paying(stage).raw) is SendResult.ACCEPTED
    before = len(second.seen)
    await writer.wallet_state(stage.wallet, [NATIVE], [])
    assert len(second.seen) == before


async def test_a_node_that_rests_is_offered_the_bytes_last(desk: Any, stage: Any) -> None:
    patient = RpcPolicy(timeout=60, rounds=2, first_pause=0.01, longest_pause=0.02, cool_down=600)
    broken = await desk.node(when("eth_getBlockByNumber", desk.trouble("status", 500)))
    writer = desk.chain(broken, await desk.node(), policy=patient).writer()
    await writer.genesis()
    assert await writer.send(paying(stage).raw) is SendResult.ACCEPTED
    assert "eth_sendRawTransaction" not in broken.methods


async def test_no_key_of_an_address_is_in_what_is_said(desk: Any, stage: Any) -> None:
    node = await saying(desk, "invalid sender s3cr3t-key")
    with pytest.raises(Refused) as raised:
        await desk.chain(node.url + "/s3cr3t-key").writer().send(paying(stage).raw)
    assert "s3cr3t" not in str(raised.value)


def lagging(methods: Sequence[str]) -> Any:
    """A machine whose filing is behind its state: it does not have the newest transactions yet."""

    def bend(asked: dict[str, Any], reply: Any) -> Any:
        return {**reply, "result": None} if asked["method"] in methods else reply

    return bend


async def test_a_node_that_has_not_filed_its_blocks_does_not_make_a_transaction_foreign(desk: Any, stage: Any) -> None:
    late = await desk.bent(lagging(["eth_getTransactionReceipt", "eth_getTransactionByHash"]))
    tx = paying(stage)
    stage.node.submit(tx.raw)
    trace = await traced(desk.chain(late, await desk.node()).writer(), stage, tx)
    assert trace.mined is not None
    assert trace.mined.tx == hash_of(tx)


async def test_a_transaction_in_a_block_without_a_receipt_is_not_said_to_wait(desk: Any, stage: Any) -> None:
    late = await desk.bent(lagging(["eth_getTransactionReceipt"]))
    tx = paying(stage)
    stage.node.submit(tx.raw)
    with pytest.raises(Unavailable):
        await traced(desk.chain(late).writer(), stage, tx)


async def test_a_receipt_of_a_block_that_is_not_of_this_chain_is_none(desk: Any, stage: Any) -> None:
    def stale(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_getTransactionReceipt":
            reply["result"]["blockHash"] = "0x" + "99" * 32
        return reply

    tx = paying(stage)
    stage.node.submit(tx.raw)
    stage.node.mine()
    trace = await traced(desk.chain(await desk.bent(stale)).writer(), stage, tx)
    assert trace.mined is None
    assert trace.nonce == tx.nonce + 1


@pytest.mark.parametrize("field", ["status", "blockHash"])
async def test_a_receipt_that_hides_how_it_went_is_malformed(desk: Any, stage: Any, field: str) -> None:
    def hiding(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_getTransactionReceipt":
            del reply["result"][field]
        return reply

    tx = paying(stage)
    stage.node.submit(tx.raw)
    with pytest.raises(Malformed):
        await traced(desk.chain(await desk.bent(hiding)).writer(), stage, tx)


async def test_a_receipt_of_somebody_else_is_malformed(writer: RpcWriter, stage: Any) -> None:
    theirs = paying(stage, role="trader")
    stage.node.submit(theirs.raw)
    with pytest.raises(Malformed, match="wallet's"):
        await writer.trace(stage.wallet, 0, [hash_of(theirs)])


async def test_a_receipt_that_the_state_contradicts_is_not_believed(desk: Any, stage: Any) -> None:
    tx = paying(stage)
    stage.node.submit(tx.raw)

    def behind(asked: dict[str, Any], reply: Any) -> Any:
        return {**reply, "result": hex(tx.nonce)} if asked["method"] == "eth_getTransactionCount" else reply

    with pytest.raises(Unavailable, match="state"):
        await traced(desk.chain(await desk.bent(behind)).writer(), stage, tx)


async def test_a_machine_behind_the_head_is_passed_over(desk: Any, stage: Any) -> None:
    """One address, many machines: the head came from one, the receipts would come from another."""
    tx = paying(stage)
    stage.node.submit(tx.raw)

    def late(asked: dict[str, Any], reply: Any) -> Any:
        match asked["method"]:
            case "eth_blockNumber":
                return {**reply, "result": hex(stage.chain.head.number - 1)}
            case "eth_getTransactionReceipt" | "eth_getTransactionByHash":
                return {**reply, "result": None}
        return reply

    trace = await traced(desk.chain(await desk.bent(late), await desk.node()).writer(), stage, tx)
    assert trace.mined is not None


async def test_a_machine_behind_the_head_calls_nothing_foreign(desk: Any, stage: Any) -> None:
    tx = paying(stage)
    stage.node.submit(tx.raw)

    def late(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] == "eth_blockNumber":
            return {**reply, "result": hex(stage.chain.head.number - 1)}
        return lagging(["eth_getTransactionReceipt", "eth_getTransactionByHash"])(asked, reply)

    with pytest.raises(Unavailable, match=r"\basked\b"):
        await traced(desk.chain(await desk.bent(late)).writer(), stage, tx)


async def test_a_reorganisation_between_two_answers_starts_the_look_over(desk: Any, stage: Any) -> None:
    """The count would be of the old chain and the receipt of the new one: together, a foreign transaction."""
    tx = paying(stage)
    stage.node.submit(tx.raw)
    stage.node.set_automine(False)
    asked_before = list[str]()

    def shaking(number: int, requests: list[dict[str, Any]]) -> None:
        methods = [request["method"] for request in requests]
        if "eth_getTransactionReceipt" in methods and "eth_getTransactionReceipt" not in asked_before:
            stage.node.reorg(1)
        asked_before.extend(methods)

    trace = await traced(desk.chain(await desk.node(shaking)).writer(), stage, tx)
    assert (trace.mined, trace.waiting, trace.nonce) == (None, (hash_of(tx),), tx.nonce)


async def test_a_block_that_comes_between_two_answers_starts_the_look_over(desk: Any, stage: Any) -> None:
    stage.node.set_automine(False)
    tx = paying(stage)
    stage.node.submit(tx.raw)
    asked_before = list[str]()

    def mining(number: int, requests: list[dict[str, Any]]) -> None:
        methods = [request["method"] for request in requests]
        if "eth_getTransactionReceipt" in methods and "eth_getTransactionReceipt" not in asked_before:
            stage.node.mine()
        asked_before.extend(methods)

    node = await desk.node(mining)
    chain = desk.chain(node)
    trace = await traced(chain.writer(), stage, tx)
    assert trace.mined is not None
    assert trace.mined.block == trace.head == await chain.head()


async def test_nodes_without_batches_and_without_pins_by_hash_will_do(desk: Any, stage: Any) -> None:
    honest = Rpc(stage.node).answer

    def plain(body: bytes) -> bytes:
        asked = json.loads(body)
        if isinstance(asked, list):
            return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batch"}}).encode()
        if any(isinstance(each, dict) and "blockHash" in each for each in asked["params"]):
            error = {"code": -32602, "message": "invalid argument 1"}
            return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}).encode()
        return honest(body)

    writer = desk.chain(await desk.node(answer=plain)).writer()
    tx = paying(stage)
    assert await writer.send(tx.raw) is SendResult.ACCEPTED
    assert (await traced(writer, stage, tx)).mined is not None
    plainly = await writer.wallet_state(stage.wallet, [NATIVE, stage.usdc], [stage.info.deployment.position_manager])
    sound = desk.chain(await desk.node()).writer()
    assert plainly == await sound.wallet_state(
        stage.wallet, [NATIVE, stage.usdc], [stage.info.deployment.position_manager]
    )
    call = swap(stage, stage.weth_pool)
    currencies = [stage.weth, stage.usdc]
    for asked in (writer, sound):
        tried = await asked.simulate(stage.wallet, [call], currencies, id_of(stage.weth_pool))
        assert tried.changes[stage.weth] == -ETHER


async def test_a_wallet_is_read_in_two_requests(desk: Any, stage: Any) -> None:
    chain = desk.chain(await desk.node())
    writer = chain.writer()
    await writer.genesis()
    before, at = chain.requests, stage.info.deployment
    wallet_state = await writer.wallet_state(
        stage.wallet, [NATIVE, stage.weth, stage.usdc], [at.position_manager, at.universal_router]
    )
    assert chain.requests - before == 2
    assert wallet_state.holdings == {currency: stage.balance(currency) for currency in (NATIVE, stage.weth, stage.usdc)}
    assert len(wallet_state.allowances.grants) == 4


async def test_a_token_that_does_not_answer_is_malformed(writer: RpcWriter, stage: Any) -> None:
    mute = Address("0x" + "33" * 20)
    with pytest.raises(Malformed):
        await writer.wallet_state(stage.wallet, [mute], [])
    with pytest.raises(Malformed):
        await writer.wallet_state(stage.wallet, [SOMEBODY], [])


async def test_a_pending_count_below_the_state_is_not_believed(desk: Any, stage: Any) -> None:
    def low(asked: dict[str, Any], reply: Any) -> Any:
        return {**reply, "result": "0x0"} if "pending" in asked["params"] else reply

    wallet_state = await desk.chain(await desk.bent(low)).writer().wallet_state(stage.wallet, [NATIVE], [])
    assert wallet_state.next_nonce == wallet_state.nonce > 0
    assert wallet_state.allowances.grant(stage.usdc, SOMEBODY) == Grant()


# -- simulations and estimates


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32601, "message": "the method eth_simulateV1 does not exist/is not available"},
        {"code": -32600, "message": "Unsupported method: eth_simulateV1"},
    ],
    ids=["geth", "a gateway"],
)
async def test_a_node_that_cannot_simulate_tries_the_first_call(desk: Any, stage: Any, error: dict[str, Any]) -> None:
    def without(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] != "eth_simulateV1":
            return reply
        return {"jsonrpc": "2.0", "id": asked["id"], "error": error}

    writer = desk.chain(await desk.bent(without)).writer()
    call, key = swap(stage, stage.weth_pool), stage.weth_pool
    tried = await writer.simulate(stage.wallet, [call, call], [stage.weth], id_of(key))
    assert (tried.how, tried.changes, tried.sqrt_price_after_x96) == (SimulationMethod.FIRST_CALL, {}, None)
    (only,) = tried.calls
    assert only.error is None
    assert only.gas_used > 100_000
    late = Call(call.to, 0, calldata.execute([], 1))
    (failed,) = (await writer.simulate(stage.wallet, [late, call], [], id_of(key))).calls
    assert failed.error == "TransactionDeadlinePassed"


async def test_a_token_that_charges_for_a_transfer_is_weighed_not_believed(writer: RpcWriter, stage: Any) -> None:
    """Its Transfer event tells of one amount, its books of another: it keeps one per cent."""
    charging = stage.create(_init(_charging_token()))
    give = Call(charging, 0, calldata.call("transfer(address,uint256)", SOMEBODY, 10_000))
    tried = await writer.simulate(stage.wallet, [give], [charging, NATIVE], id_of(stage.weth_pool))
    assert tried.calls[0].error is None
    assert tried.changes == {charging: -10_100, NATIVE: 0}


def _charging_token() -> bytes:
    """Everybody has a million less what their slot says; a transfer takes 10,100 and tells of 10,000."""
    transfer = keccak(b"Transfer(address,address,uint256)").hex()
    return bytes.fromhex(
        "5f3560e01c6370a0823114604c57"  # balanceOf is at 0x4c
        "33546127740133556127105f52"  # slot[caller] += 10,100; memory = 10,000
        f"600435337f{transfer}60205fa3"  # Transfer(caller, to, memory)
        "60015f5260205ff3"  # true
        "5b60043554620f4240035f5260205ff3"  # a million - slot[holder]
    )


def _init(code: bytes) -> bytes:
    """Deploys these bytes."""
    return bytes.fromhex(f"60{len(code):02x}600a5f3960{len(code):02x}5ff3") + code


async def test_a_simulation_of_something_else_is_malformed(desk: Any, stage: Any) -> None:
    for spoil in (
        lambda calls: calls.pop(),
        lambda calls: calls.append(calls[0]),
        lambda calls: calls[0].update(returnData="0x"),
        lambda calls: calls[0].update(status="0x0"),
        lambda calls: calls[-1].pop("returnData"),
        lambda calls: calls[1].pop("gasUsed"),
    ):

        def bend(asked: dict[str, Any], reply: Any, spoil: Any = spoil) -> Any:
            if asked["method"] == "eth_simulateV1":
                spoil(reply["result"][0]["calls"])
            return reply

        writer = desk.chain(await desk.bent(bend)).writer()
        with pytest.raises(Malformed):
            await writer.simulate(stage.wallet, [swap(stage, stage.weth_pool)], [stage.weth], id_of(stage.weth_pool))


async def test_ether_that_is_not_there_is_named_with_both_numbers(writer: RpcWriter, stage: Any) -> None:
    held = stage.balance(NATIVE)
    call = Call(SOMEBODY, held + 5, b"")
    with pytest.raises(Refused, match=f"{held} wei.*{held + 5} wei: 5 "):
        await writer.estimate(stage.wallet, call)
    with pytest.raises(Refused, match=f"balance {held}, tx cost"):
        await writer.send(paying(stage, value=held).raw)
    tried = await writer.simulate(stage.wallet, [Call(SOMEBODY, 7, b""), call], [NATIVE], id_of(stage.weth_pool))
    assert tried.changes == {NATIVE: -7}
    assert tried.calls[0].error is None
    assert "insufficient funds" in str(tried.calls[1].error)


async def test_a_node_that_finds_nothing_too_dear_is_not_asked_for_ever(desk: Any, stage: Any) -> None:
    def poor(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] != "eth_simulateV1":
            return reply
        return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -38014, "message": "insufficient funds"}}

    writer = desk.chain(await desk.bent(poor)).writer()
    with pytest.raises(Malformed):
        await writer.simulate(stage.wallet, [swap(stage, stage.weth_pool)], [], id_of(stage.weth_pool))


async def test_an_estimate_holds_a_quarter_more_than_the_node_says(writer: RpcWriter, stage: Any) -> None:
    call = swap(stage, stage.weth_pool)
    request = {"from": stage.wallet, "to": call.to, "data": "0x" + call.data.hex()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_estimateGas", "params": [request]}
    said = int(json.loads(Rpc(stage.node).answer(json.dumps(body).encode()))["result"], 16)
    assert await writer.estimate(stage.wallet, call) == said * 5 // 4


# -- depth


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("zero_for_one", [True, False])
@pytest.mark.parametrize("ether", [1, 20, 60])
async def test_a_quote_is_the_quoter_s(writer: RpcWriter, stage: Any, zero_for_one: bool, ether: int) -> None:
    key = stage.weth_pool
    for lower, upper in ((-200_700, -199_980), (-200_320, -200_310), (-200_310, -200_300), (-203_000, -202_000)):
        stage.mint(key, lower, upper, 10**15)
    stage.trade(key)
    amount = ether * ETHER if zero_for_one else ether * 2_000 * 10**6
    quoted = quotes(await writer.depth(id_of(key)))(zero_for_one, amount)
    signature = f"quoteExactInputSingle(({calldata.KEY},bool,uint128,bytes))"
    data = calldata.selector(signature) + encode(
        [f"({calldata.KEY},bool,uint128,bytes)"], [(calldata.key_tuple(key), zero_for_one, amount, b"")]
    )
    assert quoted.amount_out == stage.ask(stage.info.deployment.quoter, data)
    assert quoted.amount_in == amount


async def test_a_swap_beyond_what_was_read_is_not_quoted(writer: RpcWriter, stage: Any) -> None:
    depth = await writer.depth(id_of(stage.weth_pool))
    assert depth.known.lower < depth.pool.tick - 6_931
    assert depth.known.upper > depth.pool.tick + 6_931
    with pytest.raises(Unavailable, match="ticks"):
        quotes(depth)(True, 10**24)


async def test_an_initialised_tick_that_carries_nothing_is_malformed(desk: Any, stage: Any) -> None:
    manager = to_checksum_address(stage.info.deployment.pool_manager)

    def empty(asked: dict[str, Any], reply: Any) -> Any:
        if asked["method"] != "eth_call" or asked["params"][0]["to"] != manager:
            return reply
        words = int(asked["params"][0]["data"][74:138], 16)
        if words != 1:
            return reply
        return {**reply, "result": "0x" + encode(["bytes32[]"], [[b"\0" * 32]]).hex()}

    with pytest.raises(Malformed, match=r"\bcarries\b"):
        await desk.chain(await desk.bent(empty)).writer().depth(id_of(stage.weth_pool))
