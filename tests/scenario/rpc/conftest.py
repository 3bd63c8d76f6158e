"""A small stage on the real contracts, and a node that can be told to misbehave."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.paths import NODE_MODULES

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_abi.abi import decode, encode

from zuno.adapters.chain.rpc import RpcChain, RpcPolicy
from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.model import PoolKey
from zuno.kernel.errors import Unavailable
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Pips
from zuno.lp.model.chains import ETH, ChainInfo, Deployment
from zuno.lp.plan import calldata
from zuno.lp.plan.calldata import EncodedAction
from zuno_devnet.artifacts import Artifacts, find_artifacts
from zuno_devnet.chain import ETHER, LocalChain
from zuno_devnet.deploy import deploy, v4_genesis
from zuno_devnet.execution import CallMessage
from zuno_devnet.history import ChainIndex, LocalReceipt
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.rpc import Rpc

GENESIS = 1_700_000_000
FOREVER = 2**40
MOST = 2**128 - 1
LOWER, UPPER = -207_000, -190_800
START_PRICE = 3543191142285914205922034  # sqrt(2000e6 / 1e18) in Q64.96
LIQUIDITY = 10**16

DECREASE, BURN, CLOSE, TAKE_PAIR = 0x01, 0x03, 0x12, 0x11

LISTENER = bytes.fromhex("11" * 20)
"""A subscriber that accepts everything: its code is STOP."""
OLD_TOKEN = bytes.fromhex("22" * 20)
"""Answers every question with the bytes32 "MKR", its decimals included."""
MUTE_TOKEN = bytes.fromhex("33" * 20)
"""Reverts whatever is asked."""
QUIET_HOOK = Address("0x" + "44" * 18 + "4000")
"""An address without any hook flag: allowed for dynamic fees, never called."""

PATIENT = RpcPolicy(timeout=60.0, rounds=2, first_pause=0.01, longest_pause=0.02, cool_down=0.2)
"""For a node that answers, however busy the machine is: it executes contracts in the test's own process."""


@pytest.fixture(scope="session")
def artifacts() -> Artifacts:
    try:
        return find_artifacts(NODE_MODULES)
    except Unavailable as reason:
        pytest.skip(str(reason))


class Stage:
    """The contracts, two pools and two people, driven directly; the adapter under test sees only JSON-RPC."""

    def __init__(self, artifacts: Artifacts, chain_id: int = 31337) -> None:
        self.artifacts = artifacts
        people = {dev_address(role): 1_000_000 * ETHER for role in ("wallet", "trader", "empty")}
        genesis = v4_genesis(artifacts, balances=people, timestamp=GENESIS, chain_id=chain_id)
        odd = {
            LISTENER: b"\x00",
            OLD_TOKEN: b"\x7f" + b"MKR".ljust(32, b"\0") + bytes.fromhex("60005260206000f3"),
            MUTE_TOKEN: bytes.fromhex("60006000fd"),
        }
        self.chain = LocalChain.create(replace(genesis, code={**genesis.code, **odd}))
        self.node = DevnetNode(self.chain)
        at = deploy(self.chain, artifacts)
        self.weth, self.usdc = _text(at.weth), _text(at.usdc)
        self.info = ChainInfo(
            chain_id,
            "devnet",
            "Devnet",
            Deployment(
                _text(at.pool_manager),
                _text(at.position_manager),
                _text(at.universal_router),
                quoter=_text(at.quoter),
                state_view=_text(at.state_view),
            ),
            (ETH, Token(self.weth, "WETH", 18, verified=True), Token(self.usdc, "USDC", 6, verified=True)),
            testnet=True,
            confirmations=1,
        )
        self.native_pool = self.key(NATIVE, self.usdc, 3000, 60)
        self.weth_pool = self.key(self.weth, self.usdc, 500, 10)
        for role in ("wallet", "trader"):
            self._fund(role)
        for key in (self.native_pool, self.weth_pool):
            self.initialize(key)
            self.mint(key, LOWER, UPPER, LIQUIDITY, role="trader")

    def fork(self) -> Stage:
        """The same world, which goes its own way from here on; blocks and nodes of the state never change."""
        history = ChainIndex()
        for block in self.chain.history:
            history.append(block)
        fork = copy.copy(self)
        fork.chain = LocalChain(self.chain.genesis, dict(self.chain.store), history)
        fork.node = DevnetNode(fork.chain)
        return fork

    # -- names

    @property
    def wallet(self) -> Address:
        return _text(dev_address("wallet"))

    @property
    def trader(self) -> Address:
        return _text(dev_address("trader"))

    def key(self, one: str, other: str, fee: int, spacing: int, hooks: Address = NATIVE) -> PoolKey:
        low, high = sorted((one, other), key=lambda address: int(address, 16))
        return PoolKey(Address(low), Address(high), Pips(fee), spacing, hooks)

    def dynamic_pool(self) -> PoolKey:
        return self.key(NATIVE, self.usdc, DYNAMIC_FEE_FLAG, 60, QUIET_HOOK)

    # -- acts

    def send(self, role: str, to: str | None, data: bytes, value: int = 0, *, wait: int = 12) -> LocalReceipt:
        """One transaction in a block of its own."""
        return self.send_together([(role, to, data, value)], wait=wait)[0]

    def send_together(
        self, wanted: Sequence[tuple[str, str | None, bytes, int]], *, wait: int = 12
    ) -> tuple[LocalReceipt, ...]:
        """Several transactions in one block, in this order."""
        sent, txs = Counter[str](), []
        for role, to, data, value in wanted:
            txs.append(
                self.chain.sign(
                    dev_key(role),
                    to=None if to is None else bytes.fromhex(to[2:]),
                    data=data,
                    value=value,
                    gas=25_000_000 if len(wanted) == 1 else 9_000_000,
                    nonce=self.chain.nonce(dev_address(role)) + sent[role],
                )
            )
            sent[role] += 1
        receipts = self.chain.apply_block(txs, self.chain.head.timestamp + wait).receipts
        for receipt in receipts:
            assert receipt.ok, (receipt.error, receipt.revert_data.hex())
        return receipts

    def pass_time(self, seconds: int) -> None:
        self.chain.apply_block([], self.chain.head.timestamp + seconds)

    def initialize(self, key: PoolKey, sqrt_price: int = START_PRICE) -> None:
        data = calldata.call(f"initialize({calldata.KEY},uint160)", calldata.key_tuple(key), sqrt_price)
        self.send("trader", self.info.deployment.pool_manager, data)

    def create(self, init_code: bytes) -> Address:
        contract = self.send("trader", None, init_code).contract
        assert contract is not None
        return _text(contract)

    def token_named(self, symbol: str, decimals: int = 18) -> Address:
        arguments = encode(("string", "string", "uint8"), ("Some token", symbol, decimals))
        return self.create(self.artifacts.init_code("MockERC20") + arguments)

    def modify(self, steps: Sequence[EncodedAction], role: str = "wallet", value: int = 0) -> LocalReceipt:
        return self.send(role, self.info.deployment.position_manager, self.modifying(steps), value)

    def modifying(self, steps: Sequence[EncodedAction]) -> bytes:
        return calldata.modify_liquidities(steps, FOREVER)

    def minting(self, key: PoolKey, lower: int, upper: int, liquidity: int, owner: str | None = None) -> EncodedAction:
        return calldata.mint_position(key, lower, upper, liquidity, MOST, MOST, owner or self.wallet)

    def paying(self, key: PoolKey, role: str = "wallet") -> list[EncodedAction]:
        back = [calldata.sweep(NATIVE, _text(dev_address(role)))] if key.currency0 == NATIVE else []
        return [calldata.settle_pair(key.currency0, key.currency1), *back]

    def mint(
        self, key: PoolKey, lower: int, upper: int, liquidity: int, *, role: str = "wallet", count: int = 1
    ) -> list[int]:
        """`count` alike positions in one transaction; their ids."""
        first = self.next_token()
        owner = _text(dev_address(role))
        steps = [self.minting(key, lower, upper, liquidity, owner)] * count + self.paying(key, role)
        self.modify(steps, role, value=1_000 * ETHER if key.currency0 == NATIVE else 0)
        return list(range(first, first + count))

    def changing(self, action: int, token: int, liquidity: int = 0) -> EncodedAction:
        if action == BURN:
            return EncodedAction(BURN, encode(("uint256", "uint128", "uint128", "bytes"), (token, 0, 0, b"")))
        types = ("uint256", "uint256", "uint128", "uint128", "bytes")
        limit = MOST if action == 0 else 0
        return EncodedAction(action, encode(types, (token, liquidity, limit, limit, b"")))

    def closing(self, key: PoolKey) -> list[EncodedAction]:
        """Pay or take whatever is left of both currencies."""
        return [EncodedAction(CLOSE, encode(("address",), (currency,))) for currency in (key.currency0, key.currency1)]

    def burn(self, key: PoolKey, token: int) -> LocalReceipt:
        return self.modify([self.changing(BURN, token), *self.closing(key)])

    def swapping(self, key: PoolKey, zero_for_one: bool, amount: int) -> tuple[str, bytes, int]:
        """To, data and value of a router swap."""
        paid, got = (key.currency0, key.currency1) if zero_for_one else (key.currency1, key.currency0)
        steps = [
            calldata.swap_exact_in_single(key, zero_for_one, amount, 0, self.info.deployment.swap_struct),
            calldata.settle(paid, calldata.OPEN_DELTA, payer_is_user=True),
            calldata.take(got, calldata.SENDER, calldata.OPEN_DELTA),
        ]
        data = calldata.execute([calldata.v4_swap(steps)], FOREVER)
        return self.info.deployment.universal_router, data, amount if paid == NATIVE else 0

    def swap(self, key: PoolKey, zero_for_one: bool, amount: int, role: str = "trader") -> LocalReceipt:
        to, data, value = self.swapping(key, zero_for_one, amount)
        return self.send(role, to, data, value)

    def trade(self, key: PoolKey, times: int = 1) -> None:
        """Back and forth, so that both sides earn fees."""
        for _ in range(times):
            self.swap(key, True, ETHER // 3)
            self.swap(key, False, 700 * 10**6)

    # -- truths

    def next_token(self) -> int:
        return self.ask(self.info.deployment.position_manager, calldata.call("nextTokenId()"))

    def balance(self, currency: str, role: str = "wallet") -> int:
        owner = dev_address(role)
        if currency == NATIVE:
            return self.chain.balance(owner)
        return self.ask(Address(currency), calldata.call("balanceOf(address)", _text(owner)))

    def ask(self, to: Address, data: bytes) -> int:
        (value,) = decode(["uint256"], self.chain.call(CallMessage(bytes(20), bytes.fromhex(to[2:]), data)))
        return int(value)

    def _fund(self, role: str) -> None:
        owner = _text(dev_address(role))
        self.send(role, self.usdc, calldata.call("mint(address,uint256)", owner, 10**15))
        self.send(role, self.weth, calldata.call("deposit()"), value=10_000 * ETHER)
        permit2 = self.info.deployment.permit2
        for token in (self.weth, self.usdc):
            self.send(role, token, calldata.call("approve(address,uint256)", permit2, 2**256 - 1))
            for spender in (self.info.deployment.position_manager, self.info.deployment.universal_router):
                grant = "approve(address,address,uint160,uint48)"
                self.send(role, permit2, calldata.call(grant, token, spender, 2**160 - 1, 2**48 - 1))


def _text(address: bytes) -> Address:
    return Address("0x" + address.hex())


@pytest.fixture(scope="session")
def first_stage(artifacts: Artifacts) -> Stage:
    """Built once by a worker and never touched; tests get forks of it."""
    return Stage(artifacts)


@pytest.fixture
def stage(first_stage: Stage) -> Stage:
    return first_stage.fork()


@pytest.fixture(scope="session")
def new_stage(first_stage: Stage) -> Callable[[], Stage]:
    """For files whose tests can share a world."""
    return first_stage.fork


Answer = Callable[[bytes], bytes]
Bend = Callable[[dict[str, Any], Any], Any]
"""From a question and the honest reply to it to the reply that is sent instead."""


@dataclass(frozen=True)
class Trouble:
    """What happens to a request instead of an answer."""

    kind: str
    """down, slow, garbage, cut, status, answer"""
    status: int = 500
    body: bytes = b""


Plan = Callable[[int, list[dict[str, Any]]], Trouble | None]
"""From the request's number and content to the trouble it meets, if any."""


@dataclass
class FaultyNode:
    """A JSON-RPC server on loopback that answers through `answer` unless its plan says otherwise."""

    answer: Answer
    plan: Plan | None = None
    seen: list[list[dict[str, Any]]] = field(default_factory=list)
    url: str = ""
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def methods(self) -> list[str]:
        return [str(request.get("method")) for body in self.seen for request in body]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not self.closed.is_set() and await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        body = await reader.readexactly(length)
        parsed = json.loads(body)
        requests = parsed if isinstance(parsed, list) else [parsed]
        self.seen.append(requests)
        trouble = self.plan(len(self.seen), requests) if self.plan else None
        status, reply, promised = 200, b"", None
        match trouble:
            case None:
                reply = self.answer(body)
            case Trouble("down"):
                return False
            case Trouble("slow"):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.closed.wait(), 30)
            case Trouble("garbage"):
                reply = b"<html>\x00 not json"
            case Trouble("cut"):
                reply = self.answer(body)
                promised, reply = len(reply), reply[: len(reply) // 2]
            case Trouble("answer", body=content):
                reply = content
            case Trouble("status", status=code, body=content):
                status, reply = code, content
        length_told = len(reply) if promised is None else promised
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length_told}\r\n\r\n".encode()
            + reply
        )
        await writer.drain()
        return promised is None


@asynccontextmanager
async def listening(node: FaultyNode) -> AsyncIterator[FaultyNode]:
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0, limit=2**20)
    node.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield node
    finally:
        node.closed.set()
        server.close()


class Desk:
    """Everything a test of the adapter needs: nodes that may fail, and chains that read from them."""

    def __init__(self, stage: Stage, cache: Path, stack: Any) -> None:
        self.stage = stage
        self.cache = cache
        self._stack = stack

    @staticmethod
    def trouble(kind: str, status: int = 500, body: bytes = b"") -> Trouble:
        return Trouble(kind, status, body)

    @staticmethod
    def reply(request: dict[str, Any], **fields: Any) -> Trouble:
        """A ready-made reply in place of the node's own."""
        return Trouble("answer", body=json.dumps({"jsonrpc": "2.0", "id": request["id"], **fields}).encode())

    async def node(self, plan: Plan | None = None, answer: Answer | None = None) -> FaultyNode:
        serving = FaultyNode(answer or Rpc(self.stage.node).answer, plan)
        return await self._stack.enter_async_context(listening(serving))

    async def bent(self, bend: Bend, answer: Answer | None = None) -> FaultyNode:
        """A node whose every single reply passes through `bend`, those of a batch one by one."""
        honest = answer or Rpc(self.stage.node).answer

        def bending(body: bytes) -> bytes:
            asked, replies = json.loads(body), json.loads(honest(body))
            if isinstance(asked, list):
                return json.dumps([bend(*pair) for pair in zip(asked, replies, strict=True)]).encode()
            return json.dumps(bend(asked, replies)).encode()

        return await self.node(answer=bending)

    def chain(self, *nodes: FaultyNode | str, policy: RpcPolicy = PATIENT, cache: Path | None = None) -> RpcChain:
        urls = [node if isinstance(node, str) else node.url for node in nodes]
        chain = RpcChain(self.stage.info, urls, cache or self.cache, self.stage.wallet, policy)
        self._stack.push_async_callback(chain.close)
        return chain


@pytest.fixture
async def desk(stage: Stage, tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        yield Desk(stage, tmp_path / "cache", stack)


@pytest.fixture(scope="module")
def quiet(first_stage: Stage) -> Stage:
    """A stage where everything has happened already, for tests that only read: positions 3 and 5, 4 burnt, trades."""
    stage = first_stage.fork()
    _, gone = stage.mint(stage.weth_pool, -200_700, -199_980, 10**15, count=2)
    stage.trade(stage.weth_pool)
    stage.pass_time(3600)
    stage.mint(stage.native_pool, -201_000, -200_040, 10**15)
    stage.burn(stage.weth_pool, gone)
    stage.trade(stage.weth_pool)
    return stage


@pytest.fixture
async def desk_of_quiet(quiet: Stage, tmp_path: Path) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        yield Desk(quiet, tmp_path / "cache", stack)


@pytest.fixture(scope="module")
def remembering(quiet: Stage) -> Answer:
    """The quiet stage's node; a question it has answered before costs no execution."""
    answer, known = Rpc(quiet.node).answer, dict[str, Any]()

    def one(request: dict[str, Any]) -> Any:
        name = json.dumps([request["method"], request["params"]])
        if name not in known:
            known[name] = json.loads(answer(json.dumps(request).encode()))
        return {**known[name], "id": request["id"]}

    def many(body: bytes) -> bytes:
        asked = json.loads(body)
        return json.dumps([one(each) for each in asked] if isinstance(asked, list) else one(asked)).encode()

    return many
