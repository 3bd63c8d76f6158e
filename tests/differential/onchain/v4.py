"""The real PoolManager with its test routers, and one pool of it spoken to in the words of our own pool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eth_abi.abi import decode, encode
from eth_hash.auto import keccak

from tests.differential.onchain.engines import Engine, Reply
from tests.paths import NODE_MODULES
from zuno.amm import identity
from zuno.amm.pool import PositionInfo, Slot0, TickInfo

PACKAGES = NODE_MODULES / "@uniswap"
CORE = PACKAGES / "v4-core" / "out"
PERIPHERY = PACKAGES / "v4-periphery" / "foundry-out"

MISSING = f"the v4 contract packages are not installed under {PACKAGES.parent.parent.name}/: run `make devnet` once"

KEY = "(address,address,uint24,int24,address)"
NO_HOOKS = "0x" + "00" * 20

# Where PoolManager keeps what only these tests look at.
PROTOCOL_FEES_ACCRUED, TICK_BITMAP = 1, 5

_SOURCES_OF_ERRORS = (
    "PoolManager",
    "Pool",
    "TickMath",
    "TickBitmap",
    "Position",
    "SafeCast",
    "SqrtPriceMath",
    "LPFeeLibrary",
)


class Refused(Exception):
    """The contract reverted; the text is the name of its error."""


def contracts_are_installed() -> bool:
    needed = (CORE / "PoolManager.sol" / "PoolManager.json", PERIPHERY / "PositionManager.sol" / "PositionManager.json")
    return all(path.is_file() for path in needed)


@cache
def artifact(name: str, folder: Path = CORE) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / f"{name}.sol" / f"{name}.json").read_text())
    return loaded


def creation_code(name: str, types: Sequence[str] = (), values: Sequence[Any] = (), folder: Path = CORE) -> bytes:
    return bytes.fromhex(artifact(name, folder)["bytecode"]["object"][2:]) + encode(types, values)


@cache
def _selector(signature: str) -> bytes:
    return keccak(signature.encode())[:4]


def call_data(name: str, types: Sequence[str] = (), values: Sequence[Any] = ()) -> bytes:
    return _selector(f"{name}({','.join(types)})") + encode(types, values)


@cache
def _names_of_errors() -> dict[bytes, str]:
    names = {_selector("Panic(uint256)"): "Panic", _selector("Error(string)"): "Error"}
    for source in _SOURCES_OF_ERRORS:
        for entry in artifact(source)["abi"]:
            if entry["type"] == "error":
                types = ",".join(argument["type"] for argument in entry["inputs"])
                names[_selector(f"{entry['name']}({types})")] = entry["name"]
    return names


def returned(reply: Reply) -> bytes:
    """The return data, or Refused with the error's name."""
    if reply.accepted:
        return reply.data
    raise Refused(_names_of_errors().get(reply.data[:4], f"unnamed revert 0x{reply.data.hex()}"))


@dataclass(frozen=True, slots=True)
class V4:
    """One deployment. `owners` are two liquidity routers: to the pool the router owns the position."""

    engine: Engine
    manager: str
    swapper: str
    donor: str
    owners: tuple[str, str]

    @classmethod
    def deploy(cls, engine: Engine) -> V4:
        manager = engine.deploy(creation_code("PoolManager", ["address"], [engine.relay]))

        def router(name: str) -> str:
            return engine.deploy(creation_code(name, ["address"], [manager]))

        # The checking liquidity router refuses burns that pay nothing, which the pool itself allows.
        unchecked = "PoolModifyLiquidityTestNoChecks"
        v4 = cls(
            engine, manager, router("PoolSwapTest"), router("PoolDonateTest"), (router(unchecked), router(unchecked))
        )
        returned(engine.send(manager, call_data("setProtocolFeeController", ["address"], [engine.relay])))
        return v4

    def open_pool(self, fee: int, tick_spacing: int, sqrt_price_x96: int, *, dynamic: bool = False) -> PoolOnChain:
        """A pool of two tokens of its own, so that no two scenarios share a key or a protocol fee."""
        tokens = [self.engine.deploy(creation_code("TestERC20", ["uint256"], [0])) for _ in range(2)]
        tokens.sort(key=lambda address: int(address, 16))
        for token in tokens:
            mint = call_data("mint", ["address", "uint256"], [self.engine.relay, 1 << 255])
            returned(self.engine.send(token, mint))
            for router in (self.swapper, self.donor, *self.owners):
                approve = call_data("approve", ["address", "uint256"], [router, (1 << 256) - 1])
                returned(self.engine.send(token, approve))
        hooks = self.engine.relay if dynamic else NO_HOOKS
        pool = PoolOnChain(self, (tokens[0], tokens[1], fee, tick_spacing, hooks))
        initialize = call_data("initialize", [KEY, "uint160"], [pool.key, sqrt_price_x96])
        returned(self.engine.send(self.manager, initialize))
        return pool


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything compared after a step, read in one call."""

    slot0: Slot0
    fee_growth_global0_x128: int
    fee_growth_global1_x128: int
    liquidity: int
    protocol_fees_accrued0: int
    protocol_fees_accrued1: int
    ticks: dict[int, TickInfo]
    words: dict[int, int]
    positions: dict[tuple[str, int, int, int], PositionInfo]


@dataclass(frozen=True, slots=True)
class PoolOnChain:
    """One pool of the real PoolManager. Every method raises Refused where the contract reverts."""

    v4: V4
    key: tuple[str, str, int, int, str]

    @property
    def id(self) -> str:
        return identity.pool_id(*self.key)

    def modify_liquidity(
        self, owner: str, tick_lower: int, tick_upper: int, liquidity_delta: int, salt: int, *, keep: bool = True
    ) -> tuple[int, int]:
        params = (tick_lower, tick_upper, liquidity_delta, salt.to_bytes(32, "big"))
        payload = call_data("modifyLiquidity", [KEY, "(int24,int24,int256,bytes32)", "bytes"], [self.key, params, b""])
        speak = self.v4.engine.send if keep else self.v4.engine.peek
        return _balance_delta(returned(speak(owner, payload)))

    def swap(self, zero_for_one: bool, amount_specified: int, sqrt_price_limit_x96: int) -> tuple[int, int]:
        params = (zero_for_one, amount_specified, sqrt_price_limit_x96)
        payload = call_data(
            "swap",
            [KEY, "(bool,int256,uint160)", "(bool,bool)", "bytes"],
            [self.key, params, (False, False), b""],
        )
        return _balance_delta(returned(self.v4.engine.send(self.v4.swapper, payload)))

    def donate(self, amount0: int, amount1: int) -> None:
        payload = call_data("donate", [KEY, "uint256", "uint256", "bytes"], [self.key, amount0, amount1, b""])
        returned(self.v4.engine.send(self.v4.donor, payload))

    def set_protocol_fee(self, zero_for_one: int, one_for_zero: int) -> None:
        packed = one_for_zero << 12 | zero_for_one
        returned(self.v4.engine.send(self.v4.manager, call_data("setProtocolFee", [KEY, "uint24"], [self.key, packed])))

    def set_lp_fee(self, lp_fee: int) -> None:
        payload = call_data("updateDynamicLPFee", [KEY, "uint24"], [self.key, lp_fee])
        returned(self.v4.engine.send(self.v4.manager, payload))

    def read(
        self, ticks: Iterable[int], words: Iterable[int], positions: Iterable[tuple[str, int, int, int]]
    ) -> Reading:
        ticks, words, positions = list(ticks), list(words), list(positions)
        pool = self.id
        single = identity.pool_slots(pool)
        slots = [
            single.slot0,
            single.fee_growth_global0_x128,
            single.fee_growth_global1_x128,
            single.liquidity,
            protocol_fees_slot(self.key[0]),
            protocol_fees_slot(self.key[1]),
        ]
        for tick in ticks:
            slots += identity.tick_slots(pool, tick)
        for position in positions:
            slots += identity.position_slots(pool, identity.position_key(*position))
        slots += [bitmap_slot(single.slot0, word) for word in words]
        values = iter(read_slots(self.v4, slots))
        return Reading(
            identity.unpack_slot0(next(values)),
            next(values),
            next(values),
            next(values),
            next(values),
            next(values),
            ticks={tick: unpack_tick(next(values), next(values), next(values)) for tick in ticks},
            positions={
                position: identity.unpack_position(next(values), next(values), next(values)) for position in positions
            },
            words={word: next(values) for word in words},
        )


def protocol_fees_slot(currency: str) -> int:
    """The word with the protocol's fees in one currency, over all pools."""
    return _in_mapping(int(currency, 16), PROTOCOL_FEES_ACCRUED)


def bitmap_slot(pool_state: int, word_position: int) -> int:
    """The word of 256 ticks at this position (tick ÷ spacing ÷ 256, rounded down)."""
    return _in_mapping(word_position, pool_state + TICK_BITMAP)


def unpack_tick(liquidity_word: int, outside0: int, outside1: int) -> TickInfo:
    """A tick out of its three words: net liquidity sits above gross."""
    net, gross = divmod(liquidity_word, 1 << 128)
    return TickInfo(gross, net - (1 << 128) if net >> 127 else net, outside0, outside1)


def _in_mapping(key: int, slot: int) -> int:
    return int.from_bytes(keccak((key % (1 << 256)).to_bytes(32, "big") + slot.to_bytes(32, "big")), "big")


def read_slots(v4: V4, slots: Sequence[int]) -> list[int]:
    payload = call_data("extsload", ["bytes32[]"], [[slot.to_bytes(32, "big") for slot in slots]])
    (words,) = decode(["bytes32[]"], returned(v4.engine.peek(v4.manager, payload)))
    return [int.from_bytes(word, "big") for word in words]


def _balance_delta(word: bytes) -> tuple[int, int]:
    return int.from_bytes(word[:16], "big", signed=True), int.from_bytes(word[16:32], "big", signed=True)
