"""A transaction in words, from its bytes alone: what a person reads before anything is signed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from zuno.amm.model import PoolKey
from zuno.kernel.text import NATIVE, Token, format_units
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.chains import Deployment
from zuno.lp.plan import calls
from zuno.lp.plan.calldata import WHOLE_BALANCE
from zuno.lp.plan.policy import resolve_recipient


@dataclass(frozen=True, slots=True)
class AddressBook:
    """Whom a reader knows by name; everybody else is an address."""

    deployment: Deployment
    wallet: Address
    tokens: Mapping[Address, Token]
    moment: Callable[[Seconds], str] = str
    """Formats a time."""

    def who(self, address: Address) -> str:
        at = self.deployment
        known = {
            self.wallet: "your wallet",
            at.position_manager: "PositionManager",
            at.universal_router: "UniversalRouter",
            at.permit2: "Permit2",
        }
        name = known.get(address) or (self.token(address) if address in self.tokens else None)
        return name or address

    def callee(self, address: Address) -> str:
        """The recipient of a transaction is named with its address, because the address is what is signed."""
        name = self.who(address)
        return name if name == address else f"{name} ({address})"

    def token(self, currency: Address) -> str:
        """The symbol of a token that is not curated is marked, because anyone can choose a symbol."""
        token = self.tokens.get(currency)
        if token is None:
            return currency
        return token.symbol if token.verified or token.native else f"{token.symbol}?"

    def amount(self, currency: Address, amount: int) -> str:
        token = self.tokens.get(currency)
        if token is None:
            return f"{amount} base units of {currency}"
        return f"{format_units(amount, token.decimals)} {self.token(currency)}"


def describe_call(decoded: calls.DecodedCall, names: AddressBook, key: PoolKey) -> tuple[str, ...]:
    """One line for the call and one for each thing it does. `key` is the pool of positions named by number only."""
    lines = [
        f"call {names.callee(decoded.to)}" + (f" with {names.amount(NATIVE, decoded.value)}" if decoded.value else "")
    ]
    at, wallet = names.deployment, names.wallet
    match decoded.call:
        case calls.Wrap():
            lines.append(
                f"wrap {names.amount(NATIVE, decoded.value)} into {names.token(decoded.to)} for {names.who(wallet)}"
            )
        case calls.Approve(spender, 0):
            lines.append(f"take back what {names.who(spender)} may take of your {names.token(decoded.to)}")
        case calls.Permit(token, spender, 0, _):
            lines.append(f"take back what {names.who(spender)} may take of your {names.token(token)} through Permit2")
        case calls.Approve(spender, amount):
            lines.append(f"allow {names.who(spender)} to take up to {names.amount(decoded.to, amount)} of yours")
        case calls.Permit(token, spender, amount, expiration):
            lines.append(
                f"let {names.who(spender)} take up to {names.amount(token, amount)} until {names.moment(expiration)}"
            )
        case calls.ModifyLiquidities(actions, deadline):
            lines += _lines(actions, names, key, wallet, at.position_manager)
            lines.append(f"not after {names.moment(deadline)}")
        case calls.Execute(commands, deadline):
            for command in commands:
                match command:
                    case calls.RouterSwap(actions):
                        lines += _lines(actions, names, key, wallet, at.universal_router)
                    case calls.TransferFrom(token, recipient, amount):
                        to = names.who(resolve_recipient(recipient, wallet, at.universal_router))
                        lines.append(f"send {names.amount(token, amount)} from {names.who(wallet)} to {to}")
                    case calls.WrapEther(recipient, amount):
                        what = names.token(NATIVE) if amount == WHOLE_BALANCE else names.amount(NATIVE, amount)
                        to = names.who(resolve_recipient(recipient, wallet, at.universal_router))
                        lines.append(f"wrap {'all ' if amount == WHOLE_BALANCE else ''}{what} for {to}")
                    case calls.UnwrapEther(recipient, least):
                        to = names.who(resolve_recipient(recipient, wallet, at.universal_router))
                        lines.append(f"unwrap at least {names.amount(NATIVE, least)} for {to}")
                    case calls.ModifyLiquidities(actions, inner):
                        lines += _lines(actions, names, key, at.universal_router, at.position_manager)
                        lines.append(f"the mint not after {names.moment(inner)}")
            lines.append(f"not after {names.moment(deadline)}")
    return tuple(lines)


def _lines(
    actions: tuple[calls.Action, ...], names: AddressBook, key: PoolKey, caller: Address, itself: Address
) -> Iterator[str]:
    def who(recipient: Address) -> str:
        return names.who(resolve_recipient(recipient, caller, itself))

    def both(amount0: int, amount1: int, pool: PoolKey = key) -> str:
        return f"{names.amount(pool.currency0, amount0)} and {names.amount(pool.currency1, amount1)}"

    for action in actions:
        match action:
            case calls.Mint(pool, band, liquidity, most0, most1, owner):
                yield (
                    f"open ticks {band.lower} to {band.upper} of {_pool(pool, names)} with liquidity {liquidity}, "
                    f"for at most {both(most0, most1, pool)}; the position is given to {who(owner)}"
                )
            case calls.Increase(token_id, liquidity, most0, most1):
                yield f"add liquidity {liquidity} to position {token_id} for at most {both(most0, most1)}"
            case calls.MintFromDeltas(pool, band, most0, most1, owner):
                yield (
                    f"open ticks {band.lower} to {band.upper} of {_pool(pool, names)} with all that this call has paid "
                    f"in, at most {both(most0, most1, pool)}; the position is given to {who(owner)}"
                )
            case calls.IncreaseFromDeltas(token_id, most0, most1):
                yield f"add what this call still has to position {token_id}, at most {both(most0, most1)}"
            case calls.Decrease(token_id, 0, _, _):
                yield f"collect the fees of position {token_id}"
            case calls.Decrease(token_id, liquidity, least0, least1):
                least = both(least0, least1)
                yield f"take liquidity {liquidity} out of position {token_id} for at least {least} + fees"
            case calls.Burn(token_id, least0, least1):
                yield f"burn position {token_id} for at least {both(least0, least1)} + fees"
            case calls.SwapIn(pool, zero_for_one, amount_in, out_min):
                paid, got = (pool.currency0, pool.currency1) if zero_for_one else (pool.currency1, pool.currency0)
                yield (
                    f"swap {names.amount(paid, amount_in)} for at least {names.amount(got, out_min)} "
                    f"in {_pool(pool, names)}"
                )
            case calls.Settle(currency, amount, payer_is_user):
                what = names.amount(currency, amount) if amount else f"the {names.token(currency)} owed"
                if amount == WHOLE_BALANCE:
                    what = f"all {names.token(currency)} it has"
                yield f"pay {what} from {names.who(caller if payer_is_user else itself)}"
            case calls.SettlePair(currency0, currency1):
                yield f"pay the {names.token(currency0)} and {names.token(currency1)} owed from {names.who(caller)}"
            case calls.Take(currency, recipient, amount):
                what = names.amount(currency, amount) if amount else f"the {names.token(currency)} due"
                yield f"take {what} to {who(recipient)}"
            case calls.TakePair(currency0, currency1, recipient):
                yield f"take the {names.token(currency0)} and {names.token(currency1)} due to {who(recipient)}"
            case calls.CloseCurrency(currency):
                yield f"take the {names.token(currency)} left to {names.who(caller)}, or pay what is missing from there"
            case calls.Sweep(currency, recipient):
                yield f"send all {names.token(currency)} left in {names.who(itself)} to {who(recipient)}"


def _pool(key: PoolKey, names: AddressBook) -> str:
    hook = f", hook {key.hooks}" if key.has_hooks else ""
    fee = "dynamic fee" if key.dynamic_fee else f"{format_units(key.fee, 4)} %"
    return f"{names.token(key.currency0)}/{names.token(key.currency1)} {fee} (spacing {key.tick_spacing}{hook})"
