"""The money of sleeves: what a new paper account begins with, and what is transferred toward the shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Final

from zuno.kernel.canonical import canonical, digest
from zuno.kernel.units import Millis
from zuno.markets.venues import Kind, Venue, venue_of
from zuno.trading.model.orders import ZERO
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE, DEBATE_ALONE, NEW_PAPER_CASH, TREND, SleeveShares
from zuno.trading.model.trade_events import AccountOpened, SleevesSet, SleeveTransferred, TradeEvent
from zuno.trading.rules.account import DOLLAR
from zuno.trading.rules.book_state import BookState

CARRY_SPOT: Final = Decimal("0.75")
"""Of what carry has, at the spot venue: a quarter is the short's margin."""
LEAST_TRANSFER: Final = Decimal(10)
_CENT: Final = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Opening:
    shares: SleeveShares
    cash: Mapping[Venue, Decimal]

    def list_events(self, at: Millis) -> list[TradeEvent]:
        events: list[TradeEvent] = [
            AccountOpened(at=at, cash=dict(self.cash)),
            SleevesSet(at=at, shares=self.shares.to_record()),
        ]
        for sleeve in self.shares:
            if sleeve != DEBATE:
                amount = (NEW_PAPER_CASH * self.shares.of(sleeve)).quantize(_CENT)
                events.append(build_transfer(at, "opening", DEBATE, sleeve, amount))
        return events


def list_places(routed: Sequence[Venue], perpetual: Venue, sleeve: str) -> Mapping[Venue, Decimal]:
    """Where a sleeve's dollars lie, in parts of them: the debate's at its routes, carry's at both of its legs, trend's
    at the spot venue of the default perpetual's house, and those of others, which may sell short, at the perpetual."""
    spot = venue_of(perpetual.house, Kind.SPOT) or perpetual
    if sleeve == CASH_CARRY:
        return {spot: CARRY_SPOT, perpetual: 1 - CARRY_SPOT}
    if sleeve != DEBATE:
        return {spot if sleeve == TREND else perpetual: Decimal(1)}
    dollars = [venue for venue in routed if venue.currency == DOLLAR] or [perpetual]
    return {venue: 1 / Decimal(len(dollars)) for venue in dollars}


def plan_opening(shares: SleeveShares, routed: Sequence[Venue], perpetual: Venue) -> Opening | None:
    """Each sleeve's money where it trades. None: the debate's alone, with the usual cash of each venue, and where
    nothing is counted in dollars."""
    if shares == DEBATE_ALONE or perpetual.currency != DOLLAR:
        return None
    cash = {venue: ZERO if venue.currency == DOLLAR else venue.paper_cash for venue in routed}
    for sleeve in shares:
        for venue, weight in list_places(routed, perpetual, sleeve).items():
            part = NEW_PAPER_CASH * shares.of(sleeve) * weight
            cash[venue] = cash.get(venue, ZERO) + part.quantize(_CENT, ROUND_DOWN)
    return Opening(shares, cash)


def build_transfer(at: Millis, request: str, source: str, target: str, amount: Decimal) -> SleeveTransferred:
    """`request`: names the transfer; the same again is the same."""
    key = f"tra_{digest(canonical([request, source, target]))[:24]}"
    return SleeveTransferred(at=at, key=key, source=source, target=target, currency=DOLLAR, amount=amount)


def plan_transfers(book: BookState, equity: Mapping[str, Decimal], at: Millis, request: str) -> list[SleeveTransferred]:
    """From sleeves above their share to those below, never more than is free. `equity`: of each sleeve in dollars."""
    total = sum(equity.values(), ZERO)
    over = {name: worth - total * book.shares.of(name) for name, worth in equity.items()}
    transfers: list[SleeveTransferred] = []
    for source in sorted(over, key=lambda name: -over[name]):
        free = min(over[source], book.sleeve_free(source, DOLLAR))
        for target in sorted(over, key=lambda name: over[name]):
            amount = min(free, -over[target]).quantize(_CENT, ROUND_DOWN)
            if source != target and amount >= LEAST_TRANSFER:
                transfers.append(build_transfer(at, request, source, target, amount))
                free, over[target] = free - amount, over[target] + amount
    return transfers
