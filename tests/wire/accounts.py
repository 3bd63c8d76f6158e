"""Accounts at the two venues that a desk has without settings, and rates of their currencies."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from zuno.markets.venues import DEFAULT_VENUES
from zuno.trading.model.account import Account
from zuno.trading.model.known import Known
from zuno.trading.model.trade_events import AccountOpened
from zuno.trading.rules.account import Rates, currency_rates
from zuno.trading.rules.inputs import FeeRates, Fees

FUTURES, SPOT = DEFAULT_VENUES


def build_account(usd: float, krw: float, *rest: Any, **named: Any) -> Account:
    return Account({FUTURES: usd, SPOT: krw}, *rest, **named)


def open_account(at: int, usd: Any, krw: Any) -> AccountOpened:
    return AccountOpened(at=at, cash={FUTURES: Decimal(usd), SPOT: Decimal(krw)})


def won_rates(krw_rate: Known[float]) -> Rates:
    return currency_rates({"KRW": krw_rate, "USDC": 1.0})


def decimal_rates(krw_rate: Decimal | None) -> dict[str, Decimal]:
    return {"USD": Decimal(1)} | ({} if krw_rate is None else {"KRW": krw_rate})


def build_fees(futures: FeeRates, spot: FeeRates) -> Fees:
    return Fees({FUTURES: futures, SPOT: spot})


def with_cash(account: Account, *, usd: float | None = None, krw: float | None = None, **named: Any) -> Account:
    cash = {**account.cash} | ({} if usd is None else {FUTURES: usd}) | ({} if krw is None else {SPOT: krw})
    return replace(account, cash=cash, **named)
