"""Isolated margin: maintenance by size, and where a position is liquidated. The tiers are those of USDⓈ-M futures in
BTC and ETH, with the smallest tier's 0.4 % taken as 0.5 %."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final, NamedTuple

from zuno.kernel.units import Millis
from zuno.trading.model.account import PositionClosed
from zuno.trading.model.market import Candle, Side
from zuno.trading.rules.book_state import OpenTrade

MAINTENANCE_MARGIN: Final = 0.005
"""Of the first tier, which every position of this desk is in: its share of what the position is worth."""


class MaintenanceTier(NamedTuple):
    up_to: Decimal
    """Notional."""
    rate: Decimal
    deduction: Decimal
    """So that the maintenance margin has no step where a tier begins."""


def _build_tiers() -> tuple[MaintenanceTier, ...]:
    tiers: list[MaintenanceTier] = []
    start, rate, deduction = Decimal(0), Decimal(0), Decimal(0)
    for up_to, next_rate in (
        ("800000", str(MAINTENANCE_MARGIN)),
        ("3000000", "0.0065"),
        ("12000000", "0.01"),
        ("70000000", "0.02"),
        ("100000000", "0.025"),
        ("230000000", "0.05"),
        ("480000000", "0.1"),
        ("Infinity", "0.125"),
    ):
        deduction += start * (Decimal(next_rate) - rate)
        start, rate = Decimal(up_to), Decimal(next_rate)
        tiers.append(MaintenanceTier(start, rate, deduction))
    return tuple(tiers)


TIERS: Final = _build_tiers()


def liquidation_price(side: Side, quantity: Decimal, cost: Decimal, margin: Decimal) -> Decimal | None:
    """The mark at which what is left of the margin is the maintenance margin; None for a long of one's own money."""
    for tier in TIERS:
        if side is Side.LONG:
            price = (cost - margin - tier.deduction) / (quantity * (1 - tier.rate))
        else:
            price = (cost + margin + tier.deduction) / (quantity * (1 + tier.rate))
        if price * quantity <= tier.up_to:
            return price if price > 0 else None
    return None


def bankruptcy_price(side: Side, quantity: Decimal, cost: Decimal, margin: Decimal) -> Decimal:
    """Where the margin is used up."""
    return (cost - margin if side is Side.LONG else cost + margin) / quantity


def liquidation_distance(leverage: float, side: Side) -> float:
    """As a share of the entry, in the first tier; the maintenance margin follows the price."""
    sign = -1 if side is Side.LONG else 1
    return (1 / leverage - MAINTENANCE_MARGIN) / (1 + sign * MAINTENANCE_MARGIN)


def find_liquidation(trade: OpenTrade, bars: Iterable[Candle], mark: float | None, at: Millis) -> PositionClosed | None:
    """The liquidation of a manual position, if reached. Bars that began before it count by their close."""
    if trade.exchange.spot:
        return None
    price = liquidation_price(trade.side, trade.quantity, trade.cost, trade.margin)
    if price is None:
        return None
    long, seen = trade.side is Side.LONG, [] if mark is None else [mark]
    seen += [bar.close if bar.at < trade.opened else bar.low if long else bar.high for bar in bars]
    if not seen or (min(seen) > price if long else max(seen) < price):
        return None
    end = bankruptcy_price(trade.side, trade.quantity, trade.cost, trade.margin)
    return PositionClosed(at=at, id=trade.id, price=float(end), fee=0.0)
