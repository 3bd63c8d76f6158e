"""Double-entry ledger of a trading account: each exchange's accounts in its own currency, exact in `Decimal`.

A debit is above zero, a credit below. Assets (cash, margin, inventory) have debit balances; capital and results have
credit balances. Positions are kept at cost: unrealised PnL is added by whoever marks them.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Final

from zuno.kernel.errors import Broken, Refused
from zuno.trading.model.cycle import Exchange

ZERO: Final = Decimal(0)
_GRAIN: Final = Decimal("1e-12")
"""Money is booked to twelve decimals: finer than any venue's, so that sums stay exact."""
_MOST: Final = Decimal("1e15")


class LedgerAccount(StrEnum):
    CASH = "cash"
    """Money that is not margin."""
    MARGIN = "margin"
    """Isolated margin of open futures positions."""
    INVENTORY = "inventory"
    """What was bought at a spot exchange, at cost."""
    CAPITAL = "capital"
    """What the account was opened with."""
    REALISED_PNL = "realised_pnl"
    """Before fees and funding."""
    FEES = "fees"
    FUNDING = "funding"
    MANUAL = "manual"
    """Results and fees of positions that a person wrote down."""
    ADJUSTMENTS = "adjustments"
    """Differences to the venue that reconciliation adopted."""


ASSETS: Final = (LedgerAccount.CASH, LedgerAccount.MARGIN, LedgerAccount.INVENTORY)


def round_money(amount: Decimal) -> Decimal:
    """To the ledger's grain, half to even. `Refused` for an amount no account has."""
    if not -_MOST < amount < _MOST:
        raise Refused(f"An amount of {amount} is beyond what an account can hold.")
    return amount.quantize(_GRAIN)


class Ledger:
    """Balances by exchange and account; every posting has equal debits and credits."""

    __slots__ = ("_balances", "_credits", "_debits")

    def __init__(self) -> None:
        self._balances = {exchange: dict.fromkeys(LedgerAccount, ZERO) for exchange in Exchange}
        self._debits = dict.fromkeys(Exchange, ZERO)
        self._credits = dict.fromkeys(Exchange, ZERO)

    def post(self, exchange: Exchange, *lines: tuple[LedgerAccount, Decimal]) -> None:
        """Book these amounts together. `Broken` unless they add up to zero: nothing is booked then."""
        if sum((amount for _, amount in lines), ZERO) != 0:
            posted = ", ".join(f"{account} {amount}" for account, amount in lines)
            raise Broken(f"A posting at {exchange} does not balance: {posted}.")
        balances = self._balances[exchange]
        for account, amount in lines:
            balances[account] += amount
            if amount > 0:
                self._debits[exchange] += amount
            else:
                self._credits[exchange] -= amount

    def balance(self, exchange: Exchange, account: LedgerAccount) -> Decimal:
        """Debits less credits."""
        return self._balances[exchange][account]

    def debits(self, exchange: Exchange) -> Decimal:
        return self._debits[exchange]

    def credits(self, exchange: Exchange) -> Decimal:
        return self._credits[exchange]

    def assets(self, exchange: Exchange) -> Decimal:
        """Equity with positions at cost."""
        balances = self._balances[exchange]
        return sum((balances[account] for account in ASSETS), ZERO)

    def check(self, exchange: Exchange, margin: Decimal, inventory: Decimal) -> None:
        """`Broken` unless debits = credits, the assets equal capital and results, and margin and inventory are what
        the positions add up to."""
        balances = self._balances[exchange]
        if self._debits[exchange] != self._credits[exchange]:
            raise Broken(f"Debits of {self._debits[exchange]} at {exchange}, credits of {self._credits[exchange]}.")
        owed = -sum((amount for account, amount in balances.items() if account not in ASSETS), ZERO)
        if self.assets(exchange) != owed:
            raise Broken(f"Assets of {self.assets(exchange)} at {exchange}, capital and results of {owed}.")
        if balances[LedgerAccount.MARGIN] != margin or balances[LedgerAccount.INVENTORY] != inventory:
            raise Broken(
                f"The ledger of {exchange} has a margin of {balances[LedgerAccount.MARGIN]} and an inventory of "
                f"{balances[LedgerAccount.INVENTORY]}; the positions have {margin} and {inventory}."
            )
