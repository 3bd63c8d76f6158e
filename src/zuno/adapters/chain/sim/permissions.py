"""Allowances on the simulated chain: the tokens' own, and Permit2's, which expire."""

from __future__ import annotations

from typing import Final

from zuno.adapters.chain.world import DEPLOYMENT, OTHERS, USDC, WALLET, WETH
from zuno.amm.integers import MAX_UINT256
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.plan import Grant

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
