"""What steps do to the wallet at the price of one block, from their bytes: for where no node can try them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.plan.calls import (
    Action,
    Burn,
    DecodedCall,
    Decrease,
    Execute,
    Increase,
    Mint,
    ModifyLiquidities,
    RouterSwap,
    SwapIn,
    Wrap,
)
from zuno.lp.plan.inventory import range_edges


def effects(calls: Iterable[DecodedCall], pool: PoolState, position: LpPosition | None) -> dict[Address, int]:
    """By currency what the wallet gains or loses, gas apart. Exact for liquidity; a swap counts for the least it may
    pay and as if it left the price where it was. Fees are paid by whichever step touches the position first."""
    key, price = pool.key, pool.sqrt_price_x96
    changes = dict.fromkeys((key.currency0, key.currency1, NATIVE), 0)
    owed = None if position is None else (position.fees0, position.fees1)

    def pay(amount0: int, amount1: int) -> None:
        changes[key.currency0] += amount0
        changes[key.currency1] += amount1

    def touch() -> LpPosition:
        nonlocal owed
        if position is None:
            raise Refused("a step touches a position that the plan is not about")
        pay(*(owed or (0, 0)))
        owed = None
        return position

    def worth(band: Range, liquidity: int, *, round_up: bool) -> tuple[int, int]:
        return amounts_for_liquidity(price, *range_edges(band), liquidity, round_up=round_up)

    for decoded in calls:
        if isinstance(decoded.call, Wrap):
            changes[NATIVE] -= decoded.value
            changes[decoded.to] = changes.get(decoded.to, 0) + decoded.value
        for action in _actions(decoded):
            match action:
                case Mint(_, band, liquidity):
                    cost0, cost1 = worth(band, liquidity, round_up=True)
                    pay(-cost0, -cost1)
                case Increase(_, liquidity):
                    cost0, cost1 = worth(touch().range, liquidity, round_up=True)
                    pay(-cost0, -cost1)
                case Decrease(_, liquidity):
                    pay(*worth(touch().range, liquidity, round_up=False))
                case Burn():
                    burned = touch()
                    pay(*worth(burned.range, burned.liquidity, round_up=False))
                case SwapIn(_, zero_for_one, amount_in, out_min):
                    pay(*((-amount_in, out_min) if zero_for_one else (out_min, -amount_in)))
                case _:
                    pass
    return changes


def _actions(decoded: DecodedCall) -> Iterator[Action]:
    match decoded.call:
        case ModifyLiquidities(actions):
            yield from actions
        case Execute(commands):
            for command in commands:
                if isinstance(command, ModifyLiquidities | RouterSwap):
                    yield from command.actions
        case _:
            return
