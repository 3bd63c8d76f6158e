"""What calldata says, as values: one class for each call, command and action that a plan may contain."""

from dataclasses import dataclass

from zuno.amm.model import PoolKey, Range
from zuno.kernel.units import Address, Seconds

# -- actions: what PositionManager or the router does while the pools are unlocked


@dataclass(frozen=True, slots=True)
class Mint:
    key: PoolKey
    range: Range
    liquidity: int
    amount0_max: int
    amount1_max: int
    owner: Address


@dataclass(frozen=True, slots=True)
class MintFromDeltas:
    """A mint of whatever the credit of the same call pays for; it never draws on anybody's wallet."""

    key: PoolKey
    range: Range
    amount0_max: int
    amount1_max: int
    owner: Address


@dataclass(frozen=True, slots=True)
class Increase:
    token_id: int
    liquidity: int
    amount0_max: int
    amount1_max: int


@dataclass(frozen=True, slots=True)
class IncreaseFromDeltas:
    """An addition of whatever the credit of the same call pays for."""

    token_id: int
    amount0_max: int
    amount1_max: int


@dataclass(frozen=True, slots=True)
class Decrease:
    token_id: int
    liquidity: int
    amount0_min: int
    amount1_min: int


@dataclass(frozen=True, slots=True)
class Burn:
    token_id: int
    amount0_min: int
    amount1_min: int


@dataclass(frozen=True, slots=True)
class SwapIn:
    """An exact input for at least a minimum."""

    key: PoolKey
    zero_for_one: bool
    amount_in: int
    amount_out_min: int

    @property
    def currencies(self) -> tuple[Address, Address]:
        """What it takes and what it pays."""
        pair = (self.key.currency0, self.key.currency1)
        return pair if self.zero_for_one else pair[::-1]

    def sells_first(self, pair: tuple[Address, Address]) -> bool:
        """Whether it takes the first token of a pair, wrapped or not."""
        return self.zero_for_one != is_flipped(self.key, pair)


def is_flipped(key: PoolKey, pair: tuple[Address, Address]) -> bool:
    """Whether a pool of the same pair, perhaps of the wrapped coin, has its currencies the other way round."""
    return key.currency0 == pair[1] or key.currency1 == pair[0]


@dataclass(frozen=True, slots=True)
class Settle:
    """Pay a debt; an amount of 0 is all of it, 2^255 is everything the contract has."""

    currency: Address
    amount: int
    payer_is_user: bool


@dataclass(frozen=True, slots=True)
class SettlePair:
    currency0: Address
    currency1: Address


@dataclass(frozen=True, slots=True)
class Take:
    """Take a credit; an amount of 0 is all of it."""

    currency: Address
    recipient: Address
    amount: int


@dataclass(frozen=True, slots=True)
class TakePair:
    currency0: Address
    currency1: Address
    recipient: Address


@dataclass(frozen=True, slots=True)
class CloseCurrency:
    """Pay or take what is left; payer and recipient are the caller."""

    currency: Address


@dataclass(frozen=True, slots=True)
class Sweep:
    """Everything the contract has of a currency."""

    currency: Address
    recipient: Address


Action = (
    Mint
    | MintFromDeltas
    | Increase
    | IncreaseFromDeltas
    | Decrease
    | Burn
    | SwapIn
    | Settle
    | SettlePair
    | Take
    | TakePair
    | CloseCurrency
    | Sweep
)


# -- commands of the router


@dataclass(frozen=True, slots=True)
class RouterSwap:
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class TransferFrom:
    """Out of the wallet, through Permit2."""

    token: Address
    recipient: Address
    amount: int


@dataclass(frozen=True, slots=True)
class WrapEther:
    """So much of the router's ether into its wrapper; 2^255 is all it has."""

    recipient: Address
    amount: int


@dataclass(frozen=True, slots=True)
class UnwrapEther:
    """All wrapped ether that the router has."""

    recipient: Address
    least: int


@dataclass(frozen=True, slots=True)
class ModifyLiquidities:
    """A call of PositionManager, by the wallet or by the router."""

    actions: tuple[Action, ...]
    deadline: Seconds


Command = RouterSwap | TransferFrom | WrapEther | UnwrapEther | ModifyLiquidities


# -- calls


@dataclass(frozen=True, slots=True)
class Execute:
    """A call of the router."""

    commands: tuple[Command, ...]
    deadline: Seconds


@dataclass(frozen=True, slots=True)
class Wrap:
    """Ether into its wrapper: as much as the call carries."""


@dataclass(frozen=True, slots=True)
class Approve:
    """`approve(address,uint256)`. On a token the number is an amount; on PositionManager it would be a position."""

    spender: Address
    amount: int


@dataclass(frozen=True, slots=True)
class Permit:
    """Permit2's own approval."""

    token: Address
    spender: Address
    amount: int
    expiration: Seconds


Call = Wrap | Approve | Permit | ModifyLiquidities | Execute


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A transaction as its bytes have it."""

    to: Address
    value: int
    call: Call

    @property
    def position_actions(self) -> tuple[Action, ...]:
        """What PositionManager is asked to do, by the wallet or by the router."""
        match self.call:
            case ModifyLiquidities(actions):
                return actions
            case Execute(commands):
                calls = (command for command in commands if isinstance(command, ModifyLiquidities))
                return tuple(action for call in calls for action in call.actions)
            case _:
                return ()

    @property
    def deadline(self) -> Seconds | None:
        match self.call:
            case ModifyLiquidities(deadline=deadline) | Execute(deadline=deadline):
                return deadline
            case _:
                return None
