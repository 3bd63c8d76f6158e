"""An account whose gate speaks to a fake exchange over loopback, and rulings for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from tests.wire.exchanges.harness import WireHarness
from tests.wire.exchanges.matching import Market
from tests.wire.order_gate import card, rule
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, Leg, Ruling, Style, Target
from zuno.trading.model.market import MINUTE_MS, Mode, Side

ACCOUNT = "paper:wire"


@dataclass
class WireDesk:
    """Time is the exchange's own and goes on when it is told to."""

    here: WireHarness
    log: MemoryTradeLog = field(default_factory=MemoryTradeLog)

    def __post_init__(self) -> None:
        self.gate = self.open_gate()

    def open_gate(self) -> OrderGate:
        venue = self.here.venue
        now = self.here.fake.clock.now
        return OrderGate(GateContext(log=self.log, account=ACCOUNT, venues={venue.exchange: venue}, now=now))

    async def restart(self) -> None:
        await self.here.restart()
        self.gate = self.open_gate()

    def wait(self, millis: int) -> None:
        self.here.fake.clock.ahead += millis

    def held(self, symbol: Symbol = Symbol("BTCUSDT")) -> Decimal:
        """At the exchange."""
        return self.here.fake.engine.position(self.market(symbol).symbol).amount

    def market(self, symbol: Symbol) -> Market:
        """At the exchange, by whatever name it has there."""
        return self.here.fake.engine.markets[self.here.market.replace(self.here.symbol.base, symbol.base)]

    async def open(
        self, symbol: Symbol = Symbol("BTCUSDT"), quantity: float = 0.02, style: Style = Style.MOMENTUM_SNIPER
    ) -> str:
        """A long with its stop 2 % below and its target 4 % above; the state it comes to."""
        return (await self.gate.execute(self.opening(symbol, quantity, style))).state

    def opening(self, symbol: Symbol, quantity: float, style: Style = Style.MOMENTUM_SNIPER) -> RulingToExecute:
        as_of = self.here.fake.clock.now()
        exchange, price = self.here.venue.exchange, self.market(symbol).mark
        entry = float(price)
        leg = Leg(
            venue=exchange,
            side=Side.LONG,
            currency=exchange.currency,
            margin=quantity * entry,
            notional=quantity * entry,
            leverage=1.0,
            quantity=quantity,
        )
        ruling = rule(
            Call.LONG,
            as_of,
            execution_style=style,
            legs=(leg,),
            card=card(Side.LONG, entry, entry * 0.98, entry * 1.04, quantity),
            target_exchange=Target(exchange) if exchange in list(Target) else Target.BINANCE,
        )
        return self._order(symbol, ruling, as_of, price)

    def closing(self, symbol: Symbol) -> RulingToExecute:
        as_of = self.here.fake.clock.now()
        return self._order(symbol, rule(Call.CANCEL_AND_CLOSE, as_of, execution_style=Style.CASINO_EXIT), as_of)

    def _order(self, symbol: Symbol, ruling: Ruling, as_of: Millis, price: Decimal = Decimal(1)) -> RulingToExecute:
        return RulingToExecute(
            run_id=f"run_{symbol}_{ruling.decision}",
            symbol=symbol,
            mode=Mode.SWING,
            as_of=as_of,
            ruling=ruling,
            valid_until=Millis(as_of + 15 * MINUTE_MS),
            mark=price,
            atr=price / 100,
        )
