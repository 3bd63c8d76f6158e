"""The simulated chain's present: pools, balances, NFTs and every touch, rebuilt by playing the same events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from zuno.adapters.chain.sim.ledger import VAULT, Ledger
from zuno.adapters.chain.world import (
    DEPLOYMENT,
    GENESIS_TIME,
    LIQUIDITY_ROUTER,
    OTHERS,
    SETUP_BLOCKS,
    START_PRICE,
    MintStep,
    PoolSpec,
    SwapStep,
    write_script,
)
from zuno.core.amm.fees import protocol_fee_of_direction, swap_fee
from zuno.core.amm.pool import LiquidityChange, Pool, PositionInfo
from zuno.core.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.core.fee_yield import Swapped
from zuno.domain.history import PricedBlock, Standing, Touch
from zuno.domain.pool import Block, LpPosition, PoolState, Range
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick, Wei

BASE_FEE: Wei = Wei(10**9)
PRIORITY_FEE: Wei = Wei(10**9)
"""What the devnet settles at: the floor of its base fee, and one gwei on top."""
MINT_GAS = 419_478  # measured on the real contracts
BLOCK_SECONDS = 12


@dataclass(frozen=True, slots=True)
class Nft:
    """A position's deed."""

    id: int
    owner: Address
    pool: int
    range: Range


@dataclass(frozen=True, slots=True)
class Move:
    """A push of the ETH price to a reference (micro-USDC), as a command that can be played again."""

    reference: int
    timestamp: Seconds


class SimWorld:
    """The world of a seed after some moves. Playing the same events again gives the same bytes."""

    def __init__(self, seed: int) -> None:
        script = write_script(seed)
        self.seed = seed
        self.moves: list[Move] = []
        """The pushes since the story's end: with the seed, all it takes to play this world again."""
        self.specs: tuple[PoolSpec, ...] = script.pools
        self.pools = [
            Pool.initialize(spec.key.fee, spec.key.tick_spacing, spec.sqrt_price(START_PRICE)) for spec in self.specs
        ]
        self.ledger = Ledger()
        self.nfts: dict[int, Nft] = {}
        self.touches: list[Touch] = []
        self.prices: list[list[PricedBlock]] = [[] for _ in self.pools]
        self.traded: list[set[int]] = [set() for _ in self.pools]
        """Numbers of the blocks in which somebody swapped, by pool."""
        self.swaps: list[list[tuple[Block, Swapped]]] = [[] for _ in self.pools]
        """Every swap, by pool; its block is known by number and time, not yet by hash."""
        self.closes: list[tuple[Seconds, int]] = [(GENESIS_TIME, START_PRICE)]
        """Reference prices in micro-USDC, one for every block that had one."""
        self.head = Block(SETUP_BLOCKS - 1, HexId("0x" + sha256(f"zuno sim {seed}".encode()).hexdigest()), GENESIS_TIME)
        for salt, mint in enumerate(script.opening):
            change = self.pools[mint.pool].modify_liquidity(
                LIQUIDITY_ROUTER, mint.lower, mint.upper, mint.liquidity, salt
            )
            self.ledger.settle(OTHERS, self.specs[mint.pool].key, change.amount0, change.amount1)
        self._seal(Seconds(GENESIS_TIME + SETUP_BLOCKS))

    @classmethod
    def play(cls, seed: int, moves: Iterable[Move] = (), until: Seconds | None = None) -> SimWorld:
        """The world as it stood after the last block not later than `until` (None: now)."""
        world = cls(seed)
        for hour in write_script(seed).hours:
            if until is not None and hour.timestamp > until:
                return world
            world._begin(hour.timestamp)
            for step in hour.steps:
                world._play_step(step)
            world.closes.append((hour.timestamp, hour.reference))
            world._seal(hour.timestamp)
        for move in moves:
            if until is not None and move.timestamp > until:
                break
            world.apply(move)
        return world

    def past(self, moment: Seconds) -> SimWorld:
        """This world as it stood at a moment, whatever has become of its file since."""
        return SimWorld.play(self.seed, self.moves, until=moment)

    @property
    def reference(self) -> int:
        return self.closes[-1][1]

    def next_move(self, reference: int) -> Move:
        return Move(reference, Seconds(self.head.timestamp + BLOCK_SECONDS))

    def apply(self, move: Move) -> None:
        """Swap every pool to the new reference, in one block."""
        self.moves.append(move)
        self._begin(move.timestamp)
        for index, (spec, pool) in enumerate(zip(self.specs, self.pools, strict=True)):
            target = spec.sqrt_price(move.reference)
            if target != pool.slot0.sqrt_price_x96:
                self._swap(index, target < pool.slot0.sqrt_price_x96, 1 << 120, target)
        self.closes.append((move.timestamp, move.reference))
        self._seal(move.timestamp)

    def state(self, index: int) -> PoolState:
        spec, pool = self.specs[index], self.pools[index]
        return PoolState(
            id=spec.id,
            key=spec.key,
            token0=spec.token0,
            token1=spec.token1,
            sqrt_price_x96=SqrtPriceX96(pool.slot0.sqrt_price_x96),
            tick=Tick(pool.slot0.tick),
            protocol_fee=pool.slot0.protocol_fee,
            lp_fee=Pips(pool.slot0.lp_fee),
            liquidity=Liquidity(pool.liquidity),
            fee_growth_global0_x128=pool.fee_growth_global0_x128,
            fee_growth_global1_x128=pool.fee_growth_global1_x128,
            block=self.head,
        )

    def position(self, nft: Nft) -> LpPosition:
        burn, info = self._full_burn(nft), self._info(nft)
        return LpPosition(
            id=nft.id,
            chain="sim",
            owner=nft.owner,
            pool=self.state(nft.pool),
            range=nft.range,
            liquidity=Liquidity(info.liquidity),
            amount0=Amount(burn.amount0 - burn.fees0),
            amount1=Amount(burn.amount1 - burn.fees1),
            fees0=Amount(burn.fees0),
            fees1=Amount(burn.fees1),
        )

    def standing(self, nft: Nft) -> Standing:
        info, pool = self._info(nft), self.pools[nft.pool]
        worth0, worth1 = self._proceeds(nft)
        inside0, inside1 = pool.fee_growth_inside(nft.range.lower, nft.range.upper)
        return Standing(
            position_id=nft.id,
            range=nft.range,
            block=self.head,
            sqrt_price_x96=SqrtPriceX96(pool.slot0.sqrt_price_x96),
            liquidity=Liquidity(info.liquidity),
            worth0=worth0,
            worth1=worth1,
            fee_growth_inside0_x128=inside0,
            fee_growth_inside1_x128=inside1,
            fee_growth_inside0_last_x128=info.fee_growth_inside0_last_x128,
            fee_growth_inside1_last_x128=info.fee_growth_inside1_last_x128,
        )

    def _info(self, nft: Nft) -> PositionInfo:
        return self.pools[nft.pool].position(DEPLOYMENT.position_manager, nft.range.lower, nft.range.upper, nft.id)

    def _full_burn(self, nft: Nft) -> LiquidityChange:
        """What burning would pay, learned by burning on a copy."""
        return (
            self.pools[nft.pool]
            .copy()
            .modify_liquidity(
                DEPLOYMENT.position_manager, nft.range.lower, nft.range.upper, -self._info(nft).liquidity, nft.id
            )
        )

    def _proceeds(self, nft: Nft) -> tuple[int, int]:
        """What the owner's balances would gain by burning, and the vault's lose: both are copies here."""
        key, burn, purse = self.specs[nft.pool].key, self._full_burn(nft), self.ledger.copy()
        before = purse.of_pair(nft.owner, key)
        purse.settle(nft.owner, key, burn.amount0, burn.amount1)
        after = purse.of_pair(nft.owner, key)
        return after[0] - before[0], after[1] - before[1]

    def _begin(self, timestamp: Seconds) -> None:
        """Open the next block, so that touches inside it know their number; its hash is known when it is sealed."""
        self.head = Block(self.head.number + 1, self.head.hash, timestamp)

    def _play_step(self, step: SwapStep | MintStep) -> None:
        if isinstance(step, SwapStep):
            self._swap(step.pool, step.zero_for_one, step.amount_in, _furthest(step.zero_for_one))
        else:
            self._mint(step)

    def _swap(self, index: int, zero_for_one: bool, amount_in: int, limit: int) -> None:
        pool = self.pools[index]
        result = pool.swap(zero_for_one, -amount_in, limit)
        self.ledger.settle(OTHERS, self.specs[index].key, result.amount0, result.amount1)
        self.traded[index].add(self.head.number)
        protocol_fee = protocol_fee_of_direction(pool.slot0.protocol_fee, zero_for_one)
        fee = swap_fee(protocol_fee, pool.slot0.lp_fee)
        self.swaps[index].append((self.head, Swapped(-result.amount0, -result.amount1, pool.liquidity, fee)))

    def _mint(self, step: MintStep) -> None:
        pool, key, token_id = self.pools[step.pool], self.specs[step.pool].key, len(self.nfts) + 1
        nft = Nft(token_id, step.owner, step.pool, Range(Tick(step.lower), Tick(step.upper)))
        change = pool.modify_liquidity(DEPLOYMENT.position_manager, step.lower, step.upper, step.liquidity, token_id)
        self.nfts[token_id] = nft
        vault, coin = self.ledger.of_pair(VAULT, key), self.ledger.of(step.owner, NATIVE)
        self.ledger.settle(step.owner, key, change.amount0, change.amount1)
        self.ledger.pay_gas(step.owner, MINT_GAS, BASE_FEE, PRIORITY_FEE)
        filled, coin_left = self.ledger.of_pair(VAULT, key), self.ledger.of(step.owner, NATIVE)
        paid0, paid1 = filled[0] - vault[0], filled[1] - vault[1]
        inside0, inside1 = pool.fee_growth_inside(step.lower, step.upper)
        self.touches.append(
            Touch(
                position_id=token_id,
                range=nft.range,
                block=self.head,
                tx=HexId("0x" + sha256(f"{self.head.hash} {token_id}".encode()).hexdigest()),
                sqrt_price_x96=SqrtPriceX96(pool.slot0.sqrt_price_x96),
                liquidity_delta=step.liquidity,
                liquidity_after=Liquidity(step.liquidity),
                paid0=paid0,
                paid1=paid1,
                fee_growth_inside0_x128=inside0,
                fee_growth_inside1_x128=inside1,
                gas=Wei(MINT_GAS * (BASE_FEE + PRIORITY_FEE)),
                gas_paid=Wei(coin - coin_left - (paid0 if key.currency0 == NATIVE else 0)),
            )
        )

    def _seal(self, timestamp: Seconds) -> None:
        """Close the block: its hash binds the one before and every pool's state."""
        number = max(self.head.number, SETUP_BLOCKS)
        digest = sha256(self.head.hash.encode())
        for pool in self.pools:
            slot0 = pool.slot0
            growth = (pool.fee_growth_global0_x128, pool.fee_growth_global1_x128)
            digest.update(repr((number, timestamp, tuple(slot0), pool.liquidity, growth)).encode())
        self.head = Block(number, HexId("0x" + digest.hexdigest()), timestamp)
        for pool, prices in zip(self.pools, self.prices, strict=True):
            prices.append(PricedBlock(self.head, SqrtPriceX96(pool.slot0.sqrt_price_x96)))


def _furthest(zero_for_one: bool) -> int:
    return MIN_SQRT_PRICE + 1 if zero_for_one else MAX_SQRT_PRICE - 1
