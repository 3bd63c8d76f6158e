"""Closed trades as a judge's record counts them: how each came out against the edge that was claimed for it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from zuno.kernel.units import Millis
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.record import MAX_EDGE, ClosedTrade
from zuno.trading.model.trade_events import ExitReason, TradeSummary


def list_closed_trades(summaries: Iterable[TradeSummary], before: Millis) -> tuple[ClosedTrade, ...]:
    """Those that were closed strictly before a moment. An entry at two exchanges is one trade: the leg that closed
    first counts. What a person wrote down, and an entry that was undone, claim no edge and do not count."""
    found: dict[str, ClosedTrade] = {}
    for summary in summaries:
        if summary.closed < before and summary.intent not in found and (trade := to_closed_trade(summary)) is not None:
            found[summary.intent] = trade
    return tuple(found.values())


def to_closed_trade(summary: TradeSummary) -> ClosedTrade | None:
    judge, family, edge = summary.judge, summary.family, summary.edge
    if judge is None or family is None or edge is None or summary.stop is None or summary.target is None:
        return None
    if summary.reason in (ExitReason.UNDONE, ExitReason.MANUAL):
        return None
    sign = summary.side.sign

    def percent(price: Decimal) -> float:
        return round_digits(float(100 * sign * (price / summary.entry - 1)))

    profit, loss = percent(summary.target), -percent(summary.stop)
    if profit <= 0 or loss <= 0:  # filled beyond a level: no claim was made about such a trade
        return None
    return ClosedTrade(
        closed=summary.closed,
        judge=judge,
        family=family,
        edge=min(MAX_EDGE, max(-MAX_EDGE, edge)),
        profit_pct=profit,
        loss_pct=loss,
        exit_pct=percent(summary.exit),
    )
