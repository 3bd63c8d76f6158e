"""A wallet that signs for the simulated chain, and the calls it makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.sim.writer import SimWriter
from zuno.adapters.chain.world import DEPLOYMENT, SIM
from zuno.lp.plan import calldata
from zuno.lp.ports.spending import Call
from zuno_devnet.keys import dev_key

FIELDS: dict[str, Any] = {
    "type": 2,
    "chainId": SIM.id,
    "maxPriorityFeePerGas": 10**9,
    "maxFeePerGas": 4 * 10**9,
    "gas": 3_000_000,
}

Sign = Callable[..., bytes]
Act = Callable[..., Call]


@pytest.fixture(autouse=True)
def play_each_story_once() -> None:
    """Here it is played as often as it is asked for: these are the tests of playing it."""


@pytest.fixture(scope="session")
def sign() -> Sign:
    def signed(call: Call, nonce: int, **other: Any) -> bytes:
        to = bytes.fromhex(call.to[2:])
        fields = {**FIELDS, "nonce": nonce, "to": to, "value": call.value, "data": call.data, **other}
        return bytes(Account.sign_transaction(fields, dev_key("wallet").to_bytes()).raw_transaction)

    return signed


@pytest.fixture(scope="session")
def acting() -> Act:
    """A call of PositionManager."""

    def call(*acts: calldata.EncodedAction, value: int = 0) -> Call:
        return Call(DEPLOYMENT.position_manager, value, calldata.modify_liquidities(acts, (1 << 48) - 1))

    return call


@pytest.fixture
def chain(tmp_path: Path) -> SimChain:
    return SimChain(SimFile(tmp_path))


@pytest.fixture
def writer(chain: SimChain) -> SimWriter:
    return SimWriter(chain)
