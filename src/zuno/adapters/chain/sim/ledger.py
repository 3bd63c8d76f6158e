"""Balances and allowances on the simulated chain: what a change cost is measured by balances, not assumed."""

from __future__ import annotations

from typing import Final

from zuno.adapters.chain.world import DEPLOYMENT, OTHERS, USDC, WALLET, WETH
from zuno.amm.integers import MAX_UINT256
from zuno.amm.model import PoolKey
from zuno.kernel.errors import Broken
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds, Wei
from zuno.lp.model.plan import Grant

VAULT: Final = DEPLOYMENT.pool_manager
"""PoolManager holds the tokens of every pool."""
PROPOSER: Final = Address("0x" + "00" * 19 + "c0")
"""Where tips go."""
_ETHER: Final = 10**18
_FUNDS: Final = {
    (WALLET, NATIVE): 9_999_900 * _ETHER,
    (WALLET, WETH.address): 100 * _ETHER,
    (WALLET, USDC.address): 500_000 * 10**6,
    (OTHERS, NATIVE): 5_000_000 * _ETHER,
    (OTHERS, WETH.address): 5_000_000 * _ETHER,
    (OTHERS, USDC.address): 100_000_000_000 * 10**6,
}
"""What the devnet gives both before the story begins."""


class Ledger:
    """Balances by holder and currency. Money is moved, wrapped or, as a base fee, burnt; it is never made."""

    def __init__(self) -> None:
        self._balances: dict[tuple[Address, Address], int] = dict(_FUNDS)

    def copy(self) -> Ledger:
        copied = Ledger()
        copied._balances = dict(self._balances)
        return copied

    def of(self, holder: Address, currency: Address) -> int:
        return self._balances.get((holder, currency), 0)

    def of_pair(self, holder: Address, key: PoolKey) -> tuple[int, int]:
        return self.of(holder, key.currency0), self.of(holder, key.currency1)

    def settle(self, party: Address, key: PoolKey, amount0: int, amount1: int) -> None:
        """Pay what a pool says: amounts above zero go to the party, below zero to the vault."""
        for currency, amount in ((key.currency0, amount0), (key.currency1, amount1)):
            payer, payee = (VAULT, party) if amount > 0 else (party, VAULT)
            self.pay(payer, payee, currency, abs(amount))

    def pay(self, payer: Address, payee: Address, currency: Address, amount: int) -> None:
        self._take(payer, currency, amount)
        self._put(payee, currency, amount)

    def wrap(self, holder: Address, amount: int) -> None:
        """Ether goes to its wrapper, which gives as many of its own tokens for it."""
        self.pay(holder, WETH.address, NATIVE, amount)
        self._put(holder, WETH.address, amount)

    def unwrap(self, holder: Address, amount: int) -> None:
        self._take(holder, WETH.address, amount)
        # Counted from zero: what was wrapped before the story lies there as well and is on no book.
        self._put(WETH.address, NATIVE, -amount)
        self._put(holder, NATIVE, amount)

    def changes_since(self, before: Ledger) -> dict[tuple[Address, Address], int]:
        """By holder and currency, what balances have gained."""
        moved = ((entry, self.of(*entry) - before.of(*entry)) for entry in {**before._balances, **self._balances})
        return {entry: change for entry, change in moved if change}

    def entries(self) -> tuple[tuple[tuple[Address, Address], int], ...]:
        """Every balance that is not zero, in one order whatever happened."""
        return tuple(sorted((entry, held) for entry, held in self._balances.items() if held))

    def pay_gas(self, sender: Address, units: int, base_fee: Wei, tip: Wei) -> None:
        """The base fee is burnt, the tip is the proposer's."""
        self._take(sender, NATIVE, units * base_fee)
        self._take(sender, NATIVE, units * tip)
        self._put(PROPOSER, NATIVE, units * tip)

    def _take(self, holder: Address, currency: Address, amount: int) -> None:
        if self.of(holder, currency) < amount:
            raise Broken(f"{holder} on sim holds less than the {amount} of {currency} it would have to pay")
        self._balances[holder, currency] = self.of(holder, currency) - amount

    def _put(self, holder: Address, currency: Address, amount: int) -> None:
        self._balances[holder, currency] = self.of(holder, currency) + amount


MAX_UINT160: Final = (1 << 160) - 1
FOREVER: Final = Seconds((1 << 48) - 1)
AllowanceKey = tuple[Address, Address, Address]
"""Owner, token, spender."""
_SPENDERS: Final = {
    WALLET: (DEPLOYMENT.position_manager,),
    OTHERS: (DEPLOYMENT.position_manager, DEPLOYMENT.universal_router),
}
"""Spenders with unlimited allowances from the devnet's script, before it begins."""


class Permissions:
    """What was allowed and is not used up. An allowance of everything is never used up."""

    def __init__(self) -> None:
        self.allowed: dict[AllowanceKey, int] = {}
        self.granted: dict[AllowanceKey, Grant] = {}
        for owner, spenders in _SPENDERS.items():
            for token in (WETH.address, USDC.address):
                self.allowed[owner, token, DEPLOYMENT.permit2] = MAX_UINT256
                for spender in spenders:
                    self.granted[owner, token, spender] = Grant(MAX_UINT160, FOREVER)

    def copy(self) -> Permissions:
        copied = Permissions()
        copied.allowed, copied.granted = dict(self.allowed), dict(self.granted)
        return copied

    def allowance(self, owner: Address, token: Address, spender: Address) -> int:
        return self.allowed.get((owner, token, spender), 0)

    def approve(self, owner: Address, token: Address, spender: Address, amount: int) -> None:
        self.allowed[owner, token, spender] = amount

    def grant(self, owner: Address, token: Address, spender: Address) -> Grant:
        return self.granted.get((owner, token, spender), Grant())

    def permit(self, owner: Address, token: Address, spender: Address, grant: Grant) -> None:
        self.granted[owner, token, spender] = grant

    def use_grant(self, owner: Address, token: Address, spender: Address, amount: int) -> None:
        """Permit2's side of a transfer that it has found allowed."""
        grant = self.grant(owner, token, spender)
        if grant.amount != MAX_UINT160:
            self.granted[owner, token, spender] = Grant(grant.amount - amount, grant.until)

    def use_allowance(self, owner: Address, token: Address, spender: Address, amount: int) -> None:
        """The token's side."""
        allowed = self.allowance(owner, token, spender)
        if allowed != MAX_UINT256:
            self.allowed[owner, token, spender] = allowed - amount
