"""A generated chain of many pools with a month of swaps, behind a JSON-RPC node of its own: what a ranking asks
and nothing else. Each swap pays token1; states and events tell the same."""

from __future__ import annotations

import asyncio
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from eth_abi.abi import encode

from tests.wire.many_wallets import INFO as WALLETS_INFO
from tests.wire.many_wallets import MANAGER, USDC
from zuno.adapters.chain.rpc import RpcChain, RpcPolicy, abi
from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.prices.feeds import ChainGas, NativePrice, SeededFeed, SeededPath
from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.identity import pool_id, pool_slots
from zuno.amm.integers import Q96, Q128
from zuno.amm.model import PoolKey
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, HexId, Pips, Seconds
from zuno.lp.model.chains import ETH, ETHER
from zuno.lp.model.market import Pair
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import Feeds
from zuno.lp.service.pool_ranking import PoolRanking, PoolRankingView

DAY = 86_400
BLOCK_SECONDS = 60
BEGIN = 1_700_006_400
"""A midnight; the chain is forty days old and its head an hour after another one."""
DAYS = 40
HEAD = (DAYS * DAY + 3_600) // BLOCK_SECONDS
TICK = -196_000
LIQUIDITY = 10**18
SWAP_SECONDS = 6 * 3_600
HOURLY = 0.01
VARIANCE = 24 * HOURLY**2
"""The reference goes up by one percent in one hour and down in the next."""
NOUGHT = Token(Address("0x" + "a1" * 20), "NOUGHT", 0, verified=True)
THIRTY = Token(Address("0x" + "a2" * 20), "THIRTY", 30, verified=True)
DAI = Token(Address("0x" + "a3" * 20), "DAI", 18, verified=True)
INFO = replace(WALLETS_INFO, name="generated", tokens=(ETH, USDC, NOUGHT, THIRTY, DAI))
SHARING_HOOK = Address("0x" + "44" * 18 + "0084")
QUIET_HOOK = Address("0x" + "44" * 18 + "0080")


@dataclass
class MadePool:
    """`cover`: what its fees are beside its LVR, in the mean; `noise`: of a day, as the deviation of a logarithm."""

    key: PoolKey
    cover: float = 0.8
    noise: float = 0.15
    born: int = 1
    """The first day with a swap."""
    idle: frozenset[int] = frozenset()
    swing: int = 0
    """Ticks between one swap and the next."""
    blocks: list[int] = field(default_factory=list)
    growth: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = HexId(
            pool_id(self.key.currency0, self.key.currency1, self.key.fee, self.key.tick_spacing, self.key.hooks)
        )
        self.fee = 500 if self.key.dynamic_fee else int(self.key.fee)
        chance = np.random.default_rng(int(self.id[2:18], 16))
        lvr = sqrt_price_at_tick(TICK) / Q96 * VARIANCE / 4
        for day in range(self.born, DAYS + 1):
            drawn = float(np.exp(chance.normal(-(self.noise**2) / 2, self.noise)))
            if day in self.idle:
                continue
            for part in range(DAY // SWAP_SECONDS):
                at = day * DAY + part * SWAP_SECONDS + 1_800
                if at // BLOCK_SECONDS > HEAD:
                    break
                self.blocks.append(at // BLOCK_SECONDS)
                fees = lvr * self.cover * drawn * SWAP_SECONDS / DAY * LIQUIDITY
                self.amounts.append(int(fees * 10**6 / self.fee))
        paid = (amount * self.fee // 10**6 * Q128 // LIQUIDITY for amount in self.amounts)
        self.growth = [0, *accumulate(paid)]

    def tick(self, swaps: int) -> int:
        return TICK + self.swing * (swaps % 2)

    def words(self, block: int) -> tuple[int, int, int, int] | None:
        """None: there is no such pool yet."""
        if block * BLOCK_SECONDS < (self.born - 1) * DAY + DAY // 2:
            return None
        swaps = bisect_right(self.blocks, block)
        tick = self.tick(swaps)
        return sqrt_price_at_tick(tick) | (tick & 0xFFFFFF) << 160 | self.fee << 208, 0, self.growth[swaps], LIQUIDITY


def key_of(one: Token, other: Token, fee: int, spacing: int = 10, hooks: Address = NATIVE) -> PoolKey:
    low, high = sorted((one.address, other.address), key=lambda address: int(address, 16))
    return PoolKey(low, high, Pips(fee), spacing, hooks)


def plain_pools(count: int) -> list[MadePool]:
    return [MadePool(key_of(ETH, USDC, 150 + 10 * number)) for number in range(count)]


def odd_pools() -> dict[str, MadePool]:
    return {
        "pays": MadePool(key_of(ETH, USDC, 501), cover=1.6, noise=0.02),
        "hooked": MadePool(key_of(ETH, USDC, 502, hooks=QUIET_HOOK)),
        "idle": MadePool(key_of(ETH, USDC, 503), idle=frozenset({DAYS - 3})),
        "dynamic": MadePool(key_of(ETH, USDC, DYNAMIC_FEE_FLAG, hooks=QUIET_HOOK)),
        "sharing": MadePool(key_of(ETH, USDC, 504, hooks=SHARING_HOOK)),
        "nought": MadePool(key_of(NOUGHT, USDC, 505)),
        "thirty": MadePool(key_of(THIRTY, USDC, 506)),
        "young": MadePool(key_of(ETH, USDC, 507), born=DAYS - 5),
        "own": MadePool(key_of(DAI, USDC, 110), swing=100),
        "still": MadePool(key_of(DAI, USDC, 9_900), swing=1),
    }


class PoolChain:
    def __init__(self, pools: Sequence[MadePool], *, archive: bool = True) -> None:
        self.pools, self.archive, self.head = list(pools), archive, HEAD
        self.asked: list[str] = []
        self.keeps_events = True
        self.past: list[tuple[int, int]] = []
        """The block of each question about an earlier state, and how many words it was for."""
        self._places = {
            slot: (pool, place)
            for pool in pools
            for at in [pool_slots(pool.id)]
            for place, slot in enumerate(
                (at.slot0, at.fee_growth_global0_x128, at.fee_growth_global1_x128, at.liquidity)
            )
        }

    def answer(self, method: str, params: Sequence[Any]) -> Any:
        match method:
            case "eth_chainId":
                return hex(INFO.id)
            case "eth_blockNumber":
                return hex(self.head)
            case "eth_getBlockByNumber":
                return block_at(self.head if params[0] == "latest" else int(params[0], 16))
            case "eth_getLogs":
                return list(self._logs(params[0]))
            case "eth_call":
                return "0x" + self._call(bytes.fromhex(params[0]["data"][2:]), params[1]).hex()
        raise AssertionError(f"nobody asks {method}")

    def _call(self, data: bytes, at: Any) -> bytes:
        assert data[:4] == abi.EXTSLOAD
        number = int(at, 16) if isinstance(at, str) else _NUMBERS[at["blockHash"]]
        slots = [int.from_bytes(data[start : start + 32], "big") for start in range(68, len(data), 32)]
        if number < self.head:
            if not self.archive:
                raise LookupError("missing trie node")
            self.past.append((number, len(slots)))
        words = []
        for slot in slots:
            pool, place = self._places.get(slot, (None, 0))
            state = None if pool is None else pool.words(number)
            words.append(0 if state is None else state[place])
        return abi.word(32) + abi.word(len(words)) + b"".join(map(abi.word, words))

    def _logs(self, wanted: Any) -> Iterator[dict[str, Any]]:
        first, last, topics = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16), wanted["topics"]
        for place, pool in enumerate(self.pools):
            if topics[0] == abi.INITIALIZE and first <= 1 <= last:
                key = pool.key
                fields = (int(key.fee), key.tick_spacing, key.hooks, sqrt_price_at_tick(TICK), TICK)
                named = [pool.id, abi.address_word(key.currency0), abi.address_word(key.currency1)]
                yield log_at(1, place, [abi.INITIALIZE, *named], encode(abi.INITIALIZE_FIELDS, fields))
            if topics[0] == abi.SWAP and not self.keeps_events:
                raise LookupError("events are not served")
            if topics[0] == abi.SWAP and pool.id in topics[1]:
                for swap, number in enumerate(pool.blocks):
                    if first <= number <= last:
                        tick = pool.tick(swap + 1)
                        data = (0, -pool.amounts[swap], sqrt_price_at_tick(tick), LIQUIDITY, tick, pool.fee)
                        yield log_at(
                            number, place, [abi.SWAP, pool.id, "0x" + "00" * 32], encode(abi.SWAP_FIELDS, data)
                        )


_NUMBERS: dict[str, int] = {}


def hash_of(number: int) -> str:
    text = "0x" + sha256(f"pools {number}".encode()).hexdigest()
    _NUMBERS[text] = number
    return text


def block_at(number: int) -> dict[str, Any]:
    return {"number": hex(number), "hash": hash_of(number), "timestamp": hex(BEGIN + BLOCK_SECONDS * number)}


def log_at(number: int, index: int, topics: Sequence[str], data: bytes) -> dict[str, Any]:
    return {
        "address": MANAGER,
        "topics": list(topics),
        "data": "0x" + data.hex(),
        "blockNumber": hex(number),
        "blockHash": hash_of(number),
        "transactionHash": "0x" + sha256(f"{number} {index}".encode()).hexdigest(),
        "transactionIndex": hex(index),
        "logIndex": hex(index),
    }


def reference_records() -> list[tuple[Seconds, Fraction]]:
    prices = (Fraction(3_000), Fraction(3_030))
    return [(Seconds(BEGIN + 3_600 * hour), prices[hour % 2]) for hour in range(24 * (DAYS + 1))]


def feeds_of(chain: Chain) -> Feeds:
    pair, records = Pair("ETH", "USDC"), reference_records()

    async def path() -> list[tuple[Seconds, Fraction]]:
        return records

    prices = SeededFeed(pair, lambda: records)
    return Feeds(prices, ChainGas(chain), NativePrice(prices, ETHER), SeededPath(pair, path))


async def rank_pools(
    url: str, home: Path, wanted: str | None = None, tell: Callable[[int, int], None] = lambda done, total: None
) -> tuple[PoolRankingView, int]:
    """The ranking by what the home keeps, and how many requests it took."""
    chain = RpcChain(INFO, [url], home / "chain", policy=RpcPolicy(rounds=1, timeout=60))
    try:
        ranking = PoolRanking(chain, lambda pool_id: feeds_of(chain), JsonCache(home / "days"))
        return await ranking.rank(wanted, "10000", tell), chain.requests
    finally:
        await chain.close()


def rank_and_hang(url: str, home: str, pools: int) -> None:
    """Rank until so many pools are read, say so and wait to be killed."""

    def tell(done: int, total: int) -> None:
        if done >= pools:
            print(done, flush=True)
            time.sleep(600)

    asyncio.run(rank_pools(url, Path(home), tell=tell))


if __name__ == "__main__":
    rank_and_hang(sys.argv[1], sys.argv[2], int(sys.argv[3]))
