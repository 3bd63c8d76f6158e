"""What steps do to the wallet at the price of one block, from their bytes: for where no node can try them out."""

from collections.abc import Iterable, Iterator

from zuno.amm.liquidity import amounts_for_liquidity, liquidity_for_amounts
from zuno.amm.model import LpPosition, PoolState, Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.plan import calls
from zuno.lp.plan.policy import paid_beforehand, settle_swaps


def sum_effects(
    decoded_calls: Iterable[calls.DecodedCall], pool: PoolState, position: LpPosition | None
) -> dict[Address, int]:
    """What the wallet gains or loses by currency, gas apart. Exact for liquidity; a swap counts for the least it may
    pay. Fees are paid by whichever step touches the position first."""
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
        return amounts_for_liquidity(price, *band.edges_x96, liquidity, round_up=round_up)

    def put_in(band: Range, credit0: int, credit1: int) -> None:
        liquidity = liquidity_for_amounts(price, *band.edges_x96, credit0, credit1)
        cost0, cost1 = worth(band, liquidity, round_up=True)
        pay(-cost0, -cost1)

    for decoded in decoded_calls:
        before, brought, minted = dict(changes), _sum_brought(decoded, (key.currency0, key.currency1)), None
        if isinstance(decoded.call, calls.Wrap):
            changes[NATIVE] -= decoded.value
            changes[decoded.to] = changes.get(decoded.to, 0) + decoded.value
        paid = paid_beforehand(decoded.call.actions) if isinstance(decoded.call, calls.ModifyLiquidities) else {}
        for action in _actions(decoded):
            match action:
                case calls.Mint(_, band, liquidity):
                    cost0, cost1 = worth(band, liquidity, round_up=True)
                    pay(-cost0, -cost1)
                    minted = band
                case calls.MintFromDeltas(_, band) if isinstance(decoded.call, calls.Execute):
                    put_in(band, *(brought.get(currency, 0) for currency in (key.currency0, key.currency1)))
                case calls.MintFromDeltas(_, band):
                    put_in(band, *(changes[each] - before[each] for each in (key.currency0, key.currency1)))
                case calls.IncreaseFromDeltas():
                    band = touch().range if minted is None else minted
                    pair = (key.currency0, key.currency1)
                    put_in(band, *(paid.get(each, 0) + changes[each] - before[each] for each in pair))
                case calls.Take(currency, _, amount) if isinstance(decoded.call, calls.ModifyLiquidities):
                    paid[currency] = paid.get(currency, 0) - amount
                case calls.Increase(_, liquidity):
                    cost0, cost1 = worth(touch().range, liquidity, round_up=True)
                    pay(-cost0, -cost1)
                case calls.Decrease(_, liquidity):
                    pay(*worth(touch().range, liquidity, round_up=False))
                case calls.Burn():
                    burned = touch()
                    pay(*worth(burned.range, burned.liquidity, round_up=False))
                case calls.SwapIn(_, _, amount_in, out_min):
                    first = action.sells_first((key.currency0, key.currency1))
                    pay(*((-amount_in, out_min) if first else (out_min, -amount_in)))
                case _:
                    pass
    return changes


def _sum_brought(decoded: calls.DecodedCall, pair: tuple[Address, Address]) -> dict[Address, int]:
    """What a call of the router brings to PositionManager: what is sent there, and what its swaps leave of it."""
    brought = {NATIVE: decoded.value}
    if isinstance(decoded.call, calls.Execute):
        for command in decoded.call.commands:
            match command:
                case calls.TransferFrom(token, recipient, amount) if recipient != decoded.to:
                    brought[token] = brought.get(token, 0) + amount
                case calls.RouterSwap(actions):
                    paid, taken = settle_swaps(actions)
                    brought[NATIVE] -= paid.get(NATIVE, 0)
                    swap = next(action for action in actions if isinstance(action, calls.SwapIn))
                    stands_for = dict(zip(swap.currencies, pair if swap.sells_first(pair) else pair[::-1], strict=True))
                    for currency, amount in taken.items():
                        ours = currency if currency in pair else stands_for[currency]
                        brought[ours] = brought.get(ours, 0) + amount
                case calls.WrapEther(recipient, amount) if recipient == decoded.to:
                    brought[NATIVE] -= amount
                case _:
                    pass
    return brought


def _actions(decoded: calls.DecodedCall) -> Iterator[calls.Action]:
    match decoded.call:
        case calls.ModifyLiquidities(actions):
            yield from actions
        case calls.Execute(commands):
            for command in commands:
                if isinstance(command, calls.ModifyLiquidities | calls.RouterSwap):
                    yield from command.actions
        case _:
            return
