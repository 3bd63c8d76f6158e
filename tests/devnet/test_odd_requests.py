"""Every method with odd parameters: refused in geth's words, nothing changed, and the node lives on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from zuno_devnet.controls import CONTROLS
from zuno_devnet.keys import dev_address
from zuno_devnet.methods import METHODS
from zuno_devnet.node import DevnetNode, LogLimits
from zuno_devnet.server import Server

ACCOUNT: Final = "0x" + "11" * 20
HASH: Final = "0x" + "ff" * 32
ALICE: Final = "0x" + dev_address("alice").hex()

ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, -1, 0, 1, 1.5, 2**64, 2**256, 1e308),
    *("", "0x", "0x1", "-5", "NaN", "1e400", "latest", "pending", ACCOUNT, HASH, HASH + "ff", "\ud800"),
    *([], [[]], [None], ["x"], [-1], [50, 10], [{}], {}, {"a": 1}),
    *({"accessList": odd} for odd in (5, [5], [{}], [{"address": ACCOUNT, "storageKeys": 5}])),  # type: ignore[var-annotated]
    *({"blockHash": None}, {"blockNumber": None}, {"blockNumber": {}}),
    *({"maxRange": "x"}, {"maxResults": -3}, {"maxRange": 1.5}, {"maxrange": 1}),
    *({"blockStateCalls": odd} for odd in (5, [5], [{"calls": 5}], [{"calls": [5]}], [{"blockOverrides": 5}])),
    *({"blockStateCalls": [{"blockOverrides": {"time": odd}}]} for odd in (2**64, -1, 0)),
    *({"blockStateCalls": [{"stateOverrides": {ACCOUNT: odd}}]} for odd in (5, {"balance": 2**300}, {"nonce": 2**256})),
    *({"blockStateCalls": [{"calls": [{"to": ACCOUNT, "gas": HASH}]}]}, {"blockStateCalls": [{}], "validation": "yes"}),
    *({"drop": 5}, {"drop": ["x"]}, {"keep": "x"}),
    *({"kind": "delay", "methods": 5}, {"kind": ["delay"]}, {"kind": "status", "status": 99999}),
    *({"kind": "delay", "ms": 2**255}, {"kind": "delay", "methods": [5]}, {"kind": "cut", "processed": "yes"}),
    *({"from": 5}, {"to": ""}, {"to": ACCOUNT, "value": HASH}, {"from": ALICE, "nonce": 2**64}),
    *({"from": ALICE, "to": ACCOUNT, "gas": 2**255, "maxFeePerGas": 2**255}, {"from": ALICE, "value": 2**256}),
    *({"address": 5}, {"address": [[]]}, {"topics": "x"}, {"topics": {"a": 1}}, {"topics": [[5]]}),
    *({"fromBlock": -1}, {"fromBlock": "x"}, {"toBlock": {}}, {"fromBlock": []}),
)
PLAIN: Final[tuple[Any, ...]] = ("0x1", ACCOUNT, HASH, {})
MEANT: Final = frozenset({-32602, -32000, -32005, -32015, 3, -38020, -38021, -38015})
"""Every code but -32603, which says that the node itself has failed."""


@pytest.fixture
def server(bench: Any) -> Iterator[Server]:
    bench.submit()
    with Server(bench.node, 0) as server:
        yield server


def names() -> list[str]:
    return [*METHODS, *CONTROLS, "zuno_fault", "zuno_stats"]


def test_no_method_is_left_out(server: Server) -> None:
    assert set(names()) == set(server.rpc._methods)


def combinations() -> Iterator[list[Any]]:
    yield []
    for odd in ODD:
        yield [odd]
        for plain in PLAIN:
            yield [plain, odd]
        yield [ACCOUNT, "0x1", odd]
        yield ["0x1", "latest", odd]


def standing(node: DevnetNode) -> tuple[Any, ...]:
    waiting = tuple(tx.hash for tx in node.pool)
    return node.chain.head.hash, len(node.chain.store), waiting, node.automine, node.time_offset, node.log_limits


def exchange(server: Server, method: str, params: list[Any]) -> dict[str, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    reply: dict[str, Any] = json.loads(server.rpc.answer(body))
    return reply


@pytest.mark.soak(every=6)
@pytest.mark.slow
@pytest.mark.parametrize("method", names())
def test_odd_parameters_are_refused_and_change_nothing(bench: Any, server: Server, method: str) -> None:
    node: DevnetNode = bench.node
    for params in combinations():
        snapshot = node.snapshot()
        before = standing(node)
        reply = exchange(server, method, params)
        if "error" in reply:
            assert reply["error"]["code"] in MEANT, (params, reply)
            assert standing(node) == before, params
        elif standing(node) != before:
            # What was taken must leave a node that can go on.
            for probe in (["eth_getLogs", {}], ["eth_getBlockByNumber", "pending", True], ["evm_mine"]):
                assert "result" in exchange(server, probe[0], probe[1:]), (params, probe)  # type: ignore[arg-type]
            node.set_automine(True)
            node.log_limits = LogLimits()
            assert node.revert(snapshot)
    assert exchange(server, "eth_blockNumber", [])["result"] == "0x1"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_call", [{"to": ACCOUNT, "accessList": [{"storageKeys": []}]}]),
        ("eth_call", [{"to": ACCOUNT, "accessList": "0x"}]),
        ("eth_sendTransaction", [{"from": ALICE, "accessList": [{"address": ACCOUNT, "storageKeys": []}]}]),
        ("eth_feeHistory", ["0x1", "latest", ["50"]]),
        ("eth_feeHistory", ["0x1", "latest", 50]),
        ("eth_feeHistory", ["0x1", "latest", [True]]),
        ("eth_getBlockByNumber", ["latest", "yes"]),
        ("zuno_setLogLimits", [{"maxRange": "many"}]),
        ("zuno_setLogLimits", [{"maxResult": 5}]),
        ("evm_mine", [2**64]),
        ("evm_mine", [2**63]),
        ("evm_setNextBlockTimestamp", [2**64]),
        ("evm_increaseTime", [2**63 - 1]),
        ("hardhat_mine", [3, 2**62]),
        ("eth_getStorageAt", [ACCOUNT, 2**256]),
        ("zuno_fault", [{"kind": "delay", "ms": 10**9}]),
    ],
)
def test_what_cannot_be_read_has_geths_code(bench: Any, server: Server, method: str, params: list[Any]) -> None:
    before = standing(bench.node)
    assert exchange(server, method, params)["error"]["code"] == -32602
    assert standing(bench.node) == before


def test_what_is_no_json_number_is_no_json(bench: Any) -> None:
    for word in (b"NaN", b"Infinity", b"-Infinity"):
        reply = json.loads(bench.rpc.answer(b'{"id": 1, "method": "evm_mine", "params": [' + word + b"]}"))
        assert reply["error"]["code"] == -32700
    assert bench.chain.head.number == 0


@pytest.mark.parametrize("failure", [ConnectionResetError(), BrokenPipeError(), TimeoutError()])
def test_a_client_that_hangs_up_is_no_news(server: Server, caplog: pytest.LogCaptureFixture, failure: OSError) -> None:
    fail(server, failure)
    assert caplog.text == ""


def test_a_bug_in_the_server_leaves_its_trace_in_the_log(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    fail(server, ZeroDivisionError("ours"))
    assert "Traceback" in caplog.text
    assert "ours" in caplog.text


def fail(server: Server, failure: Exception) -> None:
    """As the socket server does it: from inside the handling of the exception."""
    try:
        raise failure
    except Exception:
        server.handle_error(None, ("127.0.0.1", 1))
