"""Builds the world of a seed by playing its script on the official contracts, hour by hour, and keeps the chain in a
file for later starts."""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from eth_abi.abi import encode
from eth_keys.datatypes import PrivateKey

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.chain.sim.engine import SimWorld
from zuno.adapters.chain.sim.ledger import FOREVER, MAX_UINT160
from zuno.adapters.chain.world import (
    DEPLOYMENT,
    GENESIS_TIME,
    HOURS,
    LIQUIDITY_ROUTER,
    SETUP_BLOCKS,
    START_PRICE,
    SWAP_ROUTER,
    USDC,
    WALLET,
    WETH,
    MintStep,
    Script,
    SwapStep,
    furthest_price,
    write_script,
)
from zuno.amm.identity import pool_slots
from zuno.amm.integers import MAX_UINT256
from zuno.amm.pool import Pool
from zuno.kernel.errors import Broken, DiskFull, Malformed, Unavailable
from zuno.kernel.text import NATIVE
from zuno.lp.plan import calldata
from zuno_devnet import chain_file
from zuno_devnet.artifacts import VERSIONS, Artifacts
from zuno_devnet.chain import ETHER, LocalChain
from zuno_devnet.deploy import DEPLOYER, deploy, v4_genesis
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.transactions import LocalTransaction

SHAPING: Final = (
    *"zuno.adapters.chain.devnet.world_builder zuno.adapters.chain.sim.ledger zuno.adapters.chain.world".split(),
    *(f"zuno.amm.{name}" for name in "fees identity integers liquidity pool swap ticks".split()),
    "zuno.lp.plan.calldata",
    *(f"zuno_devnet.{name}" for name in "artifacts block_builder chain chain_file deploy execution history".split()),
    *(f"zuno_devnet.{name}" for name in "keys opcodes transactions".split()),
)
"""Modules whose code decides what is on the chain; the others that are imported are types, texts and checks."""


def fingerprint(seed: int) -> str:
    """Names the world: another script, other contracts, another EVM or other code give another name."""
    digests = (hashlib.sha256(source_of(module).read_bytes()).hexdigest() for module in SHAPING)
    parts = (repr(write_script(seed)), repr(sorted(VERSIONS.items())), version("py-evm"), *digests)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def source_of(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} shapes the devnet's world and is not there", name=module)
    return Path(spec.origin)


WALLET_ROLE, OTHERS_ROLE = "wallet", "trader"
_TX_GAS = 9_000_000
_WORLDS_KEPT = 4
BILLION_USDC = 10**9 * 10**6

Progress = Callable[[int, int], None]
"""Hours played, hours in all."""

_log = logging.getLogger(__name__)


def open_world(artifacts: Artifacts, cache: Path, seed: int, progress: Progress) -> LocalChain:
    """The finished chain of a seed: from the cache, or built and saved there."""
    path = cache / f"world-{fingerprint(seed)}.chain"
    try:
        return chain_file.load(path)
    except Unavailable:
        pass
    except Malformed as damage:
        _log.warning("%s; building the world again", damage)
    chain = build_world(artifacts, seed, progress)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        replace_file(path, chain_file.dump(chain))
        _drop_old_worlds(cache)
    except (OSError, DiskFull) as error:
        _log.warning("the world could not be kept (%s): the next start builds it again", error)
    return chain


def _drop_old_worlds(cache: Path) -> None:
    """Delete all but the newest: every version of the code leaves a world of its own."""
    by_age = sorted(cache.glob("world-*.chain"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[_WORLDS_KEPT:]:
        path.unlink(missing_ok=True)


def build_world(artifacts: Artifacts, seed: int, progress: Progress) -> LocalChain:
    """Deploy, fund and trade. `Broken` unless the contracts then agree with our own pools to the last wei."""
    script = write_script(seed)
    balances = {dev_address(role): 10_000_000 * ETHER for role in (WALLET_ROLE, OTHERS_ROLE)}
    chain = LocalChain.create(v4_genesis(artifacts, balances=balances, timestamp=GENESIS_TIME))
    _check_addresses(deploy(chain, artifacts).to_checksums())
    player = _ScriptPlayer(chain, artifacts)
    player.fund()
    player.open_pools(script)
    for number, hour in enumerate(script.hours, 1):
        player.play(hour.timestamp, hour.steps)
        progress(number, HOURS)
    check_against_sim(chain, SimWorld.play(seed))
    return chain


def check_against_sim(chain: LocalChain, sim: SimWorld) -> None:
    """`Broken` unless every pool's price, tick, liquidity and fee growth are what our own pools say."""
    manager = address_bytes(DEPLOYMENT.pool_manager)
    for spec, pool in zip(sim.specs, sim.pools, strict=True):
        slots = pool_slots(spec.id)
        slot0 = pool.slot0
        packed = slot0.sqrt_price_x96 | (slot0.tick & 0xFFFFFF) << 160 | slot0.protocol_fee << 184 | slot0.lp_fee << 208
        expected = (packed, pool.fee_growth_global0_x128, pool.fee_growth_global1_x128, pool.liquidity)
        stored = tuple(
            chain.storage(manager, slot)
            for slot in (slots.slot0, slots.fee_growth_global0_x128, slots.fee_growth_global1_x128, slots.liquidity)
        )
        if stored != expected:
            raise Broken(f"{spec.label}: the contracts hold {stored} where our pool holds {expected}")


def _check_addresses(deployed: dict[str, str]) -> None:
    expected = {"weth": WETH.address, "usdc": USDC.address, "pool_swap_test": SWAP_ROUTER}
    for name in ("pool_manager", "position_manager", "state_view", "quoter", "universal_router"):
        expected[name] = getattr(DEPLOYMENT, name)
    for name, address in expected.items():
        if deployed[name].lower() != address:
            raise Broken(f"the devnet put {name} at {deployed[name]}, the story expects {address}")


class _ScriptPlayer:
    """Turns steps of the script into signed transactions and blocks."""

    def __init__(self, chain: LocalChain, artifacts: Artifacts) -> None:
        self._chain = chain
        self._artifacts = artifacts
        self._specs = write_script(0).pools
        # Our own pools run alongside: they know what a swap pays before the chain is asked.
        self._pools = [
            Pool.initialize(spec.key.fee, spec.key.tick_spacing, spec.sqrt_price(START_PRICE)) for spec in self._specs
        ]
        self._minted = 0
        self._nonces: dict[bytes, int] = {}

    def fund(self) -> None:
        """Tokens and allowances for the wallet and the trader, and the router that holds the opening liquidity."""
        arguments = encode(("address",), (DEPLOYMENT.pool_manager,))
        router_code = self._artifacts.init_code("PoolModifyLiquidityTest") + arguments
        txs = [self._tx(dev_key(DEPLOYER), None, router_code)]
        for role, eth, usdc in ((WALLET_ROLE, 100, 500_000 * 10**6), (OTHERS_ROLE, 5_000_000, 100 * BILLION_USDC)):
            key, address = dev_key(role), "0x" + dev_address(role).hex()
            txs.append(self._call(key, USDC.address, "mint(address,uint256)", address, usdc))
            txs.append(self._call(key, WETH.address, "deposit()", value=eth * ETHER))
        txs += self._permissions(dev_key(OTHERS_ROLE), (DEPLOYMENT.position_manager, DEPLOYMENT.universal_router))
        txs += [
            self._call(dev_key(OTHERS_ROLE), token.address, "approve(address,uint256)", router, MAX_UINT256)
            for token in (WETH, USDC)
            for router in (LIQUIDITY_ROUTER, SWAP_ROUTER)
        ]
        txs += self._permissions(dev_key(WALLET_ROLE), (DEPLOYMENT.position_manager,))
        self._mine(txs, GENESIS_TIME + SETUP_BLOCKS - 1)

    def open_pools(self, script: Script) -> None:
        txs = [
            self._call(
                *(dev_key(DEPLOYER), DEPLOYMENT.pool_manager, f"initialize({calldata.KEY},uint160)"),
                *(calldata.key_tuple(spec.key), spec.sqrt_price(START_PRICE)),
            )
            for spec in self._specs
        ]
        for salt, mint in enumerate(script.opening):
            spec = self._specs[mint.pool]
            change = self._pools[mint.pool].modify_liquidity(
                LIQUIDITY_ROUTER, mint.lower, mint.upper, mint.liquidity, salt
            )
            signature = f"modifyLiquidity({calldata.KEY},(int24,int24,int256,bytes32),bytes)"
            wanted = (mint.lower, mint.upper, mint.liquidity, salt.to_bytes(32, "big"))
            arguments = (calldata.key_tuple(spec.key), wanted, b"")
            value = -change.amount0 if spec.key.currency0 == NATIVE else 0
            txs.append(self._call(dev_key(OTHERS_ROLE), LIQUIDITY_ROUTER, signature, *arguments, value=value))
        self._mine(txs, GENESIS_TIME + SETUP_BLOCKS)

    def play(self, timestamp: int, steps: tuple[SwapStep | MintStep, ...]) -> None:
        """One hour, one block: all swaps in one router call, then the mints."""
        swaps = [step for step in steps if isinstance(step, SwapStep)]
        txs = [self._swaps(swaps)] if swaps else []
        txs += [self._mint(step) for step in steps if isinstance(step, MintStep)]
        self._mine(txs, timestamp)

    def _swaps(self, swaps: list[SwapStep]) -> LocalTransaction:
        owed: defaultdict[str, int] = defaultdict(int)
        steps = []
        for swap in swaps:
            key = self._specs[swap.pool].key
            result = self._pools[swap.pool].swap(swap.zero_for_one, -swap.amount_in, furthest_price(swap.zero_for_one))
            owed[key.currency0] += result.amount0
            owed[key.currency1] += result.amount1
            struct = DEPLOYMENT.swap_struct
            steps.append(calldata.swap_exact_in_single(key, swap.zero_for_one, swap.amount_in, 0, struct))
        for currency, delta in owed.items():
            if delta < 0:
                steps.append(calldata.settle(currency, calldata.OPEN_DELTA, payer_is_user=True))
            elif delta > 0:
                steps.append(calldata.take(currency, calldata.SENDER, calldata.OPEN_DELTA))
        value = max(0, -owed[NATIVE])
        data = calldata.execute([calldata.v4_swap(steps)], FOREVER)
        return self._tx(dev_key(OTHERS_ROLE), DEPLOYMENT.universal_router, data, value=value)

    def _mint(self, step: MintStep) -> LocalTransaction:
        self._minted += 1
        spec, key = self._specs[step.pool], dev_key(WALLET_ROLE if step.owner == WALLET else OTHERS_ROLE)
        change = self._pools[step.pool].modify_liquidity(
            DEPLOYMENT.position_manager, step.lower, step.upper, step.liquidity, self._minted
        )
        native = spec.key.currency0 == NATIVE
        steps = [
            calldata.mint_position(
                *(spec.key, step.lower, step.upper, step.liquidity, -change.amount0, -change.amount1, step.owner)
            ),
            calldata.settle_pair(spec.key.currency0, spec.key.currency1),
            *([calldata.sweep(NATIVE, step.owner)] if native else []),
        ]
        value = -change.amount0 if native else 0
        return self._tx(key, DEPLOYMENT.position_manager, calldata.modify_liquidities(steps, FOREVER), value=value)

    def _permissions(self, key: PrivateKey, spenders: tuple[str, ...]) -> list[LocalTransaction]:
        txs = []
        for token in (WETH, USDC):
            txs.append(self._call(key, token.address, "approve(address,uint256)", DEPLOYMENT.permit2, MAX_UINT256))
            for spender in spenders:
                approved = (token.address, spender, MAX_UINT160, FOREVER)
                txs.append(self._call(key, DEPLOYMENT.permit2, "approve(address,address,uint160,uint48)", *approved))
        return txs

    def _call(self, key: PrivateKey, to: str, signature: str, *values: object, value: int = 0) -> LocalTransaction:
        return self._tx(key, to, calldata.call(signature, *values), value)

    def _tx(self, key: PrivateKey, to: str | None, data: bytes, value: int = 0) -> LocalTransaction:
        sender = key.public_key.to_canonical_address()
        nonce = self._nonces.get(sender, self._chain.nonce(sender))
        self._nonces[sender] = nonce + 1
        return self._chain.sign(
            key, to=None if to is None else address_bytes(to), data=data, value=value, gas=_TX_GAS, nonce=nonce
        )

    def _mine(self, txs: list[LocalTransaction], timestamp: int) -> None:
        for receipt in self._chain.apply_block(txs, timestamp).receipts:
            if not receipt.ok:
                target = (receipt.tx.to or b"").hex()
                raise Broken(f"a step of the story failed at 0x{target}: {receipt.error} 0x{receipt.revert_data.hex()}")


def address_bytes(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))
