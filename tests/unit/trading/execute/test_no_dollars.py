"""An account at a venue that counts in another currency than the dollar, and no other venue beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tests.wire.exchanges.desk import WireDesk
from tests.wire.exchanges.harness import over_wire
from tests.wire.order_gate import BTC
from zuno.kernel.units import Millis
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Style
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, MINUTE_MS
from zuno.trading.model.trade_events import Mandate
from zuno.trading.rules.book_state import RealisedResult
from zuno.trading.rules.protections import find_day_loss

PLACE = Venue("HYPERLIQUID")


@dataclass
class DollarlessDesk(WireDesk):
    rates: dict[str, Known[Decimal]] = field(default_factory=dict)
    stale: str | None = None

    def open_gate(self) -> OrderGate:
        async def read_rates() -> Mapping[str, Known[Decimal]]:
            return self.rates

        async def find_stale(venue: Venue) -> str | None:
            return self.stale

        ports, now = {PLACE: self.here.venue}, self.here.fake.clock.now
        return OrderGate(GateContext(self.log, "live", ports, now, live=True, rates=read_rates, find_stale=find_stale))

    async def grant(self) -> None:
        now, limit = self.here.fake.clock.now(), Decimal(5_000)
        await self.gate.grant_mandate(
            Mandate(
                symbols=(BTC,),
                venues=(PLACE,),
                max_margin_per_trade_usd=limit,
                max_margin_per_day_usd=limit,
                max_daily_loss_usd=Decimal(100),
                granted=now,
                expires=Millis(now + DAY_MS),
            )
        )


async def test_a_day_s_loss_is_counted_by_the_rate_of_the_market_that_is_read() -> None:
    async with over_wire(PLACE) as here:
        desk = DollarlessDesk(here, rates={"USDC": Decimal("1.25")})
        await desk.grant()
        await desk.gate.reconcile()
        assert await desk.open(quantity=0.02) == "open"
        risk = desk.gate._protections
        state = await risk.read_risk_state(BTC)
        balance = (await here.venue.balance()).total
        assert state.equity_usd == (balance + state.unrealised_usd * Decimal("1.25")) / Decimal("1.25")  # type: ignore[operator]
        desk.gate.book.results.append(RealisedResult(state.now, PLACE, Decimal(-125)))
        lost = find_day_loss(state)
        assert not isinstance(lost, Missing)
        assert lost >= 100


async def test_entries_that_wait_end_when_nobody_knows_what_was_lost() -> None:
    async with over_wire(PLACE) as here:
        desk = DollarlessDesk(here, rates={"USDC": Decimal(1)})
        await desk.grant()
        await desk.gate.reconcile()
        assert await desk.open(quantity=0.04, style=Style.SMART_DCA) == "working"
        desk.rates["USDC"] = Missing("nobody says")
        desk.wait(6 * MINUTE_MS)
        await desk.gate.advance()
        assert desk.gate.book.open_intents, "a moment without a rate ends nothing"
        desk.wait(6 * MINUTE_MS)
        await desk.gate.advance()
        assert desk.gate.book.open_intents == {}
        assert [order for order in desk.gate.book.open_orders.values() if order.purpose == "entry"] == []
        assert len(desk.gate.book.positions) == 1
        refused = await desk.gate.execute(desk.opening(BTC, 0.02))
        assert (refused.state, "nobody says" in refused.reason) == ("refused", True)


async def test_a_list_that_grew_old_since_the_start_opens_nothing_and_closes() -> None:
    async with over_wire(PLACE) as here:
        desk = DollarlessDesk(here, rates={"USDC": Decimal(1)})
        await desk.grant()
        await desk.gate.reconcile()
        assert await desk.open(quantity=0.02) == "open"
        desk.stale = "the list is 30 hours old"
        desk.wait(MINUTE_MS)
        refused = await desk.gate.execute(desk.opening(BTC, 0.02))
        assert (refused.state, refused.reason) == ("refused", desk.stale)
        await desk.gate.close(None)
        assert desk.gate.book.positions == {}
