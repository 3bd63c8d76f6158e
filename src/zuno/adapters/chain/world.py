"""A deterministic script of pools, liquidity and trades from a seed, played on sim and on devnet.

Everything is integer arithmetic on a counter-mode hash, so a seed gives the same script on every machine. The script
is sized on our own pool; because our integers are the contracts' integers, the devnet that plays it ends on the same
wei. Nothing here is market data; it is labelled `seed` wherever it is shown.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from math import isqrt
from struct import unpack

from zuno.amm.identity import pool_id
from zuno.amm.liquidity import liquidity_for_amounts
from zuno.amm.model import PoolKey
from zuno.amm.pool import Pool
from zuno.amm.ticks import (
    MAX_SQRT_PRICE,
    MIN_SQRT_PRICE,
    ceil_to_spacing,
    floor_to_spacing,
    sqrt_price_at_tick,
    tick_at_sqrt_price,
)
from zuno.kernel.errors import Refused
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Pips, Seconds
from zuno.lp.model.chains import ETH, ChainInfo, Deployment

DEFAULT_SEED = 1
GENESIS_TIME: Seconds = Seconds(1_767_225_600)  # 2026-01-01 00:00 UTC
HOUR = 3600
HOURS = 720
MINT_HOUR = 480
"""The wallet opens its positions ten days before the script's end."""
SETUP_BLOCKS = 10
"""Eight deployments, funding and first liquidity come before the first hour."""

# Where a fixed deployer's first transactions put the contracts; the devnet checks that they still do.
DEPLOYMENT = Deployment(
    pool_manager=Address("0x15a7a2d3074882d38099211b1d3638b478135db9"),
    position_manager=Address("0x9c9e0389be623e8ea768a629f087830b65ffc744"),
    quoter=Address("0x3cd9a20b1e0b74edcbd8b4c2a91daffb04140b08"),
    state_view=Address("0x526b1cd4aa02198cc5dbdc946d2f19828c2f08d8"),
    universal_router=Address("0x6bb6c8359600951746818c155a9ae421ed7ad70d"),
)
WALLET: Address = Address("0x39dde55bf9d7add0a554ed9e2fc6a23c72f2519c")
OTHERS: Address = Address("0xcfd93745892fc6b8ab5693c7cf455bd80aea5324")
SWAP_ROUTER: Address = Address("0xb72289c3e5c404b758c67ac9dfe979f4b71c4e00")
"""Swaps to a price limit, which the UniversalRouter cannot."""
LIQUIDITY_ROUTER: Address = Address("0x705b2b7618ba4e9b33bfa1200666823325fefac8")
"""Holds the opening liquidity, which is no NFT."""
WETH = Token(Address("0x086bf2b7f4c271f00b406b4cf5341a843933fd0e"), "WETH", 18, verified=True)
USDC = Token(Address("0x7c8c0164858ec67c3552a9f482984d5a504ad193"), "USDC", 6, verified=True)
TOKENS = (ETH, WETH, USDC)
SIM = ChainInfo(31337, "sim", "Simulation", DEPLOYMENT, TOKENS, testnet=True, confirmations=0, path_seconds=1)
DEVNET = replace(SIM, name="devnet", title="Local devnet", confirmations=1, rpc_variable="`zuno devnet status`")

START_PRICE = 3_000 * 10**6
"""Micro-USDC for one ETH."""
FLOOR_PRICE, CEILING_PRICE = 1_500 * 10**6, 6_000 * 10**6
LEAST_PRICE, GREATEST_PRICE = 1_210 * 10**6, 7_490 * 10**6
"""Inside the widest layer of opening liquidity, so that a push by swaps always has someone to trade with."""
SIGMA_HOUR = 9_450_000
"""Standard deviation of an hourly return in 1e-9: about 463 bps a day, as a real month had."""
BILLION = 10**9
FEES_OVER_LVR = (3, 2)
"""What a pool with noise trading earns against its loss to arbitrage."""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool of the script and how it is traded."""

    key: PoolKey
    token0: Token
    token1: Token
    depth_usdc: int
    """USDC that other people bring, in base units."""
    noise_trips: int
    """Trips out and back in each hour's trading; they are sized so that fees come to FEES_OVER_LVR."""
    arbitrage_band: int
    """How far, in 1e-9, the pool may lag the reference before anyone corrects it."""

    @property
    def id(self) -> HexId:
        key = self.key
        return HexId(pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks))

    @property
    def label(self) -> str:
        return f"{self.token0.symbol}/{self.token1.symbol} {self.key.fee / 10_000:.2f} %"

    @property
    def eth_is_token0(self) -> bool:
        return self.token1 == USDC

    def sqrt_price(self, micro_usdc: int) -> int:
        """The pool's square-root price when one ETH costs that many micro-USDC."""
        wei = 10**18
        if self.eth_is_token0:
            return isqrt((micro_usdc << 192) // wei)
        return isqrt((wei << 192) // micro_usdc)

    def micro_usdc(self, sqrt_price_x96: int) -> int:
        square = sqrt_price_x96 * sqrt_price_x96
        wei = 10**18
        return square * wei >> 192 if self.eth_is_token0 else (wei << 192) // square


@dataclass(frozen=True, slots=True)
class OpeningStep:
    """Liquidity that is there from the start."""

    pool: int
    lower: int
    upper: int
    liquidity: int


@dataclass(frozen=True, slots=True)
class MintStep(OpeningStep):
    """Liquidity that enters as an NFT of `owner`; ids are in the order of the script."""

    owner: Address


@dataclass(frozen=True, slots=True)
class SwapStep:
    pool: int
    zero_for_one: bool
    amount_in: int


@dataclass(frozen=True, slots=True)
class Hour:
    """One block of the script."""

    timestamp: Seconds
    reference: int
    """Micro-USDC for one ETH outside the pools."""
    steps: tuple[SwapStep | MintStep, ...]


@dataclass(frozen=True, slots=True)
class Script:
    seed: int
    pools: tuple[PoolSpec, ...]
    opening: tuple[OpeningStep, ...]
    hours: tuple[Hour, ...]


def _spec(eth: Token, fee: int, spacing: int, depth: int, trips: int, band: int) -> PoolSpec:
    token0, token1 = sorted((eth, USDC), key=lambda token: int(token.address, 16))
    key = PoolKey(token0.address, token1.address, Pips(fee), spacing)
    return PoolSpec(key, token0, token1, depth * 10**6, trips, band)


def pool_specs() -> tuple[PoolSpec, ...]:
    """The three pools: two that pay their liquidity providers, one that does not."""
    return (
        _spec(WETH, 500, 10, 4_000_000, trips=2, band=0),
        _spec(WETH, 3000, 60, 2_500_000, trips=1, band=0),
        _spec(ETH, 3000, 60, 1_000_000, trips=0, band=7_000_000),
    )


def furthest_price(zero_for_one: bool) -> int:
    return MIN_SQRT_PRICE + 1 if zero_for_one else MAX_SQRT_PRICE - 1


def _draws(seed: int, purpose: str) -> Iterator[int]:
    """An endless stream of 32-bit integers that depends on nothing but its name."""
    counter = 0
    while True:
        block = sha256(f"zuno world {seed} {purpose} {counter}".encode()).digest()
        yield from unpack(">8I", block)
        counter += 1


def reference_path(seed: int) -> tuple[int, ...]:
    """HOURS + 1 reference prices: near-normal hourly returns whose size changes from day to day."""
    draws = _draws(seed, "reference")
    price, path, scale = START_PRICE, [START_PRICE], 10
    for hour in range(HOURS):
        if hour % 24 == 0:
            scale = (7, 10, 10, 13)[next(draws) % 4]
        # Twelve uniforms sum to a variance of one: a normal deviate without a float.
        deviate = sum(next(draws) for _ in range(12)) - 6 * 2**32
        step = deviate * SIGMA_HOUR * scale // (10 << 32)
        moved = price * (BILLION + step) // BILLION
        if not FLOOR_PRICE <= moved <= CEILING_PRICE:
            moved = price * (BILLION - step) // BILLION
        price = moved
        path.append(price)
    return tuple(path)


def shift_reference(reference: int, percent: Decimal) -> int:
    """The reference price after a push; a push that would leave the stage is refused."""
    moved = int(reference * (100 + percent) / 100)
    if not LEAST_PRICE <= moved <= GREATEST_PRICE:
        raise Refused(
            f"A move of {percent} % would put ETH at {moved / 10**6:.2f} USDC; these pools hold liquidity between "
            f"{LEAST_PRICE // 10**6} and {GREATEST_PRICE // 10**6}."
        )
    return moved


@lru_cache(maxsize=4)
def write_script(seed: int) -> Script:
    """The script of a seed, every trade sized on our own pool."""
    specs = pool_specs()
    path = reference_path(seed)
    pools = [Pool.initialize(spec.key.fee, spec.key.tick_spacing, spec.sqrt_price(path[0])) for spec in specs]
    opening = tuple(step for index, spec in enumerate(specs) for step in _other_people(index, spec, path[0]))
    for step in opening:
        _enter(pools[step.pool], step)
    reaches = [_noise_reach(spec, path) for spec in specs]
    draws = _draws(seed, "trades")
    hours: list[Hour] = []
    for hour in range(1, HOURS + 1):
        steps: list[SwapStep | MintStep] = []
        for index, spec in enumerate(specs):
            steps += _trade(index, spec, pools[index], path[hour], reaches[index], draws)
        if hour == MINT_HOUR:
            for mint in _late_positions(specs, path[MINT_HOUR], path[HOURS]):
                _enter(pools[mint.pool], mint)
                steps.append(mint)
        hours.append(Hour(Seconds(GENESIS_TIME + hour * HOUR), path[hour], tuple(steps)))
    return Script(seed, specs, opening, tuple(hours))


def _enter(pool: Pool, mint: OpeningStep) -> None:
    # Sizing needs the liquidity, not the owner; the players keep the books.
    pool.modify_liquidity(OTHERS, mint.lower, mint.upper, mint.liquidity, 0)


def _noise_reach(spec: PoolSpec, path: tuple[int, ...]) -> int:
    """How far, in 1e-9, a noise trip must go.

    A path of log moves r costs L·√P·Σr²/4 in LVR and trading over a distance d pays L·√P·fee·d/2, so the distance to
    travel is FEES_OVER_LVR · Σr² / (2·fee). The last trip home ends at the new reference, which the mean over both
    directions of |reach ∓ r| accounts for.
    """
    if not spec.noise_trips:
        return 0
    sizes = [abs((after - before) * BILLION // before) for before, after in pairwise(path)]
    times, over = FEES_OVER_LVR
    wanted = times * sum(size * size for size in sizes) * 10**6 // (2 * over * spec.key.fee * BILLION)

    def travel(reach: int) -> int:
        last = sum(size if size > reach else reach for size in sizes)
        return (2 * spec.noise_trips - 1) * reach * len(sizes) + last

    return max(0, bisect_right(range(BILLION // 10), wanted, key=travel) - 1)


def _trade(
    index: int, spec: PoolSpec, pool: Pool, reference: int, reach: int, draws: Iterator[int]
) -> Iterator[SwapStep]:
    """An hour's trades: noise that goes out and comes back, then arbitrage towards the reference."""
    home = spec.micro_usdc(pool.slot0.sqrt_price_x96)
    for trip in range(spec.noise_trips):
        if trip:
            yield from _swap_to(index, spec, pool, home)
        away = reach if next(draws) & 1 else -reach
        yield from _swap_to(index, spec, pool, home * (BILLION + away) // BILLION)
    here = spec.micro_usdc(pool.slot0.sqrt_price_x96)
    ceiling = reference * (BILLION + spec.arbitrage_band) // BILLION
    floor = reference * (BILLION - spec.arbitrage_band) // BILLION
    if not floor <= here <= ceiling:
        yield from _swap_to(index, spec, pool, reference)


def _swap_to(index: int, spec: PoolSpec, pool: Pool, target: int) -> Iterator[SwapStep]:
    """The exact input that takes the pool to a price, found on a copy, then swapped."""
    limit = spec.sqrt_price(target)
    zero_for_one = limit < pool.slot0.sqrt_price_x96
    if limit == pool.slot0.sqrt_price_x96:
        return
    probe = pool.copy().swap(zero_for_one, -(1 << 120), limit)
    amount_in = -(probe.amount0 if zero_for_one else probe.amount1)
    if amount_in > 0:
        pool.swap(zero_for_one, -amount_in, furthest_price(zero_for_one))
        yield SwapStep(index, zero_for_one, amount_in)


def _other_people(index: int, spec: PoolSpec, price: int) -> Iterator[OpeningStep]:
    """A wide base and two narrower layers, a third of the depth each."""
    for low, high in ((40, 250), (70, 140), (85, 118)):
        lower, upper = _range_between(spec, price * low // 100, price * high // 100)
        yield OpeningStep(index, lower, upper, _liquidity_worth(spec, price, lower, upper, spec.depth_usdc // 3))


def _late_positions(specs: tuple[PoolSpec, ...], price: int, final: int) -> Iterator[MintStep]:
    """Position 1 ends near its edge (chosen knowing how the script ends), 2 sits well inside, 3 is another wallet's."""

    def mint(pool: int, low: int, high: int, usdc: int, owner: Address) -> MintStep:
        lower, upper = _range_between(specs[pool], low, high)
        return MintStep(pool, lower, upper, _liquidity_worth(specs[pool], price, lower, upper, usdc * 10**6), owner)

    width = max(final * 8 // 100, abs(price - final) * 5 // 4)
    low = final - width * 8 // 100 if final <= price else final + width * 8 // 100 - width
    yield mint(0, low, low + width, 20_000, WALLET)
    yield mint(2, min(price, final) * 82 // 100, max(price, final) * 122 // 100, 12_000, WALLET)
    yield mint(1, price * 88 // 100, price * 113 // 100, 45_000, OTHERS)


def _range_between(spec: PoolSpec, low: int, high: int) -> tuple[int, int]:
    """The usable ticks around two ETH prices, whichever way round the pool quotes them."""
    ticks = sorted(tick_at_sqrt_price(spec.sqrt_price(price)) for price in (low, high))
    return floor_to_spacing(ticks[0], spec.key.tick_spacing), ceil_to_spacing(ticks[1], spec.key.tick_spacing)


def _liquidity_worth(spec: PoolSpec, price: int, lower: int, upper: int, usdc: int) -> int:
    """The liquidity that costs about that many micro-USDC in all at this price."""
    sqrt_price, sqrt_lower, sqrt_upper = spec.sqrt_price(price), sqrt_price_at_tick(lower), sqrt_price_at_tick(upper)
    ample = 10**30
    probe = liquidity_for_amounts(sqrt_price, sqrt_lower, sqrt_upper, ample, ample)
    cost = Pool.initialize(spec.key.fee, spec.key.tick_spacing, sqrt_price).modify_liquidity(
        "0x01", lower, upper, probe, 0
    )
    eth, stable = (cost.amount0, cost.amount1) if spec.eth_is_token0 else (cost.amount1, cost.amount0)
    worth = -eth * price // 10**18 - stable
    return probe * usdc // worth
