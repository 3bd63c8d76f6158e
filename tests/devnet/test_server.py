"""The node on a socket: many clients at once, rude ones, and faults made to order."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from socketserver import StreamRequestHandler
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from zuno.kernel.errors import Unavailable
from zuno_devnet.chain import ETHER, Genesis, LocalChain
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.server import serve
from zuno_devnet.transactions import sign

pytestmark = pytest.mark.slow
ROLES = [f"client {n}" for n in range(6)]
LONG_CODE = bytes(24_000)


@pytest.fixture
def url() -> Iterator[str]:
    balances = {dev_address(role): ETHER for role in ROLES}
    chain = LocalChain.create(Genesis(balances=balances, code={b"\x77" * 20: LONG_CODE}))
    with serve(DevnetNode(chain)) as address:
        yield address


def post(url: str, body: Any, **headers: str) -> tuple[int, bytes]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, raw, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def ask(url: str, method: str, *params: Any) -> Any:
    status, body = post(url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)})
    assert status == 200
    reply = json.loads(body)
    assert "error" not in reply, reply
    return reply["result"]


def transfer(role: str, nonce: int) -> str:
    tx = sign(
        dev_key(role), chain_id=31337, nonce=nonce, to=b"\x99" * 20, value=1, gas=21_000, max_fee=5 * 10**9, tip=10**9
    )
    return "0x" + tx.raw.hex()


def test_many_clients_at_once_see_one_chain(url: str) -> None:
    def client(role: str) -> list[str]:
        hashes = []
        for nonce in range(5):
            hashes.append(ask(url, "eth_sendRawTransaction", transfer(role, nonce)))
            ask(url, "eth_getBalance", "0x" + dev_address(role).hex(), "latest")
        return hashes

    with ThreadPoolExecutor(len(ROLES)) as pool:
        hashes = [tx_hash for made in pool.map(client, ROLES) for tx_hash in made]
    assert len(set(hashes)) == 30
    assert int(ask(url, "eth_getBalance", "0x" + "99" * 20, "latest"), 16) == 30
    assert all(ask(url, "eth_getTransactionReceipt", tx_hash)["status"] == "0x1" for tx_hash in hashes)


def test_a_connection_is_kept_and_sends_without_waiting(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm and a delayed acknowledgement cost 40 ms an answer."""
    undelayed: list[int] = []
    setup = StreamRequestHandler.setup

    def note(handler: StreamRequestHandler) -> None:
        setup(handler)
        undelayed.append(handler.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(StreamRequestHandler, "setup", note)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_getCode", "params": ["0x" + "77" * 20, "latest"]})
    sockets = set()
    for _ in range(20):
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        assert len(json.loads(connection.getresponse().read())["result"]) == 2 + 2 * len(LONG_CODE)
        sockets.add(id(connection.sock))
    connection.close()
    assert len(sockets) == 1
    (waits_for_nobody,) = undelayed
    assert waits_for_nobody


def test_rude_clients_are_shown_out(url: str) -> None:
    chain_id = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}
    assert post(url, chain_id, Host="evil.example:8545")[0] == 403
    assert post(url, chain_id, Host="localhost:1")[0] == 200
    assert post(url, chain_id, **{"Content-Type": "text/plain"})[0] == 415
    assert json.loads(post(url, b"\xff\x00 garbage")[1])["error"]["code"] == -32700
    assert json.loads(post(url, b"[" * 200_000)[1])["error"]["code"] == -32700
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        raw.sendall(b"Content-Length: 99999999\r\n\r\n")
        assert b" 413 " in raw.recv(100)
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
    assert ask(url, "eth_chainId") == "0x7a69"
    assert urllib.request.urlopen(url).status == 200


def test_requests_are_counted(url: str) -> None:
    before = ask(url, "zuno_stats")["requests"]
    post(url, [{"id": n, "method": "eth_chainId"} for n in range(10)])
    assert ask(url, "zuno_stats")["requests"] == before + 2


def test_faults_come_as_ordered_and_then_stop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(url, "zuno_fault", {"kind": "status", "count": 2, "status": 503})
    probe = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber"}
    assert [post(url, probe)[0] for _ in range(3)] == [503, 503, 200]
    ask(url, "zuno_fault", {"kind": "garbage"})
    with pytest.raises(ValueError, match=r"utf-8|Expecting"):
        json.loads(post(url, probe)[1])
    ask(url, "zuno_fault", {"kind": "delay", "ms": 150, "methods": ["eth_chainId"]})
    slept: list[float] = []
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", slept.append)
        ask(url, "eth_blockNumber")
        assert slept == []
        ask(url, "eth_chainId")
        assert slept == [0.15]
    ask(url, "zuno_fault", {"kind": "status", "count": 99})
    ask(url, "zuno_fault")
    assert ask(url, "eth_chainId") == "0x7a69"


def test_a_reply_can_be_lost_after_the_transaction_was_taken(url: str) -> None:
    ask(url, "zuno_fault", {"kind": "cut", "methods": ["eth_sendRawTransaction"]})
    raw = transfer(ROLES[0], 0)
    send = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw]}
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(url, send)
    reply = json.loads(post(url, send)[1])
    assert reply["error"] == {"code": -32000, "message": "nonce too low: next nonce 1, tx nonce 0"}
    ask(url, "zuno_fault", {"kind": "status", "methods": ["eth_sendRawTransaction"]})
    send["params"] = [transfer(ROLES[0], 1)]
    assert post(url, send)[0] == 500
    assert ask(url, "eth_getTransactionCount", "0x" + dev_address(ROLES[0]).hex(), "pending") == "0x1"


def test_an_unknown_fault_is_refused(url: str) -> None:
    for wish in ({"kind": "explode"}, {"kind": "cut", "often": True}):
        reply = json.loads(post(url, {"id": 1, "method": "zuno_fault", "params": [wish]})[1])
        assert reply["error"]["code"] == -32602


def test_a_taken_port_is_told(url: str) -> None:
    port = int(url.rsplit(":", 1)[1])
    node = DevnetNode(LocalChain.create(Genesis()))
    with pytest.raises(Unavailable, match=rf"\b{port} .*127\.0\.0\.1\b"), serve(node, port):
        pass


def test_leaving_the_block_frees_the_port_even_with_idle_clients() -> None:
    node = DevnetNode(LocalChain.create(Genesis()))
    with serve(node) as url:
        idle = http.client.HTTPConnection(url.removeprefix("http://"))
        idle.request("GET", "/")
        idle.getresponse().read()
        port = int(url.rsplit(":", 1)[1])
    with serve(node, port) as again:
        assert ask(again, "eth_chainId") == "0x7a69"
    idle.close()


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    script = (
        "from zuno_devnet.chain import Genesis, LocalChain\n"
        "from zuno_devnet.node import DevnetNode\n"
        "from zuno_devnet.server import serve_until_signalled\n"
        "serve_until_signalled(DevnetNode(LocalChain.create(Genesis())), 0, lambda url: print(url, flush=True))\n"
        "print('bye', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert ask(url, "eth_chainId") == "0x7a69"
        os.kill(process.pid, number)
        watchdog = threading.Timer(20, process.kill)
        watchdog.start()
        rest = process.stdout.read()
        watchdog.cancel()
        assert (process.wait(), rest) == (0, "bye\n")
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
