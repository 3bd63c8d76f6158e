"""A generated chain of many wallets with positions in twenty pools, behind a JSON-RPC node of its own: made in
seconds, where minting them on the devnet takes minutes. It answers what a reader of positions asks and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from eth_abi.abi import decode, encode

from zuno.adapters.chain.rpc import abi
from zuno.amm.identity import pool_id, pool_slots, position_key, position_slots
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import Token
from zuno.kernel.units import Address
from zuno.lp.model.chains import ETH, ChainInfo, Deployment

POOLS = 20
TICK = -196_000
FIRST_BLOCK, BLOCK_SECONDS, GENESIS = 50_000, 12, 1_700_000_000
USDC = Token(Address("0x" + "a0" * 20), "USDC", 6, verified=True)
MANAGER, POSITIONS = Address("0x" + "b1" * 20), Address("0x" + "b2" * 20)
INFO = ChainInfo(
    31_338,
    "generated",
    "Generated",
    Deployment(
        pool_manager=MANAGER,
        position_manager=POSITIONS,
        quoter=Address("0x" + "b3" * 20),
        state_view=Address("0x" + "b4" * 20),
        universal_router=Address("0x" + "b5" * 20),
    ),
    (ETH, USDC),
    testnet=True,
    confirmations=1,
)


def wallet_address(number: int) -> Address:
    return Address("0x" + sha256(f"wallet {number}".encode()).hexdigest()[:40])


class GeneratedChain:
    """`held` positions for each wallet, in one pool after the other; one in fifty is out of its range."""

    def __init__(self, wallets: int, held: int = 2) -> None:
        self.wallets = [wallet_address(number) for number in range(wallets)]
        self.head = FIRST_BLOCK
        self.asked: list[str] = []
        self.fees = [100 * (number + 1) for number in range(POOLS)]
        self.pools = [pool_id(ETH.address, USDC.address, fee, 10, "0x" + "00" * 20) for fee in self.fees]
        self.ids: dict[str, list[int]] = {}
        self.words: dict[int, int] = {}
        self.infos: list[tuple[int, str]] = []
        for pool in self.pools:
            self.words[pool_slots(pool).slot0] = sqrt_price_at_tick(TICK) | (TICK & 0xFFFFFF) << 160 | 500 << 208
            self.words[pool_slots(pool).liquidity] = 10**18
        for number, wallet in enumerate(self.wallets):
            for turn in range(held):
                self.mint(wallet, (number + turn) % POOLS, out=(number * held + turn) % 50 == 0)

    def mint(self, wallet: str, pool: int, *, out: bool = False) -> int:
        token, width = len(self.infos) + 1, 1_000 + 10 * (len(self.infos) % 30)
        lower, upper = (TICK + 100, TICK + 100 + width) if out else (TICK - width, TICK + width)
        prefix = int(self.pools[pool][2:52], 16)
        self.infos.append((prefix << 56 | (upper & 0xFFFFFF) << 32 | (lower & 0xFFFFFF) << 8, wallet))
        self.ids.setdefault(wallet, []).append(token)
        key = position_key(POSITIONS, lower, upper, token)
        self.words[position_slots(self.pools[pool], key)[0]] = 10**12
        return token

    def answer(self, method: str, params: Sequence[Any]) -> Any:
        match method:
            case "eth_chainId":
                return hex(INFO.id)
            case "eth_blockNumber":
                return hex(self.head)
            case "eth_getBlockByNumber":
                return _block(self.head if params[0] == "latest" else int(params[0], 16))
            case "eth_feeHistory":
                return {
                    "oldestBlock": hex(self.head),
                    "baseFeePerGas": ["0x7"] * 2,
                    "gasUsedRatio": [0.5],
                    "reward": [["0x1"]],
                }
            case "eth_getLogs":
                return self._logs(params[0])
            case "eth_call":
                return "0x" + self._call(params[0]["to"].lower(), bytes.fromhex(params[0]["data"][2:])).hex()
        raise AssertionError(f"nobody asks {method}")

    def _logs(self, wanted: Any) -> list[dict[str, Any]]:
        first, last, topics = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16), wanted["topics"]
        if len(topics) < 3:
            return []  # what happened since: nothing
        owners = [topics[2]] if isinstance(topics[2], str) else topics[2]
        events = sorted((token, owner) for owner in owners for token in self.ids.get("0x" + owner[26:], ()))
        return [_transfer(token, owner) for token, owner in events if first <= _mint_block(token) <= last]

    def _call(self, to: str, data: bytes) -> bytes:
        if to == MANAGER:
            count = int.from_bytes(data[36:68], "big")
            slots = (int.from_bytes(data[68 + 32 * at : 100 + 32 * at], "big") for at in range(count))
            return abi.word(32) + abi.word(count) + b"".join(abi.word(self.words.get(slot, 0)) for slot in slots)
        if data[:4] == abi.MULTICALL:
            return encode(["bytes[]"], [[self._view(call) for call in decode(["bytes[]"], data[4:])[0]]])
        return self._view(data)

    def _view(self, data: bytes) -> bytes:
        match data[:4]:
            case abi.BALANCE_OF:
                return abi.word(len(self.ids.get("0x" + data[16:36].hex(), ())))
            case abi.POSITION_INFO:
                return abi.word(self.infos[int.from_bytes(data[4:], "big") - 1][0])
            case abi.OWNER_OF:
                return bytes(12) + bytes.fromhex(self.infos[int.from_bytes(data[4:], "big") - 1][1][2:])
            case abi.POOL_KEYS:
                at = next(at for at, pool in enumerate(self.pools) if pool[2:52] == data[4:29].hex())
                return encode(abi.POOL_KEY, (ETH.address, USDC.address, self.fees[at], 10, "0x" + "00" * 20))
        raise AssertionError("nobody asks that")


def _mint_block(token: int) -> int:
    return 1_000 + token // 100


def _hash(number: int) -> str:
    return "0x" + sha256(f"block {number}".encode()).hexdigest()


def _block(number: int) -> dict[str, Any]:
    return {"number": hex(number), "hash": _hash(number), "timestamp": hex(GENESIS + BLOCK_SECONDS * number)}


def _transfer(token: int, owner: str) -> dict[str, Any]:
    number = _mint_block(token)
    return {
        "address": POSITIONS,
        "topics": [abi.TRANSFER, "0x" + "00" * 32, owner, abi.id_word(token)],
        "data": "0x",
        "blockNumber": hex(number),
        "blockHash": _hash(number),
        "transactionHash": "0x" + sha256(f"mint {token}".encode()).hexdigest(),
        "transactionIndex": hex(token % 100),
        "logIndex": hex(token % 100),
    }


class ServedChain(Protocol):
    head: int
    asked: list[str]

    def answer(self, method: str, params: Sequence[Any]) -> Any:
        """`LookupError` where the node has lost what is asked."""


@contextmanager
def serve_chain(chain: ServedChain) -> Iterator[str]:
    """The chain's node on a loopback port. `zuno_advance` makes the next block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answers = [self.reply(each) for each in (asked if isinstance(asked, list) else [asked])]
            body = json.dumps(answers if isinstance(asked, list) else answers[0]).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
            chain.asked.append(asked["method"])
            if asked["method"] == "zuno_advance":
                chain.head += 1
                return {"jsonrpc": "2.0", "id": asked["id"], "result": True}
            try:
                return {"jsonrpc": "2.0", "id": asked["id"], "result": chain.answer(asked["method"], asked["params"])}
            except LookupError as missing:
                return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": str(missing)}}

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
