"""How an account stood when a day ended, as the desk writes it down at midnight UTC."""

from __future__ import annotations

from typing import Final

from zuno.kernel.wire import Wire

DAY_SUMMARY: Final = "trading_day"
"""The kind of the journal's entries."""


class DaySummary(Wire):
    account: str
    day: int
    """When it began, in Unix milliseconds."""
    trades: int
    net_usd: float
    net_krw: float
    fees_usd: float
    fees_krw: float
    funding_usd: float
    cash_usd: float
    cash_krw: float
    open_trades: int
