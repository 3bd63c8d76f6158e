"""The JSON face: shapes, parameters, errors and simulations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zuno_devnet.chain import ETHER, GWEI
from zuno_devnet.keys import dev_address
from zuno_devnet.rpc_errors import RpcError

ALICE = "0x" + dev_address("alice").hex()
TICKER = "0x" + "1001".rjust(40, "0")
REVERTER = "0x" + "1002".rjust(40, "0")
SPENDER = "0x" + "1003".rjust(40, "0")
NOBODY = "0x" + "dead".rjust(40, "0")
CALLDATA = "0x" + "00" * 64


def exchange(bench: Any, body: Any) -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = bench.rpc.answer(raw)
    return json.loads(reply) if reply else None


def request(method: str, *params: Any, request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": list(params)}


def error(bench: Any, method: str, *params: Any) -> tuple[int, str]:
    with pytest.raises(RpcError) as caught:
        bench.ask(method, *params)
    return caught.value.code, caught.value.message


# -- the envelope


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\x00\xff", -32700),
        (b"[" * 100_000, -32700),
        ([], -32600),
        (7, -32600),
        ({"id": 1}, -32600),
        ({"id": 1, "method": 5}, -32600),
        (request("eth_nonsense"), -32601),
        ({"id": 1, "method": "eth_chainId", "params": {"a": 1}}, -32602),
        (request("eth_getBalance"), -32602),
    ],
)
def test_bad_requests_get_the_code_the_standard_gives_them(bench: Any, body: Any, code: int) -> None:
    assert exchange(bench, body)["error"]["code"] == code


def test_a_batch_is_answered_in_order_with_each_its_own_fate(bench: Any) -> None:
    batch = [request("eth_chainId", request_id="a"), request("nope", request_id=2), 5, request("eth_blockNumber")]
    replies = exchange(bench, batch)
    assert [reply["id"] for reply in replies] == ["a", 2, None, 1]
    assert [reply.get("error", {}).get("code") for reply in replies] == [None, -32601, -32600, None]
    assert replies[0]["result"] == "0x7a69"


def test_notifications_are_not_answered(bench: Any) -> None:
    assert exchange(bench, {"jsonrpc": "2.0", "method": "evm_mine"}) is None
    assert bench.chain.head.number == 1


def test_a_bug_of_ours_is_an_internal_error_not_silence(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.node, "snapshot", lambda: 1 // 0)
    assert exchange(bench, request("evm_snapshot"))["error"]["code"] == -32603


# -- parameters


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBalance", ["0x12", "latest"]),
        ("eth_getBalance", [5, "latest"]),
        ("eth_getBalance", [ALICE, "0x"]),
        ("eth_getBalance", [ALICE, "newest"]),
        ("eth_getBalance", [ALICE, True]),
        ("eth_call", ["0x"]),
        ("eth_call", [{"to": TICKER, "data": "0x1"}]),
        ("eth_call", [{"to": TICKER, "data": "0x12", "input": "0x34"}]),
        ("eth_getTransactionReceipt", ["0x1234"]),
        ("eth_getLogs", [{"topics": ["0x00"]}]),
        ("eth_getLogs", [{"topics": [None] * 5}]),
        ("eth_getLogs", [{"fromBlock": "0x2", "toBlock": "0x1"}]),
        ("eth_getLogs", [{"fromBlock": "0x1", "blockHash": "0x" + "00" * 32}]),
        ("eth_feeHistory", ["0x1", "latest", [50, 10]]),
        ("evm_setAutomine", ["yes"]),
        ("eth_simulateV1", [{"blockStateCalls": []}]),
        ("eth_simulateV1", [{"blockStateCalls": [{"blockOverrides": {"coinbase": NOBODY}}]}]),
    ],
)
def test_unreadable_parameters_are_refused(bench: Any, method: str, params: list[Any]) -> None:
    assert error(bench, method, *params)[0] == -32602


def test_a_block_that_is_not_there(bench: Any) -> None:
    assert error(bench, "eth_getBalance", ALICE, "0x5") == (-32000, "header not found")
    assert error(bench, "eth_call", {"to": TICKER}, {"blockHash": "0x" + "11" * 32}) == (-32000, "header not found")
    assert bench.ask("eth_getBlockByNumber", "0x5", False) is None
    assert bench.ask("eth_getBlockByHash", "0x" + "11" * 32, False) is None
    assert bench.ask("eth_getTransactionByHash", "0x" + "11" * 32) is None
    assert bench.ask("eth_getTransactionReceipt", "0x" + "11" * 32) is None


def test_tags_and_block_objects_name_blocks(bench: Any) -> None:
    bench.ask("hardhat_mine", 80)
    number = {tag: bench.ask("eth_getBlockByNumber", tag, False)["number"] for tag in ("latest", "safe", "finalized")}
    assert number == {"latest": hex(80), "safe": hex(48), "finalized": hex(16)}
    genesis = bench.ask("eth_getBlockByNumber", "earliest", False)
    assert bench.ask("eth_getBalance", ALICE, {"blockHash": genesis["hash"]}) == hex(100 * ETHER)
    assert bench.ask("eth_getBalance", ALICE, {"blockNumber": "0x3"}) == hex(100 * ETHER)


# -- reading


def test_state_at_old_and_new_blocks(bench: Any) -> None:
    bench.submit()
    bench.submit()
    assert bench.ask("eth_getStorageAt", TICKER, "0x0", "0x1") == "0x" + f"{1:064x}"
    assert bench.ask("eth_getStorageAt", TICKER, "0x" + "00" * 32) == "0x" + f"{2:064x}"
    assert bench.ask("eth_getTransactionCount", ALICE, "0x1") == "0x1"
    assert bench.ask("eth_getCode", TICKER).startswith("0x602035")
    assert int(bench.ask("eth_call", {"to": TICKER, "data": CALLDATA}, "0x1"), 16) == 2


def test_pending_sees_what_waits(bench: Any) -> None:
    bench.ask("evm_setAutomine", False)
    tx = bench.submit()
    assert bench.ask("eth_getTransactionCount", ALICE, "pending") == "0x1"
    assert bench.ask("eth_getTransactionCount", ALICE, "latest") == "0x0"
    assert int(bench.ask("eth_call", {"to": TICKER, "data": CALLDATA}, "pending"), 16) == 2
    block = bench.ask("eth_getBlockByNumber", "pending", False)
    assert (block["hash"], block["number"], block["transactions"]) == (None, "0x1", ["0x" + tx.hash.hex()])
    shown = bench.ask("eth_getTransactionByHash", "0x" + tx.hash.hex())
    assert (shown["blockHash"], shown["blockNumber"], shown["transactionIndex"]) == (None, None, None)
    assert bench.ask("eth_getTransactionReceipt", "0x" + tx.hash.hex()) is None


def test_a_receipt_has_geths_fields(bench: Any) -> None:
    tx = bench.submit(tip=2 * GWEI)
    receipt = bench.ask("eth_getTransactionReceipt", "0x" + tx.hash.hex())
    assert receipt["effectiveGasPrice"] == hex(bench.chain.head.base_fee + 2 * GWEI)
    shown = bench.ask("eth_getTransactionByHash", "0x" + tx.hash.hex())
    assert (shown["gasPrice"], shown["maxFeePerGas"]) == (receipt["effectiveGasPrice"], hex(tx.max_fee))
    assert (receipt["status"], receipt["type"], receipt["contractAddress"]) == ("0x1", "0x2", None)
    (log,) = receipt["logs"]
    assert log["blockHash"] == receipt["blockHash"] == "0x" + bench.chain.head.hash.hex()
    assert log["transactionHash"] == receipt["transactionHash"]
    assert len(receipt["logsBloom"]) == 2 + 512
    assert bench.ask("eth_getBlockReceipts", "latest") == [receipt]


@pytest.mark.slow
def test_logs_come_by_range_by_block_and_by_topic(bench: Any) -> None:
    words = [n.to_bytes(32, "big") for n in range(4)]
    for n in range(4):
        bench.submit(data=words[n] + words[n % 2])
    topics = ["0x" + word.hex() for word in words]

    def heights(**wanted: Any) -> list[int]:
        return [int(log["blockNumber"], 16) for log in bench.ask("eth_getLogs", wanted)]

    assert heights() == [4]
    assert heights(fromBlock="0x0", toBlock="latest") == [1, 2, 3, 4]
    assert heights(fromBlock="0x2", toBlock="0xffff") == [2, 3, 4]
    assert heights(fromBlock="earliest", topics=[None, topics[0]]) == [1, 3]
    assert heights(fromBlock="earliest", topics=[[topics[1], topics[3]], topics[1]]) == [2, 4]
    assert heights(fromBlock="earliest", topics=[[], [None]]) == [1, 2, 3, 4]
    assert heights(fromBlock="earliest", address=[SPENDER]) == []
    assert heights(fromBlock="earliest", address=[SPENDER, TICKER]) == [1, 2, 3, 4]
    third = bench.chain.history.at(3)
    assert heights(blockHash="0x" + third.hash.hex()) == [3]


def test_log_limits_speak_like_public_nodes(bench: Any) -> None:
    for _ in range(3):
        bench.submit()
    everything = {"fromBlock": "0x0", "toBlock": "0x3"}
    bench.ask("zuno_setLogLimits", {"maxResults": 2})
    assert error(bench, "eth_getLogs", everything) == (-32005, "query returned more than 2 results")
    bench.ask("zuno_setLogLimits", {"maxRange": 3})
    assert error(bench, "eth_getLogs", everything) == (-32000, "exceed maximum block range: 3")
    assert len(bench.ask("eth_getLogs", {"fromBlock": "0x1", "toBlock": "0x3"})) == 3
    bench.ask("zuno_setLogLimits", {})
    assert len(bench.ask("eth_getLogs", everything)) == 3


def test_fee_history_is_camel_case_and_one_fee_longer(bench: Any) -> None:
    bench.submit(tip=3 * GWEI)
    bench.ask("evm_mine")
    history = bench.ask("eth_feeHistory", "0x3", "latest", [0, 50, 100])
    assert history["oldestBlock"] == "0x0"
    assert len(history["baseFeePerGas"]) == 4
    assert len(history["gasUsedRatio"]) == 3
    assert [[int(tip, 16) for tip in tips] for tips in history["reward"]] == [[0] * 3, [3 * GWEI] * 3, [0] * 3]


# -- calling


def test_reverts_have_code_3_and_their_bytes(bench: Any) -> None:
    for method in ("eth_call", "eth_estimateGas"):
        reply = exchange(bench, request(method, {"from": NOBODY, "to": REVERTER}))
        assert reply["error"] == {"code": 3, "message": "execution reverted", "data": "0xdeadbeef"}


def test_overrides_pretend(bench: Any) -> None:
    slot = {"0x" + "00" * 32: hex(41)}
    answer = bench.ask("eth_call", {"to": TICKER, "data": CALLDATA}, "latest", {TICKER: {"stateDiff": slot}})
    assert int(answer, 16) == 42
    rich = bench.ask("eth_call", {"from": NOBODY, "to": ALICE, "value": "0x5"}, "latest", {NOBODY: {"balance": "0x5"}})
    assert rich == "0x"
    assert bench.ask("eth_getBalance", NOBODY) == "0x0"


def test_an_unlocked_account_sends_unsigned(bench: Any) -> None:
    tx_hash = bench.ask("eth_sendTransaction", {"from": ALICE, "to": TICKER, "data": CALLDATA})
    assert bench.ask("eth_getTransactionReceipt", tx_hash)["status"] == "0x1"
    assert error(bench, "eth_sendTransaction", {"from": NOBODY, "to": TICKER}) == (-32000, "unknown account")
    assert bench.ask("eth_accounts") == [ALICE]


def test_a_simulation_runs_in_sequence_and_leaves_no_trace(bench: Any) -> None:
    bench.submit()
    tick = {"from": NOBODY, "to": TICKER, "data": CALLDATA}
    before = (bench.chain.head.hash, len(bench.chain.store), len(bench.node.pool), bench.clock.now)
    first, second = bench.ask(
        "eth_simulateV1",
        {
            "blockStateCalls": [
                {"calls": [tick, {"from": NOBODY, "to": REVERTER}, tick]},
                {"blockOverrides": {"time": hex(bench.chain.head.timestamp + 1000)}, "calls": [tick]},
            ],
        },
        "latest",
    )
    assert [call["status"] for call in first["calls"]] == ["0x1", "0x0", "0x1"]
    assert [int(call["returnData"], 16) for call in first["calls"][::2]] == [2, 3]
    assert first["calls"][1]["error"] == {"code": 3, "message": "execution reverted", "data": "0xdeadbeef"}
    assert [log["logIndex"] for call in first["calls"] for log in call["logs"]] == ["0x0", "0x1"]
    assert int(second["calls"][0]["returnData"], 16) == 4
    assert (second["number"], second["timestamp"]) == ("0x3", hex(bench.chain.head.timestamp + 1000))
    assert second["parentHash"] == first["hash"]
    assert (bench.chain.head.hash, len(bench.chain.store), len(bench.node.pool), bench.clock.now) == before


def test_a_simulation_predicts_the_gas_of_the_real_thing(bench: Any) -> None:
    call = {"from": ALICE, "to": TICKER, "data": CALLDATA}
    (block,) = bench.ask("eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}, "latest")
    tx = bench.submit()
    assert int(block["calls"][0]["gasUsed"], 16) == bench.chain.receipt(tx.hash).gas_used


def test_transfers_of_ether_are_traced_on_request(bench: Any) -> None:
    send = {"from": ALICE, "to": NOBODY, "value": "0x7"}
    (traced,) = bench.ask("eth_simulateV1", {"blockStateCalls": [{"calls": [send]}], "traceTransfers": True}, "latest")
    (log,) = traced["calls"][0]["logs"]
    assert (log["address"], int(log["data"], 16)) == ("0x" + "ee" * 20, 7)
    assert [topic[-40:] for topic in log["topics"][1:]] == [ALICE[2:], NOBODY[2:]]
    (plain,) = bench.ask("eth_simulateV1", {"blockStateCalls": [{"calls": [send]}]}, "latest")
    assert plain["calls"][0]["logs"] == []


# -- control


def test_the_pool_is_shown_in_two_rooms(bench: Any) -> None:
    bench.ask("evm_setAutomine", False)
    ready, gapped = bench.submit(), bench.submit(nonce=5)
    assert bench.ask("txpool_status") == {"pending": "0x1", "queued": "0x1"}
    content = bench.ask("txpool_content")
    assert content["pending"][ALICE]["0"]["hash"] == "0x" + ready.hash.hex()
    assert content["queued"][ALICE]["5"]["hash"] == "0x" + gapped.hash.hex()
    assert [tx["nonce"] for tx in bench.ask("zuno_mempool")] == ["0x0", "0x5"]
    assert bench.ask("zuno_dropTransaction", "0x" + ready.hash.hex()) is True
    assert bench.ask("txpool_status") == {"pending": "0x0", "queued": "0x1"}


def test_time_and_mining_are_controlled_by_the_names_people_know(bench: Any) -> None:
    start = bench.chain.head.timestamp
    bench.ask("evm_setNextBlockTimestamp", start + 500)
    bench.ask("evm_mine")
    assert bench.chain.head.timestamp == start + 500
    bench.ask("evm_mine", start + 600)
    assert bench.chain.head.timestamp == start + 600
    assert bench.ask("evm_increaseTime", 1000) == 1000
    bench.ask("evm_mine")
    assert bench.chain.head.timestamp == bench.clock.now + 1000
    bench.ask("hardhat_mine", "0x3", "0xc")
    assert bench.chain.head.timestamp == bench.chain.history.at(4).timestamp + 24
    saved = bench.ask("evm_snapshot")
    bench.ask("evm_mine")
    assert bench.ask("evm_revert", saved) is True
    assert bench.chain.head.number == 6


def test_a_reorg_is_seen_through_the_wire(bench: Any) -> None:
    tx = "0x" + bench.submit().hash.hex()
    old = bench.ask("eth_getTransactionReceipt", tx)["blockHash"]
    (new,) = bench.ask("zuno_reorg", 1)
    assert bench.ask("eth_getTransactionReceipt", tx) is None
    assert bench.ask("eth_getTransactionByHash", tx)["blockHash"] is None
    assert bench.ask("eth_getBlockByHash", old, False) is None
    assert bench.ask("eth_getLogs", {"fromBlock": "earliest"}) == []
    bench.ask("evm_mine")
    assert bench.ask("eth_getTransactionReceipt", tx)["blockHash"] not in (old, new)
    assert bench.ask("zuno_reorg", 1, {"drop": [tx]})
    assert bench.ask("eth_getTransactionByHash", tx) is None
