"""An account with spot and perpetuals of one exchange on paper, in a test's hands: each venue's market moves when it is
told to, by one clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.wire.order_gate import BTC
from tests.wire.paper_venue import ACCOUNT, START, ListTape, depth
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.adapters.venues.paper.tape import FundingRate, Mark
from zuno.adapters.venues.paper.venue import PaperFunds, PaperVenue
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.carry import HedgeTarget
from zuno.trading.execute.order_gate import ExecutionResult, OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.ports.venue import MarginFunds, OrderVenue
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.protections import ProtectionLimits

SPOT, PERPETUAL = Venue("BINANCE-SPOT"), Venue("BINANCE")
LIMITS = ProtectionLimits(cooldown_minutes=0, daily_loss_pct=Decimal(90), max_drawdown_pct=Decimal(90))


@dataclass
class HedgeHarness:
    log: AccountLog = field(default_factory=MemoryTradeLog)
    wraps: Mapping[Venue, Any] = field(default_factory=dict)
    """What stands between the desk and a venue: called with the venue."""
    at: int = START
    live: bool = False

    def __post_init__(self) -> None:
        self.tapes = {SPOT: ListTape(), PERPETUAL: ListTape()}
        self.show(20_000)
        self.gate = self.open_gate()

    async def now(self) -> Millis:
        return Millis(self.at)

    def open_venue(self, exchange: Venue) -> OrderVenue:
        paper = PaperVenue(
            exchange, ACCOUNT, self.log, self.tapes[exchange], self.now, Fees().at(exchange), latency_ms=0
        )
        wrapped: OrderVenue = self.wraps.get(exchange, lambda venue: venue)(paper)
        return wrapped

    def open_gate(self) -> OrderGate:
        """As a process that starts has it. The perpetuals come first, as in the table of venues."""
        self.venues = {exchange: self.open_venue(exchange) for exchange in (PERPETUAL, SPOT)}
        funds: MarginFunds = PaperFunds(ACCOUNT, self.log, lambda: Millis(self.at))
        return OrderGate(
            GateContext(
                log=self.log,
                account=ACCOUNT,
                venues=self.venues,
                now=lambda: Millis(self.at),
                limits=LIMITS,
                funds=funds,
                live=self.live,
            )
        )

    def show(self, price: object, sizes: Mapping[Venue, object] | None = None, later: int = 1_000) -> None:
        """Another price at both venues; `sizes`: what stands against an order there."""
        self.at += later
        middle = Decimal(str(price))
        for exchange, tape in self.tapes.items():
            size = (sizes or {}).get(exchange, 1_000)
            tape.market[BTC] += [
                depth(self.at, middle - Decimal("0.1"), middle + Decimal("0.1"), size),
                Mark(Millis(self.at), float(middle)),
            ]

    def fund(self, rate: float) -> None:
        self.tapes[PERPETUAL].market[BTC].append(FundingRate(Millis(self.at + 1), rate))
        self.at += 1

    async def open_hedge(self, quantity: object = "0.05", request: str = "req_1") -> ExecutionResult:
        return await self.gate.set_hedge(HedgeTarget(BTC, SPOT, PERPETUAL, Decimal(str(quantity)), request))

    def held(self) -> dict[Venue, Decimal]:
        """By the book, a short below zero."""
        return {
            exchange: trade.side.sign * trade.quantity for (exchange, _, _), trade in self.gate.book.positions.items()
        }

    async def held_there(self) -> dict[Venue, Decimal]:
        """By the venues' own word."""
        return {
            exchange: position.side.sign * position.quantity
            for exchange in self.tapes
            for position in await self.open_venue(exchange).positions()
        }
