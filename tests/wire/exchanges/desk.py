"""An account whose gate speaks to a fake exchange over loopback, and rulings for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from tests.wire.exchanges.harness import WireHarness
from tests.wire.order_gate import card, rule
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.feeds import UPBIT, name_at
from zuno.markets.market import Symbol
from zuno.trading.execute.gate_state import GateContext
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
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
        name = symbol.value if symbol.value in self.here.fake.engine.markets else name_at(UPBIT, symbol)
        return self.here.fake.engine.position(name).amount

    async def open(
        self, symbol: Symbol = Symbol("BTCUSDT"), quantity: float = 0.02, style: Style = Style.MOMENTUM_SNIPER
    ) -> str:
        """A long with its stop 2 % below and its target 4 % above; the state it comes to."""
        return (await self.gate.execute(self.opening(symbol, quantity, style))).state

    def opening(self, symbol: Symbol, quantity: float, style: Style = Style.MOMENTUM_SNIPER) -> RulingToExecute:
        as_of = self.here.fake.clock.now()
        markets, exchange = self.here.fake.engine.markets, self.here.venue.exchange
        price = (markets.get(symbol.value) or markets[name_at(UPBIT, symbol)]).mark
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
            target_exchange=Target(exchange.value),
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
