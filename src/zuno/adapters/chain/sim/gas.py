"""Gas on the simulated chain: what the official contracts used for each step of a plan, measured on the devnet."""

from dataclasses import dataclass
from typing import Final

from zuno.kernel.text import NATIVE
from zuno.lp.plan import calls

BLOCK_GAS: Final = 60_000_000
"""As much as the devnet puts in a block."""
_TRANSFER: Final = 21_000
_FLOOR_PER_TOKEN: Final = 10
_TOKENS_PER_NONZERO: Final = 4
_ROUTED_SWAPS: Final = 3


@dataclass(frozen=True, slots=True)
class GasTable:
    """Units by step. What adds to a step is named `with_…`."""

    wrap: int
    approve: int
    revoke: int
    permit: int
    permit_again: int
    """Where there was a permit before."""
    mint: int
    burn: int
    burn_of_one_token: int
    burn_and_mint: int
    increase: int
    increase_unpaid: int
    """Paid for by fees or beforehand."""
    with_addition: int
    with_payment: int
    """Beforehand, for each token."""
    decrease: int
    collect: int
    swap: int
    with_allowance: int
    """Tokens that a swap takes through Permit2."""
    swap_and_mint: int
    swap_and_fixed_mint: int
    with_route: int
    """Of swap and mint: through another pool, with a small swap more."""
    with_conversion: int
    """The native coin into its wrapper or back, inside the call."""
    transfer: int = 68_697
    bare: int = 46_525
    """A call that does nothing to any position: a sweep."""


MEASURED: Final = GasTable(
    34_738, 45_830, 23_860, 47_600, 30_520, 342_000, 137_000, 114_000, 282_000, 162_037, 116_000, 33_000, 23_500,
    133_000, 116_000, 99_000, 17_000, 412_000, 418_000, 28_000, 26_000,
)  # fmt: skip
EARLIER: Final = GasTable(
    51_838, 45_903, 45_903, 47_602, 47_602, 419_478, 153_578, 153_578, 393_517, 162_037, 162_037, 33_000, 0,
    154_621, 154_621, 99_048, 0, 440_997, 418_000, 0, 0,
)  # fmt: skip
"""Worlds that hold a transaction from before the table was measured by step are played again with this one."""
TABLES: Final = (EARLIER, MEASURED)


def gas_needed(
    call: calls.Call, table: GasTable = MEASURED, *, permitted_before: bool = False, pays_one: bool = False
) -> int:
    """Units a call takes when it goes through; combinations that no plan makes are the sum of their parts. `pays_one`:
    what it burns pays one token alone."""
    match call:
        case calls.Wrap():
            return table.wrap
        case calls.Approve(_, amount):
            return table.approve if amount else table.revoke
        case calls.Permit():
            return table.permit_again if permitted_before else table.permit
        case calls.ModifyLiquidities():
            return max(table.bare, _modify_gas(call, table, pays_one))
        case calls.Execute(commands):
            return max(table.bare, _execute_gas(commands, table))


def data_floor(data: bytes) -> int:
    """Calldata is never cheaper than this, whatever the execution costs (EIP-7623); a node takes no lower limit."""
    zeros = data.count(0)
    return _TRANSFER + _FLOOR_PER_TOKEN * (zeros + _TOKENS_PER_NONZERO * (len(data) - zeros))


def _execute_gas(commands: tuple[calls.Command, ...], table: GasTable) -> int:
    acts = [action for each in commands if isinstance(each, calls.RouterSwap) for action in each.actions]
    modified = [command for command in commands if isinstance(command, calls.ModifyLiquidities)]
    converted = sum(isinstance(command, calls.WrapEther | calls.UnwrapEther) for command in commands)
    moved = sum(isinstance(command, calls.TransferFrom) for command in commands)
    if modified and acts:
        fixed = any(isinstance(action, calls.Mint) for command in modified for action in command.actions)
        routed = sum(isinstance(action, calls.SwapIn) for action in acts) >= _ROUTED_SWAPS
        base = table.swap_and_fixed_mint if fixed else table.swap_and_mint
        return base + routed * table.with_route + converted * table.with_conversion
    if acts:
        paid = sum(
            isinstance(action, calls.Settle) and action.payer_is_user and action.currency != NATIVE for action in acts
        )
        transfers = moved * (table.with_allowance or table.transfer)
        swaps = sum(isinstance(command, calls.RouterSwap) for command in commands) * table.swap
        return swaps + paid * table.with_allowance + transfers + converted * table.with_conversion
    return moved * table.transfer + sum(_modify_gas(command, table, False) for command in modified)


def _modify_gas(call: calls.ModifyLiquidities, table: GasTable, pays_one: bool) -> int:
    kinds = [type(action) for action in call.actions]
    if kinds.count(calls.Burn) == kinds.count(calls.Mint) + kinds.count(calls.MintFromDeltas) == 1:
        return table.burn_and_mint
    unpaid = calls.IncreaseFromDeltas in kinds
    by_kind: dict[type[calls.Action], int] = {
        calls.Mint: table.mint,
        calls.MintFromDeltas: table.mint,
        calls.Burn: table.burn_of_one_token if pays_one else table.burn,
        calls.IncreaseFromDeltas: table.with_addition,
        calls.Increase: table.increase_unpaid if unpaid else table.increase,
    }
    units = sum(by_kind.get(kind, 0) for kind in kinds)
    for action in call.actions:
        match action:
            case calls.Decrease(liquidity=liquidity):
                units += table.decrease if liquidity else table.collect
            case calls.Settle(payer_is_user=True):
                units += table.with_payment
            case _:
                pass
    return units
