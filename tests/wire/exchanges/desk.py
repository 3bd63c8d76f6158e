"""An account whose gate speaks to a fake exchange over loopback, and rulings for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from tests.wire.exchanges.harness import WireHarness
from tests.wire.exchanges.matching import Market
from tests.wire.exchanges.serving import DOWN, Request
from tests.wire.order_gate import card, rule
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.targets import TargetPosition
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, Leg, Ruling, Style, Target
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE
from zuno.trading.model.trade_events import AccountOpened, SleevesSet, SleeveTransferred

ACCOUNT = "paper:wire"


@dataclass
class WireDesk:
    """Time is the exchange's own and goes on when it is told to."""

    here: WireHarness
    log: MemoryTradeLog = field(default_factory=MemoryTradeLog)
    beside: WireHarness | None = None
    """Another venue of the same house."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the gate's context."""
    ahead: int = 0
    """Milliseconds by which the machine's clock is ahead of the exchange's."""

    def __post_init__(self) -> None:
        self.gate = self.open_gate()
        self.cut_off: tuple[str, Venue] | None = None
        self.lag = 0

    def open_gate(self) -> OrderGate:
        sides = [self.here] if self.beside is None else [self.here, self.beside]
        venues = {side.venue.exchange: side.venue for side in sides}
        return OrderGate(GateContext(log=self.log, account=ACCOUNT, venues=venues, now=self.now, **self.options))

    def now(self) -> Millis:
        """By the machine's clock."""
        return Millis(self.here.fake.clock.now() + self.ahead)

    async def restart(self) -> None:
        await self.here.restart()
        if self.beside is not None:
            await self.beside.restart()
        self.gate = self.open_gate()

    async def set_target(self, quantity: Decimal) -> None:
        """Of a sleeve of its own, which has half of the money; taken at once."""
        exchange, currency = self.here.exchange, self.here.exchange.currency
        if not self.gate.book.count:
            at, cash = self.here.fake.clock.now(), self.here.fake.engine.cash
            opened = AccountOpened(at=at, cash={exchange: cash})
            shares = SleevesSet(at=at, shares={"own": Decimal("0.5"), DEBATE: Decimal("0.5")})
            moved = SleeveTransferred(
                at=at, key="opening", source=DEBATE, target="own", currency=currency, amount=cash / 2
            )
            await self.log.append(ACCOUNT, [opened, shares, moved], 0)
        target = TargetPosition(exchange, self.here.symbol, quantity, at_once=True)
        await self.gate.set_targets({"own": [target]}, self.here.fake.clock.now(), "run_targets")

    async def fund_legs(self) -> None:
        """The account begins with what both venues have, all of it of the carry."""
        sides = [self.here, *([] if self.beside is None else [self.beside])]
        at, cash = self.here.fake.clock.now(), {side.exchange: side.fake.engine.cash for side in sides}
        currency = self.here.exchange.currency
        moved = SleeveTransferred(
            at=at,
            key="opening",
            source=DEBATE,
            target=CASH_CARRY,
            currency=currency,
            amount=sum(cash.values(), Decimal(0)),
        )
        shares = SleevesSet(at=at, shares={CASH_CARRY: Decimal(1)})
        await self.log.append(ACCOUNT, [AccountOpened(at=at, cash=cash), shares, moved], 0)

    def die_behind(self, purpose: str, lag: int, exchange: Venue | None = None) -> None:
        """The next order of a purpose is carried out, and whoever sent it learns nothing more. From then on what is new
        is not listed for so many milliseconds."""
        self.cut_off, self.lag = (purpose, exchange or self.here.exchange), lag
        self.here.server.cut = self._is_last

    def _is_last(self, request: Request) -> bool:
        text = unquote(f"{request.raw_query}{request.body.decode()}")
        sent = [order for order in self.gate.book.orders.values() if self.here.spell(order.request.client_id) in text]
        named = [(order.purpose, order.request.exchange) for order in sent]
        if request.method != "POST" or "/info" in request.path or self.cut_off not in named:
            return False
        self.cut_off, self.here.fake.clock.lag = None, self.lag
        self.here.server.fail("*", DOWN, 100_000)
        return True

    async def go_on(self, looks: int = 16) -> None:
        """Another process starts where one died, and looks until nothing is unsure."""
        assert self.cut_off is None, "it did not die"
        self.here.server.faults.clear()
        await self.restart()
        for _ in range(looks):
            await self.gate.advance()
            if not self.gate.troubles and not self.gate.book.open_intents:
                return
            self.wait(4_000)
        raise AssertionError(self.gate.troubles or self.gate.book.open_intents)

    def wait(self, millis: int) -> None:
        self.here.fake.clock.ahead += millis

    def held(self, symbol: Symbol = Symbol("BTCUSDT")) -> Decimal:
        """At the exchange."""
        return self.here.fake.engine.position(self.market(symbol).symbol).amount

    def market(self, symbol: Symbol) -> Market:
        """At the exchange, by whatever name it has there."""
        return self.here.fake.engine.markets[self.here.market.replace(self.here.symbol.base, symbol.base)]

    async def open(
        self,
        symbol: Symbol = Symbol("BTCUSDT"),
        quantity: float = 0.02,
        style: Style = Style.MOMENTUM_SNIPER,
        side: Side = Side.LONG,
    ) -> str:
        """A long with its stop 2 % below and its target 4 % above, or a short mirrored; the state it comes to."""
        return (await self.gate.execute(self.opening(symbol, quantity, style, side))).state

    def opening(
        self, symbol: Symbol, quantity: float, style: Style = Style.MOMENTUM_SNIPER, side: Side = Side.LONG
    ) -> RulingToExecute:
        as_of = self.here.fake.clock.now()
        exchange, price = self.here.venue.exchange, self.market(symbol).mark
        entry = float(price)
        leg = Leg(
            venue=exchange,
            side=side,
            currency=exchange.currency,
            margin=quantity * entry,
            notional=quantity * entry,
            leverage=1.0,
            quantity=quantity,
        )
        ruling = rule(
            Call.LONG if side is Side.LONG else Call.SHORT,
            as_of,
            execution_style=style,
            legs=(leg,),
            card=card(side, entry, entry * (1 - 0.02 * side.sign), entry * (1 + 0.04 * side.sign), quantity),
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
