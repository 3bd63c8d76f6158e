"""What a call costs on the simulated chain: what the same call was measured to use on the real contracts."""

from __future__ import annotations

from typing import Final

from zuno.lp.model.plan import MEASURED_GAS, StepKind
from zuno.lp.plan import calls

BLOCK_GAS: Final = 60_000_000
"""As much as the devnet puts in a block."""
_TRANSFER: Final = 21_000
_FLOOR_PER_TOKEN: Final = 10
_TOKENS_PER_NONZERO: Final = 4

# Measured on the devnet, as `MEASURED_GAS` is, which has only the steps of a candidate.
INCREASE_GAS: Final = 162_037
SWAP_AND_FIXED_MINT_GAS: Final = 418_000
"""As plans were made before they minted from credit: worlds that hold such a transaction are played again."""
ADDITION_GAS: Final = 33_000
"""What is added from credit in the call that opened the position or added to it."""
DECREASE_GAS: Final = 154_621
SWAP_GAS: Final = 99_048
PERMITTED_TRANSFER_GAS: Final = 68_697
BARE_CALL_GAS: Final = 46_525
"""A call that does nothing to any position: a sweep."""


def gas_needed(call: calls.Call) -> int:
    """Units a call takes when it goes through; combinations that no plan makes are the sum of their parts."""
    match call:
        case calls.Wrap():
            return MEASURED_GAS[StepKind.WRAP]
        case calls.Approve():
            return MEASURED_GAS[StepKind.APPROVE_PERMIT2]
        case calls.Permit():
            return MEASURED_GAS[StepKind.PERMIT2_APPROVE]
        case calls.ModifyLiquidities():
            return max(BARE_CALL_GAS, _modify_gas(call))
        case calls.Execute(commands):
            modified = [command for command in commands if isinstance(command, calls.ModifyLiquidities)]
            if modified and any(isinstance(command, calls.RouterSwap) for command in commands):
                fixed = any(isinstance(action, calls.Mint) for command in modified for action in command.actions)
                return SWAP_AND_FIXED_MINT_GAS if fixed else MEASURED_GAS[StepKind.SWAP_AND_MINT]
            return max(BARE_CALL_GAS, sum(map(_command_gas, commands)))


def data_floor(data: bytes) -> int:
    """Calldata is never cheaper than this, whatever the execution costs (EIP-7623); a node takes no lower limit."""
    zeros = data.count(0)
    return _TRANSFER + _FLOOR_PER_TOKEN * (zeros + _TOKENS_PER_NONZERO * (len(data) - zeros))


def gas_wasted(floor: int, need: int) -> int:
    """What a revert costs. Where in the call it happens is not followed: half of the way is a guess, and is called one
    here alone; it never exceeds what the call would have taken."""
    return floor + (need - floor) // 2


def _modify_gas(call: calls.ModifyLiquidities) -> int:
    kinds = [type(action) for action in call.actions]
    if kinds.count(calls.Burn) == kinds.count(calls.Mint) + kinds.count(calls.MintFromDeltas) == 1:
        return MEASURED_GAS[StepKind.BURN_AND_MINT]
    return sum(_BY_ACTION.get(kind, 0) for kind in kinds)


def _command_gas(command: calls.Command) -> int:
    match command:
        case calls.RouterSwap():
            return SWAP_GAS
        case calls.TransferFrom():
            return PERMITTED_TRANSFER_GAS
        case calls.ModifyLiquidities():
            return _modify_gas(command)


_BY_ACTION: Final[dict[type[calls.Action], int]] = {
    calls.Mint: MEASURED_GAS[StepKind.MINT],
    calls.MintFromDeltas: MEASURED_GAS[StepKind.MINT],
    calls.Burn: MEASURED_GAS[StepKind.BURN],
    calls.IncreaseFromDeltas: ADDITION_GAS,
    calls.Increase: INCREASE_GAS,
    calls.Decrease: DECREASE_GAS,
}
