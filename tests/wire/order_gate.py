"""An account with its gate on the paper venue, and rulings to execute, in a test's hands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.wire.paper_venue import ACCOUNT, PaperHarness, open_binance
from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import ExecutionResult, OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, JudgeKind, Leg, RegimeFamily, Ruling, Style, Target, TradeCard
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.protections import ProtectionLimits

BTC = Symbol("BTCUSDT")


def card(side: Side, entry: float, stop: float, target: float, quantity: float, **named: Any) -> TradeCard:
    fields: dict[str, Any] = {
        "side": side,
        "entry": entry,
        "stop": stop,
        "target": target,
        "stop_pct": 100 * (stop / entry - 1),
        "target_pct": 100 * (target / entry - 1),
        "quantity": quantity,
        "notional_usd": quantity * entry,
        "margin_usd": quantity * entry,
        "leverage": 1.0,
        "loss_at_stop_usd": 1.0,
        "loss_at_stop_pct": 0.1,
        "reward_risk": 2.0,
        "liquidation": None,
        "hold": "5d",
        "duration_hours": 10.0,
        "fair": 0.33,
        "edge": 0.05,
        "ev_pct": 0.1,
        "gross_pct": 0.2,
        "fees_pct": 0.1,
        "slippage_pct": 0.0,
        "funding_pct": 0.0,
        "llm_cost_pct": 0.0,
        "fill": 1.0,
        "exploration": False,
    }
    return TradeCard(**{**fields, **named})


def rule(call: Call, as_of: Millis, **named: Any) -> Ruling:
    """A ruling that opens nothing, unless legs and a card are given."""
    fields: dict[str, Any] = {
        "decision": call,
        "allocation_pct": 0.0,
        "leverage": 1.0,
        "target_exchange": None,
        "execution_style": None,
        "legs": (),
        "card": None,
        "veto": None,
        "valid_until": iso(Millis(as_of + 15 * MINUTE_MS)),
        "changes": (),
    }
    return Ruling(**{**fields, **named})


async def open_long(
    gate: OrderGate, at: Millis, price: float, quantity: float = 0.002, stop: float = 0.98
) -> ExecutionResult:
    """A long at the market, as a run would have it opened; `stop`: in parts of the price."""
    leg = Leg(
        venue=Venue("BINANCE"),
        side=Side.LONG,
        currency="USD",
        margin=quantity * price,
        notional=quantity * price,
        leverage=1.0,
        quantity=quantity,
    )
    ruling = rule(
        Call.LONG,
        at,
        execution_style=Style.MOMENTUM_SNIPER,
        legs=(leg,),
        card=card(Side.LONG, price, price * stop, price * 1.06, quantity),
        target_exchange=Target.BINANCE,
    )
    return await gate.execute(
        RulingToExecute(
            run_id="run_open_long",
            symbol=BTC,
            mode=Mode.SWING,
            as_of=at,
            ruling=ruling,
            valid_until=Millis(at + 15 * MINUTE_MS),
            mark=Decimal(str(price)),
            atr=Decimal(str(price)) / 100,
        )
    )


@dataclass
class GateHarness:
    """One account at one paper exchange; the market moves when it is told to."""

    paper: PaperHarness = field(default_factory=open_binance)
    limits: ProtectionLimits = field(default_factory=ProtectionLimits)
    others: Mapping[Venue, OrderVenue] = field(default_factory=dict)
    venue: OrderVenue | None = None
    """In the place of the paper venue itself."""
    live: bool = False
    entries: bool = True
    compare_every: Millis | None = None
    let_run_pct: int = 0

    def __post_init__(self) -> None:
        self.gate = self.open_gate()

    @property
    def log(self) -> AccountLog:
        return self.paper.log

    def open_gate(self) -> OrderGate:
        """As a process that starts has it."""
        venue = self.venue or self.paper.open_venue()
        context = GateContext(
            log=self.log,
            account=ACCOUNT,
            venues={self.paper.exchange: venue, **self.others},
            now=lambda: Millis(self.paper.at),
            limits=self.limits,
            live=self.live,
            entries=self.entries,
            compare_every=self.compare_every,
            let_run_pct=self.let_run_pct,
        )
        return OrderGate(context)

    def restart(self) -> OrderGate:
        self.gate = self.open_gate()
        return self.gate

    async def move(self, price: object, size: object = 1_000) -> None:
        """The market shows another price; nobody of the desk looks."""
        await self.paper.move(Decimal(str(price)), Decimal(str(size)))

    def wait(self, millis: int) -> None:
        """Time goes on at the price of before."""
        self.paper.at += millis - 1_000
        self.paper.show(self.paper.price)

    def opening(
        self,
        side: Side = Side.LONG,
        style: Style = Style.MOMENTUM_SNIPER,
        quantity: float = 0.05,
        run_id: str = "run_1",
        stop: float | None = None,
        **named: Any,
    ) -> RulingToExecute:
        """LONG: stop 2 % below, target 4 % above what the market shows; SHORT mirrored."""
        as_of = Millis(self.paper.at)
        sign = 1 if side is Side.LONG else -1
        entry = float(self.paper.price)
        stop, target = stop or entry * (1 - sign * 0.02), entry * (1 + sign * 0.04)
        leg = Leg(
            venue=self.paper.exchange,
            side=side,
            currency=self.paper.exchange.currency,
            margin=quantity * entry,
            notional=quantity * entry,
            leverage=1.0,
            quantity=quantity,
        )
        ruling = rule(
            Call.LONG if side is Side.LONG else Call.SHORT,
            as_of,
            allocation_pct=10.0,
            target_exchange=Target(self.paper.exchange.value),
            execution_style=style,
            legs=(leg,),
            card=card(side, entry, stop, target, quantity, **named),
        )
        return self.order(ruling, as_of, run_id)

    def closing(self, run_id: str = "run_2") -> RulingToExecute:
        as_of = Millis(self.paper.at)
        return self.order(rule(Call.CANCEL_AND_CLOSE, as_of, execution_style=Style.CASINO_EXIT), as_of, run_id)

    def order(self, ruling: Ruling, as_of: Millis, run_id: str) -> RulingToExecute:
        return RulingToExecute(
            run_id=run_id,
            symbol=self.paper.symbol,
            mode=Mode.SWING,
            as_of=as_of,
            ruling=ruling,
            valid_until=Millis(as_of + 15 * MINUTE_MS),
            mark=self.paper.price,
            atr=self.paper.price / 100,
            judge=JudgeKind.RULES,
            family=RegimeFamily.RANGE,
            edge=0.05,
        )
