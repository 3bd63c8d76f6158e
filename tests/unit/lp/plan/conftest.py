"""One wallet, two pools and a plan of every kind, without any chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Block, LpPosition, PoolKey, PoolState, Range
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, Amount, HexId, Liquidity, Pips, Seconds, SqrtPriceX96, Tick
from zuno.lp.model.chains import ETHER, Deployment
from zuno.lp.model.plan import Allowances, Bounds, Step
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import minting, positions
from zuno.lp.plan.context import PlanContext
from zuno.lp.plan.policy import Policy, build_policy

NOW = Seconds(1_800_000_000)
TICK = -201_000
LIQUIDITY = 10**17


def address(byte: str) -> Address:
    return Address("0x" + byte * 20)


WALLET = address("a1")
ETH = Token(NATIVE, "ETH", 18, True)
WETH = Token(address("11"), "WETH", 18, True)
USDC = Token(address("22"), "USDC", 6, True)
AT = Deployment(address("c1"), address("c2"), address("c5"), address("c6"))
BLOCK = Block(1, HexId("0x" + "bb" * 32), NOW)


def pool_of(token0: Token, mark: str) -> PoolState:
    return PoolState(
        id=HexId("0x" + mark * 32),
        key=PoolKey(token0.address, USDC.address, Pips(3000), 60),
        token0=token0,
        token1=USDC,
        sqrt_price_x96=SqrtPriceX96(sqrt_price_at_tick(TICK) + 10**17),
        tick=Tick(TICK),
        protocol_fee=0,
        lp_fee=Pips(3000),
        liquidity=Liquidity(LIQUIDITY),
        fee_growth_global0_x128=0,
        fee_growth_global1_x128=0,
        block=BLOCK,
    )


def position_in(
    pool: PoolState, band: Range, liquidity: int = 10**15, fees: tuple[int, int] = (10**15, 3_000_000)
) -> LpPosition:
    amounts = amounts_for_liquidity(pool.sqrt_price_x96, *band.edges_x96, liquidity, round_up=False)
    return LpPosition(
        7,
        "test",
        WALLET,
        pool,
        band,
        Liquidity(liquidity),
        *(Amount(amounts[0]), Amount(amounts[1]), Amount(fees[0]), Amount(fees[1])),
    )


def ticks(lower: int, upper: int) -> Range:
    return Range(Tick(lower), Tick(upper))


@dataclass(frozen=True)
class Planned:
    """A step and the policy it has to pass."""

    name: str
    step: Step
    policy: Policy
    key: PoolKey


class Scene:
    """What the tests of this folder share."""

    wallet, at, now, tick = WALLET, AT, NOW, TICK
    eth, weth, usdc = ETH, WETH, USDC
    native, wrapped = pool_of(ETH, "01"), pool_of(WETH, "02")
    position_in = staticmethod(position_in)
    ticks = staticmethod(ticks)
    address = staticmethod(address)

    def terms(self, allowances: Allowances | None = None, bounds: Bounds | None = None) -> PlanContext:
        holdings = {NATIVE: 10**24, WETH.address: 10**24, USDC.address: 10**18}
        return PlanContext(
            AT, WALLET, NOW, holdings, allowances or Allowances(), bounds or Bounds(), WETH.address, ETHER
        )

    def policy(
        self, key: PoolKey, steps: tuple[Step, ...], position: LpPosition | None = None, band: Range | None = None
    ) -> Policy:
        most: dict[Address, int] = {}
        for flow in (flow for step in steps for flow in step.most_out):
            most[flow.currency] = max(most.get(flow.currency, 0), flow.amount)
        pool = self.native if key == self.native.key else self.wrapped
        return build_policy(self.terms(), key, most, position, pool=pool, band=band)

    def every_step(self) -> list[Planned]:
        """At least one step of each kind, in the native pool and in the wrapped one."""
        planned = []
        terms = self.terms()
        near = ticks(-201_600, -200_400)
        for pool in (self.native, self.wrapped):
            name = pool.token0.symbol
            held = position_in(pool, near)
            gone = position_in(pool, ticks(-199_980, -199_020))
            edging = position_in(pool, ticks(-201_000, -200_400), fees=(0, 0))
            steady = replace(held, fees0=Amount(0), fees1=Amount(0))
            moved = positions.rebalance(terms, gone, near)
            assert moved.later is not None
            wraps = pool is self.wrapped
            plans = {
                "create": (minting.create(terms, pool, near, 10**18, 3 * 10**9, brings_ether=wraps).steps, None),
                "create wide": (minting.create(terms, pool, ticks(-231_000, -171_000), 10**18, 3 * 10**9).steps, None),
                "swap0": (minting.create(terms, pool, near, 10**18, 0).steps, None),
                "swap1": (minting.create(terms, pool, near, 0, 3 * 10**9).steps, None),
                "rebalance": (positions.rebalance(terms, steady, ticks(-202_200, -199_800)).steps, steady),
                "rebalance by number": (positions.rebalance(terms, edging, ticks(-201_000, -200_340)).steps, edging),
                "first half": (moved.steps, gone),
                "second half": (moved.later.preview, gone),
                "add": (positions.add(terms, held, 10**18, 3 * 10**9).steps, held),
                "add little": (positions.add(terms, held, 10**12, 3 * 10**3).steps, held),
                "compound": (positions.compound(terms, held).steps, held),
                "remove": (positions.remove(terms, held, Fraction(1, 2)).steps, held),
                "collect": (positions.collect(terms, held).steps, held),
                "close": (positions.close(terms, held).steps, held),
            }
            for plan, (steps, position) in plans.items():
                policy = self.policy(pool.key, steps, position)
                planned += [Planned(f"{name} {plan} {step.kind}", step, policy, pool.key) for step in steps]
            for to in (0, 1):
                swap = SwapHome(to=to, least_rate=Fraction(97, 100) * (pool.price if to else 1 / pool.price))
                home = positions.close(terms, held, swap).later
                assert home is not None
                policy = replace(self.policy(pool.key, home.preview, None), swap_home=swap)
                planned += [Planned(f"{name} home {to} {step.kind}", step, policy, pool.key) for step in home.preview]
        return planned


@pytest.fixture(scope="session")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="session")
def every_step(scene: Scene) -> list[Planned]:
    return scene.every_step()
