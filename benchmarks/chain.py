"""How few and how fast the reads of a live chain are, on the devnet: `python benchmarks/chain.py`.

Prints one JSON line per figure and ends with 1 when a bar is missed. The yardstick is the obvious reader: one
`eth_call` per fact through the official StateView, five facts a position, over the same connection pool. It is timed
on a sample, spread over all positions, and scaled; the line says so.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from eth_abi.abi import encode

from benchmarks.figure import report
from tests.paths import NODE_MODULES
from zuno.adapters.chain.rpc import RpcChain, RpcPolicy
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.positions import pool_id_of
from zuno.adapters.chain.rpc.transport import FailoverProvider
from zuno.amm.identity import position_key
from zuno.amm.model import PoolKey
from zuno.kernel.text import Token
from zuno.kernel.units import Address, Pips
from zuno.lp.model.chains import ETH, ChainInfo, Deployment
from zuno.lp.plan import calldata
from zuno_devnet.artifacts import find_artifacts
from zuno_devnet.chain import ETHER, LocalChain
from zuno_devnet.deploy import deploy, v4_genesis
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode as Devnet
from zuno_devnet.server import serve

POSITIONS, PER_TX, SAMPLE = 1_000, 125, 100
ROUNDS = 3
MOST_REQUESTS = 12
START_PRICE = 3543191142285914205922034
FOREVER, MOST = 2**40, 2**128 - 1
PATIENT = RpcPolicy(timeout=120)


@dataclass(frozen=True)
class World:
    chain: LocalChain
    info: ChainInfo
    key: PoolKey
    wallet: Address


def text(address: bytes) -> Address:
    return Address("0x" + address.hex())


def build(positions: int = POSITIONS) -> World:
    """Positions of one wallet in forty ranges of one pool, and some trades."""
    artifacts = find_artifacts(NODE_MODULES)
    wallet = dev_address("wallet")
    chain = LocalChain.create(v4_genesis(artifacts, balances={wallet: 10**6 * ETHER}, timestamp=1_700_000_000))
    at = deploy(chain, artifacts)
    weth, usdc = text(at.weth), text(at.usdc)
    contracts = Deployment(
        pool_manager=text(at.pool_manager),
        position_manager=text(at.position_manager),
        quoter=text(at.quoter),
        state_view=text(at.state_view),
        universal_router=text(at.universal_router),
    )
    tokens = (ETH, Token(weth, "WETH", 18, verified=True), Token(usdc, "USDC", 6, verified=True))
    info = ChainInfo(31337, "devnet", "Devnet", contracts, tokens, testnet=True, confirmations=1)
    low, high = sorted((weth, usdc), key=lambda address: int(address, 16))
    world = World(chain, info, PoolKey(low, high, Pips(500), 10), text(wallet))

    def send(to: Address, data: bytes, value: int = 0, gas: int = 59_000_000) -> None:
        tx = chain.sign(dev_key("wallet"), to=bytes.fromhex(to[2:]), data=data, value=value, gas=gas)
        (receipt,) = chain.apply_block([tx], chain.head.timestamp + 12).receipts
        if not receipt.ok:
            raise ValueError(f"a transaction of the stage failed: {receipt.error}")

    permit2, manager, router = info.deployment.permit2, *map(text, (at.position_manager, at.universal_router))
    send(usdc, calldata.call("mint(address,uint256)", world.wallet, 10**18))
    send(weth, calldata.call("deposit()"), 10**5 * ETHER)
    for token in (weth, usdc):
        send(token, calldata.call("approve(address,uint256)", permit2, 2**256 - 1))
        for spender in (manager, router):
            grant = "approve(address,address,uint160,uint48)"
            send(permit2, calldata.call(grant, token, spender, 2**160 - 1, 2**48 - 1))
    key_words = calldata.key_tuple(world.key)
    send(text(at.pool_manager), calldata.call(f"initialize({calldata.KEY},uint160)", key_words, START_PRICE))
    for first in range(0, positions, PER_TX):
        mints = [
            calldata.mint_position(world.key, *_range(number), 10**12, MOST, MOST, world.wallet)
            for number in range(first, min(first + PER_TX, positions))
        ]
        pay = calldata.settle_pair(world.key.currency0, world.key.currency1)
        send(manager, calldata.modify_liquidities([*mints, pay], FOREVER))
    swap = [
        calldata.swap_exact_in_single(world.key, True, 10**15, 0, info.deployment.swap_struct),
        calldata.settle(world.key.currency0, calldata.OPEN_DELTA, payer_is_user=True),
        calldata.take(world.key.currency1, calldata.SENDER, calldata.OPEN_DELTA),
    ]
    send(router, calldata.execute([calldata.v4_swap(swap)], FOREVER))
    return world


def _range(number: int) -> tuple[int, int]:
    return -200_800 - 10 * (number % 40), -199_800 + 10 * (number % 40)


async def one_by_one(node: RpcNode, world: World, ids: Sequence[int]) -> None:
    """Five facts a position, one request each, pinned to the head as well."""
    head, at = await node.head(), world.info.deployment
    pool = bytes.fromhex(pool_id_of(world.key)[2:])
    for token in ids:
        lower, upper = _range(token - 1)
        key = bytes.fromhex(position_key(at.position_manager, lower, upper, token)[2:])
        await node.call(at.position_manager, calldata.call("getPoolAndPositionInfo(uint256)", token), head, bytes)
        await node.call(at.position_manager, calldata.call("ownerOf(uint256)", token), head, bytes)
        await node.call(at.state_view, calldata.call("getSlot0(bytes32)", pool), head, bytes)
        await node.call(at.state_view, calldata.call("getPositionInfo(bytes32,bytes32)", pool, key), head, bytes)
        inside = calldata.selector("getFeeGrowthInside(bytes32,int24,int24)")
        await node.call(
            at.state_view, inside + encode(("bytes32", "int24", "int24"), (pool, lower, upper)), head, bytes
        )


async def seconds(act: Callable[[], Awaitable[object]]) -> float:
    began = perf_counter()
    await act()
    return perf_counter() - began


@dataclass(frozen=True)
class Round:
    """The yardstick and ours, timed one after the other so that a busy machine slows both."""

    naive: float
    cold: float
    warm: float
    reopened: float
    requests: int


async def play(world: World, url: str, cache: Path, sample: Sequence[int]) -> Round:
    ids = range(1, POSITIONS + 1)
    node = RpcNode(FailoverProvider([url], world.info.id, "URL", PATIENT))
    naive = await seconds(lambda: one_by_one(node, world, sample)) * POSITIONS / len(sample)
    await node.provider.close()
    chain = RpcChain(world.info, [url], cache, world.wallet, PATIENT)
    cold = await seconds(lambda: chain.positions(ids))
    requests = chain.requests
    # A new block: what is remembered has to be checked, not merely repeated.
    world.chain.apply_block([], world.chain.head.timestamp + 12)
    warm = await seconds(lambda: chain.positions(ids))
    snapshot = await chain.positions(ids)
    if len(snapshot.positions) != POSITIONS or snapshot.missing:
        raise ValueError(f"meant to read {POSITIONS} positions, read {len(snapshot.positions)}")
    await chain.close()
    again = RpcChain(world.info, [url], cache, world.wallet, PATIENT)
    reopened = await seconds(lambda: again.positions(ids))
    await again.close()
    return Round(naive, cold, warm, reopened, requests)


async def measure(world: World, url: str, cache: Path) -> bool:
    played = [
        await play(world, url, cache / str(turn), list(range(1 + turn, POSITIONS + 1, POSITIONS // SAMPLE)))
        for turn in range(ROUNDS)
    ]
    good = report(
        "chain.snapshot.requests",
        max(turn.requests for turn in played),
        "HTTP requests",
        5 * POSITIONS,
        "one request per read, 5 a position",
        MOST_REQUESTS / (5 * POSITIONS),
    )
    against = (
        f"one request per read, timed on {SAMPLE} positions and scaled to {POSITIONS}; the median of {ROUNDS} rounds"
    )
    for name, bar, ours in (("cold", 1 / 5, "cold"), ("cached", 1 / 20, "warm"), ("reopened", 1 / 20, "reopened")):
        # The round in the middle, so that both figures were taken at the same time.
        pairs = sorted(((getattr(turn, ours), turn.naive) for turn in played), key=lambda pair: pair[0] / pair[1])
        own, naive = pairs[len(pairs) // 2]
        good &= report(f"chain.snapshot.{name}", own, "s", naive, against, bar)
    return good


def main() -> int:
    world = build()
    with serve(Devnet(world.chain)) as url, tempfile.TemporaryDirectory() as cache:
        return 0 if asyncio.run(measure(world, url, Path(cache))) else 1


if __name__ == "__main__":
    sys.exit(main())
