"""An account's orders as a person asks about them: look, close, cancel, move levels, pause, kill, unlock, mandate.

Every method takes the account (None: the home's own) and answers with the book as it stands afterwards, for the views
of `service` to be made of.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from zuno.kernel import arguments
from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.execute.order_gate import OrderGate, request_name
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Symbol
from zuno.trading.model.trade_events import Mandate, MandateGranted, Protection
from zuno.trading.rules.book_state import OpenTrade
from zuno.trading.rules.trading_book import TradingBook


@dataclass(frozen=True, slots=True)
class OpenedAccount:
    """An account at a moment, with the gate that acts for it."""

    gate: OrderGate
    now: Millis


OpenAccount: TypeAlias = Callable[[str | None], Awaitable[OpenedAccount]]
"""By its name. The market is read first, so that its end is known."""


@dataclass(frozen=True, slots=True)
class OrdersAnswer:
    """What was done, and how the account stands now."""

    account: str
    now: Millis
    book: TradingBook
    said: tuple[str, ...]
    troubles: Mapping[Exchange, str]
    """Exchanges that did not answer."""


class TradingOrders:
    """Orders, positions and protections of the accounts of this home."""

    def __init__(self, open_account: OpenAccount) -> None:
        self._open = open_account

    async def show(self, account: str | None = None) -> OrdersAnswer:
        """The account as its log has it; nothing is asked of an exchange but prices."""
        opened = await self._open(account)
        await opened.gate.refresh()
        return self._answer(opened)

    async def close(self, which: str, account: str | None = None) -> OrdersAnswer:
        """A trade by its id, a symbol, or `all`."""
        opened = await self._open(account)
        name = which.strip()
        what = None if name.lower() == "all" else _symbol_or_id(name)
        done = await opened.gate.close(what, request=request_name("close", name, opened.now))
        return self._answer(opened, _describe_done(done, "closing"))

    async def cancel(self, client_id: str, account: str | None = None) -> OrdersAnswer:
        opened = await self._open(account)
        cancelled = await opened.gate.cancel(client_id.strip())
        return self._answer(opened, (f"{cancelled} is cancelled",))

    async def set_levels(
        self,
        trade_id: str,
        stop: str | None,
        target: str | None,
        *,
        confirmed: bool = False,
        account: str | None = None,
    ) -> OrdersAnswer:
        """Tightening at once; `Refused` for loosening that is not confirmed."""
        if stop is None and target is None:
            raise UsageError("Give --stop, --target or both.")
        opened = await self._open(account)
        trade = await opened.gate.set_levels(
            trade_id.strip(), _price_or_none(stop), _price_or_none(target), confirmed=confirmed
        )
        return self._answer(opened, (_describe_levels(trade),))

    async def pause(self, account: str | None = None) -> OrdersAnswer:
        opened = await self._open(account)
        await opened.gate.pause()
        return self._answer(opened, ("paused: no new trades; open ones go on",))

    async def resume(self, account: str | None = None) -> OrdersAnswer:
        opened = await self._open(account)
        stood = await opened.gate.resume()
        return self._answer(opened, ("resumed" if stood else "it was not paused",))

    async def kill(self, account: str | None = None) -> OrdersAnswer:
        """Cancel all, close all, lock until `unlock`."""
        opened = await self._open(account)
        done = await opened.gate.kill()
        return self._answer(opened, ("locked until `zuno trade unlock`", *_describe_done(done, "closing")))

    async def unlock(self, protection: str | None = None, account: str | None = None) -> OrdersAnswer:
        """Lift one protection by its name, or all."""
        opened = await self._open(account)
        lifted = await opened.gate.unlock(None if protection is None else parse_protection(protection))
        said = tuple(f"{lock.protection} is lifted" for lock in lifted)
        return self._answer(opened, said or ("nothing was locked",))

    async def grant_mandate(self, mandate: Mandate, account: str | None = None) -> MandateGranted:
        return await (await self._open(account)).gate.grant_mandate(mandate)

    async def revoke_mandate(self, account: str | None = None) -> MandateGranted:
        return await (await self._open(account)).gate.revoke_mandate()

    async def find_cash_differences(self, account: str | None = None) -> Mapping[Exchange, Decimal]:
        """By how much each exchange's balance is above the ledger's."""
        return await (await self._open(account)).gate.find_cash_differences()

    async def adopt_cash(self, shown: Mapping[Exchange, Decimal], account: str | None = None) -> OrdersAnswer:
        """Take the differences that were shown into the ledger."""
        opened = await self._open(account)
        await opened.gate.adopt_cash(shown)
        return self._answer(opened, tuple(f"adopted {describe_cash(*item)}" for item in shown.items()))

    def _answer(self, opened: OpenedAccount, said: tuple[str, ...] = ()) -> OrdersAnswer:
        gate = opened.gate
        return OrdersAnswer(
            account=gate.account,
            now=opened.now,
            book=gate.book,
            said=said,
            troubles=dict(gate.troubles),
        )


def parse_protection(text: str) -> Protection:
    try:
        return Protection(text.strip().lower().replace("-", "_"))
    except ValueError:
        known = ", ".join(protection.value for protection in Protection)
        raise UsageError(f"{plain_text(text, 40)!r} is no protection; there are {known}.") from None


def describe_cash(exchange: Exchange, cash: Decimal) -> str:
    return f"{cash.normalize():+,f} {exchange.currency} at {exchange}"


def _symbol_or_id(name: str) -> Symbol | str:
    try:
        return Symbol(name.upper())
    except ValueError:
        return name


def _price_or_none(text: str | None) -> Decimal | None:
    return None if text is None else arguments.parse_amount(text)


def _describe_done(done: tuple[str, ...], doing: str) -> tuple[str, ...]:
    return tuple(f"{doing} {name}" for name in done) or ("nothing is open",)


def _describe_levels(trade: OpenTrade) -> str:
    return f"{trade.id}: stop {trade.stop}, target {trade.target}"
