"""A tiny chain: three funded accounts and four hand-assembled contracts, no packages needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from zuno_devnet.chain import ETHER, Genesis, LocalChain
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.rpc import Rpc
from zuno_devnet.transactions import LocalTransaction, sign

GENESIS_TIME = 1_700_000_000
CHAIN_ID = 31337


def address(number: int) -> bytes:
    return number.to_bytes(20, "big")


# Counts calls in slot 0, logs calldata's two words as topics, and returns the new count.
TICKER = address(0x1001)
# Reverts with the four bytes 0xdeadbeef.
REVERTER = address(0x1002)
# Writes ten fresh slots.
SPENDER = address(0x1003)
# Calls SPENDER with all its gas and reverts if that fails.
FORWARDER = address(0x1004)

CODE = {
    TICKER: bytes.fromhex("602035" + "600035" + "60006000a2" + "600054600101600055" + "60005460005260206000f3"),
    REVERTER: bytes.fromhex("63deadbeef60e01b60005260046000fd"),
    SPENDER: b"".join(bytes([0x60, 1, 0x60, slot, 0x55]) for slot in range(10)) + b"\x00",
    FORWARDER: bytes.fromhex("60006000600060006000" + "73" + SPENDER.hex() + "5af1" + "602957" + "60006000fd" + "5b00"),
}


@dataclass
class Clock:
    now: float = GENESIS_TIME + 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A node, its JSON face, and short ways to ask for things."""

    node: DevnetNode
    clock: Clock
    rpc: Rpc = field(init=False)

    def __post_init__(self) -> None:
        self.rpc = Rpc(self.node)

    @property
    def chain(self) -> LocalChain:
        return self.node.chain

    def sign(self, role: str = "alice", **wishes: Any) -> LocalTransaction:
        defaults: dict[str, Any] = {
            "chain_id": CHAIN_ID,
            "nonce": self.node.pending_nonce(dev_address(role)),
            "to": TICKER,
            "data": bytes(64),
            "gas": 200_000,
            "max_fee": 10**10,
            "tip": 10**9,
        }
        return sign(dev_key(role), **(defaults | wishes))

    def submit(self, role: str = "alice", **wishes: Any) -> LocalTransaction:
        return self.node.submit(self.sign(role, **wishes).raw)

    def ask(self, method: str, *params: Any) -> Any:
        """A result, straight from the dispatcher; refusals are raised."""
        return self.rpc._call(method, list(params))


def fresh_chain(**wishes: Any) -> LocalChain:
    balances = {dev_address(role): 100 * ETHER for role in ("alice", "bob", "carol")}
    defaults: dict[str, Any] = {"timestamp": GENESIS_TIME, "balances": balances, "code": CODE}
    return LocalChain.create(Genesis(**(defaults | wishes)))


@pytest.fixture
def bench() -> Bench:
    clock = Clock()
    unlocked = {dev_address("alice"): dev_key("alice")}
    return Bench(DevnetNode(fresh_chain(), unlocked=unlocked, clock=clock), clock)


@pytest.fixture
def make_chain() -> Callable[..., LocalChain]:
    return fresh_chain
